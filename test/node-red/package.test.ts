// The nodes of node-red-contrib-embermq without Node-RED, whose interface a few lines replace. `.ci/full ported` runs them in Node-RED 4 and 5.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import mqtt from 'mqtt';
import { freePort, freePorts } from '../support/free-ports.ts';
import { JOINED } from '../support/programs.ts';

const root = join(import.meta.dirname, '../..');
const source = join(root, 'adapters/node-red');
const manifest = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** A node of a flow, as Node-RED makes it. */
class FlowNode extends EventEmitter {
  readonly id = 'node-1';
  readonly credentials: object | undefined;
  readonly wires: readonly string[][] = [['one'], ['two']];
  readonly sent: { topic: string; payload: Record<string, unknown> }[][] = [];
  readonly lines: string[] = [];
  #closed: Promise<void> | undefined;

  constructor(credentials?: object) {
    super();
    this.credentials = credentials;
  }

  send(messages: FlowNode['sent'][number]): void {
    this.sent.push(messages);
    this.emit('sent');
  }

  status({ fill, text }: { readonly fill: string; readonly text: string }): void {
    this.#write(fill === 'red' ? `status ${text} (red)` : `status ${text}`);
  }

  log(line: string): void {
    this.#write(line);
  }

  warn(line: string): void {
    this.#write(`warning ${line}`);
  }

  error(line: string | Error): void {
    this.#write(String(line));
  }

  #write(line: string): void {
    this.lines.push(line);
    this.emit('line');
  }

  /** Resolves with the first line that matches. */
  async line(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = this.lines.find((line) => pattern.test(line));
      if (found !== undefined) return found;
      await new Promise((resolve) => this.once('line', resolve));
    }
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => this.emit('close', resolve));
    return this.#closed;
  }
}

let folder: string;
let types: Record<string, (this: FlowNode, config: object) => void>;
/** The types of the credentials of each type of node. */
let credentials: Record<string, Record<string, { readonly type: string }>>;
/** The server of Node-RED. */
let server: Server;

before(() => {
  folder = mkdtempSync(join(root, 'dist-test-'));
  const installed = join(folder, 'node_modules/node-red-contrib-embermq');
  cpSync(source, installed, { recursive: true });
  symlinkSync(JOINED, join(folder, 'node_modules/embermq'), 'junction');
  const require = createRequire(join(installed, 'x.js'));
  types = {};
  credentials = {};
  server = createHttpServer().listen(0, '127.0.0.1');
  const RED = {
    server,
    nodes: {
      createNode: () => {},
      registerType: (type: string, node: never, definition: { readonly credentials: never }) => {
        types[type] = node;
        credentials[type] = definition.credentials;
      }
    },
    settings: { userDir: folder }
  };
  for (const file of Object.values<string>(manifest(source)['node-red'].nodes)) require(`./${file}`)(RED);
});

/** The nodes that tests have made; those that a failed test has left are closed with the file. */
const made: FlowNode[] = [];

