// Packets are recognized from their fixed headers only, whatever they contain, because tests may send invalid ones;
// bytes that are not MQTT are forwarded unchanged. Bytes are forwarded as they arrive unless a fault applies to their
// packet, so that a link without faults changes nothing, not even the chunks. Back-pressure is passed on: the source
// is paused while the target needs to drain.

import type { ByteStream } from '../base/byte-stream.ts';
import type { Clock } from '../base/clock.ts';
import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject, nearest } from '../base/fields.ts';
import { type Packet, PacketType } from '../packets/types.ts';

/** A packet type, as in the field `cmd` of packets. */
export type Command = Packet['cmd'];

/** The packets that a fault applies to. */
export interface PacketChoice {
  /** The packet type or types. Default: all. */
  readonly cmd?: Command | readonly Command[];
  /** The first packet affected, counted from 1 among the packets of these types from now on. Default: 1. */
  readonly nth?: number;
  /** The number of consecutive packets affected; `Infinity` for all. Default: 1. */
  readonly count?: number;
}

const COMMANDS = Object.keys(PacketType) as Command[];

function packetTypeOf(cmd: Command): number {
  if (Object.hasOwn(PacketType, cmd)) return PacketType[cmd];
  const near = nearest(String(cmd), COMMANDS);
  const hint = near === undefined ? `one of ${COMMANDS.join(', ')}` : `did you mean "${near}"?`;
  throw new InvalidInput('OPTION_INVALID', 'cmd', 'a packet type', cmd, `there is no packet type "${cmd}"; ${hint}`);
}

type FaultKind = 'drop' | 'duplicate';

interface Fault {
  readonly kind: FaultKind;
  readonly types: ReadonlySet<number>;
  /** The number of packets to forward before the fault applies. */
  skipCount: number;
  remaining: number;
}

type PacketListener = (packet: Buffer, isDropped: boolean) => void;

/**
 * One direction of a link: forwards bytes from one stream to another, reports every packet, and applies faults.
 *
 * A fault delays, duplicates or drops bytes. The bytes of an incomplete packet are forwarded as they arrive.
 */
export class LinkDirection {
  readonly #from: ByteStream;
  readonly #to: ByteStream;
  readonly #clock: Clock;
  readonly #onPacket: PacketListener;
  #faults: Fault[] = [];
  #isCutOff = false;
  #delayMs = 0;
  /** Delayed chunks, or the end (undefined), in order. There is one timer per entry; it forwards the first entry. */
  #delayed: (Buffer | undefined)[] = [];
  #bytesPerSec = Infinity;
  #isThrottled = false;
  // The position in the current packet.
  #phase: 'type' | 'length' | 'body' | 'lost' = 'type';
  #remainingBytes = 0;
  #shift = 0;
  #parts: Buffer[] = [];
  #packetFault: FaultKind | undefined;

