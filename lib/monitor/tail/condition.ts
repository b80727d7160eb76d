import { EVENT_FUNCTIONS } from '../../rules/event-functions.ts';
import { compileStatement } from '../../sql/compile-statement.ts';
import { ruleDialect } from '../../sql/dialect.ts';
import { commonFunctions } from '../../sql/functions/all.ts';
import { STORE_FUNCTIONS } from '../../sql/functions/encoding.ts';
import { functionsIn } from '../../sql/inspect.ts';
import { loadPatterns, type PatternCompiler } from '../../sql/patterns.ts';
import type { EventColumns } from '../../sql/row.ts';
import { parseCondition } from '../../sql/statement.ts';
import type { Statement } from '../../sql/tree.ts';
import { matches } from '../../topics/topic.ts';

/** A compiled condition. @throws SqlFailure */
export type Condition = (row: EventColumns) => boolean;

/** The facts of a broker on which conditions depend. */
export interface ConditionFacts {
  /** The wall-clock time in milliseconds. */
  now(): number;
  /** If true, `is_null` is also true for JSON null. */
  readonly nullIsNull: boolean;
}

/**
 * The work of a condition for one event, a small part of that of rules, which administrators write: some milliseconds for characters, and up to
 * 50 ms for regular expressions.
 */
const LIMITS = { characters: 262_144, matched: 1_048_576 };
const SHARED: ReadonlySet<string> = new Set(STORE_FUNCTIONS.map(({ name }) => name));

/**
 * Compile a condition as it follows WHERE in rules: `payload.t > 80 AND clientid =~ 'pumps/#'`.
 *
 * People who may only read can use conditions. They therefore have only the functions without effects: neither those of
 * the app, nor those of the table that rules share (`kv_store_put`). `WHERE` may be written in front of it.
 * @throws SqlError SQL_INVALID, with the position in the condition; BrokerError PACKAGE_MISSING
 */
export async function compileCondition(text: string, { now, nullIsNull }: ConditionFacts): Promise<Condition> {
  const dialect = ruleDialect((topic, filter) => matches(filter, topic), nullIsNull);
  const where = parseCondition(text, dialect);
  const statement: Statement = { type: 'select', fields: [], from: [], where };
  const rows = [...commonFunctions(dialect), ...EVENT_FUNCTIONS].filter(({ name }) => !SHARED.has(name));
  const functions = new Map(rows.map((row) => [row.name, row]));
  const usesPatterns = [...functionsIn(statement)].some((name) => functions.get(name)?.patternAt !== undefined);
  const patterns = usesPatterns ? await loadPatterns('regular expressions in conditions need') : undefined;
  const pattern: PatternCompiler = (of) => (patterns as PatternCompiler)(of);
  const tools = { now, random: Math.random, pattern, table: new Map() };
  const { run } = compileStatement(statement, { text, dialect, functions, tools, limits: LIMITS });
  return (row) => run(row) !== undefined;
}
