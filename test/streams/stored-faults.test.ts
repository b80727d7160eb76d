import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeStream, type Store } from '../../lib/adapter.ts';
import { type Broker, createBroker, memoryStore } from '../../lib/index.ts';
import { Kind } from '../../lib/store/keys.ts';
import { Draft } from '../../lib/store/record.ts';

/** A store with entries in the tables of the broker, as an earlier release may have written them. */
async function storeWith(entries: readonly (readonly [table: string, key: string, value: unknown])[]): Promise<Store> {
  const store = memoryStore();
  await run(store, (broker) => broker.table('of-app').set('key', 1)); // a commit
  await store.open();
  const draft = new Draft();
  for (const [table, key, value] of entries)
    draft
      .key(Kind.table)
      .tail(table)
      .u8(0)
      .tail(key)
      .value()
      .bytes(Buffer.from(JSON.stringify(value)))
      .put();
  await store.commit(draft.batch);
  await store.close();
  return store;
}

/** Run a broker on a store. @returns the warnings and errors in its log */
async function run(store: Store, use: (broker: Broker) => Promise<void>): Promise<string[]> {
  const lines: string[] = [];
  const write = (text: string, { reason }: { reason?: string } = {}) =>
    void lines.push(`${text} ${reason ?? ''}`.trim());
  const logger = { error: write, warn: write, info() {}, debug() {} };
  const broker = createBroker({ store, logger, allowAnonymous: true });
  await broker.start();
  try {
    await use(broker);
  } finally {
    await broker.stop();
  }
  return lines;
}

const RULE = { id: 'old', sql: 'SELECT * FROM demo', actions: [{ log: { token: 's3cret' } }], triggered: true };
const DEMO = 'CREATE STREAM demo () WITH (TYPE="app")';

describe('A stream in the store that is not valid in this version', () => {
  const OLD = 'CREATE STREAM old () WITH (DATASOURCE="a", COLOUR="red")';

  it('lists and describes an invalid stored stream with the reason, and keeps it over a restart', async () => {
    const store = await storeWith([['$streams', 'old', OLD]]);
    for (const _start of [1, 2]) {
      const lines = await run(store, async ({ streams }) => {
        const [listed] = await streams.list('stream');
        assert.deepEqual([listed.name, listed.sql], ['old', OLD]);
        assert.match(String(describeStream(listed).Fault), /COLOUR/i);
        assert.equal((await streams.export()).streams.old, OLD);
      });
      assert.match(lines.join('\n'), /reading the stored stream old, which stays in the store: .*COLOUR/i);
    }
  });

  it('stops the rules that read an invalid stored stream with the reason, until it is replaced', async () => {
    const store = await storeWith([
      ['$streams', 'old', OLD],
      ['$streamRules', 'reader', JSON.stringify({ ...RULE, id: 'reader', sql: 'SELECT * FROM old' })]
    ]);
    const lines = await run(store, async ({ streams }) => {
      const text = (await streams.rules.status('reader')).text;
      assert.match(text, /^Stopped: the stream old is no longer valid; replace it: .*COLOUR/i);
      await streams.replace('CREATE STREAM old () WITH (DATASOURCE="a")');
      await streams.rules.start('reader');
      assert.equal((await streams.rules.status('reader')).text, 'Running');
    });
    assert.match(lines.join('\n'), /stream rule cannot run the stream old is no longer valid/);
  });

  it('drops an invalid stored stream', async () => {
    const store = await storeWith([['$streams', 'old', OLD.replace('STREAM', 'TABLE')]]);
    await run(store, async ({ streams }) => {
      await streams.delete('table', 'old');
      assert.deepEqual(await streams.list('table'), []);
    });
    await run(store, async ({ streams }) => assert.deepEqual(await streams.list('table'), []));
  });
});

