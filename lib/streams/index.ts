/** Stream statements without a broker: `embermq/streams`. A broker loads its stream service itself, see `broker.streams`. */
import type { Clock } from '../base/clock.ts';
import { InvalidInput, StateError } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import { atOnce } from '../base/slices.ts';
import { loadPatterns } from '../sql/patterns.ts';
import { definitionOf } from './ddl/catalogue.ts';
import type { FunctionBase, StreamFunction } from './function.ts';
import { streamFunctions as builtInFunctions } from './functions/all.ts';
import { bind } from './plan/bind.ts';
import { planOf } from './plan/planner.ts';
import { printStreamStatement } from './print-statement.ts';
import { Registry } from './registry.ts';
import { readRuleOptions } from './rule/rule-options.ts';
import { offsetMinutes, ruleTools, usesPatterns } from './rule/rule-tools.ts';
import { type SampleRun, type SampleStep, sampleSteps } from './rule/sample-run.ts';
import { parseStreamStatement } from './statement.ts';
import { DEFAULT_BOUNDS, readStreamsOptions } from './streams-options.ts';
import type { PlanNode, RuleOptions, StreamBounds, StreamDefinition, Topology } from './types.ts';
import { parseTime } from './values/time-pattern.ts';

export type { PassingTime, SampleRun, SampleStep, TimedOutput } from './rule/sample-run.ts';

/** A function of statements, for documentation. */
export type StreamFunctionInfo = Pick<FunctionBase, 'name' | 'family' | 'params' | 'about'> &
  Pick<StreamFunction, 'kind'>;

/** Options of `compileStreamRule`. */
export interface StreamCompileOptions {
  /**
   * CREATE STREAM and CREATE TABLE statements for the sources of the statement. Default: a stream without a schema for
   * each other name.
   */
  readonly definitions?: readonly string[] | undefined;
  /** Functions of the app. Default: none. */
  readonly functions?: readonly StreamFunction[] | undefined;
  /** Options of the rule, such as `isEventTime`. */
  readonly options?: Partial<RuleOptions> | undefined;
  /** Limits of the rule. Default: the limits of a broker. */
  readonly bounds?: Partial<StreamBounds> | undefined;
  /** IANA name of the zone of times without a zone. Default: the zone of the process. */
  readonly timezone?: string | undefined;
  /** Result of the function `rule_id`. Default `test`. */
  readonly ruleId?: string | undefined;
}

const COMPILE_OPTIONS = ['definitions', 'functions', 'options', 'bounds', 'timezone', 'ruleId'];

/** The times at which a run begins and ends. */
export interface StreamRunOptions {
  /** Arrival time of rows that do not specify one, in milliseconds. Default 0. */
  readonly startsAt?: number | undefined;
  /** End of the run in milliseconds. Default: a day after the last row, so that windows end. */
  readonly until?: number | undefined;
}

/** A compiled statement. */
export interface CompiledStreamRule {
  /** The streams and tables of the statement. */
  readonly sources: readonly string[];
  /** The operators, last one first. */
  readonly explain: PlanNode;
  /** The operators with their successors. */
  readonly topology: Topology;
  /**
   * Run the statement from the beginning over rows, on a clock that advances from row to row. The run does not wait and
   * has no time limit; for statements from untrusted sources, use `rules.test`, which takes at most a second.
   * @throws InvalidInput ROW_INVALID; STREAM_RULE_INVALID if the statement joins a lookup table
   */
  run(steps: readonly SampleStep[], options?: StreamRunOptions): SampleRun;
}

/**
 * Compile a statement of a stream rule without a broker, for unit tests of statements and of functions:
 *
 * ```ts
 * const rule = await compileStreamRule('SELECT count(*) AS c FROM demo GROUP BY TUMBLINGWINDOW(ss, 10)');
 * rule.run([{ stream: 'demo', values: { a: 1 }, at: 500 }]).outputs; // [{ at: 10000, rows: [{ c: 1 }] }]
 * ```
 * @throws SqlError SQL_INVALID; InvalidInput STREAM_INVALID, STREAM_RULE_INVALID, OPTION_INVALID, OPTION_UNKNOWN, FUNCTION_INVALID;
 *   StateError FUNCTION_EXISTS, STREAM_EXISTS; BrokerError PACKAGE_MISSING (regular expressions need the package `re2js`)
 */
export async function compileStreamRule(sql: string, given: StreamCompileOptions = {}): Promise<CompiledStreamRule> {
  checkStatement(sql);
  checkObject(given, 'options');
  checkNames(given, COMPILE_OPTIONS, 'compileStreamRule');
  const { definitions = [], functions: own = [], bounds = {}, timezone, ruleId = 'test' } = given;
  readStreamsOptions({ definitions, functions: own, bounds, ...(timezone === undefined ? {} : { timezone }) });
  const registry = new Registry();
  for (const row of [...builtInFunctions(), ...own]) registry.defineFunction(row);
  const { functions } = registry;
  const patterns = usesPatterns([sql], functions) ? await loadPatterns() : undefined;
  const options = readRuleOptions(given.options);
  const text = sql;
  const bound = bind(parseStreamStatement(sql), {
    text,
    catalogue: catalogueOf(definitions),
    functions,
    pattern: patterns
  });
  const plan = planOf(bound, { options, bounds: { ...DEFAULT_BOUNDS, ...bounds }, sinks: [] });
  const settings = {
    plan,
    options,
    parseTime: (time: string, pattern: string) => parseTime(time, pattern, (at) => offsetMinutes(timezone, at)),
    toolsOf: (clock: Clock) =>
      ruleTools({
        ruleId,
        clock,
        timezone,
        patterns: () => patterns,
        rowWeight: bounds.rowWeight ?? DEFAULT_BOUNDS.rowWeight
      })
  };
  return {
    sources: plan.streams.map(({ definition }) => definition.name),
    explain: plan.explain,
    topology: plan.topology,
    run: (steps, { startsAt = 0, until } = {}) => atOnce(sampleSteps(steps, { ...settings, startsAt, until }))
  };
}

/**
 * Format a statement: keywords in upper case, one blank between words.
 * @throws SqlError SQL_INVALID; InvalidInput STREAM_RULE_INVALID
 */
export function formatStreamRule(sql: string): string {
  checkStatement(sql);
  return printStreamStatement(parseStreamStatement(sql));
}

/** Parse CREATE STREAM or CREATE TABLE. @throws SqlError SQL_INVALID; InvalidInput STREAM_INVALID */
export function parseStream(ddl: string): StreamDefinition {
  return definitionOf(ddl);
}

/** The functions that statements can call, by family. */
export function streamFunctions(): StreamFunctionInfo[] {
  return builtInFunctions().map(({ name, family, kind, params, about }) => ({ name, family, kind, params, about }));
}

/** The streams and tables of a test; any other name is a stream without a schema. */
function catalogueOf(ddls: readonly string[]): { get(name: string): StreamDefinition } {
  const known = new Map<string, StreamDefinition>();
  for (const definition of ddls.map(parseStream)) {
    const { name } = definition;
    if (known.has(name)) throw new StateError('STREAM_EXISTS', `the stream or table ${name} is defined twice`);
    known.set(name, definition);
  }
  return { get: (name) => known.get(name) ?? { kind: 'stream', name, columns: undefined, options: {}, sql: '' } };
}

function checkStatement(sql: unknown): asserts sql is string {
  if (typeof sql !== 'string') throw new InvalidInput('STREAM_RULE_INVALID', 'sql', 'a statement', sql);
}
