import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BrokerEvents, TransportInfo } from '../../lib/index.ts';
import { CatalogueEvent, PlainEvent } from '../../lib/rules/events/event.ts';
import type { RuleEventName } from '../../lib/rules/events/event-name.ts';
import { RULE_EVENTS } from '../../lib/rules/events/rows.ts';
import type { ValueObject } from '../../lib/sql/values.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { clientInfo } from '../support/client-info.ts';
import { rawClient } from '../support/raw-client.ts';
import { publish } from '../support/wire.ts';

/** Record the events that a broker emits from now on. */
function listen(kit: TestBroker, ...names: RuleEventName[]): CatalogueEvent[] {
  const context = { node: 'node-1', now: () => kit.clock.now() };
  const seen: CatalogueEvent[] = [];
  for (const name of names) {
    const row = RULE_EVENTS[name];
    kit.broker.on(row.source, (value) => {
      if (row.accepts(value)) seen.push(new CatalogueEvent(row, value, context));
    });
  }
  return seen;
}

/** The event of a message that the app publishes. */
async function published(payload: string | Buffer): Promise<CatalogueEvent> {
  await using kit = await createTestBroker();
  const seen = listen(kit, 'message.publish');
  await kit.broker.publish('t', payload);
  return seen[0];
}

describe('The id of a message', () => {
  it('gives a message the same unique id in all its events, even if a deliver hook has changed it', async () => {
    await using kit = await createTestBroker({ hooks: { deliver: () => ({ payload: 'changed' }) } });
    const seen = listen(kit, 'message.publish', 'message.delivered', 'message.acked', 'delivery.dropped');
    await using client = await kit.connect();
    await client.subscribe('t', { qos: 1 });
    await using other = await kit.connect();
    await other.subscribe('t', { noLocal: true });
    for (const payload of ['1', '2']) await other.publish('t', payload, { qos: 1 });
    await kit.clock.settle();
    const ids = seen.map((event) => event.column('id'));
    assert.equal(ids.length, 8);
    assert.equal(new Set(ids).size, 2);
    assert.deepEqual([...new Set(ids.map(String))].sort(), [...new Set(ids)], 'they are in the order of the messages');
  });

  it('begins the message id with the time of the message', async () => {
    const event = await published('x');
    const micros = Number.parseInt(String(event.column('id')).slice(0, -16), 16);
    assert.equal(micros, Number(event.column('publish_received_at')) * 1000);
  });
});

describe('The payload of a message', () => {
  it('decodes a UTF-8 payload to a string, once', async () => {
    const event = await published('{"a":{"b":"ä"}}');
    const text = event.column('payload');
    assert.equal(text, '{"a":{"b":"ä"}}');
    const decoded = event.decoded('payload');
    assert.deepEqual(decoded, { a: { b: 'ä' } });
    assert.equal(event.decoded('payload'), decoded);
  });

  it('copies the bytes of a payload that is not UTF-8', async () => {
    const payload = (await published(Buffer.from([0xff, 0, 1]))).column('payload') as Uint8Array;
    assert.deepEqual(payload, new Uint8Array([0xff, 0, 1]));
    assert.equal(payload.buffer.byteLength, 3);
  });

  it('returns an empty string for an empty payload', async () => {
    assert.equal((await published('')).column('payload'), '');
  });

  it('keeps integers above 2^53 and the key __proto__ of a JSON payload', async () => {
    const text = '{"n":12345678901234567890,"__proto__":{"polluted":true}}';
    const decoded = (await published(text)).decoded('payload') as ValueObject;
    assert.equal(decoded.n, 12345678901234567890n);
    assert.deepEqual(Object.keys(decoded), ['n', '__proto__']);
    assert.equal(decoded.polluted, undefined);
  });

  it('treats a payload that is not JSON as absent, even if another column has been decoded', async () => {
    const event = await published('hello');
    assert.equal(event.decoded('payload'), undefined);
    assert.equal(event.decoded('topic'), undefined);
    assert.deepEqual(event.decoded('qos'), event.column('qos'));
    assert.equal(event.decoded('payload'), undefined);
  });
});

describe('An event', () => {
  it('contains no column with a name that is not in its row', async () => {
    const event = await published('x');
    for (const name of ['nothing', '__proto__', 'constructor', 'reason']) assert.equal(event.column(name), undefined);
  });

  it('keeps its time from the first reading on, and names its node', async () => {
    let now = 1000;
    const context = { node: 'node-1', now: () => now++ };
    const event = new CatalogueEvent(
      RULE_EVENTS['client.connected'],
      { client: clientInfo(), sessionPresent: false },
      context
    );
    assert.deepEqual(
      [event.column('timestamp'), event.column('timestamp'), event.column('node')],
      [1000, 1000, 'node-1']
    );
  });

  it('shows that the publisher has sent the message again', async () => {
    await using kit = await createTestBroker();
    const seen = listen(kit, 'message.publish');
    const client = await rawClient(kit.broker);
    client.send(publish('t', 'x', { qos: 1, messageId: 1, dup: true }));
    await client.next('puback');
    client.stream.destroy();
    assert.deepEqual(seen[0].column('flags'), { dup: true, retain: false });
  });

  it('shows when a message was received that has waited for its subscriber', async () => {
    await using kit = await createTestBroker({ maxMqueueLen: 1 });
    const seen = listen(kit, 'message.delivered', 'delivery.dropped');
    const receiver = { clientId: 'r', sessionExpiry: 3600 };
    const before = await kit.connect(receiver);
    await before.subscribe('t', { qos: 1 });
    await before.disconnect();
    await using publisher = await kit.connect({ clientId: 'p', username: 'publisher' });
    for (const payload of ['1', '2']) await publisher.publish('t', payload, { qos: 1 });
    assert.equal(seen[0].column('timestamp'), kit.clock.now());
    await kit.clock.advance('5s');
    await using _after = await kit.connect({ ...receiver, clean: false });
    await kit.clock.settle();
    const facts = seen.map((event) => [
      event.name,
      ...['payload', 'clientid', 'from_clientid', 'from_username', 'reason'].map((name) => event.column(name)),
      Number(event.column('timestamp')) - Number(event.column('publish_received_at'))
    ]);
    assert.deepEqual(facts, [
      ['delivery.dropped', '1', 'r', 'p', 'publisher', 'queue_full', 0],
      ['message.delivered', '2', 'r', 'p', 'publisher', undefined, 5_000]
    ]);
  });

  it('shows the names of a publisher that has disconnected, but not its address', async () => {
    await using kit = await createTestBroker();
    const seen = listen(kit, 'message.dropped');
    const transportInfo: TransportInfo = { transport: 'tcp', remoteAddress: '192.0.2.1' };
    const publisher = await kit.connect({ clientId: 'p', username: 'publisher', transportInfo });
    await publisher.publish('$delayed/5/t', 'x', { qos: 1 });
    await publisher.disconnect();
    await kit.clock.advance('5s');
    const { topic, clientid, username, peerhost, reason } = seen[0].columns();
    assert.deepEqual(
      [topic, clientid, username, peerhost, reason],
      ['t', 'p', 'publisher', undefined, 'no_subscribers']
    );
  });
});

