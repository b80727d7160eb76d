import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from '../../lib/index.ts';
import { Directory, type DirectoryPorts, type ListedSession, type Page } from '../../lib/routing/directory.ts';
import { FilterTree } from '../../lib/routing/filter-tree.ts';
import type { Subscription } from '../../lib/routing/subscription.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { namesOf } from '../../lib/topics/level-names.ts';
import { innerFilter, matches } from '../../lib/topics/topic.ts';
import { sized } from '../support/samples.ts';
import { randomSource } from '../topics/slow-matcher.ts';

const QUIET = { sysInterval: 0, sysHeartbeat: 0 };

/** Reads a list to its end. @param between called after each page */
async function all<R>(
  list: (query: { cursor?: string; limit: number }) => Promise<Page<R>>,
  limit: number,
  between: () => unknown = () => undefined
): Promise<R[]> {
  const found: R[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await list({ cursor, limit });
    assert.ok(page.entries.length <= limit);
    found.push(...page.entries);
    cursor = page.cursor;
    if (cursor === undefined) return found;
    await between();
  }
}

/** Ports with this many sessions and nothing else. It records how many sessions and keys are read in each turn. */
function manySessions(count: number, filters: readonly string[] = [], filtersOfEach: readonly string[] = []) {
  const reads = [0];
  const walks = { begun: 0 };
  const read = () => void reads[reads.length - 1]++;
  const sessions = Array.from({ length: count }, (_, at) => {
    const client = {
      clientId: `c${at}`,
      get username() {
        read();
        return at % 1_000 === 0 ? 'rare' : undefined;
      },
      transportInfo: {},
      agreement: { zone: {} }
    };
    return {
      number: at + 1,
      client,
      ports: { lastTraffic: { count: () => 0 } },
      lifecycle: { connectedAt: 0 },
      state: 'connected',
      subscriptions: {
        size: filtersOfEach.length,
        *values() {
          for (const filter of filtersOfEach) {
            read();
            yield { filter, qos: 0, subscriber: {} };
          }
        }
      },
      outlet: {}
    } as unknown as ListedSession;
  });
  const tree = new FilterTree();
  const ports: DirectoryPorts = {
    node: 'n',
    sessions: {
      count,
      subscriptionCount: 0,
      get: () => undefined,
      after: (number, most) => sessions.slice(Math.max(0, number), Math.max(0, number) + most)
    },
    routing: {
      filterCount: filters.length,
      *filters() {
        walks.begun++;
        for (const filter of filters) {
          read();
          yield filter;
        }
      },
      hasFilter: () => false,
      matching: () => undefined,
      level: (prefix, part, pace) => tree.level(prefix, part, () => [ports.routing.filters()], pace)
    },
    retained: {
      count: 0,
      lookUp: () => undefined,
      entries: () => [],
      expiryOf: () => undefined,
      level: () => namesOf([], 0)
    },
    rules: { ofEvents: () => new Map(), ofStreams: () => new Map() },
    pause: () => {
      reads.push(0);
      return Promise.resolve();
    }
  };
  return { directory: new Directory(ports), ports, reads, walks };
}

