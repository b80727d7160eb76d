import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ReceivedMessage } from '../../lib/client/options.ts';
import { ClientSession } from '../../lib/client/session.ts';
import { someOf } from '../support/samples.ts';
import { Lives, PERSISTENT, turns } from './support.ts';

const TOPICS = 8;
const MESSAGES = Array.from({ length: TOPICS }, (_, n) => `${n}`);

/**
 * Subscribes a client to retained messages while a newer message of the last topic arrives. The broker crashes when `at` packets, including
 * SUBACK, have passed over the client's wire; then the client reconnects.
 * @param retain whether the newer message replaces the retained one; if not, the retained one must not be delivered after it
 * @returns the received messages, and the number of packets
 */
async function run(
  at: number,
  slow: number,
  isPendingKept: boolean,
  retain: boolean
): Promise<{ got: string[]; packets: number }> {
  const lives = await new Lives().begin();
  for (const text of MESSAGES) await lives.kit.broker.publish(`state/${text}`, text, { qos: 2, retain: true });
  lives.store.turnsBefore = lives.store.turnsAfter = () => slow;
  const session = new ClientSession();
  const options = { clientId: 'c', ...PERSISTENT, session, receiveMaximum: 2 };
  const { client, got } = await lives.listen(options);
  let packets = 0;
  let died: Promise<void> | undefined;
  client.on('packet', ({ packet }) => {
    const isCounted = packet.cmd === 'suback' || packets > 0;
    if (!isCounted || ++packets !== at) return;
    died = Promise.resolve().then(() => lives.kill({ isPendingKept }));
  });
  await client.subscribe({ topic: 'state/#', qos: 2 }).catch(() => undefined);
  if (died === undefined) await lives.kit.broker.publish(`state/${TOPICS - 1}`, 'newer', { qos: 2, retain });
  for (let left = 200; left > 0 && died === undefined; left--) await turns(1 + slow);
  await died;
  const texts = got.map(({ payload }) => `${payload}`);
  if (died !== undefined) {
    const again = await lives.listen(options);
    assert.equal(again.client.connack.sessionPresent, true);
    await lives.kit.broker.publish('state/new', 'live', { qos: 2, retain: true });
    await lives.kit.clock.advance(1_000);
    texts.push(...again.texts());
  }
  await lives[Symbol.asyncDispose]();
  return { got: texts, packets };
}

describe('Retained messages that a persistent session has yet to receive', () => {
  for (const slow of [0, 2])
    for (const retain of [false, true])
      it(`delivers pending retained messages once each after a crash, whichever packet was the last before it (commits of ${2 * slow} turns; a newer message ${retain ? 'replaces' : 'overtakes'} one)`, async () => {
        const expected = retain ? MESSAGES.slice(0, -1) : MESSAGES;
        const { packets, got } = await run(-1, slow, false, retain);
        assert.deepEqual([...got].sort(), [...expected, 'newer']);
        assert.ok(packets > 30, `${packets} packets`);
        for (const at of someOf(1, packets - 1))
          for (const isPendingKept of [false, true]) {
            const { got } = await run(at, slow, isPendingKept, retain);
            const where = `packet ${at}, the commit under way is ${isPendingKept ? '' : 'not '}kept: ${got}`;
            assert.equal(new Set(got).size, got.length, `a message was delivered twice: ${where}`);
            for (const text of [...expected, 'live']) assert.ok(got.includes(text), `${text} is lost: ${where}`);
          }
      });

  for (const isEndedFirst of [false, true])
    for (const isFolded of [false, true])
      it(`delivers pending retained messages from the beginning if the client has subscribed again${isEndedFirst ? ' after it unsubscribed' : ''} (${isFolded ? '' : 'not '}folded)`, async () => {
        await using lives = await new Lives().begin();
        for (const text of MESSAGES) await lives.kit.broker.publish(`state/${text}`, text, { qos: 1, retain: true });
        const client = await lives.connect({ clientId: 'c', ...PERSISTENT, receiveMaximum: 2, acknowledge: 'manual' });
        const got: ReceivedMessage[] = [];
        client.on('message', (message) => got.push(message));
        await client.subscribe({ topic: 'state/#', qos: 1 });
        await lives.kit.clock.advance(100);
        for (const message of got.slice(0, 2)) message.ack();
        await lives.kit.clock.advance(isFolded ? 500 : 10);
        if (isEndedFirst) await client.unsubscribe('state/#');
        await client.subscribe({ topic: 'state/#', qos: 1 });
        await turns(1);
        await lives.kill();
        const { texts } = await lives.listen({ clientId: 'c' });
        await lives.kit.clock.advance(1_000);
        for (const text of MESSAGES) assert.ok(texts().includes(text), `${text} is lost: ${texts()}`);
      });

  it('delivers pending retained messages of QoS 0 before those that were queued while the client was away', async () => {
    await using lives = await new Lives().begin();
    const { broker, clock } = lives.kit;
    for (const text of MESSAGES) await broker.publish(`state/${text}`, text, { qos: 0, retain: true });
    const client = await lives.connect({ clientId: 'c', ...PERSISTENT });
    await client.subscribe({ topic: 'new', qos: 1 });
    client.subscribe({ topic: 'state/#', qos: 1 }).catch(() => {});
    await turns(1);
    client.destroy();
    await turns(2);
    await broker.publish('new', 'queued', { qos: 1 });
    const { texts } = await lives.listen({ clientId: 'c' });
    await clock.advance(1_000);
    assert.deepEqual(texts(), [...MESSAGES, 'queued']);
  });

  it('keeps commits small, for any number of newer messages that have moved pending ones forward', async () => {
    await using lives = await new Lives().begin();
    const { broker, clock } = lives.kit;
    for (let n = 0; n < 1_000; n++) await broker.publish(`state/${n}`, `${n}`, { qos: 1, retain: true });
    const client = await lives.connect({ clientId: 'c', ...PERSISTENT, receiveMaximum: 1, acknowledge: 'manual' });
    await client.subscribe({ topic: 'state/#', qos: 1 });
    client.destroy();
    await clock.advance(100);
    let most = 0;
    for (let n = 0; n < 1_000; n++) {
      await broker.publish(`state/${n}`, 'newer', { qos: 1 });
      most = Math.max(most, lives.store.committed.at(-1)?.bytes ?? 0);
    }
    assert.ok(most > 100 && most < 2_000, `${most} bytes in one commit`);
  });
});
