import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import type { HookName, Hooks } from '../../lib/events/hooks.ts';
import { type Broker, createBroker } from '../../lib/index.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, publish, refusedConnect, startBroker, turns, withResolvers } from '../support/wire.ts';

/** Functions that make no decision, synchronously and asynchronously. */
const SILENT: Readonly<Record<string, () => undefined>> = {
  'at once': () => undefined,
  later: async () => undefined
} as never;

function errorsOf(broker: Broker): string[] {
  const errors: string[] = [];
  broker.on('error', ({ error, during }) =>
    errors.push(`${during}: ${(error as { code?: string }).code} ${error.message}`)
  );
  return errors;
}

/** Publishes 'x' to "a" at QoS 1 from a client; returns the payloads that the app receives and the code of the acknowledgement. */
async function published(broker: Broker): Promise<[heard: number, code: number]> {
  let heard = 0;
  const stop = broker.subscribe('a', () => heard++);
  const client = await rawClient(broker);
  client.send(publish('a', 'x', { qos: 1, messageId: 1 }));
  const { reasonCode } = await client.next('puback');
  stop();
  client.stream.destroy();
  return [heard, reasonCode];
}

async function subscribed(broker: Broker): Promise<number> {
  const client = await rawClient(broker);
  const [code] = await granted(client, 1, 'a');
  client.stream.destroy();
  return code;
}

describe('No decision of any authenticate hook', () => {
  for (const [when, silent] of Object.entries(SILENT)) {
    it(`refuses a client once a hook is registered (no answer ${when})`, async () => {
      await using broker = await startBroker({ hooks: { authenticate: silent } });
      assert.equal(
        (await refusedConnect(broker, { username: 'ann', password: Buffer.from('wrong') })).reasonCode,
        0x86
      );
      assert.equal((await refusedConnect(broker)).reasonCode, 0x87);
      await assert.rejects(broker.connect(), { code: 'CONNECT_REFUSED', reasonCode: 0x87 });
    });

    it(`accepts a client if allowAnonymous is set explicitly (no answer ${when})`, async () => {
      await using broker = await startBroker({ allowAnonymous: true, hooks: { authenticate: silent } });
      await rawClient(broker);
    });
  }

  it('accepts a client while no hook is registered, before the first and after the last', async () => {
    await using broker = await startBroker();
    await rawClient(broker);
    const remove = broker.hook('authenticate', () => undefined);
    assert.equal((await refusedConnect(broker)).reasonCode, 0x87);
    remove();
    await rawClient(broker);
  });

  it('refuses a client whose only hook is removed while it is pending', async () => {
    const answer = withResolvers<undefined>();
    await using broker = await startBroker();
    const remove = broker.hook('authenticate', () => answer.promise);
    const outcome = refusedConnect(broker);
    await turns();
    remove();
    answer.resolve(undefined);
    assert.equal((await outcome).reasonCode, 0x87);
  });

  it('follows the setting of the zone before the one at the top level', async () => {
    await using broker = await startBroker({
      zones: { inner: { allowAnonymous: true }, trusted: { bypassAuthPlugins: true } },
      hooks: { authenticate: () => undefined }
    });
    assert.equal((await refusedConnect(broker)).reasonCode, 0x87);
    await broker.connect({ transportInfo: { zone: 'inner' } });
    await broker.connect({ transportInfo: { zone: 'trusted' } });
  });

  it('ignores a hook of another kind', async () => {
    await using broker = await startBroker({ hooks: { preConnect: () => undefined, authorizePublish: () => true } });
    await rawClient(broker);
  });
});

