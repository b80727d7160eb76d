import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/** Ports in programs: after a colon, in a call or as a property. Other numbers with four or five digits are left alone. */
const PORT = /(?<=localhost:|127\.0\.0\.1:|port: |listen: \[?|listen(?:Http)?\((?:\w+, )?)\d{4,5}\b/g;

/**
 * Replaces the ports that a program names by ports that are free now.
 * @param free the ports that replace others; it gets more entries
 */
export async function withFreePorts(code: string, free: Map<string, string>): Promise<string> {
  for (const [port] of code.matchAll(PORT)) if (!free.has(port)) free.set(port, String(await freePort()));
  return code.replace(PORT, (port) => free.get(port) as string);
}

/** Returns a port of 127.0.0.1 on which no server listens now. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port;
}

/** Returns different ports of 127.0.0.1 on which no server listens now, for programs that cannot be asked for the port that they have got. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}
