import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { rawClient } from '../support/raw-client.ts';
import {
  connect,
  granted,
  nothing,
  payloads,
  publish,
  refused,
  refusedConnect,
  rest,
  startBroker,
  turns,
  unsubscribe
} from '../support/wire.ts';

const WILL = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false };

describe('$delayed', () => {
  it('publishes to the inner topic when the delay has passed, to the clients subscribed at that time', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const client = await rawClient(broker);
    client.send(publish('$delayed/10/a', 'x', { qos: 1, messageId: 1, properties: { contentType: 't' } }));
    assert.ok((await client.next('puback')).reasonCode < 0x80);
    client.stream.destroy();
    await clock.advance(9_999);
    const late = await rawClient(broker);
    await granted(late, 1, [{ topic: 'a', qos: 2 }, '#', '$delayed/#']);
    await nothing(late);
    await clock.advance(1);
    const copy = await late.next('publish');
    assert.deepEqual([copy.topic, copy.qos, copy.properties?.contentType], ['a', 1, 't']);
    await nothing(late);
    assert.equal(broker.metrics.gauge('messages.delayed'), 0);
  });

  it('keeps the order of equal delays, retains on release, and starts the message expiry then', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const client = await rawClient(broker);
    await granted(client, 1, 'a');
    for (const payload of ['1', '2', '3']) client.send(publish('$delayed/5/a', payload, { retain: true }));
    await nothing(client);
    assert.equal(broker.metrics.gauge('retained'), 3); // retained messages of $SYS only
    await clock.advance('5s');
    assert.deepEqual(await payloads(client), ['1', '2', '3']);
    client.send(publish('$delayed/5/a', 'short', { properties: { messageExpiryInterval: 2 } }));
    await clock.advance('5s');
    assert.equal((await client.next('publish')).properties?.messageExpiryInterval, 2);
  });

  it('refuses a message it cannot delay: 0x90 without seconds or topic, 0x97 above the limit, 0x87 for $SYS', async () => {
    await using broker = await startBroker({ maxDelayedMessages: 1 });
    const reasons: string[] = [];
    broker.on('message.dropped', ({ reason }) => reasons.push(reason));
    const client = await rawClient(broker);
    const code = async (topic: string) => {
      client.send(publish(topic, 'x', { qos: 1, messageId: 1 }));
      return (await client.next('puback')).reasonCode;
    };
    for (const topic of ['$delayed/x/a', '$delayed/5', '$delayed/5/', '$delayed//a', '$delayed/-1/a', '$delayed/1.5/a'])
      assert.equal(await code(topic), 0x90, topic);
    assert.equal(await code('$delayed/5/$SYS/a'), 0x87);
    assert.equal(await code('$delayed/5/$delayed/5/a'), 0x87);
    assert.ok((await code('$delayed/5/a')) < 0x80);
    assert.equal(await code('$delayed/5/a'), 0x97);
    assert.deepEqual(reasons, [...Array(6).fill('topic_invalid'), 'not_authorized', 'not_authorized', 'quota']);
    await using off = await startBroker({ delayedPublish: false });
    const other = await rawClient(off);
    other.send(publish('$delayed/5/a', 'x', { qos: 1, messageId: 1 }));
    assert.equal((await other.next('puback')).reasonCode, 0x90);
  });

  it('checks the permission for the inner topic when the message arrives', async () => {
    const asked: string[] = [];
    await using broker = await startBroker({
      hooks: {
        authorizePublish: ({ message }) => {
          asked.push(message.topic);
          return message.topic !== 'secret';
        }
      }
    });
    const client = await rawClient(broker);
    client.send(publish('$delayed/5/secret', 'x', { qos: 1, messageId: 1 }));
    assert.equal((await client.next('puback')).reasonCode, 0x87);
    client.send(publish('$delayed/5/open', 'x', { qos: 1, messageId: 1 }));
    assert.ok((await client.next('puback')).reasonCode < 0x80);
    assert.deepEqual(asked, ['secret', 'open']);
  });

  it('delays wills and messages of the app', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const watcher = await rawClient(broker);
    await granted(watcher, 1, ['will', 'a']);
    const client = await rawClient(broker, { will: { ...WILL, topic: '$delayed/3/will' } });
    client.stream.destroy();
    await turns();
    await broker.publish('$delayed/2/a', 'app');
    await assert.rejects(broker.publish('$delayed/x/a', 'app'), { code: 'TOPIC_NAME_INVALID' });
    await nothing(watcher);
    await clock.advance('2s');
    assert.deepEqual(await payloads(watcher), ['app']);
    await clock.advance('1s');
    assert.deepEqual(await payloads(watcher), ['gone']);
  });

  it('reports the reason to the app: the topic, the limit, or that the feature is off', async () => {
    await using broker = await startBroker({ maxDelayedMessages: 1 });
    await broker.publish('$delayed/5/a', '1');
    await assert.rejects(broker.publish('$delayed/5/a', '2'), {
      code: 'QUOTA_EXCEEDED',
      message: /maxDelayedMessages/
    });
    await assert.rejects(broker.publish('$delayed/x/a', '2'), { code: 'TOPIC_NAME_INVALID' });
    await using off = await startBroker({ delayedPublish: false });
    await assert.rejects(off.publish('$delayed/5/a', '1'), { code: 'DELAYED_OFF', message: /delayedPublish/ });
  });

  it('reports the messages that still wait when the broker stops', async () => {
    const broker = await startBroker();
    const dropped: string[] = [];
    broker.on('message.dropped', ({ message, reason }) => dropped.push(`${message.topic} ${reason}`));
    await broker.publish('$delayed/5/a', '1');
    await broker.publish('$delayed/2/b', '2');
    await broker.stop();
    assert.deepEqual(dropped, ['$delayed/5/a server_shutting_down', '$delayed/2/b server_shutting_down']);
    const { metrics } = broker;
    assert.equal(metrics.counter('messages.dropped'), 2);
    assert.equal(metrics.gauge('messages.delayed'), 0);
  });

  it('allows a publish hook to delay a message once more on release', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const seen: string[] = [];
    broker.subscribe('#', ({ topic }) => seen.push(topic));
    let left = 1;
    broker.hook('publish', ({ message }) => (left-- > 0 ? { topic: `$delayed/5/${message.topic}` } : undefined));
    await broker.publish('$delayed/5/a');
    await clock.advance('9s');
    assert.deepEqual(seen, []);
    await clock.advance('1s');
    assert.deepEqual(seen, ['a']);
  });

  it('stays within a mount point', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, mountpoint: 'm/%c/' });
    const client = await rawClient(broker, { clientId: 'c' });
    await granted(client, 1, ['a', '#']);
    const other = await rawClient(broker, { clientId: 'd' });
    await granted(other, 1, '#');
    client.send(publish('$delayed/5/a', 'x'));
    await nothing(client);
    await clock.advance('5s');
    const copy = await client.next('publish');
    assert.deepEqual([copy.topic, String(copy.payload)], ['a', 'x']);
    await nothing(client);
    await nothing(other);
  });
});

