import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from '../../lib/index.ts';
import { compileRule } from '../../lib/rules/index.ts';
import type { ActionType, ResourceType } from '../../lib/rules/types.ts';
import type { SqlFunction } from '../../lib/sql/functions/function.ts';
import { FakeTarget, ruleKit } from './support.ts';

const TEXT = { en: 'For tests', zh: '用于测试' };

function returning(result: () => unknown): SqlFunction {
  return { name: 'f', family: 'app', params: [], returns: 'any', about: 'For tests.', run: result as never };
}

function action(name: string, create: () => unknown, more: Partial<ActionType> = {}): ActionType {
  return { name, title: TEXT, description: TEXT, create: create as never, ...more };
}

function resourceType(make: () => unknown, actions: readonly ActionType[] = []): ResourceType {
  return { name: 'own', title: TEXT, description: TEXT, actions, make: make as never };
}

describe('A function of the app for statements', () => {
  const faults: readonly [string, () => unknown, RegExp][] = [
    ['a promise', () => Promise.resolve(1), /f\(\) returned a promise/],
    ['a promise that rejects', () => Promise.reject(new Error('late')), /f\(\) returned a promise/],
    ['a function', () => () => 1, /f\(\) returned a function/],
    ['a symbol', () => Symbol('s'), /f\(\) returned a symbol/],
    ['a Date', () => new Date(0), /f\(\) returned an object of the class Date/],
    ['a Map', () => new Map(), /f\(\) returned an object of the class Map/]
  ];
  for (const [what, result, message] of faults)
    it(`fails the evaluation if a function returns ${what}`, async () => {
      const rule = await compileRule('SELECT f() as v FROM "a"', { functions: [returning(result)] });
      assert.throws(() => rule.run(), { code: 'SQL_FAILED', message });
    });

  it('accepts every kind of value that statements support as the result of a function', async () => {
    const values = [
      undefined,
      null,
      1,
      10n ** 30n,
      'x',
      true,
      new Uint8Array([255]),
      [1, { a: [] }],
      Object.create(null)
    ];
    for (const value of values) {
      const rule = await compileRule('SELECT f() as v FROM "a"', { functions: [returning(() => value)] });
      assert.deepEqual(rule.run().outputs, [value === undefined ? {} : { v: value }]);
    }
  });

  it('reads bytes that a function returns as a string if they are UTF-8, so that = and IN agree about them', async () => {
    const sql = "SELECT f() = 'abc' as equal, f() IN ('abc') as listed, f() < 'b' as less FROM \"a\"";
    const outputOf = async (bytes: Uint8Array) =>
      (await compileRule(sql, { functions: [returning(() => bytes)] })).run().outputs;
    assert.deepEqual(await outputOf(Buffer.from('abc')), [{ equal: true, listed: true, less: true }]);
    assert.deepEqual(await outputOf(Buffer.from([0x61, 0xff])), [{ equal: false, listed: false, less: true }]);
  });

  it('lets the broker start after a start has failed because a rule of the options needs the function', async () => {
    const rule = (id: string, sql: string) => ({ id, sql, actions: ['inspect'] });
    const rules = [rule('first', 'SELECT 1 as v FROM "a"'), rule('second', 'SELECT f() as v FROM "a"')];
    const resources = [new FakeTarget().type(), { id: 'target', type: 'fake', config: { url: 'x' } }];
    const broker = createBroker({ rules: { rules, resources } });
    await assert.rejects(broker.start(), { code: 'SQL_INVALID', message: /^rule "second": unknown function f\(\)/ });
    await broker.rules.createFunction(returning(() => 1));
    await broker.start();
    const states = (await broker.rules.list()).map(({ id, state }) => [id, state]);
    assert.deepEqual(states, [
      ['first', 'connected'],
      ['second', 'connected']
    ]);
    assert.equal((await broker.rules.resources.list()).length, 1);
    await broker.stop();
  });

  it('refuses a function with a parameter of an unknown type', async () => {
    const given = { ...returning(() => 1), params: ['string', 'text?'] as never };
    await assert.rejects(compileRule('SELECT 1 FROM "a"', { functions: [given] }), {
      code: 'FUNCTION_INVALID',
      field: 'f.params[1]',
      message: /any, string, bytes, integer, number, boolean, list, object/
    });
  });
});

