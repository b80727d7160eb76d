/** How many topics without an alias are remembered, for each alias that there is. */
const REMEMBERED = 2;

/**
 * Topic aliases towards one client [MQTT-3.3.2-11]. A topic gets one with its `after`-th message. When none is left, the least recently used
 * one is given to a topic that has come twice since that alias was last used: where more topics come in turn than there are aliases, those
 * that have one keep it, instead of losing it just before they come again.
 */
export class TopicAliases {
  readonly #max: number;
  readonly #after: number;
  /** Messages so far. */
  #now = 0;
  /** By topic, least recently used first. */
  readonly #aliases = new Map<string, { readonly alias: number; usedAt: number }>();
  /** Topics without an alias, the one that came least recently first. */
  readonly #others = new Map<string, { count: number; cameAt: number }>();
  /** The highest alias that has been set, and those up to it that are free again. */
  #highest = 0;
  readonly #free: number[] = [];

  /**
   * @param max highest alias the client takes, at least 1
   * @param after which message of a topic sets its alias, from 1
   */
  constructor(max: number, after: number) {
    this.#max = max;
    this.#after = after;
  }

  /** @returns 0: send the topic alone; negative: send topic and alias, which sets it; positive: the alias says it all */
  choose(topic: string): number {
    const now = ++this.#now;
    const known = this.#aliases.get(topic);
    if (known !== undefined) {
      this.#aliases.delete(topic);
      this.#aliases.set(topic, known);
      known.usedAt = now;
      return known.alias;
    }
    const other = this.#others.get(topic) ?? { count: 0, cameAt: -1 };
    const alias = ++other.count < this.#after ? 0 : this.#take(other.cameAt);
    other.cameAt = now;
    this.#others.delete(topic);
    if (alias > 0) this.#aliases.set(topic, { alias, usedAt: now });
    else this.#remember(topic, other);
    return alias === 0 ? 0 : -alias; // never -0
  }

  /** @param cameAt when the topic came last @returns an alias that may be set, or 0 */
  #take(cameAt: number): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    if (this.#highest < this.#max) return ++this.#highest;
    const [oldest, { alias, usedAt }] = this.#aliases.entries().next().value as [
      string,
      { alias: number; usedAt: number }
    ];
    if (cameAt <= usedAt) return 0;
    this.#aliases.delete(oldest);
    return alias;
  }

  #remember(topic: string, other: { count: number; cameAt: number }): void {
    if (this.#others.size >= this.#max * REMEMBERED) this.#others.delete(this.#others.keys().next().value as string);
    this.#others.set(topic, other);
  }

  /** The packet that was to set it has not been sent. */
  forget(topic: string): void {
    const known = this.#aliases.get(topic);
    if (known === undefined) return;
    this.#aliases.delete(topic);
    this.#free.push(known.alias);
  }
}
