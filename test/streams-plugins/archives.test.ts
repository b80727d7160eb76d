import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { functionModule, type PluginsFixture, pluginsFixture } from '../support/plugins.ts';
import { type ZipEntry, zip } from '../support/zip.ts';

const MODULE: ZipEntry = { name: 'Echo@v1.0.0.js', content: functionModule('Echo', 1) };
const REGULAR = 0o100644;
const LINK = 0o120777;
const FIFO = 0o010644;

/** Archives that are refused: what is wrong, the entries, and what the error says behind `invalid zip file: `. */
const REFUSED: readonly (readonly [what: string, entries: readonly ZipEntry[], message: RegExp])[] = [
  ['a path that leads out of the folder', [MODULE, { name: '../evil.js' }], /relative path: \.\.\/evil\.js/],
  ['a path that leads out below a folder', [MODULE, { name: 'etc/../../evil' }], /relative path/],
  ['an absolute path', [MODULE, { name: '/etc/evil' }], /absolute path/],
  ['a path of Windows', [MODULE, { name: 'C:/evil' }], /absolute path/],
  ['a path with backslashes', [MODULE, { name: '..\\evil' }], /invalid characters/],
  ['a link', [MODULE, { name: 'etc/link', content: '/etc/passwd', mode: LINK }], /"etc\/link" is a link/],
  ['a link as library', [{ ...MODULE, content: '/etc/passwd', mode: LINK }], /is a link/],
  ['a pipe', [MODULE, { name: 'pipe', mode: FIFO }], /"pipe" is a special file/],
  ['a folder whose name is that of a file', [MODULE, { name: 'a', mode: 0o040755 }], /both a file and a folder/],
  ['a folder with content', [MODULE, { name: 'a/', content: 'x' }], /folder with content/],
  ['a name that occurs twice', [MODULE, MODULE], /it has "Echo@v1\.0\.0\.js" twice/],
  ['names that differ in case', [MODULE, { name: 'a.txt' }, { name: 'A.TXT' }], /"A\.TXT" twice/],
  ['names that are the same path', [MODULE, { name: 'a/b' }, { name: 'a/./b' }], /"a\/b" twice/],
  ['a file that is the folder of another', [MODULE, { name: 'a' }, { name: 'a/b' }], /both a file and a folder/],
  ['a control character', [MODULE, { name: 'a\nb' }], /control characters/],
  ['a path of too many levels', [MODULE, { name: `${'a/'.repeat(32)}a` }], /more than 32 levels/],
  ['an encrypted entry', [MODULE, { name: 'secret', flags: 0x801, content: 'x' }], /encrypted/],
  ['an unknown compression', [MODULE, { name: 'x', method: 12, content: 'x' }], /compression method: 12/],
  ['a wrong checksum', [{ ...MODULE, crc: 1 }], /checksum of "Echo@v1\.0\.0\.js" is wrong/],
  ['more bytes than declared', [MODULE, { name: 'x', content: 'xyz'.repeat(100), size: 10 }], /too many bytes/],
  ['fewer bytes than declared', [MODULE, { name: 'x', content: 'xyz', size: 10 }], /not enough bytes/],
  ['a file that is compressed too well', [MODULE, { name: 'x', content: Buffer.alloc(2 ** 21) }], /less than 1\/200/],
  ['too many bytes', [MODULE, { name: 'x', content: Buffer.alloc(5 * 2 ** 20), method: 0 }], /more than 4194304 bytes/],
  ['too many entries', [MODULE, ...Array.from({ length: 50 }, (_, i) => ({ name: `x${i}` }))], /more than 50 entries/],
  ['no library', [{ name: 'README.md' }], /so file or conf file is missing: .* "Echo@vVERSION\.so"/],
  ['a library in a folder', [{ ...MODULE, name: 'lib/Echo.js' }], /so file or conf file is missing/],
  ['a library of another name', [{ ...MODULE, name: 'Other@v1.js' }], /missing: .*"Other@v1\.js" does not match/],
  ['a name that only begins like that of the plugin', [{ ...MODULE, name: 'Echoes.js' }], /is missing/],
  ['several libraries', [MODULE, { ...MODULE, name: 'echo@v2.js' }], /several libraries/],
  ['another library beside its own', [{ name: 'Echo.so' }, { name: 'Other.so' }], /"Other\.so" does not match/],
  ['no entries', [], /is missing/]
];

