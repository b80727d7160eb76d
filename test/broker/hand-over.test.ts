import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { QoS } from '../../lib/packets/types.ts';
import { Peer, turns } from '../fuzz/wire.ts';
import { type Bed, client, connect, payloads, publish, startTestBed, subscribe } from '../robustness/support.ts';

const FILTER = '$share/workers/jobs/#';

/** Connects a member of the group that acknowledges nothing. */
async function member(it: Bed, clientId: string, receiveMaximum: number, expiry = 0, ...more: string[]): Promise<Peer> {
  const properties = { receiveMaximum, sessionExpiryInterval: expiry };
  const peer = await client(it.broker, { clientId, properties });
  peer.say(subscribe(1, 2, FILTER, ...more));
  await turns(2);
  peer.take();
  return peer;
}

/** Connects a client that returns to its session. */
async function returning(it: Bed, clientId: string, receiveMaximum = 100): Promise<Peer> {
  const properties = { receiveMaximum, sessionExpiryInterval: 240 };
  const peer = new Peer(it.broker, 5, {});
  peer.say(connect({ clientId, clean: false, properties }));
  await turns(3);
  return peer;
}

async function jobs(it: Bed, qos: QoS, from: number, to: number): Promise<void> {
  const publisher = await client(it.broker);
  for (let n = from; n <= to; n++) publisher.say(publish('jobs/a', `${n}`, qos, qos > 0 ? n : undefined));
  await turns(3);
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `${from + n}`);

