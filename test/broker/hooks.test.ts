import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { type Broker, engineOf } from '../../lib/broker/broker.ts';
import type { HookName } from '../../lib/events/hooks.ts';
import { encode } from '../../lib/packets/encode.ts';
import { PacketReader } from '../../lib/packets/packet-reader.ts';
import type { Packet, PublishPacket } from '../../lib/packets/types.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { rawClient } from '../support/raw-client.ts';
import {
  connect,
  granted,
  nothing,
  payloads,
  publish,
  refused,
  refusedConnect,
  rest,
  sendAll,
  startBroker,
  subscribe,
  turns,
  withResolvers
} from '../support/wire.ts';

/** Collects the errors that the broker reports, as strings. */
function errorsOf(broker: Broker): string[] {
  const errors: string[] = [];
  broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
  return errors;
}

const TIMED_OUT = (name: HookName) => `hook ${name}: hook ${name} did not answer within 1000 ms (option hookTimeout)`;

describe('Order of hooks', () => {
  it('calls preConnect, authenticate; authorizeSubscribe; authorizePublish, publish, deliver', async () => {
    for (const isAsync of [false, true]) {
      const order: string[] = [];
      const note = <T>(name: string, answer: T) => {
        order.push(name);
        return isAsync && name !== 'deliver' ? turns(1).then(() => answer) : answer;
      };
      await using broker = await startBroker({
        hooks: {
          preConnect: () => note('preConnect', undefined) as undefined,
          authenticate: () => note('authenticate', true),
          authorizeSubscribe: ({ filter }) => note(`authorizeSubscribe ${filter}`, true),
          authorizePublish: () => note('authorizePublish', true),
          publish: () => note('publish', undefined) as undefined,
          deliver: () => note('deliver', true) as true
        }
      });
      const client = await rawClient(broker);
      assert.deepEqual(await granted(client, 1, ['a', 'b']), [0, 0]);
      client.send(publish('a', 'x'));
      assert.equal((await client.next('publish')).topic, 'a');
      assert.deepEqual(order, [
        ...['preConnect', 'authenticate', 'authorizeSubscribe a', 'authorizeSubscribe b'],
        ...['authorizePublish', 'publish', 'deliver']
      ]);
    }
  });

  it('calls several hooks in the order of registration: the first decision is final, and all publish hooks run', async () => {
    const order: string[] = [];
    await using broker = await startBroker();
    broker.hook('authorizePublish', () => void order.push('no opinion'));
    broker.hook('authorizePublish', async () => {
      order.push('late opinion');
      return true;
    });
    broker.hook('authorizePublish', () => {
      order.push('never asked');
      return false;
    });
    broker.hook('publish', ({ message }) => ({ topic: message.topic, payload: `${message.payload}1` }));
    const remove = broker.hook('publish', async ({ message }) => ({ topic: 'b', payload: `${message.payload}2` }));
    broker.hook('publish', ({ message }) => ({ topic: message.topic, payload: `${message.payload}3` }));
    const client = await rawClient(broker);
    await granted(client, 1, '+');
    client.send(publish('a', 'x'));
    const copy = await client.next('publish');
    assert.deepEqual([copy.topic, String(copy.payload)], ['b', 'x123']);
    assert.deepEqual(order, ['no opinion', 'late opinion']);
    remove();
    client.send(publish('a', 'x'));
    assert.equal(String((await client.next('publish')).payload), 'x13');
  });

  it('skips the authorize hooks for a superuser, but not publish and deliver', async () => {
    await using broker = await startBroker({
      hooks: {
        authenticate: () => ({ allow: true, isSuperuser: true }),
        authorizePublish: () => false,
        authorizeSubscribe: () => false,
        publish: ({ message }) => ({ topic: message.topic, payload: 'changed' })
      }
    });
    const client = await rawClient(broker);
    assert.deepEqual(await granted(client, 1, 'a'), [0]);
    client.send(publish('a', 'x'));
    assert.deepEqual(await payloads(client), ['changed']);
  });
});

