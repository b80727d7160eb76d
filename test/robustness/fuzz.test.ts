import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listed } from '../fuzz/inputs.ts';
import { fuzz } from '../fuzz/run.ts';

// SEED repeats a run; `npm run fuzz` has a million of them
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
console.log(`# fuzz: SEED=${seed}`);

describe('damaged, misplaced and random packets', () => {
  it('end their own connection in the right way, and disturb nobody', async () => {
    const { ends, compared } = await fuzz({ runs: 6_000, seed });
    // that the run did not pass by doing nothing
    for (const end of ['open', 'waiting', 'left', 'refused']) assert.ok((ends[end] ?? 0) > 100, `${ends[end]} ${end}`);
    assert.ok(compared > 1_000);
  });

  it('are many, and each is listed once', () => {
    const all = [...listed()];
    assert.ok(all.length > 20_000, `${all.length}`);
    const distinct = new Set(all.map(({ version, state, bytes }) => `${version} ${state} ${bytes.toString('hex')}`));
    assert.ok(distinct.size > all.length * 0.7, `${distinct.size} of ${all.length}`);
  });
});
