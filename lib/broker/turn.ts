// A connection uses a bounded share of each turn. A flooded socket delivers up to 2 MB at a time, and all of it used
// to be handled before other clients were served (60 clients that send PINGREQ: each waited for 5 s). Bytes cost units
// when they are read, and each packet by its type. When a connection has used its share, its stream is paused and the
// rest waits for the broker's turn, which serves such connections in rotation, after the flush. A turn has eight
// shares for them: if many wait, eight of them get one share each; one that waits alone gets all eight. A paused
// stream delivers its next chunk only after it was served, so this also bounds how many sockets a turn reads 64 KB
// from. Units, not time, end a share, so the order is the same in every run. Only if serving has taken 0.5 ms
// (`SERVE_MS`; never with a virtual clock) does a turn leave the rest to the next one. A connection that did not wait
// in the previous turn may draw on eight more shares, so ordinary traffic does not wait (`npm run bench -- --only
// bystander`).
//
// The end of a turn waits for connections that arrive. Node accepts one connection per listener and iteration of the
// event loop. If a publisher sends to 500 clients and all of them are reset, a client waited 5 s for its CONNACK,
// because each of the 500 accepts had to wait for the deliveries, the commit and the acknowledgements of a turn. Now,
// while each iteration accepts a connection, output and commits of up to 64 iterations are one turn, and the shares
// of that turn bound what is read meanwhile. This may take twice the time of the previous turn (10 to 100 ms), so
// under load about a third of the time remains for deliveries. A single client that connects delays nothing. Several
// listening handles on one port would need SO_REUSEPORT, which Node 20 does not offer. `npm run bench -- --only
// resets`: 5 to 9 s before, 0.6 s now.

// Imported by name, setImmediate is not replaced by the fake timers of a test framework.
import { setImmediate } from 'node:timers';
import type { BaseServices } from '../base/base-services.ts';
import type { TimeReading } from '../base/time-reading.ts';
import type { Connection } from '../connection/connection.ts';
import { endTurn } from '../connection/output.ts';
import { SHARE } from '../connection/reader.ts';
import { releaseTurnFrames } from '../packets/message.ts';
import type { Session } from '../session/session.ts';

/**
 * Maximum number of additional shares per turn for connections that sent more than their share. The same number is available to
 * `drawShare`. A stream is not read before its connection is served, so this also limits how many of them deliver a chunk in the next turn.
 */
const SHARES_AT_ONCE = 8;
/** Maximum time in which one turn gives additional shares. It applies if packets take more time than their units indicate. */
const SERVE_MS = 0.5;
/**
 * Maximum number of iterations of the event loop in which the end of a turn waits for further connections, if one has arrived in each of
 * them. Node accepts one connection for each listener per iteration, so iterations have to be short while many clients connect.
 */
const ARRIVALS_FIRST = 64;
/** The end of a turn waits for further connections for twice the time that the previous turn took, within these limits. */
const MIN_ARRIVALS_MS = 10;
const MAX_ARRIVALS_MS = 100;

/**
 * A turn of the event loop, in which output is collected. At its end, everything that packets, timers and the app have caused is written:
 * one write for each connection and one commit for the store.
 */
export class Turn {
  /** Number of this turn. */
  number = 0;
  /** Units that all connections together may use in this turn in addition to their shares. */
  #spareUnits = SHARES_AT_ONCE * SHARE;
  readonly #services: BaseServices;
  readonly #time: TimeReading;
  /** Called when all connections are flushed. */
  readonly #onFlushed: () => void;
  #dirty: Connection<Session>[] = [];
  /** Connections that sent more than their share of a turn, in the order in which they are served. */
  #unserved: Connection<Session>[] = [];
  /** True if a connection has arrived in this iteration of the event loop; and the number of consecutive iterations with arrivals. */
  #hasArrival = false;
  #arrivals = 0;
  /** The number of iterations in which the end of this turn has waited for arrivals, and the time until which it may wait. */
  #waits = 0;
  #waitUntilMs = 0;
  /** Time at which the previous turn ended. Known only while connections arrive. */
  #endedMs = 0;
  #pumping: { continuePump(): void }[] = [];
  #isScheduled = false;

  constructor(services: BaseServices, time: TimeReading, onFlushed: () => void) {
    this.#services = services;
    this.#time = time;
    this.#onFlushed = onFlushed;
  }

