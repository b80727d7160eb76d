import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryStore } from '../../lib/index.ts';
import { AppSink } from './app-sink.ts';
import { ruleKit } from './support.ts';

const SQL = 'SELECT payload.n as n FROM "a"';

describe('the causes of messages that sinks of broker rules publish', () => {
  it('tells a broker rule from a stream rule with the same id, which may publish because of it', async () => {
    for (const sink of ['mqtt', 'memory']) {
      await using kit = await ruleKit();
      const { rules, streams } = kit.broker;
      const source = sink === 'mqtt' ? 'TYPE="mqtt", DATASOURCE="b"' : 'TYPE="memory", DATASOURCE="b"';
      await streams.create(`CREATE STREAM s () WITH (${source}, FORMAT="json")`);
      await streams.rules.create({ id: 'r', sql: 'SELECT n FROM s', actions: [{ mqtt: { topic: 'c' } }] });
      await rules.create({ id: 'r', sql: SQL, actions: [{ name: sink, params: { topic: 'b' } }] });
      const received: string[] = [];
      kit.broker.subscribe('c', ({ payload }) => void received.push(String(payload)));
      await kit.broker.publish('a', '{"n":1}');
      await kit.clock.settle();
      assert.deepEqual(received, ['[{"n":1}]'], sink);
    }
  });

  it('publishes at once, although a stream rule with the same id holds its messages until its checkpoint', async () => {
    await using kit = await ruleKit({ store: memoryStore() });
    const { rules, streams } = kit.broker;
    await streams.create('CREATE STREAM s () WITH (TYPE="mqtt", DATASOURCE="x", FORMAT="json")');
    const actions = [{ mqtt: { topic: 'y' } }];
    await streams.rules.create({ id: 'r', sql: 'SELECT n FROM s', actions, options: { qos: 2 } });
    await rules.create({ id: 'r', sql: SQL, actions: [{ name: 'mqtt', params: { topic: 'b' } }] });
    const received: unknown[] = [];
    const take = (output: unknown) => received.push(output);
    await rules.create({ sql: 'SELECT clientid, payload FROM "b"', actions: [take] });
    await kit.broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    assert.deepEqual(received, [{ clientid: 'r', payload: '{"n":1}' }]);
  });
});

describe('the outbox of a sink of a broker rule', () => {
  it('sends for its own rule if a rule of the options has an action with the same id', async () => {
    const [first, second] = ['app', 'app_sink'].map((name) => Object.assign(new AppSink(), { name }));
    const rule = (id: string, topic: string, name: string) => ({
      ...{ id, sql: `SELECT payload.n as n FROM "${topic}"` },
      actions: [{ name, params: { topic } }]
    });
    await using kit = await ruleKit({
      streams: { sinks: [first, second] },
      rules: { rules: [rule('sink_x', 'a', 'app'), rule('x', 'b', 'app_sink')] }
    });
    const ids = (await kit.broker.rules.list()).map(({ actions }) => actions[0].id);
    assert.deepEqual(ids, ['app_sink_x_1', 'app_sink_x_1']);
    await kit.broker.publish('a', '{"n":1}');
    await kit.broker.publish('b', '{"n":2}');
    await kit.clock.settle();
    assert.deepEqual([first.sent, second.sent], [['a: {"n":1}'], ['b: {"n":2}']]);
  });

  it('continues only when the next action is ready, if its rule is enabled after a restart', async () => {
    const [first, second] = ['first', 'second'].map((name) => Object.assign(new AppSink(), { name }));
    const options = { store: memoryStore(), streams: { sinks: [first, second] } };
    first.answer = () => {
      throw new Error('down');
    };
    {
      await using kit = await ruleKit(options);
      const actions = [first, second].map(({ name }) => ({ name, params: { topic: name, enableCache: true } }));
      await kit.broker.rules.create({ id: 'r', sql: SQL, actions, onActionFailed: 'stop' });
      await kit.broker.publish('a', '{"n":1}', { qos: 1 });
      await kit.clock.settle();
      await kit.broker.rules.update('r', { isEnabled: false });
    }
    first.answer = () => undefined;
    const open = second.open.bind(second);
    second.open = async (setup) => {
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      return open(setup);
    };
    await using kit = await ruleKit(options);
    await kit.broker.rules.update('r', { isEnabled: true });
    await kit.clock.advance('5s');
    assert.deepEqual([first.sent, second.sent], [['first: {"n":1}'], ['second: {"n":1}']]);
    const counters = (await kit.broker.rules.get('r'))?.actions.map((action) => action.counters);
    assert.deepEqual(counters, [
      { taken: 1, success: 1, failed: 0 },
      { taken: 1, success: 1, failed: 0 }
    ]);
  });

  it('sends for a rule of the options whose id and sink have the longest names', async () => {
    const names = ['a'.repeat(64), 'b'.repeat(64)];
    const sinks = names.map((name) => Object.assign(new AppSink(), { name }));
    const actions = names.map((name) => ({ name, params: { topic: 't', enableCache: true } }));
    const options = {
      store: memoryStore(),
      streams: { sinks },
      rules: { rules: [{ id: 'r'.repeat(64), sql: SQL, actions }] }
    };
    for (const sink of sinks)
      sink.answer = () => {
        throw new Error('down');
      };
    {
      await using kit = await ruleKit(options);
      const rule = await kit.broker.rules.get('r'.repeat(64));
      assert.deepEqual([rule?.state, rule?.reason], ['connected', undefined]);
      await kit.broker.publish('a', '{"n":1}', { qos: 1 });
      assert.equal(kit.broker.outboxes.size, 2);
    }
    for (const sink of sinks) sink.answer = () => undefined;
    await using kit = await ruleKit(options);
    await kit.clock.settle();
    assert.deepEqual(
      sinks.map(({ sent }) => sent),
      [['t: {"n":1}'], ['t: {"n":1}']]
    );
  });

  it('names the action and its rule in alarms and errors', async () => {
    const sink = new AppSink();
    sink.answer = () => {
      throw new Error('no answer');
    };
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { broker } = kit;
    const { actions } = await broker.rules.create({
      id: 'r',
      sql: SQL,
      actions: [{ name: 'app_sink', params: { topic: 't' } }]
    });
    await broker.publish('a', '{"n":1}');
    await kit.clock.advance('1m');
    const label = `action ${actions[0].id} of rule r`;
    assert.deepEqual(
      broker.alarms.present().map(({ id, title }) => [id, title]),
      [[`outbox_failing:${label}`, `${label}: deliveries fail`]]
    );
  });
});
