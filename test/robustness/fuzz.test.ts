import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listed } from '../fuzz/inputs.ts';
import { fuzz } from '../fuzz/run.ts';

// SEED repeats a run; `npm run fuzz` runs a million inputs.
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
console.log(`# fuzz: SEED=${seed}`);

describe('Damaged, misplaced and random packets', () => {
  it('ends only the connection of a damaged packet, with the right code, and disturbs no other', async () => {
    const { ends, compared } = await fuzz({ runs: 6_000, seed });
    // Check that the run has done some work.
    for (const end of ['open', 'waiting', 'left', 'refused']) assert.ok((ends[end] ?? 0) > 100, `${ends[end]} ${end}`);
    assert.ok(compared > 1_000);
  });

  it('contains many damaged packets, each listed once', () => {
    const all = [...listed()];
    assert.ok(all.length > 20_000, `${all.length}`);
    const distinct = new Set(all.map(({ version, state, bytes }) => `${version} ${state} ${bytes.toString('hex')}`));
    assert.ok(distinct.size > all.length * 0.7, `${distinct.size} of ${all.length}`);
  });
});
