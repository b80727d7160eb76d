import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileSink } from '../../adapters/streams/file/index.ts';
import { restSink } from '../../adapters/streams/http/index.ts';
import { mqttSink } from '../../adapters/streams/mqtt/index.ts';
import { protobufFormat } from '../../adapters/streams/protobuf/index.ts';
import { sqlSink } from '../../adapters/streams/sql/index.ts';
import type { SinkType } from '../../lib/adapter.ts';
import { type Broker, createBroker, memoryStore, SendError } from '../../lib/index.ts';
import { Mosquitto, withMosquitto } from '../bridge/mosquitto.ts';
import { DATABASES } from '../streams/sql-kit.ts';
import { until } from '../support/until.ts';
import { Receiver } from '../webhook/receiver.ts';
import { AppSink, unreachableSink } from './app-sink.ts';
import { actionKind, ruleKit } from './support.ts';

const SQL = 'SELECT payload.n as n, clientid FROM "a/#"';

/** The counters of the first action of a rule. */
async function countersOf(broker: Broker, id = 'r') {
  return (await broker.rules.get(id))?.actions[0].counters;
}

describe('an action that names a sink of streams', () => {
  it('sends each output to the sink, with its templates filled in, and counts it', async () => {
    const sink = new AppSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { broker } = kit;
    const params = { topic: 'out/{{.clientid}}', dataTemplate: '{"n":{{.n}}}' };
    await broker.rules.create({ id: 'r', sql: SQL, actions: [{ name: 'app_sink', params }] });
    const client = await kit.connect({ clientId: 'c' });
    for (const n of [1, 2]) await client.publish('a/b', `{"n":${n}}`);
    await until(() => sink.sent.length === 2);
    assert.deepEqual(sink.sent, ['out/c: {"n":1}', 'out/c: {"n":2}']);
    assert.deepEqual(await countersOf(broker), { taken: 2, success: 2, failed: 0 });
    assert.equal(await broker.rules.delete('r'), true);
    await until(() => sink.closed === 1);
    assert.deepEqual([sink.opened, broker.outboxes.size], [1, 0]);
  });

  it('sends an output again after a failure, and runs the fallbacks after a final one', async () => {
    const sink = new AppSink();
    const failed: unknown[] = [];
    let fault: Error | undefined = new Error('not now');
    sink.answer = () => {
      if (fault !== undefined) throw fault;
    };
    await using kit = await ruleKit({
      streams: { sinks: [sink] },
      rules: { actions: [actionKind('note', (output) => failed.push(output))] }
    });
    const { broker } = kit;
    const actions = [{ name: 'app_sink', params: { topic: 't' }, fallbacks: ['note'] }];
    await broker.rules.create({ id: 'r', sql: 'SELECT payload.n as n FROM "a"', actions });
    await broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    assert.deepEqual([sink.sent, await countersOf(broker)], [[], { taken: 1, success: 0, failed: 0 }]);
    const [action] = (await broker.rules.get('r'))?.actions ?? [];
    assert.deepEqual([action.size, action.fallbacks[0].size], [1, undefined]);
    assert.deepEqual([action.lastError?.message, action.fallbacks[0].lastError], ['not now', undefined]);
    fault = undefined;
    await kit.clock.advance('1s');
    assert.deepEqual([sink.sent, failed], [['t: {"n":1}'], []]);
    assert.equal((await broker.rules.get('r'))?.actions[0].lastError, undefined);
    assert.equal((await broker.rules.get('r'))?.actions[0].size, 0);
    fault = new SendError('never', { isFinal: true });
    await broker.publish('a', '{"n":2}');
    await kit.clock.settle();
    assert.deepEqual(failed, [{ n: 2 }]);
    assert.deepEqual(await countersOf(broker), { taken: 2, success: 1, failed: 1 });
  });

  it('keeps its queue while a change of the rule keeps the action', async () => {
    const sink = new AppSink();
    let isDown = true;
    sink.answer = () => {
      if (isDown) throw new Error('down');
    };
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { broker } = kit;
    const actions = [{ name: 'app_sink', params: { topic: 't' } }];
    await broker.rules.create({ id: 'r', sql: 'SELECT payload FROM "a"', actions });
    await broker.publish('a', '1');
    await kit.clock.settle();
    await broker.rules.update('r', { onActionFailed: 'stop' });
    isDown = false;
    await kit.clock.advance('1s');
    assert.deepEqual([sink.sent.length, sink.opened, sink.closed], [1, 1, 0]);
    assert.deepEqual(await countersOf(broker), { taken: 1, success: 1, failed: 0 });
  });

  it('sends persisted outputs after a restart with enableCache, and drops those of a deleted rule', async () => {
    const sink = unreachableSink();
    const options = { store: memoryStore(), streams: { sinks: [sink] } };
    const actions = [{ name: 'app_sink', params: { topic: 't/{{.n}}', enableCache: true } }];
    {
      await using kit = await ruleKit(options);
      for (const id of ['r', 'gone'])
        await kit.broker.rules.create({ id, sql: 'SELECT payload.n as n FROM "a"', actions });
      await kit.broker.publish('a', '{"n":1}', { qos: 1 });
      await kit.broker.rules.delete('gone');
      assert.equal(kit.broker.outboxes.size, 1);
    }
    assert.deepEqual([sink.sent, sink.opened, sink.closed], [[], 2, 2]);
    sink.answer = () => undefined;
    await using kit = await ruleKit(options);
    await until(() => sink.sent.length === 1);
    assert.deepEqual(sink.sent, ['t/1: {"n":1}']);
    assert.deepEqual(await countersOf(kit.broker), { taken: 1, success: 1, failed: 0 });
  });

  it('reports the outputs that still waited for an action of another type at a restart', async () => {
    const sink = unreachableSink();
    const options = { store: memoryStore(), streams: { sinks: [sink] } };
    const actions = [{ name: 'app_sink', params: { topic: 't', enableCache: true } }];
    {
      await using kit = await ruleKit(options);
      await kit.broker.rules.create({ id: 'r', sql: 'SELECT payload FROM "a"', actions });
      await kit.broker.publish('a', '1', { qos: 1 });
      await kit.broker.rules.update('r', { actions: [{ name: 'nop' }] });
    }
    await using broker = createBroker(options);
    const errors: string[] = [];
    broker.on('error', ({ error }) => errors.push(error.message));
    await broker.start();
    assert.match(errors.join(), /^outputs dropped because their action was changed before the restart: 1, r\/\S+$/);
    assert.equal(broker.outboxes.size, 0);
  });

  it('opens the sink again after the broker was stopped and started', async () => {
    const sink = new AppSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { broker } = kit;
    const actions = [{ name: 'app_sink', params: { topic: 't' } }];
    await broker.rules.create({ id: 'r', sql: 'SELECT payload FROM "a"', actions });
    await broker.stop();
    assert.deepEqual([sink.opened, sink.closed], [1, 1]);
    await broker.start();
    await broker.publish('a', '1');
    await until(() => sink.sent.length === 1);
    assert.deepEqual([sink.opened, sink.closed], [2, 1]);
  });

  it('refuses an unknown name, parameters that the sink does not know, and those without effect', async () => {
    await using kit = await ruleKit({ streams: { sinks: [new AppSink()] } });
    const { rules } = kit.broker;
    const create = (name: string, params: object) =>
      rules.create({ sql: SQL, actions: [{ name, params: params as Record<string, unknown> }] });
    await assert.rejects(create('kafka', {}), {
      code: 'ACTION_NOT_FOUND',
      message: /unknown action "kafka"; use one of inspect, republish, do_nothing, app_sink, log, memory, mqtt, nop$/
    });
    await assert.rejects(create('app_sinc', {}), { message: 'unknown action "app_sinc"; did you mean "app_sink"?' });
    await assert.rejects(create('app_sink', {}), { code: 'PARAM_REQUIRED', field: 'topic' });
    await assert.rejects(create('app_sink', { topic: 't', level: 6 }), { code: 'PARAM_INVALID', field: 'level' });
    await assert.rejects(create('app_sink', { topic: 't', encryption: 'aes' }), {
      message: 'the action "app_sink": the parameter "encryption" must be one of "", none, got "aes"'
    });
    await assert.rejects(create('app_sink', { topic: 'http://******@h' }), {
      message: /in a change, got "http:\/\/\*+@h"$/
    });
    await assert.rejects(create('app_sink', { topic: 't', token: '******' }), { message: /in a change$/ });
    await assert.rejects(create('app_sink', { topic: '{{.x' }), { code: 'PARAM_INVALID', field: 'topic' });
    await assert.rejects(create('app_sink', { topic: 't', tokn: 'x' }), {
      code: 'PARAM_INVALID',
      message: /"token"\?/
    });
    await assert.rejects(create('app_sink', { topic: 't', batchSize: 2 }), {
      code: 'PARAM_INVALID',
      message: /the property batchSize has no effect in an action of a broker rule; leave it out/
    });
  });

  it('matches the names of parameters without regard to case, as in stream rules', async () => {
    const sink = new AppSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { broker } = kit;
    const create = (params: object) =>
      broker.rules.create({ id: 'r', sql: SQL, actions: [{ name: 'app_sink', params: params as never }] });
    await assert.rejects(create({ TOPIC: 't', LEVEL: 6 }), { code: 'PARAM_INVALID', field: 'level' });
    await assert.rejects(create({ TOPIC: 't', SENDSINGLE: false }), { message: /SENDSINGLE has no effect/ });
    await assert.rejects(create({ TOPIC: 't', Topic: 'u' }), {
      code: 'PARAM_INVALID',
      message: /"TOPIC" and "Topic" are the same property; remove one of them/
    });
    await create({ TOPIC: 't', Token: 's3cret', dataTEMPLATE: '{{.n}}' });
    assert.deepEqual(sink.tokens, ['s3cret']);
    const [{ params }] = (await broker.rules.get('r'))!.actions;
    assert.deepEqual(params, { TOPIC: 't', Token: '******', dataTEMPLATE: '{{.n}}' });
    await broker.publish('a/b', '{"n":1}');
    await until(() => sink.sent.length === 1);
    assert.deepEqual(sink.sent, ['t: 1']);
  });

  it('masks secrets, and keeps them when a change sends them back', async () => {
    const sink = new AppSink();
    const open: SinkType = {
      name: 'open_sink',
      about: 'Without properties.',
      open: () => sink.open({ properties: {} } as never)
    };
    await using kit = await ruleKit({ streams: { sinks: [sink, open] } });
    const { rules } = kit.broker;
    const actions = [
      { name: 'app_sink', params: { topic: 't', token: 'secret' } },
      { name: 'open_sink', params: { anything: 'shown', apiToken: 'a secret' } }
    ];
    const created = await rules.create({ id: 'r', sql: SQL, actions });
    const shown = created.actions.map(({ name, params }) => ({ name, params: { ...params } }));
    assert.deepEqual(shown, [
      { name: 'app_sink', params: { topic: 't', token: '******' } },
      { name: 'open_sink', params: { anything: 'shown', apiToken: '******' } }
    ]);
    const [first, ...others] = shown;
    await rules.update('r', { actions: [{ ...first, params: { ...first.params, topic: 'other' } }, ...others] });
    assert.deepEqual(sink.tokens, ['secret', undefined, 'secret']);
    await rules.update('r', { isEnabled: false });
    assert.equal((await rules.get('r'))?.actions[0].params.token, '******');
  });

  it('gives changed actions the secrets of the actions with the same values, wherever they are', async () => {
    const sink = new AppSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { rules } = kit.broker;
    const action = (topic: string, token: string, level = 3) => ({ name: 'app_sink', params: { topic, token, level } });
    const first = action('a', 'of a');
    const second = { ...action('b', 'of b'), fallbacks: [action('c', 'of c'), action('d', 'of d')] };
    await rules.create({ id: 'r', sql: SQL, actions: [first, second] });
    sink.tokens.length = 0;
    const fallbacks = [action('d', '******', 1), action('c', '******', 1)];
    await rules.update('r', { actions: [{ ...action('b', '******', 1), fallbacks }, action('a', '******', 1)] });
    assert.deepEqual(sink.tokens.splice(0), ['of b', 'of d', 'of c', 'of a']);
    await rules.update('r', { actions: [action('b', '******', 2)] });
    assert.deepEqual(sink.tokens.splice(0), ['of b']);
    await rules.update('r', { actions: [action('other', '******')] });
    assert.deepEqual(sink.tokens.splice(0), ['of b']);
    await rules.update('r', { actions: [action('a', 'one'), action('a', 'two')] });
    const several = { actions: [action('a', '******', 1), action('new', 'x'), action('a', 'y')] };
    await assert.rejects(rules.update('r', several), { code: 'PARAM_INVALID', field: 'token' });
  });

  it('shows the parameters of a disabled rule after a restart, and keeps action and queue when they are sent back', async () => {
    const sink = unreachableSink();
    const options = { store: memoryStore(), streams: { sinks: [sink] } };
    const params = { topic: 't', token: 'secret', enableCache: true };
    {
      await using kit = await ruleKit(options);
      await kit.broker.rules.create({ id: 'r', sql: SQL, actions: [{ name: 'app_sink', params }] });
      await kit.broker.publish('a/b', '{"n":1}', { qos: 1 });
      await kit.clock.settle();
      await kit.broker.rules.update('r', { isEnabled: false });
    }
    for (const show of ['get', 'list', 'update'] as const) {
      await using kit = await ruleKit(options);
      const { rules } = kit.broker;
      const shown = { list: () => rules.list().then(([rule]) => rule), get: () => rules.get('r') };
      const change = { actions: [{ name: 'app_sink', params: { ...params, token: '******' } }] };
      const before = show === 'update' ? await rules.update('r', change) : await shown[show]();
      assert.deepEqual({ ...before?.actions[0].params }, change.actions[0].params);
      assert.equal((await rules.update('r', change)).actions[0].id, before?.actions[0].id);
      assert.equal(kit.broker.outboxes.kept()[0].size, 1);
    }
  });

  it('refuses ****** that stands for no current secret, at every depth and for names that no table lists', async () => {
    const sink = new AppSink();
    const open: SinkType = { name: 'open_sink', about: 'Without properties.', open: AppSink.prototype.open.bind(sink) };
    await using kit = await ruleKit({ streams: { sinks: [open, restSink()] } });
    const { rules } = kit.broker;
    const given: [string, Record<string, unknown>, string][] = [
      ['open_sink', { apiToken: '******' }, 'apiToken'],
      ['open_sink', { servers: [{ password: '******' }] }, 'servers.0.password'],
      ['open_sink', { servers: ['http://******@localhost'] }, 'servers.0'],
      ['rest', { url: 'http://localhost', headers: { Authorization: '******' } }, 'headers.Authorization']
    ];
    for (const [name, params, field] of given) {
      const actions = [{ name, params }];
      await assert.rejects(rules.create({ sql: SQL, actions }), { code: 'PARAM_INVALID', field });
    }
    const created = await rules.create({
      id: 'r',
      sql: SQL,
      actions: [{ name: 'open_sink', params: { a: '******' } }]
    });
    assert.equal(created.actions[0].params.a, '******');
    const change = { actions: [{ name: 'open_sink', params: { apiToken: '******' } }] };
    await assert.rejects(rules.update('r', change), { code: 'PARAM_INVALID', field: 'apiToken' });
  });

  it('lists sinks among the actions, unless an action type has the name', async () => {
    const sink = new AppSink();
    let runs = 0;
    await using kit = await ruleKit({
      streams: { sinks: [sink] },
      rules: { actions: [actionKind('app_sink', () => void runs++)] }
    });
    const { rules } = kit.broker;
    await rules.create({ sql: 'SELECT payload FROM "a"', actions: ['app_sink'] });
    await kit.broker.publish('a', '1');
    assert.deepEqual([runs, sink.opened], [1, 0]);
    const listed = await rules.actions();
    assert.deepEqual(listed.filter(({ name }) => name === 'app_sink').length, 1);
    const memory = listed.find(({ name }) => name === 'memory');
    assert.deepEqual([memory?.app, memory?.category, memory?.params.topic.required], ['streams', 'data_forward', true]);
  });

  it('does not publish in a cycle: the second output of a rule that its own message caused fails', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const actions = [{ name: 'mqtt', params: { topic: 'a/{{.n}}' } }];
    await broker.rules.create({ id: 'r', sql: 'SELECT payload.n as n FROM "a/#"', actions });
    await broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    await until(() => broker.outboxes.size === 0);
    assert.deepEqual(await countersOf(broker), { taken: 2, success: 1, failed: 1 });
  });

  it('causes at most 1,000 messages of one event, through any chain of rules, with the actions mqtt and republish', async () => {
    const publishing = [
      { name: 'mqtt', params: { topic: 'a' } },
      { name: 'republish', params: { target_topic: 'a', target_qos: 0, payload_tmpl: 'x' } }
    ];
    for (const action of publishing) {
      await using kit = await ruleKit();
      const { broker } = kit;
      const ids = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6'];
      for (const id of ids) await broker.rules.create({ id, sql: 'SELECT topic FROM "a"', actions: [action] });
      let count = 0;
      broker.subscribe('a', () => void count++);
      await broker.publish('a', '1');
      const outcomes = async () => {
        const all = await Promise.all(ids.map((id) => countersOf(broker, id)));
        return all.reduce((sum, one) => sum + (one?.success ?? 0) + (one?.failed ?? 0), 0);
      };
      await until(() => count === 1001);
      while ((await outcomes()) < 6 * 1001) await new Promise(setImmediate);
      assert.equal(count, 1001, action.name);
    }
  });

  it('connects a persisted rule when its sink is defined, by a plugin at the start or later', async () => {
    const sink = new AppSink();
    const store = memoryStore();
    const actions = [{ name: 'app_sink', params: { topic: 't' } }];
    {
      await using kit = await ruleKit({ store, streams: { sinks: [sink] } });
      await kit.broker.rules.create({ id: 'r', sql: SQL, actions });
    }
    const stateOf = async (broker: Broker) => (await broker.rules.get('r'))?.state;
    {
      const broker = createBroker({ store });
      broker.streams.beforeStart(() => broker.streams.createSink(sink));
      await broker.start();
      assert.equal(await stateOf(broker), 'connected');
      await broker.stop();
    }
    await using kit = await ruleKit({ store });
    assert.equal(await stateOf(kit.broker), 'disconnected');
    await kit.broker.streams.createSink(sink);
    assert.deepEqual([await stateOf(kit.broker), sink.opened, sink.closed], ['connected', 3, 2]);
  });

  it('uses one target if the rule is started several times at once', async () => {
    const sink = new AppSink();
    const store = memoryStore();
    {
      await using kit = await ruleKit({ store, streams: { sinks: [sink] } });
      const actions = [{ name: 'app_sink', params: { topic: 't' } }];
      await kit.broker.rules.create({ id: 'r', sql: SQL, actions });
    }
    await using kit = await ruleKit({ store });
    const { broker } = kit;
    await Promise.all([
      broker.streams.createSink(sink),
      ...['k1', 'k2'].map((name) => broker.rules.createAction(actionKind(name, () => undefined)))
    ]);
    const { state, reason } = (await broker.rules.get('r'))!;
    assert.deepEqual([state, reason, sink.opened - sink.closed], ['connected', undefined, 1]);
  });

  it('closes its target if the start of the broker fails', async () => {
    const sink = new AppSink();
    const options = { store: memoryStore(), streams: { sinks: [sink] } };
    {
      await using kit = await ruleKit(options);
      await kit.broker.rules.create({ sql: SQL, actions: [{ name: 'app_sink', params: { topic: 't' } }] });
    }
    const broker = createBroker(options);
    const open = async () => {
      throw new Error('EADDRINUSE');
    };
    broker.attach({ name: 'x', protocol: 'tcp', open, close: async () => undefined } as never);
    await assert.rejects(broker.start(), { message: 'EADDRINUSE' });
    assert.deepEqual([sink.opened, sink.closed], [2, 2]);
  });

  it('keeps its id, and so its persisted queue, when another action of the rule changes', async () => {
    const sink = unreachableSink();
    const options = { store: memoryStore(), streams: { sinks: [sink] } };
    {
      await using kit = await ruleKit(options);
      const { rules } = kit.broker;
      const given = { name: 'app_sink', params: { topic: 't', token: 'secret', enableCache: true } };
      const created = await rules.create({ id: 'r', sql: 'SELECT payload.n as n FROM "a"', actions: [given] });
      await kit.broker.publish('a', '{"n":1}', { qos: 1 });
      const [{ id, name, params }] = created.actions;
      const changed = await rules.update('r', { actions: ['do_nothing', { name, params }] });
      const counters = { taken: 1, success: 0, failed: 0 };
      const { lastError, ...kept } = changed.actions[1];
      assert.equal(lastError?.message, 'down');
      assert.deepEqual(kept, { ...created.actions[0], counters, size: 1 });
      const other = await rules.update('r', {
        actions: [given, { name, params: { ...params, topic: 'u', token: 'other' } }]
      });
      assert.deepEqual([other.actions[0].id, other.actions[1].id === id], [id, false]);
    }
    sink.answer = () => undefined;
    await using _kit = await ruleKit(options);
    await until(() => sink.sent.length === 1);
    assert.deepEqual(sink.sent, ['t: {"n":1}']);
  });

  it('leaves no queue when its rule is deleted after it was replaced', async () => {
    const sink = unreachableSink();
    await using kit = await ruleKit({ store: memoryStore(), streams: { sinks: [sink] } });
    const { broker } = kit;
    const actions = (topic: string) => [{ name: 'app_sink', params: { topic, enableCache: true } }];
    await broker.rules.create({ id: 'r', sql: 'SELECT payload.n as n FROM "a"', actions: actions('t') });
    await broker.publish('a', '{"n":1}', { qos: 1 });
    await kit.clock.settle();
    await broker.rules.update('r', { actions: actions('u') });
    await broker.rules.delete('r');
    sink.answer = () => undefined;
    await kit.clock.advance('1m');
    assert.deepEqual([sink.sent, broker.outboxes.size, sink.opened, sink.closed], [[], 0, 2, 2]);
    assert.deepEqual(broker.outboxes.kept(), []);
  });

  it('keeps its target closed while the broker is stopped', async () => {
    const sink = new AppSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { broker } = kit;
    await broker.stop();
    await broker.rules.create({ id: 'r', sql: SQL, actions: [{ name: 'app_sink', params: { topic: 't' } }] });
    assert.deepEqual([sink.opened, sink.closed], [1, 1]);
    await broker.start();
    await broker.publish('a/b', '{"n":1}');
    await until(() => sink.sent.length === 1);
    assert.deepEqual([sink.opened, sink.closed], [2, 1]);
  });

  it('leaves outboxes of the app in the store, whatever their names', async () => {
    const store = memoryStore();
    {
      await using kit = await ruleKit({ store });
      const send = () => {
        throw new Error('down');
      };
      kit.broker.outboxes.open({ name: 'action:mine', isPersisted: true, send }).add('key', 'content');
      await kit.broker.rules.create({ sql: SQL, actions: ['do_nothing'] });
    }
    await using kit = await ruleKit({ store });
    assert.deepEqual(kit.broker.outboxes.kept(), [{ name: 'action:mine', size: 1 }]);
  });

  it('writes to a file and to a web server', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'embermq-rule-sink-'));
    try {
      await using receiver = await new Receiver().open();
      await using kit = await ruleKit({ streams: { sinks: [fileSink(), restSink()], dataDir } });
      const { broker } = kit;
      const actions = [
        { name: 'file', params: { path: 'out.txt' } },
        { name: 'rest', params: { url: `${receiver.url}/{{.clientid}}`, method: 'post' } }
      ];
      await broker.rules.create({ id: 'r', sql: SQL, actions });
      const client = await kit.connect({ clientId: 'c' });
      await client.publish('a', '{"n":1}');
      assert.deepEqual(await receiver.until(1), [{ n: 1, clientid: 'c' }]);
      assert.equal(receiver.received[0].url, '/hook/c');
      await broker.stop();
      assert.equal(await readFile(join(dataDir, 'files/out.txt'), 'utf8'), '{"n":1,"clientid":"c"}\n');
    } finally {
      await rm(dataDir, { recursive: true });
    }
  });

  it('keeps the properties of its connection after a restart, although rules are restored before streams', async () => {
    const sink = new AppSink();
    const options = { store: memoryStore(), streams: { sinks: [sink] } };
    {
      await using kit = await ruleKit(options);
      const { rules, streams } = kit.broker;
      await streams.config.set({ kind: 'connection', type: 'app_sink', name: 'c', properties: { token: 's3cret' } });
      const actions = [{ name: 'app_sink', params: { topic: 't', connectionSelector: 'c' } }];
      await rules.create({ id: 'r', sql: SQL, actions });
    }
    await using kit = await ruleKit(options);
    const state = await kit.broker.rules.get('r');
    assert.deepEqual([state?.state, sink.tokens], ['connected', ['s3cret', 's3cret']]);
  });

  it('encodes with a schema that was stored, after a restart', async () => {
    const formats = [await protobufFormat()];
    const options = { store: memoryStore(), streams: { formats } };
    const content = 'syntax = "proto3"; message Book { int32 n = 1; }';
    {
      await using kit = await ruleKit(options);
      await kit.broker.streams.config.set({ kind: 'schema', type: 'protobuf', name: 'book', properties: { content } });
      const params = { topic: 'out', format: 'protobuf', schemaId: 'book.Book' };
      await kit.broker.rules.create({ id: 'r', sql: SQL, actions: [{ name: 'mqtt', params }] });
    }
    await using kit = await ruleKit(options);
    assert.equal((await kit.broker.rules.get('r'))?.reason, undefined);
    assert.equal((await kit.broker.rules.get('r'))?.state, 'connected');
  });

  it('publishes at mosquitto', withMosquitto, async () => {
    const mosquitto = await new Mosquitto().begin();
    const client = await mosquitto.client();
    await client.subscribe('out/#', { qos: 1 });
    const received: string[] = [];
    client.on('message', ({ topic, payload }) => received.push(`${topic} ${payload}`));
    await using kit = await ruleKit({ streams: { sinks: [mqttSink()] } });
    const params = { server: `tcp://127.0.0.1:${mosquitto.port}`, topic: 'out/{{.n}}', qos: 1 };
    const actions = [{ name: 'mqtt', params }];
    await kit.broker.rules.create({ id: 'r', sql: 'SELECT payload.n as n FROM "a"', actions });
    await kit.broker.publish('a', '{"n":1}');
    await until(() => received.length === 1);
    assert.deepEqual(received, ['out/1 {"n":1}']);
    client.destroy();
    await mosquitto.end();
  });

  for (const { name, skip, open } of DATABASES)
    it(`writes rows to ${name}`, { skip }, async () => {
      const db = await open();
      await db.run('CREATE TABLE readings (n INT, clientid VARCHAR(20))');
      await using kit = await ruleKit({ streams: { sinks: [sqlSink(db.options)] } });
      const actions = [{ name: 'sql', params: { table: 'readings' } }];
      await kit.broker.rules.create({ id: 'r', sql: SQL, actions });
      const client = await kit.connect({ clientId: 'c' });
      await client.publish('a', '{"n":7}');
      const rows = async () => db.run('SELECT n, clientid FROM readings');
      while ((await rows()).length === 0) await new Promise(setImmediate);
      assert.deepEqual(await rows().then((all) => all.map((row) => ({ ...row }))), [{ n: 7, clientid: 'c' }]);
      await kit.broker.rules.delete('r');
      await db.close();
    });
});
