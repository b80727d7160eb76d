import assert from 'node:assert/strict';
import { after, before, describe, it, mock } from 'node:test';

// A file of its own, because the library must not have been imported before: some set-ups fake timers for every test file.
describe('the kit, imported while timers are faked', () => {
  const { queueMicrotask } = globalThis;
  before(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate', 'Date'] });
    globalThis.queueMicrotask = () => {};
  });
  after(() => {
    mock.timers.reset();
    globalThis.queueMicrotask = queueMicrotask;
  });

  it('works all the same', async () => {
    const { createTestBroker } = await import('../../lib/testing/index.ts');
    await using kit = await createTestBroker();
    await using client = await kit.connect({ keepalive: 10 });
    kit.clock.setTimeout(() => void client.publish('a', 'x', { qos: 2 }), 30_000);
    assert.equal((await kit.expectMessage('a', { within: '30s' })).text, 'x');
  });
});
