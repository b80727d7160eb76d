import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Broker, type BrokerOptions, memoryStore, type StreamRuleInput } from '../../lib/index.ts';
import { createTestBroker, type TestBroker } from '../../lib/testing/index.ts';
import { Lives } from '../store/support.ts';

const streamOf = (topic: string, name = topic, more = '') =>
  `CREATE STREAM ${name} () WITH (DATASOURCE="${topic}", FORMAT="JSON"${more})`;

interface Rule extends Pick<StreamRuleInput, 'sql' | 'options'> {
  readonly topic: string;
  /** Further properties of the sink. */
  readonly sink?: Readonly<Record<string, unknown>>;
}

async function makeRules({ streams }: Broker, rules: Readonly<Record<string, Rule>>): Promise<void> {
  for (const [id, { sql, options, topic, sink = {} }] of Object.entries(rules))
    await streams.rules.create({ id, sql, options, actions: [{ mqtt: { topic, ...sink } }] });
}

/** A broker with streams of the topics a, b, c and d, and rules by id. */
async function kitWith(
  rules: Readonly<Record<string, Rule>>,
  options: Pick<BrokerOptions, 'store' | 'streams'> = {}
): Promise<TestBroker> {
  const kit = await createTestBroker({ leaks: 'ignore', ...options });
  kit.broker.on('error', () => undefined);
  for (const name of ['a', 'b', 'c', 'd']) await kit.broker.streams.create(streamOf(name));
  await makeRules(kit.broker, rules);
  return kit;
}

/** The topics of all messages. */
function topicsOf(broker: Broker): string[] {
  const topics: string[] = [];
  broker.on('message.publish', ({ message: { topic } }) => void (topic.startsWith('$') || topics.push(topic)));
  return topics;
}

/** Run rules for a while that could otherwise trigger each other forever. */
async function run(kit: TestBroker): Promise<void> {
  for (let second = 0; second < 30; second++) await kit.clock.advance(1000);
}

/** The failures of a rule. */
async function failuresOf({ streams }: Broker, id: string): Promise<{ count: unknown; last: unknown }> {
  const { metrics } = await streams.rules.status(id);
  return { count: metrics.sink_mqtt_0_0_exceptions_total, last: metrics.sink_mqtt_0_0_last_exception };
}

const LOOP = (id: string) => `rules publish because of each other: the stream rule ${id} already caused this message`;

/** Ways in which a rule publishes immediately or later. */
const WAYS: Readonly<Record<string, Omit<Rule, 'topic'>>> = {
  'at once': { sql: 'SELECT * FROM a' },
  'a tumbling window': { sql: 'SELECT * FROM a GROUP BY TUMBLINGWINDOW(ss, 1)' },
  'a tumbling window with groups': { sql: 'SELECT count(*) AS n FROM a GROUP BY TUMBLINGWINDOW(ss, 1)' },
  'a sliding window': { sql: 'SELECT collect(n) AS n FROM a GROUP BY SLIDINGWINDOW(ss, 1)' },
  'a sliding window with groups': { sql: 'SELECT count(*) AS n FROM a GROUP BY SLIDINGWINDOW(ss, 1)' },
  'a sliding window with a delay': { sql: 'SELECT count(*) AS n FROM a GROUP BY SLIDINGWINDOW(ss, 1, 2)' },
  'a session window': { sql: 'SELECT count(*) AS n FROM a GROUP BY SESSIONWINDOW(ss, 5, 1)' },
  'a count window': { sql: 'SELECT count(*) AS n FROM a GROUP BY COUNTWINDOW(1)' },
  'a window behind which rows are filtered and sorted': {
    sql: 'SELECT collect(*) AS n, count(*) AS c FROM a GROUP BY TUMBLINGWINDOW(ss, 1) HAVING c > 0 ORDER BY c LIMIT 1'
  },
  'the cache of the sink': { sql: 'SELECT * FROM a', sink: { enableCache: true } },
  'a batch': { sql: 'SELECT * FROM a', sink: { batchSize: 1 } },
  'a batch that lingers': { sql: 'SELECT * FROM a', sink: { lingerInterval: 100 } },
  'a window and the cache': {
    sql: 'SELECT count(*) AS n FROM a GROUP BY TUMBLINGWINDOW(ss, 1)',
    sink: { enableCache: true, lingerInterval: 10 }
  }
};

