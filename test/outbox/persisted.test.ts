import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, createBroker, type Outbox } from '../../lib/index.ts';
import { checkStore } from '../../lib/tools/check.ts';
import { Lives } from '../store/support.ts';
import { Target, turns } from './target.ts';

/** Opens an outbox to which each message below `events/` is added. */
function opened(broker: Broker, target: Target, isPersisted = true): Outbox {
  const outbox = broker.outboxes.open({ name: 'target', send: target.send, isPersisted });
  broker.on('message.publish', ({ message }) => outbox.add(message.topic, `${message.payload}`), {
    filter: 'events/#'
  });
  return outbox;
}

/** The records of entries in the store. */
async function records(lives: Lives): Promise<string[]> {
  return (await lives.store.contents()).filter((text) => text.includes('outbox'));
}

describe('A persisted outbox', () => {
  it('commits each entry before the publisher is answered, and sends it after a crash with the same id', async () => {
    await using lives = await new Lives().begin();
    lives.store.turnsAfter = () => 3;
    const target = new Target();
    opened(lives.kit.broker, target);
    const writer = await lives.connect({ clientId: 'w' });
    for (let at = 0; at < 20; at++) await writer.publish('events/a', `${at}`, { qos: at % 2 === 0 ? 1 : 2 });
    await lives.kill();
    const outbox = opened(lives.kit.broker, target);
    const [id] = target.ids;
    target.answer = () => undefined;
    await outbox.idle();
    assert.deepEqual(target.contents, ['0', ...Array.from({ length: 20 }, (_, at) => `${at}`)]);
    assert.equal(target.ids[1], id);
    await lives.kit.clock.advance(100);
    assert.deepEqual(await records(lives), []);
  });

  it('sends nothing before it is committed', async () => {
    await using lives = await new Lives().begin();
    const target = new Target(() => undefined);
    const outbox = opened(lives.kit.broker, target);
    let isHeld = true;
    lives.store.turnsBefore = () => (isHeld ? 50 : 0);
    outbox.add('a', 'a1');
    await turns();
    assert.deepEqual(target.contents, []);
    isHeld = false;
    await lives.kit.clock.settle();
    await outbox.idle();
    assert.deepEqual(target.contents, ['a1']);
  });

  it('never repeats entries that were delivered before a stop', async () => {
    await using lives = await new Lives().begin();
    const target = new Target(() => undefined);
    const outbox = opened(lives.kit.broker, target);
    outbox.add('a', 'a1');
    await lives.kit.clock.settle();
    await outbox.idle();
    await lives.restart();
    await opened(lives.kit.broker, target).idle();
    assert.deepEqual(target.contents, ['a1']);
  });

  it('preserves text and bytes, keys and times', async () => {
    await using lives = await new Lives().begin();
    const down = new Target();
    const first = opened(lives.kit.broker, down);
    first.add('', 'grüße');
    first.add('k\u0000/ü', Buffer.from([0, 255, 128]));
    const before = [...first.entries()].map(({ id, key, content, addedAt }) => ({ id, key, content, addedAt }));
    await lives.crash(5_000);
    const after = [...opened(lives.kit.broker, down).entries()];
    assert.deepEqual(
      after.map(({ id, key, content, addedAt }) => ({ id, key, content, addedAt })),
      before
    );
    assert.deepEqual((await checkStore(await lives.store.copy())).findings, []);
  });

  it('keeps entries whose outbox is not open, lists them, and deletes them on request', async () => {
    await using lives = await new Lives().begin();
    const outbox = opened(lives.kit.broker, new Target());
    outbox.add('a', 'a1');
    outbox.add('b', 'b1');
    await lives.crash();
    const { outboxes } = lives.kit.broker;
    assert.deepEqual(outboxes.kept(), [{ name: 'target', size: 2 }]);
    assert.equal(outboxes.delete('target'), 2);
    assert.deepEqual(outboxes.kept(), []);
    await lives.crash();
    assert.deepEqual(lives.kit.broker.outboxes.kept(), []);
    assert.deepEqual(await records(lives), []);
  });

  it('accepts nothing before its stored entries are loaded', async () => {
    await using lives = await new Lives().begin();
    opened(lives.kit.broker, new Target()).add('a', 'before');
    await lives.kit.clock.advance(100);
    const target = new Target(() => undefined);
    await using broker = createBroker({ store: await lives.store.copy() });
    const outbox = opened(broker, target);
    assert.throws(() => outbox.add('a', 'early'), { code: 'BROKER_NOT_STARTED' });
    await broker.start();
    outbox.add('a', 'after');
    while (outbox.size > 0) await turns();
    assert.deepEqual(target.contents, ['before', 'after']);
  });

  it('continues with its entries when it is closed and opened again', async () => {
    await using lives = await new Lives().begin();
    const { broker } = lives.kit;
    const first = new Target();
    const outbox = opened(broker, first);
    outbox.add('a', 'a1');
    outbox.add('a', 'a2');
    await lives.kit.clock.settle();
    await turns();
    assert.equal(first.pending.length, 1);
    outbox.close();
    assert.equal(first.pending[0].signal.aborted, true);
    const second = new Target(() => undefined);
    const again = broker.outboxes.open({ name: 'target', send: second.send, isPersisted: true });
    await again.idle();
    assert.deepEqual(second.contents, ['a1', 'a2']);
    await lives.kit.clock.advance(100);
    assert.deepEqual(await records(lives), []);
  });

  it('writes its entries again if a commit fails, and refuses the publisher meanwhile', async () => {
    await using lives = await new Lives().begin();
    const { broker } = lives.kit;
    broker.on('error', () => undefined);
    const target = new Target(() => undefined);
    const outbox = opened(broker, target);
    const writer = await lives.connect({ clientId: 'w' });
    let failures = 1;
    lives.store.fault = () => (failures-- > 0 ? 'rejects' : undefined);
    await assert.rejects(writer.publish('events/a', 'a1', { qos: 1 }), { code: 'PUBLISH_REFUSED' });
    await lives.kit.clock.advance('10s');
    await outbox.idle();
    assert.deepEqual(target.contents, ['a1']);
    assert.equal(outbox.size, 0);
  });

  it('sends as many entries as possible while the broker stops, and leaves the rest for the next start', async () => {
    await using lives = await new Lives().begin();
    const target = new Target((contents) => (contents[0].startsWith('stuck') ? new Error('refused') : undefined));
    const outbox = opened(lives.kit.broker, target);
    outbox.add('a', 'stuck');
    await lives.kit.clock.settle();
    await outbox.idle();
    for (let at = 0; at < 20; at++) outbox.add('b', `${at}`);
    await lives.restart();
    assert.equal(target.contents.filter((content) => content !== 'stuck').length, 20);
    target.answer = () => undefined;
    await opened(lives.kit.broker, target).idle();
    assert.equal(target.contents.at(-1), 'stuck');
  });

  it('drains within the time limit of the stop, however long the target takes', async () => {
    await using lives = await new Lives().begin();
    const target = new Target();
    const outbox = opened(lives.kit.broker, target);
    outbox.add('a', 'a1');
    await lives.kit.clock.settle();
    await turns();
    await lives.kit.broker.stop({ timeoutMs: 20 });
    assert.equal(target.pending[0].signal.aborted, true);
    assert.equal(outbox.state, 'stopped');
    assert.equal(outbox.counters.failed, 0);
    target.answer = () => undefined;
    await lives.kit.broker.start();
    await outbox.idle();
    assert.deepEqual(target.contents, ['a1', 'a1']);
    assert.equal(target.ids[0], target.ids[1]);
  });
});

describe('An outbox that is not persisted', () => {
  it('keeps its entries in memory over a stop and a start of the broker, and writes nothing', async () => {
    await using lives = await new Lives().begin();
    const { broker } = lives.kit;
    const target = new Target(() => new Error('refused'));
    const outbox = opened(broker, target, false);
    outbox.add('a', 'a1');
    await outbox.idle();
    await lives.kit.clock.settle();
    assert.deepEqual(await records(lives), []);
    const errors: string[] = [];
    broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    await broker.stop();
    const lost = 'stopping: entries that are not sent and not persisted are lost when the process ends: 1, target';
    assert.deepEqual(errors, [lost]);
    target.answer = () => undefined;
    await broker.start();
    await outbox.idle();
    assert.deepEqual(target.contents, ['a1', 'a1']);
    await broker.stop();
    assert.deepEqual(errors, [lost], 'nothing waits at the second stop');
  });
});
