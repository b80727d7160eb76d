import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker, memoryStore } from '../../lib/index.ts';
import { FAULTS, recover, retained, stage } from '../store/failing-support.ts';

const QUIET = { sysInterval: 0, sysHeartbeat: 0 };

describe('The deletion of retained messages', () => {
  it('publishes nothing, and calls no hook', async () => {
    await using broker = await createBroker(QUIET).start();
    await broker.publish('a', 'x', { retain: true });
    const seen: string[] = [];
    broker.subscribe('#', ({ topic, payload }) => seen.push(`${topic} ${payload}`));
    broker.hook('publish', ({ message }) => void seen.push(`hook ${message.topic}`));
    assert.equal(await broker.retained.delete('a'), true);
    assert.equal(await broker.retained.delete('a'), false);
    assert.deepEqual([seen.filter((line) => line !== 'a x'), broker.retained.get('a')], [[], undefined]);
    await assert.rejects(broker.retained.delete('a/+'), { code: 'TOPIC_NAME_INVALID' });
    await assert.rejects(broker.retained.deleteMatching('a/#/b'), { code: 'TOPIC_FILTER_INVALID' });
  });

  it('deletes the messages that match a filter, and keeps those that are retained in the meantime', async () => {
    await using broker = await createBroker(QUIET).start();
    for (let n = 0; n < 5_000; n++) await broker.publish(`a/${n}`, 'x', { retain: true });
    await broker.publish('b', 'x', { retain: true });
    const deletion = broker.retained.deleteMatching('a/#');
    assert.ok(broker.retained.count > 1, 'it takes several turns');
    await broker.publish('a/new', 'x', { retain: true });
    assert.equal(await deletion, 5_000);
    assert.deepEqual(
      (await broker.retained.list({ filter: '#' })).entries.map(({ topic }) => topic),
      ['a/new', 'b']
    );
  });

  it('resolves its promise when the deletion is persisted', async () => {
    const store = memoryStore();
    const broker = await createBroker({ ...QUIET, store }).start();
    for (const topic of ['a/1', 'a/2', 'b', 'c']) await broker.publish(topic, 'x', { retain: true });
    assert.equal(await broker.retained.delete('b'), true);
    assert.equal(await broker.retained.deleteMatching('a/+'), 2);
    await broker.stop();
    await using again = await createBroker({ ...QUIET, store }).start();
    assert.deepEqual(
      (await again.retained.list()).entries.map(({ topic }) => topic),
      ['c']
    );
  });

  for (const fault of FAULTS)
    it(`undoes the deletion when its commit ${fault}`, async () => {
      const { kit, store } = await stage();
      await using _ = kit;
      for (const topic of ['state/a', 'state/b']) await kit.broker.publish(topic, 'x', { retain: true });
      store.fault = fault;
      await assert.rejects(kit.broker.retained.delete('state/a'), { code: 'STORE_FAILED' });
      await assert.rejects(kit.broker.retained.deleteMatching('state/#'), { code: 'STORE_FAILED' });
      assert.deepEqual(await retained(kit.broker), ['a: x', 'b: x']);
      await recover(kit, store);
      assert.deepEqual(await retained(kit.broker), ['a: x', 'b: x']);
    });
});
