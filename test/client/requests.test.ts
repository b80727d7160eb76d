import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import mqtt from 'mqtt';
import { listen } from '../../adapters/net/index.ts';
import {
  acl,
  type Client,
  type Clock,
  connectClient,
  createBroker,
  type Message,
  type ReceivedMessage
} from '../../lib/index.ts';
import { createTestBroker, type TestBrokerOptions } from '../../lib/testing/index.ts';
import { mosquitto, withMosquitto } from '../cli/mosquitto.ts';

const immediate = () => new Promise((resolve) => setImmediate(resolve));

/** A broker, a client that requests and a client that responds. */
async function pair(options: TestBrokerOptions = {}) {
  const kit = await createTestBroker({ leaks: 'ignore', ...options });
  const requester = await kit.connect({ clientId: 'requester' });
  const responder = await kit.connect({ clientId: 'responder' });
  return { kit, requester, responder, [Symbol.asyncDispose]: () => kit[Symbol.asyncDispose]() };
}

type Use = Awaited<ReturnType<typeof pair>>;

const text = ({ payload }: { readonly payload: Buffer }) => payload.toString();
const double = (message: ReceivedMessage | Message) => `${2 * Number(message.payload.toString())}`;

describe('client.request', () => {
  it('resolves with the response of a responder', async () => {
    await using use = await pair();
    await use.responder.respond('calc/double', double);
    const response = await use.requester.request('calc/double', '21');
    assert.equal(text(response), '42');
    assert.equal(response.topic, '$client/requester/response');
  });

  it('gives each of many concurrent requests its own response, in any order', async () => {
    await using use = await pair();
    const held: (() => void)[] = [];
    await use.responder.respond('calc/+', async (request) => {
      await new Promise<void>((resolve) => held.push(resolve));
      return double(request);
    });
    const numbers = Array.from({ length: 50 }, (_, n) => n);
    const requests = numbers.map((n) => use.requester.request(`calc/${n}`, `${n}`));
    while (held.length < numbers.length) await immediate();
    for (const resolve of held.reverse()) resolve();
    assert.deepEqual(
      (await Promise.all(requests)).map(text),
      numbers.map((n) => `${2 * n}`)
    );
    assert.equal(use.requester.lateResponses, 0);
  });

  it('rejects with NO_SUBSCRIBERS at once if the topic has no subscribers', async () => {
    await using use = await pair();
    for (const qos of [1, 2] as const)
      await assert.rejects(use.requester.request('calc/double', '1', { qos }), { code: 'NO_SUBSCRIBERS' });
  });

  it('rejects with REQUEST_TIMEOUT on the clock of the broker, and counts a late response', async () => {
    await using use = await pair();
    let respond = () => {};
    await use.responder.respond('slow', () => new Promise<string>((resolve) => (respond = () => resolve('late'))));
    const heard: string[] = [];
    use.requester.on('message', ({ topic }) => heard.push(topic));
    const rejected = assert.rejects(use.requester.request('slow', ''), {
      code: 'REQUEST_TIMEOUT',
      message: 'no response to the request "slow" within 10000 ms'
    });
    await use.kit.clock.advance('9999ms');
    assert.equal(use.requester.lateResponses, 0);
    await use.kit.clock.advance('1ms');
    await rejected;
    const short = assert.rejects(use.requester.request('slow', '', { timeout: '2s' }), { code: 'REQUEST_TIMEOUT' });
    await use.kit.clock.advance('2s');
    await short;
    respond();
    while (use.requester.lateResponses === 0) await immediate();
    assert.equal(use.requester.lateResponses, 1);
    assert.deepEqual(heard, [], 'responses are not given to listeners');
  });

  it('rejects with the reason of its signal', async () => {
    await using use = await pair();
    await use.responder.respond('slow', () => new Promise(() => {}));
    const controller = new AbortController();
    const request = use.requester.request('slow', '', { signal: controller.signal });
    controller.abort(new Error('not needed'));
    await assert.rejects(request, { message: 'not needed' });
    await assert.rejects(use.requester.request('slow', '', { signal: controller.signal }), { message: 'not needed' });
  });

  it('rejects with CONNECTION_CLOSED when the client disconnects', async () => {
    await using use = await pair();
    await use.responder.respond('slow', () => new Promise(() => {}));
    const rejected = assert.rejects(use.requester.request('slow', ''), { code: 'CONNECTION_CLOSED' });
    await use.requester.ping();
    await use.requester.disconnect();
    await rejected;
    await assert.rejects(use.requester.request('slow', ''), { code: 'NOT_CONNECTED' });
  });

  it('takes late responses after the client has reconnected to its session, and needs no new subscription', async () => {
    await using use = await pair();
    const { kit, responder } = use;
    let respond = () => {};
    await responder.respond('slow', () => new Promise<string>((resolve) => (respond = () => resolve('late'))));
    await responder.respond('quick', () => 'quick');
    const options = { clientId: 'kept', clean: false, properties: { sessionExpiryInterval: 600 } };
    const first = await kit.connect(options);
    const rejected = assert.rejects(first.request('slow', ''), { code: 'CONNECTION_CLOSED' });
    await kit.clock.settle();
    first.destroy();
    await rejected;
    respond();
    await kit.clock.settle();
    const heard: string[] = [];
    const second = await kit.connect({ ...options, session: first.session });
    second.on('message', ({ topic }) => heard.push(topic));
    await second.ping();
    assert.deepEqual([heard, second.lateResponses], [[], 1]);
    assert.equal(text(await second.request('quick')), 'quick');
    const subscribes = kit.packets('kept').filter(({ cmd }) => cmd === 'subscribe');
    assert.equal(subscribes.length, 1);
    await second.unsubscribe('$client/kept/response');
    assert.equal(text(await second.request('quick')), 'quick', 'the client subscribes again');
    await second.disconnect();
    await kit.broker.sessions.kick('kept');
    const third = await kit.connect({ ...options, session: second.session });
    assert.equal(text(await third.request('quick')), 'quick', 'the session is new');
  });

  it('leaves the response topic to an application that subscribes to it without requests', async () => {
    await using use = await pair();
    const { kit, responder } = use;
    const topic = '$client/kept/response';
    const options = { clientId: 'kept', clean: false, properties: { sessionExpiryInterval: 600 } };
    const first = await kit.connect(options);
    await first.subscribe(topic, { qos: 1 });
    await first.disconnect();
    await responder.publish(topic, 'own', { qos: 1 });
    const second = await kit.connect({ ...options, session: first.session });
    const heard: string[] = [];
    second.on('message', (message) => heard.push(text(message)));
    await second.ping();
    assert.deepEqual(heard, ['own']);
  });

  it('takes the first of several responses, and only those to its own requests', async () => {
    await using use = await pair();
    const { requester, responder, kit } = use;
    const other = await kit.connect({ clientId: 'other' });
    const stolen: (Buffer | undefined)[] = [];
    await other.subscribe('a', { qos: 1 }, ({ properties }) => stolen.push(properties.correlationData));
    await other.respond('a', () => 'second');
    await responder.respond('a', () => 'first');
    assert.match(text(await requester.request('a')), /^(first|second)$/);
    await kit.clock.settle();
    assert.equal(requester.lateResponses, 1);
    const correlationData = stolen[0];
    await other.publish('$client/requester/response', 'forged', { qos: 1, properties: { correlationData } });
    await other.publish('$client/requester/response', 'forged', { qos: 1 });
    await kit.clock.settle();
    assert.equal(requester.lateResponses, 3);
  });

  it('times out and stays connected if the response is larger than its Maximum Packet Size', async () => {
    await using use = await pair();
    const { kit, responder } = use;
    const small = await kit.connect({ clientId: 'small', properties: { maximumPacketSize: 500 } });
    await responder.respond('large/client', () => 'x'.repeat(1_000));
    kit.broker.respond('large/app', () => 'x'.repeat(1_000));
    for (const topic of ['large/client', 'large/app']) {
      const rejected = assert.rejects(small.request(topic, '', { timeout: '3s' }), { code: 'REQUEST_TIMEOUT' });
      await kit.clock.advance('3s');
      await rejected;
    }
    assert.equal(small.isConnected, true);
    await responder.respond('small', () => 'x');
    assert.equal(text(await small.request('small')), 'x');
  });

  it('leaves neither a timer nor a listener of the signal after a request', async () => {
    await using use = await pair();
    const { clock } = use.kit;
    const armed = new Set<unknown>();
    const counting: Clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      setTimeout: (run, delayMs) => {
        const timer = clock.setTimeout(run, delayMs);
        armed.add(timer);
        return timer;
      },
      clearTimeout: (timer) => {
        armed.delete(timer);
        clock.clearTimeout(timer);
      }
    };
    const client = await connectClient(use.kit.stream(), { clientId: 'counting', clock: counting });
    const { signal } = new AbortController();
    await use.responder.respond('calc/double', double);
    const request = client.request('calc/double', '1', { signal });
    assert.deepEqual([armed.size, getEventListeners(signal, 'abort').length], [1, 1]);
    await request;
    assert.deepEqual([armed.size, getEventListeners(signal, 'abort').length], [0, 0]);
    await assert.rejects(client.request('nobody', '1', { signal }), { code: 'NO_SUBSCRIBERS' });
    assert.deepEqual([armed.size, getEventListeners(signal, 'abort').length], [0, 0]);
    await client.disconnect();
  });

  it('subscribes to its response topic again if the app has unsubscribed from it', async () => {
    await using use = await pair();
    await use.responder.respond('calc/double', double);
    await use.requester.request('calc/double', '1');
    await use.requester.unsubscribe('$client/requester/response');
    assert.equal(text(await use.requester.request('calc/double', '2')), '4');
  });

  it('rejects pending requests when the broker stops, and no response is published by the next run', async () => {
    await using use = await pair();
    const { kit, requester, responder } = use;
    const held: (() => void)[] = [];
    kit.broker.respond('app', () => new Promise<string>((resolve) => held.push(() => resolve('x'))));
    kit.broker.on('error', ({ error }) => assert.fail(error));
    await kit.broker.publish('app', '', { properties: { responseTopic: 'answers' } });
    await responder.respond('client', () => new Promise(() => {}));
    const requests = ['app', 'client'].map((topic) => requester.request(topic).catch(({ code }) => code));
    await kit.clock.settle();
    await kit.broker.stop({ timeoutMs: 0 });
    assert.deepEqual(await Promise.all(requests), ['CONNECTION_CLOSED', 'CONNECTION_CLOSED']);
    await kit.broker.start();
    const got: string[] = [];
    for (const filter of ['$client/#', 'answers']) kit.broker.subscribe(filter, ({ topic }) => got.push(topic));
    assert.equal(held.length, 2);
    for (const respond of held) respond();
    await kit.clock.settle();
    assert.deepEqual(got, []);
  });

  it('needs MQTT 5.0', async () => {
    await using use = await pair();
    const old = await use.kit.connect({ clientId: 'old', protocolVersion: 4 });
    await assert.rejects(old.request('a', ''), { code: 'MQTT_5_REQUIRED' });
    await assert.rejects(
      old.respond('a', () => ''),
      { code: 'MQTT_5_REQUIRED' }
    );
  });

  it('checks its arguments', async () => {
    await using use = await pair();
    const { requester } = use;
    const code = (code: string) => ({ code });
    await assert.rejects(requester.request('a/#', ''), code('TOPIC_NAME_INVALID'));
    await assert.rejects(requester.request('a', 7 as never), code('MESSAGE_INVALID'));
    await assert.rejects(requester.request('a', '', { timeOut: 5 } as never), code('OPTION_UNKNOWN'));
    for (const timeout of [0, Infinity])
      await assert.rejects(requester.request('a', '', { timeout }), code('OPTION_INVALID'));
    await assert.rejects(requester.request('a', '', { timeout: 'soon' }), code('DURATION_INVALID'));
    await assert.rejects(requester.request('a', '', { qos: 3 as never }), code('MESSAGE_INVALID'));
    const properties = { correlationData: Buffer.from('x') };
    await assert.rejects(requester.request('a', '', { properties } as never), code('OPTION_INVALID'));
    await assert.rejects(requester.respond('a', 'text' as never), code('HANDLER_INVALID'));
  });

  it('uses the Response Information of the server', async () => {
    for (const [responseInformation, topic] of [
      ['answers/%c', 'answers/requester'],
      ['answers/%c/', 'answers/requester/response'],
      ['not/#/valid', '$client/requester/response']
    ]) {
      await using use = await pair({ responseInformation });
      await use.responder.respond('a', (request) => request.properties.responseTopic);
      assert.equal(text(await use.requester.request('a', '')), topic);
    }
  });

  it('passes other properties of the request and of the response', async () => {
    await using use = await pair();
    await use.responder.respond('a', ({ properties }) => ({
      payload: Buffer.from('{}'),
      properties: { contentType: properties.contentType, userProperties: [['a', 'b']] }
    }));
    const response = await use.requester.request('a', '', { properties: { contentType: 'application/json' } });
    const { contentType, userProperties } = response.properties;
    assert.deepEqual([contentType, userProperties], ['application/json', [['a', 'b']]]);
  });

  it('acknowledges requests and responses if the application acknowledges messages', async () => {
    await using kit = await createTestBroker({ maxInflight: 1 });
    const responder = await kit.connect({ clientId: 'responder', acknowledge: 'manual', receiveMaximum: 1 });
    const requester = await kit.connect({ clientId: 'requester', acknowledge: 'manual', receiveMaximum: 1 });
    await responder.respond('a', double);
    for (const n of [1, 2, 3]) assert.equal(text(await requester.request('a', `${n}`)), `${2 * n}`);
  });

  it('rejects with QUOTA_EXCEEDED while 10,000 requests are pending', async () => {
    await using use = await pair();
    await use.responder.respond('slow', () => new Promise(() => {}));
    const pending = Array.from({ length: 10_000 }, () => use.requester.request('slow', '', { qos: 0 }).catch(() => {}));
    await assert.rejects(use.requester.request('slow', ''), { code: 'QUOTA_EXCEEDED' });
    await use.requester.disconnect();
    await Promise.all(pending);
  });
});

