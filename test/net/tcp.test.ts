import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { listen, tcp } from '../../adapters/net/index.ts';
import { BrokerError, InvalidInput } from '../../lib/index.ts';
import { closed, readBytes, StubBroker, turnsUntil, watchSocketOptions } from './stub-broker.ts';

let broker: StubBroker;
const clients: Socket[] = [];

function client(port: number | undefined): Socket {
  const socket = connect({ port: port as number, host: '127.0.0.1' });
  socket.on('error', () => {});
  clients.push(socket);
  return socket;
}

beforeEach(() => {
  broker = new StubBroker();
});

afterEach(async () => {
  mock.restoreAll();
  for (const socket of clients.splice(0)) socket.destroy();
  await broker.stop();
});

describe('a TCP listener', () => {
  it('binds a free port for 0, on loopback by default, and reports the real one', async () => {
    const listener = await listen(broker, 0);
    assert.equal(listener.address?.host, '127.0.0.1');
    assert.ok((listener.port as number) > 0);
    assert.equal(listener.name, 'tcp:0');
    assert.equal(listener.protocol, 'mqtt:tcp');
  });

  it('resolves when awaited, and rejects with the error', async () => {
    const { port } = await listen(broker, 0);
    const said = await listen(broker, port as number).then(
      () => 'open',
      (error: Error) => error.message
    );
    assert.match(said, /the address is in use/);
  });

  it('passes each connection to the broker with its addresses and the settings of the listener', async () => {
    const listener = await listen(broker, { port: 0, zone: 'internal', mountpoint: 'plant/', protocolVersions: [5] });
    const socket = client(listener.port);
    await once(socket, 'connect');
    const { stream, meta } = await broker.next();
    assert.deepEqual(meta, {
      transport: 'tcp',
      listener: listener.name,
      zone: 'internal',
      mountpoint: 'plant/',
      protocolVersions: [5],
      remoteAddress: '127.0.0.1',
      remotePort: socket.localPort,
      localAddress: '127.0.0.1',
      localPort: listener.port,
      username: undefined,
      authenticated: false,
      certificate: undefined,
      headers: undefined
    });
    socket.write('there');
    assert.equal((await readBytes(stream, 5)).toString(), 'there');
    stream.write('back');
    assert.equal((await readBytes(socket, 4)).toString(), 'back');
  });

  it('reports an IPv4 peer of a dual-stack socket in IPv4 notation', async () => {
    const listener = await listen(broker, { port: 0, host: '::' });
    client(listener.port);
    const { meta } = await broker.next();
    assert.equal(meta.remoteAddress, '127.0.0.1');
    assert.equal(meta.localAddress, '127.0.0.1');
    assert.equal(meta.localPort, listener.port);
  });

  it('waits for the start of a broker that is not started', async () => {
    broker.state = 'idle';
    const listener = await listen(broker, 0);
    assert.equal(listener.address, undefined);
    assert.equal(listener.name, 'tcp:0');
    await broker.attached[0].open();
    assert.notEqual(listener.address, undefined);
  });

  it('names the address and the remedy if it cannot bind', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    try {
      await assert.rejects(
        async () => await listen(broker, port),
        (error: BrokerError) => {
          assert.equal(error.code, 'LISTENER_BIND_FAILED');
          assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${port}: the address is in use`));
          assert.equal((error.cause as NodeJS.ErrnoException).code, 'EADDRINUSE');
          return true;
        }
      );
      let isOver = false;
      const caught = await listen(broker, port)
        .finally(() => {
          isOver = true;
        })
        .catch(({ code }) => code);
      assert.deepEqual([isOver, caught], [true, 'LISTENER_BIND_FAILED']);
      assert.equal(await listen(broker, port).catch(({ code }) => code), 'LISTENER_BIND_FAILED');
      assert.deepEqual(broker.reports, [], 'an error that was caught is not reported as well');
    } finally {
      other.close();
    }
  });

  it('reports a failed bind as an error event of the broker if it is not awaited', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const reported = broker.reported();
    listen(broker, (other.address() as { port: number }).port);
    await reported;
    other.close();
    assert.equal((broker.reports[0].error as BrokerError).code, 'LISTENER_BIND_FAILED');
  });

  it('can be opened again after a failed bind', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    broker.state = 'idle';
    const listener = await listen(broker, (other.address() as { port: number }).port);
    await assert.rejects(listener.open(), BrokerError);
    other.close();
    await listener.open();
    assert.notEqual(listener.address, undefined);
  });

  it('releases its port on close and keeps the connections it has handed over', async () => {
    const listener = await listen(broker, 0);
    const { port } = listener;
    const socket = client(port);
    const { stream } = await broker.next();
    await listener.close();
    assert.equal(listener.address, undefined);
    const again = await listen(broker, port as number);
    assert.equal(again.port, port);
    socket.write('x');
    assert.equal((await readBytes(stream, 1)).toString(), 'x');
  });

  it('can be opened and closed in any order without an error', async () => {
    broker.state = 'idle';
    const listener = listen(broker, 0);
    await listener.close();
    const [opening, closing] = [listener.open(), listener.close()];
    await Promise.all([opening, closing]);
    assert.equal(listener.address, undefined);
    await Promise.all([listener.open(), listener.open()]);
    assert.notEqual(listener.address, undefined);
  });

  it('stays open if it is opened again while closing', async () => {
    const listener = await listen(broker, 0);
    const closing = [listener.close(), listener.close()];
    await listener.open();
    await Promise.all(closing);
    client(listener.port);
    assert.equal((await broker.next()).meta.localPort, listener.port);
    await listener.close();
    assert.equal(listener.address, undefined);
  });

  it('leaves the broker when the app closes it or it cannot be opened, and returns when it is opened', async () => {
    const listener = await listen(broker, 0);
    assert.deepEqual(
      broker.attached.map(({ name }) => name),
      ['tcp:0']
    );
    await listener.close();
    assert.deepEqual(broker.attached, []);
    await listener.open();
    assert.equal(broker.attached.length, 1);
    await assert.rejects(async () => await listen(broker, listener.port as number));
    assert.equal(broker.attached.length, 1);
  });

  it('gets a unique name among the listeners of a broker', async () => {
    const names = [];
    for (const name of [undefined, undefined, 'mine', undefined])
      names.push((await listen(broker, { port: 0, name })).name);
    assert.deepEqual(names, ['tcp:0', 'tcp:0#2', 'mine', 'tcp:0#3']);
  });

  it('works next to other listeners of the same broker', async () => {
    const listeners = [await listen(broker, 0), await listen(broker, { port: 0, name: 'second' })];
    for (const { port } of listeners) client(port);
    const names = [(await broker.next()).meta.listener, (await broker.next()).meta.listener].sort();
    assert.deepEqual(names, listeners.map(({ name }) => name).sort());
  });

  it('closes a connection past its maximum at once, and accepts the next once one has closed', async () => {
    const listener = await listen(broker, { port: 0, maxConnections: 1 });
    const first = client(listener.port);
    const { stream } = await broker.next();
    const second = client(listener.port);
    await closed(second);
    assert.deepEqual(listener.info(), {
      acceptors: 1,
      maxConnections: 1,
      currentConnections: 1,
      shutdownCount: { max_connections: 1 }
    });
    const gone = closed(stream);
    first.end();
    stream.end();
    await gone;
    await turnsUntil(() => listener.info().currentConnections === 0);
    client(listener.port);
    await broker.next();
    assert.equal(broker.taken.length, 2);
  });

  it('accepts at most its rate per second, with the connections of one second as burst', async () => {
    let now = 0;
    const clock = { now: () => now, monotonic: () => now, setTimeout: () => undefined, clearTimeout: () => {} };
    broker.clock = clock;
    const listener = await listen(broker, { port: 0, maxConnRate: 2 });
    client(listener.port);
    client(listener.port);
    await broker.next();
    await broker.next();
    await closed(client(listener.port));
    assert.deepEqual(listener.info().shutdownCount, { max_conn_rate: 1 });
    now = 500;
    client(listener.port);
    await broker.next();
    await closed(client(listener.port));
    assert.deepEqual(listener.info().shutdownCount, { max_conn_rate: 2 });
  });

  it('accepts one connection at once even with a rate below one per second', async () => {
    let now = 0;
    broker.clock = { now: () => now, monotonic: () => now, setTimeout: () => undefined, clearTimeout: () => {} };
    const listener = await listen(broker, { port: 0, maxConnRate: 0.5 });
    client(listener.port);
    await broker.next();
    now = 1999;
    await closed(client(listener.port));
    now = 2000;
    client(listener.port);
    await broker.next();
  });

  it('survives a reset by the peer before and after the broker has the connection', async () => {
    const listener = await listen(broker, 0);
    const socket = client(listener.port);
    const { stream } = await broker.next();
    const gone = closed(stream);
    socket.resetAndDestroy();
    await gone;
    await turnsUntil(() => listener.info().currentConnections === 0);
  });

  it('closes a connection and reports the error if the broker throws', async () => {
    const listener = await listen(broker, 0);
    broker.handle = () => {
      throw new Error('no room');
    };
    await closed(client(listener.port));
    assert.deepEqual(listener.info().shutdownCount, { internal_error: 1 });
    assert.equal(broker.reports[0].error.message, 'no room');
  });

  it('does not bind IPv4 with option ipv6Only', async () => {
    const listener = await listen(broker, { port: 0, host: '::', ipv6Only: true });
    const four = client(listener.port);
    // refused, or another program has that port for IPv4
    await once(four, 'connect').catch(() => {});
    clients.push(connect({ port: listener.port as number, host: '::1' }));
    assert.equal((await broker.next()).meta.remoteAddress, '::1');
    assert.equal(broker.taken.length, 1);
  });

  it('sends small packets at once, unless noDelay is false', async () => {
    const optionsOf = watchSocketOptions();
    for (const noDelay of [undefined, true, false]) {
      const listener = await listen(broker, { port: 0, noDelay });
      client(listener.port);
      const { stream } = await broker.next();
      assert.equal(optionsOf(stream).noDelay, noDelay ?? true);
    }
  });

  it('lets the kernel probe idle peers after tcpKeepAlive, rounded up to whole seconds, or never', async () => {
    const optionsOf = watchSocketOptions();
    for (const [tcpKeepAlive, seconds] of [
      [undefined, undefined],
      [0, undefined],
      ['60s', 60],
      [1, 1],
      [1500, 2],
      ['32767s', 32_767]
    ] as const) {
      const listener = await listen(broker, { port: 0, tcpKeepAlive });
      client(listener.port);
      const { stream } = await broker.next();
      assert.equal(optionsOf(stream).keepAliveSec, seconds, `${tcpKeepAlive}`);
    }
    assert.throws(() => tcp({ port: 0, tcpKeepAlive: '10h' }), { code: 'OPTION_INVALID' });
  });

  it('accepts the port as a string, as in an environment variable', async () => {
    const listener = await listen(broker, '0');
    assert.equal(listener.name, 'tcp:0');
    assert.ok((listener.port as number) > 0);
  });

  it('lists the possible arguments if it gets something else', () => {
    for (const where of ['mqtt', '', '/run/mqtt.sock', -1, 70_000, Number.NaN])
      assert.throws(() => listen(broker, where), { code: 'OPTION_INVALID', field: 'tcp listener.port' });
    for (const where of [undefined, null, true, () => 1883, {}])
      assert.throws(() => listen(broker, where as never), {
        code: 'OPTION_MISSING',
        message: /a port such as 1883, or the path of a Unix socket/
      });
  });

  it('refuses unknown options, with a suggestion, and values out of range', () => {
    assert.throws(
      () => tcp({ port: 1883, hosst: 'x' } as never),
      /unknown option "hosst" in tcp listener; did you mean "host"\?/
    );
    assert.throws(
      () => tcp({ port: 1883, tls: {} } as never),
      /unknown option "tls" in tcp listener; expected one of name, .*\bproxyProtocol, .*\bport, host\b/
    );
    assert.throws(() => tcp({ port: 70_000 }), InvalidInput);
    assert.throws(() => tcp({} as never), { code: 'OPTION_MISSING' });
  });
});
