import { once } from 'node:events';
import { chmod, lstat, rm } from 'node:fs/promises';
import {
  type AddressInfo,
  connect,
  type ListenOptions as NodeListenOptions,
  type Server,
  type ServerOpts
} from 'node:net';
import { type ListenerAddress, placeOf } from '../../lib/adapter.ts';
import { BrokerError } from '../../lib/index.ts';

/** The address to bind, and the options of its sockets. */
export type Place =
  | {
      readonly port: number;
      readonly host: string;
      readonly ipv6Only: boolean;
      readonly backlog: number;
      readonly noDelay: boolean;
      readonly tcpKeepAlive: number;
    }
  | { readonly path: string; readonly mode: number; readonly backlog: number };

/** Creates the server of a listener. It may be called again after a failed bind. */
export type ServerMaker<S extends Server = Server> = (options: ServerOpts) => S;

/**
 * Bind an address and accept connections.
 * @param create creates the server; its listeners for connections must not throw
 * @param onError called with later errors, after which the server continues to accept
 * @throws BrokerError LISTENER_BIND_FAILED, with the address and the remedy
 */
export async function bind<S extends Server>(
  place: Place,
  create: ServerMaker<S>,
  onError: (error: Error) => void
): Promise<S> {
  try {
    return await ('path' in place ? bindPath(place, create, onError) : bindPort(place, create, onError));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const remedy = ('path' in place ? PATH_REMEDIES : PORT_REMEDIES)[code ?? ''] ?? (error as Error).message;
    throw new BrokerError('LISTENER_BIND_FAILED', `cannot listen on ${placeOf(place)}: ${remedy}`, {
      cause: error
    });
  }
}

/** Return the address that a server is bound to; undefined if it is closed. */
export function boundAddress(server: Server): ListenerAddress | undefined {
  const address = server.address() as AddressInfo | string | null;
  if (address === null) return undefined;
  return typeof address === 'string' ? { path: address } : { host: address.address, port: address.port };
}

const PORT_REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is in use; stop the other program, or choose another port (0 for a free one)',
  EACCES: 'permission denied; choose a port above 1023',
  EADDRNOTAVAIL: 'this machine has no such address; use "0.0.0.0" or "::" for all of its addresses',
  ENOTFOUND: 'the host name is unknown; check its spelling, or use an IP address'
};

const PATH_REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the socket is in use; stop the other program, or choose another path',
  // also reported if the directory does not exist
  EACCES: 'its directory does not exist or is not writable; create it, or choose another path',
  EEXIST: 'there is a file that is not a socket; move it away, or choose another path',
  EINVAL: 'the path is invalid for a socket; choose another one'
};

/** Longest path of a Unix socket, without the NUL; BSD kernels have four bytes less. Node may silently truncate a longer path. */
const PATH_MAX_BYTES = process.platform === 'linux' ? 107 : 103;

async function bindPort<S extends Server>(
  place: Extract<Place, { port: number }>,
  create: ServerMaker<S>,
  onError: (error: Error) => void
): Promise<S> {
  const { port, host, ipv6Only, backlog, noDelay, tcpKeepAlive } = place;
  // rounded up: Node truncates fractions of a second, and for 0 the kernel uses its default of two hours
  const keepAliveInitialDelay = Math.ceil(tcpKeepAlive / 1000) * 1000;
  const keepAlive = tcpKeepAlive > 0 ? { keepAlive: true, keepAliveInitialDelay } : {};
  const server = create({ noDelay, ...keepAlive });
  await startListening(server, { port, host, ipv6Only, backlog }, onError);
  return server;
}

async function bindPath<S extends Server>(
  place: Extract<Place, { path: string }>,
  create: ServerMaker<S>,
  onError: (error: Error) => void
): Promise<S> {
  const { path, mode, backlog } = place;
  const bytes = Buffer.byteLength(path);
  if (bytes > PATH_MAX_BYTES && !isPipe(path)) {
    throw new Error(
      `the path has ${bytes} bytes, but at most ${PATH_MAX_BYTES} are possible; choose a shorter one, such as /tmp/mqtt.sock`
    );
  }
  const server = create({});
  const start = () => withUmask(mode, () => startListening(server, { path, backlog }, onError));
  try {
    await start();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || !(await isStale(path))) throw error;
    await rm(path, { force: true });
    await start();
  }
  if (!isPipe(path)) await chmod(path, mode);
  return server;
}

async function startListening(
  server: Server,
  where: NodeListenOptions,
  onError: (error: Error) => void
): Promise<void> {
  server.listen(where);
  await once(server, 'listening');
  // errors from now on are failed accepts (too many open files), after which Node continues to accept
  server.on('error', onError);
}

/** Run a bind with the umask that gives the socket its file mode at once. With a later chmod alone, anyone could connect in between. */
function withUmask<T>(mode: number, run: () => T): T {
  let mask: number;
  try {
    mask = process.umask(0o777 & ~mode);
  } catch {
    return run(); // a worker thread cannot set the umask, so only the later chmod sets the mode
  }
  try {
    return run();
  } finally {
    process.umask(mask);
  }
}

/**
 * Check whether a path is a socket on which no process listens.
 * @throws Error EEXIST if it is a file of another kind, which may hold data
 */
async function isStale(path: string): Promise<boolean> {
  if (isPipe(path)) return false;
  const file = await lstat(path).catch(() => undefined);
  if (file === undefined) return true;
  if (!file.isSocket()) throw Object.assign(new Error(`${path} is not a socket`), { code: 'EEXIST' });
  return new Promise((resolve) => {
    const probe = connect({ path });
    const answer = (refused: boolean) => {
      probe.destroy();
      resolve(refused);
    };
    probe.on('connect', () => answer(false));
    probe.on('error', (error: NodeJS.ErrnoException) => answer(error.code === 'ECONNREFUSED'));
  });
}

function isPipe(path: string): boolean {
  return path.startsWith('\\\\');
}
