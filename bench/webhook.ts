import { type ChildProcess, spawn } from 'node:child_process';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { createBroker } from 'embermq';
import { webhook } from 'embermq/webhook';
import { packet, text } from './load/frames.ts';
import { median } from './report.ts';
import { program } from './support/brokers.ts';
import type { ReceiverFigures } from './support/webhook-receiver.ts';
import { connect, type Wire } from './support/wire.ts';

/** The cost of an event sent by a webhook, compared with a loop that sends the same requests. */
export interface Row {
  readonly what: string;
  /** CPU microseconds of this process, all threads, per event. */
  readonly us: number;
  readonly bareUs: number;
  /** Events per second. */
  readonly rate: number;
  readonly bareRate: number;
  /** The cost of the loop divided by ours, compared round by round: the remaining part of its speed. */
  readonly part: number;
  /** The same ratio for the rates. */
  readonly ratePart: number;
  readonly goal?: number;
}

const CLIENTS = 50;
/** The default of webhooks. */
const CONCURRENCY = 32;
/** Number of queued events of each client. */
const BURST = 20;
const ROUNDS = 9;
const WARMING = 3;

/** The cost per event in one round. */
interface Cost {
  readonly us: number;
  readonly ms: number;
}

/** Sends bursts of events. */
interface Sender extends AsyncDisposable {
  /** Send the events of one burst. @param first the sequence number of the first event of each client */
  burst(first: number): Promise<void>;
}

/** Measure with this number of bursts in each round, of 20 events of each of 50 clients. */
export async function run(bursts: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const batch of [0, 20]) {
    await using receiver = await startReceiver();
    await using ours = await hookOf(receiver.port, batch);
    await using bare = loopOf(receiver.port, batch);
    const costs: { ours: Cost[]; bare: Cost[] } = { ours: [], bare: [] };
    for (let round = -WARMING; round < ROUNDS; round++) {
      const first = (round + WARMING) * bursts * BURST;
      const us = await measure(ours, first, bursts);
      const bareUs = await measure(bare, first, bursts);
      if (round < 0) continue;
      costs.ours.push(us);
      costs.bare.push(bareUs);
    }
    const events = (ROUNDS + WARMING) * bursts * BURST * CLIENTS;
    const { received, faults } = await receiver.figures();
    if (received !== events * 2 || faults > 0)
      throw new Error(`${received} of ${events * 2} events arrived, ${faults} of them in the wrong order`);
    rows.push({
      what: batch === 0 ? 'one event in a request' : `at most ${batch} events in a request`,
      us: median(costs.ours.map(({ us }) => us)),
      bareUs: median(costs.bare.map(({ us }) => us)),
      rate: 1000 / median(costs.ours.map(({ ms }) => ms)),
      bareRate: 1000 / median(costs.bare.map(({ ms }) => ms)),
      part: median(costs.ours.map(({ us }, round) => costs.bare[round].us / us)),
      ratePart: median(costs.ours.map(({ ms }, round) => costs.bare[round].ms / ms)),
      ...(batch === 0 ? { goal: 0.8 } : {})
    });
  }
  return rows;
}

async function measure(sender: Sender, first: number, bursts: number): Promise<Cost> {
  const before = process.cpuUsage();
  const beganMs = performance.now();
  for (let at = 0; at < bursts; at++) await sender.burst(first + at * BURST);
  const ms = performance.now() - beganMs;
  const { user, system } = process.cpuUsage(before);
  const events = bursts * BURST * CLIENTS;
  return { us: (user + system) / events, ms: ms / events };
}

