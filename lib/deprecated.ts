/** Names that `embermq` exports for one more version. Each tag says what replaces the name; CHANGELOG.md lists them. */

export {
  /** @deprecated Import it from `embermq/adapter`. */
  parseAclFile
} from './access/acl-file.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  type LoginAttempt,
  /** @deprecated Import it from `embermq/adapter`. */
  LoginLimit
} from './access/login-limit.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  contains,
  /** @deprecated Import it from `embermq/adapter`. */
  isNetwork,
  /** @deprecated Import it from `embermq/adapter`. */
  loginSourceOf,
  /** @deprecated Import it from `embermq/adapter`. */
  type Network,
  /** @deprecated Import it from `embermq/adapter`. */
  networkOf
} from './access/network.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  type ForeignCheck,
  /** @deprecated Import it from `embermq/adapter`. */
  type ForeignChecks,
  /** @deprecated Import it from `embermq/adapter`. */
  foreignFormatOf,
  /** @deprecated Import it from `embermq/adapter`. */
  type PasswordCheck,
  /** @deprecated Import it from `embermq/adapter`. */
  passwordCheckOf
} from './access/password-hash.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  checkAccessRules,
  /** @deprecated Import it from `embermq/adapter`. */
  decideByRules
} from './access/rule.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  formatScram,
  /** @deprecated Import it from `embermq/adapter`. */
  parseScram,
  /** @deprecated Import it from `embermq/adapter`. */
  type ScramCredentials,
  /** @deprecated Import it from `embermq/adapter`. */
  type ScramMethod,
  /** @deprecated Import it from `embermq/adapter`. */
  scramCredentialsOf
} from './access/scram.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  authenticateByScram,
  /** @deprecated Import it from `embermq/adapter`. */
  type ScramLookup
} from './access/scram-login.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  AuthSource,
  /** @deprecated Import it from `embermq/adapter`. */
  SourceContext
} from './access/source.ts';
export type {
  /** @deprecated Use `ActorObserver`. */
  ActorObserver as ReplayObserver,
  /** @deprecated Use `ActorRef`. */
  ActorRef as ActorView,
  /** @deprecated Use `ActorSnapshot`. */
  ActorSnapshot as ReplaySnapshot
} from './base/actor.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  isCausedByPeer
} from './base/errors.ts';
export {
  /** @deprecated Use `DocumentedParam` of `embermq/adapter`. */
  type DocumentedParam as ParamRow,
  /** @deprecated Import it from `embermq/adapter`. */
  documentedName,
  /** @deprecated Import it from `embermq/adapter`. */
  durationMs,
  /** @deprecated Import it from `embermq/adapter`. */
  type Localized,
  /** @deprecated Import it from `embermq/adapter`. */
  nearest,
  /** @deprecated Use `Field` of `embermq/adapter`. */
  type OptionRow,
  /** @deprecated Use `FieldTable` of `embermq/adapter`. */
  type OptionTable,
  /** @deprecated Import it from `embermq/adapter`. */
  optionName,
  /** @deprecated Use `field` of `embermq/adapter`. */
  optionRow,
  /** @deprecated Import it from `embermq/adapter`. */
  type ParamTable,
  /** @deprecated Use `Field` of `embermq/adapter`. */
  type PropertyRow,
  /** @deprecated Use `FieldTable` of `embermq/adapter`. */
  type PropertyTable,
  /** @deprecated Import it from `embermq/adapter`. */
  parseDuration,
  /** @deprecated Import it from `embermq/adapter`. */
  parseSize,
  /** @deprecated Import it from `embermq/adapter`. */
  readOptions,
  /** @deprecated Import it from `embermq/adapter`. */
  unknownKey,
  /** @deprecated Use `FieldValues` of `embermq/adapter`. */
  type Values as OptionValues
} from './base/fields.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  shownUrl
} from './base/hidden-text.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  Newcomers
} from './base/newcomers.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  bridgeAccessOf
} from './broker/broker.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  checkBroker
} from './broker/check-broker.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  checkConnectorName
} from './broker/configuration/connector-name.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  ConnectorKind,
  /** @deprecated Import it from `embermq/adapter`. */
  ConnectorSettings
} from './broker/configuration/connectors.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  readBrokerOptions
} from './broker/configuration/option-reading.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  BROKER_OPTIONS
} from './broker/configuration/options.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  settingText
} from './broker/configuration/setting-text.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  BridgeAccess,
  /** @deprecated Import it from `embermq/adapter`. */
  BridgeLimits
} from './broker/rights/bridge-access.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  BRIDGE_PREFIX
} from './broker/rights/bridge-access.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  ClientSession,
  /** @deprecated Import it from `embermq/adapter`. */
  type Outgoing
} from './client/session.ts';
export type {
  /** @deprecated Use `EventEntry`. */
  EventEntry as EventRow
} from './events/catalogue.ts';
export type {
  /** @deprecated Use `ErrorCodeEntry`. */
  ErrorCodeEntry as ErrorCodeRow
} from './events/error-codes/row.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  EVENT_ABOUT
} from './events/event-texts.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  COUNTER_ABOUT,
  /** @deprecated Import it from `embermq/adapter`. */
  GAUGE_ABOUT,
  /** @deprecated Import it from `embermq/adapter`. */
  PLAIN_GAUGE_ABOUT
} from './events/metric-texts.ts';
export type {
  /** @deprecated Use `DisconnectReasonEntry`. */
  DisconnectReasonEntry as DisconnectRow,
  /** @deprecated Use `DropReasonEntry`. */
  DropReasonEntry as DropRow
} from './events/reasons.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  LOG_ROWS,
  /** @deprecated Use `LogEntry` of `embermq/adapter`. */
  type LogEntry as LogRow
} from './monitor/log.ts';
export type {
  /** @deprecated Use `MetricHistory`. */
  MetricHistory as Figures,
  /** @deprecated Use `MetricSeries`. */
  MetricSeries as FigureSeries
} from './monitor/metric-history.ts';
export {
  /** @deprecated Use `HISTORY_METRICS` of `embermq/adapter`. */
  HISTORY_METRICS as FIGURE_NAMES
} from './monitor/metric-history.ts';
export type {
  /** @deprecated Use `StoreMetrics`. */
  StoreMetrics as StoreFigures
} from './monitor/store-metrics.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  dateTimeText,
  /** @deprecated Import it from `embermq/adapter`. */
  SYSTEM_DESCRIPTION,
  /** @deprecated Import it from `embermq/adapter`. */
  uptimeText
} from './monitor/sys.ts';
export type {
  /** @deprecated Use `TopicCounters`. */
  TopicCounters as TopicFigures,
  /** @deprecated Use `TopicCountersRecord`. */
  TopicCountersRecord as TopicFiguresRecord
} from './monitor/topic-counters.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  TOPIC_COUNTERS
} from './monitor/topic-counters.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  type PayloadForm,
  /** @deprecated Import it from `embermq/adapter`. */
  payloadFields
} from './monitor/traces/trace-fields.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  OUTBOX_OPTIONS
} from './outbox/options.ts';
export type {
  /** @deprecated Use `OutboxCounters`. */
  OutboxCounters as OutboxFigures
} from './outbox/outbox.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  CONNECT_REFUSALS,
  /** @deprecated Use `ConnectRefusalEntry` of `embermq/adapter`. */
  type ConnectRefusalEntry as ConnectRefusalRow
} from './packets/connect-refusals.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  encode
} from './packets/encode.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  PacketReader
} from './packets/packet-reader.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  CountedStream,
  /** @deprecated Import it from `embermq/adapter`. */
  GatheringStream,
  /** @deprecated Import it from `embermq/adapter`. */
  ListenerAddress,
  /** @deprecated Use `ListenerCounters` of `embermq/adapter`. */
  ListenerCounters as ListenerFigures,
  /** @deprecated Import it from `embermq/adapter`. */
  ListenerHandle,
  /** @deprecated Import it from `embermq/adapter`. */
  ListenerProtocol
} from './records/listener.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  recordNames
} from './records/record-names.ts';
export type {
  /** @deprecated Use `SessionCounters`. */
  SessionCounters as SessionFigures
} from './records/session-counters.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  shownUsername
} from './records/shown-username.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  plainAddress,
  /** @deprecated Import it from `embermq/adapter`. */
  verifiedCertificate
} from './records/transport-info.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  type Given as GivenOptions,
  /** @deprecated Import it from `embermq/adapter`. */
  ZONE_OPTIONS
} from './records/zone.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  messageProperties
} from './rules/events/properties.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  compileBytes,
  /** @deprecated Import it from `embermq/adapter`. */
  compilePayload,
  /** @deprecated Import it from `embermq/adapter`. */
  compileTemplate,
  /** @deprecated Import it from `embermq/adapter`. */
  compileTopic
} from './rules/template.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  ActionContext,
  /** @deprecated Use `ActionCounters`. */
  ActionCounters as ActionFigures,
  /** @deprecated Import it from `embermq/adapter`. */
  ActionType,
  /** @deprecated Import it from `embermq/adapter`. */
  LocalAction,
  /** @deprecated Import it from `embermq/adapter`. */
  Params,
  /** @deprecated Import it from `embermq/adapter`. */
  Resource,
  /** @deprecated Import it from `embermq/adapter`. */
  ResourceContext,
  /** @deprecated Import it from `embermq/adapter`. */
  ResourceEntry,
  /** @deprecated Import it from `embermq/adapter`. */
  ResourceType,
  /** @deprecated Use `RuleCounters`. */
  RuleCounters as RuleFigures,
  /** @deprecated Import it from `embermq/adapter`. */
  SendingAction
} from './rules/types.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  FunctionTools,
  /** @deprecated Import it from `embermq/adapter`. */
  Parameter,
  /** @deprecated Import it from `embermq/adapter`. */
  ParameterType,
  /** @deprecated Import it from `embermq/adapter`. */
  Pattern,
  /** @deprecated Import it from `embermq/adapter`. */
  SqlFunction
} from './sql/functions/function.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  Batch,
  /** @deprecated Import it from `embermq/adapter`. */
  type Entry,
  /** @deprecated Import it from `embermq/adapter`. */
  type Store,
  /** @deprecated Import it from `embermq/adapter`. */
  type StoreSnapshot
} from './store/store.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  describeJson as describeStream,
  /** @deprecated Import it from `embermq/adapter`. */
  describeText as describeStreamText
} from './streams/ddl/describe.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  Format as StreamFormatCodec,
  /** @deprecated Import it from `embermq/adapter`. */
  FormatSetup as StreamFormatSetup,
  /** @deprecated Import it from `embermq/adapter`. */
  FormatType as StreamFormatType,
  /** @deprecated Import it from `embermq/adapter`. */
  StreamFormat
} from './streams/format.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  splitFields as splitDelimited
} from './streams/formats/delimited.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  parseJson as parseStreamJson
} from './streams/formats/json.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  jsonText as streamJson
} from './streams/formats/json-text.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  Accumulator as StreamAccumulator,
  /** @deprecated Import it from `embermq/adapter`. */
  AggregateFunction as StreamAggregateFunction,
  /** @deprecated Import it from `embermq/adapter`. */
  AnalyticFunction as StreamAnalyticFunction,
  /** @deprecated Import it from `embermq/adapter`. */
  AnalyticState as StreamAnalyticState,
  /** @deprecated Import it from `embermq/adapter`. */
  ArgumentNames as StreamArgumentNames,
  /** @deprecated Import it from `embermq/adapter`. */
  ContextFunction as StreamContextFunction,
  /** @deprecated Import it from `embermq/adapter`. */
  ExpandingFunction as StreamExpandingFunction,
  /** @deprecated Import it from `embermq/adapter`. */
  ExpandingState as StreamExpandingState,
  /** @deprecated Import it from `embermq/adapter`. */
  FunctionBase as StreamFunctionBase,
  /** @deprecated Import it from `embermq/adapter`. */
  ScalarFunction as StreamScalarFunction,
  /** @deprecated Import it from `embermq/adapter`. */
  StreamFunction,
  /** @deprecated Import it from `embermq/adapter`. */
  StreamFunctionTools,
  /** @deprecated Import it from `embermq/adapter`. */
  StreamParameter,
  /** @deprecated Import it from `embermq/adapter`. */
  StreamParameterType,
  /** @deprecated Import it from `embermq/adapter`. */
  StreamPattern
} from './streams/function.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  LookupSetup,
  /** @deprecated Import it from `embermq/adapter`. */
  NotedStream,
  /** @deprecated Import it from `embermq/adapter`. */
  OpenLookup,
  /** @deprecated Import it from `embermq/adapter`. */
  OpenSink,
  /** @deprecated Import it from `embermq/adapter`. */
  OpenSource,
  /** @deprecated Import it from `embermq/adapter`. */
  SinkItem,
  /** @deprecated Import it from `embermq/adapter`. */
  SinkSetup,
  /** @deprecated Import it from `embermq/adapter`. */
  SinkType,
  /** @deprecated Import it from `embermq/adapter`. */
  SourceNotes,
  /** @deprecated Import it from `embermq/adapter`. */
  SourceSetup,
  /** @deprecated Import it from `embermq/adapter`. */
  SourceType,
  /** @deprecated Import it from `embermq/adapter`. */
  TidySetup
} from './streams/types.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  Cause as StreamCause
} from './streams/values/cause.ts';
export type {
  /** @deprecated Import it from `embermq/adapter`. */
  Frame as StreamFrame,
  /** @deprecated Import it from `embermq/adapter`. */
  Metadata as StreamMetadata,
  /** @deprecated Import it from `embermq/adapter`. */
  Tuple as StreamTuple,
  /** @deprecated Import it from `embermq/adapter`. */
  WindowRange
} from './streams/values/tuple.ts';
export {
  /** @deprecated Import it from `embermq/adapter`. */
  plain as plainValue
} from './streams/values/values.ts';