describe('Rewrite rules', () => {
  const rewrite = [
    'x/# ^x/y/(.+)$ z/y/$1',
    { filter: 'in/+', pattern: '^in/(.+)$', target: 'out/$1', on: 'publish' as const }
  ];

  it('changes the topics of PUBLISH, SUBSCRIBE and UNSUBSCRIBE, shared filters and wills', async () => {
    await using broker = await startBroker({ rewrite });
    const client = await rawClient(broker, { clientId: 'c', will: { ...WILL, topic: 'x/y/will' } });
    await granted(client, 1, ['x/y/1', '$share/g/x/y/2', 'in/3']);
    const filters = [...broker.sessions.get('c').subscriptions()].map(({ filter }) => filter);
    assert.deepEqual(filters, ['z/y/1', '$share/g/z/y/2', 'in/3']);
    for (const topic of ['x/y/1', 'x/y/2', 'in/3']) client.send(publish(topic, topic, { qos: 0 }));
    const topics = (await rest(client)).map((packet) => packet.cmd === 'publish' && packet.topic);
    assert.deepEqual(topics, ['z/y/1', 'z/y/2']);
    client.send(unsubscribe(2, 'x/y/1', 'z/y/2', '$share/g/x/y/2'));
    assert.deepEqual((await client.next('unsuback')).granted, [0, 0x11, 0]);
    const watcher = await rawClient(broker);
    await granted(watcher, 1, '#');
    client.stream.destroy();
    assert.equal((await watcher.next('publish')).topic, 'z/y/will');
  });

  it('applies rewrite rules to topics of an alias, to retained messages and to runs of QoS 0', async () => {
    await using broker = await startBroker({ rewrite });
    const client = await rawClient(broker);
    await granted(client, 1, 'z/#');
    client.send(publish('x/y/1', 'named', { properties: { topicAlias: 3 } }));
    client.send(publish('', 'by alias', { properties: { topicAlias: 3 } }));
    client.send(publish('x/y/1', 'kept', { retain: true }));
    const copies = (await rest(client)).map(
      (packet) => packet.cmd === 'publish' && `${packet.topic} ${packet.payload}`
    );
    assert.deepEqual(copies, ['z/y/1 named', 'z/y/1 by alias', 'z/y/1 kept']);
    await granted(client, 2, 'x/y/1');
    assert.deepEqual(await payloads(client), ['kept']);
  });

  it('allows no client to publish through rewriting where it may not', async () => {
    await using broker = await startBroker({ rewrite: ['up/# ^up/(.+)$ $SYS/$1'.replace('$SYS', '$SYS')] });
    const client = await rawClient(broker, { meta: { transport: 'tcp', remoteAddress: '192.0.2.1' } });
    client.send(publish('up/x', 'x', { qos: 1, messageId: 1 }));
    assert.equal((await client.next('puback')).reasonCode, 0x87);
    assert.deepEqual(await granted(client, 1, 'up/x'), [0x87]);
  });
});

