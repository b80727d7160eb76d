// Changes of streams and rules run one after the other (`#inTurn`), and after each of them sources are informed
// (`tidy`). A stop of the service keeps definitions and stops rules; a stop of the broker (`halt`) does the same, but
// the next start of the broker begins again. `beforeStart` functions run before any rule starts: plugins define
// functions and types there. Errors of items are not reported each time, since a stream can have any number of them.

import { ErrorReports } from '../base/error-reports.ts';
import { InvalidInput, NotFound, StateError } from '../base/errors.ts';
import { checkObject, type FieldTable, fieldsOf } from '../base/fields.ts';
import { onceMade } from '../base/lazy.ts';
import { INSPECT } from '../base/symbols.ts';
import type { Ruleset, StreamConfigApi, StreamRule, StreamsApi } from './api.ts';
import { AllRuleMessages } from './checkpoints/rule-messages.ts';
import { Catalogue, checkKind, notFound } from './ddl/catalogue.ts';
import type { StreamFunction } from './function.ts';
import { streamFunctions } from './functions/all.ts';
import type { StreamsHost } from './host.ts';
import { MemoryTopics } from './memory-topics.ts';
import { Registry } from './registry.ts';
import { StreamConfiguration } from './rule/configuration.ts';
import type { DefinedStreamRule } from './rule/defined-stream-rule.ts';
import { type RuleEmission, StreamRules, sourcesOf } from './rule/rules.ts';
import { type Imported, importRuleset } from './rule/ruleset-import.ts';
import { StreamRuntime } from './rule/runtime.ts';
import { scheduleOf } from './rule/schedule.ts';
import { streamRuleText } from './rule/stream-rule-text.ts';
import type { StreamRuleCode } from './rule-states.ts';
import { builtInSinks } from './sinks/built-in.ts';
import { discardCaches } from './sinks/cache.ts';
import { COMMON_SINK_PROPERTIES } from './sinks/common-properties.ts';
import type { SinkAction } from './sinks/sink-action.ts';
import { builtInSources } from './sources/built-in.ts';
import type { SinkType, SourceType, StreamDefinition, StreamKind, StreamRuleInput } from './types.ts';
import { StreamFailure, type StreamValueObject } from './values/values.ts';

/**
 * The details of the records of stops, by the code of the state; without verbs, because they are read of the present and of the past. A stop of the
 * broker is not recorded, and neither is one in which the rows of the rule are held.
 */
const RECORDED_STOPS: Readonly<Partial<Record<StreamRuleCode, string>>> = {
  stopped: 'stopped by an operator or the app',
  waiting: 'waiting for its schedule',
  over: 'no further run in its schedule',
  service_stopped: 'the stream service was stopped'
};

