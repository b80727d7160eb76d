// A row for each field: `from` reads it from a session, the columns `later` and `earlier` have its name in the two
// revisions of the management interface, `webhook` and `rule` in webhooks and events of rules; without a name, the
// field does not exist there. The records of a client, a connection and a session are put together from shared parts,
// so a row belongs into the part that is common to the records which have it.

import type { ProtocolVersion } from '../packets/types.ts';
import type { ClientInfo } from './client.ts';
import type { RecordTable } from './record-table.ts';
import {
  COUNT_FIELDS,
  type ConnectionTraffic,
  type CountedSession,
  countOf,
  type SessionCounts,
  TRAFFIC_FIELDS
} from './session-counters.ts';
import { plainAddress } from './transport-info.ts';

/** The source of the records of a session, which a session implements. */
export interface RecordedSession extends CountedSession {
  readonly client: CountedSession['client'] & ClientInfo;
  readonly lifecycle: {
    /** Time of the last connect, also while the client is not connected. */
    readonly connectedAt: number | undefined;
  };
  readonly state: 'idle' | 'connected' | 'disconnected' | 'gone';
}

/** Fields common to the records of a client, a connection and a session. */
export interface CommonFacts {
  /** Name of the node that has the session. */
  readonly node: string;
  /** The client id. */
  readonly clientId: string;
  /** Undefined if the client sent none. */
  readonly username: string | undefined;
  /** True if the last CONNECT requested a new session. */
  readonly cleanStart: boolean;
  /** Number of received packets of the client that wait for the store. */
  readonly mailboxLen: number;
  /** Bytes of messages and output in memory for the client. */
  readonly heapSize: number;
  /** Number of packets received and sent on this connection, or on the last one. */
  readonly reductions: number;
}

/** Fields of a connection, or of the last one if the client is not connected. */
export interface ConnectionFacts {
  /** `MQTT`; `MQIsdp` in MQTT 3.1. */
  readonly protocolName: string;
  /** 3: MQTT 3.1, 4: MQTT 3.1.1, 5: MQTT 5.0. */
  readonly protocolVersion: ProtocolVersion;
  /** Undefined if the transport has no addresses. */
  readonly ipAddress: string | undefined;
  /** Undefined if the transport has no ports. */
  readonly port: number | undefined;
  /** The transport; see `TransportInfo`. */
  readonly transport: string;
  /** Subject of the verified client certificate; undefined if there is none. */
  readonly certificate: string | undefined;
  /** True if the client declared itself a bridge in CONNECT. */
  readonly isBridge: boolean;
  /** True while the client is connected. */
  readonly isConnected: boolean;
  /**
   * Time of the last connect, in milliseconds since 1970. Undefined if the client was connected when a broker before
   * 0.3 stopped, or disconnected from one.
   */
  readonly connectedAt: number | undefined;
  /** Wall-clock milliseconds; undefined while connected. */
  readonly disconnectedAt: number | undefined;
  /** Name of the zone whose settings apply. */
  readonly zone: string;
  /** Prefix of all topics of the client, which it does not see; empty if there is none. */
  readonly mountpoint: string;
  /** Seconds; 0: off. */
  readonly keepalive: number;
}

/** Fields of a session. */
export interface SessionFacts {
  /** Seconds for which the session outlives its connection; `Infinity` if it does not expire. */
  readonly sessionExpiry: number;
  /** `local` while the client is connected; otherwise undefined. */
  readonly binding: 'local' | undefined;
}

/** A client: its connection, or the last one, and its session. */
export interface ClientRecord extends CommonFacts, ConnectionFacts, ConnectionTraffic, SessionFacts, SessionCounts {}
/** The connection of a client. */
interface ConnectionRecord extends CommonFacts, ConnectionFacts, ConnectionTraffic {}
/** The session of a client, connected or not. */
export interface SessionRecord extends CommonFacts, SessionFacts, SessionCounts {}

const receivedPackets = countOf('recvPkt');
const sentPackets = countOf('sendPkt');

