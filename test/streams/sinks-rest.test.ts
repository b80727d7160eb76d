import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { restSink } from '../../adapters/streams/http/index.ts';
import { systemClock } from '../../lib/base/clock.ts';
import { makeCertificates } from '../support/certificates.ts';
import { openSink } from './sink-bench.ts';

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

describe('The rest sink', () => {
  let server: Server;
  let url: string;
  let seen: Seen[];
  let answer: { status: number; body: string };

  beforeEach(async () => {
    seen = [];
    answer = { status: 200, body: 'ok' };
    server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const { method, headers } = request;
      seen.push({ method, url: request.url, headers, body });
      if (answer.status === 0) return;
      response.writeHead(answer.status).end(answer.body);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  async function sent(properties: object, rows: readonly Record<string, unknown>[]): Promise<Seen> {
    const { emitter } = await openSink(restSink(), { url, ...properties }, { clock: systemClock });
    await emitter.push(rows);
    await emitter.close();
    return seen[seen.length - 1];
  }

  it('sends a GET without a body by default, and JSON with other methods', async () => {
    const get = await sent({ url: `${url}/a?b=1` }, [{ id: 1 }]);
    assert.deepEqual([get.method, get.url, get.body, get.headers['content-type']], ['GET', '/a?b=1', '', undefined]);
    const post = await sent({ method: 'post' }, [{ id: 1 }]);
    assert.deepEqual([post.method, post.body], ['POST', '[{"id":1}]']);
    assert.equal(post.headers['content-type'], 'application/json');
  });

  it('sets the header Content-Type by bodyType, which headers override', async () => {
    const types = { none: undefined, text: 'text/plain', html: 'text/html', xml: 'application/xml' };
    for (const [bodyType, type] of Object.entries(types)) {
      const request = await sent({ method: 'put', bodyType, dataTemplate: 'x' }, [{ id: 1 }]);
      assert.deepEqual([request.headers['content-type'], request.body], [type, type === undefined ? '' : 'x']);
    }
    const headers = { 'Content-Type': 'a/b', authorization: 'Bearer {{.token}}' };
    const request = await sent({ method: 'post', headers, sendSingle: true }, [{ token: 't' }]);
    assert.deepEqual([request.headers['content-type'], request.headers.authorization], ['a/b', 'Bearer t']);
    const text = await sent({ method: 'post', headers: '{"x-id":"{{.id}}"}' }, [{ id: 5 }]);
    assert.equal(text.headers['x-id'], '5');
  });

  it('sends forms, with columns as fields and lists as the field result', async () => {
    const single = await sent({ method: 'post', bodyType: 'form', sendSingle: true }, [
      { a: 1, b: { c: 2 }, d: 'x y' }
    ]);
    assert.equal(single.body, 'a=1&b=%7B%22c%22%3A2%7D&d=x+y');
    assert.equal(single.headers['content-type'], 'application/x-www-form-urlencoded;param=value');
    const list = await sent({ method: 'post', bodyType: 'form' }, [{ a: 1 }]);
    assert.equal(list.body, 'result=%5B%7B%22a%22%3A1%7D%5D');
  });

  it('fills in url and method', async () => {
    const properties = { url: '{{.base}}/d/{{.id}}', method: '{{.method}}', sendSingle: true };
    const request = await sent(properties, [{ base: url, id: 7, method: 'patch' }]);
    assert.deepEqual([request.method, request.url], ['PATCH', '/d/7']);
  });

  it('percent-encodes the values of the URL, so that they add no parameter, fragment or segment "."', async () => {
    const at = (path: string, row: Record<string, unknown>) =>
      sent({ url: `${url}${path}`, sendSingle: true }, [row]).then((request) => request.url);
    assert.equal(await at('/a/{{.x}}', { x: 'b?c=1#d e%2e' }), '/a/b%3Fc%3D1%23d%20e%252e');
    assert.equal(await at('/a/{{.x}}', { x: 'sensors/1' }), '/a/sensors/1');
    assert.equal(await at('/a/{{urlquery .x}}', { x: 'sensors/1' }), '/a/sensors%2F1');
    assert.equal(await at('/a?x={{.x}}&y={{.y}}', { x: '1&y=2/3', y: '..' }), '/a?x=1%26y%3D2%2F3&y=..');
    for (const path of [
      '/a/{{.x}}',
      '/a/{{.x}}/b',
      '/a/.{{slice .x 1}}',
      '/a/{{.x}}?q',
      '/a/{{.x}} ',
      '/a/%2e{{slice .x 1}}\n'
    ])
      for (const x of ['..', '../../admin', 'b/..'])
        if (x.startsWith('.') || !path.includes('slice'))
          await assert.rejects(
            at(path, { x }),
            { code: 'STREAM_FAILED', message: /has a segment "\." or "\.\."/ },
            path + x
          );
  });

  it('shows no secret of the URL in the error of a refused value', async () => {
    const sending = sent({ url: `${url}/a/{{.x}}?token=secret`, sendSingle: true }, [{ x: '..' }]);
    await assert.rejects(
      sending,
      (error: Error) => error.message.includes('?token=***') && !error.message.includes('secret')
    );
  });

  it('sends to no other server than that of the template, unless the host or the beginning is a placeholder', async () => {
    const { host } = new URL(url);
    const to = (template: string, row: Record<string, unknown>) => sent({ url: template, sendSingle: true }, [row]);
    for (const x of [
      '//other.example/',
      '@other.example/',
      '\\\\other.example',
      'http://other.example',
      ':1',
      '.other.example'
    ])
      assert.equal((await to(`${url}/{{.x}}`, { x })).headers.host, host);
    for (const template of [`http://${host}{{.x}}`, 'http://{{.x}}/b', 'http:/{{.x}}', 'http:{{.x}}', 'http:///{{.x}}'])
      for (const x of [`${host}/a`, `a@${host}`, `${host}?`, `\\${host}`, `${host}#`])
        await assert.rejects(
          to(template, { x }),
          { code: 'STREAM_FAILED', message: /in the place of the host/ },
          template
        );
    assert.equal((await to('http://{{.x}}/a/{{.y}}', { x: host, y: 'b?' })).url, '/a/b%3F');
    assert.equal((await to('{{.x}}', { x: `${url}/a?b=1` })).url, '/a?b=1');
    assert.equal((await to('{{.x}}{{.y}}&c={{.y}}', { x: url, y: '/a?b=1' })).url, '/a?b=1&c=%2Fa%3Fb%3D1');
  });

  it('fails for a status other than 2xx, and reports the response', async () => {
    answer = { status: 503, body: 'busy' };
    await assert.rejects(sent({}, [{}]), {
      message: 'rest sink fails to err http return code: 503 and error message busy.'
    });
    answer = { status: 503, body: '' };
    await assert.rejects(sent({}, [{}]), { message: 'rest sink fails to err http return code: 503' });
    answer = { status: 302, body: 'moved' };
    await assert.rejects(sent({}, [{}]), {
      message: 'rest sink fails to err http return code: 302 and error message moved; redirects are not followed'
    });
  });

  it('fails permanently if the server refuses or redirects, and temporarily otherwise', async () => {
    for (const [status, isFinal] of [
      [302, true],
      [400, true],
      [401, true],
      [404, true],
      [408, false],
      [425, false],
      [429, false],
      [500, false]
    ] as const) {
      answer = { status, body: '' };
      await assert.rejects(sent({}, [{}]), { code: 'SEND_FAILED', isFinal }, `${status}`);
    }
  });

  it('sends nothing to a server whose certificate is not trusted, and names the properties that help', async () => {
    using certificates = makeCertificates();
    const { ca, server: identity } = certificates;
    const requests: string[] = [];
    const secure = createSecureServer({ cert: identity.cert, key: identity.key }, (request, response) => {
      requests.push(String(request.headers['x-n']));
      response.end();
    }).listen(0, '127.0.0.1');
    await once(secure, 'listening');
    try {
      const target = { url: `https://localhost:${(secure.address() as AddressInfo).port}` };
      await assert.rejects(sent({ ...target, headers: { 'x-n': '1' } }, [{}]), {
        code: 'HTTP_FAILED',
        message: /; name the file of its authorities in the property rootCaPath, or set insecureSkipVerify to true/
      });
      await sent({ ...target, headers: { 'x-n': '2' }, rootCaPath: ca.certFile }, [{}]);
      await sent({ ...target, headers: { 'x-n': '3' }, insecureSkipVerify: true }, [{}]);
      assert.deepEqual(requests, ['2', '3']);
    } finally {
      secure.closeAllConnections();
      secure.close();
    }
  });

  it('hides the location of the data folder', async () => {
    await assert.rejects(openSink(restSink(), { url, rootCaPath: 'no/ca.pem' }, { dataDir: '/somewhere/secret' }), {
      message: 'rest sink: property rootCaPath: no/ca.pem: no such file or directory'
    });
  });

  it('fails without a server or an answer in time, and shows this in the connection', async () => {
    answer = { status: 0, body: '' };
    await assert.rejects(sent({ timeout: 20 }, [{}]), /no answer from .* within 20 ms/);
    const { emitter } = await openSink(restSink(), { url: 'http://127.0.0.1:1/a' }, { clock: systemClock });
    await assert.rejects(async () => emitter.push([{}]), /the request to http:\/\/127.0.0.1:1\/a failed/);
    assert.equal(emitter.connection?.status, -1);
    await emitter.close();
  });

  it('writes responses to the log with debugResp', async () => {
    const { emitter, logged } = await openSink(restSink(), { url, debugResp: true }, { clock: systemClock });
    await emitter.push([{}]);
    await emitter.close();
    assert.deepEqual(logged, ['rest sink got response of rule r1: 200 ok']);
  });

  it('names the invalid property', async () => {
    const fails = (properties: object, message: RegExp) => assert.rejects(openSink(restSink(), properties), message);
    await fails({}, /rest sink is missing property url/);
    await fails({ url: 'x' }, /rest sink: property url: expected a URL/);
    await fails({ url: '' }, /rest sink: property url must be a string that is not empty/);
    await fails({ url, method: 'fetch' }, /property method must be one of/);
    const headers =
      /^InvalidInput: rest sink: property headers must be an object, or a template that makes JSON of one$/;
    for (const value of ['x', '[]', 5, true, ['a']]) await fails({ url, headers: value }, headers);
    await fails({ url, headers: { 'a b': 'c' } }, /property headers has "a b", which is not a valid name of a header/);
    await fails(
      { url, headers: '{"a":"\\n"}' },
      /property headers: the value of "a" has characters that a header cannot/
    );
    for (const value of [null, '', {}, { a: 1, b: '{{.b}}' }, '{"a":"b"}', '{{json .h}}'])
      await (await openSink(restSink(), { url, headers: value })).emitter.close();
    // a device such as /dev/zero would be read until the memory is full
    if (process.platform !== 'win32')
      await fails({ url, rootCaPath: '/dev/null' }, /property rootCaPath: \/dev\/null: it is not a file/);
    await fails({ url, rootCaPath: '/nowhere/ca.pem' }, /property rootCaPath: \/nowhere\/ca.pem: no such file/);
  });
});
