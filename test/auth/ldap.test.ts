import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Client, DN } from 'ldapts';
import { type LdapOptions, ldap } from '../../adapters/auth/ldap/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { makeCertificates } from '../support/certificates.ts';
import { service, servicesCa } from '../support/services.ts';

const { url, skip } = service('ldap');
const { host, username: encodedDn, password: adminPassword } = new URL(url || 'ldap://localhost');
const SERVER = `ldap://${host}`;
const ADMIN = { bindDn: decodeURIComponent(encodedDn), bindPassword: adminPassword };
const BASE = `ou=${randomUUID()},dc=example,dc=com`;
const SEARCH = { url: SERVER, baseDn: BASE };

/** Names with characters that have a meaning in filters or distinguished names, of users who exist. */
const SPECIAL = ['*', 'a)(uid=*', 'back\\slash', 'a,b+c"d;<e>=#f', '#first', 'ä€😀', 'inner space'];

interface Started extends AsyncDisposable {
  readonly kit: TestBroker;
  readonly errors: string[];
  /** Connects and returns 0, or the reason code of the refusal. */
  attempt(username: string | undefined, password?: string | Buffer, clientId?: string): Promise<number>;
}

async function start(options: LdapOptions, more: Parameters<typeof createTestBroker>[0] = {}): Promise<Started> {
  const kit = await createTestBroker({ auth: [ldap(options)], maxConnectSize: '256KB', ...more });
  const errors: string[] = [];
  kit.broker.on('error', ({ error, during }) => errors.push(`${error.message} / ${during}`));
  return {
    kit,
    errors,
    attempt: async (username, password, clientId = 'c') => {
      const login = {
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password })
      };
      try {
        await using _ = await kit.broker.connect({ clientId, ...login, protocolVersion: 5 });
        return 0;
      } catch (error) {
        return (error as { reasonCode: number }).reasonCode ?? error;
      }
    },
    [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]()
  };
}

function hash(scheme: string, algorithm: string, password: string, salt = ''): string {
  const digest = createHash(algorithm).update(password).update(salt).digest();
  return `{${scheme}}${Buffer.concat([digest, Buffer.from(salt)]).toString('base64')}`;
}

function dnOf(name: string): string {
  return `${new DN().addPairRDN('uid', name)},${BASE}`;
}

/** A relay of TCP connections before the server, which can be stopped and started again. */
class Relay implements AsyncDisposable {
  readonly sockets = new Set<Socket>();
  connections = 0;
  most = 0;
  #server: Server | undefined;
  #port = 0;

