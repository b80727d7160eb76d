import type { Task } from './load/task.ts';
import type { BrokerName, Durability, Observer } from './support/brokers.ts';

/** A measured value of a row: its `key` in the outcome, and its goal. Lower values are better. */
export interface Figure {
  readonly key: string;
  readonly label: string;
  readonly unit: 'us' | 'bytes' | 'times';
  readonly goal?: Goal;
}

/**
 * The goal of a value. Ratios give the value of a peer divided by ours. They take precedence, because absolute values
 * depend on the machine.
 */
export interface Goal {
  readonly value?: number;
  readonly aedes?: number;
  readonly mosquitto?: number;
  /** The maximum of our value divided by that of the blind relay. */
  readonly timesRaw?: number;
}

/** One row: a task with which each broker is measured. */
export interface Row {
  readonly name: string;
  readonly task: Omit<Task, 'port' | 'pid'>;
  /**
   * Set if brokers persist their state in LevelDB. It survives the end of the process, or also of the machine (for
   * aedes only of the process).
   */
  readonly store?: Durability;
  /** The brokers that support the task. */
  readonly brokers: readonly BrokerName[];
  readonly figures: readonly Figure[];
  /** For `v5` rows: the same row over 3.1.1. For `store` rows: the same row without a store. */
  readonly sameAs?: string;
  /**
   * The additional configuration of embermq: an authorizePublish hook whose answers may be cached, a listener on topics
   * without messages, 1,000 access rules, the last of which allows everything, 1,000 users with passwords, the
   * management interface, which another process polls for lists and counters once a second, or a webhook to a server
   * that is down, for topics without messages or for all messages; a schema for topics without messages or for all
   * messages, the option `sparkplug`, or a handler of requests on topics without messages. With `serve`, the command
   * `embermq serve` is measured, without its HTTP ports; `serve-tls` and `serve-ws`: over TLS and WebSocket.
   */
  readonly observer?: Observer;
  /** A second broker of the same kind, to which the first one forwards all messages; subscribers connect there. */
  readonly isBridged?: boolean;
  /** True if the broker is not pinned to one core. */
  readonly usesAllCores?: boolean;
}

const BROKERS: readonly BrokerName[] = ['embermq', 'aedes', 'mosquitto'];
const WITH_MIN: readonly BrokerName[] = [...BROKERS, 'min'];
const WITH_RELAYS: readonly BrokerName[] = [...WITH_MIN, 'raw'];

