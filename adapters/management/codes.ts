import { InvalidInput } from '../../lib/index.ts';
import { Fault, type FaultKind, faultFor } from '../rest/index.ts';

/** The answer to a fault. */
interface CodeEntry {
  /** HTTP status. */
  readonly status: number;
  /** The field `code` of the body. */
  readonly code: number;
  /**
   * The answer of the original products: status 200 and this code; undefined: no code, only the message. A number above
   * 200 is a status with text.
   */
  readonly original:
    | { readonly status: 200; readonly code: number | undefined }
    | { readonly status: 400 | 401 | 404 | 500; readonly text: string };
}

const ok = (code?: number) => ({ status: 200, code }) as const;

/** The statuses and codes of faults. `original` is used with the option `errors: 'original'`. */
export const CODES = {
  unknownPath: { status: 404, code: 102, original: { status: 404, text: 'Not found.' } },
  notJson: { status: 400, code: 109, original: { status: 400, text: 'Bad Request' } },
  missingParameter: { status: 400, code: 107, original: { status: 500, text: 'Internal Error' } },
  wrongParameter: { status: 400, code: 108, original: { status: 500, text: 'Internal Error' } },
  wrongTopic: { status: 400, code: 115, original: ok(115) },
  emptyCredentials: { status: 400, code: 104, original: ok() },
  exists: { status: 400, code: 113, original: ok() },
  wrongOldPassword: { status: 400, code: 114, original: ok() },
  administrator: { status: 400, code: 106, original: ok() },
  running: { status: 400, code: 110, original: ok() },
  notRunning: { status: 400, code: 111, original: ok() },
  sessionRunning: { status: 400, code: 102, original: ok() },
  unauthorized: { status: 401, code: 103, original: { status: 401, text: 'UNAUTHORIZED' } },
  notPermitted: { status: 403, code: 103, original: ok(103) },
  tooManyLogins: { status: 429, code: 103, original: { status: 401, text: 'UNAUTHORIZED' } },
  refused: { status: 400, code: 108, original: ok(108) },
  tooMany: { status: 429, code: 102, original: ok(102) },
  unknownUser: { status: 404, code: 105, original: ok() },
  unknownRecord: { status: 404, code: 105, original: ok() },
  unknownClient: { status: 404, code: 112, original: ok(112) },
  unknownSession: { status: 404, code: 112, original: ok() },
  unknownNode: { status: 404, code: 102, original: { status: 404, text: 'Not found.' } },
  // the codes of the rule engine are the same in both columns
  badArguments: { status: 400, code: 400, original: ok(400) },
  notFound: { status: 404, code: 404, original: ok(404) },
  // the documented code, but not its status: the broker works, and what is tested is in the request
  testFailed: { status: 400, code: 500, original: ok(500) },
  bodyTooLarge: { status: 413, code: 108, original: { status: 400, text: 'Bad Request' } },
  bodyTooSlow: { status: 408, code: 108, original: { status: 400, text: 'Bad Request' } },
  // never read: the client has disconnected
  bodyIncomplete: { status: 400, code: 108, original: { status: 400, text: 'Bad Request' } },
  // 503 tells clients and proxies to try again; 500 would suggest a bug
  unavailable: { status: 503, code: 101, original: ok(101) },
  failed: { status: 500, code: 102, original: { status: 500, text: 'Internal Error' } }
} satisfies Readonly<Partial<Record<FaultKind, CodeEntry>>>;

/** The kinds of faults of the management interface. */
export type ManagementFaultKind = keyof typeof CODES;

/** The row of a fault, which `faultOf` has returned. */
export function codesOf({ kind }: Fault): CodeEntry {
  return CODES[kind as ManagementFaultKind];
}

/** The faults for errors of the broker, by error code. */
const FAULTS: Readonly<Record<string, FaultKind>> = {
  TOPIC_NAME_INVALID: 'wrongTopic',
  TOPIC_FILTER_INVALID: 'wrongTopic',
  SESSION_NOT_FOUND: 'unknownClient',
  SESSION_ENDED: 'unknownClient',
  SESSION_RUNNING: 'sessionRunning',
  RECORD_EXISTS: 'exists',
  CONNECTOR_OF_APP: 'refused',
  CONNECTOR_UNTESTABLE: 'refused',
  RECORD_NOT_FOUND: 'unknownRecord',
  PASSWORD_INVALID: 'emptyCredentials',
  PASSWORD_WRONG: 'wrongOldPassword',
  ADMIN_PERMANENT: 'administrator',
  LAST_ADMINISTRATOR: 'administrator',
  BACKUP_RUNNING: 'running',
  BACKUP_UNSUPPORTED: 'notRunning',
  BROKER_NOT_STARTED: 'unavailable',
  STORE_FAILED: 'unavailable',
  STORE_CLOSED: 'unavailable',
  QUOTA_EXCEEDED: 'tooMany',
  SUBSCRIBE_REFUSED: 'refused',
  SCHEMA_FAILED: 'refused',
  DELAYED_OFF: 'notRunning',
  SOURCE_STOPPED: 'notRunning',
  TOO_MANY_TOPICS: 'tooMany',
  TOO_MANY_TAILS: 'tooMany',
  TOO_MANY_TRACES: 'tooMany',
  PASSWORD_QUEUE_FULL: 'tooManyLogins',
  NOT_AUTHORIZED: 'notPermitted',
  OPTION_FIXED: 'wrongParameter'
};

/** The fault for an error; undefined: it is unexpected. */
export function faultOf(error: unknown): Fault | undefined {
  return faultFor(error, { table: CODES, kindOf: (code) => FAULTS[code], notFound: 'unknownRecord' });
}

/**
 * An error whose message names a parameter of the interface instead of an argument of the broker.
 * @param names parameter names by the field of the error
 */
export function renamed(error: unknown, names: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof InvalidInput) || !Object.hasOwn(names, error.field)) return error;
  const { field, message } = error;
  const name = names[field];
  const why = message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message;
  return new Fault(faultOf(error)?.kind ?? 'wrongParameter', `the parameter "${name}": ${why}`, name);
}
