import { parseDuration } from '../base/fields.ts';

/** Conditions under which a client id that connects and disconnects repeatedly is banned. */
export interface FlappingPolicy {
  /** Number of lost connections. */
  readonly count: number;
  /** Time within which they are counted, in milliseconds. */
  readonly windowMs: number;
  /** Duration of the ban, in milliseconds. */
  readonly banMs: number;
}

/**
 * Read a policy from its documented form: count, window and duration of the ban, such as `30,1m,5m`.
 * @returns undefined if it is not valid
 */
export function flappingPolicyOf(text: string): FlappingPolicy | undefined {
  const [count, window, ban, ...rest] = text.split(',').map((part) => part.trim());
  const [windowMs, banMs] = [parseDuration(window ?? ''), parseDuration(ban ?? '')];
  const isGood = /^[1-9]\d{0,8}$/.test(count) && rest.length === 0 && windowMs !== undefined && banMs !== undefined;
  return isGood ? { count: Number(count), windowMs, banMs } : undefined;
}

/** The lost connections of a client id. */
interface Losses {
  /** Time of the first lost connection in the current window, in milliseconds of the monotonic clock. */
  since: number;
  count: number;
}

/** Maximum number of client ids that are observed at a time; the one with the oldest window is discarded. */
const MAX_OBSERVED = 100_000;

/** Counts lost connections by client id, and finds those that lose too many in a window of time. A clean DISCONNECT does not count. */
export class FlappingDetector {
  readonly #policy: FlappingPolicy;
  readonly #losses = new Map<string, Losses>();

  constructor(policy: FlappingPolicy) {
    this.#policy = policy;
  }

  /** Number of client ids that are observed. */
  get size(): number {
    return this.#losses.size;
  }

  /**
   * Note that a client has lost its connection.
   * @param nowMs milliseconds of the monotonic clock
   * @returns true if it has reached the count of the policy; its window then starts again
   */
  lost(clientId: string, nowMs: number): boolean {
    const { count, windowMs } = this.#policy;
    const known = this.#losses.get(clientId);
    if (known === undefined || nowMs - known.since >= windowMs) {
      this.#losses.delete(clientId); // so that the map is in the order of the windows
      if (count <= 1) return true;
      this.#losses.set(clientId, { since: nowMs, count: 1 });
      this.#forgetOld(nowMs);
      return false;
    }
    known.count++;
    if (known.count < count) return false;
    this.#losses.delete(clientId);
    return true;
  }

  #forgetOld(nowMs: number): void {
    for (const [clientId, { since }] of this.#losses) {
      if (nowMs - since < this.#policy.windowMs && this.#losses.size <= MAX_OBSERVED) return;
      this.#losses.delete(clientId);
    }
  }
}
