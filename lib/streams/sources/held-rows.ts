import type { Consumer } from '../graph/consumer.ts';
import type { PlannedStream } from '../plan/plan.ts';
import { StreamFailure } from '../values/values.ts';
import type { Attachment } from './hub.ts';

/** The rows of one stream that arrived while no graph takes them. */
class HeldStream implements Consumer {
  readonly takesWhole: boolean;
  readonly #most: number;
  readonly #waiting: ((consumer: Consumer) => void)[] = [];
  #dropped = 0;
  #attachment: Attachment | undefined;
  #release = () => {};

  constructor(most: number, takesWhole: boolean) {
    this.#most = most;
    this.takesWhole = takesWhole;
  }

  attached(attachment: Attachment): void {
    this.#attachment = attachment;
    this.#release = attachment.hold();
  }

  /** Drop the rows, because no rule has taken them. */
  async release(): Promise<void> {
    const detached = this.#attachment?.detach();
    this.#release();
    await detached;
  }

  push(row: Parameters<Consumer['push']>[0]): void {
    this.#hold((consumer) => consumer.push(row));
  }

  fail(...failure: Parameters<Consumer['fail']>): void {
    this.#hold((consumer) => consumer.fail(...failure));
  }

  passTo(consumer: Consumer): void {
    this.#countLeft(consumer);
    void this.#attachment?.detach(); // the source stays open for the rule
    for (const pass of this.#waiting.splice(0)) pass(consumer);
    this.#release();
    if (this.#dropped === 0) return;
    const text = `buffer full: ${this.#dropped} rows were dropped while the rule was updated (option bufferLength, ${this.#most})`;
    consumer.fail(new StreamFailure(text));
    this.#dropped = 0;
  }

  /** Report that the rest of a long message does not reach a rule that takes messages in another way. */
  #countLeft(next: Consumer): void {
    const { rows = 0, messages = 0 } = this.#attachment?.left ?? {};
    if (rows + messages === 0 || (next.takesWhole === true) === this.takesWhole) return;
    const text = `the rule was updated with another qos during a long message: ${rows} rows of it, and ${messages} messages after it, were dropped`;
    next.fail(new StreamFailure(text));
  }

  #hold(pass: (consumer: Consumer) => void): void {
    if (this.#waiting.length >= this.#most) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(pass);
    if (this.#waiting.length === this.#most) this.#attachment?.setFull(true); // sources that can wait do so
  }
}

/**
 * Holds back the rows of streams while the running rule that uses them is replaced. The streams stay open in the
 * meantime, so that each row is passed on once: either to the previous rule or to the next one.
 */
export class HeldRows {
  readonly #streams = new Map<string, HeldStream>();

  /**
   * Begin to hold back rows. The caller must detach the previous rule in the same turn.
   * @param most maximum number of rows of each stream
   * @param takesWhole whether both rules make checkpoints, so that they take long messages in the turn in which they
   *   arrive
   * @param attach attaches a consumer to a stream
   */
  constructor(
    streams: readonly PlannedStream[],
    most: number,
    takesWhole: boolean,
    attach: (stream: PlannedStream, consumer: Consumer) => Attachment
  ) {
    for (const stream of streams) {
      const held = new HeldStream(Math.max(1, most), takesWhole);
      held.attached(attach(stream, held));
      this.#streams.set(keyOf(stream), held);
    }
  }

  /** Pass the rows of a stream to a rule that was attached in the same turn, and stop holding them back. */
  passTo(consumer: Consumer, stream: PlannedStream): void {
    const held = this.#streams.get(keyOf(stream));
    if (held === undefined) return;
    this.#streams.delete(keyOf(stream));
    held.passTo(consumer);
  }

  /** Drop the rows that no rule has taken. Resolves when sources without rules are closed. */
  async release(): Promise<void> {
    const held = [...this.#streams.values()];
    this.#streams.clear();
    await Promise.all(held.map((each) => each.release()));
  }
}

function keyOf({ position, definition }: PlannedStream): string {
  return `${position} ${definition.sql}`;
}