describe('A stream rule that publishes what it selects from', () => {
  for (const [way, rule] of Object.entries(WAYS))
    it(`ends a cycle after the first repetition: ${way}`, async () => {
      await using kit = await kitWith({ r: { ...rule, topic: 'a' } });
      const topics = topicsOf(kit.broker);
      await kit.broker.publish({ topic: 'a', payload: '{"n":1}' });
      await run(kit);
      assert.equal(topics.length, 2);
      assert.deepEqual(await failuresOf(kit.broker, 'r'), { count: 1, last: LOOP('r') });
      await kit.broker.publish({ topic: 'a', payload: '{"n":2}' });
      await run(kit);
      assert.equal(topics.length, 4, 'it goes on with the rows of clients');
      assert.equal((await kit.broker.streams.rules.status('r')).text, 'Running');
    });

  it('ends a cycle after a hopping window that contains the row several times', async () => {
    const sql = 'SELECT count(*) AS n FROM a GROUP BY HOPPINGWINDOW(ss, 3, 1)';
    await using kit = await kitWith({ r: { sql, topic: 'a' } });
    const topics = topicsOf(kit.broker);
    await kit.broker.publish({ topic: 'a', payload: '{"n":1}' });
    await run(kit);
    assert.equal(topics.length, 2, 'the second window contains the output of the first one');
    assert.equal((await failuresOf(kit.broker, 'r')).last, LOOP('r'));
  });

  it('ends a cycle in event time', async () => {
    await using kit = await kitWith({});
    const { streams } = kit.broker;
    await streams.create(streamOf('e', 'e', ', TIMESTAMP="ts"'));
    await makeRules(kit.broker, {
      r: {
        sql: 'SELECT max(ts) + 5000 AS ts FROM e GROUP BY TUMBLINGWINDOW(ss, 1)',
        options: { isEventTime: true, lateTolerance: 0 },
        topic: 'e',
        sink: { sendSingle: true }
      }
    });
    const topics = topicsOf(kit.broker);
    for (const ts of [500, 1500]) await kit.broker.publish({ topic: 'e', payload: JSON.stringify({ ts }) });
    await run(kit);
    assert.ok(topics.length <= 4, `${topics.length} messages`);
    assert.equal((await failuresOf(kit.broker, 'r')).last, LOOP('r'));
  });

  for (const lingerInterval of [0, 100])
    it(`ends a cycle of the errors of its rows, after ${lingerInterval} ms`, async () => {
      await using kit = await kitWith({});
      await kit.broker.streams.create(
        'CREATE STREAM strict (n BIGINT) WITH (DATASOURCE="s", FORMAT="JSON", STRICT_VALIDATION="true")'
      );
      const sink = { lingerInterval };
      await makeRules(kit.broker, {
        early: { sql: 'SELECT * FROM strict', topic: 's', sink },
        late: { sql: 'SELECT error + 1 AS m, n + 1 AS o FROM a', topic: 'a', sink },
        window: { sql: 'SELECT sum(n + "x") AS b FROM b GROUP BY TUMBLINGWINDOW(ss, 1)', topic: 'b', sink }
      });
      const topics = topicsOf(kit.broker);
      for (const topic of ['s', 'a', 'b']) await kit.broker.publish({ topic, payload: '{"n":"x"}' });
      await run(kit);
      for (const topic of ['s', 'a', 'b'])
        assert.ok(topics.filter((each) => each === topic).length <= 2, `${topic}: ${topics}`);
      for (const id of ['early', 'late', 'window']) assert.equal((await failuresOf(kit.broker, id)).last, LOOP(id), id);
    });

  for (const store of [undefined, memoryStore()])
    it(`ends a cycle with QoS 1 and ${store === undefined ? 'no store' : 'a store'}`, async () => {
      const r = { sql: 'SELECT * FROM a', topic: 'a', sink: { qos: 1 } };
      await using kit = await kitWith({ r }, store === undefined ? {} : { store });
      const reader = await kit.connect({ clientId: 'reader', clean: false });
      await reader.subscribe({ topic: 'a', qos: 1 });
      const topics = topicsOf(kit.broker);
      await kit.broker.publish({ topic: 'a', payload: '{"n":1}', qos: 1 });
      await run(kit);
      assert.equal(topics.length, 2);
      assert.deepEqual(await failuresOf(kit.broker, 'r'), { count: 1, last: LOOP('r') });
    });

  for (const qos of [1, 2] as const)
    it(`ends a cycle with the option qos ${qos}, even if the row is in a window of a checkpoint`, async () => {
      await using lives = await new Lives().begin();
      lives.kit.broker.on('error', () => undefined);
      await lives.kit.broker.streams.create(streamOf('a'));
      const sql = 'SELECT count(*) AS n FROM a GROUP BY TUMBLINGWINDOW(ss, 10)';
      await makeRules(lives.kit.broker, { r: { sql, options: { qos }, topic: 'a', sink: { qos: 1 } } });
      const topics = topicsOf(lives.kit.broker);
      await lives.kit.broker.publish({ topic: 'a', payload: '{"n":1}', qos: 1 });
      await lives.kit.clock.advance(13_000);
      assert.equal(topics.length, 2);
      await lives.kill();
      const later = topicsOf(lives.kit.broker);
      await run(lives.kit);
      assert.deepEqual(later, []);
      assert.equal((await failuresOf(lives.kit.broker, 'r')).last, LOOP('r'));
    });
});

