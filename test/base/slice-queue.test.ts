import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SLICES_AT_ONCE, SliceQueue } from '../../lib/base/collections/slice-queue.ts';
import { WorkCount } from '../../lib/base/pending-work.ts';

/** A queue on a clock that stands still unless a slice changes `ms`. `walk` waits for slices; `perTurn` counts them. */
function queueOnClock() {
  const clock = { ms: 0, monotonic: () => clock.ms };
  const work = new WorkCount();
  const queue = new SliceQueue(clock, work);
  const counts = [0];
  const turn = () => {
    counts.push(0);
    if (work.count > 0) setImmediate(turn);
  };
  return {
    clock,
    work,
    queue,
    /** Take slices one after the other. */
    async walk(slices: number, each: (slice: number) => unknown = () => undefined) {
      for (let slice = 0; slice < slices; slice++) {
        await queue.next(slice);
        counts[counts.length - 1]++;
        await each(slice);
      }
    },
    /** Take the slices of walks. @returns the number of slices in each turn */
    async perTurn(walks: Promise<unknown>[]) {
      setImmediate(turn);
      await Promise.all(walks);
      return counts.filter((count) => count > 0);
    }
  };
}

const times = (count: number, walk: () => Promise<unknown>) => Array.from({ length: count }, walk);

describe('The queue for slices of long work', () => {
  it('runs a limited number of slices in each turn, for any number of walks', async () => {
    const { walk, perTurn } = queueOnClock();
    const counts = await perTurn(times(100, () => walk(5)));
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      500
    );
    assert.ok(Math.max(...counts) <= SLICES_AT_ONCE, `slices in each turn: ${counts}`);
  });

  it('starts no further slice in a turn whose slices have taken 4 ms', async () => {
    const { walk, perTurn, clock } = queueOnClock();
    const counts = await perTurn(times(20, () => walk(2, () => void (clock.ms += 1.5))));
    assert.ok(Math.max(...counts) <= 3, `slices in each turn: ${counts}`);
  });

  it('runs one slice in each turn for a walk that is alone', async () => {
    const { walk, perTurn } = queueOnClock();
    assert.deepEqual(await perTurn([walk(5)]), [1, 1, 1, 1, 1]);
  });

  it('runs one slice after the other, even if they wait for promises in between', async () => {
    const { walk, perTurn } = queueOnClock();
    let running = 0;
    let most = 0;
    const slice = async () => {
      most = Math.max(most, ++running);
      for (let n = 0; n < 10; n++) await undefined;
      running--;
    };
    await perTurn(times(20, () => walk(2, slice)));
    assert.equal(most, 1);
  });

  it('starts new walks although older ones have many slices to go', async () => {
    const { walk, perTurn } = queueOnClock();
    let ended = 0;
    const long = async () => {
      await walk(1_000);
      ended++;
    };
    const short = async () => {
      await walk(1);
      return ended;
    };
    const walks = times(100, long);
    await new Promise((resolve) => setImmediate(resolve));
    const later = short();
    await perTurn([...walks, later]);
    assert.equal(await later, 0);
  });

  it('ends walks that have started before it continues with others, so that few are in memory', async () => {
    const { walk, perTurn } = queueOnClock();
    let inProgress = 0;
    let most = 0;
    const each = (slice: number) => {
      if (slice === 1) most = Math.max(most, ++inProgress);
      if (slice === 9) inProgress--;
    };
    await perTurn(times(100, () => walk(10, each)));
    assert.ok(most <= 10, `${most} walks at once`);
  });

  it('continues after a slice that fails', async () => {
    const { walk, perTurn } = queueOnClock();
    const fails = walk(1, () => {
      throw new Error('no record');
    });
    const results = Promise.allSettled([fails, walk(1)]);
    await perTurn([results]);
    assert.deepEqual(
      (await results).map(({ status }) => status),
      ['rejected', 'fulfilled']
    );
  });

  it('counts as pending work until the last slice has ended', async () => {
    const { walk, work } = queueOnClock();
    let isDone = false;
    void walk(3, async () => {
      for (let n = 0; n < 10; n++) await undefined;
    }).then(() => {
      isDone = true;
    });
    await work.settled();
    assert.equal(isDone, true);
  });
});