describe('Mount points', () => {
  it('separates clients by mount points, with %c and %u, invisibly to them', async () => {
    await using broker = await startBroker({ mountpoint: 'm/%c/%u/' });
    const seen: string[] = [];
    broker.subscribe('#', ({ topic }) => seen.push(topic));
    const one = await rawClient(broker, { clientId: 'one', username: 'u' });
    const two = await rawClient(broker, { clientId: 'two' });
    for (const client of [one, two]) await granted(client, 1, [{ topic: '#', qos: 1 }]);
    one.send(publish('a', 'x', { qos: 1, messageId: 1, retain: true }));
    assert.equal((await one.next('publish')).topic, 'a');
    await one.next('puback');
    await nothing(two);
    await granted(one, 2, 'a');
    assert.ok((await rest(one)).every((packet) => packet.cmd === 'publish' && packet.topic === 'a'));
    two.send(publish('a', 'x'));
    assert.equal((await two.next('publish')).topic, 'a');
    assert.deepEqual(seen, ['m/one/u/a', 'm/two/undefined/a']);
    await broker.publish('m/two/undefined/b', 'from the app');
    assert.equal((await two.next('publish')).topic, 'b');
  });

  it('inserts the mount point after the share prefix, and applies it to wills and to filters of $SYS', async () => {
    await using broker = await startBroker({ zones: { tenant: { mountpoint: 't/' } } });
    const meta = { zone: 'tenant' };
    const client = await rawClient(broker, { meta, clientId: 'c', will: WILL });
    await granted(client, 1, ['$share/g/a', '$queue/b', '$SYS/#', '$SYS/brokers']);
    await nothing(client);
    const listed = [...broker.sessions.get('c').subscriptions()].map(({ filter }) => filter);
    assert.deepEqual(listed, ['$share/g/a', '$queue/b', '$SYS/#', '$SYS/brokers']);
    assert.deepEqual(
      (await broker.directory.routes()).entries.map(({ topic }) => topic),
      ['t/$SYS/#', 't/$SYS/brokers', 't/a', 't/b']
    );
    const outside = await rawClient(broker);
    await granted(outside, 1, ['t/will', 'will']);
    await broker.publish('t/a', 'shared');
    assert.equal((await client.next('publish')).topic, 'a');
    client.send(unsubscribe(2, '$share/g/a'));
    assert.deepEqual((await client.next('unsuback')).granted, [0]);
    client.stream.destroy();
    assert.equal((await outside.next('publish')).topic, 't/will');
    await nothing(outside);
  });

  it('refuses names that are not one level: 0x85 for the client id, 0x86 for the user name', async () => {
    await using broker = await startBroker({ mountpoint: 't/%c/%u/' });
    assert.equal((await refusedConnect(broker, { username: '' })).reasonCode, 0x86);
    assert.equal((await refusedConnect(broker, { username: 'undefined' })).reasonCode, 0x86, 'stands for no user name');
    for (const name of ['#', '+', 'a/#', 'a+b', 'a/b', '/', 'a/']) {
      assert.equal((await refusedConnect(broker, { clientId: name })).reasonCode, 0x85, name);
      assert.equal((await refusedConnect(broker, { username: name })).reasonCode, 0x86, name);
    }
    assert.equal((await refusedConnect(broker, { version: 4, clientId: '#' })).reasonCode, 0x85);
  });

  it('refuses names that begin with "$" if the topics would begin with them', async () => {
    await using broker = await startBroker({ mountpoint: '%c/%u/' });
    assert.equal((await refusedConnect(broker, { clientId: '$SYS' })).reasonCode, 0x85);
    await rawClient(broker, { clientId: 'c', username: '$SYS' });
  });

  it('refuses a user name with wildcards from the authenticate hook, too', async () => {
    await using broker = await startBroker({
      mountpoint: '%u/',
      hooks: { authenticate: async () => ({ allow: true, username: '#' }) }
    });
    assert.equal((await refusedConnect(broker, { username: 'good' })).reasonCode, 0x86);
  });

  it('prefers the mount point of the listener to that of the zone, and the user name of the hook to that of the client', async () => {
    await using broker = await startBroker({
      mountpoint: 'zone/',
      hooks: { authenticate: () => ({ allow: true, username: 'real' }) }
    });
    const seen: string[] = [];
    broker.subscribe('#', ({ topic }) => seen.push(topic));
    const client = await rawClient(broker, { username: 'claimed', meta: { mountpoint: 'listener/%u/' } });
    client.send(publish('a'));
    await nothing(client);
    assert.deepEqual(seen, ['listener/real/a']);
  });

  it('inserts names with any characters literally', async () => {
    await using broker = await startBroker({ mountpoint: '%c/%u/' });
    const seen: string[] = [];
    broker.subscribe('#', ({ topic }) => seen.push(topic));
    const client = await rawClient(broker, { clientId: '%u', username: '$&' });
    client.send(publish('a'));
    await nothing(client);
    assert.deepEqual(seen, ['%u/$&/a']);
  });

  it('refuses only the topic that the mount point makes too long', async () => {
    await using broker = await startBroker({ mountpoint: `${'m'.repeat(100)}/`, maxPacketSize: '256KB' });
    const client = await rawClient(broker, { clientId: 'c' });
    const long = 'x'.repeat(65_500);
    assert.deepEqual(await granted(client, 1, [long, 'a']), [0x8f, 0]);
    client.send(publish(long, '', { qos: 1, messageId: 1 }));
    const [answer] = await rest(client).catch(() => client.received.slice(-1));
    assert.ok('reasonCode' in answer && answer.reasonCode === 0x90, JSON.stringify(answer));
  });
});

