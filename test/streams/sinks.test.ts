import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { MessageInput } from '../../lib/packets/message.ts';
import { FunctionTarget } from '../../lib/streams/graph/function-target.ts';
import type { ConnectionCounters } from '../../lib/streams/graph/metrics.ts';
import { MemoryTopics } from '../../lib/streams/memory-topics.ts';
import type { Emitter } from '../../lib/streams/sinks/emitter.ts';
import { memorySink } from '../../lib/streams/sinks/memory-sink.ts';
import { mqttSink } from '../../lib/streams/sinks/mqtt-sink.ts';
import { LOG_SINK, NOP_SINK } from '../../lib/streams/sinks/plain-sinks.ts';
import { planSink } from '../../lib/streams/sinks/sink-plan.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSink, PLAN, TestSink, turns } from './sink-bench.ts';

const ROWS = [{ id: 1, color: 'red' }, { id: 2 }];

/** The texts that a sink sends for rows with the given properties. */
async function sent(properties: object, ...emissions: (readonly Record<string, unknown>[])[]): Promise<string[]> {
  const sink = new TestSink();
  const { emitter } = await openSink(sink, properties);
  for (const rows of emissions) await emitter.push(rows);
  return sink.sent;
}

function shown({ connection }: Emitter): ConnectionCounters {
  assert.ok(connection !== undefined);
  return connection;
}

