import { StreamFailure } from '../values.ts';
import type { Next } from './node.ts';
import type { OutputRows, SinkNode } from './sink-node.ts';

/** The end of a graph: its emissions go to the sinks, to functions of the app, and to those who iterate over them. */
export class Outputs implements Next {
  readonly #sinks: readonly SinkNode[];
  readonly #emitted: (rows: OutputRows) => void;

  /** @param emitted called with each emission, before the sinks */
  constructor(sinks: readonly SinkNode[], emitted: (rows: OutputRows) => void) {
    this.#sinks = sinks;
    this.#emitted = emitted;
  }

  push(item: unknown): void {
    this.#emitted(item as OutputRows);
    for (const sink of this.#sinks) sink.push(item);
  }

  flush(): void {}

  passError(error: unknown): void {
    const failure = error instanceof Error ? error : new StreamFailure(String(error));
    for (const sink of this.#sinks) sink.passError(failure);
  }
}
