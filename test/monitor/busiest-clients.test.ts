import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BusiestQuery, BusyClient } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';

/** Ask for the busiest clients, and let something happen between the two readings of the counters. */
async function measured(
  { broker, clock }: TestBroker,
  query: BusiestQuery,
  meanwhile: () => Promise<void>
): Promise<BusyClient[]> {
  const answer = broker.monitor.busiestClients.list(query);
  await clock.settle();
  await meanwhile();
  await clock.advance(1_000);
  return answer;
}

const rates = (found: readonly BusyClient[]) =>
  found.map(({ client, receivedPerSec, sentPerSec }) => [client.clientId, receivedPerSec, sentPerSec]);

describe('The busiest clients', () => {
  it('lists the clients with the most messages in a second, without earlier messages and silent clients', async () => {
    await using kit = await createTestBroker();
    const [loud, quiet, reader] = await Promise.all(
      ['loud', 'quiet', 'reader'].map((clientId) => kit.connect({ clientId }))
    );
    await reader.subscribe('a/#');
    for (let count = 0; count < 50; count++) await quiet.publish('a/quiet', 'x', { qos: 1 });
    const publish = async () => {
      await quiet.publish('a/quiet', 'x', { qos: 1 });
      for (let count = 0; count < 20; count++) await loud.publish('a/loud', 'x', { qos: count % 2 === 0 ? 0 : 1 });
      await kit.clock.settle();
    };
    assert.deepEqual(rates(await measured(kit, {}, publish)), [
      ['loud', 20, 0],
      ['quiet', 1, 0]
    ]);
    assert.deepEqual(rates(await measured(kit, { by: 'sent' }, publish)), [['reader', 0, 21]]);
    assert.deepEqual(rates(await measured(kit, { limit: 1 }, publish)), [['loud', 20, 0]]);
    assert.deepEqual(rates(await measured(kit, { clientIdContains: 'qui' }, publish)), [['quiet', 1, 0]]);
    assert.deepEqual(rates(await measured(kit, {}, async () => {})), []);
  });

  it('includes clients that connect during the second, with the messages of the new connection only', async () => {
    await using kit = await createTestBroker();
    const before = await kit.connect({ clientId: 'again' });
    for (let count = 0; count < 30; count++) await before.publish('a', 'x', { qos: 1 });
    const found = await measured(kit, {}, async () => {
      await before.disconnect();
      for (const clientId of ['again', 'new']) {
        const client = await kit.connect({ clientId });
        for (let count = 0; count < 5; count++) await client.publish('a', 'x', { qos: 1 });
      }
    });
    assert.deepEqual(new Set(rates(found).map(String)), new Set(['again,5,0', 'new,5,0']));
  });

  it('answers questions that come at the same time, each under its own conditions', async () => {
    await using kit = await createTestBroker();
    const [one, two] = await Promise.all(['one', 'two'].map((clientId) => kit.connect({ clientId })));
    const second = kit.broker.monitor.busiestClients.list({ clientId: 'two' });
    const first = await measured(kit, { limit: 1 }, async () => {
      for (let count = 0; count < 3; count++) await one.publish('a', 'x', { qos: 1 });
      await two.publish('a', 'x', { qos: 1 });
    });
    assert.deepEqual([rates(first), rates(await second)], [[['one', 3, 0]], [['two', 1, 0]]]);
  });

  it('lists as many clients as were asked for, out of more sessions than are examined in a turn', async () => {
    await using kit = await createTestBroker();
    const ids = Array.from({ length: 1_100 }, (_, at) => `c${at}`);
    const clients = await Promise.all(ids.map((clientId) => kit.connect({ clientId })));
    const found = await measured(kit, { limit: 3 }, async () => {
      for (const [times, at] of [
        [2, 3],
        [3, 700],
        [4, 1_099],
        [1, 501]
      ])
        for (let count = 0; count < times; count++) await clients[at].publish('a', 'x', { qos: 1 });
    });
    assert.deepEqual(rates(found), [
      ['c1099', 4, 0],
      ['c700', 3, 0],
      ['c3', 2, 0]
    ]);
  });

  it('refuses unknown options and values that are not valid', async () => {
    await using kit = await createTestBroker();
    const { busiestClients } = kit.broker.monitor;
    for (const [query, code] of [
      [{ limit: 0 }, 'OPTION_INVALID'],
      [{ limit: 1_001 }, 'OPTION_INVALID'],
      [{ by: 'both' }, 'OPTION_INVALID'],
      [{ cursor: '1' }, 'OPTION_UNKNOWN'],
      [{ clientID: 'a' }, 'OPTION_UNKNOWN']
    ] as const)
      await assert.rejects(busiestClients.list(query as never), { code });
  });
});
