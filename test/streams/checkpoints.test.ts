import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryStore } from '../../lib/index.ts';
import type { SourceType } from '../../lib/streams/types.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { Random } from '../fuzz/random.ts';
import { Lives, turns } from '../store/support.ts';
import { IS_LONG } from '../support/samples.ts';

const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="demo/#", FORMAT="JSON")';
const THREES = 'SELECT collect(n) AS ns FROM demo GROUP BY COUNTWINDOW(3)';

/** Brokers with a rule that publishes at `out`, for an offline client. */
async function livesWith(qos: 0 | 1 | 2, sql = THREES, options: object = {}): Promise<Lives> {
  const lives = await new Lives().begin();
  lives.kit.broker.on('error', () => undefined);
  const { streams } = lives.kit.broker;
  await streams.create(DEMO);
  const actions = [{ mqtt: { topic: 'out', qos: 2, sendSingle: true } }];
  await streams.rules.create({ id: 'r', sql, actions, options: { qos, ...options } });
  await lives.leave('reader', 'out', 2);
  return lives;
}

/** The messages that the reader receives when it connects again. */
async function received(lives: Lives): Promise<Record<string, unknown>[]> {
  await lives.kit.clock.advance(2_000);
  const { client, got } = await lives.listen({ clientId: 'reader' });
  await lives.kit.clock.advance(1_000);
  await client.disconnect();
  return got.map(({ payload }) => JSON.parse(`${payload}`));
}

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
console.log(`# kills of stream rules: SEED=${SEED}`);
const FAULTS = ['rejects', 'applies', 'refuses'] as const;

