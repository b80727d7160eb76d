/** Number of topics without an alias that are remembered, for each alias. */
const REMEMBERED = 2;

/**
 * Outgoing topic aliases of one client [MQTT-3.3.2-11].
 *
 * A topic gets an alias with its `after`-th message. If all aliases are taken, the least recently used alias is assigned to a topic that
 * has occurred twice since the alias was last used. So when more topics alternate than there are aliases, some topics keep their alias
 * instead of every topic losing it just before its next message.
 */
export class TopicAliases {
  readonly #max: number;
  readonly #after: number;
  /** Number of messages so far. */
  #now = 0;
  /** Aliases by topic, least recently used first. */
  readonly #aliases = new Map<string, { readonly alias: number; usedAt: number }>();
  /** Topics without an alias, the least recent first. */
  readonly #others = new Map<string, { count: number; cameAt: number }>();
  /** The highest alias that has been assigned. */
  #highest = 0;
  /** Assigned aliases that are free again. */
  readonly #free: number[] = [];

  /**
   * @param max highest alias that the client accepts, at least 1
   * @param after number of the message of a topic that sets the alias, from 1
   */
  constructor(max: number, after: number) {
    this.#max = max;
    this.#after = after;
  }

  /**
   * Choose the form in which the topic of the next message is sent.
   * @returns 0 to send the topic name alone; negative to send the topic name and set this alias; positive to send the alias alone
   */
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

  /** Get an alias that may be set. @param cameAt number of the previous message of the topic @returns 0 if there is none */
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

  /** The topic of an alias; undefined if it is not assigned. */
  topicOf(alias: number): string | undefined {
    for (const [topic, known] of this.#aliases) if (known.alias === alias) return topic;
    return undefined;
  }

  /** Free the alias of a topic, because the packet that sets it was not sent. */
  forget(topic: string): void {
    const known = this.#aliases.get(topic);
    if (known === undefined) return;
    this.#aliases.delete(topic);
    this.#free.push(known.alias);
  }
}
