import { hash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../../lib/index.ts';

/**
 * Answers for a limited time, by the credentials that led to them. The credentials are not stored, only a keyed digest
 * of them.
 */
export class AnswerCache<T extends object> {
  readonly #clock: Clock;
  /** The key of the digests, so that they cannot be compared with digests of guessed passwords. */
  #secret = randomSecret();
  readonly #answers: LRUCache<string, { readonly answer: T; readonly untilMs: number }>;

  constructor(clock: Clock, size: number) {
    this.#clock = clock;
    this.#answers = new LRUCache({ max: size });
  }

  /** The cache key for some credentials. Two passes, as in HMAC; `createHmac` takes four times as long. */
  keyOf(credentials: string): string {
    const secret = this.#secret;
    return hash('sha256', secret + hash('sha256', secret + credentials, 'base64'), 'base64');
  }

  get(key: string): T | undefined {
    const found = this.#answers.get(key);
    return found !== undefined && found.untilMs > this.#clock.monotonic() ? found.answer : undefined;
  }

  set(key: string, answer: T, ttlMs: number): void {
    this.#answers.set(key, { answer, untilMs: this.#clock.monotonic() + ttlMs });
  }

  /** Discard the answers. Pending ones are discarded later, because their keys are no longer used. */
  clear(): void {
    this.#secret = randomSecret();
    this.#answers.clear();
  }
}

function randomSecret(): string {
  return randomBytes(64).toString('base64');
}
