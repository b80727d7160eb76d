import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Broker, engineOf } from '../../lib/broker/broker.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import {
  granted,
  nothing,
  payloads,
  publish,
  refusedConnect,
  rest,
  startBroker,
  turns,
  unsubscribe
} from '../support/wire.ts';

const RETAINED_WILL = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: true };

/** Returns the names of the started features. */
function started(broker: Broker): string[] {
  return broker.features.list().flatMap(({ name, isStarted }) => (isStarted ? [name] : []));
}

/** Subscribes with a new client, and returns the payloads of the retained messages that it receives. */
async function retainedFor(broker: Broker, filter: string): Promise<string[]> {
  const client = await rawClient(broker);
  await granted(client, 1, filter);
  const received = await payloads(client);
  client.stream.destroy();
  return received;
}

/** Returns `topic payload` of each PUBLISH that has arrived. */
async function messages(client: RawClient): Promise<string[]> {
  return (await rest(client)).flatMap((packet) =>
    packet.cmd === 'publish' ? [`${packet.topic} ${packet.payload}`] : []
  );
}

describe('broker.features', () => {
  it('lists the features by name; the options decide which of them are started', async () => {
    await using broker = await startBroker();
    assert.deepEqual(
      broker.features.list().map(({ name }) => name),
      ['delayed', 'presence', 'retainer', 'rewrite', 'rules']
    );
    for (const { about } of broker.features.list()) assert.match(about, /^[A-Z].*\.$/);
    assert.deepEqual(started(broker), ['delayed', 'presence', 'retainer', 'rules']);
    await using other = await startBroker({ delayedPublish: false, rewrite: ['a a b'] });
    assert.deepEqual(started(other), ['presence', 'retainer', 'rewrite', 'rules']);
  });

  it('tells whether a start or a stop has changed anything', async () => {
    await using broker = await startBroker();
    assert.equal(await broker.features.start('delayed'), false);
    assert.equal(await broker.features.stop('delayed'), true);
    assert.equal(await broker.features.stop('delayed'), false);
    assert.equal(await broker.features.start('delayed'), true);
  });

  it('rejects an unknown name with FEATURE_NOT_FOUND and a suggestion', async () => {
    await using broker = await startBroker();
    const code = 'FEATURE_NOT_FOUND';
    await assert.rejects(broker.features.start('retained'), { code, message: /did you mean "retainer"/ });
    await assert.rejects(broker.features.stop('toString'), { code, message: /delayed, presence, retainer, rewrite/ });
  });

  it('keeps features stopped when the broker is stopped and started', async () => {
    await using broker = await startBroker();
    await broker.features.stop('retainer');
    await broker.stop();
    await broker.features.stop('delayed');
    await broker.start();
    assert.deepEqual(started(broker), ['presence', 'rules']);
  });
});

describe('broker.features with a store', () => {
  it('keeps features started and stopped, regardless of the options', async () => {
    const store = memoryStore();
    {
      await using broker = await startBroker({ store });
      await broker.features.stop('delayed');
      await broker.features.start('rewrite');
    }
    await using broker = await startBroker({ store, delayedPublish: true });
    assert.deepEqual(started(broker), ['presence', 'retainer', 'rewrite', 'rules']);
    await broker.features.start('delayed');
    await broker.features.stop('rewrite');
    assert.equal(engineOf(broker).kept.tables.own('$features').size, 0, 'as the options say');
  });

  it('restarts a feature without a change of the persisted state, and starts a stopped one', async () => {
    await using broker = await startBroker({ store: memoryStore() });
    await broker.features.restart('delayed');
    await broker.features.stop('presence');
    await broker.features.restart('presence');
    assert.deepEqual(started(broker), ['delayed', 'presence', 'retainer', 'rules']);
    assert.equal(engineOf(broker).kept.tables.own('$features').size, 0);
  });

  it('changes nothing if the change cannot be persisted', async () => {
    const store = memoryStore();
    await using kit = await createTestBroker({ store });
    const { broker, clock } = kit;
    broker.on('error', () => undefined);
    const { commit } = store;
    store.commit = () => Promise.reject(Object.assign(new Error('no space left'), { isUntouched: true }));
    await assert.rejects(broker.features.stop('delayed'), { code: 'STORE_FAILED' });
    assert.deepEqual(started(broker), ['delayed', 'presence', 'retainer', 'rules']);
    store.commit = commit;
    await clock.advance('1s');
  });

  it('allows changes before the start, which last as long as the broker object', async () => {
    const broker = new Broker({ store: memoryStore() });
    assert.equal(await broker.features.stop('delayed'), true);
    assert.deepEqual(started(broker), ['presence', 'retainer', 'rules']);
  });
});

