import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt';
import { runCommand } from '../../adapters/cli/commands.ts';
import { makeCertificates } from '../support/certificates.ts';
import { freePorts } from '../support/free-ports.ts';
import { CommandProcess } from './process.ts';
import { testShell } from './shell.ts';

const PATH = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`;
const isInstalled = spawnSync('mosquitto', ['-h'], { env: { PATH } }).error === undefined;
const isRequired = process.env.REQUIRE_MOSQUITTO === '1';
const withBroker = {
  skip: !isInstalled && !isRequired && 'mosquitto is not installed (Debian: mosquitto)',
  timeout: 120_000
};

const home = mkdtempSync(join(tmpdir(), 'embermq-decisions-'));
let folders = 0;
after(() => rmSync(home, { recursive: true, force: true }));

/** Make a folder with the files of mosquitto. `PORT` and `DIR` in them are replaced. */
function folderWith(files: Readonly<Record<string, string>>, port: number): string {
  const folder = join(home, `${folders++}`);
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files))
    writeFileSync(
      join(folder, name),
      text.replaceAll('TLS', `${port}`).replaceAll('PORT', `${port}`).replaceAll('DIR', folder),
      { mode: 0o644 }
    );
  return folder;
}

/** A line of a password file of mosquitto: PBKDF2 with SHA-512. */
function userLine(name: string): string {
  const file = join(home, 'made');
  const { status } = spawnSync('mosquitto_passwd', ['-c', '-b', file, name, `${name}-secret`], { env: { PATH } });
  assert.equal(status, 0);
  return String(spawnSync('cat', [file]).stdout);
}

/** The processes that tests have started; those that a failed test has left are ended with the file. */
const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill();
});

/** A broker that runs. */
interface Running {
  readonly port: number;
  /** The port of the second listener. */
  readonly tlsPort: number;
  end(): Promise<unknown>;
}

async function startMosquitto(files: Readonly<Record<string, string>>): Promise<Running> {
  const [port, tlsPort] = await freePorts(2);
  const folder = folderWith(files, port);
  const user = process.getuid?.() === 0 ? ['user root'] : [];
  writeFileSync(
    join(folder, 'run.conf'),
    `${files['mosquitto.conf'].replaceAll('TLS', `${tlsPort}`).replaceAll('PORT', `${port}`).replaceAll('DIR', folder)}\n${user.join('\n')}\n`
  );
  const child: ChildProcess = spawn('mosquitto', ['-c', join(folder, 'run.conf')], {
    env: { PATH },
    stdio: ['ignore', 'ignore', 'pipe']
  });
  children.push(child);
  let log = '';
  child.stderr?.on('data', (chunk) => {
    log += chunk;
  });
  for (;;) {
    if (child.exitCode !== null) throw new Error(`mosquitto has ended: ${log}`);
    const socket = connectSocket(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false
    );
    socket.destroy();
    if (isOpen) break;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return {
    port,
    tlsPort,
    async end() {
      child.kill();
      await once(child, 'exit');
    }
  };
}

/** Import the files and start a broker with the result. The ports of its listeners are free ones. */
async function startImported(
  files: Readonly<Record<string, string>>,
  name = 'mosquitto.conf'
): Promise<Running & { readonly folder: string; readonly out: string }> {
  const folder = folderWith(files, 0);
  const shell = testShell();
  const config = join(folder, 'embermq.json');
  assert.equal(await runCommand(['import', join(folder, name), '--out', config], shell), 0, shell.err());
  const broker = new CommandProcess(['serve', '--config', config, '--data-dir', join(folder, 'data')]);
  children.push(broker.child);
  const ready = await broker.ready();
  const [port, tlsPort] = Object.entries(ready).flatMap(([key, value]) => (key === 'pid' ? [] : [value]));
  return {
    port,
    tlsPort,
    folder,
    out: shell.out(),
    async end() {
      broker.child.kill();
      await broker.end();
    }
  };
}

/** A client, or the reason why it was refused. */
async function login(port: number, options: IClientOptions): Promise<MqttClient | string> {
  const client = mqtt.connect({
    port,
    host: '127.0.0.1',
    reconnectPeriod: 0,
    protocolVersion: 4,
    connectTimeout: 20_000,
    ...options
  });
  return new Promise((resolve) => {
    client.once('connect', () => resolve(client));
    client.once('error', (error) => {
      client.end(true);
      resolve(error.message);
    });
    client.once('close', () => resolve('closed'));
  });
}

function subscribed(client: MqttClient, topics: readonly string[]): Promise<unknown> {
  return client.subscribeAsync([...topics], { qos: 1 }).catch(() => undefined);
}

/** The topics that arrive before the marker. */
async function arrivals(client: MqttClient, marker: string, act: () => Promise<unknown>): Promise<Set<string>> {
  const seen = new Set<string>();
  const done = new Promise<void>((resolve) => {
    const listener = (topic: string) => {
      seen.add(topic);
      if (topic !== marker) return;
      client.off('message', listener);
      resolve();
    };
    client.on('message', listener);
  });
  await act();
  await done;
  seen.delete(marker);
  return seen;
}

/** Everybody may publish and receive the markers. */
const MARKERS = `
pattern read marker/%c/in
pattern write marker/%c/out
`;

const ADMIN = `
user admin
topic readwrite #
`;

/** For each topic, whether a client may publish it and receive it. */
async function decisions(
  port: number,
  client: IClientOptions,
  topics: readonly string[]
): Promise<Record<string, string> | string> {
  const clientId = 'probe';
  const admin = await login(port, { username: 'admin', password: 'admin-secret', clientId: 'admin' });
  assert.ok(typeof admin !== 'string', String(admin));
  const probe = await login(client.port ?? port, { ...client, clientId });
  if (typeof probe === 'string') {
    await admin.endAsync(true);
    return 'refused';
  }
  const [marked, written] = [`marker/${clientId}/in`, `marker/${clientId}/out`];
  await subscribed(admin, ['#']);
  const published = await arrivals(admin, written, async () => {
    for (const topic of topics) await probe.publishAsync(topic, '1', { qos: 1 });
    await probe.publishAsync(written, '1', { qos: 1 });
  });
  for (const topic of [...topics, marked]) await subscribed(probe, [topic]);
  const received = await arrivals(probe, marked, async () => {
    for (const topic of topics) await admin.publishAsync(topic, '1', { qos: 1 });
    await admin.publishAsync(marked, '1', { qos: 1 });
  });
  await Promise.all([admin.endAsync(true), probe.endAsync(true)]);
  const shown = (topic: string) =>
    `${published.has(topic) ? 'write ' : ''}${received.has(topic) ? 'read' : ''}`.trim() || 'none';
  return Object.fromEntries(topics.map((topic) => [topic, shown(topic)]));
}

const TOPICS = [
  'public/news',
  'public/hidden',
  'sensors/attic/temp',
  'sensors/attic/heat',
  'sensors/secret',
  'devices/probe/state',
  'devices/other/state',
  'users/ann/inbox',
  'users/bob/inbox',
  'users/zoe/inbox',
  'a b',
  'closed/door',
  'elsewhere'
];

const CLIENTS: Readonly<Record<string, IClientOptions>> = {
  anonymous: {},
  ann: { username: 'ann', password: 'ann-secret' },
  bob: { username: 'bob', password: 'bob-secret' },
  carol: { username: 'carol', password: 'carol-secret' },
  'ann with a wrong password': { username: 'ann', password: 'guess' }
};

const RULES = `
# clients without a name
topic read public/#
topic deny public/hidden
topic write users/zoe/inbox
pattern readwrite devices/%c/#
pattern readwrite users/%u/#
pattern deny closed/door
${ADMIN}
user ann
topic readwrite sensors/#
topic deny sensors/secret
topic write a b
topic read closed/door
user bob
topic read sensors/+/temp
topic deny users/bob/inbox
${MARKERS}`;

/** Settings of the broker for which the decisions are compared. */
const SETTINGS: Readonly<Record<string, string>> = {
  'users only': 'listener PORT 127.0.0.1\nallow_anonymous false\npassword_file DIR/users\nacl_file DIR/acl',
  'users and clients without a name':
    'listener PORT 127.0.0.1\nallow_anonymous true\npassword_file DIR/users\nacl_file DIR/acl',
  'own settings for a listener':
    'per_listener_settings true\nlistener PORT 127.0.0.1\nallow_anonymous true\npassword_file DIR/users\nacl_file DIR/acl',
  'users without rules': 'listener PORT 127.0.0.1\npassword_file DIR/users'
};

describe('a broker with the imported files of mosquitto', withBroker, () => {
  const users = isInstalled ? ['admin', 'ann', 'bob', 'carol'].map(userLine).join('') : '';
  for (const [name, settings] of Object.entries(SETTINGS))
    it(`admits the same clients and allows the same topics: ${name}`, async () => {
      const files = { 'mosquitto.conf': settings, users, acl: RULES };
      const original = await startMosquitto(files);
      const imported = await startImported(files);
      for (const [who, client] of Object.entries(CLIENTS)) {
        const expected = await decisions(original.port, client, TOPICS);
        assert.deepEqual(await decisions(imported.port, client, TOPICS), expected, who);
        if (who === 'ann' && 'acl_file' in Object.fromEntries(settings.split('\n').map((line) => line.split(' ', 2))))
          assert.deepEqual(
            [expected['sensors/attic/temp' as never], expected['sensors/secret' as never], expected['a b' as never]],
            ['write read', 'none', 'write']
          );
      }
      await original.end();
      await imported.end();
    });

  it('admits clients by their certificates, and takes the name for access rules from them', async () => {
    using certificates = makeCertificates();
    const { ca, server, client, stranger } = certificates;
    const files = {
      'mosquitto.conf': `listener PORT 127.0.0.1
