import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import { EVENT_NAMES, type EventName } from '../../lib/events/catalogue.ts';
import type { BrokerEvents } from '../../lib/events/event-types.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import {
  connect,
  granted,
  nothing,
  publish,
  refused,
  refusedConnect,
  rest,
  startBroker,
  subscribe,
  turns,
  unsubscribe
} from '../support/wire.ts';

/** Formats one event as a line: its name, its client and its other fields. */
function line<E extends EventName>(name: E, value: BrokerEvents[E]): string {
  const { client, message, error, ...more } = value as {
    client?: { clientId: string };
    message?: { topic: string };
    error?: Error;
  } & Record<string, unknown>;
  const parts = [
    client?.clientId ?? '-',
    message?.topic ?? '',
    error?.message ?? '',
    ...Object.entries(more).map(([key, part]) => `${key}=${typeof part === 'object' ? JSON.stringify(part) : part}`)
  ];
  return [name, ...parts.filter((part) => part !== '')].join(' ');
}

/** All events but `connection.closed`, which comes before or after `client.disconnected`. */
const ORDERED = EVENT_NAMES.filter((name) => name !== 'connection.closed');

/** Collects every event of the broker as lines in order. */
function listening(broker: Broker, names: readonly EventName[] = ORDERED): string[] {
  const lines: string[] = [];
  for (const name of names) broker.on(name, (value) => void lines.push(line(name, value)));
  return lines;
}

/** Returns the events since the last call. */
function takeLines(lines: string[]): string[] {
  return lines.splice(0);
}

async function gone(client: RawClient): Promise<void> {
  client.stream.destroy();
  await turns();
}

const WILL = { topic: 'will', payload: Buffer.from('gone'), qos: 0 as const, retain: false };

