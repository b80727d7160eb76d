import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { streamPlugins } from '../../adapters/streams-plugins/index.ts';
import { createBroker } from '../../lib/index.ts';
import { functionModule } from '../support/plugins.ts';
import { zip } from '../support/zip.ts';

describe('Plugins of a broker', () => {
  it('are used by statements until they are dropped and the service has restarted', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-plugins-'));
    const broker = createBroker();
    await broker.start();
    try {
      const plugins = await streamPlugins(broker, { dataDir: join(folder, 'streams') });
      const file = join(folder, 'seven.zip');
      writeFileSync(file, zip({ name: 'Seven@v1.js', content: functionModule('Seven', 7) }));
      await plugins.create('functions', { name: 'seven', file: pathToFileURL(file).href });
      await plugins.scripts.create({ id: 'area', script: 'function area(x, y) { return x * y; }' });
      await broker.streams.define('CREATE STREAM demo () WITH (DATASOURCE = "demo")');
      const rule = await broker.streams.rule('SELECT seven() AS s, area(a, 4) AS b FROM demo');
      const emissions = rule[Symbol.asyncIterator]();
      await broker.streams.push('demo', { a: 3 });
      assert.deepEqual((await emissions.next()).value, [{ s: 7, b: 12 }]);
      await plugins.drop('functions', 'seven', { restart: true });
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
});
