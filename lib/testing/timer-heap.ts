/** A timer of the virtual clock. */
export interface VirtualTimer {
  readonly dueMs: number;
  readonly run: () => void;
  /** Made where it was armed; undefined for the library's own timers. */
  readonly trace: Error | undefined;
  /** Of arming, set by the heap. */
  order: number;
  isArmed: boolean;
}

/** Timers by due time, then by the order of arming. One that is taken away stays in its place, unarmed, until it comes up. */
export class TimerHeap {
  #heap: VirtualTimer[] = [];
  #armed = 0;
  #order = 0;

  add(timer: VirtualTimer): void {
    timer.order = this.#order++;
    timer.isArmed = true;
    this.#armed++;
    this.#heap.push(timer);
    this.#rise(this.#heap.length - 1);
  }

  /** @returns whether it was armed */
  remove(timer: VirtualTimer | undefined): boolean {
    if (timer?.isArmed !== true) return false;
    timer.isArmed = false;
    this.#armed--;
    // a wheel that moves its timer with every packet must not fill the memory
    if (this.#heap.length > 64 && this.#armed * 2 < this.#heap.length) this.#heap = this.list();
    return true;
  }

  /** Take the first out if it is due by then. */
  take(untilMs: number): VirtualTimer | undefined {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (first.isArmed && first.dueMs > untilMs) return undefined;
      this.#shift();
      if (!first.isArmed) continue;
      first.isArmed = false;
      this.#armed--;
      return first;
    }
    return undefined;
  }

  /** What is armed, first due first: itself a heap. */
  list(): VirtualTimer[] {
    return this.#heap.filter(({ isArmed }) => isArmed).sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  #rise(at: number): void {
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

  #shift(): void {
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
