const WINDOW = 4096;
const WORDS = WINDOW / 32;

/**
 * Watches the sequence numbers of flows (one publisher to one receiver each) and tells doubled and reordered messages.
 *
 * Losses are what was sent less what came for the first time: the caller knows what was sent.
 */
export class FlowCheck {
  /** Messages that came again. */
  duplicated = 0;
  /** Messages that came after a later one. */
  reordered = 0;
  readonly #next: Uint32Array;
  /** The last 4096 sequence numbers of each flow, a bit each: set when received. */
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
