/**
 * The answer of an operation whose row has `isStream`: parts of a text of server-sent events. It ends when its reader
 * leaves, or with its source.
 */
export abstract class ServerSentEvents implements AsyncIterableIterator<string> {
  abstract next(): Promise<IteratorResult<string>>;
  abstract return(): Promise<IteratorResult<string>>;

  [Symbol.asyncIterator](): this {
    return this;
  }
}

/** Interval of the comments that keep an idle connection open. Bun closes idle connections after ten seconds. */
export const HEARTBEAT_MS = 5_000;
export const HEARTBEAT = ': heartbeat\n\n';
/** Characters of events that are written at once. */
export const WRITTEN_AT_ONCE = 65_536;
/** Caches and proxies must neither store nor compress streams. */
export const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no'
};
