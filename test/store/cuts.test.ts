import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryLevel } from 'memory-level';
import { levelStore } from '../../adapters/level/index.ts';
import type { Store } from '../../lib/adapter.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import type { ClientOptions } from '../../lib/client/options.ts';
import { checkStore } from '../../lib/index.ts';
import { Random } from '../fuzz/random.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';
import { publish } from '../support/wire.ts';
import { Lives, MortalStore, PERSISTENT, turns } from './support.ts';

const CUTS = samples(100);
/** Receives QoS 2 messages without sending PUBREC, so that all of them are sent again after a cut. */
const UNRELEASED = 7;

function memoryLevel(): Store {
  return levelStore(new MemoryLevel({ keyEncoding: 'buffer', valueEncoding: 'buffer' }));
}

function unreleasedClient({ kit }: Lives): Promise<RawClient> {
  return rawClient(kit.broker, { clientId: 'q', clean: false, properties: { sessionExpiryInterval: 3_600 } });
}

/** @returns the reason code of the PUBREC */
async function sendUnreleased(client: RawClient, messageId: number, dup: boolean): Promise<number> {
  client.send(publish('to/a/unreleased', `unreleased ${messageId}`, { qos: 2, messageId, dup }));
  return (await client.next('pubrec')).reasonCode;
}

/** A promise of the broker, and the number of batches that had been committed. */
interface Promised {
  readonly by: number;
  readonly what: string;
  /** The number of committed batches when another request revoked the promise. */
  undoneAt: number;
  check(lives: Lives, queues: ReadonlyMap<string, readonly string[]>): boolean;
}

/** Runs a broker with many kinds of state, and records each answer with the number of batches that had been committed. */
async function record(seed: number): Promise<{ store: MortalStore; promises: Promised[]; now: number }> {
  const random = new Random(seed);
  const lives = new Lives();
  const store = (lives.store = new MortalStore(memoryLevel()));
  await lives.begin();
  store.turnsBefore = store.turnsAfter = () => random.below(3);
  const { broker, clock } = lives.kit;
  const promises: Promised[] = [];
  const undo = (what: string) => {
    for (const promised of promises)
      if (promised.what === what) promised.undoneAt = Math.min(promised.undoneAt, store.committed.length);
  };
  const promise = (what: string, check: Promised['check']) =>
    promises.push({ by: store.committed.length, what, undoneAt: Number.POSITIVE_INFINITY, check });
  /** Connects a client with a will that is connected at the end, or has disconnected before. */
  const willed = async (what: string, options: ClientOptions, willDelayInterval = 0) => {
    const will = { topic: 'to/b/will', payload: what, qos: 2, properties: { willDelayInterval } } as const;
    const client = await lives.connect({ clientId: what, ...options, will });
    promise(what, (_, queues) => queues.get('b')?.includes(what) === true);
    return client;
  };
  const away = ['a', 'b', 'c'];
  for (const clientId of away) {
    const client = await lives.connect({ clientId, ...PERSISTENT });
    promise(`session ${clientId}`, ({ kit }) => kit.broker.sessions.has(clientId));
    await client.subscribe({ topic: `to/${clientId}/#`, qos: 2 });
    promise(`subscription of ${clientId}`, ({ kit }) =>
      [...kit.broker.sessions.get(clientId).subscriptions()].some(({ filter }) => filter === `to/${clientId}/#`)
    );
    await client.disconnect();
  }
  const writer = await lives.connect({ clientId: 'w', ...PERSISTENT });
  promise('session w', ({ kit }) => kit.broker.sessions.has('w'));
  const reader = await lives.connect({ clientId: 'r', ...PERSISTENT, receiveMaximum: 3 });
  await reader.subscribe({ topic: 'to/#', qos: 2 });
  await willed('will of a session', PERSISTENT);
  await willed('will that waits', PERSISTENT, 60);
  const leaving = await willed('will of one who has gone', {});
  const unreleased = await unreleasedClient(lives);
  promise('session q', ({ kit }) => kit.broker.sessions.has('q'));
  const leaveUnreleased = async (id: number) => {
    assert.equal(await sendUnreleased(unreleased, id, false), 0);
    promise(`unreleased ${id}`, (_, queues) => queues.get('a')?.includes(`unreleased ${id}`) === true);
  };
  let lastUnreleased = Promise.resolve();
  const sent: Promise<unknown>[] = [];
  for (let n = 0; n < 150; n++) {
    if (n % 20 === 10) lastUnreleased = lastUnreleased.then(() => leaveUnreleased((n + 10) / 20));
    if (n === 50) sent.push(willed('will of a client without a session', {}));
    if (n === 80) leaving.destroy();
    const step = random.below(10);
    const key = `${random.below(4)}`;
    if (step < 6) {
      const clientId = random.pick(away);
      const qos = random.once(2) ? 1 : 2;
      const told = writer
        .publish(`to/${clientId}/${qos}`, `${n}`, { qos })
        .then(() => promise(`message ${n}`, (_, queues) => queues.get(clientId)?.includes(`${n}`) === true));
      sent.push(told);
    } else if (step === 6) {
      const topic = `retained/${key}`;
      sent.push(
        writer
          .publish(topic, `${n}`, { qos: 1, retain: true })
          .then(() =>
            promise(topic, ({ kit }) => Number(engineOf(kit.broker).retainer.messages.get(topic)?.message.payload) >= n)
          )
      );
    } else if (step === 7) {
      sent.push(
        broker
          .table('t')
          .set(key, n)
          .then(() => promise(`table ${key}`, ({ kit }) => (kit.broker.table<number>('t').get(key) ?? -1) >= n))
      );
    } else if (step === 8) {
      sent.push(
        writer
          .publish(`$delayed/1000/to/a/delayed`, `${n}`, { qos: 1 })
          .then(() => promise(`delayed ${n}`, (_, queues) => queues.get('a')?.includes(`${n}`) === true))
      );
    } else await turns(random.below(10));
    if (random.once(20)) await clock.advance(60);
  }
  await Promise.all([...sent, lastUnreleased]);
  assert.ok(promises.some(({ what }) => what === `unreleased ${UNRELEASED}`));
  broker.sessions.get('c').discard();
  undo('session c');
  undo('subscription of c');
  for (const { what } of promises.filter(({ what }) => what.startsWith('message'))) {
    const { check } = promises.find((promised) => promised.what === what) as Promised;
    if (check(lives, new Map([['c', [what.slice('message '.length)]]]))) undo(what);
  }
  await clock.advance(200);
  const now = clock.now();
  await lives[Symbol.asyncDispose]();
  return { store, promises, now };
}

