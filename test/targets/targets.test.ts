import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { WebSocket, WebSocketServer } from 'ws';
import { mqttBridge } from '../../adapters/bridge/index.ts';
import { fileSink } from '../../adapters/streams/file/index.ts';
import { restSink } from '../../adapters/streams/http/index.ts';
import { influx2Sink, influxSink } from '../../adapters/streams/influx/index.ts';
import { kafkaSink } from '../../adapters/streams/kafka/index.ts';
import { mqttSink as remoteMqttSink } from '../../adapters/streams/mqtt/index.ts';
import { redisSink } from '../../adapters/streams/redis/index.ts';
import { sqlSink } from '../../adapters/streams/sql/index.ts';
import { webSockets } from '../../adapters/streams/websocket/index.ts';
import { webHook } from '../../adapters/webhook/index.ts';
import { WebhookSender } from '../../adapters/webhook/sender.ts';
import { Attempt } from '../../lib/outbox/attempt.ts';
import { checkParams } from '../../lib/rules/params.ts';
import type { Params, ResourceType, SendingAction } from '../../lib/rules/types.ts';
import { MemoryTopics } from '../../lib/streams/memory-topics.ts';
import { builtInSinks } from '../../lib/streams/sinks/built-in.ts';
import { MadeItem } from '../../lib/streams/sinks/item.ts';
import { planSink } from '../../lib/streams/sinks/sink-plan.ts';
import type { SinkType } from '../../lib/streams/types.ts';
import { Opener } from '../../lib/targets/opener.ts';
import { listener, server } from '../bridge/pair.ts';
import { TestClient } from '../streams/kafka-client.ts';
import { PLAN } from '../streams/sink-bench.ts';
import { DATABASES } from '../streams/sql-kit.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { eventOf } from '../support/resource-host.ts';
import { service } from '../support/services.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { type HeldTarget, type TargetCase, targetContract } from './target-contract.ts';

type Target = HeldTarget['target'];

const CLOSED = new Error('the target is closed');

/** An opener as rules use it. */
function openerOf<T>(setup: Pick<ConstructorParameters<typeof Opener<T>>[0], 'clock' | 'open' | 'check' | 'close'>) {
  const failed = (error: unknown) => assert.fail(String(error));
  return new Opener<T>({ ...setup, what: 'the target', code: 'TOO_LATE', during: () => undefined, failed });
}

/** Open a sink as a rule does. */
async function sinkOf(
  type: SinkType,
  properties: object,
  clock = new ManualClock(),
  dataDir?: string
): Promise<Target> {
  const plan = planSink(type, properties, PLAN);
  const open = () =>
    type.open({
      ...{ ruleId: 'r', index: 0, properties: plan.properties, dataDir, clock },
      ...{ connected() {}, disconnected() {}, log: (text) => logged.push(text), warn: (text) => assert.fail(text) }
    });
  const opener = openerOf({ clock, open, close: (sink) => sink.close() });
  await opener.open();
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value));
  const kind = { properties: plan.properties, dynamic: new Map(), prefix: 'i', encode, text: undefined };
  let count = 0;
  return {
    send: async (text) => {
      await (await opener.open()).send(new MadeItem({ rows: [{ text }], value: { text } }, kind, ++count));
    },
    close: () => opener.close(CLOSED)
  };
}

/** The lines that the sink `log` has written. */
const logged: string[] = [];

/** Create a resource with its action, as the rule engine does. */
async function resourceOf(
  type: ResourceType,
  config: Params,
  params: Params,
  clock = new ManualClock()
): Promise<Target> {
  const checked = checkParams(type.params ?? {}, config, type.name);
  const failed = (error: unknown) => assert.fail(String(error));
  const opener = openerOf({
    clock,
    open: () => type.make(checked, { id: 'resource:1', node: 'n1', clock, failed }),
    check: (resource, signal) => resource.check(signal),
    close: (resource) => resource.close()
  });
  await opener.open();
  const action = (await type.actions?.[0].create?.(params, {
    ...{ ruleId: 'r', actionId: 'a', node: 'n1', config: checked }
  })) as SendingAction;
  let count = 0;
  return {
    async send(text) {
      const content = action.prepare({ text }, eventOf('message.publish', { topic: 'a' })) as string | Buffer;
      const resource = await opener.open();
      await resource.send([{ id: `e${++count}`, content, attempts: 0, ruleId: 'r', actionId: 'a' }], new Attempt());
    },
    check: () => opener.reach(),
    close: () => opener.close(CLOSED)
  };
}

