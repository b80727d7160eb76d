import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { Lives } from '../store/support.ts';

describe('broker.sessions', () => {
  it('counts and lists the sessions in order of creation, and finds one by its client id', async () => {
    await using broker = await createBroker().start();
    const away = await broker.connect({ clientId: 'away', sessionExpiry: 60 });
    await broker.connect({ clientId: 'here' });
    const gone = broker.nextEvent('client.disconnected');
    await away.disconnect();
    await gone;
    assert.equal(broker.sessions.count, 2);
    assert.deepEqual(
      [...broker.sessions].map(({ clientId, state }) => `${clientId} ${state}`),
      ['away disconnected', 'here connected']
    );
    assert.equal(broker.sessions.get('away').clientId, 'away');
    assert.deepEqual([broker.sessions.has('away'), broker.sessions.has('nobody')], [true, false]);
    assert.throws(() => broker.sessions.get('nobody'), { code: 'SESSION_NOT_FOUND' });
  });

  it('kicks a client with the options of SessionHandle.kick', async () => {
    await using broker = await createBroker().start();
    const client = await broker.connect({ clientId: 'c', sessionExpiry: 60 });
    const closed = broker.nextEvent('client.disconnected');
    await broker.sessions.kick('c', { session: 'keep', reasonCode: 0x9c });
    assert.equal((await closed).reasonCode, 0x9c);
    assert.equal(broker.sessions.get('c').state, 'disconnected');
    await broker.sessions.kick('c');
    assert.equal(broker.sessions.has('c'), false);
    await assert.rejects(broker.sessions.kick('c'), { code: 'SESSION_NOT_FOUND' });
    await assert.rejects(broker.sessions.kick('c', { why: 1 } as object), { code: 'SESSION_NOT_FOUND' });
    await client.disconnect().catch(() => undefined);
  });

  it('discards the session of a client that is not connected', async () => {
    await using broker = await createBroker().start();
    const client = await broker.connect({ clientId: 'c', sessionExpiry: 60 });
    await assert.rejects(broker.sessions.discard('c'), { code: 'SESSION_RUNNING' });
    assert.equal(broker.sessions.get('c').state, 'connected');
    const gone = broker.nextEvent('client.disconnected');
    await client.disconnect();
    await gone;
    await broker.sessions.discard('c');
    assert.equal(broker.sessions.has('c'), false);
    await assert.rejects(broker.sessions.discard('c'), { code: 'SESSION_NOT_FOUND' });
  });

  it('resolves a discard when the end of the session is persisted', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    await lives.kit.broker.sessions.discard('a');
    await lives.kill();
    assert.equal(lives.kit.broker.sessions.has('a'), false);
  });

  it('kicks the clients that satisfy conditions, but not one that returns in the meantime', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    for (let n = 0; n < 150; n++) await kit.connect({ clientId: `c${n}`, username: n % 2 === 0 ? 'even' : 'odd' });
    await clock.advance(1_000);
    const kicking = broker.sessions.kickMatching({ username: 'even' });
    await clock.advance(1);
    const again = kit.connect({ clientId: 'new', username: 'even' });
    assert.equal(await kicking, 75);
    await again;
    assert.deepEqual([broker.sessions.count, broker.sessions.has('new')], [76, true]);
    await assert.rejects(broker.sessions.kickMatching({ user: 'x' } as object), { code: 'OPTION_UNKNOWN' });
    await assert.rejects(broker.sessions.kickMatching({ username: 'odd' }, { why: 1 } as object), {
      code: 'OPTION_UNKNOWN'
    });
  });

  it('resolves a kick when the end of the session is persisted', async () => {
    await using lives = await new Lives().begin();
    await lives.leave('a', 'a/#');
    await lives.kit.broker.sessions.kick('a');
    await lives.kill();
    assert.equal(lives.kit.broker.sessions.has('a'), false);
  });
});

describe('broker.retained', () => {
  it('gets the retained message of a topic and iterates over those of a filter, oldest first', async () => {
    await using broker = await createBroker({ sysInterval: 0, sysHeartbeat: 0 }).start();
    const before = broker.retained.count;
    await broker.publish('a/2', 'two', { retain: true });
    await broker.publish('a/1', 'one', { retain: true });
    assert.equal(broker.retained.count, before + 2);
    assert.equal(String(broker.retained.get('a/1')?.payload), 'one');
    assert.equal(broker.retained.get('a/3'), undefined);
    assert.throws(() => broker.retained.get('a/+'), { code: 'TOPIC_NAME_INVALID' });
    const topics: string[] = [];
    for await (const { topic } of broker.retained.match('a/+')) topics.push(topic);
    assert.deepEqual(topics, ['a/2', 'a/1']);
  });

  it('does not return a message that has expired', async () => {
    await using lives = await new Lives().begin();
    const { broker, clock } = lives.kit;
    await broker.publish('a', 'x', { retain: true, properties: { messageExpiryInterval: 5 } });
    assert.notEqual(broker.retained.get('a'), undefined);
    await clock.advance('6s');
    assert.equal(broker.retained.get('a'), undefined);
  });
});
