// Secrets in text that messages, logs and interfaces show: the user information, query and fragment of URLs, and in JSON
// the values whose name denotes a secret. Without imports, because every error shows text.

/** Replaces a secret in output. In a change it means the current one. */
export const HIDDEN = '******';

/** A part of a URL that may be a secret: its user information, a value of its query, or its fragment. */
interface SecretPart {
  readonly from: number;
  readonly to: number;
  /** The number of the URL in the text, and the name of the value. */
  readonly key: string;
}

/** Names that denote secrets, for values that no table describes. */
export const SECRET_NAME = /passw|passphrase|secret|token|credential|authorization|cookie|api[-_]*key/i;
/** Text with `******` instead of possible secrets in its URLs. */
export function hideInUrls(text: string): string {
  return replaced(text, (part) => (part.to > part.from ? HIDDEN : ''));
}

/** Text with the values of the URLs of another text in place of its `******`. If there is no value, `******` stays. */
export function keepInUrls(text: string, present: unknown): string {
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

/** True if `******` stands for a secret in a URL of a text. */
export function hasHiddenInUrls(text: string): boolean {
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

/** The parts in their order. Characters are not examined again for each URL, because the text may be long and have many URLs. */
function secretParts(text: string): SecretPart[] {
  const parts: SecretPart[] = [];
  let number = 0;
  let query = 0;
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at)) {
    const begin = at + 3;
    const isUrl = /[a-z\d+.-]/i.test(text.charAt(at - 1));
    at = begin;
    if (!isUrl) continue;
    const url = number++;
    const host = firstOf(text, begin, /[\s/?#]/g);
    const user = text.slice(begin, host).lastIndexOf('@');
    if (user >= 0) parts.push({ from: begin, to: begin + user, key: `${url} @` });
    at = host;
    if (query < host) query = firstOf(text, host, /[\s"'<>`?#]/g);
    if (text[query] !== '?' && text[query] !== '#') continue;
    at = firstOf(text, query, /[\s"'<>`]/g);
    let from = query + 1;
    for (const pair of text.slice(from, at).split(/[?&;#]/)) {
      const value = pair.indexOf('=') + 1;
      parts.push({ from: from + value, to: from + pair.length, key: `${url} ${pair.slice(0, value)}` });
      from += pair.length + 1;
    }
  }
  return parts;
}

/** The position of the first character of a kind from a position on; the end of the text if there is none. */
function firstOf(text: string, from: number, kind: RegExp): number {
  kind.lastIndex = from;
  return kind.exec(text)?.index ?? text.length;
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
