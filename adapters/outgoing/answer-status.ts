import { SendError } from '../../lib/index.ts';

/** Statuses below 500 after which a request is sent again: request timeout, too early, too many requests. */
const REPEATED: readonly number[] = [408, 425, 429];
/** Maximum time for which a server can ask for a pause, in milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** The head of an answer. */
interface AnswerHead {
  readonly status: number;
  /** Keyed by lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/**
 * Check whether a server has refused a request. All senders over HTTP use this rule. Rule actions and
 * sinks send again; webhooks only report the refusal.
 *
 * A status from 200 to 299 is success. After 408, 425, 429 and from 500 on, the request is sent again, after the time
 * of the header `Retry-After` if there is one (seconds or a date; at most an hour). Any other status, such as a
 * redirect, which is not followed, is a final failure.
 * @param describe names the server and its answer, for people
 * @param nowMs wall-clock milliseconds
 * @returns undefined: the server has accepted the request
 */
export function refusalOf(
  { status, headers }: AnswerHead,
  describe: () => string,
  nowMs: number
): SendError | undefined {
  if (status >= 200 && status < 300) return undefined;
  const isRepeated = status >= 500 || REPEATED.includes(status);
  const isRedirect = status >= 300 && status < 400;
  const text = isRedirect ? `${describe().replace(/\.$/, '')}; redirects are not followed` : describe();
  return new SendError(text, {
    isFinal: !isRepeated,
    retryAfterMs: isRepeated ? retryAfterMs(headers['retry-after'], nowMs) : undefined
  });
}

/** @param value the value of the header: seconds, or a date */
function retryAfterMs(value: string | readonly string[] | undefined, nowMs: number): number | undefined {
  if (typeof value !== 'string') return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
