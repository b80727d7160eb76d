import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Applications } from '../../lib/access/applications.ts';
import { ManagementUsers } from '../../lib/access/management-users.ts';
import { PasswordChecks } from '../../lib/access/password-checks.ts';
import { Secrets } from '../../lib/access/secrets.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { FaultyStore } from '../store/faulty-store.ts';
import { mapTable } from '../support/map-table.ts';

function secrets(): Secrets {
  return new Secrets(new PasswordChecks(() => 0), 10);
}

describe('applications', () => {
  const clock = { now: 1_000 };
  const make = () => new Applications(mapTable(), secrets(), () => clock.now);

  it('generates a random secret, which is shown once', async () => {
    const apps = make();
    const { secret } = await apps.create({ id: 'a' });
    assert.match(secret, /^[A-Za-z0-9]{48}$/);
    assert.notEqual(secret, (await apps.create({ id: 'b' })).secret);
    assert.deepEqual(apps.get('a'), { id: 'a', name: 'a', description: '', isEnabled: true, expiresAt: undefined });
    assert.equal(JSON.stringify([...apps]).includes(secret), false);
    assert.equal((await apps.verify('a', secret))?.id, 'a');
    assert.equal((await apps.verify('a', secret))?.id, 'a', 'remembered');
    assert.equal(await apps.verify('b', secret), undefined);
    assert.equal(await apps.verify('c', secret), undefined);
    assert.equal(await apps.verify('a', ''), undefined);
  });

  it('refuses an application that is disabled, has expired, or was deleted', async () => {
    const apps = make();
    const { secret } = await apps.create({ id: 'a', secret: 's', name: 'A', description: 'D', expiresAt: 2_000 });
    assert.equal(secret, 's');
    assert.ok(await apps.verify('a', 's'));
    clock.now = 2_000;
    assert.equal(await apps.verify('a', 's'), undefined);
    await apps.update('a', { expiresAt: undefined });
    assert.ok(await apps.verify('a', 's'));
    await apps.update('a', { isEnabled: false, name: 'B' });
    assert.deepEqual(apps.get('a'), { id: 'a', name: 'B', description: 'D', isEnabled: false, expiresAt: undefined });
    assert.equal(await apps.verify('a', 's'), undefined);
    assert.equal(await apps.delete('a'), true);
    assert.equal(await apps.delete('a'), false);
    await apps.create({ id: 'a', secret: 't' });
    assert.equal(await apps.verify('a', 's'), undefined, 'the secret of the deleted one');
  });

  it('checks applications that are added or changed', async () => {
    const apps = make();
    await apps.create({ id: 'a' });
    await assert.rejects(apps.create({ id: 'a' }), { code: 'RECORD_EXISTS' });
    await assert.rejects(apps.update('b', {}), { code: 'RECORD_NOT_FOUND' });
    for (const input of [
      { id: '' },
      { id: 'a:b' },
      { id: 'c', secret: '' },
      { id: 'c', expiresAt: 'x' },
      { id: 'c', isEnabled: 1 }
    ])
      await assert.rejects(apps.create(input as never), { code: 'APPLICATION_INVALID' }, JSON.stringify(input));
    await assert.rejects(apps.create({ id: 'c', secrets: 'x' } as never), { code: 'OPTION_UNKNOWN' });
    await assert.rejects(apps.create({ id: 'c', secret: '' }), { message: /got ""$/ });
  });

  it('changes the secret of an application, unless it has this secret already', async () => {
    const applications = make();
    await applications.create({ id: 'a', secret: 'one', description: 'kept' });
    const { changes } = applications;
    await applications.setSecret('a', 'one');
    assert.equal(applications.changes, changes);
    await applications.setSecret('a', 'two');
    assert.equal(applications.changes, changes + 1);
    assert.equal(await applications.verify('a', 'one'), undefined);
    assert.equal((await applications.verify('a', 'two'))?.description, 'kept');
    await assert.rejects(applications.setSecret('b', 'two'), { code: 'RECORD_NOT_FOUND' });
    await assert.rejects(applications.setSecret('a', ''), { code: 'APPLICATION_INVALID' });
  });

  it('finds no application by credentials that are not strings', async () => {
    const apps = make();
    await apps.create({ id: 'a', secret: 's' });
    for (const wrong of [undefined, null, 5, {}, ['s']] as never[]) {
      assert.equal(await apps.verify('a', wrong), undefined);
      assert.equal(await apps.verify(wrong, 's'), undefined);
    }
  });
});

