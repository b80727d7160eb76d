import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { WebSocket, WebSocketServer } from 'ws';
import { attachWebSocket, type Listener, listen, type WsOptions, ws } from '../../adapters/net/index.ts';
import type { GatheringStream } from '../../lib/adapter.ts';
import { type BrokerError, ConnectionRefused, createBroker, ReasonCode } from '../../lib/index.ts';
import { closed, readBytes, StubBroker, turnsUntil, watchSocketOptions } from './stub-broker.ts';

let broker: StubBroker;
const clients: WebSocket[] = [];
const sockets: Socket[] = [];
const servers: Server[] = [];

interface Dial {
  readonly path?: string;
  readonly protocols?: string[];
  readonly origin?: string;
  readonly perMessageDeflate?: boolean;
}

function dial(
  port: number | undefined,
  { path = '/mqtt', protocols = ['mqtt'], origin, perMessageDeflate = false }: Dial = {}
): WebSocket {
  const client = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, { origin, perMessageDeflate });
  client.on('error', () => {});
  clients.push(client);
  return client;
}

/** Returns the status with which an upgrade is refused. */
async function refusal(client: WebSocket): Promise<number> {
  const [, response] = await once(client, 'unexpected-response');
  return response.statusCode;
}

async function open(options: Partial<WsOptions> = {}): Promise<Listener> {
  return await listen(broker, ws({ port: 0, ...options }));
}

async function pair(
  options: Partial<WsOptions> = {}
): Promise<{ client: WebSocket; stream: Duplex; listener: Listener }> {
  const listener = await open(options);
  const client = dial(listener.port);
  const [{ stream }] = await Promise.all([broker.next(), once(client, 'open')]);
  return { client, stream, listener };
}

/** Connects a raw client that upgrades and then sends arbitrary bytes. */
async function rawPair(
  options: Partial<WsOptions> = {}
): Promise<{ socket: Socket; stream: Duplex; listener: Listener }> {
  const listener = await open(options);
  const socket = connect(listener.port as number, '127.0.0.1');
  socket.on('error', () => {});
  sockets.push(socket);
  socket.write(UPGRADE);
  const { stream } = await broker.next();
  let head = '';
  while (!head.endsWith('\r\n\r\n')) head += (await readBytes(socket, 1)).toString('latin1');
  return { socket, stream, listener };
}

const UPGRADE = [
  'GET /mqtt HTTP/1.1',
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Protocol: mqtt',
  '',
  ''
].join('\r\n');

