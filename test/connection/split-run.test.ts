import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BrokerOptions } from '../../lib/broker/configuration/options.ts';
import { encode } from '../../lib/packets/encode.ts';
import type { Packet, ProtocolVersion } from '../../lib/packets/types.ts';
import { Random } from '../fuzz/random.ts';
import { Peer } from '../fuzz/wire.ts';
import { rawClient } from '../support/raw-client.ts';
import { someOf } from '../support/samples.ts';
import { connect, granted, payloads, publish, startBroker, subscribe, turns, unsubscribe } from '../support/wire.ts';

describe('A run of QoS 0 messages', () => {
  it('ends before a packet that is incomplete in the chunk, wherever it is split', async () => {
    await using broker = await startBroker();
    const subscriber = await rawClient(broker);
    await granted(subscriber, 1, ['a', 'b']);
    const publisher = await rawClient(broker);
    const last = [publish('a', 'three'), publish('b', 'three'), publish('a', 'three', { qos: 1, messageId: 1 })];
    for (const third of last) {
      const run = Buffer.concat([encode(publish('a', 'one'), 5), encode(publish('a', 'two'), 5)]);
      const bytes = Buffer.concat([run, encode(third, 5)]);
      for (let cut = run.length; cut < bytes.length; cut++) {
        publisher.send(bytes.subarray(0, cut));
        await turns(3);
        publisher.send(bytes.subarray(cut));
        await turns(3);
        assert.deepEqual(await payloads(subscriber), ['one', 'two', 'three'], `cut at ${cut}`);
      }
    }
  });
});

describe('The bytes of a client', () => {
  for (const version of [4, 5] as const) {
    it(`causes the same effect wherever the bytes are split in two, version ${version}`, async () => {
      const random = seeded(`cut in two, version ${version}`);
      const bytes = encodeAll(somePackets(random, 24, [0, 1, 20, 130, 300]), version);
      await using broker = await startBroker();
      const whole = await outcome(broker, version, [bytes]);
      assert.ok(whole.every(({ length }) => length > 5));
      for (const cut of someOf(1, bytes.length - 1)) {
        const chunks = [copy(bytes.subarray(0, cut)), copy(bytes.subarray(cut))];
        assert.deepEqual(await outcome(broker, version, chunks), whole, `cut at ${cut}`);
      }
    });

    for (const [name, options] of [
      ['', {}],
      [', with a hook that answers late', { hooks: { publish: async () => true }, maxHeldBytes: 1_000_000 }]
    ] as [string, BrokerOptions][]) {
      it(`causes the same effect in chunks of any size, version ${version}${name}`, async () => {
        const random = seeded(`chunks of any sizes, version ${version}${name}`);
        await using broker = await startBroker({ ...options, maxPacketSize: 1_000_000 });
        for (let round = 0; round < 20; round++) {
          const packets = somePackets(random, 40, [0, 1, 100, 127, 1_024, 5_000, 16_384, 20_000, 70_000]);
          const bytes = encodeAll(packets, version);
          const whole = await outcome(broker, version, [bytes]);
          const cut = await outcome(broker, version, cutAnywhere(random, bytes));
          assert.deepEqual(cut, whole, `round ${round}`);
        }
      });
    }

    it(`causes the same effect one byte at a time, version ${version}`, async () => {
      const random = seeded(`one by one, version ${version}`);
      const bytes = encodeAll(somePackets(random, 40, [0, 1, 100, 127, 1_024, 20_000]), version);
      await using broker = await startBroker();
      const whole = await outcome(broker, version, [bytes]);
      const single = await outcome(
        broker,
        version,
        [...bytes].map((byte) => Buffer.from([byte]))
      );
      assert.deepEqual(single, whole);
    });
  }

  it('joins bytes only up to the end of the packet that the previous chunk began', async (t) => {
    await using broker = await startBroker();
    const peer = new Peer(broker, 4);
    peer.say(connect(4));
    const one = encode(publish('a', Buffer.alloc(1_000)), 4);
    const bytes = Buffer.concat(Array.from({ length: 1_000 }, () => one));
    const concat = t.mock.method(Buffer, 'concat');
    for (let at = 0; at < bytes.length; at += 65_536) peer.say(bytes.subarray(at, at + 65_536));
    await turns(2);
    peer.wire.destroy();
    const joined = concat.mock.calls.reduce((sum, { result }) => sum + (result as Buffer).length, 0);
    assert.ok(joined <= 16 * one.length, `${joined} bytes`);
  });
});

function seeded(name: string): Random {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`# ${name}: SEED=${seed}`);
  return new Random(seed);
}

/** The packets of the client: every QoS, valid and invalid acknowledgements, and subscriptions that change who receives later messages. */
function somePackets(random: Random, count: number, sizes: readonly number[]): Packet[] {
  return Array.from({ length: count }, (_, at): Packet => {
    const messageId = 1 + random.below(4);
    const topic = random.pick(['a', 'b', 'b/c']);
    const kind = random.below(10);
    if (kind === 0) return { cmd: 'pingreq' };
    if (kind === 1) return { cmd: 'pubrel', messageId, reasonCode: 0 };
    if (kind === 2) return subscribe(messageId, topic);
    if (kind === 3) return unsubscribe(messageId, topic);
    const payload = Buffer.alloc(random.pick(sizes), at);
    const qos = random.pick([0, 0, 0, 1, 2] as const);
    return publish(topic, payload, qos === 0 ? {} : { qos, messageId });
  });
}

function encodeAll(packets: readonly Packet[], version: ProtocolVersion): Buffer {
  return Buffer.concat(packets.map((packet) => encode(packet, version)));
}

/** Copies bytes into separate memory, like bytes read from a socket. */
function copy(bytes: Buffer): Buffer {
  return Buffer.from(bytes);
}

function cutAnywhere(random: Random, bytes: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + random.below(random.pick([1, 2, 5, 200, 2_000, 20_000, 65_536]));
    chunks.push(copy(bytes.subarray(at, at + size)));
    at += size;
  }
  return chunks;
}

/** Returns what the client and another one, which subscribes to everything, receive for `chunks`. */
async function outcome(
  broker: Awaited<ReturnType<typeof startBroker>>,
  version: ProtocolVersion,
  chunks: readonly Buffer[]
): Promise<Packet[][]> {
  const peers = [new Peer(broker, version), new Peer(broker, version)];
  for (const peer of peers) peer.say(connect(version));
  await turns(5);
  peers[1].say(subscribe(1, { topic: '#', qos: 2 }));
  await turns(5);
  for (const peer of peers) peer.take();
  for (const chunk of chunks) peers[0].say(chunk);
  // Packets that a hook defers are processed turn by turn.
  for (let quiet = 0; quiet < 3; ) {
    const before = peers[0].wire.heardBytes + peers[1].wire.heardBytes;
    await turns(2);
    quiet = peers[0].wire.heardBytes + peers[1].wire.heardBytes === before ? quiet + 1 : 0;
  }
  const told = peers.map((peer) => peer.take());
  assert.ok(peers.every(({ isClosed }) => !isClosed));
  for (const peer of peers) peer.wire.destroy();
  await turns(2);
  return told;
}
