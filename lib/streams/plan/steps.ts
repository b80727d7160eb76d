// A step is made when a rule is planned and its operator when the rule starts: `make` gets the tools of that start,
// and nothing of one run may be kept in a step. `about` is what `explain` shows. Values become plain values (integers
// as numbers where they are exact) in the last step only; before it, they are those of `values.ts`.

import { InvalidInput } from '../../base/errors.ts';
import { setKey } from '../../sql/values.ts';
import { isHeavier, MAX_WEIGHT } from '../../sql/weight.ts';
import type {
  BoundAnalytic,
  BoundExpression,
  BoundJoin,
  BoundSelect,
  BoundSource,
  BoundWindow
} from '../expressions/bound.ts';
import type { AnalyticFunction, StreamFunctionTools } from '../function.ts';
import { makeAggregate } from '../operators/aggregate.ts';
import { makeAnalytic } from '../operators/analytic.ts';
import { makeCollectionFilter } from '../operators/collection-filter.ts';
import { testOf } from '../operators/condition.ts';
import { makeDelay } from '../operators/delay.ts';
import { GroupFailures, type GroupSpec } from '../operators/groups.ts';
import { makeJoin } from '../operators/join.ts';
import { makeJoinAligner } from '../operators/join-aligner.ts';
import { makeLimit } from '../operators/limit.ts';
import type { MakeOperator, NodeSetup, Operator, RowFilter } from '../operators/operator.ts';
import { makeOrder } from '../operators/order.ts';
import { makeProject } from '../operators/project.ts';
import { makeWatermark } from '../operators/watermark.ts';
import { checkWindow, type WindowShape, windowShape } from '../operators/windows/spec.ts';
import { isIncremental, makeIncrementalWindow, makeWindow } from '../operators/windows/window.ts';
import { type Collection, causeOf, type Evaluate, GroupRow, isCollection, type Tuple } from '../values/tuple.ts';
import { isNull, plainRow, type StreamValue, type StreamValueObject, tooHeavy } from '../values/values.ts';
import type { PlanSettings } from './plan.ts';
import { emissionSlots } from './slots.ts';

/** An operator of a plan, with its description. */
export interface Step {
  readonly about: string;
  // biome-ignore lint/suspicious/noExplicitAny: the planner connects only operators that fit
  readonly make: (setup: NodeSetup<any>) => Operator<any> | RowFilter;
}

// biome-ignore lint/suspicious/noExplicitAny: as above
function step(about: string, make: (tools: StreamFunctionTools) => MakeOperator<any, any>): Step {
  return { about, make: (setup) => make(setup.tools)(setup) };
}

/** The filter of rows by a part of WHERE, or by FILTER of a window. The condition is the conjunction of the parts. */
export function rowFilterStep(parts: readonly BoundExpression[], word: 'WHERE' | 'FILTER' = 'WHERE'): Step {
  return {
    about: `${word} ${textOf(parts, ' AND ')}`,
    make: ({ tools }) => ({ condition: conjunctionOf(parts, tools), reason: word, values: readsOf(parts, tools) })
  };
}

/** The operator for a part of WHERE after a window or a join. */
export function filterStep(parts: readonly BoundExpression[]): Step {
  return step(`WHERE ${textOf(parts, ' AND ')}`, (tools) =>
    makeCollectionFilter(conjunctionOf(parts, tools), tools.frame, { reason: 'WHERE', values: readsOf(parts, tools) })
  );
}

/** The operator of HAVING, which counts the groups that pass. */
export function havingStep(having: BoundExpression): Step {
  return step(`HAVING ${having.text}`, (tools) => {
    const { groupHits } = tools;
    const excluded = { reason: 'HAVING', values: readsOf([having], tools) } as const;
    return makeCollectionFilter(conjunctionOf([having], tools), tools.frame, excluded, (end) => {
      groupHits.count++;
      groupHits.lastAt = end;
    });
  });
}

/** @param streams number of streams of the window */
export function watermarkStep(streams: number, { options, bounds }: PlanSettings): Step {
  const { lateTolerance, idleTimeout } = options;
  const spec = { streams, lateTolerance, idleTimeout, mostRows: bounds.windowRows };
  return step(`rows in the order of their times, up to ${lateTolerance} ms late`, () => makeWatermark(spec));
}

/**
 * The window of a statement.
 * @param groups if given, rows are aggregated as they arrive; if undefined, they are stored
 */
export function windowStep(window: BoundWindow, settings: PlanSettings, groups: BoundSelect | undefined): Step {
  const { options, bounds } = settings;
  const shape = shapeOf(window, undefined);
  const fault = checkWindow(shape, options.isEventTime);
  if (fault !== undefined) throw new InvalidInput('STREAM_RULE_INVALID', 'sql', 'another window', shape.kind, fault);
  return step(describeWindow(shape), (tools) => {
    const spec = {
      ...shapeOf(window, tools),
      isEventTime: options.isEventTime,
      align: options.windowAlign,
      emitsEmpty: options.emitEmptyWindows,
      offsetMinutes: (timeMs: number) => tools.offsetMinutes(timeMs),
      mostRows: bounds.windowRows,
      mostGroups: bounds.groups
    };
    return groups === undefined ? makeWindow(spec) : makeIncrementalWindow(spec, groupSpec(groups, settings, tools));
  });
}

