import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Cancellation } from '../../lib/base/cancellation.ts';

describe('a cancellation', () => {
  it('aborts its signal once, with the first reason', () => {
    const cancellation = new Cancellation();
    const { signal } = cancellation;
    assert.equal(signal.aborted, false);
    cancellation.abort(new Error('first'));
    cancellation.abort(new Error('second'));
    assert.match(String(signal.reason), /first/);
    assert.equal(cancellation.signal, signal);
  });

  it('returns an aborted signal if it is read after the abort', () => {
    const cancellation = new Cancellation();
    cancellation.abort(new Error('over'));
    assert.match(String(cancellation.signal.reason), /over/);
  });
});