describe('A failing hook', () => {
  it('refuses that one operation when it throws or rejects, and the error is reported', async () => {
    for (const fail of [
      () => {
        throw new Error('broken');
      },
      () => Promise.reject(new Error('broken'))
    ]) {
      await using broker = await startBroker();
      const errors = errorsOf(broker);
      const client = await rawClient(broker);
      await granted(client, 1, 'a');
      const removeSubscribe = broker.hook('authorizeSubscribe', fail as never);
      assert.deepEqual(await granted(client, 2, 'b'), [0x80]);
      removeSubscribe();
      for (const name of ['authorizePublish', 'publish'] as const) {
        const remove = broker.hook(name, fail as never);
        sendAll(client, publish('a', 'no', { qos: 1, messageId: 1 }), publish('a', 'no'));
        assert.equal((await client.next('puback')).reasonCode, 0x83);
        await nothing(client);
        remove();
        client.send(publish('a', 'yes'));
        assert.deepEqual(await payloads(client), ['yes']);
      }
      const removeConnect = broker.hook('preConnect', fail as never);
      assert.equal((await refusedConnect(broker)).reasonCode, 0x87);
      removeConnect();
      const removeAuthenticate = broker.hook('authenticate', fail as never);
      assert.equal((await refusedConnect(broker)).reasonCode, 0x80);
      removeAuthenticate();
      await nothing(client);
      const names = [
        'authorizeSubscribe',
        'authorizePublish',
        'authorizePublish',
        'publish',
        'publish',
        'preConnect',
        'authenticate'
      ];
      assert.deepEqual(
        errors,
        names.map((name) => `hook ${name}: broken`)
      );
    }
  });

  it('drops that one delivery when a deliver hook throws', async () => {
    await using broker = await startBroker({
      hooks: {
        deliver: ({ client }) => {
          if (client.clientId === 'bad') throw new Error('broken');
        }
      }
    });
    const errors = errorsOf(broker);
    const bad = await rawClient(broker, { clientId: 'bad' });
    const good = await rawClient(broker);
    await granted(bad, 1, 'a');
    await granted(good, 1, 'a');
    await broker.publish('a', 'x');
    assert.deepEqual(await payloads(good), ['x']);
    await nothing(bad);
    assert.deepEqual(errors, ['hook deliver: broken']);
  });

  it('refuses that one operation when hookTimeout has passed, to the millisecond, and processing of deferred packets continues', async () => {
    const clock = new VirtualClock({ patienceMs: 1 });
    await using broker = await startBroker({ clock, hookTimeout: 1000 });
    const errors = errorsOf(broker);
    const client = await rawClient(broker);
    const never = () => new Promise<never>(() => {});
    const names = ['authorizeSubscribe', 'authorizePublish', 'publish'] as const;
    for (const name of names) {
      const remove = broker.hook(name, never);
      sendAll(client, name === 'authorizeSubscribe' ? subscribe(1, 'a') : publish('a', 'x', { qos: 1, messageId: 1 }), {
        cmd: 'pingreq'
      });
      const before = client.received.length;
      await clock.advance(999);
      assert.equal(client.received.length, before);
      await clock.advance(1);
      const answer = await client.next();
      if (answer.cmd === 'suback') assert.deepEqual(answer.granted, [0x80]);
      else assert.equal('reasonCode' in answer && answer.reasonCode, 0x83);
      await client.next('pingresp');
      remove();
    }
    assert.deepEqual(errors, names.map(TIMED_OUT));
  });

  it('[MQTT-4.6.0-5] defers messages that the client of a late hook sends on the next connection', async () => {
    const answer = withResolvers<undefined>();
    await using broker = await startBroker({
      hooks: { publish: ({ message }) => (`${message.payload}` === 'first' ? answer.promise : undefined) }
    });
    const got: string[] = [];
    broker.subscribe('a', ({ payload }) => got.push(`${payload}`));
    const session = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } };
    const before = await rawClient(broker, session);
    before.send(publish('a', 'first', { qos: 2, messageId: 1 }));
    await turns();
    before.stream.destroy();
    const after = await rawClient(broker, session);
    after.send(publish('a', 'second', { qos: 1, messageId: 2 }));
    await turns();
    assert.deepEqual(got, []);
    answer.resolve(undefined);
    assert.equal((await after.next('puback')).messageId, 2);
    assert.deepEqual(got, ['first', 'second']);
  });

  it('receives a signal that is aborted when its time is over or the connection ends', async () => {
    const clock = new VirtualClock({ patienceMs: 1 });
    const signals: AbortSignal[] = [];
    await using broker = await startBroker({
      clock,
      hookTimeout: 1000,
      hooks: {
        preConnect: ({ signal }) => {
          signals.push(signal);
          return new Promise(() => {});
        }
      }
    });
    broker.on('error', () => {});
    const late = await rawClient(broker, { connect: false });
    late.send(connect(5));
    const gone = await rawClient(broker, { connect: false });
    gone.send(connect(5));
    await turns();
    gone.stream.destroy(new Error('cut'));
    await turns();
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [false, true]
    );
    await clock.advance(1000);
    assert.equal((await late.next('connack')).reasonCode, 0x87);
    assert.equal(signals[0].aborted, true);
  });

  it('changes nothing when it answers too late', async () => {
    const clock = new VirtualClock({ patienceMs: 1 });
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({
      clock,
      hookTimeout: 1000,
      hooks: { authorizePublish: () => answer.promise }
    });
    broker.on('error', () => {});
    let heard = 0;
    broker.subscribe('a', () => heard++);
    const client = await rawClient(broker);
    client.send(publish('a', 'x', { qos: 1, messageId: 1 }));
    await clock.advance(1000);
    assert.equal((await client.next('puback')).reasonCode, 0x83);
    answer.resolve(true);
    await nothing(client);
    assert.equal(heard, 0);
  });
});

