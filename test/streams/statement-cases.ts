import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { errorText } from '../../lib/base/errors.ts';
import type { StreamFunction, StreamFunctionTools } from '../../lib/streams/function.ts';
import { streamFunctions } from '../../lib/streams/functions/all.ts';
import { Graph } from '../../lib/streams/graph/graph.ts';
import { bind } from '../../lib/streams/plan/bind.ts';
import type { StreamPlan } from '../../lib/streams/plan/plan.ts';
import { planOf } from '../../lib/streams/plan/planner.ts';
import { readRuleOptions } from '../../lib/streams/rule/rule-options.ts';
import { parseStreamStatement } from '../../lib/streams/statement.ts';
import { DEFAULT_BOUNDS } from '../../lib/streams/streams-options.ts';
import type { RuleOptions, StreamBounds, StreamDefinition } from '../../lib/streams/types.ts';
import { type Emission, StreamRow } from '../../lib/streams/values/tuple.ts';
import { plain, type StreamValueObject } from '../../lib/streams/values/values.ts';
import { testTools, VirtualClock } from './virtual-clock.ts';

/** A row that arrives, the end of a table, or time that passes. */
interface TimedRow {
  readonly at: number;
  /** Absent if only time passes. */
  readonly stream?: string;
  /** Absent if the table is complete. */
  readonly values?: StreamValueObject;
}

/** A statement, its rows, and its emissions. */
export interface StatementCase {
  /** `windows-tumbling.txt:3 title` */
  readonly title: string;
  readonly sql: string;
  readonly options: Partial<RuleOptions>;
  readonly bounds: Partial<StreamBounds>;
  readonly tables: readonly StreamDefinition[];
  readonly rows: readonly TimedRow[];
  /** `TIME JSON` or `TIME error TEXT`, in the order of time. */
  readonly expected: readonly string[];
  /** True if the result is the same when the rule is saved and continued. */
  readonly isContinuous: boolean;
  /** Counters of nodes at the end, such as `op_2_watermark late_total 1`. */
  readonly counts: readonly string[];
}

/**
 * Read the cases of a text file in `test/streams/cases`. `== title` begins a case; `#` a comment. Then, a line each:
 *
 * | line | what it is |
 * |---|---|
 * | `SELECT ...` | the statement; lines that begin with spaces continue it |
 * | `options {...}`, `bounds {...}` | options of the rule, limits of the service |
 * | `table NAME file`, `table NAME retain 2` | a table; all other sources are streams without a schema |
 * | `1500 demo {"a":1}` | a row arrives at 1500 ms; in event time its time is its column ts. `"3n"` is the integer 3 |
 * | `1500 demo end` | the table is complete |
 * | `1500` | time passes |
 * | `-> 2000 [{"c":1}]`, `-> 2000 error TEXT` | an emission and its time |
 * | `counts op_1_watermark late_total 1` | a counter of a node at the end |
 * | `not continuous` | the result differs if the rule is saved and continued |
 */
export function readStatementCases(file: string): StatementCase[] {
  const text = readFileSync(join(import.meta.dirname, 'cases', file), 'utf8');
  const cases = text.split(/^== /m).slice(1);
  return cases.map((each) => {
    const [title, ...lines] = each.replaceAll(/\n +/g, ' ').split('\n');
    const found = (pattern: RegExp) => lines.flatMap((line) => pattern.exec(line)?.slice(1) ?? []);
    return {
      title: `${file}: ${title}`,
      sql: lines.find((line) => line.startsWith('SELECT ')) ?? '',
      options: JSON.parse(found(/^options (.*)/)[0] ?? '{}'),
      bounds: JSON.parse(found(/^bounds (.*)/)[0] ?? '{}'),
      tables: found(/^table (.*)/).map(tableOf),
      rows: found(/^(\d.*)/).map(rowOf),
      expected: found(/^-> (.*)/),
      isContinuous: !lines.includes('not continuous'),
      counts: found(/^counts (.*)/)
    };
  });
}

/** The text files whose names begin with a word. */
export function caseFiles(word: string): string[] {
  return readdirSync(join(import.meta.dirname, 'cases'))
    .filter((name) => name.startsWith(word) && name.endsWith('.txt'))
    .sort();
}

function tableOf(line: string): StreamDefinition {
  const [name, type, size] = line.split(' ');
  const options: Record<string, string> = type === 'file' ? { TYPE: 'file' } : { TYPE: 'memory', RETAIN_SIZE: size };
  return { kind: 'table', name, columns: undefined, options, sql: '' };
}

