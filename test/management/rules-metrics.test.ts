import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { metricsHandler } from 'embermq/management';
import { parseExposition } from '../support/exposition.ts';
import { serve } from '../support/management.ts';
import { RESOURCE, serveRules } from '../support/rules.ts';

const SQL = 'SELECT * FROM "t"';

/** The values of a metric for Prometheus, by the labels that follow the node. */
async function valuesOf(broker: ReturnType<typeof createBroker>, name: string): Promise<Record<string, number>> {
  await using server = await serve(metricsHandler(broker, { processMetrics: false }).node);
  const families = parseExposition((await server.call('GET', '/metrics')).text, 'text');
  const samples = families.get(name)?.samples ?? [];
  return Object.fromEntries(
    samples.map(({ labels: { node: _, ...labels }, value }) => [Object.values(labels).join(' '), value])
  );
}

describe('The metrics of rules for Prometheus', () => {
  it('shows the outcome of the events of each rule and of its actions, and its state', async () => {
    await using served = await serveRules();
    const { broker } = served;
    const failing = { name: 'republish', params: { target_topic: '#', target_qos: 0, payload_tmpl: '' } };
    broker.on('error', () => undefined);
    await broker.rules.create({ id: 'a', sql: `${SQL} WHERE payload = 'x'`, actions: ['do_nothing', 'do_nothing'] });
    await broker.rules.create({ id: 'b', sql: 'SELECT 1 / payload.n AS n FROM "t"', actions: [] });
    await broker.rules.create({
      id: 'c',
      sql: SQL,
      actions: [{ ...failing, fallbacks: ['do_nothing'] }],
      isEnabled: true
    });
    await broker.rules.create({ id: 'd', sql: SQL, actions: [], isEnabled: false });
    await broker.publish('t', 'x');
    await broker.publish('t', '{"n":0}');
    assert.deepEqual(await valuesOf(broker, 'embermq_rule_events_total'), {
      ...{ 'a passed': 1, 'a no_result': 1, 'a exception': 0 },
      ...{ 'b passed': 0, 'b no_result': 0, 'b exception': 2 },
      ...{ 'c passed': 2, 'c no_result': 0, 'c exception': 0 },
      ...{ 'd passed': 0, 'd no_result': 0, 'd exception': 0 }
    });
    assert.deepEqual(await valuesOf(broker, 'embermq_rule_actions_total'), {
      ...{ 'a success': 2, 'a failed': 0, 'b success': 0, 'b failed': 0 },
      ...{ 'c success': 2, 'c failed': 2, 'd success': 0, 'd failed': 0 }
    });
    const states = { 'a connected': 1, 'b connected': 1, 'c connected': 1, 'd idle': 1 };
    assert.deepEqual(await valuesOf(broker, 'embermq_rule_state'), states);
    assert.deepEqual(await valuesOf(broker, 'embermq_rules_matched_total'), { '': 6 });
    assert.deepEqual(await valuesOf(broker, 'embermq_rules'), { '': 4 });
  });

  it('shows whether the targets of resources can be reached, and the size of their queues', async () => {
    await using served = await serveRules();
    const { broker, targets } = served;
    await broker.rules.resources.create({ ...RESOURCE, id: 'up' });
    targets.areReachable = false;
    await broker.rules.resources.create({ ...RESOURCE, id: 'down' });
    assert.deepEqual(await valuesOf(broker, 'embermq_resource_alive'), { 'up test_target': 1, 'down test_target': 0 });
    assert.deepEqual(await valuesOf(broker, 'embermq_resource_waiting'), {
      'up test_target': 0,
      'down test_target': 0
    });
  });

  it('shows only the first 200 rules, so that the number of metrics is limited', async () => {
    await using served = await serveRules();
    const { rules } = served.broker;
    for (let i = 0; i < 201; i++) await rules.create({ id: `r${i}`, sql: SQL, actions: [], isEnabled: false });
    const states = Object.keys(await valuesOf(served.broker, 'embermq_rule_state'));
    assert.deepEqual([states.length, states[0], states[199]], [200, 'r0 idle', 'r199 idle']);
    assert.deepEqual(await valuesOf(served.broker, 'embermq_rules'), { '': 201 });
  });

  it('shows no rule metrics without rules, and while the broker is stopped', async () => {
    const broker = createBroker();
    assert.deepEqual(await valuesOf(broker, 'embermq_rule_state'), {});
    await broker.start();
    await broker.rules.create({ sql: SQL, actions: [] });
    await broker.stop();
    await valuesOf(broker, 'embermq_rule_state');
  });
});
