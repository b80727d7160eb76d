import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { RouteCache } from '../lib/routing/route-cache.ts';
import { FilterIndex } from '../lib/topics/trie.ts';

/** The cost with one number of filters: CPU microseconds per operation, and heap per filter (without its string and subscriber). */
export interface Row {
  readonly mix: string;
  readonly filters: number;
  readonly addUs: number;
  readonly deleteUs: number;
  readonly bytesPerFilter: number;
  /** Match 20,000 random topics in turn. */
  readonly coldUs: number;
  /** Match 1,000 topics in turn. */
  readonly hotUs: number;
  /** Match 20,000 topics that no filter matches. */
  readonly missUs: number;
  /** Look up 1,000 topics in the route cache; `cachedFreshUs` with a new string for each lookup, decoded from bytes as for a packet. */
  readonly cachedHotUs: number;
  readonly cachedFreshUs: number;
  /** Topics that occur only once, with new strings: matched directly, and through the route cache after it has adapted to them. */
  readonly freshColdUs: number;
  readonly cachedColdUs: number;
  /** The average number of filters that match a topic. */
  readonly hits: number;
}

export type MakeFilter = (i: number) => string;

/** The mixes of filters: each function returns the filter with a given number. */
export const MIXES: Record<string, MakeFilter> = {
  '70 % exact, 10 % last +, 10 % #, 10 % middle +': (i) => {
    const kind = i % 10;
    if (kind < 7) return topicOf(i);
    if (kind === 7) return `site/${i % 100}/device${i}/+`;
    if (kind === 8) return `site/${i % 100}/device${i}/#`;
    return `site/+/device${i}/temperature`;
  },
  'all wildcards: half last +, half #': (i) => `site/${i % 100}/device${i}/${i & 1 ? '+' : '#'}`
};

const NONE: readonly Subscriber[] = [];

class Subscriber {
  readonly id: number;

  constructor(id: number) {
    this.id = id;
  }
}

class Route {
  isStale = false;
  generation = 0;
  readonly weight: number;
  readonly targets: readonly Subscriber[];

  constructor(targets: readonly Subscriber[]) {
    this.targets = targets;
    this.weight = 1 + targets.length;
  }
}

/** One cache for all measurements. V8 does not optimize the methods of a sixth cache in a process, which makes lookups 0.12 us slower. */
const cache = new RouteCache<Route>();

/** Measure adding, matching and deleting at several sizes. `sizes` defaults to 1,000, 100,000 and 1,000,000. */
export async function run(sizes: readonly number[] = [1000, 100_000, 1_000_000]): Promise<Row[]> {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const rows: Row[] = [];
  // Warm up the compiler; this measurement is not reported.
  measure('', MIXES[Object.keys(MIXES)[0]!]!, 20_000, gc);
  for (const [mix, makeFilter] of Object.entries(MIXES)) {
    for (const filters of sizes) rows.push(measure(mix, makeFilter, filters, gc));
  }
  return rows;
}

