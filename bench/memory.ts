import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connectFrame, packet, subscribeFrame, text } from './load/frames.ts';
import { UPGRADE } from './load/wire.ts';
import { findProgram, MOSQUITTO_SETTINGS } from './support/brokers.ts';
import { freePort, listening } from './support/child.ts';
import { residentBytes } from './support/proc.ts';

/**
 * Measures the resident memory of a broker process before, during and after bursts: `npm run bench:memory -- --help`.
 * Linux only. embermq runs as `embermq serve`, with `--memory` unless the row is durable.
 */
const HELP = `npm run bench:memory -- [options]

  --only REGEX      measure only rows whose name matches
  --brokers A,B     any of embermq, mosquitto (both)
  --after SECONDS   time from the burst to the measurement (10)
  --runs N          measurements of each row (1)
  --command FILE    the embermq command to measure (dist/adapters/cli/main.js)
  --node FLAGS      flags for its Node process, separated by spaces`;

const MB = 1e6;
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '.' },
    brokers: { type: 'string', default: 'embermq,mosquitto' },
    after: { type: 'string', default: '10' },
    runs: { type: 'string', default: '1' },
    command: { type: 'string', default: 'dist/adapters/cli/main.js' },
    node: { type: 'string', default: '' },
    help: { type: 'boolean', default: false }
  }
});

interface Target {
  readonly port: number;
  readonly webSocketPort: number;
}

/** A burst. The sockets that it returns stay open until memory has been measured. */
type Burst = (target: Target) => Promise<readonly Socket[]>;

const ROWS: Readonly<Record<string, Burst>> = {
  '1,000 TCP connections that send 1 MB of a CONNECT': beforeConnect,
  '300 WebSockets that send 4 MB of fragments': fragments,
  '100 readers that stop during 64 MB, then read': slowReaders,
  '60 offline sessions with 4 MB each, then read': offlineFlood
};

/** The same with a store, and with the default limits of backlogs, so that messages are dropped. */
const DURABLE_ROWS: Readonly<Record<string, Burst>> = {
  '200 MB for one offline session, durable': offlineMegabytes,
  '500 resets of sessions with 50 stored messages, 20 times, durable': resetStorm
};

async function measure(name: string, broker: string, burst: Burst, isDurable: boolean): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-bench-'));
  const target = { port: await freePort(), webSocketPort: await freePort() };
  const child = spawnBroker(broker, target, folder, isDurable);
  try {
    await listening({ child, output: () => '' }, target.port);
    await sleep(6_000); // until the garbage of the start is collected
    const pid = child.pid as number;
    const idle = residentBytes(pid);
    let peak = idle;
    const look = setInterval(() => {
      peak = Math.max(peak, residentBytes(pid));
    }, 20);
    const sockets = await burst(target);
    await sleep(Number(options.after) * 1000);
    clearInterval(look);
    const after = residentBytes(pid);
    const cells = [idle, peak, after, after - idle].map((bytes) => (bytes / MB).toFixed(0));
    console.log(`| ${[name, broker, ...cells].join(' | ')} |`);
    for (const socket of sockets) socket.destroy();
  } finally {
    if (child.kill('SIGKILL')) await once(child, 'exit');
    rmSync(folder, { recursive: true });
  }
}

function spawnBroker(
  broker: string,
  { port, webSocketPort }: Target,
  folder: string,
  isDurable: boolean
): ChildProcess {
  if (broker === 'embermq') {
    const store = isDurable ? ['--data-dir', join(folder, 'data')] : ['--memory'];
    const flags = [...store, '--mqtt-port', `${port}`, '--ws-port', `${webSocketPort}`];
    const limits = isDurable ? [] : ['--max-mqueue-len', '0', '--max-mqueue-bytes', '0'];
    const ports = ['--http-port', '--http-earlier-port', '--rules-port', '--dashboard-port'];
    const noHttp = ports.flatMap((flag) => [flag, 'off']);
    const node = options.node.split(' ').filter((flag) => flag !== '');
    return spawn(process.execPath, [...node, options.command, 'serve', ...flags, ...limits, ...noHttp], {
      stdio: 'ignore'
    });
  }
  const path = findProgram('mosquitto');
  if (path === undefined) throw new Error('mosquitto was not found; install it, or run with --brokers embermq');
  const file = join(folder, 'mosquitto.conf');
  const listeners = [`listener ${port} 127.0.0.1`, `listener ${webSocketPort} 127.0.0.1`, 'protocol websockets'];
  writeFileSync(file, [...listeners, ...MOSQUITTO_SETTINGS, ''].join('\n'));
  return spawn(path, ['-c', file], { stdio: 'ignore' });
}

