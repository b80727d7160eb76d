// The command collects garbage when it is idle. V8 collects when something is allocated; after a burst 300 to 700 MB
// of garbage stayed resident until the next publish. `serve` looks once a second. When the heap has grown by 32 MB
// and a quarter, and two looks found the process idle, it starts an ordinary collection (60 ms at most with 430 MB in
// use; a forced one blocks for 500). If then at most 48 MB are in use, the heap is compacted
// (`HeapProfiler.collectGarbage` of the inspector), which returns the pages of the young generation. With up to 128
// MB in use it does so only if four times as much is resident and unused, because it blocks for longer (0.8 s with
// 110 MB on a busy machine). On Node 24 an idle process never returns these pages on its own (up to 700 MB after a
// burst). No V8 flags are set. The library leaves an app's heap alone unless memory is short.

import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';

const LOOK_EVERY_MS = 1_000;
/** The process is idle if it was busy for less than this share of the time since the last check. */
const IDLE_SHARE = 0.3;
/** The number of consecutive checks that must find the process idle before each step. */
const IDLE_LOOKS = 2;
/** The heap must have grown by at least this many bytes and by this share of its size. */
const GROWN_BYTES = 32 * 2 ** 20;
const GROWN_SHARE = 0.25;
/** A heap with at most this many bytes in use is always compacted. Compaction stops the process, for longer the more is in use. */
const QUICKLY_COMPACTED_BYTES = 48 * 2 ** 20;
/** A heap with up to this many bytes in use is compacted only if the unused resident memory is `SPARE_RATIO` times as large. */
const MAX_COMPACTED_BYTES = 128 * 2 ** 20;
const SPARE_RATIO = 4;
/** The number of checks after the start of a collection until the memory in use counts as needed, because V8 collects concurrently. */
const COLLECTING_LOOKS = 10;
/** V8 starts a collection when this much memory outside the heap is added at once (its threshold is 64 MB at the time of writing). */
const PROMPT_BYTES = 96 * 2 ** 20;

/**
 * `collect`: start a concurrent garbage collection. `compact`: release all unused pages, which pauses the process
 * briefly.
 */
export type Step = 'collect' | 'compact';

/** Decides when to collect and compact: after the start, and once after the heap has grown, while the process is idle. */
export class IdlePolicy {
  #floor = Number.POSITIVE_INFINITY;
  #idleLooks = 0;
  #looksSinceDone = 0;
  #done: Step | undefined;
  /** Loading the modules leaves garbage: half of the heap after the start. */
  #isStarting = true;

  /**
   * Check the memory, once a second.
   * @param totalBytes size of the heap and of the buffers outside it
   * @param usedBytes bytes of the heap in use
   * @param share share of the time since the last check in which the process was busy
   * @param spareBytes resident memory that neither the heap nor buffers use
   * @returns the step to take now, if any
   */
  look(totalBytes: number, usedBytes: number, share: number, spareBytes = 0): Step | undefined {
    this.#looksSinceDone++;
    this.#idleLooks = share < IDLE_SHARE ? this.#idleLooks + 1 : 0;
    this.#floor = Math.min(this.#floor, totalBytes);
    if (this.#isStarting && this.#idleLooks >= IDLE_LOOKS) {
      this.#isStarting = false;
      if (usedBytes <= QUICKLY_COMPACTED_BYTES) return this.#take('compact');
    }
    if (this.#done === 'compact') return this.#settle(totalBytes);
    if (totalBytes <= this.#floor + Math.max(GROWN_BYTES, this.#floor * GROWN_SHARE)) {
      if (this.#done === undefined) return undefined; // otherwise the collection has shrunk the heap
    }
    if (this.#idleLooks < IDLE_LOOKS) return undefined;
    if (this.#done === 'collect' && !isWorthCompacting(usedBytes, spareBytes))
      return this.#looksSinceDone < COLLECTING_LOOKS ? undefined : this.#settle(totalBytes);
    return this.#take(this.#done === undefined ? 'collect' : 'compact');
  }

  #take(step: Step): Step {
    this.#idleLooks = this.#looksSinceDone = 0;
    this.#done = step;
    return step;
  }

  /** Finish: all remaining memory counts as needed. */
  #settle(totalBytes: number): undefined {
    this.#floor = totalBytes;
    this.#done = undefined;
  }
}

function isWorthCompacting(usedBytes: number, spareBytes: number): boolean {
  if (usedBytes <= QUICKLY_COMPACTED_BYTES) return true;
  return usedBytes <= MAX_COMPACTED_BYTES && spareBytes >= usedBytes * SPARE_RATIO;
}

/**
 * Let the young generation of the heap reach its full size (16 MB) in two steps instead of four when load begins.
 *
 * While it is small, messages that wait for a commit outlive two collections, which makes them old. As dead old objects keep what they refer
 * to, this can go on for as long as the load: a QoS 1 message of a stored session then cost up to a third more, and the process had 50 MB
 * more. Only the command uses this, like `collectWhenIdle`.
 */
export function growHeapQuickly(): void {
  setFlagsFromString('--semi-space-growth-factor=4');
}

/**
 * Return memory to the system when the process becomes idle, after the start and after a burst.
 *
 * V8 collects garbage when memory is allocated, but an idle broker allocates nothing, so the garbage of a burst would stay for hours. Only
 * the command uses this; the library does not interfere with the heap of an app.
 * @returns a function that ends the checks
 */
export function collectWhenIdle(): () => void {
  const policy = new IdlePolicy();
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    const { total_heap_size, used_heap_size, external_memory } = getHeapStatistics();
    // Node 22 and later keep heap pages that a collection has emptied, but do not count them as part of the heap.
    const spare = process.memoryUsage.rss() - used_heap_size - external_memory;
    const step = policy.look(total_heap_size + external_memory, used_heap_size, utilization, spare);
    if (step === 'collect') collect();
    else if (step === 'compact') void compact();
  }, LOOK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Make V8 start a concurrent collection. The buffer is never written to, so it uses no memory, and it is freed immediately. */
function collect(): void {
  const { port1, port2 } = new MessageChannel();
  try {
    port1.postMessage(null, [new ArrayBuffer(PROMPT_BYTES)]);
  } catch {
    // The address space is limited; V8 then collects when it needs memory.
  }
  port1.close();
  port2.close();
}

/** Make V8 release all unused memory. This is the only documented way that needs no flag. */
async function compact(): Promise<void> {
  try {
    const { Session } = await import('node:inspector');
    const session = new Session();
    session.connect();
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()));
  } catch {
    // This Node was built without the inspector.
  }
}