  /** Take a share of the spare units of this turn. @returns the number of units; 0: none are left */
  drawShare(): number {
    if (this.#spareUnits <= 0) return 0;
    this.#spareUnits -= SHARE;
    return SHARE;
  }

  /** Flush this connection when the turn ends. */
  flushLater(connection: Connection<Session>): void {
    this.#dirty.push(connection);
    this.schedule();
  }

  /** Call `continuePump` in the next turn. It does not throw. */
  pumpLater(waiting: { continuePump(): void }): void {
    this.#pumping.push(waiting);
    this.schedule();
  }

  /** Call `serve` of this connection's reader in a later turn, after the other connections that wait. */
  serveLater(connection: Connection<Session>): void {
    this.#unserved.push(connection);
    this.schedule();
  }

  /** Note that a connection has arrived. If others arrived just before, the end of the turn is deferred, so that Node can accept more. */
  connectionArrived(): void {
    this.#hasArrival = true;
  }

  /** Run a function in the next turn. */
  later(run: () => void): void {
    const services = this.#services;
    const { work } = services;
    work.begin();
    setImmediate(() => {
      try {
        run();
      } catch (error) {
        services.failed(error, 'continuing in the next turn');
      }
      work.end();
    });
  }

  /** Wait for the next turn. */
  pause(): Promise<void> {
    return new Promise((resolve) => this.later(resolve));
  }

  /** Schedule the end of the turn. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#services.work.begin();
    setImmediate(this.#run);
  }

  /** True if the end of the turn waits for further connections. One client that connects delays nothing. */
  #awaitsArrivals(): boolean {
    if (!this.#hasArrival) {
      this.#arrivals = this.#waits = 0;
      return false;
    }
    this.#hasArrival = false;
    const nowMs = this.#services.clock.monotonic();
    if (this.#waits === 0)
      this.#waitUntilMs = nowMs + Math.min(Math.max(2 * (nowMs - this.#endedMs), MIN_ARRIVALS_MS), MAX_ARRIVALS_MS);
    if (this.#arrivals++ > 0 && this.#waits < ARRIVALS_FIRST && nowMs < this.#waitUntilMs) {
      this.#waits++;
      return true;
    }
    this.#waits = 0;
    this.#endedMs = nowMs;
    return false;
  }

  readonly #run = (): void => {
    if (this.#awaitsArrivals()) {
      setImmediate(this.#run);
      return;
    }
    this.#isScheduled = false;
    this.number++;
    this.#spareUnits = SHARES_AT_ONCE * SHARE;
    const dirty = this.#dirty;
    const pumping = this.#pumping;
    if (pumping.length > 0) {
      this.#pumping = [];
      this.#time.read();
      for (const waiting of pumping) waiting.continuePump();
    }
    this.#dirty = [];
    for (let at = 0; at < dirty.length; at++) {
      try {
        dirty[at].writer.flush();
      } catch (error) {
        dirty[at].session.failInternally(error, 'writing');
      }
    }
    endTurn();
    this.#onFlushed(); // before the frames are released, because the store writes messages from them
    releaseTurnFrames();
    if (this.#unserved.length > 0) this.#serve();
    if (this.#arrivals > 0) this.schedule(); // to notice an iteration without an arrival
    this.#services.work.end();
  };

  /**
   * Serve connections that sent more than their share of a turn, in rotation. Each gets one share, or more if few connections wait. This runs
   * after the flush and is short, so that it delays other connections as little as possible.
   */
  #serve(): void {
    const { clock } = this.#services;
    const waiting = this.#unserved; // a connection that needs another share is appended
    const shares = Math.max(1, Math.floor(SHARES_AT_ONCE / waiting.length));
    const untilMs = clock.monotonic() + SERVE_MS;
    let at = 0;
    let left = SHARES_AT_ONCE;
    while (at < waiting.length && left > 0 && (at === 0 || clock.monotonic() < untilMs)) {
      const connection = waiting[at++];
      left -= shares;
      try {
        connection.reader.serve(shares * SHARE);
      } catch (error) {
        connection.session.failInternally(error, 'reading a chunk');
      }
    }
    this.#unserved = waiting.slice(at);
    if (this.#unserved.length > 0) this.schedule();
  }
}
