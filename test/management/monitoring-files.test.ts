import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBroker } from 'embermq';
import { metricsHandler } from 'embermq/management';
import { parseExposition } from '../support/exposition.ts';
import {
  alertExpressions,
  dashboard,
  dashboardExpressions,
  type Expression,
  metricNames,
  withoutThreshold
} from '../support/monitoring-files.ts';

describe('the dashboard and the alerts for Prometheus', () => {
  /** The names of all series at `/metrics`. */
  async function exported(): Promise<Set<string>> {
    await using broker = createBroker();
    await broker.start();
    const { fetch } = metricsHandler(broker);
    const url = 'http://127.0.0.1/metrics';
    await fetch(new Request(url)); // the delay of the event loop is shown from the second time on
    await new Promise(setImmediate);
    const families = parseExposition(await (await fetch(new Request(url))).text(), 'text');
    const endings = { histogram: ['_bucket', '_sum', '_count'] } as Record<string, string[]>;
    return new Set(
      [...families.values()].flatMap(({ name, type = '' }) => (endings[type] ?? ['']).map((end) => name + end))
    );
  }

  it('names only metrics that the broker exports', async () => {
    const names = await exported();
    const expressions: Expression[] = [...dashboardExpressions(), ...alertExpressions()];
    for (const { name, query } of dashboard.templating.list)
      expressions.push({ place: `the variable ${name}`, expr: typeof query === 'string' ? query : query.query });
    assert.ok(expressions.length > 50);
    for (const { place, expr } of expressions) {
      const found = metricNames(expr);
      assert.ok(found.length > 0 || /\bup\{|^prometheus$/.test(expr), `${place}: ${expr}`);
      for (const name of found) assert.ok(names.has(name), `${place}: ${name} is not at /metrics`);
    }
    assert.deepEqual(metricNames('rate(embermq_a_total{x="embermq_b"}[5m])'), ['embermq_a_total']);
  });

  it('ends each alert with a threshold, and gives it a name that no other one has', () => {
    const alerts = alertExpressions();
    for (const alert of alerts) assert.ok(withoutThreshold(alert).length > 0);
    assert.equal(new Set(alerts.map(({ place }) => place)).size, alerts.length);
    assert.throws(() => withoutThreshold({ place: 'a', expr: 'up' }), /threshold/);
  });
});
