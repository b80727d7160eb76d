// The answer to the question why a message did not arrive. Recorded causes are those of the log whose client, publisher,
// topic and rule fit the question (`found-records.ts`), derived ones follow from the state now (`derive.ts`), so they are
// of that time. `cause-order.ts` puts both in order.

import { InvalidInput } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import { NO_WILL } from '../../events/reasons.ts';
import { cut } from '../../monitor/cut-text.ts';
import type { ArrivalAnswer, ArrivalQuestion } from '../../monitor/reasons/arrival-question.ts';
import type { DerivedCause, DerivedCauses } from '../../monitor/reasons/derived.ts';
import type { KeptRecord } from '../../monitor/reasons/kept-record.ts';
import { checkTopicName, mountedName } from '../../topics/topic.ts';
import { parseDelayed } from '../features/delayed.ts';
import type { Services } from '../services.ts';
import { derivedOf, inOrder, MAX_CAUSES, type TimedCause } from './cause-order.ts';
import {
  type ClientState,
  hasLost,
  isSubscribed,
  type Moment,
  stateAt,
  stateBefore,
  statesBetween,
  statesOf
} from './client-states.ts';
import { type BrokerState, deriveCauses } from './derive.ts';
import {
  type CheckedQuestion,
  type FoundRecord,
  fittingRecords,
  hasLostSubscription,
  hasUnknownLoss,
  isBefore,
  keysOf,
  lastMissedAt,
  missedSince,
  precisionOf,
  recordedCause,
  subscribedAt,
  wasRefused,
  wasWithheld
} from './found-records.ts';
import { ruleCreatedAt } from './rule-causes.ts';

const NAMES: readonly (keyof ArrivalQuestion)[] = ['at', 'clientId', 'publisher', 'rule', 'topic'];

/** Maximum number of records that are examined for connections without a client id, and of those that are answered. */
const MAX_EXAMINED = 10_000;
const MAX_UNNAMED = 10;

/** A topic in the forms that it has on its way through the broker. */
interface TopicForms {
  readonly written: string;
  readonly rewritten: string;
  readonly delayed: string;
  /** That of messages. */
  readonly topic: string;
  readonly publisherMount: string;
}

interface FoundRecords {
  readonly records: readonly FoundRecord[];
  /** False: not all records that are kept were examined. */
  readonly isAll: boolean;
}

const NONE: FoundRecords = { records: [], isAll: true };

/** Answers why messages did not arrive. */
export class Arrival {
  readonly #services: Services;
  readonly #state: BrokerState;
  /** When the log began, in milliseconds since 1970. */
  readonly #since: number;

  constructor(services: Services, state: BrokerState) {
    this.#services = services;
    this.#state = state;
    this.#since = services.clock.now();
  }

