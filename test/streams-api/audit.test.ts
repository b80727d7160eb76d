import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { streamsApi } from 'embermq/streams-api';
import { AUTHORIZATION, serve, startBroker } from '../support/management.ts';
import { FakePlugins } from './fake-plugins.ts';

const SECRET = 'never-to-be-seen';
const STREAM = { sql: 'CREATE STREAM demo () WITH (DATASOURCE="demo", FORMAT="json")' };
const RULE = { id: 'r1', sql: 'SELECT * FROM demo', actions: [{ mqtt: { topic: 'a', password: SECRET } }] };
const MACHINE = { kind: 'none' };
const APP = { kind: 'application', id: 'app' };

describe('The audit log of the interface of streams', () => {
  it('records each change with its caller, address, names and answer, and no requests that only read', async () => {
    await using broker = await startBroker();
    await using server = await serve(streamsApi(broker, { credentials: 'remote', plugins: new FakePlugins() }).node);
    const { call } = server;
    const signed = { authorization: AUTHORIZATION, 'x-forwarded-for': '192.0.2.1' };
    await call('POST', '/streams', STREAM, {});
    await call('POST', '/streams', STREAM, {});
    await call('POST', '/rules', RULE, signed);
    await call('POST', '/rules', '{', {});
    await call('POST', '/rules/r1/stop', undefined, {});
    await call('GET', '/rules', undefined, {});
    await call('POST', '/rules/validate', { id: 'v', sql: 'SELECT * FROM demo', actions: [{ nop: {} }] }, {});
    await call('DELETE', '/rules/none', undefined, {});
    await call('DELETE', '/rules/r1', undefined, { 'x-forwarded-for': '192.0.2.1' }); // refused: no credentials
    await call('POST', '/plugins/functions', { name: 'echo', file: `http://a:${SECRET}@127.0.0.1/a.zip` }, signed);
    await call('DELETE', '/plugins/functions/echo?restart=1', undefined, {});
    const { entries: items } = broker.monitor.audit.list({ limit: 100 });
    assert.deepEqual(
      items.map(({ operation, request, caller, parameters, status, code }) => [
        operation,
        request,
        caller,
        parameters,
        status,
        code
      ]),
      [
        [
          'dropPlugin',
          'DELETE /plugins/:type/:name',
          MACHINE,
          { restart: '1', type: 'functions', name: 'echo' },
          200,
          0
        ],
        ['createPlugin', 'POST /plugins/:type', APP, { name: 'echo', type: 'functions' }, 201, 0],
        ['dropRule', 'DELETE /rules/:id', MACHINE, { id: 'none' }, 404, 1002],
        ['stopRule', 'POST /rules/:id/stop', MACHINE, { id: 'r1' }, 200, 0],
        ['createRule', 'POST /rules', MACHINE, {}, 400, 1004],
        ['createRule', 'POST /rules', APP, { id: 'r1' }, 201, 0],
        ['executeStreamStatement', 'POST /streams', MACHINE, { statement: 'create stream demo' }, 400, 3000],
        ['executeStreamStatement', 'POST /streams', MACHINE, { statement: 'create stream demo' }, 201, 0]
      ]
    );
    assert.ok(items.every(({ address }) => address === '127.0.0.1'));
    assert.doesNotMatch(JSON.stringify(items), new RegExp(SECRET));
  });

  it('records the names of the properties of sections and connections, and no value', async () => {
    const values = { id: SECRET, name: SECRET, version: SECRET, functions: [SECRET], tags: [SECRET] };
    await using broker = await startBroker();
    await using server = await serve(streamsApi(broker, { credentials: 'none' }).node);
    const id = 'c';
    await server.call('PUT', '/metadata/sources/mqtt/confKeys/a', values);
    await server.call('POST', '/connections', { id, typ: 'mqtt', props: values });
    await server.call('PUT', '/connections/c', { props: values });
    const properties = Object.keys(values);
    assert.deepEqual(
      broker.monitor.audit.list({}).entries.map(({ operation, parameters }) => [operation, parameters]),
      [
        ['replaceConnection', { id, properties }],
        ['createConnection', { id, typ: 'mqtt', properties }],
        ['putConfKey', { type: 'mqtt', key: 'a', properties }]
      ]
    );
  });

  it('records the names in a body that is refused, and no value of a property', async () => {
    await using broker = await startBroker();
    await using server = await serve(streamsApi(broker, { credentials: 'none' }).node);
    await server.call('POST', '/rules', { id: 'r9', actions: [{ log: { token: SECRET } }], name: 5 });
    await server.call('PUT', '/metadata/sources/mqtt/confKeys/a', [{ id: SECRET }]);
    assert.deepEqual(
      broker.monitor.audit.list({}).entries.map(({ operation, parameters, status }) => [operation, parameters, status]),
      [
        ['putConfKey', { type: 'mqtt', key: 'a' }, 400],
        ['createRule', { id: 'r9', name: 5 }, 400]
      ]
    );
  });

  it('records the refused requests of a viewer', async () => {
    await using broker = await startBroker();
    await broker.users.create('ann', 'her password', 'viewer');
    await using server = await serve(streamsApi(broker, { credentials: 'users' }).node);
    const authorization = `Basic ${Buffer.from('ann:her password').toString('base64')}`;
    assert.equal((await server.call('DELETE', '/rules/r1', undefined, { authorization })).status, 403);
    const [entry] = broker.monitor.audit.list({}).entries;
    assert.deepEqual([entry.operation, entry.caller, entry.status], ['dropRule', { kind: 'user', id: 'ann' }, 403]);
  });
});
