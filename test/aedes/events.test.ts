import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { generate } from 'mqtt-packet';
import { called, Fixture, IMPLEMENTATIONS, message } from './implementations.ts';

for (const implementation of IMPLEMENTATIONS) {
  describe(`${implementation.name}: events`, () => {
    it('emits client, connackSent and clientReady in this order while a client connects', async () => {
      await using fixture = await Fixture.start(implementation);
      const seen: unknown[] = [];
      fixture.aedes.on('client', ({ id, connecting, connected }) => {
        seen.push(['client', id, connecting, connected, fixture.aedes.connectedClients]);
      });
      fixture.aedes.on('connackSent', ({ cmd, returnCode, sessionPresent }, { id }) => {
        seen.push([cmd, returnCode, sessionPresent, id]);
      });
      const ready = fixture.next('clientReady');
      const [, [client]] = await Promise.all([fixture.connect(), ready]);
      seen.push(['ready', client.id, client.connecting, client.connected, client.clean, client.version]);
      assert.deepEqual(seen, [
        ['client', 'device', true, false, 1],
        ['connack', 0, false, 'device'],
        ['ready', 'device', false, true, true, 4]
      ]);
    });

    it('emits connected on the client itself', async () => {
      await using fixture = await Fixture.start(implementation);
      const connected = new Promise<void>((resolve) =>
        fixture.aedes.on('client', (client) => client.on('connected', resolve))
      );
      await fixture.connect();
      await connected;
    });

    it('emits clientDisconnect when a client disconnects, and then unsubscribe for its subscriptions', async () => {
      await using fixture = await Fixture.start(implementation);
      const client = await fixture.connect();
      await client.subscribeAsync('a');
      const seen: unknown[] = [];
      fixture.aedes.on('clientDisconnect', ({ id, connected, closed }) =>
        seen.push([id, connected, closed, fixture.aedes.connectedClients])
      );
      fixture.aedes.on('unsubscribe', (filters) => seen.push(filters));
      const reported = fixture.next('unsubscribe');
      client.end();
      await reported;
      assert.deepEqual(seen, [['device', false, true, 0], ['a']]);
    });

    it('emits clientDisconnect before client when a connection takes over the client id', async () => {
      await using fixture = await Fixture.start(implementation);
      await fixture.connect();
      const seen: string[] = [];
      fixture.aedes.on('clientDisconnect', () => seen.push('gone'));
      fixture.aedes.on('client', () => seen.push('client'));
      const ready = fixture.next('clientReady');
      await fixture.connect();
      await ready;
      assert.deepEqual(seen, ['gone', 'client']);
      assert.equal(fixture.aedes.connectedClients, 1);
    });

    it('emits connectionError when CONNECT does not arrive in time', async () => {
      await using fixture = await Fixture.start(implementation, { connectTimeout: 20 });
      const failed = fixture.next('connectionError');
      const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
      const client = fixture.aedes.handle(stream);
      const [same, error] = await failed;
      assert.equal(same, client);
      assert.equal(error.message, 'connect did not arrive in time');
      assert.equal(client.closed, true);
    });

    it('emits connectionError for bytes that are not MQTT', async () => {
      await using fixture = await Fixture.start(implementation);
      const failed = fixture.next('connectionError');
      const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
      fixture.aedes.handle(stream);
      stream.push(Buffer.from('GET / HTTP/1.1\r\n\r\n'));
      await failed;
    });

    it('emits clientError when a connected client violates the protocol', async () => {
      await using fixture = await Fixture.start(implementation);
      const client = await fixture.connect();
      const failed = fixture.next('clientError');
      client.stream.write(Buffer.from([0x00, 0x00]));
      const [{ id }, error] = await failed;
      assert.equal(id, 'device');
      assert.ok(error instanceof Error);
    });

    it('emits clientError for an error that the app emits on the client, and closes the client', async () => {
      await using fixture = await Fixture.start(implementation);
      const ready = fixture.next('clientReady');
      await fixture.connect();
      const [client] = await ready;
      const failed = fixture.next('clientError');
      const gone = fixture.next('clientDisconnect');
      client.emit('error', new Error('enough'));
      assert.equal((await failed)[1].message, 'enough');
      await gone;
    });

    it('emits keepaliveTimeout when a client is silent for one and a half keep alives', async () => {
      await using fixture = await Fixture.start(implementation);
      const timeout = fixture.next('keepaliveTimeout');
      const failed = fixture.next('clientError');
      // MQTT.js would end its connection at the same time
      const socket = connect(fixture.port, '127.0.0.1').resume();
      socket.write(generate({ cmd: 'connect', clientId: 'device', keepalive: 1, clean: true, protocolVersion: 4 }));
      assert.equal((await timeout)[0].id, 'device');
      assert.equal((await failed)[1].message, 'keep alive timeout');
      socket.destroy();
    });

    it('emits publish with packet and client, and with null for packets of the app', async () => {
      await using fixture = await Fixture.start(implementation, { id: 'broker-1' });
      const client = await fixture.connect();
      const byClient = fixture.next('publish', ({ topic }) => topic === 'a');
      client.publish('a', 'x', { qos: 1, retain: true });
      const [packet, publisher] = await byClient;
      assert.equal(publisher?.id, 'device');
      const { cmd, topic, qos, retain } = packet;
      assert.deepEqual([cmd, topic, String(packet.payload), qos, retain], ['publish', 'a', 'x', 1, true]);
      const byApp = fixture.next('publish', (sent) => sent.topic === 'b');
      fixture.aedes.publish({ topic: 'b', payload: 'x' }, () => undefined); // without a callback, Aedes passes undefined
      const [sent, nobody] = await byApp;
      assert.deepEqual([sent.topic, nobody], ['b', null]);
    });

    for (const [topic, act] of [
      ['new/clients', (fixture: Fixture) => fixture.connect()],
      ['disconnect/clients', async (fixture: Fixture) => (await fixture.connect()).end()],
      ['new/subscribes', async (fixture: Fixture) => (await fixture.connect()).subscribe('a')],
      ['heartbeat', () => undefined]
    ] as const)
      it(`emits publish for the message to $SYS/<id>/${topic}`, async () => {
        await using fixture = await Fixture.start(implementation, { id: 'x', heartbeatInterval: 20 });
        const published = fixture.next('publish', (packet) => packet.topic === `$SYS/x/${topic}`);
        await act(fixture);
        const [{ payload }] = await published;
        const expected: Record<string, string> = {
          heartbeat: 'x',
          'new/subscribes': JSON.stringify({ clientId: 'device', subs: [{ topic: 'a', qos: 0 }] })
        };
        assert.equal(String(payload), expected[topic] ?? 'device');
      });

    it('emits ack when a client acknowledges a packet of QoS 1 or 2', async () => {
      await using fixture = await Fixture.start(implementation);
      const client = await fixture.connect({ clean: false });
      await client.subscribeAsync('a', { qos: 2 });
      const first = fixture.next('ack');
      fixture.aedes.publish({ topic: 'a', payload: 'x', qos: 1 });
      const [packet, { id }] = await first;
      assert.deepEqual([packet.cmd, id], ['publish', 'device']);
      const second = fixture.next('ack');
      fixture.aedes.publish({ topic: 'a', payload: 'x', qos: 2 });
      assert.equal((await second)[0].cmd, 'pubrel');
    });

    it('emits ping for a PINGREQ', async () => {
      await using fixture = await Fixture.start(implementation);
      const client = await fixture.connect();
      const ping = fixture.next('ping');
      client.sendPing();
      const [{ cmd }, { id }] = await ping;
      assert.deepEqual([cmd, id], ['pingreq', 'device']);
    });

    it('emits subscribe and unsubscribe with all topic filters of the packet', async () => {
      await using fixture = await Fixture.start(implementation);
      const client = await fixture.connect();
      const subscribed = fixture.next('subscribe');
      await client.subscribeAsync({ a: { qos: 1 }, b: { qos: 0 } });
      const [subscriptions, { id }] = await subscribed;
      assert.deepEqual(
        [id, subscriptions.map(({ topic, qos }) => [topic, qos])],
        [
          'device',
          [
            ['a', 1],
            ['b', 0]
          ]
        ]
      );
      const unsubscribed = fixture.next('unsubscribe');
      await client.unsubscribeAsync(['a', 'b']);
      assert.deepEqual((await unsubscribed)[0], ['a', 'b']);
    });

    it('emits closed on close, which disconnects all clients', async () => {
      await using fixture = await Fixture.start(implementation);
      await fixture.connect();
      const gone = fixture.next('clientDisconnect');
      const closed = fixture.next('closed');
      await called((callback) => fixture.aedes.close(() => callback()));
      await Promise.all([gone, closed]);
      assert.equal(fixture.aedes.closed, true);
      await called((callback) => fixture.aedes.close(() => callback()));
    });
  });

  describe(`${implementation.name}: the client`, () => {
    async function ready(fixture: Fixture, options = {}) {
      const next = fixture.next('clientReady');
      const device = await fixture.connect(options);
      return { device, client: (await next)[0] };
    }

    it('publishes a packet to itself, without a subscription', async () => {
      await using fixture = await Fixture.start(implementation);
      const { device, client } = await ready(fixture);
      await called((callback) =>
        client.publish({ cmd: 'publish', topic: 'a', payload: 'x', qos: 1, dup: false, retain: false }, callback)
      );
      assert.equal(await message(device), 'a: x');
    });

    it('subscribes and unsubscribes on behalf of its device, with authorizeSubscribe and the events', async () => {
      await using fixture = await Fixture.start(implementation, {
        authorizeSubscribe: (_client, subscription, callback) => callback(null, subscription)
      });
      const subscribed = fixture.next('subscribe');
      fixture.aedes.on('client', (client) =>
        client.subscribe({ topic: `commands/${client.id}`, qos: 1 }, () => undefined)
      );
      const { device, client } = await ready(fixture);
      assert.equal((await subscribed)[0][0].topic, 'commands/device');
      fixture.aedes.publish({ topic: 'commands/device', payload: 'on' });
      assert.equal(await message(device), 'commands/device: on');
      const unsubscribed = fixture.next('unsubscribe');
      await called((callback) =>
        client.unsubscribe({ unsubscriptions: ['commands/device'], cmd: 'unsubscribe' }, callback)
      );
      assert.deepEqual((await unsubscribed)[0], ['commands/device']);
    });

    it('unsubscribes from one topic filter, and from several', async () => {
      await using fixture = await Fixture.start(implementation);
      const { device, client } = await ready(fixture);
      await device.subscribeAsync(['a', 'b', 'c']);
      for (const filters of ['a', ['b', 'c']]) {
        const unsubscribed = fixture.next('unsubscribe');
        await called((callback) => client.unsubscribe(filters as string, callback));
        await unsubscribed;
      }
      assert.deepEqual(Object.keys(client.subscriptions), []);
    });

    it('lists the subscriptions of its session, also after it has connected again', async () => {
      await using fixture = await Fixture.start(implementation);
      const first = await ready(fixture, { clean: false });
      assert.deepEqual(Object.keys(first.client.subscriptions), []);
      await first.device.subscribeAsync({ 'a/#': { qos: 1 }, b: { qos: 0 } });
      const shown = ({ client }: typeof first) =>
        Object.entries(client.subscriptions).map(([key, { qos }]) => [key, qos]);
      const expected = [
        ['a/#', 1],
        ['b', 0]
      ];
      assert.deepEqual(shown(first), expected);
      await first.device.endAsync();
      assert.deepEqual(shown(await ready(fixture, { clean: false })), expected);
    });

    it('closes its connection, and its will is published', async () => {
      await using fixture = await Fixture.start(implementation);
      const will = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false };
      const { client } = await ready(fixture, { will });
      const { device } = await ready(fixture, { clientId: 'watcher' });
      await device.subscribeAsync('will');
      assert.equal(String(client.will?.payload), 'gone');
      await called((callback) => client.close(() => callback()));
      assert.equal(client.closed, true);
      assert.equal(await message(device), 'will: gone');
    });

    it('empties its queue', async () => {
      await using fixture = await Fixture.start(implementation);
      const { client } = await ready(fixture, { clean: false });
      await called((callback) => client.emptyOutgoingQueue(() => callback()));
    });

    it('sets the property client of its stream', async () => {
      await using fixture = await Fixture.start(implementation);
      const { client } = await ready(fixture);
      assert.equal((client.conn as unknown as { client: unknown }).client, client);
    });
  });
}

