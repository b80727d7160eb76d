import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '../..');
const require = createRequire(import.meta.url);

/** A runner, the imports of a test file of its users, and how it fakes timers. */
interface Runner {
  readonly name: string;
  readonly module: string;
  readonly fakes: string;
  readonly command: (folder: string) => readonly string[];
}

const RUNNERS: readonly Runner[] = [
  {
    name: 'Vitest',
    module: 'vitest',
    fakes: 'vi',
    command: (folder) => [
      join(dirname(require.resolve('vitest/package.json')), 'vitest.mjs'),
      'run',
      '--root',
      folder,
      '--pool=threads',
      '--no-color'
    ]
  },
  {
    name: 'Jest',
    module: '@jest/globals',
    fakes: 'jest',
    command: (folder) => [
      '--experimental-vm-modules',
      join(dirname(require.resolve('jest/package.json')), 'bin/jest.js'),
      '--rootDir',
      folder,
      '--cacheDirectory',
      join(folder, 'cache'),
      '--runInBand',
      '--no-color'
    ]
  }
];

/** The sample project of a runner: all tests pass but the last one, which leaves a resource open. */
function testFile({ module, fakes }: Runner): string {
  return `
    import { afterEach, beforeEach, describe, expect, it, ${fakes} } from '${module}';
    import { setupBroker } from 'embermq/testing';
    import mqtt from 'mqtt';

    const test = setupBroker({ beforeEach, afterEach });

    /** A device under test. */
    async function startDevice({ kit }) {
      const client = await kit.connect({ clientId: 'door', keepalive: 60, will: { topic: 'state/door', payload: 'offline' } });
      await client.publish('state/door', 'online', { retain: true });
    }

    it('hears that the device is online, then that its connection is lost', async () => {
      await startDevice(test);
      test.kit.link('door').halfOpen();
      expect((await test.kit.expectMessage('state/door', { within: '2m' })).text).toBe('offline');
    });
    it('has a new broker for each test', async () => {
      for await (const { topic } of test.broker.retained.match('#')) throw new Error(topic);
      expect(test.broker.sessions.count).toBe(0);
    });
    describe('while the runner fakes timers', () => {
      beforeEach(() => { ${fakes}.useFakeTimers(); });
      afterEach(() => { ${fakes}.useRealTimers(); });
      it('advances the virtual clock', async () => {
        const before = test.clock.now();
        await startDevice(test);
        await test.clock.advance('1h');
        expect(test.clock.now() - before).toBe(3_600_000);
      });
    });
    describe('while the clock of the kit moves the fake timers', () => {
      const timed = setupBroker({ beforeEach, afterEach }, { timers: ${fakes} });
      it('runs a device that uses setTimeout, with the date of the clock', async () => {
        const { kit, clock } = timed;
        const log = [];
        const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
        const device = (async () => {
          for (let i = 0; i < 3; i++) {
            await sleep(1_007);
            await kit.broker.publish('beat', String(i));
            log.push(Date.now() - start);
          }
        })();
        const start = clock.now();
        expect(new Date().toISOString()).toBe('2026-01-01T00:00:00.000Z');
        await kit.expectMessage('beat', { within: '2s' });
        await clock.advance('1h');
        await device;
        expect(log).toEqual([1_007, 2_014, 3_021]);
        expect(Date.now()).toBe(clock.now());
      });
      it('lets MQTT.js ping and reconnect, and keeps its offline queue', async () => {
        const { kit, clock } = timed;
        const client = new mqtt.MqttClient(() => kit.stream(), { clientId: 'js', keepalive: 60, reconnectPeriod: 5_000 });
        client.on('error', () => {});
        await new Promise((resolve) => client.once('connect', resolve));
        await clock.advance('5m');
        expect(client.connected).toBe(true);
        kit.isReachable = false;
        kit.link('js').cut();
        await clock.advance('1m');
        const sent = client.publishAsync('queued', 'offline', { qos: 1 });
        kit.isReachable = true;
        expect((await kit.expectMessage('queued', { within: '5s' })).text).toBe('offline');
        await sent;
        client.end(true);
      });
      it('names the call that fakes the right functions', async () => {
        const set = globalThis.setTimeout;
        ${fakes}.useFakeTimers();
        await expect(timed.clock.advance('1s')).rejects.toThrow(/must not be faked.*useFakeTimers/);
        expect(set).not.toBe(globalThis.setTimeout);
      });
      it('has restored the timers of the previous test', async () => {
        await timed.kit[Symbol.asyncDispose]();
        expect(Object.hasOwn(globalThis.setTimeout, 'clock')).toBe(false);
      });
    });
    it('opens a port', async () => {
      const { url } = await test.kit.listen();
      expect(url).toMatch(/^mqtt:\\/\\/127/);
    });
    it('leaves a handler subscribed', () => {
      test.broker.subscribe('a/#', () => {});
    });
  `;
}

describe('setupBroker in a project that installs the package', () => {
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(root, 'dist-test-')); // below the root, where the dependencies of the package resolve
    const installed = join(folder, 'node_modules/embermq');
    mkdirSync(installed, { recursive: true });
    copyFileSync(join(root, 'package.json'), join(installed, 'package.json'));
    await build({
      absWorkingDir: root,
      entryPoints: ['adapters/testing/index.ts'],
      outdir: join(installed, 'dist/adapters/testing'),
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      packages: 'external',
      logLevel: 'silent'
    });
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const runner of RUNNERS)
    it(`works with ${runner.name}: a leak fails its test, and the others pass`, async () => {
      const project = join(folder, runner.fakes);
      mkdirSync(project);
      const settings = { type: 'module', private: true, jest: { transform: {}, testEnvironment: 'node' } };
      writeFileSync(join(project, 'package.json'), JSON.stringify(settings));
      writeFileSync(join(project, 'device.test.js'), testFile(runner));
      const { FORCE_COLOR: _, NODE_OPTIONS: __, NODE_TEST_CONTEXT: ___, ...env } = process.env;
      const options = { cwd: project, env: { ...env, CI: 'true' }, timeout: 120_000 };
      const failed = await promisify(execFile)(process.execPath, runner.command(project), options).then(
        ({ stdout }) => assert.fail(`no test has failed:\n${stdout}`),
        (error: { code: number; stdout: string; stderr: string }) => error
      );
      const output = failed.stdout + failed.stderr;
      assert.equal(failed.code, 1, output);
      assert.match(output, /Tests:? +1 failed.* 8 passed/, output);
      assert.match(
        output,
        /a handler of "a\/#" .* is still subscribed.* subscribed at .*device\.test\.js:\d+:\d+/,
        output
      );
    });
});
