import assert from 'node:assert/strict';
import { Agent, type IncomingMessage, type RequestListener, request } from 'node:http';
import { connect as connectTo } from 'node:net';
import { describe, it } from 'node:test';
import connect from 'connect';
import { type ManagementApi, type ManagementOptions, managementApi, managementApis } from 'embermq/management';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { AUTHORIZATION, serve, startBroker } from '../support/management.ts';
import { ManualClock } from '../support/manual-clock.ts';

type Call = Awaited<ReturnType<typeof serve>>['call'];

/** A way to mount the interface, beside routes of the host. */
interface Host {
  readonly name: string;
  readonly options?: ManagementOptions;
  /** The path in front of the interface. Default `/api/v4`. */
  readonly base?: string;
  /** A parser of the host reads JSON first, so the host answers invalid JSON. */
  readonly parsesJson?: true;
  listener(api: ManagementApi): RequestListener | Promise<RequestListener>;
}

const V4 = { prefix: '/api/v4' };

/** An Express app: headers and routes around what `mount` adds. */
function expressHost(mount: (app: express.Express, api: ManagementApi) => void) {
  return (api: ManagementApi): RequestListener => {
    const app = express().set('env', 'test'); // errors are not printed
    app.use((_request, response, next) => {
      response.setHeader('x-host', 'yes');
      next();
    });
    app.get('/', (_request, response) => void response.send('home'));
    mount(app, api);
    app.get('/api/orders', (_request, response) => void response.send('orders'));
    app.use((_request, response) => void response.status(404).send('the host'));
    return app;
  };
}

function connectHost(mount: (app: connect.Server, api: ManagementApi) => void) {
  return (api: ManagementApi): RequestListener => {
    const app = connect();
    app.use((_request, response, next) => {
      response.setHeader('x-host', 'yes');
      next();
    });
    mount(app, api);
    app.use((request, response) => {
      const texts: Record<string, string> = { '/': 'home', '/api/orders': 'orders' };
      const text = texts[request.url ?? ''];
      response.statusCode = text === undefined ? 404 : 200;
      response.end(text ?? 'the host');
    });
    return app;
  };
}

function fastifyHost(options?: { readonly prefix: string }) {
  return async (api: ManagementApi): Promise<RequestListener> => {
    const app = Fastify();
    app.addHook('onRequest', async (_request, reply) => void reply.header('x-host', 'yes'));
    app.get('/', async () => 'home');
    app.get('/api/orders', async () => 'orders');
    app.setNotFoundHandler((_request, reply) => reply.status(404).send('the host'));
    if (options === undefined) app.register(api.fastify);
    else app.register(api.fastify, options);
    await app.ready();
    return (request, response) => app.routing(request, response);
  };
}

