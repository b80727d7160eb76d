import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ArrivalQuestion, type Broker, memoryStore } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';
import { rawClient } from '../../support/raw-client.ts';
import { granted } from '../../support/wire.ts';

/** The codes of the causes of a complete answer, in order. */
async function codesOf(broker: Broker, question: ArrivalQuestion): Promise<string[]> {
  const { causes, isComplete } = await broker.monitor.why(question);
  assert.equal(isComplete, true, JSON.stringify({ question, causes }));
  return causes.map(({ code }) => code);
}

const hooks = { authenticate: ({ password }: { readonly password?: unknown }) => String(password) === 'right' };

describe('Messages that arrived after others were lost', () => {
  it('does not name the refusal of an earlier message for one that arrived after the right was given back', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using receiver = await kit.connect({ clientId: 'c' });
    await receiver.subscribe('a/#', { qos: 1 });
    await using publisher = await kit.connect({ clientId: 'p' });
    await clock.advance('10s');
    await broker.access.acl.set({ access: 'deny', action: 'publish', topic: 'a/#', clientId: 'p' });
    await assert.rejects(publisher.publish('a/x', '1', { qos: 1 }));
    const refused = clock.now();
    await broker.access.acl.delete({ clientId: 'p' }, 'a/#');
    await clock.advance('12s');
    await publisher.publish('a/x', '2', { qos: 1 });
    const at = clock.now();
    await clock.advance('1s');
    for (const question of [
      { topic: 'a/x', clientId: 'c', publisher: 'p' },
      { topic: 'a/x', clientId: 'c' },
      { topic: 'a/x' }
    ]) {
      assert.deepEqual(await codesOf(broker, { ...question, at }), []);
      for (const asked of [{ ...question, at: refused }, question])
        assert.equal((await broker.monitor.why(asked)).causes[0].code, 'acl_record');
    }
  });

  it('does not name the message that a client has refused in its acknowledgement for one that it has accepted later', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const client = await rawClient(broker, { clientId: 'c', properties: { sessionExpiryInterval: 600 } });
    await granted(client, 1, { topic: 'a/#', qos: 1 });
    const answer = async (reasonCode: number) => {
      await broker.publish('a/x', '1', { qos: 1 });
      const { messageId = 0 } = await client.next('publish');
      client.send({ cmd: 'puback', messageId, reasonCode });
      await client.nothing();
      return clock.now();
    };
    const refused = await answer(0x87);
    await clock.advance('12s');
    const accepted = await answer(0);
    await clock.advance('1s');
    const question = { topic: 'a/x', clientId: 'c' };
    assert.deepEqual(await codesOf(broker, { ...question, at: refused }), ['receiver_refused']);
    assert.deepEqual(await codesOf(broker, { ...question, at: accepted }), []);
    client.stream.destroy();
  });

  it('does not name a failed login for a queued message that the client received when it resumed its session', async () => {
    await using kit = await createTestBroker({ hooks });
    const { broker, clock } = kit;
    const connect = (password: string) =>
      broker.connect({ clientId: 'c', username: 'u', password, clean: false, sessionExpiry: 3600 });
    const first = await connect('right');
    await first.subscribe('a/#', { qos: 1 });
    await clock.advance('10s');
    await first.disconnect();
    for (let attempt = 0; attempt < 3; attempt++) await assert.rejects(connect('wrong'));
    await clock.advance('10s');
    await assert.rejects(connect('wrong'));
    await clock.advance('10s');
    await broker.publish('a/x', '1', { qos: 1 });
    const at = clock.now();
    await clock.advance('10s');
    const question = { topic: 'a/x', clientId: 'c' };
    assert.ok((await codesOf(broker, question)).includes('wrong_password'), 'it still waits');
    const again = await connect('right');
    await clock.advance('10s');
    assert.deepEqual(await codesOf(broker, question), []);
    assert.deepEqual(await codesOf(broker, { ...question, at }), []);
    await again.disconnect();
    assert.deepEqual(await codesOf(broker, { ...question, at }), []);
  });

  it('does not name a failed login that was made good if the session began before a restart of the broker', async () => {
    const store = memoryStore();
    const session = { clientId: 'c', clean: false, sessionExpiry: 3600, username: 'u' };
    {
      await using kit = await createTestBroker({ store });
      const client = await kit.broker.connect(session);
      await client.subscribe('a/#', { qos: 1 });
      await client.disconnect();
    }
    await using kit = await createTestBroker({ store, hooks });
    const { broker, clock } = kit;
    await assert.rejects(broker.connect({ ...session, password: 'wrong' }));
    await broker.publish('a/x', '1', { qos: 1 });
    await clock.advance('10s');
    const client = await broker.connect({ ...session, password: 'right' });
    await clock.advance('10s');
    const { causes } = await broker.monitor.why({ topic: 'a/x', clientId: 'c' });
    assert.ok(!causes.some(({ code }) => code === 'wrong_password'));
    await client.disconnect();
  });
});

