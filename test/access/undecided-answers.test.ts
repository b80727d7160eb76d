import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthorizeRequest, AuthSource, Verdict } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish, startBroker, turns } from '../support/wire.ts';

/** A source that asks a server, which the test lets fail. */
class Server implements AuthSource {
  readonly name = 'server';
  readonly provides = ['authorization'] as const;
  isDown = false;
  /** What it decides while the server works. */
  isAllowed = true;
  asked = 0;
  readonly #answerIfDown: false | undefined;

  /** @param answerIfDown false: `onError` deny; undefined: `onError` ignore */
  constructor(answerIfDown: false | undefined) {
    this.#answerIfDown = answerIfDown;
  }

  async authorize(request: AuthorizeRequest): Promise<Verdict> {
    this.asked++;
    if (!this.isDown) return this.isAllowed;
    request.undecided();
    return this.#answerIfDown;
  }
}

const TTL = 60_000;

function start(server: Server, more: object = {}) {
  return createTestBroker({ auth: [server], allowAnonymous: true, aclCacheTtl: TTL, ...more });
}

describe('An answer that a source marks as undecided', () => {
  for (const answer of [false, undefined] as const)
    it(`to a PUBLISH (${answer}) is not kept: the next message is decided anew`, async () => {
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

  it('to a SUBSCRIBE refuses it, and is not kept', async () => {
    const server = new Server(false);
    await using kit = await start(server);
    const client = await rawClient(kit.broker, { clientId: 'c' });
    server.isDown = true;
    assert.deepEqual(await granted(client, 1, 'a'), [0x87]);
    server.isDown = false;
    assert.deepEqual(await granted(client, 2, 'a'), [0]);
  });

  it('to a SUBSCRIBE that something else allows is asked for again after 5 seconds', async () => {
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

  it('about a subscription removes nothing', async () => {
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

  it('is not kept if a hook of the app has marked it', async () => {
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
