import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ErrorWithReasonCode } from 'mqtt';
import type { AuthenticateError, DeliverFunction } from '../../adapters/aedes/index.ts';
import { Fixture, IMPLEMENTATIONS, message, nextOf } from './implementations.ts';

/** An error with which `authenticate` refuses a client. */
function refusal(text: string, returnCode?: number): AuthenticateError {
  return Object.assign(new Error(text), returnCode === undefined ? {} : { returnCode }) as AuthenticateError;
}

/** The return code with which a connection attempt was refused. */
async function returnCodeOf(attempt: Promise<unknown>): Promise<number> {
  const error = await attempt.then(
    () => assert.fail('the client was accepted'),
    (reason: ErrorWithReasonCode) => reason
  );
  return error.code;
}

for (const implementation of IMPLEMENTATIONS) {
  describe(`${implementation.name}: preConnect`, () => {
    it('receives the CONNECT and a client without id, before authenticate', async () => {
      const calls: unknown[] = [];
      await using fixture = await Fixture.start(implementation, {
        preConnect(client, packet, callback) {
          calls.push([client.id, client.connecting, packet.cmd, packet.clientId, packet.protocolVersion]);
          callback(null, true);
        },
        authenticate(client, username, password, callback) {
          calls.push([client.id, username, password?.toString()]);
          callback(null, true);
        }
      });
      await fixture.connect({ username: 'ann', password: 'secret' });
      assert.deepEqual(calls, [
        [null, true, 'connect', 'device', 4],
        ['device', 'ann', 'secret']
      ]);
    });

    it('can change the credentials and the keep alive of the CONNECT', async () => {
      const seen: unknown[] = [];
      await using fixture = await Fixture.start(implementation, {
        preConnect(_client, packet, callback) {
          packet.username = 'changed';
          packet.password = Buffer.from('other');
          setImmediate(callback, null, true);
        },
        authenticate(_client, username, password, callback) {
          seen.push(username, password?.toString());
          callback(null, true);
        }
      });
      await fixture.connect({ username: 'ann' });
      assert.deepEqual(seen, ['changed', 'other']);
    });

    it('closes the connection with connectionError when it calls back with an error', async () => {
      await using fixture = await Fixture.start(implementation, {
        preConnect: (_client, _packet, callback) => callback(new Error('go away'), false)
      });
      const failed = fixture.next('connectionError');
      const sent: unknown[] = [];
      fixture.aedes.on('connackSent', (packet) => sent.push(packet));
      await assert.rejects(fixture.connect());
      const [client, error] = await failed;
      assert.equal(client.id, null);
      assert.equal(error.message, 'go away');
      assert.deepEqual(sent, []);
    });

    it('receives the stream and its address', async () => {
      let address: string | undefined;
      await using fixture = await Fixture.start(implementation, {
        preConnect(client, _packet, callback) {
          address = (client.conn as { remoteAddress?: string }).remoteAddress;
          callback(null, true);
        }
      });
      await fixture.connect();
      assert.equal(address, '127.0.0.1');
    });
  });

  describe(`${implementation.name}: authenticate`, () => {
    for (const returnCode of [2, 3, 4, 5])
      it(`refuses with the return code ${returnCode} of the error, and reports clientError`, async () => {
        await using fixture = await Fixture.start(implementation, {
          authenticate: (_client, _username, _password, done) => done(refusal('no', returnCode), null)
        });
        const sent = fixture.next('connackSent');
        const failed = fixture.next('clientError');
        assert.equal(await returnCodeOf(fixture.connect()), returnCode);
        const [client, error] = await failed;
        const [packet] = await sent;
        assert.equal(client.id, 'device');
        assert.equal(error.message, 'no');
        assert.equal((error as Error & { errorCode?: number }).errorCode, returnCode);
        assert.equal(packet.returnCode, returnCode);
        assert.equal(fixture.aedes.connectedClients, 0);
      });

    it('refuses with return code 5 without a code in the error, and without an error', async () => {
      await using fixture = await Fixture.start(implementation);
      const first = fixture.next('clientError');
      fixture.aedes.authenticate = (_client, _username, _password, done) => done(null, false);
      assert.equal(await returnCodeOf(fixture.connect()), 5);
      assert.equal((await first)[1].message, 'not authorized');
      const second = fixture.next('clientError');
      fixture.aedes.authenticate = (_client, _username, _password, done) => done(refusal('', 1), true);
      assert.equal(await returnCodeOf(fixture.connect()), 5);
      assert.equal((await second)[1].message, 'not authorized');
    });

    it('accepts a late answer, and can be replaced while the broker runs', async () => {
      await using fixture = await Fixture.start(implementation);
      fixture.aedes.authenticate = (_client, username, _password, done) =>
        setTimeout(done, 10, null, username === 'ann');
      await fixture.connect({ username: 'ann' });
      assert.equal(await returnCodeOf(fixture.connect({ clientId: 'other', username: 'bob' })), 5);
      assert.equal(fixture.aedes.connectedClients, 1);
    });

    it('calls it as a method of the broker, with the client that later hooks receive', async () => {
      const seen: unknown[] = [];
      await using fixture = await Fixture.start(implementation, {
        authenticate(this: unknown, client, _username, _password, done) {
          seen.push(this);
          Object.assign(client, { user: { name: 'ann' } });
          done(null, true);
        },
        authorizePublish(client, _packet, callback) {
          seen.push((client as unknown as { user: { name: string } }).user.name);
          callback(null);
        }
      });
      const client = await fixture.connect();
      await client.publishAsync('a', 'x', { qos: 1 });
      assert.equal(seen[0], fixture.aedes);
      assert.equal(seen[1], 'ann');
    });
  });

  describe(`${implementation.name}: authorizePublish`, () => {
    it('closes the connection without an acknowledgement when it calls back with an error', async () => {
      await using fixture = await Fixture.start(implementation, {
        authorizePublish: (_client, packet, callback) =>
          callback(packet.topic === 'bad' ? new Error('wrong topic') : null)
      });
      const client = await fixture.connect();
      const failed = fixture.next('clientError');
      const gone = fixture.next('clientDisconnect');
      client.publish('bad', 'x', { qos: 1 }, () => undefined);
      const [by, error] = await failed;
      assert.equal(by.id, 'device');
      assert.equal(error.message, 'wrong topic');
      await gone;
    });

    it('can change topic, payload and QoS of the packet', async () => {
      await using fixture = await Fixture.start(implementation, {
        authorizePublish(_client, packet, callback) {
          packet.topic = `checked/${packet.topic}`;
          packet.payload = Buffer.from('overwritten');
          setImmediate(callback, null);
        }
      });
      const client = await fixture.connect();
      await client.subscribeAsync('#');
      const received = message(client);
      await client.publishAsync('a', 'x');
      assert.equal(await received, 'checked/a: overwritten');
    });

    it('refuses topics of $SYS by default, unless a function of the app allows them', async () => {
      await using fixture = await Fixture.start(implementation);
      const client = await fixture.connect();
      const failed = fixture.next('clientError');
      client.publish('$SYS/mine', 'x');
      assert.equal((await failed)[1].message, '$SYS/ topic is reserved');
      fixture.aedes.authorizePublish = (_client, _packet, callback) => callback(null);
      const other = await fixture.connect({ clientId: 'other' });
      await other.subscribeAsync('$SYS/mine');
      const received = message(other);
      other.publish('$SYS/mine', 'x');
      assert.equal(await received, '$SYS/mine: x');
    });

    it('decides about wills as well', async () => {
      const topics: string[] = [];
      await using fixture = await Fixture.start(implementation, {
        authorizePublish(client, packet, callback) {
          topics.push(`${client?.id} ${packet.topic}`);
          packet.payload = Buffer.from('changed');
          callback(null);
        }
      });
      const watcher = await fixture.connect({ clientId: 'watcher' });
      await watcher.subscribeAsync('will');
      const received = message(watcher);
      const client = await fixture.connect({
        will: { topic: 'will', payload: Buffer.from('gone'), qos: 0, retain: false }
      });
      client.stream.destroy();
      await received;
      assert.deepEqual(topics, ['device will']);
    });
  });

  describe(`${implementation.name}: authorizeSubscribe`, () => {
    it('closes the connection when it calls back with an error', async () => {
      await using fixture = await Fixture.start(implementation, {
        authorizeSubscribe: (_client, { topic }, callback) => callback(new Error(`not ${topic}`))
      });
      const client = await fixture.connect();
      const failed = fixture.next('clientError');
      const gone = fixture.next('clientDisconnect');
      const subscribed: unknown[] = [];
      fixture.aedes.on('subscribe', (subscriptions) => subscribed.push(subscriptions));
      client.subscribe('secret', () => undefined);
      assert.equal((await failed)[1].message, 'not secret');
      await gone;
      assert.deepEqual(subscribed, []);
    });

    it('refuses one topic filter with null, and grants the others', async () => {
      await using fixture = await Fixture.start(implementation, {
        authorizeSubscribe: (_client, subscription, callback) =>
          setImmediate(callback, null, subscription.topic === 'secret' ? null : subscription)
      });
      const client = await fixture.connect();
      const subscribed = fixture.next('subscribe');
      const granted = await client
        .subscribeAsync(['open', 'secret'])
        .catch((error) => error.granted ?? error.packet?.granted);
      const [subscriptions] = await subscribed;
      assert.deepEqual(
        subscriptions.map(({ topic, qos }) => [topic, qos]),
        [
          ['open', 0],
          ['secret', 128]
        ]
      );
      if (granted !== undefined) assert.equal(granted.length > 0, true);
    });

    it('can change the topic filter and lower the QoS', async () => {
      await using fixture = await Fixture.start(implementation, {
        authorizeSubscribe(_client, subscription, callback) {
          if (subscription.topic === 'bbb') {
            subscription.topic = 'foo';
            subscription.qos = 0;
          }
          callback(null, subscription);
        }
      });
      const client = await fixture.connect();
      const subscribed = fixture.next('subscribe');
      await client.subscribeAsync('bbb', { qos: 1 });
      const [[subscription]] = await subscribed;
      assert.equal(subscription.topic, 'foo');
      const received = nextOf(client, 'message');
      fixture.aedes.publish({ topic: 'bbb', payload: 'no' });
      fixture.aedes.publish({ topic: 'foo', payload: 'yes', qos: 1 });
      const [topic, , packet] = (await received) as [string, Buffer, { readonly qos: number }];
      assert.deepEqual([topic, packet.qos], ['foo', 0]);
    });

    it('decides again about the subscriptions of a resumed session', async () => {
      await using fixture = await Fixture.start(implementation);
      const first = await fixture.connect({ clean: false });
      await first.subscribeAsync(['open', 'secret'], { qos: 1 });
      await first.endAsync();
      const asked: string[] = [];
      fixture.aedes.authorizeSubscribe = (_client, subscription, callback) => {
        asked.push(subscription.topic);
        callback(null, subscription.topic === 'secret' ? null : subscription);
      };
      const second = await fixture.connect({ clean: false });
      const received = message(second);
      fixture.aedes.publish({ topic: 'secret', payload: 'no' });
      fixture.aedes.publish({ topic: 'open', payload: 'yes' });
      assert.equal(await received, 'open: yes');
      assert.deepEqual(asked.sort(), ['open', 'secret']);
    });
  });

  describe(`${implementation.name}: authorizeForward`, () => {
    it('changes the packet for one client', async () => {
      await using fixture = await Fixture.start(implementation, {
        authorizeForward(client, packet) {
          if (client.id === 'changed') packet.payload = Buffer.from('overwritten');
          return packet;
        }
      });
      const changed = await fixture.connect({ clientId: 'changed' });
      const plain = await fixture.connect({ clientId: 'plain' });
      await changed.subscribeAsync('a', { qos: 1 });
      await plain.subscribeAsync('a', { qos: 1 });
      const received = Promise.all([message(changed), message(plain)]);
      fixture.aedes.publish({ topic: 'a', payload: 'original', qos: 1 });
      assert.deepEqual(await received, ['a: overwritten', 'a: original']);
    });

    it('drops the packet for one client when it returns nothing', async () => {
      await using fixture = await Fixture.start(implementation, {
        authorizeForward: (client, packet) => (client.id === 'device' && packet.topic === 'a' ? null : packet)
      });
      const client = await fixture.connect();
      await client.subscribeAsync('#');
      const received = message(client);
      fixture.aedes.publish({ topic: 'a', payload: '1' });
      fixture.aedes.publish({ topic: 'b', payload: '2' });
      assert.equal(await received, 'b: 2');
    });

    it('decides about retained packets as well', async () => {
      await using fixture = await Fixture.start(implementation);
      await publish(fixture, 'kept', 'old');
      fixture.aedes.authorizeForward = (_client, packet) => {
        packet.payload = Buffer.from(`${packet.payload}, changed`);
        return packet;
      };
      const client = await fixture.connect();
      const received = message(client);
      await client.subscribeAsync('kept');
      assert.equal(await received, 'kept: old, changed');
    });

    it('decides about packets queued for a client', async () => {
      await using fixture = await Fixture.start(implementation);
      const first = await fixture.connect({ clean: false });
      await first.subscribeAsync('#', { qos: 1 });
      await first.endAsync();
      await publish(fixture, 'dropped', '1', false);
      await publish(fixture, 'sent', '2', false);
      fixture.aedes.authorizeForward = (_client, packet) => (packet.topic === 'dropped' ? null : packet);
      const second = fixture.connect({ clean: false });
      assert.equal(await message(await second), 'sent: 2');
    });
  });

  describe(`${implementation.name}: published`, () => {
    it('receives each packet and its client', async () => {
      const seen: string[] = [];
      await using fixture = await Fixture.start(implementation, {
        published(packet, client, callback) {
          if (!packet.topic.startsWith('$SYS/')) seen.push(`${client?.id ?? null} ${packet.topic} ${packet.payload}`);
          callback();
        }
      });
      const client = await fixture.connect();
      await client.publishAsync('a', '1', { qos: 1 });
      await publish(fixture, 'b', '2', false);
      assert.deepEqual(seen, ['device a 1', 'null b 2']);
    });

    it('closes the connection of the client when it calls back with an error', async () => {
      await using fixture = await Fixture.start(implementation, {
        published: (packet, _client, callback) => callback(packet.topic === 'a' ? new Error('database is down') : null)
      });
      const client = await fixture.connect();
      const failed = fixture.next('clientError');
      client.publish('a', 'x');
      assert.equal((await failed)[1].message, 'database is down');
    });

    it('passes its error only to the callback of this packet', async () => {
      await using fixture = await Fixture.start(implementation, {
        published: (packet, _client, callback) =>
          callback(packet.topic === 'bad' ? new Error('database is down') : null)
      });
      const results = await Promise.allSettled(['a', 'bad', 'b'].map((topic) => publish(fixture, topic, 'x', false)));
      assert.deepEqual(
        results.map((result) => (result.status === 'rejected' ? result.reason.message : 'done')),
        ['done', 'database is down', 'done']
      );
    });

    it('passes its error to the right callback if a subscriber publishes as well', async () => {
      await using fixture = await Fixture.start(implementation, {
        published: (packet, _client, callback) =>
          setImmediate(callback, packet.topic === 'outer' ? new Error('database is down') : null)
      });
      const { aedes } = fixture;
      const inner = new Promise<string>((resolve) => {
        const deliver: DeliverFunction = (_packet, callback) => {
          aedes.publish({ topic: 'inner' }, (error) => resolve(error?.message ?? 'done'));
          callback();
        };
        aedes.subscribe('outer', deliver, () => undefined);
      });
      await assert.rejects(publish(fixture, 'outer', 'x', false), { message: 'database is down' });
      assert.equal(await inner, 'done');
    });

    it('delays the callback of aedes.publish', async () => {
      const order: string[] = [];
      await using fixture = await Fixture.start(implementation, {
        published(packet, _client, callback) {
          if (packet.topic !== 'a') return callback();
          setImmediate(() => {
            order.push('published');
            callback();
          });
        }
      });
      await publish(fixture, 'a', 'x', false);
      order.push('callback');
      assert.deepEqual(order, ['published', 'callback']);
    });
  });
}

/** Publish a QoS 1 packet of the app and wait for its callback. */
function publish({ aedes }: Fixture, topic: string, payload: string, retain = true): Promise<void> {
  return new Promise((resolve, reject) => {
    aedes.publish({ cmd: 'publish', dup: false, topic, payload, qos: 1, retain }, (error) =>
      error ? reject(error) : resolve()
    );
  });
}
