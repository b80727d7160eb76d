import { InvalidInput } from '../base/errors.ts';
import { checkObject, type Duration, field, readOptions, type Size, type Values } from '../base/fields.ts';
import type { Attempt } from './attempt.ts';
import type { OutboxEntry, Outcome } from './entries.ts';

/** The limits of an outbox. */
export const OUTBOX_OPTIONS = {
  isPersisted: field(
    'boolean',
    false,
    'Persist the entries in the store of the broker, so that they are sent even after a crash. Without a store, the option has no effect.'
  ),
  maxEntries: field('integer', 10_000, 'Maximum number of waiting entries. Beyond it, the oldest one is dropped.', {
    min: 1
  }),
  maxBytes: field(
    'size',
    32 * 1024 * 1024,
    'Maximum bytes of waiting entries. Beyond it, the oldest entries are dropped.',
    {
      min: 1024
    }
  ),
  maxAge: field('duration', 3_600_000, 'An entry of this age that fails is dropped instead of being sent again.', {
    unit: 'ms'
  }),
  concurrency: field('integer', 8, 'Maximum number of concurrent deliveries, each of different keys.', {
    min: 1,
    max: 1000
  }),
  batch: field('integer', 1, 'Maximum number of entries in one delivery.', { min: 1, max: 10_000 }),
  timeout: field('duration', 5_000, 'A delivery that takes longer is aborted and counts as failed.', {
    unit: 'ms',
    min: 1
  }),
  backOff: field('duration', 250, 'Delay after the first failure. It doubles with each further failure.', {
    unit: 'ms',
    min: 1
  }),
  maxBackOff: field('duration', 60_000, 'Maximum delay after a failure.', { unit: 'ms', min: 1 })
} as const;

/** The limits of an outbox, in milliseconds and bytes. */
export type OutboxLimits = Values<typeof OUTBOX_OPTIONS>;

/** Options of `broker.outboxes.open`. Durations are numbers of milliseconds or strings such as `5s`, sizes are bytes or strings such as `16MB`. */
export interface OutboxOptions {
  /** Identifies the target, such as `webhook:main`: 1 to 128 characters. Entries in the store belong to this name. */
  readonly name: string;
  /** The name of the target in alarms and errors. Default: `name`. */
  readonly label?: string | undefined;
  /**
   * Deliver entries to the target. They have the same key, or several keys if `batch` allows more than one entry. The
   * attempt is aborted if it takes longer than `timeout`, or if the outbox is closed or the broker stops: `({ signal
   * })`.
   *
   * If this throws or rejects, the entries are sent again later; `SendError` can be more specific.
   */
  readonly send: (entries: readonly OutboxEntry[], attempt: Attempt) => unknown;
  /** Called when an entry has left the outbox. Its errors become `error` events. */
  readonly settled?: ((entry: OutboxEntry, outcome: Outcome, error: Error | undefined) => void) | undefined;
  /** Default false. */
  readonly isPersisted?: boolean | undefined;
  /** Default 10,000. */
  readonly maxEntries?: number | undefined;
  /** Default 32 MB. */
  readonly maxBytes?: Size | undefined;
  /** Default one hour. */
  readonly maxAge?: Duration | undefined;
  /** Default 8. */
  readonly concurrency?: number | undefined;
  /** Default 1. */
  readonly batch?: number | undefined;
  /** Default 5 s. */
  readonly timeout?: Duration | undefined;
  /** Default 250 ms. Delays vary by up to a quarter, so that several processes do not send at the same time. */
  readonly backOff?: Duration | undefined;
  /** Default one minute. */
  readonly maxBackOff?: Duration | undefined;
}

/** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, HANDLER_INVALID */
export function readOutboxOptions(options: OutboxOptions): OutboxLimits {
  checkObject(options, 'outbox');
  const { name, label, send, settled, ...limits } = options;
  if (typeof name !== 'string' || name === '' || name.length > 128)
    throw new InvalidInput('OPTION_INVALID', 'outbox.name', '1 to 128 characters', name);
  if (label !== undefined && (typeof label !== 'string' || label === ''))
    throw new InvalidInput('OPTION_INVALID', 'outbox.label', 'a non-empty string', label);
  if (typeof send !== 'function') throw new InvalidInput('HANDLER_INVALID', 'outbox.send', 'a function', send);
  if (settled !== undefined && typeof settled !== 'function')
    throw new InvalidInput('HANDLER_INVALID', 'outbox.settled', 'a function', settled);
  return readOptions(OUTBOX_OPTIONS, limits, 'outbox');
}
