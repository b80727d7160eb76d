import { type SinkItem, type SinkSetup, streamJson } from '../../../lib/adapter.ts';
import { InvalidInput, StreamFailure } from '../../../lib/index.ts';
import { rowsOf, type SinkRow } from '../rows.ts';
import { fieldsOf, lineOf } from './line-protocol.ts';
import { readFields } from './writer.ts';

/** Units of times, in nanoseconds. */
const NANOSECONDS: Readonly<Record<string, bigint>> = { ns: 1n, us: 1_000n, ms: 1_000_000n, s: 1_000_000_000n };

/** A tag: its column, or its value with placeholders for columns. */
export interface Tag {
  readonly name: string;
  readonly value: (row: SinkRow) => unknown;
}

/**
 * Make a function that formats the lines of items.
 * @throws InvalidInput PROPERTY_INVALID
 */
export function lineMaker(
  { properties, clock }: SinkSetup,
  tags: readonly Tag[],
  what: string
): (item: SinkItem) => readonly string[] {
  const wanted = readFields(properties.fields, what);
  const { tsFieldName, precision } = properties as { readonly tsFieldName?: string; readonly precision: string };
  const unit = NANOSECONDS[precision];
  return (item) => {
    const measurement = String(item.property('measurement'));
    const now = (BigInt(Math.trunc(clock.now())) * NANOSECONDS.ms) / unit;
    return rowsOf(item, what).map((row) =>
      lineOf(
        {
          measurement,
          tags: tags.map(({ name, value }) => [name, value(row)] as const),
          fields: fieldsOf(row, wanted, tsFieldName),
          time: tsFieldName ? timeOf(row[tsFieldName], tsFieldName, unit, what) : now
        },
        what
      )
    );
  };
}

/** @throws StreamFailure */
function timeOf(value: unknown, column: string, unit: bigint, what: string): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return BigInt(Math.trunc(value));
  if (value instanceof Date && !Number.isNaN(value.getTime())) return (BigInt(value.getTime()) * NANOSECONDS.ms) / unit;
  throw new StreamFailure(`${what}: the column ${column} has no time: a number in the unit of precision`);
}

/** Matches `{{.name}}`. */
const PLACEHOLDER = /\{\{\s*\.([\p{L}_][\p{L}\p{N}_]*)\s*\}\}/gu;

/**
 * Read the property `tags`: an object, or its JSON. Values may contain `{{.column}}`, which is replaced for each row.
 * @throws InvalidInput PROPERTY_INVALID
 */
export function readTags(given: unknown, what: string): readonly Tag[] {
  const tags = typeof given === 'string' && given !== '' ? parsed(given) : (given ?? {});
  const fail = (expected: string): never => {
    throw new InvalidInput('PROPERTY_INVALID', 'tags', expected, given, `${what}: property tags must be ${expected}`);
  };
  if (tags === '') return [];
  if (typeof tags !== 'object' || tags === null || Array.isArray(tags)) return fail('an object of names and values');
  return Object.entries(tags).map(([name, value]: [string, unknown]): Tag => {
    if (name === '' || !['string', 'number', 'boolean'].includes(typeof value))
      return fail('an object of names and values');
    const text = String(value);
    if (text.replaceAll(PLACEHOLDER, '').includes('{{'))
      return fail('an object, in whose values only {{.column}} is a template');
    if (!text.includes('{{')) return { name, value: () => text };
    const [only] = [...text.matchAll(PLACEHOLDER)].filter(([all]) => all === text);
    if (only !== undefined) return { name, value: (row) => row[only[1]] };
    return { name, value: (row) => text.replaceAll(PLACEHOLDER, (_, column: string) => textIn(row[column])) };
  });
}

function textIn(value: unknown): string {
  return value === undefined || value === null ? '' : typeof value === 'object' ? streamJson(value) : String(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
