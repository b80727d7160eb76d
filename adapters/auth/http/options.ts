import { InvalidInput, type OptionValues, readOptions, optionRow as row } from '../../../lib/index.ts';
import { OUTGOING_TLS_OPTIONS, type OutgoingTls } from '../outgoing/tls.ts';
import { type HttpRequest, RequestTemplate } from './request-template.ts';
import { COMMON_PLACEHOLDERS } from './template.ts';

/** When to stop asking a server that fails. */
export interface BreakerOptions {
  /** Failures in a row after which it is not asked for some time. Default 5. */
  failures?: number;
  /** That time, after which one request is let through, in milliseconds or such as `30s`. Default 30 seconds. */
  pauseMs?: number | string;
}

/** Options of `http`. At least one of `authenticate` and `acl` is needed. */
export interface HttpOptions extends OutgoingTls {
  /**
   * The request for each CONNECT. Status 200 or 204 lets the client in; with the body `ignore` the next source decides. A status from 400 to
   * 499 refuses the client.
   */
  authenticate?: HttpRequest;
  /** The request for each client that `authenticate` has let in. Status 200 or 204 exempts it from access control. Default: none. */
  superuser?: HttpRequest;
  /** The request for each topic and filter about which no rule of the broker decides. The answers are as for `authenticate`. */
  acl?: HttpRequest;
  /**
   * The answer if the server fails: it cannot be reached, takes too long, or answers with any other status. `ignore` leaves the decision to
   * the next source. Default `deny`.
   */
  onError?: 'deny' | 'ignore';
  /** Time for a request, with its time in the queue. Default 5 seconds. */
  timeoutMs?: number | string;
  /** Answers of `authenticate` are kept for this time, and a password that was changed counts until then. Default 0: not at all. */
  cacheMs?: number | string;
  /** Answers that are kept. Default 10,000. */
  cacheSize?: number;
  /** Requests at the same time. Default 32. */
  maxConcurrent?: number;
  /** Requests that wait; beyond them, the server counts as failed. Default 1,000. */
  maxQueued?: number;
  breaker?: BreakerOptions;
  /** Name of the source, if there are several. Default `http`. */
  name?: string;
}

const SUPERUSER_PARAMETERS = { clientid: '%c', username: '%u' };
const LOGIN_PARAMETERS = { ...SUPERUSER_PARAMETERS, password: '%P' };
const ACL_PARAMETERS = {
  access: '%A',
  username: '%u',
  clientid: '%c',
  ipaddr: '%a',
  topic: '%t',
  mountpoint: '%m'
};

const BREAKER_OPTIONS = {
  failures: row('integer', 5, 'Failures in a row.', { min: 1 }),
  pauseMs: row('duration', 30_000, 'Time for which the server is not asked.', { unit: 'ms' })
};
type Breaker = OptionValues<typeof BREAKER_OPTIONS>;

/** A row for a request. */
function request(letters: string, defaults: Readonly<Record<string, string>>, about: string) {
  return row('object', undefined as RequestTemplate | undefined, about, {
    check: (value, field) => new RequestTemplate(value as HttpRequest, COMMON_PLACEHOLDERS + letters, defaults, field)
  });
}

const HTTP_OPTIONS = {
  ...OUTGOING_TLS_OPTIONS,
  authenticate: request('P', LOGIN_PARAMETERS, 'Request for a login.'),
  superuser: request('P', SUPERUSER_PARAMETERS, 'Request for superusers.'),
  acl: request('At', ACL_PARAMETERS, 'Request for a topic.'),
  onError: row('choice', 'deny' as 'deny' | 'ignore', 'Answer if the server fails.', { choices: ['deny', 'ignore'] }),
  timeoutMs: row('duration', 5_000, 'Time for a request.', { unit: 'ms', min: 1 }),
  cacheMs: row('duration', 0, 'Time for which answers are kept.', { unit: 'ms' }),
  cacheSize: row('integer', 10_000, 'Answers that are kept.', { min: 1, max: 1_000_000 }),
  maxConcurrent: row('integer', 32, 'Requests at the same time.', { min: 1, max: 10_000 }),
  maxQueued: row('integer', 1_000, 'Requests that wait.', { max: 1_000_000 }),
  breaker: row('object', readOptions(BREAKER_OPTIONS, {}, '') as unknown as Breaker, 'When to stop asking.', {
    check: (value, field) => readOptions(BREAKER_OPTIONS, value as object, field)
  }),
  name: row('text', 'http', 'Name of the source.')
};

/** Options after checks. */
export type HttpSettings = OptionValues<typeof HTTP_OPTIONS>;

/** Read the options of `http`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readHttpOptions(given: HttpOptions): HttpSettings {
  const settings = readOptions(HTTP_OPTIONS, given, 'http') as unknown as HttpSettings;
  const { authenticate, superuser, acl } = settings;
  if (authenticate === undefined && acl === undefined)
    throw new InvalidInput(
      'OPTION_INVALID',
      'http.authenticate',
      'at least one of "authenticate" and "acl"',
      undefined
    );
  if (superuser !== undefined && authenticate === undefined)
    throw new InvalidInput('OPTION_INVALID', 'http.authenticate', 'a request, because "superuser" is given', undefined);
  return settings;
}
