import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import { memoryStore } from '../../lib/index.ts';
import type { Packet } from '../../lib/packets/types.ts';
import { MortalStore } from '../store/support.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, rest, startBroker, turns } from '../support/wire.ts';

/** Number of turns of the event loop for a commit that does not complete before the process ends. */
const LONG = 2_000;

/** A window of one message, for clients of all versions. */
const WINDOW = { maxInflight: 1 };
const PERSISTENT = { properties: { sessionExpiryInterval: 600, receiveMaximum: 1 } };

/** Deliver hooks that refuse the topic `a` when `isOn` is set. */
class Refusal {
  isOn = false;
  calls = 0;
  readonly hooks = {
    deliver: ({ message }: { message: { topic: string } }): boolean => {
      this.calls++;
      return !(this.isOn && message.topic === 'a');
    }
  };
}

function dropsOf(broker: Broker): string[] {
  const drops: string[] = [];
  broker.on('message.dropped', ({ reason, message }) => drops.push(`${reason} ${message.topic}`));
  return drops;
}

function connect(broker: Broker, version: 4 | 5 = 5, more: object = {}): Promise<RawClient> {
  return rawClient(broker, { clientId: 'c', clean: false, version, ...(version === 5 ? PERSISTENT : {}), ...more });
}

function described(packets: readonly Packet[]): string[] {
  return packets.map((packet) => {
    if (packet.cmd === 'publish')
      return `publish ${packet.topic}=${packet.payload} id ${packet.messageId}${packet.dup ? ' dup' : ''}`;
    return `${packet.cmd} ${(packet as { messageId?: number }).messageId}`;
  });
}

/** Everything that arrives until nothing more does. */
async function received(client: RawClient): Promise<string[]> {
  await turns(50);
  return described(await rest(client));
}

/** Leaves the first message of `a` in flight and one of `b` in the queue. */
async function leaveInFlight(broker: Broker, qos: 1 | 2, version: 4 | 5 = 5): Promise<void> {
  const client = await connect(broker, version);
  await granted(client, 1, [
    { topic: 'a', qos },
    { topic: 'b', qos }
  ]);
  await broker.publish('a', '1', { qos });
  assert.deepEqual(await received(client), ['publish a=1 id 1']);
  client.cut();
  await turns(50);
  await broker.publish('b', '2', { qos });
  await turns(50);
}

