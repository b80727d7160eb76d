import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import type { KeptTraceOptions } from '../../lib/index.ts';
import { createTestBroker } from '../../lib/testing/index.ts';
import { rawClient } from '../support/raw-client.ts';

describe('broker.monitor.traces', () => {
  it('keeps the last ten traces that have ended, in the order in which they ended', async () => {
    await using kit = await createTestBroker();
    const { traces } = kit.broker.monitor;
    const ids = () => traces.list().map(({ id }) => id);
    const started = Array.from({ length: 12 }, (_, at) => traces.start({ clientId: `c${at}` }));
    assert.equal(ids().length, 12, 'active traces are not limited to ten');
    for (const trace of started.toReversed()) trace.stop();
    assert.deepEqual(ids(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 'the two that ended first are gone');
    traces.start({ clientId: 'd', durationMs: 1_000 });
    await kit.clock.advance('2s');
    assert.deepEqual(ids(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 13]);
  });

  it('keeps no lines of a deleted trace, and keeps the others when an active one is deleted', async () => {
    await using kit = await createTestBroker();
    const { traces } = kit.broker.monitor;
    for (let left = 10; left > 0; left--) traces.start({ clientId: 'c' }).stop();
    const { id } = traces.start({ clientId: 'c' });
    assert.equal(traces.delete(id), true);
    assert.deepEqual([traces.get(id), traces.lineCount(id)], [undefined, undefined]);
    assert.equal(traces.list().length, 10);
    assert.equal(traces.delete(3), true);
    traces.start({ clientId: 'c' }).stop();
    assert.deepEqual(
      traces.list().map(({ id: each }) => each),
      [1, 2, 4, 5, 6, 7, 8, 9, 10, 12]
    );
  });

  it('keeps the lines of a trace that is stopped, until it is deleted', async () => {
    await using kit = await createTestBroker();
    const { traces } = kit.broker.monitor;
    const { id } = traces.start({ topic: 'a' });
    await kit.broker.publish('a', 'x');
    const before = traces.lines(id, 0, 10);
    assert.equal(before.length, 2);
    assert.equal(traces.stop(id), true);
    await kit.broker.publish('a', 'y');
    assert.deepEqual(traces.lines(id, 0, 10), before);
    assert.deepEqual([traces.get(id)?.endReason, traces.stop(id)], ['stopped', true], 'also if it has ended already');
    assert.equal(traces.delete(id), true);
    assert.equal(traces.stop(id), false);
  });

  it('always keeps the last line, also if it is larger than all lines may be together', async () => {
    await using kit = await createTestBroker();
    const { traces } = kit.broker.monitor;
    const { id } = traces.start({ topic: '#', maxPayloadBytes: 1_000_000 });
    const topics = () => [...new Set(traces.lines(id, 0, 10).map(({ line }) => JSON.parse(line).topic))];
    await kit.broker.publish('small', 'x');
    await kit.broker.publish('large', Buffer.alloc(300_000));
    assert.deepEqual(topics(), ['large']);
    await kit.broker.publish('next', 'x');
    assert.deepEqual(topics(), ['next']);
  });

  it('counts the names of clients and the topic filters of subscriptions for the limit of 262,144 bytes', async () => {
    await using kit = await createTestBroker({ maxClientidLen: 65_535 });
    const { broker } = kit;
    const long = (end: string) => `${'x'.repeat(60_000)}${end}`;
    const { id } = broker.monitor.traces.start({ address: '192.0.2.1' });
    for (const end of 'abcdef') {
      const client = await rawClient(broker, { clientId: long(end), meta: { remoteAddress: '192.0.2.1' } });
      client.stream.destroy();
      await kit.clock.settle();
    }
    const lines = broker.monitor.traces.lines(id, 0, 1_000);
    assert.ok(lines.at(-1)?.line.includes(long('f')));
    const total = lines.reduce((sum, { line }) => sum + line.length, 0);
    assert.ok(total < 300_000, `${total} bytes`);
  });

  const forms: readonly Omit<KeptTraceOptions, 'topic'>[] = [
    {},
    { maxPayloadBytes: 3 },
    { payload: 'hex', maxPayloadBytes: 0 },
    { payload: 'base64', maxPayloadBytes: 4 },
    { payload: 'none' }
  ];
  for (const form of forms)
    it(`returns the lines that a function and a stream receive, with ${JSON.stringify(form)}`, async () => {
      await using kit = await createTestBroker();
      const { broker } = kit;
      const options = { ...form, clientId: 'c' };
      const lines: string[] = [];
      const stream = new PassThrough();
      const given = broker.trace({ ...options, to: (_record, line) => lines.push(line) });
      const streamed = broker.trace({ ...options, to: stream });
      const kept = broker.monitor.traces.start(options);
      const client = await rawClient(broker, { clientId: 'c', meta: { mountpoint: 'm/' } });
      client.send({
        cmd: 'subscribe',
        messageId: 1,
        subscriptions: [{ topic: 'a', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 }]
      });
      const publish = { cmd: 'publish', qos: 1, dup: false, retain: false } as const;
      const payload = Buffer.from('grüße');
      client.send({ ...publish, topic: 'a', messageId: 2, payload, properties: { topicAlias: 1, contentType: 't' } });
      client.send({ ...publish, topic: '', messageId: 3, payload, properties: { topicAlias: 1 } });
      await kit.clock.settle();
      const written = [
        Buffer.from('300900036d2f6200ff7879', 'hex'),
        Buffer.from('300c0003612f23006c6f6e676572', 'hex') // refused: the topic has a wildcard
      ];
      for (const bytes of written) client.stream.write(bytes);
      await kit.clock.settle();
      for (const bytes of written) bytes.fill(0); // the memory of a chunk that has been read is used for others
      for (const trace of [given, streamed]) trace.stop();
      const kinds = lines.map((line) => JSON.parse(line).packet ?? JSON.parse(line).event);
      for (const kind of ['connect', 'connack', 'publish', 'puback', 'message.publish', 'client.disconnected'])
        assert.ok(kinds.includes(kind), kind);
      assert.ok(lines.some((line) => line.includes('"error"')));
      assert.deepEqual(
        broker.monitor.traces.lines(kept.id, 0, 1_000).map(({ line }) => line),
        lines
      );
      assert.equal((await stream.toArray()).join(''), `${lines.join('\n')}\n`);
    });
});
