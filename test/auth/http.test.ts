import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { type HttpOptions, type HttpRequest, http } from '../../adapters/auth/http/index.ts';
import type { TransportInfo } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';

/** A request as the server has read it. */
interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: string;
  readonly form: URLSearchParams;
}

type Reply = (asked: Asked, response: ServerResponse) => unknown;

interface Listening extends AsyncDisposable {
  readonly url: string;
  readonly asked: Asked[];
  /** Connections that were accepted. */
  readonly connections: () => number;
  /** Called when a request has arrived. */
  onAsked: () => void;
}

/** A server on a port of the system's choice. Without a reply it answers with status 200. */
async function serve(
  reply: Reply = (_, response) => response.end(),
  tls?: { cert: string; key: string; ca: string; requestCert: boolean }
): Promise<Listening> {
  const asked: Asked[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('latin1');
    const { method = '', headers, rawHeaders } = request;
    const one = {
      ...{ method, headers, rawHeaders, body },
      url: new URL(request.url ?? '', 'http://server'),
      form: new URLSearchParams(body)
    };
    asked.push(one);
    await reply(one, response);
    listening.onAsked();
  };
  const server = tls === undefined ? createServer(handle) : createSecureServer(tls, handle);
  let connections = 0;
  server.on(tls === undefined ? 'connection' : 'secureConnection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const listening: Listening = {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    asked,
    connections: () => connections,
    onAsked: () => {},
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      })
  };
  return listening;
}

/** A server that handles each connection as a test says. */
async function serveRaw(handle: (socket: Socket) => void): Promise<AsyncDisposable & { url: string }> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      })
  };
}

interface Started extends AsyncDisposable {
  readonly kit: TestBroker;
  readonly errors: string[];
  /** Connects and returns 0, or the reason code of the refusal. */
  attempt(options?: {
    username?: string;
    password?: string | Buffer;
    clientId?: string;
    transportInfo?: TransportInfo;
  }): Promise<number>;
}

async function start(options: HttpOptions, more: Parameters<typeof createTestBroker>[0] = {}): Promise<Started> {
  const kit = await createTestBroker({ auth: [http(options)], ...more });
  const errors: string[] = [];
  kit.broker.on('error', ({ error, during }) => errors.push(`${error.message} / ${during}`));
  return {
    kit,
    errors,
    attempt: async (given = {}) => {
      try {
        await using _ = await kit.broker.connect({ clientId: 'c', username: 'u', ...given, protocolVersion: 5 });
        return 0;
      } catch (error) {
        return (error as { reasonCode: number }).reasonCode;
      }
    },
    [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]()
  };
}

