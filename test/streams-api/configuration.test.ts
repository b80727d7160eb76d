import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BrokerOptions, createBroker, memoryStore, type StreamsOptions } from 'embermq';
import type { SinkType, SourceType } from 'embermq/adapter';
import { mqttSource } from 'embermq/streams/mqtt';
import { protobufFormat } from 'embermq/streams/protobuf';
import { streamsApi } from 'embermq/streams-api';
import { Mosquitto, withMosquitto } from '../bridge/mosquitto.ts';
import { listener } from '../bridge/pair.ts';
import { mosquitto, withMosquitto as withClients } from '../cli/mosquitto.ts';
import { serve } from '../support/management.ts';
import { until } from '../support/until.ts';

const SECRET = 'never-to-be-seen';
const BOOK = 'syntax = "proto3"; message Book { string title = 1; int32 pages = 2; }';
/** The message `{ title: 'abc', pages: 5 }`. */
const PAYLOAD = Buffer.from('0a03616263' + '1005', 'hex');

/** A source that keeps the properties with which it was opened. */
function probe(
  name: string
): SourceType & { readonly opened: Readonly<Record<string, unknown>>[]; readonly log: string[] } {
  const opened: Readonly<Record<string, unknown>>[] = [];
  const log: string[] = [];
  return {
    name,
    about: 'A source of a test.',
    properties: {
      url: { type: 'string', about: 'The address.' },
      interval: { type: 'number', about: 'The interval.', default: 5 },
      password: { type: 'string', about: 'The password.', isSecret: true }
    },
    opened,
    log,
    open: ({ properties, connected }) => {
      opened.push({ ...properties });
      log.push(`open ${properties.url}`);
      if (properties.url === 'tcp://none') throw new Error('there is no server');
      connected();
      return { close: () => void log.push(`close ${properties.url}`) };
    }
  };
}

/** A sink of the same type that keeps the url and the password with which it was opened. */
function sinkInto(opened: unknown[], { properties }: SourceType): SinkType {
  return {
    name: 'probe',
    about: 'A sink of a test.',
    ...(properties === undefined ? {} : { properties }),
    open: ({ properties: { url, password }, connected }) => {
      opened.push({ url, password });
      connected();
      return { send: () => undefined, close: () => undefined };
    }
  };
}

async function start(options: BrokerOptions = {}, given: StreamsOptions = {}, type = 'probe') {
  const source = probe(type);
  const sent: unknown[] = [];
  const streams = {
    sources: [source, mqttSource()],
    sinks: [sinkInto(sent, source)],
    formats: [await protobufFormat({ schemas: { fixed: BOOK } })],
    ...given
  };
  const broker = await createBroker({ ...options, streams }).start();
  const server = await serve(streamsApi(broker, { credentials: 'none' }).node);
  return {
    source,
    sent,
    broker,
    ...server,
    ask: async (method: string, path: string, body?: unknown) => {
      const { status, text, body: json } = await server.call(method, path, body);
      assert.ok(status < 300, `${method} ${path}: ${status} ${text}`);
      return json ?? text;
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await broker.stop();
    }
  };
}

const KEYS = '/metadata/sources/probe/confKeys';
const STREAM = { sql: 'CREATE STREAM demo () WITH (TYPE="probe", DATASOURCE="d", FORMAT="json", CONF_KEY="a")' };
const RULE = { id: 'r1', sql: 'SELECT * FROM demo', actions: [{ nop: {} }] };

