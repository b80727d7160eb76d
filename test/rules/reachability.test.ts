import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeTarget, ruleKit } from './support.ts';

const RESOURCE = { id: 'r', type: 'fake', config: { url: 'http://x' } };

describe('An id', () => {
  it('is not "." or "..", which clients remove from URLs', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { rules } = kit.broker;
    for (const id of ['.', '..']) {
      await assert.rejects(rules.create({ id, sql: 'SELECT topic FROM "a"', actions: [] }), { code: 'RULE_INVALID' });
      await assert.rejects(rules.resources.create({ ...RESOURCE, id }), { code: 'RESOURCE_INVALID' });
    }
    assert.equal((await rules.create({ id: '...', sql: 'SELECT topic FROM "a"', actions: [] })).id, '...');
  });
});
