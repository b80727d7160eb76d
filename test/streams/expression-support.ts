import { STREAM_DIALECT } from '../../lib/sql/dialect.ts';
import { Parser } from '../../lib/sql/parser.ts';
import type { Expression, Selected, StreamSelect } from '../../lib/sql/tree.ts';
import type { BoundSelect } from '../../lib/streams/expressions/bound.ts';
import type { StreamFunction, StreamFunctionTools } from '../../lib/streams/function.ts';
import { bind } from '../../lib/streams/plan/bind.ts';
import { freshSlots } from '../../lib/streams/plan/slots.ts';
import type { Column, StreamDefinition } from '../../lib/streams/types.ts';
import { type Frame, StreamRow } from '../../lib/streams/values/tuple.ts';
import {
  isNull,
  isStruct,
  StreamFailure,
  type StreamValue,
  type StreamValueObject
} from '../../lib/streams/values/values.ts';

const PLACE = { start: 0, end: 0 };

/** Tools for functions, with a stopped clock and without randomness. */
export function toolsOf(frame: Frame = { range: undefined, rowNumber: 0 }): StreamFunctionTools {
  return {
    ruleId: 'r1',
    startedAt: 0,
    now: () => 1_000,
    random: () => 0.25,
    pattern: (text) => {
      if (text.includes('(')) throw new StreamFailure(`the pattern ${text} is not closed`);
      return { parts: 1, test: (value) => value.includes(text), replace: (value) => value };
    },
    offsetMinutes: () => 0,
    property: () => null,
    hits: { count: 0, lastAt: 0 },
    groupHits: { count: 0, lastAt: 0 },
    delayed: { until: 0 },
    frame
  };
}

/** Functions of each kind, so that these tests need no others. */
const FUNCTIONS: ReadonlyMap<string, StreamFunction> = new Map<string, StreamFunction>(
  (
    [
      {
        kind: 'scalar',
        name: 'abs',
        params: ['number'],
        isPure: true,
        nullIsNull: true,
        run: (x: number) => Math.abs(Number(x))
      },
      {
        kind: 'scalar',
        name: 'upper',
        params: ['string'],
        isPure: true,
        nullIsNull: true,
        run: (x: string) => x.toUpperCase()
      },
      { kind: 'scalar', name: 'isnull', params: ['any'], isPure: true, run: (x: StreamValue) => isNull(x) },
      {
        kind: 'scalar',
        name: 'concat',
        params: ['any...'],
        isPure: true,
        run: (...all: StreamValue[]) => all.join('')
      },
      {
        kind: 'scalar',
        name: 'pad',
        params: ['string', 'bigint?'],
        run: (x: string, n = 1n) => x + ' '.repeat(Number(n))
      },
      {
        kind: 'scalar',
        name: 'cast',
        params: ['any', 'string'],
        choices: { 1: ['bigint', 'float'] },
        isPure: true,
        run: (x: StreamValue, type: string) => (type === 'bigint' ? BigInt(x as number) : Number(x))
      },
      {
        kind: 'scalar',
        name: 'matches',
        params: ['string', 'string'],
        patternAt: 1,
        run: (a: string, b: string) => a === b
      },
      {
        kind: 'scalar',
        name: 'element',
        params: ['array', 'bigint'],
        check: ([, n]: readonly (StreamValue | undefined)[]) => (n === -1n ? 'the index is negative' : undefined),
        run: (list: readonly StreamValue[], n: bigint) => list[Number(n)]
      },
      { kind: 'context', name: 'chance', params: [], make: (tools: StreamFunctionTools) => () => tools.random() },
      { kind: 'context', name: 'rule_id', params: [], make: (tools: StreamFunctionTools) => () => tools.ruleId },
      { kind: 'aggregate', name: 'count', params: ['any'], wildcard: 'ones' },
      { kind: 'aggregate', name: 'sum', params: ['number'] },
      { kind: 'aggregate', name: 'collect', params: ['any'], wildcard: 'rows' },
      { kind: 'analytic', name: 'lag', params: ['any', 'bigint?'] },
      {
        kind: 'rows',
        name: 'unnest',
        params: ['array'],
        make: () => ({ next: ([list]: readonly StreamValue[]) => list })
      },
      {
        kind: 'columns',
        name: 'extract',
        params: ['struct'],
        make: () => ({ next: ([struct]: readonly StreamValue[]) => struct })
      },
      { kind: 'columns', name: 'changed_cols', params: ['string', 'boolean', 'any...'], make: () => {}, load: () => {} }
    ] as unknown as StreamFunction[]
  ).map((row) => [row.name, { ...row, family: 'test', about: 'for tests' }])
);

