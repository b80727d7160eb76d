import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryStore } from '../../lib/index.ts';
import { SendError } from '../../lib/outbox/send-error.ts';
import { actionKind, FakeTarget, RESOURCE, ruleKit, TEXT, TO_FAKE, TWICE } from './support.ts';

/** A broker whose store contains a rule with a function that is not defined. */
async function withoutFunction(isEnabled: boolean) {
  const store = memoryStore();
  {
    await using kit = await ruleKit({ store, rules: { functions: [TWICE] } });
    const sql = 'SELECT twice(qos) as q FROM "a"';
    await kit.broker.rules.create({ id: 'one', sql, actions: ['do_nothing'], isEnabled });
  }
  return ruleKit({ store });
}

describe('A rule with a function that is not defined', () => {
  it('enables a rule with a missing function only once it is defined', async () => {
    await using kit = await withoutFunction(false);
    const { rules } = kit.broker;
    await assert.rejects(rules.update('one', { isEnabled: true }), { code: 'SQL_INVALID' });
    assert.equal((await rules.get('one'))!.state, 'idle');
    await rules.createFunction(TWICE);
    const { state, topics } = await rules.update('one', { isEnabled: true });
    assert.deepEqual([state, topics], ['connected', ['a']]);
    await kit.broker.publish('a', 'x');
    assert.equal((await rules.get('one'))!.counters.matched, 1);
  });

  it('keeps a rule with a missing function disconnected after a change that does not replace its statement', async () => {
    await using kit = await withoutFunction(true);
    const { rules } = kit.broker;
    await assert.rejects(rules.update('one', { description: 'new' }), { code: 'SQL_INVALID' });
    assert.equal((await rules.get('one'))!.state, 'disconnected');
    await rules.createFunction(TWICE);
    assert.deepEqual((await rules.get('one'))!.topics, ['a']);
  });
});

describe('A change of a rule', () => {
  it('shows the new actions of a disabled rule', async () => {
    await using kit = await ruleKit();
    const { rules } = kit.broker;
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: ['do_nothing'] });
    await rules.update('one', { isEnabled: false });
    const { actions } = await rules.update('one', { actions: ['inspect'] });
    assert.deepEqual(
      actions.map(({ name }) => name),
      ['inspect']
    );
  });

  it('counts the outcomes of actions in progress if a change keeps these actions', async () => {
    await using kit = await ruleKit();
    const { rules } = kit.broker;
    let finish = () => {};
    const slow = () => new Promise<void>((resolve) => (finish = resolve));
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [slow] });
    await kit.broker.publish('a', 'x');
    await rules.update('one', { onActionFailed: 'stop' });
    finish();
    await kit.clock.settle();
    assert.deepEqual((await rules.get('one'))!.actions[0].counters, { taken: 1, success: 1, failed: 0 });
  });

  it('leaves a rule disconnected that was deleted while others were connected', async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    let made = 0;
    const closed: string[] = [];
    const late = {
      name: 'late',
      title: TEXT,
      description: TEXT,
      make: async () => {
        if (++made === 1) await gate;
        return { run: () => undefined, close: () => closed.push('closed') };
      }
    };
    const store = memoryStore();
    {
      await using kit = await ruleKit({
        store,
        rules: { actions: [{ ...late, make: () => ({ run: () => undefined }) }] }
      });
      for (const id of ['one', 'two'])
        await kit.broker.rules.create({ id, sql: 'SELECT topic FROM "a"', actions: ['late'] });
    }
    await using kit = await ruleKit({ store });
    const connected: string[] = [];
    kit.broker.on('rule.connected', ({ rule }) => connected.push(rule));
    const defined = kit.broker.rules.createAction(late);
    await kit.broker.rules.delete('two');
    release();
    await defined;
    assert.deepEqual([connected, made, closed], [['one'], 1, []]);
  });
});

describe('An action that answers with something like a promise', () => {
  it('accepts one outcome of a promise-like answer, even if it reports two', async () => {
    await using kit = await ruleKit();
    // biome-ignore lint/suspicious/noThenProperty: the subject of the test
    const twice = { then: (done: () => void, failed: () => void) => [done(), failed(), done()] };
    await kit.broker.rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [() => twice] });
    await kit.broker.publish('a', 'x');
    await kit.clock.settle();
    const [{ counters }] = (await kit.broker.rules.get('one'))!.actions;
    assert.deepEqual(counters, { taken: 1, success: 1, failed: 0 });
  });
});

