// All methods return promises, because the service is loaded by the first call. Streams, rules and types are created and
// deleted; configuration is set, because a request that is repeated must have no further effect.

import type { ActorRef } from '../base/actor.ts';
import type { StreamFunction } from './function.ts';
import type {
  PlanNode,
  Properties,
  SinkType,
  SourceType,
  StreamDefinition,
  StreamKind,
  StreamRuleDefinition,
  StreamRuleInput,
  StreamRuleSamples,
  StreamRuleStatus,
  StreamRuleSummary,
  StreamRuleTest,
  StreamStatementValidation,
  TestRow,
  Topology,
  Validation
} from './types.ts';

/**
 * The rules over streams: `broker.streams.rules`.
 *
 * Errors of all calls: BrokerError STORE_FAILED; StateError BROKER_NOT_STARTED with a store that is not open yet, STREAMS_STOPPED.
 */
export interface StreamRulesApi {
  /**
   * Create a rule, and start it unless `triggered` is false. The rule is persisted, unless one of its actions is a
   * function.
   * @throws SqlError SQL_INVALID; InvalidInput STREAM_RULE_INVALID, PROPERTY_INVALID; NotFound STREAM_NOT_FOUND,
   *   SOURCE_NOT_FOUND, SINK_NOT_FOUND; StateError STREAM_RULE_EXISTS
   */
  create(input: StreamRuleInput): Promise<StreamRuleDefinition>;
  /**
   * Replace a rule. If the new definition is invalid, the current one stays in use.
   * @throws as `create`; NotFound STREAM_RULE_NOT_FOUND
   */
  update(id: string, input: StreamRuleInput): Promise<StreamRuleDefinition>;
  /**
   * Change the tags of a rule without interrupting it.
   * @param changed returns the new tags for the current ones
   * @throws InvalidInput STREAM_RULE_INVALID; NotFound STREAM_RULE_NOT_FOUND
   */
  tag(id: string, changed: (tags: readonly string[]) => readonly string[]): Promise<void>;
  /** Drop a rule and its checkpoint. @throws NotFound STREAM_RULE_NOT_FOUND */
  delete(id: string): Promise<void>;
  /** @deprecated Use `delete`. */
  drop(id: string): Promise<void>;
  /** A rule; undefined if it does not exist. */
  get(id: string): Promise<StreamRuleDefinition | undefined>;
  /**
   * The actor of a rule, for reading and observing. xstate's `waitFor` and `toPromise` accept it. It is done when the rule has been dropped.
   * @throws NotFound STREAM_RULE_NOT_FOUND
   */
  actor(id: string): Promise<ActorRef>;
  /** The rules, sorted by id. */
  list(): Promise<StreamRuleSummary[]>;
  /**
   * Start a rule. No effect if it is running.
   * @throws NotFound STREAM_RULE_NOT_FOUND; the errors of `create` if it cannot be started
   */
  start(id: string): Promise<void>;
  /** Stop a rule; its definition is kept. No effect if it is not running. @throws NotFound STREAM_RULE_NOT_FOUND */
  stop(id: string): Promise<void>;
  /** @throws as `start` */
  restart(id: string): Promise<void>;
  /** @throws NotFound STREAM_RULE_NOT_FOUND */
  status(id: string): Promise<StreamRuleStatus>;
  /**
   * The last inputs, outputs and errors of a rule, and the last rows that it has excluded. At most one of each is kept in 100 ms, of the inputs and with
   * many rules fewer, so a sample that is not there proves nothing. They are lost with the process, and when the rule is changed. They contain
   * payloads of clients. Integers beyond 2^53 lose digits.
   * @throws NotFound STREAM_RULE_NOT_FOUND
   */
  samples(id: string): Promise<StreamRuleSamples>;
  /**
   * @throws NotFound STREAM_RULE_NOT_FOUND; StateError STREAM_RULE_NOT_STARTED if it has not run since the process
   *   started
   */
  topology(id: string): Promise<Topology>;
  /** Check a rule without creating it. @throws as `create` */
  validate(input: StreamRuleInput): Promise<Validation>;
  /**
   * Check the statement of a rule, CREATE STREAM or CREATE TABLE, for an editor: its errors are the result, and are not thrown.
   * @throws StateError STREAMS_STOPPED; BrokerError PACKAGE_MISSING
   */
  validateStatement(sql: string): Promise<StreamStatementValidation>;
  /** The plan of a rule. @throws NotFound STREAM_RULE_NOT_FOUND */
  explain(id: string): Promise<PlanNode>;
  /**
   * Run a statement over sample rows, on a separate clock and without sinks. The time limit is 1 s, spent in slices
   * between the rows; a longer test fails, even within one row.
   * @throws as `create`; InvalidInput STREAM_RULE_INVALID if the time limit is exceeded
   */
  test(input: Pick<StreamRuleInput, 'sql' | 'options'>, rows: readonly TestRow[]): Promise<StreamRuleTest>;
  /**
   * The emissions of a rule, or of all rules, from now on. The iteration ends when the rule is dropped or the service
   * stops.
   */
  emissions(id?: string): AsyncIterableIterator<{
    /** The id of the rule. */
    readonly rule: string;
    /** The rows of the emission. */
    readonly rows: readonly Record<string, unknown>[];
  }>;
}