describe('Subscriptions made at connect', () => {
  it('accepts the short spellings of documented settings files (nl, rap, rh)', async () => {
    const given = [
      { topic: 'a', nl: true, rap: true, rh: 2 },
      { topic: 'b', no_local: true, retain_as_published: true, retain_handling: 2 }
    ];
    await using broker = await startBroker({ autoSubscriptions: given });
    await rawClient(broker, { clientId: 'c' });
    const options = { qos: 0, noLocal: true, retainAsPublished: true, retainHandling: 2, id: undefined };
    const { node } = broker.settings;
    assert.deepEqual(
      [...broker.sessions.get('c').subscriptions()],
      ['a', 'b'].map((filter) => ({ node, clientId: 'c', filter, ...options }))
    );
  });

  it('makes the subscriptions for every client after CONNACK, with its names inserted, and sends retained messages', async () => {
    await using broker = await startBroker({
      autoSubscriptions: [
        { topic: 'to/%c', qos: 1 },
        { topic: '$share/all/by/%u' },
        { topic: 'new', retainHandling: 2 }
      ]
    });
    await broker.publish('to/c', 'kept', { retain: true, qos: 2 });
    await broker.publish('new', 'kept', { retain: true });
    const client = await rawClient(broker, { clientId: 'c', username: 'u' });
    const copy = await client.next('publish');
    assert.deepEqual([copy.topic, copy.qos, copy.retain], ['to/c', 1, true]);
    await nothing(client);
    const filters = [...broker.sessions.get('c').subscriptions()].map(({ filter }) => filter);
    assert.deepEqual(filters, ['to/c', '$share/all/by/u', 'new']);
    await broker.publish('by/u', 'x');
    assert.deepEqual(await payloads(client), ['x']);
  });

  it('inserts names literally, and refuses those with wildcards with an error event', async () => {
    await using broker = await startBroker({ autoSubscriptions: [{ topic: 'to/%c' }, { topic: 'for/%u' }] });
    const errors: string[] = [];
    broker.on('error', ({ error }) => errors.push((error as { code?: string }).code ?? ''));
    for (const [clientId, username, expected] of [
      ['$&', '$1', ['to/$&', 'for/$1']],
      ['%u', 'u', ['to/%u', 'for/u']],
      ['#', 'u', ['for/u']],
      ['c', 'a/+', ['to/c']]
    ] as const) {
      await rawClient(broker, { clientId, username });
      assert.deepEqual(
        [...broker.sessions.get(clientId).subscriptions()].map(({ filter }) => filter),
        expected
      );
    }
    assert.deepEqual(errors, ['AUTO_SUBSCRIPTION_FAILED', 'AUTO_SUBSCRIPTION_FAILED']);
  });
});

