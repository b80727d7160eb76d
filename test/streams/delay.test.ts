import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memoryStore } from 'embermq';
import { createTestBroker, type TestBroker } from 'embermq/testing';

type Rows = readonly Record<string, unknown>[];

async function define({ broker }: TestBroker): Promise<void> {
  await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE="a", FORMAT="json")');
}

async function push({ broker, clock }: TestBroker, ...rows: object[]): Promise<void> {
  for (const row of rows) await broker.publish('a', JSON.stringify(row));
  await clock.settle();
}

describe('delay()', () => {
  it('makes emissions wait one after the other, in order, while other rules continue', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await define(kit);
    const got: Record<string, unknown[]> = { late: [], now: [] };
    const keep = (name: string) => (rows: Rows) => void got[name].push(...rows.map(({ v }) => v));
    await streams.rules.create({ sql: 'SELECT delay(ms, v) AS v FROM demo', actions: [keep('late')] });
    await streams.rules.create({ sql: 'SELECT v FROM demo', actions: [keep('now')] });
    await push(kit, { ms: 1000, v: 1 }, { ms: 0, v: 2 }, { ms: 500, v: 3 });
    assert.deepEqual(got, { late: [], now: [1, 2, 3] });
    await kit.clock.advance(999);
    assert.deepEqual(got.late, []);
    await kit.clock.advance(1);
    assert.deepEqual(got.late, [1, 2]);
    await kit.clock.advance(499);
    assert.deepEqual(got.late, [1, 2]);
    await kit.clock.advance(1);
    assert.deepEqual(got.late, [1, 2, 3]);
    await push(kit, { ms: 0, v: 4 });
    assert.deepEqual(got.late, [1, 2, 3, 4], 'the time in which nothing has waited does not count');
  });

  it('delays the rows after one that WHERE rejects', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await define(kit);
    const got: unknown[] = [];
    const sql = 'SELECT v FROM demo WHERE delay(ms, v) > 1';
    await streams.rules.create({ sql, actions: [(rows: Rows) => void got.push(...rows)] });
    await push(kit, { ms: 1000, v: 1 }, { ms: 1000, v: 2 });
    await kit.clock.advance(1999);
    assert.deepEqual(got, []);
    await kit.clock.advance(1);
    assert.deepEqual(got, [{ v: 2 }]);
  });

  it('continues with waiting emissions after a restart if the rule makes checkpoints', async () => {
    const store = memoryStore();
    const got: string[] = [];
    for (const round of [1, 2]) {
      await using kit = await createTestBroker({ store, leaks: 'ignore' });
      kit.broker.subscribe('out', ({ payload }) => void got.push(String(payload)));
      if (round === 1) {
        await define(kit);
        const sql = 'SELECT delay(20000, v) AS v FROM demo';
        const actions = [{ mqtt: { topic: 'out', sendSingle: true } }];
        await kit.broker.streams.rules.create({ id: 'r', sql, actions, options: { qos: 1 } });
        await push(kit, { v: 1 }, { v: 2 });
        await kit.clock.advance('1s');
        assert.deepEqual(got, []);
      } else {
        await kit.clock.advance('41s');
        assert.deepEqual(got, ['{"v":1}', '{"v":2}']);
      }
    }
  });

  it('drops waiting emissions when the rule is stopped, as windows do', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await define(kit);
    const got: unknown[] = [];
    const actions = [(rows: Rows) => void got.push(...rows)];
    await streams.rules.create({ id: 'r', sql: 'SELECT delay(1000, v) AS v FROM demo', actions });
    await push(kit, { v: 1 });
    await streams.rules.stop('r');
    await kit.clock.advance('2s');
    assert.deepEqual(got, []);
  });

  it('takes no time in a test of a statement', async () => {
    await using kit = await createTestBroker();
    await define(kit);
    const rows = [1, 2].map((v) => ({ stream: 'demo', values: { v } }));
    const { emissions, errors } = await kit.broker.streams.rules.test(
      { sql: 'SELECT delay(60000, v) AS v FROM demo' },
      rows
    );
    assert.deepEqual([emissions, errors], [[[{ v: 1 }], [{ v: 2 }]], []]);
  });

  it('refuses delays other than 0 ms to an hour: literals when the rule is created, others as errors of rows', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await define(kit);
    const actions = [{ nop: {} }];
    await assert.rejects(streams.rules.create({ sql: 'SELECT delay(3600001, v) FROM demo', actions }), /3600000/);
    await assert.rejects(streams.rules.create({ sql: 'SELECT delay(1) FROM demo', actions }), /delay/);
    const got: unknown[] = [];
    const keep = (rows: Rows) => void got.push(...rows.map(({ v, error }) => v ?? String(error)));
    await streams.rules.create({ sql: 'SELECT delay(ms, v) AS v FROM demo', actions: [keep] });
    await push(kit, { ms: -1, v: 1 }, { ms: 'x', v: 2 }, { v: 3 }, { ms: 0, v: 4 });
    assert.equal(got.length, 4);
    for (const error of got.slice(0, 3)) assert.match(String(error), /first argument of delay .* milliseconds/);
    assert.equal(got[3], 4);
  });

  it('refuses emissions when bufferLength of them are waiting, and ignores their delays', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await define(kit);
    const got: unknown[] = [];
    const keep = (rows: Rows) => void got.push(...rows.map(({ v, error }) => v ?? String(error)));
    const sql = 'SELECT delay(1000, v) AS v FROM demo';
    await streams.rules.create({ sql, actions: [keep], options: { bufferLength: 2 } });
    await push(kit, { v: 1 }, { v: 2 }, { v: 3 });
    assert.match(String(got), /2 emissions wait for delay\(\).*bufferLength/);
    got.length = 0;
    await kit.clock.advance('2s');
    assert.deepEqual(got, [1, 2]);
    await push(kit, { v: 4 });
    await kit.clock.advance('1s');
    assert.deepEqual(got, [1, 2, 4]);
  });
});
