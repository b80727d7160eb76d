import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { closeClient } from '../../adapters/outgoing/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { withResolvers } from '../support/wire.ts';

describe('Closing a client of another server', () => {
  it('destroys the client and leaves no timer if the client cannot disconnect', async () => {
    const clock = new ManualClock();
    let destroyed = 0;
    const client = {
      disconnect: () => Promise.reject(new Error('cannot write')),
      destroy: () => void destroyed++
    };
    await assert.rejects(closeClient(client, clock), /cannot write/);
    assert.deepEqual([destroyed, clock.pending], [1, 0]);
  });

  it('destroys the client after a second if the server does not read', async () => {
    const clock = new ManualClock();
    const { promise, resolve } = withResolvers<void>();
    const closed = closeClient({ disconnect: () => promise, destroy: () => resolve() }, clock);
    clock.advance(1_000);
    await closed;
    assert.equal(clock.pending, 0);
  });
});
