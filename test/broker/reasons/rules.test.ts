import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker, Cause } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';

async function causesOf(broker: Broker, rule: string, topic = 'a/1'): Promise<readonly Cause[]> {
  return (await broker.monitor.why({ topic, rule })).causes;
}

const codesOf = (causes: readonly Cause[]) => causes.map(({ code, kind }) => `${code} ${kind}`);

describe('The causes in a rule', () => {
  it('shows the values with which WHERE was false', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await broker.rules.create({ id: 'hot', sql: 'SELECT payload.t FROM "a/+" WHERE payload.t > 80', actions: [] });
    await broker.publish('a/1', '{"t": 75}');
    const { causes, isComplete } = await broker.monitor.why({ topic: 'a/1', rule: 'hot' });
    assert.deepEqual(codesOf(causes), ['where_false sampled']);
    assert.equal(causes[0].text, 'The condition of rule "hot" was not met: payload.t = 75.');
    assert.equal(isComplete, true);
    assert.deepEqual(codesOf(await causesOf(broker, 'hot', 'a/2')), []);
    for (let number = 0; number < 9; number++) await broker.publish('a/1', '{"t": 75}');
    assert.equal((await broker.monitor.why({ topic: 'a/2', rule: 'hot' })).isComplete, false, 'not all were sampled');
  });

  it('names a payload that is not JSON, a function that failed, and a target that refused', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const actions = [
      () => {
        throw new Error('the pump is off');
      }
    ];
    await broker.rules.create({ id: 'json', sql: 'SELECT payload.t AS t FROM "a/+" WHERE payload.t > 1', actions: [] });
    await broker.rules.create({ id: 'function', sql: 'SELECT abs(payload) AS s FROM "a/+"', actions: [] });
    await broker.rules.create({ id: 'target', sql: 'SELECT * FROM "a/+"', actions });
    const device = await broker.connect({ clientId: 'device' });
    broker.on('error', () => undefined);
    await device.publish('a/1', 'no json', { qos: 1 });
    await kit.clock.advance(1);
    assert.ok(codesOf(await causesOf(broker, 'json')).includes('payload_invalid recorded'));
    assert.deepEqual(codesOf(await causesOf(broker, 'function')), ['function_failed recorded']);
    const [refused] = await causesOf(broker, 'target');
    assert.equal(refused.code, 'target_refused');
    assert.match(refused.text, /rule "target" did not accept the message: .*the pump is off/);
    assert.deepEqual(await causesOf(broker, 'target', 'a/2'), [], 'the refused message had another topic');
    const all = (await broker.monitor.why({ topic: 'a/1', publisher: 'device' })).causes;
    assert.ok(codesOf(all).includes('function_failed recorded'), 'also without the id of the rule');
    await device.disconnect();
  });

  it('names a rule that is disabled, one that has stopped, and one that does not exist', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await broker.rules.create({ id: 'off', sql: 'SELECT * FROM "a/+"', actions: [], isEnabled: false });
    assert.deepEqual(codesOf(await causesOf(broker, 'off')), ['rule_stopped recorded']);
    const [none] = await causesOf(broker, 'none');
    assert.equal(none.text, 'Rule "none" is not running: no rule has this id.');
    assert.match(none.remedy, /^Correct the id: `embermq ctl rules list` and `embermq ctl stream list` /);
  });

  it('records errors of a rule over streams: a payload, a function and a target', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    broker.on('error', () => undefined);
    const refuse = () => {
      throw new Error('the pump is off');
    };
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    await broker.streams.rules.create({
      id: 'function',
      sql: 'SELECT abs(concat("x", t)) AS t FROM s',
      actions: [() => 0]
    });
    await broker.streams.rules.create({ id: 'target', sql: 'SELECT t FROM s', actions: [refuse] });
    await broker.publish('a/1', 'no json');
    await kit.clock.advance(200);
    await broker.publish('a/1', '{"t": 75}');
    await kit.clock.advance(200);
    for (const [rule, code, text] of [
      ['function', 'function_failed', /^A function of rule "function" failed: .*string\(x75\)/],
      ['target', 'target_refused', /^The target of an action of rule "target" .*the pump is off/]
    ] as const) {
      const causes = await causesOf(broker, rule);
      assert.deepEqual(codesOf(causes).sort(), [`${code} recorded`, 'payload_invalid recorded'].sort(), rule);
      const invalid = causes.find(({ code }) => code === 'payload_invalid') ?? assert.fail('not recorded');
      assert.match(invalid.text, /^The payload of a message to topic "a\/1" could not be decoded for rule "/);
      assert.match(causes.find((cause) => cause.code === code)?.text ?? '', text);
    }
    await broker.streams.rules.delete('target');
    const kept = broker.monitor.reasons.list({ rule: 'target' }).entries.map(({ code }) => code);
    assert.deepEqual(kept, ['target_refused', 'payload_invalid'], 'records outlive the rule');
  });

  it('tells the topics of a rule over streams apart: in payloads, columns, functions, conditions and late rows', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    broker.on('error', () => undefined);
    await broker.publish('a/0', 'retained', { retain: true });
    const options = 'TYPE="mqtt", DATASOURCE="a/+", FORMAT="json", STRICT_VALIDATION="true", TIMESTAMP="at"';
    await broker.streams.create(`CREATE STREAM s (t BIGINT, at BIGINT) WITH (${options})`);
    const { rules } = broker.streams;
    const sql = {
      retained: 'SELECT t FROM s',
      payload: 'SELECT t FROM s',
      column: 'SELECT t FROM s',
      function: 'SELECT abs(concat("x", t)) AS x FROM s',
      where: 'SELECT t FROM s WHERE t > 80',
      window: 'SELECT count(*) AS n FROM s WHERE t > 80 GROUP BY COUNTWINDOW(1)',
      late: 'SELECT count(*) AS n FROM s GROUP BY TUMBLINGWINDOW(ss, 10)'
    };
    for (const [id, text] of Object.entries(sql)) {
      const isEventTime = id === 'late';
      await rules.create({ id, sql: text, options: { isEventTime }, actions: [() => undefined] });
      await kit.clock.advance(200); // the retained message arrives in a later turn
      const payloads = {
        retained: [],
        payload: ['no json'],
        column: ['{"t": "text", "at": 1}'],
        late: ['{"t": 1, "at": 30000}', '{"t": 1, "at": 1000}']
      } as Record<string, readonly string[]>;
      for (const payload of payloads[id] ?? ['{"t": 75, "at": 1}']) await broker.publish('a/2', payload);
      await kit.clock.advance(200);
      const expected = ['where', 'window'].includes(id) ? 'where_false sampled' : undefined;
      const code = { function: 'function_failed recorded', late: 'row_late sampled' }[id] ?? expected;
      const topic = id === 'retained' ? 'a/0' : 'a/2';
      const causes = await causesOf(broker, id, topic);
      assert.deepEqual(codesOf(causes), [code ?? 'payload_invalid recorded'], id);
      assert.equal(causes[0].evidence.topic, topic, id);
      const others = id === 'late' ? ['window_open derived'] : [];
      assert.deepEqual(codesOf(await causesOf(broker, id, 'a/1')), others, id);
      await rules.stop(id);
    }
  });

  it('names the topic of an error only if the rows that caused it have one', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    broker.on('error', () => undefined);
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    const sql = 'SELECT abs(concat("x", sum(t))) AS t FROM s GROUP BY COUNTWINDOW(2)';
    await broker.streams.rules.create({ id: 'window', sql, actions: [() => undefined] });
    for (const topic of ['a/1', 'a/2']) await broker.publish(topic, '{"t": 1}');
    await kit.clock.advance(200);
    const [failed] = await causesOf(broker, 'window', 'a/2');
    assert.deepEqual([failed.code, failed.evidence.topic], ['function_failed', undefined]);
    const { errors } = await broker.streams.rules.samples('window');
    assert.deepEqual(Object.keys(errors[0]), ['at', 'node', 'message']);
  });

  it('names the target of a rule over streams that has refused in a flood of errors of functions and payloads', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    broker.on('error', () => undefined);
    const refuse = () => {
      throw new Error('the pump is off');
    };
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    const sql = 'SELECT abs(CASE WHEN t > 0 THEN concat("x", t) ELSE 1 END) AS t FROM s';
    await broker.streams.rules.create({ id: 'flood', sql, actions: [refuse] });
    // all in the same 100 ms
    for (let number = 1; number <= 20; number++) {
      await broker.publish('a/1', 'no json');
      await broker.publish('a/1', `{"t": ${number}}`);
    }
    await broker.publish('a/1', '{"t": 0}');
    await kit.clock.advance(1);
    const causes = await causesOf(broker, 'flood');
    assert.deepEqual(codesOf(causes).sort(), [
      'function_failed recorded',
      'payload_invalid recorded',
      'target_refused recorded'
    ]);
    const { errors } = await broker.streams.rules.samples('flood');
    assert.equal(errors.length, 3, 'a sample of each kind');
    assert.match(errors.map(({ message }) => message).join(), /the pump is off/);
  });

  it('names a rule over streams that has stopped with an error, also after it runs again', async () => {
    let isBroken = false;
    const open = () => {
      if (isBroken) throw new Error('the pump is off');
      return { send: () => undefined, close: () => undefined };
    };
    const sinks = [{ name: 'own', about: 'Opens unless it is broken.', open }];
    await using kit = await createTestBroker({ streams: { sinks } });
    const { broker } = kit;
    broker.on('error', () => undefined);
    const { rules } = broker.streams;
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    await rules.create({ id: 'r', sql: 'SELECT t FROM s', actions: [{ own: {} }] });
    assert.deepEqual(codesOf(await causesOf(broker, 'r')), []);
    isBroken = true;
    await assert.rejects(rules.restart('r'), /the pump is off/);
    const stopped = kit.clock.now();
    const [stop, ...others] = await causesOf(broker, 'r');
    assert.deepEqual([stop.code, stop.kind, others], ['rule_stopped', 'recorded', []]);
    assert.match(stop.text, /^Rule "r" is not running: .*the pump is off/);
    await kit.clock.advance('1h');
    isBroken = false;
    await rules.start('r');
    const later = await broker.monitor.why({ topic: 'a/1', rule: 'r', at: stopped });
    assert.deepEqual(codesOf(later.causes), ['rule_stopped recorded']);
    assert.deepEqual([later.causes[0].at, later.causes[0].evidence.rule], [stopped, 'r']);
  });

  it('shows late rows and conditions of a rule over streams', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    await broker.streams.rules.create({ id: 'r', sql: 'SELECT t FROM s WHERE t > 80', actions: [() => undefined] });
    await broker.publish('a/1', '{"t": 75}');
    await kit.clock.advance(200);
    const causes = await causesOf(broker, 'r');
    assert.deepEqual(codesOf(causes), ['where_false sampled']);
    assert.match(causes[0].text, /was not met: .*WHERE, with t = 75/);
    await kit.clock.advance('30m');
    await broker.publish('a/1', '{"t": 90}');
    const question = { topic: 'a/1', rule: 'r', at: kit.clock.now() };
    const [another] = (await broker.monitor.why(question)).causes;
    assert.match(another.text, /may not have been met: another message, at 2026-.*WHERE, with t = 75/);
    await broker.streams.create(
      'CREATE STREAM timed (t BIGINT, at BIGINT) WITH (TYPE="mqtt", DATASOURCE="b", FORMAT="json", TIMESTAMP="at")'
    );
    await broker.streams.rules.create({
      id: 'late',
      sql: 'SELECT count(*) AS n FROM timed GROUP BY TUMBLINGWINDOW(ss, 10)',
      options: { isEventTime: true },
      actions: [() => undefined]
    });
    for (const at of [1_000, 30_000, 2_000]) await broker.publish('b', JSON.stringify({ t: 1, at }));
    const late = await causesOf(broker, 'late', 'b');
    assert.deepEqual(codesOf(late), ['row_late sampled']);
    await broker.streams.rules.stop('r');
    assert.deepEqual(codesOf(await causesOf(broker, 'r')), ['rule_stopped recorded']);
  });

  it('says that the window of a rule over streams may be open, as long as it may have the message', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    const actions = [() => undefined];
    const sql = 'SELECT count(*) AS n FROM s GROUP BY ';
    await broker.streams.rules.create({ id: 'timed', sql: `${sql}TUMBLINGWINDOW(ss, 10)`, actions });
    await broker.streams.rules.create({ id: 'counted', sql: `${sql}COUNTWINDOW(3)`, actions });
    await broker.streams.rules.create({ id: 'rows', sql: 'SELECT t FROM s', actions });
    await broker.publish('a/1', '{"t": 1}');
    const at = clock.now() + 1;
    await clock.advance('5s');
    for (const rule of ['timed', 'counted']) {
      const [{ code, text }] = (await broker.monitor.why({ topic: 'a/1', rule, at })).causes;
      assert.equal(code, 'window_open');
      assert.match(
        text,
        /^Rule "\w+" may still collect rows in its window, .*: (TUMBLINGWINDOW\(ss, 10\)|COUNTWINDOW\(3\))\.$/
      );
    }
    await clock.advance('10s');
    const later = async (rule: string) => codesOf((await broker.monitor.why({ topic: 'a/1', rule, at })).causes);
    assert.deepEqual(await later('timed'), [], 'its window has ended');
    assert.deepEqual(await later('counted'), ['window_open derived']);
    assert.deepEqual(codesOf(await causesOf(broker, 'rows')), [], 'it has no window');
  });
});
