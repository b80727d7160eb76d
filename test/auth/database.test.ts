import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import bcrypt from 'bcryptjs';
import { mongodb, mysql, postgresql, redis, type SqlOptions } from '../../adapters/auth/database/index.ts';
import { readPasswordFormat } from '../../adapters/auth/database/password-format.ts';
import { BcryptChecker } from '../../adapters/auth/hashes/bcrypt.ts';
import { type Awaitable, hashPassword } from '../../lib/index.ts';
import { sourceBroker } from './source-kit.ts';

type Rows = Record<string, unknown>[];

const ANN = { password: 'a-secret' };

/** A source with a function that a test controls. */
function source(query: SqlOptions['query'], options: Partial<SqlOptions> = {}) {
  return postgresql({ query, acl: false, passwordHash: 'plain', ...options });
}

describe('SQL with placeholders', () => {
  const texts = async (sql: string, make: typeof mysql) => {
    const asked: [string, (string | null)[]][] = [];
    const query: SqlOptions['query'] = (text, values) => {
      asked.push([text, values]);
      return [];
    };
    await using broker = await sourceBroker(make({ query, authenticate: sql, acl: false }));
    const transportInfo = {
      transport: 'tls',
      remoteAddress: '192.0.2.1',
      certificate: { commonName: 'device', subject: 'CN=device' }
    } as const;
    await broker.attempt({ ...ANN, clientId: 'c"', transportInfo });
    return asked[0];
  };

  it('passes values separately from the text', async () => {
    const sql =
      "SELECT 1 FROM t WHERE a = %u AND b = '%c' AND c IN (%a, %C, '%d') AND d = %u AND e LIKE 'x%%' AND f = 7 % 3";
    assert.deepEqual(await texts(sql, postgresql), [
      "SELECT 1 FROM t WHERE a = $1 AND b = $2 AND c IN ($3, $4, $5) AND d = $1 AND e LIKE 'x%' AND f = 7 % 3",
      ['ann', 'c"', '192.0.2.1', 'device', 'CN=device']
    ]);
    assert.deepEqual(await texts(sql, mysql), [
      "SELECT 1 FROM t WHERE a = ? AND b = ? AND c IN (?, ?, ?) AND d = ? AND e LIKE 'x%' AND f = 7 % 3",
      ['ann', 'c"', '192.0.2.1', 'device', 'CN=device', 'ann']
    ]);
    assert.deepEqual((await texts("SELECT '\\' %x', '?', \"it''s\" WHERE a = %u", mysql))[1], ['ann']);
  });

  it('refuses a value inside quoted text, and an unknown placeholder', () => {
    const query = () => [];
    const refused: [string, RegExp][] = [
      ["a = 'x%u'", /no placeholder inside quoted text/],
      ["a = '%u' AND b = 'it''s %c'", /no placeholder inside quoted text/],
      ['a = %P', /only the placeholders %u, %c/],
      ['', /a query/]
    ];
    for (const [authenticate, message] of refused)
      assert.throws(() => postgresql({ query, authenticate }), { code: 'OPTION_INVALID', message });
    assert.throws(() => postgresql({ query, acl: 'a = $1' }), { message: /the parameters are made from them/ });
    assert.throws(() => mysql({ query, acl: 'a = ?' }), { message: /the parameters are made from them/ });
  });
});

describe('the options of database sources', () => {
  it('rejects invalid options with the reason', () => {
    const query = () => [];
    assert.throws(() => postgresql({} as never), { message: /postgresql\.query: expected a function/ });
    assert.throws(() => mysql({ query, acls: '' } as never), {
      message: /unknown option "acls" in mysql; did you mean "acl"/
    });
    for (const passwordHash of ['sha3', 'salt,sha256,salt', 'pbkdf2,sha256', 'pbkdf2,sha256,0,20', 'constructor'])
      assert.throws(() => mysql({ query, passwordHash }), { message: /mysql\.passwordHash: expected auto, plain/ });
    const command = () => null;
    for (const acl of ['GET', 'EVAL x%u', '%u a', ['GET', 7], 'HGETALL a:%u:%c'])
      assert.throws(() => redis({ command, acl } as never), { code: 'OPTION_INVALID' });
    for (const acl of ['FCALL f 1 %u', 'fcall_ro f 1 %u', 'MODULE LOAD %u', 'ACL SETUSER %u'])
      assert.throws(() => redis({ command, acl }), { message: /redis\.acl: expected a command that reads a key/ });
    assert.throws(() => mongodb({ find: query, authenticate: { filter: [] } } as never), { code: 'OPTION_INVALID' });
    for (const breaker of [{ pauseMs: 0 }, { pauseMs: '0s' }, { failures: 0 }])
      assert.throws(() => mysql({ query, breaker }), { code: 'OPTION_INVALID', message: /of at least 1|from 1/ });
  });

  it('requires a placeholder in the queries about one client', () => {
    const about = (option: string) => ({ code: 'OPTION_INVALID', field: option, message: /a placeholder such as %u/ });
    const none = () => [];
    assert.throws(
      () => mongodb({ find: none, authenticate: { filter: { active: true } } }),
      about('mongodb.authenticate')
    );
    assert.throws(() => redis({ command: none, superuser: 'GET rank' }), about('redis.superuser'));
    assert.throws(() => mysql({ query: none, authenticate: 'SELECT 1 AS password' }), about('mysql.authenticate'));
    postgresql({ query: none, acl: 'SELECT * FROM mqtt_acl' }); // rules for everyone
  });
});

