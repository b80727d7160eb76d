/** An entry of a `Chain`. */
export class Link<T extends Link<T>> {
  newer: T | undefined = undefined;
  older: T | undefined = undefined;
}

/** Entries in the order of their last use. Every operation takes constant time and allocates nothing. */
export class Chain<T extends Link<T>> {
  newest: T | undefined = undefined;
  oldest: T | undefined = undefined;

  /** Add an entry, which is in no chain, as the newest one. */
  add(entry: T): void {
    entry.newer = undefined;
    entry.older = this.newest;
    if (this.newest === undefined) this.oldest = entry;
    else this.newest.newer = entry;
    this.newest = entry;
  }

  /** Make an entry of this chain the newest one. */
  touch(entry: T): void {
    if (entry === this.newest) return;
    this.remove(entry);
    this.add(entry);
  }

  remove(entry: T): void {
    const { newer, older } = entry;
    if (newer === undefined) this.newest = older;
    else newer.older = older;
    if (older === undefined) this.oldest = newer;
    else older.newer = newer;
    entry.newer = undefined;
    entry.older = undefined;
  }

  clear(): void {
    this.newest = undefined;
    this.oldest = undefined;
  }
}
