import { LRUCache } from 'lru-cache';
import { StreamFailure } from './values.ts';

/** Formatters of time zones, which are expensive to make. */
const FORMATTERS = new LRUCache<string, Intl.DateTimeFormat>({ max: 50 });

/**
 * Offset of a time zone from UTC at a time.
 * @param zone an IANA name, such as `Asia/Shanghai`, or an offset, such as `+08:00`
 * @param timeMs milliseconds since 1970
 * @returns minutes east of UTC
 * @throws StreamFailure if there is no such zone
 */
export function zoneOffsetMinutes(zone: string, timeMs: number): number {
  const second = Math.floor(timeMs / 1000) * 1000;
  if (Number.isNaN(new Date(second).getTime()))
    throw new StreamFailure(`${timeMs} is no time in milliseconds since 1970`);
  const parts = formatterOf(zone).formatToParts(second);
  const read = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  const year = read('year');
  const isBefore = parts.some((part) => part.type === 'era' && part.value === 'BC');
  const local = new Date(0);
  local.setUTCFullYear(isBefore ? 1 - year : year, read('month') - 1, read('day'));
  local.setUTCHours(read('hour'), read('minute'), read('second'));
  return (local.getTime() - second) / 60_000;
}

function formatterOf(zone: string): Intl.DateTimeFormat {
  const known = FORMATTERS.get(zone);
  if (known !== undefined) return known;
  const made = makeFormatter(zone);
  FORMATTERS.set(zone, made);
  return made;
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
    throw new StreamFailure(`unknown time zone ${zone.slice(0, 50)}; write one such as Asia/Shanghai`, cause);
  }
}
