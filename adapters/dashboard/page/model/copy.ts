// Commands for a shell that do what a request of the page does. Neither contains a secret: curl asks for the password, and ctl reads the credentials
// from its environment.
import { HIDDEN, isSecretByName } from '../../../../lib/base/hidden-text.ts';
import { isSendable } from './places.ts';

/** The value that stands for a secret, and keeps it in a change. */
export { HIDDEN };

/** A request to the management interface. */
export interface CopiedRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The path with encoded parameters: `/clients/a%2Fb`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
}

const JSON_TYPE = ['-H', "'Content-Type: application/json'"];

/** Arguments that a shell takes as they are. */
const PLAIN = /^[\w@%+=:,./-]+$/;

/** An argument as a POSIX shell reads it. */
export function quoted(argument: string): string {
  return PLAIN.test(argument) ? argument : `'${argument.replaceAll("'", String.raw`'\''`)}'`;
}

/** The command with curl. @param base the URL of the interface @param name the user, whose password curl asks for */
export function curlText(
  base: string,
  name: string,
  { method = 'GET', path, query = {}, body }: CopiedRequest
): string {
  const given = Object.entries(query).flatMap(([key, value]): [string, string][] =>
    value === undefined || value === '' ? [] : [[key, `${value}`]]
  );
  const target = `${path}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`;
  const parts = ['curl', '-u', quoted(name)];
  if (!isSendable(target)) {
    const [mount, place] = [base.slice(0, base.lastIndexOf('/')), base.slice(base.lastIndexOf('/'))];
    const inner = { method, path: place + target, body };
    return [...parts, ...JSON_TYPE, '-d', quoted(JSON.stringify(inner)), quoted(`${mount}/requests`)].join(' ');
  }
  if (method !== 'GET') parts.push('-X', method);
  if (body !== undefined) parts.push(...JSON_TYPE, '-d', quoted(JSON.stringify(body)));
  return [...parts, quoted(base + target)].join(' ');
}

/** The URL of the console of `serve` as people open it: ctl needs no URL then. */
const IS_DEFAULT = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\]):18083\/$/;

/** The flag that `ctl` needs to reach the broker of a page. @param console the URL of the console, with a slash at its end */
export function urlFlag(console: string, of: 'api' | 'streams'): readonly string[] {
  if (IS_DEFAULT.test(console)) return [];
  return [`--${of === 'api' ? 'url' : 'rules-url'}=${console}${of}`];
}

/** Flags with their values, for `ctlText`. Those without a value are left out. */
export function flagWords(flags: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(flags).flatMap(([name, text]) =>
    text === undefined || text === '' ? [] : [`--${name}=${text}`]
  );
}

/**
 * The command with `embermq ctl`.
 * @param words of the action, its flags, and after `--` its arguments; `--` is left out if no argument begins with `-`
 * @param input the standard input, for which an argument `-` stands
 */
export function ctlText(words: readonly string[], input?: string): string {
  const end = words.indexOf('--');
  const isNeeded = words.slice(end + 1).some((word) => /^-./s.test(word));
  const shown = end < 0 || isNeeded ? words : words.toSpliced(end, 1);
  const command = `embermq ctl ${shown.map(quoted).join(' ')}`;
  return input === undefined ? command : `printf %s ${quoted(input)} | ${command}`;
}

/** Names of secrets of webhooks and bridges, beside those that the broker knows by a part of their name. */
const SECRET_NAME = /^(headers|key)$/i;
const NO_NAMES: ReadonlySet<string> = new Set();

/**
 * A value for a command that is copied: a placeholder such as `<password>` for each secret, also for the logins and the values of queries in URLs.
 * `******`, which keeps a present secret, stays.
 * @param marked further names of secrets
 */
export function withoutSecrets(value: unknown, marked = NO_NAMES): unknown {
  if (typeof value === 'string') return withoutLogins(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => withoutSecrets(one, marked));
  const shown = Object.entries(value).map(([name, one]) => [
    name,
    isSecretByName(name, one) || SECRET_NAME.test(name) || marked.has(name)
      ? placeholderOf(name, one)
      : withoutSecrets(one, marked)
  ]);
  return Object.fromEntries(shown);
}

function placeholderOf(name: string, value: unknown): unknown {
  if (typeof value === 'boolean' || value === null || value === HIDDEN || value === '') return value;
  if (typeof value !== 'object' || Array.isArray(value)) return `<${name}>`;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, placeholderOf(key, one)]));
}

function withoutLogins(text: string): string {
  if (!text.includes('://')) return text;
  return text
    .replace(/:\/\/[^/?#\s]*@/g, '://<login>@')
    .replace(/([?&][^=&#?\s]+=)(?!\*{6})[^&#\s]+/g, (_, name: string) => `${name}<${name.slice(1, -1)}>`);
}
