import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../adapters/cli/commands.ts';
import { readServeSettings } from '../../adapters/cli/serve/settings.ts';
import { levelStore } from '../../adapters/level/index.ts';
import { createBroker } from '../../lib/index.ts';
import { readyPorts, testShell } from './shell.ts';

describe('serve with options that were set over REST', () => {
  it('writes a line for each on start, with the overridden value, and uses them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-overrides-'));
    try {
      const broker = createBroker({
        store: levelStore(folder),
        auth: [{ name: 'password-file', open: () => undefined }]
      });
      await broker.start();
      await broker.configuration.setAll([
        ['zone.external.max_inflight', 64],
        ['zone.internal.max_inflight', 65],
        ['broker.sys_interval', '90s'],
        ['zone.external.publish_limit', '100,10s'],
        ['mqtt.max_packet_size', '64KB']
      ]);
      await broker.access.stop('password-file');
      await broker.stop();
      const shell = testShell();
      Object.assign(shell.env, { EMBERMQ_SYS_INTERVAL: '2m' });
      shell.files.set('e.json', JSON.stringify({ 'zone.internal.max_inflight': 31, max_packet_size: '2MB' }));
      shell.files.set('passwords', '');
      const flags = ['--config', 'e.json', '--max-inflight', '32', '--password-file', 'passwords'];
      const code = runCommand(
        [
          'serve',
          '--mqtt-port',
          '0',
          '--ws-port',
          'off',
          '--http-port',
          'off',
          '--http-earlier-port',
          'off',
          '--data-dir',
          folder,
          ...flags
        ],
        shell
      );
      await readyPorts(shell, code);
      shell.signal('SIGTERM');
      assert.equal(await code, 0);
      const lines = shell.err().split('\n');
      const expected = [
        'broker.sys_interval = 90s, set over REST, overrides EMBERMQ_SYS_INTERVAL 2m; embermq ctl config reset broker.sys_interval',
        'mqtt.max_packet_size = 65536, set over REST, overrides e.json: max_packet_size 2097152; embermq ctl config reset mqtt.max_packet_size',
        'zone.external.max_inflight = 64, set over REST, overrides --max-inflight 32; embermq ctl config reset zone.external.max_inflight',
        'zone.external.publish_limit = 100,10s, set over REST, overrides the default none; embermq ctl config reset zone.external.publish_limit',
        'zone.internal.max_inflight = 65, set over REST, overrides e.json: zones.internal.max_inflight 31; embermq ctl config reset zone.internal.max_inflight',
        'the source password-file is stopped, which was done over REST; it is not asked until it is loaded again'
      ];
      const found = lines.filter((line) => /over REST/.test(line)).map((line) => line.replace(/^.*?embermq: /, ''));
      assert.deepEqual(found, expected);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('warns if anyone can connect from other machines because of them, unless this is explicitly configured', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embermq-overrides-'));
    const passwords = ['--password-file', join(folder, 'passwords')];
    const data = join(folder, 'data');
    writeFileSync(join(folder, 'passwords'), '');
    try {
      const start = async (overrides: [string, unknown][], flags: string[]): Promise<string[]> => {
        const broker = createBroker({ store: levelStore(data) });
        await broker.start();
        for (const { key } of broker.configuration.overrides()) await broker.configuration.reset(key);
        await broker.configuration.setAll(overrides);
        await broker.stop();
        const shell = testShell();
        const off = ['--ws-port', 'off', '--http-port', 'off', '--http-earlier-port', 'off'];
        const code = runCommand(['serve', '--mqtt-port', '0', ...off, '--data-dir', data, ...flags], shell);
        await readyPorts(shell, code);
        shell.signal('SIGTERM');
        assert.equal(await code, 0);
        const lines = shell.err().split('\n');
        return lines.filter((line) => /ANYONE/.test(line)).map((line) => line.replace(/^.*reset /, ''));
      };
      const open = ['--host', '0.0.0.0'];
      const all: [string, unknown] = ['allow_anonymous', true];
      const one: [string, unknown] = ['zone.external.allow_anonymous', true];
      const bypass: [string, unknown] = ['zone.external.bypass_auth_plugins', true];
      const { key } = createBroker().configuration.get('allow_anonymous');
      assert.deepEqual(await start([all], [...open, ...passwords]), [key]);
      assert.deepEqual(await start([one, bypass], [...open, ...passwords]), [one[0], bypass[0]]);
      assert.deepEqual(await start([one], [...open, '--allow-anonymous']), []);
      assert.deepEqual(await start([one], [...open, '--allow-anonymous=false']), [one[0]]);
      assert.deepEqual(await start([one], passwords), []);
      assert.deepEqual(await start([['zone.internal.allow_anonymous', true]], [...open, ...passwords]), []);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('knows the place of an option: a flag, the environment or the file, for a zone or for all', async () => {
    const shell = testShell();
    Object.assign(shell.env, { EMBERMQ_MAX_INFLIGHT: '3', EMBERMQ_SYS_INTERVAL: '1m' });
    shell.files.set('e.json', JSON.stringify({ zones: { lab: { maxInflight: 4 } }, max_qos_allowed: 1 }));
    const { optionPlace } = await readServeSettings(['--config', 'e.json', '--sys-interval', '2m'], shell);
    assert.deepEqual(
      [
        optionPlace('sysInterval'),
        optionPlace('maxInflight'),
        optionPlace('maxInflight', 'external'),
        optionPlace('maxInflight', 'lab'),
        optionPlace('maxQosAllowed', 'lab'),
        optionPlace('maxPacketSize')
      ],
      [
        '--sys-interval',
        'EMBERMQ_MAX_INFLIGHT',
        'EMBERMQ_MAX_INFLIGHT',
        'e.json: zones.lab.maxInflight',
        'e.json: max_qos_allowed',
        undefined
      ]
    );
  });
});
