import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';

/** The codes of the records of a client, the oldest first. */
function historyOf(broker: Broker, clientId: string): string[] {
  return broker.monitor.reasons
    .list({ clientId, limit: 100 })
    .entries.map(({ code }) => code)
    .reverse();
}

describe('The history of a client', () => {
  it('keeps its connections, subscriptions and their ends while it floods topics without subscribers', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const flooding = await broker.connect({ clientId: 'flooding' });
    await flooding.subscribe('a');
    for (let number = 0; number < 100; number++) await flooding.publish(`none/${number}`, 'x', { qos: 1 });
    await flooding.unsubscribe('a');
    broker.sessions.get('flooding').kick();
    const history = historyOf(broker, 'flooding');
    assert.equal(history.length, 32);
    assert.deepEqual(history.slice(0, 2), ['connected', 'subscribed']);
    assert.deepEqual(history.slice(-2), ['unsubscribed', 'disconnected_kicked']);
    const again = await broker.connect({ clientId: 'flooding' });
    for (let number = 0; number < 100; number++) await again.publish(`none/${number}`, 'x', { qos: 1 });
    const others = historyOf(broker, 'flooding').filter((code) => code !== 'no_subscribers');
    const lost = ['unsubscribed', 'disconnected_kicked'];
    assert.deepEqual(others, ['connected', 'subscribed', ...lost, 'connected']);
    await again.disconnect();
  });
});
