import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encode } from '../../lib/packets/encode.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish, startBroker, turns } from '../support/wire.ts';

describe('a run of QoS 0 messages', () => {
  it('ends where the packet begins that the chunk does not have whole, wherever it is cut', async () => {
    await using broker = await startBroker();
    const subscriber = await rawClient(broker);
    await granted(subscriber, 1, ['a', 'b']);
    const publisher = await rawClient(broker);
    const last = [publish('a', 'three'), publish('b', 'three'), publish('a', 'three', { qos: 1, messageId: 1 })];
    for (const third of last) {
      const run = Buffer.concat([encode(publish('a', 'one'), 5), encode(publish('a', 'two'), 5)]);
      const bytes = Buffer.concat([run, encode(third, 5)]);
      for (let cut = run.length; cut < bytes.length; cut++) {
        publisher.send(bytes.subarray(0, cut));
        await turns(3);
        publisher.send(bytes.subarray(cut));
        await turns(3);
        assert.deepEqual(await payloads(subscriber), ['one', 'two', 'three'], `cut at ${cut}`);
      }
    }
  });
});
