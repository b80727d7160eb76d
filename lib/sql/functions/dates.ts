// Times are integers in a unit, and all arithmetic is done in nanoseconds as a bigint, so that no unit loses digits.
// Years are 0 to 9999. A row says what arguments a function takes, which are checked before it runs; `run` throws an
// `SqlFailure` for a value that it cannot use.

import { SqlFailure } from '../sql-error.ts';
import { integerOf, type Value } from '../values.ts';
import { family } from './function.ts';

const UNITS = ['second', 'millisecond', 'microsecond', 'nanosecond'];
/** Nanoseconds by unit. */
const NANOSECONDS: Readonly<Record<string, bigint>> = {
  second: 1_000_000_000n,
  millisecond: 1_000_000n,
  microsecond: 1000n,
  nanosecond: 1n
};
/** Decimals of a second by unit. */
const DECIMALS: Readonly<Record<string, number>> = { second: 0, millisecond: 3, microsecond: 6, nanosecond: 9 };
/** Years 0 to 9999, in every time zone. */
const [EARLIEST_MS, LATEST_MS] = [-62_167_132_800_000n, 253_402_214_399_999n];

function nanosecondsOf(time: number | bigint, unit: string, name: string): bigint {
  const nanoseconds = BigInt(time) * NANOSECONDS[unit];
  const ms = nanoseconds / 1_000_000n;
  if (ms < EARLIEST_MS || ms > LATEST_MS) throw new SqlFailure(`${name}: the year of ${time} is not from 0 to 9999`);
  return nanoseconds;
}

function floorDivide(value: bigint, by: bigint): bigint {
  return value >= 0n ? value / by : -((-value + by - 1n) / by);
}

/** Seconds by which the local time zone is east of UTC at a given time. */
function localOffset(nanoseconds: bigint): number {
  return -new Date(Number(nanoseconds / 1_000_000n)).getTimezoneOffset() * 60;
}

/** The components of a time in a time zone. */
function partsOf(nanoseconds: bigint, offsetSeconds: number) {
  const seconds = floorDivide(nanoseconds, 1_000_000_000n);
  const date = new Date(Number(seconds + BigInt(offsetSeconds)) * 1000).toISOString();
  return {
    date: date.slice(0, 10),
    time: date.slice(11, 19),
    fraction: (nanoseconds - seconds * 1_000_000_000n).toString().padStart(9, '0')
  };
}

function offsetText(offsetSeconds: number, separator = ':', hasSeconds = false): string {
  const size = Math.abs(offsetSeconds);
  const parts = [Math.floor(size / 3600), Math.floor(size / 60) % 60, ...(hasSeconds ? [size % 60] : [])];
  return (offsetSeconds < 0 ? '-' : '+') + parts.map((part) => String(part).padStart(2, '0')).join(separator);
}

function rfc3339(nanoseconds: bigint, unit: string): string {
  const offset = localOffset(nanoseconds);
  const { date, time, fraction } = partsOf(nanoseconds, offset);
  const decimals = DECIMALS[unit];
  return `${date}T${time}${decimals === 0 ? '' : `.${fraction.slice(0, decimals)}`}${offsetText(offset)}`;
}

