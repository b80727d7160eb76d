import { streamJson } from '../../../lib/adapter.ts';
import { StreamFailure } from '../../../lib/index.ts';
import type { SinkRow } from '../rows.ts';

/** A row to be converted to a line. */
interface Point {
  readonly measurement: string;
  readonly tags: Iterable<readonly [name: string, value: unknown]>;
  readonly fields: Iterable<readonly [name: string, value: unknown]>;
  /** The time in the unit of the request; undefined: the server sets it on arrival. */
  readonly time: number | bigint | undefined;
}

/**
 * Format a line of the line protocol. Tags without a value, and fields that are null or not a finite number, are left
 * out. All numbers are floats, so that the type of a field never changes.
 * @throws StreamFailure if there are no fields, and for names that cannot be written
 */
export function lineOf({ measurement, tags, fields, time }: Point, what: string): string {
  let line = name(measurement, MEASUREMENT, `${what}: measurement`);
  for (const [key, value] of [...tags].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const text = value === null || value === undefined ? '' : tagValue(textOf(value));
    if (text !== '') line += `,${name(key, KEY, `${what}: name of a tag`)}=${text}`;
  }
  let separator = ' ';
  for (const [key, value] of fields) {
    const text = fieldValue(value);
    if (text === undefined) continue;
    line += `${separator}${name(key, KEY, `${what}: name of a field`)}=${text}`;
    separator = ',';
  }
  if (separator === ' ') throw new StreamFailure(`${what}: the row has no field with a value`);
  return time === undefined ? line : `${line} ${time}`;
}

const MEASUREMENT = /[, ]/g;
const KEY = /[,= ]/g;

/** @throws StreamFailure */
function name(text: string, special: RegExp, what: string): string {
  // such a backslash would escape the next character, and cannot be escaped itself; neither can line breaks
  if (text === '' || LOOSE.test(text) || /[\r\n\0]/.test(text))
    throw new StreamFailure(
      `${what} must not be empty, and have no line break and no backslash in front of a comma, "=", a blank or the end`
    );
  return text.replace(special, '\\$&');
}

const LOOSE = /(?<!\\)\\+(?=[,= ]|$)/;
const ALL_LOOSE = /(?<!\\)\\+(?=[,= ]|$)/g;

/**
 * Replace line breaks by spaces, and remove backslashes in front of a comma, "=", a space or the end, because they
 * cannot be written.
 */
function tagValue(text: string): string {
  return text
    .replace(/[\r\n\0]+/g, ' ')
    .replace(ALL_LOOSE, '')
    .replace(KEY, '\\$&');
}

/** @returns undefined if it has no value */
function fieldValue(value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined;
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  return `"${textOf(value).replace(/["\\]/g, '\\$&')}"`;
}

/** Times in ISO 8601, bytes as base64, others as JSON. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const json = streamJson(value);
  return json.startsWith('"') ? String(JSON.parse(json)) : json;
}

/**
 * The columns of a row that become fields.
 * @param wanted undefined: all except the time column
 */
export function fieldsOf(
  row: SinkRow,
  wanted: readonly string[] | undefined,
  time: string | undefined
): [name: string, value: unknown][] {
  if (wanted !== undefined && wanted.length > 0) return wanted.map((each) => [each, row[each]]);
  return Object.entries(row).filter(([each]) => each !== time);
}
