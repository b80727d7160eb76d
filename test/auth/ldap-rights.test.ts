import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { Attribute, Change, Client, DN } from 'ldapts';
import { type LdapOptions, ldap } from '../../adapters/auth/ldap/index.ts';
import type { AuthSource } from '../../lib/adapter.ts';
import { users } from '../../lib/index.ts';
import type { TestBroker } from '../../lib/testing/index.ts';
import { service } from '../support/services.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { HOSTILE, sourceBroker } from './source-kit.ts';

const { url, skip } = service('ldap');
const { host, username: encodedDn, password: adminPassword } = new URL(url || 'ldap://localhost');
const SERVER = `ldap://${host}`;
const ADMIN = { bindDn: decodeURIComponent(encodedDn), bindPassword: adminPassword };
const BASE = `ou=${randomUUID()},dc=example,dc=com`;
const SEARCH = { url: SERVER, baseDn: BASE, acl: true };

/** Makes a virtual clock wait for the answers of a source. Without that, it does not wait for questions that have a deadline. */
function tracked(source: AuthSource, clock: () => TestBroker['clock']): AuthSource {
  const { authorize } = source;
  return Object.assign(source, {
    authorize: (request: never) => clock().track(Promise.resolve(authorize?.call(source, request)))
  });
}

/** @param others sources that are asked after it */
async function start(options: LdapOptions, others: AuthSource[] = []) {
  const source = tracked(ldap(options), () => broker.kit.clock);
  const broker = await sourceBroker(source, {
    maxConnectSize: '256KB',
    maxClientidLen: 65_535,
    aclCacheTtl: '10s',
    auth: [source, ...others]
  });
  return broker;
}

function dnOf(name: string): string {
  return `${new DN().addPairRDN('uid', name)},${BASE}`;
}

