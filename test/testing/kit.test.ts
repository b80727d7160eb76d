import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { describe, it, mock } from 'node:test';
import mqtt from 'mqtt';
import { engineOf } from '../../lib/broker/broker.ts';
import { type Client, connectClient } from '../../lib/client/client.ts';
import type { ClientOptions, ReceivedMessage, Refused } from '../../lib/client/options.ts';
import {
  createTestBroker,
  ExpectationFailed,
  LeakError,
  type TestBroker,
  type TestBrokerOptions,
  VirtualClock
} from '../../lib/testing/index.ts';
import { cpuMs } from '../support/cpu.ts';

const hasCode = (code: string, reasonCode?: number) => (error: unknown) => {
  assert.equal((error as Refused).code, code, String(error));
  if (reasonCode !== undefined) assert.equal((error as Refused).reasonCode, reasonCode);
  return true;
};

describe('createTestBroker', () => {
  it('returns a started broker that serves in-process clients without advancing time', async () => {
    await using kit = await createTestBroker();
    await using one = await kit.connect();
    await using two = await kit.connect({ protocolVersion: 4 });
    assert.deepEqual([one.clientId, two.clientId], ['client-1', 'client-2']);
    const got: ReceivedMessage[] = [];
    assert.deepEqual(await two.subscribe('a/+', { qos: 2 }, (message) => got.push(message)), [2]);
    await one.publish('a/1', 'x', { qos: 2 });
    await kit.clock.settle();
    assert.deepEqual(
      got.map(({ topic, payload, qos }) => [topic, String(payload), qos]),
      [['a/1', 'x', 2]]
    );
    assert.equal(kit.clock.monotonic(), 0);
  });

  it('accepts options of the broker and a clock, and refuses unknown options', async () => {
    const clock = new VirtualClock({ now: 0 });
    await using kit = await createTestBroker({ clock, maxQosAllowed: 1 });
    assert.equal(kit.clock, clock);
    assert.equal(kit.broker.clock, clock);
    await using client = await kit.connect();
    assert.deepEqual(await client.subscribe('a', { qos: 2 }), [1]);
    await assert.rejects(createTestBroker({ maxQoS: 1 } as object), hasCode('OPTION_UNKNOWN'));
  });

  it('refuses values of the option clock that would be ignored', async () => {
    for (const clock of ['2026-05-05', 5, null, new Date(0)] as never[])
      await assert.rejects(createTestBroker({ clock }), { code: 'OPTION_INVALID', field: 'clock' }, String(clock));
    await assert.rejects(createTestBroker({ clock: { date: 0 } as object }), hasCode('OPTION_UNKNOWN'));
    for (const field of ['stuckMs', 'patienceMs'])
      await assert.rejects(createTestBroker({ clock: { [field]: '10s' } }), { code: 'OPTION_INVALID', field });
  });

  it('says that it is disposed of, if a test that was not awaited uses it later', async () => {
    const kit = await createTestBroker();
    await kit[Symbol.asyncDispose]();
    for (const use of [
      () => kit.connect(),
      async () => kit.stream(),
      () => kit.expectMessage('t'),
      () => kit.expectNoMessage('t'),
      () => kit.replay('traffic.jsonl')
    ])
      await assert.rejects(use(), hasCode('KIT_MISSING'));
  });

  it('fires keep alive, will delay, message expiry and session expiry in order', async () => {
    await using kit = await createTestBroker();
    const log: string[] = [];
    const start = kit.clock.monotonic();
    const note = (text: string) => log.push(`${text}@${(kit.clock.monotonic() - start) / 1000}`);
    kit.broker.on('client.disconnected', ({ client, reason }) => note(`${client.clientId} ${reason}`));
    kit.broker.on('session.terminated', ({ client }) => note(`${client.clientId} gone`));
    kit.broker.on('message.publish', ({ message }) => note(message.topic));
    await kit.connect({
      clientId: 'd',
      properties: { sessionExpiryInterval: 60 },
      will: { topic: 'will', properties: { willDelayInterval: 10 } }
    });
    kit.link('d').halfOpen();
    await kit.clock.advance('1h');
    assert.deepEqual(log, []); // without keep alive, the broker does not notice the half-open connection
    kit.link('d').cut();
    await kit.clock.advance('2m');
    assert.deepEqual(log, ['d closed@3600', 'will@3610', 'd gone@3660']);
  });

  it('detects a half-open connection by keep alive', async () => {
    await using kit = await createTestBroker();
    const client = await kit.connect({ clientId: 'd', keepalive: 60 });
    await kit.clock.advance('1h');
    assert.ok(client.isConnected, 'pings kept it alive');
    kit.link(client).halfOpen();
    const gone = kit.broker.nextEvent('client.disconnected');
    await kit.clock.advance('121s');
    assert.equal((await gone).reason, 'keepalive_timeout');
    assert.equal(client.isConnected, false);
  });

  it('does not wait for hooks that wait for the clock', async () => {
    await using kit = await createTestBroker({ clock: { patienceMs: 20_000 } });
    const startMs = performance.now();
    const slowly = async () => {
      await new Promise<void>((resolve) => kit.clock.setTimeout(resolve, 1_000));
      await readFile(new URL(import.meta.url)); // and real input
      return true;
    };
    for (const name of ['preConnect', 'authenticate', 'authorizeSubscribe', 'authorizePublish', 'publish'] as const) {
      kit.broker.hook(name, slowly);
    }
    const connecting = kit.connect();
    await kit.clock.advance('1h');
    await using client = await connecting;
    const subscribing = client.subscribe('t', { qos: 1 });
    await kit.clock.advance('1h');
    assert.deepEqual(await subscribing, [1]);
    const publishing = client.publish('t', 'x', { qos: 1 });
    const fromApp = kit.broker.publish('t', 'y');
    await kit.clock.advance('1h');
    assert.equal((await publishing).reasonCode, 0);
    await fromApp;
    assert.equal(engineOf(kit.broker).services.work.count, 0);
    assert.ok(performance.now() - startMs < 10_000, 'the clock continued before patienceMs had passed');
  });

  it('times out hooks that never return', async () => {
    await using kit = await createTestBroker({ clock: { patienceMs: 10 } });
    const reported: string[] = [];
    kit.broker.on('error', ({ error }) => reported.push((error as { code?: string }).code ?? ''));
    kit.broker.hook('authenticate', () => new Promise<true>(() => {}));
    const refused = assert.rejects(kit.connect(), hasCode('CONNECT_REFUSED'));
    await kit.clock.advance('5s');
    await refused;
    assert.deepEqual(reported, ['HOOK_TIMEOUT']);
    assert.equal(engineOf(kit.broker).services.work.count, 0);
  });

  it('waits for a hook that does real input or output', async () => {
    await using kit = await createTestBroker({ clock: { patienceMs: 60_000 } });
    let askedAt = -1;
    kit.broker.hook('authorizePublish', async () => {
      await readFile(new URL(import.meta.url));
      await readFile(new URL(import.meta.url));
      askedAt = kit.clock.monotonic();
      return true;
    });
    await using client = await kit.connect();
    kit.clock.setTimeout(() => void client.publish('t', 'x'), 10);
    kit.clock.setTimeout(() => assert.equal(askedAt, 10), 11);
    await kit.clock.advance(20);
    assert.equal(askedAt, 10);
  });

  it('ignores fake timers, immediates and dates', async () => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate', 'Date'] });
    try {
      await using kit = await createTestBroker();
      await using client = await kit.connect({ keepalive: 10 });
      await client.subscribe('a', { qos: 1 });
      kit.clock.setTimeout(() => void client.publish('a', 'x', { qos: 1 }), 30_000);
      await kit.expectMessage('a', { within: '30s' });
    } finally {
      mock.timers.reset();
    }
  });

  it('advances a day with 1,000 idle sessions quickly', async () => {
    await using kit = await createTestBroker({ leakCheck: false });
    for (let n = 0; n < 1_000; n++) await kit.connect();
    const before = cpuMs();
    await kit.clock.advance('1d');
    const usedMs = cpuMs() - before;
    // This takes 17 ms; the bound allows for garbage collection and compilation.
    assert.ok(usedMs < 500, `${usedMs} ms`);
  });
});

