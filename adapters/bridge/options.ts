import { BRIDGE_PREFIX, checkConnectorName, type FieldValues, field, readOptions } from '../../lib/adapter.ts';
import { type Duration, InvalidInput, type Size } from '../../lib/index.ts';
import { checkTls, OUTGOING_TLS_OPTIONS, type OutgoingTls } from '../outgoing/index.ts';
import { type BridgeTopic, type BridgeTopics, readRules } from './topics.ts';

/** Options of `bridge`. Durations are numbers of milliseconds or strings such as `5s`; `keepAlive` is in seconds. */
export interface BridgeOptions extends OutgoingTls {
  /** The remote server: `mqtt://host`, `mqtts://host`, `ws://host/mqtt` or `wss://host/mqtt`. */
  url: string | URL;
  /** The name of the bridge, if there are several: letters, digits, `.`, `-` and `_`. Default `default`. */
  name?: string;
  /** Messages forwarded from this broker to the remote server. */
  out?: readonly BridgeTopics[];
  /** Messages forwarded from the remote server to this broker. */
  in?: readonly BridgeTopics[];
  /** Version of MQTT at the remote server: 4 is 3.1.1. Default 5. */
  version?: 4 | 5;
  /** Client id at the remote server. Default: the host name, the node name of the broker and the name of the bridge. */
  clientId?: string;
  /** Default: that of the URL. */
  username?: string;
  /** Default: that of the URL. */
  password?: string;
  /** Keep queued messages and the packet ids in flight in the store of the broker. Default false. */
  isPersisted?: boolean;
  /** Start a new session at the remote server with each connection. Default false. */
  clean?: boolean;
  /** MQTT 3.1.1: tell the server that the client is a bridge, as mosquitto does. Default false. */
  bridgeBit?: boolean;
  /** Add a user property to each message, so that no message passes the bridge twice in a ring of servers. Default true. */
  hops?: boolean;
  /** Seconds. Default 60. */
  keepAlive?: Duration;
  /** Time for connecting, up to the subscriptions. Default 30 s. */
  connectTimeout?: Duration;
  /** Initial delay of reconnecting. Default 1 s. */
  backOff?: Duration;
  /** Maximum delay of reconnecting. Default one minute. */
  maxBackOff?: Duration;
  /** Time without a connection after which an alarm is raised. Default 10 s. */
  alarmAfter?: Duration;
  /** Maximum number of queued messages. Default 10,000. */
  maxQueue?: number;
  /** Maximum size of queued messages. Default 32 MB. */
  maxQueueBytes?: Size;
  /** Queue QoS 0 messages without a connection. Default true. */
  queueQos0?: boolean;
  /** Maximum number of messages in flight. Default 100. */
  maxInflight?: number;
  /** Maximum size of a packet. Default 1 MB. */
  maxPacketSize?: Size;
  /** Connect as soon as the broker is started. Default true. */
  start?: boolean;
}

