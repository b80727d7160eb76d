import { InvalidInput } from '../errors.ts';

/**
 * UTF-8 bytes of `text`.
 * @param field names it in the error
 * @throws InvalidInput `VALUE_TOO_LONG` above 65,535, which no string of MQTT can hold
 */
export function byteLength(text: string, field: string): number {
  const length = Buffer.byteLength(text);
  if (length > 0xffff) throw tooLong(field, length);
  return length;
}

/** Write a string of at most 65,535 bytes with its two length bytes. @returns the offset behind it */
export function writeString(buf: Buffer, at: number, text: string): number {
  const length = buf.write(text, at + 2);
  buf[at] = length >>> 8;
  buf[at + 1] = length;
  return at + 2 + length;
}

/** Write binary data with its two length bytes. @returns the offset behind it */
export function writeBinary(buf: Buffer, at: number, value: Buffer, field: string): number {
  if (value.length > 0xffff) throw tooLong(field, value.length);
  at = buf.writeUInt16BE(value.length, at);
  buf.set(value, at);
  return at + value.length;
}

function tooLong(field: string, length: number): InvalidInput {
  return new InvalidInput('VALUE_TOO_LONG', field, 'at most 65535 bytes', `${length} bytes`);
}
