import { isUtf8 } from 'node:buffer';
import { validateHeaderName } from 'node:http';
import { unknownKey } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { checkUrl, type HttpCall } from '../../outgoing/index.ts';
import { type Facts, Template } from '../outgoing/template.ts';

/** A JSON value; placeholders are possible in its strings. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/**
 * A request with placeholders for the facts of a client:
 *
 * | placeholder | fact |
 * |---|---|
 * | `%u`, `%c` | user name, client id |
 * | `%P` | password (not in `acl`) |
 * | `%a`, `%p` | IP address of the client, port of the listener |
 * | `%C`, `%d` | common name and subject of the client certificate |
 * | `%m`, `%r` | mount point; the protocol, `mqtt` |
 * | `%A`, `%t` | in `acl` only: 1 for subscribe and 2 for publish; topic name or filter |
 * | `%%` | a percent sign |
 *
 * By default, the documented parameters are sent: in `query` for GET, otherwise as `form`.
 */
export interface HttpRequest {
  /** Without placeholders. */
  readonly url: string | URL;
  /** Default POST. */
  readonly method?: 'GET' | 'POST';
  /**
   * Additional headers. A client is refused if one of its values is not printable ASCII, because it cannot be part of a
   * header line.
   */
  readonly headers?: Readonly<Record<string, string>>;
  /** Parameters of the query. Servers often log the query, so a password should not be part of it. */
  readonly query?: Readonly<Record<string, string>>;
  /** Parameters of the body, as `application/x-www-form-urlencoded`. */
  readonly form?: Readonly<Record<string, string>>;
  /** The body, as `application/json`. */
  readonly json?: JsonValue;
}

/** Thrown if a fact of a client cannot be part of the request, so that the client is refused. */
export class NotEncodable extends Error {}

