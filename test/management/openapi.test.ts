import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { createBroker } from 'embermq';
import { managementApi, managementApis, type OpenApiDocument } from 'embermq/management';
import { REVISIONS } from '../../adapters/management/revisions.ts';
import { serve, startBroker } from '../support/management.ts';

interface BodySchema {
  readonly properties?: object;
  readonly items?: BodySchema;
}

/** The names of the properties of the body of an operation. */
function bodyOf({ paths }: OpenApiDocument, path: string): string[] {
  const { requestBody } = paths[path].post as {
    readonly requestBody: { readonly content: Readonly<Record<string, { readonly schema: BodySchema }>> };
  };
  const { schema } = requestBody.content['application/json'];
  return Object.keys((schema.items ?? schema).properties ?? {});
}

async function errorsOf(document: OpenApiDocument): Promise<unknown> {
  const { valid, errors = [] } = await new Validator().validate({ ...document });
  return valid ? [] : errors;
}

describe('The OpenAPI document', () => {
  for (const revision of REVISIONS) {
    const document = managementApi(createBroker(), { revision }).openapi();

    it(`produces a valid document for the revision "${revision}"`, async () => {
      assert.deepEqual(await errorsOf(document), []);
      const ids = Object.values(document.paths).flatMap((path) => Object.values(path).map((one) => one.operationId));
      assert.equal(new Set(ids).size, ids.length, 'each operation has a unique id');
    });

    it(`describes as "True if" nothing but booleans for the revision "${revision}"`, () => {
      const wrong: object[] = [];
      JSON.stringify(document, (_, schema) => {
        const type = schema?.type ?? schema?.schema?.type; // a parameter has its schema in a field
        if (/^True if /.test(schema?.description ?? '') && type !== 'boolean') wrong.push(schema);
        return schema;
      });
      assert.deepEqual(wrong, []);
    });
  }

  it('serves the document below the prefix to callers with credentials, and does not list it in the index', async (t) => {
    await using broker = await startBroker();
    const api = managementApi(broker, { prefix: '/api/v4' });
    await using server = await serve(api.node);
    const answer = await server.call('GET', '/api/v4/openapi.json');
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'application/json']);
    assert.deepEqual(answer.body, api.openapi());
    assert.equal((await server.call('GET', '/api/v4/openapi.json', undefined, {})).status, 401);
    const stringify = t.mock.method(JSON, 'stringify');
    assert.equal((await server.call('HEAD', '/api/v4/openapi.json')).status, 200);
    const written = stringify.mock.calls.filter(({ arguments: [value] }) => Object(value).openapi !== undefined);
    assert.equal(written.length, 0, 'the text of the document is kept');
    const { data } = (await server.call('GET', '/api/v4/')).body;
    assert.ok(data.every(({ path }: { path: string }) => path !== '/openapi.json'));
  });

  it('describes the mount: its prefixes, the longest page, and the enabled operations', () => {
    const options = { prefix: ['/one', ''], maxRowLimit: 50, appOperations: false } as const;
    const document = managementApi(createBroker(), options).openapi();
    assert.deepEqual(document.servers, [{ url: '/one' }, { url: '/' }]);
    assert.deepEqual(document.security, [{ basic: [] }]);
    assert.ok(!('/apps' in document.paths));
    const { parameters } = document.paths['/routes'].get as { parameters: { name: string; schema: unknown }[] };
    assert.deepEqual(parameters.find(({ name }) => name === '_limit')?.schema, {
      type: 'integer',
      minimum: 1,
      default: 50,
      maximum: 50
    });
  });

  it('returns the document of one prefix, if there are several revisions', () => {
    const api = managementApis(createBroker(), [{ revision: 'earlier' }, { revision: 'later', prefix: '/api/v4' }]);
    assert.ok('/connections' in api.openapi().paths);
    assert.ok('/clients' in api.openapi('/api/v4').paths);
    assert.throws(() => api.openapi('/api'), { code: 'OPTION_INVALID', field: 'prefix' });
  });

  it('uses the names of the revision, even where other names are accepted', () => {
    const earlier = managementApi(createBroker(), { revision: 'earlier' }).openapi();
    const later = managementApi(createBroker(), { revision: 'later' }).openapi();
    for (const path of ['/mqtt/publish', '/mqtt/subscribe', '/mqtt/unsubscribe', '/mqtt/publish_batch']) {
      assert.deepEqual([path, bodyOf(earlier, path).includes('client_id')], [path, true]);
      assert.deepEqual([path, bodyOf(earlier, path).includes('clientid')], [path, false]);
      assert.deepEqual([path, bodyOf(later, path).includes('client_id')], [path, false]);
    }
  });

  it('asks for no credentials where the interface does not check them', async () => {
    for (const credentials of ['none', 'host'] as const) {
      const document = managementApi(createBroker(), { credentials }).openapi();
      assert.deepEqual(document.security, []);
      assert.deepEqual(await errorsOf(document), []);
    }
  });

  it('describes the answers of the original products, if the mount gives them', async () => {
    const document = managementApi(createBroker(), { errors: 'original' }).openapi();
    assert.deepEqual(await errorsOf(document), []);
    const { responses } = document.components;
    assert.deepEqual(Object.keys(responses), ['Fault400', 'Fault401', 'Fault404', 'Fault500']);
  });
});
