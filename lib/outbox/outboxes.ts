// The name of an outbox is what its records in the store belong to. Entries whose outbox is not open stay there
// (`#kept`) until an outbox of that name is opened or they are discarded. Nothing persisted is added before the store
// has been read: it would come before older entries of its key, and take the number of one of their records. Ids
// begin with a random prefix for the process, since a target must never see one id for two entries.

import { once, randomBytes } from '../base/builtins.ts';
import { BrokerError, StateError } from '../base/errors.ts';
import type { TimingWheel } from '../base/timing-wheel.ts';
import { Kind } from '../store/keys.ts';
import type { Ledger } from '../store/ledger.ts';
import { NumberedRecords } from '../store/numbered-records.ts';
import type { Draft } from '../store/record.ts';
import type { QueuedEntry, StoredEntry } from './entries.ts';
import { type OutboxOptions, readOutboxOptions } from './options.ts';
import { Outbox } from './outbox.ts';

/** Dependencies of `Outboxes` on the broker. */
interface OutboxesHost {
  readonly wheel: TimingWheel;
  /** Undefined if there is no store. */
  readonly ledger: Ledger | undefined;
  /** The state of the broker. */
  readonly life: { readonly isRunning: boolean };
  /** The wall-clock time in milliseconds. */
  now(): number;
  /** Call a function when the turn of the event loop has ended. */
  later(run: () => void): void;
  /** Note that a delivery is in progress. */
  during(delivery: Promise<unknown>): void;
  counted(what: 'sent' | 'failed' | 'dropped', count: number): void;
  raise(id: string, title: string, summary: string): void;
  clear(id: string): void;
  failed(error: unknown, during: string): void;
}

/** An entry with its record in the store. */
interface Recorded {
  readonly outbox: string;
  readonly entry: StoredEntry;
  /** Called when its record is committed. */
  committed(): void;
}

/** An entry of the store, with the number of its record. */
export interface OutboxRecord {
  readonly number: number;
  readonly outbox: string;
  readonly entry: StoredEntry;
}

const TITLES = { failing: 'deliveries fail', overflow: 'a queue of deliveries is full' } as const;

/**
 * The outboxes of a broker, by name: `broker.outboxes`. Everything that the broker sends to external systems on its own
 * goes through one: webhooks, actions of rules, sinks.
 */
export class Outboxes {
  readonly #host: OutboxesHost;
  readonly #records: NumberedRecords<Recorded> | undefined;
  readonly #open = new Map<string, Outbox>();
  /** The records of entries of open outboxes. */
  readonly #recorded = new Map<QueuedEntry, Recorded>();
  /** The entries in the store whose outbox is not open, by the name of the outbox. */
  readonly #kept = new Map<string, Recorded[]>();
  /** Prefix of the ids of this process. */
  readonly #prefix = once(() => randomBytes(6).toString('base64url'));
  #lastId = 0;
  /** True if the entries of the store are loaded. */
  #isRestored: boolean;

  /** @internal */
  constructor(host: OutboxesHost) {
    this.#host = host;
    this.#isRestored = host.ledger === undefined;
    this.#records =
      host.ledger &&
      new NumberedRecords<Recorded>(host.ledger, {
        kind: Kind.outbox,
        write: writeEntry,
        committed(items) {
          for (const item of items) item.committed();
        }
      });
  }

