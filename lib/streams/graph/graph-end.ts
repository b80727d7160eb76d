import { errorText } from '../../base/errors.ts';
import type { Cause } from '../values/cause.ts';
import type { Emission, Frame } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';
import type { Next } from './input.ts';
import type { OutputRows, SinkNode } from './sink-node.ts';

/** The end of a graph: emissions go to the sinks, to functions of the app, and to those who iterate over them. */
export class GraphEnd implements Next {
  readonly #sinks: readonly SinkNode[];
  readonly #emitted: (rows: OutputRows) => void;
  readonly #frame: Pick<Frame, 'many'>;
  items = 0;

  /**
   * @param frame contains the message with many rows to which an item belongs
   * @param emitted called with each emission, before the sinks
   */
  constructor(sinks: readonly SinkNode[], frame: Pick<Frame, 'many'>, emitted: (rows: OutputRows) => void) {
    this.#sinks = sinks;
    this.#frame = frame;
    this.#emitted = emitted;
  }

  push(item: unknown): void {
    const { rows, cause } = item as Emission;
    this.items++;
    this.#emitted(rows);
    for (const sink of this.#sinks) sink.push(rows, cause);
  }

  flush(): void {}

  passError(error: unknown, cause: Cause | undefined): void {
    const failure = error instanceof Error ? error : new StreamFailure(errorText(error));
    const { many } = this.#frame;
    const isSent = many?.hasFailed !== true;
    if (many !== undefined) many.hasFailed = true;
    for (const sink of this.#sinks) sink.passError(failure, cause, isSent);
  }
}
