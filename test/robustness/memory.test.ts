import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { turns } from '../fuzz/wire.ts';
import { rawClient } from '../support/raw-client.ts';
import { sized } from '../support/samples.ts';
import { client, memory, startTestBed, subscribe } from './support.ts';

describe('Messages that replace each other before any is sent', () => {
  it('releases replaced messages when an app publishes them and waits only for its calls', async () => {
    await using it = await startTestBed();
    const count = sized(20_000, 60_000);
    const before = memory();
    for (let at = 0; at < count; at++) await it.broker.publish('sensors/attic', String(at), { retain: true });
    const grown = memory() - before;
    assert.ok(grown < count * 200, `${grown} bytes more`);
  });

  for (const [what, topic] of [
    ['retained', 'kept/a'],
    ['in the full queue of an offline session', 'queue/a']
  ] as const)
    it(`releases replaced messages, ${what}, when a client publishes them at QoS 0`, async () => {
      await using it = await startTestBed({ maxMqueueLen: 10 });
      const away = await client(it.broker, { clientId: 'away', properties: { sessionExpiryInterval: 3_600 } });
      away.say({
        cmd: 'subscribe',
        messageId: 1,
        subscriptions: [{ topic: 'queue/#', qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 }]
      });
      await turns(2);
      away.wire.destroy();
      const publisher = await client(it.broker);
      await turns(2);
      const before = memory();
      const count = sized(1_200, 4_000);
      for (let at = 0; at < count; at++) {
        const payload = Buffer.alloc(10_000, at & 255);
        publisher.say({ cmd: 'publish', topic, payload, qos: 0, dup: false, retain: topic === 'kept/a' });
        await turns(1);
      }
      const grown = memory() - before;
      assert.ok(grown < count * 3_000, `${grown} bytes more`);
    });
});

describe('Subscriptions that a source has allowed', () => {
  for (const [what, ends] of [
    ['unsubscribed', false],
    ['ended with their sessions', true]
  ] as const)
    it(`releases subscriptions when they are ${what}, long before the answer of the source expires`, async () => {
      const source = { name: 'source', authorize: () => true };
      await using it = await startTestBed({
        auth: [source],
        allowAnonymous: true,
        aclCacheTtl: 3_600_000,
        reasons: false
      });
      let peer = await rawClient(it.broker);
      const run = async (count: number) => {
        for (let at = 0; at < count; at += 100) {
          peer.received.length = 0;
          for (let filter = 0; filter < 100; filter++) {
            peer.send(subscribe(1, 0, `a/${filter}`));
            if (!ends) peer.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: [`a/${filter}`] });
          }
          while (peer.received.length < (ends ? 100 : 200)) await turns(1);
          if (!ends) continue;
          peer.cut();
          peer = await rawClient(it.broker);
        }
      };
      const count = sized(20_000, 60_000);
      await run(1_000);
      const before = memory();
      await run(count);
      const grown = memory() - before;
      assert.ok(grown < sized(2, 3) * 2 ** 20, `${grown} bytes more`);
    });
});