  constructor(from: ByteStream, to: ByteStream, clock: Clock, onPacket: PacketListener) {
    this.#from = from;
    this.#to = to;
    this.#clock = clock;
    this.#onPacket = onPacket;
    from.on('data', (chunk: Buffer) => this.#receive(chunk));
    from.on('end', () => this.#forward(undefined));
    from.on('error', (error) => this.#isCutOff || to.destroy(error));
    from.on('close', () => {
      if (!this.#isCutOff && !from.readableEnded) to.destroy();
    });
    to.on('drain', () => this.#updateFlow());
    to.on('close', () => this.#updateFlow()); // it will not drain, and the end of `from` must be read
  }

  /** Stop forwarding, without notifying the ends. */
  cutOff(): void {
    this.#isCutOff = true;
    this.#delayed = [];
    this.#updateFlow();
  }

  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Read at most this number of bytes per second; 0 stops reading. */
  throttle(bytesPerSec: number): void {
    this.#bytesPerSec = bytesPerSec;
    this.#isThrottled = bytesPerSec === 0;
    this.#updateFlow();
  }

  /** Add a fault. @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
  add(kind: FaultKind, choice: PacketChoice): void {
    checkObject(choice, 'choice');
    checkNames(choice, ['cmd', 'nth', 'count', 'direction'], 'the choice of packets');
    const { cmd = COMMANDS, nth = 1, count = 1 } = choice;
    const types = new Set([cmd].flat().map(packetTypeOf));
    if (!Number.isInteger(nth) || nth < 1) {
      throw new InvalidInput('OPTION_INVALID', 'nth', 'a whole number from 1', nth);
    }
    if (count !== Infinity && (!Number.isInteger(count) || count < 1)) {
      throw new InvalidInput('OPTION_INVALID', 'count', 'a whole number from 1, or Infinity', count);
    }
    this.#faults.push({ kind, types, skipCount: nth - 1, remaining: count });
  }

  /** Remove all faults except a cut. */
  heal(): void {
    this.#faults = [];
    this.#delayMs = 0;
    this.throttle(Infinity);
  }

  #receive(chunk: Buffer): void {
    let passed = 0; // the bytes before this offset are forwarded or dropped
    for (let at = 0; at < chunk.length; ) {
      const start = at;
      if (this.#phase === 'type') this.#packetFault = this.#chooseFault(chunk[at] >> 4);
      at = this.#scanPacket(chunk, at);
      if (this.#packetFault === 'drop') {
        if (start > passed) this.#forward(chunk.subarray(passed, start));
        passed = at;
      }
      const part = slice(chunk, start, at);
      if (this.#phase !== 'type') {
        this.#parts.push(part);
        continue;
      }
      const packet = this.#completePacket(part);
      this.#onPacket(packet, this.#packetFault === 'drop' || this.#isCutOff);
      if (this.#packetFault !== 'duplicate') continue;
      this.#forward(chunk.subarray(passed, at));
      this.#forward(Buffer.from(packet));
      passed = at;
    }
    if (passed < chunk.length) this.#forward(slice(chunk, passed, chunk.length));
    this.#throttleAfter(chunk.length);
  }

  /** Copy a packet, because its receiver may change the bytes that are forwarded. @param last the last part of the packet */
  #completePacket(last: Buffer): Buffer {
    if (this.#parts.length === 0) return Buffer.from(last);
    const packet = Buffer.concat([...this.#parts, last]);
    this.#parts = [];
    return packet;
  }

  /** Scan to the end of the packet or of the chunk. @returns the offset after it */
  #scanPacket(chunk: Buffer, at: number): number {
    if (this.#phase === 'type') {
      this.#phase = 'length';
      this.#remainingBytes = this.#shift = 0;
      at++;
    }
    while (this.#phase === 'length' && at < chunk.length) {
      const byte = chunk[at++];
      this.#remainingBytes += (byte & 127) * 2 ** this.#shift;
      this.#shift += 7;
      if (byte < 128) this.#phase = this.#remainingBytes === 0 ? 'type' : 'body';
      else if (this.#shift > 21) this.#phase = 'lost'; // not MQTT; forward everything from here on
    }
    if (this.#phase === 'lost') return chunk.length;
    if (this.#phase !== 'body') return at;
    const end = Math.min(chunk.length, at + this.#remainingBytes);
    this.#remainingBytes -= end - at;
    if (this.#remainingBytes === 0) this.#phase = 'type';
    return end;
  }

  #chooseFault(type: number): FaultKind | undefined {
    let kind: FaultKind | undefined;
    for (const fault of this.#faults) {
      if (!fault.types.has(type) || fault.remaining <= 0) continue;
      if (fault.skipCount > 0) fault.skipCount--;
      else if (kind === undefined) {
        kind = fault.kind;
        fault.remaining--;
      }
    }
    return kind;
  }

  /** Forward bytes, or the end (undefined), now or after the delay. */
  #forward(bytes: Buffer | undefined): void {
    if (this.#isCutOff) return;
    if (this.#delayMs === 0 && this.#delayed.length === 0) {
      this.#write(bytes);
      return;
    }
    this.#delayed.push(bytes);
    this.#clock.setTimeout(() => {
      if (this.#delayed.length > 0) this.#write(this.#delayed.shift());
    }, this.#delayMs);
  }

  #write(bytes: Buffer | undefined): void {
    const to = this.#to;
    if (to.destroyed) return;
    if (bytes === undefined) to.end();
    else if (!(to.writeUnchanged?.(bytes) ?? to.write(bytes))) this.#updateFlow();
  }

  #throttleAfter(bytes: number): void {
    if (this.#bytesPerSec === Infinity) return;
    this.#isThrottled = true;
    this.#updateFlow();
    if (this.#bytesPerSec === 0) return;
    this.#clock.setTimeout(
      () => {
        this.#isThrottled = this.#bytesPerSec === 0;
        this.#updateFlow();
      },
      (bytes * 1000) / this.#bytesPerSec
    );
  }

  #updateFlow(): void {
    const mustWait = !this.#isCutOff && (this.#isThrottled || this.#to.writableNeedDrain);
    if (mustWait === this.#from.isPaused() || this.#from.destroyed) return;
    if (mustWait) this.#from.pause();
    else this.#from.resume();
  }
}

function slice(chunk: Buffer, start: number, end: number): Buffer {
  return start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end);
}
