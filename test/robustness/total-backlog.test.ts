import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AckPacket, Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import { type Peer, turns } from '../fuzz/wire.ts';
import { type Bed, client, isServed, payloads, publish, startTestBed, subscribe } from './support.ts';

const KB = 1024;

/** Creates an offline session that is subscribed to a filter. */
async function leave({ broker }: Bed, clientId: string, filter: string, qos: 0 | 1 | 2 = 2): Promise<void> {
  const away = await client(broker, { version: 4, clientId, clean: false });
  away.say(subscribe(1, qos, filter));
  await turns(2);
  away.wire.leave();
  await turns(2);
}

async function codes(peer: Peer): Promise<number[]> {
  await turns(2);
  return peer.take().map((packet) => (packet as AckPacket).reasonCode);
}

/** Keeps memory above the watermark for three checks. */
async function exhaust({ pass }: Bed): Promise<void> {
  for (let look = 0; look < 3; look++) await pass(1_100);
}

describe('The backlogs of all sessions together', () => {
  it('keeps within maxTotalMqueueBytes: the largest backlogs lose their oldest messages, and publishers receive success', async () => {
    await using it = await startTestBed({ maxTotalMqueueBytes: '300KB', maxMqueueBytes: 0 });
    const { broker } = it;
    const dropped = new Map<string, number>();
    broker.on('message.dropped', ({ client, reason, message }) => {
      assert.equal(reason, 'total_queue_full');
      assert.equal(message.payload.length, KB);
      dropped.set(`${client?.clientId}`, (dropped.get(`${client?.clientId}`) ?? 0) + 1);
    });
    for (const name of ['few', 'many', 'most']) await leave(it, name, `${name}/#`);
    const publisher = await client(broker);
    const counts = { few: 20, many: 400, most: 800 };
    let id = 0;
    for (const [name, count] of Object.entries(counts))
      for (let n = 0; n < count; n++) publisher.say(publish(`${name}/${n}`, Buffer.alloc(KB), 1, ++id));
    const answers: Packet[] = [];
    // A connection has only its share of each turn.
    for (let left = 100; left > 0 && answers.length < 1220; left--) {
      await turns(1);
      answers.push(...publisher.take());
    }
    assert.equal(answers.length, 1220);
    assert.ok(answers.every((packet) => packet.cmd === 'puback' && packet.reasonCode === 0));
    const left = Object.keys(counts).map((name) => broker.sessions.get(name).counters().mqueueLen);
    assert.equal(left[0], 20, 'small backlogs lose nothing');
    assert.ok(left[1] > 60 && left[2] > 60, `${left}`);
    assert.equal(dropped.get('many'), 400 - left[1]);
    assert.equal(dropped.get('most'), 800 - left[2]);
    assert.equal(broker.metrics.counter('delivery.dropped.queue_full'), 1220 - left[0] - left[1] - left[2]);
    const back = await client(broker, { version: 4, clientId: 'few', clean: false });
    assert.equal(back.received.filter(({ cmd }) => cmd === 'publish').length, 20);
  });

  it('limits the backlogs to half of memoryHighWatermark by default', async () => {
    await using it = await startTestBed({ memoryHighWatermark: '1MB', memoryUsage: () => 0 });
    await leave(it, 'away', '#');
    for (let n = 0; n < 20; n++) void it.broker.publish(`t${n}`, Buffer.alloc(100 * KB), { qos: 1 });
    assert.equal(it.broker.sessions.get('away').counters().mqueueLen, 5);
  });
});

