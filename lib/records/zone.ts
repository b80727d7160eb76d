// A row for each option of a zone: how a value is read, its default, range and text. The type `Zone`, the accepted
// spellings, `broker.configuration` and the help follow from the rows. A zone is a plain object whose fields the
// packet path reads, and a connection keeps the one that it was accepted with; only options with `change: 'now'` also
// change for clients that are connected, so these must be read when they are used.

import { InvalidInput } from '../base/errors.ts';
import { type Duration, field, type Rate, type Size, type Values } from '../base/fields.ts';
import type { QoS } from '../packets/types.ts';
import { checkMountpoint, checkTopicName } from '../topics/topic.ts';

/**
 * The settings of a zone. They apply to the connections of the listeners of that zone.
 *
 * Each setting may be given at the top level, for all zones, or in `zones.<name>`. The documented snake_case spellings are also accepted.
 */
export const ZONE_OPTIONS = {
  // Connections
  connectTimeout: field(
    'duration',
    10_000,
    'Time from the accepted connection to CONNACK, including the time of handshakes (PROXY, TLS, WebSocket) and hooks. Received bytes do not extend it.',
    { unit: 'ms', min: 1 }
  ),
  idleTimeout: field(
    'duration',
    15_000,
    'Time from the accepted connection to its first byte of MQTT, including the time of handshakes (PROXY, TLS, WebSocket).',
    { unit: 'ms', min: 1 }
  ),
  maxPacketSize: field(
    'size',
    1_048_576,
    'Maximum size of a packet from a client. A larger one is refused as soon as its fixed header is read (0x95). Announced to v5 clients.',
    {
      unit: 'bytes',
      min: 16,
      max: 268_435_460,
      leastChange: { min: 1024, why: 'with a smaller maximum, clients could no longer subscribe or publish' },
      aliases: ['mqtt.max_packet_size']
    }
  ),
  maxConnectSize: field(
    'size',
    65_536,
    'Maximum number of bytes that a connection may occupy until its CONNECT is accepted, including WebSocket frames. A larger CONNECT is refused (0x95; 3.x: the connection is closed). A larger WebSocket message that contains a CONNECT closes the connection.',
    { unit: 'bytes', min: 64, max: 268_435_460 }
  ),
  maxClientidLen: field('integer', 4_096, 'Maximum length of a client id (0x85).', {
    unit: 'bytes of UTF-8',
    min: 23,
    max: 65_535,
    aliases: ['mqtt.max_clientid_len']
  }),
  serverKeepalive: field(
    'duration',
    0,
    'Keep alive that v5 clients must use (Server Keep Alive); 0: each client chooses one.',
    {
      unit: 's',
      max: 65_535
    }
  ),
  maxKeepalive: field(
    'duration',
    0,
    'Maximum keep alive of v5 clients. A client that requests a longer one, or none, must use this one (Server Keep Alive). MQTT 3.x has no Server Keep Alive, so 3.x clients are not limited. 0: unlimited.',
    { unit: 's', max: 65_535 }
  ),
  keepaliveBackoff: field(
    'number',
    0.75,
    'A client that sends nothing for keep alive x backoff x 2 is disconnected [MQTT-3.1.2-22].',
    {
      min: 0.5,
      max: 10
    }
  ),
  slowConsumerTimeout: field(
    'duration',
    60_000,
    'A connection that accepts no output for this time is closed (0x97), after twice this time at the latest; 0: never.',
    { unit: 'ms' }
  ),
  publishLimit: field(
    'rate',
    undefined as Rate | undefined,
    'Rate of PUBLISH packets of each client, for example "100,10s". When a client exceeds the rate, the broker stops reading from it for at most one minute, or for the period of the rate if that is longer. All messages of a chunk (up to 64 KB) that it has read are accepted.'
  ),
  rateLimit: field(
    'rate',
    undefined as Rate | undefined,
    'Rate of bytes received from each client, for example "1MB,10s".',
    {
      aliases: ['bytesLimit']
    }
  ),
  totalPublishLimit: field(
    'rate',
    undefined as Rate | undefined,
    'Rate of PUBLISH packets of all connections of the zone together.'
  ),
  totalRateLimit: field(
    'rate',
    undefined as Rate | undefined,
    'Rate of bytes received from all connections of the zone together.'
  ),
  protocolVersions: field(
    'object',
    [3, 4, 5] as readonly (3 | 4 | 5)[],
    'Accepted protocol versions: 3 (MQTT 3.1), 4 (MQTT 3.1.1), 5 (MQTT 5.0).',
    { check: checkVersions }
  ),
  useUsernameAsClientid: field('boolean', false, 'Use the user name as the client id.'),
  allowAnonymous: field(
    'boolean',
    undefined as boolean | undefined,
    'Accept a client if no authenticate hook decides about it.'
  ),
  bypassAuthPlugins: field(
    'boolean',
    false,
    'Do not call the authenticate hooks for connections of the zone, and admit them unless `allowAnonymous` is false.'
  ),
  enableBan: field('boolean', true, 'Refuse banned clients (0x8A). In the zone `internal` the default is false.'),
  limitFailedLogins: field(
    'boolean',
    true,
    'Refuse logins after ten failures within a minute of a user name or client id at an address, or a hundred of an address (0x9F). Credentials that were correct before at the address are still checked.',
    { change: 'now' }
  ),
  enableFlappingDetect: field(
    'boolean',
    false,
    'Ban a client id that loses its connection repeatedly (option flappingDetectPolicy).',
    { change: 'now' }
  ),
  aclNomatch: field(
    'choice',
    undefined as 'allow' | 'deny' | undefined,
    'Whether to allow a PUBLISH, a will or a subscription if no authorizePublish or authorizeSubscribe hook decides about it.',
    { choices: ['allow', 'deny'], change: 'now' }
  ),
  aclDenyAction: field(
    'choice',
    'ignore' as 'ignore' | 'disconnect',
    'The consequence of a refused PUBLISH: the message is ignored, or the client is also disconnected.',
    {
      choices: ['ignore', 'disconnect'],
      change: 'now'
    }
  ),
  mountpoint: field(
    'string',
    undefined as string | undefined,
    'Prefix of all topic names and filters of the zone. %c and %u are replaced by the client id and the user name; a name that is empty or contains `/`, `+` or `#` is refused (0x85, 0x86). Write `/` after each of them: with `t/%u`, the user `an` has topics of the user `ann`.',
    { check: checkPrefix }
  ),
  // Features
  maxQosAllowed: field(
    'integer',
    2 as QoS,
    'Maximum QoS at which clients may publish (0x9B), and which subscriptions are granted.',
    { max: 2, aliases: ['mqtt.max_qos_allowed'] }
  ),
  retainAvailable: field('boolean', true, 'Allow retained messages (0x9A if false).', {
    aliases: ['mqtt.retain_available']
  }),
  wildcardSubscription: field('boolean', true, 'Allow wildcards in topic filters (0xA2 if false).', {
    aliases: ['mqtt.wildcard_subscription']
  }),
  sharedSubscription: field('boolean', true, 'Allow shared subscriptions (0x9E if false).', {
    aliases: ['mqtt.shared_subscription']
  }),
  subscriptionIdentifiers: field('boolean', true, 'Allow subscription identifiers (0xA1 if false).'),
  controlCharacters: field(
    'choice',
    'refuse' as 'refuse' | 'allow',
    'Whether control characters and non-characters (MQTT 5.0, section 1.5.4) in topic names, response topics, topic filters, client ids and user names are refused as malformed (0x81) or allowed.',
    { choices: ['refuse', 'allow'] }
  ),
  maxTopicLevels: field('integer', 256, 'Maximum number of levels of a topic name or filter; 0: unlimited.', {
    unit: 'levels',
    aliases: ['mqtt.max_topic_levels']
  }),
  maxTopicAlias: field(
    'integer',
    64,
    'Number of topic aliases that a client may set, announced as Topic Alias Maximum; 0: none.',
    {
      max: 65_535,
      aliases: ['mqtt.max_topic_alias']
    }
  ),
  maxOutboundTopicAlias: field(
    'integer',
    32,
    'Maximum number of topic aliases that the broker sets in messages to a client that allows them.',
    {
      max: 65_535
    }
  ),
  outboundAliasAfter: field(
    'integer',
    1,
    'The message of a topic, counted from 1, with which the broker sets a topic alias for a client.',
    {
      unit: 'messages',
      min: 1,
      max: 1_000
    }
  ),
  payloadFormatCheck: field(
    'boolean',
    false,
    'Refuse messages whose Payload Format Indicator says UTF-8 if the payload is not valid UTF-8 (0x99).'
  ),
  responseInformation: field(
    'string',
    undefined as string | undefined,
    'Response Information for clients that request it. %c and %u are replaced by the client id and the user name.'
  ),
  // Sessions
  maxSubscriptions: field('integer', 100_000, 'Maximum number of subscriptions of one session (0x97); 0: unlimited.', {
    unit: 'filters'
  }),
  maxInflight: field(
    'integer',
    128,
    'Maximum number of QoS 1 and 2 messages in flight to one client. Its Receive Maximum applies if that is lower. 0: 65535.',
    { unit: 'messages', max: 65_535 }
  ),
  maxInflightBytes: field(
    'size',
    0,
    'Maximum bytes of QoS 1 and 2 messages in flight to one client, in addition to maxInflight. A larger message is sent when no other message is in flight. Messages that are sent again on reconnect are not delayed by this limit. 0: unlimited.',
    { unit: 'bytes' }
  ),
  receiveMaximum: field(
    'integer',
    65_535,
    'Maximum number of unacknowledged QoS 1 and 2 messages from a v5 client (0x93 if exceeded).',
    {
      unit: 'messages',
      min: 1,
      max: 65_535
    }
  ),
  maxAwaitingRel: field(
    'integer',
    0,
    'Maximum number of QoS 2 messages from a client that wait for PUBREL. Another one is answered with PUBREC 0x97 (v5) or closes the connection (3.x). 0: limited only by the number of packet ids.',
    { unit: 'ids', max: 65_535 }
  ),
  awaitRelTimeout: field(
    'duration',
    0,
    'Time after which the packet id of a QoS 2 message from a client is released although no PUBREL arrived. This risks a second delivery. 0: never.',
    { unit: 'ms' }
  ),
  retryInterval: field(
    'duration',
    0,
    'Interval at which unacknowledged messages are sent again to connected 3.x clients; 0: only on reconnect, as required by MQTT.',
    { unit: 'ms' }
  ),
  sessionExpiryInterval: field('duration', 7_200, 'Session expiry of 3.x clients that connect with clean session 0.', {
    unit: 's',
    max: Infinity
  }),
  maxSessionExpiryInterval: field(
    'duration',
    Infinity,
    'Maximum session expiry of v5 clients. A client that requests more receives the lower value in CONNACK.',
    { unit: 's', max: Infinity }
  ),
  maxMessageExpiryInterval: field(
    'duration',
    Infinity,
    'Maximum Message Expiry Interval. It also applies to messages that have none.',
    {
      unit: 's',
      max: Infinity
    }
  ),
  maxMqueueLen: field(
    'integer',
    10_000,
    'Maximum number of messages in the backlog of a session, per priority if mqueuePriorities is set; 0: unlimited.',
    { unit: 'messages' }
  ),
  maxMqueueBytes: field('size', 33_554_432, 'Maximum size of the backlog of a session; 0: unlimited.', {
    unit: 'bytes'
  }),
  mqueuePriorities: field(
    'object',
    undefined as ReadonlyMap<string, number> | undefined,
    'Backlog priorities by topic name, from 0 to 255, for example { "a/b": 10 } or "a/b=10,c=8". Messages with a higher priority are delivered first.',
    { check: checkPriorities }
  ),
  mqueueDefaultPriority: field(
    'choice',
    'lowest' as 'lowest' | 'highest',
    'Backlog priority of topics that are not in mqueuePriorities.',
    { choices: ['lowest', 'highest'] }
  ),
  mqueueStoreQos0: field('boolean', true, 'Queue QoS 0 messages for sessions that are offline.'),
  upgradeQos: field(
    'boolean',
    false,
    'Deliver messages at the higher of the published and the granted QoS instead of the lower.'
  ),
  ignoreLoopDeliver: field(
    'boolean',
    false,
    'Never deliver a message to the client that published it (No Local for all subscriptions).',
    { aliases: ['mqtt.ignore_loop_deliver'] }
  )
};

