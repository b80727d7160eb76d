import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EVENT_NAMES, EVENTS } from 'embermq';
import { OPERATIONS } from '../../adapters/management/operations/index.ts';
import { OPERATIONS as OF_STREAMS } from '../../adapters/streams-api/operations/all.ts';
import { PASSWORD, startConsole } from '../support/dashboard.ts';
import { readerOf } from '../support/event-reader.ts';

type Server = Awaited<ReturnType<typeof startConsole>>;

/** The payload of all messages, and the forms in which it could be shown. */
const SECRET = 'the secret 4711';
const FORMS = (['utf8', 'hex', 'base64'] as const).map((form) => Buffer.from(SECRET).toString(form));

/** Values of parameters of paths for which there is an object. */
const PARAMS: Readonly<Record<string, string>> = {
  clientid: 'sleeper',
  topic: 'kept',
  filter: 'kept',
  node: '',
  name: 'ann',
  username: 'ann'
};

/** The ids of a rule with outputs, and of one with errors. */
const RULE_IDS = ['rule:1', 'rule:3'];

/** Queries that ask for payloads, where they are not shown anyway. */
const QUERIES: Readonly<Record<string, string>> = {
  '/x/why': '?topic=nowhere&rule=rule%3A2',
  '/x/search': '?q=kept'
};

/** Put the payload wherever an operation could read it. */
async function fill({ broker }: Server): Promise<void> {
  await broker.publish('kept', SECRET, { retain: true, qos: 1 });
  const sleeper = await broker.connect({ clientId: 'sleeper', sessionExpiry: '1h' });
  await sleeper.subscribe('queued', { qos: 1 });
  await sleeper.disconnect();
  broker.monitor.traces.start({ topic: '#', durationMs: 60_000 });
  await broker.rules.create({
    id: 'rule:1',
    sql: 'SELECT payload, payload.a AS a FROM "#" WHERE qos = 1',
    actions: [{ name: 'republish', params: { target_topic: 'copied', target_qos: 1, payload_tmpl: 'a copy' } }]
  });
  await broker.rules.create({
    id: 'rule:2',
    sql: 'SELECT * FROM "nowhere" WHERE payload.a = 1 AND abs(payload.a) > 0',
    actions: [{ name: 'do_nothing' }]
  });
  await broker.rules.create({
    id: 'rule:3',
    sql: 'SELECT payload.a AS a FROM "nowhere"',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of the action
    actions: [{ name: 'republish', params: { target_topic: 'out/${a}/#', target_qos: 0, payload_tmpl: 'p' } }]
  });
  await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE="#", FORMAT="JSON")');
  await broker.streams.rules.create({ id: 'rule:1', sql: 'SELECT * FROM demo', actions: [{ nop: {} }] });
  await broker.streams.rules.create({ id: 'rule:3', sql: 'SELECT a, a + 1 AS b FROM demo', actions: [{ nop: {} }] });
  await broker.streams.rules.create({
    id: 'rule:4',
    sql: 'SELECT a FROM demo',
    actions: [{ mqtt: { topic: 'out/{{.a}}/#' } }]
  });
  for (const topic of ['queued', 'nowhere'])
    await broker.publish(topic, topic === 'queued' ? SECRET : JSON.stringify({ a: SECRET }), { qos: 1 });
  for (const id of ['rule:3', 'rule:4'])
    while (!JSON.stringify(await broker.streams.rules.status(id)).includes(SECRET)) await new Promise(setImmediate);
}

/** The operations that read, as paths below the mount. */
function readingPaths(node: string): string[] {
  const filled = (path: string) => {
    const ids = path.includes('/:id') ? RULE_IDS : ['1'];
    const values = ids.map((id): Readonly<Record<string, string>> => ({ ...PARAMS, node, id }));
    return values.map((value) =>
      path.replace(/:(\w+)/g, (_all, name: string) => encodeURIComponent(value[name] ?? '1'))
    );
  };
  const ofManagement = OPERATIONS.filter(
    (row) => row.method === 'GET' && row.isStream !== true && (row.in === undefined || row.in.includes('hosted'))
  );
  const ofStreams = OF_STREAMS.filter((row) => row.method === 'GET' && row.isStream !== true);
  return [
    ...ofManagement.flatMap(({ path }) => filled(path).map((each) => `/api${each}${QUERIES[path] ?? ''}`)),
    ...ofStreams.flatMap(({ path }) => filled(path).map((each) => `/streams${each}`))
  ];
}

