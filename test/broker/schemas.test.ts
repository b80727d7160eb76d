import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as Type from 'typebox';
import { createBroker, type Message, memoryStore, type SchemaTable } from '../../lib/index.ts';
import { createTestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';
import { evalFlags, SOURCES } from '../support/programs.ts';
import { rawClient } from '../support/raw-client.ts';

const immediate = () => new Promise((resolve) => setImmediate(resolve));

/** The interface of Standard Schema, version 1, as zod, valibot and arktype implement it. */
interface Standard<Output> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Result<Output> | Promise<Result<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output };
  };
}
type Result<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[];
      }[];
    };

function standard<Output>(validate: (value: unknown) => Result<Output> | Promise<Result<Output>>): Standard<Output> {
  return { '~standard': { version: 1, vendor: 'test', validate } };
}

/** Accepts `{ celsius: number }`, and returns it in kelvin. */
const kelvin = standard<{ readonly kelvin: number }>((value) => {
  const { celsius } = (value ?? {}) as { readonly celsius?: unknown };
  if (typeof celsius === 'number') return { value: { kelvin: celsius + 273 } };
  return { issues: [{ message: `expected a number, got ${typeof celsius}`, path: [{ key: 'celsius' }] }] };
});

const room = Type.Object({ name: Type.String(), celsius: Type.Number({ minimum: -50 }) });

const kitWith = (schemas: SchemaTable, options: TestBrokerOptions = {}) =>
  createTestBroker({ schemas, leaks: 'ignore', ...options });
const text = ({ payload }: { readonly payload: Buffer }) => payload.toString();

