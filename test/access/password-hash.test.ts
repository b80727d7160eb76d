import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { foreignFormatOf, hashPassword, passwordCheckOf } from '../../lib/access/password-hash.ts';

/** Hashes of the password "secret", made by Python's hashlib and by mosquitto_passwd. */
const SECRET: Readonly<Record<string, string>> = {
  scrypt: '$scrypt$ln=10,r=8,p=1$c2FsdHNhbHQ$ohJpCxALoqEOLNROiN4NGGmhtOXo+cvi6xHxGl/1fVE',
  'PBKDF2 with SHA-256': '$pbkdf2-sha256$1000$c2FsdHNhbHQ$hgR9HsqtKupWxpnv8y99TrPDajTT/9PcSTlNafpdLXQ',
  'PBKDF2 with SHA-512':
    '$pbkdf2-sha512$i=1000$c2FsdHNhbHQ$sm09rUzS3++3+cqsWziIoWFO8bEknKwJwGEvyD1ra4PcWJt5OiWFlM/BVv8ybJe4XW8qMpq33ecFrOaibNGiHA',
  'SHA-512 of mosquitto':
    '$6$N/xBR+INT/N1vgGF$AKWbDaJRg4TRO3MGHkDKW2OpPbeUmR15Z5WtB6ik/pZsc3zJKzow6xIloKmQM0DCprcpIsvCClnf7CG7gjQO5A==',
  'PBKDF2 of mosquitto':
    '$7$101$w8e6PMqud61OcLS0$NhN+yutGMPG8i5d7zCpbhmbbC2VcBpVxoWme/1RS4uZ5RrdGKmv0L0N+e8nuE+t/iNFqgt78vDDiojtNQlPrsQ=='
};

describe('a password hash', () => {
  for (const [name, hash] of Object.entries(SECRET)) {
    it(`checks a hash of the format ${name}`, async () => {
      const check = passwordCheckOf(hash);
      assert.equal(await check(Buffer.from('secret')), true);
      for (const wrong of ['secreT', 'secret ', '', 'x'.repeat(1000)])
        assert.equal(await check(Buffer.from(wrong)), false, wrong);
    });
  }

  it('creates a hash with scrypt and a new salt', async () => {
    const hashes = await Promise.all([hashPassword('pässword', 10), hashPassword(Buffer.from('pässword'), 10)]);
    assert.notEqual(hashes[0], hashes[1]);
    for (const hash of hashes) {
      assert.match(hash, /^\$scrypt\$ln=10,r=8,p=1\$/);
      assert.equal(await passwordCheckOf(hash)(Buffer.from('pässword')), true);
      assert.equal(await passwordCheckOf(hash)(Buffer.from('password')), false);
    }
  });

  it('refuses an empty password or a cost outside the range', async () => {
    await assert.rejects(hashPassword(''), { code: 'PASSWORD_INVALID' });
    for (const cost of [9, 21, 12.5, Number.NaN])
      await assert.rejects(hashPassword('secret', cost), { code: 'OPTION_INVALID', field: 'passwordCost' });
  });

  it('checks a hash that needs a package with the function of the caller', async () => {
    const bcrypt = `$2b$12$${'a'.repeat(53)}`;
    assert.equal(foreignFormatOf(bcrypt), 'bcrypt');
    assert.equal(foreignFormatOf('$argon2id$v=19$m=1'), 'argon2');
    assert.equal(foreignFormatOf(SECRET.scrypt), undefined);
    assert.throws(() => passwordCheckOf(bcrypt), { code: 'PASSWORD_HASH_INVALID', message: /bcrypt/ });
    const asked: string[] = [];
    const check = passwordCheckOf(bcrypt, {
      bcrypt: async (password, hash) => {
        asked.push(`${password} ${hash}`);
        return true;
      }
    });
    assert.equal(await check(Buffer.from('x')), true);
    assert.deepEqual(asked, [`x ${bcrypt}`]);
  });

  it('refuses a hash of an unknown format or with parameters that would take too long', () => {
    const wrong = [
      'secret',
      '',
      '$9$abc',
      '$scrypt$ln=30,r=8,p=1$c2FsdA$a2V5',
      '$scrypt$ln=10,r=0,p=1$c2FsdA$a2V5',
      '$pbkdf2-sha256$99999999$c2FsdA$a2V5',
      '$pbkdf2-md5$1000$c2FsdA$a2V5',
      '$7$0$c2FsdA==$a2V5'
    ];
    for (const hash of wrong) assert.throws(() => passwordCheckOf(hash), { code: 'PASSWORD_HASH_INVALID' }, hash);
  });
});
