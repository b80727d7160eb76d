import { type Collection, isCollection, rangeOf, type Tuple } from '../values/tuple.ts';

/** A tuple that belongs to no window, as a collection: its time is the window. */
export function collectionOf(item: Tuple | Collection): Collection {
  if (isCollection(item)) return item;
  const { timestamp, cause } = item;
  return { tuples: [item], range: rangeOf(timestamp, timestamp, cause) };
}