describe('client.respond', () => {
  it('tells the requester that the handler has failed, with the code of the error only', async () => {
    await using use = await pair();
    const errors: string[] = [];
    use.responder.on('error', ({ message }) => errors.push(message));
    const failure = Object.assign(new Error('secret of the responder'), { code: 'DIVISION_BY_ZERO' });
    await use.responder.respond('coded', () => Promise.reject(failure));
    await use.responder.respond('plain', () => {
      throw new Error('also secret');
    });
    await use.responder.respond('wrong', () => 42 as never);
    const message = (topic: string, code: string) => `the responder to the request "${topic}" has failed: ${code}`;
    const rejects = (topic: string, code: string) =>
      assert.rejects(use.requester.request(topic, ''), { code: 'RESPONDER_FAILED', message: message(topic, code) });
    await rejects('coded', 'DIVISION_BY_ZERO');
    await rejects('plain', 'RESPONDER_FAILED');
    await rejects('wrong', 'MESSAGE_INVALID');
    assert.equal(errors.length, 3);
    assert.equal(errors[0], 'secret of the responder');
  });

  it('answers with an empty payload if the handler returns nothing', async () => {
    await using use = await pair();
    await use.responder.respond('a', () => {});
    assert.equal(text(await use.requester.request('a', 'x')), '');
  });

  it('calls the handler for messages without a response topic, and sends no response', async () => {
    await using use = await pair();
    const got: string[] = [];
    await use.responder.respond('a', (request) => void got.push(text(request)));
    await use.requester.publish('a', 'plain', { qos: 1 });
    const old = await use.kit.connect({ clientId: 'old', protocolVersion: 4 });
    await old.publish('a', 'older', { qos: 1 });
    assert.deepEqual(got, ['plain', 'older']);
  });

  it('shares requests between the members of a share group', async () => {
    await using use = await pair();
    const second = await use.kit.connect({ clientId: 'second' });
    await use.responder.respond('$share/workers/jobs', () => 'first');
    await second.respond('$share/workers/jobs', () => 'second');
    const answers = new Set<string>();
    for (let n = 0; n < 20; n++) answers.add(text(await use.requester.request('jobs', '')));
    assert.deepEqual([...answers].sort(), ['first', 'second']);
  });

  it('stops with the function that it returns', async () => {
    await using use = await pair();
    const stop = await use.responder.respond('a', () => 'x');
    await use.requester.request('a', '');
    await stop();
    await assert.rejects(use.requester.request('a', ''), { code: 'NO_SUBSCRIBERS' });
  });

  it('rejects with SUBSCRIBE_REFUSED if the client may not subscribe', async () => {
    await using use = await pair({ hooks: { authorizeSubscribe: ({ filter }) => filter !== 'forbidden' } });
    await assert.rejects(
      use.responder.respond('forbidden', () => ''),
      { code: 'SUBSCRIBE_REFUSED', reasonCode: 0x87 }
    );
  });

  it('acknowledges a request whose response is refused or too large, so that it receives the next one', async () => {
    await using kit = await createTestBroker({
      maxPacketSize: 10_000,
      hooks: { authorizePublish: ({ message }) => !message.topic.startsWith('forbidden') }
    });
    const responder = await kit.connect({ clientId: 'responder', acknowledge: 'manual', receiveMaximum: 1 });
    const requester = await kit.connect({ clientId: 'requester' });
    const errors: string[] = [];
    responder.on('error', (error) => errors.push((error as Error & { code: string }).code));
    await responder.respond('a', ({ payload }) => 'x'.repeat(Number(payload.toString())));
    await requester.publish('a', '1', { qos: 1, properties: { responseTopic: 'forbidden' } });
    const tooLarge = { code: 'RESPONDER_FAILED', message: /: PACKET_TOO_LARGE$/ };
    await assert.rejects(requester.request('a', '20000'), tooLarge);
    assert.equal(text(await requester.request('a', '3')), 'xxx');
    assert.deepEqual(errors, ['PUBLISH_REFUSED', 'PACKET_TOO_LARGE']);
  });

  it('reports a response that the server refuses as an error of the client', async () => {
    await using use = await pair({
      hooks: { authorizePublish: ({ message }) => !message.topic.startsWith('$client/') }
    });
    const errors: string[] = [];
    use.responder.on('error', (error) => errors.push((error as { code?: string }).code ?? ''));
    await use.responder.respond('a', () => 'x');
    const rejected = assert.rejects(use.requester.request('a', ''), { code: 'REQUEST_TIMEOUT' });
    await use.kit.clock.advance('10s');
    await rejected;
    assert.deepEqual(errors, ['PUBLISH_REFUSED']);
  });
});

