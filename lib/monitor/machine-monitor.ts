import { cpus, freemem, totalmem } from 'node:os';
import { FunctionTimer, type TimingWheel } from '../base/timing-wheel.ts';
import type { Alarms } from './alarms.ts';
import { Watermark } from './watermark.ts';

/** Processor time of all processors since the start of the machine, in one unit. */
export interface CpuTimes {
  readonly idle: number;
  readonly total: number;
}

/** What is measured of the machine. */
export interface MachineReadings {
  cpuTimes(): CpuTimes;
  /** Memory in use, in percent of the memory of the machine. */
  memoryPercent(): number;
}

/** The settings of `MachineMonitor`: percentages and milliseconds. */
interface MachineSettings {
  readonly cpuHighWatermark: number;
  readonly cpuLowWatermark: number;
  readonly cpuCheckInterval: number;
  readonly sysmemHighWatermark: number;
  readonly memCheckInterval: number;
}

/** The services of the broker that `MachineMonitor` uses. */
interface MachineServices {
  readonly wheel: TimingWheel;
  readonly alarms: Alarms;
  readonly settings: MachineSettings;
}

/** The readings of the machine on which the process runs. */
export const MACHINE: MachineReadings = {
  cpuTimes: () => {
    let idle = 0;
    let total = 0;
    for (const { times } of cpus()) {
      idle += times.idle;
      for (const time of Object.values(times)) total += time;
    }
    return { idle, total };
  },
  memoryPercent: () => 100 - (freemem() / totalmem()) * 100
};

/** Checks processors and memory of the machine, and raises alarms at their watermarks. */
export class MachineMonitor {
  readonly #wheel: TimingWheel;
  readonly #readings: MachineReadings;
  readonly #timers: readonly (readonly [timer: FunctionTimer, everyMs: number])[];
  #times: CpuTimes | undefined = undefined;

  constructor({ wheel, settings, alarms }: MachineServices, readings: MachineReadings = MACHINE) {
    this.#wheel = wheel;
    this.#readings = readings;
    const { cpuHighWatermark, cpuLowWatermark, cpuCheckInterval, sysmemHighWatermark, memCheckInterval } = settings;
    const cpu = new Watermark(alarms, cpuHighWatermark, cpuLowWatermark, (percent) => ({
      id: 'cpu_high_watermark',
      title: 'the processors are busy',
      summary: `the processors of the machine are ${Math.round(percent)} % busy (option cpuHighWatermark)`
    }));
    const memory = new Watermark(alarms, sysmemHighWatermark, sysmemHighWatermark, (percent) => ({
      id: 'system_memory_high_watermark',
      title: 'the memory of the machine is short',
      summary: `${Math.round(percent)} % of the memory of the machine is in use (option sysmemHighWatermark)`
    }));
    this.#timers = [
      this.#timer(cpuHighWatermark > 0, cpuCheckInterval, () => this.#checkCpu(cpu)),
      this.#timer(sysmemHighWatermark > 0, memCheckInterval, () => memory.is(readings.memoryPercent()))
    ].flat();
  }

  start(): void {
    this.#times = undefined;
    for (const [timer, everyMs] of this.#timers) this.#wheel.arm(timer, everyMs);
  }

  stop(): void {
    for (const [timer] of this.#timers) this.#wheel.disarm(timer);
  }

  #timer(isOn: boolean, everyMs: number, check: () => void): (readonly [FunctionTimer, number])[] {
    if (!isOn || everyMs === 0) return [];
    const timer: FunctionTimer = new FunctionTimer(() => {
      this.#wheel.arm(timer, everyMs);
      check();
    });
    return [[timer, everyMs]];
  }

  /** The share of the time since the last check. The first check has nothing to compare with. */
  #checkCpu(cpu: Watermark): void {
    const before = this.#times;
    const times = this.#readings.cpuTimes();
    this.#times = times;
    const total = times.total - (before?.total ?? times.total);
    if (before !== undefined && total > 0) cpu.is(100 - ((times.idle - before.idle) / total) * 100);
  }
}
