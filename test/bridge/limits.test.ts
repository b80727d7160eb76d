import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../lib/testing/index.ts';
import { listener, Pair } from './pair.ts';

describe('The limits of this broker for its clients', () => {
  it('do not apply to a bridge: it needs no keep alive, and its CONNECT may be long', async () => {
    const clock = new VirtualClock();
    const limits = { serverKeepalive: 10, maxKeepalive: 10, maxConnectSize: 64, idleTimeout: 1 };
    const name = 'a-name-of-64-letters'.padEnd(64, '-');
    await using pair = await Pair.open({ name, out: [{ filter: 'out/#', qos: 1 }] }, { near: { ...limits, clock } });
    await clock.advance(40_000); // less than the keep alive of the bridge
    const far = await listener(pair.far);
    await pair.near.publish('out/x', '1', { qos: 1 });
    assert.equal(String((await far.next()).payload), '1');
    assert.deepEqual([pair.link.state, pair.link.figures.connected], ['connected', 1]);
  });
});
