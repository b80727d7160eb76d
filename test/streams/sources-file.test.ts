import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileSource } from '../../adapters/streams/file/index.ts';
import { records } from '../../adapters/streams/file/lines.ts';
import type { Column, SourceType } from '../../lib/streams/types.ts';
import { beforeOpen } from '../support/before-open.ts';
import { ALL, Kept, makeHub, settled, stream } from './source-fixture.ts';

/** The folder of the service, which contains the folder for files. */
let root: string;
let dataDir: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'embermq-file-source-'));
  dataDir = join(root, 'files');
  await mkdir(dataDir);
});

afterEach(() => rm(root, { recursive: true }));

/** Open a table of type file, which is read when its end is reached. */
function open(
  properties: Record<string, unknown>,
  {
    datasource = 'rows',
    kind = 'stream',
    columns,
    type = fileSource() as SourceType,
    folder = root as string | null
  }: {
    datasource?: string;
    kind?: 'stream' | 'table';
    columns?: readonly Column[];
    type?: SourceType;
    folder?: string | null;
  } = {}
) {
  let ends = 0;
  const observed: SourceType = {
    ...type,
    open: (setup) =>
      (type.open as NonNullable<SourceType['open']>)(
        new Proxy(setup, {
          get: (target, name) =>
            name === 'end'
              ? () => {
                  target.end();
                  ends++;
                }
              : Reflect.get(target, name)
        })
      )
  };
  const fixture = makeHub([observed], {
    dataDir: folder ?? undefined,
    sourceConfig: { file: { default: properties } }
  });
  const kept = new Kept();
  const attachment = fixture.hub.attach(stream({ TYPE: 'file', DATASOURCE: datasource }, columns, kind), ALL, kept);
  return {
    ...fixture,
    kept,
    attachment,
    /** Wait until everything has been read a given number of times. */
    async read(times = 1) {
      await attachment.opened;
      while (ends < times) await settled();
    },
    get ends() {
      return ends;
    }
  };
}

const write = (name: string, text: string) => writeFile(join(dataDir, name), text);

