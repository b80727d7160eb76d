// No packet sets a timer. A packet notes its time, and when the one timer of the session rings, `rearm` computes the
// next time from what is true then. A change that makes something due earlier must call `rearm` or `dueAt`; one that
// makes it due later need not. Times are monotonic, except for the expiry of an authentication, which is wall-clock
// time and is converted each time, because the wall clock may be set.

import type { Clock } from '../../base/clock.ts';
import type { TimeReading } from '../../base/time-reading.ts';
import { BaseTimer, type TimingWheel } from '../../base/timing-wheel.ts';
import { Metric, type Metrics } from '../../events/metrics.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { Inflight } from '../messages/inflight.ts';
import type { Outlet } from '../messages/outlet.ts';
import type { SessionClient } from '../session-client.ts';
import type { SessionState } from './chart.ts';
import type { Will } from './will.ts';

/** The part of a connection that the timer of its session watches. */
interface WatchedConnection {
  readonly reader: {
    readonly pauses: number;
    readonly receivedBytes: number;
    readonly lastReceivedMs: number;
    /** Called while reading is paused: the keep alive does not run. */
    keepAlive(nowMs: number): void;
  };
  readonly writer: {
    readonly isBlocked: boolean;
    /** Time since which the stream is blocked and has sent nothing; `Infinity`: it is not blocked. */
    readonly stalledSinceMs: number;
    /** Record whether the stream has sent anything since the last check. */
    checkProgress(nowMs: number): void;
  };
}

/** The part of the session that `SessionTimers` uses. */
interface TimerOwner {
  readonly ports: {
    readonly clock: Clock;
    readonly wheel: TimingWheel;
    readonly time: TimeReading;
    readonly metrics: Metrics;
    readonly ledger: Ledger | undefined;
  };
  readonly client: SessionClient;
  readonly connection: WatchedConnection | undefined;
  readonly outlet: Outlet;
  readonly state: SessionState;
  readonly lifecycle: {
    readonly will: Will | undefined;
    publishWill(): void;
    /** Called when the client does not read. */
    tooSlow(): void;
    close(reason: 'connect_timeout' | 'idle_timeout' | 'keepalive_timeout' | 'expired_token'): void;
    end(event: 'expired', reason: 'expired'): void;
  };
}

/** The packets in flight that are sent again when a `retryInterval` is over. */
interface Retry {
  /** End of the interval. */
  readonly dueMs: number;
  /** Mark of the packets that were in flight when it started. */
  readonly mark: number;
  /** The commit that these packets may wait for. */
  readonly ticket: number;
}

/** The deadlines of a session, all on one timer of the wheel. */
export class SessionTimers extends BaseTimer {
  readonly #session: TimerOwner;
  /**
   * Before CONNACK: the time by which the client must have been accepted. While the client is away: the time at which the session expires.
   * While it is connected: the time at which its authentication expires, in wall-clock time; undefined: never.
   */
  #deadline: number | undefined = undefined;
  #retry: Retry | undefined = undefined;

  constructor(session: TimerOwner) {
    super();
    this.#session = session;
  }

  /** Wait for the CONNECT of a connection that was accepted at this time. */
  awaitConnect(acceptedMs: number): void {
    const { connectTimeout, idleTimeout } = this.#session.client.agreement.zone;
    this.#deadline = acceptedMs + connectTimeout;
    this.#session.ports.wheel.armAt(this, Math.min(this.#deadlineMs, acceptedMs + idleTimeout));
  }

  /** Note that the client is accepted. Its CONNACK may still wait for a commit. */
  accepted(): void {
    this.#deadline = undefined;
  }

  /** Set the deadlines of a client that has connected. @param expiresAt see `authenticated` */
  connected(nowMs: number, expiresAt: number | undefined): void {
    this.#beginRetry(nowMs);
    this.authenticated(expiresAt);
  }

  /** Note that a connected client has authenticated. @param expiresAt time at which that expires, in wall-clock time; undefined: never */
  authenticated(expiresAt: number | undefined): void {
    this.#deadline = expiresAt;
    this.rearm();
  }

  /** Disarm the timer, because nothing is due. */
  disarm(): void {
    this.#deadline = undefined;
    this.#session.ports.wheel.disarm(this);
  }

