import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ArrivalQuestion, Broker } from '../../../lib/index.ts';
import { createTestBroker } from '../../../lib/testing/index.ts';
import { rawClient } from '../../support/raw-client.ts';
import { granted } from '../../support/wire.ts';
import { summaryOf } from './summary.ts';

/** The codes of the causes of an answer, in order. */
async function codesOf(broker: Broker, question: ArrivalQuestion): Promise<string[]> {
  return (await summaryOf(broker, question)).map(([code]) => code);
}

describe('Clients that have lost their session, and have returned and subscribed again', () => {
  it('names the end of a session that was not kept, for a message of the time in between that others received', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using other = await kit.connect({ clientId: 'other' });
    await other.subscribe('bay/#');
    const gone = await broker.connect({ clientId: 'gate' });
    await gone.subscribe('bay/gate', { qos: 1 });
    await clock.advance('10s');
    await gone.disconnect();
    await clock.advance('10s');
    await broker.publish('bay/gate', 'x', { qos: 1 });
    const at = clock.now();
    await clock.advance('10s');
    await using back = await kit.connect({ clientId: 'gate' });
    await back.subscribe('bay/gate', { qos: 1 });
    const until = clock.now();
    await clock.advance('10s');
    const text =
      'The session of client "gate" ended, and its subscriptions and queued messages with it: The client sent DISCONNECT.';
    const question = { topic: 'bay/gate', clientId: 'gate' };
    assert.deepEqual(await summaryOf(broker, question), [['session_ended', text, until]]);
    assert.deepEqual((await summaryOf(broker, { ...question, at }))[0], ['session_ended', text, undefined]);
    await broker.publish('bay/gate', 'x', { qos: 1 });
    const codes = await codesOf(broker, { ...question, at: clock.now() });
    assert.ok(!codes.includes('session_ended'), 'this message was sent');
  });

  it('names what has ended the subscription before a message that no one received, and not the later subscription', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    const connect = (clientId: string) => broker.connect({ clientId, clean: false });
    const ends: Readonly<Record<string, (clientId: string) => Promise<unknown> | unknown>> = {
      unsubscribed: (clientId) => broker.sessions.get(clientId).unsubscribe('a'),
      session_ended: (clientId) => clients.get(clientId)?.disconnect(),
      kicked: (clientId) => broker.sessions.get(clientId).kick()
    };
    const clients = new Map<string, Awaited<ReturnType<typeof connect>>>();
    for (const code of Object.keys(ends)) {
      const client = await connect(code);
      clients.set(code, client);
      await client.subscribe('a', { qos: 1 });
    }
    await clock.advance('5s');
    for (const [code, end] of Object.entries(ends)) await end(code);
    await clock.advance('5s');
    await broker.publish('a', 'x', { qos: 1 });
    const at = clock.now();
    await clock.advance('5s');
    for (const code of Object.keys(ends)) {
      const client = code === 'unsubscribed' ? clients.get(code) : await connect(code);
      await client?.subscribe('a', { qos: 1 });
    }
    const until = clock.now();
    await clock.advance('5s');
    for (const code of Object.keys(ends)) {
      const question = { topic: 'a', clientId: code };
      const [first, ...others] = await summaryOf(broker, question);
      assert.deepEqual([first[0], first[2]], [code, until]);
      const rest = others.map(([name]) => name).filter((name) => name !== 'no_subscriber');
      assert.deepEqual(rest, [], code);
      assert.equal((await codesOf(broker, { ...question, at }))[0], code);
    }
    const never = await connect('never');
    await never.subscribe('a', { qos: 1 });
    assert.equal((await codesOf(broker, { topic: 'a', clientId: 'never' }))[0], 'subscribed_later');
  });

  it('names the connection that was lost while a message was sent to a client which did not answer', async () => {
    await using kit = await createTestBroker();
    const { broker, clock } = kit;
    await using other = await kit.connect({ clientId: 'other' });
    await other.subscribe('bay/#');
    for (const [clientId, qos, sessionExpiryInterval] of [
      ['frozen', 0, 0],
      ['lost', 1, 0],
      ['kept', 0, 600],
      ['safe', 1, 600],
      ['both', 0, 600]
    ] as const) {
      const connect = () =>
        rawClient(broker, { clientId, clean: false, keepalive: 20, properties: { sessionExpiryInterval } });
      const raw = await connect();
      await granted(raw, 1, { topic: 'bay/#', qos });
      if (clientId === 'both') await granted(raw, 2, { topic: 'bay/1', qos: 1 });
      const silent = new Date(clock.now()).toISOString();
      await clock.advance('10s');
      await broker.publish('bay/1', 'x', { qos: 1 });
      const at = clock.now();
      await clock.advance('30s');
      const lost = new Date(at + 20_000).toISOString();
      const again = await connect();
      if (sessionExpiryInterval === 0) await granted(again, 1, { topic: 'bay/#', qos });
      const until = clock.now();
      await clock.advance('5s');
      const text =
        `Client "${clientId}" did not answer before its connection was lost, and messages that were sent to it ` +
        `in that time may not have arrived: it sent nothing from ${silent} until ${lost}.`;
      const question = { topic: 'bay/1', clientId };
      const find = async (asked: ArrivalQuestion) => {
        const all = await summaryOf(broker, asked);
        assert.ok(!all.some(([code]) => code === 'subscribed_later'), clientId);
        return all.filter(([code]) => code === 'connection_lost');
      };
      const isCause = clientId !== 'safe' && clientId !== 'both'; // their message is sent again
      assert.deepEqual(
        await find({ ...question, at }),
        isCause ? [['connection_lost', text, undefined]] : [],
        clientId
      );
      assert.deepEqual(await find(question), isCause ? [['connection_lost', text, until]] : [], clientId);
      const all = await codesOf(broker, question);
      if (isCause && qos === 0) assert.equal(all.indexOf('qos_lowered'), all.length - 1, 'it is true of all messages');
      if (isCause) assert.equal((await codesOf(broker, { ...question, at }))[0], 'connection_lost');
      assert.deepEqual(await find({ ...question, at: clock.now() }), [], 'it is back');
      assert.deepEqual(await find({ ...question, topic: 'other' }), [], 'it has no subscription to it');
      again.stream.destroy();
    }
  });
});