describe('A hook that answers late', () => {
  it('defers later packets of that connection, in order, while other clients are processed', async () => {
    const answers = new Map<string, (answer: boolean) => void>();
    await using broker = await startBroker({
      hooks: {
        authorizePublish: ({ message, client }) =>
          client.clientId === 'slow' ? new Promise((resolve) => answers.set(String(message.payload), resolve)) : true
      }
    });
    const other = await rawClient(broker);
    await granted(other, 1, 'a');
    const slow = await rawClient(broker, { clientId: 'slow' });
    sendAll(
      slow,
      publish('a', '1'),
      publish('a', '2', { qos: 1, messageId: 5 }),
      { cmd: 'pingreq' },
      subscribe(3, 'a')
    );
    slow.send(publish('a', '3', { qos: 2, messageId: 6 }));
    await turns();
    assert.deepEqual([...answers.keys()], ['1']);
    other.send(publish('a', 'other'));
    assert.deepEqual(await payloads(other), ['other']);
    answers.get('1')?.(true);
    await turns();
    assert.deepEqual([...answers.keys()], ['1', '2']);
    assert.equal(slow.received.length, 1, 'the PINGREQ is deferred');
    answers.get('2')?.(false);
    assert.equal((await slow.next('puback')).reasonCode, 0x87);
    await slow.next('pingresp');
    await slow.next('suback');
    await turns();
    answers.get('3')?.(true);
    assert.deepEqual(
      (await rest(slow)).map(({ cmd }) => cmd),
      ['publish', 'pubrec']
    );
    assert.deepEqual(await payloads(other), ['1', '3']);
  });

  it('leaves bytes that arrive in the meantime in the stream, and processes them in order afterwards', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({
      maxPacketSize: 4096,
      maxHeldBytes: 1024,
      hooks: { authorizePublish: ({ message }) => (message.topic === 'first' ? answer.promise : true) }
    });
    let heard = 0;
    broker.subscribe('a', ({ payload }) => assert.equal(Number(payload), heard++));
    const client = await rawClient(broker);
    client.send(publish('first', 'x'));
    await turns();
    for (let at = 0; at < 10_000; at++) client.send(publish('a', String(at)));
    await turns();
    assert.ok(client.stream.writableLength > 50_000, 'the rest stays in the stream');
    answer.resolve(true);
    await nothing(client);
    assert.equal(heard, 10_000);
  });

  it('ends a connection whose stream cannot be paused with 0x97 when more than maxHeldBytes wait', async () => {
    await using broker = await startBroker({
      maxPacketSize: 1024,
      maxHeldBytes: 1024,
      hooks: { authorizePublish: () => new Promise(() => {}) }
    });
    const reasons: string[] = [];
    broker.on('client.disconnected', ({ reason }) => reasons.push(reason));
    const written: Buffer[] = [];
    const stream = new Duplex({
      read: () => {},
      write: (chunk, _encoding, done) => {
        written.push(chunk);
        done();
      }
    });
    broker.handle(stream);
    const arrive = (...packets: Packet[]) =>
      stream.emit('data', Buffer.concat(packets.map((packet) => encode(packet, 5))));
    arrive(connect(5), publish('a', 'x'));
    for (let at = 0; at < 200; at++) arrive(publish('a', 'more')); // 9 bytes each
    await turns();
    assert.equal(written.length, 1, '1,800 bytes wait');
    for (let at = 0; at < 40; at++) arrive(publish('a', 'more'));
    await turns();
    const [, disconnect] = new PacketReader({ side: 'client', version: 5 }).push(Buffer.concat(written));
    assert.ok(disconnect?.cmd === 'disconnect' && disconnect.reasonCode === 0x97, JSON.stringify(disconnect));
    assert.deepEqual(reasons, ['quota']);
  });

  it('pauses the keep alive timeout', async () => {
    const clock = new VirtualClock({ patienceMs: 1 });
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({
      clock,
      hookTimeout: '60s',
      hooks: { authorizePublish: () => answer.promise }
    });
    const client = await rawClient(broker, { keepalive: 2 });
    client.send(publish('a', 'x', { qos: 1, messageId: 1 }));
    await clock.advance('20s');
    assert.equal(client.isClosed, false);
    answer.resolve(true);
    await client.next('puback');
    await clock.advance(2999);
    assert.equal(client.isClosed, false);
    await clock.advance(1);
    await refused(client, 0x8d);
  });

  it('delivers a QoS 2 message exactly once when the sender disconnects in the meantime and sends it again', async () => {
    const answers: ((answer: boolean) => void)[] = [];
    await using broker = await startBroker({
      hooks: { authorizePublish: () => new Promise((resolve) => answers.push(resolve)) }
    });
    const seen: string[] = [];
    broker.subscribe('a', (message) => seen.push(String(message.payload)));
    const properties = { sessionExpiryInterval: 60 };
    const first = await rawClient(broker, { clientId: 'c', properties });
    first.send(publish('a', 'x', { qos: 2, messageId: 1 }));
    await turns();
    first.stream.destroy(new Error('cut'));
    await turns();
    const second = await rawClient(broker, { clientId: 'c', clean: false, properties });
    second.send(publish('a', 'x', { qos: 2, messageId: 1, dup: true }));
    await turns();
    answers[0](true);
    assert.equal((await second.next('pubrec')).reasonCode, 0);
    assert.deepEqual(seen, ['x']);
    second.send({ cmd: 'pubrel', messageId: 1, reasonCode: 0 });
    assert.equal((await second.next('pubcomp')).reasonCode, 0);
    assert.deepEqual([answers.length, seen.length], [1, 1]);
  });

  it('leaves a new QoS 2 message with the same packet id unaffected when it refuses one of an earlier connection', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({
      hooks: { authorizePublish: ({ message: { topic } }) => (topic === 'late' ? answer.promise : true) }
    });
    const seen: string[] = [];
    broker.subscribe('#', (message) => seen.push(message.topic));
    const options = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } };
    const first = await rawClient(broker, options);
    first.send(publish('late', '', { qos: 2, messageId: 1 }));
    await turns();
    const second = await rawClient(broker, options);
    second.send(publish('a', '', { qos: 2, messageId: 1 }));
    await turns();
    answer.resolve(false);
    assert.equal((await second.next('pubrec')).reasonCode, 0);
    second.send(publish('a', '', { qos: 2, messageId: 1, dup: true }));
    assert.equal((await second.next('pubrec')).reasonCode, 0);
    assert.deepEqual(seen, ['a']);
  });

  it('leaves the new connection of the sender unaffected when its message cannot be routed', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({ hooks: { authorizePublish: () => answer.promise } });
    const errors = errorsOf(broker);
    const options = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } };
    const first = await rawClient(broker, options);
    first.send(publish('a', '', { qos: 2, messageId: 1 }));
    await turns();
    const second = await rawClient(broker, options);
    engineOf(broker).publishing.route = () => {
      throw new Error('broken');
    };
    answer.resolve(true);
    await nothing(second);
    assert.equal(broker.sessions.get('c').state, 'connected');
    assert.deepEqual(errors, ['continuing after a publish hook: broken']);
  });

  it('delivers the message to the clients that are subscribed when the hook has decided', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({ hooks: { authorizePublish: () => answer.promise } });
    const leaving = await rawClient(broker);
    await granted(leaving, 1, 'a');
    const publisher = await rawClient(broker);
    publisher.send(publish('a', 'x'));
    await turns();
    leaving.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: ['a'] });
    await leaving.next('unsuback');
    const coming = await rawClient(broker);
    await granted(coming, 1, 'a');
    answer.resolve(true);
    await nothing(publisher);
    assert.deepEqual(await payloads(coming), ['x']);
    await nothing(leaving);
  });
});

