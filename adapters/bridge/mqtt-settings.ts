import { randomBytes } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type Params, parseDuration } from '../../lib/adapter.ts';
import { type ClientOptions, InvalidInput } from '../../lib/index.ts';
import { type DialSettings, readTlsParams } from '../outgoing/index.ts';

/** The checked configuration of a resource `bridge_mqtt`. */
export interface MqttSettings {
  readonly dial: DialSettings;
  readonly client: ClientOptions;
  readonly isPersisted: boolean;
  /** Maximum delay after a failure. */
  readonly reconnectMs: number;
  /** Time limit for the acknowledgement. */
  readonly retryMs: number;
}

const VERSIONS: Readonly<Record<string, 3 | 4 | 5>> = { mqttv3: 3, mqttv4: 4, mqttv5: 5 };

/** The documented defaults. */
const DEFAULTS = { proto_ver: 'mqttv4', append: true, reconnect_interval: '30s', retry_interval: '20s' };

/** Maximum size of a packet from the remote server, which has no reason to send messages. */
const MAX_PACKET_BYTES = 65_536;
const MAX_KEEP_ALIVE_SEC = 65_535;
const MAX_TEXT_BYTES = 65_535;

/**
 * Read a configuration that satisfies `BRIDGE_MQTT_PARAMS`.
 * @param id the id of the resource
 * @throws InvalidInput PARAM_INVALID
 */
export function readMqttSettings(config: Params, id: string): MqttSettings {
  const given = { ...DEFAULTS, ...config } as typeof DEFAULTS & Readonly<Record<string, string>>;
  const url = readAddress(given.address, given.ssl === 'on');
  const protocolVersion = VERSIONS[given.proto_ver];
  const clientId = given.clientid || id;
  const suffix = given.append ? `_${randomBytes(4).toString('hex')}` : '';
  checkMountpoint(given.mountpoint);
  return {
    dial: { url, ...(url.protocol === 'mqtts:' || url.protocol === 'wss:' ? readTls(given) : {}) },
    client: {
      clientId: checkLength('clientid', clientId + suffix),
      clean: true,
      protocolVersion,
      keepalive: readKeepAlive(given.keepalive),
      maximumPacketSize: MAX_PACKET_BYTES,
      ...readCredentials(given, protocolVersion)
    },
    isPersisted: given.disk_cache === 'on',
    reconnectMs: Math.max(1, parseDuration(given.reconnect_interval) ?? 0),
    retryMs: Math.max(1, parseDuration(given.retry_interval) ?? 0)
  };
}

function invalid(field: string, expected: string, got: unknown): InvalidInput {
  return new InvalidInput('PARAM_INVALID', field, expected, got);
}

function readAddress(address: string, isTls: boolean): URL {
  const shown = address.replace(/^(?!.*\/\/).*@/, '***@');
  const hasScheme = address.includes('://');
  if (!hasScheme && address.includes('@'))
    throw invalid('address', 'a host and a port; names of nodes are not supported', shown);
  const text = hasScheme ? address : `mqtt://${address}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^(mqtts?|wss?):$/.test(url.protocol) || url.hostname === '')
    throw invalid('address', 'a host and a port such as "127.0.0.1:1883", or an mqtt, mqtts, ws or wss URL', shown);
  if (url.username !== '' || url.password !== '')
    throw invalid('address', 'a URL without user name and password; use "username" and "password"', shown);
  if (!isTls || url.protocol === 'mqtts:' || url.protocol === 'wss:') return url;
  return new URL(url.href.replace(/^(mqtt|ws):/, '$1s:'));
}

function checkMountpoint(mountpoint: string | undefined): void {
  if (mountpoint !== undefined && /[+#\0]/.test(mountpoint))
    throw invalid('mountpoint', 'a prefix of topics without wildcards', mountpoint);
}

function readKeepAlive(text: string): number {
  const seconds = Math.ceil((parseDuration(text) ?? 0) / 1000);
  if (seconds <= MAX_KEEP_ALIVE_SEC) return seconds;
  throw invalid('keepalive', `a duration of at most ${MAX_KEEP_ALIVE_SEC} seconds`, text);
}

/** Forms send empty strings for empty fields. */
function readCredentials({ username, password }: Readonly<Record<string, string>>, version: number) {
  if (password && !username && version < 5)
    throw invalid('username', 'a user name beside the password, except with mqttv5', username);
  return {
    ...(username ? { username: checkLength('username', username) } : {}),
    ...(password ? { password: checkLength('password', password) } : {})
  };
}

function checkLength(field: string, text: string): string {
  if (Buffer.byteLength(text) <= MAX_TEXT_BYTES) return text;
  throw invalid(field, `a string of at most ${MAX_TEXT_BYTES} bytes`, undefined);
}

/** The parameters of the TLS options. */
const TLS_NAMES = { ca: 'cacertfile', cert: 'certfile', key: 'keyfile', servername: 'servername' };

function readTls(given: Readonly<Record<string, string>>): Omit<DialSettings, 'url'> {
  for (const name of ['cacertfile', 'certfile', 'keyfile'])
    if (given[name] && !given[name].includes('-----BEGIN '))
      throw invalid(name, 'PEM text, because files are not read', undefined);
  const tls = readTlsParams(given, TLS_NAMES, 'bridge_mqtt');
  return given.ciphers ? { ...tls, ciphers: readCiphers(given.ciphers) } : tls;
}

function readCiphers(text: string): string {
  const ciphers = text.split(/[,:\s]+/).join(':');
  try {
    createSecureContext({ ciphers });
  } catch {
    throw invalid('ciphers', 'names of cipher suites, separated by commas', text);
  }
  return ciphers;
}
