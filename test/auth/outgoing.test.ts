import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { postgresql } from '../../adapters/auth/database/index.ts';
import { http } from '../../adapters/auth/http/index.ts';
import { ldap } from '../../adapters/auth/ldap/index.ts';
import type { AuthSource } from '../../lib/adapter.ts';
import { connectPacket, rawClient } from '../support/raw-client.ts';
import { turns } from '../support/wire.ts';
import { type SourceBroker, sourceBroker } from './source-kit.ts';

const ANN = { password: 'a-secret' };
const ROWS = [{ password: 'a-secret' }];

type Rows = Record<string, unknown>[];

/** A database that answers when a test says so. */
function slowDatabase() {
  const asked: ((rows: Rows) => void)[] = [];
  return {
    asked,
    query: () => new Promise<Rows>((resolve) => asked.push(resolve)),
    /** Wait until a number of queries have been sent. */
    until: async (count: number) => {
      while (asked.length < count) await new Promise((resolve) => setImmediate(resolve));
    }
  };
}

describe('a server with many concurrent requests', () => {
  const options = { acl: false, passwordHash: 'plain', maxConcurrent: 1, timeoutMs: '1s' } as const;
  const breaker = { failures: 2, pauseMs: '1h' };
  const clients = (count: number) => Array.from({ length: count }, (_, at) => ({ ...ANN, clientId: `c${at}` }));

  it('does not count as failed because clients were queued for too long', async () => {
    const { asked, query, until } = slowDatabase();
    await using broker = await sourceBroker(postgresql({ query, ...options, breaker }));
    const { clock } = broker.kit;
    const codes = clients(10).map((client) => broker.attempt(client));
    await until(1);
    await clock.advance('1s');
    assert.deepEqual(await Promise.all(codes), Array(10).fill(0x88));
    assert.equal(asked.length, 1, 'no time was left for the others');
    const next = broker.attempt(ANN);
    await until(2);
    asked[1](ROWS);
    assert.equal(await next, 0);
  });

  it('does not count as failed because little time was left after the wait in the queue', async () => {
    const { asked, query, until } = slowDatabase();
    await using broker = await sourceBroker(postgresql({ query, ...options, maxConcurrent: 2, breaker }));
    const { clock } = broker.kit;
    const codes = clients(4).map((client) => broker.attempt(client));
    await until(2);
    await clock.advance('990ms');
    for (const answer of asked.slice()) answer(ROWS);
    await until(4);
    await clock.advance('10ms');
    assert.deepEqual(await Promise.all(codes), [0, 0, 0x88, 0x88]);
    for (const answer of asked.slice(2)) answer(ROWS); // too late
    const next = broker.attempt(ANN);
    await until(5);
    asked[4](ROWS);
    assert.equal(await next, 0);
  });

  it('counts as failed if it answers nothing, although most clients wait in the queue', async () => {
    const { asked, query, until } = slowDatabase();
    await using broker = await sourceBroker(postgresql({ query, ...options, breaker }));
    const { clock } = broker.kit;
    const codes: Promise<number>[] = [];
    for (let at = 0; at < 5; at++) {
      codes.push(broker.attempt({ ...ANN, clientId: `c${at}` }));
      await until(1);
      await clock.advance('400ms');
    }
    await clock.advance('1s');
    assert.deepEqual(await Promise.all(codes), Array(5).fill(0x88));
    const { length } = asked;
    assert.equal(await broker.attempt(ANN), 0x88);
    assert.equal(asked.length, length, 'it is no longer asked');
    assert.match(broker.errors.at(-1) ?? '', /it will not be asked for 3600000 ms/);
  });
});

