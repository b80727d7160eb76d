// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of rules
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Message, memoryStore } from '../../lib/index.ts';
import type { TestBroker } from '../../lib/testing/index.ts';
import { actionKind, republish, ruleKit, take } from './support.ts';

/** Record the messages that are published to a filter from now on. */
function messagesOf({ broker }: TestBroker, filter: string): Message[] {
  const messages: Message[] = [];
  broker.subscribe(filter, (message) => messages.push(message));
  return messages;
}

describe('The action republish', () => {
  it('publishes to the topic of its template, with the payload of its template', async () => {
    await using kit = await ruleKit();
    const messages = messagesOf(kit, 'out/#');
    await kit.broker.rules.create({
      sql: 'SELECT clientid, payload.v as v FROM "in/#"',
      actions: [republish('out/${clientid}', 'v=${v}, ${absent}', { target_qos: -1 })]
    });
    const client = await kit.broker.connect({ clientId: 'dev' });
    await client.publish('in/a', '{"v": {"w": 1}}', { qos: 1 });
    const [message] = messages;
    assert.deepEqual(
      [message.topic, String(message.payload), message.qos, message.retain],
      ['out/dev', 'v={"w":1}, undefined', 1, false]
    );
    assert.match(message.clientId, /^republish_\d+$/);
    await client.disconnect();
  });

  it('passes on retain flag, MQTT 5.0 properties and bytes of a message', async () => {
    await using kit = await ruleKit();
    await kit.broker.rules.create({
      sql: 'SELECT payload FROM "in"',
      actions: [
        republish('out', '${payload}'),
        republish('plain', '${payload}', { target_retain: false, mqtt_properties: false })
      ]
    });
    const payload = Buffer.from([0, 255, 128]);
    const properties = {
      contentType: 'image/x',
      responseTopic: 'r',
      correlationData: Buffer.from([1, 2]),
      userProperties: [
        ['a', '1'],
        ['a', '2']
      ] as const
    };
    const [out, plain] = ['out', 'plain'].map((topic) => messagesOf(kit, topic));
    await kit.broker.publish({ topic: 'in', payload, retain: true, properties });
    assert.deepEqual([out[0].payload, out[0].retain, out[0].properties], [payload, true, properties]);
    assert.deepEqual([plain[0].payload, plain[0].retain, plain[0].properties], [payload, false, {}]);
    assert.deepEqual((await kit.broker.retained.get('out'))?.payload, payload);
  });

  it('uses QoS 0 and no retain flag for events without a message', async () => {
    await using kit = await ruleKit();
    const messages = messagesOf(kit, 'out');
    await kit.broker.rules.create({
      sql: 'SELECT clientid FROM "$events/client_connected"',
      actions: [republish('out', '${clientid}', { target_qos: -1 })]
    });
    const client = await kit.broker.connect({ clientId: 'dev' });
    await kit.clock.advance('1s');
    assert.deepEqual(
      messages.map(({ payload, qos, retain }) => [String(payload), qos, retain]),
      [['dev', 0, false]]
    );
    await client.disconnect();
  });

  it('refuses messages that it caused itself, so that a rule that republishes to its own topic delivers one copy', async () => {
    await using kit = await ruleKit();
    const messages = messagesOf(kit, 't/#');
    const { id } = await kit.broker.rules.create({
      sql: 'SELECT payload FROM "t/#"',
      actions: [republish('t/b', '${payload}')]
    });
    await kit.broker.publish('t/a', 'x');
    assert.deepEqual(messages.map(({ topic }) => topic).sort(), ['t/a', 't/b']);
    const { actions, counters } = (await kit.broker.rules.get(id))!;
    assert.deepEqual([counters.passed, actions[0].counters.success, actions[0].counters.failed], [2, 1, 1]);
  });

  it('adds its name to the headers of its messages', async () => {
    await using kit = await ruleKit();
    const { rules } = kit.broker;
    const { actions } = await rules.create({
      sql: 'SELECT payload FROM "t"',
      actions: [republish('out', '${payload}')]
    });
    await rules.create({ id: 'second', sql: 'SELECT headers.republish_by AS by FROM "t", "out"', actions: [] });
    const outputs = rules.outputs('second');
    await kit.broker.publish('t', 'x');
    assert.deepEqual(await take(outputs, 2), [{ by: actions[0].id }, {}]);
  });

  it('refuses chains of more than 16 actions', async () => {
    await using kit = await ruleKit();
    const messages = messagesOf(kit, 'hop/#');
    for (let at = 0; at < 20; at++)
      await kit.broker.rules.create({
        sql: `SELECT payload FROM "hop/${at}"`,
        actions: [republish(`hop/${at + 1}`, '${payload}')]
      });
    await kit.broker.publish('hop/0', 'x');
    assert.equal(messages.length, 17);
  });

  it('refuses more than 1000 messages for one event', async () => {
    await using kit = await ruleKit();
    let count = 0;
    kit.broker.on('message.publish', () => count++);
    for (let at = 0; at < 8; at++)
      await kit.broker.rules.create({ sql: 'SELECT payload FROM "#"', actions: [republish('t', '${payload}')] });
    await kit.broker.publish('t', 'x');
    assert.ok(count > 500 && count <= 1001, `${count} messages`);
  });

  it('fails for a topic with wildcards, and for a message that a hook refuses', async () => {
    await using kit = await ruleKit();
    kit.broker.hook('publish', ({ message }) => (message.topic === 'forbidden' ? false : undefined));
    const { id } = await kit.broker.rules.create({
      sql: 'SELECT payload FROM "in"',
      actions: [republish('a/#', 'x'), republish('forbidden', 'x'), republish('out', 'x')]
    });
    const messages = messagesOf(kit, 'out');
    await kit.broker.publish('in', 'x');
    const counters = (await kit.broker.rules.get(id))!.actions.map((action) => action.counters);
    assert.deepEqual(
      counters.map(({ success, failed }) => [success, failed]),
      [
        [0, 1],
        [0, 1],
        [1, 0]
      ]
    );
    assert.equal(messages.length, 1);
  });

  it('fails for topics that a device must not choose, because only the template can begin one with "$"', async () => {
    await using kit = await ruleKit();
    const topics = messagesOf(kit, '#');
    const systems = messagesOf(kit, '$fixed/#');
    const { id } = await kit.broker.rules.create({
      sql: 'SELECT payload.to as to FROM "in"',
      actions: ['${to}', '$${to}', '$${to}/x', '$fixed/${to}', 'out/${to}'].map((topic) => republish(topic, 'x'))
    });
    for (const to of ['$SYS/brokers', '$events/client_connected', '$share/g/t', '$delayed/9/t', 'fixed/a', '$fixed/a'])
      await kit.broker.publish('in', JSON.stringify({ to }));
    for (const to of ['', '+', 'a/#', 'a\0b', 'a'.repeat(65_536), '\ud800'])
      await kit.broker.publish('in', JSON.stringify({ to }));
    await kit.broker.publish('in', JSON.stringify({ to: 'a/$b' }));
    const counters = (await kit.broker.rules.get(id))!.actions.map((action) => action.counters.success);
    // `fixed/a` and `a/$b`; none with an own level; those without a wildcard, NUL, an unpaired surrogate and more than 65,535 bytes
    assert.deepEqual(counters, [2, 0, 0, 8, 8]);
    assert.deepEqual(new Set(topics.map(({ topic }) => topic.split('/')[0])), new Set(['in', 'fixed', 'a', 'out']));
    assert.equal(systems.length, 8);
  });

  it('delays the acknowledgement of the publisher until its message is committed', async () => {
    const store = memoryStore();
    await using kit = await ruleKit({ store });
    await kit.broker.rules.create({
      sql: 'SELECT payload FROM "in"',
      actions: [republish('out', '${payload}', { target_retain: true })]
    });
    const client = await kit.broker.connect({ clientId: 'dev' });
    await client.publish('in', 'x', { qos: 1 });
    await client.disconnect();
    await kit.broker.stop();
    await using later = await ruleKit({ store });
    assert.equal(String((await later.broker.retained.get('out'))?.payload), 'x');
  });
});

