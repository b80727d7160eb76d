import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { connectAsync, connect as connectMqtt, type IClientOptions } from 'mqtt';
import { listen, tls } from '../../adapters/net/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { VirtualClock } from '../../lib/testing/index.ts';
import { withMosquitto } from '../cli/mosquitto.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { until } from '../support/until.ts';

let certificates: Certificates;

before(() => {
  certificates = makeCertificates();
});
after(() => certificates[Symbol.dispose]());

/** The certificates of a client that is refused: none, one of another authority, and a revoked one. */
const REFUSED = ['none', 'stranger', 'revoked'] as const;
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;

interface Stage extends AsyncDisposable {
  readonly broker: Broker;
  readonly port: number;
  /** Rejections, by reason, and other events, by name. */
  readonly events: string[];
  readonly lines: string[];
  readonly certificate: (kind: (typeof REFUSED)[number]) => Partial<Certificates['stranger']>;
  /** Waits until a number of connections have been refused. */
  refused(count: number): Promise<void>;
}

async function stage(): Promise<Stage> {
  const lines: string[] = [];
  const show = (level: string) => (message: string) => {
    if (!message.startsWith('alarm raised')) lines.push(`${level} ${message}`);
  };
  const ignore = () => undefined;
  const logger = { error: show('error'), warn: show('warn'), info: ignore, debug: ignore };
  const broker = createBroker({ logger, clock: new VirtualClock() }); // one minute, however long it takes
  const { ca, crl, server, stranger, revoked } = certificates;
  const { certFile, keyFile } = server;
  const listener = await listen(broker, tls({ port: 0, certFile, keyFile, ca: ca.cert, crl }));
  const events: string[] = [];
  broker.on('client.rejected', ({ client, address, reason }) => events.push(`${client} ${address} ${reason}`));
  for (const name of ['client.connect', 'client.disconnected', 'connection.closed'] as const)
    broker.on(name, () => events.push(name));
  await broker.start();
  return {
    broker,
    port: listener.port as number,
    events,
    lines,
    certificate: (kind) => ({ none: {}, stranger, revoked })[kind],
    refused: (count) => until(() => listener.info().shutdownCount.tls_failed === count),
    [Symbol.asyncDispose]: () => broker.stop()
  };
}

/** Tell whether a TLS client completes its handshake, and the code of the alert that it gets. */
async function handshake(port: number, version: (typeof VERSIONS)[number], cert?: string, key?: string) {
  const options = { port, host: '127.0.0.1', ca: certificates.ca.cert, cert, key };
  const socket: TLSSocket = connectTls({ ...options, minVersion: version, maxVersion: version });
  let isComplete = false;
  let alert: string | undefined;
  socket.on('secureConnect', () => (isComplete = true));
  socket.on('error', ({ code }: NodeJS.ErrnoException) => (alert = code?.startsWith('ERR_SSL_') ? code : undefined));
  socket.resume();
  await new Promise((resolve) => socket.on('close', resolve)); // `once` would reject with the error
  return { isComplete, alert };
}

/** Tell whether MQTT.js gets a CONNACK. */
async function isAdmitted(port: number, options: IClientOptions): Promise<boolean> {
  const client = connectMqtt({ host: '127.0.0.1', port, protocol: 'mqtts', reconnectPeriod: 0, ...options });
  let hasConnected = false;
  client.on('connect', () => (hasConnected = true));
  client.on('error', () => undefined);
  await new Promise<void>((resolve) => client.on('close', () => resolve()));
  await client.endAsync(true);
  return hasConnected;
}

describe('a client whose certificate is refused', () => {
  it('completes the handshake in TLS 1.3, but not in TLS 1.2', async () => {
    await using it = await stage();
    for (const version of VERSIONS) {
      for (const kind of REFUSED) {
        const { cert, key } = it.certificate(kind);
        const { isComplete } = await handshake(it.port, version, cert, key);
        assert.equal(isComplete, version === 'TLSv1.3', `${version}, certificate: ${kind}`);
      }
    }
    await it.refused(6);
  });

  it('receives an alert if it has presented no certificate, and otherwise none', async () => {
    await using it = await stage();
    const alerts: Record<string, (string | undefined)[]> = {};
    for (const version of VERSIONS) {
      for (const kind of REFUSED) {
        const { cert, key } = it.certificate(kind);
        (alerts[version] ??= []).push((await handshake(it.port, version, cert, key)).alert);
      }
    }
    const [first, second] = ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'];
    const without = alerts['TLSv1.2'][0];
    assert.ok(without === first || without === first.replace('SSLV3', 'SSL/TLS'), `${without}`);
    assert.deepEqual(alerts, {
      'TLSv1.2': [without, undefined, undefined],
      'TLSv1.3': [second, undefined, undefined]
    });
  });

  it('emits client.rejected and one line of the log, and no other client event', async () => {
    await using it = await stage();
    for (const version of VERSIONS) {
      for (const kind of REFUSED) {
        const { cert, key } = it.certificate(kind);
        const { ca } = certificates;
        const limits = { minVersion: version, maxVersion: version, ca: ca.cert };
        assert.equal(await isAdmitted(it.port, { ...limits, cert, key }), false, `${version}, certificate: ${kind}`);
      }
    }
    await it.refused(6);
    assert.deepEqual(it.events, Array(6).fill('undefined 127.0.0.1 tls_failed'));
    // one for an address and reason in a minute
    assert.deepEqual(it.lines, [
      'warn client rejected: the TLS handshake has failed: peer did not return a certificate'
    ]);
    const { client } = certificates;
    const mine = { ca: certificates.ca.cert, cert: client.cert, key: client.key };
    const device = await connectAsync({ host: '127.0.0.1', port: it.port, protocol: 'mqtts', ...mine });
    await device.endAsync();
  });

  it('mentions its certificate in the log as the possible reason', async () => {
    await using it = await stage();
    const { cert, key } = it.certificate('revoked');
    await handshake(it.port, 'TLSv1.3', cert, key);
    await it.refused(1);
    assert.deepEqual(it.lines, [
      'warn client rejected: the TLS handshake has failed: the peer has closed the connection, or its certificate is not valid: no authority of the option ca has signed it, it has expired, or it is revoked'
    ]);
  });

  it('fails with an error in mosquitto_pub as well', withMosquitto, async () => {
    await using it = await stage();
    const messages: string[] = [];
    it.broker.subscribe('#', ({ topic }) => messages.push(topic));
    const publish = (version: string, { certFile, keyFile }: Partial<Certificates['client']>) => {
      const { ca } = certificates;
      const identity = certFile === undefined ? [] : ['--cert', certFile, '--key', `${keyFile}`];
      const args = [
        '-h',
        'localhost',
        '-p',
        `${it.port}`,
        '--cafile',
        ca.certFile,
        '--tls-version',
        version,
        ...identity
      ];
      return new Promise<boolean>((resolve) => {
        execFile('mosquitto_pub', [...args, '-t', 'a', '-m', 'x', '-q', '1'], { timeout: 20_000 }, (error) =>
          resolve(error === null)
        );
      });
    };
    for (const version of ['tlsv1.2', 'tlsv1.3'])
      for (const kind of REFUSED)
        assert.equal(await publish(version, it.certificate(kind)), false, `${version}, certificate: ${kind}`);
    await it.refused(6);
    assert.deepEqual(messages, []);
    assert.equal(await publish('tlsv1.3', certificates.client), true);
    assert.deepEqual(messages, ['a']);
  });
});