listener TLS 127.0.0.1
cafile ${ca.certFile}
certfile ${server.certFile}
keyfile ${server.keyFile}
require_certificate true
use_identity_as_username true
password_file DIR/users
acl_file DIR/acl`,
      users,
      acl: `${RULES}\nuser device-1\ntopic readwrite elsewhere\n`
    };
    const original = await startMosquitto(files);
    const imported = await startImported(files);
    for (const { cert, key } of [client, stranger]) {
      const over = (port: number): IClientOptions => ({ port, protocol: 'mqtts', ca: ca.cert, cert, key });
      const expected = await decisions(original.port, over(original.tlsPort), TOPICS);
      assert.equal(typeof expected, cert === client.cert ? 'object' : 'string');
      assert.deepEqual(await decisions(imported.port, over(imported.tlsPort), TOPICS), expected);
    }
    await original.end();
    await imported.end();
  });

  it('gives a client with a name that is not in the password file no rights of this name', async () => {
    const files = {
      'mosquitto.conf': SETTINGS['users and clients without a name'],
      users,
      acl: `${RULES}\nuser mallory\ntopic readwrite elsewhere\n`
    };
    const imported = await startImported(files);
    const found = await decisions(imported.port, { username: 'mallory', password: 'x' }, TOPICS);
    const anonymous = await decisions(imported.port, {}, TOPICS);
    assert.deepEqual(found, anonymous); // mosquitto refuses it; see "added" in the output
    assert.equal((found as Record<string, string>).elsewhere, 'none');
    await imported.end();
  });
});

/** The files of EMQX 4: its defaults, with another address. */
const EMQX = {
  'emqx.conf': `
