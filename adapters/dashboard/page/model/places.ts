// The addresses of the console. Every view has one. The choices in it (filters, a client, a tab) are in its query, so that an address that is sent to
// a colleague shows the same view. Names of clients and topics are in the query as well, never in the path: browsers would resolve `.` and `..`,
// and some proxies decode `%2F`. Choices that are longer than servers accept are behind `#`, which browsers do not send. They are in base64url there,
// because browsers decode addresses to draw them: thousands of characters that no font has take chromium seconds, in each link that the pointer is on.

/** The paths of the views below the mount. */
export const VIEWS = {
  overview: '',
  clients: 'clients',
  client: 'client',
  topics: 'topics',
  alarms: 'alarms',
  tail: 'tail',
  why: 'why',
  websocket: 'websocket',
  traces: 'traces',
  access: 'access',
  rules: 'rules',
  rule: 'rule',
  streams: 'stream-rules',
  stream: 'stream-rule',
  definition: 'stream',
  webhooks: 'webhooks',
  bridges: 'bridges',
  options: 'options',
  features: 'features',
  listeners: 'listeners',
  node: 'node'
} as const;

export type ViewName = keyof typeof VIEWS;

/** Choices in a view: values by their names. */
export type Choices = Readonly<Record<string, string>>;

/** A view, and the choices in it. */
export interface Place {
  /** Undefined: the address is not that of a view. */
  readonly view: ViewName | undefined;
  readonly choices: Choices;
}

/**
 * The place that an address names.
 * @param path of the address, not decoded
 * @param search its query, with or without `?`
 * @param mount the path of the console, with a slash at the end
 * @param hash its part from `#` on, which has a long query
 */
export function placeOf(path: string, search: string, mount: string, hash = ''): Place {
  const below = `${path}/`.startsWith(mount) ? path.slice(mount.length).replace(/\/+$/, '') : undefined;
  const view = (Object.keys(VIEWS) as ViewName[]).find((name) => VIEWS[name] === below);
  const choices = [...new URLSearchParams(search), ...new URLSearchParams(queryIn(hash))];
  return { view, choices: Object.fromEntries(choices) };
}

/** The views that are about one thing, which a choice names. */
const SUBJECTS: Partial<Record<ViewName, string>> = {
  client: 'id',
  rule: 'id',
  stream: 'id',
  definition: 'name',
  webhooks: 'name',
  bridges: 'name'
};

/** True if two places show the same: one view, of one thing. The choices may differ. */
export function isSameView(one: Place, other: Place): boolean {
  const subject = one.view && SUBJECTS[one.view];
  return one.view === other.view && (subject === undefined || one.choices[subject] === other.choices[subject]);
}

/** The address of a view, relative to the mount. Choices that are undefined or empty are left out. */
export function addressOf(view: ViewName, choices: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(choices).flatMap(([name, value]): [string, string][] =>
    value === undefined || value === '' ? [] : [[name, value]]
  );
  const query = `${new URLSearchParams(given)}`;
  if (query.length <= MAX_IN_URL) return VIEWS[view] + (query === '' ? '' : `?${query}`);
  return `${VIEWS[view]}#${CODED}${toBase64Url(given.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join('&'))}`;
}

/** The mark of a hash in base64url. */
const CODED = '~';

/** The query that a hash contains, as it is or in base64url; '' if it is neither. */
function queryIn(hash: string): string {
  const text = hash.replace(/^#/, '');
  return text.startsWith(CODED) ? fromBase64Url(text.slice(CODED.length)) : text;
}

/** A name or a value with only those characters encoded that a query gives a meaning. */
function encoded(text: string): string {
  return text.replace(/[%&=+]/g, encodeURIComponent).replaceAll(' ', '+');
}

function toBase64Url(text: string): string {
  let bytes = '';
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function fromBase64Url(text: string): string {
  try {
    const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
  } catch {
    return ''; // an address that was cut
  }
}

/** Characters of a path with its query that every server accepts. */
const MAX_IN_URL = 2_000;

/** True if a path can be sent as the URL of a request: it is short enough, and has no segment that browsers resolve. */
export function isSendable(path: string): boolean {
  return path.length <= MAX_IN_URL && !/(^|\/)\.\.?(\/|$)/.test(path.replace(/\?.*$/s, ''));
}
