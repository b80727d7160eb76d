// Each entry that has a `Settled` gets exactly one call, also if it is dropped, or lost with its outbox; entries of an
// earlier process are reported by their head. While an entry that displaces others is being added, no entry is added
// for the fallback of a displaced one, which would displace the next.

import { BrokerError } from '../../base/errors.ts';
import { type OutboxOptions, readOutboxOptions } from '../../outbox/options.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { Outboxes } from '../../outbox/outboxes.ts';
import type { Cascade } from '../../packets/named-publisher.ts';
import type { TargetLimits } from '../../targets/target.ts';
import { actionIdOf, contentOf, type EntryHead, headOf, withHead } from '../entry-head.ts';
import type { ActionTarget } from '../types.ts';

/** Called when an entry that was added before the current start of the process has left the outbox. */
export type SettledEarlier = (ruleId: string, head: EntryHead, isSent: boolean, error: Error | undefined) => void;

/** Called when the outcome of an entry is known. */
export type Settled = (isSent: boolean, error: Error | undefined) => void;

/** An entry that was added in this process, until it leaves the outbox. */
interface Pending {
  readonly settled: Settled;
  readonly keptBytes: number;
  /** Counts the messages of the event for which the action ran. */
  readonly cascade: Cascade | undefined;
}

/** An entry that has left the outbox, with the reason. */
type OutcomeOfEntry = Parameters<NonNullable<OutboxOptions['settled']>>;

/** The target of a queue. */
interface QueueTarget {
  /** The target, for messages. */
  readonly what: string;
  /** See `OutboxOptions.label`. */
  readonly label?: string;
  /** Open the target unless it is open, and send. @throws as `ActionTarget.send` */
  send: ActionTarget['send'];
  /** Called when an entry was sent. Default: nothing. */
  sent?(): void;
  readonly settledEarlier: SettledEarlier;
}

/** The entries of rules for one target, in an outbox: the path from actions to resources, and to targets of actions. */
export class TargetQueue {
  readonly #outboxes: Pick<Outboxes, 'open' | 'delete'>;
  readonly #name: string;
  readonly #to: QueueTarget;
  #outbox: Outbox | undefined;
  #limits: TargetLimits | undefined;
  readonly #pending = new Map<string, Pending>();
  /**
   * Entries that left the full outbox for a new entry, or are too large themselves. While there are any, no more
   * entries are added.
   */
  #dropped: OutcomeOfEntry[] | undefined = undefined;

  /** @param name the name of the outbox, to which stored entries belong */
  constructor(outboxes: Pick<Outboxes, 'open' | 'delete'>, name: string, to: QueueTarget) {
    this.#outboxes = outboxes;
    this.#name = name;
    this.#to = to;
  }

  /** True if entries can be added. */
  get isOpen(): boolean {
    return this.#outbox !== undefined;
  }

  /** True if an entry with its head has to be known after a restart. */
  get isDurable(): boolean {
    return this.#outbox?.limits.isPersisted ?? false;
  }

  /** Number of entries waiting to be sent. */
  get size(): number {
    return this.#outbox?.size ?? 0;
  }

  /** The reason why the last delivery failed; undefined after a success. */
  get lastError(): Error | undefined {
    return this.#outbox?.lastError;
  }

