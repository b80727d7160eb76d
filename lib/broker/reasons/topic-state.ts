// The causes that are in the topic: a delayed message, a rewrite rule, a retained message that is missing.

import { Pause } from '../../connection/pause.ts';
import { cut } from '../../monitor/cut-text.ts';
import { type DerivedCause, type DerivedCauses, derived } from '../../monitor/reasons/derived.ts';
import { isWithheld, type ReceivingRights } from '../../routing/receiving-rights.ts';
import type { Subscription } from '../../routing/subscription.ts';
import { isShared } from '../../routing/subscriptions.ts';
import type { Session } from '../../session/session.ts';
import type { DelayedMessages } from '../features/delayed.ts';
import type { Retainer } from '../features/retainer.ts';
import type { TopicRewrite } from '../features/rewrite.ts';
import type { SessionIndex } from '../sessions/session-index.ts';
import type { DeriveQuestion } from './derive.ts';

/** Maximum number of sessions whose wills are compared with the topic (about 5 ms), and of wills that are named. */
const MAX_SESSIONS = 100_000;
const MAX_WILLS = 10;
/** Maximum number of publishers above a rate limit that are named. */
const MAX_PUBLISHERS = 10;

/** The messages to a topic that are still delayed. */
export function delayedCauses({ topic, publisher, now }: DeriveQuestion, delayed: DelayedMessages): DerivedCauses {
  const { count, nextAt, isComplete } = delayed.waitingFor(topic, publisher);
  if (count === 0) return { causes: [], isComplete };
  const known = {
    topic: cut(topic),
    publisher: publisher && cut(publisher),
    dueAt: nextAt,
    isPaused: !delayed.isStarted
  };
  const detail = delayed.isStarted
    ? `${count} wait, the next one until ${new Date(nextAt).toISOString()}`
    : `${count} wait, because the feature \`delayed\` is stopped`;
  return { causes: [derived('delayed', now, { ...known, detail }, count)], isComplete };
}

/**
 * Rewrite rules by which the messages of a topic get another one, or filters stand for another one.
 * @param hasReceiver tells whether the receiver of the question, or any if there is none, has a subscription to a topic
 */
export function rewrittenCauses(
  { written, topic, publisherMount, now }: DeriveQuestion,
  rewrites: TopicRewrite,
  hasReceiver: (topic: string) => boolean,
  clientId?: string
): DerivedCause[] {
  if (!rewrites.hasRules || hasReceiver(topic)) return [];
  const known = { topic: cut(written), clientId: clientId && cut(clientId) };
  const published = rewrites.apply(written, 'publish');
  if (published !== written) {
    const detail = `it is published as ${JSON.stringify(cut(topic))}`;
    return [derived('rewritten', now, { ...known, to: cut(topic), detail })];
  }
  const subscribed = rewrites.apply(written, 'subscribe');
  if (subscribed === written || !hasReceiver(publisherMount + subscribed)) return [];
  const detail = `a subscription to it is one to ${JSON.stringify(cut(subscribed))}`;
  return [derived('rewritten', now, { ...known, filter: cut(subscribed), to: cut(subscribed), detail })];
}

/** The publisher, or any if none is named, exceeds a rate limit now, so that its messages wait in its connection. */
export function limitedCauses({ publisher, now, isPast }: DeriveQuestion, sessions: SessionIndex): DerivedCauses {
  const causes: DerivedCause[] = [];
  if (isPast) return { causes, isComplete: true };
  const one = publisher === undefined ? undefined : sessions.get(publisher);
  let left = MAX_SESSIONS;
  for (const { connection, client } of publisher === undefined ? sessions.values() : one === undefined ? [] : [one]) {
    if (left-- === 0) return { causes, isComplete: false };
    if (((connection?.reader.pauses ?? 0) & Pause.rate) === 0) continue;
    const { publishLimit, rateLimit } = client.agreement.zone;
    const limits = Object.entries({ publishLimit, rateLimit }).flatMap(([name, limit]) =>
      limit === undefined ? [] : [`\`${name}\` of its zone is ${limit.amount} in ${limit.perMs / 1000} s`]
    );
    const detail = limits.length === 0 ? 'that of all clients of its zone' : limits.join(', and ');
    causes.push(derived('publish_limited', now, { publisher: cut(client.clientId), detail }));
    if (causes.length === MAX_PUBLISHERS) return { causes, isComplete: false };
  }
  return { causes, isComplete: true };
}

/** The publisher has never connected, as far as it is recorded. */
export function unseenPublisher(
  { publisher, now, unseenSince }: DeriveQuestion,
  sessions: SessionIndex
): DerivedCause[] {
  if (publisher === undefined || sessions.get(publisher) !== undefined) return [];
  const since = unseenSince(publisher);
  if (since === undefined) return [];
  const detail = `records begin at ${new Date(since).toISOString()}`;
  return [derived('publisher_unknown', now, { publisher: cut(publisher), since, detail })];
}

