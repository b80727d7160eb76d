import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encode } from '../../lib/packets/encode.ts';
import { Peer, turns } from '../fuzz/wire.ts';
import { sized } from '../support/samples.ts';
import { client, connect, isServed, memory, payloads, publish, startTestBed, subscribe } from './support.ts';

/** Encodes a CONNECT of exactly this many bytes. */
function connectOf(bytes: number, version: 4 | 5): Buffer {
  const sized = (length: number) =>
    encode(connect({ version, clientId: 'large', username: 'u', password: Buffer.alloc(length) }), version);
  return sized(bytes - sized(bytes - 100).length + bytes - 100);
}

describe('A CONNECT', () => {
  it('accepts a CONNECT of maxConnectSize bytes, and later packets of maxPacketSize bytes', async () => {
    await using it = await startTestBed({ maxConnectSize: 2_000, maxPacketSize: 100_000 });
    const observer = await client(it.broker);
    observer.say(subscribe(1, 0, 'a'));
    const peer = new Peer(it.broker, 5);
    peer.say(connectOf(2_000, 5));
    peer.say(publish('a', Buffer.alloc(90_000, 'x')));
    await turns(2);
    assert.equal(payloads(observer)[0]?.length, 90_000);
    assert.ok(await isServed(peer));
  });

  it('refuses a CONNECT of more than maxConnectSize bytes with CONNACK 0x95 before its body arrives', async () => {
    await using it = await startTestBed();
    const peer = new Peer(it.broker, 5);
    peer.say(connectOf(65_537, 5).subarray(0, 20));
    await turns(2);
    const [answer] = peer.take();
    assert.ok(answer.cmd === 'connack' && answer.reasonCode === 0x95, JSON.stringify(answer));
    assert.match(answer.properties?.reasonString ?? '', /maxConnectSize/);
    assert.ok(peer.isClosed);
  });

  it('ends the connection without CONNACK for a CONNECT of more than maxConnectSize bytes under 3.1.1, which has no code for it', async () => {
    await using it = await startTestBed();
    const peer = new Peer(it.broker, 4);
    peer.say(connectOf(65_537, 4));
    await turns(2);
    assert.deepEqual(peer.take(), []);
    assert.ok(peer.isClosed);
  });

  it('uses less than maxConnectSize of memory for each connection when it arrives byte by byte', async () => {
    await using it = await startTestBed();
    const bytes = connectOf(20_000, 5);
    const peers = Array.from({ length: sized(15, 50) }, () => new Peer(it.broker, 5));
    await turns(1); // the bytes are read
    const before = memory();
    // Each byte has its own memory, like the chunks that a socket reads.
    for (const peer of peers)
      for (let at = 0; at < 19_999; at++) peer.wire.say(Buffer.allocUnsafeSlow(1).fill(bytes[at]));
    const taken = (memory() - before) / peers.length;
    assert.ok(taken < 65_536, `${taken} bytes for each`);
    peers[0].say(bytes.subarray(19_999));
    await turns(2);
    assert.equal(peers[0].take()[0]?.cmd, 'connack');
  });
});