describe('Memory that stays above memoryHighWatermark', () => {
  const above = { memoryHighWatermark: '100MB', memoryUsage: () => 105_000_000 } as const;

  for (const [qos, wanted] of [
    [1, 'puback'],
    [2, 'pubrec']
  ] as const) {
    it(`refuses a QoS ${qos} message that would have to be queued with 0x97, before any receiver gets it`, async () => {
      await using it = await startTestBed(above);
      const { broker } = it;
      const dropped: string[] = [];
      broker.on('message.dropped', ({ message, reason }) => dropped.push(`${message.topic} ${reason}`));
      await leave(it, 'away', 'shared/#');
      const reader = await client(broker);
      reader.say(subscribe(1, qos, '#'));
      await turns(2);
      reader.take();
      const publisher = await client(broker);
      await it.pass(1_100);
      publisher.say(publish('shared/1', 'short since just now', qos, 1));
      assert.deepEqual(await codes(publisher), [0]);
      assert.deepEqual(
        reader.take().map(({ cmd }) => cmd),
        ['publish']
      );
      await it.pass(2_200);
      publisher.say(publish('shared/2', 'x', qos, 2), publish('shared/2', 'x', qos, 2), publish('live/3', 'x', qos, 3));
      await turns(2);
      assert.deepEqual(
        publisher.take().map((packet) => [packet.cmd, (packet as { reasonCode: number }).reasonCode]),
        [
          [wanted, 0x97],
          [wanted, 0x97],
          [wanted, 0]
        ]
      );
      assert.deepEqual(
        reader.take().map((packet) => packet.cmd === 'publish' && packet.topic),
        ['live/3']
      );
      assert.equal(broker.sessions.get('away').counters().mqueueLen, 1);
      assert.deepEqual(dropped, ['shared/2 quota', 'shared/2 quota']);
    });
  }

  for (const version of [3, 4] as ProtocolVersion[]) {
    it(`closes the connection of a publisher of version ${version}, which can send the message again later`, async () => {
      await using it = await startTestBed(above);
      await leave(it, 'away', '#');
      const publisher = await client(it.broker, { version, clientId: 'publisher' });
      await exhaust(it);
      publisher.say(publish('a', 'x', 1, 1));
      await turns(2);
      assert.ok(publisher.isClosed);
      assert.equal(it.reasons.get('publisher'), 'quota');
      assert.equal(it.broker.sessions.get('away').counters().mqueueLen, 0);
    });
  }

  it('rejects messages of the app with QUOTA_EXCEEDED, and accepts QoS 0 as before', async () => {
    await using it = await startTestBed(above);
    await leave(it, 'away', '#');
    await exhaust(it);
    await assert.rejects(async () => it.broker.publish('a', 'x', { qos: 1 }), { code: 'QUOTA_EXCEEDED' });
    await it.broker.publish('a', 'x', { qos: 0 });
    assert.equal(it.broker.sessions.get('away').counters().mqueueLen, 0);
  });

  it('drops and counts a delayed message and a will that would have to be queued', async () => {
    let used = 0;
    await using it = await startTestBed({ ...above, memoryUsage: () => used });
    const { broker } = it;
    const dropped: string[] = [];
    await leave(it, 'away', '#');
    await broker.publish('$delayed/4/later', 'x', { qos: 1 });
    const mortal = await client(broker, {
      will: { topic: 'will', payload: Buffer.from('x'), qos: 1, retain: false }
    });
    used = 105_000_000;
    await exhaust(it);
    broker.on('message.dropped', ({ message, reason }) => dropped.push(`${message.topic} ${reason}`));
    mortal.wire.leave();
    await it.pass(2_200);
    assert.deepEqual(dropped.sort(), ['later quota', 'will quota']);
  });

  it('accepts the client of a stored session, and no other', async () => {
    await using it = await startTestBed(above);
    await leave(it, 'away', '#');
    await it.broker.publish('a', 'x', { qos: 1 });
    await exhaust(it);
    const back = await client(it.broker, { version: 4, clientId: 'away', clean: false });
    assert.deepEqual(
      back.received.map(({ cmd }) => cmd),
      ['connack', 'publish']
    );
    const [answer] = (await client(it.broker)).received;
    assert.ok(answer.cmd === 'connack' && answer.reasonCode === 0x89);
  });

  it('delivers a shared message to a member that can receive it at once', async () => {
    await using it = await startTestBed(above);
    const { broker } = it;
    const strategy = '$share/g/a';
    const [busy, free] = [
      await client(broker, { properties: { receiveMaximum: 1 } }),
      await client(broker, { properties: { receiveMaximum: 100 } })
    ];
    for (const member of [busy, free]) member.say(subscribe(1, 1, strategy));
    await turns(2);
    const publisher = await client(broker);
    await exhaust(it);
    for (let n = 1; n <= 50; n++) publisher.say(publish('a', `${n}`, 1, n));
    const answers = await codes(publisher);
    assert.deepEqual(new Set(answers), new Set([0]));
    assert.ok(await isServed(publisher));
    const got = [busy, free].map((member) => payloads(member).length);
    assert.ok(got[0] <= 1 && got[0] + got[1] === 50, `${got}`);
  });
});