/** Check whether the rows of a window can be aggregated as they arrive, with the same result. */
export function canAggregateEarly(select: BoundSelect): boolean {
  const { window, isGrouped, aggregates, groupBy, slots } = select;
  if (window === undefined || !isGrouped || slots.ofEmission.length > 0) return false;
  const expressions = [...groupBy, ...aggregates.flatMap(({ args }) => args)];
  return isIncremental(shapeOf(window, undefined), aggregates) && expressions.every(({ uses }) => !uses.frame);
}

function shapeOf(
  { node, when, conditions, partitionBy }: BoundWindow,
  tools: StreamFunctionTools | undefined
): WindowShape {
  const bound = new Map(node.conditions.map((each, index) => [each, conditions[index]] as const));
  if (node.when !== undefined && when !== undefined) bound.set(node.when, countingHits(when));
  const never: Evaluate = () => undefined;
  const shape = windowShape(node, (each) => (tools === undefined ? never : (bound.get(each)?.make(tools) ?? never)));
  return shape.kind !== 'state' || tools === undefined ? shape : { ...shape, partitionBy: made(partitionBy, tools) };
}

/** OVER (WHEN ...) of a window, which counts the rows that trigger. */
function countingHits(when: BoundExpression): BoundExpression {
  return {
    ...when,
    make: (tools) => {
      const condition = when.make(tools);
      const { hits } = tools;
      return (tuple) => {
        const value = condition(tuple);
        if (value === true) {
          hits.count++;
          hits.lastAt = tuple.timestamp;
        }
        return value;
      };
    }
  };
}

function describeWindow(shape: WindowShape): string {
  const lengths = Object.entries(shape).filter(([, value]) => typeof value === 'number');
  return `${shape.kind} window: ${lengths.map(([name, value]) => `${name} ${value}`).join(', ')}`;
}

/** The operator that adds the rows of tables. */
export function alignerStep(tables: readonly BoundSource[], select: BoundSelect, { bounds }: PlanSettings): Step {
  // sources store the rows of tables, and pass on all of them after each change
  const specs = tables.map(({ position }) => ({ source: position, retain: 'all' as const }));
  const spec = { sources: select.sources.length, tables: specs, mostRows: bounds.windowRows };
  return step(`tables ${tables.map(({ name }) => name).join(', ')}`, () => makeJoinAligner(spec));
}

export function joinStep(joins: readonly BoundJoin[], { options, bounds }: PlanSettings): Step {
  const about = joins.map(({ kind, on }) => `${kind.toUpperCase()} JOIN ON ${textOf(on, ' AND ')}`).join('; ');
  return step(about, (tools) => {
    const steps = joins.map(({ kind, source, on }) => {
      const equality = on.find((part) => part.equality !== undefined)?.equality;
      return {
        kind,
        source,
        ...(on.length > 0 && { on: conjunctionOf(on, tools) }),
        ...(equality && { equality: { left: equality.left.make(tools), right: equality.right.make(tools) } })
      };
    });
    return makeJoin({ first: 0, steps, rows: options.joinRows, mostRows: bounds.joinRows, frame: tools.frame });
  });
}

export function analyticStep(calls: readonly BoundAnalytic[], select: BoundSelect, { bounds }: PlanSettings): Step {
  return step(textOf(calls, ', '), (tools) =>
    makeAnalytic({
      calls: calls.map(({ function: row, names, slot, args, partitionBy, when }) => ({
        function: row as AnalyticFunction, // an expanding function has a state like an analytic one
        names,
        slot,
        args: made(args, tools),
        partitionBy: made(partitionBy, tools),
        ...(when && { when: when.make(tools) })
      })),
      slots: select.slots.count,
      tools,
      frame: tools.frame,
      mostGroups: bounds.groups
    })
  );
}

export function aggregateStep(select: BoundSelect, settings: PlanSettings): Step {
  const about = `groups by ${textOf(select.groupBy, ', ') || 'nothing'}: ${select.aggregates.map(({ text }) => text).join(', ')}`;
  return step(about, (tools) => makeAggregate(groupSpec(select, settings, tools), tools.frame));
}

/** The operator after a window that has already aggregated its rows. */
export function aggregatedStep(select: BoundSelect): Step {
  const about = `groups by ${textOf(select.groupBy, ', ') || 'nothing'}, aggregated as rows arrive`;
  return step(about, () => (setup) => ({ push: (item) => setup.output.push(item) }));
}

function groupSpec(select: BoundSelect, { bounds }: PlanSettings, tools: StreamFunctionTools): GroupSpec {
  return {
    keys: made(select.groupBy, tools),
    aggregates: select.aggregates.map(({ function: row, args }) => ({ function: row, args: made(args, tools) })),
    tools,
    mostGroups: bounds.groups
  };
}

