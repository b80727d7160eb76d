import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { type ArrivalQuestion, acl, type Broker, memoryStore } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';
import { type RawClient, rawClient } from '../../support/raw-client.ts';
import { granted, publish, startBroker, turns } from '../../support/wire.ts';

/** The codes of the causes of an answer, in order. */
async function codesOf(broker: Broker, question: ArrivalQuestion): Promise<string[]> {
  return (await broker.monitor.why(question)).causes.map(({ code }) => code);
}

/** The text of a cause of an answer. */
async function textOf(broker: Broker, question: ArrivalQuestion, code: string): Promise<string> {
  const { causes } = await broker.monitor.why(question);
  return causes.find((cause) => cause.code === code)?.text ?? `${code} is not among ${causes.map((one) => one.code)}`;
}

/** Close the connection of a client without DISCONNECT. */
async function cut({ stream }: RawClient): Promise<void> {
  const closed = once(stream, 'close');
  stream.destroy();
  await closed;
  await turns();
}

describe('The times of causes', () => {
  it('takes the times of causes from their events, also if no packet has arrived since', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const timeOf = (clientId: string, code: string) =>
      (broker.monitor.reasons.list({ clientId }).entries.find((record) => record.code === code)?.at ?? 0) - began;
    const began = clock.now();
    const expires = await broker.connect({ clientId: 'expires', sessionExpiry: 25 });
    await expires.subscribe('t');
    await expires.disconnect();
    await rawClient(broker, { clientId: 'silent', keepalive: 20 });
    const kicked = await broker.connect({ clientId: 'kicked' });
    await clock.advance('40s');
    broker.sessions.get('kicked').kick();
    await turns();
    assert.equal(timeOf('expires', 'session_ended'), 25_000);
    assert.equal(timeOf('silent', 'disconnected_keepalive_timeout'), 30_000);
    assert.equal(timeOf('kicked', 'disconnected_kicked'), 40_000);
    assert.equal(kicked.isConnected, false);
  });
});

describe('Publishers that were disconnected', () => {
  it('names a publisher that an operator has disconnected, also if its session had subscriptions', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const receiver = await broker.connect({ clientId: 'r' });
    await receiver.subscribe('t', { qos: 1 });
    const publisher = await broker.connect({ clientId: 'p' });
    await publisher.subscribe('commands');
    await broker.sessions.kick('p');
    const codes = await codesOf(broker, { topic: 't', publisher: 'p', clientId: 'r' });
    assert.ok(codes.includes('kicked'), codes.join());
  });
});

describe('Connections that were closed before their client id was known', () => {
  it('count for no client that was connected at that time, and come first for unknown clients only', async () => {
    await using kit = await createTestBroker({ maxConnections: 2 });
    const { broker, clock } = kit;
    const meta = { remoteAddress: '192.0.2.7' };
    const known = { clientId: 'known', properties: { sessionExpiryInterval: 3600 }, meta };
    const client = await rawClient(broker, known);
    await granted(client, 1, { topic: 'k', qos: 1 });
    await rawClient(broker, { clientId: 'other', meta });
    const refused = await rawClient(broker, { connect: false, meta });
    await refused.closed();
    const limits = async (question: ArrivalQuestion) => (await codesOf(broker, question)).indexOf('connection_limit');
    await clock.advance('1m');
    assert.equal(await limits({ topic: 'k', clientId: 'known' }), -1);
    await cut(client);
    await clock.advance('1m');
    await broker.publish('k', 'x', { qos: 1 });
    assert.deepEqual(await codesOf(broker, { topic: 'k', clientId: 'known' }), ['offline_queued']);
    assert.deepEqual(await codesOf(broker, { topic: 'k', clientId: 'unknown' }), [
      'connection_limit',
      'offline_no_session'
    ]);
  });
});

