import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeBase62, encodeBase62, WEBHOOK_EVENTS, webhook } from '../../adapters/webhook/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { disposable, Receiver } from './receiver.ts';

const SECOND = 1_700_000_000;

describe('The bodies of events', () => {
  it('contains the documented keys and values for each event', async () => {
    await using receiver = await new Receiver().open();
    await using kit = await createTestBroker({ clock: { now: SECOND * 1000 + 123 }, leakCheck: false });
    const { broker } = kit;
    using _hook = disposable(() => hook.close());
    const hook = webhook(broker, { url: receiver.url });
    const a = await kit.connect({ clientId: 'a', username: 'ann', keepalive: 30, clean: true });
    await a.subscribe({ topic: '$share/g/t/+', qos: 1 });
    const b = await kit.connect({ clientId: 'b', protocolVersion: 4 });
    await b.publish('t/1', 'hello', { qos: 1 });
    await b.publish('nobody', 'lost', { retain: true });
    await kit.clock.settle();
    await a.unsubscribe('$share/g/t/+');
    await a.disconnect();
    await kit.clock.settle();
    await hook.idle();
    const of = (action: string, id: string) =>
      receiver.bodies.find(
        ({ action: one, clientid, from_client_id }) => one === action && (clientid ?? from_client_id) === id
      );
    const connecting = { clientid: 'a', username: 'ann', ipaddress: 'undefined', keepalive: 30, proto_ver: 5 };
    assert.deepEqual(of('client_connect', 'a'), { action: 'client_connect', ...connecting });
    assert.deepEqual(of('client_connack', 'a'), { action: 'client_connack', ...connecting, conn_ack: 'success' });
    assert.deepEqual(of('client_connected', 'a'), { action: 'client_connected', ...connecting, connected_at: SECOND });
    assert.deepEqual(of('client_connected', 'b')?.proto_ver, 4);
    assert.deepEqual(of('client_connected', 'b')?.username, 'undefined');
    const named = { clientid: 'a', username: 'ann' };
    const opts = { qos: 1, nl: 0, rap: 0, rh: 0, share: 'g' };
    for (const action of ['client_subscribe', 'session_subscribed'])
      assert.deepEqual(of(action, 'a'), { action, ...named, topic: 't/+', opts });
    for (const action of ['client_unsubscribe', 'session_unsubscribe'])
      assert.deepEqual(of(action, 'a'), { action, ...named, topic: 't/+' });
    assert.deepEqual(of('client_disconnected', 'a'), { action: 'client_disconnected', ...named, reason: 'normal' });
    assert.deepEqual(of('session_terminated', 'a'), { action: 'session_terminated', ...named, reason: 'normal' });
    const from = { from_client_id: 'b', from_username: 'undefined' };
    const message = { topic: 't/1', qos: 1, retain: false, payload: 'hello', ts: SECOND };
    assert.deepEqual(of('message_publish', 'b'), { action: 'message_publish', ...from, ...message });
    assert.deepEqual(of('message_delivered', 'a'), { action: 'message_delivered', ...named, ...from, ...message });
    assert.deepEqual(of('message_acked', 'a'), { action: 'message_acked', clientid: 'a', ...from, ...message });
    const { node } = broker.settings;
    assert.deepEqual(of('message_dropped', 'b'), {
      action: 'message_dropped',
      reason: 'no_subscribers',
      ...from,
      ...{ topic: 'nobody', qos: 0, retain: true, payload: 'lost', ts: SECOND },
      node
    });
    const actions = new Set(receiver.bodies.map(({ action }) => action));
    assert.equal(actions.size, 13);
    assert.equal(WEBHOOK_EVENTS.length, 13);
    assert.equal(receiver.received[0].headers['content-type'], 'application/json');
  });

  it('contains the retain flag of the delivery in message_acked, as in message_delivered', async () => {
    await using receiver = await new Receiver().open();
    await using kit = await createTestBroker({ leakCheck: false });
    const { broker } = kit;
    using _hook = disposable(() => hook.close());
    const hook = webhook(broker, { url: receiver.url });
    await broker.publish('old', 'x', { qos: 2, retain: true });
    const client = await kit.connect({ clientId: 'a', clean: true });
    await client.subscribe({ topic: 'live', qos: 1 });
    await client.subscribe({ topic: 'old', qos: 2 });
    await broker.publish('live', 'x', { qos: 1, retain: true });
    await kit.clock.settle();
    await hook.idle();
    const flags = (action: string) =>
      receiver.bodies.filter((body) => body.action === action).map(({ topic, qos, retain }) => [topic, qos, retain]);
    const expected = [
      ['old', 2, true],
      ['live', 1, false]
    ];
    assert.deepEqual(flags('message_delivered'), expected);
    assert.deepEqual(flags('message_acked'), expected);
  });

  it('keeps the order of the events of one client', async () => {
    await using receiver = await new Receiver().open();
    await using kit = await createTestBroker({ leakCheck: false });
    const hook = webhook(kit.broker, { url: receiver.url });
    using _hook = disposable(() => hook.close());
    const a = await kit.connect({ clientId: 'a' });
    await a.subscribe('t');
    await a.unsubscribe('t');
    await a.disconnect();
    await kit.clock.settle();
    await hook.idle();
    assert.deepEqual(
      receiver.bodies.map(({ action }) => action),
      [
        'client_connect',
        'client_connack',
        'client_connected',
        'client_subscribe',
        'session_subscribed',
        'client_unsubscribe',
        'session_unsubscribe',
        'client_disconnected',
        'session_terminated'
      ]
    );
  });

  it('names the reason for a refused client', async () => {
    await using receiver = await new Receiver().open();
    await using kit = await createTestBroker({ allowAnonymous: false, leakCheck: false });
    const hook = webhook(kit.broker, { url: receiver.url });
    using _hook = disposable(() => hook.close());
    await assert.rejects(kit.connect({ clientId: 'a', username: 'x', password: 'y' }));
    await kit.clock.settle();
    await hook.idle();
    assert.deepEqual(
      receiver.bodies.map(({ action, conn_ack }) => [action, conn_ack]),
      [
        ['client_connect', undefined],
        ['client_connack', 'bad_username_or_password']
      ]
    );
  });

  for (const [encodePayload, expected] of [
    [undefined, 'A\u0000ü'],
    ['base64', Buffer.from('A\u0000ü').toString('base64')],
    ['base62', encodeBase62(Buffer.from('A\u0000ü'))]
  ] as const)
    it(`encodes the payload of a message as configured: ${encodePayload}`, async () => {
      await using receiver = await new Receiver().open();
      await using kit = await createTestBroker({ leakCheck: false });
      const hook = webhook(kit.broker, { url: receiver.url, encodePayload, rules: [{ event: 'message.publish' }] });
      using _hook = disposable(() => hook.close());
      await kit.broker.publish('t', 'A\u0000ü');
      await hook.idle();
      assert.deepEqual(
        receiver.bodies.map(({ payload }) => payload),
        [expected]
      );
    });
});

describe('base62', () => {
  it('uses only letters and digits', () => {
    assert.equal(encodeBase62(Buffer.from([])), '');
    assert.equal(encodeBase62(Buffer.from([0, 0, 0])), 'AAAA');
    assert.equal(encodeBase62(Buffer.from([255, 255, 255])), '9C9C9C9C');
    assert.equal(encodeBase62(Buffer.from([0x41])), 'QB');
  });

  it('decodes any encoded bytes', () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    let state = seed;
    for (let length = 0; length < 200; length++) {
      const bytes = Buffer.from(
        Array.from({ length }, () => {
          state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
          return state >>> 16;
        })
      );
      const text = encodeBase62(bytes);
      assert.match(text, /^[A-Za-z0-9]*$/);
      assert.deepEqual(decodeBase62(text), bytes, `seed ${seed}, length ${length}`);
    }
    assert.throws(() => decodeBase62('a-b'), RangeError);
    assert.throws(() => decodeBase62('9'), RangeError);
  });
});
