// Short of descriptors, a listener accepts and closes. Node cannot stop accepting and keep the listening socket;
// closing it would drop the kernel's queue and risk the port. An accepted connection that is closed in the same turn
// takes one descriptor of the reserve. The number of free descriptors is looked up at most every 100 ms (the size of
// `/proc/self/fd`; before Linux 6.2 a listing, at most 1 % of the time); in between the sockets of all listeners are
// counted.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { type Broker, BrokerError, type Clock, systemClock } from '../../lib/index.ts';

/** The file descriptors of the process. */
export interface DescriptorCount {
  /** Infinity if unlimited or unknown. */
  readonly limit: number;
  readonly used: number;
}

/** The count is read at most this often; in between, sockets of the listeners are added and subtracted. */
const READ_EVERY_MS = 100;
/** Maximum fraction of the time that is spent on reading the count. */
const READ_TIME_SHARE = 0.01;
/** Interval at which an active alarm is checked for its end. */
const CHECK_EVERY_MS = 1_000;
const ALARM_ID = 'descriptors_short';

/** Counts the file descriptors that this process may still open. */
export class Descriptors {
  readonly #readCount: () => DescriptorCount;
  readonly #monotonic: () => number;
  #limit = Infinity;
  #used = 0;
  #nextReadMs = -Infinity;

  constructor(readCount: () => DescriptorCount = readProcessCount, monotonic: () => number = systemClock.monotonic) {
    this.#readCount = readCount;
    this.#monotonic = monotonic;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Return the number of free descriptors, and read the count again if it is too old. */
  free(): number {
    const startedMs = this.#monotonic();
    if (startedMs >= this.#nextReadMs) {
      this.#refresh();
      const endedMs = this.#monotonic();
      this.#nextReadMs = endedMs + Math.max(READ_EVERY_MS, (endedMs - startedMs) / READ_TIME_SHARE);
    }
    return this.#used === this.#limit ? 0 : this.#limit - this.#used;
  }

  /** Read the count, which itself needs a free descriptor. If reading fails for another reason, the last count is kept. */
  #refresh(): void {
    try {
      const { limit, used } = this.#readCount();
      this.#limit = limit;
      this.#used = used;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EMFILE' || code === 'ENFILE') this.#used = this.#limit;
    }
  }

  /** Count a socket that a listener has admitted. */
  add(): void {
    this.#used++;
  }

  /** Subtract a socket that has closed. */
  remove(): void {
    this.#used--;
  }
}

/** Read limit and number of descriptors from `/proc`. On other systems than Linux this throws, and the limit stays unknown. */
function readProcessCount(): DescriptorCount {
  const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
  if (limit === undefined) return { limit: Infinity, used: 0 };
  // since Linux 6.2 the size is the number of descriptors
  const used = statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length;
  return { limit: Number(limit), used };
}

/** The descriptors of this process, shared by the listeners of all brokers. */
const processDescriptors = new Descriptors();

/** The parts of a broker that a reserve needs. */
interface Reported {
  readonly clock: Clock;
  /** Undefined: a shortage is only reported as an error. */
  readonly alarms?: Pick<Broker['alarms'], 'raise' | 'clear'>;
  failed(error: unknown, during: string, session: undefined): void;
}

/** Keeps the last descriptors free of connections of one listener, and raises an alarm while it refuses connections. */
export class DescriptorReserve {
  readonly #acceptor: Reported;
  readonly #listener: string;
  readonly #configured: number;
  readonly #descriptors: Descriptors;
  #isShort = false;
  #timer: unknown;

  /** @param reserve descriptors to keep free, at most a quarter of the limit; 0 for none */
  constructor(acceptor: Reported, listener: string, reserve: number, descriptors: Descriptors = processDescriptors) {
    this.#acceptor = acceptor;
    this.#listener = listener;
    this.#configured = reserve;
    this.#descriptors = descriptors;
  }

  /** Check whether a newly accepted connection may stay. */
  admits(): boolean {
    if (this.#configured === 0) return true;
    const free = this.#descriptors.free();
    if (free >= this.#reserve) return true;
    if (!this.#isShort) this.#raise(free);
    return false;
  }

  add(): void {
    this.#descriptors.add();
  }

  remove(): void {
    this.#descriptors.remove();
  }

  /** Clear the alarm when the listener closes. */
  close(): void {
    if (this.#isShort) this.#clear();
  }

  get #reserve(): number {
    return Math.min(this.#configured, Math.floor(this.#descriptors.limit / 4));
  }

  #raise(free: number): void {
    this.#isShort = true;
    const { limit } = this.#descriptors;
    const summary =
      `${free} of ${limit} file descriptors are free, and ${this.#reserve} are reserved for the store: listener ${this.#listener} closes ` +
      'new connections until more are free. Raise the limit (ulimit -n, LimitNOFILE) or lower maxConnections';
    this.#acceptor.alarms?.raise({
      id: this.#alarm,
      severity: 'critical',
      title: 'file descriptors are short',
      summary
    });
    const error = new BrokerError('DESCRIPTORS_SHORT', summary);
    this.#acceptor.failed(error, `listener ${this.#listener}: accepting connections`, undefined);
    this.#check();
  }

  /** Clear the alarm once 1.25 times the reserve is free. With less, single connections would raise and clear it again. */
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
    this.#acceptor.alarms?.clear(this.#alarm);
  }

  get #alarm(): string {
    return `${ALARM_ID}:${this.#listener}`;
  }
}
