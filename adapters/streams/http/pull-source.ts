import { createHash } from 'node:crypto';
import type { OpenSource, PropertyTable, SourceSetup, SourceType } from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { checkUrl, HttpClient } from '../../outgoing/index.ts';

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

const PROPERTIES: PropertyTable = {
  url: { type: 'string', about: 'URL, to which DATASOURCE is appended.', default: 'http://localhost' },
  method: {
    type: 'string',
    about: 'Method of the requests.',
    default: 'get',
    choices: [...METHODS, ...METHODS.map((name) => name.toUpperCase())]
  },
  interval: {
    type: 'number',
    about: 'Time between an answer and the next request, and before the first one.',
    default: 10_000,
    range: [1, Infinity],
    unit: 'ms'
  },
  timeout: { type: 'number', about: 'Time limit of a request.', default: 5000, range: [1, 290_000], unit: 'ms' },
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
      return new Pull(setup, properties, readUrl(setup, properties.url));
    }
  };
}

/** @throws InvalidInput PROPERTY_INVALID */
function readUrl({ stream, datasource }: SourceSetup, url: string): URL {
  try {
    return checkUrl(url + datasource, 'url');
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const text = `source httppull of ${stream}: ${error.message}`;
    throw new InvalidInput('PROPERTY_INVALID', 'url', error.expected, error.got, text);
  }
}

class Pull implements OpenSource {
  readonly #setup: SourceSetup;
  readonly #properties: PullProperties;
  readonly #url: URL;
  readonly #client: HttpClient;
  #timer: unknown;
  #controller = new AbortController();
  #isClosed = false;
  #digest = '';

  constructor(setup: SourceSetup, properties: PullProperties, url: URL) {
    this.#setup = setup;
    this.#properties = properties;
    this.#url = url;
    this.#client = new HttpClient(url, {}, { maxSockets: 1, maxBodyBytes: MAX_BODY_BYTES });
    this.#later();
  }

  close(): void {
    this.#isClosed = true;
    this.#setup.clock.clearTimeout(this.#timer);
    this.#controller.abort(new BrokerError('SOURCE_CLOSED', 'closed'));
    this.#client.close();
  }

  #later(): void {
    if (!this.#isClosed)
      this.#timer = this.#setup.clock.setTimeout(() => this.#pullIfRoom(), this.#properties.interval);
  }

  #pullIfRoom(): void {
    if (this.#setup.isFull) this.#setup.whenRoom(() => this.#pullIfRoom());
    else if (!this.#isClosed) this.#pull().finally(() => this.#later());
  }

  async #pull(): Promise<void> {
    const { method, timeout, body, bodyType, headers } = this.#properties;
    const { clock } = this.#setup;
    const { origin, pathname, search } = this.#url;
    const controller = new AbortController();
    this.#controller = controller;
    const late = new BrokerError('HTTP_TIMEOUT', `no answer from ${origin}${pathname} within ${timeout} ms`);
    const timer = clock.setTimeout(() => controller.abort(late), timeout);
    const hasBody = bodyType !== 'none' && !/^(get|head)$/i.test(method);
    const type = hasBody ? { 'content-type': CONTENT_TYPES[bodyType] } : {};
    const more = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
    try {
      const call = {
        method: method.toUpperCase(),
        path: pathname + search,
        headers: { ...type, ...Object.fromEntries(more) },
        body: hasBody ? Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) : undefined
      };
      const answer = await this.#client.send(call, controller.signal);
      this.#setup.connected();
      this.#take(answer.status, answer.body);
    } catch (error) {
      if (this.#isClosed) return;
      this.#setup.disconnected(error);
      this.#setup.failed(error);
    } finally {
      clock.clearTimeout(timer);
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
