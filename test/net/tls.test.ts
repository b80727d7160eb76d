import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it, mock } from 'node:test';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import {
  attachWebSocket,
  type Listener,
  listen,
  parsePskFile,
  type TlsOptions,
  tls,
  wss
} from '../../adapters/net/index.ts';
import { type BrokerError, ConnectionRefused, InvalidInput } from '../../lib/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { closed, readBytes, StubBroker, turnsUntil, watchSocketOptions } from './stub-broker.ts';

let certificates: Certificates;
let broker: StubBroker;
const clients: { destroy(): void }[] = [];

before(() => {
  certificates = makeCertificates();
});
after(() => certificates[Symbol.dispose]());

beforeEach(() => {
  broker = new StubBroker();
});
afterEach(async () => {
  mock.restoreAll();
  for (const client of clients.splice(0)) client.destroy();
  await broker.stop();
});

function open(options: Partial<TlsOptions> = {}): PromiseLike<Listener> {
  const { certFile, keyFile } = certificates.server;
  return listen(broker, tls({ port: 0, certFile, keyFile, ...options }));
}

function openForKeys(options: Partial<TlsOptions>): PromiseLike<Listener> {
  return listen(broker, tls({ port: 0, ...options }));
}

function dial({ port }: Listener, options: ConnectionOptions = {}): TLSSocket {
  const socket = connect({ port, host: '127.0.0.1', ca: certificates.ca.cert, ...options });
  socket.on('error', () => {});
  clients.push(socket);
  return socket;
}

/** Connects a client with a pre-shared key. */
function dialWithKey(listener: Listener, identity: string, key: string, options: ConnectionOptions = {}): TLSSocket {
  const psk = Buffer.from(key, 'hex');
  return dial(listener, {
    ciphers: 'PSK',
    pskCallback: () => ({ identity, psk }),
    checkServerIdentity: () => undefined,
    ...options
  });
}

/** Waits until a connection was closed before its hand-over to the broker. */
async function refused(socket: TLSSocket): Promise<void> {
  const before = broker.taken.length;
  await turnsUntil(() => socket.closed || broker.taken.length > before);
  assert.equal(broker.taken.length, before, 'it was let in');
}

/** Returns the serial number of the certificate that the server presents. */
async function shownTo(listener: Listener, servername: string | undefined): Promise<string> {
  const socket = dial(listener, { servername, rejectUnauthorized: false });
  await Promise.all([once(socket, 'secureConnect'), broker.next()]);
  return serialOf(socket);
}

/** An encrypted private key. */
function locked(key: string, passphrase: string): string {
  const format = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase } as const;
  return createPrivateKey(key).export(format).toString();
}

function serialIn(cert: string): string {
  return new X509Certificate(cert).serialNumber;
}

function serialOf(socket: TLSSocket): string {
  return socket.getPeerCertificate().serialNumber;
}

