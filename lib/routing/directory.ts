// The directory is below the sessions that it lists. One asynchronous object lists and looks up for the app, the
// facets, the REST interface and rules. It is in `lib/routing`, so that all of these can import it, and reads
// sessions through the sources of their record tables. It answers for this node; its interface allows it to answer
// for a cluster. A cursor must survive changes without the list being copied. Sessions have a number in order of
// creation and stand in a `Roster`, which finds a number by binary search (8 bytes for each session, and nothing that
// a connect would notice). Filters and topics change on the data path, so nothing is kept for them: a page takes the
// smallest keys above the cursor from a walk over all of them (20 to 40 ms of CPU time for 100,000, in slices). These
// walks run one after the other, and equal requests that wait share one.

import { Smallest } from '../base/collections/smallest.ts';
import { InvalidInput } from '../base/errors.ts';
import { Pace, type Pause } from '../base/pace.ts';
import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import { type RecordTable, recordOf } from '../records/record-table.ts';
import {
  CLIENT_FIELDS,
  type ClientRecord,
  type RecordedSession,
  SESSION_FIELDS,
  type SessionRecord
} from '../records/session-records.ts';
import { SUBSCRIPTION_FIELDS, type SubscriptionRecord } from '../records/subscription-record.ts';
import type { RetainedEntry } from '../retained/retained-store.ts';
import type { LevelNames } from '../topics/level-names.ts';
import { parseSharedFilter } from '../topics/topic.ts';
import {
  CLIENT_CONDITIONS,
  type ClientQuery,
  invalidCursor,
  LEVEL_CONDITIONS,
  type LevelQuery,
  type PageQuery,
  RETAINED_CONDITIONS,
  type Request,
  type RetainedQuery,
  readQuery,
  SUBSCRIPTION_CONDITIONS,
  type SubscriptionQuery
} from './directory-queries.ts';
import {
  readSearch,
  type SearchedKinds,
  type SearchQuery,
  type SearchResult,
  search,
  searched
} from './directory-search.ts';
import type { WantedNames } from './level-walk.ts';
import { SharedWalks } from './shared-walks.ts';
import type { Subscription } from './subscription.ts';
import { levelRecord, selectNames, type TopicLevel } from './topic-level.ts';

/** Number of sessions that are taken from the list of all sessions at a time. */
const SESSIONS_AT_ONCE = 500;
/** Cost of examining a session, in units of `Pace`. */
const SESSION_UNITS = 4;
/** Cost of creating and writing a record. */
const RECORD_UNITS = 10;

/** Number of topics or filters that are sorted at a time. */
const SORTED_AT_ONCE = 10_000;

/** A part of a list. */
export interface Page<R> {
  /** Name of the node that has answered. */
  readonly node: string;
  /** The entries of the page, in the order of the list. */
  readonly entries: readonly R[];
  /** Cursor of the next page; undefined: this was the last one. It is valid as long as the broker exists. */
  readonly cursor: string | undefined;
  /** Lists of the directory: the cursor after the last entry, also of the last page; undefined: the page has no entries. */
  readonly end?: string | undefined;
  /** Number of entries of the whole list, regardless of the conditions. */
  readonly count: number;
}

/** The properties of a page that are known once its entries have been read. */
export type PageEnd = Omit<Page<unknown>, 'entries'>;

/** Some entries of a page. */
export interface PagePart<R> {
  /** The entries, in the order of the list. */
  readonly entries: readonly R[];
  /** Undefined: more parts follow. */
  readonly end: PageEnd | undefined;
}

/** The parts of a page, of which there is at least one. Each is created when it is read. */
export type PageParts<R> = AsyncGenerator<PagePart<R>, void, void>;