describe('Events', () => {
  it('reports the life of a client in order', async () => {
    await using broker = await startBroker();
    const lines = listening(broker);
    const client = await rawClient(broker, { clientId: 'c' });
    assert.deepEqual(takeLines(lines), [
      'client.connect c',
      'session.created c',
      'client.connack c reasonCode=0 why=undefined',
      'client.connected c sessionPresent=false'
    ]);
    client.send({ cmd: 'disconnect', reasonCode: 0 });
    await client.closed();
    await turns();
    assert.deepEqual(takeLines(lines), [
      'client.disconnected c reason=normal reasonCode=0',
      'session.terminated c reason=normal'
    ]);
  });

  it('reports a session that outlives its connection, is resumed, taken over, discarded and expires', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({ clock });
    const lines = listening(broker);
    const properties = { sessionExpiryInterval: 60 };
    const come = (clean: boolean) => rawClient(broker, { clientId: 'c', clean, properties });
    await gone(await come(true));
    assert.deepEqual(takeLines(lines).slice(4), ['client.disconnected c reason=closed reasonCode=128']);
    const second = await come(false);
    assert.deepEqual(takeLines(lines), [
      'client.connect c',
      'session.resumed c',
      'client.connack c reasonCode=0 why=undefined',
      'client.connected c sessionPresent=true'
    ]);
    const third = await come(false);
    await refused(second, 0x8e);
    assert.deepEqual(takeLines(lines), [
      'client.connect c',
      'session.takenover c',
      'client.disconnected c reason=takeovered reasonCode=142',
      'session.resumed c',
      'client.connack c reasonCode=0 why=undefined',
      'client.connected c sessionPresent=true'
    ]);
    const fourth = await come(true);
    await refused(third, 0x8e);
    assert.deepEqual(takeLines(lines), [
      'client.connect c',
      'session.discarded c',
      'client.disconnected c reason=discarded reasonCode=142',
      'session.terminated c reason=discarded',
      'session.created c',
      'client.connack c reasonCode=0 why=undefined',
      'client.connected c sessionPresent=false'
    ]);
    await gone(fourth);
    takeLines(lines);
    await clock.advance('60s');
    assert.deepEqual(takeLines(lines), ['session.terminated c reason=expired']);
    await gone(await come(true));
    takeLines(lines);
    broker.sessions.get('c').discard();
    assert.deepEqual(takeLines(lines), ['session.terminated c reason=discarded']);
  });

  it('reports a refused CONNECT with client.rejected and client.connack', async () => {
    await using broker = await startBroker({ hooks: { authenticate: () => false } });
    const lines = listening(broker);
    await refusedConnect(broker, { clientId: 'c' });
    await turns();
    assert.deepEqual(takeLines(lines), [
      'client.connect c',
      'client.rejected c address=undefined reason=not_authorized reasonCode=135 why=a hook refuses the client',
      'client.connack c reasonCode=135 why=a hook refuses the client'
    ]);
    const bad = await rawClient(broker, { connect: false });
    bad.sendBytes('10 0d 0004 4d515454 05 03 0000 00 0000');
    await bad.closed();
    const [rejected, connack] = takeLines(lines); // the client id has not been read
    assert.match(rejected, /^client\.rejected .*reason=protocol_error reasonCode=129 why=connect flags/);
    assert.match(connack, /^client\.connack reasonCode=129 why=connect flags/);
  });

  it('reports why a connection ended', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({
      clock,
      maxPacketSize: 100,
      aclDenyAction: 'disconnect',
      hooks: {
        authorizePublish: () => false,
        authenticate: ({ isReauthentication }) => !isReauthentication
      }
    });
    const lines = listening(broker, ['client.disconnected']);
    const ends: [how: (client: RawClient) => unknown, expected: string][] = [
      [(client) => client.send({ cmd: 'disconnect', reasonCode: 4 }), 'reason=disconnect_with_will reasonCode=4'],
      [(client) => client.stream.destroy(), 'reason=closed reasonCode=128'],
      [(client) => client.stream.destroy(new Error('cut')), 'reason=stream_error reasonCode=128'],
      [() => clock.advance('15s'), 'reason=keepalive_timeout reasonCode=141'],
      [(client) => client.send(Buffer.from('0000', 'hex')), 'reason=protocol_error reasonCode=129'],
      [(client) => client.send(publish('a', 'x'.repeat(200))), 'reason=packet_too_large reasonCode=149'],
      [(client) => client.send(publish('a', 'x')), 'reason=not_authorized reasonCode=135'],
      [() => broker.sessions.get('c').kick(), 'reason=kicked reasonCode=152'],
      [
        (client) => client.send({ cmd: 'auth', reasonCode: 0x19, properties: { authenticationMethod: 'm' } }),
        'reason=reauthentication_failed reasonCode=135'
      ],
      [() => broker.stop({ timeoutMs: 100 }), 'reason=server_shutting_down reasonCode=139']
    ];
    for (const [end, expected] of ends) {
      const properties = { authenticationMethod: 'm' };
      const client = await rawClient(broker, { clientId: 'c', keepalive: 10, properties });
      await end(client);
      await turns();
      assert.deepEqual(takeLines(lines), [`client.disconnected c ${expected}`]);
    }
  });

  it('reports subscriptions: first the request, then the granted ones', async () => {
    await using broker = await startBroker({
      maxQosAllowed: 1,
      mountpoint: 'm/',
      rewrite: ['old/+ ^old/(.+)$ new/$1'],
      hooks: { authorizeSubscribe: ({ filter }) => filter !== 'secret' }
    });
    const client = await rawClient(broker, { clientId: 'c' });
    const lines = listening(broker);
    const options = (qos: number, id?: number) =>
      JSON.stringify({ qos, noLocal: false, retainAsPublished: false, retainHandling: 0, id });
    client.send(subscribe(1, [{ topic: 'old/x', qos: 2 }, 'secret', '$queue/'], { subscriptionIdentifier: [3] }));
    await client.next('suback');
    assert.deepEqual(takeLines(lines), [
      `client.subscribe c filter=old/x options=${options(2, 3)}`,
      'client.check_acl_complete c action=subscribe topic=new/x isAllowed=true isCached=false',
      `session.subscribed c filter=new/x requestedFilters=undefined options=${options(1, 3)}`,
      `client.subscribe c filter=secret options=${options(0, 3)}`,
      'client.check_acl_complete c action=subscribe topic=secret isAllowed=false isCached=false',
      `client.subscribe c filter=$queue/ options=${options(0, 3)}`,
      `client.suback c results=${JSON.stringify([
        { filter: 'old/x', options: JSON.parse(options(2, 3)), reasonCode: 1 },
        { filter: 'secret', options: JSON.parse(options(0, 3)), reasonCode: 135 },
        { filter: '$queue/', options: JSON.parse(options(0, 3)), reasonCode: 143 }
      ])}`
    ]);
    client.send(unsubscribe(2, 'old/x', 'never'));
    await client.next('unsuback');
    assert.deepEqual(takeLines(lines), [
      'client.unsubscribe c filter=old/x',
      `session.unsubscribed c filter=new/x requestedFilters=undefined options=${options(1, 3)}`,
      'client.unsubscribe c filter=never'
    ]);
    broker.sessions.get('c').subscribe('by/the/app', { qos: 1 });
    broker.sessions.get('c').unsubscribe('by/the/app');
    assert.deepEqual(takeLines(lines), [
      `session.subscribed c filter=by/the/app requestedFilters=undefined options=${options(1)}`,
      `session.unsubscribed c filter=by/the/app requestedFilters=undefined options=${options(1)}`
    ]);
  });

  it('reports a message: accepted, delivered, acknowledged', async () => {
    await using broker = await startBroker();
    const publisher = await rawClient(broker, { clientId: 'p' });
    const receiver = await rawClient(broker, { clientId: 'r' });
    await granted(receiver, 1, { topic: 'a', qos: 2, retainAsPublished: true });
    const lines = listening(broker, ['message.publish', 'message.delivered', 'message.acked', 'message.dropped']);
    for (const qos of [0, 1, 2] as const) {
      publisher.send(publish('a', 'x', { qos, messageId: qos === 0 ? undefined : 1, retain: qos === 1 }));
      const { messageId = 0 } = await receiver.next('publish');
      if (qos === 1) receiver.send({ cmd: 'puback', messageId, reasonCode: 0 });
      if (qos === 2) receiver.send({ cmd: 'pubrec', messageId, reasonCode: 0 });
      await rest(receiver);
      const expected = [`message.publish p a`, `message.delivered r a qos=${qos} retain=${qos === 1}`];
      assert.deepEqual(
        takeLines(lines),
        qos === 0 ? expected : [...expected, `message.acked r a qos=${qos} retain=${qos === 1}`]
      );
      if (qos === 2) {
        receiver.send({ cmd: 'pubcomp', messageId, reasonCode: 0 });
        await nothing(receiver);
        assert.deepEqual(takeLines(lines), []);
      }
    }
    await broker.publish('a', 'of the app');
    assert.deepEqual(takeLines(lines), ['message.publish - a', 'message.delivered r a qos=0 retain=false']);
  });

  it('reports why a message was dropped, and for which client', async () => {
    const clock = new VirtualClock();
    await using broker = await startBroker({
      clock,
      maxMqueueLen: 1,
      maxDelayedMessages: 1,
      mqueueStoreQos0: false,
      hooks: {
        deliver: ({ message }) => message.topic !== 'hook',
        authorizePublish: ({ message }) => message.topic !== 'secret'
      }
    });
    const lines = listening(broker, ['message.dropped']);
    const client = await rawClient(broker, {
      clientId: 'c',
      properties: { maximumPacketSize: 60, sessionExpiryInterval: 60 }
    });
    await broker.publish('unheard');
    assert.deepEqual(takeLines(lines), ['message.dropped - unheard reason=no_subscribers']);
    await granted(client, 1, [{ topic: 'own', noLocal: true }, { topic: 'hook' }, { topic: 'queue', qos: 1 }]);
    client.send(publish('own'));
    client.send(publish('hook'));
    client.send(publish('secret'));
    client.send(publish('queue', 'x'.repeat(30)));
    await rest(client);
    assert.deepEqual(takeLines(lines), [
      'message.dropped c own reason=no_local',
      'message.dropped c hook reason=hook',
      'message.dropped - secret reason=not_authorized'
    ]);
    await broker.publish('queue', 'x'.repeat(80));
    assert.deepEqual(takeLines(lines), ['message.dropped c queue reason=too_large']);
    await broker.publish('$delayed/5/later');
    await broker.publish('$delayed/5/later').catch(() => {});
    assert.deepEqual(takeLines(lines), ['message.dropped - $delayed/5/later reason=quota']);
    await gone(client);
    await broker.publish('queue', 'x');
    assert.deepEqual(takeLines(lines), ['message.dropped c queue reason=qos0_msg']);
    await broker.publish('queue', '1', { qos: 1, properties: { messageExpiryInterval: 2 } });
    await broker.publish('queue', '2', { qos: 1, properties: { messageExpiryInterval: 2 } });
    assert.deepEqual(takeLines(lines), ['message.dropped c queue reason=queue_full']);
    await clock.advance('3s');
    const again = await rawClient(broker, { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } });
    await nothing(again);
    assert.deepEqual(takeLines(lines), ['message.dropped c queue reason=expired']);
    await gone(again);
    await broker.publish('queue', '3', { qos: 1 });
    await clock.advance('60s');
    assert.deepEqual(takeLines(lines), [
      'message.dropped - later reason=no_subscribers',
      'message.dropped c queue reason=session_terminated'
    ]);
  });

  it('reports the will after the session has ended', async () => {
    await using broker = await startBroker();
    const watcher = await rawClient(broker, { clientId: 'w' });
    await granted(watcher, 1, 'will');
    const client = await rawClient(broker, { clientId: 'c', will: WILL });
    const lines = listening(broker);
    await gone(client);
    assert.deepEqual(takeLines(lines), [
      'client.disconnected c reason=closed reasonCode=128',
      'session.terminated c reason=closed',
      'client.check_acl_complete c action=publish topic=will isAllowed=true isCached=false',
      'message.publish c will',
      'message.delivered w will qos=0 retain=false'
    ]);
  });

  it('emits no events for $SYS messages', async () => {
    await using broker = await startBroker();
    const lines = listening(broker, ['message.publish', 'message.delivered', 'message.dropped']);
    const client = await rawClient(broker);
    await granted(client, 1, '$SYS/#');
    assert.ok((await rest(client)).length > 0);
    assert.deepEqual(takeLines(lines), []);
  });
});

