// Writes two data folders with a built release, for the tests that open the folders of every release with the current code:
//
//   node test/store/make-fixture.mjs BUILD NAME
//
// BUILD is the folder of an installed or built embermq (with `dist` in it), NAME the release, such as 0.1. The folders are written to
// `fixtures`: `NAME-closed` (stopped cleanly) and `NAME-killed` (killed with SIGKILL under load), each with a `.json` file that describes
// its expected contents. `old-folder.ts` checks them. Run this once for each release, commit the result, and never change it again.
//
// Data folders of every release stay in the repository (`test/store/fixtures`): one closed cleanly, one killed under
// load, each with a list of what must be found in it. Tests open copies with today's code, and `npm run crash` kills
// brokers while they open them. Before a release `node test/store/make-fixture.mjs BUILD NAME` writes its two
// folders; they never change afterwards.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import mqttPacket from 'mqtt-packet';

const [build, name] = process.argv.slice(2);
if (name === undefined) {
  process.stderr.write('usage: node test/store/make-fixture.mjs BUILD NAME\n');
  process.exit(2);
}
const FIXTURES = join(import.meta.dirname, 'fixtures');
/** Session Expiry Interval: never. */
const NEVER = 0xffff_ffff;
const HOUR_SEC = 3_600;
/** Number of acknowledgements after which the broker is killed. */
const LOAD_ACKS = 500;
const WINDOW = 20;

/** A broker of the release in a separate process. */
class Release {
  static async start(folder) {
    const release = new Release();
    const child = fork(join(import.meta.dirname, 'fixture-broker.mjs'), [resolve(build), folder], { execArgv: [] });
    release.child = child;
    const [{ port }] = await once(child, 'message');
    release.port = port;
    return release;
  }

  async ask(message) {
    const answer = once(this.child, 'message');
    this.child.send(message);
    await answer;
  }

  async stop() {
    const end = once(this.child, 'exit');
    await this.ask({ stop: true });
    await end;
  }

  async kill() {
    const end = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await end;
  }
}

/** A client that sends and acknowledges packets only on request. */
class Wire {
  #waiting = [];
  #packets = [];

  static async connect(port, clientId, version, more = {}) {
    const wire = new Wire();
    wire.version = version;
    wire.socket = connect(port, '127.0.0.1');
    wire.socket.on('error', () => {});
    wire.closed = new Promise((closed) => wire.socket.on('close', closed));
    const parser = mqttPacket.parser({ protocolVersion: version });
    parser.on('packet', (packet) => wire.#take(packet));
    wire.socket.on('data', (chunk) => parser.parse(chunk));
    const { expirySec = NEVER, ...given } = more;
    wire.send({
      cmd: 'connect',
      protocolId: version === 3 ? 'MQIsdp' : 'MQTT',
      protocolVersion: version,
      clientId,
      clean: false,
      keepalive: 0,
      properties: version === 5 ? { sessionExpiryInterval: expirySec } : undefined,
      ...given
    });
    wire.connack = await wire.next('connack');
    return wire;
  }

  #take(packet) {
    if (this.onPacket?.(packet)) return;
    this.#packets.push(packet);
    this.#waiting.shift()?.();
  }

