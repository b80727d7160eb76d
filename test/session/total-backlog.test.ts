import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Message } from '../../lib/packets/message.ts';
import type { Queue } from '../../lib/session/messages/queue.ts';
import { TotalBacklog } from '../../lib/session/total-backlog.ts';
import { PersistedMessage } from '../../lib/store/segment.ts';
import { queueAlone } from '../support/queue.ts';

const KB = 1024;
const UNBOUNDED = {
  maxMqueueLen: 0,
  maxMqueueBytes: 0,
  mqueuePriorities: undefined,
  mqueueDefaultPriority: 'lowest'
} as const;

const message = (topic: string, size = KB) =>
  Message.from({ topic, qos: 1, payload: Buffer.alloc(size) }, undefined, 0, 0);

/** Creates backlogs under one limit, and records drops by the name of the backlog and the topic. */
function backlogs(limit: number, ...names: string[]) {
  const total = new TotalBacklog(limit);
  const drops: string[] = [];
  const all = names.map((name) =>
    queueAlone(UNBOUNDED, ({ topic }, reason) => drops.push(`${name} ${topic} ${reason}`), total)
  );
  return { total, drops, all };
}

describe('All backlogs together', () => {
  it('drops the oldest messages of the largest backlog first, and stays within the limit', () => {
    const { total, drops, all } = backlogs(40 * KB, 'small', 'large');
    const [small, large] = all;
    for (let n = 0; n < 5; n++) small.push(message(`s${n}`), 1, false, undefined);
    for (let n = 0; n < 100; n++) {
      large.push(message(`l${n}`), 1, false, undefined);
      assert.ok(total.bytes <= 40 * KB, `${total.bytes} bytes`);
    }
    assert.equal(small.length, 5);
    assert.ok(large.length > 20, `${large.length} are left`);
    assert.deepEqual(
      drops,
      Array.from({ length: 100 - large.length }, (_, n) => `large l${n} total_queue_full`)
    );
  });

  it('counts a message once if it is queued in many backlogs', () => {
    const { total, drops, all } = backlogs(400 * KB, ...Array.from({ length: 100 }, (_, n) => `b${n}`));
    for (let n = 0; n < 20; n++) {
      const one = message(`t${n}`, 2 * KB);
      for (const backlog of all) backlog.push(one, 1, false, undefined);
    }
    assert.deepEqual(drops, []);
    assert.ok(total.bytes > 20 * 2 * KB && total.bytes < 400 * KB, `${total.bytes} bytes`);
    for (const backlog of all) while (backlog.shift(true) !== undefined);
    assert.equal(total.bytes, 0);
  });

  it('drops the same oldest messages of all backlogs when there are too many', () => {
    const { drops, all } = backlogs(100 * KB, 'a', 'b', 'c');
    for (let n = 0; n < 200; n++) {
      const one = message(`t${n}`);
      for (const backlog of all) backlog.push(one, 1, false, undefined);
    }
    const [least, , most] = all.map(({ length }) => length).sort((a, b) => a - b);
    assert.ok(least > 0 && most - least <= 1, `${all.map(({ length }) => length)}`);
    assert.equal(drops.length, 600 - all.reduce((sum, { length }) => sum + length, 0));
  });

  it('does not drop messages that the store also contains', () => {
    const { drops, all } = backlogs(20 * KB, 'kept', 'alone');
    const [kept, alone] = all;
    for (let n = 0; n < 15; n++) {
      const one = message(`k${n}`);
      kept.push(one, 1, false, undefined, new PersistedMessage(one, 1, false, undefined, n));
    }
    for (let n = 0; n < 10; n++) alone.push(message(`a${n}`), 1, false, undefined);
    assert.equal(kept.length, 15);
    assert.ok(drops.length > 0 && drops.every((drop) => drop.startsWith('alone ')), `${drops}`);
    kept.empty();
    for (let n = 0; n < 12; n++) alone.push(message(`b${n}`), 1, false, undefined);
    assert.equal(alone.length, 12, 'an empty backlog leaves room');
  });

  it('drops only the initial excess, even if listeners add messages in the meantime', () => {
    const total = new TotalBacklog(10 * KB);
    let dropped = 0;
    const backlog: Queue = queueAlone(
      UNBOUNDED,
      () => {
        dropped++;
        backlog.push(message('again'), 1, false, undefined);
      },
      total
    );
    for (let n = 0; n < 20; n++) backlog.push(message('a'), 1, false, undefined);
    assert.ok(dropped > 0 && dropped < 100, `${dropped} dropped`);
  });
});
