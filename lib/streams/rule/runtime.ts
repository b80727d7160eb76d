// The order of a start: sinks and lookup tables are opened, then the graph, then the sources are attached and rows
// flow; a failure closes what was opened. What an earlier definition has left in the store is deleted only when the
// next one runs. Whether a checkpoint belongs to a definition is decided by a fingerprint of statement, options and
// streams: an option that has no effect is left out of it, so that checkpoints of earlier releases fit.

import type { Clock } from '../../base/clock.ts';
import { SamplePace } from '../../base/collections/samples.ts';
import { InvalidInput } from '../../base/errors.ts';
import { inSlices, WorkTime } from '../../base/slices.ts';
import { loadPatterns, type PatternCompiler } from '../../sql/patterns.ts';
import { Checkpoints } from '../checkpoints/checkpoints.ts';
import { RuleLog } from '../checkpoints/rule-log.ts';
import { type AllRuleMessages, RuleMessages } from '../checkpoints/rule-messages.ts';
import type { Catalogue } from '../ddl/catalogue.ts';
import type { StreamFunctionTools } from '../function.ts';
import { Pulse } from '../graph/counters.ts';
import { FunctionTarget } from '../graph/function-target.ts';
import type { Graph } from '../graph/graph.ts';
import { type OutputRows, SinkNode, type SinkTarget } from '../graph/sink-node.ts';
import type { StreamRecordStore, StreamsHost } from '../host.ts';
import type { LookupTable } from '../operators/operator.ts';
import { bind } from '../plan/bind.ts';
import { planOf } from '../plan/planner.ts';
import type { Registry } from '../registry.ts';
import { type SinkAction, sinkAction } from '../sinks/sink-action.ts';
import { planSink, type SinkPlan } from '../sinks/sink-plan.ts';
import { HeldRows } from '../sources/held-rows.ts';
import { SourceHub } from '../sources/hub.ts';
import { parseStreamStatement } from '../statement.ts';
import { DEFAULT_BOUNDS } from '../streams-options.ts';
import type {
  EmissionFunction,
  RuleOptions,
  StreamBounds,
  StreamDefinition,
  StreamRuleTest,
  TestRow
} from '../types.ts';
import { parseTime } from '../values/time-pattern.ts';
import { type Collection, type Tuple, topicOf } from '../values/tuple.ts';
import type { StreamValueObject } from '../values/values.ts';
import type { StreamConfiguration } from './configuration.ts';
import type { DefinedStreamRule, PlanConfiguration, Planning } from './defined-stream-rule.ts';
import { type PlannedAction, type ReadStreamRule, sinkName } from './definition.ts';
import type { RulePlan } from './rule-plan.ts';
import { offsetMinutes, ruleTools, usesPatterns } from './rule-tools.ts';
import { Running } from './running.ts';
import { sampleSteps } from './sample-run.ts';

/** Time limit of a test, in milliseconds. */
const TEST_MS = 1_000;

/** Dependencies of the runtime on the service. */
interface RuntimeHost {
  readonly registry: Registry;
  readonly catalogue: Catalogue;
  readonly config: StreamConfiguration;
  /** The messages published by the sink `mqtt`. */
  readonly messages: AllRuleMessages;
  /** True if a rule with `qos` above 0 reads the stream. */
  isKept(stream: string): boolean;
  /** Resolves when the change in progress, such as the start of the rules, is complete. */
  ready(): Promise<void>;
  /** Called for each emission of a rule. */
  emitted(rule: string, rows: OutputRows): void;
}

/** Reports of a running rule. */
interface RuleReports {
  /** Called when a node fails to process an item. */
  failed(node: string, error: unknown): void;
  /** Called when the rule cannot continue. */
  broken(error: unknown): void;
}

/** Plans rules and opens the resources that they need to run. */
export class StreamRuntime {
  readonly #host: StreamsHost;
  readonly #service: RuntimeHost;
  readonly #hub: SourceHub;
  readonly #bounds: StreamBounds;
  #patterns: PatternCompiler | undefined;
  /** Decides when rules take samples. */
  readonly #pace: SamplePace;
  #stopping = new AbortController();
  /** The stored state of rules with checkpoints, by rule id. */
  readonly #logs = new Map<string, RuleLog>();