describe('expectMessage', () => {
  it('returns the message and advances time only until the message arrives', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect({ clientId: 'dev' });
    kit.clock.setTimeout(
      () => void client.publish('t/1', '{"v":1}', { qos: 1, properties: { contentType: 'json' } }),
      2_000
    );
    const message = await kit.expectMessage('t/+', { within: '5s' });
    assert.equal(message.text, '{"v":1}');
    assert.equal(message.clientId, 'dev');
    assert.equal(message.qos, 1);
    assert.equal(message.properties.contentType, 'json');
    assert.equal(kit.clock.monotonic(), 2_000);
  });

  it('finds a message in transit and a message that arrives at the last millisecond', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect();
    void client.publish('now', '');
    await kit.expectMessage('now', { within: 0 });
    kit.clock.setTimeout(() => void client.publish('late', ''), 1_000);
    await kit.expectMessage('late', { within: '1s' });
  });

  it('applies "where" and rejects with the error that "where" throws', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect();
    for (const n of [1, 2, 3]) kit.clock.setTimeout(() => void client.publish('n', String(n)), n * 100);
    assert.equal((await kit.expectMessage('n', { where: ({ text }) => text === '2' })).text, '2');
    const failing = kit.expectMessage('n', {
      where: () => {
        throw new Error('mine');
      }
    });
    await assert.rejects(failing, /mine/);
  });

  it('fails with a list of the messages that arrived instead', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect({ clientId: 'dev' });
    kit.clock.setTimeout(() => void client.publish('other', 'hello'), 300);
    await assert.rejects(kit.expectMessage('t', { within: '1s' }), (error) => {
      assert.ok(error instanceof ExpectationFailed);
      assert.equal(error.code, 'MESSAGE_EXPECTED');
      assert.match(error.message, /no message on "t" came within 1000 ms/);
      assert.match(error.message, /\+300 ms {2}other {2}"hello" {2}QoS 0 {2}from client "dev"/);
      return true;
    });
    assert.equal(kit.clock.monotonic(), 1_000);
  });

  it('says how to expect a message that may have come before, if none came, and leaves the fast path open', async () => {
    await using kit = await createTestBroker();
    await kit.broker.publish('t', 'too early');
    const hint = /came within 1000 ms\. No other messages came\.\nIf it came before, begin the expectation before/;
    await assert.rejects(kit.expectMessage('t'), hint);
    assert.equal(engineOf(kit.broker).publishing.hooks.isFastPathOpen, true);
    const expected = kit.expectMessage('t');
    await kit.broker.publish('t', 'now');
    assert.equal((await expected).text, 'now');
  });

  it('can wait for two messages concurrently', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect();
    kit.clock.setTimeout(() => void client.publish('a', ''), 2_000);
    kit.clock.setTimeout(() => void client.publish('b', ''), 1_000);
    const [a, b] = await Promise.all(['a', 'b'].map((filter) => kit.expectMessage(filter, { within: '3s' })));
    assert.ok(a.at > b.at);
  });

  it('finds the $SYS messages of the broker', async () => {
    await using kit = await createTestBroker({ sysHeartbeat: '10s' });
    await kit.expectMessage('$SYS/brokers/+/uptime', { within: '10s' });
  });

  it('refuses an invalid topic filter', async () => {
    await using kit = await createTestBroker();
    await assert.rejects(kit.expectMessage('a/#/b'), hasCode('TOPIC_FILTER_INVALID'));
  });
});

