// Values come from clients: weighing and cutting them takes a time that is proportional to the bound, not to the value, whatever its form.

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
  const weight = most - left(value, most, 0, known);
  return weight === Infinity ? most + 1 : weight; // too many levels
}

/** The remainder of a bound; negative if the value is heavier, -Infinity if it has too many levels. */
function left(value: unknown, most: number, level: number, known: KnownWeights | undefined): number {
  if (typeof value === 'string') return most - value.length - 2;
  if (typeof value !== 'object' || value === null) return most - 8;
  if (level > MAX_LEVELS) return -Infinity;
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

/** Maximum number of members of an object that are looked at. */
const MAX_MEMBERS = 200;
/** Maximum number of levels that are looked at, if the value is too long. */
const MAX_CUT_LEVELS = 8;
/** The first half of a surrogate pair at the end of a text. */
const HALF_CHARACTER = /[\ud800-\udbff]$/;
/** The place of what was left out. */
const MARK = '...';

/** A value as JSON of a limited length. */
interface ShortJson {
  readonly json: string;
  /** True if a part of the value was left out. */
  readonly isCut: boolean;
}

/**
 * Encode a value as JSON that has at most a number of characters, from about 50 on. Of a longer value, strings end with `...`, lists have
 * their first elements, and objects first have their short members.
 * @param encode encodes values of the language
 */
export function shortJson(value: unknown, most: number, encode: (value: never) => string): ShortJson {
  let isCut = isHeavier(value, most);
  for (let weight = most; weight >= 32; weight = Math.floor(weight / 2)) {
    const json = encode((isCut ? cut(value, weight, 0) : value) as never);
    if (json.length <= most) return { json, isCut };
    isCut = true; // escapes have made it longer than its weight
  }
  return { json: JSON.stringify(MARK), isCut: true };
}

function cut(value: unknown, most: number, level: number): unknown {
  if (!isHeavier(value, most)) return value;
  if (typeof value === 'string') return cutText(value, most);
  if (typeof value !== 'object' || value === null || level >= MAX_CUT_LEVELS) return MARK;
  if (value instanceof Uint8Array) return value.subarray(0, Math.max(0, Math.floor((most * 3) / 4)));
  return Array.isArray(value) ? cutList(value, most, level) : cutObject(value, most, level);
}

function cutText(text: string, most: number): string {
  return `${text.slice(0, Math.max(0, most - 2 - MARK.length)).replace(HALF_CHARACTER, '')}${MARK}`;
}

function cutList(list: readonly unknown[], most: number, level: number): unknown[] {
  const kept: unknown[] = [];
  let left = most - 2;
  for (const each of list) {
    const weight = weightOf(each, left) + 1;
    if (weight > left) {
      if (left > 16) kept.push(cut(each, left - 1, level + 1));
      break;
    }
    kept.push(each);
    left -= weight;
  }
  return kept;
}

/** Short members first: each gets an equal share of what those before it have left. */
function cutObject(object: object, most: number, level: number): Record<string, unknown> {
  const members: { readonly name: string; readonly value: unknown; readonly weight: number }[] = [];
  for (const name in object) {
    if (members.length === MAX_MEMBERS) break;
    const value = (object as Record<string, unknown>)[name];
    if (value !== undefined && name.length < most) members.push({ name, value, weight: weightOf(value, most) });
  }
  const kept = new Map<string, unknown>();
  let left = most - 2;
  let others = members.length;
  for (const { name, value } of members.toSorted((a, b) => a.weight - b.weight)) {
    const share = Math.floor(left / others--) - name.length - 4;
    if (share < 8) continue;
    const short = cut(value, share, level + 1);
    kept.set(name, short);
    left -= name.length + 4 + weightOf(short, share);
  }
  return Object.fromEntries(members.flatMap(({ name }) => (kept.has(name) ? [[name, kept.get(name)]] : [])));
}
