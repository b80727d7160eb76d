import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import type { AuthorizeRequest, Verdict } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish, refusedConnect, startBroker, turns } from '../support/wire.ts';

/** A source that asks a server, which the test lets fail. */
class Server implements AuthSource {
  readonly name = 'server';
  readonly provides = ['authorization'] as const;
  isDown = false;
  /** The answer while the server works. */
  isAllowed = true;
  /** Filters that the source refuses. */
  readonly denied = new Set<string>();
  isThrowing = false;
  /** True: questions are answered when the test calls `release`. */
  isHanging = false;
  release: () => void = () => undefined;
  /** Maximum number of questions at a time. */
  room = Infinity;
  asked = 0;
  /** Questions that the source cannot decide next, although the server works. */
  readonly missed = new Set<string>();
  #open = 0;
  readonly #answerIfDown: false | undefined;

  /** @param answerIfDown false: `onError` deny; undefined: `onError` ignore */
  constructor(answerIfDown: false | undefined) {
    this.#answerIfDown = answerIfDown;
  }

  async authorize(request: AuthorizeRequest): Promise<Verdict> {
    this.asked++;
    if (this.isHanging)
      await new Promise<void>((resolve) => {
        this.release = resolve;
      });
    if (this.isThrowing) throw new Error('the server has failed');
    const isFull = this.#open >= this.room;
    this.#open++;
    await turns(1);
    this.#open--;
    if (!this.isDown && !isFull && !this.missed.delete(request.topic))
      return this.isAllowed && !this.denied.has(request.topic);
    request.undecided();
    return this.#answerIfDown;
  }
}

const TTL = 60_000;
const PERSISTENT = { clientId: 'c', properties: { sessionExpiryInterval: 3600 } };

function start(server: Server, more: object = {}) {
  return createTestBroker({ auth: [server], allowAnonymous: true, aclCacheTtl: TTL, ...more });
}

describe('An answer that a source marks as undecided', () => {
  for (const answer of [false, undefined] as const)
    it(`does not cache an undecided answer to a PUBLISH (${answer}): the next message is decided again`, async () => {
      const server = new Server(answer);
      await using kit = await start(server, { aclNomatch: 'allow' });
      const client = await rawClient(kit.broker, { clientId: 'c' });
      const send = async (messageId: number) => {
        client.send(publish('a', 'x', { qos: 1, messageId }));
        return ((await client.next('puback')).reasonCode ?? 0) < 0x80;
      };
      server.isDown = true;
      server.isAllowed = answer !== false;
      assert.equal(await send(1), answer !== false);
      server.isDown = false;
      server.isAllowed = answer === false;
      assert.equal(await send(2), answer === false);
      assert.equal(await send(3), answer === false);
      assert.equal(server.asked, 2, 'the second answer is kept');
    });

  it('refuses a SUBSCRIBE after an undecided answer, which is not cached', async () => {
    const server = new Server(false);
    await using kit = await start(server);
    const client = await rawClient(kit.broker, { clientId: 'c' });
    server.isDown = true;
    assert.deepEqual(await granted(client, 1, 'a'), [0x87]);
    server.isDown = false;
    assert.deepEqual(await granted(client, 2, 'a'), [0]);
  });

  it('asks again after 5 seconds about a SUBSCRIBE that something else allows', async () => {
    const server = new Server(undefined);
    server.isDown = true;
    await using kit = await start(server, { aclNomatch: 'allow' });
    const client = await rawClient(kit.broker, { clientId: 'c' });
    assert.deepEqual(await granted(client, 1, 'a'), [0]);
    server.isAllowed = false;
    await kit.clock.advance(7_000);
    assert.equal(server.asked, 2);
    await kit.broker.publish('a', '1');
    assert.deepEqual(await payloads(client), ['1'], 'the server still fails');
    server.isDown = false;
    await kit.clock.advance(7_000);
    await kit.broker.publish('a', '2');
    assert.deepEqual(await payloads(client), []);
  });

  it('removes nothing after an undecided answer about a subscription', async () => {
    const server = new Server(false);
    await using kit = await start(server, { aclRemoveSubscriptions: true });
    const removed: string[] = [];
    kit.broker.on('session.unsubscribed', ({ filter }) => removed.push(filter));
    const client = await rawClient(kit.broker, { clientId: 'c' });
    await granted(client, 1, 'a');
    server.isDown = true;
    await kit.clock.advance(TTL + 2_000);
    assert.deepEqual(removed, []);
  });

  it('does not cache an answer that a hook of the app has marked as undecided', async () => {
    const broker = await startBroker();
    await using _ = broker;
    let isDown = true;
    let asked = 0;
    const decide = (request: { undecided(): void }) => {
      asked++;
      if (isDown) request.undecided();
      return !isDown;
    };
    broker.hook('authorizePublish', decide, { cache: 'route' });
    broker.hook('authorizeSubscribe', decide, { cache: 'route' });
    const client = await rawClient(broker, { clientId: 'c' });
    assert.deepEqual(await granted(client, 1, 'a'), [0x87]);
    client.send(publish('a', '1'));
    await turns();
    isDown = false;
    assert.deepEqual(await granted(client, 2, 'a'), [0]);
    for (const text of ['2', '3']) client.send(publish('a', text));
    await turns();
    assert.deepEqual(await payloads(client), ['2', '3']);
    assert.equal(asked, 4);
  });
});

