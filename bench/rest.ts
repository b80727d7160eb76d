import { type ChildProcess, spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from './report.ts';
import { program } from './support/brokers.ts';
import { cpuUs } from './support/proc.ts';

/** The ports of the server of this benchmark. */
export interface RestPorts {
  readonly api: number;
  readonly bare: number;
}

/** The durations of the turns of the event loop since the last query. */
export interface Turns {
  readonly count: number;
  readonly longestMs: number;
  /** Number of turns over 10 ms. */
  readonly long: number;
  /** The maximum resident memory at the end of a turn, in bytes. Sampled, not read in every turn. */
  readonly peakBytes: number;
}

export const APPLICATION = { id: 'bench', secret: 'a secret of the benchmark' };
export const TOPIC = 'bench/state';
export const PAYLOAD = '{"temperature":21.5,"humidity":40,"battery":97,"state":"ok"}';

/** The cost of a request, compared with a bare handler of node:http. */
export interface Row {
  readonly what: string;
  readonly each: 'request' | 'message';
  /** CPU microseconds of the process of the broker, all threads. */
  readonly us: number;
  /** The same for the bare handler, or for a publish of the app. */
  readonly bareUs: number;
  /** The cost of the bare handler divided by ours, compared round by round: the remaining part of its speed. */
  readonly ratio: number;
  readonly goal: number;
}

/** The durations of turns of the event loop while lists are read. */
export interface TurnRow extends Turns {
  readonly what: string;
}

const ROUNDS = 9;
const WARMING = 3;
const CONNECTIONS = 8;

/** A request, and its comparison. */
interface Work extends Pick<Row, 'what' | 'each' | 'goal'> {
  /** Number of messages that each round publishes over REST. */
  readonly messages: number;
  /** @returns CPU microseconds per request */
  ours(): Promise<number>;
  bare(): Promise<number>;
}

/** Measure requests, with this number of clients and of requests per round. */
export async function runRequests(clients: number, requests: number): Promise<Row[]> {
  await using server = await start(clients);
  const works = worksOf(server, clients, requests);
  const costs = works.map(() => ({ ours: [] as number[], bare: [] as number[] }));
  using _ = stayAwake();
  for (let round = -WARMING; round < ROUNDS; round++) {
    for (const [at, work] of works.entries()) {
      const before = Number(await get(server.bare, '/published'));
      const us = await work.ours();
      const received = Number(await get(server.bare, '/published')) - before;
      if (received !== work.messages) throw new Error(`${work.what}: ${received} of ${work.messages} messages arrived`);
      const bareUs = await work.bare();
      if (round < 0) continue;
      costs[at].ours.push(us);
      costs[at].bare.push(bareUs);
    }
  }
  return works.map(({ what, each, goal }, at) => {
    const { ours, bare } = costs[at];
    const ratio = median(ours.map((us, round) => bare[round] / us));
    return { what, each, goal, us: median(ours), bareUs: median(bare), ratio };
  });
}

function worksOf({ api, bare, pid }: Server, clients: number, requests: number): Work[] {
  const cost = async (port: number, request: Buffer, count: number) => {
    const before = cpuUs(pid);
    await ask(port, request, count);
    return (cpuUs(pid) - before) / count;
  };
  const beside = (ours: Buffer, theirs: Buffer, count: number) => ({
    ours: () => cost(api, ours, count),
    bare: () => cost(bare, theirs, count)
  });
  const one = `/clients/client-${clients >> 1}`;
  const some = '/clients?_limit=100';
  const message = { topic: TOPIC, clientid: 'app', payload: PAYLOAD };
  const batch = httpRequest('POST', '/api/v4/mqtt/publish_batch', new Array(100).fill(message));
  const batches = Math.ceil(requests / 100);
  return [
    {
      what: 'GET /clients/{id}',
      each: 'request',
      goal: 0.75,
      messages: 0,
      ...beside(httpRequest('GET', `/api/v4${one}`), httpRequest('GET', one), requests)
    },
    ...['parses', 'publishes'].map((does) => ({
      what: `POST /mqtt/publish; the bare handler only ${does}`.replace('only publishes', 'publishes, too'),
      each: 'request' as const,
      goal: 0.75,
      messages: requests,
      ...beside(
        httpRequest('POST', '/api/v4/mqtt/publish', message),
        httpRequest('POST', does === 'parses' ? '/parse' : '/publish', message),
        requests
      )
    })),
    {
      what: `GET /clients?_limit=100 of ${clients.toLocaleString('en-US')}`,
      each: 'request',
      goal: 0.8,
      messages: 0,
      ...beside(httpRequest('GET', `/api/v4${some}`), httpRequest('GET', some), Math.ceil(requests / 10))
    },
    {
      what: 'POST /mqtt/publish_batch of 100, beside a publish of the app',
      each: 'message',
      goal: 0.5,
      messages: batches * 100,
      ours: async () => (await cost(api, batch, batches)) / 100,
      bare: async () => Number(await get(bare, `/in-process?${batches * 100}`))
    }
  ];
}

/** Keep this process from sleeping: waking it would cost the server time, and more for longer requests. */
function stayAwake(): Disposable {
  let isAwake = true;
  const go = () => {
    if (isAwake) setImmediate(go);
  };
  go();
  return {
    [Symbol.dispose]() {
      isAwake = false;
    }
  };
}

/** Lists that are read while the turns are measured. */
const LISTS: readonly (readonly [what: string, paths: readonly string[]])[] = [
  ['nothing', []],
  ['first page of 10,000', ['/clients']],
  ['last page of 10,000', ['/clients?_page=10']],
  ['last page of 100', ['/clients?_limit=100&_page=1000']],
  ['fuzzy filter without a match', ['/clients?_like_clientid=nobody']],
  ['fuzzy filter, 10,000 matches', ['/clients?_like_clientid=9']],
  [
    'four at once',
    ['/clients', '/clients?_page=10', '/clients?_like_clientid=nobody', '/clients?_like_username=x&_like_clientid=9']
  ],
  ['subscriptions, last page', ['/subscriptions?_page=10']],
  ['routes', ['/routes']]
];

/** Measure how long the event loop is blocked by lists of this number of clients. */
export async function runTurns(clients: number, repetitions: number): Promise<TurnRow[]> {
  await using server = await start(clients);
  return await watched(server, LISTS, repetitions);
}

/** Number of concurrent requests. */
const CROWD = 100;
/** Subscriptions of each client while many lists are read at once; each is a route. */
const SUBSCRIPTIONS = 2;
/** Lists that are read concurrently, each by a part of the clients. */
const CROWDS: readonly (readonly [what: string, paths: readonly string[]])[] = [
  ['nothing', []],
  ['first page of 10,000 clients', ['/clients']],
  ['fuzzy filter without a match', ['/clients?_like_clientid=nobody']],
  ['last page of 10,000 subscriptions', ['/subscriptions?_page=20']],
  ['10,000 routes', ['/routes']],
  ['these four', ['/clients', '/clients?_like_clientid=nobody', '/subscriptions?_page=20', '/routes']]
];

/**
 * Measure how long 100 concurrent lists block the event loop, for this number of clients with two subscriptions each.
 */
export async function runCrowds(clients: number): Promise<TurnRow[]> {
  await using server = await start(clients, SUBSCRIPTIONS);
  const crowds = CROWDS.map(([what, paths]): (typeof LISTS)[number] => [
    what,
    paths.length === 0 ? [] : Array.from({ length: CROWD }, (_, at) => paths[at % paths.length])
  ]);
  return await watched(server, crowds, 1);
}

/** Read lists one after the other, and measure the turns of the server. */
async function watched({ api, bare }: Server, lists: typeof LISTS, repetitions: number): Promise<TurnRow[]> {
  const read = (path: string, times: number) =>
    askOn(api, httpRequest('GET', `/api/v4${path}`), times, { keepsBody: false });
  const rows: TurnRow[] = [];
  for (const [, paths] of lists) for (const path of new Set(paths)) await read(path, 2);
  await get(bare, '/turns');
  for (const [what, paths] of lists) {
    await get(bare, '/turns');
    if (paths.length === 0) await sleep(1000);
    else await Promise.all(paths.map((path) => read(path, repetitions)));
    rows.push({ what, ...(JSON.parse(await get(bare, '/turns')) as Turns) });
  }
  return rows;
}

interface Server extends RestPorts, AsyncDisposable {
  readonly pid: number;
}

/** @param subscriptions number of subscriptions of each client */
async function start(clients: number, subscriptions = 0): Promise<Server> {
  const [core] = process.argv.slice(4);
  const serving = [program('support/rest-server.js'), String(clients), String(subscriptions)];
  const node = [process.execPath, '--max-old-space-size=4096', ...serving];
  const command = core === undefined ? node : ['taskset', '-c', core, ...node];
  const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const ports = JSON.parse(line) as RestPorts;
    return { ...ports, pid: child.pid ?? 0, [Symbol.asyncDispose]: () => end(child) };
  }
  throw new Error('the server has exited');
}

