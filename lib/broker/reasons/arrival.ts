// The answer to the question why a message did not arrive. Recorded causes are those of the log whose client, publisher,
// topic and rule fit the question. A record without topic, such as the end of a connection, fits until the client has
// connected again before the time of the question. Derived causes follow from the state now, so they are of that time.

import { InvalidInput } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import { cut } from '../../monitor/cut-text.ts';
import type { ArrivalAnswer, ArrivalQuestion } from '../../monitor/reasons/arrival-question.ts';
import { CAUSES, type Cause, type CauseCode, type CauseEntry, type Evidence } from '../../monitor/reasons/causes.ts';
import type { DerivedCause } from '../../monitor/reasons/derived.ts';
import type { KeptRecord } from '../../monitor/reasons/kept-record.ts';
import type { ReasonKeys } from '../../monitor/reasons/reason-log.ts';
import { requestedIn } from '../../monitor/reasons/requested-filter.ts';
import { checkTopicName, innerFilter, matches, mountedName } from '../../topics/topic.ts';
import { parseDelayed } from '../features/delayed.ts';
import type { Services } from '../services.ts';
import { type BrokerState, deriveCauses } from './derive.ts';

/** The question with the forms in which the broker has its names. */
interface CheckedQuestion {
  readonly topic: string;
  /** The topic as it is written, and as rewrite rules and mount points may have changed it; cut as in records. */
  readonly topics: readonly string[];
  readonly clientId: string | undefined;
  readonly publisher: string | undefined;
  readonly rule: string | undefined;
  /** Time of the message; now if it is not given. */
  readonly at: number;
  readonly isTimed: boolean;
  readonly now: number;
}

const NAMES: readonly (keyof ArrivalQuestion)[] = ['at', 'clientId', 'publisher', 'rule', 'topic'];
/** Maximum number of causes of an answer. */
const MAX_CAUSES = 100;

/** Maximum number of records that are examined for connections without a client id, and of those that are answered. */
const MAX_EXAMINED = 10_000;
const MAX_UNNAMED = 10;

interface FoundRecords {
  readonly records: readonly KeptRecord[];
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
    const question = this.#check(given);
    const forms = this.#formsOf(question.topic, given.publisher);
    const { records, isAll } = this.#records(question);
    const recorded = records.flatMap((record) => recordedCauses(record, question));
    const { publisher, clientId, rule } = given;
    const derived = await deriveCauses({ ...question, ...forms, publisher, clientId, rule }, this.#state);
    const isRecorded = ({ code, evidence: { clientId } }: DerivedCause) =>
      recorded.some(({ cause }) => cause.code === code && cause.evidence.clientId === clientId);
    // a rule needs no subscription
    const others = rule === undefined ? recorded : recorded.filter(({ cause }) => cause.code !== 'no_subscriber');
    const found = [...others, ...derived.causes.filter((one) => !isRecorded(one)).map(timedOf)];
    const causes = found.sort((a, b) => isGeneral(a) - isGeneral(b) || distance(a, question) - distance(b, question));
    if (found.every(({ cause }) => LATE.has(cause.code))) {
      const others = (derived.otherwise ?? []).filter(({ code }) => found.every(({ cause }) => cause.code !== code));
      causes.push(...others.map(timedOf));
    }
    const isComplete = isAll && derived.isComplete && this.#hasRecordsOf(question) && causes.length <= MAX_CAUSES;
    return { isComplete, causes: causes.slice(0, MAX_CAUSES).map(({ cause }) => cause) };
  }

