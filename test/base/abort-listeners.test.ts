import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { onAbort } from '../../lib/base/abort-listeners.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { turns } from '../support/wire.ts';

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;

describe('onAbort', () => {
  it('adds one listener to a signal for any number of functions, and calls each of them once', () => {
    const controller = new AbortController();
    const called: number[] = [];
    for (let n = 0; n < 20; n++) onAbort(controller.signal, () => called.push(n));
    assert.equal(listeners(controller.signal), 1);
    controller.abort();
    assert.deepEqual(called, [...Array(20).keys()]);
    assert.equal(listeners(controller.signal), 0);
  });

  it('calls no function that was released, and removes its listener with the last one', () => {
    const controller = new AbortController();
    const called: string[] = [];
    const release = onAbort(controller.signal, () => called.push('a'));
    const releaseAnother = onAbort(controller.signal, () => called.push('b'));
    release();
    release();
    assert.equal(listeners(controller.signal), 1);
    releaseAnother();
    assert.equal(listeners(controller.signal), 0);
    onAbort(controller.signal, () => called.push('c'));
    release(); // the function of an earlier listener
    controller.abort();
    assert.deepEqual(called, ['c']);
  });

  it('calls a function that another one releases during the abort only if its turn came before', () => {
    const controller = new AbortController();
    const called: string[] = [];
    let release = () => {};
    onAbort(controller.signal, () => {
      called.push('a');
      release();
    });
    release = onAbort(controller.signal, () => called.push('b'));
    controller.abort();
    assert.deepEqual(called, ['a']);
  });

  it('calls every function if some of them throw, and throws their errors afterwards as a listener does', () => {
    const called: string[] = [];
    const thrown: unknown[] = [];
    const abort = (...functions: (() => void)[]) => {
      const signal = Object.assign(new EventTarget(), { aborted: false });
      // The test calls the listener: an error that a listener of a real signal throws is an uncaught exception.
      signal.addEventListener = (_: string, listener: unknown) => {
        call = () => (listener as () => void).call(signal);
      };
      let call = () => {};
      for (const run of functions) onAbort(signal as never, run);
      try {
        call();
      } catch (error) {
        thrown.push(error);
      }
    };
    const fails = (name: string) => () => {
      called.push(name);
      throw new Error(name);
    };
    abort(fails('a'), () => called.push('b'));
    abort(
      fails('c'),
      () => called.push('d'),
      fails('e'),
      () => called.push('f')
    );
    assert.deepEqual(called, ['a', 'b', 'c', 'd', 'e', 'f']);
    const [one, several] = thrown as [Error, AggregateError];
    assert.equal(one.message, 'a');
    assert.deepEqual(
      several.errors.map(({ message }) => message),
      ['c', 'e']
    );
  });

  it('does not call a function for a signal that has aborted, or for none', () => {
    const fail = () => assert.fail('called');
    onAbort(AbortSignal.abort(), fail)();
    onAbort(undefined, fail)();
  });
});

describe('A signal that an app shares', () => {
  it('ends twenty subscriptions, iterables, awaited events and clients without a warning of a leak', async () => {
    await using kit = await createTestBroker();
    const controller = new AbortController();
    const warnings: string[] = [];
    const warned = ({ name }: Error) => warnings.push(name);
    process.on('warning', warned);
    try {
      const ends: Promise<unknown>[] = [];
      for (let n = 0; n < 20; n++) {
        kit.broker.subscribe(`t/${n}`, () => {}, { signal: controller.signal });
        ends.push(kit.broker.messages(`m/${n}`, { signal: controller.signal }).next());
        ends.push(kit.broker.nextEvent('broker.stopped', { signal: controller.signal }));
        const client = await kit.connect({ clientId: `c${n}`, signal: controller.signal });
        ends.push(client.messages({ signal: controller.signal }).next());
      }
      assert.equal(listeners(controller.signal), 1);
      controller.abort(new Error('enough'));
      for (const { status } of await Promise.allSettled(ends)) assert.equal(status, 'rejected');
      await turns();
      assert.deepEqual([warnings, listeners(controller.signal)], [[], 0]);
      assert.equal((await kit.broker.publish('t/1', 'x')).receivers, 0);
    } finally {
      process.off('warning', warned);
    }
  });
});
