import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { exportJWK, type JWTPayload, SignJWT } from 'jose';
import { type JwtOptions, jwt } from '../../adapters/auth/jwt/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { evalFlags, SOURCES } from '../support/programs.ts';

const SECRET = 'a secret of the tests that is long enough';
/** The virtual clock begins at this time. */
const NOW = Date.UTC(2026, 0, 1) / 1000;

const keys = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  otherRsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ec: generateKeyPairSync('ec', { namedCurve: 'prime256v1' }),
  ec384: generateKeyPairSync('ec', { namedCurve: 'secp384r1' }),
  ed: generateKeyPairSync('ed25519')
};

function pem(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }).toString();
}

/** Signs a token. @param key default: the secret */
function sign(claims: JWTPayload, key?: KeyObject, alg = 'HS256', kid?: string): Promise<string> {
  const header = kid === undefined ? { alg } : { alg, kid };
  return new SignJWT(claims).setProtectedHeader(header).sign(key ?? createSecretKey(Buffer.from(SECRET)));
}

/** A token without a valid signature. */
function unsigned(header: object, claims: object, signature = ''): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode(header)}.${encode(claims)}.${signature}`;
}

interface Started extends AsyncDisposable {
  readonly kit: TestBroker;
  readonly errors: string[];
  readonly ends: string[];
  /** Connects and returns 0, or the reason code of the refusal. */
  attempt(password: string | undefined, username?: string, clientId?: string): Promise<number>;
}

async function start(options: JwtOptions): Promise<Started> {
  const kit = await createTestBroker();
  const errors: string[] = [];
  const ends: string[] = [];
  kit.broker.on('error', ({ error }) => errors.push(`${(error as { code?: string }).code}: ${error.message}`));
  await kit.broker.access.create(jwt(options));
  kit.broker.on('client.disconnected', ({ client, reason }) => ends.push(`${client.clientId} ${reason}`));
  return {
    kit,
    errors,
    ends,
    attempt: async (password, username, clientId = 'c') => {
      try {
        await using _ = await kit.broker.connect({ clientId, username, password, protocolVersion: 5 });
        return 0;
      } catch (error) {
        return (error as { reasonCode: number }).reasonCode;
      }
    },
    [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]()
  };
}

describe('a token', () => {
  it('accepts a token of each algorithm with the right key, and only with that', async () => {
    const cases: [JwtOptions, good: string, bad: string][] = [
      [{ secret: SECRET }, await sign({}), await sign({}, createSecretKey(Buffer.from('another one')))],
      [
        { secret: Buffer.from(SECRET) },
        await sign({}, undefined, 'HS512'),
        await sign({}, keys.rsa.privateKey, 'RS256')
      ],
      [
        { publicKey: pem(keys.rsa.publicKey) },
        await sign({}, keys.rsa.privateKey, 'RS256'),
        await sign({}, keys.otherRsa.privateKey, 'RS256')
      ],
      [
        { publicKey: keys.rsa.publicKey },
        await sign({}, keys.rsa.privateKey, 'PS512'),
        // the public key, which everybody knows, as a secret
        await sign({}, createSecretKey(Buffer.from(pem(keys.rsa.publicKey))))
      ],
      [
        { publicKey: keys.ec.publicKey.export({ format: 'jwk' }) },
        await sign({}, keys.ec.privateKey, 'ES256'),
        await sign({}, keys.ec384.privateKey, 'ES384')
      ],
      [
        { publicKey: Buffer.from(pem(keys.ec384.publicKey)) },
        await sign({}, keys.ec384.privateKey, 'ES384'),
        await sign({}, keys.ec.privateKey, 'ES256')
      ],
      [{ publicKey: keys.ed.publicKey }, await sign({}, keys.ed.privateKey, 'EdDSA'), await sign({})]
    ];
    for (const [options, good, bad] of cases) {
      await using broker = await start(options);
      assert.equal(await broker.attempt(good), 0);
      assert.equal(await broker.attempt(bad), 0x87);
      assert.equal(await broker.attempt(unsigned({ alg: 'none' }, {})), 0x87);
      assert.equal(await broker.attempt(unsigned({ alg: 'None' }, {}, 'x')), 0x87);
      assert.deepEqual(broker.errors, []);
    }
  });

  it('refuses a token that was changed, or names an algorithm that is not configured', async () => {
    await using broker = await start({ secret: SECRET, algorithms: ['HS512'] });
    const token = await sign({ sub: 'ann' }, undefined, 'HS512');
    assert.equal(await broker.attempt(token), 0);
    assert.equal(await broker.attempt(await sign({ sub: 'ann' })), 0x87);
    const [header, , signature] = token.split('.');
    const claims = Buffer.from('{"sub":"bob"}').toString('base64url');
    assert.equal(await broker.attempt(`${header}.${claims}.${signature}`), 0x87);
    assert.equal(await broker.attempt(unsigned({ alg: 'HS512', crit: ['x'], x: 1 }, {}, signature)), 0x87);
  });

  it('refuses a token that has expired or is not valid yet, by the clock of the broker', async () => {
    await using broker = await start({ secret: SECRET });
    const token = await sign({ nbf: NOW + 100, exp: NOW + 200 });
    assert.equal(await broker.attempt(token), 0x87);
    await broker.kit.clock.advance('100s');
    assert.equal(await broker.attempt(token), 0);
    await broker.kit.clock.advance('100s');
    assert.equal(await broker.attempt(token), 0x87);
    assert.equal(await broker.attempt(await sign({ exp: 'soon' as never })), 0x87);
  });

  it('accepts the tolerated time difference, and requires expiry, issuer and audience if configured', async () => {
    await using broker = await start({
      secret: SECRET,
      clockToleranceMs: '10s',
      requireExpiry: true,
      issuer: ['a', 'b'],
      audience: 'mqtt'
    });
    const good = { exp: NOW - 5, iss: 'b', aud: ['web', 'mqtt'] };
    assert.equal(await broker.attempt(await sign(good)), 0);
    for (const wrong of [{ exp: undefined }, { exp: NOW - 11 }, { iss: 'c' }, { aud: 'web' }, { aud: undefined }])
      assert.equal(await broker.attempt(await sign({ ...good, ...wrong })), 0x87, JSON.stringify(wrong));
  });

  it('reports the reason of a refused token, of which the client learns only whether it has expired', async () => {
    await using broker = await start({
      secret: SECRET,
      issuer: 'a',
      audience: 'mqtt',
      requireExpiry: true,
      claims: { room: '1' }
    });
    const known: string[] = [];
    broker.kit.broker.on('client.rejected', ({ why }) => known.push(why));
    const told: (string | undefined)[] = [];
    const good = { exp: NOW + 100, iss: 'a', aud: 'mqtt', room: '1' };
    const [header, payload] = (await sign(good)).split('.');
    for (const token of [
      await sign({ ...good, exp: NOW - 1 }),
      await sign({ ...good, aud: 'web' }),
      await sign({ ...good, iss: 'b' }),
      await sign({ ...good, aud: undefined }),
      await sign({ ...good, nbf: NOW + 50 }),
      await sign({ ...good, room: '2' }),
      `${header}.${payload}.${'A'.repeat(43)}`
    ]) {
      const connecting = { clientId: 'c', password: token, protocolVersion: 5 } as const;
      await broker.kit.broker.connect(connecting).catch(({ properties }) => told.push(properties.reasonString));
      assert.ok(!known.join().includes(token.split('.')[2]), 'the signature is shown');
    }
    assert.deepEqual(known, [
      'source jwt: the token has expired',
      'source jwt: the token is for another audience (aud; option audience)',
      'source jwt: the token is from another issuer (iss; option issuer)',
      'source jwt: the claim "aud" of the token is missing',
      'source jwt: the token is not valid yet (nbf)',
      'source jwt: the claim "room" of the token does not fit',
      'source jwt: the signature of the token does not fit the key'
    ]);
    const codes = broker.kit.broker.monitor.reasons.list({ clientId: 'c' }).entries.map(({ code }) => code);
    assert.deepEqual(codes, Array(4).fill('wrong_password'), 'four of a client that has never connected are kept');
    const invalid = 'the token is not valid';
    assert.deepEqual(told, [
      'the token has expired',
      ...[invalid, invalid, invalid, invalid],
      'the claim "room" of the token does not fit',
      invalid
    ]);
  });

  it('leaves a password that is not a token to the next source', async () => {
    await using broker = await start({ secret: SECRET });
    await broker.kit.broker.access.usernames.create('ann', 'a.b.c');
    const passwords = ['', 'x', 'a.b', 'a.b.c.d', 'e30.e30', `${'e30.'.repeat(4)}e30`, '..', 'bnVsbA..'];
    for (const password of [undefined, ...passwords]) assert.equal(await broker.attempt(password), 0x87);
    let asked = 0;
    broker.kit.broker.hook('authenticate', () => {
      asked++;
      return true;
    });
    for (const password of passwords) assert.equal(await broker.attempt(password), 0);
    assert.equal(asked, passwords.length);
    assert.equal(await broker.attempt(unsigned({ alg: 'none' }, {})), 0x87, 'this is a token');
    assert.equal(asked, passwords.length);
  });
});

describe('a token that is used several times', () => {
  it('checks a token each time against the time, the client and the keys', async () => {
    await using broker = await start({ secret: SECRET, claims: { clientid: '%c' }, clockToleranceMs: '1s' });
    const { clock } = broker.kit;
    const token = await sign({ clientid: 'c', nbf: NOW, exp: NOW + 50 });
    for (let at = 0; at < 3; at++) assert.equal(await broker.attempt(token), 0);
    assert.equal(await broker.attempt(token, undefined, 'd'), 0x87);
    await clock.advance('50s');
    assert.equal(await broker.attempt(token), 0);
    clock.stepWall(-60_000);
    assert.equal(await broker.attempt(token), 0x87);
    clock.stepWall(61_000);
    assert.equal(await broker.attempt(token), 0x87);
    await broker.kit.connect({ clientId: 'c', password: await sign({ clientid: 'c', acl: { pub: ['a'] } }) });
    const wrong = (await sign({ clientid: 'c' })).slice(0, -2);
    for (let at = 0; at < 3; at++) assert.equal(await broker.attempt(wrong), 0x87);
  });
});

describe('the claims of a token', () => {
  it('compares the claims with client id and user name', async () => {
    await using broker = await start({
      secret: SECRET,
      claims: { clientid: '%c', username: '%u', tenant: 'plant-1', devices: 'device/%c' }
    });
    const good = { clientid: 'c', username: 'ann', tenant: 'plant-1', devices: ['device/b', 'device/c'] };
    assert.equal(await broker.attempt(await sign(good), 'ann'), 0);
    assert.equal(await broker.attempt(await sign(good), 'bob'), 0x87);
    assert.equal(await broker.attempt(await sign(good)), 0x87);
    assert.equal(await broker.attempt(await sign(good), 'ann', 'd'), 0x87);
    for (const wrong of [{ tenant: undefined }, { tenant: 1 }, { devices: [] }, { devices: 'device/' }])
      assert.equal(await broker.attempt(await sign({ ...good, ...wrong }), 'ann'), 0x87, JSON.stringify(wrong));
    assert.equal(await broker.attempt(await sign({ ...good, username: '%u' }), 'ann'), 0x87);
    assert.equal(await broker.attempt(await sign({ ...good, username: '' }), undefined), 0x87);
  });

  it('takes the user name and the data from claims, and makes a superuser only if configured', async () => {
    await using broker = await start({
      secret: SECRET,
      usernameClaim: 'sub',
      superuserClaim: 'admin',
      data: ({ tenant }) => ({ tenant })
    });
    const clientOf = async (claims: JWTPayload) => {
      await using _ = await broker.kit.connect({ clientId: 'c', username: 'forged', password: await sign(claims) });
      const { username, isSuperuser, data } = broker.kit.broker.sessions.get('c')?.client ?? {};
      return { username, isSuperuser, data };
    };
    assert.deepEqual(await clientOf({ sub: 'ann', admin: true, tenant: 7 }), {
      username: 'ann',
      isSuperuser: true,
      data: { tenant: 7 }
    });
    assert.equal((await clientOf({ sub: 'ann', admin: 'true' })).isSuperuser, false);
    assert.equal((await clientOf({ sub: 'ann', is_superuser: true })).isSuperuser, false);
    for (const sub of [undefined, '', 7 as never, 'a\u0000b', ['ann'] as never])
      assert.equal(await broker.attempt(await sign({ sub }), 'ann'), 0x87);
    await using plain = await start({ secret: SECRET });
    await plain.kit.connect({ clientId: 'c', username: 'ann', password: await sign({ sub: 'bob', admin: true }) });
    const { username, isSuperuser } = plain.kit.broker.sessions.get('c')?.client ?? {};
    assert.deepEqual({ username, isSuperuser }, { username: 'ann', isSuperuser: false });
  });

  it('replaces a token that was sent as the user name by the user name of a claim', async () => {
    await using broker = await start({ secret: SECRET, from: 'username' });
    await broker.kit.connect({ clientId: 'c', username: await sign({ sub: 'ann' }) });
    assert.equal(broker.kit.broker.sessions.get('c')?.client.username, 'ann');
    assert.equal(await broker.attempt(undefined, await sign({})), 0x87);
    assert.equal(await broker.attempt(await sign({ sub: 'ann' }), 'ann'), 0x86);
  });
});

describe('access rules in a token', () => {
  it('allows what rules by action name, and denies everything else', async () => {
    await using broker = await start({ secret: SECRET, usernameClaim: 'sub' });
    const acl = { pub: ['up/%c', 'log'], sub: 'down/%u/#', all: ['both/+'] };
    await using client = await broker.kit.broker.connect({
      clientId: 'c',
      password: await sign({ sub: 'ann', acl }),
      protocolVersion: 5
    });
    for (const topic of ['up/c', 'log', 'both/x']) await client.publish(topic, 'x', { qos: 1 });
    for (const topic of ['up/d', 'down/ann/x', 'other', '$SYS/x'])
      await assert.rejects(client.publish(topic, 'x', { qos: 1 }), { reasonCode: 0x87 }, topic);
    await client.subscribe(['down/ann/#', 'down/ann/x', 'both/+']);
    for (const filter of ['down/#', 'down/bob/#', '#', '+/+', 'up/c', '$share/g/other'])
      assert.deepEqual(await client.subscribe(filter), [0x87], filter);
  });

  it('applies rules in the form of access rules, and of another claim if configured', async () => {
    await using broker = await start({ secret: SECRET, aclClaim: 'mqtt' });
    const mqtt = [{ access: 'deny', action: 'publish', topic: 'a/#' }, { access: 'allow' }];
    await using client = await broker.kit.broker.connect({
      clientId: 'c',
      password: await sign({ mqtt, acl: { pub: [] } }),
      protocolVersion: 5
    });
    await client.publish('b', 'x', { qos: 1 });
    await assert.rejects(client.publish('a/b', 'x', { qos: 1 }), { reasonCode: 0x87 });
  });

  it('allows nothing if the rules are empty', async () => {
    await using broker = await start({ secret: SECRET });
    await using client = await broker.kit.broker.connect({
      password: await sign({ acl: { pub: [], sub: [] } }),
      protocolVersion: 5
    });
    await assert.rejects(client.publish('a', 'x', { qos: 1 }), { reasonCode: 0x87 });
    assert.deepEqual(await client.subscribe('a'), [0x87]);
  });

  it('refuses the login if the rules are not valid', async () => {
    await using broker = await start({ secret: SECRET });
    const wrong: unknown[] = [
      null,
      'allow',
      7,
      { publish: ['a'] },
      { pub: null },
      { pub: [7] },
      { pub: ['a/#/b'] },
      { pub: 'a', __proto__: 1, constructor: ['a'] },
      [{ access: 'maybe' }],
      [{ access: 'allow', topic: ['$share/g/a'] }],
      ['allow']
    ];
    for (const acl of wrong) assert.equal(await broker.attempt(await sign({ acl })), 0x87, JSON.stringify(acl));
    assert.equal(broker.errors.length, wrong.length);
  });
});

describe('a token that expires', () => {
  it('closes the connection when the token expires', async () => {
    await using broker = await start({ secret: SECRET });
    await broker.kit.connect({ clientId: 'a', password: await sign({ exp: NOW + 60 }) });
    await broker.kit.connect({ clientId: 'b', password: await sign({ exp: NOW + 90 }) });
    await broker.kit.connect({ clientId: 'c', password: await sign({}) });
    await broker.kit.clock.advance('61s');
    assert.deepEqual(broker.ends, ['a expired_token']);
    await broker.kit.clock.advance('1h');
    assert.deepEqual(broker.ends, ['a expired_token', 'b expired_token']);
  });

  it('accepts a renewed token by re-authentication of the same user', async () => {
    await using broker = await start({ secret: SECRET, usernameClaim: 'sub', claims: { clientid: '%c' } });
    const { clock } = broker.kit;
    const token = async (more: JWTPayload) => Buffer.from(await sign({ sub: 'ann', clientid: 'c', ...more }));
    const connect = async () =>
      broker.kit.connect({
        clientId: 'c',
        protocolVersion: 5,
        properties: {
          authenticationMethod: 'JWT',
          authenticationData: await token({ exp: clock.now() / 1000 + 60, acl: { pub: ['a'] } })
        }
      });
    const client = await connect();
    await assert.rejects(client.publish('b', 'x', { qos: 1 }), { reasonCode: 0x87 });
    await clock.advance('50s');
    await client.reauthenticate(await token({ exp: NOW + 120, acl: { pub: ['b'] } }));
    await client.publish('b', 'x', { qos: 1 });
    await clock.advance('60s');
    assert.deepEqual(broker.ends, []);
    await assert.rejects(client.reauthenticate(await token({ sub: 'bob', exp: NOW + 1000 })));
    assert.deepEqual(broker.ends, ['c reauthentication_failed']);
    await assert.rejects((await connect()).reauthenticate(await token({ exp: NOW })));
    await assert.rejects((await connect()).reauthenticate(Buffer.from('x')));
    await assert.rejects((await connect()).reauthenticate());
    await connect();
    await clock.advance('61s');
    assert.equal(broker.ends.at(-1), 'c expired_token');
  });
});

/** Serves what a test says on a port of the system's choice. */
async function serve<T extends Server>(server: T): Promise<AsyncDisposable & { port: number }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      })
  };
}

async function jwks(published: Record<string, KeyObject>): Promise<string> {
  const list = Object.entries(published).map(async ([kid, key]) => ({ ...(await exportJWK(key)), kid }));
  return JSON.stringify({ keys: await Promise.all(list) });
}

describe('keys from a URL', () => {
  let certificates: Certificates;
  before(() => {
    certificates = makeCertificates();
  });
  after(() => certificates[Symbol.dispose]());

  it('fetches the keys once, and again for an unknown key, at most every 30 seconds', async () => {
    let published: Record<string, KeyObject> = { one: keys.rsa.publicKey, two: keys.ec.publicKey };
    const asked: IncomingMessage[] = [];
    const answer: RequestListener = async (request, response) => {
      asked.push(request);
      response.end(await jwks(published));
    };
    await using server = await serve(createServer(answer));
    await using broker = await start({ jwksUrl: `http://127.0.0.1:${server.port}/keys?a=b%20c` });
    assert.equal(asked[0].url, '/keys?a=b%20c');
    const rsa = (kid: string) => sign({}, keys.rsa.privateKey, 'RS256', kid);
    const first = await rsa('one');
    for (let at = 0; at < 2; at++) assert.equal(await broker.attempt(first), 0);
    assert.equal(await broker.attempt(await sign({}, keys.ec.privateKey, 'ES256', 'two')), 0);
    assert.equal(await broker.attempt(await rsa('two')), 0x87, 'a key of another type');
    assert.equal(await broker.attempt(await sign({}, undefined, 'HS256', 'one')), 0x87);
    assert.equal(await broker.attempt(await sign({}, keys.otherRsa.privateKey, 'RS256', 'one')), 0x87);
    published = { three: keys.rsa.publicKey };
    assert.equal(await broker.attempt(await rsa('three')), 0x87);
    assert.equal(asked.length, 1);
    await broker.kit.clock.advance('31s');
    assert.equal(await broker.attempt(await rsa('three')), 0);
    assert.equal(await broker.attempt(first), 0x87, 'its key was withdrawn');
    for (let at = 0; at < 10; at++) assert.equal(await broker.attempt(await rsa(`forged ${at}`)), 0x87);
    assert.equal(asked.length, 2);
    await broker.kit.broker.access.reload('jwt');
    assert.equal(asked.length, 3);
    assert.deepEqual(broker.errors, []);
  });

  it('keeps the keys for an hour while the URL does not answer, and then refuses every token until it does', async () => {
    let isWorking = true;
    let asked = 0;
    const answer: RequestListener = async (_, response) => {
      asked++;
      if (isWorking) response.end(await jwks({ one: keys.rsa.publicKey }));
      else response.writeHead(500).end();
    };
    await using server = await serve(createServer(answer));
    await using broker = await start({ jwksUrl: new URL(`http://127.0.0.1:${server.port}/keys`) });
    const { clock } = broker.kit;
    const token = await sign({}, keys.rsa.privateKey, 'RS256', 'one');
    isWorking = false;
    await clock.advance('11m');
    assert.equal(await broker.attempt(token), 0);
    await clock.advance('50m');
    assert.equal(await broker.attempt(token), 0x88);
    assert.equal(await broker.attempt(token), 0x88);
    assert.equal(asked, 3);
    assert.match(broker.errors[0], /^JWKS_INVALID: .*answered with status 500/);
    await assert.rejects(broker.kit.broker.access.reload('jwt'), { code: 'JWKS_UNAVAILABLE' });
    isWorking = true;
    await clock.advance('6s');
    assert.equal(await broker.attempt(token), 0);
  });

  it('starts without keys, and aborts a request to a server that hangs', async () => {
    let isHanging = true;
    const answer: RequestListener = async (_, response) => {
      if (!isHanging) response.end(await jwks({ one: keys.rsa.publicKey }));
    };
    const server = createServer(answer);
    await using listening = await serve(server);
    const arrived = new Promise((resolve) => server.once('request', resolve));
    const kit = await createTestBroker();
    const source = jwt({ jwksUrl: `http://127.0.0.1:${listening.port}/`, timeoutMs: '3s' });
    const errors: string[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error.message));
    await using _ = kit;
    const adding = kit.broker.access.create(source);
    await arrived;
    await kit.clock.advance('3s');
    await adding;
    assert.match(errors.join(), /did not answer within 3000 ms/);
    isHanging = false;
    await kit.clock.advance('6s');
    await kit.connect({ password: await sign({}, keys.rsa.privateKey, 'RS256', 'one') });
  });

  it('refuses an answer that is not a key set, or that is too large', async () => {
    const bodies = ['', '{', '{}', '{"keys":7}', 'null', JSON.stringify({ keys: ['x'.repeat(300_000)] })];
    for (const body of bodies) {
      await using server = await serve(createServer((_, response) => response.end(body)));
      const kit = await createTestBroker();
      await using _ = kit;
      const errors: unknown[] = [];
      kit.broker.on('error', ({ error }) => errors.push(error));
      await kit.broker.access.create(jwt({ jwksUrl: `http://127.0.0.1:${server.port}/` }));
      assert.equal(errors.length, 1, body.slice(0, 20));
    }
  });

  it('fetches the keys over TLS with the authority, certificate and server name of the options', async () => {
    const { ca, server: identity, client, stranger } = certificates;
    const tls = { cert: identity.cert, key: identity.key, ca: ca.cert, requestCert: true };
    const answer: RequestListener = async (_, response) => response.end(await jwks({ one: keys.rsa.publicKey }));
    await using server = await serve(createSecureServer(tls, answer));
    const token = await sign({}, keys.rsa.privateKey, 'RS256', 'one');
    const jwksUrl = `https://127.0.0.1:${server.port}/`;
    const own = { cert: client.cert, key: client.key };
    const cases: [Partial<JwtOptions>, expected: number][] = [
      [{ ca: ca.cert, ...own, servername: 'localhost' }, 0],
      [{ ca: [ca.cert], ...own }, 0],
      [{ ca: ca.cert, ...own, servername: 'other.example' }, 0x88],
      [{ ca: ca.cert }, 0x88],
      [{ ca: ca.cert, cert: stranger.cert, key: stranger.key }, 0x88],
      [own, 0x88]
    ];
    for (const [options, expected] of cases) {
      await using broker = await start({ jwksUrl, ...options });
      assert.equal(await broker.attempt(token), expected, Object.keys(options).join());
      assert.equal(broker.errors.length, expected === 0 ? 0 : 1);
    }
  });
});

