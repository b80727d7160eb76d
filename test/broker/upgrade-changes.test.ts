// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are templates of rules
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { webHook } from '../../adapters/webhook/index.ts';
import type { Store } from '../../lib/adapter.ts';
import { CHANGES, type DefinitionChange, type DefinitionKinds } from '../../lib/broker/storage/upgrade/changes.ts';
import { upgradeReport } from '../../lib/broker/storage/upgrade/report.ts';
import { type Broker, createBroker, memoryStore } from '../../lib/index.ts';
import type { RuleDefinition } from '../../lib/rules/definition.ts';
import { checkFormat } from '../../lib/store/commits.ts';
import { DEFINITIONS_VERSION, FORMAT, Kind } from '../../lib/store/keys.ts';
import { Draft } from '../../lib/store/record.ts';

/** The content of the tables of the broker, by table and key. Streams and tables are statements, stream rules objects. */
interface Stored {
  readonly $rules?: object;
  readonly $resources?: object;
  readonly $streams?: Readonly<Record<string, string>>;
  readonly $streamRules?: Readonly<Record<string, object>>;
  readonly $connectors?: object;
}

/**
 * For each change, by its id, definitions that are affected, and others that are not. Definitions are written in short: omitted fields have
 * their default.
 */
const EXAMPLES: Readonly<Record<string, { readonly affected: Stored; readonly other: Stored }>> = {
  'contains-topic-match': {
    affected: { $rules: { a: { sql: `SELECT contains_topic_match(payload.l, 'a') AS x FROM "t"` } } },
    other: { $rules: { a: { sql: `SELECT contains_topic(payload.l, 'a') AS x FROM "t"` } } }
  },
  'placeholder-names': {
    affected: { $rules: { a: { sql: 'SELECT * FROM "t"', actions: [{ params: { payload_tmpl: '${a-b}' } }] } } },
    other: { $rules: { a: { sql: 'SELECT * FROM "t"', actions: [{ params: { payload_tmpl: '${a.b_1} {x-y} $' } }] } } }
  },
  'fail-on-status': {
    affected: { $resources: { a: { type: 'web_hook' } } },
    other: { $resources: { a: { type: 'bridge_mqtt' } } }
  },
  'rest-sink-certificates': {
    affected: { $streamRules: { a: { sql: 'SELECT * FROM demo', actions: [{ rest: { url: 'https://a.example' } }] } } },
    other: {
      $streamRules: {
        a: { sql: 'SELECT * FROM demo', actions: [{ rest: { url: 'http://a.example' } }] },
        b: { sql: 'SELECT * FROM demo', actions: [{ rest: { url: 'https://a.example', insecureSkipVerify: true } }] }
      }
    }
  },
  'influx-refusals': {
    affected: { $streamRules: { a: { sql: 'SELECT * FROM demo', actions: [{ influx2: { enableCache: true } }] } } },
    other: {
      $streamRules: { a: { sql: 'SELECT * FROM demo', actions: [{ influx2: {} }, { rest: { enableCache: true } }] } }
    }
  },
  'stream-null-comparison': {
    affected: { $streamRules: { a: { sql: 'SELECT a FROM demo WHERE lag(CASE WHEN b NOT IN (1) THEN 1 END) > 1' } } },
    other: { $streamRules: { a: { sql: 'SELECT a FROM demo WHERE a > 1' } } }
  },
  'stream-event-time-ends': {
    affected: {
      $streamRules: { a: { sql: 'SELECT * FROM demo GROUP BY TUMBLINGWINDOW(ss, 1)', options: { isEventTime: true } } }
    },
    other: {
      $streamRules: {
        a: { sql: 'SELECT * FROM demo GROUP BY TUMBLINGWINDOW(ss, 1)' },
        b: { sql: 'SELECT * FROM demo GROUP BY SLIDINGWINDOW(ss, 1)', options: { isEventTime: true } }
      }
    }
  },
  'stream-state-window-keys': {
    affected: { $streamRules: { a: { sql: 'SELECT k FROM demo GROUP BY k, STATEWINDOW(a > 1)' } } },
    other: { $streamRules: { a: { sql: 'SELECT k FROM demo GROUP BY k, STATEWINDOW(a > 1) OVER (PARTITION BY k)' } } }
  },
  'stream-aliases': {
    affected: { $streamRules: { a: { sql: 'SELECT b + 1 AS c, a AS b FROM demo' } } },
    other: { $streamRules: { a: { sql: 'SELECT a AS b, b + 1 AS c FROM demo' } } }
  },
  'stream-function-times': {
    affected: { $streamRules: { a: { sql: 'SELECT a FROM demo HAVING LAST_AGG_HIT_TIME() > 1' } } },
    other: { $streamRules: { a: { sql: 'SELECT a, window_end() AS e FROM demo' } } }
  },
  'stream-retained-messages': {
    affected: {
      $streams: { demo: 'CREATE STREAM demo () WITH (DATASOURCE="a/#")' },
      $streamRules: { a: { sql: 'SELECT a FROM demo' } }
    },
    other: {
      $streams: { demo: 'CREATE STREAM demo () WITH (TYPE="app")' },
      $streamRules: { a: { sql: 'SELECT a FROM demo' } }
    }
  },
  'stream-several-topics': {
    affected: {
      $streams: { demo: 'CREATE STREAM demo () WITH (DATASOURCE="a,b")' },
      $streamRules: { a: { sql: 'SELECT a FROM demo' } }
    },
    other: {
      $streams: { demo: 'CREATE STREAM demo () WITH (DATASOURCE="a/+")' },
      $streamRules: { a: { sql: 'SELECT a FROM demo' } }
    }
  },
  'file-sink-folder': {
    affected: { $streamRules: { a: { sql: 'SELECT * FROM demo', actions: [{ file: { path: 'rows.txt' } }] } } },
    other: { $streamRules: { a: { sql: 'SELECT * FROM demo', actions: [{ log: {} }] } } }
  },
  'mqtt-source-session': {
    affected: {
      $streams: { far: 'CREATE STREAM far () WITH (DATASOURCE="a", TYPE="mqtt", CONF_KEY="plant")' },
      $streamRules: { a: { sql: 'SELECT * FROM far', options: { qos: 1 } } }
    },
    other: {
      $streams: { far: 'CREATE STREAM far () WITH (DATASOURCE="a", TYPE="mqtt", CONF_KEY="plant")' },
      $streamRules: { a: { sql: 'SELECT * FROM far' } }
    }
  },
  'webhook-without-rules': {
    affected: {
      $connectors: {
        'webhook a': {
          kind: 'webhook',
          settings: { name: 'a', 'web.hook.api.url': 'http://127.0.0.1:1' },
          isStarted: true
        }
      }
    },
    other: {
      $connectors: {
        'webhook a': {
          kind: 'webhook',
          settings: {
            name: 'a',
            'web.hook.api.url': 'http://127.0.0.1:1',
            'web.hook.rule.client.connect.1': '{"action":"on_client_connect"}'
          },
          isStarted: true
        },
        'webhook b': { kind: 'webhook', settings: { name: 'b', url: 'http://127.0.0.1:1' }, isStarted: true }
      }
    }
  },
  'file-source-folder': {
    affected: {
      $streams: { rows: 'CREATE TABLE rows () WITH (DATASOURCE="rows.json")' },
      $streamRules: { a: { sql: 'SELECT * FROM demo INNER JOIN rows ON demo.a = rows.a' } }
    },
    other: {
      $streams: { rows: 'CREATE TABLE rows () WITH (DATASOURCE="rows", TYPE="mqtt")' },
      $streamRules: { a: { sql: 'SELECT * FROM demo INNER JOIN rows ON demo.a = rows.a' } }
    }
  }
};

