// The management console on the HTTP server of a runtime: `node test/runtimes/console.mjs [DIST]`, after `npm run build`; the same with `bun` or
// `deno run -A`. The files of the page come from the module that the build has embedded.
import assert from 'node:assert/strict';
import { serveOn } from './serve.mjs';
import { dist, runSteps, runtime } from './steps.mjs';

const BASE = '/ops/console';
const PASSWORD = 'a long password';

const world = { cookie: undefined };

/** Send a request with the cookie of the session, as the page does. */
function send(method, path, body, headers = {}) {
  const { origin, cookie } = world;
  return fetch(`${origin}${BASE}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      'embermq-console': 'person',
      ...(cookie === undefined ? {} : { cookie }),
      ...(body === undefined ? {} : { 'content-type': 'application/json', origin }),
      ...headers
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  });
}

/** Read a stream of events until it contains a word. */
async function readUntil(word) {
  const decoder = new TextDecoder();
  while (!world.text.includes(word)) {
    const { done, value } = await world.reader.read();
    if (done) throw new Error(`the stream has ended before ${word}: ${world.text}`);
    world.text += decoder.decode(value, { stream: true });
  }
}

const STEPS = {
  'mount the console beside routes of the app': async () => {
    const { createBroker } = await import(new URL('lib/index.js', dist).href);
    const { dashboard } = await import(new URL('adapters/dashboard/index.js', dist).href);
    world.broker = await createBroker({ passwordCost: 10 }).start();
    await world.broker.users.create('ann', PASSWORD, 'administrator');
    const { fetch: answer } = dashboard(world.broker, { prefix: BASE });
    world.server = await serveOn[runtime]((request) =>
      new URL(request.url).pathname.startsWith(BASE) ? answer(request) : new Response('the app')
    );
    world.origin = `http://127.0.0.1:${world.server.port}`;
    assert.equal(await (await fetch(`${world.origin}/`)).text(), 'the app');
  },
  'serve the page and its files, compressed, without a login': async () => {
    const page = await send('GET', '/clients?id=x', undefined, { accept: 'text/html' });
    assert.equal(page.status, 200);
    assert.match(page.headers.get('content-security-policy'), /script-src 'self'/);
    const [path] = /assets\/main-\w+\.js/.exec(await page.text());
    const texts = new Set();
    for (const encoding of ['br', 'gzip', 'identity']) {
      const file = await send('GET', `/${path}`, undefined, { 'accept-encoding': encoding });
      assert.equal(file.status, 200, encoding);
      assert.match(file.headers.get('content-type'), /^text\/javascript/);
      texts.add(await file.text());
    }
    assert.equal(texts.size, 1);
  },
  'refuse what needs a login': async () => {
    for (const path of ['/session', '/api/clients', '/streams/rules', '/live'])
      assert.equal((await send('GET', path)).status, 401, path);
    assert.equal((await send('POST', '/login', { id: 'ann', password: 'wrong' })).status, 401);
  },
  'log in': async () => {
    const answer = await send('POST', '/login', { id: 'ann', password: PASSWORD });
    assert.equal(answer.status, 200, await answer.text());
    const cookie = answer.headers.get('set-cookie');
    assert.match(cookie, /HttpOnly; SameSite=Strict/);
    [world.cookie] = cookie.split(';');
    const { id, scope } = await (await send('GET', '/session')).json();
    assert.deepEqual([id, scope], ['ann', 'administrator']);
  },
  'use both interfaces with the session': async () => {
    await world.broker.connect({ clientId: 'a/b' });
    const { data } = await (await send('GET', '/api/clients')).json();
    assert.deepEqual(
      data.map(({ clientid }) => clientid),
      ['a/b']
    );
    assert.equal((await send('DELETE', '/api/clients/a%2Fb')).status, 200);
    assert.equal(world.broker.sessions.has('a/b'), false);
    assert.deepEqual(await (await send('GET', '/streams/rules')).json(), []);
  },
  'show the overview and a tail live': async () => {
    const response = await send('GET', '/live');
    assert.equal(response.status, 200);
    Object.assign(world, { text: '', reader: response.body.getReader() });
    await readUntil('event: opened');
    const [, id] = /"id":"([^"]+)"/.exec(world.text);
    const watches = { now: { kind: 'overview' }, tail: { kind: 'tail', filter: 'a/#' } };
    const set = await send('PUT', `/live/${id}`, { watches });
    assert.equal(set.status, 200, await set.text());
    await readUntil('"loopDelayMs"');
    assert.doesNotMatch(world.text, /"failure"/);
    await world.broker.publish('a/b', 'to the tail');
    await readUntil(btoa('to the tail'));
  },
  'end the stream and the session at logout': async () => {
    assert.equal((await send('POST', '/logout', {})).status, 200);
    await readUntil('event: closed');
    assert.equal((await send('GET', '/session')).status, 401);
  },
  'stop the broker and the server': async () => {
    await world.broker.stop();
    assert.equal((await send('GET', '/', undefined, { accept: 'text/html' })).status, 200);
    await world.server.close();
  }
};

await runSteps(STEPS);
