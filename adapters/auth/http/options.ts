import { type FieldValues, field, readOptions } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { checkTls, OUTGOING_TLS_OPTIONS, type OutgoingTls } from '../../outgoing/index.ts';
import { type LimitOptions, limitRows } from '../outgoing/limits.ts';
import { COMMON_PLACEHOLDERS } from '../outgoing/template.ts';
import { type HttpRequest, RequestTemplate } from './request-template.ts';

/**
 * Options of `http`. At least one of `authenticate` and `acl` is needed. The server fails if it cannot be reached,
 * takes too long, or answers with a status other than those below. By default at most 32 requests run concurrently.
 */
export interface HttpOptions extends OutgoingTls, LimitOptions {
  /**
   * The request for each CONNECT. Status 200 or 204 lets the client in; with the body `ignore` the next source decides. A status from 400 to
   * 499 refuses the client.
   */
  authenticate?: HttpRequest;
  /** The request for each client that `authenticate` has let in. Status 200 or 204 exempts it from access control. Default: none. */
  superuser?: HttpRequest;
  /**
   * The request for each topic and filter that the rules of the broker do not decide. The answers are those of
   * `authenticate`.
   */
  acl?: HttpRequest;
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

/** A row for a request. */
function request(letters: string, defaults: Readonly<Record<string, string>>, about: string) {
  return field('object', undefined as RequestTemplate | undefined, about, {
    check: (value, field) => new RequestTemplate(value as HttpRequest, COMMON_PLACEHOLDERS + letters, defaults, field)
  });
}

/** The options of `http`. */
export const HTTP_OPTIONS = {
  ...OUTGOING_TLS_OPTIONS,
  ...limitRows(32),
  authenticate: request('P', LOGIN_PARAMETERS, 'Request for each CONNECT.'),
  superuser: request(
    'P',
    SUPERUSER_PARAMETERS,
    'Request for each client that was let in: whether it is exempt from access control.'
  ),
  acl: request('At', ACL_PARAMETERS, 'Request for each topic and filter that the rules of the broker do not decide.'),
  name: field('string', 'http', 'Name of the source.')
};

/** The checked options. */
export type HttpSettings = FieldValues<typeof HTTP_OPTIONS>;

/** Read the options of `http`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readHttpOptions(given: HttpOptions): HttpSettings {
  const settings = readOptions(HTTP_OPTIONS, given, 'http');
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
  checkTls(settings, 'http');
  return settings;
}
