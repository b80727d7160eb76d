import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Duplex, PassThrough } from 'node:stream';
import { after, describe, it } from 'node:test';
import { type Broker, connectClient, createBroker } from 'embermq';
import { createTestBroker, type ReplayLog, recordTraffic, type TestBrokerOptions } from 'embermq/testing';
import { listen, tcp } from '../../adapters/net/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import type { AckPacket, Packet, ProtocolVersion, PublishPacket } from '../../lib/packets/types.ts';
import { RecordingWriter } from '../../lib/testing/index.ts';
import { cpuMs } from '../support/cpu.ts';
import { connectPacket, type RawClientOptions } from '../support/raw-client.ts';
import { withResolvers } from '../support/wire.ts';

const folder = mkdtempSync(join(tmpdir(), 'embermq-replay-'));
after(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = (): string => join(folder, `${++files}.jsonl`);

/** A recording that a test writes packet by packet. */
class Tape {
  #ms = 0;
  #text = '';
  readonly #writer = new RecordingWriter((line) => (this.#text += line), {
    monotonic: () => this.#ms,
    startedAt: new Date(0)
  });

  wait(ms: number): this {
    this.#ms += ms;
    return this;
  }

  /** A client that connects now. */
  connect(options: RawClientOptions = {}, connack: object = {}) {
    const version: ProtocolVersion = options.version ?? 5;
    const record = this.#writer.open('192.0.2.1');
    const client = {
      sends(packet: Packet) {
        record.sent(encode(packet, version));
        return client;
      },
      gets(packet: Packet) {
        record.received(encode(packet, version));
        return client;
      },
      ends: (by: 'client' | 'broker' = 'client') => record.ended(by)
    };
    client.sends(connectPacket(options));
    return client.gets({ cmd: 'connack', sessionPresent: false, reasonCode: 0, ...connack });
  }

  /** The file. */
  save(): string {
    this.#writer.end();
    const file = newFile();
    writeFileSync(file, this.#text);
    return file;
  }
}

const message = (topic: string, payload: string, more: Partial<PublishPacket> = {}): PublishPacket => ({
  cmd: 'publish',
  topic,
  payload: Buffer.from(payload),
  qos: 0,
  dup: false,
  retain: false,
  ...more
});
const ack = (cmd: AckPacket['cmd'], messageId: number, reasonCode = 0): AckPacket => ({ cmd, messageId, reasonCode });
const filters = (topic: string, qos: 0 | 1 | 2 = 0, messageId = 1): Packet => ({
  cmd: 'subscribe',
  messageId,
  subscriptions: [{ topic, qos, noLocal: false, retainAsPublished: false, retainHandling: 0 }]
});

/** Replay a file with a new broker. */
async function replay(file: string, options: TestBrokerOptions = {}): Promise<ReplayLog> {
  await using kit = await createTestBroker(options);
  return await kit.replay(file);
}

async function openPort(): Promise<{ broker: Broker; port: number }> {
  const broker = createBroker();
  const listener = listen(broker, tcp({ port: 0, host: '127.0.0.1' }));
  await broker.start();
  return { broker, port: listener.port as number };
}

