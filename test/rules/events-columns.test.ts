import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CatalogueEvent } from '../../lib/rules/events/event.ts';
import { RULE_EVENTS } from '../../lib/rules/events/rows.ts';
import type { ValueObject } from '../../lib/sql/values.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { COLUMN_CASES } from './events-cases.ts';

describe('The columns of the event', () => {
  for (const { event: name, when, options, act, columns } of COLUMN_CASES)
    it(`${name}, when ${when}`, async () => {
      await using kit = await createTestBroker({ leaks: 'ignore', ...options });
      const context = { node: 'node-1', now: () => kit.clock.now() };
      const row = RULE_EVENTS[name];
      const seen: ValueObject[] = [];
      kit.broker.on(row.source, (value) => {
        if (row.accepts(value)) seen.push(new CatalogueEvent(row, value, context).columns());
      });
      await act((given) => kit.connect(given), kit);
      await kit.clock.settle();
      for (const { id } of seen) if (row.names.includes('id')) assert.match(String(id), /^[1-9A-F][0-9A-F]{15,31}$/);
      const withoutId = seen.map(({ id: _id, ...others }) => others);
      assert.deepEqual(
        withoutId,
        columns.map((expected) => ({ event: name, ...expected }))
      );
    });

  it('contains a case with a value for each column, unless the column is always absent', () => {
    const absent = Object.values(RULE_EVENTS).flatMap(({ name, names }) => {
      const cases = COLUMN_CASES.filter(({ event }) => event === name).flatMap(({ columns }) => columns);
      return names.filter((column) => !['event', 'id'].includes(column) && !cases.some((given) => column in given));
    });
    assert.deepEqual(absent, ['puback_props', 'disconn_props', 'unsub_props']);
  });
});
