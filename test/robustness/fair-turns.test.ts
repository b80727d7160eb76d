import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, engineOf } from '../../lib/broker/broker.ts';
import { encode } from '../../lib/packets/encode.ts';
import type { Packet } from '../../lib/packets/types.ts';
import { Peer, quiet, turns } from '../fuzz/wire.ts';
import { type Bed, client, connect, payloads, publish, startTestBed, subscribe } from './support.ts';

const MB = 2 ** 20;

/** Repeats a packet many times in one chunk. */
interface Flood {
  readonly bytes: Buffer;
  readonly count: number;
}

function flood(bytes: number, packet: Packet): Flood {
  const one = encode(packet, 5);
  const count = Math.floor(bytes / one.length);
  return { bytes: Buffer.alloc(count * one.length, one), count };
}

const FLOODS: Readonly<Record<string, Flood>> = {
  PINGREQ: flood(MB, { cmd: 'pingreq' }),
  'QoS 0 PUBLISH on the fast path': flood(8 * MB, publish('flood', '')),
  'QoS 0 PUBLISH with a property': flood(MB, {
    ...publish('flood', ''),
    properties: { messageExpiryInterval: 9 }
  } as Packet),
  'QoS 2 PUBLISH of one packet id': flood(MB, publish('flood', '', 2, 1)),
  'PUBACK without a message': flood(MB, { cmd: 'puback', messageId: 9, reasonCode: 0 }),
  'PUBREL without a message': flood(MB, { cmd: 'pubrel', messageId: 9, reasonCode: 0 }),
  SUBSCRIBE: flood(MB / 4, subscribe(1, 0, 'a')),
  UNSUBSCRIBE: flood(MB / 4, { cmd: 'unsubscribe', messageId: 1, unsubscriptions: ['a'] })
};

/** Returns the number of packets of a client that the broker has processed since its CONNECT. */
function read(broker: Broker, clientId: string): number {
  return broker.sessions.get(clientId).counters().recvPkt - 1;
}

/** Returns what the broker has read from the stream and not processed, as a number of packets. */
function waitingBytes(broker: Broker, clientId: string, one: number): number {
  const { recvOct, recvPkt } = broker.sessions.get(clientId).counters();
  return recvOct / one - recvPkt;
}

