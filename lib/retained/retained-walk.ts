import { matches } from '../topics/topic.ts';
import { type RetainedEntry, type RetainedStore, sortBySeq } from './retained-store.ts';

/** Number of comparisons of topics with filters in one step. */
const STEP = 250;
/**
 * Maximum number of entries and levels that are examined in the tree of topics at once, in about 5 ms. Comparing 1,000,000 topics takes
 * about 0.5 s in all.
 */
const MAX_LOOKED_AT = 10_000;
/** Maximum number of entries that are sorted in one step. */
const MAX_RUN = 5_000;

/**
 * Find the retained messages that any of some topic filters match, in the order in which they were stored. If they cannot be found at once,
 * this takes steps of about 0.2 ms: with 1,000,000 messages, `RetainedStore.match` takes up to a second.
 *
 * Each topic is found at most once, even if the store changes in the meantime. A message that is stored after this call is not found.
 * Entries are referenced until their turn, but messages are not copied.
 * @returns the entries, of which some may have been replaced or deleted in the meantime (`isLive`). Undefined: a step has found none, and
 * others follow
 */
export function walkRetained<M>(
  store: RetainedStore<M>,
  filters: readonly string[]
): RetainedEntry<M>[] | Generator<RetainedEntry<M> | undefined, void, undefined> {
  return matchQuickly(store, filters) ?? walk(store, filters, store.next);
}

/** @param before `seq` after the last entry that is returned */
function* walk<M>(
  store: RetainedStore<M>,
  filters: readonly string[],
  before: number
): Generator<RetainedEntry<M> | undefined, void, undefined> {
  const runs = yield* scan(store, filters, before);
  let last = -1;
  let skipped = 0;
  for (const entry of merged(runs)) {
    // an entry that was put back in the store in the meantime is found twice
    const isGiven = entry.isLive && entry.seq !== last;
    last = entry.seq;
    if (isGiven) yield entry;
    else if (++skipped % STEP === 0) yield undefined;
  }
}

/** @returns undefined: the search would take more than a step */
function matchQuickly<M>(store: RetainedStore<M>, filters: readonly string[]): RetainedEntry<M>[] | undefined {
  const all: RetainedEntry<M>[] = [];
  let most = MAX_LOOKED_AT;
  for (const filter of filters) {
    const found = store.matchWithin(filter, most);
    if (found === undefined) return undefined;
    most -= 1 + found.length;
    if (filters.length === 1) return found;
    all.push(...found);
  }
  return sortBySeq([...new Set(all)]);
}

/** Compare all topics, in no particular order. @returns lists of entries that are in order */
function* scan<M>(
  store: RetainedStore<M>,
  filters: readonly string[],
  before: number
): Generator<undefined, RetainedEntry<M>[][], undefined> {
  const runs: RetainedEntry<M>[][] = [];
  let run: RetainedEntry<M>[] = [];
  let left = STEP;
  for (const entry of store) {
    if (entry.seq < before && filters.some((filter) => matches(filter, entry.topic))) run.push(entry);
    if (run.length === MAX_RUN) {
      runs.push(sortBySeq(run));
      run = [];
      left = 0;
    }
    left -= filters.length;
    if (left > 0) continue;
    left = STEP;
    yield undefined;
  }
  return [...runs, sortBySeq(run)];
}

/** A list of entries that are in order, of which some have been returned. */
interface Run<M> {
  readonly entries: readonly RetainedEntry<M>[];
  at: number;
  /** `seq` of the next entry. */
  seq: number;
}

/** Merge lists that are in order. */
function* merged<M>(lists: readonly (readonly RetainedEntry<M>[])[]): Generator<RetainedEntry<M>, void, undefined> {
  const heap: Run<M>[] = lists
    .filter(({ length }) => length > 0)
    .map((entries) => ({ entries, at: 0, seq: entries[0].seq }))
    .sort((a, b) => a.seq - b.seq);
  while (heap.length > 0) {
    const first = heap[0];
    const entry = first.entries[first.at++];
    if (first.at < first.entries.length) first.seq = first.entries[first.at].seq;
    else {
      const last = heap.pop() as Run<M>;
      if (heap.length > 0) heap[0] = last;
    }
    sink(heap);
    yield entry;
  }
}

/** Restore the order of a heap whose first run has changed. */
function sink<M>(heap: Run<M>[]): void {
  const run = heap[0];
  let at = 0;
  for (let child = 1; child < heap.length; child = 2 * at + 1) {
    if (child + 1 < heap.length && heap[child + 1].seq < heap[child].seq) child++;
    if (heap[child].seq >= run.seq) break;
    heap[at] = heap[child];
    at = child;
  }
  if (run !== undefined) heap[at] = run;
}