describe('A stream rule with qos', () => {
  for (const qos of [1, 2] as const)
    it(`delivers the result of a window without another message, even to receivers that are not persisted (qos ${qos})`, async () => {
      await using kit = await createTestBroker({ store: memoryStore() });
      const got: string[] = [];
      kit.broker.subscribe('out', ({ payload }) => void got.push(String(payload)));
      await kit.broker.streams.create(DEMO);
      const sql = 'SELECT count(*) AS n FROM demo GROUP BY TUMBLINGWINDOW(ss, 10)';
      const actions = [{ mqtt: { topic: 'out', sendSingle: true } }];
      await kit.broker.streams.rules.create({ id: 'r', sql, actions, options: { qos, checkpointInterval: 11_000 } });
      await kit.broker.publish('demo/a', '{"n":1}');
      await kit.clock.advance(qos === 1 ? '10500ms' : '11500ms');
      await kit.clock.settle();
      assert.deepEqual(got, ['{"n":1}']);
    });

  for (const qos of [1, 2] as const) {
    it(`continues within a window after a crash with qos ${qos}`, async () => {
      await using lives = await livesWith(qos);
      const writer = await lives.connect({ clientId: 'w' });
      for (const n of [1, 2]) await writer.publish('demo/a', JSON.stringify({ n }), { qos: 1 });
      await lives.kill();
      const again = await lives.connect({ clientId: 'w' });
      await again.publish('demo/a', JSON.stringify({ n: 3 }), { qos: 1 });
      assert.deepEqual(await received(lives), [{ ns: [1, 2, 3] }]);
    });

    it(`continues within a window after a stop of the broker, of the rule, or of both with qos ${qos}`, async () => {
      await using lives = await livesWith(qos);
      const publish = async (n: number) =>
        (await lives.connect({ clientId: 'w' })).publish('demo/a', JSON.stringify({ n }), { qos: 1 });
      await publish(1);
      await lives.restart();
      await publish(2);
      await lives.kit.clock.settle();
      const { rules } = lives.kit.broker.streams;
      await rules.stop('r');
      await rules.start('r');
      await publish(3);
      await publish(4);
      await lives.kit.clock.settle();
      await rules.stop('r');
      await lives.restart();
      await lives.kit.broker.streams.rules.start('r');
      await publish(5);
      await publish(6);
      assert.deepEqual(await received(lives), [{ ns: [1, 2, 3] }, { ns: [4, 5, 6] }]);
    });

    it(`loses no acknowledged row whenever the process is killed with qos ${qos}${qos === 2 ? ', and repeats none' : ''}`, async () => {
      const random = new Random(SEED);
      for (let round = 0; round < 6; round++) {
        await using lives = await livesWith(qos);
        const acknowledged = new Set<number>();
        let n = 0;
        for (let life = 0; life < 4; life++) {
          lives.kit.broker.on('error', () => undefined);
          const [before, after] = [random.below(4), random.below(4)];
          lives.store.turnsBefore = () => before;
          lives.store.turnsAfter = () => after;
          if (round % 2 === 1) lives.store.fault = () => (random.once(12) ? random.pick(FAULTS) : undefined);
          const writer = await lives.connect({ clientId: 'w' });
          for (let count = random.below(12); count > 0; count--) {
            const own = ++n;
            const sent = writer.publish('demo/a', JSON.stringify({ n: own }), { qos: (1 + random.below(2)) as 1 | 2 });
            const noted = sent.then(
              () => acknowledged.add(own),
              () => undefined
            );
            if (random.next() < 0.6) await Promise.race([noted, lives.kit.clock.settle()]);
            if (random.next() < 0.3) await lives.kit.clock.advance(random.below(1_500));
          }
          lives.store.fault = () => undefined; // a broker does not start on a failing store
          if (random.next() < 0.8) await lives.kill({ isPendingKept: random.once(2) });
          else {
            await lives.kit.clock.advance(10_000); // it is stopped when the store works again
            await lives.restart();
          }
        }
        await lives.kit.clock.advance(10_000);
        const filler = await lives.connect({ clientId: 'filler' });
        for (let at = 0; at < 3; at++) await filler.publish('demo/a', JSON.stringify({ n: -1 }), { qos: 1 });
        const all = (await received(lives)).flatMap(({ ns }) => ns as number[]).filter((each) => each > 0);
        const counts = new Map<number, number>();
        for (const each of all) counts.set(each, (counts.get(each) ?? 0) + 1);
        const what = `SEED=${SEED}, round ${round}: ${JSON.stringify(all)}, acknowledged ${[...acknowledged]}`;
        for (const own of acknowledged) assert.ok(counts.has(own), `${own} is lost; ${what}`);
        if (qos === 2) for (const [own, count] of counts) assert.equal(count, 1, `${own} twice; ${what}`);
      }
    });
  }

  it('starts with empty windows after a crash with qos 0', async () => {
    await using lives = await livesWith(0);
    const writer = await lives.connect({ clientId: 'w' });
    for (const n of [1, 2]) await writer.publish('demo/a', JSON.stringify({ n }), { qos: 1 });
    await lives.crash();
    const again = await lives.connect({ clientId: 'w' });
    for (const n of [3, 4, 5]) await again.publish('demo/a', JSON.stringify({ n }), { qos: 1 });
    assert.deepEqual(await received(lives), [{ ns: [3, 4, 5] }]);
  });

  it('publishes with its checkpoint, after a second, with qos 2', async () => {
    await using lives = await livesWith(2);
    const { clock } = lives.kit;
    const { got } = await lives.listen({ clientId: 'reader' });
    const writer = await lives.connect({ clientId: 'w' });
    for (const n of [1, 2, 3]) await writer.publish('demo/a', JSON.stringify({ n }), { qos: 1 });
    await clock.advance(500);
    assert.equal(got.length, 0);
    await clock.advance(1_000);
    assert.deepEqual(
      got.map(({ payload }) => `${payload}`),
      ['{"ns":[1,2,3]}']
    );
  });

  it('sends nothing before its checkpoint is committed with qos 2', async () => {
    await using lives = await livesWith(2);
    const { streams } = lives.kit.broker;
    const actions = [{ mqtt: { topic: 'at/once', qos: 0 } }];
    await streams.rules.update('r', { sql: 'SELECT n FROM demo', actions, options: { qos: 2 } });
    const { client, texts } = await lives.listen({ clientId: 'online' });
    await client.subscribe({ topic: 'at/once', qos: 0 });
    await streams.push('demo', { n: 1 });
    const seen: number[] = [];
    lives.store.turnsBefore = () => 50;
    lives.store.turnsAfter = () => {
      seen.push(texts().length);
      return 0;
    };
    await lives.kit.clock.advance(1_200);
    assert.deepEqual([...new Set(seen)], [0]);
    assert.deepEqual(texts(), ['[{"n":1}]']);
  });

  it('makes a checkpoint when half of the limit is used, which deletes the rows before it, with qos 1', async () => {
    await using lives = await new Lives({ streams: { bounds: { checkpointRows: 20 } } }).begin();
    const { streams } = lives.kit.broker;
    await streams.create(DEMO);
    await streams.rules.create({ id: 'r', sql: THREES, actions: [{ nop: {} }], options: { qos: 1 } });
    const records = async () => (await lives.store.contents()).filter((text) => text.includes('stream rules')).length;
    const writer = await lives.connect({ clientId: 'w' });
    const publish = async (count: number) => {
      for (let at = 0; at < count; at++) await writer.publish('demo/a', '{"n":1}', { qos: 1 });
      await lives.kit.clock.advance(100);
      return records();
    };
    assert.equal(await publish(9), 10); // with the first checkpoint
    assert.ok((await publish(1)) <= 2);
    await streams.rules.delete('r');
    await lives.kit.clock.advance(100);
    assert.equal(await records(), 0);
  });

  it('stops with a reason if its state cannot be saved with qos 1', async () => {
    await using lives = await new Lives({ streams: { bounds: { checkpointBytes: 2_000 } } }).begin();
    lives.kit.broker.on('error', () => undefined);
    const { streams } = lives.kit.broker;
    await streams.create(DEMO);
    const sql = 'SELECT collect(n) FROM demo GROUP BY COUNTWINDOW(1000)';
    await streams.rules.create({ id: 'r', sql, actions: [{ nop: {} }], options: { qos: 1 } });
    for (let n = 0; n < 200; n++) await streams.push('demo', { n });
    await lives.kit.clock.advance(100);
    assert.match(
      (await streams.rules.status('r')).text,
      /^Stopped: its checkpoint has \d+ bytes: more than bounds.checkpointBytes, 2000/
    );
  });

  it('passes on the rows with a pending commit when it is updated with qos 2', async () => {
    await using lives = await livesWith(2, 'SELECT n FROM demo');
    const { broker } = lives.kit;
    const [{ actions, options }] = [(await broker.streams.rules.get('r')) ?? assert.fail()];
    const publish = (n: number) => broker.publish('demo/a', JSON.stringify({ n }), { qos: 1 });
    await publish(1);
    const published = [publish(2), publish(3)];
    const updated = broker.streams.rules.update('r', { sql: 'SELECT n FROM demo WHERE n > 0', actions, options });
    await Promise.all([...published, publish(4), updated]);
    await publish(5);
    assert.deepEqual(
      (await received(lives)).map(({ n }) => n),
      [1, 2, 3, 4, 5]
    );
  });

  it('receives the rows that arrive during its restart with qos 1', async () => {
    await using lives = await livesWith(1, 'SELECT n FROM demo');
    const { broker } = lives.kit;
    const publish = (n: number) => broker.publish('demo/a', JSON.stringify({ n }), { qos: 1 });
    await publish(1);
    const restarted = broker.streams.rules.restart('r');
    for (const n of [2, 3, 4]) await publish(n);
    await restarted;
    await publish(5);
    assert.deepEqual(
      (await received(lives)).map(({ n }) => n),
      [1, 2, 3, 4, 5]
    );
  });

  it('starts with empty windows after a change of the statement with qos 1', async () => {
    await using lives = await livesWith(1);
    const { streams } = lives.kit.broker;
    await streams.push('demo', { n: 1 });
    const warnings: string[] = [];
    lives.kit.broker.on('streams.warned', ({ text }) => warnings.push(text));
    const actions = [{ mqtt: { topic: 'out', qos: 2, sendSingle: true } }];
    const sql = 'SELECT collect(n) AS m FROM demo GROUP BY COUNTWINDOW(2)';
    await streams.rules.update('r', { sql, actions, options: { qos: 1 } });
    for (const n of [2, 3]) await streams.push('demo', { n });
    assert.deepEqual(warnings, ['stream rule r: its checkpoint belongs to another definition and is not used']);
    assert.deepEqual(await received(lives), [{ m: [2, 3] }]);
  });

  it('refuses rows that the store refuses, and continues with the others, with qos 1', async () => {
    await using lives = await livesWith(2);
    const { streams } = lives.kit.broker;
    lives.store.fault = () => 'rejects';
    await assert.rejects(streams.push('demo', { n: 1 }), { code: 'STORE_FAILED' });
    lives.store.fault = () => undefined;
    await lives.kit.clock.advance(10_000);
    for (const n of [2, 3, 4]) await streams.push('demo', { n });
    assert.deepEqual(await received(lives), [{ ns: [2, 3, 4] }]);
  });

  it('reports that qos 1 has no effect without a store', async () => {
    await using kit = await createTestBroker();
    const warnings: string[] = [];
    kit.broker.on('streams.warned', ({ text }) => warnings.push(text));
    await kit.broker.streams.create(DEMO);
    await kit.broker.streams.rules.create({ id: 'r', sql: THREES, actions: [{ nop: {} }], options: { qos: 1 } });
    assert.deepEqual(warnings, ['stream rule r: option qos has no effect, because the broker has no store']);
  });

  it('keeps its rows with qos 1 if a table of it cannot be opened at the next start', async () => {
    const source = { isBroken: false };
    await using lives = await new Lives({ streams: { sources: [flaky(source)] } }).begin();
    lives.kit.broker.on('error', () => undefined);
    const { streams } = lives.kit.broker;
    await streams.create(DEMO);
    await streams.create('CREATE TABLE names (n BIGINT, name STRING) WITH (TYPE="flaky", FORMAT="JSON")');
    const sql = 'SELECT collect(demo.n) AS ns FROM demo LEFT JOIN names ON demo.n = names.n GROUP BY COUNTWINDOW(3)';
    const actions = [{ mqtt: { topic: 'out', qos: 2, sendSingle: true } }];
    await streams.rules.create({ id: 'r', sql, actions, options: { qos: 1 } });
    await lives.leave('reader', 'out', 2);
    for (const n of [1, 2]) await streams.push('demo', { n });
    source.isBroken = true;
    await lives.kill();
    lives.kit.broker.on('error', () => undefined);
    await assert.rejects(lives.kit.broker.streams.rules.start('r'), { message: 'no such table' });
    source.isBroken = false;
    await lives.kit.broker.streams.rules.start('r');
    await lives.kit.broker.streams.push('demo', { n: 3 });
    assert.deepEqual(await received(lives), [{ ns: [1, 2, 3] }]);
  });

  for (const qos of [0, 1] as const)
    it(`keeps its windows with qos 1 if an update to qos ${qos} fails`, async () => {
      const source = { isBroken: true };
      await using lives = await new Lives({ streams: { sources: [flaky(source)] } }).begin();
      lives.kit.broker.on('error', () => undefined);
      const { streams } = lives.kit.broker;
      await streams.create(DEMO);
      await streams.create('CREATE STREAM other () WITH (TYPE="flaky", FORMAT="JSON")');
      const actions = [{ mqtt: { topic: 'out', qos: 2, sendSingle: true } }];
      await streams.rules.create({ id: 'r', sql: THREES, actions, options: { qos: 1 } });
      await lives.leave('reader', 'out', 2);
      for (const n of [1, 2]) await streams.push('demo', { n });
      await assert.rejects(streams.rules.update('r', { sql: 'SELECT * FROM other', actions, options: { qos } }));
      await lives.kill();
      await lives.kit.broker.streams.push('demo', { n: 3 });
      assert.deepEqual(await received(lives), [{ ns: [1, 2, 3] }]);
    });

  it('restores the windows of its rows with qos 1, even if it is killed before the first checkpointInterval has elapsed', async () => {
    const sql = 'SELECT collect(n) AS ns FROM demo GROUP BY TUMBLINGWINDOW(ss, 10)';
    await using lives = await livesWith(1, sql, { windowAlign: 'start' });
    for (const n of [1, 2, 3, 4]) {
      await lives.kit.broker.streams.push('demo', { n });
      await lives.kit.clock.advance(5_000);
    }
    await lives.kill();
    await lives.kit.clock.advance(10_000);
    // the first windows are repeated
    assert.deepEqual((await received(lives)).slice(-2), [{ ns: [1, 2] }, { ns: [3, 4] }]);
  });

  it('starts with empty windows with qos 1 after a change of its options, even before its first checkpoint', async () => {
    const rule = (sql: string) => ({
      definitions: [DEMO, 'CREATE STREAM other () WITH (DATASOURCE="other", FORMAT="JSON")'],
      rules: [
        { id: 'r', sql, actions: [{ mqtt: { topic: 'out', qos: 2, sendSingle: true } }], options: { qos: 1 as const } }
      ]
    });
    await using lives = await new Lives({ streams: rule(THREES) }).begin();
    await lives.leave('reader', 'out', 2);
    await lives.kit.broker.streams.push('demo', { n: 1 });
    lives.options = { streams: rule('SELECT n FROM other') };
    await lives.kill();
    lives.kit.broker.on('error', () => undefined);
    assert.deepEqual(await received(lives), []);
  });

  it('loses no row with a pending commit when it is updated with qos 2', async () => {
    await using lives = await livesWith(2, 'SELECT n FROM demo');
    const { streams } = lives.kit.broker;
    await lives.kit.clock.advance(100);
    lives.store.turnsBefore = () => 20;
    const writer = await lives.connect({ clientId: 'w' });
    const sent = writer.publish('demo/a', '{"n":1}', { qos: 1 });
    for (let turn = 0; turn < 10; turn++) await turns(1);
    const actions = [{ mqtt: { topic: 'out', qos: 2, sendSingle: true } }];
    await streams.rules.update('r', { sql: 'SELECT n, 1 AS one FROM demo', actions, options: { qos: 2 } });
    await sent;
    const got = await received(lives);
    assert.deepEqual(
      got.map(({ n }) => n),
      [1]
    );
  });

  for (const qos of [1, 2] as const)
    it(`continues after a long failure of the store with qos ${qos}`, async () => {
      await using lives = await livesWith(qos);
      const { broker, clock } = lives.kit;
      const errors: string[] = [];
      broker.on('error', ({ error }) => errors.push(error.message));
      lives.store.fault = () => 'rejects';
      await assert.rejects(broker.streams.push('demo', { n: 0 }));
      const writer = await lives.connect({ clientId: 'w' });
      for (let n = 1; n <= 300; n++) await writer.publish('demo/a', JSON.stringify({ n }), { qos: 0 });
      await clock.advance(60_000);
      lives.store.fault = () => undefined;
      await clock.advance(60_000);
      for (let n = 301; n <= 306; n++) await broker.streams.push('demo', { n });
      await clock.advance(400_000);
      assert.ok((await lives.store.contents()).filter((text) => text.includes('stream rules')).length <= 2);
      const numbers = (await received(lives)).flatMap(({ ns }) => ns as number[]);
      assert.deepEqual(numbers.slice(-3), qos === 1 ? [303, 304, 305] : [304, 305, 306]);
      if (qos === 2) assert.ok(errors.includes('a row was refused, because the store cannot be written at present'));
    });

  it('sends nothing twice because of enableCache with qos 2', async () => {
    await using lives = await livesWith(2);
    const { streams } = lives.kit.broker;
    const actions = [{ mqtt: { topic: 'out', qos: 2, sendSingle: true, enableCache: true } }];
    await streams.rules.update('r', { sql: 'SELECT n FROM demo', actions, options: { qos: 2 } });
    await lives.kit.clock.advance(2_000);
    await streams.push('demo', { n: 1 });
    await lives.kit.clock.advance(100);
    await lives.kill();
    assert.deepEqual(await received(lives), [{ n: 1 }]);
  });

  it('processes no row twice after two starts of one broker with qos 2', async () => {
    await using lives = await livesWith(2);
    for (const n of [1, 2]) await lives.kit.broker.streams.push('demo', { n });
    await lives.kill();
    const { broker } = lives.kit;
    for (let count = 0; count < 2; count++) {
      await broker.stop();
      await broker.start();
    }
    for (const n of [3, 4, 5, 6]) await broker.streams.push('demo', { n });
    assert.deepEqual(await received(lives), [{ ns: [1, 2, 3] }, { ns: [4, 5, 6] }]);
  });
});