describe('expectNoMessage', () => {
  it('advances by the whole time, and fails at the first matching message', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect();
    await kit.expectNoMessage('a', { within: '5s' });
    assert.equal(kit.clock.monotonic(), 5_000);
    kit.clock.setTimeout(() => void client.publish('a', 'x'), 100);
    await assert.rejects(kit.expectNoMessage('a', { within: '5s' }), hasCode('MESSAGE_UNEXPECTED'));
    assert.equal(kit.clock.monotonic(), 5_100);
  });

  it('refuses an unknown option with a suggestion', async () => {
    await using kit = await createTestBroker();
    const expecting = kit.expectMessage('a', { withn: '5s' } as never);
    await assert.rejects(expecting, { code: 'OPTION_UNKNOWN', message: /did you mean "within"/ });
  });
});

describe('the packet log', () => {
  it('contains every packet of a client in order, over all of its connections', async () => {
    await using kit = await createTestBroker();
    const first = await kit.connect({ clientId: 'c' });
    await first.subscribe('a', { qos: 1 });
    await first.publish('a', 'x', { qos: 1 });
    await first.disconnect();
    await kit.clock.advance('1s');
    await using second = await kit.connect({ clientId: 'c', protocolVersion: 4 });
    const log = kit.packets('c').map(({ direction, cmd }) => `${direction === 'toBroker' ? '>' : '<'}${cmd}`);
    assert.equal(
      log.sort().join(' '),
      '<connack <connack <puback <publish <suback >connect >connect >disconnect >puback >publish >subscribe'
    );
    const [connect] = kit.packets(second);
    assert.ok(connect.packet?.cmd === 'connect');
    assert.equal(connect.packet.protocolVersion, 4);
    assert.equal(connect.at, kit.clock.now());
    assert.deepEqual(kit.packets('nobody'), []);
  });

  it('finds a client by the client id that the broker assigned', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect({ clientId: '' });
    assert.notEqual(client.clientId, '');
    assert.equal(kit.packets(client.clientId).length, 2);
  });

  it('shows packets as they were sent, also if a hook has changed the payload in place', async () => {
    await using kit = await createTestBroker();
    const seen: string[] = [];
    kit.broker.hook('publish', ({ message }) => {
      seen.push(`${message.payload}`);
      message.payload.fill('.');
      return true;
    });
    await using client = await kit.connect({ clientId: 'c' });
    kit.link('c').duplicate({ cmd: 'publish', direction: 'toBroker' });
    await client.publish('t', 'hello', { qos: 1 });
    await kit.clock.settle();
    const logged = kit.packets('c').flatMap(({ packet }) => (packet?.cmd === 'publish' ? [`${packet.payload}`] : []));
    assert.deepEqual(logged, ['hello']);
    assert.deepEqual(seen, ['hello', 'hello'], 'the duplicate is a copy, too');
  });

  it('shows bytes that cannot be decoded as malformed', async () => {
    await using kit = await createTestBroker();
    const stream = kit.stream();
    stream.resume();
    stream.write(Buffer.from([0x10, 0x02, 0xff, 0xff]));
    await once(stream, 'close');
    assert.equal(kit.packets(stream)[0].cmd, 'malformed');
  });
});