/** A stream or a table, with columns written as `id bigint`. */
export function definition(
  name: string,
  columns?: readonly string[],
  extra: Partial<StreamDefinition> = {}
): StreamDefinition {
  const declared = columns?.map((text): Column => {
    const [column, type] = text.split(' ');
    return { name: column, type: { type: type as 'bigint' } };
  });
  return { kind: 'stream', name, columns: declared, options: {}, sql: '', ...extra };
}

/** Parse an expression. @throws SqlError */
export function expression(text: string): Expression {
  return new Parser(text, STREAM_DIALECT).expression();
}

/** A column of SELECT: `a + 1 AS b`. */
function selected(text: string): Selected {
  const [, inner, alias, invisible] = /^(.*?)(?: AS (\w+))?( INVISIBLE)?$/.exec(text) as RegExpExecArray;
  return {
    type: 'selected',
    expression: expression(inner),
    ...(alias === undefined ? {} : { alias: { type: 'path', name: alias, steps: [], ...PLACE } }),
    ...(invisible === undefined ? {} : { isInvisible: true }),
    ...PLACE
  };
}

/** A statement over the stream `demo`. */
export function select(fields: readonly string[], rest: Partial<StreamSelect> = {}): StreamSelect {
  return {
    type: 'stream-select',
    fields: fields.map((field) => (field === '*' ? { type: 'star', ...PLACE } : selected(field))),
    from: { name: 'demo', ...PLACE },
    joins: [],
    groupBy: [],
    orderBy: [],
    ...rest
  };
}

/** Bind a statement over streams: `demo` has no schema unless one is given. */
export function bound(
  statement: StreamSelect,
  streams: readonly StreamDefinition[] = [definition('demo')]
): BoundSelect {
  const catalogue = { get: (name: string) => streams.find((stream) => stream.name === name) };
  return bind(statement, { text: '', catalogue, functions: FUNCTIONS, pattern: toolsOf().pattern });
}

/** Evaluate an expression for a row. @throws SqlError, StreamFailure */
export function evaluate(text: string, values: StreamValueObject, metadata: StreamValueObject = {}): StreamValue {
  const statement = bound(select([`${text}`]));
  const [field] = statement.fields;
  if (field.type !== 'column') throw new TypeError('the field is not a column');
  const frame: Frame = { range: { start: 1, end: 2, trigger: 3 }, rowNumber: 4 };
  const row = new StreamRow(values, 5, metadata, freshSlots(statement.slots.count));
  return field.expression.make(toolsOf(frame))(row);
}

/** Values of the text files: `5n` is an integer, `@2024-01-01T00:00:00Z` a datetime, `0x0102` bytes. */
export function readValue(json: string): StreamValue {
  return JSON.parse(json, (_, value) => {
    if (typeof value !== 'string') return value;
    if (/^-?\d+n$/.test(value)) return BigInt(value.slice(0, -1));
    if (value.startsWith('@')) return new Date(value.slice(1));
    return value.startsWith('0x') ? new Uint8Array(Buffer.from(value.slice(2), 'hex')) : value;
  });
}

/** A value in the notation of the text files. */
export function showValue(value: StreamValue): string {
  const spelled = (each: StreamValue): unknown => {
    if (typeof each === 'bigint') return `${each}n`;
    if (each instanceof Date) return `@${each.toISOString()}`;
    if (Array.isArray(each)) return each.map(spelled);
    if (isStruct(each)) return Object.fromEntries(Object.entries(each).map(([key, inner]) => [key, spelled(inner)]));
    return each ?? null;
  };
  return JSON.stringify(spelled(value));
}
