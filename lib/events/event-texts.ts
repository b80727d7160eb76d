import type { EventName } from './catalogue.ts';

/** Descriptions of the events. The broker does not need them, so bundlers omit them from apps that do not show them. */
export const EVENT_ABOUT: Readonly<Record<EventName, string>> = {
  'broker.started': 'The broker has started: its listeners accept clients.',
  'broker.stopped': 'The broker has stopped.',
  'listener.attached': 'A listener was added to the started broker; it is opened next.',
  'listener.detached': 'A listener was removed from the started broker.',
  'listener.exposed':
    'The broker has started, or a listener was added, and anyone may connect at these listeners from other machines: neither a hook nor a source of authentication is consulted, and `allowAnonymous` is not `true`.',
  'client.connect': 'A well-formed CONNECT has arrived; no hook has been called yet.',
  'client.connack': 'A CONNACK is about to be sent. `why`: the reason of a refusal, which is not sent to the client.',
  'client.connected':
    'A successful CONNACK has been sent, followed by the messages in flight. `sessionPresent`: an existing session was resumed.',
  'client.disconnected':
    'The connection of an accepted client has ended. `reasonCode`: that of the DISCONNECT sent or received, 0x80 if there was none.',
  'client.rejected':
    'The broker refuses a client, or closes its connection because of what it sends: a packet that is malformed or too large, a violation of the protocol, a login that is refused. `client` is undefined if a listener has closed the connection before, for example after a failed TLS handshake. `reason`: one of `client.disconnected`, or of the listener.',
  'client.subscribe': 'A SUBSCRIBE has arrived; one event for each topic filter, before the filter is authorized.',
  'client.suback': 'A SUBSCRIBE was answered: all its topic filters, with the reason codes of the SUBACK.',
  'client.unsubscribe': 'An UNSUBSCRIBE has arrived; one event for each topic filter.',
  'client.check_acl_complete':
    'The broker has decided whether a client may publish or subscribe: for each PUBLISH, each will and each topic filter of a SUBSCRIBE. `isCached`: the decision was cached by the connection at an earlier request. Later reviews of subscriptions are not reported.',
  'client.ping': 'A PINGREQ was answered.',
  'client.banned':
    'A ban was created or replaced: by the app, an operator or the detection of flapping. `ban.kind` and `ban.who` name the clients.',
  'session.created': 'A session has begun; the CONNACK to its client follows.',
  'session.resumed': 'A new connection has resumed an existing session.',
  'session.takenover': 'Another connection with the same client id has taken over the session.',
  'session.discarded': 'A Clean Start has ended the previous session of the client id.',
  'session.subscribed':
    'A subscription was created or changed: by SUBSCRIBE, by the application, or automatically at connect. `requestedFilters`: the requested topic filters, if a hook has changed them to `filter`.',
  'session.unsubscribed':
    'A subscription was removed. Not emitted for subscriptions that end with their session. `requestedFilters` is as in `session.subscribed`.',
  'session.terminated': 'A session has ended, together with its connection or after it.',
  'message.publish':
    'A message was accepted and is about to be routed. `client` is undefined for messages from the application and from the broker.',
  'message.queued':
    'A message waits for a receiver that is offline or slow, or has too many messages in flight. Messages of `$SYS` are not reported.',
  'message.delivered':
    'A message was handed to the connection of a receiver. `qos` and `retain` are those of the packet sent.',
  'message.acked': 'A receiver has acknowledged a message (PUBACK, or PUBREC for QoS 2).',
  'message.dropped':
    'A message was dropped. `client` is the receiver that does not get it; undefined if no receiver gets it, or no member of a share group (`no_share_member`).',
  'connection.closed':
    'The stream of a connection has closed. `isAccepted`: its client had received a CONNACK with success; `client.disconnected` is emitted for it as well, before or after.',
  'access.unguarded':
    'The first record of a client id, user name or login was added while no hook or source of authentication is configured. Records are checked at the next CONNECT, but unknown clients still get in; `allowAnonymous: false` refuses them. `record`: the kind of record.',
  'source.reloaded':
    'A source of authentication or of access rules was loaded again. `error`: loading failed, and the previous content remains in use.',
  'configuration.changed':
    'An option was changed at run time, or such a change was removed (`broker.configuration`). `key`: its name in EMQX, such as `zone.external.max_inflight`.',
  'bridge.connected':
    'A bridge is connected to its remote server. `sessionPresent`: the server has resumed the session of the bridge.',
  'bridge.disconnected':
    'A bridge has lost the connection to its remote server. `error`: the reason; undefined if it was stopped.',
  'rule.connected': 'A rule was attached: events of its topics reach it. `rule`: its id.',
  'rule.disconnected':
    'A rule cannot run, because its statement or its actions cannot be used. The broker tries again every minute.',
  'rule.inspected':
    'A rule with the action `inspect` has an output. `output`, `columns` and `params`: the output, the columns of the event and the parameters of the action, as JSON.',
  'streamRule.started': 'A stream rule has started. `rule`: its id.',
  'streamRule.stopped':
    'A stream rule has stopped. `reason`: why it failed; undefined if it was stopped by a call or by its schedule.',
  'streams.logged': 'The sink `log` has written a line.',
  'streams.warned': 'A source or a sink has a property that has no effect. `text` names it.',
  'streams.stopped': 'The stream service has stopped; the broker keeps running.',
  'streams.started': 'The stream service has started again.',
  'store.failed':
    'Writing to the store has failed. Until `store.recovered`, the broker refuses all requests that would have to be persisted.',
  'store.recovered': 'The store can be written again after `store.failed`.',
  'store.upgraded':
    'The store was written by an earlier release, and some of its rules, streams and other definitions behave differently in this one: `count` is their number, `text` names them and the changes. Emitted once, after the first start with this release.',
  'alarm.raised':
    'A condition that an operator should know has begun: `broker.alarms.raise`, by the broker or the app.',
  'alarm.cleared': 'The condition of an alarm has ended.',
  error:
    'An error that cannot be returned to a caller, for example from a listener, a hook, a session or a stream. `during` names what failed. Protocol errors of clients (`ProtocolError`) and connections that a listener has refused (`ConnectionRefused`) are reported, too.'
};