/** Builds the frame of a client, masked with zeros. */
function frame(opcode: number, payload: Buffer, isFinal = true): Buffer {
  return Buffer.concat([Buffer.from([(isFinal ? 0x80 : 0) | opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}

async function httpServer(): Promise<{ server: Server; port: number }> {
  const server = createServer((_request, response) => response.end('the app'));
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as { port: number }).port };
}

beforeEach(() => {
  broker = new StubBroker();
});

afterEach(async () => {
  mock.restoreAll();
  for (const client of clients.splice(0)) client.terminate();
  for (const socket of sockets.splice(0)) socket.destroy();
  await broker.stop();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

describe('a WebSocket without an accepted CONNECT', () => {
  const masked = (head: number, payload: Buffer) =>
    Buffer.concat([Buffer.from([head, 0xfe, payload.length >> 8, payload.length & 255, 0, 0, 0, 0]), payload]);

  /** Returns the code of the next close frame. */
  async function closeCode(socket: Socket): Promise<number> {
    const head = await readBytes(socket, 4);
    assert.equal(head[0], 0x88);
    return head.readUInt16BE(2);
  }

  beforeEach(() => {
    broker.admits = false;
  });

  it('closes with 1009 once its fragments take more memory than maxConnectSize', async () => {
    broker.zone = () => ({ ...new StubBroker().zone(), maxPacketSize: 1_048_576, maxConnectSize: 10_000 });
    const { socket, stream } = await rawPair();
    const failed = once(stream, 'error');
    stream.resume();
    socket.write(masked(2, Buffer.alloc(5_000)));
    socket.write(masked(0, Buffer.alloc(6_000)));
    assert.equal(await closeCode(socket), 1009);
    const [error] = await failed;
    assert.equal(error.reasonCode, ReasonCode.packetTooLarge);
    assert.match(error.message, /maxConnectSize/);
  });

  it('ignores a small CONNECT at the start of a refused message', async () => {
    broker.zone = () => ({ ...new StubBroker().zone(), maxPacketSize: 1_048_576, maxConnectSize: 10_000 });
    const { socket, stream } = await rawPair();
    const read: Buffer[] = [];
    stream.on('error', () => {}).on('data', (chunk) => read.push(chunk));
    const shortest = Buffer.from([0x10, 12, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 2, 0, 60, 0, 0]);
    const message = masked(0x82, Buffer.concat([shortest, Buffer.alloc(12_000)]));
    socket.write(message.subarray(0, 11_000)); // the rest is not sent
    assert.equal(await closeCode(socket), 1009);
    assert.deepEqual(Buffer.concat(read), shortest.subarray(0, 13));
  });

  it('closes with 1009 for fragments of one byte long before their bytes reach maxConnectSize', async () => {
    const { socket, stream } = await rawPair();
    stream.on('error', () => {}).resume();
    const fragments = Array.from({ length: 2_000 }, (_, at) => frame(at === 0 ? 2 : 0, Buffer.alloc(1), false));
    assert.ok(Buffer.concat(fragments).length < 20_000);
    socket.write(Buffer.concat(fragments));
    assert.equal(await closeCode(socket), 1009);
  });

  it('reads up to maxConnectSize behind its CONNECT, and further once that is accepted', async () => {
    const { socket, stream } = await rawPair();
    let received = 0;
    stream.on('data', (chunk: Buffer) => {
      if (received === 0) (stream as GatheringStream).packetTaken?.();
      received += chunk.length;
    });
    socket.write(frame(2, Buffer.alloc(100)));
    await turnsUntil(() => received > 0);
    // more than the buffers of both sockets can hold
    const messages = Array.from({ length: 600 }, () => masked(0x82, Buffer.alloc(60_000)));
    socket.write(Buffer.concat(messages));
    await turnsUntil(() => received > 60_000);
    for (let turn = 0; turn < 1_000; turn++) await new Promise(setImmediate);
    assert.ok(received < 400_000, `${received} bytes were read`);
    assert.ok(socket.writableLength > 0, 'the rest stays in the network');
    (stream as GatheringStream).admitted?.();
    await turnsUntil(() => received === 100 + 600 * 60_000);
  });

  it('answers with CONNACK 0x95 if the CONNECT has a length above maxConnectSize', async () => {
    const real = createBroker();
    await real.start();
    try {
      const listener = await listen(real, ws({ port: 0 }));
      const socket = connect(listener.port as number, '127.0.0.1');
      sockets.push(socket);
      socket.write(UPGRADE);
      let head = '';
      while (!head.endsWith('\r\n\r\n')) head += (await readBytes(socket, 1)).toString('latin1');
      const packet = Buffer.concat([Buffer.from('10f0a20400044d51545405', 'hex'), Buffer.alloc(69_989)]);
      const frame = Buffer.alloc(14 + packet.length);
      frame.set([0x82, 0xff]);
      frame.writeUIntBE(packet.length, 4, 6);
      frame.set([1, 2, 3, 4], 10);
      for (let at = 0; at < packet.length; at++) frame[14 + at] = packet[at] ^ (1 + (at & 3));
      socket.write(frame);
      const [, length] = await readBytes(socket, 2);
      const answer = await readBytes(socket, length);
      assert.deepEqual([answer[0], answer[3]], [0x20, 0x95]);
    } finally {
      await real.stop({ timeoutMs: 0 });
    }
  });
});

describe('a WebSocket listener', () => {
  it('hands over a stream with the addresses and the headers of the upgrade', async () => {
    const listener = await open();
    assert.equal(listener.name, 'ws:0');
    assert.equal(listener.protocol, 'mqtt:ws');
    dial(listener.port, { path: '/mqtt?token=x', origin: 'http://localhost:5173' });
    const { meta } = await broker.next();
    assert.equal(meta.transport, 'ws');
    assert.equal(meta.listener, listener.name);
    assert.equal(meta.remoteAddress, '127.0.0.1');
    assert.equal(meta.localPort, listener.port);
    assert.equal(meta.headers?.origin, 'http://localhost:5173');
    assert.equal(listener.info().currentConnections, 1);
  });

  it('carries bytes both ways in binary frames [MQTT-6.0.0-1]', async () => {
    const { client, stream } = await pair();
    client.send(Buffer.from('there'));
    assert.equal((await readBytes(stream, 5)).toString(), 'there');
    const message = once(client, 'message');
    stream.write('back');
    assert.deepEqual(await message, [Buffer.from('back'), true]);
  });

  it('closes with 1003 after a text frame [MQTT-6.0.0-1]', async () => {
    const { client, stream } = await pair();
    const ended = closed(stream);
    client.send('text');
    const [code] = await once(client, 'close');
    assert.equal(code, 1003);
    await ended;
  });

  it('reads packets split over frames and frames with several packets as one stream [MQTT-6.0.0-2]', async () => {
    const { client, stream } = await pair();
    for (const part of ['a', 'bc', '', 'defg']) client.send(Buffer.from(part));
    assert.equal((await readBytes(stream, 7)).toString(), 'abcdefg');
  });

  it('reads frames that arrive byte by byte, in fragments, with a ping between them', async () => {
    const { socket, stream } = await rawPair();
    const bytes = Buffer.concat([
      frame(2, Buffer.from('ab'), false),
      frame(9, Buffer.from('!')),
      frame(0, Buffer.from('cd'))
    ]);
    for (const byte of bytes) socket.write(Buffer.from([byte]));
    assert.equal((await readBytes(stream, 4)).toString(), 'abcd');
    assert.deepEqual(await readBytes(socket, 3), Buffer.from([0x8a, 1, 0x21]), 'the ping is answered');
  });

  it('reads bytes that arrive in the same segment as the upgrade', async () => {
    const listener = await open();
    const socket = connect(listener.port as number, '127.0.0.1');
    sockets.push(socket);
    socket.write(Buffer.concat([Buffer.from(UPGRADE), frame(2, Buffer.from('early'))]));
    const { stream } = await broker.next();
    assert.equal((await readBytes(stream, 5)).toString(), 'early');
  });

  it('prefers mqtt to mqttv3.1.1 to mqttv3.1, in any order of the offers [MQTT-6.0.0-4]', async () => {
    const listener = await open();
    for (const [offered, chosen] of [
      [['mqttv3.1', 'mqttv3.1.1', 'mqtt'], 'mqtt'],
      [['other', 'mqttv3.1', 'mqttv3.1.1'], 'mqttv3.1.1'],
      [['mqttv3.1'], 'mqttv3.1']
    ] as const) {
      const client = dial(listener.port, { protocols: [...offered] });
      await once(client, 'open');
      assert.equal(client.protocol, chosen);
    }
  });

  it('reports the address of a refused upgrade with the reason, and no request of another kind', async () => {
    const listener = await open();
    const why = async (path: string, protocols: string[], origin?: string) => {
      const reported = broker.reported();
      const client = new WebSocket(`ws://127.0.0.1:${listener.port}${path}`, protocols, { origin });
      client.on('error', () => {});
      await reported;
      const { error } = broker.reports.at(-1) as { error: Error };
      assert.ok(error instanceof ConnectionRefused);
      assert.deepEqual([error.reason, error.address], ['upgrade_refused', '127.0.0.1']);
      return error.message;
    };
    const refused = 'the WebSocket upgrade is refused:';
    assert.equal(
      await why('/other?token=secret', ['mqtt']),
      `${refused} the path is "/other", not "/mqtt" (option path)`
    );
    assert.equal(
      await why('/mqtt', ['mqtt'], 'https://evil.example'),
      `${refused} the origin "https://evil.example" is not allowed (option origins)`
    );
    assert.equal(
      await why('/mqtt', ['chat']),
      `${refused} the client does not offer the subprotocol "mqtt" (option requireSubprotocol)`
    );
    assert.equal((await fetch(`http://127.0.0.1:${listener.port}/mqtt`)).status, 426);
    assert.equal(broker.reports.length, 3);
  });

  it('refuses a client without an MQTT subprotocol [MQTT-6.0.0-3], unless requireSubprotocol is false', async () => {
    const strict = await open();
    assert.equal(await refusal(dial(strict.port, { protocols: [] })), 400);
    assert.equal(await refusal(dial(strict.port, { protocols: ['chat'] })), 400);
    assert.deepEqual(strict.info().shutdownCount, { upgrade_refused: 2 });
    const lax = await open({ requireSubprotocol: false });
    const client = dial(lax.port, { protocols: [] });
    await once(client, 'open');
    assert.equal(client.protocol, '');
  });

  it('accepts requests for its path only', async () => {
    const listener = await open({ path: '/devices' });
    assert.equal(await refusal(dial(listener.port)), 404);
    await once(dial(listener.port, { path: '/devices' }), 'open');
  });

  it('refuses a path that no request could have', () => {
    for (const path of ['mqtt', '', '/a b', '/a?b', '/a#b', '//host/a', '/a/../b', '/ä']) {
      assert.throws(() => ws({ port: 0, path }), { code: 'OPTION_INVALID', field: 'ws listener.path' });
      assert.throws(() => attachWebSocket(broker, createServer(), { path }), {
        code: 'OPTION_INVALID',
        message: /expected the path of a URL, such as "\/mqtt"/
      });
    }
    assert.equal(ws({ port: 0, path: '/a/%C3%A4' }).webSocket?.path, '/a/%C3%A4');
  });

  it('answers a plain HTTP request with 426', async () => {
    const listener = await open();
    const [response] = await once(get({ port: listener.port, host: '127.0.0.1', path: '/mqtt' }), 'response');
    assert.equal(response.statusCode, 426);
    assert.equal(response.headers.upgrade, 'websocket');
    response.resume();
  });

  it('refuses an upgrade that violates RFC 6455', async () => {
    const listener = await open();
    const socket = connect(listener.port as number, '127.0.0.1');
    sockets.push(socket);
    socket.write(UPGRADE.replace('Version: 13', 'Version: 7'));
    assert.match((await readBytes(socket, 12)).toString(), /HTTP\/1\.1 4/);
    socket.resume();
    await closed(socket);
    assert.deepEqual(broker.taken, []);
  });

  it('closes a connection that does not complete its upgrade in time', async () => {
    const listener = await open({ handshakeTimeout: 20 });
    const socket = connect(listener.port as number, '127.0.0.1');
    sockets.push(socket);
    socket.write(UPGRADE.slice(0, 40));
    await closed(socket);
    assert.deepEqual(listener.info().shutdownCount, { handshake_timeout: 1 });
    await turnsUntil(() => listener.info().currentConnections === 0);
  });

  it('applies back pressure by write and writableLength, and drains once the client reads again', async () => {
    const { client, stream } = await pair();
    let received = 0;
    client.on('message', (data: Buffer) => {
      received += data.length;
    });
    client.pause();
    const chunk = Buffer.alloc(65_536, 1);
    let sent = 0;
    // the buffers of the kernel take some megabytes first, during these turns
    while (stream.writableLength < 1_000_000) {
      assert.equal(stream.write(chunk), false);
      sent += chunk.length;
      await new Promise(setImmediate);
    }
    const drained = once(stream, 'drain');
    client.resume();
    await drained;
    stream.end();
    const [code] = await once(client, 'close');
    assert.equal(code, 1000);
    assert.equal(received, sent);
  });

  it('stops reading from the socket while the stream is paused', async () => {
    const { client, stream } = await pair();
    const chunk = Buffer.alloc(65_536, 1);
    let sent = 0;
    // the stream is not read, so in the end the buffer of the client fills
    while (client.bufferedAmount < 1_000_000) {
      assert.equal(client.readyState, WebSocket.OPEN);
      client.send(chunk);
      sent += chunk.length;
      await new Promise(setImmediate);
    }
    assert.ok(stream.readableLength < 400_000, `${stream.readableLength} bytes are in memory`);
    let received = 0;
    const all = new Promise<void>((resolve) => {
      stream.on('data', (data: Buffer) => {
        received += data.length;
        if (received === sent) resolve();
      });
    });
    await all;
  });

  it('joins small writes of one turn into one frame and splits large ones', async () => {
    const { client, stream } = await pair();
    const lengths: number[] = [];
    const all = new Promise<void>((resolve) => {
      let received = 0;
      client.on('message', (data: Buffer) => {
        lengths.push(data.length);
        received += data.length;
        if (received === 8 + 200_000) resolve();
      });
    });
    stream.cork();
    for (const text of ['ab', 'cd', 'ef', 'gh']) stream.write(text);
    stream.write(Buffer.alloc(200_000));
    stream.uncork();
    await all;
    assert.deepEqual(lengths, [8, 200_000]);
  });

  it('sends all data written before the end, and then closes with 1000', async () => {
    const { client, stream } = await pair();
    const message = once(client, 'message');
    const gone = once(client, 'close');
    stream.end('bye');
    assert.equal(String((await message)[0]), 'bye');
    assert.equal((await gone)[0], 1000);
  });

  it('ends the stream when the client closes, and when it vanishes', async () => {
    for (const leave of [(client: WebSocket) => client.close(), (client: WebSocket) => client.terminate()]) {
      const { client, stream, listener } = await pair();
      stream.resume();
      const gone = closed(stream);
      leave(client);
      await gone;
      await turnsUntil(() => listener.info().currentConnections === 0);
    }
  });

  it('closes the connection when the stream is destroyed', async () => {
    const { client, stream } = await pair();
    const gone = once(client, 'close');
    stream.destroy();
    assert.equal((await gone)[0], 1006);
  });

  it('refuses a message past maxPayload with 1009, and an unmasked frame with 1002', async () => {
    const { client, stream } = await pair({ maxPayload: 100 });
    const gone = closed(stream);
    client.send(Buffer.alloc(101));
    assert.equal((await once(client, 'close'))[0], 1009);
    await gone;
    const raw = await rawPair();
    const rawGone = closed(raw.stream);
    raw.socket.write(Buffer.from([0x82, 1, 0x30]));
    assert.deepEqual(await readBytes(raw.socket, 4), Buffer.from([0x88, 2, 0x03, 0xea]));
    await rawGone;
  });

  it('accepts messages of several packets of maxPacketSize', async () => {
    broker.zone = () => ({ ...new StubBroker().zone(), maxPacketSize: 50, maxConnectSize: 65_536 });
    const { client, stream } = await pair();
    client.send(Buffer.alloc(200));
    await readBytes(stream, 200);
    stream.resume();
    client.send(Buffer.alloc(201));
    assert.equal((await once(client, 'close'))[0], 1009);
  });

  it('closes a connection that floods it with pings, instead of queueing the answers', async () => {
    const { socket, stream } = await rawPair();
    stream.resume();
    const gone = closed(stream);
    socket.write(Buffer.concat(Array.from({ length: 4000 }, () => frame(9, Buffer.alloc(125)))));
    await gone;
  });

  it('compresses both ways with perMessageDeflate for a client that offers it', async () => {
    const server = await httpServer();
    for (const [listener, isCompressed] of [
      [await open(), false],
      [await open({ perMessageDeflate: true }), true],
      [await attachWebSocket(broker, server.server, { perMessageDeflate: true }), true]
    ] as const) {
      const client = dial(listener.port, { perMessageDeflate: true });
      const [{ stream }, [response]] = await Promise.all([
        broker.next(),
        once(client, 'upgrade'),
        once(client, 'open')
      ]);
      assert.equal(client.extensions, isCompressed ? 'permessage-deflate' : '');
      const payload = Buffer.alloc(100_000, 'sensor');
      const message = once(client, 'message');
      stream.write(payload);
      assert.deepEqual((await message)[0], payload);
      client.send(payload);
      assert.deepEqual(await readBytes(stream, payload.length), payload);
      const { bytesRead, bytesWritten } = response.socket as Socket;
      assert.equal(bytesRead < 10_000 && bytesWritten < 10_000, isCompressed, `${bytesRead} and ${bytesWritten} bytes`);
    }
  });

  it('serves a client without compression even with perMessageDeflate', async () => {
    const { client, stream } = await pair({ perMessageDeflate: true });
    assert.equal(client.extensions, '');
    const message = once(client, 'message');
    stream.write(Buffer.alloc(2000));
    assert.deepEqual((await message)[0], Buffer.alloc(2000));
  });

  it('refuses a message with 1009 if it exceeds maxPayload when decompressed', async () => {
    const listener = await open({ perMessageDeflate: true, maxPayload: 10_000 });
    const client = dial(listener.port, { perMessageDeflate: true });
    const [{ stream }] = await Promise.all([broker.next(), once(client, 'open')]);
    const gone = closed(stream);
    client.send(Buffer.alloc(1_000_000));
    assert.equal((await once(client, 'close'))[0], 1009);
    await gone;
  });

  it('sends small packets at once, unless noDelay is false', async () => {
    const optionsOf = watchSocketOptions();
    for (const noDelay of [undefined, true, false]) {
      const { stream } = await pair({ noDelay });
      assert.equal(optionsOf(stream).noDelay, noDelay ?? true);
    }
  });

  it('sends pings at pingInterval, and closes a connection that sends nothing', async () => {
    const timers: (() => void)[] = [];
    const clock = {
      now: () => 0,
      monotonic: () => 0,
      setTimeout: (run: () => void, delayMs: number) => (delayMs === 30_000 ? timers.push(run) : undefined),
      clearTimeout: () => {}
    };
    broker.clock = clock;
    const { client } = await pair({ pingInterval: '30s' });
    const silent = await rawPair({ pingInterval: '30s' });
    assert.equal(timers.length, 2);
    const pinged = once(client, 'ping');
    timers.shift()?.();
    timers.shift()?.();
    await pinged;
    assert.deepEqual(await readBytes(silent.socket, 2), Buffer.from([0x89, 0]));
    const gone = closed(silent.stream);
    client.send(Buffer.from('x')); // counts as alive, like a pong
    await readBytes(broker.taken[0].stream, 1);
    for (const tick of timers.splice(0)) tick();
    await gone;
    assert.equal(client.readyState, WebSocket.OPEN);
    assert.equal(timers.length, 1, 'a listener without connections has no timer');
  });

  it('does not close a connection for missing pongs while the broker does not read from it', async () => {
    const timers: (() => void)[] = [];
    broker.clock = {
      now: () => 0,
      monotonic: () => 0,
      setTimeout: (run: () => void, delayMs: number) => (delayMs === 30_000 ? timers.push(run) : undefined),
      clearTimeout: () => {}
    };
    const { client, stream } = await pair({ pingInterval: '30s' });
    stream.pause();
    for (let sent = 0; sent < 64; sent++) client.send(Buffer.alloc(1_024));
    await turnsUntil(() => stream.readableLength >= stream.readableHighWaterMark);
    for (let pings = 0; pings < 3; pings++) for (const tick of timers.splice(0)) tick();
    assert.equal(stream.destroyed, false);
    stream.resume();
    await turnsUntil(() => stream.readableLength === 0);
    for (let pings = 0; pings < 2; pings++) for (const tick of timers.splice(0)) tick();
    assert.equal(stream.destroyed, true, 'it is read again and has sent nothing since the last ping');
  });
});

describe('a WebSocket attached to an HTTP server', () => {
  it('serves its path, and leaves other requests and upgrades to the app', async () => {
    const { server, port } = await httpServer();
    const app = new WebSocketServer({ noServer: true });
    server.on('upgrade', (request, socket, head) => {
      if (request.url === '/app') app.handleUpgrade(request, socket, head, (client) => client.send('from the app'));
    });
    const listener = await attachWebSocket(broker, server, { path: '/mqtt' });
    assert.equal(listener.name, 'ws:/mqtt');
    assert.equal(listener.port, port);

    const client = dial(port);
    const { stream, meta } = await broker.next();
    assert.equal(meta.transport, 'ws');
    assert.equal(meta.localPort, port);
    await once(client, 'open');
    client.send(Buffer.from('x'));
    await readBytes(stream, 1);

    const [message] = await once(dial(port, { path: '/app', protocols: [] }), 'message');
    assert.equal(String(message), 'from the app');
    const response = await fetch(`http://127.0.0.1:${port}/`);
    assert.equal(await response.text(), 'the app');
  });

  it('refuses an object that is not an HTTP server, such as the app of a web framework', () => {
    const app = Object.assign(() => {}, { on: () => {}, listen: () => {} });
    for (const wrong of [app, {}, undefined]) {
      assert.throws(() => attachWebSocket(broker, wrong as never), { code: 'OPTION_INVALID', field: 'server' });
    }
  });

  it('leaves upgrades for other paths to the app, and answers them if the app has no listener', async () => {
    const { server, port } = await httpServer();
    await attachWebSocket(broker, server);
    assert.equal(await refusal(dial(port, { path: '/other' })), 404);
    const left = once(server, 'upgrade');
    server.on('upgrade', () => {});
    const client = dial(port, { path: '/other' });
    const [, socket] = await left;
    assert.equal(socket.destroyed, false);
    assert.equal(socket.bytesWritten, 0);
    client.terminate();
    assert.deepEqual(broker.taken, []);
  });

  it('leaves nothing on the server after close, and can be opened again', async () => {
    const { server, port } = await httpServer();
    const listener = await attachWebSocket(broker, server);
    assert.equal(server.listenerCount('upgrade'), 1);
    await listener.close();
    assert.equal(server.listenerCount('upgrade'), 0);
    await listener.open();
    await once(dial(port), 'open');
  });

  it('adds no listener to the server before the broker starts', async () => {
    broker.state = 'idle';
    const { server } = await httpServer();
    await attachWebSocket(broker, server);
    assert.equal(server.listenerCount('upgrade'), 0);
  });

  it('can serve several paths of one server, but not one path twice', async () => {
    const { server, port } = await httpServer();
    const one = await attachWebSocket(broker, server, { path: '/one', zone: 'internal' });
    await attachWebSocket(broker, server, { path: '/two' });
    assert.equal(server.listenerCount('upgrade'), 1);
    dial(port, { path: '/two' });
    assert.equal((await broker.next()).meta.listener, 'ws:/two');
    dial(port, { path: '/one' });
    assert.equal((await broker.next()).meta.zone, 'internal');
    await assert.rejects(
      async () => await attachWebSocket(broker, server, { path: '/one', name: 'again' }),
      (error: BrokerError) => error.code === 'LISTENER_BIND_FAILED' && error.message.includes('/one')
    );
    await one.close();
    await attachWebSocket(broker, server, { path: '/one', name: 'again' });
  });

  it('refuses connections past maxConnections', async () => {
    const { server, port } = await httpServer();
    const listener = await attachWebSocket(broker, server, { maxConnections: 1 });
    await once(dial(port), 'open');
    await new Promise((resolve) => dial(port).on('close', resolve));
    assert.deepEqual(listener.info(), {
      acceptors: 1,
      maxConnections: 1,
      currentConnections: 1,
      shutdownCount: { max_connections: 1 }
    });
  });
});
