import { StreamFailure } from '../values/values.ts';

/** Maximum nesting; deeper values are refused. */
const MAX_LEVELS = 1000;

/**
 * Encode a value as JSON, in which bigints keep all digits, bytes are base64, and times are in ISO 8601. NaN and
 * infinity become null.
 * @throws StreamFailure for more than 1000 levels, for example an object that contains itself
 */
export function jsonText(value: unknown): string {
  return flatText(value) ?? textOfAny(value);
}

function textOfAny(value: unknown): string {
  return isPlain(value, 0) ? (JSON.stringify(value) ?? 'null') : textOf(value, 0);
}

/** The names of columns as JSON, followed by a colon. */
const KEYS = new Map<string, string>();
const MAX_KEYS = 10_000;
const MAX_KEY_CHARACTERS = 100;
/** Strings that need no escapes in JSON. */
const PLAIN_TEXT = /^[ !#-[\]-~]{0,100}$/;

/**
 * The JSON of an object that has only short values; undefined for other objects. This is the most frequent form, and
 * faster than JSON.stringify.
 */
function flatText(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return undefined;
  let text = '';
  for (const key in value) {
    const each = (value as Record<string, unknown>)[key];
    if (typeof each === 'number') text += `${keyText(key, text)}${Number.isFinite(each) ? each : null}`;
    else if (typeof each === 'boolean') text += keyText(key, text) + each;
    else if (typeof each === 'string' && PLAIN_TEXT.test(each)) text += `${keyText(key, text)}"${each}"`;
    else return undefined;
  }
  return text === '' ? '{}' : `${text}}`;
}

/** @param before the text in front of it */
function keyText(key: string, before: string): string {
  let text = KEYS.get(key);
  if (text === undefined) {
    text = `${JSON.stringify(key)}:`;
    if (key.length <= MAX_KEY_CHARACTERS && KEYS.size < MAX_KEYS) KEYS.set(key, text);
  }
  return before === '' ? `{${text}` : `,${text}`;
}

/** Check whether JSON.stringify gives the same result, at much lower cost. */
function isPlain(value: unknown, level: number): boolean {
  if (typeof value === 'bigint') return false;
  if (typeof value !== 'object' || value === null) return true;
  if (value instanceof Uint8Array) return false;
  if (level > MAX_LEVELS) throw tooDeep();
  if (Array.isArray(value)) {
    for (const each of value) if (!isPlain(each, level + 1)) return false;
    return true;
  }
  for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], level + 1)) return false;
  return true;
}

function textOf(value: unknown, level: number): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (value instanceof Uint8Array)
    return JSON.stringify(Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64'));
  if (value instanceof Date) return JSON.stringify(value);
  if (level > MAX_LEVELS) throw tooDeep();
  if (Array.isArray(value)) return `[${value.map((each) => textOf(each, level + 1)).join(',')}]`;
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${textOf(each, level + 1)}`).join(',')}}`;
}

function tooDeep(): StreamFailure {
  return new StreamFailure(`a value has more than ${MAX_LEVELS} levels`);
}