  /** Check limits without effect. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
  check(limits: TargetLimits | undefined): void {
    readOutboxOptions(this.#optionsOf(limits));
  }

  /**
   * Open the outbox, or change the limits of an open one. Its entries are kept; those that are not persisted are added
   * again, as far as the new limits allow.
   * @throws as `Outboxes.open`
   */
  change(limits: TargetLimits | undefined): void {
    if (this.#outbox !== undefined && JSON.stringify(this.#limits) === JSON.stringify(limits)) return;
    const before = [...(this.#outbox?.entries() ?? [])];
    this.#outbox?.close();
    const outbox = this.#outboxes.open(this.#optionsOf(limits));
    this.#outbox = outbox;
    this.#limits = limits;
    const kept = new Set(Array.from(outbox.entries(), ({ id }) => id));
    const dropped: OutcomeOfEntry[] = [];
    this.#dropped = dropped; // concluded when all have their new ids
    for (const { id, key, content } of before) {
      const pending = this.#pending.get(id);
      if (pending === undefined || kept.has(id)) continue;
      try {
        this.#pending.set(outbox.add(key, content, pending.keptBytes), pending);
        this.#pending.delete(id);
      } catch {
        // it is lost
      }
    }
    this.#dropped = undefined;
    for (const outcome of dropped) this.#conclude(...outcome);
    this.#failLost();
  }

  /**
   * Add a content to be sent.
   * @param settled called when the outcome is known, if that is in this process
   * @param keptBytes memory that `settled` retains
   * @param cascade passed on to the target with the entry, as long as the process runs
   * @throws BrokerError ENTRY_DROPPED for the fallback of an entry that was dropped, which would drop the next one
   */
  add(
    ruleId: string,
    head: EntryHead,
    content: string | Buffer,
    settled: Settled,
    keptBytes: number,
    cascade?: Cascade
  ): void {
    if (this.#outbox === undefined || this.#dropped !== undefined) {
      const why = this.#outbox === undefined ? 'closed' : 'full';
      throw new BrokerError('ENTRY_DROPPED', `the queue of ${this.#to.what} is ${why}`);
    }
    const dropped: OutcomeOfEntry[] = [];
    this.#dropped = dropped;
    try {
      const id = this.#outbox.add(ruleId, withHead(head, content), keptBytes);
      this.#pending.set(id, { settled, keptBytes, cascade });
      for (const outcome of dropped) this.#conclude(...outcome);
    } finally {
      this.#dropped = undefined;
    }
  }

  /** End delays, because the target can be reached again. */
  retryNow(): void {
    this.#outbox?.retryNow();
  }

  /** Close the outbox. Persisted entries stay in the store. */
  close(): void {
    const outbox = this.#outbox;
    this.#outbox = undefined;
    outbox?.close();
    this.#failLost();
  }

  /** Drop the entries, including those in the store, and close the outbox. */
  delete(): void {
    this.#outbox?.clear();
    this.close();
    this.#outboxes.delete(this.#name);
  }

  #optionsOf(limits: TargetLimits | undefined): OutboxOptions {
    return {
      ...limits,
      name: this.#name,
      label: this.#to.label,
      send: (entries, attempt) => {
        const sent = entries.map(({ id, key, content, attempts }) => {
          const cascade = this.#pending.get(id)?.cascade;
          return {
            ...{ id, ruleId: key, actionId: actionIdOf(content), attempts },
            content: contentOf(content),
            ...(cascade && { cascade })
          };
        });
        return this.#to.send(sent, attempt);
      },
      settled: (...outcome) => {
        if (this.#dropped === undefined) this.#conclude(...outcome);
        else this.#dropped.push(outcome);
      }
    };
  }

  /** Notify the senders of entries that were not persisted and were lost with the outbox. */
  #failLost(): void {
    const kept = new Set<string>();
    for (const { id } of this.#outbox?.entries() ?? []) kept.add(id);
    for (const [id, { settled }] of [...this.#pending]) {
      if (kept.has(id)) continue;
      this.#pending.delete(id);
      settled(false, new BrokerError('ENTRY_DROPPED', `${this.#to.what} was closed`));
    }
  }

  /** Report the outcome of an entry. */
  #conclude(...[entry, outcome, error]: OutcomeOfEntry): void {
    const pending = this.#pending.get(entry.id);
    const isSent = outcome === 'sent';
    if (isSent) this.#to.sent?.();
    const why = error ?? new BrokerError('ENTRY_DROPPED', `the entry was dropped: ${outcome}`);
    if (pending !== undefined) {
      this.#pending.delete(entry.id);
      pending.settled(isSent, isSent ? undefined : why);
    } else this.#to.settledEarlier(entry.key, headOf(entry.content), isSent, isSent ? undefined : why);
  }
}
