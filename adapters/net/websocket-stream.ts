import type { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { type GatheringStream, ProtocolError, ReasonCode } from '../../lib/index.ts';
import { FrameMeter } from './frame-meter.ts';

/** Chunks that wait are sent as one frame up to this size. */
const FRAME_BYTES = 65_536;

/** What ws closes with 1009. */
const TOO_LARGE = new Set(['WS_ERR_UNSUPPORTED_MESSAGE_LENGTH', 'WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH']);

const OPEN = 1;
const CLOSED = 3;

/** Leads from a socket to its stream in the listeners that all sockets share: closures for each would cost an idle connection. */
const STREAM = Symbol('stream');

type Carrier = WebSocket & { [STREAM]: WebSocketStream };
type Metered = Duplex & { [STREAM]: WebSocketStream };

/**
 * The bytes in and out of a WebSocket as a Duplex. A packet may be split over frames and a frame may hold several packets
 * [MQTT-6.0.0-2]; a text frame ends the connection with 1003 [MQTT-6.0.0-1]. Writing waits for the socket below, reading pauses it.
 * A peer that breaks a rule destroys it with a `ProtocolError`: its connection ends, and nobody's else.
 */
export class WebSocketStream extends Duplex implements GatheringStream {
  readonly #socket: WebSocket;
  readonly #carrier: Duplex;
  /** A close frame says why: the socket is left to ws until the frame is out, at most for its close timeout. */
  #isRefused = false;
  /** Something came since the last ping. */
  isAlive = true;
  /** Until the broker has let the client in. */
  #meter: FrameMeter | undefined = new FrameMeter();
  readonly #maxConnectSize: number;
  /** The CONNECT is not complete: more than the bound is refused, not left to the network. */
  #isAwaited = true;
  /** The bound is reached: nothing is read until the client is let in. */
  #isThrottled = false;

  /**
   * @param carrier the socket below
   * @param maxConnectSize memory it may take until the broker has let the client in
   */
  constructor(socket: WebSocket, carrier: Duplex, maxConnectSize: number) {
    super({ allowHalfOpen: false });
    this.#maxConnectSize = maxConnectSize;
    (carrier as Metered)[STREAM] = this;
    carrier.on('data', metered); // ws hears each chunk before: a packet that is complete has been handed on
    this.#socket = socket;
    this.#carrier = carrier;
    (socket as Carrier)[STREAM] = this;
    const events = socket as EventEmitter;
    events.on('message', received);
    events.on('ping', signOfLife);
    events.on('pong', signOfLife);
    events.on('close', closed);
    events.on('error', failed);
  }

  /** The socket's own: it knows how much of a large message has gone, and so whether the peer reads. ws tells when all of it has. */
  get _handle(): unknown {
    return (this.#carrier as Duplex & { readonly _handle?: unknown })._handle;
  }

  /** Ask the peer for a sign of life. */
  ping(): void {
    if (this.#socket.readyState === OPEN) this.#socket.ping();
  }

  /** End the connection with a code of RFC 6455 7.4.1, because the peer broke a rule. */
  refuse(code: number, reason: string, reasonCode: number = ReasonCode.protocolError): void {
    this.#isRefused = true;
    this.#socket.close(code, reason);
    this.destroy(new ProtocolError(reasonCode, `WebSocket closed with ${code}: ${reason}`));
  }

  /** Some bytes have come from the socket below, and the client is not let in yet. */
  meter(chunk: Buffer): void {
    const meter = this.#meter;
    if (meter === undefined) return;
    meter.note(chunk);
    if (meter.occupied <= this.#maxConnectSize || this.#isThrottled) return;
    if (this.#isAwaited && !this.writableEnded && !this.destroyed) this.#refuseConnect(meter);
    this.#isThrottled = true;
    this.#socket.pause();
  }

  /** The broker can answer a CONNECT that says itself how large it is; else this can only be told by WebSocket. */
  #refuseConnect(meter: FrameMeter): void {
    const beginning = meter.beginning();
    if (beginning.length > 0) this.push(beginning);
    if (!this.writableEnded && !this.destroyed) {
      this.refuse(1009, 'too much before CONNECT (option maxConnectSize)', ReasonCode.packetTooLarge);
    }
  }

  /** See `GatheringStream`. */
  packetTaken(): void {
    this.#isAwaited = false;
    if (this.#meter !== undefined) this.#meter.occupied = 0;
  }

  /** See `GatheringStream`. */
  admitted(): void {
    this.#meter = undefined;
    this.#carrier.off('data', metered);
    if (!this.#isThrottled) return;
    this.#isThrottled = false;
    if (!this.destroyed) this.#socket.resume();
  }

  receive(data: Buffer): void {
    this.isAlive = true;
    this.#meter?.delivered();
    if (!this.destroyed && !this.push(data)) this.#socket.pause();
  }

  /** What ws found wrong with a frame; it has begun the close handshake with the fitting code itself. */
  fail({ message, code = '' }: Error & { code?: string }): void {
    this.#isRefused = true;
    const reasonCode = TOO_LARGE.has(code) ? ReasonCode.packetTooLarge : ReasonCode.protocolError;
    this.destroy(new ProtocolError(reasonCode, message));
  }

  override _read(): void {
    if (this.#socket.isPaused && !this.#isThrottled) this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    // A peer that has said goodbye reads nothing more; its close follows.
    if (this.#socket.readyState !== OPEN) done();
    else this.#socket.send(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const frames = gather(chunks);
    for (const frame of frames.slice(0, -1)) this._write(frame, '', ignoreError);
    this._write(frames[frames.length - 1], '', done);
  }

  override _final(done: () => void): void {
    this.#socket.close(1000);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.#isRefused && this.#socket.readyState !== CLOSED) this.#socket.terminate();
    done(error);
  }
}

function received(this: Carrier, data: unknown, isBinary: boolean): void {
  const stream = this[STREAM];
  if (isBinary) stream.receive(data as Buffer);
  else if (!stream.destroyed) stream.refuse(1003, 'MQTT needs binary frames');
}

function metered(this: Metered, chunk: Buffer): void {
  this[STREAM].meter(chunk);
}

function signOfLife(this: Carrier): void {
  this[STREAM].isAlive = true;
}

function closed(this: Carrier): void {
  const stream = this[STREAM];
  if (!stream.destroyed) stream.push(null);
}

function failed(this: Carrier, error: Error): void {
  this[STREAM].fail(error);
}

/** The last frame's callback hears of the same error. */
function ignoreError(): void {}

function gather(chunks: readonly { chunk: Buffer }[]): Buffer[] {
  const frames: Buffer[] = [];
  let waiting: Buffer[] = [];
  let bytes = 0;
  const flush = () => {
    if (waiting.length > 0) frames.push(waiting.length === 1 ? waiting[0] : Buffer.concat(waiting, bytes));
    waiting = [];
    bytes = 0;
  };
  for (const { chunk } of chunks) {
    if (bytes + chunk.length > FRAME_BYTES) flush();
    waiting.push(chunk);
    bytes += chunk.length;
  }
  flush();
  return frames;
}
