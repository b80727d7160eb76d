// Each output is a request. Any status but 2xx is a failed send; `refusalOf` (`adapters/outgoing`) decides whether it
// is final, so that a cache does not repeat it for ever. Redirects are not followed. Properties are templates, so
// method, URL and headers are checked for each output. Connections are kept for a limited number of servers.

import { validateHeaderName, validateHeaderValue } from 'node:http';
import {
  type FieldTable,
  isPlainObject,
  type OpenSink,
  parseStreamJson,
  type SinkItem,
  type SinkSetup,
  type SinkType,
  streamJson
} from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import type { OutgoingTls } from '../../outgoing/index.ts';
import { readUrlProperty, SinkRequests } from '../requests.ts';
import { readTlsFiles, TLS_FILE_PROPERTIES, TRUST_OR_SKIP_REMEDY } from '../tls-files.ts';

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head'];
/** The header Content-Type, by `bodyType`. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  none: '',
  json: 'application/json',
  text: 'text/plain',
  html: 'text/html',
  xml: 'application/xml',
  javascript: 'application/javascript',
  form: 'application/x-www-form-urlencoded;param=value'
};
/** The header Content-Encoding, by `compression`. */
const ENCODINGS: Readonly<Record<string, string>> = { gzip: 'gzip', zlib: 'deflate' };

/** The values of `headers`, for messages. */
const HEADERS_TEXT = 'an object, or a template that makes JSON of one';

const PROPERTIES: FieldTable = {
  url: {
    type: 'string',
    required: true,
    isTemplate: 'url',
    about:
      'URL, with http or https. Values of a template are percent-encoded; in the path, a slash stays (urlquery encodes it too), and segments "." and ".." fail. A value in the host can only have the characters of a host. Values at the beginning of the URL are inserted unchanged, so the data selects the server.'
  },
  method: {
    type: 'string',
    default: 'get',
    isTemplate: true,
    choices: [...METHODS, ...METHODS.map((name) => name.toUpperCase())],
    about: `Method: ${METHODS.join(', ')}.`
  },
  bodyType: {
    type: 'string',
    isTemplate: true,
    choices: Object.keys(CONTENT_TYPES),
    about: `Type of the body: ${Object.keys(CONTENT_TYPES).join(', ')}. Default: none for get and head, otherwise json.`
  },
  headers: {
    type: 'any',
    isTemplate: true,
    about: 'Further headers: an object, or a template that makes JSON of one.'
  },
  timeout: { type: 'duration', unit: 'ms', default: 5000, min: 1, max: 290_000, about: 'Time limit of a request.' },
  debugResp: { type: 'boolean', default: false, about: 'Write responses to the log of the service.' },
  insecureSkipVerify: { type: 'boolean', default: false, about: 'Do not verify the certificate of the server.' },
  ...TLS_FILE_PROPERTIES
};

/**
 * The sink `rest`: each output becomes an HTTP request.
 *
 * A status other than 2xx is a failed send. With a cache, permanently refused outputs, such as those with status 400,
 * are not sent again; see `refusalOf`. Redirects are not followed. Unlike in the original, certificates are verified
 * unless `insecureSkipVerify` is true.
 */
export function restSink(): SinkType {
  return {
    name: 'rest',
    about: 'Sends outputs to a web server.',
    properties: PROPERTIES,
    async open(setup) {
      const url = String(setup.properties.url);
      if (!isTemplate(url)) readUrl(url);
      checkHeaders(setup.properties.headers);
      return new RestSink(setup, await readTlsFiles(setup.properties, setup.dataDir, 'rest sink'));
    }
  };
}

function readUrl(text: string): URL {
  return readUrlProperty(text, 'url', 'rest sink: property');
}

/** Check headers that are not templates. @throws InvalidInput PROPERTY_INVALID */
function checkHeaders(given: unknown): void {
  if (isTemplate(given)) return;
  const fault = (text: string) =>
    new InvalidInput('PROPERTY_INVALID', 'headers', HEADERS_TEXT, undefined, `rest sink: property headers${text}`);
  const headers = headersOf(given);
  if (headers === undefined) throw fault(` must be ${HEADERS_TEXT}`);
  for (const [name, value] of Object.entries(headers)) {
    if (!isValid(() => validateHeaderName(name)))
      throw fault(` has ${JSON.stringify(name)}, which is not a valid name of a header`);
    if (!isTemplate(value) && !isValid(() => validateHeaderValue(name, String(value))))
      throw fault(`: the value of ${JSON.stringify(name)} has characters that a header cannot have`);
  }
}

