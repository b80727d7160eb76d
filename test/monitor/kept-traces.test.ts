import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker } from '../../lib/testing/index.ts';

describe('broker.monitor.traces', () => {
  it('keeps the last ten traces that have ended, in the order in which they ended', async () => {
    await using kit = await createTestBroker();
    const { traces } = kit.broker.monitor;
    const ids = () => traces.list().map(({ id }) => id);
    const started = Array.from({ length: 12 }, (_, at) => traces.start({ clientId: `c${at}` }));
    assert.equal(ids().length, 12, 'active traces are not limited to ten');
    for (const trace of started.toReversed()) trace.stop();
    assert.deepEqual(ids(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 'the two that ended first are gone');
    traces.start({ clientId: 'd', durationMs: 1_000 });
    await kit.clock.advance('2s');
    assert.deepEqual(ids(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 13]);
  });

  it('keeps no lines of a deleted trace, and keeps the others when an active one is deleted', async () => {
    await using kit = await createTestBroker();
    const { traces } = kit.broker.monitor;
    for (let left = 10; left > 0; left--) traces.start({ clientId: 'c' }).stop();
    const { id } = traces.start({ clientId: 'c' });
    assert.equal(traces.delete(id), true);
    assert.deepEqual([traces.get(id), traces.lineCount(id)], [undefined, undefined]);
    assert.equal(traces.list().length, 10);
    assert.equal(traces.delete(3), true);
    traces.start({ clientId: 'c' }).stop();
    assert.deepEqual(
      traces.list().map(({ id: each }) => each),
      [1, 2, 4, 5, 6, 7, 8, 9, 10, 12]
    );
  });
});
