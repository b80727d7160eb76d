import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { queryObjects } from 'node:v8';
import type { BrokerError } from '../../lib/base/errors.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { checkStore } from '../../lib/index.ts';
import { readFlow } from '../../lib/session/messages/flow-record.ts';
import { Kind } from '../../lib/store/keys.ts';
import { Segment } from '../../lib/store/segment.ts';
import { Batch } from '../../lib/store/store.ts';
import { rawClient } from '../support/raw-client.ts';
import { sized } from '../support/samples.ts';
import { granted } from '../support/wire.ts';
import { laterVersion } from './filled-store.ts';
import { Lives, PERSISTENT, turns } from './support.ts';

const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, n) => `${from + n}`);

describe('Persisted messages', () => {
  it('delivers persisted messages in order, each once, after a crash', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 2);
    for (const n of numbers(100)) await lives.kit.broker.publish('t', n, { qos: 2 });
    await lives.kill();
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), numbers(100));
  });

  it('delivers persisted messages once if the client reconnects before its last state is written', async () => {
    await using lives = await new Lives().begin();
    lives.store.turnsBefore = () => 20;
    const first = await lives.connect({ clientId: 'a', ...PERSISTENT, receiveMaximum: 1, acknowledge: 'manual' });
    await first.subscribe({ topic: 't', qos: 2 });
    const writer = await lives.connect({ clientId: 'w' });
    for (const n of numbers(5)) void writer.publish('t', n, { qos: 2 });
    await turns(3);
    first.destroy();
    for (const n of numbers(5, 5)) void writer.publish('t', n, { qos: 2 });
    await turns(3);
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(1000);
    assert.deepEqual(texts(), numbers(10));
  });

  it('queues QoS 0 messages in the store, too, and delivers them at most once', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 0);
    for (const n of numbers(10)) await lives.kit.broker.publish('t', n);
    await lives.crash();
    const { texts } = await lives.listen({ clientId: 'a' });
    await turns(20);
    assert.deepEqual(texts(), numbers(10));
    await lives.kill();
    const again = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(again.texts(), []);
  });

  it('delivers messages of all QoS levels in the order in which they were published', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 2);
    const levels = [0, 1, 2, 1, 0, 2, 0, 1, 1, 2] as const;
    for (const [n, qos] of levels.entries()) await lives.kit.broker.publish('t', `${n}`, { qos });
    await lives.kit.clock.advance(1000);
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), numbers(levels.length));
  });

  it('persists no QoS 0 messages if the zone excludes them', async () => {
    await using lives = await new Lives({ mqueueStoreQos0: false }).begin();
    await lives.leave('a', 't', 1);
    await lives.kit.broker.publish('t', 'zero');
    await lives.kit.broker.publish('t', 'one', { qos: 1 });
    await lives.crash();
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), ['one']);
  });

  it('counts QoS 0 messages correctly over any number of connections of a client that does not read', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 0);
    const payload = 'x'.repeat(30_000);
    for (let n = 0; n < 30; n++) await lives.kit.broker.publish('t', payload);
    await lives.kit.clock.advance(100);
    for (let round = 0; round < 3; round++) {
      const { client } = await lives.listen({ clientId: 'a' });
      client.destroy();
      await lives.kit.clock.advance(100);
    }
    await lives.crash();
    assert.ok(lives.kit.broker.sessions.get('a').counters().mqueueLen >= 0);
    await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.equal(lives.kit.broker.sessions.get('a').counters().mqueueLen, 0);
  });

  it('sends persisted messages by priority', async () => {
    await using lives = await new Lives({ mqueuePriorities: { high: 10, low: 1 } }).begin();
    await lives.leave('a', '#', 1);
    for (const n of numbers(3)) {
      await lives.kit.broker.publish('low', `low${n}`, { qos: 1 });
      await lives.kit.broker.publish('high', `high${n}`, { qos: 1 });
    }
    await lives.crash();
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), ['high0', 'high1', 'high2', 'low0', 'low1', 'low2']);
  });

  it('expires messages while no process is running, and sends the remaining interval', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 1);
    const { broker } = lives.kit;
    await broker.publish('t', 'short', { qos: 1, properties: { messageExpiryInterval: 60 } });
    await broker.publish('t', 'long', { qos: 1, properties: { messageExpiryInterval: 600 } });
    await lives.crash(100_000);
    await lives.kit.clock.advance(50_000);
    const { got, texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), ['long']);
    assert.equal(got[0].properties.messageExpiryInterval, 600 - 150);
  });

  it('restores all properties of messages after a crash', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't/#', 2);
    const properties = {
      payloadFormatIndicator: 1,
      contentType: 'text/plain',
      responseTopic: 're/ply',
      correlationData: Buffer.from([0, 255, 128]),
      userProperties: [
        ['a', '1'],
        ['a', '2']
      ] as [string, string][]
    } as const;
    const writer = await lives.connect({ clientId: 'w', username: 'u' });
    await writer.publish('t/ü', Buffer.from([0xc3, 0xbc]), { qos: 2, properties });
    await writer.publish('t/big', Buffer.alloc(100_000, 7), { qos: 1 });
    await lives.crash();
    const seen: (readonly [string, string | undefined])[] = [];
    lives.kit.broker.on('message.delivered', ({ message }) => seen.push([message.clientId, message.username]));
    const { got } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    const [small, big] = ['t/ü', 't/big'].map((name) => got.find(({ topic }) => topic === name));
    assert.deepEqual(small?.properties, properties);
    assert.deepEqual([`${small?.payload}`, small?.qos], ['ü', 2]);
    assert.ok(big?.payload.equals(Buffer.alloc(100_000, 7)));
    assert.deepEqual(seen, [
      ['w', 'u'],
      ['w', 'u']
    ]);
  });

  it('reports message.delivered once, even if the client disconnected before the messages were sent', async () => {
    await using lives = await new Lives().begin();
    const delivered: string[] = [];
    lives.kit.broker.on('message.delivered', ({ message, qos }) => delivered.push(`${message.topic} ${qos}`));
    const away = await lives.connect({ clientId: 'a', ...PERSISTENT });
    await away.subscribe({ topic: 't', qos: 2 });
    await lives.kit.clock.advance('1s');
    lives.store.turnsBefore = () => 50;
    const published = lives.kit.broker.publish('t', 'x', { qos: 2 });
    await turns(10);
    away.destroy();
    await published;
    lives.store.turnsBefore = () => 0;
    assert.deepEqual(delivered, []);
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance('1s');
    assert.deepEqual([texts(), delivered], [['x'], ['t 2']]);
  });

  it('sends messages in flight again with their packet ids and DUP, before queued messages', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 1);
    for (const n of numbers(6)) await lives.kit.broker.publish('t', n, { qos: 1 });
    await lives.crash();
    await lives.connect({ clientId: 'a', ...PERSISTENT, receiveMaximum: 3, acknowledge: 'manual' });
    await lives.crash();
    await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    const packets = lives.kit
      .packets('a')
      .flatMap(({ packet, direction }) =>
        packet?.cmd === 'publish' && direction === 'toClient'
          ? [`${packet.payload} ${packet.dup ? 'dup' : 'new'} ${packet.messageId}`]
          : []
      );
    assert.deepEqual(packets, ['0 dup 1', '1 dup 2', '2 dup 3', '3 new 4', '4 new 5', '5 new 6']);
  });

  it('does not send a message again after a crash if nothing but its acknowledgement followed', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't');
    const { got } = await lives.listen({ clientId: 'a', acknowledge: 'manual' });
    await lives.kit.broker.publish('t', 'x', { qos: 1 });
    await lives.kit.clock.advance('1s');
    got[0].ack();
    await lives.crash();
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance('1s');
    assert.deepEqual(texts(), []);
  });

  it('sends messages in flight again, each with its packet id, after a reconnect that failed partway', async () => {
    await using lives = await new Lives().begin();
    const { clock, broker } = lives.kit;
    const options = { clientId: 'a', ...PERSISTENT, acknowledge: 'manual' } as const;
    const first = await lives.connect(options);
    await first.subscribe({ topic: 't', qos: 2 });
    for (const n of numbers(40)) {
      await broker.publish('t', n, { qos: 2 });
      await clock.advance(200); // one record each
    }
    first.destroy();
    await clock.advance(200);
    const { store } = lives;
    const read = store.read.bind(store);
    let reads = 0;
    store.read = (...range) => {
      if (range[0][0] === Kind.segment && ++reads === 2) return Promise.reject(new Error('no such sector'));
      return read(...range);
    };
    const errors: unknown[] = [];
    broker.on('error', ({ error, client }) =>
      errors.push([(error as BrokerError).code, error.message, client?.clientId])
    );
    await assert.rejects(lives.connect(options));
    assert.equal(reads, 2);
    assert.deepEqual(errors, [['STORE_UNUSABLE', 'memory: the store cannot be read: no such sector', 'a']]);
    await lives.connect(options);
    await clock.advance(100);
    const ids = lives.kit
      .packets('a')
      .flatMap(({ packet, direction }) =>
        packet?.cmd === 'publish' && direction === 'toClient' && packet.dup
          ? [`${packet.payload} ${packet.messageId}`]
          : []
      );
    assert.deepEqual(
      ids,
      numbers(40).map((n) => `${n} ${Number(n) + 1}`)
    );
  });

  it('sends thousands of queued messages through a window of 10 over two connections, followed by new ones', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 1);
    const writer = await lives.connect({ clientId: 'w' });
    const count = sized(3_000, 10_000);
    const part = count * 0.4;
    await Promise.all(numbers(count).map((n) => writer.publish('t', n, { qos: 1 })));
    await lives.crash();
    const first = await lives.connect({ clientId: 'a', ...PERSISTENT, receiveMaximum: 10, acknowledge: 'manual' });
    const acknowledged: string[] = [];
    first.on('message', (message) => {
      if (acknowledged.length >= part) return;
      acknowledged.push(`${message.payload}`);
      message.ack();
    });
    await lives.kit.clock.advance(10);
    assert.equal(acknowledged.length, part);
    first.destroy();
    await lives.kit.clock.advance(100);
    const second = await lives.listen({ clientId: 'a', receiveMaximum: 10, session: first.session });
    const other = await lives.connect({ clientId: 'w2' });
    await Promise.all(numbers(1000, count).map((n) => other.publish('t', n, { qos: 1 })));
    await lives.kit.clock.advance(1000);
    assert.deepEqual([...acknowledged, ...second.texts()], numbers(count + 1000));
    await lives.kit.clock.advance(100);
    assert.deepEqual(
      (await lives.store.contents()).filter((text) => text.startsWith('queued')),
      [],
      'a delivered message makes room'
    );
  });

  it('delivers all messages if more are queued for a connected client than fit into memory', async () => {
    await using lives = await new Lives().begin();
    lives.store.turnsBefore = () => 2;
    const { client, texts } = await lives.listen({ clientId: 'a', receiveMaximum: 7 });
    await client.subscribe({ topic: 't', qos: 1 });
    const writer = await lives.connect({ clientId: 'w' });
    await Promise.all(numbers(6000).map((n) => writer.publish('t', n, { qos: 1 })));
    await lives.kit.clock.advance(1000);
    assert.deepEqual(texts(), numbers(6000));
  });

  it('delivers all messages by priority if they are in more records than are read at once', async () => {
    await using lives = await new Lives({ mqueuePriorities: { 'q/a': 1, 'q/b': 2 } }).begin();
    await lives.leave('a', 'q/+', 1);
    for (let round = 0; round < 45; round++) {
      for (const topic of ['q/a', 'q/b'])
        for (let n = 0; n < 20; n++) void lives.kit.broker.publish(topic, topic, { qos: 1 });
      await lives.kit.clock.advance(300);
    }
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance('1s');
    assert.deepEqual(texts(), [...Array(900).fill('q/b'), ...Array(900).fill('q/a')]);
  });

  it('limits the messages of a connected client that acknowledges nothing, including those that do not fit into memory', async () => {
    await using lives = await new Lives({ maxMqueueLen: 3_000 }).begin();
    const properties = { sessionExpiryInterval: 3_600, receiveMaximum: 1 };
    const reader = await rawClient(lives.kit.broker, { clientId: 'a', clean: false, properties });
    await granted(reader, 1, { topic: 't', qos: 1 });
    for (let round = 0; round < 100; round++) {
      for (let n = 0; n < 100; n++) void lives.kit.broker.publish('t', `${n}`, { qos: 1 });
      await lives.kit.clock.advance(20);
    }
    const { mqueueLen } = lives.kit.broker.sessions.get('a').counters();
    assert.ok(mqueueLen >= 3_000 && mqueueLen <= 3_200, `${mqueueLen} messages are queued`);
  });

  it('keeps nothing in memory of acknowledged messages, even if an earlier one is never acknowledged', async () => {
    await using lives = await new Lives().begin();
    const { broker, clock } = lives.kit;
    const properties = { sessionExpiryInterval: 3_600 };
    const reader = await rawClient(broker, { clientId: 'a', clean: false, properties });
    await granted(reader, 1, { topic: 't', qos: 1 });
    await broker.publish('t', 'never acknowledged', { qos: 1 });
    await reader.next('publish');
    const before = queryObjects(Segment, { format: 'count' });
    for (let n = 0; n < sized(100, 300); n++) {
      await broker.publish('t', `${n}`, { qos: 1 });
      const { messageId = 0 } = await reader.next('publish');
      await clock.advance(200);
      reader.send({ cmd: 'puback', messageId, reasonCode: 0 });
      await turns(2);
    }
    await clock.advance('1s');
    const left = queryObjects(Segment, { format: 'count' }) - before;
    assert.ok(left < 5, `${left} segments`);
    assert.equal((await lives.store.contents()).filter((text) => text.startsWith('queued')).length, 1);
  });

  it('ends only the connection of messages that cannot be sent after they have been read', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 1);
    for (const n of numbers(10)) await lives.kit.broker.publish('t', n, { qos: 1 });
    await lives.kit.clock.advance('1s');
    const told: string[] = [];
    lives.kit.broker.on('error', ({ error, during }) => told.push(`${during}: ${error.message}`));
    const session = engineOf(lives.kit.broker).sessions.get('a');
    assert.ok(session);
    let pumps = 0;
    session.outlet.pump = () => {
      if (++pumps === 1) session.outlet.queue?.page();
      else throw new Error('out of order');
    };
    const { client } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance('1s');
    assert.equal(client.isConnected, false);
    assert.deepEqual(told, ['sending queued messages: out of order']);
    Reflect.deleteProperty(session.outlet, 'pump');
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance('1s');
    assert.deepEqual(texts(), numbers(10));
  });

  it('never writes messages that were acknowledged before', async () => {
    await using lives = await new Lives().begin();
    const { client } = await lives.listen({ clientId: 'a' });
    await client.subscribe({ topic: 't', qos: 1 });
    await lives.kit.clock.advance(100);
    lives.store.committed.splice(0);
    lives.store.turnsAfter = () => 30;
    const writer = await lives.connect({ clientId: 'w' });
    const sent = numbers(50).map((n) => writer.publish('t', n, { qos: 1 }));
    await Promise.all(sent);
    await lives.kit.clock.advance(1000);
    const segments = lives.store.committed.flatMap(({ keys, values }) =>
      keys.filter((key, at) => key[0] === 0x13 && values[at] !== undefined)
    );
    assert.ok(segments.length < 50, `${segments.length} records`);
  });
});

