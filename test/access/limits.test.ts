import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { listen } from '../../adapters/net/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';

const A = { transportInfo: { remoteAddress: '10.0.0.1' } };
const B = { transportInfo: { remoteAddress: '10.0.0.2' } };

describe('maxConnectionsPerAddress', () => {
  it('closes further connections of an address at once, and admits them when there is room again', async () => {
    await using kit = await createTestBroker({ maxConnectionsPerAddress: 2 });
    const one = await kit.connect(A);
    await kit.connect(A);
    await assert.rejects(kit.connect(A));
    assert.equal(kit.broker.metrics.counter('connections.refused'), 1);
    await kit.connect(B);
    await one.disconnect();
    await kit.connect(A);
    await assert.rejects(kit.connect(A));
  });

  it('counts a takeover as one connection', async () => {
    await using kit = await createTestBroker({ maxConnectionsPerAddress: 2, leakCheck: false });
    for (let n = 0; n < 3; n++) {
      await rawClient(kit.broker, { clientId: 'c', clean: false, meta: { remoteAddress: n % 2 ? '::1' : '10.0.0.1' } });
      assert.equal(kit.broker.metrics.counter('connections.refused'), 0);
    }
    const last = await rawClient(kit.broker, { clientId: 'c', clean: false, meta: { remoteAddress: '::1' } });
    const other = await rawClient(kit.broker, { clientId: 'd', meta: { remoteAddress: '::1' } });
    await assert.rejects(kit.connect({ transportInfo: { remoteAddress: '::1' } }));
    for (const { stream } of [last, other]) stream.destroy();
  });

  it('does not count connections without an address, and has no limit by default', async () => {
    await using kit = await createTestBroker({ maxConnectionsPerAddress: 1 });
    for (let n = 0; n < 3; n++) await kit.connect();
    await using other = await createTestBroker();
    for (let n = 0; n < 3; n++) await other.connect(A);
  });

  it('counts IPv4 clients of IPv6 sockets by their IPv4 address, and in the counters of the listener', async () => {
    await using kit = await createTestBroker({ maxConnectionsPerAddress: 1 });
    const listener = await listen(kit.broker, { port: 0, name: 'gate' });
    const sockets: Socket[] = [];
    const open = () => {
      const socket = connect(listener.address?.port as number, '127.0.0.1');
      sockets.push(socket.on('error', () => {}));
      return socket;
    };
    const first = open();
    first.write(Buffer.from('100c00044d515454040200000000', 'hex'));
    await new Promise((resolve) => first.once('data', resolve));
    const second = open();
    const closed = new Promise((resolve) => second.once('close', resolve));
    await new Promise((resolve) => second.once('connect', resolve));
    await new Promise(setImmediate);
    await kit.clock.advance('1s'); // the place may become free
    await closed;
    assert.deepEqual(listener.info().shutdownCount, { max_connections_per_address: 1 });
    assert.equal(listener.info().currentConnections, 1);
    for (const socket of sockets) socket.destroy();
    await listener.close();
  });
});

describe('takeoverByOtherUser', () => {
  const connectTwice = async (option: 'allow' | 'refuse', first: string | undefined, second: string | undefined) => {
    await using kit = await createTestBroker({ takeoverByOtherUser: option, leakCheck: false });
    const held = await rawClient(kit.broker, { clientId: 'c', username: first, clean: false });
    const { connack } = await rawClient(kit.broker, { clientId: 'c', username: second, clean: false });
    return { code: connack?.reasonCode, isHeld: !held.isClosed };
  };

  it('allows the takeover by another user by default', async () => {
    await using kit = await createTestBroker();
    assert.equal(kit.broker.settings.takeoverByOtherUser, 'allow');
    assert.deepEqual(await connectTwice('allow', 'u', 'v'), { code: 0, isHeld: false });
  });

  it('refuses a client with another user name or none, and keeps the connected one', async () => {
    assert.deepEqual(await connectTwice('refuse', 'u', 'v'), { code: 0x85, isHeld: true });
    assert.deepEqual(await connectTwice('refuse', 'u', undefined), { code: 0x85, isHeld: true });
    assert.deepEqual(await connectTwice('refuse', undefined, 'v'), { code: 0x85, isHeld: true });
    assert.deepEqual(await connectTwice('refuse', 'u', 'u'), { code: 0, isHeld: false });
  });

  it('refuses with Clean Start and while the client is away, too, and allows the takeover when the session has ended', async () => {
    await using kit = await createTestBroker({ takeoverByOtherUser: 'refuse', leakCheck: false });
    const held = await kit.connect({ clientId: 'c', username: 'u', clean: false, sessionExpiry: '1h' });
    const { connack } = await rawClient(kit.broker, { clientId: 'c', username: 'v', version: 4, clean: true });
    assert.equal(connack?.reasonCode, 0x85, 'as return code 2 is decoded');
    await held.disconnect();
    for (const clean of [true, false]) {
      const other = await rawClient(kit.broker, { clientId: 'c', username: 'v', version: 4, clean });
      assert.equal(other.connack?.reasonCode, 0x85);
    }
    await kit.broker.sessions.get('c').discard();
    await (await kit.connect({ clientId: 'c', username: 'v' })).disconnect();
  });
});
