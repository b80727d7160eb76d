import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Message } from '../../lib/packets/message.ts';
import type { QoS } from '../../lib/packets/types.ts';
import type { QueueLimits } from '../../lib/session/messages/priority-list.ts';
import type { Queue } from '../../lib/session/messages/queue.ts';
import { PersistedMessage } from '../../lib/store/segment.ts';
import { queueAlone } from '../support/queue.ts';
import { randomSource } from '../topics/slow-matcher.ts';

const message = (topic: string, qos: QoS = 1, payload = '') => Message.from({ topic, qos, payload }, undefined, 0, 0);

function queueOf(limits: Partial<QueueLimits> = {}): { queue: Queue; drops: string[] } {
  const drops: string[] = [];
  const queue = queueAlone({ ...LIMITS, ...limits }, ({ topic, payload }, reason) =>
    drops.push(`${topic}${payload} ${reason}`)
  );
  return { queue, drops };
}

const LIMITS: QueueLimits = {
  maxMqueueLen: 0,
  maxMqueueBytes: 0,
  mqueuePriorities: undefined,
  mqueueDefaultPriority: 'lowest'
};

function push(queue: Queue, ...topics: string[]): void {
  for (const topic of topics) queue.push(message(topic), 1, false, undefined);
}

/** Returns the topics in the order in which they leave. */
function drain(queue: Queue, windowOpen = true): string[] {
  const topics: string[] = [];
  for (let next = queue.shift(windowOpen); next !== undefined; next = queue.shift(windowOpen))
    topics.push(next.message.topic);
  return topics;
}

const PRIORITIES = new Map([
  ['high', 10],
  ['low', 2]
]);

