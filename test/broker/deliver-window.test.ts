import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import { memoryStore } from '../../lib/index.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, payloads, startBroker, turns } from '../support/wire.ts';

type Qos = 1 | 2;

/** A broker whose deliver hook sends `inner` to the same client while it is asked about `outer`, and then answers `answer`. */
async function nestingBroker(qos: Qos, isStored: boolean, answer: boolean | { qos: 0 }) {
  const calls: string[] = [];
  const broker = await startBroker({
    ...(isStored ? { store: memoryStore() } : {}),
    hooks: {
      deliver: ({ message }) => {
        calls.push(String(message.payload));
        if (message.topic !== 'outer') return true;
        const sending = broker.sessions.get('c').send({ topic: 'inner', payload: 'inner', qos });
        sending.catch((error: unknown) => calls.push(String(error)));
        return answer;
      }
    }
  });
  return { broker, calls };
}

/** Connects the client `c` with Receive Maximum 1. */
async function narrowClient(broker: Broker, qos: Qos, clean = true): Promise<RawClient> {
  const properties = { receiveMaximum: 1, ...(clean ? {} : { sessionExpiryInterval: 600 }) };
  const client = await rawClient(broker, { clientId: 'c', clean, properties });
  if (!client.connack?.sessionPresent) await granted(client, 1, { topic: '#', qos });
  return client;
}

async function texts(client: RawClient): Promise<string[]> {
  await turns(50);
  return payloads(client);
}

async function complete(client: RawClient, messageId: number, qos: Qos): Promise<void> {
  if (qos === 1) {
    client.send({ cmd: 'puback', messageId, reasonCode: 0 });
    return;
  }
  client.send({ cmd: 'pubrec', messageId, reasonCode: 0 });
  await client.next('pubrel');
  client.send({ cmd: 'pubcomp', messageId, reasonCode: 0 });
}

describe('A deliver hook that sends another message to the same client', () => {
  for (const qos of [1, 2] as const)
    for (const isStored of [false, true]) {
      const title = `(QoS ${qos}${isStored ? ', with a store' : ''})`;

      it(`does not exceed Receive Maximum, and asks once about each message ${title}`, async () => {
        const { broker, calls } = await nestingBroker(qos, isStored, true);
        await using _ = broker;
        const client = await narrowClient(broker, qos, !isStored);
        await broker.publish('outer', 'outer', { qos });
        assert.deepEqual(await texts(client), ['outer']);
        await complete(client, 1, qos);
        assert.deepEqual(await texts(client), ['inner']);
        await complete(client, 2, qos);
        assert.deepEqual(await texts(client), []);
        assert.deepEqual(calls, ['outer', 'inner']);
      });

      it(`sends that message although the hook refuses the one that it was asked about ${title}`, async () => {
        const { broker } = await nestingBroker(qos, isStored, false);
        await using _ = broker;
        const client = await narrowClient(broker, qos, !isStored);
        await broker.publish('outer', 'outer', { qos });
        assert.deepEqual(await texts(client), ['inner']);
      });

      it(`sends that message although the hook changes the other one to QoS 0 ${title}`, async () => {
        const { broker } = await nestingBroker(qos, isStored, { qos: 0 });
        await using _ = broker;
        const client = await narrowClient(broker, qos, !isStored);
        await broker.publish('outer', 'outer', { qos });
        assert.deepEqual((await texts(client)).sort(), ['inner', 'outer']);
      });

      it(`does not exceed Receive Maximum when the queue is sent ${title}`, async () => {
        const { broker } = await nestingBroker(qos, isStored, true);
        await using _ = broker;
        (await narrowClient(broker, qos, false)).cut();
        await turns(50);
        await broker.publish('outer', 'outer', { qos });
        const client = await narrowClient(broker, qos, false);
        const got: string[][] = [];
        for (let id = 1; id <= 2; id++) {
          got.push(await texts(client));
          await complete(client, id, qos);
        }
        assert.deepEqual(got, [['outer'], ['inner']]);
      });
    }

  it('sends the messages of the hook when it refuses every message of the queue', async () => {
    const { broker } = await nestingBroker(1, false, false);
    await using _ = broker;
    (await narrowClient(broker, 1, false)).cut();
    await turns();
    for (let count = 0; count < 1_000; count++) await broker.publish('outer', 'outer', { qos: 1 });
    const client = await narrowClient(broker, 1, false);
    for (let id = 1; id <= 1_000; id++) {
      const { payload, messageId } = (await client.next('publish')) as { payload: Buffer; messageId: number };
      assert.equal(String(payload), 'inner');
      await complete(client, messageId, 1);
    }
    assert.deepEqual(await texts(client), []);
  });
});
