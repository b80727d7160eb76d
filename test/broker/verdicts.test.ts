import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker, type Message } from '../../lib/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish, startBroker, turns } from '../support/wire.ts';

/**
 * A broker whose authorizePublish hook with `cache: 'route'` answers according to `mayPublish`, and the topics that the hook was asked
 * about.
 */
async function brokerWithPolicy(mayPublish: (clientId: string, topic: string) => boolean | Promise<boolean>) {
  const broker = await startBroker();
  const asked: string[] = [];
  const remove = broker.hook(
    'authorizePublish',
    ({ client, message }) => {
      asked.push(`${client.clientId} ${message.topic}`);
      return mayPublish(client.clientId, message.topic);
    },
    { cache: 'route' }
  );
  return { broker, asked, remove };
}

describe("An authorizePublish hook with cache: 'route'", () => {
  it('asks once for each client and topic, at every QoS', async () => {
    const { broker, asked } = await brokerWithPolicy((_clientId, topic) => topic !== 'no');
    await using _ = broker;
    const reader = await rawClient(broker, { clientId: 'reader' });
    await granted(reader, 1, '#');
    for (const clientId of ['a', 'b']) {
      const writer = await rawClient(broker, { clientId });
      for (const payload of ['1', '2', '3']) {
        writer.send(publish('yes', payload), publish('no', payload), publish('yes', `${payload}+`));
        await turns(4);
      }
      writer.send(publish('yes', '4', { qos: 1, messageId: 1 }), publish('no', '4', { qos: 1, messageId: 2 }));
      await turns(4);
    }
    assert.deepEqual(asked, ['a yes', 'a no', 'b yes', 'b no']);
    const each = ['1', '1+', '2', '2+', '3', '3+', '4'];
    assert.deepEqual(await payloads(reader), [...each, ...each]);
  });

  it('refuses a topic with its reason code each time, in MQTT 5.0 at QoS 1 [MQTT-3.4.2-1]', async () => {
    const broker = createBroker({ allowAnonymous: true });
    await using _ = await broker.start();
    let count = 0;
    broker.hook(
      'authorizePublish',
      () => {
        count++;
        return { allow: false, reasonCode: 0x99 };
      },
      { cache: 'route' }
    );
    const client = await broker.connect({ clientId: 'a' });
    for (let i = 0; i < 3; i++) await assert.rejects(client.publish('t', 'x', { qos: 1 }), { reasonCode: 0x99 });
    assert.equal(count, 1);
  });

  it('asks again after invalidate, for one client or for all', async () => {
    let isAllowed = true;
    const { broker, asked } = await brokerWithPolicy(() => isAllowed);
    await using _ = broker;
    const reader = await rawClient(broker, { clientId: 'reader' });
    await granted(reader, 1, '#');
    const a = await rawClient(broker, { clientId: 'a' });
    const b = await rawClient(broker, { clientId: 'b' });
    const round = async (payload: string) => {
      a.send(publish('t', `a${payload}`));
      await turns(4);
      b.send(publish('t', `b${payload}`));
      await turns(4);
    };
    for (const payload of ['1', '2', '3']) await round(payload);
    isAllowed = false;
    await round('4');
    broker.access.invalidate('a');
    await round('5');
    broker.access.invalidate();
    await round('6');
    assert.deepEqual(asked, ['a t', 'b t', 'a t', 'a t', 'b t']);
    assert.deepEqual(await payloads(reader), ['a1', 'b1', 'a2', 'b2', 'a3', 'b3', 'a4', 'b4', 'b5']);
    assert.throws(() => broker.access.invalidate(7 as never), { code: 'CLIENT_ID_INVALID' });
  });

  it('ignores its decision when it is removed, or when a hook is added', async () => {
    const { broker, asked, remove } = await brokerWithPolicy(() => true);
    await using _ = broker;
    const reader = await rawClient(broker, { clientId: 'reader' });
    await granted(reader, 1, '#');
    const a = await rawClient(broker, { clientId: 'a' });
    for (const payload of ['1', '2', '3']) {
      a.send(publish('t', payload));
      await turns(4);
    }
    const removeOther = broker.hook('authorizePublish', () => false, { isFirst: true });
    a.send(publish('t', 'refused'));
    await turns(4);
    removeOther();
    a.send(publish('t', '4'));
    await turns(4);
    remove();
    a.send(publish('t', '5'));
    await turns(4);
    assert.deepEqual(asked, ['a t', 'a t']);
    assert.deepEqual(await payloads(reader), ['1', '2', '3', '4', '5']);
  });

  it('accepts a promise, and discards an answer from before invalidate', async () => {
    const answers: ((isAllowed: boolean) => void)[] = [];
    const { broker, asked } = await brokerWithPolicy(() => new Promise((resolve) => answers.push(resolve)));
    await using _ = broker;
    const reader = await rawClient(broker, { clientId: 'reader' });
    await granted(reader, 1, '#');
    const a = await rawClient(broker, { clientId: 'a' });
    a.send(publish('t', '1'), publish('t', '2'));
    await turns(4);
    broker.access.invalidate();
    answers[0](true);
    await turns(4);
    assert.equal(asked.length, 2);
    answers[1](false);
    await turns(4);
    a.send(publish('t', '3'));
    await turns(4);
    assert.equal(asked.length, 2);
    assert.deepEqual(await payloads(reader), ['1']);
  });

  it('asks again if the hook has thrown', async () => {
    let count = 0;
    const { broker } = await brokerWithPolicy(() => {
      if (++count === 1) throw new Error('the database is away');
      return true;
    });
    await using _ = broker;
    broker.on('error', () => {});
    const reader = await rawClient(broker, { clientId: 'reader' });
    await granted(reader, 1, '#');
    const a = await rawClient(broker, { clientId: 'a' });
    for (const payload of ['1', '2', '3']) {
      a.send(publish('t', payload));
      await turns(4);
    }
    assert.equal(count, 2);
    assert.deepEqual(await payloads(reader), ['2', '3']);
  });

  it('caches at most 256 topics for a connection, and asks about others again', async () => {
    const { broker, asked } = await brokerWithPolicy(() => true);
    await using _ = broker;
    const a = await rawClient(broker, { clientId: 'a' });
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 300; i++) a.send(publish(`t/${i}`, 'x'));
      a.send(publish('t/299', 'x'));
      await turns(20);
    }
    assert.equal(asked.length, 600);
  });

  it('refuses the option for other hooks, and other values [OPTION_INVALID]', () => {
    const broker = createBroker();
    const hook = () => true;
    assert.throws(() => broker.hook('publish', hook, { cache: 'route' }), { code: 'OPTION_INVALID' });
    assert.throws(() => broker.hook('authorizePublish', hook, { cache: true as never }), { code: 'OPTION_INVALID' });
  });
});

