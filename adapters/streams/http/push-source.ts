// A request is answered with 200 when the rules have the row, in the store if a rule has `qos`, and with 503 while a
// rule has no room: the sender repeats it. Whether there is room is asked before and after the body has arrived.
// Without a token, pages of other origins and names of hosts are refused, because a page of an attacker can reach a
// loopback port.

import {
  type FieldTable,
  type FieldValues,
  field,
  type OpenSource,
  readOptions,
  type SourceSetup,
  type SourceType
} from '../../../lib/adapter.ts';
import { type Broker, BrokerError, InvalidInput } from '../../../lib/index.ts';
import {
  type Answer,
  BrowserChecks,
  type BrowserSettings,
  type Call,
  Fault,
  GUARD_OPTIONS,
  type HttpMounts,
  mountsOf,
  readOrigins,
  type Service
} from '../../rest/index.ts';
import { portOf, type StreamsPort } from '../port.ts';
import { BEARER_CHALLENGE, isAuthorized, readToken } from '../token.ts';

/** The requests that a stream of the type `httppush` accepts. */
export interface PushChecks {
  /**
   * Origins such as `https://app.example` whose pages may push rows, in addition to the same origin; `any`: all.
   * Default: none.
   */
  readonly origins?: string | readonly string[];
  /**
   * Names that the `Host` header may have, in addition to IP addresses and `localhost`. Checked for streams without the
   * property `token`, because a page of an attacker may reach a server under a name of the attacker. Default: none; on
   * the server of an app, any.
   */
  readonly hosts?: string | readonly string[];
  /** Maximum size of a body in bytes. Default 1048576. */
  readonly maxBodyBytes?: number;
}

/** Options of the source `httppush`. */
export interface HttpPushOptions extends PushChecks {
  /**
   * Port, default 10081. It is open while a rule uses a stream of this type. 0: any free port. A `StreamsPort` is
   * shared with other types.
   */
  readonly port?: number | StreamsPort;
  /** Address, default 127.0.0.1. Requests need credentials only if the stream has the property `token`. */
  readonly host?: string;
}

/** The source `httppush` on the server of the app. */
export interface MountedHttpPush {
  /** The source, for `createBroker({ streams: { sources: [push.source] } })`. */
  readonly source: SourceType;
  /** The mounts for the server of the app. */
  mounts(broker: Broker): HttpMounts;
}

const PUSH_OPTIONS = {
  origins: field('object', new Set<string>() as BrowserSettings['origins'], 'Origins whose pages may push rows.', {
    check: readOrigins
  }),
  hosts: GUARD_OPTIONS.hosts,
  maxBodyBytes: field('size', 1_048_576, 'Maximum size of a body in bytes.', { unit: 'bytes', min: 1 })
};

const PROPERTIES: FieldTable = {
  method: {
    type: 'string',
    about: 'Method of the requests.',
    default: 'POST',
    choices: ['POST', 'PUT', 'post', 'put']
  },
  token: {
    type: 'string',
    about: 'Requests need the header `Authorization: Bearer` with this text, a long random one. Default: none.',
    isSecret: true
  }
};
const ABOUT = 'Bodies of HTTP requests to a path.';
const BODY_MS = 30_000;

/**
 * The source `httppush`: bodies of requests to a separate port. DATASOURCE is the path; bodies are decoded by the
 * FORMAT of the stream.
 *
 * Requests are answered with 200 once the rules have the row, with 503 while a rule has no room, with 404 and 405 for
 * other paths and methods, with 401 without the `token` of the stream, and with 403 if a page of another origin sends
 * them.
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function httpPushSource({ port, host, ...checks }: HttpPushOptions = {}): SourceType {
  const paths = new PushPaths('', { hosts: [], ...checks }, 'httpPushSource');
  const shared = portOf(port, host);
  const user = { service: paths };
  return {
    name: 'httppush',
    about: ABOUT,
    properties: PROPERTIES,
    async open(setup) {
      const release = paths.add(setup);
      try {
        const leave = await shared.use(user, setup);
        setup.connected();
        return {
          async close() {
            release();
            await leave();
          }
        };
      } catch (error) {
        release();
        throw error;
      }
    }
  };
}

/**
 * The source `httppush` for an app with an HTTP server: the app mounts it on node:http, Express, Fastify, Koa or a
 * server with the Fetch API.
 * @param options prefix: the prefix of the paths of streams, by default none
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function mountedHttpPush({
  prefix = '',
  ...checks
}: PushChecks & {
  /** The prefix of the paths of streams. Default: none. */
  readonly prefix?: string;
} = {}): MountedHttpPush {
  const paths = new PushPaths(prefix, checks, 'mountedHttpPush');
  return {
    source: {
      name: 'httppush',
      about: ABOUT,
      properties: PROPERTIES,
      open(setup): OpenSource {
        const close = paths.add(setup);
        setup.connected();
        return { close };
      }
    },
    mounts: (broker) => mountsOf(broker, [paths], 'taking a request for a stream')
  };
}