const ROWS_V4: readonly Row[] = [
  row('pairs100 q0 64B w20', { mode: 'pairs' }, WITH_RELAYS, [message({ value: 0.8, aedes: 17, mosquitto: 12 })]),
  row('pairs100 q0 1KiB w20', { mode: 'pairs', payloadBytes: 1024 }, WITH_RELAYS, [
    message({ value: 1.4, aedes: 11, mosquitto: 8.5 })
  ]),
  row('pairs500 q0 64B w1', { mode: 'pairs', publishers: 500, window: 1 }, WITH_RELAYS, [
    message({ aedes: 1.9, mosquitto: 1, timesRaw: 1.1 })
  ]),
  row('pairs100 q1 64B w20', { mode: 'pairs', qos: 1 }, WITH_MIN, [message({ value: 2.4, aedes: 8, mosquitto: 7.5 })]),
  row('pairs100 q2 64B w20', { mode: 'pairs', qos: 2 }, BROKERS, [message({ value: 4.5, aedes: 10, mosquitto: 8 })]),
  row('fanin50 q0 64B w20', { mode: 'fanin', publishers: 50 }, WITH_MIN, [
    message({ value: 0.55, aedes: 20, mosquitto: 13 })
  ]),
  row('fanin50 q1 64B w20', { mode: 'fanin', publishers: 50, qos: 1 }, WITH_MIN, [
    message({ value: 1.5, aedes: 11, mosquitto: 10 })
  ]),
  row('fanout1000 q0 64B w10', { mode: 'fanout', subscribers: 1000, window: 10 }, WITH_RELAYS, [
    message({ value: 1.1, aedes: 12, mosquitto: 8.9 })
  ]),
  row('fanout1000 q1 64B w10', { mode: 'fanout', subscribers: 1000, window: 10, qos: 1 }, WITH_MIN, [
    message({ value: 2.8, aedes: 5.8, mosquitto: 4.6 })
  ]),
  row('wild 10k hot1000', { mode: 'wild', publishers: 10, subscribers: 10 }, BROKERS, [
    message({ value: 1.5, aedes: 10, mosquitto: 7 }),
    { key: 'subscribeUs', label: 'subscribe', unit: 'us' },
    { key: 'subscribeBytes', label: 'subscription', unit: 'bytes', goal: { value: 450 } }
  ]),
  row('retained 10k q1', { mode: 'retained', qos: 1, window: 50 }, BROKERS, [
    { key: 'storeUs', label: 'store', unit: 'us', goal: { value: 3.5, aedes: 6, mosquitto: 3.4 } },
    { key: 'deliverUs', label: 'deliver', unit: 'us', goal: { value: 1.5, aedes: 14, mosquitto: 2.7 } },
    { key: 'retainedBytes', label: 'kept', unit: 'bytes' }
  ]),
  row('offline 100x100 q1', { mode: 'offline', qos: 1, window: 50, count: 100 }, BROKERS, [
    { key: 'enqueueUs', label: 'enqueue', unit: 'us', goal: { value: 4, aedes: 5, mosquitto: 2.7 } },
    { key: 'drainUs', label: 'drain', unit: 'us', goal: { value: 3, aedes: 12, mosquitto: 1.7 } },
    { key: 'queuedBytes', label: 'queued', unit: 'bytes' }
  ]),
  row('retained 100k q1', { mode: 'retained', qos: 1, window: 50, count: 100_000 }, BROKERS, [
    { key: 'storeUs', label: 'store', unit: 'us' },
    { key: 'deliverUs', label: 'deliver', unit: 'us' },
    { key: 'retainedBytes', label: 'kept', unit: 'bytes' }
  ]),
  row('offline 100x1000 q1', { mode: 'offline', qos: 1, window: 50, count: 100, perSession: 1000 }, BROKERS, [
    { key: 'enqueueUs', label: 'enqueue', unit: 'us' },
    { key: 'drainUs', label: 'drain', unit: 'us' },
    { key: 'queuedBytes', label: 'queued', unit: 'bytes' }
  ]),
  row('storm c100', { mode: 'storm' }, WITH_MIN, [
    { key: 'connectUs', label: 'connection', unit: 'us', goal: { value: 110, aedes: 2.3 } }
  ]),
  row('idle 5000', { mode: 'idle', count: 5000 }, WITH_MIN, [
    { key: 'idleBytes', label: 'connection', unit: 'bytes', goal: { value: 9500, aedes: 2.2 } },
    { key: 'openUs', label: 'open', unit: 'us' }
  ]),
  row('latency q0 10k/s', { mode: 'pairs', rate: 10_000 }, WITH_MIN, [
    { key: 'p50Us', label: 'p50', unit: 'us' },
    { key: 'p99Us', label: 'p99', unit: 'us', goal: { mosquitto: 1 / 1.5 } }
  ])
];

/** The latency of a client while 60 other clients send one type of packet as fast as they can. */
const ROWS_FLOOD: readonly Row[] = (
  ['pingreq', 'publish', 'publish-q1', 'puback', 'subscribe', 'unsubscribe', 'connect'] as const
).map((flood) =>
  row(`bystander of 60 x ${flood}`, { mode: 'bystander', flood, count: 60 }, BROKERS, [
    { key: 'p99Us', label: 'p99', unit: 'us', goal: { value: 100_000, mosquitto: 1 / 3 } },
    { key: 'p50Us', label: 'p50', unit: 'us' },
    { key: 'worstUs', label: 'worst', unit: 'us' },
    { key: 'connectP99Us', label: 'new connection, p99', unit: 'us' },
    { key: 'grownBytes', label: 'memory, over idle', unit: 'bytes', goal: { value: 60 * 2 ** 20 } }
  ])
);

