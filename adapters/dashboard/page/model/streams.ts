// Stream rules: the streams of a statement, the rows of a test, the form of a sink, and the counters of the nodes.
import type { ParamSpec } from './rules.ts';

/** The names of the streams and tables after FROM and JOIN. The statement may be incomplete, because it is read while a person types. */
export function streamsIn(statement: string): readonly string[] {
  const code = statement.replace(/--.*$/gm, '').replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g, "''");
  const names = [...code.matchAll(/\b(?:from|join)\s+(?:`([^`]*)`|([\p{L}_$][\p{L}\d_$-]*))/giu)];
  return [...new Set(names.map(([, quoted, plain]) => quoted ?? plain))];
}

/** A stream or a table, as the interface describes it. */
export interface Definition {
  readonly Name: string;
  readonly StreamFields: readonly { readonly Name: string; readonly FieldType: unknown }[] | null;
  readonly Options: Readonly<Record<string, unknown>>;
  readonly sql: string;
}

/** A row of a test. */
export interface TestRow {
  readonly stream: string;
  readonly values: Readonly<Record<string, unknown>>;
  /** The time of its arrival, in milliseconds. */
  readonly at?: number;
  readonly meta?: Readonly<Record<string, unknown>>;
}

const EXAMPLES: Readonly<Record<string, unknown>> = {
  bigint: 1,
  float: 21.5,
  string: 'text',
  datetime: '2030-01-01T00:00:00.000Z',
  boolean: true,
  bytea: '',
  array: [],
  struct: {}
};
const STEP_MS = 1_000;

/** An example of a row for each stream of a statement, a second apart. */
export function exampleRows(definitions: readonly Definition[]): readonly TestRow[] {
  return definitions.map(({ Name: stream, StreamFields }, index) => ({
    stream,
    at: index * STEP_MS,
    values: Object.fromEntries(
      (StreamFields ?? []).map(({ Name, FieldType }) => [Name, EXAMPLES[typeName(FieldType)] ?? null])
    )
  }));
}

/** The type of a column in a word: `bigint`, `array`. */
export function typeName(type: unknown): string {
  if (typeof type === 'object' && type !== null)
    return typeName((type as { readonly Type?: unknown }).Type ?? 'struct');
  return `${type}`.toLowerCase();
}

/** An input of a rule, as its samples have it. */
export interface InputSample {
  readonly at: number;
  readonly node: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly cut: boolean;
}

/** The rows of a test from the last inputs of a rule. Those that were shortened are left out. */
export function rowsOfInputs(inputs: readonly InputSample[]): readonly TestRow[] {
  return inputs
    .filter(({ cut }) => !cut)
    .map(({ at, node, values }) => ({ stream: node.replace(/^source_/, ''), at, values }));
}

/**
 * The row of a test from a message of this broker.
 * @returns undefined if the payload is not an object in JSON
 */
export function rowOfMessage(stream: string, topic: unknown, at: number, payload: string): TestRow | undefined {
  try {
    const values = JSON.parse(payload);
    if (typeof values !== 'object' || values === null || Array.isArray(values)) return undefined;
    return { stream, at, values, meta: { topic } };
  } catch {
    return undefined;
  }
}

/** The topic filter of a stream that reads this broker; undefined: it reads something else. */
export function filterOf({ Options }: Definition): string | undefined {
  const { DATASOURCE = '', TYPE = '', CONF_KEY = '', FORMAT = '' } = Options as Readonly<Record<string, string>>;
  if (!/^(mqtt)?$/i.test(TYPE) || CONF_KEY !== '' || !/^(json)?$/i.test(FORMAT)) return undefined;
  return DATASOURCE.split(',')[0].trim() || undefined;
}

/** A property of a source or a sink, as the interface describes it. */
export interface PropertySpec {
  readonly name: string;
  readonly type: string;
  readonly optional: boolean;
  readonly default?: unknown;
  readonly values?: readonly unknown[];
  readonly secret?: boolean;
  readonly hint: { readonly en_US: string };
}

/** A type of sources or sinks, as lists have it. */
export interface TypeRow {
  readonly name: string;
  readonly about: { readonly description: { readonly en_US: string } };
}

/** A type with its properties. */
export interface TypeDetails extends TypeRow {
  readonly properties: readonly PropertySpec[];
}

/** The parameters of a form for properties. */
export function specsOf(properties: readonly PropertySpec[]): readonly (readonly [string, ParamSpec])[] {
  return properties.map(({ name, type, optional, values, secret, hint, ...rest }) => {
    const about = rest.default === undefined ? hint.en_US : `${hint.en_US} Default: ${JSON.stringify(rest.default)}.`;
    // durations and sizes are numbers or strings with a unit, and lists may be given as strings
    const kind = secret ? 'password' : type === 'string' || type === 'boolean' ? type : 'any';
    const isLong = type === 'object' || type === 'array' || type === 'any';
    return [
      name,
      {
        type: kind,
        description: { en: about },
        required: !optional,
        ...(isLong && { input: 'textarea' }),
        ...(values && { enum: values })
      }
    ];
  });
}

/** The type of a sink, and its properties, from an action of a rule: `{ "mqtt": { "topic": "a" } }`. */
export function sinkOf(action: Readonly<Record<string, unknown>>): readonly [type: string, properties: object] {
  const [[type, properties] = ['', {}]] = Object.entries(action);
  return [type, (properties ?? {}) as object];
}

/** True for a statement that begins with CREATE. */
export function isDefinition(statement: string): boolean {
  return /^create\b/i.test(statement.replace(/^(?:\s|--.*|\/\*[\s\S]*?(?:\*\/|$))+/, ''));
}

/** Metrics of a rule by their names. */
export type Metrics = Readonly<Record<string, unknown>>;

/** The counters of a node of a rule. */
export interface NodeCounts {
  readonly name: string;
  readonly kind: 'source' | 'op' | 'sink';
  readonly inputs: number;
  readonly outputs: number;
  readonly exceptions: number;
  readonly lastException: string;
  /** The time of the last row, in microseconds. */
  readonly latencyUs: number;
  /** Rows that wait. */
  readonly waiting: number;
  /** 1: connected, 0: connecting, -1: not connected; undefined: it has no connection. */
  readonly connection: number | undefined;
}

/**
 * The counters of all nodes, in the order of the metrics: from the sources to the sinks. The nodes after one that has failed receive its error as well;
 * only the first one has it here.
 */
export function nodesOf(metrics: Metrics): readonly NodeCounts[] {
  const seen = new Set(['']);
  return Object.keys(metrics).flatMap((key) => {
    const [, name, kind] = /^((source|op|sink)_.+)_0_records_in_total$/.exec(key) ?? [];
    if (name === undefined) return [];
    const counts = countsOf(metrics, name);
    const lastException = seen.has(counts.lastException) ? '' : counts.lastException;
    seen.add(lastException);
    return [{ ...counts, kind: kind as NodeCounts['kind'], lastException }];
  });
}

/** The rows that a rule has read and those that its sinks have received, and its errors. An error counts at every node that it passes, so the most of one node count. */
export function totalsOf(metrics: Metrics): {
  readonly inputs: number;
  readonly outputs: number;
  readonly exceptions: number;
} {
  const nodes = nodesOf(metrics);
  const sum = (kind: NodeCounts['kind']) =>
    nodes.filter((node) => node.kind === kind).reduce((total, { outputs }) => total + outputs, 0);
  return {
    inputs: sum('source'),
    outputs: sum('sink'),
    exceptions: Math.max(0, ...nodes.map(({ exceptions }) => exceptions))
  };
}

/** The counters of a node. */
export function countsOf(metrics: Metrics, name: string): NodeCounts {
  const value = (key: string) => metrics[`${name}_0_${key}`];
  const connection = value('connection_status');
  return {
    name,
    kind: 'op',
    inputs: Number(value('records_in_total') ?? 0),
    outputs: Number(value('records_out_total') ?? 0),
    exceptions: Number(value('exceptions_total') ?? 0),
    lastException: `${value('last_exception') ?? ''}`,
    latencyUs: Number(value('process_latency_us') ?? 0),
    waiting: Number(value('buffer_length') ?? 0),
    connection: typeof connection === 'number' ? connection : undefined
  };
}

/** Metrics at a time, in milliseconds. */
export interface MetricsAt {
  readonly at: number;
  readonly metrics: Metrics;
}

/**
 * The rows per second that a node has sent. Metrics come in each second in which they change, so those of a longer time have changed in its last
 * second.
 */
export function outputRate(before: MetricsAt | undefined, now: MetricsAt, name: string): number {
  if (before === undefined) return 0;
  const elapsed = now.at - before.at;
  const seconds = elapsed < 2_000 ? Math.max(elapsed, 250) / 1_000 : 1;
  return Math.max(0, countsOf(now.metrics, name).outputs - countsOf(before.metrics, name).outputs) / seconds;
}

/** The words of CREATE STREAM and CREATE TABLE: the types of columns, and the options after WITH. */
export const DDL_WORDS = {
  types: ['BIGINT', 'FLOAT', 'STRING', 'DATETIME', 'BOOLEAN', 'BYTEA', 'ARRAY', 'STRUCT'],
  options: [
    'DATASOURCE',
    'FORMAT',
    'KEY',
    'CONF_KEY',
    'STRICT_VALIDATION',
    'TYPE',
    'TIMESTAMP',
    'TIMESTAMP_FORMAT',
    'RETAIN_SIZE',
    'SCHEMAID',
    'KIND',
    'DELIMITER'
  ]
} as const;

/** The numbers of streams, tables and rules in an export. @returns undefined if the text is not an export */
export function contentsOf(
  text: string
): { readonly streams: number; readonly tables: number; readonly rules: number } | undefined {
  try {
    const ruleset = JSON.parse(text) as Readonly<Record<string, object>>;
    if (typeof ruleset !== 'object' || Array.isArray(ruleset)) return undefined;
    const { streams = {}, tables = {}, rules = {}, ...others } = ruleset;
    const counts = [streams, tables, rules].map((part) => (typeof part === 'object' ? Object.keys(part).length : -1));
    if (counts.includes(-1)) return undefined;
    const [ofStreams, ofTables, ofRules] = counts;
    if (ofStreams + ofTables + ofRules === 0 && Object.keys(others).length === 0) return undefined;
    return { streams: ofStreams, tables: ofTables, rules: ofRules };
  } catch {
    return undefined;
  }
}

const PROTO =
  /\/\/.*|\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[{}]|\bpackage\s+([\w.]+)|\bmessage\s+(\w+)/g;

/** The messages of a .proto file as SCHEMAID names them after the schema, with the package and without those in other messages. */
export function messagesIn(content: string): readonly string[] {
  const names: string[] = [];
  let space = '';
  let level = 0;
  for (const [found, ofPackage, message] of content.matchAll(PROTO)) {
    if (found === '{') level++;
    else if (found === '}') level--;
    else if (ofPackage !== undefined) space = `${ofPackage}.`;
    else if (message !== undefined && level === 0) names.push(message);
  }
  return names.map((name) => space + name);
}
