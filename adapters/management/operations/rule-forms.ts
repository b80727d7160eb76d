import type { Static, TSchema } from 'typebox';
import * as Type from 'typebox';
import type { ActionState, RuleState } from '../../../lib/index.ts';
import { recordOf } from '../../rest/index.ts';

const text = (description: string) => Type.String({ description });
const count = (description: string) => Type.Integer({ description });
const speed = (description: string) => Type.Number({ description });
const fields = (description: string) => recordOf(Type.Unknown(), { description });

const NODE = text('Name of the node');
const CREATED = count('When it was created, in milliseconds since 1970');

const ACTION_METRICS = Type.Object(
  {
    node: NODE,
    success: count('Runs that have succeeded'),
    failed: count('Runs that have failed'),
    taken: count('Runs that have begun')
  },
  { title: 'RuleActionMetrics' }
);
const RULE_ACTION = Type.Object(
  {
    id: text('The id'),
    name: text('The name of the action'),
    params: fields('The parameters as they were given, with ****** for secrets'),
    metrics: Type.Array(ACTION_METRICS),
    fallbacks: Type.Array(recordOf(Type.Unknown()), {
      description: 'The actions that run if this one has failed, in the same form'
    })
  },
  { title: 'ActionOfRule' }
);
const RULE_METRICS = Type.Object(
  {
    node: NODE,
    matched: count('Events of the topics of the rule'),
    speed: speed('Matched events per second, in the last 10 seconds'),
    speed_max: speed('The highest of these values'),
    speed_last5m: speed('The mean in the last 5 minutes'),
    passed: count('Events with an output'),
    failed: count('Events without an output: exception and no_result'),
    exception: count('Events for which the evaluation has failed'),
    no_result: count('Events that WHERE has excluded')
  },
  { title: 'RuleMetrics' }
);

/** A rule, in answers. */
export const RULE = Type.Object(
  {
    id: text('The id'),
    rawsql: text('The statement'),
    for: Type.Array(Type.String(), { description: 'The topics of FROM, in their order' }),
    enabled: Type.Boolean({ description: 'True if it is enabled' }),
    on_action_failed: Type.Enum(['continue', 'stop'], {
      description: 'continue: the later actions run even if one has failed; stop: they do not'
    }),
    description: text('A description'),
    created_at: CREATED,
    state: Type.Enum(['idle', 'connected', 'disconnected'], {
      description: 'idle: it is disabled; connected: events reach it; disconnected: it does not work, see "reason"'
    }),
    reason: Type.Optional(text('Why it does not work')),
    metrics: Type.Array(RULE_METRICS),
    actions: Type.Array(RULE_ACTION)
  },
  { title: 'Rule' }
);

/** An action of a request. */
export const GIVEN_ACTION = Type.Object(
  {
    name: text('The name of the action'),
    params: Type.Optional(fields('The parameters')),
    fallbacks: Type.Optional(
      Type.Array(recordOf(Type.Unknown()), {
        description: 'Actions in the same form, which run in this order if the action has failed'
      })
    )
  },
  { title: 'GivenRuleAction' }
);

type Shown<S extends TSchema> = Static<S>;

/**
 * A rule, in the form of answers.
 * @param node the name of the node
 */
export function shownRule(rule: RuleState, node: string): Shown<typeof RULE> {
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
    actions: actions.map((action) => shownActionOfRule(action, node))
  };
}

function shownActionOfRule(
  { id, name, params, counters, fallbacks }: ActionState,
  node: string
): Shown<typeof RULE_ACTION> {
  const { success, failed, taken } = counters;
  return {
    id,
    name,
    params: { ...params },
    metrics: [{ node, success, failed, taken }],
    fallbacks: fallbacks.map((fallback) => ({ ...shownActionOfRule(fallback, node) }))
  };
}

/** Round to two decimals, as documented. */
function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
