// The end of a connection has one order: CONNACK or DISCONNECT is written, `ending` is set, and then the event is
// sent to the chart. The actions of the chart (`ChartActions`) detach the connection and read `ending`, so neither
// may come later. A connection is ended with `close` or `lost`, an offline session with `end`; other code sends only
// the events of a CONNECT (`Admission`, `onConnect`, `Takeover`).
//
// A will leaves the session with `takeWill` before it is published, in the same turn, so that one commit deletes the
// will and persists its message.

import { StateError } from '../../base/errors.ts';
import {
  DISCONNECT_REASONS,
  type DisconnectReason,
  type DisconnectReasonEntry,
  WILL_DROPS
} from '../../events/reasons.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { ConnectCode } from '../ports.ts';
import type { Session } from '../session.ts';
import type { SessionEvent } from './chart.ts';
import { disconnectCode, type Farewell, recordRefusal, refusalOf, refuse, sendDisconnect } from './farewell.ts';
import type { Will, WillState } from './will.ts';

/** The way in which a connection ends. */
interface Ending {
  readonly reason: DisconnectReason;
  readonly reasonCode: number;
  /** `publish` the will after its delay, `drop` it [MQTT-3.14.4-3], or `keep` it for the next start of the broker. */
  readonly will: 'publish' | 'drop' | 'keep';
  /** Destroy the stream instead of ending it. */
  readonly isAbrupt: boolean;
  /** True if the session ends as well, without waiting for its expiry. */
  readonly isOver?: boolean;
  /** The reason in words, for operators; default: the text of `reason`. */
  readonly why?: string | undefined;
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
  /** The code of the record of a refused CONNECT; default: by the reason code. */
  readonly refusal?: ConnectCode | undefined;
}

/** A decision on a CONNECT or a re-authentication in progress. */
interface Decision {
  /** The authentication exchange in which the client may send AUTH; undefined if there is none. */
  readonly exchange?: AuthExchange | undefined;
  /** End it without a result. */
  abort(reason: Error): void;
}

/** An authentication exchange that has sent a challenge to the client. */
export interface AuthExchange {
  readonly method: string;
  /** Handle the data of an AUTH packet. */
  receive(data: Buffer | undefined): void;
}

/** The takeover of the session by another connection; see `Takeover`. */
interface TakeoverInProgress {
  /** True if the connection is not attached yet. */
  readonly isPending: boolean;
  attach(): void;
  /** Run this when the takeover has ended. */
  afterwards(run: () => void): void;
}

/** The reasons for which a will is deleted when its connection ends, in words; for `normal` the cause itself says it. */
const DELETIONS: Readonly<Partial<Record<DisconnectReason, string | undefined>>> = {
  normal: undefined,
  kicked: WILL_DROPS.kicked,
  server_shutting_down: WILL_DROPS.stopped
};

/** Reasons that concern the broker, but for which a client that connects is rejected. */
const REFUSALS: readonly DisconnectReason[] = ['source_failed', 'store_failed', 'internal_error'];

/** The ending of a connection for which no other one was set. */
export const CLOSED: Ending = {
  reason: 'closed',
  reasonCode: ReasonCode.unspecifiedError,
  will: 'publish',
  isAbrupt: true
};

/**
 * The life of a session: the decisions on its connections and their endings, and its will.
 *
 * A session exists until its chart is in the state `gone`; connections are attached and detached (`ChartActions`).
 */
export class Lifecycle {
  readonly #session: Session;
  /** The way in which the last connection has ended, or the current one is ending. */
  ending: Ending | undefined = undefined;
  /** Time of the last connection of the client, in wall-clock milliseconds; kept after it has disconnected. */
  connectedAt: number | undefined = undefined;
  /** Monotonic milliseconds of the last connection. */
  connectedMs = 0;
  will: Will | undefined = undefined;
  /** The decision on the CONNECT or a re-authentication in progress, which is aborted when the connection closes. */
  decision: Decision | undefined = undefined;
  /** The takeover of the session by another connection, while it is in progress. */
  takeover: TakeoverInProgress | undefined = undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Send an event to the chart of the session. */
  send(event: SessionEvent['type']): void {
    this.#session.ports.chart.send(this.#session, event);
  }

  /** The client has connected. @param connectedAt in wall-clock milliseconds @param nowMs monotonic */
  connected(connectedAt: number, nowMs: number): void {
    this.connectedAt = connectedAt;
    this.connectedMs = nowMs;
    this.ending = undefined;
  }

  // -------------------------------------------------------------------------------------------------------------- connection

  /** Set the decision on the CONNECT or a re-authentication; undefined: none is in progress. */
  decidedBy(decision: Decision | undefined): void {
    this.decision = decision;
  }

  /** Abort the decision in progress, because the connection is closed. */
  abortDecision(): void {
    this.decision?.abort(new StateError('CONNECTION_CLOSED', 'the connection is closed'));
    this.decision = undefined;
    const { client, ports } = this.#session;
    ports.hooks.questions.closed(client);
  }

  /** CONNACK with success has been sent: messages may follow. @param expiresAt see `Approval` */
  connackSent(expiresAt: number | undefined): void {
    const { client, connection, outlet, timers, ports } = this.#session;
    const { mountpoint, agreement } = client;
    connection?.admitted(agreement.zone.maxPacketSize, mountpoint === '' ? agreement.layout : 0);
    outlet.updateFastPath();
    timers.connected(ports.clock.monotonic(), expiresAt);
  }