/** The ways to respond. */
const RESPONDERS = [
  ['client.respond', (use: Use, filter: string, handler: () => never) => use.responder.respond(filter, handler)],
  ['broker.respond', async (use: Use, filter: string, handler: () => never) => use.kit.broker.respond(filter, handler)]
] as const;

for (const [name, respond] of RESPONDERS)
  describe(`a responder with ${name}`, () => {
    it('tells the requester that a response cannot be sent', async () => {
      await using use = await pair({ maxPacketSize: 100_000 });
      const errors: string[] = [];
      const note = (error: Error) => errors.push((error as Error & { code: string }).code);
      use.responder.on('error', note);
      use.kit.broker.on('error', ({ error }) => note(error));
      for (const [topic, answer] of [
        ['object', { open: true }],
        ['array', ['x']],
        ['null', null],
        ['wrong-property', { properties: { contentType: 7 } }]
      ] as const) {
        await respond(use, topic, () => answer as never);
        await assert.rejects(use.requester.request(topic), { code: 'RESPONDER_FAILED' });
      }
      assert.deepEqual(errors.slice(0, 3), ['MESSAGE_INVALID', 'MESSAGE_INVALID', 'MESSAGE_INVALID']);
      assert.equal(errors.length, 4);
    });

    it('sends a message back as it is, without the properties that belong to its delivery', async () => {
      await using use = await pair();
      await use.responder.subscribe('a/#', { properties: { subscriptionIdentifier: [7] } });
      const respondAny = respond as (use: Use, filter: string, handler: (message: unknown) => unknown) => unknown;
      await respondAny(use, 'a/b', (request) => request);
      const response = await use.requester.request('a/b', 'x', { properties: { contentType: 'text/plain' } });
      assert.deepEqual([text(response), response.properties.contentType], ['x', 'text/plain']);
      assert.equal(use.responder.isConnected, true);
    });

    it('does not answer its own responses, even if the handler returns the properties of the request', async () => {
      await using use = await pair();
      let count = 0;
      const respondAny = respond as (use: Use, filter: string, handler: (message: Message) => unknown) => unknown;
      await respondAny(use, 'loop', ({ properties }) => {
        if (count++ > 10) throw new Error('endless');
        return { payload: 'x', properties };
      });
      await use.requester.subscribe('loop');
      await use.requester.publish('loop', '', { qos: 1, properties: { responseTopic: 'loop' } });
      await use.kit.clock.settle();
      assert.equal(count, 2, 'the request, and its response, which has no response topic');
    });
  });