/** CONNECT packets of 1 MB, without their last bytes. */
async function beforeConnect({ port }: Target): Promise<Socket[]> {
  const begun = packet(0x10, [text('MQTT'), Buffer.from([5, 2, 0, 0]), Buffer.alloc(1_048_000)]).subarray(0, -10);
  return flood(port, 1_000, () => [begun]);
}

/** Fragments of a WebSocket message whose last fragment is never sent. */
async function fragments({ webSocketPort }: Target): Promise<Socket[]> {
  const fragment = (opcode: number) =>
    Buffer.concat([Buffer.from([opcode, 0xfe, 0xfa, 0, 0, 0, 0, 0]), Buffer.alloc(64_000, 0x10)]);
  const rest = Array.from({ length: 64 }, () => fragment(0));
  return flood(webSocketPort, 300, () => [Buffer.from(UPGRADE), fragment(2), ...rest]);
}

async function flood(port: number, count: number, bytes: () => readonly Buffer[]): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect({ port, host: '127.0.0.1' }));
  const sent = sockets.map(async (socket) => {
    socket.on('error', () => {}).resume();
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
    const isWritten = new Promise((resolve) => {
      socket.once('close', resolve);
      socket.write(Buffer.concat(bytes()), resolve);
    });
    await Promise.race([isWritten, sleep(20_000)]);
  });
  await Promise.all(sent);
  return sockets;
}

const PAYLOAD_BYTES = 1_000;

async function slowReaders({ port }: Target): Promise<Socket[]> {
  const readers = await Promise.all(Array.from({ length: 100 }, (_, at) => Peer.connect(port, `reader${at}`)));
  for (const reader of readers) await reader.subscribe('burst');
  for (const { socket } of readers) socket.pause();
  const publisher = await Peer.connect(port, 'publisher');
  await publisher.publish('burst', 64_000);
  for (const { socket } of readers) socket.resume();
  for (const reader of readers) await reader.received(64_000);
  return [publisher, ...readers].map(({ socket }) => socket);
}

async function offlineFlood({ port }: Target): Promise<Socket[]> {
  const ids = Array.from({ length: 60 }, (_, at) => `offline${at}`);
  for (const id of ids) {
    const peer = await Peer.connect(port, id, false);
    await peer.subscribe(id);
    await peer.leave();
  }
  const publisher = await Peer.connect(port, 'publisher');
  for (const id of ids) await publisher.publish(id, 4_000);
  await publisher.leave();
  for (const id of ids) {
    const peer = await Peer.connect(port, id, false);
    await peer.received(4_000);
    await peer.leave();
  }
  return [];
}

/** 20,000 messages of 10 KB at QoS 1, at most 64 of them unacknowledged. */
async function offlineMegabytes({ port }: Target): Promise<Socket[]> {
  const peer = await Peer.connect(port, 'offline', false);
  await peer.subscribe('burst');
  await peer.leave();
  const publisher = await Peer.connect(port, 'publisher');
  await publisher.publish('burst', 20_000, { payloadBytes: 10_000, window: 64 });
  await publisher.leave();
  return [];
}

/**
 * Sessions with messages in the store. All clients connect, and reset their connections when the messages begin to
 * arrive.
 */
