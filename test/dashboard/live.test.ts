import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LiveStream } from '../../adapters/dashboard/live/live-stream.ts';
import { TAIL } from '../../adapters/dashboard/live/tail.ts';
import { Live } from '../../adapters/dashboard/page/model/live.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { PASSWORD, startConsole } from '../support/dashboard.ts';
import { readerOf } from '../support/event-reader.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

type Server = Awaited<ReturnType<typeof startConsole>>;

/** Open a stream of the console with the session of a browser, and read its first event. */
async function open(server: Server, { cookie = '' }: { readonly cookie?: string | undefined }) {
  const response = await fetch(`http://127.0.0.1:${server.port}/live`, {
    headers: { cookie, 'embermq-console': 'background' }
  });
  assert.equal(response.status, 200, await (response.ok ? '' : response.text()));
  const reader = readerOf(response.body as ReadableStream<Uint8Array>);
  const [opened] = await reader.next(1);
  assert.equal(opened.event, 'opened');
  return { ...reader, id: opened.data.id as string };
}

/** Log in, open a stream and set its watches. */
async function watching(server: Server, watches: object, id = 'ann') {
  const browser = server.browser();
  await browser.login(id);
  const stream = await open(server, browser);
  const set = (wanted: object) => browser.send('PUT', `/live/${stream.id}`, { watches: wanted });
  assert.equal((await set(watches)).status, 200);
  return { ...stream, browser, set };
}