describe('broker.respond', () => {
  it('responds from the app to clients and to the app', async () => {
    await using use = await pair();
    const stop = use.kit.broker.respond('calc/double', double);
    assert.equal(text(await use.requester.request('calc/double', '4')), '8');
    const got: string[] = [];
    use.kit.broker.subscribe('answers/app', (message) =>
      got.push(`${text(message)} ${message.properties?.correlationData}`)
    );
    const properties = { responseTopic: 'answers/app', correlationData: Buffer.from('c1') };
    await use.kit.broker.publish('calc/double', '5', { properties });
    while (got.length === 0) await immediate();
    assert.deepEqual(got, ['10 c1']);
    stop();
    await assert.rejects(use.requester.request('calc/double', '4'), { code: 'NO_SUBSCRIBERS' });
  });

  it('responds below the mount point of the requester', async () => {
    await using use = await pair({ zones: { external: { mountpoint: 'tenant/' } } });
    const tenant = await use.kit.connect({ clientId: 'm', transportInfo: { zone: 'external' } });
    use.kit.broker.respond('tenant/calc', double);
    assert.equal(text(await tenant.request('calc', '6')), '12');
  });

  it('reports the error of a handler, and tells the requester', async () => {
    await using use = await pair();
    const errors: string[] = [];
    use.kit.broker.on('error', ({ error, during }) => errors.push(`${during}: ${error.message}`));
    use.kit.broker.respond('a', () => {
      throw new Error('broken');
    });
    await assert.rejects(use.requester.request('a', ''), { code: 'RESPONDER_FAILED' });
    assert.deepEqual(errors, ['a handler of "a": broken']);
  });

  it('sends no response to a topic where the requester may not publish, even if it is subscribed', async () => {
    const rules = acl([{ access: 'deny', action: 'publish', topic: 'alarm/#' }, { access: 'allow' }]);
    await using use = await pair({ auth: [rules] });
    const { requester, kit } = use;
    const got: string[] = [];
    kit.broker.subscribe('alarm/#', ({ topic }) => got.push(topic));
    await requester.subscribe('alarm/#');
    kit.broker.respond('service', ({ payload }) => payload);
    await assert.rejects(requester.publish('alarm/fire', 'false alarm', { qos: 1 }), { reasonCode: 0x87 });
    const properties = { responseTopic: 'alarm/fire' };
    await requester.publish('service', 'false alarm', { qos: 1, properties });
    await kit.clock.settle();
    assert.deepEqual(got, []);
    const { entries } = kit.broker.monitor.reasons.list({ code: 'acl_file_rule' });
    assert.deepEqual(
      entries.map(({ publisher, topic, detail }) => [publisher, topic, detail]),
      [['requester', 'alarm/fire', 'rule 1 of the source "acl": deny publish to "alarm/#"']]
    );
  });

  it('sends no response to a topic to which the requester is not subscribed, or below $SYS and $delayed', async () => {
    await using use = await pair();
    const { requester, kit } = use;
    const got: string[] = [];
    for (const filter of ['valves/1/set', '$SYS/forged', '$client/other/response'])
      kit.broker.subscribe(filter, ({ topic }) => got.push(topic), { retainHandling: 2 });
    kit.broker.respond('a', () => 'open');
    await requester.subscribe(['$SYS/#', '#']);
    await requester.unsubscribe('#');
    for (const responseTopic of ['valves/1/set', '$client/other/response', '$SYS/forged', '$delayed/1/valves/1/set'])
      await requester.publish('a', '', { qos: 1, properties: { responseTopic } });
    await kit.clock.advance('2s');
    assert.deepEqual(got, []);
    const { entries } = kit.broker.monitor.reasons.list({ code: 'topic_not_allowed' });
    assert.match(`${entries[0].detail}`, /the requester is not subscribed to the response topic/);
    const answered = new Promise<string>(
      (resolve) => void requester.subscribe('valves/+/set', { noLocal: true }, (message) => resolve(text(message)))
    );
    await requester.ping();
    await requester.publish('a', '', { qos: 1, properties: { responseTopic: 'valves/1/set' } });
    assert.equal(await answered, 'open', 'the app has sent it, so No Local does not apply');
    assert.deepEqual(got, ['valves/1/set']);
  });

  it('sends no response if another user has taken over the client id', async () => {
    await using use = await pair();
    const { kit } = use;
    let respond = () => {};
    kit.broker.respond('slow', () => new Promise<string>((resolve) => (respond = () => resolve('x'))));
    const got: string[] = [];
    const properties = { sessionExpiryInterval: 60 };
    const ask = async (username: string) => {
      const client = await kit.connect({ clientId: 'shared', clean: false, username, properties });
      await client.subscribe('answers', { qos: 1 }, ({ payload }) => got.push(`${username} ${payload}`));
      return client;
    };
    for (const second of ['eve', 'bob']) {
      const first = await ask('eve');
      await first.publish('slow', '', { qos: 1, properties: { responseTopic: 'answers' } });
      const next = await ask(second);
      respond();
      await kit.clock.settle();
      await next.ping();
    }
    assert.deepEqual(got, ['eve x']);
  });

  it('holds a response until hooks have decided about it as a message of the requester', async () => {
    const asked: string[] = [];
    let decide = (_isAllowed: boolean) => {};
    await using use = await pair({
      hooks: {
        authorizePublish: ({ message: { topic, payload, clientId }, client }) => {
          if (!topic.startsWith('held/')) return true;
          asked.push(`${client.clientId} ${clientId} ${topic} ${payload}`);
          return new Promise<boolean>((resolve) => (decide = resolve));
        },
        publish: ({ message: { topic }, client }) => topic !== 'vetoed' || client === undefined
      }
    });
    const { kit, requester } = use;
    const got: string[] = [];
    for (const filter of ['held/#', 'vetoed'])
      kit.broker.subscribe(filter, ({ topic, clientId }) => got.push(`${topic} ${clientId}`));
    kit.broker.respond('service', () => 'response');
    await requester.subscribe(['held/#', 'vetoed']);
    const ask = (responseTopic: string) => requester.publish('service', '', { qos: 1, properties: { responseTopic } });
    for (const isAllowed of [false, true]) {
      await ask(`held/${isAllowed}`);
      await kit.clock.settle();
      assert.deepEqual(got, []);
      decide(isAllowed);
    }
    await ask('vetoed');
    await kit.clock.settle();
    assert.deepEqual(got, ['held/true ']);
    assert.deepEqual(asked, ['requester requester held/false response', 'requester requester held/true response']);
  });

  it('sends the response of a client that may publish nothing but requests to its own topic only', async () => {
    const rules = acl([{ access: 'allow', action: 'publish', topic: 'service' }, { access: 'deny' }]);
    await using use = await pair({ auth: [rules] });
    const got: string[] = [];
    use.kit.broker.subscribe('$client/#', ({ topic }) => got.push(topic));
    use.kit.broker.respond('service', () => 'served');
    const properties = { responseTopic: '$client/responder/response' };
    await use.requester.publish('service', '', { qos: 1, properties });
    assert.equal(text(await use.requester.request('service')), 'served');
    assert.deepEqual(got, ['$client/requester/response']);
  });

  it('refuses response topics that the zone of the requester does not allow', async () => {
    await using use = await pair({ maxTopicLevels: 3 });
    const got: string[] = [];
    use.kit.broker.subscribe('deep/#', ({ topic }) => got.push(topic));
    use.kit.broker.respond('a', () => 'x');
    await use.requester.subscribe('deep/#');
    for (const responseTopic of ['deep/1/2/3', 'deep/1/2'])
      await use.requester.publish('a', '', { qos: 1, properties: { responseTopic } });
    await use.kit.clock.settle();
    assert.deepEqual(got, ['deep/1/2']);
  });

  it('does not leave the mount point with a response topic that is too long for it', async () => {
    await using use = await pair({ zones: { external: { mountpoint: 'tenant/' } } });
    const tenant = await use.kit.connect({ clientId: 'm', transportInfo: { zone: 'external' } });
    const got: number[] = [];
    for (const filter of ['outside/#', 'tenant/#'])
      use.kit.broker.subscribe(filter, ({ topic }) => void (topic.length > 99 && got.push(topic.length)));
    use.kit.broker.respond('tenant/a', () => 'x');
    await tenant.subscribe('outside/#');
    for (const length of [65_530, 65_528]) {
      const responseTopic = `outside/${'x'.repeat(length - 8)}`;
      await tenant.publish('a', '', { qos: 1, properties: { responseTopic } });
    }
    await use.kit.clock.settle();
    assert.deepEqual(got, [65_535]);
  });
});

