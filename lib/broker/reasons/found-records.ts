// The records that are about a question. One without a topic, such as the end of a connection, fits until the client has
// connected again before the time of the question, and one about a session until the client has subscribed again. A
// question without a time is about any, so what is over is an answer as well, after the others.

import type { CauseCode, Evidence } from '../../monitor/reasons/causes.ts';
import type { KeptRecord } from '../../monitor/reasons/kept-record.ts';
import type { ReasonKeys } from '../../monitor/reasons/reason-log.ts';
import { requestedIn } from '../../monitor/reasons/requested-filter.ts';
import { restOfMisspelledShare } from '../../topics/near-filter.ts';
import { innerFilter, matches, parseSharedFilter } from '../../topics/topic.ts';
import { causeOf, type TimedCause } from './cause-order.ts';
import {
  type ClientState,
  hasLost,
  isOfTopic,
  type Moment,
  stateAt,
  stateBefore,
  subscriptionTo
} from './client-states.ts';
import { hasDiscarded, hasLostConnection, hasLostMessages } from './session-ends.ts';

/** The question with the forms in which the broker has its names. */
export interface CheckedQuestion {
  readonly topic: string;
  /** The topic as it is written, and as rewrite rules and mount points may have changed it; cut as in records. */
  readonly topics: readonly string[];
  readonly clientId: string | undefined;
  readonly publisher: string | undefined;
  readonly rule: string | undefined;
  /** Time of the message; now if it is not given. */
  readonly at: number;
  /** Possible difference between that time and the message, in milliseconds; `Infinity` if no time is given. */
  readonly precision: number;
  readonly now: number;
  /** The states of the receiver, the oldest first. */
  readonly states: readonly ClientState[];
  /** Tells whether others receive the topic, so that a message which the receiver has missed is in no record. */
  hasOtherReceivers(): boolean;
  /** Tells whether the receiver of the question has a subscription with a filter. */
  hasFilter(filter: string): boolean;
  /** When the receiver has subscribed to the topic, as far as it is recorded. */
  subscribedAt(): Moment | undefined;
  /** When the feature `delayed` was started again, after a time at which it was stopped; undefined: it was not. */
  delayedAgainAt(at: number): number | undefined;
  /** When the retained message that the topic has now was published; undefined: it has none. */
  retainedAt(): number | undefined;
}

/** Tell whether a record began before another one. */
export function isBefore(one: Moment | undefined, other: Moment | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  return one.since < other.since || (one.since === other.since && one.number < other.number);
}

/** A record about the question. */
export interface FoundRecord {
  readonly record: KeptRecord;
  /** When its condition ended, in milliseconds since 1970; undefined: it has not. */
  readonly until: number | undefined;
  /** When the stop of its rule ended after the time of the question, in milliseconds since 1970. */
  readonly endedAt?: number | undefined;
  /** True if it has discarded a message that waited since the time of the question. */
  readonly isDiscard?: boolean;
}

const SECOND = 1_000;
const MINUTE = 60_000;

/** The part of a topic that delays a message. */
const DELAY = /^\$delayed\/[^/]*\//;

/** Tell whether the receiver of a message without a subscriber had a subscription, through which it was not allowed to receive. */
export function wasWithheld(missed: KeptRecord, all: readonly KeptRecord[], question: CheckedQuestion): boolean {
  return all.some((record) => {
    if (record.code !== 'right_withdrawn' || !isBefore(record, missed) || !fits(record, question)) return false;
    return (endOf(record, question, all) ?? Infinity) >= missed.at;
  });
}

/** Tell whether a login or subscription of the receiver had been refused before a message without a subscriber, until it succeeded. */
export function wasRefused(missed: KeptRecord, all: readonly KeptRecord[], question: CheckedQuestion): boolean {
  return all.some((record) => {
    const isRefusal = record.row.isRefusedConnect === true || record.code === 'subscribe_refused';
    if (!isRefusal || record.clientId !== question.clientId || !isBefore(record, missed)) return false;
    return fits(record, question) && (endOf(record, question, all) ?? Infinity) >= missed.at;
  });
}

/** The precision of a time that people give: a minute if it is a whole one, otherwise a second. */
export function precisionOf(at: number): number {
  return at % MINUTE === 0 ? MINUTE : SECOND;
}

