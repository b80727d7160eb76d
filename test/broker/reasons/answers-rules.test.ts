import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bridge } from '../../../adapters/bridge/index.ts';
import { type ArrivalQuestion, type Broker, type Cause, createBroker, memoryStore } from '../../../lib/index.ts';
import { connected, Pair, server } from '../../bridge/pair.ts';
import { FakeTarget, RESOURCE, republish, ruleKit, TO_FAKE } from '../../rules/support.ts';
import { until } from '../../support/until.ts';

/** The texts of the causes of an answer, in order. */
async function textsOf(broker: Broker, question: ArrivalQuestion): Promise<string[]> {
  return (await broker.monitor.why(question)).causes.map(({ text }) => text);
}

/** The first cause of an answer. */
async function firstOf(broker: Broker, question: ArrivalQuestion): Promise<Cause> {
  const { causes } = await broker.monitor.why(question);
  return causes[0] ?? assert.fail('there is no cause');
}

describe('A target of a rule that takes nothing', () => {
  it('names the outputs of a rule that wait in the queue of a resource, until its target has taken them', async () => {
    const target = new FakeTarget();
    target.onSend = () => {
      throw new Error('connect ECONNREFUSED 127.0.0.1:1');
    };
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { broker, clock } = kit;
    await broker.rules.resources.create(RESOURCE);
    await broker.rules.create({ id: 'up', sql: 'SELECT * FROM "a/+"', actions: [TO_FAKE] });
    await broker.rules.create({ id: 'other', sql: 'SELECT * FROM "b"', actions: [TO_FAKE] });
    const published = clock.now();
    await broker.publish('a/1', 'x');
    await clock.advance('10m');
    await broker.publish('a/1', 'y');
    await clock.advance('10s');
    const { code, kind, count, text, evidence } = await firstOf(broker, { topic: 'a/1', rule: 'up' });
    assert.deepEqual([code, kind, count, evidence.waitingOutputs], ['target_refused', 'derived', 2, 2]);
    assert.equal(
      text,
      'The target of an action of rule "up" has not accepted the message yet: ' +
        '2 outputs wait in the queue of resource "r": connect ECONNREFUSED 127.0.0.1:1.'
    );
    assert.equal((await firstOf(broker, { topic: 'a/1', rule: 'up', at: published + 7 })).count, 1);
    const between = { topic: 'a/1', rule: 'up', at: published + 100_007 };
    assert.deepEqual(await textsOf(broker, between), [], 'outputs of another time are not those of this message');
    assert.deepEqual(await textsOf(broker, { topic: 'b', rule: 'other' }), [], 'outputs of another rule');
    target.onSend = () => undefined;
    await clock.advance('10m');
    assert.deepEqual(await textsOf(broker, { topic: 'a/1', rule: 'up' }), []);
  });

  it('names the outputs of a rule that wait in the queue of a sink', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    let isDown = true;
    const sink = {
      name: 'down',
      about: 'Fails.',
      open: () => ({
        send() {
          if (isDown) throw new Error('the pump is off');
        },
        close: () => undefined
      })
    };
    await broker.streams.createSink(sink);
    await broker.rules.create({ id: 'up', sql: 'SELECT * FROM "a"', actions: [{ name: 'down', params: {} }] });
    await broker.publish('a', 'x');
    await clock.advance('1s');
    const { code, text } = await firstOf(broker, { topic: 'a', rule: 'up' });
    assert.equal(code, 'target_refused');
    assert.match(text, /yet: 1 output waits in the queue of action down_\d+ of rule up: the pump is off\.$/);
    isDown = false;
    await clock.advance('10m');
    assert.deepEqual(await textsOf(broker, { topic: 'a', rule: 'up' }), []);
  });
});