describe('The configuration of sources over REST', () => {
  it('gives a source the properties of its section over those of its connection', async () => {
    await using kit = await start();
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { url: 'tcp://c', interval: 7 } });
    await kit.ask('PUT', `${KEYS}/a`, { connectionSelector: 'c', interval: 9, password: SECRET });
    await kit.ask('POST', '/streams', STREAM);
    await kit.ask('POST', '/rules', RULE);
    assert.deepEqual(kit.source.opened, [{ url: 'tcp://c', interval: 9, password: SECRET }]);
  });

  it('gives an action its properties over those of its connection, and shows the action as it was sent', async () => {
    await using kit = await start();
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { url: 'tcp://c', password: SECRET } });
    await kit.ask('PUT', `${KEYS}/a`, {});
    await kit.ask('POST', '/streams', STREAM);
    const own = { url: 'TCP://C/a' };
    const actions = [{ probe: { connectionSelector: 'c', ...own } }, { probe: { connectionSelector: 'c' } }];
    await kit.ask('POST', '/rules', { ...RULE, actions });
    assert.deepEqual(kit.sent, [
      { ...own, password: SECRET },
      { url: 'tcp://c', password: SECRET }
    ]);
    assert.deepEqual((await kit.ask('GET', '/rules/r1')).actions, actions);
    const { status, text } = await kit.call('DELETE', '/connections/c');
    assert.deepEqual([status, text.trim()], [400, 'delete connection error: connection c is used by rule r1']);
  });

  it('shows secrets as ******, and keeps them if that is sent back', async () => {
    await using kit = await start();
    await kit.ask('PUT', `${KEYS}/a`, { url: 'tcp://a', password: SECRET });
    const shown = await kit.ask('GET', `${KEYS}/a`);
    assert.deepEqual(shown, { url: 'tcp://a', password: '******' });
    assert.deepEqual(await kit.ask('GET', KEYS), { a: shown });
    await kit.ask('PUT', `${KEYS}/a`, { ...shown, interval: 1 });
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { url: 'tcp://c', password: SECRET } });
    assert.deepEqual((await kit.ask('GET', '/connections/c')).props, { url: 'tcp://c', password: '******' });
    await kit.ask('PUT', '/connections/c', { props: { password: '******', url: 'tcp://c' } });
    await kit.ask('PUT', `${KEYS}/b`, { connectionSelector: 'c' });
    await kit.ask('POST', '/streams', STREAM);
    await kit.ask('POST', '/rules', RULE);
    await kit.ask('POST', '/streams', { sql: STREAM.sql.replace('demo', 'other').replace('"a"', '"b"') });
    await kit.ask('POST', '/rules', { ...RULE, id: 'r2', sql: 'SELECT * FROM other' });
    assert.deepEqual(kit.source.opened, [
      { url: 'tcp://a', interval: 1, password: SECRET },
      { url: 'tcp://c', interval: 5, password: SECRET }
    ]);
    const schema = { name: 'book', content: `// see http://******@host/\n${BOOK}` };
    await kit.ask('POST', '/schemas/protobuf', schema);
    assert.deepEqual(await kit.ask('GET', '/schemas/protobuf/book'), { type: 'protobuf', ...schema });
    const refused = await kit.call('PUT', `${KEYS}/new`, { password: '******' });
    assert.equal(refused.status, 400);
    assert.match(refused.text, /section new: property password: \*{6} stands for the current value, but there is none/);
  });

  it('gives a secret that is shown as ****** to no other server', async () => {
    await using kit = await start();
    const url = 'tcp://me:a-password@plant:1883/a';
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { url, password: SECRET } });
    await kit.ask('PUT', `${KEYS}/a`, { connectionSelector: 'c', password: SECRET });
    await kit.ask('PUT', '/connections/c', { props: { url: 'tcp://******@PLANT:1883/b', password: '******' } });
    const reason = 'cannot be kept for another server, or without TLS: send the secret itself, or leave it out';
    for (const [path, body, message] of [
      [
        '/connections/c',
        { props: { url: 'tcp://evil:1883', password: '******' } },
        `update connection error: connection c: property password: ****** ${reason}`
      ],
      [
        '/connections/c',
        { props: { url: 'tcp://******@plant.evil:1883/b' } },
        `update connection error: connection c: property url: ****** ${reason}`
      ],
      [
        '/connections/c',
        { props: { password: '******' } },
        `update connection error: connection c: property password: ****** ${reason}`
      ],
      [
        `${KEYS}/a`,
        { url: 'tcp://evil:1883', password: '******' },
        `save source configuration error: section a: property password: ****** ${reason}`
      ]
    ] as const) {
      const { status, text } = await kit.call('PUT', path, body);
      assert.deepEqual([status, text], [400, `${message}\n`]);
    }
    await kit.ask('PUT', `${KEYS}/a`, { connectionSelector: 'c' });
    await kit.ask('PUT', '/connections/c', { props: { url: 'tcp://other:1883', password: 'another' } });
  });

  it('refuses a property in two spellings wherever properties are given', async () => {
    await using kit = await start();
    const connection = { url: 'tcp://good', password: SECRET };
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: connection });
    await kit.ask('PUT', `${KEYS}/a`, connection);
    await kit.ask('POST', '/streams', STREAM);
    const rule = (properties: object) => ({ ...RULE, actions: [{ probe: properties }] });
    await kit.ask('POST', '/rules', rule(connection));
    kit.sent.length = 0;
    const twice = { Url: 'tcp://good', URL: 'tcp://evil', password: '******' };
    const selectors = { connectionSelector: 'c', CONNECTIONSELECTOR: 'other' };
    for (const [method, path, body, names] of [
      ['PUT', '/connections/c', { props: twice }, '"Url" and "URL"'],
      ['POST', '/connections', { id: 'd', typ: 'probe', props: { ...twice, password: 'p' } }, '"Url" and "URL"'],
      ['PUT', `${KEYS}/a`, twice, '"Url" and "URL"'],
      ['PUT', `${KEYS}/a`, { ...selectors, password: 'p' }, '"connectionSelector" and "CONNECTIONSELECTOR"'],
      ['PUT', '/rules/r1', rule(twice), '"Url" and "URL"'],
      ['PUT', '/rules/r1', rule({ ...twice, Url: null, password: 'p' }), '"Url" and "URL"'],
      ['PUT', '/rules/r1', rule(selectors), '"connectionSelector" and "CONNECTIONSELECTOR"'],
      ['POST', '/rules', { ...rule({ ...twice, password: 'p' }), id: 'r2' }, '"Url" and "URL"']
    ] as const) {
      const { status, text } = await kit.call(method, path, body);
      assert.ok(
        status === 400 && text.includes(`${names} are the same property; remove one of them`),
        `${path}: ${text}`
      );
    }
    assert.deepEqual(kit.sent, []);
  });

  it('sends the secrets of a connection, and those of its users, only to its server', async () => {
    await using kit = await start();
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { url: 'tcp://good', password: SECRET } });
    await kit.ask('POST', '/streams', STREAM);
    const refused = async (method: string, path: string, body: object, message: RegExp) => {
      const { status, text } = await kit.call(method, path, body);
      assert.equal(status, 400);
      assert.match(text, message);
    };
    await kit.ask('PUT', `${KEYS}/a`, {});
    const actions = [{ probe: { connectionSelector: 'c', url: 'tcp://evil' } }];
    await refused('POST', '/rules', { ...RULE, actions }, /the connection c names the server/);
    const [url, secret] = [{ url: 'tcp://evil' }, { connectionSelector: 'c', password: 'of-the-user' }];
    await kit.ask('PUT', `${KEYS}/b`, secret);
    await refused(
      'PUT',
      '/connections/c',
      { props: url },
      /would get the secrets of section b: remove them there first/
    );
    await kit.ask('PUT', `${KEYS}/b`, { connectionSelector: 'c' });
    await kit.ask('POST', '/rules', { ...RULE, actions: [{ probe: secret }] });
    await refused('PUT', '/connections/c', { props: url }, /would get the secrets of rule r1: remove them there first/);
    await kit.ask('DELETE', '/rules/r1', undefined);
    await kit.ask('PUT', '/connections/c', { props: url });
  });

  it('keeps sections, connections and schemas over a restart', async () => {
    const store = memoryStore();
    {
      await using kit = await start({ store });
      await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { password: SECRET } });
      await kit.ask('PUT', `${KEYS}/a`, { connectionSelector: 'c', url: 'tcp://a' });
      await kit.ask('POST', '/schemas/protobuf', { name: 'book', content: BOOK });
      await kit.ask('POST', '/streams', STREAM);
      await kit.ask('POST', '/rules', RULE);
      assert.equal((await kit.ask('GET', '/connections/c')).status, 'connected');
    }
    await using kit = await start({ store });
    await until(() => kit.source.opened.length > 0);
    assert.deepEqual(kit.source.opened, [{ url: 'tcp://a', interval: 5, password: SECRET }]);
    assert.deepEqual(await kit.ask('GET', '/schemas/protobuf'), ['book']);
    await kit.ask('POST', '/streams', {
      sql: 'CREATE STREAM books () WITH (DATASOURCE="b", FORMAT="protobuf", SCHEMAID="book.Book")'
    });
    await kit.ask('POST', '/rules', { ...RULE, id: 'r2', sql: 'SELECT * FROM books' });
  });

  it('refuses to delete what is in use, naming the streams and rules', async () => {
    await using kit = await start();
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe' });
    await kit.ask('PUT', `${KEYS}/a`, { connectionSelector: 'c' });
    await kit.ask('POST', '/streams', STREAM);
    await kit.ask('POST', '/rules', RULE);
    const cases = [
      [`${KEYS}/a`, 'section a is used by stream demo, rule r1\n'],
      ['/connections/c', 'connection c is used by section a, stream demo, rule r1\n']
    ] as const;
    for (const [path, says] of cases) {
      const { status, text } = await kit.call('DELETE', path);
      assert.equal(status, 400);
      assert.ok(text.endsWith(says), text);
    }
    await kit.ask('DELETE', '/rules/r1');
    await kit.ask('DELETE', '/streams/demo');
    assert.equal(await kit.ask('DELETE', `${KEYS}/a`), 'Configuration a of source probe is dropped.');
    assert.equal(await kit.ask('DELETE', '/connections/c'), 'Connection c is dropped.');
    assert.deepEqual(await kit.ask('GET', '/connections'), []);
  });

  it('refuses to delete a connection that a section names, even if no stream uses the section', async () => {
    await using kit = await start();
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe' });
    await kit.ask('PUT', `${KEYS}/a`, { connectionselector: 'c' });
    const { status, text } = await kit.call('DELETE', '/connections/c');
    assert.deepEqual([status, text.trim()], [400, 'delete connection error: connection c is used by section a']);
  });

  it('matches names of properties without regard to case', async () => {
    await using kit = await start();
    await kit.ask('POST', '/connections', {
      id: 'c',
      typ: 'probe',
      props: { url: 'tcp://a', Interval: 3, Password: SECRET }
    });
    await kit.ask('PUT', `${KEYS}/a`, { connectionselector: 'c', INTERVAL: 5 });
    await kit.ask('POST', '/streams', STREAM);
    await kit.ask('POST', '/rules', RULE);
    assert.deepEqual(kit.source.opened, [{ url: 'tcp://a', interval: 5, password: SECRET }]);
  });

  it('finds sections without regard to the case of the type, and gives those of the stream precedence in any case', async () => {
    const sourceConfig = {
      PROBE: { default: { url: 'tcp://default', Interval: 1 } },
      probe: { b: { URL: 'tcp://b' } }
    };
    await using kit = await start({}, { sourceConfig }, 'Probe');
    await kit.ask('PUT', '/metadata/sources/PROBE/confKeys/a', { Url: 'tcp://a', PASSWORD: SECRET });
    assert.deepEqual(await kit.ask('GET', KEYS), { a: { Url: 'tcp://a', PASSWORD: '******' } });
    await kit.ask('POST', '/streams', STREAM);
    await kit.ask('POST', '/rules', RULE);
    await kit.ask('POST', '/streams', { sql: STREAM.sql.replace('demo', 'other').replace('"a"', '"b"') });
    await kit.ask('POST', '/rules', { ...RULE, id: 'r2', sql: 'SELECT * FROM other' });
    assert.deepEqual(kit.source.opened, [
      { url: 'tcp://a', interval: 1, password: SECRET },
      { url: 'tcp://b', interval: 1 }
    ]);
  });

  it('refuses to delete the section "default", which each stream of the type uses', async () => {
    await using kit = await start();
    await kit.ask('PUT', `${KEYS}/default`, { url: 'tcp://a' });
    await kit.ask('PUT', `${KEYS}/a`, {});
    await kit.ask('POST', '/streams', STREAM);
    const { status, text } = await kit.call('DELETE', `${KEYS}/default`);
    assert.equal(status, 400);
    assert.match(text, /section default is used by stream demo\n/);
  });

  it('opens the source of a stream again for all of its rules when one of them restarts after a change', async () => {
    await using kit = await start();
    const { log } = kit.source;
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { url: 'tcp://c' } });
    await kit.ask('PUT', `${KEYS}/a`, { connectionSelector: 'c' });
    await kit.ask('POST', '/streams', { sql: STREAM.sql.replace('CONF_KEY', 'SHARED="true", CONF_KEY') });
    for (const id of ['r1', 'r2']) await kit.ask('POST', '/rules', { ...RULE, id });
    const states = async () => (await kit.ask('GET', '/rules')).map(({ status }: { status: string }) => status);
    assert.deepEqual(log.splice(0), ['open tcp://c']);
    await kit.ask('POST', '/rules/r1/restart');
    assert.deepEqual(log, [], 'nothing has changed');
    await kit.ask('PUT', '/connections/c', { props: { url: 'tcp://d' } });
    assert.deepEqual(log, [], 'rules use a change from their next start');
    await kit.ask('POST', '/rules/r1/restart');
    assert.deepEqual(log.splice(0), ['close tcp://c', 'open tcp://d']);
    await kit.ask('PUT', `${KEYS}/a`, { url: 'tcp://e' });
    await kit.ask('PUT', '/rules/r2', { ...RULE, id: 'r2', sql: 'SELECT a FROM demo' });
    assert.deepEqual(log.splice(0), ['close tcp://d', 'open tcp://e']);
    await kit.ask('PUT', `${KEYS}/a`, { url: 'tcp://f' });
    await kit.ask('POST', '/rules', { ...RULE, id: 'r3' });
    assert.deepEqual(log.splice(0), ['close tcp://e', 'open tcp://f']);
    assert.deepEqual(await states(), ['Running', 'Running', 'Running']);
    await kit.ask('PUT', `${KEYS}/a`, { url: 'tcp://none' });
    await kit.call('POST', '/rules/r1/restart');
    assert.equal(log[0], 'close tcp://f');
    const failed = 'Stopped: there is no server.';
    assert.deepEqual(await states(), [failed, failed, failed]);
  });

  it('reads the messages of a stream by a changed schema when one of its rules restarts', async () => {
    await using kit = await start();
    await kit.ask('POST', '/schemas/protobuf', { name: 'book', content: BOOK });
    await kit.ask('POST', '/streams', {
      sql: 'CREATE STREAM books () WITH (DATASOURCE="books", FORMAT="protobuf", SCHEMAID="book.Book")'
    });
    const sql = 'SELECT * FROM books';
    for (const id of ['r1', 'r2']) await kit.ask('POST', '/rules', { id, sql, actions: [{ mqtt: { topic: id } }] });
    await kit.ask('PUT', '/schemas/protobuf/book', { content: BOOK.replace('pages', 'leaves') });
    await kit.ask('POST', '/rules/r2/restart');
    for (const id of ['r1', 'r2']) {
      const out = await listener(kit.broker, id);
      await kit.broker.publish('books', PAYLOAD);
      assert.deepEqual(JSON.parse(String((await out.next()).payload)), [{ title: 'abc', leaves: 5 }]);
    }
  });

  it('shows the state of the sources and sinks that use a connection, whatever their names are', async () => {
    await using kit = await start();
    for (const id of ['plant-1.b', 'of sink', 'unused']) await kit.ask('POST', '/connections', { id, typ: 'probe' });
    await kit.ask('PUT', `${KEYS}/a.b-c`, { connectionSelector: 'plant-1.b' });
    await kit.ask('POST', '/streams', {
      sql: 'CREATE STREAM `hall-2.temp` () WITH (TYPE="probe", DATASOURCE="d", FORMAT="json", CONF_KEY="a.b-c")'
    });
    const states = async () => {
      const all: { readonly id: string; readonly status: string }[] = await kit.ask('GET', '/connections');
      return Object.fromEntries(all.map(({ id, status }) => [id, status]));
    };
    assert.deepEqual(await states(), {
      'of sink': 'disconnected',
      'plant-1.b': 'disconnected',
      unused: 'disconnected'
    });
    await kit.ask('POST', '/rules', {
      id: 'r-1.b',
      sql: 'SELECT a.x FROM `hall-2.temp` AS a INNER JOIN `hall-2.temp` AS b ON a.x = b.x GROUP BY TUMBLINGWINDOW(ss, 1)',
      actions: [{ Probe: { connectionSelector: 'of sink' } }]
    });
    assert.deepEqual(await states(), { 'of sink': 'connected', 'plant-1.b': 'connected', unused: 'disconnected' });
    assert.equal((await kit.ask('GET', '/connections/plant-1.b')).status, 'connected');
  });

  it('reads the status of a rule once for a list of connections', async (t) => {
    await using kit = await start();
    for (let n = 0; n < 20; n++) await kit.ask('POST', '/connections', { id: `c${n}`, typ: 'probe' });
    await kit.ask('PUT', `${KEYS}/a`, {});
    await kit.ask('POST', '/streams', STREAM);
    const actions = Array.from({ length: 20 }, (_, n) => ({ probe: { connectionSelector: `c${n}` } }));
    await kit.ask('POST', '/rules', { ...RULE, actions });
    const status = t.mock.method(kit.broker.streams.rules, 'status');
    const all: { readonly status: string }[] = await kit.ask('GET', '/connections');
    assert.equal(all.filter((one) => one.status === 'connected').length, 20);
    assert.equal(status.mock.callCount(), 1);
  });

  it('refuses a schema that the app has defined', async () => {
    await using kit = await start();
    for (const [method, path] of [
      ['POST', '/schemas/protobuf'],
      ['PUT', '/schemas/protobuf/fixed']
    ]) {
      const { status, text } = await kit.call(method, path, {
        name: 'fixed',
        content: BOOK.replace('pages', 'leaves')
      });
      assert.equal(status, 400);
      assert.match(text, /schema fixed is defined in the options of the format; change it there/);
    }
  });

  it('bounds the number and the size of sections, connections and schemas by options', async () => {
    await using kit = await start({}, { bounds: { configEntries: 2, configBytes: 500 } });
    await kit.ask('PUT', `${KEYS}/a`, { url: 'x'.repeat(300) });
    const large = await kit.call('POST', '/schemas/protobuf', { name: 'book', content: BOOK + ' '.repeat(200) });
    assert.equal(large.status, 400);
    assert.match(large.text, /at most 500 bytes of sections, .*streams\.bounds\.configBytes\)/);
    await kit.ask('PUT', `${KEYS}/a`, { url: 'x'.repeat(350) });
    await kit.ask('PUT', `${KEYS}/b`, {});
    const many = await kit.call('POST', '/connections', { id: 'c', typ: 'probe' });
    assert.equal(many.status, 400);
    assert.match(many.text, /at most 2 sections, connections and schemas \(option streams\.bounds\.configEntries\)/);
  });

  it('refuses what an app gives that is not an entry of JSON', async () => {
    await using kit = await start();
    const { config } = kit.broker.streams;
    const entry = { kind: 'confKey', type: 'probe', name: 'a', properties: {} };
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    for (const [given, field] of [
      [undefined, 'entry'],
      [{ ...entry, kind: 'other' }, 'kind'],
      [{ ...entry, type: undefined }, 'type'],
      [{ ...entry, name: undefined }, 'name'],
      [{ ...entry, properties: [] }, 'properties'],
      [{ ...entry, properties: { at: new Date(0) } }, 'properties.at'],
      [{ ...entry, properties: { a: [{ b: 1n }] } }, 'properties.a[0].b'],
      [{ ...entry, properties: { a: Number.NaN } }, 'properties.a'],
      [{ ...entry, properties: { a: () => 1 } }, 'properties.a'],
      [{ kind: 'schema', type: 'protobuf', name: 'a.b', properties: { content: BOOK } }, 'name']
    ] as const)
      await assert.rejects(config.set(given as never), { code: 'STREAM_CONFIG_INVALID', field });
    await assert.rejects(config.set({ ...entry, properties: cyclic } as never), { code: 'PROPERTY_INVALID' });
    await assert.rejects(
      config.set({ kind: 'schema', type: 'protobuf', name: 'a', properties: { content: BOOK, ...cyclic } }),
      { code: 'STREAM_CONFIG_INVALID' }
    );
    for (const call of [() => config.list('other' as never), () => config.get({ kind: 'other', name: 'a' } as never)])
      await assert.rejects(call, { code: 'STREAM_CONFIG_INVALID', field: 'kind' });
    assert.deepEqual(await config.list('confKey'), []);
  });

  it('replaces the properties of a connection only if the request has them', async () => {
    await using kit = await start();
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { url: 'tcp://c' } });
    const { status, text } = await kit.call('PUT', '/connections/c', { typ: 'probe' });
    assert.equal(status, 400);
    assert.match(text, /props/);
    assert.deepEqual((await kit.ask('GET', '/connections/c')).props, { url: 'tcp://c' });
  });

  it('gives names of the prototype no meaning', async () => {
    await using kit = await start({}, { sourceConfig: { probe: {} } });
    for (const name of ['__proto__', 'constructor']) {
      const url = `tcp://${name}`;
      await kit.ask('PUT', `${KEYS}/${name}`, { url });
      const sql = `CREATE STREAM demo () WITH (TYPE="probe", DATASOURCE="d", FORMAT="json", CONF_KEY="${name}")`;
      await kit.ask('POST', '/streams', { sql });
      await kit.ask('POST', '/rules', RULE);
      assert.equal(kit.source.opened.at(-1)?.url, url);
      await kit.ask('DELETE', '/rules/r1');
      await kit.ask('DELETE', '/streams/demo');
    }
  });

  it('refuses names that a path cannot contain', async () => {
    await using kit = await start();
    for (const id of ['.', '..', '\u0001a', 'a\u0001']) {
      const { status, text } = await kit.call('POST', '/connections', { id, typ: 'probe' });
      assert.deepEqual([status, /name/.test(text)], [400, true], JSON.stringify(id));
    }
  });

  it('refuses what is not valid', async () => {
    await using kit = await start();
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe' });
    await kit.ask('PUT', `${KEYS}/b`, {});
    await kit.ask('POST', '/streams', { sql: STREAM.sql.replace('"a"', '"b"') });
    const cases: readonly [method: string, path: string, body: unknown, status: number, says: RegExp][] = [
      ['PUT', '/metadata/sources/none/confKeys/a', {}, 404, /save source configuration error: .*none/],
      ['PUT', `${KEYS}/a`, { interval: 'often' }, 400, /section a: property interval must be a number/],
      ['PUT', `${KEYS}/a`, { connectionSelector: 'none' }, 400, /connectionSelector/],
      ['PUT', `${KEYS}/${encodeURIComponent('a/b')}`, {}, 400, /name/],
      ['PUT', `${KEYS}/a`, '[]', 400, /not a JSON object/],
      ['GET', `${KEYS}/a`, undefined, 404, /a is not found/],
      ['DELETE', `${KEYS}/a`, undefined, 404, /a is not found/],
      ['POST', '/connections', { id: 'c', typ: 'probe' }, 400, /connection c already exists/],
      ['PUT', '/connections/none', { props: {} }, 404, /none is not found/],
      [
        'POST',
        '/connections',
        { id: 'd', typ: 'probe', properties: {} },
        400,
        /the parameter "properties" is unknown; .*props/
      ],
      ['PUT', '/connections/c', { props: {}, url: 'tcp://a' }, 400, /the parameter "url" is unknown/],
      ['POST', '/schemas/protobuf', { name: 'book', file: 'file:///a.proto' }, 400, /the parameter "file" is unknown/],
      ['GET', '/metadata/sources/none/confKeys', undefined, 404, /unknown source type none/],
      ['GET', '/metadata/sources/none/confKeys/a', undefined, 404, /unknown source type none/],
      ['DELETE', '/metadata/sources/none/confKeys/a', undefined, 404, /unknown source type none/],
      [
        'POST',
        '/rules',
        { ...RULE, id: 'r2', actions: [{ probe: { connectionSelector: 'none' } }] },
        400,
        /connectionSelector: there is no connection "none" of the type probe; create it first/
      ],
      ['PUT', '/connections/c', { typ: 'mqtt', props: {} }, 400, /probe, the type of the connection c/],
      [
        'POST',
        '/schemas/protobuf',
        { name: 'book', content: 'message {' },
        400,
        /schema "book" of the format protobuf/
      ],
      ['GET', '/schemas/protobuf/book', undefined, 404, /book is not found/]
    ];
    for (const [method, path, body, status, says] of cases) {
      const answer = await kit.call(method, path, body);
      assert.deepEqual([answer.status, says.test(answer.text)], [status, true], `${method} ${path}: ${answer.text}`);
    }
  });

  it('answers with the properties that have no effect', async () => {
    await using kit = await start();
    const props = { url: 'tcp://c', passwrd: SECRET };
    const why = 'the unknown property "passwrd" has no effect; did you mean "password"?';
    const created = await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props });
    assert.equal(created, `Connection c was created.\nconnection c: ${why}`);
    const section = { connectionSelector: 'c', cache: true, concurrency: 1, passwrd: SECRET };
    const saved = await kit.ask('PUT', `${KEYS}/a`, section);
    assert.equal(saved, `Configuration a of source probe was saved.\nsection a: ${why}`);
  });

  it('answers with the properties of actions that have no effect, and logs them at each start', async () => {
    await using kit = await start();
    const logged: string[] = [];
    kit.broker.on('streams.warned', ({ text }) => logged.push(text));
    await kit.ask('PUT', `${KEYS}/a`, {});
    await kit.ask('POST', '/streams', STREAM);
    const rule = { ...RULE, actions: [{ probe: { url: 'tcp://a', passwrd: SECRET } }, { nop: { x: 1 } }] };
    const why = 'probe sink: the unknown property "passwrd" has no effect; did you mean "password"?';
    const also = 'nop sink: the unknown property "x" has no effect';
    assert.equal(await kit.ask('POST', '/rules', rule), `Rule r1 was created successfully.\n${why}\n${also}`);
    assert.deepEqual(logged.splice(0), [`stream rule r1: ${why}`, `stream rule r1: ${also}`]);
    const changed = { ...rule, actions: [{ probe: { url: 'tcp://a', passwrd: SECRET } }] };
    assert.equal(await kit.ask('PUT', '/rules/r1', changed), `Rule r1 was updated successfully.\n${why}`);
    const { rules } = kit.broker.streams;
    const created = await rules.create({ ...changed, id: 'r2', triggered: false });
    assert.deepEqual([created.id, created.warnings], ['r2', [why]]);
    assert.deepEqual((await rules.update('r2', created)).warnings, [why]);
    assert.equal('warnings' in ((await rules.get('r2')) ?? {}), false);
    const validated = await kit.ask('POST', '/rules/validate', { ...changed, id: 'r3' });
    assert.deepEqual(validated, { sources: ['demo'], valid: true, warnings: [why] });
    assert.deepEqual(logged, [`stream rule r1: ${why}`], 'only a start is logged');
  });

  it('accepts records as they are shown, as a change', async () => {
    await using kit = await start();
    await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { password: SECRET } });
    await kit.ask('POST', '/schemas/protobuf', { name: 'book', content: BOOK });
    for (const path of ['/connections/c', '/schemas/protobuf/book']) {
      const shown = await kit.ask('GET', path);
      await kit.ask('PUT', path, shown);
      assert.deepEqual(await kit.ask('GET', path), shown);
    }
  });

  it('exports sections, connections and schemas with the rules that need them, and imports them elsewhere', async () => {
    let text = '';
    {
      await using kit = await start();
      await kit.ask('POST', '/connections', { id: 'c', typ: 'probe', props: { url: 'tcp://c', password: SECRET } });
      await kit.ask('PUT', `${KEYS}/a`, { connectionSelector: 'c', interval: 9 });
      await kit.ask('POST', '/schemas/protobuf', { name: 'book', content: BOOK });
      await kit.ask('POST', '/streams', STREAM);
      const sink = { mqtt: { topic: 't', format: 'protobuf', schemaId: 'book.Book' } };
      await kit.ask('POST', '/rules', { ...RULE, actions: [sink, { probe: { connectionSelector: 'c' } }] });
      const all = await kit.ask('POST', '/ruleset/export');
      assert.deepEqual(JSON.parse(all.sourceConfig.probe), { a: { connectionSelector: 'c', interval: 9 } });
      assert.deepEqual(JSON.parse(all.connectionConfig.probe), { c: { url: 'tcp://c', password: SECRET } });
      assert.deepEqual(JSON.parse(all.Schema.protobuf_book), { type: 'protobuf', name: 'book', content: BOOK });
      text = JSON.stringify(all);
    }
    await using kit = await start();
    assert.equal(
      await kit.ask('POST', '/ruleset/import', { content: text }),
      'imported 1 streams, 0 tables and 1 rules, and 3 sections, connections and schemas'
    );
    const { opened } = kit.source;
    assert.deepEqual(opened.at(-1), { url: 'tcp://c', interval: 9, password: SECRET });
    const { length } = opened;
    await kit.ask('POST', '/ruleset/import', { content: text });
    assert.equal(opened.length, length, 'the same again restarts nothing');
    assert.equal(JSON.stringify(await kit.ask('POST', '/ruleset/export')), text);
    const changed = text.replace('tcp://c', 'tcp://d');
    await kit.ask('POST', '/ruleset/import', { content: changed });
    assert.equal(opened.at(-1)?.url, 'tcp://d');
  });

  it('imports nothing if a part of the configuration is not valid, and names it', async () => {
    await using kit = await start();
    const whole = {
      streams: { demo: STREAM.sql },
      connectionConfig: { probe: '{"c":{"url":"tcp://c"}}' },
      sourceConfig: { probe: '{"a":{"interval":"often"},"b":{"connectionSelector":"c"}}', none: '{"x":{}}' },
      Schema: { protobuf_fixed: JSON.stringify({ type: 'protobuf', name: 'fixed', content: BOOK }) }
    };
    const { status, text } = await kit.call('POST', '/ruleset/import', whole);
    assert.equal(status, 400);
    for (const part of [/nothing is imported/, /section "a": .*interval/, /section "x": .*none/, /schema "fixed": /])
      assert.match(text, part);
    assert.doesNotMatch(text, /"b"|"c"/);
    assert.deepEqual(await kit.ask('POST', '/ruleset/export'), { streams: {}, tables: {}, rules: {} });
    const broken = await kit.call('POST', '/ruleset/import', { sourceConfig: { probe: '{' } });
    assert.equal(broken.status, 400);
    assert.match(broken.text, /the parameter "sourceConfig\.probe" is not JSON/);
  });

  it('decodes messages by a schema that was created over REST', async () => {
    await using kit = await start();
    await kit.ask('POST', '/schemas/protobuf', { name: 'book', content: BOOK });
    assert.deepEqual(await kit.ask('GET', '/schemas/protobuf/book'), { type: 'protobuf', name: 'book', content: BOOK });
    await kit.ask('POST', '/streams', {
      sql: 'CREATE STREAM books () WITH (DATASOURCE="books", FORMAT="protobuf", SCHEMAID="book.Book")'
    });
    const rule = {
      id: 'r1',
      sql: 'SELECT title, pages FROM books',
      actions: [{ mqtt: { topic: 'out', sendSingle: true } }]
    };
    await kit.ask('POST', '/rules', rule);
    const out = await listener(kit.broker, 'out');
    await kit.broker.publish('books', PAYLOAD);
    assert.deepEqual(JSON.parse(String((await out.next()).payload)), { title: 'abc', pages: 5 });
    const { status, text } = await kit.call('DELETE', '/schemas/protobuf/book');
    assert.deepEqual([status, text.trim()], [400, 'delete schema error: schema book is used by stream books, rule r1']);
  });
});

