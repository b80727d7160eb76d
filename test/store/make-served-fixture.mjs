// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of rules
// Writes the data folder of `embermq serve` of a built release, for the tests that start it with the current code:
//
//   node test/store/make-served-fixture.mjs BUILD NAME
//
// BUILD is the folder of a built embermq (with `dist` in it), NAME the release, such as 0.2. The folder is written to
// `fixtures/NAME-served`, and what was created to `fixtures/NAME-served.json`: the definitions of each kind, as the release returned
// them. Definitions that a later version treats differently are created on purpose. Run this once for each release, commit the result,
// and never change it again.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import mqtt from 'mqtt';

const [build, name] = process.argv.slice(2);
if (name === undefined) {
  process.stderr.write('usage: node test/store/make-served-fixture.mjs BUILD NAME\n');
  process.exit(2);
}
const FIXTURE = join(import.meta.dirname, 'fixtures', `${name}-served`);
const APP = 'admin:secret of the application';
/** Client ids, user names and ids of applications have at most 4,096 bytes from 0.3 on. */
const LONG = 5_000;
/** A file outside of the data folder. Nothing is written there: the rule is refused or cannot open it. */
const OUTSIDE = '/tmp/embermq-fixture/outside.txt';

/** The config file: it is not a part of the folder, but rules of the folder need it. */
const CONFIG = {
  streams: {
    sourceConfig: {
      mqtt: { other: { server: 'tcp://127.0.0.1:1' } },
      httppull: { default: { url: 'http://127.0.0.1:1', interval: 3_600_000 } }
    }
  }
};

const home = mkdtempSync(join(tmpdir(), 'embermq-served-'));

/** A library that is put into the folder of plugins by hand. */
const LIBRARY = `export const Shout = {
  validate: () => {},
  exec: ([text]) => String(text).toUpperCase() + '!',
  isAggregate: () => false
};
`;

async function start() {
  const flags = ['--data-dir', 'data', '--app', APP, '--mqtt-port', '0', '--ws-port', 'off', '--http-port', '0'];
  const more = [
    '--http-earlier-port',
    'off',
    '--rules-port',
    '0',
    '--http-push-port',
    'off',
    '--reserve',
    '0',
    '--config',
    'config.json'
  ];
  const child = spawn(
    process.execPath,
    [join(resolve(build), 'dist/adapters/cli/main.js'), 'serve', ...flags, ...more],
    {
      cwd: home,
      stdio: ['ignore', 'pipe', 'inherit']
    }
  );
  process.once('exit', () => child.kill());
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return { child, ports: JSON.parse(line.slice('ready '.length)) };
}

async function stop({ child }) {
  const end = once(child, 'exit');
  child.kill('SIGTERM');
  await end;
}

/** Requests to one of the HTTP interfaces. */
function requests(url, headers) {
  return async (method, path, body) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...headers, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body)
    });
    const text = await response.text();
    if (!response.ok || /^\{.*"code":1\d\d/.test(text))
      throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text;
  };
}

// ------------------------------------------------------------------------------------------------- rules over events

const RESOURCES = [
  {
    id: 'plain-server',
    type: 'web_hook',
    config: { url: 'http://127.0.0.1:1/hook', headers: { authorization: 'Bearer s3cret' } }
  },
  { id: 'secure-server', type: 'web_hook', config: { url: 'https://127.0.0.1:1/hook', verify: false } },
  {
    id: 'other-broker',
    type: 'bridge_mqtt',
    config: {
      address: '127.0.0.1:1',
      pool_size: 1,
      clientid: 'fixture',
      append: false,
      keepalive: '60s',
      ssl: 'off',
      username: 'u',
      password: 's3cret'
    }
  }
];

const republish = (target) => ({
  name: 'republish',
  params: { target_topic: target, target_qos: 1, payload_tmpl: '${x}' }
});

