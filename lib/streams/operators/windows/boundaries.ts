import type { TimeUnit } from '../../../sql/tree.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The parent unit in which the numbers of a unit are multiples: seconds count from the full minute. */
const PARENT_MS: Readonly<Record<TimeUnit, number>> = { ms: 1000, ss: 60_000, mi: HOUR_MS, hh: DAY_MS, dd: DAY_MS };

/** The times at which the windows of a rule end, in milliseconds since 1970. */
export interface Boundaries {
  /** The first boundary of a rule that starts at a time. */
  first(time: number): number;
  next(end: number): number;
  /** The first boundary after `end` that is later than a time. */
  skip(end: number, time: number): number;
}

interface BoundaryOptions {
  readonly intervalMs: number;
  readonly unit: TimeUnit;
  /** `start`: the first window ends one interval after the start of the rule. */
  readonly align: 'clock' | 'start';
  readonly isEventTime: boolean;
  /** Offset from UTC of the service's zone at a time, in minutes. */
  readonly offsetMinutes: (timeMs: number) => number;
}

/**
 * Make the boundaries of a window. In event time they are multiples of the interval since 1970. In processing time, the
 * first one is the next multiple within the parent unit, and the next midnight for days [stream rules 5.2]; those of
 * hours and days follow the zone of the service when its offset changes.
 */
export function boundariesOf(options: BoundaryOptions): Boundaries {
  const { intervalMs, unit, align, isEventTime, offsetMinutes } = options;
  if (isEventTime) {
    const after = (time: number) => (Math.floor(time / intervalMs) + 1) * intervalMs;
    return { first: after, next: (end) => end + intervalMs, skip: (_end, time) => after(time) };
  }
  const first = (time: number) => {
    if (align === 'start') return time + intervalMs;
    const parentMs = PARENT_MS[unit];
    const stepMs = unit === 'dd' ? DAY_MS : intervalMs;
    const local = time + offsetMinutes(time) * 60_000;
    const within = local - Math.floor(local / parentMs) * parentMs;
    return utcOf(local - within + (Math.floor(within / stepMs) + 1) * stepMs, time, offsetMinutes);
  };
  const followsZone = align === 'clock' && intervalMs > HOUR_MS && (unit === 'dd' || unit === 'hh');
  if (followsZone) {
    const next = (end: number) => utcOf(end + offsetMinutes(end) * 60_000 + intervalMs, end, offsetMinutes);
    return { first, next, skip: (end, time) => followedBy(end, time, next) };
  }
  const skip = (end: number, time: number) => end + (Math.floor((time - end) / intervalMs) + 1) * intervalMs;
  return { first, next: (end) => end + intervalMs, skip };
}

/** The UTC time of a local time that follows `before`. */
function utcOf(local: number, before: number, offsetMinutes: (timeMs: number) => number): number {
  const guess = local - offsetMinutes(before) * 60_000;
  const time = local - offsetMinutes(guess) * 60_000;
  return time > before ? time : guess;
}

/** The first boundary after a time. Steps are longer than an hour, so there are few. */
function followedBy(end: number, time: number, next: (end: number) => number): number {
  let reached = end;
  while (reached <= time) reached = next(reached);
  return reached;
}