/** A stream with a path. */
interface PushedStream {
  readonly setup: SourceSetup;
  /** Undefined: no token is required. */
  readonly token: string | undefined;
}

/** The paths of streams, as a mountable service. */
class PushPaths implements Service {
  readonly prefixes: readonly string[];
  readonly #maxBytes: number;
  readonly #paths = new Map<string, PushedStream>();
  readonly #browsers: BrowserChecks;
  /** Checks for streams without a token. */
  readonly #origins: BrowserChecks;

  constructor(prefix: string, given: PushChecks, name: string) {
    const settings = readOptions(PUSH_OPTIONS, given, name) as unknown as FieldValues<typeof PUSH_OPTIONS>;
    const { origins, hosts, maxBodyBytes } = settings;
    this.prefixes = [prefix];
    this.#maxBytes = maxBodyBytes;
    this.#browsers = new BrowserChecks({ origins, hosts });
    this.#origins = new BrowserChecks({ origins, hosts: undefined });
  }

  /** @returns a function that removes it @throws InvalidInput PROPERTY_INVALID; STREAM_INVALID: the path belongs to another stream */
  add(setup: SourceSetup): () => void {
    const { datasource, stream, properties } = setup;
    const token = readToken(properties, `stream ${stream}`);
    const path = datasource.startsWith('/') ? datasource : `/${datasource}`;
    const other = this.#paths.get(path);
    if (other !== undefined) {
      const text = `stream ${stream}: the path ${path} belongs to the stream ${other.setup.stream}`;
      throw new InvalidInput('STREAM_INVALID', 'DATASOURCE', 'a path that no other stream has', path, text);
    }
    this.#paths.set(path, { setup, token });
    return () => void this.#paths.delete(path);
  }

  methods(path: string): readonly string[] {
    const found = this.#paths.get(path);
    return found === undefined ? [] : [methodOf(found.setup)];
  }

  #refusal(call: Call, token: string | undefined): Answer | undefined {
    try {
      (token === undefined ? this.#browsers : this.#origins).check(call, true);
    } catch (error) {
      return reply(403, (error as Fault).message);
    }
    if (token === undefined || isAuthorized(call.header('authorization'), token)) return undefined;
    const text = 'the header "Authorization: Bearer" with the property token of the stream is needed';
    return reply(401, text, BEARER_CHALLENGE);
  }

  async answer(call: Call): Promise<Answer | undefined> {
    const found = this.#paths.get(call.path);
    if (found === undefined) return undefined;
    const { setup, token } = found;
    const method = methodOf(setup);
    if (call.method !== method) return reply(405, `use ${method}`, { allow: method });
    const refused = this.#refusal(call, token);
    if (refused !== undefined) return { ...refused, closes: true };
    if (setup.isFull) return busy();
    try {
      const body = await call.body({ maxBytes: this.#maxBytes, timeoutMs: BODY_MS });
      // while the body arrived, other requests may have filled the queue of the rule, and the stream may have been
      // closed
      if (setup.isFull) return busy();
      if (this.#paths.get(call.path) !== found) return undefined;
      const text = 'text' in body ? body.text : JSON.stringify(body.value);
      const give = () => setup.bytes(Buffer.from(text), { path: call.path, method, remoteaddress: call.remoteAddress });
      if (!setup.isKept) give();
      else if (!(await isKept(setup, give)))
        return reply(503, 'the rows are not in the store; try again later', { 'retry-after': '1' });
      return reply(200, 'ok');
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return { ...reply(error.kind === 'bodyTooLarge' ? 413 : 400, error.message), closes: true };
    }
  }
}

/**
 * Pass rows to rules, and wait until they are in the store.
 * @returns false if the store or the stream has refused them
 */
async function isKept(setup: SourceSetup, give: () => void): Promise<boolean> {
  try {
    await setup.kept(give);
    return true;
  } catch (error) {
    if (error instanceof BrokerError && ['STORE_FAILED', 'SOURCE_CLOSED'].includes(error.code)) return false;
    throw error;
  }
}

function methodOf({ properties }: SourceSetup): string {
  return String(properties.method).toUpperCase();
}

function busy(): Answer {
  return reply(503, 'a rule is busy; try again later', { 'retry-after': '1' });
}

function reply(status: number, text: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers }, body: `${text}\n` };
}
