/** A request to the interface of streams that was rejected or not answered. */
export class StreamsError extends Error {
  /** HTTP status; undefined: the server did not answer. */
  readonly status: number | undefined;
  /** The error code: 1002 if something does not exist; undefined: the answer has none. */
  readonly code: number | undefined;

  constructor(
    message: string,
    facts: { readonly status?: number | undefined; readonly code?: number | undefined; readonly cause?: unknown } = {}
  ) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause });
    this.name = 'StreamsError';
    this.status = facts.status;
    this.code = facts.code;
  }
}