describe('The directory', () => {
  it('lists and looks up clients, with the name of the node', async () => {
    await using broker = await createBroker({ ...QUIET, node: 'n@here' }).start();
    const { directory } = broker;
    const away = await broker.connect({ clientId: 'away', username: 'u', sessionExpiry: 60 });
    await broker.connect({ clientId: 'here' });
    const gone = broker.nextEvent('client.disconnected');
    await away.disconnect();
    await gone;
    const { node, entries, cursor, count } = await directory.clients();
    assert.deepEqual([node, cursor, count], ['n@here', undefined, 2]);
    assert.deepEqual(
      entries.map(({ node, clientId, username, isConnected }) => [node, clientId, username, isConnected]),
      [
        ['n@here', 'away', 'u', false],
        ['n@here', 'here', undefined, true]
      ]
    );
    assert.deepEqual(await directory.client('away'), entries[0]);
    assert.equal(await directory.client('nobody'), undefined);
    const sessions = await broker.sessions.list();
    assert.deepEqual(
      sessions.entries.map(({ clientId, binding, subscriptions }) => [clientId, binding, subscriptions]),
      [
        ['away', undefined, 0],
        ['here', 'local', 0]
      ]
    );
    assert.deepEqual(await directory.session('here'), sessions.entries[1]);
    assert.equal(await directory.session('nobody'), undefined);
  });

  it('skips any number of routes without sorting more than some at a time', async () => {
    const random = randomSource('routes');
    const filters = Array.from({ length: 25_000 }, (_, at) => `f/${at}`).sort(() => random.below(3) - 1);
    const { directory } = manySessions(0, filters);
    const sorted = [...filters].sort();
    for (const [skip, limit] of [
      [0, 10_000],
      [9_999, 2],
      [10_000, 10_000],
      [20_000, 10_000],
      [24_999, 1],
      [25_000, 10],
      [1_000_000, 10]
    ]) {
      const { entries, cursor } = await directory.routes({ skip, limit });
      assert.deepEqual(
        entries.map(({ topic }) => topic),
        sorted.slice(skip, skip + limit)
      );
      assert.equal(cursor, skip + limit < 25_000 ? sorted[skip + limit - 1] : undefined);
    }
  });

  it('finds subscriptions below a mount point also after a session has been resumed with one, and has ended', async () => {
    await using broker = await createBroker({ ...QUIET, zones: { ann: { mountpoint: 'ann/' } } }).start();
    const inAnn = { transportInfo: { zone: 'ann' } };
    const first = await broker.connect({ clientId: 'c', sessionExpiry: 60 });
    await first.subscribe('t');
    await first.disconnect();
    await broker.connect({ clientId: 'c', clean: false, sessionExpiry: 60, ...inAnn });
    await broker.sessions.kick('c');
    const other = await broker.connect({ clientId: 'd', ...inAnn });
    await other.subscribe('x');
    const { entries } = await broker.directory.subscriptions({ matchesTopic: 'x' });
    assert.deepEqual(
      entries.map(({ clientId, filter }) => `${clientId} ${filter}`),
      ['d x']
    );
    await other.disconnect();
  });

  it('lists the clients that satisfy all conditions', async () => {
    await using broker = await createBroker({ ...QUIET, zones: { inner: {} } }).start();
    const at = (remoteAddress: string, zone = 'external') => ({ transportInfo: { remoteAddress, zone } });
    await broker.connect({ clientId: 'one', username: 'ann', protocolVersion: 4, ...at('192.0.2.1') });
    await broker.connect({ clientId: 'two', username: 'bob', ...at('::ffff:192.0.2.2', 'inner') });
    await broker.connect({ clientId: 'three', sessionExpiry: 60, ...at('192.0.2.2') });
    const gone = broker.nextEvent('client.disconnected');
    await broker.sessions.kick('three', { session: 'keep' });
    await gone;
    for (const [query, expected] of [
      [{ clientId: 'two' }, ['two']],
      [{ clientId: 'two', username: 'ann' }, []],
      [{ clientId: 'nobody' }, []],
      [{ username: 'ann' }, ['one']],
      [{ zone: 'inner' }, ['two']],
      [{ ipAddress: '192.0.2.2' }, ['two', 'three']],
      [{ isConnected: false }, ['three']],
      [{ isConnected: true }, ['one', 'two']],
      [{ protocolVersion: 4 }, ['one']],
      [{ clientIdContains: 'o' }, ['one', 'two']],
      [{ clientIdContains: 'o', usernameContains: 'b' }, ['two']],
      [{ usernameContains: '' }, ['one', 'two', 'three']],
      [{ username: undefined }, ['one', 'two', 'three']]
    ] as const) {
      const { entries, count } = await broker.directory.clients(query);
      assert.deepEqual(
        entries.map(({ clientId }) => clientId),
        expected,
        JSON.stringify(query)
      );
      assert.equal(count, 3);
    }
  });

  it('lists each staying session exactly once, while others come and go between the pages', async () => {
    const source = randomSource('Directory sessions');
    await using broker = await createBroker(QUIET).start();
    const options = (clientId: string) => ({ clientId, sessionExpiry: 60, clean: false });
    for (let count = 0; count < 60; count++) await broker.connect(options(`${count % 2 ? 'stays' : 'goes'}${count}`));
    let added = 0;
    const listed = await all(
      (query) => broker.directory.sessions(query),
      7,
      async () => {
        const leaving = [...broker.sessions].filter(({ clientId }) => clientId.startsWith('goes'));
        for (let count = 0; count < 5 && leaving.length > 0; count++)
          await broker.sessions.kick(leaving.splice(source.below(leaving.length), 1)[0].clientId);
        if (added++ < 10) await broker.connect(options(`new${added}`));
        await broker.connect(options('stays1')); // a takeover does not change the position of the session
      }
    );
    const ids = listed.map(({ clientId }) => clientId);
    assert.deepEqual(
      ids.filter((clientId) => clientId.startsWith('stays')),
      Array.from({ length: 30 }, (_, at) => `stays${2 * at + 1}`)
    );
    assert.equal(new Set(ids).size, ids.length);
    assert.ok(ids.includes('new1'));
  });

  it('lists subscriptions session by session, in the order of their filters', async () => {
    await using broker = await createBroker(QUIET).start();
    const [a, b] = [await broker.connect({ clientId: 'a' }), await broker.connect({ clientId: 'b' })];
    await broker.connect({ clientId: 'none' });
    await a.subscribe(['z', '$share/g/y', 'x/+']);
    await b.subscribe([{ topic: 'x/+', qos: 1 }, '$queue/q/#']);
    broker.subscribe('of/the/app', () => undefined);
    for (const limit of [1, 2, 3, 5, 100]) {
      const listed = await all((query) => broker.directory.subscriptions(query), limit);
      assert.deepEqual(
        listed.map(({ clientId, filter, qos }) => `${clientId} ${filter} ${qos}`),
        ['a $share/g/y 0', 'a x/+ 0', 'a z 0', 'b $queue/q/# 0', 'b x/+ 1']
      );
    }
    for (const [query, expected] of [
      [{ clientId: 'b' }, ['b $queue/q/#', 'b x/+']],
      [{ qos: 1 }, ['b x/+']],
      [{ filter: 'x/+' }, ['a x/+', 'b x/+']],
      [{ filter: 'y' }, ['a $share/g/y']],
      [{ coveredBy: 'x/#' }, ['a x/+', 'b x/+']],
      [{ matchesTopic: 'x/1' }, ['a x/+', 'b x/+']],
      [{ coveredBy: '+' }, ['a $share/g/y', 'a z']],
      [{ group: 'g' }, ['a $share/g/y']],
      [{ group: '$queue' }, ['b $queue/q/#']],
      [{ group: 'g', clientId: 'b' }, []]
    ] as const) {
      const { entries, count } = await broker.directory.subscriptions(query);
      assert.deepEqual(
        entries.map(({ clientId, filter }) => `${clientId} ${filter}`),
        expected,
        JSON.stringify(query)
      );
      assert.equal(count, 5);
    }
  });

  it('lists the subscriptions that match a topic as a search through all of them does, with and without mount points', async () => {
    const source = randomSource('subscriptions that match');
    const labels = ['a', 'b', '+', '', '$x'];
    const some = (count: number) => Array.from({ length: count }, () => labels[source.below(labels.length)]).join('/');
    await using broker = await createBroker({ ...QUIET, zones: { inner: { mountpoint: 'a/' } } }).start();
    const connect = async (clientId: string, zone: string) => {
      const client = await broker.connect({ clientId, transportInfo: { zone } });
      for (let left = 12; left > 0; left--) {
        const filter = some(1 + source.below(3)) || 'a';
        const shared = source.below(4) === 0 ? '$share/g/' : '';
        await client.subscribe(source.below(5) === 0 ? `${shared}${filter}/#` : shared + filter);
      }
    };
    broker.subscribe('#', () => undefined);
    for (let client = 0; client < 12; client++) await connect(`c${client}`, 'external');
    for (const zone of ['external', 'inner']) {
      await connect(`of zone ${zone}`, zone);
      const { entries: every } = await broker.directory.subscriptions({ limit: 10_000 });
      for (let topics = 0; topics < 30; topics++) {
        const topic = some(1 + source.below(4)).replaceAll('+', 'b') || 'a';
        const expected = every.filter(({ filter }) => matches(innerFilter(filter), topic));
        for (const limit of [1, 7, 1_000]) {
          const found = await all((query) => broker.directory.subscriptions({ matchesTopic: topic, ...query }), limit);
          assert.deepEqual(found, expected, `${topic}, ${limit} at a time`);
        }
        const { entries } = await broker.directory.subscriptions({ matchesTopic: topic, skip: 2, qos: 0 });
        assert.deepEqual(entries, expected.slice(2), topic);
      }
    }
  });

  it('examines only the sessions whose subscriptions match a topic', async () => {
    const { directory, ports, reads } = manySessions(
      1_000,
      [],
      Array.from({ length: 100 }, (_, at) => `f/${at}`)
    );
    const subscriber = { receiver: { clientId: 'c7' }, mountpoint: '' };
    ports.sessions.get = () => ports.sessions.after(6, 1)[0];
    ports.routing.matching = (topic) => [{ filter: topic, qos: 0, subscriber } as unknown as Subscription];
    const { entries } = await directory.subscriptions({ matchesTopic: 'f/1' });
    assert.deepEqual(
      entries.map(({ filter }) => filter),
      ['f/1']
    );
    assert.ok(reads.reduce((sum, some) => sum + some) < 10, `${reads}`);
  });

  it('counts the subscriptions of sessions, and no longer those of ended ones', async () => {
    await using broker = await createBroker(QUIET).start();
    const count = async () => (await broker.directory.subscriptions({ limit: 1 })).count;
    const a = await broker.connect({ clientId: 'a', sessionExpiry: 60 });
    await a.subscribe(['x', 'y', '$share/g/z']);
    await (await broker.connect({ clientId: 'b' })).subscribe(['x']);
    assert.equal(await count(), 4);
    await a.unsubscribe('x');
    assert.equal(await count(), 3);
    await broker.sessions.kick('a');
    assert.equal(await count(), 1);
    await broker.sessions.kick('b');
    assert.equal(await count(), 0);
  });

  it('lists each staying subscription exactly once, although the last one of a page is removed', async () => {
    const source = randomSource('Directory subscriptions');
    await using broker = await createBroker(QUIET).start();
    const client = await broker.connect({ clientId: 'c' });
    const filters = Array.from({ length: 100 }, (_, at) => `${at % 2 ? 'stays' : 'goes'}/${source.below(1_000)}/${at}`);
    await client.subscribe(filters);
    const session = broker.sessions.get('c');
    let last = '';
    const listed = await all(
      async (query) => {
        const page = await broker.directory.subscriptions(query);
        last = page.entries.at(-1)?.filter ?? '';
        return page;
      },
      3,
      () => {
        if (last.startsWith('goes')) session.unsubscribe(last);
        session.subscribe(`new/${source.below(1_000)}`);
      }
    );
    const stay = filters.filter((filter) => filter.startsWith('stays')).sort();
    assert.deepEqual(
      listed.map(({ filter }) => filter).filter((filter) => filter.startsWith('stays')),
      stay
    );
  });

  it('lists each staying route exactly once, in order, and looks one up', async () => {
    const source = randomSource('Directory routes');
    await using broker = await createBroker({ ...QUIET, node: 'n' }).start();
    const stay = new Set(
      Array.from({ length: 80 }, () => `r/${source.pick(['+', '#', 'a/#', 'b', source.below(50)])}`)
    );
    stay.add('$share/g/shared/+');
    for (const filter of stay) broker.subscribe(filter, () => undefined);
    const listed = await all(
      (query) => broker.directory.routes(query),
      4,
      () => {
        const end = broker.subscribe(`s/${source.below(20)}`, () => undefined);
        if (source.below(2) === 0) end();
      }
    );
    const expected = [...stay].map((filter) => filter.replace('$share/g/', '')).sort();
    assert.deepEqual(
      listed.filter(({ topic }) => expected.includes(topic)),
      expected.map((topic) => ({ topic, node: 'n' }))
    );
    assert.deepEqual(await broker.directory.route('r/+'), stay.has('r/+') ? { topic: 'r/+', node: 'n' } : undefined);
    assert.deepEqual(await broker.directory.route('shared/+'), { topic: 'shared/+', node: 'n' });
    for (const none of ['r', 'nothing', 'nothing/+', 'shared/#', 'r/+/+', '#'])
      assert.equal(await broker.directory.route(none), undefined, none);
  });

  it('lists each staying retained message exactly once, although it is replaced, and looks one up', async () => {
    const source = randomSource('Directory retained');
    await using broker = await createBroker({ ...QUIET, node: 'n' }).start();
    const client = await broker.connect({ clientId: 'c' });
    const topics = Array.from({ length: 50 }, (_, at) => `r/${at}`);
    for (const topic of topics) await client.publish(topic, 'four', { qos: 1, retain: true });
    const listed = await all(
      (query) => broker.retained.list({ filter: 'r/+', ...query }),
      4,
      async () => {
        for (let count = 0; count < 5; count++) await broker.publish(source.pick(topics), 'longer', { retain: true });
        await broker.publish(`s/${source.below(20)}`, 'x', { retain: true });
      }
    );
    assert.deepEqual(
      listed.map(({ topic }) => topic),
      topics.toSorted()
    );
    await client.publish('r/0', 'four', { qos: 1, retain: true });
    const record = { node: 'n', topic: 'r/0', qos: 1, payloadBytes: 4, clientId: 'c', expiresAt: undefined };
    const timestamp = broker.retained.get('r/0')?.timestamp;
    assert.deepEqual(await broker.directory.retainedMessage('r/0'), { ...record, timestamp });
    await broker.publish('r/0', 'xy', { retain: true, properties: { messageExpiryInterval: 5 } });
    const later = broker.retained.get('r/0')?.timestamp as number;
    assert.deepEqual((await broker.directory.retained({ filter: 'r/0' })).entries, [
      { ...record, qos: 0, payloadBytes: 2, clientId: undefined, timestamp: later, expiresAt: later + 5_000 }
    ]);
    const page = await broker.retained.list({ prefix: 'r/1', limit: 3 });
    assert.deepEqual(
      page.entries.map(({ topic }) => topic),
      ['r/1', 'r/10', 'r/11']
    );
    assert.equal(await broker.directory.retainedMessage('none'), undefined);
  });

  it('does not list a retained message that has expired', async () => {
    await using kit = await createTestBroker({ ...QUIET, timerResolution: 10_000 });
    const { broker, clock } = kit;
    await broker.publish('a', 'x', { retain: true, properties: { messageExpiryInterval: 5 } });
    assert.equal((await broker.retained.list({ filter: 'a' })).entries.length, 1);
    await clock.advance(5_500);
    assert.equal(broker.retained.count, 1, 'its timer has not rung yet');
    assert.equal((await broker.retained.list({ filter: 'a' })).entries.length, 0);
    assert.equal(await broker.directory.retainedMessage('a'), undefined);
  });

  it('refuses unknown conditions, limits out of range, and cursors and filters that are invalid', async () => {
    await using broker = await createBroker(QUIET).start();
    const { directory } = broker;
    for (const [ask, code] of [
      [directory.clients({ user: 'a' } as object), 'OPTION_UNKNOWN'],
      [directory.clients(5 as never), 'OPTION_INVALID'],
      [directory.routes({ filter: 'a' } as object), 'OPTION_UNKNOWN'],
      [directory.sessions({ limit: 0 }), 'OPTION_INVALID'],
      [directory.retained({ limit: 10_001 }), 'OPTION_INVALID'],
      [directory.retained({ limit: 1.5 }), 'OPTION_INVALID'],
      [directory.clients({ cursor: 'x' }), 'CURSOR_INVALID'],
      [directory.subscriptions({ cursor: 5 as never }), 'CURSOR_INVALID'],
      [directory.subscriptions({ coveredBy: 'a/#/b' }), 'TOPIC_FILTER_INVALID'],
      [directory.subscriptions({ matchesTopic: 'a/#' }), 'TOPIC_NAME_INVALID'],
      [directory.retained({ filter: '' }), 'TOPIC_FILTER_INVALID'],
      [directory.retained({ prefix: 5 as never }), 'OPTION_INVALID'],
      [directory.levels({ prefix: 'a' }), 'OPTION_INVALID']
    ] as const)
      await assert.rejects(ask, { code });
  });

  it('walks all sessions in slices, one for each turn, whether it lists all or searches for some', async () => {
    const count = sized(20_000, 100_000);
    const { directory, reads } = manySessions(count);
    const listed = await all((query) => directory.clients(query), 10_000);
    assert.equal(listed.length, count);
    assert.ok(Math.max(...reads) <= 500, `${Math.max(...reads)} in one turn`);
    reads.splice(0, reads.length, 0);
    await all((query) => directory.clients(query), 100);
    assert.ok(reads.length > count / 100, 'each page takes a turn, however small it is');
    reads.splice(0, reads.length, 0);
    const rare = await directory.clients({ username: 'rare' });
    assert.deepEqual([rare.entries.length, rare.cursor], [count / 1_000, undefined]);
    assert.ok(reads.length >= count / 500);
    assert.ok(Math.max(...reads) <= 600, `${Math.max(...reads)} in one turn`);
  });

  it('lists a level of the topic tree, with the numbers at each name and below it', async () => {
    await using broker = await createBroker({ ...QUIET, node: 'n' }).start();
    const client = await broker.connect({ clientId: 'c' });
    for (const topic of ['a', 'a/b', 'a/b/c', 'a//d', 'e/f', '/g']) await broker.publish(topic, 'x', { retain: true });
    for (const filter of ['a/b', 'a/+/c', '$share/g/e/f', 'e/#', '#']) await client.subscribe(filter);
    const read = async (prefix: string, limit: number) =>
      (await all((query) => broker.directory.levels({ prefix, ...query }), limit)).map((row) =>
        [
          row.topic,
          row.isRetained ? 'retained' : '-',
          row.isSubscribed ? 'subscribed' : '-',
          row.retainedBelow,
          row.subscribedBelow
        ].join(' ')
      );
    for (const limit of [1, 3, 1_000]) {
      assert.deepEqual(
        (await read('', limit)).filter((row) => !row.startsWith('$')),
        ['# - subscribed 0 0', ' - - 1 0', 'a retained - 3 2', 'e - - 1 2']
      );
      assert.deepEqual(await read('a/', limit), ['a/+ - - 0 1', 'a/ - - 1 0', 'a/b retained subscribed 1 0']);
      assert.deepEqual(await read('e/', limit), ['e/# - subscribed 0 0', 'e/f retained subscribed 0 0']);
      assert.deepEqual(await read('a/b/', limit), ['a/b/c retained - 0 0']);
      assert.deepEqual(await read('z/', limit), []);
    }
    const { count, entries } = await broker.directory.levels({ prefix: 'a/', skip: 2 });
    assert.deepEqual([count, entries.map(({ level }) => level)], [3, ['b']]);
  });

  it('walks the topics of a level in slices, one for each turn', async () => {
    const filters = Array.from({ length: 100_000 }, (_, at) => `f/${(at * 7_919) % 100_000}/x`);
    const { directory, reads } = manySessions(0, filters);
    const { entries, count, cursor } = await directory.levels({ prefix: 'f/', limit: 2 });
    assert.deepEqual(
      [entries.map(({ topic, subscribedBelow }) => `${topic} ${subscribedBelow}`), count, cursor],
      [['f/0 1', 'f/1 1'], 100_000, 'f/1/']
    );
    assert.ok(Math.max(...reads) <= 16_001, `${Math.max(...reads)} in one turn`);
    assert.ok(reads.length < 50, `${reads.length} turns`);
    const below = async () => {
      reads.splice(0, reads.length, 0);
      const { entries: names } = await directory.levels({ prefix: 'f/7/' });
      assert.deepEqual(
        names.map(({ topic, isSubscribed }) => `${topic} ${isSubscribed}`),
        ['f/7/x true']
      );
      return reads.reduce((sum, some) => sum + some);
    };
    for (let level = 2; level <= 20; level++) assert.equal(await below(), 100_000, 'a walk over all filters');
    for (let most = 100; most > 0 && (await below()) > 0; most--); // a tree is made meanwhile
    assert.equal(await below(), 0, 'no more walks');
    assert.ok(reads.length < 10, `the names of one level are not those of all: ${reads.length} turns`);
  });

  it('walks 100,000 routes in slices, one for each turn', async () => {
    const filters = Array.from({ length: 100_000 }, (_, at) => `f/${(at * 7_919) % 100_000}`);
    const { directory, reads } = manySessions(0, filters);
    const { entries, cursor } = await directory.routes({ limit: 3 });
    assert.deepEqual(
      entries.map(({ topic }) => topic),
      ['f/0', 'f/1', 'f/10']
    );
    assert.equal(cursor, 'f/10');
    assert.ok(Math.max(...reads) <= 2_001, `${Math.max(...reads)} in one turn`);
  });

  it('walks the subscriptions of sessions in slices, for any number in each session', async () => {
    const filters = Array.from({ length: 1_000 }, (_, at) => `f/${at}`);
    const { directory, reads } = manySessions(100, [], filters);
    const { entries } = await directory.subscriptions({ filter: 'f/7' });
    assert.equal(entries.length, 100);
    assert.equal(
      reads.reduce((sum, some) => sum + some),
      100_000
    );
    assert.ok(Math.max(...reads) <= 2_001, `${Math.max(...reads)} in one turn`);
  });

  it('makes one walk for equal requests that wait, and finds the state at the time of the requests', async () => {
    const filters = Array.from({ length: 10_000 }, (_, at) => `f/${at}`);
    const { directory, walks } = manySessions(0, filters);
    const request = () => directory.routes({ limit: 2, cursor: 'f/9999' });
    const before = Array.from({ length: 50 }, request);
    await before[0];
    const during = [directory.routes({ limit: 2 }), ...Array.from({ length: 49 }, request)];
    filters.push('f/a');
    const pages = await Promise.all(before.concat(during.slice(1)));
    assert.deepEqual(new Set(pages.slice(0, 50).map(({ entries }) => entries.length)), new Set([0]));
    assert.deepEqual(new Set(pages.slice(50).map(({ entries }) => entries[0].topic)), new Set(['f/a']));
    await during[0];
    assert.equal(walks.begun, 3);
  });

  it('reads a page in parts that are the same as the page', async () => {
    await using broker = await createBroker({ ...QUIET, maxSessions: 0 }).start();
    const { directory } = broker;
    for (let at = 0; at < 500; at++) await (await broker.connect({ clientId: `c${at}` })).subscribe(`t/${at}`);
    for (const list of ['clients', 'sessions', 'subscriptions', 'routes'] as const)
      for (const query of [{}, { limit: 300, skip: 50 }, { skip: 500 }]) {
        const page = await directory[list](query);
        const entries: unknown[] = [];
        const ends: unknown[] = [];
        for await (const part of directory.parts(list, query)) {
          assert.ok(part.entries.length <= 250, `${part.entries.length} entries in one part`);
          entries.push(...part.entries);
          ends.push(part.end);
        }
        assert.deepEqual({ ...(ends.at(-1) as object), entries }, page);
        assert.deepEqual(new Set(ends.slice(0, -1)), new Set(ends.length > 1 ? [undefined] : []));
      }
    assert.throws(() => directory.parts('lists' as never), { code: 'OPTION_INVALID', message: /clients, sessions/ });
  });
});
