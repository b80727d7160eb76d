import { readdirSync, readFileSync, statSync } from 'node:fs';
import { BrokerError, systemClock } from '../../lib/index.ts';
import type { Acceptor } from './gate.ts';

/** What a look at the process tells. */
export interface DescriptorCount {
  /** Infinity: no bound, or none that is known. */
  readonly limit: number;
  readonly used: number;
}

/** A look is good for this long; in between, the listeners' own sockets are counted. */
const LOOK_EVERY_MS = 100;
/** Where a look takes long, looks take this share of the time at most. */
const LOOK_SHARE = 0.01;
/** While the alarm stands, it is looked again so often whether it is over. */
const CHECK_EVERY_MS = 1_000;
const ALARM = 'descriptors_short';

/** How many file descriptors this process may still open. */
export class Descriptors {
  readonly #look: () => DescriptorCount;
  readonly #monotonic: () => number;
  #limit = Infinity;
  #used = 0;
  #nextLookMs = -Infinity;

  constructor(look: () => DescriptorCount = lookAtProcess, monotonic: () => number = systemClock.monotonic) {
    this.#look = look;
    this.#monotonic = monotonic;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Looks at the process if the last look is too old. */
  free(): number {
    const startedMs = this.#monotonic();
    if (startedMs >= this.#nextLookMs) {
      this.#lookAgain();
      const endedMs = this.#monotonic();
      this.#nextLookMs = endedMs + Math.max(LOOK_EVERY_MS, (endedMs - startedMs) / LOOK_SHARE);
    }
    return this.#used === this.#limit ? 0 : this.#limit - this.#used;
  }

  /** To look at the process takes a descriptor, too. Where it fails for another reason, what is known stands. */
  #lookAgain(): void {
    try {
      const { limit, used } = this.#look();
      this.#limit = limit;
      this.#used = used;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EMFILE' || code === 'ENFILE') this.#used = this.#limit;
    }
  }

  /** A listener has taken a socket in. */
  taken(): void {
    this.#used++;
  }

  /** A listener's socket has closed. */
  given(): void {
    this.#used--;
  }
}

/** What the process has now. `/proc` is Linux's; elsewhere this throws, and no bound is known. */
function lookAtProcess(): DescriptorCount {
  const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
  if (limit === undefined) return { limit: Infinity, used: 0 };
  // From Linux 6.2 on the size is the number of descriptors.
  const used = statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length;
  return { limit: Number(limit), used };
}

/** Those of the process: the listeners of all brokers share them. */
export const processDescriptors = new Descriptors();

/** Keeps connections off the last descriptors, on behalf of one listener, and tells its broker when it has to. */
export class DescriptorReserve {
  readonly #acceptor: Acceptor;
  readonly #listener: string;
  readonly #wanted: number;
  readonly #descriptors: Descriptors;
  #isShort = false;
  #timer: unknown;

  /** @param reserve descriptors that stay free; a quarter of all at most. 0: none are kept free */
  constructor(acceptor: Acceptor, listener: string, reserve: number, descriptors: Descriptors = processDescriptors) {
    this.#acceptor = acceptor;
    this.#listener = listener;
    this.#wanted = reserve;
    this.#descriptors = descriptors;
  }

  /** May a connection that has just been accepted stay? */
  admits(): boolean {
    if (this.#wanted === 0) return true;
    const free = this.#descriptors.free();
    if (free >= this.#reserve) return true;
    if (!this.#isShort) this.#raise(free);
    return false;
  }

  taken(): void {
    this.#descriptors.taken();
  }

  given(): void {
    this.#descriptors.given();
  }

  /** The listener closes: what is wrong with the process does not concern it any more. */
  shut(): void {
    if (this.#isShort) this.#clear();
  }

  get #reserve(): number {
    return Math.min(this.#wanted, Math.floor(this.#descriptors.limit / 4));
  }

  #raise(free: number): void {
    this.#isShort = true;
    const { limit } = this.#descriptors;
    const summary =
      `${free} of ${limit} file descriptors are free, and ${this.#reserve} are kept for the store: listener ${this.#listener} closes ` +
      'new connections until there are more. Raise the limit (ulimit -n, LimitNOFILE) or lower maxConnections';
    this.#acceptor.alarm('alert', { id: this.#alarm, title: 'file descriptors are short', summary });
    const error = new BrokerError('DESCRIPTORS_SHORT', summary);
    this.#acceptor.failed(error, `listener ${this.#listener}: accepting connections`, undefined);
    this.#check();
  }

  /** Some more than the reserve have to be free: otherwise the alarm would come and go with single connections. */
  #check(): void {
    const { clock } = this.#acceptor;
    this.#timer = clock.setTimeout(() => {
      if (this.#descriptors.free() >= this.#reserve * 1.25) this.#clear();
      else this.#check();
    }, CHECK_EVERY_MS);
  }

  #clear(): void {
    this.#isShort = false;
    this.#acceptor.clock.clearTimeout(this.#timer);
    this.#acceptor.alarm('clear', { id: this.#alarm, title: 'file descriptors are short', summary: '' });
  }

  get #alarm(): string {
    return `${ALARM}:${this.#listener}`;
  }
}
