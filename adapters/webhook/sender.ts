import { createHash, createHmac } from 'node:crypto';
import type { Attempt, OutboxEntry, SendError } from '../../lib/index.ts';
import { HttpClient, isPlainText, type OutgoingTls, refusalOf } from '../outgoing/index.ts';

/** Settings of a `WebhookSender`. */
interface SenderSettings {
  readonly url: URL;
  readonly tls: OutgoingTls;
  readonly isPublicOnly: boolean;
  readonly maxSockets: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The key of the signature; undefined: requests are not signed. */
  readonly secret: Buffer | undefined;
  /** True if bodies are lists of events. */
  readonly isBatched: boolean;
  /** Wall-clock milliseconds. */
  now(): number;
  /**
   * Called when a request was answered.
   * @param refusal undefined: the status was a success
   */
  answered(refusal: SendError | undefined): void;
}

/**
 * Sends events with POST. An event is delivered when its answer begins, with any status, as in the
 * documented interface; a failure status is only reported.
 */
export class WebhookSender {
  readonly #settings: SenderSettings;
  readonly #client: HttpClient;
  /** The headers shared by all requests: alternating names and values, which costs Node less than an object. */
  readonly #headers: readonly string[];
  readonly #isPlainText: boolean;

  constructor(settings: SenderSettings) {
    this.#settings = settings;
    const { url, headers, tls, isPublicOnly, maxSockets } = settings;
    this.#client = new HttpClient(url, { tls, isPublicOnly, maxSockets });
    this.#headers = ['Host', url.host, 'content-type', 'application/json', ...Object.entries(headers).flat()];
    this.#isPlainText = isPlainText(this.#headers);
  }

  /** Send entries, whose content is JSON. @throws BrokerError HTTP_FAILED, ADDRESS_PRIVATE if the server could not be reached */
  async send(entries: readonly OutboxEntry[], attempt: Attempt): Promise<void> {
    const { isBatched } = this.#settings;
    const text = isBatched ? `[${entries.map(({ content }) => content).join()}]` : String(entries[0].content);
    const body = this.#isPlainText ? text : Buffer.from(text);
    const headers = this.#headersOf(idOf(entries), body);
    const answer = await this.#client.send({ method: 'POST', headers, body }, attempt);
    const { url, now, answered } = this.#settings;
    const describe = () =>
      `${url.origin}${url.pathname} has answered with the status ${answer.status}; the event is not sent again`;
    answered(refusalOf(answer, describe, now()));
  }

  /** Close the connections. Requests in progress fail. */
  close(): void {
    this.#client.close();
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
}

/** The id of a request: that of its entry, or one that is unique for its entries. */
function idOf(entries: readonly OutboxEntry[]): string {
  if (entries.length === 1) return entries[0].id;
  return createHash('sha256')
    .update(entries.map(({ id }) => id).join())
    .digest('base64url');
}
