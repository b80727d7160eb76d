import type { StreamPlan } from '../plan/plan.ts';
import type { SinkPlan } from '../sinks/sink-plan.ts';

/** The plan of a rule: its statement and its sinks. */
export interface RulePlan extends StreamPlan {
  /** In the order of the actions; undefined for a function of the app. */
  readonly sinks: readonly (SinkPlan | undefined)[];
  /** A sentence for each property of an action that has no effect. */
  readonly warnings: readonly string[];
}
