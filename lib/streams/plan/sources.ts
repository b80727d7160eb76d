// While names are bound, each source notes which columns and which metadata the statement needs; sources decode only
// these. So every way to read a column has to pass through here. A source without a schema may have any column: a
// name without a source then means the first source that has it, and no name is unknown.

import { InvalidInput, NotFound } from '../../base/errors.ts';
import { nearest } from '../../base/fields.ts';
import { SqlError } from '../../sql/sql-error.ts';
import type { FromStream, Path, StreamSelect } from '../../sql/tree.ts';
import type { BoundSource, Catalogue, SourceRole } from '../expressions/bound.ts';
import type { StreamDefinition } from '../types.ts';

/** The column with which a path begins. */
interface ColumnReference {
  readonly name: string;
  /** Undefined: the first source that has it. */
  readonly source: number | undefined;
  /** The number of path steps that belong to the name. */
  readonly taken: 0 | 1;
}

/** A column, and the positions of the sources that may have it. */
interface Found extends ColumnReference {
  readonly candidates: readonly number[];
}

interface Entry {
  readonly node: FromStream;
  readonly label: string;
  readonly role: SourceRole;
  readonly definition: StreamDefinition;
  readonly needed: Set<string>;
  readonly neededMeta: Set<string>;
  needsAll: boolean;
  needsAllMeta: boolean;
}

/** The sources of a statement: resolves names to columns, and records the columns that are needed. */
export class Sources {
  readonly #text: string;
  readonly #entries: readonly Entry[];
  readonly #positions: readonly number[];
  /** Positions by the names with which a source can be referenced. */
  readonly #byName = new Map<string, number>();
  /** The columns to which names without a source refer. */
  readonly #unqualified = new Map<string, Found>();

