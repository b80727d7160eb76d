import { createServer } from 'node:net';

/** Ports in programs: after a colon, in a call or as a property. Other numbers with four or five digits are left alone. */
const PORT = /(?<=localhost:|127\.0\.0\.1:|port: |listen: \[?|listen(?:Http)?\((?:\w+, )?)\d{4,5}\b/g;

/**
 * Replaces the ports that a program names by ports that are free now.
 * @param free the ports that replace others; it gets more entries
 */
export async function withFreePorts(code: string, free: Map<string, string>): Promise<string> {
  for (const [port] of code.matchAll(PORT)) if (!free.has(port)) free.set(port, await freePort());
  return code.replace(PORT, (port) => free.get(port) as string);
}

/** Returns a port that is free now. The programs name their ports, so they cannot ask for any free one themselves. */
function freePort(): Promise<string> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(String(port)));
    });
  });
}
