import type { EventColumns } from '../../lib/sql/row.ts';
import type { Value } from '../../lib/sql/values.ts';

/** A row of given columns. */
export class PlainRow implements EventColumns {
  readonly names: readonly string[];
  readonly #columns: Readonly<Record<string, Value>>;
  readonly #decode: (text: string) => Value;
  readonly #decoded = new Map<string, Value>();

  /** @param decode reads JSON */
  constructor(columns: Readonly<Record<string, Value>>, decode: (text: string) => Value) {
    this.names = Object.keys(columns);
    this.#columns = columns;
    this.#decode = decode;
  }

  column(name: string): Value {
    return Object.hasOwn(this.#columns, name) ? this.#columns[name] : undefined;
  }

  decoded(name: string): Value {
    const value = this.column(name);
    if (typeof value !== 'string') return value;
    if (!this.#decoded.has(name)) this.#decoded.set(name, this.#decode(value));
    return this.#decoded.get(name);
  }
}
