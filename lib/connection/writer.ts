// Nothing is written when a packet is added: the output of a turn leaves in one write when the turn ends (`flush`),
// or earlier if it is large. `isBlocked` is a plain field that delivery reads; a blocked connection still collects
// answers, which pause the reader when they are too many. Before CONNACK the output is held, so that a message that a
// listener publishes cannot come before it. An error of a write is not thrown, because the message of another client
// may be the cause of the write; the stream is destroyed and reports it.

import type { ByteStream } from '../base/byte-stream.ts';
import { asError } from '../base/errors.ts';
import { Metric } from '../events/metrics.ts';
import type { Frame } from '../packets/message.ts';
import { giveBack, markedCopy, type Output, takeOutput, writeOutput } from './output.ts';
import { Pause } from './pause.ts';
import type { ConnectionCore, ConnectionOwner } from './ports.ts';

/** Output above this size is written before the turn ends. */
const EARLY_FLUSH_BYTES = 131_072;
/** Bytes of answers (acknowledgements, PINGRESP) that a client may leave unread before reading from it is paused. */
const MAX_UNREAD_ANSWERS = 65_536;

/** A socket of Node.js, which knows how many bytes of its pending writes have not been passed to the operating system. */
type MaybeSocket = ByteStream & { readonly _handle?: { readonly writeQueueSize?: number } | null };

/** The state of a stream with too many unsent bytes, when progress was last checked. */
interface Stall {
  /** Monotonic milliseconds at which the stream last sent something. */
  sinceMs: number;
  /** Unsent bytes of the stream, and of its socket if it has one. */
  unsent: number;
  unsentBySocket: number;
}

/** The packets to one client. They are collected, so that a turn costs one write. */
export class Writer<S extends ConnectionOwner> {
  readonly #connection: ConnectionCore<S>;
  /** True if the stream has more unsent bytes than `outputHighWaterMark`, or CONNACK is not sent: messages go to the backlog. */
  isBlocked = false;
  sentBytes = 0;
  sentWrites = 0;
  sentPackets = 0;
  sentMessages = 0;
  #output: Output | undefined = undefined;
  #outputBytes = 0;
  #stall: Stall | undefined = undefined;

  constructor(connection: ConnectionCore<S>) {
    this.#connection = connection;
  }

  get isClosed(): boolean {
    return this.#connection.isClosed;
  }

  // ---------------------------------------------------------------------------------------------------------------- packets

  /** Add a frame to the output. @param mark -1 to send the frame unchanged, else its first byte and packet id (`first << 16 | id`) */
  #push(frame: Frame, mark: number, bytes: number): void {
    (this.#output ?? this.#begin()).add(frame, mark);
    this.#outputBytes += bytes;
    if (this.#outputBytes > EARLY_FLUSH_BYTES) this.flush();
  }

  #begin(): Output {
    const output = takeOutput();
    this.#output = output;
    this.#connection.ports.turn.flushLater(this.#connection);
    return output;
  }

