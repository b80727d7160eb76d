import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import mqtt, { type IClientOptions } from 'mqtt';
import { listen } from '../../adapters/net/index.ts';
import { type AccessRule, acl, type Broker, type BrokerOptions, createBroker, users } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { clientFinal } from '../support/scram-client.ts';

/** Names that would change a topic filter if they were inserted into it. */
const HOSTILE_NAMES = ['#', '+', 'a/b', 'a/#', '+/+', '../x', 'x/../y', '/', '$SYS', '%c', '%u'];
const NOT_AUTHORIZED = 0x87;

/** A broker that is reached through TCP, and a function that connects a client of MQTT.js. */
async function onTcp(options: BrokerOptions) {
  const broker = createBroker(options);
  const listener = listen(broker, { port: 0 });
  await broker.start();
  const clients: mqtt.MqttClient[] = [];
  const connect = async (more: IClientOptions): Promise<mqtt.MqttClient> => {
    const url = `mqtt://127.0.0.1:${listener.port}`;
    const client = await mqtt.connectAsync(url, { protocolVersion: 5, reconnectPeriod: 0, ...more });
    clients.push(client);
    return client;
  };
  return {
    broker,
    connect,
    async [Symbol.asyncDispose]() {
      for (const client of clients) await client.endAsync(true);
      await broker.stop();
    }
  };
}

/** The reason code of the answer to a publish of MQTT.js at QoS 1; 0 also if there was no subscriber. */
async function publishCode(client: mqtt.MqttClient, topic: string, more: mqtt.IClientPublishOptions = {}) {
  const code = await client.publishAsync(topic, 'x', { qos: 1, ...more }).then(
    () => 0,
    ({ code }: { code: number }) => code
  );
  return code === 0x10 ? 0 : code;
}

async function subscribeCode(client: mqtt.MqttClient, filter: string): Promise<number> {
  return client.subscribeAsync(filter, { qos: 1 }).then(
    (granted) => granted[0].qos,
    ({ packet }: { packet: { granted: number[] } }) => packet.granted[0]
  );
}

/** All messages that the broker delivers, by topic. */
function published(broker: Broker, filter = '#'): string[] {
  const topics: string[] = [];
  broker.subscribe(filter, ({ topic }) => void topics.push(topic));
  return topics;
}

describe('a hostile user name or client id', () => {
  const rules: AccessRule[] = [
    { access: 'deny', topic: 'closed/%c/#' },
    { access: 'deny', topic: 'closed/%u/#' },
    { access: 'allow', topic: 'closed/#' },
    { access: 'allow', topic: 'client/%c/#' },
    { access: 'allow', topic: 'user/%u/#' }
  ];
  const topics = ['client/victim/up', 'client/a/b/up', 'user/victim/up', 'user/a/b/up', 'client/x/y', 'user//up'];
  const filters = ['client/#', 'client/+/up', 'client/victim/#', 'user/#', 'user/+/up', 'user/victim/#', '#', '+/+/up'];

  for (const name of HOSTILE_NAMES) {
    it(`gives ${name} no rights of other clients, neither to publish nor to subscribe`, async () => {
      await using tcp = await onTcp({ allowAnonymous: true, auth: [acl(rules)] });
      for (const identity of [{ clientId: name }, { clientId: 'c', username: name }]) {
        const client = await tcp.connect(identity);
        for (const topic of topics) assert.equal(await publishCode(client, topic), NOT_AUTHORIZED, topic);
        for (const filter of filters) assert.equal(await subscribeCode(client, filter), NOT_AUTHORIZED, filter);
        await client.endAsync(true);
      }
    });
  }

  it('applies a rule that denies by the name of the client to a name with wildcards', async () => {
    await using tcp = await onTcp({ allowAnonymous: true, auth: [acl(rules)] });
    for (const name of ['#', '+', 'a/b']) {
      const client = await tcp.connect({ clientId: name, username: name });
      assert.equal(await publishCode(client, 'closed/victim/up'), NOT_AUTHORIZED);
      await client.endAsync(true);
    }
    const ordinary = await tcp.connect({ clientId: 'ordinary', username: 'ordinary' });
    assert.equal(await publishCode(ordinary, 'closed/victim/up'), 0);
  });
});

