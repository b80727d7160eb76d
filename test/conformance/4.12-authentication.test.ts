import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { Approval, AuthenticateRequest, Challenge, Verdict } from '../../lib/events/hooks.ts';
import type { AuthPacket, Properties } from '../../lib/packets/types.ts';
import { VirtualClock } from '../../lib/testing/clock.ts';
import { type RawClient, rawClient } from '../support/raw-client.ts';
import {
  connect,
  granted,
  nothing,
  payloads,
  publish,
  refused,
  refusedConnect,
  rest,
  sendAll,
  startBroker,
  subscribe,
  turns,
  withResolvers
} from '../support/wire.ts';

type Answer = Verdict | Approval | Challenge;

const METHOD = 'three-steps';

function named(data?: string, method = METHOD): Properties {
  return data === undefined
    ? { authenticationMethod: method }
    : { authenticationMethod: method, authenticationData: Buffer.from(data) };
}

function auth(reasonCode: 0x18 | 0x19, data?: string, method = METHOD): AuthPacket {
  return { cmd: 'auth', reasonCode, properties: named(data, method) };
}

/** A hook with three rounds: sends the challenges `c1` and `c2` and expects the answers `a1` and `a2`. Records its calls. */
function threeSteps(asked: string[] = []): (request: AuthenticateRequest) => Answer {
  return ({ method, data, round, state, isReauthentication }) => {
    if (method !== METHOD) return undefined;
    asked.push(`${isReauthentication ? 're ' : ''}${round} ${data ?? ''}`);
    if (round === 0) {
      state.set('step', 1);
      return { challenge: Buffer.from('c1') };
    }
    const step = state.get('step') as number;
    if (String(data) !== `a${step}`) return { allow: false, reasonCode: 0x87, reasonString: 'wrong answer' };
    state.set('step', step + 1);
    return step === 1 ? { challenge: Buffer.from('c2') } : { allow: true, data: Buffer.from('welcome') };
  };
}

/** Connects a client and completes the three rounds. */
async function authenticated(broker: Broker, properties: Properties = {}): Promise<RawClient> {
  const client = await rawClient(broker, { connect: false });
  client.send(connect(5, { clientId: 'c', properties: { ...properties, ...named('hello') } }));
  for (const step of [1, 2]) {
    assert.equal(String((await client.next('auth')).properties?.authenticationData), `c${step}`);
    client.send(auth(0x18, `a${step}`));
  }
  assert.equal((await client.next('connack')).reasonCode, 0);
  return client;
}

