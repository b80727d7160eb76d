import { BrokerError, type Client, type ClientOptions, connectClient } from '../../lib/index.ts';
import type { Shell } from './command.ts';
import { ENDPOINT_FLAGS, type Endpoint, nameOf, openStream, readEndpoint } from './endpoint.ts';
import type { FlagValues } from './flags.ts';
import { clientOptions, SESSION_FLAGS } from './session-flags.ts';

/** The flags of all commands that connect to a broker. */
export const DIAL_FLAGS = { ...ENDPOINT_FLAGS, ...SESSION_FLAGS };

/**
 * Connect to the broker that the flags describe.
 * @param signal aborts connecting
 * @throws BrokerError BROKER_UNREACHABLE, CONNECT_TIMEOUT; Refused CONNECT_REFUSED; the signal's reason
 */
export async function dial(
  flags: FlagValues<typeof DIAL_FLAGS>,
  shell: Shell,
  more: ClientOptions = {},
  signal?: AbortSignal
): Promise<Client> {
  const endpoint = await readEndpoint(flags, shell);
  return dialEndpoint(endpoint, { ...clientOptions(flags, endpoint), ...more }, flags.connectTimeout, signal);
}

/**
 * Connect to a broker.
 * @param signal aborts connecting; it has no effect on an established connection
 * @throws BrokerError BROKER_UNREACHABLE, CONNECT_TIMEOUT; Refused CONNECT_REFUSED; the signal's reason
 */
export async function dialEndpoint(
  endpoint: Endpoint,
  options: ClientOptions,
  timeoutMs: number,
  signal?: AbortSignal
): Promise<Client> {
  signal?.throwIfAborted();
  const giveUp = new AbortController();
  const late = setTimeout(() => {
    giveUp.abort(new BrokerError('CONNECT_TIMEOUT', `${nameOf(endpoint)} did not answer within ${timeoutMs} ms`));
  }, timeoutMs);
  const abort = () => giveUp.abort(signal?.reason);
  signal?.addEventListener('abort', abort);
  try {
    const stream = await openStream(endpoint, giveUp.signal);
    return await connectClient(stream, { ...options, signal: giveUp.signal });
  } finally {
    clearTimeout(late);
    signal?.removeEventListener('abort', abort);
  }
}

/** Wait for a promise, or reject with the reason of the signal when it aborts. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([promise, aborted]);
}

/** The exit code of a command ended by SIGINT, as in shells. */
export const INTERRUPTED = 130;

/** A signal that aborts on SIGINT or SIGTERM. After that, the next SIGINT or SIGTERM ends the process. */
export function interrupted(shell: Shell): AbortSignal {
  const interruption = new AbortController();
  const release = shell.onSignal(() => {
    release();
    interruption.abort();
  });
  return interruption.signal;
}

/** A signal that aborts when the connection of a client is closed. The reason of the signal is BrokerError CONNECTION_CLOSED. */
export function closed(client: Client): AbortSignal {
  const closing = new AbortController();
  client.on('close', ({ error }) => {
    const why = error === undefined ? 'by the broker' : error.message;
    closing.abort(new BrokerError('CONNECTION_CLOSED', `the connection was closed: ${why}`, { cause: error }));
  });
  return closing.signal;
}

/** Disconnect gracefully, or destroy the connection if the broker does not close its side within 5 s. */
export async function leave(client: Client): Promise<void> {
  const late = setTimeout(() => client.destroy(), LEAVE_TIMEOUT_MS);
  await client.disconnect();
  clearTimeout(late);
}

const LEAVE_TIMEOUT_MS = 5_000;
