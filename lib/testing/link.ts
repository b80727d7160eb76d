import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import { InvalidInput } from '../errors.ts';
import { type Duration, durationMs } from '../options-table.ts';
import { decodeClientPacket } from '../packets/decode.ts';
import { decodeServerPacket } from '../packets/decode-server.ts';
import type { Packet, ProtocolVersion } from '../packets/types.ts';
import { type Command, Lane, type PacketChoice } from './lane.ts';

/** Which way a packet goes. */
export type Direction = 'toBroker' | 'toClient';

/** A packet as it was sent over a link. */
export interface LoggedPacket {
  readonly direction: Direction;
  /** `malformed` where the bytes are no packet. */
  readonly cmd: Command | 'malformed';
  /** Absent for `malformed`. */
  readonly packet: Packet | undefined;
  /** Virtual wall time of sending, in milliseconds. */
  readonly at: number;
  /** A fault of the link kept it from arriving. */
  readonly isDropped: boolean;
}

interface Record {
  readonly direction: Direction;
  readonly bytes: Buffer;
  readonly at: number;
  readonly isDropped: boolean;
}

/** Packets a link remembers, the newest. */
const LOG_MAX = 10_000;
const CONNECT = 0x10;
const CONNACK = 0x20;
const ACKS: readonly Command[] = ['puback', 'pubrec', 'pubrel', 'pubcomp'];

/**
 * The wire between one client and the broker: remembers the packets, and spoils them where a test wants it. Faults hold until `heal`,
 * `cut` and `halfOpen` for ever. A fault that could never happen is refused: InvalidInput OPTION_INVALID, DURATION_INVALID.
 */
export class Link {
  readonly #client: Duplex;
  readonly #broker: Duplex;
  readonly #clock: Clock;
  readonly #lanes: { readonly [D in Direction]: Lane };
  #log: Record[] = [];
  #clientId = '';
  #version: ProtocolVersion = 5;
  readonly #closeEnds: () => void;
  #isOpen = true;

  /**
   * @param client the stream whose other end the client has
   * @param broker the one whose other end the broker has
   * @param closeEnds lets both peers lose their connection at once
   */
  constructor(client: Duplex, broker: Duplex, clock: Clock, closeEnds: () => void) {
    this.#closeEnds = closeEnds;
    this.#client = client;
    this.#broker = broker;
    this.#clock = clock;
    const inner = clock.internal ?? clock;
    this.#lanes = {
      toBroker: new Lane(client, broker, inner, (bytes, isDropped) => this.#note('toBroker', bytes, isDropped)),
      toClient: new Lane(broker, client, inner, (bytes, isDropped) => this.#note('toClient', bytes, isDropped))
    };
    client.on('close', () => {
      this.#isOpen = false;
    });
  }

  /** Client id of the CONNECT, or the one that the broker assigned; empty before. */
  get clientId(): string {
    return this.#clientId;
  }

  /** The client has not closed its end. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * The cable is cut: both ends are closed when this returns, without a DISCONNECT. What is on its way is lost. So what is published at once
   * afterwards is queued for the client's session where that is persistent, and the client's own calls reject with NOT_CONNECTED.
   */
  cut(): void {
    this.#cutOff();
    this.#closeEnds();
    this.release();
  }

  /** The end of the kit: nothing passes any more, and the peers hear of it later. @internal */
  release(): void {
    this.#cutOff();
    this.#isOpen = false;
    this.#client.destroy();
    this.#broker.destroy();
  }

  /** The peers lose each other and neither is told, as when a router dies: nothing arrives any more, no end closes. */
  halfOpen(): void {
    this.#cutOff();
  }

  /** Everything arrives so much later, in virtual time. */
  delay(duration: Duration, options: { readonly direction?: Direction } = {}): void {
    const ms = durationMs(duration, 'duration');
    for (const lane of this.#choose(options.direction)) lane.delay(ms);
  }

  /** The chosen packets do not arrive. Without a direction each direction is counted by itself. */
  drop(choice: PacketChoice & { readonly direction?: Direction } = {}): void {
    for (const lane of this.#choose(choice.direction)) lane.add('drop', choice);
  }

  /** The chosen packets arrive twice. */
  duplicate(choice: PacketChoice & { readonly direction?: Direction } = {}): void {
    for (const lane of this.#choose(choice.direction)) lane.add('duplicate', choice);
  }

  /** No PUBACK, PUBREC, PUBREL or PUBCOMP arrives: by default none that the client sends, so that it looks like one that never acknowledges. */
  withholdAcks(options: { readonly direction?: Direction } = {}): void {
    this.drop({ cmd: ACKS, count: Infinity, direction: options.direction ?? 'toBroker' });
  }

  /** The client takes no more than so many bytes a second of virtual time; default 0: it does not read at all. @throws InvalidInput OPTION_INVALID */
  slowReader(bytesPerSec = 0): void {
    if (typeof bytesPerSec !== 'number' || !(bytesPerSec >= 0)) {
      throw new InvalidInput('OPTION_INVALID', 'bytesPerSec', 'bytes a second, 0 or more', bytesPerSec);
    }
    this.#lanes.toClient.throttle(bytesPerSec);
  }

  /** Forget all faults but a cut or a half-open connection. */
  heal(): void {
    for (const lane of this.#choose(undefined)) lane.heal();
  }

  /** Packets in the order of sending, the newest 10,000. */
  packets(): LoggedPacket[] {
    return this.#log.map(({ direction, bytes, at, isDropped }) => {
      const packet = this.#decode(direction, bytes);
      return { direction, cmd: packet?.cmd ?? 'malformed', packet, at, isDropped };
    });
  }

  #choose(direction: Direction | undefined): Lane[] {
    if (direction === undefined) return [this.#lanes.toBroker, this.#lanes.toClient];
    if (Object.hasOwn(this.#lanes, direction)) return [this.#lanes[direction]];
    throw new InvalidInput('OPTION_INVALID', 'direction', 'toBroker or toClient', direction);
  }

  #cutOff(): void {
    for (const lane of this.#choose(undefined)) lane.cutOff();
  }

  #note(direction: Direction, bytes: Buffer, isDropped: boolean): void {
    this.#log.push({ direction, bytes, at: this.#clock.now(), isDropped });
    if (this.#log.length > LOG_MAX * 2) this.#log = this.#log.slice(-LOG_MAX);
    if (bytes[0] === CONNECT || (bytes[0] === CONNACK && this.#clientId === '')) this.#learn(direction, bytes);
  }

  #learn(direction: Direction, bytes: Buffer): void {
    const packet = this.#decode(direction, bytes);
    if (packet?.cmd === 'connect') {
      this.#clientId = packet.clientId;
      this.#version = packet.protocolVersion;
    } else if (packet?.cmd === 'connack') this.#clientId = packet.properties?.assignedClientIdentifier ?? '';
  }

  #decode(direction: Direction, bytes: Buffer): Packet | undefined {
    let start = 1;
    while (bytes[start++] > 127);
    const decode = direction === 'toBroker' ? decodeClientPacket : decodeServerPacket;
    try {
      return decode(bytes[0] >> 4, bytes[0] & 15, bytes, start, bytes.length, this.#version);
    } catch {
      return undefined; // what a test sends on purpose need not be MQTT
    }
  }
}
