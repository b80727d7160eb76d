import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AccessAnswer, type AccessQuestion, acl, type Broker, createBroker } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

const QUIET = { sysInterval: 0, sysHeartbeat: 0 };

/** The answer and the deciding step, in short. */
function short({ access, steps }: AccessAnswer): string {
  return [access, ...steps.map(({ by, answer, source }) => [by, source, answer].filter(Boolean).join(' '))].join(', ');
}

async function ask(broker: Broker, question: Partial<AccessQuestion>): Promise<string> {
  return short(await broker.access.explain({ clientId: 'c', action: 'publish', topic: 'a', ...question }));
}

describe('broker.access.explain', () => {
  it('names the rule that decides, in the order in which a packet is authorized', async () => {
    await using broker = await createBroker({
      ...QUIET,
      aclNomatch: 'deny',
      auth: [
        { ...acl([{ access: 'deny', topic: 'last/#' }]), name: 'file', hasLastRules: true },
        acl([
          { access: 'allow', topic: ['a', 'b'], username: 'u' },
          { access: 'allow', topic: 's/#', action: 'subscribe', address: '10.0.0.0/8' }
        ])
      ]
    }).start();
    await broker.access.acl.set({ clientId: 'c', topic: 'r/%c', action: 'pub', access: 'allow' });
    assert.equal(await ask(broker, { topic: 'r/c' }), 'allow, records allow');
    assert.equal(await ask(broker, { topic: 'b', username: 'u' }), 'allow, rules acl allow');
    assert.equal(await ask(broker, { topic: 'b' }), 'deny, default deny');
    assert.equal(await ask(broker, { topic: 'last/x' }), 'deny, rules file deny');
    assert.equal(await ask(broker, { topic: '$SYS/x' }), 'deny, builtin deny');
    const { steps } = await broker.access.explain({
      remoteAddress: '10.1.2.3',
      action: 'subscribe',
      topic: '$share/g/s/+'
    });
    assert.deepEqual(steps, [
      {
        by: 'rules',
        answer: 'allow',
        source: 'acl',
        rule: { access: 'allow', action: 'subscribe', topic: 's/#', address: '10.0.0.0/8' },
        index: 1
      }
    ]);
    const [record] = (await broker.access.explain({ clientId: 'c', action: 'publish', topic: 'r/c' })).steps;
    assert.deepEqual(record.rule, { access: 'allow', action: 'publish', topic: 'r/%c', clientId: 'c' });
    assert.equal(
      await ask(broker, { action: 'subscribe', topic: '$SYS/x', remoteAddress: '192.0.2.1' }),
      'deny, builtin deny'
    );
  });

  it('checks the client of a session with its properties, connected or not', async () => {
    await using kit = await createTestBroker({
      hooks: {
        authenticate: ({ username }) =>
          username === 'boss'
            ? { allow: true, isSuperuser: true }
            : {
                allow: true,
                rules: [
                  { access: 'deny', topic: 'x' },
                  { access: 'allow', topic: 'a' }
                ]
              }
      }
    });
    const { broker } = kit;
    const client = await kit.connect({ clientId: 'c', username: 'ann', sessionExpiry: 60 });
    await kit.connect({ clientId: 'b', username: 'boss' });
    assert.equal(await ask(broker, {}), 'allow, client allow');
    assert.equal(await ask(broker, { topic: 'z' }), 'deny, default deny');
    assert.equal(await ask(broker, { clientId: 'b', topic: '$SYS/x' }), 'allow, superuser allow');
    await client.disconnect();
    const {
      steps,
      hasSession,
      client: judged
    } = await broker.access.explain({
      clientId: 'c',
      action: 'publish',
      topic: 'a'
    });
    assert.deepEqual([hasSession, judged.username, steps[0].index], [true, 'ann', 1]);
    assert.equal(
      await ask(broker, { username: 'other' }),
      'allow, default allow',
      'another client with this client id'
    );
  });

  it('considers bans, and the superuser flag of records, for a client without a session', async () => {
    await using broker = await createBroker({ ...QUIET, aclNomatch: 'deny' }).start();
    await broker.access.logins.create('root', 'a password', { isSuperuser: true });
    assert.equal(await ask(broker, { username: 'root' }), 'allow, superuser allow');
    await broker.access.stop('records');
    assert.equal(await ask(broker, { username: 'root' }), 'deny, default deny', 'the flag of a stopped record');
    await broker.access.start('records');
    assert.equal(await ask(broker, { username: 'root' }), 'allow, superuser allow');
    await broker.access.banned.create({ kind: 'address', who: '192.0.2.7' });
    assert.equal(await ask(broker, { username: 'root', remoteAddress: '192.0.2.7' }), 'deny, ban deny');
  });

  it('asks hooks and sources if requested, and otherwise reports that the answer is unknown', async () => {
    const asked: string[] = [];
    await using broker = await createBroker({
      ...QUIET,
      hooks: {
        authorizePublish: ({ message }) => {
          asked.push(`hook ${message.topic}`);
          return message.topic === 'h' ? { allow: false, reasonCode: 0x87 } : undefined;
        }
      },
      auth: [
        {
          name: 'server',
          authorize: async ({ action, topic, undecided }) => {
            asked.push(`server ${action} ${topic}`);
            if (topic === 'down') undecided();
            return topic === 'down' ? false : topic === 's' ? true : undefined;
          }
        }
      ]
    }).start();
    broker.on('error', () => {});
    assert.equal(await ask(broker, {}), 'unknown, hook unasked, source server unasked, default deny');
    assert.deepEqual(asked, []);
    assert.equal(await ask(broker, { topic: 's', ask: true }), 'allow, hook none, source server allow');
    assert.equal(await ask(broker, { topic: 'x', ask: true }), 'deny, hook none, source server none, default deny');
    assert.equal(await ask(broker, { topic: 'down', ask: true }), 'deny, hook none, source server failed');
    const { steps } = await broker.access.explain({ clientId: 'c', action: 'publish', topic: 'h', ask: true });
    assert.deepEqual(steps, [{ by: 'hook', answer: 'deny', reasonCode: 0x87 }]);
    assert.equal(asked[0], 'hook s');
  });

  it('follows a hook that replaces the filter, and asks the others about the new one', async () => {
    await using broker = await createBroker({
      ...QUIET,
      auth: [acl([{ access: 'deny', topic: 'secret/#' }])],
      hooks: {
        authorizeSubscribe: ({ filter }) =>
          filter === 'alias' ? { filter: 'real' } : filter === 'trap' ? { filter: 'secret/x' } : undefined
      }
    }).start();
    const sub = { action: 'subscribe', ask: true } as const;
    assert.equal(await ask(broker, { ...sub, topic: 'alias' }), 'allow, hook allow, hook allow');
    assert.equal(await ask(broker, { ...sub, topic: 'trap' }), 'deny, hook allow, rules acl deny');
  });

  it('counts nothing and caches nothing', async () => {
    await using broker = await createBroker({ ...QUIET, auth: [acl([{ access: 'allow', topic: 'a' }])] }).start();
    await broker.connect({ clientId: 'c' });
    const before = JSON.stringify(broker.metrics);
    for (const action of ['publish', 'subscribe'] as const) await ask(broker, { action });
    assert.deepEqual(broker.access.cache('c'), []);
    assert.equal(JSON.stringify(broker.metrics), before);
  });

  it('checks the rewritten topic, and the inner topic of a delayed message', async () => {
    await using broker = await createBroker({
      ...QUIET,
      delayedPublish: true,
      rewrite: [{ filter: 'old/#', pattern: '^old/(.+)$', target: 'new/$1' }],
      auth: [acl([{ access: 'allow', topic: 'new/x' }])]
    }).start();
    assert.equal(await ask(broker, { topic: 'old/x' }), 'allow, rules acl allow');
    const { topic, access } = await broker.access.explain({
      clientId: 'c',
      action: 'publish',
      topic: '$delayed/5/new/x'
    });
    assert.deepEqual([topic, access], ['new/x', 'allow']);
  });

  it('refuses questions that are not valid', async () => {
    await using broker = await createBroker(QUIET).start();
    for (const [question, code] of [
      [{ topic: 'a/+' }, 'TOPIC_NAME_INVALID'],
      [{ action: 'subscribe', topic: 'a/#/b' }, 'TOPIC_FILTER_INVALID'],
      [{ action: 'read' as never }, 'OPTION_INVALID'],
      [{ user: 'x' } as object, 'OPTION_UNKNOWN'],
      [{ zone: 'nowhere', username: 'x' }, 'OPTION_INVALID'],
      [{ username: 5 as never }, 'OPTION_INVALID'],
      [{ remoteAddress: 'abc' }, 'OPTION_INVALID'],
      [{ remoteAddress: '10.0.0.0/8' }, 'OPTION_INVALID']
    ] as const)
      await assert.rejects(ask(broker, question), { code });
  });
});
