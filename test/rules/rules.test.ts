// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of rules
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BrokerError } from '../../lib/index.ts';
import { republish, ruleKit, take } from './support.ts';

describe('Rules', () => {
  it('runs the actions of a rule for each message that its statement selects', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const seen: unknown[] = [];
    const rule = await broker.rules.create({
      sql: 'SELECT payload.x as x, clientid FROM "t/#" WHERE x > 1',
      actions: [(output) => seen.push(output)]
    });
    assert.match(rule.id, /^rule:[0-9a-f]{8}$/);
    assert.deepEqual([rule.state, rule.topics, rule.isPersisted], ['connected', ['t/#'], false]);
    const client = await broker.connect({ clientId: 'dev1' });
    await client.publish('t/a', '{"x": 5}', { qos: 1 });
    await client.publish('t/a', '{"x": 1}', { qos: 1 });
    await client.publish('u/a', '{"x": 5}', { qos: 1 });
    assert.deepEqual(seen, [{ x: 5, clientid: 'dev1' }]);
    const { counters } = (await broker.rules.get(rule.id))!;
    assert.deepEqual([counters.matched, counters.passed, counters.failed, counters.noResult], [2, 1, 1, 1]);
    await client.disconnect();
  });

  it('passes each message of a run of QoS 0 frames to the rules', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    let count = 0;
    await broker.rules.create({ sql: 'SELECT topic FROM "t"', actions: [() => count++] });
    const client = await broker.connect({ clientId: 'dev1' });
    for (let at = 0; at < 100; at++) void client.publish('t', `${at}`);
    await client.publish('t', 'last', { qos: 1 });
    assert.equal(count, 101);
    await client.disconnect();
  });

  it('runs rules once for an event that several of their filters match, in the order of their creation', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const seen: string[] = [];
    await broker.rules.create({ sql: 'SELECT topic FROM "t/#", "t/+", "t/a"', actions: [() => seen.push('first')] });
    await broker.rules.create({ sql: 'SELECT topic FROM "t/a"', actions: [() => seen.push('second')] });
    await broker.rules.create({ sql: 'SELECT topic FROM "#"', actions: [() => seen.push('third')] });
    await broker.publish('t/a', 'x');
    assert.deepEqual(seen, ['first', 'second', 'third']);
  });

  it('selects from other events, and from several at once', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const seen: unknown[] = [];
    await broker.rules.create({
      sql: 'SELECT event, clientid FROM "$events/client_connected", "$events/client_disconnected"',
      actions: [(output) => seen.push(output)]
    });
    await broker.rules.create({ sql: 'SELECT event FROM "$events/#"', actions: [() => seen.push('any')] });
    const client = await broker.connect({ clientId: 'dev1' });
    await client.disconnect();
    await kit.clock.advance('1s');
    const named = seen.filter((each) => each !== 'any');
    assert.deepEqual(named, [
      { event: 'client.connected', clientid: 'dev1' },
      { event: 'client.disconnected', clientid: 'dev1' }
    ]);
    assert.ok(seen.length - named.length > 2, 'CONNACK is an event, too');
  });

  it('selects messages with `$events/message_publish`, but never those of `$SYS`', async () => {
    await using kit = await ruleKit();
    const seen: unknown[] = [];
    await kit.broker.rules.create({
      sql: 'SELECT topic FROM "$events/message_publish", "$SYS/#"',
      actions: [(output) => seen.push(output)]
    });
    await kit.broker.publish('t', 'x');
    await kit.clock.advance('2m');
    assert.deepEqual(seen, [{ topic: 't' }]);
  });

  it('changes a rule without losing an event, and keeps its counters', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const seen: string[] = [];
    const { id } = await broker.rules.create({ sql: 'SELECT topic FROM "a"', actions: [() => seen.push('before')] });
    await broker.publish('a', 'x');
    const changing = broker.rules.update(id, {
      sql: 'SELECT topic FROM "a", "b"',
      actions: [() => seen.push('after')]
    });
    let published = 1;
    while (!seen.includes('after')) {
      await broker.publish('a', 'x');
      published++;
    }
    const changed = await changing;
    await broker.publish('b', 'x');
    assert.equal(seen.length, published + 1);
    assert.deepEqual(changed.topics, ['a', 'b']);
    assert.equal((await broker.rules.get(id))!.counters.matched, published + 1);
  });

  it('passes no events to a disabled rule, and keeps its counters', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const { id } = await broker.rules.create({ id: 'mine', sql: 'SELECT topic FROM "a"', actions: ['do_nothing'] });
    await broker.publish('a', 'x');
    assert.equal((await broker.rules.update(id, { isEnabled: false })).state, 'idle');
    await broker.publish('a', 'x');
    const stopped = (await broker.rules.get(id))!;
    assert.deepEqual([stopped.counters.matched, stopped.actions[0].counters.success], [1, 1]);
    assert.equal((await broker.rules.update(id, { isEnabled: true })).state, 'connected');
    await broker.publish('a', 'x');
    assert.equal((await broker.rules.get(id))!.actions[0].counters.success, 2);
  });

  it('ends a rule when it is deleted', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    let count = 0;
    const { id } = await broker.rules.create({ sql: 'SELECT topic FROM "a"', actions: [() => count++] });
    const outputs = broker.rules.outputs(id);
    const first = take(outputs, 5);
    await broker.publish('a', 'x');
    assert.equal(await broker.rules.delete(id), true);
    assert.equal(await broker.rules.delete(id), false);
    await broker.publish('a', 'x');
    assert.equal(count, 1);
    assert.deepEqual(await first, [{ topic: 'a' }]);
    assert.equal(await broker.rules.get(id), undefined);
  });

  it('passes outputs to iterables', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    await broker.rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [] });
    await broker.rules.create({
      id: 'two',
      sql: 'FOREACH json_decode(payload) as e DO e.v as v FROM "b"',
      actions: []
    });
    const all = broker.rules.outputs();
    const one = broker.rules.outputs('one');
    const taken = [take(all, 3), take(one, 1)];
    await broker.publish('a', 'x');
    await broker.publish('b', '[{"v": 1}, {"v": 2}]');
    assert.deepEqual(await Promise.all(taken), [[{ topic: 'a' }, { v: 1 }, { v: 2 }], [{ topic: 'a' }]]);
  });

  it('passes outputs to an iterable that was created before the first rule', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const outputs = broker.rules.outputs('one');
    await broker.rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [] });
    await broker.publish('a', 'x');
    assert.deepEqual(await take(outputs, 1), [{ topic: 'a' }]);
  });

  it('passes no more outputs to an iterable that is ended while it is read', async () => {
    await using kit = await ruleKit();
    const outputs = kit.broker.rules.outputs();
    const reading = outputs.next();
    await outputs.return!();
    assert.deepEqual(await reading, { value: undefined, done: true });
  });

  it('passes no events to rules while the feature `rules` is stopped', async () => {
    await using kit = await ruleKit();
    const { features, rules } = kit.broker;
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a", "$events/client_connected"', actions: [] });
    assert.equal(await features.stop('rules'), true);
    await kit.broker.publish('a', 'x');
    await kit.connect({ clientId: 'c' });
    assert.equal((await rules.get('one'))?.counters.matched, 0);
    assert.equal(await features.start('rules'), true);
    await kit.broker.publish('a', 'x');
    await kit.connect({ clientId: 'd' });
    assert.equal((await rules.get('one'))?.counters.matched, 2);
  });

  it('measures the speed of a rule every ten seconds from the first match on', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const { id } = await broker.rules.create({ sql: 'SELECT topic FROM "a"', actions: [] });
    await kit.clock.advance('60s');
    for (const count of [20, 0, 30]) {
      for (let at = 0; at < count; at++) await broker.publish('a', 'x');
      await kit.clock.advance('10s');
    }
    const { speed, speedMax, speedLast5m, matched } = (await broker.rules.get(id))!.counters;
    assert.deepEqual([speed, speedMax, speedLast5m, matched], [3, 3, 1.67, 50]);
    await broker.rules.resetCounters(id);
    assert.equal((await broker.rules.get(id))!.counters.matched, 0);
  });

  it('reports the failures of a statement once a minute', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const errors: string[] = [];
    broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    const { id } = await broker.rules.create({ id: 'r', sql: 'SELECT 1 + topic as x FROM "a"', actions: [] });
    for (let at = 0; at < 3; at++) await broker.publish('a', 'x');
    assert.equal(errors.length, 1);
    assert.match(errors[0], /^rule r: SELECT: .*/);
    await kit.clock.advance('61s');
    await broker.publish('a', 'x');
    assert.equal(errors.length, 2);
    const { counters } = (await broker.rules.get(id))!;
    assert.deepEqual([counters.exception, counters.failed], [4, 4]);
  });

  it('provides the rule id in the column `metadata`', async () => {
    await using kit = await ruleKit();
    await kit.broker.rules.create({ id: 'r', sql: 'SELECT metadata.rule_id as id FROM "a"', actions: [] });
    const taken = take(kit.broker.rules.outputs(), 1);
    await kit.broker.publish('a', 'x');
    assert.deepEqual(await taken, [{ id: 'r' }]);
  });
});

