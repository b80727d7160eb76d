import type { Consumer } from '../graph/consumer.ts';
import type { StreamRow } from '../values/tuple.ts';

/**
 * Units of first rows that are passed on with each row that arrives in the meantime, so that the number of waiting rows
 * decreases.
 */
const AHEAD = 8;
/** Bytes of a payload that count as one unit. */
const UNIT_BYTES = 4096;

/** The number of units of a payload. */
export function unitsOf(bytes: number): number {
  return 1 + Math.floor(bytes / UNIT_BYTES);
}

/**
 * Passes the first rows of a source to a rule, such as retained messages, before all others: rows that arrive in the
 * meantime wait. Without first rows, and after them, rows are passed on immediately.
 */
export class FirstRows implements Consumer {
  readonly #rule: Consumer;
  /** Passes on the next first rows. @returns their units; 0 if there are no more */
  #next: (() => number) | undefined;
  #isHolding = false;
  #isPassing = false;
  /** The waiting rows and errors, from `#head` on. */
  #waiting: (() => void)[] = [];
  #head = 0;

  /** @param rule takes the rows */
  constructor(rule: Consumer) {
    this.#rule = rule;
  }

  /**
   * Begin to hold back other rows because there are first rows.
   * @param next passes on some of them.
   * @returns their units; 0 if there are no more
   */
  begin(next: () => number): void {
    this.#next = next;
    this.#isHolding = true;
  }

  /** The consumer of the first rows of a message. @param isLong whether it has many, which arrive in several turns */
  takerOf(isLong: boolean): Consumer {
    return (isLong ? this.#rule.many?.() : undefined) ?? this.#rule;
  }

  /** Pass on the next rows. @returns whether any are left */
  pass(units: number): boolean {
    if (!this.#isHolding || this.#isPassing) return this.#isHolding;
    this.#isPassing = true;
    try {
      for (let left = units; left > 0 && this.#isHolding; ) left -= this.#passOne();
    } finally {
      this.#isPassing = false;
    }
    return this.#isHolding;
  }

  /** End the first rows of the rule, and pass on the waiting rows. */
  end(): void {
    this.#next = undefined;
    this.pass(Infinity);
  }

  push(row: StreamRow): void {
    if (!this.#isHolding) this.#rule.push(row);
    else this.#wait(() => this.#rule.push(row));
  }

  fail(...failure: Parameters<Consumer['fail']>): void {
    if (!this.#isHolding) this.#rule.fail(...failure);
    else this.#wait(() => this.#rule.fail(...failure));
  }

  many(): Consumer {
    const rule = this.#rule.many?.() ?? this.#rule;
    const pass = (run: () => void) => (this.#isHolding ? this.#wait(run) : run());
    return {
      push: (row) => pass(() => rule.push(row)),
      fail: (...failure) => pass(() => rule.fail(...failure))
    };
  }

  #passOne(): number {
    if (this.#next !== undefined) {
      const taken = this.#next();
      if (taken === 0) this.#next = undefined;
      return taken;
    }
    const pass = this.#waiting[this.#head++];
    if (pass !== undefined) {
      pass();
      return 1;
    }
    this.#waiting = [];
    this.#head = 0;
    this.#isHolding = false;
    return 0;
  }

  #wait(pass: () => void): void {
    this.#waiting.push(pass);
    this.pass(AHEAD);
  }
}
