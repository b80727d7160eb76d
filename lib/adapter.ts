/// <reference types="node" preserve="true" />
/** Names for authors of stores, sources, sinks, listeners and sources of authentication: `embermq/adapter`. */

export { parseAclFile } from './access/acl-file.ts';
export { type LoginAttempt, LoginLimit } from './access/login-limit.ts';
export { contains, isNetwork, loginSourceOf, type Network, networkOf } from './access/network.ts';
export {
  type ForeignCheck,
  type ForeignChecks,
  foreignFormatOf,
  type PasswordCheck,
  passwordCheckOf
} from './access/password-hash.ts';
export { checkAccessRules, decideByRules } from './access/rule.ts';
export {
  formatScram,
  parseScram,
  type ScramCredentials,
  type ScramMethod,
  scramCredentialsOf
} from './access/scram.ts';
export { authenticateByScram, type ScramLookup } from './access/scram-login.ts';
export type { AuthSource, SourceContext } from './access/source.ts';
export { isCausedByPeer } from './base/errors.ts';
export {
  type Defaulted,
  type DocumentedParam,
  documentedName,
  durationMs,
  type Field,
  type FieldTable,
  type FieldType,
  field,
  fieldsOf,
  type GivenField,
  type GivenTable,
  isPlainObject,
  type JsonType,
  jsonTypeOf,
  type Localized,
  nearest,
  optionName,
  type ParamTable,
  parseDuration,
  parseSize,
  readOptions,
  unknownKey,
  type Values as FieldValues
} from './base/fields.ts';
export { isSecretByName, shownText, shownUrl } from './base/hidden-text.ts';
export { Newcomers } from './base/newcomers.ts';
export { INSPECT } from './base/symbols.ts';
export { bridgeAccessOf } from './broker/broker.ts';
export { checkBroker } from './broker/check-broker.ts';
export { checkConnectorName } from './broker/configuration/connector-name.ts';
export type { ConnectorKind, ConnectorSettings, Inflow } from './broker/configuration/connectors.ts';
export { readBrokerOptions } from './broker/configuration/option-reading.ts';
export { BROKER_OPTIONS } from './broker/configuration/options.ts';
export { settingText } from './broker/configuration/setting-text.ts';
export type { BridgeAccess, BridgeLimits } from './broker/rights/bridge-access.ts';
export { BRIDGE_PREFIX } from './broker/rights/bridge-access.ts';
export { ClientSession, type Outgoing } from './client/session.ts';
export { EVENT_ABOUT } from './events/event-texts.ts';
export { COUNTER_ABOUT, GAUGE_ABOUT, PLAIN_GAUGE_ABOUT } from './events/metric-texts.ts';
export { LOG_ROWS, type LogEntry } from './monitor/log.ts';
export { HISTORY_METRICS } from './monitor/metric-history.ts';
export { dateTimeText, SYSTEM_DESCRIPTION, uptimeText } from './monitor/sys.ts';
export { TOPIC_COUNTERS } from './monitor/topic-counters.ts';
export { type PayloadForm, payloadFields } from './monitor/traces/trace-fields.ts';
export { OUTBOX_OPTIONS } from './outbox/options.ts';
export { CONNECT_REFUSALS, type ConnectRefusalEntry } from './packets/connect-refusals.ts';
export { encode } from './packets/encode.ts';
export { type RuleReference, ruleBehind } from './packets/named-publisher.ts';
export { PacketReader } from './packets/packet-reader.ts';
export type {
  CountedStream,
  GatheringStream,
  ListenerAddress,
  ListenerCounters,
  ListenerHandle,
  ListenerProtocol
} from './records/listener.ts';
export { placeOf } from './records/listener.ts';
export { listenerText } from './records/listener-text.ts';
export { recordNames } from './records/record-names.ts';
export { shownUsername } from './records/shown-username.ts';
export { plainAddress, verifiedCertificate } from './records/transport-info.ts';
export { type Given as GivenOptions, type GivenValue, ZONE_OPTIONS } from './records/zone.ts';
export { FOUND_KINDS } from './routing/directory-search.ts';
export { messageProperties } from './rules/events/properties.ts';
export { compileBytes, compilePayload, compileTemplate, compileTopic } from './rules/template.ts';
export type {
  ActionContext,
  ActionTarget,
  ActionType,
  LocalAction,
  Params,
  Resource,
  ResourceContext,
  ResourceEntry,
  ResourceType,
  SendingAction
} from './rules/types.ts';
export type {
  FunctionFields,
  FunctionTools,
  Parameter,
  ParameterType,
  Pattern,
  SqlFunction
} from './sql/functions/function.ts';
export { FORMAT_KEY, type FormatRecord, IMPORT_MARK, readFormat } from './store/commits.ts';
export { DEFINITIONS_VERSION, FORMAT } from './store/keys.ts';
export { Batch, type Entry, type Store, type StoreSnapshot } from './store/store.ts';
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
  ScalarFunction as StreamScalarFunction,
  StreamFunction,
  StreamFunctionTools,
  StreamParameter,
  StreamParameterType,
  StreamPattern
} from './streams/function.ts';
export type {
  LookupSetup,
  NotedStream,
  OpenLookup,
  OpenSink,
  OpenSource,
  SinkItem,
  SinkSetup,
  SinkType,
  SourceNotes,
  SourceSetup,
  SourceType,
  TidySetup
} from './streams/types.ts';
export type { Cause as StreamCause } from './streams/values/cause.ts';
export type {
  Frame as StreamFrame,
  Metadata as StreamMetadata,
  Tuple as StreamTuple,
  WindowRange
} from './streams/values/tuple.ts';
export { plain as plainValue } from './streams/values/values.ts';
export type { Target, TargetLimits } from './targets/target.ts';
