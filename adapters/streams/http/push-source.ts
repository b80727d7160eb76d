import {
  type Broker,
  InvalidInput,
  type OpenSource,
  type PropertyTable,
  type SourceSetup,
  type SourceType
} from '../../../lib/index.ts';
import { type Answer, type Call, Fault, type HttpMounts, mountsOf, type Service } from '../../rest/index.ts';
import { portOf, type StreamsPort } from '../port.ts';

/** Options of the source `httppush`. */
export interface HttpPushOptions {
  /** Default 10081. It is open while a rule uses a stream of this type. 0: any free port. A `StreamsPort` is shared with other types. */
  readonly port?: number | StreamsPort;
  /** Default 127.0.0.1. The requests need no credentials. */
  readonly host?: string;
  /** Most bytes of a body. Default 1048576. */
  readonly maxBodyBytes?: number;
}

/** The source `httppush` on the server of the app. */
export interface MountedHttpPush {
  /** For `createBroker({ streams: { sources: [push.source] } })`. */
  readonly source: SourceType;
  /** What the app mounts on its server. */
  mounts(broker: Broker): HttpMounts;
}

const PROPERTIES: PropertyTable = {
  method: { type: 'string', about: 'Method of the requests.', default: 'POST', choices: ['POST', 'PUT', 'post', 'put'] }
};
const ABOUT = 'Bodies of HTTP requests to a path.';
const BODY_MS = 30_000;

/**
 * The source `httppush`: bodies of requests to a port of its own. DATASOURCE is the path; bodies are decoded by the FORMAT of the stream.
 *
 * Requests are answered with 200 when the rules have the row, with 503 while one has no room, with 404 and 405 for other paths and methods.
 */
export function httpPushSource({ port, host, maxBodyBytes }: HttpPushOptions = {}): SourceType {
  const paths = new PushPaths('', maxBodyBytes);
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
 * The source `httppush` for an app with an HTTP server: the app mounts it on node:http, Express, Fastify, Koa or what speaks fetch.
 * @param options prefix: what stands in front of the paths of streams, by default nothing
 */
export function mountedHttpPush(
  options: { readonly prefix?: string; readonly maxBodyBytes?: number } = {}
): MountedHttpPush {
  const paths = new PushPaths(options.prefix ?? '', options.maxBodyBytes);
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

/** The paths of streams, as a service that can be mounted. */
class PushPaths implements Service {
  readonly prefixes: readonly string[];
  readonly #maxBytes: number;
  readonly #paths = new Map<string, SourceSetup>();

  constructor(prefix: string, maxBytes = 1_048_576) {
    this.prefixes = [prefix];
    this.#maxBytes = maxBytes;
  }

  /** @returns a function that removes it @throws InvalidInput STREAM_INVALID: the path belongs to another stream */
  add(setup: SourceSetup): () => void {
    const { datasource, stream } = setup;
    const path = datasource.startsWith('/') ? datasource : `/${datasource}`;
    const other = this.#paths.get(path);
    if (other !== undefined) {
      const text = `stream ${stream}: the path ${path} belongs to the stream ${other.stream}`;
      throw new InvalidInput('STREAM_INVALID', 'DATASOURCE', 'a path that no other stream has', path, text);
    }
    this.#paths.set(path, setup);
    return () => void this.#paths.delete(path);
  }

  methods(path: string): readonly string[] {
    const setup = this.#paths.get(path);
    return setup === undefined ? [] : [methodOf(setup)];
  }

  async answer(call: Call): Promise<Answer | undefined> {
    const setup = this.#paths.get(call.path);
    if (setup === undefined) return undefined;
    const method = methodOf(setup);
    if (call.method !== method) return reply(405, `use ${method}`, { allow: method });
    if (setup.isFull) return busy();
    try {
      const body = await call.body({ maxBytes: this.#maxBytes, timeoutMs: BODY_MS });
      // while the body arrived, other requests may have filled the rule, and the stream may have been closed
      if (setup.isFull) return busy();
      if (this.#paths.get(call.path) !== setup) return undefined;
      const text = 'text' in body ? body.text : JSON.stringify(body.value);
      setup.bytes(Buffer.from(text), { path: call.path, method, remoteaddress: call.remoteAddress });
      return reply(200, 'ok');
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return { ...reply(error.kind === 'bodyTooLarge' ? 413 : 400, error.message), closes: true };
    }
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