/** The publisher has lost its connection and had no will, so nothing tells that it is gone. */
export function noWill({ topic, publisher, now, lostAt }: DeriveQuestion): DerivedCause[] {
  const since = lostAt();
  if (publisher === undefined || since === undefined) return [];
  const known = { topic: cut(topic), publisher: cut(publisher), since };
  return [derived('no_will', now, { ...known, detail: `it is away since ${new Date(since).toISOString()}` })];
}

/**
 * The will of a publisher that counts as connected: it is published when the broker notices that the connection is lost. The publisher may
 * just as well be there, so it explains a message only if nothing else does.
 */
export function connectedWill({ topic, publisher, now }: DeriveQuestion, sessions: SessionIndex): DerivedCause[] {
  const session = publisher === undefined ? undefined : sessions.get(publisher);
  const silentUntilMs = session?.timers.silentUntilMs;
  if (session === undefined || silentUntilMs === undefined || session.lifecycle.will?.message.topic !== topic)
    return [];
  const { client, ports } = session;
  const known = { topic: cut(topic), publisher: cut(client.clientId), isConnected: true };
  if (silentUntilMs === Infinity) {
    const detail =
      'the client counts as connected, and has no keep alive, so that a lost connection may not be noticed';
    return [derived('will_delayed', now, { ...known, detail })];
  }
  const connectedUntil = Math.round(now + silentUntilMs - ports.clock.monotonic());
  const time = new Date(connectedUntil).toISOString();
  const detail = `the client still counts as connected until ${time}, as its keep alive is ${client.keepalive} s`;
  return [derived('will_delayed', now, { ...known, connectedUntil, detail })];
}

/** The wills of clients that have lost their connection, and wait for their Will Delay. */
export function willCauses({ topic, publisher, now }: DeriveQuestion, sessions: SessionIndex): DerivedCauses {
  const one = publisher === undefined ? undefined : sessions.get(publisher);
  const causes: DerivedCause[] = [];
  let left = MAX_SESSIONS;
  for (const { lifecycle, client } of publisher === undefined ? sessions.values() : one === undefined ? [] : [one]) {
    if (left-- === 0) return { causes, isComplete: false };
    const { will } = lifecycle;
    if (will === undefined || will.dueMs === Infinity || will.message.topic !== topic) continue;
    const detail = `its Will Delay is ${will.delayMs / 1000} s`;
    causes.push(derived('will_delayed', now, { topic: cut(topic), publisher: cut(client.clientId), detail }));
    if (causes.length === MAX_WILLS) return { causes, isComplete: false };
  }
  return { causes, isComplete: true };
}

/** The reasons for which a client has got no retained message of a topic. @param matching its subscriptions that match the topic */
export function retainedCauses(
  { topic, now, subscribedAt, hasMissed }: DeriveQuestion,
  session: Session,
  matching: readonly Subscription[],
  retainer: Retainer,
  rights: ReceivingRights
): DerivedCause[] {
  const entry = retainer.messages.lookUp(topic);
  const { clientId } = session.client;
  const subscribed = subscribedAt(clientId);
  const known = { topic: cut(topic), clientId: cut(clientId), retainedAt: entry?.message.timestamp };
  const because = (detail: string) => [derived('retained_missing', now, { ...known, detail })];
  if (matching.length === 0) return [];
  if (entry === undefined) {
    const stopped = stoppedAt(retainer, subscribed);
    if (hasMissed(clientId) && stopped !== undefined) return because(stopped);
    return hasMissed(clientId) ? because('the topic has none now: it was never set, was deleted, or has expired') : [];
  }
  const single = matching.filter(({ filter }) => !isShared(filter));
  if (subscribed !== undefined && entry.message.timestamp > subscribed) {
    // it was delivered when it was published
    const isNewOnly = single.length > 0 && single.every(({ retainHandling }) => retainHandling === 1);
    return isNewOnly ? because('it was sent when it was published, and Retain Handling 1 does not repeat it') : [];
  }
  if (!retainer.isStarted) return because('the feature `retainer` is stopped');
  if (matching.every(({ filter }) => isShared(filter))) return because('shared subscriptions get no retained messages');
  if (single.every(({ retainHandling }) => retainHandling === 2))
    return because('none are sent with Retain Handling 2');
  if (single.every(({ retainHandling }) => retainHandling > 0))
    return because('with Retain Handling 1 they are sent only when the subscription is new');
  if (isWithheld(rights, entry.message, session.client))
    return because('its publisher may no longer publish it (option `retainedRights`)');
  const stopped = stoppedAt(retainer, subscribed);
  if (stopped !== undefined) return because(stopped);
  const isPending = session.outlet.feeds !== undefined;
  return isPending ? because('it waits until the client has taken earlier messages') : [];
}

/** A stop of the feature `retainer` in which a client subscribed. @param subscribed undefined: the time is not known */
function stoppedAt({ stops }: Retainer, subscribed: number | undefined): string | undefined {
  const stop = subscribed === undefined ? undefined : stops.at(subscribed, 0);
  if (stop === undefined) return undefined;
  const end = stop.until === undefined ? 'now' : new Date(stop.until).toISOString();
  return `the feature \`retainer\` was stopped when the client subscribed, from ${new Date(stop.from).toISOString()} until ${end}`;
}
