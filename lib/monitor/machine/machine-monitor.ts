import { os } from '../../base/builtins.ts';
import { FunctionTimer, type TimingWheel } from '../../base/timing-wheel.ts';
import type { Alarms } from '../alarms.ts';
import { Watermark } from './watermark.ts';

/** Processor time of all processors since the start of the machine, in one unit. */
interface CpuTimes {
  readonly idle: number;
  readonly total: number;
}

/** The readings that are taken from the machine. */
interface MachineReadings {
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
    for (const { times } of os().cpus()) {
      idle += times.idle;
      for (const time of Object.values(times)) total += time;
    }
    return { idle, total };
  },
  memoryPercent: () => 100 - (os().freemem() / os().totalmem()) * 100
};

/** Checks processors and memory of the machine, and raises alarms at their watermarks. */
export class MachineMonitor {
  readonly #wheel: TimingWheel;
  readonly #readings: MachineReadings;
  readonly #settings: MachineSettings;
  readonly #cpu: Watermark;
  readonly #memory: Watermark;
  #timers: readonly FunctionTimer[] = [];
  #times: CpuTimes | undefined = undefined;

  constructor({ wheel, settings, alarms }: MachineServices, readings: MachineReadings = MACHINE) {
    this.#wheel = wheel;
    this.#readings = readings;
    this.#settings = settings;
    this.#cpu = new Watermark(alarms, (percent) => ({
      id: 'cpu_high_watermark',
      title: 'the processors are busy',
      summary: `the processors of the machine are ${Math.round(percent)} % busy (option cpuHighWatermark)`
    }));
    this.#memory = new Watermark(alarms, (percent) => ({
      id: 'system_memory_high_watermark',
      title: 'the memory of the machine is short',
      summary: `${Math.round(percent)} % of the memory of the machine is in use (option sysmemHighWatermark)`
    }));
  }

  /** Start measuring, or start again with changed options. */
  start(): void {
    this.stop();
    const { cpuHighWatermark, cpuLowWatermark, cpuCheckInterval, sysmemHighWatermark, memCheckInterval } =
      this.#settings;
    this.#cpu.move(cpuHighWatermark, cpuLowWatermark, undefined);
    this.#memory.move(sysmemHighWatermark, sysmemHighWatermark, undefined);
    this.#times = undefined;
    this.#timers = [
      this.#timer(cpuHighWatermark > 0, cpuCheckInterval, () => this.#checkCpu(this.#cpu)),
      this.#timer(sysmemHighWatermark > 0, memCheckInterval, () => this.#memory.is(this.#readings.memoryPercent()))
    ].flat();
  }

  stop(): void {
    for (const timer of this.#timers) this.#wheel.disarm(timer);
  }

  #timer(isOn: boolean, everyMs: number, check: () => void): FunctionTimer[] {
    if (!isOn || everyMs === 0) return [];
    const timer: FunctionTimer = new FunctionTimer(() => {
      this.#wheel.arm(timer, everyMs);
      check();
    });
    this.#wheel.arm(timer, everyMs);
    return [timer];
  }

  /** Check the share of the time since the last check. The first check has nothing to compare with. */
  #checkCpu(cpu: Watermark): void {
    const before = this.#times;
    const times = this.#readings.cpuTimes();
    this.#times = times;
    const total = times.total - (before?.total ?? times.total);
    if (before !== undefined && total > 0) cpu.is(100 - ((times.idle - before.idle) / total) * 100);
  }
}
