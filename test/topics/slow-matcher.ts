import { readSeed, shownSeed } from '../support/samples.ts';

/** Matches by the rules of section 4.7, level by level: slow, but easy to verify. */
export function slowMatches(filter: string, name: string): boolean {
  const wanted = filter.split('/');
  const given = name.split('/');
  if (name.startsWith('$') && (wanted[0] === '+' || wanted[0] === '#')) return false;
  for (let i = 0; i < wanted.length; i++) {
    if (wanted[i] === '#') return true;
    if (i >= given.length) return false;
    if (wanted[i] !== '+' && wanted[i] !== given[i]) return false;
    if (i === given.length - 1 && wanted.length === i + 2 && wanted[i + 1] === '#') return true;
  }
  return wanted.length === given.length;
}

/** A reproducible source of random numbers (mulberry32). `SEED` in the environment repeats a run. */
export function randomSource(name: string): { below: (bound: number) => number; pick: <T>(from: readonly T[]) => T } {
  const seed = readSeed();
  console.log(`# ${name}: ${shownSeed(seed)}`);
  let state = seed >>> 0;
  const below = (bound: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % bound;
  };
  return { below, pick: (from) => from[below(from.length)]! };
}

type Source = ReturnType<typeof randomSource>;

const LABELS = ['a', 'b', 'ab', '', '$x', 'long-level-name'];

/** A topic name of one to five levels from a small set, so that names and filters often match. */
export function randomName({ below, pick }: Source): string {
  while (true) {
    const name = Array.from({ length: 1 + below(5) }, () => pick(LABELS)).join('/');
    if (name !== '') return name;
  }
}

/** A topic filter from the same set of levels. */
export function randomFilter(source: Source): string {
  const { below, pick } = source;
  while (true) {
    const levels = Array.from({ length: 1 + below(5) }, () => (below(4) === 0 ? '+' : pick(LABELS)));
    if (below(4) === 0) levels[levels.length - 1] = '#';
    const filter = levels.join('/');
    if (filter !== '') return filter;
  }
}