describe('The publish hook', () => {
  const change = { topic: 'changed', payload: 'other', qos: 1, retain: true } as const;

  it('changes topic, payload, QoS and RETAIN of messages from clients, wills, the app and delayed messages', async () => {
    const clock = new VirtualClock();
    const publishers: (string | undefined)[] = [];
    await using broker = await startBroker({
      clock,
      hooks: {
        publish: ({ client }) => {
          publishers.push(client?.clientId);
          return change;
        }
      }
    });
    const watcher = await rawClient(broker);
    await granted(watcher, 1, { topic: '#', qos: 2, retainAsPublished: true });
    const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false };
    const client = await rawClient(broker, { clientId: 'c', will });
    const expectChanged = async () => {
      const copy = await watcher.next('publish');
      assert.deepEqual([copy.topic, String(copy.payload), copy.qos, copy.retain], ['changed', 'other', 1, true]);
    };
    client.send(publish('a', 'x', { qos: 2, messageId: 4 }));
    await expectChanged();
    assert.equal((await client.next('pubrec')).messageId, 4); // acknowledged at the QoS it was published with
    await broker.publish('a', 'x');
    await expectChanged();
    client.send(publish('$delayed/5/a', 'x'));
    await nothing(watcher);
    await clock.advance('5s');
    await expectChanged();
    client.stream.destroy();
    await expectChanged();
    assert.deepEqual(publishers, ['c', undefined, 'c', 'c']);
    for await (const { topic } of broker.retained.match('#')) assert.equal(topic, 'changed');
  });

  it('refuses with false or with a reason code of PUBACK and PUBREC; a 3.x client receives a normal acknowledgement', async () => {
    await using broker = await startBroker({
      hooks: {
        publish: ({ message }) => (message.topic === 'a' ? false : { allow: false, reasonCode: 0x97 })
      }
    });
    const drops: string[] = [];
    broker.on('message.dropped', ({ message, reason }) => drops.push(`${message.topic} ${reason}`));
    const client = await rawClient(broker);
    client.send(publish('a', '', { qos: 1, messageId: 1 }));
    assert.equal((await client.next('puback')).reasonCode, 0x87);
    client.send(publish('b', '', { qos: 2, messageId: 1 }));
    assert.equal((await client.next('pubrec')).reasonCode, 0x97);
    const old = await rawClient(broker, { version: 4 });
    old.send(publish('a', '', { qos: 1, messageId: 1 }));
    await old.next('puback');
    await assert.rejects(broker.publish('a', 'x'), { code: 'NOT_AUTHORIZED', reasonCode: 0x87 });
    assert.deepEqual(drops, ['a not_authorized', 'b not_authorized', 'a not_authorized']);
  });

  it('refuses at the QoS that the client published with, regardless of the QoS that an earlier hook returned', async () => {
    await using broker = await startBroker();
    for (const isAsync of [false, true]) {
      for (const [qos, changed] of [
        [1, 0],
        [1, 2],
        [2, 0],
        [2, 1]
      ] as const) {
        const hooks = [
          broker.hook('publish', () => (isAsync ? Promise.resolve({ qos: changed }) : { qos: changed }) as never),
          broker.hook('publish', () => false)
        ];
        const clientId = `${qos} ${changed} ${isAsync}`;
        const client = await rawClient(broker, { clientId });
        client.send(publish('a', '', { qos, messageId: 1 }));
        assert.equal((await client.next(qos === 1 ? 'puback' : 'pubrec')).reasonCode, 0x87, clientId);
        assert.equal(broker.sessions.get(clientId).counters().awaitingRel, 0, clientId);
        for (const remove of hooks) remove();
      }
    }
  });

  it('closes the connection of a refused client if the zone is configured so, and is called again when the message is sent again', async () => {
    let isAllowed = false;
    await using broker = await startBroker({ aclDenyAction: 'disconnect', hooks: { publish: () => isAllowed } });
    const seen: string[] = [];
    broker.subscribe('#', (message) => seen.push(message.topic));
    const options = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } };
    const first = await rawClient(broker, options);
    first.send(publish('a', '', { qos: 2, messageId: 1 }));
    await refused(first, 0x87);
    isAllowed = true;
    const second = await rawClient(broker, options);
    second.send(publish('a', '', { qos: 2, messageId: 1, dup: true }));
    await second.next('pubrec');
    assert.deepEqual(seen, ['a']);
  });

  it('refuses a message that it makes invalid with 0x83, and the error is reported', async () => {
    await using broker = await startBroker({ hooks: { publish: () => ({ topic: 'a/#', payload: '' }) } });
    const errors = errorsOf(broker);
    const client = await rawClient(broker);
    client.send(publish('a', '', { qos: 1, messageId: 1 }));
    assert.equal((await client.next('puback')).reasonCode, 0x83);
    assert.match(errors.join(), /hook publish: topic name "a\/#"/);
  });

  it('decides, like authorizePublish, on wills with the permissions of their client', async () => {
    await using broker = await startBroker({
      hooks: { authorizePublish: ({ message, client }) => message.topic === `own/${client.clientId}` }
    });
    const watcher = await rawClient(broker, { clientId: 'w' });
    await granted(watcher, 1, '#');
    for (const [topic, expected] of [
      ['own/c', ['gone']],
      ['own/d', []]
    ] as const) {
      const will = { topic, payload: Buffer.from('gone'), qos: 0 as const, retain: false };
      const client = await rawClient(broker, { clientId: 'c', will });
      client.stream.destroy();
      await turns();
      assert.deepEqual(await payloads(watcher), expected);
    }
  });
});

