import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Broker } from 'embermq';
import { type ManagementApi, managementApi } from 'embermq/management';
import express from 'express';
import Fastify from 'fastify';
import Koa from 'koa';
import { EventStreams } from '../../adapters/management/streams/event-stream.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { EVENT_NAMES } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { eventsIn, readerOf } from '../support/event-reader.ts';
import { AUTHORIZATION, serve, serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;

/** Open a stream of events, and wait until it has begun. */
async function open(port: number, query: string) {
  const response = await fetch(`http://127.0.0.1:${port}/api/x/events?${query}`, {
    headers: { authorization: AUTHORIZATION }
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  return readerOf(response.body as ReadableStream<Uint8Array>);
}

function isHeard(broker: Broker, name: (typeof EVENT_NAMES)[number]): boolean {
  return engineOf(broker).services.events.heard[name];
}

describe('Events over REST', () => {
  it('streams events with their names, numbers and fields in each revision', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const stream = await open(server.port, 'names=client.connected,message.dropped&payload=text');
      const client = await broker.connect({ clientId: 'c', username: 'u' });
      await client.publish('nobody', 'hello', { qos: 1 });
      const [connected, dropped] = await stream.next(2);
      assert.deepEqual([connected.id, connected.event], ['1', 'client.connected']);
      const { at, ...fields } = connected.data;
      assert.ok(Math.abs((at as number) - Date.now()) < 60_000);
      assert.deepEqual(fields, {
        client: { clientid: 'c', username: 'u', proto_ver: 5, zone: 'external' },
        session_present: false
      });
      assert.deepEqual([dropped.id, dropped.event], ['2', 'message.dropped']);
      assert.deepEqual(
        { ...dropped.data, at: 0 },
        {
          at: 0,
          message: { from_clientid: 'c', topic: 'nobody', qos: 1, retain: false, payload: 'hello', payload_bytes: 5 },
          reason: 'no_subscribers'
        }
      );
      await stream.cancel();
      await client.disconnect();
    }
  });

  it('writes an event for each row of the catalogue', async () => {
    await using broker = await startBroker();
    const stream = new EventStreams(broker, 1).open({ names: EVENT_NAMES, payload: 'none' });
    await stream.next();
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe('a/#', { qos: 1 });
    await client.publish('a/b', 'x', { qos: 1 });
    await client.unsubscribe('a/#');
    await broker.access.banned.create({ kind: 'clientId', who: 'bad', until: Infinity });
    broker.alarms.raise({ id: 'hot' });
    broker.alarms.clear('hot');
    broker.failed(new Error('broken'), 'a test');
    await client.disconnect();
    await broker.stop();
    let text = '';
    for await (const part of stream) text += part;
    const events = eventsIn(text);
    const one = (name: string) => ({ ...events.find(({ event }) => event === name)?.data, at: 0 });
    assert.deepEqual(one('client.subscribe'), {
      at: 0,
      client: { clientid: 'c', proto_ver: 5, zone: 'external' },
      filter: 'a/#',
      options: { qos: 1, no_local: false, retain_as_published: false, retain_handling: 0 }
    });
    assert.deepEqual((one('message.acked') as { message?: unknown }).message, {
      from_clientid: 'c',
      topic: 'a/b',
      qos: 1,
      retain: false,
      payload_bytes: 1
    });
    assert.equal((one('client.banned') as { ban?: { until?: unknown } }).ban?.until, 'infinity');
    assert.deepEqual((one('error') as { error?: unknown }).error, { message: 'broken' });
    assert.equal(events.at(-1)?.event, 'broker.stopped');
    assert.deepEqual(
      events.map(({ id }) => Number(id)),
      events.map((_, at) => at + 1)
    );
  });

  it('limits events to a client and to a topic filter, and leaves other topics on the fast path', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const all = engineOf(broker).routing;
    const stream = await open(server.port, 'names=message.publish,client.connected&topic=a/%23&clientid=one');
    assert.deepEqual([all.of('a/b').isForRuns, all.of('b').isForRuns], [false, true]);
    const one = await broker.connect({ clientId: 'one' });
    const two = await broker.connect({ clientId: 'two' });
    for (const client of [two, one]) for (const topic of ['b', 'a/b']) await client.publish(topic, client.clientId);
    await one.publish('a/last', 'x', { qos: 1 });
    const events = await stream.next(3);
    assert.deepEqual(
      events.map(({ event, data }) => [event, (data.message as { topic: string } | undefined)?.topic]),
      [
        ['client.connected', undefined],
        ['message.publish', 'a/b'],
        ['message.publish', 'a/last']
      ]
    );
    await stream.cancel();
  });

  it('includes bans of the client id in the events about a client', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const stream = await open(server.port, 'names=client.banned,client.connected&clientid=one');
    const { banned } = broker.access;
    await broker.connect({ clientId: 'one' });
    await banned.create({ kind: 'username', who: 'one' });
    for (const who of ['two', 'one']) await banned.create({ kind: 'clientId', who });
    const events = await stream.next(2);
    assert.deepEqual(
      events.map(({ event, data }) => [event, (data.ban as { who: string } | undefined)?.who]),
      [
        ['client.connected', undefined],
        ['client.banned', 'one']
      ]
    );
    await stream.cancel();
  });

  it('shows no passwords, and no tokens that serve as user names', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const stream = await open(server.port, 'names=client.connect,client.connected');
    await broker.connect({ clientId: 'c', username: 'eyJhbGciOiJIUzI1NiJ9.e30.c2ln', password: 'a password' });
    const events = await stream.next(2);
    assert.deepEqual(
      events.map(({ data }) => (data.client as { username: string }).username),
      ['(token)', '(token)']
    );
    assert.doesNotMatch(JSON.stringify(events), /a password|eyJ/);
    await stream.cancel();
  });

  it('drops the oldest events for a slow reader, and reports their number', async () => {
    await using broker = await startBroker();
    const stream = new EventStreams(broker, 1).open({ names: ['message.dropped'], payload: 'none' });
    await stream.next();
    for (let number = 0; number < 3_500; number++) await broker.publish(`t/${number}`, 'x');
    let text = '';
    while (!text.includes('"t/3499"')) text += (await stream.next()).value;
    const events = eventsIn(text);
    assert.deepEqual(
      [events.length, events[0], events[1].id],
      [1_001, { id: undefined, event: 'dropped', data: { count: 2_500 } }, '2501']
    );
    await stream.return();
  });

  it('limits the memory of waiting events', async () => {
    await using broker = await startBroker();
    const stream = new EventStreams(broker, 1).open({ names: ['message.dropped'], payload: 'none' });
    await stream.next();
    const topic = 't'.repeat(60_000);
    for (let number = 0; number < 30; number++) await broker.publish(topic, 'x');
    let text = '';
    while (!text.includes('id: 30\n')) text += (await stream.next()).value;
    const [first, ...events] = eventsIn(text);
    assert.deepEqual(first.data, { count: 30 - events.length });
    assert.equal(events.length, 17);
    await stream.return();
  });

  it('sends a comment after five seconds without events', async () => {
    await using kit = await createTestBroker();
    const stream = new EventStreams(kit.broker, 1).open({ names: ['client.connected'], payload: 'none' });
    assert.match((await stream.next()).value, /^: .*\n\n$/);
    const next = stream.next();
    await kit.clock.advance(5_000);
    assert.deepEqual(await next, { done: false, value: ': heartbeat\n\n' });
    await stream.return();
  });

  it('ends the streams when the broker stops', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const silent = await open(server.port, 'names=client.ping');
    const stream = await open(server.port, 'names=broker.stopped');
    await broker.stop();
    assert.deepEqual(await silent.toEnd(), []);
    assert.deepEqual(
      (await stream.toEnd()).map(({ event }) => event),
      ['broker.stopped']
    );
    const { status, body, headers } = await server.call('GET', '/api/x/events');
    assert.deepEqual([status, body.code, headers.get('retry-after')], [503, 101, '5']);
  });

  it('limits the number of streams, each of which begins at once and releases its listeners when its reader disconnects', async () => {
    const mounts: readonly ((api: ManagementApi) => RequestListener | Promise<RequestListener>)[] = [
      (api) => api.node,
      (api) => express().use(api.node),
      (api) => new Koa().use(api.koa).callback(),
      async (api) => {
        const app = Fastify();
        app.register(api.fastify);
        await app.ready();
        return (request, response) => app.routing(request, response);
      }
    ];
    for (const mount of mounts) {
      await using broker = await startBroker();
      const api = managementApi(broker, { prefix: '/api', maxEventStreams: 2 });
      await using server = await serve(await mount(api));
      const first = await open(server.port, 'names=client.ping');
      const second = await open(server.port, 'names=client.ping');
      const refused = await server.call('GET', '/api/x/events');
      assert.deepEqual([refused.status, refused.body.code], [429, 102]);
      assert.match(refused.body.message, /maxEventStreams/);
      await first.cancel();
      await second.cancel();
      while (isHeard(broker, 'client.ping')) await nextTurn();
      const third = await open(server.port, 'names=client.ping');
      await third.cancel();
    }
  });

  it('streams events over the Fetch API until the reader ends the stream', async () => {
    await using broker = await startBroker();
    const api = managementApi(broker, { prefix: '/api', credentials: 'host' });
    const { body } = await api.fetch(new Request('http://host/api/x/events?names=client.connected,client.ping'));
    const stream = readerOf(body as ReadableStream<Uint8Array>);
    await broker.connect({ clientId: 'c' });
    assert.equal((await stream.next(1))[0].event, 'client.connected');
    await stream.cancel();
    assert.equal(isHeard(broker, 'client.ping'), false);
    const head = await api.fetch(new Request('http://host/api/x/events?names=client.ping', { method: 'HEAD' }));
    assert.deepEqual([head.status, isHeard(broker, 'client.ping')], [200, false]);
  });

  it('refuses a stream without credentials, with an unknown name, and with an invalid topic filter or payload form', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      assert.equal((await server.call('GET', '/api/x/events', undefined, {})).status, 401);
      for (const [query, code] of [
        ['names=client.connectd', 108],
        ['names=', 108],
        ['names=message.publish&topic=a/%23/b', 115],
        ['names=client.connected&topic=%23%23', 115],
        ['topic=', 115],
        ['payload=all', 108]
      ] as const) {
        const response = await fetch(`http://127.0.0.1:${server.port}/api/x/events?${query}`, {
          headers: { authorization: AUTHORIZATION }
        });
        assert.equal(response.status, 400, query); // otherwise the body of a stream would not end
        assert.equal(((await response.json()) as { code: number }).code, code, query);
      }
    }
    assert.equal(isHeard(broker, 'message.publish'), false);
  });
});
