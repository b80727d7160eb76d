import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { runCommand } from '../../adapters/cli/commands.ts';
import { readServeSettings } from '../../adapters/cli/serve/settings.ts';
import { hashPassword } from '../../lib/index.ts';
import { sourceBroker } from '../auth/source-kit.ts';
import { service, servicesCa } from '../support/services.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { readyPorts, type TestShell, testShell } from './shell.ts';

const postgresql = service('postgresql');
const mariadb = service('mariadb');
const redis = service('redis');

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'embermq-databases-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Run `serve` with a list of sources while `use` runs, on a free port. @returns the time that it took to stop, in milliseconds */
async function serving(auth: object[], use: (port: number, shell: TestShell) => Promise<void>): Promise<number> {
  const shell = testShell();
  const path = join(folder, 'embermq.json');
  writeFileSync(path, JSON.stringify({ auth }));
  const code = runCommand(['serve', '-c', path, '--memory', '--mqtt-port', '0', '--ws-port', 'off'], shell);
  const { mqtt } = await readyPorts(shell, code);
  let stoppedMs = 0;
  try {
    await use(mqtt, shell);
  } finally {
    stoppedMs = performance.now();
    shell.signal('SIGTERM');
    assert.equal(await code, 0);
  }
  return performance.now() - stoppedMs;
}

/** Publish a message. @returns the reason of a refusal; the empty string if there was none */
async function pub(port: number, username: string, password: string, topic = 'a/x'): Promise<string> {
  const shell = testShell();
  const args = ['-p', String(port), '-V', '5', '-q', '1', '-u', username, '-P', password, '-t', topic, '-m', 'x'];
  await runCommand(['pub', ...args], shell);
  return shell.err().trim();
}

/** The rights of ann, for every database. */
async function checkAnn(port: number): Promise<void> {
  assert.equal(await pub(port, 'ann', 'a-secret'), '');
  assert.match(await pub(port, 'ann', 'wrong'), /badUserNameOrPassword|bad user name or password/i);
  assert.match(await pub(port, 'bob', 'a-secret'), /bad user name or password|not authorized/i);
  assert.match(await pub(port, 'ann', 'a-secret', 'b'), /not authorized/i);
}

/** The options of a connection by TLS, to `localhost` because the name is verified. */
function secure(kind: string, url: string, more: object = {}): object {
  writeFileSync(join(folder, 'url'), `${url.replace('127.0.0.1', 'localhost')}\n`);
  return { kind, connection: { fromFile: join(folder, 'url') }, ca: { fromFile: servicesCa() }, ...more };
}

const TABLES = [
  'CREATE TABLE mqtt_user (username varchar(100), password varchar(200), salt varchar(100), is_superuser smallint)',
  'CREATE TABLE mqtt_acl (id int, allow int, ipaddr varchar(60), username varchar(100), clientid varchar(100), access int, topic varchar(100))',
  "INSERT INTO mqtt_acl VALUES (1, 1, NULL, 'ann', NULL, 3, 'a/#')"
];

/** Check a database with TLS, with another name than that of its certificate, and while it is down. */
async function checkServe(kind: 'postgresql' | 'mysql' | 'redis', url: string, secureUrl = url): Promise<void> {
  await serving([secure(kind, secureUrl)], checkAnn);
  await serving([secure(kind, secureUrl.replace('localhost', '127.0.0.1'), { servername: 'localhost' })], checkAnn);
  await serving([secure(kind, secureUrl, { servername: 'elsewhere' })], async (port, shell) => {
    assert.notEqual(await pub(port, 'ann', 'a-secret'), '');
    assert.doesNotMatch(shell.err(), new RegExp(new URL(url).password));
  });
  const proxy = new TcpProxy(url);
  await using _ = await proxy.start();
  await proxy.stop();
  await serving([{ kind, connection: proxy.replaceIn(url) }], async (port, shell) => {
    assert.match(await pub(port, 'ann', 'a-secret'), /server unavailable/i);
    await proxy.start();
    await admitted(port);
    await checkAnn(port);
    assert.doesNotMatch(shell.err(), new RegExp(new URL(url).password));
  });
  // what is open no longer answers, as behind a load balancer whose server is gone; new connections do
  const limits = { timeoutMs: 300, breaker: { failures: 1_000 }, ...(kind === 'redis' ? {} : { poolSize: 1 }) };
  const stopMs = await serving([{ kind, connection: proxy.replaceIn(url), ...limits }], async (port) => {
    for (let round = 0; round < 2; round++) {
      await checkAnn(port);
      proxy.hang();
      assert.match(await pub(port, 'ann', 'a-secret'), /server unavailable/i);
      await admitted(port);
    }
  });
  assert.ok(stopMs < 2_000, 'no connection is waited for');
}

