import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { type MessageFollower, memoryStore } from 'embermq';
import { observeMetrics, observeSpans, type SpansOptions } from 'embermq/management';
import { webhook } from 'embermq/webhook';
import { engineOf } from '../../lib/broker/broker.ts';
import { createTestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';
import { RecordingTracer } from '../support/recording-tracer.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SAMPLED = `00-${TRACE_ID}-b7ad6b7169203331-01`;
const NOT_SAMPLED = `00-${TRACE_ID}-b7ad6b7169203331-00`;

const traced = (traceparent: string, ...others: [string, string][]) => ({
  properties: { userProperties: [...others, ['traceparent', traceparent]] as [string, string][] }
});

async function setUp(options?: SpansOptions, brokerOptions: TestBrokerOptions = {}) {
  const kit = await createTestBroker({ allowAnonymous: true, ...brokerOptions });
  const tracer = new RecordingTracer();
  const stop = observeSpans(kit.broker, tracer, { sample: 0, ...options });
  return { kit, tracer, stop, [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]() };
}

type Properties = { readonly userProperties?: readonly (readonly [string, string])[] } | undefined;
const parentIn = (properties: Properties) =>
  properties?.userProperties?.filter(([name]) => name === 'traceparent').map(([, value]) => value) ?? [];

function close(server: Server): void {
  server.closeAllConnections();
  server.close();
}

describe('observeSpans', () => {
  it('traces a message with a sampled traceparent, and lets its receiver continue the trace', async () => {
    await using rig = await setUp();
    const { kit, tracer } = rig;
    const receiver = await kit.connect({ clientId: 'receiver' });
    const got: Properties[] = [];
    await receiver.subscribe('a/+', { qos: 1 }, ({ properties }) => got.push(properties));
    const device = await kit.connect({ clientId: 'device' });
    const others: [string, string][] = [
      ['unit', 'C'],
      ['tracestate', 'x=1,y=2']
    ];
    await device.publish('a/b', 'hello', { qos: 1, ...traced(SAMPLED, ...others) });
    await kit.clock.settle();
    const [publish, route, deliver] = ['publish', 'route', 'deliver'].map((name) => tracer.one(name));
    assert.deepEqual(
      [publish, route, deliver].map(({ parent }) => [parent?.traceId, parent?.spanId]),
      [
        [TRACE_ID, 'b7ad6b7169203331'],
        [TRACE_ID, publish.spanContext().spanId],
        [TRACE_ID, publish.spanContext().spanId]
      ]
    );
    assert.deepEqual([publish.kind, route.kind, deliver.kind], [4, 0, 3]);
    assert.deepEqual(publish.attributes, {
      'messaging.system': 'mqtt',
      'messaging.operation.name': 'publish',
      'messaging.operation.type': 'receive',
      'messaging.destination.name': 'a/b',
      'messaging.client.id': 'device',
      'messaging.message.body.size': 5,
      'messaging.message.envelope.size': publish.attributes['messaging.message.envelope.size'],
      'embermq.node': kit.broker.settings.node,
      'embermq.qos': 1,
      'embermq.retain': false
    });
    assert.equal(deliver.attributes['messaging.client.id'], 'receiver');
    assert.equal(deliver.attributes['messaging.destination.subscription.name'], 'a/+');
    assert.equal(deliver.attributes['embermq.delivery.outcome'], 'acknowledged');
    assert.deepEqual(deliver.events, ['sent']);
    assert.equal(route.attributes['embermq.receivers'], 1);
    assert.ok(tracer.spans.every(({ endMs }) => endMs !== undefined));
    assert.deepEqual(got[0]?.userProperties, [
      ['unit', 'C'],
      ['traceparent', `00-${TRACE_ID}-${deliver.spanContext().spanId}-01`],
      ['tracestate', 'x=1,y=2']
    ]);
  });

  it('neither traces nor changes other messages', async () => {
    await using rig = await setUp({ filter: 'a/#' });
    const { kit, tracer } = rig;
    const receiver = await kit.connect();
    const got: Properties[] = [];
    await receiver.subscribe('#', (message) => got.push(message.properties));
    const device = await kit.connect();
    const malformed = ['00-x', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, `ff-${SAMPLED.slice(3)}`, `${SAMPLED}-x`];
    const cases = [NOT_SAMPLED, ...malformed].map((parent) => ({ topic: 'a/b', options: traced(parent) }));
    cases.push(
      { topic: 'b/c', options: traced(SAMPLED) },
      { topic: 'a/b', options: traced(SAMPLED, ['traceparent', SAMPLED]) }
    );
    for (const { topic, options } of cases) await device.publish(topic, 'x', options);
    await device.publish('a/b', 'x');
    await kit.clock.settle();
    assert.deepEqual(got, [...cases.map(({ options }) => options.properties), {}]);
    assert.deepEqual(tracer.spans, []);
  });

  it('traces the portion of the other messages that the option sample is', async () => {
    await using rig = await setUp({ sample: 1 });
    const { kit, tracer } = rig;
    const receiver = await kit.connect();
    const got: Properties[] = [];
    await receiver.subscribe('a', (message) => got.push(message.properties));
    const device = await kit.connect({ protocolVersion: 4 });
    await device.publish('a', 'x');
    await kit.clock.settle();
    const { traceId } = tracer.one('publish').spanContext();
    assert.equal(tracer.one('publish').parent, undefined);
    assert.deepEqual(parentIn(got[0]), [`00-${traceId}-${tracer.one('deliver').spanContext().spanId}-01`]);
    assert.equal(tracer.one('deliver').attributes['embermq.delivery.outcome'], 'written');
    tracer.isOn = false; // a sampler of the tracer refuses it
    await device.publish('a', 'x');
    await kit.clock.settle();
    assert.deepEqual(parentIn(got[1]), []);
    assert.equal(tracer.named('route').length, 1);
    assert.throws(() => observeSpans(kit.broker, tracer, { sample: 2 }), { code: 'OPTION_INVALID' });
    assert.throws(() => observeSpans(kit.broker, tracer, { filter: 'a/#/b' }), { code: 'TOPIC_FILTER_INVALID' });
  });

  it('takes only the observed topics from the fast path, and no topic after it has stopped', async () => {
    await using rig = await setUp({ filter: 'a/#' });
    const { routing, publishing, services } = engineOf(rig.kit.broker);
    const state = () => [routing.of('a/b').isForRuns, routing.of('b').isForRuns, publishing.hooks.isFastPathOpen];
    assert.deepEqual(state(), [false, true, true]);
    assert.equal(routing.of('b').mustDecide, false);
    const { heard } = services.events;
    assert.deepEqual(
      [heard['message.publish'], heard['message.delivered'], heard['message.acked']],
      [false, false, false]
    );
    assert.equal(services.hooks.publish.length + services.hooks.deliver.length, 0);
    rig.stop();
    assert.deepEqual(state(), [true, true, true]);
    assert.equal(services.events.heard['message.dropped'], false);
    const device = await rig.kit.connect();
    await device.publish('a/b', 'x', traced(SAMPLED));
    assert.deepEqual(rig.tracer.spans, []);
  });

  it('measures the times of spans with the clock of the broker', async () => {
    await using rig = await setUp();
    const { kit, tracer } = rig;
    kit.broker.hook(
      'publish',
      () => new Promise<undefined>((resolve) => kit.clock.setTimeout(() => resolve(undefined), 250))
    );
    const receiver = await kit.connect({ clientId: 'receiver' });
    await receiver.subscribe('a', { qos: 1 });
    kit.link('receiver').halfOpen();
    const device = await kit.connect();
    const start = kit.clock.now();
    const published = device.publish('a', 'x', { qos: 1, ...traced(SAMPLED) });
    await kit.clock.advance(250);
    await published;
    await kit.clock.advance(750);
    kit.link('receiver').cut();
    await kit.clock.settle();
    const timesOf = (name: string) => {
      const { startMs, endMs } = tracer.one(name);
      return [startMs - start, endMs === undefined ? undefined : endMs - start];
    };
    assert.deepEqual(
      [timesOf('publish'), timesOf('route'), timesOf('deliver')],
      [
        [0, 250],
        [250, 250],
        [250, 1000]
      ]
    );
    assert.equal(tracer.one('deliver').attributes['embermq.delivery.outcome'], 'disconnected');
  });

  it('reports messages that are refused, dropped, queued, or without subscribers', async () => {
    await using rig = await setUp({}, { hooks: { publish: ({ message }) => message.topic !== 'refused' } });
    const { kit, tracer } = rig;
    const device = await kit.connect();
    const outcome = async (topic: string) => {
      tracer.spans.length = 0;
      await device.publish(topic, 'x', { qos: 1, ...traced(SAMPLED) }).catch(() => undefined);
      await kit.clock.settle();
      assert.ok(
        tracer.spans.every(({ endMs }) => endMs !== undefined),
        topic
      );
      return tracer.spans.map(({ name, status, attributes }) => [
        name,
        status?.code,
        attributes['error.type'] ?? attributes['embermq.drop.reason'] ?? attributes['embermq.delivery.outcome']
      ]);
    };
    assert.deepEqual(await outcome('refused'), [['publish', 2, 'not_authorized']]);
    assert.deepEqual(await outcome('unheard'), [
      ['publish', undefined, 'no_subscribers'],
      ['route', undefined, undefined]
    ]);
    const small = await kit.connect({ properties: { maximumPacketSize: 30 } });
    await small.subscribe('small/and/a/long/topic/name', { qos: 1 });
    assert.deepEqual(await outcome('small/and/a/long/topic/name'), [
      ['publish', undefined, undefined],
      ['route', undefined, undefined],
      ['deliver', 2, 'too_large']
    ]);
    const away = await kit.connect({ clientId: 'away', properties: { sessionExpiryInterval: 60 } });
    await away.subscribe('queued', { qos: 1 });
    await away.disconnect();
    assert.deepEqual((await outcome('queued')).at(-1), ['deliver', undefined, 'stored']);
    const unsubscribe = kit.broker.subscribe('handled', () => undefined);
    assert.deepEqual((await outcome('handled')).at(-1), ['deliver', undefined, 'handled']);
    unsubscribe();
  });

  it('sends a message as it was published if the trace context would make it too large for a receiver', async () => {
    await using rig = await setUp({ sample: 1 });
    const { kit, tracer } = rig;
    const small = await kit.connect({ properties: { maximumPacketSize: 64 } });
    const got: Properties[] = [];
    await small.subscribe('a', { qos: 1 }, ({ properties }) => got.push(properties));
    const device = await kit.connect();
    await device.publish('a', 'x', { qos: 1 });
    await kit.clock.settle();
    assert.deepEqual(got, [{}]);
    assert.equal(tracer.one('deliver').attributes['embermq.delivery.outcome'], 'acknowledged');
  });

  it('continues the trace through the store, a delay and a retained message', async () => {
    await using rig = await setUp({}, { store: memoryStore() });
    const { kit, tracer } = rig;
    const got: string[] = [];
    const options = { clientId: 'away', clean: false, properties: { sessionExpiryInterval: 600 } };
    const away = await kit.connect(options);
    await away.subscribe('q', { qos: 1 });
    await away.disconnect();
    const device = await kit.connect();
    await device.publish('q', 'x', { qos: 1, ...traced(SAMPLED) });
    await kit.clock.settle();
    const stored = tracer.one('deliver').spanContext().spanId;
    const back = await kit.connect(options);
    back.on('message', (message) => got.push(...parentIn(message.properties)));
    await kit.clock.settle();
    assert.deepEqual(got.splice(0), [`00-${TRACE_ID}-${stored}-01`]);
    tracer.spans.length = 0;
    await back.subscribe('r', { qos: 1 });
    await device.publish('$delayed/5/r', 'x', { qos: 1, retain: true, ...traced(SAMPLED) });
    await kit.clock.settle();
    assert.deepEqual(
      tracer.spans.map(({ name, endMs }) => [name, endMs !== undefined]),
      [['publish', true]]
    );
    await kit.clock.advance(5000);
    const [first, second] = tracer.named('publish');
    assert.equal(second.parent?.spanId, first.spanContext().spanId);
    assert.deepEqual(got, [`00-${TRACE_ID}-${tracer.one('deliver').spanContext().spanId}-01`]);
    const late = await kit.connect();
    const retained: string[] = [];
    await late.subscribe('r', (message) => retained.push(...parentIn(message.properties)));
    await kit.clock.settle();
    assert.deepEqual(retained, [`00-${TRACE_ID}-${second.spanContext().spanId}-01`]);
  });

  it('gives rules a span, and the messages that they publish', async () => {
    await using rig = await setUp();
    const { kit, tracer } = rig;
    const action = { name: 'republish', params: { target_topic: 'out', target_qos: 0, payload_tmpl: '1' } };
    await kit.broker.rules.create({ id: 'r', sql: 'SELECT * FROM "in"', actions: [action] });
    await kit.broker.publish('in', 'x', traced(SAMPLED));
    await kit.clock.settle();
    const rule = tracer.one('rule');
    const [first, second] = tracer.named('publish');
    assert.equal(rule.attributes['embermq.rule.id'], 'r');
    assert.equal(rule.parent?.spanId, first.spanContext().spanId);
    assert.equal(second.attributes['messaging.destination.name'], 'out');
    assert.equal(second.parent?.spanId, rule.spanContext().spanId);
  });

  it('gives the events of webhooks a span, and their requests its trace context', async (t) => {
    await using rig = await setUp({ filter: 'a' }, { leaks: 'ignore' });
    const { kit, tracer } = rig;
    const seen: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.traceparent as string | undefined);
      response.end();
    }).listen(0, '127.0.0.1');
    t.after(() => close(server));
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const hook = webhook(kit.broker, { url: `http://127.0.0.1:${port}/`, rules: [{ event: 'message.publish' }] });
    for (const topic of ['a', 'b']) await kit.broker.publish(topic, 'x', traced(SAMPLED));
    await kit.broker.publish('a', 'x');
    await hook.idle();
    const span = tracer.one('webhook');
    assert.deepEqual([span.kind, span.parent?.spanId], [2, tracer.one('publish').spanContext().spanId]);
    assert.deepEqual([span.attributes['server.address'], span.attributes['server.port']], ['127.0.0.1', port]);
    assert.deepEqual(seen.sort(), [`00-${TRACE_ID}-${span.spanContext().spanId}-01`, undefined, undefined]);
    assert.equal(span.status, undefined);
    assert.ok(span.endMs !== undefined);
    close(server);
    await once(server, 'close');
    await kit.broker.publish('a', 'x', traced(SAMPLED));
    hook.close();
    const [, dropped] = tracer.named('webhook');
    assert.equal(dropped.attributes['error.type'], 'closed');
    assert.ok(dropped.endMs !== undefined);
  });

  it('leaves out entries of tracestate that are not valid, so that no publisher can break or extend a request', async (t) => {
    await using rig = await setUp({ filter: 'a' });
    const { kit } = rig;
    const seen: unknown[] = [];
    const server = createServer((request, response) => {
      seen.push([request.headers.tracestate, request.headers.evil]);
      response.end();
    }).listen(0, '127.0.0.1');
    t.after(() => close(server));
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const hook = webhook(kit.broker, { url: `http://127.0.0.1:${port}/`, rules: [{ event: 'message.publish' }] });
    const long = Array.from({ length: 40 }, (_, at) => `k${at}=v`).join();
    for (const state of ['x=1,y=2\r\nevil: 1,é=3,z=ü,=,q', 'x=1\r\n\r\nGET / HTTP/1.1', long]) {
      await kit.broker.publish('a', 'x', traced(SAMPLED, ['tracestate', state]));
      await hook.idle();
    }
    assert.deepEqual(seen, [
      ['x=1', undefined],
      [undefined, undefined],
      [undefined, undefined]
    ]);
  });

  it('bounds the spans of a message with many receivers', async () => {
    await using rig = await setUp();
    const { kit, tracer } = rig;
    const parents: string[] = [];
    for (let at = 0; at < 110; at++) {
      const receiver = await kit.connect();
      await receiver.subscribe('a', (message) => parents.push(...parentIn(message.properties)));
    }
    await kit.broker.publish('a', 'x', traced(SAMPLED));
    await kit.clock.settle();
    assert.equal(tracer.named('deliver').length, 100);
    assert.equal(parents.length, 110);
    const published = `00-${TRACE_ID}-${tracer.one('publish').spanContext().spanId}-01`;
    assert.equal(parents.filter((parent) => parent === published).length, 10);
  });
});

