import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { passwordFile } from '../../adapters/auth/password-file/index.ts';
import type { AuthSource } from '../../lib/adapter.ts';
import { type Approval, acl, type Broker, createBroker, type Hook, users } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** The data that the app keeps with its clients. */
interface User {
  readonly tenant: string;
}

/** The compiler checks that the type of a value is exactly this one. */
function isExactly<T>() {
  return <U>(
    _value: U,
    ..._same: (<X>() => X extends T ? 1 : 2) extends <X>() => X extends U ? 1 : 2 ? [] : [never]
  ) => {};
}

const tenants: AuthSource<User> = {
  name: 'tenants',
  authenticate: ({ username = '' }): Approval<User> => ({ allow: true, clientData: { tenant: username } }),
  authorize: ({ client, topic }) => client.data === undefined || topic.startsWith(client.data.tenant)
};

describe('createBroker<Data>', () => {
  it('gives client.data its type in hooks, events, sources and sessions', async () => {
    const seen: unknown[] = [];
    await using kit = await createTestBroker<User>({
      auth: [tenants, acl([{ access: 'allow', topic: 'public' }]), users([])],
      hooks: {
        authorizeSubscribe: ({ client }) => {
          isExactly<User | undefined>()(client.data);
          seen.push(client.data?.tenant);
        }
      }
    });
    const { broker } = kit;
    isExactly<Broker<User>>()(broker);
    broker.on('client.connected', ({ client }) => {
      isExactly<User | undefined>()(client.data);
      seen.push(client.data?.tenant);
    });
    broker.on('message.publish', ({ client }) => isExactly<User | undefined>()(client?.data));
    broker.hook('publish', ({ client }) => {
      isExactly<User | undefined>()(client?.data);
      seen.push(client?.data?.tenant);
    });
    await using client = await kit.connect({ clientId: 'c', username: 'ann' });
    await client.subscribe('ann/#');
    await client.publish('ann/1', 'x', { qos: 1 });
    const { data } = broker.sessions.get('c').client;
    isExactly<User | undefined>()(data);
    assert.deepEqual(data, { tenant: 'ann' });
    assert.deepEqual(seen, ['ann', 'ann', 'ann']);
  });

  it('refuses sources that keep data of another type at compile time', () => {
    const other: AuthSource<{ readonly level: number }> = { name: 'other', authenticate: () => true };
    // @ts-expect-error the source keeps another type
    createBroker<User>({ auth: [other] });
    // @ts-expect-error the hook keeps another type
    createBroker<User>({ hooks: { authenticate: () => ({ allow: true, clientData: { level: 1 } }) } });
    const hook: Hook<'authenticate', User> = () => ({ allow: true, clientData: { tenant: 'a' } });
    createBroker<User>({ auth: [tenants], hooks: { authenticate: hook } });
  });

  it('uses unknown without a type, and accepts any source', () => {
    const broker = createBroker({ auth: [tenants, users([])] });
    isExactly<Broker>()(broker);
    broker.on('client.connected', ({ client }) => isExactly<unknown>()(client.data));
    const typed = createBroker<User>({ auth: [passwordFile({ file: 'users' })] });
    const general: Broker = typed;
    assert.equal(general.state, 'idle');
  });
});
