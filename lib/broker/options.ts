import { getHeapStatistics } from 'node:v8';
import { type Clock, systemClock } from '../clock.ts';
import { InvalidInput } from '../errors.ts';
import type { Hooks } from '../hooks.ts';
import { checkNames, checkObject, optionName, readOptions, row, unknownKey, type Values } from '../options-table.ts';
import type { QoS } from '../packets/types.ts';
import type { Store } from '../store/store.ts';
import { checkTopicFilter, parseSharedFilter } from '../topics/topic.ts';
import { type Given, ZONE_OPTIONS, type Zone, type ZoneInput } from '../zone.ts';
import type { RewriteRule } from './rewrite.ts';

/** A subscription that the broker makes for every client at connect; `%c` and `%u` stand for client id and user name. */
export interface AutoSubscription {
  /** The topic filter. */
  readonly topic: string;
  /** Default 0. */
  readonly qos?: QoS;
  /** No Local. Default false. */
  readonly noLocal?: boolean;
  /** Retain As Published. Default false. */
  readonly retainAsPublished?: boolean;
  /** Retain Handling: 0 (default) hand out retained messages, 1 only where the subscription is new, 2 never. */
  readonly retainHandling?: 0 | 1 | 2;
}

const DEFAULT_WATERMARK = Math.floor(getHeapStatistics().heap_size_limit * 0.85);

