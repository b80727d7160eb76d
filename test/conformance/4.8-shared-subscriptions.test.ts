import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import {
  granted,
  nothing,
  payloads,
  refused,
  rest,
  startBroker,
  subscribe,
  turns,
  unsubscribe
} from '../support/wire.ts';

const properties = { sessionExpiryInterval: 60 };

/** Connects two members of one group; `first` receives the next message. */
async function pair(broker: Broker, qos: 0 | 1 | 2): Promise<[first: RawClient, second: RawClient]> {
  const members: RawClient[] = [];
  for (const clientId of ['one', 'two']) {
    const member = await rawClient(broker, { clientId, properties });
    await granted(member, 1, { topic: '$share/g/a', qos });
    members.push(member);
  }
  return members as [RawClient, RawClient];
}

describe('Shared subscriptions', () => {
  it('[MQTT-4.8.2-1] [MQTT-4.8.2-2] closes with 0x82 if the share name is empty or contains a wildcard, or no filter follows', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    const bad = [
      '$share//a',
      '$share/',
      '$share/g',
      '$share/g/',
      '$share/+/a',
      '$share/#/a',
      '$share/g+/a',
      '$share/g#/a'
    ];
    for (const filter of bad) {
      for (const request of [subscribe(1, ['fine', filter]), unsubscribe(1, 'fine', filter)]) {
        const wrong = await rawClient(broker);
        wrong.send(request);
        await refused(wrong, 0x82);
      }
    }
    // Each of these is well-formed, but this broker does not accept nested group prefixes.
    assert.deepEqual(await granted(client, 1, ['$share/g/$share/h/a', '$queue/$share/g/a']), [0x8f, 0x8f]);
    await nothing(client);
    const good = ['$share/g/a', '$share/g//', '$share/ /a', '$share/é/a', '$share/$g/a', '$share/g/$own/a'];
    assert.deepEqual(
      await granted(client, 2, good),
      good.map(() => 0)
    );
  });

  it('[MQTT-4.8.2-1] refuses the same filters in SUBACK before MQTT 5.0, where $share has no meaning', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { version: 4 });
    assert.deepEqual(await granted(client, 1, ['$share//a', '$share/g', '$share/g/', '$share/+/a', 'a']), [
      ...new Array(4).fill(0x80),
      0
    ]);
  });

  it('[MQTT-4.8.2-2] treats "$share" without a slash as an ordinary filter', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    assert.deepEqual(await granted(client, 1, ['$share', '$shared/g/a', '$queue']), [0, 0, 0]);
    await broker.publish('$shared/g/a', 'x');
    assert.deepEqual(await payloads(client), ['x']);
  });

  it('[MQTT-4.8.2-3] delivers to the chosen client at no more than its granted QoS', async () => {
    await using broker = await startBroker({ sharedSubscriptionStrategy: 'round_robin' });
    const members: RawClient[] = [];
    for (const qos of [0, 1, 2] as const) {
      const member = await rawClient(broker);
      await granted(member, 1, { topic: '$share/g/a', qos });
      members.push(member);
    }
    for (let at = 0; at < 3; at++) await broker.publish('a', 'x', { qos: 2 });
    for (const [qos, member] of members.entries()) assert.equal((await member.next('publish')).qos, qos);
    for (let at = 0; at < 3; at++) await broker.publish('a', 'x', { qos: 1 });
    assert.deepEqual(
      (await Promise.all(members.map((member) => member.next('publish')))).map(({ qos }) => qos),
      [0, 1, 1]
    );
  });

  it('[MQTT-4.8.2-4] completes a QoS 2 message with the same client when it reconnects', async () => {
    await using broker = await startBroker({ sharedSubscriptionStrategy: 'round_robin' });
    const [one, two] = await pair(broker, 2);
    await broker.publish('a', 'x', { qos: 2 });
    const { messageId } = await one.next('publish');
    one.stream.destroy();
    await turns();
    await nothing(two);
    const again = await rawClient(broker, { clientId: 'one', clean: false, properties });
    const copy = await again.next('publish');
    assert.deepEqual([copy.messageId, copy.dup, String(copy.payload)], [messageId, true, 'x']);
    again.send({ cmd: 'pubrec', messageId: messageId as number, reasonCode: 0 });
    assert.equal((await again.next('pubrel')).messageId, messageId);
    again.send({ cmd: 'pubcomp', messageId: messageId as number, reasonCode: 0 });
    await nothing(again);
    await nothing(two);
  });

  it('[MQTT-4.8.2-5] delivers a QoS 2 message to no other client if its client never reconnects', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, sharedSubscriptionStrategy: 'round_robin' });
    const [one, two] = await pair(broker, 2);
    await broker.publish('a', 'x', { qos: 2 });
    await one.next('publish');
    one.stream.destroy();
    await clock.advance('60s');
    assert.equal(broker.sessions.has('one'), false);
    await nothing(two);
  });

  it('[MQTT-4.8.2-6] drops a message that PUBACK or PUBREC refuses with 0x80 or above, and delivers it to no other client', async () => {
    await using broker = await startBroker({ sharedSubscriptionStrategy: 'round_robin' });
    const [one, two] = await pair(broker, 2);
    await broker.publish('a', 'x', { qos: 1 });
    const first = await one.next('publish');
    one.send({ cmd: 'puback', messageId: first.messageId as number, reasonCode: 0x80 });
    await nothing(one);
    await nothing(two);
    await broker.publish('a', 'y', { qos: 2 });
    const second = await two.next('publish');
    two.send({ cmd: 'pubrec', messageId: second.messageId as number, reasonCode: 0x97 });
    await nothing(one);
    await nothing(two);
    two.stream.destroy();
    const again = await rawClient(broker, { clientId: 'two', clean: false, properties });
    assert.deepEqual(await rest(again), []);
  });

  it('[MQTT-3.3.4-4] sends one copy for each of a shared and an ordinary subscription', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, '$share/g/a', { subscriptionIdentifier: [1] });
    await granted(client, 2, 'a', { subscriptionIdentifier: [2] });
    await broker.publish('a', 'x');
    const ids = [await client.next('publish'), await client.next('publish')].map(
      (copy) => copy.properties?.subscriptionIdentifier
    );
    assert.deepEqual(ids.flat().sort(), [1, 2]);
    await nothing(client);
  });

  it('[MQTT-3.3.1-9] sends no retained message to a new shared subscription', async () => {
    await using broker = await startBroker();
    await broker.publish('a', 'kept', { retain: true });
    const client = await rawClient(broker);
    for (const topic of ['$share/g/a', '$share/g/#', '$queue/a'])
      await granted(client, 1, { topic, retainHandling: 0 });
    await nothing(client);
  });
});
