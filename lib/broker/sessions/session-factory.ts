import type { ByteStream } from '../../base/byte-stream.ts';
import type { Chart } from '../../base/charted.ts';
import type { TransportInfo } from '../../records/client.ts';
import { LastTraffic } from '../../records/last-traffic.ts';
import type { Zone } from '../../records/zone.ts';
import { HANDLERS } from '../../session/handlers/tables.ts';
import type { SessionActions } from '../../session/life/chart.ts';
import { ChartActions } from '../../session/life/chart-actions.ts';
import { sessionMachine } from '../../session/life/session.machine.ts';
import type { SessionEntry } from '../../session/messages/session-record.ts';
import type { SessionPorts } from '../../session/ports.ts';
import { Session } from '../../session/session.ts';
import { SessionClient } from '../../session/session-client.ts';
import type { Actors } from '../actors.ts';
import type { Services } from '../services.ts';

/** The parts of the broker that sessions use, except for the services and those that `SessionFactory` adds. */
type SessionParts = Pick<
  SessionPorts<Session>,
  | 'pressure'
  | 'routing'
  | 'publishing'
  | 'rewrites'
  | 'subscribing'
  | 'admission'
  | 'connections'
  | 'wills'
  | 'handOvers'
  | 'ledger'
> & {
  readonly sessions: Pick<SessionPorts<Session>['sessions'], 'forget' | 'changed' | 'slowConsumer'>;
  readonly access: { readonly deliveryRights: SessionPorts<Session>['rights'] };
  readonly retainer: { readonly messages: SessionPorts<Session>['retained'] };
  /** undefined: there is no store. */
  readonly storedSessions: { readonly sweeper: SessionPorts<Session>['sweeper'] } | undefined;
};

/** Creates the sessions of a broker, and runs their charts. */
export class SessionFactory {
  readonly #ports: SessionPorts<Session>;
  readonly #chart: Chart<Session>;

  constructor(services: Services, actors: Actors, parts: SessionParts) {
    this.#chart = actors.chart<Session, SessionActions>(sessionMachine(), {
      key: 'session',
      actionsOf: (session) => new ChartActions(session),
      idOf: ({ client }) => client.clientId || 'session',
      failed: (session, error, action) => session.failInternally(error, `the session's ${action}`),
      methodsFor: (id) => `kick or discard of broker.sessions.get("${id}")`
    });
    this.#ports = this.#portsOf(services, parts);
  }

  #portsOf(services: Services, parts: SessionParts): SessionPorts<Session> {
    const { sessions, storedSessions } = parts;
    return {
      chart: this.#chart,
      node: services.settings.node,
      lastTraffic: new LastTraffic(),
      clock: services.clock,
      time: services.time,
      wheel: services.wheel,
      work: services.work,
      metrics: services.metrics,
      rejections: services.rejections,
      reasons: services.reasons,
      events: services.events,
      hooks: services.hooks,
      announcer: services.announcer,
      limits: services.settings,
      rights: parts.access.deliveryRights,
      turn: services.turn,
      slices: services.slices,
      taps: services.taps,
      routing: parts.routing,
      publishing: parts.publishing,
      rewrites: parts.rewrites,
      retained: parts.retainer.messages,
      connections: parts.connections,
      admission: parts.admission,
      subscribing: parts.subscribing,
      sessions: {
        forget: (session) => sessions.forget(session),
        changed: (session, isConnected) => sessions.changed(session, isConnected),
        slowConsumer: (session) => sessions.slowConsumer(session)
      },
      wills: parts.wills,
      handOvers: parts.handOvers,
      sweeper: { add: (session) => storedSessions?.sweeper.add(session) },
      pressure: parts.pressure,
      ledger: parts.ledger,
      handlers: HANDLERS
    };
  }

  /** Start a session in `idle` with a stream. */
  begin(stream: ByteStream, transportInfo: TransportInfo, zone: Zone): Session {
    const session = new Session(this.#ports, new SessionClient(zone, transportInfo), stream);
    this.#chart.begin(session);
    return session;
  }

  /** Create an offline session from the store; see `Session.restored`. */
  restore(state: 'disconnected' | 'gone', record: SessionEntry, zone: Zone, aliveWallMs: number): Session {
    return Session.restored(this.#ports, state, zone, record, aliveWallMs);
  }
}