function isTemplate(value: unknown): boolean {
  return typeof value === 'string' && value.includes('{{');
}

function isValid(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

/** A request body with the header Content-Type. */
interface Content {
  readonly type: string;
  readonly body: Buffer | undefined;
}

class RestSink implements OpenSink {
  readonly #setup: SinkSetup;
  readonly #requests: SinkRequests;

  constructor(setup: SinkSetup, tls: OutgoingTls) {
    const { properties, ruleId, log } = setup;
    this.#setup = setup;
    this.#requests = new SinkRequests(setup, {
      tls,
      trustRemedy: TRUST_OR_SKIP_REMEDY,
      answered: ({ status, text }) => {
        if (properties.debugResp === true) log(`rest sink got response of rule ${ruleId}: ${status} ${text}`);
      },
      describe: ({ status, text }) =>
        `rest sink fails to err http return code: ${status}${text === '' ? '' : ` and error message ${text}.`}`
    });
  }

  send(item: SinkItem): Promise<void> {
    const url = readUrl(String(item.property('url')));
    const method = methodOf(item.property('method'));
    const { type, body } = contentOf(item, method);
    const headers = this.#headers(item, type);
    return this.#requests.send(url, { method, path: url.pathname + url.search, headers, body });
  }

  close(): void {
    this.#requests.close();
  }

  #headers(item: SinkItem, type: string): Record<string, string> {
    const headers: Record<string, string> = {};
    if (type !== '') headers['content-type'] = type;
    const encoding = ENCODINGS[String(this.#setup.properties.compression)];
    if (encoding !== undefined && type !== '') headers['content-encoding'] = encoding;
    for (const [name, value] of Object.entries(readHeaders(item.property('headers'))))
      headers[name.toLowerCase()] = String(value);
    return headers;
  }
}

/** @throws BrokerError SINK_FAILED */
function methodOf(value: unknown): string {
  const method = String(value).toLowerCase();
  if (METHODS.includes(method)) return method.toUpperCase();
  throw new BrokerError('SINK_FAILED', `rest sink: "${method}" is not a method; use ${METHODS.join(', ')}`);
}

/** @throws BrokerError SINK_FAILED */
function contentOf(item: SinkItem, method: string): Content {
  const hasNone = method === 'GET' || method === 'HEAD';
  const bodyType = String(item.property('bodyType') ?? (hasNone ? 'none' : 'json'));
  const type = CONTENT_TYPES[bodyType];
  if (type === undefined) throw new BrokerError('SINK_FAILED', `rest sink: "${bodyType}" is not a bodyType`);
  if (bodyType === 'none') return { type, body: undefined };
  return { type, body: bodyType === 'form' ? formOf(item) : item.bytes };
}

/** The columns of a row as form fields; a list of rows, or a string, becomes the field `result`. */
function formOf({ value, bytes }: SinkItem): Buffer {
  const form = new URLSearchParams();
  const row: unknown = typeof value === 'string' ? rowOf(value) : value;
  if (typeof row !== 'object' || row === null || Array.isArray(row)) form.set('result', String(bytes));
  else
    for (const [name, each] of Object.entries(row))
      form.set(name, typeof each === 'object' && each !== null ? streamJson(each) : String(each ?? ''));
  return Buffer.from(form.toString());
}

/** The object in JSON made by a template; undefined: not an object. */
function rowOf(text: string): unknown {
  try {
    return parseStreamJson(text);
  } catch {
    return undefined;
  }
}

/** @throws BrokerError SINK_FAILED */
function readHeaders(value: unknown): object {
  const headers = headersOf(value);
  if (headers !== undefined) return headers;
  throw new BrokerError('SINK_FAILED', `rest sink: property headers must be ${HEADERS_TEXT}`);
}

/** The headers of an object, or of its JSON; undefined: not an object. */
function headersOf(value: unknown): object | undefined {
  if (value === '') return {};
  const headers: unknown = typeof value === 'string' ? rowOf(value) : (value ?? {});
  return isPlainObject(headers) ? headers : undefined;
}
