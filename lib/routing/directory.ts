import { InvalidInput } from '../base/errors.ts';
import { Smallest } from '../base/smallest.ts';
import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import { type RecordTable, recordOf } from '../records/record-table.ts';
import {
  CLIENT_FIELDS,
  type ClientRecord,
  SESSION_FIELDS,
  type SessionRecord,
  type SessionSource
} from '../records/session-records.ts';
import { SUBSCRIPTION_FIELDS, type SubscriptionRecord } from '../records/subscription-record.ts';
import type { RetainedEntry } from '../retained/retained-store.ts';
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
import { LevelCount, type TopicLevel } from './level-count.ts';
import type { Subscription } from './subscription.ts';

/** Sessions that are looked at in one turn. */
const SESSIONS_AT_ONCE = 500;
/** Topics or filters that are looked at in one turn. */
const KEYS_AT_ONCE = 2_000;

/** Topics or filters that are sorted in one turn. */
const SORTED_AT_ONCE = 10_000;

/** A part of a list. */
export interface Page<R> {
  /** Name of the node that has answered. */
  readonly node: string;
  readonly entries: readonly R[];
  /** Pass it as `cursor` for the next page; undefined: this was the last one. It is valid as long as the broker exists. */
  readonly cursor: string | undefined;
  /** Lists of the directory: the cursor behind the last entry, also of the last page; undefined: the page has no entries. */
  readonly end?: string | undefined;
  /** Number of entries of the whole list, whatever the conditions. */
  readonly count: number;
}

/** A topic filter that has subscriptions, without a share prefix. */
export interface RouteRecord {
  readonly topic: string;
  /** Name of the node that has the subscribers. */
  readonly node: string;
}

/** A retained message, without its payload. */
export interface RetainedRecord {
  readonly node: string;
  readonly topic: string;
  readonly qos: QoS;
  readonly payloadBytes: number;
  /** Client id of the publisher; undefined if the app or the broker itself published it. */
  readonly clientId: string | undefined;
  /** When the broker accepted it, in milliseconds since 1970. */
  readonly timestamp: number;
  /** When it expires, in milliseconds since 1970; undefined: never. */
  readonly expiresAt: number | undefined;
}

/** A session in the directory. */
export interface ListedSession extends SessionSource {
  /** Its place in the order of creation. */
  readonly number: number;
  readonly subscriptions: SessionSource['subscriptions'] & { values(): Iterable<Subscription> };
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
  readonly routing: { readonly filterCount: number; filters(): Iterable<string>; hasFilter(filter: string): boolean };
  readonly retained: {
    readonly count: number;
    lookUp(topic: string): RetainedEntry<Message> | undefined;
    entries(): Iterable<RetainedEntry<Message>>;
    expiryOf(message: Message): number | undefined;
  };
  /** Resolves in the next turn. */
  readonly pause: () => Promise<void>;
}

/**
 * Who and what is where: lists and looks up clients, sessions, subscriptions, routes and retained messages. `broker.directory`.
 *
 * Everything is asynchronous, and lists are read page by page. A list is walked in slices, each in a turn of its own, so neither long lists
 * nor small pages delay other work; at most one page is in memory.
 * What is in a list from its first page to its last is listed exactly once; what comes or goes in between may be listed or not. Sessions are
 * in order of creation; the subscriptions of a session, routes and retained messages in the order of their topics (UTF-16 code units). Each
 * page of routes or retained messages takes a walk over all of them, so prefer large pages.
 *
 * Lists throw InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, CURSOR_INVALID or TOPIC_FILTER_INVALID.
 */
export class Directory {
  readonly #ports: DirectoryPorts;

  /** @internal */
  constructor(ports: DirectoryPorts) {
    this.#ports = ports;
  }

  /** List clients: sessions with their connection, or their last one. */
  clients(query: ClientQuery = {}): Promise<Page<ClientRecord>> {
    return this.#sessionPage(CLIENT_FIELDS, query);
  }

