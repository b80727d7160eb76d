import type { Static, TSchema } from 'typebox';
import type { ActionState, RuleState } from '../../../lib/index.ts';
import { anyObject, componentOf, flag, integer, listOf, number, oneOf, optional, text } from '../../rest/kit/index.ts';
import type { Context } from '../operation.ts';

const NODE = text('Name of the node');
const CREATED = integer('When it was created, in milliseconds since 1970');

const ACTION_METRICS = componentOf('RuleActionMetrics', 'The counters of an action of a rule', {
  node: NODE,
  success: integer('Runs that have succeeded'),
  failed: integer('Runs that have failed'),
  taken: integer('Runs that have begun'),
  waiting: optional(integer('Number of entries in its own queue; what is sent to a resource waits there'))
});
const RULE_ACTION = componentOf('ActionOfRule', 'An action of a rule', {
  id: text('The id'),
  name: text('The name of the action'),
  params: anyObject('The parameters as they were given, with ****** for secrets'),
  metrics: listOf(ACTION_METRICS, 'The counters, an entry for each node'),
  last_error: optional(
    text('Why its last run, or the last delivery to its target or resource, has failed; absent after a success')
  ),
  fallbacks: listOf(anyObject(), 'The actions that run if this one has failed, in the same form')
});
const RULE_METRICS = componentOf('RuleMetrics', 'The counters of a rule', {
  node: NODE,
  matched: integer('Events of the topics of the rule'),
  speed: number('Matched events per second, in the last 10 seconds'),
  speed_max: number('The highest of these values'),
  speed_last5m: number('The mean in the last 5 minutes'),
  passed: integer('Events with an output'),
  failed: integer('Events without an output: exception and no_result'),
  exception: integer('Events for which the evaluation has failed'),
  no_result: integer('Events that WHERE has excluded')
});

/** A rule, in answers. */
export const RULE = componentOf('Rule', 'A rule', {
  id: text('The id'),
  rawsql: text('The statement'),
  for: listOf(text(), 'The topics of FROM, in their order'),
  enabled: flag('True if it is enabled'),
  on_action_failed: oneOf(
    ['continue', 'stop'],
    'continue: the later actions run even if one has failed; stop: they do not'
  ),
  description: text('A description'),
  created_at: CREATED,
  state: oneOf(
    ['idle', 'connected', 'disconnected'],
    'idle: it is disabled; connected: events reach it; disconnected: it does not work, see "reason"'
  ),
  reason: optional(text('Why it does not work')),
  metrics: listOf(RULE_METRICS, 'The counters, an entry for each node'),
  actions: listOf(RULE_ACTION, 'The actions, in their order')
});

/** An action of a request. */
export const GIVEN_ACTION = componentOf('GivenRuleAction', 'An action of a request', {
  name: text('The name of the action'),
  params: optional(anyObject('The parameters')),
  fallbacks: optional(listOf(anyObject(), 'Actions in the same form, which run in this order if the action has failed'))
});

type Shown<S extends TSchema> = Static<S>;

/** A rule, in the form of answers; without messages of errors, which have values of messages, for callers who may not see these. */
export function shownRule(rule: RuleState, context: Context): Shown<typeof RULE> {
  const { node } = context.broker.settings;
  const { id, sql, topics, isEnabled, onActionFailed, description, createdAt, state, reason, counters, actions } = rule;
  const { matched, passed, failed, exception, noResult, speed, speedMax, speedLast5m } = counters;
  return {
    id,
    rawsql: sql,
    for: [...topics],
    enabled: isEnabled,
    on_action_failed: onActionFailed,
    description,
    created_at: createdAt,
    state,
    ...(reason === undefined ? {} : { reason }),
    metrics: [
      {
        node,
        matched,
        speed: rounded(speed),
        speed_max: speedMax,
        speed_last5m: rounded(speedLast5m),
        passed,
        failed,
        exception,
        no_result: noResult
      }
    ],
    actions: actions.map((action) => shownActionOfRule(action, context))
  };
}

function shownActionOfRule(
  { id, name, params, counters, size, lastError, fallbacks }: ActionState,
  context: Context
): Shown<typeof RULE_ACTION> {
  const { broker, hidesPayloads } = context;
  const { node } = broker.settings;
  const { success, failed, taken } = counters;
  return {
    id,
    name,
    params: { ...params },
    metrics: [{ node, success, failed, taken, ...(size === undefined ? {} : { waiting: size }) }],
    ...(lastError && !hidesPayloads && { last_error: lastError.message }),
    fallbacks: fallbacks.map((fallback) => ({ ...shownActionOfRule(fallback, context) }))
  };
}

/** Round to two decimals, as documented. */
function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
