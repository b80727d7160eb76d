import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createBroker, type InvalidInput } from 'embermq';
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws';
import { httpPushSource } from '../../adapters/streams/http/index.ts';
import {
  mountedWebSockets,
  StreamsPort,
  type StreamsPortOptions,
  type WebSocketLimits,
  webSockets
} from '../../adapters/streams/websocket/index.ts';
import { systemClock } from '../../lib/base/clock.ts';
import { makeCertificates } from '../support/certificates.ts';
import { openSink } from './sink-bench.ts';
import { ALL, Kept, makeHub, settled, stream } from './source-fixture.ts';

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await settled();
}

/** A client of a path, with its received messages. */
async function connect(url: string, options: ClientOptions = {}) {
  const socket = new WebSocket(url, options);
  const got: string[] = [];
  socket.on('message', (data, isBinary) => got.push(`${isBinary ? 'binary ' : ''}${data}`));
  await once(socket, 'open');
  return { socket, got, closed: once(socket, 'close') };
}

/** The status of a refused handshake. */
async function refusal(url: string, options: ClientOptions = {}): Promise<number | undefined> {
  const socket = new WebSocket(url, options);
  socket.on('error', () => undefined);
  const [request, response] = await once(socket, 'unexpected-response');
  request.destroy();
  return response.statusCode;
}

