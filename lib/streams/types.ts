// Public types: apps and plugins write sources, sinks and functions against them. A member that is added to a type
// which others implement must be optional. `PropertyRow` describes properties of sources and sinks for checks and
// documents; a secret is marked there and is never shown. Texts of the status have the wording of the documented
// interface.

import type { Clock } from '../base/clock.ts';
import type { Awaitable } from '../events/hooks.ts';
import type { FormatType, StreamFormat } from './format.ts';
import type { StreamFunction } from './function.ts';
import type { Cause } from './values/cause.ts';
import type { Metadata } from './values/tuple.ts';
import type { Value, ValueObject } from './values/values.ts';

/** Properties of a source or a sink, as they were given. */
export type Properties = Readonly<Record<string, unknown>>;

/** A property of a source or a sink, for checks and documents. */
export interface PropertyRow {
  readonly type: 'string' | 'number' | 'boolean' | 'object' | 'array' | 'any';
  readonly about: string;
  readonly default?: unknown;
  readonly required?: true;
  /** The values that it can have. */
  readonly choices?: readonly unknown[];
  /** Least and greatest value of a number. */
  readonly range?: readonly [least: number, greatest: number];
  /** A number of milliseconds; a string such as `10s` is converted to it. */
  readonly unit?: 'ms';
  /** A string may be a template such as `a/{{.id}}`, which is filled in for each output; so may the strings in an object. */
  readonly isTemplate?: true;
  /** It is shown as `******`, and `******` in a change means the present value. */
  readonly isSecret?: true;
}

/** The properties of a source or a sink, by name. */
export type PropertyTable = Readonly<Record<string, PropertyRow>>;

/** A type of sources, such as `mqtt`: the option TYPE of a stream. */
export interface SourceType {
  readonly name: string;
  readonly about: string;
  /** Absent: its properties are not checked. */
  readonly properties?: PropertyTable;
  /** Sections of properties that belong to the type. Those of the same name in the option `sourceConfig` go over them. */
  readonly sections?: Readonly<Record<string, Properties>>;
  /** It produces a finite number of rows and then calls `end`: a table of it has all of them. Default false. */
  readonly isBatch?: true;
  /** Default: `stream` and `table`. */
  readonly for?: readonly ('stream' | 'table' | 'lookup')[];
  /** Begin to produce rows. It may resolve before a connection is there. @throws why the source cannot be used at all */
  open?(setup: SourceSetup): Awaitable<OpenSource>;
  /** For lookup tables: find rows by the values of keys. */
  openLookup?(setup: LookupSetup): Awaitable<OpenLookup>;
  /**
   * Streams or rules have changed, or the service has started: let other servers keep nothing that no stream needs. The notes say what they keep. It is
   * called often, and calls may overlap. Absent: no server keeps anything.
   */
  tidy?(setup: TidySetup): Awaitable<void>;
}

/** The argument of `SourceType.tidy`. */
export interface TidySetup extends Pick<SourceSetup, 'dataDir' | 'clock' | 'node' | 'notes' | 'warn'> {
  /** Aborts when the service stops. What is left then is done after the next start. */
  readonly signal: AbortSignal;
  /** The stream of a place (`SourceSetup.place`). */
  stream(place: string): NotedStream;
}

/** A stream that a note is about. */
export interface NotedStream extends Pick<SourceSetup, 'stream' | 'isKept'> {
  /** As for `SourceSetup`. @throws InvalidInput PROPERTY_INVALID if they cannot be read any more */
  readonly properties: Properties;
  /** False: it is dropped, or reads from another place. */
  readonly isDefined: boolean;
}

/**
 * Strings that a type of sources keeps in the store of the broker; without a store, in memory. A change has an effect at once, and is committed with the
 * rows that are given in the same turn of the event loop. If the commit fails, it is undone.
 */
export interface SourceNotes extends Iterable<readonly [key: string, value: string]> {
  get(key: string): string | undefined;
  /** Resolves when it is in the store. @throws BrokerError STORE_FAILED */
  set(key: string, value: string): Promise<void>;
  /** Resolves when the store does not have it. @throws BrokerError STORE_FAILED */
  delete(key: string): Promise<boolean>;
}