/** Settings of the broker as a whole. */
export const BROKER_OPTIONS = {
  node: row('text', 'embermq@127.0.0.1', 'Name of this node, in every record and in `$SYS`.', {
    aliases: ['node.name'],
    max: 1024,
    check: checkNode
  }),
  timerResolution: row('duration', 100, 'Tick of the timing wheel: how late a timeout may be.', {
    unit: 'ms',
    min: 1,
    max: 10_000
  }),
  hookTimeout: row('duration', 5_000, 'A hook that has not answered by then refuses its operation.', {
    unit: 'ms',
    min: 1
  }),
  maxHeldBytes: row(
    'size',
    1_048_576,
    'Bytes of a connection kept while a hook decides, besides one chunk and what its stream buffers.',
    { unit: 'bytes', min: 1024 }
  ),
  maxConnections: row(
    'integer',
    100_000,
    'Connections of all listeners together; one more is cut off at once. 0: unlimited.',
    {
      unit: 'connections'
    }
  ),
  maxUnwrittenBytes: row(
    'size',
    8_388_608,
    'With a store: bytes waiting to be written at which the broker stops reading clients that caused more than an equal share. At four times this size it stops reading every client that caused any.',
    { unit: 'bytes', min: 65_536 }
  ),
  repairStore: row(
    'boolean',
    false,
    'With a store: start although records in it are lost or cannot be read, and go on without them.'
  ),
  maxSessions: row(
    'integer',
    250_000,
    'Sessions, connected or not; a new one past it is refused (0x97). 0: unlimited.',
    { unit: 'sessions' }
  ),
  maxTotalSubscriptions: row('integer', 5_000_000, 'Subscriptions of all sessions together (0x97); 0: unlimited.', {
    unit: 'filters'
  }),
  outputHighWaterMark: row('size', 262_144, 'Unsent bytes of a connection from which its messages go to the backlog.', {
    unit: 'bytes',
    min: 1
  }),
  memoryHighWatermark: row(
    'size',
    DEFAULT_WATERMARK,
    'Heap and buffers in use from which the broker sheds: connections whose CONNECT is not accepted are closed, except those of clients that return to a stored session; no new sessions, no QoS 0 in backlogs; if that is not enough, no QoS 1 and 2 that would have to wait in memory (0x97). 0: never.',
    { unit: 'bytes' }
  ),
  maxTotalMqueueBytes: row(
    'size',
    undefined as number | undefined,
    'Backlogs of all sessions together, in memory: past it the largest ones are shortened first; 0: unlimited.',
    { unit: 'bytes' }
  ),
  maxTotalMqueueStoreBytes: row(
    'size',
    undefined as number | undefined,
    'Bytes of the store that the queued messages of all sessions together may take; a value above the default has no effect. Past it the largest queues are shortened first, and only to make room for new messages. 0: no bound until the reserve of the store is in use.',
    { unit: 'bytes' }
  ),
  routeCacheTargets: row('integer', 200_000, 'Size of the route cache: topics plus the subscribers they reach.', {
    min: 16
  }),
  sharedSubscriptionStrategy: row('choice', 'random' as SharedStrategy, 'How a share group picks.', {
    choices: ['random', 'round_robin', 'sticky', 'hash'],
    aliases: ['broker.shared_subscription_strategy']
  }),
  sharedDispatchAckEnabled: row(
    'boolean',
    false,
    'QoS 1 and 2: pass over members that are offline or have a full window while another can take the message.',
    {
      aliases: ['broker.shared_dispatch_ack_enabled']
    }
  ),
  maxRetainedMessages: row(
    'integer',
    1_000_000,
    'Retained messages; known topics may still be replaced. 0: unlimited.',
    { unit: 'messages', aliases: ['retainer.max_retained_messages'] }
  ),
  maxRetainedBytes: row('size', 1_073_741_824, 'Bytes of all retained messages; 0: unlimited.', { unit: 'bytes' }),
  maxRetainedPayloadSize: row('size', 1_048_576, 'A larger payload is delivered but not retained; 0: unlimited.', {
    unit: 'bytes',
    aliases: ['retainer.max_payload_size']
  }),
  retainedExpiryInterval: row(
    'duration',
    0,
    'Life of a retained message without a Message Expiry Interval; 0: for ever.',
    { unit: 's', aliases: ['retainer.expiry_interval'] }
  ),
  delayedPublish: row('boolean', true, '`$delayed/<seconds>/<topic>`.'),
  maxDelayedMessages: row('integer', 100_000, 'Messages waiting for their delay; 0: unlimited.', { unit: 'messages' }),
  maxDelayedBytes: row('size', 268_435_456, 'Bytes of messages waiting for their delay; 0: unlimited.', {
    unit: 'bytes'
  }),
  sysInterval: row('duration', 60_000, 'Period of `$SYS` statistics; 0 switches them off.', {
    unit: 'ms',
    aliases: ['broker.sys_interval']
  }),
  sysHeartbeat: row('duration', 30_000, 'Period of `$SYS` uptime and datetime; 0 switches them off.', {
    unit: 'ms',
    aliases: ['broker.sys_heartbeat']
  }),
  sysDottedTopics: row('boolean', false, 'Publish the later dotted `$SYS` names besides the documented ones.'),
  sysForRemoteClients: row('boolean', false, 'Let clients that are not on this machine subscribe `$SYS`.'),
  presenceQos: row('integer', 1 as QoS, 'QoS of `$SYS/.../clients/<id>/connected` and `disconnected`.', {
    max: 2,
    aliases: ['module.presence.qos']
  })
};

/** How a share group picks one of its members. `hash` goes by the publisher's client id. */
export type SharedStrategy = 'random' | 'round_robin' | 'sticky' | 'hash';

/** What `createBroker` takes. Every key may also have its documented spelling (`max_packet_size`). */
export interface BrokerOptions extends ZoneInput, Given<typeof BROKER_OPTIONS> {
  /** Time; the machine's by default. */
  clock?: Clock;
  /** Where what must outlive the process is kept: `levelStore` of `embermq/level`, or one of your own. Default: nowhere. */
  store?: Store;
  /** Bytes in use, to be compared with `memoryHighWatermark` once a second; heap and buffers of the process by default. */
  memoryUsage?: () => number;
  /** Settings of single zones, over the ones given at the top. A listener names its zone; `external` is the default one. */
  zones?: Readonly<Record<string, ZoneInput>>;
  /** Hooks to begin with; more by `broker.hook`. */
  hooks?: Hooks;
  /** Rewrite rules for the topics of PUBLISH, SUBSCRIBE and UNSUBSCRIBE; the last that fits is used. */
  rewrite?: readonly (RewriteRule | string)[];
  /** Subscriptions made for every client at connect. */
  autoSubscriptions?: readonly AutoSubscription[];
}

