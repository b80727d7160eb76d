import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AuditEntry, AuditLog } from '../../lib/monitor/audit.ts';
import { mapTable } from '../support/map-table.ts';
import { standingServices } from '../support/standing-services.ts';

function log(table = mapTable<AuditEntry>()) {
  const state = { now: 0, isRunning: true };
  const services = standingServices(() => state.now);
  const made = new AuditLog(services, 'n', table, () => state.isRunning);
  return { log: made, state, table };
}

const input = (operation: string, code = 0) => ({
  operation,
  caller: { kind: 'application', id: 'a' },
  address: '127.0.0.1',
  request: `POST /${operation}`,
  parameters: {},
  status: 200,
  code
});

describe('The audit log', () => {
  it('keeps the last 1,000 entries, in memory and in its table', () => {
    const { log: audit, table } = log();
    for (let number = 1; number <= 2_500; number++) audit.record(input(`o${number}`));
    const { entries, count } = audit.list({ limit: 10_000 });
    assert.deepEqual([count, entries.length, table.size], [1_000, 1_000, 1_000]);
    assert.deepEqual([entries[0].operation, entries[999].operation], ['o2500', 'o1501']);
    assert.deepEqual([...table].at(-1)?.[1], entries[0]);
  });

  it('continues after a restart, also with entries from before the first start', () => {
    const { log: first, table } = log();
    first.record(input('one'));
    first.record(input('two'));
    const { log: second, state } = log(table);
    state.isRunning = false;
    second.record(input('early'));
    assert.deepEqual(
      second.list().entries.map(({ operation }) => operation),
      ['early']
    );
    state.isRunning = true;
    second.record(input('late'));
    assert.deepEqual(
      second.list().entries.map(({ number, operation }) => [number, operation]),
      [
        [4, 'late'],
        [3, 'early'],
        [2, 'two'],
        [1, 'one']
      ]
    );
    assert.equal(table.size, 4);
  });

  it('counts consecutive frequent requests in one entry, which has the parameters of the first', () => {
    const { log: audit, state } = log();
    audit.record(input('publish'));
    state.now = 5;
    assert.equal(audit.repeat({ ...input('publish') })?.count, 2);
    assert.equal(audit.repeat(input('publish', 108)), undefined);
    audit.record(input('publish', 108));
    audit.record(input('publish', 108));
    assert.deepEqual(
      audit.list().entries.map(({ number, at, count, code }) => [number, at, count, code]),
      [
        [3, 5, 1, 108],
        [2, 5, 1, 108],
        [1, 5, 2, 0]
      ]
    );
  });

  it('continues counting in an entry of an earlier start', () => {
    const { log: first, table } = log();
    first.record(input('publish'));
    const { log: second } = log(table);
    assert.equal(second.repeat(input('publish'))?.count, 2);
    const [entry] = second.list().entries;
    second.repeat(input('publish'));
    assert.deepEqual([entry.count, second.list().entries[0].count], [2, 3]);
  });
});
