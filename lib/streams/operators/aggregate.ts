import type { Collection, Frame, Tuple } from '../values/tuple.ts';
import { collectionOf } from './collection.ts';
import {
  type Group,
  GroupFailures,
  type GroupSpec,
  GroupTable,
  grouperOf,
  groupRows,
  groupsOfNothing,
  newGroup
} from './groups.ts';
import type { MakeOperator } from './operator.ts';

/**
 * Make the operator of GROUP BY: a collection of rows becomes one of group rows, in the order of the first rows of the
 * groups [stream rules 17.21]. A tuple without a window is a collection of one. A row that cannot be aggregated makes
 * only its own group fail.
 */
export function makeAggregate(spec: GroupSpec, frame: Frame): MakeOperator<Tuple | Collection, Collection> {
  return ({ output, failed }) => ({
    push(item) {
      const { tuples, range } = collectionOf(item);
      frame.range = range;
      if (tuples.length === 0) return output.push({ tuples: groupsOfNothing(spec, range.end), range });
      const failures = new GroupFailures();
      const groups = new GroupTable<Group>(spec, (key, first) => newGroup(spec, key, first));
      const add = grouperOf(spec, groups, (error) => failures.add(error));
      for (let index = 0; index < tuples.length; index++) {
        frame.rowNumber = index + 1;
        add(tuples[index]);
      }
      const rows = groupRows(groups.values(), failures);
      failures.report({ failed }, range.cause);
      if (rows.length > 0) output.push({ tuples: rows, range });
    }
  });
}
