// A source that can wait does not read while a rule has no room; others go on. Rows with an acknowledgement wait
// while a rule is full or is being replaced, and are given in their order. What a full rule or a closing source
// causes happens in a microtask, because the rule is in the middle of its work. Rules with `qos` above 0 have a feed
// that takes all rows of a message in one turn, because the publisher is answered at the end of that turn. An
// acknowledgement follows the commit of the records that its rows have caused.

import { BrokerError, errorText } from '../../base/errors.ts';
import { checkOpened } from '../../targets/type-checks.ts';
import { ConnectionState } from '../graph/connection-state.ts';
import type { Consumer, Need } from '../graph/consumer.ts';
import type { ConnectionCounters } from '../graph/metrics.ts';
import type { OpenSource, Properties, SourceSetup, SourceType, StreamDefinition } from '../types.ts';
import type { Cause } from '../values/cause.ts';
import { type Metadata, NO_METADATA } from '../values/tuple.ts';
import { StreamFailure, type StreamValueObject } from '../values/values.ts';
import { Feed, type FeedHost } from './feed.ts';
import { FirstMessages } from './first-messages.ts';
import type { FirstRows } from './first-rows.ts';
import type { HubPorts } from './hub-ports.ts';
import { Lane } from './lane.ts';
import { notesOf, placeOf } from './notes.ts';
import type { StreamSettings } from './stream-settings.ts';

/** The counters of a source in the status. */
export interface SourceCounters {
  /** Rows, and payloads that could not be read. */
  readonly recordsIn: number;
  readonly exceptions: number;
  readonly lastException: string;
  /** Wall-clock milliseconds; 0: never. */
  readonly lastExceptionAt: number;
}

const NO_VALUES: StreamValueObject = {};

/** An open source, shared by all rules that use its stream. */
export class SharedSource {
  readonly definition: StreamDefinition;
  readonly #type: SourceType;
  readonly #settings: StreamSettings;
  readonly #ports: HubPorts;
  /** The rules that take long messages in slices, and those that take each message in the turn of its arrival. */
  readonly #feeds: readonly [sliced: Feed, whole: Feed];
  readonly #first: FirstMessages;
  #isClosed = false;
  #opened: Promise<void> = Promise.resolve();
  #open: OpenSource | undefined;
  /** Callbacks that wait until the source is open. */
  readonly #beforeOpen: { opened(open: OpenSource): void; closed(): void; failed(error: unknown): void }[] = [];
  /** Promises that settle when tables have received their first rows. */
  readonly #tables = new WeakMap<Lane, Promise<void>>();
  /** Number of placeholders for rules that are being replaced. */
  #holds = 0;
  /** Rows with an acknowledgement that wait until they can be passed on; those before `#deferredAt` have been. */
  #deferred: (() => void)[] = [];
  #deferredAt = 0;
  /** Number of rules without room. */
  #full = 0;
  #whenRoom: (() => void)[] = [];
  readonly #whenClosed = new Set<() => void>();
  readonly #connection: ConnectionState;
  #counters: SourceCounters = { recordsIn: 0, exceptions: 0, lastException: '', lastExceptionAt: 0 };
  #recordsIn = 0;

