import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import { ClientSession } from '../../lib/client/session.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { someOf } from '../support/samples.ts';
import { publish } from '../support/wire.ts';
import { Lives, PERSISTENT, turns } from './support.ts';

const MESSAGES = ['1', '2', '3'];

/** Runs a function when this packet, counted over both wires, has just been sent. */
interface Fault {
  readonly at: number;
  readonly who: 'broker' | 'publisher' | 'subscriber';
  /** True if the commit in progress is stored nevertheless. */
  readonly isPendingKept: boolean;
}

/**
 * Sends three QoS 2 messages from one persistent session to another.
 * @returns the received messages, and the number of packets
 */
async function run(fault: Fault, slow: number): Promise<{ got: string[]; packets: number }> {
  const lives = new Lives();
  lives.store.turnsBefore = lives.store.turnsAfter = () => slow;
  await lives.begin();
  const got: string[] = [];
  const sessions = { p: new ClientSession(), s: new ClientSession() };
  let packets = 0;
  let isCounting = false;
  let happened: Promise<void> | undefined;
  const come = async (clientId: 'p' | 's') => {
    const client = await lives.connect({ clientId, ...PERSISTENT, session: sessions[clientId] });
    client.on('message', ({ payload }) => got.push(`${payload}`));
    client.on('packet', () => {
      if (!isCounting || ++packets !== fault.at) return;
      // After the packet, because the client's reaction to it belongs to the same moment.
      happened = Promise.resolve().then(() => {
        if (fault.who === 'broker') return lives.kill({ isPendingKept: fault.isPendingKept });
        clients[fault.who === 'publisher' ? 'p' : 's'].destroy();
        return undefined;
      });
    });
    return client;
  };
  const clients = { p: await come('p'), s: await come('s') };
  await clients.s.subscribe({ topic: 't', qos: 2 });
  isCounting = true;
  for (const text of MESSAGES) clients.p.publish('t', text, { qos: 2 }).catch(() => undefined);
  for (let left = 40; left > 0 && happened === undefined; left--) await turns(3 + slow);
  await happened;
  for (const clientId of ['p', 's'] as const)
    if (!clients[clientId].isConnected) {
      const client = await lives.connect({ clientId, ...PERSISTENT, session: sessions[clientId] });
      assert.equal(client.connack.sessionPresent, true);
      client.on('message', ({ payload }) => got.push(`${payload}`));
    }
  await lives.kit.clock.advance(1000);
  assert.equal(sessions.p.outgoing.size, 0, 'every message is acknowledged');
  assert.equal(sessions.s.incoming.size, 0, 'every message is released');
  const { inflight, mqueueLen } = lives.kit.broker.sessions.get('s').counters();
  assert.deepEqual([inflight, mqueueLen, lives.kit.broker.sessions.get('p').counters().awaitingRel], [0, 0, 0]);
  await lives[Symbol.asyncDispose]();
  return { got, packets };
}

describe('QoS 2 from one persistent session to another', () => {
  for (const slow of [0, 2])
    for (const who of ['broker', 'publisher', 'subscriber'] as const)
      it(`delivers exactly once, whichever packet is the last before the ${who} disconnects or crashes (commits of ${2 * slow} turns)`, async () => {
        const { packets } = await run({ at: -1, who, isPendingKept: false }, slow);
        assert.ok(packets > 20, `${packets} packets`);
        for (const at of someOf(1, packets))
          for (const isPendingKept of who === 'broker' ? [false, true] : [false]) {
            const { got } = await run({ at, who, isPendingKept }, slow);
            assert.deepEqual(
              got,
              MESSAGES,
              `packet ${at}, the commit in progress is ${isPendingKept ? '' : 'not '}stored`
            );
          }
      });
});

