import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TimingWheel } from '../../lib/base/timing-wheel.ts';
import { DelayedMessages, parseDelayed } from '../../lib/broker/features/delayed.ts';
import { Message } from '../../lib/packets/message.ts';
import { ManualClock } from '../support/manual-clock.ts';

const NOW_SEC = 1_700_000_000;

describe('parseDelayed', () => {
  const cases: [topic: string, expected: ReturnType<typeof parseDelayed>][] = [
    ['a/b', undefined],
    ['$delayed', undefined],
    ['$delayedx/5/a', undefined],
    ['x/$delayed/5/a', undefined],
    ['$delayed/5/a', { delayMs: 5000, topic: 'a' }],
    ['$delayed/0/a', { delayMs: 0, topic: 'a' }],
    ['$delayed/007/a//b', { delayMs: 7000, topic: 'a//b' }],
    ['$delayed/5//', { delayMs: 5000, topic: '/' }],
    ['$delayed/5/$SYS/x', { delayMs: 5000, topic: '$SYS/x' }],
    ['$delayed/5/$delayed/5/a', { delayMs: 5000, topic: '$delayed/5/a' }],
    // Up to 4,294,966 the number is a delay, from 4,294,967 on a point in time.
    ['$delayed/4294966/a', { delayMs: 4_294_966_000, topic: 'a' }],
    ['$delayed/4294967/a', { delayMs: 0, topic: 'a' }],
    [`$delayed/${NOW_SEC + 60}/a`, { delayMs: 60_000, topic: 'a' }],
    [`$delayed/${NOW_SEC - 60}/a`, { delayMs: 0, topic: 'a' }],
    [`$delayed/${NOW_SEC + 4_294_967}/a`, { delayMs: 4_294_967_000, topic: 'a' }],
    [`$delayed/${NOW_SEC + 4_294_968}/a`, 'invalid'],
    ['$delayed/', 'invalid'],
    ['$delayed/5', 'invalid'],
    ['$delayed/5/', 'invalid'],
    ['$delayed//a', 'invalid'],
    ['$delayed/x/a', 'invalid'],
    ['$delayed/-5/a', 'invalid'],
    ['$delayed/+5/a', 'invalid'],
    ['$delayed/1.5/a', 'invalid'],
    ['$delayed/1e3/a', 'invalid'],
    ['$delayed/ 5/a', 'invalid'],
    [`$delayed/${'9'.repeat(400)}/a`, 'invalid']
  ];
  for (const [topic, expected] of cases) {
    it(`reads ${topic.slice(0, 40)} as ${JSON.stringify(expected)}`, () => {
      assert.deepEqual(parseDelayed(topic, NOW_SEC), expected);
    });
  }

  it('computes the delay until a point in time to the millisecond', () => {
    assert.deepEqual(parseDelayed(`$delayed/${NOW_SEC + 1}/a`, NOW_SEC + 0.25), { delayMs: 750, topic: 'a' });
  });
});

