import assert from 'node:assert/strict';
import { PassThrough, Writable } from 'node:stream';
import { describe, it } from 'node:test';
import { connectAsync } from 'mqtt';
import { listen, ws } from '../../adapters/net/index.ts';
import { engineOf } from '../../lib/broker/broker.ts';
import { type Broker, createBroker, memoryStore, type TraceOptions, type TraceRecord } from '../../lib/index.ts';
import { shownUsername } from '../../lib/records/shown-username.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';
import { turns } from '../support/wire.ts';

/** Starts a trace that collects its lines. */
function collect(broker: Broker, options: Omit<TraceOptions, 'to'>) {
  const records: TraceRecord[] = [];
  const trace = broker.trace({ ...options, to: (record) => records.push(record) });
  return { trace, records };
}

/** Direction or event, client, and the other fields that the test examines. */
function brief(records: readonly TraceRecord[], ...fields: string[]): string[] {
  return records.map(({ direction, packet, event, clientId, ...rest }) => {
    const what = event ?? `${direction} ${packet}`;
    return [what, clientId ?? '-', ...fields.map((field) => rest[field])].join(' ');
  });
}

describe('a trace of a client', () => {
  it('contains the packets and events of the client, without the password', async () => {
    await using kit = await createTestBroker();
    const { records, trace } = collect(kit.broker, { clientId: 'c' });
    const client = await kit.connect({
      clientId: 'c',
      username: 'ann',
      password: 'top secret',
      protocolVersion: 5,
      will: { topic: 'gone', payload: 'will text', qos: 1 },
      transportInfo: { remoteAddress: '192.0.2.1', remotePort: 4711 }
    });
    const other = await kit.connect({ clientId: 'other' });
    await client.subscribe('a/+', { qos: 1 });
    await other.publish('a/b', 'hello', { qos: 1 });
    await kit.clock.settle();
    await client.disconnect();
    await other.disconnect();
    assert.deepEqual(brief(records), [
      'in connect c',
      'session.created c',
      'out connack c',
      'client.connected c',
      'in subscribe c',
      'session.subscribed c',
      'out suback c',
      'out publish c',
      'message.delivered c',
      'in puback c',
      'message.acked c',
      'in disconnect c',
      'client.disconnected c',
      'session.terminated c',
      'connection.closed c'
    ]);
    const [connect] = records;
    assert.equal(connect.time, new Date(trace.startedAt).toISOString());
    assert.deepEqual([connect.username, connect.address, connect.hasPassword], ['ann', '192.0.2.1:4711', true]);
    const will = { topic: 'gone', qos: 1, retain: false, payload: 'will text', payloadBytes: 9 };
    assert.deepEqual(JSON.parse(JSON.stringify(connect.will)), will);
    const sent = records[7];
    assert.deepEqual([sent.topic, sent.qos, sent.packetId, sent.payload], ['a/b', 1, 1, 'hello']);
    assert.equal(records[8].publisher, 'other');
    assert.doesNotMatch(JSON.stringify(records), /top secret/);
    assert.equal(trace.lines, records.length);
  });

  it('contains the events of the messages that the client publishes', async () => {
    await using kit = await createTestBroker({
      hooks: { authorizePublish: ({ message }) => message.topic !== 'forbidden' }
    });
    const near = await kit.connect({ clientId: 'near' });
    await near.subscribe('a');
    const away = await kit.connect({ clientId: 'away', clean: false, protocolVersion: 5, sessionExpiry: 100 });
    await away.subscribe('a', { qos: 1 });
    await away.disconnect();
    const { records } = collect(kit.broker, { clientId: 'c' });
    const client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    records.length = 0;
    await client.publish('a', 'x', { qos: 1 });
    await client.publish('forbidden', 'y', { qos: 1 }).catch(() => {});
    await client.publish('unheard', 'z');
    await kit.clock.settle();
    assert.deepEqual(brief(records, 'topic', 'reason'), [
      'in publish c a ',
      'message.publish c a ',
      'message.delivered near a ',
      'message.queued away a ',
      'out puback c  ',
      'in publish c forbidden ',
      'message.dropped c forbidden not_authorized',
      'out puback c  ',
      'in publish c unheard ',
      'message.publish c unheard ',
      'message.dropped c unheard no_subscribers'
    ]);
    assert.deepEqual(
      records.filter(({ packet }) => packet === 'puback').map(({ reasonCode }) => reasonCode),
      [0, 0x87]
    );
  });

  it('contains a refused CONNECT and a takeover', async () => {
    await using kit = await createTestBroker({
      hooks: { authenticate: ({ password }) => password?.toString() === 'right' }
    });
    const { records } = collect(kit.broker, { clientId: 'c' });
    await assert.rejects(kit.connect({ clientId: 'c', username: 'u', password: 'wrong', protocolVersion: 5 }));
    const refusal = records.find(({ packet }) => packet === 'connack');
    assert.equal(refusal?.reasonCode, 0x86);
    records.length = 0;
    const login = { clientId: 'c', username: 'u', password: 'right', protocolVersion: 5 } as const;
    const first = await kit.connect(login);
    first.on('error', () => {});
    const second = await kit.connect(login);
    assert.ok(records.some(({ event }) => event === 'session.discarded'));
    assert.ok(records.some(({ packet, reasonCode }) => packet === 'disconnect' && reasonCode === 0x8e));
    await second.disconnect();
    assert.doesNotMatch(JSON.stringify(records), /wrong|right/);
  });

  /** The line of a packet that the broker refuses. */
  async function refused(bytes: Buffer, options: { payload?: 'none'; maxPayloadBytes?: number } = {}) {
    await using kit = await createTestBroker();
    const { records } = collect(kit.broker, { clientId: 'c', ...options });
    const client = await rawClient(kit.broker, { clientId: 'c' });
    client.stream.write(bytes);
    await kit.clock.settle();
    return records.find(({ error }) => error !== undefined);
  }

  it('contains the bytes of a packet that the broker refuses in hexadecimal, with the reason', async () => {
    const faulty = await refused(Buffer.from([0x82, 2, 0, 1]));
    assert.deepEqual(
      [faulty?.packet, faulty?.bytes, faulty?.protocolVersion, faulty?.hex],
      ['subscribe', 4, 5, '82020001']
    );
    assert.match(String(faulty?.error), /properties|body|ends/i);
  });

  it('contains no more bytes of a refused packet than maxPayloadBytes, and none with payload: none', async () => {
    const bytes = Buffer.from('3006000361232f00', 'hex');
    assert.equal((await refused(bytes, { maxPayloadBytes: 3 }))?.hex, '300600');
    const without = await refused(bytes, { payload: 'none' });
    assert.deepEqual([without?.packet, without?.bytes, without?.hex], ['publish', 8, undefined]);
  });

  it('contains no bytes of a refused CONNECT or AUTH, which may have passwords', async () => {
    for (const first of [0x10, 0xf0]) {
      const faulty = await refused(Buffer.from([first, 3, 0xff, 0xff, 0xff]));
      assert.deepEqual([faulty?.bytes, faulty?.hex], [5, undefined]);
    }
  });

  it('omits authentication data and user names that are tokens', async () => {
    await using kit = await createTestBroker({
      hooks: {
        authenticate: ({ round }) => (round === 0 ? { challenge: Buffer.from('challenge-secret') } : { allow: true })
      }
    });
    const { records } = collect(kit.broker, { topic: undefined, clientId: 'c' });
    const client = await rawClient(kit.broker, { clientId: 'c', connect: false });
    client.send({
      cmd: 'connect',
      protocolVersion: 5,
      bridge: false,
      clientId: 'c',
      clean: true,
      keepalive: 0,
      username: 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJzZWNyZXQifQ.c2VjcmV0',
      properties: { authenticationMethod: 'x', authenticationData: Buffer.from('first-secret') }
    });
    await client.next('auth');
    client.send({
      cmd: 'auth',
      reasonCode: 0x18,
      properties: { authenticationMethod: 'x', authenticationData: Buffer.from('second-secret') }
    });
    await client.next('connack');
    assert.equal(records[0].username, '(token)');
    assert.equal((records[0].properties as { authenticationMethod: string }).authenticationMethod, 'x');
    assert.deepEqual(
      records.filter(({ packet }) => packet !== undefined).map(({ packet }) => packet),
      ['connect', 'auth', 'auth', 'connack']
    );
    client.stream.destroy();
    const text = JSON.stringify(records);
    assert.doesNotMatch(text, /secret|eyJ/);
    assert.ok(!text.includes(Buffer.from('first-secret').toString('hex')));
  });
});

