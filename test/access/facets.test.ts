import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, memoryStore } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

describe('broker.applications and broker.users', () => {
  it('persists applications and users, checks them after a restart, and keeps them out of the tables of the app', async () => {
    const store = memoryStore();
    let secret: string;
    {
      await using kit = await createTestBroker({ store });
      ({ secret } = await kit.broker.applications.create({ id: 'meter', name: 'Meters' }));
      await kit.broker.users.create('admin', 'first', 'administrator');
      await kit.broker.users.changePassword('admin', 'first', 'second');
      assert.throws(() => kit.broker.table('$users'), { code: 'TABLE_NAME_INVALID' });
    }
    await using kit = await createTestBroker({ store });
    const { applications, users } = kit.broker;
    assert.equal((await applications.verify('meter', secret))?.name, 'Meters');
    assert.equal(await applications.verify('meter', `${secret}x`), undefined);
    assert.equal((await users.verify('admin', 'second'))?.role, 'administrator');
    assert.equal(await users.verify('admin', 'first'), undefined);
    await assert.rejects(users.delete('admin'), { code: 'ADMIN_PERMANENT' });
  });

  it('accepts no password and no secret that was replaced while it was checked', async () => {
    await using kit = await createTestBroker();
    const { applications, users } = kit.broker;
    await users.create('ann', 'first');
    await users.create('bob', 'second');
    const [ann, bob] = users.exported();
    const former = users.verify('ann', 'first');
    await users.restore({ ...ann, hash: bob.hash });
    assert.equal(await former, undefined);
    assert.equal((await users.verify('ann', 'second'))?.name, 'ann');
    const { secret } = await applications.create({ id: 'meter' });
    const { secret: other } = await applications.create({ id: 'other' });
    const [meter, replacement] = applications.exported();
    const ofFormer = applications.verify('meter', secret);
    await applications.restore({ ...meter, hash: replacement.hash });
    assert.equal(await ofFormer, undefined);
    assert.equal((await applications.verify('meter', other))?.id, 'meter');
  });

  it('counts changes, so that credentials are verified again after one', async () => {
    await using kit = await createTestBroker();
    const { applications, users } = kit.broker;
    const counted = async (facet: { readonly changes: number }, change: () => Promise<unknown>) => {
      const before = facet.changes;
      await change();
      return facet.changes - before;
    };
    await users.create('bob', 'first', 'administrator');
    assert.deepEqual(
      [
        await counted(applications, () => applications.create({ id: 'meter' })),
        await counted(applications, () => applications.update('meter', { isEnabled: false })),
        await counted(applications, () => applications.delete('meter')),
        await counted(applications, () => applications.verify('meter', 'x')),
        await counted(users, () => users.create('ann', 'first')),
        await counted(users, () => users.update('ann', 'administrator')),
        await counted(users, () => users.changePassword('ann', 'first', 'second')),
        await counted(users, () => users.verify('ann', 'second')),
        await counted(users, () => users.delete('ann'))
      ],
      [1, 1, 1, 0, 1, 1, 1, 0, 1]
    );
  });

  it('lists applications, users and bans in the order in which they were added, also after a restart', async () => {
    const store = memoryStore();
    const listed = ({ applications, users, access }: Broker) => ({
      applications: [...applications].map(({ id }) => id),
      users: [...users].map(({ name }) => name),
      banned: [...access.banned].map(({ who }) => who)
    });
    const add = async ({ applications, users, access }: Broker, name: string) => {
      await applications.create({ id: name });
      await users.create(name, 'p');
      await access.banned.create({ kind: 'clientId', who: name, until: Infinity });
    };
    {
      await using kit = await createTestBroker({ store });
      const { broker } = kit;
      for (const name of ['zed', 'ann', 'mid']) await add(broker, name);
      await broker.applications.update('zed', { name: 'Z' });
      await broker.users.update('zed', 'administrator');
      await broker.users.changePassword('zed', 'p', 'q');
      await broker.access.banned.create({ kind: 'clientId', who: 'zed', reason: 'again', until: Infinity });
    }
    {
      await using kit = await createTestBroker({ store });
      const names = ['zed', 'ann', 'mid'];
      assert.deepEqual(listed(kit.broker), { applications: names, users: names, banned: names });
      await kit.broker.users.delete('ann');
      await add(kit.broker, 'bob');
    }
    await using kit = await createTestBroker({ store });
    const names = ['zed', 'ann', 'mid', 'bob'];
    assert.deepEqual(listed(kit.broker), { applications: names, users: ['zed', 'mid', 'bob'], banned: names });
  });

  it('refuses an application that has expired, by the clock of the broker', async () => {
    await using kit = await createTestBroker();
    const { applications } = kit.broker;
    const { secret } = await applications.create({ id: 'a', expiresAt: kit.clock.now() + 1_000 });
    assert.equal((await applications.verify('a', secret))?.id, 'a');
    await kit.clock.advance('1s');
    assert.equal(await applications.verify('a', secret), undefined);
  });

  it('starts without applications and users, which do not decide about MQTT clients', async () => {
    await using kit = await createTestBroker();
    assert.deepEqual([kit.broker.applications.size, kit.broker.users.size], [0, 0]);
    await kit.broker.users.create('u', 'p');
    await (await kit.connect({ username: 'u', password: 'wrong' })).disconnect();
  });
});
