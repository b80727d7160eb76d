// A row for each event. The types of `broker.on`, the `$SYS` notices, the actions of webhooks and the topics of rules
// follow from the columns; an event without a name in a column does not exist there. An event tells what has happened
// and is not awaited; what may change or refuse something is a hook (`hooks.ts`). Fields are given by the names of
// their types, so that one table serves the compiler and the documentation.

import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { RuleAction } from '../records/access-rule.ts';
import type { PastAlarm, PresentAlarm } from '../records/alarm.ts';
import type { Ban } from '../records/ban.ts';
import type { ClientInfo } from '../records/client.ts';
import type { ListenerHandle } from '../records/listener.ts';
import type { DisconnectReason, DropReason } from './reasons.ts';
import type { SubscribeResult, SubscriptionOptions } from './subscription-options.ts';

/** The types of the fields of events, by their names in the catalogue. */
export interface FieldTypes<Data = unknown> {
  /** A client. */
  readonly ClientInfo: ClientInfo<Data>;
  /** A client, if there is one. */
  readonly 'ClientInfo | undefined': ClientInfo<Data> | undefined;
  /** The options of a subscription. */
  readonly SubscriptionOptions: SubscriptionOptions;
  /** The topic filters of a SUBSCRIBE, with their answers. */
  readonly 'SubscribeResult[]': readonly SubscribeResult[];
  /** A message. */
  readonly Message: Message;
  /** A quality of service. */
  readonly QoS: QoS;
  /** The reason for which a connection or a session ended. */
  readonly DisconnectReason: DisconnectReason;
  /** The reason for which a message was dropped. */
  readonly DropReason: DropReason;
  /** An operation that needs a right. */
  readonly RuleAction: RuleAction;
  /** A ban. */
  readonly Ban: Ban;
  /** An alarm whose condition lasts. */
  readonly PresentAlarm: PresentAlarm;
  /** An alarm whose condition has ended. */
  readonly PastAlarm: PastAlarm;
  /** A listener. */
  readonly ListenerHandle: ListenerHandle;
  /** Listeners. */
  readonly 'ListenerHandle[]': readonly ListenerHandle[];
  /** An error. */
  readonly Error: Error;
  /** An error, if there is one. */
  readonly 'Error | undefined': Error | undefined;
  /** True or false. */
  readonly boolean: boolean;
  /** A number. */
  readonly number: number;
  /** A string. */
  readonly string: string;
  /** A string, if there is one. */
  readonly 'string | undefined': string | undefined;
  /** Strings, if there are any. */
  readonly 'string[] | undefined': readonly string[] | undefined;
}

/** The fields of an event, with the names of their types. */
export type EventFields = { readonly [field: string]: keyof FieldTypes };

/**
 * An event of the catalogue. The columns name the event in other interfaces; undefined if the event does not exist
 * there.
 */
export interface EventEntry<
  F extends EventFields = EventFields,
  N extends string | undefined = string | undefined,
  A extends string | undefined = string | undefined
> {
  /** The fields of the value that listeners receive. */
  readonly fields: F;
  /** `$SYS` topic of the notice, below `$SYS/brokers/<node>/`. `{clientid}` is replaced by the client id. */
  readonly notice: N;
  /** `action` of the webhook request. */
  readonly action: A;
  /** Topics of the event in the FROM clause of rules. */
  readonly ruleTopics: readonly string[];
  /** True if its strings have values of messages: people who may not see payloads do not get it. */
  readonly showsValues: boolean;
}

/** The value of an event with these fields. The values of the events of a broker are declared in `event-types.ts`, and equal to it. */
export type EventValue<F extends EventFields, Data = unknown> = {
  readonly [field in keyof F]: FieldTypes<Data>[F[field]];
};

/**
 * All events of a broker, in the documented order. The types of events, the `$SYS` notices and the table of the README
 * follow from these rows.
 */