/** The value that may be given for the option of a row, before it is parsed. */
export type GivenValue<Row> = Row extends { readonly default: infer V }
  ? V extends number
    ? V | Duration | Size
    : V extends boolean
      ? boolean
      :
          | V
          | (Rate extends V ? string : never)
          | (ReadonlyMap<string, number> extends V ? Record<string, number> | string : never)
  : never;

/** The values that may be given for the options of a table, before they are parsed. */
export type Given<T> = { [N in keyof T]?: GivenValue<T[N]> | undefined };

/** The settings of a zone after parsing: durations in the unit of their row, sizes in bytes. */
export type Zone = Values<typeof ZONE_OPTIONS> & {
  /** The name of the zone. */
  readonly name: string;
};
/** The settings of a zone as given by the application. */
export type ZoneInput = {
  [N in keyof typeof ZONE_OPTIONS]?: GivenValue<(typeof ZONE_OPTIONS)[N]> | undefined; // not Given: errors of the compiler have the name of the type
};

function checkPrefix(value: unknown, field: string): unknown {
  const fault = checkMountpoint(value as string);
  if (fault !== undefined)
    throw new InvalidInput('OPTION_INVALID', field, 'the beginning of topic names', value, fault);
  return value;
}

function checkVersions(value: unknown, field: string): readonly number[] {
  const good =
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((version) => version === 3 || version === 4 || version === 5);
  if (!good) throw new InvalidInput('OPTION_INVALID', field, 'a list of 3, 4 and 5', value);
  return value;
}