/**
 * The kinds of configuration that are created at run time: a section of the properties of a source type, which CONF_KEY
 * selects; a connection, whose properties a section or an action takes over with `connectionSelector`; a schema of a
 * format, with its text in `content`.
 */
export type StreamConfigKind = 'confKey' | 'connection' | 'schema';

/** The key of a part of the configuration. */
export interface StreamConfigKey {
  /** The kind of entry. */
  readonly kind: StreamConfigKind;
  /** The type of the source, of the sink, or the format. Not needed for a connection, whose name is unique. */
  readonly type?: string;
  /** The name, unique among those of the kind and type. */
  readonly name: string;
}

/** A part of the configuration. */
export interface StreamConfigEntry extends Required<StreamConfigKey> {
  /** Values of JSON. Secrets are shown as `******`, which stands for the current value when it is sent back. */
  readonly properties: Properties;
}

/** The users of a part of the configuration: those whose next start needs it. */
export interface StreamConfigUse {
  /** The names of the sections that take over a connection. */
  readonly sections: readonly string[];
  /** The names of the streams and tables. */
  readonly streams: readonly string[];
  /** The ids of the stream rules. */
  readonly rules: readonly string[];
  /** The ids of the rules over events of the broker. */
  readonly brokerRules: readonly string[];
  /** The sources and sinks of the stream rules, as the status of the rule names them: `source_demo`, `sink_mqtt_0`. */
  readonly nodes: readonly {
    /** The id of the rule. */
    readonly rule: string;
    /** The name of the node. */
    readonly node: string;
  }[];
}

/** A part of the configuration with its users. */
export interface StreamConfigState extends StreamConfigEntry {
  /** The users of the entry. */
  readonly use: StreamConfigUse;
}

/** Streams, tables and rules by name, each as text: SQL, or JSON for rules. */
export interface Ruleset {
  /** The statements of the streams, by name. */
  readonly streams: Readonly<Record<string, string>>;
  /** The statements of the tables, by name. */
  readonly tables: Readonly<Record<string, string>>;
  /** The rules as JSON, by id. */
  readonly rules: Readonly<Record<string, string>>;
  /** The sections, connections and schemas that were created at run time, with their secrets; absent if there are none. */
  readonly config?: readonly StreamConfigEntry[];
}

/**
 * Configuration of sources, sinks and formats that is created at run time and persisted: `broker.streams.config`. Rules
 * use a change from their next start. When one of them starts, the other rules of its stream restart with it.
 */
export interface StreamConfigApi {
  /** The entries of a kind, sorted by type and name. @throws InvalidInput STREAM_CONFIG_INVALID */
  list(kind: StreamConfigKind): Promise<StreamConfigState[]>;
  /** @throws InvalidInput STREAM_CONFIG_INVALID */
  get(key: StreamConfigKey): Promise<StreamConfigState | undefined>;
  /**
   * Create or replace an entry.
   * @param options isNew: true, the entry must not exist yet; false, it must exist
   * @returns a sentence for each property that has no effect, because its type does not have it
   * @throws InvalidInput STREAM_CONFIG_INVALID, PROPERTY_INVALID; NotFound SOURCE_NOT_FOUND, FORMAT_NOT_FOUND,
   *   STREAM_CONFIG_NOT_FOUND; StateError STREAM_CONFIG_EXISTS, STREAM_LIMIT, STREAM_OF_APP; errors of the format
   */
  set(
    entry: StreamConfigEntry,
    options?: {
      /** True: the entry must not exist yet; false: it must exist. Default: either. */
      readonly isNew?: boolean;
    }
  ): Promise<readonly string[]>;
  /**
   * @returns false if the entry does not exist
   * @throws InvalidInput STREAM_CONFIG_INVALID; StateError STREAM_CONFIG_IN_USE, which names the users
   */
  delete(key: StreamConfigKey): Promise<boolean>;
}

/**
 * Streams, tables and continuous queries over them: `broker.streams`.
 *
 * Errors of all calls: BrokerError STORE_FAILED; StateError BROKER_NOT_STARTED with a store that is not open yet, STREAMS_STOPPED.
 */