const KEYS = ['url', 'method', 'headers', 'query', 'form', 'json'];
/** Headers that are determined by the request. */
const RESERVED_HEADERS = [
  'content-length',
  'content-type',
  'transfer-encoding',
  'connection',
  'host',
  'expect',
  'upgrade'
];
/** A value that servers and proxies read unchanged: printable, and without surrounding spaces, which they remove. */
const HEADER_VALUE = /^([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?$/;

/** A request with placeholders, checked and ready to be filled. */
export class RequestTemplate {
  readonly url: URL;
  /** The placeholders that occur: the request depends only on their facts. */
  readonly letters: readonly string[];
  readonly #method: string;
  readonly #path: string;
  readonly #headers: readonly (readonly [string, Template])[];
  readonly #query: readonly (readonly [string, Template])[];
  readonly #form: readonly (readonly [string, Template])[] | undefined;
  /** JSON text and string templates. */
  readonly #json: readonly (string | Template)[] | undefined;

  /**
   * @param letters the allowed placeholders
   * @param defaults the parameters if the request has none
   * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
   */
  constructor(given: HttpRequest, letters: string, defaults: Readonly<Record<string, string>>, field: string) {
    const fail = (name: string, expected: string): never => {
      throw new InvalidInput('OPTION_INVALID', `${field}.${name}`, expected, given[name as keyof HttpRequest]);
    };
    if (typeof given !== 'object' || given === null)
      throw new InvalidInput('OPTION_INVALID', field, 'an object with a url', given);
    for (const key of Object.keys(given)) if (!KEYS.includes(key)) throw unknownKey(key, KEYS, field);
    const { method = 'POST', headers = {}, json } = given;
    let { query, form } = given;
    if (method !== 'GET' && method !== 'POST') fail('method', '"GET" or "POST"');
    if (method === 'GET' && (form !== undefined || json !== undefined))
      fail('method', '"POST", because there is a body');
    if (form !== undefined && json !== undefined) fail('json', 'either "form" or "json"');
    if (query === undefined && form === undefined && json === undefined) {
      if (method === 'GET') query = defaults;
      else form = defaults;
    }
    const compiled = (texts: unknown, name: string) => compile(texts, letters, `${field}.${name}`);
    this.url = checkUrl(given.url, `${field}.url`);
    this.#path = this.url.pathname + this.url.search;
    this.#method = method;
    this.#headers = compiled(headers, 'headers');
    for (const [name] of this.#headers)
      if (!isHeaderName(name)) fail('headers', `names of headers other than ${RESERVED_HEADERS.join(', ')}`);
    this.#query = compiled(query ?? {}, 'query');
    this.#form = form === undefined ? undefined : compiled(form, 'form');
    this.#json = json === undefined ? undefined : compileJson(json, letters, `${field}.json`);
    const templates = [...this.#headers, ...this.#query, ...(this.#form ?? []), this.#json ?? []].flat();
    this.letters = templates.flatMap((part) => (typeof part === 'string' ? [] : part.letters));
  }

  /** Insert the facts of a client. @throws NotEncodable */
  fill(facts: Facts): HttpCall {
    const headers: Record<string, string> = Object.fromEntries(
      this.#headers.map(([name, template]) => [name, headerValue(template, facts)])
    );
    const query = parameters(this.#query, facts);
    const path = query === '' ? this.#path : `${this.#path}${this.#path.includes('?') ? '&' : '?'}${query}`;
    const body = this.#body(facts);
    if (body !== undefined) {
      headers['content-type'] = this.#json === undefined ? 'application/x-www-form-urlencoded' : 'application/json';
      headers['content-length'] = String(body.length);
    } else if (this.#method === 'POST') headers['content-length'] = '0';
    return { method: this.#method, path, headers, body, mayRepeat: true }; // it only asks
  }

  #body(facts: Facts): Buffer | undefined {
    if (this.#form !== undefined) return Buffer.from(parameters(this.#form, facts));
    if (this.#json === undefined) return undefined;
    return Buffer.from(this.#json.map((part) => (typeof part === 'string' ? part : jsonString(part, facts))).join(''));
  }
}

function compile(texts: unknown, letters: string, field: string): readonly (readonly [string, Template])[] {
  const isObject = typeof texts === 'object' && texts !== null && !Array.isArray(texts);
  if (!isObject || !Object.values(texts).every((text) => typeof text === 'string'))
    throw new InvalidInput('OPTION_INVALID', field, 'an object with strings', texts);
  return Object.entries(texts).map(([name, text]) => [name, new Template(text, letters, `${field}.${name}`)] as const);
}

function compileJson(value: JsonValue, letters: string, field: string): (string | Template)[] {
  if (typeof value === 'string') return [new Template(value, letters, field)];
  if (typeof value === 'object' && value !== null) {
    const isList = Array.isArray(value);
    const items = Object.entries(value).map(([key, item]): (string | Template)[] => {
      const compiled = compileJson(item as JsonValue, letters, `${field}.${key}`);
      return isList ? compiled : [`${JSON.stringify(key)}:`, ...compiled];
    });
    const inner = items.flatMap((item, at) => (at === 0 ? item : [',', ...item]));
    return isList ? ['[', ...inner, ']'] : ['{', ...inner, '}'];
  }
  const isGood = value === null || typeof value === 'boolean' || Number.isFinite(value);
  if (!isGood) throw new InvalidInput('OPTION_INVALID', field, 'a JSON value', value);
  return [JSON.stringify(value)];
}

function isHeaderName(name: string): boolean {
  try {
    validateHeaderName(name);
    return !RESERVED_HEADERS.includes(name.toLowerCase());
  } catch {
    return false;
  }
}

/** Fill a header. Each value is checked separately, so that a client cannot remove the text around its value. */
function headerValue(template: Template, facts: Facts): string {
  const isGood = (value: string | Buffer) => HEADER_VALUE.test(value.toString());
  const text = template.fill(facts).toString('latin1');
  if (!template.everyValue(facts, isGood) || !HEADER_VALUE.test(text.trim()))
    throw new NotEncodable('a value of the client cannot be part of a header');
  return text;
}

function parameters(list: readonly (readonly [string, Template])[], facts: Facts): string {
  return list
    .map(([name, template]) => `${percentEncoded(Buffer.from(name))}=${percentEncoded(template.fill(facts))}`)
    .join('&');
}

function jsonString(template: Template, facts: Facts): string {
  const bytes = template.fill(facts);
  if (!isUtf8(bytes)) throw new NotEncodable('a value of the client is not valid UTF-8 and cannot be part of JSON');
  return JSON.stringify(bytes.toString());
}

/**
 * The encoding of each byte: unchanged for letters, digits and `-._~` [RFC 3986 section 2.3], otherwise `%` and two
 * digits.
 */
const ENCODED = Array.from({ length: 256 }, (_, byte) => {
  const letter = String.fromCharCode(byte);
  return /[A-Za-z0-9._~-]/.test(letter) ? letter : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
});

function percentEncoded(bytes: Buffer): string {
  let text = '';
  for (const byte of bytes) text += ENCODED[byte];
  return text;
}
