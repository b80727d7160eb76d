import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import mqtt, { type MqttClient } from 'mqtt';
import ts from 'typescript';
import { createProgram } from './support/compiler.ts';
import { JOINED, SOURCES } from './support/programs.ts';

const root = join(import.meta.dirname, '..');
const source = join(root, 'examples/greenhouse');
const run = promisify(execFile);
const manifest = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
const basic = (credentials: string) => ({ authorization: `Basic ${Buffer.from(credentials).toString('base64')}` });
const operator = basic('operator:of-the-tests');
const post = (body: object, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body)
});

/** A copy of the example in which `embermq` is this package, as in an installation. */
let folder: string;
/** The same with the compiled programs. */
let compiled: string;
let dataDir: string;

before(() => {
  folder = mkdtempSync(join(root, 'dist-test-')); // the other packages are found in node_modules of the root
  dataDir = mkdtempSync(join(tmpdir(), 'embermq-greenhouse-'));
  cpSync(source, folder, { recursive: true, filter: (path) => !/node_modules|greenhouse.data/.test(path) });
  compiled = join(folder, 'compiled');
  for (const path of [source, join(SOURCES, 'examples/greenhouse')])
    cpSync(path, compiled, {
      recursive: true,
      filter: (name) => !/node_modules|greenhouse.data|\.ts$/.test(name.slice(path.length))
    });
  for (const [path, installed] of [
    [folder, root],
    [compiled, JOINED]
  ]) {
    mkdirSync(join(path, 'node_modules'));
    symlinkSync(installed, join(path, 'node_modules/embermq'), 'junction');
  }
});

after(() => {
  rmSync(folder, { recursive: true, force: true });
  rmSync(dataDir, { recursive: true, force: true });
});

/** The app in a separate process. */
interface App {
  readonly url: string;
  readonly mqttUrl: string;
  readonly wsUrl: string;
  /** End it as a supervisor does. Returns its exit code. */
  stop(): Promise<number | null>;
}

const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) child.kill('SIGKILL');
});

async function start(env: Record<string, string> = {}): Promise<App> {
  const child = spawn(process.execPath, ['main.js'], {
    cwd: compiled,
    env: {
      ...process.env,
      PORT: '0',
      MQTT_PORT: '0',
      DATA_DIR: dataDir,
      OPERATOR_SECRET: 'of-the-tests',
      WINDOW_SECONDS: '1',
      ...env
    },
    stdio: ['ignore', 'pipe', 'inherit']
  });
  running.add(child);
  const ended = once(child, 'exit').then(([code]) => {
    running.delete(child);
    return code as number | null;
  });
  const ready = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => line.startsWith('ready ') && resolve(line.slice(6)));
    void ended.then((code) => reject(new Error(`the app has ended with ${code}`)));
  });
  const { http, mqtt: port } = JSON.parse(ready);
  return {
    url: `http://127.0.0.1:${http}`,
    mqttUrl: `mqtt://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${http}/mqtt`,
    stop() {
      child.kill('SIGTERM');
      return ended;
    }
  };
}

/** Log a device in and connect it. */
async function connect(app: App, id: string, url = app.mqttUrl): Promise<MqttClient> {
  const response = await fetch(`${app.url}/login`, post({ device: id, key: `change-this-key-of-${id}` }));
  assert.equal(response.status, 200);
  const { token } = (await response.json()) as { token: string };
  const options = { clientId: id, username: id, password: token, protocolVersion: 5, reconnectPeriod: 0 } as const;
  return mqtt.connectAsync(url, options);
}

/** The next message of a client on a topic. */
function next(client: MqttClient, topic: string): Promise<unknown> {
  return new Promise((resolve) => {
    client.on('message', (name, payload) => name === topic && resolve(JSON.parse(payload.toString())));
  });
}

async function get(app: App, path: string, headers: Record<string, string> = operator) {
  const response = await fetch(`${app.url}${path}`, { headers });
  return {
    status: response.status,
    body: (await response.json()) as Record<string, never> & { [key: string]: unknown }
  };
}

