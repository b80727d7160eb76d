import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { type Clock, systemClock } from 'embermq';
import {
  type Answer,
  type Call,
  Fault,
  MountedServices,
  type MountPorts,
  toFetch,
  toNode
} from '../../adapters/rest/index.ts';
import { HttpPlaces } from '../../adapters/upgrades/index.ts';
import { serve } from '../support/management.ts';

const LIMITS = { maxBytes: 100, timeoutMs: 1234 };

/** Timers that end when the test says so. */
function manualTimers() {
  const timers = new Map<object, { readonly run: () => void; readonly ms: number }>();
  const waiting: (() => void)[] = [];
  const clock: Clock = {
    ...systemClock,
    setTimeout(run, ms) {
      const timer = {};
      timers.set(timer, { run, ms });
      for (const go of waiting.splice(0)) go();
      return timer;
    },
    clearTimeout: (timer) => void timers.delete(timer as object)
  };
  return {
    clock,
    /** End the timer of a duration, once it has been set. */
    async end(ms: number): Promise<void> {
      for (;;) {
        const [timer, found] = [...timers].find(([, one]) => one.ms === ms) ?? [];
        if (timer !== undefined && found !== undefined) {
          timers.delete(timer);
          found.run();
          return;
        }
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    get size(): number {
      return timers.size;
    }
  };
}

function portsOf(clock: Clock = systemClock): MountPorts & { readonly errors: unknown[] } {
  const errors: unknown[] = [];
  return { clock, errors, failed: (error) => void errors.push(error) };
}

function mount(answer: (call: Call) => Promise<Answer | undefined>, prefixes = ['/p']): MountedServices {
  return new MountedServices([{ prefixes, answer, methods: () => [] }]);
}

const text = (body: string, status = 200): Answer => ({ status, headers: {}, body });

/** A service that reads the body. */
async function echo(call: Call): Promise<Answer> {
  try {
    return text(JSON.stringify(await call.body(LIMITS)));
  } catch (error) {
    assert.ok(error instanceof Fault);
    return { ...text(error.kind, 413), closes: true };
  }
}

/** Parts without an end, which tell when they are no longer wanted. */
function endless() {
  let tell: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    tell = resolve;
  });
  async function* parts() {
    try {
      for (;;) yield 'x'.repeat(65_536);
    } finally {
      tell();
    }
  }
  return { ended, parts: parts() };
}

async function dial(port: number): Promise<Socket & { readonly received: () => string }> {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    received += chunk;
  });
  socket.on('error', () => {}); // the server may reset the connection
  await once(socket, 'connect');
  return Object.assign(socket, { received: () => received });
}

