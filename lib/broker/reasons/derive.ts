// The causes that follow from the state of the broker when it is asked, and from the last examples of share groups.

import type { PastRights } from '../../access/rule-set.ts';
import { cut } from '../../monitor/cut-text.ts';
import { type DerivedCause, type DerivedCauses, derived } from '../../monitor/reasons/derived.ts';
import type { KeptRecord } from '../../monitor/reasons/kept-record.ts';
import type { ShareSamples } from '../../monitor/reasons/share-samples.ts';
import type { ReceivingRights } from '../../routing/receiving-rights.ts';
import type { Routing } from '../../routing/routing.ts';
import type { Subscription } from '../../routing/subscription.ts';
import type { Session } from '../../session/session.ts';
import { innerFilter, unmountedFilter } from '../../topics/topic.ts';
import type { Connectors } from '../configuration/connectors.ts';
import type { DelayedMessages } from '../features/delayed.ts';
import type { Retainer } from '../features/retainer.ts';
import type { TopicRewrite } from '../features/rewrite.ts';
import type { SessionIndex } from '../sessions/session-index.ts';
import { inboundCauses, withBridge } from './bridge-state.ts';
import { type Filtered, nearFilters, nearFiltersOf, reaches } from './near-filters.ts';
import { receiverState, shareCauses } from './receiver-state.ts';
import { type RuleSources, ruleCauses } from './rule-causes.ts';
import { publishingCauses } from './rule-outputs.ts';
import {
  connectedWill,
  delayedCauses,
  limitedCauses,
  noWill,
  retainedCauses,
  rewrittenCauses,
  unseenPublisher,
  willCauses
} from './topic-state.ts';

/** The parts of the broker from whose state causes are derived. */
export interface BrokerState {
  readonly sessions: SessionIndex;
  readonly routing: Routing;
  readonly access: { readonly deliveryRights: ReceivingRights & PastRights };
  readonly publishing: { readonly shareSamples: ShareSamples };
  readonly rewrites: TopicRewrite;
  readonly delayed: DelayedMessages;
  readonly retainer: Retainer;
  readonly kept: RuleSources & { readonly connectors: Pick<Connectors, 'get' | 'feeding'> };
}

/** The question, with names in full length. */
export interface DeriveQuestion {
  /** The topic name as it was written. */
  readonly written: string;
  /** The topic name as messages have it: rewritten, and with the mount point of the publisher. */
  readonly topic: string;
  /** The mount point of the publisher; '' if it has none, or is not known. */
  readonly publisherMount: string;
  /** Client id of the publisher; undefined: any. */
  readonly publisher: string | undefined;
  /** Client id of the receiver; undefined: any. */
  readonly clientId: string | undefined;
  /** Id of the rule that should have received the message; undefined: none. */
  readonly rule: string | undefined;
  /** Time of the message, and of the question, in milliseconds since 1970. */
  readonly at: number;
  readonly now: number;
  /** See `CheckedQuestion.precision`. */
  readonly precision: number;
  /** True if the message was published some time ago, so that the state may have been another one. */
  readonly isPast: boolean;
  /** A time after the message at which the receiver may have had other filters than now; undefined: those of now. */
  readonly formerTime: number | undefined;
  /** When a client has subscribed to the topic, in milliseconds since 1970; undefined: it is not known. */
  subscribedAt(clientId: string): number | undefined;
  /** Tells whether a message of the topic was published before a client subscribed to it. */
  hasMissed(clientId: string): boolean;
  /** Tells whether a client had a subscription to the topic between two times; true if that is not known. */
  hadSubscription(clientId: string, since: number, until: number): boolean;
  /** The records of a rule that exists, the latest first. */
  recordsOfRule(rule: string): readonly KeptRecord[];
  /** Time of the last message of the topic without a subscriber, in milliseconds since 1970; undefined: none is recorded. */
  lastMissedAt(): number | undefined;
  /** The filters of the subscriptions that the receiver had at a time, or at that of the question, as far as it is known. */
  formerFilters(at?: number): readonly string[];
  /** The mount points of zones as they are configured, with `%c` and `%u`. */
  mountpoints(): readonly string[];
  /** When the publisher lost its connection without a will, if it is still away, in milliseconds since 1970; undefined: it did not. */
  lostAt(): number | undefined;
  /** The time since which a client would be known, if it has never connected since then, in milliseconds since 1970. */
  unseenSince(clientId: string | undefined): number | undefined;
  /** When the session of the receiver has ended, in milliseconds since 1970; undefined: it is not known. */
  endedAt(): number | undefined;
}

/** Maximum number of subscriptions of one session that are compared with the topic (about 5 ms). */
const MAX_SUBSCRIPTIONS = 100_000;
/** Maximum number of filters that are named. */
const MAX_FILTERS = 3;
/** Maximum number of receivers of a topic whose state is described if the question names none. */
const MAX_RECEIVERS = 10;

const NOTHING: DerivedCauses = { causes: [], isComplete: true };

