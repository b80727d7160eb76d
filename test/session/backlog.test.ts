import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Message } from '../../lib/packets/message.ts';
import type { QoS } from '../../lib/packets/types.ts';
import { Backlog, type BacklogLimits } from '../../lib/session/messages/backlog.ts';
import { PersistedMessage } from '../../lib/store/segment.ts';
import { randomSource } from '../topics/slow-matcher.ts';

const message = (topic: string, qos: QoS = 1, payload = '') => Message.from({ topic, qos, payload }, undefined, 0, 0);

function backlogOf(limits: Partial<BacklogLimits> = {}): { backlog: Backlog; drops: string[] } {
  const drops: string[] = [];
  const backlog = new Backlog({ ...LIMITS, ...limits }, ({ topic, payload }, reason) =>
    drops.push(`${topic}${payload} ${reason}`)
  );
  return { backlog, drops };
}

const LIMITS: BacklogLimits = {
  maxMqueueLen: 0,
  maxMqueueBytes: 0,
  mqueuePriorities: undefined,
  mqueueDefaultPriority: 'lowest'
};

function push(backlog: Backlog, ...topics: string[]): void {
  for (const topic of topics) backlog.push(message(topic), 1, false, undefined);
}

/** Returns the topics in the order in which they leave. */
function drain(backlog: Backlog, windowOpen = true): string[] {
  const topics: string[] = [];
  for (let next = backlog.shift(windowOpen); next !== undefined; next = backlog.shift(windowOpen))
    topics.push(next.message.topic);
  return topics;
}

const PRIORITIES = new Map([
  ['high', 10],
  ['low', 2]
]);