describe('Lists', () => {
  it('ends when the client disconnects early', async () => {
    const ports = portsOf();
    const { parts, ended } = endless();
    await using server = await serve(
      toNode(
        mount(async () => ({ status: 200, headers: {}, body: parts })),
        ports
      )
    );
    const request = get(`http://127.0.0.1:${server.port}/p`);
    const [response] = await once(request, 'response');
    await once(response, 'data');
    response.destroy();
    await ended;
    assert.deepEqual(ports.errors, []);
  });

  it('ends when the client has read nothing for a long time', async () => {
    const { clock, end } = manualTimers();
    const ports = portsOf(clock);
    const { parts, ended } = endless();
    await using server = await serve(
      toNode(
        mount(async () => ({ status: 200, headers: {}, body: parts })),
        ports
      )
    );
    const socket = await dial(server.port);
    socket.pause();
    socket.write('GET /p HTTP/1.1\r\nhost: a\r\n\r\n');
    await end(90_000);
    await ended;
    socket.destroy();
    assert.deepEqual(ports.errors, []);
  });

  it('writes pieces with a separate time limit each, so that a client may read a long part slowly', async () => {
    let timers = 0;
    const clock: Clock = {
      ...systemClock,
      setTimeout(run, ms) {
        if (ms === 90_000) timers++;
        return systemClock.setTimeout(run, ms);
      }
    };
    const text = 'grüße '.repeat(500_000);
    async function* one() {
      yield text;
    }
    await using server = await serve(
      toNode(
        mount(async () => ({ status: 200, headers: {}, body: one() })),
        portsOf(clock)
      )
    );
    const response = await fetch(`http://127.0.0.1:${server.port}/p`);
    assert.equal(await response.text(), text);
    assert.ok(timers >= 10, `${timers} timers`);
  });

  it('ends when a client of the Fetch API disconnects early', async () => {
    const { parts, ended } = endless();
    const fetch = toFetch(
      mount(async () => ({ status: 200, headers: {}, body: parts })),
      portsOf()
    );
    const response = await fetch(new Request('http://host/p'));
    const reader = response?.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await ended;
  });

  it('reports a list that fails before its end, and truncates it', async () => {
    const ports = portsOf();
    async function* failing() {
      yield '[1,';
      throw new Error('broken');
    }
    const services = mount(async () => ({ status: 200, headers: {}, body: failing() }));
    await using server = await serve(toNode(services, ports));
    await assert.rejects(server.call('GET', '/p'));
    const response = await toFetch(services, ports)(new Request('http://host/p'));
    await assert.rejects(response?.text() ?? Promise.resolve());
    assert.deepEqual(
      ports.errors.map((error) => (error as Error).message),
      ['broken', 'broken']
    );
  });

  it('starts no list for a HEAD request', async () => {
    const begun: string[] = [];
    async function* parts() {
      begun.push('begun');
      yield '';
    }
    const services = mount(async () => ({ status: 200, headers: { 'x-list': 'yes' }, body: parts() }));
    await using server = await serve(toNode(services, portsOf()));
    assert.equal((await server.call('HEAD', '/p')).headers.get('x-list'), 'yes');
    const response = await toFetch(services, portsOf())(new Request('http://host/p', { method: 'HEAD' }));
    assert.equal(response?.body, null);
    assert.deepEqual(begun, []);
  });

  it('ends if the host has answered meanwhile', async () => {
    const ports = portsOf();
    let goOn: (answer: Answer) => void = () => {};
    const answer = new Promise<Answer>((resolve) => {
      goOn = resolve;
    });
    const node = toNode(
      mount(() => answer),
      ports
    );
    await using server = await serve((request, response) => {
      node(request, response);
      response.end('the host');
    });
    assert.equal((await server.call('GET', '/p')).text, 'the host');
    let isOver = false;
    const parts: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => ({
        next: () => assert.fail('the list is not begun'),
        return: async () => {
          isOver = true;
          return { done: true, value: undefined };
        }
      })
    };
    goOn({ status: 200, headers: {}, body: parts });
    await answer;
    await new Promise(setImmediate);
    assert.equal(isOver, true);
    assert.deepEqual(ports.errors, []);
  });
});

/** Serve a listener as the ports of the broker do. */
function serveAtOwnPort(listener: RequestListener) {
  return serve(
    () => {},
    (server) => new HttpPlaces(0, systemClock).watch(server, listener)
  );
}

