import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Roster } from '../../lib/base/collections/roster.ts';
import { samples } from '../support/samples.ts';
import { randomSource } from '../topics/slow-matcher.ts';

interface Entry {
  readonly number: number;
}

function added(roster: Roster<Entry>): Entry {
  const entry = { number: roster.nextNumber() };
  roster.add(entry);
  return entry;
}

describe('Roster', () => {
  it('agrees with a list that is searched from its beginning, while entries come and go', () => {
    const source = randomSource('Roster');
    const roster = new Roster<Entry>();
    let slow: Entry[] = [];
    for (let step = 0; step < samples(20_000); step++) {
      // The list grows, shrinks to nothing, and starts again.
      const isGrowing = Math.floor(step / samples(2_500)) % 2 === 0;
      if (source.below(10) < (isGrowing ? 7 : 2)) slow.push(added(roster));
      else if (slow.length > 0) {
        const gone = source.pick(slow);
        roster.delete(gone);
        roster.delete(gone);
        slow = slow.filter((entry) => entry !== gone);
      }
      assert.equal(roster.size, slow.length);
      if (step % 20 !== 0) continue;
      const number = source.below((slow.at(-1)?.number ?? 0) + 2);
      const most = 1 + source.below(5);
      assert.deepEqual(roster.after(number, most), slow.filter((entry) => entry.number > number).slice(0, most));
    }
  });

  it('does not remove another entry that has the same number', () => {
    const roster = new Roster<Entry>();
    const entry = added(roster);
    roster.delete({ number: entry.number });
    roster.delete({ number: 0 });
    assert.deepEqual(roster.after(0, 10), [entry]);
  });
});