/** The paths whose answer has the payload. */
async function pathsWithPayload(server: Server, id: string): Promise<string[]> {
  const browser = server.browser();
  await browser.login(id);
  const found: string[] = [];
  const traces = server.broker.monitor.traces.list().map((trace) => `/api/x/traces/${trace.id}/lines`);
  for (const path of [...readingPaths(server.broker.settings.node), ...traces]) {
    const { text, status } = await browser.send('GET', path);
    assert.ok(status < 500, `${path}: ${status} ${text}`);
    if (FORMS.some((form) => text.includes(form))) found.push(path);
  }
  return found;
}

/** Read an event stream of an interface until it has an event about the payload. */
async function streamed(server: Server, id: string, path: string): Promise<string> {
  const browser = server.browser();
  await browser.login(id);
  const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { cookie: `${browser.cookie}` } });
  assert.equal(answer.status, 200);
  const reader = readerOf(answer.body as ReadableStream<Uint8Array>);
  await server.broker.publish('seen', SECRET);
  const events = await reader.next(1);
  await reader.cancel();
  return JSON.stringify(events);
}

describe('Payloads in the console', () => {
  it('hides payloads from viewers in every operation with viewerPayloads: false', async () => {
    await using server = await startConsole({ viewerPayloads: false });
    await fill(server);
    assert.deepEqual(await pathsWithPayload(server, 'bob'), []);
    const shown = await pathsWithPayload(server, 'ann');
    const some = [
      '/api/x/retained/kept',
      '/api/x/sessions/sleeper/queue',
      '/api/rules',
      '/api/rules/rule%3A3',
      '/streams/rules/rule%3A1/samples',
      '/streams/rules/rule%3A3/status',
      '/streams/v2/rules/rule%3A3/status',
      '/streams/rules/status/all'
    ];
    for (const path of some) assert.ok(shown.includes(path), `${path} is not among ${shown}`);
    assert.ok(shown.some((path) => path.endsWith('/lines')));
  });

  it('shows these viewers the state of a rule live, without messages of its errors', async () => {
    await using server = await startConsole({ viewerPayloads: false });
    await fill(server);
    for (const [id, isShown] of [
      ['bob', false],
      ['ann', true]
    ] as const) {
      const browser = server.browser();
      await browser.login(id);
      const answer = await fetch(`http://127.0.0.1:${server.port}/live`, { headers: { cookie: `${browser.cookie}` } });
      const reader = readerOf(answer.body as ReadableStream<Uint8Array>);
      const [{ data }] = await reader.next(1);
      const watches = {
        rule: { kind: 'rule', of: 'events', id: 'rule:3' },
        statement: { kind: 'rule', of: 'streams', id: 'rule:3' },
        sink: { kind: 'rule', of: 'streams', id: 'rule:4' }
      };
      assert.equal((await browser.send('PUT', `/live/${data.id}`, { watches })).status, 200);
      for (const { data: shown } of (await reader.next(4)).slice(1)) {
        assert.equal(shown.state, 'connected');
        assert.equal(JSON.stringify(shown).includes(SECRET), isShown, `${shown.watch} of ${id}`);
      }
      await reader.cancel();
    }
  });

  it('shows payloads to viewers by default', async () => {
    await using server = await startConsole();
    await fill(server);
    assert.deepEqual(await pathsWithPayload(server, 'bob'), await pathsWithPayload(server, 'ann'));
  });

  it('leaves payloads out of the event streams of these viewers', async () => {
    await using server = await startConsole({ viewerPayloads: false });
    const paths = [
      '/api/x/events?names=message.publish&topic=seen&payload=text',
      '/api/x/tail?filter=seen&payload=text'
    ];
    for (const path of paths) {
      assert.equal((await streamed(server, 'bob', path)).includes(SECRET), false, path);
      assert.equal((await streamed(server, 'ann', path)).includes(SECRET), true, path);
    }
  });

  it('shows these viewers no value of a message in any event, neither in rule outputs nor in messages of errors', async () => {
    await using server = await startConsole({ viewerPayloads: false });
    const { broker } = server;
    await broker.rules.create({ id: 'i', sql: 'SELECT payload FROM "t"', actions: [{ name: 'inspect', params: {} }] });
    await broker.rules.create({ id: 'f', sql: 'SELECT abs(payload) AS a FROM "t"', actions: [] });
    await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE="u", FORMAT="JSON")');
    await broker.streams.rules.create({ id: 'log', sql: 'SELECT * FROM demo', actions: [{ log: {} }] });
    await broker.streams.rules.create({ id: 'cast', sql: 'SELECT a + 1 AS a FROM demo', actions: [{ nop: {} }] });
    const names = EVENT_NAMES.filter((name) => !EVENTS[name].showsValues);
    const paths = ['/api/x/events', `/api/x/events?names=${names}`, `/api/x/tail?names=${names}&payload=text`];
    const readers = async (id: string) => {
      const browser = server.browser();
      await browser.login(id);
      const open = async (path: string) => {
        const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, {
          headers: { cookie: `${browser.cookie}` }
        });
        assert.equal(answer.status, 200, path);
        return readerOf(answer.body as ReadableStream<Uint8Array>);
      };
      const opened = await Promise.all([...paths, '/live'].map(open));
      const [{ data }] = await (opened.at(-1) as (typeof opened)[0]).next(1);
      const watches = { tail: { kind: 'tail', names } };
      assert.equal((await browser.send('PUT', `/live/${data.id}`, { watches })).status, 200);
      return { browser, opened };
    };
    const [viewer, administrator] = [await readers('bob'), await readers('ann')];
    for (const name of EVENT_NAMES) {
      const { status } = await viewer.browser.send('HEAD', `/api/x/events?names=${name}`);
      assert.equal(status, EVENTS[name].showsValues ? 403 : 200, name);
    }
    await broker.publish('t', SECRET);
    await broker.publish('u', JSON.stringify({ a: SECRET }));
    for (const { opened, browser } of [viewer, administrator])
      for (const reader of opened) {
        let text = '';
        for (let count = 1; !/SQL_FAILED.*STREAM_FAILED/.test(text); count++)
          text = JSON.stringify(await reader.next(count));
        await reader.cancel();
        assert.equal(
          FORMS.some((form) => text.includes(form)),
          browser === administrator.browser,
          text
        );
      }
  });

  it('ends event streams of the interfaces that were opened with a password when the user is changed or deleted', async () => {
    await using server = await startConsole();
    const { users } = server.broker;
    const changes: [path: string, change: () => Promise<unknown>][] = [
      ['/api/x/events', () => users.setPassword('bob', 'another password')],
      ['/api/x/tail', () => users.delete('bob')]
    ];
    let password = PASSWORD;
    for (const [path, change] of changes) {
      const open = async (id: string, secret: string) => {
        const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
        const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { authorization } });
        assert.equal(answer.status, 200);
        return readerOf(answer.body as ReadableStream<Uint8Array>);
      };
      const [stream, other] = [await open('bob', password), await open('ann', PASSWORD)];
      await change();
      await stream.toEnd();
      await server.broker.publish('t', 'x');
      if (path === '/api/x/tail') assert.equal((await other.next(1)).length, 1, 'streams of others go on');
      await other.cancel();
      password = 'another password';
    }
  });

  it('ends event streams of the interfaces with the session', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    await browser.login('ann');
    const answer = await fetch(`http://127.0.0.1:${server.port}/api/x/events`, {
      headers: { cookie: `${browser.cookie}` }
    });
    const reader = readerOf(answer.body as ReadableStream<Uint8Array>);
    await browser.send('POST', '/logout', {});
    await reader.toEnd();
  });
});
