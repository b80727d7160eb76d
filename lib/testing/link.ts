// Packets are logged as bytes and decoded when a test asks for them, because most tests never do. The client id and
// the version, which decoding needs, are searched in the log at that time. `cut` closes both ends at once; `halfOpen`
// closes none, and the peers find out by their timeouts.

import type { ByteStream } from '../base/byte-stream.ts';
import type { Clock } from '../base/clock.ts';
import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject, type Duration, durationMs } from '../base/fields.ts';
import { decodeClientPacket } from '../packets/decode.ts';
import { decodeServerPacket } from '../packets/decode-server.ts';
import type { Packet, ProtocolVersion } from '../packets/types.ts';
import { type Command, LinkDirection, type PacketChoice } from './link-direction.ts';

/** The direction of a packet. */
export type Direction = 'toBroker' | 'toClient';

/** A packet that was sent over a link. */
export interface LoggedPacket {
  /** The direction in which it was sent. */
  readonly direction: Direction;
  /** The packet type; `malformed` if the bytes cannot be decoded. */
  readonly cmd: Command | 'malformed';
  /** Undefined for `malformed`. */
  readonly packet: Packet | undefined;
  /** Virtual wall-clock time of sending, in milliseconds. */
  readonly at: number;
  /** True if a fault of the link prevented its arrival. */
  readonly isDropped: boolean;
}

interface LogRecord {
  readonly direction: Direction;
  readonly bytes: Buffer;
  readonly at: number;
  readonly isDropped: boolean;
}

/** The number of packets that a link logs; the newest are kept. */
const MAX_LOG_LENGTH = 10_000;
const CONNECT = 0x10;
const CONNACK = 0x20;
const ACKS: readonly Command[] = ['puback', 'pubrec', 'pubrel', 'pubcomp'];

/**
 * The network link between one client and the broker. It logs packets and simulates faults.
 *
 * Faults last until `heal`, except for `cut` and `halfOpen`, which are permanent. Invalid arguments of a fault throw InvalidInput
 * OPTION_UNKNOWN, OPTION_INVALID or DURATION_INVALID.
 */
export class Link {
  readonly #client: ByteStream;
  readonly #broker: ByteStream;
  readonly #clock: Clock;
  readonly #directions: { readonly [D in Direction]: LinkDirection };
  #log: LogRecord[] = [];
  #clientId = '';
  #version: ProtocolVersion = 5;
  /** The number of packets of the log that were searched for the client id. They are searched when the client id is requested. */
  #searched = 0;
  readonly #closeEnds: () => void;
  #isOpen = true;

