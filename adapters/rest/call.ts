/** An HTTP request, independent of the server that has received it. */
export interface Call {
  /** In upper case. */
  readonly method: string;
  /** The path, with its percent escapes and without the prefix of the mount: `/clients/a%2Fb`. */
  readonly path: string;
  /** What follows `?`; empty if there is none. */
  readonly query: string;
  /** IP address of the client; undefined if the server does not tell. */
  readonly remoteAddress: string | undefined;
  /** The value of a header. @param name in lower case */
  header(name: string): string | undefined;
  /** Read the body. @throws Fault bodyTooLarge, bodyTooSlow; what the connection fails with */
  body(limits: BodyLimits): Promise<Body>;
}

/** The body of a request: its text, or the value that a body parser of the host app has made of it. */
export type Body = { readonly text: string } | { readonly value: unknown };

/** Limits of a request body. */
export interface BodyLimits {
  readonly maxBytes: number;
  /** Time from the first look at the body to its end, in milliseconds. */
  readonly timeoutMs: number;
}

/** The answer to a call. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The text, or its parts in order. Each part is written before the next one is made. */
  readonly body: string | AsyncIterable<string>;
}

/** What is mounted on a server. */
export interface Service {
  /** The prefixes of the paths that are answered, without a slash at the end. */
  readonly prefixes: readonly string[];
  /** Answer a call. @returns undefined if the path is not answered here: it is left to the host app */
  answer(call: Call): Promise<Answer | undefined>;
}

/** The path of a URL (`/api/v3/clients?x=1`) behind one of some prefixes, and its query. The longest prefix that matches counts. */
export function pathBehind(
  prefixes: readonly string[],
  url: string
): { readonly path: string; readonly query: string } | undefined {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  let longest: string | undefined;
  for (const prefix of prefixes) {
    if (!path.startsWith(prefix) || (path.length > prefix.length && path[prefix.length] !== '/')) continue;
    if (longest === undefined || prefix.length > longest.length) longest = prefix;
  }
  if (longest === undefined) return undefined;
  return { path: path.slice(longest.length), query: mark < 0 ? '' : url.slice(mark + 1) };
}