const RULE = { actions: [], description: '', isEnabled: true, onActionFailed: 'continue', createdAt: 0, number: 1 };
const RESOURCE = { config: {}, description: '', createdAt: 0, number: 1 };
const STREAM_RULE = { actions: [], options: {}, triggered: true, name: '', version: '', tags: [] };

/** The table of a name, with the omitted fields of definitions. */
function tableOf(stored: Stored): (name: string) => Iterable<readonly [string, unknown]> {
  const complete = {
    $rules: (value: object) => ({ ...RULE, ...value }),
    $resources: (value: object) => ({ ...RESOURCE, ...value }),
    $streamRules: (value: object) => JSON.stringify({ ...STREAM_RULE, ...value })
  } as Readonly<Record<string, (value: object) => unknown>>;
  return (name) =>
    Object.entries(stored[name as keyof Stored] ?? {}).map(([key, value]) => [key, complete[name]?.(value) ?? value]);
}

function all(): { readonly id: string; readonly kind: string }[] {
  return (Object.keys(CHANGES) as (keyof DefinitionKinds)[]).flatMap((kind) =>
    CHANGES[kind].map(({ id }) => ({ id, kind }))
  );
}

/** Only the changes of one id. */
function only(id: string): typeof CHANGES {
  const lists = Object.entries(CHANGES).map(([kind, rows]) => [
    kind,
    (rows as readonly { readonly id: string }[]).filter((row) => row.id === id)
  ]);
  return Object.fromEntries(lists);
}

