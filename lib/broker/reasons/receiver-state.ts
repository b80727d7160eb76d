// The causes that are in the receiver: what its session is doing now. A message is known to wait only if it is found in
// the queue or in flight; of a long queue only a part is read, and the answer tells so.

import type { PastRights } from '../../access/rule-set.ts';
import { cut } from '../../monitor/cut-text.ts';
import { type DerivedCause, type DerivedCauses, derived } from '../../monitor/reasons/derived.ts';
import type { ShareSamples } from '../../monitor/reasons/share-samples.ts';
import { hasExpired } from '../../packets/message-expiry.ts';
import type { ReceivingRights } from '../../routing/receiving-rights.ts';
import type { Routing } from '../../routing/routing.ts';
import type { Subscription } from '../../routing/subscription.ts';
import { flightsWithMessages, queuePage } from '../../session/messages/queue-view.ts';
import type { Session } from '../../session/session.ts';
import { parseSharedFilter } from '../../topics/topic.ts';
import type { Filtered } from './near-filters.ts';

/** Number of queued messages that are read at a time, and in all. */
const QUEUE_PAGE = 100;
const MAX_QUEUED = 2_000;
/** The question about a receiver. */
interface StateQuestion {
  /** The topic name, with mount point, as messages have it. */
  readonly topic: string;
  /** Client id of the publisher; undefined: any. */
  readonly publisher: string | undefined;
  /** The subscriptions of the receiver that match the topic. */
  readonly matching: readonly Subscription[];
  /** Time of the message, and of the question, in milliseconds since 1970. */
  readonly at: number;
  readonly now: number;
  /** See `CheckedQuestion.precision`. */
  readonly precision: number;
  /** Tells whether a client had a subscription to the topic between two times; true if that is not known. */
  hadSubscription(clientId: string, since: number, until: number): boolean;
}

/** The parts of the broker that know about a receiver. */
interface StateSources {
  readonly routing: Pick<Routing, 'groupOf'>;
  readonly rights: ReceivingRights & PastRights;
  readonly samples: ShareSamples;
}

/** The question with the session, and the evidence of all causes. */
interface Matched extends StateQuestion {
  readonly session: Session;
  readonly known: { readonly topic: string; readonly clientId: string };
}

/** A question about the share groups of a client. */
interface ShareQuestion extends Pick<Matched, 'known' | 'publisher' | 'now'> {
  readonly matching: readonly Filtered[];
  /** When the client has left its groups, in milliseconds since 1970; default: it has not. */
  readonly until?: number;
}

/** Find the causes in the state of a session. */
export async function receiverState(
  session: Session,
  question: StateQuestion,
  sources: StateSources
): Promise<DerivedCauses> {
  const known = { topic: cut(question.topic), clientId: cut(session.client.clientId) };
  const matched: Matched = { ...question, session, known };
  const waiting = await waitingCauses(matched);
  const share = shareCauses(matched, sources);
  const right = rightCauses(matched, sources.rights);
  const causes = [
    ...right.causes,
    ...localCauses(matched),
    ...share.causes,
    ...waiting.causes,
    ...offlineCauses(matched)
  ];
  return {
    causes,
    otherwise: [...share.otherwise, ...qosCauses(matched)],
    isComplete: right.isComplete && waiting.isComplete
  };
}

// -------------------------------------------------------------------------------------------------------- subscriptions

/**
 * The client may not receive the topic any longer, or might not at the time of the question: it is left out when the receivers of the topic
 * are found. Only what the rules of the broker decide is known of earlier times.
 */
