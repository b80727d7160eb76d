import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { connect, createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import connectHost from 'connect';
import { createBroker } from 'embermq';
import { type Dashboard, type DashboardOptions, dashboard } from 'embermq/dashboard';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { makeCertificates } from '../support/certificates.ts';
import { PASSWORD } from '../support/dashboard.ts';
import { readerOf } from '../support/event-reader.ts';

/** A way to mount the console. */
interface Host {
  readonly name: string;
  readonly options?: DashboardOptions;
  /** The path of the console. Default none. */
  readonly base?: string;
  listener(console: Dashboard): RequestListener | Promise<RequestListener>;
}

const inExpress =
  (mount: (app: express.Express, console: Dashboard) => void) =>
  (console: Dashboard): RequestListener => {
    const app = express().set('env', 'test');
    mount(app, console);
    app.use((_request, response) => void response.status(404).send('the host'));
    return app;
  };

const HOSTS: readonly Host[] = [
  { name: 'node:http', listener: ({ node }) => node },
  { name: 'node:http with a prefix', base: '/console', options: { prefix: '/console' }, listener: ({ node }) => node },
  { name: 'Express', base: '/console', listener: inExpress((app, { node }) => app.use('/console', node)) },
  {
    name: 'Express behind all of its body parsers, at a base path with the names of the interfaces',
    base: '/api/streams/console',
    listener: inExpress((app, { node }) =>
      app.use(
        express.json(),
        express.urlencoded({ extended: true }),
        express.text(),
        express.raw(),
        express.Router().use('/api/streams/console', node)
      )
    )
  },
  {
    name: 'Express at a path with a parameter',
    base: '/tenants/7/console',
    listener: inExpress((app, { node }) => app.use('/tenants/:tenant/console', node))
  },
  {
    name: 'Express at a base path and a prefix',
    base: '/tools/console',
    options: { prefix: '/console' },
    listener: inExpress((app, { node }) => app.use('/tools', node))
  },
  {
    name: 'Connect',
    base: '/console',
    listener: ({ node }) => {
      const app = connectHost();
      app.use('/console', node);
      return app;
    }
  },
  {
    name: 'Fastify',
    base: '/tools/console',
    options: { prefix: '/console' },
    async listener({ fastify }) {
      const app = Fastify();
      app.register(fastify, { prefix: '/tools' });
      await app.ready();
      return (request, response) => app.routing(request, response);
    }
  },
  {
    name: 'Koa',
    base: '/console',
    options: { prefix: '/console' },
    listener: ({ koa }) => new Koa().use(koa).callback()
  }
];

type Send = (
  method: string,
  path: string,
  body?: object,
  headers?: Readonly<Record<string, string>>
) => Promise<Response>;

/** The steps of a person in the console, over any host. */
async function checkConsole(send: Send, base: string): Promise<void> {
  const shell = await send('GET', `${base}/clients/a%2Fb`, undefined, { accept: 'text/html' });
  assert.equal(shell.status, 200);
  assert.match(await shell.text(), /<base href="\.\.\/">/);
  const folder = await send('GET', base === '' ? '/' : base, undefined, { accept: 'text/html' });
  if (base !== '') assert.equal(new URL(`${folder.headers.get('location')}`, `http://h${base}`).pathname, `${base}/`);
  assert.equal((await send('GET', `${base}/session`)).status, 401);
  const login = await send('POST', `${base}/login`, { id: 'ann', password: PASSWORD });
  assert.equal(login.status, 200);
  const setCookie = `${login.headers.get('set-cookie')}`;
  assert.ok(setCookie.includes(`; Path=${base === '' ? '/' : base}; HttpOnly; SameSite=Strict`), setCookie);
  const [cookie] = setCookie.split(';');
  const withCookie: Send = (method, path, body) => send(method, `${base}${path}`, body, { cookie });
  assert.deepEqual(((await (await withCookie('GET', '/session')).json()) as { id: string }).id, 'ann');
  assert.equal((await withCookie('GET', '/api/clients')).status, 200);
  assert.equal((await withCookie('POST', '/api/banned', { who: 'x', as: 'clientid' })).status, 200);
  assert.deepEqual(await (await withCookie('GET', '/streams/rules')).json(), []);
  const document = (await (await withCookie('GET', '/api/openapi.json')).json()) as { servers: { url: string }[] };
  assert.equal(document.servers[0].url, `${base}/api`);
  const stream = await withCookie('GET', '/live');
  const reader = readerOf(stream.body as ReadableStream<Uint8Array>);
  const [{ data }] = await reader.next(1);
  const set = await withCookie('PUT', `/live/${data.id}`, { watches: { a: { kind: 'alarms' } } });
  assert.equal(set.status, 200, await set.text());
  assert.equal((await reader.next(2))[1].event, 'alarms');
  assert.equal((await withCookie('POST', '/logout', {})).status, 200);
  assert.equal((await reader.toEnd()).at(-1)?.event, 'closed');
  assert.equal((await withCookie('GET', '/api/clients')).status, 401);
}

async function startBroker() {
  const broker = createBroker({ passwordCost: 10 });
  await broker.start();
  await broker.users.create('ann', PASSWORD, 'administrator');
  return broker;
}

describe('The console', () => {
  for (const { name, options = {}, base = '', listener } of HOSTS)
    it(`works on ${name}`, async () => {
      await using broker = await startBroker();
      const server = createServer(await listener(dashboard(broker, options))).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const send: Send = (method, path, body, headers = {}) =>
        fetch(`${origin}${path}`, {
          method,
          redirect: 'manual',
          headers: {
            ...(body === undefined ? {} : { 'content-type': 'application/json', origin }),
            'embermq-console': 'person',
            ...headers
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        });
      try {
        await checkConsole(send, base);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    });

  it('works on Hono, as an example of the Fetch API', async () => {
    await using broker = await startBroker();
    const { fetch: answer } = dashboard(broker, { prefix: '/console' });
    const app = new Hono()
      .all('/console/*', (context) => answer(context.req.raw))
      .all('/console', (context) => answer(context.req.raw));
    await checkConsole(
      async (method, path, body, headers = {}) =>
        app.request(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }),
      '/console'
    );
  });

  it('works over HTTP/2, with a secure cookie', async () => {
    await using broker = await startBroker();
    using certificates = makeCertificates();
    const { cert, key } = certificates.server;
    const { node } = dashboard(broker);
    const server = createSecureServer({ cert, key }, node as never).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    const ask = async (headers: Record<string, string>, body = '') => {
      const stream = session.request(headers);
      if (body !== '') stream.end(body);
      const [answer] = await once(stream, 'response');
      let text = '';
      for await (const chunk of stream.setEncoding('utf8')) text += chunk;
      return { answer, text };
    };
    try {
      const body = JSON.stringify({ id: 'ann', password: PASSWORD });
      const { answer } = await ask({ ':method': 'POST', ':path': '/login', origin: `https://127.0.0.1:${port}` }, body);
      assert.equal(answer[':status'], 200);
      const setCookie = `${answer['set-cookie']}`;
      assert.match(setCookie, /; Secure$/);
      const found = await ask({ ':path': '/session', cookie: setCookie.split(';')[0] });
      assert.equal(JSON.parse(found.text).id, 'ann');
    } finally {
      session.close();
      server.close();
    }
  });
});
