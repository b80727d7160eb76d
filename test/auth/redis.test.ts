import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { type RedisOptions, redis } from '../../adapters/auth/database/index.ts';
import { hashPassword } from '../../lib/index.ts';
import { service } from '../support/services.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { HOSTILE, sourceBroker } from './source-kit.ts';

const { url, skip } = service('redis');
/** The number of a database that only this file uses. */
const DATABASE = 1;

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

describe('a source with Redis', { skip }, () => {
  let client: Redis;
  const clientFor = (given = url) => {
    const made = new Redis(given, { db: DATABASE, maxRetriesPerRequest: 0, retryStrategy: () => 5 });
    made.on('error', () => {});
    return made;
  };
  const source = (options: Partial<RedisOptions> = {}) =>
    redis({ command: (args) => client.call(...args), ...options });

  before(() => {
    client = clientFor();
  });
  beforeEach(() => client.flushdb());
  after(() => client?.quit());

  it('accepts users with the right password, and leaves unknown names to the next source', async () => {
    await client.hset('mqtt_user:ann', { password: await hashPassword('a-secret', 10) });
    await client.hset('mqtt_user:root', { password: await hashPassword('r-secret', 10), is_superuser: '1' });
    await using broker = await sourceBroker(source());
    assert.equal(await broker.attempt({ password: 'a-secret' }), 0);
    assert.equal(await broker.attempt({ password: 'r-secret' }), 0x86);
    assert.equal(await broker.attempt({}), 0x86);
    assert.equal(await broker.attempt({ username: undefined }), 0x87);
    assert.deepEqual(await broker.rights({ password: 'a-secret' }, { publish: ['a'] }), [0x87]);
    assert.deepEqual(await broker.rights({ username: 'root', password: 'r-secret' }, { publish: ['a'] }), [0]);
    await using open = await sourceBroker(source({ name: 'b' }), { allowAnonymous: true });
    assert.equal(await open.attempt({ username: 'nobody' }), 0);
    assert.deepEqual([...broker.errors, ...open.errors], []);
  });

  it('understands the replies of HMGET, HGETALL, HGET and GET, from both versions of the protocol', async () => {
    await client.hset('mqtt_user:ann', { password: sha256('saltx'), salt: 'salt', is_superuser: '1' });
    await client.set('plain:ann', 'x');
    const map = (pairs: unknown) => new Map(Object.entries(pairs as object));
    const commands: Partial<RedisOptions>[] = [
      { authenticate: 'HMGET mqtt_user:%u password salt', passwordHash: 'salt,sha256' },
      { authenticate: 'HGETALL mqtt_user:%u', passwordHash: 'salt,sha256' },
      {
        authenticate: ['HGETALL', 'mqtt_user:%u'],
        passwordHash: 'salt,sha256',
        command: (args) => client.hgetall(args[1])
      },
      {
        authenticate: 'hgetall mqtt_user:%u',
        passwordHash: 'salt,sha256',
        command: async (args) => map(await client.hgetall(args[1]))
      },
      { authenticate: 'GET plain:%u', passwordHash: 'plain' },
      { authenticate: 'GET plain:%u', passwordHash: 'plain', superuser: 'HGET mqtt_user:%u is_superuser' }
    ];
    for (const options of commands) {
      await using broker = await sourceBroker(source({ ...options, acl: false }));
      assert.equal(await broker.attempt({ password: 'x' }), 0, JSON.stringify(options));
      assert.equal(await broker.attempt({ password: 'y' }), 0x86);
      assert.equal(await broker.attempt({ username: 'nobody', password: 'x' }), 0x86);
      assert.deepEqual(broker.errors, []);
      if (options.superuser !== undefined)
        assert.deepEqual(await broker.rights({ password: 'x' }, { publish: ['a'] }), [0]);
    }
  });

  it('allows the topics of a hash', async () => {
    await client.hset('mqtt_acl:ann', { 'a/#': 1, 'b/+': '2', '%u/%c': 3, 'eq c/+': 1 });
    await using broker = await sourceBroker(source({ authenticate: false }), { allowAnonymous: true });
    assert.deepEqual(await broker.rights({}, { publish: ['a/x', 'b/x', 'ann/c', 'ann/d'] }), [0x87, 0, 0, 0x87]);
    const subscribe = ['a/#', 'a/x', '#', 'b/x', 'ann/+', 'c/+', 'c/x'];
    assert.deepEqual(await broker.rights({}, { subscribe }), [0, 0, 0x87, 0x87, 0x87, 0, 0x87]);
    await client.hset('mqtt_acl:+', { '%u/x': 3 });
    assert.deepEqual(await broker.rights({ username: '+' }, { publish: ['a/x'], subscribe: ['+/x'] }), [0x87, 0x87]);
    assert.deepEqual(broker.errors, []);
    await client.hset('mqtt_acl:bad', { a: 'perhaps' });
    assert.deepEqual(await broker.rights({ username: 'bad' }, { publish: ['a'] }), [0x87]);
    await broker.kit.clock.advance('30s'); // the client would be asked about again
    assert.match(broker.errors[0], /must be 1 \(subscribe\), 2 \(publish\) or 3 \(both\)/);
  });

  it('treats hostile names as parts of one element', async () => {
    await client.hset('mqtt_user:ann', { password: sha256('a-secret') });
    await client.hset('mqtt_acl:ann', { 'ann/#': 3 });
    for (const [at, name] of HOSTILE.entries())
      if (at % 2 === 0) await client.hset(`mqtt_user:${name}`, { password: sha256(`${at}`) });
    const size = await client.dbsize();
    await using broker = await sourceBroker(source({ passwordHash: 'sha256' }), { maxConnectSize: 300_000 });
    for (const [at, name] of HOSTILE.entries()) {
      for (const password of ['a-secret', '', Buffer.from([0xff, 0]), Buffer.alloc(65_535, '*')])
        assert.equal(await broker.attempt({ username: name, password }), 0x86, name.slice(0, 50));
      if (at % 2 > 0) continue;
      assert.deepEqual(await broker.rights({ username: name, password: `${at}` }, { publish: ['ann/x'] }), [0x87]);
    }
    assert.equal(await broker.attempt({ password: 'a-secret' }), 0);
    assert.equal(await client.dbsize(), size);
    assert.deepEqual(broker.errors, []);
  });

  it('does not count a key of another type as a failure of the server', async () => {
    await client.hset('mqtt_user:ann', { password: 'x' });
    await client.set('mqtt_user:list', 'x');
    await using broker = await sourceBroker(source({ passwordHash: 'plain', breaker: { failures: 1 } }));
    assert.equal(await broker.attempt({ username: 'list', password: 'x' }), 0x88);
    assert.match(broker.errors[0], /WRONGTYPE/);
    assert.equal(await broker.attempt({ password: 'x' }), 0);
  });

  it('refuses clients while the server is down, without secrets in the errors, and accepts them when it is back', async () => {
    await client.hset('mqtt_user:ann', { password: 'x' });
    const proxy = new TcpProxy(url);
    await proxy.start();
    await using _ = proxy;
    const behind = clientFor(proxy.replaceIn(url));
    const options = { passwordHash: 'plain', breaker: { failures: 2, pauseMs: '10s' } };
    await using broker = await sourceBroker(source({ ...options, command: (args) => behind.call(...args) }));
    assert.equal(await broker.attempt({ password: 'x' }), 0);
    await proxy.stop();
    assert.equal(await broker.attempt({ password: 'x' }), 0x88);
    assert.equal(await broker.attempt({ password: 'x' }), 0x88);
    assert.match(broker.errors.at(-1) ?? '', /it will not be asked for 10000 ms/);
    const ready = new Promise((resolve) => behind.once('ready', resolve));
    await proxy.start();
    await ready;
    assert.equal(await broker.attempt({ password: 'x' }), 0x88, 'it is not asked');
    await broker.kit.clock.advance('10s');
    assert.equal(await broker.attempt({ password: 'x' }), 0);
    behind.disconnect();
    const wrong = new URL(url);
    wrong.password = 'wrong-secret';
    const stranger = clientFor(wrong.href);
    const refused = { name: 'b', command: (args: [string, ...string[]]) => stranger.call(...args) };
    await using other = await sourceBroker(source(refused));
    assert.equal(await other.attempt({ password: 'x' }), 0x88);
    assert.doesNotMatch(JSON.stringify(other.errors), /wrong-secret/);
    stranger.disconnect();
  });
});
