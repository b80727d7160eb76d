import type { BaseServices } from '../base/base-services.ts';
import { BrokerError, StateError } from '../base/errors.ts';
import { FunctionTimer } from '../base/timing-wheel.ts';
import type { StoreSnapshot } from '../store/store.ts';
import { linesOf } from '../tools/copy.ts';
import { type Broker, engineOf } from './broker.ts';

/** Time without a read after which a backup is ended. */
const STALLED_MS = 60_000;

/** The brokers for which a backup is in progress. */
const RUNNING = new WeakSet<Broker>();

/**
 * Back up the store of a broker while it runs.
 *
 * The backup contains everything that was acknowledged or committed before the call, and nothing that came after the promise has resolved.
 * Its lines, without line ends, are those of `exportStore` without `content`; `importStore` and `embermq store import` read them. They
 * contain what the store contains: messages, and hashes of passwords. A backup without its last line, which has `records`, is incomplete.
 *
 * Until the iteration has ended, the store keeps its content from the beginning, so read the lines without long pauses. If no line is read
 * for 60 seconds, the backup is ended and reported as an `error` event, and the iteration throws BACKUP_STALLED. Only one backup of a
 * broker can be in progress at a time. If the broker stops, or opens its store again after a failure, the iteration throws.
 * @throws StateError BACKUP_RUNNING, BROKER_NOT_STARTED; BrokerError BACKUP_UNSUPPORTED if the broker has no store, or one without
 * `snapshot`; BrokerError STORE_FAILED; errors of the store
 */
export async function backup<Data>(broker: Broker<Data>): Promise<AsyncIterableIterator<string>> {
  const { ledger, services } = engineOf(broker as Broker);
  const { store } = ledger ?? {};
  if (ledger === undefined || store?.snapshot === undefined) {
    const why = store === undefined ? 'the broker has no store (option store)' : `${store.name}: it has no snapshots`;
    throw new BrokerError('BACKUP_UNSUPPORTED', `there can be no backup while the broker runs: ${why}`);
  }
  if (!ledger.isOpen) throw new StateError('BROKER_NOT_STARTED', 'the broker is not started; use exportStore');
  if (RUNNING.has(broker as Broker))
    throw new StateError('BACKUP_RUNNING', `${store.name}: another backup is being made; wait until it has ended`);
  if (ledger.isFailed) throw ledger.refusal();
  RUNNING.add(broker as Broker);
  try {
    // so that the backup also includes changes that no acknowledgement waits for
    ledger.pulse();
    await ledger.committed(ledger.ticket);
    const snapshot = await store.snapshot();
    return new Backup(services, store.name, snapshot, () => RUNNING.delete(broker as Broker));
  } catch (error) {
    RUNNING.delete(broker as Broker);
    throw error;
  }
}

/** The lines of a backup. The snapshot is released when the backup has ended, is ended before its first line, or is no longer read. */
class Backup implements AsyncIterableIterator<string> {
  readonly #lines: AsyncGenerator<string, void>;
  readonly #snapshot: StoreSnapshot;
  readonly #name: string;
  readonly #services: BaseServices;
  readonly #onEnd: () => void;
  readonly #timer = new FunctionTimer((nowMs) => this.#checkReader(nowMs));
  /** Time at which the last line was returned. */
  #givenMs: number;
  #isReading = false;
  #isOver = false;
  /** Set if the backup was ended because it was not read. */
  #stalled: BrokerError | undefined = undefined;

  constructor(services: BaseServices, name: string, snapshot: StoreSnapshot, onEnd: () => void) {
    this.#name = name;
    this.#snapshot = snapshot;
    this.#services = services;
    this.#onEnd = onEnd;
    this.#givenMs = services.clock.monotonic();
    services.wheel.arm(this.#timer, STALLED_MS);
    const read: StoreSnapshot['read'] = (from, to, limit) => snapshot.read(from, to, limit);
    this.#lines = linesOf({ name, read }, undefined, false);
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    if (this.#stalled !== undefined) throw this.#stalled;
    this.#isReading = true;
    try {
      const { done, value } = await this.#lines.next();
      this.#givenMs = this.#services.clock.monotonic();
      this.#isReading = false;
      if (done !== true) return { done: false, value };
    } catch (error) {
      await this.#end();
      throw error;
    }
    await this.#end();
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<string, undefined>> {
    await this.#lines.return();
    await this.#end();
    return { done: true, value: undefined };
  }

  async #end(): Promise<void> {
    if (this.#isOver) return; // another backup may be in progress
    this.#isOver = true;
    this.#services.wheel.disarm(this.#timer);
    this.#onEnd();
    await this.#snapshot.close();
  }

  /** End the backup if it was not read for too long. The time that the store needs does not count. */
  #checkReader(nowMs: number): void {
    const idleMs = this.#isReading ? 0 : nowMs - this.#givenMs;
    if (idleMs < STALLED_MS) {
      this.#services.wheel.arm(this.#timer, STALLED_MS - idleMs);
      return;
    }
    const why = `no line was read for ${STALLED_MS / 1000} seconds, so it was ended`;
    this.#stalled = new BrokerError('BACKUP_STALLED', `${this.#name}: the backup is incomplete: ${why}`);
    this.#services.failed(this.#stalled, 'a backup');
    this.return().catch((error: unknown) => this.#services.failed(error, 'a backup'));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