/** Logins with passwords, which the broker hashes on all cores. */
const ROWS_LOGIN: readonly Row[] = [
  {
    ...row(
      'logins 1000 users',
      { mode: 'logins', count: 1000 },
      ['embermq'],
      [
        {
          key: 'hashTimes',
          label: 'all connected, over the time of their hashes',
          unit: 'times',
          goal: { value: 1.5 }
        },
        { key: 'cpuUs', label: 'login', unit: 'us' }
      ]
    ),
    observer: 'users',
    usesAllCores: true
  },
  {
    ...row(
      'wrong logins 1000/s durable',
      { mode: 'wrong-logins', qos: 1, count: 1000 },
      ['embermq'],
      [
        { key: 'p99Times', label: 'QoS 1 p99, over quiet', unit: 'times', goal: { value: 2 } },
        { key: 'p99Us', label: 'QoS 1 p99', unit: 'us' },
        { key: 'connectTimes', label: 'CONNECT of a known user, median over quiet', unit: 'times', goal: { value: 2 } },
        { key: 'connectUs', label: 'CONNECT of a known user', unit: 'us' },
        { key: 'connectP99Us', label: 'CONNECT of a known user, p99', unit: 'us' }
      ]
    ),
    store: 'process',
    observer: 'users',
    usesAllCores: true
  }
];

/** A client that connects while 500 others return to their sessions, after their connections were reset. */
const ROWS_RESETS: readonly Row[] = (['tcp', 'tls', 'ws'] as const).flatMap((wire) =>
  (['process', undefined] as const).map((store) => ({
    ...row(
      ['resets 500', ...(wire === 'tcp' ? [] : [wire]), ...(store === undefined ? [] : ['durable'])].join(' '),
      { mode: 'resets', qos: 1, subscribers: 500, wire },
      ['embermq'],
      [
        { key: 'newcomerUs', label: 'CONNACK of a new client (time, not CPU)', unit: 'us', goal: { value: 1_000_000 } },
        { key: 'worstNewcomerUs', label: 'the same, the longest of three', unit: 'us' },
        { key: 'returnUs', label: 'CONNACK of the others, median', unit: 'us' },
        { key: 'cpuUs', label: 'connection', unit: 'us' }
      ]
    ),
    store,
    observer: wire === 'tcp' ? ('serve' as const) : (`serve-${wire}` as const)
  }))
);

/** Rows with the management interface. */
const ROWS_POLLED: readonly Row[] = ROWS_V4.filter(({ name }) => /^(pairs100 q[012] 64B|fan)/.test(name)).map(
  (same) => ({
    ...same,
    name: `${same.name} rest`,
    brokers: ['embermq'] as const,
    figures: [{ key: 'cpuUs', label: 'message', unit: 'us' }] as const,
    sameAs: same.name,
    observer: 'rest'
  })
);

/** Rows with a webhook whose server is down. */
const ROWS_HOOKED: readonly Row[] = (['webhook', 'webhook-all'] as const).flatMap((observer) =>
  ROWS_V4.filter(({ name }) => /^pairs100 q[01] 64B/.test(name)).map((same) => ({
    ...same,
    name: `${same.name} ${observer}`,
    brokers: ['embermq'] as const,
    figures: [{ key: 'cpuUs', label: 'message', unit: 'us' }] as const,
    sameAs: same.name,
    observer
  }))
);

/** There are no v5 rows for aedes, which does not support version 5, and for the blind relay, for which they would be identical. */
const ROWS_V5: readonly Row[] = ROWS_V4.map((same) => ({
  ...same,
  name: `${same.name} v5`,
  task: { ...same.task, v5: true },
  brokers: same.brokers.filter((name) => name !== 'aedes' && name !== 'raw'),
  figures: same.figures.map(({ goal, ...figure }) => figure),
  sameAs: same.name
}));

/** Messages that a bridge forwards to a second broker; only the CPU time of the first one counts. */
const ROWS_BRIDGED: readonly Row[] = ([1, 10] as const).map((publishers) => ({
  ...row(
    `bridge${publishers} q1 64B w100`,
    { mode: 'pairs', qos: 1, publishers, window: 100 },
    ['embermq', 'mosquitto'],
    [message({ value: 6, mosquitto: 4 })]
  ),
  isBridged: true
}));