describe('A rule that was not running', () => {
  it('names the times at which the feature rules was stopped, while it is and afterwards', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await broker.rules.create({ id: 'up', sql: 'SELECT * FROM "a"', actions: [] });
    const before = clock.now();
    await clock.advance('1m');
    await broker.features.stop('rules');
    const from = clock.now();
    await clock.advance('10s');
    await broker.publish('a', 'x');
    const question = { topic: 'a', rule: 'up' };
    const now = await firstOf(broker, question);
    assert.deepEqual([now.code, now.kind, now.evidence.until], ['rule_stopped', 'derived', undefined]);
    assert.equal(
      now.text,
      'Rule "up" is not running: the feature `rules` is stopped since 2026-01-01T00:01:00.000Z: ' +
        'start it with `embermq ctl plugins load rules`.'
    );
    await clock.advance('10s');
    await broker.features.start('rules');
    await clock.advance('10m');
    for (const at of [from + 1, from + 10_001]) {
      const { text } = await firstOf(broker, { ...question, at });
      assert.match(text, /was stopped from 2026-01-01T00:01:00.000Z until 2026-01-01T00:01:20.000Z\.$/);
    }
    assert.deepEqual(await textsOf(broker, { ...question, at: before + 1 }), []);
    assert.deepEqual(await textsOf(broker, { ...question, at: from + 60_001 }), []);
    assert.equal((await firstOf(broker, question)).evidence.until, from + 20_000, 'it has ended');
    await broker.rules.create({ id: 'later', sql: 'SELECT * FROM "a"', actions: [] });
    assert.deepEqual(await textsOf(broker, { topic: 'a', rule: 'later' }), [
      'Rule "later" was not running until 2026-01-01T00:11:20.000Z: it was created then.'
    ]);
  });

  it('names a rule that was disabled at the time of the question, and at no other time', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await broker.rules.create({ id: 'up', sql: 'SELECT * FROM "a"', actions: [] });
    const times = [];
    for (const isEnabled of [true, false, true, false]) {
      await broker.rules.update('up', { isEnabled });
      await clock.advance('1m');
      times.push(clock.now() + 1);
      await broker.publish('a', 'x');
      await clock.advance('1m');
    }
    const answers = [];
    for (const at of times) answers.push(await textsOf(broker, { topic: 'a', rule: 'up', at }));
    const stopped = ['Rule "up" is not running: it is disabled.'];
    assert.deepEqual(answers, [[], stopped, [], stopped]);
    await broker.rules.update('up', { isEnabled: true });
    const then = await firstOf(broker, { topic: 'a', rule: 'up', at: times[1] });
    assert.match(then.remedy, /^The rule runs again: publish the message again/);
    const [{ evidence }] = (await broker.monitor.why({ topic: 'a', rule: 'up' })).causes;
    assert.equal(evidence.until, clock.now());
  });

  it('names a rule as disabled before it was enabled for the first time, also after a restart', async () => {
    const store = memoryStore();
    {
      await using kit = await ruleKit({ store });
      await kit.broker.rules.create({ id: 'off', sql: 'SELECT * FROM "a"', actions: [], isEnabled: false });
    }
    await using kit = await ruleKit({ store });
    const { broker, clock } = kit;
    await clock.advance('1m');
    const at = clock.now() + 1;
    await clock.advance('1m');
    await broker.rules.update('off', { isEnabled: true });
    assert.deepEqual(await textsOf(broker, { topic: 'a', rule: 'off', at }), [
      'Rule "off" is not running: it is disabled.'
    ]);
  });

  it('names a rule that was created after the message', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    const at = clock.now() + 1;
    await clock.advance('1m');
    await broker.rules.create({ id: 'new', sql: 'SELECT * FROM "a"', actions: [] });
    assert.deepEqual(await textsOf(broker, { topic: 'a', rule: 'new', at }), [
      'Rule "new" is not running: it was created later, at 2026-01-01T00:01:00.000Z.'
    ]);
    assert.deepEqual(await textsOf(broker, { topic: 'a', rule: 'new' }), []);
  });
});

describe('A rule whose statement was changed', () => {
  it('names until when a rule read other topics, also after its statement was changed back', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await using device = await kit.connect({ clientId: 'device' });
    await using panel = await kit.connect({ clientId: 'panel' });
    await panel.subscribe('out/#', { qos: 1 });
    const question = { topic: 'in/1', rule: 'up' };
    const sql = 'SELECT * FROM "in/#"';
    await broker.rules.create({ id: 'up', sql, actions: [republish('out/up', 'x')] });
    const before = clock.now() + 10_001;
    await clock.advance('1m');
    await broker.rules.update('up', { sql: 'SELECT * FROM "other/#", "b"' });
    await device.publish('in/1', 'x', { qos: 1 });
    await clock.advance('30s');
    const during = clock.now() + 1;
    await clock.advance('30s');
    await broker.rules.update('up', { sql });
    await clock.advance('1m');
    const text = 'Rule "up" did not select from topic "in/1" until 2026-01-01T00:02:00.000Z: it read "other/#", "b".';
    for (const asked of [question, { ...question, at: during }]) {
      const { code, text: found, remedy } = await firstOf(broker, asked);
      assert.deepEqual([code, found], ['from_unmatched', text]);
      assert.match(remedy, /publish the message again\.$/);
    }
    const earlier = await broker.monitor.why({ ...question, at: before });
    assert.deepEqual([earlier.causes, earlier.isComplete], [[], false], 'it had the topic then, and another condition');
    const later = await broker.monitor.why({ ...question, at: clock.now() - 29_999 });
    assert.deepEqual([later.causes, later.isComplete], [[], true]);
    const output = await broker.monitor.why({ topic: 'out/up', clientId: 'panel', at: during });
    assert.deepEqual([output.causes, output.isComplete], [[], false]);
  });

  it('does not say that a rule selected from other topics before it was changed to them', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await using device = await kit.connect({ clientId: 'device' });
    await broker.rules.create({ id: 'up', sql: 'SELECT * FROM "in/#"', actions: [] });
    await clock.advance('1m');
    const at = clock.now() + 1;
    await device.publish('in/1', 'x', { qos: 1 });
    await clock.advance('1m');
    await broker.rules.update('up', { sql: 'SELECT * FROM "other/#"' });
    assert.deepEqual(await textsOf(broker, { topic: 'in/1', rule: 'up', at }), []);
    assert.deepEqual(await textsOf(broker, { topic: 'in/1', rule: 'up' }), [
      'Rule "up" does not select from topic "in/1": it reads "other/#".'
    ]);
  });

  it('names, without a time, that a rule was deleted and created again after the last message of the topic', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await using device = await kit.connect({ clientId: 'device' });
    const rule = { id: 'up', sql: 'SELECT * FROM "in/#"', actions: [] };
    await broker.rules.create(rule);
    await clock.advance('1m');
    await broker.rules.delete('up');
    await device.publish('in/1', 'x', { qos: 1 });
    await clock.advance('1m');
    await broker.rules.create(rule);
    await clock.advance('1m');
    const question = { topic: 'in/1', rule: 'up' };
    const { text, remedy } = await firstOf(broker, question);
    assert.equal(text, 'Rule "up" was not running until 2026-01-01T00:02:00.000Z: it was created then.');
    assert.match(remedy, /publish the message again/);
    await device.publish('in/1', 'y', { qos: 1 });
    await clock.advance(1);
    assert.deepEqual(await textsOf(broker, question), [], 'the rule has had a message since');
  });
});