describe('$SYS', () => {
  const remote = { transport: 'tcp', remoteAddress: '192.0.2.1' } as const;

  it('allows only clients of this machine to subscribe, unless configured otherwise', async () => {
    await using broker = await startBroker();
    const filters = ['$SYS/#', '$SYS', '$share/g/$SYS/#', '$queue/$SYS/a', '$SYSTEM/a', '#'];
    const open = [0, 0, 0, 0, 0, 0];
    const shut = [0x87, 0x87, 0x87, 0x87, 0, 0];
    const cases = [
      [remote, shut],
      [{ transport: 'tcp', remoteAddress: '127.0.0.1' }, open],
      [{ transport: 'ws', remoteAddress: '::1' }, open],
      [{ transport: 'tls', remoteAddress: '::ffff:127.0.0.1' }, open],
      [{ transport: 'tcp', remoteAddress: '::ffff:192.0.2.1' }, shut],
      [{ transport: 'tcp' }, shut],
      [{ transport: 'unix' }, open],
      [{ transport: 'local' }, open]
    ] as const;
    for (const [meta, expected] of cases) {
      const client = await rawClient(broker, { meta });
      assert.deepEqual(await granted(client, 1, filters), expected, JSON.stringify(meta));
      client.stream.destroy();
    }
    await using trusting = await startBroker({ sysForRemoteClients: true });
    assert.deepEqual(await granted(await rawClient(trusting, { meta: remote }), 1, filters), open);
    await using knowing = await startBroker({ hooks: { authenticate: () => ({ allow: true, isSuperuser: true }) } });
    assert.deepEqual(await granted(await rawClient(knowing, { meta: remote }), 1, filters), open);
  });

  it('refuses messages of clients, wills and delayed messages, and does not notify a 3.x client', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const watcher = await rawClient(broker);
    await granted(watcher, 1, ['$SYS/own/#']);
    const client = await rawClient(broker, { will: { ...WILL, topic: '$SYS/own/will' } });
    for (const topic of ['$SYS/own/a', '$SYS', '$SYS/']) {
      client.send(publish(topic, 'x', { qos: 1, messageId: 1 }));
      assert.equal((await client.next('puback')).reasonCode, 0x87);
    }
    client.send(publish('$SYS/own/a', 'x'));
    client.send(publish('$delayed/1/$SYS/own/a', 'x'));
    await nothing(client);
    client.stream.destroy();
    const old = await rawClient(broker, { version: 4 });
    old.send(publish('$SYS/own/a', 'x', { qos: 1, messageId: 1, retain: true }));
    await old.next('puback');
    await clock.advance('2s');
    await nothing(watcher);
  });

  it('counts traffic, which a client of the same machine can read', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, sysInterval: '60s' });
    const prefix = '$SYS/brokers/embermq@127.0.0.1';
    const watcher = await rawClient(broker);
    const suffixes = [
      'stats/connections/count',
      'stats/connections/max',
      'stats/subscriptions/count',
      'stats/retained/count',
      'metrics/messages/received',
      'metrics/messages/sent',
      'metrics/packets/connect'
    ];
    await granted(
      watcher,
      1,
      suffixes.map((suffix) => `${prefix}/${suffix}`)
    );
    const client = await rawClient(broker);
    const gone = await rawClient(broker);
    gone.stream.destroy();
    await granted(client, 1, 'a');
    const retained = broker.metrics.gauge('retained');
    client.send(publish('a', 'x', { retain: true }));
    await rest(client);
    await clock.advance('60s');
    const counters = new Map<string, string>();
    for (const packet of await rest(watcher)) {
      if (packet.cmd === 'publish') counters.set(packet.topic.slice(prefix.length + 1), String(packet.payload));
    }
    assert.deepEqual(
      suffixes.map((suffix) => counters.get(suffix)),
      ['2', '3', '8', String(retained + 1), '1', counters.get('metrics/messages/sent'), '3']
    );
    assert.ok(Number(counters.get('metrics/messages/sent')) >= 1);
  });

  it('reports clients that connect and disconnect', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker, { clientId: 'w' });
    await granted(watcher, 1, '$SYS/brokers/+/clients/#');
    const client = await rawClient(broker, { clientId: 'c', username: 'u' });
    const came = await watcher.next('publish');
    assert.equal(came.topic, '$SYS/brokers/embermq@127.0.0.1/clients/c/connected');
    assert.equal(JSON.parse(String(came.payload)).username, 'u');
    client.send({ cmd: 'disconnect', reasonCode: 0 });
    const left = await watcher.next('publish');
    assert.equal(left.topic, '$SYS/brokers/embermq@127.0.0.1/clients/c/disconnected');
    assert.equal(JSON.parse(String(left.payload)).reason, 'normal');
  });
});

