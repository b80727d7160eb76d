import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type Broker,
  type ConfigurationDocument,
  createBroker,
  exportConfiguration,
  exportConfigurationLines,
  importConfiguration,
  memoryStore
} from '../../lib/index.ts';
import { recover, stage } from '../store/failing-support.ts';

const QUIET = { sysInterval: 0, sysHeartbeat: 0 };

/** Sets a value of each kind. */
async function fill(broker: Broker): Promise<void> {
  await broker.access.clientIds.create('c', 'secret c');
  await broker.access.usernames.create('u', 'secret u');
  await broker.access.logins.create('root', 'secret root', { isSuperuser: true });
  await broker.access.acl.set({ access: 'deny', action: 'publish', topic: 'a/#' });
  await broker.access.acl.set({ access: 'allow', action: 'pubsub', topic: 'a/b', exact: true, clientId: 'c' });
  await broker.access.banned.create({ kind: 'clientId', who: 'bad', until: Infinity, reason: 'why' });
  await broker.access.banned.create({ kind: 'address', who: '10.0.0.0/8', until: Date.now() + 3_600_000 });
  await broker.applications.create({ id: 'app', secret: 'secret app', expiresAt: 4_000_000_000_000 });
  await broker.users.create('admin', 'secret admin', 'administrator');
  await broker.features.stop('presence');
  await broker.configuration.setAll([
    ['max_inflight', 64],
    ['zone.external.mqueue_priorities', 'a=1,b=2'],
    ['retained_expiry_interval', '90s']
  ]);
  await broker.access.create({ name: 'own', authenticate: () => undefined });
  await broker.access.stop('own');
}

/** A document after conversion to JSON and back. */
function sent(document: ConfigurationDocument): ConfigurationDocument {
  return JSON.parse(JSON.stringify(document));
}

const counts = (added: number, replaced = 0, removed = 0, skipped = 0) => ({ added, replaced, removed, skipped });

