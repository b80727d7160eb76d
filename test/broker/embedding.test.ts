import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import type { ListenerHandle } from '../../lib/adapter.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { duplexPair } from '../../lib/client/duplex.ts';
import { type Broker, connectClient, createBroker, type MessageInput } from '../../lib/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import { connect, turns, withResolvers } from '../support/wire.ts';

async function started(options: Parameters<typeof createBroker>[0] = {}): Promise<Broker> {
  return createBroker(options).start();
}

/** A listener that only opens and closes. */
function listenerStub(
  name: string,
  open: () => Promise<void> = () => Promise.resolve(),
  close: () => Promise<void> = () => Promise.resolve()
): ListenerHandle {
  const info = () => ({ acceptors: 1, maxConnections: 0, currentConnections: 0, shutdownCount: {} });
  return { name, protocol: 'mqtt:tcp', address: undefined, open, close, info };
}

/** The number of actors that are not done after a client has disconnected and returned five times. */
async function liveActors(broker: Broker): Promise<number> {
  const seen = new Map<string, boolean>();
  const end = broker.inspect((event) => {
    if (event.type === '@xstate.snapshot') seen.set(event.actorRef.sessionId, event.snapshot.status === 'active');
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

describe('A broker in an app', () => {
  it('keeps one actor for all connections of a session', async () => {
    await using broker = await started();
    assert.equal(await liveActors(broker), 1);
  });

  it('performs start and stop in the order of the calls', async () => {
    const broker = createBroker();
    await broker.start();
    const [, restarted] = [broker.stop(), broker.start()];
    await restarted;
    assert.equal(broker.state, 'connected');
    const [again] = [broker.start(), await broker.stop()];
    await again;
    assert.equal(broker.state, 'disconnected');
  });

  it('accepts a second start, a stop before the start, a second stop and a second dispose', async () => {
    const broker = createBroker();
    await broker.stop();
    assert.equal(broker.state, 'disconnected');
    assert.deepEqual(await Promise.all([broker.start(), broker.start()]), [broker, broker]);
    assert.equal(broker.startedAt === undefined, false);
    await Promise.all([broker.stop(), broker.stop()]);
    await broker[Symbol.asyncDispose]();
    await broker[Symbol.asyncDispose]();
    assert.equal(broker.state, 'disconnected');
    await broker.start();
    assert.equal(broker.state, 'connected');
    await broker.stop();
  });

  it('refuses invalid options of stop, and keeps running', async () => {
    await using broker = await started();
    for (const wrong of [{ timeoutMs: -1 }, { timeoutMs: '1s' }, { timeoutMs: NaN }, { wills: 'drop' }])
      await assert.rejects(broker.stop(wrong as never), { code: 'OPTION_INVALID', field: Object.keys(wrong)[0] });
    assert.equal(broker.state, 'connected');
  });

  it('refuses a message field that belongs in its properties and would be lost', async () => {
    await using broker = await started();
    await using client = await broker.connect({ clientId: 'c' });
    const message = { topic: 'a', payload: 'x', messageExpiryInterval: 3 };
    for (const sender of [broker, client])
      await assert.rejects(() => sender.publish(message), {
        code: 'MESSAGE_INVALID',
        field: 'messageExpiryInterval',
        message: /properties\.messageExpiryInterval/
      });
  });

  it('refuses unknown names in its methods, with a suggestion', async () => {
    await using broker = await started();
    await using _ = await broker.connect({ clientId: 'c' });
    const code = 'OPTION_UNKNOWN';
    await assert.rejects(broker.stop({ timeout: 5 } as never), { code, message: /in stop; did you mean "timeoutMs"/ });
    const filter = 'a';
    assert.throws(() => broker.subscribe(filter, () => {}, { retainHandlng: 2 } as never), {
      code,
      message: /in subscribe; did you mean "retainHandling"/
    });
    assert.throws(() => broker.messages(filter, { highWatermrk: 2 } as never), { code });
    const session = broker.sessions.get('c');
    assert.throws(() => session.kick({ reasonSting: 'x' } as never), { code, message: /did you mean "reasonString"/ });
    for (const name of ['reasonString', 'serverReference'])
      assert.throws(() => session.kick({ [name]: 5 }), { code: 'OPTION_INVALID', field: name });
    assert.equal(session.state, 'connected');
    assert.equal(broker.unsubscribe(filter), 0);
  });

  it('ends a stop early for a signal, even one that is already aborted, and for a second stop with a shorter time', async () => {
    const reason = new Error('enough');
    const endings: ((broker: Broker) => Promise<void>)[] = [
      (broker) => assert.rejects(broker.stop({ timeoutMs: Infinity, signal: AbortSignal.abort(reason) }), reason),
      async (broker) => {
        const first = broker.stop({ timeoutMs: Infinity });
        await assert.rejects(broker.stop({ signal: AbortSignal.abort(reason) }), reason);
        await first;
      },
      async (broker) => {
        const controller = new AbortController();
        const stopped = broker.stop({ timeoutMs: Infinity, signal: controller.signal });
        await turns(3);
        assert.equal(broker.state, 'disconnected', 'the broker accepts no connection');
        controller.abort(reason);
        await assert.rejects(stopped, reason);
      },
      async (broker) => {
        await Promise.all([broker.stop({ timeoutMs: Infinity }), broker.stop({ timeoutMs: 0 })]);
      }
    ];
    for (const end of endings) {
      const broker = await started();
      const stream = broker.stream(); // this end is not closed
      stream.on('error', () => {});
      stream.write(encode(connect(4), 4));
      await turns(3);
      await end(broker);
      assert.equal(broker.state, 'disconnected');
      assert.equal(engineOf(broker).connections.all.size, 0);
      stream.destroy();
    }
  });

  it('refuses unknown publish options instead of ignoring them', async () => {
    await using broker = await started();
    await assert.rejects(broker.publish('a', 'x', { retained: true } as never), {
      code: 'OPTION_UNKNOWN',
      message: 'unknown option "retained" in publish; did you mean "retain"?'
    });
    await assert.rejects(broker.publish('a', 'x', 1 as never), { code: 'OPTION_INVALID' });
  });

  it('accepts no messages while it stops, except those that listeners publish for disconnecting clients', async () => {
    const broker = await started();
    const heard: string[] = [];
    broker.subscribe('#', ({ topic }) => heard.push(topic));
    const stream = broker.stream();
    stream.write(encode(connect(5, { clientId: 'c' }), 5));
    await turns(3);
    broker.on('client.disconnected', () => broker.publish('gone'));
    const errors: unknown[] = [];
    broker.on('error', ({ error }) => errors.push(error));
    const stopped = broker.stop({ timeoutMs: Infinity });
    await turns(3);
    assert.deepEqual([broker.state, heard], ['disconnected', ['gone']]);
    const refusal = { name: 'StateError', code: 'BROKER_NOT_STARTED' };
    await assert.rejects(broker.publish('a'), refusal);
    await assert.rejects(broker.connect(), refusal);
    assert.throws(() => broker.stream(), refusal);
    const [own, other] = duplexPair();
    assert.throws(() => broker.handle(own), refusal);
    assert.equal(own.destroyed, true);
    other.destroy();
    stream.destroy();
    await stopped;
    assert.deepEqual([heard, errors], [['gone'], []]);
  });

  it('makes clients that connect during the start wait, and refuses them if the start fails', async () => {
    for (const isGood of [true, false]) {
      const broker = createBroker({ maxConnections: 3 });
      const opened = withResolvers<void>();
      broker.attach(listenerStub('good'));
      broker.attach(listenerStub('late', () => opened.promise));
      const errors: unknown[] = [];
      broker.on('error', ({ error }) => errors.push(error));
      const starting = broker.start();
      await turns(3);
      assert.equal(broker.state, 'idle');
      const client = broker.connect({ clientId: 'early' });
      client.catch(() => {});
      const gone = broker.stream().on('error', () => {});
      gone.destroy(new Error('cut'));
      const left = broker.stream();
      const tooMany = broker.stream().resume();
      const closed = new Promise((resolve) => tooMany.on('close', resolve));
      await turns(3);
      assert.equal(broker.sessions.has('early'), false);
      if (isGood) {
        opened.resolve();
        await starting;
        assert.equal((await client).isConnected, true);
        await (await client).disconnect();
        await closed;
      } else {
        opened.resolve(Promise.reject(new Error('no port')) as never);
        await assert.rejects(starting, /no port/);
        assert.equal(broker.state, 'idle');
        await assert.rejects(client, { code: 'CONNECTION_CLOSED' });
      }
      left.destroy();
      await broker.stop({ timeoutMs: 0 });
      assert.deepEqual(errors, []);
    }
  });

  it('starts and stops even if its listeners throw, and does not wait for a listener that never closes', async () => {
    const broker = createBroker();
    const throws = () => {
      throw new Error('not now');
    };
    const failing = listenerStub('failing', undefined, throws);
    const stuck = listenerStub('stuck', undefined, () => new Promise(() => {}));
    broker.attach(failing);
    broker.attach(stuck);
    await broker.start();
    await assert.rejects(broker.stop({ timeoutMs: 0 }), (error: AggregateError) => {
      assert.match(error.errors[0].message, /not now/);
      return true;
    });
    assert.equal(broker.state, 'disconnected');
    const broken = listenerStub('broken', throws);
    broker.detach(stuck);
    broker.attach(broken);
    await assert.rejects(broker.start(), /not now/);
    assert.equal(broker.state, 'idle');
    broker.detach(broken);
    await broker.start();
    assert.equal(broker.state, 'connected');
    broker.detach(failing);
    await broker.stop({ timeoutMs: 0 });
  });

  it('routes no message that a hook allows after the stop', async () => {
    for (const hook of ['authorizePublish', 'publish'] as const) {
      for (const isStartedAgain of [false, true]) {
        const answers: (() => void)[] = [];
        const broker = await started({
          hooks: { [hook]: () => new Promise<void>((resolve) => answers.push(resolve)) }
        });
        const heard: string[] = [];
        const dropped: string[] = [];
        broker.subscribe('#', ({ topic }) => heard.push(topic));
        broker.on('message.dropped', ({ message, reason }) => dropped.push(`${message.topic} ${reason}`));
        const client = await broker.connect({ clientId: 'c', sessionExpiry: 60 });
        client.publish('of/client', '', { qos: 2 }).catch(() => {});
        const published = hook === 'publish' ? broker.publish('of/app') : undefined;
        published?.catch(() => {});
        await turns(3);
        await broker.stop({ timeoutMs: 100 });
        if (isStartedAgain) await broker.start();
        for (const answer of answers) answer();
        await turns(3);
        if (published !== undefined) await assert.rejects(published, { code: 'BROKER_NOT_STARTED' });
        assert.deepEqual([heard, dropped], [[], ['of/client server_shutting_down']]);
        assert.equal(broker.sessions.get('c').counters().awaitingRel, 0, 'the client may send it again');
        await broker.stop({ timeoutMs: 0 });
      }
    }
  });

  it('stops even if a stream cannot be destroyed, and reports the error', async () => {
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

  it('loses no packet with which a stream answers during the write', async () => {
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
        {
          cmd: 'subscribe',
          messageId: 1,
          subscriptions: [{ topic: 't', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 }]
        },
        4
      )
    );
    const payload = Buffer.alloc(50_000);
    const publishes = [1, 2, 3, 4, 5, 6, 7].map((messageId) =>
      encode({ cmd: 'publish', topic: 't', payload, qos: 1, dup: false, retain: false, messageId }, 4)
    );
    await say(Buffer.concat(publishes));
    assert.equal(acknowledged, 7);
    assert.equal(broker.sessions.get('s').counters().inflight, 0);
    assert.equal(broker.metrics.counter('packets.puback.received'), 7);
  });

  it('refuses an object that is not a stream', async () => {
    await using broker = await started();
    assert.throws(() => broker.handle({} as Duplex), { code: 'STREAM_INVALID' });
  });

  it('accepts a stream once, and keeps its connection unaffected when the stream is passed again', async () => {
    const opening = withResolvers<void>();
    await using broker = createBroker();
    broker.attach(listenerStub('late', () => opening.promise));
    const starting = broker.start();
    await turns();
    const [early, peer] = duplexPair();
    broker.handle(early);
    assert.throws(() => broker.handle(early), { code: 'STREAM_IN_USE' });
    opening.resolve();
    await starting;
    assert.throws(() => broker.handle(early), { code: 'STREAM_IN_USE' });
    const client = await connectClient(peer, { clientId: 'c' });
    assert.throws(() => broker.handle(early), { code: 'STREAM_IN_USE' });
    await client.ping();
  });

  it('lets handlers publish to each other any number of times', async () => {
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

  it('delivers retained messages to a new handler after subscribe has returned, before all later messages', async () => {
    await using broker = await started();
    for (const topic of ['r/1', 'r/2', 'r/3']) await broker.publish(topic, 'old', { retain: true });
    const calls: string[] = [];
    const off = broker.subscribe('r/+', ({ topic }) => {
      calls.push(`once ${topic}`);
      off();
    });
    broker.subscribe('r/+', ({ topic, payload }, isRetained) => {
      calls.push(`${topic} ${payload}${isRetained ? ' retained' : ''}`);
      if (topic === 'r/1' && isRetained) void broker.publish('r/4', 'nested');
    });
    assert.deepEqual([calls, engineOf(broker).services.work.count > 0], [[], true]);
    void broker.publish('r/2', 'new', { retain: true });
    await engineOf(broker).services.work.settled();
    assert.deepEqual(
      calls.filter((call) => !call.startsWith('once')),
      ['r/1 old retained', 'r/2 old retained', 'r/3 old retained', 'r/2 new', 'r/4 nested']
    );
    assert.deepEqual(
      calls.filter((call) => call.startsWith('once')),
      ['once r/1']
    );
    broker.subscribe('r/+', () => calls.push('late'), { retainHandling: 2 });
    broker.subscribe('r/+', () => calls.push('late'))();
    calls.length = 0;
    await turns(2);
    assert.deepEqual(calls, []);
  });

  it('refuses subscription options that MQTT does not define', async () => {
    await using broker = await started();
    await broker.connect({ clientId: 'c', sessionExpiry: 60 });
    const session = broker.sessions.get('c');
    for (const wrong of [{ qos: 9 }, { noLocal: 1 }, { retainAsPublished: 'no' }, { retainHandling: 3 }]) {
      const field = Object.keys(wrong)[0];
      assert.throws(() => session.subscribe('x', wrong as never), { code: 'OPTION_INVALID', field });
    }
    assert.throws(() => session.subscribe('x', { nl: true } as object), { code: 'OPTION_UNKNOWN' });
    assert.throws(() => session.subscribe('$share/g/x', { noLocal: true }), {
      code: 'OPTION_INVALID',
      field: 'noLocal'
    });
    assert.equal(session.counters().subscriptions, 0);
    for (const wrong of [{ qos: 9 }, { retainHandling: 3 }]) {
      const expected = { code: 'OPTION_INVALID', field: Object.keys(wrong)[0] };
      assert.throws(() => broker.subscribe('x', () => undefined, wrong as never), expected);
      assert.throws(() => broker.messages('x', wrong as never), expected);
    }
    for (const highWaterMark of [0, NaN, 'many'])
      assert.throws(() => broker.messages('x', { highWaterMark } as never), { code: 'OPTION_INVALID' });
    assert.equal(engineOf(broker).routing.count, 0);
  });

  it('refuses an invalid filter at once in every method', async () => {
    await using broker = await started();
    for (const ask of [
      () => broker.messages('a/#/b'),
      () => broker.retained.match('a/#/b'),
      () => broker.subscribe('a/#/b', () => undefined),
      () => broker.subscribe(undefined as never, () => undefined),
      () => broker.retained.match(5 as never)
    ])
      assert.throws(ask, { code: 'TOPIC_FILTER_INVALID' });
  });

  it('reports invalid arguments from JavaScript with errors that have a code', async () => {
    await using broker = await started();
    for (const wrong of [undefined, null, 5] as never[]) {
      await assert.rejects(broker.publish(wrong), { code: 'MESSAGE_INVALID' });
      assert.throws(() => broker.sessions.get(wrong), { code: 'SESSION_NOT_FOUND' });
      assert.equal(broker.sessions.has(wrong), false);
      assert.throws(() => broker.attach(wrong), { code: 'LISTENER_INVALID' });
      assert.throws(() => broker.inspect(wrong), { code: 'HANDLER_INVALID' });
      assert.throws(() => broker.metrics.counter(wrong), { code: 'METRIC_UNKNOWN' });
      assert.throws(() => broker.metrics.gauge(wrong), { code: 'METRIC_UNKNOWN' });
    }
    assert.throws(() => broker.metrics.counter('messages.recieved' as never), /did you mean "messages.received"\?/);
  });

  it('refuses options that are not an object with OPTION_INVALID', async () => {
    await using broker = await started();
    const client = await broker.connect({ clientId: 'c' });
    const session = broker.sessions.get('c');
    const [stream] = duplexPair();
    for (const wrong of [null, 5] as never[]) {
      for (const call of [
        () => broker.handle(stream, wrong),
        () => broker.stream(wrong),
        () => broker.subscribe('a', () => {}, wrong),
        () => broker.messages('a', wrong),
        () => broker.nextEvent('error', wrong),
        () => broker.hook('deliver', () => {}, wrong),
        () => session.kick(wrong),
        () => session.subscribe('a', wrong),
        () => client.messages(wrong)
      ]) {
        assert.throws(call, { code: 'OPTION_INVALID' }, String(call));
      }
      await assert.rejects(broker.start(wrong), { code: 'OPTION_INVALID' });
      await assert.rejects(broker.stop(wrong), { code: 'OPTION_INVALID' });
      await assert.rejects(broker.connect(wrong), { code: 'OPTION_INVALID' });
      await assert.rejects(connectClient(broker.stream(), wrong), { code: 'OPTION_INVALID' });
      await assert.rejects(client.subscribe('a', wrong), { code: 'OPTION_INVALID' });
      await assert.rejects(client.unsubscribe('a', wrong), { code: 'OPTION_INVALID' });
      await assert.rejects(client.disconnect(wrong), { code: 'OPTION_INVALID' });
    }
    assert.equal(session.state, 'connected');
  });

  it('removes with unsubscribe one handler of a filter or all of them', async () => {
    await using broker = await started();
    const heard: string[] = [];
    const [one, two, three] = ['one', 'two', 'three'].map((name) => () => void heard.push(name));
    for (const handler of [one, two, three]) broker.subscribe('a/#', handler);
    broker.subscribe('b', one);
    assert.equal(broker.unsubscribe('a/#', two), 1);
    assert.equal(broker.unsubscribe('a/#', two), 0);
    await broker.publish('a/1');
    assert.deepEqual(heard.splice(0), ['one', 'three']);
    assert.equal(broker.unsubscribe('a/#'), 2);
    await broker.publish('a/1');
    await broker.publish('b');
    assert.deepEqual(heard, ['one']);
    assert.deepEqual((await broker.directory.routes()).entries, [{ topic: 'b', node: 'embermq@127.0.0.1' }]);
  });

  it('lists the subscriptions of all sessions', async () => {
    await using broker = await started();
    const [a, b] = [await broker.connect({ clientId: 'a' }), await broker.connect({ clientId: 'b' })];
    await a.subscribe([{ topic: 'x/+', qos: 1, noLocal: true }, '$share/g/y'], {
      properties: { subscriptionIdentifier: [7] }
    });
    await b.subscribe('x/+', { retainHandling: 2, retainAsPublished: true });
    const { node } = broker.settings;
    const options = { node, qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0, id: undefined };
    assert.deepEqual((await broker.directory.subscriptions()).entries, [
      { ...options, clientId: 'a', filter: '$share/g/y', id: 7 },
      { ...options, clientId: 'a', filter: 'x/+', qos: 1, noLocal: true, id: 7 },
      { ...options, clientId: 'b', filter: 'x/+', retainAsPublished: true, retainHandling: 2 }
    ]);
    assert.equal(broker.sessions.get('a').transportInfo.transport, 'local');
  });

  it('warns about ten errors without a listener, and no more', async (context) => {
    const warn = context.mock.method(process, 'emitWarning', () => {});
    await using broker = await started();
    for (let times = 0; times < 20; times++) broker.failed(new Error('x'), 'a test');
    assert.equal(warn.mock.callCount(), 10);
    assert.match(String(warn.mock.calls[9].arguments[0]), /further errors are not reported/);
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

  it('delivers a message that a publish hook allows or makes no decision about', async () => {
    for (const answer of [true, undefined, { allow: true }]) {
      await using broker = await started({ hooks: { publish: () => answer as true } });
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

  it('refuses a client whose authenticate hook returns an invalid answer', async () => {
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
      { payloadFormatIndicator: 7 },
      null,
      7
    ]) {
      await assert.rejects(broker.publish('t', 'x', { properties } as never), { code: 'MESSAGE_INVALID' });
    }
    // Only application properties of a received message are used.
    await broker.publish('t', 'x', { properties: { topicAlias: 3, subscriptionIdentifier: [7] } as never });
  });

  it('takes the bytes of a Uint8Array as correlation data, of an app and of a client', async () => {
    await using broker = await started();
    const client = await broker.connect();
    await client.subscribe('bytes');
    const messages = client.messages();
    const message = { topic: 'bytes', properties: { correlationData: new Uint8Array([1, 255]) as Buffer } };
    const seen: unknown[] = [];
    broker.on('message.publish', ({ message: { properties } }) => {
      seen.push(properties.correlationData?.toString('hex'));
    });
    for (const publish of [() => broker.publish(message), () => client.publish(message)]) {
      await publish();
      const { value } = await messages.next();
      assert.deepEqual(value?.properties.correlationData, Buffer.from([1, 255]));
    }
    assert.deepEqual(seen, ['01ff', '01ff']);
  });

  it('grants no subscription to a session that a listener has ended', async () => {
    await using broker = await started();
    const client = await broker.connect({ clientId: 'k' });
    const handle = broker.sessions.get('k');
    broker.on('client.subscribe', () => handle.kick());
    await assert.rejects(client.subscribe(['k/1', 'k/2']));
    assert.throws(() => handle.subscribe('k/3'), { code: 'SUBSCRIBE_REFUSED' });
    assert.equal(handle.unsubscribe('k/1'), false);
    assert.equal(engineOf(broker).routing.count, 0);
  });

  it('keeps nothing of the retained messages if the connection closes between two parts of the retained messages', async () => {
    await using broker = await started();
    for (let n = 0; n < 700; n++) await broker.publish(`t/${n}`, 'x', { retain: true });
    const client = await broker.connect({ clientId: 'c', clean: false, sessionExpiry: '1h' });
    const outlet = engineOf(broker).sessions.get('c')?.outlet;
    let isScheduled: boolean | undefined;
    broker.once('message.delivered', () =>
      queueMicrotask(() => {
        isScheduled = outlet?.isScheduled;
        broker.sessions.get('c').kick({ session: 'keep' });
      })
    );
    client.subscribe('t/#').catch(() => {});
    await turns(5);
    assert.equal(isScheduled, true, 'some messages were left for the next turn');
    assert.equal(outlet?.isOnline, false);
    assert.equal(outlet?.isScheduled, false);
  });

  it('does not retain a session for a message that outlives it', async () => {
    await using broker = await started();
    const client = await broker.connect({ clientId: 'publisher', username: 'u' });
    await client.publish('kept', 'x', { qos: 1, retain: true });
    const { value } = await broker.retained.match('kept').next();
    assert.deepEqual({ ...value.origin }, { clientId: 'publisher', username: 'u' });
  });

  it('keeps a retained payload unchanged, regardless of what readers and writers do to their buffers', async () => {
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
    const { value } = await broker.retained.match('kept').next();
    assert.equal(value.payload.toString(), 'x'.repeat(10_000));
  });

  it('removes expired retained messages after a restart as well', async () => {
    const broker = await started();
    await broker.publish('kept', 'x', { retain: true, properties: { messageExpiryInterval: 10 } });
    await broker.stop();
    assert.equal(engineOf(broker).services.wheel.size, 0);
    await broker.start();
    const before = engineOf(broker).services.wheel.size;
    await broker.publish('kept', '', { retain: true });
    assert.equal(engineOf(broker).services.wheel.size, before - 1);
    await broker.stop();
  });

  it('refuses mount points that would include topics of others', () => {
    for (const mountpoint of ['+/', 'm/#/', 'a\0b']) {
      assert.throws(() => createBroker({ mountpoint }), { code: 'OPTION_INVALID' });
    }
  });

  it('refuses unknown names of hooks and events', async () => {
    const broker = createBroker();
    assert.throws(() => broker.on('client.conected' as never, () => undefined), /did you mean "client.connected"/);
    assert.throws(() => broker.hook('authenticat' as never, (() => true) as never), /did you mean "authenticate"/);
    assert.throws(() => createBroker({ hooks: { authenticate: 5 as never } }), { code: 'HOOK_INVALID' });
    assert.throws(() => broker.subscribe('a', 5 as never), { code: 'HANDLER_INVALID' });
  });

  it('shows the public fields of a client and a message in logs, and no internal ones', async () => {
    await using broker = await started();
    const shown: string[] = [];
    broker.on('message.publish', ({ client, message }) => {
      for (const one of [client, message])
        shown.push(inspect(one, { depth: 9, showHidden: true }), JSON.stringify(one));
    });
    const will = { topic: 'w', payload: 'secret' };
    await using client = await broker.connect({ clientId: 'c', username: 'u', password: 'secret', will });
    await client.publish('a', 'x', { qos: 1, properties: { contentType: 'text' } });
    for (const text of shown) {
      assert.match(text, /clientId"?: ?['"]c['"]/);
      assert.doesNotMatch(text, /host|wire|secret/);
    }
    const [, ofClient, , ofMessage] = shown;
    const { connectedAt } = broker.sessions.get('c').client;
    assert.deepEqual(JSON.parse(ofClient), {
      clientId: 'c',
      username: 'u',
      protocolVersion: 5,
      keepalive: 0,
      cleanStart: true,
      sessionExpiry: 0,
      zone: 'external',
      mountpoint: '',
      isBridge: false,
      isSuperuser: false,
      transportInfo: { transport: 'local' },
      userProperties: [],
      connectedAt
    });
    const { timestamp, ...message } = JSON.parse(ofMessage);
    assert.deepEqual(message, {
      topic: 'a',
      payload: Buffer.from('x').toJSON(),
      qos: 1,
      retain: false,
      properties: { contentType: 'text' },
      clientId: 'c',
      username: 'u',
      expiryInterval: -1,
      bytes: 16
    });
    assert.equal(typeof timestamp, 'number');
  });
});
