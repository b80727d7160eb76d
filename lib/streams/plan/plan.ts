import type { PlannedNode } from '../graph/node.ts';
import type { PlanNode, RuleOptions, StreamBounds, StreamDefinition, Topology } from '../types.ts';

/** A stream or table of a statement. */
export interface PlannedStream {
  readonly definition: StreamDefinition;
  /** Position among the sources of the statement, from 0. */
  readonly position: number;
  /** The columns that the statement uses. */
  readonly needed: ReadonlySet<string> | 'all';
  /** `lookup`: its rows are found by their keys, so it has no source node. */
  readonly kind: 'stream' | 'table' | 'lookup';
}

/** What a plan is made for, besides its statement. */
export interface PlanSettings {
  readonly options: RuleOptions;
  readonly bounds: StreamBounds;
  /** Names of the sinks: `sink_mqtt_0`. */
  readonly sinks: readonly string[];
}

/** How a rule runs. It holds no state, so it can be started again. */
export interface StreamPlan {
  readonly streams: readonly PlannedStream[];
  /** Number of sources of the statement, lookup tables included. */
  readonly sourceCount: number;
  /** Slots of the rows of streams. */
  readonly slotCount: number;
  /** The last operator, whose output are emissions. */
  readonly root: PlannedNode;
  /** All operators in the order of their numbers. */
  readonly nodes: readonly PlannedNode[];
  readonly topology: Topology;
  readonly explain: PlanNode;
}
