import assert from 'node:assert/strict';
import mqtt from 'mqtt';
import { runCommand } from '../../adapters/cli/commands.ts';
import { readyPorts, testShell } from '../cli/shell.ts';
import { until } from '../support/until.ts';
import type { ServedFolder } from './old-folder.ts';

const APP = 'tester:secret of the tester';

/** A broker of the current code on a folder of an earlier release. */
export interface Upgraded {
  readonly mqttPort: number;
  management(path: string): Promise<unknown>;
  streams(path: string): Promise<unknown>;
}

/**
 * Runs `serve` on a folder while `use` runs.
 * @param more options of the stream service
 * @returns its output to standard error
 */
export async function upgraded(
  folder: string,
  expected: ServedFolder,
  use: (broker: Upgraded) => Promise<void>,
  more: object = {}
): Promise<string> {
  const shell = testShell();
  const streams = { ...expected.config.streams, ...more };
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
    await use({
      mqttPort,
      management: async (path) => ((await ask(`http://127.0.0.1:${http}/api/v4${path}`)) as { data: unknown }).data,
      streams: (path) => ask(`http://127.0.0.1:${rules}${path}`)
    });
  } finally {
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  }
  return shell.err();
}

/** Checks that each rule, resource, stream, table, webhook, bridge and plugin of the folder exists. */
export async function checkDefinitions({ management, streams }: Upgraded, expected: ServedFolder): Promise<void> {
  assert.deepEqual(all(await management('/rules'), 'id'), all(expected.rules, 'id'));
  assert.deepEqual(all(await management('/rules'), 'rawsql'), all(expected.rules, 'rawsql'));
  const resources = (await management('/resources')) as { type: string; config: { fail_on_status?: boolean } }[];
  assert.deepEqual(all(resources, 'id'), all(expected.resources, 'id'));
  const servers = resources.filter(({ type }) => type === 'web_hook');
  assert.ok(servers.length > 0 && servers.every(({ config }) => config.fail_on_status !== false));
  assert.deepEqual(all(await management('/x/webhooks'), 'name'), all(expected.webhooks, 'name'));
  assert.deepEqual(all(await management('/x/bridges'), 'name'), all(expected.bridges, 'name'));
  assert.deepEqual(all(await streams('/rules'), 'id'), all(expected.streamRules, 'id'));
  assert.deepEqual(await streams('/streams'), expected.streams);
  assert.deepEqual(await streams('/tables'), expected.tables);
  assert.deepEqual(await streams('/plugins/functions'), expected.plugins);
  assert.deepEqual(await streams('/udf/javascript'), expected.scripts);
}

/** Checks users, applications, access rules, bans, sessions and retained messages. */
export async function checkRecords({ management, mqttPort }: Upgraded): Promise<void> {
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
  client.on('message', (topic, payload) => received.push(`${topic} ${payload}`));
  try {
    const isPresent = await new Promise((resolve) =>
      client.once('connect', (packet) => resolve(packet.sessionPresent))
    );
    assert.equal(isPresent, true);
    await client.subscribeAsync('retained/#');
    await until(() => received.length >= 21);
  } finally {
    await client.endAsync(true);
  }
  const queued = Array.from({ length: 20 }, (_, n) => `queue/${n} ${n}`);
  assert.deepEqual(received.sort(), ['retained/1 one', ...queued].sort());
}

/** A field of each record, in the order of the alphabet. */
function all(records: unknown, field: string): unknown[] {
  return (records as Record<string, unknown>[]).map((record) => record[field]).sort();
}