describe('Enhanced authentication', () => {
  it('[MQTT-4.12.0-1] refuses an unknown method with CONNACK 0x8C, with and without hooks', async () => {
    await using bare = await startBroker();
    assert.equal((await refusedConnect(bare, { properties: named() })).reasonCode, 0x8c);
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    assert.equal((await refusedConnect(broker, { properties: named(undefined, 'other') })).reasonCode, 0x8c);
  });

  it('[MQTT-4.12.0-2] [MQTT-4.12.0-5] requests more with AUTH 0x18, as many rounds as needed, and names the method of CONNECT', async () => {
    const asked: string[] = [];
    await using broker = await startBroker({ hooks: { authenticate: threeSteps(asked) } });
    const client = await authenticated(broker);
    assert.deepEqual(asked, ['0 hello', '1 a1', '2 a2']);
    const [one, two, connack] = client.received;
    assert.deepEqual(one, { cmd: 'auth', reasonCode: 0x18, properties: named('c1') });
    assert.deepEqual(two, { cmd: 'auth', reasonCode: 0x18, properties: named('c2') });
    assert.ok(connack.cmd === 'connack');
    assert.equal(connack.properties?.authenticationMethod, METHOD);
    assert.equal(String(connack.properties?.authenticationData), 'welcome');
    await nothing(client);
  });

  it('[MQTT-4.12.0-2] waits for hooks that answer late, and then processes packets that arrived in the meantime', async () => {
    const steps = threeSteps();
    await using broker = await startBroker({
      hooks: {
        preConnect: async () => {
          await turns(2);
          return true;
        },
        authenticate: async (request) => {
          await turns(2);
          return steps(request);
        }
      }
    });
    const client = await authenticated(broker);
    await nothing(client);
  });

  it('[MQTT-4.12.0-3] refuses with CONNACK 0x82 an AUTH before CONNACK that has no challenge or has code 0x19', async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    const client = await rawClient(broker, { connect: false });
    client.send(connect(5, { properties: named('hello') }));
    await client.next('auth');
    client.send(auth(0x19, 'a1'));
    assert.equal((await client.next('connack')).reasonCode, 0x82);
    await client.closed();
  });

  it("[MQTT-4.12.0-4] refuses in any round with a CONNACK of the hook's code, and closes", async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    for (const wrongIn of [1, 2]) {
      const client = await rawClient(broker, { connect: false });
      client.send(connect(5, { clientId: 'c', properties: named('hello') }));
      for (let step = 1; step <= wrongIn; step++) {
        await client.next('auth');
        client.send(auth(0x18, step === wrongIn ? 'wrong' : `a${step}`));
      }
      const { reasonCode, properties } = await client.next('connack');
      assert.deepEqual([reasonCode, properties?.reasonString], [0x87, 'wrong answer']);
      await client.closed();
      assert.equal(broker.sessions.has('c'), false);
    }
  });

  it('[MQTT-4.12.0-4] refuses an approved client with the code of the limit it exceeds, even if the approval is late', async () => {
    for (const wait of [0, 2]) {
      await using broker = await startBroker({
        maxSessions: 1,
        hooks: {
          authenticate: async () => {
            await turns(wait);
            return true;
          }
        }
      });
      await rawClient(broker);
      assert.equal((await refusedConnect(broker)).reasonCode, 0x97);
    }
  });

  it('[MQTT-4.12.0-5] refuses an AUTH that names another method with CONNACK 0x82', async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    const client = await rawClient(broker, { connect: false });
    client.send(connect(5, { properties: named('hello') }));
    await client.next('auth');
    client.send(auth(0x18, 'a1', 'other'));
    assert.equal((await client.next('connack')).reasonCode, 0x82);
    await client.closed();
  });

  it('[MQTT-4.12.0-6] sends no AUTH, and no method in CONNACK, if CONNECT names no method', async () => {
    await using broker = await startBroker({ hooks: { authenticate: ({ method }) => method === undefined } });
    const client = await rawClient(broker, { username: 'u', password: Buffer.from('p') });
    assert.equal(client.connack?.properties?.authenticationMethod, undefined);
    assert.equal(client.connack?.properties?.authenticationData, undefined);
    await nothing(client);
    await using challenging = await startBroker({ hooks: { authenticate: () => ({ challenge: Buffer.from('?') }) } });
    assert.equal((await refusedConnect(challenging)).reasonCode, 0x80);
    const old = await rawClient(challenging, { version: 4, connect: false });
    old.send(connect(4, { username: 'u' }));
    assert.deepEqual(await old.closed(), []);
  });

  it('[MQTT-4.12.0-7] closes with 0x82 for an AUTH from a client that named no method', async () => {
    await using broker = await startBroker({ hooks: { authenticate: () => true } });
    for (const reasonCode of [0x18, 0x19] as const) {
      const client = await rawClient(broker);
      client.send(auth(reasonCode));
      await refused(client, 0x82);
    }
  });

  it('[MQTT-3.1.2-30] refuses with CONNACK 0x82 packets other than AUTH and DISCONNECT before CONNACK', async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    for (const early of [subscribe(1, 'a'), publish('a', 'x'), { cmd: 'pingreq' } as const]) {
      const client = await rawClient(broker, { connect: false });
      client.send(connect(5, { properties: named('hello') }));
      await client.next('auth');
      client.send(early);
      assert.equal((await client.next('connack')).reasonCode, 0x82);
      await client.closed();
    }
  });

  it('[MQTT-3.1.2-30] ends the exchange at DISCONNECT without an answer and without publishing the will', async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    let wills = 0;
    broker.subscribe('will', () => wills++);
    const client = await rawClient(broker, { connect: false });
    const will = { topic: 'will', payload: Buffer.alloc(0), qos: 0 as const, retain: false };
    client.send(connect(5, { clientId: 'c', will, properties: named('hello') }));
    await client.next('auth');
    client.send({ cmd: 'disconnect', reasonCode: 0x04 });
    await client.closed();
    await turns();
    assert.deepEqual(
      client.received.map(({ cmd }) => cmd),
      ['auth']
    );
    assert.deepEqual([broker.sessions.has('c'), wills], [false, 0]);
  });

  it('[MQTT-3.1.4-2] leaves a stored session unchanged until the exchange has succeeded', async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    const first = await authenticated(broker, { sessionExpiryInterval: 60 });
    await granted(first, 1, 'a');
    const intruder = await rawClient(broker, { connect: false });
    intruder.send(connect(5, { clientId: 'c', properties: named('hello') }));
    await intruder.next('auth');
    await nothing(first);
    intruder.send(auth(0x18, 'wrong'));
    await intruder.next('connack');
    await nothing(first);
    assert.equal([...broker.sessions.get('c').subscriptions()].length, 1);
    assert.equal(broker.sessions.get('c').state, 'connected');
  });

  it('[MQTT-3.1.4-2] runs the rounds of several CONNECT packets for one client id concurrently, each with its own state', async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    const clients: RawClient[] = [];
    for (let at = 0; at < 3; at++) {
      const client = await rawClient(broker, { connect: false });
      client.send(connect(5, { clientId: 'c', properties: named('hello') }));
      await client.next('auth');
      clients.push(client);
    }
    const [first, second, third] = clients;
    for (const client of [second, first, third]) {
      client.send(auth(0x18, 'a1'));
      await client.next('auth');
    }
    second.send(auth(0x18, 'a2'));
    await second.next('connack');
    third.send(auth(0x18, 'wrong'));
    assert.equal((await third.next('connack')).reasonCode, 0x87);
    await nothing(second);
    first.send(auth(0x18, 'a2'));
    assert.equal((await first.next('connack')).reasonCode, 0);
    await refused(second, 0x8e);
    await nothing(first);
  });

  it('[MQTT-3.1.4-6] processes nothing that follows a refused CONNECT', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({ hooks: { authenticate: () => answer.promise } });
    let heard = 0;
    broker.subscribe('a', () => heard++);
    const client = await rawClient(broker, { connect: false });
    sendAll(client, connect(5), publish('a', 'x'), subscribe(1, 'a'));
    await turns();
    answer.resolve(false);
    await client.closed();
    assert.deepEqual([client.received.length, heard], [1, 0]);
  });

  it('[MQTT-3.1.4-5] defers packets sent before CONNACK until all hooks have answered, and then processes them in order', async () => {
    const answers = [withResolvers<boolean>(), withResolvers<boolean>()];
    await using broker = await startBroker({
      hooks: { preConnect: () => answers[0].promise, authenticate: () => answers[1].promise }
    });
    const client = await rawClient(broker, { connect: false });
    sendAll(client, connect(5), subscribe(1, 'a'), publish('a', 'x'));
    await turns();
    answers[0].resolve(true);
    await turns();
    assert.deepEqual(client.received, []);
    client.send(publish('a', 'y'));
    await turns();
    answers[1].resolve(true);
    assert.equal((await client.next('connack')).reasonCode, 0);
    await client.next('suback');
    assert.deepEqual(await payloads(client), ['x', 'y']);
  });
});

