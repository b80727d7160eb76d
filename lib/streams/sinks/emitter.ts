// Items are sent one after the other unless `runAsync` is set; after a failure, the next ones are sent all the same.
// An item that can be sent at once needs no promise. Without a cache, an item that does not fit into the buffer or
// fails is lost, and the failure belongs to the call of `push`; with a cache, `push` succeeds when the cache has the
// item. Every send has a time limit, which only keeps a queue from standing still; sinks have shorter ones.

import type { Clock } from '../../base/clock.ts';
import { isThenable } from '../../events/hooks.ts';
import { ConnectionState } from '../graph/connection-state.ts';
import type { ConnectionCounters } from '../graph/metrics.ts';
import type { OutputRows, SinkTarget } from '../graph/sink-node.ts';
import type { OpenSink, SinkItem } from '../types.ts';
import { type Cause, deeper } from '../values/cause.ts';
import { StreamFailure } from '../values/values.ts';
import { within } from '../values/within.ts';
import type { SinkCache } from './cache.ts';
import type { CommonProperties } from './common-properties.ts';
import { type ItemKind, MadeItem } from './item.ts';
import type { Output, Transform } from './transform.ts';

/** Time limit of a send. Sinks have shorter limits; this one only prevents a queue from stalling. */
const SEND_MS = 300_000;
/** Maximum time that closing waits for sends in progress, and then for the sink. */
const CLOSE_MS = 5_000;
/** Maximum number of rows that are collected without a batchSize: the maximum of that property. */
const MAX_COLLECTED = 1_000_000;

/** Settings and dependencies of an emitter. */
interface EmitterSetup {
  /** Name for messages: `mqtt sink`. */
  readonly what: string;
  readonly properties: CommonProperties;
  readonly transform: Transform;
  readonly kind: ItemKind;
  readonly clock: Clock;
  /** Report a failure that belongs to no call of `push`. */
  failed(error: unknown): void;
}

/**
 * An action of a running rule: converts emissions to items, and sends them one by one.
 *
 * `push` throws, or its promise rejects, if an item cannot be created or sent: without a cache the item is then lost
 * [stream rules 8.1]. If one of several items fails, the others are still sent; the other failures are reported by
 * `failed`. With a cache, `push` succeeds when the items are in the cache, and each failed attempt is reported by
 * `failed`.
 */
export class Emitter implements SinkTarget {
  readonly #setup: EmitterSetup;
  readonly #state: ConnectionState;
  #sink: OpenSink | undefined;
  #cache: SinkCache | undefined;
  #usesConnection = false;
  #count = 0;
  #pending = 0;
  #isClosed = false;
  /** The end of the queue. */
  #last: Promise<unknown> = Promise.resolve();
  /** Collected rows. */
  #batch: Record<string, unknown>[] = [];
  /** The longest cause of these rows. */
  #batchCause: Cause | undefined;
  #timer: unknown;

  constructor(setup: EmitterSetup) {
    this.#setup = setup;
    this.#state = new ConnectionState(setup.clock);
  }

  /** Begin to send. @internal */
  begin(sink: OpenSink, cache: SinkCache | undefined): void {
    this.#sink = sink;
    this.#cache = cache;
  }

  connected(): void {
    const wasConnected = this.#state.status === 1;
    this.#usesConnection = true;
    this.#state.connected();
    if (!wasConnected) this.#cache?.retryNow();
  }

  disconnected(reason: unknown): void {
    this.#usesConnection = true;
    this.#state.disconnected(reason);
  }

  /** Number of items that are not sent yet, including those in the cache. */
  get pending(): number {
    return this.#pending + (this.#cache?.size ?? 0);
  }

  /** Undefined if the sink has reported no connection. */
  get connection(): ConnectionCounters | undefined {
    return this.#usesConnection ? this.#state : undefined;
  }

  /** True if further items would be dropped. */
  get isFull(): boolean {
    return this.#pending >= this.#setup.properties.bufferLength;
  }

