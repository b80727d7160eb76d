import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createWebSocketStream, WebSocketServer } from 'ws';
import { type BridgeOptions, bridge } from '../../adapters/bridge/index.ts';
import { listen, tls, ws, wss } from '../../adapters/net/index.ts';
import { createBroker } from '../../lib/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { until } from '../support/until.ts';
import { Mosquitto, withMosquitto } from './mosquitto.ts';
import { connected, listener } from './pair.ts';

let certificates: Certificates;
before(() => {
  certificates = makeCertificates();
});
after(() => certificates[Symbol.dispose]());

/** Forwards one message over this transport. @returns the error of the bridge instead, if there is one */
async function forward(kind: 'mqtts' | 'ws' | 'wss', options: Partial<BridgeOptions> = {}): Promise<string> {
  const far = createBroker();
  const { cert, key } = certificates.server;
  const secure = { cert, key, ca: certificates.ca.cert, requestCert: true, rejectUnauthorized: true };
  const opened =
    kind === 'mqtts'
      ? listen(far, tls({ port: 0, ...secure }))
      : listen(far, kind === 'ws' ? ws({ port: 0 }) : wss({ port: 0, ...secure }));
  await far.start();
  const { port } = await opened;
  const near = await createBroker().start();
  const url = `${kind}://localhost:${port}`;
  const link = bridge(near, { url, out: [{ filter: 'out/#', qos: 1 }], backOff: 5, ...options });
  try {
    await until(() => link.state === 'connected' || link.lastError !== undefined);
    if (link.lastError !== undefined) return link.lastError.message;
    await connected(near, link);
    const there = await listener(far, 'out/#');
    await near.publish('out/x', 'x'.repeat(100_000), { qos: 1 });
    return String((await there.next()).payload.length);
  } finally {
    link.close();
    await Promise.all([near.stop(), far.stop()]);
  }
}

describe('The transport of a bridge', () => {
  it('supports TLS with a client certificate', async () => {
    const { cert, key } = certificates.client;
    assert.equal(await forward('mqtts', { ca: certificates.ca.cert, cert, key }), '100000');
  });

  it('refuses a server whose certificate is not trusted', async () => {
    const { cert, key } = certificates.client;
    assert.match(await forward('mqtts', { cert, key }), /certificate/);
  });

  it('supports WebSocket', async () => {
    assert.equal(await forward('ws'), '100000');
  });

  it('supports WebSocket over TLS', async () => {
    const { cert, key } = certificates.client;
    assert.equal(await forward('wss', { ca: certificates.ca.cert, cert, key }), '100000');
  });
});

describe('The transport of a bridge to mosquitto', withMosquitto, () => {
  /** Forwards one message over the second listener of mosquitto. */
  async function forwardTo(kind: 'mqtts' | 'ws', settings: readonly string[], options: Partial<BridgeOptions>) {
    const server = await new Mosquitto(settings).begin();
    const near = await createBroker().start();
    const url = `${kind}://localhost:${server.secondPort}`;
    const link = bridge(near, { url, out: [{ filter: 'out/#', qos: 1 }], backOff: 5, maxBackOff: 50, ...options });
    try {
      await connected(near, link);
      const far = await server.client();
      const messages = far.messages()[Symbol.asyncIterator]();
      await far.subscribe('out/#', { qos: 1 });
      await near.publish('out/x', 'x'.repeat(100_000), { qos: 1 });
      assert.equal((await messages.next()).value?.payload.length, 100_000);
      far.destroy();
    } finally {
      link.close();
      await near.stop();
      await server.end();
    }
  }

  it('supports TLS with a client certificate with mosquitto', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-tls-'));
    const { server, client, ca } = certificates;
    const files = { ca: ca.cert, cert: server.cert, key: server.key };
    for (const [name, pem] of Object.entries(files)) writeFileSync(join(folder, name), pem);
    const settings = Object.keys(files).map((name) => `${name === 'ca' ? 'ca' : name}file ${join(folder, name)}`);
    await forwardTo('mqtts', [...settings, 'require_certificate true'], {
      ca: ca.cert,
      cert: client.cert,
      key: client.key
    });
    rmSync(folder, { recursive: true });
  });

  it('supports WebSocket with mosquitto', async () => {
    await forwardTo('ws', ['protocol websockets'], {});
  });
});

describe('A bridge over WebSocket', () => {
  it('connects again after a connection that ends in the middle of a frame', async () => {
    const far = createBroker();
    await far.start();
    const server = createServer();
    const sockets = new WebSocketServer({ server, handleProtocols: () => 'mqtt' });
    let count = 0;
    sockets.on('connection', (socket, request) => {
      if (++count > 1) {
        far.handle(createWebSocketStream(socket));
        return;
      }
      // the head of a binary frame of 1000 bytes, and some of these
      request.socket.write(Buffer.from([0x82, 126, 0x03, 0xe8, 0x20, 0x03, 0x00]));
      request.socket.end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await using near = await createBroker().start();
    const isConnected = near.nextEvent('bridge.connected');
    const link = bridge(near, { url: `ws://127.0.0.1:${port}`, out: [{ filter: 'out/#' }], backOff: 5 });
    await isConnected;
    assert.equal(count, 2, 'the first connection has ended before CONNACK was complete');
    link.close();
    await far.stop();
    sockets.close();
    server.closeAllConnections();
    server.close();
  });
});
