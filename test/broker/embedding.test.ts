import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { coreOf } from '../../lib/broker/broker.ts';
import { type Broker, createBroker, type MessageInput } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';

async function started(options: Parameters<typeof createBroker>[0] = {}): Promise<Broker> {
  return createBroker(options).start();
}

/** Actors that the broker's system holds, its root apart. */
async function liveActors(broker: Broker): Promise<number> {
  const seen = new Map<string, boolean>();
  const end = broker.inspect((event) => {
    const { status, value } = (event.snapshot ?? {}) as { status?: string; value?: string };
    // the root has no state of its own
    if (event.type === '@xstate.snapshot' && value !== undefined)
      seen.set(event.actorRef.sessionId, status === 'active');
  });
  for (let round = 0; round < 5; round++) {
    const client = await broker.connect({ clientId: 'p', clean: false, sessionExpiry: 3600 });
    const gone = broker.nextEvent('client.disconnected');
    await client.disconnect();
    await gone;
  }
  end();
  return [...seen.values()].filter(Boolean).length;
}

describe('a broker in an app', () => {
  it('ends the actor of each session that goes offline', async () => {
    await using broker = await started();
    assert.equal(await liveActors(broker), 0);
  });

  it('carries out start and stop in the order of the calls', async () => {
    const broker = createBroker();
    await broker.start();
    const [, restarted] = [broker.stop(), broker.start()];
    await restarted;
    assert.equal(broker.state, 'connected');
    const [again] = [broker.start(), await broker.stop()];
    await again;
    assert.equal(broker.state, 'disconnected');
  });

  it('stops although a stream can not be destroyed, and tells of it', async () => {
    const broker = await started();
    const failures: string[] = [];
    broker.on('error', ({ error }) => failures.push(error.message));
    class Stubborn extends Duplex {
      override _read(): void {}
      override destroy(): this {
        throw new Error('no');
      }
    }
    broker.handle(new Stubborn());
    await broker.stop({ timeoutMs: 0 });
    assert.equal(broker.state, 'disconnected');
    assert.ok(failures.includes('no'));
  });

  it('loses nothing that a stream answers within the write', async () => {
    await using broker = await started();
    const reader = new PacketReader({ side: 'client', version: 4 });
    let acknowledged = 0;
    const stream: Duplex = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        reader.feed(Buffer.from(chunk));
        for (let packet = reader.next(); packet !== undefined; packet = reader.next()) {
          if (packet.cmd === 'puback') acknowledged++;
          if (packet.cmd === 'publish' && packet.messageId !== undefined) {
            stream.push(encode({ cmd: 'puback', messageId: packet.messageId, reasonCode: 0 }, 4));
          }
        }
        done();
      }
    });
    const say = async (bytes: Buffer) => {
      stream.push(bytes);
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    };
    broker.handle(stream);
    await say(
      encode({ cmd: 'connect', protocolVersion: 4, bridge: false, clientId: 's', clean: true, keepalive: 0 }, 4)
    );
    await say(
      encode(
        { cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 't', qos: 1, nl: false, rap: false, rh: 0 }] },
        4
      )
    );
    const payload = Buffer.alloc(50_000);
    const publishes = [1, 2, 3, 4, 5, 6, 7].map((messageId) =>
      encode({ cmd: 'publish', topic: 't', payload, qos: 1, dup: false, retain: false, messageId }, 4)
    );
    await say(Buffer.concat(publishes));
    assert.equal(acknowledged, 7);
    assert.equal(broker.session('s').figures().inflight, 0);
    assert.equal(broker.metrics.counter('packets.puback.received'), 7);
  });

  it('takes nothing for a stream that is none', async () => {
    await using broker = await started();
    assert.throws(() => broker.handle({} as Duplex), { code: 'STREAM_INVALID' });
  });

  it('lets handlers publish to each other as often as they like', async () => {
    await using broker = await started();
    let count = 0;
    const done = new Promise<void>((resolve) => {
      broker.subscribe('count', async ({ payload }) => {
        if (++count === 3_000) resolve();
        else await broker.publish('count', String(Number(payload) + 1));
      });
    });
    await broker.publish('count', '0');
    await done;
    assert.equal(count, 3_000);
  });

  it('does not call a handler that has unsubscribed', async () => {
    await using broker = await started();
    const called: string[] = [];
    const endings: (() => void)[] = [];
    broker.subscribe('t', () => {
      called.push('first');
      for (const end of endings) end();
    });
    endings.push(broker.subscribe('t', () => called.push('second')));
    await broker.publish('t', 'x');
    assert.deepEqual(called, ['first']);
  });

  it('keeps a message when a publish hook answers with what is no message', async () => {
    for (const answer of [null, 5, 'x', { allow: true }]) {
      await using broker = await started({ hooks: { publish: () => answer as never } });
      const client = await broker.connect();
      assert.equal((await client.publish('t', 'x', { qos: 1 })).reasonCode, 0x10);
    }
  });

  it('keeps properties that a publish hook does not name', async () => {
    await using broker = await started({
      hooks: { publish: ({ message }) => ({ ...message, payload: 'z' }) as MessageInput }
    });
    const got = broker.messages('t');
    await broker.publish('t', 'x', { properties: { contentType: 'text/plain' } });
    const { value } = await got.next();
    assert.deepEqual([value.payload.toString(), value.properties], ['z', { contentType: 'text/plain' }]);
  });

  it('lets nobody in whose authenticate hook answers with what is no answer', async () => {
    for (const answer of [1, 'yes', { allow: 'true' }, { allow: 1 }, {}]) {
      await using broker = await started({ hooks: { authenticate: () => answer as never } });
      const failures: string[] = [];
      broker.on('error', ({ during }) => failures.push(during));
      await assert.rejects(broker.connect(), { code: 'CONNECT_REFUSED' });
      assert.deepEqual(failures, ['hook authenticate']);
    }
  });

  it('redirects with 0x9C when a hook names another server and no code', async () => {
    await using broker = await started({
      hooks: { preConnect: () => ({ allow: false, serverReference: 'other:1883' }) }
    });
    await assert.rejects(broker.connect(), { reasonCode: 0x9c });
  });

  it('refuses properties that a client may not send either', async () => {
    await using broker = await started();
    for (const properties of [
      { responseTopic: 'a/#' },
      { contentType: 'a\0b' },
      { contentType: 5 },
      { messageExpiryInterval: 1.5 },
      { correlationData: 'text' },
      { userProperties: { a: 'b' } },
      { payloadFormatIndicator: 7 }
    ]) {
      await assert.rejects(broker.publish('t', 'x', { properties } as never), { code: 'MESSAGE_INVALID' });
    }
    // of a received message's properties only those of applications are taken
    await broker.publish('t', 'x', { properties: { topicAlias: 3, subscriptionIdentifier: [7] } as never });
  });

  it('grants nothing to a session that a listener has ended', async () => {
    await using broker = await started();
    const client = await broker.connect({ clientId: 'k' });
    const handle = broker.session('k');
    broker.on('client.subscribe', () => handle.kick());
    await assert.rejects(client.subscribe(['k/1', 'k/2']));
    assert.throws(() => handle.subscribe('k/3'), { code: 'SUBSCRIBE_REFUSED' });
    assert.equal(handle.unsubscribe('k/1'), false);
    assert.equal(coreOf(broker).routing.count, 0);
  });

  it('holds no session for a message that outlives it', async () => {
    await using broker = await started();
    const client = await broker.connect({ clientId: 'publisher', username: 'u' });
    await client.publish('kept', 'x', { qos: 1, retain: true });
    const { value } = await broker.retained('kept').next();
    assert.deepEqual({ ...value.origin }, { clientId: 'publisher', username: 'u' });
  });

  it('keeps a retained payload as it was, whatever readers and writers do to their buffers', async () => {
    await using broker = await started();
    const payload = Buffer.alloc(10_000, 'x');
    await broker.publish('kept', payload, { retain: true });
    payload.fill('?');
    const client = await broker.connect();
    client.on('message', (message) => {
      message.payload.fill('!');
    });
    await client.subscribe('kept');
    await client.publish('done', 'x', { qos: 1 });
    const { value } = await broker.retained('kept').next();
    assert.equal(value.payload.toString(), 'x'.repeat(10_000));
  });

  it('lets expired retained messages go after a restart, too', async () => {
    const broker = await started();
    await broker.publish('kept', 'x', { retain: true, properties: { messageExpiryInterval: 10 } });
    await broker.stop();
    assert.equal(coreOf(broker).wheel.size, 0);
    await broker.start();
    const before = coreOf(broker).wheel.size;
    await broker.publish('kept', '', { retain: true });
    assert.equal(coreOf(broker).wheel.size, before - 1);
    await broker.stop();
  });

  it('refuses mount points that reach into the topics of others', () => {
    for (const mountpoint of ['+/', 'm/#/', 'a\0b']) {
      assert.throws(() => createBroker({ mountpoint }), { code: 'OPTION_INVALID' });
    }
  });

  it('knows its hooks and events by name', async () => {
    const broker = createBroker();
    assert.throws(() => broker.on('client.conected' as never, () => undefined), /did you mean "client.connected"/);
    assert.throws(() => broker.hook('authenticat' as never, (() => true) as never), /did you mean "authenticate"/);
    assert.throws(() => createBroker({ hooks: { authenticate: 5 as never } }), { code: 'HOOK_INVALID' });
    assert.throws(() => broker.subscribe('a', 5 as never), { code: 'HANDLER_INVALID' });
  });
});
