// Public types: apps and plugins write sources, sinks and functions against them. A member that is added to a type
// which others implement must be optional. A `Field` describes a property of sources and sinks for checks and
// documents; a secret is marked there and is never shown. Texts of the status have the wording of the documented
// interface.

import type { Clock } from '../base/clock.ts';
import type { GivenTable } from '../base/fields.ts';
import type { Awaitable } from '../events/hooks.ts';
import type { StatementError } from '../sql/sql-error.ts';
import type { Target } from '../targets/target.ts';
import type { FormatType, StreamFormat } from './format.ts';
import type { StreamFunction } from './function.ts';
import type { StreamRuleCode } from './rule-states.ts';
import type { Cause } from './values/cause.ts';
import type { Metadata } from './values/tuple.ts';
import type { StreamValue, StreamValueObject } from './values/values.ts';

/** Properties of a source or a sink, as they were given. */
export type Properties = Readonly<Record<string, unknown>>;

/** A source type, such as `mqtt`: the option TYPE of a stream. */
export interface SourceType {
  /** The name, the option TYPE of streams. */
  readonly name: string;
  /** The description. */
  readonly about: string;
  /** If absent, the properties are not checked. */
  readonly properties?: GivenTable;
  /**
   * Sections of properties that belong to the type. Sections of the same name in the option `sourceConfig` override
   * them.
   */
  readonly sections?: Readonly<Record<string, Properties>>;
  /**
   * Set if the source produces a finite number of rows and then calls `end`: a table then has all of its rows. Default
   * false.
   */
  readonly isBatch?: true;
  /** Default: `stream` and `table`. */
  readonly for?: readonly ('stream' | 'table' | 'lookup')[];
  /**
   * Begin to produce rows. May resolve before a connection is established.
   * @throws the reason why the source cannot be used at all
   */
  open?(setup: SourceSetup): Awaitable<OpenSource>;
  /** Find rows by the values of keys, for lookup tables. */
  openLookup?(setup: LookupSetup): Awaitable<OpenLookup>;
  /**
   * Called when streams or rules have changed, or when the service has started: remove state on other servers that no
   * stream needs any longer. The notes record this state. Called often; calls may overlap. Absent if there is no state
   * on other servers.
   */
  tidy?(setup: TidySetup): Awaitable<void>;
}

/** The argument of `SourceType.tidy`. */
export interface TidySetup extends Pick<SourceSetup, 'dataDir' | 'clock' | 'node' | 'notes' | 'warn'> {
  /** Aborts when the service stops. The remaining work is done after the next start. */
  readonly signal: AbortSignal;
  /** The stream to which a place belongs (`SourceSetup.place`). */
  stream(place: string): NotedStream;
}

/** A stream to which a note refers. */
export interface NotedStream extends Pick<SourceSetup, 'stream' | 'isKept'> {
  /** As in `SourceSetup`. @throws InvalidInput PROPERTY_INVALID if they can no longer be read */
  readonly properties: Properties;
  /** False if the stream was dropped or reads from another place. */
  readonly isDefined: boolean;
}

/**
 * Strings that a source type keeps in the store of the broker or, without a store, in memory. A change takes effect
 * immediately, and is committed with the rows that are given in the same turn of the event loop. If the commit fails,
 * it is undone.
 */
export interface SourceNotes extends Iterable<readonly [key: string, value: string]> {
  /** The note of a key; undefined if there is none. */
  get(key: string): string | undefined;
  /** Resolves when the note is committed. @throws BrokerError STORE_FAILED */
  set(key: string, value: string): Promise<void>;
  /** Resolves when the deletion is committed. @throws BrokerError STORE_FAILED */
  delete(key: string): Promise<boolean>;
}

