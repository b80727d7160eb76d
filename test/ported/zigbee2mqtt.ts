// zigbee2mqtt as its package starts it, with the commands and the configuration of examples/recipes/zigbee2mqtt.md. Only the radio is a double.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import mqtt, { type IClientOptions, type IPublishPacket, type MqttClient } from 'mqtt';
import { parse, stringify } from 'yaml';
import { makeCertificates } from '../support/certificates.ts';
import { freePorts } from '../support/free-ports.ts';
import { programOf, SOURCE_FLAGS } from '../support/programs.ts';
import { Arrivals } from './arrivals.ts';
import { installed, nodeOf } from './installed.ts';
import { LoggedProcess } from './process-log.ts';

const PASSWORD = 'a secret';
const LAMP = '0x00124b0000000002';
const page = readFileSync(join(import.meta.dirname, '../../examples/recipes/zigbee2mqtt.md'), 'utf8');
const blocks = [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)];
const command = [...SOURCE_FLAGS, programOf('adapters/cli/main.ts')];
let node: string;
let app: string;

/** The coordinator and a lamp, which zigbee2mqtt has met before. */
const DATABASE = [
  { id: 1, type: 'Coordinator', ieeeAddr: '0x00124b0000000001', nwkAddr: 0, manufId: 0, clusters: [] },
  {
    id: 2,
    type: 'Router',
    ieeeAddr: LAMP,
    nwkAddr: 4660,
    manufId: 4476,
    manufName: 'IKEA of Sweden',
    modelId: 'TRADFRI bulb E27 WS opal 980lm',
    clusters: [0, 3, 4, 5, 6, 8, 768]
  }
].map(({ clusters, ...device }) => {
  const endpoint = { profId: 260, epId: 1, devId: 5, inClusterList: clusters, outClusterList: [], clusters: {} };
  const endpoints = { 1: { ...endpoint, binds: [], configuredReportings: [], meta: {} } };
  return JSON.stringify({ ...device, endpoints, epList: [1], interviewState: 'SUCCESSFUL', meta: { configured: 1 } });
});

before(() => {
  node = nodeOf(24);
  app = installed('zigbee2mqtt', { dependencies: { zigbee2mqtt: '^2.0.0' } });
  const { version } = JSON.parse(readFileSync(join(app, 'node_modules/zigbee2mqtt/package.json'), 'utf8'));
  console.log(`zigbee2mqtt ${version}`);
});

/** A folder with the files of the recipe, the broker and zigbee2mqtt. */
class Home implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'embermq-zigbee-'));
  readonly #certificates = makeCertificates();
  readonly #ports: readonly number[];
  readonly #processes: LoggedProcess[] = [];
  readonly #clients: MqttClient[] = [];

  /** @param ports for MQTT and MQTT over TLS */
  constructor(ports: readonly number[]) {
    this.#ports = ports;
    const [, , acl] = blocks.find(([, language]) => language === '') as RegExpExecArray;
    writeFileSync(join(this.folder, 'acl.conf'), acl);
    const commands = blocks.filter(([, language]) => language === 'sh').flatMap(([, , text]) => text.split('\n'));
    for (const line of commands.filter((line) => line.startsWith('npx embermq passwd')))
      execFileSync(process.execPath, [...command, ...line.split(' ').slice(2)], {
        cwd: this.folder,
        input: `${PASSWORD}\n`,
        stdio: ['pipe', 'ignore', 2]
      });
  }

  /** Starts the broker with the command of the recipe, on other ports and without HTTP. */
  async broker(): Promise<LoggedProcess> {
    const line = /^npx embermq (serve .*)$/m.exec(page)?.[1].replace('--host 0.0.0.0 ', '') as string;
    const { certFile, keyFile } = this.#certificates.server;
    const [port, tlsPort] = this.#ports;
    const flags = ['--mqtt-port', String(port), '--mqtts-port', String(tlsPort), '--cert', certFile, '--key', keyFile];
    const off = ['ws', 'http', 'http-earlier', 'rules', 'dashboard'].flatMap((name) => [`--${name}-port`, 'off']);
    return this.#started(process.execPath, [...command, ...line.split(' '), ...flags, ...off], this.folder, 'ready {');
  }

  /** Starts zigbee2mqtt with the configuration of the recipe. @param settings changes of its part `mqtt` */
  async bridge(settings: object, password = PASSWORD): Promise<LoggedProcess> {
    const data = join(this.folder, 'data-zigbee2mqtt');
    mkdirSync(data, { recursive: true });
    const [, , yaml] = blocks.find(([, language]) => language === 'yaml') as RegExpExecArray;
    const configuration = {
      version: 5,
      mqtt: { ...parse(yaml).mqtt, server: `mqtt://127.0.0.1:${this.#ports[0]}`, ...settings },
      homeassistant: { enabled: true },
      frontend: { enabled: false },
      serial: { port: '/dev/null', adapter: 'ember' },
      advanced: { log_output: ['console'] },
      devices: { [LAMP]: { friendly_name: 'lamp' } }
    };
    writeFileSync(join(data, 'configuration.yaml'), stringify(configuration));
    writeFileSync(join(data, 'secret.yaml'), stringify({ mqtt_password: password }));
    writeFileSync(join(data, 'database.db'), `${DATABASE.join('\n')}\n`);
    const program = join(app, 'node_modules/zigbee2mqtt/cli.js');
    const radio = join(import.meta.dirname, 'zigbee-radio.cjs');
    // it builds itself if the commit of the surrounding repository differs from its own: it must not find this one
    const env = { ZIGBEE2MQTT_DATA: data, GIT_DIR: data };
    return this.#started(node, ['--require', radio, program], app, 'Starting Zigbee2MQTT version', env);
  }

  /** The file of the authority that has issued the certificate of the broker. */
  get ca(): string {
    return this.#certificates.ca.certFile;
  }

  get tlsUrl(): string {
    return `mqtts://localhost:${this.#ports[1]}`;
  }

  /** Connects a client and keeps what it receives. @param filter is subscribed to */
  async client(username: string, filter: string, options: IClientOptions = {}): Promise<Inbox> {
    const login = { username, password: PASSWORD, clientId: `test-${username}` };
    const url = `mqtt://127.0.0.1:${this.#ports[0]}`;
    const client = await mqtt.connectAsync(url, { protocolVersion: 5, reconnectPeriod: 50, ...login, ...options });
    this.#clients.push(client);
    const inbox = new Inbox(client);
    await client.subscribeAsync(filter, { qos: 1 });
    return inbox;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client.endAsync(true);
    for (const running of this.#processes) await running.end('SIGKILL');
    this.#certificates[Symbol.dispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #started(
    program: string,
    args: readonly string[],
    cwd: string,
    ready: string,
    env?: Record<string, string>
  ): Promise<LoggedProcess> {
    const started = new LoggedProcess(program, args, { cwd, env });
    this.#processes.push(started);
    await started.logged(ready);
    return started;
  }
}

