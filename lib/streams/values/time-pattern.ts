import { LRUCache } from 'lru-cache';
import { field, type Moment, type TimeField, type TimeFields } from './time-fields.ts';
import { StreamFailure } from './values.ts';

/** Maximum length of a pattern, in characters. */
const MAX_CHARACTERS = 1000;

/** A compiled pattern for times, such as `YYYY-MM-dd HH:mm:ss`. */
export interface TimePattern {
  /** @param offsetMinutes of the zone of the result, east of UTC @throws StreamFailure for an invalid time */
  format(time: Date, offsetMinutes: number): string;
  /**
   * @param offsetAt offset from UTC, in minutes, for times without a zone; default: UTC
   * @returns Unix time in milliseconds; undefined if the text does not match
   */
  parse(text: string, offsetAt?: OffsetAt): number | undefined;
}

/** The offset of a zone from UTC in minutes, at a Unix time in milliseconds. */
type OffsetAt = (timeMs: number) => number;

const COMPILED = new LRUCache<string, TimePattern>({ max: 100 });

/**
 * Format a time [stream rules 6.6]. Letters of the pattern: `YYYY YY` (or `y`), `M MM MMM MMMM`, `d dd`, `EEE EEEE`,
 * `HH`, `h hh`, `a`, `m mm`, `s ss`, `S SS SSS ...` with the dot before it, `z`, `Z`, `X XX XXX`, `G`; `'text'`, `''`,
 * and `\` before a literal letter.
 * @throws StreamFailure if the pattern or the time is invalid
 */
export function formatTime(time: Date, pattern: string, offsetMinutes: number): string {
  return compileTimePattern(pattern).format(time, offsetMinutes);
}

/**
 * Parse a time by a pattern as in `formatTime`.
 * @param offsetAt offset from UTC, in minutes, for times without a zone; default: UTC
 * @returns Unix time in milliseconds; undefined if the text does not match
 * @throws StreamFailure if the pattern is invalid
 */
export function parseTime(text: string, pattern: string, offsetAt?: OffsetAt): number | undefined {
  return compileTimePattern(pattern).parse(text, offsetAt);
}

/** Compile a pattern as in `formatTime`. @throws StreamFailure if it is invalid */
export function compileTimePattern(pattern: string): TimePattern {
  const known = COMPILED.get(pattern);
  if (known !== undefined) return known;
  const made = compile(pattern);
  COMPILED.set(pattern, made);
  return made;
}

function compile(pattern: string): TimePattern {
  const fields = fieldsOf(pattern);
  return {
    format(time, offsetMinutes) {
      const local = momentOf(time, offsetMinutes);
      let text = '';
      for (const each of fields) text += each.format(local);
      return text;
    },
    parse(text, offsetAt) {
      const values: TimeFields = {};
      let at: number | undefined = 0;
      for (const each of fields) {
        at = each.read(text, at, values);
        if (at === undefined) return undefined;
      }
      return at === text.length ? timeOf(values, offsetAt) : undefined;
    }
  };
}

/** @throws StreamFailure */
function fieldsOf(pattern: string): readonly TimeField[] {
  if (pattern.length > MAX_CHARACTERS)
    throw new StreamFailure(`the time format has more than ${MAX_CHARACTERS} characters`);
  const fields: TimeField[] = [];
  for (let at = 0; at < pattern.length; ) {
    const letter = pattern[at];
    if (letter === "'") {
      const end = pattern.indexOf("'", at + 1);
      if (end === -1) throw new StreamFailure(`invalid time format ${pattern}: the quote at ${at + 1} is not closed`);
      fields.push(literal(end === at + 1 ? "'" : pattern.slice(at + 1, end)));
      at = end + 1;
    } else if (letter === '\\') {
      if (at + 1 === pattern.length) throw new StreamFailure(`invalid time format ${pattern}: it ends with \\`);
      fields.push(literal(pattern[at + 1]));
      at += 2;
    } else {
      const length = runLength(pattern, at);
      // the dot before a fraction is optional in the pattern
      if (letter === '.' && pattern[at + 1] === 'S') at++;
      else {
        fields.push(field(letter, length, pattern) ?? literal(letter.repeat(length)));
        at += length;
      }
    }
  }
  return fields;
}

