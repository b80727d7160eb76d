// All requests to other servers go through this class: those of webhooks, rules, streams and sources of authentication.
// The files beside it each add one thing: the rule about answers (`answer-status.ts`), a time limit (`deadline.ts`),
// public addresses (`public-lookup.ts`), reading an answer (`answer-body.ts`).
//
// An idle connection may be closed by the server while a request is written to it. Whether the server has seen the
// request is then unknown, so it is repeated only if it may arrive twice [RFC 9110, section 9.2.2]; see `mayRepeat`.

import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import type { Attempt, Clock } from '../../lib/index.ts';
import { BrokerError } from '../../lib/index.ts';
import { discardBody, readBody } from './answer-body.ts';
import { privateHostError, publicLookup } from './public-lookup.ts';
import { hostOf, openSocket } from './socket.ts';
import { type OutgoingTls, tlsOf } from './tls.ts';

/** A request that is ready to be sent. */
export interface HttpCall {
  readonly method: string;
  /** Path and query, percent-encoded. Default: those of the URL. */
  readonly path?: string | undefined;
  /**
   * Names with their values. Or a list of alternating names and values, which costs Node less; it has to contain `Host`
   * and `content-length`.
   */
  readonly headers: Readonly<Record<string, string>> | readonly string[];
  /** A string is sent with the encoding of the headers; see `isPlainText`. */
  readonly body?: string | Buffer | undefined;
  /**
   * True if the request may arrive twice. Default: for methods that are idempotent, and with a header `webhook-id`, by
   * which receivers recognize it.
   */
  readonly mayRepeat?: boolean;
}

/** A response. */
export interface HttpAnswer {
  readonly status: number;
  /** Keyed by lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Empty if the client does not read answers. */
  readonly body: Buffer;
}

/** Settings of an `HttpClient`. */
interface HttpSettings {
  /** Maximum number of concurrent connections. */
  readonly maxSockets: number;
  /** Maximum size of a response body. If absent, `send` resolves when the response begins, and its body is ignored. */
  readonly maxBodyBytes?: number;
  readonly tls?: OutgoingTls;
  /** True if the certificate of the server is verified. Default true. */
  readonly verifies?: boolean;
  /** True to connect only to public addresses. Default false. */
  readonly isPublicOnly?: boolean;
  /** Time limit for establishing a connection. Default: that of the request. */
  readonly connecting?: { readonly ms: number; readonly clock: Clock };
}

/** Ends a request early: the signal of the caller, or the attempt of an outbox, which costs less. */
type Limit = AbortSignal | Pick<Attempt, 'reason' | 'onAbort'>;

const IDEMPOTENT: readonly string[] = ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'];

/**
 * Sends requests to one HTTP server over persistent connections. Redirects are not followed, and proxies are not used.
 * Errors name the origin and the path, but never the query, which may contain a password.
 */
export class HttpClient {
  readonly #url: URL;
  readonly #settings: HttpSettings;
  readonly #isSecure: boolean;
  readonly #agent: HttpAgent;
  /** The options shared by all requests. */
  readonly #base: object;
  readonly #lookup: LookupFunction | undefined;
  /** Ends requests in progress, and those that wait for a connection. */
  readonly #requests = new Set<(error: Error) => void>();
  #isClosed = false;

