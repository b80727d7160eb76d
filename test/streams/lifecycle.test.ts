import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toPromise } from 'xstate';
import { createBroker, memoryStore } from '../../lib/index.ts';
import { createTestBroker, type TestBroker, VirtualClock } from '../../lib/testing/index.ts';

const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="demo", FORMAT="JSON")';
const NOP = [{ nop: {} }];

async function kitWithDemo(options: Parameters<typeof createTestBroker>[0] = {}): Promise<TestBroker> {
  const kit = await createTestBroker({ leaks: 'ignore', ...options });
  kit.broker.on('error', () => undefined);
  await kit.broker.streams.create(DEMO);
  return kit;
}

describe('A stream rule', () => {
  it('survives restarts with its stream, and runs again only if it was running', async () => {
    const store = memoryStore();
    {
      await using kit = await kitWithDemo({ store });
      const { rules } = kit.broker.streams;
      for (const id of ['on', 'off']) await rules.create({ id, sql: 'SELECT * FROM demo', actions: NOP });
      await rules.stop('off');
      await rules.create({ id: 'temporary', sql: 'SELECT * FROM demo', actions: NOP, temp: true });
    }
    await using kit = await createTestBroker({ store });
    const { streams } = kit.broker;
    assert.deepEqual(
      (await streams.rules.list()).map(({ id, status }) => [id, status]),
      [
        ['off', 'Stopped: canceled manually.'],
        ['on', 'Running']
      ]
    );
    assert.deepEqual(
      (await streams.list('stream')).map(({ sql }) => sql),
      [DEMO]
    );
  });

  it('rejects a rule that cannot be planned with a reason, and does not store it', async () => {
    await using kit = await kitWithDemo();
    const { rules } = kit.broker.streams;
    const refused = [
      [{ sql: '' }, /Missing rule SQL/],
      [{ id: 'a/b' }, /id: expected a string .* without "\/", control characters/],
      [{ id: '..' }, /id: expected a string other than "\." and "\.\."/],
      [{ id: '\ud800' }, /id: expected a string .* unpaired surrogates/],
      [{ sql: 'SELECT * FROM demo', actions: [] }, /Missing rule actions/],
      [{ sql: 'SELECT * FROM demo', actions: { nop: {} } }, /actions: expected an array of functions and of objects/],
      [{ sql: 'SELECT * FROM nothing' }, /fail to get stream nothing, please check if stream is created/],
      [{ sql: 'SELECT FROM demo' }, /syntax error/],
      [{ sql: 'SELECT nofunction(a) FROM demo' }, /nofunction/],
      [{ sql: 'SELECT * FROM demo', actions: [{ nosink: {} }] }, /unknown sink type nosink/],
      [{ sql: 'SELECT * FROM demo', actions: [{ mqtt: {} }] }, /mqtt sink is missing property topic/],
      [{ sql: 'SELECT * FROM demo', options: { bufferLength: -1 } }, /rule option bufferLength -1 is invalid/],
      [{ sql: 'SELECT * FROM demo', options: { buferLength: 1 } }, /did you mean.*bufferLength/],
      [{ sql: 'SELECT * FROM demo', options: { isEventTime: true } }, /needs the option TIMESTAMP/]
    ] as const;
    for (const [input, message] of refused)
      await assert.rejects(
        rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: NOP, ...input } as never),
        { message },
        String(message)
      );
    assert.deepEqual(await rules.list(), []);
  });

  it('shows its states in its actor, which is done when the rule is dropped', async () => {
    await using kit = await kitWithDemo();
    const { rules } = kit.broker.streams;
    await rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: NOP, triggered: false });
    const actor = await rules.actor('r');
    assert.deepEqual(actor.getSnapshot().value, { idle: 'defined' });
    assert.equal(actor.getSnapshot().can({ type: 'start' }), true);
    const seen: unknown[] = [];
    actor.subscribe(({ value }) => seen.push(value));
    const done = toPromise(actor);
    for (const change of ['start', 'stop', 'start'] as const) await rules[change]('r');
    assert.throws(() => actor.send({ type: 'stopped' }), { code: 'ACTOR_CLOSED', message: /broker\.streams\.rules/ });
    await rules.delete('r');
    await done;
    assert.deepEqual(seen, [
      { idle: 'starting' },
      'connected',
      { disconnected: 'waiting' },
      { disconnected: 'starting' },
      'connected',
      'gone'
    ]);
    await assert.rejects(rules.actor('r'), { code: 'STREAM_RULE_NOT_FOUND' });
  });

  it('goes on as it was if an update is refused', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    const seen: unknown[] = [];
    await streams.rules.create({ id: 'r', sql: 'SELECT a FROM demo', actions: [(rows) => void seen.push(...rows)] });
    await assert.rejects(streams.rules.update('r', { sql: 'SELECT a FROM nothing', actions: NOP }));
    await streams.push('demo', { a: 1, b: 2 });
    assert.deepEqual([...seen], [{ a: 1 }]);
    await streams.rules.update('r', { sql: 'SELECT b FROM demo', actions: [(rows) => void seen.push(...rows)] });
    await streams.push('demo', { a: 1, b: 2 });
    assert.deepEqual(seen, [{ a: 1 }, { b: 2 }]);
  });

  it('accepts repeated calls of start, stop and drop', async () => {
    await using kit = await kitWithDemo();
    const { rules } = kit.broker.streams;
    await rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: NOP });
    assert.equal((await rules.status('r')).state, 'connected');
    await rules.stop('r');
    await rules.stop('r');
    assert.equal((await rules.status('r')).state, 'disconnected');
    await rules.start('r');
    await rules.start('r');
    await rules.restart('r');
    assert.equal((await rules.status('r')).text, 'Running');
    await rules.delete('r');
    for (const call of [rules.delete('r'), rules.stop('r'), rules.start('r'), rules.status('r')])
      await assert.rejects(call, { code: 'STREAM_RULE_NOT_FOUND' });
  });

  it('runs by its cron expression for its duration', async () => {
    await using kit = await kitWithDemo({ clock: new VirtualClock({ now: '2026-03-01T10:03:30Z' }) });
    const { rules } = kit.broker.streams;
    await rules.create({
      id: 'r',
      sql: 'SELECT * FROM demo',
      actions: NOP,
      options: { cron: '*/10 * * * *', duration: '2m' }
    });
    const textAfter = async (time: string) => {
      await kit.clock.advance(time);
      return (await rules.status('r')).text;
    };
    assert.equal(await textAfter('1s'), 'Stopped: waiting for next schedule.');
    assert.equal(await textAfter('7m'), 'Running');
    await rules.restart('r'); // during a run, which ends at its time
    assert.equal(await textAfter('1s'), 'Running');
    assert.equal(await textAfter('3m'), 'Stopped: waiting for next schedule.');
  });

  it('reports each start and stop in an event, with the reason only if it has failed', async () => {
    let isBroken = false;
    const open = () => {
      if (isBroken) throw new Error('no');
      return { send: () => undefined, close: () => undefined };
    };
    const sinks = [{ name: 'own', about: 'Opens unless it is broken.', open }];
    await using kit = await kitWithDemo({ streams: { sinks } });
    const { rules } = kit.broker.streams;
    const seen: unknown[] = [];
    kit.broker.on('streamRule.started', ({ rule }) => seen.push(`${rule} started`));
    kit.broker.on('streamRule.stopped', ({ rule, reason }) => seen.push(`${rule} stopped: ${reason}`));
    await rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: [{ own: {} }] });
    assert.deepEqual(seen.splice(0), ['r started']);
    await rules.stop('r');
    await rules.stop('r');
    assert.deepEqual(seen.splice(0), ['r stopped: undefined']);
    isBroken = true;
    await assert.rejects(rules.start('r'));
    assert.deepEqual(seen.splice(0), ['r stopped: no.']);
    await assert.rejects(rules.create({ id: 'refused', sql: 'SELECT * FROM demo', actions: [{ own: {} }] }), /no/);
    assert.deepEqual(seen, [], 'a refused rule does not exist');
    isBroken = false;
    await rules.start('r');
    await rules.restart('r');
    assert.deepEqual(seen.splice(0), ['r started', 'r stopped: undefined', 'r started']);
    await rules.delete('r');
    assert.deepEqual(seen.splice(0), ['r stopped: undefined']);
  });

  it('restarts by its restart strategy if its sink cannot be opened', async () => {
    let left = 2;
    const sink = {
      name: 'flaky',
      about: 'Fails at first.',
      open() {
        if (left-- > 0) throw new Error('not yet');
        return { send: () => undefined, close: () => undefined };
      }
    };
    const store = memoryStore();
    {
      await using kit = await kitWithDemo({
        store,
        streams: { sinks: [{ ...sink, open: () => ({ send() {}, close() {} }) }] }
      });
      await kit.broker.streams.rules.create({
        id: 'r',
        sql: 'SELECT * FROM demo',
        actions: [{ flaky: {} }],
        options: { restartStrategy: { attempts: 3, delay: 1000, multiplier: 2, maxDelay: 30_000, jitterFactor: 0 } }
      });
    }
    await using kit = await createTestBroker({ store, leaks: 'ignore', streams: { sinks: [sink] } });
    const { rules } = kit.broker.streams;
    assert.equal((await rules.status('r')).text, 'Stopped: not yet.');
    await kit.clock.advance('1s');
    assert.equal((await rules.status('r')).text, 'Stopped: not yet.');
    await kit.clock.advance('2s');
    assert.equal((await rules.status('r')).text, 'Running');
  });

  it('stays defined and stopped with a reason while a required type is not registered', async () => {
    const store = memoryStore();
    const sink = { name: 'own', about: 'Of the app.', open: () => ({ send() {}, close() {} }) };
    {
      await using kit = await kitWithDemo({ store, streams: { sinks: [sink] } });
      await kit.broker.streams.rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: [{ own: {} }] });
    }
    await using kit = await createTestBroker({ store });
    const { streams } = kit.broker;
    assert.match((await streams.rules.status('r')).text, /^Stopped: unknown sink type own/);
    await streams.createSink(sink);
    assert.equal((await streams.rules.status('r')).text, 'Running');
  });

  it('stops with a one-sentence reason while a function that it calls does not exist', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    await streams.createFunction({
      ...{ name: 'own', kind: 'scalar', family: 'own', about: 'x', params: ['any'] },
      run: () => 1
    });
    await streams.rules.create({ id: 'r', sql: 'SELECT own(a) FROM demo', actions: NOP });
    await streams.deleteType('function', 'own');
    await assert.rejects(streams.rules.restart('r'), { code: 'SQL_INVALID' });
    const [{ status }] = await streams.rules.list();
    assert.equal(status, 'Stopped: error getting function own: not found at line 1, column 8.');
  });

  it('stops publishing if its own messages trigger it', async () => {
    await using kit = await kitWithDemo();
    const { broker } = kit;
    let count = 0;
    broker.subscribe('demo', () => void count++);
    await broker.streams.rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: [{ mqtt: { topic: 'demo' } }] });
    await broker.publish({ topic: 'demo', payload: '{"a": 1}' });
    await kit.clock.advance('1s');
    assert.ok(count > 1 && count <= 102, `${count} messages`);
  });
});