function koaHost(...before: Koa.Middleware[]) {
  return (api: ManagementApi): RequestListener => {
    const app = new Koa();
    app.silent = true;
    app.use((context, next) => {
      context.set('x-host', 'yes');
      return next();
    });
    for (const middleware of before) app.use(middleware);
    app.use(api.koa);
    app.use((context) => {
      const texts: Record<string, string> = { '/': 'home', '/api/orders': 'orders' };
      const text = texts[context.path];
      context.status = text === undefined ? 404 : 200;
      context.body = text ?? 'the host';
    });
    return app.callback();
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Like the usual body parsers of Koa: invalid JSON becomes `{}` and is left unread. */
const koaParser: Koa.Middleware = async (context, next) => {
  const isJson = context.is('json') === 'json';
  Object.assign(context.request, { body: isJson ? JSON.parse((await textOf(context.req)) || '{}') : {} });
  return next();
};

/** Like parsers that put the value on the request of node:http. */
const koaParserOfNode: Koa.Middleware = async (context, next) => {
  if (context.is('json') === 'json')
    Object.assign(context.req, { body: JSON.parse((await textOf(context.req)) || '{}') });
  return next();
};

/** Like koa-mount: the path is below the base path until the middleware calls the next one. */
const koaMount =
  (base: string, mounted: Koa.Middleware): Koa.Middleware =>
  async (context, next) => {
    const { path } = context;
    if (!path.startsWith(`${base}/`)) return next();
    context.path = path.slice(base.length);
    await mounted(context, async () => {
      context.path = path;
      await next();
      context.path = path.slice(base.length);
    });
    context.path = path;
  };

const HOSTS: readonly Host[] = [
  {
    name: 'node:http',
    listener: (api) => (request, response) => {
      response.setHeader('x-host', 'yes');
      api.node(request, response, () => {
        const texts: Record<string, string> = { '/': 'home', '/api/orders': 'orders' };
        const text = texts[request.url ?? ''];
        response.statusCode = text === undefined ? 404 : 200;
        response.end(text ?? 'the host');
      });
    }
  },
  { name: 'Express', listener: expressHost((app, api) => app.use(api.node)) },
  { name: 'Express, at the path of the prefix', listener: expressHost((app, api) => app.use('/api/v4', api.node)) },
  {
    name: 'Express, at a base path',
    base: '/broker/api/v4',
    listener: expressHost((app, api) => app.use('/broker', api.node))
  },
  {
    name: 'Express, at a base path and the prefix',
    base: '/broker/api/v4',
    listener: expressHost((app, api) => app.use('/broker/api/v4', api.node))
  },
  {
    name: 'Express, below a router that has a part of the prefix',
    listener: expressHost((app, api) => app.use('/api', express.Router().use('/v4', api.node)))
  },
  {
    name: 'Express, at a path with a parameter and an empty prefix',
    base: '/tenants/7/mqtt',
    options: { prefix: '' },
    listener: expressHost((app, api) => app.use('/tenants/:tenant/mqtt', api.node))
  },
  {
    name: 'Express behind express.json()',
    parsesJson: true,
    listener: expressHost((app, api) => app.use(express.json(), api.node))
  },
  {
    name: 'Express behind express.json() and express.urlencoded()',
    parsesJson: true,
    listener: expressHost((app, api) => app.use(express.json(), express.urlencoded({ extended: true }), api.node))
  },
  {
    name: 'Express behind express.text()',
    listener: expressHost((app, api) => app.use(express.text({ type: () => true }), api.node))
  },
  {
    name: 'Express behind express.raw()',
    listener: expressHost((app, api) => app.use(express.raw({ type: () => true }), api.node))
  },
  { name: 'Connect', listener: connectHost((app, api) => app.use(api.node)) },
  { name: 'Connect, at the path of the prefix', listener: connectHost((app, api) => app.use('/api/v4', api.node)) },
  { name: 'Fastify', listener: fastifyHost() },
  { name: 'Fastify, with a prefix', base: '/broker/api/v4', listener: fastifyHost({ prefix: '/broker' }) },
  { name: 'Fastify, with the prefix of the interface', listener: fastifyHost({ prefix: '/api/v4' }) },
  {
    name: 'Fastify, with a prefix that has a parameter',
    base: '/tenants/7/api/v4',
    listener: fastifyHost({ prefix: '/tenants/:tenant' })
  },
  { name: 'Koa', listener: koaHost() },
  {
    name: 'Koa, at a base path',
    base: '/broker/api/v4',
    listener: (api) => koaHost(koaMount('/broker', api.koa))(api)
  },
  { name: 'Koa behind a body parser', parsesJson: true, listener: koaHost(koaParser) },
  { name: 'Koa behind a body parser that fills the node request', parsesJson: true, listener: koaHost(koaParserOfNode) }
];

const JSON_TYPE = { authorization: AUTHORIZATION, 'content-type': 'application/json' };

/** Expectations that hold on each host. */
async function checkHost(call: Call, base: string, { parsesJson = false }: { readonly parsesJson?: boolean } = {}) {
  assert.equal((await call('GET', '/')).text, 'home');
  assert.equal((await call('GET', '/api/orders')).text, 'orders');
  assert.equal((await call('GET', '/elsewhere')).text, 'the host');

  const index = await call('GET', base);
  assert.deepEqual([index.status, index.body.code], [200, 0]);
  assert.equal(index.headers.get('x-host'), 'yes', 'headers of the host are sent');
  assert.equal((await call('GET', `${base}/?_=1/2`)).status, 200);
  const found = await call('GET', `${base}/clients/a%2Fb?_=1`);
  assert.equal(found.body.data[0]?.clientid, 'a/b');
  const page = await call('GET', `${base}/clients?_limit=1`);
  assert.deepEqual(page.body.meta, { page: 1, limit: 1, count: 1, hasnext: false });

  const message = { topic: 't', payload: 'x' };
  const path = `${base}/mqtt/publish`;
  assert.deepEqual((await call('POST', path, message, JSON_TYPE)).body, { code: 0 });
  assert.equal((await call('POST', path, { topic: '#', payload: '' }, JSON_TYPE)).body.code, 115);
  for (const type of ['text/plain', 'application/octet-stream', 'application/vnd.x+json; charset=utf-8'])
    assert.deepEqual(
      (await call('POST', path, message, { authorization: AUTHORIZATION, 'content-type': type })).body,
      { code: 0 },
      type
    );
  assert.equal((await call('POST', path, undefined)).body.code, 107);
  const bad = await call('POST', path, '{', JSON_TYPE);
  assert.equal(bad.status >= 400, true);
  if (!parsesJson) assert.deepEqual([bad.status, bad.body.code], [400, 109]);

  const head = await call('HEAD', `${base}/clients`);
  assert.deepEqual([head.status, head.text, head.headers.get('content-type')], [200, '', 'application/json']);
  const document = await call('GET', `${base}/openapi.json`);
  assert.deepEqual(document.body.servers, [{ url: base }], 'the document names the path under which it was asked for');

  const unknown = await call('GET', `${base}/nothing`);
  assert.deepEqual([unknown.status, unknown.body.code], [404, 102]);
  assert.equal((await call('GET', `${base}/clients`, undefined, {})).status, 401);
  const options = await call('OPTIONS', `${base}/clients`, undefined, {});
  assert.deepEqual([options.status, options.text], [404, 'the host'], 'OPTIONS is left to the host');
}

describe('The management interface', () => {
  for (const { name, options = V4, base = '/api/v4', parsesJson, listener } of HOSTS)
    it(`works on ${name}`, async () => {
      await using broker = await startBroker();
      await using _client = await broker.connect({ clientId: 'a/b' });
      await using server = await serve(await listener(managementApi(broker, options)));
      await checkHost(server.call, base, parsesJson === true ? { parsesJson } : {});
    });

  for (const form of ['all', 'use', 'mount'] as const)
    it(`works on Hono with app.${form}()`, async () => {
      await using broker = await startBroker();
      await using _client = await broker.connect({ clientId: 'a/b' });
      const api = managementApi(broker, V4);
      const app = new Hono();
      app.use(async (context, next) => {
        await next();
        context.header('x-host', 'yes');
      });
      app.get('/', (context) => context.text('home'));
      app.get('/api/orders', (context) => context.text('orders'));
      const left = () => new Response('the host', { status: 404 });
      if (form === 'use') app.use((context, next) => api.fetch(context.req.raw, { next }));
      else if (form === 'mount')
        app.mount('/broker', (request: Request) => api.fetch(request, { next: left, base: '/broker' }));
      else app.all('/api/v4/*', (context) => api.fetch(context.req.raw, { next: left }));
      app.notFound(left);
      const call: Call = async (method, path, body, headers = { authorization: AUTHORIZATION }) => {
        const response = await app.request(path, {
          method,
          headers,
          ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) })
        });
        const text = await response.text();
        return {
          status: response.status,
          headers: response.headers,
          text,
          body: text.startsWith('{') ? JSON.parse(text) : undefined
        };
      };
      await checkHost(call, form === 'mount' ? '/broker/api/v4' : '/api/v4');
    });

  for (const { name, options = V4, base = '/api/v4', listener } of HOSTS.filter(
    (host) => !/express\.(text|raw)/.test(host.name)
  ))
    it(`answers 401 at once with Connection: close on ${name}, and leaves the rest of the body to it`, async () => {
      const clock = new ManualClock();
      await using broker = await startBroker({ clock });
      await using server = await serve(await listener(managementApi(broker, options)));
      const before = clock.pending;
      const socket = connectTo(server.port, '127.0.0.1').setEncoding('utf8');
      socket.on('error', () => {}); // the host may reset the connection
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      const closed = new Promise((resolve) => socket.on('close', resolve));
      socket.write(`POST ${base}/mqtt/publish HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\r\n{`);
      await closed;
      assert.match(text, /^HTTP\/1\.1 401 .*\r\nconnection: close\r\n/is);
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1]);
      assert.equal(text.slice(text.indexOf('\r\n\r\n') + 4).length, length);
      assert.equal(clock.pending, before);
    });

  it('answers the next request of a client that keeps connections, after a 401 to a body of any size', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, V4).node);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = async (body: string, headers: Record<string, string>) => {
      const sent = request({ agent, port: server.port, method: 'POST', path: '/api/v4/mqtt/publish', headers });
      // a client that still writes when the host closes the connection may lose the answer
      const answered = new Promise<IncomingMessage | undefined>((resolve) => {
        sent.on('response', resolve).on('error', () => resolve(undefined));
      });
      sent.end(body);
      const answer = await answered;
      if (answer === undefined) return undefined;
      for await (const _ of answer);
      return [answer.statusCode, answer.headers.connection];
    };
    const message = '{"topic":"t","payload":""}';
    for (const blanks of [0, 5_000_000]) {
      const first = await ask(message + ' '.repeat(blanks), {});
      if (blanks === 0 || first !== undefined) assert.deepEqual(first, [401, 'close']);
      assert.deepEqual(await ask(message, { authorization: AUTHORIZATION }), [200, 'keep-alive']);
    }
    agent.destroy();
  });

  it('takes the body from a host that has read the request of the Fetch API, and reports a missing body', async () => {
    await using broker = await startBroker();
    const { fetch } = managementApi(broker, V4);
    const publish = () =>
      new Request('http://host/api/v4/mqtt/publish', {
        method: 'POST',
        headers: { authorization: AUTHORIZATION },
        body: '{"topic":"t","payload":""}'
      });
    const read = publish();
    assert.deepEqual(await (await fetch(read, { body: await read.json() })).json(), { code: 0 });
    const lost = publish();
    await lost.text();
    const answer = await fetch(lost);
    assert.equal(answer.status, 500);
    assert.match(((await answer.json()) as { message: string }).message, /facts\.body/);
  });

  it('answers preflights over the Fetch API, whose answers with the status 204 have no body', async () => {
    await using broker = await startBroker();
    const origin = 'https://page.example';
    const { fetch } = managementApi(broker, { ...V4, origins: origin });
    const headers = { origin, 'access-control-request-method': 'GET' };
    const answer = await fetch(new Request('http://host/api/v4/clients', { method: 'OPTIONS', headers }));
    assert.deepEqual([answer.status, answer.body, answer.headers.get('content-type')], [204, null, null]);
    assert.equal(answer.headers.get('access-control-allow-origin'), origin);
  });

  it('refuses a body that a parser of the host has read as a form, and names the remedy', async () => {
    await using broker = await startBroker();
    const app = express();
    app.use(express.urlencoded({ extended: true }), managementApi(broker, V4).node);
    await using server = await serve(app);
    const answer = await server.call('POST', '/api/v4/mqtt/publish', '{"topic":"t","payload":""}', {
      authorization: AUTHORIZATION,
      'content-type': 'application/x-www-form-urlencoded'
    });
    assert.deepEqual([answer.status, answer.body.code], [400, 109]);
    assert.match(answer.body.message, /Content-Type: application\/json/);
  });

  it('does not wait for a body that a middleware has consumed', async () => {
    await using broker = await startBroker();
    const app = express();
    app.use(async (request, _response, next) => {
      await textOf(request);
      next();
    }, managementApi(broker, V4).node);
    await using server = await serve(app);
    const answer = await server.call('POST', '/api/v4/mqtt/publish', { topic: 't', payload: '' });
    assert.deepEqual([answer.status, answer.body.code], [500, 102]);
    assert.match(answer.body.message, /request\.body/);
  });

  it('reads a body with a byte order mark, and refuses one that is compressed or not UTF-8', async () => {
    await using broker = await startBroker();
    await using server = await serve(managementApi(broker, V4).node);
    const post = (body: Uint8Array, headers: Record<string, string> = {}) =>
      fetch(`http://127.0.0.1:${server.port}/api/v4/mqtt/publish`, {
        method: 'POST',
        headers: { authorization: AUTHORIZATION, ...headers },
        body: Buffer.from(body)
      });
    assert.equal((await post(Buffer.from('\ufeff{"topic":"t","payload":""}'))).status, 200);
    for (const refused of [
      await post(Buffer.from([0x22, 0xff, 0x22])),
      await post(Buffer.from('{"topic":"t","payload":""}'), { 'content-encoding': 'gzip' })
    ]) {
      assert.equal(refused.status, 400);
      assert.equal(((await refused.json()) as { code: number }).code, 109);
    }
  });

  it('leaves unknown paths to the host before asking for credentials, on each kind of server', async () => {
    await using broker = await startBroker();
    const api = managementApi(broker, { revision: 'hosted', unmatched: 'next' });
    for (const listener of [
      expressHost((app) => app.use(api.node))(api),
      connectHost((app) => app.use(api.node))(api),
      await fastifyHost()(api),
      koaHost()(api)
    ]) {
      await using server = await serve(listener);
      assert.equal((await server.call('GET', '/api/orders', undefined, {})).text, 'orders');
      assert.equal((await server.call('POST', '/api/other', undefined, {})).text, 'the host');
      assert.equal((await server.call('GET', '/api/clients', undefined, {})).status, 401);
      assert.equal((await server.call('GET', '/api/clients')).status, 200);
    }
  });

  it('serves several revisions on one server, each path by the one with the longest prefix', async () => {
    await using broker = await startBroker();
    await using _client = await broker.connect({ clientId: 'c' });
    // the shortest prefix first, to show that the order does not count
    const api = managementApis(broker, [
      { revision: 'hosted', unmatched: 'next' },
      { revision: 'earlier' },
      { revision: 'later', prefix: '/api/v4' }
    ]);
    for (const listener of [expressHost((app) => app.use(api.node))(api), await fastifyHost()(api), koaHost()(api)]) {
      await using server = await serve(listener);
      const indexOf = async (path: string) =>
        (await server.call('GET', path)).body.data.map(({ path }: { path: string }) => path) as string[];
      for (const path of ['/api/v4', '/api']) assert.ok((await indexOf(path)).includes('/clients'), path);
      assert.ok(!(await indexOf('/api/v3')).includes('/clients'));
      assert.equal((await server.call('GET', '/api/v4/clients')).body.data.length, 1);
      assert.equal((await server.call('GET', '/api/clients')).body.data.length, 1);
      assert.deepEqual((await server.call('GET', '/api/v3/clients')).body.code, 102);
      assert.deepEqual((await server.call('GET', '/api/v4/nothing')).body.code, 102);
      assert.equal((await server.call('GET', '/api/orders')).text, 'orders');
    }
  });

  it('rejects two revisions with the same prefix', async () => {
    await using broker = await startBroker();
    assert.throws(() => managementApis(broker, [{ revision: 'earlier' }, { revision: 'later' }]), {
      code: 'OPTION_INVALID',
      field: 'prefix'
    });
  });
});
