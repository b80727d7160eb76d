import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import mqtt from 'mqtt';
import { engineOf } from '../../lib/broker/broker.ts';
import { duplexPair } from '../../lib/client/duplex.ts';
import { type Broker, createBroker, type TransportInfo } from '../../lib/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { closed } from './stub-broker.ts';

let certificates: Certificates;
let broker: Broker;
const closing: (() => unknown)[] = [];

before(() => {
  certificates = makeCertificates();
});
after(() => certificates[Symbol.dispose]());
beforeEach(async () => {
  broker = await createBroker().start();
});
afterEach(async () => {
  await broker.stop({ timeoutMs: 0 });
  for (const close of closing.splice(0)) close();
});

async function opened(server: Server, where: object = { port: 0, host: '127.0.0.1' }): Promise<number> {
  server.listen(where);
  await once(server, 'listening');
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Connects a client over a stream, and returns the transport info that the broker has. */
async function metaThrough(stream: Duplex): Promise<TransportInfo> {
  const connected = broker.nextEvent('client.connected');
  const client = new mqtt.MqttClient(() => stream, { reconnectPeriod: 0 });
  closing.push(() => client.end(true));
  return (await connected).client.transportInfo;
}

describe('broker.handle without meta', () => {
  it('serves as the connection listener of a net.Server, with the addresses of both ends', async () => {
    const port = await opened(createServer(broker.handle));
    const socket = connect(port, '127.0.0.1');
    assert.deepEqual(await metaThrough(socket), {
      transport: 'tcp',
      remoteAddress: '127.0.0.1',
      remotePort: socket.localPort,
      localAddress: '127.0.0.1',
      localPort: port,
      certificate: undefined
    });
  });

  it('reports the IPv4 address of a client of a dual-stack server in IPv4 notation', async (test) => {
    const server = createServer(broker.handle);
    server.listen({ port: 0, host: '::' });
    const [error] = await Promise.race([once(server, 'listening'), once(server, 'error')]);
    if (error !== undefined) return test.diagnostic(`no IPv6 here: ${error.message}`);
    closing.push(() => server.close());
    const meta = await metaThrough(connect((server.address() as AddressInfo).port, '127.0.0.1'));
    assert.deepEqual([meta.remoteAddress, meta.localAddress], ['127.0.0.1', '127.0.0.1']);
  });

  it('detects TLS and a verified client certificate', async () => {
    const { server, ca, client, stranger } = certificates;
    const options = { cert: server.cert, key: server.key, ca: ca.cert, requestCert: true, rejectUnauthorized: false };
    const port = await opened(createTlsServer(options, broker.handle));
    const dial = (identity: object) => connectTls({ port, host: '127.0.0.1', ca: ca.cert, ...identity });
    const verified = await metaThrough(dial({ cert: client.cert, key: client.key }));
    assert.equal(verified.transport, 'tls');
    assert.equal(verified.remoteAddress, '127.0.0.1');
    assert.equal(verified.certificate?.commonName, 'device-1');
    assert.equal(verified.certificate?.subject, 'CN=device-1,O=Plant');
    assert.match(verified.certificate?.fingerprint256 ?? '', /^[0-9A-F:]{95}$/);
    for (const identity of [{}, { cert: stranger.cert, key: stranger.key }]) {
      const { transport, certificate } = await metaThrough(dial(identity));
      assert.deepEqual([transport, certificate], ['tls', undefined]);
    }
  });

  it('detects a Unix socket', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-handle-'));
    closing.push(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'mqtt.sock');
    await opened(createServer(broker.handle), { path });
    const { transport, remoteAddress } = await metaThrough(connect({ path }));
    assert.deepEqual([transport, remoteAddress], ['unix', undefined]);
  });

  it('does not mistake a TCP socket without an address for a Unix socket, whose clients count as local', async () => {
    let taken: Socket | undefined;
    const port = await opened(
      createServer((socket) => {
        // as after a reset by the peer
        Object.defineProperty(socket, 'remoteAddress', { value: undefined });
        taken = socket;
        broker.handle(socket);
      })
    );
    const meta = await metaThrough(connect(port, '127.0.0.1'));
    assert.ok(taken instanceof Socket);
    assert.deepEqual([meta.transport, meta.remoteAddress], ['tcp', undefined]);
  });

  it('reports no addresses for other streams', async () => {
    const [ours, theirs] = duplexPair(engineOf(broker).services.work);
    broker.handle(ours);
    assert.deepEqual(await metaThrough(theirs), { transport: 'stream' });
  });

  it('uses only the given meta, if there is one', async () => {
    const port = await opened(createServer((socket) => broker.handle(socket, { transport: 'stream' })));
    assert.deepEqual(await metaThrough(connect(port, '127.0.0.1')), { transport: 'stream' });
  });

  it('closes sockets while the broker is not started, with an error event [BROKER_NOT_STARTED]', async () => {
    const idle = createBroker();
    const told = idle.nextEvent('error');
    const socket = connect(await opened(createServer(idle.handle)), '127.0.0.1');
    socket.on('error', () => {});
    await closed(socket);
    const { error, during } = await told;
    assert.equal((error as Error & { code: string }).code, 'BROKER_NOT_STARTED');
    assert.equal(during, 'accepting a connection');
    const own = new Duplex();
    assert.throws(() => idle.handle(own), { code: 'BROKER_NOT_STARTED' });
    assert.equal(own.destroyed, true);
  });

  it('destroys a stream with failing getters while the broker is not started', () => {
    const own = Object.defineProperty(new Duplex(), 'remoteAddress', {
      get() {
        throw new Error('no address');
      }
    });
    assert.throws(() => createBroker().handle(own), { code: 'BROKER_NOT_STARTED' });
    assert.equal(own.destroyed, true);
  });
});