describe('Archives of plugins', () => {
  let fixture: PluginsFixture;
  const outside = () =>
    existsSync(join(fixture.folder, 'evil.js')) || existsSync(join(fixture.folder, 'streams/evil.js'));
  const installed = () => {
    const folders = ['plugins/functions', 'plugins/incoming', 'etc/functions'].map((name) =>
      join(fixture.folder, 'streams', name)
    );
    return folders.flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : []));
  };

  before(async () => {
    fixture = await pluginsFixture({ maxUnpackedSize: '4MB', maxEntries: 50 });
  });

  for (const [what, entries, message] of REFUSED)
    it(`refuse an archive with ${what}, and leave nothing behind`, async () => {
      const file = fixture.archive('bad.zip', ...entries);
      await assert.rejects(fixture.plugins.create('functions', { name: 'echo', file }), (error: Error) => {
        const prefix = 'fail to install plugin: invalid zip file: ';
        assert.equal(error.message.slice(0, prefix.length), prefix);
        assert.match(error.message, message);
        assert.equal((error as Error & { code: string }).code, 'PLUGIN_ARCHIVE_INVALID');
        return true;
      });
      assert.deepEqual(await fixture.plugins.list('functions'), []);
      assert.deepEqual(installed(), []);
      assert.equal(outside(), false);
      assert.deepEqual(fixture.failures, []);
    });

  it('report files that are not zip files, or are truncated, like missing files', async () => {
    const whole = zip(MODULE);
    for (const bytes of [Buffer.from('not a zip'), whole.subarray(0, whole.length - 30), Buffer.alloc(0)]) {
      const path = join(fixture.folder, 'broken.zip');
      writeFileSync(path, bytes);
      const file = pathToFileURL(path).href;
      await assert.rejects(fixture.plugins.create('functions', { name: 'echo', file }), {
        code: 'PLUGIN_FILE_INVALID',
        message: `invalid uri ${file}`
      });
    }
  });

  it('accept comments, folders and other files', async () => {
    const file = fixture.archive(
      'good.zip',
      { name: 'etc/', mode: 0o040755 },
      { ...MODULE, method: 0 },
      { name: './README.md', content: 'hello', mode: REGULAR }
    );
    await fixture.plugins.create('functions', { name: 'echo', file });
    assert.equal(fixture.streams.call('echo'), 1);
  });

  it('require a YAML file with the name of the plugin for sources', async () => {
    const library: ZipEntry = { name: 'Random@v1.js', content: 'exports.Random = { open() {}, close() {} }' };
    const refused = async (...entries: ZipEntry[]) => {
      const file = fixture.archive('source.zip', library, ...entries);
      const error = await fixture.plugins.create('sources', { name: 'random', file }).catch((reason: Error) => reason);
      return (error as Error).message;
    };
    const missing =
      'fail to install plugin: invalid zip file: so file or conf file is missing: a source "random" needs "random.yaml"';
    assert.equal(await refused(), missing);
    assert.equal(await refused({ name: 'Random.yaml' }), `${missing}, and "Random.yaml" does not match the name`);
    assert.match(await refused({ name: 'random.yaml', content: 'a: [' }), /^fail to install plugin: random\.yaml: /);
    assert.match(await refused({ name: 'random.yaml', content: '- a' }), /expected sections such as "default:"/);
    assert.match(await refused({ name: 'random.yaml', content: 'default: 3' }), /section default: expected properties/);
  });
});

describe('The URL of an archive', () => {
  it('must belong to an archive, and the answer does not reveal whether another file exists', async () => {
    const { plugins, folder } = await pluginsFixture();
    writeFileSync(join(folder, 'x.tar'), '');
    mkdirSync(join(folder, 'folder.zip'));
    const at = (name: string) => pathToFileURL(join(folder, name)).href;
    writeFileSync(join(folder, 'text.zip'), 'root:x:0:0');
    const files = [
      at('text.zip'),
      '',
      'x.zip',
      'ftp://host/x.zip',
      'http://host/x.tar',
      at('x.tar'),
      at('none.zip'),
      at('folder.zip')
    ];
    for (const file of files)
      await assert.rejects(plugins.create('functions', { name: 'echo', file }), {
        code: 'PLUGIN_FILE_INVALID',
        message: `invalid uri ${file}`
      });
  });
});
