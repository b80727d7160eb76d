// `checkRule` runs before a body is checked against its schema, because its sentences are documented; what it lets
// pass is left to the schema. An error of a rule that is created or started is 400 in every case, also if a stream
// that it reads does not exist. The order of the options in `FIRST_OPTIONS` and the fields that are left out if they
// are empty are documented.

import type { Static } from 'typebox';
import { isPlainObject } from '../../lib/adapter.ts';
import {
  SqlError,
  type StreamRuleDefinition,
  type StreamRuleInput,
  type StreamRuleStatus,
  type StreamsApi
} from '../../lib/index.ts';
import { Fault, type FaultKind } from '../rest/index.ts';
import {
  anyObject,
  anyOf,
  componentOf,
  flag,
  listOf,
  number,
  objectOf,
  optional,
  recordOf,
  text
} from '../rest/kit/index.ts';
import { faultOf, hasCode } from './faults.ts';
import { sorted } from './reply.ts';

const ACTION = anyObject(
  'One key, the type of the sink, with its properties: {"mqtt": {"server": "tcp://a:1883", "topic": "b"}}'
);
const OPTIONS = anyObject(
  'Options such as qos, isEventTime and lateTolerance; those that are absent have their defaults'
);
const DESCRIPTIVE = {
  name: optional(text('A name for people')),
  version: optional(text('A version for people')),
  tags: optional(listOf(text(), 'Words for finding rules'))
};
const FIELDS = {
  options: optional(OPTIONS),
  triggered: optional(flag('True if it is started', { default: true })),
  ...DESCRIPTIVE,
  temp: optional(flag('True if the rule is not persisted', { default: false }))
};
const ID = text('The identifier');
const SQL = text('The query: one SELECT');
const ACTIONS = listOf(ACTION, 'The targets of the results', { minItems: 1 });

/** The body of a new rule. */
export const NEW_RULE = objectOf({
  id: ID,
  sql: SQL,
  actions: ACTIONS,
  ...FIELDS
});
/** The body of a change. */
export const CHANGED_RULE = objectOf({
  id: optional(text('The identifier, as in the path')),
  sql: SQL,
  actions: ACTIONS,
  ...FIELDS
});
/** A rule, in answers. */
export const RULE = componentOf('Rule', 'A rule', {
  triggered: flag('True if it runs after a start of the service'),
  id: ID,
  sql: SQL,
  actions: listOf(anyObject(), 'The sinks, each by its type, with their properties'),
  options: anyObject('All options, with their defaults'),
  ...DESCRIPTIVE
});
/** A row of the list of rules. */
export const RULE_ROW = componentOf('RuleRow', 'A rule, in lists', {
  id: ID,
  status: text('`Running`, or `Stopped: REASON`'),
  ...DESCRIPTIVE
});
/** The metrics of a running rule. */
export const METRICS = recordOf(anyOf([number(), text()]), 'Metrics by KIND_NAME_INDEX_METRIC');

/** Options that must not be negative, with documented error messages [stream rules 1.2]. */
const POSITIVE = ['checkpointInterval', 'concurrency', 'bufferLength', 'lateTolerance'];
/** Statements that are not queries. */
const NO_QUERY = /^\s*(create|show|describe|explain|drop|insert|update|delete)\b/i;

/**
 * Check the required fields of a rule, with the documented messages.
 * @throws Fault
 */
export function checkRule(body: Readonly<Record<string, unknown>>, needsId = true): void {
  const { id, sql, actions, options } = body;
  if (needsId && (id === undefined || id === null || id === '')) throw fault('rule', 'Missing rule id.');
  if ('graph' in body)
    throw fault('rule', 'rules with a "graph" are not supported; write the query as SQL (parameter "sql")');
  if (sql === undefined || sql === null || sql === '') throw fault('rule', 'Missing rule SQL.');
  if (typeof sql === 'string' && NO_QUERY.test(sql)) throw fault('syntax', `SQL ${sql} is not a select statement.`);
  if (actions === undefined || actions === null || (Array.isArray(actions) && actions.length === 0))
    throw fault('rule', 'Missing rule actions.');
  if (Array.isArray(actions)) for (const action of actions) checkAction(action);
  for (const name of POSITIVE) {
    const value = (options as Readonly<Record<string, unknown>> | null | undefined)?.[name];
    if (typeof value === 'number' && value < 0)
      throw fault('rule', `rule option ${name} ${value} is invalid, require a positive integer`);
  }
}