describe('No decision of any authorize hook', () => {
  for (const [when, silent] of Object.entries(SILENT)) {
    it(`refuses PUBLISH, not SUBSCRIBE, once an authorizePublish hook is registered (no answer ${when})`, async () => {
      await using broker = await startBroker({ hooks: { authorizePublish: silent } });
      assert.deepEqual(await published(broker), [0, 0x87]);
      assert.equal(await subscribed(broker), 0);
    });

    it(`refuses SUBSCRIBE, not PUBLISH, once an authorizeSubscribe hook is registered (no answer ${when})`, async () => {
      await using broker = await startBroker({ hooks: { authorizeSubscribe: silent } });
      assert.equal(await subscribed(broker), 0x87);
      assert.deepEqual(await published(broker), [1, 0]);
    });

    it(`allows both if aclNomatch is set explicitly (no answer ${when})`, async () => {
      const hooks = { authorizePublish: silent, authorizeSubscribe: silent };
      await using broker = await startBroker({ acl_nomatch: 'allow', hooks } as object);
      assert.deepEqual(await published(broker), [1, 0]);
      assert.equal(await subscribed(broker), 0);
    });
  }

  it('refuses both if aclNomatch is deny, without any hook, and only in that zone', async () => {
    await using broker = await startBroker({ zones: { external: { aclNomatch: 'deny' }, inner: {} } });
    assert.deepEqual(await published(broker), [0, 0x87]);
    assert.equal(await subscribed(broker), 0x87);
    const inner = await broker.connect({ transportInfo: { zone: 'inner' } });
    await inner.subscribe('a');
    await inner.publish('a', 'x', { qos: 1 });
  });

  it('applies from the registration of a hook until its removal', async () => {
    await using broker = await startBroker();
    const client = await rawClient(broker);
    client.send(publish('b', 'x')); // the connection uses its fast path
    assert.deepEqual(await published(broker), [1, 0]);
    const removals = [
      broker.hook('authorizePublish', () => undefined),
      broker.hook('authorizeSubscribe', () => undefined)
    ];
    assert.deepEqual(await published(broker), [0, 0x87]);
    assert.equal(await subscribed(broker), 0x87);
    for (const remove of removals) remove();
    assert.deepEqual(await published(broker), [1, 0]);
    assert.equal(await subscribed(broker), 0);
  });

  it('refuses a message and a subscription whose only hook is removed while it is pending', async () => {
    const answer = withResolvers<undefined>();
    await using broker = await startBroker();
    const client = await rawClient(broker);
    const removals = (['authorizePublish', 'authorizeSubscribe'] as const).map((name) =>
      broker.hook(name, () => answer.promise)
    );
    const other = await rawClient(broker);
    client.send(publish('a', 'x', { qos: 1, messageId: 1 }));
    const code = granted(other, 1, 'a');
    await turns();
    for (const remove of removals) remove();
    answer.resolve(undefined);
    assert.equal((await client.next('puback')).reasonCode, 0x87);
    assert.deepEqual(await code, [0x87]);
  });

  it('refuses a will, but not messages of the app nor subscriptions that the app or the broker makes for a client', async () => {
    const clock = new VirtualClock({ patienceMs: 1 });
    const silent = () => undefined;
    await using broker = await startBroker({
      clock,
      hooks: { authorizePublish: silent, authorizeSubscribe: silent },
      autoSubscriptions: [{ topic: 'auto' }]
    });
    const heard: string[] = [];
    broker.subscribe('#', ({ topic }) => heard.push(topic));
    const client = await rawClient(broker, {
      clientId: 'c',
      will: { topic: 'will', payload: Buffer.from('x'), qos: 0, retain: false }
    });
    broker.sessions.get('c').subscribe('given');
    await broker.publish('auto', 'x');
    await broker.publish('given', 'x');
    assert.deepEqual([(await client.next('publish')).topic, (await client.next('publish')).topic], ['auto', 'given']);
    client.stream.destroy();
    await turns();
    assert.deepEqual(heard, ['auto', 'given']);
  });

  it('refuses a delayed message when it arrives, and publishes it when its delay has passed if it was allowed', async () => {
    const clock = new VirtualClock({ patienceMs: 1 });
    await using broker = await startBroker({
      clock,
      hooks: { authorizePublish: ({ message }) => message.topic === 'allowed' || undefined }
    });
    const heard: string[] = [];
    broker.subscribe('#', ({ topic }) => heard.push(topic));
    const client = await rawClient(broker);
    for (const [at, topic] of ['allowed', 'other'].entries()) {
      client.send(publish(`$delayed/5/${topic}`, 'x', { qos: 1, messageId: at + 1 }));
      assert.equal((await client.next('puback')).reasonCode, topic === 'allowed' ? 0x10 : 0x87);
    }
    broker.hook('authorizePublish', () => false, { isFirst: true });
    await clock.advance('6s');
    assert.deepEqual(heard, ['allowed']);
  });
});

