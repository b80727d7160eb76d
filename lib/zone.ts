import { InvalidInput } from './errors.ts';
import { type Duration, type OptionRow, type Rate, row, type Size, type Values } from './options-table.ts';
import type { QoS } from './packets/types.ts';
import { checkMountpoint, checkTopicName } from './topics/topic.ts';

/**
 * Settings of a zone: what a listener's connections live under. Each may be given at the top level (for all zones) or in
 * `zones.<name>`. The documented snake_case spellings are accepted.
 */
export const ZONE_OPTIONS = {
  // Connections
  connectTimeout: row(
    'duration',
    10_000,
    'From accept until CONNACK; not renewed by bytes that trickle. The time of hooks and of handshakes (PROXY, TLS, WebSocket) counts.',
    { unit: 'ms', min: 1 }
  ),
  idleTimeout: row(
    'duration',
    15_000,
    'From accept until the first byte of MQTT; the time of handshakes (PROXY, TLS, WebSocket) counts.',
    { unit: 'ms', min: 1 }
  ),
  maxPacketSize: row(
    'size',
    1_048_576,
    'Largest packet accepted, decided at the fixed header (0x95). Announced to v5 clients.',
    { unit: 'bytes', min: 16, max: 268_435_460 }
  ),
  maxConnectSize: row(
    'size',
    65_536,
    'Most bytes a connection may occupy until its CONNECT is accepted, WebSocket frames included. A larger CONNECT is refused (0x95; 3.x: closed), and so is a larger WebSocket message that contains one (the connection is closed).',
    { unit: 'bytes', min: 64, max: 268_435_460 }
  ),
  maxClientidLen: row('integer', 4_096, 'Longest client id (0x85).', { unit: 'bytes of UTF-8', min: 23, max: 65_535 }),
  serverKeepalive: row('duration', 0, 'Keep alive forced on v5 clients (Server Keep Alive); 0 leaves it to them.', {
    unit: 's',
    max: 65_535
  }),
  maxKeepalive: row(
    'duration',
    0,
    'Longest keep alive of v5 clients: a longer one, or none, is answered with this one (Server Keep Alive). 3.x has no such answer, so theirs stays as asked. 0: no bound.',
    { unit: 's', max: 65_535 }
  ),
  keepaliveBackoff: row('number', 0.75, 'A connection is dead after keep alive x backoff x 2 [MQTT-3.1.2-22].', {
    min: 0.5,
    max: 10
  }),
  slowConsumerTimeout: row(
    'duration',
    60_000,
    'A connection that reads nothing for this long is closed (0x97), at the latest after twice that; 0: never.',
    { unit: 'ms' }
  ),
  publishLimit: row(
    'rate',
    undefined as Rate | undefined,
    'PUBLISH packets per time and client, for example "100,10s"; past it reading pauses, for a minute or the time of the rate at most.'
  ),
  rateLimit: row('rate', undefined as Rate | undefined, 'Bytes received per time and client, for example "1MB,10s".', {
    aliases: ['bytesLimit']
  }),
  totalPublishLimit: row(
    'rate',
    undefined as Rate | undefined,
    'PUBLISH packets per time of all connections of the zone together.'
  ),
  totalRateLimit: row(
    'rate',
    undefined as Rate | undefined,
    'Bytes received per time by all connections of the zone together.'
  ),
  protocolVersions: row(
    'object',
    [3, 4, 5] as readonly (3 | 4 | 5)[],
    'Accepted versions: 3 (MQTT 3.1), 4 (3.1.1), 5.',
    { check: checkVersions }
  ),
  useUsernameAsClientid: row('boolean', false, 'The user name takes the place of the client id.'),
  allowAnonymous: row(
    'boolean',
    undefined as boolean | undefined,
    'Let clients in that no authenticate hook has an opinion on.'
  ),
  bypassAuthPlugins: row('boolean', false, 'Skip the authenticate hooks for connections of this zone.'),
  aclNomatch: row(
    'choice',
    undefined as 'allow' | 'deny' | undefined,
    'What happens to a PUBLISH (a will, too) or a subscription that no authorizePublish or authorizeSubscribe hook has an opinion on.',
    { choices: ['allow', 'deny'] }
  ),
  aclDenyAction: row('choice', 'ignore' as 'ignore' | 'disconnect', 'What follows a refused PUBLISH.', {
    choices: ['ignore', 'disconnect']
  }),
  mountpoint: row(
    'text',
    undefined as string | undefined,
    'Prefix of every topic of the zone; %c and %u stand for client id and user name (names with wildcards are refused).',
    { check: checkPrefix }
  ),
  // What is on offer
  maxQosAllowed: row('integer', 2 as QoS, 'Highest QoS clients may publish with (0x9B) and are granted.', { max: 2 }),
  retainAvailable: row('boolean', true, 'Retained messages (0x9A when off).'),
  wildcardSubscription: row('boolean', true, 'Wildcards in filters (0xA2 when off).'),
  sharedSubscription: row('boolean', true, 'Shared subscriptions (0x9E when off).'),
  subscriptionIdentifiers: row('boolean', true, 'Subscription identifiers (0xA1 when off).'),
  controlCharacters: row(
    'choice',
    'refuse' as 'refuse' | 'allow',
    'Control characters and non-characters (MQTT 5.0 section 1.5.4) in topics, filters, client ids and user names: refused as malformed (0x81), or allowed.',
    { choices: ['refuse', 'allow'] }
  ),
  maxTopicLevels: row('integer', 256, 'Levels of a topic name or filter; 0: unlimited.', { unit: 'levels' }),
  maxTopicAlias: row('integer', 64, 'Topic aliases a client may set; announced as Topic Alias Maximum. 0: none.', {
    max: 65_535
  }),
  maxOutboundTopicAlias: row('integer', 32, 'Topic aliases the broker sets towards a client that allows them.', {
    max: 65_535
  }),
  outboundAliasAfter: row('integer', 1, 'Which message of a topic sets its alias towards a client: 1, the first.', {
    unit: 'messages',
    min: 1,
    max: 1_000
  }),
  payloadFormatCheck: row('boolean', false, 'Refuse payloads that claim to be UTF-8 and are not (0x99).'),
  responseInformation: row(
    'text',
    undefined as string | undefined,
    'Response Information for clients that ask; %c and %u stand for client id and user name.'
  ),
  // Sessions
  maxSubscriptions: row('integer', 100_000, 'Subscriptions of one session (0x97); 0: unlimited.', { unit: 'filters' }),
  maxInflight: row(
    'integer',
    128,
    'QoS 1 and 2 messages in flight to one client, at most its Receive Maximum; 0: 65535.',
    { unit: 'messages', max: 65_535 }
  ),
  maxInflightBytes: row(
    'size',
    0,
    'Bytes of QoS 1 and 2 messages in flight to one client, in addition to the bound on their number; a larger message is sent alone. What is sent again on reconnect is not limited. 0: unlimited.',
    { unit: 'bytes' }
  ),
  receiveMaximum: row('integer', 65_535, 'QoS 1 and 2 messages a v5 client may have unacknowledged (0x93 past it).', {
    unit: 'messages',
    min: 1,
    max: 65_535
  }),
  maxAwaitingRel: row(
    'integer',
    0,
    'Incoming QoS 2 messages that wait for PUBREL; 0: as many as there are ids. A PUBREC 0x97 (v5) or the end of the connection (3.x) past it.',
    { unit: 'ids', max: 65_535 }
  ),
  awaitRelTimeout: row(
    'duration',
    0,
    'Forget an incoming QoS 2 id for which no PUBREL came within this time; 0: never, because forgetting risks a second delivery.',
    { unit: 'ms' }
  ),
  retryInterval: row(
    'duration',
    0,
    'Send again to connected 3.x clients what they did not acknowledge; 0: only on reconnect, as MQTT wants it.',
    { unit: 'ms' }
  ),
  sessionExpiryInterval: row('duration', 7_200, 'Expiry of the sessions of 3.x clients with clean session 0.', {
    unit: 's',
    max: Infinity
  }),
  maxSessionExpiryInterval: row(
    'duration',
    Infinity,
    'Upper bound of what v5 clients may ask; announced when it cuts.',
    { unit: 's', max: Infinity }
  ),
  maxMessageExpiryInterval: row('duration', Infinity, 'Upper bound of the life of a message without delivery.', {
    unit: 's',
    max: Infinity
  }),
  maxMqueueLen: row(
    'integer',
    10_000,
    'Backlog of a session, in messages (per priority where priorities are set); 0: unlimited.',
    { unit: 'messages' }
  ),
  maxMqueueBytes: row('size', 33_554_432, 'Backlog of a session, in bytes; 0: unlimited.', { unit: 'bytes' }),
  mqueuePriorities: row(
    'object',
    undefined as ReadonlyMap<string, number> | undefined,
    'Priorities by topic name, 0 to 255, higher first: { "a/b": 10 } or "a/b=10,c=8".',
    { check: checkPriorities }
  ),
  mqueueDefaultPriority: row(
    'choice',
    'lowest' as 'lowest' | 'highest',
    'Priority of topics that the table does not name.',
    { choices: ['lowest', 'highest'] }
  ),
  mqueueStoreQos0: row('boolean', true, 'Keep QoS 0 messages in the backlog of a session that is offline.'),
  upgradeQos: row('boolean', false, 'Deliver at the higher of published and granted QoS instead of the lower.'),
  ignoreLoopDeliver: row(
    'boolean',
    false,
    'Never deliver a message to the client that published it (No Local for everybody).'
  )
};

/** What may be given for a table. */
export type Given<T> = {
  [N in keyof T]?:
    | (T[N] extends OptionRow<infer V>
        ? V extends number
          ? V | Duration | Size
          : V extends boolean
            ? boolean
            :
                | V
                | (Rate extends V ? string : never)
                | (ReadonlyMap<string, number> extends V ? Record<string, number> | string : never)
        : never)
    | undefined;
};

/** A zone's settings as read: durations in the row's unit, sizes in bytes. */
export type Zone = Values<typeof ZONE_OPTIONS> & { readonly name: string };
/** A zone's settings as given. */
export type ZoneInput = Given<typeof ZONE_OPTIONS>;

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
      const [, topic = '', priority = ''] = /^\s*(.*?)\s*=\s*(\d+)\s*$/.exec(part) ?? [];
      return [topic, Number(priority)];
    });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return value instanceof Map ? [...value] : Object.entries(value);
}
