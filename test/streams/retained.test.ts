import assert from 'node:assert/strict';
import { createServer, connect as tcp } from 'node:net';
import { describe, it } from 'node:test';
import { type Broker, createBroker, type MessageInput, memoryStore } from 'embermq';
import { listen } from 'embermq/net';
import { createTestBroker } from 'embermq/testing';
import { mqttSource } from '../../adapters/streams/mqtt/index.ts';
import { RetainedStore } from '../../lib/retained/retained-store.ts';
import { rawClient } from '../support/raw-client.ts';
import { publish } from '../support/wire.ts';

const STREAM = 'CREATE STREAM demo () WITH (DATASOURCE="a/#", FORMAT="json")';
const SELECT = 'SELECT n, meta(topic) AS topic, meta(retain) AS retain FROM demo';

type Rows = readonly Record<string, unknown>[];

async function retain(broker: Broker, ...messages: [topic: string, payload: string][]) {
  for (const [topic, payload] of messages) await broker.publish({ topic, payload, retain: true, qos: 1 });
}

describe('retained messages for stream rules', () => {
  it('passes retained messages to a starting rule, in the order of their publication, before other messages', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await retain(kit.broker, ['a/2', '{"n":1}'], ['a/1', '{"n":2}'], ['b', '{"n":3}'], ['a/3', '{"n":4}']);
    await retain(kit.broker, ['a/3', '']); // deletes it
    await streams.create(STREAM);
    const got: unknown[] = [];
    await streams.rules.create({ sql: SELECT, actions: [(rows: Rows) => void got.push(...rows)] });
    await kit.broker.publish({ topic: 'a/2', payload: '{"n":5}', retain: true });
    await kit.clock.settle();
    assert.deepEqual(got, [
      { n: 1, topic: 'a/2', retain: true },
      { n: 2, topic: 'a/1', retain: true },
      { n: 5, topic: 'a/2', retain: false }
    ]);
  });

  it('passes retained messages to each rule once at its start, and to no running rule', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await retain(kit.broker, ['a/1', '{"n":1}']);
    await streams.create(STREAM);
    const got: Record<string, unknown[]> = { one: [], two: [] };
    for (const id of ['one', 'two']) {
      await streams.rules.create({ id, sql: SELECT, actions: [(rows: Rows) => void got[id].push(...rows)] });
      await kit.clock.settle();
    }
    assert.deepEqual([got.one.length, got.two.length], [1, 1]);
    await streams.rules.restart('two');
    await kit.clock.settle();
    assert.deepEqual([got.one.length, got.two.length], [1, 2]);
  });

  it('excludes retained messages of $SYS from a wildcard, but not from a filter that names it', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    const got: Record<string, unknown[]> = {};
    await kit.broker.publish({ topic: 'x', payload: '{"n":1}', retain: true });
    for (const [name, filter] of [
      ['every', '#'],
      ['system', '$SYS/#']
    ]) {
      got[name] = [];
      await streams.create(`CREATE STREAM ${name} () WITH (DATASOURCE="${filter}", FORMAT="binary")`);
      const sql = `SELECT meta(topic) AS topic FROM ${name}`;
      await streams.rules.create({ sql, actions: [(rows: Rows) => void got[name].push(...rows)] });
    }
    await kit.clock.settle();
    assert.deepEqual(got.every, [{ topic: 'x' }]);
    assert.ok(got.system.length > 0);
  });

  it('searches for retained messages and passes them on in slices, each topic once, while others are published', async (t) => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const count = 20_000;
    for (let n = 0; n < count; n++) void broker.publish({ topic: `a/${n}`, payload: `{"n":${n}}`, retain: true });
    await kit.clock.settle();
    let turn = 0;
    const compared: number[] = [];
    const passed: number[] = [];
    const note = (counts: number[]) => (counts[turn] = (counts[turn] ?? 0) + 1);
    const iterate = RetainedStore.prototype[Symbol.iterator];
    RetainedStore.prototype[Symbol.iterator] = function* (this: RetainedStore<unknown>) {
      for (const entry of iterate.call(this)) {
        note(compared);
        yield entry;
      }
    };
    t.after(() => (RetainedStore.prototype[Symbol.iterator] = iterate));
    await broker.streams.create(STREAM);
    const got: { n: number; topic: string; retain: boolean }[] = [];
    const act = (rows: Rows) => {
      note(passed);
      got.push(...(rows as typeof got));
    };
    const isDone = () => got.some(({ n }) => n === -4);
    const change = (topic: string, n: number) =>
      broker.publish({ topic, payload: n === 0 ? '' : `{"n":${n}}`, retain: true });
    await broker.streams.rules.create({ sql: SELECT, actions: [act] });
    void change('a/9000', -1); // during the search
    while (got.length === 0) await new Promise((resolve) => setImmediate(resolve, turn++));
    void change('a/9001', -2);
    void change('a/9002', 0);
    void change('a/0', -3);
    void change('a/new', -4);
    while (!isDone()) await new Promise((resolve) => setImmediate(resolve, turn++));
    const total = compared.reduce((sum, each) => sum + each);
    assert.ok(total >= count && total < count + 100, `all are compared once, and those of $SYS: ${total}`);
    assert.ok(Math.max(...compared.filter(Boolean)) <= 4_000, `${compared}`);
    assert.ok(Math.max(...passed.filter(Boolean)) <= 500, `${passed}`);
    const retained = got.filter(({ retain }) => retain);
    const changed = new Set([9000, 9001, 9002]);
    assert.deepEqual(
      retained.map(({ n }) => n),
      Array.from({ length: count }, (_, n) => n).filter((n) => !changed.has(n))
    );
    assert.deepEqual(
      got.slice(retained.length).map(({ n }) => n),
      [-1, -2, undefined, -3, -4],
      'the empty payload is an error, as from a client'
    );
  });

  it('withholds retained messages from rules, tables and handlers of the app with recheck when their publisher has lost the right', async () => {
    await using kit = await createTestBroker({ leakCheck: false, allowAnonymous: true, retainedRights: 'recheck' });
    const { broker } = kit;
    const meter = await rawClient(broker, { clientId: 'meter' });
    for (const topic of ['a/1', 'a/2']) meter.send(publish(topic, '{"n":1}', { retain: true }));
    await meter.rest();
    await retain(broker, ['a/3', '{"n":3}']);
    await broker.access.acl.set({ clientId: 'meter', topic: 'a/1', access: 'deny', action: 'publish' });
    await broker.streams.create(STREAM);
    await broker.streams.create(
      'CREATE TABLE s () WITH (DATASOURCE="a/#", FORMAT="json", TYPE="mqtt", RETAIN_SIZE="9")'
    );
    await broker.streams.create('CREATE STREAM x () WITH (DATASOURCE="x", FORMAT="json")');
    const got: Record<string, string[]> = { rule: [], table: [], app: [] };
    const keep = (name: string) => (rows: Rows) => void got[name].push(...rows.map(({ topic }) => String(topic)));
    await broker.streams.rules.create({ sql: SELECT, actions: [keep('rule')] });
    const join = 'SELECT meta(s.topic) AS topic FROM x INNER JOIN s ON s.n > x.n';
    await broker.streams.rules.create({ sql: join, actions: [keep('table')] });
    broker.subscribe('a/#', ({ topic }) => void got.app.push(topic));
    await kit.clock.settle();
    await broker.publish('x', '{"n":0}');
    await kit.clock.settle();
    const expected = ['a/2', 'a/3'];
    assert.deepEqual(got, { rule: expected, table: expected, app: expected });
  });

  it('restores a table of settings after a restart, before rows of streams are joined with it', async () => {
    const store = memoryStore();
    const got: unknown[] = [];
    for (const round of [1, 2]) {
      const broker = createBroker({ store });
      await broker.start();
      const { streams } = broker;
      if (round === 1) {
        await retain(broker, ['set/1', '{"dev":1,"limit":20}'], ['set/2', '{"dev":2,"limit":30}']);
        await streams.create('CREATE STREAM t () WITH (DATASOURCE="t/#", FORMAT="json")');
        await streams.create(
          'CREATE TABLE s () WITH (DATASOURCE="set/#", FORMAT="json", TYPE="mqtt", RETAIN_SIZE="10")'
        );
        const sql = 'SELECT t.dev, s.limit FROM t INNER JOIN s ON t.dev = s.dev';
        await streams.rules.create({ id: 'r', sql, actions: [{ mqtt: { topic: 'out', sendSingle: true } }] });
      }
      broker.subscribe('out', ({ payload }) => void got.push(JSON.parse(String(payload))));
      await broker.publish('t/2', `{"dev":${round}}`);
      await broker.stop();
    }
    assert.deepEqual(got, [
      { dev: 1, limit: 20 },
      { dev: 2, limit: 30 }
    ]);
  });

  it('passes retained messages at every start to a rule without checkpoints, but not to one that continues from a checkpoint', async () => {
    const store = memoryStore();
    const got: string[] = [];
    for (const round of [1, 2]) {
      await using kit = await createTestBroker({ store, leaks: 'ignore' });
      const { broker } = kit;
      broker.subscribe('out/+', ({ topic, payload }) => void got.push(`${topic} ${payload}`));
      if (round === 1) {
        await retain(broker, ['a/1', '{"n":1}']);
        await broker.streams.create(STREAM);
        for (const qos of [0, 1, 2] as const)
          await broker.streams.rules.create({
            id: `r${qos}`,
            sql: 'SELECT n FROM demo',
            actions: [{ mqtt: { topic: `out/${qos}`, sendSingle: true } }],
            options: { qos }
          });
      }
      await kit.clock.settle();
      await kit.clock.advance('2s'); // the checkpoints of qos 2
    }
    assert.deepEqual(got.sort(), ['out/0 {"n":1}', 'out/0 {"n":1}', 'out/1 {"n":1}', 'out/2 {"n":1}']);
  });

  it('passes retained messages once to a rule that is updated, because it starts again', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await retain(kit.broker, ['a/1', '{"n":1}']);
    await streams.create(STREAM);
    const got: unknown[] = [];
    const actions = [(rows: Rows) => void got.push(...rows)];
    await streams.rules.create({ id: 'r', sql: 'SELECT n FROM demo', actions });
    await kit.clock.settle();
    await streams.rules.update('r', { sql: 'SELECT n + 1 AS n FROM demo', actions });
    await kit.clock.settle();
    assert.deepEqual(got, [{ n: 1 }, { n: 2 }]);
  });
});