## Node
node.name = site1@127.0.0.1
node.cookie = emqxsecretcookie
allow_anonymous = false
acl_nomatch = deny
acl_file = etc/acl.conf
acl_deny_action = ignore
listener.tcp.external = 127.0.0.1:0
listener.tcp.external.acceptors = 8
listener.tcp.external.max_connections = 1024000
listener.tcp.external.zone = external
listener.tcp.external.access.1 = allow all
listener.tcp.external.nodelay = true
zone.external.max_inflight = 64
zone.external.mqueue_store_qos0 = true
mqtt.max_packet_size = 2MB
`,
  'acl.conf': `
%% the default rules of EMQX, without its last line
{allow, {user, "admin"}, pubsub, ["#", "$SYS/#"]}.
{allow, {user, "dashboard"}, subscribe, ["$SYS/#"]}.
{deny, all, subscribe, [{eq, "#"}]}.
{allow, {'and', [{user, "ann"}, {ipaddr, "127.0.0.1"}]}, pubsub, ["sensors/#"]}.
{allow, {'or', [{client, "probe"}, {user, "bob"}]}, subscribe, ["public/#"]}.
{allow, all, pubsub, ["users/%u/#", "marker/%c/#"]}.
`
};

describe('a broker with the imported files of EMQX', { timeout: 120_000, skip: withBroker.skip }, () => {
  it('opens the listener, authenticates, and decides by the rules of acl.conf', async () => {
    const users = ['admin', 'ann', 'bob'].map(userLine).join('');
    const folder = folderWith({}, 0);
    mkdirSync(join(folder, 'etc'));
    writeFileSync(join(folder, 'etc', 'emqx.conf'), EMQX['emqx.conf']);
    writeFileSync(join(folder, 'etc', 'acl.conf'), EMQX['acl.conf']);
    writeFileSync(join(folder, 'users'), users);
    const shell = testShell();
    const config = join(folder, 'embermq.json');
    assert.equal(
      await runCommand(['import', join(folder, 'etc', 'emqx.conf'), '--out', config], shell),
      0,
      shell.err()
    );
    assert.equal(shell.out().match(/not taken over/g)?.length, 2, 'node.cookie and acceptors');
    const broker = new CommandProcess([
      ...['serve', '--config', config, '--data-dir', join(folder, 'data'), '--password-file', join(folder, 'users')]
    ]);
    children.push(broker.child);
    const { pid, ...ports } = await broker.ready();
    const [port] = Object.values(ports);
    const topics = ['sensors/attic', 'public/news', 'users/ann/inbox', 'elsewhere'];
    assert.deepEqual(await decisions(port, CLIENTS.ann, topics), {
      'sensors/attic': 'write read',
      'public/news': 'read',
      'users/ann/inbox': 'write read',
      elsewhere: 'none'
    });
    assert.deepEqual(await decisions(port, CLIENTS.bob, topics), {
      'sensors/attic': 'none',
      'public/news': 'read',
      'users/ann/inbox': 'none',
      elsewhere: 'none'
    });
    assert.equal(await decisions(port, {}, topics), 'refused');
    assert.equal(typeof pid, 'number');
    broker.child.kill();
    await broker.end();
  });
});