/** What a source is opened with. */
export interface SourceSetup {
  /** Name of the stream. */
  readonly stream: string;
  /** The option DATASOURCE: a topic filter, a path, a URL. */
  readonly datasource: string;
  /** The properties of the section that CONF_KEY names, over those of `default`; they satisfy the table of the type. */
  readonly properties: Properties;
  /** Folder for files of this service; undefined: there is none. */
  readonly dataDir: string | undefined;
  readonly clock: Clock;
  /** Name of the broker node, the option `node`. */
  readonly node: string;
  /** A rule with `qos` above 0 reads the stream, whether it runs or not, and the broker has a store. It changes with the rules. */
  readonly isKept: boolean;
  /**
   * Resolves when the rules that are being started are there, or when the source is being closed: a source with an acknowledgement reads after that,
   * so that none of them misses what it acknowledges.
   */
  ready(): Promise<void>;
  /** Notes of all sources of this type. */
  readonly notes: SourceNotes;
  /** Stands for the stream and the place that it reads from, in notes: `TidySetup.stream` finds it. */
  readonly place: string;
  /**
   * Give rows, and learn when rules with `qos` above 0 have them in the store: then what has led to them can be acknowledged.
   * @param give calls `bytes` or `row`. It is called at once, or, after those of earlier calls, when each rule has room and none is being replaced
   * @throws BrokerError STORE_FAILED; SOURCE_CLOSED if no rule takes them: they are to be given again; what `give` throws
   */
  kept(give: () => void): Promise<void>;
  /**
   * Bytes have arrived. They are decoded by the FORMAT of the stream, to one row or to several. They may change when this has returned and the
   * turn of the event loop has ended.
   * @param timestamp when they arrived, in milliseconds since 1970; default: now
   * @param cause the ids of the rules of this broker that have led to them, the first one first; default: none has
   */
  bytes(payload: Uint8Array, metadata?: Metadata, timestamp?: number, cause?: Cause): void;
  /** A row that needs no decoding. Its numbers are floats, its bigints integers. The object is not changed afterwards. */
  row(values: ValueObject, metadata?: Metadata, timestamp?: number, cause?: Cause): void;
  /** The source has produced everything that it had: a table is complete. */
  end(): void;
  /** The connection is there. */
  connected(): void;
  /** The connection is lost, or cannot be made; the source tries again by itself. The reason is shown in the status of the rule. */
  disconnected(reason: unknown): void;
  /** Something could not be read. It is counted as an exception, and sent to the sinks if the rule wants it. */
  failed(reason: unknown): void;
  /** Report something that an operator should know, although the source works. */
  warn(text: string): void;
  /** Whether rows would be dropped at present because a rule is slow. A source that can wait should. */
  readonly isFull: boolean;
  /** Called when there is room again. */
  whenRoom(run: () => void): void;
}

export interface OpenSource {
  close(): Awaitable<void>;
  /** Rules have changed: `isKept` may have. */
  changed?(): void;
  /**
   * What each rule gets when it starts, before all other rows, and a table when it is opened: such as retained messages. A rule that continues from a
   * checkpoint gets nothing of it. Absent: there is nothing.
   * @returns an iterator that gives one message after the other, in steps of at most a few milliseconds. Undefined: a step of a search has
   *   found none, and others follow
   */
  first?(): Iterator<FirstMessage | undefined, void>;
}

/** A message that a source has when a rule starts; see the parameters of `SourceSetup.bytes`. Its time is when the rule gets it. */
export interface FirstMessage {
  readonly payload: Uint8Array;
  readonly metadata?: Metadata;
  readonly cause?: Cause | undefined;
}

export interface LookupSetup extends Pick<SourceSetup, 'stream' | 'datasource' | 'properties' | 'dataDir' | 'clock'> {
  /** The columns that the statement uses. */
  readonly columns: readonly string[];
  /** The option KEY of the table. */
  readonly key: string | undefined;
}