/** A broker whose clients publish with QoS 0, from the bytes of the PUBLISH packets. */
async function hookOf(port: number, batch: number): Promise<Sender> {
  const broker = createBroker({ allowAnonymous: true });
  await broker.start();
  const hook = webhook(broker, {
    url: urlOf(port),
    rules: [{ event: 'message.publish' }],
    ...(batch === 0 ? {} : { batch })
  });
  const wires: Wire[] = [];
  for (let n = 0; n < CLIENTS; n++) wires.push(await connect(broker, clientOf(n), () => {}));
  return {
    async burst(first) {
      for (const [n, wire] of wires.entries()) {
        const frames = Array.from({ length: BURST }, (_, at) => {
          return packet(0x30, [text(topicOf(n)), Buffer.from(payloadOf(first + at))]);
        });
        wire.push(Buffer.concat(frames));
      }
      await new Promise<void>((resolve) => setImmediate(resolve));
      await hook.idle();
    },
    async [Symbol.asyncDispose]() {
      hook.close();
      await broker.stop();
    }
  };
}

/** Send the same bodies with an agent of node:http with persistent connections, those of one client sequentially. */
function loopOf(port: number, batch: number): Sender {
  const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY, scheduling: 'fifo' });
  const url = new URL(urlOf(port));
  const send = (body: Buffer) =>
    new Promise<void>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': body.length };
      const post = request(url, { method: 'POST', headers, agent });
      post.on('error', reject);
      post.on('response', (response) => {
        response.resume();
        response.on('end', resolve);
      });
      post.end(body);
    });
  const sendAll = async (n: number, first: number) => {
    for (let at = 0; at < BURST; at += Math.max(1, batch)) {
      const bodies = Array.from({ length: Math.max(1, batch) }, (_, more) => {
        return JSON.stringify(bodyOf(n, first + at + more));
      });
      await send(Buffer.from(batch === 0 ? bodies[0] : `[${bodies.join()}]`));
    }
  };
  return {
    async burst(first) {
      await Promise.all(Array.from({ length: CLIENTS }, (_, n) => sendAll(n, first)));
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
    }
  };
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}/events`;
}

function clientOf(n: number): string {
  return `client-${String(n).padStart(3, '0')}`;
}

function topicOf(n: number): string {
  return `bench/devices/${n}/state`;
}

/** A payload of 64 bytes that begins with the sequence number. */
function payloadOf(sequence: number): string {
  return `${sequence} `.padEnd(64, '.');
}

/**
 * The body that the webhook sends for a message. The client id differs, because sequence numbers are counted per
 * client.
 */
function bodyOf(n: number, sequence: number): object {
  return {
    action: 'message_publish',
    from_client_id: clientOf(n).toUpperCase(),
    from_username: 'undefined',
    topic: topicOf(n),
    qos: 0,
    retain: false,
    payload: payloadOf(sequence),
    ts: Math.floor(Date.now() / 1000)
  };
}

interface Receiver extends AsyncDisposable {
  readonly port: number;
  figures(): Promise<ReceiverFigures>;
}

/** Start the server that receives the events, on the other core. */
async function startReceiver(): Promise<Receiver> {
  const [core] = process.argv.slice(4);
  const node = [process.execPath, program('support/webhook-receiver.js')];
  const command = core === undefined ? node : ['taskset', '-c', core, ...node];
  const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const port = Number(line);
    return {
      port,
      figures: async () => (await (await fetch(`http://127.0.0.1:${port}/`)).json()) as ReceiverFigures,
      [Symbol.asyncDispose]: () => end(child)
    };
  }
  throw new Error('the receiver has exited');
}

async function end(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  return [
    `Publishes of ${CLIENTS} clients with 64 bytes, sent by a webhook from the bytes of their packets, beside a loop that sends the same bodies with`,
    'an agent of node:http that keeps its connections: at most 32 requests at the same time, those of one client one after the other. Both are in',
    'one process, in turns; the receiver in another one checks the order. `part` is the part of the speed of the loop that is left: the median',
    'over rounds of its cost divided by ours.',
    '',
    '| webhook | us each | loop, us | part | events/s | loop, events/s | part | goal |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...rows.map(
      ({ what, us, bareUs, part, rate, bareRate, ratePart, goal }) =>
        `| ${what} | ${us.toFixed(1)} | ${bareUs.toFixed(1)} | ${part.toFixed(2)} | ${Math.round(rate)} | ${Math.round(bareRate)} | ${ratePart.toFixed(2)} | ${goal ?? ''} |`
    )
  ].join('\n');
}
