import type { ResourceDefinition, RuleDefinition } from '../../../rules/definition.ts';
import { childrenOf, namesIn } from '../../../sql/inspect.ts';
import type { Expression, StreamSelect } from '../../../sql/tree.ts';
import { definitionOf } from '../../../streams/ddl/catalogue.ts';
import { parseStreamStatement } from '../../../streams/statement.ts';
import type { Properties, StreamDefinition, StreamRuleDefinition } from '../../../streams/types.ts';
import { RESOURCES_TABLE, RULES_TABLE } from '../../computing/rules.ts';
import { STREAM_RULES_TABLE, STREAMS_TABLE } from '../../computing/streams.ts';
import { CONNECTORS_TABLE, type StoredConnector } from '../../configuration/connectors.ts';
import type { DefinitionKinds } from './changes.ts';

/** The tables of the broker, by name. */
export type OwnTable = (name: string) => Iterable<readonly [key: string, value: unknown]>;

type Named<D> = readonly (readonly [name: string, definition: D])[];

/** The definitions of a store. Those that this version cannot read are left out: their status has the reason. */
export class StoredDefinitions {
  readonly #own: OwnTable;
  readonly #streams: ReadonlyMap<string, StreamDefinition>;
  readonly #statements = new Map<string, StreamSelect>();

  constructor(own: OwnTable) {
    this.#own = own;
    this.#streams = new Map(this.#read(STREAMS_TABLE, (sql) => definitionOf(sql as string)));
  }

  /** The definitions of a kind with their names. */
  of<K extends keyof DefinitionKinds>(kind: K): Named<DefinitionKinds[K]> {
    const read: { readonly [E in keyof DefinitionKinds]: () => Named<DefinitionKinds[E]> } = {
      rule: () => this.#read(RULES_TABLE, (rule) => rule as RuleDefinition),
      resource: () => this.#read(RESOURCES_TABLE, (resource) => resource as ResourceDefinition),
      stream: () => [...this.#streams].filter(([, definition]) => definition.kind === 'stream'),
      table: () => [...this.#streams].filter(([, definition]) => definition.kind === 'table'),
      'stream rule': () => this.#read(STREAM_RULES_TABLE, (json) => JSON.parse(json as string) as StreamRuleDefinition),
      connector: () => this.#read(CONNECTORS_TABLE, (connector) => connector as StoredConnector)
    };
    return read[kind]();
  }

  /** A stream or table. */
  stream(name: string): StreamDefinition | undefined {
    return this.#streams.get(name);
  }

  /** A resource of rules over events. */
  resource(id: string): ResourceDefinition | undefined {
    return this.of('resource').find(([key]) => key === id)?.[1];
  }

  /** The parsed statement of a stream rule. @throws SqlError */
  statement({ sql }: Pick<StreamRuleDefinition, 'sql'>): StreamSelect {
    const parsed = this.#statements.get(sql) ?? parseStreamStatement(sql);
    this.#statements.set(sql, parsed);
    return parsed;
  }

  /** The streams and tables that a stream rule reads. @throws SqlError */
  sourcesOf(rule: Pick<StreamRuleDefinition, 'sql'>): StreamDefinition[] {
    const { from, joins } = this.statement(rule);
    const found = [from, ...joins.map(({ source }) => source)].map(({ name }) => this.stream(name));
    return found.filter((definition) => definition !== undefined);
  }

  /** All expressions of the statement of a stream rule, and those inside of them. @throws SqlError */
  expressionsOf(rule: Pick<StreamRuleDefinition, 'sql'>): Expression[] {
    const { fields, joins, where, groupBy, window, having, orderBy } = this.statement(rule);
    const found: Expression[] = [
      ...fields.flatMap((field) =>
        field.type === 'star' ? (field.replace ?? []).map(({ expression }) => expression) : [field.expression]
      ),
      ...[...joins.map(({ on }) => on), where, window?.filter, window?.when, having].filter(
        (each) => each !== undefined
      ),
      ...[...groupBy, ...(window?.conditions ?? []), ...(window?.partitionBy ?? [])],
      ...orderBy.map(({ expression }) => expression)
    ];
    for (const node of found) found.push(...childrenOf(node)); // the list grows while it is read
    return found;
  }

  /** Tell whether a column of SELECT uses the alias of a column that follows it. @throws SqlError */
  usesLaterAlias(rule: Pick<StreamRuleDefinition, 'sql'>): boolean {
    const { fields } = this.statement(rule);
    return fields.some((field, index) => {
      if (field.type === 'star') return false;
      const later = fields
        .slice(index + 1)
        .flatMap((other) => (other.type === 'star' ? [] : (other.alias?.name ?? [])));
      const names = namesIn(field.expression);
      return later.some((name) => names.has(name));
    });
  }

  /** The properties of the sinks of a type in a stream rule. */
  sinksOf({ actions }: Pick<StreamRuleDefinition, 'actions'>, type: string): Properties[] {
    return actions.flatMap((action) =>
      Object.entries(action).flatMap(([name, given]) => (name.toLowerCase() === type ? [given as Properties] : []))
    );
  }

  #read<D>(table: string, read: (value: unknown) => D): (readonly [name: string, definition: D])[] {
    return [...this.#own(table)].flatMap(([name, value]) => {
      try {
        return [[name, read(value)] as const];
      } catch {
        return [];
      }
    });
  }
}
