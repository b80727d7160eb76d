import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { managementApi } from '../../adapters/management/index.ts';
import { type Broker, createBroker, memoryStore } from '../../lib/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { CommandProcess } from './process.ts';
import { testShell } from './shell.ts';

describe('ctl over HTTPS', () => {
  let certificates: Certificates;
  let broker: Broker;
  let server: Server;
  let url: string;

  before(async () => {
    certificates = makeCertificates();
    broker = await createBroker({ store: memoryStore() }).start();
    await broker.applications.create({ id: 'me', secret: 'a secret' });
    const { cert, key } = certificates.server;
    server = createServer({ cert, key }, managementApi(broker, { prefix: '/api/v4' }).node).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/api/v4`;
  });

  after(async () => {
    server.closeAllConnections();
    server.close();
    await broker.stop();
    certificates[Symbol.dispose]();
  });

  async function ctl(...args: string[]) {
    const shell = testShell();
    shell.env.EMBERMQ_APP = 'me:a secret';
    const code = await runCommand(['ctl', '--url', url, ...args], shell);
    return { code, out: shell.out(), err: shell.err() };
  }

  it('trusts the certificates of --ca, for requests with and without a body, and for streams', async () => {
    const ca = ['--ca', certificates.ca.certFile];
    await broker.connect({ clientId: 'a/b' });
    assert.equal(JSON.parse((await ctl('clients', ...ca)).out).clientid, 'a/b');
    assert.equal((await ctl('pub', 'ü', 'ä', '-r', ...ca)).code, 0);
    assert.equal(JSON.parse((await ctl('retained', 'show', 'ü', ...ca)).out).payload, 'ä');
    assert.deepEqual(await ctl('clients', 'kick', 'a/b', ...ca), { code: 0, out: '', err: '' });
    assert.deepEqual((await ctl('clients', 'kick', 'a/b', ...ca)).err, 'embermq: there is no client "a/b"\n');
    assert.match((await ctl('backup', '-', ...ca)).out, /"records":\d+\}\n$/);
  });

  it('ends at once, in a separate process', async () => {
    const command = new CommandProcess(
      ['ctl', 'call', 'GET', '/openapi.json', '--url', url, '--ca', certificates.ca.certFile],
      {
        EMBERMQ_APP: 'me:a secret'
      }
    );
    assert.equal(await command.end(), 0, command.stderr);
    assert.equal(JSON.parse(command.stdout).openapi, '3.1.0');
  });

  it('names the remedy if the certificate is not trusted, with and without --ca', async () => {
    for (const args of [[], ['--ca', certificates.stranger.certFile]]) {
      const { code, err } = await ctl('clients', ...args);
      assert.equal(code, 1);
      assert.match(err, /cannot be reached: .*certificate.*; to trust it, name its file, .* with --ca FILE\n$/);
      assert.ok(!err.includes('a secret'));
    }
  });

  it('names the remedy if the certificate is for another name', async () => {
    const other = url.replace('127.0.0.1', '127.0.0.2');
    const elsewhere = createServer(
      { cert: certificates.server.cert, key: certificates.server.key },
      (_, response) => void response.end()
    ).listen(0, '127.0.0.2');
    await once(elsewhere, 'listening');
    const port = (elsewhere.address() as AddressInfo).port;
    const { err } = await ctl(
      'clients',
      '--ca',
      certificates.ca.certFile,
      '--url',
      other.replace(/:\d+\//, `:${port}/`)
    );
    elsewhere.close();
    assert.match(err, /; use a name or address of the certificate in --url\n$/);
  });

  it('refuses a file without a certificate', async () => {
    const file = join(certificates.directory, 'empty.pem');
    writeFileSync(file, 'nothing');
    assert.deepEqual(await ctl('clients', '--ca', file), {
      code: 2,
      out: '',
      err: `embermq: --ca: ${file} has no certificate (PEM)\n`
    });
    assert.match((await ctl('clients', '--ca', `${file}.missing`)).err, /^embermq: cannot read /);
  });

  it('does not wait longer than --timeout', async () => {
    const silent = createServer(
      { cert: certificates.server.cert, key: certificates.server.key },
      () => undefined
    ).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const { code, err } = await ctl('clients', '--ca', certificates.ca.certFile, '--url', address, '--timeout', '0.2');
    assert.deepEqual([code, err], [1, `embermq: ${address}/api/v4 did not answer within 0.2 seconds\n`]);
    silent.closeAllConnections();
    silent.close();
  });
});
