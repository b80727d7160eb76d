import { BrokerError } from '../../base/errors.ts';
import { afterCommit } from '../../store/after-commit.ts';
import { type PersistedMessage, segmentFirst } from '../../store/segment.ts';
import type { Entry } from '../../store/store.ts';
import type { SessionLog } from './log.ts';
import { SegmentReader } from './segment-reader.ts';
import { CLEARED_AT_ONCE } from './session-queue.ts';

/** After a page with fewer bytes than this, the next page has twice as many records. */
const SMALL_PAGE_BYTES = 65_536;
/** After a page with more bytes than this, the next page has half as many records. */
const LARGE_PAGE_BYTES = 1_048_576;
/** Maximum number of records of a page. */
const MAX_PAGE_RECORDS = 1_000;

/** Messages that are dropped when they are read. */
export interface DroppedPages {
  /** Upper bound: messages with a lower number are dropped. */
  readonly to: number;
  drop(persisted: PersistedMessage): void;
}

/**
 * Reads the messages of a session into memory, page by page: those in flight before its client is connected, the others as they are sent.
 *
 * A session has a `Paging` from the first page until the client disconnects. A page that is being read then is discarded.
 */
export class Paging {
  readonly #log: SessionLog;
  readonly #reader: SegmentReader;
  #records = 32;
  /** The page that is being read. */
  #reading: Promise<void> | undefined = undefined;
  /** Messages with a lower number are dropped instead of being queued. */
  #dropped: DroppedPages | undefined = undefined;
  /** True once the client has disconnected. */
  isStopped = false;
  /** Messages that are in flight, and their destinations: packet ids by message number. */
  #wanted: Map<number, number> | undefined = undefined;

  constructor(log: SessionLog) {
    this.#log = log;
    this.#reader = new SegmentReader(log);
  }

  /** Discard the page that is being read, and read no more. */
  stop(): void {
    this.isStopped = true;
  }

  /**
   * Load messages in flight. Further messages that are read go to the backlog.
   * @param wanted packet ids by message number
   * @throws the error of the store
   */
  async load(wanted: Map<number, number>): Promise<void> {
    const { messages, session } = this.#log;
    this.#wanted = wanted;
    while (wanted.size > 0 && !messages.isCaughtUp && !this.isStopped) await this.#read();
    if (this.isStopped) return;
    this.#wanted = undefined;
    for (const id of wanted.values()) session.outlet.inflight?.free(id); // the message is lost; the error was reported
  }

  /** Start reading the next page, unless one is being read; then send the waiting messages. */
  start(): void {
    if (this.#reading !== undefined) return;
    const { session } = this.#log;
    session.ports.work.begin();
    this.#reading = this.#read()
      .then(
        () => this.#end(),
        (error: unknown) => this.#failed(error)
      )
      .catch((error: unknown) => session.failInternally(error, 'sending queued messages'))
      .finally(() => session.ports.work.end());
  }

  /** Read messages, and drop those that would wait. This ends early when the client disconnects. */
  async drop(dropped: DroppedPages): Promise<void> {
    const { messages, ledger, session } = this.#log;
    this.#dropped = dropped;
    while (messages.pageFrom < dropped.to && !this.isStopped && !ledger.isFailed) {
      this.start();
      await this.#reading;
      await session.ports.turn.pause();
    }
    if (this.#dropped !== dropped) return;
    this.#dropped = undefined;
    if (!this.isStopped) session.outlet.pump();
  }

  #end(): void {
    if (this.isStopped) return;
    this.#reading = undefined;
    if (this.#dropped === undefined) this.#log.session.outlet.pump(); // otherwise it could start the next page in this turn
  }

  /** Try again when the store works again, because a page could not be read; if the store has not failed, close the connection. */
  #failed(error: unknown): void {
    if (this.isStopped) return;
    const { session, ledger } = this.#log;
    if (ledger.isFailed) {
      afterCommit(ledger, () => this.#end());
      return;
    }
    this.#reading = undefined;
    session.ports.announcer.failed(error, 'reading queued messages from the store', session.client);
    if (session.outlet.writer !== undefined) session.lifecycle.close('store_failed');
  }

  /** Read one page: records of the store, or at last the messages that are in no segment yet. */
  async #read(): Promise<void> {
    const { messages, queue, session } = this.#log;
    const { pageFrom, unwritten } = messages;
    if (pageFrom >= unwritten) {
      const all = messages.outsideSegments(pageFrom);
      const some = this.#dropped === undefined ? all : all.slice(0, CLEARED_AT_ONCE);
      for (const persisted of some) this.#place(persisted);
      messages.placedTo(some.length < all.length ? some[some.length - 1].seq + 1 : messages.next);
      queue.trimBacklog();
      return;
    }
    const limit = this.#dropped === undefined ? this.#records : 1; // dropping the messages of a record takes a part of a turn
    const entries = await this.#reader.records(pageFrom, unwritten, limit);
    if (this.isStopped) return;
    session.ports.time.read();
    let bytes = 0;
    for (const entry of entries) {
      if (bytes > 0 && this.#dropped !== undefined) return; // the others are read again in the next turn
      bytes += entry.value.length;
      const fault = this.#placeSegment(entry);
      if (fault === undefined) continue;
      await this.#reader.discard(entry, unwritten, fault);
      if (this.isStopped) return;
    }
    if (entries.length < limit) messages.placedTo(unwritten);
    const isSmall = this.#dropped === undefined && bytes < SMALL_PAGE_BYTES;
    if (isSmall) this.#records = Math.min(limit * 2, MAX_PAGE_RECORDS);
    else if (bytes > LARGE_PAGE_BYTES) this.#records = Math.max(limit >> 1, 1);
    queue.trimBacklog();
  }

  /** Put the messages of a record into memory. @returns the error if the record is damaged */
  #placeSegment(entry: Entry): BrokerError | undefined {
    const { messages } = this.#log;
    const read = this.#reader.read(entry);
    if (read instanceof BrokerError) {
      messages.placedTo(segmentFirst(entry.key) + 1);
      return read;
    }
    messages.placedTo(read.end, read.segment);
    for (const persisted of read.messages) this.#place(persisted);
    return undefined;
  }

  #place(persisted: PersistedMessage): void {
    if (persisted.isDone) return;
    const id = this.#wanted?.get(persisted.seq);
    const dropped = this.#dropped;
    if (id === undefined && dropped !== undefined && persisted.seq < dropped.to) dropped.drop(persisted);
    else if (id === undefined) this.#log.session.outlet.ensureBacklog().add(persisted);
    else {
      this.#wanted?.delete(persisted.seq);
      this.#log.session.outlet.inflight?.restoreMessage(id, persisted);
    }
  }
}
