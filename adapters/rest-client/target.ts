/** A path that cannot be sent. */
export class TargetError extends Error {}

/** The parts of the URL of a request. */
interface Parts {
  readonly params?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
}

/**
 * Fill in the parameters of a path, encoded.
 * @throws TargetError if one is missing or empty
 */
export function filledPath(path: string, { params = {}, query = {} }: Parts): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodedParameter(path, name, params[name])) + queryText(query);
}

/**
 * The URL of a request. Relative segments are refused, because `fetch` removes `.` and `..`, also if encoded, and would
 * send a different request.
 * @param base the URL of the mounted interface, without a trailing slash
 * @param path with parameters in braces or encoded
 * @throws TargetError if a parameter is missing, empty, `.` or `..`, or if the path would change
 */
export function targetOf(base: string, path: string, { params = {}, query = {} }: Parts): string {
  for (const [name, value] of Object.entries(params)) checkSegment(path, name, value);
  const target = base + filledPath(path, { params });
  const sent = new URL(target);
  const meant = target.slice(sent.origin.length).split('?', 1)[0] || '/';
  if (decodeURI(meant) !== decodeURI(sent.pathname) || sent.hash !== '')
    throw new TargetError(
      `path: "${path}" would be sent as "${sent.pathname}"; encode its segments, and leave out those that are "." and ".."`
    );
  return target + queryText(query);
}

function encodedParameter(path: string, name: string, value: string | undefined): string {
  const where = `params: "${name}" of ${path}`;
  if (value === undefined) throw new TargetError(`${where} is missing`);
  const encoded = encodeURIComponent(value);
  if (encoded === '') throw new TargetError(`${where} is empty, which would be the path of another operation`);
  return encoded;
}

/** True if `fetch` would send a request with this parameter value to a different path. */
export function isRelative(value: string): boolean {
  return value === '.' || value === '..';
}

/** @throws TargetError */
function checkSegment(path: string, name: string, value: string): void {
  if (!isRelative(value) || !path.includes(`{${name}}`)) return;
  throw new TargetError(
    `params: "${name}" of ${path} is "${value}", which cannot be sent: HTTP clients take it for a relative path, and send another request`
  );
}

function queryText(query: NonNullable<Parts['query']>): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, `${value}`]]
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