function rightCauses(matched: Matched, rights: ReceivingRights & PastRights): DerivedCauses {
  const { session, matching, topic, at, precision, now, known, hadSubscription } = matched;
  if (matching.length === 0) return { causes: [], isComplete: true };
  const { clientId } = session.client;
  const because = (detail: string, more = {}) =>
    derived('right_withdrawn', now, { ...known, filter: cut(matching[0].filter), ...more, detail });
  if (rights.isActive && matching.every((subscription) => rights.isRevoked(subscription)))
    return { causes: [because('its subscription is no longer allowed')], isComplete: true };
  const { times, knownSince } = rights.denials(session.client, topic);
  const isComplete =
    knownSince === -Infinity ||
    (precision === Infinity ? !hadSubscription(clientId, -Infinity, knownSince) : knownSince <= at - precision);
  const found = times.findLast(({ since, until }) =>
    precision === Infinity
      ? until === Infinity || hadSubscription(clientId, since, until)
      : since < at + precision && until > at - precision
  );
  if (found === undefined) return { causes: [], isComplete };
  if (found.until === Infinity) return { causes: [because(found.detail)], isComplete };
  const begin = Number.isFinite(found.since) ? `from ${timeOf(found.since)} ` : '';
  const detail = `${found.detail}, in use ${begin}until ${timeOf(found.until)}`;
  const deniedUntil = found.until;
  const more = precision === Infinity ? { deniedUntil, until: deniedUntil } : { deniedUntil };
  return { causes: [because(detail, more)], isComplete };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function localCauses({ session, matching, publisher, now, known }: Matched): DerivedCause[] {
  if (publisher !== session.client.clientId || matching.length === 0) return [];
  const { ignoreLoopDeliver } = session.client.agreement.zone;
  if (!ignoreLoopDeliver && !matching.every(({ noLocal }) => noLocal)) return [];
  const detail = ignoreLoopDeliver
    ? 'the option `ignoreLoopDeliver` of its zone is set'
    : 'it subscribed with No Local';
  return [derived('no_local', now, { ...known, publisher, filter: cut(matching[0].filter), detail })];
}

/** The subscription has QoS 0: a message that is lost with the connection is not sent again. */
function qosCauses({ session, matching, at, now, known }: Matched): DerivedCause[] {
  const { client, outlet } = session;
  const isUpgraded = outlet.agreement.zone.upgradeQos;
  if (isUpgraded || matching.length === 0 || client.connectedAt === undefined || client.connectedAt > at) return [];
  if (matching.some(({ qos }) => qos > 0)) return [];
  const detail = 'a message that is lost with a connection is not sent again';
  return [derived('qos_lowered', now, { ...known, filter: cut(matching[0].filter), grantedQos: 0, detail })];
}

/**
 * The share groups of the client in whose last examples another member received a message of the topic; in `otherwise` those without an
 * example of the topic, because only some messages are examples.
 */
export function shareCauses(
  { matching, known, publisher, now, until = Infinity }: ShareQuestion,
  { routing, samples }: Pick<StateSources, 'routing' | 'samples'>
) {
  const causes: DerivedCause[] = [];
  const otherwise: DerivedCause[] = [];
  for (const { filter, subscriber } of matching) {
    const shared = parseSharedFilter(filter);
    const group = typeof shared === 'object' ? routing.groupOf({ filter, subscriber }) : undefined;
    if (typeof shared !== 'object' || group === undefined) continue;
    const evidence = { ...known, filter: cut(shared.filter), group: cut(shared.group), members: group.members.length };
    const name = `group ${JSON.stringify(evidence.group)}`;
    const found = samples
      .of(group)
      .filter((one) => one.topic === known.topic && (publisher === undefined || one.publisher === cut(publisher)))
      .filter(({ at }) => Math.round(at) <= until);
    const others = found.filter(({ member }) => member !== known.clientId);
    if (others.length > 0) {
      const [{ at, member }] = others;
      const latest = `the latest example of ${name} went to ${JSON.stringify(member)}`;
      const detail = found.length === 1 ? latest : `${latest}, and ${others.length} of ${found.length} to others`;
      const sampled = { code: 'share_member', kind: 'sampled', at, count: others.length } as const;
      causes.push({ ...sampled, evidence: { ...evidence, member, detail } });
    } else if (found.length === 0 && evidence.members > 1 && until === Infinity) {
      const detail = `${name} has ${evidence.members} members, and no example of the topic is kept`;
      otherwise.push(derived('share_member', now, { ...evidence, detail }));
    }
  }
  return { causes, otherwise };
}

// ------------------------------------------------------------------------------------------------------------- messages

/** The messages of the topic that wait for the client, in its queue and in flight. */
async function waitingCauses(matched: Matched): Promise<DerivedCauses> {
  const { session, topic, publisher, now, known } = matched;
  const { outlet } = session;
  const causes: DerivedCause[] = [];
  const isOfQuestion = (message: { readonly topic: string; readonly clientId: string } | undefined) =>
    message !== undefined && message.topic === topic && (publisher === undefined || message.clientId === publisher);
  const flights = await flightsWithMessages(session);
  const sent = flights.filter(({ awaits }) => awaits !== 'pubcomp');
  const flying = sent.filter(({ message }) => isOfQuestion(message));
  const unknown = matched.matching.some(({ qos }) => qos > 0)
    ? sent.filter(({ message }) => message === undefined)
    : [];
  const queued = await queuedOf(session, isOfQuestion);
  if (queued.expired > 0) {
    const detail = 'it has expired in the queue, from which it is removed when the client connects';
    causes.push(derived('expired', now, { ...known, detail }, queued.expired));
  }
  const { isOnline } = outlet;
  const oldest = flights.find(({ message }) => message !== undefined)?.message?.timestamp;
  const flight = {
    inflight: flights.length,
    receiveMaximum: outlet.agreement.window,
    awaitingPuback: flights.filter(({ awaits }) => awaits === 'puback').length,
    awaitingPubrec: flights.filter(({ awaits }) => awaits === 'pubrec').length,
    awaitingPubcomp: flights.filter(({ awaits }) => awaits === 'pubcomp').length,
    oldestSince: oldest
  };
  const isFull = isOnline && outlet.room() === 0;
  const awaited = flying.length || (isFull ? queued.count : 0) || unknown.length;
  if (isOnline && awaited > 0) {
    const ofTopic = unknown.length > 0 ? 'their topics are not kept' : `${flying.length} of the topic have been sent`;
    const what = isFull ? 'no further one may be sent' : ofTopic;
    const detail = `${flights.length} of at most ${flight.receiveMaximum} wait for its acknowledgement, ${what}`;
    causes.push(derived('awaiting_acknowledgements', now, { ...known, ...flight, detail }, awaited));
  }
  const count = queued.count + (isOnline ? 0 : flying.length);
  if (count > 0) {
    const { waiting = 0 } = outlet.queue ?? {};
    const { maxMqueueLen } = outlet.agreement.zone;
    const isBlocked = outlet.writer?.isBlocked === true;
    const place = queued.position === undefined ? '' : `, the first at place ${queued.position}`;
    const reading = isBlocked ? ', and the client does not read' : '';
    const detail = `${count} of the topic among ${waiting} messages${place}${reading}`;
    const evidence = { waiting, maxMqueueLen, position: queued.position, since: queued.since, isBlocked, detail };
    const { disconnectedAt } = session.client;
    causes.push(
      isOnline
        ? derived('queued', now, { ...known, ...evidence }, count)
        : derived('offline_queued', now, { ...known, ...evidence, disconnectedAt }, count)
    );
  }
  if (queued.qos !== undefined) {
    const { published, granted } = queued.qos;
    const detail = `a message of QoS ${published} waits`;
    causes.push(derived('qos_lowered', now, { ...known, publishedQos: published, grantedQos: granted, detail }));
  }
  return { causes, isComplete: queued.isComplete && sent.every(({ message }) => message !== undefined) };
}

/** The messages of a question in the queue of a session. */
interface QueuedOf {
  readonly count: number;
  /** Number of others, which have expired and are still in the queue. */
  readonly expired: number;
  /** Place of the first one in the queue; the next message to be sent has 1. */
  readonly position: number | undefined;
  /** When the broker accepted it, in milliseconds since 1970. */
  readonly since: number | undefined;
  /** The QoS values of a message that is sent with a lower one than it was published with. */
  readonly qos: { readonly published: number; readonly granted: number } | undefined;
  /** False: the queue is long, or could not be read. */
  readonly isComplete: boolean;
}

async function queuedOf(
  session: Session,
  isOfQuestion: (message: { readonly topic: string; readonly clientId: string }) => boolean
): Promise<QueuedOf> {
  const nowMs = session.ports.clock.monotonic();
  let [count, expired, read] = [0, 0, 0];
  let [position, since]: (number | undefined)[] = [];
  let qos: QueuedOf['qos'];
  let cursor: string | undefined;
  do {
    let page: Awaited<ReturnType<typeof queuePage>>;
    try {
      page = await queuePage(session, { limit: QUEUE_PAGE, cursor });
    } catch {
      return { count, expired, position, since, qos, isComplete: false }; // the store is closed, or cannot be read
    }
    for (const { message, qos: granted } of page.entries) {
      read++;
      if (!isOfQuestion(message)) continue;
      if (hasExpired(message, nowMs)) {
        expired++;
        continue;
      }
      count++;
      position ??= read;
      since ??= message.timestamp;
      if (granted < message.qos) qos ??= { published: message.qos, granted };
    }
    ({ cursor } = page);
  } while (cursor !== undefined && read < MAX_QUEUED);
  return { count, expired, position, since, qos, isComplete: cursor === undefined };
}

// ------------------------------------------------------------------------------------------------------------- offline

/** Messages of QoS 0 are not queued for a client that is away. */
function offlineCauses({ session, matching, at, now, known }: Matched): DerivedCause[] {
  const { client, outlet } = session;
  const { disconnectedAt } = client;
  const { mqueueStoreQos0, upgradeQos } = outlet.agreement.zone;
  if (outlet.isOnline || mqueueStoreQos0 || matching.length === 0) return [];
  if (disconnectedAt !== undefined && disconnectedAt > at) return [];
  const grantedQos = Math.max(...matching.map(({ qos }) => qos));
  if (grantedQos > 0 && upgradeQos) return [];
  const detail =
    grantedQos === 0
      ? 'it is offline, its subscription has QoS 0, and `mqueueStoreQos0` is off'
      : 'it is offline, and `mqueueStoreQos0` is off: only messages of QoS 1 and 2 are queued';
  const evidence = { ...known, filter: cut(matching[0].filter), grantedQos, disconnectedAt, detail };
  return [derived('offline_qos0', now, evidence)];
}
