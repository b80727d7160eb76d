import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encode } from '../../lib/packets/encode.ts';
import { Peer, turns } from '../fuzz/wire.ts';
import { client, connect, isServed, startTestBed, subscribe } from './support.ts';

/** Encodes a CONNECT with a will to this topic, without checking it. */
function withWill(version: 4 | 5, topic: string): Buffer {
  const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: true };
  const good = encode(connect({ version, clientId: `w${version}`, will }), version);
  const at = good.indexOf('will');
  const body = Buffer.concat([good.subarray(2, at - 2), text(topic), good.subarray(at + 4)]);
  return Buffer.concat([Buffer.from([0x10, body.length]), body]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

describe('A will', () => {
  for (const version of [4, 5] as const) {
    for (const topic of ['', '#', '+', 'a/+/b', 'a/#', 'a\u0000']) {
      it(`refuses a will to ${JSON.stringify(topic)} with its CONNECT, version ${version}`, async () => {
        await using it = await startTestBed();
        const peer = new Peer(it.broker, version);
        peer.say(withWill(version, topic));
        await turns(2);
        assert.ok(peer.isClosed);
        const [answer] = peer.take();
        if (version === 5) assert.ok(answer.cmd === 'connack' && answer.reasonCode >= 0x80);
        assert.ok(!it.broker.sessions.has(`w${version}`));
        assert.deepEqual(it.failures, []);
      });
    }

    for (const topic of ['$SYS/brokers', '$SYS', '$SYS/brokers/embermq@127.0.0.1/version']) {
      it(`delivers a will to ${topic} to no client, version ${version}`, async () => {
        await using it = await startTestBed();
        const { broker, failures } = it;
        const observer = await client(broker);
        observer.say(subscribe(1, 1, '$SYS/#', '#'));
        await turns(2);
        observer.take();
        const dropped: string[] = [];
        broker.on('message.dropped', ({ reason, message }) => dropped.push(`${message.topic} ${reason}`));
        const before = await retained(broker);
        const will = { topic, payload: Buffer.from('gone'), qos: 1 as const, retain: true };
        const peer = await client(broker, { version, will });
        peer.wire.destroy();
        await turns(3);
        assert.ok(observer.take().every((packet) => packet.cmd !== 'publish' || packet.payload.toString() !== 'gone'));
        assert.deepEqual(await retained(broker), before);
        assert.deepEqual(dropped, [`${topic} not_authorized`]);
        assert.ok(await isServed(observer));
        assert.deepEqual(failures, []);
      });
    }
  }

  it('applies the rules of the inner topic to a will to a delayed topic', async () => {
    await using it = await startTestBed();
    const { broker, failures, pass } = it;
    const observer = await client(broker);
    observer.say(subscribe(1, 1, '#', '$SYS/#'));
    await turns(2);
    for (const topic of [
      '$delayed/1/$SYS/a',
      '$delayed/1/$delayed/1/a',
      '$delayed/x/a',
      '$delayed/1/',
      '$delayed/99999999999/a',
      '$delayed/1/good'
    ]) {
      const will = { topic, payload: Buffer.from('gone'), qos: 0 as const, retain: false };
      const peer = await client(broker, { will });
      peer.wire.destroy();
    }
    await turns(2);
    observer.take();
    await pass(2_000);
    const heard = observer.take().flatMap((packet) => (packet.cmd === 'publish' ? [packet.topic] : []));
    assert.deepEqual(
      heard.filter((topic) => !topic.startsWith('$SYS/brokers')),
      ['good']
    );
    assert.deepEqual(failures, []);
  });

  it('delivers the will of each of 1,000 clients that disconnect together to every subscriber once', async () => {
    await using it = await startTestBed();
    const observer = await client(it.broker);
    observer.say(subscribe(1, 1, 'gone/+'));
    await turns(2);
    observer.take();
    const peers = Array.from({ length: 1_000 }, (_, at) => {
      const peer = new Peer(it.broker, 5);
      const will = { topic: `gone/${at}`, payload: Buffer.from(''), qos: 1 as const, retain: false };
      peer.say(connect({ will }));
      return peer;
    });
    await turns(2);
    for (const peer of peers) peer.wire.destroy();
    const topics = new Set<string>();
    for (let turn = 0; turn < 40; turn++) {
      await turns(1);
      for (const packet of observer.take()) {
        if (packet.cmd !== 'publish') continue;
        assert.ok(!topics.has(packet.topic));
        topics.add(packet.topic);
        observer.say({ cmd: 'puback', messageId: packet.messageId as number, reasonCode: 0 });
      }
    }
    assert.equal(topics.size, 1_000);
  });
});

async function retained(broker: Awaited<ReturnType<typeof startTestBed>>['broker']): Promise<string[]> {
  const topics: string[] = [];
  for (const filter of ['#', '$SYS/#'])
    for await (const { topic, payload } of broker.retained.match(filter)) topics.push(`${topic} ${payload}`);
  return topics;
}
