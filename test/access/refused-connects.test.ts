import assert from 'node:assert/strict';
import { connect as connectSocket } from 'node:net';
import { describe, it } from 'node:test';
import { listen } from '../../adapters/net/index.ts';
import type { AuthSource } from '../../lib/adapter.ts';
import { type Broker, type ClientOptions, users } from '../../lib/index.ts';
import { createTestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';
import { RawClient } from '../support/raw-client.ts';
import { until } from '../support/until.ts';

const transportInfo = { transport: 'tcp', remoteAddress: '192.0.2.7' } as const;

/** The records of a client that are not about its connection: code, count and detail, the oldest first. */
function records(broker: Broker, clientId = 'c') {
  const { entries } = broker.monitor.reasons.list({ clientId });
  const found = entries.filter(({ code }) => !/^(connected|disconnected_.*)$/.test(code));
  return found.map(({ code, count, detail }) => [code, count, detail]).reverse();
}

interface Case {
  readonly what: string;
  readonly options?: TestBrokerOptions;
  readonly prepare?: (broker: Broker) => unknown;
  readonly client?: ClientOptions;
  readonly code: string;
  readonly detail: string;
}

const ANN = { username: 'ann', password: 'wrong' } as const;
const FROM = '(from 192.0.2.7, user "ann")';
const source = (authenticate: AuthSource['authenticate']): AuthSource => ({ name: 'http', authenticate });

const CASES: readonly Case[] = [
  {
    what: 'a wrong password of a record',
    options: { auth: [users([{ username: 'ann', password: 'right' }])] },
    client: ANN,
    code: 'wrong_password',
    detail: `records: the password is wrong ${FROM}`
  },
  {
    what: 'a user that no source knows',
    options: { auth: [users([{ username: 'bob', password: 'right' }]), source(() => undefined)] },
    client: ANN,
    code: 'wrong_password',
    detail: `no hook and no source of authentication knows the client (option allowAnonymous) ${FROM}`
  },
  {
    what: 'a source that refuses the client',
    options: { auth: [source(async () => false)] },
    client: ANN,
    code: 'wrong_password',
    detail: `the source http refuses the client ${FROM}`
  },
  {
    what: 'a hook that refuses the client',
    prepare: (broker) => broker.hook('authenticate', () => ({ allow: false, why: 'the account is closed' })),
    client: ANN,
    code: 'wrong_password',
    detail: `the account is closed ${FROM}`
  },
  {
    what: 'a source that fails',
    options: {
      auth: [
        source(async () => {
          throw new Error('connect ECONNREFUSED');
        })
      ]
    },
    client: ANN,
    code: 'connect_refused',
    detail: `the source "http" has failed, or gave no answer in time ${FROM}`
  },
  {
    what: 'a hook that fails',
    prepare: (broker) =>
      broker.hook('authenticate', () => {
        throw new Error('a mistake');
      }),
    client: ANN,
    code: 'connect_refused',
    detail: `a hook has failed, or gave no answer in time ${FROM}`
  },
  {
    what: 'a token that has expired',
    options: { auth: [source(() => ({ allow: false, isExpired: true, why: 'the token has expired' }))] },
    client: ANN,
    code: 'token_expired',
    detail: `source http: the token has expired ${FROM}`
  },
  {
    what: 'an approval that has expired already',
    options: { auth: [source(() => ({ allow: true, expiresAt: 1 }))] },
    client: ANN,
    code: 'token_expired',
    detail: `the approval of the client has expired already ${FROM}`
  },
  {
    what: 'anonymous clients',
    options: { allowAnonymous: false },
    code: 'wrong_password',
    detail:
      'no hook and no source of authentication knows the client (option allowAnonymous) (from 192.0.2.7, without a user name)'
  },
  {
    what: 'a ban of the client id',
    prepare: ({ access }) =>
      access.banned.create({ kind: 'clientId', who: 'c', by: 'admin', reason: 'abuse', until: Infinity }),
    code: 'banned',
    detail: 'the client id "c" is banned by "admin": abuse (from 192.0.2.7, without a user name)'
  },
  {
    what: 'a ban of a network, with its end',
    prepare: ({ access, clock }) =>
      access.banned.create({ kind: 'address', who: '192.0.2.0/24', until: clock.now() + 60_000 }),
    code: 'banned',
    detail:
      'the address "192.0.2.0/24" is banned by "user" until 2026-01-01T00:01:00.000Z (from 192.0.2.7, without a user name)'
  },
  {
    what: 'a preConnect hook',
    prepare: (broker) => broker.hook('preConnect', () => false),
    code: 'connect_refused',
    detail: 'the hook preConnect refuses the client (from 192.0.2.7, without a user name)'
  },
  {
    what: 'the maximum number of sessions',
    options: { maxSessions: 1 },
    prepare: (broker) => broker.connect({ clientId: 'first' }),
    code: 'connection_limit',
    detail: 'the maximum number of sessions is reached (option maxSessions) (from 192.0.2.7, without a user name)'
  },
  {
    what: 'a protocol version that is not accepted',
    options: { protocolVersions: [5] },
    client: { protocolVersion: 4 },
    code: 'connect_refused',
    detail: 'MQTT protocol level 4 is not accepted (option protocolVersions) (from 192.0.2.7, without a user name)'
  }
];

describe('The record of a refused CONNECT', () => {
  for (const { what, options, prepare, client, code, detail } of CASES)
    it(`names ${what}, with the user name and the address`, async () => {
      await using kit = await createTestBroker({
        ...options,
        leakCheck: false
      });
      const { broker } = kit;
      broker.on('error', () => {}); // a failing hook is reported, too
      await prepare?.(broker);
      for (const _ of [1, 2]) await assert.rejects(kit.connect({ clientId: 'c', transportInfo, ...client }));
      assert.deepEqual(records(broker), [[code, 2, detail]]);
      const { entries } = broker.monitor.reasons.list({ address: '192.0.2.7' });
      assert.deepEqual(
        entries.map((entry) => [entry.code, entry.clientId]),
        [[code, 'c']]
      );
      const { causes } = await broker.monitor.why({ topic: 't', clientId: 'c' });
      assert.equal(causes[0].code, code);
    });

  it('names the limit of failed logins', async () => {
    await using kit = await createTestBroker({ auth: [users([{ username: 'ann', password: 'right' }])] });
    for (let n = 0; n < 11; n++) await assert.rejects(kit.connect({ clientId: 'c', transportInfo, ...ANN }));
    assert.deepEqual(
      records(kit.broker).map(([code, count]) => [code, count]),
      [
        ['wrong_password', 10],
        ['connection_limit', 1]
      ]
    );
  });

  it('contains no user name that is a token, and no password', async () => {
    await using kit = await createTestBroker({ auth: [source(() => false)], leakCheck: false });
    const { broker } = kit;
    const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl';
    await assert.rejects(kit.connect({ clientId: 'c', transportInfo, username: token, password: 'hidden' }));
    await broker.access.banned.create({ kind: 'username', who: token });
    await assert.rejects(kit.connect({ clientId: 'c', transportInfo, username: token }));
    const [first, second] = records(broker);
    assert.deepEqual(first[2], 'the source http refuses the client (from 192.0.2.7, user "(token)")');
    assert.match(`${second[2]}`, /^the user name "\(token\)" is banned/);
  });

  it('names the address of a client that sends no CONNECT', async () => {
    await using kit = await createTestBroker({ leakCheck: false });
    const client = new RawClient(kit.broker.stream(transportInfo), 5);
    client.sendBytes('30 00');
    await client.closed();
    const { entries } = kit.broker.monitor.reasons.list({ address: '192.0.2.7' });
    assert.deepEqual(
      entries.map(({ code, clientId, detail }) => [code, clientId, detail]),
      [['connect_refused', undefined, 'the first packet must be CONNECT (from 192.0.2.7, without a user name)']]
    );
  });
});

describe('The record of a connection that ends because of another one', () => {
  for (const clean of [false, true])
    it(`names the other connection, with Clean Start ${clean ? 1 : 0}`, async () => {
      await using kit = await createTestBroker({ leakCheck: false });
      const { broker } = kit;
      await kit.connect({ clientId: 'c', clean, transportInfo });
      const other = { transport: 'tcp', remoteAddress: '198.51.100.9' } as const;
      await kit.connect({ clientId: 'c', clean, username: 'eve', transportInfo: other });
      const { causes } = await broker.monitor.why({ topic: 't', clientId: 'c' });
      const taken = causes.find(({ code }) => code === 'taken_over');
      assert.match(taken?.text ?? '', /another connection.*, from 198\.51\.100\.9, user "eve"\.$/);
    });

  it('names the ban that disconnects a client', async () => {
    await using kit = await createTestBroker({ banDisconnects: true, leakCheck: false });
    await kit.connect({ clientId: 'c', transportInfo });
    await kit.broker.access.banned.create({ kind: 'clientId', who: 'c', by: 'admin', until: Infinity });
    const { causes } = await kit.broker.monitor.why({ topic: 't', clientId: 'c' });
    const banned = causes.find(({ code }) => code === 'banned');
    assert.match(
      banned?.text ?? '',
      /^Client "c" was refused or disconnected by a ban: the client id "c" is banned by "admin"\.$/
    );
  });
});

describe('The record of a connection that is closed because of a limit, before its CONNECT', () => {
  it('names maxConnections of the broker, and is an answer for a client that is not connected', async () => {
    await using kit = await createTestBroker({ maxConnections: 1, leakCheck: false });
    const { broker } = kit;
    await kit.connect({ clientId: 'first', transportInfo });
    await assert.rejects(kit.connect({ clientId: 'c', transportInfo }));
    const { entries } = broker.monitor.reasons.list({ address: '192.0.2.7' });
    const detail = 'the broker has too many connections (option maxConnections) (from 192.0.2.7)';
    assert.deepEqual(
      entries.map((entry) => [entry.code, entry.detail]),
      [['connection_limit', detail]]
    );
    const { causes } = await broker.monitor.why({ topic: 't', clientId: 'c' });
    const limit = causes.find(({ code }) => code === 'connection_limit');
    assert.match(limit?.text ?? '', /^A connection was closed before its client id was known, because a limit/);
    const connected = await broker.monitor.why({ topic: 't', clientId: 'first' });
    assert.ok(!connected.causes.some(({ code }) => code === 'connection_limit'));
  });

  it('names maxConnectionsPerAddress', async () => {
    await using kit = await createTestBroker({ maxConnectionsPerAddress: 1, leakCheck: false });
    await kit.connect({ clientId: 'first', transportInfo });
    await assert.rejects(kit.connect({ clientId: 'c', transportInfo }));
    const [{ code, detail }] = kit.broker.monitor.reasons.list({ address: '192.0.2.7' }).entries;
    assert.deepEqual(
      [code, detail],
      ['connection_limit', 'the address has too many connections (option maxConnectionsPerAddress) (from 192.0.2.7)']
    );
  });

  it('names the rate of a listener', async () => {
    await using kit = await createTestBroker({ leakCheck: false });
    const { broker } = kit;
    const listener = await listen(broker, { host: '127.0.0.1', port: 0, maxConnRate: 1 });
    const { port = 0 } = listener.address ?? {};
    const sockets = [1, 2, 3].map(() => connectSocket(port, '127.0.0.1'));
    for (const socket of sockets) socket.on('error', () => {});
    const limited = () => broker.monitor.reasons.list({ address: '127.0.0.1', code: 'connection_limit' }).entries[0];
    await until(() => limited()?.count === 2);
    assert.equal(
      limited().detail,
      `listener ${listener.name}: connections arrive too fast (its option maxConnRate) (from 127.0.0.1)`
    );
    for (const socket of sockets) socket.destroy();
  });
});
