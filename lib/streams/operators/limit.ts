import { type Collection, isCollection, type Tuple } from '../values/tuple.ts';
import type { MakeOperator } from './operator.ts';

/** Make the operator of LIMIT: at most this many tuples of each emission. */
export function makeLimit(most: number): MakeOperator<Tuple | Collection, Tuple | Collection> {
  return ({ output }) => ({
    push(item) {
      if (!isCollection(item)) {
        if (most > 0) output.push(item);
      } else if (item.tuples.length <= most) output.push(item);
      else if (most > 0) output.push({ ...item, tuples: item.tuples.slice(0, most) });
    }
  });
}
