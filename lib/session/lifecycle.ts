import { StateError } from '../base/errors.ts';
import type { Connection } from '../connection/connection.ts';
import { Metric } from '../events/metrics.ts';
import { DISCONNECT_REASONS, type DisconnectReason } from '../events/reasons.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { CountedStream } from '../records/listener.ts';
import type { SessionActions, SessionEvent } from './actions.ts';
import { connackCode, disconnectCode, disconnection, type Farewell, isAuthError, refusal } from './farewell.ts';
import type { Session } from './session.ts';
import { Will, type WillState } from './will.ts';

/** How a connection ends. */
interface Ending {
  readonly reason: DisconnectReason;
  readonly reasonCode: number;
  /** `publish` the will after its delay, `drop` it [MQTT-3.14.4-3], or `keep` it for the next start of the broker. */
  readonly will: 'publish' | 'drop' | 'keep';
  /** Destroy the stream instead of ending it. */
  readonly isAbrupt: boolean;
}

/** Options of `Lifecycle.close`. */
interface CloseOptions extends Farewell {
  /** Default: that of the reason (`DISCONNECT_REASONS`). */
  readonly reasonCode?: number | undefined;
  /** End the session as well. */
  readonly end?: boolean;
  /** See `Ending`; default `publish`. */
  readonly will?: Ending['will'];
  readonly isAbrupt?: boolean;
}

/** An authentication exchange in progress. */
export interface AuthExchange {
  readonly method: string;
  /** Handle the data of an AUTH packet. */
  receive(data: Buffer | undefined): void;
  /** End the exchange without a result. */
  abort(reason: Error): void;
}

/** Another connection takes the session over. */
interface Takeover {
  /** The provisional session that has the connection until `admit`. */
  incoming: Session | undefined;
  /** An action that was requested meanwhile; it runs afterwards. */
  whenDone: (() => void) | undefined;
}

const CLOSED: Ending = { reason: 'closed', reasonCode: ReasonCode.unspecifiedError, will: 'publish', isAbrupt: true };

/**
 * The life of a session: the actions of its chart, the ends of its connections, and its will.
 *
 * A session exists until its chart is in the state `gone`; connections are attached and detached.
 */
export class Lifecycle implements SessionActions {
  readonly #session: Session;
  /** The state of the chart. */
  state: 'idle' | 'connected' | 'disconnected' | 'gone' = 'idle';
  /** How the last connection has ended, or the present one is ending. */
  ending: Ending | undefined = undefined;
  will: Will | undefined = undefined;
  /** The authentication exchange in which the client may send AUTH. */
  auth: AuthExchange | undefined = undefined;
  #actor: { send(event: SessionEvent): void } | undefined = undefined;
  /** What decides on the CONNECT, and is aborted when the connection closes. */
  #decision: { abort(reason: Error): void } | undefined = undefined;
  #takeover: Takeover | undefined = undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Run the chart with this actor. */
  start(actor: { send(event: SessionEvent): void }): void {
    this.#actor = actor;
  }

  /** An offline session has no actor. */
  get hasActor(): boolean {
    return this.#actor !== undefined;
  }

  /** An action of the chart has failed. */
  failed(error: unknown, during: string): void {
    this.#session.failInternally(error, during);
  }

  send(event: SessionEvent['type']): void {
    this.#actor?.send({ type: event });
  }

  // ----------------------------------------------------------------------------------------------------- actions of the chart

  awaitConnect(): void {
    const { ports, timers } = this.#session;
    const connection = this.#connection;
    connection.reader.use(ports.handlers.beforeConnect);
    timers.awaitConnect((connection.stream as CountedStream).acceptedAt ?? ports.time.nowMs);
  }

  authenticate(): void {
    this.#connection.reader.use(this.#session.ports.handlers.authenticating);
  }

  admit(): void {
    const session = this.#session;
    const { ports, client, delivery, inbound } = session;
    if (this.#takeover?.incoming !== undefined) this.#takeFrom(this.#takeover, this.#takeover.incoming);
    const connection = this.#connection;
    connection.attach(session); // messages that listeners publish are sent after the CONNACK [MQTT-3.2.0-1]
    this.state = 'connected';
    client.connected(ports.clock.now());
    this.ending = undefined;
    delivery.attach(connection.writer);
    inbound?.attach();
    ports.sessions.changed(session);
  }

  /** Take over the connection of a provisional session, and what its CONNECT has negotiated. */
  #takeFrom(takeover: Takeover, other: Session): void {
    takeover.incoming = undefined;
    this.#session.attach(other.connection);
    other.attach(undefined);
    this.#session.client.returned(other.client);
    this.will = other.lifecycle.will; // a reconnect deletes a delayed will [MQTT-3.1.3-9]
  }

  goLive(): void {
    this.#connection.reader.use(this.#session.ports.handlers.live);
  }

