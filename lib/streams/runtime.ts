import { loadPatterns, type PatternCompiler } from '../sql/patterns.ts';
import type { StreamSelect } from '../sql/tree.ts';
import type { Catalogue } from './catalogue.ts';
import type { PlannedAction, ReadRule } from './definition.ts';
import { streamFunctions } from './functions/all.ts';
import type { FunctionTools, StreamFunction } from './functions/function.ts';
import type { LookupTable } from './graph/node.ts';
import { type OutputRows, SinkNode, type SinkTarget } from './graph/sink-node.ts';
import type { StreamsHost } from './host.ts';
import { bind } from './plan/bind.ts';
import type { PlannedStream, StreamPlan } from './plan/plan.ts';
import { planOf } from './plan/planner.ts';
import type { Registry } from './registry.ts';
import { Running } from './running.ts';
import { SourceHub } from './sources/hub.ts';
import { builtInSources } from './sources/built-in.ts';
import { parseStreamStatement } from './statement.ts';
import type { StreamRule } from './stream-rule.ts';
import { DEFAULT_BOUNDS } from './streams-options.ts';
import { parseTime } from './time-pattern.ts';
import type { SinkType, SourceType, StreamDefinition } from './types.ts';
import type { Value, ValueObject } from './values.ts';
import { offsetMinutes } from './time-zone.ts';

/** What the runtime uses of the service. */
export interface RuntimeHost {
  readonly registry: Registry;
  readonly catalogue: Catalogue;
  emitted(rule: string, rows: OutputRows): void;
}