describe('a TLS listener', () => {
  it('completes the handshake with certificates from files, and hands over the decrypted bytes', async () => {
    const listener = await open();
    assert.equal(listener.name, 'tls:0');
    assert.equal(listener.protocol, 'mqtt:ssl');
    const client = dial(listener);
    const { stream, meta } = await broker.next();
    assert.equal(meta.transport, 'tls');
    assert.equal(meta.remoteAddress, '127.0.0.1');
    assert.equal(meta.remotePort, client.localPort);
    assert.equal(meta.username, undefined);
    assert.equal(meta.authenticated, false);
    client.write('there');
    assert.equal((await readBytes(stream, 5)).toString(), 'there');
    stream.write('back');
    assert.equal((await readBytes(client, 4)).toString(), 'back');
    assert.equal(client.authorized, true);
  });

  it('accepts certificates as PEM, also from listen with a port', async () => {
    const { cert, key } = certificates.server;
    const listener = await listen(broker, { port: 0, tls: { cert, key: Buffer.from(key) } });
    await once(dial(listener), 'secureConnect');
    assert.equal((await broker.next()).meta.transport, 'tls');
  });

  it('agrees on mqtt by ALPN, admits clients without ALPN, and refuses other protocols', async () => {
    const listener = await open();
    const client = dial(listener, { ALPNProtocols: ['mqtt'] });
    await once(client, 'secureConnect');
    assert.equal(client.alpnProtocol, 'mqtt');
    await closed(dial(listener, { ALPNProtocols: ['smtp'] }));
    await turnsUntil(() => listener.info().shutdownCount.tls_failed === 1);
  });

  it('agrees on the first protocol of option alpn that a client offers', async () => {
    const listener = await open({ alpn: ['x-amzn-mqtt-ca', 'mqtt'] });
    for (const [offered, chosen] of [
      [['mqtt', 'x-amzn-mqtt-ca'], 'x-amzn-mqtt-ca'],
      [['smtp', 'mqtt'], 'mqtt'],
      [undefined, false]
    ] as const) {
      const client = dial(listener, { ALPNProtocols: offered && [...offered] });
      await Promise.all([broker.next(), once(client, 'secureConnect')]);
      assert.equal(client.alpnProtocol, chosen);
    }
    const strict = await open({ alpn: ['x-amzn-mqtt-ca'] });
    await refused(dial(strict, { ALPNProtocols: ['mqtt'] }));
    await turnsUntil(() => strict.info().shutdownCount.tls_failed === 1);
  });

  it('reports refused clients with the reason', async () => {
    const { ca, stranger } = certificates;
    const listener = await open({ ca: ca.cert, maxVersion: 'TLSv1.2', minVersion: 'TLSv1.2' });
    const plain = connectTcp(listener.port as number, '127.0.0.1');
    plain.on('error', () => {});
    plain.write('\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00');
    await closed(plain);
    await refused(dial(listener));
    await refused(dial(listener, { cert: stranger.cert, key: stranger.key }));
    await refused(dial(listener, { minVersion: 'TLSv1.3' }));
    const leaving = connectTcp(listener.port as number, '127.0.0.1');
    await once(leaving, 'connect');
    leaving.destroy();
    await turnsUntil(() => listener.info().shutdownCount.tls_failed === 5);
    const { reports } = broker;
    assert.ok(reports.every(({ error }) => error instanceof ConnectionRefused && error.reason === 'tls_failed'));
    const during = `listener ${listener.name}: accepting a connection from 127.0.0.1`;
    assert.deepEqual(new Set(reports.map((report) => report.during)), new Set([during]));
    const untrusted =
      'the peer has closed the connection, or its certificate is not valid: no authority of the option ca has signed it, it has expired, or it is revoked';
    assert.deepEqual(
      reports.map(({ error }) => error.message.replace('the TLS handshake has failed: ', '')),
      ['wrong version number', 'peer did not return a certificate', untrusted, 'unsupported protocol', untrusted]
    );
  });

  it('refuses ALPN names that no client could send', () => {
    const { cert, key } = certificates.server;
    for (const alpn of [[''], ['x'.repeat(256)], ['mqtt', '']])
      assert.throws(() => tls({ port: 0, cert, key, alpn }), { code: 'OPTION_INVALID', field: 'tls listener.alpn' });
    tls({ port: 0, cert, key, alpn: ['x'.repeat(255)] });
  });

  for (const [version, wanted, other] of [
    ['TLSv1.2', 'ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
    ['TLSv1.3', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_256_GCM_SHA384']
  ] as const) {
    it(`uses only the cipher suites of option ciphers over ${version}`, async () => {
      const listener = await open({ ciphers: wanted, maxVersion: version, minVersion: version });
      const client = dial(listener, { ciphers: `${other}:${wanted}` });
      await Promise.all([broker.next(), once(client, 'secureConnect')]);
      assert.equal(client.getCipher().name, wanted);
      await refused(dial(listener, { ciphers: other }));
      await turnsUntil(() => listener.info().shutdownCount.tls_failed === 1);
    });
  }

  it('decrypts a key with its passphrase, including that of a server name and of a reload', async () => {
    const { server, renewed } = certificates;
    const keyFile = join(certificates.directory, 'locked.key');
    writeFileSync(keyFile, locked(server.key, 'one'));
    const named = { cert: renewed.cert, key: locked(renewed.key, 'two'), passphrase: 'two' };
    const listener = await open({ keyFile, passphrase: 'one', serverNames: { 'a.example': named } });
    assert.equal(await shownTo(listener, undefined), serialIn(server.cert));
    assert.equal(await shownTo(listener, 'a.example'), serialIn(renewed.cert));
    await listener.reload({ cert: renewed.cert, key: locked(renewed.key, 'three'), passphrase: 'three' });
    assert.equal(await shownTo(listener, undefined), serialIn(renewed.cert));
  });

  it('fails to open without the passphrase of its key or with a wrong one, which the message does not contain', async () => {
    const key = locked(certificates.server.key, 'open sesame');
    for (const passphrase of [undefined, 'close sesame']) {
      await assert.rejects(
        async () => await open({ keyFile: undefined, key, passphrase }),
        (error: BrokerError) => error.code === 'TLS_INVALID' && !/sesame/.test(error.message)
      );
    }
  });

  it('refuses versions below 1.2 by default', async () => {
    const listener = await open();
    await closed(dial(listener, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }));
    await turnsUntil(() => listener.info().shutdownCount.tls_failed === 1);
    assert.deepEqual(broker.taken, []);
  });

  it('closes and counts connections without TLS, with an aborted handshake, or with one that never ends', async () => {
    const timers = new Set<() => void>();
    broker.clock = {
      now: () => 0,
      monotonic: () => 0,
      setTimeout: (run) => {
        timers.add(run);
        return run;
      },
      clearTimeout: (run) => timers.delete(run as () => void)
    };
    const listener = await open();
    const plain = connectTcp(listener.port as number, '127.0.0.1');
    plain.on('error', () => {});
    plain.write('\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00');
    await closed(plain);
    const leaving = connectTcp(listener.port as number, '127.0.0.1');
    await once(leaving, 'connect');
    leaving.destroy();
    await turnsUntil(() => listener.info().shutdownCount.tls_failed === 2);
    const silent = connectTcp(listener.port as number, '127.0.0.1');
    await turnsUntil(() => timers.size === 1);
    for (const ring of timers) ring();
    await closed(silent);
    assert.deepEqual(listener.info().shutdownCount, { tls_failed: 2, handshake_timeout: 1 });
    assert.deepEqual(broker.taken, []);
    await turnsUntil(() => listener.info().currentConnections === 0);
  });

  it('notifies the broker of a connection that begins its handshake, so that it is not accepted after long turns', async () => {
    const listener = await open();
    clients.push(connectTcp({ port: listener.port as number, host: '127.0.0.1' }));
    await turnsUntil(() => broker.arrivals > 0);
    dial(listener);
    await broker.next();
    assert.deepEqual([broker.arrivals, broker.taken.length], [2, 1]);
  });

  it('keeps many simultaneous handshakes apart', async () => {
    const { ca, client, nameless } = certificates;
    const listener = await open({ ca: ca.cert, requestCert: true, rejectUnauthorized: false });
    const kinds = Array.from(
      { length: 30 },
      (_, at) => [{}, client, nameless][at % 3] as { cert?: string; key?: string }
    );
    const dialed = kinds.map(({ cert, key }) => dial(listener, { cert, key }));
    await Promise.all(dialed.map((socket) => once(socket, 'secureConnect')));
    for (let taken = 0; taken < kinds.length; taken++) await broker.next();
    for (const [at, socket] of dialed.entries()) {
      const found = broker.taken.find(({ meta }) => meta.remotePort === socket.localPort);
      const subject = [undefined, 'CN=device-1,O=Plant', 'O=Plant'][at % 3];
      assert.equal(found?.meta.certificate?.subject, subject);
    }
  });

  it('fails to open, naming the file, if a certificate cannot be read, and if key and certificate do not match', async () => {
    const missing = join(certificates.directory, 'absent.crt');
    await assert.rejects(
      async () => await open({ certFile: missing }),
      (error: BrokerError) => error.code === 'TLS_INVALID' && error.message.includes(missing)
    );
    await assert.rejects(async () => await open({ keyFile: certificates.client.keyFile }), { code: 'TLS_INVALID' });
  });

  it('requires a certificate with its key, or pre-shared keys', () => {
    assert.throws(() => tls({ port: 0 }), { code: 'OPTION_MISSING', field: 'cert' });
    assert.throws(() => tls({ port: 0, certFile: 'x' }), { code: 'OPTION_MISSING', field: 'key' });
    for (const name of ['cert', 'key', 'ca', 'crl'] as const)
      assert.throws(() => tls({ ...certificates.server, port: 0, [name]: './a.pem' }), {
        code: 'OPTION_INVALID',
        message: `tls listener.${name}: expected the text of a PEM file ("-----BEGIN ..."), not its path; for a path, use ${name}File`
      });
    assert.throws(
      () => tls({ port: 0, cert: 1 as never, key: 'secret' }),
      (error: Error) => !error.message.includes('secret')
    );
    assert.throws(
      () => tls({ port: 0, cert: 'x', key: 'y', passphrase: 4711 as never }),
      (error: InvalidInput) => error.code === 'OPTION_INVALID' && !error.message.includes('4711')
    );
  });
});

describe('client certificates', () => {
  it('verifies client certificates, and takes their common name as user name', async () => {
    const { ca, client } = certificates;
    const listener = await open({ ca: ca.cert, usernameFrom: 'cn' });
    dial(listener, { cert: client.cert, key: client.key });
    const { meta } = await broker.next();
    assert.equal(meta.username, 'device-1');
    assert.equal(meta.authenticated, false, 'a certificate names the user; the authenticate hooks still run');
    assert.equal(meta.certificate?.commonName, 'device-1');
    assert.equal(meta.certificate?.subject, 'CN=device-1,O=Plant');
    assert.match(meta.certificate?.fingerprint256 ?? '', /^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
  });

  it('takes the whole subject as the user name if configured', async () => {
    const { ca, client } = certificates;
    const listener = await open({ caFile: ca.certFile, usernameFrom: 'subject' });
    dial(listener, { cert: client.cert, key: client.key });
    assert.equal((await broker.next()).meta.username, 'CN=device-1,O=Plant');
  });

  it('takes the user name from the certificate in a resumed TLS session as well', async () => {
    const { ca, client } = certificates;
    const listener = await open({ ca: ca.cert, usernameFrom: 'cn' });
    const first = dial(listener, { cert: client.cert, key: client.key });
    const [[session]] = await Promise.all([once(first, 'session'), broker.next()]);
    const second = dial(listener, { cert: client.cert, key: client.key, session });
    const { meta } = await broker.next();
    assert.equal(second.isSessionReused(), true);
    assert.equal(meta.username, 'device-1');
  });

  it('closes the connection without a client certificate, with one of another authority, and with a revoked one', async () => {
    const { ca, crl, crlFile, client, stranger, revoked } = certificates;
    for (const revocations of [{ crl }, { crlFile }, { crlFile: [crlFile] }]) {
      const listener = await open({ ca: ca.cert, ...revocations });
      for (const { cert, key } of [{}, stranger, revoked] as { cert?: string; key?: string }[])
        await refused(dial(listener, { cert, key }));
      await turnsUntil(() => listener.info().shutdownCount.tls_failed === 3);
      dial(listener, { cert: client.cert, key: client.key });
      assert.equal((await broker.next()).meta.certificate?.commonName, 'device-1');
    }
    assert.equal(broker.taken.length, 3);
  });

  it('revokes certificates by a file and a reload', async () => {
    const { ca, crl, client, revoked, directory } = certificates;
    const crlFile = join(directory, 'live.crl');
    writeFileSync(crlFile, '');
    await assert.rejects(async () => await open({ ca: ca.cert, crlFile }), { code: 'TLS_INVALID' });
    writeFileSync(crlFile, certificates.emptyCrl);
    const listener = await open({ ca: ca.cert, crlFile });
    dial(listener, { cert: revoked.cert, key: revoked.key });
    assert.equal((await broker.next()).meta.certificate?.commonName, 'device-2');
    writeFileSync(crlFile, crl);
    await listener.reload();
    await refused(dial(listener, { cert: revoked.cert, key: revoked.key }));
    await turnsUntil(() => listener.info().shutdownCount.tls_failed === 1);
    dial(listener, { cert: client.cert, key: client.key });
    assert.equal((await broker.next()).meta.certificate?.commonName, 'device-1');
  });

  it('closes the connection if usernameFrom is set and the certificate contains no name', async () => {
    const { ca, nameless, stranger } = certificates;
    const listener = await open({ ca: ca.cert, usernameFrom: 'cn', rejectUnauthorized: false });
    for (const { cert, key } of [nameless, stranger, { cert: undefined, key: undefined }])
      await closed(dial(listener, { cert, key }));
    assert.deepEqual(listener.info().shutdownCount, { no_username: 3 });
    assert.deepEqual(broker.taken, []);
  });

  it('does not report invalid certificates that are not required', async () => {
    const { ca, stranger } = certificates;
    const listener = await open({ ca: ca.cert, rejectUnauthorized: false });
    dial(listener, { cert: stranger.cert, key: stranger.key });
    assert.equal((await broker.next()).meta.certificate, undefined);
  });

  it('refuses usernameFrom on a listener without TLS', () => {
    assert.throws(() => listen(broker, { port: 0, usernameFrom: 'cn' }), {
      code: 'OPTION_INVALID',
      field: 'usernameFrom'
    });
  });
});

describe('reloading certificates', () => {
  it('uses the new ones for the next handshake and keeps existing connections', async () => {
    const { server, renewed, directory } = certificates;
    const [certFile, keyFile] = [join(directory, 'live.crt'), join(directory, 'live.key')];
    copyFileSync(server.certFile, certFile);
    copyFileSync(server.keyFile, keyFile);
    const listener = await open({ certFile, keyFile });
    const before = dial(listener);
    const { stream } = await broker.next();
    copyFileSync(renewed.certFile, certFile);
    copyFileSync(renewed.keyFile, keyFile);
    await listener.reload();
    const afterwards = dial(listener);
    await broker.next();
    assert.notEqual(serialOf(afterwards), serialOf(before));
    before.write('x');
    await readBytes(stream, 1);
  });

  it('keeps the old ones if the new ones are invalid', async () => {
    const listener = await open();
    await assert.rejects(listener.reload({ cert: certificates.client.cert }), { code: 'TLS_INVALID' });
    await assert.rejects(listener.reload({ certFile: '/does/not/exist' }), { code: 'TLS_INVALID' });
    await listener.reload();
    await once(dial(listener), 'secureConnect');
  });

  it('accepts new ones as PEM', async () => {
    const { server, renewed } = certificates;
    const listener = await open({ certFile: undefined, keyFile: undefined, cert: server.cert, key: server.key });
    const [before] = await Promise.all([dial(listener), broker.next()]);
    await listener.reload({ cert: renewed.cert, key: renewed.key });
    const [afterwards] = await Promise.all([dial(listener), broker.next()]);
    assert.notEqual(serialOf(afterwards), serialOf(before));
  });

  it('refuses certificates revoked since, also in resumed sessions', async () => {
    const { ca, crl, revoked } = certificates;
    const listener = await open({ ca: ca.cert });
    const first = dial(listener, { cert: revoked.cert, key: revoked.key });
    const [[session]] = await Promise.all([once(first, 'session'), broker.next()]);
    await listener.reload({ crl });
    await closed(dial(listener, { cert: revoked.cert, key: revoked.key, session }));
    await turnsUntil(() => listener.info().shutdownCount.tls_failed === 1);
  });

  it('reloads when a watched file changes, and reports invalid files', async () => {
    const { server, directory } = certificates;
    const pskFile = join(directory, 'watched.txt');
    writeFileSync(pskFile, 'a:0011\n');
    const listener = await open({ certFile: server.certFile, keyFile: server.keyFile, pskFile, watchInterval: 10 });
    const reported = broker.reported();
    writeFileSync(pskFile, 'a:broken\n');
    await reported;
    assert.equal((broker.reports[0].error as BrokerError).code, 'TLS_INVALID');
    assert.match(broker.reports[0].error.message, /line 1/);
    assert.doesNotMatch(broker.reports[0].error.message, /broken/);
    await once(dialWithKey(listener, 'a', '0011'), 'secureConnect');
  });

  it('watches the new files of a reload', async () => {
    const { server, renewed, directory } = certificates;
    const listener = await open({ watchInterval: 10 });
    const [certFile, keyFile] = [join(directory, 'moved.crt'), join(directory, 'moved.key')];
    copyFileSync(server.certFile, certFile);
    copyFileSync(server.keyFile, keyFile);
    await listener.reload({ certFile, keyFile });
    const reported = broker.reported();
    copyFileSync(renewed.certFile, certFile);
    await reported;
    assert.equal((broker.reports[0].error as BrokerError).code, 'TLS_INVALID');
  });

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    it(`adds pre-shared keys to a listener without any, and removes them again, over ${version}`, async () => {
      const listener = await open();
      const only = { minVersion: version, maxVersion: version };
      await listener.reload({ psk: { a: '0011' } });
      dialWithKey(listener, 'a', '0011', only);
      assert.equal((await broker.next()).meta.username, 'a');
      dial(listener, only);
      assert.equal((await broker.next()).meta.username, undefined);
      await listener.reload({ psk: {} });
      const late = dialWithKey(listener, 'a', '0011', only);
      if (version === 'TLSv1.2') await closed(late);
      else assert.equal((await broker.next()).meta.username, undefined, 'let in by the certificate handshake, unnamed');
      dial(listener, only);
      assert.equal((await broker.next()).meta.username, undefined);
    });
  }

  it('adds a certificate to a listener with only pre-shared keys', async () => {
    const { cert, key } = certificates.server;
    const listener = await openForKeys({ psk: { a: '0011' } });
    await listener.reload({ cert, key });
    await once(dial(listener), 'secureConnect');
    dialWithKey(listener, 'a', '0011');
    await broker.next();
    assert.equal((await broker.next()).meta.username, 'a');
  });

  it('lets handshakes in progress finish with the old ones', async () => {
    const listener = await open();
    const raw = connectTcp(listener.port as number, '127.0.0.1');
    clients.push(raw);
    await turnsUntil(() => listener.info().currentConnections === 1);
    const { renewed } = certificates;
    await listener.reload({ cert: renewed.cert, key: renewed.key });
    const client = dial(listener, { socket: raw });
    await once(client, 'secureConnect');
    assert.equal((await broker.next()).meta.remotePort, raw.localPort);
  });

  it('keeps the changes of each of several simultaneous reloads', async () => {
    const { server, renewed, ca, stranger } = certificates;
    const listener = await open({ ca: stranger.cert, requestCert: true, rejectUnauthorized: false });
    await Promise.all([
      listener.reload({ cert: server.cert, key: server.key }),
      listener.reload({ ca: ca.cert }),
      listener.reload({ cert: renewed.cert, key: renewed.key })
    ]);
    const { cert, key } = certificates.client;
    const client = dial(listener, { cert, key });
    assert.equal((await broker.next()).meta.certificate?.commonName, 'device-1');
    assert.equal(serialOf(client), serialIn(renewed.cert));
  });

  it('refuses unknown and invalid options, and a certificate without its key', async () => {
    const listener = await openForKeys({ psk: { a: '0011' } });
    for (const [material, code] of [
      [{ certFille: 'x' }, 'OPTION_UNKNOWN'],
      [{ ciphers: 'x' }, 'OPTION_UNKNOWN'],
      [{ cert: 5 }, 'OPTION_INVALID'],
      [{ psk: { a: 'no hex' } }, 'PSK_INVALID'],
      [{ cert: certificates.server.cert }, 'OPTION_MISSING']
    ] as const)
      await assert.rejects(listener.reload(material as object), { code });
    dialWithKey(listener, 'a', '0011');
    await broker.next();
  });

  it('rejects a reload of a listener without TLS', async () => {
    const listener = await listen(broker, 0);
    await assert.rejects(listener.reload(), { code: 'LISTENER_WITHOUT_TLS' });
  });
});

describe('certificates by server name', () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    it(`selects the certificate by the name that a client sends over ${version}, with the default certificate for other names`, async () => {
      const { server, renewed, client } = certificates;
      const listener = await open({
        maxVersion: version,
        serverNames: {
          'A.example': { cert: renewed.cert, key: renewed.key },
          '*.b.example': { certFile: client.certFile, keyFile: client.keyFile }
        }
      });
      const [own, a, b] = [server.cert, renewed.cert, client.cert].map(serialIn);
      for (const [name, expected] of [
        ['a.example', a],
        ['a.EXAMPLE', a],
        ['x.b.example', b],
        ['b.example', own],
        ['x.y.b.example', own],
        ['c.example', own],
        [undefined, own]
      ] as const)
        assert.equal(await shownTo(listener, name), expected, name);
    });
  }

  it('combines certificates by server name with pre-shared keys and client certificates', async () => {
    const { ca, client, renewed } = certificates;
    const serverNames = { 'a.example': { cert: renewed.cert, key: renewed.key } };
    const listener = await open({ ca: ca.cert, usernameFrom: 'cn', psk: { k: '0011' }, serverNames });
    const servername = 'a.example';
    dialWithKey(listener, 'k', '0011', { servername });
    assert.equal((await broker.next()).meta.username, 'k');
    dial(listener, { cert: client.cert, key: client.key, servername, checkServerIdentity: () => undefined });
    assert.equal((await broker.next()).meta.username, 'device-1');
    await closed(dial(listener, { servername, checkServerIdentity: () => undefined }));
  });

  it('reads all certificates again on reload, and replaces them by new ones', async () => {
    const { server, renewed, client, directory } = certificates;
    const [certFile, keyFile] = [join(directory, 'named.crt'), join(directory, 'named.key')];
    copyFileSync(server.certFile, certFile);
    copyFileSync(server.keyFile, keyFile);
    const listener = await open({ serverNames: { 'a.example': { certFile, keyFile } } });
    copyFileSync(renewed.certFile, certFile);
    copyFileSync(renewed.keyFile, keyFile);
    await listener.reload();
    assert.equal(await shownTo(listener, 'a.example'), serialIn(renewed.cert));
    await listener.reload({ serverNames: { 'b.example': { cert: client.cert, key: client.key } } });
    assert.equal(await shownTo(listener, 'a.example'), serialIn(server.cert));
    assert.equal(await shownTo(listener, 'b.example'), serialIn(client.cert));
  });

  it('watches the files, and keeps the old certificates if a new one is invalid', async () => {
    const { server, renewed, directory } = certificates;
    const [certFile, keyFile] = [join(directory, 'seen.crt'), join(directory, 'seen.key')];
    copyFileSync(renewed.certFile, certFile);
    copyFileSync(renewed.keyFile, keyFile);
    const listener = await open({ serverNames: { 'a.example': { certFile, keyFile } }, watchInterval: 10 });
    const reported = broker.reported();
    copyFileSync(server.certFile, certFile);
    await reported;
    assert.match(broker.reports[0].error.message, /server name "a\.example": /);
    assert.equal(await shownTo(listener, 'a.example'), serialIn(renewed.cert));
  });

  it('requires valid names, a key for each certificate, and a default certificate', () => {
    const { cert, key } = certificates.server;
    for (const [serverNames, code, field] of [
      [{ '*': { cert, key } }, 'OPTION_INVALID', 'tls listener.serverNames'],
      [{ 'a b': { cert, key } }, 'OPTION_INVALID', 'tls listener.serverNames'],
      [{ 'a.*': { cert, key } }, 'OPTION_INVALID', 'tls listener.serverNames'],
      [[], 'OPTION_INVALID', 'tls listener.serverNames'],
      [{ a: { cert } }, 'OPTION_MISSING', 'tls listener.serverNames["a"].key'],
      [{ a: null }, 'OPTION_MISSING', 'tls listener.serverNames["a"].cert'],
      [{ a: { cert, key, ca: cert } }, 'OPTION_UNKNOWN', 'ca']
    ] as const)
      assert.throws(() => tls({ port: 0, cert, key, serverNames: serverNames as never }), { code, field });
    assert.throws(() => tls({ port: 0, psk: { a: '00' }, serverNames: { a: { cert, key } } }), {
      code: 'OPTION_MISSING',
      field: 'cert'
    });
  });
});