describe('The common properties of sinks', () => {
  it('sends an output as a JSON list, or each row separately', async () => {
    assert.deepEqual(await sent({}, ROWS), ['[{"id":1,"color":"red"},{"id":2}]']);
    assert.deepEqual(await sent({ sendSingle: true }, ROWS), ['{"id":1,"color":"red"}', '{"id":2}']);
  });

  it('omits empty outputs and rows with omitIfEmpty', async () => {
    assert.deepEqual(await sent({}, [{}], []), ['[{}]', '[]']);
    assert.deepEqual(await sent({ omitIfEmpty: true }, [{}], [], [{ a: undefined }], [{}, {}]), ['[{},{}]']);
    assert.deepEqual(await sent({ omitIfEmpty: true, sendSingle: true }, [{}, { a: 1 }]), ['{"a":1}']);
  });

  it('fills in a template from the list, or from each row', async () => {
    const template = '<ul>{{range .}}<li>{{.color}}</li>{{end}}</ul>';
    assert.deepEqual(await sent({ dataTemplate: template }, ROWS), ['<ul><li>red</li><li><no value></li></ul>']);
    const single = { sendSingle: true, dataTemplate: '{"wrapper":"w1", "c":"{{.color}}"}' };
    assert.deepEqual(await sent(single, [{ color: 'red' }]), ['{"wrapper":"w1", "c":"red"}']);
  });

  it('names sendSingle if a template reads a column of the list', async () => {
    await assert.rejects(
      sent({ dataTemplate: '{{.color}}' }, ROWS),
      /can't evaluate field color in type \[\]interface \{\}; the template gets a list of rows unless sendSingle is true$/
    );
    const nested = sent({ sendSingle: true, dataTemplate: '{{.list.a}}' }, [{ list: [1] }]);
    await assert.rejects(nested, /in type \[\]interface \{\}$/);
  });

  it('selects a column, then columns of it, from the output of the template', async () => {
    const row = { tele: { humidity: 80.2, temperature: 31.2, id: 1 }, id: 1 };
    assert.deepEqual(await sent({ fields: ['id', 'x'] }, [row, { x: 2 }]), ['[{"id":1},{"x":2}]']);
    assert.deepEqual(await sent({ excludeFields: ['tele'] }, [row]), ['[{"id":1}]']);
    assert.deepEqual(await sent({ dataField: 'tele', fields: ['humidity'] }, [row]), ['{"humidity":80.2}']);
    const dataTemplate = '{"a":{"b":{{.id}},"c":2}}';
    const properties = { sendSingle: true, dataTemplate, dataField: 'a', fields: ['b'] };
    assert.deepEqual(await sent(properties, [row]), ['{"b":1}']);
    await assert.rejects(
      sent({ dataTemplate: 'x', fields: ['b'] }, [row]),
      /fail to decode data x after applying dataTemplate/
    );
  });

  it('fails if the value from which dataField is selected is not a row', async () => {
    for (const dataTemplate of ['null', '7', '"a"', '[]', '[null]'])
      await assert.rejects(sent({ dataTemplate, dataField: 'a' }, ROWS), {
        name: 'StreamFailure',
        message: 'no row has the dataField a'
      });
    assert.deepEqual(await sent({ dataTemplate: '[{"a":5},{"a":6}]', dataField: 'a' }, ROWS), ['5']);
  });

  it('sends the error of a row regardless of the selected columns', async () => {
    assert.deepEqual(await sent({ fields: ['id'], dataField: 'x' }, [{ error: 'no' }]), ['[{"error":"no"}]']);
  });

  it('encodes delimited columns in the order of fields', async () => {
    const properties = { format: 'delimited', delimiter: ';', fields: ['color', 'id'] };
    assert.deepEqual(await sent(properties, [{ id: 1, color: 'a;b' }, { id: 2 }]), ['"a;b";1\n;2']);
  });

  it('keeps all digits of integers, and sends bytes as base64', async () => {
    assert.deepEqual(await sent({}, [{ a: 2n ** 60n, b: Buffer.from('hi') }]), [
      '[{"a":1152921504606846976,"b":"aGk="}]'
    ]);
  });

  it('compresses the data', async () => {
    const sink = new TestSink();
    const { emitter } = await openSink(sink, { compression: 'gzip' });
    emitter.push([{ a: 1 }]);
    assert.equal(String(gunzipSync(sink.items[0].bytes)), '[{"a":1}]');
  });

  it('fills in properties of the sink for each item', async () => {
    const sink = new TestSink();
    const { emitter } = await openSink(sink, { topic: 'a/{{.id}}', sendSingle: true });
    emitter.push(ROWS);
    assert.deepEqual(
      sink.items.map((item) => item.property('topic')),
      ['a/1', 'a/2']
    );
    const list = new TestSink();
    (await openSink(list, { topic: 'a/{{.id}}' })).emitter.push(ROWS);
    assert.equal(list.items[0].property('topic'), 'a/1', 'that of the first row');
    assert.equal(list.items[0].property('format'), 'json');
  });

  it('collects rows up to a number or a time', async () => {
    const clock = new ManualClock();
    const sink = new TestSink();
    const { emitter } = await openSink(sink, { batchSize: 3, lingerInterval: 100 }, { clock });
    emitter.push([{ a: 1 }]);
    emitter.push([{ a: 2 }, { a: 3 }]);
    assert.deepEqual(sink.sent, ['[{"a":1},{"a":2},{"a":3}]']);
    emitter.push([{ a: 4 }]);
    clock.advance(99);
    assert.equal(sink.sent.length, 1);
    clock.advance(1);
    assert.equal(sink.sent[1], '[{"a":4}]');
    emitter.push([{ a: 5 }]);
    await emitter.close();
    assert.equal(sink.sent[2], '[{"a":5}]', 'what is collected is sent at the end');
    assert.ok(sink.isClosed);
  });

  it('checks common properties when the rule is created', () => {
    const plan = (properties: object) => () => planSink(new TestSink(), properties, PLAN);
    const code = 'PROPERTY_INVALID';
    assert.throws(plan({ sendSingle: 1 }), {
      code,
      message: 'test sink: property sendSingle must be true or false, got 1'
    });
    assert.throws(plan({ dataTemplate: '{{.a' }), {
      code,
      message: 'property dataTemplate {{.a is invalid: template: sink:1:0: unclosed action'
    });
    assert.throws(plan({ topic: '{{foo}}' }), { code, field: 'topic' });
    assert.throws(plan({ format: 'xml' }), { code, field: 'format' });
    const requires = {
      ...new TestSink(),
      properties: { path: { type: 'string', required: true, about: '' } }
    } as const;
    assert.throws(() => planSink({ ...requires, open: () => assert.fail() }, { PATH: '' }, PLAN), {
      ...{ code, field: 'path' },
      message: 'test sink: property path must be a string that is not empty'
    });
    assert.throws(plan({ fields: [1] }), { code, field: 'fields' });
    assert.throws(plan({ encryption: 'aes' }), { code, field: 'encryption' });
  });

  it('reports unknown properties, unless the type has no table', () => {
    const warnings: string[] = [];
    const setup = { ...PLAN, warn: (text: string) => warnings.push(text) };
    planSink(new TestSink(), { topik: 'a' }, setup);
    planSink({ name: 'own', about: '', open: () => assert.fail() }, { topik: 'a' }, setup);
    assert.deepEqual(warnings, ['test sink: the unknown property "topik" has no effect; did you mean "topic"?']);
  });
});

