/** Most that a value may weigh: about the bytes of its JSON. 4 MiB. */
export const MAX_WEIGHT = 4_194_304;

/** Deeper values are too heavy, because nothing can encode them. */
const MAX_LEVELS = 1000;

/** Relation between the weight of a result and the arguments of its function, see `SqlFunction.weighs`. */
export type Weighs = 'part' | 'sum';

/** Weights of lists and objects, by identity. */
export type KnownWeights = Map<object, number>;

/** Lighter values are walked again: that costs as much as to look them up. */
const MIN_KNOWN = 256;

/**
 * Whether a value weighs more than a bound: about the bytes of its JSON. What is part of it several times counts several times, because it is
 * encoded several times; the walk ends at the bound, so that it takes time in proportion to it.
 */
export function isHeavier(value: unknown, most: number): boolean {
  return left(value, most, 0, undefined) < 0;
}

/**
 * Measure the weight of a value, as for `isHeavier`.
 * @param known weights of values that do not change meanwhile: what is part of many outputs is walked once. It gets those of this value
 * @returns more than `most` if it is heavier, which need not be its weight
 */
export function weightOf(value: unknown, most: number, known?: KnownWeights): number {
  return most - left(value, most, 0, known);
}

/** The rest of a bound; negative: the value is heavier. */
function left(value: unknown, most: number, level: number, known: KnownWeights | undefined): number {
  if (typeof value === 'string') return most - value.length - 2;
  if (typeof value !== 'object' || value === null) return most - 8;
  if (level > MAX_LEVELS) return -1;
  const weight = known?.get(value);
  if (weight !== undefined) return most - weight;
  let rest = most - 2;
  // calls are for lists and objects alone, because most of what they have are scalars
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
