/** A timer of the virtual clock. */
export interface VirtualTimer {
  readonly dueMs: number;
  readonly run: () => void;
  /** A stack trace of the call that armed it; undefined for the timers of the library. */
  readonly trace: Error | undefined;
  /** The order of arming. Set by the heap. */
  order: number;
  isArmed: boolean;
}

/** A heap of timers by due time, then by the order of arming. A removed timer stays in the heap, unarmed, until it is due. */
export class TimerHeap {
  #heap: VirtualTimer[] = [];
  #armed = 0;
  #order = 0;

  add(timer: VirtualTimer): void {
    timer.order = this.#order++;
    timer.isArmed = true;
    this.#armed++;
    this.#heap.push(timer);
    this.#siftUp(this.#heap.length - 1);
  }

  /** Remove a timer. @returns whether it was armed */
  remove(timer: VirtualTimer | undefined): boolean {
    if (timer?.isArmed !== true) return false;
    timer.isArmed = false;
    this.#armed--;
    // The timing wheel moves its timer with every packet. Purge unarmed timers, so that the heap does not grow without bound.
    if (this.#heap.length > 64 && this.#armed * 2 < this.#heap.length) this.#heap = this.list();
    return true;
  }

  /** The due time of the first timer; Infinity if there is none. */
  get dueMs(): number {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (first.isArmed) return first.dueMs;
      this.#removeFirst();
    }
    return Infinity;
  }

  /** Remove and return the first timer, if it is due by `untilMs`. */
  takeDue(untilMs: number): VirtualTimer | undefined {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (first.isArmed && first.dueMs > untilMs) return undefined;
      this.#removeFirst();
      if (!first.isArmed) continue;
      first.isArmed = false;
      this.#armed--;
      return first;
    }
    return undefined;
  }

  /** The armed timers in the order of firing. The list is itself a valid heap. */
  list(): VirtualTimer[] {
    return this.#heap.filter(({ isArmed }) => isArmed).sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  #siftUp(at: number): void {
    const heap = this.#heap;
    const timer = heap[at];
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (isBefore(heap[up], timer)) break;
      heap[at] = heap[up];
      at = up;
    }
    heap[at] = timer;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let down = at * 2 + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && isBefore(heap[down + 1], heap[down])) down++;
      if (isBefore(last, heap[down])) break;
      heap[at] = heap[down];
      at = down;
    }
    heap[at] = last;
  }
}

function isBefore(a: VirtualTimer, b: VirtualTimer): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}
