import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { turns } from '../fuzz/wire.ts';
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
      assert.equal(broker.session('subscriber').figures().inflight, 0);
    });
  }
});
