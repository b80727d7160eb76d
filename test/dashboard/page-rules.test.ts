// The parts of the pages of rules that need no browser.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  copiedActions,
  eventOf,
  failingAction,
  type LiveRule,
  missingIn,
  outputsOf,
  paramOf,
  secretsIn,
  textOfParam,
  topicsIn,
  wildcardTopicIn,
  withLive
} from '../../adapters/dashboard/page/model/rules.ts';
import { exampleEvent, topicOf } from '../../adapters/dashboard/page/model/sample-event.ts';
import { compileRule } from '../../lib/rules/index.ts';

describe('Rules', () => {
  it('finds the placeholders of an action that the statement does not output', () => {
    const of = (name: string) => `\${${name}}`;
    const params = {
      target_topic: `to/${of('clientid')}`,
      payload_tmpl: `${of('payload.t')} ${of('t')}`,
      target_qos: 0
    };
    const missing = (sql: string) => missingIn(params, outputsOf(sql)).join(' ');
    assert.equal(missing('SELECT payload.t AS t FROM "a"'), 'clientid payload');
    assert.equal(missing('SELECT payload.t, clientid, max(1, 2) as t FROM "a"'), '');
    assert.equal(missing('SELECT *, 1 AS n FROM "a"'), '');
    assert.equal(missing('FOREACH payload.list AS t DO t FROM "a"'), '');
    assert.equal(missing('select \'a, b\' as t, clientid as payload.c from "a"'), 'clientid');
    assert.equal(missing('SELECT'), '');
  });

  it('finds a wildcard in the topic of a republish action, outside of placeholders', () => {
    const found = (target_topic: unknown, name = 'republish') => wildcardTopicIn({ name, params: { target_topic } });
    assert.equal(found('alarms/+/x'), 'alarms/+/x');
    assert.equal(found('alarms/#'), 'alarms/#');
    assert.equal(found(`alarms/\${a+b}/x`), undefined);
    assert.equal(found(undefined), undefined);
    assert.equal(found('alarms/#', 'do_nothing'), undefined);
  });

  it('finds the topics after FROM, also while the statement is not complete', () => {
    assert.deepEqual(topicsIn('SELECT * FROM "a/#", "$events/client_connected" WHERE x = "b"'), [
      'a/#',
      '$events/client_connected'
    ]);
    assert.deepEqual(topicsIn("select a\nfrom 'b'"), ['b']);
    assert.deepEqual(topicsIn('SELECT '), []);
  });

  it('finds the event of a topic in each spelling', () => {
    assert.deepEqual(['a/b', '$events/client/connected', '$events/sys/alarm_activated'].map(eventOf), [
      '$events/message_publish',
      '$events/client_connected',
      '$events/alarm_activated'
    ]);
  });

  it('reads the values of parameters from fields by their types', () => {
    assert.equal(paramOf({ type: 'number' }, '5'), 5);
    assert.equal(paramOf({ type: 'number', enum: [-1, 0] }, '-1'), -1);
    assert.equal(paramOf({ type: 'boolean' }, ''), undefined);
    assert.equal(paramOf({ type: 'string', required: true }, ''), '');
    assert.deepEqual(paramOf({ type: 'object' }, textOfParam({ a: [1] })), { a: [1] });
    assert.deepEqual(
      ['10s', '10', '["a"]'].map((text) => paramOf({ type: 'any' }, text)),
      ['10s', 10, ['a']]
    );
    assert.deepEqual(
      [
        ...secretsIn([
          ['a', { type: 'password' }],
          ['b', {}],
          ['c', { type: 'string', secret: true }],
          ['d', { type: 'object', schema: { e: {}, f: { secret: true } } }]
        ])
      ],
      ['a', 'c', 'f']
    );
  });

  it('copies actions without the secrets of their types, also in fallbacks and in objects', () => {
    const types = [
      { name: 'mine', params: { pin: { secret: true }, tls: { schema: { pem: { secret: true } } }, to: {} } }
    ];
    const action = (fallbacks: readonly object[]) => ({
      name: 'mine',
      params: { pin: '4711', tls: { pem: 'geheim' }, to: 'a', password: 'geheim' },
      fallbacks
    });
    const params = { pin: '<pin>', tls: { pem: '<pem>' }, to: 'a', password: '<password>' };
    assert.deepEqual(
      copiedActions([action([action([]), { name: 'unknown', params: { pin: 1 }, fallbacks: [] }])], types),
      [
        {
          name: 'mine',
          params,
          fallbacks: [
            { name: 'mine', params, fallbacks: [] },
            { name: 'unknown', params: { pin: 1 }, fallbacks: [] }
          ]
        }
      ]
    );
    assert.deepEqual(copiedActions([{ name: 'mine', params: { pin: '******' }, fallbacks: [] }], types)[0].params, {
      pin: '******'
    });
  });

  it('shows the state and the counters of a rule as they change, and the last ones of a deleted rule', () => {
    const action = (id: string) => ({
      id,
      name: 'republish',
      metrics: [{ node: 'n', taken: 0, success: 0, failed: 0 }],
      last_error: undefined as string | undefined,
      fallbacks: []
    });
    const rule = {
      id: 'r',
      enabled: true,
      state: 'connected',
      metrics: [{ node: 'n', matched: 0, no_result: 0, speed_max: 0 }],
      actions: [action('one'), action('new')]
    };
    const live: LiveRule = {
      state: 'idle',
      counters: { matched: 3, passed: 1, exception: 0, noResult: 2, speed: 0.3, speedMax: 0.5 },
      actions: [
        { id: 'one', counters: { taken: 1, success: 0, failed: 1 }, waiting: 4, lastError: 'down', fallbacks: [] }
      ],
      sampledAt: 5,
      sql: 'SELECT 1',
      description: ''
    };
    const { enabled, metrics, actions } = withLive(rule, live);
    assert.equal(enabled, false);
    assert.deepEqual(metrics, [
      { node: 'n', matched: 3, passed: 1, exception: 0, no_result: 2, speed: 0.3, speed_max: 0.5 }
    ]);
    assert.deepEqual(actions[0].metrics, [{ node: 'n', taken: 1, success: 0, failed: 1, waiting: 4 }]);
    assert.equal(actions[1], rule.actions[1]);
    assert.equal(failingAction(rule.actions), undefined);
    assert.equal(failingAction(actions)?.last_error, 'down');
    assert.equal(failingAction([{ ...action('first'), fallbacks: actions }])?.id, 'one');
    assert.equal(withLive(rule, { ...live, state: 'gone' }), rule);
    assert.equal(withLive(rule, undefined), rule);
  });
});

