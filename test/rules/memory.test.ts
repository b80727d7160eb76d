import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ResourceType, RuleEvent } from '../../lib/rules/types.ts';
import { FakeTarget, ruleKit, TO_FAKE } from './support.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** A broker with a resource whose target hangs, and the events for which outputs wait. */
async function hanging(content = 'small') {
  const target = new FakeTarget();
  target.onSend = () => new Promise(() => undefined);
  const events: WeakRef<RuleEvent>[] = [];
  const type = target.type();
  const actions: ResourceType['actions'] = type.actions!.map((action) => ({
    ...action,
    create: () => ({
      prepare: (_, event) => {
        events.push(new WeakRef(event));
        return content;
      }
    })
  }));
  const kit = await ruleKit({ rules: { resources: [{ ...type, actions }] } });
  await kit.broker.rules.resources.create({ id: 'r', type: 'fake', config: { url: 'x' } });
  const outbox = () => kit.broker.outboxes.get('resource:r')!;
  return { kit, events, outbox };
}

describe('Outputs that wait for a hanging target', () => {
  it('retains no event if nothing follows from the outcome', async () => {
    const { kit, events, outbox } = await hanging();
    await using _ = kit;
    await kit.broker.rules.create({ sql: 'SELECT topic FROM "a"', actions: [TO_FAKE, TO_FAKE] });
    for (let at = 0; at < 20; at++) await kit.broker.publish('a', Buffer.alloc(10_000));
    assert.equal(outbox().size, 40);
    for (let at = 0; at < 5; at++) await setImmediate();
    collectGarbage();
    const kept = events.filter((event) => event.deref() !== undefined);
    assert.ok(kept.length <= 2, `${kept.length} events are kept`);
  });

  it('retains no more events than the limit of the queue allows if something follows', async () => {
    const { kit, outbox } = await hanging();
    await using _ = kit;
    const { id } = await kit.broker.rules.create({
      sql: 'SELECT topic FROM "a"',
      actions: [{ ...TO_FAKE, fallbacks: ['do_nothing'] }]
    });
    for (let at = 0; at < 70; at++) await kit.broker.publish('a', Buffer.alloc(1_000_000));
    assert.ok(outbox().size < 20, `${outbox().size} events of 1 MB are kept`);
    const [{ counters }] = (await kit.broker.rules.get(id))!.actions;
    assert.equal(counters.failed, 70 - outbox().size);
  });

  it('retains the event once for all elements of a list', async () => {
    const { kit, outbox } = await hanging();
    await using _ = kit;
    await kit.broker.rules.create({
      sql: 'FOREACH payload.list FROM "a"',
      actions: [{ ...TO_FAKE, fallbacks: ['do_nothing'] }]
    });
    await kit.broker.publish('a', JSON.stringify({ list: Array(100).fill(1), more: 'x'.repeat(1_000_000) }));
    assert.equal(outbox().size, 100);
    assert.ok(outbox().bytes > 2_000_000 && outbox().bytes < 3_000_000, `${outbox().bytes} bytes`);
  });

  it('prepares no more outputs if one event has sent more than twice the capacity of the queue', async () => {
    const { kit, events } = await hanging('x'.repeat(1_048_576));
    await using _ = kit;
    const { id } = await kit.broker.rules.create({
      sql: 'FOREACH payload.list FROM "a"',
      actions: [{ ...TO_FAKE, fallbacks: [() => undefined] }]
    });
    for (let at = 1; at <= 2; at++) {
      await kit.broker.publish('a', JSON.stringify({ list: Array(1000).fill(1) }));
      assert.equal(events.length, at * 65);
    }
    const [{ counters }] = (await kit.broker.rules.get(id))!.actions;
    assert.equal(counters.taken, 2000);
    assert.ok(counters.failed >= 2 * 935);
  });
});
