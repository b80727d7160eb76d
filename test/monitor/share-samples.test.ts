import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TimeReading } from '../../lib/base/time-reading.ts';
import { type Broker, engineOf } from '../../lib/broker/broker.ts';
import { ShareSamples } from '../../lib/monitor/reasons/share-samples.ts';
import { Message } from '../../lib/packets/message.ts';
import type { Group } from '../../lib/routing/route.ts';
import { type Subscriber, Subscription } from '../../lib/routing/subscription.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, startBroker } from '../support/wire.ts';

/** The examples of the group of a member. */
function examplesOf(broker: Broker, clientId: string) {
  const { sessions, routing, publishing } = engineOf(broker);
  const [subscription] = sessions.get(clientId)?.subscriptions.values() ?? [];
  const group = subscription && routing.groupOf(subscription);
  return group === undefined ? [] : publishing.shareSamples.of(group);
}

describe('The examples of a share group', () => {
  it('names the member that received a message, at most one in 100 ms, and the last five', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, sharedSubscriptionStrategy: 'round_robin' });
    for (const clientId of ['one', 'two']) {
      const client = await rawClient(broker, { clientId });
      await granted(client, 1, '$share/g/a/#');
    }
    for (let at = 0; at < 3; at++) await broker.publish(`a/${at}`, 'x');
    const [first, ...rest] = examplesOf(broker, 'one');
    assert.deepEqual(rest, []);
    assert.deepEqual(first, { at: clock.now(), topic: 'a/0', publisher: '', member: 'one' });
    for (let at = 3; at < 10; at++) {
      await clock.advance(100);
      await broker.publish(`a/${at}`, 'x');
    }
    assert.deepEqual(
      examplesOf(broker, 'two').map(({ topic, member }) => `${topic} ${member}`),
      ['a/9 two', 'a/8 one', 'a/7 two', 'a/6 one', 'a/5 two']
    );
  });

  it('limits the memory of examples: those of the group that was quiet for longest are removed', () => {
    const clock = new ManualClock();
    const samples = new ShareSamples(new TimeReading(clock), true, 10_000);
    const subscription = new Subscription(
      { receiver: { clientId: 'm'.repeat(1_000), mountpoint: '', isSuperuser: false } } as unknown as Subscriber,
      'f',
      0,
      false,
      false,
      0,
      undefined
    );
    const groups = Array.from({ length: 100 }, () => ({ sampledAfterMs: 0, sampled() {} }) as unknown as Group);
    const message = Message.from({ topic: 't'.repeat(1_000), payload: '' }, undefined, 0, 0);
    for (const group of groups) samples.add(group, message, subscription);
    const kept = groups.filter((group) => samples.of(group).length > 0);
    assert.deepEqual(kept, groups.slice(-kept.length));
    assert.equal(kept.length, 12);
    assert.equal(samples.of(kept[0])[0].member.length, 256);
  });

  it('counts the filter of a group, which examples keep in memory after the group has ended', () => {
    const samples = new ShareSamples(new TimeReading(new ManualClock()), true, 200_000);
    const filter = `$share/g/${'f'.repeat(60_000)}`;
    const subscriber = { receiver: undefined } as unknown as Subscriber;
    const subscription = new Subscription(subscriber, filter, 0, false, false, 0, undefined);
    const message = Message.from({ topic: 't', payload: '' }, undefined, 0, 0);
    const groups = Array.from({ length: 100 }, () => ({ sampledAfterMs: 0, sampled() {} }) as unknown as Group);
    for (const group of groups) for (let count = 0; count < 2; count++) samples.add(group, message, subscription);
    const kept = groups.filter((group) => samples.of(group).length > 0);
    assert.deepEqual(kept, groups.slice(-3));
  });
});
