import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runBridge } from '../crash/bridge-life.ts';

it('A persisted bridge between two durable brokers loses no QoS 1 message and duplicates no QoS 2 message if either process is killed', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { faults } = await runBridge(seed, 2);
  assert.deepEqual(faults, [], `seed ${seed}`);
});
