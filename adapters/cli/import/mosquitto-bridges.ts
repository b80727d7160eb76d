import { placeOf } from '../../../lib/adapter.ts';
import { type Draft, isOn, located, type SourceLine, type Verdict } from './draft.ts';

/** A bridge, as it is collected from its lines. */
export interface MosquittoBridge {
  readonly head: SourceLine;
  readonly options: Record<string, unknown>;
  readonly out: object[];
  readonly in: object[];
  readonly given: Map<string, string>;
}

/** Begin a bridge. */
export function bridgeOf(head: SourceLine): MosquittoBridge {
  return { head, options: {}, out: [], in: [], given: new Map() };
}

type BridgeRow = string | ((value: string, bridge: MosquittoBridge, line: SourceLine) => Verdict);

const CLIENT = 'a bridge needs no login at its own broker, and access rules do not apply to it';
const KEYS = 'pre-shared keys are for listeners only: use certificates';

const pem =
  (option: string): BridgeRow =>
  (value, { options }, { file }) => {
    options[option] = { fromFile: located(value, file) };
    return undefined;
  };
const text =
  (option: string): BridgeRow =>
  (value, { options }) => {
    options[option] = value;
    return undefined;
  };

/** A row for each setting of a bridge: the reason why it is not taken over, or a function that takes it over. */
export const BRIDGE_ROWS: Readonly<Record<string, BridgeRow>> = {
  address: setAddress,
  addresses: setAddress,
  topic: addTopic,
  remote_clientid: text('clientId'),
  clientid: text('clientId'),
  remote_username: text('username'),
  username: text('username'),
  remote_password: text('password'),
  password: text('password'),
  keepalive_interval: (value, { options }) => {
    options.keepAlive = Number(value);
    return undefined;
  },
  cleansession: (value, { options, given }) => {
    given.set('cleansession', value);
    options.clean = isOn(value);
    return undefined;
  },
  try_private: (value, { given }) => {
    given.set('try_private', value);
    return undefined;
  },
  bridge_protocol_version: (value, { given }) => {
    if (!/^mqttv(50|311)$/.test(value)) return 'bridges speak MQTT 3.1.1 (mqttv311) or 5.0 (mqttv50)';
    given.set('version', value);
    return undefined;
  },
  bridge_outgoing_retain: (value, { given }) => {
    given.set('retain', value);
    return undefined;
  },
  restart_timeout: (value, { options }) => {
    const [base, cap = base] = value.split(/\s+/);
    Object.assign(options, { backOff: `${base}s`, maxBackOff: `${cap}s` });
    return undefined;
  },
  start_type: (value) =>
    value === 'automatic' ? undefined : 'a bridge is always connected: it starts with the broker, and connects again',
  notifications: (value) =>
    isOn(value)
      ? 'bridges publish no state: see embermq ctl bridges, the alarm bridge_down and GET /metrics'
      : undefined,
  bridge_cafile: pem('ca'),
  bridge_certfile: pem('cert'),
  bridge_keyfile: pem('key'),
  bridge_insecure: (value) =>
    isOn(value)
      ? 'the certificate of the server is always verified: name the host in it with "servername" of the bridge'
      : undefined,
  local_cleansession: 'the queue of a bridge is kept in any case; with isPersisted also in the store',
  local_clientid: CLIENT,
  local_username: CLIENT,
  local_password: CLIENT,
  notifications_local_only: 'bridges publish no state',
  notification_topic: 'bridges publish no state',
  round_robin: 'a bridge has one address',
  idle_timeout: 'is for start_type lazy',
  threshold: 'is for start_type lazy',
  bridge_attempt_unsubscribe: 'is not needed: a bridge subscribes only to topics of the direction in',
  bridge_bind_address: 'the system chooses the address of outgoing connections',
  bridge_max_packet_size: 'the limit that the server announces applies (MQTT 5.0)',
  bridge_alpn: 'is not supported by bridges',
  bridge_capath:
    'folders of certificate authorities are not read: put the certificates into one file, and name it as "ca"',
  bridge_identity: KEYS,
  bridge_psk: KEYS,
  bridge_require_ocsp: 'is not supported by bridges',
  bridge_tls_version: 'Node.js decides about it: TLS 1.2 and 1.3'
};

function setAddress(value: string, bridge: MosquittoBridge): Verdict {
  const [first, ...more] = value.split(/\s+/);
  bridge.given.set('address', first);
  return more.length === 0 ? undefined : `a bridge has one address: ${first} is taken over, ${more.join(' and ')} not`;
}

/** Add `topic pattern [direction [qos [local-prefix remote-prefix]]]`. */
function addTopic(value: string, bridge: MosquittoBridge): Verdict {
  const words = value.split(/\s+/).map((word) => (word === '""' ? '' : word));
  const [filter, direction = 'out', qos = '0', localPrefix = '', remotePrefix = ''] = words;
  if (!/^(in|out|both)$/.test(direction)) return `the direction "${direction}" is not in, out or both`;
  if (!/^[012]$/.test(qos)) return `the QoS "${qos}" is not 0, 1 or 2`;
  if (filter === '')
    return 'a topic consists of a filter and prefixes: one topic cannot be renamed, only its first levels';
  const entry = {
    filter,
    qos: Number(qos),
    ...(localPrefix === '' ? {} : { localPrefix }),
    ...(remotePrefix === '' ? {} : { remotePrefix })
  };
  const lists = direction === 'both' ? [bridge.in, bridge.out] : [direction === 'in' ? bridge.in : bridge.out];
  for (const list of lists) list.push(entry);
  return undefined;
}

/** Write a bridge. @param isPersistent true if the broker persists its state */
export function writeBridge(
  { head, options, out, in: incoming, given }: MosquittoBridge,
  isPersistent: boolean,
  draft: Draft
): void {
  const address = given.get('address');
  if (address === undefined || out.length + incoming.length === 0) {
    draft.refuse(head, `the bridge has no ${address === undefined ? 'address' : 'topics that can be taken over'}`);
    return;
  }
  const isTls = ['ca', 'cert', 'key'].some((name) => name in options);
  const isBridgeKnown = isOn(given.get('try_private') ?? 'true');
  const version = given.get('version') === 'mqttv50' ? 5 : 4;
  const retain = isOn(given.get('retain') ?? 'true');
  const colon = address.lastIndexOf(':');
  const [host, port] = colon < 0 ? [address, '1883'] : [address.slice(0, colon), address.slice(colon + 1)];
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const name = head.value.replace(/[^\w.-]/g, '-');
  draft.append([head], 'bridges', {
    name,
    url: `${isTls ? 'mqtts' : 'mqtt'}://${placeOf({ host: bare, port: Number(port) })}`,
    version,
    ...(version === 4 && isBridgeKnown && { bridgeBit: true }),
    ...options,
    ...(isPersistent && options.clean !== true && { isPersisted: true }),
    ...(out.length > 0 && { out: retain ? out : out.map((entry) => ({ ...entry, retain: false })) }),
    ...(incoming.length > 0 && { in: incoming })
  });
}
