import { randomBytes } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type Params, parseDuration } from '../../lib/adapter.ts';
import { type ClientOptions, InvalidInput } from '../../lib/index.ts';
import {
  clientOptionsOf,
  type DialSettings,
  readMqttUrl,
  readTlsParams,
  type ServerOptions
} from '../outgoing/index.ts';

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
  const clientId = given.clientid || id;
  const suffix = given.append ? `_${randomBytes(4).toString('hex')}` : '';
  checkMountpoint(given.mountpoint);
  return {
    dial: { url, ...(url.protocol === 'mqtts:' || url.protocol === 'wss:' ? readTls(given) : {}) },
    client: {
      ...readServer(given),
      clientId: checkLength('clientid', clientId + suffix),
      clean: true,
      maximumPacketSize: MAX_PACKET_BYTES
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
  const url = readMqttUrl(address);
  if (url === undefined) {
    const isUrl = address.includes('://');
    const expected = !address.includes('@')
      ? 'a host and a port such as "127.0.0.1:1883", or an mqtt, mqtts, ws or wss URL'
      : isUrl
        ? 'a URL without user name and password; use "username" and "password"'
        : 'a host and a port; names of nodes are not supported';
    throw invalid('address', expected, isUrl ? address : address.replace(/^.*@/, '***@'));
  }
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

function readServer(given: Readonly<Record<string, string>>): ServerOptions {
  const { username = '', password = '', proto_ver: version } = given;
  const options = clientOptionsOf({
    ...{ version, keepAliveSec: readKeepAlive(given.keepalive) },
    ...{ username: checkLength('username', username), password: checkLength('password', password) }
  });
  if (password && !username && options.protocolVersion < 5)
    throw invalid('username', 'a user name beside the password, except with mqttv5', username);
  return options;
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