describe('a recording of real connections', () => {
  it('replays with the same deliveries, wills and ends, the same log each time', async () => {
    const { broker, port } = await openPort();
    await using _broker = broker;
    const file = newFile();
    await using recorder = await recordTraffic(file, { connect: () => connect(port, '127.0.0.1') });
    const open = (clientId: string, more: object = {}) =>
      connectClient(connect(recorder.port, '127.0.0.1'), { clientId, ...more });
    const panel = await open('panel', { username: 'ann', password: 'secret' });
    const got: string[] = [];
    await panel.subscribe('#', { qos: 2 }, ({ topic, payload }) => got.push(`${topic} ${payload}`));
    const pump = await open('pump', { protocolVersion: 4, will: { topic: 'pump/state', payload: 'lost' } });
    for (const qos of [0, 1, 2] as const) await pump.publish(`pump/${qos}`, 'on', { qos });
    await pump.publish('pump/large', 'x'.repeat(200_000), { qos: 1 });
    pump.destroy();
    while (!got.includes('pump/state lost')) await new Promise((resolve) => setImmediate(resolve));
    await panel.disconnect();
    await recorder.close();
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const text = readFileSync(file, 'utf8');
    assert.equal(text.includes(Buffer.from('secret').toString('base64').slice(0, 6)), false);
    assert.equal(Buffer.from(text).includes('"ended":"client"'), true);
    const first = await replay(file);
    assert.deepEqual(
      first.deliveries.map(({ clientId, topic, qos }) => `${clientId} ${topic} ${qos}`),
      ['panel pump/0 0', 'panel pump/1 1', 'panel pump/2 2', 'panel pump/large 1', 'panel pump/state 0']
    );
    assert.deepEqual([first.ends, first.unsentFrames], [[], 0]);
    assert.equal(String(await replay(file)), String(first));
    assert.match(String(first), /^ +\d+ ms {2}panel {2}pump\/0 {2}"on" {2}QoS 0\n/);
  });

  it('writes frames that arrive byte by byte, and the beginning of one that is cut off', async () => {
    const { broker, port } = await openPort();
    await using _broker = broker;
    const file = newFile();
    await using recorder = await recordTraffic(file, { connect: () => connect(port, '127.0.0.1') });
    const socket = connect({ port: recorder.port, host: '127.0.0.1', noDelay: true });
    const connected = broker.nextEvent('client.connected');
    for (const byte of encode(connectPacket({ clientId: 'slow' }), 5)) {
      socket.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await connected;
    const left = broker.nextEvent('client.disconnected');
    socket.write(encode(message('a', 'b'.repeat(100)), 5).subarray(0, 20));
    socket.end();
    await left;
    await recorder.close();
    const lines = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .slice(1, -1) // without the head and the end
      .map((line) => JSON.parse(line));
    const kinds = lines.map(({ opened, sent, received, ended }) => (opened && 'opened') ?? sent ?? received ?? ended);
    assert.deepEqual(
      kinds.filter((kind) => kind !== 'broker'),
      ['opened', 'connect', 'connack', 'unreadable', 'client']
    );
    assert.equal(lines[3].data, undefined, 'it may be a part of a password');
    const log = await replay(file);
    assert.deepEqual(log.ends, []);
  });

  it('refuses to record without a way to connect to the broker, and makes no file', async () => {
    const file = newFile();
    for (const options of [{}, { connect: 1883 }] as never[])
      await assert.rejects(
        recordTraffic(file, options).then((recorder) => recorder.close()),
        { code: 'OPTION_INVALID', field: 'connect' }
      );
    assert.equal(existsSync(file), false);
  });

  it('writes passwords only if asked, and never overwrites a file', async () => {
    const { broker, port } = await openPort();
    await using _broker = broker;
    for (const passwords of [false, true]) {
      const file = newFile();
      await using recorder = await recordTraffic(file, { passwords, connect: () => connect(port, '127.0.0.1') });
      const stream = connect(recorder.port, '127.0.0.1');
      const client = await connectClient(stream, { clientId: 'c', username: 'ann', password: 'secret' });
      await client.disconnect();
      await recorder.close();
      const frames = [...readFileSync(file, 'utf8').matchAll(/"data":"([^"]+)"/g)].map(([, data]) =>
        Buffer.from(data, 'base64')
      );
      assert.deepEqual(frames.map((frame) => frame.includes('secret')).includes(true), passwords);
      assert.ok(frames[0].includes('ann'));
      await assert.rejects(recordTraffic(file, { connect: () => connect(port) }), { code: 'FILE_UNWRITABLE' });
    }
  });

  it('writes no data of enhanced authentication', () => {
    let text = '';
    const writer = new RecordingWriter((line) => (text += line), { monotonic: () => 0, startedAt: new Date(0) });
    const connection = writer.open('192.0.2.7');
    const properties = { authenticationMethod: 'm', authenticationData: Buffer.from('not-for-the-file') };
    const auth: Packet = { cmd: 'auth', reasonCode: 0x18, properties };
    connection.sent(encode(connectPacket({ properties }), 5));
    connection.received(encode(auth, 5));
    connection.sent(encode(auth, 5));
    connection.received(encode({ cmd: 'connack', sessionPresent: false, reasonCode: 0, properties }, 5));
    const events = text
      .split('\n')
      .filter((line) => line.includes('"data"'))
      .map((line) => JSON.parse(line) as { sent?: string; received?: string; data: string });
    assert.deepEqual(
      events.map(({ sent, received }) => sent ?? received),
      ['connect', 'connack']
    );
    for (const { data } of events) assert.doesNotMatch(Buffer.from(data, 'base64').toString(), /not-for-the-file/);
  });

  it('records no data of a client of another protocol, and passes it on', async (t) => {
    const broker = createServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')));
    t.after(() => broker.close());
    await once(broker.listen(0, '127.0.0.1'), 'listening');
    const { port } = broker.address() as AddressInfo;
    const file = newFile();
    await using recorder = await recordTraffic(file, { connect: () => connect(port, '127.0.0.1') });
    const socket = connect(recorder.port, '127.0.0.1').setEncoding('utf8');
    socket.write(`GET / HTTP/1.1\r\nAuthorization: Basic c2VjcmV0\r\n\r\n${' '.repeat(100)}`);
    assert.match((await once(socket, 'data'))[0], /^HTTP/);
    await once(socket, 'close');
    await recorder.close();
    const text = readFileSync(file, 'utf8');
    assert.match(text, /"sent":"unreadable"}/);
    assert.doesNotMatch(text, /"data"|puback/);
  });

  it('records who has left if a client leaves while the broker is dialled', async () => {
    const { broker, port } = await openPort();
    await using _broker = broker;
    for (const isReachable of [true, false]) {
      const dialled = withResolvers<Socket>();
      const file = newFile();
      await using recorder = await recordTraffic(file, { connect: () => dialled.promise });
      const socket = connect(recorder.port, '127.0.0.1');
      await once(socket, 'connect');
      while (recorder.connections === 0) await new Promise((resolve) => setImmediate(resolve));
      socket.resetAndDestroy();
      await once(socket, 'close');
      await new Promise((resolve) => setImmediate(resolve));
      dialled.resolve(isReachable ? connect(port, '127.0.0.1') : Promise.reject(new Error('unreachable')));
      while (!readFileSync(file, 'utf8').includes('ended')) await new Promise((resolve) => setImmediate(resolve));
      await recorder.close();
      assert.match(readFileSync(file, 'utf8'), /"ended":"client"/);
    }
  });

  it('closes a connection to the broker that opens after the recorder was closed', async () => {
    for (const isReachable of [true, false]) {
      const dialled = withResolvers<Duplex>();
      await using recorder = await recordTraffic(newFile(), { connect: () => dialled.promise });
      const socket = connect(recorder.port, '127.0.0.1').on('error', () => {});
      while (recorder.connections === 0) await new Promise((resolve) => setImmediate(resolve));
      await recorder.close();
      const late = new PassThrough();
      dialled.resolve(isReachable ? late : Promise.reject(new Error('unreachable')));
      if (isReachable) await once(late, 'close');
      socket.destroy();
      await new Promise((resolve) => setImmediate(resolve));
      await recorder.close(); // nothing was written into the closed file
    }
  });

  it('warns of no leak if many clients send faster than the file is written', async (t) => {
    const broker = createServer((socket) => socket.resume());
    t.after(() => broker.close());
    await once(broker.listen(0, '127.0.0.1'), 'listening');
    const { port } = broker.address() as AddressInfo;
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    t.after(() => process.off('warning', note));
    await using recorder = await recordTraffic(newFile(), { connect: () => connect(port, '127.0.0.1') });
    const large = encode(message('a', 'x'.repeat(60_000)), 5);
    const sockets = Array.from({ length: 30 }, (_, at) => {
      const socket = connect(recorder.port, '127.0.0.1');
      socket.write(encode(connectPacket({ clientId: `c${at}` }), 5));
      for (let times = 0; times < 5; times++) socket.write(large);
      return socket;
    });
    while (recorder.frames < 30 * 6) await new Promise((resolve) => setImmediate(resolve));
    for (const socket of sockets) socket.destroy();
    await recorder.close();
    assert.deepEqual(warnings, []);
  });

  it('closes the connection of a client if the broker cannot be reached, and reports it', async () => {
    const errors: Error[] = [];
    const connectNowhere = () => Promise.reject(new Error('unreachable'));
    await using recorder = await recordTraffic(newFile(), { connect: connectNowhere, onError: (e) => errors.push(e) });
    const socket = connect(recorder.port, '127.0.0.1').resume();
    await new Promise((resolve) => socket.once('close', resolve));
    assert.deepEqual([errors.map(({ message }) => message), recorder.connections], [['unreachable'], 1]);
  });
});