describe('The stopped feature retainer', () => {
  it('lets retained messages pass to connected clients and neither stores nor sends any; the stored ones stay', async () => {
    await using broker = await startBroker();
    await broker.publish('a', 'old', { retain: true });
    const subscriber = await rawClient(broker);
    const publisher = await rawClient(broker);
    await granted(subscriber, 1, { topic: 'a', qos: 1 });
    assert.deepEqual(await payloads(subscriber), ['old']);
    const dropped: string[] = [];
    broker.on('message.dropped', ({ message, reason }) => dropped.push(`${message.payload} ${reason}`));
    await broker.features.stop('retainer');

    publisher.send(publish('a', 'new', { retain: true, qos: 1, messageId: 1 }));
    assert.equal((await publisher.next('puback')).reasonCode, 0);
    await broker.publish('a', '', { retain: true });
    assert.deepEqual(await payloads(subscriber), ['new', '']);
    assert.deepEqual(await retainedFor(broker, 'a'), []);
    assert.deepEqual(await retainedFor(broker, '#'), []);
    assert.deepEqual(dropped, ['new not_retained', ' not_retained']);
    assert.equal(broker.metrics.counter('messages.not_retained'), 2);
    assert.equal(String(broker.retained.get('a')?.payload), 'old');

    await broker.features.start('retainer');
    assert.deepEqual(await retainedFor(broker, 'a'), ['old']);
    publisher.send(publish('a', 'newer', { retain: true }));
    await nothing(publisher);
    assert.deepEqual(await retainedFor(broker, 'a'), ['newer']);
  });

  it('[MQTT-3.2.2-13] announces Retain Available 0 and refuses a retained will with 0x9A', async () => {
    await using broker = await startBroker();
    await broker.features.stop('retainer');
    assert.equal((await rawClient(broker)).connack?.properties?.retainAvailable, 0);
    assert.equal((await refusedConnect(broker, { will: RETAINED_WILL })).reasonCode, 0x9a);
    await broker.features.start('retainer');
    assert.equal((await rawClient(broker, { will: RETAINED_WILL })).connack?.properties?.retainAvailable, undefined);
  });

  it('admits an MQTT 3.1.1 client with a retained will, which is published and not retained', async () => {
    await using broker = await startBroker();
    await broker.features.stop('retainer');
    const watcher = await rawClient(broker);
    await granted(watcher, 1, 'will');
    (await rawClient(broker, { version: 4, will: RETAINED_WILL })).stream.destroy();
    await turns();
    assert.deepEqual(await payloads(watcher), ['gone']);
    assert.equal(broker.retained.get('will'), undefined);
  });

  it('ends the retained messages that are still to be sent to a client', async () => {
    await using broker = await startBroker();
    for (const topic of ['a/1', 'a/2', 'a/3']) await broker.publish(topic, topic, { retain: true, qos: 1 });
    const client = await rawClient(broker, { properties: { receiveMaximum: 1 } });
    await granted(client, 1, { topic: 'a/+', qos: 1 });
    const { messageId = 0 } = await client.next('publish');
    await broker.features.stop('retainer');
    client.send({ cmd: 'puback', messageId, reasonCode: 0 });
    await nothing(client);
    await broker.publish('a/2', 'live', { qos: 1 });
    assert.equal(String((await client.next('publish')).payload), 'live');
    await nothing(client);
  });

  it('ends the retained messages that are still to be sent to a client that returns', async () => {
    await using broker = await startBroker();
    for (const topic of ['a/1', 'a/2', 'a/3']) await broker.publish(topic, topic, { retain: true, qos: 1 });
    const properties = { receiveMaximum: 1, sessionExpiryInterval: 100 };
    const client = await rawClient(broker, { clientId: 'c', properties });
    await granted(client, 1, { topic: 'a/+', qos: 1 });
    await client.next('publish');
    client.stream.destroy();
    await turns();
    await broker.features.stop('retainer');
    const back = await rawClient(broker, { clientId: 'c', clean: false, properties });
    const { messageId = 0, payload } = await back.next('publish');
    assert.equal(String(payload), 'a/1', 'the message in flight is sent again');
    back.send({ cmd: 'puback', messageId, reasonCode: 0 });
    await nothing(back);
  });

  it('does not send an older retained message before a live one', async () => {
    await using broker = await startBroker();
    for (const topic of ['a/1', 'a/2']) await broker.publish(topic, topic, { retain: true, qos: 1 });
    const client = await rawClient(broker, { properties: { receiveMaximum: 1 } });
    await granted(client, 1, { topic: 'a/+', qos: 1 });
    const { messageId = 0 } = await client.next('publish');
    await broker.features.stop('retainer');
    await broker.publish('a/2', 'live', { qos: 1 });
    client.send({ cmd: 'puback', messageId, reasonCode: 0 });
    assert.deepEqual(await payloads(client), ['live']);
  });

  it('sends nothing to handlers of the app, which may read the retained messages', async () => {
    await using broker = await startBroker();
    await broker.publish('a', 'old', { retain: true });
    await broker.features.stop('retainer');
    const received: string[] = [];
    broker.subscribe('a', ({ payload }) => void received.push(String(payload)));
    await turns();
    assert.equal(received.length, 0);
    for await (const { payload } of broker.retained.match('a')) received.push(String(payload));
    assert.deepEqual(received, ['old']);
  });

  it('retains the topics of $SYS when it is started, even if it was stopped when the broker started', async () => {
    await using broker = new Broker();
    await broker.features.stop('retainer');
    await broker.start();
    assert.deepEqual(await retainedFor(broker, '$SYS/brokers'), []);
    await broker.features.start('retainer');
    assert.deepEqual(await retainedFor(broker, '$SYS/brokers'), [broker.settings.node]);
  });

  it('persists nothing; earlier stored messages are there after a restart', async () => {
    const store = memoryStore();
    {
      await using broker = await startBroker({ store });
      await broker.publish('a', 'old', { retain: true });
      await broker.features.stop('retainer');
      await broker.publish('a', 'new', { retain: true });
      await broker.publish('b', 'new', { retain: true });
    }
    await using broker = await startBroker({ store });
    await broker.features.start('retainer'); // it is still stopped
    assert.deepEqual(await retainedFor(broker, '#'), ['old']);
  });
});