/** Options as read. */
export type Settings = Omit<Values<typeof BROKER_OPTIONS>, 'maxTotalMqueueBytes'> & {
  readonly maxTotalMqueueBytes: number;
  readonly clock: Clock;
  readonly store: Store | undefined;
  readonly memoryUsage: (() => number) | undefined;
  readonly zones: ReadonlyMap<string, Zone>;
  readonly hooks: Hooks;
  readonly rewrite: readonly (RewriteRule | string)[];
  readonly autoSubscriptions: readonly AutoSubscription[];
};

/** The zone of listeners that name none. */
export const DEFAULT_ZONE = 'external';

/**
 * Read a broker's options.
 * @throws InvalidInput OPTION_UNKNOWN with a suggestion, or OPTION_INVALID with what was expected
 */
export function readBrokerOptions(given: BrokerOptions = {}): Settings {
  checkObject(given, 'options');
  const zoneGiven: Record<string, unknown> = {};
  const brokerGiven: Record<string, unknown> = {};
  const {
    clock = systemClock,
    store,
    memoryUsage,
    zones = {},
    hooks = {},
    rewrite = [],
    autoSubscriptions = [],
    ...rest
  } = given;
  checkMembers(clock, 'clock', ['now', 'monotonic', 'setTimeout', 'clearTimeout']);
  if (store !== undefined) checkMembers(store, 'store', ['open', 'commit', 'read', 'close']);
  checkObject(hooks, 'hooks');
  checkObject(zones, 'zones');
  if (memoryUsage !== undefined && typeof memoryUsage !== 'function')
    throw new InvalidInput('OPTION_INVALID', 'memoryUsage', 'a function', memoryUsage);
  const zoneParts = new Map<string, Record<string, unknown>>();
  for (const [name, settings = {}] of Object.entries(zones)) {
    checkObject(settings, `zones.${name}`);
    zoneParts.set(name, { ...settings });
  }
  for (const [written, value] of Object.entries(rest)) {
    // The documented settings file has one name for each setting: zone.external.max_inflight, mqtt.max_packet_size.
    const [, zone, setting] = /^zone\.([^.]+)\.(.+)$/.exec(written) ?? [];
    if (zone !== undefined) {
      zoneParts.set(zone, { ...zoneParts.get(zone), [setting]: value });
      continue;
    }
    const key = written.startsWith('mqtt.') ? written.slice(5) : written;
    if (optionName(ZONE_OPTIONS, key) !== undefined) zoneGiven[key] = value;
    else if (optionName(BROKER_OPTIONS, key) !== undefined) brokerGiven[key] = value;
    else throw unknownKey(written, ALL_NAMES, '');
  }
  const everywhere = readOptions(ZONE_OPTIONS, zoneGiven, '');
  const read = new Map<string, Zone>();
  for (const name of new Set([DEFAULT_ZONE, 'internal', ...zoneParts.keys()])) {
    const values = readOptions(ZONE_OPTIONS, zoneParts.get(name) ?? {}, `zones.${name}`, everywhere);
    read.set(name, { ...(values as Values<typeof ZONE_OPTIONS>), name });
  }
  const settings = readOptions(BROKER_OPTIONS, brokerGiven, '') as Values<typeof BROKER_OPTIONS>;
  // the rest is for what is collected late, and for all that is not queued
  const { maxTotalMqueueBytes = Math.floor((settings.memoryHighWatermark || DEFAULT_WATERMARK) / 2) } = settings;
  if (!Array.isArray(autoSubscriptions)) {
    const expected = 'a list of { topic, qos, noLocal, retainAsPublished, retainHandling }';
    throw new InvalidInput('OPTION_INVALID', 'autoSubscriptions', expected, autoSubscriptions);
  }
  const subscriptions = autoSubscriptions.map((given, at) => {
    const where = `autoSubscriptions.${at}`;
    checkObject(given, where);
    checkNames(given, Object.keys(SUBSCRIPTION_NAMES), where);
    const named = Object.entries(given).map(([name, value]) => [SUBSCRIPTION_NAMES[name], value]);
    const subscription = Object.fromEntries(named) as AutoSubscription;
    checkSubscription(subscription, `${where}.`);
    return subscription;
  });
  return {
    ...settings,
    maxTotalMqueueBytes,
    clock,
    store,
    memoryUsage,
    zones: read,
    hooks,
    rewrite,
    autoSubscriptions: subscriptions
  };
}