describe('broker.monitor.follow', () => {
  it('follows each of two deliveries to one client, also if both are of the message as it was published', async () => {
    await using kit = await createTestBroker({ allowAnonymous: true });
    const stages: [filter: string, stage: string][] = [];
    const delivering = (_: string | undefined, filter: string) => ({
      userProperties: [],
      reached: (stage: string) => stages.push([filter, stage])
    });
    const userProperties = [['p', 'x'.repeat(64)]] as const;
    kit.broker.monitor.follow('a', {
      accepted: () => ({ userProperties, routing: () => ({ rule: (_, run) => run(), delivering, routed: () => {} }) })
    });
    const small = await kit.connect({ properties: { maximumPacketSize: 64 } });
    const got: string[] = [];
    small.on('message', ({ payload }) => got.push(payload.toString()));
    await small.subscribe(['a', '$share/group/a'], { qos: 1 });
    await kit.broker.publish('a', 'x', { qos: 1 });
    await kit.clock.settle();
    assert.deepEqual(got, ['x', 'x']);
    assert.deepEqual(
      stages.filter(([, stage]) => stage === 'acknowledged').map(([filter]) => filter),
      ['a', '$share/group/a']
    );
  });

  it('delivers messages also if a follower throws', async () => {
    await using kit = await createTestBroker({ allowAnonymous: true });
    const errors: string[] = [];
    kit.broker.on('error', ({ during }) => errors.push(during));
    const fault = (): never => {
      throw new Error('fault');
    };
    let follower: MessageFollower = { accepted: fault };
    kit.broker.monitor.follow('a', { accepted: (message) => follower.accepted(message) });
    const receiver = await kit.connect();
    let count = 0;
    await receiver.subscribe('a', { qos: 1 }, () => count++);
    const sent = { userProperties: [], reached: fault };
    const followers: MessageFollower[] = [
      follower,
      { accepted: () => ({ userProperties: [], routing: fault }) },
      { accepted: () => ({ userProperties: [], routing: () => ({ rule: fault, delivering: fault, routed: fault }) }) },
      {
        accepted: () => ({
          userProperties: [],
          routing: () => ({ rule: fault, delivering: () => sent, routed: fault })
        })
      }
    ];
    for (follower of followers) assert.deepEqual(await kit.broker.publish('a', 'x', { qos: 1 }), { receivers: 1 });
    await kit.clock.settle();
    assert.equal(count, 4);
    assert.deepEqual(new Set(errors), new Set(['following a message']));
  });

  it('refuses a value that is not a tracer, and observeMetrics one that is not a meter', async () => {
    await using kit = await createTestBroker();
    assert.throws(() => observeSpans(kit.broker, {} as never), { code: 'OPTION_INVALID', field: 'tracer' });
    assert.throws(() => observeMetrics(kit.broker, {} as never), { code: 'OPTION_INVALID', field: 'meter' });
  });
});