function checkPriorities(value: unknown, field: string): ReadonlyMap<string, number> | undefined {
  if (value === 'none') return undefined;
  const entries = priorityEntries(value);
  const isGood = entries?.every(
    ([topic, priority]) =>
      typeof topic === 'string' && topic !== '' && Number.isInteger(priority) && priority >= 0 && priority <= 255
  );
  if (!isGood) {
    const expected = 'topics with priorities from 0 to 255, such as { "a/b": 10 } or "a/b=10"';
    throw new InvalidInput('OPTION_INVALID', field, expected, value);
  }
  const priorities = new Map(entries);
  for (const topic of priorities.keys()) {
    const fault = checkTopicName(topic);
    if (fault !== undefined)
      throw new InvalidInput('OPTION_INVALID', field, 'topic names', value, `${field}: ${fault}`);
  }
  return priorities;
}

function priorityEntries(value: unknown): [topic: string, priority: number][] | undefined {
  if (typeof value === 'string') {
    return value.split(',').map((part) => {
      const at = part.lastIndexOf('=');
      const priority = part.slice(at + 1).trim();
      return at === -1 || !/^\d+$/.test(priority) ? ['', 0] : [part.slice(0, at).trim(), Number(priority)];
    });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return value instanceof Map ? [...value] : Object.entries(value);
}
