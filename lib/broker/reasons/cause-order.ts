// The order of the causes of an answer. What is over is last, before what is only possible. Then what is nearest to the time of the question, if it has
// one. Then what has lost messages of the topic, what delays them, what is about filters, about the connection; a cause that only names the missing
// subscription is last, because another one tells why. Equal ones are one with a count.

import { CAUSES, type Cause, type CauseCode, type CauseEntry, type Evidence } from '../../monitor/reasons/causes.ts';
import type { DerivedCause } from '../../monitor/reasons/derived.ts';
import type { CheckedQuestion } from './found-records.ts';

/** Maximum number of causes of an answer. */
export const MAX_CAUSES = 100;

/** A cause with its first time. */
export interface TimedCause {
  readonly cause: Cause;
  readonly since: number;
  /** When it ended, in milliseconds since 1970; undefined: it has not. */
  readonly until?: number | undefined;
  /** True if it lasts until it ends. */
  readonly isCondition?: boolean;
  /** True if it explains a message only if nothing else does. */
  readonly isOtherwise?: boolean;
}

/** The causes that do not exclude those of `DerivedCauses.otherwise`: there was no subscription yet. */
const LATE: ReadonlySet<CauseCode> = new Set<CauseCode>(['no_subscriber', 'subscribed_later']);
/** The derived causes that are about messages of the topic which the broker has. */
const OF_MESSAGES: ReadonlySet<CauseCode> = new Set<CauseCode>([
  ...(['delayed', 'will_delayed', 'publish_limited', 'queued', 'offline_queued', 'awaiting_acknowledgements'] as const)
]);
/** The causes that are about the connection or session of a client, whatever its messages. */
const OF_CONNECTIONS: ReadonlySet<CauseCode> = new Set<CauseCode>([
  ...(['wrong_password', 'token_expired', 'reauthentication_failed', 'banned', 'connection_limit'] as const),
  ...(['connect_refused', 'taken_over', 'kicked', 'session_ended', 'packet_too_large', 'slow_consumer'] as const),
  'connection_lost'
]);
/** The causes that another one explains. */
const GENERAL: ReadonlySet<CauseCode> = new Set<CauseCode>(['no_subscriber', 'offline_no_session']);

/** Put causes in order. @param otherwise those that explain a message only if nothing else does */
export function inOrder(
  found: readonly TimedCause[],
  otherwise: readonly DerivedCause[],
  question: CheckedQuestion
): Cause[] {
  const isOpen = found.every(({ cause, until }) => LATE.has(cause.code) || until !== undefined);
  const others = isOpen ? otherwise.filter(({ code }) => found.every(({ cause }) => cause.code !== code)) : [];
  const isFar = (one: TimedCause) =>
    Number(
      question.precision !== Infinity && one.cause.kind !== 'derived' && distance(one, question) > question.precision
    );
  const all = [...found, ...others.map((one) => ({ ...derivedOf(one), isOtherwise: true }))];
  const ordered = all.toSorted(
    (a, b) =>
      overIn(all, a) - overIn(all, b) ||
      isFar(a) - isFar(b) ||
      rankOf(a, question) - rankOf(b, question) ||
      distanceIn(all, a, question) - distanceIn(all, b, question)
  );
  return folded(ordered);
}

/**
 * 1 if a cause is over, 2 if it is only possible, such as the low QoS of a subscription, which holds for all its messages. A stop of a rule counts
 * as present until something else is recorded of the rule, because the message may have come during the stop.
 * @param found all causes
 */
function overIn(found: readonly TimedCause[], one: TimedCause): 0 | 1 | 2 {
  const { cause, until, isOtherwise } = one;
  const { code, evidence } = cause;
  const isDoubtful = evidence.isCertain === false && code !== 'subscribed_later'; // one that is the only one known
  if (isDoubtful || (isOtherwise === true && code === 'qos_lowered')) return 2;
  if (until === undefined) return 0;
  const isLater = ({ cause: other }: TimedCause) =>
    other.kind !== 'derived' && other.evidence.rule === evidence.rule && other.at > until;
  return code === 'rule_stopped' && !found.some(isLater) ? 0 : 1;
}

/** Make a derived cause one with a time. */
export function derivedOf({ code, kind, at, count, evidence }: DerivedCause): TimedCause {
  const until = typeof evidence.until === 'number' ? evidence.until : undefined;
  return { ...causeOf(code, kind, at, count, evidence), until };
}

/** Make a cause. Values that are undefined are left out of its evidence. */
export function causeOf(
  code: CauseCode,
  kind: Cause['kind'],
  at: number,
  count: number,
  evidence: Evidence,
  since = at
): TimedCause {
  const { text, remedy, remedyOf }: CauseEntry = CAUSES[code];
  const known = Object.fromEntries(Object.entries(evidence).filter(([, value]) => value !== undefined));
  return {
    cause: { code, kind, at, count, text: text(known), evidence: known, remedy: remedyOf?.(known) ?? remedy },
    since
  };
}

/**
 * The distance of a cause from the message: 0 if it has lost messages of the topic, 1 if they wait. A ban is before them, and without a
 * time it is not known whether the message was before a subscription.
 */
function rankOf({ cause: { code, kind, evidence }, isOtherwise }: TimedCause, { precision }: CheckedQuestion): number {
  if (GENERAL.has(code)) return 6;
  if (isOtherwise === true) return 5;
  if (kind === 'derived') return code === 'expired' || code === 'rule_stopped' ? 0 : OF_MESSAGES.has(code) ? 1 : 2;
  if (code === 'subscribed_later' && precision === Infinity) return 3;
  if (kind !== 'recorded' || evidence.topic !== undefined || !OF_CONNECTIONS.has(code)) return 0;
  if (evidence.clientId === undefined && evidence.publisher === undefined) return 5; // it may be about another client
  return code === 'banned' ? 0 : 4;
}

/** Count equal causes in the first of them. */
function folded(causes: readonly TimedCause[]): Cause[] {
  const found = new Map<string, Cause>();
  for (const { cause } of causes) {
    const { code, kind, text, evidence } = cause;
    const key = JSON.stringify([code, kind, text, evidence.clientId, evidence.publisher, evidence.until !== undefined]);
    const first = found.get(key);
    if (first === undefined) found.set(key, cause);
    else if (kind === 'recorded')
      found.set(key, { ...first, count: first.count + cause.count, at: Math.max(first.at, cause.at) });
  }
  return [...found.values()];
}

/** The time between samples of one message, in milliseconds: of each kind, one is taken in this time. */
const SAMPLE_MS = 100;

/** As `distance`; a condition that was false because of a payload that could not be decoded comes after it. @param found all causes */
function distanceIn(found: readonly TimedCause[], one: TimedCause, question: CheckedQuestion): number {
  const { code, kind, at } = one.cause;
  if (code !== 'where_false' || kind !== 'sampled') return distance(one, question);
  const reason = found.find(
    ({ cause, since }) => cause.code === 'payload_invalid' && since - SAMPLE_MS <= at && at <= cause.at + SAMPLE_MS
  );
  return Math.max(distance(one, question), reason === undefined ? 0 : distance(reason, question));
}

/** The time between a cause and the question: 0 if it happened at that time. */
function distance({ cause: { at }, since, isCondition }: TimedCause, question: CheckedQuestion): number {
  if (since <= question.at && (question.at <= at || isCondition === true))
    return question.precision === Infinity ? question.at - at : 0;
  return Math.min(Math.abs(at - question.at), Math.abs(since - question.at));
}