describe('A rule whose condition was corrected', () => {
  it('does not count the messages that the former condition has excluded', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const question = { topic: 'a/1', rule: 'hot' };
    const others = (count: string) =>
      `The condition of rule "hot" may not have been met: it has excluded ${count}, and none of the last examples is of this topic.`;
    await broker.rules.create({ id: 'hot', sql: 'SELECT * FROM "a/+" WHERE payload.t > 80', actions: [] });
    for (let n = 0; n < 8; n++) await broker.publish('a/2', '{"t": 10}');
    assert.equal((await broker.rules.samples('hot')).excluded, 8);
    await broker.rules.update('hot', { sql: 'SELECT * FROM "a/+" WHERE payload.t > 5' });
    assert.equal((await broker.rules.samples('hot')).excluded, 0);
    assert.ok(!(await textsOf(broker, question)).some((text) => /has excluded/.test(text)));
    for (let n = 0; n < 7; n++) await broker.publish('a/2', '{"t": 1}');
    await broker.rules.resetCounters('hot');
    assert.ok((await textsOf(broker, question)).includes(others('7 messages')), 'also after the counters were reset');
  });
});

describe('A rule that was stopped for a time', () => {
  const QUESTION = { topic: 'a/1', rule: 'hot' };
  const STOPPED = 'Rule "hot" was not running until 2026-01-01T00:02:00.000Z: ';

  it('names the stop of a rule over events before conditions of other messages, if nothing has happened since', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await broker.rules.create({ id: 'hot', sql: 'SELECT * FROM "a/+" WHERE payload.t > 80', actions: [] });
    for (const topic of ['a/1', 'a/2', 'a/2', 'a/2', 'a/2', 'a/2', 'a/2', 'a/2']) {
      await broker.publish(topic, '{"t": 10}');
      await clock.advance('1s');
    }
    await clock.advance('52s');
    await broker.rules.update('hot', { isEnabled: false });
    await broker.publish('a/1', '{"t": 90}');
    await clock.advance('1m');
    await broker.rules.update('hot', { isEnabled: true });
    await clock.advance('1m');
    const { causes, isComplete } = await broker.monitor.why(QUESTION);
    assert.deepEqual(
      causes.map(({ text }) => text),
      [
        `${STOPPED}it was disabled.`,
        'The condition of rule "hot" may not have been met: it has excluded 8 messages, and none of the last examples is of this topic.'
      ]
    );
    assert.match(causes[0].remedy, /^The rule runs again/);
    assert.equal(isComplete, false);
    await broker.publish('a/1', '{"t": 20}');
    assert.deepEqual(await textsOf(broker, QUESTION), [
      'The condition of rule "hot" was not met: payload.t = 20.',
      `${STOPPED}it was disabled.`
    ]);
  });

  it('names the stop of a rule over events before an older condition that was not met', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await broker.rules.create({ id: 'hot', sql: 'SELECT * FROM "a/+" WHERE payload.t > 80', actions: [] });
    await broker.publish('a/1', '{"t": 10}');
    await clock.advance('1m');
    await broker.features.stop('rules');
    await broker.publish('a/1', '{"t": 90}');
    await clock.advance('1m');
    await broker.features.start('rules');
    const [feature, ...others] = await textsOf(broker, QUESTION);
    assert.match(
      feature,
      /^Rule "hot" was not running until 2026-01-01T00:02:00.000Z: the feature `rules` was stopped/
    );
    assert.deepEqual(others, ['The condition of rule "hot" was not met: payload.t = 10.']);
  });

  it('names the stop of a rule over streams while it lasts and afterwards, and at no other time', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    const { rules } = broker.streams;
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    await rules.create({ id: 'hot', sql: 'SELECT t FROM s', actions: [() => undefined] });
    const before = clock.now() + 30_001;
    await clock.advance('1m');
    await rules.stop('hot');
    await broker.publish('a/1', '{"t": 90}');
    await clock.advance('30s');
    const during = clock.now() + 1;
    const stop = 'stopped by an operator or the app.';
    assert.deepEqual(await textsOf(broker, QUESTION), [`Rule "hot" is not running: ${stop}`]);
    await clock.advance('30s');
    await rules.start('hot');
    await clock.advance('1m');
    assert.deepEqual(await textsOf(broker, QUESTION), [STOPPED + stop]);
    assert.deepEqual(await textsOf(broker, { ...QUESTION, at: during }), [`Rule "hot" is not running: ${stop}`]);
    for (const at of [before, clock.now() - 30_001]) assert.deepEqual(await textsOf(broker, { ...QUESTION, at }), []);
  });

  it('names a rule over streams that was not started, and the stream service that was stopped', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    const { rules } = broker.streams;
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    await clock.advance('1m');
    await rules.create({ id: 'hot', sql: 'SELECT t FROM s', actions: [() => undefined], triggered: false });
    assert.deepEqual(await textsOf(broker, { ...QUESTION, at: clock.now() - 30_001 }), [
      'Rule "hot" is not running: it was created later, at 2026-01-01T00:01:00.000Z.'
    ]);
    await clock.advance('1m');
    await rules.start('hot');
    assert.deepEqual(await textsOf(broker, QUESTION), [`${STOPPED}not started yet.`]);
    await clock.advance('1m');
    await broker.streams.stop();
    assert.deepEqual(await textsOf(broker, { topic: 'a/1', rule: 'none' }), [
      'Rule "none" is not running: no rule has this id.'
    ]);
    const [first] = await textsOf(broker, QUESTION);
    assert.equal(first, 'Rule "hot" is not running: the stream service was stopped.');
    await clock.advance('1m');
    await broker.streams.start();
    const service = 'Rule "hot" was not running until 2026-01-01T00:04:00.000Z: the stream service was stopped.';
    assert.equal((await textsOf(broker, QUESTION))[0], service);
  });

  it('names the schedule for which a rule over streams waited before its first run, and between its runs', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    await clock.advance('5m');
    const options = { cron: '*/10 * * * *', duration: '2m' };
    await broker.streams.rules.create({ id: 'hot', sql: 'SELECT t FROM s', actions: [() => undefined], options });
    await clock.advance('2m');
    const before = clock.now() + 1;
    await clock.advance('4m');
    const during = clock.now() + 1;
    const waited = 'Rule "hot" is not running: waiting for its schedule.';
    const { text, remedy } = await firstOf(broker, { ...QUESTION, at: before });
    assert.deepEqual(
      [text, remedy],
      [waited, 'Publish the message while the rule runs, or change the schedule of the rule.']
    );
    assert.deepEqual(await textsOf(broker, { ...QUESTION, at: during }), []);
    await clock.advance('4m');
    const between = clock.now() + 1;
    await clock.advance('6m');
    assert.deepEqual(await textsOf(broker, { ...QUESTION, at: between }), [waited]);
    assert.match(
      (await textsOf(broker, QUESTION))[0],
      /^Rule "hot" was not running until \S+Z: waiting for its schedule\.$/
    );
    await clock.advance('4m');
    await broker.streams.rules.stop('hot');
    const stopped = 'Rule "hot" is not running: stopped by an operator or the app.';
    assert.equal((await textsOf(broker, QUESTION))[0], stopped, 'it was stopped while it waited');
  });

  it('does not say that an operator stopped a rule over streams that an import has restarted', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    const statement = (topic: string) => `CREATE STREAM s () WITH (TYPE="mqtt", DATASOURCE="${topic}", FORMAT="json")`;
    await broker.streams.create(statement('a/+'));
    await broker.streams.rules.create({ id: 'hot', sql: 'SELECT t FROM s', actions: [() => undefined] });
    await clock.advance('1m');
    const { startedAt } = await broker.streams.rules.status('hot');
    await broker.streams.import({ streams: { s: statement('a/#') }, tables: {}, rules: {} });
    assert.ok((await broker.streams.rules.status('hot')).startedAt > startedAt, 'it was restarted');
    await clock.advance('1m');
    assert.deepEqual(await textsOf(broker, QUESTION), []);
  });

  it('names no stop of a rule over streams whose rows were held while it was replaced', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const { rules } = broker.streams;
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    const actions = [() => undefined];
    await rules.create({ id: 'hot', sql: 'SELECT t FROM s', actions });
    await rules.restart('hot');
    await rules.update('hot', { sql: 'SELECT t FROM s WHERE t > 1', actions });
    assert.deepEqual(await textsOf(broker, QUESTION), []);
  });

  it('leaves out the stops and errors of a deleted rule whose id another rule has', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    broker.on('error', () => undefined);
    const { rules } = broker.streams;
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="a/+", FORMAT="json")');
    const events = { id: 'hot', sql: 'SELECT abs(payload) AS t FROM "a/+"', actions: [] };
    const streams = { id: 'cold', sql: 'SELECT t FROM s', actions: [() => undefined] };
    await broker.rules.create(events);
    await rules.create(streams);
    await broker.publish('a/1', 'no json');
    await clock.advance('1s');
    await broker.rules.update('hot', { isEnabled: false });
    await rules.stop('cold');
    assert.equal(
      (await textsOf(broker, { topic: 'a/1' })).some((text) => text.includes('"hot"')),
      true
    );
    await broker.rules.delete('hot');
    await rules.delete('cold');
    await clock.advance('1s');
    await broker.rules.create({ ...events, sql: 'SELECT * FROM "a/+"' });
    await rules.create(streams);
    await clock.advance('1s');
    const created = 'was not running until 2026-01-01T00:00:02.000Z: it was created then.';
    for (const rule of ['hot', 'cold'])
      assert.deepEqual(await textsOf(broker, { topic: 'a/1', rule }), [`Rule "${rule}" ${created}`]);
    const all = await textsOf(broker, { topic: 'a/1' });
    assert.deepEqual(
      all.filter((text) => /"(hot|cold)"/.test(text)),
      []
    );
    await rules.stop('cold');
    assert.equal((await textsOf(broker, { topic: 'a/1', rule: 'cold' })).length, 1);
  });
});

