import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exportConfiguration, importConfiguration, memoryStore } from '../../lib/index.ts';
import { actionKind, FakeTarget, RESOURCE, republish, ruleKit, TO_FAKE, take } from './support.ts';

describe('The outputs of rules', () => {
  it('passes outputs from the call on, even if there was no rule before', async () => {
    await using kit = await ruleKit();
    const outputs = kit.broker.rules.outputs();
    await kit.broker.rules.create({ sql: 'SELECT payload FROM "a"', actions: [] });
    await kit.broker.publish('a', 'first');
    await kit.broker.publish('a', 'second');
    assert.deepEqual(await take(outputs, 2), [{ payload: 'first' }, { payload: 'second' }]);
    assert.deepEqual(await outputs.return!(), { value: undefined, done: true });
    assert.deepEqual(await outputs.next(), { value: undefined, done: true });
  });

  it('drops outputs that are not read beyond 32 MB, the oldest first', async () => {
    await using kit = await ruleKit();
    await kit.broker.rules.create({ sql: 'SELECT qos FROM "a"', actions: [] });
    const outputs = kit.broker.rules.outputs();
    const payload = Buffer.alloc(1_000_000);
    for (let qos = 0; qos < 60; qos++) await kit.broker.publish({ topic: 'a', payload, qos: qos < 59 ? 0 : 1 });
    const left: unknown[] = [];
    await kit.broker.stop();
    for await (const { output } of outputs) left.push(output);
    assert.ok(left.length > 10 && left.length < 20, `${left.length} outputs`);
    assert.deepEqual(left.at(-1), { qos: 1 });
  });
});

describe('The action republish for an event without a message', () => {
  it('uses QoS 0 for -1 in events without a message, even if the event has a column `qos`', async () => {
    await using kit = await ruleKit();
    const qos: number[] = [];
    kit.broker.subscribe('out', (message) => qos.push(message.qos));
    await kit.broker.rules.create({
      sql: 'SELECT topic FROM "$events/session_subscribed"',
      actions: [republish('out', 'x', { target_qos: -1 })]
    });
    const client = await kit.broker.connect({ clientId: 'dev' });
    await client.subscribe('a', { qos: 2 });
    assert.deepEqual(qos, [0]);
    await client.disconnect();
  });
});

describe('The output of an action that waits for a restart', () => {
  it('restores the output of a waiting action unchanged after a restart, for any payload of a device', async () => {
    const target = new FakeTarget();
    target.onSend = () => {
      throw new Error('down');
    };
    const seen: unknown[] = [];
    const show = actionKind('show', (output) => seen.push(output));
    const options = { store: memoryStore(), rules: { resources: [target.type(true)], actions: [show] } };
    const payload = { '\0bytes': { '\0bytes': 1 }, list: [{ '\0bytes': 'AAAA' }] };
    {
      await using kit = await ruleKit(options);
      await kit.broker.rules.resources.create(RESOURCE);
      await kit.broker.rules.create({
        sql: 'SELECT json_decode(payload) as p FROM "a"',
        onActionFailed: 'stop',
        actions: [TO_FAKE, 'show']
      });
      await kit.broker.publish({ topic: 'a', payload: JSON.stringify(payload), qos: 1 });
    }
    target.onSend = () => undefined;
    await using kit = await ruleKit(options);
    await kit.clock.advance('1m');
    assert.deepEqual(seen, [{ p: payload }]);
  });
});

describe('A refused resource type', () => {
  it('defines no actions of a refused resource type', async () => {
    await using kit = await ruleKit();
    const { rules } = kit.broker;
    const type = new FakeTarget().type();
    const taken = { ...type.actions![0], name: 'inspect' };
    const before = await rules.actions();
    await assert.rejects(rules.createResourceType({ ...type, actions: [...type.actions!, taken] }), {
      code: 'ACTION_EXISTS'
    });
    assert.deepEqual(await rules.actions(), before);
    await rules.createResourceType(new FakeTarget().type());
  });
});