  /** Look up a client. @returns undefined if it has no session */
  async client(clientId: string): Promise<ClientRecord | undefined> {
    const session = this.#ports.sessions.get(clientId);
    return session && recordOf(CLIENT_FIELDS, session, this.#ports.node);
  }

  /** List sessions, connected or not. */
  sessions(query: ClientQuery = {}): Promise<Page<SessionRecord>> {
    return this.#sessionPage(SESSION_FIELDS, query);
  }

  /** Look up a session. @returns undefined if there is none */
  async session(clientId: string): Promise<SessionRecord | undefined> {
    const session = this.#ports.sessions.get(clientId);
    return session && recordOf(SESSION_FIELDS, session, this.#ports.node);
  }

  /** List the subscriptions of all sessions, or of one (`clientId`). */
  async subscriptions(query: SubscriptionQuery = {}): Promise<Page<SubscriptionRecord>> {
    const { node, sessions, pause } = this.#ports;
    const { cursor, limit, skip, isWanted } = readQuery(query, SUBSCRIPTION_CONDITIONS);
    let left = skip;
    const begin = readPlace(cursor);
    await pause();
    const entries: SubscriptionRecord[] = [];
    let last: string | undefined;
    for await (const some of this.#slices(begin.number, query.clientId)) {
      for (const { number, state, subscriptions } of some) {
        if (state === 'gone') continue;
        const after = number === begin.number ? begin.filter : undefined;
        const room = limit - entries.length;
        const found = await this.#smallest(subscriptions.values(), filterOf, after, left + room + 1, isWanted);
        const listed = found.slice(left, left + room);
        await this.#each(listed, (subscription) => entries.push(recordOf(SUBSCRIPTION_FIELDS, subscription, node)));
        if (listed.length > 0) last = `${number} ${listed[listed.length - 1].filter}`;
        const isMore = found.length > left + room;
        left = Math.max(0, left - found.length);
        if (isMore) return { node, entries, cursor: last, end: last, count: sessions.subscriptionCount };
      }
    }
    return { node, entries, cursor: undefined, end: last, count: sessions.subscriptionCount };
  }

  /** List the topic filters that have subscriptions. */
  async routes(query: PageQuery = {}): Promise<Page<RouteRecord>> {
    const { node, routing, pause } = this.#ports;
    const { cursor: after, limit, skip, isWanted } = readQuery<string, PageQuery>(query, {});
    await pause();
    const found = await this.#page(() => routing.filters(), String, after, { skip, limit, isWanted });
    const listed = found.slice(0, limit);
    const end = listed.at(-1);
    const cursor = found.length > limit ? end : undefined;
    return { node, entries: listed.map((topic) => ({ topic, node })), cursor, end, count: routing.filterCount };
  }

  /** Look up a route. @param topic a topic filter, without a share prefix @returns undefined if it has no subscriptions */
  async route(topic: string): Promise<RouteRecord | undefined> {
    const { node, routing } = this.#ports;
    return routing.hasFilter(topic) ? { topic, node } : undefined;
  }

  /** List retained messages, including those of `$SYS`. */
  async retained(query: RetainedQuery = {}): Promise<Page<RetainedRecord>> {
    const { node, retained, pause } = this.#ports;
    const { cursor: after, limit, skip, isWanted } = readQuery(query, RETAINED_CONDITIONS);
    await pause();
    const keyOf = ({ topic }: RetainedEntry<Message>) => topic;
    const found = await this.#page(() => retained.entries(), keyOf, after, { skip, limit, isWanted });
    const listed = found.slice(0, limit);
    const end = listed.at(-1)?.topic;
    const cursor = found.length > limit ? end : undefined;
    const entries = listed.flatMap((entry) => (entry.isLive ? [this.#retainedRecord(entry)] : []));
    return { node, entries, cursor, end, count: retained.count };
  }

  /** Look up a retained message. @returns undefined if the topic has none */
  async retainedMessage(topic: string): Promise<RetainedRecord | undefined> {
    const entry = this.#ports.retained.lookUp(topic);
    return entry && this.#retainedRecord(entry);
  }

  #retainedRecord({ topic, message }: RetainedEntry<Message>): RetainedRecord {
    const { node, retained } = this.#ports;
    const { qos, bytes, payloadAt, origin, timestamp } = message;
    const expiresAt = retained.expiryOf(message);
    return { node, topic, qos, payloadBytes: bytes - payloadAt, clientId: origin?.clientId, timestamp, expiresAt };
  }

  /**
   * List the names of a level of the topic tree, in the order of their topics with a slash at the end. The `count` of the page is the number of names of the level.
   * While it is listed, an object for each name of the level is in memory.
   */
  async levels(query: LevelQuery = {}): Promise<Page<TopicLevel>> {
    const { node, routing, retained, pause } = this.#ports;
    const { cursor: after, limit, skip } = readQuery<TopicLevel, LevelQuery>(query, LEVEL_CONDITIONS);
    const { prefix = '' } = query;
    if (prefix !== '' && !prefix.endsWith('/'))
      throw new InvalidInput('OPTION_INVALID', 'prefix', 'a topic with a slash at the end', prefix);
    await pause();
    const tree = new LevelCount(prefix, node);
    await this.#each(retained.entries(), ({ topic }) => tree.addRetained(topic));
    await this.#each(routing.filters(), (filter) => tree.addSubscribed(filter));
    const keyOf = ({ topic }: TopicLevel) => `${topic}/`;
    const isWanted = () => true;
    const found = await this.#page(() => tree.levels.values(), keyOf, after, { skip, limit, isWanted });
    const entries = found.slice(0, limit);
    const end = entries.length === 0 ? undefined : keyOf(entries[entries.length - 1]);
    return { node, entries, cursor: found.length > limit ? end : undefined, end, count: tree.levels.size };
  }

  /** Call a function with each item, of a part of them in each turn. */
  async #each<T>(items: Iterable<T>, visit: (item: T) => void): Promise<void> {
    let left = KEYS_AT_ONCE;
    for (const item of items) {
      if (left-- === 0) {
        await this.#ports.pause();
        left = KEYS_AT_ONCE;
      }
      visit(item);
    }
  }

  async #sessionPage<R>(fields: RecordTable<SessionSource, R>, query: ClientQuery): Promise<Page<R>> {
    const { node, sessions, pause } = this.#ports;
    const { cursor, limit, skip, isWanted } = readQuery(query, CLIENT_CONDITIONS);
    const entries: R[] = [];
    let left = skip;
    let end: string | undefined;
    const after = readPlace(cursor).number;
    await pause();
    for await (const some of this.#slices(after + 1, query.clientId)) {
      for (const session of some) {
        if (!isWanted(session) || left-- > 0) continue;
        if (entries.length === limit) return { node, entries, cursor: end, end, count: sessions.count };
        end = String(session.number);
        entries.push(recordOf(fields, session, node));
      }
    }
    return { node, entries, cursor: undefined, end, count: sessions.count };
  }

  /**
   * The sessions in order of creation, in slices, one for each turn.
   * @param from number of the first session
   * @param clientId only this one
   */
  async *#slices(from: number, clientId: string | undefined): AsyncGenerator<readonly ListedSession[]> {
    const { sessions } = this.#ports;
    if (clientId !== undefined) {
      const session = sessions.get(clientId);
      yield session === undefined || session.number < from ? [] : [session];
      return;
    }
    for (let next = from; ; ) {
      const some = sessions.after(next - 1, SESSIONS_AT_ONCE);
      yield some;
      if (some.length < SESSIONS_AT_ONCE) return;
      next = some[some.length - 1].number + 1;
      await this.#ports.pause();
    }
  }

  /** Of the items with the smallest keys above `after`, in order, those behind the first `skip`: one more than `limit`, if there are as many. */
  async #page<T>(
    items: () => Iterable<T>,
    keyOf: (item: T) => string,
    after: string | undefined,
    { skip, limit, isWanted }: Pick<Request<T>, 'skip' | 'limit' | 'isWanted'>
  ): Promise<T[]> {
    // to sort many items at once would delay other work
    for (let left = skip; ; ) {
      const passed = left > 0 && left + limit > SORTED_AT_ONCE ? Math.min(left, SORTED_AT_ONCE) : 0;
      const count = passed === 0 ? left + limit + 1 : passed;
      const found = await this.#smallest(items(), keyOf, after, count, isWanted);
      if (passed === 0) return found.slice(left);
      if (found.length < passed) return [];
      after = keyOf(found[passed - 1]);
      left -= passed;
    }
  }

  /** The items with the smallest keys above `after`, in order. */
  async #smallest<T>(
    items: Iterable<T>,
    keyOf: (item: T) => string,
    after: string | undefined,
    count: number,
    isWanted: (item: T) => boolean
  ): Promise<T[]> {
    const smallest = new Smallest(count, keyOf);
    await this.#each(items, (item) => {
      if ((after === undefined || keyOf(item) > after) && isWanted(item)) smallest.offer(item);
    });
    return smallest.sorted();
  }
}

function filterOf({ filter }: Subscription): string {
  return filter;
}

/** Read the cursor of a list of sessions (its number) or subscriptions (number and filter). @throws InvalidInput CURSOR_INVALID */
function readPlace(cursor: string | undefined): { readonly number: number; readonly filter: string | undefined } {
  if (cursor === undefined) return { number: 0, filter: undefined };
  const parts = /^(\d+)(?: (.*))?$/s.exec(cursor);
  if (parts === null) throw invalidCursor(cursor);
  return { number: Number(parts[1]), filter: parts[2] };
}