/** The argument of `SourceType.open`. */
export interface SourceSetup {
  /** Name of the stream. */
  readonly stream: string;
  /** The option DATASOURCE: a topic filter, a path, a URL. */
  readonly datasource: string;
  /**
   * The properties of the section that CONF_KEY names, merged over those of `default`; they satisfy the table of the
   * type.
   */
  readonly properties: Properties;
  /** Folder for files of this service; undefined if there is none. */
  readonly dataDir: string | undefined;
  /** The clock of the broker. */
  readonly clock: Clock;
  /** Name of the broker node, the option `node`. */
  readonly node: string;
  /**
   * True if a rule with `qos` above 0 reads the stream, whether it is running or not, and the broker has a store.
   * Changes with the rules.
   */
  readonly isKept: boolean;
  /**
   * Resolves when the rules that are being started are ready, or when the source is being closed. A source with
   * acknowledgements reads only after that, so that none of these rules misses rows that it acknowledges.
   */
  ready(): Promise<void>;
  /** Notes of all sources of this type. */
  readonly notes: SourceNotes;
  /** Identifies, in notes, the stream and the place that it reads from: `TidySetup.stream` finds it. */
  readonly place: string;
  /**
   * Pass rows, and learn when rules with `qos` above 0 have committed them, so that their origin can be acknowledged.
   * @param give calls `bytes` or `row`. Called immediately or, after earlier calls, when each rule has room and none is
   *   being replaced
   * @throws BrokerError STORE_FAILED; SOURCE_CLOSED if no rule takes the rows, which must be given again; errors of
   *   `give`
   */
  kept(give: () => void): Promise<void>;
  /**
   * Pass bytes that have arrived. They are decoded by the FORMAT of the stream to one or more rows. The bytes may
   * change after this method has returned and the turn of the event loop has ended.
   * @param timestamp time of arrival, in milliseconds since 1970; default: now
   * @param cause ids of the rules of this broker that caused the bytes, first one first; default: none
   */
  bytes(payload: Uint8Array, metadata?: Metadata, timestamp?: number, cause?: Cause): void;
  /**
   * Pass a row that needs no decoding. Its numbers are floats, its bigints integers. The object must not be changed
   * afterwards.
   */
  row(values: StreamValueObject, metadata?: Metadata, timestamp?: number, cause?: Cause): void;
  /** Signal that the source has produced all of its rows: a table is complete. */
  end(): void;
  /** Report that the connection is established. */
  connected(): void;
  /**
   * Report that the connection is lost or cannot be established; the source reconnects on its own. The status of the
   * rule shows the reason.
   */
  disconnected(reason: unknown): void;
  /**
   * Report input that could not be read. It is counted as an exception, and sent to the sinks if the rule is configured
   * to.
   */
  failed(reason: unknown): void;
  /** Report a condition that an operator should know, although the source works. */
  warn(text: string): void;
  /** True if rows would be dropped at present because a rule is slow. A source that can wait should do so. */
  readonly isFull: boolean;
  /** Call a function when there is room again. */
  whenRoom(run: () => void): void;
}

/** A source that is open, as `SourceType.open` returns it. */
export interface OpenSource {
  /** Stop producing rows, and release everything. */
  close(): Awaitable<void>;
  /** Called when rules have changed, and `isKept` may have. */
  changed?(): void;
  /**
   * Messages for each rule when it starts, before all other rows, and for a table when it is opened: such as retained
   * messages. A rule that continues from a checkpoint does not receive them. Absent if there are none.
   * @returns an iterator over the messages, in steps of at most a few milliseconds; undefined means that a step of the
   *   search has found none, and the search continues
   */
  first?(): Iterator<FirstMessage | undefined, void>;
}

/**
 * A message that a source already has when a rule starts; see the parameters of `SourceSetup.bytes`. Its time is when
 * the rule receives it.
 */
export interface FirstMessage {
  /** The payload, which is decoded by the FORMAT of the stream. */
  readonly payload: Uint8Array;
  /** The metadata of the message. Default: none. */
  readonly metadata?: Metadata;
  /** Ids of the rules of this broker that caused the message. Default: none. */
  readonly cause?: Cause | undefined;
}

/** The argument of `SourceType.openLookup`. */
export interface LookupSetup extends Pick<SourceSetup, 'stream' | 'datasource' | 'properties' | 'dataDir' | 'clock'> {
  /** The columns that the statement uses. */
  readonly columns: readonly string[];
  /** The option KEY of the table. */
  readonly key: string | undefined;
}

/** A lookup table that is open, as `SourceType.openLookup` returns it. */
export interface OpenLookup {
  /** Find the rows whose columns have these values. @throws the reason why they cannot be found */
  find(keys: readonly string[], values: readonly StreamValue[]): Awaitable<readonly StreamValueObject[]>;
  /** Release everything. */
  close(): Awaitable<void>;
}

/** A sink type, such as `mqtt`: the key of an action. */
export interface SinkType {
  /** The name, the key of an action. */
  readonly name: string;
  /** The description. */
  readonly about: string;
  /** The properties of the type; the common ones are added. If absent, they are not checked. */
  readonly properties?: GivenTable;
  /**
   * Begin to accept outputs. May resolve before a connection is established.
   * @throws the reason why the sink cannot be used at all
   */
  open(setup: SinkSetup): Awaitable<OpenSink>;
}

