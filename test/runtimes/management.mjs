// The management interface on the HTTP server of a runtime, in the form of the Fetch API: `Bun.serve`, `Deno.serve`, and on Node a server that
// makes a `Request` of each request. `node test/runtimes/management.mjs [DIST]`, after `npm run build`; the same with `bun` or `deno run -A`.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { once } from 'node:events';
import { connect } from 'node:net';
import { remoteAddressOn, serveOn } from './serve.mjs';
import { dist, runSteps, runtime } from './steps.mjs';

const AUTHORIZATION = `Basic ${Buffer.from('app:a secret').toString('base64')}`;
const MAX_BODY_BYTES = 2_000;
const LIMITS = { maxBodyBytes: MAX_BODY_BYTES, bodyTimeout: 300, maxEventStreams: 1 };
/** Bytes of a payload that is published and read back. */
const PAYLOAD = `${'é'.repeat(300)}\u0000"`;

const world = {};

/** Send a request with the credentials of the application, and read the answer. */
async function call(method, path, { body, headers = { authorization: AUTHORIZATION } } = {}) {
  const response = await fetch(`http://127.0.0.1:${world.server.port}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) })
  });
  const text = await response.text();
  const { code, data, meta, message } = text.startsWith('{') ? JSON.parse(text) : {};
  return { status: response.status, headers: response.headers, text, code, data, meta, message };
}

/** The answer of the server to bytes: up to a word, or to the end of the connection. */
async function answerTo(bytes, word) {
  const socket = connect(world.server.port, '127.0.0.1');
  let answer = '';
  try {
    socket.setEncoding('utf8');
    socket.on('error', () => {}); // the server may reset the connection
    await once(socket, 'connect');
    socket.write(bytes);
    while (!answer.includes(word)) {
      const [chunk] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [undefined])]);
      if (chunk === undefined) break;
      answer += chunk;
    }
  } finally {
    socket.destroy();
  }
  return answer;
}

/** The beginning of a request with a body. */
function postHead(...lines) {
  const all = [
    'POST /api/v4/mqtt/publish HTTP/1.1',
    'Host: localhost',
    `Authorization: ${AUTHORIZATION}`,
    'Content-Type: application/json',
    ...lines
  ];
  return `${all.join('\r\n')}\r\n\r\n`;
}

/** Read a stream of events until it contains a word, and cancel it. */
async function readEvents(response, word) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (!text.includes(word)) {
    const { done, value } = await reader.read();
    assert.equal(done, false, `the stream has ended: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return text;
}

const EVENTS = '/api/v4/x/events?names=message.publish&payload=text';

const STEPS = {
  'mount three revisions beside routes of the app': async () => {
    const lib = await import(new URL('lib/index.js', dist).href);
    const { managementApis } = await import(new URL('adapters/management/index.js', dist).href);
    world.broker = await lib.createBroker().start();
    await world.broker.applications.create({ id: 'app', secret: 'a secret' });
    const api = managementApis(world.broker, [
      { revision: 'earlier', ...LIMITS },
      { revision: 'later', prefix: '/api/v4', ...LIMITS },
      { revision: 'hosted', unmatched: 'next', ...LIMITS }
    ]);
    const ofApp = (request) => new Response(`the app: ${new URL(request.url).pathname}`, { status: 404 });
    world.api = api;
    world.server = await serveOn[runtime]((request, beside) => {
      world.remoteAddress = remoteAddressOn[runtime](request, beside);
      return api.fetch(request, { remoteAddress: world.remoteAddress, next: () => ofApp(request) });
    });
    for (const path of ['/api/v3', '/api/v4', '/api']) {
      const { status, code, data } = await call('GET', path);
      assert.deepEqual([status, code], [200, 0], path);
      assert.equal(
        data.some((row) => row.path === '/clients'),
        path !== '/api/v3',
        path
      );
    }
    assert.equal(world.remoteAddress, '127.0.0.1');
  },
  'ask for credentials': async () => {
    for (const headers of [{}, { authorization: `Basic ${btoa('app:wrong')}` }]) {
      const { status, headers: answered } = await call('GET', '/api/v4/clients', { headers });
      assert.equal(status, 401);
      assert.match(answered.get('www-authenticate'), /^Basic /);
    }
  },
  'leave other paths to the app': async () => {
    const none = { headers: {} };
    assert.equal((await call('GET', '/', none)).text, 'the app: /');
    assert.equal((await call('GET', '/api/orders', none)).text, 'the app: /api/orders'); // unmatched: 'next'
    assert.equal((await call('OPTIONS', '/api/v4/clients', none)).text, 'the app: /api/v4/clients');
    assert.deepEqual((await call('GET', '/api/v4/orders')).code, 102); // unmatched: 'error'
  },
  'list clients': async () => {
    for (const clientId of ['a/b', 'ä ?%', 'third']) await world.broker.connect({ clientId });
    const { data, meta } = await call('GET', '/api/v4/clients?_limit=2');
    assert.deepEqual(
      data.map(({ clientid }) => clientid),
      ['a/b', 'ä ?%']
    );
    assert.deepEqual(meta, { page: 1, limit: 2, count: 3, hasnext: true });
  },
  'decode parameters of the path once': async () => {
    for (const clientId of ['a/b', 'ä ?%']) {
      const { data } = await call('GET', `/api/v4/clients/${encodeURIComponent(clientId)}`);
      assert.deepEqual(
        data.map(({ clientid }) => clientid),
        [clientId]
      );
    }
    assert.equal((await call('GET', '/api/v4/clients/a%252Fb')).data.length, 0);
    assert.equal((await call('DELETE', '/api/v4/clients/third')).status, 200);
    assert.equal(world.broker.sessions.has('third'), false);
  },
  'publish a message': async () => {
    const client = await world.broker.connect({ clientId: 'reader' });
    await client.subscribe('t/#');
    const heard = new Promise((resolve) => client.on('message', resolve));
    const answer = await call('POST', '/api/v4/mqtt/publish', { body: { topic: 't/1', payload: PAYLOAD, qos: 1 } });
    assert.deepEqual([answer.status, answer.code], [200, 0]);
    assert.equal((await heard).payload.toString(), PAYLOAD);
  },
  'refuse a body that is wrong': async () => {
    const bad = await call('POST', '/api/v4/mqtt/publish', { body: '{' });
    assert.deepEqual([bad.status, bad.code], [400, 109]);
    const none = await call('POST', '/api/v4/mqtt/publish');
    assert.deepEqual([none.status, none.code], [400, 107]);
    const wrong = await call('POST', '/api/v4/mqtt/publish', { body: { topic: '#', payload: '' } });
    assert.deepEqual([wrong.status, wrong.code], [400, 115]);
  },
  'answer HEAD without a body': async () => {
    for (const path of ['/api/v4/clients', '/api/v4/x/events', '/api/v4/openapi.json']) {
      const { status, text } = await call('HEAD', path);
      assert.deepEqual([status, text], [200, ''], path);
    }
    assert.equal((await call('HEAD', '/api/v4/nothing')).status, 404);
  },
  'refuse a body that is too large': async () => {
    const large = { topic: 't', payload: 'x'.repeat(MAX_BODY_BYTES) };
    const answer = await call('POST', '/api/v4/mqtt/publish', { body: large });
    assert.deepEqual([answer.status, answer.code], [413, 108]);
    assert.match(answer.message, /maxBodyBytes/);
    const chunk = `${(MAX_BODY_BYTES + 1).toString(16)}\r\n${' '.repeat(MAX_BODY_BYTES + 1)}\r\n`;
    assert.match(
      await answerTo(postHead('Transfer-Encoding: chunked') + chunk, 'maxBodyBytes'),
      /^HTTP\/1\.1 413 .*maxBodyBytes/s
    );
  },
  'refuse a body that is too slow': async () => {
    assert.match(
      await answerTo(`${postHead('Content-Length: 100')}{"topic"`, 'bodyTimeout'),
      /^HTTP\/1\.1 408 .*bodyTimeout/s
    );
  },
  'stream events until the reader cancels': async () => {
    const url = `http://127.0.0.1:${world.server.port}${EVENTS}`;
    const headers = { authorization: AUTHORIZATION };
    const response = await fetch(url, { headers });
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type'), /^text\/event-stream/);
    assert.equal((await call('GET', EVENTS)).status, 429); // maxEventStreams
    const events = readEvents(response, 'second');
    await world.broker.publish('e', 'first');
    await world.broker.publish('e', 'second');
    assert.match(await events, /event: message\.publish\ndata: .*first.*event: message\.publish\ndata: .*second/s);
    // the stream has ended in the broker as well, so another one can begin
    for (;;) {
      const next = await fetch(url, { headers });
      if (next.status === 200) return readEvents(next, 'the events follow');
      await next.text();
    }
  },
  'be the handler of a server itself': async () => {
    const server = await serveOn[runtime](world.api.fetch);
    const url = `http://127.0.0.1:${server.port}`;
    const found = await fetch(`${url}/api/v4/clients`, { headers: { authorization: AUTHORIZATION } });
    assert.equal((await found.json()).code, 0);
    assert.equal((await fetch(url)).status, 404);
    await server.close();
  },
  'answer many rows': async () => {
    for (let i = 0; i < 2_000; i++) await world.broker.connect({ clientId: `many-${i}`, clean: true });
    const { data, meta } = await call('GET', '/api/clients?_limit=10000');
    assert.equal(meta.count, data.length);
    assert.equal(data.at(-1).clientid, 'many-1999');
  },
  'stop the broker and the server': async () => {
    const url = `http://127.0.0.1:${world.server.port}${EVENTS}`;
    const response = await fetch(url, { headers: { authorization: AUTHORIZATION } });
    await world.broker.stop();
    await response.text(); // the stream ends with the broker
    assert.equal((await call('POST', '/api/v4/mqtt/publish', { body: { topic: 't', payload: '' } })).status, 503);
    await world.server.close();
  }
};

await runSteps(STEPS);
