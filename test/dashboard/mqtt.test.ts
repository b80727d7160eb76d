import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { type DashboardLogin, dashboard } from 'embermq/dashboard';
import { attachWebSocket, listenHttp } from 'embermq/net';
import express from 'express';
import mqtt from 'mqtt';
import { WebSocketServer } from 'ws';
import { PASSWORD, startConsole } from '../support/dashboard.ts';

type Server = Awaited<ReturnType<typeof startConsole>>;

/** Serve the console on a server of node:http that passes upgrade requests on. */
async function startWithUpgrades(...[options, ofBroker]: Parameters<typeof startConsole>) {
  const server = await startConsole(options, ofBroker, (http, { attachUpgrades }) => void attachUpgrades(http));
  return server;
}

/** The status of the answer to an upgrade request; 101: it is accepted. */
async function statusOf(port: number, path: string, headers: Record<string, string>): Promise<number> {
  const outgoing = request({
    host: '127.0.0.1',
    port,
    path,
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': Buffer.alloc(16).toString('base64'),
      'sec-websocket-protocol': 'mqtt',
      ...headers
    }
  }).end();
  return new Promise((resolve, reject) => {
    outgoing.on('error', reject);
    outgoing.on('response', (response) => resolve(response.resume().statusCode as number));
    outgoing.on('upgrade', (_response, socket) => {
      socket.destroy();
      resolve(101);
    });
  });
}

async function loggedIn(server: Server, id = 'ann', base = '') {
  const browser = server.browser();
  assert.equal((await browser.login(id, PASSWORD, base)).status, 200);
  return { browser, cookie: browser.cookie as string };
}

/** The next event of a client. */
const eventOf = <T extends unknown[]>(client: mqtt.MqttClient, name: 'close' | 'message') =>
  new Promise<T>((resolve) => client.once(name, (...values: unknown[]) => resolve(values as T)));

const connect = (port: number, cookie: string, options: mqtt.IClientOptions = {}, path = '/mqtt') =>
  mqtt.connectAsync(`ws://127.0.0.1:${port}${path}`, {
    reconnectPeriod: 0,
    wsOptions: { headers: { cookie } },
    ...options
  });