interface Received {
  readonly topic: string;
  readonly text: string;
  readonly retain: boolean;
  readonly qos: number;
}

/** The messages that a client has received. */
class Inbox {
  readonly client: MqttClient;
  readonly #messages: Received[] = [];
  readonly #arrivals = new Arrivals();

  constructor(client: MqttClient) {
    this.client = client;
    client.on('message', (topic, payload, { retain, qos }: IPublishPacket) => {
      this.#messages.push({ topic, text: payload.toString(), retain, qos });
      this.#arrivals.notify();
    });
  }

  /** Takes the first message with a topic and a text out of the inbox, when it has arrived. */
  take(topic: string | RegExp, contained = ''): Promise<Received> {
    const isMeant = (message: Received) =>
      (typeof topic === 'string' ? message.topic === topic : topic.test(message.topic)) &&
      message.text.includes(contained);
    const taken = () => {
      const at = this.#messages.findIndex(isMeant);
      return at < 0 ? undefined : this.#messages.splice(at, 1)[0];
    };
    return this.#arrivals.wait(taken, () => {
      const seen = this.#messages.map(({ topic, text }) => `${topic} ${text.slice(0, 80)}`).join('\n');
      return `no message of ${topic} with "${contained}" among:\n${seen}`;
    });
  }
}

/** Checks the messages at the start, and the answers to requests. */
async function use(home: Home, bridge: LoggedProcess, version: number): Promise<void> {
  const panel = await home.client('panel', 'zigbee2mqtt/#');
  const state = await panel.take('zigbee2mqtt/bridge/state');
  assert.deepEqual([state.text, state.qos], ['{"state":"online"}', 1]);
  await bridge.logged('Zigbee2MQTT started!');
  const info = await panel.take('zigbee2mqtt/bridge/info');
  assert.equal(JSON.parse(info.text).mqtt.version, version);
  const devices = await panel.take('zigbee2mqtt/bridge/devices', LAMP);
  assert.ok(JSON.parse(devices.text).some((device: { friendly_name: string }) => device.friendly_name === 'lamp'));

  await panel.client.publishAsync('zigbee2mqtt/lamp/set', '{"state":"ON"}', { qos: 1 });
  await bridge.logged(`RADIO ${LAMP} genOnOff on`);
  assert.equal(JSON.parse((await panel.take('zigbee2mqtt/lamp')).text).state, 'ON');

  // the panel may not configure zigbee2mqtt
  await assert.rejects(
    panel.client.publishAsync('zigbee2mqtt/bridge/request/health_check', '{}', { qos: 1 }),
    /Not authorized/
  );
  const owner = await home.client('zigbee2mqtt', 'homeassistant/#');
  const light = await owner.take(new RegExp(`homeassistant/light/${LAMP}/light/config`));
  assert.equal(JSON.parse(light.text).command_topic, 'zigbee2mqtt/lamp/set');
  for (const [request, payload, answer] of [
    ['health_check', { transaction: 'a' }, { data: { healthy: true }, status: 'ok', transaction: 'a' }],
    ['device/rename', { from: 'lamp', to: 'desk' }, { status: 'ok' }],
    ['device/rename', { from: 'desk', to: 'lamp' }, { status: 'ok' }],
    ['device/remove', { id: 'unknown' }, { status: 'error' }]
  ] as const) {
    await owner.client.publishAsync(`zigbee2mqtt/bridge/request/${request}`, JSON.stringify(payload), { qos: 1 });
    const response = JSON.parse((await panel.take(`zigbee2mqtt/bridge/response/${request}`)).text);
    assert.deepEqual({ ...response, ...answer }, response);
  }
  await panel.client.endAsync();
  await owner.client.endAsync();
}