  constructor(host: StreamsHost, service: RuntimeHost) {
    this.#host = host;
    this.#service = service;
    const { options, clock } = host;
    this.#pace = new SamplePace(clock);
    this.#bounds = { ...DEFAULT_BOUNDS, ...options.bounds };
    this.#hub = new SourceHub({
      clock,
      dataDir: options.dataDir,
      sections: service.config,
      parseTime: this.#parseTime,
      formats: () => service.config.formats(),
      source: (name) => service.registry.source(name),
      sources: () => service.registry.sources(),
      find: (name) => service.catalogue.find(name),
      notes: host.notes,
      node: host.node,
      records: host.records,
      isKept: (stream) => host.records !== undefined && service.isKept(stream),
      ready: () => service.ready(),
      pause: () => host.pause(),
      failed: (error, during) => host.failed(error, during),
      warn: (text) => host.warn(text)
    });
  }

  /** @returns undefined if the text does not match the pattern */
  readonly #parseTime = (text: string, pattern: string): number | undefined =>
    parseTime(text, pattern, (timeMs) => offsetMinutes(this.#host.options.timezone, timeMs));

  push(stream: string, row: StreamValueObject, meta: StreamValueObject | undefined): void {
    this.#hub.push(stream, row, meta);
  }

  /** Called when rules or streams have changed, or when the service has started. */
  tidy(): void {
    this.#hub.tidy(this.#stopping.signal);
  }

  /** Called when the service stops. */
  halt(): void {
    this.#stopping.abort();
    this.#stopping = new AbortController();
    this.#pace.end();
  }

  /**
   * @throws SqlError SQL_INVALID; NotFound STREAM_NOT_FOUND, SOURCE_NOT_FOUND, SINK_NOT_FOUND; InvalidInput
   *   STREAM_RULE_INVALID, STREAM_INVALID, PROPERTY_INVALID; BrokerError PACKAGE_MISSING
   */
  async plan({ definition, actions }: ReadStreamRule, planning: Planning = {}): Promise<RulePlan> {
    const { registry, catalogue } = this.#service;
    const { given, config = this.#service.config, isStored = false } = planning;
    const { sql, options } = definition;
    const { functions } = registry;
    const select = parseStreamStatement(sql);
    const texts = [sql, JSON.stringify(actions)];
    if (usesPatterns(texts, functions) || /regex/i.test(texts[1])) this.#patterns ??= await loadPatterns();
    const known = { get: (name: string) => given?.get(name) ?? catalogue.find(name) };
    const bound = bind(select, { text: sql, catalogue: known, functions, pattern: this.#patterns });
    for (const { definition: stream } of bound.sources) this.#hub.check(stream, config);
    const warn = isStored ? (text: string) => this.#host.warn(`stream rule ${definition.id}: ${text}`) : undefined;
    const warnings: string[] = [];
    const setup = { ...this.#sinkSetup(config), warn: (text: string) => void warnings.push(text) };
    const sinks = actions.map(({ type, properties }) => {
      if (type === undefined) return undefined;
      return planSink(registry.sink(type), config.connected(type, properties, warn), setup);
    });
    const plan = planOf(bound, { options, bounds: this.#bounds, sinks: actions.map(sinkName) });
    return { ...plan, sinks, warnings };
  }

  /** The streams and tables of a plan, by their text, whose source is open with an earlier configuration. */
  outdated(plan: RulePlan): ReadonlySet<string> {
    const outdated = plan.streams.filter(({ definition }) => this.#hub.isOutdated(definition));
    return new Set(outdated.map(({ definition }) => definition.sql));
  }

  /**
   * Hold back the rows of a running rule's streams while it is replaced, as far as the next plan has these streams,
   * too, and are not to be opened again. The caller must stop the rule in the same turn.
   * @param options of the rule with the next plan
   * @param isChecked whether the running rule has a `qos` above 0
   */
  hold(before: RulePlan, next: RulePlan, options: RuleOptions, isChecked: boolean): HeldRows {
    const { bufferLength, isEventTime, schemalessIntegers, qos } = options;
    const outdated = this.outdated(next);
    const same = next.streams.flatMap((stream) => {
      const { kind, position, definition } = stream;
      const other = before.streams.find((each) => each.position === position && each.definition.sql === definition.sql);
      if (kind !== 'stream' || other === undefined || outdated.has(definition.sql)) return [];
      return [{ ...stream, needed: united(stream.needed, other.needed) }]; // the previous rule may continue with them
    });
    const need = { isEventTime, integers: schemalessIntegers };
    const takesWhole = isChecked && qos > 0 && this.#host.records !== undefined;
    return new HeldRows(same, bufferLength, takesWhole, ({ definition, needed }, consumer) =>
      this.#hub.attach(definition, { ...need, columns: columnsOf(definition, needed, isEventTime) }, consumer)
    );
  }

  /** Open the sinks and lookup tables of a rule, and start the flow of rows. @throws the reason why it cannot start */
  async open(rule: DefinedStreamRule, plan: RulePlan, reports: RuleReports): Promise<Running> {
    const { id, read, held } = rule;
    const { clock } = this.#host;
    const sampler = rule.sampler(this.#pace, (kind, { node, message, topic }) =>
      this.#host.recorded(kind, { rule: id, topic, detail: `${node}: ${message}` })
    );
    const failed = (node: string, error: unknown, item?: Tuple | Collection) => {
      sampler.addError(node, error, () => item && topicOf(item));
      reports.failed(node, error);
    };
    for (const name of plan.repeated)
      this.#host.warn(
        `stream rule ${id}: several columns have the name ${name}, and only the last one is kept: rename the others with AS`
      );
    for (const text of plan.warnings) this.#host.warn(`stream rule ${id}: ${text}`);
    const pulse = new Pulse(clock);
    const opened = {
      pulse,
      tools: this.#toolsOf(id, clock),
      sinks: [] as SinkNode[],
      lookups: new Map<number, LookupTable>(),
      sampler
    };
    let running: Running | undefined;
    const filled = (sink: SinkNode, isFull: boolean) => running?.filled(sink, isFull);
    const { options } = read.definition;
    const need = { isEventTime: options.isEventTime, integers: options.schemalessIntegers };
    try {
      for (const [at, action] of read.actions.entries()) {
        const name = sinkName(action);
        let node: SinkNode | undefined;
        const { bufferLength, qos } = options;
        const failure = (error: unknown) => node?.fail(error);
        const target = await this.#openSink(id, { action, bufferLength, qos }, plan.sinks[at], failure);
        node = new SinkNode(name, target, { clock, pulse, sendsErrors: options.sendError, failed, filled });
        opened.sinks.push(node);
      }
      for (const { kind, definition, position, needed } of plan.streams)
        if (kind === 'lookup') opened.lookups.set(position, await this.#openLookup(definition, needed));
      running = new Running(plan, opened, {
        clock,
        attach: ({ definition, needed }, consumer, first) => {
          const columns = columnsOf(definition, needed, need.isEventTime);
          return this.#hub.attach(definition, { ...need, columns }, consumer, first);
        },
        attached: (stream, consumer) => held?.passTo(consumer, stream),
        emitted: (rows) => {
          if (sampler.outputs.isOpen) sampler.addOutput(rows);
          this.#service.emitted(id, rows);
        },
        during: (work) => this.#host.during(work),
        dropped: ({ definition: { name } }, rows, messages) => {
          if (rule.held !== undefined) return; // the next definition receives them
          const text = `stream rule ${id} ended within a long message of ${name}: ${rows} of its rows are dropped`;
          this.#host.warn(`${text}, and ${messages} messages after it`);
        },
        failed,
        ...this.#checkpointing(read, plan, opened, reports)
      });
    } catch (error) {
      const closing = opened.sinks.map(async ({ target }) => target.close());
      await Promise.allSettled([...closing, ...[...opened.lookups.values()].map(async ({ open }) => open.close())]);
      throw error;
    }
    try {
      await running.begin();
    } catch (error) {
      await running.close();
      throw error;
    }
    if (options.qos === 0) this.forget(id); // only once the rule runs, because its previous definition stays in use otherwise
    return running;
  }

  /** Delete the stored state of a rule. */
  forget(id: string): void {
    const { records } = this.#host;
    this.#service.messages.delete(id);
    if (records === undefined) return;
    const log = this.#logOf(id, records);
    log.ownedBy(undefined);
    log.discard();
    this.#logs.delete(id);
  }

  /** Delete the stored state of rules that no longer exist. @param isKnown whether a rule with this id exists */
  forgetOthers(isKnown: (id: string) => boolean): void {
    for (const id of this.#host.records?.rules() ?? []) if (!isKnown(id)) this.forget(id);
  }

  /** The checkpoint settings of a rule, if it makes checkpoints. */
  #checkpointing(
    { definition: { id, sql, options } }: ReadStreamRule,
    plan: RulePlan,
    { tools, sinks }: { readonly tools: StreamFunctionTools; readonly sinks: readonly SinkNode[] },
    { failed, broken }: RuleReports
  ): { checkpoints?(graph: Graph): Checkpoints } {
    const { records: store } = this.#host;
    const { messages } = this.#service;
    messages.delete(id);
    if (store === undefined || options.qos === 0) {
      if (options.qos > 0)
        this.#host.warn(`stream rule ${id}: option qos has no effect, because the broker has no store`);
      return {};
    }
    const log = this.#logOf(id, store);
    const streams = plan.streams.map(({ definition }) => definition.sql);
    const { checkpointBytes } = this.#bounds;
    const own = new RuleMessages(options.qos === 2, checkpointBytes, (error) => failed('sink_mqtt', error));
    messages.set(id, own);
    return {
      checkpoints: (graph) =>
        new Checkpoints(
          {
            ...{ store, log, tools, sinks, broken, clock: this.#host.clock, bounds: this.#bounds },
            messages: own,
            intervalMs: options.checkpointInterval,
            fingerprint: fingerprintOf(sql, options, streams),
            failed: (error) => failed('checkpoint', error),
            warn: (text) => this.#host.warn(`stream rule ${id}: ${text}`),
            pause: () => this.#host.pause()
          },
          graph
        )
    };
  }

  #logOf(id: string, store: StreamRecordStore): RuleLog {
    let log = this.#logs.get(id);
    if (log === undefined) this.#logs.set(id, (log = new RuleLog(id, store)));
    return log;
  }

  /**
   * Run a statement over sample rows, without its sinks, in slices.
   * @throws as `plan`; InvalidInput ROW_INVALID; STREAM_RULE_INVALID if the time limit is exceeded
   */
  async test(read: ReadStreamRule, rows: readonly TestRow[]): Promise<StreamRuleTest> {
    const plan = await this.plan(read);
    const { options, id } = read.definition;
    const { clock } = this.#host;
    const time = new WorkTime(clock, TEST_MS);
    const toolsOf = (sampleClock: Clock) => this.#toolsOf(id, sampleClock, time);
    const steps = sampleSteps(rows, { plan, options, startsAt: clock.now(), toolsOf, parseTime: this.#parseTime });
    const setup = { time, pause: () => this.#host.nextSlice(), tooLong: testTooLong };
    const { emissions, errors } = await inSlices(steps, setup);
    return { emissions, errors };
  }

  /** The sinks, as actions of broker rules. */
  sinkActions(): SinkAction[] {
    const { registry, config } = this.#service;
    const { clock, options } = this.#host;
    const setup = {
      ...this.#sinkSetup(config),
      ...{ clock, dataDir: options.dataDir, log: (text: string) => this.#host.log(text) }
    };
    return registry
      .sinks()
      .map((type) => sinkAction(type, { ...setup, connected: (given) => config.connected(type.name, given) }));
  }

  #sinkSetup(config: Pick<PlanConfiguration, 'formats'>) {
    return {
      tools: this.#toolsOf('', this.#host.clock),
      templateCharacters: this.#bounds.templateCharacters,
      formats: config.formats(),
      warn: (text: string) => this.#host.warn(text)
    };
  }

  async #openSink(
    ruleId: string,
    {
      action: { call, index },
      bufferLength,
      qos
    }: { readonly action: PlannedAction } & Pick<RuleOptions, 'bufferLength' | 'qos'>,
    plan: SinkPlan | undefined,
    failed: (error: unknown) => void
  ): Promise<SinkTarget> {
    if (plan === undefined) return new FunctionTarget(call as EmissionFunction, Math.max(1, bufferLength));
    const { clock, options, outboxes, records } = this.#host;
    const isHolding = qos === 2 && records !== undefined;
    const log = (line: string) => this.#host.log(line);
    const warn = (text: string) => this.#host.warn(text);
    return plan.open({ ruleId, index, clock, dataDir: options.dataDir, outboxes, isHolding, log, warn, failed });
  }

  #openLookup(definition: StreamDefinition, needed: ReadonlySet<string> | 'all'): Promise<LookupTable> {
    const columns = needed === 'all' ? (definition.columns ?? []).map(({ name }) => name) : [...needed];
    return this.#hub.openLookup(definition, columns);
  }

  /** The tools for the functions of a rule. */
  #toolsOf(ruleId: string, clock: Clock, time?: WorkTime): StreamFunctionTools {
    const { timezone } = this.#host.options;
    const { rowWeight } = this.#bounds;
    return ruleTools({ ruleId, clock, timezone, patterns: () => this.#patterns, rowWeight, time });
  }
}

/**
 * A fingerprint of a rule's definition. An option that earlier versions lack is omitted while it has no effect, so that
 * their checkpoints stay usable.
 */
function fingerprintOf(sql: string, options: RuleOptions, streams: readonly string[]): string {
  const { idleTimeout, ...others } = options;
  return JSON.stringify([sql, idleTimeout === 0 ? others : options, streams]);
}

function united(a: ReadonlySet<string> | 'all', b: ReadonlySet<string> | 'all'): ReadonlySet<string> | 'all' {
  return a === 'all' || b === 'all' ? 'all' : new Set([...a, ...b]);
}

/** The columns that a source reads: those of the statement, and that of the event time. */
function columnsOf(
  { options }: StreamDefinition,
  needed: ReadonlySet<string> | 'all',
  isEventTime: boolean
): ReadonlySet<string> | 'all' {
  const { TIMESTAMP: time } = options;
  return needed === 'all' || !isEventTime || !time ? needed : new Set([...needed, time]);
}

function testTooLong(): InvalidInput {
  const text = `the test was stopped after ${TEST_MS} ms: give it fewer rows, or make the statement cheaper`;
  return new InvalidInput('STREAM_RULE_INVALID', 'rows', `a test of at most ${TEST_MS} ms`, undefined, text);
}
