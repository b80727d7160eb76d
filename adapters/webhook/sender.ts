import { createHmac } from 'node:crypto';
import { Agent as HttpAgent, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { BrokerError, type OutboxEntry } from '../../lib/index.ts';
import { isPrivateAddress, type OutgoingTls, privateAddressError, publicLookup } from '../outgoing/index.ts';

/** What a `WebhookSender` needs to know. */
export interface SenderSettings {
  readonly url: URL;
  readonly tls: OutgoingTls;
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
  /** Why nothing can be sent to the URL. */
  readonly #fault: BrokerError | undefined;

  constructor(settings: SenderSettings) {
    const { url, tls, maxSockets, isPublicOnly } = settings;
    const lookup = isPublicOnly ? { lookup: publicLookup } : {};
    const options = { keepAlive: true, maxSockets, scheduling: 'fifo' as const, ...lookup };
    const isSecure = url.protocol === 'https:';
    const host = url.hostname.replace(/^\[|\]$/g, '');
    this.#settings = settings;
    this.#request = isSecure ? requestHttps : requestHttp;
    this.#agent = isSecure
      ? new HttpsAgent({ ...options, ...(tls as SecureContextOptions & OutgoingTls), rejectUnauthorized: true })
      : new HttpAgent(options);
    this.#fault =
      isPublicOnly && isIP(host) !== 0 && isPrivateAddress(host) ? privateAddressError(host, host) : undefined;
  }

  /** Send entries, whose content is JSON. @throws BrokerError HTTP_FAILED, ADDRESS_PRIVATE if the server could not be reached */
  async send(entries: readonly OutboxEntry[], signal: AbortSignal): Promise<void> {
    if (this.#fault !== undefined) throw this.#fault;
    const { isBatched } = this.#settings;
    const text = isBatched ? `[${entries.map(({ content }) => content).join()}]` : String(entries[0].content);
    const body = Buffer.from(text);
    const headers = this.#headers(entries[0].id, body);
    while (await this.#attempt(headers, body, signal)) {} // again, if the server had closed the idle connection
  }

  /** Close the connections. Requests in progress fail. */
  close(): void {
    this.#agent.destroy();
  }

  /** The headers of the specification Standard Webhooks. */
  #headers(id: string, body: Buffer): Record<string, string | number> {
    const { headers, secret, now } = this.#settings;
    const all = { 'content-type': 'application/json', 'content-length': body.length, 'webhook-id': id, ...headers };
    if (secret === undefined) return all;
    const timestamp = Math.floor(now() / 1000);
    const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64');
    return { ...all, 'webhook-timestamp': `${timestamp}`, 'webhook-signature': `v1,${signature}` };
  }

  /** @returns true: the connection had been closed before the server saw the request */
  #attempt(headers: Record<string, string | number>, body: Buffer, signal: AbortSignal): Promise<boolean> {
    const { url } = this.#settings;
    return new Promise((resolve, reject) => {
      const request = this.#request(url, { method: 'POST', headers, agent: this.#agent, signal });
      request.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        if (isStale && !signal.aborted) resolve(true);
        else reject(this.#wrap(error, signal));
      });
      request.on('response', (response) => {
        resolve(false);
        // The rest is read, so that the connection can be used again, but only if it is short and comes soon.
        let bytes = 0;
        const slow = setTimeout(() => response.destroy(), MAX_ANSWER_MS);
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > MAX_ANSWER_BYTES) response.destroy();
        });
        response.on('error', () => undefined);
        response.on('close', () => clearTimeout(slow));
      });
      request.end(body);
    });
  }

  #wrap(error: NodeJS.ErrnoException, signal: AbortSignal): Error {
    if (signal.aborted) return signal.reason as Error;
    if (error.code === 'ADDRESS_PRIVATE') return error;
    const { origin, pathname } = this.#settings.url; // not the query, which may contain a password
    const why = error.message === '' ? error.code : error.message; // several addresses that all failed have an error without a message
    return new BrokerError('HTTP_FAILED', `the request to ${origin}${pathname} failed: ${why}`, { cause: error });
  }
}