describe('A mosquitto', { skip: withMosquitto.skip || withClients.skip }, () => {
  it('sends messages to a rule that requests to the interface of streams alone have created', async () => {
    const server = await new Mosquitto().begin();
    try {
      await using kit = await start();
      await kit.ask('POST', '/connections', {
        id: 'plant',
        typ: 'mqtt',
        props: { server: `tcp://127.0.0.1:${server.port}`, username: 'ember', password: SECRET }
      });
      await kit.ask('PUT', '/metadata/sources/mqtt/confKeys/plant', { connectionSelector: 'plant', qos: 1 });
      await kit.ask('POST', '/streams', {
        sql: 'CREATE STREAM demo () WITH (DATASOURCE="sensors/#", FORMAT="json", CONF_KEY="plant")'
      });
      const { status: before } = await kit.ask('GET', '/connections/plant');
      assert.equal(before, 'disconnected');
      await kit.ask('POST', '/rules', {
        id: 'r1',
        sql: 'SELECT temperature FROM demo',
        actions: [{ mqtt: { topic: 'out', sendSingle: true } }]
      });
      const out = await listener(kit.broker, 'out');
      while ((await kit.ask('GET', '/connections/plant')).status !== 'connected');
      await mosquitto('pub', ['-p', `${server.port}`, '-t', 'sensors/1', '-q', '1', '-m', '{"temperature":21}']);
      assert.deepEqual(JSON.parse(String((await out.next()).payload)), { temperature: 21 });
      const metrics = await kit.ask('GET', '/v2/rules/r1/status');
      assert.equal(metrics.source_demo_0_records_in_total, 1);
    } finally {
      await server.end();
    }
  });
});
