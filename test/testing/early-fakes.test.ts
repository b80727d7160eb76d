import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

// This test has its own file, because the library must not have been imported before. With `fakeTimers: { enableGlobally: true }`
// jest replaces the global timers before the first import of a test file.
describe('the test kit, imported while timers are faked', () => {
  const { setTimeout, setInterval, setImmediate, queueMicrotask, Date: RealDate, performance } = globalThis;
  before(() => {
    const never = (() => ({ unref() {}, ref() {} })) as never;
    class Epoch extends RealDate {
      static override now = () => 0;
    }
    const fakes = { setTimeout: never, setInterval: never, setImmediate: never, queueMicrotask: never, Date: Epoch };
    Object.assign(globalThis, fakes, { performance: { now: () => 0 } });
  });
  after(() => {
    Object.assign(globalThis, { setTimeout, setInterval, setImmediate, queueMicrotask, Date: RealDate, performance });
  });

  it('works as without fake timers', async () => {
    const { createTestBroker } = await import('../../lib/testing/index.ts');
    await using kit = await createTestBroker();
    await using client = await kit.connect({ keepalive: 10 });
    kit.clock.setTimeout(() => void client.publish('a', 'x', { qos: 2 }), 30_000);
    assert.equal((await kit.expectMessage('a', { within: '30s' })).text, 'x');
  });
});
