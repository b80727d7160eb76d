import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from '../../lib/index.ts';
import { FirstRows } from '../../lib/streams/sources/first-rows.ts';
import { Lives } from '../store/support.ts';
import { ALL, Kept, makeHub, need, settled, stream, TestSource } from './source-fixture.ts';

/** Rows with the numbers from `first` on. */
const message = (count: number, first = 0) =>
  Buffer.from(JSON.stringify(Array.from({ length: count }, (_, at) => ({ a: first + at, b: 'x' }))));

/** A hub whose turns are taken explicitly. */
function open() {
  const source = new TestSource();
  const paused: (() => void)[] = [];
  const pause = () => new Promise<void>((resolve) => paused.push(resolve));
  const { hub, reported } = makeHub([source], { pause });
  const kept = new Kept();
  const attachment = hub.attach(stream(), ALL, kept);
  const turn = async () => {
    const resumed = paused.splice(0);
    for (const resume of resumed) resume();
    for (let at = 0; at < 10; at++) await undefined; // continuations in the same turn
    return resumed.length > 0;
  };
  const turns = async () => {
    let count = 0;
    while (await turn()) count++;
    return count;
  };
  return { hub, reported, kept, attachment, turn, turns, setup: source.setup, source };
}

const numbers = (kept: Kept) => kept.rows.map(({ values }) => values.a);
const upTo = (count: number) => Array.from({ length: count }, (_, at) => at);

