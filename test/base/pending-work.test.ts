import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WorkCount } from '../../lib/base/pending-work.ts';

describe('WorkCount', () => {
  it('resolves at once while nothing is in progress', async () => {
    const work = new WorkCount();
    assert.equal(work.count, 0);
    await work.settled();
  });

  it('resolves for all callers when the last piece of work ends, not before', async () => {
    const work = new WorkCount();
    work.begin();
    work.begin();
    let settled = 0;
    const waits = [work.settled(), work.settled()].map((wait) => wait.then(() => settled++));
    work.end();
    await new Promise(setImmediate);
    assert.equal(settled, 0);
    assert.equal(work.count, 1);
    work.end();
    await Promise.all(waits);
    assert.equal(settled, 2);
  });

  it('can be awaited again after it has settled', async () => {
    const work = new WorkCount();
    for (let round = 0; round < 3; round++) {
      work.begin();
      const settled = work.settled();
      work.end();
      await settled;
    }
    assert.equal(work.count, 0);
  });

  it('counts a promise that app code returns until it settles, and nothing for a plain value', async () => {
    const work = new WorkCount();
    assert.equal(
      work.run((n: number) => n + 1, 1),
      2
    );
    assert.equal(work.count, 0);
    const good = work.run(async (n: number) => n + 1, 1);
    const bad = work.run(() => Promise.reject(new Error('mine')), undefined);
    assert.equal(work.count, 2);
    assert.equal(await good, 2);
    await assert.rejects(bad, /mine/);
    await work.settled();
    assert.equal(work.count, 0);
  });
});
