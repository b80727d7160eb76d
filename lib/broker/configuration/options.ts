// Defaults that differ from the documented ones, because the broker runs inside an app: `maxInflight` 128 (32),
// `maxMqueueLen` 10,000 (1,000) with a byte bound of 32 MB, so that a burst within one turn is not dropped for a
// healthy subscriber; `connectTimeout` 10 s for the whole CONNECT; `retryInterval` 0 (MQTT forbids resending on a
// live connection); `maxTopicLevels` 256 and `maxClientidLen` 4,096 instead of no bound; `maxTopicAlias` 64, because
// an alias may occupy 64 KiB; `mqueueDefaultPriority` lowest.

import { flappingPolicyOf } from '../../access/flapping.ts';
import type { AuthSource } from '../../access/source.ts';
import { once, v8 } from '../../base/builtins.ts';
import type { Clock } from '../../base/clock.ts';
import { InvalidInput } from '../../base/errors.ts';
import { type Defaulted, field, isPlainObject, type Values } from '../../base/fields.ts';
import type { Hooks } from '../../events/hooks.ts';
import type { Logger } from '../../monitor/log.ts';
import type { QoS } from '../../packets/types.ts';
import type { Given, Zone, ZoneInput } from '../../records/zone.ts';
import type { SharedStrategy } from '../../routing/share-group.ts';
import type { TopicSchema } from '../../routing/topic-schemas.ts';
import type { RulesOptions } from '../../rules/types.ts';
import type { Store } from '../../store/store.ts';
import type { StreamsOptions } from '../../streams/types.ts';
import type { AutoSubscription } from './auto-subscriptions.ts';
import type { ConnectorKind } from './connectors.ts';
import type { SchemaTable } from './payload-schemas.ts';
import type { SparkplugOptions } from './sparkplug-options.ts';

/** The option `reasons`: the maximum memory in bytes, from 64 KiB; false: nothing is recorded. */
export type ReasonsOption =
  | {
      /** Maximum memory in bytes, at least 65,536. Default: 16,777,216. */
      readonly maxBytes: number;
    }
  | false;

const DEFAULT_REASONS = { maxBytes: 16_777_216 };
const MIN_REASONS_BYTES = 65_536;

/** Default of `memoryHighWatermark`, in bytes. */
export const defaultWatermark = once(() => Math.floor(v8().getHeapStatistics().heap_size_limit * 0.85));