export interface StreamsApi {
  /** The rules over streams. */
  readonly rules: StreamRulesApi;
  /** Configuration of sources, sinks and formats that is created at run time. */
  readonly config: StreamConfigApi;
  /** True if the service is running, false after `stop()`. */
  readonly isRunning: boolean;
  /**
   * Define a stream or a table by CREATE STREAM or CREATE TABLE. The definition is persisted.
   * @throws SqlError SQL_INVALID; InvalidInput STREAM_INVALID; StateError STREAM_EXISTS
   */
  create(ddl: string): Promise<StreamDefinition>;
  /** @deprecated Use `create`. */
  define(ddl: string): Promise<StreamDefinition>;
  /** Define or redefine a stream or a table. Rules use the new definition from their next start. @throws as `create` */
  replace(ddl: string): Promise<StreamDefinition>;
  /**
   * Drop a stream or a table.
   * @throws InvalidInput STREAM_INVALID for another kind; NotFound STREAM_NOT_FOUND; StateError STREAM_IN_USE unless `force`
   */
  delete(
    kind: StreamKind,
    name: string,
    options?: {
      /** Drop it even if rules use it. Default false. */
      readonly force?: boolean;
    }
  ): Promise<void>;
  /** @deprecated Use `delete`. */
  drop(
    kind: StreamKind,
    name: string,
    options?: {
      /** Drop it even if rules use it. Default false. */
      readonly force?: boolean;
    }
  ): Promise<void>;
  /** A stream or a table; undefined if it does not exist. */
  get(kind: StreamKind, name: string): Promise<StreamDefinition | undefined>;
  /** The streams or the tables, sorted by name. */
  list(kind: StreamKind): Promise<StreamDefinition[]>;
  /**
   * Create and start a rule of the app, and iterate over its emissions; the rule is dropped when the iteration ends.
   */
  rule(sql: string, input?: Omit<StreamRuleInput, 'sql'>): Promise<StreamRule>;
  /** Push a row into a stream, as if its source had produced it. @throws NotFound STREAM_NOT_FOUND */
  push(stream: string, row: Readonly<Record<string, unknown>>, meta?: Readonly<Record<string, unknown>>): Promise<void>;
  /** The functions that statements can call. */
  functions(): Promise<StreamFunction[]>;
  /** The source types. */
  sources(): Promise<SourceType[]>;
  /** The sink types. */
  sinks(): Promise<SinkType[]>;
  /** Define a function for statements. @throws InvalidInput FUNCTION_INVALID; StateError FUNCTION_EXISTS */
  createFunction(definition: StreamFunction): Promise<void>;
  /** @deprecated Use `createFunction`. */
  defineFunction(definition: StreamFunction): Promise<void>;
  /**
   * Define a source type; rules that wait for it are started.
   * @throws InvalidInput SOURCE_INVALID; StateError SOURCE_EXISTS
   */
  createSource(type: SourceType): Promise<void>;
  /** @deprecated Use `createSource`. */
  defineSource(type: SourceType): Promise<void>;
  /**
   * Define a sink type; rules that wait for it are started.
   * @throws InvalidInput SINK_INVALID; StateError SINK_EXISTS
   */
  createSink(type: SinkType): Promise<void>;
  /** @deprecated Use `createSink`. */
  defineSink(type: SinkType): Promise<void>;
  /**
   * Remove a function, a source type or a sink type; running rules keep using it until they are restarted.
   * @returns false if it does not exist
   * @throws InvalidInput STREAM_INVALID
   */
  deleteType(what: 'function' | 'source' | 'sink', name: string): Promise<boolean>;
  /** @deprecated Use `deleteType`. */
  undefine(what: 'function' | 'source' | 'sink', name: string): Promise<boolean>;
  /**
   * Register a function that is called whenever the service starts, with the broker or by `start()`, before the first
   * rule. The function may define and remove what rules use. Its errors are reported and do not prevent the service
   * from starting.
   * @returns a function that removes the registration
   */
  beforeStart(run: () => Promise<void>): () => void;
  /** All streams, tables, rules and configuration that were created at run time. */
  export(): Promise<Ruleset>;
  /**
   * Define the items that do not exist and replace those that do.
   * @throws InvalidInput RULESET_INVALID if an item is invalid and nothing was changed; StateError RULESET_INCOMPLETE
   *   if items failed while others were imported. Both name each failed item and its reason
   */
  import(ruleset: Ruleset): Promise<{
    /** Number of streams. */
    readonly streams: number;
    /** Number of tables. */
    readonly tables: number;
    /** Number of rules. */
    readonly rules: number;
    /** Sections, connections and schemas; absent if the ruleset has none. */
    readonly config?: number;
  }>;
  /** Start the service again after `stop()`, with the rules that were running. */
  start(): Promise<void>;
  /** Stop all rules. The broker keeps running. */
  stop(): Promise<void>;
}

/** A rule of the app. */
export interface StreamRule extends AsyncIterable<readonly Record<string, unknown>[]> {
  /** The id of the rule. */
  readonly id: string;
  /** The current status. */
  status(): Promise<StreamRuleStatus>;
  /** Drop the rule, which ends the iteration. */
  drop(): Promise<void>;
}