describe('The stream service', () => {
  it('stops and starts while the broker keeps running', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    await streams.rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: NOP });
    await streams.rules.create({ id: 's', sql: 'SELECT * FROM demo', actions: NOP, triggered: false });
    await streams.stop();
    assert.equal(streams.isRunning, false);
    await assert.rejects(streams.rules.list(), { code: 'STREAMS_STOPPED' });
    await streams.start();
    const statuses = (await streams.rules.list()).map(({ status }) => status);
    assert.deepEqual(statuses, ['Running', 'Stopped: canceled manually.']);
  });

  it('refuses to drop a stream that a rule uses, unless forced', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    await streams.rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: NOP });
    await assert.rejects(streams.delete('stream', 'demo'), { code: 'STREAM_IN_USE' });
    await streams.delete('stream', 'demo', { force: true });
    await assert.rejects(streams.delete('stream', 'demo'), { code: 'STREAM_NOT_FOUND' });
  });

  it('STREAM_INVALID: names the parameter if the kind of a stream is missing or unknown', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    const refusal = {
      code: 'STREAM_INVALID',
      field: 'kind',
      message: 'kind: expected "stream" or "table", got "demo"'
    };
    const kind = 'demo' as 'stream';
    await assert.rejects((streams.delete as (name: string) => Promise<void>)(kind), refusal);
    await assert.rejects((streams.get as (name: string) => Promise<unknown>)(kind), refusal);
    await assert.rejects(streams.list(kind), refusal);
    await assert.rejects(streams.list(undefined as unknown as 'stream'), { code: 'STREAM_INVALID', field: 'kind' });
  });

  it('imports its own export', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    await streams.rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: NOP });
    const ruleset = await streams.export();
    await using other = await createTestBroker();
    const done = await other.broker.streams.import(ruleset);
    assert.deepEqual(done, { streams: 1, tables: 0, rules: 1 });
    assert.deepEqual(await other.broker.streams.export(), ruleset);
  });

  it('runs a statement over sample rows, on a separate clock', async () => {
    await using kit = await kitWithDemo();
    const { rules } = kit.broker.streams;
    const sql = 'SELECT count(*) AS n, sum(a) AS total FROM demo GROUP BY TUMBLINGWINDOW(ss, 10)';
    const at = Date.parse('2026-01-01T00:00:01Z');
    const { emissions, errors } = await rules.test({ sql }, [
      { stream: 'demo', values: { a: 1 }, at },
      { stream: 'demo', values: { a: 2 }, at: at + 5000 },
      { stream: 'demo', values: { a: 4 }, at: at + 9000 }
    ]);
    assert.deepEqual(emissions, [[{ n: 2, total: 3 }], [{ n: 1, total: 4 }]]);
    assert.deepEqual(errors, []);
  });
});