  /** @param url see `checkUrl` */
  constructor(url: URL, settings: HttpSettings) {
    const { maxSockets, maxBodyBytes, tls = {}, verifies = true, isPublicOnly } = settings;
    this.#url = url;
    this.#settings = settings;
    this.#isSecure = url.protocol === 'https:';
    this.#lookup = isPublicOnly ? publicLookup : undefined;
    // the connection that was used last may still be receiving an answer that is ignored
    const scheduling = maxBodyBytes === undefined ? ('fifo' as const) : ('lifo' as const);
    const options = { keepAlive: true, maxSockets, scheduling, ...(this.#lookup && { lookup: this.#lookup }) };
    this.#agent = this.#isSecure
      ? new HttpsAgent({ ...options, ...tlsOf(tls), rejectUnauthorized: verifies })
      : new HttpAgent(options);
    this.#base = { ...urlToHttpOptions(url), agent: this.#agent };
  }

  /**
   * Send a request.
   * @param limit aborts the request; its reason is thrown
   * @throws BrokerError HTTP_FAILED, HTTP_BODY_TOO_LARGE, ADDRESS_PRIVATE
   */
  async send(call: HttpCall, limit: Limit): Promise<HttpAnswer> {
    this.#checkAddress();
    const attempt = 'onAbort' in limit ? limit : limitOf(limit);
    for (;;) {
      const answer = await this.#attempt(call, attempt);
      if (answer !== undefined) return answer; // a new connection is never stale, so the loop ends
    }
  }

  /**
   * Check whether a connection to the server can be established. It is closed at once.
   * @param signal aborts the check
   * @throws as `send`
   */
  async connect(signal: AbortSignal): Promise<void> {
    this.#checkAddress();
    const { port } = this.#url;
    const { tls = {}, verifies = true } = this.#settings;
    const target = {
      host: hostOf(this.#url),
      port: port !== '' ? Number(port) : this.#isSecure ? 443 : 80,
      tls: this.#isSecure ? { ...tlsOf(tls), rejectUnauthorized: verifies } : undefined,
      lookup: this.#lookup
    };
    try {
      (await openSocket(target, signal)).destroy();
    } catch (error) {
      throw signal.aborted ? signal.reason : this.#wrap(error as Error);
    }
  }

  /** Close the connections. Requests in progress, those that wait for a connection, and later ones fail at once. */
  close(): void {
    this.#isClosed = true;
    // Node would open a connection for a request that waits for one, although that has ended
    this.#agent.createConnection = (_, done) => {
      done?.(new Error(CLOSED), undefined as never);
      return undefined;
    };
    for (const fail of this.#requests) fail(this.#wrap(new Error(CLOSED)));
    this.#agent.destroy();
  }

  /** @throws BrokerError ADDRESS_PRIVATE if the host is an address that is not looked up */
  #checkAddress(): void {
    const fault = this.#settings.isPublicOnly ? privateHostError(hostOf(this.#url)) : undefined;
    if (fault !== undefined) throw fault;
  }

  /** @returns undefined: the server has closed the connection, and the request may be repeated */
  #attempt(call: HttpCall, limit: Exclude<Limit, AbortSignal>): Promise<HttpAnswer | undefined> {
    if (limit.reason !== undefined) throw limit.reason;
    if (this.#isClosed) throw this.#wrap(new Error(CLOSED));
    const { method, path, headers, body } = call;
    return new Promise((resolve, reject) => {
      const options = { ...this.#base, method, headers: headers as string[], ...(path !== undefined && { path }) };
      const request = this.#isSecure ? requestHttps(options) : requestHttp(options);
      let isSettled = false;
      const settle = <V>(end: (value: V) => void, value: V) => {
        if (isSettled) return; // the connection may already be in use by the next request
        isSettled = true;
        this.#requests.delete(fail);
        limit.onAbort(undefined);
        end(value);
      };
      const fail = (error: unknown) => {
        settle(reject, error);
        request.destroy();
      };
      this.#requests.add(fail);
      limit.onAbort(fail); // the option `signal` of Node costs more
      this.#limitConnecting(request);
      request.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        if (isStale && mayRepeat(call)) settle(resolve, undefined);
        else settle(reject, this.#wrap(error));
      });
      // without an error and a response if the server changes the protocol
      const end = () => settle(reject, this.#wrap(new Error('the server sent an invalid response')));
      request.on('close', end);
      request.on('response', (response) => {
        request.off('close', end);
        this.#read(request, response, (answer) => settle(resolve, answer), fail);
      });
      request.end(body);
    });
  }

  #read(
    request: ClientRequest,
    response: IncomingMessage,
    done: (answer: HttpAnswer) => void,
    fail: (error: Error) => void
  ): void {
    const { maxBodyBytes } = this.#settings;
    const { statusCode: status = 0, headers } = response;
    if (maxBodyBytes === undefined) {
      done({ status, headers, body: NO_BODY });
      discardBody(request, response);
    } else
      readBody(response, maxBodyBytes, this.#name).then(
        (body) => done({ status, headers, body }),
        (error) => fail(this.#wrap(error))
      );
  }

  #limitConnecting(request: ClientRequest): void {
    const { connecting } = this.#settings;
    if (connecting === undefined) return;
    const { ms, clock } = connecting;
    request.on('socket', (socket: Socket) => {
      if (!socket.connecting) return;
      const timer = clock.setTimeout(() => socket.destroy(new Error(`no connection within ${ms} ms`)), ms);
      const clear = () => clock.clearTimeout(timer);
      socket.once(this.#isSecure ? 'secureConnect' : 'connect', clear);
      socket.once('close', clear);
    });
  }

  #wrap(error: NodeJS.ErrnoException): Error {
    if (error instanceof BrokerError) return error; // about the address, or the size of the response
    const why = error.message === '' ? error.code : error.message; // if all of several addresses fail, the error has no message
    return new BrokerError('HTTP_FAILED', `the request to ${this.#name} failed: ${why}`, { cause: error });
  }

  get #name(): string {
    return `${this.#url.origin}${this.#url.pathname}`;
  }
}

const CLOSED = 'the client is closed';
const NO_BODY = Buffer.alloc(0);

/** Check whether a request may arrive twice. */
function mayRepeat({ method, headers, mayRepeat: isGiven }: HttpCall): boolean {
  const hasId = Array.isArray(headers) ? headers.includes('webhook-id') : 'webhook-id' in headers;
  return isGiven ?? (hasId || IDEMPOTENT.includes(method));
}

function limitOf(signal: AbortSignal): Exclude<Limit, AbortSignal> {
  let last: (() => void) | undefined;
  return {
    get reason() {
      return signal.aborted ? (signal.reason as Error) : undefined;
    },
    onAbort(run) {
      if (last !== undefined) signal.removeEventListener('abort', last);
      last = run && (() => run(signal.reason as Error));
      if (last !== undefined) signal.addEventListener('abort', last, { once: true });
    }
  };
}

/**
 * Check whether a string body may be sent together with the headers. It is then sent with the encoding of the headers,
 * which must be ASCII.
 */
export function isPlainText(headers: readonly string[]): boolean {
  return !/[^\t\x20-\x7e]/.test(headers.join(''));
}
