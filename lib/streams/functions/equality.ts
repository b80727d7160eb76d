import {
  checkLevel,
  isArray,
  isNull,
  isNumber,
  isStruct,
  kindOf,
  StreamFailure,
  type StreamValue,
  type StreamValueObject
} from '../values/values.ts';

/** Maximum number of members that are compared in one call. An array may contain the same large array many times. */
const MAX_COMPARED = 1_000_000;

/** Counts the comparisons of a call. */
export class Comparisons {
  #count = 0;

  /**
   * Compare two values. Integers and floats are compared as numbers, arrays and structs member by member; null equals
   * absent.
   * @throws StreamFailure for more than 1000 levels, or too many members
   */
  isSame(left: StreamValue, right: StreamValue, level = 0): boolean {
    if (left === right) return true;
    if (level > 0) this.#take(1);
    if (isNumber(left)) return isNumber(right) && isSameNumber(left, right);
    if (isNull(left)) return isNull(right);
    if (typeof left !== 'object' || typeof right !== 'object') return false;
    checkLevel(level);
    if (left instanceof Date) return right instanceof Date && left.getTime() === right.getTime();
    if (left instanceof Uint8Array) return right instanceof Uint8Array && Buffer.compare(left, right) === 0;
    if (isArray(left))
      return (
        isArray(right) &&
        left.length === right.length &&
        left.every((each, index) => this.isSame(each, right[index], level + 1))
      );
    return isStruct(right) && this.#haveSameMembers(left as StreamValueObject, right, level);
  }

  /** A text that equal values share, and no others. @throws StreamFailure as `isSame` */
  keyOf(value: StreamValue, level = 0): string {
    switch (kindOf(value)) {
      case 'null':
        return 'n';
      case 'bigint':
      case 'float':
        return String(exactNumber(value as number | bigint));
      case 'string':
        return JSON.stringify(value);
      case 'boolean':
        return String(value);
      case 'datetime':
        return `t${(value as Date).getTime()}`;
      case 'bytea':
        return `b${Buffer.from(value as Uint8Array).toString('base64')}`;
    }
    checkLevel(level);
    if (isArray(value)) {
      this.#take(value.length + 1);
      return `[${value.map((each) => this.keyOf(each, level + 1)).join(',')}]`;
    }
    const keys = Object.keys(value as StreamValueObject).sort();
    this.#take(keys.length + 1);
    return `{${keys.map((key) => `${JSON.stringify(key)}:${this.keyOf((value as StreamValueObject)[key], level + 1)}`).join(',')}}`;
  }

  #haveSameMembers(left: StreamValueObject, right: StreamValueObject, level: number): boolean {
    const keys = Object.keys(left);
    return (
      keys.length === Object.keys(right).length &&
      keys.every((key) => Object.hasOwn(right, key) && this.isSame(left[key], right[key], level + 1))
    );
  }

  #take(count: number): void {
    this.#count += count;
    if (this.#count > MAX_COMPARED) throw new StreamFailure(`more than ${MAX_COMPARED} members are compared`);
  }
}

/** The distinct values among those that were added. */
export class DistinctValues {
  readonly #comparisons = new Comparisons();
  readonly #simple = new Set<StreamValue>();
  readonly #nested = new Set<string>();

  has(value: StreamValue): boolean {
    return isSimple(value) ? this.#simple.has(simple(value)) : this.#nested.has(this.#comparisons.keyOf(value));
  }

  /** @returns whether the value is new */
  add(value: StreamValue): boolean {
    const set: Set<StreamValue> = isSimple(value) ? this.#simple : this.#nested;
    const size = set.size;
    set.add(isSimple(value) ? simple(value) : this.#comparisons.keyOf(value));
    return set.size > size;
  }
}

function isSimple(value: StreamValue): boolean {
  return typeof value !== 'object' || value === null;
}

function simple(value: StreamValue): StreamValue {
  return isNumber(value) ? exactNumber(value) : (value ?? null);
}

/**
 * The common representation of equal integers and floats: a float for an integer that is exact as a float, otherwise a
 * bigint.
 */
export function exactNumber(value: number | bigint): number | bigint {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(value) : value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function isSameNumber(left: number | bigint, right: number | bigint): boolean {
  // biome-ignore lint/suspicious/noDoubleEquals: an integer and a float are the same if their values are
  return left == right || (Number.isNaN(left) && Number.isNaN(right));
}