describe('zigbee2mqtt', { timeout: 600_000 }, () => {
  for (const [version, name] of [
    [4, '3.1.1'],
    [5, '5']
  ] as const) {
    it(`announces itself, answers requests and switches a lamp with MQTT ${name}`, async () => {
      await using home = new Home(await freePorts(2));
      await home.broker();
      const bridge = await home.bridge({ version });
      await use(home, bridge, version);
      const late = await home.client('panel', 'zigbee2mqtt/bridge/+');
      for (const topic of ['state', 'info', 'devices', 'groups'])
        assert.equal((await late.take(`zigbee2mqtt/bridge/${topic}`)).retain, true, topic);
      await bridge.end();
      assert.equal((await late.take('zigbee2mqtt/bridge/state', 'offline')).text, '{"state":"offline"}');
    });

    it(`leaves its will when it ends without DISCONNECT, with MQTT ${name}`, async () => {
      await using home = new Home(await freePorts(2));
      await home.broker();
      const bridge = await home.bridge({ version });
      const panel = await home.client('panel', 'zigbee2mqtt/bridge/state');
      await panel.take('zigbee2mqtt/bridge/state', 'online');
      await bridge.end('SIGKILL');
      assert.equal((await panel.take('zigbee2mqtt/bridge/state')).text, '{"state":"offline"}');
      await panel.client.endAsync();
      const late = await home.client('panel', 'zigbee2mqtt/bridge/state');
      assert.equal((await late.take('zigbee2mqtt/bridge/state', 'offline')).retain, true);
    });

    it(`connects again to a broker that was restarted on the same folder, with MQTT ${name}`, async () => {
      await using home = new Home(await freePorts(2));
      const broker = await home.broker();
      const bridge = await home.bridge({ version });
      await bridge.logged('Zigbee2MQTT started!');
      const before = await home.client('zigbee2mqtt', 'zigbee2mqtt/#');
      await before.take('zigbee2mqtt/bridge/info');
      // an acknowledgement of a retained message: the broker has also written what it has received before, with QoS 0
      await before.client.publishAsync('zigbee2mqtt/marker', 'x', { qos: 1, retain: true });
      await before.client.endAsync();
      const from = bridge.lines.length;
      await broker.end(version === 5 ? 'SIGTERM' : 'SIGKILL');
      if (version === 5) await bridge.logged('MQTT disconnect: reason 139', from); // Server shutting down
      await home.broker();
      await bridge.logged('Connected to MQTT server', from);
      const panel = await home.client('panel', 'zigbee2mqtt/#');
      await panel.take('zigbee2mqtt/bridge/state', 'online');
      assert.equal((await panel.take('zigbee2mqtt/bridge/info')).retain, true);
      // it subscribes after the message `online`
      const again = setInterval(() => panel.client.publish('zigbee2mqtt/lamp/set', '{"state":"OFF"}'), 200);
      await panel.take('zigbee2mqtt/lamp', 'OFF').finally(() => clearInterval(again));
    });
  }

  it('connects over TLS with the authority of the broker', async () => {
    await using home = new Home(await freePorts(2));
    await home.broker();
    const bridge = await home.bridge({ server: home.tlsUrl, ca: home.ca });
    await use(home, bridge, 5);
  });

  it('ends with the reason when its password is wrong', async () => {
    await using home = new Home(await freePorts(2));
    await home.broker();
    for (const [version, text] of [
      [4, 'Connection refused: Bad username or password'],
      [5, 'Connection refused: Bad User Name or Password']
    ] as const) {
      const bridge = await home.bridge({ version }, 'a guess');
      await bridge.logged('MQTT failed to connect, exiting...');
      await bridge.ended();
      assert.ok(
        bridge.lines.some((line) => line.toLowerCase().includes(text.toLowerCase())),
        bridge.lines.join('\n')
      );
    }
  });
});