/** The keys of the records about a question. Drops that were summarised are found by the publisher, if it is given. */
export function keysOf({ topics, clientId, publisher, rule }: CheckedQuestion): readonly ReasonKeys[] {
  return [
    ...[clientId, publisher].filter((client) => client !== undefined && client !== '').map((client) => ({ client })),
    ...topics.map((topic) => ({ topic, client: publisher })),
    ...(rule === undefined ? [] : [{ rule }])
  ];
}

/** Select the records about the message of a question. @param all the latest first */
export function fittingRecords(all: readonly KeptRecord[], question: CheckedQuestion): readonly FoundRecord[] {
  const found = all
    .filter((record) => fits(record, question))
    .map((record) => ({
      record,
      until: endOf(record, question, all),
      endedAt:
        record.row.begins === 'rule_stop' && question.precision !== Infinity
          ? endOf(record, { ...question, at: question.now }, all)
          : undefined,
      isDiscard: hasDiscarded(record, question)
    }))
    .filter(({ record, until }) => isOpen(until, question) || hasTakenOver(record, until, question))
    .filter(({ record, until }) => record.code !== 'session_ended' || hasLostMessages(record, until, question, all))
    .filter(({ record }) => record.row.cause !== 'connection_lost' || hasLostConnection(record, question));
  return found.filter(({ record }) => !isRepeated(record, found, question));
}

function isOpen(until: number | undefined, { precision }: CheckedQuestion): boolean {
  return until === undefined || precision === Infinity;
}

/** Tell whether the receiver was connected at the time of the question by a connection that had taken over its session. */
function hasTakenOver({ code, clientId }: KeptRecord, until = Infinity, question: CheckedQuestion): boolean {
  const { states, at, precision, clientId: receiver } = question;
  if (code !== 'disconnected_takeovered' || clientId !== receiver || until > at - precision) return false;
  return !states.some(({ by }) => by?.row.change === 'disconnected' && by.at > until && by.at <= at);
}

/** Tell whether the receiver had a subscription to the topic at the time of the message, and lost it later. */
export function hasLostSubscription(all: readonly KeptRecord[], question: CheckedQuestion): boolean {
  return all.some((record) => {
    const { row, clientId, topic } = record;
    const isLoss = row.change === 'unsubscribed' || row.change === 'session_ended';
    const isFitting = topic === undefined || isOfTopic(topic, question.topics);
    return isLoss && clientId === question.clientId && isFitting && isLater(record, question);
  });
}

/** The first record of a message of the topic without a subscriber. @param all the latest first */
export function missedSince(all: readonly KeptRecord[], question: CheckedQuestion): KeptRecord | undefined {
  return all.findLast((record) => record.code === 'no_subscribers' && fits(record, question));
}

/** The time of the last message of the topic without a subscriber. @param all the latest first */
export function lastMissedAt(all: readonly KeptRecord[], question: CheckedQuestion): number | undefined {
  return all.find((record) => record.code === 'no_subscribers' && fits(record, question))?.at;
}

/** When a client has subscribed to the topic, as far as it is recorded. @param records those of the client, the latest first */
export function subscribedAt(records: Iterable<KeptRecord>, topics: readonly string[]): Moment | undefined {
  for (const record of records) if (isSubscription(record) && isOfTopic(record.topic, topics)) return record;
  return undefined;
}

function isSubscription({ row }: KeptRecord): boolean {
  return row.change === 'subscribed';
}

