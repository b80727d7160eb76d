import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SinkType } from '../../lib/adapter.ts';
import { createTestBroker } from '../../lib/testing/index.ts';

const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="t", FORMAT="JSON")';

/** A sink that records the properties with which it is opened and closed; `token` is a secret. */
function notedSink(): { readonly type: SinkType; readonly calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    type: {
      name: 'noted',
      about: 'For tests.',
      properties: { key: { type: 'string', about: 'A secret.', isSecret: true } },
      open({ properties: { key } }) {
        if (key === 'wrong') throw new Error('the key is wrong');
        calls.push(`open ${key}`);
        return { send: () => undefined, close: () => void calls.push(`close ${key}`) };
      }
    }
  };
}

describe('The rules over streams', () => {
  it('keeps a secret, in the rule and in exports, if a change contains the placeholder shown for it', async () => {
    const { type, calls } = notedSink();
    await using kit = await createTestBroker({ streams: { sinks: [type], definitions: [DEMO] } });
    const { streams } = kit.broker;
    const actions = [{ noted: { KEY: 'k' } }];
    const made = await streams.rules.create({ id: 'r1', sql: 'SELECT * FROM demo', actions });
    assert.deepEqual(made.actions, [{ noted: { KEY: '******' } }]);
    const { actions: shown } = await streams.rules.update('r1', { ...made, sql: 'SELECT a FROM demo' });
    assert.deepEqual(shown, [{ noted: { KEY: '******' } }]);
    const { rules } = await streams.export();
    assert.deepEqual(JSON.parse(rules.r1).actions, actions);
    await streams.deleteType('sink', 'noted');
    assert.deepEqual((await streams.rules.get('r1'))?.actions, [{ noted: { KEY: '******' } }], 'its table is unknown');
    await streams.rules.delete('r1');
    assert.deepEqual(calls, ['open k', 'close k', 'open k', 'close k']);
  });

  it('warns of columns with the same name, because only the last of them is kept', async () => {
    await using kit = await createTestBroker({ streams: { definitions: [DEMO] } });
    const warnings: string[] = [];
    kit.broker.on('streams.warned', ({ text }) => warnings.push(text));
    const { rules } = kit.broker.streams;
    const create = (id: string, sql: string) => rules.create({ id, sql, actions: [{ nop: {} }] });
    await create('one', 'SELECT avg(a), avg(b), avg(c), sum(a) FROM demo GROUP BY COUNTWINDOW(2)');
    await create('two', 'SELECT avg(a) AS x, avg(b) AS y, *, a + 1 AS a FROM demo GROUP BY COUNTWINDOW(2)');
    assert.deepEqual(warnings, [
      'stream rule one: several columns have the name avg, and only the last one is kept: rename the others with AS'
    ]);
  });

  it('continues without a restart if an update changes nothing relevant or cannot run', async () => {
    const { type, calls } = notedSink();
    await using kit = await createTestBroker({ streams: { sinks: [type], definitions: [DEMO] } });
    const { rules } = kit.broker.streams;
    const rule = { sql: 'SELECT * FROM demo', actions: [{ noted: { key: 'k' } }] };
    await rules.create({ id: 'r1', ...rule });
    await rules.update('r1', { ...rule, tags: ['a'], name: 'One' });
    assert.deepEqual(calls, ['open k']);
    assert.deepEqual((await rules.list())[0].tags, ['a']);
    await assert.rejects(rules.update('r1', { ...rule, sql: 'SELECT * FROM nowhere' }), { code: 'STREAM_NOT_FOUND' });
    assert.deepEqual(calls, ['open k']);
    const restartStrategy = { attempts: 3, delay: 1000, multiplier: 2, maxDelay: 30_000, jitterFactor: 0 };
    const wrong = { ...rule, actions: [{ noted: { key: 'wrong' } }], options: { restartStrategy } };
    await assert.rejects(rules.update('r1', wrong), { message: 'the key is wrong' });
    assert.deepEqual(calls, ['open k', 'close k', 'open k']);
    assert.equal((await rules.list())[0].status, 'Running');
    await rules.stop('r1');
    await assert.rejects(rules.update('r1', wrong), { message: 'the key is wrong' });
    await kit.clock.advance('1h');
    assert.equal((await rules.list())[0].status, 'Stopped: canceled manually.');
    assert.deepEqual(calls, ['open k', 'close k', 'open k', 'close k']);
  });
});