  /**
   * Open the outbox of a target. It continues with the stored entries of its name, as soon as the broker is started.
   * @throws StateError OUTBOX_IN_USE if an outbox of this name is open; InvalidInput OPTION_UNKNOWN, OPTION_INVALID,
   *   HANDLER_INVALID
   */
  open(options: OutboxOptions): Outbox {
    const limits = readOutboxOptions(options);
    const { name, label = name } = options;
    if (this.#open.has(name)) throw new StateError('OUTBOX_IN_USE', `outbox "${name}" is already open; close it first`);
    const host = this.#host;
    const outbox: Outbox = new Outbox(options, limits, {
      wheel: host.wheel,
      now: () => host.now(),
      nextId: () => `${this.#prefix()}-${(++this.#lastId).toString(36)}`,
      later: (run) => host.later(run),
      during: (delivery) => host.during(delivery),
      random: Math.random,
      check: () => limits.isPersisted && this.#checkRestored(name),
      added: (entry) => limits.isPersisted && this.#added(name, outbox, entry),
      removed: (entry) => this.#removed(entry),
      counted: (what, count) => host.counted(what, count),
      raise: (condition, summary) => host.raise(alarmId(condition, label), `${label}: ${TITLES[condition]}`, summary),
      clear: (condition) => host.clear(alarmId(condition, label)),
      failed: (error, during) => host.failed(error, during),
      closed: () => this.#closed(outbox)
    });
    this.#open.set(name, outbox);
    for (const recorded of this.#kept.get(name) ?? []) this.#adopt(outbox, recorded);
    this.#kept.delete(name);
    if (host.life.isRunning) outbox.begin();
    return outbox;
  }

  /** The open outbox of a name. */
  get(name: string): Outbox | undefined {
    return this.#open.get(name);
  }

  /** The open outboxes, in the order in which they were opened. */
  [Symbol.iterator](): Iterator<Outbox> {
    return this.#open.values();
  }

  /** Number of entries in all open outboxes. */
  get size(): number {
    let size = 0;
    for (const outbox of this.#open.values()) size += outbox.size;
    return size;
  }

  /** The names of outboxes that are not open and have entries in the store, with the number of these entries. */
  kept(): {
    /** The name of the outbox. */
    readonly name: string;
    /** Number of its entries in the store. */
    readonly size: number;
  }[] {
    return [...this.#kept].map(([name, entries]) => ({ name, size: entries.length }));
  }

  /** Delete the stored entries of an outbox that is not open. @returns their number */
  delete(name: string): number {
    const entries = this.#kept.get(name) ?? [];
    this.#kept.delete(name);
    for (const recorded of entries) this.#records?.forgotten(recorded);
    return entries.length;
  }

  /** @deprecated Use `delete`. */
  discard(name: string): number {
    return this.delete(name);
  }

  /** Take over the entries of the store. @internal */
  restore(records: Iterable<OutboxRecord>): void {
    for (const record of records) this.#restore(record);
    this.#isRestored = true;
  }

  #restore({ number, outbox: name, entry }: OutboxRecord): void {
    const recorded: Recorded = { outbox: name, entry, committed: () => undefined };
    this.#records?.restored(recorded, number);
    const outbox = this.#open.get(name);
    if (outbox !== undefined) this.#adopt(outbox, recorded);
    else if (!this.#kept.get(name)?.push(recorded)) this.#kept.set(name, [recorded]);
  }

  /** Called when the broker has started. @internal */
  begin(): void {
    for (const outbox of this.#open.values()) outbox.begin();
  }

  /** Resolves when no outbox can send anything at present. @internal */
  async drained(): Promise<void> {
    await Promise.all([...this.#open.values()].map((outbox) => outbox.idle()));
  }

  /** Called when the broker has stopped. @internal */
  halt(): void {
    for (const outbox of this.#open.values()) {
      outbox.halt();
      this.#reportUnstored(outbox);
    }
  }

  /** Report the entries of an outbox that only memory has. They are sent if the app starts the broker again. */
  #reportUnstored(outbox: Outbox): void {
    if (outbox.size === 0 || (outbox.limits.isPersisted && this.#records !== undefined)) return;
    const text = `entries that are not sent and not persisted are lost when the process ends: ${outbox.size}, ${outbox.label}`;
    this.#host.failed(new BrokerError('ENTRY_DROPPED', text), 'stopping');
  }

  /** Refuse new entries before the stored ones are loaded: they would precede the stored ones, and reuse a number. */
  #checkRestored(name: string): void {
    if (this.#isRestored) return;
    const text = `outbox "${name}": the store is not open; start the broker first`;
    throw new StateError('BROKER_NOT_STARTED', text);
  }

  #added(name: string, outbox: Outbox, entry: QueuedEntry): boolean {
    if (this.#records === undefined) return false;
    const recorded: Recorded = { outbox: name, entry, committed: () => outbox.committed(entry) };
    this.#recorded.set(entry, recorded);
    this.#records.added(recorded, entry.bytes);
    return true;
  }

  #removed(entry: QueuedEntry): void {
    const recorded = this.#recorded.get(entry);
    if (recorded === undefined) return;
    this.#recorded.delete(entry);
    this.#records?.forgotten(recorded);
  }

  #adopt(outbox: Outbox, recorded: Recorded): void {
    this.#recorded.set(outbox.restore(recorded.entry), recorded);
  }

  #closed(outbox: Outbox): void {
    this.#open.delete(outbox.name);
    const kept: Recorded[] = [];
    for (const entry of outbox.entries() as Iterable<QueuedEntry>) {
      const recorded = this.#recorded.get(entry);
      if (recorded === undefined) continue;
      this.#recorded.delete(entry);
      kept.push(recorded);
    }
    if (kept.length > 0) this.#kept.set(outbox.name, kept);
  }
}

function alarmId(condition: 'failing' | 'overflow', label: string): string {
  return `outbox_${condition}:${label}`;
}

function writeEntry(draft: Draft, { outbox, entry: { id, key, content, addedAt } }: Recorded): void {
  draft.text(outbox).text(id).text(key).f64(addedAt);
  if (typeof content === 'string') draft.u8(1).text(content);
  else draft.u8(0).bytes(content);
}
