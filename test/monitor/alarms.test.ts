import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Alarms } from '../../lib/monitor/alarms.ts';
import { mapTable } from '../support/map-table.ts';

function alarms(maxHistory = 10) {
  const seen: string[] = [];
  const clock = { now: 0 };
  const made = new Alarms({
    table: mapTable(),
    maxHistory,
    now: () => clock.now,
    raised: ({ id }) => seen.push(`raised ${id}`),
    cleared: ({ id }) => seen.push(`cleared ${id}`),
    failed: assert.fail
  });
  return { alarms: made, seen, clock };
}

describe('alarms', () => {
  it('keeps an alarm until it is cleared, and then in the history', () => {
    const { alarms: all, seen, clock } = alarms();
    all.raise({ id: 'a', severity: 'critical', title: 'A', summary: 'What to do' });
    clock.now = 5;
    all.raise({ id: 'b' });
    assert.deepEqual(all.present(), [
      { id: 'b', severity: 'warning', title: 'b', summary: 'b', raisedAt: 5 },
      { id: 'a', severity: 'critical', title: 'A', summary: 'What to do', raisedAt: 0 }
    ]);
    assert.equal(all.clear('a'), true);
    assert.equal(all.clear('a'), false);
    assert.equal(all.get('a'), undefined);
    assert.deepEqual(all.history(), [
      { id: 'a', severity: 'critical', title: 'A', summary: 'What to do', raisedAt: 0, clearedAt: 5 }
    ]);
    assert.deepEqual(seen, ['raised a', 'raised b', 'cleared a']);
  });

  it('replaces the present alarm with the same id', () => {
    const { alarms: all, clock } = alarms();
    all.raise({ id: 'a', title: 'one' });
    clock.now = 7;
    all.raise({ id: 'a', title: 'two' });
    assert.deepEqual(
      all.present().map(({ title, raisedAt }) => [title, raisedAt]),
      [['two', 7]]
    );
  });

  it('keeps a limited history, which can be deleted', async () => {
    const { alarms: all, clock } = alarms(3);
    for (const id of ['a', 'b', 'c', 'd', 'b']) {
      clock.now++;
      all.raise({ id });
      all.clear(id);
    }
    assert.deepEqual(
      all.history().map(({ id }) => id),
      ['b', 'd', 'c']
    );
    await all.deleteHistory();
    assert.deepEqual(all.history(), []);
  });

  it('keeps the history while it cannot be persisted, and persists it with the next alarm', async () => {
    const table = mapTable<never>();
    let code: string | undefined = 'STORE_FAILED';
    const errors: unknown[] = [];
    const all = new Alarms({
      table: {
        ...table,
        get size() {
          return table.size;
        },
        set: async (key, value) => {
          if (code !== undefined) throw Object.assign(new Error('no'), { code });
          await table.set(key, value as never);
        },
        [Symbol.iterator]: () => table[Symbol.iterator]()
      },
      maxHistory: 10,
      now: () => 1,
      raised: () => {},
      cleared: () => {},
      failed: (error) => errors.push(error)
    });
    const change = async (id: string) => {
      all.raise({ id });
      all.clear(id);
      await new Promise(setImmediate);
    };
    await change('a');
    assert.deepEqual([all.history().length, table.size, errors.length], [1, 0, 0]);
    code = 'OTHER';
    await change('b');
    assert.deepEqual([all.history().length, table.size], [2, 0]);
    assert.ok(errors.length > 0, 'other errors are reported');
    code = undefined;
    await change('c');
    assert.deepEqual([...table].map(([id]) => id).sort(), ['a', 'b', 'c']);
  });

  it('checks alarms that are raised', () => {
    const { alarms: all } = alarms();
    for (const input of [
      { id: '' },
      { id: 'x'.repeat(257) },
      { id: 'a', severity: 'bad' },
      { id: 'a', title: 1 },
      { id: 'a', summary: 1 }
    ])
      assert.throws(() => all.raise(input as never), { code: 'ALARM_INVALID' }, JSON.stringify(input));
    assert.throws(() => all.raise({ id: 'a', text: '' } as never), { code: 'OPTION_UNKNOWN' });
  });
});