async function resetStorm({ port }: Target): Promise<Socket[]> {
  const ids = Array.from({ length: 500 }, (_, at) => `reset${at}`);
  for (const id of ids) {
    const peer = await Peer.connect(port, id, false);
    await peer.subscribe(`all`);
    await peer.leave();
  }
  const publisher = await Peer.connect(port, 'publisher');
  await publisher.publish('all', 50);
  await publisher.leave();
  for (let round = 0; round < 20; round++) {
    await Promise.all(
      ids.map(async (id) => {
        const socket = connect({ port, host: '127.0.0.1' });
        socket.on('error', () => {});
        socket.write(connectFrame(id, { v5: false, clean: false }));
        await Promise.race([once(socket, 'data'), once(socket, 'close'), sleep(20_000)]);
        socket.resetAndDestroy();
      })
    );
  }
  return [];
}

/** A client over MQTT 3.1.1 that acknowledges the QoS 1 messages that it receives. */
class Peer {
  readonly socket: Socket;
  #rest: Buffer = Buffer.alloc(0);
  #controls = 0;
  #messages = 0;
  #lastId = 0;
  #wake: () => void = () => {};

  static async connect(port: number, id: string, clean = true): Promise<Peer> {
    const peer = new Peer(port);
    peer.socket.write(connectFrame(id, { v5: false, clean }));
    await peer.#until(() => peer.#controls > 0);
    return peer;
  }

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1' });
    this.socket.on('data', (chunk) => this.#read(chunk));
    this.socket.on('error', () => {});
    this.socket.on('close', () => this.#wake());
  }

  async subscribe(filter: string): Promise<void> {
    const before = this.#controls;
    this.socket.write(subscribeFrame([filter], { v5: false, qos: 1, id: 1 }));
    await this.#until(() => this.#controls > before);
  }

  /** Publish `count` messages, with at most `window` of them unacknowledged. */
  async publish(topic: string, count: number, { payloadBytes = PAYLOAD_BYTES, window = 500 } = {}): Promise<void> {
    const atOnce = Math.ceil(window / 5);
    const before = this.#controls;
    for (let sent = 0; sent < count; ) {
      const batch: Buffer[] = [];
      for (; batch.length < atOnce && sent < count; sent++) {
        const id = (this.#lastId = (this.#lastId % 60_000) + 1);
        const payload = Buffer.alloc(payloadBytes, 97 + (id % 26));
        batch.push(packet(0x32, [text(topic), Buffer.from([id >> 8, id & 255]), payload]));
      }
      this.socket.write(Buffer.concat(batch));
      await this.#until(() => sent - (this.#controls - before) <= window - atOnce);
    }
    await this.#until(() => this.#controls - before >= count);
  }

  received(count: number): Promise<void> {
    return this.#until(() => this.#messages >= count);
  }

  async leave(): Promise<void> {
    this.socket.end(Buffer.from([0xe0, 0]));
    if (!this.socket.closed) await once(this.socket, 'close');
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.socket.destroyed) throw new Error('the broker closed the connection');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const answers: number[] = [];
    let at = 0;
    while (bytes.length - at >= 2) {
      let body = at + 1;
      let length = 0;
      for (let shift = 0; body < bytes.length; shift += 7) {
        const byte = bytes[body++];
        length |= (byte & 127) << shift;
        if (byte < 128) break;
      }
      if (body + length > bytes.length) break;
      if (bytes[at] >> 4 === 3) {
        const idAt = body + 2 + bytes.readUInt16BE(body);
        answers.push(0x40, 2, bytes[idAt], bytes[idAt + 1]);
        this.#messages++;
      } else this.#controls++;
      at = body + length;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
    if (answers.length > 0) this.socket.write(Buffer.from(answers));
    this.#wake();
  }
}

if (options.help) console.log(HELP);
else {
  console.log(
    '| burst | broker | idle MB | peak MB | after MB | over idle MB |\n| --- | --- | --- | --- | --- | --- |'
  );
  for (const [name, burst] of Object.entries({ ...ROWS, ...DURABLE_ROWS })) {
    if (!new RegExp(options.only).test(name)) continue;
    const isDurable = name in DURABLE_ROWS;
    const brokers = options.brokers.split(',').filter((broker) => !isDurable || broker === 'embermq');
    for (let run = 0; run < Number(options.runs); run++)
      for (const broker of brokers) await measure(name, broker, burst, isDurable);
  }
}