/** Prints the error of a start without the package jose. */
const WITHOUT_JOSE = `
  import { register } from 'node:module';
  const hooks = "export const resolve = (name, context, next) => { if (name === 'jose') throw new Error('none'); return next(name, context); }";
  register('data:text/javascript,' + encodeURIComponent(hooks));
  const { createBroker } = await import('embermq');
  const { jwt } = await import('embermq/auth/jwt');
  await createBroker({ auth: [jwt({ secret: 'x'.repeat(32) })] }).start().catch(({ code, message }) => console.log(code + ': ' + message));
`;

describe('the package jose', () => {
  it('names the command that installs the missing package when the broker starts', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, evalFlags(WITHOUT_JOSE), { cwd: SOURCES });
    assert.equal(stdout, 'PACKAGE_MISSING: authentication with tokens needs the package jose: npm install jose\n');
  });
});

describe('the options of jwt', () => {
  it('rejects invalid options with a reason that contains no secret', () => {
    const rsa512 = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey;
    const wrong: [JwtOptions, RegExp][] = [
      [{}, /exactly one of "secret", "publicKey" and "jwksUrl"/],
      [{ secret: SECRET, jwksUrl: 'https://a.example' }, /exactly one/],
      [{ secret: '' }, /^jwt\.secret: expected a secret of at least 32 bytes \(RFC 7518\), got "0 characters"$/],
      [{ secret: 'x'.repeat(31) }, /at least 32 bytes \(RFC 7518\), got "31 characters"/],
      [{ secret: Buffer.alloc(31, 1) }, /got "31 bytes"/],
      [{ secret: pem(keys.rsa.publicKey) }, /belongs to "publicKey"/],
      [{ publicKey: SECRET }, /a public key: PEM/],
      [{ publicKey: rsa512 }, /at least 2048 bits/],
      [{ publicKey: generateKeyPairSync('x25519').publicKey }, /RSA, EC/],
      [{ secret: SECRET, algorithms: ['none'] }, /algorithms that fit the key: HS256, HS384, HS512, got "none"/],
      [{ publicKey: keys.rsa.publicKey, algorithms: ['RS256', 'HS256'] }, /fit the key.*got "HS256"/],
      [{ jwksUrl: 'https://a.example', algorithms: ['HS256'] }, /fit the key/],
      [{ secret: SECRET, algorithms: [] }, /a list of strings/],
      [{ jwksUrl: 'ftp://a.example' }, /begins with http/],
      [{ jwksUrl: `https://user:${SECRET}@a.example` }, /without user name and password/],
      [{ jwksUrl: 'keys' }, /a URL such as/],
      [{ secret: SECRET, usernameClaim: 'sub', claims: { username: '%u' } }, /no claim with %u/],
      [{ secret: SECRET, claims: { username: 7 } as never }, /a string for each claim/],
      [{ secret: SECRET, superUserClaim: 'x' } as never, /did you mean "superuserClaim"/]
    ];
    for (const [options, message] of wrong)
      assert.throws(
        () => jwt(options),
        (error: Error) => message.test(error.message) && !error.message.includes(SECRET),
        String(message)
      );
  });
});
