import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CounterName } from '../../lib/events/metrics.ts';
import { createBroker } from '../../lib/index.ts';
import type { Packet } from '../../lib/packets/types.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, nothing, publish, refused, startBroker } from '../support/wire.ts';

describe('The gauges of a broker', () => {
  it('counts connections, sessions, subscribers and subscriptions, and keeps their maxima', async () => {
    await using broker = createBroker();
    await broker.start();
    const passing = await broker.connect({ clientId: 'passing' });
    const staying = await broker.connect({ clientId: 'staying', sessionExpiry: 60 });
    await passing.subscribe(['a', 'b', '$share/g/c']);
    await staying.subscribe(['a']);
    // in addition to the three of `$SYS`
    await staying.publish('r', 'x', { qos: 1, retain: true });
    const stats = () => {
      const all = broker.metrics.gauges();
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
    broker.sessions.get('staying').discard();
    assert.equal(
      stats(),
      'connections 0/2, sessions 0/2, sessions.persistent 0/1, subscribers 0/2, subscriptions 0/4, subscriptions.shared 0/1, routes 0/3, retained 4/4'
    );
  });
});

describe('The counters of acknowledgements', () => {
  const ack = (cmd: 'puback' | 'pubrec' | 'pubcomp', messageId: number) =>
    ({ cmd, messageId, reasonCode: 0 }) as unknown as Packet;

  it('distinguishes a packet id that is not in flight (missed) from one that waits for another packet (inuse)', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, [{ topic: '#', qos: 2 }]);
    const counts = () =>
      (['puback', 'pubrec', 'pubcomp'] as const).map((cmd) => {
        const [missed, inuse] = (['missed', 'inuse'] as const).map((what) =>
          broker.metrics.counter(`packets.${cmd}.${what}`)
        );
        return `${cmd} ${missed} ${inuse}`;
      });
    await broker.publish('a', 'one', { qos: 1 });
    await broker.publish('a', 'two', { qos: 2 });
    const [one, two] = [(await client.next('publish')).messageId!, (await client.next('publish')).messageId!];
    for (const cmd of ['puback', 'pubrec', 'pubcomp'] as const) client.send(ack(cmd, 99));
    assert.equal((await client.next('pubrel')).reasonCode, 0x92);
    await nothing(client);
    assert.deepEqual(counts(), ['puback 1 0', 'pubrec 1 0', 'pubcomp 1 0']);
    for (const [cmd, qos] of [
      ['puback', 2],
      ['pubrec', 1],
      ['pubcomp', 1],
      ['pubcomp', 2]
    ] as const) {
      const wrong = await rawClient(broker);
      await granted(wrong, 1, [{ topic: 'b', qos: 2 }]);
      await broker.publish('b', 'x', { qos });
      wrong.send(ack(cmd, (await wrong.next('publish')).messageId!));
      await refused(wrong, 0x82);
      assert.ok((await client.next('publish')).messageId! > two);
    }
    assert.deepEqual(counts(), ['puback 1 1', 'pubrec 1 1', 'pubcomp 1 2']);
    client.send(ack('pubrec', two));
    client.send(ack('pubrec', two));
    for (let count = 0; count < 2; count++) assert.equal((await client.next('pubrel')).reasonCode, 0);
    client.send(ack('puback', one));
    client.send(ack('pubcomp', two));
    await nothing(client);
    assert.deepEqual(counts(), ['puback 1 1', 'pubrec 1 2', 'pubcomp 1 2']);
    assert.equal([...broker.sessions][0].counters().inflight, 4);
  });
});

describe('The counters of messages that were not published', () => {
  it('distinguishes errors from missing permissions', async () => {
    await using broker = await startBroker({
      payloadFormatCheck: true,
      delayedPublish: false,
      maxPacketSize: 100,
      hooks: {
        authorizePublish: ({ message }) =>
          message.topic === 'secret' ? false : ({ allow: message.topic !== 'full', reasonCode: 0x97 } as never)
      }
    });
    const counts = () => [
      broker.metrics.counter('packets.publish.error'),
      broker.metrics.counter('packets.publish.auth_error')
    ];
    const client = await rawClient(broker);
    client.send(publish('good'));
    client.send(publish('secret'));
    await nothing(client);
    assert.deepEqual(counts(), [0, 1]);
    client.send(publish('full'));
    client.send(publish('$delayed/5/a'));
    client.send(publish('a', Buffer.from([0xff]), { properties: { payloadFormatIndicator: 1 } }));
    await nothing(client);
    assert.deepEqual(counts(), [3, 1]);
    const bad: Packet[] = [
      publish('a/+'),
      publish('', 'x', { properties: { topicAlias: 1 } }),
      publish('a', 'x'.repeat(100)),
      publish('a', 'x', { properties: { topicAlias: 65_535 } })
    ];
    for (const packet of bad) {
      const other = await rawClient(broker);
      other.send(packet);
      await other.closed();
    }
    assert.deepEqual(counts(), [3 + bad.length, 1]);
    const subscriber = await rawClient(broker);
    subscriber.send({ cmd: 'subscribe', messageId: 1, subscriptions: [] });
    await subscriber.closed();
    assert.deepEqual(counts(), [3 + bad.length, 1], 'other packets do not count');
  });

  it('distinguishes a message that expired while a hook was pending from one that expired for one receiver', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const counts = () =>
      (['messages.dropped.expired', 'messages.dropped', 'messages.expired', 'delivery.dropped.expired'] as const).map(
        (name: CounterName) => broker.metrics.counter(name)
      );
    const seen: string[] = [];
    broker.subscribe('#', ({ payload }) => seen.push(String(payload)));
    broker.hook(
      'publish',
      () => new Promise<undefined>((resolve) => clock.setTimeout(() => resolve(undefined), 2_000))
    );
    const client = await rawClient(broker);
    client.send(publish('a', 'short', { properties: { messageExpiryInterval: 1 } }));
    client.send(publish('a', 'long', { properties: { messageExpiryInterval: 9 } }));
    await clock.advance('5s');
    assert.deepEqual(seen, ['long']);
    assert.deepEqual(counts(), [1, 1, 1, 0]);
  });
});