describe('The condition of a rule', () => {
  it('comes after a payload that could not be decoded, because of which it was not met', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await broker.rules.create({ id: 'hot', sql: 'SELECT * FROM "a" WHERE payload.t > 80', actions: [] });
    const codes = async () => (await broker.monitor.why({ topic: 'a', rule: 'hot' })).causes.map(({ code }) => code);
    for (let number = 0; number < 3; number++) {
      await broker.publish('a', "{'t': 95}");
      await clock.advance(70);
      assert.deepEqual((await codes())[0], 'payload_invalid');
    }
    assert.equal((await codes())[1], 'where_false');
    await clock.advance('1m');
    await broker.publish('a', '{"t": 5}');
    assert.equal((await codes())[0], 'where_false', 'a later message');
  });

  it('shows the condition of a rule with the hint that double quotes are for names of columns', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const sql = 'SELECT * FROM "a" WHERE payload.kind = "alarm"';
    await broker.rules.create({ id: 'kind', sql, actions: [] });
    await broker.publish('a', '{"kind": "alarm"}');
    assert.deepEqual(await textsOf(broker, { topic: 'a', rule: 'kind' }), [
      'The condition of rule "kind" was not met: "alarm" in double quotes is a column that does not exist; ' +
        'put strings in single quotes: \'alarm\'; payload.kind = "alarm".'
    ]);
  });

  it('shows a condition with the time of another message if no example is of the time of the question', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await broker.rules.create({ id: 'hot', sql: 'SELECT * FROM "a" WHERE payload.t > 80', actions: [] });
    await broker.publish('a', '{"t": 70}');
    const at = clock.now() + 1;
    await clock.advance('1m');
    await broker.rules.update('hot', { sql: 'SELECT * FROM "a" WHERE payload.t > 60' });
    await broker.publish('a', '{"t": 50}');
    const { causes, isComplete } = await broker.monitor.why({ topic: 'a', rule: 'hot', at });
    assert.deepEqual(
      causes.map(({ text }) => text),
      [
        'The condition of rule "hot" may not have been met: another message, at 2026-01-01T00:01:00.000Z, had payload.t = 50.'
      ]
    );
    assert.equal(isComplete, false);
    assert.deepEqual(await textsOf(broker, { topic: 'a', rule: 'hot', at: clock.now() + 1 }), [
      'The condition of rule "hot" was not met: payload.t = 50.'
    ]);
  });
});

