// The causes in the rules that should have published a message: they did not run, their condition was not met, or they failed.

import { cut } from '../../monitor/cut-text.ts';
import { type DerivedCause, type DerivedCauses, derived } from '../../monitor/reasons/derived.ts';
import type { KeptRecord } from '../../monitor/reasons/kept-record.ts';
import { featureCauses, isBy, type RuleQuestion, type RuleSources, replacedAt, sampled, shown } from './rule-causes.ts';
import { isTarget, publishesTo } from './rule-targets.ts';

/** Maximum number of rules whose actions are compared with a topic (about 5 ms), and of those that are named. */
const MAX_RULES = 10_000;
const MAX_PUBLISHING = 5;

/** The question about a message that a rule should have published. */
type OutputQuestion = Pick<RuleQuestion, 'topic' | 'publisher' | 'at' | 'now' | 'precision' | 'recordsOfRule'>;

/** A rule that publishes to the topic. */
interface PublishingRule {
  readonly id: string;
  /** Of a rule over events, in milliseconds since 1970; undefined: it is over streams. */
  readonly createdAt?: number;
  /** The last examples of messages that its condition excluded. */
  readonly rejected: readonly {
    readonly at: number;
    readonly topic?: string | undefined;
    readonly clientId?: string | undefined;
    readonly values: Readonly<Record<string, unknown>>;
  }[];
  /** True if these are all. */
  readonly hasAll: boolean;
}

/** The causes that rules which publish to a topic have published nothing. Targets that may be any topic are left out. */
export function publishingCauses(
  question: OutputQuestion,
  sources: Pick<RuleSources, 'rules' | 'streams' | 'ruleFeature'>
): DerivedCauses {
  const causes: DerivedCause[] = [];
  let isComplete = true;
  let left = MAX_PUBLISHING;
  for (const rule of rulesTo(question.topic, sources)) {
    if (rule === undefined || left-- === 0) return { causes, isComplete: false };
    const stops = [...featureStop(rule, question, sources), ...stopOf(rule, question)];
    causes.push(...stops, ...conditionOf(rule, question), ...errorsOf(rule, question));
    isComplete &&= rule.hasAll && replacedAt({ ...question, rule: rule.id }) === undefined;
  }
  return { causes, isComplete };
}

/** The rules that publish to a topic; undefined: there are too many rules to compare. */
function* rulesTo(
  topic: string,
  { rules, streams }: Pick<RuleSources, 'rules' | 'streams'>
): Generator<PublishingRule | undefined> {
  let left = MAX_RULES;
  for (const [id, rule] of rules.byId) {
    if (left-- === 0) return yield undefined;
    if (!publishesTo(rule.definition, topic, true)) continue;
    const { rejected, excluded } = rule.samples;
    const examples = rejected.map(({ columns: values, ...one }) => ({ ...one, values }));
    const { createdAt } = rule.definition;
    yield { id, createdAt, rejected: examples, hasAll: excluded <= rejected.length };
  }
  for (const [id, rule] of streams.rulesById) {
    if (left-- === 0) return yield undefined;
    if (!streams.publishesTo(id, (template) => isTarget('mqtt', template, topic, true))) continue;
    yield { id, rejected: rule.samples.rejected, hasAll: false }; // its inputs are sampled
  }
}

/** The stop of the feature `rules` at the time of the question. */
function featureStop(
  { id: rule, createdAt }: PublishingRule,
  question: OutputQuestion,
  { ruleFeature }: Pick<RuleSources, 'ruleFeature'>
): DerivedCause[] {
  if (createdAt === undefined) return [];
  return featureCauses({ ...question, rule }, { createdAt }, ruleFeature).map((cause) => {
    const { topic: _, detail, ...evidence } = cause.evidence;
    return { ...cause, evidence: { ...evidence, detail: publishing(`${detail}`, question) } };
  });
}

/** The last stop of a rule that lasted at the time of the question. */
function stopOf({ id }: PublishingRule, question: OutputQuestion): DerivedCause[] {
  const { at, now, precision } = question;
  let until: number | undefined;
  for (const { code, since, detail } of question.recordsOfRule(id)) {
    if (code === 'rule_started') until = since;
    if (code !== 'rule_stopped') continue;
    if (since <= at + precision && (until ?? Infinity) >= at - precision) {
      const evidence = { rule: cut(id), since, ...(precision === Infinity ? { until } : { endedAt: until }) };
      return [derived('rule_stopped', now, { ...evidence, detail: publishing(detail, question) })];
    }
    until = since;
  }
  return [];
}

/** The last example of a message that the condition of a rule has excluded. */
function conditionOf({ id, rejected }: PublishingRule, question: OutputQuestion): DerivedCause[] {
  const { publisher, at: time, precision } = question;
  const examples = rejected.filter(({ at, clientId }) => Math.abs(at - time) <= precision && isBy(publisher, clientId));
  const last = examples.at(-1);
  if (last === undefined) return [];
  const detail = publishing(shown(last.values), question);
  return [{ ...sampled('where_false', last.at, { rule: cut(id), topic: last.topic, detail }), count: examples.length }];
}

/** The last error of each kind. */
function errorsOf({ id }: PublishingRule, question: OutputQuestion): DerivedCause[] {
  const { publisher, at: time, precision } = question;
  const last = new Map<string, DerivedCause>();
  for (const record of question.recordsOfRule(id)) {
    const { code, at, since, topic, count } = record;
    if (!isError(code) || last.has(code) || !isBy(publisher, record.publisher)) continue;
    if (since > time + precision || at < time - precision) continue;
    const evidence = { rule: cut(id), topic, detail: publishing(record.detail, question) };
    last.set(code, { ...derived(code, at, evidence, count), kind: 'recorded' });
  }
  return [...last.values()];
}

const ERRORS = ['payload_invalid', 'function_failed', 'field_missing', 'target_refused'] as const;

function isError(code: KeptRecord['code']): code is (typeof ERRORS)[number] {
  return (ERRORS as readonly string[]).includes(code);
}

function publishing(detail: string | undefined, { topic }: OutputQuestion): string {
  const target = `the rule publishes to ${JSON.stringify(cut(topic))}`;
  return cut(detail === undefined ? target : `${detail}; ${target}`);
}