/** The argument of `SinkType.open`. */
export interface SinkSetup {
  /** The id of the rule. */
  readonly ruleId: string;
  /** Identifies the rule among the causes of messages. Default: `ruleId`. @internal */
  readonly causeId?: string;
  /** Index of the action, from 0. */
  readonly index: number;
  /** The properties of the action, with defaults filled in. */
  readonly properties: Properties;
  /** Folder for files of this service; undefined if there is none. */
  readonly dataDir: string | undefined;
  /** The clock of the broker. */
  readonly clock: Clock;
  /** Report that the connection is established. */
  connected(): void;
  /** Report that the connection is lost or cannot be established. The status of the rule shows the reason. */
  disconnected(reason: unknown): void;
  /** Write a line to the log of the service. */
  log(text: string): void;
  /** Report a condition that an operator should know, although the sink works. */
  warn(text: string): void;
}

/** An item that a sink sends. */
export interface SinkItem {
  /**
   * The rows of an emission, or one row (`sendSingle`), as plain values; with a template, the resulting string. Bytes
   * if already encoded by a binary format.
   */
  readonly value: unknown;
  /** `value` as bytes in the format of the sink: JSON by default. Encoded at the first use. */
  readonly bytes: Buffer;
  /**
   * `bytes` as text, for a sink that encodes text itself, which is cheaper. Created at each use. Absent or undefined
   * for an item of the cache, and for bytes that are not text.
   */
  readonly text?: string | undefined;
  /** The value of a property; a template is filled in for this item. @throws StreamFailure */
  property(name: string): unknown;
  /** An id that is the same for each attempt to send the item. */
  readonly id: string;
  /** The ids of the rules of this broker that caused it, first one first. Absent or undefined if there are none. */
  readonly cause?: Cause | undefined;
}

/** The target of a sink. The attempt to send an item fails if `send` throws or rejects; the common properties decide about retries. */
export interface OpenSink extends Omit<Target<SinkItem>, 'check'> {
  /**
   * Send an item. Returns, or resolves, when the target has what was sent.
   * @throws if the item should be sent again; `SendError` can be more specific
   */
  send(item: SinkItem): Awaitable<void>;
}

/** An action that is a function of the app, called with the rows of each emission. */
export type EmissionFunction = (rows: readonly Record<string, unknown>[]) => unknown;

/**
 * An element of `actions`: an object with the type of the sink as its only key and the properties as its value; or a
 * function.
 */
export type ActionInput = Readonly<Record<string, Properties>> | EmissionFunction;

/** The options of a rule. */
export interface RuleOptions {
  /** Use the column TIMESTAMP of the streams as time. Default false. */
  readonly isEventTime: boolean;
  /** Maximum delay of rows behind the latest one, in milliseconds. Default 1000. */
  readonly lateTolerance: number;
  /**
   * Time without rows, in milliseconds, after which a stream of a join in event time no longer holds back the others.
   * The status counts such streams as `idle_streams`. Default 0: never.
   */
  readonly idleTimeout: number;
  /** Accepted for compatibility: operators run one item after the other. Default 1. */
  readonly concurrency: number;
  /** Maximum number of items that wait in front of a busy rule. Default 1024. */
  readonly bufferLength: number;
  /** Add the metadata of rows to outputs, as `__meta`. Default false. */
  readonly sendMetaToSink: boolean;
  /** Send errors of rows to the sinks, as `[{"error": "..."}]`. Default true. */
  readonly sendError: boolean;
  /** 0: at most once, 1: at least once, 2: exactly once. Default 0. */
  readonly qos: 0 | 1 | 2;
  /** Milliseconds between checkpoints. Default 300000; 1000 with qos 2. */
  readonly checkpointInterval: number;
  /** Restart strategy for a rule that has failed. */
  readonly restartStrategy: RestartStrategy;
  /** Cron expression for the times at which the rule runs. Default: always. */
  readonly cron: string;
  /** Duration of each run, such as `10m`. Default: until it is stopped. */
  readonly duration: string;
  /** Times outside of which the rule does not run: a list of `{ begin, end }`. Default: none. */
  readonly cronDatetimeRange: readonly {
    /** The beginning, a date and time that `Date.parse` reads. */
    readonly begin: string;
    /** The end, a date and time that `Date.parse` reads. */
    readonly end: string;
  }[];
  /** Output null for columns without a value, instead of omitting them. Default false. */
  readonly sendNilField: boolean;
  /** Emit windows without rows, too. Default false. */
  readonly emitEmptyWindows: boolean;
  /**
   * `clock`: windows end at multiples of their length; `start`: windows are counted from the start of the rule. Default
   * `clock`.
   */
  readonly windowAlign: 'clock' | 'start';
  /** `merged`: one row with the first match, as in the original; `pairs`: a row for each pair. Default `merged`. */
  readonly joinRows: 'merged' | 'pairs';
  /** Treat whole numbers of streams without a schema as integers. Default false: they are floats. */
  readonly schemalessIntegers: boolean;
  /** Accepted for compatibility, without effect. */
  readonly debug: boolean;
  /** Accepted for compatibility, without effect. */
  readonly logFilename: string;
}