/** The settings of the broker as a whole. */
export const BROKER_OPTIONS = {
  node: field('string', 'embermq@127.0.0.1', 'Name of the broker node, used in records and in `$SYS` topics.', {
    aliases: ['node.name'],
    max: 1024,
    check: checkNode,
    whyFixed: 'it is part of `$SYS` topics, records and sessions'
  }),
  timerResolution: field('duration', 100, 'Tick of the timing wheel. A timeout may be late by one tick.', {
    unit: 'ms',
    min: 1,
    max: 10_000,
    whyFixed: 'all timers are kept by that tick'
  }),
  hookTimeout: field('duration', 5_000, 'Time that a hook may take. After that, its operation is refused.', {
    unit: 'ms',
    min: 1,
    change: 'now'
  }),
  maxHeldBytes: field(
    'size',
    1_048_576,
    'Bytes that one connection may buffer while a hook decides, in addition to one chunk and the buffer of its stream.',
    { unit: 'bytes', min: 1024, change: 'now' }
  ),
  maxConnections: field(
    'integer',
    100_000,
    'Maximum number of connections of all listeners together. Further connections are closed if no place becomes free within 0.5 s. 0: unlimited.',
    {
      unit: 'connections',
      change: 'now'
    }
  ),
  maxConnectionsPerAddress: field(
    'integer',
    0,
    'Maximum number of connections of one remote address, of all listeners together. Further connections are closed if no place becomes free within 0.5 s. Behind a proxy, this is the address that the PROXY protocol reports. 0: unlimited.',
    { unit: 'connections', change: 'now' }
  ),
  takeoverByOtherUser: field(
    'choice',
    'allow' as 'allow' | 'refuse',
    'Whether a client may take over the session of its client id from another user name, also if that client is not connected. Otherwise its CONNECT is refused (0x85), with Clean Start as well.',
    { choices: ['allow', 'refuse'], change: 'now' }
  ),
  retainedRights: field(
    'choice',
    'keep' as 'keep' | 'recheck',
    'Whether a retained message is still delivered when the access rules that the broker holds no longer allow its publisher to publish it (`keep`), or not (`recheck`). Remote sources and hooks are not asked.',
    { choices: ['keep', 'recheck'], change: 'now' }
  ),
  maxUnwrittenBytes: field(
    'size',
    8_388_608,
    'With a store: when this many bytes wait to be written, the broker stops reading from clients that caused more than an equal share of them. At four times this size it stops reading from every client that caused any.',
    { unit: 'bytes', min: 65_536, change: 'now' }
  ),
  repairStore: field(
    'boolean',
    false,
    'With a store: start even if records are missing or cannot be read, and continue without them.',
    { whyFixed: 'it is read before the store is opened' }
  ),
  maxSessions: field(
    'integer',
    250_000,
    'Maximum number of sessions, connected or not. Further sessions are refused (0x97). 0: unlimited.',
    { unit: 'sessions', change: 'now' }
  ),
  maxTotalSubscriptions: field(
    'integer',
    5_000_000,
    'Maximum number of subscriptions of all sessions together (0x97); 0: unlimited.',
    {
      unit: 'filters',
      change: 'now'
    }
  ),
  outputHighWaterMark: field(
    'size',
    262_144,
    'When a connection has this many unsent bytes, further messages for it are queued in the backlog.',
    {
      unit: 'bytes',
      min: 1,
      change: 'now'
    }
  ),
  memoryHighWatermark: lateDefault(
    defaultWatermark,
    'When heap and buffers reach this size, the broker closes connections whose CONNECT is not accepted yet, except those of clients that return to a stored session. It creates no new sessions and does not queue QoS 0 messages. If memory stays above this size, it also refuses QoS 1 and 2 messages that would have to wait in memory (0x97). 0: never.',
    {
      unit: 'bytes',
      leastChange: { min: 33_554_432, why: 'a process without clients uses nearly that much' },
      change: 'now'
    }
  ),
  maxTotalMqueueBytes: field(
    'size',
    undefined as number | undefined,
    'Maximum size of the backlogs of all sessions together, in memory. Above it, messages are dropped from the largest backlogs first. 0: unlimited.',
    { unit: 'bytes', change: 'now' }
  ),
  maxTotalMqueueStoreBytes: field(
    'size',
    undefined as number | undefined,
    'Maximum space in the store for the queued messages of all sessions together. A value above the default has no effect. Above it, messages are dropped from the largest queues first, and only to make room for new messages. 0: unlimited until the reserve of the store is in use.',
    { unit: 'bytes', change: 'now' }
  ),
  routeCacheTargets: field(
    'integer',
    200_000,
    'Size of the route cache: the number of cached topics plus the number of subscribers that they reach.',
    {
      min: 16,
      whyFixed: 'the cache is made with the broker'
    }
  ),
  sharedSubscriptionStrategy: field(
    'choice',
    'random' as SharedStrategy,
    'How a share group selects the member that receives a message.',
    {
      choices: ['random', 'round_robin', 'sticky', 'hash'],
      aliases: ['broker.shared_subscription_strategy'],
      change: 'now'
    }
  ),
  sharedDispatchAckEnabled: field(
    'boolean',
    false,
    'For QoS 1 and 2: skip members that are offline or have a full in-flight window if another member can receive the message.',
    {
      aliases: ['broker.shared_dispatch_ack_enabled'],
      change: 'now'
    }
  ),
  maxRetainedMessages: field(
    'integer',
    1_000_000,
    'Maximum number of retained messages. At the limit, the messages of topics that already have one can still be replaced. 0: unlimited.',
    { unit: 'messages', aliases: ['retainer.max_retained_messages'], change: 'now' }
  ),
  maxRetainedBytes: field('size', 1_073_741_824, 'Maximum size of all retained messages together; 0: unlimited.', {
    unit: 'bytes',
    change: 'now'
  }),
  maxRetainedPayloadSize: field(
    'size',
    1_048_576,
    'Maximum payload of a retained message. A message with a larger payload is delivered but not retained. 0: unlimited.',
    {
      unit: 'bytes',
      aliases: ['retainer.max_payload_size'],
      change: 'now'
    }
  ),
  retainedExpiryInterval: field(
    'duration',
    0,
    'Time until a retained message without a Message Expiry Interval expires; 0: never.',
    { unit: 's', aliases: ['retainer.expiry_interval'], change: 'now' }
  ),
  passwordCost: field(
    'integer',
    14,
    'Base-2 logarithm of the scrypt cost of new hashes: of the secrets of applications and the passwords of management users. One more doubles the time (14: some 30 ms) and the memory (14: 16 MB) of a check. Tests that add many of them can choose 10.',
    { min: 10, max: 20, whyFixed: 'checks of unknown names take the time that belongs to it' }
  ),
  aclCacheMaxSize: field(
    'integer',
    32,
    'Number of topics for which each connection keeps what access rules and sources have decided; 0: none. One count for topics that are published to, one for filters.',
    { aliases: ['acl_cache_max_size'], max: 100_000, change: 'now' }
  ),
  aclCacheTtl: field(
    'duration',
    60_000,
    'Time after which a decision about a topic is taken again; sources that must be asked are then also asked again about subscriptions. While they cannot answer, the current decision about a subscription remains valid for this time once more.',
    {
      unit: 'ms',
      min: 1,
      aliases: ['acl_cache_ttl'],
      change: 'now'
    }
  ),
  aclRemoveSubscriptions: field(
    'boolean',
    false,
    'When a change of access rules or the answer of a source takes the right to a subscription away, remove the subscription; while messages wait for the client, it stays, so that they are not delivered. Otherwise it stays and nothing is delivered through it until the right is given back.',
    { change: 'now' }
  ),
  delayedPublish: field('boolean', true, 'Publish messages to `$delayed/<seconds>/<topic>` after that delay.', {
    whyFixed: 'it is what the feature `delayed` begins with, which can be started and stopped at run time'
  }),
  maxDelayedMessages: field('integer', 100_000, 'Maximum number of delayed messages; 0: unlimited.', {
    unit: 'messages',
    change: 'now'
  }),
  maxDelayedBytes: field('size', 268_435_456, 'Maximum size of all delayed messages together; 0: unlimited.', {
    unit: 'bytes',
    change: 'now'
  }),
  sysInterval: field('duration', 60_000, 'Interval at which `$SYS` statistics are published; 0: never.', {
    unit: 'ms',
    aliases: ['broker.sys_interval'],
    change: 'now'
  }),
  sysHeartbeat: field('duration', 30_000, 'Interval at which `$SYS` uptime and datetime are published; 0: never.', {
    unit: 'ms',
    aliases: ['broker.sys_heartbeat'],
    change: 'now'
  }),
  sysDottedTopics: field(
    'boolean',
    false,
    'Publish `$SYS` topics also under names with dots, such as `connections.count` for `connections/count`.',
    {
      change: 'now'
    }
  ),
  sysForRemoteClients: field('boolean', false, 'Allow clients on other machines to subscribe to `$SYS` topics.', {
    change: 'now'
  }),
  banDisconnects: field(
    'boolean',
    false,
    'Disconnect the connected clients that a new ban is about. Otherwise a ban is checked only when a client connects.',
    { change: 'now' }
  ),
  flappingDetectPolicy: field(
    'string',
    '30,1m,5m',
    'When a client is flapping: number of lost connections, the time within which they are counted, and the duration of the ban of its client id. See enableFlappingDetect.',
    { check: checkFlappingPolicy, change: 'now' }
  ),
  maxAlarmHistory: field(
    'integer',
    1_000,
    'Number of past alarms that `broker.alarms` keeps. The oldest ones are deleted.',
    {
      unit: 'alarms',
      change: 'now'
    }
  ),
  reasons: field(
    'object',
    DEFAULT_REASONS as ReasonsOption,
    'Memory for the reasons for which messages did not arrive and for the history of clients: `{ maxBytes }`. The oldest records are removed. `false`: nothing is recorded, and dropped messages are not listed.',
    { check: checkReasons, whyFixed: 'the records are kept from the start of the broker' }
  ),
  cpuHighWatermark: field(
    'percent',
    80,
    'Use of the processors of the machine in percent at which the alarm `cpu_high_watermark` is raised; 0: never.',
    { aliases: ['os_mon.cpu_high_watermark'], change: 'now' }
  ),
  cpuLowWatermark: field('percent', 60, 'Use of the processors in percent below which that alarm is cleared.', {
    aliases: ['os_mon.cpu_low_watermark'],
    change: 'now'
  }),
  cpuCheckInterval: field('duration', 60_000, 'Time over which the use of the processors is measured; 0: never.', {
    unit: 'ms',
    aliases: ['os_mon.cpu_check_interval'],
    change: 'now'
  }),
  sysmemHighWatermark: field(
    'percent',
    70,
    'Use of the memory of the machine in percent at which the alarm `system_memory_high_watermark` is raised, and below which it is cleared; 0: never.',
    { aliases: ['os_mon.sysmem_high_watermark'], change: 'now' }
  ),
  memCheckInterval: field('duration', 60_000, 'Interval at which the memory of the machine is checked; 0: never.', {
    unit: 'ms',
    aliases: ['os_mon.mem_check_interval'],
    change: 'now'
  }),
  processHighWatermark: field(
    'percent',
    80,
    'Number of sessions in percent of maxSessions at which the alarm `too_many_processes` is raised; 0: never. The name comes from EMQX, which has a process for each session.',
    { aliases: ['vm_mon.process_high_watermark'], change: 'now' }
  ),
  processLowWatermark: field(
    'percent',
    60,
    'Number of sessions in percent of maxSessions below which that alarm is cleared.',
    {
      aliases: ['vm_mon.process_low_watermark'],
      change: 'now'
    }
  ),
  presenceQos: field(
    'integer',
    1 as QoS,
    'QoS of the messages to `$SYS/.../clients/<id>/connected` and `disconnected`.',
    {
      max: 2,
      aliases: ['module.presence.qos'],
      change: 'now'
    }
  )
};

