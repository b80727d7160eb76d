/** Stream statements without a broker: `embermq/streams`. A broker loads its stream service itself, see `broker.streams`. */
import type { Clock } from '../base/clock.ts';
import { InvalidInput, StateError } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/options-table.ts';
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

/** A function of statements, for documents. */
export type StreamFunctionInfo = Pick<FunctionBase, 'name' | 'family' | 'params' | 'about'> &
  Pick<StreamFunction, 'kind'>;

/** Options of `compileStreamRule`. */
export interface StreamCompileOptions {
  /** CREATE STREAM and CREATE TABLE of what the statement selects from. Default: a stream without a schema for each other name. */
  readonly definitions?: readonly string[] | undefined;
  /** Functions of the app. Default: none. */
  readonly functions?: readonly StreamFunction[] | undefined;
  /** Options of the rule, such as `isEventTime`. */
  readonly options?: Partial<RuleOptions> | undefined;
  /** What the rule may take. Default: the bounds of a broker. */
  readonly bounds?: Partial<StreamBounds> | undefined;
  /** IANA name of the zone of times without one. Default: that of the process. */
  readonly timezone?: string | undefined;
  /** What the function `rule_id` gives. Default `test`. */
  readonly ruleId?: string | undefined;
}

const COMPILE_OPTIONS = ['definitions', 'functions', 'options', 'bounds', 'timezone', 'ruleId'];

/** When a run begins and ends. */
export interface StreamRunOptions {
  /** When rows arrive that do not say it, in milliseconds. Default 0. */
  readonly startsAt?: number | undefined;
  /** When the run ends, in milliseconds. Default: a day after the last row, so that windows end. */
  readonly until?: number | undefined;
}

/** A statement that is ready to run. */
export interface CompiledStreamRule {
  /** The streams and tables of the statement. */
  readonly sources: readonly string[];
  /** The operators, the last one first. */
  readonly explain: PlanNode;
  readonly topology: Topology;
  /**
   * Run the statement from its beginning over rows, on a clock that goes on from row to row. It waits for nothing and has no bound of time:
   * for statements of others, use `rules.test`, which takes at most a second.
   * @throws InvalidInput ROW_INVALID; STREAM_RULE_INVALID: it joins a lookup table
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

/** Parse a statement and print it in one form: keywords in upper case, one blank between words. @throws SqlError SQL_INVALID; InvalidInput STREAM_RULE_INVALID */
export function formatStreamRule(sql: string): string {
  checkStatement(sql);
  return printStreamStatement(parseStreamStatement(sql));
}

/** Read CREATE STREAM or CREATE TABLE. @throws SqlError SQL_INVALID; InvalidInput STREAM_INVALID */
export function parseStream(ddl: string): StreamDefinition {
  return definitionOf(ddl);
}

/** The functions that statements can call, by family. */
export function streamFunctions(): StreamFunctionInfo[] {
  return builtInFunctions().map(({ name, family, kind, params, about }) => ({ name, family, kind, params, about }));
}

/** The streams and tables of a test; every other name is a stream without a schema. */
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
