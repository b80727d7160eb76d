import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { type AccessRule, acl, type Broker, type BrokerOptions, createBroker, users } from 'embermq';
import type { AuthSource } from 'embermq/adapter';
import { http } from 'embermq/auth/http';
import { jwt } from 'embermq/auth/jwt';
import { type Credentials, connectFrame, DISCONNECT_FRAME } from './load/frames.ts';
import { median } from './report.ts';
import { checkSequence, connect, subscribe, supplyOf, Wire } from './support/wire.ts';

/** The cost of access control: CPU microseconds of all threads. */
export interface Row {
  readonly what: string;
  readonly us: number;
  /** The additional cost over the first row of its table, compared round by round. */
  readonly moreUs: number;
}

/** The number of rounds, of which the median is reported, and of rounds before them to warm up the compiler. */
const ROUNDS = 15;
const WARMING = 3;
/** Messages per chunk. Each turn of the event loop processes one chunk. */
const BATCH = 20;
/** Fewer topics than the ACL cache of a connection holds. */
const TOPICS = 20;

/** Measure the cost of authorizing a message, with this number of messages per round and of rules for other clients. */
export async function runVerdicts(messages: number, otherClients: number): Promise<Row[]> {
  const few = [...Array.from({ length: 999 }, (_, i) => ruleFor(`site/${i}/+/state`)), ruleFor('#')];
  const keyed = (count: number) => [
    ...Array.from({ length: count }, (_, i) => ({ ...ruleFor(`device${i}/#`), clientId: `device${i}` })),
    { ...ruleFor('#'), clientId: 'publisher' },
    { ...ruleFor('#'), clientId: 'subscriber' }
  ];
  const decideEach = { aclCacheMaxSize: 0 };
  const beds = [
    await makeBed('no rules', {}, []),
    await makeBed('hook, kept', {}, [], (broker) => broker.hook('authorizePublish', () => true, { cache: 'route' })),
    await makeBed('1,000 rules, kept', {}, few),
    await makeBed(`${otherClients} rules by client id, kept`, {}, keyed(otherClients)),
    await makeBed('100 rules by client id, decided for each message', decideEach, keyed(100)),
    await makeBed(`${otherClients} rules by client id, decided for each message`, decideEach, keyed(otherClients))
  ];
  const rows = await takeTurns(beds.map(({ what, publish }) => ({ what, work: () => publish(messages) })));
  for (const { broker } of beds) await broker.stop();
  return rows;
}

function ruleFor(topic: string): AccessRule {
  return { access: 'allow', topic };
}

interface Bed {
  readonly what: string;
  readonly broker: Broker;
  /** Publish messages to one subscriber. @returns CPU microseconds per message */
  publish(messages: number): Promise<number>;
}

async function makeBed(
  what: string,
  options: BrokerOptions,
  rules: readonly AccessRule[],
  prepare: (broker: Broker) => void = () => {}
): Promise<Bed> {
  const auth = rules.length === 0 ? [] : [acl(rules)];
  const broker = createBroker({ allowAnonymous: true, ...options, auth });
  prepare(broker);
  await broker.start();
  let expected = 0;
  const subscriber = await connect(broker, 'subscriber', (bytes) => {
    expected = checkSequence(bytes, expected);
  });
  await subscribe(subscriber, ['site/#']);
  const publisher = await connect(broker, 'publisher', () => {});
  const supply = supplyOf(TOPICS, (i) => `site/${i}/device/state`);
  const publish = async (messages: number): Promise<number> => {
    const from = expected;
    const before = process.cpuUsage();
    for (let sent = 0; sent < messages; sent += BATCH) {
      publisher.push(supply.take(BATCH, 0));
      await turn();
    }
    const { user, system } = process.cpuUsage(before);
    if (expected - from !== messages) throw new Error(`${expected - from} of ${messages} messages arrived`);
    return (user + system) / messages;
  };
  return { what, broker, publish };
}