describe('access rules in a directory', { skip }, () => {
  const admin = new Client({ url: SERVER });
  const add = (uid: string, more: Record<string, string | string[]> = {}) =>
    admin.add(dnOf(uid), {
      objectClass: ['inetOrgPerson', 'mqttUser'],
      cn: 'test',
      sn: 'test',
      uid,
      userPassword: 'a-secret',
      ...more
    });
  const change = (uid: string, operation: 'add' | 'delete' | 'replace', type: string, ...values: string[]) =>
    admin.modify(dnOf(uid), new Change({ operation, modification: new Attribute({ type, values }) }));
  const ann = { username: 'ann', password: 'a-secret' };

  before(async () => {
    await admin.bind(ADMIN.bindDn, ADMIN.bindPassword);
    await admin.add(BASE, { objectClass: 'organizationalUnit', ou: BASE.slice(3, BASE.indexOf(',')) });
    await add('ruled', {
      mail: 'ruled@example.com',
      mqttPublishTopic: ['up/%u', 'p'],
      mqttSubscriptionTopic: 'down/#',
      mqttPubSubTopic: 'both/+'
    });
    await add('plain');
    await add('root', { isSuperuser: 'TRUE', mqttPublishTopic: 'p' });
    await add('badrule', { mqttPublishTopic: 'a/#/b' });
    await add('Twin', { uid: ['Twin', 'double'], mqttPubSubTopic: '#' });
    await add('twin2', { uid: ['twin2', 'double'], mqttPubSubTopic: '#' });
  });
  beforeEach(async () => {
    await admin.del(dnOf('ann')).catch(() => {});
    await add('ann', { mqttSubscriptionTopic: ['down/#', 'more'], mqttPublishTopic: 'up' });
  });
  after(() => admin.unbind());

  /** A broker with the subscriber `ann`, and messages to it. */
  async function subscribed(options: LdapOptions, others: AuthSource[] = []) {
    const broker = await start(options, others);
    const { kit } = broker;
    const client = await kit.connect({ clientId: 'a', ...ann, protocolVersion: 5 });
    const received: string[] = [];
    client.on('message', ({ payload }) => received.push(payload.toString()));
    assert.deepEqual(await client.subscribe(['down/x', 'more']), [0, 0]);
    return {
      broker,
      client,
      /** Publish to both topics. @returns what has arrived */
      arrives: async () => {
        received.length = 0;
        await kit.broker.publish('down/x', 'down');
        await kit.broker.publish('more', 'more');
        await kit.clock.settle();
        return received.join(' ');
      },
      [Symbol.asyncDispose]: () => broker[Symbol.asyncDispose]()
    };
  }

  it('allows what the attributes list, and nothing else', async () => {
    for (const found of [{ baseDn: BASE }, { userDn: `uid=%u,${BASE}` }]) {
      await using broker = await start({ url: SERVER, ...found, acl: true, usernameAttribute: 'uid' });
      const topics = {
        publish: ['up/ruled', 'p', 'both/x', 'up/ann', 'down/x', 'q', 'both/x/y'],
        subscribe: ['down/x/#', 'both/x', 'p', '#', '+/x', '$share/g/down/#', '$share/g/#']
      };
      const answers = [0, 0, 0, 0x87, 0x87, 0x87, 0x87, 0, 0, 0x87, 0x87, 0x87, 0, 0x87];
      assert.deepEqual(await broker.rights({ username: 'RULED', password: 'a-secret' }, topics), answers);
      assert.deepEqual(broker.errors, []);
    }
    await using renamed = await start({ ...SEARCH, acl: { publish: 'uid' } });
    assert.deepEqual(await renamed.rights(ann, { publish: ['ann', 'x'] }), [0, 0x87]);
  });

  it('leaves clients to the next source if their entry has none of the attributes', async () => {
    const who = { username: 'plain', password: 'a-secret' };
    await using broker = await start(SEARCH);
    assert.deepEqual(await broker.rights(who, { publish: ['a'], subscribe: ['a'] }), [0x87, 0x87]);
    const next: AuthSource = { name: 'next', authorize: ({ topic }) => topic === 'a' };
    await using both = await start(SEARCH, [next]);
    assert.deepEqual(await both.rights(who, { publish: ['a', 'b'], subscribe: ['a'] }), [0, 0x87, 0]);
    assert.deepEqual(await both.rights(ann, { publish: ['a'] }), [0x87], 'the next source is not asked');
  });

  it('applies to clients of other sources that have the name of an entry', async () => {
    const next: AuthSource = { name: 'next', authorize: () => true };
    await using broker = await start(SEARCH, [users([{ username: 'bob', password: 'other' }]), next]);
    const bob = { username: 'bob', password: 'other' };
    assert.deepEqual(await broker.rights(bob, { publish: ['x'], subscribe: ['x'] }), [0, 0]);
    await add('bob', { mqttPublishTopic: 'only' });
    await broker.kit.clock.advance('10s');
    assert.deepEqual(await broker.rights(bob, { publish: ['x', 'only'] }), [0x87, 0]);
    await admin.del(dnOf('bob'));
    assert.deepEqual(broker.errors, []);
  });

  it('does not query the rights of superusers', async () => {
    await using broker = await start({ ...SEARCH, superuserAttribute: 'isSuperuser' });
    const who = { username: 'root', password: 'a-secret' };
    assert.deepEqual(await broker.rights(who, { publish: ['any'], subscribe: ['#'] }), [0, 0]);
  });

  it('ends the delivery for withdrawn rights after aclCacheTtl', async () => {
    for (const found of [{ baseDn: BASE }, { userDn: `uid=%u,${BASE}` }]) {
      await using test = await subscribed({ url: SERVER, ...found, ...ADMIN, acl: true });
      const { clock } = test.broker.kit;
      await test.client.publish({ topic: 'up', payload: '', qos: 1 });
      await change('ann', 'delete', 'mqttSubscriptionTopic', 'down/#');
      await change('ann', 'delete', 'mqttPublishTopic', 'up');
      assert.equal(await test.arrives(), 'down more', 'the broker keeps the answer');
      await clock.advance('11s');
      assert.equal(await test.arrives(), 'more');
      await assert.rejects(test.client.publish({ topic: 'up', payload: '', qos: 1 }), { reasonCode: 0x87 });
      await change('ann', 'add', 'mqttSubscriptionTopic', 'down/+');
      await clock.advance('11s');
      assert.equal(await test.arrives(), 'down more', 'it is granted again');
      assert.deepEqual(test.broker.errors, []);
      await change('ann', 'replace', 'mqttSubscriptionTopic', 'down/#', 'more');
      await change('ann', 'add', 'mqttPublishTopic', 'up');
    }
  });

  it('applies granted rights after aclCacheTtl', async () => {
    await using broker = await start(SEARCH);
    const { kit } = broker;
    const client = await kit.connect({ clientId: 'a', ...ann, protocolVersion: 5 });
    const publish = () => client.publish({ topic: 'new', payload: '', qos: 1 });
    await assert.rejects(publish(), { reasonCode: 0x87 });
    await change('ann', 'add', 'mqttPublishTopic', 'new');
    await assert.rejects(publish(), { reasonCode: 0x87 });
    await kit.clock.advance('10s');
    await publish();
    await change('ann', 'delete', 'mqttPublishTopic', 'new');
    kit.broker.access.invalidate('a');
    await assert.rejects(publish(), { reasonCode: 0x87 });
  });

  it('withdraws the rights if the entry is deleted, disabled or duplicated', async () => {
    const ways: [() => Promise<void>, undo: () => Promise<void>, error?: RegExp][] = [
      [() => admin.del(dnOf('ann')), async () => {}],
      [() => change('ann', 'add', 'isEnabled', 'FALSE'), () => admin.del(dnOf('ann'))],
      [() => add('ann2', { uid: ['ann', 'ann2'] }), () => admin.del(dnOf('ann2')), /finds more than one entry .* "ann"/]
    ];
    for (const [change, undo, error] of ways) {
      await using test = await subscribed(SEARCH);
      await change();
      await test.broker.kit.clock.advance('11s');
      assert.equal(await test.arrives(), '');
      if (error === undefined) assert.deepEqual(test.broker.errors, []);
      else assert.match(test.broker.errors[0], error);
      await undo();
      await admin.del(dnOf('ann')).catch(() => {});
      await add('ann', { mqttSubscriptionTopic: ['down/#', 'more'] });
      await test.broker.kit.clock.advance('11s');
      assert.equal(await test.arrives(), 'down more');
    }
  });

  it('caches the rights for an additional cacheMs, or until the source is reloaded', async () => {
    await using test = await subscribed({ ...SEARCH, cacheMs: '15s' });
    const { kit } = test.broker;
    await change('ann', 'delete', 'mqttSubscriptionTopic', 'more');
    await kit.clock.advance('11s');
    assert.equal(await test.arrives(), 'down more');
    await kit.clock.advance('10s');
    assert.equal(await test.arrives(), 'down');
    await change('ann', 'delete', 'mqttSubscriptionTopic', 'down/#');
    await kit.broker.access.reload('ldap');
    kit.broker.access.invalidate();
    await kit.clock.settle();
    assert.equal(await test.arrives(), '');
  });

  it('allows nothing for rules that are not valid, and reports them', async () => {
    await using broker = await start(SEARCH);
    assert.deepEqual(await broker.rights({ username: 'badrule', password: 'a-secret' }, { publish: ['a'] }), [0x87]);
    assert.match(broker.errors[0], /a\/#\/b/);
  });

  it('finds the rights by the user name from usernameAttribute, or refuses the client', async () => {
    const mail = { username: 'ruled@example.com', password: 'a-secret' };
    await using both = await start({ ...SEARCH, usernameAttribute: 'uid', filter: '(|(uid=%u)(mail=%u))' });
    assert.deepEqual(await both.rights(mail, { publish: ['up/ruled', 'x'] }), [0, 0x87]);
    await using only = await start({ ...SEARCH, usernameAttribute: 'uid', filter: '(mail=%u)' });
    assert.equal(await only.attempt(mail), 0x87);
    assert.match(
      only.errors[0],
      /^the option acl needs to find the entry of the user name "ruled" by filter, and the right to read it; the client is refused/
    );
    await using without = await start({ ...SEARCH, acl: false, usernameAttribute: 'uid', filter: '(mail=%u)' });
    assert.equal(await without.attempt(mail), 0);
  });

  it('keeps the rights for one aclCacheTtl while the server is down, and then denies, or leaves the client to the next source', async () => {
    await using proxy = await new TcpProxy(SERVER).start();
    const next: AuthSource = { name: 'next', authorize: ({ topic }) => topic === 'more' };
    for (const onError of ['deny', 'ignore'] as const) {
      const options = { ...SEARCH, url: proxy.replaceIn(SERVER), onError, breaker: { failures: 1, pauseMs: '5s' } };
      await using test = await subscribed(options, [next]);
      const { clock } = test.broker.kit;
      await proxy.stop();
      await clock.advance('11s');
      assert.equal(await test.arrives(), 'down more');
      await clock.advance('11s');
      assert.equal(await test.arrives(), onError === 'deny' ? '' : 'more');
      assert.match(test.broker.errors[0], /cannot connect .* \(it will not be asked for 5000 ms\)$/);
      assert.ok(!test.broker.errors.some((text) => text.includes('a-secret')));
      await proxy.start();
      await clock.advance('6s');
      await clock.advance('6s'); // the first question after the pause is a trial, and those beside it have to wait again
      assert.equal(await test.arrives(), 'down more', 'the server is asked again after the pause');
    }
  });

  it('derives no rights from a hostile client id or user name', async () => {
    const names = [...HOSTILE, 'ann)(uid=*', '*)(objectClass=*', 'ann))(|(uid=*', `ann,${BASE}`, `x,${BASE}+uid=ann`];
    const sources: LdapOptions[] = [
      { url: SERVER, baseDn: BASE, filter: '(uid=%c)' },
      { url: SERVER, userDn: `uid=%c,${BASE}` },
      { url: SERVER, baseDn: BASE, filter: '(&(objectClass=mqttUser)(|(uid=%u)(mail=%u)))' },
      { url: SERVER, userDn: '%u' }
    ];
    for (const options of sources) {
      await using broker = await start({ ...options, acl: true });
      broker.kit.broker.hook('authenticate', () => true, { isFirst: true });
      for (const name of names) {
        if (['Ann', 'ann ', ' ann'].includes(name)) continue; // directories compare names without regard to these differences
        const rights = await broker.rights(
          { clientId: name, username: name },
          { publish: ['up'], subscribe: ['down/x'] }
        );
        assert.deepEqual(rights, [0x87, 0x87], name.slice(0, 40));
      }
      assert.deepEqual(broker.errors, []);
    }
  });
});
