import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import type { ProtocolVersion, QoS } from '../packets/types.ts';
import type { Field } from '../records/record-table.ts';
import { CLIENT_FIELDS, type RecordedSession } from '../records/session-records.ts';
import { type RecordedSubscription, SUBSCRIPTION_FIELDS } from '../records/subscription-record.ts';
import { checkTopicFilter, checkTopicName, covers, innerFilter, matches, parseSharedFilter } from '../topics/topic.ts';

const DEFAULT_LIMIT = 1_000;
const MAX_LIMIT = 10_000;
const PAGE_NAMES: readonly (keyof PageQuery)[] = ['cursor', 'limit', 'skip'];

/** The requested part of a list. */
export interface PageQuery {
  /** The `cursor` of the previous page. Default: the start of the list. */
  readonly cursor?: string | undefined;
  /** Maximum number of entries, from 1 to 10,000. Default 1,000. */
  readonly limit?: number | undefined;
  /** Number of entries that satisfy the conditions and are skipped before the first one that is listed. Default 0. */
  readonly skip?: number | undefined;
}

/** A query for clients or sessions. An entry is listed if it satisfies all given conditions. */
export interface ClientQuery extends PageQuery {
  /** The client id. */
  readonly clientId?: string | undefined;
  /** The user name. */
  readonly username?: string | undefined;
  /** Name of the zone. */
  readonly zone?: string | undefined;
  /** The IP address of the connection, or of the last one. */
  readonly ipAddress?: string | undefined;
  /** True: only connected clients; false: only others. */
  readonly isConnected?: boolean | undefined;
  /** True: only clients whose last CONNECT requested a new session; false: only others. */
  readonly cleanStart?: boolean | undefined;
  /** `MQTT` or `MQIsdp`. */
  readonly protocolName?: string | undefined;
  /** 3: MQTT 3.1, 4: MQTT 3.1.1, 5: MQTT 5.0. */
  readonly protocolVersion?: ProtocolVersion | undefined;
  /** A part of the client id. */
  readonly clientIdContains?: string | undefined;
  /** A part of the user name. */
  readonly usernameContains?: string | undefined;
  /** The session was created at this time or later, in milliseconds since 1970. */
  readonly createdFrom?: number | undefined;
  /** The session was created at this time or earlier, in milliseconds since 1970. */
  readonly createdTo?: number | undefined;
  /** The client connected last at this time or later, in milliseconds since 1970. */
  readonly connectedFrom?: number | undefined;
  /** The client connected last at this time or earlier, in milliseconds since 1970. */
  readonly connectedTo?: number | undefined;
}

/** A query for subscriptions. An entry is listed if it satisfies all given conditions. */
export interface SubscriptionQuery extends PageQuery {
  /** The client id of the session. */
  readonly clientId?: string;
  /** The granted QoS. */
  readonly qos?: QoS;
  /** The topic filter, without a share prefix. */
  readonly filter?: string;
  /** A topic filter that covers that of the subscription; the share prefix of the latter is ignored. */
  readonly coveredBy?: string;
  /** A topic that the topic filter of the subscription matches; its share prefix is ignored. */
  readonly matchesTopic?: string;
  /** Name of the share group; `$queue` for `$queue/...`. */
  readonly group?: string;
}

/** A query for retained messages. */
export interface RetainedQuery extends PageQuery {
  /** A topic filter that matches the topic. */
  readonly filter?: string | undefined;
  /** The string with which the topic begins. */
  readonly prefix?: string | undefined;
}

/** A query for a level of the topic tree. */
export interface LevelQuery extends PageQuery {
  /** The topic of the level above, with a slash at the end and without a share group; empty: the first level. Default: empty. */
  readonly prefix?: string | undefined;
}

/** A function for each condition, which tells whether an entry satisfies it with the given value. */
type Conditions<Source, Query> = {
  readonly [N in Exclude<keyof Query, keyof PageQuery>]-?: (source: Source, wanted: NonNullable<Query[N]>) => boolean;
};

export const CLIENT_CONDITIONS: Conditions<RecordedSession, ClientQuery> = {
  clientId: equals(CLIENT_FIELDS.clientId),
  username: equals(CLIENT_FIELDS.username),
  zone: equals(CLIENT_FIELDS.zone),
  ipAddress: equals(CLIENT_FIELDS.ipAddress),
  isConnected: equals(CLIENT_FIELDS.isConnected),
  protocolVersion: equals(CLIENT_FIELDS.protocolVersion),
  clientIdContains: contains(CLIENT_FIELDS.clientId),
  usernameContains: contains(CLIENT_FIELDS.username),
  cleanStart: equals(CLIENT_FIELDS.cleanStart),
  protocolName: equals(CLIENT_FIELDS.protocolName),
  createdFrom: ({ createdAt }, from) => createdAt >= from,
  createdTo: ({ createdAt }, to) => createdAt <= to,
  connectedFrom: ({ lifecycle: { connectedAt: at } }, from) => at !== undefined && at >= from,
  connectedTo: ({ lifecycle: { connectedAt: at } }, to) => at !== undefined && at <= to
};