describe('pre-shared keys', () => {
  const keys = { 'device-7': '00112233445566778899aabbccddeeff' };

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    it(`takes the identity as user name, without a certificate, over ${version}`, async () => {
      const listener = await openForKeys({ psk: keys });
      const client = dialWithKey(listener, 'device-7', keys['device-7'], { minVersion: version, maxVersion: version });
      const { stream, meta } = await broker.next();
      assert.equal(client.getProtocol(), version);
      assert.equal(meta.username, 'device-7');
      assert.equal(meta.authenticated, true);
      client.write('x');
      await readBytes(stream, 1);
    });

    it(`combines pre-shared keys and certificates on one listener over ${version}`, async () => {
      const { ca, client } = certificates;
      const listener = await open({ psk: keys, ca: ca.cert, usernameFrom: 'cn' });
      const only = { minVersion: version, maxVersion: version };
      dialWithKey(listener, 'device-7', keys['device-7'], only);
      const byKey = await broker.next();
      assert.deepEqual([byKey.meta.username, byKey.meta.authenticated], ['device-7', true]);
      dial(listener, { cert: client.cert, key: client.key, ...only });
      const byCertificate = await broker.next();
      assert.deepEqual([byCertificate.meta.username, byCertificate.meta.authenticated], ['device-1', false]);
      await closed(dial(listener, only));
    });

    it(`refuses clients with neither a key nor a verified certificate with a client CA over ${version}: tls_failed`, async () => {
      const { ca, stranger } = certificates;
      const listener = await open({ psk: keys, ca: ca.cert });
      const only = { minVersion: version, maxVersion: version };
      await refused(dial(listener, only));
      await refused(dial(listener, { cert: stranger.cert, key: stranger.key, ...only }));
      await refused(dialWithKey(listener, 'device-7', 'ff', only));
      assert.deepEqual(listener.info().shutdownCount, { tls_failed: 3 });
    });

    it(`admits every client with a client CA and rejectUnauthorized: false over ${version}`, async () => {
      const { ca, stranger } = certificates;
      const listener = await open({ psk: keys, ca: ca.cert, rejectUnauthorized: false });
      const only = { minVersion: version, maxVersion: version };
      for (const shown of [{}, { cert: stranger.cert, key: stranger.key }]) {
        dial(listener, { ...shown, ...only });
        const { meta } = await broker.next();
        assert.deepEqual([meta.username, meta.authenticated, meta.certificate], [undefined, false, undefined]);
      }
    });

    it(`fails the handshake over ${version} if the identity is unknown or the key is wrong`, async () => {
      const listener = await openForKeys({ psk: keys });
      const only = { minVersion: version, maxVersion: version };
      await closed(dialWithKey(listener, 'device-8', keys['device-7'], only));
      await closed(dialWithKey(listener, 'device-7', 'ff', only));
      await turnsUntil(() => listener.info().shutdownCount.tls_failed === 2);
      assert.deepEqual(broker.taken, []);
    });
  }

  it('gives no user name to a client that is admitted by the certificate handshake instead', async () => {
    const listener = await open({ psk: keys });
    // the client knows the identity but not the key; with a suite that does not suit pre-shared keys the server falls back
    const client = dialWithKey(listener, 'device-7', 'ff', {
      ciphers: 'TLS_AES_256_GCM_SHA384',
      minVersion: 'TLSv1.3'
    });
    await once(client, 'secureConnect');
    const { meta } = await broker.next();
    assert.equal(meta.username, undefined);
    assert.equal(meta.authenticated, false);
  });

  it('prevents a bypass by resuming a session', async () => {
    const listener = await open({ psk: keys });
    const first = dialWithKey(listener, 'device-7', keys['device-7'], { maxVersion: 'TLSv1.2' });
    await Promise.all([broker.next(), once(first, 'secureConnect')]);
    const session = first.getSession();
    const second = dialWithKey(listener, 'device-7', keys['device-7'], { maxVersion: 'TLSv1.2', session });
    const { meta } = await broker.next();
    assert.equal(second.isSessionReused(), false);
    assert.equal(meta.username, 'device-7');
  });

  it('accepts keys from a function, whose failure counts as an unknown identity', async () => {
    const asked: string[] = [];
    const listener = await openForKeys({
      psk: (identity) => {
        asked.push(identity);
        if (identity === 'bad') throw new Error('the vault is shut');
        return identity === 'good' ? Buffer.from('0011', 'hex') : undefined;
      }
    });
    await closed(dialWithKey(listener, 'bad', '0011', { maxVersion: 'TLSv1.2' }));
    assert.equal(broker.reports[0].error.message, 'the vault is shut');
    dialWithKey(listener, 'good', '0011', { maxVersion: 'TLSv1.2' });
    assert.equal((await broker.next()).meta.username, 'good');
    assert.deepEqual(asked, ['bad', 'good']);
  });

  it('accepts keys from a file, which is read again on reload', async () => {
    const pskFile = join(certificates.directory, 'psk.txt');
    writeFileSync(pskFile, 'first=0011\n');
    const listener = await openForKeys({ pskFile, pskDelimiter: '=' });
    dialWithKey(listener, 'first', '0011');
    assert.equal((await broker.next()).meta.username, 'first');
    writeFileSync(pskFile, 'second=2233\n');
    await listener.reload();
    await closed(dialWithKey(listener, 'first', '0011'));
    dialWithKey(listener, 'second', '2233');
    assert.equal((await broker.next()).meta.username, 'second');
  });

  it('parses lines of identity, delimiter and hexadecimal key', () => {
    const read = parsePskFile('# keys\r\n\r\nurn:dev:1:00ff\n  b:AB  \n');
    assert.deepEqual(
      [...read],
      [
        ['urn:dev:1', Buffer.from([0, 255])],
        ['b', Buffer.from([0xab])]
      ]
    );
    assert.deepEqual([...parsePskFile('a::00', '::')], [['a', Buffer.from([0])]]);
    for (const text of ['nothing', ':00', 'a:', 'a:0', 'a:xy', 'b:00\na:0g']) {
      assert.throws(
        () => parsePskFile(text),
        (error: InvalidInput) =>
          error.code === 'PSK_INVALID' && error.message.startsWith(`line ${text.split('\n').length} `)
      );
    }
    assert.throws(() => tls({ port: 0, psk: { a: 'no hex' } }), InvalidInput);
  });
});

