import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { managementApi } from '../../adapters/management/index.ts';
import { type Broker, createBroker, importStore, memoryStore } from '../../lib/index.ts';
import { serve } from '../support/management.ts';
import { CommandProcess } from './process.ts';
import { testShell } from './shell.ts';

const APP = { EMBERMQ_APP: 'me:a secret' };

let broker: Broker;
let server: Awaited<ReturnType<typeof serve>>;
let url: string;
let folder: string;

before(async () => {
  broker = await createBroker({ store: memoryStore() }).start();
  await broker.applications.create({ id: 'me', secret: 'a secret' });
  server = await serve(managementApi(broker, { prefix: '/api/v4' }).node);
  url = `http://127.0.0.1:${server.port}/api/v4`;
});

after(async () => {
  await server[Symbol.asyncDispose]();
  await broker.stop();
});

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ctl-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Run `embermq ctl` in this process. */
async function ctl(args: readonly string[], shell = testShell(), at = url) {
  Object.assign(shell.env, APP);
  const code = await runCommand(['ctl', '--url', at, ...args], shell);
  return { code, out: shell.out(), err: shell.err() };
}

/** The rows that it prints. */
function rowsIn(out: string): Record<string, unknown>[] {
  return out.trim() === ''
    ? []
    : out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
}

describe('ctl backup', () => {
  it('writes a file that can be imported and that only its owner can read, in a separate process', async () => {
    await broker.publish('kept', 'yes', { retain: true });
    const file = join(folder, 'backup.jsonl');
    const command = new CommandProcess(['ctl', 'backup', file, '--url', url], APP);
    assert.equal(await command.end(), 0, command.stderr);
    assert.match(command.stderr, /backup\.jsonl: \d+ lines\n$/);
    assert.equal(command.stdout, '');
    assert.deepEqual(readdirSync(folder), ['backup.jsonl']);
    if (process.platform !== 'win32') assert.equal(statSync(file).mode & 0o777, 0o600);
    const store = memoryStore();
    await importStore(store, readFileSync(file, 'utf8').trimEnd().split('\n'));
    const restored = await createBroker({ store }).start();
    assert.equal(restored.retained.get('kept')?.payload.toString(), 'yes');
    await restored.stop();
  });

  it('replaces a file only with --force, and only a regular file', async () => {
    const file = join(folder, 'backup.jsonl');
    writeFileSync(file, 'mine');
    const refused = await ctl(['backup', file]);
    assert.deepEqual([refused.code, refused.err], [1, `embermq: ${file} exists; --force replaces it\n`]);
    assert.equal(readFileSync(file, 'utf8'), 'mine');
    assert.equal((await ctl(['backup', file, '--force'])).code, 0);
    assert.match(readFileSync(file, 'utf8'), /^\{"kind":/);
    const link = join(folder, 'link');
    symlinkSync(file, link);
    for (const other of [folder, link]) {
      const { code, err } = await ctl(['backup', other, '--force']);
      assert.deepEqual([code, err], [1, `embermq: ${other} is not a regular file; "-" is standard output\n`]);
    }
    const { code, err } = await ctl(['backup', join(folder, 'missing', 'x')]);
    assert.equal(code, 1);
    assert.match(err, /^embermq: cannot write .*ENOENT/);
  });

  it('writes to standard output if the file is -', async () => {
    for (const more of [[], ['--limit', '1']]) {
      const { code, out } = await ctl(['backup', '-', ...more]);
      assert.equal(code, 0);
      assert.ok(rowsIn(out).length > 1);
      assert.equal(rowsIn(out).at(-1)?.records, rowsIn(out).length);
    }
  });

  for (const [what, end] of [
    ['is lost', (response) => response.socket?.destroy()],
    ['ends without the last line', (response) => response.end()],
    ['ends within a line', (response) => response.end('{"kind":"c')],
    ['ends with a line that is not a record', (response) => response.end('null\n')]
  ] as [string, (response: Parameters<RequestListener>[1]) => void][])
    it(`leaves no file if the connection ${what}`, async () => {
      await using broken = await serve((_, response) => {
        response.writeHead(200, { 'content-type': 'application/jsonl' });
        response.write('{"kind":"a"}\n{"kind":"b"}\n', () => end(response));
      });
      const file = join(folder, 'backup.jsonl');
      writeFileSync(file, 'the one before');
      const { code, err } = await ctl(['backup', file, '--force'], testShell(), `http://127.0.0.1:${broken.port}/api`);
      assert.equal(code, 1);
      assert.match(err, /ended early/);
      assert.deepEqual(readdirSync(folder), ['backup.jsonl']);
      assert.equal(readFileSync(file, 'utf8'), 'the one before');
    });

  it('leaves no file if it is interrupted', async () => {
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    await using slow = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'application/jsonl' });
      response.write('{"kind":"a"}\n');
      begin();
    });
    const shell = testShell();
    const ended = ctl(['backup', join(folder, 'x')], shell, `http://127.0.0.1:${slow.port}/api`);
    await begun;
    shell.signal('SIGINT');
    assert.equal((await ended).code, 130);
    assert.deepEqual(readdirSync(folder), []);
  });
});

