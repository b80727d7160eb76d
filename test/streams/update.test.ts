import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SinkType } from '../../lib/adapter.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="demo", FORMAT="JSON")';
const SQL = 'SELECT a FROM demo';

/** A sink that opens and closes only when the test allows it. */
function slowSink(seen: string[]) {
  let reached = () => {};
  let go: (error?: Error) => void = () => {};
  const type: SinkType = {
    name: 'slow',
    about: 'Opens late.',
    async open({ properties }) {
      await new Promise<void>((resolve, reject) => {
        go = (error) => (error === undefined ? resolve() : reject(error));
        reached();
      });
      return {
        send: ({ value }) => void seen.push(`${properties.as} ${JSON.stringify(value)}`),
        close: () => undefined
      };
    }
  };
  return { type, opens: () => new Promise<void>((resolve) => (reached = resolve)), go: (error?: Error) => go(error) };
}

describe('An update of a running stream rule', () => {
  it('neither loses nor repeats rows that arrive while its sinks open', async () => {
    const seen: string[] = [];
    const slow = slowSink(seen);
    await using kit = await createTestBroker({ leaks: 'ignore', streams: { sinks: [slow.type] } });
    const { streams } = kit.broker;
    await streams.create(DEMO);
    await streams.rules.create({
      id: 'r',
      sql: SQL,
      actions: [(rows) => void seen.push(`old ${JSON.stringify(rows)}`)]
    });
    await streams.push('demo', { a: 1 });
    const opens = slow.opens();
    const updated = streams.rules.update('r', { sql: SQL, actions: [{ slow: { as: 'new' } }] });
    await streams.push('demo', { a: 2 });
    await opens;
    await kit.broker.publish('demo', '{"a": 3}');
    await streams.push('demo', { a: 4 });
    slow.go();
    await updated;
    await streams.push('demo', { a: 5 });
    await kit.clock.settle();
    const numbers = seen.map((text) => Number(/"a":(\d)/.exec(text)?.[1]));
    assert.deepEqual(numbers, [1, 2, 3, 4, 5]);
    assert.deepEqual(seen.slice(2), ['new [{"a":3}]', 'new [{"a":4}]', 'new [{"a":5}]']);
  });

  it('passes these rows to the previous definition if the new one cannot run', async () => {
    const seen: unknown[] = [];
    const slow = slowSink([]);
    await using kit = await createTestBroker({ leaks: 'ignore', streams: { sinks: [slow.type] } });
    const { streams } = kit.broker;
    await streams.create(DEMO);
    await streams.rules.create({ id: 'r', sql: SQL, actions: [(rows) => void seen.push(...rows)] });
    const opens = slow.opens();
    const updated = streams.rules.update('r', { sql: 'SELECT b FROM demo', actions: [{ slow: {} }] });
    await opens;
    await streams.push('demo', { a: 1, b: 2 });
    slow.go(new Error('no'));
    await assert.rejects(updated, { message: 'no' });
    await streams.push('demo', { a: 2 });
    assert.deepEqual(seen, [{ a: 1 }, { a: 2 }]);
  });

  it('holds back at most bufferLength rows, and reports how many were dropped', async () => {
    const seen: string[] = [];
    const slow = slowSink(seen);
    await using kit = await createTestBroker({ leaks: 'ignore', streams: { sinks: [slow.type] } });
    const { streams } = kit.broker;
    await streams.create(DEMO);
    await streams.rules.create({ id: 'r', sql: SQL, actions: [() => undefined] });
    const opens = slow.opens();
    const actions = [{ slow: { as: 'new' } }];
    const updated = streams.rules.update('r', { sql: SQL, actions, options: { bufferLength: 2 } });
    await opens;
    for (const a of [1, 2, 3, 4]) await streams.push('demo', { a });
    slow.go();
    await updated;
    await kit.clock.settle();
    assert.deepEqual(seen.slice(0, 2), ['new [{"a":1}]', 'new [{"a":2}]']);
    assert.match(
      `${(await streams.rules.status('r')).metrics.source_demo_0_last_exception}`,
      /2 rows were dropped while/
    );
  });
});
