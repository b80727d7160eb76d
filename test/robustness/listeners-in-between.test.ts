import assert from 'node:assert/strict';
import { subscribe as subscribeChannel, unsubscribe as unsubscribeChannel } from 'node:diagnostics_channel';
import { describe, it } from 'node:test';
import type { PacketTap } from '../../lib/index.ts';
import { turns } from '../fuzz/wire.ts';
import { FaultyStore } from '../store/faulty-store.ts';
import { client, publish, startTestBed, subscribe } from './support.ts';

describe('A listener that makes the broker read other packets', () => {
  for (const version of [4, 5] as const) {
    it(`[MQTT-4.3.3-8] does not change the packet id of a PUBREL, version ${version}`, async () => {
      await using it = await startTestBed();
      const { broker } = it;
      const subscriber = await client(broker, { version, clientId: 'subscriber' });
      const other = await client(broker, { version });
      broker.on('message.acked', () => other.say({ cmd: 'puback', messageId: 7, reasonCode: 0 }));
      subscriber.say(subscribe(1, 2, 'a'));
      await turns(2);
      const publisher = await client(broker, { version });
      publisher.say(publish('a', '', 2, 1));
      await turns(2);
      const message = subscriber.take().find(({ cmd }) => cmd === 'publish');
      assert.ok(message?.cmd === 'publish');
      subscriber.say({ cmd: 'pubrec', messageId: message.messageId as number, reasonCode: 0 });
      await turns(2);
      const answers = subscriber.take().map((packet) => (packet.cmd === 'pubrel' ? packet.messageId : packet.cmd));
      assert.deepEqual(answers, [message.messageId]);
      subscriber.say({ cmd: 'pubcomp', messageId: message.messageId as number, reasonCode: 0 });
      await turns(2);
      assert.equal(broker.sessions.get('subscriber').counters().inflight, 0);
    });
  }

  it('acknowledges no message before its commit [STORE_FAILED]', async () => {
    const store = new FaultyStore();
    await using it = await startTestBed({ store });
    const publisher = await client(it.broker, { clientId: 'publisher' });
    const retain = (id: number) => publisher.say({ ...publish(`state/${id}`, 'x', 1, id), retain: true } as never);
    const onSent = (tap: unknown) => {
      const { broker, bytes } = tap as PacketTap;
      if (broker !== it.broker || bytes[0] >> 4 !== 4 || bytes[3] > 1) return;
      store.fault = 'rejects';
      retain(2);
    };
    subscribeChannel('embermq:packet:sent', onSent);
    try {
      retain(1);
      await turns(5);
    } finally {
      unsubscribeChannel('embermq:packet:sent', onSent);
    }
    store.fault = undefined;
    await it.pass(1_000);
    const answers = publisher.take().map((packet) => packet.cmd === 'puback' && [packet.messageId, packet.reasonCode]);
    assert.deepEqual(answers, [
      [1, 0x10],
      [2, 0x97]
    ]);
  });
});