describe('The order of causes', () => {
  it('begins with what holds now, and shows what has ended afterwards, with the time of its end', async () => {
    await using kit = await createTestBroker({
      hooks: { authenticate: ({ password }) => String(password) === 'right' }
    });
    const { broker, clock } = kit;
    const connect = (password: string) => broker.connect({ clientId: 'c', username: 'u', password });
    await assert.rejects(connect('wrong'));
    await clock.advance('1h');
    const client = await connect('right');
    const { causes } = await broker.monitor.why({ topic: 't', clientId: 'c' });
    assert.deepEqual(
      causes.map(({ code, evidence }) => [code, evidence.until]),
      [
        ['no_subscriber', undefined],
        ['wrong_password', clock.now()]
      ]
    );
    assert.deepEqual(await codesOf(broker, { topic: 't', clientId: 'c', at: clock.now() }), ['no_subscriber']);
    await client.disconnect();
  });

  it('names the refusal, the end of a subscription or session before the missing subscription that follows from it', async () => {
    await using kit = await createTestBroker({
      auth: [acl([{ access: 'deny', topic: 'secret', action: 'subscribe' }, { access: 'allow' }])],
      allowAnonymous: true
    });
    const { broker } = kit;
    const refused = await broker.connect({ clientId: 'refused' });
    await refused.subscribe('secret').catch(() => undefined);
    const left = await broker.connect({ clientId: 'left' });
    await left.subscribe('a/1');
    await left.unsubscribe('a/1');
    const returned = await broker.connect({ clientId: 'returned' });
    await returned.subscribe('a/1');
    await returned.disconnect();
    const again = await broker.connect({ clientId: 'returned' });
    for (const topic of ['secret', 'a/1']) await broker.publish(topic, 'x');
    for (const at of [undefined, kit.clock.now()]) {
      const ask = (topic: string, clientId: string) =>
        codesOf(broker, { topic, clientId, ...(at === undefined ? {} : { at }) });
      assert.deepEqual(await ask('secret', 'refused'), ['subscribe_refused', 'no_subscriber']);
      assert.deepEqual(await ask('a/1', 'left'), ['unsubscribed', 'no_subscriber']);
      assert.deepEqual(await ask('a/1', 'returned'), ['session_ended', 'no_subscriber']);
    }
    for (const client of [refused, left, again]) await client.disconnect();
  });

  it('names the operator who disconnected a client or ended its session, until it has subscribed again', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const connect = async (clientId: string) => {
      const client = await broker.connect({ clientId, clean: false, properties: { sessionExpiryInterval: 600 } });
      await client.subscribe('a/1', { qos: 1 });
      return client;
    };
    for (const clientId of ['online', 'offline', 'kept']) await connect(clientId);
    broker.sessions.get('online').kick();
    broker.sessions.get('offline').kick({ session: 'keep' });
    await clock.advance('1m');
    broker.sessions.get('offline').kick();
    broker.sessions.get('kept').kick({ session: 'keep' });
    await clock.advance('1s');
    const causesOf = async (clientId: string) => (await broker.monitor.why({ topic: 'a/1', clientId })).causes;
    for (const clientId of ['online', 'offline']) {
      const [kicked, ...others] = await causesOf(clientId);
      const rest = others.map(({ code }) => code).filter((code) => code !== 'kicked');
      assert.deepEqual([kicked.code, rest], ['kicked', ['offline_no_session']], clientId);
      const text = `Client "${clientId}" was disconnected by an operator or the app: its session was ended, with its subscriptions and queued messages.`;
      assert.equal(kicked.text, text);
      assert.match(kicked.remedy, /connect and subscribe again.*`embermq ctl audit`/);
    }
    assert.deepEqual(
      (await causesOf('online')).map(({ code }) => code),
      ['kicked', 'offline_no_session'],
      'once'
    );
    const [kicked] = await causesOf('kept');
    assert.deepEqual(
      [kicked.code, kicked.text],
      ['kicked', 'Client "kept" was disconnected by an operator or the app.']
    );
    const again = await connect('online');
    const [last] = (await causesOf('online')).toReversed();
    assert.deepEqual([last.code, last.evidence.until], ['kicked', clock.now()]);
    await again.disconnect();
  });

  it('names the ban that has ended a session, without advice about its expiry', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe('a', { qos: 1 });
    await broker.access.banned.create({ kind: 'clientId', who: 'c' });
    broker.access.banned.disconnect('clientId', 'c');
    await clock.advance('1s');
    const records = broker.monitor.reasons.list({ clientId: 'c' }).entries.map(({ code }) => code);
    assert.ok(records.includes('session_ended') && records.includes('disconnected_banned'));
    const { causes } = await broker.monitor.why({ topic: 'a', clientId: 'c' });
    assert.deepEqual(
      causes.map(({ code }) => code),
      ['banned', 'offline_no_session']
    );
    const other = await codesOf(broker, { topic: 'other', clientId: 'c' });
    assert.ok(other.includes('banned'), 'also for a topic without a subscription');
  });

  it('names who has ended a subscription: its client, or an operator', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const client = await broker.connect({ clientId: 'c' });
    for (const topic of ['a/1', 'a/2']) await client.subscribe(topic);
    await client.unsubscribe('a/1');
    broker.sessions.get('c').unsubscribe('a/2');
    const ended = (topic: string, why: string) => `The subscription of client "c" to filter "${topic}" ended${why}.`;
    for (const [topic, why] of [
      ['a/1', ''],
      ['a/2', ': an operator or the app has ended it']
    ])
      assert.equal(await textOf(broker, { topic, clientId: 'c' }, 'unsubscribed'), ended(topic, why));
    await client.disconnect();
  });

  it('names a drop of the message before the end of the session of its receiver, however much later that is', async () => {
    await using broker = await startBroker();
    const tiny = await rawClient(broker, { clientId: 'tiny', properties: { maximumPacketSize: 100 } });
    await granted(tiny, 1, 'a');
    await broker.publish('a', 'x'.repeat(200));
    await cut(tiny);
    const codes = await codesOf(broker, { topic: 'a', clientId: 'tiny' });
    assert.deepEqual(codes.slice(0, 2), ['too_large', 'session_ended']);
  });

  it('counts the takeovers of two devices with one client id in one cause', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    for (let number = 0; number < 4; number++) {
      const one = await broker.connect({ clientId: 'twin' });
      await one.subscribe('a');
      await clock.advance('1s');
    }
    const { causes } = await broker.monitor.why({ topic: 'b', clientId: 'twin' });
    const takeovers = causes.filter(({ code }) => code === 'taken_over');
    assert.deepEqual(
      takeovers.map(({ count }) => count),
      [3]
    );
    assert.ok(!causes.some(({ code }) => code === 'session_ended'), 'the takeover says it');
  });
});

