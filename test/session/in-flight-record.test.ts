import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { awaitedIds, encodeInFlight, inFlightCounts } from '../../lib/session/messages/in-flight-record.ts';
import { Inflight } from '../../lib/session/messages/inflight.ts';
import type { Outlet } from '../../lib/session/messages/outlet.ts';
import { runs } from '../packets/arbitraries.ts';

describe('The encoding of packet ids in flight and awaiting PUBREL', () => {
  const ids = fc.oneof(
    fc.uniqueArray(fc.integer({ min: 1, max: 65_535 }), { maxLength: 400 }),
    fc
      .tuple(fc.nat(60_000), fc.nat(5_000))
      .map(([from, count]) => Array.from({ length: count }, (_, n) => from + n + 1))
  );

  it('contains every packet id that waits for PUBREL except undecided ones, in 8 KiB at most', () => {
    fc.assert(
      fc.property(ids, fc.nat(5), (given, count) => {
        const inflight = new Inflight({} as Outlet);
        for (const id of given) inflight.awaitRel(id, undefined);
        for (const id of given.slice(0, count)) inflight.hold(id);
        const stored = encodeInFlight(inflight, true);
        assert.ok(stored.length <= 4 + 8_192);
        const read = awaitedIds(stored);
        const expected = given.slice(count).sort((a, b) => a - b);
        assert.deepEqual(read.values(), expected);
        assert.deepEqual([read.size, inFlightCounts(stored).awaitingRel], [expected.length, expected.length]);
        assert.equal(inflight.awaitingCount, given.length);
        for (const id of expected) assert.ok(read.delete(id));
        assert.equal(read.size + read.values().length, 0);
      }),
      runs('awaited ids', 100)
    );
  });

  it('reads format 1, which stores each packet id separately', () => {
    const stored = Buffer.alloc(4 + 60_000 * 2);
    stored.writeUInt16BE(60_000, 2);
    for (let n = 0; n < 60_000; n++) stored.writeUInt16BE(n + 1, 4 + n * 2);
    const read = awaitedIds(stored);
    assert.deepEqual([read.size, read.has(60_000), read.has(60_001)], [60_000, true, false]);
  });
});
