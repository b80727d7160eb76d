import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listed } from '../fuzz/inputs.ts';
import { fuzz } from '../fuzz/run.ts';
import { readSeed, shownSeed, sized } from '../support/samples.ts';

// SEED repeats a run; `npm run fuzz` runs a million inputs.
const seed = readSeed();
console.log(`# fuzz: ${shownSeed(seed)}`);

describe('Damaged, misplaced and random packets', () => {
  it('ends only the connection of a damaged packet, with the right code, and disturbs no other', async () => {
    const runs = sized(2_400, 6_000);
    const { ends, compared } = await fuzz({ runs, seed });
    // Check that the run has done some work.
    for (const end of ['open', 'waiting', 'left', 'refused'])
      assert.ok((ends[end] ?? 0) > runs / 60, `${ends[end]} ${end}`);
    assert.ok(compared > runs / 6);
  });

  it('contains many damaged packets, each listed once', () => {
    const all = [...listed()];
    assert.ok(all.length > 20_000, `${all.length}`);
    const distinct = new Set(all.map(({ version, state, bytes }) => `${version} ${state} ${bytes.toString('hex')}`));
    assert.ok(distinct.size > all.length * 0.7, `${distinct.size} of ${all.length}`);
  });
});
