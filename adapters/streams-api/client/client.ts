import { type AnyRequest, basicAuthorization, RequestSender, type SendFetch } from '../../rest-client/index.ts';
import { StreamsError } from './error.ts';
import type { StreamsArguments, StreamsData, StreamsPath } from './types.ts';

/** Options of a `StreamsClient`. */
export interface StreamsClientOptions {
  /** The URL of the mounted interface: `http://127.0.0.1:9081`. */
  readonly url: string;
  /** Id of an application, or name of a user. Default: requests have no credentials. */
  readonly id?: string | undefined;
  /** The secret of the application or the password of the user. */
  readonly secret?: string | undefined;
  /** A bearer token, instead of id and secret. */
  readonly token?: string | undefined;
  /** Time for a whole request, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** The function that sends the requests. Default: the global `fetch`. */
  readonly fetch?: SendFetch | undefined;
}

/**
 * A client of the interface of streams. It needs `fetch` and nothing else, and so runs in Node, Bun, Deno and browsers.
 *
 * ```ts
 * const client = new StreamsClient({ url: 'http://127.0.0.1:9081' });
 * await client.post('/streams', { body: { sql: 'CREATE STREAM demo () WITH (DATASOURCE="t/#", FORMAT="json")' } });
 * await client.post('/rules', { body: { id: 'r1', sql: 'SELECT * FROM demo', actions: [{ log: {} }] } });
 * for (const { id, status } of await client.get('/rules')) console.log(id, status);
 * ```
 *
 * Paths, parameters, bodies and answers have types. All methods reject with a `StreamsError`, or with the reason of the signal that has
 * aborted the request.
 */
export class StreamsClient {
  readonly #sender: RequestSender;

  /** @throws TypeError if the URL is not an HTTP URL, or has credentials */
  constructor({ url, id, secret = '', token, timeoutMs, fetch }: StreamsClientOptions) {
    const credentials = id === undefined ? undefined : basicAuthorization(id, secret);
    const authorization = token === undefined ? credentials : `Bearer ${token}`;
    const headers = { accept: 'application/json', ...(authorization === undefined ? {} : { authorization }) };
    this.#sender = new RequestSender({ url, headers, timeoutMs, fetch, error: StreamsError });
  }

  /** Send a GET. @returns the answer */
  async get<P extends StreamsPath<'GET'>>(
    path: P,
    ...[input]: StreamsArguments<'GET', P>
  ): Promise<StreamsData<'GET', P>> {
    return (await this.request('GET', path, input)) as StreamsData<'GET', P>;
  }

  /** Send a POST. @returns the answer */
  async post<P extends StreamsPath<'POST'>>(
    path: P,
    ...[input]: StreamsArguments<'POST', P>
  ): Promise<StreamsData<'POST', P>> {
    return (await this.request('POST', path, input)) as StreamsData<'POST', P>;
  }

  /** Send a PUT. @returns the answer */
  async put<P extends StreamsPath<'PUT'>>(
    path: P,
    ...[input]: StreamsArguments<'PUT', P>
  ): Promise<StreamsData<'PUT', P>> {
    return (await this.request('PUT', path, input)) as StreamsData<'PUT', P>;
  }

  /** Send a PATCH. @returns the answer */
  async patch<P extends StreamsPath<'PATCH'>>(
    path: P,
    ...[input]: StreamsArguments<'PATCH', P>
  ): Promise<StreamsData<'PATCH', P>> {
    return (await this.request('PATCH', path, input)) as StreamsData<'PATCH', P>;
  }

  /** Send a DELETE. @returns the answer */
  async delete<P extends StreamsPath<'DELETE'>>(
    path: P,
    ...[input]: StreamsArguments<'DELETE', P>
  ): Promise<StreamsData<'DELETE', P>> {
    return (await this.request('DELETE', path, input)) as StreamsData<'DELETE', P>;
  }

  /**
   * Send a request whose types are not known.
   * @param path with parameters in braces or encoded: `/rules/{id}`, `/rules/a%20b`
   * @returns the value of the JSON, or the text
   */
  async request(method: string, path: string, request: AnyRequest = {}): Promise<unknown> {
    const { url, response, text } = await this.#sender.text(method, path, request);
    const { status } = response;
    const isJson = /^application\/json\b/.test(response.headers.get('content-type') ?? '');
    const value = isJson ? parsed(text) : text;
    if (status >= 200 && status < 300 && value !== undefined) return value;
    const { error, message } = (typeof value === 'object' && value !== null ? value : {}) as {
      readonly error?: unknown;
      readonly message?: unknown;
    };
    throw new StreamsError(typeof message === 'string' ? message : `${method} ${url}: status ${status}`, {
      status,
      code: typeof error === 'number' ? error : undefined
    });
  }
}

/** @returns undefined if it is not JSON */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