describe('a login by HTTP', () => {
  it('decides about a login by the status of the answer, and ignores it with the body "ignore"', async () => {
    const answers: Record<string, [number, string?]> = {
      ok: [200],
      content: [200, '{"anything": true}'],
      empty: [204],
      other: [200, ' ignore\n'],
      bad: [400],
      wrong: [401, 'ignore'],
      forbidden: [403],
      missing: [404],
      many: [429]
    };
    await using server = await serve(({ form }, response) => {
      const [status, text] = answers[form.get('username') as string];
      response.writeHead(status).end(text);
    });
    await using broker = await start({ authenticate: { url: server.url } });
    const codes: Record<string, number> = {};
    for (const username of Object.keys(answers)) codes[username] = await broker.attempt({ username });
    assert.deepEqual(codes, {
      ...{ ok: 0, content: 0, empty: 0, other: 0x86 },
      ...{ bad: 0x86, wrong: 0x86, forbidden: 0x87, missing: 0x87, many: 0x89 }
    });
    broker.kit.broker.hook('authenticate', ({ username }) => username === 'other' || undefined);
    assert.equal(await broker.attempt({ username: 'other' }), 0);
    assert.deepEqual(broker.errors, []);
    assert.equal(server.connections(), 1, 'the connection stays open');
  });

  it('sends the documented parameters by default, and asks about superusers if that is configured', async () => {
    await using server = await serve(({ url, form }, response) =>
      response.writeHead(url.pathname === '/super' && form.get('username') !== 'root' ? 403 : 200).end()
    );
    await using broker = await start({
      authenticate: { url: `${server.url}/auth`, method: 'GET' },
      superuser: { url: `${server.url}/super` }
    });
    const { kit } = broker;
    await kit.connect({ clientId: 'r', username: 'root', password: 'p' });
    await kit.connect({ clientId: 'a', username: 'ann', password: 'p' });
    assert.equal(kit.broker.sessions.get('r')?.client.isSuperuser, true);
    assert.equal(kit.broker.sessions.get('a')?.client.isSuperuser, false);
    assert.deepEqual(
      server.asked.slice(0, 2).map(({ method, url, body }) => `${method} ${url.pathname}${url.search} ${body}`),
      ['GET /auth?clientid=r&username=root&password=p ', 'POST /super clientid=r&username=root']
    );
  });

  it('sends all facts of a client in query, form, JSON and headers', async () => {
    await using server = await serve();
    const facts = '%u|%c|%P|%a|%p|%C|%d|%m|%r|%%';
    const transportInfo: TransportInfo = {
      transport: 'tls',
      remoteAddress: '192.0.2.1',
      localPort: 8883,
      certificate: { commonName: 'device', subject: 'O=Plant,CN=device' },
      mountpoint: 'site/'
    };
    const expected = 'u|c|p|192.0.2.1|8883|device|O=Plant,CN=device|site/|mqtt|%';
    const requests: [Omit<HttpRequest, 'url'>, read: (asked: Asked) => unknown][] = [
      [{ query: { x: facts } }, ({ url }) => url.searchParams.get('x')],
      [{ form: { x: facts } }, ({ form }) => form.get('x')],
      [{ json: { list: [1, null, { x: facts }] } }, ({ body }) => JSON.parse(body).list[2].x],
      [{ headers: { 'X-Facts': facts } }, ({ headers }) => headers['x-facts']]
    ];
    for (const [request, read] of requests) {
      await using broker = await start({ authenticate: { url: `${server.url}/p?fixed=%C3%A9`, ...request } });
      assert.equal(await broker.attempt({ password: 'p', transportInfo }), 0);
      const asked = server.asked.at(-1) as Asked;
      assert.equal(read(asked), expected);
      assert.equal(asked.url.searchParams.get('fixed'), 'é');
    }
    await using broker = await start({ authenticate: { url: server.url, form: { x: facts } } });
    assert.equal(await broker.attempt({ transportInfo: { transport: 'unix' } }), 0);
    assert.equal(server.asked.at(-1)?.form.get('x'), 'u|c|||||||mqtt|%', 'what a client does not have is empty');
  });

  it('leaves enhanced authentication to other sources', async () => {
    await using server = await serve();
    await using broker = await start({ authenticate: { url: server.url } });
    const properties = { authenticationMethod: 'M' };
    await assert.rejects(broker.kit.connect({ properties, protocolVersion: 5 }), { reasonCode: 0x8c });
    assert.equal(server.asked.length, 0);
  });

  it('uses the TLS options, and verifies the server', async () => {
    const certificates: Certificates = makeCertificates();
    using _ = certificates;
    const { ca, server: identity, client } = certificates;
    await using server = await serve(undefined, {
      cert: identity.cert,
      key: identity.key,
      ca: ca.cert,
      requestCert: true
    });
    const authenticate = { url: server.url };
    const own = { cert: client.cert, key: client.key };
    await using good = await start({ authenticate, ca: ca.cert, ...own, servername: 'localhost' });
    assert.equal(await good.attempt(), 0);
    for (const options of [own, { ca: ca.cert, ...own, servername: 'other.example' }]) {
      await using bad = await start({ authenticate, ...options });
      assert.equal(await bad.attempt(), 0x88);
    }
  });
});

