import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Broker } from '../../lib/broker/broker.ts';
import type { BrokerOptions } from '../../lib/broker/options.ts';
import { memoryStore } from '../../lib/store/memory-store.ts';
import type { Store } from '../../lib/store/store.ts';
import { ack, told } from '../support/flows.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { rawClient } from '../support/raw-client.ts';
import { granted, publish, startBroker, turns } from '../support/wire.ts';

/** A broker whose commits take as long as a test wants, and whose time goes on meanwhile. */
async function stage(options: BrokerOptions = {}): Promise<{
  broker: Broker;
  clock: ManualClock;
  /** Commits wait from now on. @returns lets them go on */
  hold(): () => Promise<void>;
  /** Let time pass, a second at a time. */
  pass(seconds: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const inner = memoryStore();
  let held: Promise<void> | undefined;
  let letGo = () => {};
  const store: Store = {
    name: 'slow',
    open: () => inner.open(),
    close: () => inner.close(),
    read: (from, to, limit) => inner.read(from, to, limit),
    commit: async (batch) => {
      await held;
      await inner.commit(batch);
    }
  };
  const clock = new ManualClock();
  const broker = await startBroker({ store, clock, ...options });
  broker.on('error', () => {}); // of commits that take long
  return {
    broker,
    clock,
    hold: () => {
      held = new Promise((resolve) => (letGo = resolve));
      return async () => {
        held = undefined;
        letGo();
        await turns();
      };
    },
    pass: async (seconds) => {
      for (let left = seconds; left > 0; left--) {
        clock.advance(1000);
        await turns(5);
      }
    },
    [Symbol.asyncDispose]: async () => {
      held = undefined;
      letGo();
      await broker.stop();
    }
  };
}

describe('retryInterval, where sessions are kept', () => {
  const subscriber = { clientId: 's', version: 4, clean: false } as const;

  it('sends no QoS 2 message again that waits for its commit, so it comes once', async () => {
    await using it = await stage({ retryInterval: '2s' });
    const client = await rawClient(it.broker, subscriber);
    await granted(client, 1, { topic: 't', qos: 2 });
    const go = it.hold();
    void it.broker.publish('t', 'x', { qos: 2 });
    await it.pass(11);
    await client.nothing();
    await go();
    assert.deepEqual(told(await client.rest()), ['publish 1 q2 t=x']);
    await it.pass(5);
    assert.equal(told(await client.rest())[0], 'publish 1 q2 dup t=x');
    client.send(ack('pubrec', 1));
    await turns();
    assert.deepEqual(told(await client.rest()), ['pubrel 1']);
    client.send(ack('pubcomp', 1));
    await it.pass(5);
    await client.nothing();
  });

  it('sends no PUBREL whose PUBREC waits for its commit', async () => {
    await using it = await stage({ retryInterval: '2s' });
    const client = await rawClient(it.broker, subscriber);
    await granted(client, 1, { topic: 't', qos: 2 });
    await it.broker.publish('t', 'x', { qos: 2 });
    await client.next('publish');
    const go = it.hold();
    client.send(ack('pubrec', 1));
    await it.pass(11);
    await client.nothing();
    await go();
    assert.deepEqual(told(await client.rest()), ['pubrel 1']);
    await it.pass(5);
    assert.equal(told(await client.rest())[0], 'pubrel 1');
  });

  it('sends no message again that waits for the commit of its publisher, to a session that is not kept either', async () => {
    await using it = await stage({ retryInterval: '2s' });
    const client = await rawClient(it.broker, { version: 4 });
    await granted(client, 1, { topic: 't', qos: 1 });
    const writer = await rawClient(it.broker, { clientId: 'w', version: 4, clean: false });
    const go = it.hold();
    writer.send(publish('t', 'x', { qos: 2, messageId: 7 }));
    await it.pass(11);
    await client.nothing();
    await go();
    assert.deepEqual(told(await client.rest()), ['publish 1 q1 t=x']);
    client.send(ack('puback', 1));
    await turns();
    await it.pass(5);
    await client.nothing();
  });
});
