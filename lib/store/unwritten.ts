// The publishers that cause writes wait for them. With one bound for all, a client whose messages go to many stored
// sessions paused every publisher for seconds. The ledger charges what a PUBLISH adds to the unwritten bytes to its
// connection. Above `maxUnwrittenBytes` the broker stops reading the connections that caused more than an equal
// share, counted by publishers. Publishes of the app, wills and delayed messages are not charged to a publisher (the
// app can await them) but count towards four times the bound, above which every connection that causes writes waits.

/** Factor of the limit: if the unwritten bytes exceed it, every publisher that has caused some of them must wait. */
const TOTAL = 4;

/** The unwritten bytes that one publisher has caused. */
export class UnwrittenShare {
  /** The commit that `gathered` belongs to; 0 if there is none. */
  ticket = 0;
  /** Bytes for the commit `ticket`. */
  gathered = 0;
  /** Bytes for the commit before that. */
  leaving = 0;
}

/** The state of commits; the ledger implements it. */
interface CommitNumbers {
  /** Number of the commit that will contain the current changes. */
  readonly ticket: number;
  /** Number of the last commit that the store has committed. */
  readonly settled: number;
}

/**
 * Counts the bytes that wait to be written, and charges them to publishers.
 *
 * The publishers share the limit. When it is exceeded, those that have caused more than an equal part of the limit must wait. So a
 * publisher that causes few bytes is not slowed down by others that cause many.
 */
export class Unwritten {
  #noted = 0;
  #max: number;
  readonly #commits: CommitNumbers;
  /** The value of `noted` when the last commit started. */
  #begunAt = 0;
  #leaving = 0;
  #charged = 0;
  #chargedLeaving = 0;
  #publishers = 0;
  #publishersLeaving = 0;

  constructor(max: number, commits: CommitNumbers) {
    this.#max = max;
    this.#commits = commits;
  }

  /** Change the limit. */
  limit(max: number): void {
    this.#max = max;
  }

  /** Sum of all bytes that were ever noted. The difference between two reads is the number of bytes caused in between. */
  get noted(): number {
    return this.#noted;
  }

  /** Note bytes that are to be written. */
  note(bytes: number): void {
    this.#noted += bytes;
  }

  /** Bytes for the next commit. */
  get gathered(): number {
    return this.#noted - this.#begunAt;
  }

  /** True if the unwritten bytes exceed the limit, so that publishers may have to wait; see `isTooMuch`. */
  get isMuch(): boolean {
    return this.gathered + this.#leaving > this.#max;
  }

  /** Note that a commit has started, which writes the gathered bytes. */
  begun(): void {
    this.#leaving = this.gathered;
    this.#begunAt = this.#noted;
    this.#chargedLeaving = this.#charged;
    this.#charged = 0;
    this.#publishersLeaving = this.#publishers;
    this.#publishers = 0;
  }

  /** Note that the commit has ended. */
  ended(): void {
    this.#leaving = this.#chargedLeaving = this.#publishersLeaving = 0;
  }

  /** Charge bytes, which are already in `noted`, to a publisher. */
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

  /** Tell whether a publisher has caused so many bytes that it must wait. */
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
