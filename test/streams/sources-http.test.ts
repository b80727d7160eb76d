import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestOptions,
  request,
  type Server
} from 'node:http';
import { type AddressInfo, connect, createServer as createTcp, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { BrokerError, createBroker } from 'embermq';
import { httpPullSource, httpPushSource, mountedHttpPush, StreamsPort } from '../../adapters/streams/http/index.ts';
import { freePort } from '../support/free-ports.ts';
import { ALL, Kept, makeHub, settled, stream } from './source-fixture.ts';

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await settled();
}

describe('the source httppull', () => {
  let server: Server;
  let url: string;
  let answer: { status: number; body: string };
  const requests: { readonly request: IncomingMessage; readonly body: string }[] = [];

  beforeEach(async () => {
    requests.length = 0;
    answer = { status: 200, body: '{"n":1}' };
    server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      requests.push({ request, body });
      if (answer.status > 0) response.writeHead(answer.status).end(answer.body);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  function open(properties: Record<string, unknown> = {}, datasource = '/a?b=1') {
    const sourceConfig = { httppull: { default: { url, ...properties } } };
    const fixture = makeHub([httpPullSource()], { sourceConfig });
    const kept = new Kept();
    const attachment = fixture.hub.attach(stream({ TYPE: 'httppull', DATASOURCE: datasource }), ALL, kept);
    /** Let an interval elapse, and wait for the end of its request. */
    const pull = async (ms = 10_000) => {
      const before = fixture.clock.timersSet;
      fixture.clock.advance(ms);
      await until(() => fixture.clock.timersSet >= before + 2);
    };
    return { ...fixture, kept, attachment, pull };
  }

  it('requests the URL after each interval', async () => {
    const { kept, attachment, pull, clock } = open();
    await attachment.opened;
    assert.equal(requests.length, 0);
    await pull();
    answer.body = '[{"n":2},{"n":3}]';
    await pull();
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }, { n: 3 }]);
    assert.equal(kept.rows[0].meta('url'), `${url}/a`);
    assert.deepEqual([requests[0].request.method, requests[0].request.url, requests[0].body], ['GET', '/a?b=1', '']);
    assert.equal(attachment.connection.status, 1);
    await attachment.detach();
    assert.equal(clock.pending, 0);
  });

  it('sends a body and headers', async () => {
    const { attachment, pull } = open({ method: 'post', body: { q: 1 }, headers: { 'X-Key': 'k' }, interval: '1s' });
    await pull(1000);
    const [{ request, body }] = requests;
    assert.deepEqual([request.method, body], ['POST', '{"q":1}']);
    assert.deepEqual([request.headers['content-type'], request.headers['x-key']], ['application/json', 'k']);
    await attachment.detach();
  });

  it('sends its headers to no other server that DATASOURCE names', async () => {
    for (const [base, datasource] of [
      ['http://127.0.0.1', url.slice('http://127.0.0.1'.length)],
      ['http://good.example', '.evil.example/a'],
      ['http://good', '.evil.example'],
      ['http://good.example:80', '80/']
    ]) {
      const { attachment } = open({ url: base, headers: { 'x-key': 'k' } }, datasource);
      const { origin } = new URL(base);
      const text = `it changes the server of url, ${origin}, to ${new URL(base + datasource).origin}`;
      await assert.rejects(attachment.opened, { code: 'PROPERTY_INVALID', field: 'DATASOURCE' }, datasource);
      await assert.rejects(attachment.opened, ({ message }) => message.endsWith(text));
      await attachment.detach();
    }
    const { attachment, pull } = open({ url: `${url}/a` }, '.json');
    await pull();
    assert.equal(requests[0].request.url, '/a.json');
    await attachment.detach();
  });

  it('skips equal responses if it is incremental', async () => {
    const { kept, attachment, pull } = open({ incremental: true });
    await pull();
    await pull();
    answer.body = '{"n":2}';
    await pull();
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
    await attachment.detach();
  });

  it('continues after error responses and invalid JSON, and reports the reason', async () => {
    const { kept, attachment, pull } = open();
    answer = { status: 500, body: '' };
    await pull();
    answer = { status: 200, body: 'no JSON' };
    await pull();
    answer.body = '{"n":3}';
    await pull();
    assert.equal(kept.errors[0], `${url}/a has answered with status 500`);
    assert.match(kept.errors[1], /^the payload is not JSON/);
    assert.deepEqual(kept.values, [{ n: 3 }]);
    await attachment.detach();
  });

  it('fails after the timeout, and without a server', async () => {
    const { kept, attachment, pull, clock } = open({ timeout: 100 });
    answer.status = 0;
    clock.advance(10_000);
    await until(() => requests.length === 1);
    clock.advance(100);
    await until(() => kept.errors.length === 1);
    assert.equal(kept.errors[0], `no answer from ${url}/a within 100 ms`);
    assert.equal(attachment.connection.status, -1);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await until(() => clock.pending > 0);
    await pull();
    assert.match(kept.errors[1], /ECONNREFUSED/);
    await attachment.detach();
    assert.equal(clock.pending, 0);
  });

  it('sends no requests while a rule has no room', async () => {
    const { kept, attachment, clock } = open();
    attachment.setFull(true);
    clock.advance(10_000);
    await settled();
    assert.equal(requests.length, 0);
    attachment.setFull(false);
    await until(() => kept.rows.length === 1);
    await attachment.detach();
  });
});