describe('Features that are switched off', () => {
  it('announces disabled features in CONNACK, and refuses them with their code', async () => {
    await using broker = await startBroker({
      maxQosAllowed: 1,
      retainAvailable: false,
      wildcardSubscription: false,
      sharedSubscription: false,
      subscriptionIdentifiers: false,
      maxTopicAlias: 0,
      maxPacketSize: 2048,
      receiveMaximum: 5,
      maxSessionExpiryInterval: 30,
      serverKeepalive: 20
    });
    const ask = { properties: { sessionExpiryInterval: 60 } };
    const client = await rawClient(broker, ask);
    assert.deepEqual(client.connack?.properties, {
      sessionExpiryInterval: 30,
      receiveMaximum: 5,
      maximumQoS: 1,
      retainAvailable: 0,
      maximumPacketSize: 2048,
      wildcardSubscriptionAvailable: 0,
      subscriptionIdentifiersAvailable: 0,
      sharedSubscriptionAvailable: 0,
      serverKeepAlive: 20
    });
    assert.deepEqual(await granted(client, 1, ['a/+', '$share/g/a', { topic: 'a', qos: 2 }]), [0xa2, 0x9e, 1]);
    assert.deepEqual(await granted(client, 2, 'a', { subscriptionIdentifier: [1] }), [0xa1]);
    const wrong = [
      [publish('a', '', { qos: 2, messageId: 1 }), 0x9b],
      [publish('a', 'x', { retain: true }), 0x9a],
      [publish('a', '', { properties: { topicAlias: 1 } }), 0x94],
      [publish('a', 'x'.repeat(2048)), 0x95]
    ] as const;
    for (const [packet, code] of wrong) {
      const one = await rawClient(broker);
      one.send(packet);
      await refused(one, code);
    }
    assert.equal((await refusedConnect(broker, { will: { ...WILL, qos: 2 } })).reasonCode, 0x9b);
    assert.equal((await refusedConnect(broker, { will: { ...WILL, retain: true } })).reasonCode, 0x9a);
  });

  it('announces nothing if all features are available', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    assert.deepEqual(client.connack?.properties, { maximumPacketSize: 1_048_576, topicAliasMaximum: 64 });
  });
});