describe('A listener with a topic filter', () => {
  it('receives only the messages of its topics, also on topics that were in use before', async () => {
    await using broker = await startBroker();
    const reader = await rawClient(broker, { clientId: 'reader' });
    await granted(reader, 1, '#');
    const a = await rawClient(broker, { clientId: 'a' });
    const round = async (payload: string) => {
      for (const topic of ['a/1', 'b/1', 'a/1']) a.send(publish(topic, payload));
      await turns(4);
    };
    await round('before');
    await round('before');
    const heard: string[] = [];
    const listener = ({ message }: { message: Message }) => heard.push(`${message.topic} ${message.payload}`);
    broker.on('message.publish', listener, { filter: 'a/#' });
    await round('during');
    broker.off('message.publish', listener);
    await round('after');
    assert.deepEqual(heard, ['a/1 during', 'a/1 during']);
    assert.equal((await payloads(reader)).length, 12);
  });

  it('receives its topics in addition to a listener of all topics', async () => {
    await using broker = await startBroker();
    const heard: string[] = [];
    broker.on('message.publish', ({ message }) => heard.push(`all ${message.topic}`));
    broker.on('message.publish', ({ message }) => heard.push(`one ${message.topic}`), { filter: 'a' });
    await broker.publish({ topic: 'a', payload: 'x' });
    await broker.publish({ topic: 'b', payload: 'x' });
    assert.deepEqual(heard, ['all a', 'one a', 'all b']);
  });

  it('receives deliveries and drops on its topics', async () => {
    await using broker = await startBroker();
    const heard: string[] = [];
    broker.on('message.delivered', ({ message }) => heard.push(`delivered ${message.topic}`), { filter: 'a/+' });
    broker.on('message.dropped', ({ message }) => heard.push(`dropped ${message.topic}`), { filter: 'b/+' });
    const reader = await rawClient(broker, { clientId: 'reader' });
    await granted(reader, 1, 'a/+');
    await granted(reader, 2, 'c/+');
    const a = await rawClient(broker, { clientId: 'a' });
    for (let i = 0; i < 2; i++) {
      for (const topic of ['a/1', 'b/1', 'c/1']) a.send(publish(topic, 'x'));
      await turns(4);
    }
    assert.deepEqual(heard, ['delivered a/1', 'dropped b/1', 'delivered a/1', 'dropped b/1']);
  });

  it('refuses a filter that is not valid, or on an event without a topic', () => {
    const broker = createBroker();
    const on = (event: string, filter: unknown) => () =>
      broker.on(event as 'message.publish', () => {}, { filter: filter as string });
    assert.throws(on('message.publish', 'a/#/b'), { code: 'TOPIC_FILTER_INVALID' });
    assert.throws(on('message.publish', 7), { code: 'TOPIC_FILTER_INVALID' });
    assert.throws(on('client.connected', 'a'), { code: 'OPTION_INVALID' });
  });
});