/** Wait until ann is admitted again; Redis waits before it connects again. */
async function admitted(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++)
    if (!/server unavailable/i.test(await pub(port, 'ann', 'a-secret'))) return;
  assert.fail('the database is not asked again');
}

describe('serve with a database in the list "auth"', () => {
  it('asks PostgreSQL', { skip: postgresql.skip }, async () => {
    const client = new pg.Client({ connectionString: postgresql.url });
    await client.connect();
    for (const text of TABLES) await client.query(text);
    const password = await hashPassword('a-secret', 10);
    await client.query('INSERT INTO mqtt_user VALUES ($1, $2, NULL, 0)', ['ann', password]);
    try {
      await checkServe('postgresql', postgresql.url);
    } finally {
      await client.query('DROP TABLE mqtt_user; DROP TABLE mqtt_acl');
      await client.end();
    }
  });

  it('asks MariaDB', { skip: mariadb.skip }, async () => {
    const client = await createConnection(mariadb.url);
    for (const text of TABLES) await client.query(text);
    const password = await hashPassword('a-secret', 10);
    await client.execute('INSERT INTO mqtt_user VALUES (?, ?, NULL, 0)', ['ann', password]);
    try {
      await checkServe('mysql', mariadb.url);
    } finally {
      await client.query('DROP TABLE mqtt_user');
      await client.query('DROP TABLE mqtt_acl');
      await client.end();
    }
  });

  it('asks Redis', { skip: redis.skip }, async () => {
    const client = new Redis(redis.url, { db: 2 });
    await client.hset('mqtt_user:ann', { password: await hashPassword('a-secret', 10) });
    await client.hset('mqtt_acl:ann', { 'a/#': 3 });
    try {
      await checkServe('redis', `${redis.url}/2`, `${process.env.TEST_REDISS_URL}/2`);
    } finally {
      await client.flushdb();
      client.disconnect();
    }
  });

  const read = (source: object, shell = testShell()) => {
    shell.files.set('e.json', JSON.stringify({ auth: [source] }));
    return readServeSettings(['--config', 'e.json'], shell);
  };

  it('names the package and the command if the driver is missing', async () => {
    const packages = { postgresql: 'pg', mysql: 'mysql2', redis: 'ioredis', mongodb: 'mongodb' };
    for (const [kind, name] of Object.entries(packages)) {
      const shell = { ...testShell(), importPackage: () => Promise.reject(new Error('Cannot find package')) };
      await assert.rejects(read({ kind, connection: 'x' }, shell), {
        code: 'PACKAGE_MISSING',
        message: `a source of the kind "${kind}" needs the package ${name}: npm install ${name}`
      });
    }
  });

  it('refuses options that are not valid, without the URL in the message', async () => {
    const refused: [object, RegExp][] = [
      [{ kind: 'postgresql' }, /auth\[0\]\.connection: expected a URL such as "postgresql:/],
      [{ kind: 'mysql', connection: 'postgresql://u:s3cret@h/d' }, /such as "mysql:/],
      [{ kind: 'redis', connection: 's3cret' }, /such as "redis:/],
      [{ kind: 'redis', connection: 'redis://:s3cret@h/first' }, /a URL with the number of a database/],
      [{ kind: 'redis', connection: 'redis://:s3cret@h/-1' }, /a URL with the number of a database/],
      [{ kind: 'redis', connection: 'redis://:s3cret@h', poolSize: 2 }, /unknown option "poolSize"/],
      [{ kind: 'redis', connection: 'rediss://:s3cret@h', tls: false }, /auth\[0\]\.tls: expected true/],
      [{ kind: 'postgresql', connection: 'postgres://u:s3cret@h/d?sslmode=no-verify' }, /without parameters of TLS/],
      [{ kind: 'mysql', connection: 'mysql://u:s3cret@h/d?x=1' }, /without parameters/],
      [{ kind: 'mysql', connection: 'mysql://u:s3cret%@h/d' }, /with valid percent signs/],
      [{ kind: 'mysql', connection: 'mysql://u%E2%82:%ACs3cret@h/d' }, /with valid percent signs/],
      [{ kind: 'mongodb', connection: 'mongodb://u:s3cret@a:1,b:2/d?tlsInsecure=true' }, /without parameters of TLS/],
      [
        { kind: 'mysql', connection: 'mysql://u:s3cret@127.0.0.1/d', tls: true },
        /auth\[0\]\.servername: expected a name/
      ],
      [{ kind: 'redis', connection: 'redis://:s3cret@h', query: 'x' }, /unknown option "query"/],
      [{ kind: 'redis', connection: 'redis://:s3cret@h', command: 'x' }, /auth\[0\]\.command: expected a function/],
      [
        { kind: 'redis', connection: 'redis://:s3cret@h', acl: 'GET %P' },
        /auth\[0\]\.acl: expected only the placeholders/
      ]
    ];
    for (const [source, message] of refused)
      await assert.rejects(read(source), (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /s3cret/);
        return true;
      });
    for (const connection of ['mongodb://u:p@a:27017,b:27017/d?replicaSet=r', 'mongodb://u:p,q@a,b/d', 'mongodb://a,b'])
      await read({ kind: 'mongodb', connection, acl: false });
  });

  it('passes the name that the certificate must have to the PostgreSQL driver', async () => {
    const seen: unknown[] = [];
    class Pool {
      constructor({ ssl }: { ssl: { host: string } }) {
        seen.push(ssl.host);
      }
      on() {}
      async end() {}
    }
    const shell = { ...testShell(), importPackage: async () => ({ default: { Pool } }) };
    for (const more of [{}, { servername: 'db.example' }]) {
      const { sources } = await read(
        { kind: 'postgresql', connection: 'postgresql://192.0.2.1', tls: true, ...more },
        shell
      );
      await using _ = await sourceBroker(sources[0]);
    }
    assert.deepEqual(seen, ['192.0.2.1', 'db.example']);
  });

  it('takes queries with placeholders from files, and inserts values into a part of one unchanged', async () => {
    const asked: unknown[] = [];
    class Pool {
      on() {}
      async query(...args: unknown[]) {
        asked.push(args);
        return { rows: [] };
      }
      async end() {}
    }
    class Redis {
      on() {}
      async call(...args: string[]) {
        asked.push(args);
        return null;
      }
      disconnect() {}
    }
    const shell = { ...testShell(), importPackage: async () => ({ Redis, default: { Pool } }) };
    shell.env.PREFIX = '5%u';
    writeFileSync(join(folder, 'query.sql'), "SELECT password FROM users WHERE name = %u AND kind = 'a%%'\n");
    const authenticate = { fromFile: join(folder, 'query.sql') };
    const list = ['HGET', { fromEnv: 'PREFIX' }, 'name-%u'];
    for (const source of [
      { kind: 'postgresql', connection: 'postgresql://h/d', authenticate },
      { kind: 'redis', connection: 'redis://h', authenticate: list }
    ]) {
      const { sources } = await read(source, shell);
      await using broker = await sourceBroker(sources[0]);
      await broker.attempt({ password: 'x' });
    }
    assert.deepEqual(asked, [
      ["SELECT password FROM users WHERE name = $1 AND kind = 'a%'", ['ann']],
      ['HGET', '5%u', 'name-ann']
    ]);
  });

  it('waits for a connection to MySQL no longer than for the answer (a stub of the driver)', async () => {
    const connections: ((connection: object) => void)[] = [];
    let released = 0;
    const connection = { execute: async () => [[{ password: 'a-secret' }]], release: () => released++, destroy() {} };
    const createPool = () => ({
      getConnection: () => new Promise((resolve) => connections.push(resolve)),
      end: async () => {}
    });
    const shell = { ...testShell(), importPackage: async () => ({ createPool }) };
    const options = { connection: 'mysql://u:p@h/d', passwordHash: 'plain', acl: false, timeoutMs: 200 };
    const { sources } = await read({ kind: 'mysql', ...options }, shell);
    // the clock of this broker stands still, so only the driver can end the wait
    await using broker = await sourceBroker(sources[0]);
    assert.equal(await broker.attempt({ password: 'a-secret' }), 0x88);
    assert.match(broker.errors[0], /no connection within 200 ms/);
    connections[0](connection);
    const code = broker.attempt({ password: 'a-secret' });
    while (connections.length < 2) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(released, 1, 'a connection that came too late goes back to the pool');
    connections[1](connection);
    assert.equal(await code, 0);
    assert.equal(released, 2);
  });

  it('queries MongoDB with limits of time and number (a stub of the driver)', async () => {
    const seen: unknown[] = [];
    class MongoClient {
      constructor(_: string, { socketTimeoutMS, waitQueueTimeoutMS }: Record<string, unknown>) {
        seen.push(socketTimeoutMS, waitQueueTimeoutMS);
      }
      db() {
        const find = (filter: object, options: object) => {
          seen.push(filter, options);
          return { toArray: async () => [{ password: 'a-secret' }] };
        };
        return { collection: () => ({ find }) };
      }
      async close() {}
    }
    const shell = { ...testShell(), importPackage: async () => ({ MongoClient }) };
    const options = { connection: 'mongodb://u:p@a,b/d', passwordHash: 'plain', timeoutMs: '3s' };
    const { sources } = await read({ kind: 'mongodb', ...options }, shell);
    await using broker = await sourceBroker(sources[0]);
    assert.equal(await broker.attempt({ password: 'a-secret' }), 0);
    assert.deepEqual(seen, [3_000, 3_000, { username: 'ann' }, { maxTimeMS: 3_000, limit: 10_000 }]);
  });
});
