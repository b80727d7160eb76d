import type { EmissionFunction } from '../types.ts';
import type { OutputRows, SinkTarget } from './sink-node.ts';

/** A function of the app as a sink. */
export class FunctionTarget implements SinkTarget {
  readonly #call: EmissionFunction;
  /** Calls whose promises are not settled. */
  pending = 0;

  constructor(call: EmissionFunction) {
    this.#call = call;
  }

  push(rows: OutputRows): void | Promise<void> {
    // rows are shared with other rules, and the app may change what it gets
    const copies = rows.map((row) => ({ ...row }));
    const result = this.#call(copies) as Partial<PromiseLike<void>> | null | undefined;
    return typeof result?.then === 'function' ? this.#track(result as PromiseLike<void>) : undefined;
  }

  async close(): Promise<void> {}

  async #track(result: PromiseLike<void>): Promise<void> {
    this.pending++;
    try {
      await result;
    } finally {
      this.pending--;
    }
  }
}
