import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { memoryStore } from 'embermq';
import { type BrokerSetup, setupBroker, type TestBroker } from 'embermq/testing';

/** The retained messages of the app. */
async function retainedIn({ broker }: BrokerSetup): Promise<string[]> {
  const topics: string[] = [];
  for await (const { topic } of broker.retained.match('#')) topics.push(topic);
  return topics;
}

/** Hooks that the test runs itself. */
function fakeHooks() {
  let before = async () => {};
  let after = async () => {};
  return {
    beforeEach: (run: () => Promise<void>) => void (before = run),
    afterEach: (run: () => Promise<void>) => void (after = run),
    before: () => before(),
    after: () => after()
  };
}

describe('setupBroker with the hooks of node:test', () => {
  const test = setupBroker({ beforeEach, afterEach });
  const seen = new Set<TestBroker>();

  for (const name of ['first', 'second'])
    it(`gives the ${name} test its own kit`, async () => {
      assert.equal(seen.has(test.kit), false);
      seen.add(test.kit);
      assert.deepEqual([test.broker.state, await retainedIn(test)], ['connected', []]);
      await test.broker.publish('a', 'x', { retain: true });
      const before = test.clock.now();
      await test.clock.advance('1h');
      assert.equal(test.clock.now() - before, 3_600_000);
    });
});

describe('setupBroker', () => {
  it('fails a test that leaves a resource open, and continues with the next one', async () => {
    const hooks = fakeHooks();
    const test = setupBroker(hooks);
    await hooks.before();
    test.broker.subscribe('a/#', () => {});
    await assert.rejects(hooks.after(), { code: 'TEST_LEAKS' });
    await hooks.before();
    assert.equal(test.broker.state, 'connected');
    await hooks.after();
  });

  it('takes options, or a function that returns them for each test', async () => {
    const hooks = fakeHooks();
    const stores = [memoryStore(), memoryStore()];
    const test = setupBroker(hooks, () => ({ store: stores.pop(), leaks: 'ignore' }));
    for (let i = 0; i < 2; i++) {
      await hooks.before();
      assert.deepEqual(await retainedIn(test), []);
      await test.broker.publish('a', 'x', { retain: true });
      test.broker.subscribe('a/#', () => {});
      await hooks.after();
    }
    assert.deepEqual(stores, []);
  });

  it('fails the second of two tests that begin at the same time, and leaves the kit to the first', async () => {
    const hooks = fakeHooks();
    const test = setupBroker(hooks);
    const [first, second] = await Promise.allSettled([hooks.before(), hooks.before()]);
    assert.equal(first.status, 'fulfilled');
    assert.equal(second.status === 'rejected' && second.reason.code, 'KIT_IN_USE');
    await hooks.after(); // of the second: runners call it although beforeEach has failed
    assert.equal(test.broker.state, 'connected');
    await hooks.after();
    assert.throws(() => test.kit, { code: 'KIT_MISSING' });
    await hooks.before();
    assert.equal(test.broker.state, 'connected');
    await hooks.after();
  });

  it('continues with the next test after a kit that cannot be created', async () => {
    const hooks = fakeHooks();
    const options = [{ maxQosAllowed: 1 }, { leak: 'error' }] as object[];
    const test = setupBroker(hooks, () => options.pop() as object);
    await assert.rejects(hooks.before(), { code: 'OPTION_UNKNOWN' });
    await hooks.after();
    await hooks.before();
    assert.equal(test.broker.state, 'connected');
    await hooks.after();
  });

  it('names the hook that is missing', () => {
    const { beforeEach } = fakeHooks();
    for (const [hooks, field] of [
      [undefined, 'hooks'],
      [{ beforeEach }, 'afterEach'],
      [{ afterEach: beforeEach }, 'beforeEach']
    ])
      assert.throws(() => setupBroker(hooks as never), { code: 'OPTION_INVALID', field });
  });

  it('reports that there is no kit outside of a test, and that tests must not run concurrently', async () => {
    const hooks = fakeHooks();
    const test = setupBroker(hooks);
    assert.throws(() => test.kit, { code: 'KIT_MISSING' });
    await hooks.after(); // after a beforeEach that has failed
    await hooks.before();
    await assert.rejects(hooks.before(), { code: 'KIT_IN_USE' });
    await hooks.after();
    await hooks.after();
  });
});
