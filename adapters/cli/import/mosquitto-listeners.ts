// Settings of listeners belong to the last line "listener" before them; those before the first one belong to the
// listener of "port" and "bind_address". A listener is written when all its lines are known, because what a setting
// means depends on others: a certificate authority without require_certificate asks for no certificates.

import { networkInterfaces } from 'node:os';
import { readBrokerOptions } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { tcp, tls, unix, ws, wss } from '../../net/index.ts';
import { type Draft, entryOf, isOn, located, type SourceLine, type Verdict } from './draft.ts';

/** A listener, as it is collected from its lines. */
export interface MosquittoListener {
  /** The line that begins it; undefined for the default listener without "port" and "bind_address". */
  head: SourceLine | undefined;
  port: number;
  host: string | undefined;
  readonly lines: SourceLine[];
  /** The settings by their names. */
  readonly given: Map<string, string>;
}

const MAKERS = { tcp, tls, ws, wss, unix } as unknown as Readonly<Record<string, (options: object) => unknown>>;

const NO_EFFECT = 'has no effect here: Node.js decides about it';
const CERTIFICATES = 'is not supported: convert the key to a PEM file';

/** Settings of listeners that are read when the listener is complete. */
export const LISTENER_SETTINGS: ReadonlySet<string> = new Set([
  'protocol',
  'socket_domain',
  'max_connections',
  'mount_point',
  'max_qos',
  'max_topic_alias',
  'use_username_as_clientid',
  'cafile',
  'certfile',
  'keyfile',
  'crlfile',
  'ciphers',
  'require_certificate',
  'tls_version',
  'use_identity_as_username',
  'use_subject_as_username',
  'psk_hint'
]);

/** Settings of listeners that are not taken over, with the reason. */
export const REFUSED_OF_LISTENERS: Readonly<Record<string, string>> = {
  bind_interface: 'a listener is bound to an address: name that of the interface as "host" of the listener',
  http_dir: 'files are not served; use a web server',
  capath: 'folders of certificate authorities are not read: put the certificates into one file, and name it as caFile',
  'ciphers_tls1.3': 'add these cipher suites to "ciphers" of the listener, which has those of all versions of TLS',
  dhparamfile: NO_EFFECT,
  tls_engine: CERTIFICATES,
  tls_engine_kpass_sha1: CERTIFICATES,
  tls_keyform: CERTIFICATES,
  websockets_log_level: 'has no effect here: WebSocket has no own log',
  websockets_headers_size: NO_EFFECT
};

const VERSIONS: Readonly<Record<string, string>> = { 'tlsv1.1': 'TLSv1.1', 'tlsv1.2': 'TLSv1.2', 'tlsv1.3': 'TLSv1.3' };

/** The settings of the whole broker on which listeners depend. */
interface ListenerContext {
  readonly isLocalOnly: boolean;
  readonly noDelay: boolean | undefined;
  readonly pskFile: string | undefined;
  /** Settings of the zone of each listener, beside its own. */
  zoneOf(listener: MosquittoListener): Record<string, unknown>;
}

/** Write a listener, and its zone if it has own settings. @returns true if it is taken over */
export function writeListener(listener: MosquittoListener, context: ListenerContext, draft: Draft): boolean {
  const { given, head } = listener;
  const refuse = (name: string, reason: string) => {
    for (const line of listener.lines) if (line.name === name) draft.refuse(line, reason);
  };
  const refuseAll = (reason: string): false => {
    for (const line of [...(head === undefined ? [] : [head]), ...listener.lines]) draft.refuse(line, reason);
    return false;
  };
  const isUnix = listener.port === 0 && listener.host?.startsWith('/') === true;
  const isWeb = given.get('protocol') === 'websockets';
  if (!['mqtt', 'websockets', undefined].includes(given.get('protocol')))
    return refuseAll(`there is no protocol "${given.get('protocol')}": mqtt or websockets`);
  const isTls = given.has('certfile') || given.has('keyfile') || given.has('psk_hint');
  const kind = isUnix ? 'unix' : isWeb ? (isTls ? 'wss' : 'ws') : isTls ? 'tls' : 'tcp';
  const options: Record<string, unknown> = isUnix
    ? { path: listener.host }
    : { port: listener.port, ...addressOf(listener, context) };
  if (isUnix) refuse('socket_domain', 'is not for Unix sockets');
  if (context.noDelay !== undefined && !isUnix) options.noDelay = context.noDelay;
  const connections = given.get('max_connections');
  if (connections !== undefined) options.maxConnections = Math.max(0, Number(connections));
  if (given.has('mount_point')) options.mountpoint = given.get('mount_point');
  const zone: Record<string, unknown> = context.zoneOf(listener);
  for (const [name, key] of Object.entries(ZONE_KEYS)) {
    const value = Number(given.get(name));
    const fault = given.has(name) ? zoneFault(key, value) : undefined;
    if (fault !== undefined) refuse(name, fault);
    else if (given.has(name)) zone[key] = value;
  }
  if (isOn(given.get('use_username_as_clientid') ?? '')) zone.useUsernameAsClientid = true;
  const fault = isTls ? addTls(listener, options, zone, context, refuse) : undefined;
  if (fault !== undefined) return refuseAll(fault);
  if (!isTls) for (const name of TLS_NAMES) refuse(name, 'needs certfile and keyfile: the listener has no TLS');
  try {
    MAKERS[kind](options);
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    return refuseAll(error.message);
  }
  if (Object.keys(zone).length > 0) {
    const name = `listener-${isUnix ? 'unix' : listener.port}`;
    options.zone = name;
    draft.config.zones = { ...(draft.config.zones as object | undefined), [name]: zone };
  }
  draft.append(head === undefined ? [] : [head], 'listeners', { kind, ...options });
  return true;
}