describe('A message that a rule publishes', () => {
  it('gives advice about the topic of a refused message, or about rules that publish because of each other', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const sql = 'SELECT payload.dev AS dev FROM "a"';
    await broker.rules.create({ id: 'topic', sql, actions: [republish(`out/\${dev}`, 'x')] });
    await broker.rules.create({ id: 'cycle', sql: 'SELECT * FROM "b/#"', actions: [republish('b/out', 'x')] });
    await broker.publish('a', '{"dev": "a/#"}');
    await broker.publish('b/1', 'x');
    const topic = await firstOf(broker, { topic: 'a', rule: 'topic' });
    assert.match(topic.remedy, /^Correct the topic of the action/);
    const cycle = await firstOf(broker, { topic: 'b/out', rule: 'cycle' });
    assert.match(cycle.remedy, /^Let one of the rules select from other topics/);
  });
});

describe('A placeholder in the topic of a rule', () => {
  it('names the placeholder for which a message had no value, and the topic to which the rule has published', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await using device = await kit.connect({ clientId: 'device' });
    await using panel = await kit.connect({ clientId: 'panel' });
    await panel.subscribe(['out/kiln', 'in/#'], { qos: 1 });
    const sql = 'SELECT payload.name AS name FROM "in/#"';
    await broker.rules.create({ id: 'up', sql, actions: [republish(`out/\${name}`, 'x')] });
    const asked = [
      { topic: 'in/1', rule: 'up' },
      { topic: 'out/kiln', clientId: 'panel' }
    ];
    await device.publish('in/1', '{"name": "oven"}', { qos: 1 });
    for (const question of asked) assert.deepEqual(await textsOf(broker, question), []);
    await clock.advance('1m');
    const at = clock.now() + 1;
    for (let number = 0; number < 3; number++) await device.publish('in/1', '{"nam": "kiln"}', { qos: 1 });
    await clock.advance('1m');
    const text =
      'Rule "up" published to a topic with a placeholder that has no value: ' +
      '"name" is missing, so the message was published to "out/undefined"';
    const ends = ['.', '; the rule publishes to "out/kiln".'];
    for (const [index, question] of asked.entries())
      for (const one of [question, { ...question, at }, { ...question, publisher: 'device' }]) {
        const { code, text: found, count } = await firstOf(broker, one);
        assert.deepEqual([code, found, count], ['field_missing', text + ends[index], 1]);
      }
    assert.deepEqual(await textsOf(broker, { topic: 'in/2', rule: 'up' }), [], 'another topic');
  });
});