describe('Clients that subscribed late, because they could not before', () => {
  it('names the failed login before a message that no one received, and not the later subscription', async () => {
    await using kit = await createTestBroker({ hooks });
    const { broker, clock } = kit;
    const connect = (password: string) => broker.connect({ clientId: 'c', username: 'u', password });
    await assert.rejects(connect('wrong'));
    await clock.advance('10s');
    await broker.publish('a/x', '1', { qos: 1 });
    const at = clock.now();
    await clock.advance('10s');
    const client = await connect('right');
    await client.subscribe('a/#', { qos: 1 });
    await clock.advance('10s');
    const question = { topic: 'a/x', clientId: 'c' };
    assert.deepEqual(await codesOf(broker, question), ['wrong_password']);
    assert.equal((await codesOf(broker, { ...question, at }))[0], 'wrong_password');
    await client.disconnect();
  });

  it('names the refused subscription that was accepted after the message, and not the later one', async () => {
    let isAllowed = false;
    const authorize = () => isAllowed;
    await using kit = await createTestBroker({ auth: [{ name: 'rights', authorize }], allowAnonymous: true });
    const { broker, clock } = kit;
    const first = await broker.connect({ clientId: 'c' });
    await first.subscribe('a/#', { qos: 1 }).catch(() => undefined);
    await first.disconnect();
    await clock.advance('10s');
    await broker.publish('a/x', '1', { qos: 1 });
    await clock.advance('10s');
    isAllowed = true;
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/#', { qos: 1 });
    await clock.advance('10s');
    const codes = await codesOf(broker, { topic: 'a/x', clientId: 'c' });
    assert.deepEqual(codes.slice(0, 1), ['subscribe_refused']);
    assert.ok(!codes.some((code) => code === 'subscribed_later' || code === 'retained_missing'), codes.join());
  });

  it('names the filter that only nearly matched, with and without the time of the message, after a right one was added', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c' });
    const wrong = { filter_case: ['A/X', 'a/x'], filter_slash: ['/b/x', 'b/x'], filter_levels: ['c/+', 'c/x/y'] };
    for (const [code, [filter, topic]] of Object.entries(wrong)) {
      await client.subscribe(filter, { qos: 1 });
      await clock.advance('10s');
      await broker.publish(topic, '1', { qos: 1 });
      const at = clock.now();
      await clock.advance('10s');
      await client.subscribe(topic, { qos: 1 });
      await clock.advance('10s');
      for (const question of [
        { topic, clientId: 'c' },
        { topic, clientId: 'c', at }
      ])
        assert.equal((await codesOf(broker, question))[0], code);
      await broker.publish(topic, '2', { qos: 1 });
      const arrived = clock.now();
      await clock.advance('10s');
      assert.deepEqual(await codesOf(broker, { topic, clientId: 'c', at: arrived }), []);
    }
    await using late = await kit.connect({ clientId: 'late' });
    await late.subscribe('d/x', { qos: 1 });
    assert.deepEqual(await codesOf(broker, { topic: 'd/x', clientId: 'late' }), [], 'there was no message');
  });

  it('names the rewriting of a topic before the later subscription to the rewritten topic', async () => {
    const rewrite = [{ filter: 'v1/#', pattern: /^v1\/(.+)$/, target: 'new/$1', on: 'publish' }] as const;
    await using kit = await createTestBroker({ rewrite });
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c' });
    await using late = await kit.connect({ clientId: 'late' });
    await client.subscribe('v1/x', { qos: 1 });
    await using device = await kit.connect({ clientId: 'p' });
    await clock.advance('10s');
    await device.publish('v1/x', '1', { qos: 1 });
    const at = clock.now();
    await clock.advance('10s');
    for (const each of [client, late]) await each.subscribe('new/x', { qos: 1 });
    await clock.advance('10s');
    for (const question of [{ topic: 'v1/x' }, { topic: 'v1/x', at }]) {
      assert.equal((await codesOf(broker, { ...question, clientId: 'c' }))[0], 'rewritten');
      const codes = await codesOf(broker, { ...question, clientId: 'late' });
      assert.ok(codes.includes('subscribed_later') && !codes.includes('rewritten'), codes.join());
    }
  });

  it('names the mount point that a client had, before it moved to a zone without one and subscribed again', async () => {
    await using kit = await createTestBroker({ zones: { inner: { mountpoint: 'site/%u/' } } });
    const { broker, clock } = kit;
    const first = await rawClient(broker, { clientId: 'c', username: 'ann', meta: { zone: 'inner' } as never });
    await granted(first, 1, { topic: 'w/#', qos: 1 });
    await clock.advance('10s');
    await broker.publish('w/a', '1', { qos: 1 });
    const at = clock.now();
    await clock.advance('10s');
    first.stream.destroy();
    await clock.advance('10s');
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('w/#', { qos: 1 });
    await clock.advance('10s');
    for (const question of [{ topic: 'w/a' }, { topic: 'w/a', at }]) {
      const { causes } = await broker.monitor.why({ ...question, clientId: 'c' });
      assert.deepEqual([causes[0].code, causes[0].evidence.mountpoint], ['mount_point', 'site/ann/']);
      assert.match(causes[0].text, /it had this mount point at that time/);
      assert.ok(!causes.some(({ code }) => code === 'filter_levels'));
    }
  });
});