describe('values of clients in a request', () => {
  const hostile = [
    'a&admin=1#x?y=%41+ ;',
    'a=b;c',
    '"},"admin":true,{"',
    '\\',
    "' OR 1=1 --",
    '../../admin',
    '%2e%2e/%00%0d%0a',
    'ä€😀',
    '%u%c%P',
    '$&$1'
  ];

  it('encodes values so that they cannot add parameters, change the path or end a string', async () => {
    await using server = await serve();
    const templates: Omit<HttpRequest, 'url'>[] = [
      { method: 'GET', query: { name: '%u', password: '%P', end: '1' } },
      { form: { name: '%u', password: '%P', end: '1' } },
      { json: { name: '%u', password: '%P', end: '1' } }
    ];
    for (const template of templates) {
      await using broker = await start({ authenticate: { url: `${server.url}/path`, ...template } });
      for (const text of hostile) {
        await broker.attempt({ username: text, password: text });
        const { url, form, body } = server.asked.at(-1) as Asked;
        assert.equal(url.pathname, '/path');
        const read =
          'json' in template
            ? JSON.parse(Buffer.from(body, 'latin1').toString())
            : Object.fromEntries(template.form === undefined ? url.searchParams : form);
        assert.deepEqual(read, { name: text, password: text, end: '1' });
      }
    }
    assert.equal(server.asked.length, templates.length * hostile.length);
  });

  it('sends bytes unchanged, and refuses them where bytes have no encoding', async () => {
    await using server = await serve();
    const password = Buffer.from([0x61, 0xff, 0x00, 0xfe]);
    await using form = await start({ authenticate: { url: server.url, form: { p: '%P' } } });
    assert.equal(await form.attempt({ password }), 0);
    assert.equal(server.asked[0].body, 'p=a%FF%00%FE');
    await using json = await start({ authenticate: { url: server.url, json: { p: '%P' } } });
    assert.equal(await json.attempt({ password }), 0x87);
    assert.equal(server.asked.length, 1);
  });

  it('refuses header values that are not printable ASCII, or have surrounding spaces', async () => {
    await using server = await serve();
    const headers = { 'X-Name': 'user %u of the plant', 'X-Password': '%P' };
    await using broker = await start({ authenticate: { url: server.url, headers } });
    assert.equal(await broker.attempt({ username: 'a b', password: 'p"\\%' }), 0);
    const [{ headers: read }] = server.asked;
    assert.deepEqual([read['x-name'], read['x-password']], ['user a b of the plant', 'p"\\%']);
    const bad = ['a\r\nX-Admin: 1', 'a\nb', 'a\rb', 'a\u0000', 'ä', ' admin', 'admin ', '\tadmin', '\u010d\u010a'];
    for (const text of bad) {
      assert.equal(await broker.attempt({ password: text }), 0x87, JSON.stringify(text));
      assert.ok((await broker.attempt({ username: text })) >= 0x80, JSON.stringify(text));
    }
    assert.equal(await broker.attempt({ password: Buffer.from([0xc4, 0x0d]) }), 0x87);
    assert.equal(server.asked.length, 1);
    assert.deepEqual(broker.errors, []);
  });
});

describe('a request for a topic', () => {
  it('decides about publishing and subscribing', async () => {
    await using server = await serve(({ form }, response) => {
      const answers: Record<string, [number, string?]> = {
        '2 up': [200],
        '1 down/#': [200],
        '2 other': [200, 'ignore']
      };
      const [status, text] = answers[`${form.get('access')} ${form.get('topic')}`] ?? [403];
      response.writeHead(status).end(text);
    });
    await using broker = await start({ acl: { url: server.url } });
    await using client = await broker.kit.broker.connect({
      ...{ clientId: 'c', username: 'u', protocolVersion: 5 },
      transportInfo: { transport: 'tcp', remoteAddress: '192.0.2.1' }
    });
    await client.publish('up', 'x', { qos: 1 });
    assert.equal(server.asked[0].body, 'access=2&username=u&clientid=c&ipaddr=192.0.2.1&topic=up&mountpoint=');
    await assert.rejects(client.publish('down/a', 'x', { qos: 1 }), { reasonCode: 0x87 });
    await assert.rejects(client.publish('other', 'x', { qos: 1 }), { reasonCode: 0x87 });
    assert.deepEqual(await client.subscribe(['down/#', 'up', '$share/g/down/#']), [0, 0x87, 0]);
    broker.kit.broker.hook('authorizePublish', () => true);
    await client.publish('other', 'x', { qos: 1 });
  });

  it('asks again about the next message after the server has failed', async () => {
    let status = 500;
    await using server = await serve((_, response) => response.writeHead(status).end());
    await using broker = await start({ acl: { url: server.url } });
    await using client = await broker.kit.broker.connect({ clientId: 'c', protocolVersion: 5 });
    const publish = () => client.publish('a', 'x', { qos: 1 });
    await assert.rejects(publish(), { reasonCode: 0x87 });
    status = 200;
    await publish();
    assert.match(broker.errors[0], /answered with status 500, which decides nothing/);
  });
});