const RULES = [
  { id: 'to-topic', rawsql: 'SELECT payload.x AS x FROM "in/#"', actions: [republish('out/${clientid}')] },
  {
    id: 'to-server',
    rawsql: 'SELECT * FROM "in/#"',
    actions: [{ name: 'data_to_webserver', params: { $resource: 'plain-server', path: '/a' } }]
  },
  {
    id: 'to-secure-server',
    rawsql: 'SELECT * FROM "in/#"',
    actions: [{ name: 'data_to_webserver', params: { $resource: 'secure-server' } }]
  },
  {
    id: 'to-broker',
    rawsql: 'SELECT * FROM "in/#"',
    actions: [{ name: 'data_to_mqtt_broker', params: { $resource: 'other-broker' } }]
  },
  { id: 'connected', rawsql: 'SELECT clientid FROM "$events/client_connected"', actions: [republish('seen')] },
  {
    id: 'foreach',
    rawsql: 'FOREACH payload.items AS item DO item.id AS id INCASE item.id = "a_1" FROM "lists/#"',
    actions: [republish('items')]
  },
  {
    id: 'functions',
    rawsql: "SELECT concat('a', 'b') AS c, hexstr2bin('abc') AS h, map_put('a', 1, payload.text) AS m FROM \"in/#\"",
    actions: [republish('f')]
  },
  { id: 'slices', rawsql: 'SELECT payload.list[1..2] FROM "in/#"', actions: [republish('s')] },
  {
    id: 'expression',
    rawsql: 'SELECT regex_match(payload.s, \'^(a+)+$\') AS r FROM "in/#"',
    actions: [republish('r')]
  },
  { id: 'placeholder', rawsql: 'SELECT payload.x AS "device-id" FROM "in/#"', actions: [republish('p/${device-id}')] },
  { id: 'off', rawsql: 'SELECT * FROM "in/#"', actions: [republish('off')], enabled: false }
];

// ------------------------------------------------------------------------------------------------- rules over streams

