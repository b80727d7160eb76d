/** Up to so many times the bound may wait in all, whoever caused it, before every publisher that caused some of it has to wait. */
const TOTAL = 4;

/** What one publisher has caused of the bytes that wait to be written: those of the commit that gathers, and of the one under way. */
export class UnwrittenShare {
  /** The commit that gathers `gathered`; 0: none. */
  ticket = 0;
  gathered = 0;
  leaving = 0;
}

/** Where commits stand; the ledger. */
interface Commits {
  /** The commit that will hold what is changed now. */
  readonly ticket: number;
  /** The last commit that is kept. */
  readonly settled: number;
}

/**
 * The bytes that wait to be written, and whom they are charged to. Publishers share the bound: over it, those wait that have caused more
 * than an equal part of it. So whoever causes nothing never waits, and whoever causes little goes on while others write much.
 */
export class Unwritten {
  /** All bytes that were ever noted: the difference between two looks is what was caused in between. */
  noted = 0;
  readonly #max: number;
  readonly #commits: Commits;
  /** `noted` when the commit began that is the last one. */
  #begunAt = 0;
  #leaving = 0;
  #charged = 0;
  #chargedLeaving = 0;
  #publishers = 0;
  #publishersLeaving = 0;

  constructor(max: number, commits: Commits) {
    this.#max = max;
    this.#commits = commits;
  }

  /** Bytes that gather for the next commit. */
  get gathered(): number {
    return this.noted - this.#begunAt;
  }

  /** More waits in all than the bound, so it may be too much for some publisher. */
  get isMuch(): boolean {
    return this.gathered + this.#leaving > this.#max;
  }

  /** What gathered is being written. */
  begun(): void {
    this.#leaving = this.gathered;
    this.#begunAt = this.noted;
    this.#chargedLeaving = this.#charged;
    this.#charged = 0;
    this.#publishersLeaving = this.#publishers;
    this.#publishers = 0;
  }

  /** The commit is over. */
  ended(): void {
    this.#leaving = this.#chargedLeaving = this.#publishersLeaving = 0;
  }

  /** A publisher has caused bytes that were noted. */
  charge(share: UnwrittenShare, bytes: number): void {
    const { ticket } = this.#commits;
    if (share.ticket !== ticket) {
      share.leaving = share.ticket === ticket - 1 ? share.gathered : 0;
      share.gathered = 0;
      share.ticket = ticket;
      this.#publishers++;
    }
    share.gathered += bytes;
    this.#charged += bytes;
  }

  /** Whether a publisher has caused so much that it has to wait. */
  isTooMuch(share: UnwrittenShare): boolean {
    const own = this.#of(share);
    if (own === 0) return false;
    if (this.gathered + this.#leaving > this.#max * TOTAL) return true;
    const part = this.#max / (this.#publishers + this.#publishersLeaving);
    return this.#charged + this.#chargedLeaving > this.#max && own > part;
  }

  #of({ ticket, gathered, leaving }: UnwrittenShare): number {
    const { ticket: next, settled } = this.#commits;
    const isUnderWay = settled < next - 1;
    if (ticket === next) return gathered + (isUnderWay ? leaving : 0);
    return ticket === next - 1 && isUnderWay ? gathered : 0;
  }
}
