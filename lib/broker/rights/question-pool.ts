import { isThenable } from '../../events/hooks.ts';

/** Maximum number of questions at a time. */
const MAX_ASKING = 64;
/** Maximum number of questions about the same client at a time. */
const MAX_OF_CLIENT = 8;
/** Maximum number of questions that start in one turn. */
const AT_ONCE = 100;

/** The questions about one client. */
interface Inquiry {
  /** Questions that have not started. Each answers whether it is decided. */
  left: (() => boolean | Promise<boolean>)[];
  /** Number of questions that are being asked. */
  asking: number;
  readonly isWaiting: () => boolean;
  readonly resolve: (isDecided: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Asks questions about clients: a limited number at a time, and few of them about the same client. Clients are served in the order in which
 * they arrive. The first question that is not decided ends those about its client.
 */
export class QuestionPool {
  readonly #turn: { later(run: () => void): void };
  /** The clients about which questions have not started. */
  readonly #waiting = new Set<Inquiry>();
  #asking = 0;
  #isScheduled = false;

  constructor(turn: { later(run: () => void): void }) {
    this.#turn = turn;
  }

  /**
   * Ask questions about a client. There is at least one.
   * @param left each answers whether it is decided
   * @param isWaiting whether the client still waits: if not, no further questions are asked about it
   * @returns whether all are decided; false as soon as one is not
   */
  ask(left: (() => boolean | Promise<boolean>)[], isWaiting: () => boolean): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.add({ left, asking: 0, isWaiting, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    this.#turn.later(() => this.#continue());
  }

  #continue(): void {
    this.#isScheduled = false;
    let most = AT_ONCE;
    for (const inquiry of this.#waiting) {
      while (inquiry.left.length > 0 && inquiry.asking < MAX_OF_CLIENT) {
        if (this.#asking === MAX_ASKING) return; // an answer continues
        if (most-- === 0) {
          this.#schedule();
          return;
        }
        this.#begin(inquiry);
      }
    }
  }

  #begin(inquiry: Inquiry): void {
    const question = inquiry.left.shift() as () => boolean | Promise<boolean>;
    if (inquiry.left.length === 0) this.#waiting.delete(inquiry);
    const answer = inquiry.isWaiting() && question();
    if (!isThenable(answer)) {
      this.#answered(inquiry, answer);
      return;
    }
    this.#asking++;
    inquiry.asking++;
    answer
      .catch((error: unknown) => {
        inquiry.reject(error);
        return false;
      })
      .then((isDecided) => {
        this.#asking--;
        inquiry.asking--;
        this.#answered(inquiry, isDecided);
        this.#schedule();
      });
  }

  #answered(inquiry: Inquiry, isDecided: boolean): void {
    if (isDecided && (inquiry.left.length > 0 || inquiry.asking > 0)) return;
    inquiry.left = [];
    this.#waiting.delete(inquiry);
    inquiry.resolve(isDecided); // only the first call counts
  }
}
