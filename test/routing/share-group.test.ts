import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Publisher } from '../../lib/packets/message.ts';
import { type GroupMember, ShareGroup } from '../../lib/routing/share-group.ts';
import { cpuMs } from '../support/cpu.ts';
import { samples } from '../support/samples.ts';
import { randomSource } from '../topics/slow-matcher.ts';

interface TestMember extends GroupMember {
  readonly subscriber: { readonly clientId: string; isOnline: boolean; hasRoom: boolean };
}

const publisher = (clientId: string): Publisher => ({ clientId, username: undefined });
const member = (clientId: string, isOnline = true, hasRoom = true): TestMember => ({
  subscriber: { clientId, isOnline, hasRoom }
});
const group = (...members: TestMember[]) => {
  const made = new ShareGroup<TestMember>();
  for (const one of members) made.add(one);
  return made;
};
const id = (picked: TestMember | undefined) => picked?.subscriber.clientId;
const never = () => {
  throw new Error('no random number is needed here');
};
const source = randomSource('shared');
const random = () => source.below(2 ** 31) / 2 ** 31;

describe('ShareGroup', () => {
  it('keeps its members in the order of subscription, without duplicates', () => {
    const [a, b, c] = [member('a'), member('b'), member('c')];
    const shared = group(b, a, c, a);
    assert.deepEqual(shared.members.map(id), ['b', 'a', 'c']);
    assert.equal(shared.remove(a), false);
    shared.add(a);
    assert.deepEqual(shared.members.map(id), ['b', 'c', 'a']);
    assert.equal(shared.remove(member('stranger')), false);
  });

  it('reports when its last member leaves, and then chooses none', () => {
    const a = member('a');
    const shared = group(a);
    assert.equal(shared.remove(a), true);
    assert.equal(shared.remove(a), true);
    for (const strategy of ['random', 'round_robin', 'sticky', 'hash'] as const) {
      assert.equal(shared.pick(strategy, undefined, false, random), undefined);
    }
    shared.add(a);
    assert.equal(shared.pick('round_robin', undefined, false, never), a);
  });

  it('keeps the order of a plain list after random joins and leaves', () => {
    const shared = group();
    const list: TestMember[] = [];
    for (let round = 0; round < samples(3000); round++) {
      if (list.length === 0 || random() < 0.55) {
        const joining = member(String(round));
        shared.add(joining);
        list.push(joining);
      } else {
        const [leaving] = list.splice(Math.floor(random() * list.length), 1);
        assert.equal(shared.remove(leaving), list.length === 0);
      }
    }
    assert.deepEqual(shared.members.map(id), list.map(id));
  });

  it('lets 10,000 members join and leave in any order within a second', () => {
    const members = Array.from({ length: 10_000 }, (_, at) => member(String(at)));
    const before = cpuMs();
    const shared = group(...members);
    for (const one of members.toSorted(() => random() - 0.5)) shared.remove(one);
    assert.ok(cpuMs() - before < 1000);
    assert.equal(shared.members.length, 0);
  });
});

describe('ShareGroup random', () => {
  it('chooses online members about equally often and offline ones never', () => {
    const shared = group(member('a'), member('off', false), member('b'), member('c'));
    const shares: Record<string, number> = {};
    for (let i = 0; i < 30_000; i++) {
      const picked = id(shared.pick('random', undefined, false, random)) as string;
      shares[picked] = (shares[picked] ?? 0) + 1;
    }
    assert.deepEqual(Object.keys(shares).sort(), ['a', 'b', 'c']);
    for (const share of Object.values(shares)) assert.ok(Math.abs(share - 10_000) < 500, `share ${share}`);
  });

  it('chooses evenly among the few online members of a large group, wherever they are in the list', () => {
    const online = new Set([3, 4, 900]);
    const shared = group(...Array.from({ length: 1000 }, (_, at) => member(String(at), online.has(at))));
    const shares = new Map<string | undefined, number>();
    for (let i = 0; i < 6000; i++) {
      const picked = id(shared.pick('random', undefined, false, random));
      shares.set(picked, (shares.get(picked) ?? 0) + 1);
    }
    assert.deepEqual([...shares.keys()].sort(), ['3', '4', '900']);
    for (const share of shares.values()) assert.ok(Math.abs(share - 2000) < 250, `share ${share}`);
  });
});

describe('ShareGroup round_robin', () => {
  it('starts with the first subscriber for every publisher and continues in order of subscription', () => {
    const shared = group(member('a'), member('b'), member('c'));
    const [p, q] = [publisher('p'), publisher('q')];
    const next = (from: Publisher | undefined) => id(shared.pick('round_robin', from, false, never));
    assert.deepEqual([next(p), next(p), next(q), next(p), next(p), next(q)], ['a', 'b', 'a', 'c', 'a', 'b']);
    assert.deepEqual([next(undefined), next(undefined)], ['a', 'b']);
  });

  it('skips offline members without choosing their neighbour twice as often', () => {
    const shared = group(member('a', false), member('b'), member('c'));
    const p = publisher('p');
    const picks = Array.from({ length: 4 }, () => id(shared.pick('round_robin', p, false, never)));
    assert.deepEqual(picks, ['b', 'c', 'b', 'c']);
  });

  it('stays within the list when members have left', () => {
    const [a, b, c] = [member('a'), member('b'), member('c')];
    const shared = group(a, b, c);
    const p = publisher('p');
    for (let i = 0; i < 3; i++) shared.pick('round_robin', p, false, never);
    shared.remove(b);
    shared.remove(c);
    assert.equal(shared.pick('round_robin', p, false, never), a);
  });
});