  #check(given: ArrivalQuestion): CheckedQuestion {
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
    const now = this.#services.clock.now();
    return {
      topic,
      topics: this.#topicsOf(topic, publisher),
      clientId: clientId === undefined ? undefined : cut(clientId),
      publisher: publisher === undefined ? undefined : cut(publisher),
      rule: rule === undefined ? undefined : cut(rule),
      at: at ?? now,
      isTimed: at !== undefined,
      now
    };
  }

  /** The forms that a topic may have inside the broker; the last one is that of its messages. */
  #topicsOf(written: string, publisher: string | undefined): readonly string[] {
    const { rewritten, delayed, topic } = this.#formsOf(written, publisher);
    return [...new Set([written, rewritten, delayed, topic].map(cut))];
  }

  /** The forms of a topic. It may be given with the mount point of its publisher. */
  #formsOf(written: string, publisher: string | undefined) {
    const { sessions, rewrites } = this.#state;
    const rewritten = rewrites.apply(written, 'publish');
    const { mountpoint: publisherMount = '' } = sessions.get(publisher ?? '')?.client ?? {};
    const isMounted = publisherMount !== '' && rewritten.startsWith(publisherMount);
    const delayed = isMounted ? rewritten : (mountedName(rewritten, publisherMount) ?? rewritten);
    const delay = parseDelayed(delayed, this.#services.clock.now() / 1000);
    const topic = typeof delay === 'object' ? delay.topic : delayed;
    return { written, rewritten, delayed, topic, publisherMount };
  }

  /** The records about the question, and whether these are all that are kept. */
  #records(question: CheckedQuestion): FoundRecords {
    const { reasons: log } = this.#services;
    const found = new Set<KeptRecord>();
    for (const keys of keysOf(question)) for (const record of log.records(keys)) found.add(record);
    const all = [...found].sort((a, b) => b.number - a.number);
    const fitting = all.filter((record) => fits(record, question) && !isOver(record, question, all));
    const { records, isAll } = this.#unnamed(question, all);
    return { records: [...fitting, ...records], isAll };
  }

  /**
   * The records of connections that were closed before their client id was known: from the address of the client, or from any if its
   * address is not known. None if the client is connected.
   */
  #unnamed({ clientId, at }: CheckedQuestion, all: readonly KeptRecord[]): FoundRecords {
    if (clientId === undefined || clientId === '') return NONE;
    const session = this.#state.sessions.get(clientId);
    if (session?.state === 'connected' && (session.client.connectedAt ?? 0) <= at) return NONE;
    const named = all.find((record) => record.clientId === clientId && record.address !== undefined);
    const address = session?.client.transportInfo.remoteAddress ?? named?.address;
    const records: KeptRecord[] = [];
    let left = MAX_EXAMINED;
    for (const record of this.#services.reasons.records({ address })) {
      if (left-- === 0) return { records, isAll: false };
      if (record.clientId !== undefined || record.address === undefined) continue;
      if (records.length === MAX_UNNAMED) return { records, isAll: false };
      records.push(record);
    }
    return { records, isAll: true };
  }

  /** Tell whether the records of the time of the question are kept. */
  #hasRecordsOf(question: CheckedQuestion): boolean {
    const { reasons: log } = this.#services;
    if (log.maxBytes === 0 || question.at < this.#since) return false;
    return keysOf(question).every((keys) => log.lostAt(keys) < question.at);
  }
}

/** The keys of the records about a question. Drops that were summarised are found by the publisher, if it is given. */
function keysOf({ topics, clientId, publisher, rule }: CheckedQuestion): readonly ReasonKeys[] {
  return [
    ...[clientId, publisher].filter((client) => client !== undefined && client !== '').map((client) => ({ client })),
    ...topics.map((topic) => ({ topic, client: publisher })),
    ...(rule === undefined ? [] : [{ rule }])
  ];
}

