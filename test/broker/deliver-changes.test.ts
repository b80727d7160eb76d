import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acl, memoryStore } from '../../lib/index.ts';
import type { PublishPacket } from '../../lib/packets/types.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { MortalStore } from '../store/support.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import { granted, nothing, rest, startBroker, subscribe, turns } from '../support/wire.ts';

/** A hook that changes messages for the client `c`, and counts its calls. */
function changing(calls: string[] = []) {
  return {
    deliver: ({ message, client }: { message: { topic: string; payload: Buffer }; client: { clientId: string } }) => {
      calls.push(`${client.clientId} ${message.topic}`);
      return client.clientId === 'c' ? { topic: `for/c/${message.topic}`, payload: `<${message.payload}>` } : true;
    }
  };
}

const PERSISTENT = { properties: { sessionExpiryInterval: 600 } };

async function published(client: RawClient): Promise<string[]> {
  return (await rest(client))
    .filter((packet): packet is PublishPacket => packet.cmd === 'publish')
    .map(({ topic, payload, qos, retain, dup }) => {
      return `${topic}=${payload} q${qos}${retain ? ' retain' : ''}${dup ? ' dup' : ''}`;
    });
}

describe('A deliver hook that returns a message', () => {
  for (const qos of [0, 1, 2] as const)
    it(`changes the message for that receiver only, at QoS ${qos}`, async () => {
      const calls: string[] = [];
      await using broker = await startBroker({ hooks: changing(calls) });
      const delivered: string[] = [];
      broker.on('message.delivered', ({ message, client }) => delivered.push(`${client.clientId} ${message.topic}`));
      const [c, d] = [
        await rawClient(broker, { clientId: 'c' }),
        await rawClient(broker, { clientId: 'd', version: 4 })
      ];
      for (const client of [c, d]) await granted(client, 1, { topic: 'a', qos });
      await broker.publish('a', 'x', { qos });
      assert.deepEqual(await published(c), [`for/c/a=<x> q${qos}`]);
      assert.deepEqual(await published(d), [`a=x q${qos}`]);
      assert.deepEqual(calls.sort(), ['c a', 'd a']);
      assert.deepEqual(delivered.sort(), ['c for/c/a', 'd a']);
    });

  it('changes single fields and keeps the others; QoS only downwards', async () => {
    await using broker = await startBroker({
      hooks: {
        deliver: ({ message }) => {
          const { topic } = message;
          if (topic === 'qos') return { qos: 0 };
          if (topic === 'up') return { qos: 2 };
          if (topic === 'retain') return { retain: true };
          if (topic === 'spread') return { ...message, payload: 'new' };
          return { properties: { contentType: 'text/plain' } };
        }
      }
    });
    const errors: string[] = [];
    broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    const client = await rawClient(broker);
    await granted(client, 1, { topic: '#', qos: 1 });
    const properties = { userProperties: [['a', 'b']], messageExpiryInterval: 60 } as const;
    for (const topic of ['qos', 'up', 'retain', 'spread', 'properties'])
      await broker.publish(topic, 'x', { qos: 1, properties: properties as never });
    const packets = (await rest(client)).filter((packet): packet is PublishPacket => packet.cmd === 'publish');
    assert.deepEqual(
      packets.map(({ topic, qos, retain, payload }) => [topic, qos, retain, String(payload)]),
      [
        ['qos', 0, false, 'x'],
        ['retain', 1, true, 'x'],
        ['spread', 1, false, 'new'],
        ['properties', 1, false, 'x']
      ]
    );
    assert.deepEqual(packets[2].properties?.userProperties, [['a', 'b']]);
    assert.equal(packets[2].properties?.messageExpiryInterval, 60);
    assert.deepEqual({ ...packets[3].properties }, { contentType: 'text/plain' });
    assert.deepEqual(errors, ['hook deliver: qos: expected at most 1, the QoS of the message, got 2']);
  });

  it('checks the message like a publish: an invalid topic, payload or property drops the delivery, and is reported', async () => {
    const answers = [
      { topic: 'a/+' },
      { topic: '' },
      { topic: 5 },
      { payload: 5 },
      { qos: 3 },
      { properties: { contentType: 5 } }
    ];
    for (const answer of answers) {
      await using broker = await startBroker({ hooks: { deliver: () => answer as never } });
      const errors: unknown[] = [];
      const drops: string[] = [];
      broker.on('error', ({ error }) => errors.push((error as { code?: string }).code));
      broker.on('message.dropped', ({ reason }) => drops.push(reason));
      const client = await rawClient(broker);
      await granted(client, 1, 'a');
      await broker.publish('a', 'x', { qos: 2 });
      await nothing(client);
      assert.deepEqual([errors.length, drops], [1, ['hook']], JSON.stringify(answer));
    }
  });

  it('keeps a QoS that upgradeQos has raised, unless it lowers that of the message', async () => {
    await using broker = await startBroker({
      upgradeQos: true,
      hooks: { deliver: ({ message }) => (message.topic === 'lower' ? { qos: 0 } : { payload: 'new' }) }
    });
    const client = await rawClient(broker);
    await granted(client, 1, { topic: '#', qos: 2 });
    for (const topic of ['a', 'lower']) await broker.publish(topic, 'x', { qos: 1 });
    assert.deepEqual(await published(client), ['a=new q2', 'lower=x q0']);
  });

  it('passes the changed message to the next deliver hook', async () => {
    await using broker = await startBroker();
    broker.hook('deliver', ({ message }) => ({ payload: `${message.payload}1` }));
    broker.hook('deliver', ({ message }) => ({ payload: `${message.payload}2` }));
    const client = await rawClient(broker);
    await granted(client, 1, 'a');
    await broker.publish('a', 'x');
    assert.deepEqual(await published(client), ['a=x12 q0']);
  });

  for (const isStored of [false, true])
    for (const qos of [0, 1, 2] as const)
      it(`changes messages that are queued, in flight and sent again, at QoS ${qos}${isStored ? ', with a store' : ''}`, async () => {
        const calls: string[] = [];
        await using broker = await startBroker({
          maxInflight: 2,
          hooks: changing(calls),
          ...(isStored ? { store: memoryStore() } : {})
        });
        const first = await rawClient(broker, { clientId: 'c', ...PERSISTENT });
        await granted(first, 1, { topic: 'a', qos });
        for (const text of ['1', '2', '3']) await broker.publish('a', text, { qos });
        const sent = ['1', '2', '3'].map((text) => `for/c/a=<${text}> q${qos}`);
        assert.deepEqual(await published(first), qos === 0 ? sent : sent.slice(0, 2));
        first.cut();
        await turns(20);
        await broker.publish('a', '4', { qos });
        await turns(20);
        const again = await rawClient(broker, { clientId: 'c', clean: false, ...PERSISTENT });
        const resent = sent.slice(0, 2).map((text) => `${text} dup`);
        assert.deepEqual(await published(again), qos === 0 ? [`for/c/a=<4> q0`] : resent);
        if (qos === 1) {
          for (const messageId of [1, 2]) again.send({ cmd: 'puback', messageId, reasonCode: 0 });
          await turns(20);
          assert.deepEqual(await published(again), ['for/c/a=<3> q1', 'for/c/a=<4> q1']);
        }
        const asked = { 0: 4, 1: 4, 2: 2 }[qos];
        const askedAgain = isStored && qos > 0 ? 2 : 0; // for messages that were in flight, and were read from the store
        assert.equal(
          calls.length,
          asked + askedAgain,
          'the hook is asked when a message is sent, and not when it is queued'
        );
      });

  for (const answer of [{ payload: 'new' }, { qos: 1 }, { qos: 0 }] as const)
    it(`uses the packet id of the store if the process ends right after the message was sent, for the answer ${JSON.stringify(answer)}`, async () => {
      const store = new MortalStore();
      const hooks = { deliver: () => answer };
      const broker = await startBroker({ store, hooks });
      const first = await rawClient(broker, { clientId: 'c', ...PERSISTENT });
      await granted(first, 1, { topic: 'a', qos: 2 });
      broker.publish('a', 'x', { qos: 2 }).catch(() => undefined);
      store.turnsBefore = () => 3;
      const sent = (await first.next('publish')) as PublishPacket;
      await store.die();
      const copy = await store.copy();
      copy.turnsBefore = () => 0;
      await using next = await startBroker({ store: copy, hooks });
      const again = await rawClient(next, { clientId: 'c', clean: false, ...PERSISTENT });
      const [resent] = (await rest(again)).filter((packet): packet is PublishPacket => packet.cmd === 'publish');
      if ('qos' in answer) assert.equal(sent.qos, answer.qos);
      else assert.deepEqual([resent.messageId, resent.dup, `${resent.payload}`], [sent.messageId, true, 'new']);
    });

  it('asks the hook again in the next process, for messages in flight and queued ones', async () => {
    const store = memoryStore();
    {
      await using broker = await startBroker({ maxInflight: 1, store, hooks: changing() });
      const first = await rawClient(broker, { clientId: 'c', ...PERSISTENT });
      await granted(first, 1, { topic: 'a', qos: 2 });
      for (const text of ['1', '2']) await broker.publish('a', text, { qos: 2 });
      assert.deepEqual(await published(first), ['for/c/a=<1> q2']);
      first.cut();
      await turns(20);
    }
    const calls: string[] = [];
    await using broker = await startBroker({ maxInflight: 2, store, hooks: changing(calls) });
    const again = await rawClient(broker, { clientId: 'c', clean: false, ...PERSISTENT });
    assert.deepEqual(await published(again), ['for/c/a=<1> q2 dup', 'for/c/a=<2> q2']);
    assert.deepEqual(calls, ['c a', 'c a']);
  });

  it('changes retained messages and those of shared subscriptions, but not $SYS', async () => {
    await using broker = await startBroker({ hooks: changing() });
    await broker.publish('a', 'r', { retain: true });
    const client = await rawClient(broker, { clientId: 'c' });
    client.send(subscribe(1, 'a'), subscribe(2, '$share/g/b'), subscribe(3, '$SYS/brokers/+/version'));
    await turns();
    await broker.publish('b', 's');
    assert.deepEqual((await published(client)).sort(), [
      `$SYS/brokers/embermq@127.0.0.1/version=${broker.version} q0 retain`,
      'for/c/a=<r> q0 retain',
      'for/c/b=<s> q0'
    ]);
    assert.deepEqual(String((await broker.retained.get('a'))?.payload), 'r', 'the retained message stays as it is');
  });

  it('changes messages of session.send as well', async () => {
    await using broker = await startBroker({ hooks: changing() });
    const client = await rawClient(broker, { clientId: 'c' });
    assert.equal(await broker.sessions.get('c').send({ topic: 'x', payload: 'y' }), true);
    assert.deepEqual(await published(client), ['for/c/x=<y> q0']);
  });

  it('keeps the mount point of the client, and refuses topics outside it', async () => {
    await using broker = await startBroker({
      mountpoint: 'm/%c/',
      hooks: { deliver: ({ message }) => ({ topic: message.topic.endsWith('out') ? 'm/d/x' : `${message.topic}/new` }) }
    });
    const drops: string[] = [];
    broker.on('message.dropped', ({ reason }) => drops.push(reason));
    broker.on('error', () => undefined);
    const client = await rawClient(broker, { clientId: 'c' });
    await granted(client, 1, '#');
    await broker.publish('m/c/in', 'x');
    await broker.publish('m/c/out', 'x');
    assert.deepEqual(await published(client), ['in/new=x q0']);
    assert.deepEqual(drops, ['hook']);
  });

  it('drops the message if access rules deny its topic to the client, even if they change while it is queued', async () => {
    const rules = [{ access: 'deny', topic: 'secret' }, { access: 'allow' }] as const;
    await using kit = await createTestBroker({
      auth: [acl(rules)],
      allowAnonymous: true,
      hooks: { deliver: ({ message }) => ({ topic: String(message.payload) }) }
    });
    const { broker } = kit;
    const drops: string[] = [];
    broker.on('message.dropped', ({ reason, message }) => drops.push(`${reason} ${message.topic}`));
    const first = await rawClient(broker, { clientId: 'c', ...PERSISTENT });
    await granted(first, 1, { topic: 'a', qos: 1 });
    for (const topic of ['open', 'secret']) await broker.publish('a', topic, { qos: 1 });
    assert.deepEqual(await published(first), ['open=open q1']);
    assert.deepEqual(drops, ['not_authorized a']);
    first.cut();
    await turns();
    for (const topic of ['later', 'fine']) await broker.publish('a', topic, { qos: 1 });
    await broker.access.create({ ...acl([{ access: 'deny', topic: 'later' }]), name: 'more' });
    await broker.access.reload('acl'); // so that the new rule comes first
    const again = await rawClient(broker, { clientId: 'c', clean: false, ...PERSISTENT });
    assert.deepEqual(await published(again), ['open=open q1 dup', 'fine=fine q1']);
    assert.deepEqual(drops, ['not_authorized a', 'not_authorized a']);
  });

  it('allows the hook to end its session, or the connection', async () => {
    for (const session of ['end', 'keep'] as const) {
      let isFirst = true;
      await using broker = await startBroker({
        hooks: {
          deliver: ({ client, message }) => {
            if (isFirst) broker.sessions.get(client.clientId).kick({ session });
            isFirst = false;
            return { payload: `<${message.payload}>` };
          }
        }
      });
      const drops: string[] = [];
      broker.on('message.dropped', ({ reason }) => drops.push(reason));
      const client = await rawClient(broker, { clientId: 'c', ...PERSISTENT });
      await granted(client, 1, { topic: 'a', qos: 1 });
      await broker.publish('a', 'x', { qos: 1 });
      await client.closed();
      assert.deepEqual(drops, session === 'end' ? ['session_terminated'] : []);
      if (session === 'end') continue;
      const again = await rawClient(broker, { clientId: 'c', clean: false, ...PERSISTENT });
      assert.deepEqual(await published(again), ['a=<x> q1']);
    }
  });

  for (const isStored of [false, true])
    it(`hands the original message over to another member of the share group${isStored ? ', with a store' : ''}`, async () => {
      const calls: string[] = [];
      const store = isStored ? { store: memoryStore() } : {};
      await using broker = await startBroker({ hooks: changing(calls), ...store });
      const first = await rawClient(broker, { clientId: 'c', ...PERSISTENT });
      await granted(first, 1, { topic: '$share/g/a', qos: 1 });
      await broker.publish('a', 'x', { qos: 1 });
      assert.deepEqual(await published(first), ['for/c/a=<x> q1']);
      const other = await rawClient(broker, { clientId: 'd', ...PERSISTENT });
      await granted(other, 1, { topic: '$share/g/a', qos: 1 });
      broker.sessions.get('c').kick({ session: 'end' });
      await turns(20);
      assert.deepEqual(await published(other), ['a=x q1']);
      assert.deepEqual(calls, ['c a', 'd a']);
    });
});