describe('topics of one client', () => {
  const options = { allowAnonymous: true } as const;

  it('lets only this client subscribe below $client/<client id>/', async () => {
    await using use = await pair(options);
    const { requester, kit } = use;
    const granted = (filter: string, client: Client = requester) => client.subscribe(filter).then(([code]) => code);
    assert.equal(await granted('$client/requester/response'), 0);
    assert.equal(await granted('$client/requester/#'), 0);
    assert.equal(await granted('$share/g/$client/requester/x'), 0);
    for (const filter of [
      '$client/+/response',
      '$client/#',
      '$client/responder/response',
      '$client',
      '$share/g/$client/responder/x'
    ])
      assert.equal(await granted(filter), 0x87, filter);
    const plus = await kit.connect({ clientId: '+' });
    assert.equal(await granted('$client/+/response', plus), 0x87);
    assert.equal(await granted('$client/%2B/response', plus), 0);
    for (const id of ['+', 'a/b', '100%', '#']) {
      const client = id === '+' ? plus : await kit.connect({ clientId: id });
      kit.broker.respond('echo', text);
      assert.equal(text(await client.request('echo', id)), id);
    }
    const old = await kit.connect({ clientId: 'old', protocolVersion: 4 });
    assert.equal(await granted('$client/requester/response', old), 0x80);
    const { steps, access } = await kit.broker.access.explain({
      clientId: 'responder',
      action: 'subscribe',
      topic: '$client/requester/response'
    });
    assert.deepEqual([access, steps.map(({ by }) => by)], ['deny', ['builtin']]);
  });

  it('needs no rule that allows the response topic, and no rule opens those of others', async () => {
    await using use = await pair({
      aclNomatch: 'deny',
      auth: [
        {
          name: 'rules',
          authenticate: () => true,
          open: ({ setRules }) =>
            setRules([
              { access: 'allow', action: 'pub', topic: 'service', clientId: 'requester' },
              { access: 'allow', action: 'sub', topic: 'service', clientId: 'responder' },
              { access: 'allow', action: 'pub', topic: '$client/+/response', clientId: 'responder' },
              { access: 'allow', action: 'sub', topic: '$client/#', clientId: 'responder' },
              { access: 'deny', action: 'sub', topic: '$client/#' },
              { access: 'deny' }
            ])
        }
      ]
    });
    await use.responder.respond('service', () => 'served');
    assert.equal(text(await use.requester.request('service', '')), 'served');
    assert.deepEqual(await use.responder.subscribe('$client/requester/response'), [0x87]);
    assert.deepEqual(await use.requester.subscribe('other'), [0x87]);
    await assert.rejects(use.requester.publish('$client/responder/response', '', { qos: 1 }), { reasonCode: 0x87 });
    const question = { clientId: 'requester', action: 'subscribe', topic: '$client/requester/response' } as const;
    const { access, steps } = await use.kit.broker.access.explain(question);
    assert.deepEqual([access, steps], ['allow', [{ by: 'builtin', answer: 'allow' }]]);
  });
});