describe('Re-authentication', () => {
  it('[MQTT-4.12.1-1] runs the rounds of the same method again and ends with AUTH 0x00', async () => {
    const asked: string[] = [];
    await using broker = await startBroker({ hooks: { authenticate: threeSteps(asked) } });
    const client = await authenticated(broker);
    asked.length = 0;
    client.send(auth(0x19, 'again'));
    for (const step of [1, 2]) {
      assert.deepEqual(await client.next('auth'), { cmd: 'auth', reasonCode: 0x18, properties: named(`c${step}`) });
      client.send(auth(0x18, `a${step}`));
    }
    assert.deepEqual(await client.next('auth'), { cmd: 'auth', reasonCode: 0, properties: named('welcome') });
    assert.deepEqual(asked, ['re 0 again', 're 1 a1', 're 2 a2']);
    await nothing(client);
    client.send(auth(0x19)); // and a second time
    assert.equal((await client.next('auth')).reasonCode, 0x18);
  });

  it('[MQTT-4.12.1-1] closes with 0x82 for another method, in the first round and in a later one', async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    const first = await authenticated(broker);
    first.send(auth(0x19, 'again', 'other'));
    await refused(first, 0x82);
    const second = await authenticated(broker);
    second.send(auth(0x19, 'again'));
    await second.next('auth');
    second.send(auth(0x18, 'a1', 'other'));
    await refused(second, 0x82);
  });

  it('[MQTT-4.12.1-1] closes with 0x82 for a packet out of sequence: 0x18 without a challenge, 0x19 during an exchange', async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    const first = await authenticated(broker);
    first.send(auth(0x18, 'a1'));
    await refused(first, 0x82);
    const second = await authenticated(broker);
    second.send(auth(0x19, 'again'));
    await second.next('auth');
    second.send(auth(0x19, 'again'));
    await refused(second, 0x82);
  });

  it('[MQTT-4.12.1-2] closes with the code of a refusal, and publishes the will', async () => {
    await using broker = await startBroker({ hooks: { authenticate: threeSteps() } });
    const client = await authenticated(broker);
    client.send(auth(0x19, 'again'));
    await client.next('auth');
    client.send(auth(0x18, 'wrong'));
    assert.equal(await refused(client, 0x87), 'wrong answer');
  });

  it('[MQTT-4.12.1-2] closes with 0x87 if no hook decides, because DISCONNECT has no 0x8C (table 3.14.2.1)', async () => {
    await using broker = await startBroker({
      hooks: { authenticate: ({ isReauthentication }) => (isReauthentication ? undefined : true) }
    });
    const client = await rawClient(broker, { properties: { authenticationMethod: 'steps' } });
    client.send(auth(0x19, 'garbage', 'steps'));
    await refused(client, 0x87);
  });

  it('[MQTT-4.12.1-2] processes other packets with the old permissions until it ends, while hooks decide', async () => {
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({
      hooks: { authenticate: ({ isReauthentication }) => (isReauthentication ? answer.promise : true) }
    });
    const client = await rawClient(broker, { properties: named() });
    const other = await rawClient(broker, { properties: named() });
    await granted(client, 1, { topic: 'a', qos: 1 });
    client.send(auth(0x19));
    client.send(publish('a', 'mine', { qos: 1, messageId: 7 }));
    other.send(publish('a', 'theirs'));
    const got = [await client.next(), await client.next(), await client.next()].map(({ cmd }) => cmd).sort();
    assert.deepEqual(got, ['puback', 'publish', 'publish']);
    assert.deepEqual(await granted(client, 2, 'b'), [0]);
    client.send({ cmd: 'pingreq' });
    await client.next('pingresp');
    answer.resolve(true);
    assert.equal((await client.next('auth')).reasonCode, 0);
    await nothing(client);
  });

  it('[MQTT-4.12.1-2] closes only that connection with 0x80 when its hook fails or never answers', async () => {
    const clock = new VirtualClock({ patienceMs: 1 });
    await using broker = await startBroker({
      clock,
      hookTimeout: 1000,
      hooks: {
        authenticate: ({ isReauthentication, client }) => {
          if (!isReauthentication) return true;
          if (client.clientId === 'throws') throw new Error('broken');
          return new Promise(() => {});
        }
      }
    });
    const errors: string[] = [];
    broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    const throws = await rawClient(broker, { clientId: 'throws', properties: named() });
    const waits = await rawClient(broker, { clientId: 'waits', properties: named() });
    throws.send(auth(0x19));
    await refused(throws, 0x80);
    waits.send(auth(0x19));
    await clock.advance(999);
    assert.equal(waits.isClosed, false);
    await clock.advance(1);
    await refused(waits, 0x80);
    assert.deepEqual(errors, [
      'hook authenticate: broken',
      'hook authenticate: hook authenticate did not answer within 1000 ms (option hookTimeout)'
    ]);
  });

  it('[MQTT-4.12.1-2] discards a re-authentication when the client is taken over during the exchange, and notifies its hook', async () => {
    const signals: AbortSignal[] = [];
    const answer = withResolvers<boolean>();
    await using broker = await startBroker({
      hooks: {
        authenticate: ({ isReauthentication, signal }) => {
          if (!isReauthentication) return true;
          signals.push(signal);
          return answer.promise;
        }
      }
    });
    const properties = { ...named(), sessionExpiryInterval: 60 };
    const first = await rawClient(broker, { clientId: 'c', properties });
    first.send(auth(0x19));
    await turns();
    assert.equal(signals[0].aborted, false);
    const second = await rawClient(broker, { clientId: 'c', clean: false, properties });
    await refused(first, 0x8e);
    assert.equal(signals[0].aborted, true);
    answer.resolve(false);
    await turns();
    assert.deepEqual(await rest(second), []);
  });

  it('[MQTT-4.12.0-5] closes with 0x82 for an AUTH without a method', async () => {
    await using broker = await startBroker({ hooks: { authenticate: () => true } });
    const client = await rawClient(broker, { properties: named() });
    client.sendBytes('f0 02 19 00');
    await refused(client, 0x82);
  });

  it('[MQTT3-3.14.4-3] closes the connection of a 3.x client that sends AUTH, without an answer', async () => {
    await using broker = await startBroker();
    for (const version of [3, 4] as const) {
      const client = await rawClient(broker, { version });
      client.sendBytes('f0 00');
      await refused(client, 0);
      assert.equal(client.received.length, 1);
    }
  });
});
