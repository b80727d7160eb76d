import { LRUCache } from 'lru-cache';
import type { Broker, DirectoryLists, PageParts } from '../../lib/index.ts';
import { type Caller, crypto } from '../rest/index.ts';
import type { PageRequest } from '../rest/kit/index.ts';

/** Time within which the next page of a list must be requested, in milliseconds. */
const POSITION_MS = 60_000;
const MAX_POSITIONS = 1_000;

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
export class PagePositions {
  readonly #broker: Broker;
  /** Keyed by caller, list, query, limit and page number. */
  readonly #next = new LRUCache<string, Next>({ max: MAX_POSITIONS });

  constructor(broker: Broker) {
    this.#broker = broker;
  }

  /** Read the requested page of a list in parts. */
  async *page<L extends keyof DirectoryLists>(
    { page: { number, skip, limit }, caller: { kind, id } }: { readonly page: PageRequest; readonly caller: Caller },
    list: L,
    query: DirectoryLists[L]['query']
  ): PageParts<DirectoryLists[L]['record']> {
    const { clock, directory } = this.#broker;
    const keyOf = (at: number) => crypto().hash('sha256', JSON.stringify([kind, id, list, query, limit, at]), 'base64');
    const now = clock.monotonic();
    const known = number === 1 ? undefined : this.#next.get(keyOf(number));
    const from = known !== undefined && now < known.untilMs ? known.cursor : undefined;
    const place = from === undefined ? { skip } : { cursor: from };
    for await (const part of directory.parts(list, { ...query, ...place, limit })) {
      const cursor = part.end && (part.end.end ?? from);
      // set before the client has the last part, because it may request the next page at once
      if (cursor !== undefined) this.#next.set(keyOf(number + 1), { cursor, untilMs: clock.monotonic() + POSITION_MS });
      yield part;
    }
  }
}