after(async () => {
  for (const node of made) await node.close();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

function make(type: string, config: object, credentials?: object): FlowNode {
  const node = new FlowNode(credentials);
  made.push(node);
  types[type].call(node, config);
  return node;
}

/** The form of a type in the editor, with its help text. */
function formOf(type: string): string {
  return readFileSync(join(source, `${type.replace(' ', '-')}.html`), 'utf8');
}

describe('The package node-red-contrib-embermq', () => {
  it('needs the version of embermq that it is published with', () => {
    const { version } = manifest(root);
    assert.equal(manifest(source).version, version);
    assert.equal(manifest(source).dependencies.embermq, `^${version}`);
    assert.equal(readFileSync(join(source, 'LICENSE'), 'utf8'), readFileSync(join(root, 'LICENSE'), 'utf8'));
  });

  it('registers each type in a separate set, with a form, a help text and an icon', () => {
    assert.deepEqual(Object.keys(types).sort(), ['aedes broker', 'embermq broker']);
    for (const type of Object.keys(types)) {
      const html = formOf(type);
      for (const part of [`data-template-name="${type}"`, `data-help-name="${type}"`, `registerType('${type}'`])
        assert.ok(html.includes(part), part);
      const [, icon] = /icon: '(.*)'/.exec(html) ?? assert.fail();
      assert.ok(existsSync(join(source, 'icons', icon)));
    }
  });

  it('gives neither the password nor the private key to browsers', () => {
    for (const type of Object.keys(types))
      for (const [name, { type: kind }] of Object.entries(credentials[type])) {
        assert.equal(kind, /^(password|keydata)$/.test(name) ? 'password' : 'text', `${type}: ${name}`);
        assert.ok(formOf(type).includes(`${name}: { type: '${kind}' }`), `${type}: ${name}`);
      }
  });

  it('describes the same fields in the forms of both types, except for the name and the state', () => {
    const lines = Object.keys(types).map((type) => formOf(type).replaceAll(`${type}"`, 'TYPE"').split('\n'));
    const differences = lines.flatMap((own, at) => own.filter((line) => !lines[1 - at].includes(line)));
    const state = /Keep state|retained messages|persist|MongoDB|DB URL|dburl|certname|keyname|cert:|key:/;
    for (const line of differences) assert.match(line, /registerType|this.name \|\|/.test(line) ? /broker/ : state);
  });

  for (const type of ['embermq broker', 'aedes broker'])
    it(`opens a port, sends events and messages, and closes the port: ${type}`, async () => {
      const mqtt_port = String(await freePort());
      const node = make(type, { mqtt_port, mqtt_ws_bind: 'port', mqtt_ws_port: '' });
      await node.line(/status node-red:common.status.connected/);
      const device = await mqtt.connectAsync(`mqtt://127.0.0.1:${mqtt_port}`, {
        clientId: 'device',
        reconnectPeriod: 0
      });
      await device.subscribeAsync(['a', 'b'], { qos: 1 });
      await device.publishAsync('a', 'x', { qos: 1 });
      await device.unsubscribeAsync('a');
      const closed = new Promise((resolve) => device.once('close', () => resolve(undefined)));
      await node.close();
      await closed;
      const events = node.sent.flatMap(([event]) => (event === null ? [] : [event]));
      const topics = events.map(({ topic }) => topic);
      assert.deepEqual(topics.slice(0, 4), ['client', 'clientReady', 'subscribe', 'unsubscribe']);
      assert.deepEqual(events[2].payload.topic, 'a');
      assert.deepEqual(
        (events[2].payload.subscriptions as { topic: string }[]).map(({ topic }) => topic),
        ['a', 'b']
      );
      const copied = structuredClone({ ...(events[1].payload.client as object), close: undefined, publish: undefined });
      assert.equal((copied as { id?: string }).id, 'device');
      const published = node.sent.flatMap(([, message]) => (message ? [message.payload] : []));
      assert.ok(published.some(({ packet }) => (packet as { topic: string }).topic === 'a'));
      assert.ok(topics.includes('clientDisconnect'));
      await assert.rejects(mqtt.connectAsync(`mqtt://127.0.0.1:${mqtt_port}`, { reconnectPeriod: 0 }));
    });

  it('accepts only clients with the user name and the password of its credentials', async () => {
    const mqtt_port = String(await freePort());
    const node = make('embermq broker', { mqtt_port }, { username: 'ann', password: 'secret' });
    await node.line(/connected/);
    const url = `mqtt://127.0.0.1:${mqtt_port}`;
    for (const login of [{}, { username: 'ann' }, { username: 'ann', password: 'guess' }])
      await assert.rejects(mqtt.connectAsync(url, { ...login, reconnectPeriod: 0 }), /Connection refused/);
    const device = await mqtt.connectAsync(url, { username: 'ann', password: 'secret', reconnectPeriod: 0 });
    await device.endAsync();
    await node.close();
  });

  it('keeps its state in a folder in place of MongoDB, with a warning', async () => {
    for (const fields of [{ dburl: 'mongodb://localhost/mqtt' }, { persistence_bind: 'mongodb' }]) {
      const mqtt_port = String(await freePort());
      const node = make('aedes broker', { mqtt_port, ...fields });
      await node.line(/warning MongoDB is not used/);
      await node.line(/connected/);
      await node.close();
      assert.ok(existsSync(join(folder, 'embermq/node-1')));
    }
  });

  it('serves WebSocket on a path of Node-RED, and ignores upgrades of other paths', async () => {
    const node = make('embermq broker', { mqtt_ws_bind: 'path', mqtt_ws_path: '/mqtt' });
    await node.line(/on ws path: \/mqtt/);
    const { port } = server.address() as AddressInfo;
    const upgraded = new Promise((resolve) => server.once('upgrade', (_request, socket) => resolve(socket.destroy())));
    const upgrade = 'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    connect(port, '127.0.0.1').end(`GET // HTTP/1.1\r\n${upgrade}`);
    await upgraded;
    const device = await mqtt.connectAsync(`ws://127.0.0.1:${port}/mqtt?a=1`, { reconnectPeriod: 0 });
    await device.endAsync();
    await node.close();
  });

  it('keeps the red status of a broker that could not start when clients connect', async () => {
    const [first, second] = (await freePorts(2)).map(String);
    const running = make('embermq broker', { mqtt_port: first, persist: true });
    await running.line(/common.status.connected/);
    const node = make('embermq broker', { mqtt_port: second, persist: true }); // in the folder of the other one
    await node.line(/disconnected/);
    await assert.rejects(mqtt.connectAsync(`mqtt://127.0.0.1:${second}`, { reconnectPeriod: 0 }, false));
    assert.match(node.lines.filter((line) => line.startsWith('status')).at(-1) ?? '', /disconnected/);
    await node.close();
    await running.close();
  });

  it('reports a port in use, and TLS without a valid certificate', async (t) => {
    const taken = createServer().listen(0);
    t.after(() => taken.close());
    const node = make('embermq broker', { mqtt_port: String((taken.address() as AddressInfo).port) });
    assert.match(await node.line(/in use/), /^Error: Port \d+ is already in use$/);
    await node.close();
    const unsafe = make('embermq broker', { mqtt_port: '1', usetls: true });
    await unsafe.line(/no certificate/);
    await unsafe.close();
    const wrong = make('embermq broker', { mqtt_port: '1', usetls: true }, { certdata: 'x', keydata: 'y' });
    await wrong.line(/^Error: The certificate or the private key is not valid: /);
    await wrong.close();
  });

  it('names the field of a port that is not valid', async () => {
    for (const [fields, line] of [
      [{ mqtt_port: 'abc' }, 'Error: MQTT port: expected a number from 1 to 65535, got "abc"'],
      [{ mqtt_port: '99999' }, 'Error: MQTT port: expected a number from 1 to 65535, got "99999"'],
      [{ mqtt_ws_port: '18x' }, 'Error: WebSocket port: expected a number from 1 to 65535, got "18x"']
    ] as const) {
      const node = make('embermq broker', fields);
      assert.equal(await node.line(/^Error/), line);
      await node.close();
    }
  });

  it('warns that no client can connect if there is no port and no path', async () => {
    for (const fields of [{}, { mqtt_port: '', mqtt_ws_port: '0' }, { mqtt_ws_bind: 'path', mqtt_ws_port: '1884' }]) {
      const node = make('embermq broker', fields);
      await node.line(/^warning No client can connect: set the MQTT port, or a port or a path for WebSocket$/);
      await node.close();
    }
  });

  it('warns that every client is accepted if only one of user name and password is set', async () => {
    for (const [login, missing] of [
      [{ username: 'ann' }, 'password'],
      [{ password: 'secret' }, 'username']
    ] as const) {
      const node = make('embermq broker', { mqtt_port: String(await freePort()) }, login);
      await node.line(/connected/);
      assert.deepEqual(
        node.lines.filter((line) => line.startsWith('warning')),
        [`warning Every client is accepted, because the ${missing} is empty: set both username and password, or none`]
      );
      await node.close();
    }
  });

  it('stays red while one of its ports is not open, and counts clients of the other', async (t) => {
    const mqtt_port = String(await freePort());
    const taken = createServer().listen(0);
    t.after(() => taken.close());
    const mqtt_ws_port = String((taken.address() as AddressInfo).port);
    const node = make('embermq broker', { mqtt_port, mqtt_ws_port });
    await node.line(/in use/);
    const device = await mqtt.connectAsync(`mqtt://127.0.0.1:${mqtt_port}`, { reconnectPeriod: 0 });
    await node.line(/connected 1/);
    assert.match(node.lines.filter((line) => line.startsWith('status')).at(-1) ?? '', /^status connected 1 \(red\)$/);
    await device.endAsync();
    await node.close();
  });
});