describe('While a source cannot decide about a subscription', () => {
  type Kit = Awaited<ReturnType<typeof start>>;

  /** The reasons with which connections have ended, and those of dropped messages. */
  function endsOf({ broker }: Kit) {
    const ends: string[] = [];
    broker.on('client.disconnected', ({ reason }) => ends.push(reason));
    broker.on('message.dropped', ({ reason }) => reason !== 'no_subscribers' && ends.push(`dropped ${reason}`));
    return ends;
  }

  it('keeps the last answer for aclCacheTtl after it has expired, and asks the source every 5 seconds', async () => {
    const server = new Server(false);
    await using kit = await start(server);
    const ends = endsOf(kit);
    const client = await rawClient(kit.broker, PERSISTENT);
    await granted(client, 1, 'a');
    server.isDown = true;
    server.asked = 0;
    await kit.clock.advance(TTL + 30_000);
    assert.ok(server.asked >= 5 && server.asked <= 7, `asked ${server.asked} times in 30 seconds`);
    await kit.broker.publish('a', '1');
    assert.deepEqual(await payloads(client), ['1']);
    server.isDown = false;
    await kit.clock.advance(7_000);
    server.asked = 0;
    await kit.clock.advance(TTL - 10_000);
    assert.equal(server.asked, 0, 'the new answer is kept for aclCacheTtl');
    server.isDown = true;
    await kit.clock.advance(TTL);
    await kit.broker.publish('a', '2');
    assert.deepEqual(await payloads(client), ['2'], 'and the time starts again');
    assert.deepEqual(ends, []);
  });

  it('disconnects a session that outlives its connection if the source stays undecided, and loses nothing', async () => {
    const server = new Server(false);
    await using kit = await start(server, { aclRemoveSubscriptions: true, maxInflight: 1 });
    const ends = endsOf(kit);
    const client = await rawClient(kit.broker, PERSISTENT);
    await granted(client, 1, { topic: 'a', qos: 1 });
    for (const text of ['1', '2']) await kit.broker.publish('a', text, { qos: 1 });
    assert.deepEqual(await payloads(client), ['1']);
    server.isDown = true;
    await kit.clock.advance(TTL * 2 + 10_000);
    assert.deepEqual(await client.refused(0x89), []);
    assert.deepEqual(ends.splice(0), ['source_failed']);
    await kit.broker.publish('a', '3', { qos: 1 });
    server.isDown = false;
    const again = await rawClient(kit.broker, { ...PERSISTENT, clean: false });
    const got = await payloads(again);
    for (let messageId = 1; messageId < 3; messageId++) {
      again.send({ cmd: 'puback', messageId, reasonCode: 0 });
      got.push(...(await payloads(again)));
    }
    assert.deepEqual(got, ['1', '2', '3']);
    assert.deepEqual(ends, []);
  });

  it('delivers nothing to a session that ends with its connection until the source decides', async () => {
    const server = new Server(false);
    await using kit = await start(server);
    const client = await rawClient(kit.broker, { clientId: 'c' });
    await granted(client, 1, 'a');
    server.isDown = true;
    await kit.clock.advance(TTL * 2 + 10_000);
    await kit.broker.publish('a', '1');
    assert.deepEqual(await payloads(client), []);
    server.isDown = false;
    await kit.clock.advance(7_000);
    await kit.broker.publish('a', '2');
    assert.deepEqual(await payloads(client), ['2']);
  });

  it('ends the withdrawn answer as soon as the source has not answered twice', async () => {
    const server = new Server(false);
    await using kit = await start(server);
    const ends = endsOf(kit);
    const client = await rawClient(kit.broker, PERSISTENT);
    const brief = await rawClient(kit.broker, { clientId: 'd' });
    for (const each of [client, brief]) await granted(each, 1, 'a');
    server.isDown = true;
    kit.broker.access.invalidate();
    await kit.clock.advance(2_100);
    await kit.broker.publish('a', '1');
    assert.deepEqual([await client.refused(0x89), await payloads(brief)], [[], []]);
    assert.deepEqual(ends, ['source_failed']);
  });

  it('keeps what something else allows (onError ignore), and refuses what was refused', async () => {
    const server = new Server(undefined);
    await using kit = await start(server, { aclNomatch: 'allow' });
    const ends = endsOf(kit);
    const client = await rawClient(kit.broker, PERSISTENT);
    for (const topic of ['a', 'b']) await granted(client, 1, topic);
    server.denied.add('b');
    await kit.clock.advance(TTL + 2_000);
    server.isDown = true;
    await kit.clock.advance(TTL * 4);
    for (const topic of ['a', 'b']) await kit.broker.publish(topic, topic);
    assert.deepEqual(await payloads(client), ['a']);
    assert.deepEqual(ends, []);
    client.cut();
    await turns();
    const again = await rawClient(kit.broker, { ...PERSISTENT, clean: false });
    for (const topic of ['a', 'b']) await kit.broker.publish(topic, topic);
    assert.deepEqual(await payloads(again), ['a'], 'also if the client returns');
  });

  it('asks a second later if the source is undecided once after its answers were withdrawn, and keeps the connection', async () => {
    const server = new Server(false);
    await using kit = await start(server);
    const ends = endsOf(kit);
    const client = await rawClient(kit.broker, PERSISTENT);
    for (const topic of ['a', 'b']) await granted(client, 1, topic);
    for (const topic of ['a', 'b']) server.missed.add(topic);
    server.denied.add('b');
    kit.broker.access.invalidate();
    await kit.clock.advance(2_100);
    for (const topic of ['a', 'b']) await kit.broker.publish(topic, topic);
    assert.deepEqual(await payloads(client), ['a']);
    assert.deepEqual(ends, []);
  });

  it('ends the withdrawn answer at once if the source does not answer in time', async () => {
    const server = new Server(false);
    await using kit = await start(server, { hookTimeout: 5_000 });
    kit.broker.on('error', () => undefined);
    const ends = endsOf(kit);
    const client = await rawClient(kit.broker, PERSISTENT);
    await granted(client, 1, 'a');
    server.isHanging = true;
    kit.broker.access.invalidate();
    await kit.clock.advance(5_200);
    assert.deepEqual(await client.refused(0x89), []);
    assert.deepEqual(ends, ['source_failed']);
  });

  it('keeps what no rule has decided when other rules change', async () => {
    const server = new Server(undefined);
    await using kit = await start(server);
    const ends = endsOf(kit);
    let isAllowed: true | undefined = true;
    kit.broker.hook('authorizeSubscribe', ({ filter }) => (filter === 'hooked' ? isAllowed : undefined), {
      isFirst: true
    });
    const client = await rawClient(kit.broker, PERSISTENT);
    await granted(client, 1, 'hooked');
    isAllowed = undefined;
    server.isDown = true;
    for (const topic of ['other', 'another']) {
      await kit.broker.access.acl.set({ access: 'allow', topic });
      await kit.clock.advance(4_000);
    }
    await kit.broker.publish('hooked', '1');
    assert.deepEqual(await payloads(client), ['1']);
    assert.deepEqual(ends, []);
  });

  it('ends the right to a subscription whose allowing rule is removed', async () => {
    const server = new Server(false);
    await using kit = await start(server);
    const ends = endsOf(kit);
    await kit.broker.access.acl.set({ access: 'allow', topic: 'a' });
    const client = await rawClient(kit.broker, PERSISTENT);
    await granted(client, 1, 'a');
    server.isDown = true;
    await kit.broker.access.acl.delete('all', 'a');
    await kit.clock.advance(2_100);
    assert.deepEqual(await client.refused(0x89), []);
    assert.deepEqual(ends, ['source_failed']);
  });

  it('does not extend the last answer if the first question is answered late', async () => {
    const server = new Server(false);
    await using kit = await start(server, { hookTimeout: TTL });
    const ends = endsOf(kit);
    const client = await rawClient(kit.broker, PERSISTENT);
    await granted(client, 1, 'a');
    server.isHanging = true;
    await kit.clock.advance(TTL + 2_000);
    server.isDown = true;
    server.isHanging = false;
    await kit.clock.advance(TTL - 20_000);
    assert.deepEqual(await payloads(client), []);
    server.release();
    await turns();
    await kit.clock.advance(15_000);
    assert.deepEqual(ends, []);
    await kit.clock.advance(12_000);
    assert.deepEqual(ends, ['source_failed']);
    assert.deepEqual(await client.refused(0x89), []);
  });

  for (const fails of ['says that it is undecided', 'throws', 'has more questions than it can ask'])
    it(`refuses a client that returns with 0x88 (3.x: 3) if the source ${fails}, and leaves its session unchanged`, async () => {
      const server = new Server(false);
      await using kit = await start(server, { aclRemoveSubscriptions: true });
      kit.broker.on('error', () => undefined);
      const ends = endsOf(kit);
      const first = await rawClient(kit.broker, PERSISTENT);
      for (const topic of ['a', 'b']) await granted(first, 1, { topic, qos: 1 });
      first.cut();
      await turns();
      ends.length = 0;
      for (const text of ['1', '2', '3']) await kit.broker.publish('a', text, { qos: 1 });
      if (fails === 'throws') server.isThrowing = true;
      else if (fails === 'says that it is undecided') server.isDown = true;
      else server.room = 0;
      const returning = { clientId: 'c', clean: false };
      assert.equal((await refusedConnect(kit.broker, returning)).reasonCode, 0x88);
      assert.equal((await refusedConnect(kit.broker, { ...returning, version: 4 })).reasonCode, 0x88);
      await kit.clock.advance(TTL);
      assert.equal(kit.broker.sessions.get('c').counters().subscriptions, 2);
      server.isThrowing = server.isDown = false;
      server.room = Infinity;
      const again = await rawClient(kit.broker, { ...PERSISTENT, clean: false });
      assert.deepEqual(await payloads(again), ['1', '2', '3']);
      assert.equal(ends.includes('dropped not_authorized'), false);
    });
});
