// The order of operators is the documented one and visible to users: names such as `op_2_filter` are in the topology,
// in metrics and in checkpoints, which find the state of an operator by its name. So numbers are given in the order
// of the data, and a change of the order makes states of earlier checkpoints unusable. Parts of WHERE move before the
// window where that makes no difference; in the time of events, and for windows that count rows, they stay behind it.

import type { BoundAnalytic, BoundField, BoundPredicate, BoundSelect, BoundSource } from '../expressions/bound.ts';
import type { PlanNode, Topology } from '../types.ts';
import { lookupStep } from './lookup-step.ts';
import type { PlannedStream, PlanSettings, StreamPlan } from './plan.ts';
import { isSource, type PlannedInput, type PlannedNode, type PlannedSource } from './plan.ts';
import {
  aggregatedStep,
  aggregateStep,
  alignerStep,
  analyticStep,
  canAggregateEarly,
  delayStep,
  filterStep,
  havingStep,
  joinStep,
  limitStep,
  orderStep,
  projectStep,
  rowFilterStep,
  type Step,
  watermarkStep,
  windowStep,
  withEmissionSlots
} from './steps.ts';

/**
 * Determine the operators that evaluate a statement, and their order.
 * @throws InvalidInput STREAM_RULE_INVALID if the options of the rule do not allow its window
 */
export function planOf(select: BoundSelect, settings: PlanSettings): StreamPlan {
  return new PlanBuilder(select, settings).plan();
}

/** Prefixes of the error messages of operators [stream rules 4.7]. */
const PREFIXES: Readonly<Record<string, string | undefined>> = {
  filter: 'run Where error: ',
  join: 'run Join error: ',
  aggregate: 'run Group By error: ',
  having: 'run Having error: ',
  order: 'run Order By error: ',
  project: 'run Select error: '
};

/** Numbers the operators of a statement, in the order of the data flow [stream rules 10.1]. */
class PlanBuilder {
  readonly #select: BoundSelect;
  readonly #settings: PlanSettings;
  readonly #nodes: PlannedNode[] = [];
  readonly #streams: PlannedStream[] = [];
  readonly #sources: PlannedSource[] = [];
  #number = 0;

  constructor(select: BoundSelect, settings: PlanSettings) {
    this.#select = select;
    this.#settings = settings;
  }