const STREAMS = [
  'CREATE STREAM demo (a BIGINT, t FLOAT, s STRING) WITH (DATASOURCE="demo", FORMAT="json")',
  'CREATE STREAM free () WITH (DATASOURCE="free", FORMAT="json")',
  'CREATE STREAM two () WITH (DATASOURCE="a,b", FORMAT="json")',
  'CREATE STREAM events (a BIGINT, ts BIGINT) WITH (DATASOURCE="events", FORMAT="json", TIMESTAMP="ts")',
  'CREATE STREAM remote () WITH (DATASOURCE="remote", FORMAT="json", TYPE="mqtt", CONF_KEY="other")',
  'CREATE STREAM files () WITH (DATASOURCE="rows.json", FORMAT="json", TYPE="file")',
  'CREATE STREAM pulled () WITH (DATASOURCE="/rows", FORMAT="json", TYPE="httppull")'
];
const TABLES = [
  'CREATE TABLE settings (id BIGINT, name STRING) WITH (TYPE="mqtt", DATASOURCE="settings", FORMAT="json", RETAIN_SIZE="10")',
  'CREATE TABLE filed (id BIGINT, name STRING) WITH (DATASOURCE="table.json", FORMAT="json", TYPE="file")'
];
const memory = [{ memory: { topic: 'out' } }];
const STREAM_RULES = [
  { id: 'file-relative', sql: 'SELECT * FROM demo', actions: [{ file: { path: 'rows.txt' } }] },
  { id: 'file-default', sql: 'SELECT * FROM demo', actions: [{ file: { fileType: 'json' } }] },
  { id: 'file-template', sql: 'SELECT * FROM demo', actions: [{ file: { path: '{{.s}}.txt', fields: ['a'] } }] },
  {
    id: 'file-in-plugins',
    sql: 'SELECT * FROM demo',
    actions: [{ file: { path: 'plugins/functions/evil.mjs' } }],
    triggered: false
  },
  {
    id: 'file-absolute',
    sql: 'SELECT * FROM demo',
    actions: [{ file: { path: join(home, 'data/streams/absolute.txt') } }]
  },
  { id: 'file-outside', sql: 'SELECT * FROM demo', actions: [{ file: { path: OUTSIDE } }], triggered: false },
  { id: 'file-above', sql: 'SELECT * FROM demo', actions: [{ file: { path: '../above.txt' } }], triggered: false },
  { id: 'file-source', sql: 'SELECT * FROM files', actions: memory },
  {
    id: 'rest-secure',
    sql: 'SELECT * FROM demo',
    actions: [{ rest: { url: 'https://127.0.0.1:1/rows', headers: { authorization: 'Bearer s3cret' } } }]
  },
  {
    id: 'rest-insecure',
    sql: 'SELECT * FROM demo',
    actions: [{ rest: { url: 'https://127.0.0.1:1/rows', insecureSkipVerify: true } }]
  },
  { id: 'rest-plain', sql: 'SELECT * FROM demo', actions: [{ rest: { url: 'http://127.0.0.1:1/rows' } }] },
  { id: 'null-comparison', sql: 'SELECT * FROM demo WHERE a < t', actions: memory },
  { id: 'unequal', sql: 'SELECT * FROM free WHERE s != "x"', actions: memory },
  {
    id: 'event-time',
    sql: 'SELECT count(*) AS c FROM events GROUP BY TUMBLINGWINDOW(ss, 10)',
    actions: memory,
    options: { isEventTime: true, lateTolerance: 1000 }
  },
  { id: 'aliases', sql: 'SELECT a + 1 AS a, a * 2 AS b FROM demo', actions: memory },
  { id: 'two-topics', sql: 'SELECT * FROM two', actions: memory },
  { id: 'remote-qos', sql: 'SELECT * FROM remote', actions: memory, options: { qos: 1, checkpointInterval: 60_000 } },
  {
    id: 'state-window',
    sql: 'SELECT count(*) AS c FROM demo GROUP BY a, STATEWINDOW(t > 1, t < 0)',
    actions: memory,
    triggered: false
  },
  {
    id: 'join-table',
    sql: 'SELECT demo.a, settings.name FROM demo INNER JOIN settings ON demo.a = settings.id',
    actions: memory
  },
  { id: 'scripted', sql: 'SELECT area(a, a) AS area FROM demo', actions: memory },
  { id: 'by-hand', sql: 'SELECT shout(s) AS s FROM demo', actions: memory },
  {
    id: 'to-mqtt',
    sql: 'SELECT * FROM demo',
    actions: [{ mqtt: { server: 'tcp://127.0.0.1:1', topic: 'out', username: 'u', password: 's3cret' } }]
  },
  { id: 'pull', sql: 'SELECT * FROM pulled', actions: memory },
  { id: 'to-log', sql: 'SELECT * FROM demo', actions: [{ log: {} }], triggered: false }
];

// --------------------------------------------------------------------------------------------------------------- state

async function client(port, clientId, more = {}) {
  return mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, {
    clientId,
    protocolVersion: 5,
    clean: true,
    reconnectPeriod: 0,
    ...more
  });
}

async function fillBroker({ ports }) {
  const absent = await client(ports.mqtt, 'absent', {
    clean: false,
    properties: { sessionExpiryInterval: 0xffff_ffff }
  });
  await absent.subscribeAsync('queue/#', { qos: 1 });
  await absent.endAsync();
  const publisher = await client(ports.mqtt, 'publisher');
  for (let n = 0; n < 20; n++) await publisher.publishAsync(`queue/${n}`, `${n}`, { qos: 1 });
  await publisher.publishAsync('retained/1', 'one', { qos: 1, retain: true });
  await publisher.publishAsync('settings', '{"id":1,"name":"first"}', { qos: 1, retain: true });
  await publisher.publishAsync('$delayed/4294966/later', 'late', { qos: 1 });
  await publisher.endAsync();
}