/** The lists of the directory: their records, and the conditions of their queries. */
export interface DirectoryLists {
  /** The clients. */
  readonly clients: {
    /** An entry of the list. */
    readonly record: ClientRecord;
    /** The conditions of a query. */
    readonly query: ClientQuery;
  };
  /** The sessions, with or without a connection. */
  readonly sessions: {
    /** An entry of the list. */
    readonly record: SessionRecord;
    /** The conditions of a query. */
    readonly query: ClientQuery;
  };
  /** The subscriptions of all sessions. */
  readonly subscriptions: {
    /** An entry of the list. */
    readonly record: SubscriptionRecord;
    /** The conditions of a query. */
    readonly query: SubscriptionQuery;
  };
  /** The topic filters that have subscriptions. */
  readonly routes: {
    /** An entry of the list. */
    readonly record: RouteRecord;
    /** The conditions of a query. */
    readonly query: PageQuery;
  };
  /** The retained messages. */
  readonly retained: {
    /** An entry of the list. */
    readonly record: RetainedRecord;
    /** The conditions of a query. */
    readonly query: RetainedQuery;
  };
  /** The names in one level of the topic tree. */
  readonly levels: {
    /** An entry of the list. */
    readonly record: TopicLevel;
    /** The conditions of a query. */
    readonly query: LevelQuery;
  };
}

/** Reads a page of a list. */
type ReadList<L extends keyof DirectoryLists> = (
  query: DirectoryLists[L]['query']
) => PageParts<DirectoryLists[L]['record']>;

/** A topic filter that has subscriptions, without a share prefix. */
export interface RouteRecord {
  /** The topic filter. */
  readonly topic: string;
  /** Name of the node that has the subscribers. */
  readonly node: string;
}

/** A retained message, without its payload. */
export interface RetainedRecord {
  /** Name of the node that has the message. */
  readonly node: string;
  /** The topic name. */
  readonly topic: string;
  /** The QoS with which it was published. */
  readonly qos: QoS;
  /** Size of the payload in bytes. */
  readonly payloadBytes: number;
  /** Client id of the publisher; undefined if the app or the broker itself published it. */
  readonly clientId: string | undefined;
  /** Time at which the broker accepted the message, in milliseconds since 1970. */
  readonly timestamp: number;
  /** Time at which the message expires, in milliseconds since 1970; undefined: never. */
  readonly expiresAt: number | undefined;
}

/** A session in the directory. */
export interface ListedSession extends RecordedSession {
  /** Position of the session in the order of creation. */
  readonly number: number;
  readonly subscriptions: RecordedSession['subscriptions'] & {
    readonly size: number;
    values(): Iterable<Subscription>;
  };
}

/** A subscription with the number of its session. */
interface ListedSubscription {
  readonly number: number;
  readonly subscription: Subscription;
}

/** The parts of the broker that the directory reads. */
export interface DirectoryPorts {
  readonly node: string;
  readonly sessions: {
    readonly count: number;
    /** Number of subscriptions of all sessions. */
    readonly subscriptionCount: number;
    get(clientId: string): ListedSession | undefined;
    /** The sessions that follow a number, in order of creation. */
    after(number: number, most: number): readonly ListedSession[];
  };
  readonly routing: {
    readonly filterCount: number;
    filters(): Iterable<string>;
    hasFilter(filter: string): boolean;
    /** The subscriptions that match a topic; undefined: mount points have to be considered for each client. */
    matching(topic: string): readonly Subscription[] | undefined;
    level(prefix: string, part: WantedNames, pace: Pace): Promise<LevelNames>;
  };
  readonly retained: {
    readonly count: number;
    lookUp(topic: string): RetainedEntry<Message> | undefined;
    entries(): Iterable<RetainedEntry<Message>>;
    expiryOf(message: Message): number | undefined;
    level(prefix: string): LevelNames;
  };
  /** The rules by id, as far as their engines are loaded. */
  readonly rules: {
    ofEvents(): ReadonlyMap<string, { readonly id: string; readonly definition: { readonly description: string } }>;
    ofStreams(): ReadonlyMap<string, { readonly id: string; readonly text: string }>;
  };
  /** Wait for the next slice of long work. */
  readonly pause: Pause;
}

