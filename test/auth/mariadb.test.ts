import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { createPool, type Pool } from 'mysql2/promise';
import { mysql } from '../../adapters/auth/database/index.ts';
import { service } from '../support/services.ts';
import { sourceBroker } from './source-kit.ts';
import { sqlTests } from './sql-tests.ts';

const { url, skip } = service('mariadb');
const name = `embermq_${randomBytes(6).toString('hex')}`;

function poolOf(uri: string, database = name): Pool {
  const own = new URL(uri);
  own.pathname = `/${database}`;
  return createPool({ uri: own.href, connectionLimit: 10 });
}

sqlTests({
  name: 'MariaDB',
  skip,
  url,
  serial: 'int AUTO_INCREMENT PRIMARY KEY',
  open: async () => {
    const first = poolOf(url, 'embermq');
    await first.query(`CREATE DATABASE ${name}`);
    await first.end();
    const pool = poolOf(url);
    return {
      run: async (text, values = []) => (await pool.execute(text, values))[0] as Record<string, unknown>[],
      close: async () => {
        await pool.query(`DROP DATABASE ${name}`);
        await pool.end();
      }
    };
  },
  query: (given = url) => {
    const pool = poolOf(given);
    return {
      query: (text, values) => pool.execute(text, values).then(([rows]) => rows),
      close: () => pool.end()
    };
  },
  source: mysql
});

describe('a collation that ignores case and trailing spaces', { skip }, () => {
  it('does not let a client in under another name', async () => {
    const pool = poolOf(url, 'embermq');
    const query = (text: string, values: (string | null)[]) => pool.execute(text, values).then(([rows]) => rows);
    const found = await query("SELECT 1 FROM (SELECT 'ann' AS username) AS t WHERE username = ?", ['ANN ']);
    assert.equal((found as unknown[]).length, 1, 'the trap');
    const options = { query, acl: false, passwordHash: 'plain' } as const;
    await using broker = await sourceBroker(
      mysql({
        ...options,
        authenticate: "SELECT username, 'x' AS password FROM (SELECT 'ann' AS username) AS t WHERE username = %u"
      })
    );
    assert.equal(await broker.attempt({ username: 'ann', password: 'x' }), 0);
    for (const username of ['ANN', 'ann ', 'änn'])
      assert.equal(await broker.attempt({ username, password: 'x' }), 0x86, username);
    await pool.end();
  });
});
