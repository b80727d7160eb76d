// A row for each reason why a connection or session ends, or a message is dropped: text, reason code, counters. The
// names are public, in events and in the management interface, and are not changed. A protocol error selects its row
// by its reason code (`errors`); a code that is in no row is a `protocol_error`, and no code may be in two rows. Not
// every code may be in a DISCONNECT: `disconnectCode` (`lib/session/life/farewell.ts`) replaces those that may not.

import { ReasonCode } from '../packets/reason-codes.ts';
import type { CounterName } from './metrics.ts';

/** A row of `DISCONNECT_REASONS`. */
export interface DisconnectReasonEntry {
  /** Description for display. */
  readonly about: string;
  /** The reason code of the CONNACK or DISCONNECT, unless a hook, an operator or the client has chosen another one. */
  readonly reasonCode: number;
  /**
   * The reason codes of protocol errors that end a connection for this reason; codes that no row lists are
   * `protocol_error`.
   */
  readonly errors?: readonly number[];
  /**
   * Set if the broker ends the connection because of the client's identity, packets or missing rights: reported by
   * `client.rejected`.
   */
  readonly isRejection?: true;
}

/** A row of `DROP_REASONS`. */
export interface DropReasonEntry {
  /** The reason of the drop, for display. */
  readonly about: string;
  /** The reason code of the acknowledgement to the publisher; undefined if the drop is not reported to it. */
  readonly reasonCode?: number;
  /** The counters of a drop for one receiver; default `delivery.dropped`. */
  readonly delivery?: readonly CounterName[];
  /** The counters of a drop for all receivers; default `messages.dropped`. */
  readonly message?: readonly CounterName[];
}

/**
 * Reasons for which a connection or a session ended. Most names are the documented ones of the management interface;
 * others are specific to embermq.
 */
export const DISCONNECT_REASONS = {
  normal: ending({ about: 'The client sent DISCONNECT.', reasonCode: ReasonCode.success }),
  disconnect_with_will: ending({
    about: 'The client sent DISCONNECT with a reason code other than 0x00, so its will is published.',
    reasonCode: ReasonCode.disconnectWithWill
  }),
  closed: ending({
    about: 'The client closed the connection without DISCONNECT.',
    reasonCode: ReasonCode.unspecifiedError
  }),
  keepalive_timeout: ending({
    about: 'The client sent nothing for longer than its keep alive allows.',
    reasonCode: ReasonCode.keepAliveTimeout,
    errors: [ReasonCode.keepAliveTimeout]
  }),
  connect_timeout: ending({
    about: 'The client was not accepted within `connectTimeout`.',
    reasonCode: ReasonCode.keepAliveTimeout,
    isRejection: true
  }),
  idle_timeout: ending({
    about: 'The client sent nothing within `idleTimeout`.',
    reasonCode: ReasonCode.keepAliveTimeout,
    isRejection: true
  }),
  protocol_error: ending({
    about: 'The client violated the protocol or exceeded a limit.',
    reasonCode: ReasonCode.protocolError,
    isRejection: true
  }),
  kicked: ending({
    about: 'The application or an operator disconnected the client.',
    reasonCode: ReasonCode.administrativeAction
  }),
  banned: ending({
    about:
      'The client was banned while it was connected (`banned.disconnect`, option `banDisconnects`). A DISCONNECT carries 0x87, because it cannot carry 0x8A.',
    reasonCode: ReasonCode.banned,
    isRejection: true
  }),
  discarded: ending({
    about: 'A connection with the same client id and Clean Start, or the application, ended the session.',
    reasonCode: ReasonCode.sessionTakenOver
  }),
  takeovered: ending({
    about: 'Another connection with the same client id took over the session.',
    reasonCode: ReasonCode.sessionTakenOver
  }),
  expired: ending({
    about: 'The session expiry interval passed after the disconnect.',
    reasonCode: ReasonCode.unspecifiedError
  }),
  not_authorized: ending({
    about: 'The client has no right to connect, or to do what it attempted.',
    reasonCode: ReasonCode.notAuthorized,
    isRejection: true,
    errors: [ReasonCode.notAuthorized, ReasonCode.badUserNameOrPassword]
  }),
  expired_token: ending({
    about: 'The authentication of the client has expired (`expiresAt` of its approval, for example of a token).',
    reasonCode: ReasonCode.notAuthorized,
    isRejection: true
  }),
  packet_too_large: ending({
    about: 'A packet is larger than the receiver accepts.',
    reasonCode: ReasonCode.packetTooLarge,
    isRejection: true,
    errors: [ReasonCode.packetTooLarge]
  }),
  quota: ending({
    about:
      'More than `maxHeldBytes` of packets waited for a hook, or there was no room to queue a message of an MQTT 3.x client.',
    reasonCode: ReasonCode.quotaExceeded,
    isRejection: true
  }),
  slow_consumer: ending({
    about: 'The client did not read for `slowConsumerTimeout`.',
    reasonCode: ReasonCode.quotaExceeded
  }),
  store_failed: ending({
    about: 'A request of the client could not be persisted.',
    reasonCode: ReasonCode.serverUnavailable
  }),
  source_failed: ending({
    about:
      'The hook or source that decides about the subscriptions of the client has failed. A DISCONNECT carries 0x89, because it cannot carry 0x88.',
    reasonCode: ReasonCode.serverUnavailable
  }),
  server_shutting_down: ending({ about: 'The broker stopped.', reasonCode: ReasonCode.serverShuttingDown }),
  reauthentication_failed: ending({
    about: 'The re-authentication of the client was refused.',
    reasonCode: ReasonCode.notAuthorized,
    isRejection: true
  }),
  internal_error: ending({
    about: 'An internal error occurred, which the event `error` reports.',
    reasonCode: ReasonCode.implementationSpecificError
  }),
  stream_error: ending({
    about: 'The stream of the connection failed, for example because the connection was reset.',
    reasonCode: ReasonCode.unspecifiedError
  })
} as const;

