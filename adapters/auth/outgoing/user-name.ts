// biome-ignore lint/suspicious/noControlCharactersInRegex: names that contain them are refused, as in CONNECT
const CONTROLS = /[\u0000-\u001f\u007f-\u009f]/;

/** Check whether a value can be the user name of a client. */
export function isUserName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !CONTROLS.test(value) && Buffer.byteLength(value) <= 65_535;
}
