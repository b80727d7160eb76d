import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { streamsApi } from 'embermq/streams-api';
import { StreamsClient, StreamsError } from 'embermq/streams-api/client';
import { createTestBroker } from 'embermq/testing';
import express from 'express';
import { serve } from '../support/management.ts';

const DDL = { sql: 'CREATE STREAM demo () WITH (DATASOURCE="t/#")' };
const RULE = { id: 'a b', sql: 'SELECT * FROM demo', actions: [{ log: {} }] };

/** The part of an operation of the document that the test of examples reads. */
interface DocumentedOperation {
  readonly parameters?: readonly { readonly name: string; readonly example?: string }[];
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly example?: unknown } } };
  readonly responses: Readonly<Record<string, { readonly content: Readonly<Record<string, { example?: unknown }>> }>>;
}

describe('The interface of streams on a host app', () => {
  it('mounts on Express below a path, with and without a body parser of the app', async () => {
    for (const parser of [express.json(), express.text({ type: '*/*' }), undefined]) {
      const app = express();
      if (parser !== undefined) app.use(parser);
      await using kit = await createTestBroker();
      app.use('/streams-service', streamsApi(kit.broker, { credentials: 'remote' }).node);
      app.get('/own', (_request, response) => void response.send('own'));
      await using server = await serve(app);
      const { call } = server;
      const json = { 'content-type': 'application/json' };
      assert.equal((await call('POST', '/streams-service/streams', DDL, json)).status, 201);
      const { status, text } = await call('POST', '/streams-service/rules', RULE, json);
      assert.deepEqual([status, text], [201, 'Rule a b was created successfully.']);
      assert.deepEqual((await call('GET', '/streams-service/rules', undefined, {})).body, [
        { id: 'a b', status: 'Running' }
      ]);
      assert.equal((await call('GET', '/own', undefined, {})).text, 'own');
    }
  });

  it('explains how to send a body that a parser of the app has read as a form', async () => {
    const app = express();
    app.use(express.urlencoded());
    await using kit = await createTestBroker();
    app.use(streamsApi(kit.broker, { credentials: 'remote' }).node);
    await using server = await serve(app);
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const { status, text } = await server.call('POST', '/streams', DDL, headers);
    assert.equal(status, 400);
    assert.match(text, /send "Content-Type: application\/json"/);
  });

  it('leaves unknown paths to the app with unmatched: "next"', async () => {
    const app = express();
    await using kit = await createTestBroker();
    app.use(streamsApi(kit.broker, { credentials: 'remote', unmatched: 'next' }).node);
    app.get('/own', (_request, response) => void response.send('own'));
    await using server = await serve(app);
    assert.equal((await server.call('GET', '/own', undefined, {})).text, 'own');
    assert.equal((await server.call('GET', '/ping', undefined, {})).status, 200);
  });

  it('answers requests of the Fetch API', async () => {
    await using kit = await createTestBroker();
    const { fetch } = streamsApi(kit.broker, { credentials: 'remote', prefix: '/p' });
    const facts = { remoteAddress: '127.0.0.1' };
    const answer = await fetch(
      new Request('http://127.0.0.1/p/streams', { method: 'POST', body: JSON.stringify(DDL) }),
      facts
    );
    assert.equal(answer.status, 201);
    assert.equal((await fetch(new Request('http://127.0.0.1/p/rules'), {})).status, 401, 'the address is not known');
  });
});

describe('StreamsClient', () => {
  it('reads sentences, JSON and errors', async () => {
    await using kit = await createTestBroker();
    await using server = await serve(streamsApi(kit.broker, { credentials: 'remote' }).node);
    const client = new StreamsClient({ url: `http://127.0.0.1:${server.port}` });
    assert.equal(await client.post('/streams', { body: DDL }), 'Stream demo is created.');
    assert.equal(await client.post('/rules', { body: RULE }), 'Rule a b was created successfully.');
    const [{ id, status }] = await client.get('/rules');
    assert.deepEqual([id, status], ['a b', 'Running']);
    const plan = await client.get('/rules/{id}/explain', { params: { id: 'a b' } });
    assert.equal(plan.name, 'op_2_project');
    assert.equal(
      await client.patch('/rules/{id}/tags', { params: { id: 'a b' }, body: { tags: ['x'] } }),
      'Rule a b tags were updated.'
    );
    assert.equal(await client.delete('/rules/{id}', { params: { id: 'a b' } }), 'Rule a b is dropped.');
    await assert.rejects(client.get('/rules/{id}', { params: { id: 'x' } }), (error: StreamsError) => {
      assert.ok(error instanceof StreamsError);
      assert.deepEqual(
        [error.status, error.code, error.message],
        [404, 1002, 'describe rule error: Rule x is not found.']
      );
      return true;
    });
  });

  it('sends credentials', async () => {
    const credentials = (id: string, secret: string) => (id === '' ? secret === 'token' : secret === `of ${id}`);
    await using kit = await createTestBroker();
    await using server = await serve(streamsApi(kit.broker, { credentials }).node);
    const url = `http://127.0.0.1:${server.port}`;
    const missing = { status: 401, message: 'credentials are needed: HTTP Basic, or a bearer token' };
    await assert.rejects(new StreamsClient({ url }).get('/rules'), missing);
    assert.deepEqual(await new StreamsClient({ url, token: 'token' }).get('/rules'), []);
    assert.deepEqual(await new StreamsClient({ url, id: 'me', secret: 'of me' }).get('/rules'), []);
  });
});

describe('The rows of the interface of streams', () => {
  it('contain examples that are answered as the OpenAPI document shows', async () => {
    await using kit = await createTestBroker();
    const api = streamsApi(kit.broker, { credentials: 'remote' });
    await using server = await serve(api.node);
    const document = api.openapi();
    const send = async (method: string, path: string) => {
      const row = document.paths[path][method] as unknown as DocumentedOperation;
      const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
        const example = row.parameters?.find((one) => one.name === name)?.example;
        assert.ok(example !== undefined, `${path}: ${name} has no example`);
        return example;
      });
      const body = row.requestBody?.content['application/json'].example;
      const answer = await server.call(method.toUpperCase(), filled, body, {});
      const status = Object.keys(row.responses)[0];
      assert.equal(`${answer.status}`, status, `${method} ${filled}: ${answer.text}`);
      const shown = Object.values(row.responses[status].content)[0].example;
      if (shown !== undefined) assert.deepEqual(answer.body ?? answer.text, shown, `${method} ${filled}`);
    };
    for (const path of ['/streams', '/tables', '/rules', '/rules/validate', '/ruletest']) await send('post', path);
    for (const path of [
      '/',
      '/ping',
      '/streams',
      '/tables',
      '/rules',
      '/rules/{id}',
      '/rules/{id}/status',
      '/rules/{id}/topo'
    ])
      await send('get', path);
    for (const path of ['/rules/{id}', '/streams/{name}', '/rules/{id}/tags']) await send('put', path);
    for (const path of ['stop', 'start', 'restart']) await send('post', `/rules/{id}/${path}`);
    await send('delete', '/rules/{id}');
  });

  it('make a valid OpenAPI document', async () => {
    const { Validator } = await import('@seriousme/openapi-schema-validator');
    await using kit = await createTestBroker();
    const document = streamsApi(kit.broker).openapi();
    const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(document)));
    assert.ok(valid, JSON.stringify(errors));
  });
});
