// The causes that are in a rule: it does not run, or its last examples show that WHERE excluded the message. Its errors
// are recorded. Examples are taken at most once in 100 ms, so a rule without one about a message proves nothing.

import { errorText } from '../../base/errors.ts';
import { hideInText } from '../../base/hidden-text.ts';
import { cut } from '../../monitor/cut-text.ts';
import { type DerivedCause, type DerivedCauses, derived } from '../../monitor/reasons/derived.ts';
import type { KeptRecord } from '../../monitor/reasons/kept-record.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { formerTopicsIn } from '../../rules/events/former-topics.ts';
import type { RuleState } from '../../rules/types.ts';
import { encodeJson } from '../../sql/json.ts';
import type { Value } from '../../sql/values.ts';
import { innerFilter, matches } from '../../topics/topic.ts';
import type { Rules } from '../computing/rules.ts';
import type { Streams } from '../computing/streams.ts';
import type { RuleFeature } from '../features/rule-feature.ts';
import { isTarget, publishesTo } from './rule-targets.ts';

/** A question about a rule. */
export interface RuleQuestion {
  readonly rule: string;
  /** The topic name as messages have it. */
  readonly topic: string;
  readonly publisher: string | undefined;
  /** Time of the message, and of the question, in milliseconds since 1970. */
  readonly at: number;
  readonly now: number;
  /** See `CheckedQuestion.precision`. */
  readonly precision: number;
  /** True if the message was published some time ago, when the rule may have been in another state. */
  readonly isPast: boolean;
  /** The records of a rule that exists, the latest first. */
  recordsOfRule(rule: string): readonly KeptRecord[];
  /** Time of the last message of the topic without a subscriber, in milliseconds since 1970; undefined: none is recorded. */
  lastMissedAt(): number | undefined;
}

/** The parts of the broker that know about rules. */
export interface RuleSources {
  readonly rules: Rules;
  readonly streams: Streams;
  readonly ruleFeature: RuleFeature;
  readonly outboxes: Iterable<Outbox>;
}

/** The beginnings of the names of outboxes to which actions of rules add. */
const RESOURCE = 'resource:';
const ACTION = '$action:';
/** Maximum number of entries of outboxes that are compared with a rule (about 5 ms). */
const MAX_ENTRIES = 100_000;

/** When a rule was created, in milliseconds since 1970; -Infinity: before the broker started, or there is none. */
export function ruleCreatedAt(rule: string, { rules, streams }: Pick<RuleSources, 'rules' | 'streams'>): number {
  const { createdAt = -Infinity } = rules.byId.get(rule)?.definition ?? streams.rulesById.get(rule) ?? {};
  return Math.floor(createdAt); // the times of records are rounded
}

/** Find the causes that are in a rule over events, or in one over streams. */
export async function ruleCauses(question: RuleQuestion, sources: RuleSources): Promise<DerivedCauses> {
  const state = await sources.rules.api.get(question.rule);
  if (state === undefined) return ofStreamRule(question, sources);
  const known = { rule: cut(question.rule), topic: cut(question.topic) };
  const { at, now, precision } = question;
  if (state.createdAt > at + precision) {
    const detail = `it was created later, at ${timeOf(state.createdAt)}`;
    return { causes: [derived('rule_stopped', now, { ...known, detail })], isComplete: true };
  }
  const off = featureCauses(question, state, sources.ruleFeature);
  if (off.length > 0 && precision !== Infinity) return { causes: off, isComplete: true };
  const waiting = await waitingOutputs(question, sources);
  const found = await ofRule(question, state, sources.rules);
  const late = createdLater(question, state.createdAt);
  return {
    ...found,
    otherwise: [...late, ...(found.otherwise ?? [])],
    causes: [...off, ...waiting.causes, ...found.causes],
    isComplete: waiting.isComplete && found.isComplete
  };
}

/** The rule was created after the last message of the topic, as far as it is known; of a question without a time. */
function createdLater({ rule, topic, now, precision, lastMissedAt }: RuleQuestion, createdAt: number): DerivedCause[] {
  if (precision !== Infinity || (lastMissedAt() ?? Infinity) >= Math.floor(createdAt)) return [];
  const evidence = { rule: cut(rule), topic: cut(topic), until: Math.floor(createdAt), detail: 'it was created then' };
  return [derived('rule_stopped', now, evidence)];
}

