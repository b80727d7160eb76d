import type { ActorRef } from '../base/actor.ts';
import type { StreamFunction } from './function.ts';
import type {
  PlanNode,
  Ruleset,
  SinkType,
  SourceType,
  StreamDefinition,
  StreamKind,
  StreamRuleDefinition,
  StreamRuleInput,
  StreamRuleStatus,
  StreamRuleSummary,
  StreamRuleTest,
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
   * Make a rule, and start it unless `triggered` is false. It is persisted, unless one of its actions is a function.
   * @throws SqlError SQL_INVALID; InvalidInput STREAM_RULE_INVALID, PROPERTY_INVALID; NotFound STREAM_NOT_FOUND, SOURCE_NOT_FOUND, SINK_NOT_FOUND;
   *   StateError STREAM_RULE_EXISTS
   */
  create(input: StreamRuleInput): Promise<StreamRuleDefinition>;
  /** Replace a rule. If the new one is invalid, the old one goes on. @throws as `create`; NotFound STREAM_RULE_NOT_FOUND */
  update(id: string, input: StreamRuleInput): Promise<StreamRuleDefinition>;
  /**
   * Change the tags of a rule, which runs on.
   * @param changed makes the new tags from the present ones
   * @throws InvalidInput STREAM_RULE_INVALID; NotFound STREAM_RULE_NOT_FOUND
   */
  tag(id: string, changed: (tags: readonly string[]) => readonly string[]): Promise<void>;
  /** Drop a rule and its checkpoint. @throws NotFound STREAM_RULE_NOT_FOUND */
  drop(id: string): Promise<void>;
  get(id: string): Promise<StreamRuleDefinition | undefined>;
  /**
   * The actor of a rule, for reading and observing. xstate's `waitFor` and `toPromise` accept it. It is done when the rule has been dropped.
   * @throws NotFound STREAM_RULE_NOT_FOUND
   */
  actor(id: string): Promise<ActorRef>;
  /** The rules, sorted by id. */
  list(): Promise<StreamRuleSummary[]>;
  /** Start a rule; nothing happens if it runs. @throws NotFound STREAM_RULE_NOT_FOUND; what `create` throws if it cannot be started */
  start(id: string): Promise<void>;
  /** Stop a rule; it stays defined. Nothing happens if it does not run. @throws NotFound STREAM_RULE_NOT_FOUND */
  stop(id: string): Promise<void>;
  /** @throws as `start` */
  restart(id: string): Promise<void>;
  /** @throws NotFound STREAM_RULE_NOT_FOUND */
  status(id: string): Promise<StreamRuleStatus>;
  /** @throws NotFound STREAM_RULE_NOT_FOUND; StateError STREAM_RULE_NOT_STARTED: it has not run since the start of the process */
  topology(id: string): Promise<Topology>;
  /** Check a rule without making it. @throws as `create` */
  validate(input: StreamRuleInput): Promise<Validation>;
  /** The plan of a rule. @throws NotFound STREAM_RULE_NOT_FOUND */
  explain(id: string): Promise<PlanNode>;
  /**
   * Run a statement over sample rows, on a clock of its own and without any sink. It takes at most 1 s, in slices between the rows; longer tests fail, also within one row.
   * @throws as `create`; InvalidInput STREAM_RULE_INVALID if it takes longer
   */
  test(input: Pick<StreamRuleInput, 'sql' | 'options'>, rows: readonly TestRow[]): Promise<StreamRuleTest>;
  /** The emissions of a rule, or of all rules, from now on. It ends when the rule is dropped or the service stops. */
  emissions(
    id?: string
  ): AsyncIterableIterator<{ readonly rule: string; readonly rows: readonly Record<string, unknown>[] }>;
}

/**
 * Streams, tables and continuous queries over them: `broker.streams`.
 *
 * Errors of all calls: BrokerError STORE_FAILED; StateError BROKER_NOT_STARTED with a store that is not open yet, STREAMS_STOPPED.
 */
export interface StreamsApi {
  readonly rules: StreamRulesApi;
  /** Whether the service runs: false after `stop()`. */
  readonly isRunning: boolean;
  /**
   * Define a stream or a table by CREATE STREAM or CREATE TABLE. It is persisted.
   * @throws SqlError SQL_INVALID; InvalidInput STREAM_INVALID; StateError STREAM_EXISTS
   */
  define(ddl: string): Promise<StreamDefinition>;
  /** Define a stream or a table, also if it exists. Rules use the new definition when they start the next time. @throws as `define` */
  replace(ddl: string): Promise<StreamDefinition>;
  /** @throws NotFound STREAM_NOT_FOUND; StateError STREAM_IN_USE unless `force` */
  drop(kind: StreamKind, name: string, options?: { readonly force?: boolean }): Promise<void>;
  get(kind: StreamKind, name: string): Promise<StreamDefinition | undefined>;
  /** The streams or the tables, sorted by name. */
  list(kind: StreamKind): Promise<StreamDefinition[]>;
  /** Make and start a rule of the app, and iterate over its emissions; when the iteration ends, the rule is dropped. */
  rule(sql: string, input?: Omit<StreamRuleInput, 'sql'>): Promise<StreamRule>;
  /** Push a row into a stream, as if its source had produced it. @throws NotFound STREAM_NOT_FOUND */
  push(stream: string, row: Readonly<Record<string, unknown>>, meta?: Readonly<Record<string, unknown>>): Promise<void>;
  /** The functions of statements. */
  functions(): Promise<StreamFunction[]>;
  sources(): Promise<SourceType[]>;
  sinks(): Promise<SinkType[]>;
  /** Define a function for statements. @throws InvalidInput FUNCTION_INVALID; StateError FUNCTION_EXISTS */
  defineFunction(definition: StreamFunction): Promise<void>;
  /** Define a type of sources; rules that wait for it are started. @throws InvalidInput SOURCE_INVALID; StateError SOURCE_EXISTS */
  defineSource(type: SourceType): Promise<void>;
  /** Define a type of sinks; rules that wait for it are started. @throws InvalidInput SINK_INVALID; StateError SINK_EXISTS */
  defineSink(type: SinkType): Promise<void>;
  /** Take a function, a source or a sink away; running rules keep theirs until they are started again. @returns false: there is none */
  undefine(what: 'function' | 'source' | 'sink', name: string): Promise<boolean>;
  /**
   * Have a function called whenever the service starts, with the broker or by `start()`, before the first rule does. It may define and take away
   * what rules use. An error of it is reported, and does not keep the service from starting.
   * @returns a function that ends this
   */
  beforeStart(run: () => Promise<void>): () => void;
  export(): Promise<Ruleset>;
  /**
   * Define what does not exist, and replace what does.
   * @throws InvalidInput RULESET_INVALID if an item is invalid: nothing is changed; StateError RULESET_INCOMPLETE if items have failed while the
   * others were imported. Both name each of the items, with its reason
   */
  import(ruleset: Ruleset): Promise<{ readonly streams: number; readonly tables: number; readonly rules: number }>;
  /** Start the service again after `stop()`, with the rules that ran. */
  start(): Promise<void>;
  /** Stop all rules. The broker goes on. */
  stop(): Promise<void>;
}

/** A rule of the app. */
export interface StreamRule extends AsyncIterable<readonly Record<string, unknown>[]> {
  readonly id: string;
  status(): Promise<StreamRuleStatus>;
  drop(): Promise<void>;
}