function rowOf(line: string): TimedRow {
  const [, at, stream, rest] = /^(\d+)(?: (\S+) (.*))?$/.exec(line) ?? [];
  if (stream === undefined) return { at: Number(at) };
  if (rest === 'end') return { at: Number(at), stream };
  const integers = (_key: string, value: unknown) =>
    typeof value === 'string' && /^-?\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value;
  return { at: Number(at), stream, values: JSON.parse(rest, integers) };
}

/** A graph with the tools of its functions. */
interface Run {
  readonly graph: Graph;
  readonly tools: StreamFunctionTools;
}

/** The result of a case. */
interface CaseResult {
  readonly emitted: string[];
  readonly counts: string[];
}

/**
 * Run a case from its text, on a clock that starts at the time of the first row.
 * @param saveAt the rule is saved before the row with this number, and a new one continues from the saved state; if
 *   undefined, it runs through
 */
export function runCase(each: StatementCase, saveAt?: number): CaseResult {
  const options = readRuleOptions(each.options);
  const plan = planCase(each, options);
  const clock = new VirtualClock(each.rows[0]?.at ?? 0);
  const emitted: string[] = [];
  const kept = new Map<string, StreamRow[]>();
  let { graph, tools } = openGraph(plan, clock, emitted);
  for (const [number, { at, stream, values }] of each.rows.entries()) {
    clock.advanceTo(at);
    if (number === saveAt) {
      const states = deserialize(serialize(graph.save()));
      graph.close();
      const { hits, groupHits } = tools;
      ({ graph, tools } = openGraph(plan, clock, emitted, { states, tools: { hits, groupHits } }));
    }
    if (stream === undefined) continue;
    const source = plan.streams.find(({ definition }) => definition.name === stream);
    const entry = graph.inputs.get(source?.position ?? -1);
    if (entry === undefined) throw new Error(`${each.title}: the statement has no source ${stream}`);
    if (values === undefined) entry.end();
    else {
      const row = new StreamRow(values, options.isEventTime && source?.kind === 'stream' ? Number(values.ts) : at);
      const { RETAIN_SIZE } = source?.definition.options ?? {};
      if (RETAIN_SIZE === undefined) entry.push(row);
      else {
        // a source passes on all rows of such a table
        const rows = [...(kept.get(stream) ?? []), row].slice(-Number(RETAIN_SIZE));
        kept.set(stream, rows);
        entry.replace(rows);
      }
    }
  }
  const counts = graph
    .metrics(() => undefined)
    .flatMap(([name, value]) => (each.counts.some((line) => line.startsWith(`${name} `)) ? [`${name} ${value}`] : []));
  graph.close();
  return { emitted, counts };
}

function planCase({ sql, tables, bounds }: StatementCase, options: RuleOptions): StreamPlan {
  const functions = new Map<string, StreamFunction>(streamFunctions().map((row) => [row.name, row]));
  const stream = (name: string): StreamDefinition => ({
    kind: 'stream',
    name,
    columns: undefined,
    options: { TIMESTAMP: 'ts' },
    sql: ''
  });
  const catalogue = { get: (name: string) => tables.find((table) => table.name === name) ?? stream(name) };
  const select = bind(parseStreamStatement(sql), { text: sql, catalogue, functions });
  return planOf(select, { options, bounds: { ...DEFAULT_BOUNDS, ...bounds }, sinks: [] });
}

/** @param saved the states of the operators, and the other contents of a checkpoint */
function openGraph(
  plan: StreamPlan,
  clock: VirtualClock,
  emitted: string[],
  saved?: { readonly states: Record<string, unknown>; readonly tools: Pick<StreamFunctionTools, 'hits' | 'groupHits'> }
): Run {
  const tools = { ...testTools(clock), ...(saved && structuredClone(saved.tools)) };
  const fail = (error: unknown) => emitted.push(`${clock.now()} error ${errorText(error)}`);
  const output = {
    items: 0,
    push: (item: unknown) => emitted.push(`${clock.now()} ${JSON.stringify(plain((item as Emission).rows as never))}`),
    flush: () => undefined,
    passError: fail
  };
  const graph = new Graph(plan, { clock, tools, lookups: new Map(), failed: () => undefined }, output);
  if (saved !== undefined) graph.load(saved.states);
  graph.open();
  return { graph, tools };
}
