/** The public names of `embermq`. */
export type { Inspection } from './broker/actors.ts';
export { Broker, createBroker, type StopOptions } from './broker/broker.ts';
export type { PacketTap } from './broker/core.ts';
export type { MessageHandler, SubscribeOptions } from './broker/handler-subscriber.ts';
export type { MessageStreamOptions } from './broker/message-stream.ts';
export {
  type AutoSubscription,
  BROKER_OPTIONS,
  type BrokerOptions,
  readBrokerOptions,
  type Settings,
  type SharedStrategy
} from './broker/options.ts';
export type { RewriteRule } from './broker/rewrite.ts';
export type { KickOptions, SessionFigures, SessionHandle, SubscriptionRecord } from './broker/session-handle.ts';
export { Client, connectClient } from './client/client.ts';
export * from './client/options.ts';
export type { ClientInfo, ConnectionMeta } from './client-info.ts';
export { type Clock, systemClock } from './clock.ts';
export { BrokerError, InvalidInput, NotAuthorized, NotFound, ProtocolError, StateError } from './errors.ts';
export {
  type BrokerEvents,
  type DisconnectReason,
  type DropReason,
  EVENT_NAMES,
  type EventName,
  type SubscriptionOptions
} from './events.ts';
export type { Approval, AuthenticateRequest, Challenge, HookName, Hooks, Refusal, Verdict } from './hooks.ts';
export type { ListenerAddress, ListenerFigures, ListenerHandle, ListenerProtocol } from './listener.ts';
export { COUNTERS, type CounterName, GAUGES, type GaugeName, Metrics } from './metrics.ts';
export {
  type Duration,
  documentedName,
  durationMs,
  nearest,
  type OptionRow,
  type OptionTable,
  optionName,
  parseDuration,
  parseSize,
  type Rate,
  readOptions,
  row as optionRow,
  type Size,
  unknownKey,
  type Values as OptionValues
} from './options-table.ts';
export type { Message, MessageInput } from './packets/message.ts';
export { ReasonCode, reasonName } from './packets/reason-codes.ts';
export type { ConnectPacket, Packet, Properties, ProtocolVersion, QoS, UserProperty, Will } from './packets/types.ts';
export { checkTopicFilter, checkTopicName, matches } from './topics/topic.ts';
export { ZONE_OPTIONS, type Zone, type ZoneInput } from './zone.ts';
