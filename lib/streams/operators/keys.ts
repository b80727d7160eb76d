import type { Evaluate, Tuple } from '../values/tuple.ts';
import { kindOf, printed, type StreamValue } from '../values/values.ts';

/** The key of groups, partitions and their maps. Equal keys stand for equal values of the same types. */
export type Key = string | number | bigint | boolean | null;

/** Prefix of a string that encodes another value. */
const CODE = '\0';

/**
 * Make a function that returns the key of a tuple for the values of expressions. Values of different types have
 * different keys [stream rules 4.6, rule 10]. The key of a single string or number is that value itself.
 */
export function keyOf(expressions: readonly Evaluate[]): (tuple: Tuple) => Key {
  if (expressions.length === 0) return () => null;
  if (expressions.length > 1) return (tuple) => joined(expressions, tuple);
  const [expression] = expressions;
  return (tuple) => {
    const value = expression(tuple);
    switch (typeof value) {
      case 'string':
        return value.startsWith(CODE) ? CODE + codeOf(value) : value;
      case 'number':
      case 'bigint':
      case 'boolean':
        return value;
      default:
        return value === null || value === undefined ? null : CODE + codeOf(value);
    }
  };
}

/** The key of values. */
export function keyOfValues(values: readonly StreamValue[]): Key {
  let key = CODE;
  for (const value of values) key += codeOf(value);
  return key;
}

function joined(expressions: readonly Evaluate[], tuple: Tuple): string {
  let key = CODE;
  for (const expression of expressions) key += codeOf(expression(tuple));
  return key;
}

/** Encode a value as a self-delimiting string. */
function codeOf(value: StreamValue): string {
  switch (typeof value) {
    case 'string':
      return `s${value.length}:${value}`;
    case 'number':
      return `f${value};`;
    case 'bigint':
      return `i${value};`;
    case 'boolean':
      return value ? 't' : 'n';
  }
  if (value === null || value === undefined) return '0';
  if (value instanceof Date) return `d${value.getTime()};`;
  const text = printed(value);
  return `${kindOf(value)}${text.length}:${text}`;
}
