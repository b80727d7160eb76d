// Long strings are not keys of plain Maps. V8 hashes strings above 16,383 characters by their length, so a Map of
// many long strings is searched linearly: 8 ms per lookup among 1,000 topics of 64 KiB. `TextMap` uses a digest as
// the key.

import { hash } from '../builtins.ts';

/** Maximum length of a string whose characters V8 hashes; the hash of a longer string depends only on its length. */
const MAX_HASHED = 16_383;

interface Long<V> {
  readonly text: string;
  value: V;
}

/**
 * A Map with string keys that is safe for keys chosen by clients.
 *
 * In a plain Map all keys of equal length above 16,383 characters share a bucket, and each lookup compares with all of them: 8 ms with
 * 1,000 topics of 64 KiB. This map stores long keys, which are rare, by their SHA-256 digest. Keys must be well-formed Unicode.
 */
export class TextMap<V> {
  readonly #short = new Map<string, V>();
  #long: Map<string, Long<V>> | undefined = undefined;

  get(text: string): V | undefined {
    if (text.length <= MAX_HASHED) return this.#short.get(text);
    return this.#long?.get(digest(text))?.value;
  }

  has(text: string): boolean {
    return text.length <= MAX_HASHED ? this.#short.has(text) : (this.#long?.has(digest(text)) ?? false);
  }

  set(text: string, value: V): void {
    if (text.length <= MAX_HASHED) {
      this.#short.set(text, value);
      return;
    }
    this.#long ??= new Map();
    const key = digest(text);
    const known = this.#long.get(key);
    if (known === undefined) this.#long.set(key, { text, value });
    else known.value = value;
  }

  /** Remove a key. @returns whether it existed */
  delete(text: string): boolean {
    if (text.length <= MAX_HASHED) return this.#short.delete(text);
    return this.#long?.delete(digest(text)) ?? false;
  }

  get size(): number {
    return this.#short.size + (this.#long === undefined ? 0 : this.#long.size);
  }

  /** The keys. As with a Map, they may be changed during iteration. */
  keys(): IterableIterator<string> {
    return this.#long === undefined ? this.#short.keys() : this.#allKeys(); // a generator takes several times as long
  }

  *#allKeys(): Generator<string, void, undefined> {
    yield* this.#short.keys();
    if (this.#long !== undefined) for (const { text } of this.#long.values()) yield text;
  }

  /** The values. As with a Map, they may be changed during iteration. */
  *values(): Generator<V, void, undefined> {
    yield* this.#short.values();
    if (this.#long !== undefined) for (const { value } of this.#long.values()) yield value;
  }

  /** Call `visit` with each value and key. Faster than iterating. */
  forEach(visit: (value: V, text: string) => void): void {
    this.#short.forEach(visit);
    this.#long?.forEach(({ text, value }) => {
      visit(value, text);
    });
  }
}

function digest(text: string): string {
  return hash('sha256', text, 'base64');
}