/** Replaces one of three queued messages, each in a separate record, by an unreadable record or one of a later version. */
async function spoil(lives: Lives, at: number, isLater: boolean, qos: 0 | 1 = 1): Promise<void> {
  await lives.leave('a', 't', 1);
  for (const n of numbers(3)) {
    await lives.kit.broker.publish('t', n, { qos });
    await lives.kit.clock.advance(200);
  }
  const { key, value } = (await lives.store.entries()).filter(({ key }) => key[0] === Kind.segment)[at];
  const batch = new Batch();
  if (isLater) batch.put(key, laterVersion({ key, value }));
  else batch.put(key, Buffer.concat([value, Buffer.of(0)]));
  await lives.store.commit(batch);
}

describe('A queue with an unreadable record', () => {
  it('delivers the queue without the unreadable record, and reports the error', async () => {
    await using lives = await new Lives().begin();
    await spoil(lives, 1, false);
    const told: string[] = [];
    lives.kit.broker.on('error', ({ error }) => told.push(error.message));
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), ['0', '2']);
    assert.deepEqual(told, [
      'memory: queued messages of session 1, from number 2: the checksum is wrong. 1 accepted messages for client "a" are lost with it. Run checkStore (embermq store check) to find further damage, or restore a backup.'
    ]);
  });

  it('excludes the messages of the unreadable record from the count', async () => {
    await using lives = await new Lives().begin();
    await spoil(lives, 2, false);
    await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.equal(lives.kit.broker.sessions.get('a').counters().mqueueLen, 0);
    await lives.crash();
    assert.equal(lives.kit.broker.sessions.get('a').counters().mqueueLen, 0);
  });

  for (const qos of [0, 1] as const)
    it(`leaves a sound store of QoS ${qos} once the rest has been sent, and reports the record once`, async () => {
      await using lives = await new Lives().begin();
      await spoil(lives, 1, false, qos);
      const told: string[] = [];
      lives.kit.broker.on('error', ({ error }) => told.push(error.message));
      for (let round = 0; round < 2; round++) {
        const { client } = await lives.listen({ clientId: 'a', acknowledge: round === 0 ? 'manual' : 'auto' });
        await lives.kit.clock.advance('1s');
        await client.disconnect();
        await lives.kit.clock.advance('1s');
      }
      assert.equal(told.length, 1);
      const copy = await lives.store.copy();
      assert.deepEqual((await checkStore(copy)).findings, []);
      const [flow] = (await lives.store.entries()).filter(({ key }) => key[0] === Kind.flow);
      const { count, bytes, qos0Count: zeroes } = readFlow(flow);
      assert.deepEqual({ count, bytes, zeroes }, { count: 0, bytes: 0, zeroes: 0 });
      const queued = (await lives.store.contents()).filter((text) => text.startsWith('queued'));
      assert.deepEqual(queued, []);
    });

  for (const at of [0, 1, 2])
    it(`shortens the queue to its limit even if the unreadable record is record ${at + 1} of 3`, async () => {
      await using lives = await new Lives({ maxMqueueLen: 4 }).begin();
      await spoil(lives, at, false);
      const gone: string[] = [];
      const told: string[] = [];
      lives.kit.broker.on('message.dropped', ({ message }) => gone.push(`${message.payload}`));
      lives.kit.broker.on('error', ({ error }) => told.push(error.message));
      for (const n of numbers(7, 3)) {
        await lives.kit.broker.publish('t', n, { qos: 1 });
        await lives.kit.clock.advance(200);
      }
      assert.equal(lives.kit.broker.sessions.get('a').counters().mqueueLen, 4);
      const { texts } = await lives.listen({ clientId: 'a' });
      await lives.kit.clock.advance(100);
      assert.deepEqual(texts(), numbers(4, 6));
      assert.deepEqual(
        gone,
        numbers(6).filter((n) => n !== `${at}`)
      );
      assert.equal(told.length, 1);
    });

  it('drops no message of a session that ends while its unreadable record is discarded', async () => {
    await using lives = await new Lives({ maxMqueueLen: 4 }).begin();
    await spoil(lives, 0, false);
    const { broker, clock } = lives.kit;
    const gone: string[] = [];
    broker.on('message.dropped', ({ message, reason }) => gone.push(`${message.payload} ${reason}`));
    const read = lives.store.read.bind(lives.store);
    lives.store.read = async (from, to, limit) => {
      const entries = await read(from, to, limit);
      if (limit === 1 && broker.sessions.has('a')) broker.sessions.get('a').discard(); // it looks for the next record
      return entries;
    };
    for (const n of numbers(2, 3)) await broker.publish('t', n, { qos: 1 });
    await clock.advance('1s');
    assert.equal(broker.sessions.has('a'), false);
    assert.deepEqual(gone, []);
  });

  it('keeps a queue of a later version: its client receives none of it, and is disconnected', async () => {
    await using lives = await new Lives().begin();
    await spoil(lives, 1, true);
    const told: string[] = [];
    lives.kit.broker.on('error', ({ error }) => told.push(`${(error as BrokerError).code} ${error.message}`));
    const { client, texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.equal(client.isConnected, false);
    assert.deepEqual(texts(), []);
    assert.match(
      told.join(),
      /^STORE_TOO_NEW memory: queued messages of session 1, from number 2: the record has version 2.* or a later one$/
    );
    assert.equal((await lives.store.contents()).filter((text) => text.startsWith('queued')).length, 3);
  });
});

