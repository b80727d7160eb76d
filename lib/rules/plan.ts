import { InvalidInput } from '../base/errors.ts';
import type { WorkTime } from '../base/slices.ts';
import type { CompileContext } from '../sql/compile-events.ts';
import { compileStatement, type Excluded } from '../sql/compile-statement.ts';
import { ruleDialect } from '../sql/dialect.ts';
import { commonFunctions } from '../sql/functions/all.ts';
import type { FunctionTools, SqlFunction } from '../sql/functions/function.ts';
import { functionsIn, namesIn } from '../sql/inspect.ts';
import { loadPatterns, type PatternCompiler } from '../sql/patterns.ts';
import type { EventColumns } from '../sql/row.ts';
import { SqlError } from '../sql/sql-error.ts';
import { parseStatement } from '../sql/statement.ts';
import type { FromTopic, Statement } from '../sql/tree.ts';
import type { Value } from '../sql/values.ts';
import { checkTopicFilter, matches } from '../topics/topic.ts';
import { checkedFunction } from './app-function.ts';
import { EVENT_FUNCTIONS } from './event-functions.ts';
import type { RuleEventName } from './events/event-name.ts';
import { eventsOfFilter, messageFilterOf, unknownEvent } from './events/topics.ts';
import { columnsIn, decodedColumns, hintsOf } from './hints.ts';

/** A compiled statement with its metadata. */
export interface Plan {
  readonly sql: string;
  readonly isForeach: boolean;
  /** The names after FROM, in order. */
  readonly topics: readonly string[];
  /** The filters of the published messages from which it selects, each once. */
  readonly filters: readonly string[];
  /** The other events from which it selects. */
  readonly events: ReadonlySet<RuleEventName>;
  /** True if it uses the column `metadata`. */
  readonly usesMetadata: boolean;
  /**
   * Set if the stored statement cannot be compiled at present, for example because a function of the app is not
   * defined.
   */
  readonly isMissing?: true;
  /** Possible mistakes in the statement. */
  readonly hints: readonly string[];
  /** The columns of its events that it reads, and `*`. */
  readonly columns: readonly string[];
  /** The columns whose JSON it reads, by paths such as payload.temp. */
  readonly decoded: readonly string[];
  /**
   * Evaluate the statement for an event.
   * @param row the columns of the event
   * @param hints receives remarks on possible mistakes in the statement
   * @param excluded receives the values that WHERE has read, if it is not true
   * @returns the outputs, with FOREACH any number, otherwise one; undefined if WHERE is not true
   * @throws SqlFailure
   */
  run(row: EventColumns, hints?: string[], excluded?: Excluded): readonly Value[] | undefined;
  /** The same in steps, for tests: the generator yields after each element of FOREACH. */
  steps(row: EventColumns, hints?: string[]): Generator<void, readonly Value[] | undefined>;
}

/** The placeholder for a statement that cannot be compiled at present. */
export function missingPlan(sql: string): Plan {
  return {
    ...{ sql, isForeach: false, topics: [], filters: [], events: new Set(), usesMetadata: false, isMissing: true },
    ...{ hints: [], columns: [], decoded: [], run: () => undefined, steps: noSteps }
  };
}

// biome-ignore lint/correctness/useYield: there is no step
function* noSteps(): Generator<void, undefined> {
  return undefined;
}

/** Dependencies of a planner on the process. */
interface PlannerHost {
  now(): number;
  random(): number;
  readonly nullIsNull: boolean;
}

/** Compiles statements of rules to plans. All of them share the table of `kv_store_put`. */
export class Planner {
  readonly #dialect: CompileContext['dialect'];
  readonly #functions: Map<string, SqlFunction>;
  readonly #tools: { -readonly [K in keyof FunctionTools]: FunctionTools[K] };
  #patterns: PatternCompiler | undefined;

  constructor({ now, random, nullIsNull }: PlannerHost) {
    this.#dialect = ruleDialect((topic, filter) => matches(filter, topic), nullIsNull);
    this.#functions = new Map([...commonFunctions(this.#dialect), ...EVENT_FUNCTIONS].map((row) => [row.name, row]));
    const pattern: PatternCompiler = (text) => (this.#patterns as PatternCompiler)(text);
    this.#tools = { now, random, pattern, table: new Map() };
  }

  /** The functions of statements, by name. */
  get functions(): ReadonlyMap<string, SqlFunction> {
    return this.#functions;
  }

  /** Add a function of the app. */
  define(row: SqlFunction): void {
    this.#functions.set(row.name, checkedFunction(row));
  }

  /**
   * Parse and compile a statement. The package for regular expressions is loaded if the statement needs it.
   * @param time the time limit of a test: each function call fails when it is exceeded
   * @throws SqlError; InvalidInput RULE_INVALID; BrokerError PACKAGE_MISSING
   */
  async plan(sql: string, time?: Pick<WorkTime, 'isOver'>): Promise<Plan> {
    checkStatement(sql);
    const statement = parseStatement(sql, this.#dialect);
    const usesPatterns = [...functionsIn(statement)].some((name) => this.#functions.get(name)?.patternAt !== undefined);
    if (usesPatterns) this.#patterns ??= await loadPatterns();
    const context = { text: sql, dialect: this.#dialect, functions: this.#functions, tools: this.#tools, time };
    const compiled = compileStatement(statement, context);
    const origin = originOf(statement, sql);
    return {
      sql,
      ...compiled,
      ...origin,
      ...{ hints: hintsOf(statement, sql, origin), columns: columnsIn(statement, origin, this.#functions) },
      decoded: decodedColumns(statement)
    };
  }
}

/** @throws InvalidInput RULE_INVALID if a statement is not a string */
export function checkStatement(sql: unknown): asserts sql is string {
  if (typeof sql !== 'string') throw new InvalidInput('RULE_INVALID', 'sql', 'a statement', sql);
}

/** The events from which FROM selects. @throws SqlError */
function originOf(
  statement: Statement,
  sql: string
): Omit<Plan, 'sql' | 'run' | 'steps' | 'hints' | 'columns' | 'decoded'> {
  const filters = new Set<string>();
  const events = new Set<RuleEventName>();
  for (const source of statement.from) {
    checkSource(source, sql);
    const filter = messageFilterOf(source.name);
    if (filter !== undefined) filters.add(filter);
    else for (const event of eventsOfFilter(source.name)) events.add(event);
  }
  return {
    isForeach: statement.type === 'foreach',
    topics: statement.from.map(({ name }) => name),
    filters: [...filters],
    events,
    usesMetadata: namesIn(statement).has('metadata')
  };
}

function checkSource({ name, start }: FromTopic, sql: string): void {
  const fault = checkTopicFilter(name);
  if (fault !== undefined) throw new SqlError(fault, sql, start);
  if (eventsOfFilter(name).length === 0) throw new SqlError(unknownEvent(name), sql, start);
}
