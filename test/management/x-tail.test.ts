import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { managementApi } from 'embermq/management';
import { EventStreams } from '../../adapters/management/streams/event-stream.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { eventsIn, readerOf } from '../support/event-reader.ts';
import { AUTHORIZATION, serveManagement, startBroker } from '../support/management.ts';

/** Open a stream of rows, and wait until it has begun. */
async function open(port: number, query: Readonly<Record<string, string>>, authorization = AUTHORIZATION) {
  const response = await fetch(`http://127.0.0.1:${port}/api/x/tail?${new URLSearchParams(query)}`, {
    headers: { authorization }
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  return readerOf(response.body as ReadableStream<Uint8Array>);
}

describe('The tail over REST', () => {
  it('streams messages with the columns of rules and their payloads', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const stream = await open(server.port, { filter: 'a/#', where: 'payload.t > 80' });
    const device = await broker.connect({ clientId: 'd', username: 'u' });
    for (const [topic, t] of [
      ['a/1', 70],
      ['a/2', 90],
      ['b', 90]
    ])
      await device.publish(String(topic), JSON.stringify({ t }), {
        qos: 1,
        properties: { correlationData: Buffer.of(0xff, 1) }
      });
    await device.publish('a/3', '{"t":100}', { retain: true });
    const [first, second] = await stream.next(2);
    const { at, publish_received_at, node, ...fields } = first.data;
    assert.ok(Math.abs((at as number) - Date.now()) < 60_000 && Number.isInteger(publish_received_at));
    assert.equal(node, broker.settings.node);
    assert.deepEqual([first.id, first.event], ['1', 'message.publish']);
    assert.deepEqual(fields, {
      clientid: 'd',
      username: 'u',
      topic: 'a/2',
      qos: 1,
      flags: { dup: false, retain: false },
      pub_props: { 'Correlation-Data': 'ff01' },
      payload: '{"t":90}',
      payload_bytes: 8
    });
    assert.deepEqual([second.id, second.data.topic, second.data.pub_props], ['2', 'a/3', undefined]);
    await stream.cancel();
    await device.disconnect();
  });

  it('names the rule that has published a message, as retained messages do', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const params = { target_topic: 'out', payload_tmpl: 'hot', target_qos: 0 };
    await broker.rules.create({ id: 'r', sql: 'SELECT * FROM "in"', actions: [{ name: 'republish', params }] });
    const stream = await open(server.port, { filter: '#' });
    await broker.publish('in', 'x');
    const rows = await stream.next(2);
    assert.deepEqual(Object.fromEntries(rows.map(({ data }) => [data.topic, data.from_rule])), {
      in: undefined,
      out: { kind: 'rule', id: 'r' }
    });
    await stream.cancel();
  });

  it('shows payloads in the form that is asked for, at most 4,096 bytes of each', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const forms = ['text', 'hex', 'base64', 'none'];
    const streams = await Promise.all(forms.map((payload) => open(server.port, { payload })));
    await broker.publish('a', Buffer.of(0xff, 0xfe));
    await broker.publish('a', 'x'.repeat(5_000));
    const found = await Promise.all(streams.map((stream) => stream.next(2)));
    const shown = found.map(([{ data }]) => [data.payload, data.payload_hex, data.payload_base64, data.payload_bytes]);
    assert.deepEqual(shown, [
      [undefined, 'fffe', undefined, 2],
      [undefined, 'fffe', undefined, 2],
      [undefined, undefined, '//4=', 2],
      [undefined, undefined, undefined, 2]
    ]);
    const [{ data }] = found[0].slice(1);
    assert.deepEqual([(data.payload as string).length, data.payload_bytes], [4_096, 5_000]);
    for (const stream of streams) await stream.cancel();
  });

  it('streams other events by their names, and lets viewers read', async () => {
    await using broker = await startBroker();
    await broker.users.create('bob', 'password of bob', 'viewer');
    await using server = await serveManagement(broker, { credentials: 'users' });
    const bob = `Basic ${Buffer.from('bob:password of bob').toString('base64')}`;
    const stream = await open(
      server.port,
      { names: 'client.connected, message.dropped', where: `clientid = 'c'` },
      bob
    );
    for (const clientId of ['b', 'c']) await (await broker.connect({ clientId })).publish('nobody', 'x');
    const events = await stream.next(2);
    assert.deepEqual(
      events.map(({ event, data }) => [event, data.clientid, data.reason]),
      [
        ['client.connected', 'c', undefined],
        ['message.dropped', 'c', 'no_subscribers']
      ]
    );
    await stream.cancel();
  });

  it('refuses what a tail cannot do, with the place of an error in the condition', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    for (const [query, code, message] of [
      ['where=payload.t%20%3E', 108, /the parameter "where": .*line 1, column 12/s],
      ['where=kv_store_put(1,2)', 108, /unknown function kv_store_put/],
      ['names=message.publihs', 108, /did you mean "message.publish"/],
      ['names=', 108, /names/],
      ['filter=a/%23/b', 115, /topic filter/],
      ['payload=all', 108, /payload/],
      ['topic=a', 108, /topic/]
    ] as const) {
      const { status, body } = await server.call('GET', `/api/x/tail?${query}`);
      assert.deepEqual([status, body.code], [400, code], query);
      assert.match(body.message, message);
    }
    assert.equal((await server.call('GET', '/api/x/tail', undefined, {})).status, 401);
  });

  it('counts its streams with those of events, and stops watching when a reader leaves', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker, { maxEventStreams: 2 });
    const { routing } = engineOf(broker);
    const streams = [await open(server.port, { filter: 'a' }), await open(server.port, { filter: 'a' })];
    assert.equal(routing.of('a').isObserved, true);
    for (const path of ['/api/x/events', '/api/x/tail']) assert.deepEqual((await server.call('GET', path)).status, 429);
    for (const stream of streams) await stream.cancel();
    while (routing.of('a').isObserved) await nextTurn();
    assert.equal((await server.call('GET', '/api/x/tail?where=(')).status, 400);
    const [again, more] = [await open(server.port, {}), await open(server.port, {})];
    await broker.stop();
    assert.deepEqual([await again.toEnd(), await more.toEnd()], [[], []]);
    assert.equal((await server.call('GET', '/api/x/tail')).status, 503);
  });

  it('reports the number of rows that are not shown', async () => {
    await using kit = await createTestBroker();
    const stream = await new EventStreams(kit.broker, 1).openTail(
      { where: `topic != 'bad' OR 1 + payload > 0` },
      'text'
    );
    await stream.next();
    for (let n = 0; n < 600; n++) await kit.broker.publish('a', 'x');
    await kit.broker.publish('bad', 'x');
    const text = `${(await stream.next()).value}${(await stream.next()).value}`;
    const [missed, ...rows] = eventsIn(text);
    const { error, ...counts } = missed.data;
    assert.deepEqual([missed.event, counts], ['missed', { skipped: 100, overflowed: 0, unchecked: 0, failed: 1 }]);
    assert.match(String(error), /^WHERE: /);
    assert.deepEqual([rows.length, rows[0].id, rows.at(-1)?.id], [500, '1', '500']);
    await stream.return();
  });

  it('writes the rows of a tenth of a second together, and a comment after five seconds without any', async () => {
    await using kit = await createTestBroker();
    const stream = await new EventStreams(kit.broker, 1).openTail({}, 'text');
    await stream.next();
    await kit.broker.publish('a', '1');
    assert.equal(eventsIn((await stream.next()).value).length, 1);
    const next = stream.next();
    for (const payload of ['2', '3']) {
      await kit.clock.advance(40);
      await kit.broker.publish('a', payload);
    }
    await kit.clock.advance(20);
    assert.deepEqual(
      eventsIn((await next).value).map(({ data }) => data.payload),
      ['2', '3']
    );
    const silent = stream.next();
    await kit.clock.advance(5_200);
    assert.deepEqual(await silent, { done: false, value: ': heartbeat\n\n' });
    const last = stream.next();
    await stream.return();
    assert.deepEqual(await last, { done: true, value: undefined });
    assert.equal(kit.clock.timers.length, 0);
  });

  it('makes text of a part only as its reader takes it, so a reader that stops holds two bounded parts', async () => {
    await using kit = await createTestBroker();
    const stream = await new EventStreams(kit.broker, 1).openTail({ maxPayloadBytes: '64KB' }, 'text');
    await stream.next();
    const payload = '\u0001'.repeat(60_000); // six characters of JSON for each byte
    for (let n = 0; n < 30; n++) await kit.broker.publish('a', payload);
    const sizes: number[] = [];
    for (let rows = 0; rows < 30; ) {
      const { value } = await stream.next();
      sizes.push(value.length);
      rows += eventsIn(value).length;
    }
    assert.deepEqual([sizes.length, sizes.every((size) => size < 400_000)], [30, true]);
    await stream.return();
  });

  it('streams over the Fetch API until the reader ends the stream', async () => {
    await using broker = await startBroker();
    const api = managementApi(broker, { prefix: '/api', credentials: 'host' });
    const { body } = await api.fetch(new Request('http://host/api/x/tail?filter=a'));
    const stream = readerOf(body as ReadableStream<Uint8Array>);
    await broker.publish('a', 'x');
    assert.equal((await stream.next(1))[0].data.topic, 'a');
    await stream.cancel();
    const { routing } = engineOf(broker);
    while (routing.of('a').isObserved) await nextTurn();
    const head = await api.fetch(new Request('http://host/api/x/tail?filter=a', { method: 'HEAD' }));
    assert.deepEqual([head.status, routing.of('a').isObserved], [200, false]);
  });
});
