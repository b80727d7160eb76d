import type { ListenerHandle } from '../records/listener.ts';

/** The protocol of listeners and the default port by URL scheme. */
const SCHEMES: Readonly<Record<string, readonly [protocol: string, port: number]>> = {
  tcp: ['mqtt:tcp', 1883],
  mqtt: ['mqtt:tcp', 1883],
  ssl: ['mqtt:ssl', 8883],
  tls: ['mqtt:ssl', 8883],
  tcps: ['mqtt:ssl', 8883],
  mqtts: ['mqtt:ssl', 8883],
  ws: ['mqtt:ws', 80],
  wss: ['mqtt:wss', 443]
};
const ANY_ADDRESS = ['0.0.0.0', '::'];
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

/**
 * Check whether the URL of an MQTT server, such as `tcp://127.0.0.1:1883`, denotes an open listener of this broker: its
 * bound address, or a loopback address if it is bound to all addresses. Names other than `localhost` are not resolved.
 */
export function isOwnServer(
  server: string,
  listeners: Iterable<Pick<ListenerHandle, 'protocol' | 'address'>>
): boolean {
  const [, scheme = 'tcp', rest = ''] = /^(?:([a-z]+):\/\/)?([^/]*)/i.exec(server.trim()) ?? [];
  const [, name = '', digits] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(rest) ?? [];
  const known = SCHEMES[scheme.toLowerCase()];
  if (known === undefined || name === '') return false;
  const [wanted, usualPort] = known;
  const host = name.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  const port = digits === undefined ? usualPort : Number(digits);
  for (const { protocol, address } of listeners)
    if (protocol === wanted && address?.port === port && isSameHost(host, address.host ?? '')) return true;
  return false;
}

function isSameHost(host: string, bound: string): boolean {
  if (host === bound) return true;
  if (!LOOPBACK.test(host)) return false;
  return ANY_ADDRESS.includes(bound) || (LOOPBACK.test(bound) && (host === 'localhost' || bound === 'localhost'));
}
