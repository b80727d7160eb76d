import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rawClient } from '../support/raw-client.ts';
import { granted, nothing, payloads, publish, refused, startBroker, subscribe, unsubscribe } from '../support/wire.ts';

const LONGEST = 65_535;

const ILL_FORMED = ['a#', 'a/#/b', '#/', '#a', 'a+', '+a', 'a/+b/c', 'ab/+e', '++', '##', '/#/', 'a/b+'];

describe('Topic names and topic filters', () => {
  it('[MQTT-4.7.0-1] closes with 0x82 for a wildcard in a topic name', async () => {
    await using broker = await startBroker();
    for (const topic of ['a/+', '#', 'a+b', 'a/#', '+']) {
      const client = await rawClient(broker);
      const name = Buffer.from(topic);
      client.send(Buffer.from([0x30, name.length + 3, 0, name.length, ...name, 0]));
      await refused(client, 0x82);
    }
  });

  for (const version of [3, 4, 5] as const) {
    const ids = version === 5 ? '[MQTT-4.7.1-1] [MQTT-4.7.1-2]' : '[MQTT3-4.7.1-2] [MQTT3-4.7.1-3]';

    it(`${ids} closes with 0x82 for a filter whose wildcard does not fill a level, or whose "#" is not last, version ${version}`, async () => {
      await using broker = await startBroker();
      const shared = version === 5 ? ['$share/g/a#', '$share/g/#/a'] : ['$share/g/+a'];
      for (const filter of [...ILL_FORMED, ...shared]) {
        for (const request of [subscribe(1, ['fine', filter]), unsubscribe(1, 'fine', filter)]) {
          const client = await rawClient(broker, { version });
          client.send(request);
          await refused(client, 0x82);
          assert.equal(client.received.filter(({ cmd }) => cmd === 'suback' || cmd === 'unsuback').length, 0, filter);
        }
      }
      assert.equal(broker.metrics.counter('client.subscribe'), 0);
    });
  }

  it('[MQTT-4.7.1-1] [MQTT-4.7.1-2] accepts wildcards that fill a whole level', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    const good = [
      '#',
      '+',
      '/#',
      '+/+',
      '+/#',
      'a/+/b',
      '/+/',
      '/',
      '//',
      'a/#',
      '$share/g/#',
      '$share/g/+/a',
      '$SYS/#'
    ];
    assert.deepEqual(
      await granted(client, 2, good),
      good.map(() => 0)
    );
  });

  it('[MQTT-4.7.1-1] [MQTT-4.7.1-2] matches as the specification says', async () => {
    const cases: [filter: string, topic: string, does: boolean][] = [
      ['sport/tennis/player1/#', 'sport/tennis/player1', true],
      ['sport/tennis/player1/#', 'sport/tennis/player1/score/wimbledon', true],
      ['sport/tennis/player1/#', 'sport/tennis/player10', false],
      ['sport/+', 'sport', false],
      ['sport/+', 'sport/', true],
      ['sport/+', 'sport/a/b', false],
      ['+/+', '/finance', true],
      ['/+', '/finance', true],
      ['+', '/finance', false],
      ['+', 'finance', true],
      ['#', '/', true],
      ['a//b', 'a/b', false],
      ['a/+/b', 'a//b', true],
      ['a/b/', 'a/b', false]
    ];
    await using broker = await startBroker();
    const publisher = await rawClient(broker);
    for (const [filter, topic, does] of cases) {
      const client = await rawClient(broker);
      await granted(client, 1, filter);
      publisher.send(publish(topic, 'x'));
      await nothing(publisher);
      assert.deepEqual(await payloads(client), does ? ['x'] : [], `${filter} and ${topic}`);
      client.stream.destroy();
    }
  });

  it('[MQTT-4.7.2-1] does not match a filter that begins with a wildcard with a topic name that begins with "$"', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    await granted(client, 1, ['#', '+/a', '+/#', '+/+', '$share/g/#']);
    const other = await rawClient(broker);
    await granted(other, 1, ['$own/#', '$own/+']);
    await broker.publish('$own/a', 'live', { retain: true });
    assert.deepEqual(await payloads(other), ['live']);
    await nothing(client);
    await granted(client, 2, ['#', '+/a']); // nor is it sent as a retained message
    await nothing(client);
  });

  it('[MQTT-4.7.2-1] applies the same rule under a mount point, to the topic name as the client knows it', async () => {
    await using broker = await startBroker({ mountpoint: 'tenant/' });
    const client = await rawClient(broker);
    await granted(client, 1, ['#', '+/a']);
    const exact = await rawClient(broker);
    await granted(exact, 1, '$own/a');
    const publisher = await rawClient(broker);
    publisher.send(publish('$own/a', 'x', { retain: true }));
    await nothing(publisher);
    assert.deepEqual(await payloads(exact), ['x']);
    await nothing(client);
    await granted(client, 2, ['#', '+/a']);
    await nothing(client);
  });

  it('[MQTT-4.7.3-1] closes with 0x82 for an empty topic name without an alias, and for an empty filter', async () => {
    await using broker = await startBroker();
    for (const bytes of ['30 03 0000 00', '32 05 0000 0001 00', '82 06 0001 00 0000 00', 'a2 05 0001 00 0000']) {
      const client = await rawClient(broker);
      client.sendBytes(bytes);
      await refused(client, 0x82);
    }
  });

  it('[MQTT-4.7.3-1] closes with 0x82 for a shared filter without a filter after the group, and answers 0x8F for $queue/, which is an extension', async () => {
    await using broker = await startBroker();
    for (const filter of ['$share/g/', '$share/g']) {
      const client = await rawClient(broker);
      client.send(subscribe(1, filter));
      await refused(client, 0x82);
    }
    const client = await rawClient(broker);
    assert.deepEqual(await granted(client, 1, ['$queue/', 'a']), [0x8f, 0]);
  });

  it('[MQTT-4.7.3-2] closes with 0x81 for U+0000 in a topic name or a filter', async () => {
    await using broker = await startBroker();
    for (const bytes of ['30 06 0003 610062 00', '82 09 0001 00 0003 610062 00', 'a2 08 0001 00 0003 610062']) {
      const client = await rawClient(broker);
      client.sendBytes(bytes);
      await refused(client, 0x81);
    }
  });

  it('[MQTT-4.7.3-3] accepts topic names and filters of up to 65,535 bytes', async () => {
    await using broker = await startBroker({ maxTopicLevels: 0 });
    const publisher = await rawClient(broker);
    for (const topic of [
      'x'.repeat(LONGEST),
      '/'.repeat(LONGEST),
      `${'a/'.repeat(32_767)}b`,
      `é${'é'.repeat(32_766)}`
    ]) {
      const client = await rawClient(broker);
      assert.deepEqual(await granted(client, 1, topic), [0]);
      publisher.send(publish(topic, 'x', { qos: 1, messageId: 1 }));
      assert.equal((await publisher.next('puback')).reasonCode, 0);
      assert.equal((await client.next('publish')).topic, topic);
      client.stream.destroy();
      await nothing(publisher);
    }
    const client = await rawClient(broker);
    assert.deepEqual(await granted(client, 1, [`${'+/'.repeat(32_767)}#`, `${'+/'.repeat(32_767)}+`]), [0, 0]);
    publisher.send(publish('/'.repeat(32_767), 'deep'));
    await nothing(publisher);
    assert.deepEqual(await payloads(client), ['deep']);
  });

  it('[MQTT-4.7.3-3] refuses more levels than the option allows with 0x90 and 0x8F', async () => {
    await using broker = await startBroker({ maxTopicLevels: 4 });
    const client = await rawClient(broker);
    assert.deepEqual(
      await granted(client, 1, ['a/b/c/d', 'a/b/c/d/e', '////', '$share/g/a/b/c/d']),
      [0, 0x8f, 0x8f, 0]
    );
    client.send(publish('a/b/c/d', 'x'));
    assert.deepEqual(await payloads(client), ['x', 'x']); // one copy for each subscription
    client.send(publish('a/b/c/d/e', 'x'));
    await refused(client, 0x90);
  });

  it('[MQTT-4.7.3-4] folds, normalizes and drops no character', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    const topics = [
      'é',
      'e\u0301',
      '\ufeffa',
      'a',
      'A',
      ' a',
      'a ',
      'ſ',
      's',
      '\u2126',
      'Ω',
      'K',
      '\u212a',
      '\u200ba',
      '😀',
      'a\u00ada'
    ];
    await granted(client, 1, topics);
    for (const topic of topics) {
      client.send(publish(topic, 'x'));
      assert.equal((await client.next('publish')).topic, topic);
      await nothing(client);
    }
  });
});
