import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish, startBroker, turns } from '../support/wire.ts';

describe('The fast path of QoS 0 messages', () => {
  it('delivers the first message of a topic, and those after it, complete to handlers and to clients of every version', async () => {
    await using broker = await startBroker();
    const heard: string[] = [];
    broker.subscribe('#', ({ topic, payload }) => {
      heard.push(`${topic} ${payload}`);
    });
    for (const from of [4, 5] as const) {
      const writer = await rawClient(broker, { version: from });
      for (const to of [3, 4, 5] as const) {
        const reader = await rawClient(broker, { version: to });
        const topic = `from/${from}/to/${to}`;
        await granted(reader, 1, topic);
        for (const payload of ['1', '2', '3']) {
          writer.send(publish(topic, payload));
          await turns(4);
        }
        writer.send(publish(topic, '4'), publish(topic, '5'));
        await turns(4);
        assert.deepEqual(await payloads(reader), ['1', '2', '3', '4', '5']);
        const own = heard.filter((line) => line.startsWith(`${topic} `)).map((line) => line.slice(topic.length + 1));
        assert.deepEqual(own, ['1', '2', '3', '4', '5']);
      }
    }
  });

  it('raises messages to the QoS of a subscription if upgradeQos is on', async () => {
    await using broker = await startBroker({ upgradeQos: true });
    const [reader, writer] = [await rawClient(broker), await rawClient(broker)];
    await granted(reader, 1, { topic: 't', qos: 1 });
    for (const payload of ['first', 'second', 'third']) {
      writer.send(publish('t', payload));
      const message = await reader.next('publish');
      assert.deepEqual([`${message.payload}`, message.qos], [payload, 1]);
    }
  });
});
