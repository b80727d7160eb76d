import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import { createBroker } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

describe('Values of the process in the history of metrics', () => {
  it('shows memory, the delay of the event loop and the number of queued messages', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const away = await kit.connect({ clientId: 'away', clean: false, sessionExpiry: '1h' });
    await away.subscribe('a', { qos: 1 });
    await away.disconnect();
    for (let n = 0; n < 3; n++) await broker.publish('a', 'x', { qos: 1 });
    broker.monitor.metricHistory.start();
    await clock.advance(20_000);
    const names = ['process.memory', 'process.heap', 'process.loopDelay', 'messages.queued'];
    const { series } = broker.monitor.metricHistory.read(names);
    assert.ok(series['process.memory'].every((bytes) => bytes > 10_000_000));
    assert.ok(series['process.heap'].every((bytes, at) => bytes > 0 && bytes < series['process.memory'][at]));
    assert.deepEqual(series['process.loopDelay'], [0, 0], 'a virtual clock does not measure the process');
    assert.deepEqual(series['messages.queued'], [3, 3]);
  });
});

describe('Counters and gauges of the last hour', () => {
  it('returns rates of counters and values of gauges, every ten seconds', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const { metricHistory: figures } = broker.monitor;
    figures.start();
    const begin = clock.now();
    for (let number = 0; number < 25; number++) await broker.publish('a', 'x');
    await clock.advance(10_000);
    await kit.connect({ clientId: 'c' });
    await clock.advance(10_000);
    const names = ['messages.publish', 'connections.count', 'client.connected'];
    assert.deepEqual(figures.read(names), {
      at: [begin + 10_000, begin + 20_000],
      series: { 'messages.publish': [2.5, 0], 'connections.count': [0, 1], 'client.connected': [0, 0.1] }
    });
    assert.deepEqual(figures.read(['connections.count'], begin + 10_001), {
      at: [begin + 20_000],
      series: { 'connections.count': [1] }
    });
    assert.throws(() => figures.read(['connections']), { code: 'METRIC_UNKNOWN' });
  });

  it('returns at most 360 samples', async () => {
    await using kit = await createTestBroker();
    const { metricHistory: figures } = kit.broker.monitor;
    figures.start();
    const begin = kit.clock.now();
    await kit.clock.advance('2h');
    const { at, series } = figures.read(['sessions.count']);
    assert.deepEqual([at.length, series['sessions.count'].length], [360, 360]);
    assert.deepEqual([at[0], at[359]], [begin + 3_610_000, begin + 7_200_000]);
  });

  it('samples from the start to the stop of a broker with the system clock, and with a virtual clock from the first request', async () => {
    const broker = createBroker();
    const { wheel } = engineOf(broker).services;
    await broker.start();
    assert.equal(wheel.size > 0, true);
    await broker.stop();
    assert.equal(wheel.size, 0);
    await using kit = await createTestBroker();
    const before = engineOf(kit.broker).services.wheel.size;
    kit.broker.monitor.metricHistory.read([]);
    kit.broker.monitor.metricHistory.read([]);
    assert.equal(engineOf(kit.broker).services.wheel.size, before + 1);
  });
});