describe('a secure WebSocket listener', () => {
  it('upgrades over TLS and reports the client certificate', async () => {
    const { ca, server, client } = certificates;
    const listener = await listen(
      broker,
      wss({ port: 0, cert: server.cert, key: server.key, ca: ca.cert, usernameFrom: 'cn' })
    );
    assert.equal(listener.name, 'wss:0');
    assert.equal(listener.protocol, 'mqtt:wss');
    const socket = new WebSocket(`wss://127.0.0.1:${listener.port}/mqtt`, 'mqtt', {
      ca: ca.cert,
      cert: client.cert,
      key: client.key
    });
    clients.push({ destroy: () => socket.terminate() });
    const [{ stream, meta }] = await Promise.all([broker.next(), once(socket, 'open')]);
    assert.equal(meta.transport, 'wss');
    assert.equal(meta.username, 'device-1');
    assert.equal(meta.headers?.['sec-websocket-protocol'], 'mqtt');
    socket.send(Buffer.from('x'));
    await readBytes(stream, 1);
  });

  it('sends small packets at once, unless noDelay is false', async () => {
    const optionsOf = watchSocketOptions();
    const { ca, server } = certificates;
    for (const noDelay of [undefined, true, false]) {
      const listener = await listen(broker, wss({ port: 0, cert: server.cert, key: server.key, noDelay }));
      const socket = new WebSocket(`wss://127.0.0.1:${listener.port}/mqtt`, 'mqtt', { ca: ca.cert });
      clients.push({ destroy: () => socket.terminate() });
      const [{ stream }] = await Promise.all([broker.next(), once(socket, 'open')]);
      assert.equal(optionsOf(stream).noDelay, noDelay ?? true);
    }
  });

  it('supports listen with both tls and ws', async () => {
    const { ca, server } = certificates;
    const listener = await listen(broker, {
      port: 0,
      tls: { cert: server.cert, key: server.key },
      ws: true,
      path: '/here'
    });
    const socket = new WebSocket(`wss://127.0.0.1:${listener.port}/here`, 'mqtt', { ca: ca.cert });
    clients.push({ destroy: () => socket.terminate() });
    await once(socket, 'open');
  });

  it('can be attached to an HTTPS server and reports its client certificates', async () => {
    const { ca, server, client } = certificates;
    const https = createHttpsServer({
      cert: server.cert,
      key: server.key,
      ca: ca.cert,
      requestCert: true,
      rejectUnauthorized: false
    });
    https.listen(0, '127.0.0.1');
    await once(https, 'listening');
    const listener = await attachWebSocket(broker, https, { usernameFrom: 'cn' });
    assert.equal(listener.protocol, 'mqtt:wss');
    const address = `wss://127.0.0.1:${listener.port}/mqtt`;
    const named = new WebSocket(address, 'mqtt', { ca: ca.cert, cert: client.cert, key: client.key });
    clients.push({ destroy: () => named.terminate() });
    const { meta } = await broker.next();
    assert.deepEqual([meta.transport, meta.username], ['wss', 'device-1']);
    const nameless = new WebSocket(address, 'mqtt', { ca: ca.cert });
    nameless.on('error', () => {});
    await new Promise((resolve) => nameless.on('close', resolve));
    assert.deepEqual(listener.info().shutdownCount, { no_username: 1 });
    https.close();
  });
});
