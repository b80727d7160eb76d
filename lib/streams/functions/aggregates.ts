// A row of the table makes accumulators. `make` is for windows that end as a whole, `makeSliding` for windows whose
// rows leave one by one, and needs `remove`; without it, the rows of such windows are aggregated for each emission.
// Whatever `save` returns must be readable by `load` in later releases, because it is in checkpoints. The array of
// arguments is reused, so an accumulator keeps values, never the array.

import type { Accumulator, AggregateFunction, StreamFunctionTools } from '../function.ts';
import type { Tuple } from '../values/tuple.ts';
import { describe, isNull, isNumber, isStruct, printed, StreamFailure, type StreamValue } from '../values/values.ts';
import { Extreme, SlidingExtreme } from './extremes.ts';
import { SlidingSpread, Spread, type SpreadKind } from './spread.ts';
import { averageOf, invalidArgument, sumOf, type TotalResult, Totals } from './totals.ts';

/**
 * The aggregate functions. Unless a row states otherwise, nulls are ignored and an empty group yields null [stream
 * rules 6.1].
 */
export function aggregateFunctions(): readonly AggregateFunction[] {
  return [
    total('avg', averageOf, 'The average; for integers an integer, rounded towards zero.'),
    total('sum', sumOf, 'The sum.'),
    extreme('min', -1, 'The least number, string or time.'),
    extreme('max', 1, 'The greatest number, string or time.'),
    count,
    collect,
    deduplicate,
    spread({ name: 'stddev', isSample: false, isRoot: true }, 'The standard deviation of a population.'),
    spread({ name: 'stddevs', isSample: true, isRoot: true }, 'The standard deviation of a sample.'),
    spread({ name: 'var', isSample: false, isRoot: false }, 'The variance of a population.'),
    spread({ name: 'vars', isSample: true, isRoot: false }, 'The variance of a sample.'),
    percentile(
      'percentile_cont',
      interpolated,
      'The value at a fraction of the sorted values, interpolated between two of them if necessary.'
    ),
    percentile('percentile_disc', nearest, 'The first of the sorted values at or above a fraction of them.'),
    percentile(
      'median',
      interpolated,
      'The middle value; for an even number of values, the mean of the two middle values.'
    ),
    lastValue,
    mergeAgg
  ];
}

const BASE = { kind: 'aggregate', family: 'aggregate' } as const;

function total(name: string, result: TotalResult, about: string): AggregateFunction {
  return {
    ...BASE,
    name,
    about,
    params: ['number'],
    isIncremental: true,
    make: () => new Totals(name, result, false),
    makeSliding: () => new Totals(name, result, true),
    load: (_tools, state) => Totals.load(name, result, state)
  };
}

function extreme(name: string, direction: 1 | -1, about: string): AggregateFunction {
  return {
    ...BASE,
    name,
    about,
    params: ['any'],
    isIncremental: true,
    make: () => new Extreme(name, direction),
    makeSliding: () => new SlidingExtreme(name, direction),
    load: (_tools, state) => SlidingExtreme.load(name, direction, state)
  };
}

function spread(kind: SpreadKind, about: string): AggregateFunction {
  return {
    ...BASE,
    name: kind.name,
    about,
    params: ['number'],
    isIncremental: true,
    make: () => new Spread(kind),
    makeSliding: () => new SlidingSpread(kind),
    load: (_tools, state) => SlidingSpread.load(kind, state)
  };
}

/** The remaining fields of a function whose accumulators can also remove values. */
function sliding(make: (tools: StreamFunctionTools, state?: unknown) => Accumulator) {
  return {
    make: (tools: StreamFunctionTools) => make(tools),
    makeSliding: (tools: StreamFunctionTools) => make(tools),
    load: make
  };
}

const count: AggregateFunction = {
  ...BASE,
  name: 'count',
  about: 'The number of rows, or of values that are not null.',
  params: ['any'],
  wildcard: 'ones',
  isIncremental: true,
  ...sliding((_tools, state = 0) => {
    let rows = state as number;
    return {
      add: (args) => {
        if (!isNull(args[0])) rows++;
      },
      remove: (args) => {
        if (!isNull(args[0])) rows--;
      },
      result: () => BigInt(rows),
      save: () => rows
    };
  })
};

