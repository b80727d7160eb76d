import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Waiter } from '../../lib/store/durable.ts';
import { Waiters } from '../../lib/store/waiters.ts';

describe('The waiters for a commit', () => {
  it('receive the commit even if one of them throws, and its error is reported', () => {
    const errors: unknown[] = [];
    const waiters = new Waiters((error) => errors.push(error));
    const notified: string[] = [];
    const broken: Waiter = {
      commitSucceeded: (ticket) => {
        throw new Error(`broken at ${ticket}`);
      },
      commitFailed: (_ticket, error) => {
        throw error;
      }
    };
    waiters.add(broken);
    waiters.add({
      commitSucceeded: (ticket) => notified.push(`succeeded ${ticket}`) > 0,
      commitFailed: (ticket) => notified.push(`failed ${ticket}`) > 0
    });
    waiters.succeeded(1);
    waiters.failed(2, new Error('no space'));
    assert.deepEqual(notified, ['succeeded 1', 'failed 2']);
    assert.deepEqual(errors, [new Error('broken at 1'), new Error('no space')]);
  });
});
