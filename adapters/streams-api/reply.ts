import { encodeJson, type Value } from '../../lib/index.ts';
import { type Answer, Fault, shortened } from '../rest/index.ts';
import { CODES, type StreamFault } from './faults.ts';

/** A value that is sent as JSON. */
export class JsonReply {
  readonly value: unknown;
  readonly headers: Readonly<Record<string, string>>;

  constructor(value: unknown, headers: Readonly<Record<string, string>> = {}) {
    this.value = value;
    this.headers = headers;
  }
}

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };
const JSON_TYPE = { 'content-type': 'application/json' };
/** Browsers must not interpret error texts as pages, whatever they contain. */
const PLAIN = { 'x-content-type-options': 'nosniff' };
/** Requests HTTP Basic credentials. */
const CHALLENGE = { 'www-authenticate': 'Basic realm="embermq", charset="UTF-8"' };
/** Statuses after which the remaining body is not read. */
const CLOSING: readonly number[] = [401, 403, 408, 413, 429];
/**
 * Time after which failed logins are forgotten, and after which a stopping service may be available again, in seconds.
 */
const RETRY: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: CHALLENGE,
  429: { 'retry-after': '60' },
  503: { 'retry-after': '5' }
};

/** The answer of a successful operation. */
export function answerWith(status: number, result: string | JsonReply): Answer {
  if (typeof result === 'string') return { status, headers: TEXT, body: result };
  return { status, headers: { ...JSON_TYPE, ...result.headers }, body: `${jsonText(result.value)}\n` };
}

/**
 * The answer to a failed request: `PREFIX: MESSAGE` as text, or `{"error":CODE,"message":"PREFIX: MESSAGE"}`.
 * @param cause the error behind the fault
 */
export function answerTo(
  fault: StreamFault,
  prefix: string,
  { wantsJson, cause }: { readonly wantsJson: boolean; readonly cause?: unknown }
): Answer {
  const message = shortened(fault.isWhole || prefix === '' ? fault.message : `${prefix}: ${fault.message}`);
  const own = cause instanceof Fault ? cause.headers : {};
  const headers = { ...RETRY[fault.status], ...own };
  const closes = CLOSING.includes(fault.status);
  const { status } = fault;
  if (wantsJson) {
    const body = `${jsonText({ error: CODES[fault.code], message })}\n`;
    return { status, headers: { ...JSON_TYPE, ...headers }, body, closes };
  }
  return { status, headers: { ...TEXT, ...PLAIN, ...headers }, body: `${message}\n`, closes };
}

/** JSON in the form of the original: HTML characters are escaped. Integers keep their digits. */
export function jsonText(value: unknown): string {
  return escaped(encodeJson(value as Value));
}

/** The same with line breaks, and two spaces per level. */
export function indentedJson(value: unknown): string {
  return escaped(JSON.stringify(value, undefined, 2));
}

function escaped(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  );
}

/** An object with its keys in alphabetical order, recursively. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, one]) => [name, sorted(one)]));
}

/** Check whether the `Accept` header prefers JSON to text. */
export function wantsJson(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weightOf = (types: RegExp) =>
    Math.max(
      0,
      ...accept
        .split(',')
        .filter((one) => types.test(one))
        .map(quality)
    );
  const json = weightOf(/^\s*application\/(\w+\+)?json\s*(;|$)/i);
  return json > 0 && json >= weightOf(/^\s*text\/(plain|\*)\s*(;|$)/i);
}

function quality(range: string): number {
  const [, text] = /;\s*q=([\d.]+)/i.exec(range) ?? [];
  return text === undefined ? 1 : Number(text) || 0;
}
