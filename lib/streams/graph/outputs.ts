import { errorText } from '../../base/errors.ts';
import type { Frame } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';
import type { Next } from './node.ts';
import type { OutputRows, SinkNode } from './sink-node.ts';

/** The end of a graph: emissions go to the sinks, to functions of the app, and to those who iterate over them. */
export class Outputs implements Next {
  readonly #sinks: readonly SinkNode[];
  readonly #emitted: (rows: OutputRows) => void;

  readonly #frame: Pick<Frame, 'cause' | 'many'>;

  /**
   * @param frame contains the cause of an item, and the message with many rows to which the item belongs
   * @param emitted called with each emission, before the sinks
   */
  constructor(sinks: readonly SinkNode[], frame: Pick<Frame, 'cause' | 'many'>, emitted: (rows: OutputRows) => void) {
    this.#sinks = sinks;
    this.#frame = frame;
    this.#emitted = emitted;
  }

  push(item: unknown): void {
    const { cause } = this.#frame; // the immediate consequences of the emission may change it
    this.#emitted(item as OutputRows);
    for (const sink of this.#sinks) sink.push(item as OutputRows, cause);
  }

  flush(): void {}

  passError(error: unknown): void {
    const failure = error instanceof Error ? error : new StreamFailure(errorText(error));
    const { cause, many } = this.#frame;
    const isSent = many?.hasFailed !== true;
    if (many !== undefined) many.hasFailed = true;
    for (const sink of this.#sinks) sink.passError(failure, cause, isSent);
  }
}