async function end(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
}

/** The bytes of a request, with the credentials of the application. */
function httpRequest(method: string, path: string, body?: unknown): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body);
  const { id, secret } = APPLICATION;
  return Buffer.from(
    [
      `${method} ${path} HTTP/1.1`,
      'host: 127.0.0.1',
      `authorization: Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
      ...(text === '' ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(text)}`]),
      '',
      text
    ].join('\r\n')
  );
}

/** Send a request many times over several connections, one at a time on each. */
async function ask(port: number, request: Buffer, count: number): Promise<void> {
  const share = Math.ceil(count / CONNECTIONS);
  const shares = Array.from({ length: CONNECTIONS }, (_, i) => Math.max(0, Math.min(share, count - i * share)));
  await Promise.all(shares.map((some) => (some === 0 ? undefined : askOn(port, request, some))));
}

async function get(port: number, path: string): Promise<string> {
  return askOn(port, httpRequest('GET', path), 1);
}

/**
 * Send a request many times over one connection.
 * @param keepsBody false: only the end of a long body is kept
 * @returns the last body @throws Error if an answer is not 200
 */
function askOn(port: number, request: Buffer, count: number, { keepsBody = true } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const answers = new Answers(keepsBody);
    let left = count;
    const fail = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    socket.on('error', fail);
    socket.on('close', () => reject(new Error('the connection was closed')));
    socket.on('connect', () => socket.write(request));
    socket.on('data', (chunk: Buffer) => {
      const body = answers.add(chunk);
      if (body === undefined) return;
      if (answers.status !== 200) fail(new Error(`status ${answers.status}: ${body.slice(0, 200)}`));
      else if (--left === 0) finish(socket, () => resolve(body));
      else socket.write(request);
    });
  });
}

