// A row for each field: `from` reads it from a session, and the columns have its name in each interface; a field
// without a name in a column does not exist there. A new row needs a member of the record type, and appears in every
// interface that it has a name for. The counters of a connection outlive it (`lastTraffic`), those of a session begin
// at 0 when it is read from the store.

import { TRAFFIC_COUNTERS, type TrafficCounter } from './last-traffic.ts';
import type { RecordTable } from './record-table.ts';
import type { Zone } from './zone.ts';

/** The source of the counters of a connection. */
export interface CountedTraffic {
  readonly reader: {
    readonly receivedBytes: number;
    readonly receivedChunks: number;
    readonly receivedPackets: number;
    readonly receivedMessages: number;
  };
  readonly writer: {
    readonly sentBytes: number;
    readonly sentWrites: number;
    readonly sentPackets: number;
    readonly sentMessages: number;
  };
  readonly stream: { readonly writableLength: number };
  /** Acknowledgements that wait for a commit. */
  readonly pendingAcks: { readonly length: number } | undefined;
}

/** The source of the counters of a session, which a session implements. */
export interface CountedSession {
  readonly createdAt: number;
  /** PUBLISH packets sent on earlier connections. */
  readonly delivered: number;
  readonly connection: CountedTraffic | undefined;
  /** Number of the session, by which the counters of its last connection are stored. */
  readonly number: number;
  readonly ports: { readonly lastTraffic: { count(number: number, name: TrafficCounter): number } };
  readonly client: { readonly agreement: { readonly window: number; readonly zone: Zone } };
  readonly subscriptions: { readonly size: number };
  readonly outlet: {
    readonly inflight: { readonly count: number; readonly bytes: number; readonly awaitingCount: number } | undefined;
    readonly queue: { readonly waiting: number; readonly bytes: number } | undefined;
    readonly dropped: number;
    readonly enqueued: number;
  };
  /** The stored session; undefined if it is only in memory. */
  readonly log:
    | {
        /** Set while the client is offline. */
        readonly offlineCounts: { readonly inflight: number; readonly awaitingRel: number } | undefined;
      }
    | undefined;
}

/**
 * The traffic of a connection. For a session without one, it is that of its last connection, kept until the broker
 * stops for about 65,000 sessions (otherwise 0); `sendPend` is then 0.
 *
 * Counters that begin with `recv` count input from the client, those with `send` output to it: `Oct` counts bytes,
 * `Cnt` reads and writes of the stream, `Pkt` packets and `Msg` PUBLISH packets.
 */
export interface ConnectionTraffic {
  /** Bytes received from the client. */
  readonly recvOct: number;
  /** Reads of the stream. */
  readonly recvCnt: number;
  /** Packets received from the client. */
  readonly recvPkt: number;
  /** PUBLISH packets received from the client. */
  readonly recvMsg: number;
  /** Bytes sent to the client. */
  readonly sendOct: number;
  /** Writes to the stream. */
  readonly sendCnt: number;
  /** Packets sent to the client. */
  readonly sendPkt: number;
  /** PUBLISH packets sent to the client. */
  readonly sendMsg: number;
  /** Bytes that are written to the stream but not sent yet. */
  readonly sendPend: number;
}

/** The counts and limits of a session. For those that begin with `max`, 0 means unlimited. */
export interface SessionCounts {
  /** Time at which the session was created, in milliseconds since 1970. */
  readonly createdAt: number;
  /** Number of subscriptions. */
  readonly subscriptions: number;
  /** Maximum number of subscriptions (option `maxSubscriptions`); 0: unlimited. */
  readonly maxSubscriptions: number;
  /** Messages sent to the client at QoS 1 or 2 whose acknowledgement is not complete. */
  readonly inflight: number;
  /** Maximum of `inflight`: the lower of the option `maxInflight` and Receive Maximum of the client. */
  readonly maxInflight: number;
  /** Messages in the backlog. */
  readonly mqueueLen: number;
  /** Maximum number of messages in the backlog (option `maxMqueueLen`); 0: unlimited. */
  readonly maxMqueue: number;
  /** Messages for this session that were dropped, for any reason. */
  readonly mqueueDropped: number;
  /** QoS 2 messages from the client for which the PUBREL has not arrived. */
  readonly awaitingRel: number;
  /** Maximum of `awaitingRel` (option `maxAwaitingRel`); 0: unlimited. */
  readonly maxAwaitingRel: number;
  /** PUBLISH packets sent to the client on all its connections, since the session was created or read from the store. */
  readonly deliverMsg: number;
  /** Messages that had to wait in the backlog, since the session was created or read from the store. */
  readonly enqueueMsg: number;
}

