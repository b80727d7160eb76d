import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { startBroker, subscribe, turns } from '../support/wire.ts';

describe('session.send', () => {
  it('sends a message to one client only, whether or not it has a subscription', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using one = await kit.connect({ clientId: 'one' });
    await using two = await kit.connect({ clientId: 'two' });
    const seen: string[] = [];
    for (const [name, client] of Object.entries({ one, two }))
      client.on('message', ({ topic, payload, qos, retain }) =>
        seen.push(`${name} ${topic} ${payload} ${qos} ${retain}`)
      );
    await two.subscribe('#');
    const session = broker.sessions.get('one');
    assert.equal(await session?.send({ topic: 'a', payload: 'x', qos: 1, retain: true }), true);
    await clock.settle();
    assert.deepEqual(seen, ['one a x 1 true']);
    assert.equal(await broker.retained.get('a'), undefined);
  });

  it('queues the message while the client is away, and persists it', async () => {
    const store = memoryStore();
    const options = { clientId: 'c', clean: false, sessionExpiry: 3600, protocolVersion: 5 } as const;
    {
      await using kit = await createTestBroker({ store, zones: { external: { mountpoint: 'm/' } } });
      const client = await kit.connect(options);
      await client.disconnect();
      assert.equal(await kit.broker.sessions.get('c')?.send({ topic: 'a', payload: 'kept', qos: 1 }), true);
    }
    await using kit = await createTestBroker({ store, zones: { external: { mountpoint: 'm/' } } });
    await using client = await kit.connect(options);
    const seen: string[] = [];
    client.on('message', ({ topic, payload }) => seen.push(`${topic} ${payload}`));
    await kit.clock.settle();
    assert.deepEqual(seen, ['a kept']);
  });

  it('refuses topics that are not valid, and sessions that have ended', async () => {
    await using kit = await createTestBroker();
    const client = await kit.connect({ clientId: 'c' });
    const session = kit.broker.sessions.get('c');
    await assert.rejects(session?.send({ topic: 'a/#', payload: '' }) as Promise<boolean>, {
      code: 'TOPIC_NAME_INVALID'
    });
    await client.disconnect();
    await assert.rejects(session?.send({ topic: 'a', payload: '' }) as Promise<boolean>, { code: 'SESSION_ENDED' });
  });
});

describe('the events of a client', () => {
  it('reports a SUBSCRIBE with all its filters and answers', async () => {
    await using broker = await startBroker();
    const seen: string[] = [];
    broker.on('client.suback', ({ client, results }) => {
      seen.push(
        `${client.clientId} ${results.map(({ filter, options, reasonCode }) => `${filter} ${options.qos} ${reasonCode}`)}`
      );
    });
    broker.hook('authorizeSubscribe', ({ filter }) => filter !== 'no');
    const client = await rawClient(broker, { clientId: 'c' });
    client.send(subscribe(1, ['a', 'no', 'b']));
    await turns(4);
    assert.deepEqual(seen, ['c a 0 0,no 0 135,b 0 0']);
  });

  it('reports PINGREQ, and every connection that closes', async () => {
    await using broker = await startBroker();
    const seen: string[] = [];
    broker.on('client.ping', ({ client }) => seen.push(`ping ${client.clientId}`));
    broker.on('connection.closed', ({ client, isAccepted }) => seen.push(`closed ${client.clientId} ${isAccepted}`));
    const client = await rawClient(broker, { clientId: 'c' });
    client.send({ cmd: 'pingreq' });
    await turns(4);
    client.stream.destroy();
    await turns(4);
    broker.hook('authenticate', () => false);
    await assert.rejects(broker.connect({ clientId: 'd' }));
    await turns(4);
    assert.deepEqual(seen, ['ping c', 'closed c true', 'closed d false']);
  });
});