describe('A bridge that is not connected', () => {
  it('names a bridge with the error of its connection and advice about its server', async () => {
    const { broker: far, url } = await server();
    await far.stop();
    const near = await createBroker().start();
    const link = bridge(near, { name: 'north', url, out: [{ filter: 'up/#', qos: 1 }], backOff: 1, maxBackOff: 2 });
    await until(() => link.lastError !== undefined);
    await near.publish({ topic: 'up/1', payload: 'x', qos: 1 });
    for (const question of [{ topic: 'up/1' }, { topic: 'up/1', clientId: '$bridge/north' }]) {
      const { code, text, remedy } = await firstOf(near, question);
      assert.equal(code, 'offline_queued');
      assert.match(text, /^Bridge "north" is not connected to its server, .* at place 1; .*ECONNREFUSED/);
      assert.match(remedy, /^Check the server/);
    }
    await link.stop();
    const stopped = await firstOf(near, { topic: 'up/1' });
    assert.match(stopped.text, /; it is stopped\.$/);
    assert.equal(stopped.remedy, 'Start the bridge.');
    link.close();
    await near.stop();
  });
});

describe('A bridge that brings messages', () => {
  it('names the bridge to receivers of its topics while it is not connected, with the reason, and afterwards', async () => {
    await using pair = await Pair.open({ name: 'north', in: [{ filter: 'down/#', qos: 1, localPrefix: 'site/' }] });
    const { near, far, link } = pair;
    const panel = await near.connect({ clientId: 'panel' });
    await panel.subscribe('site/#', { qos: 1 });
    const question = { topic: 'site/down/1', clientId: 'panel' };
    assert.deepEqual(await textsOf(near, question), []);
    await link.stop();
    const { code, text, remedy } = await firstOf(near, question);
    assert.equal(code, 'bridge_disconnected');
    assert.match(
      text,
      /^Bridge "north" is not connected to its server: it brings "site\/down\/1", .*; it is stopped\.$/
    );
    assert.equal(remedy, 'Start the bridge.');
    assert.deepEqual(await textsOf(near, { ...question, topic: 'site/up' }), [], 'another topic');
    let isAllowed = false;
    far.hook('authenticate', () => isAllowed);
    const at = Date.now();
    link.start();
    await until(() => link.lastError !== undefined);
    const refused = await firstOf(near, question);
    assert.match(refused.text, /^Bridge "north" is not connected .* since \S+Z; (?!it is stopped)/);
    assert.match(refused.remedy, /^Check the server/);
    isAllowed = true;
    await connected(near, link);
    const over = await firstOf(near, { ...question, at });
    assert.match(over.text, /^Bridge "north" was not connected to its server until \S+Z: it brings/);
    assert.match(over.remedy, /^The bridge is connected again/);
    await panel.disconnect();
  });
});