describe('DATASOURCE with several topics', () => {
  it('reads all topics of DATASOURCE, each message once, including retained messages', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await retain(kit.broker, ['b/1', '{"n":1}'], ['a/1', '{"n":2}'], ['c', '{"n":3}']);
    await streams.create('CREATE STREAM demo () WITH (DATASOURCE="a/#, b/1,a/1", FORMAT="json")');
    const got: unknown[] = [];
    await streams.rules.create({ sql: 'SELECT n FROM demo', actions: [(rows: Rows) => void got.push(...rows)] });
    await kit.clock.settle();
    for (const topic of ['a/1', 'b/1', 'b/2', 'a/2']) await kit.broker.publish(topic, `{"n":"${topic}"}`);
    assert.deepEqual(got, [{ n: 1 }, { n: 2 }, { n: 'a/1' }, { n: 'b/1' }, { n: 'a/2' }]);
  });

  it('refuses a DATASOURCE with an empty or invalid topic filter', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    for (const [name, datasource, fault] of [
      ['x', 'a,,b', /between its commas is empty/],
      ['y', 'a,b/#/c', /"#"/],
      ['z', 'a,$share/g/b', /use "b"/]
    ] as const) {
      await streams.create(`CREATE STREAM ${name} () WITH (DATASOURCE="${datasource}", FORMAT="json")`);
      await assert.rejects(streams.rules.create({ sql: `SELECT * FROM ${name}`, actions: [{ nop: {} }] }), fault);
    }
  });
});

