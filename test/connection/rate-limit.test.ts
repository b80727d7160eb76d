import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RateLimit } from '../../lib/connection/rate-limit.ts';

describe('RateLimit', () => {
  it('allows the whole amount at once, then requests a pause', () => {
    const limit = new RateLimit({ amount: 100, perMs: 10_000 });
    for (let i = 0; i < 100; i++) assert.equal(limit.take(1, 5000), 0);
    assert.equal(limit.take(1, 5000), 100);
  });

  it('continues when the requested pause has passed, not earlier', () => {
    const limit = new RateLimit({ amount: 10, perMs: 1000 });
    limit.take(10, 0);
    const pauseMs = limit.take(3, 0);
    assert.equal(pauseMs, 300);
    assert.ok(limit.take(0, pauseMs - 1) > 0);
    assert.equal(limit.take(0, pauseMs), 0);
  });

  it('requests longer pauses for a larger excess', () => {
    const limit = new RateLimit({ amount: 1024, perMs: 1000 });
    assert.equal(limit.take(1024 + 32_768, 0), 32_000);
    assert.equal(limit.take(1024, 0), 33_000);
  });

  it('requests no pause longer than a minute or the period of the rate, for any excess', () => {
    const brief = new RateLimit({ amount: 1024, perMs: 1000 });
    assert.equal(brief.take(1_048_576, 0), 60_000);
    assert.equal(brief.take(0, 60_000), 0, 'an excess beyond that is ignored');
    const daily = new RateLimit({ amount: 1000, perMs: 86_400_000 });
    assert.equal(daily.take(1_999, 0), 86_313_600);
    assert.equal(daily.take(10_000, 0), 86_400_000);
  });

  it('accumulates no more than the amount, regardless of the idle time', () => {
    const limit = new RateLimit({ amount: 10, perMs: 1000 });
    limit.take(10, 0);
    assert.equal(limit.take(10, 3_600_000), 0);
    assert.equal(limit.take(1, 3_600_000), 100);
  });

  it('keeps a client that observes its pauses within the rate', () => {
    const limit = new RateLimit({ amount: 100, perMs: 10_000 });
    let nowMs = 0;
    let taken = 0;
    while (nowMs < 600_000) {
      nowMs += limit.take(1, nowMs);
      taken++;
    }
    // 10 per second for 600 s, and the first burst
    assert.ok(Math.abs(taken - 6100) <= 2, `${taken} messages`);
  });
});
