// A connection ends once, in one of three ways: `end` sends the rest of the output and lets the peer read it,
// `destroy` sends nothing more, `lost` reports to the session that the peer has gone. From then on `isClosed` is
// true, bytes that arrive are only counted, and its place among `maxConnections` is free, although the stream may
// stay open until `LINGER_MS` are over. If the peer ends the stream while packets are unread, these are handled
// first, and the end is reported by `readToEnd`. All connections share the listeners of streams; an error while data
// is read is reported by the session and does not reach the stream.

import type { ByteStream } from '../base/byte-stream.ts';
import { asError, ProtocolError } from '../base/errors.ts';
import { BaseTimer } from '../base/timing-wheel.ts';
import type { DisconnectReason } from '../events/reasons.ts';
import type { ProtocolVersion } from '../packets/types.ts';
import type { CountedStream, GatheringStream } from '../records/listener.ts';
import type { Ledger } from '../store/ledger.ts';
import { AckQueue, type AckSender } from './ack-queue.ts';
import { Pause } from './pause.ts';
import type { ConnectionCore, ConnectionOwner, ConnectionPorts } from './ports.ts';
import { Reader } from './reader.ts';
import { StorePause } from './store-pause.ts';
import { Writer } from './writer.ts';

/** Time that the stream of an ended connection has to deliver its output, before it is destroyed. */
const LINGER_MS = 3_000;
/** Bytes that the peer may send during that time. They are discarded; a peer that sends more is disconnected. */
const LINGER_BYTES = 262_144;

const CONNECTION = Symbol('connection');

type Attached = ByteStream & GatheringStream & CountedStream & { [CONNECTION]?: Connection<ConnectionOwner> };

/** True if a connection reads this stream, or did so before. */
export function isAttached(stream: ByteStream): boolean {
  return (stream as Attached)[CONNECTION] !== undefined;
}

/** The bytes in and out of one client: input (`reader`), output (`writer`), and the beginning and the end of the stream. */
export class Connection<S extends ConnectionOwner> implements ConnectionCore<S> {
  readonly stream: ByteStream;
  readonly ports: ConnectionPorts<S>;
  readonly reader: Reader<S>;
  readonly writer: Writer<S>;
  /** The session that handles the packets: a provisional one until CONNACK, then the client's. */
  session: S;
  isClosed = false;
  /**
   * True once CONNACK with success has been sent. From then on a close is reported by DISCONNECT, before that by CONNACK [MQTT-3.14.0-1].
   */
  isConnackSent = false;
  /** Protocol version of a CONNACK that refuses the client; undefined until the CONNECT has been read. */
  #answerVersion: ProtocolVersion | undefined = undefined;
  #pendingAcks: AckQueue<Connection<S>> | undefined = undefined;
  #storePause: StorePause | undefined = undefined;
  /** The reason why the stream ended, if it did so while bytes were unread. */
  #streamEnd: { readonly reason: DisconnectReason; readonly reasonCode: number | undefined } | undefined = undefined;
  #hasPlace = true;
  #linger: Linger | undefined = undefined;

  constructor(stream: ByteStream, ports: ConnectionPorts<S>, session: S, maxPacketSize: number) {
    this.stream = stream;
    this.ports = ports;
    this.session = session;
    this.reader = new Reader(this, maxPacketSize);
    this.writer = new Writer(this);
  }

  /** Start reading. All connections share the listener functions, because closures would cost memory for each idle connection. */
  open(): void {
    const stream = this.stream as Attached;
    stream[CONNECTION] = this as unknown as Connection<ConnectionOwner>;
    stream.on('data', onData);
    stream.on('drain', onDrain);
    stream.on('error', onError);
    stream.on('close', onClose);
    stream.on('end', onEnd);
    stream.resume(); // the app may have passed a paused stream
  }

  // ---------------------------------------------------------------------------------------------------------------- CONNECT

  /** Report to the stream that a packet was received before CONNACK. */
  packetTaken(): void {
    (this.stream as Attached).packetTaken?.();
  }

  /** Note that a CONNECT of this protocol version is being handled; a refusal is answered in that version. */
  connectReceived(version: ProtocolVersion | undefined): void {
    this.#answerVersion = version;
  }

  /** Get the protocol version of a CONNACK that refuses the client. There is never a second one [MQTT-3.2.0-2]. */
  takeAnswerVersion(): ProtocolVersion | undefined {
    const version = this.#answerVersion;
    this.#answerVersion = undefined;
    return version;
  }

  /** Assign the connection to this session. Output waits for `admitted`. */
  attach(session: S): void {
    this.session = session;
    this.writer.hold();
  }

  /**
   * Note that the CONNECT has been accepted, and CONNACK is in the output.
   * @param maxPacketSize maximum size of a packet from the client, in bytes
   * @param fastPath forward runs of QoS 0 frames of this layout without looking at each; 0: none
   */
  admitted(maxPacketSize: number, fastPath: 0 | 4 | 5): void {
    this.writer.release();
    this.isConnackSent = true;
    this.reader.admit(maxPacketSize, fastPath);
    (this.stream as Attached).admitted?.();
  }

  // ------------------------------------------------------------------------------------------------------------------ store

  /** The acknowledgements that wait for a commit; undefined if there have been none. */
  get pendingAcks(): AckQueue<Connection<S>> | undefined {
    return this.#pendingAcks;
  }