/**
 * Starts a broker on the state of the first batches.
 * @returns the messages its clients receive, by client id
 */
async function openAt(store: MortalStore, count: number, now: number) {
  const lives = new Lives();
  lives.store = await MortalStore.of(store.committed.slice(0, count), memoryLevel());
  assert.deepEqual((await checkStore(lives.store)).findings, [], `after ${count} batches`);
  await lives.begin(now);
  const errors: unknown[] = [];
  lives.kit.broker.on('error', ({ error }) => errors.push(error));
  if (lives.kit.broker.sessions.has('q')) {
    const client = await unreleasedClient(lives);
    for (let id = 1; id <= UNRELEASED; id++) assert.equal(await sendUnreleased(client, id, true), 0);
  }
  await lives.kit.clock.advance(1_100_000); // delayed messages become due
  const queues = new Map<string, string[]>();
  for (const { clientId } of lives.kit.broker.sessions) queues.set(clientId, []);
  for (const [clientId, queue] of queues) {
    const client = await lives.connect({ clientId, ...PERSISTENT });
    client.on('message', ({ payload }) => queue.push(`${payload}`));
    await lives.kit.clock.advance(10);
    assert.equal(client.connack.sessionPresent, true);
  }
  await lives.kit.clock.advance(100);
  assert.deepEqual(errors, []);
  return { lives, queues };
}

describe('A store that contains only the first commits', () => {
  const seed = readSeed();
  console.log(`# cuts: ${shownSeed(seed)}`);
  it(`opens and fulfils every promise made by then, for any number of commits (seed ${seed})`, async () => {
    const { store, promises, now } = await record(seed);
    const total = store.committed.length;
    assert.ok(total > 50 && promises.length > 100, `${total} batches, ${promises.length} promises`);
    const every = Math.max(1, Math.ceil(total / CUTS));
    for (let count = seed % every; count <= total; count += every) {
      const { lives, queues } = await openAt(store, count, now);
      for (const { by, what, undoneAt, check } of promises)
        if (by <= count && count <= undoneAt)
          assert.ok(check(lives, queues), `after ${count} of ${total} batches, ${what} is lost, which ${by} promised`);
      for (const queue of queues.values())
        assert.deepEqual(
          queue,
          [...new Set(queue)],
          `after ${count} of ${total} batches, a message was delivered twice`
        );
      await lives[Symbol.asyncDispose]();
    }
  });
});
