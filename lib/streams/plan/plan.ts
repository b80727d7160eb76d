import type { PlannedNode } from '../graph/node.ts';
import type { PlanNode, StreamDefinition, Topology } from '../types.ts';

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

/** How a rule runs. It holds no state, so it can be started again. */
export interface StreamPlan {
  readonly streams: readonly PlannedStream[];
  /** Slots of the rows of streams. */
  readonly slotCount: number;
  /** The last operator, whose output are emissions. */
  readonly root: PlannedNode;
  /** All operators in the order of their numbers. */
  readonly nodes: readonly PlannedNode[];
  readonly topology: Topology;
  readonly explain: PlanNode;
}
