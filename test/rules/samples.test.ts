// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of rules
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { republish, ruleKit } from './support.ts';

/** The payload of the n-th message. */
const payload = (n: number) => `{"t": ${n}}`;

describe('Samples of rules', () => {
  it('keeps the last five inputs and outputs of a rule, at most one of each in 100 ms', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    const { id } = await broker.rules.create({ sql: 'SELECT payload.t AS t FROM "s/#"', actions: [] });
    assert.deepEqual(await broker.rules.samples(id), {
      inputs: [],
      outputs: [],
      errors: [],
      rejected: [],
      excluded: 0
    });
    const client = await broker.connect({ clientId: 'dev' });
    const start = clock.now();
    for (let n = 0; n < 80; n++) {
      await client.publish('s/1', payload(n), { qos: 1 });
      await clock.advance('10ms');
    }
    const { inputs, outputs, errors, rejected } = await broker.rules.samples(id);
    assert.deepEqual(
      inputs.map(({ at, columns }) => [at - start, columns.payload]),
      [300, 400, 500, 600, 700].map((at) => [at, payload(at / 10)])
    );
    assert.deepEqual(
      outputs.map(({ output }) => output),
      [30, 40, 50, 60, 70].map((t) => ({ t }))
    );
    const [{ event, columns, isCut }] = inputs;
    assert.deepEqual([event, columns.clientid, columns.topic, isCut], ['message.publish', 'dev', 's/1', false]);
    assert.deepEqual([errors, rejected], [[], []]);
    await assert.rejects(broker.rules.samples('none'), { code: 'RULE_NOT_FOUND' });
  });

  it('keeps events that WHERE has excluded, with the values that it reads', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    const where = `payload.a.b > 80 AND payload.absent = 1 OR lower(clientid) = 'x' AND qos() = 1 AND big = 'y'`;
    const { id } = await broker.rules.create({
      sql: `SELECT payload.a.b AS big, topic FROM "s/#" WHERE ${where}`,
      actions: []
    });
    const list = await broker.rules.create({
      sql: 'FOREACH payload.list AS each DO each.n AS n FROM "s/#" WHERE nth(1, each) > 5',
      actions: []
    });
    const client = await broker.connect({ clientId: 'Dev' });
    await client.publish('s/1', '{"a": {"b": 79}, "list": [1, 7]}', { qos: 1 });
    const at = clock.now();
    const { inputs, outputs, rejected } = await broker.rules.samples(id);
    assert.deepEqual([inputs.length, outputs.length], [1, 0]);
    const columns = { 'payload.a.b': 79, clientid: 'Dev', 'qos()': 1, big: 79 };
    assert.deepEqual(rejected, [
      { at, isCut: false, event: 'message.publish', topic: 's/1', clientId: 'Dev', columns }
    ]);
    assert.deepEqual((await broker.rules.samples(list.id)).rejected[0].columns, { each: [1, 7] });
  });

  it('calls no function again for the values that WHERE reads', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    let calls = 0;
    const about = { family: 'app', params: [], returns: 'integer', about: 'Counts its calls.' } as const;
    await broker.rules.createFunction({ name: 'counted', ...about, run: () => ++calls });
    const { id } = await broker.rules.create({ sql: 'SELECT counted() AS n FROM "s" WHERE n > 5', actions: [] });
    await broker.publish('s', 'x');
    assert.deepEqual((await broker.rules.samples(id)).rejected[0].columns, { n: 1 });
    assert.equal(calls, 1);
  });

  it('keeps payloads that are not JSON if the statement reads below them, and failed functions and actions', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    const { id } = await broker.rules.create({
      sql: 'SELECT abs(payload.t) AS t FROM "s/#" WHERE is_null(payload.t) OR payload.t != 0',
      actions: [
        () => {
          throw new Error('refused by http://me:hunter2@host/');
        }
      ]
    });
    const plain = await broker.rules.create({ sql: 'SELECT payload FROM "s/#"', actions: [] });
    const client = await broker.connect({ clientId: 'dev' });
    await client.publish('s/1', '{"t": 1', { qos: 1 });
    await clock.advance('1s');
    await client.publish('s/2', '{"t": "text"}', { qos: 1 });
    await clock.advance('1s');
    await client.publish('s/3', '{"t": -1}', { qos: 1 });
    const { errors } = await broker.rules.samples(id);
    assert.deepEqual(
      errors.map(({ code, topic, clientId, columns }) => [code, topic, clientId, columns?.payload]),
      [
        ['PAYLOAD_NOT_JSON', 's/1', 'dev', '{"t": 1'],
        ['SQL_FAILED', 's/1', 'dev', '{"t": 1'],
        ['SQL_FAILED', 's/2', 'dev', '{"t": "text"}'],
        ['ACTION_FAILED', 's/3', undefined, undefined]
      ]
    );
    const action = errors.at(-1);
    assert.match(action?.message ?? '', /^refused by http:/);
    assert.doesNotMatch(JSON.stringify(errors), /hunter2/);
    assert.match(action?.actionId ?? '', /^function_/);
    assert.deepEqual((await broker.rules.samples(plain.id)).errors, []);
  });

  it('cuts samples to 4,096 characters, and says so', async () => {
    await using kit = await ruleKit();
    const { broker, clock } = kit;
    const { id } = await broker.rules.create({ sql: 'SELECT *, payload.list AS list FROM "s/#"', actions: [] });
    const client = await broker.connect({ clientId: 'dev', username: 'u'.repeat(3000) });
    for (const text of ['x'.repeat(1_000_000), '\u0001'.repeat(5000), `{"list": [${'[1], '.repeat(50_000)}2]}`]) {
      await client.publish('s/1', text, { qos: 1 });
      await clock.advance('1s');
    }
    const { inputs, outputs } = await broker.rules.samples(id);
    for (const { columns, isCut } of inputs) {
      const size = JSON.stringify(columns).length;
      assert.ok(isCut && size <= 4096 && size > 1500, `${size}`);
      assert.equal(columns.clientid, 'dev', 'short columns are whole');
    }
    assert.match(inputs[0].columns.payload as string, /^x{500,}\.\.\.$/);
    for (const { output, isCut } of outputs) assert.ok(isCut && JSON.stringify(output).length <= 4096);
  });

  it('discards the samples of a rule when its statement changes, and keeps them at other changes', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const { id } = await broker.rules.create({
      sql: 'SELECT payload FROM "s"',
      actions: [republish('out', '${payload}')]
    });
    await broker.publish('s', 'x');
    await broker.rules.update(id, { description: 'other', isEnabled: false });
    assert.equal((await broker.rules.samples(id)).outputs.length, 1);
    await broker.rules.update(id, { sql: 'SELECT topic FROM "s"' });
    assert.deepEqual((await broker.rules.samples(id)).outputs, []);
  });

  it('samples events again after a restart of the broker', async () => {
    await using kit = await ruleKit();
    const { broker } = kit;
    const { id } = await broker.rules.create({ sql: 'SELECT payload FROM "s"', actions: [] });
    await broker.publish('s', 'one');
    await broker.stop();
    await broker.start();
    await broker.publish('s', 'two');
    const { outputs } = await broker.rules.samples(id);
    assert.deepEqual(
      outputs.map(({ output }) => output),
      [{ payload: 'one' }, { payload: 'two' }]
    );
  });
});
