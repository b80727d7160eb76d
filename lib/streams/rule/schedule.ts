import { BrokerError, InvalidInput } from '../../base/errors.ts';
import { parseDuration } from '../../base/fields.ts';
import type { RuleOptions } from '../types.ts';

/** The schedule of a rule. */
export interface Schedule {
  /**
   * The next start at or after a time; a run in progress counts. Milliseconds since 1970.
   * @returns `isOver` if there is none
   */
  next(nowMs: number): { readonly startsAt: number; readonly isOver: boolean };
  /** The end of a run that began at a given time; undefined if it does not end on its own. */
  endOf(startedAt: number): number | undefined;
  /** True if another run follows the end of a run. */
  readonly repeats: boolean;
}

/**
 * The schedule of a rule with the options `cron`, `duration` and `cronDatetimeRange`.
 * @returns undefined if the rule always runs
 * @throws InvalidInput STREAM_RULE_INVALID; BrokerError PACKAGE_MISSING
 */
export async function scheduleOf(options: RuleOptions): Promise<Schedule | undefined> {
  const { cron, duration, cronDatetimeRange } = options;
  if (cron === '' && duration === '' && cronDatetimeRange.length === 0) return undefined;
  const durationMs = duration === '' ? undefined : parseDuration(duration);
  if (duration !== '' && (durationMs === undefined || durationMs <= 0))
    throw new InvalidInput('STREAM_RULE_INVALID', 'duration', 'a duration such as 10m', duration);
  if (cron !== '' && durationMs === undefined)
    throw new InvalidInput('STREAM_RULE_INVALID', 'duration', 'a duration such as 10m, together with cron', duration);
  const times = cron === '' ? undefined : await cronTimes(cron);
  const ranges = cronDatetimeRange.map(({ begin, end }) => ({ from: Date.parse(begin), to: Date.parse(end) }));
  const rangeOf = (timeMs: number) => ranges.find(({ from, to }) => timeMs >= from && timeMs <= to);
  /** The scheduled begin of a run that was started at a given time. */
  const begunAt = (startedAt: number) => {
    const at = times?.(startedAt - (durationMs ?? 1));
    return at !== undefined && at <= startedAt ? at : startedAt;
  };
  return {
    repeats: times !== undefined || (ranges.length > 0 && durationMs === undefined),
    next(nowMs) {
      if (times === undefined) return ranges.length === 0 ? { startsAt: nowMs, isOver: false } : nextIn(ranges, nowMs);
      // a run in progress counts: a timer may fire late, and a broker may be started during a run
      let at: number | undefined = times(nowMs - (durationMs ?? 1));
      while (at !== undefined && ranges.length > 0 && rangeOf(at) === undefined) {
        const later = ranges.filter(({ from }) => from > (at as number)).map(({ from }) => from);
        at = later.length === 0 ? undefined : times(Math.min(...later) - 1);
      }
      return at === undefined ? { startsAt: 0, isOver: true } : { startsAt: at, isOver: false };
    },
    endOf(startedAt) {
      const ends = [
        ...(durationMs === undefined ? [] : [begunAt(startedAt) + durationMs]),
        ...ranges.filter(({ from, to }) => startedAt >= from && startedAt <= to).map(({ to }) => to)
      ];
      return ends.length === 0 ? undefined : Math.min(...ends);
    }
  };
}

function nextIn(ranges: readonly { readonly from: number; readonly to: number }[], nowMs: number) {
  const starts = ranges.filter(({ to }) => to > nowMs).map(({ from }) => Math.max(from, nowMs));
  return starts.length === 0 ? { startsAt: 0, isOver: true } : { startsAt: Math.min(...starts), isOver: false };
}

/** @returns a function that returns the first time of a cron expression after a given time */
async function cronTimes(text: string): Promise<(afterMs: number) => number | undefined> {
  const { Cron } = await loadCron();
  let cron: InstanceType<typeof Cron>;
  try {
    cron = new Cron(text, { paused: true });
  } catch (error) {
    throw new InvalidInput('STREAM_RULE_INVALID', 'cron', `a cron expression (${(error as Error).message})`, text);
  }
  return (afterMs) => cron.nextRun(new Date(afterMs))?.getTime();
}

async function loadCron(): Promise<typeof import('croner')> {
  try {
    return await import('croner');
  } catch (cause) {
    throw new BrokerError('PACKAGE_MISSING', 'rules with the option cron need the package croner: npm install croner', {
      cause
    });
  }
}