describe('An emitter', () => {
  it('sends items one by one, and without a promise if the sink returns none', async () => {
    const sink = new TestSink();
    const { emitter } = await openSink(sink, {});
    assert.equal(emitter.push([{ a: 1 }]), undefined);
    const ends: (() => void)[] = [];
    sink.answer = () => new Promise<void>((resolve) => ends.push(resolve));
    const first = emitter.push([{ a: 2 }]);
    const second = emitter.push([{ a: 3 }]);
    await turns();
    assert.deepEqual([sink.sent.length, emitter.pending], [2, 2]);
    ends[0]();
    await first;
    await turns();
    assert.deepEqual([sink.sent.length, emitter.pending], [3, 1]);
    ends[1]();
    await second;
    assert.equal(emitter.pending, 0);
  });

  it('loses an item that cannot be sent, and continues', async () => {
    const sink = new TestSink();
    const { emitter, failures } = await openSink(sink, { sendSingle: true });
    sink.answer = (item) => {
      if ((item.value as { id: number }).id !== 2) throw new Error(`no ${(item.value as { id: number }).id}`);
    };
    await assert.rejects(async () => emitter.push([{ id: 1 }, { id: 2 }, { id: 3 }]), /no 1/);
    assert.deepEqual(failures, ['no 3']);
    assert.equal(sink.sent.length, 3);
    sink.answer = () => Promise.reject(new Error('later'));
    await assert.rejects(async () => emitter.push([{ id: 4 }]), /later/);
    sink.answer = undefined;
    assert.equal(emitter.push([{ id: 5 }]), undefined);
  });

  it('drops items that do not fit into the queue', async () => {
    const sink = new TestSink();
    const { emitter } = await openSink(sink, { bufferLength: 2 });
    let end = () => {};
    sink.answer = () => new Promise<void>((resolve) => (end = resolve));
    const sends = [emitter.push([{ a: 1 }]), emitter.push([{ a: 2 }])];
    assert.ok(emitter.isFull);
    assert.throws(() => emitter.push([{ a: 3 }]), {
      code: 'STREAM_FAILED',
      message: 'buffer full, drop message to the test sink: 2 are waiting (option bufferLength)'
    });
    end();
    await sends[0];
    await turns();
    end();
    await sends[1];
    assert.ok(!emitter.isFull);
  });

  it('sends without waiting for earlier items with runAsync', async () => {
    const sink = new TestSink();
    const { emitter } = await openSink(sink, { runAsync: true });
    const ends: (() => void)[] = [];
    sink.answer = () => new Promise<void>((resolve) => ends.push(resolve));
    const sends = [emitter.push([{ a: 1 }]), emitter.push([{ a: 2 }])];
    assert.equal(sink.sent.length, 2);
    for (const end of ends) end();
    await Promise.all(sends);
  });

  it('gives up on a sink that never answers', async () => {
    const clock = new ManualClock();
    const sink = new TestSink();
    const { emitter } = await openSink(sink, {}, { clock });
    sink.answer = () => new Promise(() => {});
    const sends = emitter.push([{ a: 1 }]) as Promise<void>;
    const failed = assert.rejects(sends, /test sink: no answer within 300000 ms/);
    await turns();
    clock.advance(300_000);
    await failed;
    assert.equal(emitter.pending, 0);
  });

  it('drops items that are still waiting 5 s after it was closed, instead of sending them to a closed sink', async () => {
    const clock = new ManualClock();
    const sink = new TestSink();
    const { emitter, failures } = await openSink(sink, {}, { clock });
    let end = () => {};
    sink.answer = () => new Promise<void>((resolve) => (end = resolve));
    const first = emitter.push([{ a: 1 }]);
    const second = emitter.push([{ a: 2 }]) as Promise<void>;
    const dropped = assert.rejects(second, {
      code: 'STREAM_FAILED',
      message: 'the test sink is closed: a waiting output is dropped'
    });
    const closed = emitter.close();
    await turns();
    clock.advance(5000);
    await closed;
    assert.deepEqual([failures, sink.isClosed], [['test sink: closing: no answer within 5000 ms'], true]);
    end();
    await first;
    await dropped;
    assert.deepEqual(sink.sent, ['[{"a":1}]']);
  });

  it('waits 5 s for a sink to close', async () => {
    const clock = new ManualClock();
    const sink = new TestSink();
    sink.closed = new Promise(() => {});
    const { emitter } = await openSink(sink, {}, { clock });
    const failed = assert.rejects(emitter.close(), { message: 'test sink: closing: no answer within 5000 ms' });
    await turns();
    clock.advance(5000);
    await failed;
  });

  it('sends the rows that it collects for a time once there are a million', async () => {
    const clock = new ManualClock();
    const sink = new TestSink();
    const { emitter } = await openSink(sink, { lingerInterval: 3_600_000, dataTemplate: '{{len .}}' }, { clock });
    emitter.push(new Array(999_999).fill({}));
    assert.deepEqual(sink.sent, []);
    emitter.push([{}]);
    assert.deepEqual([sink.sent, clock.pending], [['1000000'], 0]);
  });

  it('shows the connection once the sink has reported one', async () => {
    const clock = new ManualClock(1000);
    const sink = new TestSink();
    const { emitter } = await openSink(sink, {}, { clock });
    assert.equal(emitter.connection, undefined);
    sink.setup?.disconnected(new Error('refused'));
    const { status, disconnectedMessage, disconnectedAt } = shown(emitter);
    assert.deepEqual([status, disconnectedMessage, disconnectedAt], [-1, 'refused', 1000]);
    sink.setup?.connected();
    assert.equal(shown(emitter).status, 1);
  });
});