/** The cause that a record shows. @param missed the first message without a subscriber */
export function recordedCause(
  { record, until, endedAt, isDiscard = false }: FoundRecord,
  question: CheckedQuestion,
  missed: Moment | undefined
): TimedCause[] {
  const { row, clientId, publisher, topic, rule, qos, count, at, since, code: name } = record;
  const isSubscriber = isSubscription(record) && clientId === question.clientId;
  const special = row.byDetail?.[record.detail ?? ''];
  const ofReceiver = special?.cause ?? (clientId === undefined ? row.cause : (row.causeOfReceiver ?? row.cause));
  const code: CauseCode | undefined = isSubscriber ? 'subscribed_later' : ofReceiver;
  if (code === undefined) return [];
  if (isSubscriber) {
    if (hasLost(stateBefore(question.states, record), question.topics)) return []; // the loss is the cause
    const isAfterTime = question.precision !== Infinity && since > question.at + question.precision;
    const isAfterMissed = since > question.at || question.precision === Infinity;
    if (!isAfterTime && !(isAfterMissed && isBefore(missed, record))) return [];
  }
  const named = row.isFilter === true ? { filter: topic, topic: question.topic } : { topic };
  const doubt = doubtOf(record, until, question);
  const evidence = {
    ...named,
    clientId,
    publisher,
    rule,
    qos: topic === undefined || row.isFilter === true ? undefined : qos,
    address: record.address,
    until: isOpen(until, question) ? until : undefined,
    endedAt,
    isCertain: doubt === undefined ? undefined : false,
    ...(name === 'no_share_member' ? groupOf(record.detail) : { detail: doubt ?? special?.detail ?? detailOf(record) })
  };
  const timed = causeOf(code, 'recorded', at, count, evidence, isDiscard ? Math.min(since, question.at) : since);
  return [{ ...timed, until, isCondition: !isSubscriber && isCondition(record) }];
}

/** Why it is not certain that a record tells what has lost the message; undefined: it is. */
function doubtOf({ row, code, since, detail }: KeptRecord, until: number | undefined, question: CheckedQuestion) {
  if (code === 'disconnected_takeovered' && !isOpen(until, question))
    return [detail, 'messages of that time were sent to the connection that took it over'].filter(Boolean).join('; ');
  const isAsked = row.change === 'subscribed' && question.precision === Infinity;
  const isAgain = Math.round(question.retainedAt() ?? -Infinity) > since; // an earlier retained message is in no record
  return isAsked && isAgain ? 'it has received the message only if that was the retained one' : undefined;
}

/** The detail of a cause; that of a lost connection is since when it may have been lost. */
function detailOf({ row, detail, since, at }: KeptRecord): string | undefined {
  if (row.cause !== 'connection_lost') return detail;
  return `it sent nothing from ${new Date(since).toISOString()} until ${new Date(at).toISOString()}`;
}

/** Tell whether a record is about the message of the question. */
function fits(record: KeptRecord, question: CheckedQuestion): boolean {
  const { topics, clientId, publisher, rule } = question;
  const { topic, row, detail } = record;
  if (topic !== undefined) {
    const filters = row.isFilter === true ? [topic, requestedIn(detail) ?? topic].map(innerFilter) : undefined;
    const meant = record.code === 'subscribe_refused' ? restOfMisspelledShare(topic) : undefined;
    if (meant !== undefined) filters?.push(meant);
    const name = record.code === 'delayed_stopped' ? topic.replace(DELAY, '') : topic;
    const isOfTopic =
      filters?.some((filter) => topics.some((each) => matches(filter, each))) ??
      (topics.includes(topic) || topics.includes(name));
    if (!isOfTopic) return false;
  }
  if (record.rule !== undefined && (rule === undefined ? clientId !== undefined : record.rule !== rule)) return false; // clients receive without rules
  if (isLater(record, question) && record.code !== 'session_ended') return false;
  if (isOfEarlier(record, question) || hasReturned(record, question)) return false;
  if (topic === undefined && record.rule === undefined)
    // the connection of a client, or a summary of drops
    return isNamed(record.clientId, clientId, publisher) || isNamed(record.publisher, clientId, publisher);
  if (record.code === 'no_share_member' && clientId !== undefined && !question.hasFilter(record.detail ?? ''))
    return false; // the client is not in the group
  if (row.isRetainedLoss === true && !isMissing(record, question)) return false;
  if (record.clientId !== undefined && clientId !== undefined && record.clientId !== clientId) return false;
  return record.publisher === undefined || publisher === undefined || record.publisher === publisher;
}

/** Tell whether a retained message that was lost was still missing when the receiver subscribed; without a receiver, at the time of the question. */
function isMissing(loss: KeptRecord, question: CheckedQuestion): boolean {
  const { clientId, at } = question;
  const subscribed = clientId === undefined ? undefined : question.subscribedAt();
  if (clientId !== undefined && !isBefore(lastOf(loss), subscribed)) return false; // it had the message, or has not subscribed
  const time = subscribed?.since ?? at;
  if (loss.endedAt <= time) return false;
  const retainedAt = question.retainedAt(); // a loss removes it, so it was published after all losses
  return retainedAt === undefined || Math.round(retainedAt) > time;
}

