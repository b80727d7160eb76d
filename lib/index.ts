/// <reference types="node" preserve="true" />
/** The public names of `embermq`. */

export type { SourceState } from './access/access-control.ts';
export { parseAclFile } from './access/acl-file.ts';
export type { AclGroup, AclRecord, AclRecords, AclSubject } from './access/acl-records.ts';
export type {
  Application,
  ApplicationChange,
  ApplicationInput,
  Applications,
  ExportedApplication
} from './access/applications.ts';
export type { BanInput, BannedClients } from './access/banned.ts';
export type {
  CredentialOptions,
  CredentialRecord,
  CredentialRecords,
  ExportedCredential
} from './access/credential-records.ts';
export { type LoginAttempt, LoginLimit } from './access/login-limit.ts';
export type { ExportedUser, ManagementUser, ManagementUsers } from './access/management-users.ts';
export { contains, isNetwork, loginSourceOf, type Network, networkOf } from './access/network.ts';
export {
  type ForeignCheck,
  type ForeignChecks,
  foreignFormatOf,
  hashPassword,
  type PasswordCheck,
  passwordCheckOf
} from './access/password-hash.ts';
export type { ListPart } from './access/record-order.ts';
export { checkAccessRules, decideByRules } from './access/rule.ts';
export {
  formatScram,
  parseScram,
  type ScramCredentials,
  type ScramMethod,
  scramCredentialsOf
} from './access/scram.ts';
export { authenticateByScram, type ScramLookup } from './access/scram-login.ts';
export {
  type AuthorizeRequest,
  type AuthSource,
  acl,
  type SourceContext,
  type UserInput,
  users
} from './access/source.ts';
export type { ByteStream } from './base/byte-stream.ts';
export { type Clock, systemClock } from './base/clock.ts';
export {
  BrokerError,
  ConnectionRefused,
  InvalidInput,
  isCausedByPeer,
  NotAuthorized,
  NotFound,
  ProtocolError,
  StateError
} from './base/errors.ts';
export type { ActorView, ChartEvent, Inspection, ReplayObserver, ReplaySnapshot } from './base/inspection.ts';
export { Newcomers } from './base/newcomers.ts';
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
} from './base/options-table.ts';
export type { WorkCount } from './base/pending-work.ts';
export { shownUrl } from './base/shown-url.ts';
export { backup } from './broker/backup.ts';
export { Broker, bridgeAccessOf, createBroker } from './broker/broker.ts';
export type { StopOptions } from './broker/broker-lifecycle.ts';
export { checkBroker } from './broker/check-broker.ts';
export type { AutoSubscription } from './broker/configuration/auto-subscriptions.ts';
export type { Configuration, Override, Setting } from './broker/configuration/configuration.ts';
export { checkConnectorName } from './broker/configuration/connector-name.ts';
export type {
  Connector,
  ConnectorKind,
  ConnectorSettings,
  ConnectorState,
  Connectors
} from './broker/configuration/connectors.ts';
export { readBrokerOptions } from './broker/configuration/option-reading.ts';
export {
  BROKER_OPTIONS,
  type BrokerOptions,
  type BrokerSettings,
  type OptionLayer,
  type RewriteKind,
  type RewriteRule,
  type Settings
} from './broker/configuration/options.ts';
export { settingText } from './broker/configuration/setting-text.ts';
export type { Table } from './broker/configuration/tables.ts';
export {
  type ConfigurationDocument,
  type ConfigurationSections,
  type ExportedFeature,
  type ExportedSetting,
  type ExportedStoppedSource,
  exportConfiguration,
  exportConfigurationLines,
  type ImportError,
  type ImportedSection,
  type ImportResult,
  importConfiguration
} from './broker/configuration-document.ts';
export type { Access } from './broker/facets/access.ts';
export type { AccessAnswer, AccessQuestion, AccessStep, DecisionStep } from './broker/facets/access-explainer.ts';
export type { Retained } from './broker/facets/retained.ts';
export type { ExportedResource, ExportedRule } from './broker/facets/rules.ts';
export type { KickOptions, SessionHandle } from './broker/facets/session-handle.ts';
export type { Sessions } from './broker/facets/sessions.ts';
export type { FeatureState } from './broker/features/feature.ts';
export type { Features } from './broker/features/features.ts';
export type { MessageHandler, SubscribeOptions } from './broker/messages/handler-subscriber.ts';
export type { MessageStreamOptions } from './broker/messages/message-stream.ts';
export type { BridgeAccess, BridgeLimits } from './broker/rights/bridge-access.ts';
export { BRIDGE_PREFIX } from './broker/rights/bridge-access.ts';
export { Client, connectClient } from './client/client.ts';
export type { ClientListener } from './client/listeners.ts';
// under names of their own: the broker has a MessageHandler and SubscribeOptions, too
export type {
  MessageHandler as ClientMessageHandler,
  SubscribeOptions as ClientSubscribeOptions
} from './client/options.ts';
export * from './client/options.ts';
export { ClientSession, type Outgoing } from './client/session.ts';
export type { VerdictRecord } from './connection/verdicts.ts';
export {
  type BrokerEvents,
  EVENT_NAMES,
  EVENTS,
  type EventFields,
  type EventName,
  type EventRow,
  type EventValue,
  type FieldTypes,
  type SubscribeResult
} from './events/catalogue.ts';
export type { ErrorCodeRow } from './events/error-codes/row.ts';
export { ERROR_CODES } from './events/error-codes.ts';
export { EVENT_ABOUT } from './events/event-texts.ts';
export type {
  Approval,
  AuthenticateRequest,
  Awaitable,
  Challenge,
  ChangedFilter,
  Hook,
  HookName,
  HookOptions,
  Hooks,
  NoOpinion,
  Refusal,
  Verdict
} from './events/hooks.ts';
export { COUNTER_ABOUT, GAUGE_ABOUT, PLAIN_GAUGE_ABOUT } from './events/metric-texts.ts';
export {
  COUNTERS,
  type CounterName,
  GAUGES,
  type GaugeName,
  type Metrics,
  PLAIN_GAUGES,
  type PlainGaugeName
} from './events/metrics.ts';
export {
  DISCONNECT_REASONS,
  type DisconnectReason,
  type DisconnectRow,
  DROP_REASONS,
  type DropReason,
  type DropRow
} from './events/reasons.ts';
export type { SubscriptionOptions } from './events/subscription-options.ts';
export type { AlarmInput, Alarms } from './monitor/alarms.ts';
export type { AuditEntry, AuditInput, AuditLog, AuditOutcome, AuditQuery } from './monitor/audit.ts';
export type { BlockedClient, BlockedClients } from './monitor/blocked-clients.ts';
export type { DropQuery, DropRecord, Drops } from './monitor/drops.ts';
export { FIGURE_NAMES, type FigureSeries, type Figures } from './monitor/figures.ts';
export { LOG_LEVELS, LOG_ROWS, type Logger, type LogLevel, type LogRow } from './monitor/log.ts';
export type { Monitor } from './monitor/monitor.ts';
export type {
  SlowSubscription,
  SlowSubscriptionOptions,
  SlowSubscriptionSettings,
  SlowSubscriptions
} from './monitor/slow-subscriptions.ts';
export type { StoreFigures, StoreRecords, StoreState } from './monitor/store-figures.ts';
export { dateTimeText, SYSTEM_DESCRIPTION, uptimeText } from './monitor/sys.ts';
export {
  TOPIC_COUNTERS,
  type TopicCounterName,
  type TopicFigures,
  type TopicFiguresRecord
} from './monitor/topic-figures.ts';
export type { KeptLine, KeptTraceOptions, KeptTraces } from './monitor/traces/kept-traces.ts';
export type { PacketTap } from './monitor/traces/packet-taps.ts';
export type { Trace, TraceEnd, TraceOptions } from './monitor/traces/trace.ts';
export { type PayloadForm, payloadFields, shownUsername } from './monitor/traces/trace-fields.ts';
export type { TraceFunction, TraceRecord } from './monitor/traces/trace-output.ts';
export type { Traces } from './monitor/traces/traces.ts';
export type { Attempt } from './outbox/attempt.ts';
export type { OutboxEntry, Outcome } from './outbox/entries.ts';
export { OUTBOX_OPTIONS, type OutboxLimits, type OutboxOptions } from './outbox/options.ts';
export type { Outbox, OutboxFigures } from './outbox/outbox.ts';
export type { Outboxes } from './outbox/outboxes.ts';
export { SendError, type SendErrorOptions } from './outbox/send-error.ts';
export { CONNECT_REFUSALS, type ConnectRefusalRow } from './packets/connect-refusals.ts';
export { encode } from './packets/encode.ts';
export type { AppMessageInput, Message, MessageInput } from './packets/message.ts';
export { PacketReader } from './packets/packet-reader.ts';
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
export type { AccessRule, RuleAction } from './records/access-rule.ts';
export type { AlarmSeverity, PastAlarm, PresentAlarm } from './records/alarm.ts';
export type { Ban, BannedKind } from './records/ban.ts';
export type { ClientInfo, TransportInfo } from './records/client.ts';
export type {
  CountedStream,
  GatheringStream,
  ListenerAddress,
  ListenerFigures,
  ListenerHandle,
  ListenerProtocol
} from './records/listener.ts';
export { recordNames } from './records/record-names.ts';
export type { Dialect } from './records/record-table.ts';
export type { ConnectionTraffic, SessionCounts, SessionFigures } from './records/session-figures.ts';
export type {
  ClientRecord,
  CommonFacts,
  ConnectionFacts,
  SessionFacts,
  SessionRecord
} from './records/session-records.ts';
export type { SubscriptionRecord } from './records/subscription-record.ts';
export { plainAddress, type TlsFacts, verifiedCertificate } from './records/transport-info.ts';
export { type Given as GivenOptions, ZONE_OPTIONS, type Zone, type ZoneInput } from './records/zone.ts';
export type {
  Directory,
  DirectoryLists,
  Page,
  PageEnd,
  PagePart,
  PageParts,
  RetainedRecord,
  RouteRecord
} from './routing/directory.ts';
export type {
  ClientQuery,
  LevelQuery,
  PageQuery,
  RetainedQuery,
  SubscriptionQuery
} from './routing/directory-queries.ts';
export type { TopicLevel } from './routing/level-count.ts';
export type { SharedStrategy } from './routing/share-group.ts';
export type { ResourceChange, ResourcesApi, RulesApi } from './rules/api.ts';
// the actions of a rule as the store has them
export type { ActionDefinition, ResourceDefinition, RuleDefinition } from './rules/definition.ts';
export type { RuleEventName } from './rules/events/event-name.ts';
export { messageProperties } from './rules/events/properties.ts';
export { compileBytes, compilePayload, compileTemplate, compileTopic } from './rules/template.ts';
export type * from './rules/types.ts';
export type { InFlightMessage, QueuedMessage, QueuePage, SessionFlights } from './session/messages/queue-view.ts';
export type { FunctionTools, Parameter, ParameterType, Pattern, SqlFunction } from './sql/functions/function.ts';
export { decodeJson, encodeJson } from './sql/json.ts';
export { SqlError, SqlFailure } from './sql/sql-error.ts';
export { Float, type Value, type ValueObject } from './sql/values.ts';
export { memoryStore } from './store/memory-store.ts';
export { Batch, type Entry, type Store, type StoreSnapshot } from './store/store.ts';
export type { StreamRule, StreamRulesApi, StreamsApi } from './streams/api.ts';
export { describeJson as describeStream, describeText as describeStreamText } from './streams/ddl/describe.ts';
export type {
  Format as StreamFormatCodec,
  FormatSetup as StreamFormatSetup,
  FormatType as StreamFormatType,
  StreamFormat
} from './streams/format.ts';
export { splitFields as splitDelimited } from './streams/formats/delimited.ts';
export { parseJson as parseStreamJson } from './streams/formats/json.ts';
export { jsonText as streamJson } from './streams/formats/json-text.ts';
export type {
  Accumulator as StreamAccumulator,
  AggregateFunction as StreamAggregateFunction,
  AnalyticFunction as StreamAnalyticFunction,
  AnalyticState as StreamAnalyticState,
  ArgumentNames as StreamArgumentNames,
  ContextFunction as StreamContextFunction,
  ExpandingFunction as StreamExpandingFunction,
  ExpandingState as StreamExpandingState,
  FunctionBase as StreamFunctionBase,
  FunctionTools as StreamFunctionTools,
  Parameter as StreamParameter,
  ParameterType as StreamParameterType,
  Pattern as StreamPattern,
  ScalarFunction as StreamScalarFunction,
  StreamFunction
} from './streams/function.ts';
export type {
  ActionInput as StreamActionInput,
  Column as StreamColumn,
  ColumnType as StreamColumnType,
  EmissionFunction,
  FirstMessage,
  LookupSetup,
  NotedStream,
  OpenLookup,
  OpenSink,
  OpenSource,
  PlanNode,
  Properties as StreamProperties,
  PropertyRow,
  PropertyTable,
  RestartStrategy,
  RuleOptions as StreamRuleOptions,
  Ruleset,
  SinkItem,
  SinkSetup,
  SinkType,
  SourceNotes,
  SourceSetup,
  SourceType,
  StatusText,
  StreamBounds,
  StreamDefinition,
  StreamKind,
  StreamRuleDefinition,
  StreamRuleInput,
  StreamRuleStatus,
  StreamRuleSummary,
  StreamRuleTest,
  StreamsOptions,
  TestRow,
  TidySetup,
  Topology,
  Validation
} from './streams/types.ts';
export type { Cause as StreamCause } from './streams/values/cause.ts';
export type {
  Frame as StreamFrame,
  Metadata as StreamMetadata,
  Tuple as StreamTuple,
  WindowRange
} from './streams/values/tuple.ts';
export {
  plain as plainValue,
  StreamFailure,
  type Value as StreamValue,
  type ValueObject as StreamValueObject
} from './streams/values/values.ts';
export { type CheckOptions, checkStore, type StoreFinding, type StoreReport } from './tools/check.ts';
export { exportStore, importStore } from './tools/copy.ts';
export type { RecordName } from './tools/record-kinds.ts';
export type { StoreProgress } from './tools/scan.ts';
export {
  type SessionShare,
  type StoreShare,
  type StoreStatistics,
  storeStatistics
} from './tools/statistics.ts';
export { checkTopicFilter, checkTopicName, covers, matches, type TopicLimits } from './topics/topic.ts';
