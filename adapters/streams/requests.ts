import type { SinkSetup } from '../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../lib/index.ts';
import {
  checkUrl,
  type HttpAnswer,
  type HttpCall,
  HttpClient,
  type OutgoingTls,
  refusalOf,
  withDeadline,
  withTrustHint
} from '../outgoing/index.ts';

/** Maximum number of servers with persistent connections, for URLs that are templates. */
const MAX_SERVERS = 16;
const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** Maximum number of characters of a response in an error or a log line. */
const MAX_SHOWN = 1000;

/** A response with the beginning of its body as text. */
interface ShownAnswer extends HttpAnswer {
  readonly text: string;
}

/** Settings of `SinkRequests`. */
interface RequestSettings {
  readonly tls?: OutgoingTls;
  /** A way to trust the certificate of the server, for messages. */
  readonly trustRemedy: string;
  /** Called with each response. Default: nothing. */
  answered?(answer: ShownAnswer): void;
  /** Describe a response with a status that refuses the request. */
  describe(answer: ShownAnswer): string;
}

/**
 * The requests of a sink, with its properties `timeout` and `insecureSkipVerify`. The status of the rule shows whether
 * the server can be reached.
 */
export class SinkRequests {
  readonly #setup: SinkSetup;
  readonly #settings: RequestSettings;
  /** Keyed by origin, the least recently used first. */
  readonly #clients = new Map<string, HttpClient>();
  readonly #closed = new AbortController();

  constructor(setup: SinkSetup, settings: RequestSettings) {
    this.#setup = setup;
    this.#settings = settings;
  }

  /** Send a request to a server. @throws SendError if it refuses the request; BrokerError HTTP_FAILED, HTTP_TIMEOUT */
  async send(url: URL, call: HttpCall): Promise<void> {
    const { clock, properties, connected, disconnected } = this.#setup;
    const { trustRemedy, answered, describe } = this.#settings;
    const ms = properties.timeout as number;
    const late = () => new BrokerError('HTTP_TIMEOUT', `no answer from ${url.origin}${url.pathname} within ${ms} ms`);
    let answer: HttpAnswer;
    try {
      answer = await withDeadline({ clock, ms, late, outers: [this.#closed.signal] }, (signal) =>
        this.#client(url).send(call, signal)
      );
    } catch (error) {
      const shown = withTrustHint(error, trustRemedy);
      disconnected(shown);
      throw shown;
    }
    connected();
    const shown = { ...answer, text: answer.body.toString('utf8', 0, 4 * MAX_SHOWN).slice(0, MAX_SHOWN) };
    answered?.(shown);
    const refusal = refusalOf(answer, () => describe(shown), clock.now());
    if (refusal !== undefined) throw refusal;
  }

  /** Close the connections. Requests in progress fail. */
  close(): void {
    this.#closed.abort(new BrokerError('RESOURCE_DOWN', 'the sink is closed'));
    for (const client of this.#clients.values()) client.close();
  }

  #client(url: URL): HttpClient {
    const { origin } = url;
    let client = this.#clients.get(origin);
    this.#clients.delete(origin);
    if (client === undefined) {
      const verifies = this.#setup.properties.insecureSkipVerify !== true;
      const { tls } = this.#settings;
      client = new HttpClient(url, { tls, verifies, maxSockets: 8, maxBodyBytes: MAX_BODY_BYTES });
    }
    this.#clients.set(origin, client);
    const [oldest] = this.#clients;
    if (this.#clients.size > MAX_SERVERS) {
      this.#clients.delete(oldest[0]);
      oldest[1].close();
    }
    return client;
  }
}

/**
 * Read a property that is the URL of a server.
 * @param what beginning of the message: `rest sink: property`
 * @throws InvalidInput PROPERTY_INVALID
 */
export function readUrlProperty(text: string, property: string, what: string): URL {
  try {
    return checkUrl(text, property);
  } catch (error) {
    const { expected, got, message } = error as InvalidInput;
    throw new InvalidInput('PROPERTY_INVALID', property, expected, got, `${what} ${message}`);
  }
}
