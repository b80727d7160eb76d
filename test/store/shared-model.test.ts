import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Random } from '../fuzz/random.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';
import { Lives } from './support.ts';

const FILTER = '$share/workers/jobs/#';
const ROUNDS = samples(12);
const STEPS = 25;

/** A member that is away, in the model: the messages that were handed over to it, and those that were queued for it. */
interface Member {
  readonly first: string[];
  readonly own: string[];
}

/** The messages that wait for a member, in any order. */
async function waiting({ kit }: Lives, clientId: string): Promise<string[]> {
  const { entries } = await kit.broker.sessions.get(clientId).queue({ limit: 10_000 });
  return entries.map(({ message }) => `${message.payload}`);
}

/** Random members, messages, ends of sessions and crashes; the order of each queue is compared with a list. */
async function round(random: Random, isKept: boolean, about: string): Promise<void> {
  const lives = new Lives({ sharedSubscriptionStrategy: random.pick(['random', 'round_robin', 'hash']) });
  lives.isKept = isKept;
  await using _ = await lives.begin();
  const members = new Map<string, Member>();
  let joined = 0;
  let published = 0;
  const join = async () => {
    const clientId = `m${joined++}`;
    await lives.leave(clientId, FILTER, random.pick([1, 2] as const), { sessionExpiry: '1d' });
    members.set(clientId, { first: [], own: [] });
  };
  /** Finds the new messages of each member, in the order of a list. */
  const assign = async (list: readonly string[], place: 'first' | 'own') => {
    let count = 0;
    for (const [clientId, { first, own }] of members) {
      const now = new Set(await waiting(lives, clientId));
      const known = new Set([...first, ...own]);
      const added = list.filter((text) => now.has(text) && !known.has(text));
      (place === 'first' ? first : own).push(...added);
      count += added.length;
      assert.equal(now.size, known.size + added.length, about);
    }
    assert.equal(count, list.length, about);
  };
  const publish = async () => {
    const list: string[] = [];
    for (let left = 1 + random.below(20); left > 0; left--) {
      const text = `${++published}`.padEnd(random.once(4) ? 20_000 : 1);
      list.push(text);
      await lives.kit.broker.publish(`jobs/${random.below(2)}`, text, { qos: random.pick([1, 2] as const) });
    }
    await lives.kit.clock.advance(100);
    await assign(list, 'own');
  };
  const end = async () => {
    if (members.size < 2) return;
    const clientId = random.pick([...members.keys()]);
    const { first, own } = members.get(clientId) as Member;
    members.delete(clientId);
    lives.kit.broker.sessions.get(clientId).discard();
    if (isKept && random.once(2)) {
      lives.store.turnsBefore = () => random.below(3);
      const passing = lives.kit.clock.advance(random.below(50));
      await passing;
      await lives.kill({ isPendingKept: random.once(2) });
      if (lives.kit.broker.sessions.has(clientId)) lives.kit.broker.sessions.get(clientId).discard(); // the end was not committed
    }
    await lives.kit.clock.advance('2s');
    await assign([...first, ...own], 'first');
  };
  await join();
  for (let step = 0; step < STEPS; step++) {
    if (random.once(4)) await join();
    else if (random.once(3)) await end();
    else if (isKept && random.once(6)) await lives.crash();
    else await publish();
  }
  for (const [clientId, { first, own }] of members) {
    const { client, texts } = await lives.listen({ clientId, receiveMaximum: 1 + random.below(30) });
    await lives.kit.clock.advance('5s');
    assert.deepEqual(texts(), [...first, ...own], `${about}, ${clientId}`);
    await client.disconnect();
  }
}

describe('The queues of a share group', () => {
  for (const isKept of [false, true]) {
    const where = isKept ? 'in a store, also over crashes' : 'in memory';
    it(`contains every message once, handed over ones first, each of these in order, ${where}`, async () => {
      const seed = readSeed();
      for (let at = 0; at < ROUNDS; at++) {
        const about = shownSeed(seed + at);
        await round(new Random(seed + at), isKept, about);
      }
    });
  }
});
