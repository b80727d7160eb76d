import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AuthSource } from '../../lib/adapter.ts';
import { createBroker, type InvalidInput, memoryStore, users } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** Connect with MQTT 5.0. @returns 0, or the reason code of the refusal */
async function attempt(
  broker: { connect: ReturnType<typeof createBroker>['connect'] },
  username?: string,
  password?: string,
  clientId = 'c'
): Promise<number> {
  try {
    await using _ = await broker.connect({ clientId, username, password, protocolVersion: 5 });
    return 0;
  } catch (error) {
    return (error as { reasonCode: number }).reasonCode;
  }
}

/** A source with the answers of a test, which records its calls. */
function source(name: string, answer: AuthSource['authenticate'], calls: string[] = []): AuthSource {
  return {
    name,
    open: () => void calls.push(`open ${name}`),
    close: () => void calls.push(`close ${name}`),
    authenticate: (request) => {
      calls.push(`ask ${name}`);
      return answer?.(request);
    }
  };
}

describe('users in the options', () => {
  it('admits users of the options with the right password, and closes the broker to all others', async () => {
    await using kit = await createTestBroker({
      auth: [
        users([
          { username: 'ann', password: 'a' },
          { username: 'root', password: 'r', isSuperuser: true }
        ])
      ]
    });
    const { broker } = kit;
    assert.equal(await attempt(broker, 'ann', 'a'), 0);
    assert.equal(await attempt(broker, 'ann', 'b'), 0x86);
    assert.equal(await attempt(broker, 'ann'), 0x86);
    assert.equal(await attempt(broker, 'bob', 'a'), 0x86);
    assert.equal(await attempt(broker), 0x87);
    await using root = await broker.connect({ clientId: 'r', username: 'root', password: 'r' });
    assert.equal(broker.sessions.get('r')?.client.isSuperuser, true);
    await root.publish('$SYS/forged', 'x', { qos: 1 });
    assert.deepEqual(broker.access.sources, ['users']);
  });

  it('does not reset a password that was changed at run time', async () => {
    const store = memoryStore();
    const auth = [users([{ username: 'ann', password: 'first' }])];
    for (const password of ['first', 'second']) {
      const broker = await createBroker({ store, auth }).start();
      assert.equal(await attempt(broker, 'ann', password), 0);
      await broker.access.logins.update('ann', 'second');
      await broker.stop();
    }
  });

  it('keeps the documented chain if allowAnonymous is set explicitly', async () => {
    await using kit = await createTestBroker({
      allowAnonymous: true,
      auth: [users([{ username: 'ann', password: 'a' }])]
    });
    assert.equal(await attempt(kit.broker), 0);
    assert.equal(await attempt(kit.broker, 'bob', 'x'), 0);
    assert.equal(await attempt(kit.broker, 'ann', 'x'), 0x86, 'a known name needs its password');
  });
});

describe('records that are added at run time', () => {
  it('checks added records at the next CONNECT, and treats unknown clients as before', async () => {
    await using kit = await createTestBroker();
    const { access } = kit.broker;
    assert.equal(await attempt(kit.broker, 'ann', 'x', 'c1'), 0);
    await access.usernames.create('ann', 'a');
    await access.clientIds.create('c1', 'b');
    assert.equal(await attempt(kit.broker, 'ann', 'x', 'c1'), 0x86);
    assert.equal(await attempt(kit.broker, 'ann', 'a', 'c1'), 0, 'the password of the user name');
    assert.equal(await attempt(kit.broker, 'bob', 'b', 'c1'), 0, 'the password of the client id');
    assert.equal(await attempt(kit.broker, 'bob', 'x', 'c2'), 0);
    await access.clientIds.delete('c1');
    assert.equal(await attempt(kit.broker, 'bob', 'x', 'c1'), 0);
  });

  it('persists records that are added at run time', async () => {
    const store = memoryStore();
    const first = await createBroker({ store }).start();
    await first.access.usernames.create('ann', 'a');
    await first.access.acl.set({ access: 'deny', username: 'ann', topic: 'secret' });
    await first.access.banned.create({ kind: 'clientId', who: 'bad', until: Infinity });
    await first.stop();
    const second = createBroker({ store });
    await using _ = await second.start();
    assert.equal(await attempt(second, 'ann', 'x'), 0x86);
    assert.equal(await attempt(second, undefined, undefined, 'bad'), 0x8a);
    assert.deepEqual(second.access.acl.list('username'), [
      { username: 'ann', topic: 'secret', action: 'pubsub', access: 'deny' }
    ]);
    await using client = await second.connect({ username: 'ann', password: 'a', protocolVersion: 5 });
    await assert.rejects(client.publish('secret', 'x', { qos: 1 }), { reasonCode: 0x87 });
  });
});

