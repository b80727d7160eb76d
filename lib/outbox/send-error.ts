import { BrokerError } from '../base/errors.ts';

/** What a failed delivery means for the entries of the outbox. */
export interface SendErrorOptions {
  /** Milliseconds for which the target asks for nothing at all, such as those of the HTTP header `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
  /** The target will never take these entries: they are dropped at once. Default false: they are sent again. */
  readonly isFinal?: boolean | undefined;
  readonly cause?: unknown;
}

/**
 * Thrown by the `send` of an outbox to say more than that the delivery has failed. Any other error means that the entries are sent again
 * after a back-off. `code` is `SEND_FAILED`.
 */
export class SendError extends BrokerError {
  /** Nothing is sent to the target for this long, in milliseconds; undefined: only these entries wait, for the back-off. */
  readonly retryAfterMs: number | undefined;
  /** The entries are dropped. */
  readonly isFinal: boolean;

  constructor(message: string, { retryAfterMs, isFinal = false, cause }: SendErrorOptions = {}) {
    super('SEND_FAILED', message, cause === undefined ? undefined : { cause });
    this.retryAfterMs = retryAfterMs;
    this.isFinal = isFinal;
  }
}
