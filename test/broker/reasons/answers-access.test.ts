import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acl } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';
import { summaryOf } from './summary.ts';

describe('Rights that were withdrawn', () => {
  it('names the rule that has denied a subscription at the time of the message, also after the rule is gone', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe('s/x', { qos: 1 });
    await clock.advance('1m');
    await broker.access.acl.set({ access: 'deny', action: 'subscribe', topic: 's/#', clientId: 'c' });
    await clock.advance('1m');
    const at = clock.now();
    await broker.publish('s/x', '1');
    const question = { topic: 's/x', clientId: 'c' };
    const detail = 'an access rule that is set at run time: deny subscribe to "s/#" for client "c"';
    const withdrawn = `Client "c" has lost the right to receive topic "s/x": ${detail}.`;
    assert.deepEqual(await summaryOf(broker, question), [['right_withdrawn', withdrawn, undefined]]);
    await clock.advance('1m');
    await broker.access.acl.delete({ clientId: 'c' }, 's/#');
    await clock.advance('1m');
    const until = at + 60_000;
    assert.deepEqual(await summaryOf(broker, { ...question, at }), [['right_withdrawn', withdrawn, undefined]]);
    assert.deepEqual(await summaryOf(broker, question), [['right_withdrawn', withdrawn, until]]);
    await broker.publish('s/x', '2');
    assert.deepEqual(await summaryOf(broker, { ...question, at: clock.now() }), [], 'this message was delivered');
    await client.disconnect();
  });

  it('names the source that has refused a subscription when it was asked again, until it accepts it', async () => {
    let isAllowed = true;
    const authorize = () => isAllowed;
    await using kit = await createTestBroker({ auth: [{ name: 'rights', authorize }], allowAnonymous: true });
    const { broker, clock } = kit;
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe('s/x', { qos: 1 });
    isAllowed = false;
    await clock.advance('10m');
    const at = clock.now();
    await broker.publish('s/x', '1');
    isAllowed = true;
    await clock.advance('10m');
    const text = 'Client "c" has lost the right to receive topic "s/x": the source "rights".';
    const question = { topic: 's/x', clientId: 'c' };
    assert.deepEqual(await summaryOf(broker, { ...question, at }), [['right_withdrawn', text, undefined]]);
    const [[code, , until]] = await summaryOf(broker, question);
    assert.deepEqual([code, typeof until], ['right_withdrawn', 'number']);
    await client.disconnect();
  });

  it('names the rule by which a subscription was removed, with the remedy to allow it first', async () => {
    const auth = [acl([{ access: 'allow', topic: 'a/#' }])];
    await using kit = await createTestBroker({ auth, aclNomatch: 'deny', aclRemoveSubscriptions: true });
    const { broker, clock } = kit;
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe(['a/1', 'a/2']);
    await broker.access.acl.set({ access: 'deny', action: 'subscribe', topic: 'a/1' });
    await clock.advance('1s');
    await broker.access.remove('acl');
    await clock.advance('1s');
    const removed = (topic: string, why: string) =>
      `The subscription of client "c" to filter "${topic}" was removed, because the client lost the right to it: ${why}.`;
    for (const [topic, why] of [
      ['a/1', 'an access rule that is set at run time: deny subscribe to "a/1"'],
      ['a/2', 'no rule, source or hook allows it (option aclNomatch)']
    ]) {
      const { causes } = await broker.monitor.why({ topic, clientId: 'c' });
      assert.deepEqual([causes[0].code, causes[0].text], ['subscription_withdrawn', removed(topic, why)]);
      assert.match(causes[0].remedy, /^Allow the topic in the access rules, and let the client subscribe again/);
      assert.ok(!causes.some(({ code }) => code === 'unsubscribed'));
    }
    await client.disconnect();
  });
});
