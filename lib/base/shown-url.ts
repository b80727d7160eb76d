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
