import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { WebSocket } from 'ws';
import { attachWebSocket, listen, upgradeHandler, type WebSocketSettings, ws } from '../../adapters/net/index.ts';
import { StubBroker } from './stub-broker.ts';

let broker: StubBroker;
const clients: WebSocket[] = [];
const servers: Server[] = [];

beforeEach(() => {
  broker = new StubBroker();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.terminate();
  await broker.stop();
  for (const server of servers.splice(0)) server.close();
});

/** The ways in which a broker serves WebSockets. Each returns the port for clients. */
const WAYS = {
  'its own listener': async (options: WebSocketSettings) =>
    (await listen(broker, ws({ port: 0, ...options }))).port as number,
  'an attached server': async (options: WebSocketSettings) => {
    const server = createServer().listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    await attachWebSocket(broker, server, options);
    return (server.address() as AddressInfo).port;
  },
  'a host that calls handleUpgrade': async (options: WebSocketSettings) => {
    const server = createServer().on('upgrade', upgradeHandler(broker, options).handleUpgrade).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }
} as const;

/** Returns the status of the answer to a client of this origin. */
async function statusOf(port: number, origin: string | undefined, host?: string): Promise<number> {
  const headers = host === undefined ? {} : { host };
  const client = new WebSocket(`ws://127.0.0.1:${port}/mqtt`, 'mqtt', { origin, headers });
  clients.push(client);
  client.on('error', () => {});
  const answered = new Promise<number>((resolve) => {
    client.on('unexpected-response', (_request, response) => resolve(response.statusCode as number));
    client.on('open', () => resolve(101));
  });
  return answered;
}

const LOOPBACK = [
  'http://localhost',
  'http://localhost:5173',
  'https://localhost:8443',
  'http://127.0.0.1:3000',
  'http://127.8.9.10',
  'http://[::1]:3000',
  'http://app.localhost:8080'
];
const ELSEWHERE = [
  'https://evil.example',
  'http://localhost.evil.example',
  'http://127.0.0.1.evil.example',
  'http://evillocalhost',
  'http://192.168.1.7',
  'http://[::2]',
  'http://localhost@evil.example',
  'http://localhost/',
  'http://localhost, http://evil.example',
  'ftp://localhost',
  'file://',
  'null',
  ' '
];

for (const [way, open] of Object.entries(WAYS)) {
  describe(`origins of web pages over ${way}`, () => {
    it('admits clients that send no Origin, with any Host', async () => {
      const port = await open({});
      for (const host of [undefined, 'broker.example', 'evil.example:80', '10.0.0.1']) {
        assert.equal(await statusOf(port, undefined, host), 101, host);
      }
    });

    it('admits pages of loopback origins, and refuses all others with 403', async () => {
      const port = await open({});
      for (const origin of LOOPBACK) assert.equal(await statusOf(port, origin), 101, origin);
      for (const origin of ELSEWHERE) assert.equal(await statusOf(port, origin), 403, origin);
    });

    it('refuses a page of evil.example whose Host is evil.example as well, as after DNS rebinding', async () => {
      const port = await open({});
      for (const host of ['evil.example', `evil.example:${port}`]) {
        assert.equal(await statusOf(port, `http://${host}`, host), 403, host);
      }
      assert.deepEqual(broker.taken, []);
    });

    it('admits listed origins as well, including other schemes and pages without an origin', async () => {
      const port = await open({ origins: ['https://app.example', 'capacitor://localhost', 'null'] });
      for (const origin of ['https://app.example', 'capacitor://localhost', 'null', 'http://localhost:1', undefined]) {
        assert.equal(await statusOf(port, origin), 101, origin);
      }
      for (const origin of ['http://app.example', 'https://app.example:444', 'https://evil.example', 'ionic://x']) {
        assert.equal(await statusOf(port, origin), 403, origin);
      }
    });

    it('admits every page only if an option allows it', async () => {
      for (const origins of ['*', 'any', ['https://app.example', '*']]) {
        const port = await open({ origins });
        assert.equal(await statusOf(port, 'https://anybody.example'), 101);
        assert.equal(await statusOf(port, 'null'), 101);
        await broker.stop();
      }
    });

    it('lets a function decide about all clients, and refuses if it throws', async () => {
      const port = await open({
        origins: (origin) => {
          if (origin === undefined) throw new Error('undecided');
          return origin.endsWith('.example');
        }
      });
      assert.equal(await statusOf(port, 'https://any.example'), 101);
      assert.equal(await statusOf(port, 'http://localhost'), 403);
      assert.equal(await statusOf(port, undefined), 403);
      assert.ok(broker.reports.some(({ error }) => error.message === 'undecided'));
    });
  });
}

describe('the option origins', () => {
  it('accepts only values that browsers send as Origin [OPTION_INVALID]', () => {
    for (const origins of ['https://app.example/', 'app.example', 'https://App.example', '', 'https://a:443', 7, {}]) {
      assert.throws(() => ws({ port: 0, origins: origins as string }), {
        code: 'OPTION_INVALID',
        field: 'ws listener.origins'
      });
    }
  });
});
