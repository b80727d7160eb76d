import type { NodeSetup, Operator } from '../operators/operator.ts';
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

/** A step of a plan. Plans hold no state, so that a rule can be started again. */
export interface PlannedNode {
  /** Name in the status and the topology: `op_2_filter`. */
  readonly name: string;
  /** What it does, for EXPLAIN. */
  readonly about: string;
  /** Begins the messages of its errors: `run Where error: `. */
  readonly prefix?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the planner connects only operators that fit
  readonly make: (setup: NodeSetup<any>) => Operator<any>;
  readonly inputs: readonly PlannedInput[];
}

/** A source of a plan: the rows of a stream or a table reach the operators through it. */
export interface PlannedSource {
  /** Name of its preprocessor: `op_1_preprocessor_demo`. */
  readonly name: string;
  /** `source_demo`. */
  readonly sourceName: string;
  /** Position among the sources of the statement, from 0. */
  readonly position: number;
  /** Its rows become joined rows with one part, because the statement has several sources. */
  readonly wraps: boolean;
}

export type PlannedInput = PlannedNode | PlannedSource;

export function isSource(input: PlannedInput): input is PlannedSource {
  return 'position' in input;
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
  /** Names that several columns of SELECT have: only the last of them is in the output. */
  readonly repeated: readonly string[];
  /** The last operator, whose output are emissions. */
  readonly root: PlannedNode;
  /** All operators in the order of their numbers. */
  readonly nodes: readonly PlannedNode[];
  readonly topology: Topology;
  readonly explain: PlanNode;
}