describe('Bodies', () => {
  const head = (length: number) => `POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: ${length}\r\n\r\n`;

  it('answers a body that is too large at a port of the broker, and closes the connection when the client has sent it', async () => {
    const timers = manualTimers();
    await using server = await serveAtOwnPort(toNode(mount(echo), portsOf(timers.clock)));
    const socket = await dial(server.port);
    socket.write(`${head(200_000)}${'x'.repeat(1000)}`);
    while (!socket.received().includes('bodyTooLarge')) await once(socket, 'data');
    assert.match(socket.received(), /^HTTP\/1.1 413 .*\r\nconnection: close\r\n/is);
    assert.equal(socket.readableEnded, false, 'the client can still send');
    socket.write('x'.repeat(199_000));
    await once(socket, 'end');
    assert.equal(timers.size, 0);
  });

  it('closes the connection for a body that is too large at a port of the broker after a while if the client sends no more', async () => {
    const timers = manualTimers();
    await using server = await serveAtOwnPort(toNode(mount(echo), portsOf(timers.clock)));
    const socket = await dial(server.port);
    socket.write(head(200_000));
    await timers.end(2_000);
    await once(socket, 'end');
    assert.match(socket.received(), /bodyTooLarge$/);
  });

  it('leaves an unwanted body to the server of the app, and answers with the header Connection: close', async () => {
    const timers = manualTimers();
    await using server = await serve(toNode(mount(echo), portsOf(timers.clock)));
    const socket = await dial(server.port);
    socket.write(`${head(200_000)}${'x'.repeat(1000)}`);
    while (!socket.received().includes('bodyTooLarge')) await once(socket, 'data');
    assert.match(socket.received(), /^HTTP\/1.1 413 .*\r\nconnection: close\r\ncontent-length: 12\r\n/is);
    assert.equal(timers.size, 0);
    await once(socket, 'close');
  });

  it('leaves an unwanted body to a server of the Fetch API, and answers with the header Connection: close', async () => {
    const fetch = toFetch(
      mount(async () => ({ status: 401, headers: { 'x-a': 'b' }, body: '', closes: true })),
      portsOf()
    );
    const headersOf = async (init: RequestInit, facts = {}) => {
      const response = await fetch(new Request('http://h/p', { method: 'POST', ...init }), facts);
      return Object.fromEntries((response as Response).headers);
    };
    const host = { host: 'h' };
    const closing = await headersOf({ body: 'not read', headers: host });
    assert.deepEqual([closing.connection, closing['x-a']], ['close', 'b']);
    for (const [name, init, facts] of [
      ['without a body', { headers: host }, {}],
      ['with a body that the app has read', { body: 'read', headers: host }, { body: 'read' }],
      ['of HTTP/2', { body: 'not read' }, {}]
    ] as const)
      assert.equal((await headersOf(init, facts)).connection, undefined, name);
  });

  it('reads a body without a length up to the limit', async () => {
    await using server = await serve(toNode(mount(echo), portsOf()));
    const chunked = 'POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n';
    const socket = await dial(server.port);
    socket.write(`${chunked}64\r\n${'x'.repeat(100)}\r\n1\r\ny\r\n0\r\n\r\n`);
    while (!socket.received().includes('bodyTooLarge')) await once(socket, 'data');
    socket.destroy();
  });

  it('names the host app as the cause if it has read a body and left no value', async () => {
    const ports = portsOf();
    const answer = async (call: Call) => {
      await assert.rejects(call.body(LIMITS), {
        kind: 'failed',
        message: /^the host app has read the body: it must set/
      });
      return text('refused');
    };
    const handle = toNode(mount(answer), ports);
    await using server = await serve(async (request, response) => {
      await request.toArray();
      handle(request, response);
    });
    const url = `http://127.0.0.1:${server.port}/p`;
    const ask = async (init: RequestInit) => (await fetch(url, { method: 'POST', ...init })).text();
    assert.equal(await ask({ body: '{}' }), 'refused');
    const chunked = { body: new Blob(['{}']).stream(), duplex: 'half' } as RequestInit;
    assert.equal(await ask(chunked), 'refused');
    assert.deepEqual(ports.errors, []);
  });

  it('answers a body that is too slow', async () => {
    const timers = manualTimers();
    await using server = await serve(toNode(mount(echo), portsOf(timers.clock)));
    const socket = await dial(server.port);
    socket.write(`${head(50)}{`);
    await timers.end(LIMITS.timeoutMs);
    await once(socket, 'end');
    assert.match(socket.received(), /bodyTooSlow$/);
    assert.equal(timers.size, 0);
  });

  it('refuses bodies that are too large or too slow over the Fetch API', async () => {
    const timers = manualTimers();
    const fetch = toFetch(mount(echo), portsOf(timers.clock));
    const ask = (body: string | ReadableStream) =>
      fetch(new Request('http://host/p', { method: 'POST', body, duplex: 'half' } as RequestInit));
    assert.equal(await (await ask('x'.repeat(101)))?.text(), 'bodyTooLarge');
    const slow = ask(new ReadableStream());
    await timers.end(LIMITS.timeoutMs);
    assert.equal(await (await slow)?.text(), 'bodyTooSlow');
    assert.equal(timers.size, 0);
  });

  it('does not count a disconnecting client as a failure of the server', async () => {
    const ports = portsOf();
    let tell: (kind: string) => void = () => {};
    const kind = new Promise<string>((resolve) => {
      tell = resolve;
    });
    const services = mount(async (call) => {
      const answer = await echo(call);
      tell(answer.body as string);
      return answer;
    });
    await using server = await serve(toNode(services, ports));
    const socket = await dial(server.port);
    socket.end(`${head(50)}{`);
    assert.equal(await kind, 'bodyIncomplete');
    await new Promise(setImmediate);
    assert.deepEqual(ports.errors, []);
  });
});

