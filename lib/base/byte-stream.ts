/**
 * The part of a stream of bytes that connections and clients use. A Duplex of Node.js has these members, and so has a `LocalStream`. They
 * have the same meaning as in a Duplex that does not allow half-open connections.
 */
export interface ByteStream {
  readonly destroyed: boolean;
  /** The error that the stream was destroyed with. */
  readonly errored: Error | null;
  readonly readableEnded: boolean;
  readonly writable: boolean;
  readonly writableEnded: boolean;
  /** Number of bytes that were written and not passed on yet. */
  readonly writableLength: number;
  /** True if a write has returned false, and 'drain' has not followed yet. */
  readonly writableNeedDrain: boolean;
  on(event: 'data', listener: (chunk: Buffer) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'drain' | 'end' | 'close', listener: () => void): unknown;
  write(chunk: Buffer): boolean;
  /** Write a chunk that will not be changed. A stream within this process has this method, and passes the chunk on without a copy. */
  writeUnchanged?(chunk: Buffer): boolean;
  cork(): void;
  uncork(): void;
  pause(): unknown;
  resume(): unknown;
  isPaused(): boolean;
  end(): unknown;
  destroy(error?: Error): unknown;
}
