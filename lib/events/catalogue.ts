import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { RuleAction } from '../records/access-rule.ts';
import type { PastAlarm, PresentAlarm } from '../records/alarm.ts';
import type { Ban } from '../records/ban.ts';
import type { ClientInfo } from '../records/client.ts';
import type { ListenerHandle } from '../records/listener.ts';
import type { DisconnectReason, DropReason } from './reasons.ts';
import type { SubscriptionOptions } from './subscription-options.ts';

/** What a SUBSCRIBE has asked for one topic filter, and the answer. */
export interface SubscribeResult {
  readonly filter: string;
  /** The topic filter of the subscription, if a hook has put another one in place of `filter`. */
  readonly grantedFilter: string | undefined;
  readonly options: SubscriptionOptions;
  /** The granted QoS, or from 0x80 the reason code of the refusal, as SUBACK has it. */
  readonly reasonCode: number;
}

/** The types of the fields of events, by their names in the catalogue. */
export interface FieldTypes<Data = unknown> {
  readonly ClientInfo: ClientInfo<Data>;
  readonly 'ClientInfo | undefined': ClientInfo<Data> | undefined;
  readonly SubscriptionOptions: SubscriptionOptions;
  readonly 'SubscribeResult[]': readonly SubscribeResult[];
  readonly Message: Message;
  readonly QoS: QoS;
  readonly DisconnectReason: DisconnectReason;
  readonly DropReason: DropReason;
  readonly RuleAction: RuleAction;
  readonly Ban: Ban;
  readonly PresentAlarm: PresentAlarm;
  readonly PastAlarm: PastAlarm;
  readonly ListenerHandle: ListenerHandle;
  readonly 'ListenerHandle[]': readonly ListenerHandle[];
  readonly Error: Error;
  readonly 'Error | undefined': Error | undefined;
  readonly boolean: boolean;
  readonly number: number;
  readonly string: string;
  readonly 'string | undefined': string | undefined;
  readonly 'string[] | undefined': readonly string[] | undefined;
}

/** The fields of an event, with the names of their types. */
export type EventFields = { readonly [field: string]: keyof FieldTypes };

/** An event of the catalogue. The columns name the event elsewhere; undefined: the event does not exist there. */
export interface EventRow<
  F extends EventFields = EventFields,
  N extends string | undefined = string | undefined,
  A extends string | undefined = string | undefined
> {
  /** What has happened, for people. */
  readonly about: string;
  /** The fields of the value that listeners receive. */
  readonly fields: F;
  /** `$SYS` topic of the notice, below `$SYS/brokers/<node>/`. `{clientid}` is replaced by the client id. */
  readonly notice: N;
  /** `action` of the webhook request. */
  readonly action: A;
  /** Topics of the event in the FROM clause of rules. */
  readonly ruleTopics: readonly string[];
}

/** The value that listeners of an event receive. */
export type EventValue<F extends EventFields, Data = unknown> = {
  readonly [field in keyof F]: FieldTypes<Data>[F[field]];
};

/**
 * All events of a broker, in the order in which they are documented. The types of events, the `$SYS` notices and the table of the README
 * follow from these rows.
 */
