import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from '../../lib/index.ts';

describe('the gauges of a broker', () => {
  it('count connections, sessions, subscribers and subscriptions, and keep their high-water marks', async () => {
    await using broker = createBroker();
    await broker.start();
    const passing = await broker.connect({ clientId: 'passing' });
    const staying = await broker.connect({ clientId: 'staying', sessionExpiry: 60 });
    await passing.subscribe(['a', 'b', '$share/g/c']);
    await staying.subscribe(['a']);
    // beside the three of `$SYS`
    await staying.publish('r', 'x', { qos: 1, retain: true });
    const stats = () => {
      const all = broker.metrics.stats();
      const names = [
        'connections',
        'sessions',
        'sessions.persistent',
        'subscribers',
        'subscriptions',
        'subscriptions.shared',
        'routes',
        'retained'
      ] as const;
      return names.map((name) => `${name} ${all[`${name}.count`]}/${all[`${name}.max`]}`).join(', ');
    };
    assert.equal(
      stats(),
      'connections 2/2, sessions 2/2, sessions.persistent 1/1, subscribers 2/2, subscriptions 4/4, subscriptions.shared 1/1, routes 3/3, retained 4/4'
    );
    await passing.unsubscribe(['a', 'b']);
    const terminated = broker.nextEvent('session.terminated');
    await passing.disconnect();
    await terminated;
    const gone = broker.nextEvent('client.disconnected');
    await staying.disconnect();
    await gone;
    assert.equal(
      stats(),
      'connections 0/2, sessions 1/2, sessions.persistent 1/1, subscribers 1/2, subscriptions 1/4, subscriptions.shared 0/1, routes 1/3, retained 4/4'
    );
    broker.session('staying').discard();
    assert.equal(
      stats(),
      'connections 0/2, sessions 0/2, sessions.persistent 0/1, subscribers 0/2, subscriptions 0/4, subscriptions.shared 0/1, routes 0/3, retained 4/4'
    );
  });
});
