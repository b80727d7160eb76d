import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { readyPorts, testShell } from './shell.ts';

describe('serve with TLS', () => {
  let certificates: Certificates;
  const shell = testShell();
  let code: Promise<number>;
  let ready: Record<string, number>;

  before(async () => {
    certificates = makeCertificates();
    const { certFile, keyFile } = certificates.server;
    const ports = ['--mqtt-port', 'off', '--ws-port', 'off', '--mqtts-port', '0', '--wss-port', '0'];
    const files = ['--cert', certFile, '--key', keyFile, '--ca', certificates.ca.certFile];
    code = runCommand(['serve', '--memory', ...ports, ...files], shell);
    ready = await readyPorts(shell, code);
  });

  after(async () => {
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
    certificates[Symbol.dispose]();
  });

  /** Publish with QoS 1 to one of the ports. */
  async function pub(args: string[]): Promise<{ code: number; err: string }> {
    const own = testShell();
    return { code: await runCommand(['pub', '-t', 'a', '-m', 'x', '-q', '1', ...args], own), err: own.err() };
  }

  it('prints its ports as mqtts and wss', () => {
    assert.deepEqual(Object.keys(ready), ['mqtts', 'wss', 'pid']);
  });

  it('accepts clients with a certificate of the authority, over TCP and WebSocket', async () => {
    const { certFile, keyFile } = certificates.client;
    const files = ['--ca', certificates.ca.certFile, '--cert', certFile, '--key', keyFile];
    assert.deepEqual(await pub(['-p', String(ready.mqtts), ...files]), { code: 0, err: '' });
    assert.deepEqual(await pub(['-L', `wss://localhost:${ready.wss}`, ...files]), { code: 0, err: '' });
  });

  it('refuses clients without a certificate', async () => {
    assert.equal((await pub(['-p', String(ready.mqtts), '--ca', certificates.ca.certFile])).code, 1);
  });

  /** Check that a client of the authority is accepted. */
  async function isServed(): Promise<boolean> {
    const { certFile, keyFile } = certificates.client;
    const files = ['--ca', certificates.ca.certFile, '--cert', certFile, '--key', keyFile];
    return (await pub(['-p', String(ready.mqtts), ...files])).code === 0;
  }

  /** Wait until standard error contains a line that matches for both listeners, for each reload. */
  async function reported(pattern: RegExp, reloads = 1): Promise<string> {
    let text = '';
    while ((text.match(pattern)?.length ?? 0) < 2 * reloads) {
      text += shell.err();
      if (shell.stderr.readableLength === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    return text;
  }

  it('reloads the certificates of all TLS listeners at SIGHUP, and reports invalid ones and keeps the previous ones', async () => {
    const good = readFileSync(certificates.server.certFile);
    const other = makeCertificates(true);
    try {
      writeFileSync(certificates.server.certFile, 'no certificate');
      shell.hangUp();
      const fault = await reported(/^SIGHUP: certificates of listener .*; the previous certificates stay in use$/gm);
      assert.deepEqual(fault.match(/listener \w+/g), ['listener tls', 'listener wss']);
      assert.equal(await isServed(), true);
      // Certificates of an authority that the client does not know.
      writeFileSync(certificates.server.certFile, readFileSync(other.server.certFile));
      const key = readFileSync(certificates.server.keyFile);
      writeFileSync(certificates.server.keyFile, readFileSync(other.server.keyFile));
      for (let n = 0; n < 5; n++) shell.hangUp(); // the last four arrive during the first reload and cause one more reload together
      await reported(/^SIGHUP: certificates of listener \S+ reloaded$/gm, 2);
      assert.equal(await isServed(), false);
      writeFileSync(certificates.server.certFile, good);
      writeFileSync(certificates.server.keyFile, key);
      shell.hangUp();
      await reported(/^SIGHUP: certificates of listener \S+ reloaded$/gm);
    } finally {
      writeFileSync(certificates.server.certFile, good);
      other[Symbol.dispose]();
    }
    assert.equal(await isServed(), true);
  });

  /** Files that may replace a certificate, and the error for each. */
  const REPLACEMENTS: readonly [string, (path: string) => void, RegExp][] = [
    [
      'named pipe',
      (path) => execFileSync('mkfifo', [path]),
      /: it is a pipe, a socket or a device; a regular file is needed/
    ],
    ['directory', (path) => mkdirSync(path), /: it is a directory; a regular file is needed/],
    ['link to itself, which cannot be opened', (path) => symlinkSync(path, path), /ELOOP: .* open '/]
  ];
  for (const [what, put, fault] of REPLACEMENTS)
    it(`TLS_INVALID: SIGHUP names a certificate file that has become a ${what}, and the previous certificate stays in use`, async () => {
      const { certFile } = certificates.server;
      renameSync(certFile, `${certFile}.good`);
      try {
        put(certFile);
        shell.hangUp();
        const told = await reported(/^SIGHUP: certificates of listener .*; the previous certificates stay in use$/gm);
        const lines = told.trimEnd().split('\n');
        assert.equal(lines.length, 2);
        for (const line of lines) {
          assert.match(line, fault);
          assert.ok(line.includes(certFile), line);
        }
        assert.equal(await isServed(), true);
      } finally {
        rmSync(certFile, { recursive: true });
        renameSync(`${certFile}.good`, certFile);
      }
      shell.hangUp();
      await reported(/^SIGHUP: certificates of listener \S+ reloaded$/gm);
      assert.equal(await isServed(), true);
    });

  it('fails for a client that does not know the authority, except with --insecure', async () => {
    const { certFile, keyFile } = certificates.client;
    const own = ['-p', String(ready.mqtts), '--cert', certFile, '--key', keyFile];
    const refused = await pub(own);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /^embermq: cannot reach mqtts:\/\/localhost:\d+: .*certificate/);
    assert.equal((await pub([...own, '--insecure'])).code, 0);
  });
});