/** Find the causes that follow from the state of the broker. */
export async function deriveCauses(question: DeriveQuestion, state: BrokerState): Promise<DerivedCauses> {
  const delayed = delayedCauses(question, state.delayed);
  const wills = willCauses(question, state.sessions);
  const found = await ofReceiver(question, state);
  const limited = limitedCauses(question, state.sessions);
  const isNamed = question.publisher !== undefined;
  const waiting = [
    ...delayed.causes,
    ...wills.causes,
    ...(isNamed ? limited.causes : []),
    ...unseenPublisher(question, state.sessions)
  ];
  const isFound = question.rule !== undefined || waiting.length + found.causes.length > 0;
  const publishing = isFound ? NOTHING : publishingCauses(question, state.kept);
  return {
    causes: [...waiting, ...found.causes],
    otherwise:
      waiting.length > 0
        ? []
        : [
            ...publishing.causes,
            ...(isFound ? [] : inboundCauses(question, state.kept.connectors)),
            ...(isNamed ? [] : limited.causes), // they may publish other topics
            ...(found.otherwise ?? []),
            ...connectedWill(question, state.sessions),
            ...noWill(question)
          ],
    isComplete:
      delayed.isComplete && wills.isComplete && limited.isComplete && found.isComplete && publishing.isComplete
  };
}

/** The causes for the rule or the client that should have received the message, or for any. */
function ofReceiver(question: DeriveQuestion, state: BrokerState): Promise<DerivedCauses> {
  const { rule, clientId } = question;
  if (rule !== undefined) return ruleCauses({ ...question, rule }, state.kept);
  return clientId === undefined ? ofAny(question, state) : ofOne(question, state);
}

/** The causes if no receiver is named. */
async function ofAny(question: DeriveQuestion, state: BrokerState): Promise<DerivedCauses> {
  const { routing, rewrites } = state;
  const { targets, groups } = routing.peek(question.topic);
  if (targets.length + groups.length === 0) {
    const withheld = routing.withheld(question.topic);
    if (withheld.length > 0) return stateOfAll([withheld], question, state);
    const near = nearFilters(question, routing);
    const rewritten = rewrittenCauses(question, rewrites, (topic) => routing.hasReceivers(topic));
    return { causes: [...rewritten, ...near.causes], isComplete: near.isComplete };
  }
  return stateOfAll([targets, ...groups.map(({ members }) => members)], question, state);
}

/** The causes in the state of receivers: of the first ones, if they are too many. */
async function stateOfAll(
  lists: readonly (readonly Subscription[])[],
  question: DeriveQuestion,
  state: BrokerState
): Promise<DerivedCauses> {
  const causes: DerivedCause[] = [];
  const clientIds = new Set<string>();
  for (const list of lists)
    for (let at = 0; at < list.length && clientIds.size <= MAX_RECEIVERS; at++) clientIds.add(clientIdOf(list[at]));
  let isComplete = clientIds.size <= MAX_RECEIVERS;
  for (const clientId of [...clientIds].slice(0, MAX_RECEIVERS)) {
    const session = state.sessions.get(clientId);
    if (session === undefined) continue;
    const found = await stateOf(session, question, state);
    causes.push(...found.causes);
    isComplete &&= found.isComplete;
  }
  return { causes, isComplete };
}

function clientIdOf({ subscriber }: Subscription): string {
  return subscriber.receiver?.clientId ?? '';
}

/** The causes for the receiver that is named. */
async function ofOne(question: DeriveQuestion, state: BrokerState): Promise<DerivedCauses> {
  const { clientId = '', now } = question;
  const session = state.sessions.get(clientId);
  if (session === undefined) {
    const receiver = { clientId };
    const former = question.formerFilters().map((filter) => ({ filter, subscriber: { mountpoint: '', receiver } }));
    const { causes, isComplete } = nearFiltersOf(question, former);
    const known = { topic: cut(question.topic), clientId: cut(clientId) };
    // the broker does not know the mount point of a client that is gone, so groups with one are not found
    const matching = former.filter((one) => reaches(one, question.topic));
    const shared = { ...question, known, matching, until: question.endedAt() ?? -Infinity };
    const { causes: others } = shareCauses(shared, { routing: state.routing, samples: state.publishing.shareSamples });
    const began = unseen(question.unseenSince(clientId));
    const gone = derived('offline_no_session', now, { clientId: known.clientId, ...began });
    return { causes: [...others, ...causes, gone], isComplete };
  }
  const { formerTime } = question;
  const had = formerTime === undefined ? undefined : formerlyOf(question, session, formerTime);
  const near =
    had === undefined ? nearFiltersOf(question, session.subscriptions.values()) : formerlyNear(question, session, had);
  const hasReceiver = (topic: string) => matchingOf(session, topic).length > 0;
  const hadReceiver = (topic: string) => had?.some((one) => reaches(one, topic)) ?? hasReceiver(topic);
  const isLate = hasReceiver(question.topic) && !hadReceiver(`${session.client.mountpoint}${question.written}`);
  const rewritten = isLate ? [] : rewrittenCauses(question, state.rewrites, hadReceiver, clientId);
  const found = await stateOf(session, question, state);
  const causes = [...rewritten, ...near.causes, ...found.causes];
  if (causes.length === 0 && !hasReceiver(question.topic)) causes.push(noSubscription(session, question));
  const isComplete = near.isComplete && found.isComplete && session.subscriptions.size <= MAX_SUBSCRIPTIONS;
  return { causes, otherwise: found.otherwise ?? [], isComplete };
}

