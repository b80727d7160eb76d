import { type Collection, type Evaluate, type Frame, isCollection, type Tuple } from '../values/tuple.ts';
import { compareAlike, isNull, isNumber, kindOf, StreamFailure, type StreamValue, typeName } from '../values/values.ts';
import type { MakeOperator } from './operator.ts';

/** A key of ORDER BY. */
interface SortKey {
  readonly evaluate: Evaluate;
  readonly isDescending: boolean;
}

/**
 * Make the operator of ORDER BY. Tuples with equal keys keep their order. Null comes last, in both directions, as in the original.
 * @returns its `push` throws StreamFailure for keys of different types
 */
export function makeOrder(
  keys: readonly SortKey[],
  frame: Frame
): MakeOperator<Tuple | Collection, Tuple | Collection> {
  return ({ output }) => ({
    push(item) {
      if (!isCollection(item) || item.tuples.length < 2) return output.push(item);
      frame.range = item.range;
      const rows = item.tuples.map((tuple, index) => {
        frame.rowNumber = index + 1;
        return { tuple, values: keys.map(({ evaluate }) => evaluate(tuple)) };
      });
      for (let index = 0; index < keys.length; index++) checkTypes(rows.map(({ values }) => values[index]));
      rows.sort((a, b) => compareRows(a.values, b.values, keys));
      output.push({ ...item, tuples: rows.map(({ tuple }) => tuple) });
    }
  });
}

/**
 * Values can be compared if all have the type of the first; numbers count as one type, and times can be compared with
 * numbers.
 */
function checkTypes(values: readonly StreamValue[]): void {
  const first = values.find((value) => !isNull(value));
  if (first === undefined) return;
  const kind = kindOf(first);
  const isComparable = kind !== 'array' && kind !== 'struct' && kind !== 'bytea';
  for (const value of values) {
    if (isNull(value)) continue;
    const isAlike = kindOf(value) === kind || (isNumber(value) && (isNumber(first) || kind === 'datetime'));
    if (!isComparable || !isAlike)
      throw new StreamFailure(`incompatible types for comparison: ${typeName(first)} and ${typeName(value)}`);
  }
}

function compareRows(left: readonly StreamValue[], right: readonly StreamValue[], keys: readonly SortKey[]): number {
  for (let index = 0; index < keys.length; index++) {
    const [a, b] = [left[index], right[index]];
    if (isNull(a) || isNull(b)) {
      if (isNull(a) && isNull(b)) continue;
      return isNull(a) ? 1 : -1;
    }
    const order = compareAlike(a, b);
    if (order !== 0) return keys[index].isDescending ? -order : order;
  }
  return 0;
}
