import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { SinkSetup, SourceSetup, StreamTuple } from '../../lib/adapter.ts';
import { functionModule, pluginsFixture } from '../support/plugins.ts';

const TUPLE = undefined as unknown as StreamTuple;
const RANDOM = `
exports.Random = class {
  configure(datasource, properties) { this.row = { datasource, ...properties }; }
  open(context, consumer) { consumer(this.row, { etc: context.etcDir }); consumer('[1]'); consumer(3); return Promise.reject(new Error('lost')); }
  close() { this.row = undefined; }
};`;

describe('Plugins', () => {
  it('lists and describes plugins, including deleted ones until a restart of the service', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const file = archive('echo.zip', { name: 'Echo@v2.0.js', content: functionModule('Echo', 1) });
    await plugins.create('functions', { name: 'echo', file });
    assert.deepEqual(await plugins.list('functions'), ['echo']);
    assert.deepEqual(await plugins.list('sinks'), []);
    await plugins.delete('functions', 'echo');
    assert.deepEqual(await plugins.get('functions', 'echo'), { name: 'echo', version: '$deleted' });
    assert.deepEqual(await plugins.list('functions'), ['echo']);
    assert.deepEqual(await plugins.udfs(), []);
    assert.equal(streams.call('echo'), 1);
    await assert.rejects(plugins.delete('functions', 'echo'), { code: 'PLUGIN_DELETED' });
    await streams.stop();
    await streams.start();
    assert.deepEqual(await plugins.list('functions'), []);
    assert.equal(streams.functions.size, 0);
    for (const drop of [true, false]) {
      const call = drop ? plugins.delete('functions', 'echo') : plugins.get('functions', 'echo');
      const message = drop ? 'invalid name echo: not exist' : 'not found';
      await assert.rejects(call, { code: 'PLUGIN_NOT_FOUND', message });
    }
    await assert.rejects(plugins.udf('echo'), { code: 'FUNCTION_NOT_FOUND', message: 'not found' });
  });

  it('require unused lower-case names', async () => {
    const { plugins, archive } = await pluginsFixture();
    const file = archive('echo.zip', { name: 'Echo.js', content: functionModule('Echo', 1) });
    await assert.rejects(plugins.create('sinks', { name: ' ', file }), {
      message: 'invalid name : should not be empty'
    });
    for (const name of ['Echo', 'a/b', '..', 'a.b', 'prebuild', 'a'.repeat(65), 3 as never])
      await assert.rejects(plugins.create('functions', { name, file }), { code: 'PLUGIN_NAME_INVALID' });
    await plugins.create('functions', { name: 'echo', file });
    await assert.rejects(plugins.create('functions', { name: 'echo', file }), {
      ...{ code: 'PLUGIN_EXISTS', message: 'invalid name echo: duplicate' }
    });
  });

  it('load again after a restart of the process, with their lists of functions', async () => {
    const fixture = await pluginsFixture();
    const content = `${functionModule('A', 1)}${functionModule('B', 2)}`;
    const file = fixture.archive('pair.zip', { name: 'Pair.js', content });
    await fixture.plugins.create('functions', { name: 'pair', file, functions: ['a', 'b'] });
    const again = await fixture.reopen();
    assert.deepEqual(await again.plugins.udfs(), ['a', 'b']);
    assert.equal(again.streams.call('b'), 2);
    assert.deepEqual(again.failures, []);
  });

  it('install files of etc, YAML and JSON where the service expects them', async () => {
    const fixture = await pluginsFixture();
    const file = fixture.archive(
      'random.zip',
      { name: 'Random@v1.js', content: RANDOM },
      { name: 'random.yaml', content: 'default:\n  interval: 10\nfast:\n  interval: 1\n' },
      { name: 'random.json', content: '{}' },
      { name: 'etc/keys/a.pem', content: 'key' }
    );
    await fixture.plugins.create('sources', { name: 'random', file });
    const etc = join(fixture.folder, 'streams/etc/sources');
    assert.deepEqual(readdirSync(etc).sort(), ['random', 'random.json', 'random.yaml']);
    assert.equal(readFileSync(join(etc, 'random/keys/a.pem'), 'utf8'), 'key');
    const type = fixture.streams.sources.get('random');
    assert.deepEqual(type?.sections, { default: { interval: 10 }, fast: { interval: 1 } });
    writeFileSync(join(etc, 'random.yaml'), 'default:\n  interval: 99\n');
    const again = await fixture.reopen();
    assert.deepEqual(again.streams.sources.get('random')?.sections, { default: { interval: 99 } });
    await again.plugins.delete('sources', 'random');
    await again.streams.start();
    assert.deepEqual(readdirSync(etc), []);
  });

  it('support sources in the form of the original', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const file = archive('random.zip', { name: 'Random.js', content: RANDOM }, { name: 'random.yaml' });
    await plugins.create('sources', { name: 'random', file });
    const seen: unknown[] = [];
    const opened = await streams.sources.get('random')?.open?.({
      datasource: 't',
      properties: { a: 1 },
      row: (row: unknown, meta: { etc: string }) => seen.push(row, meta.etc.endsWith('etc/sources/random')),
      bytes: (bytes: Buffer) => seen.push(String(bytes)),
      failed: (error: Error) => seen.push(error.message),
      disconnected: () => seen.push('disconnected')
    } as unknown as SourceSetup);
    await new Promise(setImmediate);
    const wrong = 'a row of the source must be an object, not number';
    assert.deepEqual(seen, [{ datasource: 't', a: 1 }, true, '[1]', wrong, 'lost', 'disconnected']);
    await opened?.close();
  });

  it('support sources and sinks in the form of the service, as ES modules', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const source = `export const Own = { about: 'Own.', properties: { a: { type: 'string', about: 'A.' } }, open: (setup) => (setup.row({}), { close() {} }) };`;
    const sink = `import { sent } from './sent.mjs';
      export class Out { collect(value) { sent.push(value); return sent.length; } }`;
    const file = archive('own.zip', { name: 'own@v1.mjs', content: source }, { name: 'own.yaml', content: '' });
    await plugins.create('sources', { name: 'own', file });
    const type = streams.sources.get('own');
    assert.deepEqual([type?.name, type?.about, Object.keys(type?.properties ?? {})], ['own', 'Own.', ['a']]);
    const other = archive(
      'out.zip',
      { name: 'Out.mjs', content: sink },
      { name: 'sent.mjs', content: 'export const sent = [];' }
    );
    await plugins.create('sinks', { name: 'out', file: other });
    const opened = await streams.sinks.get('out')?.open({ properties: {}, connected() {} } as unknown as SinkSetup);
    assert.equal(await opened?.send({ value: [{ a: 1 }] } as never), 1);
  });

  it('support aggregate functions, and functions that check their arguments', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const content = `exports.Joined = class {
      validate(args) { if (args.length !== 2) return 'expects two arguments'; }
      isAggregate() { return true; }
      exec([texts, ends]) { return texts.join('') + ends[0]; }
    }`;
    await plugins.create('functions', { name: 'joined', file: archive('j.zip', { name: 'Joined.js', content }) });
    const joined = streams.functions.get('joined');
    assert.ok(joined?.kind === 'aggregate');
    assert.equal(joined.check?.([undefined]), 'expects two arguments');
    assert.equal(joined.check?.([undefined, '!']), undefined);
    const rows = joined.makeSliding?.({ ruleId: 'r' } as never);
    for (const text of ['a', 'b', 'c']) rows?.add([text, '!'], TUPLE);
    rows?.remove?.(['a', '!'], TUPLE);
    assert.equal(rows?.result(), 'bc!');
    assert.equal(joined.load({ ruleId: 'r' } as never, rows?.save()).result(), 'bc!');
  });

  it('fail the row if their functions throw, or return an invalid value', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const content = `exports.Bad = class { exec([which]) {
      if (which === 1) throw new Error('broken');
      return which === 2 ? Promise.resolve(1) : () => {};
    } }`;
    await plugins.create('functions', { name: 'bad', file: archive('bad.zip', { name: 'Bad.js', content }) });
    for (const [which, message] of [
      [1, /^function bad: broken$/],
      [2, /must return its result at once/],
      [3, /its result is a function/]
    ] as const)
      assert.throws(() => streams.call('bad', which), { code: 'STREAM_FAILED', message });
  });

  it('leave nothing behind if they cannot be used', async () => {
    const fixture = await pluginsFixture();
    for (const [content, message] of [
      ['syntax error', /cannot load Bad\.js: /],
      ['throw new Error("no license")', /cannot load Bad\.js: no license/],
      ['exports.Other = {}', /the library exports neither "Bad" nor "bad"/],
      ['exports.Bad = class { constructor() { throw new Error("no") } }', /"Bad" cannot be used: no/],
      ['exports.Bad = class {}', /"Bad" cannot be used: a function must have the method exec/],
      ['exports.Bad = 3', /a function must be an object/]
    ] as const) {
      const file = fixture.archive('bad.zip', { name: 'Bad.js', content }, { name: 'etc/x' });
      await assert.rejects(fixture.plugins.create('functions', { name: 'bad', file }), {
        ...{ code: 'PLUGIN_INSTALL_FAILED', message }
      });
    }
    assert.deepEqual(readdirSync(join(fixture.folder, 'streams/plugins/functions')), []);
    assert.equal(existsSync(join(fixture.folder, 'streams/etc/functions')), false);
    assert.deepEqual(fixture.failures, []);
  });

  it('keep the old plugin if an update fails', async () => {
    const { plugins, streams, archive, folder } = await pluginsFixture();
    const good = archive(
      'good.zip',
      { name: 'A.js', content: functionModule('A', 1) },
      { name: 'etc/v', content: '1' }
    );
    await plugins.create('functions', { name: 'a', file: good });
    const bad = archive('bad.zip', { name: 'A@v2.js', content: 'exports.A = 1' }, { name: 'etc/v', content: '2' });
    await assert.rejects(plugins.update('functions', { name: 'a', file: bad }), { code: 'PLUGIN_INSTALL_FAILED' });
    assert.equal(streams.call('a'), 1);
    assert.equal(readFileSync(join(folder, 'streams/etc/functions/a/v'), 'utf8'), '1');
    const next = archive('next.zip', { name: 'A@v2.js', content: functionModule('A', 2) });
    assert.deepEqual(await plugins.update('functions', { name: 'a', file: next }), { name: 'a', version: '2' });
    assert.equal(streams.call('a'), 2);
    assert.equal(existsSync(join(folder, 'streams/etc/functions/a')), false);
    await assert.rejects(plugins.update('functions', { name: 'b', file: next }), { code: 'PLUGIN_NOT_FOUND' });
  });

  it('remove plugins on the next start if their installation was interrupted', async () => {
    const fixture = await pluginsFixture();
    const file = fixture.archive(
      'a.zip',
      { name: 'A.js', content: functionModule('A', 1) },
      { name: 'etc/v', content: '1' }
    );
    await fixture.plugins.create('functions', { name: 'a', file });
    const root = join(fixture.folder, 'streams');
    const path = join(root, 'plugins/list.json');
    const list = JSON.parse(readFileSync(path, 'utf8'));
    // an update of a, and a first installation of b, whose process was killed before the end
    const updated = { ...list.plugins[0], folder: 'a@new', version: '2', state: 'installing' };
    const fresh = { ...updated, name: 'b', folder: 'b@new' };
    writeFileSync(path, JSON.stringify({ ...list, plugins: [...list.plugins, updated, fresh] }));
    for (const folder of [
      'plugins/functions/a@new',
      'plugins/functions/b@new',
      'plugins/incoming/x',
      'etc/functions/b'
    ])
      mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, 'etc/functions/a/v'), '2');
    const again = await fixture.reopen();
    assert.deepEqual(await again.plugins.list('functions'), ['a']);
    assert.equal(again.streams.call('a'), 1);
    assert.equal(readdirSync(join(root, 'plugins/functions')).length, 1);
    assert.equal(existsSync(join(root, 'plugins/incoming')), false);
    assert.deepEqual(readdirSync(join(root, 'etc/functions')), ['a']);
    assert.equal(readFileSync(join(root, 'etc/functions/a/v'), 'utf8'), '1');
  });

  it('install libraries that were put manually into the folder', async () => {
    const fixture = await pluginsFixture();
    const folder = join(fixture.folder, 'streams/plugins/functions');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'Tool@v3.js'), `${functionModule('Tool', 1)}${functionModule('Other', 2)}`);
    const again = await fixture.reopen();
    assert.deepEqual(again.failures, []);
    assert.deepEqual(await again.plugins.get('functions', 'tool'), { name: 'tool', version: '3' });
    await again.plugins.register('tool', ['other']);
    assert.equal(again.streams.call('other'), 2);
    assert.equal(again.streams.functions.has('tool'), false);
    assert.deepEqual(await (await again.reopen()).plugins.udfs(), ['other']);
  });

  it('report and keep plugins that cannot be loaded on start', async () => {
    const fixture = await pluginsFixture();
    const file = fixture.archive('a.zip', { name: 'A.js', content: functionModule('A', 1) });
    await fixture.plugins.create('functions', { name: 'a', file });
    const folder = join(fixture.folder, 'streams/plugins/functions');
    writeFileSync(join(folder, readdirSync(folder)[0], 'A.js'), 'throw new Error("needs a newer version")');
    // a fresh process; in this one the module of this path is known
    const list = join(fixture.folder, 'streams/plugins/list.json');
    const moved = JSON.parse(readFileSync(list, 'utf8'));
    renameSync(join(folder, moved.plugins[0].folder), join(folder, 'a@moved'));
    moved.plugins[0].folder = 'a@moved';
    writeFileSync(list, JSON.stringify(moved));
    const again = await fixture.reopen();
    assert.match(again.failures.join(), /^loading the plugin a: .*cannot load A\.js: needs a newer version$/);
    assert.deepEqual(await again.plugins.list('functions'), ['a']);
  });
});