describe('The stopped feature delayed', () => {
  it('refuses messages to $delayed with 0x90; those that wait are published after the next start', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const client = await rawClient(broker);
    await granted(client, 1, ['a', '$delayed/#']);
    await broker.publish('$delayed/5/a', 'due');
    await broker.publish('$delayed/60/a', 'later');
    await broker.features.stop('delayed');
    client.send(publish('$delayed/1/a', 'x', { qos: 1, messageId: 1 }));
    assert.equal((await client.next('puback')).reasonCode, 0x90);
    await assert.rejects(broker.publish('$delayed/1/a', 'x'), { code: 'DELAYED_OFF', message: /feature delayed/ });
    await clock.advance('30s');
    assert.deepEqual(await payloads(client), []);
    assert.equal(broker.metrics.gauge('messages.delayed'), 2);

    await broker.features.start('delayed');
    await clock.advance(1);
    assert.deepEqual(await payloads(client), ['due']);
    await clock.advance('30s');
    assert.deepEqual(await payloads(client), ['later']);
    await broker.publish('$delayed/1/a', 'again');
    await clock.advance('1s');
    assert.deepEqual(await payloads(client), ['again']);
  });

  it('can start although the option delayedPublish is false', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock, delayedPublish: false });
    const client = await rawClient(broker);
    await granted(client, 1, 'a');
    await broker.features.start('delayed');
    await broker.publish('$delayed/1/a', 'x');
    await clock.advance('1s');
    assert.deepEqual(await payloads(client), ['x']);
  });

  it('publishes nothing when the broker restarts, or is stopped', async () => {
    const clock = new VirtualClock();
    const store = memoryStore();
    {
      await using broker = await startBroker({ clock, store });
      await broker.publish('$delayed/5/a', 'x');
    }
    await using broker = await startBroker({ clock, store, delayedPublish: false });
    const client = await rawClient(broker, { clientId: 'c', properties: { sessionExpiryInterval: 100 } });
    await granted(client, 1, { topic: 'a', qos: 1 });
    await clock.advance('10s');
    assert.deepEqual(await payloads(client), []);
    await broker.stop();
    await broker.features.start('delayed');
    await clock.advance('10s');
    assert.equal(broker.metrics.counter('messages.publish'), 0);
    await broker.start();
    await clock.advance(1);
    assert.equal(broker.metrics.counter('messages.publish'), 1);
  });

  it('publishes a message once that a hook decides on while the feature is stopped and started', async () => {
    const clock = new VirtualClock();
    let decide = () => {};
    const asked: string[] = [];
    const hook = ({ message }: { message: { topic: string } }) => {
      asked.push(message.topic);
      return new Promise<true>((resolve) => {
        decide = () => resolve(true);
      });
    };
    await using broker = await startBroker({ clock, store: memoryStore(), hookTimeout: '1h' });
    const client = await rawClient(broker);
    await granted(client, 1, 'a');
    await broker.publish('$delayed/5/a', 'once');
    broker.hook('publish', hook);
    await clock.advance('5s');
    assert.deepEqual(asked, ['a']);
    await broker.features.stop('delayed');
    await broker.features.start('delayed');
    await clock.advance('5s');
    assert.deepEqual(asked, ['a']);
    decide();
    await turns();
    assert.deepEqual(await payloads(client), ['once']);
    assert.equal(broker.metrics.gauge('messages.delayed'), 0);
  });
});