describe('a will', () => {
  const WILL = { topic: 'denied/will', payload: Buffer.from('x'), qos: 1, retain: true } as const;

  it('does not publish a will to a denied topic, regardless of how the connection ends', async () => {
    await using kit = await createTestBroker({
      leaks: 'ignore',
      allowAnonymous: true,
      auth: [acl([{ access: 'deny', topic: 'denied/#', clientId: 'c' }, { access: 'allow' }])]
    });
    const topics = published(kit.broker);
    for (const protocolVersion of [4, 5] as const) {
      const client = await kit.connect({ clientId: 'c', protocolVersion, will: WILL });
      client.destroy();
      await kit.clock.settle();
    }
    assert.deepEqual(topics, []);
    assert.equal(kit.broker.retained.get('denied/will'), undefined);
  });

  it('authorizes a will when it is published, so that a right that was withdrawn in the meantime counts', async () => {
    await using kit = await createTestBroker({ allowAnonymous: true, leaks: 'ignore' });
    const topics = published(kit.broker);
    const client = await kit.connect({ clientId: 'c', will: WILL });
    await kit.broker.access.acl.set({ access: 'deny', topic: 'denied/#' });
    client.destroy();
    await kit.clock.settle();
    assert.deepEqual(topics, []);
  });

  it('does not publish the will of a refused login', async () => {
    await using kit = await createTestBroker({
      leaks: 'ignore',
      auth: [users([{ username: 'ann', password: 'right' }])]
    });
    const topics = published(kit.broker);
    for (const protocolVersion of [4, 5] as const) {
      for (const login of [{ username: 'ann', password: 'wrong' }, { username: 'bob', password: 'right' }, {}])
        await assert.rejects(kit.connect({ clientId: 'c', protocolVersion, will: WILL, ...login }));
    }
    await kit.clock.advance('1h');
    assert.deepEqual(topics, []);
  });

  it('does not publish a will to a topic under $SYS', async () => {
    await using kit = await createTestBroker({ leaks: 'ignore' });
    const topics = published(kit.broker, '$SYS/forged/#');
    const client = await kit
      .connect({ clientId: 'c', will: { ...WILL, topic: '$SYS/forged/will' } })
      .catch(() => undefined);
    client?.destroy();
    await kit.clock.settle();
    assert.deepEqual(topics, []);
  });
});

describe('a right that was withdrawn', () => {
  it('delivers no retained message after a right was withdrawn, neither to an existing subscription nor to a new one', async () => {
    await using kit = await createTestBroker({ allowAnonymous: true });
    const { broker, clock } = kit;
    await broker.publish('a/x', 'first', { retain: true });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    const topics: string[] = [];
    client.on('message', ({ topic }) => topics.push(topic));
    await client.subscribe('a/#');
    await clock.settle();
    assert.deepEqual(topics.splice(0), ['a/x']);
    await broker.access.acl.set({ access: 'deny', topic: 'a/x' });
    await client.subscribe('a/#');
    await client.subscribe('+/x');
    await broker.publish('a/x', 'second', { retain: true });
    await clock.settle();
    assert.deepEqual(topics, []);
    assert.deepEqual(await client.subscribe('a/x').catch((error) => error.message), [NOT_AUTHORIZED]);
  });

  it('refuses a topic alias whose topic the client may no longer publish to', async () => {
    await using tcp = await onTcp({ allowAnonymous: true });
    const client = await tcp.connect({ clientId: 'c' });
    const { topicAliasMaximum = 0 } = client.options.properties ?? {};
    assert.equal(topicAliasMaximum, 0);
    assert.equal(await publishCode(client, 'a/x', { properties: { topicAlias: 1 } }), 0);
    assert.equal(await publishCode(client, '', { properties: { topicAlias: 1 } }), 0);
    await tcp.broker.access.acl.set({ access: 'deny', topic: 'a/x' });
    assert.equal(await publishCode(client, '', { properties: { topicAlias: 1 } }), NOT_AUTHORIZED);
  });
});

describe('a rewritten topic', () => {
  const options: BrokerOptions = {
    allowAnonymous: true,
    rewrite: ['open/# ^open/(.+)$ $1'],
    auth: [acl([{ access: 'deny', topic: 'secret/#' }, { access: 'allow' }])]
  };

  it('authorizes the rewritten topic of subscriptions, messages and wills', async () => {
    await using tcp = await onTcp(options);
    const topics = published(tcp.broker);
    const client = await tcp.connect({ clientId: 'c' });
    assert.equal(await subscribeCode(client, 'open/secret/x'), NOT_AUTHORIZED);
    assert.equal(await subscribeCode(client, '$share/g/open/secret/x'), NOT_AUTHORIZED);
    assert.equal(await publishCode(client, 'open/secret/x'), NOT_AUTHORIZED);
    assert.equal(await publishCode(client, '$delayed/1/secret/x'), NOT_AUTHORIZED);
    assert.equal(await publishCode(client, 'open/fine/x'), 0);
    assert.deepEqual(topics, ['fine/x']);
  });

  it('does not rewrite a topic to one under $SYS', async () => {
    await using tcp = await onTcp({ ...options, auth: [] });
    const forged = published(tcp.broker, '$SYS/forged');
    const client = await tcp.connect({ clientId: 'c' });
    assert.equal(await publishCode(client, 'open/$SYS/forged'), NOT_AUTHORIZED);
    assert.deepEqual(forged, []);
  });
});