describe('An action type of the app', () => {
  it('refuses an action type with an invalid name, and states the rule for names', async () => {
    await using kit = await ruleKit();
    await assert.rejects(kit.broker.rules.createAction(action('a b', () => undefined)), {
      code: 'ACTION_INVALID',
      field: 'type.name',
      message: 'type.name: expected 1 to 64 letters, digits, "_", "-" and ".", got "a b"'
    });
  });

  for (const made of [undefined, null, 'x', {}, { run: 'x' }])
    it(`refuses an action type whose create() returns ${JSON.stringify(made)}`, async () => {
      await using kit = await ruleKit({ rules: { actions: [action('own', () => made)] } });
      await assert.rejects(kit.broker.rules.create({ sql: 'SELECT * FROM "a"', actions: ['own'] }), {
        code: 'ACTION_FAILED',
        message: /the action "own" cannot be created: create\(\) must return an object with run\(\) or prepare\(\)/
      });
    });

  it('accepts an action type with make in place of create, as in 0.2', async () => {
    const seen: unknown[] = [];
    const make = () => ({ run: (output: unknown) => seen.push(output) });
    await using kit = await ruleKit({ rules: { actions: [{ name: 'own', title: TEXT, description: TEXT, make }] } });
    await kit.broker.rules.create({ sql: 'SELECT topic FROM "a"', actions: ['own'] });
    await kit.broker.publish('a', 'x');
    await kit.clock.settle();
    assert.deepEqual(seen, [{ topic: 'a' }]);
  });

  it('refuses an action type without create', async () => {
    await using kit = await ruleKit();
    await assert.rejects(kit.broker.rules.createAction({ name: 'own', title: TEXT, description: TEXT }), {
      code: 'ACTION_INVALID',
      message: /name, title, description and create/
    });
  });

  for (const [what, prepared] of [
    ['nothing', () => undefined],
    ['an object', () => ({})],
    ['a promise that rejects', () => Promise.reject(new Error('late'))]
  ] as const)
    it(`fails for an output if prepare() returns ${what}`, async () => {
      const target = new FakeTarget().type();
      const own = action('own', () => ({ prepare: prepared }), { types: ['fake'] });
      const errors: unknown[] = [];
      await using kit = await ruleKit({ rules: { resources: [target], actions: [own] } });
      const { broker } = kit;
      broker.on('error', ({ error }) => errors.push(error));
      await broker.rules.resources.create({ id: 'r', type: 'fake', config: { url: 'x' } });
      await broker.rules.create({
        id: 'one',
        sql: 'SELECT * FROM "a"',
        actions: [{ name: 'own', params: { $resource: 'r' } }]
      });
      await broker.publish('a', 'x');
      assert.deepEqual((await broker.rules.get('one'))!.actions[0].counters, { taken: 1, success: 0, failed: 1 });
      assert.match((errors[0] as Error).message, /prepare\(\) must return a string or a Buffer/);
    });
});

describe('A resource type of the app', () => {
  it('names a missing resource type in the error of a resource', async () => {
    await using kit = await ruleKit();
    await assert.rejects(kit.broker.rules.resources.create({ type: 'web_hook', config: {} }), {
      code: 'RESOURCE_TYPE_NOT_FOUND',
      message: /"web_hook"; define types with the option rules\.resources of the broker/
    });
  });

  for (const [what, made] of [
    ['nothing', undefined],
    ['an empty object', {}],
    ['a promise that is rejected', () => Promise.reject(new Error('down'))],
    ['an object without close()', { check: () => undefined, send: () => undefined }]
  ] as const)
    it(`refuses a resource type whose make() returns ${what}`, async () => {
      await using kit = await ruleKit({
        rules: { resources: [resourceType(() => (typeof made === 'function' ? made() : made))] }
      });
      const { resources } = kit.broker.rules;
      const message = /the resource type "own": make\(\) must return an object with check\(\), send\(\) and close\(\)/;
      await assert.rejects(resources.create({ type: 'own', config: {} }), {
        code: 'RESOURCE_NOT_INITIALIZED',
        message
      });
      assert.deepEqual(await resources.list(), []);
    });

  it('deletes a resource with its queue even if close() fails, which is reported', async () => {
    const errors: string[] = [];
    const type = resourceType(
      () => ({
        check: () => {
          throw new Error('down');
        },
        send: () => {
          throw new Error('down');
        },
        close: () => Promise.reject(new Error('close has failed'))
      }),
      [action('to_own', () => ({ prepare: () => 'x' }), { types: ['own'] })]
    );
    await using kit = await ruleKit({ rules: { resources: [type] } });
    const { broker } = kit;
    broker.on('error', ({ error }) => errors.push((error as Error).message));
    await broker.rules.resources.create({ id: 'r', type: 'own', config: {} });
    assert.equal(await broker.rules.resources.delete('r'), true);
    assert.deepEqual(errors, ['close has failed']);
    assert.deepEqual(
      broker.alarms.present().map(({ id }) => id),
      []
    );
  });

  it('raises an alarm if a resource of the options cannot be created', async () => {
    await using kit = await ruleKit({ rules: { resources: [{ id: 'r', type: 'unknown', config: {} }] } });
    assert.deepEqual(
      kit.broker.alarms.present().map(({ id }) => id),
      ['resource/unknown/r/down']
    );
  });
});
