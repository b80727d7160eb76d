import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import type { ListenerHandle } from '../../lib/adapter.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

const LISTENER: ListenerHandle = {
  name: 'tls:test',
  protocol: 'mqtt:ssl',
  address: undefined,
  open: async () => {},
  close: async () => {},
  info: () => ({ acceptors: 1, maxConnections: 0, currentConnections: 0, shutdownCount: {} })
};

describe('A broker with arriving connections', () => {
  it('sends nothing while another connection is accepted in each iteration of the event loop, even if they have handshakes', async () => {
    await using kit = await createTestBroker();
    let arriving = () => {};
    kit.broker.attach({ ...LISTENER, attached: (announce) => (arriving = announce) });
    const client = await kit.connect({ clientId: 'a' });
    await client.subscribe('t');
    const received: string[] = [];
    client.on('message', ({ payload }) => received.push(`${payload}`));
    void kit.broker.publish('t', 'before the second connection');
    arriving();
    await nextIteration();
    void kit.broker.publish('t', 'after the last connection');
    for (let iteration = 0; iteration < 30; iteration++) {
      arriving();
      await nextIteration();
      assert.deepEqual(received, ['before the second connection'], `iteration ${iteration}`);
    }
    await kit.clock.settle();
    assert.deepEqual(received, ['before the second connection', 'after the last connection']);
  });
});
