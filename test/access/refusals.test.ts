import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import { type AccessRule, acl, type Broker, type Client } from '../../lib/index.ts';
import { createTestBroker, type TestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';
import { LimitedStore } from '../store/limited-store.ts';
import { rawClient } from '../support/raw-client.ts';

const MB = 1_048_576;

/** A refusal of everything below `no/`, and what the log says about it. */
interface Case {
  readonly by: string;
  readonly options?: TestBrokerOptions;
  readonly prepare?: (broker: Broker) => unknown;
  /** The codes of records of PUBLISH and SUBSCRIBE. */
  readonly code: string;
  /** Default: that of a subscription. */
  readonly publishDetail?: string | undefined;
  readonly subscribeDetail: string;
}

const DENY: AccessRule = { access: 'deny', topic: 'no/#' };
const ASKED: AuthSource = { name: 'http', authorize: ({ topic }) => !topic.startsWith('no') };
const FAILING: AuthSource = {
  name: 'http',
  authorize: ({ topic }) => {
    if (topic.startsWith('no')) throw new Error('connect ECONNREFUSED');
    return true;
  }
};
const UNDECIDED: AuthSource = {
  name: 'sql',
  authorize: ({ topic, undecided }) => {
    if (topic.startsWith('no')) undecided();
    return topic.startsWith('no') ? undefined : true;
  }
};

const CASES: readonly Case[] = [
  {
    by: 'a rule that is set at run time',
    prepare: ({ access }) => access.acl.set({ ...DENY, clientId: 'c', topic: 'no/#', action: 'pubsub' }),
    code: 'acl_record',
    subscribeDetail: 'an access rule that is set at run time: deny publish and subscribe to "no/#" for client "c"'
  },
  {
    by: 'a rule of a list',
    options: { auth: [acl([{ access: 'allow', topic: 'yes' }, DENY])], aclNomatch: 'allow', allowAnonymous: true },
    code: 'acl_file_rule',
    subscribeDetail: 'rule 2 of the source "acl": deny publish and subscribe to "no/#"'
  },
  {
    by: 'a rule that the client got with its authentication',
    options: { auth: [{ name: 'token', authenticate: () => ({ allow: true, rules: [DENY] }) }], aclNomatch: 'allow' },
    code: 'client_rule',
    subscribeDetail: 'rule 1 of those that the client got with its authentication: deny publish and subscribe to "no/#"'
  },
  {
    by: 'aclNomatch',
    options: { auth: [acl([{ access: 'allow', topic: 'yes' }])], allowAnonymous: true },
    code: 'acl_nomatch',
    publishDetail: undefined,
    subscribeDetail: 'no rule, source or hook allows it (option aclNomatch)'
  },
  {
    by: 'a source',
    options: { auth: [ASKED], allowAnonymous: true },
    code: 'source_denied',
    subscribeDetail: 'the source "http"'
  },
  {
    by: 'a source that fails',
    options: { auth: [FAILING], allowAnonymous: true },
    code: 'source_failed',
    subscribeDetail: 'the source "http" could not decide'
  },
  {
    by: 'a source that declares that it cannot decide',
    options: { auth: [UNDECIDED], allowAnonymous: true },
    code: 'source_failed',
    subscribeDetail: 'the source "sql" could not decide'
  },
  {
    by: 'a hook that authorizes',
    prepare: (broker) => {
      broker.hook('authorizePublish', ({ message }) => !message.topic.startsWith('no'));
      broker.hook('authorizeSubscribe', async ({ filter }) => !filter.startsWith('no'));
    },
    code: 'authorize_hook',
    publishDetail: undefined,
    subscribeDetail: 'a hook of the app'
  },
  {
    by: 'a hook whose answers are cached, with its reason',
    prepare: (broker) => {
      const refusal = { allow: false, why: 'the account is closed' } as const;
      const answer = (topic: string) => (topic.startsWith('no') ? refusal : true);
      broker.hook('authorizePublish', async ({ message }) => answer(message.topic), { cache: 'route' });
      broker.hook('authorizeSubscribe', ({ filter }) => answer(filter), { cache: 'route' });
    },
    code: 'authorize_hook',
    publishDetail: 'the account is closed',
    subscribeDetail: 'a hook of the app: the account is closed'
  },
  {
    by: 'a hook that fails',
    prepare: (broker) => {
      const answer = (topic: string) => {
        if (topic.startsWith('no')) throw new Error('a mistake');
        return true;
      };
      broker.hook('authorizePublish', ({ message }) => answer(message.topic));
      broker.hook('authorizeSubscribe', ({ filter }) => answer(filter));
    },
    code: 'authorize_hook',
    publishDetail: 'it has failed, or gave no answer in time',
    subscribeDetail: 'a hook of the app: it has failed, or gave no answer in time'
  }
];

async function start({ options, prepare }: Pick<Case, 'options' | 'prepare'>): Promise<TestBroker> {
  const kit = await createTestBroker(options);
  kit.broker.on('error', () => {}); // a failing hook is reported, too
  await prepare?.(kit.broker);
  return kit;
}

/** The records of refusals: the oldest first. */
function records(broker: Broker, clientId: string) {
  const { entries } = broker.monitor.reasons.list({ clientId });
  return entries
    .filter(({ code }) => !/^(connected|disconnected_.*|subscribed)$/.test(code))
    .map(({ code, topic, qos, count, detail }) => ({ code, topic, qos, count, detail }))
    .reverse();
}

/** The reason code of a refused operation. */
async function refused(done: Promise<unknown>): Promise<number> {
  const error = await done.then(
    () => ({ reasonCode: 0 }),
    (thrown: unknown) => thrown as { readonly reasonCode: number }
  );
  return error.reasonCode;
}

async function publish(client: Client, topic: string, qos: 0 | 1 | 2): Promise<void> {
  if (qos === 0) await client.publish(topic, 'x', { qos });
  else assert.ok((await refused(client.publish(topic, 'x', { qos }))) >= 0x80);
}

describe('The record of a refused PUBLISH', () => {
  for (const { code, subscribeDetail, ...more } of CASES) {
    const detail = 'publishDetail' in more ? more.publishDetail : subscribeDetail;

    it(`names ${more.by}, for the first message and for those after it, of each QoS`, async () => {
      await using kit = await start(more);
      await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
      for (const qos of [1, 1, 0, 0, 2, 0] as const) await publish(client, 'no/1', qos);
      await client.publish('yes', 'x', { qos: 0 });
      await kit.clock.settle();
      const same = { code, topic: 'no/1', detail };
      const yes = records(kit.broker, 'c').filter(({ topic }) => topic === 'yes');
      assert.deepEqual(yes, [{ code: 'no_subscribers', topic: 'yes', qos: 0, count: 1, detail: undefined }]);
      // all were dropped at the same time
      const no = records(kit.broker, 'c').filter(({ topic }) => topic === 'no/1');
      assert.deepEqual(
        no.sort((a, b) => a.qos - b.qos),
        [
          { ...same, qos: 0, count: 3 },
          { ...same, qos: 1, count: 2 },
          { ...same, qos: 2, count: 1 }
        ]
      );
    });

    it(`names ${more.by}, for a will`, async () => {
      await using kit = await start(more);
      const will = { topic: 'no/will', payload: 'x', qos: 1 } as const;
      const client = await kit.connect({ clientId: 'c', protocolVersion: 5, will });
      client.destroy();
      await kit.clock.settle();
      assert.deepEqual(records(kit.broker, 'c'), [{ code, topic: 'no/will', qos: 1, count: 1, detail }]);
    });
  }
});

describe('The record of a refused SUBSCRIBE', () => {
  for (const { subscribeDetail: detail, ...more } of CASES)
    it(`names ${more.by}, for the first filter and for the same one again`, async () => {
      await using kit = await start(more);
      await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
      for (const _ of [1, 2]) {
        const [answer] = await client.subscribe('no/1', { qos: 1 });
        assert.ok(answer >= 0x80, `${answer}`);
      }
      const record = { code: 'subscribe_refused', topic: 'no/1', qos: 0, count: 2, detail };
      assert.deepEqual(records(kit.broker, 'c'), [record]);
    });
});

/** The bytes of a PUBLISH of MQTT 5.0 with a first byte, properties in hexadecimal, and a packet id unless its QoS is 0. */
function publishBytes(first: number, topic: string, properties: string): Buffer {
  const name = Buffer.from(topic);
  const block = Buffer.from(properties, 'hex');
  const id = (first & 6) === 0 ? [] : [0, 1];
  const body = [0, name.length, ...name, ...id, block.length, ...block];
  return Buffer.from([first, body.length, ...body]);
}

/** A PUBLISH that a built-in check refuses. */
interface Forbidden {
  readonly what: string;
  readonly options: TestBrokerOptions;
  readonly packets: readonly Buffer[];
  readonly code: string;
  readonly topic?: string;
  readonly qos?: number;
  readonly detail: RegExp;
}

const ALIAS = '230001';
const FORBIDDEN: readonly Forbidden[] = [
  {
    what: 'a QoS above maxQosAllowed',
    options: { maxQosAllowed: 1 },
    packets: [publishBytes(0x34, 'a/b', '')],
    code: 'qos_not_allowed',
    qos: 2,
    detail: /QoS 2 is not supported \(option maxQosAllowed\)/
  },
  {
    what: 'a retained message',
    options: { retainAvailable: false },
    packets: [publishBytes(0x31, 'a/b', '')],
    code: 'qos_not_allowed',
    detail: /retained messages are not supported \(option retainAvailable\)/
  },
  {
    what: 'a retained message whose topic is given by a topic alias',
    options: { retainAvailable: false, zones: {} },
    packets: [publishBytes(0x30, 'a/b', ALIAS), publishBytes(0x33, '', ALIAS)],
    code: 'qos_not_allowed',
    qos: 1,
    detail: /retainAvailable/
  },
  {
    what: 'a topic with more levels than maxTopicLevels, on the fast path',
    options: { maxTopicLevels: 2 },
    packets: [publishBytes(0x30, 'a/b/c', '')],
    code: 'topic_not_allowed',
    topic: 'a/b/c',
    detail: /3 levels, more than the limit of 2/
  },
  {
    what: 'a topic with a wildcard',
    options: {},
    packets: [publishBytes(0x30, 'a/#', '')],
    code: 'topic_not_allowed',
    topic: 'a/#',
    detail: /no wildcards/
  },
  {
    what: 'a topic with control characters',
    options: { controlCharacters: 'refuse' },
    packets: [publishBytes(0x32, 'a/\u0007', '')],
    code: 'topic_not_allowed',
    topic: 'a/\u0007',
    qos: 1,
    detail: /U\+0007/
  },
  {
    what: 'a packet above maxPacketSize, of which only the beginning has arrived',
    options: { maxPacketSize: 1024 },
    packets: [Buffer.concat([Buffer.from([0x32, 0x80, 0x10, 0, 3]), Buffer.from('a/b')])],
    code: 'packet_too_large',
    qos: 1,
    detail: /2051 bytes, more than the limit of 1024/
  }
];

describe('The record of a PUBLISH that ends the connection', () => {
  for (const { what, options, packets, code, topic = 'a/b', qos = 0, detail } of FORBIDDEN)
    it(`names the limit and the topic of ${what}`, async () => {
      await using kit = await createTestBroker(options);
      const client = await rawClient(kit.broker, { clientId: 'c' });
      client.send(...packets);
      await client.closed();
      const found = records(kit.broker, 'c').find((record) => record.code === code);
      assert.deepEqual({ ...found, detail: '' }, { code, topic, qos, count: 1, detail: '' });
      assert.match(found?.detail ?? '', detail);
    });

  it('names the topic with its mount point', async () => {
    await using kit = await createTestBroker({ maxQosAllowed: 0, mountpoint: 'room/%c/' });
    const client = await rawClient(kit.broker, { clientId: 'c' });
    client.send(publishBytes(0x32, 'a/b', ''));
    await client.closed();
    assert.equal(records(kit.broker, 'c').find(({ code }) => code === 'qos_not_allowed')?.topic, 'room/c/a/b');
  });

  it('contains nothing about errors that are not about a limit', async () => {
    await using kit = await createTestBroker();
    const client = await rawClient(kit.broker, { clientId: 'c' });
    client.send(publishBytes(0x32, 'a/b', '').fill(0, 7, 9)); // the packet id is 0
    await client.closed();
    assert.deepEqual(records(kit.broker, 'c'), []);
  });
});

describe('The record of a PUBLISH that is refused after its right was checked', () => {
  it('names the publish hook, with its reason, and its failure', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    broker.on('error', () => {});
    broker.hook('publish', async ({ message: { topic } }) => {
      if (topic === 'broken') throw new Error('a mistake');
      if (topic === 'why') return { allow: false, why: 'too hot' };
      return topic !== 'no';
    });
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    for (const topic of ['no', 'why', 'broken']) for (const qos of [1, 0] as const) await publish(client, topic, qos);
    await kit.clock.settle();
    const of = (topic: string, detail: string | undefined) =>
      [1, 0].map((qos) => ({ code: 'publish_hook', topic, qos, count: 1, detail }));
    assert.deepEqual(records(broker, 'c'), [
      ...of('no', undefined),
      ...of('why', 'too hot'),
      ...of('broken', 'it has failed, or gave no answer in time')
    ]);
  });

  it('names the publish hook for messages of the app and of a rule', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    broker.on('error', () => {});
    const actions = [{ name: 'republish', params: { target_topic: 'broken/rule', payload_tmpl: 'x', target_qos: 0 } }];
    await broker.rules.create({ id: 'r', sql: 'SELECT * FROM "in"', actions });
    broker.hook('publish', ({ message: { topic } }) => {
      if (topic.startsWith('broken')) throw new Error('a mistake');
      return topic !== 'no';
    });
    await assert.rejects(async () => broker.publish('no', 'x'), { code: 'NOT_AUTHORIZED' });
    await assert.rejects(async () => broker.publish('broken/app', 'x', { qos: 1 }), { code: 'NOT_AUTHORIZED' });
    await broker.publish('in', 'x');
    await kit.clock.settle();
    const found = broker.monitor.reasons.list({ code: 'publish_hook' }).entries;
    const detail = 'it has failed, or gave no answer in time';
    assert.deepEqual(
      found.map(({ topic, qos, detail }) => ({ topic, qos, detail })),
      [
        { topic: 'broken/rule', qos: 0, detail },
        { topic: 'broken/app', qos: 1, detail },
        { topic: 'no', qos: 0, detail: undefined }
      ]
    );
    const { causes } = await broker.monitor.why({ topic: 'broken/app', publisher: '' });
    assert.equal(causes[0].code, 'publish_hook');
  });

  it('names the check of topics below $SYS, also for a will and a delayed message', async () => {
    await using kit = await createTestBroker();
    const will = { topic: '$SYS/will', payload: 'x' } as const;
    const client = await kit.connect({ clientId: 'c', protocolVersion: 5, will });
    await publish(client, '$SYS/x', 1);
    await publish(client, '$delayed/5/$SYS/y', 1);
    await publish(client, '$delayed/soon/z', 1);
    client.destroy();
    await kit.clock.settle();
    const found = records(kit.broker, 'c').map(({ code, topic, detail }) => ({ code, topic, detail }));
    const only = 'clients may publish there only if an access rule allows it';
    assert.deepEqual(found, [
      { code: 'system_topic', topic: '$SYS/x', detail: only },
      {
        code: 'system_topic',
        topic: '$delayed/5/$SYS/y',
        detail: 'clients may not delay messages to $SYS or $delayed'
      },
      {
        code: 'topic_invalid',
        topic: '$delayed/soon/z',
        detail: 'expected $delayed/<seconds>/<topic>'
      },
      { code: 'system_topic', topic: '$SYS/will', detail: only }
    ]);
    assert.equal(kit.broker.monitor.drops.list({ reason: 'not_authorized' }).entries.length, 3, 'they are drops');
  });

  it('names memory if the queue of a receiver has no room', async () => {
    let used = 0;
    await using kit = await createTestBroker({
      memoryHighWatermark: '100MB',
      memoryUsage: () => used,
      mqueueStoreQos0: false
    });
    const away = await kit.connect({ clientId: 'away', protocolVersion: 5, sessionExpiry: 600 });
    await away.subscribe('a/#', { qos: 1 });
    await away.disconnect();
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5 });
    used = 105_000_000;
    await kit.clock.advance('5s');
    for (const topic of ['a/1', 'a/1']) await publish(client, topic, 1);
    const detail = 'the queue of a receiver is full, and memory in use stays above memoryHighWatermark';
    assert.deepEqual(records(kit.broker, 'c'), [{ code: 'memory_watermark', topic: 'a/1', qos: 1, count: 2, detail }]);
    assert.equal(kit.broker.monitor.drops.list({ reason: 'quota' }).entries.length, 1);
  });

  it('names the store if its space is used up', async () => {
    const store = new LimitedStore(8 * MB, MB);
    await using kit = await createTestBroker({ store });
    kit.broker.on('error', () => {}); // it reports that its space is used up
    const away = await kit.connect({ clientId: 'away', protocolVersion: 5, sessionExpiry: 600 });
    await away.subscribe('a/#', { qos: 1 });
    await away.disconnect();
    const client = await kit.connect({
      clientId: 'c',
      protocolVersion: 5,
      will: { topic: 'a/will', payload: 'x', qos: 1 }
    });
    store.others = 8 * MB;
    await kit.broker.publish('a/0', 'x', { qos: 1 });
    await kit.clock.advance('2s');
    for (const topic of ['a/1', 'a/1']) await publish(client, topic, 1);
    client.destroy();
    await kit.clock.settle();
    assert.deepEqual(records(kit.broker, 'c'), [
      { code: 'store_full', topic: 'a/1', qos: 1, count: 2, detail: undefined },
      { code: 'store_full', topic: 'a/will', qos: 1, count: 1, detail: undefined }
    ]);
  });
});