  /**
   * Send an emission.
   * @param isBatch whether the rows have been collected already
   * @throws StreamFailure; errors of the sink
   */
  push(rows: OutputRows, cause?: Cause, isBatch = false): void | Promise<void> {
    const { batchSize, lingerInterval } = this.#setup.properties;
    if (!isBatch && (batchSize > 0 || lingerInterval > 0)) return this.#collect(rows, cause);
    const outputs = this.#setup.transform(rows);
    const itemOf = (output: Output) => new MadeItem(output, this.#setup.kind, ++this.#count, cause);
    if (outputs.length === 1) return this.#send(itemOf(outputs[0]));
    const sent = outputs.map((output) => {
      try {
        return this.#send(itemOf(output));
      } catch (error) {
        return Promise.reject(error);
      }
    });
    if (sent.some((each) => each !== undefined)) return this.#all(sent);
  }

  /** Send the collected rows. Resolves when everything pushed so far has been sent, is in the cache, or has failed. */
  idle(): Promise<void> | undefined {
    this.#flushBatch();
    return this.#pending === 0 ? undefined : this.#last.then(() => undefined);
  }

  /**
   * Send the collected rows, wait up to 5 s for sends in progress, and up to 5 s for the sink to close.
   * @throws errors of the sink; StreamFailure
   */
  async close(): Promise<void> {
    const { clock, what } = this.#setup;
    await answered(clock, Promise.resolve(this.idle()), CLOSE_MS, `${what}: closing`).catch((error: unknown) =>
      this.#setup.failed(error)
    );
    this.#isClosed = true;
    this.#cache?.close();
    await answered(clock, Promise.resolve(this.#sink?.close()), CLOSE_MS, `${what}: closing`);
  }

  // --------------------------------------------------------------------------------------------------------------- batches

  #collect(rows: OutputRows, cause: Cause | undefined): void | Promise<void> {
    const { batchSize, lingerInterval } = this.#setup.properties;
    for (const row of rows) this.#batch.push(row);
    this.#batchCause = deeper(this.#batchCause, cause);
    if (this.#batch.length >= (batchSize > 0 ? batchSize : MAX_COLLECTED)) return this.#emitBatch();
    if (lingerInterval > 0) this.#timer ??= this.#setup.clock.setTimeout(() => this.#flushBatch(), lingerInterval);
  }

  #emitBatch(): void | Promise<void> {
    const rows = this.#batch;
    const cause = this.#batchCause;
    this.#batch = [];
    this.#batchCause = undefined;
    this.#setup.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.push(rows, cause, true);
  }

  #flushBatch(): void {
    if (this.#batch.length === 0) return;
    try {
      this.#emitBatch()?.catch((error: unknown) => this.#setup.failed(error));
    } catch (error) {
      this.#setup.failed(error);
    }
  }

  // --------------------------------------------------------------------------------------------------------------- sending

  /** @throws the first failure; the others are reported */
  async #all(sent: readonly (void | Promise<void>)[]): Promise<void> {
    const failures: unknown[] = [];
    for (const result of await Promise.allSettled(sent)) if (result.status === 'rejected') failures.push(result.reason);
    for (const failure of failures.slice(1)) this.#setup.failed(failure);
    if (failures.length > 0) throw failures[0];
  }

  #send(item: SinkItem): void | Promise<void> {
    if (this.#cache !== undefined) return this.#cache.add(item);
    if (this.#pending > 0) {
      const { bufferLength, runAsync } = this.#setup.properties;
      if (this.#pending >= bufferLength) {
        const text = `buffer full, drop message to the ${this.#setup.what}: ${bufferLength} are waiting (option bufferLength)`;
        throw new StreamFailure(text);
      }
      if (!runAsync) return this.#track(this.#last.then(() => this.#openSink()?.send(item)));
    }
    const sent = this.#openSink()?.send(item) as void | Promise<void>;
    return isThenable(sent) ? this.#track(sent) : undefined;
  }

  /** @throws StreamFailure if the sink is closed */
  #openSink(): OpenSink | undefined {
    if (this.#isClosed) throw new StreamFailure(`the ${this.#setup.what} is closed: a waiting output is dropped`);
    return this.#sink;
  }

  /** Track a send for which later sends wait. */
  #track(sent: PromiseLike<void>): Promise<void> {
    this.#pending++;
    const limited = answered(this.#setup.clock, sent, SEND_MS, this.#setup.what).finally(() => {
      this.#pending--;
    });
    const ended = limited.catch(() => undefined);
    this.#last = this.#setup.properties.runAsync ? Promise.all([this.#last, ended]) : ended;
    return limited;
  }
}

function answered<T>(clock: Clock, promise: PromiseLike<T>, ms: number, what: string): Promise<T> {
  return within(clock, promise, ms, `${what}: no answer within ${ms} ms`);
}
