/** The values that drivers return for text, numbers and booleans. */

/** A value as text; undefined for NULL. @throws Error if it is neither text nor number nor boolean nor bytes */
export function textOf(value: unknown, name: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  throw new Error(`the field "${name}" is neither text nor a number`);
}

/**
 * A value as bytes; undefined for NULL.
 * @throws like `textOf`
 */
export function bytesOf(value: unknown, name: string): Buffer | undefined {
  if (value instanceof Uint8Array) return Buffer.from(value);
  const text = textOf(value, name);
  return text === undefined ? undefined : Buffer.from(text);
}

/** Check whether a value is truthy in a database: true, 1, `true` or `t`, or a set bit. */
export function isTrue(value: unknown, name: string): boolean {
  if (value instanceof Uint8Array && value.length === 1 && value[0] < 2) return value[0] === 1;
  return ['1', 'true', 't'].includes(textOf(value, name) ?? '');
}