const ALL_NAMES: readonly string[] = [
  ...Object.keys(ZONE_OPTIONS),
  ...Object.keys(BROKER_OPTIONS),
  ...['clock', 'store', 'memoryUsage', 'zones', 'hooks', 'rewrite', 'autoSubscriptions']
];

/** The options of a subscription in every spelling: their own, snake_case, and the short one of documented settings files. */
const SUBSCRIPTION_NAMES: Readonly<Record<string, keyof AutoSubscription>> = {
  topic: 'topic',
  qos: 'qos',
  noLocal: 'noLocal',
  no_local: 'noLocal',
  nl: 'noLocal',
  retainAsPublished: 'retainAsPublished',
  retain_as_published: 'retainAsPublished',
  rap: 'retainAsPublished',
  retainHandling: 'retainHandling',
  retain_handling: 'retainHandling',
  rh: 'retainHandling'
};

/**
 * Check a subscription that is made on a client's behalf.
 * @param where stands before the names of its options
 * @throws InvalidInput OPTION_INVALID
 */
export function checkSubscription(given: AutoSubscription, where = ''): void {
  const { topic, qos = 0, noLocal = false, retainAsPublished = false, retainHandling = 0 } = given;
  const refuse = (name: keyof AutoSubscription, expected: string, fault?: string): never => {
    const message = fault === undefined ? undefined : `${where}${name}: ${fault}`;
    throw new InvalidInput('OPTION_INVALID', `${where}${name}`, expected, given[name], message);
  };
  const fault = typeof topic === 'string' ? checkTopicFilter(topic) : 'expected a topic filter';
  if (fault !== undefined) refuse('topic', 'a topic filter', fault);
  if (![0, 1, 2].includes(qos)) refuse('qos', '0, 1 or 2');
  if (typeof noLocal !== 'boolean') refuse('noLocal', 'true or false');
  if (typeof retainAsPublished !== 'boolean') refuse('retainAsPublished', 'true or false');
  if (![0, 1, 2].includes(retainHandling)) refuse('retainHandling', '0, 1 or 2');
  if (noLocal && parseSharedFilter(topic) !== undefined)
    refuse('noLocal', 'false', 'No Local is not allowed on a shared subscription'); // [MQTT-3.8.3-4]
}

function checkNode(value: unknown, field: string): unknown {
  // It is a level of every `$SYS` topic.
  if (!/^[^/+#\0]+$/.test(value as string)) {
    throw new InvalidInput('OPTION_INVALID', field, 'one level of a topic name, such as "embermq@10.0.0.7"', value);
  }
  return value;
}

function checkMembers(value: unknown, field: string, functions: readonly string[]): void {
  const isGood = functions.every((name) => typeof (value as Record<string, unknown> | null)?.[name] === 'function');
  if (!isGood) throw new InvalidInput('OPTION_INVALID', field, `an object with ${functions.join(', ')}`, value);
}
