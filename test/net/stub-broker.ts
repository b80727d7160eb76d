import { createServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { mock } from 'node:test';
import type { Acceptor, ZoneSizes } from '../../adapters/net/index.ts';
import type { GatheringStream, ListenerHandle } from '../../lib/adapter.ts';
import { type AlarmInput, type Clock, systemClock, type TransportInfo } from '../../lib/index.ts';

interface Taken {
  readonly stream: Duplex;
  readonly meta: TransportInfo;
}

/** Replaces the broker in tests of listeners: collects the connections and errors it is passed, and lets tests wait for them. */
export class StubBroker implements Acceptor {
  clock: Clock = systemClock;
  state = 'connected';
  /** True if every client is admitted at once, so that its stream is not limited. */
  admits = true;
  attached: ListenerHandle[] = [];
  readonly taken: Taken[] = [];
  /** Number of connections that were accepted and have handshakes. */
  arrivals = 0;
  readonly reports: { error: Error; during: string }[] = [];
  /** The changes of alarms. */
  readonly alarmed: { change: 'raise' | 'clear'; id: string; summary: string | undefined }[] = [];
  readonly alarms = {
    raise: ({ id, summary }: AlarmInput) => void this.alarmed.push({ change: 'raise', id, summary }),
    clear: (id: string) => this.alarmed.push({ change: 'clear', id, summary: undefined }) > 0
  };
  readonly #waiting: ((taken: Taken) => void)[] = [];
  readonly #unheard: Taken[] = [];
  readonly #awaitingReport: (() => void)[] = [];

  handle(stream: Duplex, meta: TransportInfo): void {
    stream.on('error', () => {});
    if (this.admits) (stream as GatheringStream).admitted?.();
    const taken = { stream, meta };
    this.taken.push(taken);
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#unheard.push(taken);
    else waiting(taken);
  }

  attach(listener: ListenerHandle): void {
    this.attached.push(listener);
    listener.attached?.(() => this.arrivals++);
  }

  detach(listener: ListenerHandle): void {
    this.attached = this.attached.filter((other) => other !== listener);
  }

  listeners(): ListenerHandle[] {
    return this.attached;
  }

  zone(): ZoneSizes {
    return { maxPacketSize: 1_048_576, maxConnectSize: 65_536, connectTimeout: 10_000, idleTimeout: 15_000 };
  }

  on(): void {}
  off(): void {}

  failed(error: unknown, during: string): void {
    this.reports.push({ error: error as Error, during });
    for (const wake of this.#awaitingReport.splice(0)) wake();
  }

  /** Returns the next connection. */
  next(): Promise<Taken> {
    const taken = this.#unheard.shift();
    return taken === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(taken);
  }

  /** Waits for the next report. */
  reported(): Promise<void> {
    return new Promise((resolve) => this.#awaitingReport.push(resolve));
  }

  /** Does the part of a broker stop that matters to listeners. */
  async stop(): Promise<void> {
    for (const listener of this.attached) await listener.close();
    for (const { stream } of this.taken) stream.destroy();
  }
}

/** Lets the event loop turn until a condition holds, for effects at the other end of a socket that emit no event. */
export async function turnsUntil(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns === 100_000) throw new Error(`still waiting for ${condition}`);
    await new Promise(setImmediate);
  }
}

/** Waits until a stream is closed, with or without an error. */
export function closed(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve();
    else stream.on('close', () => resolve());
  });
}

/** Reads this many bytes; further ones stay in the stream. */
export function readBytes(stream: Duplex, count: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done = (error?: Error) => {
      stream.off('readable', read).off('end', ended).off('error', done);
      if (error !== undefined) reject(error);
    };
    const ended = () => done(new Error(`the stream ended before ${count} bytes had come`));
    const read = () => {
      const chunk = stream.read(count) as Buffer | null;
      if (chunk === null) return;
      done();
      if (chunk.length < count) reject(new Error(`the stream ended after ${chunk.length} of ${count} bytes`));
      else resolve(chunk);
    };
    stream.on('readable', read).on('end', ended).on('error', done);
    read();
  });
}

/** Socket options that were set in the kernel, which Node cannot read back. */
interface SocketOptions {
  noDelay: boolean;
  /** Idle seconds before keep-alive probes; undefined if there are none. */
  keepAliveSec: number | undefined;
}

interface Handle {
  setNoDelay(on: boolean): number;
  setKeepAlive(on: boolean, seconds: number): number;
}

/**
 * Records the options set on every TCP socket of this process until `mock.restoreAll()`; look them up by the stream passed to the broker.
 */
export function watchSocketOptions(): (stream: Duplex) => SocketOptions {
  const told = new Map<unknown, SocketOptions>();
  const of = (handle: unknown) => {
    const options = told.get(handle) ?? { noDelay: false, keepAliveSec: undefined };
    told.set(handle, options);
    return options;
  };
  const probe = createServer().listen(0);
  const kind = Object.getPrototypeOf((probe as unknown as { _handle: Handle })._handle) as Handle;
  probe.close();
  const { setNoDelay, setKeepAlive } = kind;
  mock.method(kind, 'setNoDelay', function (this: Handle, on: boolean) {
    of(this).noDelay = on;
    return setNoDelay.call(this, on);
  });
  mock.method(kind, 'setKeepAlive', function (this: Handle, on: boolean, seconds: number) {
    of(this).keepAliveSec = on ? seconds : undefined;
    return setKeepAlive.call(this, on, seconds);
  });
  return (stream) => {
    const { _handle: handle } = stream as Duplex & { _handle: { _parent?: unknown } };
    return of(handle._parent ?? handle); // TLS has a separate handle over that of the socket
  };
}

/** An upgrade request of a WebSocket client to a `ws` listener. */
export const UPGRADE = [
  'GET /mqtt HTTP/1.1',
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Protocol: mqtt\r\n\r\n'
].join('\r\n');