  /** Note that another connection is taking the session over; undefined: it has done so. */
  takenOverBy(takeover: TakeoverInProgress | undefined): void {
    this.takeover = takeover;
  }

  /**
   * Detach the connection, because another one with the same client id takes the session over.
   * @param why names the other connection
   * @returns the will to publish after the CONNACK; undefined if there is none. A delayed will is deleted [MQTT-3.1.3-9].
   */
  supersede(why: string): WillState | undefined {
    const { connection, client, ports } = this.#session;
    const { will } = this;
    const reason = 'takeovered';
    const { reasonCode } = DISCONNECT_REASONS[reason];
    if (connection !== undefined && !connection.isClosed) {
      if (connection.isConnackSent)
        sendDisconnect(connection.writer, client, reasonCode, {}); // [MQTT-3.1.4-3]
      else refuse(connection, client, ports, reason, reasonCode, {}); // no DISCONNECT before CONNACK [MQTT-3.14.0-1]
    }
    this.will = undefined;
    this.ending = { reason, reasonCode, will: 'drop', isAbrupt: false, why };
    this.send('takenOver');
    const isAccepted = connection?.isConnackSent === true;
    if (will?.delayMs === 0 && isAccepted) return will;
    if (will !== undefined) this.#noteDropped(will, isAccepted ? WILL_DROPS.returned : WILL_DROPS.notAccepted);
    return undefined;
  }

  // ----------------------------------------------------------------------------------------------------------------- endings

  /** Close the connection of a client that has not read for too long. */
  tooSlow(): void {
    this.#session.ports.sessions.slowConsumer(this.#session);
    this.close('slow_consumer', { isAbrupt: true });
  }

  /** Close the connection, with CONNACK or DISCONNECT if the protocol version has them. */
  close(reason: DisconnectReason, options: CloseOptions = {}): void {
    const { connection, client, ports } = this.#session;
    const { will = 'publish', isAbrupt = false } = options;
    let { reasonCode = DISCONNECT_REASONS[reason].reasonCode } = options;
    if (connection?.isConnackSent) reasonCode = disconnectCode(reasonCode);
    if (options.end) client.expireAfter(0);
    if (connection !== undefined && !connection.isClosed) {
      const { isRejection, about }: DisconnectReasonEntry = DISCONNECT_REASONS[reason];
      const why = options.why ?? options.reasonString ?? about;
      if (isRejection === true || (!connection.isConnackSent && REFUSALS.includes(reason)))
        ports.rejections.add({ client, address: undefined, reason, reasonCode, why });
      if (connection.isConnackSent) sendDisconnect(connection.writer, client, reasonCode, options);
      else {
        recordRefusal(client, ports, options.refusal ?? refusalOf(reasonCode), why);
        refuse(connection, client, ports, reason, reasonCode, options);
      }
    }
    this.lost({ reason, reasonCode, will, isAbrupt, why: options.why ?? options.reasonString });
  }

  /** End the connection in this way. */
  lost(ending: Ending): void {
    const { state } = this.#session;
    if (state === 'gone') return;
    // without a CONNACK there is no will [MQTT-3.1.4-6]
    if (this.#session.connection?.isConnackSent === false) ending = { ...ending, will: 'drop' };
    this.ending = ending;
    if (state === 'connected' && ending.will === 'drop') this.dropWill(ending.reason);
    this.send('closed');
  }

  /** End an offline session; from a listener of `client.disconnected`, after the transition. */
  end(event: 'expired' | 'discarded', reason: DisconnectReason): void {
    this.ending = { ...(this.ending ?? CLOSED), reason, isOver: true };
    this.send(event);
  }

  // ------------------------------------------------------------------------------------------------------------ the store

  /** Restore the session from the store. */
  restore(will: Will | undefined, connectedAt: number | undefined): void {
    this.connectedAt = connectedAt;
    this.will = will;
  }

  /** After the start of the broker: end the session or publish its will if they are due, and set the timer for the rest. */
  rearmOffline(): void {
    if (this.#session.state !== 'disconnected') return;
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

  /** The will of the CONNECT; undefined if it has none. A delayed one of the previous connection is deleted [MQTT-3.1.3-9]. */
  agreeOnWill(will: Will | undefined): void {
    if (this.will !== undefined) this.#noteDropped(this.will, WILL_DROPS.returned);
    this.will = will;
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

  /** Delete the will, because the client or an operator does not want it to be published [MQTT-3.14.4-3]. */
  dropWill(reason: DisconnectReason): void {
    const will = this.takeWill();
    if (will !== undefined) this.#noteDropped(will, reason in DELETIONS ? DELETIONS[reason] : WILL_DROPS.notAccepted);
  }

  #noteDropped({ message: { topic, qos } }: Will, detail: string | undefined): void {
    const { client, ports } = this.#session;
    ports.reasons.add('will_dropped', { publisher: client.clientId, topic, qos, detail });
  }

  /** Publish the will now, if there is one. */
  publishWill(): void {
    const will = this.takeWill();
    if (will !== undefined) this.#session.ports.wills.publish(this.#session, will);
  }
}