describe('DelayedMessages', () => {
  const setUp = (limits: { maxDelayedMessages?: number; maxDelayedBytes?: number } = {}) => {
    const clock = new ManualClock();
    const life = { isRunning: true };
    const errors: unknown[] = [];
    const released: string[] = [];
    const wheel = new TimingWheel(clock, 100, (error) => errors.push(error));
    const settings = { maxDelayedMessages: 0, maxDelayedBytes: 0, ...limits };
    const delayed = new DelayedMessages({ clock, life, wheel, settings }, undefined, (message, topic) => {
      if (topic === 'bad') throw new Error('without a receiver');
      released.push(`${topic} ${message.payload} at ${clock.monotonic()}`);
      return undefined;
    });
    const hold = (topic: string, delayMs: number, payload: string | Buffer = '') =>
      delayed.add(Message.from({ topic: `$delayed/1/${topic}`, payload }, undefined, 0, 0), topic, delayMs);
    return { clock, life, delayed, released, errors, hold };
  };

  it('releases each message when its delay has passed, the earliest first', () => {
    const { clock, delayed, released, hold } = setUp();
    assert.equal(hold('late', 2000, '2'), 'added');
    assert.equal(hold('soon', 1000, '1'), 'added');
    assert.equal(delayed.count, 2);
    clock.advance(999);
    assert.deepEqual(released, []);
    clock.advance(5000);
    assert.deepEqual(released, ['soon 1 at 1000', 'late 2 at 2000']);
    assert.equal(delayed.count, 0);
    assert.equal(delayed.bytes, 0);
  });

  it('releases messages that are due at the same time in order of arrival', () => {
    const { clock, released, hold } = setUp();
    for (const topic of ['a', 'b', 'c']) hold(topic, 1000);
    clock.advance(1000);
    assert.deepEqual(
      released.map((line) => line[0]),
      ['a', 'b', 'c']
    );
  });

  it('copies a delayed message out of the chunk it was read into, and only that message', () => {
    const { delayed } = setUp({ maxDelayedMessages: 1 });
    const kept = ['first', 'refused'].map((topic) => {
      const message = Message.from({ topic }, undefined, 0, 0);
      const calls: string[] = [];
      message.detach = () => void calls.push(topic);
      delayed.add(message, topic, 1000);
      return calls;
    });
    assert.deepEqual(kept, [['first'], []]);
  });

  it('refuses messages above the maximum number, until there is room again', () => {
    const { clock, delayed, hold } = setUp({ maxDelayedMessages: 2 });
    assert.deepEqual([hold('a', 1000), hold('b', 2000), hold('c', 1000)], ['added', 'added', 'refused']);
    assert.equal(delayed.count, 2);
    clock.advance(1000);
    assert.equal(hold('d', 1000), 'added');
  });

  it('refuses messages above the maximum of bytes, and counts whole packets', () => {
    const { delayed, hold } = setUp({ maxDelayedBytes: 2500 });
    assert.equal(hold('a', 1000, Buffer.alloc(1000)), 'added');
    assert.ok(delayed.bytes > 1000 && delayed.bytes < 1050);
    assert.equal(hold('b', 1000, Buffer.alloc(2000)), 'refused');
    assert.equal(hold('c', 1000, Buffer.alloc(1000)), 'added');
    assert.equal(hold('d', 1000, Buffer.alloc(1000)), 'refused');
  });

  it('reports a release that fails and continues with the next', () => {
    const { clock, delayed, released, errors, hold } = setUp();
    hold('bad', 1000);
    hold('good', 1000);
    clock.advance(1000);
    assert.equal(errors.length, 1);
    assert.equal(released.length, 1);
    assert.equal(delayed.count, 0);
  });

  it('lets a released message be delayed again', () => {
    const clock = new ManualClock();
    const times: number[] = [];
    const life = { isRunning: true };
    const wheel = new TimingWheel(clock, 100, (error) => assert.fail(error as Error));
    const settings = { maxDelayedMessages: 1, maxDelayedBytes: 0 };
    const services = { clock, life, wheel, settings };
    const delayed: DelayedMessages = new DelayedMessages(services, undefined, (message, topic) => {
      times.push(clock.monotonic());
      if (times.length < 3) assert.equal(delayed.add(message, topic, 1000), 'added');
      return undefined;
    });
    delayed.add(Message.from({ topic: 't' }, undefined, 0, 0), 't', 1000);
    clock.advance(10_000);
    assert.deepEqual(times, [1000, 2000, 3000]);
  });

  it('discards all messages when cleared, and reports each in order of arrival', () => {
    const { clock, delayed, released, hold } = setUp();
    hold('a', 1000);
    hold('b', 1000);
    const dropped: string[] = [];
    delayed.clear(({ topic }) => {
      assert.equal(delayed.count, 0);
      assert.equal(delayed.bytes, 0);
      dropped.push(topic);
    });
    assert.deepEqual(dropped, ['$delayed/1/a', '$delayed/1/b']);
    clock.advance(5000);
    assert.deepEqual(released, []);
  });
});