describe('The document of a configuration', () => {
  it('contains hashes with the cost of the option passwordCost', async () => {
    await using broker = await createBroker({ passwordCost: 11 }).start();
    await broker.applications.create({ id: 'a', secret: 's' });
    await broker.users.create('ann', 'p');
    const { applications, users } = (await exportConfiguration(broker)).sections as Record<string, { hash: string }[]>;
    for (const { hash } of [...applications, ...users]) assert.match(hash, /^\$scrypt\$ln=11,/);
    assert.throws(() => createBroker({ passwordCost: 9 }), { code: 'OPTION_INVALID', field: 'passwordCost' });
  });

  it('leaves out requested sections', async () => {
    await using broker = await createBroker(QUIET).start();
    await fill(broker);
    const lines: string[] = [];
    for await (const line of exportConfigurationLines(broker, { without: ['clientIds', 'stoppedSources'] }))
      lines.push(line);
    const { sections } = JSON.parse(lines.join('\n')) as ConfigurationDocument;
    assert.deepEqual(
      [sections.clientIds, sections.stoppedSources, sections.usernames?.length],
      [undefined, undefined, 1]
    );
    for (const without of ['acl', ['others']])
      await assert.rejects(exportConfigurationLines(broker, { without } as never).next(), { code: 'OPTION_INVALID' });
  });

  it('transfers everything to another broker, which accepts the same passwords', async () => {
    await using from = await createBroker(QUIET).start();
    await fill(from);
    const document = sent(await exportConfiguration(from));
    assert.doesNotMatch(JSON.stringify(document), /secret/);
    await using to = await createBroker({ ...QUIET, store: memoryStore() }).start();
    await to.access.create({ name: 'own', authenticate: () => undefined });
    const { sections, errors } = await importConfiguration(to, document, { mode: 'replace' });
    assert.deepEqual(errors, []);
    assert.deepEqual(sections, {
      clientIds: counts(1),
      usernames: counts(1),
      logins: counts(1),
      acl: counts(2),
      banned: counts(2),
      applications: counts(1),
      users: counts(1),
      features: counts(0, 5),
      settings: counts(3),
      stoppedSources: counts(1),
      resources: counts(0),
      rules: counts(0)
    });
    assert.deepEqual(sent(await exportConfiguration(to)).sections, document.sections);
    assert.notEqual(await to.applications.verify('app', 'secret app'), undefined);
    assert.notEqual(await to.users.verify('admin', 'secret admin'), undefined);
    await to.connect({ clientId: 'x', username: 'root', password: 'secret root' });
    await assert.rejects(to.connect({ clientId: 'y', username: 'u', password: 'wrong' }));
    await assert.rejects(to.connect({ clientId: 'bad', username: 'root', password: 'secret root' }));
    assert.equal((await to.access.explain({ clientId: 'c', action: 'publish', topic: 'a/b' })).access, 'allow');
    assert.equal((await to.access.explain({ clientId: 'd', action: 'publish', topic: 'a/b' })).access, 'deny');
  });

  it('merges a document: existing entries stay, and absent ones are added', async () => {
    await using from = await createBroker(QUIET).start();
    await fill(from);
    const document = sent(await exportConfiguration(from));
    await using to = await createBroker(QUIET).start();
    await to.access.create({ name: 'own', authenticate: () => undefined });
    await to.configuration.set('max_inflight', 5);
    await to.access.usernames.create('u', 'another password');
    await to.access.usernames.create('mine', 'x');
    const { sections } = await importConfiguration(to, document);
    assert.deepEqual(
      [sections.usernames, sections.clientIds, sections.features, sections.settings],
      [counts(0, 0, 0, 1), counts(1), counts(0, 0, 0, 5), counts(2, 0, 0, 1)]
    );
    assert.equal(to.configuration.get('max_inflight').value, 5);
    await to.connect({ clientId: 'x', username: 'u', password: 'another password' });
    assert.equal(to.access.usernames.size, 2);
  });

  it('replaces the sections of the document, but never removes the user admin', async () => {
    await using to = await createBroker(QUIET).start();
    await fill(to);
    await to.users.create('eve', 'a password');
    const empty = { ...sent(await exportConfiguration(to)), sections: { users: [], acl: [], banned: [] } };
    const { sections } = await importConfiguration(to, empty, { mode: 'replace' });
    assert.deepEqual(sections, { acl: counts(0, 0, 2), banned: counts(0, 0, 2), users: counts(0, 0, 1) });
    assert.deepEqual([[...to.users].map(({ name }) => name), to.applications.size], [['admin'], 1]);
  });

  it('does not remove the last administrator, and names it among the errors', async () => {
    await using to = await createBroker(QUIET).start();
    await to.users.create('ann', 'a password', 'administrator');
    const head = sent(await exportConfiguration(to));
    const { errors } = await importConfiguration(to, { ...head, sections: { users: [] } }, { mode: 'replace' });
    assert.deepEqual(
      errors.map(({ section, entry }) => [section, entry]),
      [['users', 'ann']]
    );
    assert.match(errors[0].message, /"ann" is the last administrator/);
    await to.users.create('bob', 'a password', 'administrator');
    const users = [...to.users.exported()].filter(({ name }) => name === 'bob');
    const { sections } = await importConfiguration(to, { ...head, sections: { users } }, { mode: 'replace' });
    assert.deepEqual(sections.users, counts(0, 1, 1));
    assert.deepEqual(
      [...to.users].map(({ name }) => name),
      ['bob']
    );
  });

  it('does not make the last administrator a viewer, and names it among the errors', async () => {
    await using to = await createBroker(QUIET).start();
    for (const name of ['ann', 'admin', 'bob']) await to.users.create(name, 'a password', 'administrator');
    const head = sent(await exportConfiguration(to));
    const viewers = head.sections.users?.map((user) => ({ ...user, tags: 'viewer' }));
    const { sections, errors } = await importConfiguration(
      to,
      { ...head, sections: { users: viewers } },
      { mode: 'replace' }
    );
    assert.deepEqual(
      [sections.users, errors.map(({ section, entry }) => [section, entry])],
      [counts(0, 2), [['users', 'bob']]]
    );
    assert.match(errors[0].message, /"bob" is the last administrator/);
    assert.deepEqual(
      Array.from(to.users, ({ name, role }) => [name, role]),
      [
        ['ann', 'viewer'],
        ['admin', 'viewer'],
        ['bob', 'administrator']
      ]
    );
  });

  it('makes the last administrator a viewer if the document has another one, wherever that stands', async () => {
    await using from = await createBroker(QUIET).start();
    await from.users.create('ann', 'a password', 'viewer');
    await from.users.create('eve', 'a password', 'administrator');
    await using to = await createBroker(QUIET).start();
    await to.users.create('ann', 'another password', 'administrator');
    const document = sent(await exportConfiguration(from));
    const { sections, errors } = await importConfiguration(
      to,
      { ...document, sections: { users: document.sections.users } },
      { mode: 'replace' }
    );
    assert.deepEqual([sections.users, errors], [counts(1, 1), []]);
    assert.deepEqual([...to.users], [...from.users]);
  });

  it('replaces settings and stopped sources: other settings are reset, and other sources are started', async () => {
    await using to = await createBroker(QUIET).start();
    let starts = 0;
    const open = () => {
      if (++starts > 1) throw new TypeError('the file is gone');
    };
    await to.access.create({ name: 'own', authenticate: () => undefined, open });
    await to.configuration.setAll([
      ['max_inflight', 64],
      ['max_mqueue_len', 5]
    ]);
    const sections = { settings: [{ key: 'maxInflight', value: 7 }], stoppedSources: [{ name: 'records' }] };
    const document = { ...(await exportConfiguration(to)), sections };
    const replaced = await importConfiguration(to, document, { mode: 'replace' });
    assert.deepEqual(replaced, { sections: { settings: counts(0, 1, 1), stoppedSources: counts(1) }, errors: [] });
    assert.deepEqual(
      to.configuration.overrides().map(({ key, value }) => [key, value]),
      [['max_inflight', 7]]
    );
    await to.access.stop('own');
    const none = { ...document, sections: { settings: [], stoppedSources: [] } };
    const { errors } = await importConfiguration(to, none, { mode: 'replace' });
    assert.deepEqual(errors, [
      { section: 'stoppedSources', entry: 'own', message: 'the source "own": the file is gone' }
    ]);
    assert.deepEqual(
      to.access.list().map(({ isStarted }) => isStarted),
      [true, false]
    );
    assert.deepEqual(to.configuration.overrides(), []);
  });

  it('writes lines while other work continues and records change', async () => {
    await using broker = await createBroker(QUIET).start();
    const rule = (n: number) => ({ access: 'deny', action: 'publish', topic: `t/${n}` }) as const;
    for (let n = 0; n < 1000; n++) await broker.access.acl.set(rule(n));
    const topics: string[] = [];
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    let text = '';
    for await (const line of exportConfigurationLines(broker)) {
      text += `${line}\n`;
      if (!line.includes('"t/150"')) continue;
      await broker.access.acl.delete('all', 't/10');
      await broker.access.acl.set(rule(20));
      await broker.access.acl.delete('all', 't/30');
      await broker.access.acl.set(rule(30));
      await broker.access.acl.delete('all', 't/900');
      assert.equal((await broker.access.acl.part('all', { skip: 0, limit: 1 })).length, 1);
    }
    isDone = true;
    const { sections } = JSON.parse(text) as ConfigurationDocument;
    for (const { topic } of sections.acl ?? []) topics.push(topic);
    assert.equal(new Set(topics).size, topics.length, 'no record is there twice');
    assert.ok(topics.length >= 999, `${topics.length}`);
    assert.ok(turns >= 9, `${turns} turns`);
    assert.deepEqual(Object.keys(sections), Object.keys((await exportConfiguration(broker)).sections));
  });

  it('keeps the order of access rules when they are replaced', async () => {
    await using to = await createBroker(QUIET).start();
    const rule = (topic: string) => ({ access: 'deny', action: 'pubsub', topic }) as const;
    for (const topic of ['x', 'b', 'a']) await to.access.acl.set(rule(topic));
    const document = { ...(await exportConfiguration(to)), sections: { acl: [rule('a'), rule('b'), rule('c')] } };
    await importConfiguration(to, document, { mode: 'replace' });
    assert.deepEqual(
      to.access.acl.list('all').map(({ topic }) => topic),
      ['c', 'b', 'a']
    );
  });

  it('refuses a document with errors as a whole, with the invalid entries', async () => {
    await using to = await createBroker(QUIET).start();
    const good = await exportConfiguration(to);
    const wrong = (sections: object) => ({ ...good, sections }) as unknown as ConfigurationDocument;
    const user = { name: 'a', hash: 'plain text', tags: '' };
    for (const [document, pattern] of [
      [{ ...good, format: 'x' }, /"format"/],
      [{ ...good, version: 2 }, /version 2/],
      [5, /"format"/],
      [wrong([]), /"sections"/],
      [wrong({ people: [] }), /people: there is no such section/],
      [wrong({ users: {} }), /users: a section must be a list/],
      [wrong({ users: [user] }), /users\[0\]: hash: expected the hash/],
      [wrong({ users: ['a', { name: '' }] }), /2 errors.*users\[0\].*users\[1\]/],
      [wrong({ usernames: [{ name: 'u', salt: '00', hash: '', scram: [] }] }), /usernames\[0\]: salt/],
      [wrong({ acl: [{ access: 'deny', topic: 'a/#/b' }] }), /acl\[0\]/],
      [
        wrong({
          acl: [
            { access: 'deny', topic: 'a' },
            { access: 'allow', topic: 'a' }
          ]
        }),
        /acl\[1\]: there are two/
      ],
      [wrong({ banned: [{ kind: 'address', who: 'x' }] }), /banned\[0\]/],
      [wrong({ applications: [{ id: 'a:b' }] }), /applications\[0\]/],
      [wrong({ features: [{ name: 'x', isStarted: true }] }), /features\[0\]/],
      [wrong({ settings: [{ key: 'max_inflght', value: 1 }] }), /settings\[0\]: .*max_inflight/],
      [wrong({ settings: [{ key: 'max_inflight', value: 'many' }] }), /settings\[0\]: max_inflight/],
      [wrong({ settings: [{ key: 'max_inflight' }] }), /settings\[0\]: max_inflight/],
      [wrong({ settings: [{ key: 'zone.moon.max_inflight', value: 1 }] }), /settings\[0\]: .*no zone "moon"/],
      [wrong({ settings: [{ key: 'node', value: 'other' }] }), /settings\[0\]: node.name takes effect only/],
      [
        wrong({
          settings: [
            { key: 'max_inflight', value: 1 },
            { key: 'maxInflight', value: 2 }
          ]
        }),
        /settings\[1\]: there are two entries for max_inflight/
      ],
      [wrong({ stoppedSources: [{ name: 'moon' }] }), /stoppedSources\[0\]: .*records/]
    ] as const)
      await assert.rejects(
        importConfiguration(to, document as ConfigurationDocument),
        (error: Error & { code: string }) => {
          assert.equal(error.code, 'IMPORT_INVALID');
          assert.match(error.message, pattern);
          assert.doesNotMatch(error.message, /plain text/);
          return true;
        }
      );
    await assert.rejects(importConfiguration(to, good, { mode: 'other' as never }), { code: 'OPTION_INVALID' });
    const part = wrong({ acl: [{ access: 'deny', topic: 'a' }], users: [user] });
    await assert.rejects(importConfiguration(to, part), { code: 'IMPORT_INVALID' });
    assert.equal(to.access.acl.size, 0, 'nothing was changed');
  });

  it('names the entries that the store could not accept, and leaves the rest of their section unchanged', async () => {
    const { kit, store } = await stage();
    await using _ = kit;
    const { broker } = kit;
    const acl = Array.from({ length: 250 }, (_, n) => ({ access: 'deny', action: 'pubsub', topic: `t/${n}` }) as const);
    const document = { ...(await exportConfiguration(broker)), sections: { acl } };
    store.fault = 'refuses';
    const { sections, errors } = await importConfiguration(broker, document);
    assert.deepEqual([sections.acl, errors.length, errors[0].section], [counts(0), 100, 'acl']);
    assert.equal(broker.access.acl.size, 0);
    await recover(kit, store);
    assert.deepEqual((await importConfiguration(broker, document)).sections.acl, counts(250));
  });
});
