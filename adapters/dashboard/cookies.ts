// The cookie of a session [RFC 6265]. Cookies of one host are shared by all of its ports, so the name tells consoles of
// several brokers apart; `HttpOnly` keeps scripts from it, `SameSite=Strict` pages of other sites. A page without TLS cannot
// replace a cookie with `Secure` [RFC 6265bis 5.7], so those with TLS have another name, whose prefix browsers check.

import { crypto } from '../rest/index.ts';

/** Maximum number of cookies of one name that are looked at: browsers send those of longer paths first. */
const MAX_COOKIES = 8;

/** The prefix of the names of cookies with `Secure`. */
const SECURE = '__Secure-';

/** The name of the cookie of a console. @param mount the path at which the host app has it */
export function cookieName(mount: string, node: string): string {
  const digest = crypto().createHash('sha256').update(`${mount}\0${node}`).digest('hex');
  return `embermq-${digest.slice(0, 16)}`;
}

/**
 * The values of the cookies of a name in a header `Cookie`. If there is one with `Secure`, only those: other pages of the host can set one without.
 * @param isOverTls only those with `Secure`
 */
export function cookieValues(header: string | undefined, name: string, isOverTls: boolean): readonly string[] {
  if (header === undefined) return [];
  const [plain, secure]: [string[], string[]] = [[], []];
  for (const pair of header.split(';')) {
    const at = pair.indexOf('=');
    const found = at < 0 ? '' : pair.slice(0, at).trim();
    const values = found === name ? plain : secure;
    if (found.replace(SECURE, '') === name && values.length < MAX_COOKIES) values.push(pair.slice(at + 1).trim());
  }
  return isOverTls || secure.length > 0 ? secure : plain;
}

/** A value of the header `Set-Cookie`. @param value undefined: the browser deletes the cookie */
export function cookieText(
  name: string,
  value: string | undefined,
  { mount, isSecure }: { readonly mount: string; readonly isSecure: boolean }
): string {
  const end = value === undefined ? '; Max-Age=0' : '';
  const [prefix, secure] = isSecure ? [SECURE, '; Secure'] : ['', ''];
  return `${prefix}${name}=${value ?? ''}; Path=${pathOf(mount)}; HttpOnly; SameSite=Strict${secure}${end}`;
}

/** The path of the cookie. Browsers compare it with the path of the URL as it is, and a semicolon would end it. */
function pathOf(mount: string): string {
  const end = mount.search(/[^!-:<-~]/);
  const path = end < 0 ? mount : mount.slice(0, mount.lastIndexOf('/', end));
  return path === '' ? '/' : path;
}