export const EVENTS = {
  'broker.started': row({ listeners: 'ListenerHandle[]' }),
  'broker.stopped': row({}),
  'listener.attached': row({
    listener: 'ListenerHandle'
  }),
  'listener.detached': row({ listener: 'ListenerHandle' }),
  'listener.exposed': row({ listeners: 'ListenerHandle[]' }),
  'client.connect': row({ client: 'ClientInfo' }, { action: 'client_connect' }),
  'client.connack': row(
    { client: 'ClientInfo', reasonCode: 'number', why: 'string | undefined' },
    { action: 'client_connack', ruleTopics: ['$events/client_connack'] }
  ),
  'client.connected': row(
    { client: 'ClientInfo', sessionPresent: 'boolean' },
    {
      notice: 'clients/{clientid}/connected',
      action: 'client_connected',
      ruleTopics: ['$events/client_connected']
    }
  ),
  'client.disconnected': row(
    { client: 'ClientInfo', reason: 'DisconnectReason', reasonCode: 'number' },
    {
      notice: 'clients/{clientid}/disconnected',
      action: 'client_disconnected',
      ruleTopics: ['$events/client_disconnected']
    }
  ),
  'client.rejected': row({
    client: 'ClientInfo | undefined',
    address: 'string | undefined',
    reason: 'string',
    reasonCode: 'number',
    why: 'string'
  }),
  'client.subscribe': row(
    { client: 'ClientInfo', filter: 'string', options: 'SubscriptionOptions' },
    { action: 'client_subscribe' }
  ),
  'client.suback': row({
    client: 'ClientInfo',
    results: 'SubscribeResult[]'
  }),
  'client.unsubscribe': row({ client: 'ClientInfo', filter: 'string' }, { action: 'client_unsubscribe' }),
  'client.check_acl_complete': row(
    { client: 'ClientInfo', action: 'RuleAction', topic: 'string', isAllowed: 'boolean', isCached: 'boolean' },
    { ruleTopics: ['$events/client_check_acl_complete'] }
  ),
  'client.ping': row({ client: 'ClientInfo' }),
  'client.banned': row({ ban: 'Ban' }),
  'session.created': row({ client: 'ClientInfo' }),
  'session.resumed': row({ client: 'ClientInfo' }),
  'session.takenover': row({
    client: 'ClientInfo'
  }),
  'session.discarded': row({ client: 'ClientInfo' }),
  'session.subscribed': row(
    {
      client: 'ClientInfo',
      filter: 'string',
      requestedFilters: 'string[] | undefined',
      options: 'SubscriptionOptions'
    },
    { action: 'session_subscribed', ruleTopics: ['$events/session_subscribed'] }
  ),
  'session.unsubscribed': row(
    {
      client: 'ClientInfo',
      filter: 'string',
      requestedFilters: 'string[] | undefined',
      options: 'SubscriptionOptions'
    },
    { action: 'session_unsubscribe', ruleTopics: ['$events/session_unsubscribed'] } // as documented, unlike its siblings
  ),
  'session.terminated': row({ client: 'ClientInfo', reason: 'DisconnectReason' }, { action: 'session_terminated' }),
  'message.publish': row(
    { message: 'Message', client: 'ClientInfo | undefined' },
    { action: 'message_publish', ruleTopics: ['$events/message_publish'] }
  ),
  'message.queued': row({ message: 'Message', client: 'ClientInfo' }),
  'message.delivered': row(
    { message: 'Message', client: 'ClientInfo', qos: 'QoS', retain: 'boolean' },
    { action: 'message_delivered', ruleTopics: ['$events/message_delivered'] }
  ),
  'message.acked': row(
    { message: 'Message', client: 'ClientInfo', qos: 'QoS', retain: 'boolean' },
    { action: 'message_acked', ruleTopics: ['$events/message_acked'] }
  ),
  'message.dropped': row(
    { message: 'Message', reason: 'DropReason', client: 'ClientInfo | undefined' },
    // the second topic is for a drop for one receiver
    { action: 'message_dropped', ruleTopics: ['$events/message_dropped', '$events/delivery_dropped'] }
  ),
  'connection.closed': row({ client: 'ClientInfo', isAccepted: 'boolean' }),
  'access.unguarded': row({ record: 'string' }),
  'source.reloaded': row({ source: 'string', error: 'Error | undefined' }),
  'configuration.changed': row({ key: 'string' }),
  'bridge.connected': row({ bridge: 'string', sessionPresent: 'boolean' }),
  'bridge.disconnected': row({ bridge: 'string', error: 'Error | undefined' }),
  'rule.connected': row({ rule: 'string' }),
  'rule.disconnected': row({ rule: 'string', reason: 'string' }),
  'rule.inspected': row(
    { rule: 'string', output: 'string', columns: 'string', params: 'string' },
    { showsValues: true }
  ),
  'streamRule.started': row({ rule: 'string' }),
  'streamRule.stopped': row({ rule: 'string', reason: 'string | undefined' }),
  'streams.logged': row({ text: 'string' }, { showsValues: true }),
  'streams.warned': row({ text: 'string' }),
  'streams.stopped': row({}),
  'streams.started': row({}),
  'store.failed': row({ error: 'Error' }),
  'store.recovered': row({}),
  'store.upgraded': row({ count: 'number', text: 'string' }),
  'alarm.raised': row({ alarm: 'PresentAlarm' }, { notice: 'alarms/alert', ruleTopics: ['$events/alarm_activated'] }),
  'alarm.cleared': row({ alarm: 'PastAlarm' }, { notice: 'alarms/clear', ruleTopics: ['$events/alarm_deactivated'] }),
  error: row({ error: 'Error', during: 'string', client: 'ClientInfo | undefined' })
} as const satisfies Readonly<Record<string, EventEntry>>;

/** Name of an event, the argument of `broker.on`. */
export type EventName = keyof typeof EVENTS;

/** The events with a `$SYS` notice about a client. */
export type NoticeName = {
  [E in EventName]: (typeof EVENTS)[E]['notice'] extends `clients/${string}` ? E : never;
}[EventName];

/** Names of all events, in the documented order. */
export const EVENT_NAMES = Object.keys(EVENTS) as readonly EventName[];

function row<
  const F extends EventFields,
  const N extends string | undefined = undefined,
  const A extends string | undefined = undefined
>(
  fields: F,
  columns: {
    readonly notice?: N;
    readonly action?: A;
    readonly ruleTopics?: readonly string[];
    readonly showsValues?: boolean;
  } = {}
): EventEntry<F, N, A> {
  return {
    fields,
    notice: columns.notice as N,
    action: columns.action as A,
    ruleTopics: columns.ruleTopics ?? [],
    showsValues: columns.showsValues ?? false
  };
}