describe('A change of a resource', () => {
  it('keeps the outcomes of queued entries when a resource is changed', async () => {
    const target = new FakeTarget();
    target.onSend = () => {
      throw new Error('down');
    };
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { rules } = kit.broker;
    await rules.resources.create(RESOURCE);
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    await kit.broker.publish('a', 'x');
    target.onSend = () => undefined;
    await rules.resources.update('r', { config: { url: 'b' } });
    await kit.clock.advance('1m');
    assert.deepEqual((await rules.get('one'))!.actions[0].counters, { taken: 1, success: 1, failed: 0 });
  });

  it('checks whether the new target can be reached, although the check of the old one is still pending', async () => {
    const target = new FakeTarget();
    const type = target.type();
    const checked: unknown[] = [];
    const aborted: unknown[] = [];
    const make: typeof type.make = (config, context) => ({
      ...type.make(config, context),
      check: (signal) => {
        checked.push(config.url);
        signal.addEventListener('abort', () => aborted.push(config.url));
        return config.url === 'before' ? new Promise(() => undefined) : undefined;
      }
    });
    await using kit = await ruleKit({ rules: { resources: [{ ...type, make }] } });
    const { resources } = kit.broker.rules;
    await resources.list();
    const created = resources.create({ ...RESOURCE, config: { url: 'before' } });
    await kit.clock.settle();
    await kit.clock.advance('6s');
    assert.equal((await created).isAlive, false);
    const old = resources.check('r');
    assert.equal((await resources.update('r', { config: { url: 'after' } })).isAlive, true);
    assert.deepEqual(
      [checked, aborted],
      [
        ['before', 'before', 'after'],
        ['before', 'before']
      ]
    );
    await old;
    assert.deepEqual(kit.broker.alarms.present(), []);
  });

  it('applies a change of a resource although the previous connection fails to close', async () => {
    const target = new FakeTarget();
    const type = target.type();
    const made: unknown[] = [];
    const actions = type.actions!.map((action) => ({
      ...action,
      create: (_: unknown, { config }: { readonly config: { readonly url?: unknown } }) => {
        made.push(config.url);
        return { prepare: () => 'x' };
      }
    }));
    const make: typeof type.make = (config, context) => ({
      ...type.make(config, context),
      close: () => Promise.reject(new Error('cannot close'))
    });
    await using kit = await ruleKit({ rules: { resources: [{ ...type, actions, make }] } });
    const errors: string[] = [];
    kit.broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    const { rules } = kit.broker;
    await rules.resources.create({ ...RESOURCE, config: { url: 'a' } });
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    await rules.resources.update('r', { config: { url: 'b' } });
    assert.deepEqual(made, ['a', 'b']);
    assert.deepEqual(errors, ['closing the resource "r": cannot close']);
    await rules.delete('one');
    assert.equal(await rules.resources.delete('r'), true);
    assert.equal(kit.broker.outboxes.get('resource:r'), undefined);
    assert.equal(errors.length, 2);
  });

  it('reports the outcomes of queued entries once when the limits of the queue change', async () => {
    for (const store of [memoryStore(), undefined]) {
      const target = new FakeTarget();
      target.onSend = () => {
        throw new Error('down');
      };
      const type = target.type(true);
      let maxEntries = 10;
      const make: typeof type.make = (config, context) => ({
        ...type.make(config, context),
        outbox: { isPersisted: true, maxEntries: maxEntries++ }
      });
      await using kit = await ruleKit({ store, rules: { resources: [{ ...type, make }] } });
      const { rules } = kit.broker;
      let closed = 0;
      await rules.createAction(
        actionKind(
          'closing',
          () => undefined,
          () => closed++
        )
      );
      await rules.resources.create(RESOURCE);
      await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE, 'closing'] });
      await kit.broker.publish('a', 'x');
      target.onSend = () => undefined;
      await rules.resources.update('r', { config: { url: 'b' } });
      await kit.clock.advance('1m');
      assert.deepEqual((await rules.get('one'))!.actions[0].counters, { taken: 1, success: 1, failed: 0 });
      assert.equal(closed, 1, 'what was replaced is closed');
    }
  });

  it('changes nothing if the limits of the queue are invalid', async () => {
    const target = new FakeTarget();
    const type = target.type();
    const make: typeof type.make = (config, context) => ({
      ...type.make(config, context),
      outbox: { maxEntries: config.url === 'wrong' ? 0 : 10 }
    });
    await using kit = await ruleKit({ store: memoryStore(), rules: { resources: [{ ...type, make }] } });
    const { rules } = kit.broker;
    await rules.resources.create(RESOURCE);
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    await assert.rejects(rules.resources.update('r', { config: { url: 'wrong' } }), { code: 'OPTION_INVALID' });
    assert.equal(target.closed, 1);
    await assert.rejects(rules.resources.create({ type: 'fake', config: { url: 'wrong' } }), {
      code: 'OPTION_INVALID'
    });
    assert.equal(target.closed, 2);
    assert.deepEqual((await rules.resources.get('r'))!.config, { url: 'http://x' });
    await kit.broker.publish('a', 'x');
    await kit.clock.advance('1s');
    assert.deepEqual(target.sent, ['{"topic":"a"}']);
  });
});

