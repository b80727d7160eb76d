import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { until } from '../support/until.ts';
import { connected, listener, Pair } from './pair.ts';

const BOTH = { out: [{ filter: 'out/#', qos: 2 }], in: [{ filter: 'in/#', qos: 2 }], hops: false } as const;

describe('A bridge', () => {
  it('forwards messages of every QoS to the remote server, with properties and in order', async () => {
    await using pair = await Pair.open(BOTH);
    const far = await listener(pair.far);
    const device = await pair.near.connect({ clientId: 'd' });
    const properties = { contentType: 'text/plain', userProperties: [['a', '1']] } as const;
    for (const qos of [0, 1, 2] as const) await device.publish('out/x', `q${qos}`, { qos, properties });
    await device.publish('other', 'no');
    for (const qos of [0, 1, 2]) {
      const message = await far.next();
      assert.equal(String(message.payload), `q${qos}`);
      assert.equal(message.topic, 'out/x');
      assert.equal(message.qos, qos);
      assert.equal(message.properties?.contentType, 'text/plain');
      assert.deepEqual(message.properties?.userProperties, [['a', '1']]);
    }
    assert.equal(pair.link.counters.sent, 3);
  });

  it('forwards messages of every QoS from the remote server', async () => {
    await using pair = await Pair.open(BOTH);
    const near = await listener(pair.near);
    const device = await pair.far.connect({ clientId: 'd' });
    for (const qos of [0, 1, 2] as const) await device.publish('in/x', `q${qos}`, { qos });
    for (const qos of [0, 1, 2]) {
      const message = await near.next();
      assert.equal(String(message.payload), `q${qos}`);
      assert.equal(message.qos, qos);
    }
    assert.equal(pair.link.counters.received, 3);
  });

  it('skips a topic that lacks a prefix, or would become empty, and continues', async () => {
    await using pair = await Pair.open({
      out: [{ filter: '#', qos: 2, localPrefix: 'home/' }],
      in: [{ filter: '#', qos: 2, remotePrefix: 'site/' }],
      hops: false
    });
    const far = await listener(pair.far);
    const near = await listener(pair.near);
    for (const qos of [0, 1, 2] as const)
      for (const topic of ['home', 'home/', 'home/x']) await pair.near.publish(topic, 'out', { qos });
    for (let n = 0; n < 3; n++) assert.equal((await far.next()).topic, 'x');
    for (const qos of [0, 1, 2] as const)
      for (const topic of ['site', 'site/', 'site/y']) await pair.far.publish(topic, 'in', { qos });
    const topics = new Set<string>();
    while (!topics.has('y') || pair.link.counters.received < 3) topics.add((await near.next()).topic);
    assert.equal(topics.has(''), false);
    assert.deepEqual([pair.link.counters.sent, pair.link.counters.received, pair.link.counters.dropped], [3, 3, 12]);
    assert.equal(pair.link.counters.connected, 1);
  });

  it('does not let the remote server publish to $SYS, and passes on refusals', async () => {
    await using pair = await Pair.open({ in: [{ filter: '#', qos: 1, remotePrefix: 'site/' }], hops: false });
    const near = await listener(pair.near, 'after');
    for (const topic of ['site/$SYS/brokers', 'site/$share/g/t', 'site/$delayed/x/t', 'site/$queue/t', 'site/after'])
      await pair.far.publish(topic, 'in', { qos: 1 });
    assert.equal((await near.next()).topic, 'after');
    assert.deepEqual([pair.link.counters.received, pair.link.counters.dropped], [4, 1]);
    assert.equal(pair.link.counters.connected, 1);
  });

  it('checks messages of the remote server with the schemas of this broker, and counts those that it drops', async () => {
    const schemas = { 'in/#': { type: 'object', required: ['t'] } };
    await using pair = await Pair.open(BOTH, { near: { schemas } });
    const near = await listener(pair.near, 'in/#');
    for (const qos of [0, 1, 2] as const)
      for (const payload of ['{"x":1}', `{"t":${qos}}`]) await pair.far.publish('in/x', payload, { qos });
    for (const qos of [0, 1, 2]) assert.equal(String((await near.next()).payload), `{"t":${qos}}`);
    assert.equal(pair.near.metrics.counter('messages.dropped.schema'), 3);
    assert.equal(pair.link.counters.connected, 1);
  });

  it('completes each acknowledgement at both sides', async () => {
    await using pair = await Pair.open(BOTH);
    const far = await listener(pair.far);
    const near = await listener(pair.near);
    for (let i = 0; i < 300; i++) {
      await pair.near.publish('out/x', `${i}`, { qos: (i % 3) as 0 | 1 | 2 });
      await pair.far.publish('in/x', `${i}`, { qos: (i % 3) as 0 | 1 | 2 });
    }
    const seen = { far: new Set<string>(), near: new Set<string>() };
    // a client sees its own broker's messages as well
    while (seen.far.size < 300) {
      const { topic, payload } = await far.next();
      if (topic === 'out/x') seen.far.add(String(payload));
    }
    while (seen.near.size < 300) {
      const { topic, payload } = await near.next();
      if (topic === 'in/x') seen.near.add(String(payload));
    }
    await until(() => pair.link.size === 0);
    const session = pair.near.sessions.get('$bridge/default');
    await until(() => session.flights().awaitingRel.length === 0);
    assert.deepEqual(session.flights().inflight, []);
  });

  it('keeps messages while the remote server is down, and sends them when it is back', async () => {
    await using pair = await Pair.open(BOTH);
    const { port } = new URL(pair.url);
    await pair.far.stop();
    await pair.near.publish('out/x', '1', { qos: 1 });
    await pair.near.publish('out/x', '2', { qos: 2 });
    assert.equal(pair.link.size, 2);
    assert.equal(pair.link.state, 'disconnected');
    const { server } = await import('./pair.ts');
    const back = await server({}, Number(port));
    pair.far = back.broker;
    const far = await listener(pair.far);
    assert.equal(String((await far.next()).payload), '1');
    assert.equal(String((await far.next()).payload), '2');
    await connected(pair.near, pair.link);
    assert.equal(pair.link.lastError, undefined);
  });

  it('maps topics by prefixes', async () => {
    await using pair = await Pair.open({
      out: [{ filter: 'a/#', localPrefix: 'here/', remotePrefix: 'site/' }],
      in: [{ filter: '+/b', localPrefix: 'there/', remotePrefix: 'all/' }]
    });
    const far = await listener(pair.far, 'site/#');
    const near = await listener(pair.near, 'there/#');
    await pair.near.publish('here/a/1', 'x');
    await pair.far.publish('all/x/b', 'y');
    assert.equal((await far.next()).topic, 'site/a/1');
    assert.equal((await near.next()).topic, 'there/x/b');
  });

  it('does not echo messages if both directions have the same filter', async () => {
    await using pair = await Pair.open({ out: [{ filter: '#', qos: 1 }], in: [{ filter: '#', qos: 1 }] });
    const far = await listener(pair.far);
    const near = await listener(pair.near);
    await pair.near.publish('x', '1', { qos: 1 });
    await pair.far.publish('x', '2', { qos: 1 });
    await pair.near.publish('x', 'end', { qos: 1 });
    const received = { far: [] as string[], near: [] as string[] };
    for (const [name, side] of [
      ['far', far],
      ['near', near]
    ] as const)
      for (let payload = ''; payload !== 'end'; received[name].push(payload))
        payload = String((await side.next()).payload);
    assert.deepEqual(received.far.sort(), ['1', '2', 'end']);
    assert.deepEqual(received.near.filter((text) => text !== '2').sort(), ['1', 'end']);
  });

  it('cannot lose its session to a client with the same client id', async () => {
    await using pair = await Pair.open(BOTH);
    await assert.rejects(pair.near.connect({ clientId: '$bridge/default' }), { code: 'CONNECT_REFUSED' });
    assert.equal(pair.link.state, 'connected');
  });
});
