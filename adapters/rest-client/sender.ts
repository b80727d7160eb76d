import type { RestClientError } from './error.ts';
import { TargetError, targetOf } from './target.ts';

/** A request whose types are not known. */
export interface AnyRequest {
  /**
   * Values of the parameters in braces, which are encoded. Empty values, `.` and `..` cannot be sent and are refused.
   */
  readonly params?: Readonly<Record<string, string>>;
  /** The parameters of the query; undefined ones are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** The body, sent as JSON. Default: none. */
  readonly body?: unknown;
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined;
  /** Time for the whole request, in milliseconds. Default: that of the client. */
  readonly timeoutMs?: number | undefined;
}

/** A function that sends requests. */
export type SendFetch = (
  request: Request,
  init: {
    /** Aborts the request. */
    readonly signal: AbortSignal;
  }
) => Promise<Response>;

/** Options of a `RequestSender`. */
export interface SenderOptions {
  /** The URL of the mounted interface. */
  readonly url: string;
  /** Headers of all requests. */
  readonly headers: Readonly<Record<string, string>>;
  /** Time for a whole request, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** Default: the global `fetch`. */
  readonly fetch?: SendFetch | undefined;
  /** The class of the errors of the client. */
  readonly error: typeof RestClientError;
}

const TIMEOUT_MS = 30_000;
/** The longest delay of a timer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Sends the requests of a client. Needs nothing but `fetch`. */
export class RequestSender {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;
  readonly #fetch: SendFetch;
  readonly #error: typeof RestClientError;

  /** @throws TypeError if the URL is not an HTTP URL, or has credentials */
  constructor({ url, headers, timeoutMs = TIMEOUT_MS, fetch, error }: SenderOptions) {
    this.#url = checkedUrl(url);
    this.#headers = headers;
    this.#timeoutMs = timeoutMs;
    this.#fetch = fetch ?? ((request, init) => globalThis.fetch(request, init));
    this.#error = error;
  }

  /** Send a request and read the whole answer. @throws an error of the client, or the reason of the signal of the request */
  async text(
    method: string,
    path: string,
    request: AnyRequest
  ): Promise<{ readonly url: string; readonly response: Response; readonly text: string }> {
    const { sent, signal, begun } = this.#prepared(method, path, request);
    return this.during(request, signal, async () => {
      const response = await this.#fetch(sent, { signal });
      return { url: sent.url, response, text: await response.text() };
    }).finally(begun);
  }

  /**
   * Send a request whose answer is a stream. `timeoutMs` is the time until the answer begins.
   * @throws like `text`
   */
  async stream(
    method: string,
    path: string,
    request: AnyRequest
  ): Promise<{ readonly url: string; readonly response: Response; readonly signal: AbortSignal }> {
    const { sent, signal, begun } = this.#prepared(method, path, request);
    const response = await this.during(request, signal, () => this.#fetch(sent, { signal })).finally(begun);
    return { url: sent.url, response, signal };
  }

  /**
   * Run a function with the time limit of a request.
   * @throws an error of the client, or the reason of the signal of the request
   */
  async during<T>(request: AnyRequest, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      request.signal?.throwIfAborted();
      signal.throwIfAborted(); // the time limit has passed
      throw new this.#error(`${this.#url} cannot be reached: ${reasonOf(cause)}`, { cause });
    }
  }

  /** @throws an error of the client before anything is sent */
  #prepared(
    method: string,
    path: string,
    { params, query, body, signal: given, timeoutMs = this.#timeoutMs }: AnyRequest
  ): { readonly sent: Request; readonly signal: AbortSignal; begun(): void } {
    try {
      const headers = this.#headers;
      const init =
        body === undefined
          ? { method, headers }
          : { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
      const sent = new Request(targetOf(this.#url, path, { params, query }), init);
      if (!(timeoutMs >= 0)) throw new RangeError(`timeoutMs: expected a time in milliseconds, not ${timeoutMs}`);
      const timeout = new AbortController();
      const late = () =>
        timeout.abort(new this.#error(`${this.#url} did not answer within ${timeoutMs / 1000} seconds`));
      const timer = setTimeout(late, Math.min(timeoutMs, MAX_TIMEOUT_MS));
      const signal = given === undefined ? timeout.signal : AbortSignal.any([given, timeout.signal]);
      return { sent, signal, begun: () => clearTimeout(timer) };
    } catch (cause) {
      if (cause instanceof TargetError) throw new this.#error(cause.message);
      throw new this.#error(`${method} ${path} cannot be sent: ${reasonOf(cause)}`, { cause });
    }
  }
}

function checkedUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
    throw new TypeError('url: expected a URL such as http://127.0.0.1:8081/api/v4');
  if (parsed.username !== '' || parsed.password !== '')
    throw new TypeError('url: give the id and the secret as options');
  return parsed.origin + parsed.pathname.replace(/\/+$/, '');
}

/** The `Authorization` header for an id and a secret. */
export function basicAuthorization(id: string, secret: string): string {
  return `Basic ${base64(`${id}:${secret}`)}`;
}

function base64(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''));
}

/** The message of the first specific cause: `fetch failed` is not specific. */
export function reasonOf(error: unknown): string {
  const { message, cause } = error as {
    readonly message?: string;
    readonly cause?: { readonly message?: string; readonly code?: string };
  };
  return cause?.message || cause?.code || message || `${error}`;
}
