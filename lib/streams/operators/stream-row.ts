import { JoinedRow, PENDING, type StreamRow } from '../values/tuple.ts';
import type { StreamValue } from '../values/values.ts';

/**
 * A row as one of several streams: a joined row with one part. From here on, `columnOf` returns a column for its own
 * stream only, and joins know to which stream a row belongs.
 */
export function streamRow(
  row: StreamRow,
  position: number,
  sources: number,
  order: readonly number[] = [position]
): JoinedRow {
  const parts = new Array<StreamRow | undefined>(sources).fill(undefined);
  parts[position] = row;
  return new JoinedRow(parts, order, row.slots);
}

/**
 * The slots of a joined row: for each slot, the value that one of the sides has computed; the first takes precedence.
 */
export function joinSlots(first: StreamValue[], second: StreamValue[]): StreamValue[] {
  if (first.length === 0 && second.length === 0) return first;
  const slots: StreamValue[] = [];
  for (let index = 0; index < Math.max(first.length, second.length); index++) {
    const value = index < first.length ? first[index] : PENDING;
    slots.push(value === PENDING && index < second.length ? second[index] : value);
  }
  return slots;
}