describe('Backlog', () => {
  it('behaves as one queue without a priority table', () => {
    const { backlog } = backlogOf({ mqueueDefaultPriority: 'highest' });
    push(backlog, 'c', 'a', 'b', 'a');
    assert.deepEqual(drain(backlog), ['c', 'a', 'b', 'a']);
    assert.equal(backlog.length, 0);
    assert.equal(backlog.bytes, 0);
  });

  it('stores what delivery needs', () => {
    const { backlog } = backlogOf();
    backlog.push(message('a'), 2, true, [4, 5]);
    const { qos, retain, ids } = backlog.shift(true)!;
    assert.deepEqual({ qos, retain, ids }, { qos: 2, retain: true, ids: [4, 5] });
  });

  it('returns higher priorities first, each in its order, and unlisted topics last by default', () => {
    const { backlog } = backlogOf({ mqueuePriorities: PRIORITIES });
    push(backlog, 'other', 'low', 'high', 'low', 'high', 'other');
    assert.deepEqual(drain(backlog), ['high', 'high', 'low', 'low', 'other', 'other']);
  });

  it('returns messages that were handed over before the others of their priority, and counts them together', () => {
    const { backlog, drops } = backlogOf({ mqueuePriorities: PRIORITIES, maxMqueueLen: 4 });
    const give = (topic: string, payload: string, isFirst: boolean) =>
      backlog.push(message(topic, 1, payload), 1, false, undefined, undefined, isFirst);
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
    const moved = backlog.withLimits(LIMITS);
    const left: string[] = [];
    for (let next = moved.shift(true); next !== undefined; next = moved.shift(true))
      left.push(`${next.message.topic}${next.message.payload}`);
    assert.deepEqual(left, ['low6', 'high1', 'low1', 'low3', 'low5']);
    assert.equal(moved.length, 0);
  });

  it('keeps lower priorities, except QoS 0, while a message of a higher one has no room', () => {
    const { backlog } = backlogOf({ mqueuePriorities: PRIORITIES });
    const large = message('high', 1, 'x'.repeat(1000));
    backlog.push(large, 1, false, undefined);
    push(backlog, 'high', 'low', 'other');
    backlog.push(message('low', 0, 'zero'), 0, false, undefined);
    const leave = (room: number) => {
      const { message: taken } = backlog.shift(true, room) ?? {};
      return taken && `${taken.topic} ${taken.qos}`;
    };
    assert.deepEqual([leave(500), leave(500)], ['low 0', undefined]);
    assert.equal(backlog.shift(true, large.bytes)?.message, large);
    assert.deepEqual([leave(500), leave(500), leave(500), leave(500)], ['high 1', 'low 1', 'other 1', undefined]);
  });

  it('returns unlisted topics first if their priority is the highest', () => {
    const { backlog } = backlogOf({
      mqueuePriorities: new Map([
        ['top', 255],
        ['zero', 0]
      ]),
      mqueueDefaultPriority: 'highest'
    });
    push(backlog, 'zero', 'top', 'other');
    assert.deepEqual(drain(backlog), ['other', 'top', 'zero']);
  });

  it('distinguishes unlisted topics from those of priority 0', () => {
    const { backlog } = backlogOf({ mqueuePriorities: new Map([['zero', 0]]) });
    push(backlog, 'other', 'zero');
    assert.deepEqual(drain(backlog), ['zero', 'other']);
  });

  it('drops the oldest message of the same priority when that one is full, and adds the new one', () => {
    const { backlog, drops } = backlogOf({ maxMqueueLen: 2, mqueuePriorities: PRIORITIES });
    for (const n of [1, 2, 3]) backlog.push(message('low', 1, String(n)), 1, false, undefined);
    for (const n of [1, 2]) backlog.push(message('high', 1, String(n)), 1, false, undefined);
    assert.deepEqual(drops, ['low1 queue_full']);
    assert.deepEqual(drain(backlog), ['high', 'high', 'low', 'low']);
  });

  it('drops the oldest message by age, regardless of its QoS', () => {
    const { backlog, drops } = backlogOf({ maxMqueueLen: 2 });
    backlog.push(message('zero', 0), 0, false, undefined);
    push(backlog, 'one', 'two');
    backlog.push(message('nought', 0), 0, false, undefined);
    assert.deepEqual(drops, ['zero queue_full', 'one queue_full']);
    assert.deepEqual(drain(backlog), ['two', 'nought']);
  });

  it('keeps all messages with a limit of 0', () => {
    const { backlog, drops } = backlogOf();
    for (let n = 0; n < 5000; n++) backlog.push(message('a'), 1, false, undefined);
    assert.equal(backlog.length, 5000);
    assert.deepEqual(drops, []);
  });

  it('drops the oldest message of the lowest priority when it contains too many bytes', () => {
    const { bytes } = message('high', 1, 'x'.repeat(100));
    const { backlog, drops } = backlogOf({ maxMqueueBytes: bytes * 2, mqueuePriorities: PRIORITIES });
    const big = (topic: string) => backlog.push(message(topic, 1, 'x'.repeat(100)), 1, false, undefined);
    big('other');
    big('high');
    big('low');
    assert.deepEqual(drops, [`other${'x'.repeat(100)} queue_full`]);
    big('high');
    assert.deepEqual(drain(backlog), ['high', 'high']);
  });

  it('refuses a message that has too many bytes on its own', () => {
    const { backlog, drops } = backlogOf({ maxMqueueBytes: 100 });
    assert.equal(backlog.push(message('a'), 1, false, undefined), true);
    assert.equal(backlog.push(message('a', 1, 'x'.repeat(200)), 1, false, undefined), false);
    assert.equal(backlog.length, 0);
    assert.equal(drops.length, 2);
  });

  it('returns only QoS 0 while the window is closed', () => {
    const { backlog } = backlogOf({ mqueuePriorities: PRIORITIES });
    push(backlog, 'high', 'low');
    backlog.push(message('low', 0), 0, false, undefined);
    backlog.push(message('other', 0), 0, false, undefined);
    assert.equal(backlog.qos0Count, 2);
    assert.deepEqual(drain(backlog, false), ['low', 'other']);
    assert.equal(backlog.qos0Count, 0);
    assert.deepEqual(drain(backlog), ['high', 'low']);
  });

  it('drops only its QoS 0 messages on request', () => {
    const { backlog, drops } = backlogOf();
    push(backlog, 'one');
    backlog.push(message('zero', 0), 0, false, undefined);
    backlog.shed('qos0_msg');
    assert.deepEqual(drops, ['zero qos0_msg']);
    assert.equal(backlog.length, 1);
    assert.equal(backlog.bytes, message('one').bytes);
  });

  it('reports every message that it is cleared of', () => {
    const { backlog, drops } = backlogOf();
    push(backlog, 'a', 'b');
    backlog.clear('session_terminated');
    assert.deepEqual(drops, ['a session_terminated', 'b session_terminated']);
    assert.equal(backlog.bytes, 0);
  });

  it('drops nothing for a persisted message until it is trimmed, and then only for committed messages', () => {
    for (const limits of [{ maxMqueueLen: 2 }, { maxMqueueBytes: 2 * message('a').bytes }]) {
      const { backlog, drops } = backlogOf(limits);
      const topics = ['a', 'b', 'c', 'd', 'e'];
      for (const [at, topic] of topics.entries())
        backlog.add(new PersistedMessage(message(topic), 1, false, undefined, at + 1));
      assert.deepEqual(drops, []);
      backlog.trim(2, 2 * message('a').bytes);
      assert.deepEqual(drops, ['a queue_full']);
      push(backlog, 'x');
      assert.deepEqual(drops, ['a queue_full', 'b queue_full'], 'a message that is not persisted displaces one');
      backlog.trim(0, 0);
      assert.deepEqual(drain(backlog), ['e', 'x']);
    }
  });

  it('drops for persisted messages the oldest of each priority beyond its number', () => {
    const { backlog, drops } = backlogOf({ maxMqueueLen: 2, mqueuePriorities: PRIORITIES });
    for (const [at, topic] of ['high', 'low', 'low', 'low', 'high'].entries())
      backlog.add(new PersistedMessage(message(topic, 1, `${at}`), 1, false, undefined, at + 1));
    backlog.trim(0, 0);
    assert.deepEqual(drops, ['low1 queue_full']);
  });

  it('behaves like a sorted list', () => {
    const { below, pick } = randomSource('Backlog');
    for (let round = 0; round < 30; round++) {
      const maxMqueueLen = pick([0, 1, 3, 20]);
      const { backlog, drops } = backlogOf({ maxMqueueLen, mqueuePriorities: PRIORITIES });
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
          backlog.push(message(entry.topic, entry.qos, entry.n), entry.qos, false, undefined);
        } else {
          const windowOpen = below(3) > 0;
          const [first] = slow
            .filter(({ qos }) => windowOpen || qos === 0)
            .sort((a, b) => priority(b.topic) - priority(a.topic));
          slow = slow.filter((other) => other !== first);
          assert.equal(String(backlog.shift(windowOpen)?.message.payload ?? 'none'), first?.n ?? 'none');
        }
        assert.equal(backlog.length, slow.length);
        assert.equal(backlog.qos0Count, slow.filter(({ qos }) => qos === 0).length);
      }
      assert.deepEqual(drops, slowDrops);
      for (const { n } of slow.sort((a, b) => priority(b.topic) - priority(a.topic)))
        assert.equal(String(backlog.shift(true)?.message.payload), n);
      assert.equal(backlog.length, 0);
    }
  });
});