describe('management users', () => {
  const failures: string[] = [];
  const make = () =>
    new ManagementUsers(mapTable(), secrets(), (error, during) =>
      failures.push(`${during}: ${(error as Error).message}`)
    );

  it('makes a user a viewer, or an administrator by its tag', async () => {
    const users = make();
    await users.create('admin', 'p', 'administrator');
    await users.create('eve', 'q', 'administrators');
    assert.deepEqual(
      [...users].map(({ role }) => role),
      ['administrator', 'viewer']
    );
    await users.update('eve', 'administrator');
    assert.equal((await users.verify('eve', 'q'))?.role, 'administrator');
    assert.equal(await users.verify('eve', 'p'), undefined);
    assert.equal(await users.verify('bob', 'p'), undefined);
  });

  it('changes the password of a user who knows the old one', async () => {
    const users = make();
    await users.create('eve', 'old');
    await assert.rejects(users.changePassword('eve', 'wrong', 'new'), { code: 'PASSWORD_WRONG' });
    await users.changePassword('eve', 'old', 'new');
    assert.equal(await users.verify('eve', 'old'), undefined);
    assert.equal((await users.verify('eve', 'new'))?.name, 'eve');
    await assert.rejects(users.changePassword('eve', 'new', ''), { code: 'PASSWORD_INVALID', message: /got ""$/ });
    await assert.rejects(users.changePassword('eve', undefined as never, 'x'), { code: 'PASSWORD_WRONG' });
    assert.equal(await users.verify('eve', undefined as never), undefined);
    await assert.rejects(users.changePassword('bob', 'a', 'b'), { code: 'RECORD_NOT_FOUND' });
  });

  it('sets a password without the old one, with the checks of a new user', async () => {
    const users = make();
    await users.create('eve', 'lost', 'administrator');
    await users.setPassword('eve', 'new');
    assert.equal(await users.verify('eve', 'lost'), undefined);
    assert.deepEqual(await users.verify('eve', 'new'), { name: 'eve', tags: 'administrator', role: 'administrator' });
    for (const wrong of ['', undefined, 5] as never[])
      await assert.rejects(users.setPassword('eve', wrong), { code: 'PASSWORD_INVALID' });
    await assert.rejects(users.setPassword('bob', 'new'), { code: 'RECORD_NOT_FOUND', message: /"bob"/ });
    await users.create('ann', 'x', 'administrator');
    const late = users.setPassword('eve', 'too late');
    await users.delete('eve');
    await assert.rejects(late, { code: 'RECORD_NOT_FOUND' });
    assert.equal(users.get('eve'), undefined);
  });

  it('keeps the role that a user was given while its password was hashed', async () => {
    const users = make();
    await users.create('eve', 'old');
    const changed = users.setPassword('eve', 'new');
    await users.update('eve', 'administrator');
    await changed;
    assert.equal((await users.verify('eve', 'new'))?.role, 'administrator');
  });

  it('reports what ends the logins of a user, and nothing else', async () => {
    const users = make();
    await users.create('ann', 'x', 'administrator');
    const told: string[] = [];
    const remove = users.onChange(({ name, what }) => told.push(`${name} ${what}`));
    users.onChange(() => assert.fail('of a listener'));
    const reported = async (change: Promise<unknown>) => {
      await change;
      return told.splice(0).join();
    };
    assert.equal(await reported(users.create('eve', 'a')), 'eve user');
    assert.equal(await reported(users.update('eve', 'night shift')), '');
    assert.equal(await reported(users.update('eve', 'administrator')), 'eve role');
    assert.equal(await reported(users.changePassword('eve', 'a', 'b')), 'eve password');
    assert.equal(await reported(users.setPassword('eve', 'c')), 'eve password');
    const [, eve] = users.exported();
    assert.equal(await reported(users.restore(eve)), '');
    assert.equal(await reported(users.restore({ ...eve, tags: '' })), 'eve role');
    assert.equal(await reported(users.delete('eve')), 'eve user');
    assert.equal(await reported(users.restore(eve)), 'eve user');
    remove();
    assert.equal(await reported(users.delete('eve')), '');
    assert.equal(failures.length, 8);
    assert.equal(failures[0], 'reporting the change of a management user: of a listener');
  });

  it('reports a change before it is persisted, and again if that fails', async () => {
    const store = new FaultyStore();
    await using kit = await createTestBroker({ store, passwordCost: 10 });
    const { users } = kit.broker;
    await users.create('eve', 'old');
    const told: string[] = [];
    users.onChange(({ what }) => told.push(what));
    store.fault = 'refuses';
    const changed = users.update('eve', 'administrator');
    assert.deepEqual(told, ['role']);
    await assert.rejects(changed, { code: 'STORE_FAILED' });
    assert.deepEqual(told, ['role', 'role']);
    assert.equal(users.get('eve')?.role, 'viewer');
    store.fault = undefined;
    await kit.clock.advance('20s');
  });

  it('keeps the last administrator, whatever its name is', async () => {
    const users = make();
    const refused = { code: 'LAST_ADMINISTRATOR', message: /"eve" is the last administrator; make another user/ };
    for (const name of ['eve', 'bob', 'admin']) await users.create(name, 'p', name === 'eve' ? 'administrator' : '');
    await assert.rejects(users.delete('eve'), refused);
    for (const tags of ['', 'viewer', 'Administrator']) await assert.rejects(users.update('eve', tags), refused);
    await users.update('eve', 'administrator');
    await users.setPassword('eve', 'q');
    assert.equal((await users.verify('eve', 'q'))?.role, 'administrator');
    await users.update('bob', 'administrator');
    const deleted = await Promise.allSettled([users.delete('eve'), users.delete('bob')]);
    assert.deepEqual(
      deleted.map(({ status }) => status),
      ['fulfilled', 'rejected'],
      'two at the same time'
    );
    await assert.rejects(users.update('bob', ''), { code: 'LAST_ADMINISTRATOR' });
    await users.update('admin', 'administrator');
    await users.update('bob', '');
    await assert.rejects(users.update('admin', ''), { code: 'LAST_ADMINISTRATOR' });
    await assert.rejects(users.delete('admin'), { code: 'ADMIN_PERMANENT' });
    await users.delete('bob');
    await assert.rejects(users.update('bob', ''), { code: 'RECORD_NOT_FOUND' });
    const [exported] = users.exported();
    await assert.rejects(users.restore({ ...exported, tags: '' }), { code: 'LAST_ADMINISTRATOR' });
    await users.restore(exported);
    await users.restore({ ...exported, name: 'eve' });
    await users.restore({ ...exported, tags: '' });
    assert.equal(users.get('admin')?.role, 'viewer');
  });

  it('deletes users, except admin', async () => {
    const users = make();
    for (const name of ['admin', 'eve']) await users.create(name, 'p');
    await users.delete('eve');
    await assert.rejects(users.delete('admin'), { code: 'ADMIN_PERMANENT' });
    await assert.rejects(users.delete('eve'), { code: 'RECORD_NOT_FOUND' });
    await assert.rejects(users.create('admin', 'x'), { code: 'RECORD_EXISTS' });
    await assert.rejects(users.create('', 'x'), { code: 'NAME_INVALID' });
    await assert.rejects(users.create('x', ''), { code: 'PASSWORD_INVALID' });
    await assert.rejects(users.update('admin', 5 as never), { code: 'OPTION_INVALID' });
    assert.equal(users.size, 1);
  });
});