describe('a link', () => {
  it('cut() closes both ends without a DISCONNECT, and the will is published', async () => {
    await using kit = await createTestBroker();
    const client = await kit.connect({ clientId: 'c', will: { topic: 'will', payload: 'gone' } });
    const closed = new Promise((resolve) => client.on('close', resolve));
    kit.link('c').cut();
    await kit.expectMessage('will');
    await closed;
  });

  it('cut() causes messages that count for expectations of the same turn, but not of a later turn', async () => {
    await using kit = await createTestBroker();
    const will = { topic: 'will', payload: 'gone' };
    for (const clientId of ['one', 'two']) await kit.connect({ clientId, will });
    await kit.connect({ clientId: 'three' });
    kit.link('one').cut();
    const presence = kit.expectMessage('$SYS/brokers/+/clients/one/disconnected');
    assert.equal((await kit.expectMessage('will')).clientId, 'one');
    await presence;
    kit.link('two').cut();
    await kit.clock.settle();
    await kit.expectNoMessage('will');
    kit.link('three').cut();
    await kit.expectNoMessage('#');
  });

  it('cut() has closed both ends when it returns: messages are queued, and calls of the client reject', async () => {
    await using kit = await createTestBroker();
    const session = { clientId: 'c', clean: false, sessionExpiry: '1h' } as const;
    const client = await kit.connect(session);
    await client.subscribe('t', { qos: 1 });
    void client.publish('on-its-way', 'x').catch(() => {});
    const heard: string[] = [];
    kit.broker.on('message.publish', ({ message: { topic } }) => heard.push(topic));
    kit.link('c').cut();
    assert.equal(kit.link('c').isOpen, false);
    assert.equal(client.isConnected, false);
    assert.equal(kit.broker.sessions.get('c').state, 'disconnected');
    for (const qos of [0, 1] as const) {
      await assert.rejects(client.publish('t', `client ${qos}`, { qos }), hasCode('NOT_CONNECTED'));
      await kit.broker.publish('t', `broker ${qos}`, { qos });
    }
    await using again = await kit.connect(session);
    const got: string[] = [];
    again.on('message', ({ payload, dup }) => got.push(`${payload}${dup ? ' again' : ''}`));
    await kit.clock.settle();
    assert.deepEqual(got, ['broker 0', 'broker 1']);
    assert.deepEqual(heard, ['t', 't']);
  });

  it('closes when the broker ends the connection while a large packet is in transit', async () => {
    for (const bytes of [10, 70_000, 200_000]) {
      await using kit = await createTestBroker();
      const client = await kit.connect({ clientId: 'c' });
      client.publish('t', Buffer.alloc(bytes)).catch(() => {});
      kit.broker.sessions.get('c').kick();
      await kit.clock.settle();
      assert.equal(client.isConnected, false);
      assert.equal(kit.link(client).isOpen, false, `${bytes} bytes`);
    }
  });

  it('delay() delays all bytes in virtual time, in order', async () => {
    await using kit = await createTestBroker();
    await using slow = await kit.connect({ clientId: 'slow' });
    await using fast = await kit.connect();
    const got: string[] = [];
    await slow.subscribe('t', ({ payload }) => got.push(`${payload}@${kit.clock.monotonic()}`));
    kit.link(slow).delay('200ms', { direction: 'toClient' });
    await fast.publish('t', '1');
    await kit.clock.advance(100);
    await fast.publish('t', '2');
    await kit.clock.advance(1_000);
    assert.deepEqual(got, ['1@200', '2@300']);
    kit.link(slow).heal();
  });

  it('drop() drops the nth packet of a type in one direction', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect({ clientId: 'c' });
    const got: string[] = [];
    await client.subscribe('t', ({ payload }) => got.push(String(payload)));
    kit.link('c').drop({ nth: 2, cmd: 'publish', direction: 'toBroker' });
    for (const n of ['1', '2', '3', '4']) void client.publish('t', n); // possibly in one chunk
    await kit.clock.settle();
    assert.deepEqual(got, ['1', '3', '4']);
    assert.deepEqual(
      kit
        .packets('c')
        .filter(({ isDropped }) => isDropped)
        .map(({ packet }) => packet?.cmd === 'publish' && String(packet.payload)),
      ['2']
    );
  });

  it('duplicate() delivers the chosen packets twice, and QoS 2 is still exactly once', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect({ clientId: 'c' });
    const got: string[] = [];
    await client.subscribe('#', { qos: 2 }, ({ topic }) => got.push(topic));
    kit.link('c').duplicate({ cmd: 'publish', direction: 'toBroker', count: Infinity });
    await client.publish('qos0', '');
    await client.publish('qos2', '', { qos: 2 });
    await kit.clock.settle();
    assert.deepEqual(got, ['qos0', 'qos0', 'qos2']);
  });

  it('withholdAcks() fills the receive window of a subscriber, which gets the other messages when it reconnects', async () => {
    await using kit = await createTestBroker({ maxInflight: 2 });
    await using sender = await kit.connect();
    const stuck = await kit.connect({ clientId: 's', clean: false, sessionExpiry: 100 });
    const got: string[] = [];
    await stuck.subscribe('t', { qos: 1 }, ({ payload }) => got.push(String(payload)));
    kit.link('s').withholdAcks();
    for (const n of [1, 2, 3]) await sender.publish('t', String(n), { qos: 1 });
    await kit.clock.advance('1s');
    assert.deepEqual(got, ['1', '2']);
    kit.link('s').cut();
    await kit.clock.settle();
    await using again = await kit.connect({ clientId: 's', clean: false });
    again.on('message', ({ payload, dup }) => got.push(`${payload} ${dup}`));
    await kit.clock.settle();
    assert.deepEqual(got.slice(2), ['1 true', '2 true', '3 false']);
  });

  it('slowReader() makes the broker wait, and time still advances', async () => {
    await using kit = await createTestBroker({ slowConsumerTimeout: '10s', outputHighWaterMark: 1_000 });
    await using sender = await kit.connect();
    const slow = await kit.connect({ clientId: 's' });
    let bytes = 0;
    await slow.subscribe('t', ({ payload }) => {
      bytes += payload.length;
    });
    kit.link('s').slowReader();
    const gone = kit.broker.nextEvent('client.disconnected');
    for (let n = 0; n < 40; n++) await sender.publish('t', Buffer.alloc(10_000));
    await kit.clock.advance('30s');
    assert.equal((await gone).reason, 'slow_consumer');
    assert.ok(bytes < 400_000);
    assert.equal(slow.isConnected, true); // the end of the stream comes after the bytes that it does not read
    kit.link('s').heal();
    await kit.clock.settle();
    assert.equal(slow.isConnected, false);
  });

  it('slowReader() with a rate forwards that number of bytes per second', async () => {
    await using kit = await createTestBroker();
    await using sender = await kit.connect();
    await using slow = await kit.connect({ clientId: 's' });
    let last = 0;
    let count = 0;
    await slow.subscribe('t', () => {
      count++;
      last = kit.clock.monotonic();
    });
    kit.link('s').slowReader(10_000);
    for (let n = 0; n < 5; n++) {
      await sender.publish('t', Buffer.alloc(10_000));
      await kit.clock.settle();
    }
    await kit.clock.advance('10s');
    assert.equal(count, 5);
    assert.ok(last >= 3_000 && last <= 6_000, `the last came at ${last} ms`);
    kit.link('s').heal();
  });

  it('forwards the bytes of an incomplete packet as they arrive', async () => {
    await using kit = await createTestBroker({ connectTimeout: '10s', leakCheck: false });
    const stream = kit.stream();
    stream.resume();
    stream.write(Buffer.from([0x10]));
    await kit.clock.advance('9s');
    stream.write(Buffer.from([0x20, 0x00]));
    await kit.clock.settle();
    assert.equal(stream.destroyed, false);
    await kit.clock.advance('2s');
    assert.equal(stream.destroyed, true); // incomplete packets do not extend the timeout
  });

  it('refuseNext() answers one CONNECT, of any client or of a given one, with the code', async () => {
    await using kit = await createTestBroker();
    kit.refuseNext(0x97, { reasonString: 'full' });
    await assert.rejects(
      kit.connect(),
      (error) => hasCode('CONNECT_REFUSED', 0x97)(error) && /full/.test(String(error))
    );
    kit.refuseNext('b', 0x88);
    await using a = await kit.connect({ clientId: 'a' });
    assert.ok(a.isConnected);
    await assert.rejects(kit.connect({ clientId: 'b', protocolVersion: 4 }), hasCode('CONNECT_REFUSED', 0x88));
    await using b = await kit.connect({ clientId: 'b' });
    assert.ok(b.isConnected);
  });

  it('refuses connections while kit.isReachable is false', async () => {
    await using kit = await createTestBroker();
    kit.isReachable = false;
    await assert.rejects(kit.connect(), hasCode('CONNECTION_CLOSED'));
    kit.isReachable = true;
    await using client = await kit.connect();
    assert.ok(client.isConnected);
  });

  it('refuses faults with invalid arguments', async () => {
    await using kit = await createTestBroker();
    await using _ = await kit.connect({ clientId: 'c' });
    const link = kit.link('c');
    const choices: [string, object][] = [
      ['cmd', { cmd: 'publsh' }],
      ['cmd', { cmd: ['publish', 'toString'] }],
      ['nth', { nth: 0 }],
      ['nth', { nth: 1.5 }],
      ['count', { count: 0 }],
      ['count', { count: -1 }],
      ['direction', { direction: 'toServer' }],
      ['dir', { dir: 'toBroker' }]
    ];
    for (const [field, choice] of choices) {
      assert.throws(() => link.drop(choice), { name: 'InvalidInput', field }, JSON.stringify(choice));
      assert.throws(() => link.duplicate(choice), { name: 'InvalidInput', field }, JSON.stringify(choice));
    }
    assert.throws(() => link.drop({ cmd: 'publsh' as 'publish' }), /packet type "publsh"; did you mean "publish"\?/);
    const direction = 'up' as 'toBroker';
    assert.throws(() => link.delay('1s', { direction }), { code: 'OPTION_INVALID', field: 'direction' });
    assert.throws(() => link.withholdAcks({ direction }), { code: 'OPTION_INVALID', field: 'direction' });
    const calls = [
      (value: unknown) => link.drop(value as object),
      (value: unknown) => link.delay('1s', value as object),
      (value: unknown) => link.withholdAcks(value as object)
    ];
    for (const call of calls) {
      assert.throws(() => call('toClient'), { code: 'OPTION_INVALID', expected: 'an object' });
      assert.throws(() => call({ directions: 'toClient' }), { code: 'OPTION_UNKNOWN' });
    }
    for (const rate of [-1, Number.NaN, '1KB' as unknown as number]) {
      assert.throws(() => link.slowReader(rate), { code: 'OPTION_INVALID', field: 'bytesPerSec' });
    }
    for (const code of [undefined, 0, 0x7f, 0x100, 'full']) {
      const refusing = () => kit.refuseNext('c', code as number);
      assert.throws(refusing, { code: 'OPTION_INVALID', field: 'reasonCode' }, String(code));
    }
    assert.throws(() => kit.refuseNext(5), { code: 'OPTION_INVALID', field: 'reasonCode' });
    link.drop({ cmd: 'publish', nth: 2, count: Infinity, direction: 'toBroker' });
  });

  it('throws LINK_NOT_FOUND for a client that has never connected', async () => {
    await using kit = await createTestBroker();
    assert.throws(() => kit.link('nobody'), hasCode('LINK_NOT_FOUND'));
    await kit.connect({ clientId: 'pump' });
    assert.throws(() => kit.link('pmup'), /client "pmup" is not connected.*; did you mean "pump"\?$/);
    assert.throws(() => kit.link('nobody'), /use kit\.connect or kit\.stream$/);
  });
});