describe('the user name in a trace', () => {
  it('replaces a JSON Web Token, signed or encrypted, also after Bearer, by (token)', () => {
    const signed = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2Vj';
    const encrypted = 'eyJhbGciOiJkaXIifQ..aXY.Y2lwaGVy.dGFn';
    for (const token of [signed, encrypted])
      for (const name of [token, `Bearer ${token}`, `bearer  ${token}`, ` ${token}\n`])
        assert.equal(shownUsername(name), '(token)', name);
    for (const name of ['ann', 'Bearer ann', 'eyJ.a', 'eyJ.a.b.c', `${encrypted}.x`, `my ${signed}`])
      assert.equal(shownUsername(name), name);
    assert.equal(shownUsername(undefined), undefined);
  });
});

describe('a trace of a topic', () => {
  it('contains messages of the fast path, retained messages and those of an offline queue', async () => {
    await using kit = await createTestBroker({ store: memoryStore() });
    const away = { clientId: 'away', clean: false, protocolVersion: 5, sessionExpiry: 100 } as const;
    const queue = await kit.connect(away);
    await queue.subscribe('q/#', { qos: 1 });
    await queue.disconnect();
    const receivers = await Promise.all(['r1', 'r2'].map((clientId) => kit.connect({ clientId })));
    for (const receiver of receivers) await receiver.subscribe('#');
    const sender = await rawClient(kit.broker, { clientId: 's', version: 4 });
    const publish = (topic: string, qos: 0 | 1, retain = false) =>
      sender.send({
        cmd: 'publish',
        topic,
        payload: Buffer.from(topic),
        qos,
        dup: false,
        retain,
        messageId: qos || undefined
      });
    publish('q/before', 0);
    await kit.clock.settle();
    const { records, trace } = collect(kit.broker, { topic: 'q/+' });
    for (let n = 0; n < 3; n++) publish('q/fast', 0);
    publish('other', 0);
    publish('q/kept', 1, true);
    await kit.clock.settle();
    const late = await kit.connect({ clientId: 'late' });
    await late.subscribe('q/kept');
    const back = await kit.connect(away);
    await kit.clock.settle();
    const of = (topic: string) => brief(records.filter((record) => record.topic === topic));
    const fanOut = ['out publish r1', 'message.delivered r1', 'out publish r2', 'message.delivered r2'];
    assert.deepEqual(
      of('q/fast').filter((line) => !line.includes('away')),
      Array.from({ length: 3 }, () => ['in publish s', 'message.publish s', ...fanOut]).flat()
    );
    assert.deepEqual(of('other'), []);
    assert.deepEqual(of('q/kept').toSorted(), [
      'in publish s',
      'message.acked away',
      'message.delivered away',
      'message.delivered late',
      'message.delivered r1',
      'message.delivered r2',
      'message.publish s',
      'message.queued away',
      'out publish away',
      'out publish late',
      'out publish r1',
      'out publish r2'
    ]);
    const toLate = records.find(({ clientId, direction }) => clientId === 'late' && direction === 'out');
    assert.equal(toLate?.retain, true);
    trace.stop();
    const { length } = records;
    publish('q/fast', 0);
    await kit.clock.settle();
    assert.equal(records.length, length);
    for (const client of [back, late, ...receivers]) await client.disconnect();
    sender.stream.destroy();
  });

  it('closes the fast path only while it is active', async () => {
    await using kit = await createTestBroker();
    const { hooks } = engineOf(kit.broker).publishing;
    assert.equal(hooks.isFastPathOpen, true);
    const { trace } = collect(kit.broker, { topic: 'a' });
    assert.equal(hooks.isFastPathOpen, false);
    trace.stop();
    assert.equal(hooks.isFastPathOpen, true);
    assert.equal(engineOf(kit.broker).services.taps.isOpen, false);
    assert.equal(engineOf(kit.broker).services.events.heard['message.publish'], false);
  });

  it('shows the topics of topic aliases and mount points', async () => {
    await using kit = await createTestBroker({ outboundAliasAfter: 1, maxTopicAlias: 5 } as never);
    const receiver = await rawClient(kit.broker, { clientId: 'r', properties: { topicAliasMaximum: 2 } });
    receiver.send({
      cmd: 'subscribe',
      messageId: 1,
      subscriptions: [{ topic: 'm/t', qos: 0, noLocal: false, retainAsPublished: false, retainHandling: 0 }]
    });
    await receiver.next('suback');
    const sender = await rawClient(kit.broker, { clientId: 's', meta: { mountpoint: 'm/' } });
    const send = (topic: string) =>
      sender.send({
        cmd: 'publish',
        topic,
        payload: Buffer.from('x'),
        qos: 0,
        dup: false,
        retain: false,
        properties: { topicAlias: 1 }
      });
    send('t');
    await kit.clock.settle();
    const { records } = collect(kit.broker, { topic: 'm/t' });
    send('');
    await kit.clock.settle();
    assert.deepEqual(brief(records, 'topic'), [
      'in publish s t',
      'message.publish s m/t',
      'out publish r m/t',
      'message.delivered r m/t'
    ]);
    receiver.stream.destroy();
    sender.stream.destroy();
  });

  it('contains messages of the app and of WebSocket clients', async () => {
    const broker = await createBroker().start();
    const listener = await listen(broker, ws({ port: 0 }));
    const { records } = collect(broker, { topic: 'web/#' });
    const client = await connectAsync(`ws://127.0.0.1:${listener.port}/mqtt`, { clientId: 'web' });
    await client.subscribeAsync('web/in');
    const received = new Promise((resolve) => client.once('message', resolve));
    await broker.publish('web/in', 'from the app');
    await received;
    await client.publishAsync('web/out', 'from the page', { qos: 1 });
    await client.endAsync();
    await broker.stop();
    assert.deepEqual(brief(records, 'topic', 'payload'), [
      'message.publish - web/in from the app',
      'out publish web web/in from the app',
      'message.delivered web web/in from the app',
      'in publish web web/out from the page',
      'message.publish web web/out from the page',
      'message.dropped web web/out from the page'
    ]);
    assert.match(String(records[1].address), /^127\.0\.0\.1:\d+$/);
  });
});