async function fillManagement(ask, created) {
  for (const resource of RESOURCES) await ask('POST', '/resources', resource);
  for (const rule of RULES)
    await ask('POST', '/rules', rule).catch((error) => created.refused.push(`${error.message}`));
  await ask('POST', '/apps', { app_id: 'second', secret: 's3cret of the second' });
  await ask('POST', '/apps', { app_id: 'a'.repeat(256), secret: 's3cret of the third' });
  await ask('POST', '/users', { username: 'viewer', password: 'password of viewer', tags: 'viewer' });
  const longName = 'n'.repeat(LONG);
  for (const username of ['sensor', longName]) await ask('POST', '/auth_username', { username, password: 'secret' });
  for (const clientid of ['sensor-1', longName]) await ask('POST', '/auth_clientid', { clientid, password: 'secret' });
  for (const clientid of ['sensor-1', longName])
    await ask('POST', '/acl', { clientid, topic: 'sensors/#', action: 'subpub', access: 'allow' });
  for (const who of ['intruder', longName]) await ask('POST', '/banned', { who, as: 'username', until: 4_000_000_000 });
  await ask('POST', '/x/webhooks', {
    name: 'events',
    url: 'http://127.0.0.1:1/events',
    rules: [{ event: 'session.terminated' }]
  });
  await ask('POST', '/x/webhooks', {
    name: 'secure',
    url: 'https://127.0.0.1:1/events',
    rules: [{ event: 'message.dropped' }]
  });
  await ask('POST', '/x/bridges', {
    name: 'other',
    url: 'mqtt://127.0.0.1:1',
    out: [{ filter: 'bridged/#', qos: 1 }],
    password: 's3cret',
    username: 'u'
  });
  created.resources = (await ask('GET', '/resources')).data;
  created.rules = (await ask('GET', '/rules')).data;
  created.webhooks = (await ask('GET', '/x/webhooks')).data;
  created.bridges = (await ask('GET', '/x/bridges')).data;
}

async function fillStreams(ask, created) {
  await ask('POST', '/udf/javascript', { id: 'area', script: 'function area(x, y) { return x * y; }', isAgg: false });
  for (const sql of STREAMS) await ask('POST', '/streams', { sql });
  for (const sql of TABLES) await ask('POST', '/tables', { sql });
  for (const rule of STREAM_RULES)
    await ask('POST', '/rules', rule).catch((error) => created.refused.push(`${error.message}`));
  created.streamRules = (await ask('GET', '/rules')).map(({ id, status }) => ({ id, status }));
  created.streams = await ask('GET', '/streams');
  created.tables = await ask('GET', '/tables');
  created.plugins = await ask('GET', '/plugins/functions');
  created.scripts = await ask('GET', '/udf/javascript');
}

writeFileSync(join(home, 'config.json'), JSON.stringify(CONFIG));
const created = { version: name, config: CONFIG, refused: [] };
mkdirSync(join(home, 'data/streams/plugins/functions'), { recursive: true });
writeFileSync(join(home, 'data/streams/plugins/functions/shout@v1.0.0.mjs'), LIBRARY);
writeFileSync(join(home, 'data/streams/rows.json'), '[{"a":1}]');
writeFileSync(join(home, 'data/streams/table.json'), '[{"id":1,"name":"first"}]');
const served = await start();
const app = Buffer.from(APP).toString('base64');
await fillManagement(
  requests(`http://127.0.0.1:${served.ports.http}/api/v4`, { authorization: `Basic ${app}` }),
  created
);
await fillStreams(requests(`http://127.0.0.1:${served.ports.rules}`, {}), created);
await fillBroker(served);
const device = await client(served.ports.mqtt, 'device');
await device.publishAsync('demo', '{"a":1,"t":2.5,"s":"x"}', { qos: 1 });
await device.endAsync();
await stop(served);
const again = await start();
created.afterRestart = await requests(`http://127.0.0.1:${again.ports.rules}`, {})('GET', '/rules');
await stop(again);
created.files = readdirSync(join(home, 'data'), { recursive: true }).sort();
rmSync(FIXTURE, { recursive: true, force: true });
cpSync(join(home, 'data'), FIXTURE, { recursive: true });
writeFileSync(`${FIXTURE}.json`, `${JSON.stringify(created, undefined, 1).replaceAll(home, 'HOME')}\n`);
rmSync(home, { recursive: true });
process.stdout.write(`${FIXTURE}: ${created.refused.length} definitions were refused\n${created.refused.join('\n')}\n`);
process.exit(0);
