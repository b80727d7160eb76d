import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers';
import { getHeapStatistics } from 'node:v8';

const LOOK_EVERY_MS = 1_000;
/** A look finds the process idle if it was at work for less than this share of the time since the one before. */
const IDLE_SHARE = 0.3;
/** Looks in a row that must find it idle before each step. */
const IDLE_LOOKS = 2;
/** What the heap must have grown by: so many bytes, and this share of what it was. */
const GROWN_BYTES = 32 * 2 ** 20;
const GROWN_SHARE = 0.25;
/** A heap with at most this much in use is compacted. It stops the process meanwhile, the longer the more is in use. */
const QUICKLY_COMPACTED_BYTES = 48 * 2 ** 20;
/** One with more than that, and at most this much in use, only if so many times as much is resident and not in use. */
const MOST_COMPACTED_BYTES = 128 * 2 ** 20;
const SPARE_RATIO = 4;
/** Looks from the beginning of a collection until what is in use counts as needed: V8 collects beside other work, of other processes too. */
const COLLECTING_LOOKS = 10;
/** V8 begins a collection where this much memory outside the heap comes at once (64 MB at the time of writing). */
const PROMPT_BYTES = 96 * 2 ** 20;

/** `collect`: garbage, beside the work. `compact`: give back all pages that are not needed; stops the process meanwhile. */
export type Step = 'collect' | 'compact';

/** Decides what to do about memory: once the heap has grown and the process is idle, and not again before it has grown once more. */
export class IdlePolicy {
  #floor = Number.POSITIVE_INFINITY;
  #idleLooks = 0;
  #looksSinceDone = 0;
  #done: Step | undefined;

  /**
   * @param totalBytes size of the heap and of buffers outside it
   * @param usedBytes bytes of the heap in use; after a collection, those that are needed
   * @param share share of the time since the last look in which the process was busy
   * @param spareBytes resident, and neither in use by the heap nor by buffers
   */
  look(totalBytes: number, usedBytes: number, share: number, spareBytes = 0): Step | undefined {
    this.#looksSinceDone++;
    this.#idleLooks = share < IDLE_SHARE ? this.#idleLooks + 1 : 0;
    this.#floor = Math.min(this.#floor, totalBytes);
    if (this.#done === 'compact') return this.#settle(totalBytes);
    if (totalBytes <= this.#floor + Math.max(GROWN_BYTES, this.#floor * GROWN_SHARE)) {
      if (this.#done === undefined) return undefined; // else the collection has made it small again
    }
    if (this.#idleLooks < IDLE_LOOKS) return undefined;
    if (this.#done === 'collect' && !isWorthCompacting(usedBytes, spareBytes))
      return this.#looksSinceDone < COLLECTING_LOOKS ? undefined : this.#settle(totalBytes);
    this.#idleLooks = this.#looksSinceDone = 0;
    this.#done = this.#done === undefined ? 'collect' : 'compact';
    return this.#done;
  }

  /** What is left is in use. */
  #settle(totalBytes: number): undefined {
    this.#floor = totalBytes;
    this.#done = undefined;
  }
}

function isWorthCompacting(usedBytes: number, spareBytes: number): boolean {
  if (usedBytes <= QUICKLY_COMPACTED_BYTES) return true;
  return usedBytes <= MOST_COMPACTED_BYTES && spareBytes >= usedBytes * SPARE_RATIO;
}

/**
 * V8 collects garbage when something is allocated, and an idle broker allocates nothing: what a burst left would stay for hours. So look
 * once a second. This is for the command's own process: what an app's heap does is not the library's to decide.
 * @returns a function that ends it
 */
export function collectWhenIdle(): () => void {
  const policy = new IdlePolicy();
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    const { total_heap_size, used_heap_size, external_memory } = getHeapStatistics();
    // Node 22 and later keep pages of the heap that a collection has emptied, and count them nowhere
    const spare = process.memoryUsage.rss() - used_heap_size - external_memory;
    const step = policy.look(total_heap_size + external_memory, used_heap_size, utilization, spare);
    if (step === 'collect') collect();
    else if (step === 'compact') void compact();
  }, LOOK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** V8 marks in other threads and at idle times. The buffer is never written to, so it takes no memory, and is freed at once. */
function collect(): void {
  const { port1, port2 } = new MessageChannel();
  try {
    port1.postMessage(null, [new ArrayBuffer(PROMPT_BYTES)]);
  } catch {
    // the address space is bounded: the collection comes when V8 needs it
  }
  port1.close();
  port2.close();
}

/** The one way to ask V8 for all it can give back that is documented and needs no flag. */
async function compact(): Promise<void> {
  try {
    const { Session } = await import('node:inspector');
    const session = new Session();
    session.connect();
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()));
  } catch {
    // a node that was built without the inspector
  }
}
