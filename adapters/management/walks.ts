import { LRUCache } from 'lru-cache';
import type { Clock, PageParts } from '../../lib/index.ts';
import { type Caller, crypto } from '../rest/index.ts';
import type { PageRequest } from '../rest/kit/index.ts';

/** Time within which the next page of a list must be requested, in milliseconds. */
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
 * The positions at which callers have ended a page of a list. The next page begins there, even if the list has changed:
 * with page numbers alone, added or removed rows would move others to a page that has been read already, or that is
 * never read.
 */
export class Walks {
  readonly #clock: Clock;
  /** Keyed by caller, list, conditions, limit and page number. */
  readonly #next = new LRUCache<string, Next>({ max: MAX_WALKS });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Read a requested page in parts.
   * @param list the name of the list
   * @param conditions the conditions of the rows
   * @param read reads a page of the list
   */
  async *page<R>(
    { page: { number, skip, limit }, caller: { kind, id } }: { readonly page: PageRequest; readonly caller: Caller },
    list: string,
    conditions: object,
    read: (page: Place & { readonly limit: number }) => PageParts<R>
  ): PageParts<R> {
    const keyOf = (at: number) =>
      crypto().hash('sha256', JSON.stringify([kind, id, list, conditions, limit, at]), 'base64');
    const now = this.#clock.monotonic();
    const known = number === 1 ? undefined : this.#next.get(keyOf(number));
    const from = known !== undefined && now < known.untilMs ? known.cursor : undefined;
    for await (const part of read({ ...(from === undefined ? { skip } : { cursor: from }), limit })) {
      const cursor = part.end && (part.end.end ?? from);
      // set before the client has the last part, because it may request the next page at once
      if (cursor !== undefined)
        this.#next.set(keyOf(number + 1), { cursor, untilMs: this.#clock.monotonic() + WALK_MS });
      yield part;
    }
  }
}
