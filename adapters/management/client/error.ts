/** A request to the management interface that was rejected or not answered. */
export class ManagementError extends Error {
  /** HTTP status; undefined: the server did not answer. */
  readonly status: number | undefined;
  /** The field `code` of the answer; undefined if there is none. */
  readonly code: number | undefined;

  constructor(
    message: string,
    facts: { readonly status?: number | undefined; readonly code?: number | undefined; readonly cause?: unknown } = {}
  ) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause });
    this.name = 'ManagementError';
    this.status = facts.status;
    this.code = facts.code;
  }
}
