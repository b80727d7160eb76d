import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { listen, type Transport, tcp, tls, unix } from '../../adapters/net/index.ts';
import { type BrokerOptions, createBroker, users } from '../../lib/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';

let certificates: Certificates;
before(() => {
  certificates = makeCertificates();
});
after(() => certificates[Symbol.dispose]());

const OPEN = tcp({ port: 0, host: '0.0.0.0', name: 'open' });

/** Starts a broker with a listener. Returns the names of those that it warns of. */
async function warned(transport: Transport, options: BrokerOptions = {}): Promise<string[]> {
  await using broker = createBroker(options);
  const names: string[] = [];
  broker.on('listener.exposed', ({ listeners }) => names.push(...listeners.map(({ name }) => name)));
  listen(broker, transport);
  await broker.start();
  return names;
}

describe('A listener where anyone can connect from other machines', () => {
  for (const host of ['0.0.0.0', '::'])
    it(`emits a warning when the broker starts, on ${host}`, async () => {
      assert.deepEqual(await warned(tcp({ port: 0, host, name: 'open' })), ['open']);
    });

  it('emits one warning, even if it is added to a started broker', async () => {
    await using broker = await createBroker().start();
    const names: string[] = [];
    broker.on('listener.exposed', ({ listeners }) => names.push(...listeners.map(({ name }) => name)));
    await listen(broker, OPEN);
    await listen(broker, tcp({ port: 0, host: '127.0.0.1' }));
    assert.deepEqual(names, ['open']);
  });

  it('emits a warning with TLS, and in a zone that bypasses authentication', async () => {
    const secure = tls({
      cert: certificates.server.cert,
      key: certificates.server.key,
      port: 0,
      host: '0.0.0.0',
      name: 'secure'
    });
    assert.deepEqual(await warned(secure), ['secure']);
    for (const allowAnonymous of [undefined, false])
      assert.deepEqual(await warned(OPEN, { auth: [users([])], bypassAuthPlugins: true, allowAnonymous }), ['open']);
    const refusesAll = { hooks: { preConnect: () => false }, bypassAuthPlugins: true };
    assert.deepEqual(await warned(OPEN, refusesAll), []);
  });

  it('logs a warning that names the remedies', async () => {
    const lines: string[] = [];
    const note = (message: string) => void lines.push(message);
    const logger = { error: note, warn: note, info: () => {}, debug: () => {} };
    await using broker = createBroker({ logger });
    listen(broker, OPEN);
    await broker.start();
    assert.equal(lines.length, 1);
    assert.match(
      lines[0],
      /^anyone can connect from other machines at 0\.0\.0\.0, .* \(option auth\).*, bind 127\.0\.0\.1, or set allowAnonymous/
    );
  });

  it('emits a process warning if there is neither a logger nor a listener of the event', async () => {
    const warning = once(process, 'warning');
    await using broker = createBroker();
    listen(broker, OPEN);
    await broker.start();
    const [{ code, message }] = await warning;
    assert.equal(code, 'ANONYMOUS_EXPOSED');
    assert.match(message, /^anyone can connect/);
  });
});

describe('A listener that is not reported', () => {
  const cases: readonly [what: string, transport: () => Transport, options?: BrokerOptions][] = [
    ['if it is bound to a loopback address', () => tcp({ port: 0, host: '127.0.0.1' })],
    ['if it has no host, and so is bound to a loopback address', () => tcp({ port: 0 })],
    ['if it is a Unix socket', () => unix(`/tmp/embermq-exposure-${process.pid}.sock`)],
    ['if there are users', () => OPEN, { auth: [users([{ username: 'ann', password: 'a secret' }])] }],
    ['if there is a hook authenticate', () => OPEN, { hooks: { authenticate: () => true } }],
    ['if there is a hook preConnect', () => OPEN, { hooks: { preConnect: () => undefined } }],
    ['if unknown clients are refused', () => OPEN, { allowAnonymous: false }],
    ['if the app allows it explicitly', () => OPEN, { allowAnonymous: true }],
    [
      'if it asks for client certificates',
      () => {
        const { server, ca } = certificates;
        return tls({ cert: server.cert, key: server.key, ca: ca.cert, requestCert: true, port: 0, host: '0.0.0.0' });
      }
    ]
  ];
  for (const [what, transport, options] of cases)
    it(what, async () => assert.deepEqual(await warned(transport(), options), []));
});