export interface OpenLookup {
  /** The rows whose columns have these values. @throws why they cannot be found */
  find(keys: readonly string[], values: readonly Value[]): Awaitable<readonly ValueObject[]>;
  close(): Awaitable<void>;
}

/** A type of sinks, such as `mqtt`: the key of an action. */
export interface SinkType {
  readonly name: string;
  readonly about: string;
  /** Its own properties; the common ones are added. Absent: they are not checked. */
  readonly properties?: PropertyTable;
  /** Begin to accept outputs. It may resolve before a connection is there. @throws why the sink cannot be used at all */
  open(setup: SinkSetup): Awaitable<OpenSink>;
}

export interface SinkSetup {
  readonly ruleId: string;
  /** Number of the action, from 0. */
  readonly index: number;
  /** The properties of the action, with defaults filled in. */
  readonly properties: Properties;
  readonly dataDir: string | undefined;
  readonly clock: Clock;
  /** The connection is there. */
  connected(): void;
  /** The connection is lost, or cannot be made. The reason is shown in the status of the rule. */
  disconnected(reason: unknown): void;
  /** Write a line to the log of the service. */
  log(text: string): void;
  /** Report something that an operator should know, although the sink works. */
  warn(text: string): void;
}

/** What a sink sends. */
export interface SinkItem {
  /**
   * The rows of an emission, or one row (`sendSingle`), as plain values; after a template, its string. Bytes: already encoded by a format that is
   * no text.
   */
  readonly value: unknown;
  /** `value` as bytes of the format of the sink: JSON by default. Encoded at the first use. */
  readonly bytes: Buffer;
  /**
   * `bytes` as text, for a sink that encodes text by itself, which is cheaper. Made at each use. Absent or undefined: there is none, as for an item of the
   * cache, or for bytes that are no text.
   */
  readonly text?: string | undefined;
  /** A property that is a template, filled in for this item. @throws StreamFailure */
  property(name: string): unknown;
  /** The same at each attempt to send the item. */
  readonly id: string;
  /** The ids of the rules of this broker that have led to it, the first one first. Absent or undefined: none has. */
  readonly cause?: Cause | undefined;
}

export interface OpenSink {
  /** Send an item. It has failed if this throws or rejects; whether it is tried again is decided by the common properties. */
  send(item: SinkItem): Awaitable<void>;
  close(): Awaitable<void>;
}

/** An action that is a function of the app: called with the rows of each emission. */
export type EmissionFunction = (rows: readonly Record<string, unknown>[]) => unknown;

/** An element of `actions`: one key, the type of the sink, with its properties; or a function. */
export type ActionInput = Readonly<Record<string, Properties>> | EmissionFunction;

/** The options of a rule. */
export interface RuleOptions {
  /** Time is that of the column TIMESTAMP of the streams. Default false. */
  readonly isEventTime: boolean;
  /** How far rows may be behind the latest one, in milliseconds. Default 1000. */
  readonly lateTolerance: number;
  /**
   * After how many milliseconds without a row a stream of a join in event time does not hold back the others. The status counts such streams as
   * `idle_streams`. Default 0: never.
   */
  readonly idleTimeout: number;
  /** Accepted for compatibility: operators run one item after the other. Default 1. */
  readonly concurrency: number;
  /** Most items that wait before a rule that is busy. Default 1024. */
  readonly bufferLength: number;
  /** Add the metadata of rows to outputs, as `__meta`. Default false. */
  readonly sendMetaToSink: boolean;
  /** Send errors of rows to the sinks, as `[{"error": "..."}]`. Default true. */
  readonly sendError: boolean;
  /** 0: at most once, 1: at least once, 2: exactly once. Default 0. */
  readonly qos: 0 | 1 | 2;
  /** Milliseconds between checkpoints. Default 300000; 1000 with qos 2. */
  readonly checkpointInterval: number;
  /** How a rule that has failed is started again. */
  readonly restartStrategy: RestartStrategy;
  /** When the rule runs, as a cron expression. Default: always. */
  readonly cron: string;
  /** How long it runs each time, such as `10m`. Default: until it is stopped. */
  readonly duration: string;
  /** Times outside of which the rule does not run: a list of `{ begin, end }`. Default: none. */
  readonly cronDatetimeRange: readonly { readonly begin: string; readonly end: string }[];
  /** Have null for columns without a value, instead of leaving them out. Default false. */
  readonly sendNilField: boolean;
  /** Windows without rows are emitted too. Default false. */
  readonly emitEmptyWindows: boolean;
  /** `clock`: windows end at multiples of their length; `start`: counted from the start of the rule. Default `clock`. */
  readonly windowAlign: 'clock' | 'start';
  /** `merged`: one row with the first match, as in the original; `pairs`: a row for each pair. Default `merged`. */
  readonly joinRows: 'merged' | 'pairs';
  /** Whole numbers of streams without a schema are integers. Default false: they are floats. */
  readonly schemalessIntegers: boolean;
  /** Accepted for compatibility, without effect. */
  readonly debug: boolean;
  /** Accepted for compatibility, without effect. */
  readonly logFilename: string;
}

