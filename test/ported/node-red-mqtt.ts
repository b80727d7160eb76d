// Node-RED with its own nodes for MQTT against the broker: flows with MQTT 3.1.1 and 5, deployed as the editor does it.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import mqtt, { type IClientOptions, type IPublishPacket, type MqttClient } from 'mqtt';
import { users } from '../../lib/index.ts';
import { freePorts } from '../support/free-ports.ts';
import { until } from '../support/until.ts';
import { Arrivals } from './arrivals.ts';
import { installed, nodeOf } from './installed.ts';
import { LoggedProcess } from './process-log.ts';
import { Stage } from './stage.ts';

/** The versions of Node-RED, with the version of Node that each runs on. */
const VERSIONS = [
  { red: '4', node: 20 },
  { red: '5', node: 22 }
];
const LOGIN = { username: 'ann', password: 'secret' };
const programs: Record<string, { readonly node: string; readonly red: string }> = {};
let stage: Stage;

before(async () => {
  for (const { red, node } of VERSIONS) {
    const folder = join(
      installed(`node-red-${red}`, { dependencies: { 'node-red': `^${red}.0.0` } }),
      'node_modules/node-red'
    );
    programs[red] = { node: nodeOf(node), red: join(folder, 'red.js') };
    console.log(`Node-RED ${JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version}`);
  }
  stage = await Stage.start({ maxPacketSize: 5_000_000, auth: [users([LOGIN])] });
});

after(() => stage[Symbol.asyncDispose]());

type Version = 4 | 5;

/** The session of the flow, if there is one. */
const sessionOfFlow = () => (stage.broker.sessions.has('flow') ? stage.broker.sessions.get('flow') : undefined);

/** Returns a flow whose nodes are driven over HTTP (/out, /dynamic) and write what they receive to the log. @param broker fields of the broker node */
function flowOf(version: Version, broker: object, nodes: readonly object[] = []): object[] {
  const make = (id: string, type: string, rest: object) => ({ id, type, z: 'tab', x: 0, y: 0, wires: [], ...rest });
  const given = 'if (msg.payload.bytes) msg.payload.payload = Buffer.from(msg.payload.bytes, "base64");';
  const from = (path: string, to: string) => [
    make(`${path}-http`, 'http in', { url: `/${path}`, method: 'post', wires: [[`${path}-split`]] }),
    make(`${path}-split`, 'function', {
      func: `${given} return [msg.payload, { res: msg.res, payload: 'sent' }];`,
      outputs: 2,
      wires: [[to], [`${path}-answer`]]
    }),
    make(`${path}-answer`, 'http response', {})
  ];
  const shown = (name: string) => [
    make(`${name}-log`, 'function', {
      func: `const { _msgid, _topic, ...rest } = msg; node.log('${name} ' + JSON.stringify(rest));`,
      outputs: 0
    })
  ];
  return [
    { id: 'tab', type: 'tab', label: 'test' },
    ...from('out', 'out'),
    make('out', 'mqtt out', { topic: '', qos: '', retain: '', broker: 'broker' }),
    make('in', 'mqtt in', {
      topic: 'up/#',
      qos: '2',
      datatype: 'auto-detect',
      broker: 'broker',
      nl: false,
      rap: true,
      rh: 0,
      inputs: 0,
      wires: [['IN-log']]
    }),
    ...shown('IN'),
    ...from('dynamic', 'dynamic'),
    make('dynamic', 'mqtt in', {
      topic: '',
      qos: '1',
      datatype: 'auto-detect',
      broker: 'broker',
      inputs: 1,
      wires: [['DYNAMIC-log']]
    }),
    ...shown('DYNAMIC'),
    make('catch', 'catch', { scope: null, wires: [['ERROR-log']] }),
    ...shown('ERROR'),
    ...nodes,
    {
      id: 'broker',
      type: 'mqtt-broker',
      broker: '127.0.0.1',
      port: String(stage.ports.tcp),
      clientid: 'flow',
      autoConnect: true,
      usetls: false,
      protocolVersion: String(version),
      keepalive: '60',
      cleansession: true,
      autoUnsubscribe: true,
      birthTopic: 'state/flow',
      birthQos: '1',
      birthRetain: 'true',
      birthPayload: 'online',
      birthMsg: version === 5 ? { userProps: '{"from":"birth"}', contentType: 'text/plain' } : {},
      closeTopic: 'state/flow',
      closeQos: '1',
      closeRetain: 'true',
      closePayload: 'closed',
      closeMsg: {},
      willTopic: 'state/flow',
      willQos: '1',
      willRetain: 'true',
      willPayload: 'lost',
      willMsg: version === 5 ? { userProps: '{"from":"will"}' } : {},
      sessionExpiry: '',
      ...broker
    }
  ];
}