describe('the types websocket on a separate port', () => {
  function open(limits: WebSocketLimits = {}, token?: string, portOptions: StreamsPortOptions = {}) {
    const port = new StreamsPort({ port: 0, ...portOptions });
    const { source, sink } = webSockets({ port, ...limits });
    const sourceConfig = { websocket: { default: token === undefined ? {} : { token } } };
    const fixture = makeHub([source, httpPushSource({ port })], { sourceConfig });
    const kept = new Kept();
    const url = () => `ws://127.0.0.1:${port.number}`;
    const attach = (DATASOURCE = '/in', TYPE = 'websocket') =>
      fixture.hub.attach({ ...stream({ TYPE, DATASOURCE }), name: TYPE + DATASOURCE }, ALL, kept);
    const sinkAt = (path: string, properties = {}) => openSink(sink, { path, ...properties }, { clock: fixture.clock });
    return { ...fixture, port, kept, url, attach, sinkAt };
  }

  it('emits the messages of clients as rows, with their path and address', async () => {
    const { attach, kept, url, port } = open();
    const attachment = attach('in');
    await attachment.opened;
    assert.equal(attachment.connection.status, 1);
    const { socket, closed } = await connect(`${url()}/in?token=1`);
    socket.send('{"n":1}');
    socket.send(Buffer.from('[{"n":2},{"n":3}]'));
    socket.send('no JSON');
    await until(() => kept.errors.length === 1);
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }, { n: 3 }]);
    assert.equal(kept.rows[0].meta('path'), '/in');
    assert.match(String(kept.rows[0].meta('remoteaddress')), /127\.0\.0\.1$/);
    await attachment.detach();
    const [code, reason] = await closed;
    assert.deepEqual([code, String(reason)], [1001, 'the path is no longer served']);
    assert.equal(port.number, undefined);
  });

  it('sends outputs to all clients of a path, as text or as binary frames', async () => {
    const { url, sinkAt } = open();
    const { emitter } = await sinkAt('/out');
    const binary = await sinkAt('/out', { compression: 'gzip' });
    const clients = [await connect(`${url()}/out`), await connect(`${url()}/out`)];
    await emitter.push([{ a: 1 }]);
    await binary.emitter.push([{ a: 2 }]);
    for (const { got } of clients) {
      await until(() => got.length === 2);
      assert.equal(got[0], '[{"a":1}]');
      assert.match(got[1], /^binary /);
    }
    await emitter.close();
    assert.equal(clients[0].socket.readyState, WebSocket.OPEN);
    await binary.emitter.close();
    await Promise.all(clients.map(({ closed }) => closed));
  });

  it('shares the port with httppush, and a path between a stream and sinks', async () => {
    const { attach, sinkAt, url, kept, port } = open();
    const attachments = [attach('/both'), attach('/push', 'httppush')];
    await Promise.all(attachments.map(({ opened }) => opened));
    const { emitter } = await sinkAt('/both');
    const { socket, got } = await connect(`${url()}/both`);
    await emitter.push([{ a: 1 }]);
    await until(() => got.length === 1);
    socket.send('{"n":1}');
    const http = `http://127.0.0.1:${port.number}`;
    assert.equal((await fetch(`${http}/push`, { method: 'POST', body: '{"n":2}' })).status, 200);
    await until(() => kept.values.length === 2);
    assert.equal((await fetch(`${http}/both`)).status, 426);
    assert.equal((await fetch(`${http}/other`)).status, 404);
    assert.equal(await refusal(`${url()}/other`), 404);
    await emitter.close();
    await Promise.all(attachments.map((each) => each.detach()));
    assert.equal(port.number, undefined);
  });

  it('refuses a path that another stream uses, and an invalid path', async () => {
    const { attach, sinkAt } = open();
    const attachment = attach('/in');
    await attachment.opened;
    await assert.rejects(attach('in').opened, {
      code: 'STREAM_INVALID',
      message: /the path \/in belongs to the stream/
    });
    await assert.rejects(attach('/a b').opened, { code: 'PROPERTY_INVALID' });
    await assert.rejects(sinkAt(''), /websocket sink: property path must be the path of a URL/);
    const { sink } = webSockets({ port: 'off' });
    await assert.rejects(openSink(sink, { path: '/out' }), /property addr is missing, and the port for paths is off/);
    await attachment.detach();
  });

  it('refuses pages of other origins, and more connections than maxConnections', async () => {
    const { attach, url, reported } = open({ maxConnections: 1, origins: ['https://app.example'] });
    const attachment = attach();
    await attachment.opened;
    for (let n = 0; n < 3; n++) assert.equal(await refusal(`${url()}/in`, { origin: 'https://evil.example' }), 403);
    assert.deepEqual(reported, [
      '/in: the WebSocket upgrade of 127.0.0.1 for a page of "https://evil.example" is refused: its origin is not allowed (option origins)'
    ]);
    const { socket, closed } = await connect(`${url()}/in`, { origin: 'https://app.example' });
    assert.equal(await refusal(`${url()}/in`), 503);
    socket.close();
    await closed;
    await settled();
    await connect(`${url()}/in`, { origin: 'http://localhost:3000' });
    await attachment.detach();
  });

  it('requires the token of the stream and the sinks of a path, if there is one, and reports clients without it', async () => {
    const { attach, url, kept, sinkAt } = open({}, 'a-long-one');
    const attachment = attach();
    await attachment.opened;
    const { emitter, logged } = await sinkAt('/in', { token: 'a-long-one' });
    const withHeader = (authorization: string) => ({ headers: { authorization } });
    assert.equal(await refusal(`${url()}/in?token=a-long-one`), 401);
    for (const header of ['Bearer', 'Bearer a-long', 'Bearer a-long-one2', 'Basic YTphLWxvbmctb25l'])
      assert.equal(await refusal(`${url()}/in`, withHeader(header)), 401, header);
    const { socket, got } = await connect(`${url()}/in`, withHeader('Bearer a-long-one'));
    socket.send('{"n":1}');
    await until(() => kept.rows.length === 1);
    await emitter.push([{ a: 1 }]);
    await until(() => got.length === 1);
    const evil = { headers: { authorization: 'Bearer a-long-one' }, origin: 'https://evil.example' };
    assert.equal(await refusal(`${url()}/in`, evil), 403);
    await emitter.close();
    await attachment.detach();
    assert.equal(logged.length, 1);
    assert.match(logged[0], /^\/in: the WebSocket upgrade of 127\.0\.0\.1 is refused: it needs the header/);
  });

  it('reports an upgrade without the token once a minute, and names the required header', async () => {
    const { attach, url, reported } = open({}, 'a-long-one');
    const attachment = attach();
    await attachment.opened;
    const socket = new WebSocket(`${url()}/in`);
    const [request, { headers }] = await once(
      socket.on('error', () => undefined),
      'unexpected-response'
    );
    request.destroy();
    assert.equal(headers['www-authenticate'], 'Bearer realm="embermq"');
    assert.equal(await refusal(`${url()}/in`), 401);
    assert.deepEqual(reported, [
      '/in: the WebSocket upgrade of 127.0.0.1 is refused: it needs the header "Authorization: Bearer" with the property token of the path'
    ]);
    await attachment.detach();
  });

  it('refuses another or no token for a path that is in use, and shows no token', async () => {
    const { attach, sinkAt } = open({}, 'a-long-one');
    const attachment = attach();
    await attachment.opened;
    const isRefused = (error: InvalidInput) => {
      assert.deepEqual([error.code, error.field, error.got], ['PROPERTY_INVALID', 'token', undefined]);
      assert.match(error.message, /the path \/in is in use with another property token/);
      return !/long|other-one/.test(error.message);
    };
    await assert.rejects(sinkAt('/in', { token: 'other-one' }), isRefused);
    await assert.rejects(sinkAt('/in'), isRefused);
    for (const token of ['two words', '', 'line\nbreak', 7])
      await assert.rejects(sinkAt('/out', { token }), ({ code, message }) => {
        assert.equal(code, 'PROPERTY_INVALID');
        assert.match(message, /websocket sink: property token must be /);
        return !/words|break|7/.test(message);
      });
    await attachment.detach();
  });

  it('occupies no place of the port for HTTP requests with open connections', async () => {
    const { attach, url, port, kept } = open({}, undefined, { maxConnections: 2 });
    const attachments = [attach(), attach('/push', 'httppush')];
    await Promise.all(attachments.map(({ opened }) => opened));
    const clients = [];
    for (let n = 0; n < 4; n++) clients.push(await connect(`${url()}/in`));
    const push = { method: 'POST', body: '{"n":2}' };
    for (let n = 0; n < 4; n++) assert.equal((await fetch(`http://127.0.0.1:${port.number}/push`, push)).status, 200);
    for (const { socket } of clients) socket.send('{"n":1}');
    await until(() => kept.rows.length === 8);
    await Promise.all(attachments.map((each) => each.detach()));
  });

  it('closes the connection of a message larger than maxPayload, and continues with others', async () => {
    const { attach, url, kept } = open({ maxPayload: 100 });
    const attachment = attach();
    await attachment.opened;
    const [bad, good] = [await connect(`${url()}/in`), await connect(`${url()}/in`)];
    bad.socket.send(`"${'x'.repeat(100)}"`);
    assert.equal((await bad.closed)[0], 1009);
    good.socket.send('{"n":1}');
    await until(() => kept.rows.length === 1);
    await attachment.detach();
  });

  it('stops reading while a rule has no room, and loses nothing', async () => {
    const { attach, url, kept } = open();
    const attachment = attach();
    await attachment.opened;
    const { socket } = await connect(`${url()}/in`);
    attachment.setFull(true);
    for (let n = 0; n < 100; n++) socket.send(`{"n":${n}}`);
    await until(() => kept.rows.length === 1);
    for (let turn = 0; turn < 20; turn++) await settled();
    assert.equal(kept.rows.length, 1);
    attachment.setFull(false);
    await until(() => kept.rows.length === 100);
    assert.deepEqual(kept.values.at(-1), { n: 99 });
    await attachment.detach();
  });

  it('disconnects a client that does not read, and continues with others', async () => {
    const { url, sinkAt } = open({ maxBuffered: 100_000 });
    const { emitter, logged } = await sinkAt('/out', { sendSingle: true });
    const [slow, good] = [await connect(`${url()}/out`), await connect(`${url()}/out`)];
    slow.socket.pause();
    const row = { text: 'x'.repeat(90_000) };
    let count = 0;
    while (logged.length === 0) {
      await emitter.push([row]);
      count++;
      await until(() => good.got.length === count);
    }
    assert.match(logged[0], /^WebSocket \/out: a client does not read, and more than 100000 bytes are queued for it/);
    slow.socket.resume();
    await slow.closed;
    await emitter.push([row]);
    await until(() => good.got.length === count + 1);
    await emitter.close();
  });

  it('disconnects a client that does not answer pings', async () => {
    const { url, sinkAt, clock } = open({ pingInterval: '10s' });
    const { emitter } = await sinkAt('/out');
    const good = await connect(`${url()}/out`);
    const mute = await connect(`${url()}/out`, { autoPong: false });
    const pinged = Promise.all([once(good.socket, 'ping'), once(mute.socket, 'ping')]);
    clock.advance(10_000);
    await pinged;
    const again = once(good.socket, 'ping');
    for (let turn = 0; turn < 20; turn++) await settled(); // the pong arrives
    clock.advance(10_000);
    await mute.closed;
    await again;
    await emitter.close();
    assert.equal(clock.pending, 0);
  });

  it('names an invalid option', () => {
    assert.throws(() => webSockets({ maxPayload: 0 }), { code: 'OPTION_INVALID', message: /webSockets\.maxPayload/ });
    assert.throws(() => webSockets({ origin: '*' } as never), { code: 'OPTION_UNKNOWN' });
    assert.throws(() => new StreamsPort({ maxConnections: -1 }), {
      code: 'OPTION_INVALID',
      message: /StreamsPort\.maxConnections/
    });
  });
});

