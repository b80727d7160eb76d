import { streamJson } from '../../../lib/adapter.ts';
import { StreamFailure } from '../../../lib/index.ts';
import type { SinkRow } from '../rows.ts';

/** A row that becomes a line. */
interface Point {
  readonly measurement: string;
  readonly tags: Iterable<readonly [name: string, value: unknown]>;
  readonly fields: Iterable<readonly [name: string, value: unknown]>;
  /** In the unit of the request; undefined: when the server gets it. */
  readonly time: number | bigint | undefined;
}

/**
 * A line of the line protocol. Tags without a value, and fields that are null or no finite number, are left out. All numbers are floats, so that the
 * type of a field never changes.
 * @throws StreamFailure if there is no field, and for names that cannot be written
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
  // such a backslash would escape what follows, and cannot be escaped itself; neither can line breaks
  if (text === '' || LOOSE.test(text) || /[\r\n\0]/.test(text))
    throw new StreamFailure(
      `${what} must not be empty, and have no line break and no backslash in front of a comma, "=", a blank or the end`
    );
  return text.replace(special, '\\$&');
}

const LOOSE = /(?<!\\)\\+(?=[,= ]|$)/;
const ALL_LOOSE = /(?<!\\)\\+(?=[,= ]|$)/g;

/** Line breaks become blanks, and backslashes in front of a comma, "=", a blank or the end are left out: these cannot be written. */
function tagValue(text: string): string {
  return text
    .replace(/[\r\n\0]+/g, ' ')
    .replace(ALL_LOOSE, '')
    .replace(KEY, '\\$&');
}

/** @returns undefined: it has no value */
function fieldValue(value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined;
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  return `"${textOf(value).replace(/["\\]/g, '\\$&')}"`;
}

/** Times as in ISO 8601, bytes as base64, others as JSON. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const json = streamJson(value);
  return json.startsWith('"') ? String(JSON.parse(json)) : json;
}

/** The columns of a row that are fields. @param wanted undefined: all but the column of the time */
export function fieldsOf(
  row: SinkRow,
  wanted: readonly string[] | undefined,
  time: string | undefined
): [name: string, value: unknown][] {
  if (wanted !== undefined && wanted.length > 0) return wanted.map((each) => [each, row[each]]);
  return Object.entries(row).filter(([each]) => each !== time);
}
