import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { webHook } from '../../adapters/webhook/index.ts';
import { MOUNTS, RESOURCE, RULE, SQL, serveRules } from '../support/rules.ts';

/** A refused request: its code, in both forms of errors, and its message. */
type Refusal = readonly [method: string, path: string, body: unknown, code: number, message: RegExp];

const republish = (params: object) => ({ ...RULE, actions: [{ name: 'republish', params }] });
const COMPLETE = { target_topic: 'a', target_qos: 0, payload_tmpl: '' };

const REFUSALS: readonly Refusal[] = [
  ['POST', '/rules', {}, 400, /^Bad Arguments: required_field_missing: the parameter "rawsql" is missing$/],
  [
    'POST',
    '/rules',
    { rawsql: SQL },
    400,
    /^Bad Arguments: required_field_missing: the parameter "actions" is missing$/
  ],
  ['POST', '/rules', { ...RULE, rawsql: 5 }, 400, /^Bad Arguments: invalid_data_type: the parameter "rawsql"/],
  ['POST', '/rules', [], 400, /^Bad Arguments: invalid_data_type: the body/],
  [
    'POST',
    '/rules',
    { ...RULE, rawsql: 'SELECT *\nFORM "t"' },
    400,
    /^Bad Arguments: parse_error: .* at line 2, column \d+\n/
  ],
  [
    'POST',
    '/rules',
    { ...RULE, rawsql: 'SELECT # FROM "t"' },
    400,
    /^Bad Arguments: parse_error: .* at line 1, column 8\n/
  ],
  ['POST', '/rules', { ...RULE, enabled: 'yes' }, 400, /^Bad Arguments: invalid_enabled: the parameter "enabled"/],
  [
    'POST',
    '/rules',
    { ...RULE, on_action_failed: 'x' },
    400,
    /^Bad Arguments: invalid_on_failed: .*"on_action_failed"/
  ],
  ['POST', '/rules', { ...RULE, id: '' }, 400, /^Bad Arguments: .*id/],
  ['POST', '/rules', { ...RULE, id: 'a b' }, 400, /^Bad Arguments: .*id/],
  ['POST', '/rules', { ...RULE, id: 'rule:one' }, 400, /^Already Exists$/],
  ['POST', '/rules', { ...RULE, actions: ['inspect'] }, 400, /^Bad Arguments: invalid_data_type: .*"actions\.0"/],
  ['POST', '/rules', { ...RULE, actions: [{}] }, 400, /^Bad Arguments: required_field_missing: .*"actions\.0\.name"/],
  [
    'POST',
    '/rules',
    { ...RULE, actions: [{ name: 'inspekt' }] },
    400,
    /^Action inspekt Not Found; did you mean "inspect"\?$/
  ],
  [
    'POST',
    '/rules',
    { ...RULE, actions: [{ name: 'inspect', fallbacks: [{ name: 'nothing' }] }] },
    400,
    /^Bad Arguments: unknown action "nothing"/
  ],
  ['POST', '/rules', republish({}), 400, /^Bad Arguments: required_field_missing: .*"target_topic"/],
  [
    'POST',
    '/rules',
    republish({ ...COMPLETE, target_qos: 3 }),
    400,
    /^Bad Arguments: invalid_data_type: .*"target_qos"/
  ],
  [
    'POST',
    '/rules',
    republish({ ...COMPLETE, target_topic: 1 }),
    400,
    /^Bad Arguments: invalid_data_type: .*"target_topic"/
  ],
  [
    'POST',
    '/rules',
    { ...RULE, actions: [{ name: 'send_to_target', params: {} }] },
    400,
    /^Bad Arguments: required_field_missing: .*"\$resource"/
  ],
  [
    'POST',
    '/rules',
    { ...RULE, actions: [{ name: 'send_to_target', params: { $resource: 'resource:none' } }] },
    400,
    /^Bad Arguments: resource_not_initialized: .*"resource:none"/
  ],
  ['POST', '/rules?test', {}, 400, /^Bad Arguments: required_field_missing: .*"rawsql"/],
  ['POST', '/rules?test=2', RULE, 400, /^Bad Arguments: invalid_data_type: .*"test"/],
  ['POST', '/rules?test', { rawsql: 'SELECT' }, 400, /^Bad Arguments: parse_error: /],
  ['POST', '/rules?test', { rawsql: 'SELECT 1 / 0 AS a FROM "t"' }, 400, /^Bad Arguments: /],
  ['POST', '/rules?test', { rawsql: SQL, ctx: 1 }, 400, /^Bad Arguments: invalid_data_type: .*"ctx"/],
  ['POST', '/rules?test', { rawsql: SQL, ctx: { topic: 'sensors/1', payload: '{"t":2}' } }, 404, /^SQL Not Match$/],
  ['POST', '/rules?test', { rawsql: SQL, ctx: { topic: 'others/1', payload: '{"t":30}' } }, 404, /^SQL Not Match$/],
  ['GET', '/rules?_limit=x', undefined, 400, /^Bad Arguments: invalid_data_type: .*"_limit"/],
  ['GET', '/rules?enabled=2', undefined, 400, /^Bad Arguments: invalid_enabled: .*"enabled"/],
  ['GET', '/rules/rule:none', undefined, 404, /^Rule rule:none Not Found$/],
  ['PUT', '/rules/rule:none', { enabled: false }, 404, /^Rule rule:none Not Found$/],
  ['PUT', '/rules/rule:one', { enabled: 1 }, 400, /^Bad Arguments: invalid_enabled: /],
  ['PUT', '/rules/rule:one', { on_action_failed: '' }, 400, /^Bad Arguments: invalid_on_failed: /],
  ['PUT', '/rules/rule:one', { rawsql: 'SELECT' }, 400, /^Bad Arguments: parse_error: /],
  ['PUT', '/rules/rule:one', { actions: [{ name: 'x' }] }, 400, /^Action x Not Found$/],
  ['PUT', '/rules/rule:one', { actions: [{ name: '' }] }, 400, /^Action "" Not Found$/],
  ['PUT', '/rules/rule:none/reset_metrics', undefined, 404, /^Rule rule:none Not Found$/],
  ['GET', '/actions/none', undefined, 404, /^Action none Not Found$/],
  ['GET', '/resource_types/none', undefined, 404, /^Resource Type none Not Found$/],
  ['GET', '/resource_types/none/resources', undefined, 404, /^Resource Type none Not Found$/],
  ['GET', '/resource_types/none/actions', undefined, 404, /^Resource Type none Not Found$/],
  ['POST', '/resources', {}, 400, /^Bad Arguments: required_field_missing: .*"type"/],
  [
    'POST',
    '/resources',
    { type: 'test_tarket', config: {} },
    400,
    /^Resource Type test_tarket Not Found; did you mean "test_target"\?$/
  ],
  ['POST', '/resources', { type: 'test_target' }, 400, /^Bad Arguments: required_field_missing: .*"url"/],
  [
    'POST',
    '/resources',
    { type: 'test_target', config: { url: 'ftp://x' } },
    400,
    /^Bad Arguments: invalid_data_type: .*"url"/
  ],
  ['POST', '/resources', { type: 'test_target', config: 1 }, 400, /^Bad Arguments: invalid_data_type: .*"config"/],
  ['POST', '/resources', { ...RESOURCE, id: 'resource:one' }, 400, /^Already Exists$/],
  ['POST', '/resources', { ...RESOURCE, id: '' }, 400, /^Bad Arguments: .*id/],
  [
    'POST',
    '/resources?test',
    { type: 'test_target', config: {} },
    400,
    /^Bad Arguments: required_field_missing: .*"url"/
  ],
  ['GET', '/resources/resource:none', undefined, 404, /^Resource resource:none Not Found$/],
  ['PUT', '/resources/resource:none', {}, 404, /^Resource resource:none Not Found$/],
  ['PUT', '/resources/resource:one', { config: {} }, 400, /^Bad Arguments: required_field_missing: .*"url"/],
  ['POST', '/resources/resource:none', undefined, 404, /^Resource resource:none Not Found$/],
  ['GET', '/resource_status/resource:none', undefined, 404, /^Resource resource:none Not Found$/],
  ['DELETE', '/resources/resource:one', undefined, 400, /^Bad Arguments: dependency_exists: .*"rule:two"/]
];

