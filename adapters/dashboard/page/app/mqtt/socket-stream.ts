// A WebSocket as the stream of bytes that the client of the package uses. A browser cannot pause a WebSocket, so `pause` has no effect: the page
// takes all messages, and keeps the last ones.

import { T } from '../../texts.ts';

const M = T.websocket;

type Listener = (value?: never) => void;

/** Bytes that a WebSocket holds for the network before `write` returns false. */
const HIGH_WATER_MARK = 1_048_576;
const DRAIN_MS = 50;
const OPEN_MS = 10_000;

/** Open a WebSocket for MQTT. @throws Error if it does not open within ten seconds, or the reason of the signal */
export function openSocket(url: string, signal: AbortSignal): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, 'mqtt');
    socket.binaryType = 'arraybuffer';
    const fail = (error: unknown) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      reject(error);
      socket.close();
    };
    const abort = () => fail(signal.reason);
    const timer = setTimeout(() => fail(new Error(M.opensLate(OPEN_MS / 1_000))), OPEN_MS);
    signal.addEventListener('abort', abort);
    socket.onerror = () => fail(new Error(M.notOpened));
    socket.onopen = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      socket.onerror = null;
      resolve(socket);
    };
  });
}

/** The stream over an open WebSocket, with the members of a Duplex that the client uses. */
export class SocketStream {
  readonly #socket: WebSocket;
  readonly #listeners = new Map<string, Listener[]>();
  destroyed = false;
  errored: Error | null = null;
  readableEnded = false;
  writableEnded = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      if (!this.destroyed) this.#emit('data', Buffer.from(data));
    };
    socket.onclose = ({ code, reason }) => {
      this.readableEnded = true;
      // 1000 and 1005: a normal end; the browser has no further details of the others
      if (code !== 1000 && code !== 1005 && !this.destroyed) this.errored = new Error(M.closedWith(code, reason));
      this.#close();
    };
    if (socket.readyState !== WebSocket.OPEN) this.destroyed = true;
  }

  get writable(): boolean {
    return !this.destroyed && !this.writableEnded;
  }

  get writableLength(): number {
    return this.#socket.bufferedAmount;
  }

  get writableNeedDrain(): boolean {
    return this.#timer !== undefined;
  }

  on(event: string, listener: Listener): this {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
    return this;
  }

  write(chunk: Uint8Array<ArrayBuffer>): boolean {
    this.#socket.send(chunk);
    if (this.#socket.bufferedAmount < HIGH_WATER_MARK) return true;
    this.#timer ??= setTimeout(() => this.#drain(), DRAIN_MS);
    return false;
  }

  cork(): void {}
  uncork(): void {}
  pause(): void {}
  resume(): void {}
  isPaused(): boolean {
    return false;
  }

  end(): void {
    this.writableEnded = true;
    this.#socket.close(1000);
  }

  destroy(error?: Error): void {
    if (this.destroyed) return;
    this.errored ??= error ?? null;
    this.#socket.close();
    this.#close();
  }

  #drain(): void {
    this.#timer = undefined;
    if (this.destroyed) return;
    if (this.#socket.bufferedAmount < HIGH_WATER_MARK) this.#emit('drain');
    else this.#timer = setTimeout(() => this.#drain(), DRAIN_MS);
  }

  #close(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    clearTimeout(this.#timer);
    if (this.errored !== null) this.#emit('error', this.errored);
    this.#emit('close');
  }

  #emit(event: string, value?: unknown): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(value as never);
  }
}