/** Options that raise an alarm, with those that clear it: the second value of a pair is not above the first one, unless that is 0. */
export const WATERMARKS = [
  ['cpuHighWatermark', 'cpuLowWatermark'],
  ['processHighWatermark', 'processLowWatermark']
] as const;

/** A rule that rewrites the topics that match both `filter` and `pattern`. */
export interface RewriteRule {
  /** The topic filter that selects the rule for a topic. */
  readonly filter: string;
  /**
   * A regular expression, which is applied to the whole topic. A string has the syntax of RE2 and needs the package `re2js`: it takes time in
   * proportion to the topic. A `RegExp` is code of the app, which may take much longer: topics of more than 512 bytes are not rewritten by it.
   */
  readonly pattern: string | RegExp;
  /** The new topic. `$1` to `$99` are replaced by the captures of `pattern`. */
  readonly target: string;
  /** The packets to which the rule applies: PUBLISH, SUBSCRIBE and UNSUBSCRIBE, or all three (the default). */
  readonly on?: 'all' | RewriteKind;
}

/** The kind of packet that contains the topic. `subscribe` includes UNSUBSCRIBE. */
export type RewriteKind = 'publish' | 'subscribe';

/**
 * The other parameters of an overload for calls with a type argument, such as `createBroker<Data>()`: none, but for calls without one a parameter
 * that cannot be given. So the compiler leaves the overload out of these calls, and reports each mistake in the options once, where it is. `Caller`
 * is the type of `this`: with a type argument it has its default, `unknown`; without one it is inferred as `void`, also where an option has a
 * function whose parameters have no types. One signature for both would not give `new Promise(...)` in a hook its type.
 */
