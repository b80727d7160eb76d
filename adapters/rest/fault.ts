// A broker that stops, or cannot write its store, is 503 to HTTP clients. The design had 500 with code 101 for this.
// But 500 says that the request has met a bug: it sets off alerts, and proxies do not send the request again. 503
// with `Retry-After` keeps the code 101, and `errors: 'original'` answers 200 with this code, as before. A path that
// is asked for with another method is 404 with code 102, as documented, with the header `Allow`.

import { BrokerError, InvalidInput, NotFound, StateError } from '../../lib/index.ts';

/**
 * The kinds of faults of a request, or reasons why it cannot be answered. Each interface has a table with the
 * statuses and codes of those that it has.
 */
export type FaultKind =
  | 'unknownPath'
  | 'notJson'
  | 'missingParameter'
  | 'wrongParameter'
  | 'wrongTopic'
  | 'emptyCredentials'
  | 'exists'
  | 'wrongOldPassword'
  | 'administrator'
  | 'running'
  | 'notRunning'
  | 'sessionRunning'
  | 'unauthorized'
  | 'notPermitted'
  | 'tooManyLogins'
  | 'refused'
  | 'tooMany'
  | 'unknownUser'
  | 'unknownRecord'
  | 'unknownClient'
  | 'unknownSession'
  | 'unknownNode'
  | 'badArguments'
  | 'notFound'
  | 'testFailed'
  | 'bodyTooLarge'
  | 'bodyTooSlow'
  | 'bodyIncomplete'
  | 'unavailable'
  | 'failed'
  | 'syntax'
  | 'plan'
  | 'rule'
  | 'stream'
  | 'ioFailed'
  | 'storeFailed'
  | 'wrongMethod';

/** A request that is answered with an error. */
export class Fault extends Error {
  readonly kind: FaultKind;
  /** The message of the original products; undefined: that of their table. */
  readonly original: string | undefined;
  /** Headers of the answer. */
  readonly headers: Readonly<Record<string, string>>;
  /** True if the message is complete: no prefix of the operation is put in front of it. */
  readonly isWhole: boolean;

  /** @param message for people: names the parameter or object, and the remedy */
  constructor(
    kind: FaultKind,
    message: string,
    original?: string,
    { headers = {}, isWhole = false }: Partial<Pick<Fault, 'headers' | 'isWhole'>> = {}
  ) {
    super(message);
    this.name = 'Fault';
    this.kind = kind;
    this.original = original;
    this.headers = headers;
    this.isWhole = isWhole;
  }
}

/** The kinds of faults that errors of the broker are in an interface. */
interface FaultKinds {
  /** The faults that the interface has. Others are unexpected. */
  readonly table: Readonly<Partial<Record<FaultKind, unknown>>>;
  /** The kind of an error code; it takes precedence over the class of the error. */
  kindOf(code: string): FaultKind | undefined;
  readonly notFound: FaultKind;
  /** Default: such errors are unexpected. */
  readonly state?: FaultKind;
}

/** Replacements for messages whose remedy is meant for the app, not for an HTTP client. */
const MESSAGES: Readonly<Record<string, string>> = {
  BROKER_NOT_STARTED: 'the broker is stopping, or has not started; try again later',
  STREAMS_STOPPED: 'the stream service is stopped'
};

/**
 * The fault for an error.
 * @returns undefined for an unexpected error
 */
export function faultFor(error: unknown, kinds: FaultKinds): Fault | undefined {
  if (error instanceof Fault) return Object.hasOwn(kinds.table, error.kind) ? error : undefined;
  if (!(error instanceof BrokerError)) return undefined;
  const kind = kinds.kindOf(error.code) ?? kindOfClass(error, kinds);
  return kind && new Fault(kind, MESSAGES[error.code] ?? error.message);
}

function kindOfClass(error: BrokerError, { notFound, state }: FaultKinds): FaultKind | undefined {
  if (error instanceof InvalidInput) return 'wrongParameter';
  if (error instanceof NotFound) return notFound;
  return error instanceof StateError ? state : undefined;
}
