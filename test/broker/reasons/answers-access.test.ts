import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../../lib/adapter.ts';
import { type AccessRule, acl } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';
import { rawClient } from '../../support/raw-client.ts';
import { publish, turns } from '../../support/wire.ts';
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

  it('names rules that denied a topic of a wider subscription at the time of the message, also after they are gone', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/#', { qos: 1 });
    const question = { topic: 'a/x', clientId: 'c' };
    const before = clock.now() + 1;
    await clock.advance('1m');
    await broker.access.acl.set({ access: 'deny', action: 'subscribe', topic: 'a/x' });
    await clock.advance('1m');
    const during = clock.now() + 1;
    await broker.publish('a/x', '1');
    const lost =
      'Client "c" has lost the right to receive topic "a/x": an access rule that is set at run time: deny subscribe to "a/x"';
    assert.deepEqual(await summaryOf(broker, question), [['right_withdrawn', `${lost}.`, undefined]]);
    assert.deepEqual(await summaryOf(broker, { ...question, at: before }), [], 'it was set later');
    await clock.advance('1m');
    await broker.access.acl.delete('all', 'a/x');
    const until = clock.now();
    await clock.advance('1m');
    const text = `${lost}, in use from 2026-01-01T00:01:00.000Z until 2026-01-01T00:03:00.000Z.`;
    for (const asked of [question, { topic: 'a/x' }]) {
      const found = (await summaryOf(broker, asked)).filter(([code]) => code === 'right_withdrawn');
      assert.deepEqual(found, [['right_withdrawn', text, until]]);
    }
    assert.deepEqual(await summaryOf(broker, { ...question, at: during }), [['right_withdrawn', text, undefined]]);
    const [{ remedy }] = (await broker.monitor.why({ ...question, at: during })).causes;
    assert.match(remedy, /has the right again/);
    for (const at of [before, clock.now() + 1]) {
      const answer = await broker.monitor.why({ ...question, at });
      assert.deepEqual([answer.isComplete, answer.causes], [true, []]);
    }
    assert.deepEqual(await summaryOf(broker, { topic: 'a/y', clientId: 'c' }), [], 'another topic');
    await using late = await kit.connect({ clientId: 'late' });
    await late.subscribe('a/#', { qos: 1 });
    assert.ok(
      !(await summaryOf(broker, { topic: 'a/x', clientId: 'late' })).some(([code]) => code === 'right_withdrawn')
    );
  });

  it('regards the order of the rules of that time, of the broker before those of a source, and their replacement', async () => {
    const rule = { access: 'deny', action: 'subscribe', topic: 'a/x' } as const;
    const auth = [acl([rule, { access: 'allow', topic: '#' }])];
    await using kit = await createTestBroker({ auth });
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/#', { qos: 1 });
    const isDenied = async (at?: number) => {
      const found = await summaryOf(broker, { topic: 'a/x', clientId: 'c', at });
      return found.some(([code]) => code === 'right_withdrawn');
    };
    const times: number[] = [];
    const wait = async () => {
      await clock.advance('1m');
      times.push(clock.now() + 1);
      await clock.advance('1m');
    };
    await wait();
    await broker.access.acl.set({ access: 'allow', action: 'subscribe', topic: 'a/x', clientId: 'c' });
    await wait();
    await broker.access.acl.set({ access: 'deny', action: 'subscribe', topic: 'a/x', clientId: 'c' });
    await wait();
    await broker.access.acl.delete({ clientId: 'c' }, 'a/x');
    await wait();
    await broker.access.remove('acl');
    await wait();
    const answers = [];
    for (const at of times) answers.push(await isDenied(at));
    assert.deepEqual(answers, [true, false, true, true, false]);
  });

  it('takes rules that a source has again after it was loaded again as the same ones', async () => {
    const deny = (topic: string) => ({ access: 'deny', action: 'subscribe', topic }) as const;
    let load: (rules: readonly AccessRule[]) => void = () => undefined;
    const open: AuthSource['open'] = ({ setRules }) => {
      load = setRules;
      load([deny('a/x'), deny('b')]);
    };
    await using kit = await createTestBroker({ auth: [{ name: 'file', open }], allowAnonymous: true });
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/#', { qos: 1 });
    await clock.advance('1m');
    load([deny('c'), deny('a/x')]);
    await clock.advance('1m');
    load([deny('c')]);
    const until = clock.now();
    await clock.advance('1m');
    const detail =
      'rule 2 of the source "file": deny subscribe to "a/x", in use from 2026-01-01T00:00:00.000Z until 2026-01-01T00:02:00.000Z';
    const text = `Client "c" has lost the right to receive topic "a/x": ${detail}.`;
    assert.deepEqual(await summaryOf(broker, { topic: 'a/x', clientId: 'c' }), [['right_withdrawn', text, until]]);
  });

  it('gives incomplete answers about times of which not all removed rules are kept', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/#', { qos: 1 });
    const at = clock.now() + 1;
    for (let number = 0; number < 300; number++) {
      await broker.access.acl.set({ access: 'deny', action: 'subscribe', topic: `b/${number}` });
      await clock.advance(10);
      await broker.access.acl.delete('all', `b/${number}`);
    }
    await clock.advance('1m');
    await using late = await kit.connect({ clientId: 'late' });
    await late.subscribe('a/#', { qos: 1 });
    const isComplete = async (question: object) => (await broker.monitor.why({ topic: 'a/x', ...question })).isComplete;
    assert.equal(await isComplete({ clientId: 'c' }), false);
    assert.equal(await isComplete({ clientId: 'c', at }), false);
    assert.equal(await isComplete({ clientId: 'c', at: clock.now() }), true);
    assert.equal(await isComplete({ clientId: 'late' }), true, 'it subscribed later');
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

describe('Retained messages that are missing', () => {
  it('names the limit because of which a message was not retained before the late subscription', async () => {
    await using kit = await createTestBroker({ maxRetainedPayloadSize: 10, maxRetainedMessages: 1 });
    const { broker } = kit;
    const client = await broker.connect({ clientId: 'c' });
    await broker.publish('large', 'x'.repeat(11), { retain: true });
    await broker.publish('one', 'x', { retain: true });
    await broker.publish('two', 'x', { retain: true });
    await client.subscribe(['large', 'two']);
    for (const [topic, why] of [
      ['large', 'its payload is larger than maxRetainedPayloadSize (10 bytes)'],
      ['two', 'maxRetainedMessages (1) is reached']
    ]) {
      const [[code, text], [next]] = await summaryOf(broker, { topic, clientId: 'c' });
      const missing = `There was no retained message for the receiver at topic "${topic}": ${why}.`;
      assert.deepEqual([code, text, next], ['retained_missing', missing, 'subscribed_later']);
    }
    await client.disconnect();
  });

  it('names the stop of the feature in which a client subscribed or a message was published, also when it is over', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await broker.publish('before', 'x', { retain: true });
    await broker.features.stop('retainer');
    const from = new Date(clock.now()).toISOString();
    await broker.publish('during', 'x', { retain: true });
    await clock.advance('1m');
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe(['before', 'during'], { qos: 1 });
    await clock.advance('1m');
    await broker.features.start('retainer');
    const until = new Date(clock.now()).toISOString();
    await clock.advance('1m');
    const textOf = async (topic: string) => (await summaryOf(broker, { topic, clientId: 'c' }))[0]?.[1];
    assert.match(`${await textOf('during')}`, /at topic "during": the feature `retainer` is stopped\.$/);
    const stopped = `the feature \`retainer\` was stopped when the client subscribed, from ${from} until ${until}.`;
    assert.equal(await textOf('before'), `There was no retained message for client "c" at topic "before": ${stopped}`);
    const causesOf = async (topic: string) => (await broker.monitor.why({ topic, clientId: 'c' })).causes;
    const [during, ...others] = await causesOf('during');
    assert.match(during.remedy, /^Start the feature retainer if it is still stopped/);
    assert.ok(!others.some(({ code }) => code === 'retained_missing'), 'once');
    assert.match((await causesOf('before'))[0].remedy, /^The feature has been started again/);
    await client.disconnect();
  });

  it('does not name a deletion after which the topic had a message again, which the client has got', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const retain = async (topic: string, payload: string) => {
      await broker.publish(topic, payload, { retain: true });
      await clock.advance('1m');
    };
    await using early = await kit.connect({ clientId: 'early' });
    for (const payload of ['1', '', '2']) await retain('a', payload);
    await retain('b', '1');
    await retain('b', '');
    await early.subscribe(['a', 'b'], { qos: 1 });
    await clock.advance('1m');
    await retain('a', '3');
    await retain('b', '2');
    const missing = async (topic: string, clientId?: string) => {
      const { causes, isComplete } = await broker.monitor.why({ topic, clientId });
      assert.equal(isComplete, true);
      return causes.some(({ code }) => code === 'retained_missing');
    };
    assert.equal(await missing('a', 'early'), false, 'it got 2');
    assert.equal(await missing('b', 'early'), true, 'there was none when it subscribed');
    assert.equal(await missing('b'), false, 'there is one now');
    assert.equal(broker.monitor.reasons.list({ code: 'retained_deleted', filter: 'a' }).entries.length, 1);
  });

  it('gives an incomplete answer to a client that subscribed between equal deletions, because only the last one is known', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using between = await kit.connect({ clientId: 'between' });
    await using after = await kit.connect({ clientId: 'after' });
    for (const payload of ['1', '', '2']) await broker.publish('a', payload, { retain: true });
    await clock.advance('1m');
    await between.subscribe('a', { qos: 1 });
    await clock.advance('1m');
    await broker.publish('a', '', { retain: true });
    await clock.advance('1m');
    await after.subscribe('a', { qos: 1 });
    await clock.advance('1m');
    await broker.publish('a', '3', { retain: true });
    const answers = [];
    for (const clientId of ['between', 'after']) {
      const { causes, isComplete } = await broker.monitor.why({ topic: 'a', clientId });
      answers.push([causes.some(({ code }) => code === 'retained_missing'), isComplete]);
    }
    assert.deepEqual(answers, [
      [false, false],
      [true, true]
    ]);
  });

  it('says that Retain Handling 1 does not repeat a message that was delivered', async () => {
    await using kit = await createTestBroker();
    const client = await kit.broker.connect({ clientId: 'c' });
    await client.subscribe('a', { qos: 1, retainHandling: 1 });
    await kit.clock.advance('1s');
    await kit.broker.publish('a', 'x', { retain: true });
    await client.subscribe('a', { qos: 1, retainHandling: 1 });
    const [[code, text]] = await summaryOf(kit.broker, { topic: 'a', clientId: 'c' });
    assert.deepEqual([code, /Retain Handling 1 does not repeat it\.$/.test(text)], ['retained_missing', true]);
    await client.disconnect();
  });
});