describe('A deliver hook that refuses what was in flight on an earlier connection', () => {
  for (const version of [4, 5] as const) {
    it(`frees the packet id of a QoS 1 message for the next message (version ${version})`, async () => {
      const refusal = new Refusal();
      await using broker = await startBroker({ store: memoryStore(), ...WINDOW, hooks: refusal.hooks });
      const drops = dropsOf(broker);
      await leaveInFlight(broker, 1, version);
      refusal.isOn = true;
      const client = await connect(broker, version);
      assert.deepEqual(await received(client), ['publish b=2 id 2']);
      assert.deepEqual(drops, ['hook a']);
      assert.equal(broker.sessions.get('c').counters().inflight, 1);
    });

    it(`continues the flow of a QoS 2 message with PUBREL, and sends the next message after PUBCOMP (version ${version})`, async () => {
      const refusal = new Refusal();
      await using broker = await startBroker({ store: memoryStore(), ...WINDOW, hooks: refusal.hooks });
      const drops = dropsOf(broker);
      await leaveInFlight(broker, 2, version);
      refusal.isOn = true;
      const client = await connect(broker, version);
      assert.deepEqual(await received(client), ['pubrel 1']);
      assert.deepEqual(drops, ['hook a']);
      client.send({ cmd: 'pubcomp', messageId: 1, reasonCode: version === 5 ? 0x92 : 0 });
      assert.deepEqual(await received(client), ['publish b=2 id 2']);
      assert.equal(broker.sessions.get('c').counters().inflight, 1);
    });
  }

  it('sends PUBREL again on the next connection if PUBCOMP did not arrive, and drops the message once', async () => {
    const refusal = new Refusal();
    await using broker = await startBroker({ store: memoryStore(), ...WINDOW, hooks: refusal.hooks });
    const drops = dropsOf(broker);
    await leaveInFlight(broker, 2);
    refusal.isOn = true;
    const second = await connect(broker);
    assert.deepEqual(await received(second), ['pubrel 1']);
    second.cut();
    await turns(50);
    refusal.isOn = false;
    const third = await connect(broker);
    assert.deepEqual(await received(third), ['pubrel 1']);
    third.send({ cmd: 'pubcomp', messageId: 1, reasonCode: 0 });
    assert.deepEqual(await received(third), ['publish b=2 id 2']);
    assert.deepEqual(drops, ['hook a']);
  });

  it('sends the messages in flight after it, in order', async () => {
    const refusal = new Refusal();
    await using broker = await startBroker({ store: memoryStore(), maxInflight: 3, hooks: refusal.hooks });
    const wide = { properties: { sessionExpiryInterval: 600 } };
    const first = await connect(broker, 5, wide);
    await granted(first, 1, [
      { topic: 'a', qos: 2 },
      { topic: 'b', qos: 2 }
    ]);
    for (const topic of ['a', 'b', 'a']) await broker.publish(topic, 'x', { qos: 2 });
    assert.equal((await received(first)).length, 3);
    first.cut();
    await turns(50);
    await broker.publish('b', 'y', { qos: 2 });
    refusal.isOn = true;
    const again = await connect(broker); // Receive Maximum 1
    assert.deepEqual(await received(again), ['pubrel 1']);
    again.send({ cmd: 'pubcomp', messageId: 1, reasonCode: 0x92 });
    assert.deepEqual(await received(again), ['publish b=x id 2 dup']);
    again.send({ cmd: 'pubrec', messageId: 2, reasonCode: 0 });
    assert.deepEqual(await received(again), ['pubrel 2']);
    again.send({ cmd: 'pubcomp', messageId: 2, reasonCode: 0 });
    assert.deepEqual(await received(again), ['pubrel 3']);
    again.send({ cmd: 'pubcomp', messageId: 3, reasonCode: 0x92 });
    assert.deepEqual(await received(again), ['publish b=y id 4']);
  });

  for (const qos of [1, 2] as const)
    it(`asks the hook again at QoS ${qos} if the process ends before the drop is committed, and no PUBREL was sent`, async () => {
      const store = new MortalStore();
      const refusal = new Refusal();
      const broker = await startBroker({ store, ...WINDOW, hooks: refusal.hooks });
      await leaveInFlight(broker, qos);
      refusal.isOn = true;
      const connecting = connect(broker);
      const drops = dropsOf(broker);
      broker.once('message.dropped', () => {
        store.turnsBefore = () => LONG;
      });
      const client = await connecting;
      await turns(50);
      assert.deepEqual(drops, ['hook a']);
      const packets = client.received.map(({ cmd }) => cmd);
      assert.deepEqual(packets, qos === 1 ? ['connack', 'publish'] : ['connack']);
      await store.die();
      const copy = await store.copy();
      copy.turnsBefore = () => 0;
      refusal.isOn = false;
      await using next = await startBroker({ store: copy, ...WINDOW, hooks: refusal.hooks });
      const again = await connect(next);
      assert.deepEqual(await received(again), ['publish a=1 id 1 dup']);
    });

  it('sends PUBREL in the next process if the first one ends between the commit and PUBREL', async () => {
    const store = new MortalStore();
    const refusal = new Refusal();
    const broker = await startBroker({ store, ...WINDOW, hooks: refusal.hooks });
    await leaveInFlight(broker, 2);
    refusal.isOn = true;
    const connecting = connect(broker);
    broker.once('message.dropped', () => {
      store.turnsAfter = () => LONG;
    });
    const client = await connecting;
    await turns(50);
    assert.deepEqual(
      client.received.map(({ cmd }) => cmd),
      ['connack']
    );
    await store.die();
    const copy = await store.copy();
    copy.turnsAfter = () => 0;
    refusal.isOn = false;
    await using next = await startBroker({ store: copy, ...WINDOW, hooks: refusal.hooks });
    const drops = dropsOf(next);
    const again = await connect(next);
    assert.deepEqual(await received(again), ['pubrel 1']);
    again.send({ cmd: 'pubcomp', messageId: 1, reasonCode: 0x92 });
    assert.deepEqual(await received(again), ['publish b=2 id 2']);
    assert.deepEqual(drops, []);
  });

  it('sends PUBREL when the store works again, if the commit of the drop fails', async () => {
    const store = new MortalStore();
    const refusal = new Refusal();
    await using broker = await startBroker({ store, ...WINDOW, hooks: refusal.hooks });
    broker.on('error', () => undefined);
    await leaveInFlight(broker, 2);
    refusal.isOn = true;
    let failures = 0;
    broker.once('message.dropped', () => {
      store.fault = () => (failures++ === 0 ? 'refuses' : undefined);
    });
    const client = await connect(broker);
    const packet = await client.next('pubrel');
    assert.deepEqual(described([packet]), ['pubrel 1']);
    assert.ok(failures > 1, 'PUBREL was sent before the commit succeeded');
  });
});

describe('A QoS 2 message in flight that is too large for the next connection of the client', () => {
  for (const isStored of [false, true])
    it(`releases the message with PUBREL, so that its packet id is not used for another message before${isStored ? ', with a store' : ''}`, async () => {
      await using broker = await startBroker(isStored ? { store: memoryStore() } : {});
      const drops = dropsOf(broker);
      const first = await connect(broker);
      await granted(first, 1, { topic: '#', qos: 2 });
      await broker.publish('a', 'x'.repeat(100), { qos: 2 });
      assert.equal((await received(first)).length, 1);
      first.cut();
      await turns(50);
      await broker.publish('b', '2', { qos: 2 });
      const again = await connect(broker, 5, {
        properties: { sessionExpiryInterval: 600, receiveMaximum: 1, maximumPacketSize: 50 }
      });
      assert.deepEqual(await received(again), ['pubrel 1']);
      again.send({ cmd: 'pubcomp', messageId: 1, reasonCode: 0x92 });
      assert.deepEqual(await received(again), ['publish b=2 id 2']);
      assert.deepEqual(drops, ['too_large a']);
    });
});
