import type { BaseServices } from '../base/base-services.ts';
import type { Page } from '../routing/directory.ts';
import { invalidCursor, type PageQuery, readQuery } from '../routing/directory-queries.ts';

/** Maximum number of entries that are kept. */
const MAX_ENTRIES = 1_000;
/** Number of digits of the entry numbers, so that their keys are in order. */
const DIGITS = 12;
const ENDED: readonly unknown[] = ['STORE_FAILED', 'BROKER_NOT_STARTED', 'STORE_CLOSED'];

/** A management operation, as an interface reports it. It must not contain secrets. */
export interface AuditInput {
  /** Name of the operation: `kickout_client`. */
  readonly operation: string;
  /** The kind of the caller's credentials, and their id if they have one. */
  readonly caller: {
    /** `application`, `user`, `function`, `host` or `none`: what has accepted the credentials. */
    readonly kind: string;
    /** The id of the credentials; undefined if they have none. */
    readonly id?: string | undefined;
  };
  /** IP address of the caller; undefined: unknown. */
  readonly address: string | undefined;
  /** Method and path of the request: `DELETE /clients/:clientid`. */
  readonly request: string;
  /** The parameters, without secrets. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** HTTP status and code of the answer. */
  readonly status: number;
  /** The code of the answer; 0: success. */
  readonly code: number;
}

/** The caller of an operation, and its result. */
export type AuditOutcome = Pick<AuditInput, 'operation' | 'caller' | 'address' | 'status' | 'code'>;

/** A management operation in the audit log. */
export interface AuditEntry extends AuditInput {
  /** Number of the entry; the first one has 1. */
  readonly number: number;
  /** Time of the answer, in milliseconds since 1970; of several requests, of the last one. */
  readonly at: number;
  /** Number of consecutive requests: see `AuditLog.repeat`. */
  readonly count: number;
}

/** An entry as it is kept. Callers get copies. */
type Kept = Omit<AuditEntry, 'at' | 'count'> & { at: number; count: number };

/** A query for entries of the audit log. */
export interface AuditQuery extends PageQuery {
  /** Only this operation. Default: all. */
  readonly operation?: string;
  /** The id of the caller. */
  readonly callerId?: string;
  /** True: only operations that were refused or failed. False: only others. */
  readonly isFailed?: boolean;
}

/** The table that keeps the entries; see `Broker.table`. */
interface AuditTable extends Iterable<readonly [key: string, value: AuditEntry]> {
  readonly size: number;
  set(key: string, value: AuditEntry): Promise<void>;
  delete(key: string): Promise<boolean>;
}

const CONDITIONS = {
  operation: ({ operation }: AuditEntry, wanted: string) => operation === wanted,
  callerId: ({ caller }: AuditEntry, wanted: string) => caller.id === wanted,
  isFailed: ({ code }: AuditEntry, wanted: boolean) => (code !== 0) === wanted
};

/** The last 1,000 changes that were made, or attempted, through management interfaces: `broker.monitor.audit`. They are persisted. */
export class AuditLog {
  readonly #services: BaseServices;
  readonly #node: string;
  readonly #table: AuditTable;
  /** True while the broker runs, so that the table has its content. */
  readonly #isRunning: () => boolean;
  /** The entries, the oldest first. */
  #entries: Kept[] = [];
  /** True if the entries of the table are included. */
  #isRestored = false;

  /** @internal */
  constructor(services: BaseServices, node: string, table: AuditTable, isRunning: () => boolean) {
    this.#services = services;
    this.#node = node;
    this.#table = table;
    this.#isRunning = isRunning;
  }

  /**
   * List the entries, the newest first.
   * @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, CURSOR_INVALID
   */
  list(query: AuditQuery = {}): Page<AuditEntry> {
    const { cursor, limit, skip, isWanted } = readQuery<AuditEntry, AuditQuery>(query, CONDITIONS);
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw invalidCursor(cursor);
    const before = cursor === undefined ? Infinity : Number(cursor);
    const all = this.#read();
    const page = { node: this.#node, count: all.length };
    const entries: AuditEntry[] = [];
    let left = skip;
    for (let at = all.length - 1; at >= 0; at--) {
      const entry = all[at];
      if (entry.number >= before || !isWanted(entry) || left-- > 0) continue;
      if (entries.length === limit) return { ...page, entries, cursor: String(entries[limit - 1].number) };
      entries.push({ ...entry });
    }
    return { ...page, entries, cursor: undefined };
  }

  /**
   * Count an operation that may come at a high rate in the last entry, if it differs from that only in time and parameters. The entry keeps
   * the parameters of the first one, and is persisted as it was then.
   * @returns the entry; undefined: the operation is not counted there, and has to be added
   */
  repeat(outcome: AuditOutcome): AuditEntry | undefined {
    const last = this.#read().at(-1);
    if (last === undefined || !isAlike(last, outcome)) return undefined;
    last.at = this.#services.clock.now();
    last.count++;
    return last;
  }

  /** Add an entry. @returns the entry */
  record(input: AuditInput): AuditEntry {
    const entries = this.#read();
    const number = (entries.at(-1)?.number ?? 0) + 1;
    const entry = { ...input, number, at: this.#services.clock.now(), count: 1 };
    entries.push(entry);
    this.#write(entry);
    while (entries.length > MAX_ENTRIES) {
      const oldest = entries.shift() as AuditEntry;
      this.#during(this.#table.delete(keyOf(oldest.number)));
    }
    return { ...entry };
  }

  /** @deprecated Use `record`. */
  add(input: AuditInput): AuditEntry {
    return this.record(input);
  }

  /** The entries. Those that were added before the first start of the broker follow those of the table. */
  #read(): Kept[] {
    if (this.#isRestored || !this.#isRunning()) return this.#entries;
    this.#isRestored = true;
    const early = this.#entries;
    this.#entries = [...this.#table].map(([, entry]) => ({ ...entry })).sort((a, b) => a.number - b.number);
    const last = this.#entries.at(-1)?.number ?? 0;
    for (const entry of early) {
      const next = { ...entry, number: last + entry.number };
      this.#entries.push(next);
      this.#write(next);
    }
    return this.#entries;
  }

  #write(entry: AuditEntry): void {
    if (this.#isRestored) this.#during(this.#table.set(keyOf(entry.number), entry));
  }

  #during(writing: Promise<unknown>): void {
    writing.catch((error: unknown) => {
      // the failure of a store is reported already
      if (!ENDED.includes((error as { readonly code?: unknown }).code))
        this.#services.failed(error, 'writing the audit log');
    });
  }
}

function isAlike(last: AuditInput, given: AuditOutcome): boolean {
  const { operation, caller, address, status, code } = given;
  return (
    last.operation === operation &&
    last.code === code &&
    last.status === status &&
    last.address === address &&
    last.caller.kind === caller.kind &&
    last.caller.id === caller.id
  );
}

function keyOf(number: number): string {
  return String(number).padStart(DIGITS, '0');
}
