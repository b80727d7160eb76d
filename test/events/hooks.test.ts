import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Cancellation } from '../../lib/base/cancellation.ts';
import { BrokerError } from '../../lib/base/errors.ts';
import { type Hook, HookRegistry, isThenable } from '../../lib/events/hooks.ts';
import { clientInfo } from '../support/client-info.ts';
import { ManualClock } from '../support/manual-clock.ts';

const client = clientInfo();

const setUp = () => {
  const clock = new ManualClock();
  const reports: string[] = [];
  const hooks = new HookRegistry(clock, 5000, (error, during, about) => {
    reports.push(`${during} of ${about?.clientId}: ${(error as Error).message}`);
  });
  /** Calls functions like an authorize hook: `no` stands for a refusal. */
  const ask = (...functions: ((request: string) => unknown)[]) =>
    hooks.first('authorizePublish', functions, 'request', 'no', client);
  return { clock, hooks, reports, ask };
};

describe('HookRegistry', () => {
  it('calls the functions of a hook in order of registration, and twice if added twice', () => {
    const { hooks } = setUp();
    const order: string[] = [];
    const again = () => void order.push('again');
    hooks.add('deliver', () => void order.push('first'));
    hooks.add('deliver', again);
    hooks.add('deliver', again);
    for (const deliver of hooks.deliver) deliver({} as Parameters<Hook<'deliver'>>[0]);
    assert.deepEqual(order, ['first', 'again', 'again']);
  });

  it('removes only the function that was added, without disturbing a call in progress', () => {
    const { hooks } = setUp();
    const deliver = () => {};
    const removeFirst = hooks.add('deliver', deliver);
    hooks.add('deliver', deliver);
    const running = hooks.deliver;
    removeFirst();
    removeFirst();
    assert.equal(hooks.deliver.length, 1);
    assert.equal(running.length, 2);
    assert.equal(hooks.publish.length, 0);
  });
});

describe('HookRegistry.first', () => {
  it('returns no answer without functions', () => {
    const { ask } = setUp();
    assert.equal(ask(), undefined);
  });

  it('answers synchronously as long as functions do, with the first decision', () => {
    const { ask } = setUp();
    const asked: unknown[] = [];
    const answer = ask(
      (request) => void asked.push(request),
      () => null,
      () => false,
      () => assert.fail('the opinion before is final')
    );
    assert.equal(answer, false);
    assert.deepEqual(asked, ['request']);
  });

  it('waits for a promise, then continues with the next function', async () => {
    const { ask } = setUp();
    const order: number[] = [];
    const answer = ask(
      () => void order.push(1),
      async () => void order.push(2),
      async () => {
        order.push(3);
        return null;
      },
      () => {
        order.push(4);
        return true;
      },
      () => assert.fail('the opinion before is final')
    );
    assert.deepEqual(order, [1, 2]);
    assert.ok(isThenable(answer));
    assert.equal(await answer, true);
    assert.deepEqual(order, [1, 2, 3, 4]);
  });

  it('refuses when a function throws, and reports the error', () => {
    const { ask, reports } = setUp();
    const answer = ask(
      () => {
        throw new Error('broken');
      },
      () => assert.fail('a failure is an opinion')
    );
    assert.equal(answer, 'no');
    assert.deepEqual(reports, ['hook authorizePublish of c1: broken']);
  });

  it('refuses when a promise rejects, and reports the error', async () => {
    const { ask, reports, clock } = setUp();
    assert.equal(await ask(() => Promise.reject(new Error('broken'))), 'no');
    assert.deepEqual(reports, ['hook authorizePublish of c1: broken']);
    assert.equal(clock.pending, 0);
  });

  it('refuses when a thenable throws instead of answering', async () => {
    const { ask, reports } = setUp();
    const thenable = {
      // biome-ignore lint/suspicious/noThenProperty: the test is about a thenable of an app
      then: () => {
        throw new Error('no promise');
      }
    };
    assert.equal(await ask(() => thenable), 'no');
    assert.deepEqual(reports, ['hook authorizePublish of c1: no promise']);
  });

  it('refuses when there is no answer in time, aborts the signal of the hook, and reports the error once', async () => {
    const { clock, hooks, reports } = setUp();
    const abort = new Cancellation();
    let late = (_error: unknown) => {};
    const hanging = () =>
      new Promise<unknown>((_, reject) => {
        late = reject;
      });
    abort.signal.addEventListener('abort', () => late(abort.signal.reason));
    const answer = hooks.first('authenticate', [hanging], 'request', 'no', client, abort);
    clock.advance(4999);
    assert.equal(abort.signal.aborted, false);
    clock.advance(1);
    assert.equal(await answer, 'no');
    assert.ok(abort.signal.reason instanceof BrokerError);
    assert.equal(abort.signal.reason.code, 'HOOK_TIMEOUT');
    await new Promise(setImmediate);
    assert.deepEqual(reports, [
      'hook authenticate of c1: hook authenticate did not answer within 5000 ms (option hookTimeout)'
    ]);
  });

  it('leaves no timer behind when the answer arrives, and ignores a late answer', async () => {
    const { ask, clock, reports } = setUp();
    let answerLate = (_value: unknown) => {};
    const hanging = ask(
      () =>
        new Promise((resolve) => {
          answerLate = resolve;
        })
    );
    assert.equal(await ask(async () => true), true);
    assert.equal(clock.pending, 1);
    clock.advance(5000);
    answerLate('yes');
    assert.equal(await hanging, 'no');
    assert.equal(clock.pending, 0);
    assert.equal(reports.length, 1);
  });
});