describe('A function of the app', () => {
  it('skips calls while too many promises of the function are pending', async () => {
    const ends: (() => void)[] = [];
    const target = new FunctionTarget(() => new Promise<void>((resolve) => ends.push(resolve)), 2);
    const first = target.push([{ a: 1 }]);
    target.push([{ a: 2 }]);
    assert.deepEqual([target.pending, target.isFull], [2, true]);
    assert.throws(() => target.push([{ a: 3 }]), {
      code: 'STREAM_FAILED',
      message: 'buffer full, drop message to the function: 2 calls are pending (option bufferLength)'
    });
    assert.equal(ends.length, 2);
    ends[0]();
    await first;
    assert.deepEqual([target.pending, target.isFull], [1, false]);
  });
});

describe('The log and nop sinks', () => {
  it('writes a line with the log sink, and nothing with the nop sink', async () => {
    const log = await openSink(LOG_SINK, {});
    log.emitter.push([{ a: 1 }]);
    assert.deepEqual(log.logged, ['sink result for rule r1: [{"a":1}]']);
    const quiet = await openSink(NOP_SINK, {});
    quiet.emitter.push([{ a: 1 }]);
    assert.deepEqual(quiet.logged, []);
    const loud = await openSink(NOP_SINK, { log: true });
    loud.emitter.push([{ a: 1 }]);
    assert.equal(loud.logged.length, 1);
  });
});

