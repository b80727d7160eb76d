import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it, mock } from 'node:test';
import { WorkCount } from '../../lib/base/pending-work.ts';
import { duplexPair } from '../../lib/client/duplex.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

function random(): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const hasCode = (code: string) => (error: unknown) => (error as { code?: string }).code === code;

describe('VirtualClock', () => {
  it('starts at a default or given wall-clock time and at monotonic 0, and advances only on request', async () => {
    assert.equal(new VirtualClock().now(), Date.UTC(2026, 0, 1));
    const clock = new VirtualClock({ now: '2030-05-05T00:00:00Z' });
    await clock.settle();
    assert.equal(clock.now(), Date.UTC(2030, 4, 5));
    assert.equal(clock.monotonic(), 0);
    await clock.advance('90s');
    await clock.advance(500);
    assert.equal(clock.monotonic(), 90_500);
    assert.equal(clock.now(), Date.UTC(2030, 4, 5) + 90_500);
  });

  it('fires timers by due time, then by the order of arming, each at its own time', async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    for (const [name, delayMs] of [
      ['c', 30],
      ['a', 10],
      ['b1', 20],
      ['b2', 20],
      ['late', 41]
    ] as const) {
      clock.setTimeout(() => fired.push(`${name}@${clock.monotonic()}`), delayMs);
    }
    await clock.advance(40);
    assert.deepEqual(fired, ['a@10', 'b1@20', 'b2@20', 'c@30']);
  });

  it('fires timers in sorted order, for any that are armed and cleared', async () => {
    console.log(`SEED=${seed}`);
    const next = random();
    const clock = new VirtualClock();
    const fired: number[] = [];
    const timers = Array.from({ length: 2_000 }, (_, id) => {
      const delayMs = Math.floor(next() * 500);
      return { id, delayMs, timer: clock.setTimeout(() => fired.push(id), delayMs), isCleared: false };
    });
    for (const each of timers) {
      if (next() > 0.3) continue;
      each.isCleared = true;
      clock.clearTimeout(each.timer);
    }
    assert.equal(clock.timers.length, timers.filter(({ isCleared }) => !isCleared).length);
    while (await clock.runNext());
    const expected = timers.filter(({ isCleared }) => !isCleared).sort((a, b) => a.delayMs - b.delayMs || a.id - b.id);
    assert.deepEqual(
      fired,
      expected.map(({ id }) => id)
    );
  });

  it('fires timers that other timers arm, and settles after each of them', async () => {
    const clock = new VirtualClock();
    const log: string[] = [];
    clock.setTimeout(async () => {
      for (let i = 0; i < 50; i++) await null;
      await new Promise((resolve) => process.nextTick(resolve));
      log.push(`settled@${clock.monotonic()}`);
      clock.setTimeout(() => log.push(`nested@${clock.monotonic()}`), 5);
    }, 10);
    clock.setTimeout(() => log.push(`after@${clock.monotonic()}`), 11);
    await clock.advance(20);
    assert.deepEqual(log, ['settled@10', 'after@11', 'nested@15']);
  });

  it('accepts delays above 2^31 ms, never fires after Infinity, and treats negative delays as 0', async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    assert.equal(
      clock.setTimeout(() => fired.push('never'), Infinity),
      undefined
    );
    clock.setTimeout(() => fired.push('far'), 2 ** 40);
    clock.setTimeout(() => fired.push('now'), -5);
    clock.setTimeout(() => fired.push('nan'), Number.NaN);
    clock.clearTimeout(undefined);
    await clock.advance(0);
    assert.deepEqual(fired, ['now', 'nan']);
    await clock.advance(2 ** 40);
    assert.deepEqual(fired, ['now', 'nan', 'far']);
  });

  it('runs concurrent advances one after the other, and each adds its time', async () => {
    const clock = new VirtualClock();
    const fired: number[] = [];
    for (const ms of [5, 15, 25]) clock.setTimeout(() => fired.push(ms), ms);
    const first = clock.advance(10).then(() => [...fired]);
    const second = clock.advance(10).then(() => [...fired]);
    clock.setTimeout(() => void clock.advance(100), 3);
    assert.deepEqual(await first, [5]);
    assert.deepEqual(await second, [5, 15]);
    await clock.settle();
    assert.equal(clock.monotonic(), 120);
  });

  it('advances to a date, and refuses a date in the past', async () => {
    const clock = new VirtualClock({ now: 0 });
    await clock.advanceTo(new Date(5_000));
    assert.equal(clock.monotonic(), 5_000);
    await assert.rejects(clock.advanceTo(4_999), hasCode('DATE_INVALID'));
    await assert.rejects(clock.advance('soon'), hasCode('DURATION_INVALID'));
    await assert.rejects(clock.advance(Infinity), hasCode('DURATION_INVALID'));
  });

  it('steps the wall clock without firing timers', async () => {
    const clock = new VirtualClock({ now: 0 });
    let fired = 0;
    clock.setTimeout(() => fired++, 1_000);
    clock.stepWall(3_600_000);
    await clock.advance(999);
    assert.equal(fired, 0);
    assert.equal(clock.now(), 3_600_999);
    clock.stepWall(-7_200_000);
    await clock.advance(1);
    assert.equal(fired, 1);
    assert.equal(clock.now(), -3_599_000);
    assert.equal(clock.monotonic(), 1_000);
  });

  it('fires the next timer only if it is due within the time given', async () => {
    const clock = new VirtualClock();
    clock.setTimeout(() => {}, 100);
    assert.equal(await clock.runNext({ within: 99 }), false);
    assert.equal(clock.monotonic(), 0);
    assert.equal(await clock.runNext({ within: 100 }), true);
    assert.equal(clock.monotonic(), 100);
    assert.equal(await clock.runNext(), false);
  });

  it('rejects with the error of a timer at the time of that timer, and continues from there', async () => {
    const clock = new VirtualClock();
    let fired = 0;
    clock.setTimeout(() => {
      throw new Error('mine');
    }, 10);
    clock.setTimeout(() => fired++, 20);
    await assert.rejects(clock.advance(30), /mine/);
    assert.equal(clock.monotonic(), 10);
    await clock.advance(10);
    assert.equal(fired, 1);
  });

  it('lists the timers of the application with the place of arming, but not the timers of the library', () => {
    const clock = new VirtualClock();
    clock.internal.setTimeout(() => {}, 5);
    clock.setTimeout(() => {}, 10);
    assert.equal(clock.timers.length, 1);
    assert.equal(clock.timers[0].inMs, 10);
    assert.match(clock.timers[0].origin, /clock\.test\.ts/);
  });

  it('advances a day with a timer each minute in a few milliseconds', async () => {
    const clock = new VirtualClock();
    let fired = 0;
    const again = () => {
      fired++;
      clock.internal.setTimeout(again, 60_000);
    };
    clock.internal.setTimeout(again, 60_000);
    await clock.advance('1d');
    assert.equal(fired, 1_440);
  });
});

