import { BaseTimer, type TimingWheel } from '../../base/timing-wheel.ts';

const CHECK_INTERVAL_MS = 1_000;
/** Fraction of the high watermark below which the shortage ends. */
const RELIEF = 0.9;
/** Number of consecutive checks with short memory before `isExhausted`. The collection of a large heap takes some time. */
const CHECKS_UNTIL_EXHAUSTED = 3;
/** Interval, in checks, at which V8 is made to collect garbage while memory is short. */
const COLLECT_EVERY_CHECKS = 5;
/** A size above the growth of buffers at which V8 starts a collection. */
const TRIGGER_BYTES = 100_663_296;

/** Checks once a second whether the memory of the process exceeds a limit. */
export class Memory extends BaseTimer {
  /** True if the memory in use exceeds the limit. */
  isShort = false;
  /** Number of consecutive checks that found memory short. */
  #shortChecks = 0;
  #highWatermark: number;
  #isStarted = false;
  readonly #wheel: TimingWheel;
  readonly #onCheck: (isShort: boolean, isChange: boolean) => void;
  readonly #used: () => number;

  /**
   * @param highWatermark the limit of heap and buffers in bytes; 0: no limit
   * @param onCheck called when `isShort` changes, and at every check while memory is short
   * @param used returns the bytes in use; default: those of the process
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

  /**
   * True if memory has been short for some time, although QoS 0 messages were dropped, garbage was collected and the backlogs are limited.
   */
  get isExhausted(): boolean {
    return this.#shortChecks >= CHECKS_UNTIL_EXHAUSTED;
  }

  start(): void {
    this.#isStarted = true;
    if (this.#highWatermark > 0) this.#wheel.arm(this, CHECK_INTERVAL_MS);
  }

  /** Change the limit, which applies from the next check. */
  limit(highWatermark: number): void {
    this.#highWatermark = highWatermark;
    if (!this.#isStarted) return;
    if (highWatermark > 0) this.#wheel.arm(this, CHECK_INTERVAL_MS);
    else {
      this.#wheel.disarm(this);
      this.#found(false);
    }
  }

  ring(): void {
    this.#wheel.arm(this, CHECK_INTERVAL_MS);
    const used = this.#used();
    this.#found(used >= (this.isShort ? this.#highWatermark * RELIEF : this.#highWatermark));
  }

  #found(isShort: boolean): void {
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
 * Make V8 start an incremental garbage collection.
 *
 * While the heap is far below its limit, V8 leaves old garbage for a long time, which counts as memory in use. It starts a collection when
 * buffers have grown much since the last one. The buffer used here is never written to and is freed immediately.
 */
function triggerCollection(): void {
  const { port1, port2 } = new MessageChannel();
  try {
    port1.postMessage(null, [new ArrayBuffer(TRIGGER_BYTES)]);
  } catch {
    // The address space of the process is limited. V8 collects garbage when necessary.
  }
  port1.close();
  port2.close();
}
