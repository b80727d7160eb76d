import type { ByteStream } from '../base/byte-stream.ts';
import type { Clock } from '../base/clock.ts';
import { asError, BrokerError } from '../base/errors.ts';
import { encode } from '../packets/encode.ts';
import { PacketReader } from '../packets/packet-reader.ts';
import type { ConnackPacket, Packet, ProtocolVersion } from '../packets/types.ts';
import { type ClientOptions, Refused } from './options.ts';

/** The part of a client that its connection uses. */
interface ClientConnectionOwner {
  /** Called with each packet, after it was encoded to be sent or before `receive`. */
  seen(direction: 'sent' | 'received', packet: Packet): void;
  /** Process a received packet. @throws ProtocolError if the packet is not allowed */
  receive(packet: Packet): void;
  /** Called if the bytes are not MQTT or `receive` has thrown. */
  failed(error: Error): void;
  /** Called when the stream accepts data again, after `send` has returned false. */
  drained(): void;
  /** Called once. */
  closed(): void;
  /** Tell whether to read from the stream: the application takes the messages, or waits for a response. */
  isReading(): boolean;
}

/** The network connection of a client: packets over a stream, from the CONNECT until one side closes the stream. */
export class ClientConnection {
  readonly version: ProtocolVersion;
  readonly #stream: ByteStream;
  readonly #clock: Clock;
  readonly #owner: ClientConnectionOwner;
  readonly #reader: PacketReader;
  #clientId: string;
  #connack: ConnackPacket | undefined;
  #failure: Error | undefined;
  #lastSentMs = 0;
  #resumedMs = -Infinity;
  #isClosing = false;
  #isClosed = false;

  constructor(stream: ByteStream, options: ClientOptions, clock: Clock, owner: ClientConnectionOwner) {
    this.#stream = stream;
    this.#clock = clock;
    this.#owner = owner;
    this.#clientId = options.clientId ?? '';
    this.version = options.protocolVersion ?? 5;
    const maximumPacketSize = options.maximumPacketSize ?? options.properties?.maximumPacketSize;
    this.#reader = new PacketReader({ side: 'client', version: this.version, maximumPacketSize });
    stream.on('data', (chunk: Buffer) => this.#read(chunk));
    stream.on('error', (error) => {
      this.#failure ??= error;
      stream.destroy();
      this.#closed(); // not every stream emits 'close'
    });
    stream.on('end', () => stream.destroy()); // also closes streams that allow half-open connections
    stream.on('drain', () => owner.drained());
    stream.on('close', () => this.#closed());
  }

  /** Close if the stream was closed before. */
  closeIfEnded(): void {
    const { destroyed, readableEnded, writableEnded, errored } = this.#stream;
    if (!destroyed && !readableEnded && !writableEnded) return;
    this.#failure ??= errored ?? undefined;
    this.#stream.destroy();
    this.#closed(); // a stream that is already closed does not emit 'close' again
  }

  get clientId(): string {
    return this.#clientId;
  }

  /** The CONNACK that has accepted the client. */
  get connack(): ConnackPacket | undefined {
    return this.#connack;
  }

  /** True if the client is accepted and the connection is open. */
  get isConnected(): boolean {
    return this.#connack !== undefined && !this.#isClosing && !this.#isClosed && !this.#stream.destroyed;
  }

  /** True if the client has ended the connection. Packets are no longer processed. */
  get isClosing(): boolean {
    return this.#isClosing || this.#isClosed;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The reason why the connection was closed; undefined: it was closed normally. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** The monotonic time of the last packet sent. */
  get lastSentMs(): number {
    return this.#lastSentMs;
  }

  /** The monotonic time since which the stream has been read without a pause; Infinity while it is paused. */
  get readSinceMs(): number {
    return this.#stream.isPaused() ? Infinity : this.#resumedMs;
  }

  /** Note that the server has accepted the client. */
  accepted(connack: ConnackPacket): void {
    this.#connack = connack;
    this.#clientId = connack.properties?.assignedClientIdentifier ?? this.#clientId;
  }

  /** @throws BrokerError NOT_CONNECTED */
  checkConnected(): void {
    if (!this.isConnected) throw new BrokerError('NOT_CONNECTED', `client "${this.#clientId}" is not connected`);
  }

  /** Check that the server accepts a packet of this size. @throws BrokerError PACKET_TOO_LARGE */
  checkSize(packet: Packet): void {
    const maximum = this.#connack?.properties?.maximumPacketSize;
    if (maximum === undefined) return;
    const size = encode({ ...packet, messageId: 1 } as Packet, this.version).length;
    if (size > maximum)
      throw new BrokerError('PACKET_TOO_LARGE', `packet of ${size} bytes: the server accepts at most ${maximum} bytes`);
  }

  /** Send a packet, unless the stream is closed. @returns false if the stream's buffer is full */
  send(packet: Packet): boolean {
    if (this.#isClosed || this.#stream.writableEnded || this.#stream.destroyed) return true;
    const bytes = encode(packet, this.version);
    this.#lastSentMs = this.#clock.monotonic();
    this.#owner.seen('sent', packet);
    if (bytes.length === 0) return true;
    return this.#stream.writeUnchanged?.(bytes) ?? this.#stream.write(bytes);
  }

  /** Pause or resume the stream, after the answer of `ClientConnectionOwner.isReading` may have changed. */
  updateFlow(): void {
    const isWanted = this.#isClosing || this.#owner.isReading();
    if (isWanted === !this.#stream.isPaused() || this.#isClosed) return;
    if (!isWanted) {
      this.#stream.pause();
      return;
    }
    this.#resumedMs = this.#clock.monotonic();
    this.#stream.resume();
  }

  /** Close the stream after everything that was sent. */
  end(): void {
    this.#isClosing = true;
    this.#stream.end();
    this.updateFlow(); // the end of the stream comes after the unread packets
  }

  /** Close the stream at once, and process no more packets. */
  refuse(error: Error): void {
    this.#isClosing = true;
    this.destroy(error);
  }

  /** Close the stream at once. @param error the reason, if it was not requested by the application */
  destroy(error = this.#failure): void {
    this.#failure = error;
    this.#stream.destroy();
  }

  /** Create the error of an operation that waits while the connection is closed. */
  closedError(): Error {
    const failure = this.#failure;
    if (failure instanceof Refused && failure.code === 'CONNECT_REFUSED') return failure;
    const why = failure === undefined ? '' : `: ${failure.message}`;
    return new BrokerError('CONNECTION_CLOSED', `the connection of client "${this.#clientId}" is closed${why}`, {
      cause: failure
    });
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader.feed(chunk);
      for (let packet = this.#reader.next(); packet !== undefined; packet = this.#reader.next()) {
        if (this.isClosing) return;
        this.#owner.seen('received', packet);
        this.#owner.receive(packet);
      }
    } catch (error) {
      this.#owner.failed(asError(error));
    }
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#owner.closed();
  }
}