/** Tell whether the receiver subscribed between equal losses of a retained message, so that it is not known whether there was one then. */
export function hasUnknownLoss(all: readonly KeptRecord[], question: CheckedQuestion): boolean {
  const subscribed = question.clientId === undefined ? undefined : question.subscribedAt();
  if (subscribed === undefined) return false;
  return all.some(
    (record) =>
      record.row.isRetainedLoss === true &&
      question.topics.includes(record.topic ?? '') &&
      record.since < subscribed.since &&
      !isBefore(lastOf(record), subscribed)
  );
}

/** The last of the equal events that a record counts. */
function lastOf({ at, number }: KeptRecord): Moment {
  return { since: at, number };
}

function isNamed(name: string | undefined, clientId: string | undefined, publisher: string | undefined): boolean {
  return name !== undefined && (name === clientId || name === publisher);
}

/** Tell whether a record is about messages that were dropped or refused before the one of the question, of which it says nothing. */
function isOfEarlier({ row, code, rule, at }: KeptRecord, question: CheckedQuestion): boolean {
  if (row.drop === undefined && row.isOfMessage !== true) return false;
  // a condition, or a message that should have come later
  if (row.begins !== undefined || row.cause === 'retained_missing' || code === 'delayed_stopped') return false;
  return rule === undefined && at < question.at - question.precision;
}

/** Tell whether the receiver of a refused CONNECT has resumed its session since, with the messages that waited. */
function hasReturned({ row, clientId, at }: KeptRecord, question: CheckedQuestion): boolean {
  const { states, topics, clientId: receiver } = question;
  if (row.isRefusedConnect !== true || clientId === undefined || clientId !== receiver) return false;
  const last = stateAt(states, at); // of the last attempt, if several are counted
  const subscription = subscriptionTo(last, topics);
  const isUnknown = last.hasSession === undefined; // it subscribed before the broker began
  if (subscription === undefined ? !isUnknown : subscription.qos === 0) return false;
  return states[states.indexOf(last) + 1]?.by?.row.change === 'resumed';
}

/** Tell whether a condition began after the message. */
function isLater(record: KeptRecord, { at, precision }: CheckedQuestion): boolean {
  return record.since > at + precision && isCondition(record);
}

/** Tell whether a record is about a condition that lasts, not about a message. */
function isCondition({ row }: KeptRecord): boolean {
  return row.drop === undefined && row.begins !== undefined;
}

/** Tell whether a record repeats that another connection, an operator, a ban or the app ended the session. */
function isRepeated(
  { row, clientId, at }: KeptRecord,
  found: readonly FoundRecord[],
  question: CheckedQuestion
): boolean {
  const other = row.repeats;
  // the end of a session is a cause for the receiver only
  if (other === undefined || (other === 'session_ended' && clientId !== question.clientId)) return false;
  return found.some(
    ({ record: one }) => one.code === other && one.clientId === clientId && Math.abs(one.at - at) < SECOND
  );
}

/** The time at which a later record ended the condition, if it is before that of the question. @param all the latest first */
function endOf(record: KeptRecord, question: CheckedQuestion, all: readonly KeptRecord[]): number | undefined {
  if (record.code === 'delayed_stopped' && question.precision === Infinity) return question.delayedAgainAt(record.at);
  const { begins } = record.row;
  if (begins === undefined) return undefined;
  const owner = record.clientId ?? (record.rule === undefined ? question.clientId : undefined);
  const later = all.findLast(
    ({ number, at, row, clientId, topic, rule }) =>
      number > record.number &&
      at <= question.at &&
      row.ends?.includes(begins) === true &&
      clientId === owner &&
      rule === record.rule &&
      (topic === undefined || topic === record.topic || isOfTopic(topic, question.topics))
  );
  return later === undefined ? undefined : later.since > record.at ? later.since : later.at;
}

/** The share group that had no member for a message. @param filter its shared filter */
function groupOf(filter: string | undefined): Evidence {
  const shared = parseSharedFilter(filter ?? '');
  return typeof shared === 'object' ? { group: shared.group, filter: shared.filter } : {};
}