/** The counters of a session and of its connection, under their documented names. */
export type SessionCounters = SessionCounts & ConnectionTraffic;

/** A counter of the current or last connection. */
export function countOf(name: TrafficCounter): (source: CountedSession) => number {
  const read = TRAFFIC_COUNTERS[name];
  return ({ connection, ports, number }) =>
    connection === undefined ? ports.lastTraffic.count(number, name) : read(connection);
}

export const TRAFFIC_FIELDS: RecordTable<CountedSession, ConnectionTraffic> = {
  recvOct: {
    from: countOf('recvOct'),
    unit: 'bytes',
    later: 'recv_oct',
    earlier: 'recv_oct'
  },
  recvCnt: {
    from: countOf('recvCnt'),
    unit: 'reads',
    later: 'recv_cnt',
    earlier: 'recv_cnt'
  },
  recvPkt: {
    from: countOf('recvPkt'),
    unit: 'packets',
    later: 'recv_pkt',
    earlier: 'recv_pkt'
  },
  recvMsg: {
    from: countOf('recvMsg'),
    unit: 'messages',
    later: 'recv_msg',
    earlier: 'recv_msg'
  },
  sendOct: {
    from: countOf('sendOct'),
    unit: 'bytes',
    later: 'send_oct',
    earlier: 'send_oct'
  },
  sendCnt: {
    from: countOf('sendCnt'),
    unit: 'writes',
    later: 'send_cnt',
    earlier: 'send_cnt'
  },
  sendPkt: {
    from: countOf('sendPkt'),
    unit: 'packets',
    later: 'send_pkt',
    earlier: 'send_pkt'
  },
  sendMsg: {
    from: countOf('sendMsg'),
    unit: 'messages',
    later: 'send_msg',
    earlier: 'send_msg'
  },
  sendPend: { from: ({ connection }) => connection?.stream.writableLength ?? 0, unit: 'bytes', earlier: 'send_pend' }
};

export const COUNT_FIELDS: RecordTable<CountedSession, SessionCounts> = {
  createdAt: { from: ({ createdAt }) => createdAt, unit: 'ms', later: 'created_at', earlier: 'created_at' },
  subscriptions: {
    from: ({ subscriptions }) => subscriptions.size,
    unit: 'filters',
    later: 'subscriptions_cnt',
    earlier: 'subscriptions_count'
  },
  maxSubscriptions: {
    from: ({ client }) => client.agreement.zone.maxSubscriptions,
    unit: 'filters',
    later: 'max_subscriptions',
    earlier: 'max_subscriptions'
  },
  inflight: {
    from: ({ log, outlet }) => log?.offlineCounts?.inflight ?? outlet.inflight?.count ?? 0,
    unit: 'messages',
    later: 'inflight',
    earlier: 'inflight_len'
  },
  maxInflight: {
    from: ({ client }) => client.agreement.window,
    unit: 'messages',
    later: 'max_inflight',
    earlier: 'max_inflight'
  },
  mqueueLen: {
    from: ({ outlet }) => outlet.queue?.waiting ?? 0,
    unit: 'messages',
    later: 'mqueue_len',
    earlier: 'mqueue_len'
  },
  maxMqueue: {
    from: ({ client }) => client.agreement.zone.maxMqueueLen,
    unit: 'messages',
    later: 'max_mqueue',
    earlier: 'max_mqueue'
  },
  mqueueDropped: {
    from: ({ outlet }) => outlet.dropped,
    unit: 'messages',
    later: 'mqueue_dropped',
    earlier: 'mqueue_dropped'
  },
  awaitingRel: {
    from: ({ log, outlet }) => log?.offlineCounts?.awaitingRel ?? outlet.inflight?.awaitingCount ?? 0,
    unit: 'ids',
    later: 'awaiting_rel',
    earlier: 'awaiting_rel_len'
  },
  maxAwaitingRel: {
    from: ({ client }) => client.agreement.zone.maxAwaitingRel,
    unit: 'ids',
    later: 'max_awaiting_rel',
    earlier: 'max_awaiting_rel'
  },
  deliverMsg: {
    from: ({ delivered, connection }) => delivered + (connection?.writer.sentMessages ?? 0),
    unit: 'messages',
    earlier: 'deliver_msg'
  },
  enqueueMsg: { from: ({ outlet }) => outlet.enqueued, unit: 'messages', earlier: 'enqueue_msg' }
};

export const COUNTER_FIELDS: RecordTable<CountedSession, SessionCounters> = { ...COUNT_FIELDS, ...TRAFFIC_FIELDS };
