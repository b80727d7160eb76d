import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SinkSetup, SourceSetup } from '../../lib/adapter.ts';
import { compile, compilePlugin, skipWithoutCompiler } from '../support/native-plugin.ts';
import { pluginsFixture } from '../support/plugins.ts';

const skip = skipWithoutCompiler();

describe('Native plugins', { skip }, () => {
  it('loads plugins from a Node-API library', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const file = archive('version.zip', { name: 'Version@v1.2.3.so', content: compilePlugin(3) });
    assert.deepEqual(await plugins.create('functions', { name: 'version', file }), {
      name: 'version',
      version: '1.2.3'
    });
    assert.deepEqual(await plugins.get('functions', 'version'), { name: 'version', version: '1.2.3' });
    assert.equal(streams.call('version'), 3);
  });

  it('export several functions, also as objects', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const file = archive('all.zip', { name: 'all.so', content: compilePlugin(4) });
    await plugins.create('functions', { name: 'all', file, functions: ['version', 'sum'] });
    assert.deepEqual(await plugins.get('functions', 'all'), {
      ...{ name: 'all', version: '', functions: ['version', 'sum'] }
    });
    assert.deepEqual(await plugins.udfs(), ['sum', 'version']);
    assert.deepEqual(await plugins.udf('sum'), { name: 'sum', plugin: 'all' });
    assert.equal(streams.call('sum', 1, 2n, 3.5), 6.5);
    assert.throws(() => streams.call('sum', 'x'), {
      code: 'STREAM_FAILED',
      message: 'function sum: sum adds numbers only'
    });
  });

  it('support sources and sinks', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const content = compilePlugin(5);
    const source = archive('random.zip', { name: 'Random.so', content }, { name: 'random.yaml' });
    const sink = archive('count.zip', { name: 'Count.so', content });
    await plugins.create('sources', { name: 'random', file: source });
    await plugins.create('sinks', { name: 'count', file: sink });
    const rows: unknown[] = [];
    const setup = { datasource: '', properties: {}, row: (row: unknown) => rows.push(row) } as unknown as SourceSetup;
    const opened = await streams.sources.get('random')?.open?.(setup);
    assert.deepEqual(rows, [{ version: 5 }]);
    await opened?.close();
    const sent = await streams.sinks.get('count')?.open({ properties: {}, connected() {} } as unknown as SinkSetup);
    await sent?.send({ value: [] } as never);
    await sent?.close();
  });

  it('update plugins by deleting, restarting the service and creating, without a restart of the process', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const create = (version: number) => {
      // the URL of the archive and the name of the library are those of the version before
      const file = archive('version.zip', { name: 'Version@v1.so', content: compilePlugin(version) });
      return plugins.create('functions', { name: 'version', file });
    };
    await create(1);
    await plugins.delete('functions', 'version', { restart: true });
    assert.equal(streams.isRunning, false);
    await assert.rejects(create(2), {
      code: 'PLUGIN_DELETED',
      message:
        'invalid name version: the plugin is marked as deleted but Kuiper is not restarted for the change to take effect yet'
    });
    await streams.start();
    assert.equal(streams.functions.has('version'), false);
    await create(2);
    assert.equal(streams.call('version'), 2);
  });

  it('update plugins at once, and rules keep the old code', async () => {
    const { plugins, streams, archive } = await pluginsFixture();
    const file = (version: number) =>
      archive('version.zip', { name: 'Version@v1.so', content: compilePlugin(version) });
    await plugins.create('functions', { name: 'version', file: file(1) });
    const old = streams.functions.get('version');
    const running = old?.kind === 'context' ? old.make({ ruleId: 'r' } as never) : undefined;
    await plugins.update('functions', { name: 'version', file: file(2) });
    assert.equal(streams.call('version'), 2);
    assert.equal(running?.(undefined as never), 1);
  });

  it('refuse files that are not Node-API libraries, are damaged or lack symbols', async () => {
    const { plugins, archive } = await pluginsFixture();
    const refuse = async (content: Buffer) => {
      const file = archive('bad.zip', { name: 'Bad@v1.so', content });
      const error = (await plugins.create('functions', { name: 'bad', file }).catch((reason) => reason)) as Error;
      assert.equal((error as Error & { code?: string }).code, 'PLUGIN_INSTALL_FAILED');
      return error.message;
    };
    assert.equal(
      await refuse(compile('int answer(void) { return 42; }')),
      'fail to install plugin: cannot open Bad@v1.so: it is not a Node-API library, because it does not export napi_register_module_v1'
    );
    assert.match(await refuse(compilePlugin(1).subarray(0, 9000)), /cannot open Bad@v1\.so: it is truncated/);
    const lacking = 'extern void missing_symbol(void); void napi_register_module_v1(void) { missing_symbol(); }';
    assert.match(await refuse(compile(lacking)), /cannot open Bad@v1\.so: .*undefined symbol: missing_symbol/);
    assert.equal(await refuse(compilePlugin(1)), 'fail to install plugin: the library exports neither "Bad" nor "bad"');
  });
});