for (const { revision, errors } of MOUNTS)
  describe(`With errors: '${errors}', in the revision "${revision}", the rule engine`, () => {
    let served: Awaited<ReturnType<typeof serveRules>>;

    before(async () => {
      served = await serveRules({ revision, errors });
      const { rules } = served.broker;
      await rules.resources.create({ ...RESOURCE, id: 'resource:one' });
      await rules.create({ id: 'rule:one', sql: SQL, actions: RULE.actions });
      const params = { $resource: 'resource:one' };
      await rules.create({ id: 'rule:two', sql: SQL, actions: [{ name: 'send_to_target', params }] });
    });

    after(() => served[Symbol.asyncDispose]());

    /** Send a request that is refused. */
    async function refused(...[method, path, body, code, message]: Refusal): Promise<void> {
      const answer = await served.call(method, `/api${path}`, body);
      assert.match(answer.body?.message ?? answer.text, message);
      assert.deepEqual([answer.status, answer.body.code], [errors === 'documented' ? code : 200, code]);
    }

    for (const refusal of REFUSALS) {
      const [method, path, body, code] = refusal;
      const shown = body === undefined ? '' : ` ${JSON.stringify(body)}`;
      it(`refuses ${method} ${path}${shown} with code ${code}`, () => refused(...refusal));
    }

    it('hints at a possible mistake in a statement that does not match, but not when answering as the original products', async () => {
      const rawsql = 'SELECT qos FROM "t" WHERE clientid = "c_emqx"';
      const { body } = await served.call('POST', '/api/rules?test', { rawsql, ctx: { topic: 't' } });
      const hint = '; "c_emqx" in double quotes is a column that does not exist; put strings in single quotes: ';
      assert.equal(body.message, `SQL Not Match${errors === 'documented' ? `${hint}'c_emqx'` : ''}`);
    });

    it('adds hints at possible mistakes to the outputs of a test', async () => {
      const rawsql = 'FOREACH payload FROM "t"';
      const { body } = await served.call('POST', '/api/rules?test', { rawsql, ctx: { topic: 't', payload: '[1]' } });
      assert.deepEqual([body.data, body.hints.length], [[], 1]);
    });

    it('changes nothing when it refuses a request', async () => {
      const ids = ({ body }: { body: { data: { id: string }[] } }) => body.data.map(({ id }) => id);
      assert.deepEqual(ids(await served.call('GET', '/api/rules')), ['rule:one', 'rule:two']);
      assert.deepEqual(ids(await served.call('GET', '/api/resources')), ['resource:one']);
    });

    it('refuses bodies that are not JSON, and those that are too large, as all operations do', async () => {
      const text = await served.call('POST', '/api/rules', '{');
      const large = await served.call('POST', '/api/rules', { ...RULE, description: 'x'.repeat(1_100_000) });
      if (errors === 'original') assert.deepEqual([text.status, text.text, large.status], [400, 'Bad Request', 400]);
      else assert.deepEqual([text.status, text.body.code, large.status, large.body.code], [400, 109, 413, 108]);
    });

    it('reports that the target of a resource cannot be reached', async () => {
      served.targets.areReachable = false;
      const start = /^Start Resource resource:one Failed/;
      await refused('POST', '/resources/resource:one', undefined, 400, start);
      for (const [path, body] of [
        ['/resources?test', RESOURCE],
        ['/resources?test=true', RESOURCE],
        ['/resources', { ...RESOURCE, test: true }]
      ] as const) {
        const answer = await served.call('POST', `/api${path}`, body);
        assert.deepEqual([answer.status, answer.body.code], [errors === 'documented' ? 400 : 200, 500]);
        const { message } = answer.body;
        if (errors === 'documented') assert.match(message, /^Test Creating Resource Failed: ./);
        else assert.equal(message, 'Test Creating Resource Failed');
      }
      served.targets.areReachable = true;
      assert.equal((await served.call('POST', '/api/resources?test', RESOURCE)).body.code, 0);
    });

    it('answers deletions of unknown objects like those of other records', async () => {
      for (const path of ['/api/rules/rule:none', '/api/resources/resource:none']) {
        const { status, body } = await served.call('DELETE', path);
        if (errors === 'original') assert.deepEqual([status, body], [200, { code: 0 }]);
        else assert.deepEqual([status, body.code], [404, 404]);
      }
    });

    it('refuses requests without credentials', async () => {
      for (const path of ['/api/rules', '/api/resources', '/api/actions', '/api/rule_events'])
        assert.equal((await served.call('GET', path, undefined, {})).status, 401);
    });
  });

describe('The test of a resource over HTTP', () => {
  for (const [what, url, why] of [
    ['a port where nothing listens', 'http://127.0.0.1:1/', /ECONNREFUSED/],
    ['a private address that is not allowed', 'http://127.0.0.1:1/', /127\.0\.0\.1/]
  ] as const)
    it(`answers ${what} with status 400 and code 500, and reports no error of the broker`, async () => {
      const publicOnly = what.includes('private');
      await using served = await serveRules({}, { resources: [webHook({ publicOnly })] });
      served.broker.on('error', ({ error }) => assert.fail(error as Error));
      const { status, body } = await served.call('POST', '/api/resources?test', { type: 'web_hook', config: { url } });
      assert.deepEqual([status, body.code], [400, 500]);
      assert.match(body.message, /^Test Creating Resource Failed: /);
      assert.match(body.message, why);
      assert.deepEqual((await served.call('GET', '/api/resources')).body.data, []);
    });
});
