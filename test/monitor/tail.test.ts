import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker, type EventName, systemClock, type Tail, type TailPart, type TailRecord } from 'embermq';
import { TimeReading } from '../../lib/base/time-reading.ts';
import { TimingWheel } from '../../lib/base/timing-wheel.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { EVENT_NAMES } from '../../lib/index.ts';
import { BusyNames } from '../../lib/monitor/tail/busy-names.ts';
import { Tail as TailOf } from '../../lib/monitor/tail/tail.ts';
import { tailedEvents } from '../../lib/monitor/tail/tail-columns.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** The next part of a tail. */
async function partOf(tail: Tail): Promise<TailPart> {
  const { value, done } = await tail.next();
  assert.equal(done, false, 'the tail has not ended');
  return value;
}

/** Read rows until there is a number of them. */
async function rowsOf(tail: Tail, count: number): Promise<TailRecord[]> {
  const rows: TailRecord[] = [];
  while (rows.length < count) rows.push(...(await partOf(tail)).rows);
  return rows;
}

/** The columns that an event has. */
function known(columns: TailRecord['columns'] | undefined): object {
  return Object.fromEntries(Object.entries(columns ?? {}).filter(([, value]) => value !== undefined));
}

const NOTHING_LEFT_OUT = { skipped: 0, overflowed: 0, unchecked: 0, failed: 0, error: undefined };

