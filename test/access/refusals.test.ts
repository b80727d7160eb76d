import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import { type AccessRule, acl, type Broker, type Client } from '../../lib/index.ts';
import { createTestBroker, type TestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';

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
      assert.deepEqual(
        records(kit.broker, 'c').filter(({ topic }) => topic !== 'yes'),
        [
          { ...same, qos: 1, count: 2 },
          { ...same, qos: 2, count: 1 },
          { ...same, qos: 0, count: 3 }
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