describe('An invalid rule', () => {
  const cases: readonly [string, object, string, RegExp][] = [
    ['an invalid statement', { sql: 'SELECT * FROM t/a' }, 'SQL_INVALID', /put topics in double quotes/],
    ['an invalid topic filter', { sql: 'SELECT * FROM "a/#/b"' }, 'SQL_INVALID', /line 1, column 15/],
    [
      'an event that does not exist',
      { sql: 'SELECT * FROM "$events/client_conected"' },
      'SQL_INVALID',
      /does not match any event; did you mean "\$events\/client_connected"\?/
    ],
    [
      'an event with no similar name',
      { sql: 'SELECT * FROM "$events/x"' },
      'SQL_INVALID',
      /the events are message_publish, /
    ],
    ['a function that does not exist', { sql: 'SELECT uper(topic) FROM "a"' }, 'SQL_INVALID', /did you mean upper/],
    ['a statement that is not a string', { sql: 5 }, 'RULE_INVALID', /sql: expected a statement/],
    ['no statement', { sql: undefined }, 'RULE_INVALID', /sql/],
    ['no actions', { actions: undefined }, 'RULE_INVALID', /actions/],
    ['an unknown action', { actions: ['republsh'] }, 'ACTION_NOT_FOUND', /did you mean "republish"/],
    ['a parameter that is missing', { actions: [{ name: 'republish', params: {} }] }, 'PARAM_REQUIRED', /target_topic/],
    [
      'a parameter of the wrong type',
      { actions: [republish('a', 'b', { target_qos: 3 })] },
      'PARAM_INVALID',
      /target_qos/
    ],
    ['a wrong mode', { onActionFailed: 'retry' }, 'RULE_INVALID', /onActionFailed/],
    ['enabled that is not a boolean', { enabled: 'yes' }, 'RULE_INVALID', /isEnabled/],
    ['an invalid id', { id: 'a b' }, 'RULE_INVALID', /id/],
    ['fallbacks without end', { actions: [nested(12)] }, 'RULE_INVALID', /10 levels/],
    ['too many actions', { actions: new Array(101).fill('do_nothing') }, 'RULE_INVALID', /100 actions/]
  ];
  for (const [what, input, code, message] of cases)
    it(`refuses ${what}`, async () => {
      await using kit = await ruleKit();
      const rule = { sql: 'SELECT * FROM "a"', actions: ['do_nothing'], ...input };
      await assert.rejects(kit.broker.rules.create(rule as never), (error: BrokerError) => {
        assert.equal(error.code, code, error.message);
        assert.match(error.message, message);
        return true;
      });
      assert.deepEqual(await kit.broker.rules.list(), []);
    });

  it('refuses a rule with an id that is in use', async () => {
    await using kit = await ruleKit();
    const rule = { id: 'r', sql: 'SELECT * FROM "a"', actions: [] };
    await kit.broker.rules.create(rule);
    await assert.rejects(kit.broker.rules.create(rule), { code: 'RULE_EXISTS' });
  });

  it('refuses a change of a rule that does not exist', async () => {
    await using kit = await ruleKit();
    await assert.rejects(kit.broker.rules.update('r', {}), { code: 'RULE_NOT_FOUND' });
  });

  it('refuses an invalid change, and leaves the rule unchanged', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const { id } = await broker.rules.create({ sql: 'SELECT topic FROM "a"', actions: ['do_nothing'] });
    await assert.rejects(broker.rules.update(id, { sql: 'SELECT' }), { code: 'SQL_INVALID' });
    await assert.rejects(broker.rules.update(id, { actions: ['unknown'] }), { code: 'ACTION_NOT_FOUND' });
    await broker.publish('a', 'x');
    const { sql, actions, state } = (await broker.rules.get(id))!;
    assert.deepEqual([sql, actions[0].counters.success, state], ['SELECT topic FROM "a"', 1, 'connected']);
  });
});