function runLength(pattern: string, start: number): number {
  if ('aGzZ'.includes(pattern[start])) return 1;
  let end = start + 1;
  while (pattern[end] === pattern[start]) end++;
  return pattern[start] === '.' ? 1 : end - start;
}

function literal(text: string): TimeField {
  return {
    format: () => text,
    read: (given, at) => (given.startsWith(text, at) ? at + text.length : undefined)
  };
}

/** A time as shown by a clock in a time zone. @throws StreamFailure if it is invalid */
export function momentOf(time: Date, offsetMinutes: number): Moment {
  const clock = new Date(time.getTime() + offsetMinutes * 60_000);
  if (Number.isNaN(clock.getTime())) throw new StreamFailure('the time is invalid: it is beyond the year 275760');
  return { clock, offsetMinutes };
}

/** @returns undefined if the time does not exist, such as February 30 */
function timeOf(values: TimeFields, offsetAt: OffsetAt | undefined): number | undefined {
  const { year = 1970, month = 1, day = 1, minute = 0, second = 0, ms = 0, hour12, isAfternoon } = values;
  let hour = values.hour ?? hour12 ?? 0;
  if (isAfternoon === true && hour < 12) hour += 12;
  else if (isAfternoon === false && hour === 12) hour = 0;
  if (month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 || (hour12 ?? 0) > 12) return undefined;
  const clock = new Date(0);
  clock.setUTCFullYear(year, month - 1, day);
  clock.setUTCHours(hour, minute, second, ms);
  if (day < 1 || clock.getUTCDate() !== day) return undefined;
  return utcOf(clock.getTime(), values.offsetMinutes ?? offsetAt);
}

/** The time at which a clock shows a given time. @param clockMs the time shown, as if it were in UTC */
function utcOf(clockMs: number, offset: number | OffsetAt | undefined): number {
  if (typeof offset !== 'function') return clockMs - (offset ?? 0) * 60_000;
  const near = clockMs - offset(clockMs) * 60_000;
  return clockMs - offset(near) * 60_000;
}

const COMMON =
  /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[Tt ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:[.,](\d{1,9}))?)?(?: ?([Zz]|[+-]\d{2}(?::?\d{2})?))?)?$/;

/** A parsed time and the zone that was written with it. */
interface ReadTime {
  /** Unix time in milliseconds. */
  readonly timeMs: number;
  readonly offsetMinutes: number | undefined;
}

/**
 * Parse a time in a common format: `2006-01-02`, `2006-01-02 15:04:05`, `2006-01-02T15:04:05.000Z`, with or without a
 * zone.
 * @param offsetAt offset from UTC, in minutes, for times without a zone; default: UTC
 * @returns undefined if the text does not match
 */
export function readTime(text: string, offsetAt?: OffsetAt): ReadTime | undefined {
  const found = COMMON.exec(text.length > 60 ? '' : text.trim());
  if (found === null) return undefined;
  const [year, month, day, hour = 0, minute = 0, second = 0] = found
    .slice(1, 7)
    .map((part) => (part === undefined ? undefined : Number(part)));
  const ms = Number((found[7] ?? '').slice(0, 3).padEnd(3, '0'));
  const offsetMinutes = found[8] === undefined ? undefined : offsetOf(found[8]);
  const timeMs = timeOf({ year, month, day, hour, minute, second, ms, offsetMinutes }, offsetAt);
  return timeMs === undefined ? undefined : { timeMs, offsetMinutes };
}

/** Minutes of `Z`, `+08`, `+0800` or `+08:00`. */
function offsetOf(zone: string): number {
  if (zone === 'Z' || zone === 'z') return 0;
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(3).replace(':', ''));
  return zone[0] === '-' ? -minutes : minutes;
}