  /** @throws NotFound STREAM_NOT_FOUND; SqlError for two sources of the same name */
  constructor({ from, joins }: StreamSelect, text: string, catalogue: Catalogue) {
    this.#text = text;
    this.#entries = [from, ...joins.map(({ source }) => source)].map((node) => entryOf(node, catalogue));
    this.#positions = this.#entries.map((_, position) => position);
    const uses = new Map<string, number>();
    for (const { node } of this.#entries) uses.set(node.name, (uses.get(node.name) ?? 0) + 1);
    for (const [position, { node }] of this.#entries.entries())
      if (uses.get(node.name) === 1) this.#byName.set(node.name, position);
    const labels = new Set<string>();
    for (const [position, { label, node }] of this.#entries.entries()) {
      if (labels.has(label))
        throw this.#error(`duplicate source ${label}`, node, 'give each one an alias: FROM demo AS a');
      labels.add(label);
      this.#byName.set(label, position);
    }
  }

  get count(): number {
    return this.#entries.length;
  }

  role(position: number): SourceRole {
    return this.#entries[position].role;
  }

  node(position: number): FromStream {
    return this.#entries[position].node;
  }

  label(position: number): string {
    return this.#entries[position].label;
  }

  /**
   * The position of a source. A source with an alias can also be referenced by its own name, if no other source has it.
   */
  position(name: string): number | undefined {
    return this.#byName.get(name);
  }

  /**
   * The column with which a path begins; it is recorded as needed.
   * @returns the column, and the positions of the sources that may have it
   * @throws SqlError for a name that is unknown or ambiguous
   */
  column(path: Path): Found {
    const [first] = path.steps;
    const source = first?.type === 'key' && first.isArrow !== true ? this.position(path.name) : undefined;
    if (source === undefined || first?.type !== 'key') return this.#columnOfAny(path);
    const name = this.#columnOf(source, first.key);
    if (name === undefined) throw this.#unknown(`${path.name}.${first.key}`, first.key, [source], path);
    this.#entries[source].needed.add(name);
    return { name, source: this.#only(source), taken: 1, candidates: [source] };
  }

  #columnOfAny(path: Path): Found {
    const known = this.#unqualified.get(path.name);
    if (known !== undefined) return known;
    const positions = this.#positions;
    const declared = positions.filter((position) => this.#isDeclared(position, path.name));
    if (declared.length > 1)
      throw this.#error(`ambiguous field ${path.name}`, path, `write ${this.label(declared[0])}.${path.name}`);
    const open = positions.filter((position) => this.#entries[position].definition.columns === undefined);
    const candidates = declared.length === 1 ? declared : open;
    if (candidates.length === 0) throw this.#unknown(`.${path.name}`, path.name, positions, path);
    const [source] = candidates;
    const name = this.#columnOf(source, path.name) ?? path.name;
    for (const position of candidates) this.#entries[position].needed.add(name);
    const only = candidates.length === 1 ? this.#only(source) : undefined;
    const found: Found = { name, source: only, taken: 0, candidates };
    this.#unqualified.set(path.name, found);
    return found;
  }

  /** All columns of a source, or of all sources. @returns the positions */
  all(source: number | undefined): readonly number[] {
    const positions = source === undefined ? this.#positions : [source];
    for (const position of positions) this.#entries[position].needsAll = true;
    return positions;
  }

  /** A metadata key, or all of them. @returns the positions of the sources that may have it */
  meta(source: number | undefined, key: string | undefined): readonly number[] {
    const positions = source === undefined ? this.#positions : [source];
    for (const position of positions) {
      const entry = this.#entries[position];
      if (key === undefined) entry.needsAllMeta = true;
      else entry.neededMeta.add(key);
    }
    return positions;
  }

  /** Check whether the schemas rule out a column of this name. */
  isUnknown(name: string, source: number | undefined): boolean {
    const positions = source === undefined ? this.#positions : [source];
    return positions.every((position) => this.#columnOf(position, name) === undefined);
  }

  /** @throws SqlError */
  unknownField(name: string, place: { readonly start: number }): SqlError {
    return this.#unknown(`.${name}`, name, this.#positions, place);
  }

  bound(): BoundSource[] {
    return this.#entries.map(
      ({ node, label, role, definition, needed, neededMeta, needsAll, needsAllMeta }, position) => ({
        position,
        name: node.name,
        label,
        role,
        definition,
        needed: needsAll ? 'all' : needed,
        neededMeta: needsAllMeta ? 'all' : neededMeta
      })
    );
  }

  /**
   * The position of a source; undefined if it is the only one, because its rows are then read without a position, which
   * is faster.
   */
  #only(source: number): number | undefined {
    return this.count === 1 ? undefined : source;
  }

  #isDeclared(position: number, name: string): boolean {
    return this.#entries[position].definition.columns !== undefined && this.#columnOf(position, name) !== undefined;
  }

  /** The name of a column as spelled in the schema; undefined if the schema does not have it. */
  #columnOf(position: number, name: string): string | undefined {
    const { columns } = this.#entries[position].definition;
    if (columns === undefined) return name;
    const lower = name.toLowerCase();
    const found = columns.find((column) => column.name === name) ?? columns.find((c) => c.name.toLowerCase() === lower);
    return found?.name;
  }

  #unknown(shown: string, name: string, positions: readonly number[], place: { readonly start: number }): SqlError {
    const known = positions.flatMap((position) => this.#entries[position].definition.columns ?? []);
    const similar = nearest(
      name,
      known.map((column) => column.name)
    );
    return this.#error(`unknown field ${shown}`, place, similar === undefined ? undefined : `did you mean ${similar}?`);
  }

  #error(fault: string, { start }: { readonly start: number }, hint?: string): SqlError {
    return new SqlError(fault, this.#text, start, hint);
  }
}

function entryOf(node: FromStream, catalogue: Catalogue): Entry {
  const definition = catalogue.get(node.name);
  if (definition === undefined)
    throw new NotFound('STREAM_NOT_FOUND', `fail to get stream ${node.name}, please check if stream is created`);
  if (definition.fault !== undefined)
    throw new InvalidInput(
      'STREAM_INVALID',
      'sql',
      `a valid ${definition.kind}`,
      definition.sql,
      `the ${definition.kind} ${definition.name} is no longer valid; replace it: ${definition.fault}`
    );
  const isLookup = definition.kind === 'table' && definition.options.KIND?.toLowerCase() === 'lookup';
  return {
    node,
    label: node.alias ?? node.name,
    role: isLookup ? 'lookup' : definition.kind,
    definition,
    needed: new Set(),
    neededMeta: new Set(),
    needsAll: false,
    needsAllMeta: false
  };
}