describe('the source file', () => {
  it('emits the rows of a JSON file', async () => {
    await write('rows', '[{"n":1},{"n":2}]');
    const { kept, read, attachment } = open({});
    await read();
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
    assert.equal(kept.rows[0].meta('file'), join(dataDir, 'rows'));
    assert.equal(attachment.connection.status, 1);
    await attachment.detach();
  });

  it('completes a table at the end of the file', async () => {
    await write('rows', '[{"n":1},{"n":2}]');
    const { kept, read } = open({}, { kind: 'table' });
    await read();
    assert.deepEqual(kept.table, [{ n: 1 }, { n: 2 }]);
    assert.equal(kept.tables.length, 1);
  });

  it('emits the records of a CSV file', async () => {
    await write('rows', '\ufeffskipped\nid,text\r\n1,"a, ""b"""\r\n2,"two\nlines",more\n\nlast');
    const { kept, read } = open(
      { fileType: 'csv', hasHeader: true, ignoreStartLines: 1, ignoreEndLines: 1 },
      {
        columns: [
          { name: 'id', type: { type: 'bigint' } },
          { name: 'text', type: { type: 'string' } }
        ]
      }
    );
    await read();
    assert.deepEqual(kept.values, [
      { id: 1n, text: 'a, "b"' },
      { id: 2n, text: 'two\nlines' }
    ]);
  });

  it('names the columns of a CSV file', async () => {
    await write('rows', '1;x\n2;y');
    const named = open({ fileType: 'csv', delimiter: ';', columns: ['a'] });
    await named.read();
    assert.deepEqual(named.kept.values, [{ a: '1' }, { a: '2' }]);
    const numbered = open({ fileType: 'csv', delimiter: ';' });
    await numbered.read();
    assert.deepEqual(numbered.kept.values[0], { col0: '1', col1: 'x' });
  });

  it('decodes each line of a file of lines, including a large one', async () => {
    await write('rows', Array.from({ length: 20_000 }, (_, n) => `{"n":${n}}`).join('\n'));
    const { kept, read } = open({ fileType: 'lines' });
    await read();
    assert.equal(kept.rows.length, 20_000);
    assert.deepEqual(kept.values.at(-1), { n: 19_999 });
  });

  it('skips lines that are too long, and continues', async () => {
    await write('rows', `{"n":1}\n{"n":"${'x'.repeat(300_000)}"}\n{"n":3}\nno JSON\n{"n":4}`);
    const { kept, read } = open({ fileType: 'lines', maxLineBytes: 100 });
    await read();
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 3 }, { n: 4 }]);
    assert.match(kept.errors[0], /line 2 has more than 100 bytes and is left out$/);
    assert.match(kept.errors[1], /no JSON/);
  });

  it('refuses a JSON file that is too large', async () => {
    await write('rows', '[{"n":1}]');
    const { kept, read } = open({ maxFileBytes: 5 });
    await read();
    assert.match(kept.errors[0], /has more than 5 bytes \(maxFileBytes\)/);
  });

  it('skips a record that is too long because its quotation mark is not closed', async () => {
    await write('rows', `1\n"${'x\n'.repeat(100)}3`);
    const { kept, read } = open({ fileType: 'csv', maxLineBytes: 50, columns: ['a'] });
    await read();
    assert.match(
      kept.errors[0],
      /rows: a record has more than 50 bytes and is left out; is a quotation mark not closed\?$/
    );
    assert.deepEqual([kept.values[0], kept.values.at(-1)], [{ a: '1' }, { a: '3' }]);
  });

  it('reads a record in time proportional to its lines', async () => {
    async function* lines(first: string) {
      yield Buffer.from(first);
      for (let i = 0; i < 200_000; i++) yield Buffer.from('');
    }
    const cpuUs = async (first: string) => {
      const before = process.cpuUsage().user;
      const found: number[] = [];
      for await (const record of records('rows', lines(first), 1e6, assert.fail)) found.push(record.length);
      return { us: process.cpuUsage().user - before, found };
    };
    const [apart, joined] = [await cpuUs('a'), await cpuUs('"')];
    assert.deepEqual([apart.found, joined.found], [[1], [200_001]]);
    assert.ok(joined.us < 10 * apart.us, `${joined.us} us instead of about ${apart.us}`);
  });

  it('refuses to read a pipe, which may have no writer', { skip: process.platform === 'win32' }, async () => {
    execFileSync('mkfifo', [join(dataDir, 'rows')]);
    for (const fileType of ['json', 'lines']) {
      const { kept, read, attachment } = open({ fileType });
      await read();
      assert.deepEqual(kept.errors, [`${join(dataDir, 'rows')} is not a regular file`]);
      await attachment.detach();
    }
  });

  it('keeps a file that was replaced while it was read, instead of deleting it', async () => {
    await write('rows', '{"n":1}\n{"n":2}');
    const { kept, clock, read } = open({ fileType: 'lines', sendInterval: 10, actionAfterRead: 1 });
    while (clock.pending === 0) await settled();
    await write('new', '{"n":3}');
    await rename(join(dataDir, 'new'), join(dataDir, 'rows'));
    clock.advance(10);
    while (clock.pending === 0) await settled();
    clock.advance(10);
    await read();
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
    assert.match(kept.errors[0], /rows was changed while it was read, and is kept$/);
    assert.deepEqual(await readdir(dataDir), ['rows']);
  });

  it('waits between rows', async () => {
    await write('rows', '[{"n":1},{"n":2}]');
    const { kept, clock, read, attachment } = open({ sendInterval: 10 });
    await attachment.opened;
    while (clock.pending === 0) await settled();
    assert.deepEqual(kept.values, []);
    clock.advance(10);
    while (clock.pending === 0) await settled();
    assert.deepEqual(kept.values, [{ n: 1 }]);
    clock.advance(10);
    await read();
    assert.equal(kept.rows.length, 2);
  });

  it('waits while a rule has no room', async () => {
    await write('rows', '{"n":1}\n{"n":2}');
    const { kept, read, attachment } = open({ fileType: 'lines' });
    attachment.setFull(true);
    await attachment.opened;
    for (let i = 0; i < 20; i++) await settled();
    assert.deepEqual(kept.values, []);
    attachment.setFull(false);
    await read();
    assert.equal(kept.rows.length, 2);
  });

  it('can be closed while it waits', async () => {
    await write('rows', '[{"n":1},{"n":2}]');
    const { clock, attachment } = open({ sendInterval: 10 });
    await attachment.opened;
    while (clock.pending === 0) await settled();
    await attachment.detach();
    assert.equal(clock.pending, 0);
  });

  it('reads files of a folder in the order of their names, again in each interval', async () => {
    await mkdir(join(dataDir, 'rows'));
    await write('rows/b', '{"n":2}');
    await write('rows/a', '{"n":1}');
    const { kept, clock, read, attachment } = open({ interval: '1s' });
    await read();
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 2 }]);
    while (clock.pending === 0) await settled();
    clock.advance(1000);
    await read(2);
    assert.equal(kept.rows.length, 4);
    await attachment.detach();
    assert.equal(clock.pending, 0);
  });

  it('watches a folder for files that are new or have changed', async () => {
    await mkdir(join(dataDir, 'rows'));
    await write('rows/a', '{"n":1}');
    const { kept, clock, read, attachment } = open({ interval: 1000, watch: true });
    await read();
    await write('rows/a', '{"n":10}');
    await write('rows/b', '{"n":2}');
    for (let times = 2; times < 4; times++) {
      while (clock.pending === 0) await settled();
      clock.advance(1000);
      await read(times);
    }
    assert.deepEqual(kept.values, [{ n: 1 }, { n: 10 }, { n: 2 }]);
    await attachment.detach();
  });

  it('deletes or moves files after reading them', async () => {
    await write('rows', '{}');
    await open({ actionAfterRead: 2, moveTo: 'done' }).read();
    assert.deepEqual(await readdir(dataDir), ['done']);
    assert.deepEqual(await readdir(join(dataDir, 'done')), ['rows']);
    await open({ actionAfterRead: 1, path: 'done' }).read();
    assert.deepEqual(await readdir(join(dataDir, 'done')), []);
  });

  it('refuses a missing file, unless it is checked repeatedly', async () => {
    await assert.rejects(open({}).attachment.opened, { message: `file ${join('files', 'rows')} not exist` });
    const { kept, clock, read, attachment } = open({ interval: 1000 });
    await attachment.opened;
    while (clock.pending === 0) await settled();
    assert.equal(attachment.connection.status, -1);
    assert.match(kept.errors[0], /rows not exist$/);
    await write('rows', '{"n":1}');
    clock.advance(1000);
    await read();
    assert.deepEqual(kept.values, [{ n: 1 }]);
    await attachment.detach();
  });

  it('stays within the folder of the service, unless the app allows others', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'embermq-outside-'));
    await writeFile(join(outside, 'rows'), '{"n":1}');
    const message =
      /^source file of demo: property path must be a path in the folder files of the stream service, or in a folder of the option folders; got /;
    await assert.rejects(open({ path: outside }).attachment.opened, { code: 'PROPERTY_INVALID', message });
    await assert.rejects(open({}, { datasource: '../x' }).attachment.opened, { code: 'PROPERTY_INVALID', message });
    await assert.rejects(open({}, { folder: null }).attachment.opened, /streams\.dataDir/);
    await symlink(join(outside, 'rows'), join(dataDir, 'rows'));
    await assert.rejects(open({}).attachment.opened, { code: 'PROPERTY_INVALID', message: /which is a link to/ });
    await assert.rejects(open({ path: '../files/../x' }).attachment.opened, { code: 'PROPERTY_INVALID', message });
    const allowed = open({ path: outside }, { type: fileSource({ outside: true }) });
    await allowed.read();
    assert.deepEqual(allowed.kept.values, [{ n: 1 }]);
    await rm(outside, { recursive: true });
  });

  it('neither reads, deletes nor moves files behind links, or in the folders of plugins and schemas', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'embermq-outside-'));
    await writeFile(join(outside, 'rows'), '{"n":1}');
    await symlink(outside, join(dataDir, 'link'));
    for (const more of [{}, { actionAfterRead: 1 }]) {
      const { attachment } = open({ path: 'link', ...more });
      await assert.rejects(attachment.opened, /which is a link to/);
    }
    await write('rows', '{"n":1}');
    const moving = open({ actionAfterRead: 2, moveTo: 'link' });
    await moving.read();
    assert.match(moving.kept.errors[0], /which is a link to/);
    assert.deepEqual([await readdir(outside), (await readdir(dataDir)).sort()], [['rows'], ['link', 'rows']]);
    const type = fileSource({ folders: ['/'] });
    for (const name of ['plugins/functions', 'etc/sources', 'schemas/protobuf'])
      await assert.rejects(
        open({ path: join(root, name) }, { type }).attachment.opened,
        /not in a folder of the broker/
      );
    await rm(outside, { recursive: true });
  });

  for (const fileType of ['json', 'lines'])
    it(`refuses a ${fileType} behind a folder that another process replaces with a link at that moment`, {
      skip: process.platform !== 'linux'
    }, async () => {
      const shared = await mkdtemp(join(tmpdir(), 'embermq-shared-'));
      const outside = await mkdtemp(join(tmpdir(), 'embermq-outside-'));
      await mkdir(join(shared, 'day'));
      await writeFile(join(shared, 'day', 'rows'), '{"n":1}');
      await writeFile(join(outside, 'rows'), '{"secret":1}');
      using _hook = beforeOpen(async () => {
        await rename(join(shared, 'day'), join(shared, 'moved'));
        await symlink(outside, join(shared, 'day'));
      });
      const type = fileSource({ folders: [shared] });
      const { kept, read } = open({ path: join(shared, 'day'), fileType, actionAfterRead: 1 }, { type });
      await read();
      assert.deepEqual(kept.values, []);
      assert.match(kept.errors[0], /rows, whose folder was replaced/);
      assert.deepEqual([await readdir(outside), await readdir(join(shared, 'moved'))], [['rows'], ['rows']]);
      await rm(outside, { recursive: true });
      await rm(shared, { recursive: true });
    });

  it('hides the location of the folder of the service when it refuses a path', async () => {
    await symlink(root, join(dataDir, 'rows'));
    for (const [datasource, shown] of [
      ['../../x', join('..', '..', 'x')],
      ['rows', join('files', 'rows')],
      ['missing', 'missing']
    ])
      await assert.rejects(open({}, { datasource }).attachment.opened, ({ message }: Error) => {
        assert.ok(message.includes(shown), message);
        assert.ok(!message.includes(root), message);
        return true;
      });
  });

  it('names the path at which an earlier release read a file that is missing', async () => {
    await writeFile(join(root, 'rows'), '{"n":1}');
    const message = `file ${join('files', 'rows')} not exist; rows, which an earlier release has read, can be moved there`;
    await assert.rejects(open({}).attachment.opened, { code: 'PROPERTY_INVALID', message });
  });

  it('checks properties that depend on each other', async () => {
    await assert.rejects(open({ actionAfterRead: 2 }).attachment.opened, /moveTo must be a folder/);
    await assert.rejects(open({ delimiter: '' }).attachment.opened, /delimiter must be at least one character/);
  });
});
