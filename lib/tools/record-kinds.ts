import { readOutboxRecord } from '../outbox/outbox-record.ts';
import type { Message } from '../packets/message.ts';
import { type FlowRecord, readFlow } from '../session/messages/flow-record.ts';
import { readSession, readSubscription, type SessionEntry } from '../session/messages/session-record.ts';
import { type FormatRecord, readCommit, readFormat } from '../store/commits.ts';
import type { DelayedMessage } from '../store/delayed-record.ts';
import { readJournal } from '../store/journal.ts';
import { Kind } from '../store/keys.ts';
import { type Now, readMessage } from '../store/message-record.ts';
import { RecordReader } from '../store/record.ts';
import { type PersistedMessage, readSegment } from '../store/segment.ts';
import type { Entry } from '../store/store.ts';
import { readStreamRecord } from '../store/stream-record.ts';
import { readTableEntry } from '../store/table-record.ts';

/** The functions that read the records of one kind. */
export interface RecordKind<T> {
  /** The first byte of the keys. */
  readonly kind: number;
  /** @throws RecordError; any other error if the content of the record is invalid */
  read(entry: Entry, now: Now): T;
  /** The content as JSON, for people. Absent if a record has no content besides its key. */
  show?(record: T): object;
}

/** All kinds of records in a store, in the order of their keys. */
export const RECORDS = {
  format: row<FormatRecord>(Kind.format, readFormat, (record) => record),
  commit: row(Kind.commit, readCommit, (record) => record),
  journal: row(Kind.journal, readJournal),
  session: row(Kind.session, readSession, showSession),
  subscription: row(Kind.subscription, readSubscription, (record) => record),
  flow: row(Kind.flow, readFlow, showFlow),
  segment: row(Kind.segment, readSegment, (messages) => ({ messages: messages.map(showRetained) })),
  will: row(Kind.will, readSession, showSession),
  garbage: row(Kind.garbage, readGarbage),
  retained: row(Kind.retained, readRetained, ({ message }) => showMessage(message)),
  delayed: row(Kind.delayed, readDelayed, showDelayed),
  outbox: row(Kind.outbox, readOutboxRecord, ({ number, outbox, entry }) => ({ number, outbox, ...entry })),
  stream: row(Kind.stream, readStreamRecord, ({ body, ...record }) => ({ ...record, bytes: body.length })),
  table: row(Kind.table, readTableEntry, (record) => record)
} satisfies Record<RecordName, unknown>;

/** The names of the kinds of records in a store. */
export type RecordName =
  | 'format'
  | 'commit'
  | 'journal'
  | 'session'
  | 'subscription'
  | 'flow'
  | 'segment'
  | 'will'
  | 'garbage'
  | 'retained'
  | 'delayed'
  | 'outbox'
  | 'stream'
  | 'table';

const BY_KIND = new Map(
  Object.entries(RECORDS).map(([name, { kind }]) => [kind, name as RecordName] as [number, RecordName])
);

/** The kind of the record with this key; undefined: this version does not know the kind. */
export function recordName(key: Buffer): RecordName | undefined {
  return BY_KIND.get(key[0]);
}

/** The number in the key of a record, such as that of its session. */
export function numberOf({ key }: Entry): number {
  return key.readUIntBE(1, 6);
}

function row<T>(kind: number, read: RecordKind<T>['read'], show?: RecordKind<T>['show']): RecordKind<T> {
  return show === undefined ? { kind, read } : { kind, read, show };
}

function readGarbage(entry: Entry): number {
  new RecordReader(entry.key, entry.value);
  return numberOf(entry);
}

/** A retained message in the store. */
export interface RetainedMessage {
  readonly message: Message;
  /** Position in the order of arrival; undefined in records of the first version, which are ordered by their timestamps. */
  readonly seq: number | undefined;
}

function readRetained({ key, value }: Entry, now: Now): RetainedMessage {
  const reader = new RecordReader(key, value);
  const message = readMessage(reader, undefined, now);
  return { message, seq: reader.isAtEnd ? undefined : reader.varint() };
}

function readDelayed(entry: Entry, now: Now): DelayedMessage & { readonly number: number } {
  const reader = new RecordReader(entry.key, entry.value);
  const dueWallMs = reader.f64();
  const topic = reader.text();
  return { number: numberOf(entry), dueWallMs, topic, message: readMessage(reader, undefined, now) };
}

function showMessage({ topic, payload, qos, retain, properties, clientId, username, timestamp }: Message): object {
  return {
    topic,
    payload,
    qos,
    retain,
    properties,
    timestamp,
    publisher: clientId === '' ? undefined : { clientId, username }
  };
}

function showRetained({ seq, qos, retain, subscriptionIds, message }: PersistedMessage): object {
  return { number: seq, ...showMessage(message), qos, retain, subscriptionIdentifiers: subscriptionIds };
}

function showDelayed({ number, dueWallMs, topic, message }: DelayedMessage & { readonly number: number }): object {
  return { number, due: dueWallMs, ...showMessage(message), topic };
}

function showSession({ sessionExpiry, ...record }: SessionEntry): object {
  return { ...record, sessionExpiry: sessionExpiry === Infinity ? 'infinity' : sessionExpiry };
}

function showFlow({ session, next, head, count, bytes, done }: FlowRecord & { readonly session: number }): object {
  const doneBeyond: [number, number][] = [];
  done.forEach((from, to) => {
    doneBeyond.push([from, to - 1]);
  });
  return { session, next, head, messages: count, bytes, doneBelow: done.low, doneBeyond };
}
