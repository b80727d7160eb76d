import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import { type AuthorizeRequest, memoryStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { granted, payloads, subscribe, turns } from '../support/wire.ts';

/** A source that answers at once, or when the test does. */
class Manual implements AuthSource {
  readonly name = 'manual';
  readonly provides = ['authorization'] as const;
  /** undefined: the test answers. */
  isAllowed: boolean | undefined = true;
  /** Answer the open questions, in the order in which they were asked. */
  readonly answers: ((isAllowed: boolean) => void)[] = [];
  asked = 0;

  authorize({ action }: AuthorizeRequest): boolean | Promise<boolean> {
    if (action === 'publish') return true;
    this.asked++;
    return this.isAllowed ?? new Promise((resolve) => this.answers.push(resolve));
  }

  reload(): void {}
}

const TTL = 60_000;
const HOUR = 3_600_000;
const PERSISTENT = { clientId: 'c', properties: { sessionExpiryInterval: 3600 } };

function start(source: AuthSource, more: object = {}) {
  return createTestBroker({ auth: [source], allowAnonymous: true, aclCacheTtl: TTL, hookTimeout: HOUR, ...more });
}

/** A client with a subscription whose answer has expired, so that the source is being asked again. */
async function clientInQuestion({ broker, clock }: Awaited<ReturnType<typeof start>>, source: Manual, filter = 'a') {
  const client = await rawClient(broker, { clientId: 'c' });
  await granted(client, 1, filter);
  source.isAllowed = undefined;
  await clock.advance(TTL + 2_000);
  assert.equal(source.answers.length, 1);
  return client;
}

describe('The answer of a source about a subscription', () => {
  for (const clientId of [undefined, 'c'])
    it(`asks again after an answer that was asked for before the answers ${clientId ? 'about the client' : 'about all clients'} were withdrawn`, async () => {
      const source = new Manual();
      await using kit = await start(source);
      const client = await clientInQuestion(kit, source);
      assert.equal(source.answers.length, 1);
      source.isAllowed = false;
      kit.broker.access.invalidate(clientId);
      await turns();
      source.answers[0](true);
      await turns();
      await kit.broker.publish('a', 'secret');
      assert.deepEqual(await payloads(client), []);
    });

  it('uses an answer although the answers about the client are withdrawn repeatedly, and asks one more question', async () => {
    const source = new Manual();
    await using kit = await start(source);
    const client = await clientInQuestion(kit, source);
    for (let at = 0; at < 3; at++) {
      kit.broker.access.invalidate('c');
      await turns();
    }
    assert.equal(source.answers.length, 1);
    source.answers[0](false);
    await turns();
    await kit.broker.publish('a', 'secret');
    assert.deepEqual(await payloads(client), []);
    assert.equal(source.answers.length, 2);
    source.answers[1](true);
    await turns();
    await kit.broker.publish('a', 'x');
    assert.deepEqual(await payloads(client), ['x']);
  });

  it('asks again if rules change before the answer arrives', async () => {
    const source = new Manual();
    await using kit = await start(source);
    const client = await clientInQuestion(kit, source);
    source.answers[0](false);
    await turns();
    await kit.clock.advance(TTL + 2_000);
    await kit.broker.access.acl.set({ access: 'allow', topic: 'a' });
    await kit.clock.advance(10);
    assert.equal(source.answers.length, 2);
    source.answers[1](false);
    await turns();
    await kit.broker.publish('a', 'x');
    assert.deepEqual(await payloads(client), ['x']);
  });

  it('does not restore a subscription that a rule has denied before the source allows it', async () => {
    const source = new Manual();
    await using kit = await start(source);
    const client = await clientInQuestion(kit, source, 'a/#');
    await kit.broker.access.acl.set({ access: 'deny', topic: 'a/#', action: 'subscribe', exact: true });
    await kit.clock.advance(10);
    source.answers[0](true);
    await turns();
    await kit.broker.publish('a/b', 'secret');
    assert.deepEqual(await payloads(client), []);
  });

  it('does not keep, for lack of an answer, what a client has withdrawn by repeated re-authentications', async () => {
    const source = new Manual();
    await using kit = await start(source, { hookTimeout: 5_000 });
    kit.broker.on('error', () => undefined);
    const client = await rawClient(kit.broker, PERSISTENT);
    await granted(client, 1, 'a');
    source.isAllowed = undefined;
    for (let at = 0; at < 8; at++) {
      kit.broker.access.invalidate('c');
      await kit.clock.advance(2_000);
    }
    assert.deepEqual(await client.refused(0x89), []);
  });

  it('ignores the answer when the client has subscribed again in the meantime', async () => {
    const source = new Manual();
    await using kit = await start(source);
    const client = await clientInQuestion(kit, source);
    client.send(subscribe(2, 'a'));
    await turns();
    source.answers[1](true);
    await client.next('suback');
    source.answers[0](false);
    await turns();
    await kit.broker.publish('a', 'x');
    assert.deepEqual(await payloads(client), ['x']);
  });

  for (const clientId of [undefined, 'c'])
    it(`asks again after a SUBSCRIBE if the answers ${clientId ? 'about the client' : 'about all clients'} were withdrawn in the meantime`, async () => {
      const source = new Manual();
      source.isAllowed = undefined;
      await using kit = await start(source);
      const client = await rawClient(kit.broker, { clientId: 'c' });
      client.send(subscribe(1, 'a'));
      await turns();
      kit.broker.access.invalidate(clientId);
      source.isAllowed = false;
      source.answers[0](true);
      await client.next('suback');
      await turns();
      await kit.broker.publish('a', 'secret');
      assert.deepEqual(await payloads(client), []);
    });

  it('neither removes nor restores a subscription by an answer that was withdrawn before it arrived', async () => {
    const source = new Manual();
    await using kit = await start(source, { aclRemoveSubscriptions: true });
    const client = await clientInQuestion(kit, source);
    kit.broker.access.invalidate('c'); // the right was given back after the answer
    source.answers[0](false);
    await turns();
    source.answers[1](true);
    await turns();
    await kit.broker.publish('a', 'x');
    assert.deepEqual(await payloads(client), ['x']);
  });

  it('does not restore a refused subscription by an answer that was withdrawn before it arrived', async () => {
    const source = new Manual();
    await using kit = await start(source);
    const client = await clientInQuestion(kit, source);
    source.answers[0](false);
    await turns();
    await kit.clock.advance(TTL + 2_000);
    kit.broker.access.invalidate('c');
    source.answers[1](true);
    await turns();
    await kit.broker.publish('a', 'secret');
    assert.deepEqual(await payloads(client), []);
    source.answers[2](true);
    await turns();
    await kit.broker.publish('a', 'x');
    assert.deepEqual(await payloads(client), ['x']);
  });

  it('ignores the answer for a client that has become a superuser in the meantime', async () => {
    const source = new Manual();
    let isSuperuser = false;
    const hooks = { authenticate: () => ({ allow: true, isSuperuser }) as const };
    await using kit = await start(source, { hooks, aclRemoveSubscriptions: true });
    const method = { authenticationMethod: 'any' };
    const client = await rawClient(kit.broker, { clientId: 'c', properties: method });
    await granted(client, 1, 'a');
    source.isAllowed = undefined;
    await kit.clock.advance(TTL + 2_000);
    isSuperuser = true;
    client.send({ cmd: 'auth', reasonCode: 0x19, properties: method });
    await client.next('auth');
    source.answers[0](false);
    await turns();
    await kit.broker.publish('a', 'x');
    assert.deepEqual(await payloads(client), ['x']);
  });

  it('refuses a client that returns if the answer was withdrawn in the meantime, and leaves the session unchanged', async () => {
    const source = new Manual();
    await using kit = await start(source);
    const first = await rawClient(kit.broker, PERSISTENT);
    await granted(first, 1, { topic: 'a', qos: 1 });
    first.cut();
    await turns();
    await kit.broker.publish('a', 'kept', { qos: 1 });
    source.isAllowed = undefined;
    const returning = await rawClient(kit.broker, { connect: false });
    returning.send(connectPacket({ ...PERSISTENT, clean: false }));
    await turns();
    kit.broker.access.invalidate('c');
    source.answers[0](true);
    assert.equal((await returning.next('connack')).reasonCode, 0x88);
    source.isAllowed = true;
    const again = await rawClient(kit.broker, { ...PERSISTENT, clean: false });
    assert.deepEqual(await payloads(again), ['kept']);
  });

  for (const store of [undefined, memoryStore()])
    it(`refuses again after a connection as superuser${store ? ', with a store' : ''}`, async () => {
      const source = new Manual();
      let isSuperuser = false;
      const hooks = { authenticate: () => ({ allow: true, isSuperuser }) as const };
      await using kit = await start(source, { hooks, ...(store && { store }) });
      const returns = async () => {
        const client = await rawClient(kit.broker, { ...PERSISTENT, clean: false });
        await kit.broker.publish('a', 'x');
        const texts = await payloads(client);
        client.cut();
        await turns();
        return texts;
      };
      const first = await rawClient(kit.broker, PERSISTENT);
      await granted(first, 1, 'a');
      source.isAllowed = false;
      await kit.clock.advance(TTL + 2_000);
      assert.deepEqual(await returns(), []);
      isSuperuser = true;
      assert.deepEqual(await returns(), ['x']);
      isSuperuser = false;
      assert.deepEqual(await returns(), []);
    });

  it('asks again when a source is loaded again, added or removed', async () => {
    const source = new Manual();
    await using kit = await start(source);
    const client = await rawClient(kit.broker, { clientId: 'c' });
    await granted(client, 1, 'a');
    const texts = async () => {
      await kit.clock.advance(10);
      await kit.broker.publish('a', 'x');
      return payloads(client);
    };
    source.isAllowed = false;
    await kit.broker.access.reload('manual');
    assert.deepEqual(await texts(), []);
    source.isAllowed = true;
    await kit.broker.access.create({ name: 'other', authorize: () => undefined });
    assert.deepEqual(await texts(), ['x']);
    source.isAllowed = false;
    kit.broker.access.invalidate();
    assert.deepEqual(await texts(), []);
    await kit.broker.access.create({ name: 'third', authorize: () => true });
    await kit.broker.access.delete('manual');
    assert.deepEqual(await texts(), ['x']);
  });
});

describe('The decision about a client that takes a session over', () => {
  /** Allows everything to ann, and lets the test answer about others. */
  class Ann extends Manual {
    override authorize(request: AuthorizeRequest): boolean | Promise<boolean> {
      return request.client.username === 'ann' || super.authorize(request);
    }
  }

  it('applies the decision only if the client gets the session', async () => {
    const source = new Ann();
    await using kit = await start(source, { aclRemoveSubscriptions: true, takeoverByOtherUser: 'refuse' });
    const first = await rawClient(kit.broker, { ...PERSISTENT, username: 'bob' });
    await granted(first, 1, 'a');
    first.cut();
    await turns();
    source.isAllowed = undefined;
    const bob = await rawClient(kit.broker, { connect: false });
    bob.send(connectPacket({ ...PERSISTENT, clean: false, username: 'bob' }));
    await turns();
    source.isAllowed = true;
    await kit.broker.sessions.get('c').discard();
    const ann = await rawClient(kit.broker, { ...PERSISTENT, username: 'ann' });
    await granted(ann, 1, 'a');
    source.answers[0](false);
    assert.notEqual((await bob.next('connack')).reasonCode, 0);
    await kit.broker.publish('a', 'x');
    assert.deepEqual(await payloads(ann), ['x']);
    assert.equal(kit.broker.sessions.get('c').counters().subscriptions, 1);
  });

  for (const isConnected of [false, true])
    it(`does not apply the decision if the CONNACK does not fit, ${isConnected ? 'so the connected client gets its messages' : 'so nothing queued is lost'}`, async () => {
      const source = new Ann();
      await using kit = await start(source, { aclRemoveSubscriptions: true });
      const first = await rawClient(kit.broker, { ...PERSISTENT, username: 'ann' });
      await granted(first, 1, { topic: 'a', qos: 1 });
      if (!isConnected) first.cut();
      await turns();
      source.isAllowed = false;
      const bob = await rawClient(kit.broker, { connect: false });
      const properties = { maximumPacketSize: 3 };
      bob.send(connectPacket({ clientId: 'c', username: 'bob', clean: false, properties }));
      await turns();
      assert.equal(bob.isClosed, true);
      await kit.broker.publish('a', 'x', { qos: 1 });
      const ann = isConnected ? first : await rawClient(kit.broker, { ...PERSISTENT, username: 'ann', clean: false });
      assert.deepEqual(await payloads(ann), ['x']);
    });

  it('decides again if the session has been replaced by another one', async () => {
    const source = new Ann();
    source.isAllowed = undefined;
    await using kit = await start(source);
    const ann = await rawClient(kit.broker, { ...PERSISTENT, username: 'ann' });
    await granted(ann, 1, 'a');
    const bob = await rawClient(kit.broker, { connect: false });
    bob.send(connectPacket({ ...PERSISTENT, clean: false, username: 'bob' }));
    await turns();
    const anew = await rawClient(kit.broker, { ...PERSISTENT, username: 'ann' });
    await granted(anew, 1, 'b');
    source.isAllowed = false;
    source.answers[0](true);
    await bob.next('connack');
    await kit.broker.publish('b', 'secret');
    assert.deepEqual(await payloads(bob), []);
  });

  it('includes subscriptions that the previous connection makes in the meantime', async () => {
    const source = new Ann();
    source.isAllowed = undefined;
    await using kit = await start(source);
    const ann = await rawClient(kit.broker, { ...PERSISTENT, username: 'ann' });
    await granted(ann, 1, 'a');
    const bob = await rawClient(kit.broker, { connect: false });
    bob.send(connectPacket({ ...PERSISTENT, clean: false, username: 'bob' }));
    await turns();
    await granted(ann, 2, 'b');
    source.isAllowed = false;
    source.answers[0](true);
    await bob.next('connack');
    await turns();
    await kit.broker.publish('b', 'secret');
    assert.deepEqual(await payloads(bob), []);
  });
});