describe('The record of a SUBSCRIBE that a built-in check refuses', () => {
  for (const [what, options, filter, detail] of [
    ['a filter with too many levels', { maxTopicLevels: 2 }, 'a/b/c', /^the filter is not allowed: .*maxTopicLevels/],
    ['shared subscriptions', { sharedSubscription: false }, '$share/g/a', /option sharedSubscription/],
    ['wildcards', { wildcardSubscription: false }, 'a/+', /option wildcardSubscription/],
    ['too many subscriptions of a client', { maxSubscriptions: 1 }, 'b', /^a limit is reached: .*maxSubscriptions/],
    ['too many subscriptions', { maxTotalSubscriptions: 1 }, 'b', /option maxTotalSubscriptions/]
  ] as const)
    it(`names ${what}`, async () => {
      await using kit = await createTestBroker({ ...options, leakCheck: false });
      const client = await rawClient(kit.broker, { clientId: 'c', version: 4 });
      const request = (topic: string, messageId: number) => {
        const rest = { noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
        client.send({ cmd: 'subscribe', messageId, subscriptions: [{ topic, qos: 0, ...rest }] });
      };
      request('first', 1);
      request(filter, 2);
      await client.next('suback');
      assert.deepEqual((await client.next('suback')).granted, [0x80]);
      const [record, ...others] = records(kit.broker, 'c');
      assert.deepEqual([record.code, record.topic, others], ['subscribe_refused', filter, []]);
      assert.match(record.detail ?? '', detail);
    });

  it('names the rule that denies a filter below $SYS, and otherwise the option', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const transportInfo = { transport: 'tcp', remoteAddress: '192.0.2.7' } as const;
    await using client = await kit.connect({ clientId: 'c', protocolVersion: 5, transportInfo });
    assert.deepEqual(await client.subscribe('$SYS/a'), [0x87]);
    await broker.access.acl.set({ access: 'deny', action: 'subscribe', topic: '$SYS/#' });
    assert.deepEqual(await client.subscribe('$SYS/b'), [0x87]);
    assert.deepEqual(
      records(broker, 'c').map(({ topic, detail }) => [topic, detail]),
      [
        [
          '$SYS/a',
          'the filter is not allowed: clients on other machines may not subscribe below $SYS (option sysForRemoteClients)'
        ],
        ['$SYS/b', 'an access rule that is set at run time: deny subscribe to "$SYS/#"']
      ]
    );
  });
});
