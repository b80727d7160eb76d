import type { Cause } from '../values/cause.ts';
import { JoinedRow, PENDING, StreamRow, type Tuple } from '../values/tuple.ts';
import type { StreamValue, StreamValueObject } from '../values/values.ts';

/** Slots in a checkpoint: the value in an array, or 0 for one that has not been computed. */
type SavedSlots = readonly (readonly [StreamValue] | 0)[];
type SavedRow = readonly [
  values: StreamValueObject,
  timestamp: number,
  metadata: StreamValueObject,
  slots: SavedSlots,
  cause?: Cause
];
interface SavedJoinedRow {
  readonly parts: readonly (SavedRow | undefined)[];
  readonly order: readonly number[];
  readonly slots: SavedSlots;
}

/** A tuple in a checkpoint. */
export type SavedTuple = SavedRow | SavedJoinedRow;

/** Convert a row or joined row to a form that `v8.serialize` can write. Operators do not store groups. */
export function saveTuple(tuple: Tuple): SavedTuple {
  if (tuple instanceof StreamRow) return saveRow(tuple);
  if (!(tuple instanceof JoinedRow))
    return saveRow(new StreamRow(tuple.columns(), tuple.timestamp, tuple.metadata(), tuple.slots, tuple.cause));
  const parts = tuple.parts.map((part) => part && saveRow(part));
  return { parts, order: tuple.order, slots: saveSlots(tuple.slots) };
}

/** Restore a tuple from the result of `saveTuple`. */
export function loadTuple(saved: SavedTuple): StreamRow | JoinedRow {
  if (!('parts' in saved)) return loadRow(saved);
  const parts = saved.parts.map((part) => part && loadRow(part));
  return new JoinedRow(parts, saved.order, loadSlots(saved.slots));
}

function saveRow({ values, timestamp, source, slots, cause }: StreamRow): SavedRow {
  const saved = [values, timestamp, source, saveSlots(slots)] as const;
  return cause === undefined ? saved : [...saved, cause];
}

function loadRow([values, timestamp, metadata, slots, cause]: SavedRow): StreamRow {
  return new StreamRow(values, timestamp, metadata, loadSlots(slots), cause);
}

function saveSlots(slots: readonly StreamValue[]): SavedSlots {
  return slots.map((value) => (value === PENDING ? 0 : [value]));
}

function loadSlots(slots: SavedSlots): StreamValue[] {
  return slots.map((saved) => (saved === 0 ? PENDING : saved[0]));
}
