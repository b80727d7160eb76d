import { type Collection, isCollection, rangeOf, type Tuple } from '../values/tuple.ts';

/** Convert a tuple that belongs to no window to a collection, with its time as the window. */
export function collectionOf(item: Tuple | Collection): Collection {
  if (isCollection(item)) return item;
  const { timestamp, cause } = item;
  return { tuples: [item], range: rangeOf(timestamp, timestamp, cause) };
}
