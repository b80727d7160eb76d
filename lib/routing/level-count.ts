/** A name in the topic tree: of topics with retained messages, and of topic filters with subscriptions. */
export interface TopicLevel {
  readonly node: string;
  /** The name of the level, which may be empty; `+` and `#` are wildcards of topic filters. */
  readonly level: string;
  /** The topic or topic filter that ends here. */
  readonly topic: string;
  /** True if the topic has a retained message. */
  readonly isRetained: boolean;
  /** True if the topic filter has subscriptions. */
  readonly isSubscribed: boolean;
  /** Number of topics below this one that have a retained message. */
  readonly retainedBelow: number;
  /** Number of topic filters below this one that have subscriptions. */
  readonly subscribedBelow: number;
}

type Counted = { -readonly [N in keyof TopicLevel]: TopicLevel[N] };

/** Counts the topics at and below each name of one level of the topic tree. */
export class LevelCount {
  /** The names of the level. */
  readonly levels = new Map<string, TopicLevel>();
  readonly #prefix: string;
  readonly #node: string;

  /** @param prefix the beginning of the topics: the topic of the level above and a slash, or an empty string */
  constructor(prefix: string, node: string) {
    this.#prefix = prefix;
    this.#node = node;
  }

  /** @param topic with a retained message */
  addRetained(topic: string): void {
    const place = this.#placeOf(topic);
    if (place === undefined) return;
    if (place.topic.length === topic.length) place.isRetained = true;
    else place.retainedBelow++;
  }

  /** @param filter with subscriptions */
  addSubscribed(filter: string): void {
    const place = this.#placeOf(filter);
    if (place === undefined) return;
    if (place.topic.length === filter.length) place.isSubscribed = true;
    else place.subscribedBelow++;
  }

  /** The name of the level to which a topic belongs; undefined if it does not begin with the prefix. */
  #placeOf(topic: string): Counted | undefined {
    if (!topic.startsWith(this.#prefix)) return undefined;
    const from = this.#prefix.length;
    const end = topic.indexOf('/', from);
    const level = end === -1 ? topic.slice(from) : topic.slice(from, end);
    let place: Counted | undefined = this.levels.get(level);
    if (place === undefined) {
      const counts = { isRetained: false, isSubscribed: false, retainedBelow: 0, subscribedBelow: 0 };
      place = { node: this.#node, level, topic: this.#prefix + level, ...counts };
      this.levels.set(level, place);
    }
    return place;
  }
}
