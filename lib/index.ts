/// <reference types="node" preserve="true" />
/** The public names of `embermq`. */

export type { SourceState } from './access/access-control.ts';
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
export type { ExportedUser, ManagementUser, ManagementUsers, UserChange } from './access/management-users.ts';
export { hashPassword } from './access/password-hash.ts';
export type { ListPart } from './access/record-order.ts';
export { type AuthorizeRequest, acl, type UserInput, users } from './access/source.ts';
export type {
  ActorObserver,
  ActorRef,
  ActorSelection,
  ActorSnapshot,
  ActorSubscription,
  ActorSystem,
  ChartEvent,
  Inspection,
  StateValue
} from './base/actor.ts';
export type { ByteStream } from './base/byte-stream.ts';
export { type Clock, systemClock } from './base/clock.ts';
export {
  BrokerError,
  ConnectionRefused,
  InvalidInput,
  NotAuthorized,
  NotFound,
  ProtocolError,
  StateError
} from './base/errors.ts';
export type { Duration, Rate, Size } from './base/fields.ts';
export type { WorkCount } from './base/pending-work.ts';
export { backup } from './broker/backup.ts';
export type { BrokerOf, NoSchemas, SchemaBroker, WithSchemas } from './broker/broker.ts';
export { Broker, createBroker } from './broker/broker.ts';
export type { StopOptions } from './broker/broker-lifecycle.ts';
export type {
  ConnectOptions,
  ListenerOptions,
  NextEventOptions,
  Published,
  StartOptions
} from './broker/call-options.ts';
export type { ExportedResource, ExportedRule } from './broker/computing/rules.ts';
export type { AutoSubscription } from './broker/configuration/auto-subscriptions.ts';
export type { Configuration, Override, Setting } from './broker/configuration/configuration.ts';
export type { Connector, ConnectorState, Connectors, ConnectorTest } from './broker/configuration/connectors.ts';
export type {
  BrokerOptions,
  BrokerSettings,
  IfTyped,
  OptionLayer,
  ReasonsOption,
  RewriteKind,
  RewriteRule,
  Settings
} from './broker/configuration/options.ts';
export type {
  DecodedSchema,
  JsonObjectValue,
  JsonSchemaValue,
  PayloadSchema,
  SchemaTable,
  SchemaValue,
  StandardSchema,
  StandardTypes
} from './broker/configuration/payload-schemas.ts';
export type { SparkplugOptions } from './broker/configuration/sparkplug-options.ts';
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
export type { AppRequestHandler, AppRespondOptions } from './broker/facets/responder.ts';
export type { Retained } from './broker/facets/retained.ts';
export type { KickOptions, SessionHandle } from './broker/facets/session-handle.ts';
export type { Sessions } from './broker/facets/sessions.ts';
export type { FeatureState } from './broker/features/feature.ts';
export type { Features } from './broker/features/features.ts';
export type { MessageHandler, SubscribeOptions } from './broker/messages/handler-subscriber.ts';
export type { MessageStreamOptions } from './broker/messages/message-stream.ts';
export type { TypedSubscriptions } from './broker/messages/typed-subscriptions.ts';
export type { AccessAnswer, AccessQuestion, AccessStep } from './broker/rights/access-explainer.ts';
export type { Answer, Answers } from './client/answers.ts';
export { Client, connectClient } from './client/client.ts';
export type { ClientListener } from './client/listeners.ts';
// under separate names: the broker has a MessageHandler and SubscribeOptions, too
export type {
  MessageHandler as ClientMessageHandler,
  SubscribeOptions as ClientSubscribeOptions
} from './client/options.ts';
export * from './client/options.ts';
export type { VerdictRecord } from './connection/verdicts.ts';
export * from './deprecated.ts';
export {
  EVENT_NAMES,
  EVENTS,
  type EventEntry,
  type EventFields,
  type EventName,
  type EventValue,
  type FieldTypes
} from './events/catalogue.ts';
export type { DecisionStep } from './events/deciders.ts';
export type { DeliveryTimeHistogram, DeliveryTimes } from './events/delivery-times.ts';
export type { ErrorCodeEntry } from './events/error-codes/row.ts';
export { ERROR_CODES } from './events/error-codes.ts';
export type * from './events/event-types.ts';
export type {
  Approval,
  AuthenticateRequest,
  AuthorizePublishRequest,
  AuthorizeSubscribeRequest,
  Awaitable,
  Challenge,
  ChangedFilter,
  DeliverRequest,
  Hook,
  HookName,
  HookOptions,
  Hooks,
  NoOpinion,
  PreConnectRequest,
  PublishRequest,
  Refusal,
  Verdict
} from './events/hooks.ts';
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
  type DisconnectReasonEntry,
  DROP_REASONS,
  type DropReason,
  type DropReasonEntry
} from './events/reasons.ts';
export type { SubscribeResult, SubscriptionOptions } from './events/subscription-options.ts';
export type { AlarmInput, Alarms } from './monitor/alarms.ts';
export type { AuditEntry, AuditInput, AuditLog, AuditOutcome, AuditQuery } from './monitor/audit.ts';
export type { BlockedClient, BlockedClients } from './monitor/blocked-clients.ts';
export type { BusiestClients, BusiestQuery, BusyClient } from './monitor/busiest-clients.ts';
export type { DropQuery, DropRecord, Drops } from './monitor/drops.ts';
export { LOG_LEVELS, type Logger, type LogLevel } from './monitor/log.ts';
export type { MetricHistory, MetricSeries } from './monitor/metric-history.ts';
export type { Monitor } from './monitor/monitor.ts';
export type { ArrivalAnswer, ArrivalQuestion } from './monitor/reasons/arrival-question.ts';
export {
  CAUSES,
  type Cause,
  type CauseCode,
  type CauseEntry,
  type CauseKind,
  type Evidence
} from './monitor/reasons/causes.ts';
export type { ReasonRecord } from './monitor/reasons/kept-record.ts';
export type { ReasonQuery, Reasons } from './monitor/reasons/reasons.ts';
export {
  type ClientChange,
  type DisconnectCode,
  type OtherCode,
  RECORDED,
  type RecordedCode,
  type RecordedCondition,
  type RecordedEntry
} from './monitor/reasons/recorded.ts';
export type {
  SlowSubscription,
  SlowSubscriptionOptions,
  SlowSubscriptionSettings,
  SlowSubscriptions
} from './monitor/slow-subscriptions.ts';
export type { StoreMetrics, StoreRecords, StoreState } from './monitor/store-metrics.ts';
export type { BusyName, TailBusiest } from './monitor/tail/busy-names.ts';
export type { Tail, TailCounts, TailPart } from './monitor/tail/tail.ts';
export type { TailRecord } from './monitor/tail/tail-row.ts';
export type { TailOptions } from './monitor/tail/tails.ts';
export type { TopicCounterName, TopicCounters, TopicCountersRecord } from './monitor/topic-counters.ts';
export type { KeptLine, KeptTraceOptions, KeptTraces } from './monitor/traces/kept-traces.ts';
export type { PacketTap } from './monitor/traces/packet-taps.ts';
export type { Trace, TraceEnd, TraceOptions } from './monitor/traces/trace.ts';
export type { TraceRecord } from './monitor/traces/trace-entry.ts';
export type { TraceFunction } from './monitor/traces/trace-output.ts';
export type { Traces } from './monitor/traces/traces.ts';
export type { Attempt } from './outbox/attempt.ts';
export type { OutboxEntry, Outcome } from './outbox/entries.ts';
export type { OutboxLimits, OutboxOptions } from './outbox/options.ts';
export type { Outbox, OutboxCounters } from './outbox/outbox.ts';
export type { Outboxes } from './outbox/outboxes.ts';
export { SendError, type SendErrorOptions } from './outbox/send-error.ts';
export type { AppMessageInput, Message, MessageInput } from './packets/message.ts';
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
export type { Dialect } from './records/record-table.ts';
export type { ConnectionTraffic, SessionCounters, SessionCounts } from './records/session-counters.ts';
export type {
  ClientRecord,
  CommonFacts,
  ConnectionFacts,
  SessionFacts,
  SessionRecord
} from './records/session-records.ts';
export type { SubscriptionRecord } from './records/subscription-record.ts';
export type { TlsFacts } from './records/transport-info.ts';
export type { Zone, ZoneInput } from './records/zone.ts';
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
export type { FoundEntry, FoundKind, SearchQuery, SearchResult } from './routing/directory-search.ts';
export type {
  DeliveryFollower,
  DeliveryStage,
  FinalStage,
  MessageFollower,
  MessageTrail,
  RoutingFollower,
  SendingConnector,
  SendingFollower
} from './routing/followers.ts';
export type { SharedStrategy } from './routing/share-group.ts';
export type { TopicLevel } from './routing/topic-level.ts';
export type {
  Decoding,
  SchemaFailure,
  SchemaIssue,
  SchemaPathPart,
  SchemaResult,
  SchemaSuccess,
  TopicSchema
} from './routing/topic-schemas.ts';
// the actions of a rule in their stored form
export type { ActionDefinition, ResourceDefinition, RuleDefinition } from './rules/definition.ts';
export type { RuleEventName } from './rules/events/event-name.ts';
export type {
  ActionCounters,
  ActionGiven,
  ActionInfo,
  ActionInput,
  ActionState,
  ResourceChange,
  ResourceInput,
  ResourceState,
  ResourcesApi,
  ResourceTypeInfo,
  RuleChange,
  RuleCounters,
  RuleErrorSample,
  RuleEvent,
  RuleEventInfo,
  RuleFunction,
  RuleFunctionInfo,
  RuleInput,
  RuleInputSample,
  RuleOutput,
  RuleOutputSample,
  RuleQuery,
  RuleRejectedSample,
  RuleSample,
  RuleSamples,
  RuleState,
  RulesApi,
  RulesOptions,
  RuleTest,
  RuleValidation
} from './rules/types.ts';
export type { InFlightMessage, QueuedMessage, QueuePage, SessionFlights } from './session/messages/queue-view.ts';
export { decodeJson, encodeJson } from './sql/json.ts';
export { SqlError, SqlFailure, type StatementError } from './sql/sql-error.ts';
export { Float, type ObjectWith, type Value, type ValueObject, type ValueWith } from './sql/values.ts';
export { memoryStore } from './store/memory-store.ts';
export type {
  Ruleset,
  StreamConfigApi,
  StreamConfigEntry,
  StreamConfigKey,
  StreamConfigKind,
  StreamConfigState,
  StreamConfigUse,
  StreamRule,
  StreamRulesApi,
  StreamsApi
} from './streams/api.ts';
export type { StreamRuleCode } from './streams/rule-states.ts';
export type {
  ActionInput as StreamActionInput,
  Column as StreamColumn,
  ColumnType as StreamColumnType,
  EmissionFunction,
  FirstMessage,
  PlanNode,
  Properties as StreamProperties,
  RestartStrategy,
  RuleOptions as StreamRuleOptions,
  StatusText,
  StreamBounds,
  StreamDefinition,
  StreamErrorSample,
  StreamInputSample,
  StreamKind,
  StreamOutputSample,
  StreamRejectedSample,
  StreamRuleDefinition,
  StreamRuleInput,
  StreamRuleSamples,
  StreamRuleStatus,
  StreamRuleSummary,
  StreamRuleTest,
  StreamStatementValidation,
  StreamsOptions,
  TestRow,
  Topology,
  Validation
} from './streams/types.ts';
export { StreamFailure, type StreamValue, type StreamValueObject } from './streams/values/values.ts';
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