export type IfTyped<Caller> = [unknown] extends [Caller] ? [] : [missing: never];

/** The options of `createBroker`. The documented spelling of a name (`max_packet_size`) is also accepted. */
export interface BrokerOptions<Data = unknown> extends ZoneInput, Given<typeof BROKER_OPTIONS> {
  /** The clock for all timers and timestamps. Default: the system clock. */
  clock?: Clock;
  /** Persists the state of the broker: `levelStore` of `embermq/level`, or your own store. Default: none; all state is in memory. */
  store?: Store;
  /** Receives log lines: pino, winston, console, or any object with their four methods. Default: nothing is logged. */
  logger?: Logger;
  /** Returns the bytes in use, which are compared with `memoryHighWatermark` once a second. Default: heap and buffers of the process. */
  memoryUsage?: () => number;
  /** Settings of single zones, which override those at the top level. A listener names its zone; the default is `external`. */
  zones?: Readonly<Record<string, ZoneInput>>;
  /** Hooks to register. `broker.hook` registers more. */
  hooks?: Hooks<Data>;
  /** Sources of authentication and of access rules, in the order in which they are asked. `broker.access.create` adds more. */
  auth?: readonly AuthSource<Data>[];
  /** Rewrite rules for the topics of PUBLISH, SUBSCRIBE and UNSUBSCRIBE. If several rules match, the last one is used. */
  rewrite?: readonly (RewriteRule | string)[];
  /**
   * Schemas of payloads by topic filter: a Standard Schema (zod, valibot, arktype) or a JSON Schema, or `{ schema, decode }`. A message is
   * accepted if it matches the schemas of all filters that match its topic; others are refused with 0x99. Default: none.
   */
  schemas?: SchemaTable;
  /**
   * Makes the broker Sparkplug Aware (Sparkplug 3.0): birth certificates of edge nodes and devices are retained below
   * `$sparkplug/certificates/`, where only the broker publishes. `{}` is enough. Default: none.
   */
  sparkplug?: SparkplugOptions;
  /** Subscriptions that the broker makes for every client when it connects. */
  autoSubscriptions?: readonly AutoSubscription[];
  /** Rules over broker events: kinds of resources and actions, and rules of the app. `broker.rules` creates more at run time. */
  rules?: RulesOptions;
  /** Streams: types of sources and sinks, functions, and streams and rules of the app. `broker.streams` creates more at run time. */
  streams?: StreamsOptions;
  /**
   * Kinds of connectors that `broker.connectors` and the management interface can create at run time: `[webhooks()]` of `embermq/webhook`.
   */
  connectors?: readonly ConnectorKind[];
}