describe('settling of a VirtualClock', () => {
  it('waits for bytes in transit between streams, for any number of turns of their readers', async () => {
    const clock = new VirtualClock();
    const work = new WorkCount();
    clock.attach(work);
    const [a, b] = duplexPair(work);
    let echoes = 0;
    b.on('data', (chunk) => {
      work.begin(); // like a broker that writes once per turn
      setImmediate(() => {
        b.write(chunk);
        work.end();
      });
    });
    a.on('data', (chunk) => {
      if (++echoes < 20) a.write(chunk);
    });
    clock.setTimeout(() => a.write('x'), 10);
    let seen = 0;
    clock.setTimeout(() => {
      seen = echoes;
    }, 11);
    await clock.advance(20);
    assert.equal(seen, 20);
  });

  it('waits for a hook that does real input or output', async () => {
    const clock = new VirtualClock({ patienceMs: 60_000 });
    const work = new WorkCount();
    clock.attach(work);
    let answer = 0;
    clock.setTimeout(() => {
      void work.run(async () => {
        await readFile(new URL(import.meta.url));
        await readFile(new URL(import.meta.url));
        answer = clock.monotonic();
      }, undefined);
    }, 10);
    await clock.advance(1_000);
    assert.equal(answer, 10);
    assert.equal(work.count, 0);
  });

  it('does not wait for a hook that waits for the clock, once or repeatedly, by callback or promise', async () => {
    const startMs = performance.now();
    const clock = new VirtualClock({ patienceMs: 20_000 });
    const work = new WorkCount();
    clock.attach(work);
    const log: string[] = [];
    const sleep = (ms: number) => new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
    void work.run(async () => {
      await sleep(100);
      await readFile(new URL(import.meta.url));
      log.push(`one@${clock.monotonic()}`);
      await sleep(50);
      log.push(`two@${clock.monotonic()}`);
    }, undefined);
    void work.run(
      () =>
        new Promise<void>((resolve) => {
          clock.setTimeout(() => clock.setTimeout(resolve, 20), 100);
        }),
      undefined
    );
    const raced = clock.setTimeout(() => {}, 500);
    void work.run(() => Promise.race([sleep(10), sleep(1_000)]), undefined);
    clock.clearTimeout(raced);
    await clock.advance(200);
    assert.deepEqual(log, ['one@100', 'two@150']);
    assert.equal(work.count, 0);
    await clock.advance(2_000);
    assert.equal(work.count, 0);
    assert.ok(performance.now() - startMs < 10_000, 'the clock continued before patienceMs had passed');
  });

  it('continues after patienceMs if a hook never returns', async () => {
    const clock = new VirtualClock({ patienceMs: 5 });
    const work = new WorkCount();
    clock.attach(work);
    void work.run(() => new Promise(() => {}), undefined);
    let fired = false;
    clock.setTimeout(() => {
      fired = true;
    }, 10);
    await clock.advance(10);
    assert.equal(fired, true);
    assert.equal(work.count, 0);
  });

  it('refuses to be advanced inside a hook that it waits for', async () => {
    const clock = new VirtualClock();
    const work = new WorkCount();
    clock.attach(work);
    const hook = work.run(async () => {
      await null;
      await clock.advance(10);
    }, undefined);
    await Promise.all([assert.rejects(hook, hasCode('CLOCK_BUSY')), clock.advance(5)]);
  });

  it('waits for tracked promises, and throws an error if they do not settle', async () => {
    const clock = new VirtualClock();
    let isRead = false;
    void clock.track(
      readFile(new URL(import.meta.url)).then(() => {
        isRead = true;
      })
    );
    await clock.advance(1);
    assert.equal(isRead, true);
    const impatient = new VirtualClock({ patienceMs: 5, stuckMs: 20 });
    void impatient.track(new Promise(() => {}));
    await assert.rejects(
      impatient.advance(1),
      (error: Error) => hasCode('CLOCK_STUCK')(error) && /clock\.track/.test(error.message)
    );
  });

  it('works while a test framework fakes timers, immediates and dates', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate', 'Date'] });
    try {
      const clock = new VirtualClock();
      const work = new WorkCount();
      clock.attach(work);
      const [a, b] = duplexPair(work);
      let got = '';
      b.on('data', (chunk) => {
        got += chunk;
      });
      clock.setTimeout(() => a.write('x'), 1_000);
      await clock.advance('1s');
      assert.equal(got, 'x');
    } finally {
      mock.timers.reset();
    }
  });
});
