import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import { acl } from '../../lib/index.ts';
import type { SharedStrategy } from '../../lib/routing/share-group.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, nothing, payloads, publish, rest, startBroker, turns, unsubscribe } from '../support/wire.ts';

const properties = { sessionExpiryInterval: 60 };

/** Connects the members of a group, subscribed in order. */
async function members(broker: Broker, count: number, topic = '$share/g/a', qos: 0 | 1 | 2 = 0): Promise<RawClient[]> {
  const clients: RawClient[] = [];
  for (let at = 0; at < count; at++) {
    const client = await rawClient(broker, { clientId: `m${at}`, properties: { ...properties, receiveMaximum: 1 } });
    await granted(client, 1, { topic, qos });
    clients.push(client);
  }
  return clients;
}

/** Returns what each member has received since the last call. */
async function shares(clients: readonly RawClient[]): Promise<string[][]> {
  const all: string[][] = [];
  for (const client of clients) all.push(await payloads(client));
  return all;
}

async function send(publisher: RawClient, count: number, topic = 'a'): Promise<void> {
  for (let at = 0; at < count; at++) publisher.send(publish(topic, String(at)));
  await nothing(publisher);
}

describe('A share group', () => {
  it('delivers each message to one member with every strategy, including runs of QoS 0', async () => {
    for (const sharedSubscriptionStrategy of ['random', 'round_robin', 'sticky', 'hash'] as SharedStrategy[]) {
      await using broker = await startBroker({ sharedSubscriptionStrategy });
      const clients = await members(broker, 3);
      const publisher = await rawClient(broker);
      await send(publisher, 60);
      const got = await shares(clients);
      const seen = got
        .flat()
        .map(Number)
        .sort((a, b) => a - b);
      assert.deepEqual(
        seen,
        Array.from({ length: 60 }, (_, at) => at),
        sharedSubscriptionStrategy
      );
      const used = got.filter(({ length }) => length > 0).length;
      if (sharedSubscriptionStrategy === 'sticky' || sharedSubscriptionStrategy === 'hash') assert.equal(used, 1);
      else assert.equal(used, 3); // random leaves out a member once in 10^10 runs
    }
  });

  it('delivers a message that is too large for the chosen member to another member, with every strategy', async () => {
    for (const sharedSubscriptionStrategy of ['random', 'round_robin', 'sticky', 'hash'] as SharedStrategy[]) {
      await using broker = await startBroker({ sharedSubscriptionStrategy });
      const small: RawClient[] = [];
      for (const version of [0, 1, 2]) {
        const member = await rawClient(broker, { clientId: `s${version}`, properties: { maximumPacketSize: 100 } });
        await granted(member, 1, { topic: '$share/g/a', qos: 1 });
        small.push(member);
      }
      const large = await rawClient(broker, { clientId: 'large' });
      await granted(large, 1, { topic: '$share/g/a', qos: 1 });
      for (const qos of [0, 1] as const) await broker.publish('a', 'x'.repeat(200), { qos });
      assert.deepEqual(
        (await payloads(large)).map(({ length }) => length),
        [200, 200],
        sharedSubscriptionStrategy
      );
      // 93 bytes of payload are a packet of 101 bytes at QoS 1, and of 99 bytes at QoS 0, with the property length and the packet id.
      for (let at = 0; at < 8; at++) await broker.publish('a', 'y'.repeat(93), { qos: 1 });
      assert.equal((await payloads(large)).length, 8, sharedSubscriptionStrategy);
      assert.deepEqual((await shares(small)).flat(), []);
      for (let at = 0; at < 30; at++) await broker.publish('a', 'y'.repeat(92), { qos: 1 });
      const counts = [...(await shares(small)).flat(), ...(await payloads(large))];
      assert.equal(counts.length, 30, sharedSubscriptionStrategy);
    }
  });

  it('delivers a message that is near the limit of each member to one that accepts it', async () => {
    for (const sharedSubscriptionStrategy of ['random', 'round_robin', 'sticky', 'hash'] as SharedStrategy[]) {
      await using broker = await startBroker({ sharedSubscriptionStrategy });
      const members: RawClient[] = [];
      for (const maximumPacketSize of [100, 110, 100, 110]) {
        const member = await rawClient(broker, { clientId: `m${members.length}`, properties: { maximumPacketSize } });
        await granted(member, 1, { topic: '$share/g/a', qos: 1 });
        members.push(member);
      }
      for (let at = 0; at < 20; at++) await broker.publish('a', 'x'.repeat(97), { qos: 1 }); // packets of 105 bytes
      const [a, b, c, d] = (await shares(members)).map(({ length }) => length);
      assert.deepEqual([a, c, b + d], [0, 0, 20], sharedSubscriptionStrategy);
    }
  });

  it('drops a message that is too large for every member once, and reports it', async () => {
    await using broker = await startBroker();
    const reasons: string[] = [];
    broker.on('message.dropped', ({ reason }) => reasons.push(reason));
    for (const clientId of ['one', 'two']) {
      const member = await rawClient(broker, { clientId, properties: { maximumPacketSize: 100 } });
      await granted(member, 1, { topic: '$share/g/a', qos: 1 });
    }
    await broker.publish('a', 'x'.repeat(200), { qos: 1 });
    await turns();
    assert.deepEqual(reasons, ['too_large']);
  });

  it('drops a message that no member may receive, counts and reports it, and delivers it to other subscribers', async () => {
    await using broker = await startBroker({
      auth: [acl([{ access: 'deny', topic: 'a/secret', action: 'subscribe', clientId: 'm0' }, { access: 'allow' }])],
      allowAnonymous: true
    });
    const dropped: string[] = [];
    broker.on('message.dropped', ({ message, reason, client }) =>
      dropped.push(`${message.topic} ${reason} ${client?.clientId}`)
    );
    await members(broker, 1, '$share/g/a/#');
    const publisher = await rawClient(broker, { clientId: 'p' });
    await send(publisher, 3, 'a/secret'); // a run of QoS 0 frames
    await broker.publish('a/secret', 'x', { qos: 1 });
    await broker.publish('a/open', 'x', { qos: 1 });
    assert.deepEqual(dropped, Array(4).fill('a/secret no_share_member undefined'));
    assert.equal(broker.metrics.counter('delivery.dropped.no_share_member'), 4);
    assert.equal(broker.metrics.counter('delivery.dropped'), 4);
    assert.equal(broker.metrics.counter('messages.dropped'), 0);
    const other = await rawClient(broker);
    await granted(other, 1, 'a/secret');
    await send(publisher, 1, 'a/secret');
    assert.equal((await payloads(other)).length, 1);
    assert.equal(dropped.length, 5, 'another subscriber got it, the group did not');
    const { entries } = broker.monitor.drops.list();
    assert.deepEqual(entries.map(({ topic, reason, clientId }) => [topic, reason, clientId]).slice(0, 1), [
      ['a/secret', 'no_share_member', undefined]
    ]);
  });

  it('takes turns for each publisher with round_robin', async () => {
    await using broker = await startBroker({ sharedSubscriptionStrategy: 'round_robin' });
    const clients = await members(broker, 3);
    for (const publisher of [await rawClient(broker), await rawClient(broker)]) {
      await send(publisher, 6);
      assert.deepEqual(await shares(clients), [
        ['0', '3'],
        ['1', '4'],
        ['2', '5']
      ]);
    }
  });

  it("keeps to one member with hash of the publisher's client id, across reconnects", async () => {
    await using broker = await startBroker({ sharedSubscriptionStrategy: 'hash' });
    const clients = await members(broker, 4);
    const chosen = async (clientId: string) => {
      await send(await rawClient(broker, { clientId }), 3);
      return (await shares(clients)).findIndex(({ length }) => length === 3);
    };
    const places = new Set<number>();
    for (let at = 0; at < 20; at++) {
      const place = await chosen(`p${at}`);
      assert.equal(await chosen(`p${at}`), place);
      places.add(place);
    }
    assert.ok(places.size > 1);
  });

  it('keeps to one member with sticky until that member leaves', async () => {
    await using broker = await startBroker({ sharedSubscriptionStrategy: 'sticky' });
    const clients = await members(broker, 3);
    const publisher = await rawClient(broker);
    await send(publisher, 5);
    const first = (await shares(clients)).findIndex(({ length }) => length === 5);
    clients[first].send(unsubscribe(2, '$share/g/a'));
    await clients[first].next('unsuback');
    await send(publisher, 5);
    const got = await shares(clients);
    assert.equal(got[first].length, 0);
    assert.deepEqual(got.map(({ length }) => length).sort(), [0, 0, 5]);
  });

  it('separates share names and filters, and delivers separate copies to ordinary subscriptions', async () => {
    await using broker = await startBroker();
    const one = await rawClient(broker);
    const other = await rawClient(broker);
    const queue = await rawClient(broker);
    const plain = await rawClient(broker);
    await granted(one, 1, '$share/g/a');
    await granted(other, 1, ['$share/h/a', '$share/g/+']);
    await granted(queue, 1, ['$queue/a', '$share/$queue/a']);
    await granted(plain, 1, 'a');
    await broker.publish('a', 'x');
    assert.deepEqual(
      (await shares([one, other, queue, plain])).map(({ length }) => length),
      [1, 2, 1, 1]
    );
  });

  it('separates mount points, so that no member receives messages of another tenant', async () => {
    await using broker = await startBroker({
      sharedSubscriptionStrategy: 'round_robin',
      zones: { tenant: { mountpoint: 't/' } }
    });
    const meta = { zone: 'tenant' };
    const tenant = await rawClient(broker, { clientId: 'tenant', properties, meta });
    await granted(tenant, 1, '$share/g/#');
    await broker.publish('t/$x', 'before');
    const worker = await rawClient(broker);
    await granted(worker, 1, '$share/g/t/#');
    for (const topic of ['t/$x', 't/$x', 't/a', 't/a']) await broker.publish(topic, topic);
    assert.deepEqual(await payloads(tenant), ['t/a', 't/a'], 'a leading wildcard does not match "$" [MQTT-4.7.2-1]');
    assert.deepEqual(await payloads(worker), ['t/$x', 't/$x', 't/a', 't/a']);
    assert.equal(broker.metrics.gauge('subscriptions.shared'), 2);
    worker.stream.destroy();
    const elsewhere = await rawClient(broker, { clientId: 'tenant', clean: false, properties });
    elsewhere.send(unsubscribe(1, '$share/g/t/#'));
    await elsewhere.next('unsuback');
    assert.deepEqual((await broker.directory.routes()).entries, [], 'the member has left the group');
  });

  it('accepts handlers of the app as members', async () => {
    await using broker = await startBroker({ sharedSubscriptionStrategy: 'round_robin' });
    const [client] = await members(broker, 1);
    const seen: string[] = [];
    const end = broker.subscribe('$share/g/a', ({ payload }) => seen.push(String(payload)));
    for (const payload of ['0', '1', '2', '3']) await broker.publish('a', payload);
    assert.deepEqual(
      [await payloads(client), seen],
      [
        ['0', '2'],
        ['1', '3']
      ]
    );
    end();
    await broker.publish('a', '4');
    assert.deepEqual(await payloads(client), ['4']);
  });

  it('prefers online members', async () => {
    for (const sharedSubscriptionStrategy of ['random', 'round_robin', 'sticky', 'hash'] as SharedStrategy[]) {
      await using broker = await startBroker({ sharedSubscriptionStrategy });
      const clients = await members(broker, 3, '$share/g/a', 1);
      clients[0].stream.destroy();
      clients[2].stream.destroy();
      await turns();
      await send(await rawClient(broker), 6);
      assert.equal((await payloads(clients[1])).length, 6, sharedSubscriptionStrategy);
    }
  });

  it('queues the message for one member when all are offline', async () => {
    for (const sharedSubscriptionStrategy of ['random', 'round_robin', 'sticky', 'hash'] as SharedStrategy[]) {
      await using broker = await startBroker({ sharedSubscriptionStrategy });
      const clients = await members(broker, 3, '$share/g/a', 1);
      for (const { stream } of clients) stream.destroy();
      await turns();
      await broker.publish('a', 'kept', { qos: 1 });
      const got: string[] = [];
      for (let at = 0; at < 3; at++) {
        const again = await rawClient(broker, { clientId: `m${at}`, clean: false, properties });
        for (const packet of await rest(again)) {
          if (packet.cmd === 'publish') got.push(String(packet.payload));
        }
      }
      assert.deepEqual(got, ['kept'], sharedSubscriptionStrategy);
    }
  });

  it('skips members whose window is full with acknowledged dispatch, if another can accept the message', async () => {
    const spread = async (sharedDispatchAckEnabled: boolean) => {
      await using broker = await startBroker({ sharedSubscriptionStrategy: 'sticky', sharedDispatchAckEnabled });
      const clients = await members(broker, 3, '$share/g/a', 1); // a window of one message each
      const publisher = await rawClient(broker);
      for (let at = 0; at < 3; at++) {
        publisher.send(publish('a', String(at), { qos: 1, messageId: at + 1 }));
        await publisher.next('puback');
      }
      return (await shares(clients)).map(({ length }) => length).sort();
    };
    assert.deepEqual(await spread(true), [1, 1, 1]);
    assert.deepEqual(await spread(false), [0, 0, 1]); // two messages wait for the PUBACK of the first one
  });

  it('loses a member when its session ends', async () => {
    await using broker = await startBroker({ sharedSubscriptionStrategy: 'round_robin' });
    const clients = await members(broker, 2);
    broker.sessions.get('m0').kick();
    await clients[0].closed();
    await send(await rawClient(broker), 4);
    assert.equal((await payloads(clients[1])).length, 4);
    assert.equal(broker.metrics.gauge('subscriptions.shared'), 1);
  });

  it('sends no retained message to a new member', async () => {
    await using broker = await startBroker();
    await broker.publish('a', 'kept', { retain: true });
    const client = await rawClient(broker);
    await granted(client, 1, ['$share/g/a', '$queue/a', '$share/g/#']);
    await nothing(client);
    const seen: string[] = [];
    broker.subscribe('$share/g/a', ({ topic }) => seen.push(topic));
    assert.deepEqual(seen, []);
  });

  it("forwards RETAIN and the publisher's properties like any subscription", async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, { topic: '$share/g/a', qos: 1, retainAsPublished: true }, { subscriptionIdentifier: [4] });
    await broker.publish('a', 'x', { qos: 2, retain: true, properties: { contentType: 't' } });
    const copy = await client.next('publish');
    assert.deepEqual(
      [copy.qos, copy.retain, copy.properties],
      [1, true, { contentType: 't', subscriptionIdentifier: [4] }]
    );
  });
});
