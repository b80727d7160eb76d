// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of rules
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryStore } from '../../lib/index.ts';
import { SendError } from '../../lib/outbox/send-error.ts';
import { actionKind, FakeTarget, RESOURCE, republish, ruleKit, TO_FAKE, TWICE } from './support.ts';

describe('A resource', () => {
  it('creates, finds, lists and deletes a resource', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { resources } = kit.broker.rules;
    const made = await resources.create({ ...RESOURCE, config: { url: 'http://x', token: 'secret' } });
    assert.deepEqual(
      [made.id, made.type, made.isAlive, made.config],
      ['r', 'fake', true, { url: 'http://x', token: '******' }]
    );
    assert.match((await resources.create({ type: 'fake', config: { url: 'u' } })).id, /^resource:[0-9a-f]{8}$/);
    assert.deepEqual((await resources.list('fake')).length, 2);
    assert.equal(await resources.delete('r'), true);
    assert.equal(await resources.delete('r'), false);
    assert.equal(target.closed, 1);
    assert.equal(await resources.get('r'), undefined);
  });

  it('creates a resource whose target cannot be reached, and raises an alarm until it can', async () => {
    const target = new FakeTarget();
    target.fault = new Error('connect ECONNREFUSED');
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { alarms, rules } = kit.broker;
    const { isAlive, lastError } = await rules.resources.create(RESOURCE);
    assert.deepEqual([isAlive, lastError?.message], [false, 'connect ECONNREFUSED']);
    assert.deepEqual(
      alarms.present().map(({ id }) => id),
      ['resource/fake/r/down']
    );
    target.fault = undefined;
    await kit.clock.advance('59s');
    assert.equal((await rules.resources.get('r'))?.isAlive, false);
    await kit.clock.advance('2s');
    assert.equal((await rules.resources.get('r'))?.isAlive, true);
    assert.deepEqual(alarms.present(), []);
  });

  it('checks a resource that is alive every ten seconds', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    await kit.broker.rules.resources.create(RESOURCE);
    target.fault = new Error('gone');
    await kit.clock.advance('11s');
    assert.equal((await kit.broker.rules.resources.get('r'))?.isAlive, false);
    assert.equal(kit.broker.alarms.present().length, 1);
  });

  it('checks and starts a resource on request', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { resources } = kit.broker.rules;
    await resources.create(RESOURCE);
    assert.equal(await resources.check('r'), true);
    target.fault = new Error('gone');
    assert.equal(await resources.check('r'), false);
    await assert.rejects(resources.start('r'), { code: 'RESOURCE_DOWN', message: /gone/ });
    await assert.rejects(resources.start('other'), { code: 'RESOURCE_NOT_FOUND' });
    await assert.rejects(resources.test({ type: 'fake', config: { url: 'u' } }), { code: 'RESOURCE_DOWN' });
    target.fault = undefined;
    await resources.test({ type: 'fake', config: { url: 'u' } });
    assert.equal((await resources.list()).length, 1);
  });

  it('refuses a resource with parameters that its type does not accept', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { resources } = kit.broker.rules;
    await assert.rejects(resources.create({ type: 'fak', config: {} }), {
      code: 'RESOURCE_TYPE_NOT_FOUND',
      message: /did you mean "fake"/
    });
    await assert.rejects(resources.create({ type: 'fake', config: {} }), { code: 'PARAM_REQUIRED', field: 'url' });
    await assert.rejects(resources.create({ type: 'fake', config: { url: 1 } }), {
      code: 'PARAM_INVALID',
      field: 'url'
    });
    await assert.rejects(resources.create({ type: 'fake', config: 'url' } as never), { code: 'RESOURCE_INVALID' });
    await resources.create(RESOURCE);
    await assert.rejects(resources.create(RESOURCE), { code: 'RESOURCE_EXISTS' });
    await assert.rejects(resources.update('r', { config: {} }), { code: 'PARAM_REQUIRED' });
  });

  it('refuses to delete a resource while a rule uses it, even in a fallback', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { rules } = kit.broker;
    await rules.resources.create(RESOURCE);
    await rules.create({
      id: 'one',
      sql: 'SELECT * FROM "a"',
      actions: [{ name: 'do_nothing', fallbacks: [TO_FAKE] }]
    });
    await assert.rejects(rules.resources.delete('r'), { code: 'RESOURCE_IN_USE', message: /"one"/ });
    await rules.delete('one');
    assert.equal(await rules.resources.delete('r'), true);
  });

  it('keeps the queue of a changed resource, and its current secret unless another one is given', async () => {
    const target = new FakeTarget();
    const tokens: unknown[] = [];
    const type = target.type();
    const make: typeof type.make = (config, context) => {
      tokens.push(config.token);
      return type.make(config, context);
    };
    await using kit = await ruleKit({ rules: { resources: [{ ...type, make }] } });
    const { rules } = kit.broker;
    await rules.resources.create({ ...RESOURCE, config: { url: 'a', token: 'secret' } });
    await rules.create({ sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    target.onSend = () => {
      throw new Error('down');
    };
    await kit.broker.publish('a', 'x');
    target.onSend = () => undefined;
    const changed = await rules.resources.update('r', { config: { url: 'a', n: 1, token: '******' } });
    assert.deepEqual([changed.config, tokens], [{ url: 'a', n: 1, token: '******' }, ['secret', 'secret']]);
    await assert.rejects(rules.resources.update('r', { config: { url: 'b', token: '******' } }), {
      code: 'PARAM_INVALID',
      message: /"token": \*{6} cannot be kept for another server/
    });
    await kit.clock.advance('10s');
    assert.deepEqual(target.sent, ['{"topic":"a"}']);
  });
});