const OTHER = 'CREATE STREAM other () WITH (DATASOURCE="other/#", FORMAT="JSON", TIMESTAMP="t")';
const EVENTS = 'CREATE STREAM demo () WITH (DATASOURCE="demo/#", FORMAT="JSON", TIMESTAMP="t")';
/** Stateful statements. */
const STATEMENTS = [
  'SELECT collect(n) AS ns FROM demo GROUP BY TUMBLINGWINDOW(ss, 2)',
  'SELECT k, sum(n) AS s, count(*) AS c, last_value(n, true) AS l FROM demo GROUP BY k, TUMBLINGWINDOW(ss, 3)',
  'SELECT collect(n) AS ns, window_start() AS b, window_end() AS e FROM demo GROUP BY HOPPINGWINDOW(ss, 4, 2)',
  'SELECT k, avg(n) AS a, max(n) AS m FROM demo GROUP BY k, HOPPINGWINDOW(ss, 4, 1)',
  'SELECT collect(n) AS ns FROM demo GROUP BY SLIDINGWINDOW(ss, 3)',
  'SELECT sum(n) AS s, min(n) AS m FROM demo GROUP BY SLIDINGWINDOW(ss, 3)',
  'SELECT collect(n) AS ns FROM demo GROUP BY SLIDINGWINDOW(ss, 3, 1)',
  'SELECT collect(n) AS ns FROM demo GROUP BY SESSIONWINDOW(ss, 6, 2)',
  'SELECT demo.n AS a, other.n AS b FROM demo INNER JOIN other ON demo.k = other.k GROUP BY TUMBLINGWINDOW(ss, 3)',
  'SELECT demo.n AS a, other.n AS b FROM demo FULL JOIN other ON demo.k = other.k GROUP BY SLIDINGWINDOW(ss, 2)',
  'SELECT n, lag(n) AS p, lag(n, 2, 0) OVER (PARTITION BY k) AS q FROM demo',
  'SELECT n, acc_sum(n) AS s, had_changed(true, k) AS h, changed_col(true, k) AS c, latest(k) AS l FROM demo',
  'SELECT collect(n) AS ns, lag(count(*)) AS p FROM demo WHERE lag(k) != 1 GROUP BY TUMBLINGWINDOW(ss, 2)',
  'SELECT n, last_hit_count() AS c FROM demo WHERE k > 0'
];
/** Statements for processing time only. */
const COUNTS = [
  'SELECT collect(n) AS ns FROM demo GROUP BY COUNTWINDOW(4, 2)',
  'SELECT k, sum(n) AS s FROM demo GROUP BY k, COUNTWINDOW(3)',
  'SELECT collect(n) AS ns FROM demo GROUP BY STATEWINDOW(k = 0, k > 0)'
];

