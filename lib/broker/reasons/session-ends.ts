// The losses of messages that waited for a receiver, or were on their way to it. The end of a session loses a message only
// if the session had a subscription to its topic. An end that came after the message loses it if the client was away until
// then. If the client has subscribed again since, the end has lost messages that waited, or that were published before the
// client was back. The end of a session by an operator is always named.

import type { KeptRecord } from '../../monitor/reasons/kept-record.ts';
import { type ClientState, isSubscribed, stateAt, stateBefore, subscriptionTo } from './client-states.ts';

/** The message of a question, as in `CheckedQuestion`. */
interface MessageQuestion {
  readonly topics: readonly string[];
  readonly clientId: string | undefined;
  readonly at: number;
  readonly precision: number;
  readonly states: readonly ClientState[];
  hasOtherReceivers(): boolean;
}

/** A session that ends with its connection is recorded shortly after it, in milliseconds. */
const CLOSING_MS = 1_000;

/** Tell whether the end of a session has lost messages of a question. @param all the latest first @param until when it was repaired */
export function hasLostMessages(
  end: KeptRecord,
  until: number | undefined,
  question: MessageQuestion,
  all: readonly KeptRecord[]
): boolean {
  const { states, topics, at, precision } = question;
  if (end.clientId !== question.clientId) return false;
  const before = stateBefore(states, end);
  const isLater = end.since > at + precision;
  if (isSubscribed(isLater ? stateAt(states, at + precision) : before, topics) === false) return false;
  if (isLater) return hasDiscarded(end, question);
  if (until === undefined || end.row.byDetail?.[end.detail ?? ''] !== undefined) return true;
  if (before.awayBy === undefined || end.at - before.awayBy.at >= CLOSING_MS) return true; // messages may have waited
  const isMissed = ({ code, topic, since, at: last }: KeptRecord) =>
    code === 'no_subscribers' && topics.includes(topic ?? '') && since <= until && last >= end.at;
  return question.hasOtherReceivers() || all.some(isMissed); // what others have received is in no record
}

/** Tell whether a record is that of a message, or of messages, which waited for their receiver since the time of the question. */
export function hasDiscarded(record: KeptRecord, { states, clientId, at, precision }: MessageQuestion): boolean {
  if (precision === Infinity || record.clientId !== clientId || record.row.isDiscard !== true) return false;
  const { awayBy } = stateBefore(states, record);
  return awayBy !== undefined && awayBy.at <= at + precision;
}

/** Tell whether messages that were sent to a client before its connection was lost are not sent again. */
export function hasLostConnection(
  { clientId, number, at: lostAt }: KeptRecord,
  { states, topics, clientId: receiver, at, precision }: MessageQuestion
): boolean {
  const before = stateBefore(states, { number, since: lostAt });
  if (clientId !== receiver || isSubscribed(before, topics) === false) return false;
  if (precision !== Infinity && at - precision > lostAt) return false;
  if (subscriptionTo(before, topics)?.qos === 0) return true;
  const next = states.find(({ by }) => {
    return by !== undefined && by.number > number && /^(session_ended|connected|resumed)$/.test(by.row.change ?? '');
  });
  return next !== undefined && next.by?.row.change !== 'resumed';
}