describe('the errors of embermq/aedes', () => {
  const OURS = IMPLEMENTATIONS[1];
  const CONNECT = generate({
    cmd: 'connect',
    protocolId: 'MQTT',
    protocolVersion: 4,
    clientId: 'device',
    clean: true,
    keepalive: 60
  });

  it('say what a connected client has sent', async () => {
    for (const [packet, text] of [
      ['30050003612f2378', 'PUBLISH: a topic name has no wildcards'],
      ['3003000078', 'PUBLISH: the topic name is empty']
    ] as const) {
      await using fixture = await Fixture.start(OURS);
      const failed = fixture.next('clientError');
      connect(fixture.port, '127.0.0.1').end(Buffer.concat([CONNECT, Buffer.from(packet, 'hex')]));
      assert.equal((await failed)[1].message, text);
    }
  });

  it('say what was wrong with a first packet', async () => {
    for (const [packet, text] of [
      ['c000', 'the first packet must be CONNECT'],
      ['100f00044d5154540902003c0003616263', /^protocol name "MQTT" with level 9: not supported/]
    ] as const) {
      await using fixture = await Fixture.start(OURS);
      const failed = fixture.next('connectionError');
      connect(fixture.port, '127.0.0.1').write(Buffer.from(packet, 'hex'));
      const { message } = (await failed)[1];
      if (typeof text === 'string') assert.equal(message, text);
      else assert.match(message, text);
    }
  });
});