  /**
   * @param client the peer of the client's stream
   * @param broker the peer of the broker's stream
   * @param closeEnds closes the streams of both the client and the broker at once
   */
  constructor(client: ByteStream, broker: ByteStream, clock: Clock, closeEnds: () => void) {
    this.#closeEnds = closeEnds;
    this.#client = client;
    this.#broker = broker;
    this.#clock = clock;
    const inner = clock.internal ?? clock;
    this.#directions = {
      toBroker: new LinkDirection(client, broker, inner, (bytes, isDropped) =>
        this.#logPacket('toBroker', bytes, isDropped)
      ),
      toClient: new LinkDirection(broker, client, inner, (bytes, isDropped) =>
        this.#logPacket('toClient', bytes, isDropped)
      )
    };
    client.on('close', () => {
      this.#isOpen = false;
    });
  }

  /** The client id of the CONNECT, or the one that the broker assigned; empty before. */
  get clientId(): string {
    this.#identify();
    return this.#clientId;
  }

  /** True if the client's end of the link is open. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Close the connection on both sides without a DISCONNECT. Bytes in transit are lost.
   *
   * Both ends are closed when this returns: messages published afterwards are queued if the client's session is persistent, and calls of
   * the client reject with NOT_CONNECTED.
   */
  cut(): void {
    this.#cutOff();
    this.#closeEnds();
    this.release();
  }

  /** Stop forwarding and close the streams at the end of the kit; the peers notice it later. @internal */
  release(): void {
    this.#cutOff();
    this.#isOpen = false;
    this.#client.destroy();
    this.#broker.destroy();
  }

  /** Stop forwarding bytes without closing the connection, as if a router had failed. Neither peer is notified. */
  halfOpen(): void {
    this.#cutOff();
  }

  /** Delay all bytes, in virtual time. */
  delay(
    duration: Duration,
    options: {
      /** The direction that is affected. Default: both. */
      readonly direction?: Direction;
    } = {}
  ): void {
    const ms = durationMs(duration, 'duration');
    for (const linkDirection of this.#choose(directionOf(options))) linkDirection.delay(ms);
  }

  /** Drop the chosen packets. Without a direction, both directions are affected and counted separately. */
  drop(
    choice: PacketChoice & {
      /** The direction that is affected. Default: both. */
      readonly direction?: Direction;
    } = {}
  ): void {
    for (const linkDirection of this.#choose(choice.direction)) linkDirection.add('drop', choice);
  }

  /** Deliver the chosen packets twice. Without a direction, both directions are affected and counted separately. */
  duplicate(
    choice: PacketChoice & {
      /** The direction that is affected. Default: both. */
      readonly direction?: Direction;
    } = {}
  ): void {
    for (const linkDirection of this.#choose(choice.direction)) linkDirection.add('duplicate', choice);
  }

  /** Drop every PUBACK, PUBREC, PUBREL and PUBCOMP; by default those that the client sends, as if it never acknowledged. */
  withholdAcks(
    options: {
      /** The direction that is affected. Default: `toBroker`. */
      readonly direction?: Direction;
    } = {}
  ): void {
    this.drop({ cmd: ACKS, count: Infinity, direction: directionOf(options) ?? 'toBroker' });
  }

  /**
   * Limit the bytes per second of virtual time that the client receives. Default: 0, the client does not read at all.
   * @throws InvalidInput OPTION_INVALID
   */
  slowReader(bytesPerSec = 0): void {
    if (typeof bytesPerSec !== 'number' || !(bytesPerSec >= 0)) {
      throw new InvalidInput('OPTION_INVALID', 'bytesPerSec', 'bytes per second, 0 or more', bytesPerSec);
    }
    this.#directions.toClient.throttle(bytesPerSec);
  }

  /** Remove all faults except a cut or half-open connection. */
  heal(): void {
    for (const linkDirection of this.#choose(undefined)) linkDirection.heal();
  }

  /** The newest 10,000 packets, in the order of sending. */
  packets(): LoggedPacket[] {
    this.#identify();
    return this.#log.map(({ direction, bytes, at, isDropped }) => {
      const packet = decode(direction, bytes, this.#version);
      return { direction, cmd: packet?.cmd ?? 'malformed', packet, at, isDropped };
    });
  }

  #choose(direction: Direction | undefined): LinkDirection[] {
    if (direction === undefined) return [this.#directions.toBroker, this.#directions.toClient];
    if (Object.hasOwn(this.#directions, direction)) return [this.#directions[direction]];
    throw new InvalidInput('OPTION_INVALID', 'direction', 'toBroker or toClient', direction);
  }

  #cutOff(): void {
    for (const linkDirection of this.#choose(undefined)) linkDirection.cutOff();
  }

  #logPacket(direction: Direction, bytes: Buffer, isDropped: boolean): void {
    this.#log.push({ direction, bytes, at: this.#clock.now(), isDropped });
    if (this.#log.length <= MAX_LOG_LENGTH * 2) return;
    this.#identify();
    this.#log = this.#log.slice(-MAX_LOG_LENGTH);
    this.#searched = this.#log.length;
  }

  /** Find the client id and the protocol version in the packets that were logged since the last search. */
  #identify(): void {
    while (this.#searched < this.#log.length) {
      const { direction, bytes } = this.#log[this.#searched++];
      const isIdentifying = bytes[0] === CONNECT || (bytes[0] === CONNACK && this.#clientId === '');
      if (!isIdentifying) continue;
      const packet = decode(direction, bytes, this.#version);
      if (packet?.cmd === 'connect') {
        this.#clientId = packet.clientId;
        this.#version = packet.protocolVersion;
      } else if (packet?.cmd === 'connack') this.#clientId = packet.properties?.assignedClientIdentifier ?? '';
    }
  }
}

function decode(direction: Direction, bytes: Buffer, version: ProtocolVersion): Packet | undefined {
  let start = 1;
  while (bytes[start++] > 127);
  const decodePacket = direction === 'toBroker' ? decodeClientPacket : decodeServerPacket;
  try {
    return decodePacket(bytes[0] >> 4, bytes[0] & 15, bytes, start, bytes.length, version);
  } catch {
    return undefined; // a test may send invalid packets on purpose
  }
}

function directionOf(options: { readonly direction?: Direction }): Direction | undefined {
  checkObject(options, 'options');
  checkNames(options, ['direction'], 'the fault');
  return options.direction;
}