describe('Queue', () => {
  it('behaves as one queue without a priority table', () => {
    const { queue } = queueOf({ mqueueDefaultPriority: 'highest' });
    push(queue, 'c', 'a', 'b', 'a');
    assert.deepEqual(drain(queue), ['c', 'a', 'b', 'a']);
    assert.equal(queue.length, 0);
    assert.equal(queue.bytes, 0);
  });

  it('stores what delivery needs', () => {
    const { queue } = queueOf();
    queue.push(message('a'), 2, true, [4, 5]);
    const { qos, retain, subscriptionIds: ids } = queue.shift(true)!;
    assert.deepEqual({ qos, retain, ids }, { qos: 2, retain: true, ids: [4, 5] });
  });

  it('returns higher priorities first, each in its order, and unlisted topics last by default', () => {
    const { queue } = queueOf({ mqueuePriorities: PRIORITIES });
    push(queue, 'other', 'low', 'high', 'low', 'high', 'other');
    assert.deepEqual(drain(queue), ['high', 'high', 'low', 'low', 'other', 'other']);
  });

  it('returns messages that were handed over before the others of their priority, and counts them together', () => {
    const { queue, drops } = queueOf({ mqueuePriorities: PRIORITIES, maxMqueueLen: 4 });
    const give = (topic: string, payload: string, isFirst: boolean) =>
      queue.push(message(topic, 1, payload), 1, false, undefined, undefined, isFirst);
    for (const [payload, isFirst] of [
      ['1', false],
      ['2', true],
      ['3', false],
      ['4', true]
    ] as const)
      give('low', payload, isFirst);
    give('high', '1', false);
    assert.deepEqual(drops, []);
    give('low', '5', false);
    give('low', '6', true);
    assert.deepEqual(drops, ['low2 queue_full', 'low4 queue_full']);
    queue.limit(LIMITS);
    const left: string[] = [];
    for (let next = queue.shift(true); next !== undefined; next = queue.shift(true))
      left.push(`${next.message.topic}${next.message.payload}`);
    assert.deepEqual(left, ['low6', 'high1', 'low1', 'low3', 'low5']);
    assert.equal(queue.length, 0);
  });

  it('keeps the order and the limit if a listener of a drop publishes while other limits are applied', () => {
    const drops: string[] = [];
    const queue = queueAlone(LIMITS, ({ topic }) => {
      drops.push(topic);
      if (drops.length === 1) push(queue, 'new');
    });
    push(queue, '1', '2', '3', '4', '5', '6');
    queue.limit({ ...LIMITS, maxMqueueLen: 4 });
    assert.deepEqual(drops, ['1', '2', '3']);
    assert.deepEqual(drain(queue), ['4', '5', '6', 'new']);
  });

  it('keeps lower priorities, except QoS 0, while a message of a higher one has no room', () => {
    const { queue } = queueOf({ mqueuePriorities: PRIORITIES });
    const large = message('high', 1, 'x'.repeat(1000));
    queue.push(large, 1, false, undefined);
    push(queue, 'high', 'low', 'other');
    queue.push(message('low', 0, 'zero'), 0, false, undefined);
    const leave = (room: number) => {
      const { message: taken } = queue.shift(true, room) ?? {};
      return taken && `${taken.topic} ${taken.qos}`;
    };
    assert.deepEqual([leave(500), leave(500)], ['low 0', undefined]);
    assert.equal(queue.shift(true, large.bytes)?.message, large);
    assert.deepEqual([leave(500), leave(500), leave(500), leave(500)], ['high 1', 'low 1', 'other 1', undefined]);
  });

  it('returns unlisted topics first if their priority is the highest', () => {
    const { queue } = queueOf({
      mqueuePriorities: new Map([
        ['top', 255],
        ['zero', 0]
      ]),
      mqueueDefaultPriority: 'highest'
    });
    push(queue, 'zero', 'top', 'other');
    assert.deepEqual(drain(queue), ['other', 'top', 'zero']);
  });

  it('distinguishes unlisted topics from those of priority 0', () => {
    const { queue } = queueOf({ mqueuePriorities: new Map([['zero', 0]]) });
    push(queue, 'other', 'zero');
    assert.deepEqual(drain(queue), ['zero', 'other']);
  });

  it('drops the oldest message of the same priority when that one is full, and adds the new one', () => {
    const { queue, drops } = queueOf({ maxMqueueLen: 2, mqueuePriorities: PRIORITIES });
    for (const n of [1, 2, 3]) queue.push(message('low', 1, String(n)), 1, false, undefined);
    for (const n of [1, 2]) queue.push(message('high', 1, String(n)), 1, false, undefined);
    assert.deepEqual(drops, ['low1 queue_full']);
    assert.deepEqual(drain(queue), ['high', 'high', 'low', 'low']);
  });

  it('drops the oldest message by age, regardless of its QoS', () => {
    const { queue, drops } = queueOf({ maxMqueueLen: 2 });
    queue.push(message('zero', 0), 0, false, undefined);
    push(queue, 'one', 'two');
    queue.push(message('nought', 0), 0, false, undefined);
    assert.deepEqual(drops, ['zero queue_full', 'one queue_full']);
    assert.deepEqual(drain(queue), ['two', 'nought']);
  });

  it('keeps all messages with a limit of 0', () => {
    const { queue, drops } = queueOf();
    for (let n = 0; n < 5000; n++) queue.push(message('a'), 1, false, undefined);
    assert.equal(queue.length, 5000);
    assert.deepEqual(drops, []);
  });

  it('drops the oldest message of the lowest priority when it contains too many bytes', () => {
    const { bytes } = message('high', 1, 'x'.repeat(100));
    const { queue, drops } = queueOf({ maxMqueueBytes: bytes * 2, mqueuePriorities: PRIORITIES });
    const big = (topic: string) => queue.push(message(topic, 1, 'x'.repeat(100)), 1, false, undefined);
    big('other');
    big('high');
    big('low');
    assert.deepEqual(drops, [`other${'x'.repeat(100)} queue_full`]);
    big('high');
    assert.deepEqual(drain(queue), ['high', 'high']);
  });

  it('refuses a message that has too many bytes on its own', () => {
    const { queue, drops } = queueOf({ maxMqueueBytes: 100 });
    assert.equal(queue.push(message('a'), 1, false, undefined), true);
    assert.equal(queue.push(message('a', 1, 'x'.repeat(200)), 1, false, undefined), false);
    assert.equal(queue.length, 0);
    assert.equal(drops.length, 2);
  });

  it('returns only QoS 0 while the window is closed', () => {
    const { queue } = queueOf({ mqueuePriorities: PRIORITIES });
    push(queue, 'high', 'low');
    queue.push(message('low', 0), 0, false, undefined);
    queue.push(message('other', 0), 0, false, undefined);
    assert.equal(queue.qos0Count, 2);
    assert.deepEqual(drain(queue, false), ['low', 'other']);
    assert.equal(queue.qos0Count, 0);
    assert.deepEqual(drain(queue), ['high', 'low']);
  });

  it('drops only its QoS 0 messages on request', () => {
    const { queue, drops } = queueOf();
    push(queue, 'one');
    queue.push(message('zero', 0), 0, false, undefined);
    queue.shed('qos0_msg');
    assert.deepEqual(drops, ['zero qos0_msg']);
    assert.equal(queue.length, 1);
    assert.equal(queue.bytes, message('one').bytes);
  });

  it('reports every message that it is cleared of', () => {
    const { queue, drops } = queueOf();
    push(queue, 'a', 'b');
    queue.dropAll('session_terminated');
    assert.deepEqual(drops, ['a session_terminated', 'b session_terminated']);
    assert.equal(queue.bytes, 0);
  });

  it('drops nothing for a persisted message until it is trimmed, and then only for committed messages', () => {
    for (const limits of [{ maxMqueueLen: 2 }, { maxMqueueBytes: 2 * message('a').bytes }]) {
      const { queue, drops } = queueOf(limits);
      const topics = ['a', 'b', 'c', 'd', 'e'];
      for (const [at, topic] of topics.entries())
        queue.add(new PersistedMessage(message(topic), 1, false, undefined, at + 1));
      assert.deepEqual(drops, []);
      queue.trim(2, 2 * message('a').bytes);
      assert.deepEqual(drops, ['a queue_full']);
      push(queue, 'x');
      assert.deepEqual(drops, ['a queue_full', 'b queue_full'], 'a message that is not persisted displaces one');
      queue.trim(0, 0);
      assert.deepEqual(drain(queue), ['e', 'x']);
    }
  });

  it('drops for persisted messages the oldest of each priority beyond its number', () => {
    const { queue, drops } = queueOf({ maxMqueueLen: 2, mqueuePriorities: PRIORITIES });
    for (const [at, topic] of ['high', 'low', 'low', 'low', 'high'].entries())
      queue.add(new PersistedMessage(message(topic, 1, `${at}`), 1, false, undefined, at + 1));
    queue.trim(0, 0);
    assert.deepEqual(drops, ['low1 queue_full']);
  });

  it('behaves like a sorted list', () => {
    const { below, pick } = randomSource('Queue');
    for (let round = 0; round < 30; round++) {
      const maxMqueueLen = pick([0, 1, 3, 20]);
      const { queue, drops } = queueOf({ maxMqueueLen, mqueuePriorities: PRIORITIES });
      let slow: { topic: string; qos: QoS; n: string }[] = [];
      const priority = (topic: string) => PRIORITIES.get(topic) ?? -1;
      const slowDrops: string[] = [];
      for (let step = 0; step < 600; step++) {
        if (below(5) < 3) {
          const entry = { topic: pick(['high', 'low', 'x', 'y']), qos: below(3) as QoS, n: String(step) };
          const same = slow.filter(({ topic }) => priority(topic) === priority(entry.topic));
          if (maxMqueueLen > 0 && same.length >= maxMqueueLen) {
            slow = slow.filter((other) => other !== same[0]);
            slowDrops.push(`${same[0]!.topic}${same[0]!.n} queue_full`);
          }
          slow.push(entry);
          queue.push(message(entry.topic, entry.qos, entry.n), entry.qos, false, undefined);
        } else {
          const windowOpen = below(3) > 0;
          const [first] = slow
            .filter(({ qos }) => windowOpen || qos === 0)
            .sort((a, b) => priority(b.topic) - priority(a.topic));
          slow = slow.filter((other) => other !== first);
          assert.equal(String(queue.shift(windowOpen)?.message.payload ?? 'none'), first?.n ?? 'none');
        }
        assert.equal(queue.length, slow.length);
        assert.equal(queue.qos0Count, slow.filter(({ qos }) => qos === 0).length);
      }
      assert.deepEqual(drops, slowDrops);
      for (const { n } of slow.sort((a, b) => priority(b.topic) - priority(a.topic)))
        assert.equal(String(queue.shift(true)?.message.payload), n);
      assert.equal(queue.length, 0);
    }
  });
});
