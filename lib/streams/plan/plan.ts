import type { NodeSetup, Operator, RowFilter } from '../operators/operator.ts';
import type { PlanNode, RuleOptions, StreamBounds, StreamDefinition, Topology } from '../types.ts';

/** A stream or table of a statement. */
export interface PlannedStream {
  readonly definition: StreamDefinition;
  /** Position among the sources of the statement, from 0. */
  readonly position: number;
  /** The columns that the statement uses. */
  readonly needed: ReadonlySet<string> | 'all';
  /** `lookup`: the rows are found by their keys, so there is no source node. */
  readonly kind: 'stream' | 'table' | 'lookup';
}

/** A step of a plan. Plans hold no state, so that a rule can be started again. */
export interface PlannedNode {
  /** Name in the status and the topology: `op_2_filter`. */
  readonly name: string;
  /** Description, for EXPLAIN. */
  readonly about: string;
  /** Prefix of its error messages: `run Where error: `. */
  readonly prefix?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the planner connects only operators that fit
  readonly make: (setup: NodeSetup<any>) => Operator<any> | RowFilter;
  readonly inputs: readonly PlannedInput[];
}

/** A source of a plan, through which the rows of a stream or a table reach the operators. */
export interface PlannedSource {
  /** Name of its preprocessor: `op_1_preprocessor_demo`. */
  readonly name: string;
  /** `source_demo`. */
  readonly sourceName: string;
  /** Position among the sources of the statement, from 0. */
  readonly position: number;
  /** True if its rows become joined rows with one part, because the statement has several sources. */
  readonly wraps: boolean;
}

export type PlannedInput = PlannedNode | PlannedSource;

export function isSource(input: PlannedInput): input is PlannedSource {
  return 'position' in input;
}

/** The settings of a plan, besides its statement. */
export interface PlanSettings {
  readonly options: RuleOptions;
  readonly bounds: StreamBounds;
  /** Names of the sinks: `sink_mqtt_0`. */
  readonly sinks: readonly string[];
}

/** The plan of a statement. It holds no state, so that the rule can be started again. */
export interface StreamPlan {
  readonly streams: readonly PlannedStream[];
  /** Number of sources of the statement, including lookup tables. */
  readonly sourceCount: number;
  /** Slots of the rows of streams. */
  readonly slotCount: number;
  /** Names shared by several columns of SELECT: only the last of these columns is in the output. */
  readonly repeated: readonly string[];
  /** The last operator, which outputs the emissions. */
  readonly root: PlannedNode;
  /** All operators, in the order of their numbers. */
  readonly nodes: readonly PlannedNode[];
  readonly topology: Topology;
  readonly explain: PlanNode;
}