describe('Paths', () => {
  const cases: [prefixes: string[], url: string, originalUrl: string | undefined, found: string | undefined][] = [
    [['/api'], '/api', undefined, ''],
    [['/api'], '/api?x=/y', undefined, '?x=/y'],
    [['/api'], '/api/a%2Fb?x', undefined, '/a%2Fb?x'],
    [['/api'], '/apis', undefined, undefined],
    [['/api'], '*', undefined, undefined],
    [['/api'], 'http://host:1/api/x?y', undefined, '/x?y'],
    [['/api', '/api/v4'], '/api/v4/x', undefined, '/x'],
    [['/api', '/api/v4'], '/api/v44', undefined, '/v44'],
    [[''], '/x', undefined, '/x'],
    // what a router has cut
    [['/api/v4'], '/x?q', '/api/v4/x?q', '/x?q'],
    [['/api/v4'], '/?q', '/api/v4?q', '/?q'],
    [['/api/v4'], '/', '/api/v4/', '/'],
    [['/api/v4'], '/v4/x', '/api/v4/x', '/x'],
    [['/api/v4'], '/x', '/base/api/v4/x', '/x'],
    [['/api/v4'], '/api/v4/x', '/base/api/v4/x', '/x'],
    [['/api/v4'], '/c', '/api/v4/clients/c', '/clients/c'],
    [['/api/v4'], '/x', '/api/v44/x', undefined],
    [['/api'], '/other', '/api/secret', undefined] // the host has rewritten the path
  ];
  for (const [prefixes, url, originalUrl, expected] of cases)
    it(`maps ${url} of ${originalUrl ?? url} with ${prefixes.join(' and ')} to ${expected ?? 'the host'}`, async () => {
      const services = mount(async ({ path, query }) => text(query === '' ? path : `${path}?${query}`), prefixes);
      const answer = await services.answer({ url, originalUrl }, (place) => place as Call);
      assert.equal(answer?.body, expected);
    });

  it('passes the part in front of the path', async () => {
    const at = async (prefix: string, url: string, originalUrl?: string) =>
      (
        await mount(async ({ mountedAt }) => text(mountedAt), [prefix]).answer(
          { url, originalUrl },
          (place) => place as Call
        )
      )?.body;
    assert.equal(await at('/api/v4', '/api/v4/x?q'), '/api/v4');
    assert.equal(await at('/api/v4', '/api/v4'), '/api/v4');
    assert.equal(await at('', '/x'), '');
    assert.equal(await at('/api/v4', '/api/v4/x', '/base/api/v4/x'), '/base/api/v4');
    assert.equal(await at('/api/v4', '/x', '/base/api/v4/x?q'), '/base/api/v4');
    assert.equal(await at('/api/v4', '/', '/api/v4/'), '/api/v4');
    assert.equal(await at('', '/x', '/tenants/7/x'), '/tenants/7');
  });

  it('asks the next service if the one with the longest prefix does not answer', async () => {
    const services = new MountedServices([
      { prefixes: ['/api'], methods: () => ['PUT', 'GET'], answer: async ({ path }) => text(`short ${path}`) },
      {
        prefixes: ['/api/v4'],
        methods: (path) => (path === '/own' ? ['GET'] : []),
        answer: async ({ path }) => (path === '/own' ? text('long') : undefined)
      }
    ]);
    const ask = async (url: string) => (await services.answer({ url }, (place) => place as Call))?.body;
    assert.deepEqual([await ask('/api/v4/own'), await ask('/api/v4/x')], ['long', 'short /v4/x']);
    assert.deepEqual(services.methods('/api/v4/own?x'), ['GET', 'PUT']);
    assert.deepEqual(services.methods('/other'), []);
  });
});
