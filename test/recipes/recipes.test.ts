import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { aclFile } from '../../adapters/auth/acl-file/index.ts';
import { SERVE_OPTIONS } from '../../adapters/cli/serve/options.ts';
import { metricsHandler } from '../../adapters/management/index.ts';
import { users } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

const examples = join(import.meta.dirname, '../../examples');
const pageOf = (name: string) => readFileSync(join(examples, 'recipes', `${name}.md`), 'utf8');

/** The code blocks of a page in one language; `''` for blocks without one. */
function blocks(page: string, language: string): string[] {
  return [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    .filter(([, name]) => name === language)
    .map(([, , code]) => code);
}

/** Asks the access rules on a page: returns a line for each of the rows `USER publish|subscribe TOPIC`. */
async function decisions(name: string, rows: readonly string[]): Promise<string[]> {
  const [text] = blocks(pageOf(name), '');
  const folder = mkdtempSync(join(tmpdir(), 'embermq-recipes-'));
  const file = join(folder, 'acl.conf');
  writeFileSync(file, text);
  const names = [...new Set(rows.map((row) => row.split(' ')[0]))];
  await using kit = await createTestBroker({
    auth: [users(names.map((username) => ({ username, password: 'a secret' }))), aclFile({ file })]
  });
  const found: string[] = [];
  for (const row of rows) {
    const [username, action, topic] = row.split(' ');
    const client = await kit.connect({ clientId: username, username, password: 'a secret' });
    const isAllowed =
      action === 'publish'
        ? await client.publish(topic, 'x', { qos: 1 }).then(
            () => true,
            () => false
          )
        : (await client.subscribe(topic))[0] < 0x80;
    found.push(`${row}: ${isAllowed ? 'yes' : 'no'}`);
    await client.disconnect();
  }
  rmSync(folder, { recursive: true });
  return found;
}

describe('The recipes', () => {
  it('let zigbee2mqtt and a panel do what they need, and nothing else', async () => {
    const expected = [
      'zigbee2mqtt publish zigbee2mqtt/bridge/state: yes',
      'zigbee2mqtt publish homeassistant/light/0x01/light/config: yes',
      'zigbee2mqtt subscribe zigbee2mqtt/#: yes',
      'zigbee2mqtt subscribe homeassistant/status: yes',
      'zigbee2mqtt subscribe #: no',
      'panel subscribe zigbee2mqtt/#: yes',
      'panel publish zigbee2mqtt/lamp/set: yes',
      'panel publish zigbee2mqtt/lamp/get: yes',
      'panel publish zigbee2mqtt/bridge/request/restart: no'
    ];
    const rows = expected.map((row) => row.replace(/: \w+$/, ''));
    assert.deepEqual(await decisions('zigbee2mqtt', rows), expected);
  });

  it('let Home Assistant do everything, and devices only what is theirs', async () => {
    const page = pageOf('home-assistant');
    const topics = [...page.matchAll(/-u boiler -P PASSWORD (?:-r )?-t (\S+)/g)].map(([, topic]) => topic);
    assert.equal(topics.length, 3);
    const expected = [
      'homeassistant subscribe homeassistant/#: yes',
      'homeassistant subscribe devices/+/temperature: yes',
      'homeassistant publish devices/boiler/set: yes',
      ...topics.map((topic) => `boiler publish ${topic}: yes`),
      'boiler subscribe homeassistant/status: yes',
      'boiler subscribe devices/boiler/set: yes',
      'boiler subscribe #: no',
      'boiler publish devices/door/status: no',
      'boiler publish homeassistant/sensor/door/temperature/config: no'
    ];
    const rows = expected.map((row) => row.replace(/: \w+$/, ''));
    assert.deepEqual(await decisions('home-assistant', rows), expected);
  });

  it('describe a device in valid JSON, with topics to which the page publishes', () => {
    const page = pageOf('home-assistant');
    const [, json] = /-m '(\{.*?\})'$/ms.exec(page)!;
    const config = JSON.parse(json);
    for (const topic of [config.state_topic, config.availability_topic])
      assert.ok(page.includes(`-t ${topic} -m `), topic);
  });

  it('name metrics that exist', async () => {
    await using kit = await createTestBroker();
    const answer = await metricsHandler(kit.broker).fetch(new Request('http://localhost/metrics'));
    const names = new Set([...(await answer.text()).matchAll(/^(?:# TYPE )?(\w+)[{ ]/gm)].map(([, name]) => name));
    const used = [...pageOf('prometheus').matchAll(/\b(?:embermq|process|nodejs)_\w+/g)].map(([name]) => name);
    assert.ok(used.length > 10);
    assert.deepEqual(
      used.filter((name) => name !== 'process_' && !names.has(name)),
      []
    );
  });

  it('scrape the port of the command', () => {
    const config = parse(readFileSync(join(examples, 'deploy/prometheus.yml'), 'utf8'));
    const [quoted] = blocks(pageOf('prometheus'), 'yaml');
    assert.deepEqual(parse(quoted).scrape_configs, config.scrape_configs);
    assert.deepEqual(config.scrape_configs[0].static_configs, [
      { targets: [`127.0.0.1:${SERVE_OPTIONS.httpPort.default}`] }
    ]);
  });
});