describe('Options and features that keep messages back', () => {
  it('names a stopped feature delayed for the topic of the delayed message, with the remedy to start it', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await broker.features.stop('delayed');
    const device = await broker.connect({ clientId: 'd' });
    await assert.rejects(device.publish('$delayed/1/a/b', 'x', { qos: 1 }));
    for (const topic of ['a/b', '$delayed/1/a/b']) {
      const { causes } = await broker.monitor.why({ topic });
      const text =
        'The delayed message of client "d" to topic "$delayed/1/a/b" was refused, because the feature delayed is stopped.';
      assert.deepEqual([causes[0].code, causes[0].text], ['delayed_stopped', text], topic);
      assert.match(causes[0].remedy, /^Start the feature delayed \(`embermq ctl plugins load`\)/);
    }
    await device.disconnect();
  });

  it('finds a refused delayed message also after the feature delayed was started again, with the time of the start', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await broker.features.stop('delayed');
    await using device = await kit.connect({ clientId: 'd' });
    await assert.rejects(device.publish('$delayed/1/a/b', 'x', { qos: 1 }));
    const at = clock.now();
    await clock.advance('10s');
    await broker.features.start('delayed');
    const until = clock.now();
    await clock.advance('10m');
    const [now] = (await broker.monitor.why({ topic: 'a/b' })).causes.filter(({ code }) => code === 'delayed_stopped');
    assert.equal(now.evidence.until, until);
    assert.match(now.remedy, /publish the message again/);
    const [then] = (await broker.monitor.why({ topic: 'a/b', at })).causes;
    assert.deepEqual([then.code, then.evidence.until], ['delayed_stopped', undefined]);
    assert.ok(
      !(await summaryOf(broker, { topic: 'a/b', at: until + 60_000 })).some(([code]) => code === 'delayed_stopped')
    );
  });

  it('names the limit because of which the messages of a publisher are not read', async () => {
    await using kit = await createTestBroker({ publishLimit: '2,10s' });
    const { broker, clock } = kit;
    broker.subscribe('a', () => undefined);
    const device = await rawClient(broker, { clientId: 'd' });
    for (let sent = 0; sent < 4; sent++) device.send(publish('a', `${sent}`));
    await turns();
    const question = { topic: 'a', publisher: 'd' };
    const text =
      'The broker does not read the messages of client "d" now, because it exceeds a rate limit: `publishLimit` of its zone is 2 in 10 s.';
    assert.deepEqual((await summaryOf(broker, question))[0], ['publish_limited', text, undefined]);
    await using receiver = await kit.connect({ clientId: 'r' });
    await receiver.subscribe('a', { qos: 1 });
    assert.deepEqual(await summaryOf(broker, { topic: 'a', clientId: 'r' }), [['publish_limited', text, undefined]]);
    await clock.advance('1m');
    assert.ok(!(await summaryOf(broker, question)).some(([code]) => code === 'publish_limited'));
  });

  it('does not claim No Local where ignoreLoopDeliver keeps the message back', async () => {
    await using kit = await createTestBroker({ ignoreLoopDeliver: true });
    const client = await kit.broker.connect({ clientId: 'c', protocolVersion: 4 });
    await client.subscribe('a', { qos: 1 });
    await client.publish('a', 'x', { qos: 1 });
    const { causes } = await kit.broker.monitor.why({ topic: 'a', clientId: 'c', publisher: 'c' });
    assert.deepEqual([causes[0].code, /subscribed with No Local/.test(causes[0].text)], ['no_local', false]);
    assert.match(causes[0].remedy, /`ignoreLoopDeliver`/);
    await client.disconnect();
  });
});
