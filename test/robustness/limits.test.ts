import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { Packet } from '../../lib/packets/types.ts';
import { Peer, quiet, turns } from '../fuzz/wire.ts';
import { client, connect, isServed, payloads, publish, startTestBed, subscribe } from './support.ts';

async function topics(broker: Broker): Promise<string[]> {
  const found: string[] = [];
  for await (const { topic } of broker.retained.match('#')) found.push(topic);
  return found;
}

function kept(topic: string, payload: string | Buffer): Packet {
  return { ...publish(topic, payload), retain: true } as Packet;
}

describe('Quotas', () => {
  it('limits the number and the bytes of retained messages, and still updates existing topics', async () => {
    await using it = await startTestBed({
      maxRetainedMessages: 100,
      maxRetainedBytes: '1MB',
      maxRetainedPayloadSize: '100KB'
    });
    const { broker } = it;
    const publisher = await client(broker);
    const observer = await client(broker);
    observer.say(subscribe(1, 0, 'many/#', 'large/#'));
    await turns(2);
    observer.take();
    for (let at = 0; at < 1_000; at++) publisher.say(kept(`many/${at}`, 'x'));
    await quiet(publisher);
    assert.ok((await topics(broker)).length <= 100);
    assert.equal(payloads(observer).length, 1_000, 'messages that are not retained are delivered');
    publisher.say(kept('many/1', 'changed'));
    for (let at = 0; at < 100; at++) publisher.say(kept(`many/${at}`, ''));
    await quiet(publisher);
    const rest = (await topics(broker)).filter((topic) => topic.startsWith('many/'));
    assert.deepEqual(rest, [], 'an empty message makes room');
    for (let at = 0; at < 100; at++) publisher.say(kept(`large/${at}`, Buffer.alloc(50_000)));
    publisher.say(kept('large/huge', Buffer.alloc(110_000)));
    await quiet(publisher);
    const large = (await topics(broker)).filter((topic) => topic.startsWith('large/'));
    assert.ok(large.length <= 20 && large.length >= 15, `${large.length} of 50 KB in 1 MB`);
    assert.ok(!large.includes('large/huge'));
    assert.ok(await isServed(publisher));
  });

  it("reports messages that are not retained, and does not count the broker's own $SYS messages", async () => {
    await using it = await startTestBed({ maxRetainedMessages: 2, maxRetainedPayloadSize: 5 });
    const { broker } = it;
    const dropped: string[] = [];
    broker.on('message.dropped', ({ message, reason, client }) =>
      dropped.push(`${message.topic} ${reason} ${client?.clientId}`)
    );
    const observer = await client(broker);
    observer.say(subscribe(1, 0, '#'));
    await turns(2);
    observer.take();
    const publisher = await client(broker);
    for (const topic of ['a', 'b', 'c', 'a']) publisher.say(kept(topic, topic));
    publisher.say(kept('b', 'larger'));
    await turns(2);
    assert.deepEqual(
      payloads(observer),
      ['a', 'b', 'c', 'a', 'larger'],
      'messages that are not retained are delivered'
    );
    assert.deepEqual(await topics(broker), ['a'], 'an outdated message is removed');
    assert.deepEqual(dropped, ['c not_retained undefined', 'b not_retained undefined']);
    const { metrics } = broker;
    assert.equal(metrics.counter('messages.not_retained'), 2);
    assert.equal(metrics.counter('messages.dropped'), 0);
    assert.equal(metrics.gauge('retained'), 1 + 3, 'the messages of $SYS are retained');
  });

  it('limits the filters of a session and of all sessions', async () => {
    await using it = await startTestBed({ maxSubscriptions: 100, maxTotalSubscriptions: 250 });
    const { broker } = it;
    const granted: number[] = [];
    for (let at = 0; at < 4; at++) {
      const peer = await client(broker, { clientId: `q${at}` });
      peer.say(subscribe(1, 0, ...Array.from({ length: 1_000 }, (_, filter) => `f/${filter}`)));
      await turns(3);
      const [answer] = peer.take();
      const codes = answer.cmd === 'suback' ? answer.granted : [];
      assert.equal(codes.length, 1_000);
      assert.ok(codes.every((code) => code === 0 || code === 0x97));
      granted.push(codes.filter((code) => code === 0).length);
    }
    assert.deepEqual(granted, [100, 100, 50, 0]);
    broker.sessions.get('q0').kick();
    await turns(2);
    const peer = await client(broker);
    peer.say(subscribe(1, 0, 'room'));
    await turns(2);
    const [answer] = peer.take();
    assert.deepEqual(answer.cmd === 'suback' && answer.granted, [0]);
  });
});