describe('Stream rules and the app', () => {
  it('refuses values that are not statements, rows or functions', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    await assert.rejects(streams.create(5 as never), { code: 'STREAM_INVALID', message: /sql: expected a statement/ });
    await assert.rejects(streams.push('demo', [{ a: 1 }] as never), { code: 'ROW_INVALID' });
    const own = { name: 'own', kind: 'scalar', family: 'own', about: 'x', params: ['any'] } as const;
    for (const run of [5, async (value: number) => value])
      await assert.rejects(streams.createFunction({ ...own, run: run as never }), {
        code: 'FUNCTION_INVALID',
        message: /own\.run: expected a function/
      });
  });

  it('ends a cycle through memory topics', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    await streams.create('CREATE STREAM ring () WITH (DATASOURCE="ring", TYPE="memory")');
    let count = 0;
    const actions = [{ memory: { topic: 'ring' } }, () => void count++];
    await streams.rules.create({ id: 'ring', sql: 'SELECT * FROM ring', actions });
    await streams.push('ring', { a: 1 });
    assert.ok(count > 1 && count <= 101, `${count} rows`);
  });

  it('gives up after the attempts of the restart strategy', async () => {
    let opened = 0;
    const sink = {
      name: 'broken',
      about: 'Never opens.',
      open() {
        opened++;
        throw new Error('no');
      }
    };
    const rules = [
      {
        id: 'r',
        sql: 'SELECT * FROM demo',
        actions: [{ broken: {} }],
        options: { restartStrategy: { attempts: 2, delay: 1000, multiplier: 2, maxDelay: 30_000, jitterFactor: 0 } }
      }
    ];
    const streams = { sinks: [sink], definitions: [DEMO], rules };
    await using kit = await createTestBroker({ leaks: 'ignore', streams });
    await kit.clock.advance('1h');
    assert.equal(opened, 3);
    assert.equal((await kit.broker.streams.rules.status('r')).nextStartAt, 0);
  });

  it('lets the app define types before rules start', async () => {
    await using broker = createBroker();
    broker.streams.beforeStart(async () => {
      await broker.streams.createSink({ name: 'late', about: 'Late.', open: () => ({ send() {}, close() {} }) });
      await broker.streams.create(DEMO);
    });
    await broker.start();
    assert.deepEqual(
      (await broker.streams.list('stream')).map(({ name }) => name),
      ['demo']
    );
  });

  it('drops emissions for a function with too many pending promises', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    let calls = 0;
    const never = () => new Promise(() => void calls++);
    const options = { bufferLength: 2 };
    await streams.rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: [never], options });
    for (let a = 0; a < 5; a++) await streams.push('demo', { a });
    assert.equal(calls, 2);
    const { metrics } = await streams.rules.status('r');
    assert.equal(metrics.sink_function_0_0_exceptions_total, 3);
  });

  it('passes copies of rows to a function that changes them', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    const seen: unknown[] = [];
    const change = (rows: readonly Record<string, unknown>[]) => {
      rows[0].a = 'changed';
    };
    await streams.rules.create({ id: 'r1', sql: 'SELECT * FROM demo', actions: [change] });
    await streams.rules.create({ id: 'r2', sql: 'SELECT * FROM demo', actions: [(rows) => void seen.push(rows[0].a)] });
    await streams.push('demo', { a: 1 });
    assert.deepEqual(seen, [1]);
  });
});

