import { Kind } from '../../store/keys.ts';
import type { Ledger } from '../../store/ledger.ts';
import { NumberedRecords } from '../../store/numbered-records.ts';
import { type StreamRecord, writeStreamRecord } from '../../store/stream-record.ts';
import type { KeptStreamRecord, StreamRecordStore } from '../../streams/host.ts';

/** A record that is in the ledger. */
interface Recorded extends KeptStreamRecord {
  /** The commit that contains it, or will contain it. */
  ticket: number;
}

/** The records of stream rules in the store: their checkpoints, and the rows since then. */
export class StreamRecords implements StreamRecordStore {
  readonly #ledger: Ledger;
  readonly #records: NumberedRecords<Recorded>;
  added = 0;
  /** The stored records, by rule, until the rule takes them. */
  readonly #restored = new Map<string, Recorded[]>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
    this.#records = new NumberedRecords<Recorded>(ledger, {
      kind: Kind.stream,
      write: writeStreamRecord,
      committed(items) {
        for (const item of items) item.committed?.();
      },
      refused(items) {
        // the publishers of these rows are refused; checkpoints are written again
        const refused = items.filter(({ kind, ticket }) => kind === 'row' && ticket > ledger.settled);
        for (const item of refused) item.refused?.();
        return refused;
      }
    });
  }

  /** Take over the records of the store. Those that are known from an earlier start of this broker are left out. */
  restore(records: Iterable<StreamRecord & { readonly number: number }>): void {
    const known = this.#records.numbers();
    for (const { number, ...record } of records) {
      if (known.has(number)) continue;
      const recorded = { ...record, ticket: 0 };
      this.#records.restored(recorded, number);
      const others = this.#restored.get(record.rule);
      if (others === undefined) this.#restored.set(record.rule, [recorded]);
      else others.push(recorded);
    }
  }

  get isFailed(): boolean {
    return this.#ledger.isFailed;
  }

  take(rule: string): readonly KeptStreamRecord[] {
    const records = this.#restored.get(rule) ?? [];
    this.#restored.delete(rule);
    return records;
  }

  rules(): readonly string[] {
    return [...this.#restored.keys()];
  }

  add(record: KeptStreamRecord): void {
    const recorded = record as Recorded;
    this.added++;
    recorded.ticket = this.#ledger.ticket;
    this.#records.added(recorded, record.body.length + record.rule.length + 16);
  }

  remove(record: KeptStreamRecord): void {
    this.#records.forgotten(record as Recorded);
  }

  committed(): Promise<void> {
    return this.#ledger.committed(this.#ledger.ticket);
  }
}
