import { checkLevel, isArray, isStruct, kindOf, type StreamValue } from '../values/values.ts';
import { TextParts } from './bounds.ts';

/**
 * Encode a value as compact JSON: integers with all their digits, NaN and infinity as null, times in ISO 8601, bytes in
 * base64; absent members are omitted.
 * @throws StreamFailure if the text would be too long, or if there are more than 1000 levels
 */
export function jsonOf(value: StreamValue): string {
  const parts = new TextParts();
  encode(value, parts, 0);
  return parts.toString();
}

function encode(value: StreamValue, parts: TextParts, level: number): void {
  if (isArray(value)) {
    checkLevel(level);
    parts.add('[');
    for (const [index, each] of value.entries()) {
      if (index > 0) parts.add(',');
      encode(each, parts, level + 1);
    }
    parts.add(']');
  } else if (isStruct(value)) {
    checkLevel(level);
    let separator = '{';
    for (const [key, each] of Object.entries(value)) {
      if (each === undefined) continue;
      parts.add(`${separator}${JSON.stringify(key)}:`);
      encode(each, parts, level + 1);
      separator = ',';
    }
    parts.add(separator === '{' ? '{}' : '}');
  } else parts.add(scalar(value));
}

function scalar(value: StreamValue): string {
  switch (kindOf(value)) {
    case 'string':
      return JSON.stringify(value);
    case 'float':
      return Number.isFinite(value) ? String(value) : 'null';
    case 'datetime':
      return JSON.stringify(value);
    case 'bytea':
      return JSON.stringify(Buffer.from(value as Uint8Array).toString('base64'));
    case 'null':
      return 'null';
    default:
      return String(value);
  }
}