export const EVENTS = {
  'broker.started': row('The broker has started: its listeners accept clients.', { listeners: 'ListenerHandle[]' }),
  'broker.stopped': row('The broker has stopped.', {}),
  'listener.attached': row('A listener was added to the started broker; it is opened next.', {
    listener: 'ListenerHandle'
  }),
  'listener.detached': row('A listener was removed from the started broker.', { listener: 'ListenerHandle' }),
  'listener.exposed': row(
    'The broker has started, or a listener was added, and anyone may connect at these listeners from other machines: no hook and no source of authentication is configured, and `allowAnonymous` is not set.',
    { listeners: 'ListenerHandle[]' }
  ),
  'client.connect': row(
    'A well-formed CONNECT has arrived; no hook has been called yet.',
    { client: 'ClientInfo' },
    { action: 'client_connect' }
  ),
  'client.connack': row(
    'A CONNACK is about to be sent.',
    { client: 'ClientInfo', reasonCode: 'number' },
    { action: 'client_connack', ruleTopics: ['$events/client_connack'] }
  ),
  'client.connected': row(
    'A successful CONNACK has been sent, followed by the messages in flight. `sessionPresent`: an existing session was resumed.',
    { client: 'ClientInfo', sessionPresent: 'boolean' },
    {
      notice: 'clients/{clientid}/connected',
      action: 'client_connected',
      ruleTopics: ['$events/client_connected']
    }
  ),
  'client.disconnected': row(
    'The connection of an accepted client has ended. `reasonCode`: that of the DISCONNECT sent or received, 0x80 if there was none.',
    { client: 'ClientInfo', reason: 'DisconnectReason', reasonCode: 'number' },
    {
      notice: 'clients/{clientid}/disconnected',
      action: 'client_disconnected',
      ruleTopics: ['$events/client_disconnected']
    }
  ),
  'client.subscribe': row(
    'A SUBSCRIBE has arrived; one event for each topic filter, before the filter is authorized.',
    { client: 'ClientInfo', filter: 'string', options: 'SubscriptionOptions' },
    { action: 'client_subscribe' }
  ),
  'client.suback': row('A SUBSCRIBE was answered: all its topic filters, with the reason codes of the SUBACK.', {
    client: 'ClientInfo',
    results: 'SubscribeResult[]'
  }),
  'client.unsubscribe': row(
    'An UNSUBSCRIBE has arrived; one event for each topic filter.',
    { client: 'ClientInfo', filter: 'string' },
    { action: 'client_unsubscribe' }
  ),
  'client.check_acl_complete': row(
    'It was decided whether a client may publish or subscribe: for each PUBLISH, each will and each topic filter of a SUBSCRIBE. `isCached`: the connection has kept the decision since an earlier request. Later reviews of subscriptions are not reported.',
    { client: 'ClientInfo', action: 'RuleAction', topic: 'string', isAllowed: 'boolean', isCached: 'boolean' },
    { ruleTopics: ['$events/client_check_acl_complete'] }
  ),
  'client.ping': row('A PINGREQ was answered.', { client: 'ClientInfo' }),
  'client.banned': row(
    'A ban was made or replaced: by the app, an operator or the detection of flapping. `ban.kind` and `ban.who` name the clients.',
    { ban: 'Ban' }
  ),
  'session.created': row('A session has begun; the CONNACK to its client follows.', { client: 'ClientInfo' }),
  'session.resumed': row('A new connection has resumed an existing session.', { client: 'ClientInfo' }),
  'session.takenover': row('Another connection with the same client id has taken over the session.', {
    client: 'ClientInfo'
  }),
  'session.discarded': row('A Clean Start has ended the previous session of the client id.', { client: 'ClientInfo' }),
  'session.subscribed': row(
    'A subscription was made or changed: by SUBSCRIBE, by the application, or automatically at connect. `requestedFilters`: what the client has asked for, if a hook has changed it to `filter`.',
    {
      client: 'ClientInfo',
      filter: 'string',
      requestedFilters: 'string[] | undefined',
      options: 'SubscriptionOptions'
    },
    { action: 'session_subscribed', ruleTopics: ['$events/session_subscribed'] }
  ),
  'session.unsubscribed': row(
    'A subscription was removed. Not emitted for subscriptions that end with their session. `requestedFilters` is as in `session.subscribed`.',
    {
      client: 'ClientInfo',
      filter: 'string',
      requestedFilters: 'string[] | undefined',
      options: 'SubscriptionOptions'
    },
    { action: 'session_unsubscribe', ruleTopics: ['$events/session_unsubscribed'] } // as documented, unlike its siblings
  ),
  'session.terminated': row(
    'A session has ended, together with its connection or after it.',
    { client: 'ClientInfo', reason: 'DisconnectReason' },
    { action: 'session_terminated' }
  ),
  'message.publish': row(
    'A message was accepted and is about to be routed. `client` is undefined for messages from the application and from the broker.',
    { message: 'Message', client: 'ClientInfo | undefined' },
    { action: 'message_publish', ruleTopics: ['$events/message_publish'] }
  ),
  'message.queued': row(
    'A message waits for a receiver that is offline or slow, or has too many messages in flight. Messages of `$SYS` are not reported.',
    { message: 'Message', client: 'ClientInfo' }
  ),
  'message.delivered': row(
    'A message was handed to the connection of a receiver. `qos` and `retain` are those of the packet sent.',
    { message: 'Message', client: 'ClientInfo', qos: 'QoS', retain: 'boolean' },
    { action: 'message_delivered', ruleTopics: ['$events/message_delivered'] }
  ),
  'message.acked': row(
    'A receiver has acknowledged a message (PUBACK, or PUBREC for QoS 2).',
    { message: 'Message', client: 'ClientInfo', qos: 'QoS' },
    { action: 'message_acked', ruleTopics: ['$events/message_acked'] }
  ),
  'message.dropped': row(
    'A message was dropped. `client` is the receiver that does not get it; undefined if no receiver gets it.',
    { message: 'Message', reason: 'DropReason', client: 'ClientInfo | undefined' },
    // the second one for the drop for one receiver
    { action: 'message_dropped', ruleTopics: ['$events/message_dropped', '$events/delivery_dropped'] }
  ),
  'connection.closed': row(
    'The stream of a connection has closed. `isAccepted`: its client had received a CONNACK with success; `client.disconnected` is emitted for it as well, before or after.',
    { client: 'ClientInfo', isAccepted: 'boolean' }
  ),
  'access.unguarded': row(
    'The first record of a client id, user name or login was added while no hook or source of authentication is configured. Records are checked at the next CONNECT, but unknown clients still get in; `allowAnonymous: false` refuses them. `record`: what was added.',
    { record: 'string' }
  ),
  'source.reloaded': row(
    'A source of authentication or of access rules was loaded again. `error`: this has failed, and its previous content stays in force.',
    { source: 'string', error: 'Error | undefined' }
  ),
  'configuration.changed': row(
    'An option was changed at run time, or such a change was removed (`broker.configuration`). `key`: its name in EMQX, such as `zone.external.max_inflight`.',
    { key: 'string' }
  ),
  'bridge.connected': row(
    'A bridge is connected to its remote server. `sessionPresent`: the server has resumed the session of the bridge.',
    { bridge: 'string', sessionPresent: 'boolean' }
  ),
  'bridge.disconnected': row(
    'A bridge has lost the connection to its remote server. `error`: why; undefined if it was stopped.',
    { bridge: 'string', error: 'Error | undefined' }
  ),
  'rule.connected': row('A rule was attached: events of its topics reach it. `rule`: its id.', { rule: 'string' }),
  'rule.disconnected': row(
    'A rule cannot run, because its statement or its actions cannot be used. This is tried again every minute.',
    { rule: 'string', reason: 'string' }
  ),
  'rule.inspected': row(
    'A rule with the action `inspect` has an output. `output`, `columns` and `params`: the output, the columns of the event and the parameters of the action, as JSON.',
    { rule: 'string', output: 'string', columns: 'string', params: 'string' }
  ),
  'streamRule.started': row('A stream rule runs. `rule`: its id.', { rule: 'string' }),
  'streamRule.stopped': row(
    'A stream rule does not run any more. `reason`: why it has failed; undefined: it was stopped by a call or by its schedule.',
    { rule: 'string', reason: 'string | undefined' }
  ),
  'streams.logged': row('A line of the sink `log`.', { text: 'string' }),
  'streams.warned': row('A source or a sink has a property that has no effect. `text`: which one.', { text: 'string' }),
  'streams.stopped': row('The stream service has stopped; the broker keeps running.', {}),
  'streams.started': row('The stream service runs again.', {}),
  'store.failed': row(
    'Writing to the store has failed. Until `store.recovered`, the broker refuses everything that would have to be persisted.',
    { error: 'Error' }
  ),
  'store.recovered': row('The store can be written again after `store.failed`.', {}),
  'alarm.raised': row(
    'A condition has begun that an operator should know: `broker.alarms.raise`, by the broker or the app.',
    { alarm: 'PresentAlarm' },
    { notice: 'alarms/alert' }
  ),
  'alarm.cleared': row('The condition of an alarm has ended.', { alarm: 'PastAlarm' }, { notice: 'alarms/clear' }),
  error: row(
    'An error that cannot be returned to a caller, for example from a listener, a hook, a session or a stream. `during` names what failed.',
    { error: 'Error', during: 'string', client: 'ClientInfo | undefined' }
  )
} as const satisfies Readonly<Record<string, EventRow>>;

/** Name of an event, as `broker.on` takes it. */
export type EventName = keyof typeof EVENTS;

/** The events of a broker, and the value that listeners of each event receive (`broker.on`). */
export type BrokerEvents<Data = unknown> = {
  readonly [E in EventName]: EventValue<(typeof EVENTS)[E]['fields'], Data>;
};

/** The events with a `$SYS` notice about a client. */
export type NoticeName = {
  [E in EventName]: (typeof EVENTS)[E]['notice'] extends `clients/${string}` ? E : never;
}[EventName];

/** Names of all events, in the order in which they are documented. */
export const EVENT_NAMES = Object.keys(EVENTS) as readonly EventName[];

function row<
  const F extends EventFields,
  const N extends string | undefined = undefined,
  const A extends string | undefined = undefined
>(
  about: string,
  fields: F,
  columns: { readonly notice?: N; readonly action?: A; readonly ruleTopics?: readonly string[] } = {}
): EventRow<F, N, A> {
  return {
    about,
    fields,
    notice: columns.notice as N,
    action: columns.action as A,
    ruleTopics: columns.ruleTopics ?? []
  };
}