describe('Actions that send', () => {
  it('succeeds when the target has accepted the entry, in the order of the rule', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { rules } = kit.broker;
    await rules.resources.create(RESOURCE);
    const { id } = await rules.create({ sql: 'SELECT payload as v FROM "a"', actions: [TO_FAKE] });
    for (const value of ['1', '2', '3']) await kit.broker.publish('a', value);
    await kit.clock.advance('1s');
    assert.deepEqual(target.sent, ['{"v":"1"}', '{"v":"2"}', '{"v":"3"}']);
    assert.deepEqual((await rules.get(id))!.actions[0].counters, { taken: 3, success: 3, failed: 0 });
  });

  it('waits while the target is down, with the rule attached', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { rules } = kit.broker;
    target.fault = new Error('down');
    target.onSend = () => {
      throw new Error('down');
    };
    await rules.resources.create(RESOURCE);
    const { state, id } = await rules.create({ sql: 'SELECT payload as v FROM "a"', actions: [TO_FAKE] });
    assert.equal(state, 'connected');
    await kit.broker.publish('a', '1');
    await kit.clock.advance('10s');
    assert.deepEqual((await rules.get(id))!.actions[0].counters, { taken: 1, success: 0, failed: 0 });
    assert.equal((await rules.resources.get('r'))?.size, 1);
    target.fault = undefined;
    target.onSend = () => undefined;
    await kit.clock.advance('2m');
    assert.deepEqual(target.sent, ['{"v":"1"}']);
  });

  it('runs the fallbacks, and no later actions, if the target refuses an entry permanently', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { rules } = kit.broker;
    const topics: string[] = [];
    kit.broker.subscribe('out/#', ({ topic }) => topics.push(topic));
    await rules.resources.create(RESOURCE);
    target.onSend = () => {
      throw new SendError('no', { isFinal: true });
    };
    await rules.create({
      sql: 'SELECT payload as v FROM "a"',
      onActionFailed: 'stop',
      actions: [{ ...TO_FAKE, fallbacks: [republish('out/fallback', 'x')] }, republish('out/later', 'x')]
    });
    await kit.broker.publish('a', '1');
    await kit.clock.advance('1s');
    assert.deepEqual(topics, ['out/fallback']);
    target.onSend = () => undefined;
    await kit.broker.publish('a', '2');
    await kit.clock.advance('1s');
    assert.deepEqual(topics, ['out/fallback', 'out/later']);
  });

  it('fails if the queue is full, including a fallback that would use it, without making room for itself', async () => {
    const target = new FakeTarget();
    target.onSend = () => new Promise(() => undefined);
    await using kit = await ruleKit({ rules: { resources: [target.type(false, { maxEntries: 4 })] } });
    const { rules } = kit.broker;
    await rules.resources.create(RESOURCE);
    await rules.create({ id: 'one', sql: 'SELECT payload FROM "a"', actions: [{ ...TO_FAKE, fallbacks: [TO_FAKE] }] });
    for (let at = 0; at < 6; at++) await kit.broker.publish('a', `${at}`);
    const [{ counters, fallbacks }] = (await rules.get('one'))!.actions;
    assert.deepEqual(counters, { taken: 6, success: 0, failed: 2 });
    assert.deepEqual(fallbacks[0].counters, { taken: 2, success: 0, failed: 2 });
    const waiting = [...kit.broker.outboxes.get('resource:r')!.entries()].map(({ content }) => String(content));
    assert.deepEqual(
      waiting.map((text) => text.slice(text.indexOf('\n') + 1)),
      ['2', '3', '4', '5'].map((payload) => JSON.stringify({ payload }))
    );
  });

  it('fails immediately if an output is larger than the queue may be', async () => {
    for (const isPersisted of [false, true]) {
      const target = new FakeTarget();
      await using kit = await ruleKit({
        store: memoryStore(),
        rules: { resources: [target.type(isPersisted, { maxBytes: 1024 })] }
      });
      const { rules } = kit.broker;
      await rules.resources.create(RESOURCE);
      const closed: string[] = [];
      const closing = actionKind(
        'closing',
        () => undefined,
        () => closed.push('closed')
      );
      await rules.createAction(closing);
      const actions = [{ ...TO_FAKE, fallbacks: [republish('out', 'too large')] }, 'closing'];
      await rules.create({ id: 'one', sql: 'SELECT payload FROM "a"', actions });
      const messages: string[] = [];
      kit.broker.subscribe('out', ({ payload }) => messages.push(String(payload)));
      await kit.broker.publish('a', 'x'.repeat(2000));
      assert.deepEqual(messages, ['too large']);
      assert.deepEqual((await rules.get('one'))!.actions[0].counters, { taken: 1, success: 0, failed: 1 });
      await rules.update('one', { isEnabled: false });
      assert.deepEqual(closed, ['closed']);
    }
  });

  it('requires a resource that exists and has a type that the action can use', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { rules } = kit.broker;
    const rule = { sql: 'SELECT * FROM "a"', actions: [TO_FAKE] };
    await assert.rejects(rules.create(rule), {
      code: 'RESOURCE_NOT_INITIALIZED',
      message: /resource "r" does not exist/
    });
    await assert.rejects(rules.create({ ...rule, actions: ['to_fake'] }), {
      code: 'PARAM_REQUIRED',
      field: '$resource'
    });
    await rules.createResourceType({ ...new FakeTarget().type(), name: 'other', actions: [] });
    await rules.resources.create({ ...RESOURCE, type: 'other' });
    await assert.rejects(rules.create(rule), {
      code: 'RESOURCE_NOT_INITIALIZED',
      message: /uses resources of type fake/
    });
  });
});

