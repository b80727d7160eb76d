// A broker that stops, or cannot write its store, is 503 to HTTP clients. The design had 500 with code 101 for this.
// But 500 says that the request has met a bug: it sets off alerts, and proxies do not send the request again. 503
// with `Retry-After` keeps the code 101, and `errors: 'original'` answers 200 with this code, as before. A path that
// is asked for with another method is 404 with code 102, as documented, with the header `Allow`.

/**
 * The kinds of faults of a request, or reasons why it cannot be answered. Each interface has a table with their
 * statuses and codes.
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
  | 'failed';

/** A request that is answered with an error. */
export class Fault extends Error {
  readonly kind: FaultKind;
  /** The message of the original products; undefined: that of their table. */
  readonly original: string | undefined;
  /** Headers of the answer. */
  readonly headers: Readonly<Record<string, string>>;

  /** @param message for people: names the parameter or object, and the remedy */
  constructor(kind: FaultKind, message: string, original?: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = 'Fault';
    this.kind = kind;
    this.original = original;
    this.headers = headers;
  }
}
