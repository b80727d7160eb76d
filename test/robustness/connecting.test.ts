import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import { encode } from '../../lib/packets/encode.ts';
import { Peer, turns } from '../fuzz/wire.ts';
import { sized } from '../support/samples.ts';
import { client, connect, isServed, kinds, memory, publish, startTestBed, subscribe } from './support.ts';

/** A fixed header with the largest possible remaining length. */
const ANNOUNCED = Buffer.from('10ffffff7f', 'hex');

describe('1,000 connections that announce 256 MB', () => {
  it('refuses 256 MB at the fixed header if the packet is too large', async () => {
    await using it = await startTestBed();
    const peers = Array.from({ length: 1_000 }, () => new Peer(it.broker, 5));
    for (const peer of peers) peer.say(ANNOUNCED);
    await turns(3);
    assert.ok(peers.every(({ isClosed, wire }) => isClosed && wire.heardBytes === 0));
  });

  it('uses no memory for 256 MB, and closes the connections by the CONNECT timeout, whether they send bytes slowly or none', async () => {
    await using it = await startTestBed({ maxPacketSize: 268_435_460, maxConnectSize: 268_435_460 });
    const { broker, pass, failures } = it;
    const observer = await client(broker);
    const peers = Array.from({ length: 1_000 }, () => new Peer(broker, 5));
    for (const peer of peers) peer.say(ANNOUNCED);
    await turns(2);
    const before = memory();
    for (let second = 0; second < 9; second++) {
      for (const peer of peers.slice(0, 500)) peer.say(Buffer.from([0]));
      await pass(1_000);
    }
    assert.ok(memory() - before < 8 * 2 ** 20, `${memory() - before} bytes for the announced packets`);
    assert.ok(
      peers.every(({ isClosed }) => !isClosed),
      'the connections stay open until the timeout'
    );
    assert.ok(await isServed(observer));
    await pass(1_100);
    assert.ok(
      peers.every(({ isClosed }) => isClosed),
      'slow bytes do not restart the timeout'
    );
    await pass(4_000);
    assert.ok(peers.every(({ wire }) => wire.destroyed));
    assert.equal(engineOf(broker).services.work.count, 0);
    assert.deepEqual(failures, []);
  });
});

describe('The beginning of a packet', () => {
  for (const [name, length] of [
    ['its header', 2],
    ['its body', 100]
  ] as const) {
    it(`does not retain the rest of its chunk in memory when it is split in ${name}`, async () => {
      await using it = await startTestBed();
      const peers = await Promise.all(Array.from({ length: 300 }, () => client(it.broker)));
      const whole = encode(publish('a', Buffer.alloc(60_000)), 5);
      const begun = encode(publish('a', Buffer.alloc(200_000)), 5).subarray(0, length);
      const before = memory();
      for (const peer of peers) peer.say(Buffer.concat([whole, begun]));
      await turns(2);
      const taken = memory() - before;
      assert.ok(taken < 2 ** 20, `${taken} bytes`);
    });
  }
});

describe('A packet that arrives byte by byte', () => {
  it('uses little more memory than its bytes', async () => {
    await using it = await startTestBed();
    const { broker } = it;
    const observer = await client(broker);
    observer.say(subscribe(1, 0, 'a'));
    const peer = await client(broker);
    const frame = encode(publish('a', Buffer.alloc(200_000, 'x')), 5);
    peer.say(frame.subarray(0, 4));
    const before = memory();
    // Each byte has its own memory, like the chunks that a socket reads.
    for (let at = 4; at < frame.length - 1; at++) peer.say(Buffer.from(frame.subarray(at, at + 1)));
    assert.ok(memory() - before < 2 * 2 ** 20, `${memory() - before} bytes`);
    peer.say(frame.subarray(frame.length - 1));
    await turns(2);
    const [, message] = observer.take();
    assert.ok(message.cmd === 'publish' && message.payload.equals(Buffer.alloc(200_000, 'x')));
  });

  it('reads the packet the same with parts of any size', async () => {
    await using it = await startTestBed();
    const observer = await client(it.broker);
    observer.say(subscribe(1, 0, 'a'));
    const peer = await client(it.broker);
    const payload = Buffer.from(Array.from({ length: 150_000 }, (_, at) => at % 251));
    const frame = encode(publish('a', payload), 5);
    const sizes = [1, 2, 3, 5_000, 1, 40_000, 1, 1, 16_384, 32_768, 7, 60_000, 100];
    for (let at = 0, turn = 0; at < frame.length; turn++) {
      const size = sizes[turn % sizes.length];
      peer.say(frame.subarray(at, at + size));
      at += size;
    }
    await turns(2);
    const [, message] = observer.take();
    assert.ok(message.cmd === 'publish' && message.payload.equals(payload));
  });
});