describe('a trace of an address', () => {
  it('contains the clients of the network, and no others', async () => {
    await using kit = await createTestBroker();
    const { records } = collect(kit.broker, { address: '10.1.0.0/16' });
    const at = (clientId: string, remoteAddress: string | undefined) =>
      kit.connect({ clientId, transportInfo: { remoteAddress } });
    await at('in', '10.1.2.3');
    await at('out', '10.2.0.1');
    await at('six', '::1');
    await at('none', undefined);
    assert.deepEqual([...new Set(records.map(({ clientId }) => clientId))], ['in']);
  });

  it('combines the address with client id and topic', async () => {
    await using kit = await createTestBroker();
    const { records } = collect(kit.broker, { address: '10.1.2.3', clientId: 'a', topic: 't' });
    for (const [clientId, remoteAddress] of [
      ['a', '10.1.2.3'],
      ['b', '10.1.2.3'],
      ['c', '10.1.2.4']
    ]) {
      const client = await kit.connect({ clientId, transportInfo: { remoteAddress } });
      await client.publish('t', clientId);
      await client.publish('u', clientId);
    }
    assert.deepEqual(brief(records), ['in publish a', 'message.publish a', 'message.dropped a']);
  });
});

describe('payloads in a trace', () => {
  const bytes = Buffer.from([0xff, 0, 1]);
  const cases: readonly [Omit<TraceOptions, 'to' | 'topic'>, Buffer | string, object][] = [
    [{}, 'grüße', { payload: 'grüße', payloadBytes: 7 }],
    [{ maxPayloadBytes: 3 }, 'grüße', { payload: 'gr', payloadBytes: 7 }],
    [{}, bytes, { payloadHex: 'ff0001', payloadBytes: 3 }],
    [{ payload: 'hex', maxPayloadBytes: 2 }, 'abc', { payloadHex: '6162', payloadBytes: 3 }],
    [{ payload: 'base64' }, bytes, { payloadBase64: '/wAB', payloadBytes: 3 }],
    [{ payload: 'none' }, 'secret', { payloadBytes: 6 }],
    [{ maxPayloadBytes: 0 }, 'abc', { payload: '', payloadBytes: 3 }],
    [{}, '', { payload: '', payloadBytes: 0 }]
  ];
  for (const [options, payload, expected] of cases)
    it(`writes a payload as ${JSON.stringify(expected)} with ${JSON.stringify(options)}`, async () => {
      await using kit = await createTestBroker();
      const { records } = collect(kit.broker, { ...options, topic: 't' });
      await kit.broker.publish('t', payload);
      const written = Object.entries(records[0]).filter(([name]) => name.startsWith('payload'));
      assert.deepEqual(Object.fromEntries(written), expected);
    });
});

