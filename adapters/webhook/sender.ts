import { createHash, createHmac, randomUUID } from 'node:crypto';
import {
  type Attempt,
  BrokerError,
  type Clock,
  type ConnectorTest,
  type OutboxEntry,
  type SendError
} from '../../lib/index.ts';
import {
  type HttpAnswer,
  HttpClient,
  isPlainText,
  type OutgoingTls,
  refusalOf,
  withDeadline
} from '../outgoing/index.ts';

/** Maximum time for which a test waits, in milliseconds. */
const MAX_TEST_MS = 30_000;

/** The part of an entry that is sent. */
type Sent = Pick<OutboxEntry, 'id' | 'content'>;

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
  readonly clock: Clock;
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
  /** Aborted when a test has to end: the sender is closed, or the broker stops. */
  #testing = new AbortController();

  constructor(settings: SenderSettings) {
    this.#settings = settings;
    const { url, headers, tls, isPublicOnly, maxSockets } = settings;
    this.#client = new HttpClient(url, { tls, isPublicOnly, maxSockets });
    this.#headers = ['Host', url.host, 'content-type', 'application/json', ...Object.entries(headers).flat()];
    this.#isPlainText = isPlainText(this.#headers);
  }

  /**
   * Send entries, whose content is JSON.
   * @param headers additional names and values, alternating
   * @throws BrokerError HTTP_FAILED, ADDRESS_PRIVATE if the server could not be reached
   */
  async send(entries: readonly OutboxEntry[], attempt: Attempt, headers: readonly string[] = []): Promise<void> {
    const request = this.#requestOf(entries);
    request.headers.push(...headers);
    const answer = await this.#client.send(request, attempt);
    const { clock, answered } = this.#settings;
    const describe = () => `${this.#describe(answer)}; the event is not sent again`;
    answered(refusalOf(answer, describe, clock.now()));
  }

  /**
   * Send content once, over a separate connection, so that it does not wait for other requests.
   * @param timeoutMs time limit; at most 30 seconds
   */
  async test(content: string, timeoutMs: number): Promise<ConnectorTest> {
    const { url, tls, isPublicOnly, clock } = this.#settings;
    const client = new HttpClient(url, { tls, isPublicOnly, maxSockets: 1 });
    const ms = Math.min(timeoutMs, MAX_TEST_MS);
    const late = () => new BrokerError('HTTP_TIMEOUT', `${this.#name} has not answered within ${ms} ms`);
    const begin = clock.monotonic();
    const durationMs = () => clock.monotonic() - begin;
    try {
      const request = this.#requestOf([{ id: randomUUID(), content }]);
      const limit = { clock, ms, late, outers: [this.#testing.signal] };
      const answer = await withDeadline(limit, (signal) => client.send(request, signal));
      const refusal = refusalOf(answer, () => this.#describe(answer), clock.now());
      const error = refusal && new BrokerError('HTTP_STATUS', refusal.message);
      return { status: answer.status, durationMs: durationMs(), error };
    } catch (error) {
      return { status: undefined, durationMs: durationMs(), error: error as Error };
    } finally {
      client.close();
    }
  }

  /** Close the connections. Requests in progress fail. */
  close(): void {
    this.#client.close();
    this.#endTest('the webhook is closed');
  }

  /** End a test in progress, because the broker stops. */
  endTest(): void {
    const { aborted: isClosed } = this.#testing.signal;
    this.#endTest('the broker stops');
    if (!isClosed) this.#testing = new AbortController();
  }

  #endTest(why: string): void {
    this.#testing.abort(new BrokerError('HTTP_FAILED', `the request to ${this.#name} failed: ${why}`));
  }

  get #name(): string {
    const { origin, pathname } = this.#settings.url;
    return `${origin}${pathname}`;
  }

  #describe({ status }: HttpAnswer): string {
    return `${this.#name} has answered with the status ${status}`;
  }

  #requestOf(entries: readonly Sent[]): { method: string; headers: string[]; body: string | Buffer } {
    const { isBatched } = this.#settings;
    const text = isBatched ? `[${entries.map(({ content }) => content).join()}]` : String(entries[0].content);
    const body = this.#isPlainText ? text : Buffer.from(text);
    return { method: 'POST', headers: this.#headersOf(idOf(entries), body), body };
  }

  /** The headers of a request, with those of the specification Standard Webhooks. */
  #headersOf(id: string, body: string | Buffer): string[] {
    const { secret, clock } = this.#settings;
    const headers = [...this.#headers, 'content-length', `${Buffer.byteLength(body)}`, 'webhook-id', id];
    if (secret === undefined) return headers;
    const timestamp = Math.floor(clock.now() / 1000);
    const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64');
    headers.push('webhook-timestamp', `${timestamp}`, 'webhook-signature', `v1,${signature}`);
    return headers;
  }
}

/** The id of a request: that of its entry, or one that is unique for its entries. */
function idOf(entries: readonly Sent[]): string {
  if (entries.length === 1) return entries[0].id;
  return createHash('sha256')
    .update(entries.map(({ id }) => id).join())
    .digest('base64url');
}
