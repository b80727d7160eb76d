import { BrokerError, StateError } from '../base/errors.ts';
import type { StoreSnapshot } from '../store/store.ts';
import { linesOf } from '../tools/copy.ts';
import { type Broker, engineOf } from './broker.ts';

/** The brokers of which a backup is being made. */
const RUNNING = new WeakSet<Broker>();

/**
 * Back up the store of a broker while it runs.
 *
 * The backup has everything that was acknowledged or committed before the call, and nothing of what came after the promise has resolved. Its lines, without
 * line ends, are those of `exportStore` without `content`; `importStore` and `embermq store import` read them. They contain what the store
 * contains: messages, and hashes of passwords. A backup without its last line, which has `records`, is incomplete.
 *
 * Until the iteration has ended, the store keeps what it had at the beginning, so read the lines without long pauses. Only one backup of a
 * broker is made at a time. If the broker stops, or opens its store again after a failure, the iteration throws.
 * @throws StateError BACKUP_RUNNING, BROKER_NOT_STARTED; BrokerError BACKUP_UNSUPPORTED if the broker has no store, or one without
 *   `snapshot`; BrokerError STORE_FAILED; errors of the store
 */
export async function backup<Data>(broker: Broker<Data>): Promise<AsyncIterableIterator<string>> {
  const { ledger } = engineOf(broker as Broker);
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
    // so that the backup also has what no acknowledgement waits for
    ledger.pulse();
    await ledger.committed(ledger.ticket);
    const snapshot = await store.snapshot();
    return new Backup(store.name, snapshot, () => RUNNING.delete(broker as Broker));
  } catch (error) {
    RUNNING.delete(broker as Broker);
    throw error;
  }
}

/** The lines of a backup. It releases the snapshot when it has ended, or is ended before its first line. */
class Backup implements AsyncIterableIterator<string> {
  readonly #lines: AsyncGenerator<string, void>;
  readonly #snapshot: StoreSnapshot;
  readonly #ended: () => void;

  constructor(name: string, snapshot: StoreSnapshot, ended: () => void) {
    this.#snapshot = snapshot;
    this.#ended = ended;
    const read: StoreSnapshot['read'] = (from, to, limit) => snapshot.read(from, to, limit);
    this.#lines = linesOf({ name, read }, undefined, false);
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    try {
      const { done, value } = await this.#lines.next();
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
    this.#ended();
    await this.#snapshot.close();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
