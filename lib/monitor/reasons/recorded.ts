// A row for everything that the log of reasons records. The codes are public: they are in the history of clients and
// in the management interface, and are not changed. Every reason for a drop is a row, so that `broker.monitor.drops`
// is a view of the log; every reason for the end of a connection is one, too. Refusals have the code of their cause.

import {
  DISCONNECT_REASONS,
  type DisconnectReason,
  DROP_REASONS,
  type DropReason,
  QOS0_REFUSALS
} from '../../events/reasons.ts';
import type { CauseCode } from './causes.ts';

/** A change of the state of a client: `connected` begins a session, which `resumed` continues. */
export type ClientChange = 'connected' | 'resumed' | 'disconnected' | 'session_ended' | 'subscribed' | 'unsubscribed';

/**
 * Something that lasts from one record to another one: the client is away; it has no subscription to a topic, or no right to receive it; a
 * rule does not run.
 */
export type RecordedCondition = 'absence' | 'missing_subscription' | 'missing_right' | 'rule_stop';

/** A row of `RECORDED`. */
export interface RecordedEntry {
  /** Description for display. */
  readonly about: string;
  /** The reason under which the drop of a message is listed; absent: no message was dropped. */
  readonly drop?: DropReason;
  /** The cause for which a message did not arrive; absent: none, the record is only part of a history. */
  readonly cause?: CauseCode;
  /** The cause if the record names a receiver; default `cause`. */
  readonly causeOfReceiver?: CauseCode;
  /** The causes of records with some details, and the detail of the cause; default: as without a detail. */
  readonly byDetail?: Readonly<
    Record<
      string,
      {
        /** The cause. */
        readonly cause: CauseCode;
        /** The detail of the cause. */
        readonly detail: string;
      }
    >
  >;
  /** Set if it is a refused CONNECT. Such records displace no others of clients that have connected. */
  readonly isRefusedConnect?: true;
  /** Set if `topic` is a topic filter. Such records are not found by a topic. */
  readonly isFilter?: true;
  /** The change of the state of its client; absent: none. */
  readonly change?: ClientChange;
  /** The condition that begins; it is a cause until a record ends it. Absent: none, it is about a moment. */
  readonly begins?: RecordedCondition;
  /** The conditions of the same client, topic or rule that end; default: none. */
  readonly ends?: readonly RecordedCondition[];
  /** The code of a record that says more, if there is one of the same client and time. */
  readonly repeats?: RecordedCode;
  /** Set if messages that waited for the client were discarded. */
  readonly isDiscard?: true;
  /** Set if a topic lost its retained message. */
  readonly isRetainedLoss?: true;
  /** Set if it is about one message, and no reason for a drop. Equal records are one, whatever was recorded between them, as those of drops are. */
  readonly isOfMessage?: true;
}

type Causes = Omit<RecordedEntry, 'about' | 'drop'>;

/** The causes of the reasons for drops. */
const DROP_CAUSES: Readonly<Record<DropReason, Causes>> = {
  no_subscribers: { cause: 'no_subscriber', begins: 'missing_subscription' },
  expired: { cause: 'expired', isDiscard: true },
  queue_full: { cause: 'queue_full' },
  queue_cleared: { cause: 'queue_cleared', isDiscard: true },
  total_queue_full: { cause: 'queue_full' },
  qos0_msg: {
    cause: 'offline_qos0',
    byDetail: {
      [QOS0_REFUSALS.memory.detail]: { cause: 'memory_watermark', detail: QOS0_REFUSALS.memory.detail },
      [QOS0_REFUSALS.space.detail]: { cause: 'store_full', detail: QOS0_REFUSALS.space.detail }
    }
  },
  too_large: { cause: 'too_large' },
  no_local: { cause: 'no_local' },
  no_share_member: { cause: 'right_withdrawn' },
  hook: { cause: 'deliver_hook' },
  topic_invalid: { cause: 'topic_not_allowed' },
  not_authorized: { cause: 'not_authorized', causeOfReceiver: 'right_withdrawn' },
  schema: { cause: 'schema' },
  slow_consumer: { cause: 'slow_consumer' },
  session_terminated: { cause: 'session_ended', isDiscard: true },
  not_retained: { cause: 'retained_missing' },
  quota: { cause: 'memory_watermark' },
  store_failed: { cause: 'store_failed' },
  server_shutting_down: { cause: 'broker_stopped' }
};

