import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { request as httpRequest, type RequestListener, type Server } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { managementApi } from '../../adapters/management/index.ts';
import { listen, listenHttp, tcp, tls, ws } from '../../adapters/net/index.ts';
import { httpPushSource, StreamsPort } from '../../adapters/streams/http/index.ts';
import { streamsApi } from '../../adapters/streams-api/index.ts';
import { HttpPlaces } from '../../adapters/upgrades/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { makeCertificates } from '../support/certificates.ts';
import { ManualClock } from '../support/manual-clock.ts';

let broker: Broker;

beforeEach(() => {
  broker = createBroker();
});

afterEach(() => broker.stop());

const hello: RequestListener = (_request, response) => response.end('hello');

/** Connect, and send a request whose connection may be used again. */
function dial(port: number | undefined, text = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'): Socket {
  const socket = connect(port as number, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(text);
  return socket;
}

/** Resolves when a connection has ended, in whatever way. */
function ended(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.resume().on('close', resolve));
}

async function readAll(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text;
}

/** The HTTP ports of a broker: their names, a path, and what opens them. */
const HTTP_PORTS: readonly [
  name: string,
  path: string,
  serve: (owner: Broker, shared: StreamsPort) => Promise<number>
][] = [
  ['management', '/api/v4/mqtt/publish', (owner) => openPort(owner, managementApi(owner).node)],
  [
    'the earlier management interface',
    '/api/v3/mqtt/publish',
    (owner) => openPort(owner, managementApi(owner, { revision: 'earlier' }).node)
  ],
  ['stream rules', '/streams', (owner) => openPort(owner, streamsApi(owner).node)],
  [
    'pushed rows',
    '/a',
    async ({ streams }, shared) => {
      await streams.create('CREATE STREAM demo () WITH (TYPE="httppush", DATASOURCE="/a", FORMAT="JSON")');
      await streams.rules.create({ sql: 'SELECT * FROM demo', actions: [{ nop: {} }] });
      return shared.number as number;
    }
  ]
];

async function openPort(owner: Broker, handler: RequestListener): Promise<number> {
  return (await listenHttp(owner, tcp({ port: 0, maxConnections: 60 }), handler)).port as number;
}