const textIn = (bytes: unknown) => (JSON.parse(String(bytes)) as { text: string }).text;

/** A web server behind a line, that answers with what a test says. */
async function webServer(textOf: (body: string) => string = textIn) {
  const texts: string[] = [];
  let refusal: { status: number; headers: Record<string, string> } | undefined;
  const http = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    if (refusal === undefined) texts.push(textOf(body));
    response.writeHead(refusal?.status ?? 200, refusal?.headers).end();
    refusal = undefined;
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  const line = await new TcpProxy(`http://127.0.0.1:${(http.address() as AddressInfo).port}`).start();
  return {
    url: `http://127.0.0.1:${line.port}/in`,
    held: {
      line,
      received: () => texts,
      refuse: ({ isFinal, pauseMs = 0 }: { isFinal: boolean; pauseMs?: number }) => {
        refusal = isFinal
          ? { status: 400, headers: {} }
          : { status: 503, headers: { 'retry-after': `${pauseMs / 1000}` } };
      },
      async [Symbol.asyncDispose]() {
        await line.stop();
        http.closeAllConnections();
        http.close();
      }
    }
  };
}

/** A target that sends to a web server. */
function overHttp(
  name: string,
  open: (url: string, clock: ManualClock) => Promise<Target>,
  more: Partial<TargetCase> & { readonly textOf?: (body: string) => string } = {}
): TargetCase {
  return {
    name,
    has: ['line', 'refuse', 'pause'],
    async open() {
      const { url, held } = await webServer(more.textOf);
      const clock = new ManualClock();
      return { ...held, clock, target: await open(url, clock) };
    },
    ...more
  };
}

/** A broker behind a line, with a client that receives everything. */
async function overMqtt(open: (address: string, clock: ManualClock) => Promise<Target>): Promise<HeldTarget> {
  const { broker, port } = await server();
  const line = await new TcpProxy(`http://127.0.0.1:${port}`).start();
  const texts: string[] = [];
  let refuses = false;
  broker.hook('authorizePublish', () => !refuses);
  const { client } = await listener(broker);
  client.on('message', ({ payload }) => texts.push(textIn(payload)));
  const clock = new ManualClock();
  return {
    ...{ line, clock, target: await open(`127.0.0.1:${line.port}`, clock) },
    received: () => texts,
    refuse: () => {
      refuses = true;
    },
    async [Symbol.asyncDispose]() {
      await broker.stop();
      await line.stop();
    }
  };
}

/** A target of this process. */
function inProcess(name: string, open: () => Promise<Pick<HeldTarget, 'target' | 'received'>>): TargetCase {
  return { name, open: async () => ({ ...(await open()), async [Symbol.asyncDispose]() {} }) };
}

const builtIn =
  (messages: object = {}, topics = new MemoryTopics()) =>
  (name: string) =>
    builtInSinks(messages as never, topics, [remoteMqttSink()]).find((type) => type.name === name) as SinkType;

/** The text of the field of a line of the line protocol. */
const textOfLine = (line: string) =>
  (/text="((?:[^"\\]|\\.)*)"/s.exec(line)?.[1] ?? assert.fail(line)).replace(/\\(["\\])/g, '$1');

const redis = service('redis');

