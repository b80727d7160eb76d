import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listener, Pair } from './pair.ts';

describe('The session of a bridge at the server', () => {
  for (const version of [4, 5] as const)
    for (const clean of [false, true])
      it(`${clean ? 'starts again with each connection' : 'outlives its connections'}, with MQTT ${version} and clean: ${clean}`, async () => {
        await using pair = await Pair.open({ version, clean, in: [{ filter: 'in/#', qos: 1 }] });
        const { near, far, link } = pair;
        const here = await listener(near, 'in/#');
        const gone = far.nextEvent('client.disconnected');
        await link.stop();
        await gone;
        await far.publish('in/away', 'x', { qos: 1 });
        const isBack = near.nextEvent('bridge.connected');
        link.start();
        const { sessionPresent } = await isBack;
        assert.equal(sessionPresent, !clean);
        await far.publish('in/back', 'x', { qos: 1 });
        const topics = [(await here.next()).topic];
        if (!clean) topics.push((await here.next()).topic);
        assert.deepEqual(topics, clean ? ['in/back'] : ['in/away', 'in/back']);
      });
});