describe('A resource that is deleted', () => {
  it('reports the outcomes of queued entries of a deleted resource, even if they are persisted', async () => {
    for (const isPersisted of [false, true]) {
      const target = new FakeTarget();
      target.onSend = () => {
        throw new Error('down');
      };
      await using kit = await ruleKit({ store: memoryStore(), rules: { resources: [target.type(isPersisted)] } });
      const { broker } = kit;
      const { rules } = broker;
      let closed = 0;
      await rules.createAction(
        actionKind(
          'closing',
          () => undefined,
          () => closed++
        )
      );
      await rules.resources.create(RESOURCE);
      const failures: unknown[] = [];
      const actions = [{ ...TO_FAKE, fallbacks: [(output: unknown) => failures.push(output)] }, 'closing'];
      await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions });
      await broker.publish('a', 'x');
      await rules.delete('one');
      assert.deepEqual([failures, closed], [[], 0]);
      await rules.resources.delete('r');
      assert.deepEqual([failures, closed], [[{ topic: 'a' }], 1]);
      assert.deepEqual(broker.outboxes.kept(), []);
    }
  });
});

describe('A broker that stops', () => {
  it('closes the connections of resources when the broker stops, and opens them when it starts again', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { broker } = kit;
    await broker.rules.resources.create(RESOURCE);
    await broker.rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    await broker.stop();
    assert.equal(target.closed, 1);
    await broker.start();
    await kit.clock.settle();
    assert.equal((await broker.rules.resources.get('r'))!.isAlive, true);
    assert.equal(target.checks, 2);
    await broker.publish('a', 'x');
    await kit.clock.advance('1s');
    assert.deepEqual(target.sent, ['{"topic":"a"}']);
    await broker.stop();
    assert.equal(target.closed, 2);
  });

  it('ends the checks of resources in progress, and the changes that wait for them, when the broker stops', async () => {
    const target = new FakeTarget();
    const type = target.type();
    let hangs = true;
    const make: typeof type.make = (config, context) => ({
      ...type.make(config, context),
      check: () => (hangs ? new Promise<void>(() => undefined) : undefined)
    });
    await using kit = await ruleKit({ rules: { resources: [{ ...type, make }] } });
    const { broker } = kit;
    await broker.rules.list(); // the engine is loaded
    const created = broker.rules.resources.create(RESOURCE);
    const tested = assert.rejects(broker.rules.resources.test(RESOURCE), { code: 'RESOURCE_DOWN' });
    await kit.clock.settle();
    await broker.stop();
    assert.equal((await created).isAlive, false);
    await tested;
    hangs = false;
    await broker.start();
    await kit.clock.settle();
    assert.equal((await broker.rules.resources.get('r'))!.isAlive, true);
  });

  it('connects to no target of a resource that is created while the broker is stopped', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { broker } = kit;
    await broker.rules.list();
    await broker.stop();
    assert.equal((await broker.rules.resources.create(RESOURCE)).isAlive, false);
    assert.equal(target.checks, 0);
    await broker.start();
    await kit.clock.settle();
    assert.equal((await broker.rules.resources.get('r'))!.isAlive, true);
  });

  it('tries again to connect rules when the broker starts again', async () => {
    let isThere = false;
    const fragile = {
      name: 'fragile',
      title: TEXT,
      description: TEXT,
      make: () => {
        if (!isThere) throw new Error('not yet');
        return { run: () => undefined };
      }
    };
    await using kit = await ruleKit({
      rules: { actions: [fragile], rules: [{ id: 'one', sql: 'SELECT * FROM "a"', actions: ['fragile'] }] }
    });
    const { broker } = kit;
    await broker.stop();
    await broker.start();
    isThere = true;
    await kit.clock.advance('61s');
    assert.equal((await broker.rules.get('one'))!.state, 'connected');
  });
});

describe('The test of a resource', () => {
  it('ends the test of a resource after five seconds, even if the check does not end', async () => {
    const type = new FakeTarget().type();
    const make: typeof type.make = (config, context) => ({
      ...type.make(config, context),
      check: () => new Promise<void>(() => undefined)
    });
    await using kit = await ruleKit({ rules: { resources: [{ ...type, make }] } });
    await kit.broker.rules.list();
    const tested = assert.rejects(kit.broker.rules.resources.test(RESOURCE), {
      code: 'RESOURCE_DOWN',
      message: 'no connection within 5000 ms'
    });
    await kit.clock.settle();
    await kit.clock.advance('6s');
    await tested;
  });
});

describe('Entries that were sent before a restart', () => {
  it('runs nothing for a rule that was disabled in the meantime, and whose actions are closed', async () => {
    const store = memoryStore();
    const target = new FakeTarget();
    target.onSend = () => {
      throw new Error('down');
    };
    const seen: string[] = [];
    const closing = actionKind(
      'closing',
      () => seen.push('run'),
      () => seen.push('closed')
    );
    const options = { store, rules: { resources: [target.type(true)], actions: [closing] } };
    {
      await using kit = await ruleKit(options);
      await kit.broker.rules.resources.create(RESOURCE);
      const actions = [{ ...TO_FAKE, fallbacks: ['closing'] }];
      await kit.broker.rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions });
      await kit.broker.publish('a', 'x', { qos: 1 });
    }
    await using kit = await ruleKit(options);
    await kit.broker.rules.update('one', { isEnabled: false });
    target.onSend = () => {
      throw new SendError('no', { isFinal: true });
    };
    await kit.clock.advance('2m');
    assert.deepEqual(seen, ['closed']);
    assert.equal((await kit.broker.rules.get('one'))!.actions[0].counters.failed, 1);
  });
});
