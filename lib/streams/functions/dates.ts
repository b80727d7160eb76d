// A time is a `Date` and the offset of a zone: the offset that was written with it, or that of the service (option
// `timezone`), whose offset depends on the time. Functions of days and hours use what a clock in that zone shows, as
// if it were UTC (`Moment`). The current time comes from the clock of the rule, never from the process, so that tests
// can run a statement in any time.

import type { StreamFunctionTools } from '../function.ts';
import { DAYS, MONTHS, type Moment } from '../values/time-fields.ts';
import { compileTimePattern, formatTime, momentOf, readTime, type TimePattern } from '../values/time-pattern.ts';
import { zoneOffsetMinutes } from '../values/time-zone.ts';
import { describe, integer, isNumber, StreamFailure, type StreamValue } from '../values/values.ts';
import { indexOf, textOf } from './arguments.ts';
import { PURE, type StreamFunctionEntry, streamFamily } from './family.ts';

const DATE = 'yyyy-MM-dd';
const DATE_TIME = 'yyyy-MM-dd HH:mm:ss';
const TIME = 'HH:mm:ss';
const DAY_MS = 86_400_000;

/** A time with a zone offset: the one written with it, or else that of the service. */
interface ZonedTime {
  readonly time: Date;
  readonly offsetMinutes: number;
}

/** @param value a datetime, milliseconds since 1970, or a string @throws StreamFailure */
function timeOf(value: StreamValue, tools: StreamFunctionTools): ZonedTime {
  if (typeof value === 'string') {
    const read = readTime(value, (timeMs) => tools.offsetMinutes(timeMs));
    if (read === undefined)
      throw new StreamFailure(
        `cannot convert ${describe(value)} to datetime; use a form such as 2006-01-02T15:04:05.000Z`
      );
    return inZone(new Date(read.timeMs), read.offsetMinutes, tools);
  }
  if (value instanceof Date) return inZone(value, undefined, tools);
  if (isNumber(value)) return inZone(new Date(Math.trunc(Number(value))), undefined, tools);
  throw new StreamFailure(`unsupported type to convert to timestamp ${describe(value)}`);
}

function inZone(time: Date, offsetMinutes: number | undefined, tools: StreamFunctionTools): ZonedTime {
  const timeMs = time.getTime();
  if (Number.isNaN(timeMs)) throw new StreamFailure('the time is invalid: it is beyond the year 275760');
  return { time, offsetMinutes: offsetMinutes ?? tools.offsetMinutes(timeMs) };
}

function format({ time, offsetMinutes }: ZonedTime, pattern: string): string {
  return formatTime(time, pattern, offsetMinutes);
}

/** A function of a time as shown by a clock in its zone. */
function ofTime(
  name: string,
  about: string,
  run: (moment: Moment, zoned: ZonedTime) => StreamValue
): StreamFunctionEntry {
  return {
    name,
    params: ['any'],
    about,
    ifNull: null,
    make: (tools) => (value: StreamValue) => {
      const zoned = timeOf(value, tools);
      return run(momentOf(zoned.time, zoned.offsetMinutes), zoned);
    }
  };
}

const day = (name: string) => ofTime(name, 'Day of the month, from 1.', ({ clock }) => BigInt(clock.getUTCDate()));

function now(name: string, pattern: string, about: string): StreamFunctionEntry {
  return {
    name,
    params: ['bigint?'],
    about,
    check: ([decimals]) =>
      typeof decimals === 'bigint' && (decimals < 0n || decimals > 6n)
        ? `Expect 0 to 6 decimals but found ${decimals}.`
        : undefined,
    ifNull: null,
    make: (tools) => (decimals?: StreamValue) => {
      const places = decimals === undefined ? 0 : indexOf(decimals);
      if (places < 0 || places > 6) throw new StreamFailure(`${name} supports 0 to 6 decimals, not ${places}`);
      return format(inZone(new Date(tools.now()), undefined, tools), pattern + 'S'.repeat(places));
    }
  };
}

function today(name: string): StreamFunctionEntry {
  return {
    name,
    params: [],
    about: 'The current date as text.',
    make: (tools) => () => format(inZone(new Date(tools.now()), undefined, tools), DATE)
  };
}

const NOW = 'The time as text: YYYY-MM-DD HH:mm:ss, with up to 6 decimals.';

/** Nanoseconds by unit. */
const UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  '\u00b5s': 1e3,
  '\u03bcs': 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9
};
const DURATION = /^[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$/;
/** Maximum duration: 64 bits of nanoseconds. */
const MAX_NS = 2 ** 63;

/** Milliseconds of a duration such as `-1h30m`. @throws StreamFailure */
function durationMs(value: StreamValue): number {
  const text = textOf(value);
  const wrong = () =>
    new StreamFailure(`invalid duration ${JSON.stringify(text.slice(0, 50))}; use one such as -1h30m`);
  if (text.length > 200 || !DURATION.test(text)) throw wrong();
  let nanoseconds = 0;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/g))
    nanoseconds += Number(number) * UNITS[unit];
  if (nanoseconds >= MAX_NS) throw wrong();
  return (text.startsWith('-') ? -nanoseconds : nanoseconds) / 1e6;
}