describe('What is known about the time of a message', () => {
  it('names no retained message to a client that had subscribed before, and nothing if the message arrived', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/#', { qos: 1 });
    await kit.broker.publish('a/1', 'x');
    const { isComplete, causes } = await kit.broker.monitor.why({ topic: 'a/1', clientId: 'c' });
    assert.deepEqual([isComplete, causes], [true, []]);
  });

  it('takes no message of the publisher to another topic for one that the receiver has missed', async () => {
    await using kit = await createTestBroker();
    await using device = await kit.connect({ clientId: 'd' });
    await device.publish('other', 'x', { qos: 1 });
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a', { qos: 1 });
    await device.publish('a', 'x');
    assert.deepEqual(await codesOf(kit.broker, { topic: 'a', clientId: 'c', publisher: 'd' }), []);
  });

  it('keeps no more than 100 records of retained messages that are lost in a tenth of a second, and is incomplete then', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using early = await kit.connect({ clientId: 'early' });
    await early.subscribe('r/299', { qos: 1 });
    for (let number = 0; number < 300; number++)
      await broker.publish(`r/${number}`, 'x', { retain: true, properties: { messageExpiryInterval: 1 } });
    const recorded = () =>
      broker.monitor.reasons.list({ limit: 1_000 }).entries.filter(({ code }) => code === 'retained_expired').length;
    await clock.advance('10s');
    assert.equal(recorded(), 100);
    await using late = await kit.connect({ clientId: 'late' });
    await late.subscribe('r/#', { qos: 1 });
    const isComplete = async (question: object) =>
      (await broker.monitor.why({ topic: 'r/299', clientId: 'late', ...question })).isComplete;
    for (const publisher of [undefined, ''])
      assert.equal(await isComplete({ publisher }), false, 'the loss of this topic was left out');
    assert.equal(await isComplete({ clientId: undefined }), false, 'the client may have subscribed later');
    assert.equal(await isComplete({ clientId: 'early' }), true, 'it subscribed before the first loss');
    await clock.advance('10m');
    assert.equal(await isComplete({ at: clock.now() }), true, 'no event of this time was left out');
  });

  it('names who deleted a retained message, and that one expired, to clients that subscribed afterwards', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using script = await kit.connect({ clientId: 'script' });
    await using early = await kit.connect({ clientId: 'early' });
    await early.subscribe('r/#', { qos: 1 });
    for (const topic of ['r/1', 'r/2']) await broker.publish(topic, 'x', { retain: true });
    await broker.publish('r/3', 'x', { retain: true, properties: { messageExpiryInterval: 1 } });
    await script.publish('r/1', '', { retain: true, qos: 1 });
    await broker.retained.delete('r/2');
    await clock.advance('10s');
    await using late = await kit.connect({ clientId: 'late' });
    await late.subscribe('r/#', { qos: 1 });
    const detailOf = async (topic: string) =>
      (await broker.monitor.why({ topic, clientId: 'late' })).causes.find(({ code }) => code === 'retained_missing')
        ?.evidence.detail;
    assert.equal(await detailOf('r/1'), 'client "script" deleted it with an empty payload');
    assert.equal(await detailOf('r/2'), 'an operator or the app deleted it');
    assert.equal(await detailOf('r/3'), 'it has expired');
    assert.deepEqual(await codesOf(broker, { topic: 'r/1', clientId: 'early' }), [], 'it had the message');
  });

  it('names the loss of a retained message only until it is set again', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const set = async (payload: string) => {
      await broker.publish('r', payload, { retain: true, qos: 1 });
      await clock.advance('1m');
    };
    await set('one');
    await set('');
    await using between = await kit.connect({ clientId: 'between' });
    await between.subscribe('r', { qos: 1 });
    const at = clock.now();
    await clock.advance('1m');
    await set('two');
    await using after = await kit.connect({ clientId: 'after' });
    await after.subscribe('r', { qos: 1 });
    const namesLoss = async (question: object) =>
      (await codesOf(broker, { topic: 'r', ...question })).includes('retained_missing');
    assert.equal(await namesLoss({ clientId: 'between' }), true);
    assert.equal(await namesLoss({ clientId: 'after' }), false, 'it had the second message');
    assert.equal(await namesLoss({}), false);
    assert.equal(await namesLoss({ at }), true, 'it was missing at that time');
  });

  it('takes a whole minute and a whole second as approximate', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const minute = Math.ceil(clock.now() / 60_000) * 60_000;
    await clock.advance(minute - clock.now() + 16_900);
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a');
    await clock.advance(500);
    await broker.publish('a', 'x');
    for (const at of [minute, minute + 16_000])
      assert.ok(!(await codesOf(broker, { topic: 'a', clientId: 'c', at })).includes('subscribed_later'), `${at}`);
    const before = await codesOf(broker, { topic: 'a', clientId: 'c', at: minute - 60_000 });
    assert.ok(before.includes('subscribed_later'));
  });

  it('does not take what happened after a time for a cause, and finds the filters that a client had', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe('/a/1');
    await broker.publish('a/1', 'x');
    const at = clock.now();
    await clock.advance('10m');
    await client.disconnect();
    const { isComplete, causes } = await broker.monitor.why({ topic: 'a/1', clientId: 'c', at });
    assert.deepEqual(
      causes.map(({ code }) => code),
      ['filter_slash', 'no_subscriber']
    );
    assert.equal(isComplete, false, 'its session of that time is gone');
    const now = await codesOf(broker, { topic: 'a/1', clientId: 'c' });
    assert.deepEqual(now, ['filter_slash', 'offline_no_session', 'no_subscriber']);
  });

  it('does not claim to know all about a time at which the client had a subscription that has ended since', async () => {
    for (const filter of ['plant/a', 'plant/#', '$share/g/plant/a']) {
      await using kit = await createTestBroker();
      const { broker, clock } = kit;
      await using client = await kit.connect({ clientId: 'c' });
      await client.subscribe(filter, { qos: 1 });
      await broker.publish('plant/a', 'x', { qos: 1 });
      const at = clock.now() + 1;
      await clock.advance('10m');
      await client.unsubscribe(filter);
      const { isComplete, causes } = await broker.monitor.why({ topic: 'plant/a', clientId: 'c', at });
      assert.deepEqual([filter, isComplete, causes], [filter, false, []]);
      assert.equal((await broker.monitor.why({ topic: 'other', clientId: 'c', at })).isComplete, true);
    }
  });

  it('takes a time in the future as now, because the clock of another computer may be fast', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('Site/1');
    await clock.advance('1m');
    const now = clock.now();
    const expected = await broker.monitor.why({ topic: 'site/1', clientId: 'c', at: now });
    assert.deepEqual([expected.isComplete, expected.causes[0].code], [true, 'filter_case']);
    for (const ahead of [1, 5_123, 3_600_000])
      assert.deepEqual(await broker.monitor.why({ topic: 'site/1', clientId: 'c', at: now + ahead }), expected);
  });

  it('gives an incomplete answer where records of the topic are gone, and a complete one about another topic', async () => {
    await using kit = await createTestBroker({ maxMqueueLen: 1 });
    const { broker, clock } = kit;
    const drops = async (count: number, topic: string) => {
      for (let number = 0; number < count; number++) {
        const client = await broker.connect({ clientId: `${topic} ${number}`, sessionExpiry: 3_600 });
        await client.subscribe(topic, { qos: 1 });
        await client.disconnect();
      }
      for (const payload of ['one', 'two']) await broker.publish(topic, payload, { qos: 1 });
      await clock.advance('1s');
    };
    await drops(8, 'eight');
    await drops(9, 'nine'); // a topic keeps eight records
    const isComplete = async (topic: string) =>
      (await broker.monitor.why({ topic, clientId: `${topic} 0` })).isComplete;
    assert.equal(await isComplete('eight'), true);
    assert.equal(await isComplete('nine'), false);
  });
});