interface Received {
  readonly topic: string;
  readonly payload: Buffer;
  readonly packet: IPublishPacket;
}

/** A Node-RED with a flow, and a device that uses MQTT.js. */
class NodeRed implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'embermq-node-red-'));
  #ui = 0;
  #process: LoggedProcess | undefined;
  #device: MqttClient | undefined;
  readonly #received: Received[] = [];
  readonly #arrivals = new Arrivals();

  static async start(red: string, flow: readonly object[], credentials: object = {}): Promise<NodeRed> {
    const started = new NodeRed();
    const folder = started.#folder;
    [started.#ui] = await freePorts(1);
    const settings = `module.exports = { credentialSecret: false, flowFile: 'flows.json', mqttReconnectTime: 200 };`;
    writeFileSync(join(folder, 'settings.cjs'), settings);
    writeFileSync(join(folder, 'flows.json'), JSON.stringify(flow));
    const login = { broker: { user: LOGIN.username, password: LOGIN.password } };
    writeFileSync(join(folder, 'flows_cred.json'), JSON.stringify({ ...login, ...credentials }));
    const { node, red: program } = programs[red];
    const args = [program, '--userDir', folder, '--settings', join(folder, 'settings.cjs')];
    started.#process = new LoggedProcess(node, [...args, '--port', String(started.#ui)], { cwd: folder });
    try {
      await started.log.logged('Started flows');
    } catch (error) {
      await started[Symbol.asyncDispose]();
      throw error;
    }
    return started;
  }

  get log(): LoggedProcess {
    if (this.#process === undefined) throw new Error('Node-RED has not been started');
    return this.#process;
  }

  /** Resolves when the flow is connected and subscribed. @param from the number of lines of the log to ignore */
  async connected(from = 0): Promise<void> {
    await this.log.logged('Connected to broker', from);
    await until(() => [...(sessionOfFlow()?.subscriptions() ?? [])].length > 0);
  }

  /** Connects the device. @param filter is subscribed to with QoS 2 */
  async device(filter: string, options: IClientOptions = {}): Promise<MqttClient> {
    const url = `mqtt://127.0.0.1:${stage.ports.tcp}`;
    const given = { ...LOGIN, protocolVersion: 5, clientId: 'device', reconnectPeriod: 50, ...options } as const;
    const device = await mqtt.connectAsync(url, given);
    this.#device = device;
    device.on('message', (topic, payload, packet) => {
      this.#received.push({ topic, payload, packet });
      this.#arrivals.notify();
    });
    await device.subscribeAsync(filter, { qos: 2 });
    return device;
  }

  /** Takes the next message of the device. */
  next(): Promise<Received> {
    return this.#arrivals.wait(
      () => this.#received.shift(),
      () => `no message for the device:\n${this.log.lines.join('\n')}`
    );
  }

  /** Sends a message into the flow. */
  async send(path: 'out' | 'dynamic', message: object): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${this.#ui}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(message)
    });
    assert.equal(await answer.text(), 'sent');
  }

  /** Returns what nodes have written to the log, in order, when it is a number of messages. */
  async messages(name: 'IN' | 'DYNAMIC' | 'ERROR', count: number): Promise<Record<string, unknown>[]> {
    const found = () => this.log.lines.filter((line) => line.includes(`${name} {`));
    while (found().length < count) await this.log.logged(`${name} {`, this.log.lines.indexOf(found().at(-1) ?? '') + 1);
    return found().map((line) => JSON.parse(line.slice(line.indexOf(`${name} {`) + name.length)));
  }

  /** Deploys a flow as the editor does. */
  async deploy(flow: readonly object[]): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${this.#ui}/flows`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'Node-RED-Deployment-Type': 'full' },
      body: JSON.stringify(flow)
    });
    assert.equal(answer.status, 204, await answer.text());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#device?.endAsync(true);
    await this.log.end('SIGKILL');
    await until(() => sessionOfFlow()?.state !== 'connected'); // its will has been published
    rmSync(this.#folder, { recursive: true, force: true });
    await stage.broker.retained.delete('state/flow');
  }
}

