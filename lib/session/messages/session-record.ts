// The bytes of two kinds of records. Fields are written and read in the same order; in the objects that are returned,
// the order of the properties is the order of the bytes. A new field is always written, after all others, and is read
// only if the record is not at its end, so that records of earlier releases stay readable and earlier releases ignore
// it. `TRANSPORTS` is stored by position: new ones are appended, too. Anything else needs a new version of records
// (`lib/store/record.ts`).

import { Message, type MessageInput, type Publisher } from '../../packets/message.ts';
import type { ProtocolVersion, QoS, UserProperty } from '../../packets/types.ts';
import type { TransportInfo } from '../../records/client.ts';
import type { RecordedSubscription } from '../../records/subscription-record.ts';
import { ASKED_SUBSCRIPTIONS, type Subscription } from '../../routing/subscription.ts';
import { Kind } from '../../store/keys.ts';
import { type Now, readMessage, writeMessage } from '../../store/message-record.ts';
import { type Draft, RecordReader } from '../../store/record.ts';
import type { Entry } from '../../store/store.ts';
import { NO_USER_PROPERTIES } from '../life/agreement.ts';
import type { WillState } from '../life/will.ts';

const USERNAME = 1;
const BRIDGE = 2;
const CLEAN_START = 4;
const SUPERUSER = 8;
const WILL = 16;
const NO_LOCAL = 4;
const RETAIN_AS_PUBLISHED = 8;
const ASKED = 1;
const TRANSPORTS: readonly TransportInfo['transport'][] = ['tcp', 'tls', 'ws', 'wss', 'unix', 'stream', 'local'];

/** The persisted properties of a session and its client. */
export interface SessionEntry {
  /** Number of the session in keys. */
  readonly number: number;
  readonly node: string;
  readonly clientId: string;
  readonly username: string | undefined;
  readonly mountpoint: string;
  readonly protocolVersion: ProtocolVersion;
  readonly isBridge: boolean;
  readonly cleanStart: boolean;
  readonly isSuperuser: boolean;
  /** Seconds. */
  readonly keepalive: number;
  /** Seconds. */
  readonly sessionExpiry: number;
  /** Wall-clock milliseconds. */
  readonly createdAt: number;
  /** Wall-clock milliseconds; 0 if the client was connected. */
  readonly disconnectedAt: number;
  /** Time of the last connection of the client, in wall-clock milliseconds; undefined: unknown, as in records of 0.2. */
  readonly connectedAt: number | undefined;
  readonly zone: string;
  readonly transport: TransportInfo['transport'];
  readonly listener: string;
  readonly remoteAddress: string;
  readonly userProperties: readonly UserProperty[];
  readonly will: WillState | undefined;
}

/** Write the record of a session under `Kind.session`; or under `Kind.will` if only its will is persisted. */
export function writeSessionRecord(
  draft: Draft,
  kind: number,
  record: SessionEntry,
  publisher: Publisher,
  now: Now
): void {
  const { username, userProperties, will } = record;
  draft.key(kind).u48(record.number).value();
  draft.u8(
    (username === undefined ? 0 : USERNAME) |
      (record.isBridge ? BRIDGE : 0) |
      (record.cleanStart ? CLEAN_START : 0) |
      (record.isSuperuser ? SUPERUSER : 0) |
      (will === undefined ? 0 : WILL)
  );
  draft.text(record.node).text(record.clientId);
  if (username !== undefined) draft.text(username);
  draft.text(record.mountpoint).u8(record.protocolVersion).varint(record.keepalive);
  draft.f64(record.sessionExpiry).f64(record.createdAt).f64(record.disconnectedAt);
  draft.text(record.zone).u8(TRANSPORTS.indexOf(record.transport));
  draft.text(record.listener).text(record.remoteAddress);
  draft.varint(userProperties.length);
  for (const [name, value] of userProperties) draft.text(name).text(value);
  if (will !== undefined) {
    draft.varint(will.delayMs);
    writeMessage(draft, Message.from(will.message, publisher, now.nowMs, now.wallMs), undefined);
  }
  draft.f64(record.connectedAt ?? 0); // 0.2 ignores what follows the will
  draft.put();
}

