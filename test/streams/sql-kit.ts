import { randomBytes } from 'node:crypto';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import type { StreamsSqlOptions } from '../../adapters/streams/sql/index.ts';
import { service } from '../support/services.ts';

/** A database for tests, with a function as provided by apps. */
interface TestDatabase {
  readonly name: string;
  readonly skip: string | false;
  open(): Promise<OpenDatabase>;
}

export interface OpenDatabase {
  readonly options: StreamsSqlOptions;
  /** The statements so far. */
  readonly texts: string[];
  /** Run a statement without parameters. */
  run(text: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

const postgresql = service('postgresql');
const mariadb = service('mariadb');

export const DATABASES: readonly TestDatabase[] = [
  {
    name: 'PostgreSQL',
    skip: postgresql.skip,
    async open() {
      const schema = `test_${randomBytes(6).toString('hex')}`;
      const pool = new pg.Pool({ connectionString: postgresql.url, options: `-c search_path=${schema}` });
      await pool.query(`CREATE SCHEMA ${schema}`);
      const texts: string[] = [];
      return {
        texts,
        options: {
          dialect: 'postgres',
          query(text, parameters) {
            texts.push(text);
            return pool.query(text, parameters).then(({ rows }) => rows);
          }
        },
        run: async (text) => (await pool.query(text)).rows,
        async close() {
          await pool.query(`DROP SCHEMA ${schema} CASCADE`);
          await pool.end();
        }
      };
    }
  },
  {
    name: 'MariaDB',
    skip: mariadb.skip,
    async open() {
      const database = `embermq_${randomBytes(6).toString('hex')}`;
      const first = createPool({ uri: mariadb.url, connectionLimit: 1 });
      await first.query(`CREATE DATABASE ${database}`);
      await first.end();
      const uri = new URL(mariadb.url);
      uri.pathname = `/${database}`;
      const pool = createPool({ uri: uri.href, connectionLimit: 5 });
      // double quotes denote strings by default
      const run = async (text: string) => (await pool.query(text.replaceAll('"', '`')))[0] as Record<string, unknown>[];
      const texts: string[] = [];
      return {
        texts,
        options: {
          dialect: 'mysql',
          query(text, parameters) {
            texts.push(text);
            return pool.execute(text, parameters as string[]).then(([rows]) => rows);
          }
        },
        run,
        async close() {
          await pool.query(`DROP DATABASE ${database}`);
          await pool.end();
        }
      };
    }
  }
];

/** Names and values that would change a statement if they became part of it. */
export const HOSTILE = [
  `'; DROP TABLE items; --`,
  `" OR 1 = 1 --`,
  '`; DROP TABLE items; -- `',
  `\\' OR '1' = '1`,
  '$1 ? @p1 :1',
  'a\nb\u2028\u{1f525}'
];
