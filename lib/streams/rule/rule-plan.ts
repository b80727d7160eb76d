import type { StreamPlan } from '../plan/plan.ts';
import type { SinkPlan } from '../sinks/sink-plan.ts';

/** How a rule runs: its statement, and its sinks. */
export interface RulePlan extends StreamPlan {
  /** By the order of the actions; undefined: a function of the app. */
  readonly sinks: readonly (SinkPlan | undefined)[];
}