describe('The causes of one receiver', () => {
  it('leaves out errors of rules and refusals of other share groups', async () => {
    await using kit = await createTestBroker({
      auth: [acl([{ access: 'deny', topic: 't', action: 'subscribe', clientId: 'm' }, { access: 'allow' }])],
      allowAnonymous: true
    });
    const { broker } = kit;
    broker.on('error', () => undefined);
    await broker.rules.create({ id: 'r', sql: 'SELECT payload.a FROM "t" WHERE payload.a > 1', actions: [] });
    await using member = await kit.connect({ clientId: 'm' });
    await member.subscribe('$share/g/+');
    await using other = await kit.connect({ clientId: 'o' });
    await other.subscribe('$share/other/t', { qos: 1 });
    await broker.publish('t', 'no json');
    assert.deepEqual(await codesOf(broker, { topic: 't', clientId: 'o' }), []);
    const text = await textOf(broker, { topic: 't' }, 'right_withdrawn');
    assert.equal(text, 'No member of share group "g" has the right to receive topic "t".');
    assert.ok((await codesOf(broker, { topic: 't', clientId: 'm' })).includes('right_withdrawn'));
  });

  it('names messages that were sent and not acknowledged, also if their topics are not kept', async () => {
    for (const store of [undefined, memoryStore()]) {
      await using broker = await startBroker(store === undefined ? {} : { store });
      const client = await rawClient(broker, { clientId: 'frozen' });
      await granted(client, 1, { topic: 'a/#', qos: 1 });
      await broker.publish('a/1', 'x', { qos: 1 });
      const { isComplete, causes } = await broker.monitor.why({ topic: 'a/1', clientId: 'frozen' });
      assert.deepEqual(
        causes.map(({ code }) => code),
        ['awaiting_acknowledgements']
      );
      assert.match(causes[0].text, /1 of at most \d+ wait for its acknowledgement/);
      assert.equal(isComplete, false, 'it may be another topic');
    }
  });

  it('finds the drops below the mount point of the receiver, and names the mount point only if nothing else is known', async () => {
    await using broker = await startBroker({ zones: { ann: { mountpoint: 'ann/' } }, maxMqueueLen: 1 });
    const client = await rawClient(broker, {
      clientId: 'c',
      properties: { sessionExpiryInterval: 60 },
      meta: { zone: 'ann' } as never
    });
    await granted(client, 1, { topic: 'a', qos: 1 });
    await cut(client);
    const device = await rawClient(broker, { clientId: 'd', meta: { zone: 'ann' } as never });
    for (const payload of ['one', 'two']) device.send(publish('a', payload));
    await cut(device);
    for (const payload of ['one', 'two']) await broker.publish('ann/a', payload, { qos: 1 });
    const codes = await codesOf(broker, { topic: 'a', clientId: 'c' });
    assert.ok(codes.includes('queue_full') && !codes.includes('mount_point'), codes.join());
    const other = await rawClient(broker, { clientId: 'o', meta: { zone: 'ann' } as never });
    await granted(other, 1, { topic: 'b', qos: 1 });
    await broker.publish('b', 'x');
    assert.deepEqual(await codesOf(broker, { topic: 'b', clientId: 'o' }), ['mount_point', 'no_subscriber']);
  });

  it('names a will that is delayed, and one that was deleted because its client disconnected itself', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await using watcher = await kit.connect({ clientId: 'w' });
    await watcher.subscribe('will/+', { qos: 1 });
    const will = (topic: string, delay: number) =>
      ({ topic, payload: 'gone', properties: { willDelayInterval: delay } }) as never;
    const calm = await rawClient(broker, { clientId: 'calm', will: will('will/calm', 0) });
    calm.send({ cmd: 'disconnect', reasonCode: 0 } as never);
    await cut(calm);
    const lost = await rawClient(broker, {
      clientId: 'lost',
      will: will('will/lost', 300),
      properties: { sessionExpiryInterval: 600 }
    });
    await cut(lost);
    for (const publisher of [undefined, 'calm'])
      assert.equal(
        await textOf(broker, { topic: 'will/calm', clientId: 'w', publisher }, 'will_dropped'),
        'The will of client "calm" to topic "will/calm" was deleted, because the client ended its connection itself.'
      );
    for (const publisher of [undefined, 'lost'])
      assert.equal(
        await textOf(broker, { topic: 'will/lost', clientId: 'w', publisher }, 'will_delayed'),
        'The will of client "lost" to topic "will/lost" is not published yet: its Will Delay is 300 s.'
      );
  });

  it('says until when a silent publisher counts as connected, so that its will is not published, if nothing else is found', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using watcher = await kit.connect({ clientId: 'w' });
    await watcher.subscribe('will/+', { qos: 1 });
    const will = (topic: string) => ({ topic, payload: 'gone' }) as never;
    await rawClient(broker, { clientId: 'frozen', keepalive: 3600, will: will('will/frozen') });
    await rawClient(broker, { clientId: 'endless', keepalive: 0, will: will('will/endless') });
    await clock.advance('10m');
    const question = { topic: 'will/frozen', clientId: 'w', publisher: 'frozen' };
    const { causes } = await broker.monitor.why(question);
    const text =
      'The will of client "frozen" to topic "will/frozen" is not published yet: ' +
      'the client still counts as connected until 2026-01-01T01:30:00.000Z, as its keep alive is 3600 s.';
    assert.deepEqual(
      causes.map((cause) => cause.text),
      [text]
    );
    assert.match(causes[0].remedy, /shorter keep alive/);
    const endless = { topic: 'will/endless', publisher: 'endless' };
    assert.match(await textOf(broker, endless, 'will_delayed'), /has no keep alive/);
    for (const other of [{ topic: 'will/frozen' }, { ...question, topic: 'will/other' }])
      assert.ok(!(await codesOf(broker, other)).includes('will_delayed'));
    await clock.advance('90m');
    assert.ok(!(await codesOf(broker, question)).includes('will_delayed'), 'it was published');
  });

  it('says that a publisher which has lost its connection had no will, until it is back', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using watcher = await kit.connect({ clientId: 'w' });
    await watcher.subscribe('will/+', { qos: 1 });
    const will = { topic: 'will/b', payload: 'gone' } as never;
    await cut(await rawClient(broker, { clientId: 'a' }));
    await cut(await rawClient(broker, { clientId: 'b', will }));
    const at = clock.now();
    await clock.advance('1m');
    const question = { topic: 'will/a', clientId: 'w', publisher: 'a' };
    const { causes } = await broker.monitor.why(question);
    const text = 'Client "a" lost its connection, and had no will: it is away since 2026-01-01T00:00:00.000Z.';
    assert.deepEqual(
      causes.map((cause) => cause.text),
      [text]
    );
    assert.match(causes[0].remedy, /^Set a will/);
    assert.deepEqual(await codesOf(broker, { ...question, at }), ['no_will']);
    assert.deepEqual(await codesOf(broker, { topic: 'will/b', clientId: 'w', publisher: 'b' }), []);
    await rawClient(broker, { clientId: 'a' });
    assert.deepEqual(await codesOf(broker, question), []);
  });

  it('names the operator or the return of the client by which a will was deleted', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await using watcher = await kit.connect({ clientId: 'w' });
    await watcher.subscribe('will/+', { qos: 1 });
    const connect = (clientId: string, willDelayInterval = 300) =>
      rawClient(broker, {
        clientId,
        clean: false,
        will: { topic: `will/${clientId}`, payload: 'gone', properties: { willDelayInterval } } as never,
        properties: { sessionExpiryInterval: 600 }
      });
    await connect('kicked', 0);
    broker.sessions.kick('kicked', { will: 'drop' });
    await cut(await connect('away'));
    broker.sessions.kick('away', { will: 'drop' });
    await cut(await connect('back'));
    const again = await connect('back');
    await connect('twin');
    const twin = await connect('twin');
    await turns();
    const [by, earlier] = [
      'the app or an operator disconnected the client without publishing it',
      'the client connected again before its Will Delay had passed'
    ];
    for (const [clientId, reason] of Object.entries({ kicked: by, away: by, back: earlier, twin: earlier }))
      assert.equal(
        await textOf(broker, { topic: `will/${clientId}`, clientId: 'w' }, 'will_dropped'),
        `The will of client "${clientId}" to topic "will/${clientId}" was deleted, because ${reason}.`
      );
    const remedyOf = async (clientId: string) =>
      (await broker.monitor.why({ topic: `will/${clientId}`, clientId: 'w' })).causes[0].remedy;
    for (const clientId of ['back', 'twin']) assert.match(await remedyOf(clientId), /a shorter Will Delay/);
    assert.match(await remedyOf('away'), /^Publish the will when the client is disconnected/);
    const { reasons } = broker.monitor;
    assert.equal(reasons.list({ code: 'will_dropped' }).entries.length, 4);
    for (const client of [again, twin]) await cut(client);
  });

  it('names blanks in a filter, a misspelled share prefix, and the filters of a client whose topic is misspelled', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe(['orders/new ', '$shared/g/tasks/#', 'boiler/temprature', 'x/1', 'x/2']);
    for (const clientId of ['c', undefined])
      assert.deepEqual(await codesOf(kit.broker, { topic: 'orders/new', clientId }), ['filter_space']);
    assert.deepEqual(await codesOf(kit.broker, { topic: 'tasks/1', clientId: 'c' }), ['filter_share']);
    assert.match(
      await textOf(kit.broker, { topic: 'boiler/temperature', clientId: 'c' }, 'no_subscriber'),
      /its subscriptions are "orders\/new ", "\$shared\/g\/tasks\/#", "boiler\/temprature" and 2 others\.$/
    );
  });
});

