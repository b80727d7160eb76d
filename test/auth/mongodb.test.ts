import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type MongodbOptions, mongodb } from '../../adapters/auth/database/index.ts';
import { HOSTILE, sourceBroker } from './source-kit.ts';

type Document = Record<string, unknown>;

/**
 * A double of the driver: `collection.find(filter).toArray()` for filters of fields, where an object with an operator matches as it would in
 * MongoDB. There is no MongoDB among Debian's packages, so these tests do not run against a real one.
 */
function driver(collections: Record<string, Document[]>) {
  const asked: [string, Document][] = [];
  const isMatch = (document: Document, [field, wanted]: [string, unknown]): boolean => {
    if (field === '$or')
      return (wanted as Document[]).some((one) => Object.entries(one).every((e) => isMatch(document, e)));
    if (typeof wanted !== 'object' || wanted === null) return document[field] === wanted;
    return Object.hasOwn(wanted, '$ne') ? document[field] !== (wanted as Document).$ne : true;
  };
  const find: MongodbOptions['find'] = async (collection, filter) => {
    asked.push([collection, filter]);
    return (collections[collection] ?? []).filter((one) =>
      Object.entries(filter).every((entry) => isMatch(one, entry))
    );
  };
  return { find, asked };
}

const USERS = [
  { username: 'ann', password: 'a-secret', is_superuser: false },
  { username: 'root', password: 'r-secret', is_superuser: true },
  { password: 'without-name' }
];

describe('a source with MongoDB (a stub of its driver)', () => {
  it('accepts users with the right password, and leaves unknown names to the next source', async () => {
    const { find, asked } = driver({ mqtt_user: USERS });
    await using broker = await sourceBroker(mongodb({ find, passwordHash: 'plain' }));
    assert.equal(await broker.attempt({ password: 'a-secret' }), 0);
    assert.deepEqual(asked, [['mqtt_user', { username: 'ann' }]]);
    assert.equal(await broker.attempt({ password: 'r-secret' }), 0x86);
    assert.equal(await broker.attempt({ username: 'nobody', password: '' }), 0x86);
    assert.equal(await broker.attempt({ username: undefined }), 0x87);
    assert.deepEqual(await broker.rights({ password: 'a-secret' }, { publish: ['a'] }), [0x87]);
    assert.deepEqual(await broker.rights({ username: 'root', password: 'r-secret' }, { publish: ['a'] }), [0]);
    assert.deepEqual(broker.errors, []);
  });

  it('allows the topics of the lists publish, subscribe and pubsub', async () => {
    const rules = [
      { username: 'ann', publish: ['up/%c'], subscribe: ['down/#'] },
      { username: 'ann', pubsub: ['both'] },
      { username: 'bad', pubsub: 'both' }
    ];
    const { find } = driver({ mqtt_acl: rules });
    await using broker = await sourceBroker(mongodb({ find, authenticate: false }), { allowAnonymous: true });
    assert.deepEqual(await broker.rights({}, { publish: ['up/c', 'up/d', 'both', 'down/a'] }), [0, 0x87, 0, 0x87]);
    assert.deepEqual(await broker.rights({}, { subscribe: ['down/+', '#', 'both', 'up/c'] }), [0, 0x87, 0, 0x87]);
    assert.deepEqual(broker.errors, []);
    assert.deepEqual(await broker.rights({ username: 'bad' }, { publish: ['both'] }), [0x87]);
    await broker.kit.clock.advance('30s'); // the client would be asked about again
    assert.match(broker.errors[0], /must be a list of topics/);
  });

  it('inserts hostile names as strings, never as operators', async () => {
    const { find, asked } = driver({ mqtt_user: USERS });
    const filter = { $or: [{ username: '%u' }, { 'keys.id': { $in: ['id-%c', 7] } }], active: true };
    await using broker = await sourceBroker(
      mongodb({ find, passwordHash: 'plain', authenticate: { collection: 'users', filter }, acl: false }),
      { maxConnectSize: 300_000 }
    );
    for (const name of HOSTILE) {
      asked.length = 0;
      const clientId = name.slice(0, 100);
      assert.equal(await broker.attempt({ username: name, clientId, password: 'a-secret' }), 0x86);
      const filled = { $or: [{ username: name }, { 'keys.id': { $in: [`id-${clientId}`, 7] } }], active: true };
      assert.deepEqual(asked, [['users', filled]]);
    }
  });

  it('refuses placeholders where a string would be run or interpreted', () => {
    const { find } = driver({});
    const refused: [Document, RegExp][] = [
      [{ $where: 'this.username == "%u"' }, /authenticate\.filter\.\$where: .*no placeholder below/],
      [{ username: { $regex: '^%u$' } }, /\$regex/],
      [{ $expr: { $eq: ['$username', '%u'] } }, /\$expr\.\$eq\[1\]/],
      [{ username: '%u:%c' }, /at most one placeholder/],
      [{ username: '%x' }, /only the placeholders/]
    ];
    for (const [filter, message] of refused)
      assert.throws(() => mongodb({ find, authenticate: { filter } }), { code: 'OPTION_INVALID', message });
    assert.throws(() => mongodb({ find, acl: { collections: 'x' } as never }), { code: 'OPTION_UNKNOWN' });
  });
});