describe('ShareGroup sticky', () => {
  it('keeps the first random choice of each publisher until that member leaves', () => {
    const members = Array.from({ length: 10 }, (_, at) => member(String(at)));
    const shared = group(...members);
    const p = publisher('p');
    const first = shared.pick('sticky', p, false, () => 0.35);
    assert.equal(id(first), '3');
    assert.equal(shared.pick('sticky', p, false, never), first);
    assert.equal(id(shared.pick('sticky', publisher('q'), false, () => 0.75)), '7');
    shared.remove(members[3]);
    assert.equal(id(shared.pick('sticky', p, false, () => 0)), '0');
    assert.equal(id(shared.pick('sticky', p, false, never)), '0');
  });

  it('moves to an online member when its member goes offline, and keeps it if all are offline', () => {
    const [a, b] = [member('a'), member('b')];
    const shared = group(a, b);
    const p = publisher('p');
    assert.equal(
      shared.pick('sticky', p, false, () => 0),
      a
    );
    a.subscriber.isOnline = false;
    assert.equal(
      shared.pick('sticky', p, false, () => 0),
      b
    );
    b.subscriber.isOnline = false;
    assert.equal(
      shared.pick('sticky', p, false, () => 0),
      b
    );
  });
});

describe('ShareGroup hash', () => {
  it('chooses the same member for a client id, for any publishing object', () => {
    const shared = group(...Array.from({ length: 7 }, (_, at) => member(String(at))));
    for (let i = 0; i < 50; i++) {
      const first = shared.pick('hash', publisher(`client-${i}`), false, never);
      assert.equal(shared.pick('hash', publisher(`client-${i}`), false, never), first);
    }
  });

  it('distributes client ids over the members', () => {
    const shared = group(...Array.from({ length: 4 }, (_, at) => member(String(at))));
    const shares = new Map<string | undefined, number>();
    for (let i = 0; i < 4000; i++) {
      const picked = id(shared.pick('hash', publisher(`client-${i}`), false, never));
      shares.set(picked, (shares.get(picked) ?? 0) + 1);
    }
    assert.equal(shares.size, 4);
    for (const share of shares.values()) assert.ok(Math.abs(share - 1000) < 200, `share ${share}`);
  });

  it('chooses the next member in order while its member is offline, and returns to it afterwards', () => {
    const members = [member('a'), member('b'), member('c')];
    const shared = group(...members);
    const p = publisher('p');
    const own = shared.pick('hash', p, false, never) as TestMember;
    own.subscriber.isOnline = false;
    const next = members[(members.indexOf(own) + 1) % 3];
    assert.equal(shared.pick('hash', p, false, never), next);
    own.subscriber.isOnline = true;
    assert.equal(shared.pick('hash', p, false, never), own);
  });
});

describe('ShareGroup dispatch', () => {
  for (const strategy of ['random', 'round_robin', 'sticky', 'hash'] as const) {
    it(`${strategy}: chooses a member even when all are offline`, () => {
      const shared = group(member('a', false), member('b', false));
      assert.ok(shared.pick(strategy, publisher('p'), false, random));
      assert.ok(shared.pick(strategy, publisher('p'), true, random));
    });

    it(`${strategy}: skips full members only for acknowledged dispatch`, () => {
      const shared = group(member('full', true, false), member('off', false), member('free'));
      for (let i = 0; i < 20; i++) {
        assert.equal(id(shared.pick(strategy, publisher(`p${i}`), true, random)), 'free');
      }
      const publishers = Array.from({ length: 25 }, (_, i) => publisher(`p${i}`));
      const picks = new Set(
        [...publishers, ...publishers].map((from) => id(shared.pick(strategy, from, false, random)))
      );
      assert.deepEqual([...picks].sort(), ['free', 'full']);
    });

    it(`${strategy}: prefers a full member to an offline one when no member has room`, () => {
      const shared = group(member('off1', false), member('full', true, false), member('off2', false));
      for (let i = 0; i < 20; i++) {
        assert.equal(id(shared.pick(strategy, publisher(`p${i}`), true, random)), 'full');
      }
    });
  }

  it('examines only one member in the usual case', () => {
    let looks = 0;
    const watched = (clientId: string): GroupMember => ({
      get subscriber() {
        looks++;
        return { clientId, isOnline: true, hasRoom: true };
      }
    });
    const shared = new ShareGroup<GroupMember>();
    for (let i = 0; i < 1000; i++) shared.add(watched(String(i)));
    const p = publisher('p');
    for (const strategy of ['random', 'round_robin', 'sticky', 'hash'] as const) {
      looks = 0;
      shared.pick(strategy, p, true, random);
      assert.equal(looks, 1, strategy);
    }
  });
});
