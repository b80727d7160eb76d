import { get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { connectFrame, packet, subscribeFrame, text } from '../load/frames.ts';

/** A broker of the benchmark of tails. */
export interface TailBed {
  readonly port: number;
  /** The URL of the stream of its tail; undefined: it has none. */
  readonly tail: string | undefined;
  /** The URL of its console, whose overview can be opened. */
  readonly console?: string;
}

/** A message to this process: the brokers, at the beginning; then requests to publish to one of them, with the overview of its console open or not. */
export type TailTask =
  | { readonly beds: readonly TailBed[] }
  | { readonly bed: number; readonly messages: number; readonly hasOverview?: boolean };

/** Publishers, with 10 of the 1,000 topics each. */
const PUBLISHERS = 100;
const TOPICS = 1_000;
const INTERVAL_MS = 10;
/** Messages of a publisher in each interval: 50,000 a second of all. */
const MESSAGES = 5;

/** The connections to one broker. */
interface Load {
  readonly bed: TailBed;
  readonly publishers: readonly Socket[];
  received: number;
  /** Number of rows of the tail. */
  rows: number;
  overview: Overview | undefined;
}

/** The overview of a console, without a browser. */
interface Overview {
  /** Request the last hour again, as the page does every 10 s. */
  load(): Promise<unknown>;
  close(): void;
}

const loads: Load[] = [];
let turn = 0;

process.on('message', async (task: TailTask) => {
  if ('beds' in task) {
    for (const bed of task.beds) loads.push(await open(bed));
    process.send?.({ rows: 0 });
  } else {
    const load = loads[task.bed];
    if (task.hasOverview !== undefined) await showOverview(load, task.hasOverview);
    if (task.messages > 0) await publish(load, task.messages);
    process.send?.({ rows: load.rows });
  }
});
process.on('disconnect', () => process.exit());

async function open(bed: TailBed): Promise<Load> {
  const { port, tail } = bed;
  const load: Load = {
    bed,
    publishers: await Promise.all(publisherNames().map((name) => client(port, name))),
    received: 0,
    rows: 0,
    overview: undefined
  };
  const subscriber = await client(port, 'subscriber');
  let rest: Buffer = Buffer.alloc(0);
  subscriber.on('data', (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    for (; at + 2 <= bytes.length && at + 2 + bytes[at + 1] <= bytes.length; at += 2 + bytes[at + 1])
      if (bytes[at] >> 4 === 3) load.received++;
    rest = bytes.subarray(at);
  });
  subscriber.write(subscribeFrame(['site/#'], { v5: false, qos: 0, id: 1 }));
  if (tail !== undefined)
    get(tail, (response) =>
      response.setEncoding('utf8').on('data', (part: string) => {
        load.rows += part.split('event: message.publish').length - 1;
      })
    );
  await wait(200);
  return load;
}

async function showOverview(load: Load, isShown: boolean): Promise<void> {
  if (!isShown) load.overview?.close();
  load.overview = isShown ? (load.overview ?? (await openOverview(load))) : undefined;
}

/** Open a live stream with the watch of the overview; its events count as rows. */
async function openOverview(load: Load): Promise<Overview> {
  const base = load.bed.console;
  const headers = { 'embermq-console': 'background', 'content-type': 'application/json' };
  const response = await new Promise<IncomingMessage>((resolve) => get(`${base}/live`, { headers }, resolve));
  const id = await new Promise<string>((resolve) => {
    response.setEncoding('utf8').on('data', (part: string) => {
      const opened = /"id":"([^"]+)"/.exec(part);
      if (part.startsWith('event: opened') && opened !== null) resolve(opened[1]);
      load.rows += part.split('event: overview').length - 1;
    });
  });
  const body = JSON.stringify({ watches: { overview: { kind: 'overview' } } });
  const { status } = await fetch(`${base}/live/${id}`, { method: 'PUT', headers, body });
  if (status !== 200) throw new Error(`the watches of the console: status ${status}`);
  return {
    load: async () => (await fetch(`${base}/api/x/figures`, { headers })).text(),
    close: () => response.destroy()
  };
}

function publisherNames(): string[] {
  return Array.from({ length: PUBLISHERS }, (_, at) => `publisher ${at}`);
}

async function client(port: number, clientId: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.write(connectFrame(clientId, { v5: false, clean: true }));
  await new Promise((resolve) => socket.once('data', resolve));
  return socket;
}

/** Publish at 50,000 messages a second, and wait until the subscriber has all. */
async function publish(load: Load, messages: number): Promise<void> {
  const until = load.received + messages;
  const beginMs = performance.now();
  const ofInterval = PUBLISHERS * MESSAGES;
  const loaded = load.overview?.load();
  for (let interval = 0; interval < messages / ofInterval; interval++) {
    turn++;
    for (const [at, socket] of load.publishers.entries()) socket.write(FRAMES[at][turn % 2]);
    await wait(Math.max(0, beginMs + (interval + 1) * INTERVAL_MS - performance.now()));
  }
  while (load.received < until) await wait(1);
  await loaded;
}

/** For each publisher two chunks, each with the frames of five of its topics and 33 bytes of JSON. */
const FRAMES = publisherNames().map((_, publisher) =>
  [0, 1].map((half) =>
    Buffer.concat(
      Array.from({ length: MESSAGES }, (_unused, at) => {
        const device = publisher + PUBLISHERS * (half * MESSAGES + at);
        if (device >= TOPICS) throw new Error(`there is no topic ${device}`);
        const payload = `{"temp":23.5,"hum":40,"id":"${String(device).padStart(4, '0')}"}`;
        return packet(0x30, [
          text(`site/${Math.floor(device / 10)}/device${device}/temperature`),
          Buffer.from(payload)
        ]);
      })
    )
  )
);