describe('the source httppush', () => {
  /** The status of a request with arbitrary headers, including `Host`. */
  async function statusOf(port: number, options: RequestOptions): Promise<number | undefined> {
    const sent = request({ port, host: '127.0.0.1', method: 'POST', ...options });
    sent.end('{"n":1}');
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.resume();
    await once(answer, 'end');
    return answer.statusCode;
  }

  async function open() {
    const port = await freePort();
    const fixture = makeHub([httpPushSource({ port, maxBodyBytes: 100 })]);
    const attach = (DATASOURCE: string, kept = new Kept(), name = 'demo') => ({
      kept,
      attachment: fixture.hub.attach({ ...stream({ TYPE: 'httppush', DATASOURCE }), name }, ALL, kept)
    });
    const send = async (path: string, body: string, method = 'POST') => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, body });
      return [response.status, await response.text()];
    };
    return { ...fixture, attach, send };
  }

  it('emits the bodies of requests to its path', async () => {
    const { attach, send } = await open();
    const { kept, attachment } = attach('a/b');
    await attachment.opened;
    assert.deepEqual(await send('/a/b', '[{"n":1},{"n":2}]'), [200, 'ok\n']);
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
    assert.equal(kept.rows[0].meta('path'), '/a/b');
    assert.deepEqual((await send('/other', '{}'))[0], 404);
    assert.deepEqual(await send('/a/b', '{}', 'PUT'), [405, 'use POST\n']);
    assert.deepEqual((await send('/a/b', `{"n":"${'x'.repeat(100)}"}`))[0], 413);
    attachment.setFull(true);
    assert.deepEqual(await send('/a/b', '{}'), [503, 'a rule is busy; try again later\n']);
    attachment.setFull(false);
    assert.equal(kept.rows.length, 2);
    await attachment.detach();
  });

  it('refuses pages of other origins and foreign host names', async () => {
    const port = await freePort();
    const { hub } = makeHub([httpPushSource({ port, origins: 'https://app.example', hosts: 'gateway.example' })]);
    const kept = new Kept();
    const attachment = hub.attach(stream({ TYPE: 'httppush', DATASOURCE: '/a' }), ALL, kept);
    await attachment.opened;
    const send = (headers: OutgoingHttpHeaders) => statusOf(port, { path: '/a', headers });
    assert.equal(await send({ origin: 'https://evil.example' }), 403);
    assert.equal(await send({ origin: 'null' }), 403);
    assert.equal(await send({ 'sec-fetch-site': 'cross-site' }), 403);
    // after DNS rebinding, an attacker's page has the same origin
    assert.equal(await send({ origin: `http://evil.example:${port}`, host: `evil.example:${port}` }), 403);
    assert.equal(kept.rows.length, 0);
    assert.equal(await send({ origin: 'https://app.example' }), 200);
    assert.equal(await send({ origin: `http://localhost:${port}`, host: `localhost:${port}` }), 200);
    assert.equal(await send({ host: `gateway.example:${port}` }), 200);
    await attachment.detach();
  });

  it('requires the token of the stream, if there is one', async () => {
    const port = await freePort();
    const sourceConfig = {
      httppush: { default: { token: 'a-long-one' }, spaced: { token: 'two words' }, empty: { token: '' } }
    };
    const { hub } = makeHub([httpPushSource({ port })], { sourceConfig });
    const kept = new Kept();
    const attachment = hub.attach(stream({ TYPE: 'httppush', DATASOURCE: '/a' }), ALL, kept);
    await attachment.opened;
    const send = (headers: OutgoingHttpHeaders) => statusOf(port, { path: '/a', headers });
    for (const authorization of ['', 'Bearer', 'Bearer a-long', 'Bearer a-long-one2', 'Basic YTphLWxvbmctb25l'])
      assert.equal(await send({ authorization }), 401, authorization);
    assert.equal(kept.rows.length, 0);
    assert.equal(await send({ authorization: 'Bearer a-long-one' }), 200);
    // a caller with the token may use any host name, but not from a page of another origin
    assert.equal(await send({ authorization: 'Bearer a-long-one', host: 'gateway.example' }), 200);
    assert.equal(await send({ authorization: 'Bearer a-long-one', origin: 'https://evil.example' }), 403);
    await attachment.detach();
    for (const CONF_KEY of ['spaced', 'empty']) {
      const wrong = hub.attach(stream({ TYPE: 'httppush', DATASOURCE: '/a', CONF_KEY }), ALL, kept);
      await assert.rejects(wrong.opened, ({ code, message }) => {
        assert.equal(code, 'PROPERTY_INVALID');
        assert.match(message, /^stream demo: property token must be /);
        return !message.includes('words');
      });
    }
  });

  for (const [what, text] of [
    ['nothing', ''],
    ['a part of the headers', 'POST /a HTTP/1.1\r\nhost: localhost\r\ncontent-le'],
    ['a part of the body', 'POST /a HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n1234'],
    ['one request, and then nothing', 'POST /a HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}']
  ] as const)
    it(`answers new connections when its port is full of connections that have sent ${what}`, async () => {
      const shared = new StreamsPort({ port: 0, maxConnections: 5 });
      const { hub } = makeHub([httpPushSource({ port: shared })]);
      const kept = new Kept();
      const attachment = hub.attach(stream({ TYPE: 'httppush', DATASOURCE: '/a' }), ALL, kept);
      await attachment.opened;
      const port = shared.number as number;
      const slow: Socket[] = [];
      for (let n = 0; n < 8; n++) {
        const socket = connect(port, '127.0.0.1', () => socket.write(text));
        socket.on('error', () => {});
        slow.push(socket.resume());
        await once(socket, 'connect');
      }
      // three of the eight were closed to make room for the last ones
      await until(() => slow.filter(({ closed }) => closed).length === 3);
      for (let n = 0; n < 3; n++)
        assert.equal(await statusOf(port, { path: '/a', headers: { connection: 'close' } }), 200);
      assert.ok(slow.filter(({ closed }) => !closed).length >= 2);
      for (const socket of slow) socket.destroy();
      await attachment.detach();
    });

  for (const [status, header] of [
    [401, 'authorization: Bearer wrong'],
    [403, 'origin: https://evil.example']
  ] as const)
    it(`sends ${status} completely if the body is not read, and closes the connection`, async () => {
      const shared = new StreamsPort({ port: 0 });
      const sourceConfig = { httppush: { default: { token: 'a-long-one' } } };
      const { hub, clock } = makeHub([httpPushSource({ port: shared })], { sourceConfig });
      const attachment = hub.attach(stream({ TYPE: 'httppush', DATASOURCE: '/a' }), ALL, new Kept());
      await attachment.opened;
      const socket = connect(shared.number as number, '127.0.0.1').setEncoding('utf8');
      socket.write(`POST /a HTTP/1.1\r\nhost: localhost\r\n${header}\r\ncontent-length: 9999999\r\n\r\n{`);
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      const isWhole = () => {
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? -1);
        return text.slice(text.indexOf('\r\n\r\n') + 4).length === length;
      };
      while (!isWhole()) await once(socket, 'data');
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} .*\\r\\nconnection: close\\r\\n`, 'is'));
      const closed = once(socket, 'close');
      await until(() => clock.pending > 0);
      clock.advance(2_000);
      await closed;
      await attachment.detach();
    });

  it('uses one port for all streams, which is closed with the last one', async () => {
    const { attach, send } = await open();
    const [one, two] = [attach('/1', new Kept(), 'one'), attach('/2', new Kept(), 'two')];
    await Promise.all([one.attachment.opened, two.attachment.opened]);
    await send('/2', '{"n":2}');
    await one.attachment.detach();
    assert.equal((await send('/1', '{}'))[0], 404);
    assert.deepEqual(two.kept.values, [{ n: 2 }]);
    await two.attachment.detach();
    await assert.rejects(send('/2', '{}'));
    const again = attach('/2');
    await again.attachment.opened;
    assert.equal((await send('/2', '{}'))[0], 200);
    await again.attachment.detach();
  });

  it('refuses a path that another stream uses, and a port that is in use', async () => {
    const { attach } = await open();
    const first = attach('/a', new Kept(), 'first');
    await first.attachment.opened;
    await assert.rejects(attach('a').attachment.opened, {
      code: 'STREAM_INVALID',
      message: 'stream demo: the path /a belongs to the stream first'
    });
    await first.attachment.detach();
    const taken = createTcp();
    await once(taken.listen(0, '127.0.0.1'), 'listening');
    const { hub } = makeHub([httpPushSource({ port: (taken.address() as AddressInfo).port })]);
    const { opened } = hub.attach(stream({ TYPE: 'httppush', DATASOURCE: '/a' }), ALL, new Kept());
    await assert.rejects(opened, { code: 'EADDRINUSE' });
    taken.close();
  });

  it('supports mounting on the server of the app', async () => {
    const push = mountedHttpPush({ prefix: '/push' });
    const kept = new Kept();
    const { hub } = makeHub([push.source]);
    hub.attach(stream({ TYPE: 'httppush', DATASOURCE: '/a' }), ALL, kept);
    const { fetch: answer } = push.mounts(createBroker());
    const send = (path: string) => answer(new Request(`http://host${path}`, { method: 'POST', body: '{"n":1}' }));
    assert.equal((await send('/push/a')).status, 200);
    assert.equal((await send('/a')).status, 404);
    assert.deepEqual(kept.values, [{ n: 1 }]);
  });

  it('answers when the row is committed for a rule with qos above 0, with 503 if the store refuses it', async () => {
    const commits: { resolve(): void; reject(error: Error): void }[] = [];
    const records = {
      get added() {
        return kept.rows.length;
      },
      committed: () => new Promise<void>((resolve, reject) => void commits.push({ resolve, reject }))
    };
    const push = mountedHttpPush();
    const kept = new Kept();
    const { hub } = makeHub([push.source], { records, isKept: () => true });
    const attachment = hub.attach(stream({ TYPE: 'httppush', DATASOURCE: '/a' }), ALL, kept);
    await attachment.opened;
    const { fetch: answer } = push.mounts(createBroker());
    let answered = 0;
    const send = async () => {
      const { status } = await answer(new Request('http://host/a', { method: 'POST', body: '{"n":1}' }));
      answered++;
      return status;
    };
    const first = send();
    await until(() => commits.length === 1);
    await settled();
    assert.equal(answered, 0);
    commits[0].resolve();
    assert.equal(await first, 200);
    const second = send();
    await until(() => commits.length === 2);
    commits[1].reject(new BrokerError('STORE_FAILED', 'disk full'));
    assert.equal(await second, 503);
    await attachment.detach();
  });

  it('refuses a complete body if its rule has no room or its stream is closed', async () => {
    const push = mountedHttpPush();
    const kept = new Kept();
    const { hub } = makeHub([push.source]);
    const attachment = hub.attach(stream({ TYPE: 'httppush', DATASOURCE: '/a' }), ALL, kept);
    await attachment.opened;
    const { fetch: answer } = push.mounts(createBroker());
    const during = async (run: () => void | Promise<void>) => {
      const body = new ReadableStream(
        {
          async pull(controller) {
            await run();
            controller.enqueue(Buffer.from('{"n":1}'));
            controller.close();
          }
        },
        { highWaterMark: 0 }
      );
      return (await answer(new Request('http://host/a', { method: 'POST', body, duplex: 'half' }))).status;
    };
    assert.equal(await during(() => attachment.setFull(true)), 503);
    attachment.setFull(false);
    assert.equal(await during(() => attachment.detach()), 404);
    assert.deepEqual(kept.values, []);
  });
});