describe('The stopped feature rewrite', () => {
  const rewrite = ['old/# ^old/(.+)$ new/$1'];

  it('keeps the topics of PUBLISH, SUBSCRIBE and UNSUBSCRIBE of connected clients unchanged', async () => {
    await using broker = await startBroker({ rewrite });
    const watcher = await rawClient(broker, { clientId: 'watcher' });
    await granted(watcher, 1, 'new/#');
    const client = await rawClient(broker);
    const send = async (payload: string) => {
      client.send(publish('old/x', payload));
      await nothing(client);
    };
    await send('1');
    assert.deepEqual(await messages(watcher), ['new/x 1']);
    await broker.features.stop('rewrite');
    await granted(watcher, 2, 'old/+');
    await send('2');
    assert.deepEqual(await messages(watcher), ['old/x 2']);
    watcher.send(unsubscribe(3, 'old/+'));
    assert.deepEqual((await watcher.next('unsuback')).granted, [0]);
    await broker.features.start('rewrite');
    await send('3');
    assert.deepEqual(await messages(watcher), ['new/x 3']);
    await granted(watcher, 4, 'old/y');
    assert.deepEqual(
      [...broker.sessions.get('watcher').subscriptions()].map(({ filter }) => filter),
      ['new/#', 'new/y']
    );
  });

  for (const mountpoint of ['', 'm/']) {
    it(`maps topic aliases and the last topic again, with the mount point "${mountpoint}"`, async () => {
      await using broker = await startBroker({ rewrite, mountpoint, maxTopicAlias: 5 });
      const seen: string[] = [];
      broker.subscribe('#', ({ topic, payload }) => void seen.push(`${topic} ${payload}`));
      const client = await rawClient(broker);
      const send = async (payload: string) => {
        client.send(
          publish('', payload, { properties: { topicAlias: 1 } }),
          publish('', payload, { properties: { topicAlias: 2 } }),
          publish('old/x', payload)
        );
        await nothing(client);
        return seen.splice(0).map((line) => line.slice(mountpoint.length));
      };
      client.send(
        publish('old/x', '0', { properties: { topicAlias: 1 } }),
        publish('y', '0', { properties: { topicAlias: 2 } })
      );
      assert.deepEqual(await send('1'), ['new/x 0', 'y 0', 'new/x 1', 'y 1', 'new/x 1']);
      await broker.features.stop('rewrite');
      assert.deepEqual(await send('2'), ['old/x 2', 'y 2', 'old/x 2']);
      await broker.features.start('rewrite');
      assert.deepEqual(await send('3'), ['new/x 3', 'y 3', 'new/x 3']);
    });
  }

  it('opens the fast path', async () => {
    await using broker = await startBroker({ rewrite });
    const { publishing } = engineOf(broker);
    assert.equal(publishing.hooks.isFastPathOpen, false);
    await broker.features.stop('rewrite');
    assert.equal(publishing.hooks.isFastPathOpen, true);
    await broker.features.start('rewrite');
    assert.equal(publishing.hooks.isFastPathOpen, false);
  });

  it('changes nothing if it is started without rules', async () => {
    await using broker = await startBroker();
    await broker.features.start('rewrite');
    assert.equal(engineOf(broker).publishing.hooks.isFastPathOpen, true);
  });
});

describe('The stopped feature presence', () => {
  it('publishes no notices about clients', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker);
    await granted(watcher, 1, '$SYS/brokers/+/clients/#');
    const visit = async (clientId: string) => {
      (await rawClient(broker, { clientId })).stream.destroy();
      await turns();
      return (await rest(watcher)).flatMap((packet) =>
        packet.cmd === 'publish' ? [packet.topic.split('/').at(-1)] : []
      );
    };
    assert.deepEqual(await visit('a'), ['connected', 'disconnected']);
    await broker.features.stop('presence');
    assert.deepEqual(await visit('b'), []);
    await broker.features.start('presence');
    assert.deepEqual(await visit('c'), ['connected', 'disconnected']);
  });
});