describe('the stream of a trace', () => {
  it('receives one line of JSON for each packet and event, and ends with the trace', async () => {
    await using kit = await createTestBroker();
    const to = new PassThrough();
    const trace = kit.broker.trace({ topic: 't', to });
    await kit.broker.publish('t', 'line\nfeed');
    trace.stop();
    const text = (await to.toArray()).join('');
    const lines = text.trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).event),
      ['message.publish', 'message.dropped']
    );
    assert.deepEqual([trace.lines, trace.bytes, trace.dropped], [2, Buffer.byteLength(text), 0]);
    assert.equal(trace.endReason, 'stopped');
  });

  it('receives the lines of a turn in the next one, so that no packet waits for them', async () => {
    await using kit = await createTestBroker();
    const written: string[] = [];
    const to = new Writable({
      write(chunk, _encoding, done) {
        written.push(String(chunk));
        done();
      }
    });
    const trace = kit.broker.trace({ topic: 't', to });
    await kit.broker.publish('t', 'x');
    assert.deepEqual(written, []);
    await kit.clock.settle();
    assert.equal(written.length, 2);
    await kit.broker.publish('t', 'x');
    assert.equal(trace.lines, 4);
    assert.equal(trace.bytes, written.join('').length);
  });

  it('receives the number of lines that were dropped in a turn with the first line of a later one', async () => {
    await using kit = await createTestBroker();
    const to = new PassThrough();
    const trace = kit.broker.trace({ topic: 't', to, maxBufferedBytes: 1_024 });
    for (let n = 0; n < 10; n++) await kit.broker.publish('t', 'x'.repeat(300));
    await kit.clock.settle();
    await kit.broker.publish('t', 'y');
    trace.stop();
    const records = (await to.toArray())
      .join('')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const dropped = records.map(({ droppedBefore = 0 }) => droppedBefore);
    assert.equal(
      dropped.reduce((sum, count) => sum + count),
      trace.dropped
    );
    assert.equal(records.length + trace.dropped, 22);
    assert.equal(records.find(({ droppedBefore }) => droppedBefore !== undefined)?.payload, 'y');
  });

  it('stays open with end: false, without listeners of the trace', async () => {
    await using kit = await createTestBroker();
    const to = new PassThrough();
    const trace = kit.broker.trace({ topic: 't', to, end: false });
    await kit.broker.publish('t', 'x');
    await kit.clock.settle();
    trace.stop();
    assert.equal(to.writable, true);
    assert.deepEqual([to.listenerCount('error'), to.listenerCount('close')], [0, 0]);
  });

  it('keeps a listener for errors until the last line is written, if the trace stops before that', async () => {
    await using kit = await createTestBroker();
    const waiting: (() => void)[] = [];
    const to = new Writable({ write: (_chunk, _encoding, done) => void waiting.push(done) });
    const trace = kit.broker.trace({ topic: 't', to, end: false });
    await kit.broker.publish('t', 'x');
    trace.stop();
    const counts: number[] = [];
    for (let line = 0; line < trace.lines; line++) {
      counts.push(to.listenerCount('error'));
      waiting.shift()?.();
      await kit.clock.settle();
    }
    assert.deepEqual(counts, [1, 1]);
    assert.deepEqual([to.writableLength, to.listenerCount('error'), to.listenerCount('close')], [0, 0, 0]);
  });

  it('gets no more than maxBufferedBytes while it is slow; further lines are dropped and counted', async () => {
    await using kit = await createTestBroker();
    const waiting: (() => void)[] = [];
    const written: string[] = [];
    const to = new Writable({
      write(chunk, _encoding, done) {
        written.push(String(chunk));
        waiting.push(done);
      }
    });
    const trace = kit.broker.trace({ topic: 't', to, maxBufferedBytes: 4_096 });
    for (let n = 0; n < 1_000; n++) await kit.broker.publish('t', 'x'.repeat(100));
    assert.ok(to.writableLength <= 4_096, `${to.writableLength} bytes`);
    assert.equal(trace.lines + trace.dropped, 2_000);
    assert.ok(trace.dropped > 1_900);
    const { dropped } = trace;
    while (waiting.length > 0) {
      waiting.shift()?.();
      await kit.clock.settle();
    }
    await kit.broker.publish('t', 'last');
    await kit.clock.settle();
    while (waiting.length > 0) {
      waiting.shift()?.();
      await kit.clock.settle();
    }
    const records = written.map((line) => JSON.parse(line));
    assert.equal(records.find(({ droppedBefore }) => droppedBefore !== undefined)?.droppedBefore, dropped);
    assert.equal(records.length, trace.lines);
    assert.equal(trace.dropped, dropped);
  });

  it('ends the trace with an error event when it fails', async () => {
    await using kit = await createTestBroker();
    const errors: string[] = [];
    kit.broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    const to = new Writable({ write: (_chunk, _encoding, done) => done(new Error('disk full')) });
    const trace = kit.broker.trace({ topic: 't', to });
    await kit.broker.publish('t', 'x');
    await kit.clock.settle();
    assert.equal(trace.endReason, 'error');
    assert.deepEqual(errors, ['trace 1: disk full']);
    assert.deepEqual(kit.broker.traces.list(), []);
    await kit.broker.publish('t', 'x');
    assert.deepEqual(errors.length, 1);
  });

  it('ignores an error of the stream after the trace has stopped', async () => {
    await using kit = await createTestBroker();
    let fail: ((error: Error) => void) | undefined;
    const to = new Writable({
      write: (_chunk, _encoding, done) => {
        fail = done;
      }
    });
    const trace = kit.broker.trace({ topic: 't', to, end: false });
    await kit.broker.publish('t', 'x');
    trace.stop();
    fail?.(new Error('too late'));
    await kit.clock.settle();
    assert.equal(trace.endReason, 'stopped');
  });

  it('receives 30 traces without a warning about its listeners', async () => {
    await using kit = await createTestBroker();
    const to = new PassThrough().resume();
    const traces = Array.from({ length: 30 }, (_, at) => kit.broker.trace({ clientId: `c${at}`, to, end: false }));
    for (const name of ['error', 'close']) assert.ok(to.listenerCount(name) <= 3, name);
    traces.pop()?.stop();
    to.destroy(new Error('broken'));
    kit.broker.on('error', () => undefined);
    await kit.clock.settle();
    assert.ok(traces.every(({ endReason }) => endReason === 'error'));
  });

  it('ends the trace when it is closed by its owner', async () => {
    await using kit = await createTestBroker();
    for (const close of ['end', 'destroy'] as const) {
      const to = new PassThrough().resume();
      const trace = kit.broker.trace({ topic: 't', to });
      to[close]();
      await kit.broker.publish('t', 'x');
      await kit.clock.settle();
      assert.equal(trace.endReason, 'closed');
    }
  });
});