describe('a server that fails', () => {
  it('refuses clients, or leaves them to the next source', async () => {
    await using server = await serve((_, response) => response.writeHead(500).end());
    await using denying = await start({ authenticate: { url: server.url } });
    assert.equal(await denying.attempt(), 0x88);
    await using ignoring = await start(
      { authenticate: { url: server.url }, onError: 'ignore' },
      { allowAnonymous: true }
    );
    assert.equal(await ignoring.attempt(), 0);
    assert.equal(ignoring.errors.length, 1);
  });

  it('refuses the client for any incomplete response', async () => {
    const answers = [
      '',
      'nonsense\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n',
      `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`,
      `HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(100_000)}`
    ];
    for (const answer of answers) {
      await using server = await serveRaw((socket) => socket.once('data', () => socket.end(answer)));
      await using broker = await start({ authenticate: { url: `${server.url}/a?secret=1` } });
      assert.equal(await broker.attempt({ password: 'geheim' }), 0x88, answer.slice(0, 40));
      assert.equal(broker.errors.length, 1);
      assert.doesNotMatch(broker.errors[0], /secret|geheim/);
    }
    await using resetting = await serveRaw((socket) => socket.once('data', () => socket.resetAndDestroy()));
    await using broker = await start({ authenticate: { url: resetting.url } });
    assert.equal(await broker.attempt(), 0x88);
  });

  it('reports a server that cannot be reached', async () => {
    const server = await serve();
    await server[Symbol.asyncDispose]();
    await using broker = await start({ authenticate: { url: server.url } });
    assert.equal(await broker.attempt(), 0x88);
    assert.match(broker.errors[0], /ECONNREFUSED/);
  });

  it('aborts the request after the timeout if the server hangs, or sends its answer byte by byte', async () => {
    let arrived = () => {};
    const received = () => new Promise<void>((resolve) => (arrived = resolve));
    await using hanging = await serveRaw((socket) => socket.on('data', () => arrived()));
    let drip = (_: string): void => {};
    await using dripping = await serveRaw((socket) => {
      drip = (text) => void socket.write(text);
      socket.on('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n');
        arrived();
      });
    });
    for (const { url } of [hanging, dripping]) {
      await using broker = await start({ authenticate: { url }, timeoutMs: '3s' });
      const request = received();
      const code = broker.attempt();
      await request;
      for (let second = 0; second < 2; second++) {
        drip('x');
        await broker.kit.clock.advance('1s');
      }
      assert.deepEqual(broker.errors, []);
      await broker.kit.clock.advance('1s');
      assert.equal(await code, 0x88);
      assert.match(broker.errors[0], /did not answer within 3000 ms/);
    }
  });

  it('sends a request again if the server has closed the idle connection meanwhile', async () => {
    let sockets: Socket[] = [];
    await using server = await serveRaw((socket) => {
      sockets.push(socket);
      let requests = 0;
      socket.on('data', () => {
        if (requests++ === 0) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
        else socket.resetAndDestroy();
      });
    });
    await using broker = await start({ authenticate: { url: server.url, method: 'GET' } });
    for (let at = 0; at < 3; at++) assert.equal(await broker.attempt(), 0);
    assert.equal(sockets.length, 3);
    sockets = [];
    assert.deepEqual(broker.errors, []);
  });

  it('pauses after several failures in a row, then sends a single request', async () => {
    let status = 503;
    await using server = await serve((_, response) => response.writeHead(status).end());
    await using broker = await start({
      authenticate: { url: server.url },
      breaker: { failures: 3, pauseMs: '20s' }
    });
    const { clock } = broker.kit;
    for (let at = 0; at < 10; at++) assert.equal(await broker.attempt(), 0x88);
    assert.equal(server.asked.length, 3);
    assert.equal(broker.errors.length, 2, 'the first one, and that it is no longer asked');
    assert.match(broker.errors[1], /it will not be asked for 20000 ms/);
    await clock.advance('20s');
    assert.deepEqual(
      await Promise.all([broker.attempt({ clientId: 'a' }), broker.attempt({ clientId: 'b' })]),
      [0x88, 0x88]
    );
    assert.equal(server.asked.length, 4, 'one trial');
    await clock.advance('19s');
    status = 200;
    assert.equal(await broker.attempt(), 0x88);
    await clock.advance('1s');
    assert.equal(await broker.attempt(), 0);
    assert.equal(await broker.attempt(), 0);
    assert.equal(server.asked.length, 6);
  });

  it('does not count status 500 and disconnected clients as failures', async () => {
    let arrived = () => {};
    let isHanging = false;
    await using server = await serve(({ form }, response) => {
      arrived();
      if (!isHanging) response.writeHead(form.get('username') === 'odd' ? 500 : 200).end();
    });
    await using broker = await start({ authenticate: { url: server.url }, breaker: { failures: 1 } });
    for (let at = 0; at < 3; at++) assert.equal(await broker.attempt({ username: 'odd' }), 0x88);
    isHanging = true;
    for (let at = 0; at < 3; at++) {
      const request = new Promise<void>((resolve) => (arrived = resolve));
      const abort = new AbortController();
      const leaving = broker.kit.broker.connect({ clientId: 'c', signal: abort.signal });
      await request;
      abort.abort();
      await assert.rejects(leaving);
    }
    await broker.kit.clock.settle();
    isHanging = false;
    assert.equal(await broker.attempt(), 0);
  });
});

