import type { Clock } from './clock.ts';

/** What can wait on the wheel. The links are the wheel's own; the owner only implements `ring`. */
export interface Timer {
  /** Monotonic milliseconds at which it is to ring; `Infinity` while unarmed. Read-only for the owner. */
  dueMs: number;
  slot: Slot | undefined;
  previous: Timer | undefined;
  next: Timer | undefined;
  /** Called at or after `dueMs`, unarmed. An error it throws is handed to the wheel's `onError`. */
  ring(nowMs: number): void;
}

/** An alarm with its links; whoever extends something else has them of its own. */
export abstract class BaseTimer implements Timer {
  dueMs = Infinity;
  slot: Slot | undefined = undefined;
  previous: Timer | undefined = undefined;
  next: Timer | undefined = undefined;
  abstract ring(nowMs: number): void;
}

interface Slot {
  readonly tick: number;
  head: Timer | undefined;
  tail: Timer | undefined;
}

/** A turn of the wheel that comes so much too late is one of a process that was stopped, or blocked. */
const LATE_MS = 100;

/** Fewer empty slots than these are not worth a sweep. */
const SWEEP_FROM = 64;

/**
 * All delays of the broker: one clock timer for any number of alarms.
 *
 * Alarms that fall into the same tick share a slot; slots wait in a binary heap, so arming costs O(1) while a slot exists and
 * O(log slots) when it does not. An alarm never rings early, and at most one tick late. Alarms of one tick ring in the order in which
 * they were armed.
 *
 * A turn that is late may be put off once (`catchUp`): what came while the process was stopped is then read before silence is judged.
 *
 * Slots whose alarms were all disarmed are swept out when they are the greater part: a broker whose clients come and go arms and
 * disarms session expiries days ahead.
 */
export class TimingWheel {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #slots = new Map<number, Slot>();
  readonly #heap: Slot[] = [];
  readonly #catchUp: ((run: () => void) => void) | undefined;
  #isCatchingUp = false;
  #timer: unknown;
  #timerTick = Infinity;
  #armed = 0;
  #emptySlots = 0;

  /**
   * @param tickMs resolution in milliseconds: an alarm rings at most this much late
   * @param catchUp calls `run` when what has come meanwhile has been read; for turns that are more than 100 ms late
   */
  constructor(clock: Clock, tickMs: number, onError: (error: unknown) => void, catchUp?: (run: () => void) => void) {
    this.#catchUp = catchUp;
    this.#clock = clock.internal ?? clock;
    this.#tickMs = tickMs;
    this.#onError = onError;
  }

  /** Alarms now armed. */
  get size(): number {
    return this.#armed;
  }

  /** Slots now kept, a part of them perhaps empty: with `size`, what the wheel takes of memory. */
  get slotCount(): number {
    return this.#heap.length;
  }

  /** Arm, or move, an alarm to ring `delayMs` from now; `Infinity` disarms. */
  arm(timer: Timer, delayMs: number): void {
    this.armAt(timer, delayMs === Infinity ? Infinity : this.#clock.monotonic() + Math.max(0, delayMs));
  }

  /** Arm, or move, an alarm to a monotonic time. */
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

  /** Nothing happens to one that is not armed. */
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

  /** Disarm everything and release the clock's timer. */
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
    this.#timerTick = -Infinity; // what is armed meanwhile need not schedule: it is done when the alarms have rung
    const first = this.#heap[0];
    const lateMs = first === undefined ? 0 : this.#clock.monotonic() - first.tick * this.#tickMs;
    if (this.#catchUp === undefined || lateMs <= LATE_MS) {
      this.#ringDue();
      return;
    }
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    this.#catchUp(() => {
      this.#isCatchingUp = false;
      this.#ringDue();
    });
  };

  #ringDue(): void {
    this.#timerTick = -Infinity;
    const nowMs = this.#clock.monotonic();
    try {
      for (let slot = this.#heap[0]; slot !== undefined && slot.tick * this.#tickMs <= nowMs; slot = this.#heap[0]) {
        const timer = slot.head;
        if (timer === undefined) {
          this.#removeFirst();
          continue;
        }
        this.disarm(timer);
        try {
          timer.ring(nowMs);
        } catch (error) {
          this.#onError(error);
        }
      }
    } finally {
      this.#schedule();
    }
  }

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
    let kept = 0;
    for (const slot of heap) {
      if (slot.head === undefined) this.#slots.delete(slot.tick);
      else heap[kept++] = slot;
    }
    heap.length = kept;
    for (let at = (kept >> 1) - 1; at >= 0; at--) this.#sink(at);
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