const CASES: readonly TargetCase[] = [
  inProcess('log', async () => {
    logged.length = 0;
    return {
      target: await sinkOf(builtIn()('log'), {}),
      received: () => logged.map((text) => textIn(text.split('rule r: ')[1]))
    };
  }),
  {
    ...inProcess('memory', async () => {
      const topics = new MemoryTopics();
      const texts: string[] = [];
      topics.subscribe('t', ({ rows }) => texts.push(...rows.map(({ text }) => String(text))));
      return { target: await sinkOf(builtIn({}, topics)('memory'), { topic: 't' }), received: () => texts };
    }),
    openInvalid: () => sinkOf(builtIn()('memory'), {})
  },
  {
    ...inProcess('mqtt of this broker', async () => {
      const texts: string[] = [];
      const messages = { publish: ({ payload }: { payload: string }) => texts.push(textIn(payload)) };
      return { target: await sinkOf(builtIn(messages)('mqtt'), { topic: 't' }), received: () => texts };
    }),
    openInvalid: () => sinkOf(builtIn()('mqtt'), { topic: 'a/#' })
  },
  {
    name: 'mqtt of another broker',
    has: ['line', 'refuse'],
    open: () =>
      overMqtt((address, clock) =>
        sinkOf(builtIn()('mqtt'), { server: `tcp://${address}`, topic: 't', qos: 1, protocolVersion: '5' }, clock)
      ),
    openInvalid: () => sinkOf(builtIn()('mqtt'), { server: 'x://a', topic: 't' })
  },
  {
    name: 'bridge_mqtt',
    has: ['line', 'refuse', 'check'],
    open: () =>
      overMqtt((address, clock) =>
        resourceOf(
          mqttBridge(),
          { address, pool_size: 8, keepalive: '60s', ssl: 'off', proto_ver: 'mqttv5' },
          {},
          clock
        )
      ),
    openInvalid: () => resourceOf(mqttBridge(), { address: '', pool_size: 8, keepalive: '60s', ssl: 'off' }, {})
  },
  {
    name: 'file',
    async open() {
      const folder = await mkdtemp(join(tmpdir(), 'embermq-target-'));
      const read = async () => {
        const text = await readFile(join(folder, 'files/out.txt'), 'utf8').catch(() => '');
        return text.split('\n').filter(Boolean).map(textIn);
      };
      return {
        target: await sinkOf(fileSink(), { path: 'out.txt', interval: 0 }, new ManualClock(), folder),
        received: read,
        [Symbol.asyncDispose]: () => rm(folder, { recursive: true })
      };
    },
    openInvalid: () => sinkOf(fileSink(), { path: '../out.txt' }, new ManualClock(), tmpdir())
  },
  overHttp('rest', (url, clock) => sinkOf(restSink(), { url, method: 'post' }, clock), {
    openInvalid: () => sinkOf(restSink(), { url: 'x' })
  }),
  overHttp('influx', (url, clock) => sinkOf(influxSink(), { addr: url, measurement: 'm', database: 'd' }, clock), {
    textOf: textOfLine,
    openInvalid: () => sinkOf(influxSink(), { addr: 'http://a@b', measurement: 'm', database: 'd' })
  }),
  overHttp(
    'influx2',
    (url, clock) => sinkOf(influx2Sink(), { addr: url, measurement: 'm', org: 'o', bucket: 'b', token: 't' }, clock),
    { textOf: textOfLine, openInvalid: () => sinkOf(influx2Sink(), { addr: 'x' }) }
  ),
  overHttp('web_hook', (url, clock) => resourceOf(webHook(), { url }, {}, clock), {
    has: ['line', 'refuse', 'pause', 'check'],
    openInvalid: () => resourceOf(webHook(), { url: 'http://a@b' }, {})
  }),
  // an answer is a success, whatever its status, so there is no refusal
  overHttp(
    'a webhook',
    async (url, clock) => {
      const sender = new WebhookSender({
        ...{ url: new URL(url), tls: {}, isPublicOnly: false, maxSockets: 2, headers: {}, secret: undefined },
        ...{ isBatched: false, clock, answered: () => undefined }
      });
      let count = 0;
      const entry = (text: string) => ({
        id: `e${++count}`,
        key: 'k',
        content: JSON.stringify({ text }),
        addedAt: 0,
        attempts: 0
      });
      return {
        send: (text) => sender.send([entry(text)], new Attempt()),
        close: async () => sender.close()
      };
    },
    { has: ['line'], isReopened: false }
  ),
  {
    name: 'websocket at a server',
    isAcknowledged: false,
    has: ['line'],
    async open() {
      const texts: string[] = [];
      const far = new WebSocketServer({ port: 0, host: '127.0.0.1' });
      await once(far, 'listening');
      far.on('connection', (socket) => socket.on('message', (data) => texts.push(textIn(data))));
      const line = await new TcpProxy(`http://127.0.0.1:${(far.address() as AddressInfo).port}`).start();
      const clock = new ManualClock();
      const { sink } = webSockets({ port: 'off' });
      return {
        ...{ line, clock, received: () => texts },
        target: await sinkOf(sink, { addr: `127.0.0.1:${line.port}`, path: '/in' }, clock),
        async [Symbol.asyncDispose]() {
          await line.stop();
          far.close();
        }
      };
    },
    openInvalid: () => sinkOf(webSockets({ port: 'off' }).sink, { path: '/out' })
  },
  {
    name: 'websocket for clients',
    ...{ isAcknowledged: false, isReopened: false },
    async open() {
      const texts: string[] = [];
      const { StreamsPort } = await import('../../adapters/streams/websocket/index.ts');
      const port = new StreamsPort({ port: 0 });
      const target = await sinkOf(webSockets({ port }).sink, { path: '/out' });
      const socket = new WebSocket(`ws://127.0.0.1:${port.number}/out`);
      socket.on('message', (data) => texts.push(textIn(data)));
      await once(socket, 'open');
      return { target, received: () => texts, [Symbol.asyncDispose]: async () => socket.terminate() };
    },
    openInvalid: () => sinkOf(webSockets({ port: 0 }).sink, { path: '' })
  },
  {
    name: 'kafka',
    has: ['line', 'refuse'],
    async open() {
      const client = new TestClient();
      const clock = new ManualClock();
      const texts = () => client.sent.flatMap(({ messages }) => messages.map(({ value }) => textIn(value)));
      return {
        target: await sinkOf(kafkaSink({ client }), { brokers: 'a:9092', topic: 't' }, clock),
        received: texts,
        clock,
        line: {
          async stop() {
            client.fault = () => new Error('ECONNREFUSED a:9092');
          },
          async start() {
            client.fault = () => undefined;
          }
        },
        refuse() {
          client.fault = () => Object.assign(new Error('too large'), { type: 'MESSAGE_TOO_LARGE' });
        },
        async [Symbol.asyncDispose]() {}
      };
    },
    openInvalid: () => sinkOf(kafkaSink({ client: new TestClient().make }), { brokers: 'a', topic: 't' })
  },
  {
    name: 'redis',
    skip: redis.skip,
    has: ['line', 'refuse'],
    async open() {
      const client = new Redis(redis.url, { db: 8 });
      await client.flushdb();
      const line = await new TcpProxy(redis.url).start();
      const { password } = new URL(redis.url);
      const clock = new ManualClock();
      const properties = { addr: `127.0.0.1:${line.port}`, password, db: 8, key: 'k', dataType: 'list' };
      return {
        ...{ line, clock, target: await sinkOf(redisSink(), properties, clock) },
        received: async () =>
          (await client.type('k')) === 'list' ? (await client.lrange('k', 0, -1)).reverse().map(textIn) : ['a'],
        refuse: () => void client.set('k', 'a string'),
        async [Symbol.asyncDispose]() {
          await line.stop();
          await client.quit();
        }
      };
    },
    openInvalid: () => sinkOf(redisSink(), { addr: '127.0.0.1:1' })
  },
  ...DATABASES.map(
    ({ name, skip, open }): TargetCase => ({
      name: `sql with ${name}`,
      skip,
      has: ['refuse'],
      async open() {
        const db = await open();
        await db.run("CREATE TABLE texts (text VARCHAR(20) CHECK (text <> 'refused'))");
        return {
          target: await sinkOf(sqlSink(db.options), { table: 'texts' }),
          received: async () => (await db.run('SELECT text FROM texts')).map(({ text }) => String(text)),
          refuse: () => undefined, // the constraint refuses
          [Symbol.asyncDispose]: () => db.close()
        };
      },
      openInvalid: () => sinkOf(sqlSink({ dialect: 'postgres', query: async () => [] }), {})
    })
  )
];

for (const each of CASES) targetContract(each);

describe('the contract of targets', () => {
  it('tests each type of sink and resource with the contract of targets', async () => {
    const { CONNECTORS } = await import('../support/stream-tables.ts');
    const sinks = Object.values(CONNECTORS).flatMap(({ sinks: types = [] }) => types.map(({ name }) => name));
    const own = ['log', 'memory', 'mqtt', webHook().name, mqttBridge().name];
    const missing = [...sinks, ...own].filter((name) => !CASES.some((each) => each.name.split(' ')[0] === name));
    assert.deepEqual(missing, []); // `nop` discards, and `bridge_rpc` reaches nothing
  });
});