describe('The authorizeSubscribe hook', () => {
  it('lowers the QoS and refuses each filter separately, and never raises the QoS', async () => {
    const answers: Record<string, unknown> = {
      a: 0,
      b: 1,
      c: 2,
      d: false,
      e: 0x97,
      f: true,
      g: undefined,
      h: { allow: true },
      i: { allow: false },
      j: { allow: false, reasonCode: 1 }
    };
    for (const isAsync of [false, true]) {
      await using broker = await startBroker({
        hooks: {
          authorizeSubscribe: ({ filter }) => (isAsync ? Promise.resolve(answers[filter]) : answers[filter]) as number
        }
      });
      const client = await rawClient(broker);
      const filters = [...'abcdefghij'].map((topic) => ({ topic, qos: 1 as const }));
      assert.deepEqual(await granted(client, 1, filters), [0, 1, 1, 0x87, 0x97, 1, 0x87, 1, 0x87, 0x80]);
      await broker.publish('a', 'x', { qos: 2 });
      assert.equal((await client.next('publish')).qos, 0);
      await broker.publish('d', 'x');
      await nothing(client);
    }
  });

  it('receives the filter and the requested options', async () => {
    const seen: unknown[] = [];
    await using broker = await startBroker({
      hooks: { authorizeSubscribe: ({ filter, options }) => void seen.push([filter, options]) }
    });
    const client = await rawClient(broker);
    await granted(
      client,
      1,
      { topic: '$share/g/a', qos: 2, retainAsPublished: true, retainHandling: 2 },
      { subscriptionIdentifier: [5] }
    );
    assert.deepEqual(seen, [
      ['$share/g/a', { qos: 2, noLocal: false, retainAsPublished: true, retainHandling: 2, id: 5 }]
    ]);
  });

  it('subscribes no client when its client has disconnected in the meantime', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({ hooks: { authorizeSubscribe: () => answer.promise } });
    const client = await rawClient(broker, { clientId: 'c', properties: { sessionExpiryInterval: 60 } });
    client.send(subscribe(1, 'a'));
    await turns();
    client.stream.destroy(new Error('cut'));
    await turns();
    answer.resolve(true);
    await turns();
    assert.deepEqual([...broker.sessions.get('c').subscriptions()], []);
  });

  for (const isKept of [false, true])
    it(`subscribes no client on the next connection either, and delays nothing there (${isKept ? 'persisted' : 'in memory'})`, async () => {
      const answer = withResolvers<boolean>();
      await using broker = await startBroker({
        ...(isKept ? { store: memoryStore() } : {}),
        hooks: { authorizeSubscribe: ({ filter }) => (filter === 'b' ? true : answer.promise) }
      });
      for (const topic of ['a', 'b', 'c']) await broker.publish(topic, topic, { qos: 1, retain: true });
      const options = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } };
      const client = await rawClient(broker, options);
      client.send(
        subscribe(1, [
          { topic: 'a', qos: 1 },
          { topic: 'c', qos: 1 }
        ])
      );
      await turns();
      client.cut();
      await turns();
      const back = await rawClient(broker, options);
      answer.resolve(true);
      await turns();
      assert.deepEqual(await granted(back, 2, { topic: 'b', qos: 1 }), [1]);
      assert.equal(`${(await back.next('publish')).payload}`, 'b');
      const filters = [...broker.sessions.get('c').subscriptions()].map(({ filter }) => filter);
      assert.deepEqual(filters, ['b']);
    });
});