describe('A flood of CONNECT packets', () => {
  it('limits new persistent client ids to maxSessions', async () => {
    await using it = await startTestBed({ maxSessions: 500 });
    const { broker, failures } = it;
    const observer = await client(broker);
    const before = memory();
    let refused = 0;
    const rounds = sized(80, 300);
    for (let round = 0; round < rounds; round++) {
      const peers = Array.from({ length: 100 }, (_, at) => {
        const peer = new Peer(broker, 4);
        peer.say(encode(connect({ version: 4, clientId: `fresh${round * 100 + at}`, clean: false }), 4));
        return peer;
      });
      await turns(2);
      for (const peer of peers) {
        const [answer] = peer.take();
        if (answer?.cmd === 'connack' && answer.reasonCode !== 0) refused++;
        peer.wire.destroy();
      }
    }
    await turns(2);
    assert.equal(refused, rounds * 100 - 499);
    assert.equal([...broker.sessions].length, 500);
    assert.ok(await isServed(observer), 'a connected client stays connected');
    const known = await client(broker, { version: 4, clientId: 'fresh3', clean: false });
    assert.equal(known.received[0].cmd === 'connack' && known.received[0].sessionPresent, true, 'and can reconnect');
    assert.ok(memory() - before < rounds * 200_000, `${memory() - before} bytes`);
    assert.deepEqual(failures, []);
  });

  it('limits the connections to maxConnections, and accepts more when some have disconnected', async () => {
    await using it = await startTestBed({ maxConnections: 50 });
    const peers = Array.from({ length: 500 }, () => new Peer(it.broker, 5));
    for (const peer of peers) peer.say(connect());
    await turns(2);
    const admitted = peers.filter(({ isClosed }) => !isClosed);
    assert.equal(admitted.length, 50);
    admitted[0].wire.leave();
    await turns(2);
    assert.ok(await isServed(await client(it.broker)));
    assert.ok((await client(it.broker)).isClosed);
  });

  for (const [name, clean] of [
    ['resumes its session', false],
    ['starts a new session', true]
  ] as const) {
    it(`leaves one connection of a client id that is taken over 2,000 times and ${name}`, async () => {
      await using it = await startTestBed();
      const { broker, pass, failures } = it;
      const peers: Peer[] = [];
      const properties = clean ? undefined : { sessionExpiryInterval: 1_000 };
      for (let count = 0; count < 2_000; count++) {
        const peer = new Peer(broker, 5);
        peer.say(connect({ clientId: 'same', clean, properties }));
        if (count % 7 === 0) await turns(1);
        peers.push(peer);
      }
      await turns(3);
      const last = peers.pop() as Peer;
      assert.ok(peers.every(({ isClosed }) => isClosed));
      assert.ok(await isServed(last));
      const told = peers.filter((peer) => {
        const final = peer.take().at(-1);
        return final?.cmd === 'disconnect' && final.reasonCode === 0x8e;
      });
      assert.equal(told.length, 1_999, 'each of the others received DISCONNECT 0x8E');
      assert.equal([...broker.sessions].length, 1);
      await pass(3_500);
      assert.ok(
        peers.every(({ wire }) => wire.destroyed),
        'no connection remains'
      );
      last.say({ cmd: 'disconnect', reasonCode: 0 });
      await turns(2);
      assert.deepEqual(failures, []);
    });
  }

  it('keeps the last CONNECT of one client id that a hook accepts', async () => {
    await using it = await startTestBed({ hooks: { authenticate: async () => true } });
    const peers = Array.from({ length: 500 }, () => new Peer(it.broker, 5));
    for (const peer of peers) peer.say(connect({ clientId: 'same' }));
    for (const peer of peers.slice(100, 200)) peer.wire.destroy();
    await turns(10);
    const open = peers.filter(({ isClosed }) => !isClosed);
    assert.deepEqual(open, [peers[499]]);
    assert.deepEqual(kinds(peers[499]), ['connack']);
    assert.equal(engineOf(it.broker).services.work.count, 0);
  });

  it('serves other clients if those of one client id start an authentication exchange and never answer', async () => {
    await using it = await startTestBed({
      hooks: { authenticate: ({ method }) => (method === undefined ? true : { challenge: undefined }) }
    });
    const attackers = Array.from({ length: 100 }, () => new Peer(it.broker, 5));
    for (const peer of attackers)
      peer.say(connect({ clientId: 'victim', properties: { authenticationMethod: 'rounds' } }));
    const victim = await client(it.broker, { clientId: 'victim' });
    assert.ok(await isServed(victim));
    await it.pass(11_000);
    assert.ok(attackers.every(({ isClosed }) => isClosed));
    assert.ok(await isServed(victim));
  });
});
