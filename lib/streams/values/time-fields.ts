// The letters of time patterns of the documented product, with its peculiarities: only some lengths of a run exist, a
// fraction may follow seconds without being in the pattern, zone names other than UTC are read as UTC. Each field
// formats and reads; a reader returns the position after it, or undefined.

import { StreamFailure } from './values.ts';

export const MONTHS: readonly string[] = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December'
];

/** Beginning with Sunday. */
export const DAYS: readonly string[] = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** A time as shown by a clock in a time zone. */
export interface Moment {
  /** The time shown, as if it were in UTC. */
  readonly clock: Date;
  /** Offset of the zone from UTC. */
  readonly offsetMinutes: number;
}

/** The fields of a parsed time. */
export interface TimeFields {
  year?: number | undefined;
  /** From 1. */
  month?: number | undefined;
  day?: number | undefined;
  hour?: number | undefined;
  /** From 0 to 12. */
  hour12?: number | undefined;
  isAfternoon?: boolean | undefined;
  minute?: number | undefined;
  second?: number | undefined;
  ms?: number | undefined;
  offsetMinutes?: number | undefined;
}

/** A field of a time pattern. */
export interface TimeField {
  format(moment: Moment): string;
  /** @returns the position after the field; undefined if the text does not match */
  read(text: string, at: number, values: TimeFields): number | undefined;
}

/**
 * The field denoted by a run of a letter.
 * @returns undefined for literal characters
 * @throws StreamFailure if the run is not supported
 */
export function field(letter: string, length: number, pattern: string): TimeField | undefined {
  const name = letter === 'Y' ? 'y' : letter;
  if (name === 'S') return fraction(length);
  const runs = FIELDS[name];
  if (runs === undefined) return undefined;
  const found = runs[length];
  if (found !== undefined) return found;
  const advice = name === 'y' ? 'for Y/y' : name === 'H' ? 'of H, only HH is supported' : `for ${letter}`;
  throw new StreamFailure(`invalid time format ${pattern} ${advice}`);
}

const FIELDS: Readonly<Record<string, Readonly<Record<number, TimeField>>>> = {
  y: { 4: digits(4, 4, 'year', (clock) => clock.getUTCFullYear()), 2: shortYear() },
  M: {
    1: digits(1, 2, 'month', (clock) => clock.getUTCMonth() + 1),
    2: digits(2, 2, 'month', (clock) => clock.getUTCMonth() + 1),
    3: names(MONTHS, 3, 'month', (clock) => clock.getUTCMonth()),
    4: names(MONTHS, undefined, 'month', (clock) => clock.getUTCMonth())
  },
  d: {
    1: digits(1, 2, 'day', (clock) => clock.getUTCDate()),
    2: digits(2, 2, 'day', (clock) => clock.getUTCDate())
  },
  E: {
    3: names(DAYS, 3, undefined, (clock) => clock.getUTCDay()),
    4: names(DAYS, undefined, undefined, (clock) => clock.getUTCDay())
  },
  H: { 2: digits(2, 2, 'hour', (clock) => clock.getUTCHours()) },
  h: {
    1: digits(1, 2, 'hour12', (clock) => clock.getUTCHours() % 12 || 12),
    2: digits(2, 2, 'hour12', (clock) => clock.getUTCHours() % 12 || 12)
  },
  a: { 1: half() },
  m: {
    1: digits(1, 2, 'minute', (clock) => clock.getUTCMinutes()),
    2: digits(2, 2, 'minute', (clock) => clock.getUTCMinutes())
  },
  s: { 1: seconds(1), 2: seconds(2) },
  z: { 1: zoneName() },
  Z: { 1: zone('', true) },
  X: { 1: zone('', false), 2: zone('', true), 3: zone(':', true) },
  G: { 1: { format: () => 'AD', read: (text, at) => (text.startsWith('AD', at) ? at + 2 : undefined) } }
};

/** Parse the number at a position. @returns undefined if there are fewer digits than `least` */
function numberAt(text: string, at: number, least: number, most: number): { value: number; end: number } | undefined {
  let end = at;
  while (end < at + most && text[end] >= '0' && text[end] <= '9') end++;
  return end - at < least ? undefined : { value: Number(text.slice(at, end)), end };
}

function digits(
  least: number,
  most: number,
  name: 'year' | 'month' | 'day' | 'hour' | 'hour12' | 'minute' | 'second',
  get: (clock: Date) => number
): TimeField {
  return {
    format({ clock }) {
      const value = get(clock);
      return value < 0 ? `-${String(-value).padStart(least, '0')}` : String(value).padStart(least, '0');
    },
    read(text, at, values) {
      const number = numberAt(text, at, least, most);
      if (number === undefined) return undefined;
      values[name] = number.value;
      return number.end;
    }
  };
}

