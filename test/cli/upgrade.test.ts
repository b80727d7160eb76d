import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import mqtt from 'mqtt';
import { runCommand } from '../../adapters/cli/commands.ts';
import { copyServedFolder, SERVED_FOLDERS, type ServedFolder } from '../store/old-folder.ts';
import { readyPorts, testShell } from './shell.ts';

const home = mkdtempSync(join(tmpdir(), 'embermq-upgrade-'));
after(() => rmSync(home, { recursive: true, force: true }));

const APP = 'tester:secret of the tester';

/** A broker of the current code on a folder of an earlier release. */
interface Upgraded {
  readonly folder: string;
  readonly mqttPort: number;
  management(path: string): Promise<unknown>;
  streams(path: string): Promise<unknown>;
}

/** Run `serve` on a copy of a folder while `use` runs. @returns what it has written to standard error */
async function upgraded(
  name: string,
  use: (broker: Upgraded, expected: ServedFolder) => Promise<void>,
  more: (folder: string) => { readonly streams?: object } = () => ({})
): Promise<string> {
  const folder = mkdtempSync(join(home, `${name}-`));
  const expected = copyServedFolder(name, folder);
  const shell = testShell();
  const streams = { ...expected.config.streams, ...more(folder).streams };
  shell.files.set('config.json', JSON.stringify({ ...expected.config, streams }));
  const ports = ['--mqtt-port', '0', '--ws-port', 'off', '--http-port', '0', '--rules-port', '0'];
  const flags = ['--config', 'config.json', '--data-dir', folder, '--reserve', '0', '--app', APP];
  const code = runCommand(['serve', ...ports, ...flags, '--http-push-port', 'off'], shell);
  const { mqtt: mqttPort, http, rules } = await readyPorts(shell, code);
  const authorization = `Basic ${Buffer.from(APP).toString('base64')}`;
  const ask = async (url: string) => {
    const response = await fetch(url, { headers: { authorization } });
    assert.equal(response.status, 200, url);
    return response.json();
  };
  try {
    await use(
      {
        folder,
        mqttPort,
        management: async (path) => ((await ask(`http://127.0.0.1:${http}/api/v4${path}`)) as { data: unknown }).data,
        streams: (path) => ask(`http://127.0.0.1:${rules}${path}`)
      },
      expected
    );
  } finally {
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  }
  return shell.err();
}

/** A field of each record, in the order of the alphabet. */
function all(records: unknown, field: string): unknown[] {
  return (records as Record<string, unknown>[]).map((record) => record[field]).sort();
}

describe('serve on a data folder of an earlier release', () => {
  for (const name of SERVED_FOLDERS) {
    it(`keeps every rule, resource, stream, table, webhook, bridge and plugin: ${name}`, async () => {
      await upgraded(name, async ({ management, streams }, expected) => {
        assert.deepEqual(all(await management('/rules'), 'id'), all(expected.rules, 'id'));
        assert.deepEqual(all(await management('/rules'), 'rawsql'), all(expected.rules, 'rawsql'));
        assert.deepEqual(all(await management('/resources'), 'id'), all(expected.resources, 'id'));
        assert.deepEqual(all(await management('/x/webhooks'), 'name'), all(expected.webhooks, 'name'));
        assert.deepEqual(all(await management('/x/bridges'), 'name'), all(expected.bridges, 'name'));
        assert.deepEqual(all(await streams('/rules'), 'id'), all(expected.streamRules, 'id'));
        assert.deepEqual(await streams('/streams'), expected.streams);
        assert.deepEqual(await streams('/tables'), expected.tables);
        assert.deepEqual(await streams('/plugins/functions'), expected.plugins);
        assert.deepEqual(await streams('/udf/javascript'), expected.scripts);
      });
    });

    it(`keeps users, applications, access rules, bans, sessions and retained messages: ${name}`, async () => {
      await upgraded(name, async ({ management, mqttPort }) => {
        assert.deepEqual(all(await management('/users'), 'username').includes('viewer'), true);
        const applications = all(await management('/apps'), 'app_id');
        assert.ok(applications.includes('second') && applications.includes('admin'));
        assert.equal(all(await management('/auth_username'), 'username').length, 2);
        assert.equal(all(await management('/auth_clientid'), 'clientid').length, 2);
        assert.equal(all(await management('/acl/clientid'), 'clientid').length, 2);
        assert.equal(all(await management('/banned'), 'who').length, 2);
        const received: string[] = [];
        const client = mqtt.connect(`mqtt://127.0.0.1:${mqttPort}`, {
          clientId: 'absent',
          protocolVersion: 5,
          clean: false,
          properties: { sessionExpiryInterval: 0xffff_ffff }
        });
        await new Promise<void>((complete) => {
          client.on('message', (topic, payload) => {
            received.push(`${topic} ${payload}`);
            if (received.length === 21) complete();
          });
          client.on('connect', ({ sessionPresent }) => {
            assert.equal(sessionPresent, true);
            client.subscribe('retained/#');
          });
        });
        await client.endAsync();
        const queued = Array.from({ length: 20 }, (_, n) => `queue/${n} ${n}`);
        assert.deepEqual(received.sort(), ['retained/1 one', ...queued].sort());
      });
    });

    it(`stops stream rules that are no longer valid with the reason, and reports the others in one line: ${name}`, async () => {
      let folder = '';
      const log = await upgraded(name, async (broker) => {
        folder = broker.folder;
        const rules = (await broker.streams('/rules')) as { readonly id: string; readonly status: string }[];
        const status = Object.fromEntries(rules.map((rule) => [rule.id, rule.status]));
        const isRunning = ['file-relative', 'file-default', 'file-template', 'scripted', 'by-hand', 'to-mqtt'];
        for (const id of isRunning) assert.equal(status[id], 'Running', id);
        const outside =
          /^Stopped: file sink: property path must be a path in the folder files of the stream service, or in a folder of the option folders/;
        assert.match(status['file-absolute'], outside);
        assert.match(status['file-source'], /^Stopped: file files.rows\.json not exist; rows\.json, which an earlier/);
      });
      assert.match(
        log,
        /^warn: an earlier release has written the store, and \d+ of its definitions behave differently now/m
      );
      assert.match(
        log,
        /\(stream rule file-above, file-absolute, file-default, file-in-plugins, file-outside and 2 more\)/
      );
      const places = `${join(folder, 'streams/files/rows.txt')} from now on; ${join(folder, 'streams/rows.txt')}, to which`;
      assert.equal(log.split(`warning: stream rule file-relative writes to ${places}`).length, 2);
    });

    it(`uses the folders that the config file allows, as before: ${name}`, async () => {
      const allowAll = (folder: string) => ({ streams: { folders: [join(folder, 'streams'), tmpdir()] } });
      await upgraded(
        name,
        async ({ folder, streams }) => {
          const rules = (await streams('/rules')) as { readonly id: string; readonly status: string }[];
          assert.equal(rules.find(({ id }) => id === 'file-absolute')?.status, 'Running');
          assert.ok(existsSync(join(folder, 'streams/rows.txt')));
        },
        allowAll
      );
    });
  }
});
