import { BaseTimer, type TimingWheel } from '../base/timing-wheel.ts';

const CHECK_INTERVAL_MS = 1_000;
/** The shortage is over below this share of the mark. */
const RELIEF = 0.9;
/** Looks that find memory short, one after the other, until it is `isExhausted`: to collect a large heap takes a while. */
const CHECKS_UNTIL_EXHAUSTED = 3;
/** While memory is short V8 is asked so often to collect. */
const COLLECT_EVERY_CHECKS = 5;
/** More than V8 lets buffers grow until it begins to collect. */
const TRIGGER_BYTES = 100_663_296;

/** Looks once a second whether the memory of the process passes a mark. */
export class Memory extends BaseTimer {
  /** More is in use than the mark allows. */
  isShort = false;
  /** Looks that found it so, one after the other. */
  #shortChecks = 0;
  readonly #highWatermark: number;
  readonly #wheel: TimingWheel;
  readonly #onCheck: (isShort: boolean, isChange: boolean) => void;
  readonly #used: () => number;

  /**
   * @param highWatermark bytes of heap and buffers; 0: never short
   * @param onCheck called at every change, and at every look while memory is short
   * @param used bytes in use; the process's by default
   */
  constructor(
    highWatermark: number,
    wheel: TimingWheel,
    onCheck: (isShort: boolean, isChange: boolean) => void,
    used: () => number = usedBytes
  ) {
    super();
    this.#highWatermark = highWatermark;
    this.#wheel = wheel;
    this.#onCheck = onCheck;
    this.#used = used;
  }

  /** It has been short for some time: to shed, to collect and to bound the backlogs has not been enough. */
  get isExhausted(): boolean {
    return this.#shortChecks >= CHECKS_UNTIL_EXHAUSTED;
  }

  start(): void {
    if (this.#highWatermark > 0) this.#wheel.arm(this, CHECK_INTERVAL_MS);
  }

  ring(): void {
    this.#wheel.arm(this, CHECK_INTERVAL_MS);
    const used = this.#used();
    const isShort = used >= (this.isShort ? this.#highWatermark * RELIEF : this.#highWatermark);
    const isChange = isShort !== this.isShort;
    const mustCollect = isShort && this.#shortChecks % COLLECT_EVERY_CHECKS === 0 && this.#used === usedBytes;
    this.#shortChecks = isShort ? this.#shortChecks + 1 : 0;
    this.isShort = isShort;
    if (mustCollect) triggerCollection();
    if (isShort || isChange) this.#onCheck(isShort, isChange);
  }
}

function usedBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/**
 * Have V8 collect, in slices beside other work: far below the limit of the heap it leaves old garbage for long, and that would count as in
 * use. It begins when buffers take much more than after the last time; this one is never written to, and freed at once.
 */
function triggerCollection(): void {
  const { port1, port2 } = new MessageChannel();
  try {
    port1.postMessage(null, [new ArrayBuffer(TRIGGER_BYTES)]);
  } catch {
    // the address space of the process is bounded: V8 collects when it needs to
  }
  port1.close();
  port2.close();
}
