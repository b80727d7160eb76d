import type { ByteStream } from '../base/byte-stream.ts';
import type { TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import type { SessionActions } from '../session/actions.ts';
import { ChartActions } from '../session/chart-actions.ts';
import type { SessionPorts } from '../session/ports.ts';
import { sessionMachine } from '../session/session.machine.ts';
import { Session } from '../session/session.ts';
import { SessionClient } from '../session/session-client.ts';
import type { SessionRecord } from '../session/session-record.ts';
import type { Actors, StartActor } from './actors.ts';

/** Creates the sessions of a broker, and their actors. */
export class SessionFactory {
  readonly #ports: SessionPorts<Session>;
  readonly #startActor: StartActor<SessionActions>;

  constructor(ports: SessionPorts<Session>, actors: Actors) {
    this.#ports = ports;
    this.#startActor = actors.logic<SessionActions>(
      sessionMachine,
      'session',
      (actions, error, action) => (actions as ChartActions).failed(error, `the session's ${action}`),
      'disconnected'
    );
  }

  /** Begin a session in `idle` with a stream. */
  begin(stream: ByteStream, transportInfo: TransportInfo, zone: Zone): Session {
    const session = new Session(this.#ports, new SessionClient(zone, transportInfo), stream);
    session.lifecycle.start(this.#startActor(new ChartActions(session), 'session'));
    return session;
  }

  /** Create an offline session, which has no actor, from the store; see `Session.restored`. */
  restore(record: SessionRecord, zone: Zone, aliveWallMs: number): Session {
    return Session.restored(this.#ports, zone, record, aliveWallMs);
  }

  /** Create the actor of an offline session again. */
  revive(session: Session): void {
    const { lifecycle, client } = session;
    if (lifecycle.hasActor) return;
    lifecycle.start(this.#startActor(new ChartActions(session), client.clientId, 'disconnected'));
  }
}
