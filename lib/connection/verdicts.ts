const MAX_TOPICS = 256;
/** Longer topic names are not kept: V8 searches a Map of long strings slowly, and 256 of them would take much memory. */
const MAX_TOPIC_CHARS = 512;

/**
 * Whether the client of a connection may publish, by topic name. Used if all authorizePublish hooks declare that their answer depends on
 * client and topic alone. When there are more topics than the limit, the oldest one is forgotten.
 */
export class Verdicts {
  readonly #codes = new Map<string, number>();

  /** @returns 0: the client may publish; from 0x80: the reason code of the refusal; undefined: not known */
  get(topic: string): number | undefined {
    return this.#codes.get(topic);
  }

  set(topic: string, code: number): void {
    if (topic.length > MAX_TOPIC_CHARS) return;
    if (this.#codes.size >= MAX_TOPICS) {
      for (const oldest of this.#codes.keys()) {
        this.#codes.delete(oldest);
        break;
      }
    }
    this.#codes.set(topic, code);
  }
}
