import { encode, PacketReader } from '../../lib/adapter.ts';
import type { ByteStream, Packet, ProtocolVersion } from '../../lib/index.ts';

/** The relay of a leg, as far as the leg needs it. */
interface LegOwner {
  /** Process a packet. Errors close the connections. */
  receive(packet: Packet): void;
  /** Called when the packets of a chunk have been processed. */
  processed(): void;
  /** Called when the stream has failed or closed, or its bytes are not MQTT. */
  closed(error: Error): void;
  /** Called when the stream stops or resumes accepting output. */
  blocked(isBlocked: boolean): void;
}

/** Bytes that may be added to the output of a blocked stream. More than the acknowledgements of all packet ids. */
const MAX_BLOCKED_BYTES = 1_048_576;

/** One side of a bridge: packets over a stream. Packets are written together by `flush`. */
export class Leg {
  readonly version: ProtocolVersion;
  readonly #stream: ByteStream;
  readonly #reader: PacketReader;
  readonly #owner: LegOwner;
  readonly #name: string;
  #output: Buffer[] = [];
  /** Bytes that were queued when the stream stopped accepting output. */
  #blockedBytes: number | undefined = undefined;
  #isHeld = false;
  #isReading = false;
  #isClosed = false;
  /** True if bytes were received since the last call of `heard`. */
  #isHeard = false;

  /** @param name for messages: `the remote server` */
  constructor(stream: ByteStream, version: ProtocolVersion, maximumPacketSize: number, name: string, owner: LegOwner) {
    this.version = version;
    this.#stream = stream;
    this.#owner = owner;
    this.#name = name;
    this.#reader = new PacketReader({ side: 'client', version, maximumPacketSize });
    stream.on('error', (error) => this.#end(error));
    stream.on('end', () => this.#end(undefined));
    stream.on('close', () => this.#end(undefined));
    stream.on('drain', () => {
      this.#blockedBytes = undefined;
      if (!this.#isClosed) owner.blocked(false);
    });
    stream.on('data', (chunk) => {
      if (this.#isClosed) return;
      this.#isHeard = true;
      this.#reader.feed(chunk);
      this.#read();
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Return whether bytes were received since the last call, or reading is paused. */
  heard(): boolean {
    const isHeard = this.#isHeard || this.#stream.isPaused() || this.#isHeld;
    this.#isHeard = false;
    return isHeard;
  }

  /** True if the other side reads nothing although more was queued than pending acknowledgements can amount to. */
  get isIgnored(): boolean {
    return this.#blockedBytes !== undefined && this.#stream.writableLength > this.#blockedBytes + MAX_BLOCKED_BYTES;
  }

  /** Process no packets until `release`. */
  hold(): void {
    this.#isHeld = true;
    this.#stream.pause();
  }

  /** Process the held packets, and all later ones. */
  release(): void {
    if (!this.#isHeld || this.#isClosed) return;
    this.#isHeld = false;
    this.#stream.resume();
    this.#read();
  }

  /** Pause or resume reading. Packets that were already read are processed. */
  pause(isPaused: boolean): void {
    if (this.#isClosed || this.#isHeld) return;
    if (isPaused) this.#stream.pause();
    else this.#stream.resume();
  }

  /** Send a packet with the next `flush`. @throws InvalidInput VALUE_TOO_LONG */
  send(packet: Packet): void {
    this.#output.push(encode(packet, this.version));
  }

  /** Send an encoded packet with the next `flush`. */
  sendBytes(packet: Buffer): void {
    this.#output.push(packet);
  }

  /** Write everything that was sent since the last call. */
  flush(): void {
    const output = this.#output;
    if (output.length === 0 || this.#isClosed) return;
    this.#output = [];
    const bytes = output.length === 1 ? output[0] : Buffer.concat(output);
    const hasRoom = this.#stream.writeUnchanged?.(bytes) ?? this.#stream.write(bytes);
    if (hasRoom) return;
    this.#blockedBytes ??= this.#stream.writableLength;
    this.#owner.blocked(true);
  }

  /**
   * Close without calling `closed`.
   * @param last a packet to send first, if the stream accepts output
   */
  close(last?: Packet): void {
    if (this.#isClosed) return;
    if (last !== undefined && !this.#stream.writableNeedDrain) {
      this.send(last);
      this.flush();
      this.#isClosed = true;
      const { destroySoon } = this.#stream as { destroySoon?(): void };
      // a socket would wait for the other side to end as well
      if (destroySoon === undefined) this.#stream.end();
      else destroySoon.call(this.#stream);
      this.#stream.resume(); // otherwise a paused stream never ends
      return;
    }
    this.#isClosed = true;
    this.#stream.destroy();
  }

  #read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (!this.#isHeld && !this.#isClosed) {
        const packet = this.#reader.next();
        if (packet === undefined) break;
        this.#owner.receive(packet);
      }
    } catch (error) {
      this.#end(error as Error);
    } finally {
      this.#isReading = false;
    }
    this.#owner.processed();
  }

  #end(error: Error | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stream.destroy();
    this.#owner.closed(error ?? new Error(`${this.#name} has closed the connection`));
  }
}
