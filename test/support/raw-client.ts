import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import type { Broker } from '../../lib/broker/broker.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { ConnackPacket, ConnectPacket, Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import type { TransportInfo } from '../../lib/records/client.ts';

/** Milliseconds of real time after which a missing packet is a failure. On a busy machine a process may be suspended for seconds. */
const PATIENCE_MS = 30_000;

/** AckPacket has four values of `cmd`, so Extract would not find it. */
type PacketOf<C extends Packet['cmd'], P = Packet> = P extends { cmd: infer K } ? (C extends K ? P : never) : never;

/** The content of CONNECT, and the connection it is sent on. */
export interface RawClientOptions extends Partial<Omit<ConnectPacket, 'cmd' | 'protocolVersion'>> {
  /** Default 5. */
  readonly version?: ProtocolVersion;
  /** `false`: open the stream and send nothing. */
  readonly connect?: boolean;
  /** Information of the listener about the connection. */
  readonly meta?: Partial<TransportInfo>;
}

let lastClient = 0;

/** Builds a CONNECT with defaults for every field that the test does not set. */
export function connectPacket(options: RawClientOptions = {}): ConnectPacket {
  const { version = 5, connect: _connect, meta: _meta, ...rest } = options;
  return {
    cmd: 'connect',
    protocolVersion: version,
    bridge: false,
    clientId: `raw${++lastClient}`,
    clean: true,
    keepalive: 0,
    ...rest
  };
}

/** Connects a client that sends any packet, valid or invalid, over `broker.stream()`. By default it has received its CONNACK. */
export async function rawClient(broker: Broker, options: RawClientOptions = {}): Promise<RawClient> {
  const client = new RawClient(broker.stream(options.meta), options.version ?? 5);
  if (options.connect === false) return client;
  client.send(connectPacket(options));
  client.connack = await client.next('connack');
  return client;
}

/** A client that reads and writes single packets on a stream. */
export class RawClient {
  readonly stream: Duplex;
  readonly version: ProtocolVersion;
  /** All received packets, in order. */
  readonly received: Packet[] = [];
  /** Set by `rawClient`. */
  connack: ConnackPacket | undefined;
  /** True if the broker has ended or destroyed the stream. */
  isClosed = false;
  readonly #reader: PacketReader;
  readonly #waiting = new Set<() => void>();
  #at = 0;
  #error: unknown;

  constructor(stream: Duplex, version: ProtocolVersion) {
    this.stream = stream;
    this.version = version;
    this.#reader = new PacketReader({ side: 'client', version });
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
    stream.on('error', () => this.#close());
    stream.on('end', () => this.#close());
    stream.on('close', () => this.#close());
  }

  /** Sends packets in one write. */
  send(...packets: readonly (Packet | Buffer)[]): void {
    const parts = packets.map((packet) => (Buffer.isBuffer(packet) ? packet : encode(packet, this.version)));
    this.stream.write(Buffer.concat(parts));
  }

  /** Sends bytes given in hexadecimal; spaces are ignored. */
  sendBytes(hex: string): void {
    this.stream.write(Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'));
  }

  /** Returns the packet after the last returned one, which must be of this type. */
  async next<C extends Packet['cmd']>(cmd: C): Promise<PacketOf<C>>;
  async next(): Promise<Packet>;
  async next(cmd?: string): Promise<Packet> {
    await this.#until(() => this.#at < this.received.length || this.isClosed, cmd ?? 'a packet');
    if (this.#error !== undefined) throw this.#error;
    const packet = this.received[this.#at];
    assert.ok(packet !== undefined, `the connection was closed, ${cmd ?? 'a packet'} was waited for`);
    this.#at++;
    if (cmd !== undefined) assert.equal(packet.cmd, cmd, `waited for ${cmd}, got ${JSON.stringify(packet)}`);
    return packet;
  }

  /** Sends PINGREQ and returns the packets that arrived before PINGRESP. */
  async rest(): Promise<Packet[]> {
    this.send({ cmd: 'pingreq' });
    const packets: Packet[] = [];
    for (let packet = await this.next(); packet.cmd !== 'pingresp'; packet = await this.next()) packets.push(packet);
    return packets;
  }

  /** Checks that no packet has arrived since the last returned one, and that the connection is open. */
  async nothing(): Promise<void> {
    assert.deepEqual(await this.rest(), []);
  }

  /**
   * Checks that the broker closes the connection, with this DISCONNECT for 5.0 and without one for 3.x.
   * @returns the packets before that
   */
  async refused(reasonCode: number): Promise<Packet[]> {
    await this.closed();
    const packets = this.received.slice(this.#at);
    this.#at = this.received.length;
    const last = packets.at(-1);
    if (this.version !== 5) {
      assert.ok(last?.cmd !== 'disconnect');
      return packets;
    }
    assert.equal(last?.cmd, 'disconnect', `closed without DISCONNECT, after ${JSON.stringify(packets)}`);
    const got = (last as PacketOf<'disconnect'>).reasonCode;
    assert.equal(got, reasonCode, `DISCONNECT 0x${got.toString(16)}, not 0x${reasonCode.toString(16)}`);
    return packets.slice(0, -1);
  }

  /**
   * Waits until the broker has closed the connection.
   * @returns all received packets
   */
  async closed(): Promise<Packet[]> {
    await this.#until(() => this.isClosed, 'the close');
    if (this.#error !== undefined) throw this.#error;
    return this.received;
  }

  /** Destroys the connection without DISCONNECT. */
  cut(): void {
    this.stream.destroy();
  }

  #take(chunk: Buffer): void {
    try {
      this.received.push(...this.#reader.push(chunk));
    } catch (error) {
      this.#error = error;
      this.isClosed = true;
    }
    this.#wake();
  }

  #close(): void {
    this.isClosed = true;
    if (!this.stream.destroyed) this.stream.destroy();
    this.#wake();
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  #until(isThere: () => boolean, what: string): Promise<void> {
    if (isThere()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(guard);
        this.#waiting.delete(look);
      };
      const look = () => {
        if (!isThere()) return;
        end();
        resolve();
      };
      const guard = setTimeout(() => {
        end();
        const last = this.received.slice(-3).map((packet) => JSON.stringify(packet));
        reject(new Error(`${what} did not come; the last packets were ${last.join(', ') || 'none'}`));
      }, PATIENCE_MS);
      this.#waiting.add(look);
    });
  }
}
