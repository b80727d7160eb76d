import { type FieldValues, field, readOptions } from '../../../lib/adapter.ts';

/** The conditions under which requests to a failing server are paused. */
export interface BreakerOptions {
  /** Number of consecutive failures after which requests are paused. Default 5. */
  failures?: number;
  /**
   * Length of the pause, after which one request is let through, in milliseconds or such as `30s`. Default 30 seconds.
   */
  pauseMs?: number | string;
}

/** Limits of a source that sends requests to a server. */
export interface LimitOptions {
  /**
   * The answer if the server fails. `ignore` leaves the decision to the next source. For a topic, the broker does not
   * cache this answer: it asks again for the next message, and soon for a subscription. Default `deny`.
   */
  onError?: 'deny' | 'ignore';
  /** Time limit of a request, including its time in the queue. Default 5 seconds. */
  timeoutMs?: number | string;
  /**
   * Time for which answers about logins are cached; after a change, the previous password is accepted until then.
   * Default 0: no cache.
   */
  cacheMs?: number | string;
  /** Maximum number of cached answers. Default 10,000. */
  cacheSize?: number;
  /** Maximum number of concurrent requests. */
  maxConcurrent?: number;
  /**
   * Maximum number of queued requests. Further ones are answered at once, according to `onError`. At least 256, default
   * 1,000.
   */
  maxQueued?: number;
  /** When the source stops to ask a server that fails. */
  breaker?: BreakerOptions;
}

const BREAKER_OPTIONS = {
  failures: field('integer', 5, 'Consecutive failures.', { min: 1 }),
  pauseMs: field('duration', 30_000, 'Length of the pause without requests.', { unit: 'ms', min: 1 })
};

/**
 * The rows of these options.
 * @param maxConcurrent the default of the option
 */
export function limitRows(maxConcurrent: number) {
  return {
    onError: field(
      'choice',
      'deny' as 'deny' | 'ignore',
      'Answer if the server fails; `ignore`: the next source decides.',
      { choices: ['deny', 'ignore'] }
    ),
    timeoutMs: field('duration', 5_000, 'Time limit of a request, including its time in the queue.', {
      unit: 'ms',
      min: 1
    }),
    cacheMs: field(
      'duration',
      0,
      'Time for which answers about logins are cached; after a change, the previous password is accepted until then. 0: no cache.',
      { unit: 'ms' }
    ),
    cacheSize: field('integer', 10_000, 'Maximum number of cached answers.', { min: 1, max: 1_000_000 }),
    maxConcurrent: field('integer', maxConcurrent, 'Maximum number of concurrent requests.', { min: 1, max: 10_000 }),
    maxQueued: field(
      'integer',
      1_000,
      'Maximum number of queued requests. Further ones are answered at once, according to `onError`.',
      {
        min: 256,
        max: 1_000_000
      }
    ),
    breaker: field(
      'object',
      readOptions(BREAKER_OPTIONS, {}, ''),
      'After `failures` consecutive failures, no requests are sent for `pauseMs`, and then a single one.',
      {
        check: (value, field) => readOptions(BREAKER_OPTIONS, value as object, field)
      }
    )
  };
}

/** The checked options. */
export type Limits = FieldValues<ReturnType<typeof limitRows>>;
