/// <reference types="node" preserve="true" />
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
export type { RecordName } from './broker/records.ts';
export type { RewriteKind, RewriteRule } from './broker/rewrite.ts';
export type { KickOptions, SessionFigures, SessionHandle, SubscriptionRecord } from './broker/session-handle.ts';
export { type CheckOptions, checkStore, type StoreFinding, type StoreReport } from './broker/store-check.ts';
export { exportStore, importStore } from './broker/store-copy.ts';
export type { StoreProgress } from './broker/store-scan.ts';
export {
  type SessionShare,
  type StoreShare,
  type StoreStatistics,
  storeStatistics
} from './broker/store-statistics.ts';
export type { Alarm } from './broker/sys.ts';
export type { Table } from './broker/tables.ts';
export { Client, type ClientListener, connectClient } from './client/client.ts';
// under names of their own: the broker has a MessageHandler and SubscribeOptions, too
export type {
  MessageHandler as ClientMessageHandler,
  SubscribeOptions as ClientSubscribeOptions
} from './client/options.ts';
export * from './client/options.ts';
export type { ClientSession, Outgoing } from './client/session.ts';
export type { ClientInfo, TransportInfo } from './client-info.ts';
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
export type {
  Approval,
  AuthenticateRequest,
  Awaitable,
  Challenge,
  Hook,
  HookName,
  Hooks,
  NoOpinion,
  Refusal,
  Verdict
} from './hooks.ts';
export type {
  CountedStream,
  GatheringStream,
  ListenerAddress,
  ListenerFigures,
  ListenerHandle,
  ListenerProtocol
} from './listener.ts';
export {
  COUNTERS,
  type CounterName,
  GAUGES,
  type GaugeName,
  type Metrics,
  PLAIN_GAUGES,
  type PlainGaugeName
} from './metrics.ts';
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
export { decodePacket } from './packets/decode-packet.ts';
export type { Message, MessageInput } from './packets/message.ts';
export { ReasonCode, reasonName } from './packets/reason-codes.ts';
export type {
  AckPacket,
  AuthPacket,
  ConnackPacket,
  ConnectPacket,
  DisconnectPacket,
  Packet,
  PingPacket,
  Properties,
  ProtocolVersion,
  PublishPacket,
  QoS,
  SubackPacket,
  SubscribePacket,
  SubscriptionRequest,
  UnsubackPacket,
  UnsubscribePacket,
  UserProperty,
  Will
} from './packets/types.ts';
export { plainAddress, type TlsFacts, verifiedCertificate } from './socket-meta.ts';
export { memoryStore } from './store/memory-store.ts';
export { Batch, type Entry, type Store } from './store/store.ts';
export { checkTopicFilter, checkTopicName, covers, matches, type TopicLimits } from './topics/topic.ts';
export type { WorkCount } from './work.ts';
export { type Given as GivenOptions, ZONE_OPTIONS, type Zone, type ZoneInput } from './zone.ts';