/** An accumulator that keeps a value for each row, and computes its result from all of them. */
function keeping<T>(
  read: (args: readonly StreamValue[], tuple: Tuple) => T,
  result: (kept: readonly T[]) => StreamValue
): Pick<AggregateFunction, 'make' | 'load'> {
  const load = (_tools: StreamFunctionTools, state: unknown): Accumulator => {
    const kept = [...(state as readonly T[])];
    return {
      add: (args, tuple) => {
        kept.push(read(args, tuple));
      },
      result: () => result(kept),
      save: () => kept
    };
  };
  return { load, make: (tools) => load(tools, []) };
}

const collect: AggregateFunction = {
  ...BASE,
  name: 'collect',
  about: 'An array of the rows or of the values, nulls included.',
  params: ['any'],
  wildcard: 'rows',
  ...keeping<StreamValue>(
    ([value]) => value ?? null,
    (values) => values.slice()
  )
};

interface Distinct {
  readonly key: string;
  readonly all: StreamValue;
  readonly row: StreamValue;
}

const deduplicate: AggregateFunction = {
  ...BASE,
  name: 'deduplicate',
  about:
    'With true, an array of the first row for each value; with false, the last row if its value is new in the group.',
  params: ['any', 'boolean'],
  ...keeping<Distinct>(
    ([value, all], tuple) => ({ key: printed(value), all, row: tuple.columns() }),
    (rows) => {
      const last = rows[rows.length - 1];
      if (last === undefined) return null;
      const firsts = new Map<string, StreamValue>();
      for (const { key, row } of rows) if (!firsts.has(key)) firsts.set(key, row);
      if (last.all === true) return [...firsts.values()];
      return rows.findIndex(({ key }) => key === last.key) === rows.length - 1 ? last.row : null;
    }
  )
};

/** @param pick selects the value at a fraction of the sorted values */
function percentile(
  name: string,
  pick: (sorted: readonly number[], share: number) => number,
  about: string
): AggregateFunction {
  const isMedian = name === 'median';
  const isShare = (share: StreamValue) => isNumber(share) && share >= 0 && share <= 1;
  const fault = (share: StreamValue) =>
    `the second argument of ${name} is ${isNumber(share) ? printed(share) : describe(share)}, but must be a number from 0 to 1`;
  return {
    ...BASE,
    name,
    about,
    params: isMedian ? ['number'] : ['number', 'number'],
    ...(!isMedian && {
      check: ([, share]) => (share === undefined || isShare(share) ? undefined : fault(share))
    }),
    ...keeping<readonly [value: number | undefined, share: number]>(
      ([value, share = 0.5]) => {
        if (!isShare(share)) throw new StreamFailure(fault(share));
        if (!isNull(value) && !isNumber(value)) throw invalidArgument(name, value);
        return [isNull(value) ? undefined : Number(value), Number(share)];
      },
      (entries) => {
        const values = entries.flatMap(([value]) => (value === undefined ? [] : [value]));
        if (values.length === 0) return null;
        return pick(
          values.sort((a, b) => a - b),
          entries[0][1]
        );
      }
    )
  };
}

function interpolated(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const [left, right] = [sorted[low], sorted[Math.min(low + 1, sorted.length - 1)]];
  return at === low ? left : left + (right - left) * (at - low);
}

function nearest(sorted: readonly number[], share: number): number {
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)];
}

const lastValue: AggregateFunction = {
  ...BASE,
  name: 'last_value',
  about:
    'The value of the last row; with true, the last value that is not null. * stands for an object with all columns.',
  params: ['any', 'boolean'],
  wildcard: 'rows',
  isIncremental: true,
  ...sliding((_tools, state) => {
    let [added, removed, number, last] = (state ?? [0, 0, -1, null]) as [number, number, number, StreamValue];
    return {
      add: ([value, ignoresNull]) => {
        if (!isNull(value) || ignoresNull !== true) {
          last = value;
          number = added;
        }
        added++;
      },
      remove: () => {
        if (number === removed++) last = null;
      },
      result: () => last ?? null,
      save: () => [added, removed, number, last]
    };
  })
};

const mergeAgg: AggregateFunction = {
  ...BASE,
  name: 'merge_agg',
  about: 'One object with the keys of all objects or rows; on equal keys the later one wins.',
  params: ['any'],
  wildcard: 'rows',
  isIncremental: true,
  make: () => merging(new Map()),
  load: (_tools, state) => merging(new Map(state as Map<string, StreamValue>))
};

function merging(merged: Map<string, StreamValue>): Accumulator {
  return {
    add: ([value]) => {
      if (isStruct(value)) for (const [name, each] of Object.entries(value)) merged.set(name, each);
    },
    result: () => Object.fromEntries(merged),
    save: () => new Map(merged)
  };
}