/** A row that is pushed, and the preceding action. */
interface Step {
  readonly gapMs: number;
  readonly stream: 'demo' | 'other';
  readonly row: Readonly<Record<string, number>>;
  readonly before: 'nothing' | 'kill' | 'kill a while' | 'stop' | 'stop rule';
}

const START = Date.UTC(2024, 0, 1);

function randomSteps(random: Random): Step[] {
  let time = START;
  return Array.from({ length: 30 }, (_, n) => {
    const gapMs = random.below(3) === 0 ? 0 : random.below(1_800);
    time += gapMs;
    return {
      gapMs,
      stream: random.next() < 0.7 ? 'demo' : 'other',
      row: { n, k: random.below(3), t: time - random.below(800) },
      before: random.pick(['nothing', 'nothing', 'nothing', 'kill', 'kill a while', 'stop', 'stop rule'] as const)
    };
  });
}

/** The outputs of a rule. @param isCalm whether only rows are processed, without kills and stops */
async function outputsOf(steps: readonly Step[], sql: string, options: object, isCalm: boolean): Promise<string[]> {
  await using lives = await new Lives().begin(START - 10_000);
  lives.kit.broker.on('error', () => undefined);
  for (const ddl of [EVENTS, OTHER]) await lives.kit.broker.streams.create(ddl);
  const actions = [{ mqtt: { topic: 'out', qos: 2 } }];
  await lives.kit.broker.streams.rules.create({
    id: 'r',
    sql,
    actions,
    options: { qos: 2, sendError: true, ...options }
  });
  await lives.leave('reader', 'out', 2);
  await lives.kit.clock.advanceTo(START);
  let time = START;
  for (const { gapMs, stream, row, before } of steps) {
    time += gapMs;
    const what = isCalm ? 'nothing' : before;
    if (what === 'kill a while') await lives.kill({ downForMs: gapMs });
    else await lives.kit.clock.advanceTo(time);
    if (what === 'kill') await lives.kill();
    else if (what === 'stop') await lives.restart();
    else if (what === 'stop rule') await lives.kit.broker.streams.rules.restart('r');
    await lives.kit.broker.streams.push(stream, row);
  }
  await lives.kit.clock.advance(20_000);
  const { client, texts } = await lives.listen({ clientId: 'reader' });
  await lives.kit.clock.advance(1_000);
  await client.disconnect();
  return texts();
}

