import { field, type Resource, type ResourceEntry, type ResourceType, readOptions } from '../../lib/adapter.ts';
import type { Attempt, Clock } from '../../lib/index.ts';
import { type HttpAnswer, HttpClient, isPlainText, refusalOf, withDeadline } from '../outgoing/index.ts';
import { DATA_TO_WEBSERVER, partsOf } from './web-hook-action.ts';
import { WEB_HOOK_PARAMS } from './web-hook-params.ts';
import { readWebHookSettings, type WebHookSettings } from './web-hook-settings.ts';

/** Options of `webHook`. */
export interface WebHookTypeOptions {
  /**
   * Connect no resource to addresses of this machine and of private networks, even if its parameter `public_only` is
   * false. Default false.
   */
  publicOnly?: boolean;
}

const TYPE_OPTIONS = {
  publicOnly: field('boolean', false, 'Connect no resource to addresses of this machine and of private networks.')
};

/** Time limit for the connection of `check`. */
const CHECK_MS = 3_000;

/** A web server to which rules send requests. */
class WebHookResource implements Resource {
  readonly outbox: NonNullable<Resource['outbox']>;
  readonly #settings: WebHookSettings;
  readonly #clock: Clock;
  readonly #client: HttpClient;

  constructor(settings: WebHookSettings, isPublicOnly: boolean, clock: Clock) {
    const { url, tls, poolSize, connectMs, requestMs, isPersisted } = settings;
    this.#settings = settings;
    this.#clock = clock;
    this.#client = new HttpClient(url, {
      tls,
      isPublicOnly: isPublicOnly || settings.isPublicOnly,
      maxSockets: poolSize,
      connecting: { ms: connectMs, clock }
    });
    this.outbox = { isPersisted, concurrency: poolSize, timeout: requestMs };
  }

  /** Establish a separate connection, which is closed at once. */
  check(signal: AbortSignal): Promise<void> {
    const late = () => new Error(`no connection to ${this.#settings.url.origin} within ${CHECK_MS} ms`);
    const limit = { clock: this.#clock, ms: CHECK_MS, late, outers: [signal] };
    return withDeadline(limit, (ending) => this.#client.connect(ending));
  }

  async send(entries: readonly ResourceEntry[], attempt: Attempt): Promise<void> {
    for (const entry of entries) await this.#sendOne(entry, attempt);
  }

  close(): void {
    this.#client.close();
  }

  async #sendOne({ id, content }: ResourceEntry, attempt: Attempt): Promise<void> {
    const { parts, body } = partsOf(content);
    const { url } = this.#settings;
    const { method = this.#settings.method } = parts;
    const hasBody = method !== 'GET' && method !== 'DELETE';
    const headers = ['Host', url.host, 'webhook-id', id];
    for (const [name, value] of Object.entries({ ...this.#settings.headers, ...parts.headers }))
      if (hasBody || name !== 'content-type') headers.push(name, value);
    const call = { method, headers, path: parts.path === undefined ? undefined : pathOf(url, parts.path) };
    const { template = parts.path } = parts;
    const place = template === undefined ? url.pathname : pathOf(url, template);
    if (!hasBody) {
      this.#checkAnswer(await this.#client.send(call, attempt), place);
      return;
    }
    headers.push('content-length', `${Buffer.byteLength(body)}`);
    const bytes = typeof body === 'string' && !isPlainText(headers) ? Buffer.from(body) : body;
    this.#checkAnswer(await this.#client.send({ ...call, body: bytes }, attempt), place);
  }

  /**
   * @param path the one of the request, with the names of its values
   * @throws SendError if the server has refused the request
   */
  #checkAnswer(answer: HttpAnswer, path: string): void {
    if (!this.#settings.failsOnStatus) return;
    const { origin } = this.#settings.url;
    const describe = () => `${origin}${path.split('?', 1)[0]} has answered with the status ${answer.status}`;
    const refusal = refusalOf(answer, describe, this.#clock.now());
    if (refusal !== undefined) throw refusal;
  }
}

/** The path and the query of a URL, with an appended part. */
function pathOf({ pathname, search }: URL, more: string): string {
  const at = more.indexOf('?');
  const path = at === -1 ? more : more.slice(0, at);
  const query = at === -1 ? '' : more.slice(at + 1);
  const whole = path === '' ? pathname : `${pathname.replace(/\/$/, '')}/${path.replace(/^\//, '')}`;
  return query === '' ? whole + search : `${whole}${search === '' ? '?' : `${search}&`}${query}`;
}

/**
 * The resource type `web_hook` of rules, with its action `data_to_webserver`:
 * `createBroker({ rules: { resources: [webHook()] } })`.
 *
 * Each output of a rule becomes a request; those of one rule are sent sequentially, in order. A request has succeeded
 * if the answer has a status from 200 to 299 (see `refusalOf`); with `fail_on_status` false, each answer is success.
 * Requests that do not reach the server, and those that it refuses temporarily, are sent again with the same header
 * `webhook-id`. A server that is slow or down never delays the broker.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function webHook(options: WebHookTypeOptions = {}): ResourceType {
  const { publicOnly } = readOptions(TYPE_OPTIONS, options, 'webHook');
  return {
    name: 'web_hook',
    provider: 'emqx_web_hook',
    title: { en: 'WebHook', zh: 'WebHook' },
    description: { en: 'Requests to a web server', zh: '向 Web 服务器发送请求' },
    params: WEB_HOOK_PARAMS,
    actions: [DATA_TO_WEBSERVER],
    make: (config, context) => new WebHookResource(readWebHookSettings(config), publicOnly === true, context.clock)
  };
}