/** Restart strategy for a rule that has failed. */
export interface RestartStrategy {
  /** Maximum number of attempts; 0: none. Default 0. */
  readonly attempts: number;
  /** Delay before the first attempt, in milliseconds. Default 1000. */
  readonly delay: number;
  /** Factor between successive delays. Default 2. */
  readonly multiplier: number;
  /** Maximum delay in milliseconds. Default 30000. */
  readonly maxDelay: number;
  /** Fraction by which delays vary. Default 0.1. */
  readonly jitterFactor: number;
}

/** A stream rule, as given. */
export interface StreamRuleInput {
  /** Default: a random id. */
  readonly id?: string;
  /** The statement, one SELECT. */
  readonly sql: string;
  /** The sinks: objects with one key, the sink type, or functions of the app. Default: none. */
  readonly actions?: readonly ActionInput[];
  /** Options of the rule. Default: those of the service. */
  readonly options?: Partial<RuleOptions>;
  /** Start the rule. Default true. */
  readonly triggered?: boolean;
  /** A display name. */
  readonly name?: string;
  /** A version for people. */
  readonly version?: string;
  /** Words for finding rules. Default: none. */
  readonly tags?: readonly string[];
  /** Do not persist the rule. Default false; a rule with a function as an action is never persisted. */
  readonly temp?: boolean;
}

/** A rule as defined. */
export interface StreamRuleDefinition {
  /** The id of the rule. */
  readonly id: string;
  /** The statement. */
  readonly sql: string;
  /** Without functions of the app, and with `******` for secrets. */
  readonly actions: readonly Readonly<Record<string, Properties>>[];
  /** All options, with their defaults. */
  readonly options: RuleOptions;
  /** True if it runs after a start of the service. */
  readonly triggered: boolean;
  /** A display name; may be empty. */
  readonly name: string;
  /** A version for people; may be empty. */
  readonly version: string;
  /** Words for finding rules. */
  readonly tags: readonly string[];
  /** Of `create` and `update`: a sentence for each property of an action that has no effect; absent if there is none. */
  readonly warnings?: readonly string[];
}

/** `Running` or `Stopped: REASON`. */
export type StatusText = string;

/** An entry of the list of rules. */
export interface StreamRuleSummary {
  /** The id of the rule. */
  readonly id: string;
  /** A display name; may be empty. */
  readonly name: string;
  /** `Running` or `Stopped: REASON`. */
  readonly status: StatusText;
  /** A version for people; may be empty. */
  readonly version: string;
  /** Words for finding rules. */
  readonly tags: readonly string[];
}

/** The status of a stream rule. */
export interface StreamRuleStatus {
  /** State of the rule's chart. */
  readonly state: 'idle' | 'connected' | 'disconnected';
  /** The state with the kind of its reason, for programs. `text` is for people. */
  readonly code: StreamRuleCode;
  /** `Running` or `Stopped: REASON`. */
  readonly text: StatusText;
  /** In milliseconds since 1970; 0: never. */
  readonly startedAt: number;
  /** Time of the last stop, in milliseconds since 1970; 0: never. */
  readonly stoppedAt: number;
  /** Time of the next start by the schedule or the restart strategy, in milliseconds since 1970; 0: none. */
  readonly nextStartAt: number;
  /** Time of the last sample, in milliseconds since 1970; 0: there is none. While it is the same, so are the samples. */
  readonly sampledAt: number;
  /**
   * The counters of its nodes by `KIND_NAME_INDEX_METRIC`, in the order of the plan; empty if the rule is not running.
   */
  readonly metrics: Readonly<Record<string, number | string>>;
}