describe('a function that queries a database', () => {
  it('refuses clients or leaves them to the next source if the function throws, rejects or returns nonsense', async () => {
    const fail = (error: unknown) => () => {
      throw error;
    };
    const answers: [SqlOptions['query'], RegExp][] = [
      [fail(new Error('a\nb')), /^the query failed: a b \//],
      [fail(undefined), /the query failed: undefined/],
      [() => Promise.reject(Object.assign(new Error(''), { code: 'ECONNREFUSED' })), /ECONNREFUSED/],
      [() => undefined, /must return a list of objects/],
      [() => [7], /must return a list of objects/]
    ];
    for (const [query, message] of answers) {
      await using broker = await sourceBroker(source(query));
      assert.equal(await broker.attempt(ANN), 0x88);
      assert.match(broker.errors[0], message);
      await using ignoring = await sourceBroker(source(query, { onError: 'ignore' }), { allowAnonymous: true });
      assert.equal(await ignoring.attempt(ANN), 0);
    }
  });

  it('calls the function for a limited number of clients at a time, and refuses clients beyond the queue', async () => {
    const waiting: ((rows: Rows) => void)[] = [];
    await using broker = await sourceBroker(
      source(() => new Promise((resolve) => waiting.push(resolve)), { maxConcurrent: 2, maxQueued: 256 })
    );
    const codes = Array.from({ length: 259 }, (_, at) => broker.attempt({ ...ANN, clientId: `c${at}` }));
    assert.equal(await codes[258], 0x88);
    assert.equal(waiting.length, 2);
    for (let at = 0; at < 258; at++) {
      while (waiting.length <= at) await new Promise((resolve) => setImmediate(resolve));
      waiting[at]([{ password: 'a-secret' }]);
    }
    assert.deepEqual([...new Set(await Promise.all(codes.slice(0, 258)))], [0]);
    assert.match(broker.errors[0], /256 queries are already queued/);
  });

  it('does not call the function again for the same credentials while the answer is cached', async () => {
    let asked = 0;
    let password = 'a-secret';
    const query = () => {
      asked++;
      return [{ password }];
    };
    await using broker = await sourceBroker(source(query, { cacheMs: '10s' }));
    for (let at = 0; at < 3; at++) assert.equal(await broker.attempt(ANN), 0);
    assert.equal(asked, 1);
    assert.equal(await broker.attempt({ password: 'b' }), 0x86);
    assert.equal(await broker.attempt({ password: 'b' }), 0x86);
    assert.equal(await broker.attempt({ ...ANN, username: 'bob' }), 0);
    assert.equal(asked, 3);
    password = 'changed';
    assert.equal(await broker.attempt(ANN), 0);
    await broker.kit.clock.advance('10s');
    assert.equal(await broker.attempt(ANN), 0x86);
    password = 'a-secret';
    await broker.kit.broker.access.reload('postgresql');
    assert.equal(await broker.attempt(ANN), 0);
  });

  it('calls the function again for an answer that was pending when the source was reloaded', async () => {
    let answer = () => {};
    let arrive = () => {};
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const answers: Awaitable<Rows>[] = [
      new Promise((resolve) => (answer = () => resolve([{ password: 'old' }]))),
      [{ password: 'new' }]
    ];
    const query = () => {
      arrive();
      return answers.shift();
    };
    await using broker = await sourceBroker(source(query, { cacheMs: '1h' }));
    const first = broker.attempt({ password: 'old' });
    await arrived;
    await broker.kit.broker.access.reload('postgresql');
    answer();
    assert.equal(await first, 0);
    assert.equal(await broker.attempt({ password: 'old' }), 0x86);
  });

  it('refuses a client for whom the function returns too many access rules', async () => {
    const rules = (number: number) => () => Array.from({ length: number }, () => ({ allow: 1, access: 3, topic: 'b' }));
    const rights = async (number: number) => {
      const options = { authenticate: false, acl: 'SELECT x' } as const;
      await using broker = await sourceBroker(source(rules(number), options), { allowAnonymous: true });
      assert.deepEqual(await broker.rights({}, { publish: ['a', 'b'] }), [0x87, 0]);
      return broker.errors;
    };
    assert.deepEqual(await rights(10_000), []);
    assert.match((await rights(10_001))[0], /more than 10000 access rules/);
  });

  it('does not call the function of a source that decides nothing about the client', async () => {
    let asked = 0;
    const query = () => {
      asked++;
      return [];
    };
    await using broker = await sourceBroker(source(query, { onError: 'ignore' }), { allowAnonymous: true });
    assert.equal(await broker.attempt({ username: undefined }), 0);
    assert.equal(asked, 0);
  });
});

describe('the check of a stored password', () => {
  it('checks a hash of the same kind for unknown names', async () => {
    const checks: string[] = [];
    const hash = bcrypt.hashSync('a-secret', 4);
    const query: SqlOptions['query'] = (_, [username]) => (username === 'ann' ? [{ password: hash }] : []);
    const options: Partial<SqlOptions> = {
      passwordHash: 'bcrypt',
      bcrypt: async (password, stored) => {
        checks.push(stored);
        return bcrypt.compare(password.toString(), stored);
      }
    };
    await using broker = await sourceBroker(source(query, options));
    assert.equal(await broker.attempt({ password: 'wrong' }), 0x86);
    assert.equal(await broker.attempt({ username: 'nobody', password: 'a-secret' }), 0x86);
    assert.deepEqual(checks, [hash, hash]);
  });

  it('refuses a password that cannot be read like a wrong one, and reports it', async () => {
    const unreadable: [unknown, string, RegExp][] = [
      ['$7$nonsense', 'auto', /mosquitto|hash/],
      ['no hash', 'sha256', /the stored password is not of the format "sha256"/],
      [{ $ne: 1 }, 'plain', /the field "password" is neither text nor a number/]
    ];
    for (const [password, passwordHash, message] of unreadable) {
      await using broker = await sourceBroker(source(() => [{ password }], { passwordHash }));
      assert.equal(await broker.attempt(ANN), 0x86);
      assert.match(broker.errors[0], message);
    }
  });

  it('admits no client after the source has been removed, and leaves no thread', async () => {
    const hash = bcrypt.hashSync('a-secret', 4);
    let checking = () => {};
    let finish = () => {};
    const arrived = new Promise<void>((resolve) => (checking = resolve));
    const options: Partial<SqlOptions> = {
      passwordHash: 'bcrypt',
      bcrypt: () => {
        checking();
        return new Promise((resolve) => (finish = () => resolve(true)));
      }
    };
    await using broker = await sourceBroker(source(() => [{ password: hash }], options));
    const code = broker.attempt(ANN);
    await arrived;
    await broker.kit.broker.access.delete('postgresql');
    finish();
    assert.equal(await code, 0x88);
    const checker = new BcryptChecker();
    await checker.close();
    await assert.rejects(checker.check(Buffer.from('a-secret'), hash), { code: 'SOURCE_CLOSED' });
  });

  it('keeps no password in memory', () => {
    const { read } = readPasswordFormat('plain', '');
    const id = read({ password: 'a-secret' }, async () => false)?.id ?? '';
    assert.ok(!id.includes('a-secret') && !id.includes(Buffer.from('a-secret').toString('hex')));
    assert.notEqual(id, read({ password: 'b-secret' }, async () => false)?.id);
  });

  it('accepts bytes of a column', async () => {
    const password = Buffer.from(await hashPassword('a-secret', 10));
    await using broker = await sourceBroker(
      source(() => [{ password, is_superuser: Buffer.from([1]) }], { passwordHash: 'auto' })
    );
    assert.deepEqual(await broker.rights(ANN, { publish: ['a'] }), [0]);
  });
});
