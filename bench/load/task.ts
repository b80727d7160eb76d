import type { Flood } from './frames.ts';
import type { Wire } from './wire.ts';

/** The task of a load generator. `TASK_DEFAULTS` contains the defaults of numbers. */
export interface Task {
  readonly mode:
    | 'pairs'
    | 'fanin'
    | 'fanout'
    | 'wild'
    | 'storm'
    | 'resets'
    | 'idle'
    | 'retained'
    | 'offline'
    | 'bystander'
    | 'logins'
    | 'wrong-logins';
  /** The port of the broker on 127.0.0.1. */
  readonly port: number;
  /** The port of the broker that a bridge forwards to, where subscribers connect; 0: that of the broker. */
  readonly farPort?: number;
  /** The process id of the broker, whose CPU time and memory are measured. */
  readonly pid: number;
  /** The cores that broker and generator are pinned to. Other work on these cores is reported. */
  readonly cores?: readonly number[];
  readonly v5?: boolean;
  /** The transport of connections. */
  readonly wire?: Wire;
  readonly qos?: 0 | 1 | 2;
  readonly payloadBytes?: number;
  readonly publishers?: number;
  readonly subscribers?: number;
  /** The maximum number of messages of a publisher that are not acknowledged (QoS 1, 2) or not delivered (QoS 0). */
  readonly window?: number;
  /** Messages per second, sent whether or not earlier ones have arrived; 0: as fast as the window allows. */
  readonly rate?: number;
  /** True if the sessions of subscribers are persistent. */
  readonly persistent?: boolean;
  readonly warmMs?: number;
  readonly measureMs?: number;
  /** Time without deliveries after which missing messages count as lost. */
  readonly patienceMs?: number;
  /** The number of connections that are opened at a time. */
  readonly concurrency?: number;
  /** For `wild`: the number of wildcard filters, and the number of their topics to publish to. */
  readonly filters?: number;
  readonly hotTopics?: number;
  /** For `bystander`: the type of packet that the other clients send. */
  readonly flood?: Flood;
  /**
   * The number of topics (`retained`), connections (`idle`), sessions (`offline`), flooding clients (`bystander`), users (`logins`) or
   * logins per second (`wrong-logins`).
   */
  readonly count?: number;
  /** For `offline`: the number of messages per session. */
  readonly perSession?: number;
}

export type FullTask = Required<Task>;

export const TASK_DEFAULTS: Omit<FullTask, 'mode' | 'port' | 'pid'> = {
  farPort: 0,
  cores: [],
  v5: false,
  wire: 'tcp',
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

/** The measurements of one run. `faults` counts errors, which must not occur. */
export interface Outcome {
  readonly figures: Readonly<Record<string, number>>;
  readonly faults: Faults;
}

export interface Faults {
  readonly lost: number;
  readonly duplicated: number;
  readonly reordered: number;
  /** The number of connections that were closed unexpectedly or refused. */
  readonly disconnected: number;
  /** The number of acknowledgements that were negative, duplicated or unexpected. */
  readonly badAcks: number;
  /** The number of messages that were never acknowledged. */
  readonly unacknowledged: number;
  /** The number of QoS 2 packet ids that were reused before their PUBREL. */
  readonly idsReused: number;
}