describe('Functions of plugins', () => {
  it('require unused function names, in any case', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const content = `${functionModule('A', 1)}${functionModule('B', 2)}${functionModule('Abs', 3)}`;
    const create = (name: string, functions?: string[]) => {
      const file = archive('x.zip', { name: `${name}.js`, content: content + functionModule(name, 9) });
      return plugins.create('functions', functions === undefined ? { name, file } : { name, file, functions });
    };
    await create('one', ['a', 'b']);
    await assert.rejects(create('two', ['B']), { code: 'FUNCTION_EXISTS', message: 'function name B already exists' });
    await assert.rejects(create('a'), { message: 'function name a already exists' });
    await create('two');
    await assert.rejects(plugins.register('two', ['a']), { message: 'function name a already exists' });
    await assert.rejects(plugins.register('two', ['c']), { code: 'PLUGIN_FUNCTIONS_INVALID' });
    await assert.rejects(plugins.register('two', []), { message: "property 'functions' must not be empty" });
    await assert.rejects(plugins.register('none', ['a']), { code: 'PLUGIN_NOT_FOUND', message: 'not found' });
    assert.deepEqual(await plugins.udfs(), ['a', 'b', 'two']);
    await streams.createFunction({ name: 'abs' } as never); // of the service itself
    await assert.rejects(create('three', ['Abs']), { message: 'function name Abs already exists' });
    assert.deepEqual(await plugins.list('functions'), ['one', 'two']);
    assert.equal(streams.call('two'), 9);
  });

  it('refuse invalid lists of functions', async () => {
    const { plugins, archive } = await pluginsFixture();
    const file = archive('x.zip', { name: 'X.js', content: functionModule('X', 1) });
    for (const functions of [[], ['a', 'A'], ['a b'], [3], 'a', ['__proto__ x']] as never[])
      await assert.rejects(plugins.create('functions', { name: 'x', file, functions }), {
        code: 'PLUGIN_FUNCTIONS_INVALID'
      });
    await assert.rejects(plugins.create('sinks', { name: 'x', file, functions: ['x'] }), {
      code: 'PLUGIN_INPUT_INVALID'
    });
  });
});