describe('An unknown key in the answer of a hook', () => {
  const misspelt: readonly [HookName, object, suggestion: RegExp][] = [
    ['preConnect', { allow: true, resonCode: 0 }, /"resonCode"; did you mean "reasonCode"/],
    ['authenticate', { allow: true, superuser: true }, /"superuser"; did you mean "isSuperuser"/],
    ['authenticate', { alow: true }, /"alow"; did you mean "allow"/],
    ['authorizePublish', { allow: true, isSuperuser: true }, /"isSuperuser"; allowed keys are allow, reasonCode/],
    ['authorizeSubscribe', { allowed: true }, /"allowed"; did you mean "allow"/],
    ['publish', { topic: 'a', paylod: 'changed' }, /"paylod"; did you mean "payload"/],
    ['deliver', { allow: true }, /"allow"; allowed keys are topic, payload, qos, retain, properties/],
    ['deliver', { topic: 'a', paylod: 'changed' }, /"paylod"; did you mean "payload"/]
  ];

  for (const [name, answer, suggestion] of misspelt) {
    for (const isLate of name === 'deliver' ? [false] : [false, true]) {
      it(`refuses the operation with HOOK_ANSWER_INVALID and a suggestion: ${name} ${JSON.stringify(answer)}${isLate ? ', asynchronously' : ''}`, async () => {
        const hooks = { [name]: () => (isLate ? Promise.resolve(answer) : answer) } as Hooks;
        await using broker = await startBroker({ hooks });
        const errors = errorsOf(broker);
        if (name === 'preConnect' || name === 'authenticate') await refusedConnect(broker);
        else if (name === 'authorizeSubscribe') assert.equal(await subscribed(broker), 0x80);
        else if (name === 'deliver') {
          const client = await rawClient(broker);
          await granted(client, 1, 'a');
          await broker.publish('a', 'x');
          await turns();
          assert.equal(client.received.filter(({ cmd }) => cmd === 'publish').length, 0);
        } else assert.deepEqual(await published(broker), [0, 0x83]);
        assert.equal(errors.length, 1);
        assert.match(errors[0], /^hook \w+: HOOK_ANSWER_INVALID /);
        assert.match(errors[0], suggestion);
      });
    }
  }

  const wrongValues: readonly [HookName, object][] = [
    ['preConnect', { allow: 'yes' }],
    ['authenticate', { allow: true, isSuperuser: 'false' }],
    ['authenticate', { allow: true, username: 5 }],
    ['authenticate', { allow: true, userProperties: { a: '1' } }],
    ['authorizePublish', { allow: 1 }],
    ['authorizeSubscribe', { allow: 'true' }],
    ['publish', { reasonCode: 0x87 }],
    ['publish', { allow: undefined, serverReference: 'other:1883' }],
    ['publish', { topic: 'a', reasonString: 'no' }]
  ];

  for (const [name, answer] of wrongValues) {
    it(`treats an unknown key like a value of the wrong type, which is refused with HOOK_ANSWER_INVALID: ${name} ${JSON.stringify(answer)}`, async () => {
      await using broker = await startBroker({ hooks: { [name]: () => answer } as Hooks });
      const errors = errorsOf(broker);
      if (name === 'preConnect' || name === 'authenticate') await refusedConnect(broker);
      else if (name === 'authorizeSubscribe') assert.equal(await subscribed(broker), 0x80);
      else assert.deepEqual(await published(broker), [0, 0x83]);
      assert.equal(errors.length, 1);
      assert.match(errors[0], /^hook \w+: HOOK_ANSWER_INVALID /);
    });
  }

  it('reports nothing if the keys of a refusal have no value', async () => {
    const answer: object = { payload: 'changed', reasonCode: undefined, serverReference: undefined };
    await using broker = await startBroker({ hooks: { publish: () => answer } as Hooks });
    const payloads: string[] = [];
    await broker.subscribe('a', ({ payload }) => void payloads.push(`${payload}`));
    await broker.publish('a', 'x');
    await turns();
    assert.deepEqual(payloads, ['changed']);
  });

  it('reports nothing if a publish hook spreads its message into the answer', async () => {
    await using broker = await startBroker({
      hooks: { publish: ({ message }) => ({ ...message, payload: 'changed' }) }
    });
    const payloads: string[] = [];
    broker.subscribe('a', ({ payload }) => payloads.push(`${payload}`));
    await broker.publish('a', 'x');
    assert.deepEqual(payloads, ['changed']);
  });
});