  async next(cmd) {
    if (this.#packets.length === 0) await new Promise((ready) => this.#waiting.push(ready));
    const packet = this.#packets.shift();
    if (packet.cmd !== cmd) throw new Error(`waited for ${cmd}, got ${JSON.stringify(packet)}`);
    return packet;
  }

  send(packet) {
    this.socket.write(mqttPacket.generate(packet, { protocolVersion: this.version }));
  }

  async subscribe(messageId, filters, subscriptionIdentifier) {
    const subscriptions = filters.map((filter) => ({ qos: 1, nl: false, rap: false, rh: 0, ...filter }));
    const properties = subscriptionIdentifier && { subscriptionIdentifier };
    this.send({ cmd: 'subscribe', messageId, subscriptions, properties });
    await this.next('suback');
  }

  /** Publishes at QoS 1 and 2 and completes the flow. */
  async publish(messageId, topic, payload, qos, more = {}) {
    this.send({ cmd: 'publish', messageId, topic, payload, qos, dup: false, retain: false, ...more });
    if (qos === 1) await this.next('puback');
    if (qos < 2) return;
    await this.next('pubrec');
    this.send({ cmd: 'pubrel', messageId });
    await this.next('pubcomp');
  }

  async leave() {
    this.send({ cmd: 'disconnect' });
    this.socket.end();
    await this.closed;
  }

  async cut() {
    this.socket.destroy();
    await this.closed;
  }
}

/** Creates a session with its subscriptions, and disconnects. */
async function away(port, clientId, version, filters, id) {
  const wire = await Wire.connect(port, clientId, version);
  await wire.subscribe(1, filters, id);
  await wire.leave();
}

const PROPERTIES = {
  contentType: 'text/plain',
  responseTopic: 'answer/here',
  correlationData: Buffer.from('c1'),
  userProperties: { one: '1', zwei: '2' }
};

/** Creates sessions with messages in flight, a queue, and shared subscriptions. */
async function fillReaders(port, expected) {
  const filters5 = [{ topic: 'a/#', qos: 2, nl: true, rap: true, rh: 1 }];
  const readers = { reader5: 5, reader4: 4, reader3: 3 };
  for (const [clientId, version] of Object.entries(readers)) {
    const wire = await Wire.connect(port, clientId, version);
    await wire.subscribe(1, version === 5 ? filters5 : [{ topic: 'a/#', qos: 2 }], version === 5 ? 7 : undefined);
    expected.sessions[clientId] = { version, pubrels: [], resent: [] };
    const publisher = await Wire.connect(port, `feeder-of-${clientId}`, 5, { clean: true, expirySec: 0 });
    await publisher.publish(1, 'a/1', 'after PUBREC', 2);
    const first = await wire.next('publish');
    wire.send({ cmd: 'pubrec', messageId: first.messageId });
    await wire.next('pubrel');
    expected.sessions[clientId].pubrels.push(first.messageId);
    for (const [topic, payload, qos] of [
      ['a/2', 'before PUBREC', 2],
      ['a/3', 'before PUBACK', 1]
    ]) {
      await publisher.publish(1, topic, payload, qos);
      const { messageId } = await wire.next('publish');
      expected.sessions[clientId].resent.push({ messageId, topic, payload, qos });
    }
    await wire.cut();
    await publisher.cut();
    // The next messages must not be delivered to this session.
    const unsubscriber = await Wire.connect(port, clientId, version, {});
    for (let left = 3; left > 0; left--) await unsubscriber.next(left === 3 ? 'pubrel' : 'publish');
    unsubscriber.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['a/#'] });
    await unsubscriber.next('unsuback');
    await unsubscriber.subscribe(
      3,
      version === 5 ? [{ ...filters5[0], topic: 'q/#' }] : [{ topic: 'q/#', qos: 2 }],
      version === 5 ? 7 : undefined
    );
    await unsubscriber.cut();
  }
  const feeder = await Wire.connect(port, 'feeder', 5);
  for (let n = 0; n < 300; n++) {
    const [topic, payload, qos] = [`q/${n % 7}`, `queued ${n} `.padEnd(60, '.'), 1 + (n % 2)];
    const properties = n % 50 === 0 ? PROPERTIES : undefined;
    await feeder.publish(1 + n, topic, payload, qos, { properties });
    expected.queue.push({ topic, payload, qos, ...(properties && { hasProperties: true }) });
  }
  await away(port, 'worker5', 5, [{ topic: '$share/crew/jobs/#', qos: 2 }], 8);
  await away(port, 'worker4', 4, [{ topic: '$share/crew/jobs/#', qos: 2 }]);
  for (let n = 0; n < 20; n++) {
    await feeder.publish(1, `jobs/${n}`, `job ${n}`, 2);
    expected.jobs.push(`job ${n}`);
  }
  await feeder.leave();
}

/** Creates received messages that wait for PUBREL, and sessions that have ended or will end. */
async function fillWriters(port, expected) {
  for (const [clientId, version, messageId] of [
    ['writer5', 5, 9],
    ['writer4', 4, 65_535],
    ['writer3', 3, 1]
  ]) {
    const wire = await Wire.connect(port, clientId, version);
    wire.send({
      cmd: 'publish',
      messageId,
      topic: `in/${clientId}`,
      payload: 'once',
      qos: 2,
      dup: false,
      retain: false
    });
    await wire.next('pubrec');
    await wire.cut();
    expected.awaitingRel[clientId] = { version, messageId, topic: `in/${clientId}`, payload: 'once' };
  }
  await away(port, 'ended', 5, [{ topic: 'q/#', qos: 1 }]);
  const feeder = await Wire.connect(port, 'feeder', 5);
  for (let n = 0; n < 50; n++) await feeder.publish(1, 'q/x', 'for one that ends'.padEnd(100), 1);
  for (let n = 0; n < 50; n++) expected.queue.push({ topic: 'q/x', payload: 'for one that ends'.padEnd(100), qos: 1 });
  await feeder.leave();
  const ended = await Wire.connect(port, 'ended', 5, { clean: true, expirySec: 0 });
  await ended.leave();
  const expiring = await Wire.connect(port, 'expiring', 5, { expirySec: HOUR_SEC });
  await expiring.leave();
}

