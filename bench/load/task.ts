import type { Flood } from './frames.ts';

/** What a load generator is asked to do. Missing numbers take the defaults of `TASK_DEFAULTS`. */
export interface Task {
  readonly mode: 'pairs' | 'fanin' | 'fanout' | 'wild' | 'storm' | 'idle' | 'retained' | 'offline' | 'bystander';
  /** Of the broker, on 127.0.0.1. */
  readonly port: number;
  /** The broker's process, whose CPU time and memory are read. */
  readonly pid: number;
  /** The cores that broker and generator are pinned to; others' work there is told. */
  readonly cores?: readonly number[];
  readonly v5?: boolean;
  readonly qos?: 0 | 1 | 2;
  readonly payloadBytes?: number;
  readonly publishers?: number;
  readonly subscribers?: number;
  /** Messages a publisher has under way at most: not acknowledged (QoS 1, 2) or not delivered (QoS 0). */
  readonly window?: number;
  /** Messages a second, sent whether or not others have arrived; 0: as fast as the window allows. */
  readonly rate?: number;
  /** Sessions of subscribers outlive their connections. */
  readonly persistent?: boolean;
  readonly warmMs?: number;
  readonly measureMs?: number;
  /** Silence after which a message that has not come counts as lost. */
  readonly patienceMs?: number;
  /** Connections opened at one time. */
  readonly concurrency?: number;
  /** `wild`: wildcard filters, and how many of their topics are published to. */
  readonly filters?: number;
  readonly hotTopics?: number;
  /** `bystander`: what the other clients send without end. */
  readonly flood?: Flood;
  /** `retained`: topics. `idle`: connections. `offline`: sessions. `bystander`: flooding clients. */
  readonly count?: number;
  /** `offline`: messages for each session. */
  readonly perSession?: number;
}

export type FullTask = Required<Task>;

export const TASK_DEFAULTS: Omit<FullTask, 'mode' | 'port' | 'pid'> = {
  cores: [],
  v5: false,
  qos: 0,
  payloadBytes: 64,
  publishers: 100,
  subscribers: 100,
  window: 20,
  rate: 0,
  persistent: false,
  warmMs: 1000,
  measureMs: 2000,
  patienceMs: 3000,
  concurrency: 100,
  filters: 10_000,
  hotTopics: 1000,
  flood: 'pingreq',
  count: 10_000,
  perSession: 100
};

/** Figures of one run. Counts of things that must not happen are in `faults`. */
export interface Outcome {
  readonly figures: Readonly<Record<string, number>>;
  readonly faults: Faults;
}

export interface Faults {
  readonly lost: number;
  readonly duplicated: number;
  readonly reordered: number;
  /** Connections that ended, or were refused, although nobody asked. */
  readonly disconnected: number;
  /** Acknowledgements refused, doubled or never asked for. */
  readonly badAcks: number;
  /** Messages of publishers whose acknowledgement never came. */
  readonly unacknowledged: number;
  /** QoS 2 packet ids used again before their PUBREL. */
  readonly idsReused: number;
}
