/** A request to the interface of streams that was refused, or that had no answer. */
export class StreamsError extends Error {
  /** HTTP status; undefined: the server did not answer. */
  readonly status: number | undefined;
  /** What is wrong: 1002 if something does not exist; undefined: the answer does not say. */
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