/** Descriptions of the fields of events: by `event field`, or by the name of the field where all other events have the same. */
export const EVENT_FIELD_ABOUT: Readonly<Record<string, string>> = {
  client: 'The client.',
  'client.rejected client': 'The client; undefined if a listener has closed the connection.',
  'message.publish client': 'The publisher; undefined if the message is from the app or the broker.',
  'message.queued client': 'The receiver.',
  'message.delivered client': 'The receiver.',
  'message.acked client': 'The receiver.',
  'message.dropped client':
    'The receiver that does not get the message; undefined if no receiver gets it, or no member of a share group.',
  'error client': 'The client that the error is about; undefined if there is none.',
  listener: 'The listener.',
  listeners: 'The listeners of the broker.',
  'listener.exposed listeners': 'The listeners at which anyone may connect from other machines.',
  'client.connack reasonCode':
    'The reason code of the CONNACK as in MQTT 5.0: 0 if the client is accepted, otherwise 0x80 or above.',
  'client.disconnected reasonCode': 'The reason code of the DISCONNECT sent or received; 0x80 if there was none.',
  'client.rejected reasonCode':
    'The reason code of the CONNACK or DISCONNECT as in MQTT 5.0; 0 if a listener has closed the connection.',
  'client.connack why': 'The reason of a refusal, which is not sent to the client; undefined if there is none.',
  'client.rejected why': 'The reason in words, for operators. It is not sent to the client.',
  'client.rejected address': 'The remote address of the connection; undefined if it is not known.',
  'client.rejected reason':
    'The reason for which the connection ends, as in `client.disconnected`, or a reason of the listener.',
  'client.disconnected reason': 'The reason for which the connection ended, a key of `DISCONNECT_REASONS`.',
  'session.terminated reason': 'The reason for which the session ended, a key of `DISCONNECT_REASONS`.',
  'message.dropped reason': 'The reason of the drop, a key of `DROP_REASONS`.',
  'rule.disconnected reason': 'The reason for which the rule cannot run, in words.',
  'streamRule.stopped reason': 'The error in words; undefined if the rule was stopped by a call or by its schedule.',
  sessionPresent: 'True if an existing session was resumed.',
  'bridge.connected sessionPresent': 'True if the remote server has resumed the session of the bridge.',
  filter: 'The topic filter.',
  'session.subscribed filter': 'The topic filter of the subscription.',
  'session.unsubscribed filter': 'The topic filter of the subscription.',
  requestedFilters:
    'The topic filters that the client requested, if a hook has replaced them by `filter`; otherwise undefined.',
  options: 'The options of the subscription.',
  'client.subscribe options': 'The requested options of the subscription.',
  results: 'The topic filters of the SUBSCRIBE in their order, each with its reason code.',
  action: 'The operation that was decided about: `publish` or `subscribe`.',
  topic: 'The topic name of the message or the will, or the topic filter.',
  isAllowed: 'True if the client may do it.',
  isCached: 'True if the decision was cached by the connection at an earlier request.',
  isAccepted: 'True if the client had received a CONNACK with success.',
  ban: 'The ban; `kind` and `who` name the clients.',
  message: 'The message.',
  qos: 'The QoS of the packet that was sent to the receiver.',
  retain: 'The retain flag of the packet that was sent to the receiver.',
  record: 'The kind of record that was added.',
  source: 'The name of the source.',
  error: 'The error.',
  'source.reloaded error': 'The error for which the source could not be loaded; undefined if it was loaded.',
  'bridge.disconnected error': 'The reason for which the connection was lost; undefined if the bridge was stopped.',
  key: 'The name of the option in EMQX, such as `zone.external.max_inflight`.',
  bridge: 'The name of the bridge.',
  rule: 'The id of the rule.',
  output: 'The output of the rule, as JSON.',
  columns: 'The columns of the event, as JSON.',
  params: 'The parameters of the action, as JSON.',
  text: 'The line.',
  'streams.warned text': 'A sentence that names the property.',
  'store.upgraded text': 'The definitions that behave differently and the changes, in words.',
  count: 'The number of definitions that behave differently in this release.',
  alarm: 'The alarm.',
  during: 'The operation that failed, in words.'
};
