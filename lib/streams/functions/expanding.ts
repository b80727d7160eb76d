import { setKey } from '../../sql/values.ts';
import { isArray, isNull, isStruct, StreamFailure, type Value } from '../values.ts';
import { booleanOf, structOf } from './arguments.ts';
import { Comparisons } from './equality.ts';
import type { ArgumentNames, ExpandingFunction, ExpandingState } from './function.ts';

/** The columns that have changed since the last row. */
function changedColumns(names: ArgumentNames, saved: unknown): ExpandingState {
  const previous = new Map<string, Value>(saved as [string, Value][] | undefined);
  return {
    next([prefix, isNullIgnored, ...values]) {
      if (typeof prefix !== 'string') throw new StreamFailure('changed_cols: the first argument is no string');
      const isIgnored = booleanOf(isNullIgnored, 'second arg is not a bool');
      const comparisons = new Comparisons();
      const result: Record<string, Value> = {};
      const compare = (name: string, value: Value) => {
        if ((isIgnored && isNull(value)) || comparisons.isSame(value, previous.get(name))) return;
        previous.set(name, value);
        setKey(result, prefix + name, value);
      };
      for (const [index, value] of values.entries()) {
        const name = names[index + 2];
        if (name !== undefined) compare(name, value);
        else if (isStruct(value)) for (const [column, each] of Object.entries(value)) compare(column, each);
      }
      return result;
    },
    save: () => [...previous]
  };
}

function checkChangedColumns([prefix, isNullIgnored]: readonly (Value | undefined)[]): string | undefined {
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
      'changed_cols(prefix, ignoreNull, column, ...): the columns whose values differ from the previous ones, with a prefix to their names.',
    check: checkChangedColumns,
    make: (_, names) => changedColumns(names, undefined),
    load: (_, names, state) => changedColumns(names, state)
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