describe('Answers that are not certain', () => {
  it('names a late subscription also if the topic has a retained message of a later time, which does not tell about the first', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c' });
    await clock.advance('10s');
    await broker.publish('a/x', '1', { qos: 1 });
    await clock.advance('10s');
    await client.subscribe('a/#', { qos: 1 });
    await clock.advance('10s');
    await broker.publish('a/x', '2', { qos: 1, retain: true });
    await clock.advance('10s');
    const { causes, isComplete } = await broker.monitor.why({ topic: 'a/x', clientId: 'c' });
    const text =
      'Client "c" subscribed to filter "a/#" after the message was published: ' +
      'it has received the message only if that was the retained one.';
    assert.deepEqual([isComplete, causes[0].text], [false, text]);
  });

  it('says that a connection which had taken over a kept session was sent the messages of that time', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const connect = () => broker.connect({ clientId: 'c', clean: false, sessionExpiry: 3600 });
    const first = await connect();
    await first.subscribe('a/#', { qos: 1 });
    await clock.advance('10s');
    const before = clock.now();
    await clock.advance('10s');
    const second = await connect();
    await clock.advance('10s');
    await broker.publish('a/x', '1', { qos: 1 });
    const at = clock.now();
    await clock.advance('10s');
    const ask = (time: number) => broker.monitor.why({ topic: 'a/x', clientId: 'c', at: time });
    const { causes, isComplete } = await ask(at);
    assert.deepEqual([isComplete, causes.map(({ code }) => code)], [false, ['taken_over']]);
    assert.match(causes[0].text, /messages of that time were sent to the connection that took it over\.$/);
    assert.deepEqual((await ask(before)).causes, []);
    await second.disconnect();
    await clock.advance('10s');
    const third = await connect();
    await clock.advance('10s');
    await broker.publish('a/x', '2', { qos: 1 });
    const later = clock.now();
    await clock.advance('10s');
    const last = await ask(later);
    assert.deepEqual([last.isComplete, last.causes], [true, []]);
    await third.disconnect();
  });

  it('says of a client that has not connected since the broker started that an earlier session is not known', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const began = new Date(clock.now()).toISOString();
    await clock.advance('10s');
    await broker.publish('a/x', '1', { qos: 1 });
    await clock.advance('10s');
    const { causes } = await broker.monitor.why({ topic: 'a/x', clientId: 'c' });
    const text =
      `Client "c" is not connected and has no session: it has not connected since the broker started at ${began}, ` +
      'and sessions that are not kept end with the broker.';
    assert.ok(causes.some((one) => one.text === text));
    const client = await broker.connect({ clientId: 'c' });
    await client.disconnect();
    const known = await broker.monitor.why({ topic: 'a/x', clientId: 'c' });
    assert.ok(known.causes.every((one) => !one.text.includes('has not connected since')));
  });
});
