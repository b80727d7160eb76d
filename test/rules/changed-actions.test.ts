import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SinkType } from '../../lib/adapter.ts';
import { memoryStore, SendError } from '../../lib/index.ts';
import { TargetQueue } from '../../lib/rules/targets/target-queue.ts';
import { until } from '../support/until.ts';
import { unreachableSink } from './app-sink.ts';
import { actionKind, FakeTarget, RESOURCE, ruleKit, TO_FAKE } from './support.ts';

const SQL = 'SELECT payload.n as n FROM "a"';

function to(topic: string, more: object = {}) {
  return { name: 'app_sink', params: { topic, ...more } };
}

/** A broker with a rule whose sink cannot be reached, and an output that waits for it. */
async function withWaiting() {
  const sink = unreachableSink();
  const kit = await ruleKit({ streams: { sinks: [sink] } });
  const { broker } = kit;
  const created = await broker.rules.create({ id: 'r', sql: SQL, actions: [to('before')] });
  await broker.publish('a', '{"n":1}');
  await kit.clock.settle();
  return { kit, broker, sink, created, [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]() };
}

describe('A changed action with a sink', () => {
  it('sends the outputs that wait for it', async () => {
    await using made = await withWaiting();
    const { kit, broker, sink, created } = made;
    const changed = await broker.rules.update('r', { actions: [to('after')] });
    assert.equal(changed.actions[0].id, created.actions[0].id);
    await broker.publish('a', '{"n":2}');
    sink.answer = () => undefined;
    await kit.clock.advance('1m');
    assert.deepEqual(sink.sent, ['after: {"n":1}', 'after: {"n":2}']);
    assert.deepEqual([sink.opened, sink.closed], [2, 1]);
    assert.deepEqual((await broker.rules.get('r'))?.actions[0].counters, { taken: 2, success: 2, failed: 0 });
  });

  it('sends the persisted outputs that wait for it after a restart', async () => {
    const sink = unreachableSink();
    const options = { store: memoryStore(), streams: { sinks: [sink] } };
    {
      await using kit = await ruleKit(options);
      const actions = ['a', 'b'].map((topic) => to(topic, { enableCache: true }));
      await kit.broker.rules.create({ id: 'r', sql: SQL, actions });
      await kit.broker.publish('a', '{"n":1}', { qos: 1 });
      const changed = ['c/{{.n}}', 'd'].map((topic) => to(topic, { enableCache: true }));
      await kit.broker.rules.update('r', { actions: changed });
    }
    sink.answer = () => undefined;
    await using kit = await ruleKit(options);
    await until(() => sink.sent.length === 2);
    assert.deepEqual(sink.sent.toSorted(), ['c/1: {"n":1}', 'd: {"n":1}']);
    assert.equal(kit.broker.outboxes.size, 0);
  });

  it('sends no value of its former templates, which may be secrets of another server or name it', async () => {
    const sent: string[] = [];
    let isDown = true;
    const sink: SinkType = {
      name: 'to_server',
      about: 'For tests.',
      properties: {
        url: { type: 'string', isTemplate: 'url', about: 'URL.' },
        headers: { type: 'any', isTemplate: true, isSecret: true, about: 'Headers.' }
      },
      open: () => ({
        send(item) {
          if (isDown) throw new Error('down');
          sent.push(JSON.stringify([item.property('url'), item.property('headers')]));
        },
        close: () => undefined
      })
    };
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { broker } = kit;
    const at = (url: string, token: string) => [
      { name: 'to_server', params: { url, headers: { token, n: '{{.n}}' } } },
      { name: 'to_server', params: { url: `${url}{{.n}}`, headers: { token } } }
    ];
    await broker.rules.create({ id: 'r', sql: SQL, actions: at('http://before/', 'x') });
    await broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    await broker.rules.update('r', { actions: at('http://after/', 'y') });
    isDown = false;
    await kit.clock.advance('1m');
    assert.deepEqual(sent.toSorted(), ['["http://after/",{"token":"y","n":"1"}]', '["http://after/1",{"token":"y"}]']);
    assert.deepEqual(
      [...broker.outboxes].map(({ size }) => size),
      [0, 0]
    );
  });

  it('does not receive outputs if the change is refused', async () => {
    await using made = await withWaiting();
    const { kit, broker, sink } = made;
    await assert.rejects(broker.rules.update('r', { actions: [to('after'), { name: 'none' }] }), {
      code: 'ACTION_NOT_FOUND'
    });
    await assert.rejects(broker.rules.update('r', { actions: [to('after'), to('{{')] }), { code: 'PARAM_INVALID' });
    sink.answer = () => undefined;
    await kit.clock.advance('1m');
    assert.deepEqual(sink.sent, ['before: {"n":1}']);
    assert.deepEqual([sink.opened, sink.closed], [3, 2]);
  });

  it('keeps the outputs that wait if the limits of its queue change', async () => {
    const sink = unreachableSink();
    await using kit = await ruleKit({ store: memoryStore(), streams: { sinks: [sink] } });
    const { broker } = kit;
    await broker.rules.create({ id: 'r', sql: SQL, actions: [to('t')] });
    for (const [n, enableCache] of [true, false].entries()) {
      await broker.publish('a', `{"n":${n}}`);
      await kit.clock.settle();
      await broker.rules.update('r', { actions: [to('t', { enableCache })] });
    }
    sink.answer = () => undefined;
    await kit.clock.advance('1m');
    assert.deepEqual(sink.sent, ['t: {"n":0}', 't: {"n":1}']);
    assert.deepEqual((await broker.rules.get('r'))?.actions[0].counters, { taken: 2, success: 2, failed: 0 });
  });

  it('closes its former target and its queue once nothing waits and the rule is disabled', async () => {
    await using made = await withWaiting();
    const { kit, broker, sink } = made;
    for (const topic of ['b', 'c']) await broker.rules.update('r', { actions: [to(topic)] });
    await broker.rules.update('r', { isEnabled: false });
    assert.deepEqual([sink.opened, sink.closed], [3, 2]);
    sink.answer = () => undefined;
    await kit.clock.advance('1m');
    assert.deepEqual([sink.sent, sink.opened, sink.closed, [...broker.outboxes]], [['c: {"n":1}'], 3, 3, []]);
  });
});