  constructor(definition: StreamDefinition, type: SourceType, settings: StreamSettings, ports: HubPorts) {
    this.definition = definition;
    this.#type = type;
    this.#settings = settings;
    this.#ports = ports;
    this.#connection = new ConnectionState(ports.clock);
    const host: FeedHost = {
      stream: definition.name,
      what: settings.what,
      arrived: (count) => {
        this.#recordsIn += count;
      },
      count: (error) => this.#count(error),
      failed: (error, during) => ports.failed(error, during),
      pause: () => ports.pause(),
      setFull: (isFull) => this.setFull(isFull)
    };
    this.#feeds = [new Feed(host, false), new Feed(host, true)];
    const isClosed = () => this.#isClosed;
    this.#first = new FirstMessages({
      get isClosed() {
        return isClosed();
      },
      taken: () => host.arrived(1),
      failed: (error) => ports.failed(error, `passing the first rows of ${settings.what}`),
      pause: () => ports.pause()
    });
  }

  /**
   * Open the source.
   * @param before settles when a previous source of this stream is closed; if undefined, there is none, and the source
   *   is opened immediately
   */
  start(properties: Properties, before: Promise<void> | undefined): void {
    this.#opened = this.#start(properties, before);
    this.#opened.catch((error) => {
      for (const { failed } of this.#beforeOpen.splice(0)) failed(error);
    }); // handled by the callers of attach
  }

  /** Resolves when the source is open. @throws the reason why it cannot be used at all */
  get opened(): Promise<void> {
    return this.#opened;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get isUnused(): boolean {
    return this.#feeds.every((feed) => feed.lanes.length === 0);
  }

  get connection(): ConnectionCounters {
    return this.#connection;
  }

  get counters(): SourceCounters {
    return { ...this.#counters, recordsIn: this.#recordsIn };
  }

  /**
   * @param first takes the first rows, before all others; if undefined, the rule receives none
   * @returns a promise that resolves when all first rows have been passed on. Rejects if the source cannot be opened
   */
  add(consumer: Consumer, need: Need, first?: FirstRows): Promise<void> {
    const lane = this.#laneOf(this.#feeds[consumer.takesWhole === true ? 1 : 0], need);
    lane.add(consumer, need);
    if (lane.isTable) return this.#tables.get(lane) ?? this.#opened;
    return first === undefined
      ? this.#opened
      : this.#whenOpen((open) => this.#first.feed(open, lane.reader(need), first));
  }

  #laneOf(feed: Feed, need: Need): Lane {
    let lane = feed.lanes.find((each) => each.serves(need));
    if (lane === undefined) {
      const host = {
        failed: (error: unknown) => this.#count(error),
        broken: (error: unknown) => this.#ports.failed(error, `passing a row of ${this.#settings.what} to a rule`),
        now: () => this.#ports.clock.now()
      };
      const made = new Lane(this.#settings, host, need, feed === this.#feeds[1]);
      feed.add(made);
      if (made.isTable) {
        const filled = this.#whenOpen((open) => this.#first.fill(open, made, made.reader(need)));
        filled.catch(() => undefined);
        this.#tables.set(made, filled);
      }
      lane = made;
    }
    return lane;
  }

  /** Call a function with the open source, in the turn in which it opens. Not called if the source is closed before. */
  #whenOpen(run: (open: OpenSource) => Promise<void> | undefined): Promise<void> {
    if (this.#open !== undefined) return run(this.#open) ?? this.#opened;
    return new Promise((resolve, reject) => {
      this.#beforeOpen.push({ opened: (open) => resolve(run(open)), closed: resolve, failed: reject });
    });
  }

  /** Pass the rows of a rule to another consumer. */
  swap(consumer: Consumer, next: Consumer): void {
    for (const lane of this.#lanes) lane.swap(consumer, next);
  }

  /** Make rows with an acknowledgement wait, because a rule is being replaced. @returns a function that ends this */
  hold(): () => void {
    this.#holds++;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holds--;
      this.#giveSoon();
    };
  }

  /** Called when rules have changed. */
  changed(): void {
    this.#open?.changed?.();
  }

  /** Number of remaining rows of the current message for a rule, and of messages that wait after it. */
  leftOf(consumer: Consumer): { readonly rows: number; readonly messages: number } {
    return this.#feeds[consumer.takesWhole === true ? 1 : 0].leftOf(consumer);
  }

  delete(consumer: Consumer): void {
    for (const feed of this.#feeds) feed.delete(consumer);
  }

  /** Pass on a row of the app, or one that needs no decoding. @param cause the rules that caused it */
  push(values: StreamValueObject, metadata?: Metadata, timestamp?: number, cause?: Cause): void {
    this.#arrive(undefined, metadata, timestamp, cause, values);
  }

  /** Note that a rule has no room, or has room again. */
  setFull(isFull: boolean): void {
    this.#full += isFull ? 1 : -1;
    this.#tellRoom();
    this.#giveSoon();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const feed of this.#feeds) feed.close();
    this.#whenRoom = [];
    for (const end of this.#whenClosed) end();
    for (const { closed } of this.#beforeOpen.splice(0)) closed();
    this.#giveSoon();
    await this.#opened.catch(() => undefined);
    try {
      await this.#open?.close();
    } catch (error) {
      this.#ports.failed(error, `closing the source of ${this.#settings.what}`);
    }
    this.#open = undefined;
  }

  async #start(properties: Properties, before: Promise<void> | undefined): Promise<void> {
    if (before !== undefined) {
      await before;
      if (this.#isClosed) return;
    }
    const opening = this.#type.open?.(this.#setupOf(properties));
    const open = (opening instanceof Promise ? await opening : opening) as OpenSource;
    this.#open = checkOpened(open, ['close'], `${this.#type.name}.open()`, 'SOURCE_INVALID');
    for (const { opened } of this.#beforeOpen.splice(0)) opened(open);
  }

  #setupOf(properties: Properties): SourceSetup {
    const { clock, dataDir, node, notes } = this.#ports;
    const isFull = () => this.#full > 0;
    const isKept = () => this.#ports.isKept(this.definition.name);
    return {
      stream: this.definition.name,
      datasource: this.definition.options.DATASOURCE ?? '',
      properties,
      dataDir,
      clock,
      node,
      get isKept() {
        return isKept();
      },
      notes: notesOf(notes, this.#type.name),
      place: placeOf(this.definition),
      ready: () => this.#ready(),
      kept: (give) => this.#kept(give),
      warn: (text) => this.#ports.warn(text),
      bytes: this.#arrive,
      row: (values, metadata, timestamp, cause) => this.push(values, metadata, timestamp, cause),
      end: () => {
        for (const lane of this.#lanes) lane.end();
      },
      connected: () => this.#connection.connected(),
      disconnected: (reason) => this.#connection.disconnected(reason),
      failed: (reason) => this.#fail(reason),
      get isFull() {
        return isFull();
      },
      whenRoom: (run) => {
        this.#whenRoom.push(run);
        this.#tellRoom();
      }
    };
  }

  /**
   * Resolves when the rules that are being started are ready, or when the source closes: closing must not wait for the
   * change that closes it.
   */
  #ready(): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.#whenClosed.delete(end);
        resolve();
      };
      this.#whenClosed.add(end);
      this.#ports.ready().then(end, end);
    });
  }

  #kept(give: () => void): Promise<void> {
    if (!this.#mustWait && this.#deferred.length === 0) return this.#giveNow(give);
    return new Promise((resolve, reject) => {
      this.#deferred.push(() => this.#giveNow(give).then(resolve, reject));
    });
  }

  /** Pass on rows before this method returns. */
  async #giveNow(give: () => void): Promise<void> {
    if (this.#isClosed || this.isUnused) throw new BrokerError('SOURCE_CLOSED', 'no rule reads the stream');
    const { records } = this.#ports;
    const before = records?.added;
    give();
    if (records?.added !== before) await records?.committed();
  }

  /** True if rows with an acknowledgement have to wait: a rule has no room, or is being replaced. */
  get #mustWait(): boolean {
    return (this.#full > 0 || this.#holds > 0) && !this.#isClosed;
  }

  /** Pass on the waiting rows in a microtask, because a rule may be processing a row. */
  #giveSoon(): void {
    if (this.#deferred.length === 0 || this.#mustWait) return;
    queueMicrotask(() => {
      while (this.#deferredAt < this.#deferred.length && !this.#mustWait) this.#deferred[this.#deferredAt++]();
      if (this.#deferredAt < this.#deferred.length) return;
      this.#deferred = [];
      this.#deferredAt = 0;
    });
  }

  #tellRoom(): void {
    if (this.#full > 0 || this.#whenRoom.length === 0) return;
    const waiting = this.#whenRoom;
    this.#whenRoom = [];
    // later, because the rule is processing a row
    queueMicrotask(() => {
      for (const run of waiting) {
        try {
          run();
        } catch (error) {
          this.#fail(error);
        }
      }
    });
  }

  /** Pass on a payload, or without one the values of a row: `bytes` and `row` of `SourceSetup`. */
  readonly #arrive = (
    payload: Uint8Array | undefined,
    metadata: Metadata = NO_METADATA,
    arrivedAt = this.#ports.clock.now(),
    cause?: Cause,
    values = NO_VALUES
  ): void => {
    if (this.#isClosed) return;
    const [sliced, whole] = this.#feeds;
    const isSliced = sliced.lanes.length > 0;
    if (isSliced) sliced.arrive(payload, values, metadata, arrivedAt, cause, true);
    if (whole.lanes.length > 0) whole.arrive(payload, values, metadata, arrivedAt, cause, !isSliced); // counted once
  };

  get #lanes(): Lane[] {
    return this.#feeds.flatMap(({ lanes }) => lanes);
  }

  #fail(reason: unknown): void {
    if (this.#isClosed) return;
    this.#recordsIn++;
    const error = reason instanceof Error ? reason : new StreamFailure(errorText(reason));
    this.#count(error);
    for (const lane of this.#lanes) lane.fail(error);
  }

  #count(error: unknown): void {
    this.#counters = {
      recordsIn: 0,
      exceptions: this.#counters.exceptions + 1,
      lastException: errorText(error),
      lastExceptionAt: this.#ports.clock.now()
    };
  }
}