/** The loaded stream service of a broker, called by `broker.streams`. */
export class StreamService
  implements
    Omit<
      StreamsApi,
      'rules' | 'beforeStart' | 'define' | 'drop' | 'defineFunction' | 'defineSource' | 'defineSink' | 'undefine'
    >
{
  readonly rules: StreamRules;
  readonly config: StreamConfigApi;
  readonly #host: StreamsHost;
  readonly #registry: Registry;
  readonly #catalogue: Catalogue;
  readonly #configuration: StreamConfiguration;
  readonly #runtime: StreamRuntime;
  readonly #messages: AllRuleMessages;
  /** The rules whose last record is that they stopped. */
  readonly #stopped = new Set<string>();
  readonly #beforeStart: ReadonlySet<() => Promise<void>>;
  /** Reports errors of items, with repetitions suppressed. */
  readonly #reports: ErrorReports;
  /** The streams that rules with `qos` above 0 read; undefined if not computed since the last change. */
  #keptStreams: ReadonlySet<string> | undefined;
  #isStopped = false;
  #isBegun = false;
  /** The last change. Changes are made one at a time. */
  #last: Promise<unknown> = Promise.resolve();

  /** Read the stored configuration, once. Broker rules with sinks need it, and are restored before the streams. */
  readonly #configured = onceMade(async () => {
    for (const error of await this.#configuration.restore())
      this.#host.failed(error, 'reading the stored configuration of streams');
  });

  /** @param beforeStart functions that are called in turn before rules start */
  constructor(host: StreamsHost, beforeStart: ReadonlySet<() => Promise<void>>) {
    this.#host = host;
    this.#beforeStart = beforeStart;
    const { options } = host;
    this.#reports = new ErrorReports(() => host.clock.monotonic());
    this.#registry = new Registry();
    this.#catalogue = new Catalogue(host.definitions);
    this.#messages = new AllRuleMessages(host);
    const rules = () => Array.from(this.rules.byId.values(), ({ read }) => read);
    const config = new StreamConfiguration(host, this.#registry, { catalogue: this.#catalogue, rules });
    this.#configuration = config;
    this.config = {
      list: (kind) => config.list(kind),
      get: (key) => config.get(key),
      set: (...given) => this.#change(() => config.set(...given)),
      delete: (key) => this.#change(() => config.delete(key))
    };
    this.#runtime = new StreamRuntime(host, {
      messages: this.#messages,
      registry: this.#registry,
      catalogue: this.#catalogue,
      config,
      isKept: (stream) => (this.#keptStreams ??= this.#streamsOfKept()).has(stream),
      ready: async () => void (await this.#last),
      emitted: (rule, rows) => this.rules.observe(rule, rows)
    });
    const runtime = this.#runtime;
    this.rules = new StreamRules({
      clock: host.clock,
      options,
      table: host.rules,
      startChart: (actions, id) => host.startChart(actions, id),
      inTurn: (run) => this.#inTurn(run),
      during: (work) => host.during(work),
      failed: (error, during) => host.failed(error, during),
      checkRunning: () => this.#checkRunning(),
      changed: (rule, isRunning, reason) => this.#changed(rule, isRunning, reason),
      notStarted: ({ id }) => this.#recordStop(id, 'not started yet'),
      stillStopped: ({ id, code }) => this.#recordStop(id, RECORDED_STOPS[code]),
      plan: (read, planning) => runtime.plan(read, planning),
      outdated: (plan) => {
        const outdated = runtime.outdated(plan);
        if (outdated.size === 0) return [];
        const reads = (rule: DefinedStreamRule) =>
          rule.plan?.streams.some(({ definition }) => outdated.has(definition.sql));
        return [...this.rules.byId.values()].filter((rule) => rule.isRunning && reads(rule));
      },
      open: (rule, plan) =>
        runtime.open(rule, plan, {
          failed: (node, error) => this.#itemFailed(rule.id, node, error),
          broken: (error) => void this.#inTurn(async () => rule.isRunning && rule.fail(error))
        }),
      schedule: (read) => scheduleOf(read.definition.options),
      test: (read, rows) => runtime.test(read, rows),
      hold: (...given) => runtime.hold(...given),
      propertiesOf: (type) => this.#propertiesOf(type),
      forget: async (id) => {
        this.#reports.forget(id);
        this.#stopped.delete(id);
        runtime.forget(id);
        discardCaches(host.outboxes, id);
      }
    });
    this.#defineTypes();
  }

  get isRunning(): boolean {
    return !this.#isStopped;
  }

  /** Load the streams, tables and rules of the options and of the store. Called when the store is open, and again after a failure. */
  async restore(): Promise<void> {
    for (const { kind, name, fault } of this.#catalogue.restore(this.#host.options.definitions ?? []))
      this.#host.failed(new Error(fault), `reading the stored ${kind} ${name}, which stays in the store`);
    await this.#configured();
    this.rules.restore();
    const known = new Set(Array.from(this.rules.byId.values(), ({ id }) => id));
    this.#runtime.forgetOthers((id) => known.has(id));
  }

  /** Start the rules that should run, before the broker accepts connections. No effect if this has been done. */
  async begin(): Promise<void> {
    if (this.#isBegun) return;
    this.#isBegun = true;
    if (!this.#isStopped) await this.#startRules();
  }

  /** Stop with the broker. Resolves when sources and sinks are closed. */
  async halt(): Promise<void> {
    this.#isBegun = false;
    this.#runtime.halt();
    await this.#inTurn(() => this.rules.stopAll('broker_stopped'));
    this.rules.endObservers();
  }

  async start(): Promise<void> {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    if (this.#isBegun) await this.#startRules();
    this.#host.emit('streams.started', {});
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#runtime.halt();
    await this.#inTurn(() => this.rules.stopAll('service_stopped'));
    this.#host.emit('streams.stopped', {});
  }

  // ---------------------------------------------------------------------------------------------------------------- streams

  create(ddl: string): Promise<StreamDefinition> {
    return this.#change(() => this.#catalogue.define(ddl));
  }

  replace(ddl: string): Promise<StreamDefinition> {
    return this.#change(() => this.#catalogue.replace(ddl));
  }

  delete(kind: StreamKind, name: string, options: { readonly force?: boolean } = {}): Promise<void> {
    return this.#change(async () => {
      checkKind(kind);
      checkObject(options, 'options');
      if (this.#catalogue.get(kind, name) === undefined) throw notFound(kind, name);
      const [user] = this.rules.usersOf(name);
      if (user !== undefined && options.force !== true) {
        const text = `${kind} ${name} has been referenced by other rules, such as ${user}; use force to drop it`;
        throw new StateError('STREAM_IN_USE', text);
      }
      await this.#catalogue.drop(kind, name);
    });
  }

  async get(kind: StreamKind, name: string): Promise<StreamDefinition | undefined> {
    this.#checkRunning();
    checkKind(kind);
    return this.#catalogue.get(kind, name);
  }

  async list(kind: StreamKind): Promise<StreamDefinition[]> {
    this.#checkRunning();
    checkKind(kind);
    return this.#catalogue.list(kind);
  }

  async push(
    stream: string,
    row: Readonly<Record<string, unknown>>,
    meta?: Readonly<Record<string, unknown>>
  ): Promise<void> {
    this.#checkRunning();
    const definition = this.#catalogue.find(stream);
    if (definition === undefined) throw new NotFound('STREAM_NOT_FOUND', `stream ${stream} is not found`);
    if (typeof row !== 'object' || row === null || Array.isArray(row))
      throw new InvalidInput('ROW_INVALID', 'row', 'an object', row);
    const { records } = this.#host;
    const before = records?.added;
    this.#runtime.push(definition.name, row as StreamValueObject, meta as StreamValueObject | undefined);
    if (records?.added !== before) await records?.committed();
  }

  async rule(sql: string, input: Omit<StreamRuleInput, 'sql'> = {}): Promise<StreamRule> {
    checkObject(input, 'rule');
    const { id } = await this.rules.createAs({ ...input, sql, triggered: false }, true);
    // a rule with actions may have no one who iterates over its emissions
    let emissions = input.actions === undefined ? this.rules.emissions(id) : undefined;
    const iterate = () => (emissions ??= this.rules.emissions(id));
    const drop = () => this.rules.delete(id);
    await this.rules.start(id).catch(async (error) => {
      await drop();
      throw error;
    });
    return {
      id,
      drop,
      status: () => this.rules.status(id),
      [Symbol.asyncIterator]() {
        return rowsOf(iterate(), drop);
      },
      [INSPECT]: (depth: number, options: object) => streamRuleText(this.rules.byId.get(id), id, depth, options)
    } as StreamRule;
  }

  // ------------------------------------------------------------------------------------------------------------------ types

  async functions(): Promise<StreamFunction[]> {
    return [...this.#registry.functions.values()];
  }

  async sources(): Promise<SourceType[]> {
    return this.#registry.sources();
  }

  async sinks(): Promise<SinkType[]> {
    return this.#registry.sinks();
  }

  /** The sinks, as actions of broker rules. @param isStoreOpen whether the stored configuration can be read */
  async sinkActions(isStoreOpen: boolean): Promise<SinkAction[]> {
    if (isStoreOpen) await this.#configured();
    return this.#runtime.sinkActions();
  }

  createFunction(definition: StreamFunction): Promise<void> {
    return this.#defined(() => this.#registry.defineFunction(definition));
  }

  createSource(type: SourceType): Promise<void> {
    return this.#defined(() => this.#registry.defineSource(type));
  }

  createSink(type: SinkType): Promise<void> {
    return this.#defined(() => this.#registry.defineSink(type));
  }

  async deleteType(what: 'function' | 'source' | 'sink', name: string): Promise<boolean> {
    return this.#registry.undefine(what, name);
  }

  // ------------------------------------------------------------------------------------------------------- export and import

  async export(): Promise<Ruleset> {
    this.#checkRunning();
    const texts = (kind: StreamKind) =>
      Object.fromEntries(this.#catalogue.list(kind).map(({ name, sql }) => [name, sql]));
    const rules = [...this.rules.byId.values()].filter(({ read }) => !read.isTemporary);
    const config = this.#configuration.export();
    return {
      streams: texts('stream'),
      tables: texts('table'),
      rules: Object.fromEntries(rules.map(({ id, read }) => [id, read.fault?.json ?? JSON.stringify(read.definition)])),
      ...(config.length > 0 && { config })
    };
  }

  async import(ruleset: Ruleset): Promise<Imported> {
    this.#checkRunning();
    return importRuleset(ruleset, {
      catalogue: this.#catalogue,
      rules: this.rules,
      replace: (sql) => this.replace(sql),
      change: (run) => this.#change(run),
      config: this.#configuration,
      reopenRules: (ids) => this.#host.reopenRules(ids),
      nextSlice: () => this.#host.nextSlice()
    });
  }

  // ------------------------------------------------------------------------------------------------------------------------

  #defineTypes(): void {
    const { sources = [], sinks = [], functions = [], formats = [] } = this.#host.options;
    const topics = new MemoryTopics();
    const messages = {
      isOwn: (server: string) => this.#host.isOwn(server),
      publish: (...message: Parameters<AllRuleMessages['publish']>) => this.#messages.publish(...message)
    };
    for (const type of builtInSources(this.#host, topics, sources)) this.#registry.defineSource(type);
    for (const type of builtInSinks(messages, topics, sinks)) this.#registry.defineSink(type);
    for (const row of [...streamFunctions(), ...functions]) this.#registry.defineFunction(row);
    for (const format of formats) this.#registry.defineFormat(format);
  }

  /** The property table of a sink type. */
  #propertiesOf(name: string): FieldTable | undefined {
    const type = this.#registry.sinks().find((one) => one.name.toLowerCase() === name.toLowerCase());
    return type && { ...COMMON_SINK_PROPERTIES, ...fieldsOf(type.properties) };
  }

  /** Start the rules that should run, after the registered functions. */
  async #startRules(): Promise<void> {
    for (const run of this.#beforeStart)
      await run().catch((error) => this.#host.failed(error, 'a function registered with beforeStart'));
    await this.#inTurn(() => this.rules.startAll());
  }

  #changed({ id: rule, code, held }: DefinedStreamRule, isRunning: boolean, reason: string | undefined): void {
    if (isRunning) {
      if (this.#stopped.delete(rule)) this.#host.recorded('rule_started', { rule });
      this.#host.emit('streamRule.started', { rule });
    } else {
      const isStop = held === undefined && this.rules.byId.has(rule); // it is not replaced, and not deleted
      this.#recordStop(rule, reason ?? (isStop ? RECORDED_STOPS[code] : undefined));
      this.#host.emit('streamRule.stopped', { rule, reason });
    }
  }

  /** @param detail undefined: the stop is not recorded */
  #recordStop(rule: string, detail: string | undefined): void {
    if (detail === undefined) return;
    this.#stopped.add(rule);
    this.#host.recorded('rule_stopped', { rule, detail });
  }

  /** Report an error of an item, with repetitions suppressed. */
  #itemFailed(rule: string, node: string, error: unknown): void {
    if (this.#reports.isFirst(rule, node, error))
      this.#host.failed(withoutStack(error), `${node} of stream rule ${rule}`);
  }

  /** Define a type, and start the rules that wait for it. */
  async #defined(define: () => void): Promise<void> {
    define();
    if (this.#isBegun && !this.#isStopped) await this.#inTurn(() => this.rules.startAll());
  }

  /** The streams and tables that rules with `qos` above 0 read. */
  #streamsOfKept(): ReadonlySet<string> {
    const kept = [...this.rules.byId.values()].filter(({ definition }) => definition.options.qos > 0);
    return new Set(kept.flatMap(({ read }) => sourcesOf(read).map(({ name }) => name)));
  }

  #checkRunning(): void {
    if (!this.#isStopped) return;
    throw new StateError('STREAMS_STOPPED', 'the stream service is stopped; start it first');
  }

  #change<T>(run: () => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      this.#checkRunning();
      return run();
    });
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#last.then(run).finally(() => {
      this.#keptStreams = undefined;
      if (this.#isBegun && !this.#isStopped) this.#runtime.tidy();
    });
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** The rows of emissions. The rule is dropped when the iteration ends. */
async function* rowsOf(
  emissions: AsyncIterableIterator<RuleEmission>,
  drop: () => Promise<void>
): AsyncGenerator<RuleEmission['rows'], void, undefined> {
  try {
    for await (const { rows } of emissions) yield rows;
  } finally {
    await drop().catch(() => undefined); // the rule may have been dropped already
  }
}

/**
 * An error of a library that a source or sink uses, such as a database driver, is reduced to its message. Errors with a
 * code stay as they are, and so do those that indicate a bug, whose stack is useful.
 */
function withoutStack(error: unknown): unknown {
  const isDefect = error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
  if (!(error instanceof Error) || isDefect || (error as { readonly code?: unknown }).code !== undefined) return error;
  return new StreamFailure(error.message, error);
}