function dateDifference(tools: StreamFunctionTools) {
  return (from: StreamValue, to: StreamValue) => {
    const ms = timeOf(to, tools).time.getTime() - timeOf(from, tools).time.getTime();
    return integer(BigInt(ms) * 1_000_000n);
  };
}

function convertZone(tools: StreamFunctionTools) {
  return (value: StreamValue, zone: StreamValue) => {
    const { time } = timeOf(value, tools);
    const offsetMinutes = zoneOffsetMinutes(textOf(zone), time.getTime());
    return format({ time, offsetMinutes }, "yyyy-MM-dd'T'HH:mm:ss.SSSXXX");
  };
}

function formatByPattern(tools: StreamFunctionTools) {
  let text: string | undefined;
  let pattern: TimePattern | undefined;
  return (value: StreamValue, patternText: StreamValue) => {
    const { time, offsetMinutes } = timeOf(value, tools);
    const given = textOf(patternText);
    if (pattern === undefined || given !== text) {
      pattern = compileTimePattern(given);
      text = given;
    }
    return pattern.format(time, offsetMinutes);
  };
}

function lastDay({ clock }: Moment): string {
  const last = new Date(clock);
  last.setUTCMonth(clock.getUTCMonth() + 1, 0);
  return formatTime(last, DATE, 0);
}

function fromDays(value: StreamValue): StreamValue {
  const days = indexOf(value);
  return days === 0 ? null : formatTime(new Date((days - 1) * DAY_MS), DATE, 0);
}

export const DATE_FUNCTIONS = streamFamily('dates', [
  now('now', DATE_TIME, NOW),
  now('current_timestamp', DATE_TIME, NOW),
  now('local_time', DATE_TIME, NOW),
  now('local_timestamp', DATE_TIME, NOW),
  now('cur_time', TIME, 'The time of day as text: HH:mm:ss, with up to 6 decimals.'),
  now('current_time', TIME, 'The same as cur_time.'),
  today('cur_date'),
  today('current_date'),
  {
    name: 'format_time',
    params: ['any', 'string'],
    about: 'A time by a pattern such as YYYY-MM-dd HH:mm:ssSSS.',
    ifNull: null,
    make: formatByPattern
  },
  {
    name: 'date_calc',
    params: ['any', 'string'],
    about: 'A time moved by a duration such as -1h30m, as text.',
    ifNull: null,
    make: (tools) => (value: StreamValue, duration: StreamValue) => {
      const moved = new Date(timeOf(value, tools).time.getTime() + durationMs(duration));
      return format(inZone(moved, undefined, tools), DATE_TIME);
    }
  },
  {
    name: 'date_diff',
    params: ['any', 'any'],
    about: 'Nanoseconds from the first time to the second.',
    ifNull: null,
    make: dateDifference
  },
  ofTime('day_name', 'Name of the day of the week.', ({ clock }) => DAYS[clock.getUTCDay()]),
  day('day_of_month'),
  day('day'),
  ofTime('day_of_week', 'Day of the week, from 1 for Sunday.', ({ clock }) => BigInt(clock.getUTCDay() + 1)),
  ofTime('day_of_year', 'Day of the year, from 1.', ({ clock }) =>
    BigInt(Math.floor((clock.getTime() - new Date(clock).setUTCMonth(0, 1)) / DAY_MS) + 1)
  ),
  {
    name: 'from_days',
    params: ['bigint'],
    about: 'The date of a day as text, from 1 for 1970-01-01; null for 0.',
    ...PURE,
    run: fromDays
  },
  {
    name: 'from_unix_time',
    params: ['bigint'],
    about: 'The time of seconds since 1970 as text; null for 0.',
    ifNull: null,
    make: (tools) => (value: StreamValue) => {
      const seconds = indexOf(value);
      return seconds === 0 ? null : format(inZone(new Date(seconds * 1000), undefined, tools), DATE_TIME);
    }
  },
  ofTime('hour', 'Hour of the day.', ({ clock }) => BigInt(clock.getUTCHours())),
  ofTime('last_day', 'The last day of the month as text.', lastDay),
  ofTime('microsecond', 'Microseconds of the second.', ({ clock }) => BigInt(clock.getUTCMilliseconds() * 1000)),
  ofTime('minute', 'Minute of the hour.', ({ clock }) => BigInt(clock.getUTCMinutes())),
  ofTime('month', 'Month of the year, from 1.', ({ clock }) => BigInt(clock.getUTCMonth() + 1)),
  ofTime('month_name', 'Name of the month.', ({ clock }) => MONTHS[clock.getUTCMonth()]),
  ofTime('second', 'Second of the minute.', ({ clock }) => BigInt(clock.getUTCSeconds())),
  ofTime('to_seconds', 'Seconds since 1970.', (_, { time }) => BigInt(Math.floor(time.getTime() / 1000))),
  {
    name: 'convert_tz',
    params: ['any', 'string'],
    about: 'A time in another zone, such as Asia/Shanghai, as text with its offset.',
    ifNull: null,
    make: convertZone
  }
]);
