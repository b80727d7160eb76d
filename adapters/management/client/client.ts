import {
  type AnyRequest,
  basicAuthorization,
  filledPath,
  isRelative,
  RequestSender,
  reasonOf
} from '../../rest-client/index.ts';
import { answerOf, isStream, linesOf } from './answers.ts';
import { ManagementError } from './error.ts';
import type { ArgumentsOf, ClientRevision, DataOf, InputOf, ListOf, Page, PageMeta, PathOf, RowOf } from './types.ts';

/** Options of a `ManagementClient`. */
export interface ManagementClientOptions<R extends ClientRevision = ClientRevision> {
  /** The URL of the mounted interface, with its prefix: `http://127.0.0.1:8081/api/v4`. */
  readonly url: string;
  /** Id of an application, or name of a user. */
  readonly id: string;
  /** The secret of the application or the password of the user. */
  readonly secret: string;
  /** The revision that is mounted there. It only selects the types. Default `later`. */
  readonly revision?: R;
  /** Time for a whole request, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
  /**
   * A function that sends the requests, for example through a proxy or with a custom certificate authority. Default:
   * the global `fetch`.
   */
  readonly fetch?: (
    request: Request,
    init: {
      /** Aborts the request. */
      readonly signal: AbortSignal;
    }
  ) => Promise<Response>;
}

/** Rows that `list` requests at once, unless the query has a `_limit`. */
const ROWS_AT_ONCE = 1_000;

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
  readonly #sender: RequestSender;

  /** @throws TypeError if the URL is not an HTTP URL or has credentials */
  constructor({ url, id, secret, timeoutMs, fetch }: ManagementClientOptions<R>) {
    const headers = { authorization: basicAuthorization(id, secret) };
    this.#sender = new RequestSender({ url, headers, timeoutMs, fetch, error: ManagementError });
  }

  /** Get the data of an operation. */
  async get<P extends PathOf<R, 'GET'>>(path: P, ...[input]: ArgumentsOf<R, 'GET', P>): Promise<DataOf<R, 'GET', P>> {
    return (await this.request('GET', path, input)).data as DataOf<R, 'GET', P>;
  }

  /** Send a POST. @returns the data of the answer */
  async post<P extends PathOf<R, 'POST'>>(
    path: P,
    ...[input]: ArgumentsOf<R, 'POST', P>
  ): Promise<DataOf<R, 'POST', P>> {
    return (await this.request('POST', path, input)).data as DataOf<R, 'POST', P>;
  }

  /** Send a PUT. @returns the data of the answer */
  async put<P extends PathOf<R, 'PUT'>>(path: P, ...[input]: ArgumentsOf<R, 'PUT', P>): Promise<DataOf<R, 'PUT', P>> {
    return (await this.request('PUT', path, input)).data as DataOf<R, 'PUT', P>;
  }

  /** Send a DELETE. @returns the data of the answer */
  async delete<P extends PathOf<R, 'DELETE'>>(
    path: P,
    ...[input]: ArgumentsOf<R, 'DELETE', P>
  ): Promise<DataOf<R, 'DELETE', P>> {
    return (await this.request('DELETE', path, input)).data as DataOf<R, 'DELETE', P>;
  }

  /** Get a page of a list, with the paging information of the answer. */
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
   * Send a request whose types are not known. A deletion whose path is too long for a URL is sent as `POST /x/delete`.
   * The data of an answer without an envelope (`/openapi.json`, `/x/export`) is the document; streams are read with
   * `lines`.
   * @param path with parameters in braces or encoded: `/clients/{clientid}`, `/clients/a%2Fb`
   */
  async request(method: string, path: string, request: AnyRequest = {}): Promise<Page<unknown>> {
    if (isStream(method, path))
      throw new ManagementError(
        `${method} ${path}: the answer is a stream; read it with lines('${method}', '${path}')`
      );
    const sent = method === 'DELETE' ? deletion(path, request) : undefined;
    const [by, to, what] = sent === undefined ? [method, path, request] : (['POST', '/x/delete', sent] as const);
    const { url, response, text } = await this.#sender.text(by, to, what);
    return answerOf({ status: response.status, text }, { method, path, url });
  }

  /**
   * Read an answer that is a stream, line by line: the server-sent events of `GET /x/events` and `GET /x/tail`, the lines of `POST /x/backup`. `timeoutMs` is the
   * time until the answer begins. To end a stream, leave the loop or abort the signal. A backup that has ended early is reported.
   */
  async *lines(method: string, path: string, request: AnyRequest = {}): AsyncGenerator<string, void, undefined> {
    if (!isStream(method, path))
      throw new ManagementError(`${method} ${path}: the answer is not a stream; use request('${method}', '${path}')`);
    const { url, response, signal } = await this.#sender.stream(method, path, request);
    if (response.status !== 200 || response.body === null || isJson(response)) {
      const text = await this.#sender.during(request, signal, () => response.text());
      answerOf({ status: response.status, text }, { method, path, url });
      throw new ManagementError(`${method} ${url}: the answer is not a stream`, { status: response.status });
    }
    try {
      yield* linesOf(response.body);
    } catch (cause) {
      request.signal?.throwIfAborted();
      throw new ManagementError(`${method} ${url}: the answer has ended early: ${reasonOf(cause)}`, { cause });
    }
  }
}

/** Servers limit the length of URLs; longer paths are not sent in one. */
const MAX_PATH = 8_000;

/** The request for a deletion whose path is too long to be sent; undefined: it is short enough. */
function deletion(path: string, request: AnyRequest): AnyRequest | undefined {
  const { params = {}, query, body, ...more } = request;
  const isLong = path.length + Object.values(params).reduce((sum, value) => sum + value.length * 3, 0) > MAX_PATH;
  const isSent = !isLong && !Object.values(params).some(isRelative);
  if (isSent || body !== undefined || Object.values(params).includes('')) return undefined;
  return { ...more, body: { path: filledPath(path, { params, query }) } };
}

function isJson({ headers }: Response): boolean {
  return /^application\/json\b/.test(headers.get('content-type') ?? '');
}

/**
 * The parameters of the next page.
 * @returns undefined: there is no next page
 */
function nextPage(rows: number, meta: PageMeta | undefined): Record<string, string | number> | undefined {
  if (meta === undefined || rows === 0) return undefined;
  const { page, limit, count, hasnext, cursor } = meta;
  if (cursor !== undefined) return { cursor };
  const isLast = hasnext === undefined ? rows < limit || page * limit === count : !hasnext;
  return isLast ? undefined : { _page: page + 1 };
}