describe('Packets that a client sends after its CONNECT without waiting', () => {
  it('accepts any number of packets after the CONNECT, and processes them in order once a hook has accepted the client', async () => {
    let decide = (_: boolean) => {};
    const decision = new Promise<boolean>((resolve) => {
      decide = resolve;
    });
    await using it = await startTestBed({
      maxHeldBytes: 1_024,
      maxPacketSize: 1_000,
      hooks: { authenticate: () => decision }
    });
    let heard = 0;
    it.broker.subscribe('a', ({ payload }) => assert.equal(payload.readUInt32BE(), heard++));
    const peer = new Peer(it.broker, 5);
    peer.say(connect());
    const number = Buffer.alloc(900);
    const frame = (at: number) => {
      number.writeUInt32BE(at);
      return encode(publish('a', Buffer.from(number)), 5);
    };
    peer.say(frame(0));
    for (let at = 1; at < 1_000; at += 100)
      peer.wire.say(Buffer.concat(Array.from({ length: Math.min(100, 1_000 - at) }, (_, more) => frame(at + more))));
    await turns(2);
    assert.ok(!peer.isClosed);
    assert.ok(peer.wire.readableLength > 800_000, `${peer.wire.readableLength} bytes are unread`);
    decide(true);
    await turns(20);
    assert.equal(heard, 1_000);
    assert.equal(peer.take()[0]?.cmd, 'connack');
  });

  it('processes packets after the CONNECT only when the last of several hooks has accepted the client', async () => {
    const decide: (() => void)[] = [];
    const later = () => new Promise<true>((resolve) => decide.push(() => resolve(true)));
    await using it = await startTestBed({ hooks: { preConnect: later, authenticate: later } });
    const heard: string[] = [];
    it.broker.subscribe('a', ({ payload }) => heard.push(String(payload)));
    const peer = new Peer(it.broker, 5);
    peer.wire.say(Buffer.concat([connect(), publish('a', 'x'), publish('a', 'y')].map((each) => encode(each, 5))));
    await turns(2);
    assert.equal(decide.length, 1);
    decide[0]();
    await turns(2);
    assert.deepEqual([decide.length, heard.length, peer.isClosed], [2, 0, false]);
    decide[1]();
    await turns(2);
    assert.deepEqual(heard, ['x', 'y']);
    assert.ok(await isServed(peer));
  });

  it('detects that the client has disconnected, while few packets wait', async () => {
    const signals: AbortSignal[] = [];
    const never = new Promise<boolean>(() => {});
    await using it = await startTestBed({
      hooks: {
        preConnect: ({ signal }) => {
          signals.push(signal);
          return never;
        }
      }
    });
    const peer = new Peer(it.broker, 5);
    peer.say(connect());
    peer.wire.destroy();
    await turns(2);
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true]
    );
  });
});

describe('Memory above memoryHighWatermark', () => {
  it('closes the connections whose CONNECT has not been accepted, with 0x89 if one was sent, and no others', async () => {
    let used = 0;
    await using it = await startTestBed({
      memoryHighWatermark: 1_000,
      memoryUsage: () => used,
      hooks: { authenticate: ({ client: { clientId } }) => clientId === 'in' || new Promise<boolean>(() => {}) }
    });
    const admitted = await client(it.broker, { clientId: 'in' });
    const [silent, begun, asked] = Array.from({ length: 3 }, () => new Peer(it.broker, 5));
    begun.say(connectOf(1_000, 5).subarray(0, 500));
    asked.say(connect({ clientId: 'asked' }));
    await it.pass(1_100);
    assert.ok(![silent, begun, asked].some(({ isClosed }) => isClosed));
    used = 1_000;
    await it.pass(1_100);
    assert.ok([silent, begun, asked].every(({ isClosed }) => isClosed));
    assert.deepEqual([silent.take(), begun.take()], [[], []]);
    const [answer] = asked.take();
    assert.ok(answer.cmd === 'connack' && answer.reasonCode === 0x89, JSON.stringify(answer));
    const late = new Peer(it.broker, 5);
    await it.pass(1_100);
    assert.ok(late.isClosed, 'including one that connects while memory is short');
    assert.ok(await isServed(admitted));
  });

  it('lets clients that resume a stored session wait for an authenticate hook, and refuses new ones and clean starts [0x89]', async () => {
    let used = 0;
    let decide: ((isAllowed: boolean) => void) | undefined;
    let decision: Promise<boolean> | boolean = true;
    await using it = await startTestBed({
      memoryHighWatermark: 1_000,
      memoryUsage: () => used,
      hooks: { authenticate: () => decision }
    });
    const properties = { sessionExpiryInterval: 3_600 };
    for (const clientId of ['returning', 'starting again'])
      (await client(it.broker, { clientId, clean: false, properties })).wire.destroy();
    await turns(2);
    decision = new Promise((resolve) => {
      decide = resolve;
    });
    const returning = await client(it.broker, { clientId: 'returning', clean: false, properties });
    const others = [
      await client(it.broker, { clientId: 'starting again', properties }),
      await client(it.broker, { clientId: 'new', clean: false, properties })
    ];
    used = 1_000;
    await it.pass(1_100);
    for (const other of others) {
      const [answer] = other.take();
      assert.ok(answer.cmd === 'connack' && answer.reasonCode === 0x89, JSON.stringify(answer));
    }
    assert.equal(returning.isClosed, false);
    await it.pass(1_000);
    decide?.(true);
    await turns(2);
    const [answer] = returning.take();
    assert.ok(answer.cmd === 'connack' && answer.reasonCode === 0 && answer.sessionPresent, JSON.stringify(answer));
  });
});