describe('Changes of stream rules', () => {
  const RETRY = { restartStrategy: { attempts: 9, delay: 1000, multiplier: 1, maxDelay: 1000, jitterFactor: 0 } };
  const SQL = 'SELECT * FROM demo';

  it('keeps a rule waiting for its schedule if a change is refused', async () => {
    const sink = {
      name: 'broken',
      about: 'Never opens.',
      open() {
        throw new Error('no');
      }
    };
    const clock = new VirtualClock({ now: '2026-03-01T10:03:30Z' });
    await using kit = await kitWithDemo({ clock, streams: { sinks: [sink] } });
    const { rules } = kit.broker.streams;
    const options = { cron: '*/10 * * * *', duration: '2m' };
    await rules.create({ id: 'r', sql: SQL, actions: NOP, options });
    await assert.rejects(rules.update('r', { sql: SQL, actions: [{ broken: {} }] }), { message: 'no' });
    assert.equal((await rules.status('r')).text, 'Stopped: waiting for next schedule.');
    await kit.clock.advance('7m');
    assert.equal((await rules.status('r')).text, 'Running');
  });

  it('deletes the record of a rule that becomes temporary', async () => {
    const store = memoryStore();
    {
      await using kit = await kitWithDemo({ store });
      const { rules } = kit.broker.streams;
      await rules.create({ id: 'r', sql: SQL, actions: NOP });
      await rules.update('r', { sql: SQL, actions: NOP, temp: true });
    }
    await using kit = await createTestBroker({ store });
    assert.deepEqual(await kit.broker.streams.rules.list(), []);
  });

  it('changes nothing if one part of an import is invalid, and lets unchanged rules use replaced streams', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    await streams.rules.create({ id: 'r', sql: SQL, actions: NOP });
    const before = await streams.export();
    const other = DEMO.replace('"demo"', '"other"');
    const bad = { rules: { x: '{"sql": "SELECT * FROM nothing", "actions": [{"nop": {}}]}' } };
    await assert.rejects(streams.import({ streams: { demo: other }, tables: {}, ...bad }));
    assert.deepEqual(await streams.export(), before);
    await streams.import({ streams: { demo: other }, tables: {}, rules: before.rules });
    await kit.broker.publish({ topic: 'other', payload: '{"a": 1}' });
    assert.equal((await streams.rules.status('r')).metrics.source_demo_0_records_in_total, 1);
  });

  it('imports all valid items, and names each that has failed', async () => {
    const failing = {
      name: 'failing',
      about: 'Never opens.',
      open() {
        throw new Error('the sink cannot be opened');
      }
    };
    await using kit = await kitWithDemo({ streams: { sinks: [failing] } });
    const { streams } = kit.broker;
    const using = (sink: string) => JSON.stringify({ sql: SQL, actions: [{ [sink]: {} }] });
    const rules = { a: using('failing'), b: using('nop'), c: using('failing') };
    const other = DEMO.replaceAll('demo', 'other');
    await assert.rejects(streams.import({ streams: { other }, tables: {}, rules }), {
      code: 'RULESET_INCOMPLETE',
      message:
        'imported 1 streams, 0 tables and 1 rules, but some items failed:\nrule "a": the sink cannot be opened\nrule "c": the sink cannot be opened'
    });
    assert.deepEqual(
      (await streams.rules.list()).map(({ id }) => id),
      ['b']
    );
    assert.ok((await streams.get('stream', 'other')) !== undefined);
  });

  it('names every invalid item of an import, but at most 20', async () => {
    await using kit = await kitWithDemo();
    const rules = Object.fromEntries(Array.from({ length: 22 }, (_, at) => [`r${at}`, '{']));
    await assert.rejects(kit.broker.streams.import({ streams: {}, tables: {}, rules }), (error: Error) => {
      const lines = error.message.split('\n');
      assert.deepEqual([lines[0], lines.at(-1), lines.length], ['nothing is imported:', 'and 2 more', 22]);
      return true;
    });
  });

  it('refuses an import that is not an export, and names the expected form', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    const before = await streams.export();
    const bad: [given: unknown, message: string][] = [
      [null, 'ruleset: expected an object with streams, tables and rules, got null'],
      [undefined, 'ruleset: expected an object with streams, tables and rules, got undefined'],
      [[], 'ruleset: expected an object with streams, tables and rules, got []'],
      ['{}', 'ruleset: expected an object with streams, tables and rules, got "{}"'],
      [{ streams: 'demo' }, 'ruleset.streams: expected an object of strings by name, got "demo"'],
      [{ rules: null }, 'ruleset.rules: expected an object of strings by name, got null'],
      [{ stream: {} }, 'ruleset: expected an object with streams, tables and rules, got {"stream":{}}']
    ];
    for (const [given, message] of bad)
      await assert.rejects(streams.import(given as never), { code: 'RULESET_INVALID', message }, message);
    assert.deepEqual(await streams.import({} as never), { streams: 0, tables: 0, rules: 0 });
    assert.deepEqual(await streams.export(), before);
  });

  it('completes changes although a sink neither opens nor closes', async () => {
    const never = new Promise<never>(() => undefined);
    const types = [
      { name: 'shut', about: 'Never opens.', open: () => never },
      { name: 'stuck', about: 'Never closes.', open: () => ({ send() {}, close: () => never }) }
    ];
    await using kit = await kitWithDemo({ streams: { sinks: types } });
    const { rules } = kit.broker.streams;
    await rules.create({ id: 'stuck', sql: SQL, actions: [{ stuck: {} }] });
    const made = assert.rejects(rules.create({ id: 'shut', sql: SQL, actions: [{ shut: {} }], options: RETRY }), {
      message: 'its sources and sinks are not open after 30000 ms'
    });
    await kit.clock.advance('31s');
    await made;
    const dropped = rules.delete('stuck');
    await kit.clock.advance('11s');
    await dropped;
    assert.deepEqual(await rules.list(), []);
  });

  it('reports the errors of sinks once a minute for each sink and cause', async () => {
    let cause = 0;
    const sink = (name: string, why: () => string) => ({
      name,
      about: 'Fails.',
      open: () => ({ send: () => Promise.reject(new Error(why())), close() {} })
    });
    const sinks = [sink('first', () => `status ${cause}`), sink('second', () => 'no')];
    await using kit = await kitWithDemo({ streams: { sinks } });
    const { broker } = kit;
    const reported: string[] = [];
    broker.on('error', ({ error, during }) => reported.push(`${during}: ${error.message}`));
    await broker.streams.rules.create({ id: 'r', sql: SQL, actions: [{ first: {} }, { second: {} }] });
    const send = async (next: number) => {
      cause = next;
      await broker.publish('demo', '{"a":1}');
      await kit.clock.advance(10);
    };
    for (const status of [401, 401, 302, 401]) await send(status);
    assert.deepEqual(reported.splice(0), [
      'sink_first_0 of stream rule r: status 401',
      'sink_second_1 of stream rule r: no',
      'sink_first_0 of stream rule r: status 302'
    ]);
    for (let status = 1; status <= 50; status++) await send(status);
    assert.equal(reported.splice(0).length, 8, 'ten causes of a sink in a minute');
    await kit.clock.advance('61s');
    await send(51);
    assert.deepEqual(reported, ['sink_first_0 of stream rule r: status 51', 'sink_second_1 of stream rule r: no']);
  });

  it('knows the streams of rules that have never run', async () => {
    await using kit = await kitWithDemo();
    const { streams } = kit.broker;
    await streams.rules.create({ id: 'r', sql: SQL, actions: NOP, triggered: false });
    await assert.rejects(streams.delete('stream', 'demo'), { code: 'STREAM_IN_USE' });
  });
});
