import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Random } from '../fuzz/random.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, rest, startBroker } from '../support/wire.ts';

type Request = Exclude<Parameters<typeof granted>[2], string | readonly unknown[]>;

/** The messages that a client receives: topics and retain flags. The QoS is that of the subscription when a message is sent, so it may differ. */
async function received(client: RawClient): Promise<string[]> {
  const packets: string[] = [];
  for (const packet of await rest(client)) {
    if (packet.cmd !== 'publish') continue;
    packets.push(`${packet.topic} retain ${packet.retain}`);
  }
  return packets;
}

describe('A SUBSCRIBE with several filters', () => {
  it('[MQTT-3.8.4-5] sends the same retained messages as one SUBSCRIBE for each filter, even if filters occur several times', async () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    const random = new Random(seed);
    await using broker = await startBroker();
    for (const topic of ['a/1', 'a/2', 'b/1']) await broker.publish(topic, topic, { retain: true, qos: 1 });
    for (let round = 0; round < 150; round++) {
      const request = (): Request => ({
        topic: random.pick(['a/+', 'a/+', 'b/1', '#']),
        qos: random.pick([0, 1, 2] as const),
        retainHandling: random.pick([0, 1, 2] as const),
        retainAsPublished: random.once(2)
      });
      const before = Array.from({ length: random.below(2) }, request);
      const requests = Array.from({ length: 1 + random.below(4) }, request);
      const text = `SEED=${seed} round ${round}: ${JSON.stringify({ before, requests })}`;
      const [together, apart] = [await rawClient(broker), await rawClient(broker)];
      for (const client of [together, apart]) {
        if (before.length > 0) await granted(client, 1, before);
        await rest(client);
      }
      const codes: number[] = [];
      const all: string[] = [];
      for (const [at, each] of requests.entries()) {
        codes.push(...(await granted(apart, 2 + at, each)));
        all.push(...(await received(apart)));
      }
      assert.deepEqual(await granted(together, 2, requests), codes, text);
      assert.deepEqual((await received(together)).toSorted(), all.toSorted(), text);
      for (const client of [together, apart]) client.cut();
    }
  });
});