function nested(levels: number): object {
  return { name: 'do_nothing', fallbacks: levels === 0 ? [] : [nested(levels - 1)] };
}

describe('A rule of the options', () => {
  it('names the rule of the options in the error that refuses it', async () => {
    const rules = [{ id: 'hot', sql: 'SELEC', actions: [] }];
    await assert.rejects(ruleKit({ rules: { rules } }), { code: 'SQL_INVALID', message: /^rule "hot": syntax error/ });
  });
});

describe('A test of a statement', () => {
  it('refuses a statement that is not a string', async () => {
    await using kit = await ruleKit();
    await assert.rejects(kit.broker.rules.test(5 as never), { code: 'RULE_INVALID', field: 'sql' });
  });

  it('returns the output for given columns, without running actions', async () => {
    await using kit = await ruleKit();
    const { rules } = kit.broker;
    assert.deepEqual(await rules.test('SELECT payload.x as x, qos FROM "t/#"', { topic: 't/1', payload: '{"x": 1}' }), {
      result: 'matched',
      isForeach: false,
      outputs: [{ x: 1, qos: 1 }],
      hints: []
    });
    assert.equal((await rules.test('SELECT * FROM "t/#"', { topic: 'u' })).result, 'topic');
    assert.equal((await rules.test('SELECT * FROM "t/#" WHERE qos = 2')).result, 'where');
    const list = await rules.test('FOREACH payload.l FROM "t"', { topic: 't', payload: { l: [1, 2] } });
    assert.deepEqual([list.isForeach, list.outputs], [true, [1, 2]]);
    await assert.rejects(rules.test('SELECT 1 / 0 as x FROM "t"'), { code: 'SQL_FAILED' });
    await assert.rejects(rules.test('SELECT x FROM'), { code: 'SQL_INVALID' });
  });

  it('provides the id of a rule in the column metadata, which * excludes', async () => {
    await using kit = await ruleKit();
    const { rules } = kit.broker;
    assert.deepEqual((await rules.test('SELECT metadata.rule_id FROM "t"')).outputs, [
      { metadata: { rule_id: 'test' } }
    ]);
    assert.deepEqual(
      (await rules.test('SELECT * FROM "t"')).outputs.map((output) => 'metadata' in (output as object)),
      [false]
    );
    const { outputs } = await rules.test('SELECT metadata.rule_id AS id FROM "t"', { metadata: { rule_id: 'r' } });
    assert.deepEqual(outputs, [{ id: 'r' }]);
  });

  for (const [what, sql, payload, hint] of [
    ['a string in double quotes', `FOREACH payload.l INCASE item = "a_1" FROM "t"`, '{"l":["a_1"]}', /'a_1'/],
    [
      'an alias of DO in INCASE',
      `FOREACH payload.l DO item AS x INCASE x = 1 FROM "t"`,
      '{"l":[1]}',
      /x is an alias of DO/
    ],
    ['FOREACH with the JSON text of a list', `FOREACH payload FROM "t"`, '[1,2]', /json_decode/],
    ['FOREACH with JSON text inside JSON', `FOREACH payload.l FROM "t"`, '{"l":"[1]"}', /json_decode/],
    ['a payload with a trailing comma', `SELECT payload.a AS a FROM "t" WHERE a = 1`, '{"a":1,}', /comma/],
    ['a payload that is cut off', `SELECT payload.a AS a FROM "t"`, '{"a":1', /payload is not valid JSON/]
  ] as const)
    it(`gives a hint about ${what}`, async () => {
      await using kit = await ruleKit();
      const { hints } = await kit.broker.rules.test(sql, { topic: 't', payload });
      assert.equal(hints.length, 1, String(hints));
      assert.match(hints[0], hint);
    });

  it('gives no hints for columns and aliases in double quotes, or for payloads that are not JSON at all', async () => {
    await using kit = await ruleKit();
    const { rules } = kit.broker;
    for (const sql of [
      'SELECT "qos" AS "q", "q" FROM "t"',
      'FOREACH payload.l AS "e" DO "e" AS x, "x" AS y INCASE "e" = 1 FROM "t"',
      'FOREACH payload.l INCASE "item" = 1 FROM "t"',
      'SELECT payload."a b" FROM "t"'
    ])
      assert.deepEqual((await rules.test(sql, { topic: 't', payload: 'plain text' })).hints, [], sql);
  });

  it('fills in defaults for the columns of events', async () => {
    await using kit = await ruleKit();
    const { outputs } = await kit.broker.rules.test('SELECT clientid, reason FROM "$events/client_disconnected"');
    assert.deepEqual(outputs, [{ clientid: 'c_emqx', reason: 'normal' }]);
  });
});