describe('An answer of the wrong type', () => {
  const deciding: readonly HookName[] = ['preConnect', 'authenticate', 'authorizePublish', 'authorizeSubscribe'];
  const changing: readonly HookName[] = ['publish', 'deliver'];
  const wrong: readonly unknown[] = [
    '',
    'no',
    {},
    [],
    Number.NaN,
    1.5,
    () => false,
    Symbol('no'),
    Object(false),
    new Map([['allow', false]])
  ];

  /** Returns whether the hook allows its operation. */
  async function passes(broker: Broker, name: HookName): Promise<boolean> {
    if (name === 'preConnect' || name === 'authenticate')
      return broker.connect().then(
        () => true,
        ({ code }) => {
          assert.equal(code, 'CONNECT_REFUSED');
          return false;
        }
      );
    if (name === 'authorizeSubscribe') return (await subscribed(broker)) < 0x80;
    if (name !== 'deliver') return (await published(broker))[1] < 0x80;
    const client = await rawClient(broker, { clientId: 'receiver' });
    await granted(client, 1, 'a');
    await broker.publish('a', 'x');
    await turns();
    return client.received.some(({ cmd }) => cmd === 'publish');
  }

  for (const name of [...deciding, ...changing]) {
    const zeroIsQos = name === 'authorizeSubscribe';
    for (const answer of [...wrong, ...(zeroIsQos ? [] : [0, 1]), ...(changing.includes(name) ? [null] : [])]) {
      for (const isLate of name === 'deliver' ? [false] : [false, true]) {
        it(`refuses the operation with HOOK_ANSWER_INVALID: ${name} ${inspect(answer)}${isLate ? ', asynchronously' : ''}`, async () => {
          await using broker = await startBroker({
            hooks: { [name]: () => (isLate ? Promise.resolve(answer) : answer) } as Hooks
          });
          const errors = errorsOf(broker);
          assert.equal(await passes(broker, name), false);
          assert.equal(errors.length, 1, errors.join());
          assert.match(errors[0], /^hook \w+: HOOK_ANSWER_INVALID \w+: expected true, false/);
        });
      }
    }

    for (const answer of [
      true,
      ...(name === 'deliver' ? [] : [{ allow: true }]),
      ...(changing.includes(name) ? [undefined] : [])
    ])
      it(`reports nothing for an answer that allows: ${name} ${inspect(answer)}`, async () => {
        await using broker = await startBroker({ hooks: { [name]: () => answer } as Hooks });
        const errors = errorsOf(broker);
        assert.equal(await passes(broker, name), true);
        assert.deepEqual(errors, []);
      });

    for (const answer of [
      false,
      ...(name === 'deliver' ? [] : [{ allow: false }]),
      ...(deciding.includes(name) && name !== 'preConnect' ? [undefined, null] : [])
    ])
      it(`reports nothing for an answer that refuses: ${name} ${inspect(answer)}`, async () => {
        await using broker = await startBroker({ hooks: { [name]: () => answer } as Hooks });
        const errors = errorsOf(broker);
        assert.equal(await passes(broker, name), false);
        assert.deepEqual(errors, []);
      });

    // 0 and 5 are codes of other packets and versions; 0x8e is valid only in DISCONNECT to a connected client.
    for (const reasonCode of name === 'deliver'
      ? []
      : [1000, 0, 5, 0x80 + 0.5, Number.NaN, ...(name === 'authenticate' ? [] : [0x8e])])
      it(`refuses a reason code that cannot refuse, with HOOK_ANSWER_INVALID: ${name} ${reasonCode}`, async () => {
        await using broker = await startBroker({ hooks: { [name]: () => ({ allow: false, reasonCode }) } as Hooks });
        const errors = errorsOf(broker);
        assert.equal(await passes(broker, name), false);
        assert.equal(errors.length, 1, errors.join());
        assert.match(
          errors[0],
          /HOOK_ANSWER_INVALID reasonCode of the hook \w+: expected a reason code of 0x80 or above/
        );
      });
  }

  it('accepts a number that is a QoS: authorizeSubscribe grants QoS 0 for 0, and at most the requested QoS for 2', async () => {
    for (const [answer, code] of [
      [0, 0],
      [1, 1],
      [2, 1],
      [0x87, 0x87]
    ]) {
      await using broker = await startBroker({ hooks: { authorizeSubscribe: () => answer } });
      const client = await rawClient(broker);
      assert.deepEqual(await granted(client, 1, { topic: 'a', qos: 1 }), [code]);
    }
  });
});

describe('Options that decide when no hook does', () => {
  it('refuses an unknown value with OPTION_INVALID', () => {
    assert.throws(() => createBroker({ aclNomatch: 'maybe' as never }), { code: 'OPTION_INVALID' });
    assert.throws(() => createBroker({ allowAnonymous: 'maybe' as never }), { code: 'OPTION_INVALID' });
  });
});