  get url(): string {
    return `ldap://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<this> {
    const [, hostname, port] = /^(.*):(\d+)$/.exec(host) as RegExpExecArray;
    const server = createServer((socket) => {
      const other = connect({ host: hostname, port: Number(port) });
      this.connections++;
      this.sockets.add(socket);
      this.most = Math.max(this.most, this.sockets.size);
      socket.pipe(other).pipe(socket);
      for (const one of [socket, other]) one.on('error', () => {});
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
      other.on('close', () => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    return this;
  }

  /** Close the connections, and wait until they are closed. */
  async cut(): Promise<void> {
    const closed = [...this.sockets].map((socket) => new Promise((resolve) => socket.on('close', resolve)));
    for (const socket of this.sockets) socket.destroy();
    await Promise.all(closed);
    await new Promise((resolve) => setImmediate(resolve));
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server?.close(resolve));
    await this.cut();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

describe('a login by LDAP', { skip }, () => {
  const admin = new Client({ url: SERVER });

  before(async () => {
    await admin.bind(ADMIN.bindDn, ADMIN.bindPassword);
    await admin.add(BASE, { objectClass: 'organizationalUnit', ou: BASE.slice(3, BASE.indexOf(',')) });
    const add = (uid: string, more: Record<string, string | string[]> = {}) =>
      admin.add(dnOf(uid), {
        objectClass: ['inetOrgPerson', 'mqttUser'],
        cn: 'test',
        sn: 'test',
        uid,
        ...(more.userPassword === '' ? {} : { userPassword: hash('SSHA', 'sha1', 'a-secret', 'salt'), ...more })
      });
    await add('ann');
    await add('off', { isEnabled: 'FALSE' });
    await add('on', { isEnabled: 'TRUE' });
    await add('root', { isSuperuser: 'TRUE' });
    await add('Twin', { uid: ['Twin', 'double'] });
    await add('twin2', { uid: ['twin2', 'double'] });
    await add('ruled');
    await add('none', { userPassword: '' });
    const stored = {
      plain: 'a-secret',
      clear: '{CLEARTEXT}a-secret',
      ssha: hash('SSHA', 'sha1', 'a-secret', 'pepper'),
      sha: hash('sha', 'sha1', 'a-secret'),
      md5: hash('MD5', 'md5', 'a-secret'),
      smd5: hash('SMD5', 'md5', 'a-secret', 'x'),
      sha256: hash('SHA256', 'sha256', 'a-secret'),
      ssha512: hash('SSHA512', 'sha512', 'a-secret', 'salt and more salt'),
      crypt: '{CRYPT}$6$salt$hash',
      short: '{SSHA}AAAA',
      odd: '{ODD}x',
      bcrypt: `$2b$10$${'a'.repeat(53)}`
    };
    for (const [uid, userPassword] of Object.entries(stored)) await add(`h-${uid}`, { userPassword });
    await add('h-two', { userPassword: ['{CRYPT}x', 'other', 'a-secret'] });
    for (const name of SPECIAL) await add(name);
    await admin.add(`cn=admins,${BASE}`, {
      objectClass: 'groupOfNames',
      cn: 'admins',
      member: [dnOf('on'), dnOf('a,b+c"d;<e>=#f')]
    });
  });
  after(() => admin.unbind());

  it('searches for the entry of the client, and binds with its password', async () => {
    for (const own of [{}, ADMIN]) {
      await using broker = await start({ ...SEARCH, ...own });
      assert.equal(await broker.attempt('ann', 'a-secret'), 0);
      assert.equal(await broker.attempt('ann', 'wrong'), 0x86);
      assert.equal(await broker.attempt('ann', 'a-secret'), 0);
      assert.equal(await broker.attempt('none', 'a-secret'), 0x86, 'an entry without a password');
      assert.equal(await broker.attempt('nobody', 'a-secret'), 0x86);
      broker.kit.broker.hook('authenticate', ({ username }) => username === 'nobody' || undefined);
      assert.equal(await broker.attempt('nobody', 'x'), 0, 'the next source decides about unknown clients');
      assert.equal(await broker.attempt('ann', 'wrong'), 0x86);
      assert.deepEqual(broker.errors, []);
    }
  });

  it('binds under a name derived from the user name or client id', async () => {
    await using broker = await start({ url: SERVER, userDn: `uid=%u,${BASE}` });
    assert.equal(await broker.attempt('ann', 'a-secret'), 0);
    for (const name of ['ann', 'nobody']) assert.equal(await broker.attempt(name, 'wrong'), 0x86);
    assert.equal(await broker.attempt('off', 'a-secret'), 0, 'the entry is not read');
    await using other = await start({ url: SERVER, userDn: `uid=%c,${BASE}`, enabledAttribute: 'isEnabled' });
    assert.equal(await other.attempt(undefined, 'a-secret', 'ann'), 0);
    assert.equal(await other.attempt('ann', 'a-secret', 'nobody'), 0x86);
    assert.equal(await other.attempt('ann', 'a-secret', 'off'), 0x87);
    assert.deepEqual([...broker.errors, ...other.errors], []);
  });

  it('supports names with characters that are special in filters and distinguished names', async () => {
    await using search = await start({ ...SEARCH, ...ADMIN, usernameAttribute: 'uid' });
    await using direct = await start({ url: SERVER, userDn: `uid=%u,${BASE}` });
    await using compared = await start({ ...SEARCH, ...ADMIN, method: 'compare' });
    for (const name of SPECIAL)
      for (const broker of [search, direct, compared]) {
        assert.equal(await broker.attempt(name, 'a-secret'), 0, name);
        assert.equal(await broker.attempt(name, 'wrong'), 0x86, name);
      }
    assert.deepEqual([...search.errors, ...direct.errors, ...compared.errors], []);
  });

  it('refuses names that would change the filter or the distinguished name', async () => {
    const sources: LdapOptions[] = [
      SEARCH,
      { ...SEARCH, ...ADMIN, filter: '(&(objectClass=inetOrgPerson)(|(uid=%u)(mail=%u)))' },
      { ...SEARCH, ...ADMIN, method: 'compare' },
      { url: SERVER, userDn: `uid=%u,${BASE}` },
      { url: SERVER, userDn: '%u' }
    ];
    const names = [
      'ann)(uid=*',
      'an*',
      '\\2a',
      '\\',
      '(',
      '*)(objectClass=*',
      'ann))(|(uid=*',
      'x)(|(uid=ann)',
      '" ann',
      'ann+cn=test',
      `ann,${BASE}`,
      `x,${BASE}+uid=ann`,
      'EXTERNAL',
      'PLAIN',
      'x'.repeat(65_535),
      '*'.repeat(65_535)
    ];
    for (const options of sources) {
      await using broker = await start(options);
      for (const name of names) assert.equal(await broker.attempt(name, 'a-secret'), 0x86, name.slice(0, 40));
      assert.deepEqual(broker.errors, []);
    }
  });

  it('refuses passwords that are empty, contain a NUL or are not text', async () => {
    for (const options of [
      SEARCH,
      { ...SEARCH, ...ADMIN, method: 'compare' as const },
      { url: SERVER, userDn: `uid=%u,${BASE}` }
    ]) {
      await using broker = await start(options, { allowAnonymous: true });
      const passwords = [undefined, '', '\0', 'a-secret\0', Buffer.from([0xff, 0xfe]), 'x'.repeat(65_535)];
      for (const password of passwords) assert.equal(await broker.attempt('ann', password), 0x86);
      assert.equal(await broker.attempt(undefined, undefined), 0, 'a client without a name is left to others');
      assert.deepEqual(broker.errors, []);
    }
  });

  it('compares the password with the one in the entry if configured', async () => {
    await using broker = await start({ ...SEARCH, ...ADMIN, method: 'compare' });
    for (const name of ['plain', 'clear', 'ssha', 'sha', 'md5', 'smd5', 'sha256', 'ssha512']) {
      assert.equal(await broker.attempt(`h-${name}`, 'a-secret'), 0, name);
      assert.equal(await broker.attempt(`h-${name}`, 'wrong'), 0x86, name);
    }
    assert.equal(await broker.attempt('h-two', 'a-secret'), 0, 'one of several values');
    assert.equal(await broker.attempt('none', 'a-secret'), 0x86);
    assert.equal(await broker.attempt('nobody', 'a-secret'), 0x86);
    assert.equal(await broker.attempt('h-ssha', hash('SSHA', 'sha1', 'a-secret', 'pepper')), 0x86);
    assert.deepEqual(broker.errors, []);
    const formats = {
      crypt: /format \{CRYPT\}, which only the server/,
      short: /\{SSHA\} hash in the directory is not/
    };
    for (const [name, message] of Object.entries({ ...formats, odd: /format \{ODD\}/, bcrypt: /format bcrypt/ })) {
      await broker.kit.clock.advance('2s');
      const given = name === 'bcrypt' ? `$2b$10$${'a'.repeat(53)}` : 'a-secret';
      assert.equal(
        await broker.attempt(`h-${name}`, given),
        0x86,
        'as for a wrong password, which is not shown either'
      );
      assert.match(broker.errors.pop() ?? '', message);
    }
    await using blind = await start({ ...SEARCH, method: 'compare' });
    assert.equal(await blind.attempt('h-plain', 'a-secret'), 0x86, 'without bindDn the password cannot be read');
  });

  it('refuses a client for whom there is more than one entry, and reports it', async () => {
    await using broker = await start(SEARCH);
    assert.equal(await broker.attempt('double', 'a-secret'), 0x86, 'as for a wrong password');
    assert.deepEqual(broker.errors, [
      'the filter finds more than one entry for the user name "double", who is refused / asking the server of the source ldap'
    ]);
    assert.equal(await broker.attempt('twin', 'a-secret'), 0);
  });

  it('treats clients as unknown if their name makes a request too long for the server', async () => {
    const long = 'n'.repeat(60_000);
    const filters = [
      { filter: '(|(uid=%u)(cn=%u)(sn=%u)(mail=%u)(displayName=%u))' },
      { superuserFilter: '(|(cn=%c)(sn=%c)(mail=%c)(displayName=%c)(uid=%c))' }
    ];
    for (const options of [
      ...filters.map((one) => ({ ...SEARCH, ...one })),
      { url: SERVER, userDn: `uid=%u+cn=%u,${BASE}` }
    ]) {
      await using broker = await start({ ...options, breaker: { failures: 2 } }, { maxClientidLen: 65_535 });
      const { superuserFilter } = options as LdapOptions;
      const known = superuserFilter === undefined ? undefined : 'ann';
      for (const name of [long, ','.repeat(60_000), '('.repeat(60_000)])
        for (let at = 0; at < 3; at++)
          assert.equal(await broker.attempt(known ?? name, 'a-secret', name), known === undefined ? 0x86 : 0);
      assert.equal(await broker.attempt('nobody', 'x'), 0x86, 'the server works');
      assert.deepEqual(broker.errors, []);
    }
  });

  it('refuses clients whose entry is not enabled', async () => {
    await using broker = await start(SEARCH);
    assert.equal(await broker.attempt('off', 'a-secret'), 0x87);
    assert.equal(await broker.attempt('off', 'wrong'), 0x86, 'only the right password shows that');
    assert.equal(await broker.attempt('on', 'a-secret'), 0);
    await using other = await start({ ...SEARCH, enabledAttribute: 'isSuperuser' });
    assert.equal(await other.attempt('off', 'a-secret'), 0);
  });

  it('makes superusers by an attribute or a group', async () => {
    const isSuperuser = async (broker: Started, username: string) => {
      const client = await broker.kit.connect({ clientId: username, username, password: 'a-secret' });
      const rank = broker.kit.broker.sessions.get(username)?.client.isSuperuser;
      await client.disconnect();
      return rank;
    };
    await using byAttribute = await start({ ...SEARCH, superuserAttribute: 'isSuperuser' });
    assert.equal(await isSuperuser(byAttribute, 'root'), true);
    assert.equal(await isSuperuser(byAttribute, 'ann'), false);
    const superuserFilter = '(&(objectClass=groupOfNames)(cn=admins)(member=%d))';
    for (const options of [SEARCH, { url: SERVER, userDn: `uid=%u,${BASE}`, superuserBaseDn: BASE }]) {
      await using byGroup = await start({ ...options, superuserFilter });
      assert.equal(await isSuperuser(byGroup, 'on'), true);
      assert.equal(await isSuperuser(byGroup, 'ann'), false);
      assert.equal(await isSuperuser(byGroup, 'a,b+c"d;<e>=#f'), true);
      assert.equal(await isSuperuser(byGroup, '*'), false);
      assert.deepEqual(byGroup.errors, []);
    }
  });

  it('takes the user name from the entry if configured', async () => {
    await using broker = await start({ ...SEARCH, usernameAttribute: 'uid' });
    const client = await broker.kit.connect({ username: 'RULED', password: 'a-secret' });
    assert.equal(broker.kit.broker.sessions.get(client.clientId)?.client.username, 'ruled');
  });

  it('caches answers for a time if configured', async () => {
    await using relay = await new Relay().start();
    await using broker = await start({ ...SEARCH, url: relay.url, cacheMs: '1m' });
    assert.equal(await broker.attempt('ann', 'a-secret'), 0);
    assert.equal(await broker.attempt('nobody', 'x'), 0x86);
    await relay.stop();
    assert.equal(await broker.attempt('ann', 'a-secret'), 0);
    assert.equal(await broker.attempt('nobody', 'x'), 0x86);
    assert.equal(await broker.attempt('ann', 'wrong'), 0x88);
    await broker.kit.broker.access.reload('ldap');
    assert.equal(await broker.attempt('ann', 'a-secret'), 0x88);
  });

  it('works again when the server is back, after the pause of the circuit breaker', async () => {
    await using relay = await new Relay().start();
    await using broker = await start({ ...SEARCH, url: relay.url, breaker: { failures: 2, pauseMs: '10s' } });
    assert.equal(await broker.attempt('ann', 'a-secret'), 0);
    await relay.stop();
    for (let time = 0; time < 3; time++) assert.equal(await broker.attempt('ann', 'a-secret'), 0x88);
    assert.match(broker.errors[0], /^cannot connect to 127\.0\.0\.1:\d+: connect ECONNREFUSED .* of the source ldap$/);
    assert.match(broker.errors[1], /it will not be asked for 10000 ms/);
    assert.equal(broker.errors.length, 2);
    await relay.start();
    assert.equal(await broker.attempt('ann', 'a-secret'), 0x88);
    await broker.kit.clock.advance('10s');
    assert.equal(await broker.attempt('ann', 'a-secret'), 0);
    await using lenient = await start(
      { ...SEARCH, url: 'ldap://127.0.0.1:9', onError: 'ignore' },
      { allowAnonymous: true }
    );
    assert.equal(await lenient.attempt('ann', 'x'), 0, 'the next source decides');
  });

  it('replaces a connection that the server has closed while idle', async () => {
    await using relay = await new Relay().start();
    await using broker = await start({ ...SEARCH, ...ADMIN, url: relay.url });
    for (let time = 0; time < 3; time++) {
      assert.equal(await broker.attempt('ann', 'a-secret'), 0);
      await relay.cut();
    }
    assert.equal(await broker.attempt('ann', 'a-secret'), 0);
    await broker.kit.clock.advance('2m');
    const { connections } = relay;
    assert.equal(await broker.attempt('ann', 'a-secret'), 0);
    assert.ok(relay.connections > connections, 'a connection that was idle for long is not used');
    assert.deepEqual(broker.errors, []);
  });

  it('opens no more connections than allowed, and refuses requests beyond the queue', async () => {
    for (const own of [{}, ADMIN]) {
      await using relay = await new Relay().start();
      await using broker = await start({ ...SEARCH, ...own, url: relay.url, maxConcurrent: 3 });
      const codes = await Promise.all(
        Array.from({ length: 200 }, (_, at) => broker.attempt('ann', at % 4 === 0 ? 'wrong' : 'a-secret', `c${at}`))
      );
      assert.deepEqual(
        codes,
        codes.map((_, at) => (at % 4 === 0 ? 0x86 : 0))
      );
      assert.ok(relay.most <= 3, `${relay.most} connections`);
      assert.deepEqual(broker.errors, []);
    }
    await using broker = await start({ ...SEARCH, maxConcurrent: 1, maxQueued: 256 });
    const codes = await Promise.all(
      Array.from({ length: 259 }, (_, at) => broker.attempt('ann', 'a-secret', `c${at}`))
    );
    assert.deepEqual(
      codes.filter((code) => code !== 0),
      [0x88, 0x88]
    );
    assert.match(broker.errors[0], /256 requests are already queued \(option maxQueued\)/);
  });

  it('reports a wrong bindPassword or baseDn without the password', async () => {
    await using broker = await start({ ...SEARCH, ...ADMIN, bindPassword: 'not-this-one' });
    assert.equal(await broker.attempt('ann', 'a-secret'), 0x88);
    assert.match(broker.errors[0], /^the server refuses bindDn and bindPassword: .*0x31/);
    await using other = await start({ url: SERVER, baseDn: 'dc=nowhere' });
    assert.equal(await other.attempt('ann', 'a-secret'), 0x88);
    assert.match(other.errors[0], /0x20/);
    assert.ok(![...broker.errors, ...other.errors].some((text) => /not-this-one|a-secret/.test(text)));
  });

  it('uses ldaps and StartTLS, and verifies the server', async () => {
    const ca = readFileSync(servicesCa());
    const secure = `ldaps://${new URL(process.env.TEST_LDAPS_URL as string).host}`;
    using certificates = makeCertificates();
    for (const options of [
      { ...SEARCH, url: secure },
      { ...SEARCH, startTls: true },
      { ...SEARCH, ...ADMIN, startTls: true, servername: 'localhost' }
    ]) {
      await using broker = await start({ ...options, ca });
      assert.equal(await broker.attempt('ann', 'a-secret'), 0);
      assert.equal(await broker.attempt('ann', 'wrong'), 0x86);
      assert.deepEqual(broker.errors, []);
      const untrusted = [{}, { ca: certificates.ca.cert }, { ca, servername: 'other.example' }];
      for (const more of untrusted) {
        await using bad = await start({ ...options, servername: undefined, ...more } as LdapOptions);
        assert.equal(await bad.attempt('ann', 'a-secret'), 0x88);
        assert.match(bad.errors[0], /^cannot connect to [\d.:]+: .*(certificate|altnames)/);
      }
    }
  });
});
