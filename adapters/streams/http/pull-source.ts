import { createHash } from 'node:crypto';
import type { FieldTable, OpenSource, SourceSetup, SourceType } from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { HttpClient, withDeadline } from '../../outgoing/index.ts';
import { readUrlProperty } from '../requests.ts';

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  none: '',
  json: 'application/json',
  text: 'text/plain',
  html: 'text/html',
  xml: 'application/xml',
  javascript: 'application/javascript',
  form: 'application/x-www-form-urlencoded'
};
const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head'];
const MAX_BODY_BYTES = 8 * 1024 * 1024;

const PROPERTIES: FieldTable = {
  url: {
    type: 'string',
    about: 'URL, to which DATASOURCE is appended, without changing the server.',
    default: 'http://localhost'
  },
  method: {
    type: 'string',
    about: 'Method of the requests.',
    default: 'get',
    choices: [...METHODS, ...METHODS.map((name) => name.toUpperCase())]
  },
  interval: {
    type: 'duration',
    about: 'Time between an answer and the next request, and before the first one.',
    default: 10_000,
    min: 1,
    unit: 'ms'
  },
  timeout: { type: 'duration', about: 'Time limit of a request.', default: 5000, min: 1, max: 290_000, unit: 'ms' },
  incremental: { type: 'boolean', about: 'Skip an answer that equals the previous one.', default: false },
  body: { type: 'any', about: 'Body of the requests: a string, or an object that is sent as JSON.', default: '{}' },
  bodyType: { type: 'string', about: 'Type of the body.', default: 'json', choices: Object.keys(CONTENT_TYPES) },
  headers: { type: 'object', about: 'Additional headers.', default: {} }
};

interface PullProperties {
  readonly url: string;
  readonly method: string;
  readonly interval: number;
  readonly timeout: number;
  readonly incremental: boolean;
  readonly body: unknown;
  readonly bodyType: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/**
 * The source `httppull`: responses of a web server, requested at an interval. They are decoded by the FORMAT of the
 * stream.
 *
 * The certificate of the server is verified. Failures of the server are shown in the status, and counted as exceptions.
 */
export function httpPullSource(): SourceType {
  return {
    name: 'httppull',
    about: 'Answers of a web server, requested at an interval.',
    properties: PROPERTIES,
    open(setup) {
      const properties = setup.properties as unknown as PullProperties;
      return new Pull(setup, properties, readUrl(properties.url, setup));
    }
  };
}

/** The URL with DATASOURCE appended, at the same server, because that gets the headers. @throws InvalidInput PROPERTY_INVALID */
function readUrl(base: string, { stream, datasource }: SourceSetup): URL {
  const what = `source httppull of ${stream}:`;
  const { origin } = readUrlProperty(base, 'url', what);
  const url = readUrlProperty(base + datasource, 'url', what);
  if (url.origin === origin) return url;
  const text = `${what} DATASOURCE must begin with "/": it changes the server of url, ${origin}, to ${url.origin}`;
  throw new InvalidInput('PROPERTY_INVALID', 'DATASOURCE', 'a path at the server of url', datasource, text);
}

class Pull implements OpenSource {
  readonly #setup: SourceSetup;
  readonly #properties: PullProperties;
  readonly #url: URL;
  readonly #client: HttpClient;
  #timer: unknown;
  readonly #closed = new AbortController();
  #digest = '';

  constructor(setup: SourceSetup, properties: PullProperties, url: URL) {
    this.#setup = setup;
    this.#properties = properties;
    this.#url = url;
    this.#client = new HttpClient(url, { maxSockets: 1, maxBodyBytes: MAX_BODY_BYTES });
    this.#later();
  }

  close(): void {
    this.#setup.clock.clearTimeout(this.#timer);
    this.#closed.abort(new BrokerError('SOURCE_CLOSED', 'closed'));
    this.#client.close();
  }

  #later(): void {
    if (!this.#closed.signal.aborted)
      this.#timer = this.#setup.clock.setTimeout(() => this.#pullIfRoom(), this.#properties.interval);
  }

  #pullIfRoom(): void {
    if (this.#setup.isFull) this.#setup.whenRoom(() => this.#pullIfRoom());
    else if (!this.#closed.signal.aborted) this.#pull().finally(() => this.#later());
  }

  async #pull(): Promise<void> {
    const { method, timeout, body, bodyType, headers } = this.#properties;
    const { clock } = this.#setup;
    const { origin, pathname } = this.#url;
    const late = () => new BrokerError('HTTP_TIMEOUT', `no answer from ${origin}${pathname} within ${timeout} ms`);
    const hasBody = bodyType !== 'none' && !/^(get|head)$/i.test(method);
    const type = hasBody ? { 'content-type': CONTENT_TYPES[bodyType] } : {};
    const more = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
    try {
      const call = {
        method: method.toUpperCase(),
        headers: { ...type, ...Object.fromEntries(more) },
        body: hasBody ? Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) : undefined,
        mayRepeat: true // it only asks
      };
      const limit = { clock, ms: timeout, late, outers: [this.#closed.signal] };
      const answer = await withDeadline(limit, (signal) => this.#client.send(call, signal));
      this.#setup.connected();
      this.#take(answer.status, answer.body);
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      this.#setup.disconnected(error);
      this.#setup.failed(error);
    }
  }

  #take(status: number, body: Buffer): void {
    const { origin, pathname } = this.#url;
    if (status < 200 || status > 299) {
      this.#setup.failed(new BrokerError('HTTP_STATUS', `${origin}${pathname} has answered with status ${status}`));
      return;
    }
    if (this.#properties.incremental) {
      const digest = createHash('sha256').update(body).digest('base64');
      if (digest === this.#digest) return;
      this.#digest = digest;
    }
    this.#setup.bytes(body, { url: origin + pathname });
  }
}
