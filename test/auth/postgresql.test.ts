import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import pg from 'pg';
import { postgresql } from '../../adapters/auth/database/index.ts';
import { service } from '../support/services.ts';
import { sourceBroker } from './source-kit.ts';
import { sqlTests } from './sql-tests.ts';

const { url, skip } = service('postgresql');
const schema = `test_${randomBytes(6).toString('hex')}`;

function poolOf(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 10, options: `-c search_path=${schema}` });
  pool.on('error', () => {});
  return pool;
}

sqlTests({
  name: 'PostgreSQL',
  skip,
  url,
  serial: 'serial',
  open: async () => {
    const pool = poolOf(url);
    await pool.query(`CREATE SCHEMA ${schema}`);
    return {
      run: async (text, values = []) => {
        let number = 0;
        return (
          await pool.query(
            text.replace(/\?/g, () => `$${++number}`),
            values
          )
        ).rows;
      },
      close: async () => {
        await pool.query(`DROP SCHEMA ${schema} CASCADE`);
        await pool.end();
      }
    };
  },
  query: (given = url) => {
    const pool = poolOf(given);
    return {
      query: (text, values) => pool.query(text, values).then(({ rows }) => rows),
      close: () => pool.end()
    };
  },
  source: postgresql
});

describe('a column of PostgreSQL that is not text', { skip }, () => {
  it('refuses only the clients whose values do not fit it', async () => {
    const pool = poolOf(url);
    await using broker = await sourceBroker(
      postgresql({
        query: (text, values) => pool.query(text, values).then(({ rows }) => rows),
        authenticate: "SELECT 'secret' AS password, true AS is_superuser WHERE %u = 17",
        acl: false,
        passwordHash: 'plain',
        breaker: { failures: 1 }
      })
    );
    assert.equal(await broker.attempt({ username: 'x', password: 'secret' }), 0x88);
    assert.match(broker.errors[0], /invalid input syntax for type integer/);
    assert.equal(await broker.attempt({ username: '17', password: 'secret' }), 0);
    assert.equal(await broker.attempt({ username: '18', password: 'secret' }), 0x86);
    await pool.end();
  });
});