function shortYear(): TimeField {
  return {
    format: ({ clock }) => String(Math.abs(clock.getUTCFullYear()) % 100).padStart(2, '0'),
    read(text, at, values) {
      const number = numberAt(text, at, 2, 2);
      if (number === undefined) return undefined;
      // 69 to 99 belong to the 20th century, as in the original
      values.year = number.value + (number.value >= 69 ? 1900 : 2000);
      return number.end;
    }
  };
}

/** A fraction may follow the seconds even if the pattern has none, as in the original. */
function seconds(least: number): TimeField {
  const whole = digits(least, 2, 'second', (clock) => clock.getUTCSeconds());
  return {
    format: whole.format,
    read(text, at, values) {
      const end = whole.read(text, at, values);
      return end === undefined || text[end] !== '.' ? end : readFraction(text, end, 1, 9, values);
    }
  };
}

function fraction(length: number): TimeField {
  return {
    format: ({ clock }) =>
      `.${String(clock.getUTCMilliseconds()).padStart(3, '0').padEnd(length, '0').slice(0, length)}`,
    // already parsed with the seconds
    read: (text, at, values) =>
      values.ms !== undefined ? at : text[at] === '.' ? readFraction(text, at, length, length, values) : undefined
  };
}

function readFraction(text: string, at: number, least: number, most: number, values: TimeFields): number | undefined {
  const number = numberAt(text, at + 1, least, most);
  if (number === undefined) return undefined;
  values.ms = Number(text.slice(at + 1, Math.min(number.end, at + 4)).padEnd(3, '0'));
  return number.end;
}

function names(
  all: readonly string[],
  length: number | undefined,
  name: 'month' | undefined,
  get: (clock: Date) => number
): TimeField {
  const shown = all.map((each) => each.slice(0, length));
  const known = shown.map((each) => each.toLowerCase());
  return {
    format: ({ clock }) => shown[get(clock)],
    read(text, at, values) {
      const index = known.findIndex((each) => text.slice(at, at + each.length).toLowerCase() === each);
      if (index === -1) return undefined;
      if (name !== undefined) values[name] = index + 1;
      return at + known[index].length;
    }
  };
}

function half(): TimeField {
  return {
    format: ({ clock }) => (clock.getUTCHours() < 12 ? 'AM' : 'PM'),
    read(text, at, values) {
      const written = text.slice(at, at + 2).toUpperCase();
      if (written !== 'AM' && written !== 'PM') return undefined;
      values.isAfternoon = written === 'PM';
      return at + 2;
    }
  };
}

/** The offset from UTC. `Z` is accepted, too: not specified, and unambiguous. */
function zone(separator: string, hasMinutes: boolean): TimeField {
  return {
    format: ({ offsetMinutes }) => offsetText(offsetMinutes, separator, hasMinutes),
    read(text, at, values) {
      if (text[at] === 'Z') {
        values.offsetMinutes = 0;
        return at + 1;
      }
      const hours = numberAt(text, at + 1, 2, 2);
      if ((text[at] !== '+' && text[at] !== '-') || hours === undefined) return undefined;
      let [size, end] = [hours.value * 60, hours.end];
      if (hasMinutes) {
        if (!text.startsWith(separator, end)) return undefined;
        const minutes = numberAt(text, end + separator.length, 2, 2);
        if (minutes === undefined) return undefined;
        [size, end] = [size + minutes.value, minutes.end];
      }
      values.offsetMinutes = text[at] === '-' ? -size : size;
      return end;
    }
  };
}

/** An offset such as `-07`, `-0700` or `-07:00`. */
function offsetText(offsetMinutes: number, separator: string, hasMinutes: boolean): string {
  const size = Math.abs(Math.trunc(offsetMinutes));
  const hours = String(Math.floor(size / 60)).padStart(2, '0');
  const minutes = hasMinutes ? separator + String(size % 60).padStart(2, '0') : '';
  return `${offsetMinutes < 0 ? '-' : '+'}${hours}${minutes}`;
}

/** The name of a zone: UTC, or the offset for zones without a name. Other names are read as UTC, as in the original. */
function zoneName(): TimeField {
  return {
    format: ({ offsetMinutes }) =>
      offsetMinutes === 0 ? 'UTC' : offsetText(offsetMinutes, '', offsetMinutes % 60 !== 0),
    read(text, at, values) {
      let end = at;
      while (end < at + 5 && text[end] >= 'A' && text[end] <= 'Z') end++;
      if (end - at < 3) return zone('', false).read(text, at, values);
      values.offsetMinutes = 0;
      return end;
    }
  };
}
