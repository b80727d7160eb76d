import type { TimeReading } from '../../base/time-reading.ts';
import type { Draft } from '../../store/record.ts';
import type { WillState } from '../life/will.ts';
import type { SessionClient } from '../session-client.ts';
import { writeSessionRecord } from './session-record.ts';

/** The persisted data of a session, except its subscriptions and messages. */
interface PersistedSession {
  readonly ports: { readonly node: string; readonly time: TimeReading };
  readonly client: SessionClient;
  readonly lifecycle: {
    readonly connectedAt: number | undefined;
    /** The way in which the last connection ended. */
    readonly ending: { readonly will: 'publish' | 'drop' | 'keep' } | undefined;
    readonly will: WillState | undefined;
  };
  /** Wall-clock milliseconds. */
  readonly createdAt: number;
}

/**
 * Write the record of a session.
 * @param kind `Kind.session`, or `Kind.will` for the will of a session that is not persisted
 * @param number number of the record in keys
 */
export function writeSession(
  draft: Draft,
  kind: number,
  number: number,
  { ports, client, lifecycle, createdAt }: PersistedSession,
  will = lifecycle.will
): void {
  const { transportInfo } = client;
  // a will that outlives the stop of the broker is restored as after a crash, when the client was still connected
  const disconnectedAt = lifecycle.ending?.will === 'keep' ? undefined : client.disconnectedAt;
  const record = {
    number,
    node: ports.node,
    clientId: client.clientId,
    username: client.username,
    mountpoint: client.mountpoint,
    protocolVersion: client.protocolVersion,
    isBridge: client.isBridge,
    cleanStart: client.cleanStart,
    isSuperuser: client.isSuperuser,
    keepalive: client.keepalive,
    sessionExpiry: client.sessionExpiry,
    createdAt,
    disconnectedAt: disconnectedAt ?? 0,
    connectedAt: lifecycle.connectedAt,
    zone: client.zone,
    transport: transportInfo.transport,
    listener: transportInfo.listener ?? '',
    remoteAddress: transportInfo.remoteAddress ?? '',
    userProperties: client.userProperties,
    will
  };
  writeSessionRecord(draft, kind, record, client.identity, ports.time);
}
