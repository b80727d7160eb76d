import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SinkType } from '../../lib/adapter.ts';
import type { TestBroker } from '../../lib/testing/index.ts';
import { AppSink } from './app-sink.ts';
import { actionKind, ruleKit, TEXT } from './support.ts';

const SQL = 'SELECT payload.n as n FROM "a"';
const ACTIONS = [{ name: 'app_sink', params: { topic: 't' } }];

/** A sink of an app, whose `open` does not resolve while `isHeld`. */
class SlowSink extends AppSink {
  isHeld = true;
  release: () => void = () => undefined;

  override async open(setup: Parameters<SinkType['open']>[0]) {
    if (this.isHeld) await new Promise<void>((resolve) => Object.assign(this, { release: resolve }));
    return super.open(setup);
  }
}

/** The outcome of a promise, once time has passed. */
async function outcomeAfter(time: string, { clock }: TestBroker, promise: Promise<unknown>) {
  const outcome = promise.then(
    () => 'resolved',
    (error: Error) => error.message
  );
  await clock.advance(time);
  return Promise.race([outcome, Promise.resolve('pending')]);
}

describe('a sink that does not open', () => {
  it('fails its rule after 30 s, which blocks no other change, and is closed if it opens later', async () => {
    const sink = new SlowSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { rules } = kit.broker;
    await rules.actions(); // loads the code
    const created = rules.create({ id: 'r', sql: SQL, actions: ACTIONS });
    const next = rules.create({ id: 'other', sql: SQL, actions: ['do_nothing'] });
    assert.match(await outcomeAfter('31s', kit, created), /^action app_sink_\d+ of rule r is not open after 30000 ms$/);
    assert.equal((await next).state, 'connected');
    sink.release();
    await kit.clock.settle();
    assert.deepEqual([sink.opened, sink.closed], [1, 1]);
  });

  it('holds up neither the start of the broker nor its stop, and opens again at the next start', async () => {
    const sink = new SlowSink();
    sink.isHeld = false;
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    await kit.broker.rules.create({ id: 'r', sql: SQL, actions: ACTIONS });
    await kit.broker.stop();
    sink.isHeld = true;
    await kit.broker.start();
    await kit.clock.settle();
    assert.equal(await outcomeAfter('1s', kit, kit.broker.stop()), 'resolved');
    sink.release();
    await kit.clock.settle();
    assert.deepEqual([sink.opened, sink.closed], [2, 2]);
    sink.isHeld = false;
    await kit.broker.start();
    await kit.broker.publish('a', '{"n":2}');
    await kit.clock.settle();
    assert.deepEqual(sink.sent, ['t: {"n":2}']);
  });

  it('reports no error if the broker is stopped while a sink opens', async () => {
    const sink = new SlowSink();
    sink.isHeld = false;
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const errors: unknown[] = [];
    kit.broker.on('error', (event) => errors.push(event));
    await kit.broker.rules.create({ id: 'r', sql: SQL, actions: ACTIONS });
    await kit.broker.stop();
    sink.isHeld = true;
    await kit.broker.start();
    await kit.broker.stop();
    sink.release();
    await kit.clock.settle();
    assert.deepEqual([errors, sink.opened, sink.closed], [[], 2, 2]);
  });

  it('disconnects its rule after a restart of the broker, until it opens', async () => {
    const sink = new AppSink();
    const open = sink.open.bind(sink);
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { rules } = kit.broker;
    await rules.create({ id: 'r', sql: SQL, actions: ACTIONS });
    await kit.broker.stop();
    sink.open = () => Promise.reject(new Error('no server'));
    await kit.broker.start();
    await kit.clock.settle();
    const rule = await rules.get('r');
    assert.deepEqual(
      [rule?.state, rule?.reason],
      ['disconnected', 'the action "app_sink" cannot be created: no server']
    );
    sink.open = open;
    await kit.clock.advance('61s');
    await kit.broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    assert.deepEqual([(await rules.get('r'))?.state, sink.sent], ['connected', ['t: {"n":1}']]);
  });

  it('keeps a rule connected after a restart if only its previous actions used the sink', async () => {
    const [old, current] = ['old', 'current'].map((name) => Object.assign(new AppSink(), { name }));
    await using kit = await ruleKit({ streams: { sinks: [old, current] } });
    const { rules } = kit.broker;
    old.answer = () => {
      throw new Error('down');
    };
    await rules.create({ id: 'r', sql: SQL, actions: [{ name: 'old', params: { topic: 't' } }] });
    await kit.broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    await rules.update('r', { actions: [{ name: 'current', params: { topic: 't' } }] });
    await kit.broker.stop();
    old.open = () => Promise.reject(new Error('no server'));
    await kit.broker.start();
    await kit.clock.settle();
    assert.equal((await rules.get('r'))?.state, 'connected');
  });

  it('closes a sink that cannot be opened again for its rule, and whose last output has been sent meanwhile', async () => {
    const sink = new AppSink();
    await using kit = await ruleKit({ streams: { sinks: [sink] } });
    const { rules } = kit.broker;
    sink.answer = () => {
      throw new Error('down');
    };
    await rules.create({ id: 'r', sql: SQL, actions: ACTIONS });
    await kit.broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    await rules.update('r', { isEnabled: false });
    let fail: (error: Error) => void = () => undefined;
    sink.open = () => new Promise((_resolve, reject) => (fail = reject));
    sink.answer = () => undefined;
    const enabling = outcomeAfter('5s', kit, rules.update('r', { isEnabled: true }));
    await kit.clock.settle();
    assert.equal(await enabling, 'pending');
    assert.deepEqual([sink.sent, sink.closed], [['t: {"n":1}'], 0]);
    fail(new Error('no server'));
    await kit.clock.settle();
    assert.deepEqual([(await rules.get('r'))?.state, sink.closed], ['idle', 1]);
  });

  it('fails an action of the app that cannot be created within 30 s', async () => {
    let closed = 0;
    let release: (made: { run(): void; close(): void }) => void = () => undefined;
    const made = new Promise<{ run(): void; close(): void }>((resolve) => (release = resolve));
    const type = { name: 'slow', title: TEXT, description: TEXT, create: () => made };
    await using kit = await ruleKit({ rules: { actions: [type, actionKind('quick', () => undefined)] } });
    const { rules } = kit.broker;
    const created = rules.create({ id: 'r', sql: SQL, actions: ['quick', 'slow'] });
    assert.match(await outcomeAfter('31s', kit, created), /^action slow_\d+ of rule r is not open after 30000 ms$/);
    release({ run: () => undefined, close: () => void closed++ });
    await kit.clock.settle();
    assert.equal(closed, 1);
  });
});

describe('a sink of a broker rule that is defined again', () => {
  it('receives the outputs from the next start on, in place of the previous one', async () => {
    const [old, current] = [new AppSink(), new AppSink()];
    await using kit = await ruleKit({ streams: { sinks: [old] } });
    const { broker } = kit;
    await broker.rules.create({ id: 'r', sql: SQL, actions: ACTIONS });
    await broker.streams.deleteType('sink', 'app_sink');
    await broker.streams.createSink(current);
    await broker.stop();
    await broker.start();
    await broker.publish('a', '{"n":1}');
    await kit.clock.settle();
    assert.deepEqual([old.opened, old.closed, old.sent], [1, 1, []]);
    assert.deepEqual([current.opened, current.sent], [1, ['t: {"n":1}']]);
  });
});
