// Requests to the interfaces below the mount, with the cookie of the session. Errors say what to do, in `what` of a `RequestError`.
import type { ArgumentsOf, DataOf, ListOf, Page, PageMeta, PathOf } from '../../../management/client/index.ts';
import { filledPath } from '../../../rest-client/index.ts';
import { isSendable } from '../model/places.ts';
import { T } from '../texts.ts';
import { urlOf } from './mount.ts';

/** The revision of the management interface that the console uses. */
type Revision = 'hosted';

/** A request that was refused, or that was not answered. */
export class RequestError extends Error {
  /** HTTP status; 0: the server did not answer. */
  readonly status: number;
  /** The code in the answer of the management interface. */
  readonly code: number | undefined;
  /** Advice for the reader; undefined: the message says all. */
  readonly advice: string | undefined;
  /** The body of the answer, if it is JSON. */
  readonly body: unknown;

  constructor(message: string, status: number, code?: number, body?: unknown) {
    super(message);
    this.status = status;
    this.code = code;
    this.body = body;
    this.advice = adviceFor(status);
  }
}

function adviceFor(status: number): string | undefined {
  if (status === 0) return T.errors.unreachable;
  if (status === 401) return T.errors.loggedOut;
  if (status === 403) return T.errors.forbidden;
  if (status === 404) return T.errors.notFound;
  if (status === 429) return T.errors.tooMany;
  if (status === 503) return T.errors.unavailable;
  if (status >= 500) return T.errors.server;
  return undefined;
}

/** Settings of a request. */
interface Sent {
  readonly method?: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** The page sends the request on its own, so it does not prolong the session. */
  readonly isBackground?: boolean;
}

/** Functions that are called when an answer says that there is no session. */
let whenLoggedOut: () => void = () => undefined;

/** Set what happens when an answer says that there is no session. */
export function onLoggedOut(run: () => void): void {
  whenLoggedOut = run;
}

/** Send a request and return the answer, whose status is 2xx. @throws RequestError, or the reason of the signal */
export async function send(
  path: string,
  { method = 'GET', body, signal, isBackground = false }: Sent = {}
): Promise<Response> {
  const headers: Record<string, string> = { 'embermq-console': isBackground ? 'background' : 'person' };
  let response: Response;
  const sent = isSendable(path)
    ? { path, method, body }
    : { path: 'requests', method: 'POST', body: { method, path: `/${path}`, body } };
  if (sent.body !== undefined) headers['content-type'] = 'application/json';
  try {
    response = await fetch(urlOf(sent.path), {
      method: sent.method,
      headers,
      body: sent.body === undefined ? null : JSON.stringify(sent.body),
      signal: signal ?? null,
      credentials: 'same-origin',
      cache: 'no-store'
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw new RequestError(error instanceof Error ? error.message : `${error}`, 0);
  }
  if (response.ok) return response;
  throw await refusalOf(response, path);
}

async function refusalOf(response: Response, path: string): Promise<RequestError> {
  const text = await response.text().catch(() => '');
  let body: { readonly code?: number; readonly message?: unknown; readonly error?: unknown } | undefined;
  try {
    body = JSON.parse(text);
  } catch {
    // the answer comes from a proxy between the page and the broker
  }
  if (response.status === 401 && !/^(session|login)$/.test(path)) whenLoggedOut();
  const said = body?.message ?? body?.error;
  const message = typeof said === 'string' && said !== '' ? said : text.slice(0, 300) || response.statusText;
  return new RequestError(message || T.errors.status(response.status), response.status, body?.code, body);
}

/** Options of a request to the management interface, beside its input. */
interface Background {
  readonly isBackground?: boolean;
}

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** Send a request whose types are not known to the management interface. */
export async function request(method: string, path: string, input: AnyInput & Background = {}): Promise<Page<unknown>> {
  const { params, query, body, signal, isBackground } = input;
  const given = Object.fromEntries(
    Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '')
  );
  const target = filledPath(path, { ...(params && { params }), query: given });
  const response = await send(`api${target}`, { method, body, signal, ...(isBackground && { isBackground }) });
  const answer = (await response.json()) as { code?: number; message?: string; data?: unknown; meta?: PageMeta };
  if (answer.code !== undefined && answer.code !== 0)
    throw new RequestError(answer.message ?? T.errors.code(answer.code), response.status, answer.code, answer);
  return { data: answer.code === undefined ? answer : answer.data, meta: answer.meta };
}

type Input<M extends 'GET' | 'POST' | 'PUT' | 'DELETE', P extends string> = ArgumentsOf<Revision, M, P>[0] & Background;

/** Get the data of an operation of the management interface. */
export async function get<P extends PathOf<Revision, 'GET'>>(
  path: P,
  input?: Input<'GET', P>
): Promise<DataOf<Revision, 'GET', P>> {
  return (await request('GET', path, input)).data as DataOf<Revision, 'GET', P>;
}

/** Get a page of a list. */
export async function getPage<P extends ListOf<Revision>>(
  path: P,
  input?: Input<'GET', P>
): Promise<Page<DataOf<Revision, 'GET', P>>> {
  return (await request('GET', path, input)) as Page<DataOf<Revision, 'GET', P>>;
}

export async function post<P extends PathOf<Revision, 'POST'>>(
  path: P,
  input: Input<'POST', P>
): Promise<DataOf<Revision, 'POST', P>> {
  return (await request('POST', path, input)).data as DataOf<Revision, 'POST', P>;
}

export async function put<P extends PathOf<Revision, 'PUT'>>(
  path: P,
  input: Input<'PUT', P>
): Promise<DataOf<Revision, 'PUT', P>> {
  return (await request('PUT', path, input)).data as DataOf<Revision, 'PUT', P>;
}

/** Delete something. */
export async function remove<P extends PathOf<Revision, 'DELETE'>>(path: P, input: Input<'DELETE', P>): Promise<void> {
  await request('DELETE', path, input as AnyInput);
}