describe('An event of given columns', () => {
  it('contains only the given columns, in order', () => {
    const columns: ValueObject = { topic: 't', payload: '{"a":1}', __proto__: { inherited: 1 }, absent: undefined };
    const event = new PlainEvent('message.publish', columns);
    assert.deepEqual([event.name, event.names], ['message.publish', ['topic', 'payload', 'absent']]);
    assert.deepEqual(
      [event.column('topic'), event.column('inherited'), event.column('absent')],
      ['t', undefined, undefined]
    );
    assert.deepEqual(event.decoded('payload'), { a: 1 });
    assert.deepEqual(event.columns(), { topic: 't', payload: '{"a":1}' });
  });

  it('preserves an event of the broker for later', async () => {
    await using kit = await createTestBroker();
    const seen = listen(kit, 'client.connected');
    const client = await kit.connect({ clientId: 'c' });
    const kept = new PlainEvent(seen[0].name, seen[0].columns());
    await client.disconnect();
    assert.equal(seen[0].column('connected_at'), undefined);
    assert.equal(kept.column('connected_at'), kit.clock.now());
  });
});

describe('The column', () => {
  const context = { node: 'node-1', now: () => 0 };

  function column<N extends RuleEventName>(name: N, value: object, of: string): unknown {
    return new CatalogueEvent(RULE_EVENTS[name], value as BrokerEvents['error'], context).column(of);
  }

  for (const [transport, reason] of [
    ['tcp', 'tcp_closed'],
    ['ws', 'tcp_closed'],
    ['local', 'tcp_closed'],
    ['tls', 'ssl_closed'],
    ['wss', 'ssl_closed']
  ] as const)
    it(`gives the reason ${reason} for a client that closes its connection over ${transport}`, () => {
      const client = clientInfo({ transportInfo: { transport } });
      assert.equal(column('client.disconnected', { client, reason: 'closed' }, 'reason'), reason);
    });

  it('keeps the name of all other reasons in the column reason', () => {
    for (const reason of ['normal', 'kicked', 'keepalive_timeout', 'takeovered', 'slow_consumer'])
      assert.equal(column('client.disconnected', { client: clientInfo(), reason }, 'reason'), reason);
  });

  it('names each reason code in the column reason_code', () => {
    const names = [0, 0x87, 0x8a, 0x01].map((reasonCode) =>
      column('client.connack', { client: clientInfo(), reasonCode }, 'reason_code')
    );
    assert.deepEqual(names, ['success', 'not_authorized', 'banned', 'unspecified_error']);
  });

  it('gives expiry_interval of a session that does not expire the number used in CONNECT', () => {
    const client = clientInfo({ sessionExpiry: Infinity, protocolVersion: 5 });
    assert.equal(column('client.connected', { client }, 'expiry_interval'), 0xffff_ffff);
    assert.deepEqual(column('client.connected', { client }, 'conn_props'), { 'Session-Expiry-Interval': 0xffff_ffff });
  });

  it('includes the Authentication Method in the column conn_props', async () => {
    await using kit = await createTestBroker({ hooks: { authenticate: () => true } });
    const seen = listen(kit, 'client.connected');
    await using _client = await kit.connect({ properties: { authenticationMethod: 'TOKEN' } });
    assert.deepEqual(seen[0].column('conn_props'), { 'Authentication-Method': 'TOKEN' });
  });

  it('returns Correlation Data that is not UTF-8 as bytes in the column pub_props', async () => {
    await using kit = await createTestBroker();
    const seen = listen(kit, 'message.publish');
    await kit.broker.publish('t', 'x', { properties: { correlationData: Buffer.from([0xff]) } });
    assert.deepEqual(seen[0].column('pub_props'), { 'Correlation-Data': new Uint8Array([0xff]) });
  });

  it('omits columns for a client with an unknown address, and after a CONNECT without a client id', () => {
    const client = clientInfo({ clientId: '', transportInfo: { transport: 'unix' } });
    for (const name of ['clientid', 'peername', 'sockname'])
      assert.equal(column('client.connack', { client, reasonCode: 0x85 }, name), undefined, name);
  });
});
