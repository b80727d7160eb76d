/** Maximum weight of a value, approximately the bytes of its JSON. 4 MiB. */
export const MAX_WEIGHT = 4_194_304;

/** Values nested deeper than this count as too heavy, because they cannot be encoded. */
const MAX_LEVELS = 1000;

/** The relation between the weight of a function's result and that of its arguments, see `SqlFunction.weighs`. */
export type Weighs = 'part' | 'sum';

/** Weights of lists and objects, by identity. */
export type KnownWeights = Map<object, number>;

/** Values below this weight are walked again, which costs no more than looking them up. */
const MIN_KNOWN = 256;

/**
 * Check whether a value weighs more than a bound, approximately in bytes of its JSON. A part that occurs several times
 * counts several times, because it is encoded several times. The walk ends at the bound, so that its time is proportional to
 * the bound.
 */
export function isHeavier(value: unknown, most: number): boolean {
  return left(value, most, 0, undefined) < 0;
}

/**
 * Measure the weight of a value, as `isHeavier` does.
 * @param known weights of values that do not change in the meantime, so that a part of many outputs is walked once;
 *   extended by this value's parts
 * @returns more than `most` if the value is heavier; this is not necessarily its weight
 */
export function weightOf(value: unknown, most: number, known?: KnownWeights): number {
  return most - left(value, most, 0, known);
}

/** The remainder of a bound; negative if the value is heavier. */
function left(value: unknown, most: number, level: number, known: KnownWeights | undefined): number {
  if (typeof value === 'string') return most - value.length - 2;
  if (typeof value !== 'object' || value === null) return most - 8;
  if (level > MAX_LEVELS) return -1;
  const weight = known?.get(value);
  if (weight !== undefined) return most - weight;
  let rest = most - 2;
  // recursion only for lists and objects, because most elements are scalars
  if (Array.isArray(value))
    for (let index = 0; index < value.length && rest >= 0; index++) {
      const each: unknown = value[index];
      if (typeof each === 'object') rest = left(each, rest - 1, level + 1, known);
      else rest -= typeof each === 'string' ? each.length + 3 : 9;
    }
  else if (value instanceof Uint8Array) return most - Math.ceil(value.length * (4 / 3));
  else
    for (const key in value) {
      if (rest < 0) break;
      const each = (value as Record<string, unknown>)[key];
      rest -= key.length + 4;
      if (typeof each === 'object') rest = left(each, rest, level + 1, known);
      else rest -= typeof each === 'string' ? each.length + 2 : 8;
    }
  if (known !== undefined && rest >= 0 && most - rest >= MIN_KNOWN) known.set(value, most - rest);
  return rest;
}
