import { Bell, type TimingWheel } from '../timing-wheel.ts';

const LOOK_EVERY_MS = 1_000;
/** The shortage is over below this share of the mark. */
const RELIEF = 0.9;

/** Looks once a second whether the memory of the process passes a mark. */
export class Memory extends Bell {
  /** More is in use than the mark allows. */
  isShort = false;
  readonly #highWatermark: number;
  readonly #wheel: TimingWheel;
  readonly #onLook: (isShort: boolean, isChange: boolean) => void;
  readonly #used: () => number;

  /**
   * @param highWatermark bytes of heap and buffers; 0: never short
   * @param onLook told of every change, and while memory is short of every look
   * @param used bytes in use; the process's by default
   */
  constructor(
    highWatermark: number,
    wheel: TimingWheel,
    onLook: (isShort: boolean, isChange: boolean) => void,
    used: () => number = usedBytes
  ) {
    super();
    this.#highWatermark = highWatermark;
    this.#wheel = wheel;
    this.#onLook = onLook;
    this.#used = used;
  }

  start(): void {
    if (this.#highWatermark > 0) this.#wheel.arm(this, LOOK_EVERY_MS);
  }

  ring(): void {
    this.#wheel.arm(this, LOOK_EVERY_MS);
    const used = this.#used();
    const isShort = used >= (this.isShort ? this.#highWatermark * RELIEF : this.#highWatermark);
    const isChange = isShort !== this.isShort;
    this.isShort = isShort;
    if (isShort || isChange) this.#onLook(isShort, isChange);
  }
}

function usedBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