/** Features that leave QoS 0 messages on the fast path, except for `schemas-all`. */
const OBSERVERS = ['hook', 'listener', 'rules', 'schemas', 'schemas-all', 'sparkplug', 'respond'] as const;
const ROWS_OBSERVED: readonly Row[] = OBSERVERS.flatMap((observer) =>
  ROWS_V4.filter(({ name }) => /^pairs100 q0 64B/.test(name)).map((same) => ({
    ...same,
    name: `${same.name} ${observer}`,
    brokers: ['embermq'] as const,
    figures: [{ key: 'cpuUs', label: 'message', unit: 'us' }] as const,
    sameAs: same.name,
    observer
  }))
);

const WITH_STORES: readonly BrokerName[] = ['embermq', 'aedes'];

/** Rows with a store that persists messages, and with a store that has nothing to persist. */
const ROWS_STORED: readonly Row[] = [
  stored('pairs100 q1 64B w20 durable', { mode: 'pairs', qos: 1, persistent: true }, [
    message({ value: 6, aedes: 24 })
  ]),
  stored('pairs100 q2 64B w20 durable', { mode: 'pairs', qos: 2, persistent: true }, [
    message({ value: 13, aedes: 28 })
  ]),
  stored('offline 100x100 q1 durable', { mode: 'offline', qos: 1, window: 50, count: 100 }, [
    { key: 'enqueueUs', label: 'enqueue', unit: 'us', goal: { value: 7, aedes: 6 } },
    { key: 'drainUs', label: 'drain', unit: 'us', goal: { value: 5, aedes: 35 } }
  ]),
  stored('offline 100x1000 q1 durable', { mode: 'offline', qos: 1, window: 50, count: 100, perSession: 1000 }, [
    { key: 'enqueueUs', label: 'enqueue', unit: 'us' },
    { key: 'drainUs', label: 'drain', unit: 'us' }
  ]),
  stored('retained 10k q1 durable', { mode: 'retained', qos: 1, window: 50 }, [
    { key: 'storeUs', label: 'store', unit: 'us', goal: { value: 7 } },
    { key: 'deliverUs', label: 'deliver', unit: 'us', goal: { value: 2 } }
  ]),
  {
    ...stored('pairs50 q1 64B w20 power', { mode: 'pairs', qos: 1, publishers: 50, persistent: true }, [
      { key: 'sentUs', label: 'acknowledgement (time, not CPU)', unit: 'us', goal: { aedes: 10 } }
    ]),
    store: 'power'
  },
  ...ROWS_V4.filter(({ name }) => /^(pairs100 q[012] 64B|fanout1000 q1)/.test(name)).map(
    (same): Row => ({
      ...same,
      name: `${same.name} store`,
      store: 'process',
      brokers: ['embermq'],
      figures: [{ key: 'cpuUs', label: 'message', unit: 'us' }],
      sameAs: same.name
    })
  )
];

/** All rows. Rows to be compared follow each other. */
export const ROWS: readonly Row[] = [
  ...ROWS_V4.flatMap((same, at) => [
    same,
    ROWS_V5[at],
    ...[...ROWS_STORED, ...ROWS_OBSERVED, ...ROWS_POLLED, ...ROWS_HOOKED].filter(({ sameAs }) => sameAs === same.name)
  ]),
  ...ROWS_STORED.filter(({ sameAs }) => sameAs === undefined),
  ...ROWS_BRIDGED,
  ...ROWS_RESETS,
  ...ROWS_FLOOD,
  ...ROWS_LOGIN
];

/** A row with small sizes, for a run that only checks that everything works. */
export function shortened(row: Row): Row {
  const { mode, publishers = 100, subscribers = 100, count = 1000 } = row.task;
  const task: Row['task'] = {
    ...row.task,
    publishers: Math.min(publishers, 50),
    subscribers: Math.min(subscribers, 100),
    count: Math.min(count, mode === 'retained' ? 1000 : mode === 'idle' ? 200 : 20),
    filters: 1000,
    hotTopics: 100,
    perSession: 50,
    warmMs: 100,
    measureMs: 200
  };
  return { ...row, task };
}

function row(name: string, task: Row['task'], brokers: readonly BrokerName[], figures: readonly Figure[]): Row {
  return { name, task, brokers, figures };
}

function stored(name: string, task: Row['task'], figures: readonly Figure[]): Row {
  return { ...row(name, task, WITH_STORES, figures), store: 'process' };
}

function message(goal: Goal): Figure {
  return { key: 'cpuUs', label: 'message', unit: 'us', goal };
}
