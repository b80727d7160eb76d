/**
 * The part of a stream of bytes that connections and clients use. A Duplex of Node.js has these members, and so has a `LocalStream`. They
 * have the same meaning as in a Duplex that does not allow half-open connections.
 */
export interface ByteStream {
  /** True if the stream was destroyed. */
  readonly destroyed: boolean;
  /** The error that the stream was destroyed with. */
  readonly errored: Error | null;
  /** True if the end was read. */
  readonly readableEnded: boolean;
  /** True if more can be written. */
  readonly writable: boolean;
  /** True after `end`. */
  readonly writableEnded: boolean;
  /** Number of bytes that were written and not passed on yet. */
  readonly writableLength: number;
  /** True if a write has returned false, and 'drain' has not followed yet. */
  readonly writableNeedDrain: boolean;
  /** Add a listener. */
  on(event: 'data', listener: (chunk: Buffer) => void): unknown;
  /** Add a listener. */
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** Add a listener. */
  on(event: 'drain' | 'end' | 'close', listener: () => void): unknown;
  /** Write a chunk. @returns false if the writer should wait for 'drain' */
  write(chunk: Buffer): boolean;
  /** Write a chunk that will not be changed. A stream within this process has this method, and passes the chunk on without a copy. */
  writeUnchanged?(chunk: Buffer): boolean;
  /** Collect chunks until `uncork` is called. */
  cork(): void;
  /** Pass the collected chunks on. */
  uncork(): void;
  /** Stop the events 'data'. */
  pause(): unknown;
  /** Continue the events 'data'. */
  resume(): unknown;
  /** True after `pause`, until `resume` is called. */
  isPaused(): boolean;
  /** End the stream after what was written. */
  end(): unknown;
  /** Close the stream at once. */
  destroy(error?: Error): unknown;
}
