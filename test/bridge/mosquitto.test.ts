import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BridgeOptions, bridge } from '../../adapters/bridge/index.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { until } from '../support/until.ts';
import { Mosquitto, withMosquitto } from './mosquitto.ts';
import { connected, listener } from './pair.ts';

async function withServer(
  options: Partial<BridgeOptions>,
  run: (it: { near: Broker; server: Mosquitto; link: ReturnType<typeof bridge> }) => Promise<void>
): Promise<void> {
  const server = await new Mosquitto().begin();
  const near = await createBroker().start();
  const link = bridge(near, { url: `mqtt://127.0.0.1:${server.port}`, backOff: 20, maxBackOff: 100, ...options });
  try {
    await connected(near, link);
    await run({ near, server, link });
  } finally {
    link.close();
    await near.stop();
    await server.end();
  }
}

describe('A bridge to mosquitto', withMosquitto, () => {
  for (const version of [4, 5] as const) {
    const out = [{ filter: 'out/#', qos: 2 }] as const;
    const both = { version, out, in: [{ filter: 'in/#', qos: 2 }] } as const;

    it(`forwards messages in both directions with version ${version}`, async () => {
      await withServer(both, async ({ near, server }) => {
        const far = await server.client();
        const messages = far.messages()[Symbol.asyncIterator]();
        await far.subscribe('out/#', { qos: 2 });
        const here = await listener(near, 'in/#');
        for (const qos of [0, 1, 2] as const) {
          await near.publish('out/x', `${qos}`, { qos });
          await far.publish('in/x', `${qos}`, { qos });
          const sent = (await messages.next()).value;
          assert.deepEqual([sent?.topic, String(sent?.payload), sent?.qos], ['out/x', `${qos}`, qos]);
          const received = await here.next();
          assert.deepEqual([received.topic, String(received.payload), received.qos], ['in/x', `${qos}`, qos]);
        }
        far.destroy();
      });
    });

    it(`sends queued messages after a restart with version ${version}`, async () => {
      await withServer(both, async ({ near, server, link }) => {
        const lost = near.nextEvent('bridge.disconnected');
        await server.stop();
        await lost;
        for (let i = 0; i < 50; i++) await near.publish('out/x', `${i}`, { qos: 2 });
        assert.equal(link.size, 50);
        await server.begin();
        await connected(near, link);
        await until(() => link.size === 0);
        assert.equal(link.counters.sent, 50);
      });
    });
  }

  it('does not echo messages with the bridge bit of MQTT 3.1.1', async () => {
    const topics = [{ filter: 'x/#', qos: 1 }] as const;
    await withServer({ version: 4, bridgeBit: true, out: topics, in: topics }, async ({ near, link }) => {
      const here = await listener(near, 'x/#');
      await near.publish('x/1', 'a', { qos: 1 });
      await near.publish('x/1', 'b', { qos: 1 });
      await until(() => link.size === 0);
      assert.equal(String((await here.next()).payload), 'a');
      assert.equal(String((await here.next()).payload), 'b');
      assert.equal(link.counters.received, 0);
    });
  });
});