const COMMON_FIELDS: RecordTable<RecordedSession, CommonFacts> = {
  node: { from: (_, node) => node, later: 'node', earlier: 'node', rule: 'node' },
  clientId: {
    from: ({ client }) => client.clientId,
    later: 'clientid',
    earlier: 'client_id',
    webhook: 'clientid',
    rule: 'clientid'
  },
  username: {
    from: ({ client }) => client.username,
    later: 'username',
    earlier: 'username',
    webhook: 'username',
    rule: 'username'
  },
  cleanStart: {
    from: ({ client }) => client.cleanStart,
    later: 'clean_start',
    earlier: 'clean_start',
    rule: 'clean_start'
  },
  // The last three are named after properties of a process that serves one client; these are the closest equivalents.
  mailboxLen: {
    from: ({ connection }) => connection?.pendingAcks?.length ?? 0,
    unit: 'packets',
    later: 'mailbox_len',
    earlier: 'mailbox_len'
  },
  heapSize: {
    from: ({ outlet: { queue, inflight }, connection }) =>
      (queue?.bytes ?? 0) + (inflight?.bytes ?? 0) + (connection?.stream.writableLength ?? 0),
    unit: 'bytes',
    later: 'heap_size',
    earlier: 'heap_size'
  },
  reductions: {
    from: (source) => receivedPackets(source) + sentPackets(source),
    unit: 'packets',
    later: 'reductions',
    earlier: 'reductions'
  }
};

const CONNECTION_ONLY: RecordTable<RecordedSession, ConnectionFacts> = {
  protocolName: {
    from: ({ client }) => (client.protocolVersion === 3 ? 'MQIsdp' : 'MQTT'),
    later: 'proto_name',
    earlier: 'proto_name',
    rule: 'proto_name'
  },
  protocolVersion: {
    from: ({ client }) => client.protocolVersion,
    later: 'proto_ver',
    earlier: 'proto_ver',
    webhook: 'proto_ver',
    rule: 'proto_ver'
  },
  ipAddress: {
    from: ({ client }) => plainAddress(client.transportInfo.remoteAddress),
    later: 'ip_address',
    earlier: 'ipaddress',
    webhook: 'ipaddress',
    rule: 'peerhost'
  },
  port: { from: ({ client }) => client.transportInfo.remotePort, later: 'port', earlier: 'port' },
  transport: { from: ({ client }) => client.transportInfo.transport, earlier: 'conn_mod' },
  certificate: { from: ({ client }) => client.transportInfo.certificate?.subject, earlier: 'peercert' },
  isBridge: { from: ({ client }) => client.isBridge, later: 'is_bridge', earlier: 'is_bridge', rule: 'is_bridge' },
  isConnected: { from: ({ state }) => state === 'connected', later: 'connected' },
  connectedAt: {
    from: ({ lifecycle }) => lifecycle.connectedAt,
    unit: 'ms',
    later: 'connected_at',
    earlier: 'connected_at',
    webhook: 'connected_at',
    rule: 'connected_at'
  },
  disconnectedAt: {
    from: ({ client }) => client.disconnectedAt,
    unit: 'ms',
    later: 'disconnected_at',
    rule: 'disconnected_at'
  },
  zone: { from: ({ client }) => client.zone, later: 'zone', earlier: 'zone' },
  mountpoint: { from: ({ client }) => client.mountpoint, later: 'mountpoint', rule: 'mountpoint' },
  keepalive: {
    from: ({ client }) => client.keepalive,
    unit: 's',
    later: 'keepalive',
    earlier: 'keepalive',
    webhook: 'keepalive',
    rule: 'keepalive'
  }
};

const SESSION_ONLY: RecordTable<RecordedSession, SessionFacts> = {
  sessionExpiry: {
    from: ({ client }) => client.sessionExpiry,
    unit: 's',
    later: 'expiry_interval',
    earlier: 'expiry_interval',
    rule: 'expiry_interval'
  },
  binding: { from: ({ state }) => (state === 'connected' ? 'local' : undefined), earlier: 'binding' }
};

/** The column `earlier` applies to the tables of connections and sessions: the earlier revision has no record of a client. */
export const CLIENT_FIELDS: RecordTable<RecordedSession, ClientRecord> = {
  ...COMMON_FIELDS,
  ...CONNECTION_ONLY,
  ...TRAFFIC_FIELDS,
  ...SESSION_ONLY,
  ...COUNT_FIELDS
};

export const CONNECTION_FIELDS: RecordTable<RecordedSession, ConnectionRecord> = {
  ...COMMON_FIELDS,
  ...CONNECTION_ONLY,
  ...TRAFFIC_FIELDS
};

export const SESSION_FIELDS: RecordTable<RecordedSession, SessionRecord> = {
  ...COMMON_FIELDS,
  ...SESSION_ONLY,
  ...COUNT_FIELDS
};
