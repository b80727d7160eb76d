import { compareStrings } from '../../sql/compare.ts';
import { describe, isNull, kindOf, StreamFailure, type StreamValue, typeName } from '../values/values.ts';

/** The operators that compare two values. */
export type Comparing = '=' | '!=' | '<' | '>' | '<=' | '>=';

/** Compares two values. @throws StreamFailure if they cannot be compared; the table is in `semantics.ts` */
type Compare = (left: StreamValue, right: StreamValue) => boolean;

/**
 * The comparisons by operator. All return false if a side is null. Floats are tested first, because most rows have
 * them.
 */
export const COMPARISONS: Readonly<Record<Comparing, Compare>> = {
  '=': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left === right;
    if (typeof left === 'string' && typeof right === 'string') return left === right;
    return !isNull(left) && !isNull(right) && order('=', left, right) === 0;
  },
  '!=': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left !== right;
    if (typeof left === 'string' && typeof right === 'string') return left !== right;
    return !isNull(left) && !isNull(right) && order('!=', left, right) !== 0;
  },
  '<': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left < right;
    return !isNull(left) && !isNull(right) && order('<', left, right) < 0;
  },
  '>': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left > right;
    return !isNull(left) && !isNull(right) && order('>', left, right) > 0;
  },
  '<=': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left <= right;
    return !isNull(left) && !isNull(right) && order('<=', left, right) <= 0;
  },
  '>=': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left >= right;
    return !isNull(left) && !isNull(right) && order('>=', left, right) >= 0;
  }
};

/**
 * A comparison with a number that is known when the rule is created. The other value is nearly always a float or an
 * integer, and neither is converted: JavaScript compares them exactly.
 */
export function compareWithNumber(operator: Comparing, right: number | bigint): (left: StreamValue) => boolean {
  const compare = COMPARISONS[operator];
  const float = Number(right);
  const isExact = typeof right === 'number' || BigInt(float) === right;
  if (!isExact) return (left) => compare(left, right);
  const whole = Number.isInteger(float) ? BigInt(float) : undefined;
  switch (operator) {
    case '=':
      return (left) =>
        typeof left === 'number' ? left === float : typeof left === 'bigint' ? left === whole : compare(left, right);
    case '!=':
      return (left) =>
        typeof left === 'number' ? left !== float : typeof left === 'bigint' ? left !== whole : compare(left, right);
    case '<':
      return (left) => (typeof left === 'number' || typeof left === 'bigint' ? left < float : compare(left, right));
    case '>':
      return (left) => (typeof left === 'number' || typeof left === 'bigint' ? left > float : compare(left, right));
    case '<=':
      return (left) => (typeof left === 'number' || typeof left === 'bigint' ? left <= float : compare(left, right));
    case '>=':
      return (left) => (typeof left === 'number' || typeof left === 'bigint' ? left >= float : compare(left, right));
  }
}

/** Negative, 0 or positive; NaN if a number is NaN. */
function order(operator: Comparing, left: StreamValue, right: StreamValue): number {
  refuseComposite(operator, left);
  refuseComposite(operator, right);
  switch (typeof left) {
    case 'number':
    case 'bigint':
      if (typeof right === 'number' || typeof right === 'bigint') return orderNumbers(left, right);
      break;
    case 'string':
      if (typeof right === 'string') return compareStrings(left, right); // by the bytes of UTF-8
      break;
    case 'boolean':
      if (typeof right === 'boolean' && (operator === '=' || operator === '!=')) return left === right ? 0 : 1;
      break;
    case 'object':
      if (left instanceof Date) {
        const time = timeOf(right);
        if (time !== undefined) return left.getTime() - time;
      }
  }
  throw invalidOperation(operator, left, right);
}

/** Compare two numbers exactly: an integer beyond 2^53 is not rounded to a float. */
function orderNumbers(left: number | bigint, right: number | bigint): number {
  return left < right
    ? -1
    : left > right
      ? 1
      : Number.isNaN(Number(left)) || Number.isNaN(Number(right))
        ? Number.NaN
        : 0;
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/** A value that is compared with a datetime, as a Unix time in milliseconds. */
function timeOf(value: StreamValue): number | undefined {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value);
  if (typeof value !== 'string' || !ISO_TIME.test(value)) return undefined;
  const time = Date.parse(value);
  return Number.isNaN(time) ? undefined : time;
}

/** Arrays, structs and bytes support only path operators. @throws StreamFailure */
export function refuseComposite(operator: string, value: StreamValue): void {
  const kind = kindOf(value);
  if (kind === 'array' || kind === 'struct' || kind === 'bytea')
    throw new StreamFailure(`${operator} is an invalid operation for ${typeName(value)}`);
}

/** The failure of an operator for two values of these types. */
export function invalidOperation(operator: string, left: StreamValue, right: StreamValue): StreamFailure {
  return new StreamFailure(`invalid operation ${describe(left)} ${operator} ${describe(right)}`);
}