describe('A listener', () => {
  it('disturbs nothing when it throws or rejects; the error event reports it', async () => {
    await using broker = await startBroker();
    const errors = listening(broker, ['error']);
    for (const name of EVENT_NAMES) {
      if (name === 'error') continue;
      broker.on(name, () => {
        throw new Error(`thrown by ${name}`);
      });
      broker.on(name, () => Promise.reject(new Error(`rejected by ${name}`)));
    }
    const client = await rawClient(broker, { clientId: 'c' });
    await granted(client, 1, { topic: 'a', qos: 1 });
    client.send(publish('a', 'x', { qos: 1, messageId: 1 }));
    const { messageId = 0 } = await client.next('publish');
    await client.next('puback');
    client.send({ cmd: 'puback', messageId, reasonCode: 0 });
    client.send(unsubscribe(2, 'a'));
    await client.next('unsuback');
    client.send({ cmd: 'disconnect', reasonCode: 0 });
    await client.closed();
    await turns();
    const heard = ['client.connect', 'session.created', 'client.connack', 'client.connected', 'client.subscribe'];
    for (const name of [...heard, 'message.publish', 'message.delivered', 'message.acked', 'session.terminated']) {
      for (const how of ['thrown', 'rejected'])
        assert.ok(errors.includes(`error - ${how} by ${name} during=a listener of ${name}`), `${how} by ${name}`);
    }
  });

  it('receives no further events after once, or after its removal', async () => {
    await using broker = await startBroker();
    const calls: string[] = [];
    const always = () => calls.push('always');
    broker.on('message.publish', always).once('message.publish', () => calls.push('once'));
    await broker.publish('a');
    await broker.publish('a');
    broker.off('message.publish', always);
    await broker.publish('a');
    assert.deepEqual(calls, ['always', 'once', 'always']);
  });

  it('can publish, subscribe, and disconnect clients in an event', async () => {
    await using broker = await startBroker();
    const bystander = await rawClient(broker, { clientId: 'bystander' });
    await granted(bystander, 1, 'echo');
    broker.on('message.publish', ({ message }) => {
      if (message.topic === 'a') void broker.publish('echo', message.payload);
    });
    broker.on('client.connected', ({ client }) => {
      if (client.clientId === 'unwanted') broker.sessions.get('unwanted').kick();
      else broker.sessions.get(client.clientId).subscribe('a');
    });
    const unwanted = await rawClient(broker, { connect: false });
    unwanted.send(connect(5, { clientId: 'unwanted' }));
    await refused(unwanted, 0x98);
    assert.deepEqual(
      unwanted.received.map(({ cmd }) => cmd),
      ['connack', 'disconnect']
    );
    assert.equal(broker.sessions.has('unwanted'), false);
    const client = await rawClient(broker, { clientId: 'c' });
    client.send(publish('a', 'x'));
    assert.equal((await client.next('publish')).topic, 'a');
    assert.equal((await bystander.next('publish')).topic, 'echo');
  });

  it('prevents CONNACK 0x00 when it disconnects the client in session.created or client.connack', async () => {
    for (const name of ['session.created', 'client.connack'] as const) {
      await using broker = await startBroker();
      let connections = 0;
      broker.on('client.connected', () => connections++);
      broker.on(name, ({ client }) => broker.sessions.get(client.clientId).kick());
      const client = await rawClient(broker, { connect: false });
      client.send(connect(5, { clientId: 'c' }));
      await client.closed();
      const packets = client.received.map((packet) => [packet.cmd, 'reasonCode' in packet && packet.reasonCode]);
      assert.deepEqual(packets, [['connack', 0x80]]); // no DISCONNECT before CONNACK [MQTT-3.14.0-1], and only one
      assert.equal(connections, 0);
      assert.equal(broker.sessions.has('c'), false);
    }
  });

  it('leaves retained messages for the next connection when it disconnects the client in session.subscribed', async () => {
    await using broker = await startBroker();
    for (const topic of ['a', 'b']) await broker.publish(topic, topic, { retain: true, qos: 1 });
    const options = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } };
    const client = await rawClient(broker, options);
    broker.once('session.subscribed', () => broker.sessions.get('c').kick({ session: 'keep' }));
    client.send(subscribe(1, { topic: 'a', qos: 1 }));
    await client.closed();
    const back = await rawClient(broker, options);
    assert.equal((await back.next('publish')).topic, 'a');
    assert.deepEqual(await granted(back, 2, { topic: 'b', qos: 1 }), [1]);
    assert.equal((await back.next('publish')).topic, 'b');
  });

  /** Returns what a second client with the id `c` receives, and what the first one receives, when a listener of this event kicks `c`. */
  async function kickedIn(name: EventName, how: { clean: boolean; isOffline?: boolean; reason?: string }) {
    await using broker = await startBroker();
    const watcher = await rawClient(broker);
    await granted(watcher, 1, 'will/+');
    const properties = { sessionExpiryInterval: 60 };
    const will = (of: string) => ({ topic: `will/${of}`, payload: Buffer.alloc(0), qos: 0 as const, retain: false });
    const first = await rawClient(broker, { clientId: 'c', clean: true, properties, will: will('first') });
    if (how.isOffline) await gone(first);
    await rest(watcher);
    const errors = listening(broker, ['error']);
    let kicks = 0;
    broker.on(name, (event) => {
      const { client, reason } = event as BrokerEvents['client.disconnected'];
      if (client?.clientId !== 'c' || (how.reason !== undefined && reason !== how.reason) || kicks++ > 0) return;
      broker.sessions.get('c').kick();
    });
    const second = await rawClient(broker, { connect: false });
    second.send(connect(5, { clientId: 'c', clean: how.clean, properties, will: will('second') }));
    await turns();
    assert.ok(kicks > 0);
    assert.deepEqual(errors, []);
    const words = (client: RawClient) =>
      client.received.map((packet) =>
        'reasonCode' in packet ? `${packet.cmd} 0x${packet.reasonCode.toString(16)}` : packet.cmd
      );
    const wills = (await rest(watcher)).map((packet) => (packet as { topic: string }).topic.slice(5));
    const { isClosed } = second;
    if (!isClosed) await rest(second); // the connection works
    return { first: words(first).slice(1), second: words(second), isClosed, has: broker.sessions.has('c'), wills };
  }

  it('kicks the current connection of the session in an event of a takeover, and every client receives an answer', async () => {
    const replaced = { second: ['connack 0x0', 'pingresp'], isClosed: false, has: true, wills: ['first'] };
    const ended = { second: ['connack 0x80'], isClosed: true, has: false, wills: ['first'] };
    const dropped = { ...ended, second: ['connack 0x0', 'disconnect 0x98'], wills: ['second', 'first'] };
    const takenOver = { first: ['disconnect 0x8e'] };
    const takeover = { clean: false };
    for (const [name, how, expected] of [
      ['client.connect', takeover, { ...replaced, first: ['disconnect 0x98'] }],
      ['session.takenover', takeover, { ...ended, ...takenOver }],
      ['client.disconnected', { ...takeover, reason: 'takeovered' }, { ...ended, ...takenOver }],
      ['session.resumed', takeover, { ...ended, ...takenOver }],
      ['client.connack', takeover, { ...ended, ...takenOver }],
      ['client.connected', takeover, { ...dropped, ...takenOver }],
      ['session.discarded', { clean: true }, { ...replaced, first: ['disconnect 0x98'] }],
      ['client.disconnected', { clean: true, reason: 'discarded' }, { ...replaced, ...takenOver }],
      ['session.created', { clean: true }, { ...ended, ...takenOver }],
      ['session.resumed', { clean: false, isOffline: true }, { ...ended, first: [], wills: [] }],
      ['session.discarded', { clean: true, isOffline: true }, { ...replaced, first: [], wills: [] }]
    ] as const) {
      assert.deepEqual(await kickedIn(name, how), expected, `${name} ${JSON.stringify(how)}`);
    }
  });

  it('ends the session if one of several kicks during its takeover ends it', async () => {
    await using broker = await startBroker();
    const come = () => rawClient(broker, { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } });
    await come();
    broker.on('session.takenover', () => broker.sessions.get('c').kick());
    broker.on('session.takenover', () => broker.sessions.get('c').kick({ session: 'keep' }));
    const second = await rawClient(broker, { connect: false });
    second.send(connect(5, { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } }));
    await turns();
    assert.deepEqual([second.isClosed, broker.sessions.has('c')], [true, false]);
  });

  it('refuses to discard a session during its takeover, and continues the takeover', async () => {
    for (const name of ['session.takenover', 'client.disconnected'] as const) {
      await using broker = await startBroker();
      const errors = listening(broker, ['error']);
      const come = () => rawClient(broker, { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 60 } });
      const first = await come();
      broker.on(name, () => broker.sessions.get('c').discard());
      const second = await come();
      await refused(first, 0x8e);
      await nothing(second);
      assert.equal(errors.length, 1);
      assert.match(errors[0], /is connected; disconnect it first/);
    }
  });

  it('receives the effective client id: the user name if the zone is configured so, or the assigned one', async () => {
    const ids: string[] = [];
    await using broker = await startBroker({
      zones: { named: { useUsernameAsClientid: true } },
      hooks: {
        preConnect: ({ client }) => void ids.push(client.clientId),
        authenticate: ({ client, username }) => {
          ids.push(client.clientId);
          return username === 'alias' ? { allow: true, username: 'real' } : true;
        }
      }
    });
    for (const name of ['client.connect', 'session.created', 'client.connack', 'client.connected'] as const)
      broker.on(name, ({ client }) => void ids.push(client.clientId));
    const meta = { zone: 'named' };
    await rawClient(broker, { clientId: 'c', username: 'u', meta });
    assert.deepEqual(ids.splice(0), Array(6).fill('u'));
    await rawClient(broker, { clientId: 'c', username: 'alias', meta });
    assert.deepEqual(ids.splice(0), [...Array(3).fill('alias'), ...Array(3).fill('real')]);
    assert.equal(broker.sessions.has('real'), true);
    const { connack } = await rawClient(broker, { clientId: '' });
    assert.deepEqual(ids.splice(0), Array(6).fill(connack?.properties?.assignedClientIdentifier));
  });

  it('names the client in whose name the app publishes, which gives the message no rights', async () => {
    await using broker = await startBroker();
    const seen: [string, unknown][] = [];
    broker.on('message.publish', ({ message, client }) => void seen.push([message.clientId, client]));
    broker.hook('authorizePublish', () => false);
    await broker.publish('a', 'x', { clientId: 'device' });
    await broker.publish({ topic: 'a', payload: 'x' });
    assert.deepEqual(seen, [
      ['device', undefined],
      ['', undefined]
    ]);
    const wrong = { topic: 'a', clientId: 5 as unknown as string };
    await assert.rejects(broker.publish(wrong), { code: 'MESSAGE_INVALID', field: 'clientId' });
  });

  it('shares the messages of such a client among the members of a group in turn', async () => {
    await using broker = await startBroker({ sharedSubscriptionStrategy: 'round_robin' });
    const counts = [0, 0];
    for (const at of [0, 1]) broker.subscribe('$share/g/a', () => void counts[at]++);
    for (let n = 0; n < 6; n++) await broker.publish('a', 'x', { clientId: 'device' });
    assert.deepEqual(counts, [3, 3]);
  });

  it('resolves nextEvent with the next event, or rejects it with the reason of the signal', async () => {
    await using broker = await startBroker();
    const next = broker.nextEvent('client.connected', { where: ({ client }) => client.clientId === 'second' });
    await rawClient(broker, { clientId: 'first' });
    await rawClient(broker, { clientId: 'second' });
    assert.equal((await next).client.clientId, 'second');
    const reason = new Error('enough');
    await assert.rejects(broker.nextEvent('client.connected', { signal: AbortSignal.abort(reason) }), reason);
  });
});
