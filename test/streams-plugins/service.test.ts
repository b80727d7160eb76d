import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { streamPlugins } from '../../adapters/streams-plugins/index.ts';
import { createBroker } from '../../lib/index.ts';
import { functionModule } from '../support/plugins.ts';
import { zip } from '../support/zip.ts';

describe('Plugins of a broker', () => {
  it('remain available to statements until they are deleted and the service has restarted', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-plugins-'));
    const broker = createBroker();
    await broker.start();
    try {
      const plugins = await streamPlugins(broker, { dataDir: join(folder, 'streams') });
      const file = join(folder, 'seven.zip');
      writeFileSync(file, zip({ name: 'Seven@v1.js', content: functionModule('Seven', 7) }));
      await plugins.create('functions', { name: 'seven', file: pathToFileURL(file).href });
      await plugins.scripts.create({ id: 'area', script: 'function area(x, y) { return x * y; }' });
      await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE = "demo")');
      const rule = await broker.streams.rule('SELECT seven() AS s, area(a, 4) AS b FROM demo');
      const emissions = rule[Symbol.asyncIterator]();
      await broker.streams.push('demo', { a: 3 });
      assert.deepEqual((await emissions.next()).value, [{ s: 7, b: 12 }]);
      await plugins.delete('functions', 'seven', { restart: true });
      assert.equal(broker.streams.isRunning, false);
      await broker.streams.start();
      assert.deepEqual(await plugins.list('functions'), []);
      assert.ok(!(await broker.streams.functions()).some(({ name }) => name === 'seven'));
      plugins.close();
    } finally {
      await broker.stop();
      rmSync(folder, { recursive: true });
    }
  });

  it('report each plugin once that was put manually into the folder and is not loaded', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-plugins-'));
    const broker = createBroker();
    const reported: string[] = [];
    broker.on('error', ({ error }) => reported.push((error as Error).message));
    await broker.start();
    try {
      mkdirSync(join(folder, 'plugins/functions'), { recursive: true });
      const put = (name: string) =>
        writeFileSync(join(folder, `plugins/functions/${name}@v1.js`), functionModule(name, 1));
      put('One');
      const plugins = await streamPlugins(broker, { dataDir: folder, autoLoad: false });
      put('Two');
      for (let starts = 0; starts < 2; starts++) {
        await broker.streams.stop();
        await broker.streams.start();
      }
      assert.deepEqual(await plugins.list('functions'), []);
      assert.deepEqual(
        reported.map((text) => /(\w+)@v1\.js was put there manually/.exec(text)?.[1]),
        ['One', 'Two']
      );
      plugins.close();
    } finally {
      await broker.stop();
      rmSync(folder, { recursive: true });
    }
  });
});
