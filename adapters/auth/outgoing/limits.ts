import { type OptionValues, readOptions, optionRow as row } from '../../../lib/adapter.ts';

/** When to stop asking a server that fails. */
export interface BreakerOptions {
  /** Failures in a row after which it is not asked for some time. Default 5. */
  failures?: number;
  /** That time, after which one request is let through, in milliseconds or such as `30s`. Default 30 seconds. */
  pauseMs?: number | string;
}

/** Limits of a source that asks a server. */
export interface LimitOptions {
  /**
   * The answer if the server fails. `ignore` leaves the decision to the next source. About a topic, the broker does not keep this answer: it
   * asks about the next message again, and about a subscription soon. Default `deny`.
   */
  onError?: 'deny' | 'ignore';
  /** Time for a request, with its time in the queue. Default 5 seconds. */
  timeoutMs?: number | string;
  /** Answers about logins are kept for this time; after a change, the previous password is accepted until then. Default 0: not at all. */
  cacheMs?: number | string;
  /** Answers that are kept. Default 10,000. */
  cacheSize?: number;
  /** Requests at the same time. */
  maxConcurrent?: number;
  /** Most requests that wait. Further ones are answered at once, as `onError` says. At least 256, default 1,000. */
  maxQueued?: number;
  breaker?: BreakerOptions;
}

const BREAKER_OPTIONS = {
  failures: row('integer', 5, 'Failures in a row.', { min: 1 }),
  pauseMs: row('duration', 30_000, 'Time for which the server is not asked.', { unit: 'ms', min: 1 })
};
type Breaker = OptionValues<typeof BREAKER_OPTIONS>;

/** Rows of these options. @param maxConcurrent default of the option */
export function limitRows(maxConcurrent: number) {
  return {
    onError: row(
      'choice',
      'deny' as 'deny' | 'ignore',
      'Answer if the server fails; `ignore`: the next source decides.',
      { choices: ['deny', 'ignore'] }
    ),
    timeoutMs: row('duration', 5_000, 'Time for a request, with its time in the queue.', { unit: 'ms', min: 1 }),
    cacheMs: row(
      'duration',
      0,
      'Time for which answers about logins are kept; after a change, the previous password is accepted until then. 0: not at all.',
      { unit: 'ms' }
    ),
    cacheSize: row('integer', 10_000, 'Answers that are kept.', { min: 1, max: 1_000_000 }),
    maxConcurrent: row('integer', maxConcurrent, 'Requests at the same time.', { min: 1, max: 10_000 }),
    maxQueued: row('integer', 1_000, 'Most requests that wait. Further ones are answered at once, as `onError` says.', {
      min: 256,
      max: 1_000_000
    }),
    breaker: row(
      'object',
      readOptions(BREAKER_OPTIONS, {}, '') as unknown as Breaker,
      'After `failures` in a row, the server is not asked for `pauseMs`, and then with one request.',
      {
        check: (value, field) => readOptions(BREAKER_OPTIONS, value as object, field)
      }
    )
  };
}

/** These options after checks. */
export type Limits = OptionValues<ReturnType<typeof limitRows>>;