describe('schemas', () => {
  it('accepts messages that match, unchanged, with the result of the schema in message.value', async () => {
    await using kit = await kitWith({ 'a/+/b': kelvin });
    const got: [string, unknown][] = [];
    kit.broker.subscribe('a/#', (message) => got.push([text(message), message.value]));
    const client = await kit.connect();
    const receiver = await kit.connect();
    const payloads: string[] = [];
    await receiver.subscribe('a/#', { qos: 1 }, (message) => payloads.push(text(message)));
    await client.publish('a/1/b', '{ "celsius":  1 }', { qos: 1 });
    await client.publish('a/1/c', 'not checked', { qos: 1 });
    await kit.broker.publish('a/2/b', '{"celsius":2}');
    await receiver.ping();
    const expected = ['{ "celsius":  1 }', 'not checked', '{"celsius":2}'];
    assert.deepEqual(payloads, expected);
    assert.deepEqual(
      got.map(([payload]) => payload),
      expected
    );
    assert.deepEqual(
      got.map(([, value]) => value),
      [{ kelvin: 274 }, undefined, { kelvin: 275 }]
    );
  });

  it('refuses other messages with 0x99 and a reason string, counts and explains them', async () => {
    await using kit = await kitWith({ 'a/+': kelvin, 'b/+': room });
    const { broker } = kit;
    const dropped: string[] = [];
    broker.on('message.dropped', ({ reason, message }) => dropped.push(`${reason} ${message.topic}`));
    const client = await kit.connect({ clientId: 'c' });
    const refused = async (topic: string, payload: string, qos: 1 | 2 = 1) => {
      const error = await client.publish(topic, payload, { qos }).then(
        () => assert.fail('accepted'),
        (error: unknown) =>
          error as { readonly reasonCode: number; readonly properties: { readonly reasonString?: string } }
      );
      return [error.reasonCode, error.properties.reasonString];
    };
    assert.deepEqual(await refused('a/1', '{"celsius":"hot"}'), [0x99, 'celsius: expected a number, got string']);
    assert.deepEqual(await refused('a/1', '{"celsius":', 2), [0x99, 'the payload is not JSON']);
    assert.deepEqual(await refused('b/1', '{"name":"x","celsius":-51}'), [0x99, 'celsius: must be >= -50']);
    assert.deepEqual(await refused('b/1', '[]'), [0x99, 'must be object']);
    await client.publish('b/1', '{"name":"x","celsius":20}', { qos: 1 });
    assert.deepEqual(dropped.slice(0, 4), ['schema a/1', 'schema a/1', 'schema b/1', 'schema b/1']);
    assert.equal(broker.metrics.counter('messages.dropped.schema'), 4);
    const { causes } = await broker.monitor.why({ topic: 'b/1', publisher: 'c' });
    assert.equal(causes[0].code, 'schema');
    assert.match(
      causes[0].text,
      /^The payload of the message of client "c" to topic "b\/1" does not match a schema: filter "b\/\+": must be object\.$/
    );
    const records = broker.monitor.reasons.list({ code: 'schema' }).entries;
    assert.ok(
      records.some(({ detail }) => detail === 'filter "a/+": celsius is not valid'),
      'no values of payloads'
    );
  });

  it('sends no reason string to clients that do not want it, or that could not receive it', async () => {
    await using kit = await kitWith({ a: kelvin });
    const mute = await rawClient(kit.broker, { clientId: 'm', properties: { requestProblemInformation: 0 } });
    const small = await rawClient(kit.broker, { clientId: 's', properties: { maximumPacketSize: 30 } });
    for (const client of [mute, small]) {
      client.send({
        cmd: 'publish',
        topic: 'a',
        payload: Buffer.from('x'),
        qos: 1,
        messageId: 1,
        dup: false,
        retain: false
      });
      const { reasonCode, properties } = await client.next('puback');
      assert.deepEqual([reasonCode, properties?.reasonString], [0x99, undefined]);
    }
  });

  it('treats QoS 0 and MQTT 3.x as a refusal by an access rule', async () => {
    for (const aclDenyAction of ['ignore', 'disconnect'] as const) {
      await using kit = await kitWith({ a: kelvin }, { aclDenyAction });
      const got: string[] = [];
      kit.broker.subscribe('a', ({ topic }) => got.push(topic));
      const modern = await kit.connect({ clientId: 'modern' });
      const old = await kit.connect({ clientId: 'old', protocolVersion: 4 });
      const closed = [modern, old].map((client) => new Promise((resolve) => client.on('close', resolve)));
      await modern.publish('a', 'x', { qos: 1 }).catch(({ reasonCode }) => assert.equal(reasonCode, 0x99));
      assert.equal(modern.isConnected, true, 'an acknowledgement says it');
      if (aclDenyAction === 'ignore') {
        await modern.publish('a', 'x');
        await modern.ping();
        assert.equal((await old.publish('a', 'x', { qos: 1 })).reasonCode, 0);
      } else {
        await modern.publish('a', 'x');
        void old.publish('a', 'x', { qos: 1 }).catch(() => {});
        await Promise.all(closed);
      }
      assert.deepEqual(got, []);
    }
  });

  it('requires all schemas that match, after the access rules and the publish hooks', async () => {
    const asked: string[] = [];
    const noting = (name: string) =>
      standard((value) => {
        asked.push(name);
        return value === 'good' ? { value: name } : { issues: [{ message: `${name} refuses` }] };
      });
    await using kit = await kitWith(
      { 'a/#': { schema: noting('first'), decode: 'text' }, 'a/+': { schema: noting('second'), decode: 'text' } },
      {
        hooks: {
          authorizePublish: ({ message }) => message.topic !== 'a/secret',
          publish: ({ message }) => (text(message) === 'repair' ? { topic: message.topic, payload: 'good' } : undefined)
        }
      }
    );
    const { broker } = kit;
    const values: unknown[] = [];
    broker.subscribe('a/+', ({ value }) => values.push(value));
    broker.subscribe('#', ({ value }) => values.push(value));
    const client = await kit.connect();
    await assert.rejects(client.publish('a/secret', 'bad', { qos: 1 }), { reasonCode: 0x87 });
    assert.deepEqual(asked.splice(0), []);
    await client.publish('a/1', 'repair', { qos: 1 });
    assert.deepEqual(asked.splice(0), ['first', 'second']);
    assert.deepEqual(
      values.splice(0).sort(),
      ['first', 'second'],
      'a handler of a filter gets the result of its schema'
    );
    await assert.rejects(client.publish('a/1', 'bad', { qos: 1 }), { reasonCode: 0x99 });
    assert.deepEqual(asked.splice(0), ['first']);
  });

  it('passes text and bytes with the option decode', async () => {
    const seen: unknown[] = [];
    const any = standard((value) => {
      seen.push(value);
      return { value };
    });
    await using kit = await kitWith({ text: { schema: any, decode: 'text' }, bytes: { schema: any, decode: 'bytes' } });
    await kit.broker.publish('text', 'ä');
    await kit.broker.publish('bytes', Buffer.from([0xff]));
    assert.deepEqual(seen, ['ä', Buffer.from([0xff])]);
    await assert.rejects(kit.broker.publish('text', Buffer.from([0xff])), { code: 'SCHEMA_MISMATCH' });
  });

  it('holds the publisher while an asynchronous schema decides, and keeps the order', async () => {
    const resolvers: ((isGood: boolean) => void)[] = [];
    const slow = standard(
      (value) =>
        new Promise<Result<unknown>>((resolve) =>
          resolvers.push((isGood) => resolve(isGood ? { value } : { issues: [{ message: 'no' }] }))
        )
    );
    await using kit = await kitWith({ slow });
    const got: string[] = [];
    kit.broker.subscribe('#', ({ topic, value }) => got.push(`${topic} ${value}`));
    const client = await kit.connect();
    const first = client.publish('slow', '1', { qos: 1 });
    const second = client.publish('other', '2', { qos: 1 });
    while (resolvers.length === 0) await immediate();
    assert.deepEqual(got, []);
    resolvers[0](true);
    await Promise.all([first, second]);
    assert.deepEqual(got, ['slow 1', 'other undefined']);
    const refused = assert.rejects(client.publish('slow', '3', { qos: 1 }), { reasonCode: 0x99 });
    while (resolvers.length === 1) await immediate();
    resolvers[1](false);
    await refused;
    const late = assert.rejects(client.publish('slow', '4', { qos: 1 }), { reasonCode: 0x83 });
    while (resolvers.length === 2) await immediate();
    await kit.clock.advance('30s');
    await late;
  });

  it('refuses with 0x83 if a schema throws, and reports the error', async () => {
    await using kit = await kitWith({
      a: standard(() => {
        throw new Error('broken schema');
      })
    });
    const errors: string[] = [];
    kit.broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    const client = await kit.connect();
    await assert.rejects(client.publish('a', '1', { qos: 1 }), { reasonCode: 0x83 });
    assert.deepEqual(errors, ['the schema of "a": broken schema']);
    await assert.rejects(kit.broker.publish('a', '1'), {
      code: 'SCHEMA_FAILED',
      message: 'the message to "a" is refused: filter "a": the schema has failed'
    });
  });

  it('refuses a payload that is nested too deeply for its schema with 0x99, without an error of the broker', async () => {
    const descend = (value: unknown): unknown => (value as { n?: unknown }).n && [descend((value as { n: unknown }).n)];
    await using kit = await kitWith({
      json: { type: 'object', properties: { n: { $ref: '#' } } },
      standard: standard((value) => ({ value: descend(value) }))
    });
    const errors: string[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error.message));
    const client = await kit.connect();
    const deep = `${'{"n":'.repeat(100_000)}{}${'}'.repeat(100_000)}`;
    for (const topic of ['json', 'standard']) {
      const refused = { reasonCode: 0x99, message: /nested too deeply/ };
      await assert.rejects(client.publish(topic, deep, { qos: 1 }), refused, topic);
      await assert.rejects(kit.broker.publish(topic, deep), { code: 'SCHEMA_MISMATCH' }, topic);
      await client.publish(topic, '{"n":{"n":{}}}', { qos: 1 });
    }
    assert.deepEqual(errors, []);
  });

  it('checks wills when they are published, and messages of the app', async () => {
    await using kit = await kitWith({ 'w/+': kelvin });
    const { broker } = kit;
    const got: string[] = [];
    broker.subscribe('w/+', (message) => got.push(text(message)));
    const dropped: string[] = [];
    broker.on('message.dropped', ({ reason }) => dropped.push(reason));
    for (const payload of ['bad', '{"celsius":5}']) {
      const client = await kit.connect({ clientId: 'w', will: { topic: 'w/1', payload } });
      const gone = broker.nextEvent('client.disconnected');
      client.destroy();
      await gone;
      await immediate();
    }
    assert.deepEqual([got, dropped], [['{"celsius":5}'], ['schema']]);
    await assert.rejects(broker.publish('w/1', 'bad'), {
      code: 'SCHEMA_MISMATCH',
      message: 'the payload does not match a schema of topic "w/1": the payload is not JSON'
    });
  });

  it('checks delayed messages when they are accepted and when they are due', async () => {
    await using kit = await kitWith({ d: kelvin });
    const values: unknown[] = [];
    kit.broker.subscribe('d', ({ value }) => values.push(value));
    const client = await kit.connect();
    await assert.rejects(client.publish('$delayed/5/d', 'bad', { qos: 1 }), { reasonCode: 0x99 });
    await client.publish('$delayed/5/d', '{"celsius":0}', { qos: 1 });
    await kit.clock.advance('5s');
    assert.deepEqual(values, [{ kelvin: 273 }]);
  });

  it('gives handlers of a filter with a schema only retained messages that match', async () => {
    await using kit = await kitWith({ r: kelvin });
    await kit.broker.publish('r', '{"celsius":1}', { retain: true });
    const values: unknown[] = [];
    kit.broker.subscribe('r', ({ value }, isRetained) => values.push([value, isRetained]));
    await immediate();
    assert.deepEqual(values, [[{ kelvin: 274 }, true]]);
  });

  for (const kind of ['JSON Schema', 'an asynchronous schema', 'a schema that fails'] as const)
    it(`gives handlers the retained messages before newer ones, with ${kind}`, async () => {
      const store = memoryStore();
      for (const payload of ['1', '2']) {
        await using kit = await createTestBroker({ store, leaks: 'ignore' });
        await kit.broker.publish(`r/${payload}`, payload, { retain: true });
      }
      const answer = async (value: unknown) => {
        if (kind === 'a schema that fails' && value === 1) throw new Error('broken');
        return { value };
      };
      const schema = kind === 'JSON Schema' ? { type: 'number' } : standard(answer);
      await using kit = await kitWith({ 'r/+': schema }, { store });
      const { broker } = kit;
      const got: unknown[] = [];
      broker.subscribe('r/+', ({ topic, value }, isRetained) => got.push([topic, value, isRetained]));
      await Promise.all([broker.publish('r/1', '3'), broker.publish('r/2', '4', { retain: true })]);
      await kit.clock.settle();
      const retained =
        kind === 'a schema that fails'
          ? [['r/2', 2, true]]
          : [
              ['r/1', 1, true],
              ['r/2', 2, true]
            ];
      assert.deepEqual(got.slice(0, retained.length).sort(), retained);
      assert.deepEqual(got.slice(retained.length), [
        ['r/1', 3, false],
        ['r/2', 4, false]
      ]);
    });

  it('drops a retained message about which a schema does not decide in time, and delivers newer ones', async () => {
    const store = memoryStore();
    {
      await using kit = await createTestBroker({ store, leaks: 'ignore' });
      await kit.broker.publish('r', '1', { retain: true });
    }
    const never = standard((value) => (value === 1 ? new Promise<Result<unknown>>(() => {}) : { value }));
    await using kit = await kitWith({ r: never }, { store });
    const errors: string[] = [];
    kit.broker.on('error', ({ error }) => errors.push((error as { readonly code?: string }).code ?? ''));
    const got: unknown[] = [];
    kit.broker.subscribe('r', ({ value }) => got.push(value));
    await kit.broker.publish('r', '2');
    await kit.clock.advance('1s');
    assert.deepEqual(got, []);
    await kit.clock.advance('10s');
    assert.deepEqual([got, errors], [[2], ['HOOK_TIMEOUT']]);
  });

  it('accepts the answer of a promise of another library, and one that throws', async () => {
    const thenable = (value: unknown) =>
      ({
        // biome-ignore lint/suspicious/noThenProperty: a promise of another library
        then: (resolve: (result: unknown) => void) => {
          if (value === 0) throw new Error('broken promise');
          setImmediate(() => resolve({ value }));
        }
      }) as unknown as Promise<Result<unknown>>;
    await using kit = await kitWith({ a: standard(thenable) });
    const errors: string[] = [];
    kit.broker.on('error', ({ error }) => errors.push(error.message));
    const values: unknown[] = [];
    kit.broker.subscribe('a', ({ value }) => values.push(value));
    const client = await kit.connect();
    await client.publish('a', '1', { qos: 1 });
    await assert.rejects(client.publish('a', '0', { qos: 1 }), { reasonCode: 0x83 });
    await kit.clock.settle();
    assert.deepEqual([values, errors], [[1], ['broken promise']]);
  });

  for (const answer of [
    undefined,
    'x',
    {},
    { success: false },
    { issues: null },
    { issues: false, value: 1 },
    { issues: [{ path: [Object.create(null)] }] }
  ])
    it(`refuses with 0x83 if a schema answers ${JSON.stringify(answer)}`, async () => {
      await using kit = await kitWith({
        a: standard(() => answer as never),
        b: standard(async () => answer as never)
      });
      const errors: string[] = [];
      kit.broker.on('error', ({ during }) => errors.push(during));
      const client = await kit.connect();
      for (const topic of ['a', 'b'])
        await assert.rejects(client.publish(topic, '1', { qos: 1 }), { reasonCode: 0x83 }, topic);
      assert.deepEqual(errors, ['the schema of "a"', 'the schema of "b"']);
    });

  it('refuses with 0x99 whatever the issues of a schema contain', async () => {
    const path = (path: unknown) => [{ message: 'x', path }];
    const all: readonly (readonly [issues: readonly unknown[], reason: string])[] = [
      [[], 'it is not valid'],
      [[null], 'it is not valid'],
      [['x'], 'it is not valid'],
      [[{ message: 5 }], 'it is not valid'],
      [path('abc'), 'x'],
      [path(null), 'x'],
      [path([null, undefined, Symbol('s'), { key: 0 }]), 'null.undefined.Symbol(s).0: x']
    ];
    const answer = (at: unknown) => ({ issues: all[at as number][0] }) as never;
    await using kit = await kitWith({ a: standard(answer), b: standard(async (at) => answer(at)) });
    const client = await kit.connect();
    for (const topic of ['a', 'b'])
      for (const [at, [, reasonString]] of all.entries())
        await assert.rejects(client.publish(topic, `${at}`, { qos: 1 }), ({ reasonCode, properties }) => {
          assert.deepEqual([reasonCode, properties?.reasonString], [0x99, reasonString]);
          return true;
        });
  });

  it('sees the timestamp that the broker sets, once for a retained message', async () => {
    const store = memoryStore();
    const topic = 'spBv1.0/G/NDEATH/N';
    const any = standard((value) => ({ value }));
    const open = (schemas: SchemaTable) => kitWith(schemas, { store, sparkplug: { ndeathTimestamp: true } });
    let published: Buffer;
    {
      await using kit = await open({ [topic]: { schema: any, decode: 'bytes' } });
      const got: unknown[] = [];
      kit.broker.subscribe(topic, ({ value, payload }) => got.push(value, payload));
      await kit.broker.publish(topic, Buffer.from([0x08, 1]), { retain: true });
      published = (await kit.broker.retained.get(topic))?.payload as Buffer;
      assert.ok(published.length > 2);
      assert.deepEqual(got, [published, published]);
    }
    await using kit = await open({ [topic]: { schema: any, decode: 'bytes' } });
    await kit.clock.advance('1m');
    const got: unknown[] = [];
    kit.broker.subscribe(topic, ({ value, payload }) => got.push(value, payload));
    await kit.clock.settle();
    assert.deepEqual(got, [published, published]);
  });

  it('lets clients and the app delete retained messages, which handlers of the filter do not receive', async () => {
    await using kit = await kitWith({ 'a/+': room });
    const { broker } = kit;
    const typed: unknown[] = [];
    const all: string[] = [];
    broker.subscribe('a/+', ({ value }) => typed.push((value as { readonly name: string }).name));
    broker.subscribe('#', (message) => all.push(text(message)));
    const client = await kit.connect();
    const payload = '{"name":"x","celsius":1}';
    for (const publisher of [broker, client]) {
      await client.publish('a/1', payload, { qos: 1, retain: true });
      await publisher.publish('a/1', '', { qos: 1, retain: true });
      assert.equal(await broker.retained.get('a/1'), undefined);
    }
    await assert.rejects(client.publish('a/1', '', { qos: 1 }), { reasonCode: 0x99 });
    assert.deepEqual(
      [typed, all],
      [
        ['x', 'x'],
        [payload, '', payload, '']
      ]
    );
  });

  it('describes the fault of a large payload in few words, in little time', async () => {
    await using kit = await kitWith({ a: { type: 'array', items: { type: 'string' } } });
    const reason = (count: number) =>
      kit.broker.publish('a', JSON.stringify(Array(count).fill(1))).then(
        () => 'accepted',
        ({ message }) => message.split(': ').slice(1).join(': ')
      );
    assert.equal(await reason(10), '0: must be string');
    assert.equal(await reason(33_000), 'it is not valid');
  });

  it('names a property that is not allowed, also one of many', async () => {
    await using kit = await kitWith({
      a: { type: 'object', additionalProperties: false },
      b: { type: 'object', properties: { x: false } }
    });
    const reason = (topic: string, names: readonly string[]) =>
      kit.broker.publish(topic, JSON.stringify(Object.fromEntries(names.map((name) => [name, 1])))).then(
        () => 'accepted',
        ({ message }) => message.split(': ').slice(1).join(': ')
      );
    const names = Array.from({ length: 9 }, (_, at) => `k${at}`);
    assert.equal(await reason('a', names), 'k0: is not allowed');
    assert.equal(await reason('a', names.slice(0, 1)), 'must not have additional properties');
    assert.equal(await reason('b', ['x']), 'x: is not allowed');
  });

  it('keeps results for the app, and none with retained, queued and delayed messages', async () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const made: WeakRef<object>[] = [];
    const boxed = standard((payload) => {
      const value = { payload };
      made.push(new WeakRef(value));
      return { value };
    });
    await using kit = await kitWith({ 'a/+': boxed, 'a/#': boxed }, { store: memoryStore() });
    const { broker } = kit;
    const client = await kit.connect();
    const away = await kit.connect({ clientId: 'away', clean: false, properties: { sessionExpiryInterval: 1000 } });
    await away.subscribe('a/+', { qos: 1 });
    await away.disconnect();
    const publish = async () => {
      const kept: Message[] = [];
      for (const filter of ['a/+', '#']) broker.subscribe(filter, (message) => kept.push(message));
      const reading = broker.messages('a/+').next();
      const event = broker.nextEvent('message.publish');
      await client.publish('a/1', '1', { qos: 1, retain: true });
      await client.publish('$delayed/60/a/2', '2', { qos: 1 });
      kept.push((await reading).value as Message, (await event).message);
      await immediate();
      assert.deepEqual(
        kept.map(({ value, topic }) => [topic, value]),
        kept.map(() => ['a/1', { payload: 1 }])
      );
      assert.equal(kept.length, 4);
      for (const filter of ['a/+', '#']) broker.unsubscribe(filter);
    };
    await publish();
    assert.equal(made.length, 4);
    for (let at = 0; at < 20 && made.some((ref) => ref.deref() !== undefined); at++) {
      await immediate();
      gc();
    }
    assert.deepEqual(
      made.map((ref) => ref.deref()),
      made.map(() => undefined)
    );
    assert.equal((await broker.retained.get('a/1'))?.payload.toString(), '1');
    const got: unknown[] = [];
    for (const filter of ['a/+', 'a/#', '#']) broker.subscribe(filter, ({ value }) => got.push(value));
    await immediate();
    assert.deepEqual(got, [{ payload: 1 }, { payload: 1 }, undefined]);
  });

  it('leaves topics without a schema on the fast path', async () => {
    const asked: string[] = [];
    const any = standard((value) => {
      asked.push('asked');
      return { value };
    });
    await using kit = await kitWith({ 'a/+': any });
    const { engineOf } = await import('../../lib/broker/broker.ts');
    const { routing, publishing } = engineOf(kit.broker);
    assert.equal(publishing.hooks.isFastPathOpen, true);
    assert.equal(publishing.hooks.hasHooks, false);
    assert.deepEqual([routing.of('b/1').isForRuns, routing.of('b/1').mustDecide], [true, false]);
    assert.deepEqual([routing.of('a/1').isForRuns, routing.of('a/1').mustDecide], [false, true]);
    const client = await kit.connect();
    await client.publish('a/1', '{}');
    await client.publish('b/1', '{}');
    await client.ping();
    assert.deepEqual(asked, ['asked']);
  });

  it('needs no generation of code', async () => {
    const program = `
      import { createBroker } from 'embermq';
      const broker = createBroker({ schemas: { a: { type: 'object', required: ['b'] } } });
      await broker.start();
      await broker.publish('a', '{}').catch(({ code }) => console.log(code));
      await broker.stop();
    `;
    const flags = ['--disallow-code-generation-from-strings', ...evalFlags(program)];
    const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: SOURCES });
    assert.equal(stdout, 'SCHEMA_MISMATCH\n');
  });

  it('checks its option', () => {
    const refuses = (schemas: unknown, code = 'OPTION_INVALID') =>
      assert.throws(() => createBroker({ schemas: schemas as never }), { code });
    refuses([]);
    refuses({ 'a/#/b': kelvin }, 'TOPIC_FILTER_INVALID');
    refuses({ '$share/g/a': kelvin }, 'TOPIC_FILTER_INVALID');
    refuses({ a: 'text' });
    refuses({ a: { schema: kelvin, decode: 'xml' } });
    refuses({ a: { schema: kelvin, decoder: 'text' } }, 'OPTION_UNKNOWN');
    refuses({ a: { '~standard': { version: 2, validate: () => ({}) } } });
    for (const given of [Promise.resolve({}), new Map(), new (class Parser {})()]) {
      refuses({ a: given });
      refuses({ a: { schema: given } });
    }
    for (const given of [Object.create(null), runInNewContext('({ type: "string" })')])
      createBroker({ schemas: { a: given } });
    refuses({ a: { decode: 'text' } });
    refuses({ a: { Schema: { type: 'string' }, decode: 'text' } }, 'OPTION_UNKNOWN');
    for (const filter of ['$SYS/#', '$SYS', '$delayed/5/a', '$delayed/#', '$queue/a'])
      refuses({ [filter]: {} }, 'TOPIC_FILTER_INVALID');
    const certificates = { schemas: { '$sparkplug/certificates/#': {} } };
    assert.throws(() => createBroker({ ...certificates, sparkplug: {} }), { code: 'TOPIC_FILTER_INVALID' });
    createBroker(certificates);
  });
});