  plan(): StreamPlan {
    const root = this.#evaluated(this.#joined());
    return {
      streams: this.#streams,
      sourceCount: this.#select.sources.length,
      slotCount: this.#select.slots.count,
      repeated: repeatedNames(this.#select.fields),
      root,
      nodes: this.#nodes,
      topology: topologyOf(this.#sources, this.#nodes, root, this.#settings.sinks),
      explain: explainOf(root)
    };
  }

  /** The streams with their window, joined with the tables. */
  #joined(): PlannedInput {
    const { sources, joins } = this.#select;
    const settings = this.#settings;
    const streams = sources.filter(({ role }) => role === 'stream');
    const tables = sources.filter(({ role }) => role === 'table');
    let end = this.#windowed(streams);
    if (tables.length > 0) {
      const ends = tables.map((table) => this.#filtered(this.#source(table), this.#partsOf(table)));
      end = this.#add('join_aligner', alignerStep(tables, this.#select, settings), end, ends);
    }
    const found = joins.filter(({ source }) => sources[source].role !== 'lookup');
    if (found.length > 0) end = this.#add('join', joinStep(found, settings), end);
    for (const join of joins) {
      const { role, definition, position, needed } = sources[join.source];
      if (role !== 'lookup') continue;
      this.#streams.push({ definition, position, needed, kind: 'lookup' });
      end = this.#add('lookup', lookupStep(join, this.#select, settings), end);
    }
    return end;
  }

  /** The rows of streams, up to their window. */
  #windowed(streams: readonly BoundSource[]): PlannedInput {
    const select = this.#select;
    const { window } = select;
    const { isEventTime } = this.#settings.options;
    const isAlone = select.sources.length === 1;
    let ends = streams.map((stream) => {
      const source = this.#source(stream);
      if (isEventTime) return source;
      return this.#filtered(isAlone ? this.#analyzed(source, 'rows') : source, this.#partsOf(stream));
    });
    if (isEventTime) {
      ends = [this.#add('watermark', watermarkStep(streams.length, this.#settings), ends[0], ends.slice(1))];
      if (isAlone) ends = [this.#analyzed(ends[0], 'rows')];
    }
    if (window === undefined) return ends[0];
    const { filter } = window;
    // a window filter has the number of its window, and the name of its stream if there are several
    if (filter !== undefined)
      ends = ends.map((end, index) => {
        const kind = ends.length === 1 ? 'windowFilter' : `windowFilter_${this.#shownName(streams[index])}`;
        return this.#numbered(this.#number + 1, kind, rowFilterStep([filter], 'FILTER'), end);
      });
    const groups = this.#aggregatesEarly ? select : undefined;
    const step = withEmissionSlots(select, windowStep(window, this.#settings, groups));
    return this.#add('window', step, ends[0], ends.slice(1));
  }

  /** The operators for rows, or for the rows of windows, up to the emissions. */
  #evaluated(from: PlannedInput): PlannedNode {
    const select = this.#select;
    const { isGrouped, having, orderBy, limit, sources } = select;
    let end = sources.length > 1 ? this.#analyzed(from, 'rows') : from;
    end = this.#filtered(end, this.#partsBehind(), select.window === undefined && sources.length === 1);
    if (this.#aggregatesEarly) end = this.#add('aggregate', aggregatedStep(select), end);
    else if (isGrouped)
      end = this.#add('aggregate', withEmissionSlots(select, aggregateStep(select, this.#settings)), end);
    end = this.#analyzed(end, 'groups');
    if (having !== undefined) end = this.#add('having', havingStep(having), end);
    if (orderBy.length > 0) end = this.#add('order', orderStep(select), end);
    if (limit !== undefined) end = this.#add('limit', limitStep(limit), end);
    end = this.#analyzed(end, 'results');
    const project = this.#add('project', projectStep(select, this.#settings), end);
    return select.isDelayed ? this.#add('delay', delayStep(this.#settings), project) : project;
  }

  /** True if the window aggregates its rows as they arrive, because no operator lies between it and the groups. */
  get #aggregatesEarly(): boolean {
    const isAlone = this.#select.sources.length === 1;
    return isAlone && this.#partsBehind().length === 0 && canAggregateEarly(this.#select);
  }

  #source(source: BoundSource): PlannedSource {
    const { position, role, definition, needed } = source;
    this.#streams.push({ definition, position, needed, kind: role });
    const shown = this.#shownName(source);
    const word = role === 'table' ? 'tableprocessor' : 'preprocessor';
    const wraps = role === 'stream' && this.#select.sources.length > 1;
    const planned = { name: `op_${++this.#number}_${word}_${shown}`, sourceName: `source_${shown}`, position, wraps };
    this.#sources.push(planned);
    return planned;
  }

  /** The name of a source, or its alias if the statement uses the source twice. */
  #shownName({ position, name, label }: BoundSource): string {
    const isTwice = this.#select.sources.some((other) => other.position !== position && other.name === name);
    return isTwice ? label : name;
  }

  /** The parts of WHERE that filter the rows of a source before the window. */
  #partsOf({ position }: BoundSource): readonly BoundPredicate[] {
    const { sources, where, window } = this.#select;
    // in event time, and for windows that count rows, WHERE is evaluated after the window [stream rules 5.1]
    if (window !== undefined && (this.#settings.options.isEventTime || window.node.kind === 'count')) return [];
    return where.filter(({ movesTo, uses }) => (sources.length === 1 ? !uses.frame : movesTo === position));
  }

  /** The parts of WHERE after window and join. */
  #partsBehind(): readonly BoundPredicate[] {
    const { sources, where } = this.#select;
    const isEarly = !this.#settings.options.isEventTime;
    const found = sources.filter(({ role }) => role === 'table' || (role === 'stream' && isEarly));
    const before = new Set(found.flatMap((source) => this.#partsOf(source)));
    return where.filter((part) => !before.has(part));
  }

  /** @param isOfRows whether rows are filtered, and not those of windows and joins */
  #filtered(end: PlannedInput, parts: readonly BoundPredicate[], isOfRows = true): PlannedInput {
    return parts.length === 0 ? end : this.#add('filter', isOfRows ? rowFilterStep(parts) : filterStep(parts), end);
  }

  #analyzed(end: PlannedInput, phase: BoundAnalytic['phase']): PlannedInput {
    const calls = this.#select.analytics.filter((call) => call.phase === phase);
    if (calls.length === 0) return end;
    return this.#add('analytic', analyticStep(calls, this.#select, this.#settings), end);
  }

  #add(kind: string, step: Step, end: PlannedInput, others: readonly PlannedInput[] = []): PlannedNode {
    return this.#numbered(++this.#number, kind, step, end, others);
  }

  #numbered(
    number: number,
    kind: string,
    { about, make }: Step,
    end: PlannedInput,
    others: readonly PlannedInput[] = []
  ): PlannedNode {
    const prefix = PREFIXES[kind] ?? '';
    const node = { name: `op_${number}_${kind}`, about, prefix, make, inputs: [end, ...others] };
    this.#nodes.push(node);
    return node;
  }
}

function topologyOf(
  sources: readonly PlannedSource[],
  nodes: readonly PlannedNode[],
  root: PlannedNode,
  sinks: readonly string[]
): Topology {
  const edges: Record<string, string[]> = {};
  for (const { name, sourceName } of sources) edges[sourceName] = [name];
  for (const node of nodes) for (const input of node.inputs) (edges[input.name] ??= []).push(node.name);
  edges[root.name] = [...sinks];
  return { sources: sources.map(({ sourceName }) => sourceName), edges };
}

function explainOf(input: PlannedInput): PlanNode {
  if (isSource(input)) return { name: input.name, about: `rows of ${input.sourceName}`, inputs: [] };
  return { name: input.name, about: input.about, inputs: input.inputs.map(explainOf) };
}

function repeatedNames(fields: readonly BoundField[]): string[] {
  const names = new Set<string>();
  const repeated = new Set<string>();
  for (const field of fields) {
    if (field.type !== 'column') continue;
    if (names.has(field.name)) repeated.add(field.name);
    names.add(field.name);
  }
  return [...repeated];
}