describe('messages under $SYS from clients', () => {
  it('refuses messages under $SYS from clients in every form, even with a rule that allows everything, and delivers them to no client', async () => {
    await using tcp = await onTcp({ allowAnonymous: true, auth: [acl([{ access: 'allow' }])] });
    const forged = published(tcp.broker, '$SYS/forged/#');
    const client = await tcp.connect({ clientId: 'c' });
    for (const topic of ['$SYS/forged/x', '$delayed/1/$SYS/forged/x'])
      for (const qos of [1, 2] as const)
        assert.equal(await publishCode(client, topic, { qos, retain: true }), NOT_AUTHORIZED, `${topic} at QoS ${qos}`);
    await client.publishAsync('$SYS/forged/x', 'x', { qos: 0 });
    assert.equal(await publishCode(client, '$SYS/forged/x', { properties: { topicAlias: 1 } }), NOT_AUTHORIZED);
    assert.equal(await publishCode(client, '', { properties: { topicAlias: 1 } }), NOT_AUTHORIZED);
    assert.deepEqual(forged, []);
    assert.equal(tcp.broker.retained.get('$SYS/forged/x'), undefined);
  });
});

describe('the takeover of a client id by another user', () => {
  it('refuses the takeover by another user with the option, and leaves session and will of the connected client unchanged', async () => {
    await using kit = await createTestBroker({
      leaks: 'ignore',
      takeoverByOtherUser: 'refuse',
      auth: [
        users([
          { username: 'ann', password: 'a' },
          { username: 'eve', password: 'e' }
        ])
      ]
    });
    const topics = published(kit.broker);
    const will = { topic: 'will', payload: 'x' };
    await using victim = await kit.connect({ clientId: 'c', username: 'ann', password: 'a', will });
    await victim.subscribe('mine');
    for (const clean of [true, false])
      await assert.rejects(kit.connect({ clientId: 'c', username: 'eve', password: 'e', clean }));
    await kit.broker.publish('mine', 'x');
    await kit.clock.settle();
    assert.equal(victim.isConnected, true);
    assert.deepEqual(topics, ['mine']);
  });
});

describe('a ban', () => {
  it('keeps out a client whose authentication gives it a banned user name', async () => {
    await using kit = await createTestBroker({
      hooks: { authenticate: ({ username }) => (username === 'alias' ? { allow: true, username: 'bob' } : undefined) }
    });
    const { broker } = kit;
    await broker.access.usernames.create('rec', 'right');
    await broker.access.banned.create({ kind: 'username', who: 'rec' });
    await broker.access.banned.create({ kind: 'username', who: 'bob' });
    assert.equal(await connackOf(kit, { username: 'rec', password: 'right' }), 0x8a);
    assert.equal(await scram(broker, 'rec', 'right'), 0x8a);
    assert.equal(await connackOf(kit, { username: 'alias' }), 0x8a);
  });
});

describe('a client id with a password', () => {
  it('refuses enhanced authentication as another user for a client id with a password', async () => {
    await using kit = await createTestBroker({
      hooks: { authenticate: ({ method }) => (method === 'JWT' ? { allow: true } : undefined) }
    });
    const { broker } = kit;
    await broker.access.usernames.create('fu', 'right');
    assert.equal(await scram(broker, 'fu', 'right'), 0);
    await broker.access.clientIds.create('c', 'of the device');
    assert.equal(await scram(broker, 'fu', 'right'), 0x8c);
    assert.equal(await connackOf(kit, { properties: { authenticationMethod: 'JWT' } }), 0x8c);
    assert.equal(await connackOf(kit, { password: 'of the device' }), 0);
  });
});

describe('a zone without authentication', () => {
  it('admits no client if allowAnonymous is set to false, and does not ask hooks', async () => {
    let asked = 0;
    const authenticate = () => ++asked > 0;
    for (const [allowAnonymous, code] of [
      [undefined, 0],
      [true, 0],
      [false, 0x87]
    ] as const) {
      await using kit = await createTestBroker({ bypassAuthPlugins: true, allowAnonymous, hooks: { authenticate } });
      assert.equal(await connackOf(kit, { username: 'ann', password: 'x' }), code);
    }
    assert.equal(asked, 0);
  });
});

/** The reason code of the answer to a CONNECT; 0 if it is accepted. */
async function connackOf(kit: Awaited<ReturnType<typeof createTestBroker>>, options: object): Promise<number> {
  try {
    await using _ = await kit.connect({ clientId: 'c', protocolVersion: 5, ...options });
    return 0;
  } catch (error) {
    return (error as { reasonCode: number }).reasonCode;
  }
}

/** Connect with SCRAM-SHA-256 as the client `c`. @returns 0, or the reason code of the refusal */
async function scram(broker: Broker, name: string, password: string): Promise<number> {
  const bare = `n=${name},r=nonce`;
  const method = 'SCRAM-SHA-256';
  try {
    await using _ = await broker.connect({
      clientId: 'c',
      protocolVersion: 5,
      properties: { authenticationMethod: method, authenticationData: Buffer.from(`n,,${bare}`) },
      onAuth: ({ data }) => Buffer.from(clientFinal(password, bare, String(data), method))
    });
    return 0;
  } catch (error) {
    return (error as { reasonCode: number }).reasonCode;
  }
}