/** The nodes of a rule with their successors. */
export interface Topology {
  /** The nodes where rows enter. */
  readonly sources: readonly string[];
  /** The successors of each node. */
  readonly edges: Readonly<Record<string, readonly string[]>>;
}

/** The result of a check of a statement. */
export interface StreamStatementValidation {
  /** Empty if the statement is valid. */
  readonly errors: readonly StatementError[];
  /** The streams and tables after FROM and JOIN; empty if the statement is not valid, as `columns`. */
  readonly sources: readonly string[];
  /** The stream or the table of CREATE STREAM and CREATE TABLE; absent for the statement of a rule, and if there are errors. */
  readonly defines?: {
    /** A stream or a table. */
    readonly kind: StreamKind;
    /** The name of the stream or table. */
    readonly name: string;
  };
  /** The columns that it reads, by stream or table: of those without a schema, an ambiguous name counts for each. `*` is all of them. */
  readonly columns: Readonly<Record<string, readonly string[]>>;
}

/** A row that has reached a stream rule. */
export interface StreamInputSample {
  /** Time in milliseconds since 1970. */
  readonly at: number;
  /** The source, as the status names it: `source_demo`. */
  readonly node: string;
  /** The columns that rules of the stream use. */
  readonly values: Readonly<Record<string, unknown>>;
  /** True if a part was left out, because its JSON is longer than 4,096 characters. */
  readonly isCut: boolean;
}

/** An emission of a stream rule. */
export interface StreamOutputSample {
  /** Time in milliseconds since 1970. */
  readonly at: number;
  /** The rows of the emission. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** True if parts were left out. */
  readonly isCut: boolean;
}

/** An error of a stream rule. */
export interface StreamErrorSample {
  /** Time in milliseconds since 1970. */
  readonly at: number;
  /** The node, as the status names it: `op_2_filter`, `sink_mqtt_0`. */
  readonly node: string;
  /** The message, without secrets, cut at 256 characters. */
  readonly message: string;
  /** Topic of the MQTT message, cut at 256 characters; absent: there is none, as for sinks and windows, which have several. */
  readonly topic?: string;
}

/** A row or a group that a stream rule has excluded. */
export interface StreamRejectedSample {
  /** Time in milliseconds since 1970. */
  readonly at: number;
  /** The node, as the status names it: `op_2_filter`. */
  readonly node: string;
  /** The clause that was not true, FILTER of a window included; `late`: in event time, the row came too late. */
  readonly reason: 'WHERE' | 'FILTER' | 'HAVING' | 'late';
  /** The values that the condition has read, by their text in the statement; of a late row its columns. Null is left out. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Topic of the MQTT message, as of errors. */
  readonly topic?: string;
  /** True if parts were left out. */
  readonly isCut: boolean;
}

/** The last five examples of each kind of a stream rule, the oldest first. */
export interface StreamRuleSamples {
  /** Rows that sources have produced. */
  readonly inputs: readonly StreamInputSample[];
  /** Emissions. */
  readonly outputs: readonly StreamOutputSample[];
  /** Errors. */
  readonly errors: readonly StreamErrorSample[];
  /** Rows and groups that the rule has excluded. */
  readonly rejected: readonly StreamRejectedSample[];
}

/** Result of a validation: whether the rule could be created. */
export interface Validation {
  /** The streams and tables of its statement. */
  readonly sources: readonly string[];
  /** A sentence for each property of an action that has no effect; absent if there is none. */
  readonly warnings?: readonly string[];
}

/** A node of a plan, for EXPLAIN. */
export interface PlanNode {
  /** Name of the node in the status: `op_2_filter`. */
  readonly name: string;
  /** The operation of the node. */
  readonly about: string;
  /** The nodes before it. */
  readonly inputs: readonly PlanNode[];
}

/** The result of a test of a rule. */
export interface StreamRuleTest {
  /** The emissions, each with its rows. */
  readonly emissions: readonly (readonly Record<string, unknown>[])[];
  /** The errors of rows, in words. */
  readonly errors: readonly string[];
}