export const SUBSCRIPTION_CONDITIONS: Conditions<RecordedSubscription, SubscriptionQuery> = {
  clientId: equals(SUBSCRIPTION_FIELDS.clientId),
  qos: equals(SUBSCRIPTION_FIELDS.qos),
  filter: (source, wanted) => plainFilter(source) === wanted,
  coveredBy: (source, wanted) => covers(wanted, plainFilter(source)),
  matchesTopic: (source, wanted) => matches(plainFilter(source), wanted),
  group: (source, wanted) => groupOf(source) === wanted
};

export const RETAINED_CONDITIONS: Conditions<{ readonly topic: string }, RetainedQuery> = {
  filter: ({ topic }, wanted) => matches(wanted, topic),
  prefix: ({ topic }, wanted) => topic.startsWith(wanted)
};

/** Conditions of lists of levels. The prefix determines which level is listed. */
export const LEVEL_CONDITIONS: Conditions<unknown, LevelQuery> = { prefix: () => true };

/** Conditions whose value must be a string. */
const TEXT_CONDITIONS = ['prefix'];
/** Conditions whose value must be a topic filter. */
const FILTER_CONDITIONS = ['filter', 'coveredBy'];
/** Conditions whose value must be a topic name. */
const TOPIC_CONDITIONS = ['matchesTopic'];

function equals<S, V>({ from }: Field<S, V>): (source: S, wanted: NonNullable<V>) => boolean {
  return (source, wanted) => from(source, '') === wanted;
}

/** An absent string contains the empty string. */
function contains<S>({ from }: Field<S, string | undefined>): (source: S, wanted: string) => boolean {
  return (source, wanted) => (from(source, '') ?? '').includes(wanted);
}

/** The topic filter as the client sees it, without a share prefix. */
function plainFilter(source: RecordedSubscription): string {
  return innerFilter(SUBSCRIPTION_FIELDS.filter.from(source, ''));
}

function groupOf({ filter }: RecordedSubscription): string | undefined {
  const shared = parseSharedFilter(filter);
  return typeof shared === 'object' ? shared.group : undefined;
}

/** A query that has been checked. */
export interface Request<Source> {
  readonly cursor: string | undefined;
  readonly limit: number;
  readonly skip: number;
  /** Tell whether an entry satisfies all conditions. */
  isWanted(source: Source): boolean;
}

/** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID, CURSOR_INVALID, TOPIC_FILTER_INVALID, TOPIC_NAME_INVALID */
export function readQuery<Source, Query extends PageQuery>(
  query: Query,
  conditions: Conditions<Source, Query>
): Request<Source> {
  checkObject(query, 'query');
  checkNames(query, [...PAGE_NAMES, ...Object.keys(conditions)], 'list');
  const { cursor, limit = DEFAULT_LIMIT, skip = 0, ...given } = query;
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new InvalidInput('OPTION_INVALID', 'limit', `an integer from 1 to ${MAX_LIMIT}`, limit);
  if (!Number.isSafeInteger(skip) || skip < 0)
    throw new InvalidInput('OPTION_INVALID', 'skip', 'an integer from 0 on', skip);
  if (cursor !== undefined && typeof cursor !== 'string') throw invalidCursor(cursor);
  const checks = Object.entries(given).filter(([, wanted]) => wanted !== undefined);
  for (const [name, wanted] of checks) {
    if (FILTER_CONDITIONS.includes(name)) checkFilter(name, wanted);
    if (TOPIC_CONDITIONS.includes(name)) checkTopic(name, wanted);
    if (TEXT_CONDITIONS.includes(name) && typeof wanted !== 'string')
      throw new InvalidInput('OPTION_INVALID', name, 'a string', wanted);
  }
  const rows = conditions as Readonly<Record<string, (source: Source, wanted: unknown) => boolean>>;
  return { cursor, limit, skip, isWanted: (source) => checks.every(([name, wanted]) => rows[name](source, wanted)) };
}

/** The error for a cursor that does not come from a page. */
export function invalidCursor(cursor: unknown): InvalidInput {
  return new InvalidInput('CURSOR_INVALID', 'cursor', 'the cursor of a page of this list', cursor);
}

/** @throws InvalidInput TOPIC_FILTER_INVALID */
function checkTopic(name: string, topic: unknown): void {
  const fault = typeof topic === 'string' ? checkTopicName(topic) : 'the topic must be a string';
  if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', name, 'a topic name', topic, fault);
}

function checkFilter(name: string, filter: unknown): void {
  const fault = typeof filter === 'string' ? checkTopicFilter(filter) : 'the topic filter must be a string';
  if (fault !== undefined) throw new InvalidInput('TOPIC_FILTER_INVALID', name, 'a topic filter', filter, fault);
}
