// Until the broker has admitted the client, received data are counted with their frames, which `ws` keeps in memory:
// at the limit a CONNECT is refused, and what follows a complete CONNECT is only paused. Pausing for this reason and
// pausing for back-pressure are different, so `_read` must not resume the former. A peer that breaks a rule gets a
// close frame with the code of RFC 6455, and the stream is destroyed with a `ProtocolError`. Listeners are shared by
// all sockets.

import type { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { GatheringStream } from '../../lib/adapter.ts';
import { ProtocolError, ReasonCode } from '../../lib/index.ts';
import { FrameMeter } from './frame-meter.ts';

/** Queued chunks are sent as one frame up to this size. */
const FRAME_BYTES = 65_536;

/** Errors on which `ws` closes with 1009. */
const TOO_LARGE = new Set(['WS_ERR_UNSUPPORTED_MESSAGE_LENGTH', 'WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH']);

const OPEN = 1;
const CLOSED = 3;

/**
 * Property that holds the stream of a socket, so that all sockets share their listeners: separate closures would cost
 * memory.
 */
const STREAM = Symbol('stream');

type Carrier = WebSocket & { [STREAM]: WebSocketStream };
type Metered = Duplex & { [STREAM]: WebSocketStream };

/**
 * A WebSocket as a Duplex of bytes. A packet may be split over frames, and a frame may contain several packets [MQTT-6.0.0-2]. A text frame
 * ends the connection with 1003 [MQTT-6.0.0-1]. Both directions apply the back pressure of the underlying socket. If the peer breaks a
 * rule, the stream is destroyed with a `ProtocolError`.
 */
export class WebSocketStream extends Duplex implements GatheringStream {
  readonly #socket: WebSocket;
  readonly #carrier: Duplex;
  /**
   * True while a close frame with the reason is being sent: `ws` then closes the socket itself, at the latest after its
   * close timeout.
   */
  #isRefused = false;
  /** True if anything was received since the last ping. */
  isAlive = true;
  /** Set until the broker has admitted the client. */
  #meter: FrameMeter | undefined = new FrameMeter();
  readonly #maxConnectSize: number;
  /** True while the CONNECT is incomplete. The connection is then refused at the limit; later it is only paused. */
  #awaitsConnect = true;
  /** True if the limit is reached: nothing is read until the client is admitted. */
  #isThrottled = false;

  /**
   * @param carrier the underlying socket
   * @param maxConnectSize memory in bytes that received data may take until the broker has admitted the client
   */
  constructor(socket: WebSocket, carrier: Duplex, maxConnectSize: number) {
    super({ allowHalfOpen: false });
    this.#maxConnectSize = maxConnectSize;
    (carrier as Metered)[STREAM] = this;
    carrier.on('data', onCarrierData); // called after `ws` has processed the chunk, so complete packets have been delivered
    this.#socket = socket;
    this.#carrier = carrier;
    (socket as Carrier)[STREAM] = this;
    const events = socket as EventEmitter;
    events.on('message', onMessage);
    events.on('ping', onPingOrPong);
    events.on('pong', onPingOrPong);
    events.on('close', onClose);
    events.on('error', onError);
  }

  /**
   * Handle of the underlying socket, which knows how much of a large message was sent, and therefore whether the peer
   * reads. `ws` reports only the end.
   */
  get _handle(): unknown {
    return (this.#carrier as Duplex & { readonly _handle?: unknown })._handle;
  }

  /** True if the socket is currently not read, so that pongs are not seen. */
  get isUnread(): boolean {
    return this.#socket.isPaused;
  }

  /** Send a ping frame. */
  ping(): void {
    this.isAlive = this.isUnread; // its pongs are seen when reading resumes
    if (this.#socket.readyState === OPEN) this.#socket.ping();
  }

  /** Close the connection with a code of RFC 6455 7.4.1, because the peer has broken a rule. */
  refuse(code: number, reason: string, reasonCode: number = ReasonCode.protocolError): void {
    this.#isRefused = true;
    this.#socket.close(code, reason);
    this.destroy(
      new ProtocolError(reasonCode, `the broker closed the WebSocket connection with code ${code}: ${reason}`)
    );
  }

  /** Count bytes that were received before the client is admitted, and refuse or pause the connection at the limit. */
  measure(chunk: Buffer): void {
    const measure = this.#meter;
    if (measure === undefined) return;
    measure.addChunk(chunk);
    if (measure.occupiedBytes <= this.#maxConnectSize || this.#isThrottled) return;
    if (this.#awaitsConnect && !this.writableEnded && !this.destroyed) this.#refuseConnect(measure);
    this.#isThrottled = true;
    this.#socket.pause();
  }

  /** Refuse a CONNECT that is too large: by CONNACK if its start is known and the broker refuses it, else by a close frame. */
  #refuseConnect(measure: FrameMeter): void {
    const beginning = measure.connectStart();
    if (beginning.length > 0) this.push(beginning);
    if (!this.writableEnded && !this.destroyed) {
      this.refuse(1009, 'too many bytes before CONNECT (option maxConnectSize)', ReasonCode.packetTooLarge);
    }
  }

  /** See `GatheringStream`. */
  packetTaken(): void {
    this.#awaitsConnect = false;
    this.#meter?.taken();
  }

  /** See `GatheringStream`. */
  admitted(): void {
    this.#meter = undefined;
    this.#carrier.off('data', onCarrierData);
    if (!this.#isThrottled) return;
    this.#isThrottled = false;
    if (!this.destroyed) this.#socket.resume();
  }

  receive(data: Buffer): void {
    this.isAlive = true;
    this.#meter?.messageDelivered();
    if (!this.destroyed && !this.push(data)) this.#socket.pause();
  }

  /** End the stream after `ws` has detected an invalid frame and sent the close code itself. */
  fail({ message, code = '' }: Error & { code?: string }): void {
    this.#isRefused = true;
    const reasonCode = TOO_LARGE.has(code) ? ReasonCode.packetTooLarge : ReasonCode.protocolError;
    this.destroy(new ProtocolError(reasonCode, message));
  }

  override _read(): void {
    if (this.#socket.isPaused && !this.#isThrottled) this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    // a peer that has sent a close frame reads no more data; its close follows
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

function onMessage(this: Carrier, data: unknown, isBinary: boolean): void {
  const stream = this[STREAM];
  if (isBinary) stream.receive(data as Buffer);
  else if (!stream.destroyed) stream.refuse(1003, 'MQTT needs binary frames');
}

function onCarrierData(this: Metered, chunk: Buffer): void {
  this[STREAM].measure(chunk);
}

function onPingOrPong(this: Carrier): void {
  this[STREAM].isAlive = true;
}

function onClose(this: Carrier): void {
  const stream = this[STREAM];
  if (!stream.destroyed) stream.push(null);
}

function onError(this: Carrier, error: Error): void {
  this[STREAM].fail(error);
}

/** Callback for all frames except the last, whose callback gets the same error. */
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