/**
 * Lists and looks up clients, sessions, subscriptions, routes and retained messages: `broker.directory`.
 *
 * Everything is asynchronous, and lists are read page by page. A list is walked in slices. All lists of a broker share the time of each
 * turn of the event loop, so neither long lists, nor small pages, nor many lists at once delay other work; at most one page of a list is in
 * memory, and with `parts` only a part of it.
 * An entry that is in a list from its first page to its last is listed exactly once; one that is added or removed in between may be listed
 * or not. Sessions are in order of creation; the subscriptions of a session, routes and retained messages in the order of their topics
 * (UTF-16 code units). Each page of routes or retained messages takes a walk over all of them, so prefer large pages. These walks run one
 * after the other, and equal requests that wait for theirs share it.
 *
 * Lists throw InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, CURSOR_INVALID or TOPIC_FILTER_INVALID.
 */
export class Directory {
  readonly #ports: DirectoryPorts;
  readonly #walks: SharedWalks;
  /** Functions that read the parts of a page, for each list. */
  readonly #lists: { readonly [L in keyof DirectoryLists]: ReadList<L> } = {
    clients: (query) => this.#sessions(CLIENT_FIELDS, query),
    sessions: (query) => this.#sessions(SESSION_FIELDS, query),
    subscriptions: (query) => this.#subscriptions(query),
    routes: (query) => this.#routes(query),
    retained: (query) => this.#retained(query),
    levels: (query) => this.#levels(query)
  };

  /** @internal */
  constructor(ports: DirectoryPorts) {
    this.#ports = ports;
    this.#walks = new SharedWalks(ports.pause);
  }

  /**
   * Read a page in parts, for long pages that are written somewhere else: the entries of a part are created when it is read.
   *
   * ```ts
   * for await (const { entries } of broker.directory.parts('clients', { limit: 10_000 })) await write(entries);
   * ```
   * @param list its name: `clients`, `sessions`, `subscriptions`, `routes`, `retained` or `levels`
   * @returns a generator of parts. The last one, which may have no entries, has an `end`: the page without its entries
   * @throws InvalidInput OPTION_INVALID if there is no such list; when the first part is read, the errors of lists
   */
  parts<L extends keyof DirectoryLists>(
    list: L,
    query: DirectoryLists[L]['query'] = {}
  ): PageParts<DirectoryLists[L]['record']> {
    if (!Object.hasOwn(this.#lists, list))
      throw new InvalidInput('OPTION_INVALID', 'list', `one of ${Object.keys(this.#lists).join(', ')}`, list);
    return this.#lists[list](query);
  }

  /**
   * Wait for the next slice of the time that long tasks share: a later turn of the event loop with little other work of this kind. For
   * adapters, between the parts of long answers.
   */
  nextSlice(): Promise<void> {
    return this.#ports.pause();
  }

  /** List clients: sessions with their current or last connection. */
  clients(query: ClientQuery = {}): Promise<Page<ClientRecord>> {
    return whole(this.parts('clients', query));
  }

  /** Look up a client. @returns undefined if it has no session */
  async client(clientId: string): Promise<ClientRecord | undefined> {
    const session = this.#ports.sessions.get(clientId);
    return session && recordOf(CLIENT_FIELDS, session, this.#ports.node);
  }

  /** List sessions, connected or not. */
  sessions(query: ClientQuery = {}): Promise<Page<SessionRecord>> {
    return whole(this.parts('sessions', query));
  }

  /** Look up a session. @returns undefined if there is none */
  async session(clientId: string): Promise<SessionRecord | undefined> {
    const session = this.#ports.sessions.get(clientId);
    return session && recordOf(SESSION_FIELDS, session, this.#ports.node);
  }

  /** List the subscriptions of all sessions, or of one (`clientId`). */
  subscriptions(query: SubscriptionQuery = {}): Promise<Page<SubscriptionRecord>> {
    return whole(this.parts('subscriptions', query));
  }

  /** List the topic filters that have subscriptions. */
  routes(query: PageQuery = {}): Promise<Page<RouteRecord>> {
    return whole(this.parts('routes', query));
  }

  /** Look up a route. @param topic a topic filter, without a share prefix @returns undefined if it has no subscriptions */
  async route(topic: string): Promise<RouteRecord | undefined> {
    const { node, routing } = this.#ports;
    return routing.hasFilter(topic) ? { topic, node } : undefined;
  }

  /** List retained messages, including those of `$SYS`. */
  retained(query: RetainedQuery = {}): Promise<Page<RetainedRecord>> {
    return whole(this.parts('retained', query));
  }

  /** Look up a retained message. @returns undefined if the topic has none */
  async retainedMessage(topic: string): Promise<RetainedRecord | undefined> {
    const entry = this.#ports.retained.lookUp(topic);
    return entry && this.#retainedRecord(entry);
  }

  /**
   * List the names of a level of the topic tree, in the order of their topics with a slash at the end. The `count` of the page is the
   * number of names of the level; -1: there are more than 100,000. The call looks at the names of the level, not at the retained topics below
   * them. Topic filters are walked over once for a page; whoever reads many levels gets a tree of them.
   */
  levels(query: LevelQuery = {}): Promise<Page<TopicLevel>> {
    return whole(this.parts('levels', query));
  }

  /**
   * Search clients, retained messages, the topic filters of subscriptions and both kinds of rules by name. The walk takes slices, reads
   * at most 10,000,000 names, and waits for other walks over topics; equal searches that wait share one. Rules are found while the broker is
   * started.
   *
   * ```ts
   * const { entries, isComplete } = await broker.directory.search({ text: 'plant/*temperature' });
   * ```
   * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID
   */
  async search(query: SearchQuery): Promise<SearchResult> {
    const { node } = this.#ports;
    const wanted = readSearch(query);
    const found = await this.#walks.share(['search', wanted], (pace) => search(this.#searched(), wanted, pace));
    return { node, ...found };
  }

  #searched(): SearchedKinds {
    const { sessions, retained, routing, rules } = this.#ports;
    const [ofEvents, ofStreams] = [rules.ofEvents(), rules.ofStreams()];
    return {
      client: searched({
        get: (clientId) => sessions.get(clientId),
        all: () => this.#sessionsFrom(0, undefined),
        nameOf: (session: ListedSession) => CLIENT_FIELDS.clientId.from(session, ''),
        detailOf: (session) => (CLIENT_FIELDS.isConnected.from(session, '') ? 'connected' : 'disconnected')
      }),
      topic: searched({
        get: (topic) => retained.lookUp(topic),
        all: () => retained.entries(),
        nameOf: ({ topic }: RetainedEntry<Message>) => topic,
        detailOf: ({ message: { bytes, payloadAt } }) => `${bytes - payloadAt} bytes`
      }),
      subscription: searched({
        get: (filter) => (routing.hasFilter(filter) ? filter : undefined),
        all: () => routing.filters(),
        nameOf: String,
        detailOf: () => ''
      }),
      rule: searched({
        get: (id) => ofEvents.get(id),
        all: () => ofEvents.values(),
        nameOf: ({ id }) => id,
        detailOf: ({ definition }) => definition.description
      }),
      streamRule: searched({
        get: (id) => ofStreams.get(id),
        all: () => ofStreams.values(),
        nameOf: ({ id }) => id,
        detailOf: ({ text }) => text
      })
    };
  }

  #retainedRecord({ topic, message }: RetainedEntry<Message>): RetainedRecord {
    const { node, retained } = this.#ports;
    const { qos, bytes, payloadAt, origin, timestamp } = message;
    const expiresAt = retained.expiryOf(message);
    return { node, topic, qos, payloadBytes: bytes - payloadAt, clientId: origin?.clientId, timestamp, expiresAt };
  }

  async *#sessions<R>(fields: RecordTable<RecordedSession, R>, query: ClientQuery): PageParts<R> {
    const { node, sessions, pause } = this.#ports;
    const { cursor, limit, skip, isWanted } = readQuery(query, CLIENT_CONDITIONS);
    const after = readPlace(cursor).number;
    const pace = new Pace(pause);
    let part: R[] = [];
    let [left, room] = [skip, limit];
    let end: string | undefined;
    let isMore = false;
    await pace.next();
    for (const session of this.#sessionsFrom(after + 1, query.clientId)) {
      let units = SESSION_UNITS;
      if (isWanted(session) && left-- <= 0) {
        isMore = room-- === 0;
        if (isMore) break;
        end = String(session.number);
        part.push(recordOf(fields, session, node));
        units += RECORD_UNITS;
      }
      if (!pace.spend(units)) continue;
      if (part.length > 0) yield { entries: part, end: undefined };
      part = [];
      await pace.next();
    }
    yield { entries: part, end: { node, cursor: isMore ? end : undefined, end, count: sessions.count } };
  }

  async *#subscriptions(query: SubscriptionQuery): PageParts<SubscriptionRecord> {
    const { node, sessions, pause } = this.#ports;
    const request = readQuery(query, SUBSCRIPTION_CONDITIONS);
    const { cursor, limit, skip, isWanted } = request;
    const begin = readPlace(cursor);
    const { matchesTopic, clientId } = query;
    if (matchesTopic !== undefined && clientId === undefined) {
      const found = await this.#walks.share(['subscriptions', query], (pace) =>
        this.#matching(matchesTopic, request, pace)
      );
      if (found !== undefined) {
        yield* this.#records(found, limit, {
          keyOf: ({ number, subscription }) => `${number} ${subscription.filter}`,
          recordOf: ({ subscription }) => recordOf(SUBSCRIPTION_FIELDS, subscription, node),
          count: () => sessions.subscriptionCount
        });
        return;
      }
    }
    const pace = new Pace(pause);
    let part: SubscriptionRecord[] = [];
    let [left, room] = [skip, limit];
    let end: string | undefined;
    let isMore = false;
    await pace.next();
    for (const { number, subscriptions } of this.#sessionsFrom(begin.number, query.clientId)) {
      const after = number === begin.number ? begin.filter : undefined;
      const wanted = { after, count: left + room + 1, isWanted };
      const found = await smallest(subscriptions.values(), filterOf, pace, wanted);
      isMore = found.length > left + room;
      const listed = found.slice(left, left + room);
      for (const [at, subscription] of listed.entries()) {
        end = `${number} ${subscription.filter}`;
        part.push(recordOf(SUBSCRIPTION_FIELDS, subscription, node));
        if (!pace.spend(at === 0 ? SESSION_UNITS + RECORD_UNITS : RECORD_UNITS)) continue;
        yield { entries: part, end: undefined };
        part = [];
        await pace.next();
      }
      if (isMore) break;
      room -= listed.length;
      left = Math.max(0, left - found.length);
      if (listed.length === 0 && pace.spend(SESSION_UNITS)) await pace.next();
    }
    yield { entries: part, end: { node, cursor: isMore ? end : undefined, end, count: sessions.subscriptionCount } };
  }

  /** The subscriptions that match a topic, as `page` selects them; undefined: those of all sessions have to be examined. */
  async #matching(
    topic: string,
    { cursor, isWanted, ...rest }: Request<Subscription>,
    pace: Pace
  ): Promise<ListedSubscription[] | undefined> {
    const { sessions, routing } = this.#ports;
    const matching = routing.matching(topic);
    if (matching === undefined) return undefined;
    const listed: ListedSubscription[] = [];
    await each(matching, pace, (subscription) => {
      const { receiver } = subscription.subscriber;
      const session = receiver && sessions.get(receiver.clientId);
      if (session !== undefined && session.state !== 'gone') listed.push({ number: session.number, subscription });
    });
    const { number, filter } = readPlace(cursor);
    return page(() => listed, sortKeyOf, pace, {
      ...rest,
      cursor: cursor && sortKey(number, filter),
      isWanted: ({ subscription }) => isWanted(subscription)
    });
  }

  async *#routes(query: PageQuery): PageParts<RouteRecord> {
    const { node, routing } = this.#ports;
    const request = readQuery<string, PageQuery>(query, {});
    const found = await this.#walks.share(['routes', query], (pace) =>
      page(() => routing.filters(), String, pace, request)
    );
    yield* this.#records(found, request.limit, {
      keyOf: String,
      recordOf: (topic) => ({ topic, node }),
      count: () => routing.filterCount
    });
  }

  async *#retained(query: RetainedQuery): PageParts<RetainedRecord> {
    const { retained } = this.#ports;
    const request = readQuery<RetainedEntry<Message>, RetainedQuery>(query, RETAINED_CONDITIONS);
    const keyOf = ({ topic }: RetainedEntry<Message>) => topic;
    const found = await this.#walks.share(['retained', query], (pace) =>
      page(() => retained.entries(), keyOf, pace, request)
    );
    yield* this.#records(found, request.limit, {
      keyOf,
      recordOf: (entry) => (entry.isLive ? this.#retainedRecord(entry) : undefined),
      count: () => retained.count
    });
  }

  async *#levels(query: LevelQuery): PageParts<TopicLevel> {
    const { node, routing, retained } = this.#ports;
    const request = readQuery<TopicLevel, LevelQuery>(query, LEVEL_CONDITIONS);
    const { prefix = '' } = query;
    if (prefix !== '' && !prefix.endsWith('/'))
      throw new InvalidInput('OPTION_INVALID', 'prefix', 'a topic with a slash at the end', prefix);
    const { cursor, skip, limit } = request;
    if (cursor !== undefined && !cursor.startsWith(prefix)) throw invalidCursor(cursor);
    const after = cursor?.slice(prefix.length);
    const { found, count } = await this.#walks.share(['levels', query], async (pace) => {
      const read = async (part: WantedNames) =>
        [retained.level(prefix), await routing.level(prefix, part, pace)] as const;
      const { found: names, trees, count: all } = await selectNames(read, { after, skip, limit }, pace);
      return { found: names.map((name) => levelRecord(trees, prefix, name, node)), count: all };
    });
    if (count === 0) checkNotShared(prefix);
    const keyOf = ({ topic }: TopicLevel) => `${topic}/`;
    yield* this.#records(found, limit, { keyOf, recordOf: (level) => level, count: () => count });
  }

  /**
   * The parts of a selected page, one for each slice.
   * @param found the items of the page, and one more if there is a next page
   * @param list its `recordOf` returns undefined for an item that was removed in the meantime
   */
  async *#records<T, R>(
    found: readonly T[],
    limit: number,
    list: { keyOf(item: T): string; recordOf(item: T): R | undefined; count(): number }
  ): PageParts<R> {
    const { node, pause } = this.#ports;
    const pace = new Pace(pause);
    let part: R[] = [];
    let end: string | undefined;
    await pace.next();
    for (const item of found.slice(0, limit)) {
      const record = list.recordOf(item);
      if (record !== undefined) part.push(record);
      end = list.keyOf(item);
      if (!pace.spend(RECORD_UNITS)) continue;
      yield { entries: part, end: undefined };
      part = [];
      await pace.next();
    }
    const cursor = found.length > limit ? end : undefined;
    yield { entries: part, end: { node, cursor, end, count: list.count() } };
  }

  /**
   * The sessions in order of creation, for walks that take several turns: sessions that end before they are reached are left out.
   * @param from number of the first session
   * @param clientId only this session
   */
  *#sessionsFrom(from: number, clientId: string | undefined): Generator<ListedSession, void> {
    const { sessions } = this.#ports;
    if (clientId !== undefined) {
      const session = sessions.get(clientId);
      if (session !== undefined && session.number >= from) yield session;
      return;
    }
    for (let next = from; ; ) {
      const some = sessions.after(next - 1, SESSIONS_AT_ONCE);
      for (const session of some) if (session.state !== 'gone') yield session;
      if (some.length < SESSIONS_AT_ONCE) return;
      next = some[some.length - 1].number + 1;
    }
  }
}

