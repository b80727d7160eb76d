import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { attachWebSocket, type Listener, listen, tls, upgradeHandler, ws, wss } from '../../adapters/net/index.ts';
import type { ListenerHandle } from '../../lib/adapter.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { connect } from '../support/wire.ts';
import { closed, turnsUntil, UPGRADE } from './stub-broker.ts';

/** Far longer than a TLS or WebSocket handshake takes. */
const MANY_TURNS = 300;

let broker: Broker;
let certificates: Certificates;
let http: Server;
let slow: SlowListener;
const sockets: Socket[] = [];

/** A listener that the test opens. */
class SlowListener implements ListenerHandle {
  readonly name = 'slow';
  readonly protocol = 'mqtt:tcp';
  readonly address = undefined;
  succeed: () => void = () => undefined;
  fail: (error: Error) => void = () => undefined;
  readonly #opened = new Promise<void>((resolve, reject) => {
    this.succeed = resolve;
    this.fail = reject;
  });

  open(): Promise<void> {
    return this.#opened;
  }

  async close(): Promise<void> {}

  info() {
    return { acceptors: 1, maxConnections: 0, currentConnections: 0, shutdownCount: {} };
  }
}

before(() => {
  certificates = makeCertificates();
});

after(() => certificates[Symbol.dispose]());

beforeEach(() => {
  broker = createBroker({ allowAnonymous: true });
  http = createServer();
  slow = new SlowListener();
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  http.close();
  slow.succeed(); // a stop waits for the start
  await broker.stop({ timeoutMs: 0 });
});

async function httpPort(): Promise<number> {
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return (http.address() as { port: number }).port;
}

interface Way {
  readonly isSecure?: boolean;
  readonly isFramed?: boolean;
  /** @returns the listener, and the port that is open already because it is not the listener's own */
  readonly open: () => Promise<{ readonly listener: Listener; readonly port?: number }>;
}

const WAYS: Readonly<Record<string, Way>> = {
  TCP: { open: async () => ({ listener: await listen(broker, 0) }) },
  'TCP behind a PROXY header': {
    open: async () => ({
      listener: await listen(broker, { port: 0, proxyProtocol: true, trustedProxies: ['127.0.0.1'] })
    })
  },
  TLS: {
    isSecure: true,
    open: async () => ({ listener: await listen(broker, tls({ port: 0, ...certificates.server })) })
  },
  WebSocket: { isFramed: true, open: async () => ({ listener: await listen(broker, ws({ port: 0 })) }) },
  'WebSocket over TLS': {
    isSecure: true,
    isFramed: true,
    open: async () => ({ listener: await listen(broker, wss({ port: 0, ...certificates.server })) })
  },
  attachWebSocket: {
    isFramed: true,
    open: async () => {
      const port = await httpPort();
      return { listener: await attachWebSocket(broker, http), port };
    }
  },
  upgradeHandler: {
    isFramed: true,
    open: async () => {
      const handler = upgradeHandler(broker);
      http.on('upgrade', handler.handleUpgrade);
      return { listener: handler, port: await httpPort() };
    }
  }
};

/** Connects a client that sends all it can without an answer. @returns its socket, and how many bytes were received below TLS */
function dial(port: number, name: string, { isSecure = false, isFramed = false }: Way): [Socket, () => number] {
  const raw = connectTcp(port, '127.0.0.1');
  const socket = isSecure ? connectTls({ socket: raw, ca: certificates.ca.cert }) : raw;
  for (const each of [raw, socket]) each.on('error', () => undefined);
  sockets.push(raw);
  const packet = encode(connect(4), 4);
  if (name.includes('PROXY')) socket.write('PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n');
  if (isFramed) {
    socket.write(UPGRADE);
    socket.write(Buffer.concat([Buffer.from([0x82, 0x80 | packet.length, 0, 0, 0, 0]), packet]));
  } else socket.write(packet);
  return [socket, () => raw.bytesRead];
}

/** Starts a broker whose start waits for its last listener, with a client connected to another one. */
async function waiting(name: string, way: Way) {
  const { listener, port } = await way.open();
  broker.attach(slow);
  const started = broker.start();
  started.catch(() => undefined);
  await turnsUntil(() => port !== undefined || listener.port !== undefined);
  const [socket, bytesRead] = dial(port ?? (listener.port as number), name, way);
  await turnsUntil(() => listener.info().currentConnections === 1);
  await turnsUntil(turnCounter(MANY_TURNS));
  return { started, socket, bytesRead };
}

function turnCounter(count: number): () => boolean {
  return () => count-- === 0;
}

describe('the listeners of a starting broker', () => {
  for (const [name, way] of Object.entries(WAYS)) {
    it(`answers a client of ${name} only after all listeners are open`, async () => {
      const { started, socket, bytesRead } = await waiting(name, way);
      assert.equal(bytesRead(), 0);
      const connected = broker.nextEvent('client.connected');
      slow.succeed();
      await started;
      await connected;
      assert.ok(!socket.destroyed);
    });

    it(`closes the connection of a client of ${name} unanswered if another listener fails to open`, async () => {
      const { started, socket, bytesRead } = await waiting(name, way);
      const gone = closed(socket);
      slow.fail(new Error('no such address'));
      await assert.rejects(started, /no such address/);
      await gone;
      assert.equal(bytesRead(), 0);
    });
  }

  it('accepts as soon as they are open if the broker is already started', async () => {
    await broker.start();
    const listener = await listen(broker, 0);
    const connected = broker.nextEvent('client.connected');
    dial(listener.port as number, 'TCP', WAYS.TCP);
    await connected;
  });

  it('waits for all listeners at each start', async () => {
    const listener = listen(broker, 0);
    for (let life = 0; life < 2; life++) {
      await broker.start();
      const connected = broker.nextEvent('client.connected');
      dial(listener.port as number, 'TCP', WAYS.TCP);
      await connected;
      await broker.stop({ timeoutMs: 0 });
    }
  });
});