/** The evidence that a client, of whose earlier sessions nothing is known, has not connected since a time. */
function unseen(since: number | undefined) {
  if (since === undefined) return {};
  const began = new Date(since).toISOString();
  return {
    detail: `it has not connected since the broker started at ${began}, and sessions that are not kept end with the broker`
  };
}

/** The subscriptions that a client had at a time, and those that it may have had. */
function formerlyOf(question: DeriveQuestion, { subscriptions, client }: Session, time: number): readonly Filtered[] {
  const { clientId, mountpoint } = client;
  const isLate = (question.subscribedAt(clientId) ?? -Infinity) > time;
  const templates = question.mountpoints();
  const former = question.formerFilters(time).map((filter) => {
    const isSame = subscriptions.get(filter) !== undefined;
    const mounted = isSame ? mountpoint : (formerMount(innerFilter(filter), clientId, templates) ?? mountpoint);
    return { filter, subscriber: { mountpoint: mounted, receiver: { clientId } } };
  });
  return [...former, ...[...subscriptions.values()].filter((one) => !(isLate && reaches(one, question.topic)))];
}

/** The mount point of a zone with which a filter begins, whatever the user name of that time; undefined: there is none. */
function formerMount(filter: string, clientId: string, templates: readonly string[]): string | undefined {
  const levels = filter.split('/');
  for (const template of templates) {
    const parts = template.split('/');
    const rest = parts.pop(); // '' if it ends with a slash, as it should
    const isEach = parts.every((part, at) => part === '%u' || part.replaceAll('%c', clientId) === levels[at]);
    if (rest === '' && isEach && levels.length > parts.length) return `${levels.slice(0, parts.length).join('/')}/`;
  }
  return undefined;
}

/** The filters that nearly match the topic, of a client that may have had others at the time of the message. @param had its filters */
function formerlyNear(question: DeriveQuestion, session: Session, had: readonly Filtered[]): DerivedCauses {
  const { subscriptions, client } = session;
  const { mountpoint } = client;
  const { causes, isComplete } = nearFiltersOf(question, had);
  const marked = causes.map((cause) => {
    const { filter, detail, side, mountpoint: mounted } = cause.evidence;
    const hasMoved = side === 'receiver' && mounted !== cut(mountpoint);
    if (!hasMoved && subscriptions.get(`${mountpoint}${filter}`) !== undefined) return cause;
    const then = hasMoved ? 'it had this mount point at that time' : 'it had this filter at that time';
    return { ...cause, evidence: { ...cause.evidence, detail: detail === undefined ? then : `${detail}; ${then}` } };
  });
  return { causes: marked, isComplete };
}

function noSubscription(session: Session, { topic, clientId = '', now }: DeriveQuestion): DerivedCause {
  const subscriptions = session.subscriptions.size;
  const filters: string[] = [];
  for (const { filter } of session.subscriptions.values()) {
    filters.push(JSON.stringify(cut(unmountedFilter(filter, session.client.mountpoint))));
    if (filters.length === MAX_FILTERS) break;
  }
  const rest = subscriptions > filters.length ? ` and ${subscriptions - filters.length} others` : '';
  const detail = subscriptions === 0 ? 'it has no subscriptions' : `its subscriptions are ${filters.join(', ')}${rest}`;
  return derived('no_subscriber', now, {
    topic: cut(topic),
    clientId: cut(clientId),
    subscriptions,
    detail: cut(detail)
  });
}

async function stateOf(session: Session, question: DeriveQuestion, state: BrokerState): Promise<DerivedCauses> {
  const matching = matchingOf(session, question.topic);
  const { routing, access, publishing } = state;
  const sources = { routing, rights: access.deliveryRights, samples: publishing.shareSamples };
  const own = await receiverState(session, { ...question, matching }, sources);
  const causes = withBridge(own.causes, session, question, matching.length > 0, state.kept.connectors);
  const found = { ...own, causes };
  const retained = retainedCauses(question, session, matching, state.retainer, access.deliveryRights);
  const isQos = ({ code }: DerivedCause) => Number(code === 'qos_lowered'); // it concerns most subscriptions, so it is last
  if (session.outlet.feeds !== undefined) return { ...found, causes: [...found.causes, ...retained] }; // some still wait
  const otherwise = [...(found.otherwise ?? []), ...retained].sort((one, other) => isQos(one) - isQos(other));
  return { ...found, otherwise };
}

/** The subscriptions of a session that match a topic. */
function matchingOf(session: Session, topic: string): Subscription[] {
  const found: Subscription[] = [];
  let left = MAX_SUBSCRIPTIONS;
  for (const subscription of session.subscriptions.values()) {
    if (left-- === 0) break;
    if (reaches(subscription, topic)) found.push(subscription);
  }
  return found;
}
