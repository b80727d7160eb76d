import { loadPatterns, type PatternCompiler } from '../sql/patterns.ts';
import type { Catalogue } from './catalogue.ts';
import type { ReadRule } from './definition.ts';
import { streamFunctions } from './functions/all.ts';
import type { FunctionTools, StreamFunction } from './functions/function.ts';
import { type OutputRows, SinkNode, type SinkTarget } from './graph/sink-node.ts';
import type { StreamsHost } from './host.ts';
import { bind } from './plan/bind.ts';
import type { StreamPlan } from './plan/plan.ts';
import { planOf } from './plan/planner.ts';
import type { Registry } from './registry.ts';
import type { StreamRulesHost } from './rules.ts';
import { type RowAttachment, type RowConsumer, Running } from './running.ts';
import { scheduleOf } from './schedule.ts';
import { parseStreamStatement } from './statement.ts';
import type { StreamRule } from './stream-rule.ts';
import { DEFAULT_BOUNDS } from './streams-options.ts';
import type { PlannedStream } from './plan/plan.ts';
import type { Value } from './values.ts';

/** What the runtime uses of the service. */
export interface RuntimeHost {
  readonly registry: Registry;
  readonly catalogue: Catalogue;
  emitted(rule: string, rows: OutputRows): void;
}
