import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { streamsApi } from 'embermq/streams-api';
import { createTestBroker } from 'embermq/testing';
import { serve } from '../support/management.ts';

const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="t", FORMAT="JSON")';
const SQL = 'SELECT * FROM demo';

describe('The tags of rules over REST', () => {
  it('change no other part of a rule: it stays temporary, keeps its functions, and keeps running', async () => {
    await using kit = await createTestBroker({ streams: { definitions: [DEMO] } });
    const { streams } = kit.broker;
    await using server = await serve(streamsApi(kit.broker, { credentials: 'remote' }).node);
    const tag = async (id: string, tags: readonly string[]) => {
      const { status, text } = await server.call('PATCH', `/rules/${id}/tags`, { tags }, {});
      assert.deepEqual([status, text], [200, `Rule ${id} tags were updated.`]);
    };
    const rows: unknown[] = [];
    await streams.rules.create({ id: 'temporary', sql: SQL, actions: [{ nop: {} }], temp: true });
    await streams.rules.create({ id: 'own', sql: SQL, actions: [(emitted) => void rows.push(...emitted)] });
    for (const id of ['temporary', 'own']) await tag(id, ['a']);
    await Promise.all([tag('own', ['b']), tag('own', ['c'])]);
    assert.deepEqual((await streams.export()).rules, {});
    assert.deepEqual(new Set((await streams.rules.get('own'))?.tags), new Set(['a', 'b', 'c']));
    await streams.push('demo', { x: 1 });
    await kit.clock.advance('1s');
    assert.deepEqual(rows, [{ x: 1 }]);
  });

  it('limit their number to 100, even when they are added one after the other', async () => {
    await using kit = await createTestBroker({ streams: { definitions: [DEMO] } });
    await kit.broker.streams.rules.create({ id: 'r1', sql: SQL, actions: [{ nop: {} }] });
    await using server = await serve(streamsApi(kit.broker, { credentials: 'remote' }).node);
    const tags = Array.from({ length: 100 }, (_, at) => `t${at}`);
    assert.equal((await server.call('PATCH', '/rules/r1/tags', { tags }, {})).status, 200);
    const { status, text } = await server.call('PATCH', '/rules/r1/tags', { tags: ['more'] }, {});
    assert.equal(status, 400);
    assert.match(text, /^update rule tags error: tags: expected at most 100 tags/);
  });
});
