import { type Collection, type Evaluate, type Frame, GroupRow, type Tuple } from '../values/tuple.ts';
import { testOf } from './condition.ts';
import { GroupFailures } from './groups.ts';
import type { MakeOperator, RowFilter } from './operator.ts';

/**
 * Make the operator of HAVING, and of WHERE after a window or a join. It keeps the tuples of a collection for which the
 * condition is true; if there are none, nothing is emitted [stream rules 5.1]. A collection that is already empty is
 * passed on. A group for which the condition fails is omitted, with an error.
 * @param excluded the clause of the condition, and the values that it reads
 * @param kept called for each tuple that is kept, before the next one, with the end of the window
 * @returns its `push` throws StreamFailure
 */
export function makeCollectionFilter(
  condition: Evaluate,
  frame: Frame,
  excluded: Pick<RowFilter, 'reason' | 'values'>,
  kept?: (end: number) => void
): MakeOperator<Collection, Collection> {
  const accepts = testOf(condition);
  return ({ output, failed, rejected }) => ({
    push(item) {
      const { tuples, range } = item;
      frame.range = range;
      const passed: Tuple[] = [];
      const failures = new GroupFailures();
      for (let index = 0; index < tuples.length; index++) {
        frame.rowNumber = index + 1;
        const tuple = tuples[index];
        try {
          if (!accepts(tuple)) {
            rejected?.(excluded.reason, tuple, excluded.values);
            continue;
          }
          passed.push(tuple);
          kept?.(range.end);
        } catch (error) {
          if (!(tuple instanceof GroupRow)) throw error;
          failures.add(error);
        }
      }
      failures.report({ failed }, range.cause);
      if (passed.length === tuples.length) output.push(item);
      else if (passed.length > 0) output.push({ ...item, tuples: passed });
    }
  });
}