describe('A stream rule in the store that is not valid in this version', () => {
  const WRONG: readonly (readonly [what: string, json: string, reason: RegExp])[] = [
    ['an option that is not known', JSON.stringify({ ...RULE, options: { colour: 'red' } }), /colour/],
    ['a field that is not known', JSON.stringify({ ...RULE, colour: 'red' }), /colour/],
    ['actions that are not objects', JSON.stringify({ ...RULE, actions: ['log'] }), /actions\[0\]/],
    ['text that is not JSON', '{"id":"old"', /JSON/]
  ];

  for (const [what, json, reason] of WRONG)
    it(`lists an invalid stored rule as stopped with its reason, and leaves it unchanged: ${what}`, async () => {
      const store = await storeWith([
        ['$streams', 'demo', DEMO],
        ['$streamRules', 'old', json]
      ]);
      for (const _start of [1, 2]) {
        const lines = await run(store, async ({ streams }) => {
          const [listed] = await streams.rules.list();
          assert.equal(listed.id, 'old');
          assert.match(listed.status, /^Stopped: /);
          assert.match(listed.status, reason);
          assert.equal((await streams.rules.get('old'))?.id, 'old');
          await assert.rejects(streams.rules.start('old'), reason);
          await assert.rejects(
            streams.rules.tag('old', () => ['a']),
            reason
          );
          assert.equal((await streams.export()).rules.old, json);
        });
        assert.match(lines.join('\n'), /stream rule cannot run/);
      }
    });

  it('starts a stored rule that names a missing connection, which had no effect in 0.2, but creates none', async () => {
    const action = { mqtt: { topic: 'out', connectionSelector: 'none' } };
    const store = await storeWith([
      ['$streams', 'demo', DEMO],
      ['$streamRules', 'old', JSON.stringify({ ...RULE, actions: [action] })]
    ]);
    const text = 'connectionSelector: there is no connection "none" of the type mqtt';
    await run(store, async (broker) => {
      const { streams } = broker;
      assert.equal((await streams.rules.status('old')).text, 'Running');
      const warnings: string[] = [];
      broker.on('streams.warned', ({ text }) => void warnings.push(text));
      await streams.rules.restart('old');
      assert.deepEqual(warnings, [
        `stream rule old: ${text}, so it has no effect; create it, or leave the property out`
      ]);
      for (const change of [
        () => streams.rules.create({ id: 'new', sql: RULE.sql, actions: [action] }),
        () => streams.rules.update('old', { sql: RULE.sql, actions: [action] })
      ])
        await assert.rejects(change(), { code: 'PROPERTY_INVALID', message: `${text}; create it first` });
    });
  });

  it('runs an invalid stored rule when it has been replaced by a valid definition', async () => {
    const store = await storeWith([
      ['$streams', 'demo', DEMO],
      ['$streamRules', 'old', WRONG[0][1]]
    ]);
    await run(store, async ({ streams }) => {
      await streams.rules.update('old', { sql: RULE.sql, actions: [{ log: {} }] });
      assert.equal((await streams.rules.status('old')).text, 'Running');
    });
    const lines = await run(store, async ({ streams }) => {
      assert.equal((await streams.rules.status('old')).text, 'Running');
    });
    assert.deepEqual(lines, []);
  });
});

describe('A stream rule that is refused', () => {
  it('leaves no secrets of a refused rule in the store', async () => {
    const written: string[] = [];
    const store = memoryStore();
    const recording = new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (name === 'commit')
            for (const bytes of (args[0] as { readonly values: readonly (Buffer | undefined)[] }).values)
              written.push(`${bytes}`);
          return value.apply(target, args);
        };
      }
    });
    await run(recording, async ({ streams }) => {
      await streams.create(DEMO);
      await streams.createSink({
        name: 'shut',
        about: 'A sink that does not open.',
        open() {
          throw new Error('it is shut');
        }
      });
      const actions = [{ shut: { password: 's3cret' } }];
      await assert.rejects(streams.rules.create({ id: 'refused', sql: RULE.sql, actions }), /it is shut/);
      assert.deepEqual(await streams.rules.list(), []);
    });
    assert.ok(written.some((text) => text.includes('CREATE STREAM demo')));
    assert.ok(!written.some((text) => text.includes('s3cret') || text.includes('refused')));
  });
});