function measure(mix: string, makeFilter: MakeFilter, count: number, gc: () => void): Row {
  const filters = Array.from({ length: count }, (_, i) => flat(makeFilter(i)));
  const subscribers = Array.from({ length: count }, (_, i) => new Subscriber(i));
  const index = new FilterIndex<Subscriber>();
  gc();
  const heapBefore = process.memoryUsage().heapUsed;
  const addUs = cpuUs(count, (i) => {
    index.add(filters[i]!, subscribers[i]!);
  });
  gc();
  const bytesPerFilter = (process.memoryUsage().heapUsed - heapBefore) / count;

  let state = 1;
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
  const cold = Array.from({ length: 20_000 }, () => flat(topicOf(random())));
  const hot = cold.slice(0, 1000);
  const misses = Array.from({ length: 20_000 }, () => flat(`site/${random() % 100}/device${random()}x/temperature`));
  const found: Subscriber[] = [];
  const match = (topics: readonly string[], rounds: number) =>
    cpuUs(rounds, (i) => {
      found.length = 0;
      index.match(topics[i % topics.length]!, found);
    });
  let hits = 0;
  for (const topic of cold) hits += index.match(topic, []);
  const coldUs = match(cold, 400_000);
  const hotUs = match(hot, 400_000);
  const missUs = match(misses, 400_000);

  cache.clear();
  const use = (topic: string): readonly Subscriber[] => {
    const known = cache.get(topic);
    if (known !== undefined) return known.targets;
    const targets: Subscriber[] = [];
    const route = new Route(index.match(topic, targets) === 0 ? NONE : targets);
    cache.set(topic, route);
    return route.targets;
  };
  const useHot = (i: number) => {
    use(hot[i % 1000]!);
  };
  const bytes = hot.map((topic) => Buffer.from(topic));
  const useFresh = (i: number) => {
    use(bytes[i % 1000]!.toString('latin1'));
  };
  // A lookup is so fast that its compilation, or the collection of earlier garbage in the background, would dominate
  // the result.
  for (const work of [useHot, useFresh]) cpuUs(500_000, work);
  gc();
  const cachedHotUs = cpuUs(1_000_000, useHot);
  const cachedFreshUs = cpuUs(1_000_000, useFresh);
  // For topics that occur only once, the creation of their strings is measured separately and subtracted.
  const endless = Array.from({ length: 300_000 }, (_, i) =>
    Buffer.from(count < 300_000 ? `site/${i % 100}/device${i}x/temperature` : topicOf((i * 7919) % count))
  );
  const fresh = (from: number, to: number, work: (topic: string) => void) =>
    cpuUs(to - from, (i) => {
      work(endless[from + i]!.toString('latin1'));
    });
  let last = '';
  const madeUs = fresh(200_000, 300_000, (topic) => {
    last = topic;
  });
  const freshColdUs = fresh(200_000, 300_000, (topic) => {
    found.length = 0;
    index.match(topic, found);
  });
  cache.clear();
  fresh(0, 200_000, use);
  const cachedColdUs = fresh(200_000, 300_000, use);
  if (last === '') throw new Error('the strings were not made');
  const deleteUs = cpuUs(count, (i) => {
    index.delete(filters[i]!, subscribers[i]!);
  });
  if (index.size !== 0) throw new Error(`${index.size} values are left after all were deleted`);
  return {
    mix,
    filters: count,
    addUs,
    deleteUs,
    bytesPerFilter,
    coldUs,
    hotUs,
    missUs,
    cachedHotUs,
    cachedFreshUs,
    freshColdUs: freshColdUs - madeUs,
    cachedColdUs: cachedColdUs - madeUs,
    hits: hits / cold.length
  };
}

function topicOf(i: number): string {
  return `site/${i % 100}/device${i}/temperature`;
}

/** A flat copy of a string, like one that was read from a socket. */
function flat(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function cpuUs(rounds: number, work: (i: number) => void): number {
  const before = process.cpuUsage();
  for (let i = 0; i < rounds; i++) work(i);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / rounds;
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  const head =
    '| filters | mix | add us | delete us | bytes each | cold us | hot us | miss us | cache hot us | cache fresh us | endless us | endless, cache us | hits |';
  const lines = rows.map((row) => {
    const numbers = [
      row.coldUs,
      row.hotUs,
      row.missUs,
      row.cachedHotUs,
      row.cachedFreshUs,
      row.freshColdUs,
      row.cachedColdUs,
      row.hits
    ];
    return `| ${row.filters} | ${row.mix} | ${row.addUs.toFixed(2)} | ${row.deleteUs.toFixed(2)} | ${row.bytesPerFilter.toFixed(0)} | ${numbers.map((n) => n.toFixed(2)).join(' | ')} |`;
  });
  return [head, head.replace(/[^|]+/g, '---'), ...lines].join('\n');
}

if (import.meta.url === new URL(process.argv[1] ?? '', 'file:').href) console.log(table(await run()));
