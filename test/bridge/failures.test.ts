import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type BridgeOptions, bridge } from '../../adapters/bridge/index.ts';
import { encode, PacketReader } from '../../lib/adapter.ts';
import { type Broker, createBroker, type Packet, users } from '../../lib/index.ts';
import { VirtualClock } from '../../lib/testing/index.ts';
import { evalFlags, urlOf } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { connected, listener, Pair, server } from './pair.ts';

const BOTH = { out: [{ filter: 'out/#', qos: 2 }], in: [{ filter: 'in/#', qos: 2 }] } as const;
const ACCEPTED: Packet = { cmd: 'connack', sessionPresent: false, reasonCode: 0 };

/** Runs a bridge to a server that answers each chunk with `answer`, until the bridge has connected `times` times. */
async function against(
  answer: (socket: Socket, chunk: Buffer, count: number) => void,
  times: number,
  options: Partial<BridgeOptions> = {},
  started: (near: Broker) => void = () => undefined
): Promise<{ errors: string[]; near: Broker }> {
  let count = 0;
  const sockets = new Set<Socket>();
  const hostile = createServer((socket) => {
    count++;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => answer(socket, chunk, count));
  }).listen(0, '127.0.0.1');
  await once(hostile, 'listening');
  const near = await createBroker().start();
  started(near);
  const errors: string[] = [];
  const url = `mqtt://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
  const link = bridge(near, { ...BOTH, url, backOff: 1, maxBackOff: 2, ...options });
  while (count <= times) {
    const message = link.lastError?.message;
    if (message !== undefined && errors.at(-1) !== message) errors.push(message);
    await setImmediate();
  }
  link.close();
  for (const socket of sockets) socket.destroy();
  hostile.close();
  // the broker serves its clients as before
  const here = await listener(near);
  await near.publish('x', '1');
  assert.equal(String((await here.next()).payload), '1');
  await near.stop();
  return { errors, near };
}

/** Answers CONNECT with CONNACK, and what follows with these bytes. */
function afterConnack(bytes: Buffer) {
  return (socket: Socket, chunk: Buffer) => {
    if (chunk[0] === 0x10) socket.write(encode(ACCEPTED, 5));
    else socket.write(bytes);
  };
}

describe('A bridge to a hostile server', () => {
  const hostile: Record<string, Buffer> = {
    'bytes that are not MQTT': Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'),
    'a second CONNACK': encode(ACCEPTED, 5),
    'a SUBACK for another number of filters': Buffer.of(0x90, 5, 0xff, 0xff, 0, 0, 0),
    'a SUBACK for another packet id': Buffer.of(0x90, 4, 0, 1, 0, 0),
    'a topic that is not UTF-8': Buffer.of(0x30, 5, 0, 2, 0xff, 0xff, 0),
    'a topic alias': Buffer.of(0x30, 8, 0, 2, 0x69, 0x6e, 3, 0x23, 0, 1),
    'a packet that is too large': Buffer.of(0x30, 0xff, 0xff, 0xff, 0x7f),
    'a CONNECT': encode(
      { cmd: 'connect', protocolVersion: 5, bridge: false, clientId: 'x', clean: true, keepalive: 0 },
      5
    ),
    'an AUTH': Buffer.of(0xf0, 0),
    'packet id 0': Buffer.of(0x40, 2, 0, 0)
  };
  for (const [name, bytes] of Object.entries(hostile)) {
    it(`closes the connection after ${name}, and tries again`, async () => {
      const { errors } = await against(afterConnack(bytes), 3);
      assert.ok(errors.length > 0);
    });
  }

  it('ignores acknowledgements of messages that were not sent', async () => {
    const acks = (['puback', 'pubrec', 'pubrel', 'pubcomp'] as const).map((cmd) =>
      encode({ cmd, messageId: 7, reasonCode: 0 }, 5)
    );
    await against((socket, chunk) => {
      if (chunk[0] === 0x10) socket.write(encode(ACCEPTED, 5));
      else {
        socket.write(Buffer.concat([Buffer.of(0x90, 4, 0xff, 0xff, 0, 2), ...acks]));
        socket.end();
      }
    }, 3);
  });

  it('survives random bytes', async () => {
    let seed = 7;
    const random = () => (seed = (seed * 1_103_515_245 + 12_345) & 0x7fff_ffff) / 0x7fff_ffff;
    await against((socket, chunk) => {
      if (chunk[0] === 0x10 && random() < 0.7) socket.write(encode(ACCEPTED, 5));
      const length = 1 + Math.floor(random() * 40);
      socket.end(Buffer.from(Array.from({ length }, () => Math.floor(random() * 256))));
    }, 300);
  });
});

describe('A bridge that cannot connect', () => {
  it('reports why it is refused, and raises an alarm', async () => {
    const far = await server({ auth: [users([{ username: 'b', password: 'right' }])] });
    const near = await createBroker().start();
    const raised = near.nextEvent('alarm.raised');
    const link = bridge(near, { ...BOTH, url: far.url, username: 'b', password: 'wrong', alarmAfter: 5, backOff: 5 });
    const { alarm } = await raised;
    assert.equal(alarm.id, 'bridge_down:default');
    await until(() => link.lastError !== undefined);
    assert.match(String(link.lastError?.message), /refused the bridge/);
    assert.equal(link.state, 'disconnected');
    link.close();
    assert.equal(near.alarms.get('bridge_down:default'), undefined);
    const good = bridge(near, { ...BOTH, url: far.url.replace('//', '//b:right@'), backOff: 5 });
    await connected(near, good);
    good.close();
    await Promise.all([near.stop(), far.broker.stop()]);
  });

  it('connects once the server accepts connections', async () => {
    const first = await server();
    await first.broker.stop();
    const near = await createBroker().start();
    const link = bridge(near, { ...BOTH, url: first.url, backOff: 5, maxBackOff: 10 });
    await until(() => link.lastError !== undefined);
    await near.publish('out/x', '1', { qos: 1 });
    const far = await server({}, first.port);
    await connected(near, link);
    await until(() => link.size === 0);
    assert.equal(link.counters.sent, 1);
    link.close();
    await Promise.all([near.stop(), far.broker.stop()]);
  });
});

describe('The sessions of a bridge', () => {
  it('delivers new QoS 2 messages after the remote server has lost its session', async () => {
    await using pair = await Pair.open(BOTH);
    const here = await listener(pair.near, 'in/#');
    for (let i = 0; i < 5; i++) await pair.far.publish('in/x', `${i}`, { qos: 2 });
    for (let i = 0; i < 5; i++) await here.next();
    const port = Number(new URL(pair.url).port);
    await pair.far.stop(); // without a store, it forgets all sessions
    for (let i = 0; i < 5; i++) await pair.near.publish('out/x', `${i}`, { qos: 2 });
    const back = await server({}, port);
    pair.far = back.broker;
    const there = await listener(pair.far, 'out/#');
    for (let i = 0; i < 5; i++) assert.equal(String((await there.next()).payload), `${i}`);
    await connected(pair.near, pair.link);
    for (let i = 5; i < 10; i++) await pair.far.publish('in/x', `${i}`, { qos: 2 });
    for (let i = 5; i < 10; i++) assert.equal(String((await here.next()).payload), `${i}`);
    await until(() => pair.link.size === 0);
  });

  it('does not treat a new message as a duplicate if the remote server has lost its session', async () => {
    const message = (payload: string): Packet => {
      return {
        cmd: 'publish',
        topic: 'in/x',
        payload: Buffer.from(payload),
        qos: 2,
        dup: false,
        retain: false,
        messageId: 1
      };
    };
    const released: number[] = [];
    const near = await createBroker().start();
    const here = await listener(near, 'in/#');
    let count = 0;
    const far = createServer((socket) => {
      const number = ++count;
      const reader = new PacketReader({ side: 'server' });
      const send = (packet: Packet) => socket.write(encode(packet, 5));
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        for (const packet of reader.push(chunk)) {
          if (packet.cmd === 'connect') send(ACCEPTED);
          else if (packet.cmd === 'subscribe') {
            send({ cmd: 'suback', messageId: packet.messageId, granted: [2] });
            send(message(`${number}`));
          } else if (packet.cmd === 'pubrec') {
            if (number === 1) void near.publish('out/x', 'a', { qos: 2 });
          } else if (packet.cmd === 'publish') send({ cmd: 'pubrec', messageId: packet.messageId ?? 0, reasonCode: 0 });
          else if (packet.cmd === 'pubrel') {
            released.push(number);
            socket.destroy();
          }
        }
      });
    }).listen(0, '127.0.0.1');
    await once(far, 'listening');
    const url = `mqtt://127.0.0.1:${(far.address() as AddressInfo).port}`;
    const link = bridge(near, { ...BOTH, url, backOff: 5 });
    assert.equal(String((await here.next()).payload), '1');
    assert.equal(String((await here.next()).payload), '2');
    await until(() => link.size === 0);
    assert.deepEqual(released, [1]); // the second connection has not sent PUBREL for a message that it did not send
    link.close();
    far.close();
    await near.stop();
  });

  it('ends loops of servers by the user property of hops', async () => {
    const brokers = await Promise.all([server(), server(), server()]);
    const links = brokers.map(({ broker }, at) =>
      bridge(broker, { url: brokers[(at + 1) % 3].url, out: [{ filter: '#', qos: 1 }], backOff: 5 })
    );
    await Promise.all(links.map((link, at) => connected(brokers[at].broker, link)));
    await brokers[0].broker.publish('x', '1', { qos: 1 });
    await until(() => links[0].counters.dropped > 0);
    assert.deepEqual(
      links.map(({ counters }) => counters.sent),
      [1, 1, 1]
    );
    for (const link of links) link.close();
    await Promise.all(brokers.map(({ broker }) => broker.stop()));
  });

  it('rejects a prefix with wildcards, and names it', () => {
    for (const name of ['localPrefix', 'remotePrefix'])
      for (const prefix of ['a/#', '+/', 3])
        assert.throws(() => bridge(createBroker(), { ...BOTH, out: [{ filter: 'x', [name]: prefix }] } as never), {
          code: 'OPTION_INVALID',
          field: `bridge.out[0].${name}`
        });
  });

  it('rejects credentials in the URL that are not percent-encoded, or too long', async () => {
    const near = createBroker();
    const long = 'x'.repeat(70_000);
    for (const credentials of ['us%er', 'user:100%', '%ff', long, `user:${long}`])
      assert.throws(() => bridge(near, { ...BOTH, url: `mqtt://${credentials}@127.0.0.1` }), {
        code: 'OPTION_INVALID',
        field: 'bridge.url'
      });
    assert.doesNotThrow(() => bridge(near, { ...BOTH, url: 'mqtt://user:100%25@127.0.0.1' }).close());
  });

  it('rejects names that cannot be part of a URL', () => {
    for (const name of ['.', '..', 'a b', ''])
      assert.throws(() => bridge(createBroker(), { ...BOTH, url: 'mqtt://127.0.0.1', name }), {
        code: 'OPTION_INVALID',
        field: 'bridge.name'
      });
  });

  it('starts a new session at once if its client is kicked, so that messages are queued again', async () => {
    await using pair = await Pair.open({ ...BOTH, connectTimeout: 3_600_000 });
    const far = await listener(pair.far);
    for (const text of ['1', '2']) {
      const again = pair.near.nextEvent('bridge.connected');
      pair.near.sessions.get('$bridge/default').kick();
      await again;
      await pair.near.publish('out/x', text, { qos: 2 });
      assert.equal(String((await far.next()).payload), text);
    }
    assert.equal(pair.link.counters.connected, 3);
  });

  it('disconnects from a server that sends messages without a rule and never reads the acknowledgements', async () => {
    const message = {
      cmd: 'publish',
      topic: 'zz',
      payload: Buffer.alloc(0),
      qos: 1,
      dup: false,
      retain: false
    } as const;
    const block = Buffer.concat(new Array(5000).fill(encode({ ...message, messageId: 7 }, 5)));
    const { errors } = await against((socket, chunk, count) => {
      if (chunk[0] === 0x10) socket.write(encode(ACCEPTED, 5));
      if (chunk[0] !== 0x82 || count > 1) return;
      socket.write(encode({ cmd: 'suback', messageId: 65_535, granted: [2] }, 5));
      socket.pause();
      const flood = () => {
        while (!socket.destroyed) if (!socket.write(block)) return void socket.once('drain', flood);
      };
      flood();
    }, 1);
    assert.ok(errors.includes('the remote server sends messages, but reads no acknowledgements'), errors.join());
  });

  it('starts new sessions at both sides if their client is kicked while they connect', async () => {
    const cleans: boolean[] = [];
    let near: Broker | undefined;
    const { errors } = await against(
      (socket, chunk) => {
        if (chunk[0] !== 0x10) return;
        near?.sessions.get('$bridge/default').kick();
        near = undefined;
        cleans.push((chunk[9] & 2) !== 0);
        socket.write(encode(ACCEPTED, 5));
        if (cleans.length > 1) socket.end();
      },
      2,
      { isPersisted: true },
      (broker) => {
        near = broker;
      }
    );
    assert.deepEqual(cleans.slice(0, 2), [true, true]);
    assert.ok(errors.some((message) => /the session of the bridge at this broker was deleted/.test(message)));
  });

  it('keeps the process running while the server is down, until the bridge is stopped', async (context) => {
    let attempts = 0;
    const away = createServer((socket) => {
      attempts++;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    context.after(() => away.close());
    await once(away, 'listening');
    const script = `
      import { bridge } from '${urlOf('adapters/bridge/index.ts')}';
      import { createBroker } from '${urlOf('lib/index.ts')}';
      const broker = await createBroker().start();
      const url = 'mqtt://127.0.0.1:${(away.address() as AddressInfo).port}';
      const link = bridge(broker, { url, backOff: 1, maxBackOff: 2, out: [{ filter: '#' }] });
      process.once('SIGTERM', () => link.stop());`;
    const app = spawn(process.execPath, evalFlags(script), { stdio: 'inherit' });
    context.after(() => app.kill('SIGKILL'));
    await until(() => attempts >= 5 || app.exitCode !== null);
    assert.equal(app.exitCode, null, 'the process has ended while the server was away');
    app.kill('SIGTERM');
    assert.deepEqual(await once(app, 'exit'), [0, null]);
  });

  for (const end of ['close', 'discard'] as const)
    it(`leaves nothing at this broker if ${end}() is called before the client is connected`, async () => {
      const clock = new VirtualClock();
      const near = await createBroker({ clock }).start();
      bridge(near, { ...BOTH, url: 'mqtt://127.0.0.1:1', isPersisted: end === 'discard' })[end]();
      await clock.settle();
      assert.equal(near.sessions.has('$bridge/default'), false);
      await near.stop();
    });

  it('keeps messages published while the bridge is stopped, and ends its session when it is closed', async () => {
    await using pair = await Pair.open(BOTH);
    const ended = pair.near.nextEvent('bridge.disconnected');
    pair.link.stop();
    assert.equal((await ended).error, undefined);
    assert.equal(pair.link.state, 'idle');
    await pair.near.publish('out/x', '1', { qos: 1 });
    assert.equal(pair.link.size, 1);
    pair.link.start();
    await connected(pair.near, pair.link);
    await until(() => pair.link.size === 0);
    pair.link.close();
    assert.equal(pair.near.sessions.has('$bridge/default'), false);
  });
});
