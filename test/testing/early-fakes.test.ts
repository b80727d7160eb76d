import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

// A file of its own, because the library must not have been imported before: jest can fake timers for every test file
// (`fakeTimers: { enableGlobally: true }`) before its first import. It replaces the globals.
describe('the kit, imported while timers are faked', () => {
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

  it('works all the same', async () => {
    const { createTestBroker } = await import('../../lib/testing/index.ts');
    await using kit = await createTestBroker();
    await using client = await kit.connect({ keepalive: 10 });
    kit.clock.setTimeout(() => void client.publish('a', 'x', { qos: 2 }), 30_000);
    assert.equal((await kit.expectMessage('a', { within: '30s' })).text, 'x');
  });
});
