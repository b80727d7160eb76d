import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import { listen, listenHttp } from '../../adapters/net/index.ts';
import { type Broker, createBroker, users } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** The text that `console.log` prints on a terminal without colours. */
function printed(value: unknown): string {
  return inspect(value, { colors: false });
}

const INSPECT = Symbol.for('nodejs.util.inspect.custom');

describe('console.log of a broker', () => {
  it('shows its state, its listeners and what it serves', async () => {
    await using kit = await createTestBroker({ sysInterval: 0 });
    const { broker } = kit;
    const listener = await listen(broker, 0);
    const client = await broker.connect({ clientId: 'c', sessionExpiry: 60 });
    await client.subscribe(['a/#', 'b']);
    await client.publish('a/b', 'x', { retain: true, qos: 1 });
    await kit.clock.advance('61s');
    assert.equal(
      printed(broker),
      [
        `Broker connected: up 1 minute, 1 second, version ${broker.version}, state in memory`,
        `listeners: tcp:0 at 127.0.0.1:${listener.port} (0 connections)`,
        '1 client, 1 session, 2 subscriptions, 1 retained message, 0 rules'
      ].join('\n  ')
    );
    await client.disconnect();
  });

  it('shows a broker that is not started, and one that has stopped', async () => {
    const broker = createBroker();
    listen(broker, 0);
    assert.match(printed(broker), /^Broker idle: not started, .*\n {2}listeners: tcp:0 \(closed\)\n {2}0 clients, /);
    await broker.start();
    await broker.stop();
    assert.match(printed(broker), /^Broker disconnected: not started, /);
  });

  it('names four listeners, and counts the others', () => {
    const broker = createBroker();
    for (let port = 1; port <= 6; port++) listen(broker, port);
    assert.match(printed(broker), /listeners: tcp:1 \(closed\), .*tcp:4 \(closed\) and 2 more\n/);
  });

  it('shows no secret of the options', () => {
    const broker = createBroker({ auth: [users([{ username: 'u', password: 'not-for-the-log' }])] });
    assert.doesNotMatch(printed(broker), /not-for-the-log/);
  });

  it('respects the depth and the colours of the output, and the indentation of the object around it', () => {
    const broker = createBroker();
    assert.equal(inspect({ a: { b: { c: { broker } } } }, { depth: 2 }), '{ a: { b: { c: [Object] } } }');
    assert.match(inspect({ a: { broker } }, { depth: 2 }), /broker: Broker idle/);
    assert.match(inspect({ a: { broker } }, { depth: 0 }), /a: \[Object\]/);
    assert.match(inspect([[[broker]]], { depth: 2 }), /\[Broker\]/);
    assert.match(printed({ broker }), /^\{\n {2}broker: Broker idle.*\n {4}listeners: none\n {4}0 clients/);
    assert.ok(inspect(broker, { colors: true }).startsWith('Broker \u001b[36midle\u001b[39m'));
  });

  it('never throws, without options, and for the prototype of the class', () => {
    const broker = createBroker() as Broker & Record<symbol, () => string>;
    assert.match(broker[INSPECT](), /^Broker idle/);
    assert.equal(Object.getPrototypeOf(broker)[INSPECT](), '[Broker]');
    assert.doesNotThrow(() => printed(Object.getPrototypeOf(broker)));
    assert.equal(printed(new Proxy(broker, {})), '[Broker]');
  });
});

describe('console.log of a listener', () => {
  it('shows its address, its protocol and its connections', async () => {
    await using broker = await createBroker().start();
    const listener = await listen(broker, { port: 0, name: 'door', maxConnections: 7 });
    const lines = [
      `Listener "door" open at 127.0.0.1:${listener.port}`,
      'protocol mqtt:tcp, 0 connections, at most 7',
      'ended connections: none'
    ];
    assert.equal(printed(listener), lines.join('\n  '));
    assert.equal(printed(broker.listeners()[0]), lines.join('\n  '));
    await listener.close();
    assert.match(printed(listener), /^Listener "door" closed\n/);
    const web = await listenHttp(broker, 0, (_, response) => void response.end());
    assert.match(printed(web), /^Listener "http:0" open at 127\.0\.0\.1:\d+\n {2}protocol http:management, /);
  });

  it('shows the path of a Unix socket, and a listener that is not open', {
    skip: process.platform === 'win32'
  }, async () => {
    const path = join(tmpdir(), `embermq-${process.pid}.sock`);
    const broker = createBroker();
    const listener = listen(broker, { path });
    assert.equal(printed(listener).split('\n')[0], `Listener "unix:${path}" closed`);
    await broker.start();
    assert.equal(printed(listener).split('\n')[0], `Listener "unix:${path}" open at ${path}`);
    await broker.stop();
    assert.equal(printed(listener).split('\n')[0], `Listener "unix:${path}" closed`);
  });
});

describe('console.log of a client', () => {
  it('shows its id, its state, its version and its subscriptions', async () => {
    await using broker = await createBroker({ controlCharacters: 'allow' }).start();
    const client = await broker.connect({
      clientId: 'c\n\u001b[31m\u202e',
      username: 'u',
      password: 'not-for-the-log'
    });
    await client.subscribe(['a/#', 'b', 'c', 'd', 'e']);
    await client.subscribe('b');
    await client.unsubscribe('c');
    assert.equal(
      printed(client),
      'Client "c\\n\\u001b[31m\\u202e" connected\n  MQTT 5.0, new session\n  4 subscriptions: "a/#", "b", "d", "e"'
    );
    await client.disconnect();
    assert.match(printed(client), /^Client ".*" closed\n {2}MQTT 5.0, new session\n {2}4 subscriptions: /);
  });

  it('shows the subscriptions of a resumed session, and the reason for which a connection was closed', async () => {
    await using broker = await createBroker().start();
    const options = { clientId: 'c', protocolVersion: 4, clean: false } as const;
    const first = await broker.connect(options);
    await first.subscribe('a');
    await first.disconnect();
    const second = await broker.connect({ ...options, session: first.session });
    assert.equal(printed(second), 'Client "c" connected\n  MQTT 3.1.1, session resumed\n  1 subscription: "a"');
    const closed = new Promise((resolve) => second.on('close', resolve));
    await broker.sessions.kick('c');
    await closed;
    const third = await broker.connect({ clientId: 'c', session: second.session });
    assert.match(printed(third), /\n {2}MQTT 5.0, new session\n {2}0 subscriptions$/);
    await broker.sessions.kick('c', { reasonCode: 0x9c });
    await third.disconnect();
    assert.match(printed(third), /^Client "c" closed: the server ended the connection.*\n/);
  });

  it('cuts a long client id', async () => {
    await using broker = await createBroker().start();
    const client = await broker.connect({ clientId: 'x'.repeat(4_000) });
    assert.ok(printed(client).length < 250);
    assert.ok(printed(broker.sessions.get('x'.repeat(4_000))).length < 250);
    await client.disconnect();
  });
});

describe('console.log of a session', () => {
  it('shows its state, its client, its subscriptions and its messages', async () => {
    await using broker = await createBroker().start();
    const client = await broker.connect({
      clientId: 'c',
      sessionExpiry: 60,
      transportInfo: { remoteAddress: '::1', remotePort: 4 }
    });
    await client.subscribe(['a', 'b', 'c', 'd', 'e'], { qos: 1 });
    const session = broker.sessions.get('c');
    assert.equal(
      printed(session),
      [
        'Session "c" connected',
        'MQTT 5.0, local, from [::1]:4',
        '5 subscriptions: "a", "b", "c", "d", ...',
        '0 messages queued, 0 in flight'
      ].join('\n  ')
    );
    const gone = broker.nextEvent('client.disconnected');
    await client.disconnect();
    await gone;
    await broker.publish('a', 'x', { qos: 1 });
    assert.match(printed(session), /^Session "c" disconnected(\n.*){2}\n {2}1 message queued, 0 in flight$/);
    await broker.sessions.discard('c');
    assert.match(printed(session), /^Session "c" gone\n/);
  });
});

describe('console.log of a rule', () => {
  it('shows its state, its statement and its counters', async () => {
    await using broker = await createBroker().start();
    const rule = await broker.rules.create({
      id: 'r',
      sql: 'SELECT payload.x AS x\nFROM "t/#"\n\tWHERE payload.x > 1',
      actions: [{ name: 'republish', params: { target_topic: 'out', target_qos: 0, payload_tmpl: 'x' } }]
    });
    for (const payload of ['{"x":2}', '{"x":1}', 'no']) await broker.publish('t/1', payload);
    const now = await broker.rules.get('r');
    assert.equal(
      printed(now),
      [
        'Rule "r" connected',
        'SELECT payload.x AS x FROM "t/#" WHERE payload.x > 1',
        '3 events matched, 1 passed, 2 failed (0 with an error, 2 excluded by WHERE); actions: republish (1 succeeded, 0 failed)'
      ].join('\n  ')
    );
    assert.match(printed(rule), /^Rule "r" connected\n/);
    assert.match(printed([now]), /^\[\n {2}Rule "r" connected\n {4}SELECT /);
    await broker.rules.update('r', { isEnabled: false });
    assert.match(printed(await broker.rules.get('r')), /^Rule "r" idle \(disabled\)\n/);
  });

  it('keeps the record of a rule a plain object', async () => {
    await using broker = await createBroker().start();
    const rule = await broker.rules.create({ sql: 'SELECT * FROM "t"', actions: ['do_nothing'] });
    assert.deepEqual(
      Reflect.ownKeys({ ...rule }).filter((key) => typeof key === 'symbol'),
      []
    );
    assert.deepEqual(structuredClone(rule), { ...rule });
  });

  it('shows a rule of streams while it runs, and after it was dropped', async () => {
    await using broker = await createBroker().start();
    await broker.streams.create('CREATE STREAM s () WITH (TYPE="memory", DATASOURCE="s")');
    const rule = await broker.streams.rule('SELECT x FROM s WHERE x > 1', { id: 'w' });
    const rows = rule[Symbol.asyncIterator]();
    await broker.streams.push('s', { x: 2 });
    await rows.next();
    assert.match(
      printed(rule),
      /^StreamRule "w" connected: .*\n {2}SELECT x FROM s WHERE x > 1\n {2}1 row in, \d+ out, 0 errors$/
    );
    await rule.drop();
    assert.equal(printed(rule), 'StreamRule "w" dropped');
  });
});
