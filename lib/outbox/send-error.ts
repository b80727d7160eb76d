import { BrokerError } from '../base/errors.ts';

/** The meaning of a failed delivery for the entries of the outbox. */
export interface SendErrorOptions {
  /** Milliseconds for which the target requests a pause, for example by the HTTP header `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
  /**
   * Set if the target will never accept these entries: they are dropped immediately. Default false: they are sent
   * again.
   */
  readonly isFinal?: boolean | undefined;
  /** The error that has caused this one. */
  readonly cause?: unknown;
}

/**
 * Thrown by the `send` of an outbox to specify how to continue after a failed delivery. Any other error means that the
 * entries are sent again after a back-off. `code` is `SEND_FAILED`.
 */
export class SendError extends BrokerError {
  /**
   * Time in milliseconds for which nothing is sent to the target; if undefined, only these entries wait for the
   * back-off.
   */
  readonly retryAfterMs: number | undefined;
  /** True if the entries are dropped. */
  readonly isFinal: boolean;

  constructor(message: string, { retryAfterMs, isFinal = false, cause }: SendErrorOptions = {}) {
    super('SEND_FAILED', message, cause === undefined ? undefined : { cause });
    this.retryAfterMs = retryAfterMs;
    this.isFinal = isFinal;
  }
}
