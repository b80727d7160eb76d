import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { influx2Sink, influxSink } from '../../adapters/streams/influx/index.ts';
import { lineOf } from '../../adapters/streams/influx/line-protocol.ts';
import type { SinkType } from '../../lib/adapter.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSink } from './sink-bench.ts';

interface Line {
  readonly measurement: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  readonly time: string | undefined;
}

/** Parse lines of the line protocol character by character, as a server does. */
function parse(text: string): Line[] {
  let at = 0;
  const token = (ends: string): string => {
    let read = '';
    while (at < text.length && !ends.includes(text[at])) {
      if (text[at] === '\\' && ', ='.includes(text[at + 1] ?? 'x')) at++;
      read += text[at++];
    }
    if (read === '') throw new Error(`a token is empty at ${at}`);
    return read;
  };
  const expect = (character: string) => {
    if (text[at] !== character) throw new Error(`expected "${character}" at ${at}, got "${text[at]}"`);
    at++;
  };
  const quoted = (): string => {
    let read = '';
    expect('"');
    while (text[at] !== '"') {
      if (at >= text.length) throw new Error('a string has no end');
      if (text[at] === '\\' && '"\\'.includes(text[at + 1])) at++;
      read += text[at++];
    }
    expect('"');
    return read;
  };
  const fieldValue = (): string | number | boolean => {
    if (text[at] === '"') return quoted();
    const word = token(', \n');
    if (word === 'true' || word === 'false') return word === 'true';
    if (!/^-?\d+(\.\d+)?(e[+-]\d+)?$/.test(word)) throw new Error(`no value: ${word}`);
    return Number(word);
  };
  const lines: Line[] = [];
  while (at < text.length) {
    const measurement = token(', \n');
    const [tags, fields]: [Record<string, string>, Record<string, string | number | boolean>] = [{}, {}];
    while (text[at] === ',') {
      at++;
      const key = token('=,\n');
      expect('=');
      tags[key] = token(', \n');
    }
    expect(' ');
    for (let isMore = true; isMore; isMore = text[at] === ',' && at++ >= 0) {
      const key = token('=\n');
      expect('=');
      fields[key] = fieldValue();
    }
    let time: string | undefined;
    if (text[at] === ' ') {
      at++;
      time = token('\n');
    }
    expect('\n');
    lines.push({ measurement, tags, fields, time });
  }
  return lines;
}

interface Seen {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly lines: Line[];
}