describe('The changes that affect stored definitions', () => {
  it('requires a unique id and an example for each change', () => {
    const ids = all().map(({ id }) => id);
    assert.deepEqual(ids.sort(), Object.keys(EXAMPLES).sort());
  });

  for (const [id, { affected, other }] of Object.entries(EXAMPLES)) {
    it(`counts a definition that behaves differently, and no other: ${id}`, () => {
      assert.equal(upgradeReport(tableOf(affected), 0, only(id))?.count, 1);
      assert.equal(upgradeReport(tableOf(other), 0, only(id)), undefined);
      assert.equal(upgradeReport(tableOf(affected), DEFINITIONS_VERSION, only(id)), undefined);
    });
  }

  it('names five definitions of each change, and counts the others', () => {
    const $rules = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`r${n}`, { sql: 'SELECT * FROM "a"' }]));
    const changes = {
      ...CHANGES,
      rule: [
        { id: 'one', since: 1, text: 'all are slow', isAffected: () => true },
        { id: 'two', since: 1, text: 'some are red', isAffected: ({ sql }: { sql: string }) => sql.length > 1e6 },
        { id: 'three', since: 1, text: 'none can be read', isAffected: () => assert.fail() }
      ]
    };
    assert.deepEqual(upgradeReport(tableOf({ $rules }), 0, changes), {
      count: 8,
      text: 'all are slow (rule r0, r1, r2, r3, r4 and 3 more)'
    });
  });
});

/** A change that affects every rule. */
const EVERY_RULE = { id: 'every-rule', since: DEFINITIONS_VERSION, text: 'rules are slow', isAffected: () => true };

/** Write the format record of a store in the form of 0.2. */
async function markAsOlder(store: Store): Promise<void> {
  await store.open();
  const draft = new Draft();
  draft
    .key(Kind.format)
    .value()
    .u8(FORMAT)
    .f64((await checkFormat(store))?.madeAt ?? 0)
    .put();
  await store.commit(draft.batch);
  await store.close();
}

/** Run a broker on a store. @returns its reports and log lines about an upgrade */
async function reports(store: Store): Promise<string[]> {
  const reported: string[] = [];
  const logger = { error() {}, info() {}, debug() {}, warn: (text: string) => void reported.push(text) };
  const broker = createBroker({ store, logger, allowAnonymous: true });
  broker.on('store.upgraded', ({ count, text }) => reported.push(`${count}: ${text}`));
  await broker.start();
  await broker.stop();
  return reported;
}

describe('A resource web_hook in a store of an earlier release', () => {
  it('fails on statuses from the first start on, and keeps the value that is set afterwards', async () => {
    const store = memoryStore();
    const open = () => createBroker({ store, allowAnonymous: true, rules: { resources: [webHook()] } });
    const start = async (run: (broker: Broker) => Promise<void>) => {
      await using broker = await open().start();
      broker.on('error', () => undefined); // nothing listens at the URL
      await run(broker);
    };
    const shown = async ({ rules }: Broker) => (await rules.resources.get('w'))?.config.fail_on_status;
    const config = { url: 'http://127.0.0.1:1/', fail_on_status: false };
    await start(async ({ rules }) => void (await rules.resources.create({ id: 'w', type: 'web_hook', config })));
    await markAsOlder(store);
    await start(async (broker) => {
      assert.equal(await shown(broker), true);
      await broker.rules.resources.update('w', { config });
    });
    await start(async (broker) => assert.equal(await shown(broker), false));
  });
});

describe('A broker on a store of an earlier release', () => {
  const rules = CHANGES.rule as DefinitionChange<RuleDefinition>[];
  before(() => void rules.push(EVERY_RULE));
  after(() => void rules.pop());

  /** A store with a rule that this release has written. */
  async function filled(): Promise<Store> {
    const store = memoryStore();
    const broker = createBroker({ store, allowAnonymous: true });
    await broker.start();
    await broker.rules.create({ id: 'first', sql: 'SELECT * FROM "a"', actions: ['do_nothing'] });
    await broker.stop();
    return store;
  }

  it('reports at its first start which definitions behave differently, and does not repeat it', async () => {
    const store = await filled();
    await markAsOlder(store);
    assert.deepEqual(await reports(store), [
      'an earlier release has written the store, and 1 of its definitions behaves differently now (see "Upgrading" in CHANGELOG.md): rules are slow (rule first)',
      '1: rules are slow (rule first)'
    ]);
    assert.deepEqual(await reports(store), []);
  });

  it('reports nothing about a store that this release has created', async () => {
    assert.deepEqual(await reports(await filled()), []);
  });
});
