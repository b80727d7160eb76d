import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { type Listener, listen, tls, ws } from '../../adapters/net/index.ts';
import type { Broker } from '../../lib/index.ts';
import { createTestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { closed, readBytes, turnsUntil, UPGRADE } from './stub-broker.ts';

const PROXY = 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n';

let certificates: Certificates;
const sockets: Socket[] = [];

before(() => {
  certificates = makeCertificates();
});
after(() => certificates[Symbol.dispose]());
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

async function dial(listener: Listener): Promise<Socket> {
  const socket = connectTcp(listener.port as number, '127.0.0.1');
  socket.on('error', () => {});
  sockets.push(socket);
  await turnsUntil(() => listener.info().currentConnections === sockets.length);
  return socket;
}

const KINDS: Readonly<Record<string, { open(broker: Broker): Promise<Listener> | Listener; sends: string }>> = {
  'WebSocket, before the upgrade': { open: (broker) => listen(broker, ws({ port: 0 })), sends: '' },
  'WebSocket, in the middle of the upgrade': {
    open: (broker) => listen(broker, ws({ port: 0 })),
    sends: UPGRADE.slice(0, 40)
  },
  'TLS, before the handshake': {
    open: (broker) => listen(broker, tls({ port: 0, cert: certificates.server.cert, key: certificates.server.key })),
    sends: ''
  },
  'a PROXY header, in its middle': {
    open: (broker) => listen(broker, { port: 0, proxyProtocol: true, trustedProxies: ['127.0.0.1'] }),
    sends: PROXY.slice(0, 10)
  }
};

const BOUNDS: readonly [name: string, options: TestBrokerOptions][] = [
  ['connectTimeout', { connectTimeout: '3s' }],
  ['idleTimeout', { idleTimeout: '3s' }]
];

for (const [bound, options] of BOUNDS) {
  describe(`the ${bound} of a connection with a handshake`, () => {
    for (const [name, { open, sends }] of Object.entries(KINDS))
      it(`counts from accept: ${name}`, async () => {
        await using kit = await createTestBroker(options);
        const listener = await open(kit.broker);
        const socket = await dial(listener);
        socket.resume();
        socket.write(sends);
        await kit.clock.advance(2_999);
        assert.equal(listener.info().currentConnections, 1);
        await kit.clock.advance(1);
        await closed(socket);
        assert.deepEqual(listener.info().shutdownCount, { handshake_timeout: 1 });
      });

    it('continues after a WebSocket upgrade without restarting', async () => {
      await using kit = await createTestBroker(options);
      const listener = await listen(kit.broker, ws({ port: 0 }));
      const socket = await dial(listener);
      await kit.clock.advance(2_000);
      socket.write(UPGRADE);
      await readBytes(socket, 12);
      socket.resume();
      await kit.clock.advance(999);
      assert.equal(listener.info().currentConnections, 1);
      await kit.clock.advance(100); // the broker's timers ring every tenth of a second
      await closed(socket);
    });

    it('continues after a TLS handshake without restarting', async () => {
      await using kit = await createTestBroker(options);
      const { cert, key } = certificates.server;
      const listener = await listen(kit.broker, tls({ port: 0, cert, key }));
      const raw = await dial(listener);
      await kit.clock.advance(2_000);
      // in TLS 1.2 the server has finished first
      const secure = connectTls({ socket: raw, ca: certificates.ca.cert, maxVersion: 'TLSv1.2' });
      secure.on('error', () => {});
      await once(secure, 'secureConnect');
      secure.resume();
      await kit.clock.advance(999);
      assert.equal(listener.info().currentConnections, 1);
      await kit.clock.advance(100);
      await closed(secure);
    });
  });
}
