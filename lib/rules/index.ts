/** The language of rules without a broker: `embermq/rules`. A broker loads its rules itself, see `broker.rules`. */
import { atOnce } from '../base/slices.ts';
import { ruleDialect } from '../sql/dialect.ts';
import { commonFunctions } from '../sql/functions/all.ts';
import type { SqlFunction } from '../sql/functions/function.ts';
import { printStatement } from '../sql/print.ts';
import { parseStatement } from '../sql/statement.ts';
import { matches } from '../topics/topic.ts';
import { checkFunction } from './app-function.ts';
import { EVENT_FUNCTIONS } from './event-functions.ts';
import { ruleEventInfos, testColumns } from './events/test-columns.ts';
import { checkStatement, Planner } from './plan.ts';
import { functionInfo, testSteps } from './rule-test.ts';
import type { RuleEventInfo, RuleFunctionInfo, RuleTest } from './types.ts';

export type { RuleFunctionInfo } from './types.ts';

/** Options of `compileRule`. */
export interface CompileOptions {
  /** Functions of the app. Default: none. */
  readonly functions?: readonly SqlFunction[] | undefined;
  /** If true, `is_null` is also true for JSON null. Default false. */
  readonly nullIsNull?: boolean | undefined;
  /** Returns the wall-clock time in milliseconds. Default: `Date.now`. */
  readonly now?: (() => number) | undefined;
  /** Name of the node in the column `node`. Default `embermq@127.0.0.1`. */
  readonly node?: string | undefined;
}

/** A compiled statement. */
export interface CompiledRule {
  /** The names after FROM, in order. */
  readonly topics: readonly string[];
  /** True if FOREACH returns a list of outputs. */
  readonly isForeach: boolean;
  /**
   * Evaluate the statement for an event.
   * @param event columns and their values; absent ones have the defaults of the first topic of FROM
   * @throws SqlFailure SQL_FAILED; InvalidInput RULE_INVALID
   */
  run(event?: Readonly<Record<string, unknown>>): RuleTest;
}

const DIALECT = ruleDialect((topic, filter) => matches(filter, topic));

/**
 * Compile a statement of a rule without a broker, for unit tests of statements:
 *
 * ```ts
 * const rule = await compileRule('SELECT payload.t FROM "sensors/#" WHERE t > 80');
 * rule.run({ topic: 'sensors/1', payload: '{"t": 90}' }).outputs; // [{ t: 90 }]
 * ```
 * @throws SqlError SQL_INVALID; InvalidInput RULE_INVALID, FUNCTION_INVALID; BrokerError PACKAGE_MISSING (regular expressions need the package `re2js`)
 */
export async function compileRule(sql: string, options: CompileOptions = {}): Promise<CompiledRule> {
  const { functions = [], nullIsNull = false, now = Date.now, node = 'embermq@127.0.0.1' } = options;
  const planner = new Planner({ now, random: Math.random, nullIsNull });
  for (const row of functions) {
    checkFunction(row);
    planner.define(row);
  }
  const plan = await planner.plan(sql);
  const { topics, isForeach } = plan;
  return {
    topics,
    isForeach,
    run: (event = {}) => atOnce(testSteps(plan, event, testColumns(topics[0], { node, now: now() })))
  };
}

/**
 * Format a statement: keywords in upper case, one blank between words.
 * @throws SqlError SQL_INVALID; InvalidInput RULE_INVALID
 */
export function formatRule(sql: string): string {
  checkStatement(sql);
  return printStatement(parseStatement(sql, DIALECT), DIALECT);
}

/** The functions that statements can call, by family. */
export function ruleFunctions(): RuleFunctionInfo[] {
  return [...commonFunctions(DIALECT), ...EVENT_FUNCTIONS].map(functionInfo);
}

/** The events that statements can select from, the eight documented ones first. */
export function ruleEvents(): RuleEventInfo[] {
  return ruleEventInfos();
}
