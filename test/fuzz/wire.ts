import { Duplex } from 'node:stream';
import type { Broker } from '../../lib/broker/broker.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import type { TransportInfo } from '../../lib/records/client.ts';

type Done = (error?: Error | null) => void;

export interface WireOptions {
  /** Number of unsent bytes at which `write` returns false. Default 16,384, as for a socket of Node. */
  readonly highWaterMark?: number;
  /** If false, the output of the broker is not read until `listen(true)`. */
  readonly isListening?: boolean;
  /** If false, no 'close' event is emitted. */
  readonly emitClose?: boolean;
  readonly autoDestroy?: boolean;
  /** Called with every write; if it throws, the broker's `stream.write` throws. */
  readonly onWrite?: () => void;
}

/**
 * The broker's end of a connection, with the test instead of the network: the broker reads the arguments of `say` at once, and its output
 * is added to `heard`.
 */
class Wire extends Duplex {
  /** The chunks that the broker has written and the peer has read. */
  heard: Buffer[] = [];
  heardBytes = 0;
  /** True if the broker has ended its side. */
  isEnded = false;
  /** True if the broker, or an error, has destroyed the stream. */
  isCut = false;
  #isListening: boolean;
  #pending: { readonly chunks: readonly Buffer[]; readonly done: Done } | undefined;
  readonly #onWrite: (() => void) | undefined;

  constructor(options: WireOptions = {}) {
    const { highWaterMark = 16_384, isListening = true, onWrite, ...rest } = options;
    super({ highWaterMark, ...rest });
    this.#isListening = isListening;
    this.#onWrite = onWrite;
  }

  /** Sends bytes of the peer. The broker reads them before this returns, unless it has paused. */
  say(...chunks: readonly Buffer[]): void {
    for (const chunk of chunks) if (!this.destroyed && !this.readableEnded) this.push(chunk);
  }

  /** Ends the side of the peer. */
  leave(): void {
    if (!this.destroyed) this.push(null);
  }

  /** Sets whether the peer reads the output of the broker. */
  listen(isListening: boolean): void {
    this.#isListening = isListening;
    const pending = this.#pending;
    if (!isListening || pending === undefined) return;
    this.#pending = undefined;
    this.#take(pending.chunks);
    pending.done();
  }

  /** Lets the peer read the pending write, and none after it. */
  sip(): void {
    const pending = this.#pending;
    this.#pending = undefined;
    if (pending === undefined) return;
    this.#take(pending.chunks);
    pending.done();
  }

  /** Returns all bytes read since the last call. */
  hear(): Buffer {
    const all = this.heard.length === 1 ? this.heard[0] : Buffer.concat(this.heard);
    this.heard = [];
    return all;
  }

  // biome-ignore lint/suspicious/noExplicitAny: one signature for the several of Duplex
  override write(chunk: any, ...rest: any[]): boolean {
    this.#onWrite?.();
    return super.write(chunk, ...rest);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#accept([chunk], done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: Done): void {
    this.#accept(
      chunks.map(({ chunk }) => chunk),
      done
    );
  }

  override _final(done: Done): void {
    this.isEnded = true;
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    this.isCut = true;
    this.#pending = undefined;
    done(error);
  }

  #accept(chunks: readonly Buffer[], done: Done): void {
    if (!this.#isListening) {
      this.#pending = { chunks, done };
      return;
    }
    this.#take(chunks);
    done();
  }

  #take(chunks: readonly Buffer[]): void {
    for (const chunk of chunks) {
      this.heard.push(chunk);
      this.heardBytes += chunk.length;
    }
  }
}

/** A client on the other side of a wire: it sends packets and reads the answers strictly. */
export class Peer {
  readonly wire: Wire;
  readonly version: ProtocolVersion;
  readonly received: Packet[] = [];
  readonly #reader: PacketReader;

  constructor(broker: Broker, version: ProtocolVersion, options: WireOptions & { readonly meta?: TransportInfo } = {}) {
    const { meta = { transport: 'stream' }, ...rest } = options;
    this.version = version;
    this.wire = new Wire(rest);
    this.#reader = new PacketReader({ side: 'client', version });
    broker.handle(this.wire, meta);
  }

  say(...packets: readonly (Packet | Buffer)[]): void {
    for (const packet of packets) this.wire.say(Buffer.isBuffer(packet) ? packet : encode(packet, this.version));
  }

  /**
   * Returns the packets received since the last call; all of them remain in `received`.
   * @throws ProtocolError for bytes that a server must not send
   */
  take(): Packet[] {
    if (this.wire.heard.length === 0) return [];
    const packets = this.#reader.push(this.wire.hear());
    this.received.push(...packets);
    return packets;
  }

  /** True if the broker has ended or destroyed the connection. */
  get isClosed(): boolean {
    return this.wire.isEnded || this.wire.isCut || this.wire.destroyed;
  }
}

/** Waits until the broker has read and answered everything that this peer sent, for any number of shares of a turn. */
export async function quiet(peer: Peer): Promise<void> {
  const { wire } = peer;
  let last = -1;
  for (let still = 0; still < 3; still++) {
    await turns(1);
    const now = wire.heardBytes - wire.readableLength;
    if (now !== last || (wire.isPaused() && !wire.destroyed)) still = -1;
    last = now;
  }
}

/** Waits for turns of the broker. */
export async function turns(count = 1): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