/** Creates retained and delayed messages, wills, and tables. */
async function fillRest(release, expected) {
  const { port } = release;
  await away(port, 'observer', 5, [
    { topic: 'wills/#', qos: 2 },
    { topic: 'later/#', qos: 2 },
    { topic: 'in/#', qos: 2 }
  ]);
  const feeder = await Wire.connect(port, 'feeder', 5);
  for (let n = 0; n < 30; n++) {
    const payload = `retained ${n}`;
    await feeder.publish(1, `kept/${n}`, payload, 1 + (n % 2), { retain: true });
    expected.retained[`kept/${n}`] = payload;
  }
  await feeder.publish(1, 'kept/3', 'newer', 1, { retain: true });
  expected.retained['kept/3'] = 'newer';
  await feeder.publish(1, 'kept/4', '', 1, { retain: true });
  delete expected.retained['kept/4'];
  await feeder.publish(1, 'kept/expiring', 'x', 1, { retain: true, properties: { messageExpiryInterval: HOUR_SEC } });
  expected.retainedForAnHour['kept/expiring'] = 'x';
  for (const [delaySec, topic, more] of [
    [HOUR_SEC / 2, 'later/1', {}],
    [HOUR_SEC, 'later/2', { properties: PROPERTIES }],
    [HOUR_SEC, 'later/retained', { retain: true }],
    [4_294_966, 'later/49-days', {}]
  ]) {
    await feeder.publish(1, `$delayed/${delaySec}/${topic}`, `due ${topic}`, 2, more);
    expected.delayed.push({ topic, payload: `due ${topic}`, delaySec, isRetained: more.retain === true });
  }
  await feeder.leave();
  await release.ask({ set: ['rules', 'r1', { sql: 'select 1', on: true, list: [1, null, 'ä'] }] });
  await release.ask({ set: ['rules', 'gone', 1] });
  await release.ask({ set: ['counters_2', 'naïve key', 2.5] });
  await release.ask({ delete: ['rules', 'gone'] });
  expected.tables = {
    rules: { r1: { sql: 'select 1', on: true, list: [1, null, 'ä'] } },
    counters_2: { 'naïve key': 2.5 }
  };
}

/**
 * Creates wills of clients that are connected until the end, and one that waits for its delay.
 * @returns the connections that stay open
 */
async function bequeath(port, expected) {
  const will = (clientId, delaySec) => ({
    topic: `wills/${clientId}`,
    payload: Buffer.from(`will of ${clientId}`),
    qos: 1,
    retain: clientId === 'delayed-will',
    properties: delaySec === undefined ? undefined : { willDelayInterval: delaySec }
  });
  const live5 = await Wire.connect(port, 'live5', 5, { will: will('live5') });
  const live4 = await Wire.connect(port, 'live4', 4, { will: will('live4'), clean: true });
  for (const clientId of ['delayed-will', 'revoked-will']) {
    const wire = await Wire.connect(port, clientId, 5, { will: will(clientId, HOUR_SEC) });
    await wire.cut();
  }
  expected.wills = {
    atOnce: ['live5', 'live4'],
    after: { clientId: 'delayed-will', delaySec: HOUR_SEC },
    revokedBy: 'revoked-will'
  };
  return [live5, live4];
}

/** Publishes to `load/...` as fast as the broker acknowledges. */
class LoadPublisher {
  outgoing = new Map();
  sent = [];
  acked = [];
  #lastId = 0;
  #seq = 0;

  constructor(clientId, version) {
    this.clientId = clientId;
    this.version = version;
  }

  async begin(port, onAck) {
    this.wire = await Wire.connect(port, this.clientId, this.version);
    this.wire.onPacket = (packet) => this.#received(packet, onAck);
    this.#fill();
  }

