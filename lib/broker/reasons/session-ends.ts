// The losses of messages that waited for a receiver. The end of a session loses a message only if the session had a
// subscription to its topic. One that came later than the message loses it if the client was away until then, and one that
// the client has repaired if it had been away, so that messages may have waited. An operator's is always named.

import type { KeptRecord } from '../../monitor/reasons/kept-record.ts';
import { innerFilter, matches } from '../../topics/topic.ts';

/** The message of a question, as in `CheckedQuestion`. */
interface MessageQuestion {
  readonly topics: readonly string[];
  readonly clientId: string | undefined;
  readonly at: number;
  readonly precision: number;
}

const CONNECTIONS = /^(connected|resumed|disconnected_.*)$/;
/** The records of waiting messages that were discarded. */
const DISCARDS = /^(session_ended|session_terminated|queue_cleared|expired)$/;

/** Tell whether the end of a session has lost messages of a question. @param all the latest first @param until when it was repaired */
export function hasLostMessages(
  end: KeptRecord,
  until: number | undefined,
  question: MessageQuestion,
  all: readonly KeptRecord[]
): boolean {
  const before = beforeOf(end, all);
  if (end.clientId !== question.clientId || !hasSubscribed(before, question)) return false;
  if (end.since > question.at + question.precision) return hasDiscarded(end, question, all);
  if (until === undefined || end.row.byDetail?.[end.detail ?? ''] !== undefined) return true;
  const last = before.find(({ code }) => CONNECTIONS.test(code));
  const isMissed = ({ code, topic, since, at }: KeptRecord) =>
    code === 'no_subscribers' && question.topics.includes(topic ?? '') && since <= until && at >= end.at;
  return last === undefined || last.at < end.at || all.some(isMissed);
}

/** Tell whether a record is that of a message, or of messages, which waited for their receiver since the time of the question. */
export function hasDiscarded(record: KeptRecord, question: MessageQuestion, all: readonly KeptRecord[]): boolean {
  if (question.precision === Infinity || record.clientId !== question.clientId || !DISCARDS.test(record.code))
    return false;
  const last = beforeOf(record, all).find(({ code }) => CONNECTIONS.test(code));
  return last?.code.startsWith('disconnected_') === true && last.at <= question.at + question.precision;
}

/** The records of the same client before a record, the latest first. */
function beforeOf({ clientId, number }: KeptRecord, all: readonly KeptRecord[]): readonly KeptRecord[] {
  return all.filter((one) => one.clientId === clientId && one.number < number);
}

/** Tell whether a session had a subscription to the topic; true also if its beginning is not recorded. @param before its records, the latest first */
function hasSubscribed(before: readonly KeptRecord[], { topics, at, precision }: MessageQuestion): boolean {
  const ended = new Set<string>();
  for (const { code, topic, since } of before) {
    if (code === 'connected') return false;
    if (topic === undefined || since > at + precision) continue;
    if (code === 'unsubscribed' || code === 'subscription_withdrawn') ended.add(topic);
    if (code === 'subscribed' && !ended.delete(topic) && topics.some((each) => matches(innerFilter(topic), each)))
      return true;
  }
  return true;
}
