import { Metric } from '../../events/metrics.ts';
import type { Outboxes } from '../../outbox/outboxes.ts';
import type { Routing } from '../../routing/routing.ts';
import type { RuleActions } from '../../rules/chart.ts';
import { ruleMachine } from '../../rules/rule.machine.ts';
import type { Actors, StartChart } from '../actors.ts';
import type { Tables } from '../configuration/tables.ts';
import { RuleFeature } from '../features/rule-feature.ts';
import type { Publishing } from '../messages/publishing.ts';
import { publisherOf } from '../new-message.ts';
import type { Services } from '../services.ts';
import { RESOURCES_TABLE, RULES_TABLE, Rules } from './rules.ts';
import { actionOf } from './sink-actions.ts';
import type { Streams } from './streams.ts';

/** The parts of the broker that rules use. Some are created later. */
interface RuleParts {
  readonly ledger: { readonly isOpen: boolean } | undefined;
  readonly actors: Actors;
  readonly routing: Routing;
  readonly publishing: Publishing;
}

/** The parts that are created before rules. */
interface RuleBase {
  readonly tables: Tables;
  readonly outboxes: Outboxes;
  readonly streams: Streams;
}

const COUNTERS = {
  'rules.matched': Metric.rulesMatched,
  'actions.success': Metric.actionsSuccess,
  'actions.failure': Metric.actionsFailure
} as const;

/** Create the rules of a broker, and the feature that passes events to them. */
export function makeRules(
  services: Services,
  parts: RuleParts,
  { tables, outboxes, streams }: RuleBase
): { rules: Rules; ruleFeature: RuleFeature } {
  const { settings, clock, wheel, work, life, events, metrics, alarms } = services;
  let start: StartChart<RuleActions> | undefined;
  const ruleFeature = new RuleFeature(() => clock.now());
  const rules = new Rules({
    ...{ options: settings.rules, node: settings.node, clock, wheel, outboxes },
    failed: (error, during) => services.failed(error, during),
    rules: tables.own(RULES_TABLE) as never,
    resources: tables.own(RESOURCES_TABLE) as never,
    sinkActions: async () => (await streams.sinkActions()).map(actionOf),
    get isStarted() {
      return life.isRunning;
    },
    get isSwitchedOn() {
      return ruleFeature.isStarted;
    },
    get isOpen() {
      return parts.ledger?.isOpen ?? true;
    },
    startChart(actions, id) {
      start ??= parts.actors.starter<RuleActions>(ruleMachine(), {
        key: 'rule',
        failed: (_, error, action) => services.failed(error, `the ${action} of a rule`),
        methodsFor: () => 'update or delete of broker.rules'
      });
      return start(actions, id);
    },
    watch: (filter, watcher) => parts.routing.watch(filter, watcher),
    listen(event, listener) {
      events.on(event, listener);
      return () => events.off(event, listener);
    },
    emit: (event, value) => events.emit(event, value),
    isHeard: (event) => events.heard[event],
    publisherOf,
    republish: (input, publisher) => parts.publishing.own.republish(input, publisher),
    publishSystem: (topic, payload, qos) => parts.publishing.own.publishSystem(topic, payload, qos, false),
    recorded: (code, subject) => services.reasons.add(code, subject),
    counted(what) {
      metrics.counts[COUNTERS[what]]++;
    },
    noted: (gauge, count) => metrics.note(gauge, count),
    raise: (id, title, summary) => alarms.raise({ id, title, summary }),
    clear: (id) => alarms.clear(id),
    nextSlice: () => services.pause(),
    during: (promise) => work.forAWhile(promise)
  });
  return { rules, ruleFeature };
}
