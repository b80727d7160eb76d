/**
 * Topic aliases towards one client [MQTT-3.3.2-11]. A topic gets one when it comes a second time; when none is left, the one that has
 * not been used for longest is given away.
 */
export class TopicAliases {
  readonly #max: number;
  /** Least recently used first. */
  readonly #aliases = new Map<string, number>();
  readonly #seenOnce = new Set<string>();

  /** @param max highest alias the client takes, at least 1 */
  constructor(max: number) {
    this.#max = max;
  }

  /** @returns 0: send the topic alone; negative: send topic and alias, which sets it; positive: the alias says it all */
  choose(topic: string): number {
    const known = this.#aliases.get(topic);
    if (known !== undefined) {
      this.#aliases.delete(topic);
      this.#aliases.set(topic, known);
      return known;
    }
    if (!this.#seenOnce.delete(topic)) {
      if (this.#seenOnce.size >= this.#max * 2) this.#seenOnce.clear();
      this.#seenOnce.add(topic);
      return 0;
    }
    let alias = this.#aliases.size + 1;
    if (alias > this.#max) {
      const [oldest, given] = this.#aliases.entries().next().value as [string, number];
      this.#aliases.delete(oldest);
      alias = given;
    }
    this.#aliases.set(topic, alias);
    return -alias;
  }

  /** The packet that was to set it has not been sent. */
  forget(topic: string): void {
    const alias = this.#aliases.get(topic);
    if (alias === undefined) return;
    // keep the number in use, so that the others stay where they are
    this.#aliases.delete(topic);
    this.#aliases.set(`\u0000${alias}`, alias);
  }
}
