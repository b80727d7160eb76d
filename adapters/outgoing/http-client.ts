import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import { shownUrl } from '../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../lib/index.ts';
import type { OutgoingTls } from './tls.ts';

/** A request that is ready to be sent. */
export interface HttpCall {
  readonly method: string;
  /** Path and query, percent-encoded. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

/** A complete response. */
export interface HttpAnswer {
  readonly status: number;
  /** Keyed by lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
}

/** Limits of an `HttpClient`. */
interface HttpLimits {
  /** Maximum number of concurrent connections. */
  readonly maxSockets: number;
  /** Maximum size of a response body. */
  readonly maxBodyBytes: number;
  /** True if the certificate of the server is verified. Default true. */
  readonly verifies?: boolean;
}

/**
 * Sends requests to one HTTP server over persistent connections. Redirects are not followed, and proxies are not used.
 * Errors name the origin and the path, but never the query, which may contain a password.
 */
export class HttpClient {
  readonly #url: URL;
  readonly #limits: HttpLimits;
  readonly #agent: HttpAgent;
  readonly #request: typeof requestHttp;

  /** @param url see `checkUrl` */
  constructor(url: URL, tls: OutgoingTls, limits: HttpLimits) {
    this.#url = url;
    this.#limits = limits;
    const options = { keepAlive: true, maxSockets: limits.maxSockets };
    const isSecure = url.protocol === 'https:';
    this.#request = isSecure ? requestHttps : requestHttp;
    this.#agent = isSecure
      ? new HttpsAgent({
          ...options,
          ...(tls as SecureContextOptions & OutgoingTls),
          rejectUnauthorized: limits.verifies !== false
        })
      : new HttpAgent(options);
  }

  /**
   * Send a request. An idle connection that the server has closed is replaced.
   * @param signal aborts the request; its reason is thrown
   * @throws BrokerError HTTP_FAILED, HTTP_BODY_TOO_LARGE
   */
  async send(call: HttpCall, signal: AbortSignal): Promise<HttpAnswer> {
    for (;;) {
      try {
        return await this.#attempt(call, signal);
      } catch (error) {
        if (!(error instanceof StaleConnection)) throw error; // a new connection is never stale, so the loop ends
      }
    }
  }

  /** Close the connections. Requests in progress fail. */
  close(): void {
    this.#agent.destroy();
  }

  #attempt({ method, path, headers, body }: HttpCall, signal: AbortSignal): Promise<HttpAnswer> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const request = this.#request(this.#url, { method, path, headers, agent: this.#agent });
      let isSettled = false;
      const settle = () => {
        isSettled = true;
        signal.removeEventListener('abort', abort);
      };
      const fail = (error: unknown) => {
        if (isSettled) return; // the connection may already be in use by the next request
        settle();
        reject(error);
        request.destroy();
      };
      const abort = () => fail(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
      request.on('error', (error) => fail(this.#failure(request, error)));
      request.on('close', () => fail(this.#failure(request, new Error('the server sent an invalid response'))));
      request.on('response', (response) => {
        this.#read(response, (error, answer) => {
          if (answer === undefined) fail(error ?? this.#failure(request, new Error('the response is incomplete')));
          else {
            settle();
            resolve(answer);
          }
        });
      });
      request.end(body);
    });
  }

  #read(response: IncomingMessage, done: (error: Error | undefined, answer?: HttpAnswer) => void): void {
    const { maxBodyBytes } = this.#limits;
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBodyBytes) chunks.push(chunk);
      else {
        const text = `the response of ${this.#name} is larger than ${maxBodyBytes} bytes`;
        done(new BrokerError('HTTP_BODY_TOO_LARGE', text));
      }
    });
    response.on('error', (error) => done(this.#wrap(error)));
    response.on('end', () =>
      done(
        undefined,
        response.complete
          ? { status: response.statusCode as number, headers: response.headers, body: Buffer.concat(chunks) }
          : undefined
      )
    );
  }

  #failure(request: ClientRequest, error: Error): Error {
    const { code } = error as NodeJS.ErrnoException;
    const isStale = request.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE');
    return isStale ? new StaleConnection(error.message, { cause: error }) : this.#wrap(error);
  }

  #wrap(error: Error): Error {
    const { message, code } = error as NodeJS.ErrnoException;
    const why = message === '' ? code : message; // if all of several addresses fail, the error has no message
    return new BrokerError('HTTP_FAILED', `the request to ${this.#name} failed: ${why}`, { cause: error });
  }

  get #name(): string {
    return `${this.#url.origin}${this.#url.pathname}`;
  }
}

/** The server has closed a reused connection, so it has not seen the request. */
class StaleConnection extends Error {}

/**
 * Read the URL of a server.
 * @throws InvalidInput OPTION_INVALID for a URL that is not absolute, has another scheme, contains credentials, or contains placeholders
 */
export function checkUrl(value: unknown, field: string): URL {
  const fail = (expected: string): never => {
    throw new InvalidInput('OPTION_INVALID', field, expected, shown(value));
  };
  const isText = typeof value === 'string' || value instanceof URL;
  if (!isText || !URL.canParse(String(value))) return fail('a URL such as "https://app.example/mqtt"');
  const url = new URL(value);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return fail('a URL that begins with http:// or https://');
  if (url.username !== '' || url.password !== '') return fail('a URL without user name and password; use a header');
  if (/%(?![0-9a-f]{2})/i.test(String(value)))
    return fail('a URL without placeholders; they are possible in "query", "form", "json" and "headers"');
  return url;
}

/** A value in place of a URL, for error messages. */
function shown(value: unknown): unknown {
  return typeof value === 'string' || value instanceof URL ? shownUrl(String(value)) : value;
}
