import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { csvText } from '../../adapters/streams/file/csv-text.ts';
import type { StreamRuleInput } from '../../lib/streams/types.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

/** Run a rule over payloads. @returns the rows of all emissions */
async function run(sql: string, payloads: readonly string[], given: Partial<StreamRuleInput> = {}, columns = '') {
  await using kit = await createTestBroker();
  const { streams } = kit.broker;
  await streams.create(`CREATE STREAM d (${columns}) WITH (DATASOURCE="in", FORMAT="json")`);
  const rows: Record<string, unknown>[] = [];
  const published: string[] = [];
  const unsubscribe = kit.broker.subscribe('out', (message) => void published.push(message.payload.toString()));
  await streams.rules.create({ id: 'r', sql, actions: [(each) => void rows.push(...each)], ...given });
  for (const payload of payloads) await kit.broker.publish('in', payload);
  await kit.clock.settle();
  const { metrics } = await streams.rules.status('r');
  unsubscribe();
  return { rows, published, metrics };
}

const QUIET = { options: { sendError: false } };

describe('numbers of streams', () => {
  it('reports an infinite number as the error of its row, so that running sums continue', async () => {
    const payloads = ['{"a":1}', '{"a":1e999}', '{"a":2}'];
    const { rows, metrics } = await run('SELECT acc_sum(a) AS s FROM d', payloads, QUIET);
    assert.deepEqual(rows, [{ s: 1 }, { s: 3 }]);
    assert.equal(metrics.source_d_0_exceptions_total, 1, Object.keys(metrics).join());
  });

  it('reports an infinite number in a declared column of any type, and ignores it in other members', async () => {
    for (const type of ['FLOAT', 'BIGINT', 'STRING'])
      for (const strict of ['', ', STRICT_VALIDATION="true"']) {
        await using kit = await createTestBroker();
        const { streams } = kit.broker;
        await streams.create(`CREATE STREAM d (a ${type}, id BIGINT) WITH (DATASOURCE="in", FORMAT="json"${strict})`);
        const rows: Record<string, unknown>[] = [];
        await streams.rules.create({ sql: 'SELECT a, id FROM d', actions: [(each) => void rows.push(...each)] });
        const one = type === 'STRING' ? '"1"' : '1';
        for (const payload of ['{"a":1e999,"id":1}', `{"a":${one},"id":9007199254740993,"b":1e400}`])
          await kit.broker.publish('in', payload);
        await kit.clock.settle();
        assert.match(String(rows[0].error), /a/, type);
        assert.deepEqual(rows[1], { a: JSON.parse(one), id: 9007199254740993n });
      }
  });

  it('passes on integers of any size with all their digits, as JSON, in templates and to functions of the app', async () => {
    const id = '123456789012345678901234567890';
    const { rows, published } = await run('SELECT id, nested FROM d', [`{"id":${id},"nested":{"a":[${id}]}}`], {
      actions: [
        { mqtt: { topic: 'out', sendSingle: true } },
        { mqtt: { topic: 'out', sendSingle: true, dataTemplate: '{{.id}} {{json .nested}}' } },
        { mqtt: { topic: 'out', sendSingle: true, dataTemplate: '{"id":{{.id}}}', fields: ['id'] } }
      ]
    });
    assert.deepEqual(rows, []);
    assert.deepEqual(published, [`{"id":${id},"nested":{"a":[${id}]}}`, `${id} {"a":[${id}]}`, `{"id":${id}}`]);
    assert.equal(csvText([{ a: { id: BigInt(id) } }], ['a'], ',', false), `"{""id"":${id}}"\n`);
  });

  it('computes exactly with integers of 64 bits, and treats larger ones as floats', async () => {
    const sql = `SELECT id, id + 1 AS next, id * 0.5 AS half, id = 9007199254740993 AS same, id > 9007199254740992.0 AS more
      FROM d`;
    const { rows } = await run(sql, ['{"id":9007199254740993}', '{"id":18446744073709551616}']);
    assert.deepEqual(rows, [
      { id: 9007199254740993n, next: 9007199254740994n, half: 2 ** 52, same: true, more: true },
      { id: 2n ** 64n, next: 2 ** 64, half: 2 ** 63, same: false, more: true }
    ]);
    const total = 'SELECT sum(id) AS s, max(id) AS m, avg(id) AS a FROM d GROUP BY COUNTWINDOW(2)';
    const sums = await run(total, [
      ...['{"id":9007199254740993}', '{"id":9007199254740995}'],
      ...['{"id":1}', '{"id":18446744073709551616}']
    ]);
    assert.deepEqual(sums.rows, [
      { s: 18014398509481988n, m: 9007199254740995n, a: 9007199254740994n },
      { s: 2 ** 64, m: 2n ** 64n, a: 2 ** 63 }
    ]);
  });

  it('distinguishes two ids that are equal as floats', async () => {
    await using kit = await createTestBroker();
    const { streams } = kit.broker;
    await streams.create('CREATE STREAM d () WITH (DATASOURCE="in", FORMAT="json")');
    const rows: Record<string, unknown>[] = [];
    const sql = 'SELECT id, count(*) AS n, sum(x) AS s FROM d GROUP BY id, COUNTWINDOW(3)';
    await streams.rules.create({ sql, actions: [(each) => void rows.push(...each)] });
    for (const id of ['9007199254740993', '9007199254740992', '9007199254740993'])
      await kit.broker.publish('in', `{"id":${id},"x":1}`);
    await kit.clock.settle();
    assert.deepEqual(rows, [
      { id: 9007199254740993n, n: 2, s: 2 },
      { id: 9007199254740992n, n: 1, s: 1 }
    ]);
  });
});
