import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { type Broker, type ClientRecord, createBroker } from 'embermq';
import { dateTimeText } from 'embermq/adapter';
import { managementApi } from 'embermq/management';
import { connectFrame, subscribeFrame } from '../load/frames.ts';
import { APPLICATION, PAYLOAD, type RestPorts, TOPIC, type Turns } from '../rest.ts';
import { connect, subscribe, Wire } from './wire.ts';

/** Number of clients that connect before the next turn. */
const AT_ONCE = 100;

/**
 * Serves the management interface of a broker with many clients, and next to it a bare handler of node:http that
 * answers with the same records: `node rest-server.js CLIENTS SUBSCRIPTIONS` with the subscriptions of each client. It
 * prints one line of JSON with the ports when it is ready.
 *
 * The bare server has more paths, with which the benchmark queries this process: `/cpu`, `/turns`, `/published`,
 * `/in-process`.
 */
const [clients, subscriptions] = process.argv.slice(2).map(Number);
const broker = createBroker({ allowAnonymous: true, maxSessions: 0 });
await broker.start();
await broker.applications.create(APPLICATION);
const wires: Wire[] = [];
for (let i = 0; i < clients; i++) {
  const wire = new Wire(() => {});
  broker.handle(wire, {
    transport: 'tcp',
    remoteAddress: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
    remotePort: 1024
  });
  wire.push(connectFrame(`client-${i}`, { v5: false, clean: true }));
  if (subscriptions > 0) {
    const filters = Array.from({ length: subscriptions }, (_, at) => `commands/client-${i}/${at}`);
    wire.push(subscribeFrame(filters, { v5: false, qos: 0, id: 1 }));
  }
  wires.push(wire);
  if (i % AT_ONCE === AT_ONCE - 1) await turn();
}
/** A PUBLISH with QoS 0: header and length, length of the topic, topic, payload. */
const FRAME_BYTES = 2 + 2 + TOPIC.length + PAYLOAD.length;
let published = 0;
await subscribe(await connect(broker, 'subscriber', ({ length }) => (published += length / FRAME_BYTES)), [TOPIC]);

const sources = await sourcesOf(broker);
const byId = new Map(sources.map((source) => [source.clientId, source]));
/** The memory is read once in this number of turns, because reading takes about 10 us. */
const TURNS_A_LOOK = 16;
const turns = { count: 0, longestMs: 0, long: 0, peakBytes: 0 };
let isWatching = false;

const api = await serve(managementApi(broker, { revision: 'later', prefix: '/api/v4' }).node);
const bare = await serve((request, response) => {
  const url = request.url ?? '';
  if (url.startsWith('/clients/'))
    answer(response, { code: 0, data: [recordOf(byId.get(url.slice(9)) as ClientRecord)] });
  else if (url.startsWith('/clients?')) answer(response, firstPage());
  else if (url === '/parse' || url === '/publish') parse(request, response, url === '/publish');
  else if (url === '/cpu') answer(response, process.cpuUsage());
  else if (url === '/published') answer(response, published);
  else if (url === '/turns') answer(response, takeTurns());
  else void publishInProcess(Number(url.slice(url.indexOf('?') + 1)), response);
});
console.log(JSON.stringify({ api, bare } satisfies RestPorts));

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function answer(response: ServerResponse, value: unknown): void {
  const body = JSON.stringify(value);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body);
}

function parse(request: IncomingMessage, response: ServerResponse, publishes: boolean): void {
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => (text += chunk));
  request.on('end', async () => {
    const { topic, payload, clientid } = JSON.parse(text);
    if (publishes) await broker.publish({ topic, payload, clientId: clientid });
    answer(response, { code: topic === TOPIC ? 0 : 1 });
  });
}

/** The records of the clients of the broker, as plain objects. */
async function sourcesOf(broker: Broker): Promise<ClientRecord[]> {
  const all: ClientRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = await broker.directory.clients({ limit: 10_000, cursor });
    all.push(...page.entries);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return all;
}

function firstPage(): object {
  const data = sources.slice(0, 100).map(recordOf);
  return { code: 0, data, meta: { page: 1, limit: 100, count: sources.length, hasnext: true } };
}

/** Build the record of a client, like an app that has no interface for it. */
function recordOf(client: ClientRecord): object {
  return {
    node: client.node,
    clientid: client.clientId,
    username: client.username ?? 'undefined',
    proto_name: client.protocolName,
    proto_ver: client.protocolVersion,
    ip_address: client.ipAddress ?? 'undefined',
    port: client.port ?? 0,
    is_bridge: client.isBridge,
    connected: client.isConnected,
    connected_at: client.connectedAt === undefined ? undefined : dateTimeText(client.connectedAt),
    disconnected_at: client.disconnectedAt === undefined ? undefined : dateTimeText(client.disconnectedAt),
    zone: client.zone,
    mountpoint: client.mountpoint,
    keepalive: client.keepalive,
    clean_start: client.cleanStart,
    expiry_interval: client.sessionExpiry,
    created_at: dateTimeText(client.createdAt),
    subscriptions_cnt: client.subscriptions,
    max_subscriptions: client.maxSubscriptions,
    inflight: client.inflight,
    max_inflight: client.maxInflight,
    mqueue_len: client.mqueueLen,
    max_mqueue: client.maxMqueue,
    mqueue_dropped: client.mqueueDropped,
    awaiting_rel: client.awaitingRel,
    max_awaiting_rel: client.maxAwaitingRel,
    recv_oct: client.recvOct,
    recv_cnt: client.recvCnt,
    recv_pkt: client.recvPkt,
    recv_msg: client.recvMsg,
    send_oct: client.sendOct,
    send_cnt: client.sendCnt,
    send_pkt: client.sendPkt,
    send_msg: client.sendMsg,
    mailbox_len: client.mailboxLen,
    heap_size: client.heapSize,
    reductions: client.reductions
  };
}

/**
 * Publish from this process, a hundred messages at a time.
 * @returns the cost of a message, in CPU microseconds
 */
async function publishInProcess(messages: number, response: ServerResponse): Promise<void> {
  const before = process.cpuUsage();
  for (let sent = 0; sent < messages; sent += 100) {
    await Promise.all(Array.from({ length: 100 }, () => broker.publish({ topic: TOPIC, payload: PAYLOAD })));
    await turn();
  }
  const { user, system } = process.cpuUsage(before);
  answer(response, (user + system) / messages);
}

function takeTurns(): Turns {
  const taken = { ...turns };
  Object.assign(turns, { count: 0, longestMs: 0, long: 0, peakBytes: 0 });
  if (!isWatching) void watchTurns();
  return taken;
}

/** Start recording the duration of each turn of the event loop. */
async function watchTurns(): Promise<void> {
  isWatching = true;
  for (let beganMs = performance.now(); ; ) {
    await turn();
    const nowMs = performance.now();
    const ms = nowMs - beganMs;
    beganMs = nowMs;
    turns.count++;
    turns.longestMs = Math.max(turns.longestMs, ms);
    if (ms > 10) turns.long++;
    if (turns.count % TURNS_A_LOOK === 0) turns.peakBytes = Math.max(turns.peakBytes, process.memoryUsage.rss());
  }
}
