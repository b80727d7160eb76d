import { encode, PacketReader } from '../../lib/adapter.ts';
import type { ByteStream, Packet, ProtocolVersion } from '../../lib/index.ts';

/** What a leg asks of the relay that it belongs to. */
interface LegOwner {
  /** Process a packet. What it throws closes the connections. */
  receive(packet: Packet): void;
  /** The packets of a chunk have been processed. */
  processed(): void;
  /** The stream has failed or closed, or its bytes are not MQTT. */
  closed(error: Error): void;
  /** The stream accepts no more output for now, or does so again. */
  blocked(isBlocked: boolean): void;
}

/** Bytes that may be added to the output of a stream that accepts none. More than the acknowledgements of all packet ids. */
const MOST_BLOCKED_BYTES = 1_048_576;

/** One side of a bridge: packets over a stream. Packets that are sent leave together with `flush`. */
export class Leg {
  readonly version: ProtocolVersion;
  readonly #stream: ByteStream;
  readonly #reader: PacketReader;
  readonly #owner: LegOwner;
  readonly #name: string;
  #output: Buffer[] = [];
  /** Bytes that waited when the stream stopped to accept output. */
  #blockedBytes: number | undefined = undefined;
  #isHeld = false;
  #isReading = false;
  #isClosed = false;
  /** Bytes were received since `heard` was last asked. */
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

  /** Whether bytes were received since the last call, or reading is paused. */
  heard(): boolean {
    const isHeard = this.#isHeard || this.#stream.isPaused() || this.#isHeld;
    this.#isHeard = false;
    return isHeard;
  }

  /** Whether the other side takes nothing, although so much was added that it cannot be acknowledgements that it waits for. */
  get isIgnored(): boolean {
    return this.#blockedBytes !== undefined && this.#stream.writableLength > this.#blockedBytes + MOST_BLOCKED_BYTES;
  }

  /** Process no packets until `release`. */
  hold(): void {
    this.#isHeld = true;
    this.#stream.pause();
  }

  /** Process the packets that were held, and those that follow. */
  release(): void {
    if (!this.#isHeld || this.#isClosed) return;
    this.#isHeld = false;
    this.#stream.resume();
    this.#read();
  }

  /** Read no more bytes, or go on with it. Packets that were read are processed. */
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

  /** Write what was sent since the last call. */
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

  /** Close without a call of `closed`. @param last a packet that is sent before, if the stream accepts output */
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
      this.#stream.resume(); // otherwise a stream that is paused never ends
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