describe('A changed action with a resource', () => {
  it('counts the outcome of outputs that wait, and runs its fallbacks, after a restart', async () => {
    const target = new FakeTarget();
    const noted: unknown[] = [];
    target.onSend = () => {
      throw new Error('down');
    };
    const rules = { resources: [target.type(true)], actions: [actionKind('note', (output) => noted.push(output))] };
    const options = { store: memoryStore(), rules };
    const action = { ...TO_FAKE, fallbacks: ['note'] };
    {
      await using kit = await ruleKit(options);
      await kit.broker.rules.resources.create(RESOURCE);
      await kit.broker.rules.resources.create({ ...RESOURCE, id: 'other' });
      await kit.broker.rules.create({ id: 'r', sql: SQL, actions: [action] });
      await kit.broker.publish('a', '{"n":1}', { qos: 1 });
      await kit.broker.rules.update('r', { actions: [{ ...action, params: { $resource: 'other' } }] });
    }
    target.onSend = () => {
      throw new SendError('never', { isFinal: true });
    };
    await using kit = await ruleKit(options);
    await until(() => noted.length === 1);
    assert.deepEqual(noted, [{ n: 1 }]);
    assert.deepEqual((await kit.broker.rules.get('r'))?.actions[0].counters, { taken: 1, success: 0, failed: 1 });
  });
});

describe('A queue whose limits change', () => {
  it('reports each entry once, also one that is too large for the new limits', async () => {
    await using kit = await ruleKit();
    const outcomes: string[] = [];
    const queue = new TargetQueue(kit.broker.outboxes, 'q', {
      what: 'the target',
      send: () => Promise.reject(new Error('down')),
      settledEarlier: () => outcomes.push('earlier')
    });
    queue.change({ maxEntries: 3 });
    const head = { actionId: 'a', origin: undefined };
    const sizes = [1, 10_000, 1, 1];
    for (const [n, size] of sizes.entries())
      queue.add('r', head, 'x'.repeat(size), (_, error) => outcomes.push(`${n}: ${error?.message}`), 0);
    queue.change({ maxEntries: 1, maxBytes: 2_000 });
    const dropped = 'the entry was dropped: overflow';
    assert.deepEqual(outcomes, [`0: ${dropped}`, `1: ${dropped}`, `2: ${dropped}`]);
    assert.equal(queue.size, 1);
    queue.close();
  });
});
