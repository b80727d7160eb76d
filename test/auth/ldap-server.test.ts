import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { encoded } from '../../adapters/auth/ldap/ber.ts';
import { type LdapOptions, ldap } from '../../adapters/auth/ldap/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { makeCertificates } from '../support/certificates.ts';
import { evalFlags, SOURCES } from '../support/programs.ts';

const BIND = 0x60;
const SEARCH = 0x63;

/** A request as a server has read it. */
interface Asked {
  readonly id: Buffer;
  readonly operation: number;
  readonly bytes: Buffer;
}

interface Faked extends AsyncDisposable {
  readonly url: string;
  readonly asked: Asked[];
  readonly sockets: Set<Socket>;
}

/** A server that a test writes: it answers each request with some bytes, or not at all. Requests are short. */
async function fake(answer: (asked: Asked, socket: Socket) => Buffer | undefined): Promise<Faked> {
  const asked: Asked[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; ) {
        const bytes = chunk.subarray(at, at + 2 + chunk[at + 1]);
        const idEnd = 4 + bytes[3];
        const one = { id: bytes.subarray(2, idEnd), operation: bytes[idEnd], bytes };
        asked.push(one);
        const text = answer(one, socket);
        if (text !== undefined) socket.write(text);
        at += bytes.length;
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `ldap://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    sockets,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      })
  };
}

function result(id: Buffer, tag: number, code: number): Buffer {
  const parts = [Buffer.from([0x0a, 1, code]), encoded(4), encoded(4)];
  return encoded(0x30, id, encoded(tag, ...parts));
}

function entry(id: Buffer, dn: string, attributes: Readonly<Record<string, string>> = {}): Buffer {
  const list = Object.entries(attributes).map(([name, value]) =>
    encoded(0x30, encoded(4, Buffer.from(name)), encoded(0x31, encoded(4, Buffer.from(value))))
  );
  return encoded(0x30, id, encoded(0x64, encoded(4, Buffer.from(dn)), encoded(0x30, ...list)));
}

/** A server to which every bind is successful, and that finds an entry for every search. */
function agreeing({ id, operation }: Asked): Buffer {
  return operation === BIND ? result(id, 0x61, 0) : Buffer.concat([entry(id, 'uid=u,dc=example'), result(id, 0x65, 0)]);
}

async function start(options: LdapOptions, more: Parameters<typeof createTestBroker>[0] = {}) {
  const kit: TestBroker = await createTestBroker({ auth: [ldap(options)], ...more });
  const errors: string[] = [];
  kit.broker.on('error', ({ error }) => errors.push(error.message));
  const attempt = async (username: string | undefined, password?: string, clientId = 'c'): Promise<number> => {
    const login = { ...(username === undefined ? {} : { username }), ...(password === undefined ? {} : { password }) };
    try {
      await using _ = await kit.broker.connect({ clientId, ...login, protocolVersion: 5 });
      return 0;
    } catch (error) {
      return (error as { reasonCode: number }).reasonCode;
    }
  };
  return { kit, errors, attempt, [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]() };
}

describe('a directory that accepts every bind', () => {
  it('never sends a bind without a password', async () => {
    await using server = await fake(agreeing);
    for (const options of [{ baseDn: 'dc=example' }, { userDn: 'uid=%u,dc=example' }]) {
      await using broker = await start({ url: server.url, ...options });
      assert.equal(await broker.attempt('u', 'p'), 0, 'the server agrees');
      server.asked.length = 0;
      for (const password of [undefined, '', '\0', '\0p']) assert.equal(await broker.attempt('u', password), 0x86);
      assert.ok(server.asked.every(({ operation }) => operation === SEARCH));
      assert.deepEqual(broker.errors, []);
    }
  });

  it('sends a simple bind even for a name that is a SASL mechanism', async () => {
    await using server = await fake(agreeing);
    await using broker = await start({ url: server.url, userDn: '%u' });
    assert.equal(await broker.attempt('EXTERNAL', 'p'), 0);
    assert.ok(server.asked[0].bytes.includes(Buffer.from([4, 8, ...Buffer.from('EXTERNAL'), 0x80, 1, 0x70])));
  });
});

describe('a server that answers nonsense', () => {
  const id = Buffer.from([2, 1, 2]);
  const nonsense: Readonly<Record<string, Buffer>> = {
    'a length below zero': Buffer.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xfa]),
    'a huge length': Buffer.from([0x30, 0x84, 0x7f, 0xff, 0xff, 0xff, 0]),
    'no definite length': Buffer.from([0x30, 0x80, 2, 1, 2, 0, 0]),
    'another protocol': Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'),
    'an empty message': encoded(0x30),
    'a message without an operation': encoded(0x30, id),
    'a result without a code': encoded(0x30, id, encoded(0x61)),
    'a long result code': encoded(0x30, id, encoded(0x61, encoded(0x0a, Buffer.alloc(9)), encoded(4), encoded(4))),
    'an element that ends outside': encoded(0x30, id, encoded(0x65, Buffer.from([0x0a, 9, 0]))),
    'an entry with attributes that are not a list': encoded(
      0x30,
      id,
      encoded(0x64, encoded(4), encoded(4, Buffer.from([0x30])))
    ),
    'an entry with an attribute that is not complete': encoded(
      0x30,
      id,
      encoded(0x64, encoded(4), encoded(0x30, encoded(0x30, Buffer.from([4]))))
    ),
    'an answer to another request': encoded(0x30, id, encoded(0x6d, Buffer.from([0x0a, 1, 0]), encoded(4), encoded(4)))
  };

  for (const [name, bytes] of Object.entries(nonsense))
    it(`counts as a failure: ${name}`, async () => {
      await using server = await fake(() => bytes);
      await using broker = await start({ url: server.url, baseDn: 'dc=example' });
      assert.equal(await broker.attempt('u', 'p'), 0x88);
      assert.deepEqual(broker.errors, ['the connection was lost: the server has sent an invalid LDAP message']);
    });

  it('counts an answer without an end as a failure', async () => {
    await using server = await fake((asked, socket) => {
      const some = Buffer.concat(Array.from({ length: 1_000 }, () => entry(asked.id, 'x'.repeat(500))));
      const send = (): void => {
        if (!socket.destroyed) socket.write(some, () => setImmediate(send));
      };
      send();
      return undefined;
    });
    await using broker = await start({ url: server.url, baseDn: 'dc=example' });
    assert.equal(await broker.attempt('u', 'p'), 0x88);
    assert.match(broker.errors[0], /the responses are larger than 4194304 bytes/);
  });

  it('handles many small messages at once, controls, referrals and references to other servers', async () => {
    await using server = await fake(({ id, operation }) => {
      if (operation === BIND) {
        const referral = encoded(0xa3, encoded(4, Buffer.from('ldap://other')));
        const body = encoded(
          0x61,
          Buffer.from([0x0a, 1, 0]),
          encoded(4),
          encoded(4),
          referral,
          encoded(0x87, Buffer.from('x'))
        );
        return encoded(0x30, id, body, encoded(0xa0, encoded(0x30, encoded(4, Buffer.from('1.2.3')))));
      }
      const reference = encoded(0x30, id, encoded(0x73, encoded(4, Buffer.from('ldap://other/dc=x'))));
      const unknown = Array.from({ length: 4_000 }, () => result(Buffer.from([2, 1, 99]), 0x61, 0));
      return Buffer.concat([reference, ...unknown, entry(id, 'uid=u'), result(id, 0x65, 0)]);
    });
    await using broker = await start({ url: server.url, baseDn: 'dc=example' });
    assert.equal(await broker.attempt('u', 'p'), 0);
    assert.deepEqual(broker.errors, []);
  });
});

describe('a server that fails temporarily', () => {
  it('counts a missing answer as a failure', async () => {
    let arrived = () => {};
    await using server = await fake(() => {
      arrived();
      return undefined;
    });
    await using broker = await start({ url: server.url, baseDn: 'dc=example', timeoutMs: '3s' });
    const isAsked = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const code = broker.attempt('u', 'p');
    await isAsked;
    await broker.kit.clock.advance('3s');
    assert.equal(await code, 0x88);
    assert.match(broker.errors[0], /^127\.0\.0\.1:\d+ did not answer within 3000 ms$/);
  });

  it('counts a closed new connection, its announcement, and a busy server as failures', async () => {
    const cases: [(asked: Asked, socket: Socket) => Buffer | undefined, RegExp][] = [
      [(_, socket) => void socket.destroy(), /^the connection was lost: /],
      [() => result(Buffer.from([2, 1, 0]), 0x78, 52), /the server closes the connection/],
      [({ id }) => result(id, 0x65, 51), /0x33/]
    ];
    for (const [answer, message] of cases) {
      await using server = await fake(answer);
      await using broker = await start({ url: server.url, baseDn: 'dc=example', breaker: { failures: 1 } });
      assert.equal(await broker.attempt('u', 'p'), 0x88);
      assert.match(broker.errors[0], message);
      const { length } = server.asked;
      assert.equal(await broker.attempt('u', 'p'), 0x88);
      assert.equal(server.asked.length, length, 'it is not asked again at once');
    }
  });

  it('keeps asking after a refused search, which an unusual name may cause', async () => {
    await using server = await fake((asked) =>
      asked.bytes.includes('odd') ? result(asked.id, 0x65, 18) : agreeing(asked)
    );
    await using broker = await start({ url: server.url, baseDn: 'dc=example', breaker: { failures: 1 } });
    assert.equal(await broker.attempt('odd', 'p'), 0x88);
    assert.match(broker.errors[0], /0x12/);
    assert.equal(await broker.attempt('u', 'p'), 0);
  });

  it('does not delay the end of the broker for logins', async () => {
    let arrived = () => {};
    await using server = await fake(() => {
      arrived();
      return undefined;
    });
    const broker = await start({ url: server.url, baseDn: 'dc=example' });
    const isAsked = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const code = broker.attempt('u', 'p');
    await isAsked;
    await broker.kit.broker.stop();
    assert.notEqual(await code, 0);
    await broker[Symbol.asyncDispose]();
    assert.deepEqual(broker.errors, []);
    for (const socket of server.sockets)
      if (!socket.destroyed) await new Promise((resolve) => socket.on('close', resolve));
  });
});

describe('questions about access rules', () => {
  const rules = { acl: { publish: 'pp', subscribe: 'ss', all: 'aa' } };

  /** A server with the entries of all users, and the names for whose rules it was asked. Some wait until `release`. */
  async function rulesServer() {
    const searched: string[] = [];
    const held: (() => void)[] = [];
    const awaited: (() => void)[] = [];
    let isHolding = false;
    const server = await fake(({ id, operation, bytes }, socket) => {
      if (operation !== SEARCH || !bytes.includes('pp')) return agreeing({ id, operation, bytes });
      searched.push(/user\d/.exec(bytes.toString('latin1'))?.[0] ?? '');
      const answer = Buffer.concat([entry(id, 'uid=u', { pp: 'up', ss: 'down/#' }), result(id, 0x65, 0)]);
      if (!isHolding) return answer;
      held.push(() => socket.write(answer));
      awaited.shift()?.();
      return undefined;
    });
    return {
      url: server.url,
      searched,
      hold: () => {
        isHolding = true;
      },
      release: () => {
        isHolding = false;
        for (const send of held.splice(0)) send();
      },
      /** Resolves when the next search has arrived that is held, after those awaited before. */
      arrival: () =>
        new Promise<void>((resolve) => {
          awaited.push(resolve);
        }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]()
    };
  }
  const connect = ({ kit }: Awaited<ReturnType<typeof start>>, name: string, clientId = name) =>
    kit.connect({ clientId, username: name, password: 'p', protocolVersion: 5 });

  it('shares one search between concurrent questions about a client', async () => {
    await using server = await rulesServer();
    await using broker = await start({ url: server.url, baseDn: 'dc=example', ...rules });
    const clients = [];
    for (const name of ['user1', 'user1', 'user1', 'user2'])
      clients.push(await connect(broker, name, `c${clients.length}`));
    server.hold();
    const arrivals = [server.arrival(), server.arrival()];
    const answers = clients.map((client, at) => client.subscribe(at === 1 ? 'x' : `down/${at}`));
    await Promise.all(arrivals); // those of user2 come last
    server.release();
    assert.deepEqual(await Promise.all(answers), [[0], [0x87], [0], [0]]);
    assert.deepEqual(server.searched, ['user1', 'user2']);
    await clients[0].publish({ topic: 'up', payload: '', qos: 1 });
    assert.equal(server.searched.length, 3, 'nothing is kept without cacheMs');
    assert.deepEqual(broker.errors, []);
  });

  it('answers from the entry cached for cacheMs, even for another connection', async () => {
    await using server = await rulesServer();
    await using broker = await start({ url: server.url, baseDn: 'dc=example', ...rules, cacheMs: '5s' });
    const first = await connect(broker, 'user1');
    assert.deepEqual(await first.subscribe(['down/1', 'down/2', 'x']), [0, 0, 0x87]);
    const again = await connect(broker, 'user1', 'other');
    await again.publish({ topic: 'up', payload: '', qos: 1 });
    await assert.rejects(again.publish({ topic: 'down/1', payload: '', qos: 1 }), { reasonCode: 0x87 });
    assert.deepEqual(server.searched, ['user1']);
    await broker.kit.clock.advance('5s');
    await assert.rejects(again.publish({ topic: 'other', payload: '', qos: 1 }), { reasonCode: 0x87 });
    assert.deepEqual(server.searched, ['user1', 'user1']);
  });

  it('ignores the result of a search that began before a reload', async () => {
    await using server = await rulesServer();
    await using broker = await start({ url: server.url, baseDn: 'dc=example', ...rules, cacheMs: '5s' });
    const client = await connect(broker, 'user1');
    server.hold();
    const arrival = server.arrival();
    const answer = client.subscribe('down/1');
    await arrival;
    await broker.kit.broker.access.reload('ldap');
    server.release();
    assert.deepEqual(await answer, [0]);
    await client.publish({ topic: 'up', payload: '', qos: 1 });
    assert.deepEqual(server.searched, ['user1', 'user1']);
  });

  it('refuses if the server does not answer in time', async () => {
    await using server = await rulesServer();
    const limits = { timeoutMs: '3s', maxConcurrent: 1 };
    await using broker = await start({ url: server.url, baseDn: 'dc=example', ...rules, ...limits });
    const clients = [];
    for (const name of ['user1', 'user2']) clients.push(await connect(broker, name));
    server.hold();
    const arrival = server.arrival();
    const answers = clients.map((client) => client.subscribe('down/1'));
    await arrival;
    await broker.kit.clock.advance('3s');
    assert.deepEqual(await Promise.all(answers), [[0x87], [0x87]]);
    assert.match(broker.errors[0], /did not answer within 3000 ms$/);
    server.release();
    await broker.kit.clock.advance('30s'); // the broker asks about these clients again
    assert.deepEqual(await clients[0].subscribe('down/1'), [0]);
  });

  it('does not delay the end of the broker for access rules', async () => {
    await using server = await rulesServer();
    const broker = await start({ url: server.url, baseDn: 'dc=example', ...rules });
    const client = await connect(broker, 'user1');
    server.hold();
    const arrival = server.arrival();
    const answer = client.subscribe('down/1').catch((error: Error) => error);
    await arrival;
    await broker.kit.broker.stop();
    assert.ok((await answer) instanceof Error);
    await broker[Symbol.asyncDispose]();
    assert.deepEqual(broker.errors, []);
  });

  it('detects at the login that the entry cannot be read', async () => {
    await using server = await fake(({ id, operation }) => result(id, operation === BIND ? 0x61 : 0x65, 0));
    await using broker = await start({ url: server.url, userDn: 'uid=%u', ...rules });
    assert.equal(await broker.attempt('u', 'p'), 0x87);
    assert.match(
      broker.errors[0],
      /^the option acl needs to find the entry of the user name "u" by userDn, and the right/
    );
    await using without = await start({ url: server.url, userDn: 'uid=%u' });
    assert.equal(await without.attempt('u', 'p'), 0);
  });
});

describe('StartTLS', () => {
  const START = 0x77;
  const success = (id: Buffer) => encoded(0x30, id, encoded(0x78, Buffer.from([0x0a, 1, 0]), encoded(4), encoded(4)));

  it('sends nothing more in clear text if the server refuses StartTLS', async () => {
    await using server = await fake(({ id }) => result(id, 0x78, 52));
    await using broker = await start({ url: server.url, baseDn: 'dc=example', startTls: true });
    assert.equal(await broker.attempt('u', 'p'), 0x88);
    assert.match(broker.errors[0], /refuses StartTLS \(result code 52\)/);
    assert.deepEqual(
      server.asked.map(({ operation }) => operation),
      [START]
    );
  });

  it('refuses data that an attacker adds to the answer of the server', async () => {
    using certificates = makeCertificates();
    const { cert, key } = certificates.server;
    for (const added of [result(Buffer.from([2, 1, 2]), 0x61, 0), Buffer.from([0x30, 0x20])]) {
      await using server = await fake(({ id }, socket) => {
        socket.removeAllListeners('data');
        new TLSSocket(socket, { isServer: true, cert, key }).on('error', () => {});
        return Buffer.concat([success(id), added]);
      });
      const options = { url: server.url, userDn: 'uid=%u', startTls: true, ca: certificates.ca.cert };
      await using broker = await start({ ...options, servername: 'localhost' });
      assert.equal(await broker.attempt('u', 'wrong'), 0x88);
      assert.match(broker.errors[0], /the answer to StartTLS is not valid/);
    }
  });

  it('sends nothing to a server without a trusted certificate', async () => {
    using certificates = makeCertificates();
    const { cert, key } = certificates.server;
    let isClear = false;
    await using server = await fake(({ id, operation }, socket) => {
      if (operation !== START) isClear = true;
      socket.removeAllListeners('data');
      socket.write(success(id));
      const secure = new TLSSocket(socket, { isServer: true, cert, key });
      secure
        .on('error', () => {})
        .on('data', () => {
          isClear = true;
        });
      return undefined;
    });
    await using broker = await start({ url: server.url, userDn: 'uid=%u', startTls: true });
    assert.equal(await broker.attempt('u', 'p'), 0x88);
    assert.match(broker.errors[0], /certificate/);
    assert.equal(isClear, false);
  });
});

describe('the options of ldap', () => {
  it('rejects invalid options with a reason that contains no password', async () => {
    const url = 'ldap://127.0.0.1';
    const good = { url, baseDn: 'dc=example' };
    const cases: [LdapOptions, RegExp][] = [
      [{ baseDn: 'x' } as LdapOptions, /^ldap\.url: expected a URL/],
      [{ ...good, url: 'http://a' }, /begins with ldap:\/\/ or ldaps:\/\//],
      [
        { ...good, url: 'ldap://cn=a:hidden@h' },
        /^ldap\.url: expected a URL without credentials.*got "ldap:\/\/\*\*\*@h"$/
      ],
      [{ ...good, url: 'ldap://h/dc=x' }, /nothing after the server/],
      [{ ...good, url: 'ldaps://h', startTls: true }, /^ldap\.startTls: /],
      [{ url }, /exactly one of "baseDn" and "userDn"/],
      [{ ...good, userDn: '%u' }, /exactly one of "baseDn" and "userDn"/],
      [{ url, userDn: 'uid=%u', filter: '(uid=%u)' }, /^ldap\.filter: /],
      [{ url, userDn: 'uid=ann' }, /^ldap\.userDn: expected a placeholder for the client/],
      [{ ...good, filter: '(uid=ann)' }, /^ldap\.filter: expected a placeholder for the client/],
      [{ ...good, filter: '(uid=%P)' }, /^ldap\.filter: expected only the placeholders %u %c/],
      [{ ...good, bindDn: 'cn=a' }, /"bindDn" and "bindPassword" together/],
      [{ ...good, bindPassword: 'hidden' }, /"bindDn" and "bindPassword" together/],
      [{ ...good, bindDn: 'cn=a', bindPassword: '' }, /^ldap\.bindPassword: expected a string that is not empty/],
      [{ ...good, bindDn: 'cn=a', bindPassword: 5 as never }, /^ldap\.bindPassword: expected a string/],
      [{ ...good, enabledAttribute: 'a)(b' }, /^ldap\.enabledAttribute: expected the name of an attribute/],
      [{ ...good, acl: { pub: 'x' } as never }, /unknown option "pub" in ldap\.acl/],
      [{ ...good, passwordAtribute: 'x' } as LdapOptions, /did you mean "passwordAttribute"/],
      [{ url, userDn: 'uid=%u', superuserFilter: '(member=%d)' }, /^ldap\.superuserBaseDn: /]
    ];
    for (const [options, message] of cases)
      assert.throws(
        () => ldap(options),
        (error: Error) => {
          assert.match(error.message, message);
          assert.ok(!JSON.stringify([error, error.message]).includes('hidden'));
          return true;
        }
      );
    for (const filter of ['(uid=%u', 'uid=%u)', '((uid=%u))', '(=%u)'])
      await assert.rejects(createTestBroker({ auth: [ldap({ ...good, filter })] }), {
        code: 'LDAP_FILTER_INVALID',
        message: /^the option filter of the source ldap is not a valid filter: /
      });
  });
});

const WITHOUT_LDAPTS = `
  import { register } from 'node:module';
  const hooks = "export const resolve = (name, context, next) => { if (name === 'ldapts') throw new Error('none'); return next(name, context); }";
  register('data:text/javascript,' + encodeURIComponent(hooks));
  const { createBroker } = await import('embermq');
  const { ldap } = await import('embermq/auth/ldap');
  const source = ldap({ url: 'ldap://127.0.0.1', baseDn: 'dc=example' });
  await createBroker({ auth: [source] }).start().catch(({ code, message }) => console.log(code + ': ' + message));
`;

describe('the package ldapts', () => {
  it('names the command that installs the missing package when the broker starts', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, evalFlags(WITHOUT_LDAPTS), { cwd: SOURCES });
    assert.equal(
      stdout,
      'PACKAGE_MISSING: authentication against a directory needs the package ldapts: npm install ldapts@8\n'
    );
  });
});