describe('The causes of a rule', () => {
  it('names the filters of a rule that does not select from the topic', async () => {
    await using kit = await createTestBroker();
    await kit.broker.rules.create({ id: 'typo', sql: 'SELECT * FROM "meters/#"', actions: [] });
    const { isComplete, causes } = await kit.broker.monitor.why({ topic: 'meter/4', rule: 'typo' });
    assert.equal(isComplete, true);
    assert.deepEqual(
      causes.map(({ text }) => text),
      ['Rule "typo" does not select from topic "meter/4": it reads "meters/#".']
    );
  });

  it('names the topics of the streams of a rule that reads others, and no error of another topic', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    broker.on('error', () => undefined);
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="oven/+", FORMAT="json")');
    await broker.streams.rules.create({ id: 'oven', sql: 'SELECT t FROM s WHERE t > 80', actions: [() => undefined] });
    await broker.publish('oven/2', 'no json');
    await clock.advance(200);
    assert.deepEqual(await codesOf(broker, { topic: 'ovens/2', rule: 'oven' }), ['from_unmatched']);
    assert.match(await textOf(broker, { topic: 'ovens/2', rule: 'oven' }, 'from_unmatched'), /it reads "oven\/\+"\.$/);
    assert.deepEqual(await codesOf(broker, { topic: 'oven/2', rule: 'oven' }), ['payload_invalid']);
  });

  it('does not take events of clients for messages', async () => {
    await using kit = await createTestBroker();
    const { rules, monitor } = kit.broker;
    await rules.create({ id: 'joins', sql: 'SELECT * FROM "$events/client_connected"', actions: [] });
    await rules.create({ id: 'both', sql: 'SELECT * FROM "$events/client/+", "t"', actions: [] });
    await rules.create({ id: 'losses', sql: 'SELECT * FROM "$events/delivery_dropped"', actions: [] });
    await kit.broker.publish('t', 'x');
    const [cause] = (await monitor.why({ topic: 't', rule: 'joins' })).causes;
    assert.equal(cause?.text, 'Rule "joins" does not select from topic "t": it reads "$events/client_connected".');
    for (const rule of ['both', 'losses']) assert.deepEqual(await codesOf(kit.broker, { topic: 't', rule }), []);
  });

  it('does not forget that WHERE has excluded messages when the counters of the rule are reset', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await broker.rules.create({ id: 'hot', sql: 'SELECT * FROM "kiln/#" WHERE payload.t > 80', actions: [] });
    for (const topic of ['kiln/1', 'kiln/2', 'kiln/3']) await broker.publish(topic, '{"t": 5}');
    const before = await broker.monitor.why({ topic: 'kiln/3', rule: 'hot' });
    assert.deepEqual([before.isComplete, before.causes.length], [false, 1]);
    await broker.rules.resetCounters('hot');
    assert.deepEqual(await broker.monitor.why({ topic: 'kiln/3', rule: 'hot' }), before);
  });

  it('tells that WHERE has excluded messages of which no example is kept', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await broker.rules.create({ id: 'hot', sql: 'SELECT * FROM "kiln/#" WHERE payload.t > 80', actions: [] });
    for (const topic of ['kiln/1', 'kiln/2']) await broker.publish(topic, '{"t": 5}'); // one example in 100 ms
    const text = await textOf(broker, { topic: 'kiln/2', rule: 'hot' }, 'where_false');
    assert.match(text, /it has excluded 2 messages, and none of the last examples is of this topic\.$/);
  });

  it('shows the example of a time at which the rule, which is disabled now, was running', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await broker.rules.create({ id: 'hot', sql: 'SELECT * FROM "kiln/#" WHERE payload.t > 80', actions: [] });
    await broker.publish('kiln/1', '{"t": 5}');
    const at = clock.now();
    await clock.advance('10m');
    await broker.rules.update('hot', { isEnabled: false });
    assert.deepEqual(await codesOf(broker, { topic: 'kiln/1', rule: 'hot', at }), ['where_false']);
    assert.deepEqual(await codesOf(broker, { topic: 'kiln/1', rule: 'hot' }), ['rule_stopped']);
  });
});