describe('the function of a trace', () => {
  it('ends the trace with an error event if it throws or rejects, and affects nothing else', async () => {
    await using kit = await createTestBroker();
    const errors: string[] = [];
    kit.broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    const throwing = kit.broker.trace({
      topic: '#',
      to: () => {
        throw new Error('thrown');
      }
    });
    const rejecting = kit.broker.trace({ topic: '#', to: async () => Promise.reject(new Error('rejected')) });
    const { records } = collect(kit.broker, { topic: '#' });
    const client = await kit.connect({ clientId: 'c' });
    await client.publish('t', 'x', { qos: 1 });
    await kit.clock.settle();
    assert.deepEqual([throwing.endReason, rejecting.endReason], ['error', 'error']);
    assert.deepEqual(errors.toSorted(), ['trace 1: thrown', 'trace 2: rejected']);
    assert.equal(records.length, 3);
  });
});

describe('the function of a trace that returns promises', () => {
  it('receives no more than maxBufferedBytes while its promises are pending, even if it publishes what the trace selects', async () => {
    await using kit = await createTestBroker();
    let isOpen = true;
    const trace = kit.broker.trace({
      topic: '#',
      maxBufferedBytes: 1_024,
      to: async () => {
        await Promise.resolve();
        if (isOpen) for (let n = 0; n < 2; n++) await kit.broker.publish('t', 'x');
        return new Promise((resolve) => setImmediate(resolve));
      }
    });
    await kit.broker.publish('t', 'x');
    await turns(50);
    isOpen = false;
    await turns(5);
    assert.equal(trace.endReason, undefined);
    assert.ok(trace.dropped > 0 && trace.lines < 2_000, `${trace.lines} lines, ${trace.dropped} dropped`);
  });
});