for (const { red, node } of VERSIONS)
  for (const [version, name] of [
    [4, '3.1.1'],
    [5, '5']
  ] as const)
    describe(`Node-RED ${red} on Node ${node} with MQTT ${name}`, { timeout: 600_000 }, () => {
      it('exchanges messages of each QoS, complete and in order, JSON and bytes', async () => {
        await using flow = await NodeRed.start(red, flowOf(version, {}));
        const device = await flow.device('down/#');
        await flow.connected();
        for (let at = 0; at < 20; at++)
          for (const qos of [0, 1, 2]) await flow.send('out', { topic: `down/${qos}`, payload: at, qos });
        const seen: Record<string, number[]> = {};
        for (let at = 0; at < 60; at++) {
          const { topic, payload, packet } = await flow.next();
          assert.equal(topic, `down/${packet.qos}`);
          seen[topic] ??= [];
          seen[topic].push(Number(payload));
        }
        const all = Array.from({ length: 20 }, (_, at) => at);
        assert.deepEqual(seen, { 'down/0': all, 'down/1': all, 'down/2': all });
        for (const at of all)
          for (const qos of [0, 1, 2] as const) await device.publishAsync(`up/${qos}`, String(at), { qos });
        const received = await flow.messages('IN', 60);
        for (const qos of [0, 1, 2]) {
          const payloads = received.filter(({ topic }) => topic === `up/${qos}`).map(({ payload }) => payload);
          assert.deepEqual(payloads, all);
        }
        await device.publishAsync('up/json', '{"a":[1]}', { qos: 1, retain: true });
        await device.publishAsync('up/bytes', Buffer.from([0xff, 0, 0xfe]), { qos: 1 });
        const [json, bytes] = (await flow.messages('IN', 62)).slice(-2);
        assert.deepEqual([json.payload, json.retain], [{ a: [1] }, version === 5]); // with "Keep retain flag"
        assert.deepEqual(bytes.payload, { type: 'Buffer', data: [0xff, 0, 0xfe] });
        await device.publishAsync('up/json', '', { retain: true });
        const large = Buffer.alloc(50_000, 'ä').toString();
        await flow.send('out', { topic: 'down/large', payload: large, qos: 2, retain: true });
        assert.equal((await flow.next()).payload.toString(), large);
        await stage.broker.retained.delete('down/large');
      });

      it('subscribes and unsubscribes dynamically, also with a share group', async () => {
        await using flow = await NodeRed.start(red, flowOf(version, {}));
        const device = await flow.device('none');
        await flow.connected();
        await device.publishAsync('kept/a', 'retained', { qos: 1, retain: true });
        const topic = [{ topic: 'kept/+', qos: 1 }, { topic: '$share/group/jobs/#', qos: 2 }, 'more/#'];
        await flow.send('dynamic', { action: 'subscribe', topic });
        const [kept] = await flow.messages('DYNAMIC', 1);
        assert.deepEqual([kept.topic, kept.payload, kept.retain, kept.qos], ['kept/a', 'retained', true, 1]);
        await flow.send('dynamic', { action: 'getSubscriptions' });
        const [, subscriptions] = await flow.messages('DYNAMIC', 2);
        assert.deepEqual(
          (subscriptions.payload as { topic: string }[]).map(({ topic }) => topic),
          ['kept/+', '$share/group/jobs/#', 'more/#']
        );
        await device.publishAsync('jobs/1', 'job', { qos: 2 });
        const [, , job] = await flow.messages('DYNAMIC', 3);
        assert.deepEqual([job.topic, job.payload, job.qos], ['jobs/1', 'job', 2]);
        await flow.send('dynamic', { action: 'unsubscribe', topic: ['kept/+', '$share/group/jobs/#'] });
        await until(() => [...(sessionOfFlow()?.subscriptions() ?? [])].length === 2);
        await device.publishAsync('kept/a', '', { qos: 1, retain: true });
        await device.publishAsync('jobs/2', 'job', { qos: 1 });
        await device.publishAsync('more/1', 'last', { qos: 1 });
        const last = (await flow.messages('DYNAMIC', 4)).slice(3);
        assert.deepEqual(
          last.map(({ topic }) => topic),
          ['more/1']
        );
      });

      it('publishes its messages for birth, close and will', async () => {
        await using flow = await NodeRed.start(red, flowOf(version, {}));
        const told = async () => {
          const { payload, packet } = await flow.next();
          return [payload.toString(), packet.qos, packet.properties?.userProperties?.from];
        };
        await flow.connected();
        await flow.device('state/#');
        const from = (text: string) => (version === 5 ? text : undefined);
        assert.deepEqual(await told(), ['online', 1, from('birth')]);
        await flow.deploy([]);
        assert.deepEqual(await told(), ['closed', 1, undefined]);
        // an empty flow has deleted the credentials
        const { username: user, password } = LOGIN;
        await flow.deploy(flowOf(version, { credentials: { user, password } }));
        let after = await told();
        while (after[0] === 'closed') after = await told(); // Node-RED closes the broker node once for each of its users
        assert.deepEqual(after, ['online', 1, from('birth')]);
        await flow.log.end('SIGKILL');
        assert.deepEqual(await told(), ['lost', 1, from('will')]);
        assert.equal(stage.broker.retained.get('state/flow')?.payload.toString(), 'lost');
      });

      it('connects again to a broker that was restarted with its state', async () => {
        const kept = { cleansession: false, sessionExpiry: '300' };
        await using flow = await NodeRed.start(red, flowOf(version, kept));
        await flow.connected();
        const device = await flow.device('state/flow', { clean: false, properties: { sessionExpiryInterval: 300 } });
        assert.equal((await flow.next()).payload.toString(), 'online');
        await device.publishAsync('up/1', 'before', { qos: 1 });
        await flow.messages('IN', 1);
        const from = flow.log.lines.length;
        await stage.close();
        try {
          // "Disconnected from broker", or with MQTT 5 "disconnected client: 139" (Server shutting down)
          await flow.log.logged(version === 5 ? 'disconnected client: 139' : 'Disconnected from broker', from);
        } finally {
          await stage.open();
        }
        await flow.connected(from);
        // first the will, which the broker has published when it closed the connection
        while ((await flow.next()).payload.toString() !== 'online');
        await flow.send('out', { topic: 'state/flow', payload: 'after', qos: 1 });
        assert.equal((await flow.next()).payload.toString(), 'after');
        await device.publishAsync('up/1', 'after', { qos: 2 });
        const messages = await flow.messages('IN', 2);
        assert.deepEqual(
          messages.map(({ payload }) => payload),
          ['before', 'after']
        );
        await sessionOfFlow()?.kick();
      });

      it('connects over TLS and WebSocket', async () => {
        const ca = stage.certificates.ca.cert;
        const files = { cert: '', key: '', ca: '', certname: '', keyname: '', caname: '' };
        const secure = { id: 'tls', type: 'tls-config', verifyservercert: true, servername: '', ...files };
        const { tls, ws, wss } = stage.ports;
        for (const broker of [
          { broker: 'localhost', port: String(tls), usetls: true, tls: 'tls' },
          { broker: `ws://127.0.0.1:${ws}/mqtt` },
          { broker: `wss://localhost:${wss}/mqtt`, usetls: true, tls: 'tls' }
        ]) {
          const credentials = { tls: { cadata: ca } };
          await using flow = await NodeRed.start(red, flowOf(version, broker, [secure]), credentials);
          await flow.connected();
          const device = await flow.device('down/#');
          await device.publishAsync('up/1', 'over', { qos: 1 });
          assert.equal((await flow.messages('IN', 1))[0].payload, 'over');
          await flow.send('out', { topic: 'down/1', payload: 'back', qos: 1 });
          assert.equal((await flow.next()).payload.toString(), 'back');
        }
      });

      it('says that it cannot connect with a wrong password', async () => {
        const login = { broker: { user: LOGIN.username, password: 'guess' } };
        await using flow = await NodeRed.start(red, flowOf(version, {}), login);
        await flow.log.logged('Connection failed to broker');
      });

      if (version === 5)
        it('sends and receives the properties of MQTT 5', async () => {
          await using flow = await NodeRed.start(red, flowOf(version, {}));
          await flow.connected();
          const device = await flow.device('down/#');
          const properties = {
            contentType: 'application/json',
            responseTopic: 'answers/1',
            userProperties: { k: 'v', ü: '' },
            messageExpiryInterval: 100
          };
          await flow.send('out', { topic: 'down/1', payload: { a: 1 }, qos: 1, ...properties });
          const { packet, payload } = await flow.next();
          const { contentType, responseTopic, userProperties, messageExpiryInterval = 0 } = packet.properties ?? {};
          assert.deepEqual(
            [contentType, responseTopic, { ...userProperties }],
            ['application/json', 'answers/1', properties.userProperties]
          );
          assert.ok(messageExpiryInterval > 90 && messageExpiryInterval <= 100);
          assert.equal(payload.toString(), '{"a":1}');
          const correlationData = Buffer.from([1, 0, 255]);
          await device.publishAsync('up/1', '{"b":2}', { qos: 2, properties: { ...properties, correlationData } });
          const [message] = await flow.messages('IN', 1);
          assert.deepEqual(
            [message.payload, message.contentType, message.responseTopic, message.userProperties],
            [{ b: 2 }, 'application/json', 'answers/1', properties.userProperties]
          );
          assert.deepEqual(message.correlationData, { type: 'Buffer', data: [1, 0, 255] });
        });
    });