describe('A stream rule with qos 2 that is killed and stopped', () => {
  const cases = [
    ...[...STATEMENTS, ...COUNTS].map((sql, at) => ({ sql, options: {}, at })),
    ...STATEMENTS.map((sql, at) => ({ sql, options: { isEventTime: true, lateTolerance: 500 }, at: at + 1 }))
  ];
  // In the short form, each statement with one of the two times, alternately; the seed decides which.
  for (const { sql, options } of IS_LONG ? cases : cases.filter(({ at }) => at % 2 === SEED % 2))
    it(`sends the same outputs as without kills and stops: ${sql} ${JSON.stringify(options)}`, async () => {
      const seed = Number(process.env.STEPS_SEED ?? SEED);
      const steps = randomSteps(new Random(seed));
      const expected = await outputsOf(steps, sql, options, true);
      assert.ok(expected.length > 0, `SEED=${seed}`);
      assert.deepEqual(await outputsOf(steps, sql, options, false), expected, `SEED=${seed}`);
    });
});

/** A source type that cannot be opened at times. */
function flaky(state: { readonly isBroken: boolean }): SourceType {
  return {
    name: 'flaky',
    about: 'Fails when it is opened.',
    for: ['stream', 'table'],
    properties: {},
    open() {
      if (state.isBroken) throw new Error('no such table');
      return { close: async () => undefined };
    }
  };
}
