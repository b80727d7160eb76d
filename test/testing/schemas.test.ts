import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Broker } from 'embermq';
import { type BrokerSetup, createTestBroker, setupBroker, type TestBroker } from 'embermq/testing';

const schemas = {
  room: { type: 'object', required: ['celsius'], properties: { celsius: { type: 'number' } } }
} as const;

/** The compiler checks that the type of a value is exactly this one. */
function isExactly<T>() {
  return <U>(
    _value: U,
    ..._same: (<X>() => X extends T ? 1 : 2) extends <X>() => X extends U ? 1 : 2 ? [] : [never]
  ) => {};
}

describe('createTestBroker({ schemas })', () => {
  it('gives message.value its type, as createBroker does', async () => {
    await using kit = await createTestBroker({
      schemas: { ...schemas, on: { type: 'boolean' } },
      leaks: 'ignore',
      hooks: { authenticate: () => new Promise((resolve) => resolve(true)) }
    });
    const got: number[] = [];
    kit.broker.subscribe('room', ({ value }) => got.push(value.celsius));
    kit.broker.subscribe('on', ({ value }) => isExactly<boolean>()(value));
    kit.broker.subscribe('other', ({ value }) => isExactly<unknown>()(value));
    // @ts-expect-error the value has no such property
    kit.broker.subscribe('room', ({ value }) => value.kelvin);
    const client = await kit.connect();
    await client.publish('room', '{"celsius":1}', { qos: 1 });
    assert.deepEqual(got, [1]);
    const plain: TestBroker = kit;
    assert.equal(plain.broker, kit.broker);
    async () => isExactly<TestBroker>()(await createTestBroker({ leaks: 'ignore' }));
    async () => isExactly<Broker>()((await createTestBroker()).broker);
    async () => isExactly<TestBroker<string>>()(await createTestBroker<string>({ schemas }));
  });
});

describe('setupBroker with schemas', () => {
  const test = setupBroker({ beforeEach, afterEach }, { schemas: { on: { type: 'boolean' } }, leaks: 'ignore' });
  const made = setupBroker({ beforeEach, afterEach }, async () => ({ schemas, leaks: 'ignore' }));

  it('gives message.value its type', async () => {
    const got: unknown[] = [];
    test.broker.subscribe('on', ({ value }) => {
      isExactly<boolean>()(value);
      got.push(value);
    });
    test.kit.broker.subscribe('on', ({ value }) => isExactly<boolean>()(value));
    made.broker.subscribe('room', ({ value }) => got.push(value.celsius));
    await test.broker.publish('on', 'true');
    await made.kit.broker.publish('room', '{"celsius":1}');
    assert.deepEqual(got, [true, 1]);
    const plain: BrokerSetup = test;
    assert.equal(plain.broker, test.broker);
    () => isExactly<BrokerSetup>()(setupBroker({ beforeEach, afterEach }));
    () => isExactly<BrokerSetup<string>>()(setupBroker<string>({ beforeEach, afterEach }, () => ({ schemas })));
    // @ts-expect-error an option has a name that does not exist
    () => setupBroker({ beforeEach, afterEach }, { schema: {} });
  });
});