/** The whole page, collected from its parts. */
async function whole<R>(parts: PageParts<R>): Promise<Page<R>> {
  const all: R[] = [];
  for await (const { entries, end } of parts) {
    all.push(...entries);
    if (end !== undefined) return { ...end, entries: all };
  }
  throw new Error('a page has no end');
}

/** Call a function with each item. */
async function each<T>(items: Iterable<T>, pace: Pace, visit: (item: T) => void): Promise<void> {
  for (const item of items) {
    visit(item);
    if (pace.spend()) await pace.next();
  }
}

/**
 * Of the items with the smallest keys above a cursor, in order, those after the first `skip`: one more than `limit`, if there are as many.
 */
async function page<T>(
  items: () => Iterable<T>,
  keyOf: (item: T) => string,
  pace: Pace,
  { cursor, skip, limit, isWanted }: Request<T>
): Promise<T[]> {
  let after = cursor;
  // sorting many items at once would take much memory
  for (let left = skip; ; ) {
    const passed = left > 0 && left + limit > SORTED_AT_ONCE ? Math.min(left, SORTED_AT_ONCE) : 0;
    const count = passed === 0 ? left + limit + 1 : passed;
    const found = await smallest(items(), keyOf, pace, { after, count, isWanted });
    if (passed === 0) return found.slice(left);
    if (found.length < passed) return [];
    after = keyOf(found[passed - 1]);
    left -= passed;
  }
}