describe('A bridge that loses messages', () => {
  it('names a full queue with the options of the bridge, and that the bridge is not connected', async () => {
    const { broker: far, url } = await server();
    await far.stop();
    const near = await createBroker().start();
    const out = [{ filter: 'up/#', qos: 1 }] as const;
    const link = bridge(near, { name: 'north', url, out, maxQueue: 2, backOff: 1, maxBackOff: 2 });
    await until(() => link.lastError !== undefined);
    for (let number = 1; number <= 3; number++) await near.publish(`up/${number}`, 'x', { qos: 1 });
    for (const question of [{ topic: 'up/1' }, { topic: 'up/1', clientId: '$bridge/north' }]) {
      const [full, offline, ...others] = (await near.monitor.why(question)).causes;
      assert.match(full.text, /^The queue of bridge "north" was full, so a message to topic "up\/1" was dropped/);
      assert.match(full.remedy, /`maxQueue` and `maxQueueBytes`/);
      assert.match(offline.text, /^Bridge "north" is not connected to its server: .*ECONNREFUSED/);
      assert.match(offline.remedy, /^Check the server/);
      assert.deepEqual([full.code, offline.code, others], ['queue_full', 'bridge_disconnected', []]);
    }
    await link.stop();
    const [, stopped] = (await near.monitor.why({ topic: 'up/1' })).causes;
    assert.equal(stopped.text, 'Bridge "north" is not connected to its server: it is stopped.');
    link.close();
    await near.stop();
  });

  it('names the reason code with which the server of the bridge has refused a message', async () => {
    for (const qos of [1, 2] as const) {
      await using pair = await Pair.open({ name: 'north', out: [{ filter: 'up/#', qos }] });
      const { near, far, link } = pair;
      far.hook('authorizePublish', () => false);
      await near.publish('up/1', 'x', { qos });
      await until(() => link.counters.refused === 1 && link.size === 0);
      for (const question of [{ topic: 'up/1' }, { topic: 'up/1', clientId: '$bridge/north' }]) {
        const { isComplete, causes } = await near.monitor.why(question);
        assert.deepEqual(
          causes.map(({ code, text }) => [code, text]),
          [
            [
              'receiver_refused',
              'The server of bridge "north" refused the message to topic "up/1": reason code 0x87 (not authorized).'
            ]
          ]
        );
        assert.match(causes[0].remedy, /^Allow the user of the bridge/);
        assert.equal(isComplete, true);
      }
      const other = await near.monitor.why({ topic: 'up/2', clientId: '$bridge/north' });
      assert.deepEqual(other.causes, [], 'another topic');
    }
  });
});

