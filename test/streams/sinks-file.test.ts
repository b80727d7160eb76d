import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { fileSink } from '../../adapters/streams/file/index.ts';
import type { SinkType } from '../../lib/adapter.ts';
import { beforeOpen } from '../support/before-open.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSink } from './sink-bench.ts';
import { settled } from './source-fixture.ts';

/** A sink that may write to a file without space. */
const FULL = fileSink({ folders: ['/dev'] });

describe('The file sink', () => {
  let dataDir: string;
  let files: string;
  const clock = new ManualClock(1_700_000_000_000);

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'embermq-file-sink-'));
    files = join(dataDir, 'files');
    await mkdir(files);
  });

  afterEach(() => rm(dataDir, { recursive: true }));

  type Rows = readonly Record<string, unknown>[];

  /** @returns the warnings of the sink */
  async function writeTo(type: SinkType, properties: object, ...emissions: readonly Rows[]): Promise<string[]> {
    const { emitter, warned } = await openSink(type, properties, { dataDir, clock });
    try {
      for (const rows of emissions) await emitter.push(rows);
    } finally {
      await emitter.close();
    }
    return warned;
  }

  const write = (properties: object, ...emissions: readonly Rows[]) => writeTo(fileSink(), properties, ...emissions);

  const read = (name: string) => readFile(join(files, name), 'utf8');

  it('appends a line for each output', async () => {
    await write({ path: 'a/out.txt', sendSingle: true }, [{ id: 1 }, { id: 2 }]);
    await write({ path: 'a/out.txt' }, [{ id: 3 }]);
    assert.equal(await read('a/out.txt'), '{"id":1}\n{"id":2}\n[{"id":3}]\n');
  });

  it('writes a JSON list, which it continues after a restart', async () => {
    const properties = { path: 'out.json', fileType: 'json' };
    await write(properties, [{ id: 1 }, { id: 2 }], []);
    assert.equal(await read('out.json'), '[{"id":1},{"id":2}]');
    await write({ ...properties, sendSingle: true }, [{ id: 3 }]);
    assert.deepEqual(JSON.parse(await read('out.json')), [{ id: 1 }, { id: 2 }, { id: 3 }]);
    await write({ path: 'none.json', fileType: 'json' }, []);
    await write({ path: 'none.json', fileType: 'json' }, [{ id: 1 }]);
    assert.deepEqual(JSON.parse(await read('none.json')), [{ id: 1 }]);
  });

  it('writes csv with a header once, and the columns of the first row', async () => {
    const properties = { path: 'out.csv', fileType: 'csv', hasHeader: true };
    await write(properties, [
      { id: 1, name: 'a,b' },
      { name: 'say "x"', id: 2 }
    ]);
    await write(properties, [{ id: 3, name: null }]);
    assert.equal(await read('out.csv'), 'id,name\n1,"a,b"\n2,"say ""x"""\n3,\n');
    await write({ path: 'b.csv', fileType: 'csv', delimiter: ';', fields: ['b', 'a'] }, [{ a: 1, b: 2 }]);
    assert.equal(await read('b.csv'), '2;1\n');
  });

  it('writes to a file for each value of a template', async () => {
    await write({ path: '{{.device}}.txt', sendSingle: true }, [{ device: 'a' }, { device: 'b' }, { device: 'a' }]);
    assert.equal(await read('a.txt'), '{"device":"a"}\n{"device":"a"}\n');
    assert.equal(await read('b.txt'), '{"device":"b"}\n');
  });

  it('starts a new file after a number of outputs, with the time in its name', async () => {
    const rolling = { rollingCount: 2, rollingNamePattern: 'suffix', sendSingle: true };
    await write({ path: 'out.txt', ...rolling }, [{ a: 1 }, { a: 2 }, { a: 3 }]);
    assert.deepEqual((await readdir(files)).sort(), ['out-1700000000000.txt', 'out-1700000000001.txt']);
    assert.equal(await read('out-1700000000000.txt'), '{"a":1}\n{"a":2}\n');
  });

  it('starts a new file after a time or from a size on', async () => {
    const timed = new ManualClock(5000);
    const properties = { path: 't.json', fileType: 'json', rollingInterval: 1000, rollingNamePattern: 'prefix' };
    const { emitter } = await openSink(fileSink(), { ...properties, checkInterval: 500 }, { dataDir, clock: timed });
    await emitter.push([{ a: 1 }]);
    timed.advance(1000);
    await emitter.idle();
    await emitter.push([{ a: 2 }]);
    await emitter.close();
    assert.equal(await read('5000-t.json'), '[{"a":1}]');
    assert.equal(await read('6000-t.json'), '[{"a":2}]');
    const sized = { path: 's.txt', rollingSize: 10, rollingNamePattern: 'prefix', sendSingle: true };
    await write(sized, [{ a: 1 }, { a: 2 }, { a: 3 }]);
    assert.equal(await read('1700000000000-s.txt'), '{"a":1}\n{"a":2}\n');
  });

  it('compresses files', async () => {
    await write({ path: 'z.txt', compression: 'gzip', sendSingle: true }, [{ a: 1 }, { a: 2 }]);
    assert.equal(String(gunzipSync(await readFile(join(files, 'z.txt.gz')))), '{"a":1}\n{"a":2}\n');
    await assert.rejects(write({ path: 'z.json', fileType: 'json', compression: 'gzip' }), {
      field: 'rollingNamePattern'
    });
  });

  it('stays in the folder files of the service, unless other folders are allowed', async () => {
    for (const path of ['../x', '/etc/x', '.', 'a/../../x'])
      await assert.rejects(write({ path }), { code: 'PROPERTY_INVALID', field: 'path' }, path);
    await assert.rejects(write({ path: '{{.p}}' }, [{ p: '../x' }]), { field: 'path' });
    await assert.rejects(openSink(fileSink(), { path: 'x' }), /the service has no folder/);
    const other = await mkdtemp(join(tmpdir(), 'embermq-file-sink-'));
    const { emitter } = await openSink(fileSink({ folders: [other] }), { path: join(other, 'x') }, { dataDir, clock });
    await emitter.push([]);
    await emitter.close();
    assert.equal(await readFile(join(other, 'x'), 'utf8'), '[]\n');
    await rm(other, { recursive: true });
  });

  it('fails if it cannot write, and continues with the next output', {
    skip: process.platform === 'win32'
  }, async () => {
    await symlink('/dev/full', join(files, 'full'));
    await assert.rejects(writeTo(FULL, { path: '{{.p}}' }, [{ p: 'full' }]), { code: 'ENOSPC' });
    await assert.rejects(writeTo(FULL, { path: 'full/x' }, [{}]), { code: 'EEXIST' });
    await write({ path: 'ok' }, [{}]);
    assert.equal(await read('ok'), '[{}]\n');
  });

  it('completes all other files if one cannot be completed', { skip: process.platform === 'win32' }, async () => {
    await symlink('/dev/full', join(files, 'full'));
    const { emitter } = await openSink(FULL, { path: '{{.p}}', fileType: 'json' }, { dataDir, clock });
    await assert.rejects(async () => emitter.push([{ p: 'full' }]), { code: 'ENOSPC' });
    await emitter.push([{ p: 'ok' }]);
    await assert.rejects(emitter.close(), { code: 'ENOSPC' });
    assert.equal(await read('ok'), '[{"p":"ok"}]');
  });

  it('continues completing old files after one failed', { skip: process.platform === 'win32' }, async () => {
    await symlink('/dev/full', join(files, 'full'));
    const timed = new ManualClock(5000);
    const properties = { path: '{{.p}}', fileType: 'json', rollingInterval: 1000, checkInterval: 1000 };
    const { emitter } = await openSink(FULL, properties, { dataDir, clock: timed });
    await assert.rejects(async () => emitter.push([{ p: 'full' }]), { code: 'ENOSPC' });
    await emitter.push([{ p: 'a' }]);
    timed.advance(500);
    await emitter.push([{ p: 'b' }]);
    timed.advance(500);
    for (let i = 0; i < 10_000 && !(await read('b')).endsWith(']'); i++) {
      if (timed.pending > 0) timed.advance(1000); // the timer of the next check is set when the last check has ended
      await settled();
    }
    assert.equal(await read('a'), '[{"p":"a"}]');
    assert.equal(await read('b'), '[{"p":"b"}]');
    await emitter.close();
    assert.equal(timed.pending, 0);
  });

  it('writes the header of a csv file after a failed write', async () => {
    const { emitter } = await openSink(
      fileSink(),
      { path: 'h.csv', fileType: 'csv', hasHeader: true },
      { dataDir, clock }
    );
    const bad = { toJSON: () => assert.fail('no JSON') };
    await assert.rejects(async () => emitter.push([{ a: bad }]));
    await emitter.push([{ a: 1 }]);
    await emitter.close();
    assert.equal(await read('h.csv'), 'a\n1\n');
  });

  it('writes nothing behind links that lead out of the folder', { skip: process.platform === 'win32' }, async () => {
    const other = await mkdtemp(join(tmpdir(), 'embermq-file-sink-'));
    await symlink(other, join(files, 'folder'));
    await symlink(join(other, 'missing'), join(files, 'nothing'));
    await symlink(join(files, 'inside'), join(files, 'link'));
    const outside =
      /property path must be a path in the folder files of the stream service, or in a folder of the option folders; got .*, which is a link to/;
    await assert.rejects(write({ path: 'folder/x' }, [{}]), outside);
    await assert.rejects(write({ path: 'folder/a/b/x' }, [{}]), outside);
    await assert.rejects(write({ path: '{{.p}}' }, [{ p: 'folder/x' }]), outside);
    await assert.rejects(write({ path: 'nothing' }, [{}]), { code: 'FILE_OUTSIDE' });
    await assert.rejects(write({ path: '{{.p}}' }, [{ p: 'nothing' }]), { code: 'FILE_OUTSIDE' });
    assert.deepEqual(await readdir(other), []);
    await writeFile(join(files, 'inside'), '');
    await write({ path: 'link' }, [{ a: 1 }]);
    assert.equal(await read('inside'), '[{"a":1}]\n');
    await rm(other, { recursive: true });
  });

  it('creates no file behind a folder that another process replaces with a link at that moment', {
    skip: process.platform !== 'linux'
  }, async () => {
    const shared = await mkdtemp(join(tmpdir(), 'embermq-file-sink-'));
    const other = await mkdtemp(join(tmpdir(), 'embermq-file-sink-'));
    await mkdir(join(shared, 'rows'));
    using _hook = beforeOpen(async () => {
      await rename(join(shared, 'rows'), join(shared, 'moved'));
      await symlink(other, join(shared, 'rows'));
    });
    const path = join(shared, 'rows', 'x');
    await assert.rejects(writeTo(fileSink({ folders: [shared] }), { path }, [{}]), /x, whose folder was replaced/);
    assert.deepEqual([await readdir(other), await readdir(join(shared, 'moved'))], [[], []]);
    await rm(other, { recursive: true });
    await rm(shared, { recursive: true });
  });

  it('refuses to write to a pipe, because a pipe without a reader blocks the process', {
    skip: process.platform === 'win32'
  }, async () => {
    execFileSync('mkfifo', [join(files, 'out')]);
    await assert.rejects(write({ path: 'out' }, [{}]), { code: 'FILE_INVALID', message: /out is a pipe/ });
  });

  it('names the file in errors of the file system', { skip: process.platform === 'win32' }, async () => {
    await mkdir(join(files, 'folder'));
    await assert.rejects(write({ path: 'folder' }, [{}]), ({ code, message }: NodeJS.ErrnoException) => {
      assert.equal(code, 'EISDIR');
      assert.match(message, /files\/folder/);
      return true;
    });
  });

  it('never writes to plugins, their files, schemas and reserved folders, whatever is allowed', async () => {
    const store = await mkdtemp(join(tmpdir(), 'embermq-file-sink-'));
    const all = fileSink({ folders: ['/', dataDir], reserved: [store] });
    for (const place of [
      'plugins/functions/x.mjs',
      'plugins/list.json',
      'etc/sources/x.yaml',
      'schemas/protobuf/x.proto'
    ])
      await assert.rejects(writeTo(all, { path: join(dataDir, place) }, [{}]), /not in a folder of the broker/, place);
    await assert.rejects(writeTo(all, { path: join(store, '000003.log') }, [{}]), /not in a folder of the broker/);
    await mkdir(join(dataDir, 'plugins'));
    await symlink(join(dataDir, 'plugins'), join(files, 'p'));
    await assert.rejects(writeTo(all, { path: 'p/functions/x.mjs' }, [{}]), { field: 'path' });
    assert.deepEqual([await readdir(store), await readdir(join(dataDir, 'plugins'))], [[], []]);
    await writeTo(all, { path: join(dataDir, 'rows.txt') }, [{ a: 1 }]);
    assert.equal(await readFile(join(dataDir, 'rows.txt'), 'utf8'), '[{"a":1}]\n');
    await rm(store, { recursive: true });
  });

  it('warns once of a file that an earlier release wrote, and leaves it unchanged', async () => {
    await writeFile(join(dataDir, 'rows.txt'), 'old\n');
    const [text, ...others] = await write({ path: 'rows.txt' }, [{ a: 1 }]);
    assert.equal(
      text,
      `stream rule r1 writes to ${join(files, 'rows.txt')} from now on; ${join(dataDir, 'rows.txt')}, to which it has written before, stays as it is`
    );
    assert.deepEqual(others, []);
    assert.deepEqual(await write({ path: 'rows.txt' }, [{ a: 2 }]), []);
    assert.equal(await readFile(join(dataDir, 'rows.txt'), 'utf8'), 'old\n');
  });

  it('creates files and folders that only its user can access', { skip: process.platform === 'win32' }, async () => {
    const before = process.umask(0);
    try {
      await write({ path: 'a/b/out.txt' }, [{ a: 1 }]);
    } finally {
      process.umask(before);
    }
    const modes = await Promise.all(['a', 'a/b', 'a/b/out.txt'].map((name) => stat(join(files, name))));
    assert.deepEqual(
      modes.map(({ mode }) => mode & 0o777),
      [0o700, 0o700, 0o600]
    );
  });
});
