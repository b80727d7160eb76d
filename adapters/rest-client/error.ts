/** Facts about an error of a client. */
export interface ErrorFacts {
  /** HTTP status. */
  readonly status?: number | undefined;
  /** The code of the answer; undefined if it has none. */
  readonly code?: number | undefined;
  /** The error that has caused this one. */
  readonly cause?: unknown;
}

/** A request to a REST interface that was rejected or not answered. */
export class RestClientError extends Error {
  /** HTTP status; undefined: the server did not answer. */
  readonly status: number | undefined;
  /** The error code in the answer; undefined if there is none. */
  readonly code: number | undefined;

  constructor(message: string, { status, code, cause }: ErrorFacts = {}) {
    super(message, cause === undefined ? {} : { cause });
    this.status = status;
    this.code = code;
  }
}
