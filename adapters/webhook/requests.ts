import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { connect as connectSocket, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { urlToHttpOptions } from 'node:url';
import { type Attempt, BrokerError, type Clock } from '../../lib/index.ts';
import { isPrivateAddress, privateAddressError, publicLookup, type tlsOf } from '../outgoing/index.ts';

/** The target of `Requests`. */
export interface RequestSettings {
  readonly url: URL;
  readonly tls: ReturnType<typeof tlsOf>;
  /** True to connect only to public addresses. */
  readonly isPublicOnly: boolean;
  readonly maxSockets: number;
  /** Time limit for establishing a connection. Default: that of the attempt. */
  readonly connecting?: { readonly ms: number; readonly clock: Clock };
}

/** Only the head of the answer matters. At most this much of the rest is read, for a limited time. */
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_ANSWER_MS = 1_000;

/**
 * Sends requests to one server over persistent connections. Its errors name the origin and the path, but never the
 * query, which may contain a password.
 */
export class Requests {
  readonly #settings: RequestSettings;
  readonly #agent: HttpAgent;
  readonly #request: typeof requestHttp;
  readonly #isSecure: boolean;
  readonly #host: string;
  /** The reason why nothing can be sent to the URL. */
  readonly #fault: BrokerError | undefined;

  constructor(settings: RequestSettings) {
    const { url, tls, maxSockets, isPublicOnly } = settings;
    const options = { keepAlive: true, maxSockets, scheduling: 'fifo' as const, ...lookupOf(settings) };
    const host = url.hostname.replace(/^\[|\]$/g, '');
    this.#settings = settings;
    this.#host = host;
    this.#isSecure = url.protocol === 'https:';
    this.#request = this.#isSecure ? requestHttps : requestHttp;
    this.#agent = this.#isSecure
      ? new HttpsAgent({ ...options, ...tls, rejectUnauthorized: true })
      : new HttpAgent(options);
    this.#fault =
      isPublicOnly && isIP(host) !== 0 && isPrivateAddress(host) ? privateAddressError(host, host) : undefined;
  }

  /** The options shared by all requests to the URL. */
  target(method: string): RequestOptions {
    return { ...urlToHttpOptions(this.#settings.url), method, agent: this.#agent };
  }

  /**
   * Send a request, again if the server had closed the idle connection.
   * @param options the result of `target`, with headers
   * @param body see `isPlainText` for strings
   * @returns the answer, as soon as it begins
   * @throws BrokerError HTTP_FAILED, ADDRESS_PRIVATE if the server could not be reached
   */
  async send(options: RequestOptions, body: string | Buffer | undefined, attempt: Attempt): Promise<IncomingMessage> {
    if (this.#fault !== undefined) throw this.#fault;
    for (;;) {
      const answer = await this.#post(options, body, attempt);
      if (answer !== undefined) return answer;
    }
  }

  /**
   * Check whether a connection to the server can be established.
   * @param signal aborts the check
   * @throws as `send`
   */
  async connect(signal: AbortSignal): Promise<void> {
    if (this.#fault !== undefined) throw this.#fault;
    const { url, tls } = this.#settings;
    const host = this.#host;
    const port = url.port === '' ? (this.#isSecure ? 443 : 80) : Number(url.port);
    const target = { host, port, ...lookupOf(this.#settings) };
    signal.throwIfAborted();
    const servername = isIP(host) === 0 ? host : ''; // an IP address is not a valid server name [RFC 6066, section 3]
    const socket = this.#isSecure ? connectTls({ servername, ...tls, ...target }) : connectSocket(target);
    const abort = () => socket.destroy(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.on('error', reject);
        socket.on('close', () => reject(new Error('the connection was closed before it was established')));
        socket.once(this.#connected, () => resolve());
      });
    } catch (error) {
      throw signal.aborted ? (signal.reason as Error) : this.#wrap(error as Error);
    } finally {
      signal.removeEventListener('abort', abort);
      socket.destroy();
    }
  }

  /** Close the connections. Requests in progress fail. */
  close(): void {
    this.#agent.destroy();
  }

  /** @returns undefined: the connection was closed before the server saw the request */
  #post(options: RequestOptions, body: string | Buffer | undefined, attempt: Attempt) {
    if (attempt.reason !== undefined) throw attempt.reason;
    return new Promise<IncomingMessage | undefined>((resolve, reject) => {
      const request = this.#request(options);
      let isSettled = false;
      attempt.onAbort((reason) => request.destroy(reason)); // the option `signal` of Node costs more
      if (this.#settings.connecting !== undefined)
        request.on('socket', (socket) => {
          if (socket.connecting) this.#limitConnecting(socket);
        });
      request.on('error', (error: NodeJS.ErrnoException) => {
        attempt.onAbort(undefined);
        isSettled = true;
        const isStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        if (isStale && attempt.reason === undefined) resolve(undefined);
        else reject(attempt.reason ?? this.#wrap(error));
      });
      request.on('close', () => {
        // without an error if an answer changes the protocol
        if (!isSettled) reject(attempt.reason ?? this.#wrap(new Error('the server sent an invalid answer')));
      });
      request.on('response', (response) => {
        attempt.onAbort(undefined);
        isSettled = true;
        resolve(response);
        readRest(request, response);
      });
      request.end(body);
    });
  }

  /** The event of a connected socket. */
  get #connected(): string {
    return this.#isSecure ? 'secureConnect' : 'connect';
  }

  #limitConnecting(socket: Socket): void {
    const { ms, clock } = this.#settings.connecting as NonNullable<RequestSettings['connecting']>;
    const timer = clock.setTimeout(() => socket.destroy(new Error(`no connection within ${ms} ms`)), ms);
    const clear = () => clock.clearTimeout(timer);
    socket.once(this.#connected, clear);
    socket.once('close', clear);
  }

  #wrap(error: NodeJS.ErrnoException): Error {
    if (error.code === 'ADDRESS_PRIVATE') return error;
    const { origin, pathname } = this.#settings.url;
    const why = error.message === '' ? error.code : error.message; // if all of several addresses fail, the error has no message
    return new BrokerError('HTTP_FAILED', `the request to ${origin}${pathname} failed: ${why}`, { cause: error });
  }
}

/**
 * Check whether a string body may be sent together with the headers. It is then sent with the encoding of the headers,
 * which must be ASCII.
 */
export function isPlainText(headers: readonly string[]): boolean {
  return !/[^\t\x20-\x7e]/.test(headers.join(''));
}

function lookupOf({ isPublicOnly }: RequestSettings) {
  return isPublicOnly ? { lookup: publicLookup } : {};
}

/**
 * Read the rest of an answer so that the connection can be reused, but only if the rest is short and arrives soon, and
 * the server also reads the rest of the request.
 */
function readRest(request: ClientRequest, response: IncomingMessage): void {
  let bytes = 0;
  const slow = setTimeout(() => request.destroy(), MAX_ANSWER_MS);
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) request.destroy();
  });
  response.on('error', () => undefined);
  request.on('close', () => clearTimeout(slow));
}
