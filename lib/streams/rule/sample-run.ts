// A test of a statement runs the real plan on its own clock, whose timers fire only between rows, so a test of a day
// takes no time. It is a generator, because a test may be long and other work has to run in between; its caller ends
// it after a time limit. Rows, timers and outputs are limited.

import type { Clock } from '../../base/clock.ts';
import { TimerHeap } from '../../base/collections/timer-heap.ts';
import { errorText, InvalidInput } from '../../base/errors.ts';
import { compileConversion } from '../formats/convert.ts';
import { type ParseTime, timeOf } from '../formats/convert-column.ts';
import type { StreamFunctionTools } from '../function.ts';
import { Graph } from '../graph/graph.ts';
import type { StreamPlan } from '../plan/plan.ts';
import type { RuleOptions, StreamDefinition, StreamRuleTest, TestRow } from '../types.ts';
import { type Emission, StreamRow } from '../values/tuple.ts';
import { member, printed, StreamFailure, type StreamValueObject } from '../values/values.ts';

/** Maximum number of rows of a test. */
const MAX_ROWS = 10_000;
/** Maximum number of timers that fire in one test. */
const MAX_TIMERS = 100_000;
/** Time that passes after the last row, so that waiting windows end: a day. */
const AFTER_MS = 86_400_000;
/** Maximum number of emissions and errors that are kept. */
const MAX_OUTPUTS = 10_000;

/** A step in which only time passes. */
export interface PassingTime {
  /** Milliseconds. */
  readonly at: number;
  /** Absent: no row arrives. */
  readonly stream?: undefined;
}

/** A step of a test of a statement: a row arrives, or time passes. */
export type SampleStep = TestRow | PassingTime;

/** An output of a statement at a time in milliseconds: an emission, or the error of a row. */
export type TimedOutput =
  | {
      /** The time of the emission. */
      readonly at: number;
      /** The rows. */
      readonly rows: readonly Record<string, unknown>[];
    }
  | {
      /** The time of the error. */
      readonly at: number;
      /** The error of a row, in words. */
      readonly error: string;
    };

/** The result of a test of a statement. */
export interface SampleRun extends StreamRuleTest {
  /** The emissions and errors with their times, in order. */
  readonly outputs: readonly TimedOutput[];
  /** The counters of the operators at the end, by `KIND_NAME_INDEX_METRIC`. */
  readonly metrics: Readonly<Record<string, number | string>>;
}

/** The settings of a test run. */
interface SampleSettings {
  readonly plan: StreamPlan;
  readonly options: RuleOptions;
  /** Default arrival time of the first row, in milliseconds since 1970. */
  readonly startsAt: number;
  readonly parseTime: ParseTime;
  /** End of the test, in milliseconds. Default: a day after the last row. */
  readonly until?: number | undefined;
  toolsOf(clock: Clock): StreamFunctionTools;
}

/**
 * Run a plan over sample rows, on a separate clock. Time passes from row to row; after the last one, a day passes
 * unless `until` is given, so that windows end. The generator yields after each row and after each time at which a
 * timer fires.
 * @throws InvalidInput ROW_INVALID
 */
export function* sampleSteps(rows: readonly SampleStep[], settings: SampleSettings): Generator<void, SampleRun> {
  const { plan, options, startsAt, toolsOf } = settings;
  if (!Array.isArray(rows)) throw new InvalidInput('ROW_INVALID', 'rows', 'an array of rows', rows);
  if (plan.streams.some(({ kind }) => kind === 'lookup'))
    throw new InvalidInput(
      'STREAM_RULE_INVALID',
      'sql',
      'a statement without lookup tables',
      undefined,
      'a test has no lookup tables: remove their joins'
    );
  if (rows.length > MAX_ROWS) throw new InvalidInput('ROW_INVALID', 'rows', `at most ${MAX_ROWS} rows`, rows.length);
  const clock = new SampleClock(rows[0]?.at ?? startsAt);
  const outputs: TimedOutput[] = [];
  const keep = (output: TimedOutput) => {
    if (outputs.length < MAX_OUTPUTS) outputs.push(output);
  };
  const tools = toolsOf(clock);
  const output = {
    items: 0,
    push: (item: unknown) => keep({ at: clock.now(), rows: [...(item as Emission).rows] }),
    flush: () => undefined,
    passError: (error: unknown) => keep({ at: clock.now(), error: errorText(error) })
  };
  const graph = new Graph(plan, { clock, tools, lookups: new Map(), failed: () => undefined }, output);
  const tables = new Map<string, readonly StreamRow[]>();
  graph.open();
  try {
    for (const [index, row] of rows.entries()) {
      if (row?.at !== undefined && !Number.isFinite(row.at))
        throw new InvalidInput('ROW_INVALID', `rows[${index}].at`, 'milliseconds', row.at);
      yield* clock.advanceTo(row?.at ?? clock.now());
      if (!isTime(row))
        pushSample(graph, plan, row, { index, options, parseTime: settings.parseTime, tables, now: clock.now() });
      yield;
    }
    yield* clock.advanceTo(settings.until ?? clock.now() + AFTER_MS);
  } finally {
    graph.close();
  }
  const metrics = Object.fromEntries(graph.metrics(() => undefined));
  return {
    outputs,
    emissions: outputs.flatMap((output) => ('rows' in output ? [output.rows] : [])),
    errors: outputs.flatMap((output) => ('error' in output ? [output.error] : [])),
    metrics
  };
}

