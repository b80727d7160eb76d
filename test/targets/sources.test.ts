import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { WebSocket, WebSocketServer } from 'ws';
import { fileSource } from '../../adapters/streams/file/index.ts';
import { httpPullSource, httpPushSource, StreamsPort } from '../../adapters/streams/http/index.ts';
import { kafkaSource } from '../../adapters/streams/kafka/index.ts';
import { mqttSource } from '../../adapters/streams/mqtt/index.ts';
import { redisLookup, redisSubSource } from '../../adapters/streams/redis/index.ts';
import { sqlSource } from '../../adapters/streams/sql/index.ts';
import { webSockets } from '../../adapters/streams/websocket/index.ts';
import { Message } from '../../lib/packets/message.ts';
import { Watchers } from '../../lib/routing/watchers.ts';
import { MemoryTopics } from '../../lib/streams/memory-topics.ts';
import { builtInSources } from '../../lib/streams/sources/built-in.ts';
import type { SourceType } from '../../lib/streams/types.ts';
import { server } from '../bridge/pair.ts';
import { TestClient } from '../streams/kafka-client.ts';
import { DATABASES } from '../streams/sql-kit.ts';
import { service } from '../support/services.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import {
  type HeldOrigin,
  type LookupCase,
  lookupContract,
  type SourceCase,
  sourceContract,
  urlWithSecret
} from './source-contract.ts';

const watchers = new Watchers();
const topics = new MemoryTopics();
const TYPES = builtInSources({ watch: ([filter], watcher) => watchers.add(filter, watcher) }, topics, [mqttSource()]);
const builtIn = (name: string) => TYPES.find((type) => type.name === name) ?? assert.fail(`there is no source ${name}`);

/** A source of this process. */
function inProcess(
  name: string,
  origin: Omit<HeldOrigin, 'type' | typeof Symbol.asyncDispose>,
  more: Partial<SourceCase> = {}
): SourceCase {
  const type = builtIn(name.split(' ')[0]);
  return { name, open: async () => ({ type, ...origin, async [Symbol.asyncDispose]() {} }), ...more };
}

const redis = service('redis');

/** A source of a table of numbers in a database that a test can make unreachable. */
async function database(open: (typeof DATABASES)[number]['open']) {
  const db = await open();
  await db.run('CREATE TABLE numbers (n BIGINT)');
  let isDown = false;
  const { dialect, query } = db.options;
  const type = sqlSource({
    dialect,
    query: (...call) => (isDown ? Promise.reject(new Error('the database is down')) : query(...call))
  });
  const set = async (value: boolean) => {
    isDown = value;
  };
  return { db, type, line: { stop: () => set(true), start: () => set(false) } };
}