  /** @throws InvalidInput OPTION_UNKNOWN (with a suggestion), OPTION_INVALID, TOPIC_NAME_INVALID */
  async explain(given: ArrivalQuestion): Promise<ArrivalAnswer> {
    const forms = this.#forms(given);
    const question = this.#check(given, forms);
    const all = this.#recordsOf(question);
    const unnamed = this.#unnamed(question, given.clientId, all);
    const records = [...fittingRecords(all, question), ...unnamed.records];
    const missed = this.#missed(all, question, forms[0].topic);
    const recorded = records.flatMap((one) => recordedCause(one, question, missed));
    const derived = await this.#derived(given, question, forms, missed, () => lastMissedAt(all, question));
    const hasLost = hasLostSubscription(all, question);
    const states = derived.causes.filter((one) => !isRecorded(one, recorded) && !(hasLost && isGone(one)));
    const isMissed = given.clientId === undefined || missed !== undefined;
    const found = [...withoutGeneral(recorded, isMissed, given, states), ...states.map((one) => derivedOf(one))];
    const causes = inOrder(found, derived.otherwise ?? [], question);
    const isKnown = !hasLost && !hasUnknownLoss(all, question) && this.#hasRecordsOf(question);
    const isCertain = recorded.every(({ cause }) => cause.evidence.isCertain !== false);
    const isAll = unnamed.isAll && derived.isComplete && causes.length <= MAX_CAUSES;
    const isComplete = isAll && isKnown && isCertain;
    const { maxBytes } = this.#services.reasons;
    const known = maxBytes === 0 ? {} : { knownSince: this.#knownSince(question) };
    return { isComplete, ...known, causes: causes.slice(0, MAX_CAUSES) };
  }

  /** The forms of the topic: the second one if the receiver has a mount point, and the publisher perhaps the same one. */
  #forms(given: ArrivalQuestion): readonly [TopicForms, TopicForms?] {
    checkObject(given, 'question');
    checkNames(given, NAMES, 'why');
    const { topic, clientId, publisher, rule, at } = given;
    const fault = typeof topic === 'string' ? checkTopicName(topic) : 'the topic must be a string';
    if (fault !== undefined) throw new InvalidInput('TOPIC_NAME_INVALID', 'topic', 'a topic name', topic, fault);
    for (const name of ['clientId', 'publisher', 'rule'] as const)
      if (given[name] !== undefined && typeof given[name] !== 'string')
        throw new InvalidInput('OPTION_INVALID', name, 'a string', given[name]);
    if (at !== undefined && !Number.isFinite(at))
      throw new InvalidInput('OPTION_INVALID', 'at', 'milliseconds since 1970', at);
    const { sessions } = this.#state;
    const sender = sessions.get(publisher ?? '')?.client;
    const plain = this.#formsOf(topic, sender?.mountpoint ?? '');
    const mountpoint = sessions.get(clientId ?? '')?.client.mountpoint ?? '';
    const isAssumed = rule === undefined && sender === undefined && mountpoint !== '' && !topic.startsWith(mountpoint);
    return isAssumed ? [this.#formsOf(topic, mountpoint), plain] : [plain];
  }

  #check({ topic, clientId, publisher, rule, at }: ArrivalQuestion, forms: readonly [TopicForms, TopicForms?]) {
    const now = this.#services.clock.now();
    const { subscriptions } = this.#state.sessions.get(clientId ?? '') ?? {};
    const topics = forms.flatMap((form) => {
      const { written = topic, rewritten = topic, delayed = topic, topic: last = topic } = form ?? {};
      return [written, rewritten, delayed, last];
    });
    const question: CheckedQuestion = {
      topic,
      topics: [...new Set(topics.map(cut))],
      clientId: clientId === undefined ? undefined : cut(clientId),
      publisher: publisher === undefined ? undefined : cut(publisher),
      rule: rule === undefined ? undefined : cut(rule),
      at: Math.min(at ?? now, now), // the clock of the computer that asks may be fast
      precision: at === undefined ? Infinity : precisionOf(at),
      now,
      states: clientId === undefined ? [] : this.#statesOf(clientId),
      hasOtherReceivers: () => this.#hasReceivers(forms[0].topic, clientId),
      hasFilter: (filter) => subscriptions?.get(filter) !== undefined,
      subscribedAt: () => this.#subscribedAt(question.clientId ?? '', question.topics),
      delayedAgainAt: (at) => this.#state.delayed.stops.at(at, 0)?.until,
      retainedAt: () => this.#state.retainer.messages.lookUp(forms[0].topic)?.message.timestamp
    };
    return question;
  }

  /** The forms of a topic. It may be given with the mount point of its publisher. */
  #formsOf(written: string, publisherMount: string): TopicForms {
    const rewritten = this.#state.rewrites.apply(written, 'publish');
    const isMounted = publisherMount !== '' && rewritten.startsWith(publisherMount);
    const delayed = isMounted ? rewritten : (mountedName(rewritten, publisherMount) ?? rewritten);
    const delay = parseDelayed(delayed, this.#services.clock.now() / 1000);
    const topic = typeof delay === 'object' ? delay.topic : delayed;
    return { written, rewritten, delayed, topic, publisherMount };
  }