  #fill() {
    while (this.outgoing.size < WINDOW && !this.isOver) {
      do this.#lastId = (this.#lastId % 65_535) + 1;
      while (this.outgoing.has(this.#lastId));
      const qos = 1 + (this.#seq % 2);
      const topic = `load/${this.clientId}/q${qos}`;
      const payload = `${this.#seq++}`;
      this.outgoing.set(this.#lastId, { messageId: this.#lastId, topic, payload, qos, isReleased: false });
      this.sent.push([topic, payload]);
      this.wire.send({ cmd: 'publish', messageId: this.#lastId, topic, payload, qos, dup: false, retain: false });
    }
  }

  #received({ cmd, messageId }, onAck) {
    const out = this.outgoing.get(messageId);
    if (cmd !== 'pubcomp') this.acked.push([out.topic, out.payload]);
    if (cmd === 'pubrec') {
      // PUBREL packets are sent again in the order of the PUBREC packets.
      this.outgoing.delete(messageId);
      this.outgoing.set(messageId, { ...out, isReleased: true });
      this.wire.send({ cmd: 'pubrel', messageId });
    } else {
      this.outgoing.delete(messageId);
      this.#fill();
    }
    onAck();
    return true;
  }
}

/** Publishes load for offline sessions and a connected one, and kills the broker during it. */
async function killUnderLoad(release, expected) {
  const { port } = release;
  await away(port, 'asleep5', 5, [{ topic: 'load/#', qos: 2 }], 5);
  await away(port, 'asleep4', 4, [{ topic: 'load/#', qos: 2 }]);
  const awake = { version: 5, received: [], openIds: [] };
  const reader = await Wire.connect(port, 'awake5', 5);
  await reader.subscribe(1, [{ topic: 'load/#', qos: 2 }]);
  const open = new Set();
  reader.onPacket = ({ cmd, messageId, qos, topic, payload }) => {
    if (cmd === 'publish') {
      awake.received.push([topic, `${payload}`]);
      if (qos === 2) open.add(messageId);
      reader.send({ cmd: qos === 2 ? 'pubrec' : 'puback', messageId });
    } else if (cmd === 'pubrel') {
      open.delete(messageId);
      reader.send({ cmd: 'pubcomp', messageId });
    }
    return true;
  };
  const publishers = [new LoadPublisher('load5', 5), new LoadPublisher('load4', 4)];
  let acks = 0;
  await new Promise((enough) => {
    const onAck = () => {
      if (++acks === LOAD_ACKS) enough();
    };
    for (const publisher of publishers) void publisher.begin(port, onAck);
  });
  const dead = release.kill();
  for (const publisher of publishers) publisher.isOver = true;
  await dead;
  await Promise.all([reader.closed, ...publishers.map(({ wire }) => wire.closed)]);
  awake.openIds = [...open];
  expected.load = { asleep: { asleep5: 5, asleep4: 4 }, awake: { awake5: awake }, publishers: {} };
  for (const { clientId, version, sent, acked, outgoing } of publishers) {
    if (outgoing.size === 0) throw new Error(`${clientId} had nothing under way: nothing was killed under load`);
    expected.load.publishers[clientId] = { version, sent, acked, outgoing: [...outgoing.values()] };
  }
}

async function make(end) {
  const folder = join(FIXTURES, `${name}-${end}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(FIXTURES, { recursive: true });
  const { version } = JSON.parse(readFileSync(join(build, 'package.json'), 'utf8'));
  const expected = {
    version,
    end,
    madeAtMs: 0,
    sessions: {},
    queue: [],
    jobs: [],
    awaitingRel: {},
    retained: {},
    retainedForAnHour: {},
    delayed: [],
    properties: { ...PROPERTIES, correlationData: `${PROPERTIES.correlationData}` }
  };
  // LevelDB creates tables from its log at each start.
  for (const fill of [fillReaders, fillWriters]) {
    const release = await Release.start(folder);
    await fill(release.port, expected);
    await release.stop();
  }
  const release = await Release.start(folder);
  await fillRest(release, expected);
  const staying = await bequeath(release.port, expected);
  expected.madeAtMs = Date.now();
  if (end === 'killed') await killUnderLoad(release, expected);
  else await release.stop();
  await Promise.all(staying.map((wire) => wire.cut()));
  writeFileSync(`${folder}.json`, `${JSON.stringify(expected)}\n`);
  process.stdout.write(`${folder}\n`);
}

await make('closed');
await make('killed');