describe('Several stream rules', () => {
  const count = (stream: string) => `SELECT count(*) AS n FROM ${stream} GROUP BY TUMBLINGWINDOW(ss, 1)`;

  it('ends a cycle of several rules at the first repetition, also with windows', async () => {
    await using kit = await kitWith({
      first: { sql: count('a'), topic: 'b' },
      second: { sql: count('b'), topic: 'a', sink: { enableCache: true } }
    });
    const topics = topicsOf(kit.broker);
    await kit.broker.publish({ topic: 'a', payload: '{"n":1}' });
    await run(kit);
    assert.deepEqual(topics, ['a', 'b', 'a']);
    assert.deepEqual(await failuresOf(kit.broker, 'first'), { count: 1, last: LOOP('first') });
    assert.deepEqual(await failuresOf(kit.broker, 'second'), { count: 0, last: '' });
  });

  it('ends a cycle over a memory topic', async () => {
    await using kit = await kitWith(
      { last: { sql: count('m'), topic: 'a' } },
      {
        streams: { definitions: ['CREATE STREAM m () WITH (DATASOURCE="m", TYPE="memory")'] }
      }
    );
    const actions = [{ memory: { topic: 'm' } }];
    await kit.broker.streams.rules.create({ id: 'first', sql: count('a'), actions });
    const topics = topicsOf(kit.broker);
    await kit.broker.publish({ topic: 'a', payload: '{"n":1}' });
    await run(kit);
    assert.deepEqual(topics, ['a', 'a']);
    const { metrics } = await kit.broker.streams.rules.status('first');
    assert.equal(metrics.sink_memory_0_0_last_exception, LOOP('first'));
  });

  it('ends a cycle with an action of the rules over events', async () => {
    await using kit = await kitWith({ r: { sql: count('a'), topic: 'b' } });
    const params = { target_topic: 'a', payload_tmpl: '{}', target_qos: 0 };
    await kit.broker.rules.create({ sql: 'SELECT payload FROM "b"', actions: [{ name: 'republish', params }] });
    const topics = topicsOf(kit.broker);
    await kit.broker.publish({ topic: 'a', payload: '{"n":1}' });
    await run(kit);
    assert.deepEqual(topics, ['a', 'b', 'a']);
    assert.equal((await failuresOf(kit.broker, 'r')).last, LOOP('r'));
  });

  it('accepts rules in a chain, and groups of their rows with rows of clients', async () => {
    await using kit = await kitWith({
      one: { sql: count('a'), topic: 'b' },
      two: { sql: count('b'), topic: 'c', sink: { lingerInterval: 50 } },
      three: {
        sql: 'SELECT count(*) AS n FROM c GROUP BY HOPPINGWINDOW(ss, 2, 1)',
        topic: 'd',
        sink: { enableCache: true }
      },
      aside: { sql: 'SELECT count(*) AS n FROM a GROUP BY SLIDINGWINDOW(ss, 2)', topic: 'd' }
    });
    const topics = topicsOf(kit.broker);
    for (let at = 0; at < 5; at++) {
      for (const topic of ['a', 'b', 'c']) await kit.broker.publish({ topic, payload: '{"n":1}' });
      await kit.clock.advance(1000);
    }
    await run(kit);
    assert.equal(topics.filter((topic) => topic === 'b').length, 10);
    assert.ok(topics.filter((topic) => topic === 'c').length >= 10);
    for (const id of ['one', 'two', 'three', 'aside'])
      assert.deepEqual(await failuresOf(kit.broker, id), { count: 0, last: '' }, id);
  });

  it('refuses chains of more than 16 rules', async () => {
    await using kit = await kitWith({});
    for (let at = 0; at < 17; at++) {
      await kit.broker.streams.create(streamOf(`t/${at}`, `s${at}`));
      await makeRules(kit.broker, { [`r${at}`]: { sql: count(`s${at}`), topic: `t/${at + 1}` } });
    }
    const topics = topicsOf(kit.broker);
    await kit.broker.publish({ topic: 't/0', payload: '{"n":1}' });
    await run(kit);
    assert.equal(topics.length, 17);
    const { last } = await failuresOf(kit.broker, 'r16');
    assert.equal(last, 'rules publish because of each other: more than 16 rules caused this message');
  });

  it('ignores causes of rows that were filtered out or are in a table', async () => {
    await using kit = await kitWith({
      filtered: {
        sql: 'SELECT count(*) AS n FROM a WHERE own = 0 GROUP BY TUMBLINGWINDOW(ss, 1)',
        topic: 'a'
      }
    });
    const { streams } = kit.broker;
    await streams.create(
      `CREATE TABLE state () WITH (DATASOURCE="state", TYPE="mqtt", FORMAT="JSON", RETAIN_SIZE="1")`
    );
    await makeRules(kit.broker, {
      state: {
        sql: 'SELECT b.id, b.n FROM b LEFT JOIN state ON b.id = state.id',
        topic: 'state',
        sink: { sendSingle: true }
      }
    });
    for (let at = 0; at < 3; at++) {
      await kit.broker.publish({ topic: 'a', payload: '{"own":0}' });
      await kit.broker.publish({ topic: 'b', payload: '{"id":1,"n":1}' });
      await kit.clock.advance(1000);
    }
    await run(kit);
    for (const id of ['filtered', 'state']) {
      assert.deepEqual(await failuresOf(kit.broker, id), { count: 0, last: '' }, id);
      const { metrics } = await streams.rules.status(id);
      assert.equal(metrics.sink_mqtt_0_0_records_out_total, 3, id);
    }
  });

  it('stops refusing outputs when the row that the rules caused has left the window', async () => {
    const sql = 'SELECT count(*) AS n FROM a GROUP BY HOPPINGWINDOW(ss, 2, 1)';
    await using kit = await kitWith({ r: { sql, topic: 'a' } });
    const topics = topicsOf(kit.broker);
    await kit.broker.publish({ topic: 'a', payload: '{"n":1}' });
    await run(kit);
    const { length } = topics;
    await kit.broker.publish({ topic: 'a', payload: '{"n":1}' });
    await run(kit);
    assert.equal(topics.length, 2 * length);
  });
});