export function orderStep({ orderBy }: BoundSelect): Step {
  const about = `ORDER BY ${orderBy.map(({ expression, isDescending }) => `${expression.text}${isDescending ? ' DESC' : ''}`).join(', ')}`;
  return step(about, (tools) => {
    const keys = orderBy.map(({ expression, isDescending }) => ({ evaluate: expression.make(tools), isDescending }));
    return makeOrder(keys, tools.frame);
  });
}

/** The operator that delays emissions. */
export function delayStep({ options }: PlanSettings): Step {
  return step('emissions wait for delay()', (tools) => makeDelay(tools, Math.max(1, options.bufferLength)));
}

export function limitStep(limit: number): Step {
  return step(`LIMIT ${limit}`, () => makeLimit(limit));
}

/** Give the tuples of each emission slots without the values of the previous one. */
export function withEmissionSlots(select: BoundSelect, { about, make }: Step): Step {
  const { slots } = select;
  if (slots.ofEmission.length === 0) return { about, make };
  const fresh = (tuple: Tuple) => tuple.with(emissionSlots(slots, tuple.slots));
  return {
    about,
    make: (setup) =>
      make({
        ...setup,
        output: {
          push: (item: Tuple | Collection) =>
            setup.output.push(isCollection(item) ? { ...item, tuples: item.tuples.map(fresh) } : fresh(item)),
          flush: (time) => setup.output.flush(time)
        }
      })
  };
}

/** The operator that creates emissions, whose rows are plain objects. */
export function projectStep(select: BoundSelect, { options }: PlanSettings): Step {
  const { sendNilField, sendMetaToSink } = options;
  return step('SELECT', (tools) => {
    const project = makeProject(select, tools, { sendNilField, sendMetaToSink });
    const { frame, hits, rowWeight: mostWeight = MAX_WEIGHT } = tools;
    const countsHits = select.window?.when === undefined;
    return ({ output, failed }) => ({
      push(item: Tuple | Collection) {
        const rows: StreamValueObject[] = [];
        const failures = new GroupFailures();
        if (!isCollection(item)) {
          frame.range = undefined;
          frame.rowNumber = 1;
          project(item, rows);
        } else {
          frame.range = item.range;
          for (let index = 0; index < item.tuples.length; index++) {
            frame.rowNumber = index + 1;
            const tuple = item.tuples[index];
            try {
              project(tuple, rows);
            } catch (error) {
              if (!(tuple instanceof GroupRow)) throw error;
              failures.add(error); // affects only this group
            }
          }
          failures.report({ failed }, item.range.cause);
          if (rows.length === 0 && !failures.isEmpty) return;
        }
        if (countsHits) {
          hits.count++;
          hits.lastAt = isCollection(item) ? item.range.end : item.timestamp;
        }
        for (let index = 0; index < rows.length; index++) rows[index] = rowOfResult(rows[index], mostWeight);
        output.push({ rows, cause: causeOf(item) });
      }
    });
  });
}

/** A row that contains only shorter strings, numbers and booleans is not weighed. */
const LONG_TEXT = 65_536;

/**
 * A row of an emission with plain values. It is copied, and thereby weighed, only if a value is not plain.
 * @throws StreamFailure if it is too heavy
 */
function rowOfResult(row: StreamValueObject, most: number): StreamValueObject {
  let isLong = false;
  for (const name in row) {
    const value = row[name];
    const type = typeof value;
    if (type === 'bigint' || type === 'object' || (type === 'number' && !Number.isFinite(value)))
      return plainRow(row, most);
    if (type === 'string' && (value as string).length > LONG_TEXT) isLong = true;
  }
  if (isLong && isHeavier(row, most)) throw tooHeavy('a row of the result', most);
  return row;
}

/** The conjunction of the parts of a condition, for a rule that starts. */
export function conjunctionOf(parts: readonly BoundExpression[], tools: StreamFunctionTools): Evaluate {
  const [first, ...others] = made(parts, tools);
  if (others.length === 0) return first;
  const tests = [first, ...others].map(testOf);
  return (tuple) => {
    for (const test of tests) if (!test(tuple)) return false;
    return true;
  };
}

/** A function that reads the values on which conditions depend. What they need is made at the first call, because most rules never take a sample. */
function readsOf(parts: readonly BoundExpression[], tools: StreamFunctionTools): (tuple: Tuple) => StreamValueObject {
  let reads: readonly (readonly [string, Evaluate])[] | undefined;
  return (tuple) => {
    reads ??= parts.flatMap(({ reads = [] }) => reads.map(({ text, make }) => [text, make(tools)] as const));
    const values: Record<string, StreamValue> = {};
    for (const [text, read] of reads) {
      const value = read(tuple);
      if (!isNull(value)) setKey(values, text, value);
    }
    return values;
  };
}

function textOf(expressions: readonly { readonly text: string }[], separator: string): string {
  return expressions.map(({ text }) => text).join(separator);
}

function made(expressions: readonly BoundExpression[], tools: StreamFunctionTools): Evaluate[] {
  return expressions.map((expression) => expression.make(tools));
}