/** How a rule that has failed is started again. */
export interface RestartStrategy {
  /** Most attempts; 0: none. Default 0. */
  readonly attempts: number;
  /** Milliseconds before the first one. Default 1000. */
  readonly delay: number;
  /** Factor from each delay to the next one. Default 2. */
  readonly multiplier: number;
  /** Longest delay in milliseconds. Default 30000. */
  readonly maxDelay: number;
  /** Share by which delays vary. Default 0.1. */
  readonly jitterFactor: number;
}

export interface StreamRuleInput {
  /** Default: a random one. */
  readonly id?: string;
  readonly sql: string;
  readonly actions?: readonly ActionInput[];
  readonly options?: Partial<RuleOptions>;
  /** Start it. Default true. */
  readonly triggered?: boolean;
  /** A name for people. */
  readonly name?: string;
  readonly version?: string;
  readonly tags?: readonly string[];
  /** Do not persist it. Default false; a rule with a function as an action is never persisted. */
  readonly temp?: boolean;
}

/** A rule, as it was made. */
export interface StreamRuleDefinition {
  readonly id: string;
  readonly sql: string;
  /** Without functions of the app, and with `******` for secrets. */
  readonly actions: readonly Readonly<Record<string, Properties>>[];
  readonly options: RuleOptions;
  readonly triggered: boolean;
  readonly name: string;
  readonly version: string;
  readonly tags: readonly string[];
}

/** `Running` or `Stopped: REASON`. */
export type StatusText = string;

/** A row of the list of rules. */
export interface StreamRuleSummary {
  readonly id: string;
  readonly name: string;
  readonly status: StatusText;
  readonly version: string;
  readonly tags: readonly string[];
}

export interface StreamRuleStatus {
  /** State of its chart. */
  readonly state: 'idle' | 'connected' | 'disconnected';
  readonly text: StatusText;
  /** In milliseconds since 1970; 0: never. */
  readonly startedAt: number;
  readonly stoppedAt: number;
  readonly nextStartAt: number;
  /** The figures of its nodes by `KIND_NAME_INDEX_METRIC`, in the order of the plan; empty if it does not run. */
  readonly metrics: Readonly<Record<string, number | string>>;
}

/** The nodes of a rule and what follows each. */
export interface Topology {
  readonly sources: readonly string[];
  readonly edges: Readonly<Record<string, readonly string[]>>;
}

/** Whether a rule could be made. */
export interface Validation {
  /** The streams and tables of its statement. */
  readonly sources: readonly string[];
}

/** A node of a plan, for EXPLAIN. */
export interface PlanNode {
  /** Name of the node in the status: `op_2_filter`. */
  readonly name: string;
  readonly about: string;
  readonly inputs: readonly PlanNode[];
}

/** What a test of a rule gives. */
export interface StreamRuleTest {
  readonly emissions: readonly (readonly Record<string, unknown>[])[];
  readonly errors: readonly string[];
}

