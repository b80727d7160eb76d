import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type BridgeOptions, bridge } from '../../adapters/bridge/index.ts';
import { listen, tls, ws, wss } from '../../adapters/net/index.ts';
import { createBroker } from '../../lib/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
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
    while (link.state !== 'connected' && link.lastError === undefined) await setImmediate();
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
  it('is TLS with a client certificate', async () => {
    const { cert, key } = certificates.client;
    assert.equal(await forward('mqtts', { ca: certificates.ca.cert, cert, key }), '100000');
  });

  it('is refused if the certificate of the server is not trusted', async () => {
    const { cert, key } = certificates.client;
    assert.match(await forward('mqtts', { cert, key }), /certificate/);
  });

  it('is WebSocket', async () => {
    assert.equal(await forward('ws'), '100000');
  });

  it('is WebSocket over TLS', async () => {
    const { cert, key } = certificates.client;
    assert.equal(await forward('wss', { ca: certificates.ca.cert, cert, key }), '100000');
  });
});
