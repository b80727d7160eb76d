import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker } from '../../../lib/testing/index.ts';
import { rawClient } from '../../support/raw-client.ts';
import { granted } from '../../support/wire.ts';

describe('The causes at a receiver', () => {
  it('says that a message expired in the queue of the client', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const away = await broker.connect({ clientId: 'away', sessionExpiry: 3_600 });
    await away.subscribe('a', { qos: 1 });
    await away.disconnect();
    await broker.publish('a', 'x', { qos: 1, properties: { messageExpiryInterval: 5 } });
    await kit.clock.advance('6s');
    const back = await broker.connect({ clientId: 'away', clean: false, sessionExpiry: 3_600 });
    await back.ping();
    const { causes } = await broker.monitor.why({ topic: 'a', clientId: 'away' });
    const [{ code, kind, text }] = causes;
    assert.deepEqual([code, kind], ['expired', 'recorded']);
    assert.equal(text, 'The message to topic "a" expired before client "away" received it.');
    await back.disconnect();
  });

  it('says that a message is larger than the client accepts', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const small = await rawClient(broker, { clientId: 'small', properties: { maximumPacketSize: 60 } });
    await granted(small, 1, [{ topic: 'a' }]);
    await broker.publish('a', 'x'.repeat(80));
    const { causes } = await broker.monitor.why({ topic: 'a', clientId: 'small' });
    const [{ code, kind, evidence }] = causes;
    assert.deepEqual([code, kind, evidence.clientId], ['too_large', 'recorded', 'small']);
  });
});
