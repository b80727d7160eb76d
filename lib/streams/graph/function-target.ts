import { isThenable } from '../../events/hooks.ts';
import type { EmissionFunction } from '../types.ts';
import { StreamFailure } from '../values/values.ts';
import type { OutputRows, SinkTarget } from './sink-node.ts';

/**
 * A function of the app as a sink.
 *
 * It is not called while it has too many promises that are not settled: `push` throws then, and the emission is dropped.
 */
export class FunctionTarget implements SinkTarget {
  readonly #call: EmissionFunction;
  /** Calls whose promises are not settled; undefined: there have been none. */
  #calls: Set<Promise<void>> | undefined;
  readonly #most: number;

  /** @param most how many promises may be unsettled: the option `bufferLength` of the rule */
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
      const text = `buffer full, drop message to the function: ${this.#most} calls are not settled (bufferLength)`;
      throw new StreamFailure(text);
    }
    // rows are shared with other rules, and the app may change what it gets
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
