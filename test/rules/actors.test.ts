import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toPromise } from 'xstate';
import { FakeTarget, ruleKit } from './support.ts';

describe('The actor of a rule', () => {
  it('shows the transitions of a rule to an inspector', async () => {
    const target = new FakeTarget();
    await using kit = await ruleKit({ rules: { resources: [target.type()] } });
    const { broker } = kit;
    const seen: string[] = [];
    const end = broker.inspect((event) => {
      if (event.type === '@xstate.snapshot' && event.actorRef.id === 'r')
        seen.push(`${event.event.type} ${JSON.stringify(event.snapshot.value)}`);
    });
    await broker.rules.create({ id: 'r', sql: 'SELECT * FROM "a"', actions: ['do_nothing'] });
    await broker.rules.update('r', { isEnabled: false });
    await broker.rules.update('r', { isEnabled: true });
    const actor = await broker.rules.actor('r');
    assert.equal(actor.id, 'r');
    assert.throws(() => actor.send({ type: 'disabled' }), { code: 'ACTOR_CLOSED', message: /broker\.rules/ });
    const done = toPromise(actor);
    await broker.rules.delete('r');
    await done;
    await assert.rejects(broker.rules.actor('r'), { code: 'RULE_NOT_FOUND' });
    end();
    assert.deepEqual(seen, [
      'xstate.init {"idle":"defined"}',
      'started "connected"',
      'disabled {"idle":"defined"}',
      'started "connected"',
      'dropped "gone"'
    ]);
  });

  it('disconnects a rule while its resource does not exist, and tries again every minute', async () => {
    let isThere = false;
    let attempts = 0;
    const type = {
      name: 'fragile',
      title: { en: 'Fragile', zh: '易碎' },
      description: { en: 'Fragile', zh: '易碎' },
      make: () => {
        attempts++;
        if (!isThere) throw new Error('not yet');
        return { run: () => undefined };
      }
    };
    await using kit = await ruleKit({
      rules: { actions: [type], rules: [{ id: 'r', sql: 'SELECT * FROM "a"', actions: ['fragile'] }] }
    });
    const { rules } = kit.broker;
    const { state, reason } = (await rules.get('r'))!;
    assert.deepEqual([state, reason], ['disconnected', 'the action "fragile" cannot be created: not yet']);
    await kit.clock.advance('61s');
    assert.equal(attempts, 2);
    isThere = true;
    await kit.clock.advance('61s');
    assert.equal((await rules.get('r'))!.state, 'connected');
  });
});
