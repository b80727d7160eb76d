import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ArrivalQuestion, acl, type Broker, type BrokerOptions, memoryStore } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';
import { rawClient } from '../../support/raw-client.ts';
import { granted, nothing, publish, rest, startBroker } from '../../support/wire.ts';

/** The causes of an answer, by code. An answer that must be complete is. */
async function ask(broker: Broker, question: ArrivalQuestion) {
  const { isComplete, causes } = await broker.monitor.why(question);
  assert.equal(isComplete, true);
  return {
    codes: causes.map(({ code }) => code),
    of: (code: string) => {
      const found = causes.find((cause) => cause.code === code);
      assert.ok(found !== undefined, `${code} is not among ${causes.map((cause) => cause.code)}`);
      return found;
    }
  };
}

describe('The causes that are derived', () => {
  const near: [filter: string, topic: string, code: string][] = [
    ['Plant/Temp', 'plant/temp', 'filter_case'],
    ['/plant/temp', 'plant/temp', 'filter_slash'],
    ['plant/+', 'plant/a/temp', 'filter_levels'],
    ['#', '$app/x', 'filter_system']
  ];
  for (const [filter, topic, code] of near) {
    it(`names ${code} for the filter ${filter} and the topic ${topic}, also if no client is named`, async () => {
      await using kit = await createTestBroker();
      await using client = await kit.connect({ clientId: 'c' });
      await client.subscribe(filter);
      await kit.broker.publish(topic, 'x');
      for (const question of [{ topic, clientId: 'c' }, { topic }]) {
        const { of } = await ask(kit.broker, question);
        const { kind, text, evidence } = of(code);
        assert.equal(kind, 'derived');
        assert.deepEqual([evidence.filter, evidence.clientId, evidence.topic], [filter, 'c', topic]);
        assert.ok(text.includes(JSON.stringify(filter)) && text.endsWith('.'), text);
      }
    });
  }

  it('names the mount point of a receiver, and that of a publisher', async () => {
    await using broker = await startBroker({ zones: { tenant: { mountpoint: 'tenant/' } } });
    const inner = await rawClient(broker, { clientId: 'inner', meta: { zone: 'tenant' } as never });
    await granted(inner, 1, 'a/b');
    const outer = await rawClient(broker, { clientId: 'outer' });
    await granted(outer, 1, 'x/y');
    outer.send(publish('a/b', 'x'));
    inner.send(publish('x/y', 'x'));
    await nothing(inner);
    await nothing(outer);
    const one = (await ask(broker, { topic: 'a/b', clientId: 'inner', publisher: 'outer' })).of('mount_point');
    assert.deepEqual([one.evidence.side, one.evidence.mountpoint], ['receiver', 'tenant/']);
    const two = (await ask(broker, { topic: 'x/y', clientId: 'outer', publisher: 'inner' })).of('mount_point');
    assert.deepEqual([two.evidence.side, two.evidence.mountpoint], ['publisher', 'tenant/']);
    assert.equal(two.evidence.topic, 'tenant/x/y');
    assert.match(two.remedy, /^Subscribe to the topic below "tenant\/", or connect the publisher/);
  });

  it('finds a refused subscription by its filter, by the filter that the client requested, and without the share group', async () => {
    const rewrite: BrokerOptions['rewrite'] = [
      { filter: 'in/#', pattern: /^in\/\+$/, target: 'out/#', on: 'subscribe' }
    ];
    await using kit = await createTestBroker({ rewrite });
    const { broker } = kit;
    broker.hook('authorizeSubscribe', () => false);
    const client = await broker.connect({ clientId: 'c' });
    await client.subscribe('in/+');
    for (const topic of ['in/1', 'out/1']) {
      const { evidence } = (await ask(broker, { topic, clientId: 'c' })).of('subscribe_refused');
      assert.equal(evidence.filter, 'out/#', topic);
      assert.match(`${evidence.detail}`, /; requested as "in\/\+"$/);
    }
    assert.ok(!(await ask(broker, { topic: 'other', clientId: 'c' })).codes.includes('subscribe_refused'));
    await client.subscribe('$share/g/shared/+');
    const { evidence } = (await ask(broker, { topic: 'shared/1', clientId: 'c' })).of('subscribe_refused');
    assert.equal(evidence.filter, '$share/g/shared/+');
    const history = broker.monitor.reasons
      .list({ clientId: 'c' })
      .entries.filter(({ code }) => code === 'subscribe_refused');
    assert.equal(history.length, 2, 'a record for each refusal');
    await client.disconnect();
  });

  it('finds a refused subscription whose share prefix is misspelled, and tells how it is written', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    broker.hook('authorizeSubscribe', () => false);
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('$shared/g/gate/#');
    const { causes } = await broker.monitor.why({ topic: 'gate/1', clientId: 'c' });
    const refused = causes.find(({ code }) => code === 'subscribe_refused') ?? assert.fail('not named');
    assert.equal(refused.evidence.filter, '$shared/g/gate/#');
    assert.match(refused.remedy, /^A shared subscription begins with `\$share\/`/);
    assert.ok(!(await ask(broker, { topic: 'other', clientId: 'c' })).codes.includes('subscribe_refused'));
  });

  it('names the rewrite rule that has changed a topic, and one that has changed a filter', async () => {
    const rewrite: BrokerOptions['rewrite'] = [
      { filter: 'old/#', pattern: /^old\/(.+)$/, target: 'new/$1', on: 'publish' },
      { filter: 'in/#', pattern: /^in\/(.+)$/, target: 'out/$1', on: 'subscribe' }
    ];
    await using kit = await createTestBroker({ rewrite });
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe(['old/x', 'in/x']);
    await using device = await kit.connect({ clientId: 'd' });
    await device.publish('old/x', 'x', { qos: 1 });
    await device.publish('in/x', 'x', { qos: 1 });
    assert.equal((await ask(kit.broker, { topic: 'old/x', clientId: 'c' })).of('rewritten').evidence.to, 'new/x');
    assert.equal((await ask(kit.broker, { topic: 'old/x' })).of('rewritten').evidence.to, 'new/x');
    assert.equal((await ask(kit.broker, { topic: 'in/x', clientId: 'c' })).of('rewritten').evidence.filter, 'out/x');
    assert.ok(!(await ask(kit.broker, { topic: 'out/x', clientId: 'c' })).codes.includes('rewritten'));
  });

  it('names No Local for a message of the receiver itself', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c' });
    await granted(client, 1, { topic: 'a/#', noLocal: true });
    const question = { topic: 'a/1', clientId: 'c', publisher: 'c' };
    assert.equal((await ask(broker, question)).of('no_local').kind, 'derived', 'before it was published');
    client.send(publish('a/1', 'x'));
    await nothing(client);
    assert.deepEqual((await ask(broker, question)).codes, ['no_local'], 'once, as it was recorded');
    assert.ok(!(await ask(broker, { topic: 'a/1', clientId: 'c', publisher: 'other' })).codes.includes('no_local'));
  });

  it('names the member that received a message while a client which is gone was in the share group', async () => {
    await using kit = await createTestBroker({ sharedSubscriptionStrategy: 'round_robin' });
    await using one = await kit.connect({ clientId: 'one' });
    const two = await kit.connect({ clientId: 'two' });
    for (const client of [one, two]) await client.subscribe('$share/g/a/#');
    const at = kit.clock.now();
    await kit.broker.publish('a/1', 'x');
    await kit.clock.advance('1s');
    await two.disconnect();
    await kit.clock.advance('1s');
    await kit.broker.publish('a/2', 'x');
    for (const question of [{}, { at }]) {
      const found = await ask(kit.broker, { topic: 'a/1', clientId: 'two', ...question });
      const { kind, at: when, evidence } = found.of('share_member');
      assert.deepEqual([kind, when, evidence.group, evidence.member], ['sampled', at, 'g', 'one']);
    }
    const later = await ask(kit.broker, { topic: 'a/2', clientId: 'two' });
    assert.deepEqual(later.codes, ['session_ended', 'offline_no_session'], 'it had left the group');
  });

  it('names the member of a share group that received an example', async () => {
    await using kit = await createTestBroker({ sharedSubscriptionStrategy: 'round_robin' });
    await using one = await kit.connect({ clientId: 'one' });
    await using two = await kit.connect({ clientId: 'two' });
    for (const client of [one, two]) await client.subscribe('$share/g/a/#');
    await kit.broker.publish('a/1', 'x');
    const { kind, at, count, evidence, text } = (await ask(kit.broker, { topic: 'a/1', clientId: 'two' })).of(
      'share_member'
    );
    assert.deepEqual([kind, at, count], ['sampled', kit.clock.now(), 1]);
    assert.deepEqual([evidence.group, evidence.member], ['g', 'one']);
    assert.match(text, /the latest example of group "g" went to "one"\.$/);
    assert.ok(!(await ask(kit.broker, { topic: 'a/1', clientId: 'one' })).codes.includes('share_member'));
    await kit.broker.publish('a/2', 'x'); // within 100 ms, so no example is kept
    const { kind: unknown, evidence: of } = (await ask(kit.broker, { topic: 'a/2', clientId: 'two' })).of(
      'share_member'
    );
    assert.deepEqual([unknown, of.members, of.member], ['derived', 2, undefined]);
  });

  it('names the queue of the member that was chosen, also if no client is named', async () => {
    await using kit = await createTestBroker({ sharedSubscriptionStrategy: 'round_robin' });
    for (const clientId of ['one', 'two']) {
      const client = await kit.connect({ clientId, sessionExpiry: 60 });
      await client.subscribe('$share/g/a/#', { qos: 1 });
      await client.disconnect();
    }
    await kit.broker.publish('a/1', 'x', { qos: 1 });
    const { codes, of } = await ask(kit.broker, { topic: 'a/1' });
    assert.ok(codes.includes('offline_queued'));
    assert.equal(of('offline_queued').evidence.clientId, 'one');
  });

  it('names a message that is still delayed, until it is published', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/1');
    await using device = await kit.connect({ clientId: 'd' });
    await device.publish('$delayed/10/a/1', 'x', { qos: 1 });
    const dueAt = kit.clock.now() + 10_000;
    for (const topic of ['a/1', '$delayed/10/a/1']) {
      const { codes, of } = await ask(kit.broker, { topic, clientId: 'c', publisher: 'd' });
      assert.deepEqual(codes, ['delayed']);
      assert.equal(of('delayed').evidence.dueAt, dueAt);
    }
    assert.ok(!(await ask(kit.broker, { topic: 'a/1', publisher: 'other' })).codes.includes('delayed'));
    await kit.clock.advance('11s');
    assert.ok(!(await ask(kit.broker, { topic: 'a/1', clientId: 'c' })).codes.includes('delayed'));
  });

  it('names a client that is offline without a session', async () => {
    await using kit = await createTestBroker();
    const client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/1');
    await client.disconnect();
    await kit.broker.publish('a/1', 'x');
    assert.ok((await ask(kit.broker, { topic: 'a/1', clientId: 'c' })).codes.includes('offline_no_session'));
  });

  it('names a client without a subscription that matches, and only if nothing else is known', async () => {
    await using kit = await createTestBroker();
    await using other = await kit.connect({ clientId: 'o' });
    await other.subscribe('a/1');
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('x/y');
    await kit.broker.publish('a/1', 'x');
    const { codes, of } = await ask(kit.broker, { topic: 'a/1', clientId: 'c' });
    assert.deepEqual(codes, ['no_subscriber']);
    assert.equal(
      of('no_subscriber').text,
      'No subscription of client "c" matches topic "a/1": its subscriptions are "x/y".'
    );
    await client.subscribe('A/1');
    assert.deepEqual((await ask(kit.broker, { topic: 'a/1', clientId: 'c' })).codes, ['filter_case']);
  });

  it('sorts derived causes after the record that tells why a client has no session', async () => {
    await using kit = await createTestBroker();
    const client = await kit.connect({ clientId: 'c', sessionExpiry: 10 });
    await client.subscribe('a/1');
    await client.disconnect();
    await kit.clock.advance('1m');
    const { codes } = await ask(kit.broker, { topic: 'a/1', clientId: 'c' });
    assert.deepEqual(codes, ['session_ended', 'offline_no_session']);
  });

  it('names QoS 0 while the client is offline, and not before it was', async () => {
    await using kit = await createTestBroker({ mqueueStoreQos0: false });
    const client = await kit.connect({ clientId: 'c', sessionExpiry: 60 });
    await client.subscribe('a/1');
    const before = kit.clock.now();
    await kit.clock.advance('1s');
    await client.disconnect();
    const { kind, evidence } = (await ask(kit.broker, { topic: 'a/1', clientId: 'c' })).of('offline_qos0');
    assert.deepEqual([kind, evidence.grantedQos, evidence.disconnectedAt], ['derived', 0, kit.clock.now()]);
    assert.ok(!(await ask(kit.broker, { topic: 'a/1', clientId: 'c', at: before })).codes.includes('offline_qos0'));
    await kit.broker.publish('a/1', 'x', { qos: 1 });
    const { causes } = await kit.broker.monitor.why({ topic: 'a/1', clientId: 'c' });
    assert.deepEqual(
      causes.map(({ code, kind }) => `${code} ${kind}`),
      ['offline_qos0 recorded'],
      'the record says it, so it is not derived'
    );
  });

  for (const store of [undefined, memoryStore()]) {
    it(`names the place in the queue of a client that is offline, ${store === undefined ? 'without' : 'with'} a store`, async () => {
      await using kit = await createTestBroker(store === undefined ? {} : { store });
      const client = await kit.connect({ clientId: 'c', sessionExpiry: 60 });
      await client.subscribe('a/#', { qos: 1 });
      await client.disconnect();
      for (const topic of ['a/1', 'a/2', 'a/1']) await kit.broker.publish(topic, 'x', { qos: 1 });
      for (const question of [{ topic: 'a/2', clientId: 'c' }, { topic: 'a/2' }]) {
        const { codes, of } = await ask(kit.broker, question);
        assert.deepEqual(codes, ['offline_queued']);
        const { count, evidence } = of('offline_queued');
        assert.deepEqual([count, evidence.position, evidence.waiting], [1, 2, 3]);
        assert.equal(evidence.since, kit.clock.now());
      }
      assert.equal((await ask(kit.broker, { topic: 'a/1', clientId: 'c' })).of('offline_queued').count, 2);
      assert.deepEqual((await ask(kit.broker, { topic: 'a/9', clientId: 'c' })).codes, [], 'none is known');
    });
  }

  it('names the queue of a client that is offline after a restart of the broker', async () => {
    const store = memoryStore();
    const first = await startBroker({ store });
    const client = await rawClient(first, {
      clientId: 'c',
      properties: { receiveMaximum: 1, sessionExpiryInterval: 60 }
    });
    await granted(client, 1, { topic: 'a/#', qos: 1 });
    for (const topic of ['a/1', 'a/2', 'a/3']) await first.publish(topic, 'x', { qos: 1 });
    assert.equal((await rest(client)).length, 1);
    await first.stop();
    await using second = await startBroker({ store });
    const { isComplete, causes } = await second.monitor.why({ topic: 'a/3', clientId: 'c' });
    assert.equal(isComplete, true);
    const flying = await second.monitor.why({ topic: 'a/1', clientId: 'c' });
    assert.deepEqual(
      [flying.isComplete, flying.causes.map(({ code, count }) => [code, count])],
      [true, [['offline_queued', 1]]],
      'a message in flight is found in the store'
    );
    assert.deepEqual(
      causes.map(({ code, evidence }) => [code, evidence.position, evidence.waiting]),
      [['offline_queued', 2, 2]]
    );
  });

  it('names the acknowledgements that a client owes, and the messages that wait for them', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, {
      clientId: 'c',
      properties: { receiveMaximum: 2, sessionExpiryInterval: 60 }
    });
    await granted(client, 1, { topic: 'a/#', qos: 1 });
    for (const topic of ['a/1', 'a/2', 'a/3', 'a/4']) await broker.publish(topic, 'x', { qos: 1 });
    const waits = await ask(broker, { topic: 'a/4', clientId: 'c' });
    assert.deepEqual(waits.codes, ['awaiting_acknowledgements', 'queued']);
    const { evidence } = waits.of('awaiting_acknowledgements');
    assert.deepEqual([evidence.inflight, evidence.receiveMaximum, evidence.awaitingPuback], [2, 2, 2]);
    assert.deepEqual([waits.of('queued').evidence.position, waits.of('queued').evidence.waiting], [2, 2]);
    const sent = await ask(broker, { topic: 'a/1', clientId: 'c' });
    assert.deepEqual(sent.codes, ['awaiting_acknowledgements'], 'it was sent, and is not acknowledged');
    const ids = (await rest(client)).flatMap((packet) => (packet.cmd === 'publish' ? [packet.messageId ?? 0] : []));
    for (const messageId of ids) client.send({ cmd: 'puback', messageId, reasonCode: 0 } as never);
    await nothing(client).catch(() => undefined);
    assert.ok(!(await ask(broker, { topic: 'a/1', clientId: 'c' })).codes.includes('awaiting_acknowledgements'));
  });

  it('names the lower QoS of a message that waits, and of a subscription with QoS 0', async () => {
    await using kit = await createTestBroker();
    const client = await kit.connect({ clientId: 'c', sessionExpiry: 60 });
    await client.subscribe('a/1', { qos: 1 });
    await using other = await kit.connect({ clientId: 'o' });
    await other.subscribe('a/1');
    await client.disconnect();
    await kit.broker.publish('a/1', 'x', { qos: 2 });
    const { evidence, text, remedy } = (await ask(kit.broker, { topic: 'a/1', clientId: 'c' })).of('qos_lowered');
    assert.equal(remedy, 'Subscribe with the QoS of the messages.');
    assert.deepEqual([evidence.publishedQos, evidence.grantedQos], [2, 1]);
    assert.match(text, /^Client "c" receives topic "a\/1" with at most QoS 1: /);
    const { codes } = await ask(kit.broker, { topic: 'a/1', clientId: 'o' });
    assert.deepEqual(codes, ['qos_lowered']);
  });

  it('names why a client got no retained message', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker, { clientId: 'c' });
    await broker.publish('r/1', 'x', { retain: true });
    await broker.publish('r/2', 'x', { retain: true });
    await broker.publish('r/2', '', { retain: true });
    await granted(client, 1, { topic: 'r/+', qos: 1, retainHandling: 2 });
    const detailOf = async (topic: string) =>
      (await ask(broker, { topic, clientId: 'c' })).of('retained_missing').evidence.detail;
    assert.equal(await detailOf('r/1'), 'none are sent with Retain Handling 2');
    assert.equal(await detailOf('r/2'), 'the app deleted it with an empty payload');
    await broker.features.stop('retainer');
    const { remedy } = (await ask(broker, { topic: 'r/1', clientId: 'c' })).of('retained_missing');
    assert.match(remedy, /^Start the feature retainer.*`embermq ctl plugins load`/);
    await broker.features.start('retainer');
    const member = await rawClient(broker, { clientId: 'm' });
    await granted(member, 1, '$share/g/r/1');
    const { of } = await ask(broker, { topic: 'r/1', clientId: 'm' });
    assert.match(String(of('retained_missing').evidence.detail), /^shared subscriptions/);
  });

  it('names a retained message that waits for the acknowledgement of another one', async () => {
    await using broker = await startBroker();
    for (const topic of ['r/1', 'r/2']) await broker.publish(topic, 'x', { qos: 1, retain: true });
    const client = await rawClient(broker, { clientId: 'c', properties: { receiveMaximum: 1 } });
    await granted(client, 1, { topic: 'r/+', qos: 1 });
    assert.equal((await rest(client)).length, 1);
    const { isComplete, causes } = await broker.monitor.why({ topic: 'r/2', clientId: 'c' });
    assert.deepEqual(
      causes.map(({ code }) => code),
      ['awaiting_acknowledgements', 'retained_missing']
    );
    assert.match(String(causes[1].evidence.detail), /^it waits until the client has taken earlier messages/);
    assert.equal(isComplete, false, 'the topic of the message in flight is not kept');
  });

  it('names a right that was withdrawn from a subscription', async () => {
    await using kit = await createTestBroker({ auth: [acl([{ access: 'allow' }])], allowAnonymous: true });
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/#');
    await kit.broker.access.acl.set({ access: 'deny', topic: 'a/secret', action: 'subscribe' });
    await kit.broker.publish('a/secret', 'x');
    for (const question of [{ topic: 'a/secret', clientId: 'c' }, { topic: 'a/secret' }])
      assert.equal((await ask(kit.broker, question)).of('right_withdrawn').evidence.clientId, 'c');
    assert.ok(!(await ask(kit.broker, { topic: 'a/open', clientId: 'c' })).codes.includes('right_withdrawn'));
  });

  it('derives nothing for a message that arrived with QoS 1 and is retained', async () => {
    await using kit = await createTestBroker();
    await using client = await kit.connect({ clientId: 'c' });
    await client.subscribe('a/1', { qos: 1 });
    await kit.broker.publish('a/1', 'x', { qos: 1, retain: true });
    await kit.clock.settle();
    assert.deepEqual((await ask(kit.broker, { topic: 'a/1', clientId: 'c' })).codes, []);
  });

  it('finds the names of clients and topics that records have shortened', async () => {
    await using kit = await createTestBroker();
    const clientId = 'c'.repeat(1_000);
    const topic = `a/${'t'.repeat(1_000)}`;
    await using client = await kit.connect({ clientId });
    await client.subscribe(topic.toUpperCase());
    const { of } = await ask(kit.broker, { topic, clientId });
    assert.equal(String(of('filter_case').evidence.filter).length, 256);
  });

  it('describes ten receivers of a topic, and does not call the answer complete if there are more', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const away = await kit.connect({ clientId: 'away', sessionExpiry: '1h' });
    await away.subscribe('a', { qos: 1 });
    await away.disconnect();
    await broker.publish('a', 'x', { qos: 1 });
    for (let number = 1; number <= 11; number++) {
      const { isComplete, causes } = await broker.monitor.why({ topic: 'a' });
      assert.equal(isComplete, number <= 10, `${number} receivers`);
      assert.deepEqual(
        causes.map(({ evidence }) => evidence.clientId),
        ['away']
      );
      await granted(await rawClient(broker, { clientId: `c${number}` }), 1, 'a');
    }
  });
});
