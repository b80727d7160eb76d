import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { discardCaches } from '../../lib/streams/sinks/cache.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { Lives } from '../store/support.ts';
import { openSink, TestSink, turns } from './sink-bench.ts';

describe('The cache of a sink', () => {
  it('repeats failed outputs in order, and reports each failed attempt', async () => {
    await using kit = await createTestBroker();
    const { outboxes } = kit.broker;
    const sink = new TestSink();
    sink.answer = () => Promise.reject(new Error('refused'));
    const properties = { enableCache: true, resendInterval: 100, topic: 'a/{{.id}}', sendSingle: true };
    const { emitter, failures } = await openSink(sink, properties, { clock: kit.clock, outboxes });
    assert.equal(emitter.push([{ id: 1 }, { id: 2 }]), undefined);
    await turns();
    assert.deepEqual([sink.sent, failures, emitter.pending], [['{"id":1}'], ['refused'], 2]);
    sink.answer = undefined;
    await kit.clock.advance(200);
    assert.deepEqual(sink.sent, ['{"id":1}', '{"id":1}', '{"id":2}']);
    assert.deepEqual(
      sink.items.map((item) => item.property('topic')),
      ['a/1', 'a/1', 'a/2']
    );
    assert.deepEqual(sink.items[2].value, { id: 2 });
    assert.equal(sink.items[0].id, sink.items[1].id);
    assert.equal(emitter.pending, 0);
    await emitter.close();
  });

  it('raises alarms that name the sink and the rule', async () => {
    await using kit = await createTestBroker();
    const sink = new TestSink();
    sink.answer = () => Promise.reject(new Error('refused.'));
    const { outboxes, alarms } = kit.broker;
    const { emitter } = await openSink(
      sink,
      { enableCache: true, resendInterval: 100 },
      { clock: kit.clock, outboxes }
    );
    emitter.push([{ id: 1 }]);
    await kit.clock.advance('1s');
    const [{ id, title, summary }] = alarms.present();
    assert.equal(id, 'outbox_failing:sink_test_0 of stream rule r1');
    assert.equal(title, 'sink_test_0 of stream rule r1: deliveries fail');
    assert.match(
      summary,
      /^Deliveries to "sink_test_0 of stream rule r1" fail\. They are repeated; 1 entry is waiting\. The state of/
    );
    await emitter.close();
  });

  it('gives up after retryCount attempts', async () => {
    await using kit = await createTestBroker();
    const sink = new TestSink();
    sink.answer = () => Promise.reject(new Error('refused'));
    const properties = { enableCache: true, retryInterval: 10, retryCount: 2 };
    const { outboxes } = kit.broker;
    const { emitter, failures } = await openSink(sink, properties, { clock: kit.clock, outboxes });
    emitter.push([{ id: 1 }]);
    await kit.clock.advance(1000);
    assert.deepEqual([failures, emitter.pending], [['refused', 'refused'], 0]);
  });

  it('drops the oldest output when it is full', async () => {
    await using kit = await createTestBroker();
    const sink = new TestSink();
    const properties = { enableCache: true, memoryCacheThreshold: 2, maxDiskCache: 0 };
    const { outboxes } = kit.broker;
    const { emitter, failures } = await openSink(sink, properties, { clock: kit.clock, outboxes });
    for (let id = 1; id <= 3; id++) emitter.push([{ id }]);
    await turns();
    assert.deepEqual(sink.sent, ['[{"id":2}]', '[{"id":3}]']);
    assert.match(failures[0], /the cache of the sink is full/);
  });

  it('survives a restart of the broker, and is deleted with its rule', async () => {
    await using lives = await new Lives().begin();
    const sink = new TestSink();
    sink.answer = () => Promise.reject(new Error('refused'));
    const open = () =>
      openSink(sink, { enableCache: true }, { clock: lives.kit.clock, outboxes: lives.kit.broker.outboxes });
    (await open()).emitter.push([{ id: 1, note: 'ä' }]);
    await lives.kit.clock.settle();
    await lives.kill();
    sink.sent.length = 0;
    sink.answer = undefined;
    const { emitter } = await open();
    await lives.kit.clock.settle();
    assert.deepEqual(sink.sent, ['[{"id":1,"note":"ä"}]']);
    assert.deepEqual(sink.items.at(-1)?.value, [{ id: 1, note: 'ä' }]);
    sink.answer = () => Promise.reject(new Error('refused'));
    emitter.push([{ id: 2 }]);
    await lives.kit.clock.settle();
    await emitter.close();
    assert.equal(lives.kit.broker.outboxes.kept().length, 1);
    discardCaches(lives.kit.broker.outboxes, 'r');
    assert.equal(lives.kit.broker.outboxes.kept().length, 1, 'that of another rule');
    discardCaches(lives.kit.broker.outboxes, 'r1');
    assert.equal(lives.kit.broker.outboxes.kept().length, 0);
  });

  it('clears the cache when the rule stops, on request', async () => {
    await using lives = await new Lives().begin();
    const sink = new TestSink();
    sink.answer = () => Promise.reject(new Error('refused'));
    const { outboxes } = lives.kit.broker;
    const { emitter } = await openSink(
      sink,
      { enableCache: true, cleanCacheAtStop: true },
      { clock: lives.kit.clock, outboxes }
    );
    emitter.push([{ id: 1 }]);
    await lives.kit.clock.settle();
    await emitter.close();
    assert.deepEqual(outboxes.kept(), []);
  });
});
