import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Message } from '../../lib/packets/message.ts';
import { Lives, PERSISTENT } from './support.ts';

const will = { topic: 'will', payload: 'gone', qos: 1 } as const;
const later = (seconds: number) => ({ ...will, properties: { willDelayInterval: seconds } });

/** Returns the wills published so far. */
async function publishedWills(lives: Lives): Promise<string[]> {
  const { client, texts } = await lives.listen({ clientId: 'watcher' });
  await lives.kit.clock.advance(10);
  await client.disconnect();
  await lives.kit.clock.advance(100);
  return texts();
}

async function watched(): Promise<Lives> {
  const lives = await new Lives().begin();
  await lives.leave('watcher', 'will', 1);
  return lives;
}

describe('A persisted will', () => {
  for (const [name, options] of [
    ['of a persistent session', PERSISTENT],
    ['of a session that ends with its connection', {}],
    ['of a client of MQTT 3.1.1', { protocolVersion: 4 }]
  ] as const)
    it(`publishes ${name} once if the process crashed while its client was connected`, async () => {
      await using lives = await watched();
      await lives.connect({ clientId: 'c', ...options, will });
      await lives.kill();
      assert.deepEqual(await publishedWills(lives), ['gone']);
      await lives.kill();
      await lives.kit.clock.advance(3_600_000);
      await lives.kill();
      assert.deepEqual(await publishedWills(lives), []);
    });

  it('publishes the will unchanged, retained and with its properties', async () => {
    await using lives = await watched();
    await lives.connect({
      clientId: 'c',
      username: 'u',
      will: { ...will, retain: true, properties: { contentType: 'x', userProperties: [['a', 'b']] } }
    });
    await lives.kill();
    await lives.kit.clock.advance(10);
    await lives.crash();
    const message = (await lives.kit.broker.retained.match('will').next()).value as Message;
    assert.deepEqual(
      [`${message.payload}`, message.qos, message.properties.contentType, message.properties.userProperties],
      ['gone', 1, 'x', [['a', 'b']]]
    );
  });

  it('delays the will from the start of the broker if its client was connected', async () => {
    await using lives = await watched();
    await lives.connect({ clientId: 'c', ...PERSISTENT, will: later(60) });
    await lives.kill({ downForMs: 600_000 });
    await lives.kit.clock.advance(50_000);
    assert.deepEqual(await publishedWills(lives), []);
    await lives.kit.clock.advance(11_000);
    assert.deepEqual(await publishedWills(lives), ['gone']);
  });

  it('publishes the will after its remaining delay if its client had disconnected before', async () => {
    await using lives = await watched();
    const client = await lives.connect({ clientId: 'c', ...PERSISTENT, will: later(60) });
    client.destroy();
    await lives.kit.clock.advance(10_000);
    await lives.crash(30_000);
    await lives.kit.clock.advance(15_000);
    assert.deepEqual(await publishedWills(lives), []);
    await lives.kit.clock.advance(6000);
    assert.deepEqual(await publishedWills(lives), ['gone']);
  });

  it('publishes the will when its session expires before its delay has passed', async () => {
    await using lives = await watched();
    const client = await lives.connect({ clientId: 'c', clean: false, sessionExpiry: '20s', will: later(600) });
    client.destroy();
    await lives.crash(30_000);
    await lives.kit.clock.advance(10);
    assert.deepEqual(await publishedWills(lives), ['gone']);
  });

  it('deletes a delayed will if the client reconnects in time', async () => {
    await using lives = await watched();
    await lives.connect({ clientId: 'c', ...PERSISTENT, will: later(60) });
    await lives.kill();
    await lives.connect({ clientId: 'c', ...PERSISTENT });
    await lives.crash();
    await lives.kit.clock.advance(100_000);
    assert.deepEqual(await publishedWills(lives), []);
  });

  for (const options of [PERSISTENT, {}])
    it(`deletes the will at a DISCONNECT with 0x00 (expiry ${'sessionExpiry' in options ? options.sessionExpiry : 0})`, async () => {
      await using lives = await watched();
      const client = await lives.connect({ clientId: 'c', ...options, will });
      await client.disconnect();
      await lives.crash();
      await lives.kit.clock.advance(100_000);
      assert.deepEqual(await publishedWills(lives), []);
    });

  it('does not publish a published will again in the next process', async () => {
    await using lives = await watched();
    for (const options of [PERSISTENT, {}]) {
      const client = await lives.connect({ clientId: 'c', ...options, will });
      client.destroy();
      await lives.kit.clock.advance(100);
      await lives.kill();
      await lives.kit.clock.advance(100);
      assert.deepEqual(await publishedWills(lives), ['gone']);
    }
  });

  it('drops the will permanently if its offline client is kicked with that option', async () => {
    await using lives = await watched();
    const client = await lives.connect({ clientId: 'c', ...PERSISTENT, will: later(60) });
    client.destroy();
    await lives.kit.clock.advance(100);
    lives.kit.broker.sessions.get('c').kick({ session: 'keep', will: 'drop' });
    await lives.crash();
    await lives.kit.clock.advance(100_000);
    assert.deepEqual(await publishedWills(lives), []);
  });

  it('keeps the will of the connection that took over the session', async () => {
    await using lives = await watched();
    await lives.connect({ clientId: 'c', ...PERSISTENT, will: later(60) });
    await lives.connect({ clientId: 'c', ...PERSISTENT, will: { ...will, payload: 'second' } });
    await lives.kill();
    await lives.kit.clock.advance(100_000);
    assert.deepEqual(await publishedWills(lives), ['second']);
  });

  it('publishes the will at a stop, and not again', async () => {
    await using lives = await watched();
    await lives.connect({ clientId: 'c', ...PERSISTENT, will });
    await lives.connect({ clientId: 'd', will });
    await lives.restart();
    assert.deepEqual(await publishedWills(lives), ['gone', 'gone']);
    await lives.crash();
    assert.deepEqual(await publishedWills(lives), []);
  });

  for (const [name, options] of [
    ['of a persistent session', PERSISTENT],
    ['of a session that ends with its connection', {}]
  ] as const)
    it(`keeps ${name} at a stop that keeps wills, and publishes it after the next start`, async () => {
      await using lives = await watched();
      await lives.connect({ clientId: 'c', ...options, will });
      await lives.restart(10_000, 'keep');
      await lives.kit.clock.advance(10);
      assert.deepEqual(await publishedWills(lives), ['gone']);
      await lives.crash();
      assert.deepEqual(await publishedWills(lives), []);
    });

  it('keeps the will at a stop that keeps wills, and publishes it after its delay unless the client reconnects', async () => {
    await using lives = await watched();
    await lives.connect({ clientId: 'c', ...PERSISTENT, will: later(60) });
    await lives.connect({ clientId: 'd', ...PERSISTENT, will: { ...later(60), payload: 'd' } });
    await lives.restart(600_000, 'keep');
    await lives.connect({ clientId: 'd', ...PERSISTENT });
    await lives.kit.clock.advance(50_000);
    assert.deepEqual(await publishedWills(lives), []);
    await lives.kit.clock.advance(11_000);
    assert.deepEqual(await publishedWills(lives), ['gone']);
  });

  for (const options of [PERSISTENT, {}])
    it(`keeps the will at a stop and start of the same broker (expiry ${'sessionExpiry' in options ? options.sessionExpiry : 0})`, async () => {
      await using lives = await watched();
      await lives.connect({ clientId: 'c', ...options, will });
      const { broker } = lives.kit;
      await lives.kit.clock.settle();
      await broker.stop({ wills: 'keep' });
      await broker.start();
      await lives.kit.clock.advance(10);
      assert.deepEqual(await publishedWills(lives), ['gone']);
      await lives.crash();
      assert.deepEqual(await publishedWills(lives), []);
    });

  it('defers the will from a start of the same broker for its delay or until its session expires, over further stops', async () => {
    for (const [delaySec, expiry] of [
      [60, '1h'],
      [600, '1m']
    ] as const) {
      await using lives = await watched();
      const { broker, clock } = lives.kit;
      await lives.connect({ clientId: 'c', clean: false, sessionExpiry: expiry, will: later(delaySec) });
      for (let round = 0; round < 3; round++) {
        await clock.settle();
        await broker.stop({ wills: 'keep' });
        await broker.start();
        assert.deepEqual(await publishedWills(lives), []);
        await clock.advance(19_000);
      }
      await clock.advance(4_000);
      assert.deepEqual(await publishedWills(lives), ['gone']);
    }
  });
});
