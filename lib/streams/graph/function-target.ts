import { isThenable } from '../../events/hooks.ts';
import type { EmissionFunction } from '../types.ts';
import { StreamFailure } from '../values/values.ts';
import type { OutputRows, SinkTarget } from './sink-node.ts';

/**
 * A function of the app as a sink.
 *
 * While it has too many pending promises, the function is not called: `push` throws, and the emission is dropped.
 */
export class FunctionTarget implements SinkTarget {
  readonly #call: EmissionFunction;
  /** Calls whose promises are pending; undefined if there have been none. */
  #calls: Set<Promise<void>> | undefined;
  readonly #most: number;

  /** @param most maximum number of pending promises: the option `bufferLength` of the rule */
  constructor(call: EmissionFunction, most: number) {
    this.#call = call;
    this.#most = most;
  }

  get pending(): number {
    return this.#calls?.size ?? 0;
  }

  get isFull(): boolean {
    return this.pending >= this.#most;
  }

  push(rows: OutputRows): void | Promise<void> {
    if (this.isFull) {
      const text = `buffer full, drop message to the function: ${this.#most} calls are pending (option bufferLength)`;
      throw new StreamFailure(text);
    }
    // rows are shared with other rules, and the app may change its copies
    const copies = rows.map((row) => ({ ...row }));
    const result = this.#call(copies) as void | Promise<void>;
    return isThenable(result) ? this.#track(result) : undefined;
  }

  idle(): Promise<void> | undefined {
    const calls = this.#calls;
    return calls === undefined || calls.size === 0 ? undefined : Promise.allSettled(calls).then(() => undefined);
  }

  async close(): Promise<void> {}

  #track(result: PromiseLike<void>): Promise<void> {
    const calls = (this.#calls ??= new Set());
    const call: Promise<void> = Promise.resolve(result).finally(() => calls.delete(call));
    calls.add(call);
    return call;
  }
}