/** Read the record of a session. @throws RecordError if the record is damaged or too new */
export function readSession({ key, value }: Entry, now: Now): SessionEntry {
  const reader = new RecordReader(key, value);
  const flags = reader.u8();
  return {
    number: key.readUIntBE(1, 6),
    node: reader.text(),
    clientId: reader.text(),
    username: (flags & USERNAME) === 0 ? undefined : reader.text(),
    isBridge: (flags & BRIDGE) !== 0,
    cleanStart: (flags & CLEAN_START) !== 0,
    isSuperuser: (flags & SUPERUSER) !== 0,
    mountpoint: reader.text(),
    protocolVersion: reader.u8() as ProtocolVersion,
    keepalive: reader.varint(),
    sessionExpiry: reader.f64(),
    createdAt: reader.f64(),
    disconnectedAt: reader.f64(),
    zone: reader.text(),
    transport: TRANSPORTS[reader.u8()] ?? 'stream',
    listener: reader.text(),
    remoteAddress: reader.text(),
    userProperties: readPairs(reader),
    will: (flags & WILL) === 0 ? undefined : readWill(reader, now),
    connectedAt: reader.isAtEnd ? undefined : reader.f64() || undefined
  };
}

function readPairs(reader: RecordReader): readonly UserProperty[] {
  let left = reader.varint();
  if (left === 0) return NO_USER_PROPERTIES;
  const pairs: UserProperty[] = [];
  for (; left > 0; left--) pairs.push([reader.text(), reader.text()]);
  return pairs;
}

function readWill(reader: RecordReader, now: Now): WillState {
  const delayMs = reader.varint();
  const { topic, payload, qos, retain, properties } = readMessage(reader, undefined, now);
  const message: MessageInput = { topic, payload: Buffer.from(payload), qos, retain, properties };
  return { message, delayMs };
}

/**
 * Write the record of a subscription, or delete it.
 * @param given undefined deletes the record
 * @param pendingBefore retained messages with a `seq` below this are still to be sent for the subscription; undefined if there are none
 * @param requested see `RequestedFilters.namesOf`
 */
export function writeSubscription(
  draft: Draft,
  session: number,
  filter: string,
  given: Subscription | undefined,
  pendingBefore?: number,
  requested?: ReadonlySet<string>
): void {
  draft.key(Kind.subscription).u48(session).tail(filter);
  if (given === undefined) {
    draft.delete();
    return;
  }
  const { qos, noLocal, retainAsPublished, retainHandling, subscriptionIds } = given;
  draft
    .value()
    .u8(qos | (noLocal ? NO_LOCAL : 0) | (retainAsPublished ? RETAIN_AS_PUBLISHED : 0) | (retainHandling << 4));
  draft.varint(subscriptionIds?.length ?? 0);
  for (const id of subscriptionIds ?? []) draft.varint(id);
  const isAsked = ASKED_SUBSCRIPTIONS.has(given);
  const hasMore = isAsked || requested !== undefined;
  if (pendingBefore !== undefined || hasMore) draft.varint(pendingBefore ?? 0);
  if (hasMore) {
    draft.u8(isAsked ? ASKED : 0).varint(requested?.size ?? 0);
    for (const name of requested ?? []) draft.text(name);
  }
  draft.put();
}

/** A persisted subscription. */
export interface SubscriptionEntry extends Omit<RecordedSubscription, 'subscriber'> {
  readonly session: number;
  /** Retained messages with a `seq` below this are still to be sent; undefined if there are none. */
  readonly pendingBefore: number | undefined;
  /** See `ASKED_SUBSCRIPTIONS`. */
  readonly isAsked: boolean;
  /** The filters that the client has requested, if a hook has changed the filter. */
  readonly requested: readonly string[] | undefined;
}

/** Read the record of a subscription. @throws RecordError if the record is damaged or too new */
export function readSubscription({ key, value }: Entry): SubscriptionEntry {
  const reader = new RecordReader(key, value);
  const flags = reader.u8();
  const subscriptionIds: number[] = [];
  for (let left = reader.varint(); left > 0; left--) subscriptionIds.push(reader.varint());
  const pendingBefore = reader.isAtEnd ? 0 : reader.varint();
  const isAsked = !reader.isAtEnd && (reader.u8() & ASKED) !== 0;
  const requested: string[] = [];
  if (!reader.isAtEnd) for (let left = reader.varint(); left > 0; left--) requested.push(reader.text());
  return {
    session: key.readUIntBE(1, 6),
    filter: key.toString('utf8', 7),
    qos: (flags & 3) as QoS,
    noLocal: (flags & NO_LOCAL) !== 0,
    retainAsPublished: (flags & RETAIN_AS_PUBLISHED) !== 0,
    retainHandling: (flags >> 4) as 0 | 1 | 2,
    subscriptionIds: subscriptionIds.length > 0 ? subscriptionIds : undefined,
    pendingBefore: pendingBefore > 0 ? pendingBefore : undefined,
    isAsked,
    requested: requested.length > 0 ? requested : undefined
  };
}
