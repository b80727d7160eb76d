// Node-RED with the nodes of this project and with node-red-contrib-aedes: the same flow, started headless, and the messages of its two outputs.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import mqtt, { type IClientOptions } from 'mqtt';
import type { Page } from 'playwright-core';
import { closeBrowser, missingBrowser, openTab } from '../console/browser.ts';
import { makeCertificates } from '../support/certificates.ts';
import { freePorts } from '../support/free-ports.ts';
import { installed, nodeOf, packed } from './installed.ts';

/** The versions of Node-RED, with the version of Node that each runs on. */
const VERSIONS = [
  { red: '4', node: 20 },
  { red: '5', node: 22 }
];
const LOGIN = { username: 'ann', password: 'secret' };
using certificates = makeCertificates();
const running = new Set<ChildProcess>();
const programs: Record<string, { readonly node: string; readonly red: string }> = {};
/** User directories with the nodes that are installed in them. */
const users: Record<string, string> = {};

before(() => {
  for (const { red, node } of VERSIONS) {
    const folder = installed(`node-red-${red}`, { dependencies: { 'node-red': `^${red}.0.0` } });
    programs[red] = { node: nodeOf(node), red: join(folder, 'node_modules/node-red/red.js') };
  }
  const own = { embermq: packed(), 'node-red-contrib-embermq': packed('adapters/node-red') };
  const aedes = { 'node-red-contrib-aedes': '0.6.0' };
  users.own = installed('node-red-own', { dependencies: own });
  users.aedes = installed('node-red-aedes', { dependencies: aedes });
  users.both = installed('node-red-both', { dependencies: { ...own, ...aedes } });
});

after(async () => {
  for (const child of running) child.kill('SIGKILL');
  await closeBrowser();
});

/** A running Node-RED. */
interface NodeRed {
  readonly ui: number;
  readonly lines: string[];
  /** Resolves when a line of the log contains a text. */
  logged(text: string): Promise<void>;
  stop(): Promise<void>;
}

async function start(red: string, user: string, flows: readonly object[], credentials: object = {}): Promise<NodeRed> {
  const folder = users[user];
  const [ui] = await freePorts(1);
  writeFileSync(
    join(folder, 'settings.cjs'),
    `module.exports = {
      credentialSecret: false,
      httpNodeRoot: '/nodes',
      flowFile: 'flows.json',
      editorTheme: { tours: false },
      telemetry: { enabled: false }
    };`
  );
  writeFileSync(join(folder, 'flows.json'), JSON.stringify(flows));
  writeFileSync(join(folder, 'flows_cred.json'), JSON.stringify(credentials));
  const { node, red: program } = programs[red];
  const args = [program, '--userDir', folder, '--settings', join(folder, 'settings.cjs'), '--port', String(ui)];
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const child = spawn(node, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr])
    createInterface(stream).on('line', (line) => {
      lines.push(line);
      for (const look of waiting) look();
    });
  const logged = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!lines.some((line) => line.includes(text))) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      child.once('exit', () => reject(new Error(`no line contains "${text}":\n${lines.join('\n')}`)));
      look();
    });
  await logged('Started flows');
  return {
    ui,
    lines,
    logged,
    async stop() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
      running.delete(child);
    }
  };
}