function checkAction(action: unknown): void {
  if (!isPlainObject(action))
    throw fault('rule', `expect an object for an action, but found ${JSON.stringify(action)}`);
  for (const properties of Object.values(action))
    if (!isPlainObject(properties))
      throw fault(
        'rule',
        `expect map[string]interface{} type for the action properties, but found ${JSON.stringify(properties)}`
      );
}

function fault(kind: FaultKind, message: string): Fault {
  return new Fault(kind, message);
}

/** The rule that a body describes. Other members are ignored. */
export function ruleInput(body: Static<typeof CHANGED_RULE>, id: string): StreamRuleInput {
  const { sql, actions, options, triggered, name, version, tags, temp } = body;
  const given = { options, triggered, name, version, tags, temp };
  const fields = Object.entries(given).filter(([, value]) => value !== undefined);
  return { id, sql, actions, ...Object.fromEntries(fields) } as StreamRuleInput;
}

/** The id of the rule for a path: a rule with this id, or the only one with this name. Otherwise the given value. */
export async function idOf(streams: StreamsApi, given: string): Promise<string> {
  if ((await streams.rules.get(given)) !== undefined) return given;
  const named = (await streams.rules.list()).filter(({ name }) => name === given);
  return named.length === 1 ? named[0].id : given;
}

/** The documented message for a rule that does not exist. */
export function isNotFound(id: string): string {
  return `Rule ${id} is not found.`;
}

/** Make the `faultOf` of operations on a rule: the answer if the rule does not exist. */
export const unknownRule =
  (sentence: (id: string) => string) =>
  (error: unknown, { params: { id } }: { readonly params: { readonly id: string } }): Fault | undefined =>
    hasCode(error, 'STREAM_RULE_NOT_FOUND') ? new Fault('notFound', sentence(id)) : undefined;

/** The fault for a rule that cannot be created or started: always 400, whatever is missing. */
export function planFault(error: unknown, sql: string | undefined): Fault | undefined {
  if (error instanceof SqlError) {
    const text = sql === undefined ? '' : ` ${sql}`;
    return fault('syntax', `Parse SQL${text} error: ${error.message}`);
  }
  const found = faultOf(error);
  return found?.kind === 'notFound' ? fault('plan', found.message) : found;
}

/** The options whose order is documented; the others follow. */
const FIRST_OPTIONS = [
  'isEventTime',
  'lateTolerance',
  'concurrency',
  'bufferLength',
  'sendMetaToSink',
  'sendError',
  'qos',
  'checkpointInterval'
];

/** A rule, in the form of answers. Names, versions and tags are shown if present. */
export function shownRule(rule: StreamRuleDefinition): object {
  const { triggered, id, sql, actions, options } = rule;
  const given = options as unknown as Readonly<Record<string, unknown>>;
  const first = Object.fromEntries(FIRST_OPTIONS.map((name) => [name, given[name]]));
  return {
    triggered,
    id,
    sql,
    actions: sorted(actions),
    options: { ...first, ...given },
    ...extras(rule)
  };
}

/** Fields of a rule that later versions of the original show if they are set. */
export function extras({ name, version, tags }: Pick<StreamRuleDefinition, 'name' | 'version' | 'tags'>) {
  return {
    ...(name === '' ? {} : { name }),
    ...(version === '' ? {} : { version }),
    ...(tags.length === 0 ? {} : { tags })
  };
}

/** The metrics of a rule; the messages of its errors, which have values of messages, are empty for callers who may not see these. */
export function shownMetrics(
  metrics: StreamRuleStatus['metrics'],
  hidesPayloads: boolean
): StreamRuleStatus['metrics'] {
  if (!hidesPayloads) return metrics;
  const entries = Object.entries(metrics);
  return Object.fromEntries(entries.map(([name, value]) => [name, MESSAGE_OF_ERROR.test(name) ? '' : value]));
}

const MESSAGE_OF_ERROR = /_(last_exception|connection_last_disconnected_message)$/;

/** The status of a rule as an object, even if it is stopped. */
export function shownStatus(
  status: StreamRuleStatus,
  hidesPayloads: boolean
): Readonly<Record<string, string | number>> {
  const isRunning = status.state === 'connected';
  const reason = status.text.replace(/^stopped: */i, '');
  const isWaiting = !isRunning && status.nextStartAt > 0;
  return {
    status: isRunning ? 'running' : isWaiting ? 'stopped: waiting for next schedule.' : 'stopped',
    message: isRunning ? '' : reason,
    lastStartTimestamp: status.startedAt,
    lastStopTimestamp: status.stoppedAt,
    nextStartTimestamp: status.nextStartAt,
    ...shownMetrics(status.metrics, hidesPayloads)
  };
}
