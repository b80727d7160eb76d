import { InvalidInput } from '../base/errors.ts';

/**
 * The length of `text` in bytes of UTF-8.
 * @param field name of the string in the error message
 * @throws InvalidInput `VALUE_TOO_LONG` above 65,535 bytes, the longest string in MQTT
 */
export function byteLength(text: string, field: string): number {
  const length = Buffer.byteLength(text);
  if (length > 0xffff) throw tooLong(field, length);
  return length;
}

/** Write a string of at most 65,535 bytes after its two length bytes. @returns the offset after it */
export function writeString(buf: Buffer, at: number, text: string): number {
  const length = buf.write(text, at + 2);
  buf[at] = length >>> 8;
  buf[at + 1] = length;
  return at + 2 + length;
}

/**
 * Write binary data after its two length bytes.
 * @returns the offset after it
 * @throws InvalidInput `VALUE_TOO_LONG` above 65,535 bytes
 */
export function writeBinary(buf: Buffer, at: number, value: Buffer, field: string): number {
  if (value.length > 0xffff) throw tooLong(field, value.length);
  at = buf.writeUInt16BE(value.length, at);
  buf.set(value, at);
  return at + value.length;
}

function tooLong(field: string, length: number): InvalidInput {
  return new InvalidInput('VALUE_TOO_LONG', field, 'at most 65535 bytes', `${length} bytes`);
}