describe('The memory sink', () => {
  it('publishes rows, not encoded, to the listeners of matching topics', async () => {
    const topics = new MemoryTopics();
    const seen: unknown[] = [];
    const end = topics.subscribe('a/+', ({ topic, rows, rowkindField }) => seen.push([topic, rows, rowkindField]));
    const { emitter } = await openSink(memorySink(topics), { topic: 'a/{{.id}}', rowkindField: 'kind' });
    emitter.push(ROWS);
    assert.deepEqual(seen, [['a/1', ROWS, 'kind']]);
    end();
    emitter.push(ROWS);
    assert.equal(seen.length, 1);
  });

  it('parses the JSON of a template', async () => {
    const topics = new MemoryTopics();
    const seen: unknown[] = [];
    topics.subscribe('#', ({ rows }) => seen.push(rows));
    const properties = { topic: 't', sendSingle: true, dataTemplate: '{"key":{{.id}}}' };
    (await openSink(memorySink(topics), properties)).emitter.push([{ id: 1 }]);
    assert.deepEqual(seen, [[{ key: 1 }]]);
    const bad = await openSink(memorySink(topics), { topic: 't', dataTemplate: 'x' });
    assert.throws(() => bad.emitter.push([{}]), /memory sink: the output of the template is not valid JSON/);
  });

  it('refuses a cycle of rules', () => {
    const topics = new MemoryTopics();
    topics.subscribe('a', () => topics.publish('a', [], {}));
    assert.throws(() => topics.publish('a', [], {}), /the rules form a cycle/);
    assert.throws(() => topics.publish('a/#', [], {}), { code: 'TOPIC_NAME_INVALID' });
    assert.throws(() => topics.subscribe('$share/g/a', () => {}), { code: 'TOPIC_FILTER_INVALID' });
  });
});

describe('The mqtt sink', () => {
  const published: [MessageInput, string][] = [];
  const messages = { publish: (input: MessageInput, ruleId: string) => published.push([input, ruleId]) };

  it('publishes at this broker if there is no server, or if the server is this broker', async () => {
    const type = mqttSink({ messages: { ...messages, isOwn: (server) => server === 'tcp://127.0.0.1:1883' } });
    const { emitter } = await openSink(type, { topic: 'out/{{.id}}', qos: 1, retained: true, sendSingle: true });
    assert.equal(emitter.push([{ id: 7 }]), undefined);
    const payload = '{"id":7}';
    assert.deepEqual(published, [[{ topic: 'out/7', payload, qos: 1, retain: true }, 'r1']]);
    const own = await openSink(type, { server: 'tcp://127.0.0.1:1883', topic: 'a', clientId: 'x' });
    own.emitter.push([]);
    assert.equal(published.length, 2);
  });

  it('uses the registered sink for another broker', async () => {
    const remote = new TestSink();
    const { emitter } = await openSink(mqttSink({ messages, remote: () => remote }), { server: 'tcp://x', topic: 'a' });
    emitter.push([{ id: 1 }]);
    assert.deepEqual(remote.sent, ['[{"id":1}]']);
    const server = 'tcp://user:never-shown@x';
    await assert.rejects(
      openSink(mqttSink({ messages }), { server, topic: 'a' }),
      (error: Error) => !`${error.message} ${JSON.stringify(error)}`.includes('never-shown')
    );
    await assert.rejects(openSink(mqttSink({ messages }), { server: 'tcp://x', topic: 'a' }), {
      code: 'PROPERTY_INVALID',
      field: 'server'
    });
    await assert.rejects(openSink(mqttSink({ messages }), {}), { message: 'mqtt sink is missing property topic' });
    await assert.rejects(openSink(mqttSink({ messages }), { topic: 'a', qos: 3 }), { field: 'qos' });
  });
});
