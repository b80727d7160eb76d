import type { FieldTable, OpenSink, SinkItem, SinkSetup } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import { readUrlProperty, SinkRequests } from '../requests.ts';

/** Maximum size of one request in bytes; further lines go into more requests. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;

/** Properties of both sinks. */
export const WRITER_PROPERTIES: FieldTable = {
  addr: { type: 'string', required: true, about: 'URL of the server: http://127.0.0.1:8086.' },
  measurement: { type: 'string', required: true, isTemplate: true, about: 'Name of the measurement.' },
  fields: {
    type: 'any',
    about: 'Columns that become fields: a list, or their names separated by commas. Default: all others.'
  },
  precision: {
    type: 'string',
    default: 'ms',
    choices: ['ns', 'us', 'ms', 's'],
    about: 'Unit of times: ns, us, ms or s.'
  },
  tsFieldName: { type: 'string', about: 'Column with the time, in the unit of precision. Default: the current time.' },
  timeout: { type: 'duration', unit: 'ms', default: 10_000, min: 1, max: 290_000, about: 'Time limit of a request.' },
  insecureSkipVerify: { type: 'boolean', default: false, about: 'Do not verify the certificate of the server.' }
};

/** A request that writes lines. */
interface WriteTarget {
  /** Name of the sink, for messages: `influx sink`. */
  readonly what: string;
  /** Path appended to that of `addr`, with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The lines of an item. @throws StreamFailure */
  lines(item: SinkItem): readonly string[];
}

/** Sends lines to a server. */
export class LineWriter implements OpenSink {
  readonly #target: WriteTarget;
  readonly #url: URL;
  readonly #path: string;
  readonly #requests: SinkRequests;

  /** @throws InvalidInput PROPERTY_INVALID */
  constructor(setup: SinkSetup, target: WriteTarget) {
    const addr = String(setup.properties.addr);
    const { what } = target;
    const url = readUrlProperty(/^https?:/i.test(addr) ? addr : `http://${addr}`, 'addr', `${what}: property`);
    this.#target = target;
    this.#url = url;
    this.#path = url.pathname.replace(/\/+$/, '') + target.path;
    this.#requests = new SinkRequests(setup, {
      trustRemedy: 'set the property insecureSkipVerify to true to accept any certificate',
      describe: ({ status, text }) => `${what}: the server has answered with status ${status}: ${text}`
    });
  }

  async send(item: SinkItem): Promise<void> {
    const headers = { 'content-type': 'text/plain; charset=utf-8', ...this.#target.headers };
    for (const body of bodiesOf(this.#target.lines(item)))
      await this.#requests.send(this.#url, {
        ...{ method: 'POST', path: this.#path, headers, body: Buffer.from(body) },
        mayRepeat: true // a line that is written twice is one point
      });
  }

  close(): void {
    this.#requests.close();
  }
}

/** Split lines into request bodies. */
function* bodiesOf(lines: readonly string[]): Iterable<string> {
  let body = '';
  for (const line of lines) {
    // a UTF-16 code unit takes at most 3 bytes
    if (body !== '' && 3 * (body.length + line.length) > MAX_BODY_BYTES) {
      yield body;
      body = '';
    }
    body += `${line}\n`;
  }
  if (body !== '') yield body;
}

/**
 * Read the property `fields`: a list, or names separated by commas.
 * @throws InvalidInput PROPERTY_INVALID
 */
export function readFields(value: unknown, what: string): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const list: unknown = typeof value === 'string' ? value.split(',').map((each) => each.trim()) : value;
  if (Array.isArray(list) && list.every((each) => typeof each === 'string')) return list.filter((each) => each !== '');
  const expected = 'a list of names of columns, or a string of names separated by commas';
  throw new InvalidInput('PROPERTY_INVALID', 'fields', expected, value, `${what}: property fields must be ${expected}`);
}