describe('The deliver hook', () => {
  it('allows or drops each copy: live, retained and from a backlog', async () => {
    const asked: string[] = [];
    await using broker = await startBroker({
      hooks: {
        deliver: ({ message, client }) => {
          asked.push(`${client.clientId} ${message.payload}`);
          return String(message.payload) !== 'no';
        }
      }
    });
    const drops: string[] = [];
    broker.on('message.dropped', ({ reason, client }) => drops.push(`${reason} ${client?.clientId}`));
    await broker.publish('a', 'no', { retain: true });
    await broker.publish('b', 'yes', { retain: true });
    const properties = { sessionExpiryInterval: 60 };
    const client = await rawClient(broker, { clientId: 'c', properties });
    await granted(client, 1, { topic: '+', qos: 1 });
    assert.deepEqual(await payloads(client), ['yes']);
    client.stream.destroy();
    await turns();
    await broker.publish('a', 'no', { qos: 1 });
    await broker.publish('a', 'yes', { qos: 1 });
    const again = await rawClient(broker, { clientId: 'c', clean: false, properties });
    assert.equal(String(((await again.next('publish')) as PublishPacket).payload), 'yes');
    await nothing(again);
    assert.deepEqual(asked.sort(), ['c no', 'c no', 'c yes', 'c yes']);
    assert.equal(drops.filter((drop) => drop === 'hook c').length, 2);
  });

  it('runs when a message leaves the backlog, so that a permission withdrawn in the meantime applies', async () => {
    for (const qos of [0, 1, 2] as const) {
      let mayRead = true;
      const asked: string[] = [];
      await using broker = await startBroker({
        maxInflight: 2,
        hooks: {
          deliver: ({ message: { payload } }) => {
            asked.push(String(payload));
            return mayRead || String(payload) === 'last';
          }
        }
      });
      const drops: string[] = [];
      broker.on('message.dropped', ({ reason, message }) => drops.push(`${reason} ${message.payload}`));
      const properties = { sessionExpiryInterval: 60 };
      const first = await rawClient(broker, { clientId: 'c', properties });
      await granted(first, 1, { topic: 'a', qos });
      first.cut();
      await turns();
      for (const text of ['1', '2', 'last']) await broker.publish('a', text, { qos });
      assert.deepEqual(asked, []);
      mayRead = false;
      const again = await rawClient(broker, { clientId: 'c', clean: false, properties });
      assert.deepEqual(await payloads(again), ['last']);
      assert.deepEqual(
        [asked, drops],
        [
          ['1', '2', 'last'],
          ['hook 1', 'hook 2']
        ]
      );
      const { inflight, mqueueLen, mqueueDropped } = broker.sessions.get('c').counters();
      assert.deepEqual([inflight, mqueueLen, mqueueDropped], [qos === 0 ? 0 : 1, 0, 2]);
    }
  });

  it('runs once for a message that is sent at once or waits for the window, and not for one that is sent again', async () => {
    const asked: string[] = [];
    await using broker = await startBroker({
      maxInflight: 1,
      hooks: { deliver: ({ message }) => asked.push(String(message.payload)) > 0 }
    });
    const properties = { sessionExpiryInterval: 60 };
    const first = await rawClient(broker, { clientId: 'c', properties });
    await granted(first, 1, { topic: 'a', qos: 1 });
    for (const text of ['1', '2']) await broker.publish('a', text, { qos: 1 });
    assert.deepEqual(await payloads(first), ['1']);
    assert.deepEqual(asked, ['1']);
    first.cut();
    await turns();
    const again = await rawClient(broker, { clientId: 'c', clean: false, properties });
    const [resent] = await rest(again);
    assert.ok(resent.cmd === 'publish' && resent.dup);
    assert.deepEqual(asked, ['1']);
    again.send({ cmd: 'puback', messageId: 1, reasonCode: 0 });
    assert.deepEqual(await payloads(again), ['2']);
    assert.deepEqual(asked, ['1', '2']);
  });

  it('leaves the message for the next connection of the session when it ends the connection', async () => {
    let isEnding = true;
    await using broker = await startBroker({
      hooks: {
        deliver: ({ message, client }) => {
          if (isEnding && String(message.payload) === '2')
            broker.sessions.get(client.clientId).kick({ session: 'keep' });
          return true;
        }
      }
    });
    const properties = { sessionExpiryInterval: 60 };
    const first = await rawClient(broker, { clientId: 'c', properties });
    await granted(first, 1, { topic: 'a', qos: 1 });
    for (const text of ['1', '2', '3']) await broker.publish('a', text, { qos: 1 });
    await first.closed();
    isEnding = false;
    const again = await rawClient(broker, { clientId: 'c', clean: false, properties });
    const got = (await rest(again)).map((packet) => packet.cmd === 'publish' && [String(packet.payload), packet.dup]);
    assert.deepEqual(got, [
      ['1', true],
      ['2', false],
      ['3', false]
    ]);
  });

  it('drops the delivery and reports an error when it returns any promise', async () => {
    await using broker = await startBroker({ hooks: { deliver: (async () => true) as never } });
    const errors = errorsOf(broker);
    const client = await rawClient(broker);
    await granted(client, 1, 'a');
    await broker.publish('a', 'x');
    await nothing(client);
    assert.deepEqual(errors, [
      'hook deliver: deliver: expected true, false, undefined or a changed message at once, got a promise'
    ]);
  });

  it('ignores $SYS messages', async () => {
    await using broker = await startBroker({ hooks: { deliver: () => false } });
    const client = await rawClient(broker);
    await granted(client, 1, '$SYS/brokers/+/version');
    assert.equal((await client.next('publish')).topic, '$SYS/brokers/embermq@127.0.0.1/version');
  });
});

