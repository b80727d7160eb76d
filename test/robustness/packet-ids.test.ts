import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Metric } from '../../lib/events/metrics.ts';
import type { Packet } from '../../lib/packets/types.ts';
import { quiet, turns } from '../fuzz/wire.ts';
import { IS_LONG } from '../support/samples.ts';
import { client, isServed, memory, publish, startTestBed, subscribe } from './support.ts';

describe('65,535 QoS 2 packet ids without PUBREL', () => {
  for (const version of IS_LONG ? ([4, 5] as const) : ([5] as const)) {
    it(`remembers all packet ids in little memory, version ${version}`, async () => {
      await using it = await startTestBed();
      const { broker } = it;
      const observer = await client(broker);
      observer.say(subscribe(1, 0, 'a'));
      const publisher = await client(broker, { version, clientId: 'ids', clean: false });
      const before = memory();
      const answers = { pubrec: 0, other: 0 };
      const read = () => {
        for (const { cmd } of publisher.take()) answers[cmd === 'pubrec' ? 'pubrec' : 'other']++;
        publisher.received.length = 0;
        observer.take();
        observer.received.length = 0;
      };
      const say = async (dup: boolean) => {
        for (let id = 1; id <= 65_535; id++) {
          publisher.say({ ...publish('a', '', 2, id), dup } as Packet);
          if (id % 5_000 !== 0) continue;
          await quiet(publisher);
          read();
        }
        await quiet(publisher);
        read();
      };
      await say(false);
      assert.deepEqual(answers, { pubrec: 65_535, other: 0 });
      const { recvMsg, awaitingRel } = broker.sessions.get('ids').counters();
      assert.deepEqual([recvMsg, awaitingRel], [65_535, 65_535]);
      assert.ok(memory() - before < 2 * 2 ** 20, `${memory() - before} bytes`);
      const routed = broker.metrics.counts[Metric.messagesPublish];
      await say(true);
      assert.equal(broker.metrics.counts[Metric.messagesPublish], routed, 'no duplicate is delivered');
      for (let id = 1; id <= 65_535; id++) publisher.say({ cmd: 'pubrel', messageId: id, reasonCode: 0 });
      await quiet(publisher);
      publisher.take();
      assert.equal(broker.sessions.get('ids').counters().awaitingRel, 0);
      assert.ok(await isServed(publisher));
    });
  }

  it('limits the packet ids by maxAwaitingRel and by the Receive Maximum', async () => {
    await using it = await startTestBed({
      maxAwaitingRel: 10,
      zones: { narrow: { maxAwaitingRel: 0, receiveMaximum: 10 } }
    });
    const old = await client(it.broker, { version: 4 });
    const current = await client(it.broker, { version: 5 });
    for (const peer of [old, current]) for (let id = 1; id <= 11; id++) peer.say(publish('a', '', 2, id));
    await turns(2);
    assert.ok(old.isClosed, '3.x has no reason code for it');
    const last = current.take().at(-1);
    assert.ok(last?.cmd === 'pubrec' && last.reasonCode >= 0x80 && last.messageId === 11);
    assert.ok(await isServed(current));
  });
});

describe('A subscriber that never acknowledges', () => {
  for (const qos of [1, 2] as const) {
    it(`never receives a packet id that is in flight a second time, QoS ${qos}`, async () => {
      await using it = await startTestBed({ maxInflight: 200, maxMqueueLen: 100_000 });
      const { broker } = it;
      const options = { version: 4, clientId: 'mute', clean: false } as const;
      const mute = await client(broker, options);
      mute.say(subscribe(1, qos, 'a'));
      await turns(2);
      mute.take();
      const inFlight = new Set<number>();
      const check = (packets: readonly Packet[]) => {
        for (const packet of packets) {
          if (packet.cmd !== 'publish') continue;
          const id = packet.messageId as number;
          assert.ok(packet.dup || !inFlight.has(id), `id ${id} is in flight`);
          inFlight.add(id);
        }
        assert.ok(inFlight.size <= 200);
      };
      // The ids wrap around more than once: all but a few messages are acknowledged.
      let peer = mute;
      for (let round = 0; round < 345; round++) {
        for (let count = 0; count < 200; count++) void broker.publish('a', `${round}/${count}`, { qos });
        await turns(1);
        check(peer.take());
        for (const id of inFlight) {
          if (id % 10_007 < 3) continue;
          inFlight.delete(id);
          const acknowledgement = qos === 1 ? 'puback' : 'pubrec';
          peer.say({ cmd: acknowledgement, messageId: id, reasonCode: 0 });
          if (qos === 2) peer.say({ cmd: 'pubcomp', messageId: id, reasonCode: 0 });
        }
        peer.received.length = 0;
        if (round % 100 !== 50) continue;
        peer.wire.leave();
        await turns(2);
        peer = await client(broker, options);
        check(peer.received);
      }
      const { inflight } = broker.sessions.get('mute').counters();
      assert.ok(inflight <= 200);
    });

    it(`receives all 65,535 packet ids of an unlimited window once each, QoS ${qos}`, async () => {
      await using it = await startTestBed({ maxInflight: 0, maxMqueueLen: 50 });
      const { broker } = it;
      const mute = await client(broker, { clientId: 'mute' });
      mute.say(subscribe(1, qos, 'a'));
      await turns(2);
      mute.take();
      const ids = new Set<number>();
      for (let count = 1; count <= 66_000; count++) {
        void broker.publish('a', '', { qos });
        if (count % 3_000 !== 0) continue;
        await turns(2);
        for (const packet of mute.take()) if (packet.cmd === 'publish') ids.add(packet.messageId as number);
        mute.received.length = 0;
      }
      assert.equal(ids.size, 65_535);
      const { inflight, mqueueLen, mqueueDropped } = broker.sessions.get('mute').counters();
      assert.deepEqual([inflight, mqueueLen, mqueueDropped], [65_535, 50, 66_000 - 65_535 - 50]);
      const [id] = ids;
      mute.say({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId: id, reasonCode: qos === 2 ? 0x80 : 0 });
      await turns(2);
      const [next] = mute.take();
      assert.equal(next.cmd === 'publish' && next.messageId, id, 'the released packet id is used');
    });
  }
});
