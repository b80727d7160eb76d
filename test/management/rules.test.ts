import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { unreachableSink } from '../rules/app-sink.ts';
import { MOUNTS, NODE, RESOURCE, RULE, SQL, serveRules } from '../support/rules.ts';

const NO_EVENTS = {
  matched: 0,
  speed: 0,
  speed_max: 0,
  speed_last5m: 0,
  passed: 0,
  failed: 0,
  exception: 0,
  no_result: 0
};
const NO_RUNS = { success: 0, failed: 0, taken: 0 };
const START = 1_767_225_600_000;

for (const { revision, errors } of MOUNTS)
  describe(`With errors: '${errors}', in the revision "${revision}", the rule engine`, () => {
    it('creates, shows, lists, changes and deletes rules', async () => {
      await using served = await serveRules({ revision, errors });
      const { broker, call } = served;
      const actions = [
        { name: 'inspect', params: { a: 1 } },
        {
          name: 'republish',
          // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of rules
          params: { target_topic: 'alerts/${t}', target_qos: -1, payload_tmpl: '' },
          fallbacks: [{ name: 'do_nothing', params: {} }]
        }
      ];
      const made = await call('POST', '/api/rules', {
        rawsql: SQL,
        actions,
        description: 'd',
        ...(errors === 'original' ? { other: 1 } : {})
      });
      const { id } = made.body.data;
      assert.match(id, /^rule:[0-9a-f]{8}$/);
      const ids = made.body.data.actions.map((action: { id: string }) => action.id);
      assert.match(ids[0], /^inspect_\d+$/);
      const metrics = [{ node: NODE, ...NO_RUNS }];
      const fallback = {
        ...made.body.data.actions[1].fallbacks[0],
        name: 'do_nothing',
        params: {},
        metrics,
        fallbacks: []
      };
      const rule = {
        id,
        rawsql: SQL,
        for: ['sensors/+'],
        enabled: true,
        on_action_failed: 'continue',
        description: 'd',
        created_at: START,
        state: 'connected',
        metrics: [{ node: NODE, ...NO_EVENTS }],
        actions: [
          { id: ids[0], name: 'inspect', params: { a: 1 }, metrics, fallbacks: [] },
          { id: ids[1], name: 'republish', params: actions[1].params, metrics, fallbacks: [fallback] }
        ]
      };
      assert.deepEqual([made.status, made.body], [200, { code: 0, data: rule }]);
      assert.deepEqual((await call('GET', `/api/rules/${id}`)).body, { code: 0, data: rule });
      assert.deepEqual((await call('GET', '/api/rules/')).body, { code: 0, data: [rule] });

      await broker.publish('sensors/1', '{"t":30}');
      await broker.publish('sensors/1', '{"t":3}');
      const change = { on_action_failed: 'stop', description: 'e', enabled: false };
      const changed = (await call('PUT', `/api/rules/${id}`, change)).body.data;
      const [counters] = changed.metrics;
      assert.deepEqual([counters.matched, counters.passed, counters.failed, counters.no_result], [2, 1, 1, 1]);
      const { on_action_failed, description, enabled, state } = changed;
      assert.deepEqual([on_action_failed, description, enabled, state], ['stop', 'e', false, 'idle']);
      const other = { rawsql: 'SELECT * FROM "a", "$events/client_connected"', actions: [], enabled: true };
      const replaced = (await call('PUT', `/api/rules/${id}`, other)).body.data;
      assert.deepEqual([replaced.for, replaced.actions], [['a', '$events/client_connected'], []]);
      assert.equal(replaced.metrics[0].matched, 2);

      assert.deepEqual((await call('PUT', `/api/rules/${id}/reset_metrics`)).body, { code: 0 });
      assert.equal((await call('GET', `/api/rules/${id}`)).body.data.metrics[0].matched, 0);
      assert.deepEqual((await call('DELETE', `/api/rules/${id}`)).body, { code: 0 });
      assert.deepEqual((await call('GET', '/api/rules')).body.data, []);
    });

    it('creates rules with an id, and finds it however the path is written', async () => {
      await using served = await serveRules({ revision, errors });
      const { call } = served;
      const made = await call('POST', '/api/rules/', { ...RULE, id: 'rule:my.own-1' });
      assert.equal(made.body.data.id, 'rule:my.own-1');
      for (const path of ['rule:my.own-1', 'rule%3Amy.own-1', 'rule%3amy%2eown-1/'])
        assert.equal((await call('GET', `/api/rules/${path}`)).body.data.id, 'rule:my.own-1');
      assert.deepEqual((await call('PUT', '/api/rules/rule%3Amy.own-1/reset_metrics/')).body, { code: 0 });
      assert.deepEqual((await call('DELETE', '/api/rules/rule%3Amy.own-1')).body, { code: 0 });
    });

    it('creates a rule from a record as shown, whose actions have metrics', async () => {
      await using served = await serveRules({ revision, errors });
      const { call } = served;
      const fallbacks = [{ name: 'do_nothing' }];
      const actions = [{ name: 'inspect', params: { a: 1 }, fallbacks }];
      const { data: shown } = (await call('POST', '/api/rules', { rawsql: SQL, actions })).body;
      const { status, body } = await call('POST', '/api/rules', { ...shown, id: 'copy' });
      assert.deepEqual([status, body.code], [200, 0], JSON.stringify(body));
      assert.deepEqual(body.data.actions[0].fallbacks[0].name, 'do_nothing');
    });

    it('shows the number of queued outputs of an action that is a sink, in a record that can be sent back', async () => {
      const sink = unreachableSink();
      await using served = await serveRules({ revision, errors }, {}, [sink]);
      const { broker, call } = served;
      const actions = [{ name: 'app_sink', params: { topic: 't' }, fallbacks: [{ name: 'do_nothing' }] }];
      await call('POST', '/api/rules', { rawsql: 'SELECT * FROM "a"', id: 'r', actions });
      for (const payload of ['1', '2']) await broker.publish('a', payload);
      const { data: shown } = (await call('GET', '/api/rules/r')).body;
      const [{ metrics, fallbacks }] = shown.actions;
      assert.deepEqual([metrics[0].waiting, fallbacks[0].metrics[0].waiting], [2, undefined]);
      assert.equal((await call('POST', '/api/rules', { ...shown, id: 'copy' })).body.code, 0);
    });

    it('evaluates a statement for an event, without creating a rule or running an action', async () => {
      await using served = await serveRules({ revision, errors });
      const { broker, call } = served;
      const ctx = { topic: 'sensors/1', payload: '{"t":30}', unheard_of: 1 };
      const actions = [{ name: 'republish', params: { target_topic: 'x', target_qos: 0, payload_tmpl: '' } }];
      for (const [query, test] of [
        ['?test', {}],
        ['?test=true', {}],
        ['', { test: true }],
        ['', { test: 'true' }],
        ['?test=true', { test: false }]
      ]) {
        const { body } = await call('POST', `/api/rules${query}`, { rawsql: SQL, ctx, actions, ...(test as object) });
        assert.deepEqual(body, { code: 0, data: { t: 30 } });
      }
      const inQuery = `?test&rawsql=${encodeURIComponent(SQL)}`;
      assert.deepEqual((await call('POST', `/api/rules${inQuery}`, { rawsql: 'other', ctx })).body.data, { t: 30 });
      const each = { rawsql: 'FOREACH payload.list AS item INCASE item > 1 FROM "t/#"', test: true };
      const listed = await call('POST', '/api/rules', { ...each, ctx: { payload: { list: [1, 2, 3] } } });
      assert.deepEqual(listed.body, { code: 0, data: [2, 3] });
      assert.deepEqual((await call('POST', '/api/rules', { ...each, ctx: { payload: '{"list":[]}' } })).body.data, []);
      assert.deepEqual((await call('GET', '/api/rules')).body.data, []);
      assert.equal(broker.metrics.counter('messages.publish'), 0);
    });

    it('shows actions, types of resources and events', async () => {
      await using served = await serveRules({ revision, errors });
      const { call } = served;
      const actions = (await call('GET', '/api/actions/')).body.data;
      const names = (list: { name: string }[]) => list.map(({ name }) => name);
      assert.deepEqual(names(actions), [
        'inspect',
        'republish',
        'do_nothing',
        'send_to_target',
        'log',
        'memory',
        'mqtt',
        'nop'
      ]);
      const { params, ...inspect } = actions[0];
      const title = { en: 'Inspect (debug)', zh: '检查 (调试)' };
      const expected = { name: 'inspect', app: 'emqx_rule_engine', for: '$any', types: [], category: 'debug', title };
      assert.deepEqual([params, inspect], [{}, { ...expected, description: inspect.description }]);
      assert.deepEqual((await call('GET', '/api/actions/republish')).body, { code: 0, data: actions[1] });
      assert.deepEqual(actions[1].params.target_qos.enum, [-1, 0, 1, 2]);
      assert.deepEqual(actions[3].params.$resource.required, true);

      const types = (await call('GET', '/api/resource_types/')).body.data;
      assert.deepEqual(names(types), ['test_target']);
      assert.deepEqual((await call('GET', '/api/resource_types/test_target')).body, { code: 0, data: types[0] });
      const { url, token } = types[0].params;
      assert.deepEqual([url.format, url.required, url.secret], ['url', true, undefined]);
      assert.deepEqual([token.type, token.secret, 'isSecret' in token], ['string', true, false]);
      assert.deepEqual(names((await call('GET', '/api/resource_types/test_target/actions')).body.data), [
        'send_to_target'
      ]);

      const events = (await call('GET', '/api/rule_events/')).body.data;
      const topics = events.map(({ event }: { event: string }) => event);
      assert.deepEqual(
        topics.slice(0, 8),
        [
          ...['message_publish', 'message_delivered', 'message_acked', 'message_dropped'],
          ...['client_connected', 'client_disconnected', 'session_subscribed', 'session_unsubscribed']
        ].map((name) => `$events/${name}`)
      );
      for (const event of events) {
        assert.deepEqual(Object.keys(event).sort(), [
          ...['columns', 'description', 'event', 'sql_example', 'test_columns', 'title']
        ]);
        const test = { rawsql: event.sql_example, ctx: event.test_columns, test: true };
        const { status, body } = await call('POST', '/api/rules', test);
        assert.deepEqual([status, body.code], [200, 0], `${event.event}: ${body.message}`);
      }
    });

    it('creates, shows, lists, starts, changes and deletes resources', async () => {
      await using served = await serveRules({ revision, errors });
      const { call, targets } = served;
      const config = { url: 'http://192.0.2.1/', token: 'a secret', extra: [1] };
      const made = await call('POST', '/api/resources', { type: 'test_target', config, description: 'd' });
      const { id } = made.body.data;
      assert.match(id, /^resource:[0-9a-f]{8}$/);
      const shown = { id, type: 'test_target', config: { ...config, token: '******' }, description: 'd' };
      const resource = { ...shown, created_at: START, is_alive: true, waiting: 0 };
      assert.deepEqual([made.status, made.body], [200, { code: 0, data: resource }]);
      assert.deepEqual((await call('GET', '/api/resources/')).body, { code: 0, data: [resource] });
      assert.deepEqual((await call('GET', '/api/resource_types/test_target/resources')).body.data, [resource]);
      const path = `/api/resources/${encodeURIComponent(id)}`;
      const status = (is_alive: boolean) => [{ node: NODE, is_alive }];
      assert.deepEqual((await call('GET', path)).body.data, { ...resource, status: status(true) });

      targets.areReachable = false;
      assert.deepEqual((await call('GET', `/api/resource_status/${id}`)).body, { code: 0, data: { is_alive: false } });
      const down = (await call('GET', path)).body.data;
      assert.deepEqual([down.is_alive, down.status], [false, status(false)]);
      assert.match(down.last_error, /ECONNREFUSED/);
      targets.areReachable = true;
      assert.deepEqual((await call('POST', path)).body, { code: 0 });
      assert.deepEqual((await call('GET', `/api/resource_status/${id}`)).body.data, { is_alive: true });

      assert.deepEqual((await call('PUT', path, { description: 'e' })).body, { code: 0 });
      const other = { url: `${config.url}/path`, token: '******' };
      assert.deepEqual((await call('PUT', path, { config: other })).body, { code: 0 });
      const changed = (await call('GET', path)).body.data;
      assert.deepEqual([changed.description, changed.config], ['e', other]);
      assert.deepEqual((await call('DELETE', path)).body, { code: 0 });
      assert.deepEqual((await call('GET', '/api/resources')).body.data, []);
    });

    it('creates resources with an id, even while their targets cannot be reached, and tests without creating', async () => {
      await using served = await serveRules({ revision, errors });
      const { call, targets } = served;
      assert.deepEqual((await call('POST', '/api/resources?test', RESOURCE)).body, { code: 0 });
      assert.deepEqual((await call('POST', '/api/resources', { ...RESOURCE, test: true })).body, { code: 0 });
      assert.deepEqual((await call('GET', '/api/resources')).body.data, []);
      targets.areReachable = false;
      const made = await call('POST', '/api/resources', { ...RESOURCE, id: 'resource:own' });
      assert.deepEqual([made.body.data.id, made.body.data.is_alive], ['resource:own', false]);
    });
  });
