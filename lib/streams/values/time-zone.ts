import { LRUCache } from 'lru-cache';
import { StreamFailure } from './values.ts';

/** Some versions of Node do not support these zones. */
const FIXED = /^([+-])([01]\d|2[0-3]):?([0-5]\d)$/;
/** Offsets of zones change only at multiples of a quarter of an hour. */
const QUARTER_MS = 900_000;

/** A zone and its last computed offset; computing one takes microseconds. */
interface Zone {
  readonly formatter: Intl.DateTimeFormat;
  quarter: number;
  offsetMinutes: number;
}

/** Cached zones, because they are expensive to create. */
const ZONES = new LRUCache<string, Zone>({ max: 50 });

/**
 * Offset of a time zone from UTC at a given time.
 * @param zone an IANA name, such as `Asia/Shanghai`, or an offset, such as `+08:00`
 * @param timeMs milliseconds since 1970
 * @returns minutes east of UTC
 * @throws StreamFailure if the zone is unknown, or if the time is beyond the year 275760
 */
export function zoneOffsetMinutes(zone: string, timeMs: number): number {
  const fixed = FIXED.exec(zone);
  if (fixed !== null) return (fixed[1] === '-' ? -1 : 1) * (Number(fixed[2]) * 60 + Number(fixed[3]));
  const known = zoneOf(zone);
  const quarter = Math.floor(timeMs / QUARTER_MS);
  if (quarter !== known.quarter) {
    known.offsetMinutes = offsetOf(known.formatter, quarter * QUARTER_MS);
    known.quarter = quarter;
  }
  return known.offsetMinutes;
}

function zoneOf(name: string): Zone {
  const known = ZONES.get(name);
  if (known !== undefined) return known;
  const made = { formatter: makeFormatter(name), quarter: Number.NaN, offsetMinutes: 0 };
  ZONES.set(name, made);
  return made;
}

function offsetOf(formatter: Intl.DateTimeFormat, timeMs: number): number {
  if (Number.isNaN(new Date(timeMs).getTime())) throw new StreamFailure(`${timeMs} is not a Unix time in milliseconds`);
  const parts = formatter.formatToParts(timeMs);
  const read = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  const isBefore = parts.some((part) => part.type === 'era' && part.value === 'BC');
  const local = new Date(0);
  local.setUTCFullYear(isBefore ? 1 - read('year') : read('year'), read('month') - 1, read('day'));
  local.setUTCHours(read('hour'), read('minute'), read('second'));
  return Math.round((local.getTime() - timeMs) / 60_000);
}

function makeFormatter(zone: string): Intl.DateTimeFormat {
  const options = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const;
  try {
    return new Intl.DateTimeFormat('en-US', {
      ...options,
      second: 'numeric',
      era: 'short',
      hourCycle: 'h23',
      calendar: 'gregory',
      timeZone: zone
    });
  } catch (cause) {
    throw new StreamFailure(`unknown time zone ${zone.slice(0, 50)}; use an IANA name such as Asia/Shanghai`, cause);
  }
}