/** Reasons for which a message was dropped, for one receiver or for all. */
export const DROP_REASONS = {
  no_subscribers: drop({
    about: 'No subscription matches the topic.',
    reasonCode: ReasonCode.noMatchingSubscribers,
    message: ['messages.dropped', 'messages.dropped.no_subscribers']
  }),
  expired: drop({
    about: 'The Message Expiry Interval has passed.',
    delivery: ['delivery.dropped', 'delivery.dropped.expired', 'messages.expired'],
    message: ['messages.dropped', 'messages.dropped.expired', 'messages.expired']
  }),
  queue_full: drop({
    about: 'The backlog of the session, or the buffer of `broker.messages`, reached its limit.',
    delivery: ['delivery.dropped', 'delivery.dropped.queue_full'],
    message: ['messages.dropped', 'delivery.dropped.queue_full']
  }),
  queue_cleared: drop({ about: 'The app cleared the queue (`session.clearQueue`).', delivery: ['delivery.dropped'] }),
  total_queue_full: drop({
    about: 'The backlogs of all sessions together reached their limit.',
    delivery: ['delivery.dropped', 'delivery.dropped.queue_full']
  }),
  qos0_msg: drop({
    about:
      'The QoS 0 message would have to be queued, which is disabled (`mqueueStoreQos0`, or memory is short); or it waited for a commit when its receiver disconnected.',
    delivery: ['delivery.dropped', 'delivery.dropped.qos0_msg']
  }),
  too_large: drop({
    about: 'The packet would be larger than the receiver accepts.',
    delivery: ['delivery.dropped', 'delivery.dropped.too_large']
  }),
  no_local: drop({
    about: 'The receiver published the message itself and subscribed with No Local.',
    delivery: ['delivery.dropped', 'delivery.dropped.no_local']
  }),
  no_share_member: drop({
    about: 'A share group has no member that may receive the message. Other subscribers may have received it.',
    message: ['delivery.dropped', 'delivery.dropped.no_share_member']
  }),
  hook: drop({
    about: 'A `deliver` hook refused the message.',
    delivery: ['delivery.dropped', 'delivery.dropped.hook']
  }),
  topic_invalid: drop({
    about: 'The topic `$delayed/...` is not valid, or delayed messages are disabled.',
    reasonCode: ReasonCode.topicNameInvalid
  }),
  not_authorized: drop({
    about: 'The publisher has no right to publish it, or the receiver has no right to receive it.',
    reasonCode: ReasonCode.notAuthorized
  }),
  schema: drop({
    about: 'The payload does not match a schema (option `schemas`).',
    reasonCode: ReasonCode.payloadFormatInvalid,
    message: ['messages.dropped', 'messages.dropped.schema']
  }),
  slow_consumer: drop({
    about: 'The connection of the receiver was closed because it did not read.',
    delivery: ['delivery.dropped', 'delivery.dropped.slow_consumer']
  }),
  session_terminated: drop({ about: 'The session of the receiver ended.' }),
  not_retained: drop({
    about:
      'The message was delivered but not retained, because of `maxRetainedMessages`, `maxRetainedBytes`, `maxRetainedPayloadSize`, the space of the store, or because the feature `retainer` is stopped.',
    message: ['messages.not_retained']
  }),
  quota: drop({
    about: 'There was no room to queue the message, so no receiver got it; or too many messages are delayed.',
    reasonCode: ReasonCode.quotaExceeded
  }),
  store_failed: drop({
    about: 'The message would have to be persisted, and the store has failed.',
    reasonCode: ReasonCode.quotaExceeded
  }),
  server_shutting_down: drop({
    about: 'The broker stopped while the message was delayed or a hook was deciding about it.'
  })
} as const;