describe('The sinks of InfluxDB', () => {
  let server: Server;
  let addr: string;
  let seen: Seen[];
  let answer: { status: number; body: string };

  beforeEach(async () => {
    seen = [];
    answer = { status: 204, body: '' };
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      if (answer.status === 0) return;
      let { status, body } = answer;
      try {
        seen.push({ url: request.url ?? '', headers: request.headers, lines: parse(String(Buffer.concat(chunks))) });
      } catch (error) {
        [status, body] = [400, (error as Error).message];
      }
      response.writeHead(status).end(body);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    addr = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  async function sent(type: SinkType, properties: object, rows: readonly Record<string, unknown>[]): Promise<Seen> {
    const { emitter } = await openSink(type, { addr, ...properties }, { clock: new ManualClock(1_700_000_000_123) });
    try {
      await emitter.push(rows);
    } finally {
      await emitter.close();
    }
    return seen[seen.length - 1];
  }
  const one = { measurement: 'm', databasename: 'd' };
  const two = { measurement: 'm', org: 'o', bucket: 'b' };

  it('writes all rows of an output with one request, to version 1', async () => {
    const properties = { ...one, username: 'u', password: 'p:x', tagkey: 'room', tagvalue: 'r', fields: 't, h' };
    const { url, headers, lines } = await sent(influxSink(), properties, [
      { t: 1.5, h: 2, r: 'kitchen', other: 1 },
      { t: 3, h: null, r: null }
    ]);
    assert.equal(url, '/write?db=d&precision=ms');
    assert.equal(headers.authorization, `Basic ${Buffer.from('u:p:x').toString('base64')}`);
    assert.deepEqual(lines, [
      { measurement: 'm', tags: { room: 'kitchen' }, fields: { t: 1.5, h: 2 }, time: '1700000000123' },
      { measurement: 'm', tags: { room: 'r' }, fields: { t: 3 }, time: '1700000000123' }
    ]);
    const fixed = await sent(influxSink(), { ...one, tagkey: 'site', tagvalue: 'a b', fields: ['t'] }, [{ t: 1 }]);
    assert.deepEqual(fixed.lines[0].tags, { site: 'a b' });
    assert.equal(fixed.headers.authorization, undefined);
  });

  it('writes to version 2, with tags from columns and the time from a column', async () => {
    const tags = { id: '{{.id}}', place: 'p-{{.id}}/{{.n}}', fixed: 'x', missing: '{{.none}}' };
    const properties = { ...two, token: 'secret', org: 'a b', tags, precision: 's', tsFieldName: 'ts' };
    const { url, headers, lines } = await sent(influx2Sink(), { ...properties }, [
      { id: 'a', n: 1, ts: 1888888888 },
      { id: 2, n: 5n, ts: new Date(1000) }
    ]);
    assert.equal(url, '/api/v2/write?org=a+b&bucket=b&precision=s');
    assert.equal(headers.authorization, 'Token secret');
    assert.deepEqual(lines, [
      {
        measurement: 'm',
        tags: { id: 'a', place: 'p-a/1', fixed: 'x' },
        fields: { id: 'a', n: 1 },
        time: '1888888888'
      },
      { measurement: 'm', tags: { id: '2', place: 'p-2/5', fixed: 'x' }, fields: { id: 2, n: 5 }, time: '1' }
    ]);
    const text = await sent(influx2Sink(), { ...two, tags: '{"a":"b"}', precision: 'ns' }, [{ n: 1 }]);
    assert.deepEqual(text.lines[0], {
      measurement: 'm',
      tags: { a: 'b' },
      fields: { n: 1 },
      time: '1700000000123000000'
    });
  });

  it('writes lines that a template has created', async () => {
    const dataTemplate = 'own,a=b v={{.n}} 5\n';
    const { lines } = await sent(influx2Sink(), { ...two, useLineProtocol: true, dataTemplate, sendSingle: true }, [
      { n: 7 }
    ]);
    assert.deepEqual(lines, [{ measurement: 'own', tags: { a: 'b' }, fields: { v: 7 }, time: '5' }]);
  });

  it('writes collected batches with one request', async () => {
    const { emitter } = await openSink(influx2Sink(), { addr, ...two, batchSize: 3 });
    for (const n of [1, 2]) await emitter.push([{ n }]);
    assert.equal(seen.length, 0);
    await emitter.push([{ n: 3 }]);
    await emitter.close();
    assert.equal(seen.length, 1);
    assert.deepEqual(
      seen[0].lines.map(({ fields }) => fields.n),
      [1, 2, 3]
    );
  });

  it('splits many lines among several requests', async () => {
    const rows = Array.from({ length: 40 }, () => ({ text: 'x'.repeat(100_000) }));
    await sent(influx2Sink(), two, rows);
    assert.equal(seen.length, 2);
    assert.equal(seen.flatMap(({ lines }) => lines).length, 40);
  });

  it('fails with the answer of the server, and tells whether to send again', async () => {
    const fails = (isFinal: boolean) =>
      assert.rejects(sent(influxSink(), one, [{ n: 1 }]), { code: 'SEND_FAILED', isFinal });
    answer = { status: 400, body: 'field type conflict' };
    await assert.rejects(sent(influxSink(), one, [{ n: 1 }]), /answered with status 400: field type conflict/);
    for (const [status, isFinal] of [
      [400, true],
      [401, true],
      [404, true],
      [408, false],
      [429, false],
      [503, false]
    ] as const) {
      answer = { status, body: '' };
      await fails(isFinal);
    }
  });

  it('shows a server that is missing or does not answer', async () => {
    const clock = new ManualClock();
    const { emitter } = await openSink(influxSink(), { ...one, addr: '127.0.0.1:1' }, { clock });
    await assert.rejects(async () => emitter.push([{ n: 1 }]), /the request to http:\/\/127.0.0.1:1\/ failed/);
    assert.equal(emitter.connection?.status, -1);
    await emitter.close();
    answer = { status: 0, body: '' };
    const slow = await openSink(influxSink(), { ...one, addr, timeout: 50 }, { clock });
    const sending = slow.emitter.push([{ n: 1 }]);
    clock.advance(50);
    await assert.rejects(async () => sending, /no answer from http:.* within 50 ms/);
    await slow.emitter.close();
  });

  it('names invalid properties and rows', async () => {
    const fails = (type: SinkType, text: RegExp, properties: object, row = { n: 1 } as Record<string, unknown>) =>
      assert.rejects(sent(type, properties, [row]), (error: Error) => text.test(error.message));
    await fails(influxSink(), /influx sink is missing property databasename/, { measurement: 'm' });
    await fails(influx2Sink(), /influx2 sink is missing property org/, { measurement: 'm', bucket: 'b' });
    await fails(influx2Sink(), /influx2 sink: property addr: expected a URL without user name/, {
      ...two,
      addr: 'http://a:b@c'
    });
    await fails(influx2Sink(), /property tags must be an object of names/, { ...two, tags: 'x' });
    await fails(influx2Sink(), /only {{.column}} is a template/, { ...two, tags: { a: '{{if .b}}' } });
    await fails(influx2Sink(), /property fields must be a list/, { ...two, fields: [1] });
    await fails(influx2Sink(), /the row has no field with a value/, two, { n: null });
    await fails(influx2Sink(), /the column ts has no time/, { ...two, tsFieldName: 'ts' });
    await fails(influx2Sink(), /measurement must not be empty/, { ...two, measurement: 'a\\' });
  });
});

describe('The line protocol', () => {
  it('preserves any names and values, except those that it cannot represent', () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const text = fc.string({
      unit: fc.constantFrom('a', 'é', '\u{1f525}', ',', '=', ' ', '"', '\\', '\n', '\r', '\t', '#')
    });
    const value = fc.oneof(
      text,
      fc.double(),
      fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
      fc.boolean(),
      fc.constant(null)
    );
    const isName = (name: string) => name !== '' && !/\\+([,= ]|$)|[\r\n]/.test(name);
    const property = fc.property(text, text, text, text, value, (measurement, tag, tagValue, field, given) => {
      const point = {
        measurement,
        tags: [[tag, tagValue]],
        fields: [
          [field, given],
          ['n', 1]
        ],
        time: 5
      } as const;
      const kept = tagValue.replace(/[\r\n]+/g, ' ').replace(/\\+(?=[,= ]|$)/g, '');
      const expected = typeof given === 'bigint' ? Number(given) : given;
      const isKept = expected !== null && (typeof expected !== 'number' || Number.isFinite(expected));
      const names = [measurement, ...(kept === '' ? [] : [tag]), ...(isKept ? [field] : [])];
      if (!names.every(isName)) {
        assert.throws(() => lineOf(point, 'x'), { code: 'STREAM_FAILED' });
        return;
      }
      const [line, ...others] = parse(`${lineOf(point, 'x')}\n`);
      assert.deepEqual(others, []);
      assert.equal(line.measurement, measurement);
      assert.deepEqual(line.tags, kept === '' ? {} : { [tag]: kept });
      assert.deepEqual({ ...line.fields }, { ...(isKept ? { [field]: expected === 0 ? 0 : expected } : {}), n: 1 });
    });
    fc.assert(property, { seed, numRuns: 2000 });
  });
});