describe('The live stream of the console', () => {
  it('shows counters as rates, gauges, memory and the delay of the event loop once a second', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const stream = await watching(server, { now: { kind: 'overview' } });
    const [, first] = await stream.next(2);
    assert.equal(first.event, 'overview');
    assert.equal(first.data.watch, 'now');
    await using client = await server.broker.connect({ clientId: 'c' });
    for (let at = 0; at < 10; at++) await client.publish('a', 'x', { qos: 1 });
    clock.advance(1_000);
    const [, , second] = await stream.next(3);
    const values = second.data.values as Record<string, number>;
    assert.deepEqual([values['messages.received'], values['connections.count']], [10, 1]);
    assert.ok((second.data.memory as { rss: number }).rss > 1_000_000);
    assert.equal(second.data.alarms, 0);
    assert.equal(typeof second.data.loopDelayMs, 'number');
  });

  it('shows no rates before they are measured over a second, also if its timer rings earlier', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const early = await watching(server, { early: { kind: 'alarms' } }); // it starts the timer
    clock.advance(800);
    const set = early.set({ early: { kind: 'alarms' }, now: { kind: 'overview' } });
    assert.equal((await set).status, 200);
    await using client = await server.broker.connect({ clientId: 'c' });
    for (let at = 0; at < 12; at++) await client.publish('a', 'x', { qos: 1 });
    clock.advance(200);
    clock.advance(1_000);
    const read = (await early.next(5)).filter(({ event }) => event === 'overview');
    assert.deepEqual(
      read.map(({ data }) => [data.hasRates, (data.values as Record<string, number>)['messages.received']]),
      [
        [false, undefined],
        [false, undefined],
        [true, 10]
      ]
    );
  });

  it('reads the state of the broker once for all tabs', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const tabs = [
      await watching(server, { now: { kind: 'overview' } }),
      await watching(server, { now: { kind: 'overview' } })
    ];
    await using client = await server.broker.connect({ clientId: 'c' });
    for (let at = 0; at < 10; at++) await client.publish('a', 'x', { qos: 1 });
    clock.advance(1_000);
    const [first, second] = await Promise.all(tabs.map(async ({ next }) => (await next(3))[2].data));
    assert.deepEqual(second, first);
    assert.equal((first.values as Record<string, number>)['messages.received'], 10);
    await tabs[0].set({});
    clock.advance(1_000);
    assert.equal(((await tabs[1].next(4))[3].data.values as Record<string, number>)['messages.received'], 0);
    await tabs[1].set({});
    await tabs[1].set({ now: { kind: 'overview' } });
    assert.equal(typeof (await tabs[1].next(5))[4].data.loopDelayMs, 'number', 'a watch after the last one was closed');
  });

  it('tails the messages that satisfy a condition, and reports a condition that is not valid', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const where = "payload = 'x'";
    const stream = await watching(server, { tail: { kind: 'tail', filter: 'a/#', where } });
    const [, begun] = await stream.next(2);
    assert.deepEqual(begun.data, { watch: 'tail', rows: [] });
    await using client = await server.broker.connect({ clientId: 'c' });
    for (const [topic, payload] of [
      ['a/1', 'y'],
      ['b', 'x'],
      ['a/2', 'x']
    ])
      await client.publish(topic, payload, { qos: 1 });
    const [, , part] = await stream.next(3);
    const [row] = part.data.rows as { columns: Record<string, unknown>; payload: string; payloadBytes: number }[];
    assert.deepEqual(
      [row.columns.topic, row.columns.clientid, row.payload, row.payloadBytes],
      ['a/2', 'c', Buffer.from('x').toString('base64'), 1]
    );
    await stream.set({ tail: { kind: 'tail', filter: 'a/#', where: 'payload =' } });
    const [, , , failed] = await stream.next(4);
    assert.match((failed.data.failure as { message: string }).message, /column 10/);
  });

  it('sends the busiest publishers of a tail once a second, until there are none', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const stream = await watching(server, { tail: { kind: 'tail', filter: 'a/#' } });
    await using client = await server.broker.connect({ clientId: 'c' });
    for (let at = 0; at < 600; at++) await client.publish('a/1', 'x', { qos: 1 });
    clock.advance(1_000);
    const busiest = async () => {
      for (let count = 1; ; count++) {
        const found = (await stream.next(count)).find(({ data }) => data.busiest !== undefined);
        if (found !== undefined) return found.data.busiest;
      }
    };
    assert.deepEqual(await busiest(), {
      events: 600,
      publishers: [{ name: 'c', count: 600 }],
      topics: [{ name: 'a/1', count: 600 }]
    });
  });

  it('shows the present alarms, and shows them again in the second after one was raised or cleared', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const stream = await watching(server, { alarms: { kind: 'alarms' } });
    server.broker.alarms.raise({ id: 'test', title: 'a test' });
    clock.advance(2_000);
    server.broker.alarms.clear('test');
    clock.advance(2_000);
    const [, before, raised, cleared] = await stream.next(4);
    assert.deepEqual([before.data.count, raised.data.count, cleared.data.count], [0, 1, 0]);
    assert.equal((raised.data.alarms as { id: string }[])[0].id, 'test');
  });

  it('shows the state of one client, at the beginning and when it changes', async () => {
    await using server = await startConsole();
    const stream = await watching(server, { client: { kind: 'client', clientId: 'c' } });
    await (await server.broker.connect({ clientId: 'other' })).disconnect();
    const client = await server.broker.connect({ clientId: 'c', sessionExpiry: '1m' });
    await client.disconnect();
    await until(() => server.broker.sessions.get('c').state === 'disconnected');
    const events = (await stream.next(5)).slice(1).map(({ data }) => [data.event, data.state]);
    assert.deepEqual(events, [
      [undefined, 'gone'],
      ['session.created', 'connected'],
      ['client.connected', 'connected'],
      ['client.disconnected', 'disconnected']
    ]);
  });

  it('shows messages per second of clients when they change, also of one that connects again, and counts on for those that stay in view', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const stream = await watching(server, { list: { kind: 'clients', clientIds: ['loud', 'reader', 'gone'] } });
    const loud = await server.broker.connect({ clientId: 'loud' });
    await using reader = await server.broker.connect({ clientId: 'reader' });
    await reader.subscribe('a');
    let count = 1; // the event `opened`
    const second = async () => {
      clock.advance(1_000);
      return ((await stream.next(++count)).slice(-1)[0].data.rows as Record<string, unknown>[]).map(Object.values);
    };
    for (let at = 0; at < 10; at++) await loud.publish('a', 'x', { qos: 1 });
    assert.deepEqual(await second(), [
      ['loud', 10, 0],
      ['reader', 0, 10],
      ['gone', 0, 0]
    ]);
    await stream.set({ list: { kind: 'clients', clientIds: ['loud', 'new'] } });
    assert.deepEqual(await second(), [
      ['loud', 5, 0],
      ['new', 0, 0]
    ]);
    await loud.disconnect();
    await using again = await server.broker.connect({ clientId: 'loud' });
    for (let at = 0; at < 3; at++) await again.publish('a', 'x', { qos: 1 });
    assert.deepEqual(await second(), [['loud', 3, 0]]);
    for (const [clientIds, reason] of [
      ['a', /a list of at most 100 strings/],
      [Array.from({ length: 101 }, (_, at) => `${at}`), /at most 100/],
      [['x'.repeat(1_025)], /at most 1024 characters/]
    ] as const) {
      await stream.set({ list: { kind: 'clients', clientIds } });
      const { failure } = (await stream.next(++count)).slice(-1)[0].data as { failure: { message: string } };
      assert.match(failure.message, reason);
    }
  });

  it('shows at most 6,400 clients live in all tabs together', async () => {
    await using server = await startConsole();
    const list = (name: string) => [
      name,
      { kind: 'clients', clientIds: Array.from({ length: 100 }, (_, at) => `${name}-${at}`) }
    ];
    const watches = Object.fromEntries(Array.from({ length: 32 }, (_, at) => list(`list${at}`)));
    const first = await watching(server, watches);
    await watching(server, watches);
    const third = await watching(server, { one: { kind: 'clients', clientIds: ['a'] } });
    const [, refused] = await third.next(2);
    assert.match((refused.data.failure as { message: string }).message, /show 6400 clients live.*close one of them/);
    await first.set({});
    await third.set({ two: { kind: 'clients', clientIds: ['a'] } });
    await third.set({});
  });

  it('shows rates and last values of topics and filters, and counts on for those that stay in view', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const stream = await watching(server, { tree: { kind: 'topics', topics: ['a/1', 'a/#'] } });
    await server.broker.publish('a/1', 'one');
    await server.broker.publish('a/2', Buffer.from([0, 255]), { qos: 1, retain: true });
    await server.broker.publish('b', 'not watched');
    clock.advance(1_000);
    const [, first] = await stream.next(2);
    const rows = first.data.rows as Record<string, unknown>[];
    assert.deepEqual(rows, [
      {
        filter: 'a/1',
        topic: 'a/1',
        count: 1,
        retained: 0,
        rate: 1,
        qos: 0,
        retain: false,
        at: 0,
        payload: Buffer.from('one').toString('base64'),
        payloadBytes: 3
      },
      {
        filter: 'a/#',
        topic: 'a/2',
        count: 2,
        retained: 1,
        rate: 2,
        qos: 1,
        retain: true,
        at: 0,
        payload: Buffer.from([0, 255]).toString('base64'),
        payloadBytes: 2
      }
    ]);
    await stream.set({ tree: { kind: 'topics', topics: ['a/1', 'b'] } });
    await server.broker.publish('a/1', 'two');
    clock.advance(1_000);
    const [, , second] = await stream.next(3);
    const now = (second.data.rows as Record<string, unknown>[]).map(({ filter, count, rate }) => [filter, count, rate]);
    assert.deepEqual(now, [
      ['a/1', 2, 1],
      ['b', 0, 0] // the page may still show the values of an earlier watch
    ]);
    for (let second = 0; second < 10; second++) clock.advance(1_000);
    const rates = (await stream.next(8)).slice(3).map(({ data }) => (data.rows as Record<string, unknown>[])[0].rate);
    assert.deepEqual(rates, [2 / 3, 2 / 4, 2 / 5, 1 / 5, 0], 'a topic that has become idle');
  });

  it('continues the rates of topics that stay in view while the page scrolls, until they are idle', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const browser = server.browser();
    await browser.login('ann');
    const aborted = new AbortController();
    let sets = 0;
    const page = new Live({
      async open() {
        const headers = { cookie: browser.cookie ?? '' };
        const { body } = await fetch(`http://127.0.0.1:${server.port}/live`, { headers, signal: aborted.signal });
        return (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream());
      },
      async set(id, watches) {
        assert.equal((await browser.send('PUT', `/live/${id}`, { watches })).status, 200);
        sets++;
      },
      changed: () => {},
      now: () => 0,
      later: () => () => {}
    });
    const seen: (readonly unknown[])[] = [];
    const show = (...topics: string[]) =>
      page.watch('tree', { kind: 'topics', topics }, ({ rows }) => {
        for (const { filter, count, rate } of rows as Record<string, unknown>[]) seen.push([filter, count, rate]);
      });
    const end = show('a', 'b');
    await until(() => sets === 1);
    for (let count = 0; count < 10; count++) await server.broker.publish('a', '');
    clock.advance(1_000);
    await until(() => seen.length === 2);
    end();
    const endLast = show('a', 'c');
    await until(() => sets === 2);
    for (let second = 0; second < 6; second++) clock.advance(1_000);
    await until(() => seen.some(([filter, , rate]) => filter === 'a' && rate === 0));
    assert.deepEqual(seen, [
      ['a', 10, 10],
      ['b', 0, 0],
      ['a', 10, 5],
      ['c', 0, 0],
      ['a', 10, 10 / 3],
      ['a', 10, 10 / 4],
      ['a', 10, 10 / 5],
      ['a', 10, 0]
    ]);
    endLast();
    aborted.abort();
  });

  it('names each topic that the rows in view have received once, at most 1,000, and again when other rows are in view', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const watched = (...topics: string[]) => ({ tree: { kind: 'topics', topics } });
    const stream = await watching(server, watched('a/#', '#'));
    let count = 1; // the event `opened`
    const named = async (...topics: string[]) => {
      for (const topic of topics) await server.broker.publish(topic, '');
      clock.advance(1_000);
      return (await stream.next(++count)).at(-1)?.data.topics;
    };
    assert.deepEqual(await named('a/1', 'a/2', 'b', 'a/1', 'a'.repeat(1_024)), ['a/1', 'a/2', 'b']);
    assert.deepEqual(await named('a/1', 'a/3'), ['a/3']);
    const many = Array.from({ length: 1_500 }, (_, at) => `many/${at}`);
    assert.deepEqual(await named(...many), many.slice(0, 995));
    assert.deepEqual(await named('b', 'c'), []);
    await stream.set(watched('#'));
    assert.deepEqual(await named('b', 'c'), ['b', 'c']);
  });

  it('shows at most 1,000 topics live in all tabs together, because each can be a listener for a message', async () => {
    await using server = await startConsole();
    const { events } = engineOf(server.broker).services;
    const watchesOf = (tab: number, count = 200) => ({
      tree: { kind: 'topics', topics: Array.from({ length: count }, (_, at) => `${tab}/${at}`) }
    });
    const tabs = [];
    for (let tab = 0; tab < 5; tab++) tabs.push(await watching(server, watchesOf(tab), 'bob'));
    const next = await watching(server, watchesOf(5), 'bob');
    const [, refused] = await next.next(2);
    assert.match((refused.data.failure as { message: string }).message, /show 1000 topics live.*close one of them/);
    assert.equal(events.heard['message.publish'], true);
    await tabs[0].set(watchesOf(0, 100));
    await next.set(watchesOf(6, 101));
    assert.match(JSON.stringify((await next.next(3))[2].data), /close one of them/);
    await next.set(watchesOf(6, 100));
    await server.broker.publish('6/0', 'x');
    assert.equal((await next.next(4))[3].data.failure, undefined);
    for (const { set } of [...tabs, next]) await set({});
    assert.equal(events.heard['message.publish'], false);
    await next.set(watchesOf(7));
    await server.broker.publish('7/0', 'x');
    assert.equal((await next.next(5))[4].data.failure, undefined, 'the places are free again');
  });

  it('listens to messages only while they are watched', async () => {
    await using server = await startConsole();
    const isHeard = () => engineOf(server.broker).services.events.heard['message.publish'];
    const stream = await watching(server, { tree: { kind: 'topics', topics: ['a'] } });
    assert.equal(isHeard(), true);
    await stream.set({});
    assert.equal(isHeard(), false);
    await stream.set({ tree: { kind: 'topics', topics: ['a'] } });
    await stream.cancel();
    await until(() => !isHeard());
  });

  it('hides payloads from viewers with viewerPayloads: false, and shows them to administrators', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({ viewerPayloads: false }, { clock });
    const watches = { tree: { kind: 'topics', topics: ['a'] }, tail: { kind: 'tail', filter: 'a' } };
    const streams = [await watching(server, watches, 'bob'), await watching(server, watches, 'ann')];
    await server.broker.publish('a', 'secret');
    clock.advance(1_000);
    const shown = await Promise.all(streams.map(async ({ next }) => (await next(4)).map(({ data }) => data)));
    assert.equal(JSON.stringify(shown[0]).includes(Buffer.from('secret').toString('base64')), false);
    assert.equal(JSON.stringify(shown[1]).includes(Buffer.from('secret').toString('base64')), true);
  });

  it('refuses what is not a set of watches, and changes none then', async () => {
    await using server = await startConsole();
    const stream = await watching(server, { tree: { kind: 'topics', topics: ['a'] } });
    const cases: [watches: unknown, message: RegExp][] = [
      [undefined, /"watches" must be an object/],
      [[], /"watches" must be an object/],
      [{ x: 1 }, /"kind" of the watch "x" must be one of overview, /],
      [{ x: { kind: 'toString' } }, /"kind" of the watch "x" must be one of/],
      [{ ['x'.repeat(65)]: { kind: 'overview' } }, /at most 64 characters/],
      [
        Object.fromEntries(['x', 'y'].map((name) => [name, { kind: 'topics', topics: Array(200).fill('a') }])),
        /at most 256 topics/
      ],
      [Object.fromEntries(Array.from({ length: 33 }, (_, at) => [at, { kind: 'alarms' }])), /at most 32 watches/]
    ];
    for (const [watches, message] of cases) {
      const answer = await stream.browser.send('PUT', `/live/${stream.id}`, { watches });
      assert.equal(answer.status, 400);
      assert.match(answer.body.message, message);
    }
    assert.equal(engineOf(server.broker).services.events.heard['message.publish'], true);
  });

  it('tells the view of a watch that cannot be opened, and goes on with the others', async () => {
    await using server = await startConsole({ viewerPayloads: false });
    const stream = await watching(server, { alarms: { kind: 'alarms' } }, 'bob');
    const cases: [watch: object, message: RegExp][] = [
      [{ kind: 'topics', topics: 'a' }, /"topics" of the watch must be a list of at most 200 strings/],
      [{ kind: 'topics', topics: ['a/#/b'] }, /"topics" of the watch/],
      [{ kind: 'topics', topics: ['b', '$share/g/a/#'] }, /without a share group: "a\/#", not "\$share\/g\/a\/#"/],
      [{ kind: 'topics', topics: ['$queue/a'] }, /without a share group: "a", not "\$queue\/a"/],
      [{ kind: 'topics', topics: Array.from({ length: 201 }, (_, at) => `${at}`) }, /at most 200/],
      [{ kind: 'client' }, /"clientId" of the watch/],
      [{ kind: 'rule', of: 'x', id: 'r' }, /"of" of the watch must be "events" or "streams"/],
      [{ kind: 'rule', of: 'events', id: 'r' }, /no rule|"r"/],
      [{ kind: 'rule', of: 'streams', id: 'r' }, /Rule r is not found/],
      [{ kind: 'tail', filter: 'a/#/b' }, /may only be the last level/],
      [{ kind: 'tail', names: ['nothing'] }, /nothing/],
      [{ kind: 'trace', id: 1 }, /viewers may not see payloads/]
    ];
    let seen = 2;
    for (const [watch, message] of cases) {
      assert.equal((await stream.set({ alarms: { kind: 'alarms' }, x: watch })).status, 200);
      const { event, data } = (await stream.next(++seen)).at(-1) as { event: string; data: Record<string, unknown> };
      assert.deepEqual([event, data.watch], [(watch as { kind: string }).kind, 'x']);
      assert.match((data.failure as { message: string }).message, message);
    }
    await stream.set({ alarms: { kind: 'alarms' }, x: { kind: 'tail', where: 'qos = ' } });
    const { failure } = ((await stream.next(++seen)).at(-1) as { data: Record<string, unknown> }).data;
    const { line, column } = failure as { line: number; column: number };
    assert.deepEqual([line, column], [1, 7], 'the place of an error in a condition');
  });

  it('ends the watch before one that cannot be opened once, so that other tabs still share the readings', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const overview = { now: { kind: 'overview' } };
    const [one, two] = [await watching(server, overview), await watching(server, overview)];
    await two.set({ now: { kind: 'tail', where: 'qos = ' } });
    const { data } = (await two.next(3))[2];
    assert.equal(typeof data.failure, 'object');
    const three = await watching(server, overview);
    await using client = await server.broker.connect({ clientId: 'c' });
    for (let at = 0; at < 10; at++) await client.publish('a', 'x', { qos: 1 });
    clock.advance(1_000);
    const shown = [(await one.next(3))[2].data, (await three.next(3))[2].data];
    assert.deepEqual(shown[1], shown[0], 'memory and the delay of the event loop are of one reading');
    await one.set({});
    await three.set({});
    await one.set(overview);
    assert.equal(typeof (await one.next(4))[3].data.loopDelayMs, 'number');
  });

  it('shows the counters of a rule when they change, with the time of its last sample', async () => {
    const clock = new ManualClock(1_000);
    await using server = await startConsole({}, { clock });
    const { broker } = server;
    await broker.rules.create({ id: 'r', sql: 'SELECT qos FROM "a"', actions: [{ name: 'do_nothing' }] });
    broker.rules.samples = () => assert.fail('samples are decoded only for those who read them');
    const stream = await watching(server, { rule: { kind: 'rule', of: 'events', id: 'r' } });
    clock.advance(1_000);
    await broker.publish('a', 'x');
    clock.advance(1_000);
    const [, first, second] = await stream.next(3);
    const counters = ({ data }: typeof first) => (data.counters as { matched: number }).matched;
    assert.deepEqual([first.data.state, counters(first), first.data.sampledAt], ['connected', 0, 0]);
    assert.deepEqual([counters(second), second.data.sampledAt], [1, 2_000]);
    await broker.rules.delete('r');
    clock.advance(1_000);
    assert.equal((await stream.next(4))[3].data.state, 'gone');
    clock.advance(1_000);
    await broker.rules.create({ id: 'r', sql: 'SELECT qos FROM "a"', actions: [{ name: 'do_nothing' }] });
    clock.advance(1_000);
    assert.deepEqual(
      (await stream.next(5))[4].data.state,
      'connected',
      'a rule that is gone is reported once, and a new one with its id is shown'
    );
  });

  it('shows the time of the last sample of a stream rule', async () => {
    const clock = new ManualClock(1_000);
    await using server = await startConsole({}, { clock });
    const { broker } = server;
    await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE="a", FORMAT="JSON")');
    await broker.streams.rules.create({ id: 'r', sql: 'SELECT * FROM demo', actions: [{ nop: {} }] });
    broker.streams.rules.samples = () => assert.fail('samples are decoded only for those who read them');
    const stream = await watching(server, { rule: { kind: 'rule', of: 'streams', id: 'r' } });
    clock.advance(1_000);
    await broker.publish('a', '{"a":1}');
    clock.advance(1_000);
    const [, first, second] = await stream.next(3);
    assert.deepEqual([first.data.code, first.data.sampledAt, second.data.sampledAt], ['running', 0, 2_000]);
    assert.equal(second.data.definition, first.data.definition);
    await broker.streams.rules.update('r', { sql: 'SELECT a FROM demo', actions: [{ nop: {} }] });
    clock.advance(1_000);
    const [, , , third] = await stream.next(4);
    assert.notEqual(third.data.definition, first.data.definition);
  });

  it('shows the lines of a trace as they come', async () => {
    const clock = new ManualClock();
    await using server = await startConsole({}, { clock });
    const { id } = server.broker.monitor.traces.start({ topic: 'a', durationMs: 60_000 });
    await server.broker.publish('a', 'one');
    const stream = await watching(server, { trace: { kind: 'trace', id } });
    const [, kept] = await stream.next(2);
    await server.broker.publish('a', 'two');
    clock.advance(1_000);
    const [, , more] = await stream.next(3);
    const text = ({ data }: typeof kept) => JSON.stringify(data.lines);
    assert.match(text(kept), /"one"/);
    assert.match(text(more), /"two"/);
    assert.doesNotMatch(text(more), /"one"/);
  });

  it('sends no rows of a tail after it was closed, also if its last part was read by pieces', async () => {
    await using server = await startConsole();
    const { broker } = server;
    const emitted: { rows: object[] }[] = [];
    let release = () => {};
    let wasAsked = () => {};
    const asked = () => new Promise<void>((resolve) => (wasAsked = resolve));
    const watch = await TAIL.open(
      {
        broker,
        hidesPayloads: false,
        shared: { rows: { clients: 0, topics: 0 } },
        emit: (data) => void emitted.push(data as { rows: object[] }),
        drained: () => {
          wasAsked();
          return new Promise<void>((resolve) => (release = resolve));
        },
        everySecond: () => () => {}
      },
      { filter: 'a', where: undefined, names: undefined }
    );
    const first = asked();
    for (let n = 0; n < 60; n++) await broker.publish('a', Buffer.alloc(4_096, 'x'));
    for (let waiting = first; emitted.every(({ rows }) => rows.length < 5); waiting = asked()) {
      await waiting;
      release();
    }
    watch.close();
    const before = emitted.length;
    for (let n = 0; n < 10; n++) {
      release();
      await nextTurn();
    }
    assert.equal(emitted.length, before);
  });

  it('takes no more rows of a tail than its reader reads', async () => {
    const clock = new ManualClock();
    const stream = new LiveStream('id', clock, () => {});
    await stream.next();
    stream.push('row', {});
    let isDrained = false;
    void stream.drained().then(() => {
      isDrained = true;
    });
    await nextTurn();
    assert.equal(isDrained, false);
    await stream.next();
    await nextTurn();
    assert.equal(isDrained, true);
    void stream.return();
  });

  it('needs a login, and lets only the person of the stream set its watches', async () => {
    await using server = await startConsole();
    assert.equal((await server.call('GET', '/live', undefined, {})).status, 401);
    const stream = await watching(server, {});
    const other = server.browser();
    await other.login('bob');
    assert.equal((await other.send('PUT', `/live/${stream.id}`, { watches: {} })).status, 404);
    assert.equal((await stream.browser.send('PUT', '/live/none', { watches: {} })).status, 404);
    const foreign = { origin: 'https://evil.example' };
    assert.equal((await stream.browser.send('PUT', `/live/${stream.id}`, { watches: {} }, foreign)).status, 403);
  });

  it('ends with its session, and says why', async () => {
    await using server = await startConsole();
    await server.broker.users.create('eve', PASSWORD, 'administrator'); // one must remain
    const ends: [why: string, end: (browser: ReturnType<Server['browser']>) => unknown, reason: RegExp][] = [
      ['logout', (browser) => browser.send('POST', '/logout', {}), /^the session has ended$/],
      ['password', () => server.broker.users.setPassword('ann', PASSWORD), /^the user has changed$/],
      ['role', () => server.broker.users.update('ann', 'viewer'), /^the user has changed$/],
      ['stop', () => server.broker.stop(), /^the broker has stopped$/]
    ];
    for (const [why, end, reason] of ends) {
      const stream = await watching(server, { now: { kind: 'alarms' } });
      await end(stream.browser);
      const last = (await stream.toEnd()).at(-1);
      assert.equal(last?.event, 'closed', why);
      assert.match(String(last?.data.reason), reason, why);
    }
  });

  it('refuses the stream beyond 64 and says why, until one of them ends', async () => {
    await using server = await startConsole();
    const browser = server.browser();
    await browser.login('ann');
    const streams = [];
    for (let at = 0; at < 64; at++) streams.push(await open(server, browser));
    const refused = await browser.send('GET', '/live');
    assert.equal(refused.status, 429);
    assert.match(refused.body.message, /64 tabs of the console are open/);
    await streams[0].cancel();
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${server.port}/live`, { headers: { cookie: browser.cookie ?? '' } });
      await answer.body?.cancel();
      if (answer.status === 200) break;
    }
  });
});

describe('Readers of live streams', () => {
  it('discards the oldest events of a slow reader, and reports their number', async () => {
    const clock = new ManualClock();
    const stream = new LiveStream('id', clock, () => {});
    for (let at = 0; at < 100; at++) stream.push('row', { at, text: 'x'.repeat(50_000) });
    let text = '';
    stream.close('over');
    for await (const part of stream) text += part;
    assert.match(text, /^event: opened\ndata: \{"id":"id"\}\n\nevent: skipped\ndata: \{"count":80\}\n\n/);
    assert.ok(text.length < 1_100_000);
    assert.deepEqual(
      [text.includes('"at":99,'), text.includes('"at":80,'), text.includes('"at":79,')],
      [true, true, false]
    );
  });

  it('disconnects a reader that takes nothing for 90 seconds while events wait', async () => {
    const clock = new ManualClock();
    let ended = 0;
    const stream = new LiveStream('id', clock, () => ended++);
    await stream.next();
    clock.advance(200_000);
    assert.equal(ended, 0, 'nothing waits');
    stream.push('row', {});
    clock.advance(95_000);
    assert.equal(ended, 1);
    assert.equal(clock.pending, 0);
  });

  it('sends comments while nothing happens, so that proxies and runtimes keep the connection open', async () => {
    const clock = new ManualClock();
    const stream = new LiveStream('id', clock, () => {});
    await stream.next();
    const next = stream.next();
    await nextTurn();
    clock.advance(5_000);
    assert.deepEqual(await next, { done: false, value: ': heartbeat\n\n' });
    await stream.return();
  });
});