/** Settings of listeners that belong to their zone here. */
const ZONE_KEYS: Readonly<Record<string, string>> = { max_qos: 'maxQosAllowed', max_topic_alias: 'maxTopicAlias' };

/** The reason why a zone cannot have a setting. */
function zoneFault(key: string, value: unknown): string | undefined {
  try {
    readBrokerOptions({ [key]: value });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const TLS_NAMES = [
  'cafile',
  'crlfile',
  'ciphers',
  'require_certificate',
  'tls_version',
  'use_identity_as_username',
  'use_subject_as_username'
];

/** Add the TLS options of a listener. @returns the reason why the listener cannot be taken over */
function addTls(
  { given, head }: MosquittoListener,
  options: Record<string, unknown>,
  zone: Record<string, unknown>,
  { pskFile }: ListenerContext,
  refuse: (name: string, reason: string) => void
): string | undefined {
  const path = (name: string) => located(given.get(name) as string, head?.file ?? '');
  const hasCertificate = given.has('certfile') && given.has('keyfile');
  if (!hasCertificate && (given.has('certfile') || given.has('keyfile')))
    return 'a listener with TLS needs both certfile and keyfile';
  if (hasCertificate) Object.assign(options, { certFile: path('certfile'), keyFile: path('keyfile') });
  if (given.has('psk_hint')) {
    if (pskFile === undefined) return 'pre-shared keys need psk_file';
    options.pskFile = located(pskFile, head?.file ?? '');
    refuse('psk_hint', 'pre-shared keys are taken over; the hint is not sent to clients');
  }
  const isRequired = isOn(given.get('require_certificate') ?? '');
  if (isRequired && !given.has('cafile'))
    return 'require_certificate needs a cafile: without one, no client could connect';
  if (given.has('cafile')) Object.assign(options, { caFile: path('cafile'), requestCert: isRequired });
  if (given.has('crlfile')) {
    if (isRequired) options.crlFile = path('crlfile');
    else refuse('crlfile', 'is used only with require_certificate');
  }
  if (given.has('ciphers')) options.ciphers = given.get('ciphers');
  const version = given.get('tls_version');
  if (version !== undefined) {
    const minVersion = entryOf(VERSIONS, version);
    if (minVersion === undefined) refuse('tls_version', 'is not tlsv1.1, tlsv1.2 or tlsv1.3');
    else options.minVersion = minVersion;
  }
  const [isIdentity, isSubject] = ['use_identity_as_username', 'use_subject_as_username'].map((name) =>
    isOn(given.get(name) ?? '')
  );
  if (isIdentity || isSubject) {
    if (isRequired) {
      options.usernameFrom = isIdentity ? 'cn' : 'subject';
      // the certificate is the login: no password is asked for
      Object.assign(zone, { bypassAuthPlugins: true, allowAnonymous: true });
    } else if (!given.has('psk_hint'))
      refuse(isIdentity ? 'use_identity_as_username' : 'use_subject_as_username', 'needs require_certificate');
  }
  if (isIdentity && isSubject) refuse('use_subject_as_username', 'use_identity_as_username takes precedence');
  return undefined;
}

/** The address to bind. mosquitto binds all addresses of both versions of IP by default. */
function addressOf({ host, given }: MosquittoListener, { isLocalOnly }: ListenerContext): Record<string, unknown> {
  if (host !== undefined) return { host };
  if (isLocalOnly) return { host: '127.0.0.1' };
  if (given.get('socket_domain') === 'ipv6') return { host: '::', ipv6Only: true };
  const hasIPv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ family }) => family === 'IPv6'));
  return { host: given.get('socket_domain') === 'ipv4' || !hasIPv6 ? '0.0.0.0' : '::' };
}

/** Collect a setting of a listener. */
export function collect(listener: MosquittoListener, line: SourceLine, draft: Draft): Verdict {
  const { name, value } = line;
  const earlier = listener.lines.find((one) => one.name === name);
  if (earlier !== undefined) draft.refuse(earlier, `line ${line.line} sets it again`);
  listener.lines.push(line);
  listener.given.set(name, value);
  if (name === 'max_connections' && !/^-?\d+$/.test(value)) return 'is not a number';
  if (name === 'socket_domain' && !/^ipv[46]$/.test(value)) return 'is not ipv4 or ipv6';
  return undefined;
}
