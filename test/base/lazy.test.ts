import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lazy, lazyIterator, onceMade } from '../../lib/base/lazy.ts';

class Adder {
  #sum = 0;

  async add(a: number, b = 1): Promise<number> {
    this.#sum += a * b;
    return this.#sum;
  }

  async fail(): Promise<void> {
    throw new Error('broken');
  }
}

describe('lazy', () => {
  it('loads the object when a method is called, and passes arguments, results and errors', async () => {
    let loads = 0;
    const load = onceMade(async () => {
      loads++;
      return new Adder();
    });
    const { add, fail } = lazy(load, 'add', 'fail');
    assert.equal(loads, 0);
    assert.deepEqual(await Promise.all([add(2), add(3, 10)]), [2, 32]);
    await assert.rejects(fail(), /broken/);
    assert.equal(loads, 1);
  });
});

describe('onceMade', () => {
  it('shares a failure among overlapping calls and tries again in the next call', async () => {
    let attempts = 0;
    const make = onceMade(async () => {
      attempts++;
      if (attempts === 1) throw new Error('not yet');
      return attempts;
    });
    const results = await Promise.allSettled([make(), make()]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'rejected']
    );
    assert.deepEqual([await make(), await make(), attempts], [2, 2, 2]);
  });
});

describe('lazyIterator', () => {
  it('waits for the iterator, and ends it on return', async () => {
    let hasEnded = false;
    const numbers = async function* () {
      try {
        yield 1;
        yield 2;
      } finally {
        hasEnded = true;
      }
    };
    const seen: number[] = [];
    for await (const number of lazyIterator(Promise.resolve(numbers()))) {
      seen.push(number);
      break;
    }
    assert.deepEqual([seen, hasEnded], [[1], true]);
  });

  it('rejects in next if making the iterator has failed, and only there', async () => {
    const iterator = lazyIterator(Promise.reject(new Error('broken')));
    await new Promise(setImmediate); // an unhandled rejection would end the process
    await assert.rejects(iterator.next(), /broken/);
  });
});
