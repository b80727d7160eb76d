import type { OpenSink, PropertyTable, SinkItem, SinkSetup } from '../../../lib/adapter.ts';
import { BrokerError, InvalidInput, SendError } from '../../../lib/index.ts';
import { checkUrl, HttpClient, refusalOf, withTrustHint } from '../../outgoing/index.ts';

const MAX_ANSWER_BYTES = 1_048_576;
/** Maximum size of one request in bytes; further lines go into more requests. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;
const MAX_SHOWN = 1000;

/** Properties of both sinks. */
export const WRITER_PROPERTIES: PropertyTable = {
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
  timeout: { type: 'number', unit: 'ms', default: 10_000, range: [1, 290_000], about: 'Time limit of a request.' },
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
  readonly #setup: SinkSetup;
  readonly #target: WriteTarget;
  readonly #path: string;
  readonly #client: HttpClient;
  readonly #closed = new AbortController();

  /** @throws InvalidInput PROPERTY_INVALID */
  constructor(setup: SinkSetup, target: WriteTarget) {
    const { addr, insecureSkipVerify } = setup.properties;
    const url = readAddress(addr, target.what);
    this.#setup = setup;
    this.#target = target;
    this.#path = url.pathname.replace(/\/+$/, '') + target.path;
    this.#client = new HttpClient(
      url,
      {},
      {
        maxSockets: 4,
        maxBodyBytes: MAX_ANSWER_BYTES,
        verifies: insecureSkipVerify !== true
      }
    );
  }

  async send(item: SinkItem): Promise<void> {
    for (const body of bodiesOf(this.#target.lines(item))) await this.#write(body);
  }

  close(): void {
    this.#closed.abort(new BrokerError('RESOURCE_DOWN', 'the sink is closed'));
    this.#client.close();
  }

  async #write(body: string): Promise<void> {
    const { clock, properties } = this.#setup;
    const { what, headers } = this.#target;
    const limit = new AbortController();
    const late = new BrokerError('HTTP_TIMEOUT', `${what}: no answer within ${properties.timeout} ms`);
    const timer = clock.setTimeout(() => limit.abort(late), properties.timeout as number);
    const signal = AbortSignal.any([limit.signal, this.#closed.signal]);
    const call = {
      method: 'POST',
      path: this.#path,
      headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
      body: Buffer.from(body)
    };
    try {
      const answer = await this.#client.send(call, signal);
      this.#setup.connected();
      const text = answer.body.toString('utf8', 0, MAX_SHOWN);
      const refusal = refusalOf(
        answer,
        () => `${what}: the server has answered with status ${answer.status}: ${text}`,
        clock.now()
      );
      if (refusal !== undefined) throw refusal;
    } catch (error) {
      if (error instanceof SendError) throw error;
      const shown = withTrustHint(error, 'set the property insecureSkipVerify to true to accept any certificate');
      this.#setup.disconnected(shown);
      throw shown;
    } finally {
      clock.clearTimeout(timer);
    }
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

/** @throws InvalidInput PROPERTY_INVALID */
function readAddress(addr: unknown, what: string): URL {
  const text = String(addr);
  try {
    return checkUrl(/^https?:/i.test(text) ? text : `http://${text}`, 'addr');
  } catch (error) {
    const { expected, got } = error as InvalidInput;
    throw new InvalidInput('PROPERTY_INVALID', 'addr', expected, got, `${what}: property ${(error as Error).message}`);
  }
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
