import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SamplePace, SampleRing } from '../../lib/base/collections/samples.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('Samples', () => {
  const sample = (at: number, json = `${at}`) => ({ at, json, isCut: false });

  it('takes a sample in 100 ms for each ring, and keeps the last five', () => {
    const clock = new ManualClock();
    const pace = new SamplePace(clock);
    const ring = new SampleRing(pace);
    assert.deepEqual(ring.samples, []);
    for (let ms = 0; ms < 1000; ms++) {
      if (ring.isOpen) ring.add(sample(clock.now()));
      clock.advance(1);
    }
    assert.deepEqual(
      ring.samples.map(({ at }) => at),
      [500, 600, 700, 800, 900]
    );
  });

  it('limits the samples of many rings together, and serves them in turn', () => {
    const clock = new ManualClock();
    const pace = new SamplePace(clock);
    const rings = Array.from({ length: 200 }, () => new SampleRing(pace));
    const take = () => {
      const open = rings.filter(({ isOpen }) => isOpen);
      for (const ring of open) ring.add(sample(clock.now()));
      return open.length;
    };
    assert.equal(take(), 200);
    const counts = Array.from({ length: 8 }, () => {
      clock.advance(100);
      return take();
    });
    assert.deepEqual(counts, [50, 50, 50, 50, 50, 50, 50, 50]);
    assert.ok(rings.every(({ samples }) => samples.length === 3));
  });

  it('sets no timer without values, and none after the end', () => {
    const clock = new ManualClock();
    const pace = new SamplePace(clock);
    const ring = new SampleRing(pace);
    ring.add(sample(0));
    assert.equal(clock.pending, 1);
    clock.advance(500);
    assert.equal(clock.pending, 0);
    ring.add(sample(500));
    pace.end();
    assert.deepEqual([clock.pending, ring.isOpen], [0, true]);
  });

  it('takes shorter samples while all of them together are large, until rings are cleared', () => {
    const pace = new SamplePace(new ManualClock());
    const rings = Array.from({ length: 3000 }, () => new SampleRing(pace));
    assert.equal(pace.most, 4096);
    for (const ring of rings) ring.add(sample(0, 'x'.repeat(4000)));
    assert.equal(pace.most, 512);
    for (const ring of rings) ring.clear();
    assert.deepEqual([pace.most, pace.characters], [4096, 0]);
  });
});
