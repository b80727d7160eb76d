import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TimingWheel } from '../../lib/base/timing-wheel.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { type BrokerOptions, createBroker } from '../../lib/index.ts';
import { Alarms } from '../../lib/monitor/alarms.ts';
import { MACHINE, MachineMonitor } from '../../lib/monitor/machine/machine-monitor.ts';
import { Memory } from '../../lib/monitor/machine/memory.ts';
import { SystemMonitor } from '../../lib/monitor/machine/system-monitor.ts';
import { SlowConsumers } from '../../lib/monitor/slow-consumers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { mapTable } from '../support/map-table.ts';

function setUp() {
  const clock = new ManualClock();
  const wheel = new TimingWheel(clock, 1, (error) => assert.fail(String(error)));
  const changes: string[] = [];
  const alarms = new Alarms({
    table: mapTable(),
    maxHistory: 10,
    now: () => clock.now(),
    raised: ({ id }) => changes.push(`raised ${id}`),
    cleared: ({ id }) => changes.push(`cleared ${id}`),
    failed: assert.fail
  });
  return { clock, wheel, alarms, changes };
}

function monitorOf(wheel: TimingWheel, alarms: Alarms, warn: (...warning: string[]) => void): SystemMonitor {
  return new SystemMonitor({ wheel, alarms, notices: { warn }, settings: { timerResolution: 1 } });
}

describe('The system monitor', () => {
  it('reports a turn that took too long, and no other', () => {
    const { clock, wheel, alarms, changes } = setUp();
    const told: string[] = [];
    const monitor = monitorOf(wheel, alarms, (...warning) => told.push(warning.join(' ')));
    monitor.start(clock.monotonic());
    clock.advance(5_000);
    assert.deepEqual(told, []);
    monitor.ring(clock.monotonic() + 1_400);
    assert.deepEqual(told, ['long_schedule process a turn took 400 ms']);
    monitor.stop();
    assert.equal(wheel.size, 0);
    assert.deepEqual(changes, []);
  });

  it('raises an alarm when three of ten checks are late, and clears it after ten checks in time', () => {
    const { clock, wheel, alarms, changes } = setUp();
    const monitor = monitorOf(wheel, alarms, () => {});
    monitor.start(clock.monotonic());
    let nowMs = 0;
    const check = (lateMs: number, times = 1) => {
      for (let n = 0; n < times; n++) monitor.ring((nowMs += 1_000 + lateMs));
    };
    check(300);
    check(0, 9);
    check(300, 2);
    assert.deepEqual(changes, []);
    check(300);
    assert.deepEqual(changes, ['raised event_loop_delay']);
    check(0, 9);
    assert.deepEqual(changes, ['raised event_loop_delay']);
    check(0);
    assert.deepEqual(changes, ['raised event_loop_delay', 'cleared event_loop_delay']);
    monitor.stop();
  });
});

describe('The watch of slow consumers', () => {
  it('raises an alarm when ten are disconnected within a minute, and clears it a minute after the last one', () => {
    const { clock, wheel, alarms, changes } = setUp();
    const watch = new SlowConsumers(wheel, alarms);
    const disconnect = (times: number) => {
      for (let n = 0; n < times; n++) watch.add(clock.monotonic());
    };
    disconnect(9);
    clock.advance(60_000);
    disconnect(9);
    assert.deepEqual(changes, []);
    clock.advance(30_000);
    disconnect(5);
    clock.advance(59_000);
    assert.deepEqual(changes, ['raised slow_consumers']);
    clock.advance(1_001);
    assert.deepEqual(changes, ['raised slow_consumers', 'cleared slow_consumers']);
    assert.equal(wheel.size, 0);
  });

  it('clears its alarm when the broker stops', () => {
    const { wheel, alarms, changes } = setUp();
    const watch = new SlowConsumers(wheel, alarms);
    for (let n = 0; n < 10; n++) watch.add(0);
    watch.stop();
    assert.deepEqual(changes, ['raised slow_consumers', 'cleared slow_consumers']);
    assert.equal(wheel.size, 0);
  });
});

describe('The monitor of the machine', () => {
  const settings = {
    cpuHighWatermark: 80,
    cpuLowWatermark: 60,
    cpuCheckInterval: 60_000,
    sysmemHighWatermark: 70,
    memCheckInterval: 30_000
  };

  it('raises alarms about processors and memory at the high watermarks, and clears them below the low ones', () => {
    const { clock, wheel, alarms, changes } = setUp();
    const times = { idle: 0, total: 0 };
    let memory = 69;
    const monitor = new MachineMonitor(
      { wheel, settings, alarms },
      {
        cpuTimes: () => ({ ...times }),
        memoryPercent: () => memory
      }
    );
    monitor.start();
    const pass = (busyPercent: number) => {
      times.total += 1_000;
      times.idle += 10 * (100 - busyPercent);
      clock.advance(60_001);
      return changes.splice(0);
    };
    assert.deepEqual(pass(100), [], 'there is nothing to compare the first reading with');
    assert.deepEqual(pass(79), []);
    assert.deepEqual(pass(80), ['raised cpu_high_watermark']);
    assert.match(alarms.get('cpu_high_watermark')?.summary ?? '', /80 % busy/);
    assert.deepEqual(pass(60), []);
    assert.deepEqual(pass(59), ['cleared cpu_high_watermark']);
    memory = 70;
    assert.deepEqual(pass(0), ['raised system_memory_high_watermark']);
    memory = 69.9;
    assert.deepEqual(pass(0), ['cleared system_memory_high_watermark']);
    monitor.stop();
    assert.equal(wheel.size, 0);
  });

  it('checks nothing whose watermark or interval is 0', () => {
    const { wheel, alarms } = setUp();
    const off = { ...settings, cpuHighWatermark: 0, memCheckInterval: 0 };
    new MachineMonitor({ wheel, settings: off, alarms }).start();
    assert.equal(wheel.size, 0);
  });

  it('reads the machine on which it runs', () => {
    const { idle, total } = MACHINE.cpuTimes();
    assert.ok(idle > 0 && idle <= total, `${idle} of ${total}`);
    const percent = MACHINE.memoryPercent();
    assert.ok(percent > 0 && percent < 100, `${percent}`);
  });

  it('runs from the start to the stop of a broker with the system clock', async () => {
    const timersOf = async (options?: BrokerOptions) => {
      const broker = createBroker(options);
      const { wheel } = engineOf(broker).services;
      await broker.start();
      const { size } = wheel;
      await broker.stop();
      assert.equal(wheel.size, 0);
      return size;
    };
    const without = await timersOf({ cpuHighWatermark: 0, sysmemHighWatermark: 0 });
    assert.equal(await timersOf(), without + 2);
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