/** The options of a bridge. */
export const BRIDGE_OPTIONS = {
  url: field('object', undefined as unknown as URL, 'The remote server, as mqtt, mqtts, ws or wss URL.', {
    check: checkUrl
  }),
  name: field('string', 'default', 'Name of the bridge, if there are several.', { check: checkConnectorName }),
  out: field('object', [] as readonly BridgeTopic[], 'What is forwarded from this broker to the remote server.', {
    check: (value, field) => readRules(value, field, true)
  }),
  in: field('object', [] as readonly BridgeTopic[], 'What is forwarded from the remote server to this broker.', {
    check: (value, field) => readRules(value, field, false)
  }),
  version: field('integer', 5, 'Version of MQTT at the remote server: 4 (MQTT 3.1.1) or 5.', { min: 4, max: 5 }),
  clientId: field(
    'string',
    undefined as string | undefined,
    'Client id at the remote server. Default: the host name, the node name of the broker and the name of the bridge.',
    { check: checkClientId }
  ),
  username: field('string', undefined as string | undefined, 'User name at the remote server.'),
  password: field('string', undefined as string | undefined, 'Password at the remote server.'),
  isPersisted: field(
    'boolean',
    false,
    'Keep queued messages, and the packet ids in flight, in the store of the broker.'
  ),
  clean: field('boolean', false, 'Start a new session at the remote server with each connection.'),
  bridgeBit: field('boolean', false, 'MQTT 3.1.1: tell the server that the client is a bridge, as mosquitto does.'),
  hops: field(
    'boolean',
    true,
    'Add a user property to each message, so that no message passes the bridge twice in a ring of servers.'
  ),
  keepAlive: field('duration', 60, 'Keep alive; 0: none.', { unit: 's', max: 65_535 }),
  connectTimeout: field('duration', 30_000, 'Time limit for connecting, including the subscriptions.', {
    unit: 'ms',
    min: 1
  }),
  backOff: field('duration', 1_000, 'Delay after the first failure. It doubles with each further one.', {
    unit: 'ms',
    min: 1
  }),
  maxBackOff: field('duration', 60_000, 'Maximum delay after a failure.', { unit: 'ms', min: 1 }),
  alarmAfter: field('duration', 10_000, 'Time without a connection after which an alarm is raised.', { unit: 'ms' }),
  maxQueue: field(
    'integer',
    10_000,
    'Maximum number of queued messages. Beyond it the oldest one is dropped. 0: unlimited.'
  ),
  maxQueueBytes: field(
    'size',
    33_554_432,
    'Maximum size of queued messages. Beyond it the oldest messages are dropped.',
    {
      unit: 'bytes'
    }
  ),
  queueQos0: field('boolean', true, 'Queue messages with QoS 0 while there is no connection.'),
  maxInflight: field('integer', 100, 'Maximum number of unacknowledged messages in each direction.', {
    min: 1,
    max: 65_535
  }),
  maxPacketSize: field('size', 1_048_576, 'Largest packet that is accepted from the remote server.', {
    unit: 'bytes',
    min: 1024,
    max: 268_435_460
  }),
  start: field('boolean', true, 'Connect as soon as the broker is started.'),
  ...OUTGOING_TLS_OPTIONS
};

/** The checked options. */
export type BridgeSettings = FieldValues<typeof BRIDGE_OPTIONS>;

/** Read the options of `bridge`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN, OPTION_MISSING */
export function readBridgeOptions(given: BridgeOptions): BridgeSettings {
  const settings = readOptions(BRIDGE_OPTIONS, given, 'bridge');
  if (settings.url === undefined)
    throw new InvalidInput('OPTION_MISSING', 'bridge.url', 'the URL of the remote server', undefined);
  if (settings.out.length + settings.in.length === 0)
    throw new InvalidInput('OPTION_MISSING', 'bridge.out', 'topics in "out" or "in"', undefined);
  checkTls(settings, 'bridge');
  return settings;
}

/** The client id of the local session of a bridge. */
export function localClientId(name: string): string {
  return BRIDGE_PREFIX + name;
}

function checkUrl(value: unknown, field: string): URL {
  const text = String(value);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^(mqtts?|wss?):$/.test(url.protocol) || url.hostname === '')
    throw new InvalidInput('OPTION_INVALID', field, 'a URL such as mqtt://host:1883 or wss://host/mqtt', text);
  if (credentialsOf(url) === undefined) {
    const expected = 'a URL with user name and password percent-encoded, of at most 65535 bytes each';
    throw new InvalidInput('OPTION_INVALID', field, expected, text);
  }
  return url;
}

/** User name and password in a URL, empty if absent; undefined: they cannot be sent. */
export function credentialsOf(url: URL): { readonly username: string; readonly password: string } | undefined {
  try {
    const [username, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
    return Math.max(Buffer.byteLength(username), Buffer.byteLength(password)) > 65_535
      ? undefined
      : { username, password };
  } catch {
    return undefined; // an unescaped percent sign, or bytes that are not UTF-8
  }
}

/** Refuse an empty client id: a server would assign another one to each connection, and keep the session of each. */
function checkClientId(value: unknown, field: string): string {
  if (typeof value !== 'string' || value === '')
    throw new InvalidInput('OPTION_INVALID', field, 'a client id of at least one character', value);
  return value;
}
