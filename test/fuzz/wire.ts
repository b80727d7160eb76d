import { Duplex } from 'node:stream';
import type { Broker } from '../../lib/broker/broker.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import type { TransportInfo } from '../../lib/records/client.ts';

type Done = (error?: Error | null) => void;

export interface WireOptions {
  /** As many bytes unsent, and `write` returns false. Default 16,384, as a socket of Node's has. */
  readonly highWaterMark?: number;
  /** False: nothing that the broker writes is taken until `listen(true)`. */
  readonly isListening?: boolean;
  /** False: no 'close' ever comes. */
  readonly emitClose?: boolean;
  readonly autoDestroy?: boolean;
  /** Called with every write; what it throws comes out of the broker's `stream.write`. */
  readonly onWrite?: () => void;
}

/**
 * The broker's end of a connection, with the test in the place of the network: what `say` is given the broker reads at once, what it
 * writes lies in `heard`.
 */
export class Wire extends Duplex {
  /** What the broker has written and the peer has taken. */
  heard: Buffer[] = [];
  heardBytes = 0;
  /** The broker has ended its side. */
  isEnded = false;
  /** The broker, or an error, has destroyed it. */
  isCut = false;
  #isListening: boolean;
  #held: { readonly chunks: readonly Buffer[]; readonly done: Done } | undefined;
  readonly #onWrite: (() => void) | undefined;

  constructor(options: WireOptions = {}) {
    const { highWaterMark = 16_384, isListening = true, onWrite, ...rest } = options;
    super({ highWaterMark, ...rest });
    this.#isListening = isListening;
    this.#onWrite = onWrite;
  }

  /** Bytes of the peer: the broker reads them before this returns, unless it has paused. */
  say(...chunks: readonly Buffer[]): void {
    for (const chunk of chunks) if (!this.destroyed && !this.readableEnded) this.push(chunk);
  }

  /** The peer ends its side. */
  leave(): void {
    if (!this.destroyed) this.push(null);
  }

  /** From now on the peer takes what the broker writes, or does not. */
  listen(isListening: boolean): void {
    this.#isListening = isListening;
    const held = this.#held;
    if (!isListening || held === undefined) return;
    this.#held = undefined;
    this.#take(held.chunks);
    held.done();
  }

  /** The peer takes the write that waits, and none of those behind it. */
  sip(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) return;
    this.#take(held.chunks);
    held.done();
  }

  /** Everything heard since the last call, as one. */
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
    this.#held = undefined;
    done(error);
  }

  #accept(chunks: readonly Buffer[], done: Done): void {
    if (!this.#isListening) {
      this.#held = { chunks, done };
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

/** A client at the far end of a wire: says packets, reads strictly what comes back. */
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
   * The packets that came since the last call; all of them stay in `received`.
   * @throws ProtocolError for bytes that a server must not send
   */
  take(): Packet[] {
    if (this.wire.heard.length === 0) return [];
    const packets = this.#reader.push(this.wire.hear());
    this.received.push(...packets);
    return packets;
  }

  /** Nothing more can come: the broker has ended or cut the connection. */
  get isClosed(): boolean {
    return this.wire.isEnded || this.wire.isCut || this.wire.destroyed;
  }
}

/** Let the broker's turns pass until it has read and answered all that this peer said, however many shares of a turn that takes. */
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

/** Let the broker's turns pass. */
export async function turns(count = 1): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
