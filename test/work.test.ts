import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WorkCount } from '../lib/work.ts';

describe('WorkCount', () => {
  it('is settled while nothing is in flight', async () => {
    const work = new WorkCount();
    assert.equal(work.count, 0);
    await work.settled();
  });

  it('settles for everybody who waits when the last piece of work ends, not before', async () => {
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

  it('can be waited for again after it settled', async () => {
    const work = new WorkCount();
    for (let round = 0; round < 3; round++) {
      work.begin();
      const settled = work.settled();
      work.end();
      await settled;
    }
    assert.equal(work.count, 0);
  });
});
