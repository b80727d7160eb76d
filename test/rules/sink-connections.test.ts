import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/index.ts';
import { memoryStore } from '../../lib/index.ts';
import { AppSink } from './app-sink.ts';
import { ruleKit } from './support.ts';

const SQL = 'SELECT payload.n as n FROM "a"';

/** Create or replace the connection `c` of the sink of the tests. */
function connect({ streams }: Broker, properties: Record<string, unknown>): Promise<unknown> {
  return streams.config.set({ kind: 'connection', type: 'app_sink', name: 'c', properties });
}

describe('the connection of a sink that a broker rule names', () => {
  it('gives the action the parameters that it requires', async () => {
    const sink = new AppSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    await connect(kit.broker, { Topic: 'of the connection', token: 's3cret', level: null });
    const { rules } = kit.broker;
    const params = { connectionSelector: 'c' };
    const created = await rules.create({ sql: SQL, actions: [{ name: 'app_sink', params }] });
    assert.deepEqual({ ...created.actions[0].params }, params);
    await kit.broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    assert.deepEqual([sink.sent, sink.tokens], [['of the connection: {"n":1}'], ['s3cret']]);
    await assert.rejects(
      rules.create({ sql: SQL, actions: [{ name: 'app_sink', params: { connectionSelector: 'd' } }] }),
      { code: 'PARAM_INVALID', message: /there is no connection "d" of the type app_sink/ }
    );
  });

  it('cannot be deleted while a rule that names it is being created, in either order', async () => {
    await using kit = await ruleKit({ store: memoryStore(), streams: { sinks: [new AppSink()] } });
    const { rules, streams } = kit.broker;
    const key = { kind: 'connection', type: 'app_sink', name: 'c' } as const;
    const actions = [{ name: 'app_sink', params: { topic: 't', connectionSelector: 'c' } }];
    for (const isRuleFirst of [true, false])
      for (const turns of [0, 1, 2, 4, 8, 16]) {
        await connect(kit.broker, { token: 's3cret' });
        const create = () => rules.create({ id: 'r', sql: SQL, actions });
        const remove = () => streams.config.delete(key);
        const first = isRuleFirst ? create() : remove();
        for (let n = 0; n < turns; n++) await Promise.resolve();
        const outcomes = await Promise.allSettled([first, isRuleFirst ? remove() : create()]);
        assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], `${turns} turns`);
        await rules.delete('r');
        await streams.config.delete(key);
      }
  });

  it('stays deleted if a change of it arrives after the deletion', async () => {
    await using kit = await ruleKit({ store: memoryStore(), streams: { sinks: [new AppSink()] } });
    const { config } = kit.broker.streams;
    await connect(kit.broker, {});
    const entry = { kind: 'connection', type: 'app_sink', name: 'c', properties: { token: 'x' } } as const;
    const [deleted, changed] = await Promise.allSettled([config.delete(entry), config.set(entry, { isNew: false })]);
    assert.equal(deleted.status, 'fulfilled');
    assert.equal(changed.status === 'rejected' && changed.reason.code, 'STREAM_CONFIG_NOT_FOUND');
    assert.equal(await config.get(entry), undefined);
  });

  it('may have properties that only the source of its type has, unlike the parameters of the action', async () => {
    const sink = new AppSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { rules, streams } = kit.broker;
    await streams.createSource({
      ...{ name: 'app_sink', about: 'For tests.' },
      properties: { interval: { type: 'number', about: 'Interval.' } },
      open: () => ({ close: () => undefined })
    });
    await connect(kit.broker, { interval: 5, token: 's3cret' });
    const create = (params: object) =>
      rules.create({
        id: 'r',
        sql: SQL,
        actions: [{ name: 'app_sink', params: { ...params, connectionSelector: 'c' } }]
      });
    await assert.rejects(create({ topic: 't', interval: 5 }), { code: 'PARAM_INVALID', message: /"interval"/ });
    assert.equal((await create({ topic: 't' })).state, 'connected');
    assert.deepEqual(sink.tokens, ['s3cret']);
  });

  it('takes effect after a change when the rule is enabled again, and when the broker starts', async () => {
    const sink = new AppSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { rules } = kit.broker;
    await connect(kit.broker, { token: 'first' });
    const params = { topic: 't', connectionSelector: 'c' };
    await rules.create({ id: 'r', sql: SQL, actions: [{ name: 'app_sink', params }] });
    await connect(kit.broker, { token: 'second' });
    await rules.update('r', { description: 'other' });
    assert.deepEqual(sink.tokens, ['first']);
    await rules.update('r', { isEnabled: false });
    await rules.update('r', { isEnabled: true });
    await connect(kit.broker, { token: 'third' });
    await kit.broker.stop();
    await kit.broker.start();
    await kit.clock.settle();
    assert.deepEqual([sink.tokens, sink.opened, sink.closed], [['first', 'second', 'third'], 3, 2]);
  });

  it('takes effect when the rule is enabled again although outputs are waiting, which are sent with it', async () => {
    const sink = new AppSink();
    sink.answer = () => {
      if (sink.tokens.at(-1) === 'wrong') throw new Error('wrong token');
    };
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { rules } = kit.broker;
    await connect(kit.broker, { token: 'wrong' });
    const actions = [{ name: 'app_sink', params: { topic: 't', connectionSelector: 'c' } }];
    await rules.create({ id: 'r', sql: SQL, actions });
    await kit.broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    await connect(kit.broker, { token: 'right' });
    await rules.update('r', { isEnabled: false });
    await rules.update('r', { isEnabled: true });
    await kit.broker.publish('a', '{"n":2}');
    await kit.clock.advance('1m');
    assert.deepEqual(sink.sent, ['t: {"n":1}', 't: {"n":2}']);
    assert.deepEqual([sink.tokens, sink.closed], [['wrong', 'right'], 1]);
  });

  it('cannot be deleted while a rule names it, running or not, in an action or a fallback', async () => {
    const sink = new AppSink();
    const store = memoryStore();
    const key = { kind: 'connection', name: 'c' } as const;
    const action = { name: 'app_sink', params: { topic: 't', connectionSelector: 'c' } };
    {
      await using kit = await ruleKit({ store, streams: { sinks: [sink] } });
      const { rules } = kit.broker;
      await connect(kit.broker, { token: 's3cret' });
      await rules.create({ id: 'r1', sql: SQL, actions: [action], isEnabled: false });
      await rules.create({ id: 'r2', sql: SQL, actions: [{ name: 'do_nothing', fallbacks: [action] }] });
    }
    await using kit = await ruleKit({ store, streams: { sinks: [sink] } });
    const { rules, streams } = kit.broker;
    await assert.rejects(streams.config.delete(key), {
      code: 'STREAM_CONFIG_IN_USE',
      message: 'connection c is used by broker rule r1, broker rule r2'
    });
    await rules.delete('r1');
    await rules.update('r2', { actions: [{ ...action, params: { topic: 't' } }] });
    assert.equal(await streams.config.delete(key), true);
  });
});