  /** The acknowledgements that wait for a commit; created at the first use. */
  queueAcks(ledger: Ledger, sender: AckSender<Connection<S>>): AckQueue<Connection<S>> {
    return (this.#pendingAcks ??= new AckQueue<Connection<S>>(this, ledger, sender));
  }

  /**
   * Charge the client for the bytes that its messages have added to the next commits, and pause reading from it while they are too many.
   * @param notedBefore bytes that the ledger had noted before these messages
   */
  chargeUnwritten(ledger: Ledger, notedBefore: number): void {
    const caused = ledger.unwritten.noted - notedBefore;
    if (caused > 0) (this.#storePause ??= new StorePause(this, ledger)).charge(caused);
  }

  // -------------------------------------------------------------------------------------------------------------------- end

  /** Stop counting the connection for `maxConnections` of the broker and of its listener, because it is closing. */
  #freePlace(): void {
    if (!this.#hasPlace) return;
    this.#hasPlace = false;
    this.ports.connections.placeFreed(this);
    (this.stream as Attached).placeFreed?.();
  }

  #close(): void {
    this.isClosed = true;
    this.reader.close();
  }

  /**
   * Send the output and end the stream. Data received after that is discarded. The stream is destroyed if the peer does not close within
   * `LINGER_MS`, and at once if nothing has been sent to the peer.
   */
  end(): void {
    if (this.isClosed) return;
    if (this.writer.sentPackets === 0) {
      this.destroy();
      return;
    }
    this.#freePlace();
    this.#close();
    const { stream } = this;
    if (stream.destroyed) {
      this.closed();
      return;
    }
    this.writer.finish();
    stream.end();
    stream.resume(); // a paused stream does not report that the peer has closed
    this.#linger = new Linger(this);
    this.ports.wheel.arm(this.#linger, LINGER_MS);
  }

  /** Count bytes that have arrived after the connection was closed. */
  discarded(bytes: number): void {
    this.#linger?.discarded(bytes);
  }

  /** Destroy the stream. Nothing more is sent. */
  destroy(): void {
    this.#freePlace();
    this.#close();
    if (!this.stream.destroyed) this.stream.destroy();
    this.closed(); // not every stream emits 'close'
  }

  /** Called when the stream has closed. */
  closed(): void {
    if (this.#linger !== undefined) this.ports.wheel.disarm(this.#linger);
    this.#linger = undefined;
    // A connection with unread bytes still counts until the broker has parsed them or, when it stops, has discarded them.
    if (this.isClosed || this.#streamEnd === undefined) this.ports.connections.streamClosed(this);
  }

  /** True if the peer has ended the stream, but received packets have not been parsed yet. */
  get hasPeerEnded(): boolean {
    return this.#streamEnd !== undefined;
  }

  /** Called when the packets that were received before the peer ended the stream have been handled. */
  readToEnd(): void {
    if (this.#streamEnd === undefined) return;
    this.writer.flush();
    this.lost(this.#streamEnd.reason, this.#streamEnd.reasonCode);
    this.stream.end();
  }

  /** Called when the peer has ended the stream. Unread packets are handled first, because there may be a DISCONNECT among them. */
  peerEnded(): void {
    this.#freePlace();
    if (this.reader.hasUnread() && !this.isClosed) this.#streamEnd ??= { reason: 'closed', reasonCode: undefined };
    else if (this.#streamEnd === undefined || this.isClosed) this.lost('closed');
  }

  /** Called when the stream failed. Packets that wait for the next turn are handled first; packets that wait for a hook are discarded. */
  failed(reason: DisconnectReason, reasonCode: number | undefined): void {
    this.#freePlace();
    if (this.reader.hasUnread(Pause.turn) && !this.isClosed) {
      this.#streamEnd = { reason, reasonCode };
      return;
    }
    this.lost(reason, reasonCode);
    this.destroy();
  }

  /**
   * Note that the peer has disconnected. Without effect after `end`: the stream may still deliver its output until `LINGER_MS` are over.
   */
  lost(reason: DisconnectReason, reasonCode?: number): void {
    if (this.isClosed) return;
    this.#close();
    this.writer.discard();
    this.session.connectionLost(reason, reasonCode);
    this.destroy();
  }
}

/** The time that an ended connection has to deliver its output, and the number of bytes that it has received since. */
class Linger extends BaseTimer {
  readonly #connection: { destroy(): void };
  #bytes = 0;

  constructor(connection: { destroy(): void }) {
    super();
    this.#connection = connection;
  }

  discarded(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > LINGER_BYTES) this.#connection.destroy();
  }

  ring(): void {
    this.#connection.destroy();
  }
}

function onData(this: Attached, chunk: Buffer | string): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  try {
    connection.reader.receive(
      typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk as Uint8Array)
    );
  } catch (error) {
    connection.session.failInternally(error, 'reading a chunk');
  }
}

function onDrain(this: Attached): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  try {
    connection.writer.drained();
  } catch (error) {
    connection.session.failInternally(error, 'draining');
  }
}

function onError(this: Attached, error: unknown): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  const reason = connection.session.streamFailed(asError(error));
  connection.failed(reason, error instanceof ProtocolError ? error.reasonCode : undefined);
}

function onEnd(this: Attached): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  connection.peerEnded();
}

function onClose(this: Attached): void {
  const connection = this[CONNECTION] as Connection<ConnectionOwner>;
  connection.peerEnded();
  connection.closed();
}