describe('QoS 2 from a persistent session to the app', () => {
  /** Receives messages in the app in three ways: a handler, a stream of messages, an in-process client. */
  async function listen(lives: Lives): Promise<string[][]> {
    const got: string[][] = [[], [], []];
    const { broker } = lives.kit;
    broker.subscribe('t', ({ payload }) => got[0].push(`${payload}`));
    const stream = broker.messages('t');
    const read = async () => {
      for await (const { payload } of stream) got[1].push(`${payload}`);
    };
    read().catch(() => undefined);
    const client = await broker.connect({ clientId: 'inside' });
    client.on('message', ({ payload }) => got[2].push(`${payload}`));
    await client.subscribe({ topic: 't', qos: 2 });
    return got;
  }

  /**
   * Defers commits from now on.
   * @returns a function that releases them
   */
  function hold({ store }: Lives): () => void {
    let go: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => (go = resolve));
    const commit = store.commit.bind(store);
    store.commit = (batch) => gone.then(() => commit(batch));
    return () => go();
  }

  for (const isBack of [false, true])
    it(`delivers when the message is committed, not before, and once${isBack ? ', even if its client reconnects and sends it again' : ''}`, async () => {
      await using lives = await new Lives().begin();
      const session = new ClientSession();
      const writer = await lives.connect({ clientId: 'p', ...PERSISTENT, session });
      const got = await listen(lives);
      await lives.kit.clock.advance(100);
      const go = hold(lives);
      for (const text of MESSAGES) writer.publish('t', text, { qos: 2 }).catch(() => undefined);
      await turns(10);
      assert.equal(session.outgoing.size, 3);
      if (isBack) {
        writer.destroy();
        await turns(10);
        void lives.connect({ clientId: 'p', ...PERSISTENT, session });
        await turns(10);
      }
      assert.deepEqual(got, [[], [], []]);
      go();
      await lives.kit.clock.advance(1000);
      assert.equal(session.outgoing.size, 0);
      assert.deepEqual(got, [MESSAGES, MESSAGES, MESSAGES]);
    });

  it('loses nothing if the first PUBLISH was not committed', async () => {
    await using lives = await new Lives().begin();
    const session = new ClientSession();
    const writer = await lives.connect({ clientId: 'p', ...PERSISTENT, session });
    await lives.kit.clock.advance(100);
    const go = hold(lives);
    for (const text of MESSAGES) writer.publish('t', text, { qos: 2 }).catch(() => undefined);
    await turns(10);
    const killed = lives.kill();
    go();
    await killed;
    const got = await listen(lives);
    await lives.connect({ clientId: 'p', ...PERSISTENT, session });
    await lives.kit.clock.advance(1000);
    assert.deepEqual(got, [MESSAGES, MESSAGES, MESSAGES]);
  });
});

describe('QoS 2 from a persistent session that sends no PUBREL', () => {
  it('writes a few KiB per commit, for any number of waiting packet ids', async () => {
    await using lives = await new Lives().begin();
    const writer = await rawClient(lives.kit.broker, { clientId: 'w', version: 4, clean: false });
    for (let id = 1; id <= 20_000; id++) {
      writer.send(publish('t', '', { qos: 2, messageId: id }));
      if (id % 500 === 0) await turns(4);
    }
    await lives.kit.clock.advance('1s');
    assert.equal(lives.kit.broker.sessions.get('w').counters().awaitingRel, 20_000);
    const { committed } = lives.store;
    committed.splice(0);
    writer.send(publish('t', '', { qos: 2, messageId: 20_001 }));
    await turns(20);
    assert.ok(committed.length > 0);
    const bytes = committed.reduce((sum, batch) => sum + batch.bytes, 0);
    assert.ok(bytes < 8_192 + 300, `${bytes} bytes`);
    await lives.crash();
    assert.equal(lives.kit.broker.sessions.get('w').counters().awaitingRel, 20_001);
  });

  it('leaves none of the packet ids in memory while its client is offline, and restores them when it reconnects', async () => {
    await using lives = await new Lives().begin();
    const { broker, clock } = lives.kit;
    const options = { clientId: 'w', clean: false, properties: { sessionExpiryInterval: 3_600 } } as const;
    const writer = await rawClient(broker, options);
    writer.send(publish('t', '', { qos: 2, messageId: 65_000 }));
    await writer.next('pubrec');
    writer.stream.destroy();
    await clock.advance('1s');
    assert.equal(engineOf(broker).sessions.get('w')?.outlet.inflight?.awaitingRel, undefined);
    assert.equal(broker.sessions.get('w').counters().awaitingRel, 1);
    const again = await rawClient(broker, options);
    for (const [messageId, code] of [
      [65_000, 0],
      [65_001, 0x92]
    ]) {
      again.send({ cmd: 'pubrel', messageId, reasonCode: 0 });
      const { reasonCode } = await again.next('pubcomp');
      assert.equal(reasonCode, code);
    }
  });

  it('leaves nothing in memory of a session whose client is refused after it was read', async () => {
    await using lives = await new Lives().begin();
    const { broker, clock } = lives.kit;
    const options = { clientId: 'w', clean: false } as const;
    const writer = await rawClient(broker, { ...options, properties: { sessionExpiryInterval: 3_600 } });
    writer.send(publish('t', '', { qos: 2, messageId: 1 }));
    await writer.next('pubrec');
    writer.stream.destroy();
    await clock.advance('1s');
    const again = await rawClient(broker, { ...options, connect: false });
    // the CONNACK is larger
    again.send(connectPacket({ ...options, properties: { sessionExpiryInterval: 3_600, maximumPacketSize: 4 } }));
    await again.closed();
    assert.equal(broker.sessions.get('w').state, 'disconnected');
    await clock.advance('1s');
    assert.equal(engineOf(broker).sessions.get('w')?.outlet.inflight?.awaitingRel, undefined);
    assert.equal(broker.sessions.get('w').counters().awaitingRel, 1);
  });
});
