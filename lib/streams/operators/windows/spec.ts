import type { Expression, TimeUnit, Window } from '../../../sql/tree.ts';
import type { Evaluate } from '../../values/tuple.ts';

/** The kind and size of a window. Lengths are in milliseconds. */
export type WindowShape =
  | { readonly kind: 'tumbling'; readonly unit: TimeUnit; readonly lengthMs: number }
  | { readonly kind: 'hopping'; readonly unit: TimeUnit; readonly lengthMs: number; readonly intervalMs: number }
  | { readonly kind: 'sliding'; readonly lengthMs: number; readonly delayMs: number; readonly when?: Evaluate }
  | { readonly kind: 'session'; readonly unit: TimeUnit; readonly lengthMs: number; readonly timeoutMs: number }
  | { readonly kind: 'count'; readonly count: number; readonly interval: number }
  | { readonly kind: 'state'; readonly conditions: readonly Evaluate[]; readonly partitionBy: readonly Evaluate[] };

/** Settings of the windows of a rule, besides their shape. */
interface WindowSettings {
  /** FILTER (WHERE ...): rows for which it is false do not enter the window. */
  readonly filter?: Evaluate;
  readonly isEventTime: boolean;
  /** The option `windowAlign`. */
  readonly align: 'clock' | 'start';
  /** The option `emitEmptyWindows`, for tumbling and hopping windows. */
  readonly emitsEmpty: boolean;
  /** Offset from UTC of the service's zone at a time, in minutes. */
  readonly offsetMinutes: (timeMs: number) => number;
  /** The limit `windowRows`. */
  readonly mostRows: number;
  /** The limit `groups`, for the partitions of state windows. */
  readonly mostGroups: number;
}

export type WindowSpec<S extends WindowShape = WindowShape> = S & WindowSettings;

/** The shape of one kind of windows. */
export type ShapeOf<K extends WindowShape['kind']> = Extract<WindowShape, { readonly kind: K }>;

/** Milliseconds by unit of length. */
export const UNIT_MS: Readonly<Record<TimeUnit, number>> = {
  ms: 1,
  ss: 1000,
  mi: 60_000,
  hh: 3_600_000,
  dd: 86_400_000
};

/** The shape of the window of a statement. @param compile compiles an expression */
export function windowShape(window: Window, compile: (expression: Expression) => Evaluate): WindowShape {
  const { kind, unit = 'ms', lengths, conditions, partitionBy } = window;
  const [first, second] = lengths;
  const lengthMs = first * UNIT_MS[unit];
  const secondMs = (second ?? 0) * UNIT_MS[unit];
  switch (kind) {
    case 'tumbling':
      return { kind, unit, lengthMs };
    case 'hopping':
      return { kind, unit, lengthMs, intervalMs: secondMs };
    case 'sliding':
      return { kind, lengthMs, delayMs: secondMs, ...(window.when && { when: compile(window.when) }) };
    case 'session':
      return { kind, unit, lengthMs, timeoutMs: secondMs };
    case 'count':
      return { kind, count: first, interval: second ?? first };
    case 'state':
      return { kind, conditions: conditions.map(compile), partitionBy: partitionBy.map(compile) };
  }
}

/**
 * Check a window when a rule is planned.
 * @returns the reason why it cannot be used; undefined if it can
 */
export function checkWindow(shape: WindowShape, isEventTime: boolean): string | undefined {
  switch (shape.kind) {
    case 'count':
      if (isEventTime)
        return 'unsupported window type: count windows need processing time, so set isEventTime to false';
      if (shape.count <= 0) return `The first parameter value ${shape.count} should be a positive integer.`;
      if (shape.interval <= 0) return `The second parameter value ${shape.interval} should be a positive integer.`;
      if (shape.interval > shape.count)
        return `The second parameter value ${shape.interval} should be less than the first parameter ${shape.count}.`;
      return undefined;
    case 'state':
      if (shape.conditions.length === 1 || shape.conditions.length === 2) return undefined;
      return `statewindow needs one condition, or two for its beginning and its end, but has ${shape.conditions.length}`;
    case 'hopping':
      return checkLengths(shape.lengthMs, shape.intervalMs);
    case 'session':
      return checkLengths(shape.lengthMs, shape.timeoutMs);
    case 'sliding': // with a delay, the length may be 0: the window contains the rows after its trigger
      return shape.delayMs === 0
        ? checkLengths(shape.lengthMs)
        : checkLengths(shape.delayMs, ...(shape.lengthMs === 0 ? [] : [shape.lengthMs]));
    default:
      return checkLengths(shape.lengthMs);
  }
}

function checkLengths(...lengths: readonly number[]): string | undefined {
  const wrong = lengths.find((length) => !Number.isSafeInteger(length) || length <= 0);
  return wrong === undefined ? undefined : `the length ${wrong} ms of a window is not a positive integer`;
}

/** Check whether rows of a window can be part of several emissions. */
export function overlaps(shape: WindowShape): boolean {
  switch (shape.kind) {
    case 'hopping':
      return shape.lengthMs !== shape.intervalMs;
    case 'count':
      return shape.count !== shape.interval;
    default:
      return shape.kind === 'sliding';
  }
}