describe('The topic to which a rule publishes', () => {
  it('shows the condition of the rule because of which nothing was published, and else the topics that it reads', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const sql = 'SELECT payload.t AS t FROM "in/#" WHERE payload.t > 80';
    await broker.rules.create({ id: 'hot', sql, actions: [republish(`out/\${t}/x`, 'x')] });
    const question = { topic: 'out/81/x', rule: 'hot', clientId: 'panel' };
    const none = await firstOf(broker, question);
    assert.equal(none.code, 'from_unmatched');
    assert.match(none.text, /"out\/81\/x": it publishes to this topic; it reads "in\/#"\.$/);
    await broker.publish('in/1', '{"t": 10}');
    const { code, text } = await firstOf(broker, question);
    assert.equal(code, 'where_false');
    assert.match(text, /was not met: payload\.t = 10, so it has published nothing\.$/);
    for (const topic of ['out/81', 'out/x']) {
      const elsewhere = await firstOf(broker, { ...question, topic });
      assert.ok(elsewhere.text.endsWith(`"${topic}": it reads "in/#".`), 'the parts of a template do not overlap');
    }
  });

  it('names the rule that publishes there, and its condition, to a receiver whose question names no rule', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await using panel = await kit.connect({ clientId: 'panel' });
    await panel.subscribe(['out/#', 'other'], { qos: 1 });
    const sql = 'SELECT payload.t AS t, topic FROM "in/#" WHERE payload.t > 80';
    await broker.rules.create({ id: 'u4', sql, actions: [republish('out/hot', 'x')] });
    await broker.rules.create({ id: 'any', sql, actions: [republish(`\${topic}`, 'x')] });
    const question = { topic: 'out/hot', clientId: 'panel' };
    assert.deepEqual(await textsOf(broker, question), []);
    await clock.advance('1m');
    const at = clock.now() + 1;
    await broker.publish('in/1', '{"t": 10}');
    const text = 'The condition of rule "u4" was not met: payload.t = 10; the rule publishes to "out/hot".';
    for (const asked of [question, { ...question, at }, { topic: 'out/hot' }])
      assert.deepEqual(await textsOf(broker, asked), [text]);
    await clock.advance('1m');
    assert.deepEqual(await textsOf(broker, { ...question, at: at + 30_000 }), [], 'no example of that time');
    assert.deepEqual(await textsOf(broker, { topic: 'other', clientId: 'panel' }), [], 'no rule publishes there');
    assert.deepEqual(
      (await textsOf(broker, { topic: 'out/hot', clientId: 'gone' })).filter((one) => one === text),
      [],
      'another cause is found'
    );
  });

  it('names the stops and errors of the rule that publishes there, to a receiver whose question names no rule', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    broker.on('error', () => undefined);
    await using panel = await kit.connect({ clientId: 'panel' });
    await panel.subscribe('out/#', { qos: 1 });
    const question = { topic: 'out/hot', clientId: 'panel' };
    const end = 'the rule publishes to "out/hot".';
    const sql = 'SELECT abs(payload) AS t FROM "in/#"';
    await broker.rules.create({ id: 'hot', sql, actions: [republish('out/hot', 'x')] });
    await clock.advance('1m');
    await broker.rules.update('hot', { isEnabled: false });
    assert.deepEqual(await textsOf(broker, question), [`Rule "hot" is not running: it is disabled; ${end}`]);
    await clock.advance('1m');
    const during = clock.now() - 30_001;
    await broker.rules.update('hot', { isEnabled: true });
    assert.deepEqual(await textsOf(broker, question), [
      `Rule "hot" was not running until 2026-01-01T00:02:00.000Z: it was disabled; ${end}`
    ]);
    assert.deepEqual(await textsOf(broker, { ...question, at: during }), [
      `Rule "hot" is not running: it is disabled; ${end}`
    ]);
    assert.deepEqual(await textsOf(broker, { ...question, at: during - 60_000 }), [], 'before the stop');
    await clock.advance('1m');
    await broker.publish('in/1', 'text');
    await clock.advance(1);
    const [failed, stopped] = (await broker.monitor.why(question)).causes;
    assert.deepEqual([failed.code, failed.kind, failed.evidence.topic], ['function_failed', 'recorded', 'in/1']);
    assert.match(failed.text, /^A function of rule "hot" failed: .*; the rule publishes to "out\/hot"\.$/);
    assert.equal(stopped.code, 'rule_stopped');
    assert.deepEqual(await textsOf(broker, { ...question, clientId: undefined, topic: 'out/cold' }), []);
  });

  it('names the stop of the feature rules to a receiver whose question names no rule, and no stop of another time', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await using panel = await kit.connect({ clientId: 'panel' });
    await panel.subscribe('out/#', { qos: 1 });
    const question = { topic: 'out/hot', clientId: 'panel' };
    await broker.rules.create({ id: 'hot', sql: 'SELECT * FROM "in/#"', actions: [republish('out/hot', 'x')] });
    await clock.advance('1m');
    await broker.features.stop('rules');
    await broker.publish('in/1', 'x');
    const at = clock.now() + 30_001;
    const stopped = 'the feature `rules` is stopped since 2026-01-01T00:01:00.000Z: start it with';
    const [lasting] = await textsOf(broker, question);
    assert.equal(
      lasting,
      `Rule "hot" is not running: ${stopped} \`embermq ctl plugins load rules\`; the rule publishes to "out/hot".`
    );
    await clock.advance('1m');
    await broker.features.start('rules');
    await clock.advance('1m');
    const over = /the feature `rules` was stopped from .* until 2026-01-01T00:02:00.000Z; the rule publishes to/;
    for (const asked of [question, { ...question, at }]) {
      const { text, remedy } = await firstOf(broker, asked);
      assert.match(text, over);
      assert.match(remedy, /^The rule runs again: publish the message again/);
    }
    for (const time of [at - 60_000, at + 60_000])
      assert.deepEqual(await textsOf(broker, { ...question, at: time }), [], 'it was running');
  });

  it('names the rule over streams whose sink publishes there, and why it has not', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    await using panel = await kit.connect({ clientId: 'panel' });
    await panel.subscribe('out/#', { qos: 1 });
    const question = { topic: 'out/7/hot', clientId: 'panel' };
    const { rules } = broker.streams;
    await broker.streams.create('CREATE STREAM s (t BIGINT) WITH (TYPE="mqtt", DATASOURCE="in/+", FORMAT="json")');
    const mqtt = { topic: 'out/{{.t}}/hot' };
    await rules.create({ id: 'hot', sql: 'SELECT t FROM s WHERE t > 80', actions: [{ mqtt }] });
    await rules.create({ id: 'far', sql: 'SELECT t FROM s WHERE t > 80', actions: [{ log: {} }] });
    const { causes, isComplete } = await broker.monitor.why(question);
    assert.deepEqual([causes, isComplete], [[], false], 'its inputs are only sampled');
    await broker.publish('in/1', '{"t": 10}');
    await clock.advance('1s');
    assert.deepEqual(await textsOf(broker, question), [
      'The condition of rule "hot" was not met: t = 10; the rule publishes to "out/7/hot".'
    ]);
    await rules.stop('hot');
    const [first] = await textsOf(broker, question);
    assert.equal(
      first,
      'Rule "hot" is not running: stopped by an operator or the app; the rule publishes to "out/7/hot".'
    );
    await rules.start('hot');
    const [other] = (await broker.monitor.why({ ...question, rule: 'hot' })).causes;
    assert.equal(other.code, 'rule_stopped');
  });
});
