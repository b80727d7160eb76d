import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exportConfiguration } from '../../lib/index.ts';
import type { TestBroker } from '../../lib/testing/index.ts';
import { FaultyStore } from '../store/faulty-store.ts';
import { FakeTarget, ruleKit, TO_FAKE } from './support.ts';

/** The rules and resources as the broker shows them, without counters. */
async function stateOf({ broker: { rules } }: TestBroker): Promise<unknown> {
  const shown = (await rules.list()).map(({ id, sql, description, isEnabled, state, actions }) => {
    return { id, sql, description, isEnabled, state, actions: actions.map(({ id, params }) => ({ id, params })) };
  });
  const resources = (await rules.resources.list()).map(({ id, config, description, isAlive }) => {
    return { id, config, description, isAlive };
  });
  return { shown, resources };
}

describe('A change of rules or resources that the store refuses', () => {
  it('changes nothing if the store refuses a change: neither the shown nor the running state, nor that after a restart', async () => {
    const store = new FaultyStore();
    const target = new FakeTarget();
    const urls: unknown[] = [];
    const type = target.type();
    const make: typeof type.make = (config, context) => {
      const made = type.make(config, context);
      return {
        ...made,
        send: (entries, attempt) => {
          urls.push(config.url);
          return made.send(entries, attempt);
        }
      };
    };
    const options = { store, rules: { resources: [{ ...type, make }] } };
    let before: unknown;
    {
      await using kit = await ruleKit(options);
      const { rules } = kit.broker;
      await rules.resources.create({ id: 'r', type: 'fake', config: { url: 'before' } });
      await rules.resources.create({ id: 'unused', type: 'fake', config: { url: 'before' } });
      await rules.create({ id: 'on', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
      await rules.create({ id: 'off', sql: 'SELECT topic FROM "a"', actions: ['do_nothing'], isEnabled: false });
      before = await stateOf(kit);
      const exported = (await exportConfiguration(kit.broker)).sections;
      store.fault = 'refuses';
      const changes = [
        () => rules.resources.create({ id: 'new', type: 'fake', config: { url: 'x' } }),
        () => rules.resources.update('r', { config: { url: 'after' } }),
        () => rules.resources.update('r', { description: 'after' }),
        () => rules.resources.delete('unused'),
        () => rules.create({ id: 'new', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] }),
        () => rules.update('on', { sql: 'SELECT topic FROM "b"' }),
        () => rules.update('on', { actions: [TO_FAKE, 'do_nothing'] }),
        () => rules.update('on', { actions: [() => undefined] }),
        () => rules.update('on', { isEnabled: false }),
        () => rules.update('off', { isEnabled: true }),
        () => rules.delete('on')
      ];
      for (const change of changes) {
        await assert.rejects(change(), { code: 'STORE_FAILED' }, String(change));
        assert.deepEqual(await stateOf(kit), before, String(change));
      }
      assert.deepEqual((await exportConfiguration(kit.broker)).sections, exported);
      await kit.broker.publish('a', 'x');
      await kit.clock.advance('20s');
      assert.deepEqual([target.sent, urls], [['{"topic":"a"}'], ['before']]);
      store.fault = undefined;
      await kit.clock.advance('20s');
    }
    await using kit = await ruleKit(options);
    assert.deepEqual(await stateOf(kit), before);
  });
});
