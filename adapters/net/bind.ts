import { once } from 'node:events';
import { chmod, lstat, rm } from 'node:fs/promises';
import {
  type AddressInfo,
  connect,
  createServer,
  type ListenOptions as NodeListenOptions,
  type Server,
  type Socket
} from 'node:net';
import { BrokerError, type ListenerAddress } from '../../lib/index.ts';

/** Where to bind, as read from a listener's options. */
export type Place =
  | {
      readonly port: number;
      readonly host: string;
      readonly ipv6Only: boolean;
      readonly backlog: number;
      readonly noDelay: boolean;
      readonly tcpKeepAlive: number;
    }
  | { readonly path: string; readonly mode: number | undefined; readonly backlog: number };

/**
 * Bind and accept.
 * @param accept gets every socket that comes; it must not throw
 * @param failed is told what goes wrong later: the server keeps accepting
 * @throws BrokerError LISTENER_BIND_FAILED, with the address and what can be done
 */
export async function bind(
  place: Place,
  accept: (socket: Socket) => void,
  failed: (error: Error) => void
): Promise<Server> {
  try {
    return await ('path' in place ? bindPath(place, accept, failed) : bindPort(place, accept, failed));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const remedy = ('path' in place ? PATH_REMEDIES : PORT_REMEDIES)[code ?? ''] ?? (error as Error).message;
    throw new BrokerError('LISTENER_BIND_FAILED', `cannot listen on ${placeName(place)}: ${remedy}`, { cause: error });
  }
}

/** The address a server has. */
export function boundAddress(server: Server): ListenerAddress | undefined {
  const address = server.address() as AddressInfo | string | null;
  if (address === null) return undefined;
  return typeof address === 'string' ? { path: address } : { host: address.address, port: address.port };
}

/** Host and port as people write them, IPv6 in brackets; or the path. */
function placeName(place: Place): string {
  if ('path' in place) return place.path;
  return place.host.includes(':') ? `[${place.host}]:${place.port}` : `${place.host}:${place.port}`;
}

const PORT_REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'somebody listens there already; stop that, or choose another port (0 takes a free one)',
  EACCES: 'permission denied; choose a port from 1024 up',
  EADDRNOTAVAIL: 'this machine has no such address; "0.0.0.0" or "::" binds all it has',
  ENOTFOUND: 'the host name is unknown; check its spelling, or give an address'
};

const PATH_REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'somebody listens there already; stop that, or choose another path',
  // What a missing directory is reported as, too.
  EACCES: 'its directory does not exist or may not be written to',
  EEXIST: 'a file that is not a socket is there; move it away, or choose another path',
  EINVAL: 'the path is no good for a socket; choose another one'
};

/** What fits beside the NUL into the address of a Unix socket; BSD kernels have four bytes less. Node may cut a longer path off without a word. */
const PATH_MAX_BYTES = process.platform === 'linux' ? 107 : 103;

async function bindPort(
  place: Extract<Place, { port: number }>,
  accept: (socket: Socket) => void,
  failed: (error: Error) => void
): Promise<Server> {
  const { port, host, ipv6Only, backlog, noDelay, tcpKeepAlive } = place;
  // Node cuts off what is less than a second, and the kernel takes its own two hours for 0.
  const keepAliveInitialDelay = Math.ceil(tcpKeepAlive / 1000) * 1000;
  const keepAlive = tcpKeepAlive > 0 ? { keepAlive: true, keepAliveInitialDelay } : {};
  const server = createServer({ noDelay, ...keepAlive }, accept);
  await listening(server, { port, host, ipv6Only, backlog }, failed);
  return server;
}

async function bindPath(
  place: Extract<Place, { path: string }>,
  accept: (socket: Socket) => void,
  failed: (error: Error) => void
): Promise<Server> {
  const { path, mode, backlog } = place;
  const bytes = Buffer.byteLength(path);
  if (bytes > PATH_MAX_BYTES && !isPipe(path)) {
    throw new Error(
      `the path has ${bytes} bytes, a socket takes ${PATH_MAX_BYTES}; choose a shorter one, such as /tmp/mqtt.sock`
    );
  }
  const server = createServer(accept);
  const start = () => withMask(mode, () => listening(server, { path, backlog }, failed));
  try {
    await start();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || !(await isStale(path))) throw error;
    await rm(path, { force: true });
    await start();
  }
  if (mode !== undefined && !isPipe(path)) await chmod(path, mode);
  return server;
}

async function listening(server: Server, where: NodeListenOptions, failed: (error: Error) => void): Promise<void> {
  server.listen(where);
  await once(server, 'listening');
  // From here on: a failed accept (too many open files). Node goes on accepting.
  server.on('error', failed);
}

/** Bind with the file mode in force from the first moment; a chmod afterwards would leave a gap. The bind happens within the call. */
function withMask<T>(mode: number | undefined, run: () => T): T {
  if (mode === undefined) return run();
  let mask: number;
  try {
    mask = process.umask(0o777 & ~mode);
  } catch {
    return run(); // in a worker thread the mask can not be set: the chmod that follows has to do
  }
  try {
    return run();
  } finally {
    process.umask(mask);
  }
}

/** Is a socket left over by a process that is gone? A file of another kind is an error: it may be somebody's data. */
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
