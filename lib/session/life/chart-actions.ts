import type { Connection } from '../../connection/connection.ts';
import { Metric } from '../../events/metrics.ts';
import { LOST, NO_WILL } from '../../events/reasons.ts';
import type { CountedStream } from '../../records/listener.ts';
import type { Session } from '../session.ts';
import type { SessionActions } from './chart.ts';
import { CLOSED } from './lifecycle.ts';

/** The actions of a session when its chart enters or leaves a state. Created for a transition. */
export class ChartActions implements SessionActions {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  outlivesConnection(): boolean {
    return this.#session.client.isPersistent;
  }

  awaitConnect(): void {
    const { ports, timers } = this.#session;
    const connection = connectionOf(this.#session);
    connection.reader.use(ports.handlers.beforeConnect);
    timers.awaitConnect((connection.stream as CountedStream).acceptedAt ?? ports.time.nowMs);
  }

  authenticate(): void {
    connectionOf(this.#session).reader.use(this.#session.ports.handlers.authenticating);
  }

  admit(): void {
    const session = this.#session;
    const { ports, client, outlet, lifecycle, timers } = session;
    lifecycle.takeover?.attach();
    const connection = connectionOf(session);
    connection.attach(session); // messages that listeners publish are sent after the CONNACK [MQTT-3.2.0-1]
    const now = ports.clock.now();
    lifecycle.connected(now, ports.time.nowMs);
    client.noteConnected(true, now);
    outlet.attach(connection.writer);
    timers.accepted();
    ports.sessions.changed(session, true);
  }

  goLive(): void {
    connectionOf(this.#session).reader.use(this.#session.ports.handlers.live);
  }

  release(): void {
    const session = this.#session;
    const { ports, connection, client, timers, outlet, lifecycle } = session;
    const ending = lifecycle.ending ?? CLOSED;
    session.attach(undefined);
    outlet.detach();
    client.noteConnected(false, ports.clock.now());
    lifecycle.abortDecision();
    timers.disarm();
    ports.sessions.changed(session, false);
    closeStream(connection, ending.isAbrupt);
    ports.metrics.counts[Metric.clientDisconnected]++;
    const isWithout = LOST.has(ending.reason) && lifecycle.will === undefined;
    const detail = ending.why ?? (isWithout ? NO_WILL : undefined);
    const isSilent = ending.reason === 'keepalive_timeout' && connection !== undefined;
    const silentMs = isSilent ? ports.clock.monotonic() - connection.reader.lastReceivedMs : undefined;
    ports.reasons.add(`disconnected_${ending.reason}`, {
      clientId: client.clientId,
      ...(detail === undefined ? {} : { detail }),
      ...(silentMs === undefined ? {} : { since: ports.clock.now() - silentMs })
    });
    if (ports.events.heard['client.disconnected'])
      ports.events.emit('client.disconnected', { client, reason: ending.reason, reasonCode: ending.reasonCode });
  }

  awaitExpiry(): void {
    const { ports, timers, lifecycle } = this.#session;
    if (lifecycle.ending?.isOver) return; // a listener has ended it, and `forget` publishes its will
    timers.awaitExpiry(ports.clock.monotonic(), lifecycle.ending?.will === 'keep');
  }

  cancelExpiry(): void {
    this.#session.timers.cancelExpiry();
  }

  forget(left: string): void {
    const session = this.#session;
    const { ports, connection, outlet, timers, lifecycle } = session;
    const reached = left !== 'idle';
    outlet.end();
    timers.disarm();
    if (!reached) {
      // there was no CONNACK, or the connection belongs to another session now
      session.attach(undefined);
      if (connection !== undefined && connection.session === session) connection.end();
    }
    const reason = lifecycle.ending?.reason === 'slow_consumer' ? 'slow_consumer' : 'session_terminated';
    const isHandedOver = reached && ports.handOvers.begin(session, reason);
    if (!isHandedOver) session.log?.end();
    ports.sessions.forget(session);
    if (reached && lifecycle.ending?.will === 'keep') ports.wills.keep(session);
    else if (reached) lifecycle.publishWill(); // after the removal of its subscriptions, which must not receive the will
    if (isHandedOver) {
      session.client.expireAfter(0); // marks the session as ended in its record
      outlet.clear(undefined);
    } else {
      const isInMemory = reached && session.log === undefined;
      outlet.clear(reason, isInMemory ? ports.handOvers.giverFor(session) : undefined);
    }
  }
}

/** The connection, in a state that has one. */
function connectionOf(session: Session): Connection<Session> {
  return session.connection as Connection<Session>;
}

function closeStream(connection: Connection<Session> | undefined, isAbrupt: boolean): void {
  try {
    if (isAbrupt) connection?.destroy();
    else connection?.end();
  } catch (error) {
    connection?.destroy();
    throw error;
  }
}