describe('a stream of this broker, compared with a connection of a client to it', () => {
  /** Messages that are published before and while the rules run. */
  const CASES: Readonly<
    Record<string, { filter?: string; before?: MessageInput[]; live?: MessageInput[]; denied?: string }>
  > = {
    payloads: {
      live: [
        { topic: 'a/1', payload: '{"n":1}' },
        { topic: 'a/1', payload: '{"n":[1,{"b":"é"}]}' }
      ]
    },
    'several rows in a payload': { live: [{ topic: 'a/1', payload: '[{"n":1},{"n":2}]' }] },
    'an empty payload': {
      live: [
        { topic: 'a/1', payload: '' },
        { topic: 'a/1', payload: '{"n":1}' }
      ]
    },
    qos: { live: ([0, 1, 2] as const).map((qos) => ({ topic: 'a/1', payload: `{"n":${qos}}`, qos })) },
    'the order of topics': { live: ['a/2', 'a/1', 'a/2'].map((topic, n) => ({ topic, payload: `{"n":${n}}` })) },
    wildcards: { filter: '+/x/#', live: ['a/x', 'a/x/y', 'a/y', 'x'].map((topic) => ({ topic, payload: '{"n":1}' })) },
    'overlapping filters': {
      filter: 'a/#,a/1,b',
      live: ['a/1', 'b', 'c'].map((topic) => ({ topic, payload: '{"n":1}' }))
    },
    'retained messages': {
      before: ['a/2', 'a/1'].map((topic) => ({ topic, payload: '{"n":1}', retain: true, qos: 1 })),
      live: [{ topic: 'a/1', payload: '{"n":2}', retain: true }]
    },
    'a retained message that is deleted': {
      before: [
        { topic: 'a/1', payload: '{"n":1}', retain: true },
        { topic: 'a/1', payload: '', retain: true }
      ],
      live: [{ topic: 'a/1', payload: '{"n":2}' }]
    },
    'retained messages of a client that may no longer publish them': { denied: 'a/1' },
    'retained messages of $SYS': { filter: '#', before: [{ topic: 'a/1', payload: '{"n":1}', retain: true }] },
    properties: {
      live: [
        {
          topic: 'a/1',
          payload: '{"n":1}',
          properties: { contentType: 'json', messageExpiryInterval: 100, userProperties: [['unit', 'C']] }
        }
      ]
    }
  };

  for (const [title, { filter = 'a/#', before = [], live = [], denied }] of Object.entries(CASES))
    it(`emits the same rows as a client receives: ${title}`, { timeout: 30_000 }, async () => {
      const sourceConfig = { mqtt: { far: { server: '', protocolVersion: '5', qos: 2 } } };
      const broker = createBroker({ retainedRights: 'recheck', streams: { sources: [mqttSource()], sourceConfig } });
      const listener = listen(broker, 0);
      await broker.start();
      // a port that is not one of the listeners of the broker
      const proxy = createServer((socket) => {
        const there = tcp((listener.address as { port: number }).port, '127.0.0.1');
        socket.pipe(there).pipe(socket);
        for (const end of [socket, there]) end.on('error', () => undefined);
      });
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
      sourceConfig.mqtt.far.server = `tcp://127.0.0.1:${(proxy.address() as { port: number }).port}`;
      try {
        for (const message of before) await broker.publish(message);
        if (denied !== undefined) {
          const meter = await rawClient(broker, { clientId: 'meter' });
          for (const topic of [denied, 'a/2']) meter.send(publish(topic, '{"n":1}', { retain: true }));
          await meter.rest();
          meter.stream.destroy();
          await broker.access.acl.set({ clientId: 'meter', topic: denied, access: 'deny', action: 'publish' });
        }
        const got: Record<string, unknown[]> = { near: [], far: [] };
        const { streams } = broker;
        for (const name of ['near', 'far']) {
          const key = name === 'far' ? ', CONF_KEY="far"' : '';
          await streams.create(`CREATE STREAM ${name} () WITH (DATASOURCE="${filter}", FORMAT="json"${key})`);
          const sql = `SELECT n, meta(topic) AS topic, meta(qos) AS qos, meta(retain) AS retain, meta(properties) AS properties FROM ${name}`;
          await streams.rules.create({ id: name, sql, actions: [(rows: Rows) => void got[name].push(...rows)] });
        }
        const isConnected = async () =>
          (await streams.rules.status('far')).metrics.source_far_0_connection_status === 1;
        while (!(await isConnected())) await new Promise(setImmediate);
        for (const message of live) await broker.publish(message);
        const last = { topic: filter.includes('x') ? 'end/x' : 'a/end', payload: '{"n":"end"}' };
        await broker.publish(last);
        const isDone = (rows: unknown[]) => rows.some((row) => (row as { n?: unknown }).n === 'end');
        while (!isDone(got.far) || !isDone(got.near)) await new Promise(setImmediate);
        const seen = (rows: unknown[]) =>
          rows.map((row) => {
            const { error, ...others } = row as { error?: string };
            return error === undefined ? others : { error: true };
          });
        assert.deepEqual(seen(got.near), seen(got.far));
        assert.ok(got.near.length > 0);
      } finally {
        await broker.stop();
        await new Promise((resolve) => proxy.close(resolve));
      }
    });
});