describe('Persistence of rules and resources', () => {
  it('restores rules and resources before the first connection, in the order of their creation', async () => {
    const store = memoryStore();
    const target = new FakeTarget();
    const options = { store, rules: { resources: [target.type()] } };
    {
      await using kit = await ruleKit(options);
      const { rules } = kit.broker;
      await rules.resources.create(RESOURCE);
      for (const id of ['z', 'a', 'm']) await rules.create({ id, sql: 'SELECT topic FROM "t"', actions: [TO_FAKE] });
      await rules.create({ id: 'off', sql: 'SELECT topic FROM "t"', actions: ['do_nothing'], isEnabled: false });
      await rules.create({ id: 'function', sql: 'SELECT topic FROM "t"', actions: [() => undefined] });
    }
    await using kit = await ruleKit(options);
    const { rules } = kit.broker;
    await kit.broker.publish('t', 'x');
    await kit.clock.advance('1s');
    assert.equal(target.sent.length, 3);
    const listed = await rules.list();
    assert.deepEqual(
      listed.map(({ id, state, isPersisted }) => [id, state, isPersisted]),
      [
        ['z', 'connected', true],
        ['a', 'connected', true],
        ['m', 'connected', true],
        ['off', 'idle', true]
      ]
    );
    assert.equal((await rules.resources.get('r'))?.isAlive, true);
    await rules.create({ id: 'last', sql: 'SELECT topic FROM "t"', actions: [] });
    assert.equal((await rules.list()).at(-1)?.id, 'last');
  });

  it('restores the entries of an action, with their continuations, if its resource persists them', async () => {
    const store = memoryStore();
    const target = new FakeTarget();
    const options = { store, rules: { resources: [target.type(true)] } };
    target.onSend = () => {
      throw new Error('down');
    };
    {
      await using kit = await ruleKit(options);
      const { rules } = kit.broker;
      await rules.resources.create(RESOURCE);
      await rules.create({
        id: 'one',
        sql: 'SELECT payload FROM "a/#"',
        onActionFailed: 'stop',
        actions: [TO_FAKE, republish('out/later', '${payload}', { target_qos: -1 })]
      });
      await kit.broker.publish('a/b', Buffer.from([0, 255]), { qos: 1 });
    }
    target.onSend = () => undefined;
    await using kit = await ruleKit(options);
    const messages: unknown[] = [];
    kit.broker.subscribe('out/#', ({ payload, qos }) => messages.push([[...payload], qos]));
    await kit.clock.advance('1m');
    assert.equal(target.sent.length, 1);
    assert.deepEqual(messages, [[[0, 255], 1]]);
    assert.equal((await kit.broker.rules.get('one'))!.actions[0].counters.success, 1);
  });

  it('restores the entries of an action of a rule in the options, with their continuations', async () => {
    const target = new FakeTarget();
    const rule = { id: 'one', sql: 'SELECT payload FROM "a"', onActionFailed: 'stop' } as const;
    const actions = [TO_FAKE, republish('out', '${payload}')];
    const options = {
      store: memoryStore(),
      rules: { resources: [target.type(true), RESOURCE], rules: [{ ...rule, actions }] }
    };
    target.onSend = () => {
      throw new Error('down');
    };
    {
      await using kit = await ruleKit(options);
      await kit.broker.publish('a', 'x', { qos: 1 });
    }
    target.onSend = () => undefined;
    await using kit = await ruleKit(options);
    const messages: string[] = [];
    kit.broker.subscribe('out', ({ payload }) => messages.push(String(payload)));
    await kit.clock.advance('1m');
    assert.deepEqual([target.sent.length, messages], [1, ['x']]);
  });

  it('keeps rules and resources of a type that is not registered, disconnected with that reason', async () => {
    const store = memoryStore();
    const target = new FakeTarget();
    {
      await using kit = await ruleKit({ store, rules: { resources: [target.type()] } });
      await kit.broker.rules.resources.create(RESOURCE);
      await kit.broker.rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    }
    await using kit = await ruleKit({ store });
    const { rules } = kit.broker;
    const [rule] = await rules.list();
    assert.equal(rule.state, 'disconnected');
    assert.match(rule.reason!, /unknown action "to_fake"/);
    const [resource] = await rules.resources.list();
    assert.deepEqual([resource.type, resource.isAlive], ['fake', false]);
    assert.match(resource.lastError!.message, /unknown resource type "fake"/);
    const connected = kit.broker.nextEvent('rule.connected');
    await rules.createResourceType(target.type());
    assert.deepEqual(await connected, { rule: 'one' });
    await kit.broker.publish('a', 'x');
    await kit.clock.advance('1s');
    assert.deepEqual(target.sent, ['{"topic":"a"}']);
  });

  it('keeps rules with a function that is not defined', async () => {
    const store = memoryStore();
    {
      await using kit = await ruleKit({ store, rules: { functions: [TWICE] } });
      await kit.broker.rules.create({ id: 'one', sql: 'SELECT twice(qos) as q FROM "a"', actions: ['do_nothing'] });
      assert.deepEqual((await kit.broker.rules.test('SELECT twice(qos) as q FROM "a"')).outputs, [{ q: 2 }]);
    }
    await using kit = await ruleKit({ store });
    const { rules } = kit.broker;
    const [rule] = await rules.list();
    assert.deepEqual([rule.state, rule.sql], ['disconnected', 'SELECT twice(qos) as q FROM "a"']);
    assert.match(rule.reason!, /unknown function twice/);
    await rules.createFunction(TWICE);
    assert.equal((await rules.get('one'))!.state, 'connected');
    await assert.rejects(rules.createFunction({ ...TWICE, name: 'upper' }), { code: 'FUNCTION_EXISTS' });
  });
});