describe('The preConnect hook', () => {
  it('receives the CONNECT and the connection, and refuses with reason code, Reason String and Server Reference', async () => {
    for (const isAsync of [false, true]) {
      const seen: unknown[] = [];
      await using broker = await startBroker({
        hooks: {
          preConnect: ({ packet, transportInfo: connection, client }) => {
            seen.push([packet.clientId, connection.remoteAddress, client.clientId]);
            const refusal = {
              allow: false,
              reasonCode: 0x9d,
              reasonString: 'gone',
              serverReference: 'other:1883'
            } as const;
            return isAsync ? Promise.resolve(refusal) : refusal;
          }
        }
      });
      const connack = await refusedConnect(broker, { clientId: 'c', meta: { remoteAddress: '192.0.2.1' } });
      assert.equal(connack.reasonCode, 0x9d);
      assert.deepEqual(connack.properties, { reasonString: 'gone', serverReference: 'other:1883' });
      assert.equal((await refusedConnect(broker, { version: 4 })).reasonCode, 0x88);
      assert.deepEqual(seen[0], ['c', '192.0.2.1', 'c']);
    }
  });

  it('leaves no session and no will of a client it refuses', async () => {
    await using broker = await startBroker({ hooks: { preConnect: () => false } });
    let wills = 0;
    broker.subscribe('will', () => wills++);
    const will = { topic: 'will', payload: Buffer.alloc(0), qos: 0 as const, retain: false };
    assert.equal((await refusedConnect(broker, { clientId: 'c', will })).reasonCode, 0x87);
    await turns();
    assert.deepEqual([broker.sessions.has('c'), wills], [false, 0]);
  });
});
