import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inSlices, WorkTime } from '../../lib/base/slices.ts';
import { createBroker } from '../../lib/index.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** A broker with a function `work`, in both languages, that takes 4 ms. */
async function begin() {
  const clock = new ManualClock(1_000);
  let calls = 0;
  const run = () => {
    calls++;
    clock.advance(4);
    return 1;
  };
  const broker = createBroker({ clock });
  await broker.start();
  const about = 'Takes 4 ms.';
  await broker.rules.createFunction({ name: 'work', family: 'own', params: ['any'], returns: 'any', about, run });
  await broker.streams.createFunction({ name: 'work', family: 'own', kind: 'scalar', params: ['any'], about, run });
  await broker.streams.create('CREATE STREAM demo () WITH (DATASOURCE="demo")');
  return { broker, calls: () => calls };
}

/** Count turns of the event loop while work goes on. */
async function turnsDuring<T>(work: Promise<T>): Promise<{ result: PromiseSettledResult<T>; turns: number }> {
  let turns = 0;
  let timer = setImmediate(function next() {
    turns++;
    timer = setImmediate(next);
  });
  const [result] = await Promise.allSettled([work]);
  clearImmediate(timer);
  return { result, turns };
}

const ROWS = Array.from({ length: 1_000 }, (_, a) => ({ stream: 'demo', values: { a } }));
const ITEMS = { topic: 't', payload: { items: Array.from({ length: 1_000 }, (_, a) => a) } };

describe('A test of a statement', () => {
  it('runs over rows in slices, and stops with the reason after a second', async () => {
    const { broker, calls } = await begin();
    await using _ = broker;
    const sql = 'SELECT work(a) AS w FROM demo';
    const { result, turns } = await turnsDuring(broker.streams.rules.test({ sql }, ROWS));
    assert.equal(calls(), 251);
    assert.ok(turns > 100, `${turns}`);
    const { code, message } = (result as PromiseRejectedResult).reason;
    assert.deepEqual([code, message], ['STREAM_RULE_INVALID', TOO_LONG.replace('WHAT', 'fewer rows')]);
    assert.equal((await broker.streams.rules.test({ sql }, ROWS.slice(0, 250))).emissions.length, 250);
  });

  it('counts the time of windows that end after the last row', async () => {
    const { broker, calls } = await begin();
    await using _ = broker;
    const sql = 'SELECT work(count(*)) AS w FROM demo GROUP BY HOPPINGWINDOW(hh, 24, 1), a';
    await assert.rejects(broker.streams.rules.test({ sql }, ROWS.slice(0, 100)), { code: 'STREAM_RULE_INVALID' });
    assert.ok(calls() < 500, `${calls()}`);
  });

  it('runs over an event in slices between the elements of FOREACH, and stops after a second', async () => {
    const { broker, calls } = await begin();
    await using _ = broker;
    const sql = 'FOREACH payload.items AS i DO work(i) AS w FROM "t"';
    const { result, turns } = await turnsDuring(broker.rules.test(sql, ITEMS));
    assert.equal(calls(), 251);
    assert.ok(turns > 100, `${turns}`);
    const { code, message } = (result as PromiseRejectedResult).reason;
    assert.deepEqual([code, message], ['RULE_INVALID', TOO_LONG.replace('WHAT', 'a shorter list')]);
    const short = { topic: 't', payload: { items: [1, 2, 3] } };
    assert.deepEqual((await broker.rules.test(sql, short)).outputs, [{ w: 1 }, { w: 1 }, { w: 1 }]);
  });

  it('stops within one row or event when a function call ends after a second', async () => {
    const { broker, calls } = await begin();
    await using _ = broker;
    const nested = `${'work('.repeat(400)}a${')'.repeat(400)}`;
    const rows = broker.streams.rules.test({ sql: `SELECT ${nested} AS w FROM demo` }, ROWS.slice(0, 1));
    await assert.rejects(rows, { code: 'STREAM_RULE_INVALID', message: TOO_LONG.replace('WHAT', 'fewer rows') });
    assert.equal(calls(), 251);
    const event = broker.rules.test(`SELECT ${nested} AS w FROM "t"`, ITEMS);
    await assert.rejects(event, { code: 'RULE_INVALID', message: TOO_LONG.replace('WHAT', 'a shorter list') });
    assert.equal(calls(), 502);
  });

  it('stops within the rows that unnest() creates from one row, and within the pairs of a join', async () => {
    const { broker, calls } = await begin();
    await using _ = broker;
    const row = { stream: 'demo', values: { list: ITEMS.payload.items } };
    const several = broker.streams.rules.test({ sql: 'SELECT unnest(list) AS e, work(a) AS w FROM demo' }, [row]);
    await assert.rejects(several, { code: 'STREAM_RULE_INVALID' });
    assert.equal(calls(), 251);
    const sql =
      'SELECT l.a AS a FROM demo AS l INNER JOIN demo AS r ON work(l.a) > r.a GROUP BY TUMBLINGWINDOW(ss, 10)';
    await assert.rejects(broker.streams.rules.test({ sql }, ROWS.slice(0, 100)), { code: 'STREAM_RULE_INVALID' });
    assert.ok(calls() <= 2 * 251, `${calls()}`);
  });

  it('ends its steps when it is refused', async () => {
    const clock = new ManualClock();
    let isEnded = false;
    function* steps(): Generator<void, void> {
      try {
        for (;;) {
          clock.advance(1);
          yield;
        }
      } finally {
        isEnded = true;
      }
    }
    const time = new WorkTime(clock, 20);
    const setup = { time, pause: async () => undefined, tooLong: () => new Error('too long') };
    await assert.rejects(inSlices(steps(), setup), /too long/);
    assert.deepEqual([isEnded, clock.monotonic()], [true, 21]);
  });
});

const TOO_LONG = 'the test was stopped after 1000 ms: give it WHAT, or make the statement cheaper';