describe('A connection that sends more than its share of a turn', () => {
  for (const [name, { bytes, count }] of Object.entries(FLOODS)) {
    it(`processes a flooding connection after the others: another client is answered before a flood of ${name} is read`, async () => {
      await using it = await startTestBed();
      const { broker } = it;
      const flooder = await client(broker, { clientId: 'flooder' });
      const bystander = await client(broker);
      flooder.say(bytes);
      bystander.say({ cmd: 'pingreq' });
      await turns(1);
      const seen = bystander.take().map(({ cmd }) => cmd);
      assert.deepEqual(seen, ['pingresp']);
      const first = read(broker, 'flooder');
      assert.ok(first < count * 0.6, `${first} of ${count} packets were processed first`);
      await quiet(flooder);
      assert.equal(read(broker, 'flooder'), count, 'no packet is lost');
      assert.ok(!flooder.isClosed);
    });
  }

  it('loses no byte if a hook answers after the share is used up, while a packet is incomplete', async () => {
    let answer: (isAllowed: boolean) => void = () => {};
    await using it = await startTestBed({
      hooks: {
        authorizeSubscribe: () =>
          new Promise<boolean>((resolve) => {
            answer = resolve;
          })
      }
    });
    const peer = await client(it.broker);
    const first = encode(subscribe(1, 0, 'n'.repeat(20_000)), 5); // more than the shares of one turn
    const next = encode(publish('a', 'x', 1, 7), 5);
    peer.say(Buffer.concat([first, next.subarray(0, 1)]));
    peer.say(Buffer.concat([next.subarray(1), encode({ cmd: 'pingreq' }, 5)]));
    answer(true);
    await turns(20);
    assert.deepEqual(
      peer.take().map(({ cmd }) => cmd),
      ['suback', 'puback', 'pingresp']
    );
  });

  const filters = Array.from({ length: 100 }, (_, at) => `${at}`);
  const wide: Readonly<Record<string, Packet>> = {
    SUBSCRIBE: subscribe(1, 0, ...filters),
    UNSUBSCRIBE: { cmd: 'unsubscribe', messageId: 1, unsubscriptions: filters }
  };
  for (const [name, packet] of Object.entries(wide)) {
    it(`charges a connection for ${name} by the number of filters, not of packets`, async () => {
      await using it = await startTestBed();
      const flooder = await client(it.broker, { clientId: 'flooder' });
      const { bytes, count } = flood(65_536, packet);
      flooder.say(bytes);
      const first = read(it.broker, 'flooder') * filters.length;
      assert.ok(first > 0 && first <= 1_500, `${first} filters were processed first`);
      await quiet(flooder);
      assert.equal(read(it.broker, 'flooder'), count, 'no packet is lost');
    });
  }

  it('takes turns with other such connections', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const names = ['one', 'two', 'three'];
    const flooders: Peer[] = [];
    for (const clientId of names) flooders.push(await client(broker, { clientId }));
    const { bytes, count } = FLOODS.PINGREQ;
    for (const flooder of flooders) flooder.say(bytes);
    for (let turn = 0; turn < 5; turn++) {
      await turns(1);
      const counts = names.map((name) => read(broker, name));
      const spread = Math.max(...counts) - Math.min(...counts);
      assert.ok(spread <= 10_500, `packets processed: ${counts}`); // the amount that the first one may process beyond its share
    }
    for (const flooder of flooders) await quiet(flooder);
    assert.deepEqual(
      names.map((name) => read(broker, name)),
      [count, count, count]
    );
  });

  it('shares a turn with few others when 60 send a flood, and has all of it when it is alone', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const names = Array.from({ length: 60 }, (_, at) => `flooder${at}`);
    const flooders: Peer[] = [];
    for (const clientId of names) flooders.push(await client(broker, { clientId }));
    const chunk = Buffer.alloc(65_536, Buffer.from([0xc0, 0]));
    for (const flooder of flooders) flooder.say(chunk);
    await turns(2);
    const perTurn: number[] = [];
    for (let turn = 0; turn < 30; turn++) {
      const before = names.map((name) => read(broker, name));
      await turns(1);
      const served = names.map((name, at) => read(broker, name) - before[at]).filter((count) => count > 0);
      assert.ok(served.length <= 8, `${served.length} of them were read in one turn`);
      perTurn.push(served.reduce((sum, count) => sum + count, 0));
    }
    for (const flooder of flooders) await quiet(flooder);
    const [alone] = flooders;
    alone.say(chunk);
    await turns(2);
    const before = read(broker, names[0]);
    await turns(1);
    const atOnce = read(broker, names[0]) - before;
    const most = Math.max(...perTurn);
    assert.ok(atOnce >= most * 0.8 && atOnce <= most * 1.2, `${atOnce} of one, ${perTurn} of all 60`);
  });

  it('charges a connection for one large PUBLISH as its bytes arrive, not when it is complete', async () => {
    await using it = await startTestBed();
    const flooder = await client(it.broker, { clientId: 'flooder' });
    const one = encode(publish('flood', Buffer.alloc(1_000_000)), 5);
    for (let at = 0; at < one.length; at += 65_536) flooder.say(one.subarray(at, at + 65_536));
    const { recvOct } = it.broker.sessions.get('flooder').counters();
    assert.ok(recvOct < 700_000, `${recvOct} bytes were read in one turn`);
    assert.ok(flooder.wire.isPaused());
    await quiet(flooder);
    assert.equal(read(it.broker, 'flooder'), 1);
  });

  it('waits for clients that connect, but not for more than 64 turns in a row', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const flooder = await client(broker, { clientId: 'flooder' });
    flooder.say(FLOODS.PINGREQ.bytes);
    await turns(2);
    const servedIn: number[] = [];
    for (let turn = 0; turn < 200; turn++) {
      const before = read(broker, 'flooder');
      new Peer(broker, 5).say(connect());
      await turns(1);
      if (read(broker, 'flooder') > before) servedIn.push(turn);
    }
    const gaps = servedIn.slice(1).map((turn, at) => turn - servedIn[at]);
    assert.ok(servedIn[0] <= 65, `served in the turns ${servedIn}`);
    assert.deepEqual(gaps.slice(0, 2), [65, 65], `served in the turns ${servedIn}`);
  });

  it('pauses the stream of the connection in the meantime, so that further data is not read into memory', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const flooder = await client(broker, { clientId: 'flooder' });
    const chunk = Buffer.alloc(65_536, Buffer.from([0xc0, 0]));
    for (let sent = 0; sent < 100; sent++) flooder.say(Buffer.from(chunk));
    for (let turn = 0; turn < 10; turn++) {
      const waiting = waitingBytes(broker, 'flooder', 2);
      assert.ok(waiting <= chunk.length / 2 + 100, `${waiting} packets are deferred`);
      assert.ok(flooder.wire.isPaused());
      await turns(1);
    }
    await quiet(flooder);
    assert.equal(read(broker, 'flooder'), (100 * chunk.length) / 2);
  });

  for (const isFailure of [false, true])
    it(`closes the connection by a stop in that turn even if its stream has ${isFailure ? 'failed' : 'closed'} before, and reads nothing afterwards`, async () => {
      const { broker, reasons, [Symbol.asyncDispose]: end } = await startTestBed();
      const heard: string[] = [];
      broker.subscribe('#', ({ topic }) => heard.push(topic));
      const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false };
      const flooder = await client(broker, { clientId: 'flooder', will, properties: { sessionExpiryInterval: 60 } });
      flooder.say(Buffer.concat([FLOODS.PINGREQ.bytes, encode(publish('late', 'late'), 5)]));
      flooder.wire.destroy(isFailure ? Object.assign(new Error('reset'), { code: 'ECONNRESET' }) : undefined);
      await new Promise<void>((resolve) => process.nextTick(resolve));
      assert.ok(flooder.wire.closed);
      const { connections: links, services } = engineOf(broker);
      assert.equal(links.all.size, 1, 'it counts as a connection until its packets have been processed');
      const stopped = broker.stop({ timeoutMs: 0 });
      await turns(3);
      await stopped;
      assert.equal(reasons.get('flooder'), 'server_shutting_down');
      await turns(40);
      assert.deepEqual(heard, ['will']);
      assert.deepEqual([links.all.size, services.wheel.size], [0, 0]);
      await end();
    });

  it('[MQTT-3.14.4-3] processes its DISCONNECT, and drops its will, when the stream ends or fails before its turn', async () => {
    for (const isFailure of [false, true]) {
      await using it = await startTestBed();
      const { broker } = it;
      const observer = await client(broker);
      observer.say(subscribe(1, 0, 'will/#'));
      const will = { topic: 'will/a', payload: Buffer.from('gone'), qos: 0 as const, retain: false };
      const flooder = await client(broker, { clientId: 'flooder', will });
      await turns(2);
      observer.take();
      const last = [publish('will/b', 'last'), { cmd: 'disconnect', reasonCode: 0 } as const];
      flooder.say(Buffer.concat([FLOODS.PINGREQ.bytes, ...last.map((packet) => encode(packet, 5))]));
      if (isFailure) flooder.wire.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
      else flooder.wire.leave();
      await turns(80);
      assert.deepEqual(payloads(observer), ['last']);
      assert.equal(it.reasons.get('flooder'), 'normal');
      assert.deepEqual(it.failures, []);
    }
  });

  it('distinguishes it from a connection whose stream fails without DISCONNECT', async () => {
    await using it = await startTestBed();
    const flooder = await client(it.broker, { clientId: 'flooder' });
    flooder.say(FLOODS.PINGREQ.bytes);
    flooder.wire.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
    await turns(80);
    assert.equal(it.reasons.get('flooder'), 'stream_error');
    assert.equal(it.broker.sessions.has('flooder'), false);
  });
});