describe('Rates', () => {
  for (const [name, options] of [
    ['publishLimit', { publishLimit: '100,1s' }],
    ['rateLimit', { rateLimit: '1000,1s' }]
  ] as const) {
    it(`pauses reading above ${name}, resumes it in time, and keeps the order`, async () => {
      await using it = await startTestBed({ zones: { slow: options } });
      const { broker, pass, failures } = it;
      const observer = await client(broker);
      observer.say(subscribe(1, 0, 'a'));
      await turns(2);
      observer.take();
      const publisher = new Peer(broker, 5, { meta: { transport: 'stream', zone: 'slow' } });
      publisher.say(connect({ keepalive: 5 }));
      await turns(2);
      // ten bytes each
      for (let at = 0; at < 600; at++) publisher.say(publish('a', String(at).padStart(4, '0')));
      await turns(2);
      const heard = payloads(observer);
      assert.ok(heard.length <= 110, `${heard.length} at once`);
      assert.ok(publisher.wire.readableLength > 0, 'the rest is unread');
      assert.ok(await isServed(observer), 'other clients are served');
      let seconds = 0;
      for (; heard.length < 600 && seconds < 20; seconds++) {
        const before = heard.length;
        await pass(1_000);
        heard.push(...payloads(observer));
        assert.ok(heard.length - before <= 210, `${heard.length - before} in one second`);
      }
      assert.ok(seconds >= 4 && seconds <= 7, `after ${seconds} s`);
      assert.deepEqual(
        heard,
        Array.from({ length: 600 }, (_, at) => String(at).padStart(4, '0'))
      );
      publisher.say({ cmd: 'pingreq' });
      await pass(2_000);
      assert.ok(
        publisher.take().some(({ cmd }) => cmd === 'pingresp'),
        'the keep alive timeout was paused'
      );
      assert.deepEqual(failures, []);
    });
  }
});

describe('Memory above memoryHighWatermark', () => {
  it('accepts no new client and no QoS 0 into backlogs until it is below the limit again', async () => {
    let used = 0;
    await using it = await startTestBed({ memoryHighWatermark: '100MB', memoryUsage: () => used });
    const { broker, pass, failures } = it;
    const publisher = await client(broker);
    const options = { version: 4, clientId: 'away', clean: false } as const;
    const away = await client(broker, options);
    away.say(subscribe(1, 1, 'a'));
    await turns(2);
    away.wire.leave();
    await turns(2);
    for (const qos of [0, 1] as const) publisher.say(publish('a', `before ${qos}`, qos, qos > 0 ? 1 : undefined));
    await turns(1);
    assert.equal(broker.sessions.get('away').counters().mqueueLen, 2);
    used = 105_000_000;
    await pass(1_100);
    assert.deepEqual(
      failures.map(({ error }) => (error as { code?: string }).code),
      ['MEMORY_SHORT']
    );
    assert.equal(broker.sessions.get('away').counters().mqueueLen, 1, 'QoS 0 messages are dropped');
    for (const qos of [0, 1] as const) publisher.say(publish('a', `during ${qos}`, qos, qos > 0 ? 2 : undefined));
    await turns(1);
    assert.equal(broker.sessions.get('away').counters().mqueueLen, 2);
    const refused = await client(broker);
    const [answer] = refused.received;
    assert.ok(answer.cmd === 'connack' && answer.reasonCode === 0x89);
    assert.ok(await isServed(publisher), 'a connected client is served');
    used = 100_000_000;
    await pass(1_100);
    assert.ok((await client(broker)).isClosed, 'memory is not far enough below the limit');
    used = 50_000_000;
    await pass(1_100);
    assert.ok(await isServed(await client(broker)));
    const back = await client(broker, options);
    const heard = back.received.flatMap((packet) => (packet.cmd === 'publish' ? [packet.payload.toString()] : []));
    assert.deepEqual(heard, ['before 1', 'during 1']);
    assert.equal(failures.length, 1);
  });
});
