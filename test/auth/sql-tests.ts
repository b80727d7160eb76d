import assert from 'node:assert/strict';
import { createHash, pbkdf2Sync } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import bcrypt from 'bcryptjs';
import type { SqlOptions } from '../../adapters/auth/database/index.ts';
import type { AuthSource } from '../../lib/adapter.ts';
import { hashPassword } from '../../lib/index.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { HOSTILE, sourceBroker } from './source-kit.ts';

type Value = string | number | null;

/** A database of a test. */
interface SqlDatabase {
  /** Run a statement with `?` in place of values. */
  run(text: string, values?: Value[]): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

/** The kind of database that is tested. */
interface SqlKind {
  readonly name: string;
  readonly skip: string | false;
  readonly url: string;
  /** Columns with numbers that count up. */
  readonly serial: string;
  /** Create a separate database for the tests of a file. */
  open(): Promise<SqlDatabase>;
  /** The function of an app, with its own connections to that database. @param url of a proxy, perhaps */
  query(url?: string): { readonly query: SqlOptions['query']; close(): Promise<void> };
  source(options: SqlOptions): AuthSource;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** The tests of the sources `postgresql` and `mysql` with a real server. */
export function sqlTests(kind: SqlKind): void {
  describe(`a source with ${kind.name}`, { skip: kind.skip }, () => {
    let database: SqlDatabase;
    let app: ReturnType<SqlKind['query']>;
    const source = (options: Partial<SqlOptions> = {}) => kind.source({ query: app.query, ...options });
    const addUser = (username: string, password: string | null, salt: string | null = null, rank = 0) =>
      database.run('INSERT INTO mqtt_user (username, password, salt, is_superuser) VALUES (?, ?, ?, ?)', [
        ...[username, password, salt, rank]
      ]);
    const addRule = (allow: number, who: [Value, Value, Value], access: number, topic: string) =>
      database.run(
        'INSERT INTO mqtt_acl (allow, ipaddr, username, clientid, access, topic) VALUES (?, ?, ?, ?, ?, ?)',
        [...[allow, ...who, access, topic]]
      );

    before(async () => {
      database = await kind.open();
      app = kind.query();
      await database.run(
        `CREATE TABLE mqtt_user (id ${kind.serial}, username varchar(100), password varchar(200), salt varchar(100), is_superuser smallint)`
      );
      await database.run(
        `CREATE TABLE mqtt_acl (id ${kind.serial}, allow int, ipaddr varchar(60), username varchar(100), clientid varchar(100), access int, topic varchar(100))`
      );
    });
    beforeEach(async () => {
      await database.run('DELETE FROM mqtt_user');
      await database.run('DELETE FROM mqtt_acl');
    });
    after(async () => {
      await app?.close();
      await database?.close();
    });

    it('accepts users with the right password, and leaves unknown names to the next source', async () => {
      await addUser('ann', await hashPassword('a-secret', 10));
      await addUser('bob', null);
      await addUser('root', bcrypt.hashSync('r-secret', 4), null, 1);
      await using broker = await sourceBroker(source());
      const codes: [string | undefined, string | undefined, number][] = [
        ['ann', 'a-secret', 0],
        ['ann', 'wrong', 0x86],
        ['ann', undefined, 0x86],
        ['ann', '', 0x86],
        ['bob', '', 0x86],
        ['bob', 'x', 0x86],
        ['root', 'r-secret', 0],
        ['root', 'a-secret', 0x86],
        ['nobody', 'a-secret', 0x86],
        [undefined, undefined, 0x87]
      ];
      for (const [username, password, code] of codes)
        assert.equal(
          await broker.attempt({ username, ...(password === undefined ? {} : { password }) }),
          code,
          `${username} ${password}`
        );
      assert.deepEqual(await broker.rights({ username: 'ann', password: 'a-secret' }, { publish: ['a'] }), [0x87]);
      assert.deepEqual(await broker.rights({ username: 'root', password: 'r-secret' }, { publish: ['a'] }), [0]);
      assert.deepEqual(broker.errors, []);
      await using open = await sourceBroker(source({ name: 'b' }), { allowAnonymous: true });
      assert.equal(await open.attempt({ username: 'nobody' }), 0);
      assert.equal(await open.attempt({ username: 'ann', password: 'wrong' }), 0x86);
    });

    it('checks the password formats of old tables', async () => {
      const formats: Record<string, (salt: string, password: string) => string> = {
        plain: (_, password) => password,
        md5: (_, password) => createHash('md5').update(password).digest('hex').toUpperCase(),
        sha: (_, password) => createHash('sha1').update(password).digest('hex'),
        sha512: (_, password) => createHash('sha512').update(password).digest('hex'),
        'salt,sha256': (salt, password) => sha256(salt + password),
        'sha256,salt': (salt, password) => sha256(password + salt),
        'pbkdf2,sha256,1000,20': (salt, password) => pbkdf2Sync(password, salt, 1_000, 20, 'sha256').toString('hex'),
        'salt,bcrypt': (_, password) => bcrypt.hashSync(password, 4)
      };
      for (const [passwordHash, make] of Object.entries(formats)) {
        await database.run('DELETE FROM mqtt_user');
        await addUser('ann', make('sält', 'a-secret'), 'sält');
        await addUser('same', make('sält', 'a-secret'), 'other');
        await using broker = await sourceBroker(source({ passwordHash }));
        assert.equal(await broker.attempt({ password: 'a-secret' }), 0, passwordHash);
        assert.equal(await broker.attempt({ password: 'a-secret' }), 0, passwordHash);
        assert.equal(await broker.attempt({ password: 'wrong' }), 0x86, passwordHash);
        assert.equal(await broker.attempt({ username: 'nobody', password: 'a-secret' }), 0x86, passwordHash);
        const isSalted =
          passwordHash.includes('salt,sha') || passwordHash.includes(',salt') || passwordHash.startsWith('pbkdf2');
        assert.equal(
          await broker.attempt({ username: 'same', password: 'a-secret' }),
          isSalted ? 0x86 : 0,
          passwordHash
        );
        assert.deepEqual(broker.errors, []);
      }
    });

    it('authorizes topics by the first matching row', async () => {
      await addRule(0, [null, null, null], 3, 'never/selected');
      await addRule(0, [null, '$all', null], 1, 'eq #');
      await addRule(0, [null, 'ann', null], 3, 'a/secret');
      await addRule(1, [null, '$all', null], 2, 'a/#');
      await addRule(1, ['192.0.2.7', null, null], 1, 'a/+');
      await addRule(1, [null, 'ann', 'c2'], 3, 'both');
      await addRule(1, [null, '$all', null], 3, 'dev/%c/%u');
      await addRule(1, [null, 'ann', null], 1, 'down/#');
      await using broker = await sourceBroker(source({ authenticate: false }), { allowAnonymous: true });
      const publish = ['a/b', 'a/secret', 'both', 'dev/c/ann', 'dev/c/bob', 'never/selected', 'down/x'];
      assert.deepEqual(await broker.rights({}, { publish }), [0, 0x87, 0x87, 0, 0x87, 0x87, 0x87]);
      assert.deepEqual(await broker.rights({ clientId: 'c2' }, { publish: ['both'] }), [0]);
      assert.deepEqual(await broker.rights({ clientId: 'c2', username: 'bob' }, { publish: ['both'] }), [0x87]);
      const subscribe = ['#', 'a/b', 'dev/c/ann', 'dev/+/ann', 'down/#', 'down/x', '$share/g/down/x'];
      assert.deepEqual(await broker.rights({}, { subscribe }), [0x87, 0x87, 0, 0x87, 0, 0, 0]);
      const transportInfo = { transport: 'tcp', remoteAddress: '192.0.2.7' } as const;
      const bob = { username: 'bob', transportInfo };
      assert.deepEqual(await broker.rights(bob, { subscribe: ['a/b', 'a/+', 'a/#'] }), [0, 0, 0x87]);
      assert.deepEqual(
        await broker.rights({ transportInfo }, { subscribe: ['a/b', 'a/+'] }),
        [0, 0x87],
        'a/secret is denied'
      );
      assert.deepEqual(
        await broker.rights({ clientId: '+', username: '#' }, { publish: ['dev/x/y'], subscribe: ['dev/+/#'] }),
        [0x87, 0x87]
      );
      assert.deepEqual(broker.errors, []);
    });

    it('queries once for each question, and caches the answer as long as the broker does', async () => {
      await addRule(1, [null, 'ann', null], 2, 'a');
      const texts: string[] = [];
      const query: SqlOptions['query'] = (text, values) => {
        texts.push(text);
        return app.query(text, values);
      };
      await using broker = await sourceBroker(source({ query, authenticate: false }), { allowAnonymous: true });
      assert.deepEqual(await broker.rights({}, { publish: ['a', 'a', 'b', 'a'] }), [0, 0, 0x87, 0]);
      assert.equal(texts.length, 2);
    });

    it('runs the queries of the app, with a separate query for superusers', async () => {
      await addUser('ann', sha256('x'), null, 1);
      await using broker = await sourceBroker(
        source({
          authenticate: "select password from mqtt_user where username = '%u' and '%c' = 'c' and 'a%%' = 'a%%' limit 1",
          superuser: 'select is_superuser from mqtt_user where username = %u',
          acl: false,
          passwordHash: 'sha256'
        })
      );
      assert.equal(await broker.attempt({ password: 'x' }), 0);
      assert.equal(await broker.attempt({ password: 'x', clientId: 'd' }), 0x86);
      assert.deepEqual(await broker.rights({ password: 'x' }, { publish: ['a'] }), [0]);
      assert.deepEqual(broker.errors, []);
    });

    it('treats hostile names and passwords as values', async () => {
      for (const [at, name] of HOSTILE.entries())
        if (name.length <= 100 && at % 2 === 0) await addUser(name, sha256(`${at}`));
      await addUser('ann', sha256('a-secret'));
      await addRule(1, [null, 'ann', null], 3, 'ann/#');
      await addRule(1, [null, null, 'c'], 3, '%u/x');
      const [{ users }] = await database.run('SELECT count(*) AS users FROM mqtt_user');
      await using broker = await sourceBroker(source({ passwordHash: 'sha256' }), { maxConnectSize: 300_000 });
      for (const [at, name] of HOSTILE.entries()) {
        const isStored = name.length <= 100 && at % 2 === 0;
        for (const password of ['a-secret', name, Buffer.from([0, 0xff, 0x27]), Buffer.alloc(65_535, "'")])
          assert.equal(await broker.attempt({ username: name, password }), 0x86, name.slice(0, 50));
        if (!isStored) continue;
        const who = { username: name, password: `${at}` };
        assert.deepEqual(await broker.rights(who, { publish: ['ann/x'] }), [0x87], name);
        const clientId = name === '' ? 'c' : name;
        assert.deepEqual(await broker.rights({ ...who, clientId }, { publish: ['x/y'] }), [0x87], name);
        assert.equal(await broker.attempt({ clientId, username: 'ann', password: 'a-secret' }), 0);
      }
      assert.equal(await broker.attempt({ username: '' }), 0x86);
      assert.deepEqual(await database.run('SELECT count(*) AS users FROM mqtt_user'), [{ users }]);
      assert.deepEqual(broker.errors, []);
    });

    it('accepts 2,000 clients that connect concurrently', async () => {
      await addUser('ann', sha256('a-secret'));
      await using broker = await sourceBroker(source({ passwordHash: 'sha256' }));
      const attempts = Array.from({ length: 2_000 }, (_, at) =>
        broker.attempt({ clientId: `c${at}`, password: at % 10 === 0 ? 'wrong' : 'a-secret' })
      );
      const codes = await Promise.all(attempts);
      assert.equal(codes.filter((code) => code === 0).length, 1_800);
      assert.equal(codes.filter((code) => code === 0x86).length, 200);
      assert.deepEqual(broker.errors, []);
    });

    it('refuses clients while the server is down, and accepts them when it is back', async () => {
      await addUser('ann', sha256('a-secret'));
      await addRule(1, [null, 'ann', null], 2, 'a');
      const proxy = new TcpProxy(kind.url);
      await proxy.start();
      await using _ = proxy;
      await proxy.stop(); // the server is down when the broker starts
      const behind = kind.query(proxy.replaceIn(kind.url));
      await using broker = await sourceBroker(
        source({ query: behind.query, passwordHash: 'sha256', breaker: { failures: 2, pauseMs: '10s' } })
      );
      const attempt = () => broker.attempt({ password: 'a-secret' });
      assert.equal(await attempt(), 0x88);
      await proxy.start();
      assert.equal(await attempt(), 0);
      await using client = await broker.kit.broker.connect({
        username: 'ann',
        password: 'a-secret',
        protocolVersion: 5
      });
      await proxy.stop();
      assert.equal(await attempt(), 0x88);
      await assert.rejects(client.publish('a', 'x', { qos: 1 }), { reasonCode: 0x87 });
      assert.match(broker.errors.at(-1) ?? '', /it will not be asked for 10000 ms/);
      await proxy.start();
      assert.equal(await attempt(), 0x88, 'it is not asked');
      await broker.kit.clock.advance('10s');
      assert.equal(await attempt(), 0);
      await client.publish('a', 'x', { qos: 1 });
      assert.doesNotMatch(broker.errors.join(), new RegExp(new URL(kind.url).password), 'no secrets');
      await behind.close().catch(() => {});
    });

    it('aborts queries of a server that hangs, and when the broker stops', async () => {
      await addUser('ann', sha256('a-secret'));
      const proxy = new TcpProxy(kind.url);
      await proxy.start();
      await using _ = proxy;
      const behind = kind.query(proxy.replaceIn(kind.url));
      let asked = () => {};
      const query: SqlOptions['query'] = (text, values) => {
        const rows = behind.query(text, values);
        asked();
        return rows;
      };
      const arrived = () => new Promise<void>((resolve) => (asked = resolve));
      await using broker = await sourceBroker(source({ query, passwordHash: 'sha256', timeoutMs: '3s' }));
      const attempt = () => broker.attempt({ password: 'a-secret' });
      assert.equal(await attempt(), 0);
      proxy.hang();
      const first = arrived();
      const code = attempt();
      await first;
      await broker.kit.clock.advance('3s');
      assert.equal(await code, 0x88);
      assert.match(broker.errors[0], /did not answer within 3000 ms/);
      const second = arrived();
      const refused = attempt().catch((error: Error) => error);
      await second;
      await broker.kit.broker.stop();
      assert.notEqual(await refused, 0);
      await proxy.stop();
      await behind.close().catch(() => {});
    });

    it('reports faults of a table without locking out other clients', async () => {
      await addUser('ann', sha256('a-secret'));
      await addUser('bad', 'no hash');
      await using broker = await sourceBroker(source({ passwordHash: 'sha256', breaker: { failures: 1 } }));
      assert.equal(await broker.attempt({ username: 'bad', password: 'x' }), 0x86);
      assert.match(broker.errors[0], /the stored password is not of the format "sha256"/);
      assert.equal(await broker.attempt({ password: 'a-secret' }), 0);
      await using wrong = await sourceBroker(source({ authenticate: 'SELECT x FROM missing WHERE a = %u' }));
      assert.equal(await wrong.attempt({ password: 'a-secret' }), 0x88);
      assert.match(wrong.errors[0], /missing/);
    });
  });
}