/** The items with the smallest keys above `after`, in order. */
async function smallest<T>(
  items: Iterable<T>,
  keyOf: (item: T) => string,
  pace: Pace,
  {
    after,
    count,
    isWanted
  }: { readonly after: string | undefined; readonly count: number } & Pick<Request<T>, 'isWanted'>
): Promise<T[]> {
  const selected = new Smallest(count, keyOf);
  await each(items, pace, (item) => {
    if ((after === undefined || keyOf(item) > after) && isWanted(item)) selected.offer(item);
  });
  const found: T[] = [];
  await each(selected.taken(), pace, (item) => found.push(item));
  return found.reverse();
}

function filterOf({ filter }: Subscription): string {
  return filter;
}

/** A key that has the order of sessions, and in each of them that of topic filters. */
function sortKey(number: number, filter: string | undefined): string {
  const digits = `${number}`.padStart(16, '0');
  return filter === undefined ? digits : `${digits} ${filter}`;
}

function sortKeyOf({ number, subscription }: ListedSubscription): string {
  return sortKey(number, subscription.filter);
}

/** Read the cursor of a list of sessions (its number) or subscriptions (number and filter). @throws InvalidInput CURSOR_INVALID */
function readPlace(cursor: string | undefined): { readonly number: number; readonly filter: string | undefined } {
  if (cursor === undefined) return { number: 0, filter: undefined };
  const parts = /^(\d+)(?: (.*))?$/s.exec(cursor);
  if (parts === null) throw invalidCursor(cursor);
  return { number: Number(parts[1]), filter: parts[2] };
}

/** Check that the prefix of an empty level is not that of shared subscriptions, because topics do not have their groups. @throws InvalidInput OPTION_INVALID */
function checkNotShared(prefix: string): void {
  const shared = parseSharedFilter(prefix);
  if (shared === undefined) return;
  const instead = typeof shared === 'string' ? 'the topic of a level' : JSON.stringify(shared.filter);
  const text = `prefix ${JSON.stringify(prefix)} names a share group, which is not a part of topics: use ${instead}`;
  throw new InvalidInput('OPTION_INVALID', 'prefix', 'the topic of a level', prefix, text);
}
