import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StreamFormat } from '../../lib/adapter.ts';
import { StreamFailure } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { TestSink, turns } from './sink-bench.ts';

const DEMO = 'CREATE STREAM demo () WITH (DATASOURCE="a", FORMAT="PAIRS")';

/** `a=1;b=2` */
const pairs: StreamFormat = {
  name: 'Pairs',
  decode(bytes) {
    const text = Buffer.from(bytes).toString();
    if (!text.includes('=')) throw new StreamFailure('a pair is missing');
    return Object.fromEntries(text.split(';').map((pair) => pair.split('=')));
  },
  encode(value) {
    const pairsOf = Object.entries(value as object).map((pair) => pair.join('='));
    return pairsOf.join(';');
  }
};

describe('formats of the app', () => {
  it('decodes the payloads of streams and encodes the outputs of sinks', async () => {
    const sink = new TestSink();
    await using kit = await createTestBroker({ streams: { formats: [pairs], sinks: [sink] } });
    const { streams } = kit.broker;
    await streams.create(DEMO);
    const actions = [{ test: { format: 'pairs', sendSingle: true } }];
    await streams.rules.create({ id: 'r', sql: 'SELECT b, a FROM demo', actions, options: { sendError: false } });
    await kit.broker.publish({ topic: 'a', payload: 'a=1;b=x' });
    await kit.broker.publish({ topic: 'a', payload: 'none' });
    await turns();
    assert.deepEqual(sink.sent, ['b=x;a=1']);
    const { metrics } = await streams.rules.status('r');
    assert.equal(metrics.source_demo_0_exceptions_total, 1);
    assert.equal(metrics.source_demo_0_last_exception, 'a pair is missing');
  });

  it('fails for values that are not rows, and for values that are not bytes', async () => {
    const sink = new TestSink();
    const wrong = { name: 'pairs', decode: () => 5, encode: () => 5 } as unknown as StreamFormat;
    await using kit = await createTestBroker({ streams: { formats: [wrong], sinks: [sink] } });
    const { streams } = kit.broker;
    await streams.create(DEMO);
    const actions = [{ test: { format: 'pairs' } }];
    await streams.rules.create({ id: 'r', sql: 'SELECT a FROM demo', actions, options: { sendError: false } });
    await kit.broker.publish({ topic: 'a', payload: 'x' });
    await streams.push('demo', { a: 1 });
    await turns();
    const { metrics } = await streams.rules.status('r');
    const decoding = 'format "pairs" must decode to an object or to a list of objects';
    assert.equal(metrics.source_demo_0_last_exception, decoding);
    assert.equal(metrics.sink_test_0_0_last_exception, 'format "pairs" must encode to bytes or to a string');
  });

  it('refuses an invalid format, and a name that is in use', async () => {
    const starts = async (...formats: unknown[]) => {
      await using kit = await createTestBroker({ streams: { formats: formats as StreamFormat[] } });
      await kit.broker.streams.create(DEMO);
    };
    await assert.rejects(starts({ name: 'x' }), { code: 'FORMAT_INVALID', message: /decode\(\) and encode\(\)/ });
    await assert.rejects(starts({ ...pairs, name: 'x y' }), { code: 'FORMAT_INVALID' });
    await assert.rejects(starts({ ...pairs, name: 'JSON' }), { code: 'FORMAT_EXISTS', message: /built in/ });
    await assert.rejects(starts(pairs, pairs), { code: 'FORMAT_EXISTS' });
  });
});