const CASES: readonly SourceCase[] = [
  inProcess('app', { properties: {}, give: (payload, hub) => hub.push('demo', JSON.parse(payload)) }),
  inProcess('push', { properties: {}, give: (payload, hub) => hub.push('demo', JSON.parse(payload)) }),
  inProcess('memory', {
    properties: {},
    datasource: 't',
    give: (payload) => topics.publish('t', [JSON.parse(payload)], {})
  }),
  inProcess(
    'simulator',
    { properties: { data: [{ n: 1 }, { n: 2 }, { n: 3 }], loop: false }, give: () => undefined },
    { invalid: [['data', { data: 'x' }]] }
  ),
  inProcess(
    'mqtt of this broker',
    {
      properties: {},
      datasource: 'a',
      give(payload) {
        const message = Message.from({ topic: 'a', payload }, undefined, 1, 77);
        for (const watcher of watchers.of('a') ?? []) watcher.watched(message, { value: undefined });
      }
    },
    { hasPayloads: true }
  ),
  {
    name: 'mqtt of another broker',
    ...{ hasLine: true, hasPayloads: true },
    async open() {
      const { broker, port } = await server();
      const line = await new TcpProxy(`http://127.0.0.1:${port}`).start();
      return {
        ...{ type: builtIn('mqtt'), datasource: 'a', line },
        properties: { server: `tcp://127.0.0.1:${line.port}`, username: 'u', password: 'hidden-password' },
        give: (payload) => broker.publish({ topic: 'a', payload }),
        async [Symbol.asyncDispose]() {
          await line.stop();
          await broker.stop();
        }
      };
    },
    invalid: [
      ['server', { server: urlWithSecret('tcp') }],
      ['rootCaPath', { rootCaPath: 'nowhere.pem' }],
      ['qos', { qos: 3 }]
    ]
  },
  {
    name: 'file',
    hasPayloads: true,
    async open() {
      const dataDir = await mkdtemp(join(tmpdir(), 'embermq-source-'));
      await mkdir(join(dataDir, 'files/in'), { recursive: true });
      let count = 0;
      return {
        ...{ type: fileSource(), dataDir, datasource: 'in' },
        properties: { fileType: 'lines', interval: 100, watch: true },
        give: (payload) => writeFile(join(dataDir, `files/in/${++count}`), payload),
        [Symbol.asyncDispose]: () => rm(dataDir, { recursive: true })
      };
    },
    invalid: [
      ['path', { path: '../x' }],
      ['fileType', { fileType: 'x' }]
    ]
  },
  {
    name: 'httppull',
    ...{ hasLine: true, hasPayloads: true },
    async open() {
      const payloads: string[] = [];
      const http = createServer((_, response) => response.end(payloads.shift() ?? '[]')).listen(0, '127.0.0.1');
      await once(http, 'listening');
      const line = await new TcpProxy(`http://127.0.0.1:${(http.address() as AddressInfo).port}`).start();
      return {
        ...{ type: httpPullSource(), line },
        properties: { url: `http://127.0.0.1:${line.port}`, interval: 500 },
        give: (payload) => payloads.push(payload),
        async [Symbol.asyncDispose]() {
          await line.stop();
          http.closeAllConnections();
          http.close();
        }
      };
    },
    invalid: [
      ['url', { url: urlWithSecret('http') }],
      ['interval', { interval: urlWithSecret('http') }]
    ]
  },
  {
    name: 'httppush',
    hasPayloads: true,
    async open() {
      const port = new StreamsPort({ port: 0 });
      return {
        ...{ type: httpPushSource({ port }), datasource: '/in', properties: { token: 'hidden-token' } },
        give: (payload) =>
          fetch(`http://127.0.0.1:${port.number}/in`, {
            ...{ method: 'POST', body: payload },
            headers: { authorization: 'Bearer hidden-token', connection: 'close' }
          }).then((response) => response.text()),
        async [Symbol.asyncDispose]() {}
      };
    },
    invalid: [['token', { token: 'a-secret-value with spaces' }]]
  },
  {
    name: 'websocket of a server',
    ...{ hasLine: true, hasPayloads: true },
    async open() {
      const far = new WebSocketServer({ port: 0, host: '127.0.0.1' });
      await once(far, 'listening');
      const line = await new TcpProxy(`http://127.0.0.1:${(far.address() as AddressInfo).port}`).start();
      return {
        ...{ type: webSockets({ port: 'off' }).source, line, datasource: '/in' },
        properties: { addr: `127.0.0.1:${line.port}`, token: 'hidden-token' },
        give(payload) {
          for (const socket of far.clients) socket.send(payload);
        },
        async [Symbol.asyncDispose]() {
          await line.stop();
          far.close();
        }
      };
    },
    invalid: [['addr', { addr: urlWithSecret('ws') }]]
  },
  {
    name: 'websocket of clients',
    hasPayloads: true,
    async open() {
      const port = new StreamsPort({ port: 0 });
      const sockets: WebSocket[] = [];
      return {
        ...{ type: webSockets({ port }).source, datasource: '/in', properties: {} },
        async give(payload) {
          if (sockets.length === 0) {
            sockets.push(new WebSocket(`ws://127.0.0.1:${port.number}/in`));
            await once(sockets[0], 'open');
          }
          sockets[0].send(payload);
        },
        async [Symbol.asyncDispose]() {
          for (const socket of sockets) socket.terminate();
        }
      };
    },
    invalid: [['token', { token: 'a-secret-value with spaces' }]]
  },
  {
    name: 'kafka',
    ...{ hasLine: true, hasPayloads: true },
    async open() {
      const client = new TestClient();
      const down = new Error('ECONNREFUSED a:9092');
      return {
        ...{ type: kafkaSource({ client: client.make }), datasource: 't' },
        properties: { brokers: 'a:9092', saslAuthType: 'plain', saslUserName: 'u', saslPassword: 'hidden-password' },
        give: (payload) => client.record(payload),
        line: {
          async stop() {
            client.fault = () => down;
            client.listeners['consumer.crash']?.({ payload: { error: down, restart: false } });
          },
          async start() {
            client.fault = () => undefined;
          }
        },
        async [Symbol.asyncDispose]() {}
      };
    },
    invalid: [
      ['brokers', { brokers: urlWithSecret('kafka') }],
      ['maxBytes', { maxBytes: 0 }]
    ]
  },
  {
    name: 'redisSub',
    skip: redis.skip,
    ...{ hasLine: true, hasPayloads: true },
    async open() {
      const client = new Redis(redis.url);
      const line = await new TcpProxy(redis.url).start();
      const { password } = new URL(redis.url);
      return {
        ...{ type: redisSubSource(), datasource: 'contract', line },
        properties: { address: `127.0.0.1:${line.port}`, password },
        give: (payload) => client.publish('contract', payload),
        async [Symbol.asyncDispose]() {
          await line.stop();
          await client.quit();
        }
      };
    },
    invalid: [
      ['address', { address: urlWithSecret('redis') }],
      ['channels', { channels: [''] }]
    ]
  },
  ...DATABASES.map(
    ({ name, skip, open }): SourceCase => ({
      name: `sql with ${name}`,
      skip,
      hasLine: true,
      async open() {
        const { db, type, line } = await database(open);
        return {
          ...{ type, line },
          properties: { interval: 500, internalSqlQueryCfg: { table: 'numbers', indexField: 'n', indexValue: 0 } },
          give: (payload) => db.run(`INSERT INTO numbers VALUES (${(JSON.parse(payload) as { n: number }).n})`),
          [Symbol.asyncDispose]: () => db.close()
        };
      },
      invalid: [['interval', { interval: 0 }]]
    })
  )
];

