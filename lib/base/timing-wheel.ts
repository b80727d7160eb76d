// A late timer waits for one poll phase. If the timing wheel runs more than 100 ms late, the process was suspended or
// blocked, and what the clients sent meanwhile is still in their sockets. Timers run before sockets are read, so keep
// alives would seem to have ended too early. The wheel lets one poll phase pass first. A virtual clock is never late.

import type { Clock } from './clock.ts';

/** A timer of the wheel. Only the wheel changes the fields; the owner implements `ring`. */
export interface Timer {
  /** Monotonic time at which the timer rings, in milliseconds; `Infinity` while it is not armed. */
  dueMs: number;
  slot: Slot | undefined;
  previous: Timer | undefined;
  next: Timer | undefined;
  /** Called at or after `dueMs`. The timer is no longer armed. Errors are passed to `onError` of the wheel. */
  ring(nowMs: number): void;
}

/** A timer with the fields that the wheel needs. Classes that extend another class declare these fields themselves. */
export abstract class BaseTimer implements Timer {
  dueMs = Infinity;
  slot: Slot | undefined = undefined;
  previous: Timer | undefined = undefined;
  next: Timer | undefined = undefined;
  abstract ring(nowMs: number): void;
}

/** A timer that calls a function when it rings. */
export class FunctionTimer extends BaseTimer {
  readonly ring: (nowMs: number) => void;

  constructor(ring: (nowMs: number) => void) {
    super();
    this.ring = ring;
  }
}

interface Slot {
  readonly tick: number;
  head: Timer | undefined;
  tail: Timer | undefined;
}

/** Maximum delay of a turn of the wheel: after a longer one, the process was stopped or blocked. */
const MAX_LATE_MS = 100;

/** Duration for which timers ring in one turn. The others ring in the next ones, so that sockets are served in the meantime. */
const RING_MS = 5;

/** Empty slots are only removed if there are more than this. */
const SWEEP_FROM = 64;

/**
 * Runs all timers of a broker with a single timer of the clock.
 *
 * Timers of the same tick share a slot. The slots form a binary heap, so arming a timer takes O(1) if its slot exists and O(log slots) if
 * not. A timer never rings early, and at most one tick late. Timers of one tick ring in the order in which they were armed.
 *
 * A turn that is late can be postponed once (`later`), so that the broker reads the input that arrived while the process was stopped before
 * it decides that a client was silent.
 *
 * Many timers that are due together ring in several turns, in their order. While the clock does not move, like the clock of a test, all of
 * them ring at once.
 *
 * Empty slots are removed when they outnumber the others, because a broker with short connections arms and disarms many session expiries
 * that are days ahead.
 */
export class TimingWheel {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #slots = new Map<number, Slot>();
  readonly #heap: Slot[] = [];
  readonly #later: ((run: () => void) => void) | undefined;
  #isCatchingUp = false;
  #timer: unknown;
  #timerTick = Infinity;
  #armed = 0;
  #emptySlots = 0;

  /**
   * @param tickMs resolution in milliseconds: a timer rings at most this much late
   * @param later calls `run` after the input that has arrived in the meantime was read. It is used by turns that are more than 100 ms late,
   * and when timers take long. Without it, all timers that are due ring at once
   */
  constructor(clock: Clock, tickMs: number, onError: (error: unknown) => void, later?: (run: () => void) => void) {
    this.#later = later;
    this.#clock = clock.internal ?? clock;
    this.#tickMs = tickMs;
    this.#onError = onError;
  }

  /** Number of armed timers. */
  get size(): number {
    return this.#armed;
  }

  /** Number of slots, including empty ones. Together with `size` it shows how much memory the wheel takes. */
  get slotCount(): number {
    return this.#heap.length;
  }

