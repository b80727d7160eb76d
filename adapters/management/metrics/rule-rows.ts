import type { ActionState, Broker, ResourceState, RuleState } from '../../../lib/index.ts';
import type { MetricEntry } from './metric-row.ts';

/** Maximum number of rules and resources with separate values. The limit bounds the number of time series. */
const MOST = 200;

/** Metrics of rules and resources. */
export interface RuleReading {
  readonly rules: readonly RuleState[];
  readonly resources: readonly ResourceState[];
}

/** Read the metrics of the rules of a broker. A stopped broker has none. */
export async function ruleReadingOf({ rules, metrics }: Broker): Promise<RuleReading> {
  const none: RuleReading = { rules: [], resources: [] };
  // do not load the engine, which happens on first use
  if (metrics.gauge('rules') + metrics.gauge('resources') === 0) return none;
  try {
    const [all, resources] = await Promise.all([rules.list(), rules.resources.list()]);
    return { rules: all.slice(0, MOST), resources: resources.slice(0, MOST) };
  } catch {
    return none;
  }
}

/** An action and its fallbacks. */
function* everyOf(actions: readonly ActionState[]): Generator<ActionState> {
  for (const action of actions) {
    yield action;
    yield* everyOf(action.fallbacks);
  }
}

/** The metrics of single rules and resources. */
export const RULE_ROWS: readonly MetricEntry<RuleReading>[] = [
  {
    name: 'embermq_rule_events',
    dottedName: 'embermq.rule.events',
    kind: 'counter',
    unit: '{event}',
    about: `Events of the topics of a rule, by outcome; of the first ${MOST} rules`,
    samples: ({ rules }) =>
      rules.flatMap(({ id: rule, counters: { passed, noResult, exception } }) => [
        { labels: { rule, result: 'passed' }, value: passed },
        { labels: { rule, result: 'no_result' }, value: noResult },
        { labels: { rule, result: 'exception' }, value: exception }
      ])
  },
  {
    name: 'embermq_rule_actions',
    dottedName: 'embermq.rule.actions',
    kind: 'counter',
    unit: '{run}',
    about: `Runs of the actions of a rule with their fallbacks, by outcome; of the first ${MOST} rules`,
    samples: ({ rules }) =>
      rules.flatMap(({ id: rule, actions }) => {
        const counters = [...everyOf(actions)].map((action) => action.counters);
        return [
          { labels: { rule, result: 'success' }, value: counters.reduce((sum, { success }) => sum + success, 0) },
          { labels: { rule, result: 'failed' }, value: counters.reduce((sum, { failed }) => sum + failed, 0) }
        ];
      })
  },
  {
    name: 'embermq_rule_state',
    dottedName: 'embermq.rule.state',
    kind: 'gauge',
    unit: '1',
    about: `The state of a rule, as a label of the value 1; of the first ${MOST} rules`,
    samples: ({ rules }) => rules.map(({ id: rule, state }) => ({ labels: { rule, state }, value: 1 }))
  },
  {
    name: 'embermq_resource_alive',
    dottedName: 'embermq.resource.alive',
    kind: 'gauge',
    unit: '1',
    about: `Reachability of the target of a resource when last tried: 1 or 0; of the first ${MOST} resources`,
    samples: ({ resources }) =>
      resources.map(({ id: resource, type, isAlive }) => ({ labels: { resource, type }, value: isAlive ? 1 : 0 }))
  },
  {
    name: 'embermq_resource_waiting',
    dottedName: 'embermq.resource.waiting',
    kind: 'gauge',
    unit: '{entry}',
    about: `Queued entries of a resource; of the first ${MOST} resources`,
    samples: ({ resources }) =>
      resources.map(({ id: resource, type, size }) => ({ labels: { resource, type }, value: size }))
  }
];
