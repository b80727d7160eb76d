import type { MakeOperator } from '../graph/operator.ts';
import type { Collection, Frame, Tuple } from '../tuple.ts';
import { collectionOf } from './collection.ts';
import { adderOf, type GroupSpec, GroupTable, groupRow, groupsOfNothing, newGroup } from './groups.ts';

/**
 * Make the operator of GROUP BY: a collection of rows becomes one of group rows, in the order in which the groups are first seen
 * [stream rules 17.21]. A tuple without a window is a collection of one. @returns its `push` throws StreamFailure
 */
export function makeAggregate(spec: GroupSpec, frame: Frame): MakeOperator<Tuple | Collection, Collection> {
  const add = adderOf(spec.aggregates);
  return ({ output }) => ({
    push(item) {
      const { tuples, range } = collectionOf(item);
      frame.range = range;
      if (tuples.length === 0) return output.push({ tuples: groupsOfNothing(spec, range.end), range });
      const groups = new GroupTable(spec, (key, first) => newGroup(spec, key, first));
      for (let index = 0; index < tuples.length; index++) {
        frame.rowNumber = index + 1;
        add(groups.of(tuples[index]).accumulators, tuples[index]);
      }
      const rows = Array.from(groups.values(), ({ first, accumulators }) => groupRow(first, accumulators));
      output.push({ tuples: rows, range });
    }
  });
}
