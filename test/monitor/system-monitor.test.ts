import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TimingWheel } from '../../lib/base/timing-wheel.ts';
import { Memory } from '../../lib/monitor/memory.ts';
import { SystemMonitor } from '../../lib/monitor/system-monitor.ts';
import { ManualClock } from '../support/manual-clock.ts';

function setUp() {
  const clock = new ManualClock();
  const wheel = new TimingWheel(clock, 1, (error) => assert.fail(String(error)));
  return { clock, wheel };
}

describe('The system monitor', () => {
  it('reports a turn that took too long, and no other', () => {
    const { clock, wheel } = setUp();
    const told: string[] = [];
    const monitor = new SystemMonitor(wheel, 1, (...warning) => told.push(warning.join(' ')));
    monitor.start(clock.monotonic());
    clock.advance(5_000);
    assert.deepEqual(told, []);
    monitor.ring(clock.monotonic() + 1_400);
    assert.deepEqual(told, ['long_schedule process a turn took 400 ms']);
    monitor.stop();
    assert.equal(wheel.size, 0);
  });
});

describe('The memory watch', () => {
  it('reports a shortage at the limit, and its end below nine tenths of it', () => {
    const { clock, wheel } = setUp();
    let used = 99;
    const changes: boolean[] = [];
    const memory = new Memory(
      100,
      wheel,
      (isShort, isChange) => {
        if (isChange) changes.push(isShort);
      },
      () => used
    );
    memory.start();
    for (const next of [100, 95, 89, 99]) {
      used = next;
      clock.advance(1_000);
    }
    assert.deepEqual(changes, [true, false]);
  });

  it('reports a shortage even if the buffer that triggers a collection cannot be allocated [RangeError]', (t) => {
    const { clock, wheel } = setUp();
    t.mock.method(MessagePort.prototype, 'postMessage', () => {
      throw new RangeError('Array buffer allocation failed');
    });
    const changes: boolean[] = [];
    const memory = new Memory(1, wheel, (isShort, isChange) => changes.push(isShort && isChange));
    memory.start();
    clock.advance(3_000);
    assert.deepEqual(changes, [true, false, false]);
    assert.deepEqual([memory.isShort, memory.isExhausted], [true, true]);
  });

  it('never reports a shortage without a limit', () => {
    const { wheel } = setUp();
    new Memory(0, wheel, () => assert.fail('short')).start();
    assert.equal(wheel.size, 0);
  });
});