  /** The first message of the topic without a subscriber. A receiver has missed none if it is retained. */
  #missed(all: readonly KeptRecord[], question: CheckedQuestion, topic: string): KeptRecord | undefined {
    const missed = missedSince(all, question);
    if (missed === undefined || question.clientId === undefined) return missed;
    if (wasRefused(missed, all, question) || wasWithheld(missed, all, question)) return undefined;
    if (this.#wasDenied(missed, question.clientId, topic)) return undefined;
    const retained = this.#state.retainer.messages.lookUp(topic);
    const retainedAt = Math.round(retained?.message.timestamp ?? -Infinity);
    const wasRetained = all.some(({ row, topic: lost }) => row.isRetainedLoss === true && lost === topic);
    // a later retained message does not tell whether an earlier one was retained
    const isLate = !wasRetained && retainedAt > (question.subscribedAt()?.since ?? Infinity);
    return retainedAt >= missed.at && !isLate ? undefined : missed;
  }

  /** Tell whether the access rules denied the topic to a client at the time of a message, so that it was left out of its receivers. */
  #wasDenied({ since: at }: KeptRecord, clientId: string, topic: string): boolean {
    const client = this.#state.sessions.get(clientId)?.client;
    if (client === undefined) return false;
    const { times } = this.#state.access.deliveryRights.denials(client, topic);
    return times.some(({ since, until }) => since <= at && at <= until);
  }

  /** The causes in the state of the broker. The mount point of an unknown publisher is named only if nothing else is found. */
  async #derived(
    { publisher, clientId, rule }: ArrivalQuestion,
    question: CheckedQuestion,
    [form, other]: readonly [TopicForms, TopicForms?],
    missed: Moment | undefined,
    lastMissedAt: () => number | undefined
  ): Promise<DerivedCauses> {
    const given = {
      lastMissedAt,
      ...{ publisher, clientId, rule, now: question.now, at: question.at, precision: question.precision },
      isPast: question.now - question.at > question.precision,
      formerTime: this.#formerTime(question, missed),
      subscribedAt: (id: string) => this.#subscribedAt(id, question.topics)?.since,
      hasMissed: (id: string) => {
        const subscribed = this.#subscribedAt(id, question.topics);
        if (subscribed && hasLost(stateBefore(this.#statesOf(id), subscribed), question.topics)) return false;
        if ((subscribed?.since ?? Infinity) < question.at - question.precision) return false; // the message was sent to it
        return isBefore(missed, subscribed) || (subscribed?.since ?? -Infinity) > question.at + question.precision;
      },
      hadSubscription: (id: string, since: number, until: number) =>
        statesBetween(this.#statesOf(id), since, until).some((one) => isSubscribed(one, question.topics) !== false),
      recordsOfRule: (id: string) => this.#ofPresentRules(this.#services.reasons.records({ rule: id })),
      formerFilters: (at?: number) => this.#formerFilters(question, at),
      mountpoints: () => [...this.#services.settings.zones.values()].flatMap(({ mountpoint = '' }) => mountpoint || []),
      endedAt: () => this.#endedAt(question),
      lostAt: () => this.#lostAt(question),
      unseenSince: (id: string | undefined) => this.#unseenSince(id, question.at)
    };
    const found = await deriveCauses({ ...given, ...form }, this.#state);
    if (other === undefined || found.causes.length > 0) return found;
    const { causes, isComplete } = await deriveCauses({ ...given, ...other }, this.#state);
    const separated = causes.filter(({ code }) => code === 'mount_point');
    return {
      ...found,
      otherwise: [...separated, ...(found.otherwise ?? [])],
      isComplete: found.isComplete && isComplete
    };
  }

  /** The filters of the subscriptions that the receiver had at a time, as far as their records are kept; default: at that of the question. */
  #formerFilters({ states, at, precision }: CheckedQuestion, time = at + precision): readonly string[] {
    return [...stateAt(states, time).subscriptions.keys()];
  }

  /** The time of the filters of a question: of one without a time, that of a message before the receiver has subscribed to its topic. */
  #formerTime(
    { precision, at, now, topics, clientId = '' }: CheckedQuestion,
    missed: Moment | undefined
  ): number | undefined {
    if (precision !== Infinity) return now - at > precision ? at + precision : undefined;
    return isBefore(missed, this.#subscribedAt(clientId, topics)) ? missed?.since : undefined;
  }

  /** The states of a client, the oldest first. */
  #statesOf(clientId: string): readonly ClientState[] {
    return statesOf(this.#recordsOfClient(clientId));
  }

  /** Tell whether clients other than one receive a topic. */
  #hasReceivers(topic: string, clientId: string | undefined): boolean {
    const { targets, groups } = this.#state.routing.peek(topic);
    const all = [targets, ...groups.map(({ members }) => members)];
    return all.some((list) => list.some(({ subscriber }) => subscriber.receiver?.clientId !== clientId));
  }

  /** The records that are about a client itself, the latest first. */
  #recordsOfClient(clientId: string): readonly KeptRecord[] {
    const owner = cut(clientId);
    return [...this.#services.reasons.records({ client: owner })].filter((record) => record.clientId === owner);
  }

  #endedAt({ states }: CheckedQuestion): number | undefined {
    return states.findLast(({ by }) => by?.row.change === 'session_ended')?.by?.at;
  }

  /** When the publisher was lost without a will, before the time of the question; undefined: it was not, or has connected again. */
  #lostAt({ publisher, at, precision }: CheckedQuestion): number | undefined {
    if (publisher === undefined || publisher === '') return undefined;
    const last = this.#statesOf(publisher).at(-1)?.awayBy;
    return last?.detail === NO_WILL && last.at <= at + precision ? last.at : undefined;
  }

  /** Leave out the records of deleted rules whose id another rule has now. */
  #ofPresentRules(records: Iterable<KeptRecord>): readonly KeptRecord[] {
    const { kept } = this.#state;
    return [...records].filter(({ rule, at }) => rule === undefined || at >= ruleCreatedAt(rule, kept));
  }

  #subscribedAt(clientId: string, topics: readonly string[]): Moment | undefined {
    return subscribedAt(this.#services.reasons.records({ client: clientId }), topics);
  }

  /** The records about the question, the latest first. */
  #recordsOf(question: CheckedQuestion): readonly KeptRecord[] {
    const found = new Set<KeptRecord>();
    for (const keys of keysOf(question)) for (const record of this.#services.reasons.records(keys)) found.add(record);
    if (this.#state.delayed.stops.at(question.at, question.precision) !== undefined) {
      let left = MAX_EXAMINED; // those of delayed messages have another topic
      for (const record of this.#services.reasons.records()) {
        if (left-- === 0) break;
        if (record.code === 'delayed_stopped') found.add(record);
      }
    }
    return this.#ofPresentRules(found).toSorted((a, b) => b.number - a.number);
  }

  /**
   * The records of connections that were closed before their client id was known: from the address of the client, or from any if its
   * address is not known. None of a time at which the client was connected.
   * @param clientId in full length
   */
  #unnamed({ at, precision }: CheckedQuestion, clientId: string | undefined, all: readonly KeptRecord[]): FoundRecords {
    if (clientId === undefined || clientId === '') return NONE;
    const session = this.#state.sessions.get(clientId);
    if (session?.state === 'connected' && (session.client.connectedAt ?? 0) <= at) return NONE;
    if (session !== undefined && session.client.transportInfo.remoteAddress === undefined) return NONE; // a bridge
    const gone = all.find(
      ({ clientId: id, row, at: goneAt }) => id === cut(clientId) && row.change === 'disconnected' && goneAt <= at
    );
    const named = all.find((record) => record.clientId === cut(clientId) && record.address !== undefined);
    const address = session?.client.transportInfo.remoteAddress ?? named?.address;
    const records: FoundRecord[] = [];
    let left = MAX_EXAMINED;
    for (const record of this.#services.reasons.records({ address })) {
      if (left-- === 0) return { records, isAll: false };
      if (gone !== undefined && record.at < gone.at) break;
      if (record.clientId !== undefined || record.address === undefined || record.at > at + precision) continue;
      if (records.length === MAX_UNNAMED) return { records, isAll: false };
      records.push({ record, until: undefined });
    }
    return { records, isAll: true };
  }

  /** Since when all records about a question are kept, in milliseconds since 1970. */
  #knownSince(question: CheckedQuestion): number {
    const { reasons: log } = this.#services;
    return Math.round(Math.max(this.#since, ...keysOf(question).map((keys) => log.lostAt(keys))));
  }

  /** The time since which a client would be known, if it has never connected since then; undefined: it has, or it is not known. */
  #unseenSince(clientId: string | undefined, at: number): number | undefined {
    const { reasons: log } = this.#services;
    if (clientId === undefined || clientId === '' || log.maxBytes === 0 || at < this.#since) return undefined;
    const client = cut(clientId);
    const isKnown = log.lostAt({ client }) !== -Infinity || !log.records({ client }).next().done;
    return isKnown ? undefined : Math.round(this.#since);
  }

  /** Tell whether the records of the time of the question are kept; of a question without a time, all. */
  #hasRecordsOf(question: CheckedQuestion): boolean {
    const { reasons: log } = this.#services;
    if (log.maxBytes === 0 || question.at < this.#since) return false;
    if (this.#mayHaveLostRetained(question)) return false;
    return keysOf(question).every((keys) => log.lostAt(keys) <= question.at - question.precision);
  }

  /** Tell whether a retained message may have been lost without a record before the receiver subscribed. */
  #mayHaveLostRetained(question: CheckedQuestion): boolean {
    const { leftOut } = this.#services.reasons;
    if (leftOut === undefined || leftOut.until <= question.at - question.precision) return false;
    if (question.clientId === undefined) return true;
    const subscribed = question.subscribedAt();
    return subscribed !== undefined && subscribed.since >= leftOut.since - 1; // times of records are rounded
  }
}

/** The difference between the times at which a rule and a subscription changed because of it, in milliseconds. */
const REVIEW_MS = 1_000;

/** Tell whether a record shows the same cause. */
function isRecorded({ code, evidence }: DerivedCause, recorded: readonly TimedCause[]): boolean {
  const { clientId, rule, waitingOutputs, since, until: end = Infinity } = evidence;
  if (rule !== undefined && (waitingOutputs !== undefined || since !== undefined)) return false; // outputs that wait, a stopped feature
  return recorded.some(({ cause, until }) => {
    const isSame = until === undefined || Math.abs(until - Number(end)) < REVIEW_MS;
    const isOfTopic = code === 'retained_missing' && cause.evidence.clientId === undefined; // for any receiver
    return isSame && cause.code === code && (isOfTopic || cause.evidence.clientId === clientId);
  });
}

/** Tell whether a cause is that the receiver has no session or subscription now. */
function isGone({ code }: DerivedCause): boolean {
  return code === 'no_subscriber' || code === 'offline_no_session';
}

/** Leave out that there was no subscriber at all where more is known: a rule needs none, and of one receiver the state says it. */
function withoutGeneral(
  recorded: readonly TimedCause[],
  isMissed: boolean,
  { rule }: ArrivalQuestion,
  states: readonly DerivedCause[]
): readonly TimedCause[] {
  if (states.some(({ code }) => code === 'from_unmatched')) return []; // its errors are about other topics
  const isStated = states.some(({ code }) => code === 'no_subscriber' || code === 'right_withdrawn');
  const isKnown = !isMissed || rule !== undefined || isStated;
  return isKnown ? recorded.filter(({ cause }) => cause.code !== 'no_subscriber') : recorded;
}