/** The feature `rules` is stopped, or was at the time of the question. Without a time, also when it was stopped last. */
export function featureCauses(
  { rule, topic, at, now, precision }: Pick<RuleQuestion, 'rule' | 'topic' | 'at' | 'now' | 'precision'>,
  { createdAt }: Pick<RuleState, 'createdAt'>,
  { stops }: RuleFeature
): DerivedCause[] {
  const stop = stops.at(at, precision);
  if (stop === undefined || (stop.until ?? Infinity) < createdAt) return [];
  const { from, until } = stop;
  const detail =
    until === undefined
      ? `the feature \`rules\` is stopped since ${timeOf(from)}: start it with \`embermq ctl plugins load rules\``
      : `the feature \`rules\` was stopped from ${timeOf(from)} until ${timeOf(until)}`;
  const end = precision === Infinity ? { until } : { endedAt: until };
  return [derived('rule_stopped', now, { rule: cut(rule), topic: cut(topic), since: from, ...end, detail })];
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** The outputs of a rule over events that wait until a target takes them; of a time, those of that time. */
async function waitingOutputs(
  { rule, at, now, precision }: RuleQuestion,
  { outboxes, rules }: RuleSources
): Promise<DerivedCauses> {
  const causes: DerivedCause[] = [];
  let left = MAX_ENTRIES;
  for (const outbox of outboxes) {
    if (left < 0) break;
    const { name, label, lastError } = outbox;
    if (!name.startsWith(RESOURCE) && !name.startsWith(ACTION)) continue;
    let waiting = 0;
    for (const { key, addedAt } of outbox.entries()) {
      if (left-- === 0) break;
      if (key === rule && (precision === Infinity || Math.abs(addedAt - at) <= precision)) waiting++;
    }
    if (waiting === 0) continue;
    const resource = name.startsWith(RESOURCE) ? await resourceOf(name, rules) : undefined;
    const target = resource === undefined ? label : `resource ${JSON.stringify(resource)}`;
    const outputs = waiting === 1 ? '1 output waits' : `${waiting} outputs wait`;
    const why = lastError === undefined ? '' : `: ${hideInText(errorText(lastError))}`;
    const detail = cut(`${outputs} in the queue of ${target}${why}`);
    const evidence = { rule: cut(rule), resource: resource && cut(resource), waitingOutputs: waiting, detail };
    causes.push(derived('target_refused', now, evidence, waiting));
  }
  return { causes, isComplete: left >= 0 };
}

/** The id of the resource to which an outbox belongs. */
async function resourceOf(name: string, { api }: Rules): Promise<string> {
  return (await api.resources.get(name))?.id ?? name.slice(RESOURCE.length);
}

async function ofRule(question: RuleQuestion, state: RuleState, rules: Rules): Promise<DerivedCauses> {
  const { rule, topic, now, precision } = question;
  const known = { rule: cut(rule), topic: cut(topic) };
  const replaced = replacedAt(question);
  const isPresent = precision === Infinity || replaced === undefined;
  const topics = isPresent ? state.topics : (replaced.topics ?? [topic]);
  if (!readsTopic(topics, topic)) {
    const other = unmatched(known, topics, now, isPresent ? undefined : replaced.until);
    return publishesTo(state, topic) ? ofOutput(question, other, rules) : { causes: [other], isComplete: true };
  }
  const found = await ofCondition(question, state, rules);
  if (!isPresent) return { ...found, isComplete: false }; // its condition then is not known
  if (replaced?.topics === undefined || readsTopic(replaced.topics, topic)) return found;
  const former = unmatched(known, replaced.topics, now, replaced.until);
  return { ...found, otherwise: [former, ...(found.otherwise ?? [])] };
}

/** The causes that a rule which reads the topic has not run, or has excluded the message. */
async function ofCondition(question: RuleQuestion, state: RuleState, rules: Rules): Promise<DerivedCauses> {
  const { rule, topic, publisher, at: time, precision, isPast, now } = question;
  const known = { rule: cut(rule), topic: cut(topic) };
  const stoppedAt = question.recordsOfRule(rule).find(({ code }) => code === 'rule_stopped')?.at ?? time;
  const isStopped = state.state !== 'connected' && stoppedAt <= time + precision;
  const stopped = isStopped
    ? [derived('rule_stopped', now, { ...known, detail: state.reason ?? 'it is disabled' })]
    : [];
  if (isStopped && !isPast) return { causes: stopped, isComplete: true };
  const { rejected, excluded } = await rules.api.samples(rule);
  const samples = rejected
    .filter(({ topic: other, clientId }) => (other ?? known.topic) === known.topic && isBy(publisher, clientId))
    .map(({ at, columns }) => ({ at, isOther: Math.abs(at - time) > precision, values: shown(columns) }));
  const hints = samples.length === 0 ? [] : (await rules.api.validate(state.sql)).hints;
  const causes = samples.map(({ at, isOther, values }) => {
    const all = [...hints, isOther ? `another message, at ${timeOf(at)}, had ${values}` : values];
    const evidence = { ...known, isCertain: isOther ? false : undefined, detail: cut(all.join('; ')) };
    return { isOther, cause: sampled('where_false', at, evidence) };
  });
  const near = causes.filter(({ isOther }) => !isOther).map(({ cause }) => cause);
  const hasAll = excluded <= rejected.length;
  if (near.length > 0 || (hasAll && causes.length === 0))
    return { causes: [...near, ...stopped], isComplete: hasAll && !isStopped };
  if (causes.length > 0) return { causes: stopped, otherwise: causes.map(({ cause }) => cause), isComplete: false };
  const detail = `it has excluded ${excluded === 1 ? '1 message' : `${excluded} messages`}, and none of the last examples is of this topic`;
  const others = derived('where_false', now, { ...known, isCertain: false, detail }, excluded);
  return { causes: stopped, otherwise: [others], isComplete: false };
}

/** The statement that a rule had at the time of the question. */
interface Replaced {
  /** When another one replaced it, in milliseconds since 1970. */
  readonly until: number;
  /** The topics that it read; undefined: they are not known. */
  readonly topics: readonly string[] | undefined;
}

/** The statement that a rule over events had at the time of the question, if another one has replaced it; without a time, the one before the present one. */
export function replacedAt({
  rule,
  at,
  precision,
  recordsOfRule
}: Pick<RuleQuestion, 'rule' | 'at' | 'precision' | 'recordsOfRule'>): Replaced | undefined {
  const changes = recordsOfRule(rule).filter(({ code }) => code === 'rule_changed');
  const change = precision === Infinity ? changes[0] : changes.findLast(({ since }) => since > at - precision);
  return change && { until: change.since, topics: formerTopicsIn(change.detail ?? '') };
}

/** The causes that a rule has not published a message of the topic. @param otherwise the cause that it reads other topics */
async function ofOutput(
  { rule, at: time, precision }: RuleQuestion,
  otherwise: DerivedCause,
  { api }: Rules
): Promise<DerivedCauses> {
  const { rejected } = await api.samples(rule);
  const causes = rejected
    .filter(({ at }) => Math.abs(at - time) <= precision)
    .map(({ at, topic, columns }) =>
      sampled('where_false', at, { rule: cut(rule), topic, detail: `${shown(columns)}, so it has published nothing` })
    );
  return { causes, otherwise: [ofPublishing(otherwise)], isComplete: false };
}

/** The cause that a rule does not read a topic to which it publishes. */
function ofPublishing(cause: DerivedCause): DerivedCause {
  const { evidence } = cause;
  return { ...cause, evidence: { ...evidence, detail: cut(`it publishes to this topic; ${evidence.detail}`) } };
}

/** The cause that a rule reads other topics. @param until when it read other ones than these, in milliseconds since 1970 */
function unmatched(
  known: { readonly rule: string; readonly topic: string },
  filters: readonly string[],
  now: number,
  until?: number
): DerivedCause {
  const names = filters.map((filter) => JSON.stringify(filter)).join(', ');
  const detail = cut(`it ${until === undefined ? 'reads' : 'read'} ${names}`);
  return derived('from_unmatched', now, { ...known, until, detail });
}

/** The events of messages, after FROM; other events are not about messages. A wildcard may stand for any event. */
const OF_MESSAGES = /^\$events\/(message|delivery|\+|#)/;

/** Tell whether a rule reads the messages of a topic: from a topic filter, or from an event of messages of all topics. */
function readsTopic(names: readonly string[], topic: string): boolean {
  return names.some((name) => OF_MESSAGES.test(name) || (!name.startsWith('$events/') && matches(name, topic)));
}

export function isBy(publisher: string | undefined, clientId: string | undefined): boolean {
  return publisher === undefined || clientId === undefined || clientId === cut(publisher);
}

async function ofStreamRule(question: RuleQuestion, sources: RuleSources): Promise<DerivedCauses> {
  const { rule, topic, at: time, now, precision, isPast } = question;
  const { streams } = sources;
  const known = { rule: cut(rule) };
  const { rules } = streams.api;
  const stopped = (detail: string) => derived('rule_stopped', now, { ...known, detail: cut(detail) });
  const only = (detail: string) => ({ causes: [stopped(detail)], isComplete: true });
  const isKnown = streams.api.isRunning ? (await rules.get(rule)) !== undefined : streams.rulesById.has(rule);
  if (!isKnown) return only('no rule has this id');
  if (!streams.api.isRunning) return only('the stream service is stopped');
  const createdAt = ruleCreatedAt(rule, sources);
  if (createdAt > time + precision) return only(`it was created later, at ${timeOf(createdAt)}`);
  const late = createdLater(question, createdAt);
  const { state, text } = await rules.status(rule);
  if (state !== 'connected' && !isPast) return only(text);
  const filters = await streams.topicsOf(rule);
  if (filters !== undefined && !filters.some((filter) => matches(innerFilter(filter), topic))) {
    const other = unmatched({ ...known, topic: cut(topic) }, filters, now);
    const isOutput = streams.publishesTo(rule, (template) => isTarget('mqtt', template, topic));
    return isOutput
      ? { causes: [], otherwise: [ofPublishing(other)], isComplete: false }
      : { causes: [other], isComplete: true };
  }
  const { rejected } = await rules.samples(rule);
  const causes: DerivedCause[] = [];
  const otherwise = [...late];
  for (const { at, reason, values, topic: named } of rejected) {
    if (named !== undefined && named !== cut(topic)) continue;
    const isOther = Math.abs(at - time) > precision;
    const text = reason === 'late' ? shown(values) : `${reason}, with ${shown(values)}`;
    const detail = cut(isOther ? `another message, at ${timeOf(at)}: ${text}` : text);
    const evidence = { ...known, topic: named, isCertain: isOther ? false : undefined, detail };
    (isOther ? otherwise : causes).push(sampled(reason === 'late' ? 'row_late' : 'where_false', at, evidence));
  }
  otherwise.push(...(await windowCauses(question, streams)));
  return { causes, otherwise, isComplete: false }; // an input of a stream rule is sampled about once a second
}

/** The window of a rule that may not have ended yet. */
async function windowCauses(
  { rule, topic, at, now, precision }: RuleQuestion,
  streams: Streams
): Promise<DerivedCause[]> {
  const window = await streams.windowOf(rule);
  const agoMs = precision === Infinity ? 0 : now - at - precision;
  if (window === undefined || agoMs > window.lengthMs) return [];
  const evidence = { rule: cut(rule), topic: cut(topic), isCertain: false, detail: cut(window.text) };
  return [derived('window_open', now, evidence)];
}

export function sampled(...[code, at, evidence]: Parameters<typeof derived>): DerivedCause {
  return { ...derived(code, at, evidence), kind: 'sampled' };
}

/** Values in one line: `payload.t = 75, clientid = "a"`. */
export function shown(values: Readonly<Record<string, unknown>>): string {
  const parts = Object.entries(values).map(([name, value]) => `${name} = ${encodeJson(value as Value)}`);
  return cut(parts.length === 0 ? 'all values are absent' : parts.join(', '));
}
