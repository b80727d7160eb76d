import { createHash, createHmac } from 'node:crypto';
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { type Attempt, BrokerError, type OutboxEntry } from '../../lib/index.ts';
import { isPrivateAddress, privateAddressError, publicLookup, type tlsOf } from '../outgoing/index.ts';

/** What a `WebhookSender` needs to know. */
export interface SenderSettings {
  readonly url: URL;
  readonly tls: ReturnType<typeof tlsOf>;
  readonly headers: Readonly<Record<string, string>>;
  /** The key of the signature; undefined: requests are not signed. */
  readonly secret: Buffer | undefined;
  /** Connections to public addresses only. */
  readonly isPublicOnly: boolean;
  readonly maxSockets: number;
  /** Whether bodies are lists of events. */
  readonly isBatched: boolean;
  /** Wall-clock milliseconds. */
  now(): number;
}

/** The answer is ignored. No more of it is read, and no longer. */
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_ANSWER_MS = 1_000;

/** Sends requests over connections that stay open. What a server answers has no meaning, so a request is delivered when its answer begins. */
export class WebhookSender {
  readonly #settings: SenderSettings;
  readonly #agent: HttpAgent;
  readonly #request: typeof requestHttp;
  /** What all requests have in common. */
  readonly #target: RequestOptions;
  /** The headers that all requests have in common: names and values in turn, which costs Node less than an object. */
  readonly #headers: readonly string[];
  /** A body that is a string is sent together with the headers, but with their encoding as well. */
  readonly #isAscii: boolean;
  /** Why nothing can be sent to the URL. */
  readonly #fault: BrokerError | undefined;

  constructor(settings: SenderSettings) {
    const { url, tls, maxSockets, isPublicOnly, headers } = settings;
    const lookup = isPublicOnly ? { lookup: publicLookup } : {};
    const options = { keepAlive: true, maxSockets, scheduling: 'fifo' as const, ...lookup };
    const isSecure = url.protocol === 'https:';
    const host = url.hostname.replace(/^\[|\]$/g, '');
    this.#settings = settings;
    this.#request = isSecure ? requestHttps : requestHttp;
    this.#agent = isSecure ? new HttpsAgent({ ...options, ...tls, rejectUnauthorized: true }) : new HttpAgent(options);
    this.#target = { ...urlToHttpOptions(url), method: 'POST', agent: this.#agent };
    this.#headers = ['Host', url.host, 'content-type', 'application/json', ...Object.entries(headers).flat()];
    this.#isAscii = !/[^\t\x20-\x7e]/.test(this.#headers.join(''));
    this.#fault =
      isPublicOnly && isIP(host) !== 0 && isPrivateAddress(host) ? privateAddressError(host, host) : undefined;
  }

  /** Send entries, whose content is JSON. @throws BrokerError HTTP_FAILED, ADDRESS_PRIVATE if the server could not be reached */
  async send(entries: readonly OutboxEntry[], attempt: Attempt): Promise<void> {
    if (this.#fault !== undefined) throw this.#fault;
    const { isBatched } = this.#settings;
    const text = isBatched ? `[${entries.map(({ content }) => content).join()}]` : String(entries[0].content);
    const body = this.#isAscii ? text : Buffer.from(text);
    const headers = this.#headersOf(idOf(entries), body);
    while (await this.#post(headers, body, attempt)) {} // again, if the server had closed the idle connection
  }

  /** Close the connections. Requests in progress fail. */
  close(): void {
    this.#agent.destroy();
  }

  /** The headers of a request, with those of the specification Standard Webhooks. */
  #headersOf(id: string, body: string | Buffer): string[] {
    const { secret, now } = this.#settings;
    const headers = [...this.#headers, 'content-length', `${Buffer.byteLength(body)}`, 'webhook-id', id];
    if (secret === undefined) return headers;
    const timestamp = Math.floor(now() / 1000);
    const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64');
    headers.push('webhook-timestamp', `${timestamp}`, 'webhook-signature', `v1,${signature}`);
    return headers;
  }

  /** @returns true: the connection had been closed before the server saw the request */
  #post(headers: readonly string[], body: string | Buffer, attempt: Attempt): Promise<boolean> {
    if (attempt.reason !== undefined) throw attempt.reason;
    return new Promise((resolve, reject) => {
      const request = this.#request({ ...this.#target, headers });
      attempt.onAbort((reason) => request.destroy(reason)); // the option `signal` of Node costs more
      request.on('error', (error: NodeJS.ErrnoException) => {
        attempt.onAbort(undefined);
        const isStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        if (isStale && attempt.reason === undefined) resolve(true);
        else reject(this.#wrap(error, attempt));
      });
      request.on('response', (response) => {
        attempt.onAbort(undefined);
        resolve(false);
        readRest(request, response);
      });
      request.end(body);
    });
  }

  #wrap(error: NodeJS.ErrnoException, { reason }: Attempt): Error {
    if (reason !== undefined) return reason;
    if (error.code === 'ADDRESS_PRIVATE') return error;
    const { origin, pathname } = this.#settings.url; // not the query, which may contain a password
    const why = error.message === '' ? error.code : error.message; // several addresses that all failed have an error without a message
    return new BrokerError('HTTP_FAILED', `the request to ${origin}${pathname} failed: ${why}`, { cause: error });
  }
}

/** The id of a request: that of its entry, or one that only a request with the same entries has. */
function idOf(entries: readonly OutboxEntry[]): string {
  if (entries.length === 1) return entries[0].id;
  return createHash('sha256')
    .update(entries.map(({ id }) => id).join())
    .digest('base64url');
}

/**
 * Read the rest of an answer, so that the connection can be used again, but only if it is short and comes soon, and the server takes the rest
 * of the request as well.
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