/** The process warnings that are emitted while `run` runs. */
async function warningsOf(run: () => Promise<unknown>): Promise<(Error & { code?: string })[]> {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  try {
    await run();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('warning', note);
  }
  return warnings;
}

/** A kit with one leak of each kind. */
async function messyKit(options: TestBrokerOptions): Promise<TestBroker> {
  const kit = await createTestBroker(options);
  await kit.broker.connect({ clientId: 'forgotten', keepalive: 10 });
  kit.broker.stream();
  kit.broker.subscribe('heard', () => {});
  void kit.broker.messages('read').next();
  kit.broker.respond('asked', () => '');
  kit.clock.setTimeout(() => {}, 5_000);
  void kit.expectMessage('never', { within: '1h' }).catch(() => {});
  return kit;
}

const LEAKS = [
  /client "forgotten" of broker.connect or broker.stream is still connected.* opened at .*testing\/kit\.test/,
  /client "" of broker.connect or broker.stream is still connected.* opened at .*testing\/kit\.test/,
  /a handler of "heard" .* is still subscribed.* subscribed at .*testing\/kit\.test/,
  /a handler of "read" .* is still subscribed.* subscribed at .*testing\/kit\.test/,
  /a handler of "asked" \(.*broker.respond\) is still subscribed.* subscribed at .*testing\/kit\.test/,
  /due in 5000 ms, set at .*testing\/kit\.test/,
  /expectation on "never" was not awaited; made at .*testing\/kit\.test/
];

