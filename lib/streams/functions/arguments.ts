import {
  describe,
  isArray,
  isNull,
  isStruct,
  printed,
  StreamFailure,
  type StreamValue,
  type StreamValueObject
} from '../values/values.ts';

/**
 * An argument as a string: floats in their shortest form, bytes as UTF-8, null as an empty string.
 * @throws StreamFailure if an array or a struct is too long or has too many levels
 */
export function textOf(value: StreamValue): string {
  if (typeof value === 'string') return value;
  if (isNull(value)) return '';
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length).toString();
  return printed(value);
}

/** An argument as bytes: a string as UTF-8. @throws StreamFailure as `textOf` */
export function bytesOf(value: StreamValue): Uint8Array {
  return value instanceof Uint8Array ? value : Buffer.from(textOf(value));
}

/** @throws StreamFailure if the argument is not a number */
export function floatOf(value: StreamValue): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  throw new StreamFailure(`only float64 & int type are supported, but got ${describe(value)}`);
}

/** An integer, or a float without a fraction, as in rows without a schema. Undefined for other arguments. */
export function tryInteger(value: StreamValue): bigint | undefined {
  if (typeof value === 'bigint') return value;
  return typeof value === 'number' && Number.isInteger(value) ? BigInt.asIntN(64, BigInt(value)) : undefined;
}

/** @throws StreamFailure if the argument is not an integer */
export function integerOf(value: StreamValue): bigint {
  const integer = tryInteger(value);
  if (integer === undefined) throw new StreamFailure(`cannot convert ${describe(value)} to int`);
  return integer;
}

/** An integer that is used as an index or a count; it is not exact beyond 2^53. @throws StreamFailure */
export function indexOf(value: StreamValue): number {
  return Number(integerOf(value));
}

/** @throws StreamFailure with the message if the argument is not an array */
export function arrayOf(
  value: StreamValue,
  message = 'first argument should be array of interface{}'
): readonly StreamValue[] {
  if (isArray(value)) return value;
  throw new StreamFailure(`${message}, but got ${describe(value)}`);
}

/** @throws StreamFailure with the message if the argument is not a struct */
export function structOf(
  value: StreamValue,
  message = 'the argument should be map[string]interface{}'
): StreamValueObject {
  if (isStruct(value)) return value;
  throw new StreamFailure(`${message}, got ${describe(value)}`);
}

/** @throws StreamFailure with the message if the argument is not a boolean */
export function booleanOf(value: StreamValue, message: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new StreamFailure(`${message} but got ${describe(value)}`);
}