/** The causes of the ends of connections; the others are only part of a history. */
const DISCONNECT_CAUSES: Readonly<Partial<Record<DisconnectReason, Causes>>> = {
  banned: { cause: 'banned', repeats: 'session_ended' },
  discarded: { cause: 'taken_over', repeats: 'taken_over' },
  takeovered: { cause: 'taken_over' },
  expired: { cause: 'session_ended' },
  expired_token: { cause: 'token_expired' },
  keepalive_timeout: { cause: 'connection_lost' },
  kicked: { cause: 'kicked', repeats: 'session_ended' },
  packet_too_large: { cause: 'packet_too_large' },
  reauthentication_failed: { cause: 'reauthentication_failed' },
  slow_consumer: { cause: 'slow_consumer' }
};

/** The code of the record of a connection that ended. */
export type DisconnectCode = `disconnected_${DisconnectReason}`;

function refusal(about: string, cause: CauseCode): RecordedEntry {
  return { about, cause, drop: 'not_authorized' };
}

function refusedConnect(why: string, cause: CauseCode): RecordedEntry {
  return { about: `The client could not connect: ${why}.`, cause, isRefusedConnect: true, begins: 'absence' };
}

const ENDED = 'its session was ended, with its subscriptions and queued messages';

/** A subscription, or all of a session, ended. */
const SUBSCRIPTION_END = {
  change: 'unsubscribed',
  begins: 'missing_subscription',
  ends: ['missing_right']
} as const satisfies Causes;
const SESSION_END = { ...SUBSCRIPTION_END, change: 'session_ended' } as const satisfies Causes;

/** Records other than drops and ends of connections. */
const OTHERS: Readonly<Record<OtherCode, RecordedEntry>> = {
  connected: { about: 'The client connected.', change: 'connected', ends: ['absence'] },
  resumed: { about: 'The client connected and resumed its session.', change: 'resumed', ends: ['absence'] },
  subscribed: {
    about: 'The client subscribed.',
    isFilter: true,
    change: 'subscribed',
    ends: ['missing_subscription', 'missing_right']
  },
  unsubscribed: {
    about: 'A subscription of the client ended.',
    cause: 'unsubscribed',
    isFilter: true,
    ...SUBSCRIPTION_END
  },
  subscription_withdrawn: {
    about: 'A subscription of the client was removed, because the client had lost the right to it.',
    cause: 'subscription_withdrawn',
    isFilter: true,
    ...SUBSCRIPTION_END
  },
  right_withdrawn: {
    about: 'The client lost the right to a subscription, which was kept.',
    cause: 'right_withdrawn',
    isFilter: true,
    begins: 'missing_right'
  },
  right_restored: {
    about: 'The client got the right to a subscription again.',
    isFilter: true,
    ends: ['missing_right']
  },
  session_ended: {
    about: 'The session of the client ended.',
    cause: 'session_ended',
    ...SESSION_END,
    isDiscard: true,
    repeats: 'taken_over',
    byDetail: {
      // a longer session expiry interval would not have helped
      [DISCONNECT_REASONS.kicked.about]: { cause: 'kicked', detail: ENDED },
      [DISCONNECT_REASONS.banned.about]: { cause: 'banned', detail: ENDED }
    }
  },
  connect_refused: refusedConnect('its CONNECT was refused', 'connect_refused'),
  wrong_password: refusedConnect('wrong user name or password', 'wrong_password'),
  token_expired: refusedConnect('its token has expired', 'token_expired'),
  banned: refusedConnect('it is banned', 'banned'),
  connection_limit: refusedConnect('a limit was reached', 'connection_limit'),
  taken_over: {
    about: 'A connection with the same client id and Clean Start ended the session.',
    cause: 'taken_over',
    ...SESSION_END
  },
  will_dropped: { about: 'A will was deleted instead of being published.', cause: 'will_dropped' },
  retained_deleted: { about: 'A retained message was deleted.', cause: 'retained_missing', isRetainedLoss: true },
  retained_expired: { about: 'A retained message expired.', cause: 'retained_missing', isRetainedLoss: true },
  subscribe_refused: {
    about: 'A subscription was refused.',
    cause: 'subscribe_refused',
    isFilter: true,
    begins: 'missing_subscription'
  },
  acl_record: refusal('A PUBLISH was refused by an access rule of the broker.', 'acl_record'),
  acl_file_rule: refusal('A PUBLISH was refused by a rule of a list or file.', 'acl_file_rule'),
  client_rule: refusal('A PUBLISH was refused by a rule that the client got when it connected.', 'client_rule'),
  acl_nomatch: refusal('A PUBLISH was refused by `aclNomatch`.', 'acl_nomatch'),
  authorize_hook: refusal('A PUBLISH was refused by a hook `authorizePublish`.', 'authorize_hook'),
  source_denied: refusal('A PUBLISH was refused by a source.', 'source_denied'),
  source_failed: refusal('A PUBLISH was refused, because a source failed.', 'source_failed'),
  publish_hook: refusal('A PUBLISH was refused by a hook `publish`.', 'publish_hook'),
  system_topic: refusal('A PUBLISH below `$SYS` was refused.', 'topic_not_allowed'),
  topic_not_allowed: {
    about: 'A PUBLISH was refused: its topic is not allowed.',
    cause: 'topic_not_allowed',
    isOfMessage: true
  },
  delayed_stopped: {
    about: 'A delayed PUBLISH was refused: the feature `delayed` is stopped.',
    cause: 'delayed_stopped',
    drop: 'topic_invalid'
  },
  qos_not_allowed: {
    about: 'A PUBLISH was refused: QoS or retain are not allowed.',
    cause: 'qos_not_allowed',
    isOfMessage: true
  },
  packet_too_large: {
    about: 'A packet was refused: it is too large.',
    cause: 'packet_too_large',
    isOfMessage: true
  },
  store_full: { about: 'A PUBLISH was refused: the store is full.', cause: 'store_full', drop: 'quota' },
  memory_watermark: { about: 'A PUBLISH was refused: memory is short.', cause: 'memory_watermark', drop: 'quota' },
  receiver_refused: {
    about: 'The client refused a message in its acknowledgement.',
    cause: 'receiver_refused',
    isOfMessage: true
  },
  rule_stopped: { about: 'A rule stopped.', cause: 'rule_stopped', begins: 'rule_stop' },
  rule_started: { about: 'A rule that had stopped was started.', ends: ['rule_stop'] },
  rule_changed: { about: 'Another statement replaced that of a rule, whose topics are in the detail.' },
  payload_invalid: {
    about: 'A payload could not be decoded for a rule.',
    cause: 'payload_invalid',
    isOfMessage: true
  },
  function_failed: { about: 'A rule failed to evaluate a message.', cause: 'function_failed', isOfMessage: true },
  field_missing: {
    about: 'A rule published to a topic with a placeholder that has no value.',
    cause: 'field_missing',
    isOfMessage: true
  },
  target_refused: {
    about: 'The target of a rule did not accept a message.',
    cause: 'target_refused',
    isOfMessage: true
  }
};