describe('ctl export and import', () => {
  it('writes and reads the configuration set at run time', async () => {
    await broker.access.acl.set({ topic: 'exported/#', action: 'pub', access: 'deny' });
    const file = join(folder, 'configuration.json');
    assert.equal((await ctl(['export', file])).code, 0);
    assert.equal((await ctl(['export', file])).code, 1);
    const { out } = await ctl(['export']);
    assert.equal(JSON.parse(out).format, 'embermq-configuration');
    await broker.access.acl.delete('all', 'exported/#');
    const imported = await ctl(['import', file]);
    assert.deepEqual([imported.code, imported.err], [0, '']);
    assert.equal(rowsIn(imported.out).find(({ section }) => section === 'acl')?.added, 1);
    const document = JSON.parse(readFileSync(file, 'utf8'));
    const shell = testShell();
    shell.stdin.end(JSON.stringify({ ...document, sections: { acl: [] } }));
    const replaced = await ctl(['import', '-', '--mode', 'replace'], shell);
    assert.deepEqual(rowsIn(replaced.out), [{ section: 'acl', added: 0, replaced: 0, removed: 1, skipped: 0 }]);
  });

  it('refuses a file that is missing, is not JSON, or is something else', async () => {
    const file = join(folder, 'x.json');
    assert.match((await ctl(['import', file])).err, /^embermq: cannot read /);
    writeFileSync(file, '{');
    assert.match((await ctl(['import', file])).err, /x\.json is not JSON: /);
    writeFileSync(file, '{"format":"other","version":1,"sections":{}}');
    const { code, err } = await ctl(['import', file]);
    assert.equal(code, 1);
    assert.match(err, /"format" must be "embermq-configuration"/);
  });

  it('names the entries that were not imported, after the sections', async () => {
    await using half = await serve((_, response) => {
      const counts = { added: 1, replaced: 0, removed: 0, skipped: 0 };
      const errors = [{ section: 'acl', entry: 'a/#', message: 'the store has failed' }];
      response.end(JSON.stringify({ code: 0, data: { sections: { acl: counts }, errors } }));
    });
    const shell = testShell();
    shell.stdin.end('{}');
    shell.stdout.isTTY = true;
    const { code, out, err } = await ctl(['import', '-'], shell, `http://127.0.0.1:${half.port}/api`);
    assert.equal(code, 1);
    assert.match(out, /^section .*\nacl +1 /);
    assert.equal(err, 'embermq: some entries were not imported: acl: a/#: the store has failed\n');
  });
});

describe('ctl events in a separate process', () => {
  it('prints lines of JSON as they arrive, and ends without an error on SIGINT', async () => {
    const command = new CommandProcess(['ctl', 'events', 'client.connected', '--url', url], APP);
    const printed = once(command.child.stdout as NonNullable<typeof command.child.stdout>, 'data');
    let isPrinted = false;
    void printed.then(() => {
      isPrinted = true;
    });
    while (!isPrinted && command.child.exitCode === null) {
      await broker.connect({ clientId: 'again' }); // the stream may not have begun yet
      await new Promise((resolve) => setImmediate(resolve));
    }
    const [first] = rowsIn(command.stdout.slice(0, command.stdout.indexOf('\n') + 1));
    assert.deepEqual([first.event, (first.client as { clientid: string }).clientid], ['client.connected', 'again']);
    command.child.kill('SIGINT');
    assert.equal(await command.end(), 0, command.stderr);
  });
});