describe('Tails', () => {
  it('makes a row for each published message, with the columns of rules and the payload', async () => {
    await using kit = await createTestBroker();
    const tail = await kit.broker.monitor.tail();
    const device = await kit.connect({ clientId: 'd', username: 'u', protocolVersion: 5 });
    await device.publish('a/b', 'hello', { qos: 1, retain: true, properties: { contentType: 'text/plain' } });
    const { rows, ...counts } = await partOf(tail);
    assert.deepEqual(counts, NOTHING_LEFT_OUT);
    const [{ number, at, event, columns, payload, payloadText, payloadBytes }] = rows;
    assert.deepEqual([number, at, event], [1, kit.clock.now(), 'message.publish']);
    assert.deepEqual([payload?.toString(), payloadText, payloadBytes], ['hello', 'hello', 5]);
    assert.deepEqual(known(columns), {
      clientid: 'd',
      username: 'u',
      topic: 'a/b',
      qos: 1,
      flags: { dup: false, retain: true },
      pub_props: { 'Content-Type': 'text/plain' },
      publish_received_at: kit.clock.now(),
      node: kit.broker.settings.node
    });
  });

  it('leaves the messages of topics that the filter does not match on the fast path', async () => {
    await using kit = await createTestBroker();
    const { routing, publishing, services } = engineOf(kit.broker);
    const tail = await kit.broker.monitor.tail({ filter: 'a/#' });
    assert.deepEqual(
      [routing.of('a/b').isForRuns, routing.of('b').isForRuns, publishing.hooks.isFastPathOpen],
      [false, true, true]
    );
    assert.equal(services.events.heard['message.publish'], false);
    await kit.broker.publish('b', 'x');
    await kit.broker.publish('a/1', 'x');
    assert.deepEqual(
      (await rowsOf(tail, 1)).map(({ columns }) => columns.topic),
      ['a/1']
    );
    tail.close();
    assert.equal(routing.of('a/b').isForRuns, true);
  });

  it('shows only the rows that satisfy the condition, which may read JSON, topics and regular expressions', async () => {
    await using kit = await createTestBroker();
    const where = `WHERE payload.t > 80 AND topic =~ 'pumps/+' AND regex_match(topic, '[0-9]$')`;
    const tail = await kit.broker.monitor.tail({ where });
    for (const [topic, t] of [
      ['pumps/1', 79],
      ['pumps/2', 81],
      ['pumps/x', 90],
      ['fans/3', 90],
      ['pumps/4', 90]
    ])
      await kit.broker.publish(String(topic), JSON.stringify({ t }));
    await kit.broker.publish('pumps/5', 'not JSON');
    const rows = await rowsOf(tail, 2);
    assert.deepEqual(
      rows.map(({ columns }) => columns.topic),
      ['pumps/2', 'pumps/4']
    );
  });

  it('reports the position of an error in the condition', async () => {
    await using kit = await createTestBroker();
    const { monitor } = kit.broker;
    await assert.rejects(monitor.tail({ where: 'payload.t >\n  nothing(1)' }), {
      code: 'SQL_INVALID',
      line: 2,
      column: 3
    });
    await assert.rejects(monitor.tail({ where: 'qos = 1 FROM "a"' }), { code: 'SQL_INVALID', line: 1, column: 9 });
    await assert.rejects(monitor.tail({ where: '' }), { code: 'SQL_INVALID' });
  });

  it('offers conditions no function with effects on rules', async () => {
    const run = (value: string) => value;
    await using kit = await createTestBroker({
      rules: { functions: [{ name: 'own', family: 'app', params: ['string'], returns: 'string', about: 'Own.', run }] }
    });
    for (const where of [`kv_store_put('a', 1) = 1`, `kv_store_get('a') = 1`, `own(topic) = 'a'`])
      await assert.rejects(kit.broker.monitor.tail({ where }), { code: 'SQL_INVALID' });
  });

  it('counts the events for which the condition fails, and says why it failed last', async () => {
    await using kit = await createTestBroker();
    const tail = await kit.broker.monitor.tail({ where: 'payload.n + 1 > 1' });
    await kit.broker.publish('a', '{"n":"many"}');
    await kit.broker.publish('a', '{"n":1}');
    const { rows, failed, error } = await partOf(tail);
    assert.deepEqual([rows.length, failed], [1, 1]);
    assert.match(error ?? '', /^WHERE: /);
  });

  it('bounds the work of a condition for one event, because people who may only read can write it', async () => {
    await using kit = await createTestBroker();
    for (const [where, error] of [
      ["strlen(reverse(pad('\u00e9', 1000000))) > 0", /reads and makes more than 262144 characters/],
      ["strlen(pad('\u00e9', 3000)) > 0", /reads and makes more than 262144 characters/],
      ["strlen(pad('x', 300000)) > 0", /reads and makes more than 262144 characters/],
      ["regex_match(pad('x', 60000), '(a?){100}b')", /are more than 1048576: use a shorter expression/]
    ] as const) {
      const tail = await kit.broker.monitor.tail({ where });
      await kit.broker.publish('a', 'x');
      const waiting = tail.next();
      await kit.clock.advance(1_000);
      const { value } = await waiting;
      assert.deepEqual([value.rows.length, value.failed], [0, 1], where);
      assert.match(value.error ?? '', error);
      tail.close();
    }
  });

  it('ends with the reason if a condition takes more than 100 ms of processor time again, also if it fails', async () => {
    let [timeMs, processorMs, isPaused] = [0, 0, true];
    const clock = { ...systemClock, monotonic: () => timeMs };
    const services = { clock, time: new TimeReading(clock), wheel: new TimingWheel(clock, 100, () => undefined) };
    const condition = () => {
      timeMs += 150;
      if (isPaused) return true;
      processorMs += 150;
      throw new Error('the condition has failed');
    };
    const conditionTime = { tails: 0, secondMs: -Infinity, spentMs: 0, processorMs: () => processorMs };
    const selection = { condition, conditionTime, maxPayloadBytes: 10, hidesPayloads: false };
    let ends = 0;
    const tail = new TailOf(services, { node: 'n', now: () => 0 }, selection, () => void ends++);
    const [row] = tailedEvents('broker.started');
    for (let second = 0; second < 3; second++, timeMs += 1_000) tail.see(row, { listeners: [] });
    assert.deepEqual([(await partOf(tail)).rows.length, ends], [3, 0], 'a process that was stopped ends no tail');
    isPaused = false;
    tail.see(row, { listeners: [] });
    const { failed, error } = await partOf(tail);
    assert.deepEqual([failed, ends, conditionTime.tails], [1, 1, 0]);
    assert.match(error ?? '', /more than 100 ms for one event: use fewer functions of long texts, or a topic filter/);
    assert.deepEqual(await tail.next(), { done: true, value: undefined });
  });

  it('shows at most 500 rows in any second, and reports the rest within a second', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const tail = await broker.monitor.tail({ where: 'qos = 0' });
    for (let n = 0; n < 600; n++) await broker.publish('a', 'x');
    const first = await partOf(tail);
    assert.deepEqual([first.rows.length, first.skipped], [500, 100]);
    await clock.advance(900);
    for (let n = 0; n < 50; n++) await broker.publish('a', 'x');
    const waiting = tail.next();
    await clock.advance(100);
    const { value } = await waiting;
    assert.deepEqual([value.rows.length, value.skipped], [0, 50]);
    for (let n = 0; n < 600; n++) await broker.publish('a', 'x');
    const { rows, skipped } = await partOf(tail);
    assert.deepEqual([rows.length, skipped], [500, 100]);
    assert.deepEqual([rows[0].number, rows[499].number], [501, 1_000]);
  });

  it('lists the publishers and topics of most events of the last 10 seconds, with those left out of the rows', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const tail = await broker.monitor.tail({ where: "topic != 'ignored'" });
    const [steady, burst] = [await kit.connect({ clientId: 'steady' }), await kit.connect({ clientId: 'burst' })];
    for (let n = 0; n < 600; n++) await steady.publish(`a/${n % 3}`, 'x');
    for (let n = 0; n < 900; n++) await burst.publish('b', 'x');
    for (const client of [steady, burst]) await client.publish('ignored', 'x', { qos: 1 });
    const { rows, skipped } = await partOf(tail);
    assert.deepEqual([rows.every(({ columns }) => columns.clientid === 'steady'), skipped], [true, 1_000]);
    const of = (name: string, count: number) => ({ name, rule: undefined, count });
    assert.deepEqual(tail.busiest(), {
      events: 1_500,
      publishers: [of('burst', 900), of('steady', 600)],
      topics: [of('b', 900), of('a/0', 200), of('a/1', 200), of('a/2', 200)]
    });
    await clock.advance(5_000);
    await steady.publish('a/2', 'x', { qos: 1 });
    assert.deepEqual(tail.busiest().topics.slice(0, 2), [of('b', 900), of('a/2', 201)]);
    await clock.advance(5_000);
    assert.deepEqual(tail.busiest(), { events: 1, publishers: [of('steady', 1)], topics: [of('a/2', 1)] });
    await clock.advance(10_000);
    assert.deepEqual(tail.busiest(), { events: 0, publishers: [], topics: [] });
  });

  it('counts a rule apart from a client with the same id, the publishers of deliveries, and the clients of other events', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await broker.rules.create({
      id: 'hot',
      sql: 'SELECT * FROM "a"',
      actions: [{ name: 'republish', params: { target_topic: 'b', payload_tmpl: 'x', target_qos: 0 } }]
    });
    const tail = await broker.monitor.tail();
    const others = await broker.monitor.tail({ names: ['message.delivered', 'session.subscribed'] });
    const [client, receiver] = [await kit.connect({ clientId: 'hot' }), await kit.connect({ clientId: 'receiver' })];
    await receiver.subscribe('b');
    await client.publish('a', 'x', { qos: 1 });
    await client.publish('b', 'x', { qos: 1 });
    const shown = (tail: Tail) =>
      tail.busiest().publishers.map(({ name, rule, count }) => [rule?.id ?? name, rule?.kind, count]);
    assert.deepEqual(shown(tail), [
      ['hot', undefined, 2],
      ['hot', 'rule', 1]
    ]);
    assert.deepEqual(shown(others), [
      ['receiver', undefined, 1],
      ['hot', 'rule', 1],
      ['hot', undefined, 1]
    ]);
  });

  it('bounds the names that it counts in a second, and counts their events nevertheless', () => {
    const clock = { ...systemClock, monotonic: () => 0 };
    const names = new BusyNames(new TimeReading(clock));
    for (let n = 0; n < 1_000; n++) names.add(`c${n}`, 'x'.repeat(1_000) + n, undefined);
    for (let n = 0; n < 5; n++) {
      names.add('late', 'late'.repeat(200), undefined);
      names.add('c999', `${'x'.repeat(1_000)}0`, undefined);
    }
    names.add(undefined, '', undefined);
    const { events, publishers, topics } = names.busiest(0);
    assert.equal(events, 1_011);
    assert.deepEqual([publishers.length, publishers[0].name, publishers[0].count], [10, 'c999', 6]);
    assert.deepEqual(
      [topics.length, topics[0].count, topics.some(({ name }) => name.startsWith('late'))],
      [10, 6, false]
    );
  });

  it('discards the oldest rows of a reader that does not read, and counts them', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const tail = await broker.monitor.tail();
    for (let second = 0; second < 4; second++) {
      for (let n = 0; n < 500; n++) await broker.publish('a', 'x');
      await clock.advance(1_000);
    }
    const { rows, overflowed } = await partOf(tail);
    assert.deepEqual([rows.length, overflowed, rows[0].number], [1_000, 1_000, 1_001]);
  });

  it('keeps at most 2 MB of rows for a reader that does not read, whatever clients send', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const tail = await broker.monitor.tail({ maxPayloadBytes: '64KB' });
    const payload = 'p'.repeat(70_000);
    const userProperties = Array.from({ length: 1_000 }, (_, n): [string, string] => [`name ${n}`, 'v'.repeat(100)]);
    for (let n = 0; n < 100; n++) {
      await broker.publish(`long/${'t'.repeat(60_000)}`, payload, { properties: { userProperties } });
      await clock.advance(10);
    }
    const { rows, overflowed } = await partOf(tail);
    assert.equal(rows.length + overflowed, 100);
    const size = rows.reduce(
      (sum, { columns, payload: bytes }) => sum + JSON.stringify(columns).length + (bytes?.length ?? 0),
      0
    );
    assert.ok(rows.length > 5 && size < 2_097_152, `${rows.length} rows of ${size} bytes`);
    assert.deepEqual([rows[0].payload?.length, rows[0].payloadBytes], [65_536, 70_000]);
    assert.equal(rows[0].columns.pub_props, undefined);
  });

  it('shows payloads as text if they are UTF-8, without a character that is cut', async () => {
    await using kit = await createTestBroker();
    const tail = await kit.broker.monitor.tail({ maxPayloadBytes: 6 });
    const payloads = ['plain', 'h\u00e9llo', '12345\u20ac', Buffer.of(0xff, 0xfe), ''];
    for (const payload of payloads) await kit.broker.publish('a', payload);
    const rows = await rowsOf(tail, payloads.length);
    assert.deepEqual(
      rows.map(({ payloadText }) => payloadText),
      ['plain', 'h\u00e9llo', '12345', undefined, '']
    );
    assert.deepEqual(rows[3].payload, Buffer.of(0xff, 0xfe));
  });

  it('cuts payloads at 4,096 bytes unless told otherwise', async () => {
    await using kit = await createTestBroker();
    const { monitor } = kit.broker;
    const [usual, none] = [await monitor.tail(), await monitor.tail({ maxPayloadBytes: 0 })];
    await kit.broker.publish('a', 'x'.repeat(5_000));
    const [[long], [bare]] = [await rowsOf(usual, 1), await rowsOf(none, 1)];
    assert.deepEqual([long.payload?.length, long.payloadBytes], [4_096, 5_000]);
    assert.deepEqual([bare.payload?.length, bare.payloadBytes], [0, 5_000]);
  });

  it('examines no more events of a second after the condition has taken 100 ms', async () => {
    let timeMs = 0;
    const clock = { ...systemClock, monotonic: () => timeMs };
    const services = { clock, time: new TimeReading(clock), wheel: new TimingWheel(clock, 100, () => undefined) };
    const condition = () => {
      timeMs += 40;
      return true;
    };
    const context = { node: 'n', now: () => 0 };
    const conditionTime = { tails: 0, secondMs: -Infinity, spentMs: 0, processorMs: () => 0 };
    const selection = { condition, conditionTime, maxPayloadBytes: 10, hidesPayloads: false };
    const openTail = () => new TailOf(services, context, selection, () => undefined);
    const [row] = tailedEvents('broker.started');
    const tail = openTail();
    const see = () => tail.see(row, { listeners: [] });
    for (let n = 0; n < 10; n++) see();
    timeMs += 1_000;
    see();
    const { rows, unchecked } = await partOf(tail);
    assert.deepEqual([rows.length, unchecked], [4, 7]);
    tail.close();
  });

  it('shares the 100 ms of a second equally among the conditions of all tails', async () => {
    let timeMs = 0;
    const clock = { ...systemClock, monotonic: () => timeMs };
    const services = { clock, time: new TimeReading(clock), wheel: new TimingWheel(clock, 100, () => undefined) };
    const condition = () => {
      timeMs += 10;
      return true;
    };
    const conditionTime = { tails: 0, secondMs: -Infinity, spentMs: 0, processorMs: () => 0 };
    const selection = { condition, conditionTime, maxPayloadBytes: 10, hidesPayloads: false };
    const openTail = () => new TailOf(services, { node: 'n', now: () => 0 }, selection, () => undefined);
    const [row] = tailedEvents('broker.started');
    const tails = [openTail(), openTail()];
    for (let n = 0; n < 20; n++) for (const tail of tails) tail.see(row, { listeners: [] });
    assert.equal(timeMs, 100, 'two tails together take as long as one may');
    for (const tail of tails) {
      const { rows, unchecked } = await partOf(tail);
      assert.deepEqual([rows.length, unchecked], [5, 15]);
    }
    tails[0].close();
    timeMs += 1_000;
    for (let n = 0; n < 20; n++) tails[1].see(row, { listeners: [] });
    assert.equal((await partOf(tails[1])).rows.length, 10, 'the share of a tail that was closed goes to the other');
    tails[1].close();
  });

  it('shows the events that are named, with the columns that rules have for them', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const names: EventName[] = ['client.connected', 'message.dropped', 'session.subscribed', 'message.queued'];
    const tail = await broker.monitor.tail({ names, filter: 'a/#' });
    const receiver = await kit.connect({ clientId: 'r', clean: false, sessionExpiry: 100 } as never);
    await receiver.subscribe('a/1', { qos: 1 });
    await receiver.disconnect();
    await broker.publish('a/1', 'x', { qos: 1 });
    await broker.publish('a/2', 'x');
    await broker.publish('b', 'x');
    const rows = await rowsOf(tail, 4);
    assert.deepEqual(
      rows.map(({ event, columns }) => [event, columns.clientid, columns.topic, columns.reason]),
      [
        ['client.connected', 'r', undefined, undefined],
        ['session.subscribed', 'r', 'a/1', undefined],
        ['message.queued', 'r', 'a/1', undefined],
        ['message.dropped', undefined, 'a/2', 'no_subscribers']
      ]
    );
  });

  it('takes every event of the catalogue, and conditions on its columns', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const tail = await broker.monitor.tail({ names: EVENT_NAMES, where: `event != ''` });
    const client = await kit.connect({ clientId: 'c', username: 'u' });
    await client.subscribe('a/#', { qos: 1 });
    await client.publish('a/b', 'x', { qos: 1 });
    await client.unsubscribe('a/#');
    await broker.access.banned.create({ kind: 'clientId', who: 'bad', until: Infinity });
    broker.alarms.raise({ id: 'hot' });
    broker.alarms.clear('hot');
    broker.failed(new Error('broken'), 'a test');
    await client.disconnect();
    await broker.stop();
    const found = new Map<EventName, TailRecord['columns']>();
    for await (const { rows, failed } of tail) {
      assert.equal(failed, 0);
      for (const { event, columns } of rows) found.set(event, columns);
    }
    const node = broker.settings.node;
    assert.deepEqual(known(found.get('client.subscribe')), {
      clientid: 'c',
      username: 'u',
      topic: 'a/#',
      qos: 1,
      node
    });
    assert.deepEqual(known(found.get('client.banned')), { kind: 'clientId', who: 'bad', by: 'user', node });
    assert.deepEqual(known(found.get('client.suback')), {
      ...{ clientid: 'c', username: 'u', node },
      results: [{ topic: 'a/#', reason_code: 1 }]
    });
    assert.deepEqual(known(found.get('error')), { error: 'broken', during: 'a test', node });
    assert.equal(found.get('alarm.raised')?.name, 'hot');
    assert.ok(found.has('broker.stopped') && found.has('message.publish') && found.has('message.acked'));
  });

  it('shows no user name that is a token, and conditions cannot read it', async () => {
    await using kit = await createTestBroker();
    const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl';
    const [all, guessing] = [
      await kit.broker.monitor.tail(),
      await kit.broker.monitor.tail({ where: `username = '${token}' OR username() = '${token}'` })
    ];
    const device = await kit.connect({ clientId: 'd', username: token });
    await device.publish('a', 'x');
    assert.equal((await rowsOf(all, 1))[0].columns.username, '(token)');
    guessing.close();
    assert.deepEqual(await guessing.next(), { done: true, value: undefined });
  });

  it('hides payloads from rows and from conditions, if it must', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const tail = await broker.monitor.tail({ hidesPayloads: true });
    const secret = `payload.pin = 7 OR payload = '{"pin":7}' OR payload() = '{"pin":7}' OR payload('pin') = 7`;
    const [guess, open] = [
      await broker.monitor.tail({ hidesPayloads: true, where: `${secret} OR topic = 'b'` }),
      await broker.monitor.tail({ where: secret })
    ];
    await broker.publish('a', '{"pin":7}');
    await broker.publish('b', 'x');
    const [[row], [guessed], [found]] = [await rowsOf(tail, 1), await rowsOf(guess, 1), await rowsOf(open, 1)];
    assert.deepEqual([row.payload, row.payloadText, row.payloadBytes], [undefined, undefined, 9]);
    assert.deepEqual([guessed.columns.topic, found.columns.topic], ['b', 'a']);
  });

  it('hides messages of errors as well, from rows and from conditions, because they show values of messages', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const [shown, hidden] = [
      await broker.monitor.tail({ names: ['error'], where: `error = 'the secret'` }),
      await broker.monitor.tail({
        names: ['error'],
        hidesPayloads: true,
        where: `error = 'the secret' OR error.a = 1 OR during = 'b'`
      })
    ];
    broker.failed(new Error('the secret'), 'a');
    broker.failed(new Error('{"a":1}'), 'a');
    broker.failed(Object.assign(new Error('the secret'), { code: 'SQL_FAILED' }), 'b');
    const [[row], [seen]] = [await rowsOf(shown, 2), await rowsOf(hidden, 1)];
    assert.equal(row.columns.error, 'the secret');
    assert.deepEqual([seen.columns.error, seen.columns.code, seen.columns.during], [undefined, 'SQL_FAILED', 'b']);
    for (const name of ['rule.inspected', 'streams.logged'] as const)
      await assert.rejects(broker.monitor.tail({ names: ['error', name], hidesPayloads: true }), {
        code: 'OPTION_INVALID'
      });
  });

  it('sees a message before the messages that rules publish because of it', async () => {
    await using kit = await createTestBroker();
    await kit.broker.rules.create({
      sql: 'SELECT * FROM "in"',
      actions: [{ name: 'republish', params: { target_topic: 'out', target_qos: 0, payload_tmpl: 'y' } }]
    });
    const tail = await kit.broker.monitor.tail();
    await kit.broker.publish('in', 'x');
    const rows = await rowsOf(tail, 2);
    assert.deepEqual(
      rows.map(({ columns }) => columns.topic),
      ['in', 'out']
    );
  });

  it('ends with the broker, after its last rows were read', async () => {
    await using kit = await createTestBroker();
    const tail = await kit.broker.monitor.tail();
    await kit.broker.publish('a', 'x');
    await kit.broker.stop();
    assert.equal((await partOf(tail)).rows.length, 1);
    assert.deepEqual(await tail.next(), { done: true, value: undefined });
  });

  it('ends with a broker that stops while the tail is being opened', async () => {
    await using kit = await createTestBroker();
    const { routing, services } = engineOf(kit.broker);
    const opening = kit.broker.monitor.tail({ filter: 'a', where: 'qos = 0' });
    services.events.emit('broker.stopped', {});
    const tail = await opening;
    assert.equal(routing.of('a').isObserved, false);
    assert.deepEqual(await tail.next(), { done: true, value: undefined });
  });

  it('ends when the loop over it is left, also while a reader waits', async () => {
    await using kit = await createTestBroker();
    const { routing } = engineOf(kit.broker);
    const tail = await kit.broker.monitor.tail({ filter: 'a' });
    const waiting = tail.next();
    await tail.return();
    assert.deepEqual(await waiting, { done: true, value: undefined });
    const left = await kit.broker.monitor.tail({ filter: 'a' });
    await kit.broker.publish('a', 'x');
    for await (const _ of left) break;
    assert.equal(routing.of('a').isObserved, false);
  });

  it('refuses options that mean nothing, and more than 100 tails', async () => {
    const broker = createBroker();
    const { monitor } = broker;
    await assert.rejects(monitor.tail({ names: ['message.publihs' as never] }), /did you mean "message.publish"/);
    await assert.rejects(monitor.tail({ names: [] }), { code: 'OPTION_INVALID' });
    await assert.rejects(monitor.tail({ filter: 'a/#/b' }), { code: 'TOPIC_FILTER_INVALID' });
    await assert.rejects(monitor.tail({ filter: '$share/g/a' }), { code: 'TOPIC_FILTER_INVALID' });
    await assert.rejects(monitor.tail({ maxPayloadBytes: '1MB' }), { code: 'OPTION_INVALID' });
    await assert.rejects(monitor.tail({ where: `topic = '${'a'.repeat(8_192)}'` }), { code: 'OPTION_INVALID' });
    await assert.rejects(monitor.tail({ wher: 'true' } as never), { code: 'OPTION_UNKNOWN' });
    const tails = await Promise.all(Array.from({ length: 100 }, () => monitor.tail()));
    await assert.rejects(monitor.tail(), { code: 'TOO_MANY_TAILS' });
    tails[0].close();
    tails[0].close();
    await monitor.tail();
    await broker.stop();
  });
});
