import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryStore } from '../../lib/index.ts';
import { FakeTarget, RESOURCE, ruleKit, TO_FAKE } from './support.ts';

/** A resource type whose checks do not end before `release` is called. */
function slowType() {
  const type = new FakeTarget().type();
  let release = () => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  const make: typeof type.make = (config, context) => ({ ...type.make(config, context), check: () => gate });
  return { type: { ...type, make }, release: () => release() };
}

describe('Reachability of the target of a resource', () => {
  it('shows a target as reachable as soon as it has accepted an entry', async () => {
    const target = new FakeTarget();
    target.fault = new Error('connect ECONNREFUSED');
    target.onSend = () => {
      throw new Error('down');
    };
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { alarms, rules } = kit.broker;
    await rules.resources.create(RESOURCE);
    await rules.create({ sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    await kit.broker.publish('a', 'x');
    await kit.clock.settle();
    target.fault = undefined;
    target.onSend = () => undefined;
    await kit.clock.advance('10s');
    const { isAlive, lastError, size } = (await rules.resources.get('r'))!;
    assert.deepEqual([target.sent.length, size, isAlive, lastError], [1, 0, true, undefined]);
    assert.deepEqual(alarms.present(), []);
  });

  it('delays no other change of rules and resources during a check', async () => {
    const { type, release } = slowType();
    await using kit = await ruleKit({ rules: { resources: [type] } });
    const { rules } = kit.broker;
    await rules.list(); // loads the engine
    const created = rules.resources.create(RESOURCE);
    await kit.clock.settle();
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    const updated = rules.resources.update('r', { config: { url: 'http://y' } });
    await kit.clock.settle();
    await rules.update('one', { description: 'new' });
    await created; // its check has ended with the change
    release();
    assert.equal((await updated).isAlive, true);
  });
});

describe('Parameters of a type that is not registered', () => {
  it('hides all parameters of a type that is not registered, because some may be secrets', async () => {
    const store = memoryStore();
    const config = { url: 'http://x', token: 'secret' };
    {
      await using kit = await ruleKit({ store, rules: { resources: [new FakeTarget().type()] } });
      const { rules } = kit.broker;
      await rules.resources.create({ ...RESOURCE, config });
      const actions = [{ ...TO_FAKE, params: { $resource: 'r', key: 'secret' }, fallbacks: [{ ...TO_FAKE }] }];
      await rules.create({ sql: 'SELECT topic FROM "a"', actions });
    }
    await using kit = await ruleKit({ store });
    const { rules } = kit.broker;
    const [resource] = await rules.resources.list();
    assert.deepEqual(resource.config, { url: '******', token: '******' });
    const [{ params, fallbacks }] = (await rules.list())[0].actions;
    assert.deepEqual([params, fallbacks[0].params], [{ $resource: 'r', key: '******' }, { $resource: 'r' }]);
  });
});

describe('An id', () => {
  it('refuses the ids "." and "..", which clients remove from URLs', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { rules } = kit.broker;
    for (const id of ['.', '..']) {
      await assert.rejects(rules.create({ id, sql: 'SELECT topic FROM "a"', actions: [] }), { code: 'RULE_INVALID' });
      await assert.rejects(rules.resources.create({ ...RESOURCE, id }), { code: 'RESOURCE_INVALID' });
    }
    assert.equal((await rules.create({ id: '...', sql: 'SELECT topic FROM "a"', actions: [] })).id, '...');
  });
});

describe('An error about the parameters of a new resource', () => {
  it('names the type in an error about the parameters of a new resource without an id', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { resources } = kit.broker.rules;
    const message = /^a resource of type fake: the parameter "url" is missing$/;
    await assert.rejects(resources.create({ type: 'fake', config: {} }), { code: 'PARAM_REQUIRED', message });
    await assert.rejects(resources.create({ ...RESOURCE, config: {} }), { message: /^the resource "r": / });
  });
});