/** A row of `DISCONNECT_REASONS`. Its type has the texts of the columns. */
function ending(row: DisconnectReasonEntry): DisconnectReasonEntry {
  return row;
}

/** A row of `DROP_REASONS`; with a reason code, it is known to have one. */
function drop(
  row: DropReasonEntry & { readonly reasonCode: number }
): DropReasonEntry & Required<Pick<DropReasonEntry, 'reasonCode'>>;
function drop(row: DropReasonEntry): DropReasonEntry;
function drop(row: DropReasonEntry): DropReasonEntry {
  return row;
}

/** The reason for which a connection or a session ended. */
export type DisconnectReason = keyof typeof DISCONNECT_REASONS;

/** The reason for which a message was dropped, for one receiver or for all. */
export type DropReason = keyof typeof DROP_REASONS;

/** The reason for which a protocol error with this reason code ends a connection. */
export function disconnectReasonOf(reasonCode: number): DisconnectReason {
  return BY_ERROR.get(reasonCode) ?? 'protocol_error';
}

const BY_ERROR = new Map(
  (Object.keys(DISCONNECT_REASONS) as DisconnectReason[]).flatMap((name) => {
    const { errors = [] }: DisconnectReasonEntry = DISCONNECT_REASONS[name];
    return errors.map((code) => [code, name] as const);
  })
);

/** The details of drops of QoS 0 messages for other reasons than the option `mqueueStoreQos0`. */
export const QOS0_REFUSALS = {
  memory: { code: 'qos0_msg', detail: 'QoS 0 messages are not queued while memory is above `memoryHighWatermark`' },
  space: { code: 'qos0_msg', detail: 'QoS 0 messages are not persisted while the space of the store is used up' }
} as const;

/** The detail of the record of a connection that was lost, and whose client had no will. */
export const NO_WILL = 'it had no will';

/** The reasons for which a will is deleted, as in the cause `will_dropped`; if the client disconnected itself, there is none. */
export const WILL_DROPS = {
  kicked: 'the app or an operator disconnected the client without publishing it',
  stopped: 'the broker was stopped',
  notAccepted: 'the connection ended before it was accepted',
  returned: 'the client connected again before its Will Delay had passed'
} as const;

/** The disconnections that count as lost connections. */
export const LOST: ReadonlySet<DisconnectReason> = new Set(['closed', 'stream_error', 'keepalive_timeout']);
