import { answerOf, isStream, linesOf } from './answers.ts';
import { ManagementError } from './error.ts';
import { targetOf } from './target.ts';
import type { ArgumentsOf, ClientRevision, DataOf, InputOf, ListOf, Page, PageMeta, PathOf, RowOf } from './types.ts';

/** Options of a `ManagementClient`. */
export interface ManagementClientOptions<R extends ClientRevision = ClientRevision> {
  /** Where the interface is mounted, with its prefix: `http://127.0.0.1:8081/api/v4`. */
  readonly url: string;
  /** Id of an application, or name of a user. */
  readonly id: string;
  /** Its secret or password. */
  readonly secret: string;
  /** The revision that is mounted there. It only selects the types. Default `later`. */
  readonly revision?: R;
  /** Time for a whole request, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
  /** What sends the requests, for example through a proxy, or with a certificate authority of its own. Default: the global `fetch`. */
  readonly fetch?: (request: Request, init: { readonly signal: AbortSignal }) => Promise<Response>;
}

/** A request whose types are not known. */
export interface AnyRequest {
  /** Values of the parameters in braces, which are encoded. Those that are empty, `.` or `..` cannot be sent, and are refused. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}

/** Rows that `list` asks for at once, unless the query has a `_limit`. */
const ROWS_AT_ONCE = 1_000;
const TIMEOUT_MS = 30_000;
/** The longest time that timers have. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * A client of the management interface. It needs `fetch` and nothing else, and so runs in Node, Bun, Deno and browsers.
 *
 * ```ts
 * const client = new ManagementClient({ url: 'http://127.0.0.1:8081/api/v4', id: 'me', secret: 'a secret' });
 * const [found] = await client.get('/clients/{clientid}', { params: { clientid: 'sensor-1' } });
 * await client.post('/mqtt/publish', { body: { topic: 'a', payload: 'hello' } });
 * for await (const { clientid, ip_address } of client.list('/clients')) console.log(clientid, ip_address);
 * ```
 *
 * Paths, parameters, bodies and answers have the types of the revision. All methods reject with a `ManagementError`, or with the reason of
 * the signal that has aborted the request.
 */
export class ManagementClient<R extends ClientRevision = 'later'> {
  readonly #url: string;
  readonly #authorization: string;
  readonly #timeoutMs: number;
  readonly #fetch: NonNullable<ManagementClientOptions['fetch']>;

  /** @throws TypeError if the URL is not one of HTTP, or has credentials */
  constructor({ url, id, secret, timeoutMs = TIMEOUT_MS, fetch }: ManagementClientOptions<R>) {
    this.#url = checkedUrl(url);
    this.#authorization = `Basic ${base64(`${id}:${secret}`)}`;
    this.#timeoutMs = timeoutMs;
    this.#fetch = fetch ?? ((request, init) => globalThis.fetch(request, init));
  }

  /** Get the data of an operation. */
  async get<P extends PathOf<R, 'GET'>>(path: P, ...[input]: ArgumentsOf<R, 'GET', P>): Promise<DataOf<R, 'GET', P>> {
    return (await this.request('GET', path, input)).data as DataOf<R, 'GET', P>;
  }

  async post<P extends PathOf<R, 'POST'>>(
    path: P,
    ...[input]: ArgumentsOf<R, 'POST', P>
  ): Promise<DataOf<R, 'POST', P>> {
    return (await this.request('POST', path, input)).data as DataOf<R, 'POST', P>;
  }

  async put<P extends PathOf<R, 'PUT'>>(path: P, ...[input]: ArgumentsOf<R, 'PUT', P>): Promise<DataOf<R, 'PUT', P>> {
    return (await this.request('PUT', path, input)).data as DataOf<R, 'PUT', P>;
  }

  async delete<P extends PathOf<R, 'DELETE'>>(
    path: P,
    ...[input]: ArgumentsOf<R, 'DELETE', P>
  ): Promise<DataOf<R, 'DELETE', P>> {
    return (await this.request('DELETE', path, input)).data as DataOf<R, 'DELETE', P>;
  }

  /** Get a page of a list, and what the answer says about the whole list. */
  async page<P extends ListOf<R>>(path: P, ...[input]: ArgumentsOf<R, 'GET', P>): Promise<Page<DataOf<R, 'GET', P>>> {
    return (await this.request('GET', path, input)) as Page<DataOf<R, 'GET', P>>;
  }

  /** Iterate over all rows of a list, from page to page. Rows that come or go meanwhile may be repeated or missing, unless the list has cursors. */
  async *list<P extends ListOf<R>>(
    path: P,
    ...[input]: ArgumentsOf<R, 'GET', P>
  ): AsyncGenerator<RowOf<R, P>, void, undefined> {
    const given = input as InputOf<R, 'GET', P> & AnyRequest;
    for (let next: Record<string, string | number> | undefined = {}; next !== undefined; ) {
      const query = { _limit: ROWS_AT_ONCE, ...given?.query, ...next };
      const { data, meta } = await this.request('GET', path, { ...given, query });
      if (!Array.isArray(data)) throw new ManagementError(`GET ${path}: the answer is not a list`);
      const rows = data as RowOf<R, P>[];
      yield* rows;
      next = nextPage(rows.length, meta);
    }
  }