function isTime(step: SampleStep): step is PassingTime {
  return typeof step === 'object' && step !== null && !('stream' in step) && !('values' in step) && 'at' in step;
}

interface Place {
  readonly index: number;
  readonly options: RuleOptions;
  readonly parseTime: ParseTime;
  /** The rows of tables so far. */
  readonly tables: Map<string, readonly StreamRow[]>;
  readonly now: number;
}

function pushSample(
  graph: Graph,
  plan: StreamPlan,
  sample: TestRow,
  { index, options, parseTime, tables, now }: Place
): void {
  const { stream, values, meta = {} } = sample ?? {};
  const found = plan.streams.filter(({ definition, kind }) => definition.name === stream && kind !== 'lookup');
  if (found.length === 0) {
    const known = plan.streams.map(({ definition }) => definition.name).join(', ');
    throw new InvalidInput('ROW_INVALID', `rows[${index}].stream`, `one of ${known}`, stream);
  }
  if (typeof values !== 'object' || values === null)
    throw new InvalidInput('ROW_INVALID', `rows[${index}].values`, 'an object', values);
  for (const { definition, position, needed, kind } of found) {
    const entry = graph.inputs.get(position);
    const { TIMESTAMP, TIMESTAMP_FORMAT, STRICT_VALIDATION } = definition.options;
    try {
      const convert = compileConversion({
        columns: definition.columns,
        needed: needed === 'all' ? undefined : [...needed, ...(TIMESTAMP ? [TIMESTAMP] : [])],
        isStrict: STRICT_VALIDATION?.toLowerCase() === 'true',
        timestampFormat: TIMESTAMP_FORMAT,
        parseTime
      });
      const converted = convert(values as StreamValueObject);
      const time = options.isEventTime && kind === 'stream' ? eventTime(converted, definition.options, parseTime) : now;
      const row = new StreamRow(converted, time, meta as StreamValueObject);
      if (kind !== 'table') entry?.push(row);
      else {
        const rows = [...(tables.get(stream) ?? []), row].slice(-(Number(definition.options.RETAIN_SIZE) || MAX_ROWS));
        tables.set(stream, rows);
        entry?.replace(rows);
      }
    } catch (error) {
      entry?.fail(error);
    }
  }
}

/** @throws StreamFailure */
function eventTime(
  values: StreamValueObject,
  { TIMESTAMP: column = '', TIMESTAMP_FORMAT: format }: StreamDefinition['options'],
  parseTime: ParseTime
): number {
  const time = timeOf(member(values, column), format, parseTime);
  if (time === undefined) throw new StreamFailure(`cannot find timestamp field ${column} in tuple ${printed(values)}`);
  return time;
}

/** A clock that is advanced explicitly, without waiting. */
class SampleClock implements Clock {
  readonly #heap = new TimerHeap();
  #now: number;
  #fired = 0;

  constructor(now: number) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  setTimeout(run: () => void, delayMs: number): unknown {
    const dueMs = this.#now + Math.max(0, delayMs);
    const timer = { dueMs, run, trace: undefined, order: 0, isArmed: false };
    this.#heap.add(timer);
    return timer;
  }

  clearTimeout(timer: unknown): void {
    this.#heap.remove(timer as never);
  }

  *advanceTo(time: number): Generator<void, void> {
    for (;;) {
      const timer = this.#fired < MAX_TIMERS ? this.#heap.takeDue(time) : undefined;
      if (timer === undefined) break;
      this.#fired++;
      this.#now = Math.max(this.#now, timer.dueMs);
      timer.run();
      yield;
    }
    this.#now = Math.max(this.#now, time);
  }
}
