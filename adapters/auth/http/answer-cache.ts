import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../../lib/index.ts';
import type { HttpCall } from '../outgoing/http-client.ts';

/** Answers for a limited time, by the requests that led to them. Neither requests nor passwords are kept, only a digest of them. */
export class AnswerCache<T> {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** The digest depends on it, so that it cannot be compared with digests of guessed passwords. */
  readonly #secret = randomBytes(32);
  readonly #answers: LRUCache<string, { readonly answer: T; readonly untilMs: number }>;

  constructor(clock: Clock, ttlMs: number, size: number) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#answers = new LRUCache({ max: size });
  }

  /** The key of some requests. */
  keyOf(calls: readonly (HttpCall | undefined)[]): string {
    const digest = createHmac('sha256', this.#secret);
    for (const call of calls) {
      if (call === undefined) continue;
      const { method, path, headers, body } = call;
      digest.update(JSON.stringify([method, path, headers]));
      if (body !== undefined) digest.update(body); // its length is among the headers
    }
    return digest.digest('base64');
  }

  get(key: string): { readonly answer: T } | undefined {
    const found = this.#answers.get(key);
    return found !== undefined && found.untilMs > this.#clock.monotonic() ? found : undefined;
  }

  set(key: string, answer: T): void {
    this.#answers.set(key, { answer, untilMs: this.#clock.monotonic() + this.#ttlMs });
  }

  clear(): void {
    this.#answers.clear();
  }
}
