import { loadPatterns } from '../../lib/sql/patterns.ts';
import type { StreamFunction, StreamFunctionTools } from '../../lib/streams/function.ts';
import { streamFunctions } from '../../lib/streams/functions/all.ts';
import { bind } from '../../lib/streams/plan/bind.ts';
import { freshSlots } from '../../lib/streams/plan/slots.ts';
import { StreamRow } from '../../lib/streams/values/tuple.ts';
import { isStruct, StreamFailure, type StreamValue, type StreamValueObject } from '../../lib/streams/values/values.ts';
import { definition, select } from './expression-support.ts';

/** 2023-06-15T22:30:45.678Z */
const NOW = 1_686_868_245_678;

export const FUNCTIONS: ReadonlyMap<string, StreamFunction> = new Map(streamFunctions().map((row) => [row.name, row]));

const PROPERTIES: Readonly<Record<string, StreamValue>> = { zone: 'eu', count: '42' };

const compilePattern = await loadPatterns();

/** Tools for functions, 8 hours east of UTC, with a stopped clock and without randomness. */
export const TOOLS: StreamFunctionTools = {
  ruleId: 'r1',
  startedAt: 1000,
  now: () => NOW,
  random: () => 0.25,
  pattern(text) {
    try {
      return compilePattern(text);
    } catch (error) {
      throw new StreamFailure((error as Error).message.slice(0, 200));
    }
  },
  offsetMinutes: () => 480,
  property: (name) => PROPERTIES[name],
  hits: { count: 5, lastAt: 2000 },
  groupHits: { count: 7, lastAt: 3000 },
  delayed: { until: 0 },
  frame: { range: undefined, rowNumber: 0 }
};

/** Evaluate an expression for a row. @throws SqlError, StreamFailure */
export function evaluate(text: string, values: StreamValueObject): StreamValue {
  const catalogue = { get: (name: string) => (name === 'demo' ? definition('demo') : undefined) };
  const context = { text, catalogue, functions: FUNCTIONS, pattern: TOOLS.pattern };
  const statement = bind(select([text]), context);
  const [field] = statement.fields;
  if (field.type !== 'column') throw new TypeError('the field is not a column');
  return field.expression.make(TOOLS)(new StreamRow(values, NOW, {}, freshSlots(statement.slots.count)));
}

/** A value in the notation of the text files: `5n` is an integer, `@...` a datetime, `0x...` bytes. */
export function show(value: StreamValue): string {
  return JSON.stringify(spelled(value)) ?? 'null';
}

function spelled(value: StreamValue): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : `${value}`;
  if (value instanceof Date) return `@${value.toISOString()}`;
  if (value instanceof Uint8Array) return `0x${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return value.map(spelled);
  if (!isStruct(value)) return value ?? null;
  const struct = Object.create(null) as Record<string, unknown>;
  for (const [key, each] of Object.entries(value)) struct[key] = spelled(each);
  return struct;
}