describe('a message with many rows', () => {
  it('takes a message of up to 1,000 rows at once', async () => {
    const { kept, setup, turns } = open();
    setup.bytes(message(1000));
    assert.equal(kept.rows.length, 1000);
    assert.equal(await turns(), 0);
  });

  it('takes a longer message in slices of 200 rows, one in each turn', async () => {
    const { kept, setup, turn, turns } = open();
    setup.bytes(message(1001));
    assert.equal(kept.rows.length, 200);
    await turn();
    assert.equal(kept.rows.length, 400);
    await turns();
    assert.deepEqual(numbers(kept), upTo(1001));
  });

  it('makes later messages of the stream wait, even if their bytes change after the turn', async () => {
    const { kept, setup, turns } = open();
    const later = message(3, 1500);
    setup.bytes(message(1500));
    setup.bytes(later);
    setup.row({ a: 1503 });
    later.fill(0);
    assert.equal(kept.rows.length, 200);
    await turns();
    assert.deepEqual(numbers(kept), upTo(1504));
  });

  it('makes sources wait that can wait', async () => {
    const { setup, turns } = open();
    setup.bytes(message(1500));
    assert.equal(setup.isFull, true);
    await turns();
    assert.equal(setup.isFull, false);
  });

  it('limits the short messages that are taken in one turn after a long one', async () => {
    const { kept, setup, turn, turns } = open();
    setup.bytes(message(1200));
    for (let at = 0; at < 1000; at++) setup.bytes(message(1, 1200 + at));
    let before = kept.rows.length;
    while (await turn()) {
      assert.ok(kept.rows.length - before <= 200);
      before = kept.rows.length;
    }
    await turns();
    assert.deepEqual(numbers(kept), upTo(2200));
  });

  it('passes a message in one turn to rules that need all rows before the acknowledgement, and in slices to others', async () => {
    const { hub, kept, setup, turns } = open();
    const logging = Object.assign(new Kept(), { takesWhole: true });
    const { counters } = hub.attach(stream(), ALL, logging);
    setup.bytes(message(1500));
    setup.bytes(message(1, 1500));
    assert.deepEqual([kept.rows.length, logging.rows.length], [200, 1501]);
    await turns();
    assert.deepEqual([kept.rows.length, logging.rows.length], [1501, 1501]);
    assert.deepEqual(numbers(logging), upTo(1501));
    assert.equal(counters.recordsIn, 0); // before the messages
    assert.equal(hub.attach(stream(), ALL, new Kept()).counters.recordsIn, 1501);
  });

  it('reports how many rows a rule that ends during the message has not received', async () => {
    const { kept, setup, attachment, turns } = open();
    setup.bytes(message(1500));
    setup.bytes(message(1));
    assert.deepEqual(attachment.left, { rows: 1300, messages: 1 });
    await attachment.detach();
    await turns();
    assert.equal(kept.rows.length, 200);
    assert.deepEqual(attachment.left, { rows: 0, messages: 0 });
  });

  it('provides the columns of a rule that is attached during the message', async () => {
    const source = new TestSource();
    const { hub } = makeHub([source], { pause: () => new Promise((resolve) => setImmediate(resolve)) });
    hub.attach(stream(), need('a'), new Kept());
    source.setup.bytes(message(1500));
    const late = new Kept();
    hub.attach(stream(), need('b'), late);
    while (source.setup.isFull) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(late.rows.length, 1300);
    assert.equal(late.rows[0].values.b, 'x');
  });

  it('uses a separate consumer for each rule, which a replacing rule keeps until the end', async () => {
    const { hub, setup, turns } = open();
    const [taker, next] = [new Kept(), new Kept()];
    const rule = Object.assign(new Kept(), { many: () => taker });
    const attachment = hub.attach(stream(), ALL, rule);
    setup.bytes(message(1500));
    attachment.swap(next);
    await turns();
    assert.deepEqual([rule.rows.length, taker.rows.length, next.rows.length], [0, 1500, 0]);
    setup.bytes(message(1));
    assert.deepEqual([taker.rows.length, next.rows.length], [1500, 1]);
  });

  it('takes a retained message in slices when the rule starts, and sends one of its errors', async () => {
    const source = new TestSource();
    source.open = (setup) => {
      source.setups.push(setup);
      return { close: () => undefined, first: () => [{ payload: message(1500) }].values() };
    };
    const { hub } = makeHub([source]);
    const kept = new Kept();
    let takers = 0;
    const rule = Object.assign(kept, { many: () => void takers++ });
    const first = new FirstRows(rule);
    const { fed } = hub.attach(stream(), ALL, first, first);
    const seen = new Set<number>();
    let isFed = false;
    void fed.then(() => (isFed = true));
    while (!isFed) {
      seen.add(kept.rows.length);
      await settled();
    }
    assert.ok(seen.size > 6, `${[...seen]}`);
    assert.deepEqual(numbers(kept), upTo(1500));
    assert.equal(takers, 1);
  });

  it('changes a table once for each slice', async () => {
    const source = new TestSource();
    const paused: (() => void)[] = [];
    const { hub } = makeHub([source], { pause: () => new Promise((resolve) => paused.push(resolve)) });
    const kept = new Kept();
    hub.attach(stream({ RETAIN_SIZE: '10' }, undefined, 'table'), ALL, kept);
    source.setup.bytes(message(1500));
    assert.equal(kept.tables.length, 1);
    for (let at = 0; at < 10; at++) {
      for (const resume of paused.splice(0)) resume();
      for (let step = 0; step < 10; step++) await undefined;
    }
    assert.deepEqual(
      kept.table,
      upTo(1500)
        .slice(-10)
        .map((a) => ({ a, b: 'x' }))
    );
  });
});

describe('a message with many rows that fail', () => {
  it('counts each error, sends one, and reports how many rows a stopped rule has not received', async () => {
    await using broker = createBroker();
    await broker.start();
    const warnings: string[] = [];
    broker.on('error', () => undefined);
    broker.on('streams.warned', ({ text }) => void warnings.push(text));
    await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE="many", FORMAT="JSON")');
    const sent: unknown[] = [];
    await broker.streams.rules.create({
      id: 'r',
      sql: 'SELECT a + b AS c FROM demo',
      actions: [(rows) => void sent.push(...rows)]
    });
    const exceptions = async () => (await broker.streams.rules.status('r')).metrics.op_2_project_0_exceptions_total;
    await broker.publish({ topic: 'many', payload: message(1200) });
    while ((await exceptions()) !== 1200) await settled();
    assert.equal(sent.length, 1);
    await broker.publish({ topic: 'many', payload: message(5000) });
    await broker.streams.rules.stop('r');
    assert.equal(sent.length, 2);
    assert.match(warnings.join(), /stream rule r ended within a long message of demo: \d+ of its rows are dropped/);
  });
});

