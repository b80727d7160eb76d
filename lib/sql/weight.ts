/** Most that a value may weigh: about the bytes of its JSON. 4 MiB. */
export const MAX_WEIGHT = 4_194_304;

/** Deeper values are too heavy, because nothing can encode them. */
const MAX_LEVELS = 1000;

/**
 * Whether a value weighs more than a bound: about the bytes of its JSON. What is part of it several times counts several times, because it is
 * encoded several times; the walk ends at the bound, so that it takes time in proportion to it.
 */
export function isHeavier(value: unknown, most: number): boolean {
  return left(value, most, 0) < 0;
}

/** What is left of a bound; negative: the value is heavier. */
function left(value: unknown, most: number, level: number): number {
  if (typeof value === 'string') return most - value.length - 2;
  if (typeof value !== 'object' || value === null) return most - 8;
  if (value instanceof Uint8Array) return most - Math.ceil(value.length * (4 / 3));
  if (level > MAX_LEVELS) return -1;
  let rest = most - 2;
  if (Array.isArray(value))
    for (let index = 0; index < value.length && rest >= 0; index++) rest = left(value[index], rest - 1, level + 1);
  else
    for (const key in value) {
      if (rest < 0) break;
      rest = left((value as Record<string, unknown>)[key], rest - key.length - 4, level + 1);
    }
  return rest;
}