  /** Add a PUBLISH to the output. @param mark see `#push` */
  sendMessage(frame: Frame, mark: number): void {
    this.#push(frame, mark, frame.end - frame.start);
    this.sentPackets++;
    this.sentMessages++;
    const { metrics, taps } = this.#connection.ports;
    metrics.counts[Metric.packetsSent]++;
    if (taps.isOpen) taps.sent(this.#connection, markedCopy(frame, mark));
  }

  /** Add adjacent QoS 0 frames to the output. */
  sendRun(run: Frame, bytes: number, count: number): void {
    this.#push(run, -1, bytes);
    this.sentPackets += count;
    this.sentMessages += count;
    this.#connection.ports.metrics.counts[Metric.packetsSent] += count;
  }

  /** Add an acknowledgement of four bytes to the output. */
  acknowledge(value: number): void {
    (this.#output ?? this.#begin()).add(undefined, value);
    this.#outputBytes += 4;
    this.sentPackets++;
    const { metrics, taps } = this.#connection.ports;
    metrics.counts[Metric.packetsSent]++;
    if (taps.isOpen)
      taps.sent(this.#connection, Buffer.from([value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]));
    this.#checkUnreadAnswers();
  }

  /** Add a packet other than PUBLISH to the output. @param metric its counter */
  send(packet: Buffer, metric: number): void {
    if (packet.length > 0) this.sendFrame({ buf: packet, start: 0, end: packet.length, packetIdAt: 0 }, metric);
  }

  /** Add a packet that fills its buffer to the output. @param metric its counter */
  sendFrame(frame: Frame, metric: number): void {
    this.#push(frame, -1, frame.end);
    this.sentPackets++;
    const { metrics, taps } = this.#connection.ports;
    metrics.counts[Metric.packetsSent]++;
    metrics.counts[metric]++;
    if (taps.isOpen) taps.sent(this.#connection, frame.buf);
    this.#checkUnreadAnswers();
  }

  #checkUnreadAnswers(): void {
    if (this.isBlocked && this.#outputBytes > MAX_UNREAD_ANSWERS) this.#connection.reader.pause(Pause.answers);
  }

  // ----------------------------------------------------------------------------------------------------------------- stream

  /** Write the output to the stream, unless the stream has too many unsent bytes. */
  flush(): void {
    const output = this.#output;
    if (output === undefined || this.isBlocked) return;
    const { stream, ports } = this.#connection;
    const bytes = this.#outputBytes;
    this.#output = undefined;
    this.#outputBytes = 0;
    if (!stream.writable) {
      giveBack(output);
      return;
    }
    this.sentBytes += bytes;
    this.sentWrites++;
    ports.metrics.counts[Metric.bytesSent] += bytes;
    let isRoomy: boolean;
    try {
      isRoomy = writeOutput(output, bytes, stream);
    } catch (error) {
      // Not rethrown: this may happen while another client's message is routed. The stream emits the error.
      stream.destroy(asError(error));
      return;
    }
    if (!isRoomy && stream.writableLength > ports.limits.outputHighWaterMark) this.#block();
  }

  #block(): void {
    const { ports, session } = this.#connection;
    this.isBlocked = true;
    this.#stall = { sinceMs: ports.clock.monotonic(), unsent: 0, unsentBySocket: 0 };
    this.checkProgress(this.#stall.sinceMs);
    session.blocked();
  }

  /** Number of bytes that the stream has not sent, or has not received. */
  get unsentBytes(): number {
    return this.#connection.stream.writableLength + this.#outputBytes;
  }

  /**
   * Monotonic milliseconds since which the stream has had too many unsent bytes and has sent none of them; `Infinity`: it is not blocked.
   */
  get stalledSinceMs(): number {
    return this.#stall === undefined ? Infinity : this.#stall.sinceMs;
  }

  /**
   * While blocked: record whether the stream has sent anything since the last check. Nothing is written in the meantime, so the number of
   * unsent bytes can only decrease. A stream counts a write until it has completed; a socket also knows how much of the write has been
   * sent.
   */
  checkProgress(nowMs: number): void {
    const stall = this.#stall;
    if (stall === undefined) return;
    const { writableLength, _handle } = this.#connection.stream as MaybeSocket;
    const bySocket = _handle?.writeQueueSize ?? 0;
    if (writableLength === stall.unsent && bySocket === stall.unsentBySocket) return;
    stall.unsent = writableLength;
    stall.unsentBySocket = bySocket;
    stall.sinceMs = nowMs;
  }

  /** Continue writing, because the stream has sent its buffered bytes. */
  drained(): void {
    const connection = this.#connection;
    connection.ports.time.read(); // queued messages may have expired
    if (!this.isBlocked) return;
    this.release();
    this.flush();
    if (this.isBlocked) return;
    connection.reader.resume(Pause.answers);
    if (!connection.isClosed) connection.session.unblocked();
  }

  // -------------------------------------------------------------------------------------------------------- begin and end

  /** Keep the output until `release`, because CONNACK is the first packet. The time until then counts for `slowConsumerTimeout`. */
  hold(): void {
    this.isBlocked = true;
    this.#stall = { sinceMs: this.#connection.ports.time.nowMs, unsent: 0, unsentBySocket: 0 };
  }

  /** Pass output to the stream from now on. */
  release(): void {
    this.isBlocked = false;
    this.#stall = undefined;
  }

  /** Write the rest of the output, even if the stream has many unsent bytes. */
  finish(): void {
    this.release();
    this.flush();
  }

  /** Discard the output, because the client has disconnected. */
  discard(): void {
    this.#output = undefined;
  }
}