  /** Set a timer to ring in `delayMs` from now. A timer that is armed is moved; `Infinity` disarms it. */
  arm(timer: Timer, delayMs: number): void {
    this.armAt(timer, delayMs === Infinity ? Infinity : this.#clock.monotonic() + Math.max(0, delayMs));
  }

  /** Set a timer to ring in `delayMs` from now, unless it is armed to ring later than that. */
  armLater(timer: Timer, delayMs: number): void {
    const dueMs = this.#clock.monotonic() + delayMs;
    if (timer.slot === undefined || timer.dueMs < dueMs) this.armAt(timer, dueMs);
  }

  /** Set a timer to ring at a monotonic time. A timer that is armed is moved; `Infinity` disarms it. */
  armAt(timer: Timer, dueMs: number): void {
    this.disarm(timer);
    if (dueMs === Infinity) return;
    timer.dueMs = dueMs;
    const tick = Math.ceil(dueMs / this.#tickMs);
    let slot = this.#slots.get(tick);
    if (slot === undefined) {
      slot = { tick, head: undefined, tail: undefined };
      if (this.#emptySlots > SWEEP_FROM && this.#emptySlots > this.#heap.length / 2) this.#sweep();
      this.#slots.set(tick, slot);
      this.#heap.push(slot);
      this.#rise(this.#heap.length - 1);
    } else if (slot.head === undefined) {
      this.#emptySlots--;
    }
    timer.slot = slot;
    timer.previous = slot.tail;
    if (slot.tail === undefined) slot.head = timer;
    else slot.tail.next = timer;
    slot.tail = timer;
    this.#armed++;
    if (tick < this.#timerTick) this.#schedule();
  }

  /** Cancel a timer. Has no effect if it is not armed. */
  disarm(timer: Timer): void {
    const slot = timer.slot;
    if (slot === undefined) return;
    if (timer.previous === undefined) slot.head = timer.next;
    else timer.previous.next = timer.next;
    if (timer.next === undefined) slot.tail = timer.previous;
    else timer.next.previous = timer.previous;
    if (slot.head === undefined) this.#emptySlots++;
    timer.slot = timer.previous = timer.next = undefined;
    timer.dueMs = Infinity;
    this.#armed--;
  }

  /** Disarm all timers and cancel the timer of the clock. */
  clear(): void {
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerTick = Infinity;
    for (const slot of this.#heap)
      for (let timer = slot.head; timer !== undefined; timer = slot.head) this.disarm(timer);
    this.#heap.length = 0;
    this.#slots.clear();
    this.#emptySlots = 0;
  }

  #schedule(): void {
    const first = this.#heap[0];
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerTick = Infinity;
    if (first === undefined) return;
    this.#timerTick = first.tick;
    this.#timer = this.#clock.setTimeout(this.#turn, first.tick * this.#tickMs - this.#clock.monotonic());
  }

  readonly #turn = (): void => {
    this.#timerTick = -Infinity; // timers that are armed in the meantime need no schedule: #ringDue schedules at its end
    const first = this.#heap[0];
    const lateMs = first === undefined ? 0 : this.#clock.monotonic() - first.tick * this.#tickMs;
    if (this.#later === undefined || lateMs <= MAX_LATE_MS) {
      this.#ringDue();
      return;
    }
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    this.#later(() => {
      this.#isCatchingUp = false;
      this.#ringDue();
    });
  };

  readonly #ringDue = (): void => {
    this.#timerTick = -Infinity;
    const nowMs = this.#clock.monotonic();
    let isDone = true;
    try {
      for (let slot = this.#heap[0]; slot !== undefined && slot.tick * this.#tickMs <= nowMs; slot = this.#heap[0]) {
        const timer = slot.head;
        if (timer === undefined) {
          this.#removeFirst();
          continue;
        }
        if (this.#later !== undefined && this.#clock.monotonic() - nowMs >= RING_MS) {
          isDone = false;
          break;
        }
        this.disarm(timer);
        try {
          timer.ring(nowMs);
        } catch (error) {
          this.#onError(error);
        }
      }
    } finally {
      if (isDone) this.#schedule();
      else this.#later?.(this.#ringDue);
    }
  };

  #removeFirst(): void {
    const heap = this.#heap;
    this.#slots.delete(heap[0].tick);
    this.#emptySlots--;
    const last = heap.pop() as Slot;
    if (heap.length === 0) return;
    heap[0] = last;
    this.#sink(0);
  }

  #sweep(): void {
    const heap = this.#heap;
    let count = 0;
    for (const slot of heap) {
      if (slot.head === undefined) this.#slots.delete(slot.tick);
      else heap[count++] = slot;
    }
    heap.length = count;
    for (let at = (count >> 1) - 1; at >= 0; at--) this.#sink(at);
    this.#emptySlots = 0;
  }

  #rise(at: number): void {
    const heap = this.#heap;
    const slot = heap[at];
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (heap[up].tick <= slot.tick) break;
      heap[at] = heap[up];
      at = up;
    }
    heap[at] = slot;
  }

  #sink(at: number): void {
    const heap = this.#heap;
    const slot = heap[at];
    for (;;) {
      let down = at * 2 + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && heap[down + 1].tick < heap[down].tick) down++;
      if (heap[down].tick >= slot.tick) break;
      heap[at] = heap[down];
      at = down;
    }
    heap[at] = slot;
  }
}