describe('requests with other software', () => {
  it('gets responses of an MQTT.js client, and responds to one', async () => {
    await using broker = createBroker();
    await broker.start();
    const foreign = new mqtt.MqttClient(() => broker.stream(), { clientId: 'foreign', protocolVersion: 5 });
    await new Promise((resolve) => foreign.once('connect', resolve));
    await foreign.subscribeAsync(['to/foreign', 'from/embermq'], { qos: 1 });
    foreign.on('message', (topic, payload, { properties }) => {
      if (topic !== 'to/foreign') return;
      foreign.publish(properties?.responseTopic as string, `foreign ${payload}`, {
        qos: 1,
        properties: { correlationData: properties?.correlationData }
      });
    });
    const client = await broker.connect({ clientId: 'own' });
    assert.equal(text(await client.request('to/foreign', 'hello')), 'foreign hello');

    await client.respond('to/embermq', (request) => `embermq ${text(request)}`);
    const answered = new Promise((resolve) =>
      foreign.on('message', (topic, payload, { properties }) => {
        if (topic === 'from/embermq') resolve(`${payload} ${properties?.correlationData}`);
      })
    );
    const properties = { responseTopic: 'from/embermq', correlationData: Buffer.from('id-1') };
    await foreign.publishAsync('to/embermq', 'hello', { qos: 1, properties });
    assert.equal(await answered, 'embermq hello id-1');
    await foreign.endAsync();
  });

  it('responds to mosquitto_rr, from a client and from the app', withMosquitto, async () => {
    await using broker = createBroker();
    const listener = listen(broker, { port: 0, host: '127.0.0.1' });
    await broker.start();
    const client = await broker.connect({ clientId: 'own' });
    await client.respond('rpc/client', (request) => `client ${text(request)}`);
    broker.respond('rpc/app', (request) => `app ${text(request)}`);
    const ask = (topic: string) =>
      mosquitto('rr', [
        '-p',
        `${listener.port}`,
        '-t',
        topic,
        '-e',
        'rpc/answer',
        '-m',
        'hello',
        '-V',
        '5',
        '-W',
        '10'
      ]);
    assert.equal(await ask('rpc/client'), 'client hello\n');
    assert.equal(await ask('rpc/app'), 'app hello\n');
    const remote = await import('../../lib/client/client.ts').then(({ connectClient }) =>
      connectClient(connect(listener.port as number, '127.0.0.1'), { clientId: 'remote' })
    );
    assert.equal(text(await remote.request('rpc/app', 'hi')), 'app hi');
    await remote.disconnect();
  });
});