describe('The example of an event for a test', () => {
  const COLUMNS = [
    { name: 'clientid', example: 'c_of_the_interface' },
    { name: 'topic', example: 't/a' },
    { name: 'payload', example: '{"msg": "hello"}' },
    { name: 'qos', example: 1 },
    { name: 'pub_props', example: { 'Content-Type': 'text' } }
  ];
  const example = (sql: string, read: readonly string[], filter?: string): Readonly<Record<string, unknown>> => {
    const event = exampleEvent(sql, COLUMNS, read, filter);
    return typeof event.payload === 'string' && event.payload.startsWith('{')
      ? { ...event, payload: JSON.parse(event.payload) }
      : event;
  };

  it('shows the columns that the statement reads, a topic that FROM matches, and the members of the payload', () => {
    assert.deepEqual(
      example('SELECT payload.a.b AS b, payload.t, clientid FROM "s/+/#"', ['payload', 'clientid'], 's/+/#'),
      {
        clientid: 'client-1',
        topic: 's/1/1',
        payload: { a: { b: 1 }, t: 1 }
      }
    );
    assert.deepEqual(['#', '+/+', 'a'].map(topicOf), ['a/1', '1/1', 'a']);
  });

  it('shows all columns that are not objects while it is not known what the statement reads', () => {
    for (const read of [[], ['*']])
      assert.deepEqual(Object.keys(example('SELECT * FROM "a"', read, 'a')), ['clientid', 'topic', 'payload', 'qos']);
  });

  it('makes comparisons with constants true', () => {
    const sql =
      'SELECT * FROM "a" WHERE payload.a > 20 AND payload.b <= -5 AND payload.c = \'x\' AND payload.d in (7, 8) ' +
      'AND payload.e < 3 AND payload.f != true AND qos >= 2 -- AND payload.z = 1';
    assert.deepEqual(example(sql, ['payload', 'qos'], 'a'), {
      topic: 'a',
      payload: { a: 21, b: -5, c: 'x', d: 7, e: 2, f: false },
      qos: 2
    });
  });

  it('follows aliases, indexes and the elements of FOREACH', () => {
    assert.deepEqual(
      example('SELECT json_decode(payload) AS p FROM "a" WHERE p.list[2].x = 5', ['payload'], 'a').payload,
      { list: [{ x: 5 }, { x: 5 }] }
    );
    assert.deepEqual(
      example('FOREACH payload.sensors AS s DO s.name INCASE s.t > 1 FROM "a"', ['payload'], 'a').payload,
      { sensors: [{ name: 1, t: 2 }] }
    );
    assert.deepEqual(
      example('FOREACH clientid, payload.sensors DO item.name FROM "a"', ['payload', 'clientid'], 'a').payload,
      {
        sensors: [{ name: 1 }]
      }
    );
  });

  it('keeps the members of an object that the statement does not read', () => {
    const { pub_props } = example('SELECT pub_props.\'User-Property\'.a FROM "a"', ['pub_props'], 'a');
    assert.deepEqual(pub_props, { 'Content-Type': 'text', 'User-Property': { a: 1 } });
  });

  it('makes an event for which a typical statement has an output', async () => {
    const sql = 'SELECT payload.value AS value, topic, clientid FROM "sensors/#" WHERE payload.value > 20';
    const event = exampleEvent(sql, COLUMNS, ['payload', 'topic', 'clientid'], 'sensors/#');
    const rule = await compileRule(sql);
    assert.deepEqual(rule.run(event).outputs, [{ value: 21, topic: 'sensors/1', clientid: 'client-1' }]);
  });

  it('takes any text, also one that is nested deeply', () => {
    for (const text of [
      '/*'.repeat(50_000),
      "\\'".repeat(50_000),
      `payload${'.a'.repeat(50_000)}`,
      'payload.a AS payload,'.repeat(5_000),
      '['.repeat(50_000)
    ])
      assert.equal(exampleEvent(text, COLUMNS, ['payload', 'topic'], 'a').topic, 'a', text.slice(0, 40));
  });
});
