import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../lib/index.ts';

/** The scope of a caller: all operations, or reading only. */
export type Scope = 'administrator' | 'viewer';

/** An HTTP request, independent of the receiving server. */
export interface Call {
  /** In upper case. */
  readonly method: string;
  /** The path, with its percent escapes and without the prefix of the mount: `/clients/a%2Fb`. */
  readonly path: string;
  /** The URL path in front of `path`: the path at which the host app has the mount, and the prefix of the mount. */
  readonly mountedAt: string;
  /** The part after `?`; empty if there is none. */
  readonly query: string;
  /** IP address of the client; undefined if the server does not report it. */
  readonly remoteAddress: string | undefined;
  /** True if the request arrived over TLS. False if it did at a proxy in front of the server. */
  readonly isSecure: boolean;
  /** The request as the server has it: of node:http, or of the Fetch API. For functions of the host app. */
  readonly original: IncomingMessage | Request;
  /** The scope that the host app assigns to the client, for `credentials: 'host'`; undefined: none. */
  readonly scope?: Scope | undefined;
  /** The value of a header. @param name in lower case */
  header(name: string): string | undefined;
  /** Read the body. @throws Fault bodyTooLarge, bodyTooSlow, bodyIncomplete, notJson */
  body(limits: BodyLimits): Promise<Body>;
}

/** The body of a request: its text, or the value from a body parser of the host app. */
export type Body =
  | {
      /** The text. */
      readonly text: string;
    }
  | {
      /** The value. */
      readonly value: unknown;
    };

/** Limits of a request body. */
export interface BodyLimits {
  /** Maximum size in bytes. */
  readonly maxBytes: number;
  /** Time for reading the body, in milliseconds. */
  readonly timeoutMs: number;
}

/** The answer to a call. */
export interface Answer {
  /** The HTTP status. */
  readonly status: number;
  /** The headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** The text, its bytes, or its parts in order. Each part is written before the next one is produced. */
  readonly body: string | Uint8Array<ArrayBuffer> | AsyncIterable<string>;
  /** Set if clients may read arbitrarily slowly, because unread data is not kept. */
  readonly isEndless?: true;
  /**
   * Set if the rest of the request body is not wanted: the answer has the header `Connection: close` if the client is
   * still sending.
   */
  readonly closes?: boolean;
}

/** True for a body that is sent as a whole, instead of in parts. */
export function isWhole(body: Answer['body']): body is string | Uint8Array<ArrayBuffer> {
  return typeof body === 'string' || body instanceof Uint8Array;
}

/** A service that is mounted on a server. */
export interface Service {
  /** The prefixes of the answered paths, without a trailing slash. */
  readonly prefixes: readonly string[];
  /**
   * Answer a call.
   * @returns undefined if the path is not answered here, and is left to the host app
   */
  answer(call: Call): Promise<Answer | undefined>;
  /** The methods that are answered for a path behind a prefix; none: the path is unknown. */
  methods(path: string): readonly string[];
}

/** The functions that a mount needs from outside. */
export interface MountPorts {
  readonly clock: Clock;
  /** Called with errors that cannot be thrown to a caller. */
  failed(error: unknown): void;
}
