import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { engineOf } from '../../lib/broker/broker.ts';
import { encode } from '../../lib/packets/encode.ts';
import { Peer, turns } from '../fuzz/wire.ts';
import { client, connect, isServed, kinds, payloads, publish, startTestBed, subscribe } from './support.ts';

const METHOD = { authenticationMethod: 'rounds' };

/** Every point in the life of a connection at which a stream can break. */
const STATES: readonly [name: string, begin: (peer: Peer) => void][] = [
  ['before a byte', () => {}],
  ['inside CONNECT', (peer) => peer.say(encode(connect(), 5).subarray(0, 9))],
  ['while a hook decides', (peer) => peer.say(connect({ username: 'slow' }))],
  ['while authenticating', (peer) => peer.say(connect({ properties: METHOD }))],
  ['while connected', (peer) => peer.say(connect())],
  ['inside a packet', (peer) => peer.say(connect(), encode(publish('a', 'payload'), 5).subarray(0, 5))],
  ['in a large packet', (peer) => peer.say(connect(), Buffer.from('30ffff0f', 'hex'), Buffer.alloc(50_000))],
  ['with a backlog', (peer) => peer.say(connect(), subscribe(1, 1, 'busy'), publish('busy', Buffer.alloc(100_000)))],
  ['after DISCONNECT', (peer) => peer.say(connect(), { cmd: 'disconnect', reasonCode: 0 })],
  ['after a refusal', (peer) => peer.say(connect(), { cmd: 'pingresp' })]
];

const ENDS: readonly [name: string, end: (peer: Peer) => void][] = [
  ['an error', ({ wire }) => wire.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))],
  ['a close', ({ wire }) => wire.destroy()],
  ['an end', ({ wire }) => wire.leave()],
  [
    'an end and then an error',
    ({ wire }) => {
      wire.leave();
      wire.destroy(Object.assign(new Error('pipe'), { code: 'EPIPE' }));
    }
  ]
];