/** A row for the test of a rule. */
export interface TestRow {
  /** The stream or table that the row belongs to. */
  readonly stream: string;
  /** The columns. */
  readonly values: Readonly<Record<string, unknown>>;
  /**
   * Time of arrival in milliseconds; never before that of the preceding row. Default: the time of the preceding row.
   */
  readonly at?: number;
  /** The metadata. Default: none. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** The kind of a definition. */
export type StreamKind = 'stream' | 'table';

/** The type of a column. */
export type ColumnType =
  | {
      /** A type without parts. */
      readonly type: 'bigint' | 'float' | 'string' | 'datetime' | 'boolean' | 'bytea';
    }
  | {
      /** A list of values of one type. */
      readonly type: 'array';
      /** The type of the values. */
      readonly element: ColumnType;
    }
  | {
      /** An object with named fields. */
      readonly type: 'struct';
      /** The fields. */
      readonly fields: readonly Column[];
    };

/** A column of a stream or a table, or a field of a struct. */
export interface Column {
  /** The name. */
  readonly name: string;
  /** The type of its values. */
  readonly type: ColumnType;
}

/** The definition of a stream or a table, as given by CREATE. */
export interface StreamDefinition {
  /** A stream or a table. */
  readonly kind: StreamKind;
  /** The name. */
  readonly name: string;
  /** Undefined if the stream has no schema. */
  readonly columns: readonly Column[] | undefined;
  /** The specified options by name in upper case: DATASOURCE, FORMAT, ... */
  readonly options: Readonly<Record<string, string>>;
  /** The text of the statement. */
  readonly sql: string;
  /** Set for a stored definition that is not valid in this version: the reason. Rules that read it do not run. */
  readonly fault?: string;
}

/** Options of streams: `createBroker({ streams: ... })`. */
export interface StreamsOptions {
  /** Source types, such as `fileSource()` of `embermq/streams/file`. */
  readonly sources?: readonly SourceType[] | undefined;
  /** Sink types, such as `fileSink()` of `embermq/streams/file`. */
  readonly sinks?: readonly SinkType[] | undefined;
  /** Functions for statements. */
  readonly functions?: readonly StreamFunction[] | undefined;
  /** Formats, for the option FORMAT of streams and the property `format` of sinks. */
  readonly formats?: readonly (StreamFormat | FormatType)[] | undefined;
  /** Statements CREATE STREAM and CREATE TABLE, which are not persisted. */
  readonly definitions?: readonly string[] | undefined;
  /** Rules of the app, which are not persisted. */
  readonly rules?: readonly StreamRuleInput[] | undefined;
  /**
   * Sections of source properties, by type and name: `{ httppull: { default: { url: '...' } } }`. CONF_KEY selects a
   * section.
   */
  readonly sourceConfig?: Readonly<Record<string, Readonly<Record<string, Properties>>>> | undefined;
  /** Default options of rules. */
  readonly ruleDefaults?: Partial<RuleOptions> | undefined;
  /** Time zone of date and time functions: an IANA name. Default: the zone of the process. */
  readonly timezone?: string | undefined;
  /** Folder for files of sources, sinks and plugins. */
  readonly dataDir?: string | undefined;
  /** Maximum number of rules. Default 10000. */
  readonly max?: number | undefined;
  /** Limits of each rule. */
  readonly bounds?: Partial<StreamBounds> | undefined;
}

/**
 * Limits of a rule. When a limit is reached, this is counted in the status, and the item fails with an error that names
 * the limit.
 */
export interface StreamBounds {
  /** Maximum number of rows in a window. Default 1000000. */
  readonly windowRows: number;
  /** Maximum number of groups in a window. Default 100000. */
  readonly groups: number;
  /** Maximum number of rows that one join creates for one emission. Default 1000000. */
  readonly joinRows: number;
  /** Maximum number of characters that a template creates for one output. Default 1048576. */
  readonly templateCharacters: number;
  /**
   * Maximum weight of a row, or of the result of a function: approximately the bytes of its JSON. The rows that
   * unnest() creates from one row, together with all results of functions for it, weigh at most 16 times as much.
   * Default 4194304 (4 MiB).
   */
  readonly rowWeight: number;
  /**
   * Maximum number of rows of a rule with `qos` 1 or 2 that are kept until its next checkpoint, which begins at half of
   * this number. Default 100000.
   */
  readonly checkpointRows: number;
  /** Maximum bytes of one checkpoint, and of the rows that are kept until the next one. Default 67108864 (64 MB). */
  readonly checkpointBytes: number;
  /** Maximum number of sections, connections and schemas that are created at run time. Default 10000. */
  readonly configEntries: number;
  /** Maximum bytes of all of them together, as JSON. Default 16777216 (16 MB). */
  readonly configBytes: number;
}
