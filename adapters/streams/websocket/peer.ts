import type { WebSocket } from 'ws';
import type { Clock } from '../../../lib/index.ts';
import type { Pausable } from './intake.ts';

const OPEN = 1;
const CLOSED = 3;
const GOING_AWAY = 1001;

/** Callbacks of a peer. */
interface PeerListener {
  message(data: Buffer): void;
  /** @param reason the reason for the close */
  closed(reason: Error): void;
}

/** An open WebSocket, with pings. */
export class Peer implements Pausable {
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  readonly #pingMs: number;
  #timer: unknown;
  /** True if anything was received since the last ping. */
  #isAlive = true;
  /** The reason for which it was closed here. */
  #reason: Error | undefined;

  /** @param pingMs 0: no pings */
  constructor(socket: WebSocket, clock: Clock, pingMs: number, listener: PeerListener) {
    this.#socket = socket;
    this.#clock = clock;
    this.#pingMs = pingMs;
    const alive = () => {
      this.#isAlive = true;
    };
    socket.on('message', (data) => {
      this.#isAlive = true;
      if (this.#reason === undefined) listener.message(data as Buffer);
    });
    socket.on('ping', alive);
    socket.on('pong', alive);
    socket.on('error', (error) => {
      this.#reason ??= error;
    });
    socket.on('close', (code, text) => {
      clock.clearTimeout(this.#timer);
      const why = text.length > 0 ? `: ${text}` : '';
      listener.closed(this.#reason ?? new Error(`the connection was closed by the other side with code ${code}${why}`));
    });
    this.#arm();
  }

  get isOpen(): boolean {
    return this.#socket.readyState === OPEN;
  }

  /** Number of unsent bytes. */
  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  /** @param done called when the data is passed to the system, or cannot be sent */
  send(data: Buffer, isBinary: boolean, done?: (error?: Error | null) => void): void {
    this.#socket.send(data, { binary: isBinary }, done);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#isAlive = true; // pongs that have arrived meanwhile are read now
    this.#socket.resume();
  }

  /** Close the connection at once. */
  drop(reason: Error): void {
    this.#reason ??= reason;
    this.#socket.terminate();
  }

  /**
   * Close the connection with a close frame. Resolves when it is closed, or shortly after if the peer does not answer.
   */
  end(reason: string): Promise<void> {
    if (this.#socket.readyState === CLOSED) return Promise.resolve();
    this.#reason ??= new Error(reason);
    return new Promise((resolve) => {
      this.#socket.once('close', () => resolve());
      this.#socket.resume(); // so that the close frame of the peer is read
      this.#socket.close(GOING_AWAY, reason);
    });
  }

  #arm(): void {
    if (this.#pingMs === 0) return;
    this.#timer = this.#clock.setTimeout(() => {
      if (!this.#isAlive && !this.#socket.isPaused) {
        this.drop(new Error(`nothing was received for ${this.#pingMs} ms after a ping`));
        return;
      }
      this.#isAlive = false;
      if (this.isOpen) this.#socket.ping();
      this.#arm();
    }, this.#pingMs);
  }
}