/** A row for the test of a rule. */
export interface TestRow {
  readonly stream: string;
  readonly values: Readonly<Record<string, unknown>>;
  /** When it arrives, in milliseconds; never before the row in front of it. Default: the time of that row. */
  readonly at?: number;
  readonly meta?: Readonly<Record<string, unknown>>;
}

export type StreamKind = 'stream' | 'table';

/** The type of a column. */
export type ColumnType =
  | { readonly type: 'bigint' | 'float' | 'string' | 'datetime' | 'boolean' | 'bytea' }
  | { readonly type: 'array'; readonly element: ColumnType }
  | { readonly type: 'struct'; readonly fields: readonly Column[] };

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
}

/** A stream or a table, as CREATE defines it. */
export interface StreamDefinition {
  readonly kind: StreamKind;
  readonly name: string;
  /** undefined: the stream has no schema. */
  readonly columns: readonly Column[] | undefined;
  /** The options that are written, by their names in upper case: DATASOURCE, FORMAT, ... */
  readonly options: Readonly<Record<string, string>>;
  /** The text of the statement. */
  readonly sql: string;
  /** Only of a definition in the store that is not valid in this version: why. Rules that read it do not run. */
  readonly fault?: string;
}

/** Streams, tables and rules, by name, each as its text: SQL, and for rules JSON. */
export interface Ruleset {
  readonly streams: Readonly<Record<string, string>>;
  readonly tables: Readonly<Record<string, string>>;
  readonly rules: Readonly<Record<string, string>>;
}

/** Options of streams: `createBroker({ streams: ... })`. */
export interface StreamsOptions {
  /** Types of sources, such as `fileSource()` of `embermq/streams/file`. */
  readonly sources?: readonly SourceType[] | undefined;
  /** Types of sinks, such as `fileSink()` of `embermq/streams/file`. */
  readonly sinks?: readonly SinkType[] | undefined;
  /** Functions for statements. */
  readonly functions?: readonly StreamFunction[] | undefined;
  /** Formats, for the option FORMAT of streams and the property `format` of sinks. */
  readonly formats?: readonly (StreamFormat | FormatType)[] | undefined;
  /** Statements CREATE STREAM and CREATE TABLE, which are not persisted. */
  readonly definitions?: readonly string[] | undefined;
  /** Rules of the app, which are not persisted. */
  readonly rules?: readonly StreamRuleInput[] | undefined;
  /** Sections of properties of sources, by type and by name: `{ httppull: { default: { url: '...' } } }`. CONF_KEY names a section. */
  readonly sourceConfig?: Readonly<Record<string, Readonly<Record<string, Properties>>>> | undefined;
  /** Default options of rules. */
  readonly ruleDefaults?: Partial<RuleOptions> | undefined;
  /** Zone of dates and times of functions: an IANA name. Default: that of the process. */
  readonly timezone?: string | undefined;
  /** Folder for files of sources, sinks and plugins. */
  readonly dataDir?: string | undefined;
  /** Most rules. Default 10000. */
  readonly max?: number | undefined;
  /** What one rule may take. */
  readonly bounds?: Partial<StreamBounds> | undefined;
}

/** What a rule may take. A bound that is reached is counted in the status, and the item fails with an error that names it. */
export interface StreamBounds {
  /** Rows that one window holds. Default 1000000. */
  readonly windowRows: number;
  /** Groups of one window. Default 100000. */
  readonly groups: number;
  /** Rows that one join makes for one emission. Default 1000000. */
  readonly joinRows: number;
  /** Characters that a template makes for one output. Default 1048576. */
  readonly templateCharacters: number;
  /** Maximum weight of a row, or of the result of a function: about the bytes of its JSON. The rows that unnest() makes of one row, and all that functions make for it, weigh at most 16 times as much together. Default 4194304 (4 MiB). */
  readonly rowWeight: number;
  /** Rows of a rule with `qos` 1 or 2 that are kept until its next checkpoint, which begins when there are half as many. Default 100000. */
  readonly checkpointRows: number;
  /** Bytes of one checkpoint, and of the rows that are kept until the next one. Default 67108864 (64 MB). */
  readonly checkpointBytes: number;
}
