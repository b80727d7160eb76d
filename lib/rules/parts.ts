import type { SamplePace } from '../base/collections/samples.ts';
import type { EventFeeds } from './event-feeds.ts';
import type { RulesHost } from './host.ts';
import type { Kinds } from './kinds.ts';
import type { Meters } from './meter.ts';
import type { OutputIterations } from './output-iterations.ts';
import type { Planner } from './plan.ts';
import type { ActionTargets } from './targets/action-targets.ts';
import type { Resources } from './targets/resources.ts';

/** The parts of the engine that a rule and its actions use. */
export interface RuleEngineParts {
  readonly host: RulesHost;
  readonly planner: Planner;
  readonly feeds: EventFeeds;
  readonly meters: Meters;
  readonly iterations: OutputIterations;
  /** Decides when rules take samples. */
  readonly pace: SamplePace;
  readonly kinds: Kinds;
  readonly targets: ActionTargets;
  readonly resources: Resources;
  /** Report an error, with repetitions suppressed. */
  failed(ruleId: string, during: string, error: unknown): void;
  /** Report that an action of a rule has failed, with repetitions suppressed. @param topic of the message that caused it */
  actionFailed(ruleId: string, actionId: string, error: unknown, topic: string | undefined): void;
}
