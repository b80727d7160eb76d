/** What is wrong with a request, or why it cannot be answered. Each interface has a table with the status and the code of each. */
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
  /** What the original products say instead; undefined: what their table says. */
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