  /** CONNACK with success has been sent: messages may follow. */
  connackSent(): void {
    const { client, delivery, timers, ports } = this.#session;
    const { mountpoint, agreement } = client;
    this.#connection.admitted(agreement.zone.maxPacketSize, mountpoint === '' ? agreement.layout : 0);
    delivery.updateFastPath();
    timers.connected(ports.clock.monotonic());
  }

  release(): void {
    const session = this.#session;
    const { ports, connection, client, timers, delivery, inbound } = session;
    const ending = this.ending ?? CLOSED;
    session.attach(undefined);
    delivery.detach();
    inbound?.detach();
    this.state = 'disconnected';
    client.disconnected(ports.clock.now());
    this.auth?.abort(new StateError('CONNECTION_CLOSED', 'the connection is closed'));
    this.auth = undefined;
    timers.disarm();
    ports.sessions.changed(session);
    closeStream(connection, ending.isAbrupt);
    ports.metrics.counts[Metric.clientDisconnected]++;
    if (ports.events.heard['client.disconnected'])
      ports.events.emit('client.disconnected', { client, reason: ending.reason, reasonCode: ending.reasonCode });
  }

  awaitExpiry(): void {
    const { ports, timers } = this.#session;
    if (this.state !== 'disconnected') return; // an error in `release` has ended the session
    this.#actor = undefined;
    timers.awaitExpiry(ports.clock.monotonic(), this.ending?.will === 'keep');
  }

  cancelExpiry(): void {
    this.#session.timers.cancelExpiry();
  }

  forget(): void {
    const session = this.#session;
    const { ports, connection, delivery, timers } = session;
    const reached = this.state !== 'idle';
    this.state = 'gone';
    delivery.flows.end();
    timers.disarm();
    if (!reached) {
      // there was no CONNACK, or the connection belongs to another session now
      session.attach(undefined);
      if (connection !== undefined && connection.session === session) connection.end();
    }
    this.#actor = undefined;
    const reason = this.ending?.reason === 'slow_consumer' ? 'slow_consumer' : 'session_terminated';
    const isHandedOver = reached && ports.handOvers.begin(session, reason);
    if (!isHandedOver) session.log?.end();
    ports.sessions.forget(session);
    if (reached && this.ending?.will === 'keep') ports.wills.keep(session);
    else if (reached) this.publishWill(); // after the removal of its subscriptions, which must not receive the will
    if (isHandedOver) {
      session.client.expireAfter(0); // marks the session as ended in its record
      delivery.clear(undefined);
    } else {
      const isInMemory = reached && session.log === undefined;
      delivery.clear(reason, isInMemory ? ports.handOvers.giverFor(session) : undefined);
    }
    session.inbound?.unload();
  }

