import type { Clock } from '../../lib/index.ts';

/** The scope of a caller: all operations, or reading only. */
export type Scope = 'administrator' | 'viewer';

/** An HTTP request, independent of the server that has received it. */
export interface Call {
  /** In upper case. */
  readonly method: string;
  /** The path, with its percent escapes and without the prefix of the mount: `/clients/a%2Fb`. */
  readonly path: string;
  /** What stands in front of `path` in the URL of the client: the path of the host at which the mount is, and its prefix. */
  readonly mountedAt: string;
  /** What follows `?`; empty if there is none. */
  readonly query: string;
  /** IP address of the client; undefined if the server does not tell. */
  readonly remoteAddress: string | undefined;
  /** The scope that the host app gives the client, for `credentials: 'host'`; undefined: none is given. */
  readonly scope?: Scope | undefined;
  /** The value of a header. @param name in lower case */
  header(name: string): string | undefined;
  /** Read the body. @throws Fault bodyTooLarge, bodyTooSlow, bodyIncomplete, notJson */
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
  /** A client may read as slowly as it likes: what it does not read is not kept. */
  readonly isEndless?: true;
  /** The rest of the body of the request is not wanted: the answer has the header `Connection: close` if the client still sends it. */
  readonly closes?: boolean;
}

/** What is mounted on a server. */
export interface Service {
  /** The prefixes of the paths that are answered, without a slash at the end. */
  readonly prefixes: readonly string[];
  /** Answer a call. @returns undefined if the path is not answered here: it is left to the host app */
  answer(call: Call): Promise<Answer | undefined>;
  /** The methods that are answered for a path behind a prefix; none: the path is not known. */
  methods(path: string): readonly string[];
}

/** What mounting needs from outside. */
export interface MountPorts {
  readonly clock: Clock;
  /** Called with errors that no caller can be thrown to. */
  failed(error: unknown): void;
}