describe('Server redirection', () => {
  it('uses 0x9C and 0x9D with a Server Reference, from hooks and for connected clients; 3.x clients receive "unavailable"', async () => {
    const refusal = { allow: false, reasonCode: 0x9c, serverReference: 'b.example:1883 c.example' } as const;
    for (const name of ['preConnect', 'authenticate'] as const) {
      await using broker = await startBroker();
      broker.hook(name, () => refusal);
      const connack = await refusedConnect(broker);
      assert.deepEqual([connack.reasonCode, connack.properties?.serverReference], [0x9c, refusal.serverReference]);
      const old = await rawClient(broker, { version: 4, connect: false });
      old.send(connect(4));
      const { reasonCode, sessionPresent } = await old.next('connack');
      assert.deepEqual([reasonCode, sessionPresent], [0x88, false]); // return code 3
    }
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c' });
    broker.sessions.get('c').kick({ reasonCode: 0x9d, serverReference: 'd.example' });
    const { reasonCode, properties } = await client.next('disconnect');
    assert.deepEqual([reasonCode, properties?.serverReference], [0x9d, 'd.example']);
  });
});

describe('Request and response', () => {
  it('sends Response Information to clients that request it, with names inserted', async () => {
    await using broker = await startBroker({ responseInformation: 'reply/%c/%u' });
    const asked = { requestResponseInformation: 1 as const };
    const told = async (properties: object, username?: string) =>
      (await rawClient(broker, { clientId: 'c$&', username, properties })).connack?.properties?.responseInformation;
    assert.equal(await told(asked, 'u'), 'reply/c$&/u');
    assert.equal(await told({}), undefined);
    assert.equal(await told({ requestResponseInformation: 0 }), undefined);
    await using silent = await startBroker();
    const client = await rawClient(silent, { properties: asked });
    assert.equal(client.connack?.properties?.responseInformation, undefined);
  });

  it('forwards Response Topic and Correlation Data in both directions', async () => {
    await using broker = await startBroker();
    const server = await rawClient(broker);
    const client = await rawClient(broker);
    await granted(server, 1, 'ask');
    await granted(client, 1, 'reply/c');
    const correlationData = Buffer.from([0, 255, 1]);
    client.send(publish('ask', '?', { properties: { responseTopic: 'reply/c', correlationData } }));
    const { properties } = await server.next('publish');
    server.send(
      publish(properties?.responseTopic as string, '!', {
        properties: { correlationData: properties?.correlationData }
      })
    );
    const answer = await client.next('publish');
    assert.deepEqual([String(answer.payload), answer.properties], ['!', { correlationData }]);
  });
});

describe('The payload format check', () => {
  const bad = Buffer.from('c328', 'hex');
  const properties = { payloadFormatIndicator: 1 as const };

  it('forwards the indicator unchanged by default', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, 'a');
    client.send(publish('a', bad, { properties }));
    assert.deepEqual((await client.next('publish')).properties, properties);
  });

  it('refuses payloads that claim to be UTF-8 and are not with 0x99, including wills in CONNECT', async () => {
    await using broker = await startBroker({ payloadFormatCheck: true });
    const client = await rawClient(broker);
    await granted(client, 1, 'a');
    client.send(publish('a', bad, { qos: 1, messageId: 1, properties }));
    assert.equal((await client.next('puback')).reasonCode, 0x99);
    client.send(publish('a', bad, { qos: 2, messageId: 2, properties }));
    assert.equal((await client.next('pubrec')).reasonCode, 0x99);
    client.send(publish('a', bad, { properties }));
    await nothing(client);
    for (const good of [publish('a', 'é', { properties }), publish('a', bad), publish('a', '', { properties })]) {
      client.send(good);
      assert.deepEqual((await client.next('publish')).payload, good.payload);
    }
    assert.equal((await refusedConnect(broker, { will: { ...WILL, payload: bad, properties } })).reasonCode, 0x99);
  });
});