  /**
   * Send a request of which the types are not known. The data of an answer without an envelope (`/openapi.json`, `/x/export`) is the document;
   * streams are read with `lines`.
   * @param path with parameters in braces or encoded: `/clients/{clientid}`, `/clients/a%2Fb`
   */
  async request(method: string, path: string, request: AnyRequest = {}): Promise<Page<unknown>> {
    if (isStream(method, path))
      throw new ManagementError(
        `${method} ${path}: the answer is a stream; read it with lines('${method}', '${path}')`
      );
    const { sent, signal, begun } = this.#prepared(method, path, request);
    const answer = await this.#during(request, signal, async () => {
      const response = await this.#fetch(sent, { signal });
      return { status: response.status, text: await response.text() };
    }).finally(begun);
    return answerOf(answer, { method, path, url: sent.url });
  }

  /**
   * Read an answer that is a stream, line by line: the server-sent events of `GET /x/events`, the lines of `POST /x/backup`. `timeoutMs` is the
   * time until the answer begins. To end a stream, leave the loop or abort the signal. A backup that has ended early is reported.
   */
  async *lines(method: string, path: string, request: AnyRequest = {}): AsyncGenerator<string, void, undefined> {
    if (!isStream(method, path))
      throw new ManagementError(`${method} ${path}: the answer is not a stream; use request('${method}', '${path}')`);
    const { sent, signal, begun } = this.#prepared(method, path, request);
    const response = await this.#during(request, signal, () => this.#fetch(sent, { signal })).finally(begun);
    if (response.status !== 200 || response.body === null || isJson(response)) {
      const text = await this.#during(request, signal, () => response.text());
      answerOf({ status: response.status, text }, { method, path, url: sent.url });
      throw new ManagementError(`${method} ${sent.url}: the answer is not a stream`, { status: response.status });
    }
    try {
      yield* linesOf(response.body);
    } catch (cause) {
      request.signal?.throwIfAborted();
      throw new ManagementError(`${method} ${sent.url}: the answer has ended early: ${reasonOf(cause)}`, { cause });
    }
  }

  /** @throws ManagementError, and nothing has been sent */
  #prepared(
    method: string,
    path: string,
    { params, query, body, signal: given, timeoutMs = this.#timeoutMs }: AnyRequest
  ): { readonly sent: Request; readonly signal: AbortSignal; begun(): void } {
    try {
      const headers = { authorization: this.#authorization };
      const init =
        body === undefined
          ? { method, headers }
          : { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
      const sent = new Request(targetOf(this.#url, path, { params, query }), init);
      if (!(timeoutMs >= 0)) throw new RangeError(`timeoutMs: expected a time in milliseconds, not ${timeoutMs}`);
      const timeout = new AbortController();
      const late = () =>
        timeout.abort(new ManagementError(`${this.#url} did not answer within ${timeoutMs / 1000} seconds`));
      const timer = setTimeout(late, Math.min(timeoutMs, MAX_TIMEOUT_MS));
      const signal = given === undefined ? timeout.signal : AbortSignal.any([given, timeout.signal]);
      return { sent, signal, begun: () => clearTimeout(timer) };
    } catch (cause) {
      if (cause instanceof ManagementError) throw cause;
      throw new ManagementError(`${method} ${path} cannot be sent: ${reasonOf(cause)}`, { cause });
    }
  }

  /** Wait for the server. @throws ManagementError, or the reason of the signal of the request */
  async #during<T>(request: AnyRequest, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      request.signal?.throwIfAborted();
      signal.throwIfAborted(); // the time is over
      throw new ManagementError(`${this.#url} cannot be reached: ${reasonOf(cause)}`, { cause });
    }
  }
}

function isJson({ headers }: Response): boolean {
  return /^application\/json\b/.test(headers.get('content-type') ?? '');
}

function checkedUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
    throw new TypeError('url: expected a URL such as http://127.0.0.1:8081/api/v4');
  if (parsed.username !== '' || parsed.password !== '')
    throw new TypeError('url: give the id and the secret as options');
  return parsed.origin + parsed.pathname.replace(/\/+$/, '');
}

function base64(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''));
}

/** The first cause that says something: `fetch failed` does not. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as {
    readonly message?: string;
    readonly cause?: { readonly message?: string; readonly code?: string };
  };
  return cause?.message || cause?.code || message || `${error}`;
}

/** The parameters of the next page. @returns undefined: there is none */
function nextPage(rows: number, meta: PageMeta | undefined): Record<string, string | number> | undefined {
  if (meta === undefined || rows === 0) return undefined;
  const { page, limit, count, hasnext, cursor } = meta;
  if (cursor !== undefined) return { cursor };
  const isLast = hasnext === undefined ? rows < limit || page * limit === count : !hasnext;
  return isLast ? undefined : { _page: page + 1 };
}
