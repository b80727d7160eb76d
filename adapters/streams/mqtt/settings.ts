import type { FieldTable, SourceSetup } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { clientOptionsOf, type DialSettings, readMqttUrl, type ServerOptions } from '../../outgoing/index.ts';
import { readTlsFiles, TLS_FILE_PROPERTIES, TRUST_REMEDY } from '../tls-files.ts';

/** Properties of connections to another MQTT server. */
export const MQTT_PROPERTIES: FieldTable = {
  server: { type: 'string', about: 'URL of the server: tcp://host:1883, ssl://host:8883, ws:// or wss://.' },
  servers: { type: 'array', about: 'Instead of server; only the first one is used.' },
  qos: { type: 'number', about: 'QoS of the subscription.', default: 1, choices: [0, 1, 2] },
  clientid: {
    type: 'string',
    about:
      'Client id. Default: with a session `embermq_NODE_STREAM`, otherwise random. For a second stream with the same client id, the name of the stream is appended.'
  },
  enableClientSession: {
    type: 'boolean',
    about:
      'The server keeps messages while there is no connection. Default: if a rule with `qos` above 0 reads the stream, and the broker has a store.'
  },
  sessionExpiry: {
    type: 'number',
    about:
      'Time for which it keeps them with MQTT 5, in seconds, and for which the deletion of an unneeded session is retried while the server is down.',
    default: 86_400,
    min: 1,
    max: 4_294_967_295
  },
  protocolVersion: {
    type: 'string',
    about: 'Version of MQTT.',
    default: '3.1.1',
    choices: ['3.1', '3.1.1', '5', '5.0']
  },
  username: { type: 'string', about: 'User name at the server.' },
  password: { type: 'string', about: 'Password at the server.', isSecret: true },
  ...TLS_FILE_PROPERTIES,
  insecureSkipVerify: {
    type: 'boolean',
    about: 'Only false: the certificate of the server is always verified.',
    choices: [false]
  }
};

/** The read properties. */
export interface MqttSourceSettings {
  readonly dial: DialSettings;
  readonly qos: 0 | 1 | 2;
  readonly clientId: string | undefined;
  /** True: keep a session at the server; undefined: if rules need it. */
  readonly session: boolean | undefined;
  /** Seconds. */
  readonly sessionExpiry: number | undefined;
  /** Version, keep alive and login. */
  readonly client: ServerOptions;
}

/** @throws InvalidInput PROPERTY_INVALID */
export async function readMqttSettings(
  { properties, dataDir }: Pick<SourceSetup, 'properties' | 'dataDir'>,
  what: string
): Promise<MqttSourceSettings> {
  const given = properties as Readonly<Record<string, string | undefined>>;
  const { qos, servers } = properties as { qos: 0 | 1 | 2; servers?: readonly unknown[] };
  const url = readServer(given.server ?? servers?.[0], what);
  const tls = await readTlsFiles(properties, dataDir, what);
  const hasCertificate = tls.cert !== undefined;
  return {
    dial: { url, ...tls, trustRemedy: TRUST_REMEDY },
    qos,
    clientId: given.clientid || undefined,
    session: properties.enableClientSession as boolean | undefined,
    sessionExpiry: properties.sessionExpiry as number | undefined,
    client: clientOptionsOf({
      version: given.protocolVersion,
      // the original does not use them together with a certificate
      username: hasCertificate ? undefined : given.username,
      password: hasCertificate ? undefined : given.password
    })
  };
}

function readServer(server: unknown, what: string): URL {
  const url = typeof server === 'string' ? readMqttUrl(server) : undefined;
  if (url !== undefined) return url;
  const expected = 'a URL without credentials such as "tcp://host:1883"';
  const message = `${what}: property server must be ${expected}`;
  throw new InvalidInput('PROPERTY_INVALID', 'server', expected, undefined, message);
}