describe('a database that is asked about clients that disconnect', () => {
  const options = { acl: false, passwordHash: 'plain', maxConcurrent: 2, timeoutMs: '1s' } as const;

  /** Clients that send a CONNECT packet and close the connection before the answer. */
  async function leave({ kit }: SourceBroker, count: number): Promise<void> {
    for (let at = 0; at < count; at++) {
      const client = await rawClient(kit.broker, { connect: false });
      client.send(connectPacket({ clientId: `c${at}`, username: 'ann', password: Buffer.from('a-secret') }));
      await turns();
      client.cut();
      await turns();
    }
  }

  it('runs at most maxConcurrent queries at a time', async () => {
    const { asked, query, until } = slowDatabase();
    await using broker = await sourceBroker(postgresql({ query, ...options }));
    await leave(broker, 20);
    assert.equal(asked.length, 2);
    const code = broker.attempt(ANN);
    await turns();
    assert.equal(asked.length, 2);
    asked[0](ROWS);
    await until(3);
    asked[2](ROWS);
    assert.equal(await code, 0);
    assert.deepEqual(broker.errors, []);
  });

  it('sends other queries once one has had no answer for timeoutMs', async () => {
    const { asked, query, until } = slowDatabase();
    await using broker = await sourceBroker(postgresql({ query, ...options }));
    const { clock } = broker.kit;
    await leave(broker, 2);
    await clock.advance('500ms');
    const code = broker.attempt(ANN);
    await turns();
    assert.equal(asked.length, 2);
    await clock.advance('500ms');
    await until(3);
    asked[2](ROWS);
    assert.equal(await code, 0);
    assert.deepEqual(broker.errors, []);
  });

  it('runs at most maxConcurrent queries, although little time was left for them after the wait in the queue', async () => {
    const { asked, query, until } = slowDatabase();
    await using broker = await sourceBroker(postgresql({ query, ...options, maxConcurrent: 1 }));
    const { clock } = broker.kit;
    const codes = [broker.attempt({ ...ANN, clientId: 'c1' }), broker.attempt({ ...ANN, clientId: 'c2' })];
    await until(1);
    await clock.advance('900ms');
    asked[0](ROWS);
    await until(2);
    await clock.advance('100ms');
    assert.deepEqual(await Promise.all(codes), [0, 0x88]);
    const next = broker.attempt(ANN);
    await clock.advance('800ms');
    assert.equal(asked.length, 2, 'the query of c2 has been running for 900 ms');
    await clock.advance('100ms');
    await until(3);
    asked[2](ROWS);
    assert.equal(await next, 0);
  });
});

describe('a source that is removed while clients wait', () => {
  /** A server that accepts connections and answers nothing. */
  async function silentServer(): Promise<
    AsyncDisposable & { port: number; sockets: Socket[]; first: Promise<unknown> }
  > {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      socket.on('error', () => {});
      sockets.push(socket.resume());
    });
    const first = once(server, 'connection');
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return {
      ...{ port: (server.address() as AddressInfo).port, sockets, first },
      [Symbol.asyncDispose]: () =>
        new Promise((resolve) => {
          server.close(() => resolve());
          for (const socket of sockets) socket.destroy();
        })
    };
  }

  /** Remove a source while 20 clients wait, of which one has been asked about. */
  async function removedInUse(source: AuthSource, whenAsked: () => Promise<unknown>): Promise<void> {
    await using broker = await sourceBroker(source);
    const codes = Array.from({ length: 20 }, (_, at) => broker.attempt({ ...ANN, clientId: `c${at}` }));
    await whenAsked();
    await broker.kit.broker.access.delete(source.name);
    assert.deepEqual(await Promise.all(codes), Array(20).fill(0x88), source.name);
    assert.deepEqual(broker.errors, []);
  }

  it('sends no more queries to its database', async () => {
    const { asked, query, until } = slowDatabase();
    const source = postgresql({ query, acl: false, passwordHash: 'plain', maxConcurrent: 1 });
    await removedInUse(source, () => until(1));
    assert.equal(asked.length, 1);
  });

  it('sends no more requests by HTTP', async () => {
    await using server = await silentServer();
    await removedInUse(
      http({ authenticate: { url: `http://127.0.0.1:${server.port}/` }, maxConcurrent: 1 }),
      () => server.first
    );
    assert.equal(server.sockets.length, 1);
  });

  it('opens no more connections to its directory', async () => {
    await using server = await silentServer();
    await removedInUse(
      ldap({ url: `ldap://127.0.0.1:${server.port}`, baseDn: 'dc=example', maxConcurrent: 1 }),
      () => server.first
    );
    assert.equal(server.sockets.length, 1);
  });
});