  /** Set the deadlines of a client that is away. @param isWillKept the broker stops: the will is published after its next start */
  awaitExpiry(nowMs: number, isWillKept: boolean): void {
    const { client, lifecycle, ports } = this.#session;
    this.#deadline = nowMs + client.sessionExpiry * 1000;
    const { will } = lifecycle;
    will?.delayFrom(nowMs);
    if (isWillKept) return;
    const isWillDue = this.#willDueMs <= nowMs;
    ports.wheel.armAt(this, isWillDue ? this.#deadlineMs : Math.min(this.#deadlineMs, this.#willDueMs));
    if (isWillDue) lifecycle.publishWill();
  }

  /** Stop waiting for the expiry, because the client is back. */
  cancelExpiry(): void {
    this.disarm();
    this.#session.lifecycle.will?.wait();
  }

  /** Set the time at which a session from the store expires; monotonic milliseconds. */
  restore(expiresMs: number): void {
    this.#deadline = expiresMs;
  }

  /** After the start of the broker: handle what is due, and set the timer for the rest. */
  rearmOffline(nowMs: number): void {
    const dueMs = Math.min(this.#deadlineMs, this.#willDueMs);
    if (dueMs <= nowMs) this.ring(nowMs);
    else this.#session.ports.wheel.armAt(this, dueMs);
  }

  /** Set the timer of a connected session to the next time at which something is due. */
  rearm(): void {
    const { connection, ports, client, state, outlet } = this.#session;
    const { slowConsumerTimeout, awaitRelTimeout } = client.agreement.zone;
    if (connection === undefined || state !== 'connected') return;
    let dueMs = Infinity;
    if (client.keepalive > 0) dueMs = connection.reader.lastReceivedMs + this.#keepAliveMs;
    if (slowConsumerTimeout > 0) dueMs = Math.min(dueMs, connection.writer.stalledSinceMs + slowConsumerTimeout);
    if (this.#retry !== undefined) dueMs = Math.min(dueMs, this.#retry.dueMs);
    if (this.#deadline !== undefined)
      dueMs = Math.min(dueMs, ports.clock.monotonic() + this.#deadline - ports.clock.now());
    if (awaitRelTimeout > 0 && outlet.inflight !== undefined)
      dueMs = Math.min(dueMs, this.#forgetAwaitingRel(outlet.inflight, ports.clock.monotonic(), awaitRelTimeout));
    if (dueMs !== this.dueMs) ports.wheel.armAt(this, dueMs);
  }

  /** Set the timer for something of a connected session that is due at this time. */
  dueAt(ms: number): void {
    if (this.dueMs > ms) this.rearm();
  }

  #forgetAwaitingRel(inflight: Inflight, nowMs: number, timeoutMs: number): number {
    const { outlet, ports } = this.#session;
    return inflight.expireRel(nowMs, timeoutMs, () => {
      ports.metrics.counts[Metric.messagesQos2Expired]++;
      outlet.log?.flowTouched();
    });
  }

  get #deadlineMs(): number {
    return this.#deadline ?? Infinity;
  }

  get #willDueMs(): number {
    return this.#session.lifecycle.will?.dueMs ?? Infinity;
  }

  /** When a connection that sends nothing is closed, in monotonic milliseconds; `Infinity`: never, undefined: there is no connection. */
  get silentUntilMs(): number | undefined {
    const { connection, client } = this.#session;
    if (connection === undefined) return undefined;
    return client.keepalive > 0 ? connection.reader.lastReceivedMs + this.#keepAliveMs : Infinity;
  }

  get #keepAliveMs(): number {
    const { keepalive, agreement } = this.#session.client;
    return keepalive * 1000 * agreement.zone.keepaliveBackoff * 2; // [MQTT-3.1.2-22]
  }

  /** Start a `retryInterval`. In MQTT 5.0 packets are sent again only after a reconnect [MQTT-4.4.0-1]. */
  #beginRetry(nowMs: number): void {
    const { client, outlet } = this.#session;
    const { retryInterval } = client.agreement.zone;
    const { inflight, log } = outlet;
    const isOn = retryInterval > 0 && client.protocolVersion !== 5;
    const ticket = Math.max(log?.ticket ?? 0, outlet.lastTicket);
    this.#retry = isOn ? { dueMs: nowMs + retryInterval, mark: inflight?.mark ?? 0, ticket } : undefined;
  }

  /**
   * Send the packets again that were in flight when the interval started, if all of them have been sent and no longer wait for a commit.
   */
  #sendAgain({ mark, ticket }: Retry, connection: WatchedConnection): void {
    const { outlet, ports } = this.#session;
    if (!connection.writer.isBlocked && ticket <= (ports.ledger?.settled ?? 0)) outlet.inflight?.resend(mark);
  }

  /** Handle everything that is due when the timer rings. */
  ring(nowMs: number): void {
    const { ports, state, connection } = this.#session;
    ports.time.rang(nowMs);
    if (state === 'idle') this.#ringBeforeConnack(nowMs);
    else if (state === 'disconnected') this.#ringOffline(nowMs);
    else if (connection !== undefined) this.#ringConnected(connection, nowMs);
  }

  #ringBeforeConnack(nowMs: number): void {
    const { ports, lifecycle, connection } = this.#session;
    if (nowMs >= this.#deadlineMs) lifecycle.close('connect_timeout');
    else if (connection?.reader.receivedBytes === 0) lifecycle.close('idle_timeout');
    else ports.wheel.armAt(this, this.#deadlineMs);
  }

  #ringOffline(nowMs: number): void {
    const { ports, lifecycle } = this.#session;
    if (nowMs >= this.#deadlineMs) {
      lifecycle.end('expired', 'expired');
      return;
    }
    if (nowMs >= this.#willDueMs) lifecycle.publishWill();
    ports.wheel.armAt(this, Math.min(this.#deadlineMs, this.#willDueMs));
  }

  #ringConnected(connection: WatchedConnection, nowMs: number): void {
    const { client, lifecycle, ports } = this.#session;
    const { slowConsumerTimeout } = client.agreement.zone;
    const { reader, writer } = connection;
    if (this.#deadline !== undefined && ports.clock.now() >= this.#deadline) {
      lifecycle.close('expired_token');
      return;
    }
    if (reader.pauses !== 0) reader.keepAlive(nowMs);
    else if (client.keepalive > 0 && nowMs >= reader.lastReceivedMs + this.#keepAliveMs) {
      lifecycle.close('keepalive_timeout');
      return;
    }
    if (slowConsumerTimeout > 0) {
      writer.checkProgress(nowMs);
      if (nowMs >= writer.stalledSinceMs + slowConsumerTimeout) {
        lifecycle.tooSlow();
        return;
      }
    }
    if (this.#retry !== undefined && nowMs >= this.#retry.dueMs) {
      this.#sendAgain(this.#retry, connection);
      this.#beginRetry(nowMs);
    }
    this.rearm();
  }
}
