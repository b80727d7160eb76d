import { errorText, InvalidInput, NotFound, StateError } from '../../base/errors.ts';
import type { StreamTable } from '../host.ts';
import type { StreamDefinition, StreamKind } from '../types.ts';
import { parseDdl } from './ddl.ts';

/** Maximum number of streams and tables. */
const MAX_DEFINITIONS = 10_000;

/** The streams and tables by name. A name denotes either a stream or a table. */
export class Catalogue {
  readonly #table: StreamTable<string>;
  readonly #all = new Map<string, StreamDefinition>();
  /** The names that are defined in the options of the broker and not persisted. */
  readonly #ofOptions = new Set<string>();

  /** @param table stores the texts of the statements */
  constructor(table: StreamTable<string>) {
    this.#table = table;
  }

  /**
   * Load the persisted definitions.
   * @returns those that are no longer valid: they are listed, and rules that read them do not run
   */
  restore(ofOptions: readonly string[]): StreamDefinition[] {
    const faulty: StreamDefinition[] = [];
    for (const sql of ofOptions) {
      const definition = definitionOf(sql);
      this.#ofOptions.add(definition.name);
      this.#all.set(definition.name, definition);
    }
    for (const [name, sql] of this.#table) {
      if (this.#all.has(name)) continue;
      const definition = storedDefinitionOf(name, sql);
      this.#all.set(name, definition);
      if (definition.fault !== undefined) faulty.push(definition);
    }
    return faulty;
  }

  find(name: string): StreamDefinition | undefined {
    return this.#all.get(name);
  }

  get(kind: StreamKind, name: string): StreamDefinition | undefined {
    const found = this.#all.get(name);
    return found?.kind === kind ? found : undefined;
  }

  list(kind: StreamKind): StreamDefinition[] {
    const found = [...this.#all.values()].filter((definition) => definition.kind === kind);
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** @throws SqlError SQL_INVALID; InvalidInput STREAM_INVALID; StateError STREAM_EXISTS */
  async define(sql: string): Promise<StreamDefinition> {
    const definition = definitionOf(sql);
    const { kind, name } = definition;
    if (this.#all.has(name))
      throw new StateError('STREAM_EXISTS', `Create ${kind} fails: Item ${name} already exists.`);
    if (this.#all.size >= MAX_DEFINITIONS)
      throw new StateError(
        'STREAM_LIMIT',
        `there are already ${MAX_DEFINITIONS} streams and tables, which is the maximum; delete one first`
      );
    return this.#put(definition);
  }

  /**
   * @throws SqlError SQL_INVALID; InvalidInput STREAM_INVALID; NotFound STREAM_NOT_FOUND if the name belongs to the
   *   other kind
   */
  async replace(sql: string): Promise<StreamDefinition> {
    const definition = definitionOf(sql);
    this.checkReplaceable(definition.kind, definition.name);
    return this.#put(definition);
  }

  /** @throws NotFound STREAM_NOT_FOUND if the name belongs to the other kind; StateError STREAM_OF_APP */
  checkReplaceable(kind: StreamKind, name: string): void {
    const before = this.#all.get(name);
    if (before !== undefined && before.kind !== kind) throw notFound(kind, name);
    if (this.#ofOptions.has(name)) throw ofOptions(name);
  }

  /** @throws NotFound STREAM_NOT_FOUND; StateError STREAM_OF_APP */
  async drop(kind: StreamKind, name: string): Promise<void> {
    if (this.get(kind, name) === undefined) throw notFound(kind, name);
    if (this.#ofOptions.has(name)) throw ofOptions(name);
    await this.#table.delete(name);
    this.#all.delete(name);
  }

  async #put(definition: StreamDefinition): Promise<StreamDefinition> {
    await this.#table.set(definition.name, definition.sql);
    this.#all.set(definition.name, definition);
    return definition;
  }
}

/** @throws SqlError SQL_INVALID; InvalidInput STREAM_INVALID */
export function definitionOf(sql: string): StreamDefinition {
  if (typeof sql !== 'string') throw new InvalidInput('STREAM_INVALID', 'sql', 'a statement', sql);
  const ddl = parseDdl(sql);
  if (ddl.type !== 'create')
    throw new InvalidInput('STREAM_INVALID', 'sql', 'a statement CREATE STREAM or CREATE TABLE', sql);
  return ddl.definition;
}

/** A definition from the store. One that is no longer valid has a `fault`. */
function storedDefinitionOf(name: string, sql: string): StreamDefinition {
  try {
    return definitionOf(sql);
  } catch (error) {
    const kind = /^\s*CREATE\s+TABLE\b/i.test(sql) ? 'table' : 'stream';
    return { kind, name, columns: undefined, options: {}, sql, fault: errorText(error) };
  }
}

/** @throws InvalidInput STREAM_INVALID if a kind is not one, as when it was forgotten before the name */
export function checkKind(kind: unknown): void {
  if (kind === 'stream' || kind === 'table') return;
  throw new InvalidInput('STREAM_INVALID', 'kind', '"stream" or "table"', kind);
}

export function notFound(kind: StreamKind, name: string): NotFound {
  return new NotFound('STREAM_NOT_FOUND', `${kind} ${name} is not found`);
}

function ofOptions(name: string): StateError {
  return new StateError('STREAM_OF_APP', `${name} is defined in the options of the broker; change it there`);
}
