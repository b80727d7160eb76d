import type { MakeOperator } from '../graph/operator.ts';
import { type Collection, type Evaluate, type Frame, isCollection, type Tuple } from '../tuple.ts';
import type { Value } from '../values.ts';
import { testOf } from './condition.ts';

/**
 * Make the operator of WHERE and HAVING. Of a collection it keeps the tuples for which the condition is true; if there are none, nothing is emitted
 * [stream rules 5.1]. A collection that is empty already is passed on.
 * @param kept called with the number of tuples of a collection that are kept
 * @returns its `push` throws StreamFailure
 */
export function makeFilter(
  condition: Evaluate,
  frame: Frame,
  kept?: (count: number) => void
): MakeOperator<Tuple | Collection, Tuple | Collection> {
  const accepts = testOf(condition);
  return ({ output }) => ({
    condition: condition as (item: Tuple | Collection) => Value, // asked for rows alone
    push(item) {
      if (!isCollection(item)) {
        if (accepts(item)) output.push(item);
        return;
      }
      const { tuples, range } = item;
      frame.range = range;
      const passed: Tuple[] = [];
      for (let index = 0; index < tuples.length; index++) {
        frame.rowNumber = index + 1;
        if (accepts(tuples[index])) passed.push(tuples[index]);
      }
      kept?.(passed.length);
      if (passed.length === tuples.length) output.push(item);
      else if (passed.length > 0) output.push({ ...item, tuples: passed });
    }
  });
}