describe('The option rules', () => {
  it('creates the rules and resources of the options at each start, which cannot be changed at run time', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({
      rules: {
        resources: [target.type(), RESOURCE],
        rules: [{ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] }]
      }
    });
    const { rules } = kit.broker;
    await kit.broker.publish('a', 'x');
    await kit.clock.advance('1s');
    assert.deepEqual(target.sent, ['{"topic":"a"}']);
    await assert.rejects(rules.delete('one'), { code: 'RULE_OF_APP' });
    await assert.rejects(rules.update('one', { isEnabled: false }), { code: 'RULE_OF_APP' });
    await assert.rejects(rules.resources.delete('r'), { code: 'RESOURCE_OF_APP' });
  });

  it('publishes events as messages that reach no rule', async () => {
    await using kit = await ruleKit({ 'rule_engine.events.client_connected': 'on, qos1' } as never);
    const messages: { topic: string; qos: number; clientid: string }[] = [];
    kit.broker.subscribe('$events/#', ({ topic, qos, payload }) =>
      messages.push({ topic, qos, clientid: JSON.parse(String(payload)).clientid })
    );
    await kit.broker.rules.create({ id: 'one', sql: 'SELECT * FROM "$events/message_publish"', actions: [] });
    const client = await kit.broker.connect({ clientId: 'dev' });
    assert.deepEqual(messages, [{ topic: '$events/client_connected', qos: 1, clientid: 'dev' }]);
    assert.equal((await kit.broker.rules.get('one'))!.counters.matched, 0);
    await client.disconnect();
  });

  it('refuses unknown options of rules', async () => {
    const wrong = [
      [{ rule: [] }, 'OPTION_UNKNOWN'],
      [{ rules: {} }, 'OPTION_INVALID'],
      [{ rules: [{ sql: 'x', actions: [] }] }, 'OPTION_INVALID'],
      [{ ignoreSysMessage: 'on' }, 'OPTION_INVALID']
    ] as const;
    for (const [rules, code] of wrong)
      await assert.rejects(ruleKit({ rules } as never), { code }, JSON.stringify(rules));
    await assert.rejects(ruleKit({ rules: { events: { client_conected: 'on' } } }), {
      code: 'OPTION_INVALID'
    });
    await assert.rejects(ruleKit({ 'rule_engine.x': 'on' } as never), { code: 'OPTION_UNKNOWN' });
  });
});
