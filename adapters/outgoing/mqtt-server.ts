import type { ClientOptions } from '../../lib/index.ts';

/** The schemes of URLs of MQTT servers: those of MQTT, and those of other programs. */
const SCHEMES: Readonly<Record<string, string>> = {
  tcp: 'mqtt',
  mqtt: 'mqtt',
  ssl: 'mqtts',
  tls: 'mqtts',
  tcps: 'mqtts',
  mqtts: 'mqtts',
  ws: 'ws',
  wss: 'wss'
};

/** Versions of MQTT by their names in properties and parameters. */
const VERSIONS: Readonly<Record<string, 3 | 4 | 5>> = {
  '3.1': 3,
  '3.1.1': 4,
  '5': 5,
  '5.0': 5,
  mqttv3: 3,
  mqttv4: 4,
  mqttv5: 5
};
const KEEP_ALIVE_SEC = 60;

/**
 * Read the address of an MQTT server, a URL or a host with a port.
 * @returns undefined if it is not valid, or contains credentials
 */
export function readMqttUrl(address: string): URL | undefined {
  const [, scheme = 'tcp', rest = ''] = /^(?:([a-z]+):\/\/)?(.*)$/is.exec(address) ?? [];
  const known = SCHEMES[scheme.toLowerCase()];
  const text = `${known}://${rest}`;
  if (known === undefined || !/^[^@/?#]*[^@/?#:](?:[/?#]|$)/.test(rest) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return url.hostname === '' ? undefined : url;
}

/** Properties and parameters that are options of the client of an MQTT server. */
interface ServerSettings {
  /** The name of a version of MQTT. Default 3.1.1. */
  readonly version?: string | undefined;
  readonly keepAliveSec?: number;
  /** Empty strings count as absent. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** The options of the client of an MQTT server. */
export type ServerOptions = ClientOptions & { readonly protocolVersion: 3 | 4 | 5 };

/** The options of a client from the settings of a source, a sink or a resource. */
export function clientOptionsOf({
  version = '3.1.1',
  keepAliveSec = KEEP_ALIVE_SEC,
  username,
  password
}: ServerSettings): ServerOptions {
  return {
    protocolVersion: VERSIONS[version],
    keepalive: keepAliveSec,
    ...(username ? { username } : {}),
    ...(password ? { password } : {})
  };
}