/** A flow with a broker, whose outputs are written to the log, and with nodes that echo what devices publish. */
function flowOf(port: number, fields: object = {}): object[] {
  // the client of the Aedes node refers to itself, so it cannot be written as JSON
  const write = (name: string) => `
    const { client, ...rest } = msg.payload;
    const shown = client && { id: client.id, clean: client.clean, version: client.version };
    node.log('${name} ' + JSON.stringify({ topic: msg.topic, payload: { client: shown, ...rest } }));
    return null;`;
  const make = (id: string, type: string, rest: object) => ({ id, type, z: 'tab', x: 0, y: 0, wires: [], ...rest });
  return [
    { id: 'tab', type: 'tab', label: 'test' },
    make('broker', 'aedes broker', {
      name: '',
      mqtt_port: String(port),
      mqtt_ws_bind: 'path',
      mqtt_ws_port: '',
      mqtt_ws_path: '/mqtt',
      cert: '',
      key: '',
      certname: '',
      keyname: '',
      dburl: '',
      usetls: false,
      wires: [['one'], ['two']],
      ...fields
    }),
    make('one', 'function', { func: write('OUT1'), outputs: 1, wires: [[]] }),
    make('two', 'function', { func: write('OUT2'), outputs: 1, wires: [[]] }),
    make('in', 'mqtt in', { topic: 'up/#', qos: '1', datatype: 'utf8', broker: 'client', wires: [['echo']] }),
    make('echo', 'function', { func: "return { topic: 'down/1', payload: msg.payload + '!' };", wires: [['out']] }),
    make('out', 'mqtt out', { topic: '', qos: '1', retain: '', broker: 'client' }),
    {
      id: 'client',
      type: 'mqtt-broker',
      broker: '127.0.0.1',
      port: String(port),
      clientid: 'flow',
      autoConnect: true,
      usetls: false,
      protocolVersion: '4',
      keepalive: '60',
      cleansession: true
    }
  ];
}

const withLogin = { broker: LOGIN, client: { user: LOGIN.username, password: LOGIN.password } };

async function connect(url: string, options: IClientOptions = {}) {
  return mqtt.connectAsync(url, { reconnectPeriod: 0, ...LOGIN, ...options });
}

/** Uses the flow as a device, with login and without. Returns when Node-RED has logged the messages about it. */
async function use(red: NodeRed, url: string, options: IClientOptions = {}): Promise<void> {
  await red.logged('Connected to broker');
  const stranger = { clientId: 'stranger', password: 'guess' };
  await assert.rejects(connect(url, { ...options, ...stranger }), /Connection refused/);
  const device = await connect(url, { ...options, clientId: 'device' });
  await device.subscribeAsync('down/#', { qos: 1 });
  const echo = new Promise<string>((resolve) => device.on('message', (_topic, payload) => resolve(String(payload))));
  await device.publishAsync('up/1', '21.5', { qos: 1 });
  assert.equal(await echo, '21.5!');
  await device.unsubscribeAsync('down/#');
  await device.endAsync();
  await red.logged('"topic":"clientDisconnect"');
}

/** The messages of an output that are about the device and the flow, in a form that two brokers have in common. */
function messages(red: NodeRed, output: string): unknown[] {
  const found = red.lines.flatMap((line) => {
    const at = line.indexOf(`${output} {`);
    return at < 0 ? [] : [JSON.parse(line.slice(at + output.length))];
  });
  return found
    .filter(({ payload }) => payload.client !== null && payload.client.id !== 'stranger')
    .map(({ topic, payload: { client, packet } }) => ({
      topic,
      client,
      ...(packet === undefined
        ? {}
        : {
            packet: {
              cmd: packet.cmd,
              topic: packet.topic,
              payload: packet.payload,
              qos: packet.qos,
              retain: packet.retain
            }
          })
    }))
    .map((message) => JSON.stringify(message))
    .sort();
}

const isOpen = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connectSocket(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });

/** Deploys flows as the editor does. */
async function deploy(red: NodeRed, flows: readonly object[]): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${red.ui}/flows`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'Node-RED-Deployment-Type': 'full' },
    body: JSON.stringify(flows)
  });
  assert.equal(answer.status, 204, await answer.text());
}

/** The flows of the editor are loaded when they have this node. */
const isLoaded = (page: Page) => page.waitForFunction(`window.RED?.nodes?.node?.('broker')`);

/** Opens the form of the broker, and returns its fields by their names. */
async function formOf(page: Page): Promise<Record<string, unknown>> {
  await page.evaluate(`RED.editor.edit(RED.nodes.node('broker'))`);
  await page.locator('#node-input-keydata').waitFor({ state: 'attached' });
  await page.locator('.red-ui-editor .red-ui-tray-body').last().waitFor();
  return page.evaluate(`
    const fields = [...document.querySelectorAll('#dialog-form [id^=node-input-]')];
    Object.fromEntries(fields.map(({ id, type, checked, value }) => [id.slice(11), type === 'checkbox' ? checked : value]))`);
}

async function closeForm(page: Page): Promise<void> {
  await page.locator('#node-dialog-ok').click();
  await page.locator('#node-input-keydata').waitFor({ state: 'detached' });
}

for (const { red, node } of VERSIONS)
  describe(`Node-RED ${red} on Node ${node}`, { timeout: 300_000 }, () => {
    it('runs a flow of the Aedes node, with the same messages at both outputs', async () => {
      const seen: Record<string, unknown[][]> = {};
      for (const user of ['aedes', 'own']) {
        const [port] = await freePorts(1);
        const started = await start(red, user, flowOf(port), withLogin);
        await use(started, `mqtt://127.0.0.1:${port}`);
        assert.ok(started.lines.some((line) => /OUT1.*"topic":"(clientError|connectionError)".*"stranger"/.test(line)));
        await started.stop();
        seen[user] = [messages(started, 'OUT1'), messages(started, 'OUT2')];
      }
      assert.ok(seen.aedes[0].length >= 5 && seen.aedes[1].length >= 2, JSON.stringify(seen.aedes));
      assert.deepEqual(seen.own, seen.aedes);
    });

    it('serves WebSocket on a path of Node-RED, and closes and opens ports when flows are deployed', async () => {
      const [port, other] = await freePorts(2);
      const started = await start(red, 'own', flowOf(port), withLogin);
      await use(started, `ws://127.0.0.1:${started.ui}/nodes/mqtt`);
      const device = await connect(`mqtt://127.0.0.1:${port}`);
      const closed = new Promise((resolve) => device.on('close', () => resolve(undefined)));
      await deploy(started, flowOf(other));
      await closed;
      await started.logged(`port: ${other}`);
      assert.equal(await isOpen(port), false);
      await use(started, `mqtt://127.0.0.1:${other}`);
      await use(started, `ws://127.0.0.1:${started.ui}/nodes/mqtt`);
      await deploy(started, []);
      assert.equal(await isOpen(other), false);
      await started.stop();
    });

    it('serves TLS and WebSocket on separate ports, with the certificate of the credentials', async () => {
      const [port, ws] = await freePorts(2);
      const fields = { usetls: true, mqtt_ws_bind: 'port', mqtt_ws_port: String(ws), mqtt_ws_path: '' };
      const { cert: certdata, key: keydata } = certificates.server;
      const flow = flowOf(port, fields).slice(0, 4);
      const started = await start(red, 'own', flow, { broker: { ...LOGIN, certdata, keydata } });
      await started.logged(`ws port: ${ws}`);
      for (const url of [`mqtts://localhost:${port}`, `wss://localhost:${ws}`]) {
        const client = await connect(url, { ca: certificates.ca.cert, protocolVersion: 5 });
        await client.endAsync();
      }
      await started.stop();
    });

    it('keeps its state in a folder in place of MongoDB, with a warning', async () => {
      const [port] = await freePorts(1);
      const folder = join(users.own, 'embermq/broker');
      rmSync(folder, { recursive: true, force: true });
      const flow = flowOf(port, { dburl: 'mongodb://localhost:27017/mqtt' });
      let started = await start(red, 'own', flow, withLogin);
      await started.logged('MongoDB is not used');
      await started.logged('Connected to broker');
      const device = await connect(`mqtt://127.0.0.1:${port}`);
      await device.publishAsync('kept', 'value', { qos: 1, retain: true });
      await device.endAsync();
      await started.stop();
      assert.ok(existsSync(folder));
      started = await start(red, 'own', flow, withLogin);
      await started.logged('Connected to broker');
      const again = await connect(`mqtt://127.0.0.1:${port}`);
      const message = new Promise((resolve) => again.on('message', (_topic, payload) => resolve(String(payload))));
      await again.subscribeAsync('kept');
      assert.equal(await message, 'value');
      await again.endAsync();
      await started.stop();
    });

    it('leaves the type of the Aedes node to its package if both are installed, and says so in the log', async () => {
      const [port] = await freePorts(1);
      const flow = flowOf(port).map((node) => ('mqtt_port' in node ? { ...node, type: 'embermq broker' } : node));
      const started = await start(red, 'both', flow, withLogin);
      await use(started, `mqtt://127.0.0.1:${port}`);
      await started.stop();
      assert.ok(
        started.lines.some((line) => /embermq.*aedes broker.*node-red-contrib-aedes/.test(line)),
        started.lines.join('\n')
      );
    });

    it('reports a port in use', async () => {
      const [port] = await freePorts(1);
      const flow = [...flowOf(port).slice(0, 2), { ...flowOf(port, { mqtt_ws_path: '' })[1], id: 'second' }];
      const started = await start(red, 'own', flow);
      await started.logged(`Port ${port} is already in use`);
      await started.stop();
    });

    for (const type of ['embermq broker', 'aedes broker'])
      it(`keeps the fields of ${type} in the editor, and shows no secret`, { skip: missingBrowser() }, async () => {
        const { cert: certdata, key: keydata } = certificates.server;
        const [port, other] = await freePorts(2);
        const flow = flowOf(port).slice(0, 2);
        const started = await start(red, 'own', [flow[0], { ...flow[1], type }]);
        const tab = await openTab(`http://127.0.0.1:${started.ui}/`, { locale: 'de' });
        const { page } = tab;
        await isLoaded(page);
        await formOf(page);
        const labels = await page.locator('#dialog-form label').allTextContents();
        assert.ok(labels.includes(' Benutzername') && labels.includes('Zertifikat'), labels.join());
        const given = { name: 'site', mqtt_port: String(other), mqtt_ws_path: '/other', ...LOGIN, certdata, keydata };
        await page.locator('#node-input-usetls').check();
        for (const [name, value] of Object.entries(given)) await page.locator(`#node-input-${name}`).fill(value);
        await closeForm(page);
        const deployed = page.waitForResponse(
          (answer) => answer.request().method() === 'POST' && /flows$/.test(answer.url())
        );
        await page.locator('#red-ui-header-button-deploy').click();
        assert.equal((await deployed).ok(), true);
        await started.logged(`port: ${other}`);
        const client = await connect(`mqtts://localhost:${other}`, { ca: certificates.ca.cert });
        await client.endAsync();
        for (let times = 0; times < 2; times++) {
          await page.reload();
          await isLoaded(page);
          const { password, keydata: key, ...shown } = await formOf(page);
          assert.deepEqual([password, key], ['__PWRD__', '__PWRD__']);
          const { password: _, keydata: __, ...rest } = given;
          assert.deepEqual({ ...shown, ...rest, usetls: true }, shown);
          await closeForm(page);
        }
        const help: string = await page.evaluate(`RED.nodes.getNodeHelp('${type}')`);
        assert.match(help, /with a certificate and a private key in PEM/);
        await tab.close();
        await started.stop();
      });

    it('imports its example', async () => {
      const [port] = await freePorts(1);
      const text = readFileSync(join(users.own, 'node_modules/node-red-contrib-embermq/examples/broker.json'), 'utf8');
      const started = await start(red, 'own', JSON.parse(text.replaceAll('1883', String(port))));
      await started.logged('Connected to broker');
      const answer = await fetch(`http://127.0.0.1:${started.ui}/inject/ember-inject`, { method: 'POST' });
      assert.equal(answer.status, 200);
      const client = await connect(`mqtt://127.0.0.1:${port}`);
      const message = new Promise((resolve) => client.on('message', (_topic, payload) => resolve(String(payload))));
      await client.subscribeAsync('greenhouse/celsius');
      assert.equal(await message, '21.5');
      await client.endAsync();
      await started.stop();
    });
  });