/** Values of options by name after they have been read: those that are given in one place. The others have the values of the next place. */
export interface OptionLayer {
  /** Of `BROKER_OPTIONS`. */
  readonly broker: Readonly<Record<string, unknown>>;
  /** Of `ZONE_OPTIONS`, for all zones. */
  readonly everywhere: Readonly<Record<string, unknown>>;
  /** Of `ZONE_OPTIONS`, by the name of the zone. */
  readonly zones: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
}

/** The options after they have been read. Those that `broker.configuration` changes have their current values. */
export type Settings = BrokerSettings & {
  /** The options that were given, by the place where they were given. */
  readonly given: OptionLayer;
  /** The clock for all timers and timestamps. */
  readonly clock: Clock;
  /** The store; undefined: all state is in memory. */
  readonly store: Store | undefined;
  /** The receiver of log lines; undefined: nothing is logged. */
  readonly logger: Logger | undefined;
  /** Returns the bytes in use; undefined: heap and buffers of the process are measured. */
  readonly memoryUsage: (() => number) | undefined;
  /** The settings of the zones, by name. */
  readonly zones: ReadonlyMap<string, Zone>;
  /** The hooks that were given. */
  readonly hooks: Hooks;
  /** The sources that were given, in the order in which they are asked. */
  readonly auth: readonly AuthSource[];
  /** The rewrite rules. */
  readonly rewrite: readonly (RewriteRule | string)[];
  /** Undefined: the broker is not Sparkplug Aware. */
  readonly sparkplug: SparkplugOptions | undefined;
  /** The schemas of payloads, in the order of the option. */
  readonly schemas: readonly TopicSchema[];
  /** The subscriptions that the broker makes for every client. */
  readonly autoSubscriptions: readonly AutoSubscription[];
  /** The kinds of connectors that can be created at run time. */
  readonly connectors: readonly ConnectorKind[];
  /** The option `rules`. */
  readonly rules: RulesOptions;
  /** The option `streams`. */
  readonly streams: StreamsOptions;
};

/** The values of `BROKER_OPTIONS`. */
export type BrokerSettings = Omit<Values<typeof BROKER_OPTIONS>, 'maxTotalMqueueBytes'> & {
  /** Maximum size of the backlogs of all sessions together, in bytes; 0: unlimited. */
  readonly maxTotalMqueueBytes: number;
};

/** The zone of listeners that do not name one. */
export const DEFAULT_ZONE = 'external';
function checkNode(value: unknown, field: string): unknown {
  // The name is one level of every `$SYS` topic.
  if (!/^[^/+#\0]+$/.test(value as string)) {
    throw new InvalidInput('OPTION_INVALID', field, 'one level of a topic name, such as "embermq@10.0.0.7"', value);
  }
  return value;
}

function checkReasons(value: unknown, field: string): ReasonsOption {
  if (value === false) return false;
  const { maxBytes = DEFAULT_REASONS.maxBytes, ...rest } = isPlainObject(value) ? value : { unknown: value };
  const isFine = typeof maxBytes === 'number' && Number.isSafeInteger(maxBytes) && maxBytes >= MIN_REASONS_BYTES;
  if (!isFine || Object.keys(rest).length > 0)
    throw new InvalidInput('OPTION_INVALID', field, `{ maxBytes } of at least ${MIN_REASONS_BYTES}, or false`, value);
  return { maxBytes };
}

function checkFlappingPolicy(value: unknown, field: string): unknown {
  if (flappingPolicyOf(value as string) === undefined)
    throw new InvalidInput('OPTION_INVALID', field, 'a count and two durations, such as "30,1m,5m"', value);
  return value;
}

/** A field of the type `size` whose default is computed when it is first read. */
function lateDefault(value: () => number, about: string, more: Parameters<typeof field>[3]): Defaulted<number> {
  return {
    ...field('size', 0, about, more),
    get default() {
      return value();
    }
  };
}