  /** The connection, in a state that has one. */
  get #connection(): Connection<Session> {
    return this.#session.connection as Connection<Session>;
  }

  // ----------------------------------------------------------------------------------------------- a connection takes over

  /** The connection of this provisional session takes over; `resume` follows. */
  yieldTo(incoming: Session): void {
    this.#takeover = { incoming, whenDone: undefined };
  }

  /** The client is back with another connection. @returns the will of the previous one, to publish after the CONNACK */
  resume(): WillState | undefined {
    if (this.state === 'connected') return this.#detachPrevious();
    this.#session.ports.sessions.revive(this.#session);
    this.send('resumed');
    return undefined;
  }

  /** Another connection is taking this session over. */
  get isChanging(): boolean {
    return this.#takeover?.incoming !== undefined;
  }

  /** Run this when the connection that is taking over has taken over. */
  afterChange(run: () => void): void {
    if (this.#takeover !== undefined) this.#takeover.whenDone = run;
  }

  /** The connection has taken over. */
  handedOver(): void {
    const whenDone = this.#takeover?.whenDone;
    this.#takeover = undefined;
    whenDone?.();
  }

  /**
   * Detach the connection, because another one with the same client id takes the session over.
   * @returns the will to publish after the CONNACK; undefined if there is none. A delayed will is deleted [MQTT-3.1.3-9].
   */
  #detachPrevious(): WillState | undefined {
    const { connection } = this.#session;
    const { will } = this;
    if (connection?.isConnackSent && !connection.isClosed)
      this.#sendDisconnect(connection, ReasonCode.sessionTakenOver, {}); // [MQTT-3.1.4-3]
    this.will = undefined;
    this.ending = { reason: 'takeovered', reasonCode: ReasonCode.sessionTakenOver, will: 'drop', isAbrupt: false };
    this.send('takenOver');
    return will?.delayMs === 0 && connection?.isConnackSent ? will : undefined;
  }

  // ----------------------------------------------------------------------------------------------------------------- endings

  /** Something decides on the CONNECT; undefined: it has decided. */
  decidedBy(decision: { abort(reason: Error): void } | undefined): void {
    this.#decision = decision;
  }

  /** Abort the hooks that decide on the CONNECT. */
  abortHooks(): void {
    this.#decision?.abort(new StateError('CONNECTION_CLOSED', 'the connection is closed'));
    this.#decision = undefined;
  }

  /** The client may send AUTH in this exchange; undefined: it is over. */
  exchange(auth: AuthExchange | undefined): void {
    this.auth = auth;
  }

  /** The client does not read for longer than it may. */
  tooSlow(): void {
    this.#session.ports.sessions.slowConsumer(this.#session);
    this.close('slow_consumer', { isAbrupt: true });
  }

  /** Close the connection, with CONNACK or DISCONNECT if the protocol version has them. */
  close(reason: DisconnectReason, options: CloseOptions = {}): void {
    const { connection, client } = this.#session;
    const { will = 'publish', isAbrupt = false } = options;
    let { reasonCode = DISCONNECT_REASONS[reason].reasonCode } = options;
    if (connection?.isConnackSent) reasonCode = disconnectCode(reasonCode);
    if (options.end) client.expireAfter(0);
    if (connection !== undefined && !connection.isClosed) {
      if (connection.isConnackSent) this.#sendDisconnect(connection, reasonCode, options);
      else this.#refuse(connection, reasonCode, options);
    }
    this.lost({ reason, reasonCode, will, isAbrupt });
  }

  #sendDisconnect(connection: Connection<Session>, reasonCode: number, farewell: Farewell): void {
    const { agreement, protocolVersion } = this.#session.client;
    if (protocolVersion === 5)
      connection.writer.send(disconnection(reasonCode, farewell, agreement.maxFrame), Metric.packetsDisconnectSent);
  }

  #refuse(connection: Connection<Session>, reasonCode: number, farewell: Farewell): void {
    const { ports, client } = this.#session;
    const { counts } = ports.metrics;
    const version = connection.takeAnswerVersion();
    if (version === undefined) return; // the CONNECT was not readable, or a CONNACK has been sent [MQTT-3.2.0-2]
    const code = connackCode(reasonCode);
    counts[Metric.packetsConnackError]++;
    if (isAuthError(reasonCode)) counts[Metric.packetsConnackAuthError]++;
    counts[Metric.clientConnack]++;
    const packet = refusal(code, version, farewell, client.agreement.maxFrame);
    if (packet !== undefined) connection.writer.send(packet, Metric.packetsConnackSent);
    if (ports.events.heard['client.connack']) ports.events.emit('client.connack', { client, reasonCode: code });
  }

  /** The connection ends in this way. */
  lost(ending: Ending): void {
    if (this.state === 'gone') return;
    // without a CONNACK there is no will [MQTT-3.1.4-6]
    if (this.#session.connection?.isConnackSent === false) ending = { ...ending, will: 'drop' };
    this.ending = ending;
    if (this.state === 'idle') {
      this.send('closed');
      return;
    }
    if (this.state !== 'connected') return;
    if (ending.will === 'drop') this.takeWill();
    this.send(this.#session.client.isPersistent ? 'detached' : 'closed');
  }

  /** End an offline session. */
  end(event: 'expired' | 'discarded', reason: DisconnectReason): void {
    this.ending = { ...(this.ending ?? CLOSED), reason };
    if (this.state !== 'disconnected') return;
    this.#actor = undefined; // an offline session has no live actor
    this.#session.ports.sessions.revive(this.#session);
    this.send(event);
  }

  // ------------------------------------------------------------------------------------------------------------ the store

  /** The session comes from the store. */
  restore(will: Will | undefined): void {
    this.state = 'disconnected';
    this.will = will;
  }

  /** The session from the store has ended, and the process ended while its messages were handed over. */
  restoreEnded(): void {
    this.state = 'gone';
    this.#session.delivery.flows.end();
  }

  /** After the start of the broker: end the session or publish its will if they are due, and set the timer for the rest. */
  rearmOffline(): void {
    if (this.state !== 'disconnected') return;
    const { timers, ports, log } = this.#session;
    const { nowMs } = ports.time;
    if (this.ending?.will === 'keep') {
      this.ending = { ...this.ending, will: 'publish' };
      this.will?.delayFrom(nowMs);
      log?.detached(); // writes the time of the disconnect
    }
    timers.rearmOffline(nowMs);
  }

  // ------------------------------------------------------------------------------------------------------------------- will

  /** The will of the CONNECT; undefined if it has none. */
  agreeOnWill(will: WillState | undefined): void {
    this.will = will && new Will(will);
  }

  /** Remove the will. @returns it; undefined if there is none */
  takeWill(): Will | undefined {
    const { will } = this;
    if (will === undefined) return undefined;
    this.will = undefined;
    this.#session.log?.changed(); // the same commit deletes the will and persists the message
    will.taken();
    return will;
  }

  /** Publish the will now, if there is one. */
  publishWill(): void {
    const will = this.takeWill();
    if (will !== undefined) this.#session.ports.wills.publish(this.#session, will);
  }
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