describe('many requests', () => {
  it('queues requests, and refuses those beyond the queue as failed', async () => {
    const waiting: ServerResponse[] = [];
    let arrived = () => {};
    await using server = await serve((_, response) => {
      waiting.push(response);
      arrived();
    });
    await using broker = await start({ authenticate: { url: server.url }, maxConcurrent: 2, maxQueued: 256 });
    const codes: Record<string, number> = {};
    const two = new Promise<void>((resolve) => (arrived = () => waiting.length === 2 && resolve()));
    const attempts = Array.from({ length: 260 }, async (_, at) => {
      codes[at] = await broker.attempt({ clientId: `c${at}` });
    });
    await two;
    await Promise.all(attempts.slice(258));
    assert.deepEqual(codes, { 258: 0x88, 259: 0x88 });
    assert.match(broker.errors[0], /256 requests are already queued \(option maxQueued\)/);
    assert.equal(waiting.length, 2);
    arrived = () => waiting.at(-1)?.end();
    for (const response of waiting.slice()) response.end();
    await Promise.all(attempts);
    assert.equal(server.asked.length, 258);
    assert.equal(server.connections(), 2);
    assert.deepEqual(
      Object.values(codes).filter((code) => code !== 0),
      [0x88, 0x88]
    );
  });

  it('answers requests with the same credentials from the cache until they expire', async () => {
    await using server = await serve(({ form }, response) => {
      const isRight = form.get('password') === 'right';
      response.writeHead(isRight ? 200 : 401).end(form.get('username') === 'other' ? 'ignore' : '');
    });
    await using broker = await start({
      authenticate: { url: server.url, form: { username: '%u', password: '%P' } },
      superuser: { url: server.url, form: { clientid: '%c', password: 'right' } },
      cacheMs: '10s'
    });
    const { kit } = broker;
    const asked = () => server.asked.splice(0).length;
    assert.equal(await broker.attempt({ password: 'right' }), 0);
    assert.equal(asked(), 2);
    assert.equal(await broker.attempt({ password: 'right' }), 0);
    assert.equal(asked(), 0);
    assert.equal(await broker.attempt({ password: 'wrong' }), 0x86);
    assert.equal(await broker.attempt({ password: 'wrong' }), 0x86);
    assert.equal(asked(), 1);
    assert.equal(await broker.attempt({ password: 'right', clientId: 'd' }), 0);
    assert.equal(asked(), 2, 'another client id is another superuser request');
    assert.equal(await broker.attempt({ username: 'uright', password: '' }), 0x86);
    assert.equal(asked(), 1);
    await kit.connect({ clientId: 'c', username: 'u', password: 'right' });
    assert.equal(kit.broker.sessions.get('c')?.client.isSuperuser, true);
    assert.equal(asked(), 0);
    await kit.clock.advance('10s');
    assert.equal(await broker.attempt({ password: 'right' }), 0);
    assert.equal(asked(), 2);
    await kit.broker.access.reload('http');
    assert.equal(await broker.attempt({ password: 'right' }), 0);
    assert.equal(asked(), 2);
  });

  it('does not cache answers that were pending when the source was reloaded', async () => {
    const waiting: ServerResponse[] = [];
    await using server = await serve((_, response) => {
      if (waiting.push(response) > 1) response.writeHead(401).end();
    });
    await using broker = await start({ authenticate: { url: server.url }, cacheMs: '1h' });
    const arrived = new Promise<void>((resolve) => (server.onAsked = resolve));
    const first = broker.attempt();
    await arrived;
    await broker.kit.broker.access.reload('http');
    waiting[0].end();
    assert.equal(await first, 0);
    assert.equal(await broker.attempt(), 0x86);
  });

  it('does not cache failed requests', async () => {
    let status = 500;
    await using server = await serve((_, response) => response.writeHead(status).end());
    await using broker = await start({ authenticate: { url: server.url }, cacheMs: '10s' });
    assert.equal(await broker.attempt(), 0x88);
    status = 200;
    assert.equal(await broker.attempt(), 0);
  });
});