describe('a client whose connection ends in the turn of its CONNACK', () => {
  /** Tells whether a client emits close in one of the next turns. */
  async function isClosed(client: Client): Promise<boolean> {
    let isClosed = false;
    client.on('close', () => {
      isClosed = true;
    });
    for (let left = 10; left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
    return isClosed;
  }

  for (const [name, place] of [
    ['broker.connect', ({ broker }: TestBroker) => broker],
    ['kit.connect', (kit: TestBroker) => kit]
  ] as const) {
    it(`emits close to listeners that are added after ${name}, if a listener of client.connected kicks it`, async () => {
      await using kit = await createTestBroker();
      kit.broker.once('client.connected', () => kit.broker.sessions.get('c').kick());
      const client = await place(kit).connect({ clientId: 'c' });
      assert.equal(await isClosed(client), true);
      assert.equal(client.isConnected, false);
    });

    it(`emits close to listeners that are added after ${name}, if another client takes over its session`, async () => {
      await using kit = await createTestBroker();
      const connect = async () => place(kit).connect({ clientId: 'c' }); // one more promise
      const [connecting, second] = [connect(), connect()];
      const client = await connecting;
      assert.equal(await isClosed(client), true);
      assert.equal((await second).isConnected, true);
      await (await second).disconnect();
    });
  }
});

describe('a client that does not read and is destroyed', () => {
  const connections = {
    'broker.connect': (kit: TestBroker, options: ClientOptions) => kit.broker.connect(options),
    'broker.stream': (kit: TestBroker, options: ClientOptions) => connectClient(kit.broker.stream(), options),
    'kit.connect': (kit: TestBroker, options: ClientOptions) => kit.connect(options),
    'kit.stream': (kit: TestBroker, options: ClientOptions) => connectClient(kit.stream(), options)
  };
  for (const [name, connect] of Object.entries(connections))
    for (const sessionExpiry of [0, 3600])
      it(`does not count messages that wait for the client as delivered: ${name}, session expiry ${sessionExpiry}`, async () => {
        await using kit = await createTestBroker({ outputHighWaterMark: 65_536 });
        let delivered = 0;
        let dropped = 0;
        kit.broker.on('message.delivered', () => delivered++);
        kit.broker.on('message.dropped', ({ reason }) => {
          assert.equal(reason, 'session_terminated');
          dropped++;
        });
        const client = await connect(kit, { clientId: 'c', sessionExpiry });
        await client.subscribe('t');
        client.messages({ highWaterMark: 1 });
        for (let n = 0; n < 60; n++) {
          await kit.broker.publish('t', Buffer.alloc(20_000));
          await kit.clock.settle();
        }
        const sent = delivered;
        assert.ok(sent < 30, `${sent} messages were sent`);
        client.destroy();
        await kit.clock.settle();
        assert.equal(delivered, sent);
        if (sessionExpiry === 0) assert.equal(dropped, 60 - sent);
        else assert.equal(kit.broker.sessions.get('c').counters().mqueueLen, 60 - sent);
      });
});

describe('the leak check', () => {
  it('throws LeakError TEST_LEAKS with leaks: "error", lists every leak, and still releases everything', async () => {
    const kit = await messyKit({ leaks: 'error' });
    await assert.rejects(kit[Symbol.asyncDispose](), (error) => {
      assert.ok(error instanceof LeakError);
      assert.equal(error.code, 'TEST_LEAKS');
      assert.equal(error.leaks.length, LEAKS.length);
      for (const [at, pattern] of LEAKS.entries()) assert.match(error.leaks[at], pattern);
      return true;
    });
    await kit.clock.settle();
    assert.equal(kit.broker.state, 'disconnected');
  });

  it('warns with the code TEST_LEAKS by default, and is silent with leaks: "ignore" and leakCheck: false', async () => {
    const [warning, ...others] = await warningsOf(async () => {
      for (const options of [{}, { leaks: 'ignore' }, { leakCheck: false }] as const) {
        const kit = await messyKit(options);
        await kit[Symbol.asyncDispose]();
      }
    });
    assert.deepEqual(others, []);
    assert.deepEqual([warning.name, warning.code], ['TestLeakWarning', 'TEST_LEAKS']);
    for (const pattern of LEAKS) assert.match(warning.message, pattern);
  });

  it('does not report clients and streams of the kit, nor resources that were closed', async () => {
    const kit = await createTestBroker({ leaks: 'error' });
    const open = await kit.connect({ keepalive: 60 });
    kit.stream();
    kit.broker.on('client.connected', () => {});
    kit.broker.hook('deliver', () => true);
    const client = await kit.broker.connect();
    await client.disconnect();
    kit.broker.subscribe('a', () => {})();
    const aborted = new AbortController();
    kit.broker.subscribe('a', () => {}, { signal: aborted.signal });
    aborted.abort();
    kit.clock.clearTimeout(kit.clock.setTimeout(() => {}, 5));
    await kit[Symbol.asyncDispose]();
    await kit.clock.settle();
    assert.equal(open.isConnected, false, 'it is closed with the kit');
  });

  it('does not hide the error of a failing test if a client of the kit is still connected', async () => {
    for (const leaks of ['warn', 'error'] as const) {
      const failing = async () => {
        await using kit = await createTestBroker({ leaks });
        await kit.connect();
        assert.equal(1, 2);
      };
      await assert.rejects(failing, { name: 'AssertionError', actual: 1, expected: 2 });
    }
  });

  it('reports a replay that was not awaited', async () => {
    let end = () => {};
    const readFile = () => new Promise<string>((resolve) => (end = () => resolve('')));
    const kit = await createTestBroker({ leaks: 'error' }, { readFile, openPort: () => Promise.reject(new Error()) });
    const replay = assert.rejects(kit.replay('traffic.jsonl'));
    const leak = /a replay of "traffic\.jsonl" was not awaited; made at .*kit\.test/;
    await assert.rejects(kit[Symbol.asyncDispose](), leak);
    end();
    await replay;
  });

  it('refuses an unknown value of leaks with OPTION_INVALID', async () => {
    await assert.rejects(createTestBroker({ leaks: 'throw' as never }), hasCode('OPTION_INVALID'));
  });
});

function next(client: mqtt.MqttClient, event: 'connect' | 'close'): Promise<void> {
  return new Promise((resolve) => client.once(event, () => resolve()));
}

describe('MQTT.js over a stream of the kit', () => {
  for (const protocolVersion of [4, 5] as const) {
    it(`publishes and receives at every QoS (protocol version ${protocolVersion})`, async () => {
      await using kit = await createTestBroker();
      const client = new mqtt.MqttClient(() => kit.stream(), {
        protocolVersion,
        clientId: 'js',
        keepalive: 0,
        reconnectPeriod: 0
      });
      await next(client, 'connect');
      const got: string[] = [];
      client.on('message', (topic, payload) => got.push(`${topic} ${payload}`));
      await client.subscribeAsync('t/#', { qos: 2 });
      for (const qos of [0, 1, 2] as const) await client.publishAsync(`t/${qos}`, 'x', { qos });
      await kit.clock.settle();
      assert.deepEqual(got, ['t/0 x', 't/1 x', 't/2 x']);
      assert.equal(kit.packets('js')[0].cmd, 'connect');
      await client.endAsync();
    });
  }

  it('keeps the connection alive in virtual time with the timers of the kit', async () => {
    await using kit = await createTestBroker();
    const client = new mqtt.MqttClient(() => kit.stream(), {
      clientId: 'js',
      keepalive: 60,
      reconnectPeriod: 0,
      timerVariant: kit.mqttTimers
    });
    await next(client, 'connect');
    await kit.clock.advance('10m');
    assert.equal(client.connected, true);
    assert.ok(kit.packets('js').filter(({ cmd }) => cmd === 'pingreq').length >= 9);
    const closed = next(client, 'close');
    kit.link('js').cut();
    await closed;
    await client.endAsync(true);
  });

  it('sends what it has queued offline, at each QoS, when kit.reconnect lets it connect again', async () => {
    await using kit = await createTestBroker();
    const options = { clientId: 'js', keepalive: 0, reconnectPeriod: 0 };
    const client = new mqtt.MqttClient(() => kit.stream(), options);
    await next(client, 'connect');
    await kit.reconnect(client); // no effect
    kit.link('js').cut();
    await next(client, 'close');
    const got: string[] = [];
    kit.broker.subscribe('t/#', ({ topic, payload }) => got.push(`${topic} ${payload}`));
    kit.isReachable = false;
    await assert.rejects(kit.reconnect(client), { code: 'ECONNREFUSED' });
    kit.isReachable = true;
    kit.refuseNext(0x88);
    await assert.rejects(kit.reconnect(client), /Connection refused/);
    const sent = ([0, 1, 2] as const).map((qos) => client.publishAsync(`t/${qos}`, 'offline', { qos }));
    await kit.reconnect(client);
    assert.deepEqual(got.sort(), ['t/0 offline', 't/1 offline', 't/2 offline']);
    await Promise.all(sent);
    assert.equal(kit.packets('js').filter(({ cmd }) => cmd === 'connect').length, 3);
    await client.endAsync();
    await kit.reconnect(client);
    assert.equal(client.connected, true);
    kit.broker.unsubscribe('t/#');
    await client.endAsync();
  });
});
