import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import { InvalidInput } from '../errors.ts';
import { checkNames, nearest } from '../options-table.ts';
import { type Packet, PacketType } from '../packets/types.ts';

/** A kind of packet. */
export type Command = Packet['cmd'];

/** Which packets a fault is for. */
export interface PacketChoice {
  /** Only packets of this kind, or these kinds. Default: all. */
  readonly cmd?: Command | readonly Command[];
  /** The first packet it is for, counted from 1 among those of that kind from now on. Default 1. */
  readonly nth?: number;
  /** How many packets in a row, from the nth on; `Infinity`: all. Default 1. */
  readonly count?: number;
}

const COMMANDS = Object.keys(PacketType) as Command[];

function typeOf(cmd: Command): number {
  if (Object.hasOwn(PacketType, cmd)) return PacketType[cmd];
  const near = nearest(String(cmd), COMMANDS);
  const hint = near === undefined ? `one of ${COMMANDS.join(', ')}` : `did you mean "${near}"?`;
  throw new InvalidInput('OPTION_INVALID', 'cmd', 'a packet', cmd, `there is no cmd "${cmd}"; ${hint}`);
}

type Fate = 'drop' | 'duplicate';

interface Rule {
  readonly fate: Fate;
  readonly types: ReadonlySet<number>;
  /** Packets to let pass first. */
  passing: number;
  left: number;
}

type Told = (packet: Buffer, isDropped: boolean) => void;

/**
 * One direction of a link: takes bytes from one stream, tells of every packet, and hands the bytes on, late, twice or not at all where it
 * is told to. Bytes that are no whole packet pass as they come, so that a peer sees them trickle.
 */
export class Lane {
  readonly #from: Duplex;
  readonly #to: Duplex;
  readonly #clock: Clock;
  readonly #told: Told;
  #rules: Rule[] = [];
  #isCutOff = false;
  #delayMs = 0;
  /** Bytes, or the end, on their way; each leaves with its own timer, in order. */
  #late: (Buffer | undefined)[] = [];
  #bytesPerSec = Infinity;
  #isHeld = false;
  // where in a packet the stream is
  #phase: 'type' | 'length' | 'body' | 'lost' = 'type';
  #left = 0;
  #shift = 0;
  #parts: Buffer[] = [];
  #fate: Fate | undefined;