/** The code of a record that is neither a drop nor the end of a connection. */
export type OtherCode =
  | 'connected'
  | 'resumed'
  | 'subscribed'
  | 'unsubscribed'
  | 'subscription_withdrawn'
  | 'right_withdrawn'
  | 'right_restored'
  | 'session_ended'
  | 'connect_refused'
  | 'wrong_password'
  | 'token_expired'
  | 'banned'
  | 'taken_over'
  | 'connection_limit'
  | 'will_dropped'
  | 'retained_deleted'
  | 'retained_expired'
  | 'subscribe_refused'
  | 'acl_record'
  | 'acl_file_rule'
  | 'client_rule'
  | 'acl_nomatch'
  | 'authorize_hook'
  | 'source_denied'
  | 'source_failed'
  | 'publish_hook'
  | 'system_topic'
  | 'topic_not_allowed'
  | 'delayed_stopped'
  | 'qos_not_allowed'
  | 'packet_too_large'
  | 'store_full'
  | 'memory_watermark'
  | 'receiver_refused'
  | 'rule_stopped'
  | 'rule_started'
  | 'rule_changed'
  | 'payload_invalid'
  | 'function_failed'
  | 'field_missing'
  | 'target_refused';

/** The code of a record in the log of reasons. */
export type RecordedCode = DropReason | DisconnectCode | OtherCode;

/** Everything that is recorded, by code. */
export const RECORDED: Readonly<Record<RecordedCode, RecordedEntry>> = {
  ...fromTable(DROP_REASONS, (drop, { about }) => [drop, { about, drop, ...DROP_CAUSES[drop] }]),
  ...fromTable(DISCONNECT_REASONS, (reason, { about }) => {
    const row: RecordedEntry = { about, change: 'disconnected', begins: 'absence', ...DISCONNECT_CAUSES[reason] };
    return [`disconnected_${reason}`, row] as const;
  }),
  ...OTHERS
};

/** Make rows from those of another table. */
function fromTable<R extends string, C extends string>(
  table: Readonly<Record<R, { readonly about: string }>>,
  make: (name: R, row: { readonly about: string }) => readonly [C, RecordedEntry]
): Record<C, RecordedEntry> {
  return Object.fromEntries((Object.keys(table) as R[]).map((name) => make(name, table[name]))) as never;
}
