// Items are sent one after the other unless `runAsync` is set; after a failure, the next ones are sent all the same.
// An item that can be sent at once needs no promise. Without a cache, an item that does not fit into the buffer or
// fails is lost, and the failure belongs to the call of `push`; with a cache, `push` succeeds when the cache has the
// item. Every send has a time limit, which only keeps a queue from standing still; sinks have shorter ones.

import type { Clock } from '../../base/clock.ts';
import { isThenable } from '../../events/hooks.ts';
import { ConnectionState } from '../graph/connection-state.ts';
import type { ConnectionFigures } from '../graph/metrics.ts';
import type { OutputRows, SinkTarget } from '../graph/sink-node.ts';
import type { OpenSink, SinkItem } from '../types.ts';
import { type Cause, deeper } from '../values/cause.ts';
import { StreamFailure } from '../values/values.ts';
import { within } from '../values/within.ts';
import type { SinkCache } from './cache.ts';
import type { CommonProperties } from './common-properties.ts';
import { type ItemKind, MadeItem } from './item.ts';
import type { Output, Transform } from './transform.ts';

/** A send that takes longer has failed. Sinks have shorter limits of their own; this one only keeps a queue from standing still. */
const SEND_MS = 300_000;
/** Longest time for which closing waits for what is being sent, and then for the sink. */
const CLOSE_MS = 5_000;
/** Most rows that are collected without a batchSize: as many as it may be. */
const MOST_COLLECTED = 1_000_000;

/** What an emitter is made with. */
interface EmitterSetup {
  /** For messages: `mqtt sink`. */
  readonly what: string;
  readonly properties: CommonProperties;
  readonly transform: Transform;
  readonly kind: ItemKind;
  readonly clock: Clock;
  /** Count a failure that belongs to no call of `push`. */
  failed(error: unknown): void;
}

/**
 * An action of a running rule: it turns emissions into items, and sends them one after the other.
 *
 * `push` throws, or its promise rejects, if an item cannot be made or sent: without a cache it is lost then [stream rules 8.1]. If one of
 * several items fails, the others are sent all the same; the further failures are reported through `failed`. With a cache, `push` has
 * succeeded when the items are in the cache, and each failed attempt is reported through `failed`.
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
  /** Rows that are collected. */
  #batch: Record<string, unknown>[] = [];
  /** The deepest cause of these. */
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

  /** Items that are not sent yet, with those in the cache. */
  get pending(): number {
    return this.#pending + (this.#cache?.size ?? 0);
  }

  /** undefined: the sink has reported nothing of a connection. */
  get connection(): ConnectionFigures | undefined {
    return this.#usesConnection ? this.#state : undefined;
  }

  /** Whether further items would be dropped. */
  get isFull(): boolean {
    return this.#pending >= this.#setup.properties.bufferLength;
  }

  /** Send an emission. @throws StreamFailure; what the sink throws */
  push(rows: OutputRows, cause?: Cause): void | Promise<void> {
    const { batchSize, lingerInterval } = this.#setup.properties;
    return batchSize > 0 || lingerInterval > 0 ? this.#collect(rows, cause) : this.#emit(rows, cause);
  }

  /** Send what is collected. Resolves when everything that was pushed so far has been sent, or is in the cache, or has failed. */
  idle(): Promise<void> | undefined {
    this.#flushBatch();
    return this.#pending === 0 ? undefined : this.#last.then(() => undefined);
  }

  /** Send what is collected, wait up to 5 s for what is being sent, and up to 5 s for the sink to close. @throws what the sink throws; StreamFailure */
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
    if (this.#batch.length >= (batchSize > 0 ? batchSize : MOST_COLLECTED)) return this.#emitBatch();
    if (lingerInterval > 0) this.#timer ??= this.#setup.clock.setTimeout(() => this.#flushBatch(), lingerInterval);
  }

  #emitBatch(): void | Promise<void> {
    const rows = this.#batch;
    const cause = this.#batchCause;
    this.#batch = [];
    this.#batchCause = undefined;
    this.#setup.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#emit(rows, cause);
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

  #emit(rows: OutputRows, cause: Cause | undefined): void | Promise<void> {
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

  /** @throws the first failure; the others are reported */
  async #all(sent: readonly (void | Promise<void>)[]): Promise<void> {
    const failures: unknown[] = [];
    for (const result of await Promise.allSettled(sent)) if (result.status === 'rejected') failures.push(result.reason);
    for (const failure of failures.slice(1)) this.#setup.failed(failure);
    if (failures.length > 0) throw failures[0];
  }

  #send(item: SinkItem): void | Promise<void> {
    if (this.#cache !== undefined) return this.#cache.add(item);
    if (this.#pending === 0) {
      const sent = this.#deliver(item);
      return isThenable(sent) ? this.#track(sent) : undefined;
    }
    const { bufferLength, runAsync } = this.#setup.properties;
    if (this.#pending >= bufferLength) {
      const text = `buffer full, drop message to the ${this.#setup.what}: ${bufferLength} wait (bufferLength)`;
      throw new StreamFailure(text);
    }
    if (!runAsync) return this.#track(this.#last.then(() => this.#deliver(item)));
    const sent = this.#deliver(item);
    return isThenable(sent) ? this.#track(sent) : undefined;
  }

  #deliver(item: SinkItem): void | Promise<void> {
    if (this.#isClosed) throw new StreamFailure(`the ${this.#setup.what} is closed: an output that waited is dropped`);
    return this.#sink?.send(item) as void | Promise<void>;
  }

  /** What follows waits for this. */
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
