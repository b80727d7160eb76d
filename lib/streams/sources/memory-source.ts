import { exactNumber } from '../functions/equality.ts';
import type { MemoryMessage, MemoryTopics } from '../memory-topics.ts';
import type { OpenLookup, OpenSource, SourceSetup, SourceType } from '../types.ts';
import { isNumber, member, printed, type StreamValue, type StreamValueObject } from '../values/values.ts';

/** Maximum number of rows of a lookup table; the oldest ones are dropped. */
const MAX_ROWS = 1_000_000;

/**
 * The source `memory`: rows that rules send to topics in memory. DATASOURCE is a topic filter.
 *
 * A lookup table keeps the last row for each value of its KEY, from the time when the first rule uses it until the last
 * one has stopped.
 */
export function memorySource(topics: MemoryTopics): SourceType {
  const tables = new Map<string, SharedTable>();
  return {
    name: 'memory',
    about: 'Outputs of rules with the sink memory.',
    properties: {},
    for: ['stream', 'table', 'lookup'],
    open: (setup) => open(setup, topics),
    openLookup({ stream, datasource, key }) {
      const id = JSON.stringify([stream, datasource, key]);
      const table = tables.get(id) ?? { users: 0, rows: new KeptRows(topics, datasource, key) };
      tables.set(id, table);
      table.users++;
      let isOpen = true;
      return {
        find: (keys, values) => table.rows.find(keys, values),
        close() {
          if (!isOpen) return;
          isOpen = false;
          if (--table.users > 0) return;
          tables.delete(id);
          table.rows.close();
        }
      } satisfies OpenLookup;
    }
  };
}

interface SharedTable {
  users: number;
  readonly rows: KeptRows;
}

function open(setup: SourceSetup, topics: MemoryTopics): OpenSource {
  const unsubscribe = topics.subscribe(setup.datasource, ({ topic, rows, meta, cause }) => {
    const metadata = { ...meta, topic };
    for (const row of rows) setup.row(row, metadata, undefined, cause);
  });
  setup.connected();
  return { close: unsubscribe };
}

/** The rows of a lookup table. */
class KeptRows {
  readonly #rows = new Map<string, StreamValueObject>();
  readonly #key: string | undefined;
  readonly #unsubscribe: () => void;
  #count = 0;

  constructor(topics: MemoryTopics, datasource: string, key: string | undefined) {
    this.#key = key;
    this.#unsubscribe = topics.subscribe(datasource, (message) => {
      for (const row of message.rows) this.#take(row, message);
    });
  }

  find(keys: readonly string[], values: readonly StreamValue[]): StreamValueObject[] {
    const wanted = values.map(idOf);
    const hasAll = (row: StreamValueObject) => keys.every((key, i) => idOf(member(row, key)) === wanted[i]);
    if (keys.length === 1 && keys[0] === this.#key) {
      const row = this.#rows.get(wanted[0]);
      return row === undefined ? [] : [row];
    }
    return [...this.#rows.values()].filter(hasAll);
  }

  close(): void {
    this.#unsubscribe();
    this.#rows.clear();
  }

  #take(row: StreamValueObject, { keyField = this.#key, rowkindField }: MemoryMessage): void {
    const id = keyField === undefined ? `row ${this.#count++}` : idOf(member(row, keyField));
    this.#rows.delete(id); // makes it the newest row
    if (rowkindField !== undefined && member(row, rowkindField) === 'delete') return;
    this.#rows.set(id, row);
    if (this.#rows.size <= MAX_ROWS) return;
    const [oldest] = this.#rows.keys();
    this.#rows.delete(oldest);
  }
}

/** A key that is equal for equal values: 1 of either type, but not "1". */
function idOf(value: StreamValue): string {
  return isNumber(value) ? `number ${exactNumber(value)}` : `${typeof value} ${printed(value)}`;
}