describe('the types websocket on the server of an app', () => {
  it('takes upgrade requests for its paths, and leaves other requests alone', async () => {
    const sockets = mountedWebSockets({ prefix: '/streams' });
    const broker = createBroker({ streams: { sources: [sockets.source], sinks: [sockets.sink] } });
    await broker.start();
    const server = createServer((_, response) => response.end('app'));
    server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 418 Teapot\r\n\r\n'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const detach = sockets.attach(server);
    const { port } = server.address() as AddressInfo;
    await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE="/in", TYPE="websocket", FORMAT="JSON")');
    const actions = [{ websocket: { path: '/out', sendSingle: true } }];
    await broker.streams.rules.create({ id: 'r', sql: 'SELECT n + 1 AS n FROM demo', actions });
    const [input, output] = [
      await connect(`ws://127.0.0.1:${port}/streams/in`),
      await connect(`ws://127.0.0.1:${port}/streams/out`)
    ];
    input.socket.send('{"n":1}');
    await until(() => output.got.length === 1);
    assert.deepEqual(output.got, ['{"n":2}']);
    assert.equal(await refusal(`ws://127.0.0.1:${port}/streams/other`), 418);
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/streams/in`)).text(), 'app');
    detach();
    assert.equal(await refusal(`ws://127.0.0.1:${port}/streams/in`), 418);
    await broker.stop();
    await Promise.all([input.closed, output.closed]);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('shows no token in the definition of a rule, and keeps it if a change contains the placeholder', async () => {
    const sockets = mountedWebSockets();
    const broker = createBroker({ streams: { sources: [sockets.source], sinks: [sockets.sink] } });
    await broker.start();
    const { streams } = broker;
    await streams.create('CREATE STREAM demo () WITH (DATASOURCE="t", FORMAT="JSON")');
    const actions = [{ websocket: { path: '/out', token: 'a-long-one' } }];
    const sql = 'SELECT n FROM demo';
    await streams.rules.create({ id: 'r', sql, actions });
    const shown = await streams.rules.get('r');
    assert.deepEqual(shown?.actions, [{ websocket: { path: '/out', token: '******' } }]);
    await streams.rules.update('r', { sql, actions: [{ websocket: { path: '/changed', token: '******' } }] });
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    sockets.attach(server);
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/changed`;
    assert.equal(await refusal(url), 401);
    await connect(url, { headers: { authorization: 'Bearer a-long-one' } });
    await broker.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('takes the requests that a host routes itself', async () => {
    const sockets = mountedWebSockets();
    const { hub } = makeHub([sockets.source]);
    const kept = new Kept();
    const attachment = hub.attach(stream({ TYPE: 'websocket', DATASOURCE: '/in' }), ALL, kept);
    await attachment.opened;
    const server = createServer();
    server.on('upgrade', (request, socket, head) => {
      if (!sockets.handleUpgrade(request, socket, head)) socket.destroy();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const { socket } = await connect(`ws://127.0.0.1:${port}/in`);
    socket.send('{"n":1}');
    await until(() => kept.rows.length === 1);
    await assert.rejects(connect(`ws://127.0.0.1:${port}/other`));
    await attachment.detach();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});

describe('the types websocket as clients of a server', () => {
  let server: Server;
  let sockets: WebSocketServer;
  let addr: string;

  beforeEach(async () => {
    server = createServer();
    sockets = new WebSocketServer({ server });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    addr = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    for (const client of sockets.clients) client.terminate();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  function attach(properties: Record<string, unknown> = {}, limits: WebSocketLimits = {}) {
    const sourceConfig = { websocket: { default: { addr, ...properties } } };
    const fixture = makeHub([webSockets(limits).source], { sourceConfig });
    const kept = new Kept();
    const attachment = fixture.hub.attach(stream({ TYPE: 'websocket', DATASOURCE: '/feed?x=1' }), ALL, kept);
    return { ...fixture, kept, attachment };
  }

  it('emits the messages of the server as rows, and reconnects when the connection is lost', async () => {
    const requests: (string | undefined)[] = [];
    sockets.on('connection', (socket, { url, headers }) => {
      requests.push(`${url} ${headers['x-key']}`);
      socket.send(`{"n":${requests.length}}`);
    });
    const { kept, attachment, clock } = attach({ headers: { 'X-Key': 'k' } });
    await until(() => kept.rows.length === 1);
    assert.equal(attachment.connection.status, 1);
    assert.equal(kept.rows[0].meta('url'), `${addr}/feed`);
    for (const client of sockets.clients) client.close(4000, 'maintenance');
    await until(() => attachment.connection.status !== 1);
    assert.match(attachment.connection.disconnectedMessage, /closed by the other side with code 4000: maintenance/);
    clock.advance(1100);
    await until(() => kept.rows.length === 2);
    assert.deepEqual(requests, ['/feed?x=1 k', '/feed?x=1 k']);
    await attachment.detach();
    assert.equal(clock.pending, 0);
  });

  it('sends its token to the server, and refuses it among the headers', async () => {
    const asked: (string | undefined)[] = [];
    sockets.on('connection', (_, { headers }) => asked.push(headers.authorization));
    const { attachment } = attach({ token: 'a-long-one' });
    await until(() => asked.length === 1);
    assert.deepEqual(asked, ['Bearer a-long-one']);
    await attachment.detach();
    const both = attach({ token: 'a-long-one', headers: { authorization: 'Basic YTpi' } });
    await assert.rejects(both.attachment.opened, ({ code, message }) => {
      assert.equal(code, 'PROPERTY_INVALID');
      return message.includes('headers has "Authorization"') && !message.includes('long');
    });
  });

  it('shows why there is no connection: a refusal, no server, no answer, no pong', async () => {
    server.removeAllListeners('upgrade');
    server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n'));
    const refused = attach();
    await until(() => refused.attachment.connection.status === -1);
    assert.match(refused.attachment.connection.disconnectedMessage, /401/);
    await refused.attachment.detach();

    const none = attach({ addr: '127.0.0.1:1' });
    await until(() => none.attachment.connection.status === -1);
    assert.match(none.attachment.connection.disconnectedMessage, /ECONNREFUSED/);
    await none.attachment.detach();

    server.removeAllListeners('upgrade');
    const asked: Duplex[] = [];
    server.on('upgrade', (_, socket) => asked.push(socket));
    const mute = attach({}, { handshakeTimeout: 50 });
    await until(() => asked.length === 1);
    mute.clock.advance(50);
    await until(() => mute.attachment.connection.status === -1);
    assert.match(mute.attachment.connection.disconnectedMessage, /within 50 ms/);
    await mute.attachment.detach();
    assert.equal(mute.clock.pending, 0);
    asked[0].destroy();
  });

  it('sends outputs to the server, and fails without a connection', async () => {
    const got: string[] = [];
    sockets.on('connection', (socket, { url }) => socket.on('message', (data) => got.push(`${url} ${data}`)));
    const { sink } = webSockets();
    const { emitter } = await openSink(sink, { addr, path: 'in', sendSingle: true }, { clock: systemClock });
    await assert.rejects(
      async () => emitter.push([{ n: 0 }]),
      /no connection to 127\.0\.0\.1:\d+: it is being established/
    );
    await until(() => emitter.connection?.status === 1);
    await emitter.push([{ n: 1 }, { n: 2 }]);
    await until(() => got.length === 2);
    assert.deepEqual(got, ['/in {"n":1}', '/in {"n":2}']);
    for (const client of sockets.clients) client.close(1013, 'try again later');
    await until(() => emitter.connection?.status === -1);
    await assert.rejects(async () => emitter.push([{}]), /code 1013: try again later/);
    await emitter.close();
  });

  it('verifies the certificate of a server', async () => {
    using certificates = makeCertificates();
    const { cert, key } = certificates.server;
    const secure = createSecureServer({ cert, key });
    new WebSocketServer({ server: secure }).on('connection', (socket) => socket.send('{"n":1}'));
    await once(secure.listen(0, '127.0.0.1'), 'listening');
    const host = `127.0.0.1:${(secure.address() as AddressInfo).port}`;
    const stranger = attach({ addr: `wss://${host}` });
    await until(() => stranger.attachment.connection.status === -1);
    assert.match(
      stranger.attachment.connection.disconnectedMessage,
      /certificate.*; name the file of its authorities in the property rootCaPath$/
    );
    const trusting = attach({ addr: host, rootCaPath: certificates.ca.certFile });
    await until(() => trusting.kept.rows.length === 1);
    await Promise.all([stranger.attachment.detach(), trusting.attachment.detach()]);
    secure.closeAllConnections();
    await new Promise((resolve) => secure.close(resolve));
  });

  it('refuses addresses that are not URLs of a WebSocket, without showing passwords', async () => {
    for (const wrong of ['http://host', 'ws://user:secret@host', 'ws://'])
      await assert.rejects(attach({ addr: wrong }).attachment.opened, ({ code, message }) => {
        assert.equal(code, 'PROPERTY_INVALID');
        return !message.includes('secret');
      });
    await assert.rejects(
      attach({ rootCaPath: 'nowhere.pem' }).attachment.opened,
      /rootCaPath: nowhere.pem: no such file/
    );
  });
});
