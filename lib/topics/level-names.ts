/** The content of a tree of topics at a name and below it. */
interface NameCount {
  /** True if a topic ends here. */
  readonly isEnd: boolean;
  /** Number of topics below this name. */
  readonly below: number;
}

/** The names of one level of a tree of topics. */
export interface LevelNames {
  /** Each name, in no particular order. The tree may be changed during the iteration; then a name may come twice. */
  names(): Iterable<string>;
  /** @returns undefined: the level does not have the name */
  at(name: string): NameCount | undefined;
  /** True if only some of the names are known. */
  readonly isPart?: boolean;
}

/** The names of a level, counted from a few topics. @param offset where the names begin */
export function namesOf(topics: Iterable<string>, offset: number): LevelNames {
  const found = new Map<string, { isEnd: boolean; below: number }>();
  for (const topic of topics) {
    const stop = topic.indexOf('/', offset);
    const name = topic.slice(offset, stop === -1 ? undefined : stop);
    const count = found.get(name) ?? { isEnd: false, below: 0 };
    found.set(name, count);
    if (stop === -1) count.isEnd = true;
    else count.below++;
  }
  return { names: () => found.keys(), at: (name) => found.get(name) };
}