/** Tell whether a record is about the message of the question. */
function fits(record: KeptRecord, { topics, clientId, publisher, rule }: CheckedQuestion): boolean {
  const { topic, row, detail } = record;
  if (topic !== undefined) {
    const filters = row.isFilter === true ? [topic, requestedIn(detail) ?? topic].map(innerFilter) : undefined;
    const isOfTopic = filters?.some((filter) => topics.some((each) => matches(filter, each))) ?? topics.includes(topic);
    if (!isOfTopic) return false;
  }
  if (rule !== undefined && record.rule !== undefined && record.rule !== rule) return false;
  if (topic === undefined && record.rule === undefined)
    // the connection of a client, or a summary of drops
    return isNamed(record.clientId, clientId, publisher) || isNamed(record.publisher, clientId, publisher);
  if (record.clientId !== undefined && clientId !== undefined && record.clientId !== clientId) return false;
  return record.publisher === undefined || publisher === undefined || record.publisher === publisher;
}

function isNamed(name: string | undefined, clientId: string | undefined, publisher: string | undefined): boolean {
  return name !== undefined && (name === clientId || name === publisher);
}

/** Tell whether a later record ended the condition before the time of the question. @param all the latest first */
function isOver(record: KeptRecord, { at, isTimed }: CheckedQuestion, all: readonly KeptRecord[]): boolean {
  if (!isTimed) return false;
  const ends = ENDS.find(({ codes }) => codes.test(record.code));
  if (ends === undefined) return false;
  return all.some(
    (later) =>
      later.number > record.number &&
      later.at <= at &&
      later.code === ends.by &&
      later.clientId === record.clientId &&
      (ends.by === 'connected' || later.topic === record.topic)
  );
}

/** The records after which others are no longer a cause. */
const ENDS = [
  {
    codes: /^(disconnected_|taken_over|wrong_password|token_expired|banned|connection_limit|connect_refused)/,
    by: 'connected'
  },
  { codes: /^(unsubscribed|subscribe_refused)/, by: 'subscribed' }
] as const;

/** The causes that do not exclude those of `DerivedCauses.otherwise`: there was no subscription yet. */
const LATE: ReadonlySet<CauseCode> = new Set<CauseCode>(['no_subscriber', 'subscribed_later']);

/** A cause with its first time. */
interface Timed {
  readonly cause: Cause;
  readonly since: number;
}

function recordedCauses(record: KeptRecord, question: CheckedQuestion): Timed[] {
  const { row, clientId, publisher, topic, rule, qos, count, at, since, code: record_ } = record;
  const isLater = record_ === 'subscribed' && clientId === question.clientId;
  const code = isLater ? 'subscribed_later' : clientId === undefined ? row.cause : (row.causeOfReceiver ?? row.cause);
  if (code === undefined) return [];
  if (isLater && (!question.isTimed || since <= question.at)) return [];
  const named = row.isFilter === true ? { filter: topic, topic: question.topic } : { topic };
  const evidence = {
    ...named,
    clientId,
    publisher,
    rule,
    qos: topic === undefined ? undefined : qos,
    address: record.address,
    detail: record.detail
  };
  return [causeOf(code, 'recorded', at, count, evidence, since)];
}

function timedOf({ code, kind, at, count, evidence }: DerivedCause): Timed {
  return causeOf(code, kind, at, count, evidence);
}

function causeOf(
  code: CauseCode,
  kind: Cause['kind'],
  at: number,
  count: number,
  evidence: Evidence,
  since = at
): Timed {
  const { text, remedy }: CauseEntry = CAUSES[code];
  const known = Object.fromEntries(Object.entries(evidence).filter(([, value]) => value !== undefined));
  return { cause: { code, kind, at, count, text: text(known), evidence: known, remedy }, since };
}

/** Tell whether a cause only says that the client is not there: a record tells why, so it comes first. */
function isGeneral({ cause: { code } }: Timed): number {
  return Number(code === 'offline_no_session');
}

/** The time between a cause and the question: 0 if it happened at that time. */
function distance({ cause: { at }, since }: Timed, question: CheckedQuestion): number {
  if (since <= question.at && question.at <= at) return 0;
  return Math.min(Math.abs(at - question.at), Math.abs(since - question.at));
}