/** The functions of a statement that compile regular expressions need a package. */
const PATTERN_CALL = /\b([a-z_]\w*)\s*\(/gi;

/** Plans rules, and opens what they need to run. */
export class StreamRuntime {
  readonly #host: StreamsHost;
  readonly #service: RuntimeHost;
  readonly #hub: SourceHub;
  #patterns: PatternCompiler | undefined;

  constructor(host: StreamsHost, service: RuntimeHost) {
    this.#host = host;
    this.#service = service;
    const { options } = host;
    this.#hub = new SourceHub({
      clock: host.clock,
      dataDir: options.dataDir,
      sourceConfig: options.sourceConfig,
      parseTime,
      formats: () => [],
      source: (name) => service.registry.source(name),
      failed: (error, during) => host.failed(error, during),
      warn: (text) => host.warn(text)
    });
  }

  push(stream: string, row: ValueObject, meta: ValueObject | undefined): void {
    this.#hub.push(stream, row, meta);
  }

  /**
   * @throws SqlError SQL_INVALID; NotFound STREAM_NOT_FOUND, SOURCE_NOT_FOUND, SINK_NOT_FOUND; InvalidInput STREAM_RULE_INVALID, PROPERTY_INVALID;
   *   BrokerError PACKAGE_MISSING
   */
  async plan({ definition, actions }: ReadRule): Promise<StreamPlan> {
    const { registry, catalogue } = this.#service;
    const { sql, options } = definition;
    const { functions } = registry;
    const select = parseStreamStatement(sql, (name) => functions.get(name.toLowerCase())?.kind);
    const usesPatterns = [...sql.matchAll(PATTERN_CALL)].some(
      ([, name]) => functions.get(name.toLowerCase())?.patternAt !== undefined
    );
    if (usesPatterns) this.#patterns ??= await loadPatterns();
    const known = { get: (name: string) => catalogue.find(name) };
    const bound = bind(select, { text: sql, catalogue: known, functions, pattern: this.#patterns });
    for (const source of bound.sources) registry.source(sourceTypeName(source.definition));
    for (const action of actions) if (action.type !== undefined) checkSink(registry.sink(action.type), action);
    return planOf(bound, { options, bounds: this.#bounds, sinks: actions.map(sinkName) });
  }

  /** Open the sinks and lookup tables of a rule, and let rows flow. @throws what prevents it */
  async open(rule: StreamRule, plan: StreamPlan): Promise<Running> {
    const { host, service } = { host: this.#host, service: this.#service };
    const { id, read } = rule;
    const failed = (node: string, error: unknown) => service.failed(id, node, error);
    const opened = { tools: this.#toolsOf(id, host.clock), sinks: [] as SinkNode[], lookups: new Map<number, LookupTable>() };
    const { options } = read.definition;
    const need = { isEventTime: options.isEventTime, integers: options.schemalessIntegers };
    try {
      for (const action of read.actions) {
        const target = await this.#openSink(rule, action);
        const node = new SinkNode(sinkName(action), target, { clock: host.clock, sendsErrors: options.sendError, failed });
        opened.sinks.push(node);
      }
      for (const { kind, definition, position, needed } of plan.streams)
        if (kind === 'lookup') opened.lookups.set(position, await this.#openLookup(definition, needed));
    } catch (error) {
      await Promise.allSettled(opened.sinks.map(({ target }) => target.close()));
      throw error;
    }
    const running = new Running(plan, opened, {
      clock: host.clock,
      attach: ({ definition, needed }, consumer) => this.#hub.attach(definition, { ...need, columns: needed }, consumer),
      emitted: (rows) => service.emitted(id, rows),
      failed
    });
    try {
      await running.begin();
    } catch (error) {
      await running.close();
      throw error;
    }
    return running;
  }

  /** Run a statement over sample rows, without its sinks. @throws as `plan`; InvalidInput ROW_INVALID */
  async test(read: ReadRule, rows: readonly TestRow[]): Promise<StreamRuleTest> {
    const plan = await this.plan(read);
    const { options, id } = read.definition;
    const toolsOf = (clock: Clock) => this.#toolsOf(id, clock);
    return runSamples(rows, { plan, options, startsAt: this.#host.clock.now(), toolsOf });
  }

  async #openLookup(definition: StreamDefinition, needed: ReadonlySet<string> | 'all'): Promise<LookupTable> {
    const columns = needed === 'all' ? (definition.columns ?? []).map(({ name }) => name) : [...needed];
    return this.#hub.openLookup(definition, columns);
  }

  async #openSink(rule: StreamRule, action: PlannedAction): Promise<SinkTarget> {
    const { type, call } = action;
    if (type === undefined) return new FunctionTarget(call as EmissionFunction);
    return openEmitter(this.#service.registry.sink(type), action, rule.definition, this.#host);
  }

  get #bounds(): StreamBounds {
    return { ...DEFAULT_BOUNDS, ...this.#host.options.bounds };
  }

  /** What the functions of a rule use. */
  #toolsOf(ruleId: string, clock: Clock): FunctionTools {
    const { timezone } = this.#host.options;
    return {
      ruleId,
      startedAt: clock.now(),
      now: () => clock.now(),
      random: Math.random,
      pattern: (text) => {
        if (this.#patterns === undefined) throw new StreamFailure('regular expressions are not loaded');
        return this.#patterns(text);
      },
      offsetMinutes: (timeMs) =>
        timezone === undefined ? -new Date(timeMs).getTimezoneOffset() : zoneOffsetMinutes(timezone, timeMs),
      property: () => undefined,
      hits: { count: 0, lastAt: 0 },
      frame: { range: undefined, rowNumber: 0 }
    };
  }
}

/** The name of the node of a sink: `sink_mqtt_0`. */
function sinkName({ type = 'function', index }: PlannedAction): string {
  return `sink_${type}_${index}`;
}

/** A function of the app as a sink. */
class FunctionTarget implements SinkTarget {
  readonly #call: EmissionFunction;
  pending = 0;

  constructor(call: EmissionFunction) {
    this.#call = call;
  }

  push(rows: OutputRows): void | Promise<void> {
    const result = this.#call(rows);
    if (!isThenable(result)) return undefined;
    this.pending++;
    return Promise.resolve(result).then(
      () => void this.pending--,
      (error) => {
        this.pending--;
        throw error;
      }
    );
  }

  async close(): Promise<void> {}
}

function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
