const WINDOW = 4096;
const WORDS = WINDOW / 32;

/**
 * Checks the sequence numbers of flows (from one publisher to one receiver each) and counts duplicated and reordered messages.
 *
 * The number of lost messages is the number sent, which the caller knows, minus the number received for the first time.
 */
export class FlowCheck {
  /** The number of messages that arrived again. */
  duplicated = 0;
  /** The number of messages that arrived after a later one. */
  reordered = 0;
  readonly #next: Uint32Array;
  /** One bit for each of the last 4096 sequence numbers of each flow, set when the message was received. */
  readonly #seen: Uint32Array;

  constructor(flows: number) {
    this.#next = new Uint32Array(flows);
    this.#seen = new Uint32Array(flows * WORDS);
  }

  note(flow: number, sequence: number): void {
    const next = this.#next[flow];
    const word = flow * WORDS + ((sequence >>> 5) & (WORDS - 1));
    const bit = 1 << (sequence & 31);
    if (sequence === next) {
      this.#seen[word] |= bit;
      this.#next[flow] = sequence + 1;
    } else if (sequence > next) {
      this.#skip(flow, next, sequence);
      this.#seen[word] |= bit;
      this.#next[flow] = sequence + 1;
    } else if ((this.#seen[word] & bit) !== 0) {
      this.duplicated++;
    } else {
      this.#seen[word] |= bit;
      this.reordered++;
    }
  }

  #skip(flow: number, from: number, to: number): void {
    const end = Math.min(to, from + WINDOW);
    for (let missing = from; missing < end; missing++) {
      this.#seen[flow * WORDS + ((missing >>> 5) & (WORDS - 1))] &= ~(1 << (missing & 31));
    }
  }
}
