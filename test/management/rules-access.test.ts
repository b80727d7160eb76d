import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker, memoryStore } from 'embermq';
import { serveManagement } from '../support/management.ts';
import { RESOURCE, RULE, SQL, serveRules } from '../support/rules.ts';

const VIEWER = { authorization: `Basic ${Buffer.from('bob:password of bob').toString('base64')}` };
const ADMINISTRATOR = { authorization: `Basic ${Buffer.from('ann:password of ann').toString('base64')}` };

/** Serve a rule `r` and a resource `s`, with an administrator and a viewer. */
async function serveWithUsers() {
  const served = await serveRules({ credentials: 'users' });
  const { rules, users } = served.broker;
  await users.create('ann', 'password of ann', 'administrator');
  await users.create('bob', 'password of bob', 'viewer');
  await rules.resources.create({ ...RESOURCE, id: 's' });
  await rules.create({ id: 'r', sql: SQL, actions: RULE.actions });
  return served;
}

describe('Viewers', () => {
  it('lets viewers read rules and resources, but neither change nor test them', async () => {
    await using served = await serveWithUsers();
    const ask = async (method: string, path: string, body?: unknown) =>
      (await served.call(method, `/api${path}`, body, VIEWER)).status;
    for (const path of [
      '/rules',
      '/rules/r',
      '/resources',
      '/resources/s',
      '/resource_status/s',
      '/actions',
      '/rule_events'
    ])
      assert.equal(await ask('GET', path), 200, path);
    for (const [method, path, body] of [
      ['POST', '/rules', RULE],
      ['POST', '/rules?test', RULE],
      ['PUT', '/rules/r', { enabled: false }],
      ['PUT', '/rules/r/reset_metrics'],
      ['DELETE', '/rules/r'],
      ['POST', '/resources', RESOURCE],
      ['POST', '/resources?test', RESOURCE],
      ['POST', '/resources/s'],
      ['PUT', '/resources/s', {}],
      ['DELETE', '/resources/s']
    ] as const)
      assert.equal(await ask(method, path, body), 403, `${method} ${path}`);
    const { rules } = served.broker;
    assert.deepEqual([(await rules.list()).length, (await rules.resources.list()).length], [1, 1]);
  });
});

describe('The audit log', () => {
  it('records changes of rules and resources without their statements and parameters', async () => {
    await using served = await serveWithUsers();
    const config = { url: 'http://192.0.2.1/', token: 'a secret token' };
    const actions = [{ name: 'inspect', params: { password: 'a secret parameter' } }, { name: 'do_nothing' }];
    const sql = `SELECT 'a secret value' AS x FROM "t"`;
    for (const [method, path, body] of [
      ['POST', '/resources', { type: 'test_target', id: 't', config, description: 'd' }],
      ['POST', '/resources?test', { type: 'test_target', config }],
      ['POST', '/rules', { id: 'q', rawsql: sql, actions }],
      ['POST', '/rules', { rawsql: sql, test: true }],
      ['PUT', '/rules/q', { enabled: false, on_action_failed: 'stop' }],
      ['PUT', '/rules/q/reset_metrics'],
      ['DELETE', '/rules/q'],
      ['DELETE', '/rules/none']
    ] as const)
      await served.call(method, `/api${path}`, body, ADMINISTRATOR);
    const entries = served.broker.monitor.audit.list().entries.toReversed();
    assert.deepEqual(
      entries.map(({ operation, code, parameters }) => [operation, code, parameters]),
      [
        ['create_resource', 0, { id: 't', type: 'test_target' }],
        ['create_resource', 0, { type: 'test_target', test: true }],
        ['create_rule', 0, { id: 'q', actions: ['inspect', 'do_nothing'] }],
        ['create_rule', 0, { test: true }],
        ['update_rule', 0, { id: 'q', enabled: false, on_action_failed: 'stop' }],
        ['reset_metrics', 0, { id: 'q' }],
        ['delete_rule', 0, { id: 'q' }],
        ['delete_rule', 404, { id: 'none' }]
      ]
    );
    assert.doesNotMatch(JSON.stringify(entries), /secret/);
  });
});

describe('Rules and resources of the options of the broker', () => {
  it('shows rules and resources of the options, and refuses to change or delete them', async () => {
    const options = {
      resources: [{ ...RESOURCE, id: 's' }],
      rules: [{ id: 'r', sql: SQL, actions: RULE.actions }]
    };
    await using served = await serveRules({}, options);
    const { call } = served;
    assert.equal((await call('GET', '/api/rules/r')).body.data.state, 'connected');
    assert.equal((await call('GET', '/api/resources/s')).body.data.id, 's');
    for (const [method, path, body] of [
      ['PUT', '/rules/r', { enabled: false }],
      ['DELETE', '/rules/r'],
      ['PUT', '/resources/s', { description: 'x' }],
      ['DELETE', '/resources/s']
    ] as const) {
      const answer = await call(method, `/api${path}`, body);
      assert.deepEqual([answer.status, answer.body.code], [400, 400]);
      assert.match(answer.body.message, /^Bad Arguments: the r\w+ "\w" is in the options of the broker/);
    }
  });
});

describe('The rule engine of a stopped broker', () => {
  it('reports the rule engine as unavailable', async () => {
    const store = memoryStore();
    const broker = createBroker({ store });
    await using server = await serveManagement(broker, { credentials: 'host' });
    for (const path of ['/rules', '/resources', '/rules/r']) {
      const { status, body } = await server.call('GET', `/api${path}`);
      assert.deepEqual([status, body.code], [503, 101], path);
    }
  });
});
