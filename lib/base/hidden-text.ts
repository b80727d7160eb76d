// Secrets in text that messages, logs and interfaces show: the user information, query and fragment of URLs, and in JSON
// the values whose name denotes a secret. Without imports, because every error shows text.

/** Replaces a secret in output. In a change it means the current one. */
export const HIDDEN = '******';

/** A part of a text that may be a secret: of a URL its user information, a value of its query, or its fragment; a value in JSON. */
interface SecretPart {
  readonly from: number;
  readonly to: number;
  /** The number of the URL in the text, and the name of the value; in JSON the name. */
  readonly key: string;
}

/**
 * Names that denote secrets, for values that no table describes. Not among them are `max_tokens` and `tokenizer`, which are about parts of a
 * text, `bypass` and `compass`.
 */
const SECRET_NAME =
  /passw|pass[-_]*phrase|(?<!by|com)pass$|psk$|secret|(?<!max[-_]?)token(?!i[sz])|credential|authorization|cookie|api[-_]*key/i;

/** Check whether a value is a secret by its name. Booleans and null are not secrets. */
export function isSecretByName(name: string, value: unknown): boolean {
  return typeof value !== 'boolean' && value !== null && SECRET_NAME.test(name);
}

/** Text with `******` instead of possible secrets. */
export function hideInText(text: string): string {
  return replaced(text, (part) => (part.to > part.from ? HIDDEN : ''));
}

/** Text with the secrets of another text in place of its `******`. If there is none, `******` stays. */
export function keepInText(text: string, present: unknown): string {
  if (typeof present !== 'string' || !text.includes(HIDDEN)) return text;
  const known = new Map<string, string[]>();
  for (const { from, to, key } of secretParts(present).reverse()) {
    const value = present.slice(from, to);
    const values = known.get(key);
    if (values === undefined) known.set(key, [value]);
    else values.push(value);
  }
  return replaced(text, ({ from, to, key }) => {
    const given = text.slice(from, to);
    const value = known.get(key)?.pop(); // also of a given value: names may occur more than once
    return given === HIDDEN ? (value ?? given) : given;
  });
}

/** True if `******` stands for a secret in a text. */
export function hasHiddenInText(text: string): boolean {
  return text.includes(HIDDEN) && secretParts(text).some(({ from, to }) => text.slice(from, to) === HIDDEN);
}

function replaced(text: string, by: (part: SecretPart) => string): string {
  let end = 0;
  let result = '';
  for (const part of secretParts(text)) {
    result += text.slice(end, part.from) + by(part);
    end = part.to;
  }
  return end === 0 ? text : result + text.slice(end);
}

/** The parts in their order. Characters are not examined again for each part, because the text may be long and have many of them. */
function secretParts(text: string): SecretPart[] {
  const parts: SecretPart[] = [];
  let begin = 0;
  let urls = 0;
  for (const value of secretsInJson(text)) {
    urls = addPartsOfUrls(parts, text, urls, begin, value.from);
    parts.push(value);
    begin = value.to;
  }
  addPartsOfUrls(parts, text, urls, begin, text.length);
  return parts;
}

/** Values of JSON that are shown: placeholders of templates, and words that are not strings. */
const PLACEHOLDER = /^\{\{\s*[.\w]+\s*\}\}$/;
const NO_SECRET = /^(true|false|null)$/;

/** Values in JSON, which may be a template or be cut off, whose names denote secrets. */
function* secretsInJson(text: string): Generator<SecretPart> {
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at)) {
    const name = text.slice(at + 1, (at = endOfString(text, at + 1)));
    const colon = /\s*:\s*/y;
    colon.lastIndex = ++at;
    if (!colon.test(text) || !SECRET_NAME.test(name)) continue;
    const isQuoted = text[colon.lastIndex] === '"';
    const from = colon.lastIndex + (isQuoted ? 1 : 0);
    at = isQuoted ? endOfString(text, from) : endOfValue(text, from);
    const value = text.slice(from, at);
    const isShown = value === '' || PLACEHOLDER.test(value) || (!isQuoted && NO_SECRET.test(value));
    if (!isShown) yield { from, to: at, key: `"${name}"` };
    if (isQuoted) at++;
  }
}

