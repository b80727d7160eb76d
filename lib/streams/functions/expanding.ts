import { setKey } from '../../sql/values.ts';
import type { ArgumentNames, ExpandingFunction, ExpandingState } from '../function.ts';
import { isArray, isNull, StreamFailure, type StreamValue, type StreamValueObject } from '../values/values.ts';
import { PreviousColumns } from './analytic.ts';
import { booleanOf, structOf } from './arguments.ts';
import { Comparisons } from './equality.ts';

/** The state of `changed_cols`: values by the index of their argument, and the columns of `*`. */
interface SavedColumns {
  readonly values: readonly StreamValue[];
  readonly columns: readonly (readonly [name: string, value: StreamValue])[];
}

/** The columns that have changed since the last row. */
function changedColumns(names: ArgumentNames, saved: SavedColumns | undefined): ExpandingState {
  const values = [...(saved?.values ?? [])];
  const row = new PreviousColumns(saved?.columns);
  return {
    next([prefix, isNullIgnored, ...args]) {
      if (typeof prefix !== 'string') throw new StreamFailure('changed_cols: the first argument is not a string');
      const isIgnored = booleanOf(isNullIgnored, 'second arg is not a bool');
      const comparisons = new Comparisons();
      const result: Record<string, StreamValue> = {};
      for (const [index, value] of args.entries()) {
        const name = names[index + 2];
        if (name === undefined)
          row.change(value as StreamValueObject, isIgnored, (column, each) => setKey(result, prefix + column, each));
        else if (!(isIgnored && isNull(value)) && !comparisons.isSame(value, values[index])) {
          values[index] = value;
          setKey(result, prefix + name, value);
        }
      }
      return result;
    },
    save: (): SavedColumns => ({ values: Array.from(values), columns: row.save() })
  };
}

function checkChangedColumns([prefix, isNullIgnored]: readonly (StreamValue | undefined)[]): string | undefined {
  if (prefix !== undefined && typeof prefix !== 'string') return 'Expect string type for parameter 1';
  return isNullIgnored !== undefined && typeof isNullIgnored !== 'boolean'
    ? 'Expect bool type for parameter 2'
    : undefined;
}

export const EXPANDING_FUNCTIONS: readonly ExpandingFunction[] = [
  {
    kind: 'rows',
    name: 'unnest',
    family: 'expanding',
    params: ['any'],
    about: 'A row for each element of an array; the members of its structs are columns.',
    make: () => ({ next: ([value]) => (isArray(value) ? value : [value]) })
  },
  {
    kind: 'columns',
    name: 'changed_cols',
    family: 'expanding',
    params: ['string', 'boolean', 'any', 'any...'],
    about:
      'changed_cols(prefix, ignoreNull, column, ...): the columns whose values differ from those selected before, with a prefix to their names. * stands for all columns.',
    check: checkChangedColumns,
    make: (_, names) => changedColumns(names, undefined),
    load: (_, names, state) => changedColumns(names, Array.isArray(state) ? undefined : (state as SavedColumns))
  },
  {
    kind: 'columns',
    name: 'extract',
    family: 'expanding',
    params: ['struct'],
    about: 'The members of a struct as columns.',
    make: () => ({ next: ([value]) => (isNull(value) ? {} : structOf(value)) })
  }
];