describe('createBroker with JSON Schemas', () => {
  for (const [place, schema] of [
    ['.type', { type: 'strin' }],
    ['.type', { type: ['string', 'nul'] }],
    ['.type', { type: 5 }],
    ['.required', { required: 'a' }],
    ['.required', { required: [1] }],
    ['.properties', { properties: 5 }],
    ['.properties.x', { properties: { x: 'string' } }],
    ['.properties.x.items.type', { properties: { x: { items: { type: 'text' } } } }],
    ['.anyOf[1].minimum', { anyOf: [{}, { minimum: '1' }] }],
    ['.items[0].pattern', { items: [{ pattern: '(' }] }],
    ['.patternProperties', { patternProperties: { '(': {} } }],
    ['.additionalProperties', { additionalProperties: 'no' }],
    ['.enum', { enum: 'a' }],
    ['.uniqueItems', { uniqueItems: 1 }],
    ['.$defs.a.type', { $defs: { a: { type: 'strin' } } }],
    ['.dependentRequired', { dependentRequired: { a: 'b' } }],
    ['.exclusiveMinimum', { minimum: 1, exclusiveMinimum: true }],
    ['.$ref', { $ref: '#/x' }],
    ['.$ref', { $ref: 'other' }],
    ['.items.$ref', { items: { $ref: '#x' } }],
    ['.$ref.type', { $ref: '#/components/x', components: { x: { type: 'strin' } } }],
    ['.maximum', { maximum: Number.NaN }]
  ] as const)
    it(`refuses a fault that would accept every payload: ${JSON.stringify(schema)}`, () => {
      const create = (schemas: SchemaTable) => () => createBroker({ schemas });
      assert.throws(create({ a: schema }), { code: 'OPTION_INVALID', field: `schemas["a"]${place}` });
      assert.throws(create({ a: { schema, decode: 'text' } }), { field: `schemas["a"].schema${place}` });
    });

  it('accepts unknown keywords, references and the types of TypeBox', async () => {
    const tree: { readonly [name: string]: unknown } = {
      $id: 'http://example.com/tree',
      type: 'object',
      properties: {
        left: { $ref: '#' },
        right: { $ref: 'tree' },
        name: { $ref: '#/$defs/name' },
        tag: { $ref: '#tag' },
        size: { $ref: '#size' }
      },
      components: [{ $anchor: 'size', $ref: '#/components/1' }, { type: 'number' }],
      $defs: { name: { type: 'string' }, tag: { $anchor: 'tag', type: ['string', 'null'] } }
    };
    const box = Type.Object({
      a: Type.Optional(Type.Union([Type.String({ pattern: /^x/ }), Type.Undefined(), Type.Null()])),
      b: Type.Record(Type.String(), Type.Integer()),
      c: Type.Tuple([Type.Literal(1), Type.Array(Type.Number(), { uniqueItems: true })])
    });
    const cyclic = Type.Cyclic({ Node: Type.Object({ next: Type.Optional(Type.Ref('Node')) }) }, 'Node');
    const other = { tpye: 'string', const: { type: 'strin' }, enum: [{ type: 5 }, 1], default: { required: 1 } };
    await using kit = await kitWith({
      tree,
      box,
      cyclic,
      other,
      some: { items: true, contains: {}, if: {}, not: false }
    });
    const publish = (topic: string, value: unknown) => kit.broker.publish(topic, JSON.stringify(value));
    await publish('tree', { left: { name: 'x' }, right: { left: {} }, tag: null, size: 1 });
    await assert.rejects(publish('tree', { size: 'x' }), { code: 'SCHEMA_MISMATCH' });
    await assert.rejects(publish('tree', { left: { name: 1 } }), { code: 'SCHEMA_MISMATCH' });
    await assert.rejects(publish('tree', { right: { tag: 1 } }), { code: 'SCHEMA_MISMATCH' });
    await publish('box', { a: null, b: { x: 1 }, c: [1, [2, 3]] });
    await publish('cyclic', { next: { next: {} } });
    await assert.rejects(publish('cyclic', { next: { next: 1 } }), { code: 'SCHEMA_MISMATCH' });
  });
});