/** Ask for a greenhouse until it is as expected. */
async function eventually(app: App, name: string, isRight: (greenhouse: never) => boolean): Promise<never> {
  for (;;) {
    const { body } = await get(app, `/greenhouses/${name}`);
    if (isRight(body as never)) return body as never;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('the greenhouse app', () => {
  it('needs the version of this package', () => {
    assert.equal(manifest(source).dependencies.embermq, `^${manifest(root).version}`);
  });

  it('type-checks with its own settings', () => {
    const { config } = ts.readConfigFile(join(folder, 'tsconfig.json'), ts.sys.readFile);
    const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, folder);
    const program = createProgram(fileNames, { ...options, customConditions: ['embermq-source'] });
    const faults = fileNames.flatMap((file) => ts.getPreEmitDiagnostics(program, program.getSourceFile(file)));
    assert.deepEqual(
      faults.map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`),
      []
    );
  });

  it('passes its own tests', async () => {
    const [, files] = /^node --import tsx --test (.*)$/.exec(manifest(source).scripts.test) ?? assert.fail();
    const { NODE_TEST_CONTEXT: _, ...env } = process.env; // a separate test run
    const args = ['--test-reporter=spec', '--test', ...files.replaceAll('.ts', '.js').split(' ')];
    const { stdout, stderr } = await run(process.execPath, args, { cwd: compiled, env }).catch((error) => error);
    assert.match(stdout, /ℹ pass 7\n/, `${stdout}${stderr}`);
    assert.match(stdout, /ℹ fail 0\n/);
    assert.doesNotMatch(`${stdout}${stderr}`, /TestLeakWarning/);
  });
});

describe('the greenhouse app, in a separate process', () => {
  /** The requests that its web server has received: `[path, body]`. */
  const received: [path: string, body: Record<string, unknown>][] = [];
  const hook = createServer(async (request, response) => {
    received.push([request.url as string, (await json(request)) as Record<string, unknown>]);
    response.end();
    hook.emit('received');
  });
  const tokenSecret = 'a secret of at least thirty-two bytes';
  let env: Record<string, string>;
  let app: App;

  before(async () => {
    await once(hook.listen(0, '127.0.0.1'), 'listening');
    env = { HOOK_URL: `http://127.0.0.1:${(hook.address() as AddressInfo).port}`, TOKEN_SECRET: tokenSecret };
    app = await start(env);
  });

  after(async () => {
    await app.stop();
    hook.close();
    hook.closeAllConnections();
  });

  it('refuses wrong keys, devices without a token, and tokens of other devices', async () => {
    for (const body of [{ device: 'north-1', key: 'guess' }, { device: 'nobody', key: 'x' }, {}]) {
      assert.equal((await fetch(`${app.url}/login`, post(body))).status, 401);
    }
    const options = { clientId: 'north-1', username: 'north-1', password: 'guess', reconnectPeriod: 0 };
    await assert.rejects(mqtt.connectAsync(app.mqttUrl, options), /Connection refused/);
    const { token } = (await (
      await fetch(`${app.url}/login`, post({ device: 'north-1', key: 'change-this-key-of-north-1' }))
    ).json()) as { token: string };
    const other = { clientId: 'south-1', username: 'north-1', password: token, reconnectPeriod: 0 };
    await assert.rejects(mqtt.connectAsync(app.mqttUrl, other), /Connection refused/);
  });

  for (const [what, args, message] of [
    [
      'whose login is refused',
      ['north', 'north-1', 'guess'],
      /^north-1: the login was refused: the id or the key is wrong\n$/
    ],
    ['without arguments', [], /^usage: npm run device -- GREENHOUSE ID KEY\n$/]
  ] as const)
    it(`reports why a device ends, ${what}`, async () => {
      const { code, stderr } = await run(process.execPath, ['device-main.js', ...args], {
        cwd: compiled,
        env: { ...process.env, URL: app.url }
      }).catch((error) => error);
      assert.equal(code, 1);
      assert.match(stderr, message);
    });

  it('reports why a device is not connected, and tries again', async () => {
    const child = spawn(process.execPath, ['device-main.js', 'north', 'north-1', 'guess'], {
      cwd: compiled,
      env: { ...process.env, URL: 'http://127.0.0.1:1' },
      stdio: ['ignore', 'inherit', 'pipe']
    });
    running.add(child);
    const ended = once(child, 'exit');
    for await (const line of createInterface(child.stderr)) {
      assert.match(line, /^north-1 is not connected: .+/);
      break;
    }
    assert.equal(child.exitCode, null);
    child.kill('SIGKILL');
    await ended;
    running.delete(child);
  });

  it('lets a device use only its own topics', async () => {
    const device = await connect(app, 'north-1');
    const publish = (topic: string) => device.publishAsync(topic, '{"celsius": 1}', { qos: 1 });
    await publish('greenhouses/north/north-1/test');
    for (const topic of [
      'greenhouses/north/north-2/temperature',
      'greenhouses/north/alarm',
      'greenhouses/north/mean'
    ]) {
      await assert.rejects(publish(topic), /Not authorized/, topic);
    }
    for (const filter of ['greenhouses/south/alarm', 'greenhouses/#', '#']) {
      await assert.rejects(device.subscribeAsync(filter), filter);
    }
    await device.endAsync();
  });

  it('reports alarms to the devices of the greenhouse and to the web server, and shows them', async () => {
    const hot = await connect(app, 'north-1');
    const other = await connect(app, 'north-2', app.wsUrl);
    await other.subscribeAsync('greenhouses/north/alarm', { qos: 1 });
    const alarm = next(other, 'greenhouses/north/alarm');
    const expected = { greenhouse: 'north', device: 'north-1', celsius: 36.5 };
    await hot.publishAsync('greenhouses/north/north-1/temperature', '{"celsius": 36.5}', { qos: 1, retain: true });
    assert.deepEqual(await alarm, expected);
    while (!received.some(([path]) => path === '/alarms')) await once(hook, 'received');
    assert.deepEqual(received.find(([path]) => path === '/alarms')?.[1], expected);
    const shown: { alarm: { value: object } } = await eventually(
      app,
      'north',
      (found: { alarm?: object }) => found.alarm !== undefined
    );
    assert.deepEqual(shown.alarm.value, { device: 'north-1', celsius: 36.5 });
    await Promise.all([hot.endAsync(), other.endAsync()]);
    while (!received.some(([, { action }]) => action === 'client_disconnected')) await once(hook, 'received');
    const actions = new Set(received.filter(([path]) => path === '/devices').map(([, { action }]) => action));
    assert.deepEqual([...actions].sort(), ['client_connected', 'client_disconnected']);
  });

  it('publishes the mean temperature of a greenhouse at the end of each window', async () => {
    const device = await connect(app, 'south-1');
    await device.publishAsync('greenhouses/south/south-1/temperature', '{"celsius": 20}', { qos: 1, retain: true });
    const found: { mean: { value: { celsius: number } } } = await eventually(
      app,
      'south',
      (south: { mean?: object }) => south.mean !== undefined
    );
    assert.equal(found.mean.value.celsius, 20);
    await device.endAsync();
  });

  it('sends commands of operators to the devices', async () => {
    const path = '/greenhouses/north/vents';
    assert.equal((await fetch(`${app.url}${path}`, post({ isOpen: true }))).status, 401);
    assert.equal((await fetch(`${app.url}${path}`, post({ isOpen: 1 }, operator))).status, 400);
    assert.equal((await fetch(`${app.url}/greenhouses/none/vents`, post({ isOpen: true }, operator))).status, 404);
    const device = await connect(app, 'north-1');
    await device.subscribeAsync('greenhouses/north/command', { qos: 1 });
    const command = next(device, 'greenhouses/north/command');
    assert.equal((await fetch(`${app.url}${path}`, post({ isOpen: true }, operator))).status, 202);
    assert.deepEqual(await command, { isOpen: true });
    await device.endAsync();
  });

  it('serves the interfaces of the broker in addition to its own routes', async () => {
    const device = await connect(app, 'north-1');
    assert.equal((await get(app, '/greenhouses', {})).status, 401);
    assert.deepEqual((await get(app, '/greenhouses/none')).status, 404);
    for (const path of ['/api/v3/connections/north-1', '/api/v4/clients/north-1', '/api/clients/north-1']) {
      assert.equal((await get(app, path, {})).status, 401, path);
      const { status, body } = await get(app, path);
      assert.equal(status, 200, path);
      assert.match(JSON.stringify(body), /"client_?id":"north-1"/, path);
    }
    assert.match(JSON.stringify((await get(app, '/api/v4/rules')).body), /"id":"alarm".*"id":"notify"/);
    assert.match(JSON.stringify((await get(app, '/api/v4/x/webhooks')).body), /"name":"default"/);
    assert.equal((await fetch(`${app.url}/stream-rules/rules`)).status, 401);
    const rules = (await get(app, '/stream-rules/rules')).body as unknown as { id: string; status: string }[];
    assert.deepEqual(
      rules.map(({ id, status }) => `${id} ${status}`),
      ['mean Running']
    );
    assert.match(await (await fetch(`${app.url}/metrics`)).text(), /embermq_connections/);
    assert.equal(await (await fetch(`${app.url}/readyz`)).text(), 'ok');
    assert.equal((await fetch(`${app.url}/api/elsewhere`)).status, 404);
    await device.endAsync();
  });

  it('stops cleanly with connected devices, and restores its state after a restart', async () => {
    const { body: before } = await get(app, '/greenhouses');
    const device = await connect(app, 'north-2');
    const closed = new Promise<void>((resolve) => device.once('close', resolve));
    assert.equal(await app.stop(), 0);
    await closed;

    app = await start(env);
    const { body: again } = await get(app, '/greenhouses');
    type Shown = { name: string; temperatures: object; vents: object; mean?: object }[];
    const kept = (list: unknown) =>
      (list as Shown)
        .map(({ name, temperatures, vents, mean }) => ({ name, temperatures, vents, mean }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    assert.deepEqual(kept(again), kept(before));
    const south = await connect(app, 'south-1');
    await south.publishAsync('greenhouses/south/south-1/temperature', '{"celsius": 24}', { qos: 1, retain: true });
    await eventually(app, 'south', ({ mean }: { mean: { value: { celsius: number } } }) => mean.value.celsius === 24);
    await south.endAsync();
  });
});
