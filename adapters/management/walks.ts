import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock, PageParts } from '../../lib/index.ts';
import type { Caller } from '../rest/index.ts';
import type { PageRequest } from './listing.ts';

/** Time in which the next page of a list is to be requested, in milliseconds. */
const WALK_MS = 60_000;
const MAX_WALKS = 1_000;

/** The beginning of a page. */
type Place = { readonly cursor: string } | { readonly skip: number };

/** A page that may be requested next. */
interface Next {
  readonly cursor: string;
  readonly untilMs: number;
}

/**
 * The places where callers have ended a page of a list. The next page begins there, although the list may have changed: with numbers of pages
 * alone, rows that come or go would move others to a page that is read already, or not read any more.
 */
export class Walks {
  readonly #clock: Clock;
  /** By caller, list, conditions, limit and number of the page. */
  readonly #next = new LRUCache<string, Next>({ max: MAX_WALKS });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Read the page that a request asks for, in parts.
   * @param list its name @param conditions those that its rows meet
   * @param read reads a page of the list
   */
  async *page<R>(
    { page: { number, skip, limit }, caller: { kind, id } }: { readonly page: PageRequest; readonly caller: Caller },
    list: string,
    conditions: object,
    read: (page: Place & { readonly limit: number }) => PageParts<R>
  ): PageParts<R> {
    const keyOf = (at: number) => hash('sha256', JSON.stringify([kind, id, list, conditions, limit, at]), 'base64');
    const now = this.#clock.monotonic();
    const known = number === 1 ? undefined : this.#next.get(keyOf(number));
    const from = known !== undefined && now < known.untilMs ? known.cursor : undefined;
    for await (const part of read({ ...(from === undefined ? { skip } : { cursor: from }), limit })) {
      const cursor = part.end && (part.end.end ?? from);
      // before the client has the last part, after which it may request the next page
      if (cursor !== undefined)
        this.#next.set(keyOf(number + 1), { cursor, untilMs: this.#clock.monotonic() + WALK_MS });
      yield part;
    }
  }
}
