import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Peer, turns } from '../fuzz/wire.ts';
import { client, isServed, startTestBed, subscribe } from './support.ts';

describe('A connection that the broker is closing', () => {
  it('frees the place in maxConnections of a closing connection: its client may reconnect at once', async () => {
    await using it = await startTestBed({ maxConnections: 1 });
    const first = await client(it.broker, { autoDestroy: false, emitClose: false });
    first.say({ cmd: 'disconnect', reasonCode: 0 });
    const second = await client(it.broker);
    assert.ok(await isServed(second));
    const third = await client(it.broker);
    assert.ok(third.wire.isCut, 'an open connection counts');
  });

  it('frees one place in maxConnections, even if it is closed in several ways at the same time', async () => {
    await using it = await startTestBed({ maxConnections: 2 });
    await client(it.broker);
    const first = await client(it.broker);
    first.say({ cmd: 'disconnect', reasonCode: 0 });
    first.wire.leave();
    await turns(2);
    first.wire.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
    await it.pass(4_000);
    assert.ok(await isServed(await client(it.broker)));
    const beyond = await client(it.broker);
    assert.ok(beyond.wire.isCut, 'two connections are open');
  });

  it('destroys a closing connection when its client continues to send', async () => {
    await using it = await startTestBed();
    const flooder = await client(it.broker, { autoDestroy: false, emitClose: false });
    flooder.say({ cmd: 'disconnect', reasonCode: 0 });
    await turns(2);
    assert.ok(flooder.wire.isEnded && !flooder.wire.isCut);
    for (let sent = 0; sent < 10; sent++) flooder.say(Buffer.alloc(65_536));
    await turns(2);
    assert.ok(flooder.wire.isCut);
  });
});

describe('A connection that its client has ended', () => {
  it('frees the place of an ended connection while its last packets wait for a hook', async () => {
    await using it = await startTestBed({
      maxConnections: 1,
      aclNomatch: 'allow',
      hooks: { authorizeSubscribe: () => new Promise(() => undefined) }
    });
    const first = await client(it.broker, { autoDestroy: false, emitClose: false });
    first.say(subscribe(1, 0, 'a'), { cmd: 'pingreq' });
    first.wire.leave();
    await turns(2);
    assert.ok(!first.isClosed, 'the hook has not decided');
    assert.ok(await isServed(await client(it.broker)));
  });
});

describe('A connection whose first packet is not a CONNECT [MQTT-3.1.0-1]', () => {
  const cases: readonly (readonly [name: string, bytes: Buffer])[] = [
    ['is a PINGREQ', Buffer.from([0xc0, 0])],
    ['is an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')],
    ['is a TLS handshake', Buffer.from('160301000501000001fc', 'hex')],
    ['has a remaining length of five bytes', Buffer.from('10ffffffff01', 'hex')],
    ['has a protocol name that cannot be read', Buffer.from([0x10, 2, 0xff, 0xff])]
  ];
  for (const [name, bytes] of cases) {
    it(`destroys a connection at once without an answer when it ${name}`, async () => {
      await using it = await startTestBed();
      const peer = new Peer(it.broker, 5, { autoDestroy: false, emitClose: false });
      await turns(1);
      peer.say(bytes);
      await turns(1);
      assert.ok(peer.wire.isCut);
      assert.equal(peer.wire.heardBytes, 0);
    });
  }

  it('ends a connection after a refusing CONNACK, because destroying it could lose the CONNACK', async () => {
    await using it = await startTestBed();
    const peer = new Peer(it.broker, 5, { autoDestroy: false, emitClose: false });
    peer.say(Buffer.concat([Buffer.from([0x10, 12, 0, 4]), Buffer.from('MQTT'), Buffer.from([9, 2, 0, 0, 0, 0])]));
    await turns(2);
    const [answer] = peer.take();
    assert.ok(answer.cmd === 'connack' && answer.reasonCode === 0x84, JSON.stringify(answer));
    assert.ok(peer.wire.isEnded && !peer.wire.isCut);
  });
});
