import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { postgresql, type SqlOptions } from '../../adapters/auth/database/index.ts';
import { http } from '../../adapters/auth/http/index.ts';
import { ldap } from '../../adapters/auth/ldap/index.ts';
import type { AuthSource } from '../../lib/adapter.ts';
import type { AuthorizeRequest } from '../../lib/index.ts';
import { freePort } from '../support/free-ports.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, payloads, publish, subscribe, turns } from '../support/wire.ts';
import { sourceBroker } from './source-kit.ts';

const ALLOWED = [{ allow: 1, access: 3, topic: '#' }];
const TTL = 60_000;

/** A database that a test lets fail or wait. */
function database(options: Partial<SqlOptions> = {}) {
  const state = { isDown: false, isSilent: false, asked: [] as (string | null)[] };
  const query: SqlOptions['query'] = (_, values) => {
    state.asked.push(...values);
    if (state.isDown) throw new Error('ECONNREFUSED');
    return state.isSilent ? new Promise(() => {}) : ALLOWED;
  };
  const acl = 'SELECT * FROM mqtt_acl WHERE clientid = %c';
  return { state, source: postgresql({ query, acl, authenticate: false, ...options }) };
}

function start(source: AuthSource, more: object = {}) {
  return sourceBroker(source, { allowAnonymous: true, aclCacheTtl: TTL, ...more });
}

describe('a source that cannot ask its server about the rights of a client', () => {
  type Make = (onError: 'deny' | 'ignore') => Promise<AuthSource>;
  const makers: Record<string, Make> = {
    database: async (onError) =>
      postgresql({ query: () => Promise.reject(new Error('down')), authenticate: false, onError }),
    http: async (onError) => http({ acl: { url: `http://127.0.0.1:${await freePort()}/` }, onError }),
    ldap: async (onError) =>
      ldap({ url: `ldap://127.0.0.1:${await freePort()}`, baseDn: 'dc=example', acl: true, onError })
  };

  for (const [name, make] of Object.entries(makers))
    for (const onError of ['deny', 'ignore'] as const)
      it(`answers that it is undecided (${name}, onError ${onError}), even while it is closed`, async () => {
        const source = await make(onError);
        const authorize = async () => {
          let isUndecided = false;
          const request = {
            client: { clientId: 'c', username: 'ann', transportInfo: { transport: 'tcp' } },
            action: 'publish',
            topic: 'a',
            signal: new AbortController().signal,
            undecided: () => {
              isUndecided = true;
            }
          };
          const answer = await source.authorize?.(request as unknown as AuthorizeRequest<never>);
          return [answer, isUndecided];
        };
        assert.deepEqual(await authorize(), [false, true], 'before it is open');
        await using broker = await start(source);
        assert.deepEqual(await authorize(), [onError === 'deny' ? false : undefined, true]);
        await broker.kit.broker.access.delete(source.name);
        assert.deepEqual(await authorize(), [false, true], 'after it was closed');
      });

  it('answers that it is undecided for invalid rows of a database', async () => {
    let asked = 0;
    const query = () => {
      asked++;
      return [{ allow: 'perhaps', access: 3, topic: '#' }];
    };
    await using broker = await start(postgresql({ query, authenticate: false }));
    const client = await rawClient(broker.kit.broker, { clientId: 'c' });
    assert.deepEqual(await granted(client, 1, 'a'), [0x87]);
    assert.deepEqual(await granted(client, 2, 'a'), [0x87]);
    assert.equal(asked, 2, 'the first answer is not kept');
  });

  for (const onError of ['deny', 'ignore'] as const) {
    it(`refuses a topic no longer than the server fails (onError ${onError})`, async () => {
      const { state, source } = database({ onError });
      await using broker = await start(source);
      const client = await rawClient(broker.kit.broker, { clientId: 'c' });
      const send = async (messageId: number) => {
        client.send(publish('a', 'x', { qos: 1, messageId }));
        return (await client.next('puback')).reasonCode ?? 0;
      };
      state.isDown = true;
      assert.equal(await send(1), 0x87);
      assert.deepEqual(await granted(client, 2, 'a'), [0x87]);
      state.isDown = false;
      assert.equal(await send(3), 0x10, 'no matching subscribers');
      assert.deepEqual(await granted(client, 4, 'a'), [0]);
    });

    it(`removes no subscriptions (onError ${onError})`, async () => {
      const { state, source } = database({ onError });
      await using broker = await start(source, { aclRemoveSubscriptions: true });
      const removed: string[] = [];
      broker.kit.broker.on('session.unsubscribed', ({ filter }) => removed.push(filter));
      const client = await rawClient(broker.kit.broker, { clientId: 'c' });
      assert.deepEqual(await granted(client, 1, 'a'), [0]);
      state.isDown = true;
      await broker.kit.clock.advance(TTL + 2_000);
      assert.deepEqual(removed, []);
    });
  }

  it('refuses a returning client, and keeps its session unchanged', async () => {
    const { state, source } = database();
    await using broker = await start(source);
    const session = { clientId: 'c', clean: false, properties: { sessionExpiryInterval: 3_600 } };
    const first = await rawClient(broker.kit.broker, session);
    assert.deepEqual(await granted(first, 1, { topic: 'a', qos: 1 }), [1]);
    first.cut();
    await turns();
    for (const text of ['1', '2', '3']) await broker.kit.broker.publish('a', text, { qos: 1 });
    state.isDown = true;
    const refused = await rawClient(broker.kit.broker, session);
    assert.equal(refused.connack?.reasonCode, 0x88);
    state.isDown = false;
    const again = await rawClient(broker.kit.broker, session);
    assert.equal(again.connack?.reasonCode, 0);
    assert.deepEqual(await payloads(again), ['1', '2', '3']);
  });

  it('does not ask again about other clients because many clients have disconnected before the answer', async () => {
    const { state, source } = database({ maxConcurrent: 1_000 });
    await using broker = await start(source, { aclCacheTtl: 60 * TTL });
    const quiet = await rawClient(broker.kit.broker, { clientId: 'quiet' });
    assert.deepEqual(await granted(quiet, 1, 'a'), [0]);
    state.isSilent = true;
    for (let at = 0; at < 1_005; at++) {
      const client = await rawClient(broker.kit.broker, {});
      client.send(subscribe(1, 'a'));
      await turns(1);
      client.cut();
    }
    await turns();
    state.isSilent = false;
    state.asked.length = 0;
    await broker.kit.clock.advance(31_000);
    assert.deepEqual(state.asked, []);
    assert.deepEqual(broker.errors, []);
  });
});
