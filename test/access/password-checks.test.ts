import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PasswordChecks } from '../../lib/access/password-checks.ts';

const NEVER = new AbortController().signal;

/** Checks that the test ends itself, in the order in which they start. */
function manualChecks() {
  const begun: string[] = [];
  const ends = new Map<string, (answer: boolean) => void>();
  const check = (name: string) => () => {
    begun.push(name);
    return new Promise<boolean>((resolve) => ends.set(name, resolve));
  };
  return { begun, check, end: (name: string, answer = true) => ends.get(name)?.(answer) };
}

/** Let all promises settle that can settle. */
async function settle(): Promise<void> {
  for (let n = 0; n < 20; n++) await Promise.resolve();
}

describe('password checks', () => {
  let nowMs = 0;

  it('runs a limited number of checks at a time', async () => {
    const { begun, check, end } = manualChecks();
    const checks = new PasswordChecks(() => nowMs, { concurrency: 2 });
    const answers = ['a', 'b', 'c'].map((name) => checks.check(check(name), '10.0.0.1', NEVER));
    assert.deepEqual(begun, ['a', 'b']);
    assert.equal(checks.waiting, 1);
    end('b', false);
    await settle();
    assert.deepEqual(begun, ['a', 'b', 'c']);
    end('a');
    end('c');
    assert.deepEqual(await Promise.all(answers), [true, false, true]);
  });

  it('lets addresses take turns', async () => {
    const { begun, check, end } = manualChecks();
    const checks = new PasswordChecks(() => nowMs, { concurrency: 1 });
    const answers = ['x1', 'x2', 'x3', 'y1', 'z1'].map((name) => checks.check(check(name), name[0], NEVER));
    for (const name of ['x1', 'x2', 'y1', 'z1', 'x3']) {
      end(name);
      await settle();
    }
    assert.deepEqual(begun, ['x1', 'x2', 'y1', 'z1', 'x3']);
    assert.deepEqual(await Promise.all(answers), Array(5).fill(true));
  });

  it('continues after a check that throws, and takes an answer that is not a promise', async () => {
    const checks = new PasswordChecks(() => nowMs, { concurrency: 1 });
    const thrown = checks.check(
      () => {
        throw new Error('no such hash');
      },
      'x',
      NEVER
    );
    const answered = checks.check((() => true) as never, 'x', NEVER);
    await assert.rejects(thrown, /no such hash/);
    assert.equal(await answered, true);
  });

  it('drops a waiting check whose connection has closed', async () => {
    const { begun, check, end } = manualChecks();
    const checks = new PasswordChecks(() => nowMs, { concurrency: 1 });
    const gone = new AbortController();
    const first = checks.check(check('a'), 'x', NEVER);
    const second = checks.check(check('b'), 'x', gone.signal);
    gone.abort(new Error('gone'));
    await assert.rejects(second, /gone/);
    assert.equal(checks.waiting, 0);
    end('a');
    await first;
    assert.deepEqual(begun, ['a']);
    await assert.rejects(checks.check(check('c'), 'x', gone.signal), /gone/);
  });

  it('refuses the last check of the address with the longest queue when too many wait', async () => {
    const { begun, check, end } = manualChecks();
    const checks = new PasswordChecks(() => nowMs, { concurrency: 1, maxWaiting: 3 });
    const running = checks.check(check('r'), 'x', NEVER);
    const flood = [1, 2, 3].map((n) => checks.check(check(`x${n}`), 'x', NEVER));
    const other = checks.check(check('y'), 'y', NEVER);
    await assert.rejects(flood[2], { code: 'PASSWORD_QUEUE_FULL' });
    for (const name of ['r', 'x1', 'y', 'x2']) {
      end(name);
      await settle();
    }
    assert.deepEqual(begun, ['r', 'x1', 'y', 'x2']);
    assert.deepEqual(await Promise.all([running, flood[0], flood[1], other]), Array(4).fill(true));
    assert.equal(checks.waiting, 0);
  });

  it('refuses a check that would wait longer than ten seconds, according to the duration of checks', async () => {
    const { check, end } = manualChecks();
    const checks = new PasswordChecks(() => nowMs, { concurrency: 1 });
    const refused: number[] = [];
    let asked = 0;
    const ask = (): Promise<unknown> => {
      const n = asked++;
      return checks.check(check(`${n}`), 'x', NEVER).catch(({ code }) => {
        assert.equal(code, 'PASSWORD_QUEUE_FULL');
        refused.push(n);
      });
    };
    const answers = Array.from({ length: 400 }, ask);
    await settle();
    assert.equal(checks.waiting, 333); // until one has ended, they are assumed to take 30 ms
    nowMs += 50;
    end('0');
    await settle();
    for (let n = 0; n < 200; n++) answers.push(ask());
    await settle();
    assert.equal(checks.waiting, 200);
    assert.equal(refused.length, 600 - 202); // one has ended, one runs
    for (let n = 1; n < 600; n++) {
      end(`${n}`);
      await settle();
    }
    await Promise.all(answers);
  });

  it('reports the error of a check and continues', async () => {
    const checks = new PasswordChecks(() => nowMs, { concurrency: 1 });
    await assert.rejects(
      checks.check(() => Promise.reject(new Error('broken')), 'x', NEVER),
      /broken/
    );
    assert.equal(await checks.check(() => Promise.resolve(true), 'x', NEVER), true);
  });
});