const LOOKUPS: readonly LookupCase[] = [
  {
    name: 'memory',
    open: async () => ({
      ...{ type: builtIn('memory'), properties: {}, datasource: 't' },
      give: (n) => topics.publish('t', [{ n }], {}),
      async [Symbol.asyncDispose]() {}
    })
  },
  {
    name: 'redis',
    skip: redis.skip,
    hasLine: true,
    async open() {
      const client = new Redis(redis.url, { db: 9 });
      await client.flushdb();
      const line = await new TcpProxy(redis.url).start();
      const { password } = new URL(redis.url);
      return {
        ...{ type: redisLookup(), datasource: '9', line },
        properties: { addr: `127.0.0.1:${line.port}`, password },
        give: (n) => client.set(String(n), JSON.stringify({ n })),
        async [Symbol.asyncDispose]() {
          await line.stop();
          await client.quit();
        }
      };
    }
  },
  ...DATABASES.map(
    ({ name, skip, open }): LookupCase => ({
      ...{ name: `sql with ${name}`, skip, hasLine: true },
      async open() {
        const { db, type, line } = await database(open);
        return {
          ...{ type, line, datasource: 'numbers', properties: {} },
          give: (n) => db.run(`INSERT INTO numbers VALUES (${n})`),
          [Symbol.asyncDispose]: () => db.close()
        };
      }
    })
  )
];

for (const each of CASES) sourceContract(each);
for (const each of LOOKUPS) lookupContract(each);

describe('the contract of sources', () => {
  it('tests each type of source with the contract of sources, of lookup tables, or with both', async () => {
    const { CONNECTORS } = await import('../support/stream-tables.ts');
    const all = [...TYPES, ...Object.values(CONNECTORS).flatMap(({ sources = [] }) => sources)];
    const lacks = (cases: readonly { readonly name: string }[], type: SourceType) =>
      !cases.some(({ name }) => name.split(' ')[0] === type.name);
    const missing = [
      ...all.filter((type) => type.open !== undefined && lacks(CASES, type)),
      ...all.filter((type) => type.openLookup !== undefined && lacks(LOOKUPS, type))
    ];
    assert.deepEqual(
      missing.map(({ name }) => name),
      []
    );
  });
});