describe('traces', () => {
  it('lists traces until they are stopped by id, by time or with the broker', async () => {
    await using kit = await createTestBroker();
    const { traces } = kit.broker;
    const one = collect(kit.broker, { clientId: 'a' }).trace;
    const two = collect(kit.broker, { address: '::1', durationMs: '5s' }).trace;
    const three = collect(kit.broker, { topic: 't' }).trace;
    assert.deepEqual(traces.list(), [one, two, three]);
    assert.deepEqual([one.clientId, two.address, three.topic], ['a', '::1', 't']);
    assert.equal(traces.get(one.id), one);
    assert.equal(traces.stop(one.id), true);
    assert.equal(traces.stop(one.id), false);
    one.stop();
    await kit.clock.advance('4s');
    assert.equal(two.endReason, undefined);
    await kit.clock.advance('2s');
    assert.equal(two.endReason, 'duration');
    assert.deepEqual(traces.list(), [three]);
    await kit.broker.stop();
    assert.equal(three.endReason, 'broker_stopped');
  });

  it('refuses more than 30 traces', async () => {
    await using kit = await createTestBroker();
    for (let n = 0; n < 30; n++) collect(kit.broker, { topic: 't' });
    assert.throws(() => collect(kit.broker, { topic: 't' }), { code: 'TOO_MANY_TRACES' });
  });

  it('refuses options that are missing or invalid', async () => {
    await using kit = await createTestBroker();
    const to = () => {};
    const cases: readonly [unknown, string][] = [
      [undefined, 'OPTION_INVALID'],
      [{ to }, 'OPTION_MISSING'],
      [{ topic: 'a' }, 'OPTION_INVALID'],
      [{ topic: 'a', to: 'file' }, 'OPTION_INVALID'],
      [{ topic: 'a', to: new PassThrough().destroy() }, 'OPTION_INVALID'],
      [{ topic: 'a/#/b', to }, 'TOPIC_FILTER_INVALID'],
      [{ topic: '$share/g/a', to }, 'TOPIC_FILTER_INVALID'],
      [{ topic: 7, to }, 'OPTION_INVALID'],
      [{ clientId: '', to }, 'OPTION_INVALID'],
      [{ address: 'localhost', to }, 'OPTION_INVALID'],
      [{ address: '10.0.0.0/33', to }, 'OPTION_INVALID'],
      [{ topic: 'a', to, durationMs: 0 }, 'OPTION_INVALID'],
      [{ topic: 'a', to, payload: 'all' }, 'OPTION_INVALID'],
      [{ topic: 'a', to, end: 1 }, 'OPTION_INVALID'],
      [{ topics: 'a', to }, 'OPTION_UNKNOWN']
    ];
    for (const [options, code] of cases)
      assert.throws(() => kit.broker.trace(options as TraceOptions), { code }, JSON.stringify(options));
    assert.deepEqual(kit.broker.traces.list(), []);
  });
});
