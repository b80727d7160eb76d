// Commands for a shell that do what a request of the page does. Neither contains a secret: curl asks for the password, and ctl reads the credentials
// from its environment.
import { isSendable } from './places.ts';

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

/** The command with `embermq ctl`. @param words of the action, its flags, and its arguments; an argument that begins with `-` is placed after `--` */
export function ctlText(words: readonly string[]): string {
  return `embermq ctl ${words.map(quoted).join(' ')}`;
}