describe('listenHttp', () => {
  it('opens with the broker, closes with it, and is one of its listeners', async () => {
    const listening = listenHttp(broker, 0, hello);
    assert.equal(listening.port, undefined);
    await broker.start();
    assert.deepEqual(
      broker.listeners().map(({ name, protocol }) => [name, protocol]),
      [['http:0', 'http:management']]
    );
    const response = await fetch(`http://127.0.0.1:${listening.port}/`);
    assert.equal(await response.text(), 'hello');
    const { maxConnections, ...others } = listening.info();
    assert.deepEqual(others, { acceptors: 1, currentConnections: 1, shutdownCount: {} });
    await broker.stop();
    assert.equal(listening.port, undefined);
    await broker.start();
    assert.equal((await fetch(`http://127.0.0.1:${listening.port}/`)).status, 200);
  });

  it('LISTENER_BIND_FAILED: names an address that is in use', async () => {
    const taken = listen(broker, 0);
    await broker.start();
    await assert.rejects(async () => listenHttp(broker, taken.port as number, hello), {
      code: 'LISTENER_BIND_FAILED',
      message: new RegExp(`127\\.0\\.0\\.1:${taken.port}: the address is in use`)
    });
    assert.equal(broker.listeners().length, 1);
    assert.throws(() => listenHttp(broker, ws({ port: 0 }), hello), { code: 'OPTION_INVALID' });
  });

  it('rejects a handler that is not a function, such as an interface without .node', () => {
    for (const handler of [managementApi(broker), undefined])
      assert.throws(() => listenHttp(broker, 0, handler as never), {
        code: 'OPTION_INVALID',
        message: /handler.*managementApi\(broker\)\.node/
      });
  });

  for (const [what, handler] of [
    ['throws', () => assert.fail('broken')],
    ['rejects', async () => assert.fail('broken')]
  ] as const)
    it(`answers 500 and reports it if a handler ${what}`, async () => {
      const { port } = listenHttp(broker, 0, handler as RequestListener);
      assert.equal(port, undefined);
      await broker.start();
      const failed = once(broker as never, 'error');
      const answer = await fetch(`http://127.0.0.1:${broker.listeners()[0].address?.port}/a`);
      assert.equal(answer.status, 500);
      const [{ error, during }] = await failed;
      assert.equal(error.message, 'broken');
      assert.match(during, /GET \/a/);
    });

  it('closes connections above maxConnections if all others are being answered', async () => {
    await broker.start();
    const { port } = await listenHttp(broker, tcp({ port: 0, maxConnections: 1 }), (_request, response) => {
      response.write('begun');
    });
    const first = dial(port);
    await once(first, 'data');
    assert.equal(await readAll(dial(port)), '');
    assert.equal(first.closed, false);
    first.destroy();
  });

  for (const [what, text] of [
    ['nothing', ''],
    ['a part of the headers', 'GET / HTTP/1.1\r\nhos'],
    ['a part of the body', 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n1234'],
    ['one request, and then nothing', 'GET / HTTP/1.1\r\nhost: a\r\n\r\n']
  ] as const)
    it(`answers newcomers when it is full of connections that have sent ${what}, and closes the oldest of them`, async () => {
      broker.on('error', () => {}); // the body of a connection that is closed ends too early
      await broker.start();
      const listening = await listenHttp(broker, tcp({ port: 0, maxConnections: 5 }), async (request, response) => {
        for await (const _ of request);
        response.end('hello');
      });
      const { port } = listening;
      const slow: Socket[] = [];
      for (let n = 0; n < 5; n++) {
        const socket = dial(port, text);
        socket.resume();
        slow.push(socket);
        while (listening.info().currentConnections < n + 1) await new Promise((resolve) => setImmediate(resolve));
      }
      for (let n = 0; n < 3; n++) {
        const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
        assert.equal(await response.text(), 'hello');
      }
      if (!slow[0].closed) await ended(slow[0]);
      assert.ok(slow.filter((socket) => !socket.closed).length >= 2);
      assert.ok(listening.info().currentConnections <= 5);
      for (const socket of slow) socket.destroy();
    });

  for (const [name, path, serve] of HTTP_PORTS)
    it(`answers each of 50 newcomers on the port of ${name} that 80 connections with incomplete headers fill`, async () => {
      const shared = new StreamsPort({ port: 0, maxConnections: 60 });
      await using owner = createBroker({ passwordCost: 10, streams: { sources: [httpPushSource({ port: shared })] } });
      await owner.start();
      await owner.applications.create({ id: 'a', secret: 'a long and random secret' });
      const port = await serve(owner, shared);
      const slow: Socket[] = [];
      for (let n = 0; n < 80; n++) {
        const socket = dial(port, `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-len`).resume();
        slow.push(socket);
        await once(socket, 'connect');
      }
      while (slow.filter(({ closed }) => closed).length < 20) await new Promise((resolve) => setImmediate(resolve));
      const newcomers = Array.from({ length: 50 }, () =>
        readAll(
          dial(port, `POST ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`)
        )
      );
      const answered = (await Promise.all(newcomers)).filter((text) => /^HTTP\/1\.1 (200|401) /.test(text));
      assert.equal(answered.length, 50);
      for (const socket of slow) socket.destroy();
    });

  it('closes a connection of the address with the most connections when it is full', () => {
    const clock = new ManualClock();
    const places = new HttpPlaces(4, clock);
    const server = new EventEmitter();
    places.watch(server as Server, hello);
    const sockets = ['10.0.0.1', '10.0.0.2', '10.0.0.2', '10.0.0.1'].map((remoteAddress, remotePort) => {
      clock.advance(1);
      const socket = Object.assign(new PassThrough(), { remoteAddress, remotePort });
      server.emit('connection', socket);
      return socket;
    });
    const newcomer = Object.assign(new PassThrough(), { remoteAddress: '10.0.0.2', remotePort: 9 });
    server.emit('connection', newcomer);
    assert.deepEqual(
      sockets.map(({ destroyed }) => destroyed),
      [false, true, false, false]
    );
    assert.equal(newcomer.destroyed, false);
    assert.equal(places.size, 4);
  });

  it('reads from few connections in each turn, and one request after the other, whatever Node resumes', async () => {
    const places = new HttpPlaces(0, new ManualClock());
    const server = places.watch(new EventEmitter() as Server, () => {});
    const sockets = Array.from({ length: 10 }, (_, remotePort) => {
      const socket = Object.assign(new PassThrough(), { remoteAddress: '10.0.0.1', remotePort }).resume();
      server.emit('connection', socket);
      return socket;
    });
    for (const socket of sockets) {
      server.emit('request', { headers: {}, socket }, new EventEmitter());
      socket.resume();
    }
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const reading: number[] = [];
    for (let turn = 0; turn < 4; turn++) {
      reading.push(sockets.filter((socket) => !socket.isPaused()).length);
      await new Promise(setImmediate);
    }
    assert.deepEqual(reading, [0, 4, 8, 10]);
  });

  for (const body of [false, true])
    it(`closes a connection that sends hundreds of requests ${body ? 'with bodies ' : ''}without waiting for answers`, async () => {
      await broker.start();
      let requests = 0;
      const { port } = await listenHttp(broker, 0, (_request, response) => {
        requests++;
        response.end();
      });
      const text = body
        ? 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx'
        : 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
      await ended(dial(port, text.repeat(500)));
      assert.ok(requests <= 64, `${requests} requests`);
      const few = dial(port, text.repeat(50));
      while (requests < 114) await once(few, 'data');
      few.destroy();
    });

  it('counts connections from one port of a client to several addresses of this machine', () => {
    const places = new HttpPlaces(0, new ManualClock());
    const server = places.watch(new EventEmitter() as Server, hello);
    for (const localAddress of ['127.0.0.1', '127.0.0.2', '127.0.0.3'])
      server.emit(
        'connection',
        Object.assign(new PassThrough(), { remoteAddress: '127.0.0.1', remotePort: 9, localAddress })
      );
    assert.equal(places.size, 3);
  });

  for (const [name, handler, path] of [
    ['management', (owner: Broker) => managementApi(owner).node, '/mqtt/publish'],
    ['streams', (owner: Broker) => streamsApi(owner).node, '/streams']
  ] as const)
    it(`sends a 401 of the ${name} interface completely if the body is not read, and closes the connection`, async () => {
      await broker.applications.create({ id: 'a', secret: 'a long and random secret' });
      await broker.start();
      const { port } = await listenHttp(broker, 0, handler(broker));
      const prefix = name === 'management' ? '/api/v4' : '';
      const socket = dial(
        port,
        `POST ${prefix}${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\r\n{`
      );
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      const bodyOf = () => text.slice(text.indexOf('\r\n\r\n') + 4);
      const isWhole = () => bodyOf().length === Number(/content-length: (\d+)/i.exec(text)?.[1] ?? -1);
      while (!isWhole()) await once(socket, 'data');
      assert.match(text, /^HTTP\/1\.1 401 /);
      assert.match(text, /\r\nconnection: close\r\n/i);
      socket.end('the client goes on with its body');
      await ended(socket);
    });

  it('closes connections without a request at once on stop, and lets requests in progress end', async () => {
    await broker.start();
    let answer = () => {};
    const begun = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let requests = 0;
    const { port } = await listenHttp(broker, 0, async ({ url }, response) => {
      requests++;
      if (url === '/begun') response.write('one, ');
      if (url !== '/') await begun;
      response.end('end');
    });
    const used = dial(port);
    await once(used, 'data');
    const [begunAlready, waiting] = [
      dial(port, 'GET /begun HTTP/1.1\r\nhost: a\r\n\r\n'),
      dial(port, 'GET /w HTTP/1.1\r\nhost: a\r\n\r\n')
    ];
    await once(begunAlready, 'data');
    const [unused, half] = [dial(port, ''), dial(port, 'GET / HT')];
    while (requests < 3 || broker.listeners()[0].info().currentConnections < 5)
      await new Promise((resolve) => setImmediate(resolve));
    const texts = [begunAlready, waiting].map(readAll);
    const closed = Promise.all([used, unused, half].map(ended));
    const stopped = broker.stop({ timeoutMs: 60_000 });
    await closed;
    answer();
    const [rest, whole] = await Promise.all(texts);
    assert.match(rest, /end/);
    assert.match(whole, /connection: close/i);
    assert.match(whole, /end$/);
    await stopped;
  });

  it('ends streams of events at once on stop, and other requests after the timeout of the stop', async () => {
    await broker.start();
    const { port } = await listenHttp(broker, 0, ({ url }, response) => {
      if (url === '/events') response.setHeader('content-type', 'text/event-stream');
      response.write('.');
    });
    const events = dial(port, 'GET /events HTTP/1.1\r\nhost: a\r\n\r\n');
    const endless = dial(port, 'GET /endless HTTP/1.1\r\nhost: a\r\n\r\n');
    await Promise.all([once(events, 'data'), once(endless, 'data')]);
    const [eventsEnded, endlessEnded] = [ended(events), ended(endless)];
    const stopped = broker.stop({ timeoutMs: 100 });
    await eventsEnded;
    assert.equal(endless.destroyed, false);
    await stopped;
    await endlessEnded;
  });

  it('ends the event stream of the management interface at once on stop', async () => {
    const { port } = listenHttp(broker, 0, managementApi(broker, { prefix: '/api', credentials: 'none' }).node);
    assert.equal(port, undefined);
    await broker.start();
    const [{ address }] = broker.listeners();
    const events = dial(address?.port, 'GET /api/x/events HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await once(events, 'data');
    const eventsEnded = ended(events);
    const begun = performance.now();
    await broker.stop({ timeoutMs: 60_000 });
    assert.ok(performance.now() - begun < 20_000);
    await eventsEnded;
  });

  it('serves HTTPS, and takes a new certificate without closing connections', async () => {
    using certificates = makeCertificates();
    const { server, renewed, ca } = certificates;
    await broker.start();
    const { certFile, keyFile } = server;
    const listening = await listenHttp(broker, tls({ port: 0, certFile, keyFile }), hello);
    const serialOf = () =>
      new Promise<string>((resolve, reject) => {
        const options = { port: listening.port, host: 'localhost', family: 4, ca: ca.cert, agent: false };
        const request = httpsRequest(options, (response) => {
          const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate();
          response.resume().on('end', () => resolve(serialNumber));
        });
        request.on('error', reject).end();
      });
    assert.equal(listening.protocol, 'https:management');
    const before = await serialOf();
    await listening.reload({ certFile: renewed.certFile, keyFile: renewed.keyFile });
    const after = await serialOf();
    assert.notEqual(after, before);
    await assert.rejects(listening.reload({ certFile: keyFile, keyFile }), { code: 'TLS_INVALID' });
    assert.equal(await serialOf(), after);
  });

  it('watches its certificate files', async () => {
    using certificates = makeCertificates();
    const { certFile, keyFile } = certificates.server;
    await broker.start();
    await listenHttp(broker, tls({ port: 0, certFile, keyFile, watchInterval: 10 }), hello);
    const reported = broker.nextEvent('error');
    copyFileSync(certificates.renewed.certFile, certFile); // without its key
    const { error, during } = await reported;
    assert.equal((error as Error & { code?: string }).code, 'TLS_INVALID');
    assert.match(during, /^listener https:0: reloading certificates$/);
  });

  it('LISTENER_WITHOUT_TLS: has no certificates to reload without TLS', async () => {
    await assert.rejects(listenHttp(broker, 0, hello).reload(), { code: 'LISTENER_WITHOUT_TLS' });
  });

  it('answers an invalid request with a code and a message, and closes the connection', async () => {
    await broker.start();
    const { port } = await listenHttp(broker, 0, hello);
    const cases: [string, number, number, RegExp][] = [
      ['FOO / HTTP/1.1\r\nhost: a\r\n\r\n', 400, 108, /method/],
      [`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: a\r\n\r\n`, 431, 108, /larger than 16384 bytes/],
      ['GET / HTTP/1.1\r\n\r\n', 400, 108, /no header Host/],
      ['GET / HTTP/1.1\r\nhost: a\r\nb\u0000: c\r\n\r\n', 400, 108, /not valid HTTP/],
      ['GET / HTTP/1.1\r\nhost: a\r\nexpect: much\r\n\r\n', 417, 108, /Expect.*"much"/],
      ['CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n', 404, 102, /CONNECT/]
    ];
    for (const [request, status, code, message] of cases) {
      const text = await readAll(dial(port, request));
      assert.ok(text.startsWith(`HTTP/1.1 ${status} `), text);
      assert.match(text, /content-type: application\/json/i);
      const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n')));
      assert.equal(body.code, code);
      assert.match(body.message, message);
    }
    const old = await readAll(dial(port, 'GET / HTTP/1.0\r\n\r\n'));
    assert.match(old, /^HTTP\/1\.1 200 /);
  });

  it('explains on a TLS port that it serves HTTPS', async () => {
    using certificates = makeCertificates();
    const { certFile, keyFile } = certificates.server;
    await broker.start();
    const { port } = await listenHttp(broker, tls({ port: 0, certFile, keyFile }), hello);
    const text = await readAll(dial(port));
    assert.match(text, /^HTTP\/1\.1 400 .*"code":108,"message":"this port serves HTTPS/s);
    const garbage = dial(port, '\u0016\u0003garbage, which is not TLS either');
    await ended(garbage);
  });

  it('answers a request whose body arrives too late on stop with 503, so that the client tries again', async () => {
    await broker.start();
    const { node } = managementApi(broker, { prefix: '/api', credentials: 'none' });
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const { port } = await listenHttp(broker, 0, (request, response) => {
      node(request, response);
      begin();
    });
    const head = 'POST /api/mqtt/publish HTTP/1.1\r\nhost: localhost\r\ncontent-length: 26\r\n\r\n';
    const socket = dial(port, `${head}{"top`);
    const text = readAll(socket);
    await begun;
    const stopped = broker.stop({ timeoutMs: 60_000 });
    socket.write('ic":"a","payload":""}');
    assert.match(await text, /^HTTP\/1\.1 503 .*retry-after: 5\r\n.*"code":101,"message":"the broker is stopping/s);
    await stopped;
  });

  it('refuses a request whose headers are too large', async () => {
    await broker.start();
    const { port } = await listenHttp(broker, 0, hello);
    const request = httpRequest({ port, headers: { a: 'x'.repeat(20_000) } });
    const [response] = await once(request.end(), 'response');
    assert.equal(response.statusCode, 431);
  });
});