describe('Limits of persisted queues', () => {
  const dropped = async (limits: object, isKept: boolean, priorities = {}) => {
    const lives = new Lives({ ...limits, ...priorities });
    if (!isKept) lives.isKept = false;
    await lives.begin();
    await lives.leave('a', '#', 1);
    const gone: string[] = [];
    lives.kit.broker.on('message.dropped', ({ message, reason }) => gone.push(`${reason} ${message.payload}`));
    for (const n of numbers(300)) {
      await lives.kit.broker.publish(Number(n) % 3 === 0 ? 'x' : 'y', n.padStart(10), { qos: Number(n) % 2 ? 1 : 0 });
      if (Number(n) % 50 === 0) await lives.kit.clock.advance(100);
    }
    await lives.kit.clock.advance(100);
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    await lives[Symbol.asyncDispose]();
    const ofQos = (qos: number) => texts().filter((text) => Number(text) % 2 === qos);
    return { gone: gone.sort(), got: [...ofQos(0), ...ofQos(1)] };
  };

  for (const [name, limits] of [
    ['of number', { maxMqueueLen: 100 }],
    ['of bytes', { maxMqueueLen: 0, maxMqueueBytes: 1000 }],
    ['of number with priorities', { maxMqueueLen: 50, mqueuePriorities: { x: 5 } }],
    ['of bytes with priorities', { maxMqueueLen: 0, maxMqueueBytes: 1000, mqueuePriorities: { x: 5 } }]
  ] as const)
    it(`${name} give the same result as in memory, and report each dropped message`, async () => {
      const inMemory = await dropped(limits, false);
      const kept = await dropped(limits, true);
      assert.ok(inMemory.got.length > 10 && inMemory.got.length < 300);
      assert.deepEqual(kept.got, inMemory.got);
      assert.deepEqual(kept.gone, inMemory.gone);
    });

  it('applies the limits to a queue that was larger under previous options', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 't', 1);
    for (const n of numbers(100)) await lives.kit.broker.publish('t', n, { qos: 1 });
    await lives.kit.clock.advance(100);
    lives.options = { maxMqueueLen: 10 };
    await lives.crash();
    const { texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance(100);
    assert.deepEqual(texts(), numbers(10, 90));
  });

  it('does not read the store for each commit that exceeds the limit of bytes', async () => {
    await using lives = await new Lives({ maxMqueueLen: 0, maxMqueueBytes: 64_000 }).begin();
    await lives.leave('a', 't', 1);
    let dropped = 0;
    lives.kit.broker.on('message.dropped', () => dropped++);
    const publish = async (count: number) => {
      for (let n = 0; n < count; n++) {
        await lives.kit.broker.publish('t', 'x'.repeat(100), { qos: 1 });
        await turns(3);
      }
    };
    await publish(700);
    await lives.kit.clock.advance(60_000); // the messages are in segments now
    assert.ok(dropped > 0);
    const read = lives.store.read.bind(lives.store);
    let reads = 0;
    lives.store.read = (...parameters) => {
      reads++;
      return read(...parameters);
    };
    const before = dropped;
    await publish(90);
    assert.ok(dropped - before > 70, `${dropped - before} messages were dropped`);
    assert.ok(reads < 45, `${reads} reads for ${dropped - before} messages`);
  });

  it('drops each message once if the client reconnects while its queue is shortened', async () => {
    await using lives = await new Lives({ maxMqueueLen: 100, mqueuePriorities: { other: 1 } }).begin();
    await lives.leave('a', '#', 1);
    const gone: string[] = [];
    lives.kit.broker.on('message.dropped', ({ message }) => gone.push(`${message.payload}`));
    // Each in a separate record: more than are read at once.
    for (const n of numbers(195)) {
      await lives.kit.broker.publish('t', n, { qos: 1 });
      await lives.kit.clock.advance(200);
    }
    lives.store.turnsToRead = () => 5;
    for (const n of numbers(20, 195)) void lives.kit.broker.publish('t', n, { qos: 1 });
    const { client, texts } = await lives.listen({ clientId: 'a' });
    await lives.kit.clock.advance('2s');
    assert.deepEqual(gone, numbers(115));
    assert.deepEqual(texts(), numbers(100, 115));
    client.destroy();
    await lives.crash();
    const { mqueueLen } = lives.kit.broker.sessions.get('a').counters();
    assert.equal(mqueueLen, 0);
    await lives.listen({ clientId: 'a' });
  });
});
