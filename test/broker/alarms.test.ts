import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, memoryStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** Records the changes of alarms as events. */
function changesOf(broker: Broker): string[] {
  const changes: string[] = [];
  broker.on('alarm.raised', ({ alarm }) => changes.push(`raised ${alarm.id}: ${alarm.severity}`));
  broker.on('alarm.cleared', ({ alarm }) => changes.push(`cleared ${alarm.id}`));
  return changes;
}

describe('broker.alarms', () => {
  it('raises and clears alarms of the app, with events and notices under $SYS', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const changes = changesOf(broker);
    const notices: unknown[] = [];
    const end = broker.subscribe('$SYS/brokers/+/alarms/+', ({ topic, payload }) =>
      notices.push([topic.split('/').at(-1), JSON.parse(payload.toString())])
    );
    broker.alarms.raise({ id: 'door', severity: 'notice', title: 'A door is open', summary: 'Close it' });
    const { raisedAt } = broker.alarms.present()[0];
    await kit.clock.advance(500);
    assert.equal(broker.alarms.clear('door'), true);
    end();
    assert.deepEqual(changes, ['raised door: notice', 'cleared door']);
    const desc = { severity: 'notice', title: 'A door is open', summary: 'Close it', timestamp: raisedAt };
    assert.deepEqual(notices, [
      ['alert', { id: 'door', desc }],
      ['clear', { id: 'door' }]
    ]);
    assert.deepEqual(
      broker.alarms.history().map(({ id, clearedAt }) => [id, clearedAt]),
      [['door', raisedAt + 500]]
    );
  });

  it('keeps maxAlarmHistory past alarms, and restores them after a restart', async () => {
    const store = memoryStore();
    {
      await using kit = await createTestBroker({ store, max_alarm_history: 2 } as object);
      for (const id of ['a', 'b', 'c']) {
        kit.broker.alarms.raise({ id });
        kit.broker.alarms.clear(id);
        await kit.clock.advance(10);
      }
      kit.broker.alarms.raise({ id: 'd' });
    }
    await using kit = await createTestBroker({ store });
    assert.deepEqual(
      kit.broker.alarms.history().map(({ id }) => id),
      ['c', 'b']
    );
    assert.deepEqual(kit.broker.alarms.present(), [], 'present alarms end with the process');
    await kit.broker.alarms.deleteHistory();
    assert.deepEqual(kit.broker.alarms.history(), []);
  });

  it('raises an alarm while maxConnections is reached, until one tenth is free', async () => {
    await using kit = await createTestBroker({ maxConnections: 20 });
    const changes = changesOf(kit.broker);
    const clients = [];
    for (let n = 0; n < 19; n++) clients.push(await kit.connect());
    assert.deepEqual(changes, []);
    clients.push(await kit.connect());
    await assert.rejects(kit.connect());
    assert.deepEqual(changes, ['raised too_many_connections: error']);
    for (const client of clients.slice(0, 2)) await client.disconnect();
    assert.equal(changes.length, 1);
    await clients[2].disconnect();
    assert.deepEqual(changes.slice(1), ['cleared too_many_connections']);
  });

  it('raises an alarm while there are many sessions (processHighWatermark and processLowWatermark)', async () => {
    await using kit = await createTestBroker({ maxSessions: 10, 'vm_mon.process_high_watermark': '80%' } as object);
    const changes = changesOf(kit.broker);
    const clients = [];
    for (let n = 0; n < 8; n++) clients.push(await kit.connect());
    assert.deepEqual(changes, ['raised too_many_processes: warning']);
    for (const client of clients.slice(0, 2)) await client.disconnect();
    assert.equal(changes.length, 1);
    await clients[2].disconnect();
    assert.deepEqual(changes.slice(1), ['cleared too_many_processes']);
  });

  it('raises an alarm while memory is short', async () => {
    let used = 50;
    await using kit = await createTestBroker({ memoryHighWatermark: 100, memoryUsage: () => used });
    kit.broker.on('error', () => {});
    const changes = changesOf(kit.broker);
    used = 100;
    await kit.clock.advance('3s');
    used = 10;
    await kit.clock.advance('3s');
    assert.deepEqual(changes, ['raised memory_high_watermark: critical', 'cleared memory_high_watermark']);
  });
});