function finish(socket: Socket, then: () => void): void {
  socket.removeAllListeners('close');
  socket.end();
  then();
}

const HEAD_END = '\r\n\r\n';
const CHUNKS_END = '0\r\n\r\n';

/** Finds the ends of consecutive answers. */
class Answers {
  status = 0;
  readonly #keepsBody: boolean;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Size of the whole answer in bytes; 0: chunked; undefined: the head has not arrived. */
  #wanted: number | undefined;
  #headBytes = 0;

  constructor(keepsBody: boolean) {
    this.#keepsBody = keepsBody;
  }

  /** @returns the body if the answer is complete */
  add(chunk: Buffer): string | undefined {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#wanted === undefined) this.#readHead();
    if (this.#wanted === undefined) return undefined;
    if (this.#wanted === 0 ? !this.#endsInLastChunk() : this.#bytes < this.#wanted) {
      if (!this.#keepsBody) this.#chunks = this.#chunks.slice(-2);
      return undefined;
    }
    const body = Buffer.concat(this.#chunks).toString('utf8', this.#headBytes);
    this.#chunks = [];
    this.#bytes = 0;
    this.#wanted = undefined;
    return body;
  }

  #readHead(): void {
    const text = Buffer.concat(this.#chunks).toString('latin1');
    const end = text.indexOf(HEAD_END);
    if (end < 0) return;
    this.status = Number(text.slice(9, 12));
    this.#headBytes = end + HEAD_END.length;
    const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end + 2))?.[1];
    this.#wanted = length === undefined ? 0 : this.#headBytes + Number(length);
  }

  #endsInLastChunk(): boolean {
    const last = this.#chunks[this.#chunks.length - 1];
    const tail = last.length >= CHUNKS_END.length ? last : Buffer.concat(this.#chunks.slice(-2));
    return tail.toString('latin1', Math.max(0, tail.length - CHUNKS_END.length)) === CHUNKS_END;
  }
}

/** The rows as Markdown tables. */
export function table(requests: readonly Row[], turns: readonly TurnRow[], crowds: readonly TurnRow[]): string {
  return [
    'The management interface on node:http with keep-alive, beside a bare handler of node:http that builds and writes (or parses) the same',
    'records, without credentials, routing and checks; both in one process, in turns. `part` is the part of the speed of the bare handler that',
    'is left: the median over rounds of its cost divided by ours. The process that sends the requests does not sleep meanwhile.',
    '',
    '| request | each | us | bare us | part | goal |',
    '| --- | --- | --- | --- | --- | --- |',
    ...requests.map(
      ({ what, each, us, bareUs, ratio, goal }) =>
        `| ${what} | ${each} | ${us.toFixed(1)} | ${bareUs.toFixed(1)} | ${ratio.toFixed(2)} | ${goal} |`
    ),
    '',
    `How long turns of the event loop last while lists of clients are read; the goal is 10 ms. Garbage collections are part of turns.`,
    '',
    '| list | longest ms | turns over 10 ms | turns |',
    '| --- | --- | --- | --- |',
    ...turns.map((row) => `| ${row.what} | ${row.longestMs.toFixed(1)} | ${row.long} | ${row.count} |`),
    '',
    `The same while ${CROWD} lists are requested at once, each over a separate connection; the goal is 20 ms. Each client has`,
    `${SUBSCRIPTIONS} subscriptions. The memory is the maximum resident memory of the process meanwhile.`,
    '',
    `| ${CROWD} lists at once | longest ms | turns over 10 ms | turns | MB |`,
    '| --- | --- | --- | --- | --- |',
    ...crowds.map(
      ({ what, longestMs, long, count, peakBytes }) =>
        `| ${what} | ${longestMs.toFixed(1)} | ${long} | ${count} | ${Math.round(peakBytes / 1e6)} |`
    )
  ].join('\n');
}