describe('A resource that cannot be created', () => {
  it('raises the alarm of a resource that cannot be created, until it is created and its target is reached', async () => {
    const store = memoryStore();
    const type = new FakeTarget().type();
    {
      await using kit = await ruleKit({ store, rules: { resources: [type] } });
      await kit.broker.rules.resources.create(RESOURCE);
    }
    await using kit = await ruleKit({ store });
    const [{ id, summary }] = kit.broker.alarms.present();
    assert.equal(id, 'resource/fake/r/down');
    assert.match(summary, /unknown resource type "fake"/);
    await kit.broker.rules.createResourceType(type);
    await kit.clock.settle();
    assert.deepEqual(kit.broker.alarms.present(), []);
  });
});

describe('A created resource', () => {
  it('connects the rules that use a resource as soon as it is created', async () => {
    const type = new FakeTarget().type();
    await using kit = await ruleKit({ rules: { resources: [type, { ...type, name: 'other', actions: [] }] } });
    const { rules } = kit.broker;
    await rules.resources.create(RESOURCE);
    const document = await exportConfiguration(kit.broker);
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    const [resource] = document.sections.resources!;
    const other = { ...document, sections: { resources: [{ ...resource, type: 'other' }] } };
    await importConfiguration(kit.broker, other, { mode: 'replace' });
    assert.match((await rules.get('one'))!.reason!, /but "r" is a other/);
    await importConfiguration(kit.broker, { ...document, sections: { resources: [resource] } }, { mode: 'replace' });
    assert.equal((await rules.get('one'))!.state, 'connected');
  });
});

describe('Rules and resources that are given', () => {
  it('refuses unknown fields, so that a misspelled one is noticed', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { rules } = kit.broker;
    const rule = { id: 'one', sql: 'SELECT qos FROM "a"', actions: [] };
    const unknown = (message: RegExp) => ({ code: 'OPTION_UNKNOWN', message });
    await assert.rejects(
      rules.create({ ...rule, isEnable: false } as never),
      unknown(/isEnable.*did you mean "isEnabled"/)
    );
    const action = { name: 'inspect', param: {} } as never;
    await assert.rejects(rules.create({ ...rule, actions: [action] }), unknown(/param.*actions\[0\].*"params"/));
    await assert.rejects(
      rules.create({ ...rule, actions: [{ nmae: 'inspect' } as never] }),
      unknown(/did you mean "name"/)
    );
    for (const other of [{ republish: {} }, { republish: { target_topic: 'b' } }])
      await assert.rejects(rules.create({ ...rule, actions: [other as never] }), {
        code: 'OPTION_UNKNOWN',
        message:
          'actions[0]: unknown option "republish"; if it is the name of the action, write { name: "republish", params: { ... } }'
      });
    await rules.create(rule);
    await assert.rejects(rules.update('one', { id: 'two' } as never), unknown(/"id"/));
    await assert.rejects(rules.list({ likeID: 'o' } as never), unknown(/did you mean "likeId"/));
    await assert.rejects(rules.list({ likeId: 5 } as never), { code: 'OPTION_INVALID', message: /likeId/ });
    await assert.rejects(rules.resources.create({ ...RESOURCE, conf: {} } as never), unknown(/did you mean "config"/));
    await rules.resources.create(RESOURCE);
    await assert.rejects(rules.resources.update('r', { type: 'fake' } as never), unknown(/"type"/));
  });

  it('gives the queues of different ids different names', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { resources } = kit.broker.rules;
    await resources.create(RESOURCE);
    await assert.rejects(resources.create({ ...RESOURCE, id: 'resource:r' }), { code: 'RESOURCE_EXISTS' });
  });

  it('records the highest number of rules and resources in the metrics', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { rules, metrics } = kit.broker;
    for (const id of ['one', 'two']) await rules.create({ id, sql: 'SELECT qos FROM "a"', actions: [] });
    await rules.resources.create(RESOURCE);
    for (const id of ['one', 'two']) await rules.delete(id);
    await rules.resources.delete('r');
    const { 'rules.count': count, 'rules.max': most, 'resources.max': resources } = metrics.gauges();
    assert.deepEqual([count, most, resources], [0, 2, 1]);
  });
});
