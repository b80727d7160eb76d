import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { connectFrame, packet, subscribeFrame, text } from '../load/frames.ts';

/** A broker of the benchmark of tails. */
export interface TailBed {
  readonly port: number;
  /** The URL of the stream of its tail; undefined: it has none. */
  readonly tail: string | undefined;
}

/** A message to this process: the brokers, at the beginning; then a request to publish to one of them. */
export type TailTask = { readonly beds: readonly TailBed[] } | { readonly bed: number; readonly messages: number };

/** Publishers, with 10 of the 1,000 topics each. */
const PUBLISHERS = 100;
const TOPICS = 1_000;
const INTERVAL_MS = 10;
/** Messages of a publisher in each interval: 50,000 a second of all. */
const MESSAGES = 5;

/** The connections to one broker. */
interface Load {
  readonly publishers: readonly Socket[];
  received: number;
  /** Number of rows of the tail. */
  rows: number;
}

const loads: Load[] = [];
let turn = 0;

process.on('message', async (task: TailTask) => {
  if ('beds' in task) {
    for (const bed of task.beds) loads.push(await open(bed));
    process.send?.({ rows: 0 });
  } else {
    await publish(loads[task.bed], task.messages);
    process.send?.({ rows: loads[task.bed].rows });
  }
});
process.on('disconnect', () => process.exit());

async function open({ port, tail }: TailBed): Promise<Load> {
  const load: Load = {
    publishers: await Promise.all(publisherNames().map((name) => client(port, name))),
    received: 0,
    rows: 0
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
  for (let interval = 0; interval < messages / ofInterval; interval++) {
    turn++;
    for (const [at, socket] of load.publishers.entries()) socket.write(FRAMES[at][turn % 2]);
    await wait(Math.max(0, beginMs + (interval + 1) * INTERVAL_MS - performance.now()));
  }
  while (load.received < until) await wait(1);
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
