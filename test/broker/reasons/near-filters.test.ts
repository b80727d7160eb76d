import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, engineOf } from '../../../lib/broker/broker.ts';
import { nearFilters, nearFiltersOf } from '../../../lib/broker/reasons/near-filters.ts';
import { rawClient } from '../../support/raw-client.ts';
import { granted, startBroker } from '../../support/wire.ts';

/** The causes in the filters of a client, or of all clients, as `code filter`. */
function causesOf(broker: Broker, topic: string, clientId?: string, publisherMount = ''): string[] {
  const { sessions, routing } = engineOf(broker);
  const question = { topic, publisherMount, now: 0 };
  const session = clientId === undefined ? undefined : sessions.get(clientId);
  const { causes } =
    session === undefined ? nearFilters(question, routing) : nearFiltersOf(question, session.subscriptions.values());
  return causes.map(({ code, evidence }) => `${code} ${evidence.filter}`);
}

async function subscribed(broker: Broker, clientId: string, ...filters: string[]): Promise<void> {
  const client = await rawClient(broker, { clientId, meta: { listener: clientId } });
  assert.equal((await granted(client, 1, filters)).length, filters.length);
}

describe('Filters that nearly match', () => {
  const cases: [filter: string, topic: string, cause: string][] = [
    ['Site/Temp', 'site/temp', 'filter_case Site/Temp'],
    ['/site/temp', 'site/temp', 'filter_slash /site/temp'],
    ['site/+', 'site/a/temp', 'filter_levels site/+'],
    ['#', '$SYS/x', 'filter_system #'],
    ['$share/g/Site/Temp', 'site/temp', 'filter_case Site/Temp']
  ];
  for (const [filter, topic, cause] of cases) {
    it(`explains why ${filter} gets nothing of ${topic}`, async () => {
      await using broker = await startBroker();
      await subscribed(broker, 'c', filter, 'other/topic');
      assert.deepEqual(causesOf(broker, topic, 'c'), [cause]);
      assert.deepEqual(causesOf(broker, topic), [cause]);
    });
  }

  it('finds nothing if one of them matches the topic', async () => {
    await using broker = await startBroker();
    await subscribed(broker, 'c', 'Site/Temp', 'site/#');
    assert.deepEqual(causesOf(broker, 'site/temp', 'c'), []);
    assert.deepEqual(causesOf(broker, 'site/temp'), ['filter_case Site/Temp']); // another client may ask
  });

  it('compares within the mount point of the client, which explains a topic outside of it', async () => {
    await using broker = await startBroker({ zones: { inner: { mountpoint: 'tenant/' } } });
    const client = await rawClient(broker, { clientId: 'c', meta: { zone: 'inner' } as never });
    await granted(client, 1, ['a/b', '+/state']);
    const session = engineOf(broker).sessions.get('c');
    assert.equal(session?.client.mountpoint, 'tenant/');
    assert.deepEqual(causesOf(broker, 'a/b', 'c'), ['mount_point a/b']);
    assert.deepEqual(causesOf(broker, 'a/b'), ['mount_point a/b']);
    assert.deepEqual(causesOf(broker, 'tenant/a/b/', 'c'), ['filter_slash a/b']);
    assert.deepEqual(causesOf(broker, 'tenant/$x/state', 'c'), ['filter_system +/state']);
  });

  it('explains a topic that a publisher with a mount point cannot reach', async () => {
    await using broker = await startBroker();
    await subscribed(broker, 'c', 'a/b');
    assert.deepEqual(causesOf(broker, 'tenant/a/b', 'c', 'tenant/'), ['mount_point a/b']);
    assert.deepEqual(causesOf(broker, 'tenant/a/b', 'c'), ['filter_levels a/b']);
  });
});