/** The compiler checks that the type of a value is exactly this one. */
function isExactly<T>() {
  return <U>(
    _value: U,
    ..._same: (<X>() => X extends T ? 1 : 2) extends <X>() => X extends U ? 1 : 2 ? [] : [never]
  ) => {};
}

describe('createBroker({ schemas })', () => {
  it('gives message.value its type for the same filter string', async () => {
    await using broker = createBroker({
      schemas: {
        'a/+/b': kelvin,
        room,
        text: { schema: kelvin, decode: 'text' },
        json: {
          type: 'object',
          required: ['on'],
          properties: {
            on: { type: 'boolean' },
            at: { type: 'array', items: { type: 'object', required: ['x'], properties: { x: { type: 'integer' } } } },
            mode: { enum: ['a', 'b'] },
            level: { anyOf: [{ const: 1 }, { const: 2 }] },
            unit: { type: 'null' },
            any: {}
          }
        }
      }
    });
    await broker.start();
    const got: number[] = [];
    broker.subscribe('a/+/b', ({ value }) => {
      isExactly<{ readonly kelvin: number }>()(value);
      got.push(value.kelvin);
    });
    broker.subscribe('text', ({ value }) => isExactly<{ readonly kelvin: number }>()(value));
    broker.subscribe('room', ({ value }) => isExactly<{ name: string; celsius: number }>()(value));
    broker.subscribe('json', ({ value }) =>
      isExactly<{ on: boolean; at?: { x: number }[]; mode?: 'a' | 'b'; level?: 1 | 2; unit?: null; any?: unknown }>()(
        value
      )
    );
    broker.subscribe('other', ({ value }) => isExactly<unknown>()(value));
    broker.subscribe('#', (message: Message) => message.topic);
    async () => {
      for await (const { value } of broker.messages('a/+/b')) isExactly<{ readonly kelvin: number }>()(value);
    };
    // @ts-expect-error the value has no such property
    broker.subscribe('a/+/b', ({ value }) => value.celsius);
    await broker.publish('a/1/b', '{"celsius":0}');
    assert.deepEqual(got, [273]);
  });
});
