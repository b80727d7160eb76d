import type { Collection, Tuple } from '../../values/tuple.ts';
import { testOf } from '../condition.ts';
import type { AggregateCall, GroupSpec } from '../groups.ts';
import type { MakeOperator, Operator, OperatorSetup } from '../operator.ts';
import { type Contents, RowBudget, RowContents } from './contents.ts';
import { CountWindow } from './count.ts';
import { GroupContents } from './group-contents.ts';
import { PeriodicWindow } from './periodic.ts';
import { SessionWindow } from './session.ts';
import { DelayedSlidingWindow, SlidingWindow } from './sliding.ts';
import { SlidingGroupContents } from './sliding-groups.ts';
import { overlaps, type WindowShape, type WindowSpec } from './spec.ts';
import { StateWindow } from './state.ts';

/** Make a window whose emissions contain the rows. */
export function makeWindow(spec: WindowSpec): MakeOperator<Tuple, Collection> {
  return (setup) => {
    const budget = new RowBudget(spec.mostRows);
    return windowOf(spec, setup, () => new RowContents(budget));
  };
}

/**
 * Make a window whose emissions contain the groups of its rows. The result equals that of `makeWindow` followed by
 * `makeAggregate`, but rows are aggregated as they arrive. Keys and arguments are evaluated before the window is known,
 * so they cannot contain `window_start()` and similar functions.
 */
export function makeIncrementalWindow(spec: WindowSpec, groups: GroupSpec): MakeOperator<Tuple, Collection> {
  return (setup) => {
    if (!overlaps(spec)) return windowOf(spec, setup, () => new GroupContents(groups));
    const budget = new RowBudget(spec.mostRows);
    return windowOf(spec, setup, () => new SlidingGroupContents(groups, budget));
  };
}

/** Check whether the aggregates allow `makeIncrementalWindow`. */
export function isIncremental(shape: WindowShape, aggregates: readonly Pick<AggregateCall, 'function'>[]): boolean {
  const canSlide = overlaps(shape);
  return aggregates.every(({ function: { isIncremental, makeSliding } }) =>
    canSlide ? makeSliding !== undefined : isIncremental === true
  );
}

function windowOf(spec: WindowSpec, setup: OperatorSetup<Collection>, makeContents: () => Contents): Operator<Tuple> {
  const window = operatorOf(spec, setup, makeContents);
  if (spec.filter === undefined) return window;
  const accepts = testOf(spec.filter);
  const push = window.push.bind(window);
  window.push = (tuple, port) => {
    if (accepts(tuple)) push(tuple, port);
  };
  return window;
}

function operatorOf(spec: WindowSpec, setup: OperatorSetup<Collection>, makeContents: () => Contents): Operator<Tuple> {
  switch (spec.kind) {
    case 'tumbling':
    case 'hopping':
      return new PeriodicWindow(spec, setup, makeContents());
    case 'sliding':
      return new (spec.delayMs > 0 ? DelayedSlidingWindow : SlidingWindow)(spec, setup, makeContents());
    case 'session':
      return new SessionWindow(spec, setup, makeContents());
    case 'count':
      return new CountWindow(spec, setup, makeContents());
    case 'state':
      return new StateWindow(spec, setup, makeContents);
  }
}
