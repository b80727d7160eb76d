import { setImmediate } from 'node:timers/promises';
import type { Attempt } from '../../lib/outbox/attempt.ts';
import type { OutboxEntry } from '../../lib/outbox/entries.ts';

/** A delivery that waits for its answer. */
interface Pending {
  readonly contents: readonly string[];
  readonly signal: AbortSignal;
  accept(): void;
  fail(error: Error): void;
}

/** A target whose answers the test determines. */
export class Target {
  /** The contents of all deliveries so far. */
  readonly seen: (readonly string[])[] = [];
  /** The ids of all deliveries so far. */
  readonly ids: string[] = [];
  readonly pending: Pending[] = [];
  /** Answers immediately; if undefined, deliveries wait in `pending`. */
  answer: ((contents: readonly string[]) => Error | undefined) | undefined;

  constructor(answer?: (contents: readonly string[]) => Error | undefined) {
    this.answer = answer;
  }

  readonly send = (entries: readonly OutboxEntry[], { signal }: Attempt): unknown => {
    const contents = entries.map(({ content }) => String(content));
    this.seen.push(contents);
    this.ids.push(...entries.map(({ id }) => id));
    if (this.answer !== undefined) {
      const error = this.answer(contents);
      if (error !== undefined) throw error;
      return undefined;
    }
    return new Promise<void>((resolve, reject) => {
      const end = (pending: Pending) => this.pending.splice(this.pending.indexOf(pending), 1);
      const pending: Pending = {
        contents,
        signal,
        accept: () => {
          end(pending);
          resolve();
        },
        fail: (error) => {
          end(pending);
          reject(error);
        }
      };
      this.pending.push(pending);
    });
  };

  /** The contents of all deliveries so far, in one list. */
  get contents(): string[] {
    return this.seen.flat();
  }
}

/** Waits until callbacks scheduled for the next turns have run. */
export async function turns(): Promise<void> {
  for (let left = 4; left > 0; left--) await setImmediate();
}