describe('The actions of a rule', () => {
  it('runs actions in order, and continues after a failure', async () => {
    await using kit = await ruleKit();
    const seen: string[] = [];
    const fail = () => {
      throw new Error('no');
    };
    const { id } = await kit.broker.rules.create({
      sql: 'SELECT * FROM "a"',
      actions: [() => seen.push('1'), fail, () => seen.push('3')]
    });
    await kit.broker.publish('a', 'x');
    assert.deepEqual(seen, ['1', '3']);
    const { actions } = (await kit.broker.rules.get(id))!;
    assert.deepEqual(
      actions.map(({ counters }) => counters),
      [
        { taken: 1, success: 1, failed: 0 },
        { taken: 1, success: 0, failed: 1 },
        { taken: 1, success: 1, failed: 0 }
      ]
    );
    assert.equal(kit.broker.metrics.counter('actions.success'), 2);
    assert.equal(kit.broker.metrics.counter('actions.failure'), 1);
    assert.equal(kit.broker.metrics.counter('rules.matched'), 1);
  });

  it('runs the fallbacks of an action after a failure, including nested ones', async () => {
    await using kit = await ruleKit();
    const messages = messagesOf(kit, 'out/#');
    await kit.broker.rules.create({
      sql: 'SELECT payload FROM "a"',
      onActionFailed: 'stop',
      actions: [
        {
          ...republish('bad/#', 'x'),
          fallbacks: [{ ...republish('worse/#', 'x'), fallbacks: [republish('out/1', 'x')] }, republish('out/2', 'x')]
        },
        republish('out/3', 'x')
      ]
    });
    await kit.broker.publish('a', 'x');
    assert.deepEqual(
      messages.map(({ topic }) => topic),
      ['out/1', 'out/2']
    );
  });

  it('waits for the outcome of an earlier action only if a failure stops the others', async () => {
    for (const [onActionFailed, before] of [
      ['stop', ['slow']],
      ['continue', ['slow', 'next']]
    ] as const) {
      await using kit = await ruleKit();
      const seen: string[] = [];
      let finish = () => {};
      const slow = () => {
        seen.push('slow');
        return new Promise<void>((resolve) => (finish = resolve));
      };
      await kit.broker.rules.create({
        sql: 'SELECT * FROM "a"',
        onActionFailed,
        actions: [slow, () => seen.push('next')]
      });
      await kit.broker.publish('a', 'x');
      assert.deepEqual(seen, before);
      finish();
      await Promise.resolve();
      await Promise.resolve();
      assert.deepEqual(seen, ['slow', 'next']);
    }
  });

  it('reports failures once a minute for each action and cause', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const reported: string[] = [];
    broker.on('error', ({ error, during }) => reported.push(`${during}: ${error.message}`));
    let cause = 0;
    const fail = (why: () => string) => () => {
      throw new Error(why());
    };
    const [first, second] = [fail(() => `status ${cause}`), fail(() => 'no')];
    const { id } = await broker.rules.create({ id: 'r', sql: 'SELECT * FROM "a"', actions: [first, second] });
    const [a, b] = (await broker.rules.get(id))!.actions.map((action) => `action ${action.id} of rule r`);
    for (cause of [401, 401, 302, 401]) await broker.publish('a', 'x');
    assert.deepEqual(reported.splice(0), [`${a}: status 401`, `${b}: no`, `${a}: status 302`]);
    for (cause = 1; cause <= 50; cause++) await broker.publish('a', 'x');
    assert.equal(reported.splice(0).length, 8, 'ten causes of an action in a minute');
    await kit.clock.advance('61s');
    await broker.publish('a', 'x');
    assert.deepEqual(reported, [`${a}: status 51`, `${b}: no`]);
  });

  it('fails immediately while a thousand calls of one function are in progress', async () => {
    await using kit = await ruleKit();
    const { id } = await kit.broker.rules.create({
      sql: 'SELECT * FROM "a"',
      actions: [() => new Promise(() => undefined)]
    });
    for (let at = 0; at < 1001; at++) await kit.broker.publish('a', 'x');
    assert.deepEqual((await kit.broker.rules.get(id))!.actions[0].counters, { taken: 1001, success: 0, failed: 1 });
  });

  it('reports a close() of an action that rejects', async () => {
    const type = actionKind(
      'note',
      () => undefined,
      async () => {
        throw new Error('not closed');
      }
    );
    await using kit = await ruleKit({ rules: { actions: [type] } });
    const errors: string[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error.message));
    const { id } = await kit.broker.rules.create({ sql: 'SELECT topic FROM "a"', actions: ['note'] });
    await kit.broker.rules.delete(id);
    await kit.clock.settle();
    assert.deepEqual(errors, ['not closed']);
  });

  it('supports action types of the app, with parameters that are checked', async () => {
    const seen: unknown[] = [];
    let closed = 0;
    const type = {
      name: 'store_reading',
      title: { en: 'Store', zh: '存储' },
      description: { en: 'Store a reading', zh: '存储读数' },
      params: {
        table: {
          type: 'string' as const,
          required: true,
          title: { en: 'Table', zh: '表' },
          description: { en: 'Table', zh: '表' }
        }
      },
      make: ({ table }: { readonly table?: unknown }) => ({
        run: (output: unknown) => seen.push([table, output]),
        close: () => closed++
      })
    };
    await using kit = await ruleKit({ rules: { actions: [type] } });
    const { rules } = kit.broker;
    const { id } = await rules.create({
      sql: 'SELECT topic FROM "a"',
      actions: [{ name: type.name, params: { table: 't' } }]
    });
    await kit.broker.publish('a', 'x');
    assert.deepEqual(seen, [['t', { topic: 'a' }]]);
    await rules.delete(id);
    assert.equal(closed, 1);
    await assert.rejects(rules.create({ sql: 'SELECT * FROM "a"', actions: ['store_reading'] }), {
      code: 'PARAM_REQUIRED'
    });
    assert.deepEqual(
      (await rules.actions()).map(({ name }) => name),
      ['inspect', 'republish', 'do_nothing', 'store_reading', 'log', 'memory', 'mqtt', 'nop'] // and the sinks of streams
    );
  });
});

describe('The action inspect', () => {
  it('emits an event with output, columns and parameters', async () => {
    await using kit = await ruleKit();
    const inspected = kit.broker.nextEvent('rule.inspected');
    await kit.broker.rules.create({
      id: 'r',
      sql: 'SELECT qos FROM "a"',
      actions: [{ name: 'inspect', params: { a: 1 } }]
    });
    await kit.broker.publish('a', 'x');
    const { rule, output, columns, params } = await inspected;
    assert.deepEqual([rule, output, params], ['r', '{"qos":0}', '{"a":1}']);
    assert.equal(JSON.parse(columns).topic, 'a');
  });
});