  constructor(from: Duplex, to: Duplex, clock: Clock, told: Told) {
    this.#from = from;
    this.#to = to;
    this.#clock = clock;
    this.#told = told;
    from.on('data', (chunk: Buffer) => this.#take(chunk));
    from.on('end', () => this.#leave(undefined));
    from.on('error', (error) => this.#isCutOff || to.destroy(error));
    from.on('close', () => {
      if (!this.#isCutOff && !from.readableEnded) to.destroy();
    });
    to.on('drain', () => this.#steer());
  }

  /** Nothing passes any more, and neither end hears of it. */
  cutOff(): void {
    this.#isCutOff = true;
    this.#late = [];
    this.#steer();
  }

  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Take in no more than so many bytes a second; 0: nothing. */
  throttle(bytesPerSec: number): void {
    this.#bytesPerSec = bytesPerSec;
    this.#isHeld = bytesPerSec === 0;
    this.#steer();
  }

  /** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
  add(fate: Fate, choice: PacketChoice): void {
    checkNames(choice, ['cmd', 'nth', 'count', 'direction'], 'the choice of packets');
    const { cmd = COMMANDS, nth = 1, count = 1 } = choice;
    const types = new Set([cmd].flat().map(typeOf));
    if (!Number.isInteger(nth) || nth < 1) {
      throw new InvalidInput('OPTION_INVALID', 'nth', 'a whole number from 1 up', nth);
    }
    if (count !== Infinity && (!Number.isInteger(count) || count < 1)) {
      throw new InvalidInput('OPTION_INVALID', 'count', 'a whole number from 1 up, or Infinity', count);
    }
    this.#rules.push({ fate, types, passing: nth - 1, left: count });
  }

  /** Forget all faults but a cut. */
  heal(): void {
    this.#rules = [];
    this.#delayMs = 0;
    this.throttle(Infinity);
  }

  #take(chunk: Buffer): void {
    const out: Buffer[] = [];
    let passed = 0; // bytes before it are in `out`, or dropped
    for (let at = 0; at < chunk.length; ) {
      const start = at;
      if (this.#phase === 'type') this.#fate = this.#decide(chunk[at] >> 4);
      at = this.#step(chunk, at);
      this.#parts.push(chunk.subarray(start, at));
      if (this.#fate === 'drop') {
        if (start > passed) out.push(chunk.subarray(passed, start));
        passed = at;
      }
      if (this.#phase !== 'type') continue;
      const packet = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
      this.#parts = [];
      this.#told(packet, this.#fate === 'drop' || this.#isCutOff);
      if (this.#fate !== 'duplicate') continue;
      out.push(chunk.subarray(passed, at), packet);
      passed = at;
    }
    if (passed < chunk.length) out.push(chunk.subarray(passed));
    for (const bytes of out) this.#leave(bytes);
    this.#slowDown(chunk.length);
  }

  /** Go to the end of the packet, or of the chunk. @returns the offset behind */
  #step(chunk: Buffer, at: number): number {
    if (this.#phase === 'type') {
      this.#phase = 'length';
      this.#left = this.#shift = 0;
      at++;
    }
    while (this.#phase === 'length' && at < chunk.length) {
      const byte = chunk[at++];
      this.#left += (byte & 127) * 2 ** this.#shift;
      this.#shift += 7;
      if (byte < 128) this.#phase = this.#left === 0 ? 'type' : 'body';
      else if (this.#shift > 21) this.#phase = 'lost'; // no MQTT: let it pass
    }
    if (this.#phase === 'lost') return chunk.length;
    if (this.#phase !== 'body') return at;
    const end = Math.min(chunk.length, at + this.#left);
    this.#left -= end - at;
    if (this.#left === 0) this.#phase = 'type';
    return end;
  }

  #decide(type: number): Fate | undefined {
    let fate: Fate | undefined;
    for (const rule of this.#rules) {
      if (!rule.types.has(type) || rule.left <= 0) continue;
      if (rule.passing > 0) rule.passing--;
      else if (fate === undefined) {
        fate = rule.fate;
        rule.left--;
      }
    }
    return fate;
  }

  /** Hand on, now or late; undefined is the end. */
  #leave(bytes: Buffer | undefined): void {
    if (this.#isCutOff) return;
    if (this.#delayMs === 0 && this.#late.length === 0) {
      this.#arrive(bytes);
      return;
    }
    this.#late.push(bytes);
    this.#clock.setTimeout(() => {
      if (this.#late.length > 0) this.#arrive(this.#late.shift());
    }, this.#delayMs);
  }

  #arrive(bytes: Buffer | undefined): void {
    if (this.#to.destroyed) return;
    if (bytes === undefined) this.#to.end();
    else if (!this.#to.write(bytes)) this.#steer();
  }

  #slowDown(bytes: number): void {
    if (this.#bytesPerSec === Infinity) return;
    this.#isHeld = true;
    this.#steer();
    if (this.#bytesPerSec === 0) return;
    this.#clock.setTimeout(
      () => {
        this.#isHeld = this.#bytesPerSec === 0;
        this.#steer();
      },
      (bytes * 1000) / this.#bytesPerSec
    );
  }

  #steer(): void {
    const mustWait = !this.#isCutOff && (this.#isHeld || this.#to.writableNeedDrain);
    if (mustWait === this.#from.isPaused() || this.#from.destroyed) return;
    if (mustWait) this.#from.pause();
    else this.#from.resume();
  }
}
