import { type Collection, isCollection, type Tuple } from '../tuple.ts';

/** A tuple that belongs to no window, as a collection: its time is the window. */
export function collectionOf(item: Tuple | Collection): Collection {
  if (isCollection(item)) return item;
  const { timestamp } = item;
  return { tuples: [item], range: { start: timestamp, end: timestamp, trigger: timestamp } };
}