describe('A stream that breaks', () => {
  for (const [state, begin] of STATES) {
    for (const [name, end] of ENDS) {
      it(`leaves nothing behind: ${name} ${state}`, async () => {
        await using it = await startTestBed({
          hooks: {
            authenticate: ({ username, method }) =>
              username === 'slow' ? new Promise(() => {}) : method === undefined ? true : { challenge: undefined }
          }
        });
        const { broker, pass, failures } = it;
        const other = await client(broker);
        const peer = new Peer(broker, 5);
        begin(peer);
        await turns(2);
        end(peer);
        await pass(0);
        await pass(10_000); // closing, hook pending
        assert.ok(peer.wire.destroyed);
        assert.deepEqual(
          [...broker.sessions].map(({ client: { clientId } }) => clientId),
          [other.received.length > 0 ? [...broker.sessions][0].clientId : '']
        );
        assert.equal(engineOf(broker).services.work.count, 0);
        assert.equal(
          engineOf(broker).services.wheel.size,
          broker.settings.sysInterval > 0 ? 2 : 0,
          'only the timers of $SYS are armed'
        );
        const unexpected = failures.filter(({ during }) => during !== 'hook authenticate');
        assert.deepEqual(unexpected, []);
        assert.ok(await isServed(other));
      });
    }
  }

  for (const version of [4, 5] as const) {
    it(`ends only its own connection when it throws in write, version ${version}`, async () => {
      await using it = await startTestBed();
      const { broker, failures, pass } = it;
      const publisher = await client(broker, { version });
      let isBroken = false;
      const onWrite = () => {
        if (isBroken) throw new Error('write broke');
      };
      const broken = await client(broker, { version, clientId: 'broken', onWrite });
      const healthy = await client(broker);
      for (const peer of [broken, healthy]) peer.say(subscribe(1, 0, 'a'));
      await turns(2);
      isBroken = true;
      // The first packet is written at the end of the turn, the second at once, during routing.
      publisher.say(publish('a', 'small'), publish('a', Buffer.alloc(200_000, 'x')), publish('a', 'after'));
      await pass(5_000);
      assert.deepEqual(
        payloads(healthy).map((text) => text.slice(0, 5)),
        ['small', 'xxxxx', 'after']
      );
      assert.ok(await isServed(publisher), 'the publisher is not affected');
      assert.ok(broken.wire.destroyed);
      assert.ok(!broker.sessions.has('broken'));
      assert.deepEqual(new Set(failures.map(({ error }) => error.message)), new Set(['write broke']));
    });
  }

  it('destroys a stream even if its peer only half closes and no longer reads', async () => {
    await using it = await startTestBed();
    const peer = await client(it.broker, { clientId: 'half', highWaterMark: 10 });
    peer.wire.listen(false);
    peer.say({ cmd: 'pingresp' }); // DISCONNECT is sent and remains unread
    await turns(2);
    peer.wire.leave();
    await turns(2);
    await it.pass(3_500);
    assert.ok(peer.wire.destroyed, 'it does not wait for ever');
  });

  it('drops a stream even if no close event is emitted', async () => {
    await using it = await startTestBed({ maxConnections: 2 });
    for (let count = 0; count < 5; count++) {
      const peer = await client(it.broker, { emitClose: false, clientId: `silent${count}` });
      assert.deepEqual(
        peer.received.map(({ cmd }) => cmd),
        ['connack'],
        'there is room for the connection'
      );
      peer.wire.leave();
      await it.pass(4_000);
      assert.ok(!it.broker.sessions.has(`silent${count}`));
    }
  });

  it('drops a stream even if it does not destroy itself after an error', async () => {
    await using it = await startTestBed({ maxConnections: 1 });
    for (const state of ['before CONNECT', 'connected']) {
      const peer = new Peer(it.broker, 5, { autoDestroy: false, emitClose: false });
      if (state === 'connected') peer.say(connect({ clientId: 'c' }));
      await turns(2);
      peer.wire.emit('error', Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
      await it.pass(4_000);
      assert.ok(peer.wire.destroyed, state);
      assert.ok(!it.broker.sessions.has('c'));
    }
    assert.ok(await isServed(await client(it.broker)));
  });
});

describe('A connection', () => {
  it('reads nothing after DISCONNECT', async () => {
    await using it = await startTestBed();
    const observer = await client(it.broker);
    observer.say(subscribe(1, 0, '#'));
    const peer = await client(it.broker);
    const late = encode(publish('a', 'late'), 5);
    peer.say(Buffer.concat([encode({ cmd: 'disconnect', reasonCode: 0 }, 5), late]), late);
    await turns(3);
    peer.say(late);
    await turns(2);
    assert.deepEqual(kinds(observer), ['suback']);
    assert.deepEqual(kinds(peer), []);
    assert.ok(peer.wire.isEnded);
  });

  it('routes a run of messages once, even if that fails partway', async (t) => {
    await using it = await startTestBed();
    const { publishing } = engineOf(it.broker);
    const observer = await client(it.broker);
    observer.say(subscribe(1, 0, '#'), publish('a', ''), publish('a', '')); // known, so that the following messages are one run
    await turns(2);
    observer.take();
    for (const behind of [[], [publish('b', '')], [publish('a', '', 1, 1)], [Buffer.from([0x30, 9])]]) {
      const peer = await client(it.broker);
      const { routeRun } = publishing;
      const failing = t.mock.method(publishing, 'routeRun', (...run: Parameters<typeof routeRun>) => {
        routeRun.apply(publishing, run);
        throw new Error('broken on the way');
      });
      const packets = [publish('a', '1'), publish('a', '2'), ...behind];
      peer.say(Buffer.concat(packets.map((packet) => (Buffer.isBuffer(packet) ? packet : encode(packet, 5)))));
      failing.mock.restore();
      await turns(2);
      assert.deepEqual(payloads(observer), ['1', '2']);
      assert.ok(peer.isClosed);
      assert.deepEqual(
        it.failures.splice(0).map(({ error }) => error.message),
        ['broken on the way']
      );
    }
  });

  it('waits a limited time for a peer that does not read its DISCONNECT, then destroys the stream', async () => {
    await using it = await startTestBed();
    const peer = await client(it.broker);
    peer.wire.listen(false);
    peer.say({ cmd: 'pingresp' });
    await it.pass(2_900);
    assert.ok(!peer.wire.destroyed, 'the DISCONNECT may still be read');
    await it.pass(200);
    assert.ok(peer.wire.destroyed);
  });

  it('delivers its DISCONNECT to a peer that reads it late', async () => {
    await using it = await startTestBed();
    const peer = await client(it.broker);
    peer.wire.listen(false);
    peer.say({ cmd: 'pingresp' });
    await it.pass(2_000);
    peer.wire.listen(true);
    await turns(2);
    assert.deepEqual(kinds(peer), ['disconnect']);
    assert.ok(peer.wire.isEnded);
  });
});
