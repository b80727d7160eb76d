import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CredentialRecords } from '../../lib/access/credential-records.ts';
import { mapTable } from '../support/map-table.ts';

function records(added?: () => void): CredentialRecords {
  return new CredentialRecords(mapTable(), 'user name', nextTurn, added);
}

describe('credential records', () => {
  it('checks passwords against a salted hash', async () => {
    const users = records();
    await users.create('ann', 'secret');
    await users.create('root', 'secret', { isSuperuser: true });
    assert.deepEqual(users.verify('ann', Buffer.from('secret')), { isRight: true, isSuperuser: false });
    assert.deepEqual(users.verify('root', Buffer.from('secret')), { isRight: true, isSuperuser: true });
    assert.deepEqual(users.verify('root', Buffer.from('Secret')), { isRight: false, isSuperuser: false });
    assert.deepEqual(users.verify('ann', undefined), { isRight: false, isSuperuser: false });
    assert.equal(users.verify('bob', Buffer.from('secret')), undefined);
    const [ann, root] = [users.get('ann'), users.get('root')];
    assert.match(ann?.passwordHash ?? '', /^[0-9a-f]{64}$/);
    assert.notEqual(ann?.passwordHash, root?.passwordHash);
  });

  it('lists records with the newest first, and changes and deletes them', async () => {
    const users = records();
    for (const name of ['a', 'b', 'c']) await users.create(name, 'x', { isSuperuser: name === 'b' });
    assert.deepEqual(
      [...users].map(({ name }) => name),
      ['c', 'b', 'a']
    );
    await users.update('b', 'y');
    assert.deepEqual(users.verify('b', Buffer.from('y')), { isRight: true, isSuperuser: true });
    await users.update('b', 'y', { isSuperuser: false });
    assert.equal(users.get('b')?.isSuperuser, false);
    assert.deepEqual(
      [...users].map(({ name }) => name),
      ['c', 'b', 'a']
    );
    assert.equal(await users.delete('c'), true);
    assert.equal(await users.delete('c'), false);
    await users.create('d', 'x');
    assert.deepEqual(
      [...users].map(({ name }) => name),
      ['d', 'b', 'a']
    );
    assert.equal(users.size, 3);
  });

  it('lists records in parts with the oldest first, regardless of the order of the table', async () => {
    const table = mapTable<never>();
    const users = new CredentialRecords(table, 'user name', nextTurn);
    for (const name of ['c', 'a', 'd', 'b']) await users.create(name, 'x');
    table.reorder(() => -1);
    const names = (skip: number, limit: number) =>
      users.list({ skip, limit }).then((found) => found.map(({ name }) => name));
    assert.deepEqual([await names(0, 3), await names(3, 3), await names(4, 3)], [['c', 'a', 'd'], ['b'], []]);
  });

  it('creates SCRAM credentials of both methods', async () => {
    const users = records();
    await users.create('root', 'secret', { isSuperuser: true });
    for (const method of ['SCRAM-SHA-256', 'SCRAM-SHA-512'] as const) {
      const found = users.scram('root', method);
      assert.equal(found?.isSuperuser, true);
      assert.equal(found.credentials.method, method);
      assert.equal(users.scram('bob', method), undefined);
    }
  });

  it('reports the first record that is added', async () => {
    let count = 0;
    const users = records(() => count++);
    await users.create('a', 'x');
    await users.create('b', 'x');
    assert.equal(count, 1);
  });

  it('refuses names that exist or do not exist, and empty names and passwords', async () => {
    const users = records();
    await users.create('a', 'x');
    await assert.rejects(users.create('a', 'y'), { code: 'RECORD_EXISTS', message: /user name "a"/ });
    const both = await Promise.allSettled([users.create('b', 'x'), users.create('b', 'y')]);
    assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    await assert.rejects(users.update('c', 'y'), { code: 'RECORD_NOT_FOUND' });
    await assert.rejects(users.create('', 'y'), { code: 'NAME_INVALID' });
    await assert.rejects(users.create('d', ''), { code: 'PASSWORD_INVALID' });
    await assert.rejects(users.create('d', 5 as never), { code: 'PASSWORD_INVALID' });
    await assert.rejects(users.create('d', 'x', { isSuperuser: 'yes' as never }), { code: 'OPTION_INVALID' });
  });

  it('refuses unknown options, so that no right is lost by a misspelled name', async () => {
    const users = records();
    await users.create('a', 'x');
    const misspelled = { isSuperUser: true } as never;
    const expected = { code: 'OPTION_UNKNOWN', message: /did you mean "isSuperuser"/ };
    await assert.rejects(users.create('b', 'x', misspelled), expected);
    await assert.rejects(users.update('a', 'x', misspelled), expected);
    await assert.rejects(users.create('b', 'x', true as never), { code: 'OPTION_INVALID' });
  });

  it('refuses names that no MQTT client can have', async () => {
    const users = records();
    for (const name of ['a\0b', 'x'.repeat(65_536), '\u00e9'.repeat(32_768), '\ud800'])
      await assert.rejects(users.create(name, 'x'), {
        code: 'NAME_INVALID',
        message: /^user name: expected a string of 1 to 65,535 bytes of UTF-8 without U\+0000, got "/
      });
    await users.create('x'.repeat(65_535), 'x');
  });

  it('shows an empty password, but no other password, in the error', async () => {
    const expected = 'password: expected a string that is not empty, got ';
    await assert.rejects(records().create('a', ''), { message: `${expected}""` });
    await assert.rejects(records().create('a', 5 as never), { message: `${expected}a value of type number` });
    await assert.rejects(records().create('a', undefined as never), { message: `${expected}undefined` });
    await assert.rejects(records().create('a', null as never), { message: `${expected}null` });
  });
});