describe('kit.replay', () => {
  it('sends each packet at its time', async () => {
    const tape = new Tape();
    tape.connect({ clientId: 'panel' }).sends(filters('#'));
    const pump = tape.wait(1_000).connect({ clientId: 'pump' });
    for (let i = 0; i < 3; i++) {
      tape.wait(60_000);
      pump.sends(message('rpm', String(i)));
    }
    tape.wait(1_000);
    pump.sends({ cmd: 'disconnect', reasonCode: 0 }).ends();
    const log = await replay(tape.wait(5_000).save());
    assert.equal(
      String(log),
      '   61000 ms  panel  rpm  "0"  QoS 0\n  121000 ms  panel  rpm  "1"  QoS 0\n  181000 ms  panel  rpm  "2"  QoS 0\n'
    );
    assert.deepEqual([log.durationMs, log.unsentFrames], [187_000, 0]);
  });

  it('acknowledges the packet ids of this broker, when the client has acknowledged the message', async () => {
    const tape = new Tape();
    const panel = tape.connect({ clientId: 'panel', properties: { sessionExpiryInterval: 3_600 } });
    panel.sends(filters('#', 2));
    const pump = tape.connect({ clientId: 'pump' });
    for (const [at, name] of ['first', 'second', 'third'].entries())
      pump.sends(message('a', name, { qos: 2, messageId: at + 1 })).sends(ack('pubrel', at + 1));
    // Another broker, with other packet ids, which sent the second message first. The third was never acknowledged.
    panel
      .gets(message('a', 'second', { qos: 2, messageId: 700 }))
      .gets(message('a', 'first', { qos: 2, messageId: 9 }));
    panel.gets(message('a', 'third', { qos: 2, messageId: 701 }));
    tape.wait(1_000);
    panel.sends(ack('pubrec', 9)).gets(ack('pubrel', 9));
    tape.wait(1_000);
    panel.sends(ack('pubrec', 700)).gets(ack('pubrel', 700)).sends(ack('pubcomp', 700));
    tape.wait(1_000);
    panel.sends(ack('pubcomp', 9));
    await using kit = await createTestBroker();
    const start = kit.clock.now();
    await kit.replay(tape.save());
    const acks = kit.packets('panel').flatMap(({ direction, packet, at }) => {
      const isAck = packet?.cmd === 'pubrec' || packet?.cmd === 'pubcomp';
      return isAck && direction === 'toBroker' ? [`${packet.cmd} ${packet.messageId} ${at - start}`] : [];
    });
    assert.deepEqual(acks, ['pubrec 1 1000', 'pubrec 2 2000', 'pubcomp 2 2000', 'pubcomp 1 3000']);
    assert.equal(kit.broker.sessions.get('panel').counters().inflight, 1, 'the third message');
  });

  it('acknowledges messages that are not in the recording at once', async () => {
    const tape = new Tape();
    tape.connect({ clientId: 'panel' }).sends(filters('#', 2));
    const file = tape.wait(10_000).save();
    await using kit = await createTestBroker();
    const said = kit.clock.setTimeout(() => void kit.broker.publish('app', 'new', { qos: 2 }), 5_000);
    const { deliveries } = await kit.replay(file);
    kit.clock.clearTimeout(said);
    assert.deepEqual(
      deliveries.map(({ topic, atMs }) => `${topic} ${atMs}`),
      ['app 5000']
    );
    assert.equal(kit.broker.sessions.get('panel').counters().inflight, 0);
  });

  it('lets a client that connects again take over, and reports the earlier connection as closed', async () => {
    const tape = new Tape();
    const first = tape.connect({ clientId: 'pump', will: undefined });
    tape.wait(1_000);
    tape.connect({ clientId: 'pump' }).sends(filters('#'));
    first.ends('broker');
    const log = await replay(tape.wait(1_000).save());
    assert.deepEqual(log.ends, [{ atMs: 1_000, clientId: 'pump', connection: 1, reasonCode: 0x8e }]);
    assert.equal(String(log), '    1000 ms  pump  closed by the broker, reason code 0x8e\n');
  });

  it('publishes the will of a client that ended abruptly or was silent, not of one that disconnected', async () => {
    const tape = new Tape();
    tape.connect({ clientId: 'panel' }).sends(filters('#'));
    const client = (clientId: string) =>
      tape.connect({
        clientId,
        keepalive: 10,
        will: { topic: clientId, payload: Buffer.from('lost'), qos: 0, retain: false }
      });
    const [polite, cut, silent] = [client('polite'), client('cut'), client('silent')];
    tape.wait(2_000);
    polite.sends({ cmd: 'disconnect', reasonCode: 0 }).ends('broker');
    cut.ends();
    tape.wait(20_000);
    silent.ends('broker'); // later than the keep alive of this broker
    const log = await replay(tape.wait(1_000).save());
    const got = log.deliveries.map(({ topic, atMs }) => `${topic} ${atMs}`);
    assert.deepEqual(got, ['cut 2000', 'silent 15000']);
    assert.deepEqual(
      log.ends.map(({ clientId, atMs }) => `${clientId} ${atMs}`),
      ['silent 15000']
    );
  });

  it('asks for the client id that was assigned, so that its session is found again', async () => {
    const tape = new Tape();
    const properties = { sessionExpiryInterval: 3_600 };
    const assigned = { properties: { assignedClientIdentifier: 'auto-1' } };
    const first = tape.connect({ clientId: '', clean: true, properties }, assigned).sends(filters('a', 1));
    tape.wait(1_000);
    first.ends();
    tape.connect({ clientId: 'pump' }).sends(message('a', 'queued', { qos: 1, messageId: 1 }));
    tape.wait(1_000).connect({ clientId: 'auto-1', clean: false, properties });
    const log = await replay(tape.wait(1_000).save());
    assert.equal(String(log), '    2000 ms  auto-1  a  "queued"  QoS 1\n');
  });

  it('sends topics instead of aliases to a broker that allows fewer, and reads those of the broker', async () => {
    for (const maxTopicAlias of [0, 10]) {
      const tape = new Tape();
      tape.connect({ clientId: 'panel', properties: { topicAliasMaximum: 5 } }).sends(filters('#'));
      const pump = tape.connect({ clientId: 'pump' });
      pump.sends(message('long/topic', '1', { properties: { topicAlias: 7 } }));
      pump.sends(message('', '2', { properties: { topicAlias: 7 } }));
      const log = await replay(tape.wait(1_000).save(), { maxTopicAlias });
      const got = log.deliveries.map(({ topic, text }) => `${topic} ${text}`);
      assert.deepEqual(got, ['long/topic 1', 'long/topic 2']);
    }
  });

  it('reports clients that the broker refuses, and counts what they could not send', async () => {
    const tape = new Tape();
    tape.connect({ clientId: 'pump' }).sends(message('a', '1'));
    tape.wait(1_000).connect({ clientId: 'old', version: 4 });
    await using kit = await createTestBroker();
    kit.broker.hook('authenticate', ({ client }) => ({ allow: client.clientId === 'other' }));
    const log = await kit.replay(tape.save());
    const ends = log.ends.map(({ clientId, reasonCode }) => `${clientId} ${reasonCode}`);
    assert.deepEqual(ends, ['pump 135', 'old 135']);
  });

  it('replays the chosen clients only', async () => {
    const tape = new Tape();
    tape.connect({ clientId: 'app' }).sends(filters('#'));
    tape.connect({ clientId: 'pump' }).sends(message('rpm', '900'));
    await using kit = await createTestBroker();
    await using app = await kit.connect({ clientId: 'app' });
    const got: string[] = [];
    await app.subscribe('#', ({ topic }) => got.push(topic));
    const log = await kit.replay(tape.save(), { clients: (clientId) => clientId !== 'app' });
    assert.deepEqual([got, log.ends, log.deliveries], [['rpm'], [], []]);
    for (const clients of [['app'], 'app'] as never[])
      await assert.rejects(kit.replay(tape.save(), { clients }), { code: 'OPTION_INVALID', field: 'clients' });
  });

  it('picks the same member of a share group each time', async () => {
    const tape = new Tape();
    for (const clientId of ['a', 'b', 'c']) tape.connect({ clientId }).sends(filters('$share/g/t'));
    const pump = tape.connect({ clientId: 'pump' });
    for (let i = 0; i < 30; i++) {
      tape.wait(10);
      pump.sends(message('t', String(i)));
    }
    const file = tape.save();
    const first = String(await replay(file));
    assert.equal(first.split('\n').length, 31);
    for (let i = 0; i < 3; i++) assert.equal(String(await replay(file)), first);
  });

  it('replays an hour of twenty devices in seconds', async () => {
    const tape = new Tape();
    const panel = tape.connect({ clientId: 'panel', keepalive: 60 }).sends(filters('#', 1));
    const devices = Array.from({ length: 20 }, (_, at) => tape.connect({ clientId: `d${at}`, keepalive: 60 }));
    for (let second = 10; second <= 3_600; second += 10) {
      tape.wait(10_000);
      for (const [at, device] of devices.entries())
        device.sends(message(`d/${at}`, String(second), { qos: 1, messageId: 1 + (second % 60_000) }));
      if (second % 30 === 0) panel.sends({ cmd: 'pingreq' });
    }
    const file = tape.save();
    const startMs = cpuMs();
    const log = await replay(file);
    const tookMs = cpuMs() - startMs;
    assert.deepEqual([log.deliveries.length, log.durationMs, log.ends.length], [7_200, 3_600_000, 0]);
    assert.ok(tookMs < 6_000, `${tookMs} ms of CPU time`);
  });

  it('names the line of a file that is not a recording, and reads one whose last line is cut off', async () => {
    const tape = new Tape();
    tape.connect({ clientId: 'pump' }).ends();
    const text = readFileSync(tape.save(), 'utf8');
    const write = (content: string): string => {
      const file = newFile();
      writeFileSync(file, content);
      return file;
    };
    assert.equal((await replay(write(`${text}{"ms":1,"conn`))).durationMs, 0);
    for (const [content, line] of [
      ['', 1],
      ['{"a":1}\n', 1],
      [text.replace('"version":1', '"version":2'), 1],
      [`${text}nonsense\n`, 7],
      [`${text}{"ms":-1,"connection":1}\n`, 7],
      [text.replace('"ms":0', '"ms":5'), 3]
    ] as const)
      await assert.rejects(replay(write(content)), (error: Error & { code: string }) => {
        assert.equal(error.code, 'RECORDING_INVALID');
        assert.match(error.message, new RegExp(`line ${line}:`));
        return true;
      });
    await assert.rejects(replay(join(folder, 'missing')), { code: 'FILE_UNREADABLE' });
  });
});