describe('Messages for a member of a share group whose session ends', () => {
  for (const [how, end] of [
    ['its connection is lost', (one: Peer) => one.wire.leave()],
    ['its client sends DISCONNECT', (one: Peer) => one.say({ cmd: 'disconnect', reasonCode: 0 })]
  ] as const) {
    it(`[4.8.2] delivers the messages to another member in order when ${how}, including those in flight at QoS 1`, async () => {
      await using stage = await startTestBed();
      const one = await member(stage, 'one', 3);
      await jobs(stage, 1, 1, 10);
      assert.deepEqual(payloads(one), range(1, 3));
      const other = await member(stage, 'other', 100);
      end(one);
      await turns(3);
      assert.deepEqual(payloads(other), range(1, 10));
    });
  }

  it('[MQTT-4.8.2-5] delivers QoS 2 messages to another member only if they were never sent', async () => {
    await using stage = await startTestBed();
    const one = await member(stage, 'one', 3);
    await jobs(stage, 2, 1, 10);
    assert.deepEqual(payloads(one), range(1, 3));
    const other = await member(stage, 'other', 100);
    one.wire.leave();
    await turns(3);
    assert.deepEqual(payloads(other), range(4, 10));
  });

  it('[MQTT-4.8.2-5] delivers QoS 2 messages with a packet id to another member if they were never sent', async () => {
    await using stage = await startTestBed();
    const away = await member(stage, 'away', 100, 60);
    const { broker } = stage;
    broker.hook('deliver', ({ client: { clientId } }) => {
      if (clientId === 'away') broker.sessions.get('away').kick({ session: 'keep' });
      return true;
    });
    await jobs(stage, 2, 1, 1);
    assert.deepEqual(payloads(away), []);
    assert.equal(broker.sessions.get('away').counters().inflight, 1);
    const other = await member(stage, 'other', 100);
    await stage.pass(61_000);
    await turns(3);
    assert.deepEqual(payloads(other), ['1']);
  });

  it('[4.8.2] delivers the messages to another member when an offline session expires', async () => {
    await using stage = await startTestBed();
    const away = await member(stage, 'away', 3, 60);
    await jobs(stage, 1, 1, 2);
    assert.deepEqual(payloads(away), range(1, 2));
    away.wire.leave();
    await turns(2);
    await jobs(stage, 1, 3, 10);
    const other = await member(stage, 'other', 100);
    await stage.pass(59_000);
    assert.deepEqual(payloads(other), []);
    await stage.pass(2_000);
    await turns(3);
    assert.deepEqual(payloads(other), range(1, 10));
  });

  it('delivers the messages before those that wait for the next member, in order, even if several sessions end one after the other', async () => {
    for (const qos of [1, 2] as const) {
      await using stage = await startTestBed({ sharedSubscriptionStrategy: 'round_robin' });
      for (const [id, expiry] of [
        ['a', 60],
        ['b', 120],
        ['c', 240]
      ] as const)
        (await member(stage, id, 100, expiry)).wire.leave();
      await turns(2);
      await jobs(stage, qos, 1, 12);
      const own = (...ids: string[]) => ids.map((id) => stage.broker.sessions.get(id).counters().mqueueLen);
      assert.deepEqual(own('a', 'b', 'c'), [4, 4, 4]);
      await stage.pass(61_000); // a hands 1, 4, 7 and 10 over to b and c in turn
      await turns(3);
      assert.deepEqual(own('b', 'c'), [6, 6]);
      await stage.pass(60_000); // b hands its share of these, then 2, 5, 8 and 11 over to c
      await turns(3);
      assert.deepEqual(own('c'), [12]);
      const got = payloads(await returning(stage, 'c'));
      const ofA = got.slice(0, 4);
      assert.deepEqual(
        ofA.toSorted((x, y) => Number(x) - Number(y)),
        ['1', '4', '7', '10']
      );
      assert.deepEqual(got.slice(4), ['2', '5', '8', '11', '3', '6', '9', '12']);
    }
  });

  it('delivers the messages before those that wait for the window of a connected member', async () => {
    await using stage = await startTestBed({ sharedSubscriptionStrategy: 'round_robin' });
    (await member(stage, 'away', 100, 60)).wire.leave();
    const other = await member(stage, 'other', 1, 240);
    other.wire.leave();
    await turns(2);
    await jobs(stage, 1, 1, 6);
    const back = await returning(stage, 'other', 1);
    assert.deepEqual(payloads(back), ['2']);
    await stage.pass(61_000);
    for (const expected of ['1', '3', '5', '4', '6']) {
      const { messageId } = stage.broker.sessions
        .get('other')
        .flights()
        .inflight.map(({ packetId }) => ({ messageId: packetId }))[0];
      back.say({ cmd: 'puback', messageId, reasonCode: 0 });
      await turns(2);
      assert.deepEqual(payloads(back), [expected]);
    }
  });

  it('drops and reports the messages if the group has no other member', async () => {
    await using stage = await startTestBed();
    const reasons: string[] = [];
    stage.broker.on('message.dropped', ({ reason }) => reasons.push(reason));
    const one = await member(stage, 'one', 3);
    await jobs(stage, 1, 1, 10);
    one.wire.leave();
    await turns(3);
    assert.deepEqual(reasons, Array(7).fill('session_terminated'));
  });

  it('reports the messages as dropped once if the chosen member drops them', async () => {
    await using stage = await startTestBed({ ignoreLoopDeliver: true });
    const dropped: string[] = [];
    stage.broker.on('message.dropped', ({ client, reason }) => dropped.push(`${client?.clientId} ${reason}`));
    const one = await member(stage, 'one', 1);
    const other = await client(stage.broker, { clientId: 'other' });
    for (const id of [1, 2]) other.say(publish('jobs/a', `${id}`, 1, id));
    await turns(3);
    assert.deepEqual(payloads(one), ['1']);
    other.say(subscribe(3, 2, FILTER));
    await turns(2);
    one.wire.leave();
    await turns(3);
    assert.deepEqual(dropped, ['other no_local', 'other no_local']);
  });

  it('delivers the messages to another member when the session that ends has more than a thousand other subscriptions', async () => {
    await using stage = await startTestBed({ sharedSubscriptionStrategy: 'round_robin' });
    const many = Array.from({ length: 1_500 }, (_, n) => `x/${n}`);
    const away = await client(stage.broker, { clientId: 'away', properties: { sessionExpiryInterval: 60 } });
    away.say(subscribe(1, 1, ...many, FILTER));
    await turns(2);
    away.wire.leave();
    await turns(2);
    await jobs(stage, 1, 1, 6);
    const other = await member(stage, 'other', 100, 60);
    other.wire.leave();
    await turns(2);
    stage.broker.sessions.get('away').discard();
    await turns(3);
    assert.equal(stage.broker.sessions.get('other').counters().mqueueLen, 6);
  });

  it('drops the messages if another subscription of the session may have matched them', async () => {
    await using stage = await startTestBed();
    const one = await member(stage, 'one', 1, 0, 'jobs/+');
    const other = await member(stage, 'other', 100);
    const publisher = await client(stage.broker);
    for (let n = 1; n <= 20; n++) publisher.say(publish('jobs/a', `${n}`, 1, n));
    await turns(3);
    const before = payloads(other).length;
    assert.ok(before < 20);
    one.wire.leave();
    await turns(3);
    assert.deepEqual(payloads(other), []);
  });

  it('does not reassign the messages when the broker stops', async () => {
    const stage = await startTestBed();
    const one = await member(stage, 'one', 3);
    await jobs(stage, 1, 1, 10);
    payloads(one);
    const other = await member(stage, 'other', 100);
    await stage[Symbol.asyncDispose]();
    assert.deepEqual(payloads(other), []);
  });
});