describe('a chain of sources', () => {
  it('asks sources in the order in which they were loaded, until one knows the client', async () => {
    const calls: string[] = [];
    const auth = [
      source('one', ({ username }) => (username === 'ann' ? true : undefined), calls),
      source('two', ({ username }) => (username === 'bob' ? { allow: true, username: 'robert' } : undefined), calls),
      source('three', () => false, calls)
    ];
    const kit = await createTestBroker({ auth });
    const { broker } = kit;
    assert.deepEqual(calls.splice(0), ['open one', 'open two', 'open three']);
    assert.equal(await attempt(broker, 'ann'), 0);
    assert.deepEqual(calls.splice(0), ['ask one']);
    await using _ = await broker.connect({ clientId: 'b', username: 'bob' });
    assert.equal(broker.sessions.get('b')?.client.username, 'robert');
    assert.deepEqual(calls.splice(0), ['ask one', 'ask two']);
    assert.equal(await attempt(broker, 'eve'), 0x86);
    assert.deepEqual(calls.splice(0), ['ask one', 'ask two', 'ask three']);
    await kit[Symbol.asyncDispose]();
    assert.deepEqual(calls, ['close one', 'close two', 'close three']);
  });

  it('asks a source that was loaded again after the others', async () => {
    const calls: string[] = [];
    await using kit = await createTestBroker({
      auth: [source('one', () => undefined, calls), source('two', () => undefined, calls)]
    });
    const { access } = kit.broker;
    await access.reload('one');
    await access.create(source('three', () => undefined, calls));
    await access.delete('two');
    calls.length = 0;
    assert.equal(await attempt(kit.broker, 'ann'), 0x86);
    assert.deepEqual(calls, ['ask one', 'ask three']);
    assert.deepEqual(access.sources, ['one', 'three']);
    for (const name of ['one', 'three']) await access.delete(name);
    assert.equal(await attempt(kit.broker, 'ann'), 0, 'without a source the broker is open again');
  });

  it('asks the records first, and no source about a banned client', async () => {
    const calls: string[] = [];
    await using kit = await createTestBroker({ auth: [source('one', () => true, calls)] });
    const { access } = kit.broker;
    await access.usernames.create('ann', 'a');
    assert.equal(await attempt(kit.broker, 'ann', 'a'), 0);
    assert.equal(await attempt(kit.broker, 'ann', 'b'), 0x86);
    await access.banned.create({ kind: 'username', who: 'bob' });
    assert.equal(await attempt(kit.broker, 'bob'), 0x8a);
    assert.deepEqual(calls, ['open one']);
    await kit.clock.advance('5m');
    assert.equal(await attempt(kit.broker, 'bob'), 0, 'the ban has ended');
  });

  it('keeps the data that a source returns with the client', async () => {
    await using kit = await createTestBroker({
      auth: [source('one', () => ({ allow: true, clientData: { tenant: 7 } }))]
    });
    await using _ = await kit.connect({ clientId: 'c' });
    assert.deepEqual(kit.broker.sessions.get('c')?.client.data, { tenant: 7 });
  });

  it('does not start if a source cannot be opened, and closes those that were opened', async () => {
    const calls: string[] = [];
    const broken: AuthSource = {
      name: 'broken',
      open: () => Promise.reject(new Error('no file')),
      authenticate: () => true
    };
    const broker = createBroker({ auth: [source('one', () => true, calls), broken] });
    await assert.rejects(broker.start(), /no file/);
    assert.deepEqual(calls, ['open one', 'close one']);
    assert.equal(broker.state, 'idle');
  });

  it('refuses sources with a misspelt function or none, which would leave the broker open', async () => {
    const misspelt: readonly (readonly [object, RegExp])[] = [
      [{ authentcate: () => false }, /unknown option "authentcate" in the source mine; did you mean "authenticate"/],
      [{ Authenticate: () => false }, /did you mean "authenticate"/],
      [{ open: () => undefined, authorise: () => false }, /did you mean "authorize"/],
      [{}, /the source mine: expected a function authenticate, authorize or open/],
      [{ check: () => false }, /expected a function authenticate, authorize or open, got \["name","check"\]/]
    ];
    await using kit = await createTestBroker();
    for (const [functions, message] of misspelt) {
      const source = { name: 'mine', ...functions };
      assert.throws(() => createBroker({ auth: [source] }), { message });
      await assert.rejects(kit.broker.access.create(source), { message });
    }
  });

  for (const given of [undefined, null, { ann: 'secret' }, 'ann:secret'])
    it(`refuses ${typeof given === 'string' ? 'a string' : JSON.stringify(given)} instead of a list of users, without showing passwords`, () => {
      assert.throws(
        () => users(given as never),
        ({ code, message }: InvalidInput) =>
          code === 'OPTION_INVALID' &&
          message.startsWith('users: expected a list of users, such as [{ username, password }], got ') &&
          !message.includes('secret')
      );
    });

  it('refuses users with unknown keys, and entries that are not users', () => {
    assert.throws(() => users([{ username: 'a', password: 'b', isSuperUser: true } as never]), {
      message: 'unknown option "isSuperUser" in users[0]; did you mean "isSuperuser"?'
    });
    assert.throws(() => users(['ann:secret' as never]), { code: 'OPTION_INVALID' });
    assert.throws(() => users([{ username: 'ann' } as never]), {
      code: 'OPTION_INVALID',
      message: 'users[0].password: expected a string, got undefined'
    });
    assert.throws(() => users([{ username: 'ann', password: 4711 as never }]), {
      code: 'OPTION_INVALID',
      message: 'users[0].password: expected a string, got a value of type number'
    });
  });

  it('refuses values that are not sources, and names that are in use', async () => {
    const broker = createBroker({ auth: [users([])] });
    await assert.rejects(broker.access.create(users([])), { code: 'SOURCE_NAME_IN_USE' });
    await assert.rejects(broker.access.create({} as never), { code: 'SOURCE_INVALID' });
    await assert.rejects(broker.access.create({ name: 'x', open: 5 } as never), { code: 'SOURCE_INVALID' });
    await assert.rejects(broker.access.delete('x'), { code: 'SOURCE_UNKNOWN' });
    await assert.rejects(broker.access.reload('x'), { code: 'SOURCE_UNKNOWN' });
    assert.throws(() => createBroker({ auth: 'users' as never }), { code: 'OPTION_INVALID', field: 'auth' });
  });
});