describe('the options of http', () => {
  it('rejects invalid options with the reason', () => {
    const url = 'http://127.0.0.1:1';
    const wrong: [HttpOptions, RegExp][] = [
      [{}, /at least one of "authenticate" and "acl"/],
      [{ acl: { url }, superuser: { url } }, /a request, because "superuser"/],
      [{ authenticate: { url: `${url}/%u` } }, /a URL without placeholders; they are possible in "query"/],
      [{ authenticate: { url: `${url}?name=%u` } }, /a URL without placeholders/],
      [{ authenticate: { url: 'mqtt://a.example' } }, /begins with http/],
      [{ authenticate: { url: 'http://me:geheim@a.example' } }, /^(?!.*geheim).*without user name and password/],
      [{ authenticate: { url, form: { x: '%z' } } }, /only the placeholders %u %c .*, and %% for a percent sign/],
      [{ authenticate: { url, form: { x: '50%' } } }, /only the placeholders/],
      [{ authenticate: { url, form: { x: '%t' } } }, /only the placeholders/],
      [{ acl: { url, form: { x: '%P' } } }, /only the placeholders/],
      [{ authenticate: { url, form: { x: 7 } as never } }, /an object with strings/],
      [{ authenticate: { url, form: {}, json: {} } }, /either "form" or "json"/],
      [{ authenticate: { url, method: 'GET', json: {} } }, /"POST", because there is a body/],
      [{ authenticate: { url, method: 'PUT' as never } }, /"GET" or "POST"/],
      [{ authenticate: { url, headers: { 'content-length': '1' } } }, /names of headers other than/],
      [{ authenticate: { url, headers: { 'a b': '1' } } }, /names of headers/],
      [{ authenticate: { url, json: { x: Number.NaN } } }, /a JSON value/],
      [{ authenticate: { url, body: {} } as never }, /unknown option "body"/],
      [{ authenticate: { url }, onError: 'allow' as never }, /deny, ignore/],
      [{ authenticate: { url }, breaker: { failures: 0 } }, /breaker.failures/],
      [{ authenticate: { url }, key: 7 as never }, /PEM as a string/]
    ];
    for (const [options, message] of wrong) assert.throws(() => http(options), message, String(message));
  });
});