describe('While clients connect one after the other, as Node accepts them', () => {
  /** Publishes a message in each of some turns of the event loop. @returns after which turns the subscriber had received a message */
  async function deliveredIn(
    { broker, clock }: Bed,
    count: number,
    { connects, stallMs = 0 }: { connects(turn: number): boolean; stallMs?: number }
  ): Promise<number[]> {
    const subscriber = await client(broker);
    subscriber.say(subscribe(1, 0, 'a'));
    const publisher = await client(broker);
    await turns(2);
    subscriber.take();
    const received: number[] = [];
    for (let turn = 0; turn < count; turn++) {
      publisher.say(publish('a', String(turn)));
      if (connects(turn)) new Peer(broker, 5).say(connect());
      clock.stall(stallMs);
      await turns(1);
      if (subscriber.take().length > 0) received.push(turn);
    }
    return received;
  }

  it('collects output over up to 64 turns while clients connect, so that turns are short and all of them are accepted soon', async () => {
    await using it = await startTestBed();
    assert.deepEqual(await deliveredIn(it, 200, { connects: () => true }), [0, 65, 130, 195]);
  });

  it('collects output while clients connect for twice the time that the previous turn took, and at least 10 ms', async () => {
    await using it = await startTestBed();
    const inTime = await deliveredIn(it, 12, { connects: () => true, stallMs: 3 });
    assert.deepEqual(inTime, [0, 5, 10]);
    await turns(2);
    const slow = await deliveredIn(it, 12, { connects: () => true, stallMs: 20 });
    assert.deepEqual(slow, [0, 3, 6, 9]);
  });

  it('sends output in the first turn in which no client connects', async () => {
    await using it = await startTestBed();
    const connects = (turn: number) => turn < 6 || turn === 8;
    assert.deepEqual(
      await deliveredIn(it, 10, { connects }),
      [0, 6, 7, 8, 9],
      'one client that connects delays nothing'
    );
  });

  it('reads no more from a client than in one turn while clients connect', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const flooder = await client(broker, { clientId: 'flooder' });
    new Peer(broker, 5).say(connect());
    await turns(1);
    const chunk = Buffer.alloc(65_536, Buffer.from([0xc0, 0]));
    const inOneTurn = 8 * 1_024 + 1_024;
    for (let turn = 0; turn < 50; turn++) {
      new Peer(broker, 5).say(connect());
      flooder.say(chunk);
      await turns(1);
    }
    const count = read(broker, 'flooder');
    assert.ok(count > 0 && count <= inOneTurn * 1.2, `${count} packets were read`);
    await quiet(flooder);
    assert.equal(read(broker, 'flooder'), (50 * chunk.length) / 2, 'no packet is lost');
  });
});