/** The position of the quotation mark that ends a string of JSON. */
function endOfString(text: string, from: number): number {
  let at = firstOf(text, from, /["\\]/g);
  while (text[at] === '\\') at = firstOf(text, at + 2, /["\\]/g);
  return at;
}

/** The position after a value of JSON that is not a string. An object or a list, also one that is cut off, is one value. */
function endOfValue(text: string, from: number): number {
  if (text[from] !== '{' && text[from] !== '[') return firstOf(text, from, /[\s"{}[\],]/g);
  let level = 0;
  for (let at = from; at < text.length; at = firstOf(text, at + 1, /["{}[\]]/g)) {
    if (text[at] === '"') at = endOfString(text, at + 1);
    else if (text[at] === '{' || text[at] === '[') level++;
    else if (--level === 0) return at + 1;
  }
  return text.length;
}

/** Add the parts of the URLs between two positions. @param number that of the first URL @returns that of the next one */
function addPartsOfUrls(parts: SecretPart[], whole: string, number: number, start: number, end: number): number {
  const text = whole.slice(start, end);
  const add = (from: number, to: number, key: string) => parts.push({ from: start + from, to: start + to, key });
  let query = 0;
  for (let at = text.indexOf('://'); at >= 0; ) {
    const begin = at + 3;
    const url = number++;
    const host = firstOf(text, begin, /[\s/?#]/g);
    const user = text.slice(begin, host).lastIndexOf('@');
    if (user >= 0) add(begin, begin + user, `${url} @`);
    at = text.indexOf('://', host - 1); // in a list, the next URL may follow without a path
    if (query < host) query = firstOf(text, host, /[\s"'<>`?#]/g);
    if ((at >= 0 && at < query) || (text[query] !== '?' && text[query] !== '#')) continue;
    const last = firstOf(text, query, /[\s"'<>`]/g);
    at = text.indexOf('://', last);
    let from = query + 1;
    for (const pair of text.slice(from, last).split(/[?&;#]/)) {
      const value = pair.indexOf('=') + 1;
      add(from + value, from + pair.length, `${url} ${pair.slice(0, value)}`);
      from += pair.length + 1;
    }
  }
  return number;
}

/** The position of the first character of a kind from a position on; the end of the text if there is none. */
function firstOf(text: string, from: number, kind: RegExp): number {
  kind.lastIndex = from;
  return kind.exec(text)?.index ?? text.length;
}

/** A string for error messages, without the secrets in it. */
export function shownText(text: string): string {
  // without a scheme it may be a topic
  if (/^\s*([a-z][a-z\d+.-]*:\/\/|\/\/.*@)/is.test(text)) return shownUrl(text);
  const hidden = hideInText(text);
  const others = hidden.replaceAll(`${HIDDEN}@`, '');
  const url = others.indexOf('://');
  // a password with "/" that is not percent-encoded
  return url >= 0 && others.lastIndexOf('@') > url ? shownUrl(hidden) : hidden;
}

/**
 * A URL for messages and logs: user name, password, the values of its query and its fragment are masked, because they may be secrets.
 * @param text a URL, which need not be valid
 */
export function shownUrl(text: string): string {
  const end = text.search(/[?#]/);
  const [place, rest] = end < 0 ? [text, ''] : [text.slice(0, end), text.slice(end)];
  // a password with "?" or "#" is not percent-encoded: then the whole rest belongs to the login
  if (rest.includes('@') && hasLoginForPort(place)) return `${place.slice(0, place.indexOf('//'))}//***@***`;
  const masked = rest.replace(/([?&;#])([^=&;#?]*)(=?)[^&;#]*/g, (_, mark, name, sign) =>
    sign === '' ? `${mark}${name === '' ? '' : '***'}` : `${mark}${name}=***`
  );
  return withoutLogin(place) + masked;
}

/** Tell whether the port is not a number: then the host is a user name, and the port the beginning of its password. */
function hasLoginForPort(place: string): boolean {
  const [, host] = /^[^/]*\/\/(?:\[[^\]/]*\])?([^/]*)/.exec(place) ?? [];
  if (host === undefined) return false;
  const colon = host.indexOf(':');
  return colon >= 0 && /\D/.test(host.slice(colon + 1));
}

/**
 * The place without user name and password. No regular expressions: clients of HTTP ports choose the text, and `/\/\/.*@/` takes quadratic
 * time.
 */
function withoutLogin(place: string): string {
  const [from, at] = [place.indexOf('//'), place.lastIndexOf('@')];
  return from < 0 || at < from ? place : `${place.slice(0, from)}//***@${place.slice(at + 1)}`;
}