describe('a message with many rows for a stream rule with qos', () => {
  const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="many", FORMAT="JSON")';
  const ACTIONS = [{ mqtt: { topic: 'out', qos: 2, sendSingle: true } }];
  const begin = async (qos: 1 | 2, sql: string) => {
    const lives = await new Lives().begin();
    lives.kit.broker.on('error', () => undefined);
    await lives.kit.broker.streams.create(DEMO);
    await lives.kit.broker.streams.rules.create({ id: 'r', sql, actions: ACTIONS, options: { qos } });
    await lives.leave('reader', 'out', 2);
    return lives;
  };
  const received = async (lives: Lives) => {
    await lives.kit.clock.advance(10_000);
    const { client, got } = await lives.listen({ clientId: 'reader' });
    await lives.kit.clock.advance(1_000);
    await client.disconnect();
    return got.map(({ payload }) => JSON.parse(`${payload}`));
  };
  const SUMS = 'SELECT count(*) AS c, sum(a) AS s FROM demo GROUP BY COUNTWINDOW(1500)';
  const SUM = { c: 1500, s: (1499 * 1500) / 2 };

  it('counts dropped rows if the rule is updated from qos 0 during the message', async () => {
    await using lives = await begin(1, 'SELECT a FROM demo');
    const { rules } = lives.kit.broker.streams;
    const errors: string[] = [];
    const actions = [
      (rows: readonly Record<string, unknown>[]) => void errors.push(...rows.map(({ error }) => `${error}`))
    ];
    await rules.update('r', { sql: 'SELECT a FROM demo', actions, options: { qos: 0 } });
    void lives.kit.broker.publish({ topic: 'many', payload: message(5000) });
    await rules.update('r', { sql: 'SELECT a FROM demo', actions, options: { qos: 1 } });
    assert.match(
      errors.join(),
      /updated with another qos during a long message: \d+ rows of it, and 0 messages after it, were dropped/
    );
  });

  for (const qos of [1, 2] as const) {
    it(`commits all rows before the acknowledgement with qos ${qos}, so that none is lost in a crash during the message`, async () => {
      await using lives = await begin(qos, SUMS);
      const writer = await lives.connect({ clientId: 'w' });
      await writer.publish('many', message(1500), { qos: 1 });
      await lives.kill();
      assert.deepEqual(await received(lives), [SUM]);
    });

    it(`keeps all rows with qos ${qos} if the rule is stopped, started or updated, or the broker restarted, during the message`, async () => {
      await using lives = await begin(qos, SUMS);
      const { broker } = lives.kit;
      const publish = () => void broker.publish({ topic: 'many', payload: message(1500), qos: 1 });
      publish();
      await broker.streams.rules.stop('r');
      await broker.streams.rules.start('r');
      publish();
      await broker.streams.rules.update('r', { sql: SUMS.replace('AS c', 'AS n'), actions: ACTIONS, options: { qos } });
      publish();
      await lives.restart();
      const { c, s } = SUM;
      assert.deepEqual(await received(lives), [SUM, SUM, { n: c, s }]);
    });

    it(`takes a message in slices with qos ${qos}, while later messages wait in order`, async () => {
      await using lives = await begin(qos, 'SELECT a FROM demo');
      const { broker } = lives.kit;
      await broker.publish({ topic: 'many', payload: message(1500), qos: 1 });
      await broker.publish({ topic: 'many', payload: message(1, 1500), qos: 1 });
      const passed = async () =>
        Number((await broker.streams.rules.status('r')).metrics.op_2_project_0_records_in_total);
      const seen = new Set<number>();
      for (let now = 0; now < 1501; ) {
        now = await passed();
        seen.add(now);
        await settled();
      }
      assert.ok(seen.size > 3, `${[...seen]}`);
      assert.deepEqual(
        await received(lives),
        upTo(1501).map((a) => ({ a }))
      );
    });
  }
});
