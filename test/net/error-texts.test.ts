import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import { Writable } from 'node:stream';
import { describe, it } from 'node:test';
import { openError } from '../../adapters/level/open-error.ts';
import { listen, tls, unix, ws } from '../../adapters/net/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { makeCertificates } from '../support/certificates.ts';

describe('an error about an option or a file', () => {
  it('refuses an empty path of a Unix socket with OPTION_INVALID', () => {
    assert.throws(() => unix(''), { code: 'OPTION_INVALID', message: /path: expected the path of a socket/ });
  });

  it('refuses an origin with a wildcard, which would match nothing, with OPTION_INVALID', () => {
    for (const origin of ['https://*.example', 'https://*'])
      assert.throws(() => ws({ port: 0, origins: [origin] }), {
        code: 'OPTION_INVALID',
        message: /without wildcards, or a function/
      });
    ws({ port: 0, origins: ['*'] });
  });

  it('reports an origins function that returns a promise with OPTION_INVALID, and refuses the client', async () => {
    await using kit = await createTestBroker();
    const origins = async () => true;
    const { port } = await listen(kit.broker, ws({ port: 0, origins: origins as never }));
    const failed = kit.broker.nextEvent('error');
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket' };
    const [response] = await once(get({ port, host: '127.0.0.1', path: '/mqtt', headers }), 'response');
    assert.equal(response.statusCode, 403);
    response.resume();
    const { error } = await failed;
    assert.match(error.message, /origins: expected a function that returns true or false at once/);
  });

  it('rejects an unreadable stream with STREAM_INVALID', async () => {
    await using kit = await createTestBroker();
    assert.throws(() => kit.broker.handle(new Writable() as never), { code: 'STREAM_INVALID' });
  });

  it('rejects a QoS of 3 in client.subscribe with OPTION_INVALID, and the client stays connected', async () => {
    await using kit = await createTestBroker();
    const client = await kit.broker.connect();
    for (const filter of ['a', { topic: 'a', qos: 3 as never }])
      await assert.rejects(client.subscribe(filter, { qos: 3 as never }), { code: 'OPTION_INVALID', message: /qos/ });
    assert.deepEqual(await client.subscribe('a', { qos: 2 }), [2]);
    await client.disconnect();
  });

  it('names the command that installs the missing package level', () => {
    const error = openError('data', new Error("Cannot find package 'level' imported from app.cjs"));
    assert.match(error.message, /npm install level/);
  });

  it('names the files of a certificate and a key that are swapped or do not match, with TLS_INVALID', async () => {
    using certificates = makeCertificates();
    await using kit = await createTestBroker();
    const { certFile, keyFile } = certificates.server;
    const otherFile = certificates.client.keyFile;
    const start = (names: { certFile: string; keyFile: string }) =>
      Promise.resolve(listen(kit.broker, tls({ port: 0, ...names })));
    await assert.rejects(start({ certFile, keyFile: otherFile }), (error: Error) =>
      [certFile, otherFile, 'does not belong'].every((part) => error.message.includes(part))
    );
    await assert.rejects(start({ certFile: keyFile, keyFile: certFile }), (error: Error) =>
      [certFile, keyFile, 'swapped'].every((part) => error.message.includes(part))
    );
  });
});