describe('MQTT over WebSocket in the console', () => {
  it('connects with the session of an administrator, in 3.1.1 and 5', async () => {
    await using server = await startWithUpgrades();
    const { cookie } = await loggedIn(server);
    for (const protocolVersion of [4, 5] as const) {
      const client = await connect(server.port, cookie, { protocolVersion, clientId: `page-${protocolVersion}` });
      const received = eventOf<[string, Buffer]>(client, 'message');
      await client.subscribeAsync('a/#');
      await client.publishAsync('a/b', 'hello', { qos: 1 });
      const [topic, payload] = await received;
      assert.deepEqual([topic, String(payload)], ['a/b', 'hello']);
      assert.equal(server.broker.sessions.get(`page-${protocolVersion}`).transportInfo.transport, 'ws');
      await client.endAsync();
    }
  });

  it('asks the login function of the host app, and refuses people whom it no longer names, or as viewers', async () => {
    let person: DashboardLogin | undefined = { id: 'eve', scope: 'administrator' };
    await using server = await startWithUpgrades({ login: async () => person });
    const browser = server.browser();
    const status = async () => {
      await browser.send('GET', '/session');
      return statusOf(server.port, '/mqtt', { cookie: browser.cookie as string });
    };
    assert.equal(await status(), 101);
    const cookie = browser.cookie as string;
    person = { id: 'eve', scope: 'viewer' };
    assert.equal(await statusOf(server.port, '/mqtt', { cookie }), 401);
    assert.equal(await status(), 403, 'with a session of a viewer');
    person = { id: 'eve', scope: 'administrator' };
    assert.equal(await status(), 101);
    person = undefined;
    assert.equal(await statusOf(server.port, '/mqtt', { cookie: browser.cookie as string }), 401);
  });

  it('asks the client for MQTT credentials as well', async () => {
    const ofBroker = {
      hooks: { authenticate: ({ password }: { password?: Buffer | undefined }) => String(password) === 'right' }
    };
    await using server = await startWithUpgrades({}, ofBroker as never);
    const { cookie } = await loggedIn(server);
    await assert.rejects(connect(server.port, cookie, { username: 'u', password: 'wrong' }));
    await (await connect(server.port, cookie, { username: 'u', password: 'right' })).endAsync();
  });

  it('refuses requests without a session, with that of a viewer, and of pages of other origins', async () => {
    await using server = await startWithUpgrades({ prefix: '/console' });
    const { cookie } = await loggedIn(server, 'ann', '/console');
    const viewer = await loggedIn(server, 'bob', '/console');
    const status = (headers: Record<string, string>) => statusOf(server.port, '/console/mqtt', headers);
    assert.equal(await status({}), 401);
    assert.equal(await status({ cookie: `${cookie}x` }), 401);
    assert.equal(await status({ cookie: viewer.cookie }), 403);
    // another port of this machine has the same cookies
    for (const origin of ['http://127.0.0.1:1', 'https://evil.example', 'null'])
      assert.equal(await status({ cookie, origin }), 403, origin);
    assert.equal(await status({ cookie, origin: `http://127.0.0.1:${server.port}` }), 101);
    const basic = `Basic ${Buffer.from(`ann:${PASSWORD}`).toString('base64')}`;
    assert.equal(await status({ authorization: basic }), 401, 'a session is needed');
  });

  it('ends with the session', async () => {
    await using server = await startWithUpgrades();
    await server.broker.users.create('eve', PASSWORD, 'administrator'); // the last one keeps the role
    for (const end of ['logout', 'password', 'role'] as const) {
      const { browser, cookie } = await loggedIn(server);
      const client = await connect(server.port, cookie);
      const closed = eventOf(client, 'close');
      if (end === 'logout') await browser.send('POST', '/logout', {});
      else if (end === 'password') await server.broker.users.setPassword('ann', PASSWORD);
      else await server.broker.users.update('ann', 'viewer');
      await closed;
      await client.endAsync(true);
    }
  });

  it('says in the session whether upgrade requests arrive', async () => {
    await using deaf = await startConsole();
    const one = await loggedIn(deaf);
    const upgrades = async ({ browser }: typeof one) => (await browser.send('GET', '/session')).body.upgrades;
    assert.equal(await upgrades(one), 'untried');
    assert.equal(await statusOf(deaf.port, '/mqtt', { cookie: one.cookie }), 404);
    assert.equal(await upgrades(one), 'missing');
    await using server = await startWithUpgrades();
    const other = await loggedIn(server);
    assert.equal(await statusOf(server.port, '/mqtt', { cookie: other.cookie }), 101);
    assert.equal(await upgrades(other), 'arrive');
  });

  it('shares a server with other WebSockets, behind Express at a base path and beside a listener for MQTT', async () => {
    const broker = createBroker({ passwordCost: 10 });
    await broker.start();
    await broker.users.create('ann', PASSWORD, 'administrator');
    const mounted = dashboard(broker);
    const app = express().use(express.json(), express.urlencoded({ extended: true }));
    app.use('/tools/api/console', mounted.node);
    const http = createServer(app).listen(0, '127.0.0.1');
    await once(http, 'listening');
    const { port } = http.address() as AddressInfo;
    const others = new WebSocketServer({ server: http, path: '/chat' }); // refuses all other paths
    mounted.attachUpgrades(http);
    await attachWebSocket(broker, http, { path: '/mqtt' });
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/tools/api/console/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: 'ann', password: PASSWORD })
      });
      assert.equal(answer.status, 200);
      const [cookie] = `${answer.headers.get('set-cookie')}`.split(';');
      assert.match(answer.headers.get('set-cookie') as string, /Path=\/tools\/api\/console;/);
      await (await connect(port, cookie, {}, '/tools/api/console/mqtt')).endAsync();
      assert.equal(await statusOf(port, '/tools/api/console/mqtt', {}), 401);
      await (await connect(port, '', {}, '/mqtt')).endAsync();
      assert.equal(await statusOf(port, '/chat', { cookie }), 101);
      assert.equal(await statusOf(port, '/elsewhere/mqtt', { cookie }), 400, 'left to the package for other paths');
    } finally {
      others.close();
      http.closeAllConnections();
      http.close();
      await broker.stop();
    }
  });

  it('works on a port of the broker, and does not delay its stop', async () => {
    const broker = createBroker({ passwordCost: 10 });
    await broker.users.create('ann', PASSWORD, 'administrator').catch(() => {});
    const listening = listenHttp(broker, 0, dashboard(broker));
    await broker.start();
    if (broker.users.size === 0) await broker.users.create('ann', PASSWORD, 'administrator');
    const port = listening.port as number;
    const answer = await fetch(`http://127.0.0.1:${port}/login`, {
      method: 'POST',
      body: JSON.stringify({ id: 'ann', password: PASSWORD })
    });
    const [cookie] = `${answer.headers.get('set-cookie')}`.split(';');
    const client = await connect(port, cookie);
    assert.equal(await statusOf(port, '/nothing', { cookie }), 404);
    const closed = eventOf(client, 'close');
    await listening.close();
    await closed;
    await client.endAsync(true);
    await listening.open();
    const again = await connect(listening.port as number, cookie);
    const ended = eventOf(again, 'close');
    await broker.stop();
    await ended;
    await again.endAsync(true);
  });
});
