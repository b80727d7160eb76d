import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, createBroker } from '../../lib/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { publish } from '../support/wire.ts';
import { recover, stage } from './failing-support.ts';
import { FaultyStore } from './faulty-store.ts';

/** Records the events of the store's actor, each with the state that follows. */
function watch(broker: Broker): string[] {
  const seen: string[] = [];
  broker.inspect(({ type, actorRef, event, snapshot }) => {
    if (type === '@xstate.snapshot' && actorRef.id === 'store')
      seen.push(`${event?.type} -> ${joined(snapshot?.value)}`);
  });
  return seen;
}

function joined(value: unknown): string {
  if (typeof value === 'string') return value;
  const [[outer, inner]] = Object.entries(value as Record<string, string>);
  return `${outer}.${inner}`;
}

describe('The actor of the store', () => {
  it('goes from closed to closed through a start, a commit and a stop', async () => {
    const broker = createBroker({ store: new FaultyStore() });
    const seen = watch(broker);
    await broker.start();
    await broker.publish('state/a', 'x', { qos: 1, retain: true });
    await broker.stop();
    const [initial, open, opened, commit, committed, ...rest] = seen;
    assert.deepEqual(
      [initial, open, opened, commit, committed],
      [
        'xstate.init -> closed',
        'open -> opening',
        'opened -> open.resting',
        'commit -> open.writing',
        'committed -> open.resting'
      ]
    );
    assert.deepEqual(rest.slice(-2), ['close -> closing', 'closed -> closed']);
  });

  it('returns to closed if the store cannot be opened', async () => {
    const store = new FaultyStore();
    store.isShut = true;
    const broker = createBroker({ store });
    const seen = watch(broker);
    await assert.rejects(broker.start(), /no disk there/);
    assert.deepEqual(seen.slice(1), ['open -> opening', 'refused -> closed']);
    store.isShut = false;
    await broker.start();
    await broker.stop();
    assert.deepEqual(seen.slice(3, 5), ['open -> opening', 'opened -> open.resting']);
  });

  it('enters failed.trying for each attempt to write after a failure, and failed.waiting between them', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const seen = watch(kit.broker);
    store.fault = 'rejects';
    const writer = await rawClient(kit.broker, { clientId: 'writer' });
    writer.send(publish('kept/1', 'lost', { qos: 1, messageId: 1 }));
    await writer.next('puback');
    await kit.clock.advance('150ms');
    await recover(kit, store);
    assert.deepEqual(seen.slice(0, 6), [
      'commit -> open.writing',
      'failed -> failed.waiting',
      'reopened -> failed.trying',
      'failed -> failed.waiting',
      'reopened -> failed.trying',
      'committed -> open.resting'
    ]);
  });

  it('stays in failed.trying while the lost changes are written in parts', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    await kit.clock.advance('1s');
    const seen = watch(kit.broker);
    store.mostBytes = 16_384;
    const writer = await rawClient(kit.broker, { clientId: 'writer' });
    // a retained message of QoS 0 is not refused, so it is lost by the failure and written again
    for (let n = 1; n <= 40; n++) writer.send(publish(`state/${n}`, Buffer.alloc(1_024), { retain: true }));
    writer.send(publish('kept/1', Buffer.alloc(16_384), { qos: 1, messageId: 1 }));
    await writer.next('puback');
    await kit.clock.advance('10s');
    assert.ok(seen.includes('partCommitted -> failed.trying'), seen.join('; '));
    assert.equal(seen.at(-1), 'committed -> open.resting');
  });

  it('takes two events for a commit with any number of messages', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const seen = watch(kit.broker);
    const before = store.commits;
    const writer = await rawClient(kit.broker, { clientId: 'writer' });
    for (let id = 1; id <= 500; id++) writer.send(publish('kept/1', `${id}`, { qos: 1, messageId: id }));
    for (let id = 1; id <= 500; id++) await writer.next('puback');
    const commits = store.commits - before;
    assert.ok(commits > 0 && commits < 250, `${commits} commits`);
    assert.ok(seen.length <= 2 * (commits + 1), `${seen.length} events for ${commits} commits`);
  });
});