/** The Unix time in milliseconds of a UTC time; NaN if that day or time does not exist, such as 2026-02-30. */
function utcMs(date: string, time: string): number {
  const ms = Date.parse(`${date}T${time}Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(`${date}T${time}`) ? ms : Number.NaN;
}

const RFC3339 = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})$/;

function parseRfc3339(text: string, unit: string): Value {
  const found = RFC3339.exec(text);
  const [, date, time, fraction = '', zone] = found ?? [];
  const ms = found === null ? Number.NaN : Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  if (Number.isNaN(ms) || Number.isNaN(utcMs(date, time)))
    throw new SqlFailure(`rfc3339_to_unix_ts: "${text.slice(0, 60)}" is not an RFC 3339 time`);
  const nanoseconds = BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
  return integerOf(floorDivide(nanoseconds, NANOSECONDS[unit]));
}

const ZONE = /^([+-])([01]\d|2[0-3]):?([0-5]\d)(?::?([0-5]\d))?$/;

/** The seconds east of UTC of a zone: `Z`, `local`, `+02:00`, or a number of seconds. */
function zoneSeconds(zone: Value, name: string, nanoseconds: bigint): number {
  if (Number.isSafeInteger(zone) && Math.abs(zone as number) < 86_400) return zone as number;
  if (zone === 'Z' || zone === 'z') return 0;
  if (zone === 'local') return localOffset(nanoseconds);
  const found = typeof zone === 'string' ? ZONE.exec(zone) : null;
  if (found === null)
    throw new SqlFailure(`${name}: the time zone is invalid; use Z, local, +02:00 or a number of seconds`);
  const [, sign, hours, minutes, seconds = '0'] = found;
  const size = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  return sign === '-' ? -size : size;
}

const PART = /%(?:Y|m|d|H|M|S|N|3N|6N|z|:z|::z|%)/g;

function formatDate(unit: string, zone: Value, format: string, time: number | bigint): string {
  const nanoseconds = nanosecondsOf(time, unit, 'format_date');
  const offset = zoneSeconds(zone, 'format_date', nanoseconds);
  const { date, time: clock, fraction } = partsOf(nanoseconds, offset);
  const values: Readonly<Record<string, string>> = {
    '%Y': date.slice(0, 4),
    '%m': date.slice(5, 7),
    '%d': date.slice(8, 10),
    '%H': clock.slice(0, 2),
    '%M': clock.slice(3, 5),
    '%S': clock.slice(6, 8),
    '%N': fraction,
    '%3N': fraction.slice(0, 3),
    '%6N': fraction.slice(0, 6),
    '%z': offsetText(offset, ''),
    '%:z': offsetText(offset),
    '%::z': offsetText(offset, ':', true),
    '%%': '%'
  };
  return format.replace(PART, (part) => values[part]);
}

/** The regular expression of each part of a format. */
const PATTERNS: Readonly<Record<string, string>> = {
  '%Y': '(?<Y>\\d{4})',
  '%m': '(?<m>\\d{2})',
  '%d': '(?<d>\\d{2})',
  '%H': '(?<H>\\d{2})',
  '%M': '(?<M>\\d{2})',
  '%S': '(?<S>\\d{2})',
  '%N': '(?<N>\\d{9})',
  '%3N': '(?<N>\\d{3})',
  '%6N': '(?<N>\\d{6})',
  '%z': '(?<z>[+-]\\d{4})',
  '%:z': '(?<z>[+-]\\d{2}:\\d{2})',
  '%::z': '(?<z>[+-]\\d{2}:\\d{2}:\\d{2})',
  '%%': '%'
};

/** Parse a time by a format in which each part matches a fixed number of characters. */
function parseDate(unit: string, zone: Value, format: string, text: string): Value {
  const wrong = new SqlFailure(
    `date_to_unix_ts: "${text.slice(0, 60)}" does not have the format "${format.slice(0, 60)}"`
  );
  const source = format.replace(
    /%(?:Y|m|d|H|M|S|N|3N|6N|z|:z|::z|%)|[\\^$.*+?()[\]{}|/-]/g,
    (part) => PATTERNS[part] ?? `\\${part}`
  );
  let found: RegExpExecArray | null;
  try {
    found = new RegExp(`^${source}$`).exec(text);
  } catch {
    throw new SqlFailure(`date_to_unix_ts: a part occurs twice in the format "${format.slice(0, 60)}"`);
  }
  if (found === null) throw wrong;
  const { Y = '1970', m = '01', d = '01', H = '00', M = '00', S = '00', N = '', z } = found.groups ?? {};
  const ms = utcMs(`${Y}-${m}-${d}`, `${H}:${M}:${S}`);
  if (Number.isNaN(ms)) throw wrong;
  const offset = zoneSeconds(z ?? zone, 'date_to_unix_ts', BigInt(ms) * 1_000_000n);
  const nanoseconds = BigInt(ms - offset * 1000) * 1_000_000n + BigInt(N.padEnd(9, '0'));
  return integerOf(floorDivide(nanoseconds, NANOSECONDS[unit]));
}

export const DATE_FUNCTIONS = family('dates', [
  {
    name: 'now_timestamp',
    params: ['string?'],
    returns: 'integer',
    about: 'The time since 1970 (UTC), in seconds or another unit.',
    choices: { 0: UNITS },
    isTotal: true,
    make:
      (tools) =>
      (unit = 'second') =>
        integerOf((BigInt(Math.trunc(tools.now())) * 1_000_000n) / NANOSECONDS[unit])
  },
  {
    name: 'now_rfc3339',
    params: ['string?'],
    returns: 'string',
    about: 'The time as RFC 3339 with the offset of the local time zone.',
    choices: { 0: UNITS },
    isTotal: true,
    make:
      (tools) =>
      (unit = 'second') =>
        rfc3339(BigInt(Math.trunc(tools.now())) * 1_000_000n, unit)
  },
  {
    name: 'unix_ts_to_rfc3339',
    params: ['integer', 'string?'],
    returns: 'string',
    about: 'A time since 1970 as RFC 3339.',
    choices: { 1: UNITS },
    run: (time: number | bigint, unit = 'second') => rfc3339(nanosecondsOf(time, unit, 'unix_ts_to_rfc3339'), unit)
  },
  {
    name: 'rfc3339_to_unix_ts',
    params: ['string', 'string?'],
    returns: 'integer',
    about: 'An RFC 3339 time as the time since 1970.',
    choices: { 1: UNITS },
    run: (text: string, unit = 'second') => parseRfc3339(text, unit)
  },
  {
    name: 'format_date',
    params: ['string', 'any', 'string', 'integer?'],
    returns: 'string',
    about:
      'format_date(unit, zone, format, time): a time, by default the current one, formatted with %Y %m %d %H %M %S %N %3N %6N %z %:z %::z.',
    choices: { 0: UNITS },
    make: (tools) => (unit: string, zone: Value, format: string, time?: number | bigint) =>
      formatDate(
        unit,
        zone,
        format,
        time ?? integerOf((BigInt(Math.trunc(tools.now())) * 1_000_000n) / NANOSECONDS[unit])
      )
  },
  {
    name: 'date_to_unix_ts',
    params: ['string', 'any', 'string', 'string?'],
    returns: 'integer',
    about: 'date_to_unix_ts(unit, format, text) or date_to_unix_ts(unit, zone, format, text): the time since 1970.',
    choices: { 0: UNITS },
    run: (unit: string, second: Value, third: string, fourth?: string) => {
      if (fourth !== undefined) return parseDate(unit, second, third, fourth);
      if (typeof second !== 'string') throw new SqlFailure('date_to_unix_ts: the format must be a string');
      return parseDate(unit, 'Z', second, third);
    }
  },
  {
    name: 'timezone_to_second',
    params: ['any'],
    returns: 'integer',
    about: 'Seconds by which a time zone is east of UTC.',
    make: (tools) => (zone: Value) =>
      zoneSeconds(zone, 'timezone_to_second', BigInt(Math.trunc(tools.now())) * 1_000_000n)
  }
]);