const CREDENTIALS: Credentials = { username: 'user', password: 'password' };
const SECRET = 'a secret of thirty-two characters';
/** Fewer clients than the number of answers that a source caches. */
const CLIENTS = 100;
const AN_HOUR = 3_600_000;

/** Measure the cost of authenticating a client that reconnects, with this number of connections per round. */
export async function runLogins(connections: number): Promise<Row[]> {
  const server = createServer((_, response) => response.end('ok'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sources: readonly (readonly [what: string, source: AuthSource | undefined, credentials: Credentials])[] = [
    ['no source', undefined, CREDENTIALS],
    ['users, password hash of SHA-256', users([CREDENTIALS]), CREDENTIALS],
    ['jwt, token that was seen before', jwt({ secret: SECRET }), { username: 'user', password: token() }],
    ['http, answer that is kept', http({ authenticate: { url: urlOf(server) }, cacheMs: AN_HOUR }), CREDENTIALS]
  ];
  const beds: { readonly what: string; readonly broker: Broker; readonly work: () => Promise<number> }[] = [];
  for (const [what, source, credentials] of sources) {
    const broker = createBroker({ auth: source === undefined ? [] : [source] });
    await broker.start();
    await connectOnce(broker, 'first', credentials);
    const work = async (): Promise<number> => {
      const before = process.cpuUsage();
      for (let i = 0; i < connections; i++) await connectOnce(broker, `client${i % CLIENTS}`, credentials);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / connections;
    };
    beds.push({ what, broker, work });
  }
  const rows = await takeTurns(beds);
  for (const { broker } of beds) await broker.stop();
  await new Promise((resolve) => server.close(resolve));
  return rows;
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** A token signed with HS256 that is valid for an hour. */
function token(): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'HS256' })}.${part({ sub: 'user', exp: Math.floor(Date.now() / 1000) + 3600 })}`;
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`;
}

/** Send CONNECT, wait for CONNACK, and send DISCONNECT. */
async function connectOnce(broker: Broker, clientId: string, credentials: Credentials): Promise<void> {
  let answer = -1;
  await new Promise<void>((resolve) => {
    const wire = new Wire((bytes) => {
      answer = bytes[3];
      wire.push(DISCONNECT_FRAME);
      resolve();
    });
    wire.once('close', resolve);
    broker.handle(wire);
    wire.push(connectFrame(clientId, { v5: false, clean: true, credentials }));
  });
  if (answer !== 0) throw new Error(`${clientId} was refused with ${answer}`);
}

/** Alternate between the works: other work on the machine has a larger effect than the difference between them. */
async function takeTurns(works: readonly { what: string; work: () => Promise<number> }[]): Promise<Row[]> {
  const costs = works.map((): number[] => []);
  globalThis.gc?.();
  for (let round = -WARMING; round < ROUNDS; round++) {
    for (const [at, { work }] of works.entries()) {
      const cost = await work();
      if (round >= 0) costs[at].push(cost);
    }
  }
  return works.map(({ what }, at) => ({
    what,
    us: median(costs[at]),
    moreUs: median(costs[at].map((cost, round) => cost - costs[0][round]))
  }));
}

/** The rows as a Markdown table. */
export function table(verdicts: readonly Row[], logins: readonly Row[]): string {
  const lines = (rows: readonly Row[]) =>
    rows.map(({ what, us, moreUs }) => `| ${what} | ${us.toFixed(2)} | ${moreUs.toFixed(2)} |`);
  return [
    'The right to publish: a QoS 0 message from the bytes that come to the bytes that go to its one subscriber. A decision that is kept may',
    'cost at most 0.1 us more; with 100,000 rules by client id, a decision may not cost more than with 100.',
    '',
    '| decision | us a message | more us |',
    '| --- | --- | --- |',
    ...lines(verdicts),
    '',
    'Who a client is: CONNECT, CONNACK and DISCONNECT of a client whose credentials were checked before. The goal is at most 5 us more.',
    '',
    '| source | us a connection | more us |',
    '| --- | --- | --- |',
    ...lines(logins)
  ].join('\n');
}
