import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { OutboxEntry } from '../../lib/index.ts';
import { checkStore } from '../../lib/tools/check.ts';
import { Random } from '../fuzz/random.ts';
import { Lives, MortalStore, turns } from '../store/support.ts';

const KEYS = ['a', 'b', 'c', 'd'];
const MESSAGES = 200;
const CUTS = 200;

/** A published message, by its number. */
interface Published {
  readonly key: string;
  id?: string;
  /** Number of batches in the store when the publisher was answered, and when the target first received the message. */
  answeredAt: number;
  arrivedAt: number;
}

/** Publishes messages to a persisted outbox whose target fails occasionally. */
async function record(seed: number): Promise<{ store: MortalStore; messages: Published[] }> {
  const random = new Random(seed);
  const lives = await new Lives().begin();
  const { store, kit } = lives;
  store.turnsBefore = store.turnsAfter = () => random.below(4);
  const messages: Published[] = [];
  const outbox = kit.broker.outboxes.open({
    name: 'target',
    isPersisted: true,
    backOff: 5,
    batch: 3,
    send: async (entries: readonly OutboxEntry[]) => {
      await turns(random.below(6));
      if (random.once(5)) throw new Error('not now');
      for (const { id, content } of entries) {
        const message = messages[Number(content)];
        message.id ??= id;
        assert.equal(message.id, id);
        message.arrivedAt = Math.min(message.arrivedAt, store.committed.length);
      }
      if (random.once(5)) throw new Error('the answer is lost');
    }
  });
  kit.broker.on('message.publish', ({ message }) => outbox.add(message.topic.slice(7), `${message.payload}`), {
    filter: 'events/#'
  });
  const writer = await lives.connect({ clientId: 'w' });
  const sent: Promise<unknown>[] = [];
  for (let n = 0; n < MESSAGES; n++) {
    const key = random.pick(KEYS);
    const message: Published = { key, answeredAt: Infinity, arrivedAt: Infinity };
    messages.push(message);
    sent.push(
      writer.publish(`events/${key}`, `${n}`, { qos: 1 }).then(() => {
        message.answeredAt = store.committed.length;
      })
    );
    await turns(random.below(4));
    if (random.once(10)) await kit.clock.advance(20);
  }
  await Promise.all(sent);
  for (let left = 300; outbox.size > 0 && left > 0; left--) await kit.clock.advance(100);
  assert.equal(outbox.size, 0);
  await kit.clock.advance(200);
  await lives[Symbol.asyncDispose]();
  return { store, messages };
}

/** Starts a broker on the first batches. @returns the entries that its outbox delivers, in order */
async function deliveredAfter(store: MortalStore, count: number): Promise<OutboxEntry[]> {
  await using lives = new Lives();
  lives.store = await MortalStore.of(store.committed.slice(0, count));
  assert.deepEqual((await checkStore(lives.store)).findings, [], `after ${count} batches`);
  await lives.begin();
  const delivered: OutboxEntry[] = [];
  const outbox = lives.kit.broker.outboxes.open({
    name: 'target',
    isPersisted: true,
    send: (entries) => delivered.push(...entries)
  });
  await outbox.idle();
  return delivered;
}

describe('A persisted outbox whose store contains only the first commits', () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  it(`delivers the acknowledged messages, in order and with the same ids (seed ${seed})`, async () => {
    const { store, messages } = await record(seed);
    const total = store.committed.length;
    assert.ok(total > 30, `${total} batches`);
    const every = Math.max(1, Math.ceil(total / CUTS));
    for (let count = 0; count <= total; count += every) {
      const delivered = await deliveredAfter(store, count);
      const where = `after ${count} of ${total} batches`;
      const arrived = new Set([...messages.keys()].filter((number) => messages[number].arrivedAt < count));
      const last = new Map<string, number>();
      for (const number of arrived) last.set(messages[number].key, number);
      for (const { id, key, content } of delivered) {
        const number = Number(content);
        assert.deepEqual([key, id], [messages[number].key, messages[number].id], where);
        if (arrived.has(number)) continue;
        assert.ok(number > (last.get(key) ?? -1), `${where}, ${number} arrives after ${last.get(key)} of ${key}`);
        last.set(key, number);
        arrived.add(number);
      }
      for (const [number, { answeredAt }] of messages.entries())
        assert.ok(answeredAt > count || arrived.has(number), `${where}, ${number} is lost, which was acknowledged`);
    }
  });
});
