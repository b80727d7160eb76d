import { createServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { mock } from 'node:test';
import type { Acceptor, ZoneSizes } from '../../adapters/net/index.ts';
import {
  type Alarm,
  type Clock,
  type ConnectionMeta,
  type GatheringStream,
  type ListenerHandle,
  systemClock
} from '../../lib/index.ts';

export interface Taken {
  readonly stream: Duplex;
  readonly meta: ConnectionMeta;
}

/** Stands for a broker where only the listener is looked at: keeps what it is handed, and can be awaited for it. */
export class StubBroker implements Acceptor {
  clock: Clock = systemClock;
  state = 'connected';
  /** Whether every client is let in at once, so that nothing bounds its stream. */
  admits = true;
  attached: ListenerHandle[] = [];
  readonly taken: Taken[] = [];
  readonly reports: { error: Error; during: string }[] = [];
  readonly alarms: { change: string; id: string; summary: string }[] = [];
  readonly #waiting: ((taken: Taken) => void)[] = [];
  readonly #unheard: Taken[] = [];
  readonly #awaitingReport: (() => void)[] = [];

  handle(stream: Duplex, meta: ConnectionMeta): void {
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

  alarm(change: 'alert' | 'clear', { id, summary }: Alarm): void {
    this.alarms.push({ change, id, summary });
  }

  on(): void {}
  off(): void {}

  failed(error: unknown, during: string): void {
    this.reports.push({ error: error as Error, during });
    for (const wake of this.#awaitingReport.splice(0)) wake();
  }

  /** The next connection that was not asked for yet. */
  next(): Promise<Taken> {
    const taken = this.#unheard.shift();
    return taken === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(taken);
  }

  /** Resolves at the next report. */
  reported(): Promise<void> {
    return new Promise((resolve) => this.#awaitingReport.push(resolve));
  }

  /** What a broker's stop does of interest here. */
  async stop(): Promise<void> {
    for (const listener of this.attached) await listener.close();
    for (const { stream } of this.taken) stream.destroy();
  }
}

/** Let the event loop turn until a condition holds, for what the other end of a socket does without an event of its own. */
export async function turnsUntil(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns === 100_000) throw new Error(`still waiting for ${condition}`);
    await new Promise(setImmediate);
  }
}

/** Resolves when a stream is closed, with an error or without. */
export function closed(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve();
    else stream.on('close', () => resolve());
  });
}

/** Read until so many bytes have come; what comes past them stays in the stream. */
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

/** What the kernel was told of a socket; Node has no way to ask. */
export interface SocketOptions {
  noDelay: boolean;
  /** Idle seconds before probes; undefined: none. */
  keepAliveSec: number | undefined;
}

interface Handle {
  setNoDelay(on: boolean): number;
  setKeepAlive(on: boolean, seconds: number): number;
}

/** Watch what every TCP socket of this process is told, until `mock.restoreAll()`; ask by the stream that the broker was handed. */
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
    return of(handle._parent ?? handle); // TLS has a handle of its own over the socket's
  };
}
