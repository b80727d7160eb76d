import { InvalidInput, show } from '../base/errors.ts';

const MAX_NAME_BYTES = 65_535;
/** A surrogate without its pair, which UTF-8 cannot represent, or U+0000, which a string of MQTT cannot contain. */
const NOT_IN_MQTT = /[\0\p{Surrogate}]/u;

/** Description of the values that `isClientName` accepts, for error messages. */
export const CLIENT_NAME = 'a string of 1 to 65,535 bytes of UTF-8 without U+0000';

/** Tell whether an MQTT client can have a value as its client id or user name. */
export function isClientName(value: unknown): value is string {
  if (typeof value !== 'string' || value === '' || NOT_IN_MQTT.test(value)) return false;
  return Buffer.byteLength(value) <= MAX_NAME_BYTES;
}

/** Check a password or another secret. @throws InvalidInput `code`, without the secret */
export function checkSecret(value: unknown, field: string, code: string): void {
  if (typeof value === 'string' && value !== '') return;
  const expected = 'a string that is not empty';
  const got = value === '' || value === undefined || value === null ? show(value) : `a value of type ${typeof value}`;
  throw new InvalidInput(code, field, expected, got, `${field}: expected ${expected}, got ${got}`);
}
