/**
 * Reasons why reading from a connection is paused, as bits.
 *
 * - `hook`: a packet waits for a hook or for the store; later packets are handled after it.
 * - `answers`: the client does not read its acknowledgements.
 * - `rate`: the client has exceeded a rate limit.
 * - `store`: too many bytes of this publisher wait to be written to the store.
 * - `commit`: too many acknowledgements wait for a commit.
 * - `turn`: the connection has used its share of a turn and waits until it is served again.
 */
export const Pause = { hook: 1, answers: 2, rate: 4, store: 8, commit: 16, turn: 32 } as const;

/** The part of a connection that causes of pauses use. */
export interface PausedConnection {
  readonly isClosed: boolean;
  readonly reader: {
    /** Bits of `Pause`. */
    readonly pauses: number;
    /** @param why one bit of `Pause` */
    pause(why: number): void;
    /** @param why one bit of `Pause` */
    resume(why: number): void;
  };
}
